/* calls_stats.c: the counts of a profile in the format of cProfile and pstats. */
#include "calls/calls_hook.h"

#include <structseq.h>

/* ---- rows, one after the other by caller ---- */

struct stats {
    struct calls_profile *profile;
    struct marey_calls_rows rows;
    double seconds; /* of a tick */
};

static int stats_init(struct stats *stats, struct calls_profile *profile)
{
    *stats = (struct stats){.profile = profile};
    if (marey_calls_rows_init(profile->calls, true, &stats->rows) != MAREY_OK)
        return EXT_NO_MEMORY();
    stats->seconds = marey_calls_ns_per_tick(profile->calls) * 1e-9;
    return 0;
}

/* "dot", or with signatures "dot(a:int, b:int)". */
static PyObject *name_of(const struct stats *stats, uint32_t number, uint32_t signature)
{
    struct marey_calls_function function = {.name = "(other paths)"};
    uint32_t of;
    const char *text;
    double elements;
    marey_calls_function_get(stats->profile->calls, number, &function);
    if (marey_calls_signature_get(stats->profile->calls, signature, &of, &text, &elements))
        return calls_sign_display(function.name, text);
    return PyUnicode_FromString(function.name);
}

/* (file, line, name): the key of a function in pstats. */
static PyObject *label_of(const struct stats *stats, uint32_t number, uint32_t signature)
{
    struct marey_calls_function function = {.file = "~"};
    marey_calls_function_get(stats->profile->calls, number, &function);
    PyObject *const name = name_of(stats, number, signature);
    return name != NULL ? Py_BuildValue("(sIN)", function.file, function.line, name) : NULL;
}

/* ---- the dictionary of pstats ---- */

static PyObject *pair_sums(const struct stats *stats, const struct marey_calls_row *row)
{
    return Py_BuildValue("(KKdd)", (unsigned long long)row->calls,
                         (unsigned long long)(row->calls - row->recursive),
                         (double)row->self * stats->seconds, (double)row->total * stats->seconds);
}

static PyObject *function_sums(const struct stats *stats, const struct marey_calls_row *row)
{
    return Py_BuildValue("(KKddN)", (unsigned long long)(row->calls - row->recursive),
                         (unsigned long long)row->calls, (double)row->self * stats->seconds,
                         (double)row->total * stats->seconds, PyDict_New());
}

/* Adds the first numbers of two tuples; keeps later items. Steals `more`. */
static PyObject *added(PyObject *before, PyObject *more)
{
    enum { N_NUMBERS = 4 };
    if (before == NULL || more == NULL)
        return more;
    PyObject *sum = PyTuple_New(PyTuple_GET_SIZE(before));
    for (Py_ssize_t i = 0; sum != NULL && i < PyTuple_GET_SIZE(before); i++) {
        PyObject *const a = PyTuple_GET_ITEM(before, i);
        PyObject *const item =
            i < N_NUMBERS ? PyNumber_Add(a, PyTuple_GET_ITEM(more, i)) : Py_NewRef(a);
        if (item != NULL)
            PyTuple_SET_ITEM(sum, i, item);
        else
            Py_CLEAR(sum);
    }
    Py_DECREF(more);
    return sum;
}

/* Adds a row to a dictionary; functions with equal labels are summed. Steals `key` and `sums`. */
static int put(PyObject *dict, PyObject *key, PyObject *sums)
{
    int status = -1;
    if (key != NULL && sums != NULL) {
        PyObject *const before = PyDict_GetItemWithError(dict, key);
        sums = before != NULL || !PyErr_Occurred() ? added(before, sums) : sums;
        status = sums != NULL && !PyErr_Occurred() ? PyDict_SetItem(dict, key, sums) : -1;
    }
    Py_XDECREF(key);
    Py_XDECREF(sums);
    return status;
}

static int put_pair(const struct stats *stats, PyObject *dict, const struct marey_calls_row *row)
{
    PyObject *const callee EXT_OWNED = label_of(stats, row->function, row->signature);
    PyObject *const sums = callee != NULL ? PyDict_GetItemWithError(dict, callee) : NULL;
    if (sums == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return put(PyTuple_GET_ITEM(sums, 4),
               label_of(stats, row->caller_function, row->caller_signature), pair_sums(stats, row));
}

static int fill(const struct stats *stats, PyObject *dict)
{
    for (size_t i = 0; i < stats->rows.n_functions; i++) {
        const struct marey_calls_row *const row = &stats->rows.functions[i];
        if (put(dict, label_of(stats, row->function, row->signature), function_sums(stats, row)) < 0)
            return -1;
    }
    for (size_t i = 0; stats->profile->with_subcalls && i < stats->rows.n_pairs; i++)
        if (put_pair(stats, dict, &stats->rows.pairs[i]) < 0)
            return -1;
    return 0;
}

PyObject *calls_stats_dict(struct calls_profile *profile)
{
    struct stats stats;
    if (stats_init(&stats, profile) < 0)
        return NULL;
    PyObject *dict = PyDict_New();
    if (dict != NULL && fill(&stats, dict) < 0)
        Py_CLEAR(dict);
    marey_calls_rows_fini(&stats.rows);
    return dict;
}

/* ---- getstats() ---- */

static PyStructSequence_Field entry_fields[] = {
    {"code", "code object, or the name of a built-in function"},
    {"callcount", "how often it was called"},
    {"reccallcount", "how often of these within itself"},
    {"totaltime", "seconds, with callees"},
    {"inlinetime", "seconds, without them"},
    {"calls", "whom it called, a list of profiler_subentry, or None"},
    {NULL, NULL},
};
static PyStructSequence_Field subentry_fields[] = {
    {"code", "code object, or the name of a built-in function"},
    {"callcount", "how often it was called from there"},
    {"reccallcount", "how often of these within itself"},
    {"totaltime", "seconds, with callees"},
    {"inlinetime", "seconds, without them"},
    {NULL, NULL},
};
static PyStructSequence_Desc entry_desc = {"marey._native.profiler_entry", NULL, entry_fields, 6};
static PyStructSequence_Desc subentry_desc = {"marey._native.profiler_subentry", NULL,
                                              subentry_fields, 5};

static PyTypeObject *type_of(PyTypeObject **type, PyStructSequence_Desc *desc)
{
    if (*type == NULL)
        *type = PyStructSequence_NewType(desc);
    return *type;
}

static PyObject *code_of(const struct stats *stats, uint32_t number, uint32_t signature)
{
    const struct calls_profile *const p = stats->profile;
    if (number < p->n_codes && p->codes[number] != NULL)
        return Py_NewRef(p->codes[number]);
    return name_of(stats, number, signature);
}

static PyObject *entry(const struct stats *stats, PyTypeObject *type,
                       const struct marey_calls_row *row)
{
    PyObject *made = type != NULL ? PyStructSequence_New(type) : NULL;
    if (made == NULL)
        return NULL;
    PyObject *const items[] = {code_of(stats, row->function, row->signature),
                               PyLong_FromUnsignedLongLong(row->calls),
                               PyLong_FromUnsignedLongLong(row->recursive),
                               PyFloat_FromDouble((double)row->total * stats->seconds),
                               PyFloat_FromDouble((double)row->self * stats->seconds)};
    for (Py_ssize_t i = 0; i < 5; i++)
        PyStructSequence_SetItem(made, i, items[i]);
    if (PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}

/* Entries of its callees; None if there are none. */
static PyObject *callees(const struct stats *stats, const struct marey_calls_row *caller)
{
    static PyTypeObject *type; /* lives as long as the module */
    PyObject *list = NULL;
    for (size_t i = 0; stats->profile->with_subcalls && i < stats->rows.n_pairs; i++) {
        const struct marey_calls_row *const row = &stats->rows.pairs[i];
        if (row->caller_function != caller->function || row->caller_signature != caller->signature)
            continue;
        if (list == NULL && (list = PyList_New(0)) == NULL)
            return NULL;
        list = ext_append(list, entry(stats, type_of(&type, &subentry_desc), row));
        if (list == NULL)
            return NULL;
    }
    return list != NULL ? list : Py_NewRef(Py_None);
}

static int add_entry(const struct stats *stats, PyObject *list, const struct marey_calls_row *row)
{
    static PyTypeObject *type;
    PyObject *const made EXT_OWNED = entry(stats, type_of(&type, &entry_desc), row);
    PyObject *const calls = made != NULL ? callees(stats, row) : NULL;
    int status = -1;
    if (calls != NULL) {
        PyStructSequence_SetItem(made, 5, calls);
        status = PyList_Append(list, made);
    }
    return status;
}

PyObject *calls_getstats(struct calls_profile *profile)
{
    struct stats stats;
    if (stats_init(&stats, profile) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < stats.rows.n_functions; i++)
        if (add_entry(&stats, list, &stats.rows.functions[i]) < 0)
            Py_CLEAR(list);
    marey_calls_rows_fini(&stats.rows);
    return list;
}
