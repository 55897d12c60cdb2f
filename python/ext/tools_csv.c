/*
 * tools_csv.c: append_csv(): rows of Python as lines of a file that grows. The loggers' thread calls it; the interpreter
 * is free for others while the disk works.
 */
#include "tools.h"

#include <string.h>

enum { MAX_COLUMNS = 16 };

struct kind {
    const char *name;
    enum marey_type type;
};
static const struct kind kinds[] = {
    {"text", MAREY_TYPE_TEXT}, {"integer", MAREY_TYPE_I64}, {"number", MAREY_TYPE_F64}};

static int kind_of(const char *name, enum marey_type *out)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = kinds[i].type;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "a column is of text, integer or number, not of %s", name);
    return -1;
}

/* The names in `columns` are lent by `described`, a tuple of (name, kind). */
static int read_columns(PyObject *described, struct marey_column *columns, size_t *n)
{
    *n = (size_t)PyTuple_GET_SIZE(described);
    if (*n == 0 || *n > MAX_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "a file of CSV has 1 to 16 columns here");
        return -1;
    }
    for (size_t i = 0; i < *n; i++) {
        const char *kind;
        PyObject *item = PyTuple_GET_ITEM(described, (Py_ssize_t)i);
        columns[i] = (struct marey_column){0};
        if (!PyTuple_Check(item)) {
            PyErr_SetString(PyExc_TypeError, "each column is a tuple (name, kind)");
            return -1;
        }
        if (!PyArg_ParseTuple(item, "ss", &columns[i].name, &kind) ||
            kind_of(kind, &columns[i].type) < 0)
            return -1;
    }
    return 0;
}

static int put_text(marey_table *table, PyObject *value)
{
    /* As text is everywhere in the package: lone surrogates pass, and become U+FFFD in the file. */
    PyObject *bytes =
        PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass") : NULL;
    if (bytes == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a column of text holds str");
        return -1;
    }
    marey_table_text(table, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

static int put_cell(marey_table *table, enum marey_type type, PyObject *value)
{
    if (value == Py_None) {
        marey_table_null(table);
        return 0;
    }
    if (type == MAREY_TYPE_TEXT)
        return put_text(table, value);
    if (type == MAREY_TYPE_I64)
        marey_table_i64(table, PyLong_AsLongLong(value));
    else
        marey_table_f64(table, PyFloat_AsDouble(value));
    return PyErr_Occurred() ? -1 : 0;
}

static int put_rows(marey_table *table, PyObject *rows)
{
    const size_t n_columns = marey_table_n_columns(table);
    for (Py_ssize_t r = 0; r < PyList_GET_SIZE(rows); r++) {
        PyObject *row = PyList_GET_ITEM(rows, r);
        if (!PyTuple_Check(row) || (size_t)PyTuple_GET_SIZE(row) != n_columns) {
            PyErr_Format(PyExc_TypeError, "each row is a tuple of %zu", n_columns);
            return -1;
        }
        for (size_t c = 0; c < n_columns; c++) {
            if (put_cell(table, marey_table_column(table, c)->type,
                         PyTuple_GET_ITEM(row, (Py_ssize_t)c)) < 0)
                return -1;
        }
    }
    return 0;
}

PyObject *tools_append_csv(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *path, *described, *rows, *result = NULL;
    struct marey_column columns[MAX_COLUMNS];
    size_t n;
    marey_table *table = NULL;
    if (!PyArg_ParseTuple(args, "O&O!O!:append_csv", PyUnicode_FSConverter, &path, &PyTuple_Type,
                          &described, &PyList_Type, &rows))
        return NULL;
    if (read_columns(described, columns, &n) == 0) {
        marey_status status = marey_table_create("rows", columns, n, &table);
        if (status != MAREY_OK) {
            tools_raise(state, status);
        } else if (put_rows(table, rows) == 0) {
            Py_BEGIN_ALLOW_THREADS;
            status = marey_append_csv(table, PyBytes_AS_STRING(path));
            Py_END_ALLOW_THREADS;
            result = status == MAREY_OK ? Py_NewRef(Py_None) : tools_raise(state, status);
        }
    }
    marey_table_destroy(table);
    Py_DECREF(path);
    return result;
}
