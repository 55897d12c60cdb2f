/*
 * tools_compare.c: comparisons for Python: marey/compare.h over recordings and stats, and over pairs of times.
 */
#include "tools.h"

#include <marey/compare.h>
#include <marey/page.h>

#define CAPSULE "marey._tools.comparison"

static void destroy_comparison(PyObject *capsule)
{
    marey_comparison_destroy(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* ---- recordings and stats ---- */

static int add_paths(const struct tools_state *state, marey_comparison *comparison,
                     enum marey_compare_side side, PyObject *paths)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths); i++) {
        PyObject *path;
        if (!PyUnicode_FSConverter(PyTuple_GET_ITEM(paths, i), &path))
            return -1;
        const marey_status status = marey_comparison_add(comparison, side, PyBytes_AS_STRING(path));
        Py_DECREF(path);
        if (status != MAREY_OK) {
            tools_raise(state, status);
            return -1;
        }
    }
    return 0;
}

static int run_comparison(const struct tools_state *state, marey_comparison *comparison,
                          const struct marey_compare_options *options)
{
    marey_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = marey_comparison_run(comparison, options);
    Py_END_ALLOW_THREADS;
    if (status == MAREY_OK)
        return 0;
    tools_raise(state, status);
    return -1;
}

enum drawing { TEXT, MARKDOWN, JSON };

static PyObject *drawn(const struct tools_state *state, marey_comparison *comparison,
                       enum drawing drawing)
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    const marey_status status = drawing == TEXT ? marey_compare_text(comparison, NULL, sink.stream)
                                : drawing == MARKDOWN
                                    ? marey_compare_markdown(comparison, NULL, sink.stream)
                                    : marey_compare_json(comparison, sink.stream);
    return tools_sink_finish(&sink, state, status);
}

/* The tables by name, then the texts: ({"regions": Table, ...}, text, markdown, json). */
static PyObject *results(const struct tools_state *state, marey_comparison *comparison,
                         PyObject *owner)
{
    static const char *const names[] = {"regions", "iteration", "program", "functions",
                                        "only",    "runs",      "warnings"};
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table =
            tools_table_create(state, marey_comparison_table(comparison, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    PyObject *text = tables != NULL ? drawn(state, comparison, TEXT) : NULL;
    PyObject *markdown = text != NULL ? drawn(state, comparison, MARKDOWN) : NULL;
    PyObject *json = markdown != NULL ? drawn(state, comparison, JSON) : NULL;
    if (json == NULL) {
        Py_XDECREF(tables);
        Py_XDECREF(text);
        Py_XDECREF(markdown);
        return NULL;
    }
    return Py_BuildValue("(NNNN)", tables, text, markdown, json);
}

PyObject *tools_compare_page(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_compare_options options = {.wants_quantiles = 1};
    PyObject *a, *b;
    unsigned long long skip;
    const char *title;
    int fd, rc = -1;
    if (!PyArg_ParseTuple(args, "O!O!zdKppiz:compare_page", &PyTuple_Type, &a, &PyTuple_Type, &b,
                          &options.filter, &options.smallest_percent, &skip, &options.idle,
                          &options.startup, &fd, &title))
        return NULL;
    options.skip = skip;
    marey_comparison *comparison = NULL;
    marey_status status = marey_comparison_create(&comparison);
    if (status != MAREY_OK)
        return tools_raise(state, status);
    if (add_paths(state, comparison, MAREY_A, a) == 0 && add_paths(state, comparison, MAREY_B, b) == 0)
        rc = run_comparison(state, comparison, &options);
    if (rc == 0 && (status = marey_page_compare(comparison, title, fd)) != MAREY_OK) {
        tools_raise(state, status);
        rc = -1;
    }
    marey_comparison_destroy(comparison);
    return rc == 0 ? Py_NewRef(Py_None) : NULL;
}

PyObject *tools_compare(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_compare_options options = {0};
    PyObject *a, *b;
    unsigned long long skip;
    if (!PyArg_ParseTuple(args, "O!O!zdKpp:compare", &PyTuple_Type, &a, &PyTuple_Type, &b,
                          &options.filter, &options.smallest_percent, &skip, &options.idle,
                          &options.startup))
        return NULL;
    options.skip = skip;
    marey_comparison *comparison = NULL;
    const marey_status status = marey_comparison_create(&comparison);
    if (status != MAREY_OK)
        return tools_raise(state, status);
    PyObject *owner = PyCapsule_New(comparison, CAPSULE, destroy_comparison);
    if (owner == NULL) {
        marey_comparison_destroy(comparison);
        return NULL;
    }
    PyObject *result = NULL;
    if (add_paths(state, comparison, MAREY_A, a) == 0 &&
        add_paths(state, comparison, MAREY_B, b) == 0 &&
        run_comparison(state, comparison, &options) == 0)
        result = results(state, comparison, owner);
    Py_DECREF(owner); /* the tables keep it */
    return result;
}

/* ---- pairs ---- */

static double *to_doubles(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    double *values = PyMem_Malloc((size_t)(n + 1) * sizeof *values);
    if (values == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        values[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
        if (values[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(values);
            return NULL;
        }
    }
    return values;
}

PyObject *tools_compare_pairs(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct marey_compare_options options = {0};
    struct marey_change change;
    PyObject *lists[2];
    if (!PyArg_ParseTuple(args, "O!O!d:compare_pairs", &PyList_Type, &lists[0], &PyList_Type,
                          &lists[1], &options.smallest_percent))
        return NULL;
    if (PyList_GET_SIZE(lists[0]) != PyList_GET_SIZE(lists[1])) {
        PyErr_SetString(PyExc_ValueError, "both lists need as many times");
        return NULL;
    }
    double *a = to_doubles(lists[0]), *b = a != NULL ? to_doubles(lists[1]) : NULL;
    PyObject *result = NULL;
    if (b != NULL) {
        const marey_status status =
            marey_compare_pairs(a, b, (size_t)PyList_GET_SIZE(lists[0]), &options, &change);
        result = status != MAREY_OK
                     ? tools_raise(state, status)
                     : Py_BuildValue("(sddddds)", marey_verdict_name(change.verdict),
                                     change.percent, change.low_percent, change.high_percent,
                                     change.a, change.b, change.reason);
    }
    PyMem_Free(a);
    PyMem_Free(b);
    return result;
}
