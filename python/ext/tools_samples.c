/*
 * tools_samples.c: tables of marey/samples_report.h, and which samples count.
 */
#include "tools.h"

#include <marey/samples_report.h>

#define CAPSULE "marey._tools.samples"

int tools_samples_filter(PyObject *chosen, struct marey_samples_filter *filter)
{
    if (!PyTuple_Check(chosen)) {
        PyErr_SetString(PyExc_TypeError, "what chooses samples is no tuple");
        return -1;
    }
    return PyArg_ParseTuple(chosen, "zpzzzzzzzp:samples", &filter->mode, &filter->idle,
                            &filter->range, &filter->iterations, &filter->epochs, &filter->phase,
                            &filter->thread, &filter->rank, &filter->process, &filter->startup)
               ? 0
               : -1;
}

static void destroy_report(PyObject *capsule)
{
    marey_samples_report_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *tools_samples_tables(const struct tools_state *state, struct marey_samples_report *report)
{
    static const char *const names[] = {
        "functions", "lines", "files", "modules", "threads", "processes", "ranks",  "stacks",
        "contacts",  "waits", "gil",   "audit",   "totals",  "notes",     "leaves", "leaf_paths"};
    PyObject *owner = PyCapsule_New(report, CAPSULE, destroy_report);
    if (owner == NULL) {
        marey_samples_report_destroy(report);
        return NULL;
    }
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table =
            tools_table_create(state, marey_samples_report_table(report, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    Py_DECREF(owner);
    return tables;
}
