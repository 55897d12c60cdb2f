/*
 * calls_numba.c: the arguments of functions compiled by numba.
 *
 * numba reports such a call to profilers with a frame of the function's code, or with an event without a frame; neither
 * has the arguments (any locals there belong to the caller). So while a profile with signatures is enabled, numba's
 * dispatcher class has a __call__ that stores the arguments and continues with numba's own.
 */
#include "calls/calls_hook.h"

/* A call of a dispatcher, on the C stack. All borrowed except `rest`. */
struct compiled_call {
    PyObject *dispatcher, *args, *names; /* names: a dict, or NULL */
    PyObject *rest;                      /* the tuple for the function's *args, if requested */
    struct compiled_call *outer;
};
static _Thread_local struct compiled_call *innermost;

/* Guarded by the GIL. */
static struct {
    PyTypeObject *type; /* strong; NULL: none */
    ternaryfunc call;   /* numba's own */
} watched;

static PyObject *call_dispatcher(PyObject *self, PyObject *args, PyObject *names)
{
    struct compiled_call here = {self, args, names, NULL, innermost};
    innermost = &here;
    PyObject *const result = watched.call(self, args, names);
    innermost = here.outer;
    Py_XDECREF(here.rest);
    return result;
}

/* ---- arguments ---- */

/* From the dispatcher's instance dict, borrowed, without running code; NULL if missing. */
static PyObject *own(PyObject *dispatcher, const char *name)
{
    PyObject **const dict = _PyObject_GetDictPtr(dispatcher);
    return dict != NULL && *dict != NULL ? PyDict_GetItemString(*dict, name) : NULL;
}

/* The i-th parameter: by position, by name, or its default; borrowed. */
static PyObject *argument(const struct compiled_call *call, PyObject *name, Py_ssize_t i, Py_ssize_t n)
{
    PyObject *const function = own(call->dispatcher, "py_func");
    PyObject *const defaults =
        function != NULL && PyFunction_Check(function) ? PyFunction_GET_DEFAULTS(function) : NULL;
    if (i < PyTuple_GET_SIZE(call->args))
        return PyTuple_GET_ITEM(call->args, i);
    PyObject *const named = call->names != NULL ? PyDict_GetItemWithError(call->names, name) : NULL;
    if (named != NULL)
        return named;
    const Py_ssize_t at = defaults != NULL ? i - (n - PyTuple_GET_SIZE(defaults)) : -1;
    return at >= 0 ? PyTuple_GET_ITEM(defaults, at) : NULL;
}

static bool find_arguments(struct compiled_call *call, PyCodeObject *code, PyObject **locals,
                           size_t room)
{
    const Py_ssize_t n = code->co_argcount;
    const bool has_rest = (code->co_flags & CO_VARARGS) != 0;
    PyObject *const names EXT_OWNED = PyObject_GetAttrString((PyObject *)code, "co_varnames");
    bool is_whole = names != NULL && (size_t)n + has_rest <= room && code->co_kwonlyargcount == 0 &&
                    (code->co_flags & CO_VARKEYWORDS) == 0;
    for (Py_ssize_t i = 0; is_whole && i < n; i++) {
        locals[i] = argument(call, PyTuple_GET_ITEM(names, i), i, n);
        is_whole = locals[i] != NULL;
    }
    if (is_whole && has_rest) {
        if (call->rest == NULL)
            call->rest = PyTuple_GetSlice(call->args, n, PyTuple_GET_SIZE(call->args));
        locals[n] = call->rest;
        is_whole = call->rest != NULL;
    }
    return is_whole;
}

bool calls_compiled_locals(PyObject *code, PyObject **locals, size_t room)
{
    if (!calls_is_signing())
        return false;
    EXT_KEEP_ERROR();
    calls_numba_watch(); /* numba may have been imported since */
    return innermost != NULL && own(innermost->dispatcher, "__code__") == code &&
           find_arguments(innermost, (PyCodeObject *)code, locals, room);
}

/* ---- on and off ---- */

/* A class of an imported module, a new reference; NULL without an exception if there is none. */
static PyTypeObject *imported_class(const char *module, const char *name)
{
    PyObject *const type = calls_imported(module, name); /* borrowed */
    return type != NULL && PyType_Check(type) ? (PyTypeObject *)Py_NewRef(type) : NULL;
}

void calls_numba_watch(void)
{
    static PyMethodDef method = {"__call__", (PyCFunction)(void (*)(void))call_dispatcher,
                                 METH_VARARGS | METH_KEYWORDS, NULL};
    if (watched.type != NULL)
        return;
    PyTypeObject *const type EXT_OWNED = imported_class("numba.core.registry", "CPUDispatcher");
    PyTypeObject *const base EXT_OWNED = imported_class("numba._dispatcher", "Dispatcher");
    /* Do not replace the hook of another tool. */
    const bool is_numbas = type != NULL && base != NULL && type->tp_call == base->tp_call;
    PyObject *const ours EXT_OWNED = is_numbas ? PyDescr_NewMethod(type, &method) : NULL;
    if (ours != NULL) {
        watched.call = base->tp_call;
        if (PyObject_SetAttrString((PyObject *)type, "__call__", ours) == 0)
            watched.type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    }
    PyErr_Clear();
}

void calls_numba_leave(void)
{
    PyTypeObject *const type EXT_OWNED = watched.type;
    if (type == NULL)
        return;
    EXT_KEEP_ERROR();
    watched.type = NULL; /* keep `call`: a call may be in progress */
    if (PyObject_DelAttrString((PyObject *)type, "__call__") < 0)
        PyErr_Clear();
}
