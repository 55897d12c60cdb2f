/*
 * tools_operators.c: operators() for Python: marey/operators.h over a trace of torch.profiler.
 */
#include "tools.h"

#include <marey/operators.h>

#define CAPSULE "marey._tools.operators"

static void destroy_operators(PyObject *capsule)
{
    marey_operators_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
    marey_torch_trace_close(PyCapsule_GetContext(capsule));
}

/* Read, add up. Without the lock of the interpreter. */
static marey_status add_up(const char *path, const struct marey_operators_options *options,
                           marey_torch_trace **trace, marey_operators **operators)
{
    MAREY_TRY(marey_torch_trace_open(path, NULL, trace));
    const marey_status status = marey_operators_create(*trace, options, operators);
    if (status != MAREY_OK)
        marey_torch_trace_close(*trace);
    return status;
}

static PyObject *table_of(const struct tools_state *state, marey_torch_trace *trace,
                          marey_operators *operators)
{
    PyObject *owner = PyCapsule_New(operators, CAPSULE, destroy_operators);
    if (owner == NULL) {
        marey_operators_destroy(operators);
        marey_torch_trace_close(trace);
        return NULL;
    }
    PyCapsule_SetContext(owner, trace);
    PyObject *table = tools_table_create(state, marey_operators_table(operators), owner);
    Py_DECREF(owner); /* the table keeps it */
    return table;
}

PyObject *tools_operators(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_operators_options options = {0};
    PyObject *path = NULL;
    marey_torch_trace *trace = NULL;
    marey_operators *operators = NULL;
    int depth;
    if (!PyArg_ParseTuple(args, "O&zpi:operators", PyUnicode_FSConverter, &path, &options.sort,
                          &options.by_name_alone, &depth))
        return NULL;
    options.stack_depth = depth > 0 ? depth : -1;
    marey_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = add_up(PyBytes_AS_STRING(path), &options, &trace, &operators);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    return status == MAREY_OK ? table_of(state, trace, operators) : tools_raise(state, status);
}
