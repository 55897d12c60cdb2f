/*
 * native_torch.c: operators of PyTorch as ranges, torch_observer.c. marey/_operators.py makes it comfortable.
 */
#include "native.h"

#include "torch_abi.h"

static PyObject *torch_open(PyObject *module, PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "s:torch_open", &path))
        return NULL;
    const char *const why = torch_library_open(path);
    if (why == NULL)
        Py_RETURN_NONE;
    PyErr_SetString(native_state_of(module)->error, why);
    return NULL;
}

static int is_open(PyObject *module)
{
    if (torch_api.add != NULL)
        return 1;
    PyErr_SetString(native_state_of(module)->error, "torch_open() comes first");
    return 0;
}

static PyObject *torch_learn(PyObject *module, PyObject *args)
{
    int phase;
    if (!PyArg_ParseTuple(args, "i:torch_learn", &phase) || !is_open(module))
        return NULL;
    return PyLong_FromLongLong(torch_layout_learn(phase));
}

static PyObject *torch_operators(PyObject *module, PyObject *args)
{
    int is_on, with_shapes, with_sequence;
    if (!PyArg_ParseTuple(args, "ppp:torch_operators", &is_on, &with_shapes, &with_sequence) ||
        !is_open(module))
        return NULL;
    if (is_on) {
        torch_layout.sequence =
            with_sequence && torch_layout.inputs > 0 ? torch_layout.inputs - 1 : 0;
        torch_observer_start(with_shapes);
    } else {
        torch_observer_stop();
    }
    return PyBool_FromLong(torch_layout.inputs != 0);
}

PyMethodDef native_torch_functions[] = {
    {"torch_open", torch_open, METH_VARARGS, NULL},
    {"torch_learn", torch_learn, METH_VARARGS, NULL},
    {"torch_operators", torch_operators, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
