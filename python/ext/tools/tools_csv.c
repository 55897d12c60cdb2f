/*
 * tools_csv.c: Python rows as a table. make_table() returns the table; append_csv() appends its rows to a file, called
 * on the loggers' thread: it releases the GIL while the disk works.
 */
#include "tools/tools.h"

#include <string.h>

enum { MAX_COLUMNS = 32 };

static const struct kind {
    const char *name;
    enum marey_type type;
    enum marey_unit unit;
} kinds[] = {
    {"text", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"integer", MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"number", MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"share", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
};

static int kind_of(const char *name, struct marey_column *out)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            out->type = kinds[i].type;
            out->unit = kinds[i].unit;
            return 0;
        }
    }
    return EXT_FAIL(PyExc_ValueError, "a column is of text, integer, number or share, not of %s",
                    name);
}

/* The names in `columns` are borrowed from `described`, a tuple of (name, kind) or (name, kind, title). */
static int read_columns(PyObject *described, struct marey_column *columns, size_t *n)
{
    *n = (size_t)PyTuple_GET_SIZE(described);
    if (*n == 0 || *n > MAX_COLUMNS)
        return EXT_FAIL(PyExc_ValueError, "a table has 1 to 32 columns here");
    for (size_t i = 0; i < *n; i++) {
        const char *kind;
        PyObject *item = PyTuple_GET_ITEM(described, (Py_ssize_t)i);
        columns[i] = (struct marey_column){0};
        if (!PyTuple_Check(item))
            return EXT_FAIL(PyExc_TypeError, "each column is a tuple (name, kind[, title])");
        if (!PyArg_ParseTuple(item, "ss|z", &columns[i].name, &kind, &columns[i].title) ||
            kind_of(kind, &columns[i]) < 0)
            return -1;
    }
    return 0;
}

static int put_text(marey_table *table, PyObject *value)
{
    /* As everywhere in the package, lone surrogates are accepted, and become U+FFFD in the file. */
    PyObject *bytes EXT_OWNED = PyUnicode_Check(value) ? ext_bytes(value) : NULL;
    if (bytes == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a column of text holds str");
        return -1;
    }
    marey_table_text(table, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
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
        if (!PyTuple_Check(row) || (size_t)PyTuple_GET_SIZE(row) != n_columns)
            return EXT_FAIL(PyExc_TypeError, "each row is a tuple of %zu", n_columns);
        for (size_t c = 0; c < n_columns; c++) {
            if (put_cell(table, marey_table_column(table, c)->type,
                         PyTuple_GET_ITEM(row, (Py_ssize_t)c)) < 0)
                return -1;
        }
    }
    return 0;
}

/* NULL and an exception for invalid columns or rows. */
static marey_table *table_of_rows(const struct tools_state *state, const char *name,
                                  PyObject *described, PyObject *rows)
{
    struct marey_column columns[MAX_COLUMNS];
    size_t n;
    marey_table *table = NULL;
    if (read_columns(described, columns, &n) < 0)
        return NULL;
    marey_status status = marey_table_create(name, columns, n, &table);
    if (status == MAREY_OK && put_rows(table, rows) == 0)
        status = marey_table_status(table);
    if (status == MAREY_OK && !PyErr_Occurred())
        return table;
    marey_table_destroy(table);
    if (!PyErr_Occurred())
        tools_raise(state, status);
    return NULL;
}

static PyObject *make_table(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *described, *rows;
    const char *name;
    if (!PyArg_ParseTuple(args, "sO!O!:make_table", &name, &PyTuple_Type, &described, &PyList_Type,
                          &rows))
        return NULL;
    marey_table *const table = table_of_rows(state, name, described, rows);
    return table != NULL ? tools_table_own(state, table) : NULL;
}

static PyObject *append_csv(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *path EXT_OWNED = NULL;
    PyObject *described, *rows;
    if (!PyArg_ParseTuple(args, "O&O!O!:append_csv", PyUnicode_FSConverter, &path, &PyTuple_Type,
                          &described, &PyList_Type, &rows))
        return NULL;
    marey_table *const table = table_of_rows(state, "rows", described, rows);
    if (table == NULL)
        return NULL;
    const marey_status status = EXT_STATUS_UNLOCKED(marey_append_csv(table, PyBytes_AS_STRING(path)));
    marey_table_destroy(table);
    return tools_result(state, status);
}

/* Columns are (name, kind[, title]), rows tuples. */
PyMethodDef tools_csv_functions[] = {
    {"make_table", make_table, METH_VARARGS, NULL},
    {"append_csv", append_csv, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
