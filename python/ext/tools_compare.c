/* tools_compare.c: pairs of times compared, for Python. */
#include "tools.h"

#include <marey/compare.h>

static double *to_doubles(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    double *values = PyMem_Malloc((size_t)(n + 1) * sizeof *values);
    if (values == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        values[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
        if (values[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(values);
            return NULL;
        }
    }
    return values;
}

PyObject *tools_compare_pairs(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_compare_options options = {0};
    struct marey_change change;
    PyObject *lists[2];
    if (!PyArg_ParseTuple(args, "O!O!d:compare_pairs", &PyList_Type, &lists[0], &PyList_Type,
                          &lists[1], &options.smallest_percent))
        return NULL;
    if (PyList_GET_SIZE(lists[0]) != PyList_GET_SIZE(lists[1])) {
        PyErr_SetString(PyExc_ValueError, "both lists need as many times");
        return NULL;
    }
    double *a = to_doubles(lists[0]), *b = a != NULL ? to_doubles(lists[1]) : NULL;
    PyObject *result = NULL;
    if (b != NULL) {
        const marey_status status =
            marey_compare_pairs(a, b, (size_t)PyList_GET_SIZE(lists[0]), &options, &change);
        result = status != MAREY_OK
                     ? tools_raise(state, status)
                     : Py_BuildValue("(sddddds)", marey_verdict_name(change.verdict),
                                     change.percent, change.low_percent, change.high_percent,
                                     change.a, change.b, change.reason);
    }
    PyMem_Free(a);
    PyMem_Free(b);
    return result;
}
