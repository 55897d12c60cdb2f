/*
 * native_torch.c: PyTorch operators as ranges, torch_observer.c. marey/_operators.py is the public interface.
 */
#include "native.h"

#include "torch_abi.h"

#include <dlfcn.h>
#include <string.h>

/* ---- PyTorch's functions by their C++ names ---- */

struct torch_api torch_api;

bool torch_find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol); /* ISO C has no way from an object to a function */
    return symbol != NULL;
}

/* Looks up the functions in the already loaded library at `path`. Returns NULL, or a message. */
static const char *library_open(const char *path)
{
#if defined(__x86_64__)
    void *const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return "operators cannot be recorded: libtorch_cpu.so of this PyTorch is not loaded; "
               "import torch first";
    struct torch_api found = {0};
    const bool is_whole =
        torch_find(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", &found.add) &&
        torch_find(library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
                   &found.add_here) &&
        torch_find(library, "_ZN2at14removeCallbackEm", &found.remove) &&
        torch_find(library, "_ZNK2at14RecordFunction4nameEv", &found.name) &&
        torch_find(library, "_ZNK2at14RecordFunction10num_inputsEv", &found.n_inputs) &&
        torch_find(library, "_ZNK2at14RecordFunction7isAsyncEv", &found.is_async) &&
        torch_find(library, "_ZN3c1019UndefinedTensorImpl10_singletonE", &found.undefined);
    if (!is_whole)
        return "operators cannot be recorded: this PyTorch does not have the functions that marey "
               "knows; use engine=\"torch\"";
    torch_api = found;
    return NULL;
#else
    (void)path;
    return "operators can be recorded on x86-64 only; use engine=\"torch\"";
#endif
}

/* ---- for Python ---- */

static PyObject *torch_open(PyObject *module, PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "s:torch_open", &path))
        return NULL;
    const char *const why = library_open(path);
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
