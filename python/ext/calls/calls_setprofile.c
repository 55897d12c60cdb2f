/*
 * calls_setprofile.c: calls through the per-thread profile hook; Python 3.10 and 3.11.
 *
 * Existing threads get the hook when a profile is enabled; threads started later get it by threading.setprofile(). The
 * previous holder of the hook gets it back.
 */
#include "calls/calls_hook.h"

#if !CALLS_MONITORING

#if PY_VERSION_HEX >= 0x030b0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#include <opcode.h>
#undef Py_BUILD_CORE
#else
#include <frameobject.h>
#endif

/* ---- frames ---- */

#if PY_VERSION_HEX >= 0x030b0000

/* The frame's data, at an address that does not change while a generator is suspended. */
#define FIELDS(frame) ((frame)->f_frame)
#define LOCALS localsplus

/*
 * Whether it is resumed: unless it is at the instruction that starts functions. After a throw, as by close(), it is
 * still where it was suspended.
 */
static inline bool is_resumed(PyFrameObject *frame)
{
    const _PyInterpreterFrame *const f = frame->f_frame;
    return f->owner == FRAME_OWNED_BY_GENERATOR &&
           (_Py_OPARG(*f->prev_instr) != 0 || _Py_OPCODE(*f->prev_instr) == YIELD_VALUE);
}

#else

#define FIELDS(frame) (frame)
#define LOCALS f_localsplus

static inline bool is_resumed(PyFrameObject *frame)
{
    return frame->f_lasti >= 0;
}

#endif

static inline PyObject *code_of(PyFrameObject *frame)
{
    return (PyObject *)FIELDS(frame)->f_code;
}

/* ---- the hook ---- */

static inline struct calls_frame frame_of(PyFrameObject *frame, bool goes_on)
{
    return (struct calls_frame){.code = code_of(frame),
                                .globals = FIELDS(frame)->f_globals,
                                .locals = FIELDS(frame)->LOCALS,
                                .key = FIELDS(frame),
                                .is_resumed = goes_on};
}

/* A module or class body, or a function compiled by numba: numba clears the flag in those it reports. */
static inline bool is_unoptimized(const struct calls_frame *frame)
{
    return (((PyCodeObject *)frame->code)->co_flags & CO_OPTIMIZED) == 0;
}

/* Not inlined, so that the fast path saves no registers. */
__attribute__((noinline)) static void begin_slowly(PyFrameObject *frame, bool goes_on)
{
    enum { MOST = 64 };
    PyObject *values[MOST];
    struct calls_frame begun = frame_of(frame, goes_on);
    if (is_unoptimized(&begun)) /* locals of numba's frame are not the function's */
        begun.locals = calls_compiled_locals(begun.code, values, MOST) ? values : NULL;
    calls_begin_code(&begun);
}

__attribute__((noinline)) static void begin_signed(PyFrameObject *frame, struct calls_profile *one,
                                                   struct marey_calls_thread *thread,
                                                   uint32_t function)
{
    const struct calls_frame begun = frame_of(frame, false);
    if (MAREY_UNLIKELY(is_unoptimized(&begun)))
        begin_slowly(frame, false);
    else
        calls_begin_signed(one, thread, function, &begun);
}

static void begin_python(PyFrameObject *frame)
{
    struct calls_profile *const one = calls_hook.one;
    struct marey_calls_thread *const thread = calls_plain(one);
    PyObject *const code = code_of(frame);
    const bool goes_on = is_resumed(frame);
    const uint32_t function = thread != NULL && !goes_on ? calls_table_get(&one->functions, code) : 0;
    if (MAREY_UNLIKELY(function == 0))
        begin_slowly(frame, goes_on);
    else if (one->signer != NULL)
        begin_signed(frame, one, thread, function);
    else
        marey_calls_enter(thread, function, 0);
}

static void begin_builtin(PyFrameObject *frame, PyObject *callable)
{
    const PyMethodDef *const key = ((PyCFunctionObject *)callable)->m_ml;
    struct calls_profile *const one = calls_hook.one;
    struct marey_calls_thread *const thread = calls_plain(one);
    if (MAREY_LIKELY(thread != NULL)) {
        const uint32_t function = calls_table_get(&one->functions, key);
        if (MAREY_LIKELY(function != 0)) {
            marey_calls_enter(thread, function, 0);
            return;
        }
    }
    if (one != NULL || calls_is_watched(code_of(frame), FIELDS(frame)->f_globals))
        calls_begin_builtin(key, callable, NULL);
}

static int on_event(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *arg)
{
    switch (what) {
    case PyTrace_CALL:
        begin_python(frame);
        break;
    case PyTrace_RETURN:
        if (!calls_end_plain(code_of(frame)))
            calls_end(code_of(frame), false);
        break;
    case PyTrace_C_CALL:
        if (PyCFunction_Check(arg))
            begin_builtin(frame, arg);
        break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
        if (PyCFunction_Check(arg) && !calls_end_plain(((PyCFunctionObject *)arg)->m_ml))
            calls_end(((PyCFunctionObject *)arg)->m_ml, true);
        break;
    default:
        break;
    }
    return 0;
}

/* ---- threads ---- */

/* Replaced hooks, to be restored. */
static struct others {
    struct {
        uint64_t thread;
        Py_tracefunc function;
        PyObject *argument; /* strong */
    } * hooks;
    size_t n;
} others;

static bool is_on;

static int keep_other(const PyThreadState *thread)
{
    void *const hooks = PyMem_Realloc(others.hooks, (others.n + 1) * sizeof *others.hooks);
    if (hooks == NULL)
        return EXT_NO_MEMORY();
    others.hooks = hooks;
    others.hooks[others.n].thread = PyThreadState_GetID((PyThreadState *)(uintptr_t)thread);
    others.hooks[others.n].function = thread->c_profilefunc;
    others.hooks[others.n].argument = thread->c_profileobj;
    Py_XINCREF(thread->c_profileobj);
    others.n++;
    return 0;
}

/* Warns after all threads have the hook: a warning runs code, and threads may end meanwhile. */
static int tell_of_others(void)
{
    return others.n == 0 ? 0
                         : PyErr_WarnEx(PyExc_RuntimeWarning,
                                        "another profiler held a thread's profile hook (cProfile, "
                                        "or sys.setprofile); it sees nothing "
                                        "until marey's profile is disabled, and goes on then",
                                        1);
}

static int each_thread(int (*work)(PyThreadState *thread))
{
    PyInterpreterState *const interpreter = PyInterpreterState_Get();
    int status = 0;
    for (PyThreadState *thread = PyInterpreterState_ThreadHead(interpreter);
         thread != NULL && status == 0; thread = PyThreadState_Next(thread))
        status = work(thread);
    return status;
}

static int hook_thread(PyThreadState *thread)
{
    if (thread->c_profilefunc == on_event)
        return 0;
    if (thread->c_profilefunc != NULL && keep_other(thread) < 0)
        return -1;
    return _PyEval_SetProfile(thread, on_event, NULL);
}

static int unhook_thread(PyThreadState *thread)
{
    const uint64_t id = PyThreadState_GetID(thread);
    if (thread->c_profilefunc != on_event)
        return 0; /* another tool has taken it */
    for (size_t i = 0; i < others.n; i++)
        if (others.hooks[i].thread == id)
            return _PyEval_SetProfile(thread, others.hooks[i].function, others.hooks[i].argument);
    return _PyEval_SetProfile(thread, NULL, NULL);
}

/* Called by threading in a new thread at its first event: installs the hook. */
static PyObject *on_new_thread(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *frame, *event, *arg;
    if (!PyArg_ParseTuple(args, "O!UO", &PyFrame_Type, &frame, &event, &arg))
        return NULL;
    PyEval_SetProfile(is_on ? on_event : NULL, NULL);
    if (is_on && PyUnicode_CompareWithASCIIString(event, "call") == 0)
        begin_python((PyFrameObject *)frame);
    Py_RETURN_NONE;
}

PyMethodDef calls_source_functions[] = {
    {"_calls_new_thread", on_new_thread, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* threading.setprofile(); a program with threads imports threading anyway. */
static int tell_threading(bool on)
{
    PyObject *const threading EXT_OWNED = PyImport_ImportModule("threading");
    PyObject *const ours EXT_OWNED = PyObject_GetAttrString(calls_module(), "_calls_new_thread");
    PyObject *const present EXT_OWNED =
        threading != NULL ? PyObject_GetAttrString(threading, "_profile_hook") : NULL;
    int status = -1;
    if (ours != NULL && present != NULL) {
        const bool is_ours = present == ours, is_others = !is_ours && present != Py_None;
        PyObject *const done EXT_OWNED =
            (on ? !is_others : is_ours)
                ? PyObject_CallMethod(threading, "setprofile", "O", on ? ours : Py_None)
                : Py_NewRef(Py_None);
        status = done != NULL ? 0 : -1;
        if (status == 0 && on && is_others)
            status = PyErr_WarnEx(PyExc_RuntimeWarning,
                                  "threading.setprofile() was given a hook by another profiler: "
                                  "threads that start from now on are not in marey's profile",
                                  1);
    }
    return status;
}

int calls_source_start(void)
{
    is_on = true;
    if (tell_threading(true) == 0 && each_thread(hook_thread) == 0 && tell_of_others() == 0)
        return 0;
    EXT_KEEP_ERROR();
    calls_source_stop();
    return -1;
}

int calls_source_change(void)
{
    return 0;
}

int calls_source_stop(void)
{
    is_on = false;
    int status = each_thread(unhook_thread);
    for (size_t i = 0; i < others.n; i++)
        Py_XDECREF(others.hooks[i].argument);
    others.n = 0;
    if (tell_threading(false) < 0)
        status = -1;
    return status;
}

#endif
