/*
 * calls_monitoring.c: calls through sys.monitoring, for all threads at once; Python 3.12 and later.
 *
 * Callbacks use the vectorcall protocol: nothing is allocated per call. If no profile watches a function, its events
 * are disabled at that place, and then cost nothing.
 */
#include "calls/calls_hook.h"

#if CALLS_MONITORING

#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

static struct {
    int tool;             /* -1: none */
    PyObject *monitoring; /* sys.monitoring */
    PyObject *disable;    /* the value that disables an event at its place */
    PyObject *missing;    /* the value for a missing argument */
    bool has_disabled;    /* some event is disabled somewhere */
} source = {.tool = -1};

/* ---- callbacks ---- */

static inline _PyInterpreterFrame *frame_here(void)
{
    PyThreadState *const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030d0000
    return thread->current_frame;
#else
    return thread->cframe->current_frame;
#endif
}

/* A callback for sys.monitoring, with the vectorcall protocol. */
#define CALLBACK(name)                                                                             \
    static PyObject *name(PyObject *Py_UNUSED(self), PyObject *const *args, size_t Py_UNUSED(n),   \
                          PyObject *Py_UNUSED(names))

/* During a callback the function's own frame is the innermost, because the callback is in C. */
static PyObject *globals_here(void)
{
    const _PyInterpreterFrame *const frame = frame_here();
    return frame != NULL ? frame->f_globals : NULL;
}

static inline struct calls_frame frame_of(PyObject *code, const _PyInterpreterFrame *frame,
                                          bool is_resumed)
{
    return (struct calls_frame){.code = code,
                                .globals = frame->f_globals,
                                .locals = frame->localsplus,
                                .key = frame,
                                .is_resumed = is_resumed};
}

/* A function compiled by numba is reported without its own frame. */
static inline bool is_of(const _PyInterpreterFrame *frame, const PyObject *code)
{
#if PY_VERSION_HEX >= 0x030d0000
    return frame->f_executable == code;
#else
    return (const PyObject *)frame->f_code == code;
#endif
}

static void begin(PyObject *code, bool is_resumed)
{
    enum { MOST = 64 };
    PyObject *values[MOST];
    const _PyInterpreterFrame *const here = frame_here();
    if (here == NULL)
        return;
    struct calls_frame frame = frame_of(code, here, is_resumed);
    if (MAREY_UNLIKELY(!is_of(here, code)))
        frame.locals = calls_compiled_locals(code, values, MOST) ? values : NULL;
    calls_begin_code(&frame);
}

static PyObject *nothing_more(PyObject *code)
{
    if (calls_hook.n_slots == 0 || calls_is_watched(code, globals_here()))
        Py_RETURN_NONE;
    source.has_disabled = true;
    return Py_NewRef(source.disable);
}

/* Not inlined, like the other slow paths, so that the fast ones save no registers. */
__attribute__((noinline)) static PyObject *start_slowly(PyObject *code)
{
    begin(code, false);
    return nothing_more(code);
}

__attribute__((noinline)) static PyObject *start_signed(struct calls_profile *one,
                                                        struct marey_calls_thread *thread,
                                                        uint32_t function, PyObject *code)
{
    const _PyInterpreterFrame *const here = frame_here();
    if (MAREY_UNLIKELY(here == NULL || !is_of(here, code)))
        return start_slowly(code);
    const struct calls_frame frame = frame_of(code, here, false);
    calls_begin_signed(one, thread, function, &frame);
    Py_RETURN_NONE;
}

CALLBACK(on_start)
{
    struct calls_profile *const one = calls_hook.one;
    struct marey_calls_thread *const thread = calls_plain(one);
    const uint32_t function = thread != NULL ? calls_table_get(&one->functions, args[0]) : 0;
    if (MAREY_UNLIKELY(function == 0))
        return start_slowly(args[0]);
    if (one->signer != NULL)
        return start_signed(one, thread, function, args[0]);
    marey_calls_enter(thread, function, 0);
    Py_RETURN_NONE;
}

CALLBACK(on_resume)
{
    begin(args[0], true);
    return nothing_more(args[0]);
}

/* Throw and unwind events cannot be disabled at a place. */
CALLBACK(on_throw)
{
    begin(args[0], true);
    Py_RETURN_NONE;
}

__attribute__((noinline)) static PyObject *return_slowly(PyObject *code)
{
    calls_end(code, false);
    return nothing_more(code);
}

CALLBACK(on_return)
{
    if (MAREY_LIKELY(calls_end_plain(args[0])))
        Py_RETURN_NONE;
    return return_slowly(args[0]);
}

CALLBACK(on_unwind)
{
    if (!calls_end_plain(args[0]))
        calls_end(args[0], false);
    Py_RETURN_NONE;
}

/* The C function of a callable, NULL if none; `arg0` is the object of a method descriptor's call. */
static inline const PyMethodDef *method_of(PyObject *callable, PyObject *arg0)
{
    if (Py_IS_TYPE(callable, &PyFunction_Type)) /* most are; the next would walk their bases */
        return NULL;
    if (PyCFunction_Check(callable))
        return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type) && arg0 != source.missing)
        return ((PyMethodDescrObject *)callable)->d_method;
    return NULL;
}

__attribute__((noinline)) static PyObject *call_slowly(const PyMethodDef *key, PyObject *const *args)
{
    if (calls_hook.one == NULL && !calls_is_watched(args[0], globals_here()))
        return nothing_more(args[0]);
    calls_begin_builtin(key, args[2], args[3] != source.missing ? args[3] : NULL);
    Py_RETURN_NONE;
}

CALLBACK(on_call)
{
    const PyMethodDef *const key = method_of(args[2], args[3]);
    if (key == NULL)
        Py_RETURN_NONE;
    const struct calls_profile *const one = calls_hook.one;
    struct marey_calls_thread *const thread = calls_plain(one);
    const uint32_t function = thread != NULL ? calls_table_get(&one->functions, key) : 0;
    if (MAREY_UNLIKELY(function == 0))
        return call_slowly(key, args);
    marey_calls_enter(thread, function, 0);
    Py_RETURN_NONE;
}

CALLBACK(on_c_return)
{
    const PyMethodDef *const key = method_of(args[2], args[3]);
    if (key != NULL && !calls_end_plain(key))
        calls_end(key, true);
    Py_RETURN_NONE;
}

static const struct callback {
    const char *event;
    vectorcallfunc function;
    bool is_builtins; /* enabled for built-in functions */
    bool is_implied;  /* implied by CALL, not requested */
} callbacks[] = {
    {"PY_START", on_start, false, false},  {"PY_RESUME", on_resume, false, false},
    {"PY_THROW", on_throw, false, false},  {"PY_RETURN", on_return, false, false},
    {"PY_YIELD", on_return, false, false}, {"PY_UNWIND", on_unwind, false, false},
    {"CALL", on_call, true, false},        {"C_RETURN", on_c_return, true, true},
    {"C_RAISE", on_c_return, true, true},
};

/* A callable for sys.monitoring: a minimal object, because a built-in function's overhead would be 10 % of a call. */
struct callee {
    PyObject_HEAD vectorcallfunc function;
};

static PyObject *callee_create(vectorcallfunc function)
{
    static PyMemberDef members[] = {{"__vectorcalloffset__", Py_T_PYSSIZET,
                                     offsetof(struct callee, function), Py_READONLY, NULL},
                                    {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, members}, {0, NULL}};
    static PyType_Spec spec = {.name = "marey._native.calls_callback",
                               .basicsize = sizeof(struct callee),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    static PyTypeObject *type; /* never freed */
    if (type == NULL && (type = (PyTypeObject *)PyType_FromSpec(&spec)) == NULL)
        return NULL;
    struct callee *const self = (struct callee *)type->tp_alloc(type, 0);
    if (self != NULL)
        self->function = function;
    return (PyObject *)self;
}

PyMethodDef calls_source_functions[] = {{NULL, NULL, 0, NULL}};

/* ---- on and off ---- */

static long event_number(const char *name)
{
    PyObject *const events EXT_OWNED = PyObject_GetAttrString(source.monitoring, "events");
    PyObject *const number EXT_OWNED = events != NULL ? PyObject_GetAttrString(events, name) : NULL;
    return number != NULL ? PyLong_AsLong(number) : -1;
}

static int register_callback(const struct callback *callback, bool on)
{
    const long event = event_number(callback->event);
    PyObject *const function = on ? callee_create(callback->function) : Py_NewRef(Py_None);
    if (event < 0 || function == NULL) {
        Py_XDECREF(function);
        return -1;
    }
    PyObject *const before EXT_OWNED = PyObject_CallMethod(source.monitoring, "register_callback",
                                                           "ilN", source.tool, event, function);
    return before != NULL ? 0 : -1;
}

static int register_all(bool on)
{
    for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
        if (register_callback(&callbacks[i], on) < 0)
            return -1;
    return 0;
}

static int set_events(bool on)
{
    bool with_builtins = false;
    long events = 0;
    for (size_t i = 0; i < calls_hook.n_slots; i++)
        with_builtins |= calls_hook.profiles[i] != NULL && calls_hook.profiles[i]->with_builtins;
    for (size_t i = 0; on && i < sizeof callbacks / sizeof *callbacks; i++)
        if (!callbacks[i].is_implied && (!callbacks[i].is_builtins || with_builtins)) {
            const long event = event_number(callbacks[i].event);
            if (event < 0)
                return -1;
            events |= event;
        }
    PyObject *const done EXT_OWNED =
        PyObject_CallMethod(source.monitoring, "set_events", "il", source.tool, events);
    return done != NULL ? 0 : -1;
}

/* Re-enables events at all places. */
static int restart_events(void)
{
    if (!source.has_disabled)
        return 0;
    source.has_disabled = false;
    PyObject *const done EXT_OWNED = PyObject_CallMethod(source.monitoring, "restart_events", NULL);
    return done != NULL ? 0 : -1;
}

static int find_monitoring(void)
{
    if (source.monitoring != NULL)
        return 0;
    PyObject *const monitoring = PySys_GetObject("monitoring"); /* borrowed */
    if (monitoring == NULL)
        return EXT_FAIL(PyExc_RuntimeError, "this Python has no sys.monitoring");
    source.disable = PyObject_GetAttrString(monitoring, "DISABLE");
    source.missing = PyObject_GetAttrString(monitoring, "MISSING");
    if (source.disable == NULL || source.missing == NULL)
        return -1;
    source.monitoring = Py_NewRef(monitoring);
    return 0;
}

/* Takes a free id. 0 is for debuggers, 1 for coverage, 2 for profilers, used by others too; 5 for optimizers. */
static int use_tool(void)
{
    static const int ids[] = {3, 4, 2, 5, 0, 1};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        PyObject *const done EXT_OWNED =
            PyObject_CallMethod(source.monitoring, "use_tool_id", "is", ids[i], "marey");
        if (done != NULL) {
            source.tool = ids[i];
            return 0;
        }
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    return EXT_FAIL(PyExc_RuntimeError,
                    "all six tool ids of sys.monitoring are taken by other tools (debuggers, "
                    "coverage, profilers); end one of them");
}

static int free_tool(void)
{
    if (source.tool < 0)
        return 0;
    int status = set_events(false);
    if (register_all(false) < 0)
        status = -1;
    PyObject *const done EXT_OWNED =
        PyObject_CallMethod(source.monitoring, "free_tool_id", "i", source.tool);
    source.tool = -1;
    return done != NULL ? status : -1;
}

int calls_source_start(void)
{
    if (find_monitoring() == 0 && use_tool() == 0 && register_all(true) == 0 &&
        restart_events() == 0 && set_events(true) == 0)
        return 0;
    PyObject *const error = PyErr_GetRaisedException();
    if (free_tool() < 0)
        PyErr_Clear();
    PyErr_SetRaisedException(error);
    return -1;
}

int calls_source_change(void)
{
    return restart_events() == 0 ? set_events(true) : -1;
}

int calls_source_stop(void)
{
    return free_tool();
}

#endif
