/*
 * tools_table.c: a table of the summary as Python sees it: its columns described, each one as a list, or drawn.
 *
 * marey/_table.py puts the comfort on top.
 */
#include "tools.h"

struct table {
    PyObject ob_base;
    marey_table *table; /* lent by owner */
    PyObject *owner;
};

static const struct tools_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

PyObject *tools_table_create(const struct tools_state *state, marey_table *table, PyObject *owner)
{
    struct table *self = (struct table *)state->table_type->tp_alloc(state->table_type, 0);
    if (self == NULL)
        return NULL;
    self->table = table;
    self->owner = Py_NewRef(owner);
    return (PyObject *)self;
}

static void table_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct table *)self)->owner);
    type->tp_free(self);
    Py_DECREF(type);
}

static Py_ssize_t table_length(PyObject *self)
{
    return (Py_ssize_t)marey_table_n_rows(((struct table *)self)->table);
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
    const marey_table *table = ((struct table *)self)->table;
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

static PyObject *table_name(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(marey_table_name(((struct table *)self)->table));
}

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
    const marey_table *table = ((struct table *)self)->table;
    const Py_ssize_t column = PyLong_AsSsize_t(number);
    if (column == -1 && PyErr_Occurred())
        return NULL;
    if (column < 0 || (size_t)column >= marey_table_n_columns(table)) {
        PyErr_SetString(PyExc_IndexError, "no such column");
        return NULL;
    }
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

static PyObject *table_text(PyObject *self, PyObject *args)
{
    struct marey_text_options options = {0};
    struct tools_sink sink;
    if (!PyArg_ParseTuple(args, "Iz:text", &options.width, &options.tree) ||
        tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state_of(self),
                             marey_present_text(((struct table *)self)->table, &options, sink.stream));
}

static PyObject *table_csv(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state_of(self),
                             marey_present_csv(((struct table *)self)->table, sink.stream));
}

static PyObject *table_json(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state_of(self),
                             marey_present_json(((struct table *)self)->table, sink.stream));
}

static PyObject *table_html(PyObject *self, PyObject *max_rows)
{
    const size_t n = PyLong_AsSize_t(max_rows);
    struct tools_sink sink;
    if (PyErr_Occurred() || tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state_of(self),
                             marey_present_html(((struct table *)self)->table, n, sink.stream));
}

/* The tables of a sequence of Tables, lent. NULL and an exception otherwise; PyMem_Free() what is returned. */
static const marey_table **tables_of(const struct tools_state *state, PyObject *sequence)
{
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    const marey_table **tables = PyMem_New(const marey_table *, (size_t)n + 1);
    if (tables == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
        if (!PyObject_TypeCheck(item, state->table_type)) {
            PyErr_SetString(PyExc_TypeError, "each is a Table");
            PyMem_Free(tables);
            return NULL;
        }
        tables[i] = ((struct table *)item)->table;
    }
    return tables;
}

PyObject *tools_json_tables(PyObject *module, PyObject *given)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *sequence = PySequence_Fast(given, "tables are a list of Table");
    const marey_table **tables = sequence != NULL ? tables_of(state, sequence) : NULL;
    struct tools_sink sink;
    PyObject *text = NULL;
    if (tables != NULL && tools_sink_open(&sink) == 0) {
        const size_t n = (size_t)PySequence_Fast_GET_SIZE(sequence);
        text = tools_sink_finish(&sink, state, marey_present_json_tables(tables, n, sink.stream));
    }
    PyMem_Free(tables);
    Py_XDECREF(sequence);
    return text;
}

static PyObject *table_refuse_new(PyTypeObject *Py_UNUSED(type), PyObject *Py_UNUSED(args),
                                  PyObject *Py_UNUSED(kwargs))
{
    PyErr_SetString(PyExc_TypeError, "tables are made by Recording.table(name)");
    return NULL;
}

static PyMethodDef table_methods[] = {
    {"column", table_column, METH_O,
     "column($self, number, /)\n--\n\nA column's cells as a list; None for nulls."},
    {"text", table_text, METH_VARARGS,
     "text($self, width, tree, /)\n--\n\nThe table as people read it."},
    {"csv", table_csv, METH_NOARGS, "csv($self, /)\n--\n\nThe table as CSV, with a header line."},
    {"json", table_json, METH_NOARGS, "json($self, /)\n--\n\nThe table as a JSON list of objects."},
    {"html", table_html, METH_O, "html($self, max_rows, /)\n--\n\nThe first rows as an HTML table."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef table_getset[] = {
    {"columns", table_columns, NULL, "(name, title, unit) of each column.", NULL},
    {"name", table_name, NULL, "The table's name.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot table_slots[] = {
    {Py_tp_new, table_refuse_new}, {Py_tp_dealloc, table_dealloc}, {Py_tp_methods, table_methods},
    {Py_tp_getset, table_getset},  {Py_sq_length, table_length},   {0, NULL},
};
static PyType_Spec table_spec = {
    .name = "marey._tools.Table",
    .basicsize = sizeof(struct table),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_slots,
};

PyTypeObject *tools_table_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &table_spec, NULL);
}
