/*
 * tools_breakdown.c: breakdown() for Python: marey/breakdown.h over recordings and traces.
 */
#include "tools.h"

#include <marey/breakdown.h>
#include <marey/import.h>

#define CAPSULE "marey._tools.breakdown"

static void destroy_breakdown(PyObject *capsule)
{
    marey_breakdown_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
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
static marey_status break_down(PyObject *encoded, const struct marey_breakdown_options *options,
                               marey_breakdown **out)
{
    const size_t n_paths = (size_t)PyTuple_GET_SIZE(encoded);
    marey_recording **recordings = calloc(n_paths + 1, sizeof *recordings);
    size_t n = 0;
    marey_status status = recordings != NULL ? MAREY_OK : MAREY_ENOMEM;
    for (; status == MAREY_OK && n < n_paths; n += status == MAREY_OK)
        status = marey_open(PyBytes_AS_STRING(PyTuple_GET_ITEM(encoded, (Py_ssize_t)n)), NULL,
                            &recordings[n]);
    if (status == MAREY_OK)
        status = marey_breakdown_create(recordings, n, options, out);
    while (n > 0)
        marey_recording_close(recordings[--n]);
    free(recordings);
    return status;
}

static PyObject *drawn(const struct tools_state *state, marey_breakdown *breakdown, int is_json)
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    const marey_status status = is_json ? marey_breakdown_json(breakdown, sink.stream)
                                        : marey_breakdown_text(breakdown, NULL, sink.stream);
    return tools_sink_finish(&sink, state, status);
}

static PyObject *tables_of(const struct tools_state *state, marey_breakdown *breakdown,
                           PyObject *owner)
{
    static const char *const names[] = {
        "summary",     "devices",          "by",    "idle",    "idle_by_operator", "idle_by_step",
        "collectives", "collective_ranks", "rules", "warnings"};
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        marey_table *native = marey_breakdown_table(breakdown, names[i]);
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
static PyObject *results(const struct tools_state *state, marey_breakdown *breakdown)
{
    PyObject *owner = PyCapsule_New(breakdown, CAPSULE, destroy_breakdown);
    if (owner == NULL) {
        marey_breakdown_destroy(breakdown);
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

PyObject *tools_breakdown(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_breakdown_options options = {0};
    PyObject *paths, *rules = NULL;
    if (!PyArg_ParseTuple(args, "O!zO&z:breakdown", &PyTuple_Type, &paths, &options.by,
                          PyUnicode_FSConverter, &rules, &options.window))
        return NULL;
    options.rules = PyBytes_GET_SIZE(rules) != 0 ? PyBytes_AS_STRING(rules) : NULL;
    PyObject *encoded = encode_paths(paths);
    marey_breakdown *breakdown = NULL;
    marey_status status = MAREY_OK;
    if (encoded != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        status = break_down(encoded, &options, &breakdown);
        Py_END_ALLOW_THREADS;
    }
    Py_DECREF(rules);
    Py_XDECREF(encoded);
    if (encoded == NULL)
        return NULL;
    return status == MAREY_OK ? results(state, breakdown) : tools_raise(state, status);
}
