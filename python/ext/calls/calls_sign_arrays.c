/*
 * Values of libraries: arrays of numpy, CuPy, JAX and numba, torch tensors, pandas tables.
 *
 * numpy.ndarray and its subclasses are read through the structures in numpy's public headers, even if a class overrides
 * `shape`. Common dtypes are identified by their numbers in numpy. All others (byte order, text, times, records, types
 * of other packages) get a text, once per dtype object.
 *
 * Arrays of other libraries are read through getters written in C, taken from the type that declares them.
 */
#include "calls/calls_signer.h"
#include "torch_abi.h"

#include <dlfcn.h>
#include <stdio.h>

/* ---- numpy's structures ---- */

/* The layout in its public headers, in all versions since 1.7. */
struct numpy_descr {
    PyObject ob_base;
    PyTypeObject *typeobj;
    char kind, type, byteorder, former_flags;
    int type_num;
};
struct numpy_array {
    PyObject ob_base;
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base;
    struct numpy_descr *descr;
    int flags;
};

/* ---- getters ---- */

static bool is_getter(const PyObject *descriptor)
{
    return Py_TYPE(descriptor) == &PyGetSetDescr_Type || Py_TYPE(descriptor) == &PyMemberDescr_Type;
}

/* Calls a C getter from a type's own dict: a new reference; NULL without an exception if there is none. */
static PyObject *get(struct calls_signer *signer, PyTypeObject *type, enum calls_name name,
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

/* An attribute in the instance dict: a new reference, or NULL. */
static PyObject *get_own(struct calls_signer *signer, PyObject *value, enum calls_name name)
{
    PyObject *dict EXT_OWNED = PyObject_GenericGetDict(value, NULL);
    PyObject *const got = dict != NULL && PyDict_CheckExact(dict)
                              ? Py_XNewRef(PyDict_GetItemWithError(dict, signer->names[name]))
                              : NULL;
    if (got == NULL)
        PyErr_Clear();
    return got;
}

/* ---- dtypes by text ---- */

void calls_dtypes_fini(struct calls_signer *signer)
{
    for (size_t i = 0; i < signer->dtypes.n_entries; i++)
        Py_XDECREF((PyObject *)(uintptr_t)signer->dtypes.entries[i].key);
    PyMem_Free(signer->dtypes.entries);
}

/* The dtype of an array word; 0: unknown. `make` creates its text, once per object. */
static uint32_t dtype_by_object(struct calls_signer *signer, PyObject *object,
                                uint32_t (*make)(struct calls_signer *, PyObject *))
{
    uint32_t text = calls_table_get(&signer->dtypes, object);
    if (text != 0)
        return DTYPE_TEXT + text;
    text = make(signer, object);
    if (text == 0)
        return 0;
    /* Creating the text may have added it already. */
    if (signer->dtypes.n_used < MAX_DTYPES && calls_table_get(&signer->dtypes, object) == 0 &&
        calls_table_set(&signer->dtypes, object, text))
        Py_INCREF(object);
    return DTYPE_TEXT + text;
}

/* ---- dtypes of numpy ---- */

enum { NUMPY_LONG = 7, NUMPY_ULONG = 8, NUMPY_LONGLONG = 9, NUMPY_ULONGLONG = 10 };
enum { NUMPY_OBJECT = 17, NUMPY_HALF = 23, NUMPY_USER = 256, NUMPY_NEW_STYLE = 2056 };

static const char *const numpy_names[] = {
    "bool",       "int8",   "uint8",  "int16",   "uint16",  "int32",    "uint32",    "int64",
    "uint64",     "int64",  "uint64", "float32", "float64", "float128", "complex64", "complex128",
    "complex256", "object", NULL,     NULL,      NULL,      NULL,       NULL,        "float16"};

static PyTypeObject *numpy_dtype_type(PyObject *descr)
{
    return calls_base_in_c(Py_TYPE(descr), "numpy.dtype");
}

static void append_object(struct calls_text *text, PyObject *str)
{
    const char *const utf8 = str != NULL && PyUnicode_CheckExact(str) ? PyUnicode_AsUTF8(str) : NULL;
    calls_append(text, utf8 != NULL ? utf8 : "?");
    PyErr_Clear();
}

/* "<f4", "|S3" */
static void append_str(struct calls_signer *signer, struct calls_text *text, PyObject *descr)
{
    PyTypeObject *const dtype = numpy_dtype_type(descr);
    PyObject *str EXT_OWNED = dtype != NULL ? get(signer, dtype, NAME_STR, descr) : NULL;
    append_object(text, str);
}

/* "<f4", "S3", "?": numpy's form inside a record. */
static void append_field(struct calls_signer *signer, struct calls_text *text, PyObject *descr)
{
    struct calls_text str = {.length = 0};
    append_str(signer, &str, descr);
    calls_append(text, strcmp(str.text, "|b1") == 0 ? "?" : str.text + (str.text[0] == '|'));
}

/* "[('x', '<f4'), ('y', '<i4')]" */
static void append_record(struct calls_signer *signer, struct calls_text *text, PyTypeObject *dtype,
                          PyObject *descr, PyObject *names)
{
    PyObject *fields EXT_OWNED = get(signer, dtype, NAME_FIELDS, descr);
    calls_append(text, "[");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && text->length < MAX_TEXT; i++) {
        PyObject *const name = PyTuple_GET_ITEM(names, i);
        /* A mappingproxy of a dict: both are implemented in C for a plain str. */
        PyObject *field EXT_OWNED =
            fields != NULL && PyUnicode_CheckExact(name) ? PyObject_GetItem(fields, name) : NULL;
        PyErr_Clear();
        calls_append(text, i > 0 ? ", ('" : "('");
        append_object(text, name);
        calls_append(text, "', '");
        if (field != NULL && PyTuple_Check(field) && PyTuple_GET_SIZE(field) > 0)
            append_field(signer, text, PyTuple_GET_ITEM(field, 0));
        calls_append(text, "')");
    }
    calls_append(text, "]");
}

/* "datetime64[ns]" for "<M8[ns]" */
static void append_time(struct calls_signer *signer, struct calls_text *text,
                        const struct numpy_descr *descr)
{
    struct calls_text str = {.length = 0};
    append_str(signer, &str, (PyObject *)descr);
    if (descr->byteorder == '>' || str.length < 3) {
        calls_append(text, str.text);
        return;
    }
    calls_append(text, descr->kind == 'M' ? "datetime64" : "timedelta64");
    calls_append(text, str.text + 3);
}

/* The text of str(dtype), except for records with gaps. */
static uint32_t make_numpy_text(struct calls_signer *signer, PyObject *object)
{
    const struct numpy_descr *const descr = (const struct numpy_descr *)object;
    PyTypeObject *const dtype = numpy_dtype_type(object);
    struct calls_text text = {.length = 0};
    if (dtype == NULL)
        return 0;
    PyObject *names EXT_OWNED = descr->kind == 'V' ? get(signer, dtype, NAME_NAMES, object) : NULL;
    if (names != NULL && PyTuple_CheckExact(names))
        append_record(signer, &text, dtype, object, names);
    else if (descr->kind == 'M' || descr->kind == 'm')
        append_time(signer, &text, descr);
    else if (descr->type_num >= NUMPY_USER && descr->type_num < NUMPY_NEW_STYLE &&
             descr->typeobj != NULL)
        calls_append(&text, calls_type_name(descr->typeobj));
    else if (descr->type_num < 0 || descr->type_num >= NUMPY_USER)
        calls_append(&text, calls_type_name(Py_TYPE(object)));
    else
        append_str(signer, &text, object);
    return calls_text(signer, text.text, text.length);
}

static uint32_t numpy_text(struct calls_signer *signer, struct numpy_descr *descr)
{
    EXT_KEEP_ERROR();
    const uint32_t dtype = dtype_by_object(signer, (PyObject *)descr, make_numpy_text);
    return dtype != 0 ? dtype : DTYPE_TEXT; /* text 0: "..." */
}

static uint32_t numpy_dtype(struct calls_signer *signer, struct numpy_descr *descr)
{
    const int number = descr->type_num;
    const bool has_own_number = (number >= 0 && number <= NUMPY_OBJECT) || number == NUMPY_HALF;
    if (!has_own_number || (descr->byteorder != '=' && descr->byteorder != '|'))
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
        .dtype = numpy_dtype(put->signer, array->descr),
        .n_dims = has_shape ? (uint8_t)array->nd : NO_SHAPE,
        .flags = level >= CALLS_LAYOUT ? layout_of(array) : 0,
    };
    calls_put(put, array_word(word));
    for (int i = 0; has_shape && i < array->nd; i++)
        calls_put(put, (uint64_t)array->dimensions[i]);
}

/* ---- others ---- */

/* Adds an array word and the sizes in a tuple, whose elements may be anything. False if it is not a tuple. */
static bool put_shape(struct calls_put *put, struct calls_array_word word, PyObject *shape)
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

/* nanobind's getter of jaxlib's property `aval`: borrowed. */
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

/* New references to shape and dtype; NULL if missing. */
static void ask(struct calls_signer *signer, enum calls_kind kind, PyObject *value,
                PyObject **shape, PyObject **dtype)
{
    if (kind == KIND_DEVICE) {
        *shape = get_own(signer, value, NAME_SHAPE);
        *dtype = get_own(signer, value, NAME_DTYPE);
        return;
    }
    PyObject *const getter = kind == KIND_JAX ? jax_getter(signer, Py_TYPE(value)) : NULL;
    PyObject *const asked EXT_OWNED = kind != KIND_JAX ? Py_NewRef(value)
                                      : getter != NULL
                                          ? PyObject_CallFunctionObjArgs(getter, value, NULL)
                                          : NULL;
    PyTypeObject *const type = kind != KIND_JAX ? calls_base_in_c(Py_TYPE(value), CALLS_CUPY_BASE)
                               : asked != NULL  ? Py_TYPE(asked)
                                                : NULL;
    PyErr_Clear();
    *shape = type != NULL ? get(signer, type, NAME_SHAPE, asked) : NULL;
    *dtype = type != NULL ? get(signer, type, NAME_DTYPE, asked) : NULL;
}

bool calls_put_getters(struct calls_put *put, enum calls_kind kind, PyObject *value)
{
    EXT_KEEP_ERROR();
    PyObject *shape EXT_OWNED = NULL;
    PyObject *dtype EXT_OWNED = NULL;
    ask(put->signer, kind, value, &shape, &dtype);
    bool is_put = false;
    if (dtype != NULL && numpy_dtype_type(dtype) != NULL) {
        struct calls_array_word word = {.dtype =
                                            numpy_dtype(put->signer, (struct numpy_descr *)dtype)};
        if (put->signer->options.level >= CALLS_LAYOUT && kind != KIND_JAX)
            word.device = (uint16_t)calls_text(put->signer, "cuda", 4);
        is_put = put_shape(put, word, shape);
    }
    return is_put;
}

/*
 * ---- torch ----
 *
 * Torch tensors: exactly torch.Tensor and torch.nn.Parameter. Their getters are C++ functions of torch._C.TensorBase,
 * called through that type, so that nothing can override them. Two torch features would still cause side effects, so
 * both are checked first, through functions exported by the library:
 *
 *   a mode of __torch_function__ (torch.set_default_device() is one) makes getters call Python. It is switched
 *   off on this thread meanwhile, as torch._C.DisableTorchFunction does.
 *   torch.jit.trace records accesses to a tensor in its graph. Then tensors are described by type only.
 *
 * If one of these functions is missing, tensors are also described by type only.
 */

static struct {
    bool is_looked_for, is_whole;
    bool (*has_mode)(void);
    int8_t (*disabled)(void);
    void (*disable)(int8_t);
    void *const *(*tracing)(void); /* a reference to a std::shared_ptr, whose first word is the pointer */
} torch;

enum { TORCH_ALL_DISABLED = 2 };

/* With the GIL. */
static bool know_library(void)
{
    if (torch.is_looked_for)
        return torch.is_whole;
    void *const library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    torch.is_looked_for = true;
    torch.is_whole =
        library != NULL &&
        torch_find(library, "_ZN2at4impl27torch_function_mode_enabledEv", &torch.has_mode) &&
        torch_find(library, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv",
                   &torch.disabled) &&
        torch_find(
            library, "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE",
            &torch.disable) &&
        torch_find(library, "_ZN5torch3jit6tracer15getTracingStateEv", &torch.tracing);
    return torch.is_whole;
}

static PyTypeObject *tensor_base(PyTypeObject *type)
{
    PyTypeObject *const base = calls_base_in_c(type, "torch._C.TensorBase");
    return base != NULL ? base : calls_base_in_c(type, "torch._C._TensorBase");
}

/* "float32" for torch.float32, whose type is implemented in C. */
static uint32_t make_dtype_text(struct calls_signer *signer, PyObject *dtype)
{
    static const char prefix[] = "torch.";
    PyObject *repr EXT_OWNED =
        calls_base_in_c(Py_TYPE(dtype), "torch.dtype") != NULL ? PyObject_Repr(dtype) : NULL;
    const char *text = repr != NULL ? PyUnicode_AsUTF8(repr) : NULL;
    PyErr_Clear();
    if (text != NULL && strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    return text != NULL ? calls_text(signer, text, strlen(text)) : 0;
}

/* The text "cuda:0", or 0. */
static uint16_t device_of(struct calls_signer *signer, PyTypeObject *base, PyObject *value)
{
    PyObject *device EXT_OWNED = get(signer, base, NAME_DEVICE, value);
    PyObject *str EXT_OWNED =
        device != NULL && calls_base_in_c(Py_TYPE(device), "torch.device") != NULL
            ? PyObject_Str(device)
            : NULL;
    const char *const text = str != NULL ? PyUnicode_AsUTF8(str) : NULL;
    const uint32_t number = text != NULL ? calls_text(signer, text, strlen(text)) : 0;
    PyErr_Clear();
    return (uint16_t)number;
}

static bool is_contiguous(struct calls_signer *signer, PyTypeObject *base, PyObject *value)
{
    PyObject *const method =
        PyDict_GetItemWithError(base->tp_dict, signer->names[NAME_IS_CONTIGUOUS]);
    PyObject *answer = method != NULL && Py_TYPE(method) == &PyMethodDescr_Type
                           ? PyObject_CallFunctionObjArgs(method, value, NULL)
                           : NULL;
    Py_XDECREF(answer); /* True and False are never freed */
    PyErr_Clear();
    return answer == Py_True;
}

static bool put_tensor(struct calls_put *put, PyTypeObject *base, PyObject *value)
{
    struct calls_signer *const signer = put->signer;
    struct calls_array_word word = {0};
    PyObject *dtype EXT_OWNED = get(signer, base, NAME_DTYPE, value);
    if (dtype != NULL)
        word.dtype = dtype_by_object(signer, dtype, make_dtype_text);
    if (word.dtype == 0)
        return false;
    if (signer->options.level >= CALLS_LAYOUT) {
        word.device = device_of(signer, base, value);
        word.flags = (uint8_t)(ARRAY_LAYOUT | (is_contiguous(signer, base, value) ? ARRAY_C : 0));
    }
    if (signer->options.requires_grad) {
        PyObject *requires EXT_OWNED = get(signer, base, NAME_REQUIRES_GRAD, value);
        word.flags |= requires == Py_True ? ARRAY_GRAD : 0;
    }
    PyObject *shape EXT_OWNED =
        signer->options.level >= CALLS_SHAPE ? get(signer, base, NAME_SHAPE, value) : NULL;
    return put_shape(put, word, shape);
}

bool calls_put_torch(struct calls_put *put, PyObject *value)
{
    PyTypeObject *const base = tensor_base(Py_TYPE(value));
    if (base == NULL || !know_library() || *torch.tracing() != NULL)
        return false;
    EXT_KEEP_ERROR();
    const bool has_mode = torch.has_mode();
    const int8_t before = has_mode ? torch.disabled() : 0;
    if (has_mode)
        torch.disable(TORCH_ALL_DISABLED);
    const bool is_put = put_tensor(put, base, value);
    if (has_mode)
        torch.disable(before);
    return is_put;
}

/*
 * ---- pandas ----
 *
 * Pandas tables: element types, columns of each, rows. A DataFrame or Series keeps them in a block manager, in its
 * instance dict; blocks are objects with C getters; their values are numpy arrays, or pandas' own. No Python code of
 * pandas is called, so subclasses are read the same way.
 */

enum { MAX_GROUPS = 8 };

struct table {
    uint64_t rows;
    uint64_t groups[MAX_GROUPS]; /* a dtype and a 32-bit number of columns */
    uint32_t n_groups;
    bool has_more;
};

/* The pandas base class in C of a type; some versions create it at import. NULL if none. */
static PyTypeObject *base_in_c(PyTypeObject *type, const char *module, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", module, name);
    PyTypeObject *const base = calls_base_in_c(type, whole);
    if (base != NULL)
        return base;
    PyObject *const imported = calls_imported(module, name);
    return calls_derives(type, imported) ? (PyTypeObject *)imported : NULL;
}

static bool is_numpy(PyObject *value)
{
    return calls_base_in_c(Py_TYPE(value), "numpy.ndarray") != NULL;
}

/* With a getter of a class in C; for a Python class from the instance dict. A new reference, or NULL. */
static PyObject *get_either(struct calls_signer *signer, PyObject *value, const char *module,
                            const char *class, enum calls_name in_c, enum calls_name own)
{
    PyTypeObject *const base = base_in_c(Py_TYPE(value), module, class);
    return base != NULL ? get(signer, base, in_c, value) : get_own(signer, value, own);
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

/* Adds one block's values: columns by rows, or one column. */
static void add_values(struct calls_signer *signer, struct table *table, PyObject *values)
{
    PyObject *array EXT_OWNED = NULL;
    uint32_t dtype;
    if (is_numpy(values)) {
        array = Py_NewRef(values);
        dtype = numpy_dtype(signer, ((struct numpy_array *)array)->descr);
    } else {
        const char *const name = calls_type_name(Py_TYPE(values));
        dtype = DTYPE_TEXT + calls_text(signer, name, strlen(name));
        array = get_either(signer, values, "pandas._libs.arrays", "NDArrayBacked", NAME_NDARRAY,
                           NAME_DATA);
    }
    const struct numpy_array *const numpy =
        array != NULL && is_numpy(array) ? (const struct numpy_array *)array : NULL;
    if (numpy != NULL && numpy->nd > 0)
        table->rows = (uint64_t)numpy->dimensions[numpy->nd - 1];
    add_group(table, dtype, numpy != NULL && numpy->nd == 2 ? (uint64_t)numpy->dimensions[0] : 1);
}

/* A tuple of blocks: a new reference, or NULL. */
static PyObject *blocks_of(struct calls_signer *signer, PyObject *value)
{
    PyObject *const manager EXT_OWNED = get_own(signer, value, NAME_MANAGER);
    PyObject *blocks = manager != NULL ? get_either(signer, manager, "pandas._libs.internals",
                                                    "BlockManager", NAME_BLOCKS, NAME_BLOCKS)
                                       : NULL;
    if (blocks != NULL && !PyTuple_CheckExact(blocks))
        Py_CLEAR(blocks);
    return blocks;
}

static bool read_table(struct calls_signer *signer, PyObject *value, struct table *table)
{
    PyObject *blocks EXT_OWNED = blocks_of(signer, value);
    if (blocks == NULL)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        PyObject *const block = PyTuple_GET_ITEM(blocks, i);
        PyTypeObject *base = base_in_c(Py_TYPE(block), "pandas._libs.internals", "Block");
        if (base == NULL)
            base = base_in_c(Py_TYPE(block), "pandas._libs.internals", "SharedBlock");
        PyObject *values EXT_OWNED = base != NULL ? get(signer, base, NAME_VALUES, block) : NULL;
        if (values != NULL)
            add_values(signer, table, values);
        else
            table->has_more = true;
    }
    return true;
}

bool calls_put_pandas(struct calls_put *put, enum calls_kind kind, PyObject *value)
{
    struct table table = {.rows = SIZE_UNKNOWN};
    EXT_KEEP_ERROR();
    const bool is_read = read_table(put->signer, value, &table);
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
