/*
 * native_nvtx.c: NVTXRangeWrapper, the range wrapper of <kymo/nvtx.h>.
 *
 * There is one instance, whose switch and options are the process's, in libkymo: a method that was taken before
 * enable() works after it. NVTXRangeWrapper() is called in front of each push by programs written that way, so the type
 * has a vectorcall that hands the instance out and makes nothing.
 *
 * Waiting for the GPU. libkymo waits in the midst of a push or pop, after the check, by whatever CUDA runtime it finds.
 * Where torch uses the GPU, torch knows better: it has the current device and tells when a graph is being captured. So
 * libkymo asks wait_hook() first. The hook acts for calls that come from here, which hold the GIL; other threads of the
 * process may push from C without it, and are left to libkymo.
 */
#include "native.h"

#include <kymo/cuda.h>
#include <kymo/nvtx.h>

/* What wait_hook() does on this thread. */
static _Thread_local enum {
    WAIT_IS_NOT_OURS = 0,
    WAIT_IS_OURS,
    WAIT_IS_DONE,
    WAIT_GOES_ON, /* a torch whose synchronize() has ranges in it comes back here: those do not wait */
} waiting;

/* The one instance. The state is the module's, which the instance keeps alive through its type. */
struct nvtx {
    PyObject ob_base;
    struct native_state *state;
};

static inline struct native_state *state_of(PyObject *self)
{
    return ((struct nvtx *)self)->state;
}

/* ---- waiting ---- */

/* Call a function of torch.cuda that answers yes or no. -1 and an exception when it does not. */
static int ask(PyObject *cuda, const char *function)
{
    PyObject *answer = PyObject_CallMethod(cuda, function, NULL);
    const int is_true = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_true;
}

/* torch.cuda when torch is loaded and uses the GPU: a new reference. NULL without an exception otherwise. */
static PyObject *torch_cuda_in_use(void)
{
    PyObject *name = PyUnicode_FromString("torch.cuda");
    PyObject *cuda = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    if (cuda != NULL && ask(cuda, "is_initialized") <= 0)
        Py_CLEAR(cuda);
    PyErr_Clear(); /* a torch that is half imported, or another's module of that name: it waits for nothing */
    return cuda;
}

/* A wait would spoil a graph that is being captured, and its kernels do not run yet. -1 and torch's exception. */
static int wait_by_torch(PyObject *cuda)
{
    const int is_capturing = ask(cuda, "is_current_stream_capturing");
    if (is_capturing != 0)
        return is_capturing < 0 ? -1 : 0;
    PyObject *done = PyObject_CallMethod(cuda, "synchronize", NULL);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

/* Wait, by torch or by libkymo. -1 and an exception when torch raises one. */
static int wait_now(void)
{
    int rc = 0;
    waiting = WAIT_GOES_ON;
    PyObject *cuda = torch_cuda_in_use();
    if (cuda != NULL) {
        rc = wait_by_torch(cuda);
        Py_DECREF(cuda);
    } else {
        PyThreadState *thread = PyEval_SaveThread();
        kymo_cuda_sync();
        PyEval_RestoreThread(thread);
    }
    waiting = WAIT_IS_DONE;
    return rc;
}

static int wait_hook(void)
{
    if (waiting == WAIT_IS_OURS)
        wait_now(); /* what it raises is found when the pop is through */
    return waiting == WAIT_IS_DONE ? 1 : -1;
}

/* ---- push and pop ---- */

/* What an exception leaves behind is as if push had not been called: the wait comes first. */
static PyObject *push_waiting(kymo_id id)
{
    const int goes_on = waiting == WAIT_GOES_ON;
    const int rc = goes_on ? 0 : wait_now();
    waiting = WAIT_IS_DONE;
    if (rc == 0)
        kymo_nvtx_push_on(id);
    waiting = goes_on ? WAIT_GOES_ON : WAIT_IS_NOT_OURS;
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The one argument of push or pop by its keyword. */
static int name_argument(const char *method, Py_ssize_t required, PyObject *const *args,
                         Py_ssize_t nargs, PyObject *kwnames, PyObject **name)
{
    static const char *const names[] = {"range_name", NULL};
    return native_arguments(method, names, required, args, nargs, kwnames, name);
}

static PyObject *nvtx_range_push(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames)
{
    PyObject *name = NULL;
    if (KYMO_LIKELY(nargs == 1 && kwnames == NULL))
        name = args[0];
    else if (name_argument("range_push", 1, args, nargs, kwnames, &name) < 0)
        return NULL;
    kymo_id id;
    if (KYMO_UNLIKELY(native_id(state_of(self), name, &id) < 0))
        return NULL;
    const uint32_t on = kymo_on();
    if (KYMO_LIKELY((on & KYMO_ON_WRAPPER) == 0))
        Py_RETURN_NONE;
    if (KYMO_UNLIKELY(on & KYMO_ON_SYNC_PUSH))
        return push_waiting(id);
    kymo_nvtx_push_on(id);
    Py_RETURN_NONE;
}

/* The wait is in the midst of it. */
static PyObject *pop_waiting(PyObject *self, kymo_id id)
{
    const int goes_on = waiting == WAIT_GOES_ON;
    waiting = goes_on ? WAIT_IS_DONE : WAIT_IS_OURS;
    const kymo_status status = kymo_nvtx_pop_id_on(id);
    waiting = goes_on ? WAIT_GOES_ON : WAIT_IS_NOT_OURS;
    if (PyErr_Occurred())
        return NULL;
    if (status != KYMO_OK)
        return native_raise(state_of(self), status);
    Py_RETURN_NONE;
}

/* None stands for no name. -1 and a TypeError for what can be no name. */
static int check_name(PyObject **name)
{
    if (*name == NULL || KYMO_LIKELY(PyUnicode_Check(*name)) || PyBytes_Check(*name))
        return 0;
    if (*name == Py_None) {
        *name = NULL;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "a name is a str or bytes, not %.200s", Py_TYPE(*name)->tp_name);
    return -1;
}

static PyObject *nvtx_range_pop(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames)
{
    PyObject *name = NULL;
    if (KYMO_LIKELY(nargs == 1 && kwnames == NULL))
        name = args[0];
    else if ((nargs != 0 || kwnames != NULL) &&
             name_argument("range_pop", 0, args, nargs, kwnames, &name) < 0)
        return NULL;
    if (check_name(&name) < 0)
        return NULL;
    const uint32_t on = kymo_on();
    if (KYMO_LIKELY((on & KYMO_ON_WRAPPER) == 0))
        Py_RETURN_NONE;
    kymo_id id = 0;
    if (name != NULL && (on & KYMO_ON_ORDER) && native_id(state_of(self), name, &id) < 0)
        return NULL;
    if (KYMO_UNLIKELY(on & KYMO_ON_SYNC_POP))
        return pop_waiting(self, id);
    const kymo_status status = kymo_nvtx_pop_id_on(id);
    if (KYMO_UNLIKELY(status != KYMO_OK))
        return native_raise(state_of(self), status);
    Py_RETURN_NONE;
}

/* ---- the switch ---- */

static int is_true(PyObject *value, uint32_t *out)
{
    const int truth = PyObject_IsTrue(value);
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

static PyObject *nvtx_enable(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"sync_on_push", "sync_on_pop", "keep_track_of_range_order",
                                        NULL};
    PyObject *values[3] = {NULL};
    struct kymo_nvtx_options options;
    if (native_arguments("enable", names, 3, args, nargs, kwnames, values) < 0 ||
        is_true(values[0], &options.sync_on_push) < 0 ||
        is_true(values[1], &options.sync_on_pop) < 0 ||
        is_true(values[2], &options.keep_track_of_range_order) < 0)
        return NULL;
    native_nesting_renew(); /* blocks that are open were not checked when they were entered */
    PyThreadState *thread = PyEval_SaveThread();
    const kymo_status status = kymo_nvtx_enable(&options);
    PyEval_RestoreThread(thread);
    if (status != KYMO_OK)
        return native_raise(state_of(self), status);
    Py_RETURN_NONE;
}

static PyObject *nvtx_disable(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    kymo_nvtx_disable();
    native_nesting_renew();
    Py_RETURN_NONE;
}

static PyObject *nvtx_is_enabled(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return PyBool_FromLong(kymo_nvtx_is_enabled());
}

/* ---- the one instance ---- */

/* NVTXRangeWrapper(): the instance. NVTXRangeWrapper(True, False, True): enable it as well. */
static PyObject *nvtx_call(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct native_state *state = PyType_GetModuleState((PyTypeObject *)type);
    PyObject *const wrapper = state->nvtx;
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (KYMO_UNLIKELY(nargs != 0 || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0))) {
        PyObject *enabled = nvtx_enable(wrapper, args, nargs, kwnames);
        if (enabled == NULL)
            return NULL;
        Py_DECREF(enabled);
    }
    return Py_NewRef(wrapper);
}

/* Reached by NVTXRangeWrapper.__new__() alone; arguments are for the call. */
static PyObject *nvtx_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    const struct native_state *state = PyType_GetModuleState(type);
    return Py_NewRef(state->nvtx);
}

/* Copied or sent to another process, it is the one instance there. */
static PyObject *nvtx_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("O()", Py_TYPE(self));
}

static int nvtx_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void nvtx_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    type->tp_free(self);
    Py_DECREF(type);
}

#define FASTCALL(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef nvtx_methods[] = {
    {"enable", FASTCALL(nvtx_enable),
     "enable($self, /, sync_on_push, sync_on_pop, keep_track_of_range_order)\n--\n\n"
     "Switch it on: wait for the GPU before each push, before each pop; check that ranges nest."},
    {"disable", nvtx_disable, METH_NOARGS,
     "disable($self, /)\n--\n\n"
     "Switch it off. Ranges that this thread has open through it are ended."},
    {"reset", nvtx_disable, METH_NOARGS,
     "reset($self, /)\n--\n\nSwitch it off and forget what it was told, as disable() does."},
    {"range_push", FASTCALL(nvtx_range_push),
     "range_push($self, /, range_name)\n--\n\n"
     "Wait for the GPU if asked to, then begin a range on this thread. Nothing while off."},
    {"range_pop", FASTCALL(nvtx_range_pop),
     "range_pop($self, /, range_name=None)\n--\n\n"
     "Wait for the GPU if asked to, then end the range that was begun last on this thread.\n\n"
     "With the order kept track of, a name that does not fit raises RangeError and pops nothing."},
    {"__reduce__", nvtx_reduce, METH_NOARGS, "Pickle as the one instance."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef nvtx_getset[] = {
    {"is_enabled", nvtx_is_enabled, NULL, "Whether it is switched on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    nvtx_doc,
    "Ranges that may wait for the GPU and may be checked; for NVTX tools and the recording.\n\n"
    "NVTXRangeWrapper() returns the one instance of this process; with arguments it is "
    "enabled as well.");

static PyType_Slot nvtx_slots[] = {
    {Py_tp_doc, (void *)nvtx_doc},
    {Py_tp_new, nvtx_new},
    {Py_tp_methods, nvtx_methods},
    {Py_tp_getset, nvtx_getset},
    {Py_tp_traverse, nvtx_traverse},
    {Py_tp_dealloc, nvtx_dealloc},
    {0, NULL},
};
/* Calls of a type that cannot change are specialised by CPython. */
#ifdef Py_TPFLAGS_IMMUTABLETYPE
#define IMMUTABLE Py_TPFLAGS_IMMUTABLETYPE
#else
#define IMMUTABLE 0
#endif
static PyType_Spec nvtx_spec = {
    .name = "kymo.NVTXRangeWrapper",
    .basicsize = sizeof(struct nvtx),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | IMMUTABLE,
    .slots = nvtx_slots,
};

int native_nvtx_make(PyObject *module)
{
    struct native_state *state = native_state_of(module);
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &nvtx_spec, NULL);
    if (type == NULL)
        return -1;
    state->nvtx_type = type;
    type->tp_vectorcall = nvtx_call;
    state->nvtx = type->tp_alloc(type, 0);
    if (state->nvtx == NULL)
        return -1;
    ((struct nvtx *)state->nvtx)->state = state;
    kymo_cuda_set_sync_hook(wait_hook);
    return 0;
}
