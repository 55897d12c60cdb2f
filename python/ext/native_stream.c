/*
 * native_stream.c: which stream of the GPU torch works on, for times that the GPU notes.
 *
 * libmarey asks stream_hook() at both ends of a measurement, so it takes torch's short way: two functions that look up
 * a number each, make no object and start nothing. Without them, or where they raise (no GPU, another's module of that
 * name), the answer is left to libmarey, whose default stream is torch's as well.
 */
#include "native.h"

#include <marey/cuda.h>

/* Threads of the program may measure from C without the GIL; they are none of torch's Python. */
static int holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() != NULL;
#else
    return Py_IsInitialized() && PyGILState_Check();
#endif
}

/* A new reference, or NULL with or without an exception. */
static PyObject *torch_c(void)
{
    PyObject *name = PyUnicode_FromString("torch._C");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    return module;
}

static int ask_torch(void **stream)
{
    PyObject *torch = torch_c();
    PyObject *device = torch != NULL ? PyObject_CallMethod(torch, "_cuda_getDevice", NULL) : NULL;
    PyObject *number =
        device != NULL ? PyObject_CallMethod(torch, "_cuda_getCurrentRawStream", "O", device) : NULL;
    if (number != NULL)
        *stream = PyLong_AsVoidPtr(number);
    const int answer = number != NULL && !PyErr_Occurred() ? 1 : -1;
    Py_XDECREF(number);
    Py_XDECREF(device);
    Py_XDECREF(torch);
    return answer;
}

static int stream_hook(void **stream)
{
    if (!holds_gil())
        return -1;
    PyObject *type, *value, *traceback; /* of a block that failed, which is measured all the same */
    PyErr_Fetch(&type, &value, &traceback);
    const int answer = ask_torch(stream);
    PyErr_Restore(type, value, traceback);
    return answer;
}

void native_stream_make(void)
{
    marey_cuda_set_stream_hook(stream_hook);
}
