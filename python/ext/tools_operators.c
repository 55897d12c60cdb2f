/*
 * tools_operators.c: operators() for Python: kymo/operators.h over a trace of torch.profiler.
 */
#include "tools.h"

#include <kymo/operators.h>

#define CAPSULE "kymo._tools.operators"

static void destroy_operators(PyObject *capsule)
{
    kymo_operators_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
    kymo_torch_trace_close(PyCapsule_GetContext(capsule));
}

/* Read, add up. Without the lock of the interpreter. */
static kymo_status add_up(const char *path, const struct kymo_operators_options *options,
                          kymo_torch_trace **trace, kymo_operators **operators)
{
    KYMO_TRY(kymo_torch_trace_open(path, NULL, trace));
    const kymo_status status = kymo_operators_create(*trace, options, operators);
    if (status != KYMO_OK)
        kymo_torch_trace_close(*trace);
    return status;
}

static PyObject *table_of(const struct tools_state *state, kymo_torch_trace *trace,
                          kymo_operators *operators)
{
    PyObject *owner = PyCapsule_New(operators, CAPSULE, destroy_operators);
    if (owner == NULL) {
        kymo_operators_destroy(operators);
        kymo_torch_trace_close(trace);
        return NULL;
    }
    PyCapsule_SetContext(owner, trace);
    PyObject *table = tools_table_create(state, kymo_operators_table(operators), owner);
    Py_DECREF(owner); /* the table keeps it */
    return table;
}

PyObject *tools_operators(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct kymo_operators_options options = {0};
    PyObject *path = NULL;
    kymo_torch_trace *trace = NULL;
    kymo_operators *operators = NULL;
    int depth;
    if (!PyArg_ParseTuple(args, "O&zpi:operators", PyUnicode_FSConverter, &path, &options.sort,
                          &options.by_name_alone, &depth))
        return NULL;
    options.stack_depth = depth > 0 ? depth : -1;
    kymo_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = add_up(PyBytes_AS_STRING(path), &options, &trace, &operators);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    return status == KYMO_OK ? table_of(state, trace, operators) : tools_raise(state, status);
}
