/*
 * tools.h: shared by the files of the extension `_tools`. marey/_tools.pyi has the signatures.
 *
 * The extension is the reader for Python: a Recording opens logs and makes tables, a Table provides its columns. It is
 * loaded by the first marey.load(), with libmarey-tools, so that a program that only records does not load it.
 *
 *     tools_module.c      the module, its exception, its types
 *     tools_recording.c   Recording: open, tables, report, export, page
 *     tools_report.c      Report: tables, notes, cost and text of an analysis; analyses()
 *     tools_table.c       Table: columns as lists, text, CSV, JSON, HTML
 *     tools_csv.c         make_table(): rows as a table; append_csv(): appends rows to a CSV file
 *     tools_stopwatch.c   the stopwatch's results as tables, of this process and of all ranks
 *     tools_dumps.c       Dumps: steps and values of dumps; DumpedTensor: their numbers as a buffer
 *     tools_others.c      doctor(), comparisons, imports; the registries of exporters and importers
 */
#ifndef MAREY_PYTHON_TOOLS_H
#define MAREY_PYTHON_TOOLS_H

#include "ext.h"

#include <marey/report.h>

enum tools_type {
    TOOLS_RECORDING,
    TOOLS_TABLE,
    TOOLS_REPORT,
    TOOLS_DUMPS,
    TOOLS_DUMPED,
    TOOLS_N_TYPES
};
extern PyType_Spec tools_recording_spec, tools_table_spec, tools_report_spec, tools_dumps_spec,
    tools_dumped_spec;

struct tools_state {
    PyObject *error; /* marey.MareyError of _native */
    PyTypeObject *types[TOOLS_N_TYPES];
};

/* The module's state, from an instance of one of its types. */
static inline const struct tools_state *tools_state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* A new instance; NULL and an exception on failure. */
static inline void *tools_new(const struct tools_state *state, enum tools_type type)
{
    return state->types[type]->tp_alloc(state->types[type], 0);
}

/* The functions of each file, combined by tools_module.c. */
extern PyMethodDef tools_report_functions[], tools_table_functions[], tools_csv_functions[],
    tools_stopwatch_functions[], tools_other_functions[];

/* A Table over `table`, which is lent by `owner`; the Table keeps `owner` alive. */
PyObject *tools_table_create(const struct tools_state *state, marey_table *table, PyObject *owner);

/* A Table that takes ownership of `table`. */
PyObject *tools_table_own(const struct tools_state *state, marey_table *table);

/* "ns", "bytes", ...; "" for none. */
const char *tools_unit_name(enum marey_unit unit);

/* A Report that takes ownership of `report`. */
PyObject *tools_report_create(const struct tools_state *state, marey_report *report);
/* A tuple of str as a NULL-terminated list, to be freed; borrows the strings. NULL with an exception on failure. */
const char **tools_settings(PyObject *tuple);

/* Adds export_formats and import_formats. Returns -1 with an exception. */
int tools_add_formats(PyObject *module);

/*
 * Excludes other threads from an object with this `busy` flag; -1 and an exception if one is reading "this recording"
 * (`what`). Leave takes the status of the call in between, and also returns -1 with an exception on failure.
 */
int tools_enter(PyObject *self, int *busy, const char *what);
int tools_leave(PyObject *self, int *busy, marey_status status);

/* Raises the exception for a status: ValueError for EINVAL, else MareyError with name and message. Returns NULL. */
PyObject *tools_raise(const struct tools_state *state, marey_status status);
/* None, or raises the exception for a failure. */
PyObject *tools_result(const struct tools_state *state, marey_status status);

/* Bytes of a recording as a str: UTF-8, with other bytes in readable form. NULL gives None. */
PyObject *tools_text(const char *data, size_t len);

/* A memory stream that a presenter writes to. */
struct tools_sink {
    FILE *stream;
    char *data;
    size_t len;
};
int tools_sink_open(struct tools_sink *sink);
/* Closes it and returns its content as a str, or raises for `status`. */
PyObject *tools_sink_finish(struct tools_sink *sink, const struct tools_state *state,
                            marey_status status);

#endif
