/*
 * tools_module.c: the module `marey._tools`, and what its types have in common.
 */
#include "tools.h"

#include <marey/import.h>

PyObject *tools_raise(const struct tools_state *state, marey_status status)
{
    if (status == MAREY_EINVAL)
        PyErr_SetString(PyExc_ValueError, marey_last_error());
    else
        PyErr_Format(state->error, "%s: %s", marey_status_name(status), marey_last_error());
    return NULL;
}

PyObject *tools_text(const char *data, size_t len)
{
    /* What Python wrote comes back as it was, lone surrogates too; a C program's odd bytes show as escapes. */
    PyObject *text = PyUnicode_DecodeUTF8(data, (Py_ssize_t)len, "surrogatepass");
    if (text != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return text;
    PyErr_Clear();
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)len, "backslashreplace");
}

int tools_sink_open(struct tools_sink *sink)
{
    *sink = (struct tools_sink){0};
    sink->stream = open_memstream(&sink->data, &sink->len);
    if (sink->stream != NULL)
        return 0;
    PyErr_NoMemory();
    return -1;
}

PyObject *tools_sink_finish(struct tools_sink *sink, const struct tools_state *state,
                            marey_status status)
{
    PyObject *text = NULL;
    if (fclose(sink->stream) != 0)
        PyErr_NoMemory();
    else if (status != MAREY_OK)
        tools_raise(state, status);
    else
        text = tools_text(sink->data, sink->len);
    free(sink->data);
    return text;
}

static const char table_capsule[] = "marey.table";

static void table_free(PyObject *capsule)
{
    marey_table_destroy(PyCapsule_GetPointer(capsule, table_capsule));
}

PyObject *tools_table_own(const struct tools_state *state, marey_table *table)
{
    PyObject *owner = PyCapsule_New(table, table_capsule, table_free);
    if (owner == NULL) {
        marey_table_destroy(table);
        return NULL;
    }
    PyObject *made = tools_table_create(state, table, owner);
    Py_DECREF(owner); /* the Table keeps it, or there is none */
    return made;
}

static int add(PyObject *module, const char *name, PyTypeObject *type)
{
    return PyModule_AddObjectRef(module, name, (PyObject *)type);
}

static PyMethodDef tools_functions[] = {
    {"analyses", tools_analyses, METH_NOARGS,
     "analyses()\n--\n\nThe registry of analyses: name, settings and tables of each."},
    {"compare_pairs", tools_compare_pairs,
     METH_VARARGS, "compare_pairs(a, b, smallest_percent, /)\n--\n\nVerdict, change, its interval, medians, reason."},
    {"report_files", tools_report_files, METH_VARARGS,
     "report_files(analysis, paths, settings, groups=(), names=(), convert=None, /)\n--\n\n"
     "The report of paths, as marey_report_create_files() takes them."},
    {"import_trace", tools_import_trace, METH_VARARGS,
     "import_trace(paths, into, format, /)\n--\n\nFiles of other tools into a recording: files, "
     "events, bytes, format."},
    {"diff_pending", tools_diff_pending, METH_VARARGS,
     "diff_pending($module, dir, step, tree, eps, n_errors, allow_missing, allow_extra, "
     "allow_dtype, "
     "rank, /)\n--\n\n"
     "What differs between what waits in the dumper and an earlier dump, as text; None."},
    {"doctor", tools_doctor,
     METH_VARARGS, "doctor(path, measure, wait_ms, /)\n--\n\nWhat can be measured here: table, text, can_record."},
    {"stopwatch_table", tools_stopwatch_table, METH_O,
     "stopwatch_table(name, /)\n--\n\nA table of the stopwatch's results so far."},
    {"stopwatch_pack", tools_stopwatch_pack, METH_O,
     "stopwatch_pack(rank, /)\n--\n\nThe stopwatch's results as bytes, to be merged elsewhere."},
    {"stopwatch_merge", tools_stopwatch_merge, METH_O,
     "stopwatch_merge(packed, /)\n--\n\nThe results of several ranks as one."},
    {"stopwatch_merged_table", tools_stopwatch_merged_table, METH_VARARGS,
     "stopwatch_merged_table(merged, name, /)\n--\n\nA table of merged results."},
    {"make_table", tools_make_table, METH_VARARGS,
     "make_table(name, columns, rows, /)\n--\n\nA table of these rows."},
    {"append_csv", tools_append_csv, METH_VARARGS,
     "append_csv(path, columns, rows, /)\n--\n\nRows as lines at the end of a file of CSV."},
    {"json_tables", tools_json_tables, METH_O,
     "json_tables(tables, /)\n--\n\nA JSON object with the rows of each table by its name."},
    {NULL, NULL, 0, NULL},
};

static int tools_exec(PyObject *module)
{
    struct tools_state *state = PyModule_GetState(module);
    PyObject *native = PyImport_ImportModule("marey._native");
    state->error = native != NULL ? PyObject_GetAttrString(native, "MareyError") : NULL;
    Py_XDECREF(native);
    if (state->error == NULL)
        return -1;
    state->recording_type = tools_recording_type(module);
    state->table_type = state->recording_type != NULL ? tools_table_type(module) : NULL;
    state->report_type = state->table_type != NULL ? tools_report_type(module) : NULL;
    if (state->report_type == NULL || add(module, "Recording", state->recording_type) < 0 ||
        add(module, "Table", state->table_type) < 0 || add(module, "Report", state->report_type) < 0)
        return -1;
    state->dumps_type = tools_dumps_type(module);
    state->dumped_type = state->dumps_type != NULL ? tools_dumped_type(module) : NULL;
    if (state->dumped_type == NULL || add(module, "Dumps", state->dumps_type) < 0 ||
        add(module, "DumpedTensor", state->dumped_type) < 0)
        return -1;
    return tools_add_formats(module);
}

static int tools_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct tools_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    Py_VISIT((PyObject *)state->recording_type);
    Py_VISIT((PyObject *)state->table_type);
    Py_VISIT((PyObject *)state->report_type);
    Py_VISIT((PyObject *)state->dumps_type);
    Py_VISIT((PyObject *)state->dumped_type);
    return 0;
}

static int tools_clear(PyObject *module)
{
    struct tools_state *state = PyModule_GetState(module);
    Py_CLEAR(state->dumped_type);
    Py_CLEAR(state->dumps_type);
    Py_CLEAR(state->report_type);
    Py_CLEAR(state->table_type);
    Py_CLEAR(state->recording_type);
    Py_CLEAR(state->error);
    return 0;
}

static void tools_free(void *module)
{
    tools_clear(module);
}

static PyModuleDef_Slot tools_slots[] = {
    {Py_mod_exec, tools_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef tools_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "marey._tools",
    .m_doc = "The reader of recordings: libmarey-tools for Python.",
    .m_size = sizeof(struct tools_state),
    .m_methods = tools_functions,
    .m_slots = tools_slots,
    .m_traverse = tools_traverse,
    .m_clear = tools_clear,
    .m_free = tools_free,
};

PyMODINIT_FUNC PyInit__tools(void); /* called by the import system, which knows it by its name */

PyMODINIT_FUNC PyInit__tools(void)
{
    return PyModuleDef_Init(&tools_module);
}
