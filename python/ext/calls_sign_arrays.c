/*
 * Arrays: dtype and shape.
 *
 * numpy.ndarray and whatever derives from it are read through the structures that numpy's public headers declare; a class
 * that overrides `shape` is not asked. The usual dtypes are known by their numbers in numpy. All others (byte order, text,
 * times, records, types of other packages) get a text, once for each object that describes one.
 *
 * Other libraries' arrays are asked through getters that are written in C, called from the very type that declares them.
 */
#include "calls_signer.h"

#include <stdio.h>

/* ---- getters ---- */

static bool is_getter(const PyObject *descriptor)
{
    return Py_TYPE(descriptor) == &PyGetSetDescr_Type || Py_TYPE(descriptor) == &PyMemberDescr_Type;
}

PyObject *calls_get(struct calls_signer *signer, PyTypeObject *type, enum calls_name name,
                    PyObject *value)
{
    PyObject *const descriptor =
        type->tp_dict != NULL ? PyDict_GetItemWithError(type->tp_dict, signer->names[name]) : NULL;
    PyObject *got = NULL;
    if (descriptor != NULL && is_getter(descriptor))
        got = Py_TYPE(descriptor)->tp_descr_get(descriptor, value, (PyObject *)Py_TYPE(value));
    if (got == NULL)
        PyErr_Clear();
    return got;
}

PyObject *calls_get_own(struct calls_signer *signer, PyObject *value, enum calls_name name)
{
    PyObject *dict = PyObject_GenericGetDict(value, NULL);
    PyObject *const got = dict != NULL && PyDict_CheckExact(dict)
                              ? PyDict_GetItemWithError(dict, signer->names[name])
                              : NULL;
    Py_XDECREF(dict); /* the instance holds it */
    if (got == NULL)
        PyErr_Clear();
    return got;
}

/* ---- dtypes by text ---- */

void calls_descrs_fini(struct calls_signer *signer)
{
    for (uint32_t i = 0; signer->descrs != NULL && i < MAX_DESCRS; i++)
        Py_XDECREF(signer->descrs[i].descr);
    PyMem_Free(signer->descrs);
}

uint32_t calls_dtype_by_object(struct calls_signer *signer, PyObject *object, calls_make_text *make)
{
    if (signer->descrs == NULL)
        signer->descrs = PyMem_Calloc(MAX_DESCRS, sizeof *signer->descrs);
    if (signer->descrs == NULL)
        return 0;
    uint32_t at = (uint32_t)((uintptr_t)object >> 4) % MAX_DESCRS;
    for (; signer->descrs[at].descr != NULL; at = (at + 1) % MAX_DESCRS)
        if (signer->descrs[at].descr == object)
            return DTYPE_TEXT + signer->descrs[at].text;
    const uint32_t text = make(signer, object);
    if (text == 0)
        return 0;
    if (signer->n_descrs < MAX_DESCRS * 3 / 4 && signer->descrs[at].descr == NULL) {
        Py_INCREF(object);
        signer->descrs[at] = (struct calls_descr){object, text};
        signer->n_descrs++;
    }
    return DTYPE_TEXT + text;
}

/* ---- dtypes of numpy ---- */

enum { NUMPY_LONG = 7, NUMPY_ULONG = 8, NUMPY_LONGLONG = 9, NUMPY_ULONGLONG = 10 };
enum { NUMPY_OBJECT = 17, NUMPY_HALF = 23, NUMPY_USER = 256, NUMPY_NEW_STYLE = 2056 };

static const char *const numpy_names[] = {"bool",
                                          "int8",
                                          "uint8",
                                          "int16",
                                          "uint16",
                                          "int32",
                                          "uint32",
                                          "int64",
                                          "uint64",
                                          "int64",
                                          "uint64",
                                          "float32",
                                          "float64",
                                          "float128",
                                          "complex64",
                                          "complex128",
                                          "complex256",
                                          "object",
                                          [NUMPY_HALF] = "float16"};

static PyTypeObject *numpy_dtype_type(PyObject *descr)
{
    return calls_base_in_c(Py_TYPE(descr), "numpy.dtype");
}

struct text {
    char at[MAX_TEXT + 1];
    size_t n;
};

static void append(struct text *text, const char *more)
{
    const size_t n = strlen(more);
    const size_t room = MAX_TEXT - text->n;
    memcpy(text->at + text->n, more, n < room ? n : room);
    text->n += n < room ? n : room;
    text->at[text->n] = '\0';
}

static void append_object(struct text *text, PyObject *str)
{
    const char *const utf8 = str != NULL && PyUnicode_CheckExact(str) ? PyUnicode_AsUTF8(str) : NULL;
    append(text, utf8 != NULL ? utf8 : "?");
    PyErr_Clear();
}

/* "<f4", "|S3" */
static void append_str(struct calls_signer *signer, struct text *text, PyObject *descr)
{
    PyTypeObject *const dtype = numpy_dtype_type(descr);
    PyObject *str = dtype != NULL ? calls_get(signer, dtype, NAME_STR, descr) : NULL;
    append_object(text, str);
    Py_XDECREF(str);
}

/* "<f4", "S3", "?": as numpy writes it within a record. */
static void append_field(struct calls_signer *signer, struct text *text, PyObject *descr)
{
    struct text str = {.n = 0};
    append_str(signer, &str, descr);
    append(text, strcmp(str.at, "|b1") == 0 ? "?" : str.at + (str.at[0] == '|'));
}

/* "[('x', '<f4'), ('y', '<i4')]" */
static void append_record(struct calls_signer *signer, struct text *text, PyTypeObject *dtype,
                          PyObject *descr, PyObject *names)
{
    PyObject *fields = calls_get(signer, dtype, NAME_FIELDS, descr);
    append(text, "[");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && text->n < MAX_TEXT; i++) {
        PyObject *const name = PyTuple_GET_ITEM(names, i);
        /* A mappingproxy of a dict: both answer in C for a plain str. */
        PyObject *field =
            fields != NULL && PyUnicode_CheckExact(name) ? PyObject_GetItem(fields, name) : NULL;
        PyErr_Clear();
        append(text, i > 0 ? ", ('" : "('");
        append_object(text, name);
        append(text, "', '");
        if (field != NULL && PyTuple_Check(field) && PyTuple_GET_SIZE(field) > 0)
            append_field(signer, text, PyTuple_GET_ITEM(field, 0));
        append(text, "')");
        Py_XDECREF(field);
    }
    append(text, "]");
    Py_XDECREF(fields);
}

/* "datetime64[ns]" of "<M8[ns]" */
static void append_time(struct calls_signer *signer, struct text *text,
                        const struct numpy_descr *descr)
{
    struct text str = {.n = 0};
    append_str(signer, &str, (PyObject *)descr);
    if (descr->byteorder == '>' || str.n < 3) {
        append(text, str.at);
        return;
    }
    append(text, descr->kind == 'M' ? "datetime64" : "timedelta64");
    append(text, str.at + 3);
}

/* The text that str(dtype) has, but for records whose fields lie apart. */
static uint32_t make_numpy_text(struct calls_signer *signer, PyObject *object)
{
    const struct numpy_descr *const descr = (const struct numpy_descr *)object;
    PyTypeObject *const dtype = numpy_dtype_type(object);
    struct text text = {.n = 0};
    if (dtype == NULL)
        return 0;
    PyObject *names = descr->kind == 'V' ? calls_get(signer, dtype, NAME_NAMES, object) : NULL;
    if (names != NULL && PyTuple_CheckExact(names))
        append_record(signer, &text, dtype, object, names);
    else if (descr->kind == 'M' || descr->kind == 'm')
        append_time(signer, &text, descr);
    else if (descr->type_num >= NUMPY_USER && descr->type_num < NUMPY_NEW_STYLE &&
             descr->typeobj != NULL)
        append(&text, calls_type_name(descr->typeobj));
    else if (descr->type_num < 0 || descr->type_num >= NUMPY_USER)
        append(&text, calls_type_name(Py_TYPE(object)));
    else
        append_str(signer, &text, object);
    Py_XDECREF(names);
    return calls_text(signer, text.at, text.n);
}

static uint32_t numpy_text(struct calls_signer *signer, struct numpy_descr *descr)
{
    PyObject *error, *value, *trace;
    PyErr_Fetch(&error, &value, &trace);
    const uint32_t dtype = calls_dtype_by_object(signer, (PyObject *)descr, make_numpy_text);
    PyErr_Restore(error, value, trace);
    return dtype != 0 ? dtype : DTYPE_TEXT; /* text 0: "..." */
}

uint32_t calls_numpy_dtype(struct calls_signer *signer, struct numpy_descr *descr)
{
    const int number = descr->type_num;
    const bool is_usual = (number >= 0 && number <= NUMPY_OBJECT) || number == NUMPY_HALF;
    if (!is_usual || (descr->byteorder != '=' && descr->byteorder != '|'))
        return numpy_text(signer, descr);
    if (number == NUMPY_LONGLONG)
        return NUMPY_LONG; /* two numbers, one name */
    return number == NUMPY_ULONGLONG ? NUMPY_ULONG : (uint32_t)number;
}

const char *calls_dtype_name(const struct calls_signer *signer, uint32_t dtype)
{
    if (dtype > DTYPE_TEXT)
        return signer->texts.texts[dtype - DTYPE_TEXT];
    return dtype < sizeof numpy_names / sizeof *numpy_names && numpy_names[dtype] != NULL
               ? numpy_names[dtype]
               : "...";
}

/* ---- numpy ---- */

enum { NUMPY_C = 1, NUMPY_F = 2, NUMPY_WRITEABLE = 0x400 };

static uint8_t layout_of(const struct numpy_array *array)
{
    const bool is_c = array->flags & NUMPY_C, is_f = array->flags & NUMPY_F;
    return (uint8_t)(ARRAY_LAYOUT | (is_c ? ARRAY_C : 0) | (is_f ? ARRAY_F : 0) |
                     (array->flags & NUMPY_WRITEABLE ? 0 : ARRAY_READONLY));
}

void calls_put_numpy(struct calls_put *put, PyObject *value)
{
    const struct numpy_array *const array = (const struct numpy_array *)value;
    const enum calls_level level = put->signer->options.level;
    const bool has_shape = level >= CALLS_SHAPE;
    const struct calls_array_word word = {
        .dtype = calls_numpy_dtype(put->signer, array->descr),
        .n_dims = has_shape ? (uint8_t)array->nd : NO_SHAPE,
        .flags = level >= CALLS_LAYOUT ? layout_of(array) : 0,
    };
    calls_put(put, array_word(word));
    for (int i = 0; has_shape && i < array->nd; i++)
        calls_put(put, (uint64_t)array->dimensions[i]);
}

/* ---- others ---- */

bool calls_put_shape(struct calls_put *put, struct calls_array_word word, PyObject *shape)
{
    if (put->signer->options.level < CALLS_SHAPE) {
        word.n_dims = NO_SHAPE;
        calls_put(put, array_word(word));
        return true;
    }
    if (shape == NULL || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) >= NO_SHAPE)
        return false;
    word.n_dims = (uint8_t)PyTuple_GET_SIZE(shape);
    calls_put(put, array_word(word));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        PyObject *const size = PyTuple_GET_ITEM(shape, i);
        const long long number = PyLong_CheckExact(size) ? PyLong_AsLongLong(size) : -1;
        calls_put(put, number >= 0 ? (uint64_t)number : SIZE_UNKNOWN);
    }
    PyErr_Clear();
    return true;
}

static const char cupy_base[] = "cupy._core.core._ndarray_base";

/* nanobind's function behind jaxlib's property `aval`: lent. */
static PyObject *jax_getter(struct calls_signer *signer, PyTypeObject *type)
{
    PyObject *const property = type->tp_dict != NULL
                                   ? PyDict_GetItemWithError(type->tp_dict, signer->names[NAME_AVAL])
                                   : NULL;
    if (property == NULL || Py_TYPE(property) != &PyProperty_Type)
        return NULL;
    PyObject *getter = PyObject_GetAttr(property, signer->names[NAME_FGET]); /* a member: no code */
    PyErr_Clear();
    const bool is_native = getter != NULL && strncmp(Py_TYPE(getter)->tp_name, "nanobind.", 9) == 0;
    Py_XDECREF(getter); /* the property holds it */
    return is_native ? getter : NULL;
}

bool calls_is_getters(struct calls_signer *signer, PyTypeObject *type, enum calls_kind *kind)
{
    const char *const name = calls_type_name(type);
    if (calls_base_in_c(type, cupy_base) != NULL)
        *kind = KIND_GETTERS;
    else if (strcmp(name, "ArrayImpl") == 0 &&
             (calls_imported("jaxlib._jax", name) == (PyObject *)type ||
              calls_imported("jaxlib.xla_extension", name) == (PyObject *)type) &&
             jax_getter(signer, type) != NULL)
        *kind = KIND_JAX;
    else if (strcmp(name, "DeviceNDArray") == 0 &&
             calls_imported("numba.cuda.cudadrv.devicearray", name) == (PyObject *)type)
        *kind = KIND_DEVICE;
    else
        return false;
    return true;
}

/* New references to shape and dtype; NULL where it has none. */
static void ask(struct calls_signer *signer, enum calls_kind kind, PyObject *value,
                PyObject **shape, PyObject **dtype)
{
    if (kind == KIND_DEVICE) {
        *shape = calls_get_own(signer, value, NAME_SHAPE);
        *dtype = calls_get_own(signer, value, NAME_DTYPE);
        Py_XINCREF(*shape);
        Py_XINCREF(*dtype);
        return;
    }
    PyTypeObject *type = calls_base_in_c(Py_TYPE(value), cupy_base);
    PyObject *asked = value;
    Py_INCREF(asked);
    if (kind == KIND_JAX) {
        Py_DECREF(asked);
        PyObject *const getter = jax_getter(signer, Py_TYPE(value));
        asked = getter != NULL ? PyObject_CallFunctionObjArgs(getter, value, NULL) : NULL;
        type = asked != NULL ? Py_TYPE(asked) : NULL;
        PyErr_Clear();
    }
    *shape = type != NULL ? calls_get(signer, type, NAME_SHAPE, asked) : NULL;
    *dtype = type != NULL ? calls_get(signer, type, NAME_DTYPE, asked) : NULL;
    Py_XDECREF(asked);
}

bool calls_put_getters(struct calls_put *put, enum calls_kind kind, PyObject *value)
{
    PyObject *error, *error_value, *trace, *shape, *dtype;
    PyErr_Fetch(&error, &error_value, &trace);
    ask(put->signer, kind, value, &shape, &dtype);
    bool is_put = false;
    if (dtype != NULL && numpy_dtype_type(dtype) != NULL) {
        struct calls_array_word word = {
            .dtype = calls_numpy_dtype(put->signer, (struct numpy_descr *)dtype)};
        if (put->signer->options.level >= CALLS_LAYOUT && kind != KIND_JAX)
            word.device = (uint16_t)calls_text(put->signer, "cuda", 4);
        is_put = calls_put_shape(put, word, shape);
    }
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    PyErr_Restore(error, error_value, trace);
    return is_put;
}
