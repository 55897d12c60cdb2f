/*
 * Tables of pandas: which types of elements, how many columns of each, how many rows. A DataFrame or Series keeps them in a
 * manager of blocks, in its own dict; blocks are objects with getters in C; their values are arrays of numpy, or pandas'
 * own. Nothing that pandas writes in Python is called, so classes that derive from these are read the same way.
 */
#include "calls_signer.h"

#include <stdio.h>

enum { MAX_GROUPS = 8 };

struct table {
    uint64_t rows;
    uint64_t groups[MAX_GROUPS]; /* a dtype and 32 bits of columns */
    uint32_t n_groups;
    bool has_more;
};

static bool derives(PyTypeObject *type, const PyObject *base)
{
    for (; type != NULL; type = type->tp_base)
        if ((PyObject *)type == base)
            return true;
    return false;
}

bool calls_is_pandas(PyTypeObject *type, enum calls_kind *kind)
{
    PyObject *const frame = calls_imported("pandas.core.frame", "DataFrame");
    PyObject *const series = calls_imported("pandas.core.series", "Series");
    if (frame != NULL && derives(type, frame))
        *kind = KIND_FRAME;
    else if (series != NULL && derives(type, series))
        *kind = KIND_SERIES;
    else
        return false;
    return true;
}

/* ---- blocks ---- */

/* The class of pandas' own in C that a type derives from; of some versions it is made while they are loaded. NULL for none. */
static PyTypeObject *base_in_c(PyTypeObject *type, const char *module, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", module, name);
    PyTypeObject *const base = calls_base_in_c(type, whole);
    if (base != NULL)
        return base;
    PyObject *const imported = calls_imported(module, name);
    return imported != NULL && derives(type, imported) ? (PyTypeObject *)imported : NULL;
}

static bool is_numpy(PyObject *value)
{
    return calls_base_in_c(Py_TYPE(value), "numpy.ndarray") != NULL;
}

/* The array behind one of pandas' own: a new reference; NULL when it has none that we see. */
static PyObject *array_within(struct calls_signer *signer, PyObject *values)
{
    PyTypeObject *const backed = base_in_c(Py_TYPE(values), "pandas._libs.arrays", "NDArrayBacked");
    PyObject *array = backed != NULL ? calls_get(signer, backed, NAME_NDARRAY, values) : NULL;
    if (array == NULL && backed == NULL) {
        array = calls_get_own(signer, values, NAME_DATA);
        Py_XINCREF(array);
    }
    if (array == NULL || is_numpy(array))
        return array;
    Py_DECREF(array);
    return NULL;
}

static void add_group(struct table *table, uint32_t dtype, uint64_t columns)
{
    for (uint32_t i = 0; i < table->n_groups; i++)
        if (table->groups[i] >> 32 == dtype) {
            table->groups[i] += columns;
            return;
        }
    if (table->n_groups == MAX_GROUPS)
        table->has_more = true;
    else
        table->groups[table->n_groups++] = (uint64_t)dtype << 32 | (uint32_t)columns;
}

static void add_array(struct table *table, const struct numpy_array *array)
{
    if (array->nd > 0)
        table->rows = (uint64_t)array->dimensions[array->nd - 1];
}

/* One block's values: columns by rows, or one column. */
static void add_values(struct calls_signer *signer, struct table *table, PyObject *values)
{
    PyObject *array;
    uint32_t dtype;
    if (is_numpy(values)) {
        array = values;
        Py_INCREF(array);
        dtype = calls_numpy_dtype(signer, ((struct numpy_array *)array)->descr);
    } else {
        const char *const name = calls_type_name(Py_TYPE(values));
        dtype = DTYPE_TEXT + calls_text(signer, name, strlen(name));
        array = array_within(signer, values);
    }
    const struct numpy_array *const numpy = (const struct numpy_array *)array;
    if (array != NULL)
        add_array(table, numpy);
    add_group(table, dtype, array != NULL && numpy->nd == 2 ? (uint64_t)numpy->dimensions[0] : 1);
    Py_XDECREF(array);
}

/* A tuple of blocks: a new reference, or NULL. */
static PyObject *blocks_of(struct calls_signer *signer, PyObject *value)
{
    PyObject *const manager = calls_get_own(signer, value, NAME_MANAGER);
    if (manager == NULL)
        return NULL;
    PyTypeObject *const base = base_in_c(Py_TYPE(manager), "pandas._libs.internals", "BlockManager");
    PyObject *blocks = base != NULL ? calls_get(signer, base, NAME_BLOCKS, manager) : NULL;
    if (blocks == NULL && base == NULL) {
        blocks = calls_get_own(signer, manager, NAME_BLOCKS);
        Py_XINCREF(blocks);
    }
    if (blocks == NULL || PyTuple_CheckExact(blocks))
        return blocks;
    Py_DECREF(blocks);
    return NULL;
}

static bool read_table(struct calls_signer *signer, PyObject *value, struct table *table)
{
    PyObject *blocks = blocks_of(signer, value);
    if (blocks == NULL)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        PyObject *const block = PyTuple_GET_ITEM(blocks, i);
        PyTypeObject *base = base_in_c(Py_TYPE(block), "pandas._libs.internals", "Block");
        if (base == NULL)
            base = base_in_c(Py_TYPE(block), "pandas._libs.internals", "SharedBlock");
        PyObject *values = base != NULL ? calls_get(signer, base, NAME_VALUES, block) : NULL;
        if (values != NULL)
            add_values(signer, table, values);
        else
            table->has_more = true;
        Py_XDECREF(values);
    }
    Py_DECREF(blocks);
    return true;
}

bool calls_put_pandas(struct calls_put *put, enum calls_kind kind, PyObject *value)
{
    struct table table = {.rows = SIZE_UNKNOWN};
    PyObject *error, *error_value, *trace;
    PyErr_Fetch(&error, &error_value, &trace);
    const bool is_read = read_table(put->signer, value, &table);
    PyErr_Restore(error, error_value, trace);
    if (!is_read || (kind == KIND_SERIES && table.n_groups != 1))
        return false;
    const bool has_rows = put->signer->options.level >= CALLS_SHAPE;
    const struct calls_container_word word = {.n_first = (uint16_t)table.n_groups,
                                              .has_more = table.has_more};
    calls_put(put, container_word(word));
    calls_put(put, has_rows ? table.rows : SIZE_UNKNOWN);
    for (uint32_t i = 0; i < table.n_groups; i++)
        calls_put(put, table.groups[i]);
    return true;
}
