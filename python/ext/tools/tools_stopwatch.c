/*
 * tools_stopwatch.c: the stopwatch's results as tables, of this process and of all ranks together.
 *
 * The stopwatch itself is in `_native`; its tables are here because libmarey-tools prints them.
 */
#include "tools/tools.h"

#include <marey/stopwatch.h>

static const char merged_capsule[] = "marey.merged";

static PyObject *stopwatch_table(PyObject *module, PyObject *name)
{
    const struct tools_state *state = PyModule_GetState(module);
    const char *text = PyUnicode_AsUTF8(name);
    marey_table *table;
    if (text == NULL)
        return NULL;
    const marey_status status = marey_stopwatch_table(text, &table);
    return status == MAREY_OK ? tools_table_own(state, table) : tools_raise(state, status);
}

/* ---- all ranks ---- */

static PyObject *stopwatch_pack(PyObject *module, PyObject *rank)
{
    const long number = PyLong_AsLong(rank);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    void *data;
    size_t len;
    const marey_status status = marey_stopwatch_pack(number, &data, &len);
    if (status != MAREY_OK)
        return tools_raise(PyModule_GetState(module), status);
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)len);
    free(data);
    return bytes;
}

static void merged_free(PyObject *capsule)
{
    marey_stopwatch_merged_destroy(PyCapsule_GetPointer(capsule, merged_capsule));
}

/* Adds each of a sequence of packed results. -1 and an exception if one does not come from pack(). */
static int merged_add(const struct tools_state *state, marey_stopwatch_merged *merged, PyObject *parts)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts); i++) {
        char *data;
        Py_ssize_t len;
        if (PyBytes_AsStringAndSize(PySequence_Fast_GET_ITEM(parts, i), &data, &len) < 0)
            return -1;
        const marey_status status = marey_stopwatch_merged_add(merged, data, (size_t)len);
        if (status != MAREY_OK) {
            tools_raise(state, status);
            return -1;
        }
    }
    return 0;
}

static PyObject *stopwatch_merge(PyObject *module, PyObject *packed)
{
    const struct tools_state *state = PyModule_GetState(module);
    marey_stopwatch_merged *merged = NULL;
    PyObject *parts EXT_OWNED =
        PySequence_Fast(packed, "what ranks have packed is a list of bytes");
    PyObject *capsule = NULL;
    if (parts == NULL)
        return NULL;
    const marey_status status = marey_stopwatch_merged_create(&merged);
    if (status != MAREY_OK)
        tools_raise(state, status);
    else if (merged_add(state, merged, parts) == 0)
        capsule = PyCapsule_New(merged, merged_capsule, merged_free);
    if (capsule == NULL)
        marey_stopwatch_merged_destroy(merged);
    return capsule;
}

static PyObject *stopwatch_merged_table(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *capsule;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os:stopwatch_merged_table", &capsule, &name))
        return NULL;
    const marey_stopwatch_merged *merged = PyCapsule_GetPointer(capsule, merged_capsule);
    if (merged == NULL)
        return NULL;
    marey_table *table;
    const marey_status status = marey_stopwatch_merged_table(merged, name, &table);
    return status == MAREY_OK ? tools_table_own(state, table) : tools_raise(state, status);
}

PyMethodDef tools_stopwatch_functions[] = {
    {"stopwatch_table", stopwatch_table, METH_O, NULL},
    {"stopwatch_pack", stopwatch_pack, METH_O, NULL},
    {"stopwatch_merge", stopwatch_merge, METH_O, NULL},
    {"stopwatch_merged_table", stopwatch_merged_table, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
