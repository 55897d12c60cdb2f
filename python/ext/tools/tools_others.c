/* tools_others.c: single functions, and the registries of exporters and importers as tuples of dicts. */
#include "tools/tools.h"

#include <marey/compare.h>
#include <marey/diff.h>
#include <marey/doctor.h>
#include <marey/import.h>

/* ---- two lists of times ---- */

static double *to_doubles(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    double *values = PyMem_Malloc((size_t)(n + 1) * sizeof *values);
    if (values == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        values[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
    return values;
}

/* verdict, percent, low, high, medians, reason */
static PyObject *compare_pairs(PyObject *module, PyObject *args)
{
    struct marey_compare_options options = {0};
    struct marey_change change;
    PyObject *lists[2];
    if (!PyArg_ParseTuple(args, "O!O!d:compare_pairs", &PyList_Type, &lists[0], &PyList_Type,
                          &lists[1], &options.smallest_percent))
        return NULL;
    const Py_ssize_t n = PyList_GET_SIZE(lists[0]);
    if (PyList_GET_SIZE(lists[1]) != n)
        return PyErr_Format(PyExc_ValueError, "both lists need as many times");
    double *a EXT_FREED = to_doubles(lists[0]);
    double *b EXT_FREED = PyErr_Occurred() ? NULL : to_doubles(lists[1]);
    if (PyErr_Occurred())
        return NULL;
    const marey_status status = marey_compare_pairs(a, b, (size_t)n, &options, &change);
    if (status != MAREY_OK)
        return tools_raise(PyModule_GetState(module), status);
    return Py_BuildValue("(sddddds)", marey_verdict_name(change.verdict), change.percent,
                         change.low_percent, change.high_percent, change.a, change.b, change.reason);
}

/* ---- doctor ---- */

/* The findings as a Table and as text, and whether a recording could be made. */
static PyObject *doctor(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_doctor_options options = {0};
    struct tools_sink sink;
    marey_table *findings = NULL;
    PyObject *path EXT_OWNED = NULL;
    int measure;
    if (!PyArg_ParseTuple(args, "O&pI:doctor", PyUnicode_FSConverter, &path, &measure,
                          &options.wait_ms))
        return NULL;
    options.path = PyBytes_AS_STRING(path);
    options.measure = (uint32_t)measure;
    const marey_status status = EXT_STATUS_UNLOCKED(marey_doctor(&options, &findings));
    if (status != MAREY_OK)
        return tools_raise(state, status);
    PyObject *table = tools_table_own(state, findings), *text = NULL;
    if (table != NULL && tools_sink_open(&sink) == 0)
        text = tools_sink_finish(&sink, state, marey_doctor_text(findings, NULL, sink.stream));
    if (text != NULL)
        return Py_BuildValue("(NNN)", table, text,
                             PyBool_FromLong(marey_doctor_can_record(findings)));
    Py_XDECREF(table);
    return NULL;
}

/* ---- pending values of the dumper against an earlier dump ---- */

/* As text; None if nothing differs. */
static PyObject *diff_pending(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *path EXT_OWNED = NULL;
    PyObject *result = NULL;
    unsigned long long step;
    int tree, allow_missing, allow_extra, allow_dtype, rank;
    struct marey_diff_pending_options options = {0};
    if (!PyArg_ParseTuple(args, "O&KidIpppi:diff_pending", PyUnicode_FSConverter, &path, &step,
                          &tree, &options.eps, &options.n_errors, &allow_missing, &allow_extra,
                          &allow_dtype, &rank))
        return NULL;
    options.tree = tree != 0 ? MAREY_DUMP_GRADIENTS : MAREY_DUMP_TENSORS;
    options.allow_missing = (uint32_t)allow_missing;
    options.allow_extra = (uint32_t)allow_extra;
    options.allow_dtype = (uint32_t)allow_dtype;
    options.has_rank = rank >= 0;
    options.rank = rank >= 0 ? (uint64_t)rank : 0;
    struct tools_sink sink;
    marey_diff *diff = NULL;
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_diff_pending(PyBytes_AS_STRING(path), step, &options, &diff));
    if (status == MAREY_EIO) { /* a missing dump raises FileNotFoundError */
        PyErr_SetString(PyExc_FileNotFoundError, marey_last_error());
        return NULL;
    }
    if (status != MAREY_OK)
        return tools_raise(state, status);
    if (marey_diff_is_same(diff))
        result = Py_NewRef(Py_None);
    else if (tools_sink_open(&sink) == 0)
        result = tools_sink_finish(&sink, state, marey_diff_pending_text(diff, sink.stream));
    marey_diff_close(diff);
    return result;
}

/* ---- import ---- */

static PyObject *import_files(const struct tools_state *state, const char *const *paths, size_t n,
                              const char *into, const char *format)
{
    const struct marey_import_options wants = {.from = format, .keep_arguments = 1};
    struct marey_import_result result;
    const marey_status status = EXT_STATUS_UNLOCKED(marey_import(paths, n, into, &wants, &result));
    return status != MAREY_OK ? tools_raise(state, status)
                              : Py_BuildValue("KKKs", (unsigned long long)result.n_files,
                                              (unsigned long long)result.n_events,
                                              (unsigned long long)result.n_bytes, result.format);
}

/* The number of files, events and bytes, and the format. */
static PyObject *import_trace(PyObject *module, PyObject *args)
{
    PyObject *into EXT_OWNED = NULL;
    PyObject *paths;
    const char *format;
    if (!PyArg_ParseTuple(args, "O!O&z:import_trace", &PyTuple_Type, &paths, PyUnicode_FSConverter,
                          &into, &format))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(paths);
    PyObject *encoded EXT_OWNED = PyTuple_New(n);
    for (Py_ssize_t i = 0; encoded != NULL && i < n; i++) {
        PyObject *path = NULL;
        if (PyUnicode_FSConverter(PyTuple_GET_ITEM(paths, i), &path))
            PyTuple_SET_ITEM(encoded, i, path);
        else
            Py_CLEAR(encoded);
    }
    const char **texts EXT_FREED = encoded != NULL ? tools_settings(encoded) : NULL;
    return texts != NULL ? import_files(PyModule_GetState(module), texts, (size_t)n,
                                        PyBytes_AS_STRING(into), format)
                         : NULL;
}

PyMethodDef tools_other_functions[] = {
    {"compare_pairs", compare_pairs, METH_VARARGS, NULL},
    {"diff_pending", diff_pending, METH_VARARGS, NULL},
    {"doctor", doctor, METH_VARARGS, NULL},
    {"import_trace", import_trace, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- formats ---- */

static const char *const contents[] = {
    [MAREY_EXPORT_EVENTS] = "events",
    [MAREY_EXPORT_PATHS] = "paths",
    [MAREY_EXPORT_FUNCTIONS] = "functions",
};

static PyObject *takes(uint32_t bits)
{
    static const char *const names[] = {"filter", "by", "baseline", "window", "startup"};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < sizeof names / sizeof names[0]; i++)
        if ((bits & 1u << i) != 0)
            list = ext_append(list, PyUnicode_FromString(names[i]));
    return list;
}

static PyObject *export_format(size_t i)
{
    const struct marey_export_format *const format = marey_export_format_at(i);
    if (format == NULL)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:z,s:s,s:z,s:z,s:s,s:N}", "name", format->name,
                         "extensions", format->extensions, "brief", format->brief, "details",
                         format->details, "next", format->next, "missing", format->missing,
                         "leftovers", format->leftovers, "content", contents[format->content],
                         "takes", takes(format->takes));
}

static PyObject *import_format(size_t i)
{
    const struct marey_import_format *const format = marey_import_format_at(i);
    if (format == NULL)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s}", "name", format->name, "brief", format->brief,
                         "extensions", format->extensions);
}

static int add_list(PyObject *module, const char *name, PyObject *(*at)(size_t i))
{
    PyObject *list = PyList_New(0), *entry;
    for (size_t i = 0; list != NULL && (entry = at(i)) != NULL; i++)
        list = ext_append(list, entry);
    const int status = PyErr_Occurred() ? -1 : PyModule_AddObjectRef(module, name, list);
    Py_XDECREF(list);
    return status;
}

int tools_add_formats(PyObject *module)
{
    return add_list(module, "export_formats", export_format) < 0
               ? -1
               : add_list(module, "import_formats", import_format);
}
