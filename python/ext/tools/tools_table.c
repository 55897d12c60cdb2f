/*
 * tools_table.c: a table of a report: its columns' descriptions, columns as lists, or formatted. marey/_table.py is the
 * public interface.
 */
#include "tools/tools.h"

struct table {
    PyObject ob_base;
    marey_table *table; /* lent by owner */
    PyObject *owner;
};

static const marey_table *table_of(PyObject *self)
{
    return ((struct table *)self)->table;
}

PyObject *tools_table_create(const struct tools_state *state, marey_table *table, PyObject *owner)
{
    struct table *self = tools_new(state, TOOLS_TABLE);
    if (self == NULL)
        return NULL;
    self->table = table;
    self->owner = Py_NewRef(owner);
    return (PyObject *)self;
}

static const char capsule_name[] = "marey.table";

static void table_free(PyObject *capsule)
{
    marey_table_destroy(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject *tools_table_own(const struct tools_state *state, marey_table *table)
{
    PyObject *owner = PyCapsule_New(table, capsule_name, table_free);
    if (owner == NULL) {
        marey_table_destroy(table);
        return NULL;
    }
    PyObject *made = tools_table_create(state, table, owner);
    Py_DECREF(owner); /* the Table holds it, or creation failed */
    return made;
}

static void table_finalize(PyObject *self)
{
    Py_CLEAR(((struct table *)self)->owner);
}

static Py_ssize_t table_length(PyObject *self)
{
    return (Py_ssize_t)marey_table_n_rows(table_of(self));
}

const char *tools_unit_name(enum marey_unit unit)
{
    switch (unit) {
    case MAREY_UNIT_COUNT:
        return "count";
    case MAREY_UNIT_NS:
        return "ns";
    case MAREY_UNIT_BYTES:
        return "bytes";
    case MAREY_UNIT_SHARE:
        return "share";
    case MAREY_UNIT_UNIX_NS:
        return "unix_ns";
    case MAREY_UNIT_NONE:
        break;
    }
    return "";
}

static PyObject *table_columns(PyObject *self, void *Py_UNUSED(closure))
{
    const marey_table *table = table_of(self);
    const size_t n = marey_table_n_columns(table);
    PyObject *columns = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; columns != NULL && i < n; i++) {
        const struct marey_column *column = marey_table_column(table, i);
        const char *title = column->title != NULL ? column->title : column->name;
        PyObject *described =
            Py_BuildValue("(sss)", column->name, title, tools_unit_name(column->unit));
        if (described == NULL)
            Py_CLEAR(columns);
        else
            PyTuple_SET_ITEM(columns, (Py_ssize_t)i, described);
    }
    return columns;
}

EXT_PROPERTY(table_name, PyUnicode_FromString(marey_table_name(table_of(self))))

static PyObject *cell_object(enum marey_type type, const struct marey_cell *cell)
{
    if (cell->is_null)
        Py_RETURN_NONE;
    switch (type) {
    case MAREY_TYPE_TEXT:
        return tools_text(cell->as.text, cell->len);
    case MAREY_TYPE_I64:
        return PyLong_FromLongLong(cell->as.i64);
    case MAREY_TYPE_U64:
        return PyLong_FromUnsignedLongLong(cell->as.u64);
    case MAREY_TYPE_F64:
        return PyFloat_FromDouble(cell->as.f64);
    case MAREY_TYPE_BOOL:
        return PyBool_FromLong(cell->as.i64 != 0);
    }
    Py_RETURN_NONE;
}

static PyObject *table_column(PyObject *self, PyObject *number)
{
    const marey_table *table = table_of(self);
    const Py_ssize_t column = PyLong_AsSsize_t(number);
    if (column == -1 && PyErr_Occurred())
        return NULL;
    if (column < 0 || (size_t)column >= marey_table_n_columns(table))
        return PyErr_Format(PyExc_IndexError, "no such column");
    const enum marey_type type = marey_table_column(table, (size_t)column)->type;
    const size_t n = marey_table_n_rows(table);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t row = 0; list != NULL && row < n; row++) {
        const struct marey_cell cell = marey_table_cell(table, row, (size_t)column);
        PyObject *object = cell_object(type, &cell);
        if (object == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)row, object);
    }
    return list;
}

/* write(format, width, tree or None, max_rows): each format ignores arguments it does not use. */
static PyObject *table_write(PyObject *self, PyObject *args)
{
    const char *format;
    Py_ssize_t max_rows;
    struct marey_text_options options = {0};
    struct tools_sink sink;
    if (!PyArg_ParseTuple(args, "sIzn:write", &format, &options.width, &options.tree, &max_rows) ||
        tools_sink_open(&sink) < 0)
        return NULL;
    const marey_table *const table = table_of(self);
    const marey_status status =
        strcmp(format, "csv") == 0    ? marey_present_csv(table, sink.stream)
        : strcmp(format, "json") == 0 ? marey_present_json(table, sink.stream)
        : strcmp(format, "html") == 0 ? marey_present_html(table, (size_t)max_rows, sink.stream)
                                      : marey_present_text(table, &options, sink.stream);
    return tools_sink_finish(&sink, tools_state_of(self), status);
}

/* The tables of a sequence of Tables, borrowed. NULL and an exception on failure; free the result with PyMem_Free(). */
static const marey_table **tables_of(const struct tools_state *state, PyObject *sequence)
{
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    const marey_table **tables = PyMem_New(const marey_table *, (size_t)n + 1);
    if (tables == NULL)
        return (const marey_table **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
        if (!PyObject_TypeCheck(item, state->types[TOOLS_TABLE])) {
            PyErr_SetString(PyExc_TypeError, "each is a Table");
            PyMem_Free(tables);
            return NULL;
        }
        tables[i] = ((struct table *)item)->table;
    }
    return tables;
}

/* A JSON object with the rows of each Table by its name. */
static PyObject *json_tables(PyObject *module, PyObject *given)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *sequence EXT_OWNED = PySequence_Fast(given, "tables are a list of Table");
    const marey_table **tables EXT_FREED = sequence != NULL ? tables_of(state, sequence) : NULL;
    struct tools_sink sink;
    if (tables == NULL || tools_sink_open(&sink) < 0)
        return NULL;
    const size_t n = (size_t)PySequence_Fast_GET_SIZE(sequence);
    return tools_sink_finish(&sink, state, marey_present_json_tables(tables, n, sink.stream));
}

PyMethodDef tools_table_functions[] = {
    {"json_tables", json_tables, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef table_methods[] = {
    {"column", table_column, METH_O, NULL},
    {"write", table_write, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef table_getset[] = {
    {"columns", table_columns, NULL, "(name, title, unit) of each column.", NULL},
    {"name", table_name, NULL, "The table's name.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
EXT_TYPE(tools_table_spec, "marey._tools.Table", struct table,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, {Py_tp_finalize, table_finalize},
         {Py_tp_methods, table_methods}, {Py_tp_getset, table_getset}, {Py_sq_length, table_length})
