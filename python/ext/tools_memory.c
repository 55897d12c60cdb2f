/*
 * tools_memory.c: tables of marey/memory_report.h, of recordings and of files of torch.
 */
#include "tools.h"

#include <marey/memory_report.h>

#define CAPSULE "marey._tools.memory"

static void destroy_report(PyObject *capsule)
{
    marey_memory_report_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *tools_memory_tables(const struct tools_state *state, struct marey_memory_report *report)
{
    static const char *const names[] = {"pools",  "phases", "categories",    "modules",
                                        "stacks", "growth", "fragmentation", "resident",
                                        "live",   "notes"};
    PyObject *owner = PyCapsule_New(report, CAPSULE, destroy_report);
    if (owner == NULL) {
        marey_memory_report_destroy(report);
        return NULL;
    }
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table =
            tools_table_create(state, marey_memory_report_table(report, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    Py_DECREF(owner);
    return tables;
}

PyObject *tools_memory(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_memory_report_options options = {0};
    marey_memory_report *report = NULL;
    PyObject *path = NULL;
    if (!PyArg_ParseTuple(args, "O&I:memory", PyUnicode_FSConverter, &path, &options.n_stacks))
        return NULL;
    const char *const file = PyBytes_AS_STRING(path);
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_memory_report_files(&file, 1, &options, &report);
    PyEval_RestoreThread(thread);
    Py_DECREF(path);
    return status == MAREY_OK ? tools_memory_tables(state, report) : tools_raise(state, status);
}
