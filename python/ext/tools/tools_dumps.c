/*
 * tools_dumps.c: reading dumps. Dumps lists steps and values; DumpedTensor exports the numbers of one value as a
 * buffer.
 *
 * Releasing a step would invalidate the numbers, so that is refused until no DumpedTensor of it is left. The numbers of
 * a value are freed with its last DumpedTensor.
 */
#include "tools/tools.h"

#include <string.h>

#include <marey/dumpfile.h>

struct dumps {
    PyObject ob_base;
    marey_dumps *opened;
    size_t *n_lent; /* by step: living tensors */
    int busy;
};

struct dumped {
    PyObject ob_base;
    struct dumps *dumps; /* owned */
    size_t step, value;
    struct marey_tensor tensor;
    Py_ssize_t *shape, *strides;
};

/* ---- DumpedTensor ---- */

/* Formats of the struct module; types that it lacks are integers of their width. */
static const char *format_of(enum marey_dtype dtype)
{
    static const char *const formats[MAREY_N_DTYPES] = {
        [MAREY_BOOL] = "?", [MAREY_I8] = "b",   [MAREY_U16] = "H",  [MAREY_BF16] = "H",
        [MAREY_I16] = "h",  [MAREY_U32] = "I",  [MAREY_C32] = "I",  [MAREY_I32] = "i",
        [MAREY_U64] = "Q",  [MAREY_I64] = "q",  [MAREY_F16] = "e",  [MAREY_F32] = "f",
        [MAREY_F64] = "d",  [MAREY_C64] = "Zf", [MAREY_C128] = "Zd"};
    return formats[dtype] != NULL ? formats[dtype] : "B";
}

static int dumped_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    static char nothing[16];
    const struct dumped *self = (struct dumped *)object;
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "a dump is not written to");
        view->obj = NULL;
        return -1;
    }
    const Py_ssize_t itemsize = (Py_ssize_t)marey_dtype_size(self->tensor.dtype);
    *view = (Py_buffer){
        .obj = Py_NewRef(object),
        .buf = self->tensor.data != NULL ? (void *)(uintptr_t)self->tensor.data : nothing,
        .len = (Py_ssize_t)marey_tensor_bytes(&self->tensor),
        .itemsize = itemsize,
        .readonly = 1,
        .ndim = (int)self->tensor.rank,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format_of(self->tensor.dtype) : NULL,
        .shape = flags & PyBUF_ND ? self->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL,
    };
    return 0;
}

static void dumped_finalize(PyObject *object)
{
    struct dumped *self = (struct dumped *)object;
    if (self->dumps != NULL) {
        self->dumps->n_lent[self->step]--;
        if (!self->dumps->busy) /* else another thread may just now get the same value, and they go with the step */
            marey_dumps_drop(self->dumps->opened, self->step, self->value);
        Py_DECREF((PyObject *)self->dumps);
    }
    PyMem_Free(self->shape);
}

EXT_PROPERTY(dumped_dtype,
             PyUnicode_FromString(marey_dtype_name(((struct dumped *)self)->tensor.dtype)))

static PyObject *as_tuple(PyObject *list)
{
    PyObject *tuple = list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *sizes_tuple(const int64_t *sizes, uint32_t rank)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < rank; i++)
        list = ext_append(list, PyLong_FromLongLong(sizes[i]));
    return as_tuple(list);
}

EXT_PROPERTY(dumped_shape, sizes_tuple(((struct dumped *)self)->tensor.sizes,
                                       ((struct dumped *)self)->tensor.rank))

/* text(i): one element as the shortest text that reads back to it */
static PyObject *dumped_text(PyObject *object, PyObject *number)
{
    const struct dumped *self = (struct dumped *)object;
    char text[128];
    const unsigned long long i = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    const marey_status status = marey_tensor_element(&self->tensor, i, text, sizeof text);
    return status == MAREY_OK ? PyUnicode_FromString(text)
                              : tools_raise(tools_state_of(object), status);
}

static PyGetSetDef dumped_getset[] = {
    {"dtype", dumped_dtype, NULL, "The type of its elements, as torch calls it.", NULL},
    {"shape", dumped_shape, NULL, "Its sizes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef dumped_methods[] = {
    {"text", dumped_text, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

EXT_TYPE(tools_dumped_spec, "marey._tools.DumpedTensor", struct dumped,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, {Py_tp_finalize, dumped_finalize},
         {Py_tp_getset, dumped_getset}, {Py_tp_methods, dumped_methods},
         {Py_bf_getbuffer, dumped_getbuffer})

/* Sizes and strides in the buffer protocol's form; -1 on out of memory. */
static int set_layout(struct dumped *self)
{
    const size_t rank = self->tensor.rank;
    self->shape = PyMem_Calloc(2 * rank + 1, sizeof *self->shape);
    if (self->shape == NULL)
        return EXT_NO_MEMORY();
    self->strides = self->shape + rank;
    Py_ssize_t stride = (Py_ssize_t)marey_dtype_size(self->tensor.dtype);
    for (size_t i = rank; i-- > 0;) {
        self->shape[i] = (Py_ssize_t)self->tensor.sizes[i];
        self->strides[i] = stride;
        stride *= self->shape[i] > 0 ? self->shape[i] : 1;
    }
    return 0;
}

/* ---- Dumps ---- */

static int enter(PyObject *self)
{
    return tools_enter(self, &((struct dumps *)self)->busy, "dump");
}

static int leave(PyObject *self, marey_status status)
{
    return tools_leave(self, &((struct dumps *)self)->busy, status);
}

static void dumps_finalize(PyObject *object)
{
    struct dumps *self = (struct dumps *)object;
    marey_dumps_close(self->opened);
    PyMem_Free(self->n_lent);
}

/* Dumps(path) */
static PyObject *dumps_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *path EXT_OWNED = NULL;
    if (!PyArg_ParseTuple(args, "O&:Dumps", PyUnicode_FSConverter, &path))
        return NULL;
    struct dumps *self = (struct dumps *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_dumps_open(PyBytes_AS_STRING(path), &self->opened));
    if (status != MAREY_OK)
        tools_raise(tools_state_of((PyObject *)self), status);
    else if ((self->n_lent =
                  PyMem_Calloc(marey_dumps_count(self->opened) + 1, sizeof *self->n_lent)) == NULL)
        PyErr_NoMemory();
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)self;
}

static Py_ssize_t dumps_length(PyObject *object)
{
    return (Py_ssize_t)marey_dumps_count(((struct dumps *)object)->opened);
}

static PyObject *text_or_none(const char *text)
{
    return tools_text(text, text != NULL ? strlen(text) : 0);
}

static PyObject *rank_or_none(int64_t rank)
{
    return rank >= 0 ? PyLong_FromLongLong(rank) : Py_NewRef(Py_None);
}

/* step(i): its description */
static PyObject *dumps_step(PyObject *object, PyObject *args)
{
    struct dumps *self = (struct dumps *)object;
    struct marey_dumped_step step;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(args, "n:step", &i) || enter(object) < 0 ||
        leave(object, marey_dumps_step(self->opened, (size_t)i, &step)) < 0)
        return NULL;
    return Py_BuildValue(
        "{sKsNsNsKsKsNsNsNsNsNsssNsN}", "step", (unsigned long long)step.step, "rank",
        rank_or_none(step.rank), "world", rank_or_none(step.world), "pid",
        (unsigned long long)step.pid, "unix_ns", (unsigned long long)step.unix_ns, "host",
        text_or_none(step.host), "run", text_or_none(step.run), "mode", text_or_none(step.mode),
        "reason", text_or_none(step.reason), "path", text_or_none(step.path), "layout",
        step.layout == MAREY_DUMP_LAYOUT_ACCVLAB ? "accvlab" : "marey", "complete",
        PyBool_FromLong(step.is_complete != 0), "single", PyBool_FromLong(step.is_single != 0));
}

/* ---- values ---- */

static PyObject *path_tuple(const struct marey_dump_part *parts, size_t n)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++)
        list = ext_append(list, parts[i].key != NULL ? tools_text(parts[i].key, parts[i].key_len)
                                                     : PyLong_FromUnsignedLongLong(parts[i].index));
    return as_tuple(list);
}

static PyObject *hex(const struct marey_digest *digest)
{
    char text[2 * sizeof digest->bytes];
    static const char digits[] = "0123456789abcdef";
    if (digest == NULL)
        return Py_NewRef(Py_None);
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        text[2 * i] = digits[digest->bytes[i] >> 4];
        text[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    return PyUnicode_FromStringAndSize(text, sizeof text);
}

static PyObject *stats_dict(const struct marey_tensor_stats *stats)
{
    if (stats == NULL)
        return Py_NewRef(Py_None);
    PyObject *histogram = PyDict_New();
    for (int i = 0; histogram != NULL && i < MAREY_STATS_BINS; i++)
        if (stats->histogram[i] != 0 && ext_put(histogram, PyLong_FromLong(i),
                                                PyLong_FromUnsignedLongLong(stats->histogram[i])) < 0)
            Py_CLEAR(histogram);
    if (histogram == NULL)
        return NULL;
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsdsdsdsdsdsN}", "n", (unsigned long long)stats->n, "nan",
        (unsigned long long)stats->n_nan, "pos_inf", (unsigned long long)stats->n_pos_inf,
        "neg_inf", (unsigned long long)stats->n_neg_inf, "zero", (unsigned long long)stats->n_zero,
        "denormal", (unsigned long long)stats->n_denormal, "negative",
        (unsigned long long)stats->n_negative, "min", stats->min, "max", stats->max, "mean",
        stats->mean, "std", stats->std, "l2", stats->l2, "histogram", histogram);
}

static PyObject *value_dict(const struct marey_dumped_value *value)
{
    static const char *const kinds[] = {"tensor", "text", "literal", "dict", "list", "bytes"};
    static const char *const types[] = {"container", "json",   "binary", "image_rgb",  "image_bgr",
                                        "image_i",   "pickle", "npy",    "safetensors"};
    const int is_tensor = value->dtype != MAREY_DTYPE_NONE;
    PyObject *files = PyList_New(0);
    for (size_t i = 0; files != NULL && i < value->n_files; i++)
        files = ext_append(files, PyUnicode_DecodeFSDefault(value->files[i]));
    return Py_BuildValue(
        "{sssNsNsKsssNsssNsNsNsKsNsNsNsNsNsNsN}", "tree",
        value->tree == MAREY_DUMP_GRADIENTS ? "gradients" : "tensors", "path",
        path_tuple(value->parts, value->n_parts), "name",
        tools_text(value->name, strlen(value->name)), "seq", (unsigned long long)value->seq, "kind",
        kinds[value->kind], "text", tools_text(value->text, value->text_len), "type",
        types[value->type], "dtype", text_or_none(is_tensor ? marey_dtype_name(value->dtype) : NULL),
        "shape", is_tensor ? sizes_tuple(value->sizes, value->rank) : Py_NewRef(Py_None), "strides",
        value->strides != NULL ? sizes_tuple(value->strides, value->rank) : Py_NewRef(Py_None),
        "bytes", (unsigned long long)value->n_bytes, "has_data",
        PyBool_FromLong(value->has_data != 0), "phase", text_or_none(value->phase), "source",
        text_or_none(value->source), "digest", hex(value->digest), "stats",
        stats_dict(value->stats), "missing", text_or_none(value->missing), "files", files);
}

/* values(i): a dictionary for each value of step i, in order */
static PyObject *dumps_values(PyObject *object, PyObject *args)
{
    struct dumps *self = (struct dumps *)object;
    const struct marey_dumped_value *values;
    size_t n;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(args, "n:values", &i) || enter(object) < 0)
        return NULL;
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_dumps_values(self->opened, (size_t)i, &values, &n));
    PyObject *list = leave(object, status) == 0 ? PyList_New(0) : NULL;
    for (size_t k = 0; list != NULL && k < n; k++)
        list = ext_append(list, value_dict(&values[k]));
    return list;
}

/* get(i, v): the numbers of value v of step i */
static PyObject *dumps_get(PyObject *object, PyObject *args)
{
    struct dumps *self = (struct dumps *)object;
    struct marey_tensor tensor;
    Py_ssize_t i, v;
    if (!PyArg_ParseTuple(args, "nn:get", &i, &v) || enter(object) < 0)
        return NULL;
    if (leave(object,
              EXT_STATUS_UNLOCKED(marey_dumps_get(self->opened, (size_t)i, (size_t)v, &tensor))) < 0)
        return NULL;
    struct dumped *made = tools_new(tools_state_of(object), TOOLS_DUMPED);
    if (made == NULL)
        return NULL;
    made->tensor = tensor;
    made->step = (size_t)i;
    made->value = (size_t)v;
    made->dumps = (struct dumps *)Py_NewRef(object);
    self->n_lent[i]++;
    if (set_layout(made) < 0)
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* release(i): frees what was read of step i; False while it has living tensors */
static PyObject *dumps_release(PyObject *object, PyObject *args)
{
    struct dumps *self = (struct dumps *)object;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(args, "n:release", &i) || enter(object) < 0)
        return NULL;
    const int is_free = i >= 0 && (size_t)i < marey_dumps_count(self->opened) && self->n_lent[i] == 0;
    if (is_free)
        marey_dumps_release(self->opened, (size_t)i);
    self->busy = 0;
    return PyBool_FromLong(is_free);
}

static PyObject *dumps_notes(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const marey_dumps *const opened = ((struct dumps *)object)->opened;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < marey_dumps_n_notes(opened); i++)
        list = ext_append(list, text_or_none(marey_dumps_note(opened, i)));
    return list;
}

static PyMethodDef dumps_methods[] = {
    {"step", dumps_step, METH_VARARGS, NULL},  {"values", dumps_values, METH_VARARGS, NULL},
    {"get", dumps_get, METH_VARARGS, NULL},    {"release", dumps_release, METH_VARARGS, NULL},
    {"notes", dumps_notes, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};

EXT_TYPE(tools_dumps_spec, "marey._tools.Dumps", struct dumps, Py_TPFLAGS_DEFAULT,
         {Py_tp_new, dumps_new}, {Py_tp_finalize, dumps_finalize}, {Py_tp_methods, dumps_methods},
         {Py_sq_length, dumps_length})
