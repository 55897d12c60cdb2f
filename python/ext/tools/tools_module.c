/*
 * tools_module.c: the module `marey._tools`, and functions shared by its types.
 */
#include "tools/tools.h"

PyObject *tools_raise(const struct tools_state *state, marey_status status)
{
    if (status == MAREY_EINVAL)
        PyErr_SetString(PyExc_ValueError, marey_last_error());
    else
        PyErr_Format(state->error, "%s: %s", marey_status_name(status), marey_last_error());
    return NULL;
}

PyObject *tools_result(const struct tools_state *state, marey_status status)
{
    return status == MAREY_OK ? Py_NewRef(Py_None) : tools_raise(state, status);
}

int tools_enter(PyObject *self, int *busy, const char *what)
{
    if (*busy)
        return EXT_FAIL(tools_state_of(self)->error, "another thread is reading this %s", what);
    *busy = 1;
    return 0;
}

int tools_leave(PyObject *self, int *busy, marey_status status)
{
    *busy = 0;
    if (status == MAREY_OK)
        return 0;
    tools_raise(tools_state_of(self), status);
    return -1;
}

PyObject *tools_text(const char *data, size_t len)
{
    if (data == NULL)
        Py_RETURN_NONE;
    /* Text written by Python round-trips, including lone surrogates; invalid bytes from C programs are shown as escapes. */
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
    return EXT_NO_MEMORY();
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

static int tools_exec(PyObject *module)
{
    static PyType_Spec *const specs[TOOLS_N_TYPES] = {&tools_recording_spec, &tools_table_spec,
                                                      &tools_report_spec, &tools_dumps_spec,
                                                      &tools_dumped_spec};
    PyMethodDef *const functions[] = {tools_report_functions, tools_table_functions,
                                      tools_csv_functions, tools_stopwatch_functions,
                                      tools_other_functions};
    struct tools_state *state = PyModule_GetState(module);
    PyObject *native EXT_OWNED = PyImport_ImportModule("marey._native");
    state->error = native != NULL ? PyObject_GetAttrString(native, "MareyError") : NULL;
    if (state->error == NULL)
        return -1;
    for (size_t i = 0; i < TOOLS_N_TYPES; i++) {
        state->types[i] = (PyTypeObject *)PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (state->types[i] == NULL || PyModule_AddType(module, state->types[i]) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (PyModule_AddFunctions(module, functions[i]) < 0)
            return -1;
    return tools_add_formats(module);
}

static int tools_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct tools_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    for (size_t i = 0; i < TOOLS_N_TYPES; i++)
        Py_VISIT((PyObject *)state->types[i]);
    return 0;
}

static int tools_clear(PyObject *module)
{
    struct tools_state *state = PyModule_GetState(module);
    for (size_t i = 0; i < TOOLS_N_TYPES; i++)
        Py_CLEAR(state->types[i]);
    Py_CLEAR(state->error);
    return 0;
}

EXT_MODULE(tools, "marey._tools", "The reader of recordings: libmarey-tools for Python.")
