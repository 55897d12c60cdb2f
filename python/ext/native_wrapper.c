/*
 * native_wrapper.c: a Range, or a Measurement of the stopwatch, as a decorator.
 *
 * A plain function becomes a Wrapper: an object with vectorcall that begins the range, calls the function and ends the
 * range, whether the function returns or raises. With the method-descriptor flag and tp_descr_get it works as a method
 * without creating a bound object per call. Generators, coroutines and async generators are wrapped in a function of the
 * same kind, written in Python (marey/_resume.py), so that inspect still recognizes them.
 */
#include "native.h"

#include <string.h>
#include <structmember.h>

struct wrapper {
    PyObject ob_base;
    vectorcallfunc vectorcall;
    PyObject *function;
    struct native_range *range;
    PyObject *dict;
    PyObject *weakrefs;
};

/*
 * PyObject_Vectorcall() without its check of the result, which the interpreter repeats when we return: that saves about
 * 3 of the 20 ns of a wrapper.
 */
static inline PyObject *call(PyObject *function, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames)
{
    const PyTypeObject *type = Py_TYPE(function);
    if (MAREY_LIKELY(type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL)) {
        vectorcallfunc direct;
        memcpy(&direct, (const char *)function + type->tp_vectorcall_offset, sizeof direct);
        if (MAREY_LIKELY(direct != NULL))
            return direct(function, args, nargsf, kwnames);
    }
    return PyObject_Vectorcall(function, args, nargsf, kwnames);
}

static PyObject *wrapper_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct wrapper *wrapper = (struct wrapper *)self;
    const uint32_t on_before = marey_on();
    if (MAREY_LIKELY(!on_before))
        return call(wrapper->function, args, nargsf, kwnames);
    const struct native_range *range = wrapper->range;
    native_begin(range, on_before);
    PyObject *result = call(wrapper->function, args, nargsf, kwnames);
    const uint32_t on = marey_on();
    if (MAREY_LIKELY((on & MAREY_ON_CHECKED) == 0))
        marey_end_on(range->id);
    else if (native_end_checked(range, result == NULL) < 0)
        Py_CLEAR(result);
    return result;
}

/* The same for a measurement. One that was off, or already running, when the function began is not ended here. */
static PyObject *wrapper_call_measured(PyObject *self, PyObject *const *args, size_t nargsf,
                                       PyObject *kwnames)
{
    const struct wrapper *wrapper = (struct wrapper *)self;
    const int is_begun = native_measured_begin(wrapper->range, marey_on());
    if (is_begun < 0)
        return NULL;
    PyObject *result = call(wrapper->function, args, nargsf, kwnames);
    return is_begun ? native_measured_finish(wrapper->range, result) : result;
}

static int is_measurement(const struct native_range *range)
{
    PyTypeObject *type = Py_TYPE((PyObject *)range);
    const struct native_state *state = PyType_GetModuleState(type);
    return type == state->types[NATIVE_MEASURED];
}

static PyObject *wrapper_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

static PyObject *wrapper_repr(PyObject *self)
{
    const struct wrapper *wrapper = (struct wrapper *)self;
    return PyUnicode_FromFormat("<%s over %R>",
                                is_measurement(wrapper->range) ? "marey.Stopwatch" : "marey.range",
                                wrapper->function);
}

/* Pickled like functions: by module and qualified name, which identify this object. */
EXT_FUNCTION(wrapper_reduce, PyObject_GetAttrString(self, "__qualname__"))

static int wrapper_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct wrapper *wrapper = (struct wrapper *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(wrapper->function);
    Py_VISIT((PyObject *)wrapper->range);
    Py_VISIT(wrapper->dict);
    return 0;
}

/* The function closes cycles (through its globals or a class); a cleared wrapper must still be safe to call. */
static int wrapper_clear(PyObject *self)
{
    struct wrapper *wrapper = (struct wrapper *)self;
    Py_CLEAR(wrapper->dict);
    Py_SETREF(wrapper->function, Py_NewRef(Py_None)); /* calling it then is a TypeError, not a crash */
    return 0;
}

static void wrapper_dealloc(PyObject *self)
{
    struct wrapper *wrapper = (struct wrapper *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (wrapper->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(wrapper->function);
    Py_XDECREF((PyObject *)wrapper->range);
    Py_XDECREF(wrapper->dict);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef wrapper_methods[] = {
    {"__reduce__", wrapper_reduce, METH_NOARGS, "Pickle by qualified name."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef wrapper_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct wrapper, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct wrapper, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct wrapper, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef wrapper_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
EXT_TYPE(native_wrapper_spec, "marey._native.Wrapper", struct wrapper,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR,
         {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, wrapper_get}, {Py_tp_repr, wrapper_repr},
         {Py_tp_methods, wrapper_methods}, {Py_tp_members, wrapper_members},
         {Py_tp_getset, wrapper_getset}, {Py_tp_traverse, wrapper_traverse},
         {Py_tp_clear, wrapper_clear}, {Py_tp_dealloc, wrapper_dealloc})

static PyObject *wrap_plain(struct native_range *range, PyObject *function)
{
    const struct native_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)range));
    struct wrapper *wrapper = native_new(state, NATIVE_WRAPPER);
    if (wrapper == NULL)
        return NULL;
    wrapper->vectorcall = is_measurement(range) ? wrapper_call_measured : wrapper_call;
    wrapper->function = Py_NewRef(function);
    wrapper->range = (struct native_range *)Py_NewRef((PyObject *)range);
    /* Makes it look like the function: name, docstring, module, annotations, __wrapped__. */
    PyObject *dressed = ext_call("functools", "update_wrapper", "OO", wrapper, function);
    Py_DECREF(wrapper);
    return dressed; /* the wrapper itself */
}

/* The function of marey/_resume.py that wraps functions with these code flags; NULL for a plain function. */
static const char *resume_wrapper(int flags)
{
    if (flags & CO_ASYNC_GENERATOR)
        return "wrap_async_generator";
    if (flags & CO_COROUTINE)
        return "wrap_coroutine";
    if (flags & CO_GENERATOR)
        return "wrap_generator";
    return NULL;
}

static PyObject *wrap_function(struct native_range *range, PyObject *function)
{
    const int flags =
        PyFunction_Check(function) ? ((PyCodeObject *)PyFunction_GET_CODE(function))->co_flags : 0;
    const char *by = resume_wrapper(flags);
    if (by == NULL)
        return wrap_plain(range, function);
    if (is_measurement(range) && (flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)))
        return PyErr_Format(
            PyExc_TypeError,
            "coroutines cannot be measured as a whole; decorate with marey.range, or measure the "
            "code between two awaits");
    return ext_call("marey._resume", by, "OO", (PyObject *)range, function);
}

/* A classmethod or staticmethod: wraps the inner function, and creates a new descriptor around it. */
static PyObject *wrap_method_object(struct native_range *range, PyObject *method)
{
    PyObject *function EXT_OWNED = PyObject_GetAttrString(method, "__func__");
    PyObject *wrapped EXT_OWNED = function != NULL ? native_decorate(range, function) : NULL;
    PyObject *made =
        wrapped != NULL ? PyObject_CallOneArg((PyObject *)Py_TYPE(method), wrapped) : NULL;
    return made;
}

PyObject *native_decorate(struct native_range *range, PyObject *function)
{
    if (PyObject_TypeCheck(function, &PyStaticMethod_Type) ||
        PyObject_TypeCheck(function, &PyClassMethod_Type))
        return wrap_method_object(range, function);
    if (PyType_Check(function))
        return PyErr_Format(
            PyExc_TypeError, "a range decorates functions; decorate a method of class %.200s instead",
            ((PyTypeObject *)function)->tp_name);
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "a range decorates functions, not %.200s",
                            Py_TYPE(function)->tp_name);
    return wrap_function(range, function);
}

PyObject *native_decorate_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct native_range *const range = (struct native_range *)self;
    if (PyTuple_GET_SIZE(args) == 1 && (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0))
        return native_decorate(range, PyTuple_GET_ITEM(args, 0));
    return PyErr_Format(PyExc_TypeError, "a %s decorates one function",
                        is_measurement(range) ? "measurement" : "range");
}
