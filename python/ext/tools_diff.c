/*
 * tools_diff.c: diff(): marey/diff.h for Python.
 */
#include "tools.h"

#include <marey/diff.h>

#define CAPSULE "marey._tools.diff"

static void close_diff(PyObject *capsule)
{
    marey_diff_close(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* ---- what was asked for ---- */

/* What the options point to, for the time of the call. */
struct wanted {
    struct marey_tolerance tolerance;
    struct marey_diff_rule *rules;
    const char **partial;
    PyObject *paths[3]; /* a, b and the noise; bytes */
    struct marey_diff_options options;
};

/* (atol, rtol, ulp, nan_equal, bitwise) */
static int read_tolerance(PyObject *tuple, struct marey_tolerance *out)
{
    int nan_equal, bitwise;
    unsigned long long ulp;
    if (!PyArg_ParseTuple(tuple, "ddKpp", &out->abs, &out->rel, &ulp, &nan_equal, &bitwise))
        return -1;
    out->ulp = ulp;
    out->nan_equal = (uint32_t)nan_equal;
    out->bitwise = (uint32_t)bitwise;
    return 0;
}

/* ((pattern, tolerance), ...); the patterns are lent by it. */
static int read_rules(PyObject *rules, struct wanted *wanted)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(rules);
    wanted->rules = PyMem_Calloc((size_t)n + 1, sizeof *wanted->rules);
    if (wanted->rules == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *tolerance;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rules, i), "sO!", &wanted->rules[i].pattern,
                              &PyTuple_Type, &tolerance) ||
            read_tolerance(tolerance, &wanted->rules[i].tolerance) < 0)
            return -1;
    }
    wanted->options.rules = wanted->rules;
    wanted->options.n_rules = (size_t)n;
    return 0;
}

/* Patterns, lent by the tuple. */
static int read_partial(PyObject *patterns, struct wanted *wanted)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(patterns);
    wanted->partial = PyMem_Calloc((size_t)n + 1, sizeof *wanted->partial);
    if (wanted->partial == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        wanted->partial[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(patterns, i));
        if (wanted->partial[i] == NULL)
            return -1;
    }
    wanted->options.partial = wanted->partial;
    wanted->options.n_partial = (size_t)n;
    return 0;
}

static int read_number(PyObject *number, uint32_t *has, uint64_t *out)
{
    if (number == Py_None)
        return 0;
    *has = 1;
    *out = PyLong_AsUnsignedLongLong(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_path(PyObject *path, PyObject **out)
{
    return path == Py_None || PyUnicode_FSConverter(path, out) ? 0 : -1;
}

static void free_wanted(struct wanted *wanted)
{
    for (size_t i = 0; i < 3; i++)
        Py_XDECREF(wanted->paths[i]);
    PyMem_Free(wanted->rules);
    PyMem_Free(wanted->partial);
}

static const char *path_of(const struct wanted *wanted, size_t i)
{
    return wanted->paths[i] != NULL ? PyBytes_AS_STRING(wanted->paths[i]) : NULL;
}

static int read_wanted(PyObject *args, struct wanted *wanted)
{
    struct marey_diff_options *o = &wanted->options;
    PyObject *a, *b, *tolerance, *rules, *noise, *step, *rank, *partial;
    int nan_differs, allow_dtype, allow_missing, allow_extra, merge_ranks;
    if (!PyArg_ParseTuple(args, "OOOO!OdpppzOOppO!:diff", &a, &b, &tolerance, &PyTuple_Type, &rules,
                          &noise, &o->noise_factor, &nan_differs, &allow_dtype, &allow_missing,
                          &o->filter, &step, &rank, &allow_extra, &merge_ranks, &PyTuple_Type,
                          &partial))
        return -1;
    o->nan_differs = (uint32_t)nan_differs;
    o->allow_dtype = (uint32_t)allow_dtype;
    o->allow_missing = (uint32_t)allow_missing;
    o->allow_extra = (uint32_t)allow_extra;
    o->merge_ranks = (uint32_t)merge_ranks;
    if (read_path(a, &wanted->paths[0]) < 0 || read_path(b, &wanted->paths[1]) < 0 ||
        read_path(noise, &wanted->paths[2]) < 0 || read_rules(rules, wanted) < 0 ||
        read_partial(partial, wanted) < 0 || read_number(step, &o->has_step, &o->step) < 0 ||
        read_number(rank, &o->has_rank, &o->rank) < 0)
        return -1;
    o->noise = path_of(wanted, 2);
    if (tolerance == Py_None)
        return 0;
    o->tolerance = &wanted->tolerance;
    return read_tolerance(tolerance, &wanted->tolerance);
}

/* ---- the answer ---- */

static PyObject *drawn(const struct tools_state *state, marey_diff *diff, int as_json)
{
    struct tools_sink sink;
    const struct marey_diff_text_options wants = {.limit = 30};
    if (tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state,
                             as_json ? marey_diff_json(diff, sink.stream)
                                     : marey_diff_text(diff, &wants, sink.stream));
}

static PyObject *tables_of(const struct tools_state *state, marey_diff *diff, PyObject *owner)
{
    static const char *const names[] = {"tensors", "first", "operations", "steps", "warnings"};
    PyObject *tables = PyDict_New();
    for (size_t i = 0; tables != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *table = tools_table_create(state, marey_diff_table(diff, names[i]), owner);
        if (table == NULL || PyDict_SetItemString(tables, names[i], table) < 0)
            Py_CLEAR(tables);
        Py_XDECREF(table);
    }
    return tables;
}

static PyObject *results(const struct tools_state *state, marey_diff *diff, PyObject *owner)
{
    PyObject *tables = tables_of(state, diff, owner);
    PyObject *text = tables != NULL ? drawn(state, diff, 0) : NULL;
    PyObject *json = text != NULL ? drawn(state, diff, 1) : NULL;
    if (json == NULL) {
        Py_XDECREF(tables);
        Py_XDECREF(text);
        return NULL;
    }
    return Py_BuildValue("(NNNNN)", PyBool_FromLong(marey_diff_is_same(diff)),
                         PyBool_FromLong(marey_diff_is_partial(diff)), tables, text, json);
}

static PyObject *make_diff(const struct tools_state *state, const struct wanted *wanted)
{
    const char *a = path_of(wanted, 0), *b = path_of(wanted, 1);
    marey_diff *diff = NULL;
    marey_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = b != NULL ? marey_diff_open(a, b, &wanted->options, &diff)
                       : marey_diff_ranks(a, &wanted->options, &diff);
    Py_END_ALLOW_THREADS;
    if (status != MAREY_OK)
        return tools_raise(state, status);
    PyObject *owner = PyCapsule_New(diff, CAPSULE, close_diff);
    if (owner == NULL) {
        marey_diff_close(diff);
        return NULL;
    }
    PyObject *result = results(state, diff, owner);
    Py_DECREF(owner); /* the tables keep it */
    return result;
}

PyObject *tools_diff(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    struct wanted wanted = {.rules = NULL};
    PyObject *result = read_wanted(args, &wanted) == 0 ? make_diff(state, &wanted) : NULL;
    free_wanted(&wanted);
    return result;
}
