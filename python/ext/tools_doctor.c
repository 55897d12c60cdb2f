/*
 * tools_doctor.c: what can be measured here: marey/doctor.h for Python.
 */
#include "tools.h"

#include <marey/doctor.h>

static PyObject *findings_text(const struct tools_state *state, const marey_table *findings)
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state, marey_doctor_text(findings, NULL, sink.stream));
}

PyObject *tools_doctor(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_doctor_options options = {0};
    marey_table *findings = NULL;
    PyObject *path = NULL;
    int measure;
    unsigned wait_ms;
    if (!PyArg_ParseTuple(args, "O&pI:doctor", PyUnicode_FSConverter, &path, &measure, &wait_ms))
        return NULL;
    options.path = PyBytes_AS_STRING(path);
    options.measure = (uint32_t)measure;
    options.wait_ms = wait_ms;
    marey_status status;
    Py_BEGIN_ALLOW_THREADS status = marey_doctor(&options, &findings);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status != MAREY_OK)
        return tools_raise(state, status);

    PyObject *table = tools_table_own(state, findings);
    PyObject *text = table != NULL ? findings_text(state, findings) : NULL;
    if (text == NULL) {
        Py_XDECREF(table);
        return NULL;
    }
    return Py_BuildValue("(NNN)", table, text, PyBool_FromLong(marey_doctor_can_record(findings)));
}
