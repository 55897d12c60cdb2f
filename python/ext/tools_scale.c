/*
 * tools_scale.c: scale() for Python: marey/scaling.h over paths. The answer stays in a capsule, from which texts and pictures
 * are drawn when they are asked for.
 */
#include "tools.h"

#include <string.h>

#include <marey/scaling.h>

#define CAPSULE "marey._tools.scaling"

static void destroy_scaling(PyObject *capsule)
{
    marey_scaling_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* ---- reading ---- */

/* What is asked for; texts are lent by the arguments. */
struct wanted {
    PyObject *paths; /* a list of (series or None, path as bytes, source or None) */
    PyObject *convert; /* called with a path that has files of itwinai: gives the path of a CSV of their measurements */
    struct marey_scaling_read_options read;
    struct marey_scaling_options options;
};

/* Of a tuple of (series or None, path, source or None): texts as UTF-8 stay with their str, paths become bytes. */
static PyObject *encode_paths(PyObject *paths)
{
    PyObject *encoded = PyList_New(0);
    for (Py_ssize_t i = 0; encoded != NULL && i < PyTuple_GET_SIZE(paths); i++) {
        PyObject *series, *source, *path = NULL, *run = NULL;
        if (PyArg_ParseTuple(PyTuple_GET_ITEM(paths, i), "OO&O", &series, PyUnicode_FSConverter,
                             &path, &source))
            run = PyTuple_Pack(3, series, path, source);
        if (run == NULL || PyList_Append(encoded, run) < 0)
            Py_CLEAR(encoded);
        Py_XDECREF(run);
        Py_XDECREF(path);
    }
    return encoded;
}

static int read_path(const struct tools_state *state, marey_scaling_runs *runs, const char *path,
                     const struct marey_scaling_read_options *options)
{
    marey_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = marey_scaling_runs_read(runs, path, options);
    Py_END_ALLOW_THREADS;
    if (status == MAREY_OK)
        return 0;
    tools_raise(state, status);
    return -1;
}

/* itwinai's files at a path, by way of a CSV that Python writes. */
static int read_itwinai(const struct tools_state *state, marey_scaling_runs *runs, PyObject *path,
                        const struct wanted *wanted, struct marey_scaling_read_options options)
{
    PyObject *csv = NULL, *const converted = PyObject_CallOneArg(wanted->convert, path);
    options.has_itwinai = NULL;
    options.source = options.source != NULL ? options.source : PyBytes_AS_STRING(path);
    int rc = converted != NULL && PyUnicode_FSConverter(converted, &csv) ? 0 : -1;
    if (rc == 0)
        rc = read_path(state, runs, PyBytes_AS_STRING(csv), &options);
    Py_XDECREF(csv);
    Py_XDECREF(converted);
    return rc;
}

/* One of the paths; -1 and an exception when it cannot be read. */
static int read_nth(const struct tools_state *state, marey_scaling_runs *runs,
                    const struct wanted *wanted, Py_ssize_t i)
{
    PyObject *const run = PyList_GET_ITEM(wanted->paths, i), *const series = PyTuple_GET_ITEM(run, 0),
                    *const path = PyTuple_GET_ITEM(run, 1), *const source = PyTuple_GET_ITEM(run, 2);
    struct marey_scaling_read_options options = wanted->read;
    int has_itwinai = 0;
    options.has_itwinai = &has_itwinai;
    if ((series != Py_None && (options.strategy = PyUnicode_AsUTF8(series)) == NULL) ||
        (source != Py_None && (options.source = PyUnicode_AsUTF8(source)) == NULL))
        return -1;
    const int rc = read_path(state, runs, PyBytes_AS_STRING(path), &options);
    return rc == 0 && has_itwinai ? read_itwinai(state, runs, path, wanted, options) : rc;
}

static marey_scaling *tell(const struct tools_state *state, const struct wanted *wanted)
{
    marey_scaling_runs *runs = NULL;
    marey_scaling *scaling = NULL;
    int rc = 0;
    marey_status status = marey_scaling_runs_create(&runs);
    for (Py_ssize_t i = 0; status == MAREY_OK && rc == 0 && i < PyList_GET_SIZE(wanted->paths); i++)
        rc = read_nth(state, runs, wanted, i);
    if (status == MAREY_OK && rc == 0) {
        Py_BEGIN_ALLOW_THREADS;
        status = marey_scaling_create(runs, &wanted->options, &scaling);
        Py_END_ALLOW_THREADS;
    }
    if (status != MAREY_OK)
        tools_raise(state, status);
    marey_scaling_runs_destroy(runs);
    return scaling;
}

/* Numbers of workers out of a tuple; NULL and an exception. At least one place, so that none is no NULL. */
static uint32_t *to_counts(PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    uint32_t *counts = PyMem_Calloc((size_t)n + 1, sizeof *counts);
    if (counts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const long count = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
        if (count < 1 || count > INT32_MAX) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%ld is no number of workers to forecast", count);
            PyMem_Free(counts);
            return NULL;
        }
        counts[i] = (uint32_t)count;
    }
    return counts;
}

/* ---- the answer ---- */

static PyObject *tables_of(const struct tools_state *state, marey_scaling *scaling, PyObject *owner)
{
    static const char *const names[] = {"points", "fits", "forecast", "best", "runs", "notes"};
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table = tools_table_create(state, marey_scaling_table(scaling, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    return tables;
}

/* ({"points": Table, ...}, capsule) */
static PyObject *results(const struct tools_state *state, marey_scaling *scaling)
{
    PyObject *owner = PyCapsule_New(scaling, CAPSULE, destroy_scaling);
    if (owner == NULL) {
        marey_scaling_destroy(scaling);
        return NULL;
    }
    PyObject *tables = tables_of(state, scaling, owner);
    if (tables == NULL) {
        Py_DECREF(owner);
        return NULL;
    }
    return Py_BuildValue("(NN)", tables, owner);
}

PyObject *tools_scale(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct wanted wanted = {0};
    PyObject *paths, *forecast;
    if (!PyArg_ParseTuple(args, "O!zzIzzpO!O:scale", &PyTuple_Type, &paths, &wanted.read.experiment,
                          &wanted.read.strategy, &wanted.read.workers, &wanted.options.measure,
                          &wanted.options.kind, &wanted.options.with_first, &PyTuple_Type,
                          &forecast, &wanted.convert))
        return NULL;
    uint32_t *counts = to_counts(forecast);
    wanted.paths = counts != NULL ? encode_paths(paths) : NULL;
    wanted.options.forecast = counts;
    wanted.options.n_forecast = (size_t)PyTuple_GET_SIZE(forecast);
    marey_scaling *scaling = wanted.paths != NULL ? tell(state, &wanted) : NULL;
    Py_XDECREF(wanted.paths);
    PyMem_Free(counts);
    return scaling != NULL ? results(state, scaling) : NULL;
}

static marey_status draw(marey_scaling *scaling, const char *what, FILE *out)
{
    if (strcmp(what, "text") == 0)
        return marey_scaling_text(scaling, NULL, out);
    if (strcmp(what, "markdown") == 0)
        return marey_scaling_markdown(scaling, out);
    if (strcmp(what, "json") == 0)
        return marey_scaling_json(scaling, out);
    if (strcmp(what, "html") == 0)
        return marey_scaling_html(scaling, out);
    return marey_scaling_picture(scaling, what, out);
}

PyObject *tools_scale_drawn(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct tools_sink sink;
    PyObject *capsule;
    const char *what;
    if (!PyArg_ParseTuple(args, "Os:scale_drawn", &capsule, &what))
        return NULL;
    marey_scaling *scaling = PyCapsule_GetPointer(capsule, CAPSULE);
    if (scaling == NULL || tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state, draw(scaling, what, sink.stream));
}
