/*
 * native_async.c: `async with marey.range(name):`, and async ranges for the coroutine wrappers in Python.
 *
 * Between __aenter__ and __aexit__ other tasks run, so the range is an async one, on no thread's stack. The Range
 * object is shared by all tasks and cannot hold the handle. A ContextVar can: each task has its own context. The
 * variable holds the task's open ranges as nested tuples
 *
 *     (Range, handle, depth, rest)        rest: such a tuple again, or None
 *
 * which are immutable, because a new task starts with its parent's.
 */
#include "native.h"

/* A chain of tasks, each started inside the previous one's range, would grow the list without limit. */
enum { MAX_DEPTH = 256 };

static PyObject *entry_create(PyObject *range, marey_async handle, PyObject *rest)
{
    long depth = rest != Py_None ? PyLong_AsLong(PyTuple_GET_ITEM(rest, 2)) + 1 : 0;
    if (depth >= MAX_DEPTH) {
        depth = 0;
        rest = Py_None;
    }
    return Py_BuildValue("(OKlO)", range, (unsigned long long)handle, depth, rest);
}

/* The open ranges of this task: a new reference, None if there are none. */
static PyObject *open_here(const struct native_state *state)
{
    PyObject *list = NULL;
    return PyContextVar_Get(state->handles, Py_None, &list) == 0 ? list : NULL;
}

static int set_open_here(const struct native_state *state, PyObject *list)
{
    PyObject *token EXT_OWNED = PyContextVar_Set(state->handles, list);
    return token != NULL ? 0 : -1;
}

/* `list` without its first entry for `range`, whose handle is stored in `handle`. A new reference. */
static PyObject *list_without(PyObject *list, PyObject *range, marey_async *handle)
{
    if (list == Py_None)
        return Py_NewRef(list);
    PyObject *rest = PyTuple_GET_ITEM(list, 3);
    if (PyTuple_GET_ITEM(list, 0) == range) {
        *handle = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(list, 1));
        return Py_NewRef(rest);
    }
    PyObject *shorter EXT_OWNED = list_without(rest, range, handle);
    if (shorter == NULL)
        return NULL;
    const marey_async own = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(list, 1));
    return entry_create(PyTuple_GET_ITEM(list, 0), own, shorter);
}

PyObject *native_aenter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const struct native_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *rest EXT_OWNED = open_here(state);
    if (rest == NULL)
        return NULL;
    /* While off the handle is 0 but is still stored, so that the exit finds this entry rather than an outer one. */
    PyObject *entry EXT_OWNED =
        entry_create(self, marey_async_begin(((struct native_range *)self)->id), rest);
    const int rc = entry != NULL ? set_open_here(state, entry) : -1;
    return rc == 0 ? Py_NewRef(state->ready) : NULL;
}

PyObject *native_aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(nargs))
{
    const struct native_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *list EXT_OWNED = open_here(state);
    if (list == NULL)
        return NULL;
    marey_async handle = 0;
    PyObject *shorter EXT_OWNED = list_without(list, self, &handle);
    if (shorter == NULL)
        return NULL;
    marey_async_end(handle);
    const int rc = set_open_here(state, shorter);
    return rc == 0 ? Py_NewRef(state->ready) : NULL;
}

/* The awaitable that both return: already done, and its own iterator. */
static PyObject *ready_self(PyObject *self)
{
    return Py_NewRef(self);
}

static PyObject *ready_next(PyObject *Py_UNUSED(self))
{
    return NULL; /* without an exception: StopIteration with value None */
}

EXT_TYPE(native_ready_spec, "marey._native.Ready", PyObject, Py_TPFLAGS_DEFAULT,
         {Py_am_await, ready_self}, {Py_tp_iter, ready_self}, {Py_tp_iternext, ready_next})

/* A handle; 0 while off. */
static PyObject *async_begin(PyObject *module, PyObject *range)
{
    if (!PyObject_TypeCheck(range, native_state_of(module)->types[NATIVE_RANGE]))
        return PyErr_Format(PyExc_TypeError, "a Range is needed, not %.200s",
                            Py_TYPE(range)->tp_name);
    return PyLong_FromUnsignedLongLong(marey_async_begin(((struct native_range *)range)->id));
}

static PyObject *async_end(PyObject *Py_UNUSED(module), PyObject *handle)
{
    const unsigned long long value = PyLong_AsUnsignedLongLong(handle);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    marey_async_end(value);
    Py_RETURN_NONE;
}

PyMethodDef native_async_functions[] = {
    {"async_begin", async_begin, METH_O, NULL},
    {"async_end", async_end, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
