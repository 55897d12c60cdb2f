/*
 * tools_breakdown.c: breakdown() for Python: kymo/breakdown.h over recordings and traces; itwinai's fractions of its files.
 */
#include "tools.h"

#include <kymo/breakdown.h>
#include <kymo/import.h>
#include <kymo/legacy.h>

#define CAPSULE "kymo._tools.breakdown"

static void destroy_breakdown(PyObject *capsule)
{
    kymo_breakdown_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* Paths as bytes, which PyBytes_AS_STRING then lends; NULL and an exception where one is none. */
static PyObject *encode_paths(PyObject *paths)
{
    PyObject *encoded = PyTuple_New(PyTuple_GET_SIZE(paths));
    for (Py_ssize_t i = 0; encoded != NULL && i < PyTuple_GET_SIZE(paths); i++) {
        PyObject *path = NULL;
        if (!PyUnicode_FSConverter(PyTuple_GET_ITEM(paths, i), &path))
            Py_CLEAR(encoded);
        else
            PyTuple_SET_ITEM(encoded, i, path);
    }
    return encoded;
}

/* Open, break down, close. Without the lock of the interpreter. */
static kymo_status break_down(PyObject *encoded, const struct kymo_breakdown_options *options,
                              kymo_breakdown **out)
{
    const size_t n_paths = (size_t)PyTuple_GET_SIZE(encoded);
    kymo_recording **recordings = calloc(n_paths + 1, sizeof *recordings);
    size_t n = 0;
    kymo_status status = recordings != NULL ? KYMO_OK : KYMO_ENOMEM;
    for (; status == KYMO_OK && n < n_paths; n += status == KYMO_OK)
        status = kymo_open(PyBytes_AS_STRING(PyTuple_GET_ITEM(encoded, (Py_ssize_t)n)), NULL,
                           &recordings[n]);
    if (status == KYMO_OK)
        status = kymo_breakdown_create(recordings, n, options, out);
    while (n > 0)
        kymo_recording_close(recordings[--n]);
    free(recordings);
    return status;
}

static PyObject *drawn(const struct tools_state *state, kymo_breakdown *breakdown, int is_json)
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    const kymo_status status = is_json ? kymo_breakdown_json(breakdown, sink.stream)
                                       : kymo_breakdown_text(breakdown, NULL, sink.stream);
    return tools_sink_finish(&sink, state, status);
}

static PyObject *tables_of(const struct tools_state *state, kymo_breakdown *breakdown, PyObject *owner)
{
    static const char *const names[] = {
        "summary",     "devices",          "by",    "idle",   "idle_by_operator", "idle_by_step",
        "collectives", "collective_ranks", "rules", "legacy", "warnings"};
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        kymo_table *native = kymo_breakdown_table(breakdown, names[i]);
        if (native == NULL)
            continue;
        PyObject *table = tools_table_create(state, native, owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    return tables;
}

/* ({"devices": Table, ...}, text, json) */
static PyObject *results(const struct tools_state *state, kymo_breakdown *breakdown)
{
    PyObject *owner = PyCapsule_New(breakdown, CAPSULE, destroy_breakdown);
    if (owner == NULL) {
        kymo_breakdown_destroy(breakdown);
        return NULL;
    }
    PyObject *tables = tables_of(state, breakdown, owner);
    PyObject *text = tables != NULL ? drawn(state, breakdown, 0) : NULL;
    PyObject *json = text != NULL ? drawn(state, breakdown, 1) : NULL;
    Py_DECREF(owner); /* the tables keep it */
    if (json == NULL) {
        Py_XDECREF(tables);
        Py_XDECREF(text);
        return NULL;
    }
    return Py_BuildValue("(NNN)", tables, text, json);
}

static void destroy_fractions(PyObject *capsule)
{
    kymo_table_destroy(PyCapsule_GetPointer(capsule, CAPSULE ".legacy"));
}

static kymo_status read_fractions(PyObject *encoded, kymo_table **out)
{
    const size_t n = (size_t)PyTuple_GET_SIZE(encoded);
    const char **paths = calloc(n + 1, sizeof *paths);
    for (size_t i = 0; paths != NULL && i < n; i++)
        paths[i] = PyBytes_AS_STRING(PyTuple_GET_ITEM(encoded, (Py_ssize_t)i));
    const kymo_status status = paths != NULL ? kymo_legacy_read(paths, n, out, NULL) : KYMO_ENOMEM;
    free(paths);
    return status;
}

PyObject *tools_legacy(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *paths;
    kymo_table *fractions = NULL;
    if (!PyArg_ParseTuple(args, "O!:legacy", &PyTuple_Type, &paths))
        return NULL;
    PyObject *encoded = encode_paths(paths);
    if (encoded == NULL)
        return NULL;
    kymo_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = read_fractions(encoded, &fractions);
    Py_END_ALLOW_THREADS;
    Py_DECREF(encoded);
    if (status != KYMO_OK)
        return tools_raise(state, status);
    PyObject *owner = PyCapsule_New(fractions, CAPSULE ".legacy", destroy_fractions);
    if (owner == NULL) {
        kymo_table_destroy(fractions);
        return NULL;
    }
    PyObject *table = tools_table_create(state, fractions, owner);
    Py_DECREF(owner); /* the table keeps it */
    return table;
}

PyObject *tools_breakdown(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct kymo_breakdown_options options = {0};
    PyObject *paths, *rules = NULL;
    if (!PyArg_ParseTuple(args, "O!zO&zp:breakdown", &PyTuple_Type, &paths, &options.by,
                          PyUnicode_FSConverter, &rules, &options.window, &options.legacy))
        return NULL;
    options.rules = PyBytes_GET_SIZE(rules) != 0 ? PyBytes_AS_STRING(rules) : NULL;
    PyObject *encoded = encode_paths(paths);
    kymo_breakdown *breakdown = NULL;
    kymo_status status = KYMO_OK;
    if (encoded != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        status = break_down(encoded, &options, &breakdown);
        Py_END_ALLOW_THREADS;
    }
    Py_DECREF(rules);
    Py_XDECREF(encoded);
    if (encoded == NULL)
        return NULL;
    return status == KYMO_OK ? results(state, breakdown) : tools_raise(state, status);
}
