/*
 * tools.h: what the files of the extension `_tools` share.
 *
 * The extension gives Python the reader: a Recording opens logs and makes tables, a Table hands out its columns. It is
 * loaded on the first marey.load(), with libmarey-tools, so that a program that only records carries none of it.
 *
 *     tools_module.c      the module and its exception
 *     tools_recording.c   Recording: open, tables, report, export, page
 *     tools_report.c      Report: tables, notes, cost and text of an analysis; analyses()
 *     tools_table.c       Table: columns as lists, text, CSV, JSON, HTML
 *     tools_stopwatch.c   the stopwatch's results as tables, of this process and of all ranks
 *     tools_samples.c     which samples count, for exports
 *     tools_compare.c     compare_pairs(): two lists of times
 *     tools_formats.c     the registries of exporters and importers
 *     tools_import.c      import_trace(): files of other tools into a recording
 *     tools_pending.c     diff_pending(): what waits in the dumper against an earlier dump
 *     tools_dumps.c       Dumps: steps and values of dumps; DumpedTensor: their numbers as a buffer
 *     tools_doctor.c      doctor(): what can be measured here
 *     tools_csv.c         make_table(): rows as a table; append_csv(): rows into a file of CSV that grows
 */
#ifndef MAREY_PYTHON_TOOLS_H
#define MAREY_PYTHON_TOOLS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <marey/report.h>

struct tools_state {
    PyObject *error; /* marey.MareyError, the one of _native */
    PyTypeObject *recording_type;
    PyTypeObject *table_type, *report_type;
    PyTypeObject *dumps_type, *dumped_type;
};

PyTypeObject *tools_recording_type(PyObject *module);
PyTypeObject *tools_table_type(PyObject *module);
PyTypeObject *tools_report_type(PyObject *module);
PyTypeObject *tools_dumps_type(PyObject *module);
PyTypeObject *tools_dumped_type(PyObject *module);

/* A Table over `table`, which is lent by `owner`; the Table keeps that alive. */
PyObject *tools_table_create(const struct tools_state *state, marey_table *table, PyObject *owner);

/* A Table that takes `table`. */
PyObject *tools_table_own(const struct tools_state *state, marey_table *table);

/* "ns", "bytes", ...; "" for none. */
const char *tools_unit_name(enum marey_unit unit);

/* A Report, which takes `report`. */
PyObject *tools_report_create(const struct tools_state *state, marey_report *report);
PyObject *tools_report_files(PyObject *module, PyObject *args);
/* A tuple of str as a list with NULL after the last, to be freed; the tuple lends the strings. NULL with an exception. */
const char **tools_settings(PyObject *tuple);
/* What measuring cost, as a dict. */
PyObject *tools_cost(const struct marey_cost *cost);
/* analyses(): the registry, a dict for each analysis. */
PyObject *tools_analyses(PyObject *module, PyObject *unused);

/* Adds export_formats and import_formats. Returns -1 with an exception. */
int tools_add_formats(PyObject *module);
/* compare_pairs(a, b, smallest_percent): verdict, percent, low, high, medians, reason. */
PyObject *tools_compare_pairs(PyObject *module, PyObject *args);

struct marey_samples_filter;
/* Of a tuple (mode, idle, range, iterations, epochs, phase, thread, rank), which lends its texts. -1 with an exception. */
int tools_samples_filter(PyObject *chosen, struct marey_samples_filter *filter);

/* import_trace(paths, into, format): how many files, events and bytes, and the format. */
PyObject *tools_import_trace(PyObject *module, PyObject *args);

/* diff_pending(dir, step, tree, eps, n_errors, allow_missing, allow_extra, allow_dtype, rank): what differs, as text; None. */
PyObject *tools_diff_pending(PyObject *module, PyObject *args);

/* doctor(path, measure, wait_ms): the findings as a Table, as text, and whether a recording could be made. */
PyObject *tools_doctor(PyObject *module, PyObject *args);

/* A table of the stopwatch; results packed for another process; those of several merged, and tables of that. */
PyObject *tools_stopwatch_table(PyObject *module, PyObject *name);
PyObject *tools_stopwatch_pack(PyObject *module, PyObject *rank);
PyObject *tools_stopwatch_merge(PyObject *module, PyObject *packed);
PyObject *tools_stopwatch_merged_table(PyObject *module, PyObject *args);

/* make_table(name, columns, rows): a Table; columns are (name, kind[, title]), rows tuples. */
PyObject *tools_make_table(PyObject *module, PyObject *args);
/* append_csv(path, columns, rows): the rows as lines at the end of a file. */
PyObject *tools_append_csv(PyObject *module, PyObject *args);

/* json_tables(given): an object with the rows of each Table by its name. */
PyObject *tools_json_tables(PyObject *module, PyObject *given);

/* Raise what a status means: ValueError for EINVAL, else MareyError with name and sentence. Returns NULL. */
PyObject *tools_raise(const struct tools_state *state, marey_status status);

/* Bytes of a recording as a str: UTF-8, or with what is not UTF-8 kept readable. */
PyObject *tools_text(const char *data, size_t len);

/* A stream in memory that a presenter writes to. */
struct tools_sink {
    FILE *stream;
    char *data;
    size_t len;
};
int tools_sink_open(struct tools_sink *sink);
/* Close it and return what was written as a str, or raise `status`. */
PyObject *tools_sink_finish(struct tools_sink *sink, const struct tools_state *state,
                            marey_status status);

#endif
