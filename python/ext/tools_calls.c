/*
 * tools_calls.c: tables of marey/calls_report.h.
 */
#include "tools.h"

#include <marey/calls_report.h>

#define CAPSULE "marey._tools.calls"

static void destroy_report(PyObject *capsule)
{
    marey_calls_report_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *tools_calls_tables(const struct tools_state *state, struct marey_calls_report *report)
{
    static const char *const names[] = {"functions", "signatures", "callers", "callees", "paths",
                                        "shapes",    "threads",    "totals",  "notes"};
    PyObject *owner = PyCapsule_New(report, CAPSULE, destroy_report);
    if (owner == NULL) {
        marey_calls_report_destroy(report);
        return NULL;
    }
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table =
            tools_table_create(state, marey_calls_report_table(report, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    Py_DECREF(owner);
    return tables;
}
