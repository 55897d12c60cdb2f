/*
 * native_handles.c: ranges by handle, for marey.numba_nvtx. Compiled code gets the addresses of libmarey's own functions and
 * calls those; plain Python comes this way.
 */
#include "native.h"

#include <marey/nvtx.h>

static PyObject *handle_register(PyObject *Py_UNUSED(module), PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a name is a str, not %.200s", Py_TYPE(name)->tp_name);
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass");
    if (bytes == NULL)
        return NULL;
    const uint64_t handle =
        marey_nvtx_register(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return PyLong_FromUnsignedLongLong(handle);
}

static PyObject *handle_push(PyObject *Py_UNUSED(module), PyObject *number)
{
    const unsigned long long handle = PyLong_AsUnsignedLongLong(number);
    if (handle == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    marey_nvtx_push_handle(handle);
    Py_RETURN_NONE;
}

static PyObject *handle_pop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    marey_nvtx_pop_handle();
    Py_RETURN_NONE;
}

/* What a compiler binds its calls to. */
static PyObject *handle_addresses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue(
        "{sKsK}", "marey_nvtx_push_handle", (unsigned long long)(uintptr_t)marey_nvtx_push_handle,
        "marey_nvtx_pop_handle", (unsigned long long)(uintptr_t)marey_nvtx_pop_handle);
}

PyMethodDef native_handle_functions[] = {
    {"nvtx_register", handle_register, METH_O,
     "nvtx_register($module, name, /)\n--\n\nThe handle of a name, the same in every process."},
    {"nvtx_push_handle", handle_push, METH_O,
     "nvtx_push_handle($module, handle, /)\n--\n\nBegin a range by handle."},
    {"nvtx_pop_handle", handle_pop, METH_NOARGS,
     "nvtx_pop_handle($module, /)\n--\n\nEnd what was begun last on this thread."},
    {"nvtx_addresses", handle_addresses, METH_NOARGS,
     "nvtx_addresses($module, /)\n--\n\nThe addresses of the C functions, by name."},
    {NULL, NULL, 0, NULL},
};
