/*
 * tools_report.c: a report of an analysis, and the registry of analyses. marey/_report.py is the public interface.
 */
#include "tools/tools.h"

#include <marey/page.h>

struct report {
    PyObject ob_base;
    marey_report *report;
};

static marey_report *report_of(PyObject *self)
{
    return ((struct report *)self)->report;
}

PyObject *tools_report_create(const struct tools_state *state, marey_report *report)
{
    struct report *self = tools_new(state, TOOLS_REPORT);
    if (self == NULL)
        marey_report_destroy(report);
    else
        self->report = report;
    return (PyObject *)self;
}

/* Borrowed; NULL for None. -1 with an exception for another type. */
static int get_section(const struct tools_state *state, PyObject *object, const marey_report **out)
{
    if (object != Py_None && !Py_IS_TYPE(object, state->types[TOOLS_REPORT]))
        return EXT_FAIL(PyExc_TypeError, "expected a Report or None");
    *out = object != Py_None ? report_of(object) : NULL;
    return 0;
}

static void report_finalize(PyObject *self)
{
    marey_report_destroy(report_of(self));
}

/* Its tables by name, with the value of "by" that selects each. */
static PyObject *report_tables(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const struct marey_analysis *const analysis = marey_report_analysis(report_of(self));
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < analysis->n_tables; i++) {
        marey_table *const table = marey_report_table_at(report_of(self), i);
        if (table != NULL)
            list = ext_append(list,
                              Py_BuildValue("szN", analysis->tables[i].name, analysis->tables[i].by,
                                            tools_table_create(tools_state_of(self), table, self)));
    }
    return list;
}

static PyObject *report_notes(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);
    const char *note;
    for (size_t i = 0; list != NULL && (note = marey_report_note(report_of(self), i)) != NULL; i++)
        list = ext_append(list, tools_text(note, strlen(note)));
    return list;
}

/* The overhead of measuring. */
static PyObject *report_cost(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct marey_cost cost;
    marey_report_cost(report_of(self), &cost);
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsK}", "events", (unsigned long long)cost.events, "in_program_ns",
        (unsigned long long)cost.in_program_ns, "flush_cpu_ns", (unsigned long long)cost.flush_cpu_ns,
        "log_bytes", (unsigned long long)cost.log_bytes, "program_ns",
        (unsigned long long)cost.program_ns, "lost_events", (unsigned long long)cost.lost_events,
        "lost_first_ns", (unsigned long long)cost.lost_first_ns, "lost_last_ns",
        (unsigned long long)cost.lost_last_ns, "low_ns", (unsigned long long)cost.low_ns, "high_ns",
        (unsigned long long)cost.high_ns);
}

/* write(format, table or None, limit, width, short, Report of a section or None) */
static PyObject *report_write(PyObject *self, PyObject *args)
{
    struct marey_write_options options = {0};
    const char *format;
    PyObject *section;
    struct tools_sink sink;
    if (!PyArg_ParseTuple(args, "szIIpO:write", &format, &options.table, &options.limit,
                          &options.text.width, &options.is_short, &section) ||
        get_section(tools_state_of(self), section, &options.section) < 0 ||
        tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, tools_state_of(self),
                             marey_report_write(report_of(self), format, &options, sink.stream));
}

/* page(fd, title or None) */
static PyObject *report_page(PyObject *self, PyObject *args)
{
    struct marey_write_options options = {0};
    int fd;
    if (!PyArg_ParseTuple(args, "iz:page", &fd, &options.title))
        return NULL;
    FILE *const out = fdopen(dup(fd), "wb");
    if (out == NULL)
        return PyErr_SetFromErrno(PyExc_OSError);
    const marey_status status = marey_report_write(report_of(self), "html", &options, out);
    fclose(out);
    return tools_result(tools_state_of(self), status);
}

/* ---- reports of paths ---- */

struct conversion {
    PyObject *call;        /* of (command, from, csv) */
    PyThreadState *thread; /* the saved thread state, on which the callback runs */
};

static marey_status convert(void *ctx, const char *command, const char *from, const char *csv)
{
    struct conversion *const conversion = ctx;
    PyEval_RestoreThread(conversion->thread);
    PyObject *const done = PyObject_CallFunction(conversion->call, "syy", command, from, csv);
    Py_XDECREF(done);
    conversion->thread = PyEval_SaveThread();
    return done != NULL ? MAREY_OK : MAREY_EIO;
}

/* report_files(analysis, paths, settings, groups, names, convert) */
static PyObject *report_files(PyObject *module, PyObject *args)
{
    const struct tools_state *const state = PyModule_GetState(module);
    const char *analysis, **lists[4] = {NULL};
    PyObject *tuples[4] = {NULL};
    struct conversion conversion = {.call = Py_None};
    marey_report *report = NULL;
    marey_status status = MAREY_OK;
    if (!PyArg_ParseTuple(args, "sO!O!|O!O!O:report_files", &analysis, &PyTuple_Type, &tuples[0],
                          &PyTuple_Type, &tuples[1], &PyTuple_Type, &tuples[2], &PyTuple_Type,
                          &tuples[3], &conversion.call))
        return NULL;
    int is_done = 1;
    for (size_t i = 0; is_done && i < 4; i++)
        if (i < 2 || (tuples[i] != NULL && PyTuple_GET_SIZE(tuples[i]) != 0))
            is_done = (lists[i] = tools_settings(tuples[i])) != NULL;
    if (is_done) {
        const struct marey_report_options options = {
            .settings = lists[1],
            .groups = lists[2],
            .names = lists[3],
            .convert = conversion.call != Py_None ? convert : NULL,
            .convert_ctx = &conversion,
        };
        conversion.thread = PyEval_SaveThread();
        status = marey_report_create_files(analysis, lists[0], (size_t)PyTuple_GET_SIZE(tuples[0]),
                                           &options, &report);
        PyEval_RestoreThread(conversion.thread);
    }
    for (size_t i = 0; i < 4; i++)
        PyMem_Free(lists[i]);
    if (!is_done || PyErr_Occurred())
        return NULL;
    return status == MAREY_OK ? tools_report_create(state, report) : tools_raise(state, status);
}

/* ---- the registry ---- */

static PyObject *settings_of(const struct marey_analysis *analysis)
{
    static const char *const kinds[] = {"flag", "count", "number", "text", "choice", "texts"};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < analysis->n_settings; i++) {
        const struct marey_setting *const setting = &analysis->settings[i];
        const char letter[] = {setting->letter, '\0'};
        list = ext_append(list, Py_BuildValue("sszss", setting->name, kinds[setting->kind],
                                              setting->value, setting->help, letter));
    }
    return list;
}

static PyObject *columns_of(const struct marey_table_definition *table)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < table->n_columns; i++)
        list = ext_append(list, Py_BuildValue("ss", table->columns[i].name,
                                              tools_unit_name(table->columns[i].unit)));
    return list;
}

static PyObject *tables_of(const struct marey_analysis *analysis)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < analysis->n_tables; i++) {
        const struct marey_table_definition *const table = &analysis->tables[i];
        list = ext_append(
            list, Py_BuildValue("szsN", table->name, table->by, table->help, columns_of(table)));
    }
    return list;
}

static PyObject *analyses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);
    const struct marey_analysis *analysis;
    for (size_t i = 0; list != NULL && (analysis = marey_analysis_at(i)) != NULL; i++)
        list =
            ext_append(list, Py_BuildValue("{ssssssszszsNsN}", "name", analysis->name, "help",
                                           analysis->help, "needs", analysis->needs, "csv",
                                           analysis->csv, "command", analysis->command, "settings",
                                           settings_of(analysis), "tables", tables_of(analysis)));
    return list;
}

PyMethodDef tools_report_functions[] = {
    {"analyses", analyses, METH_NOARGS, NULL},
    {"report_files", report_files, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- the type ---- */

static PyMethodDef report_methods[] = {
    {"tables", report_tables, METH_NOARGS, NULL}, {"notes", report_notes, METH_NOARGS, NULL},
    {"cost", report_cost, METH_NOARGS, NULL},     {"page", report_page, METH_VARARGS, NULL},
    {"write", report_write, METH_VARARGS, NULL},  {NULL, NULL, 0, NULL},
};
EXT_TYPE(tools_report_spec, "marey._tools.Report", struct report,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, {Py_tp_finalize, report_finalize},
         {Py_tp_methods, report_methods})
