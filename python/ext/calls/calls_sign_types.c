/*
 * Types by number. A table by address finds a type's entry; a small cache in front of it (signer.slots) usually hits. A
 * type that can be freed has a weak reference, whose callback removes it from both before its address can be reused.
 * Nothing here calls a type or its metaclass: names, flags and bases are fields of its structure.
 */
#include "calls/calls_signer.h"

uint32_t calls_sign_registered;

const char *calls_type_name(PyTypeObject *type)
{
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        PyObject *const name = ((PyHeapTypeObject *)type)->ht_name;
        const char *const text = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
        if (text != NULL)
            return text;
        PyErr_Clear();
        return "?";
    }
    const char *const dot = strrchr(type->tp_name, '.');
    return dot != NULL ? dot + 1 : type->tp_name;
}

PyTypeObject *calls_base_in_c(PyTypeObject *type, const char *name)
{
    for (; type != NULL; type = type->tp_base)
        if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && strcmp(type->tp_name, name) == 0)
            return type;
    return NULL;
}

/* ---- reading a type ---- */

PyObject *calls_imported(const char *module, const char *name)
{
    PyObject *const modules =
        PySys_GetObject("modules"); /* PyImport_ functions abort during interpreter shutdown */
    PyObject *found = NULL;
    PyObject *key EXT_OWNED =
        modules != NULL && PyDict_CheckExact(modules) ? PyUnicode_FromString(module) : NULL;
    PyObject *const imported = key != NULL ? PyDict_GetItemWithError(modules, key) : NULL;
    if (imported != NULL && PyModule_Check(imported))
        found = PyDict_GetItemString(PyModule_GetDict(imported), name);
    PyErr_Clear();
    return found;
}

/* The formatter of a type or its nearest base: borrowed. Keys are addresses, since a metaclass may define __hash__. */
static PyObject *formatter_of(PyObject *formatters, PyTypeObject *type)
{
    PyObject *const bases = type->tp_mro;
    if (formatters == NULL || PyDict_GET_SIZE(formatters) == 0 || bases == NULL)
        return NULL;
    PyObject *found = NULL;
    for (Py_ssize_t i = 0; found == NULL && i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *key EXT_OWNED = PyLong_FromVoidPtr(PyTuple_GET_ITEM(bases, i));
        PyObject *const pair = key != NULL ? PyDict_GetItemWithError(formatters, key) : NULL;
        found = pair != NULL ? PyTuple_GET_ITEM(pair, 1) : NULL;
    }
    PyErr_Clear();
    return found;
}

bool calls_derives(PyTypeObject *type, const PyObject *base)
{
    for (; base != NULL && type != NULL; type = type->tp_base)
        if ((PyObject *)type == base)
            return true;
    return false;
}

static enum calls_kind kind_of_builtin(const PyTypeObject *type)
{
    const struct {
        const PyTypeObject *type;
        enum calls_kind kind;
    } known[] = {
        {&PyList_Type, KIND_LIST},         {&PyTuple_Type, KIND_TUPLE},
        {&PyDict_Type, KIND_DICT},         {&PySet_Type, KIND_SET},
        {&PyFrozenSet_Type, KIND_SET},     {&PyFunction_Type, KIND_FUNCTION},
        {&PyCFunction_Type, KIND_BUILTIN}, {&PyMethod_Type, KIND_METHOD},
        {Py_TYPE(Py_None), KIND_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return known[i].kind;
    return KIND_PLAIN;
}

/* Types of libraries: by the name of a base in C (no module), or as an imported class or its subclass. */
static const struct {
    const char *module, *name;
    enum calls_kind kind;
    bool with_derived;
} library_types[] = {
    {NULL, "numpy.ndarray", KIND_ARRAY, true},
    {"torch._tensor", "Tensor", KIND_TENSOR, false},
    {"torch.nn.parameter", "Parameter", KIND_TENSOR, false},
    {"pandas.core.frame", "DataFrame", KIND_FRAME, true},
    {"pandas.core.series", "Series", KIND_SERIES, true},
    {NULL, CALLS_CUPY_BASE, KIND_GETTERS, true},
    {"jaxlib._jax", "ArrayImpl", KIND_JAX, false},
    {"jaxlib.xla_extension", "ArrayImpl", KIND_JAX, false},
    {"numba.cuda.cudadrv.devicearray", "DeviceNDArray", KIND_DEVICE, false},
};

static enum calls_kind kind_of(PyTypeObject *type)
{
    const enum calls_kind kind = kind_of_builtin(type);
    if (kind != KIND_PLAIN)
        return kind;
    if (PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS))
        return KIND_CLASS;
    for (size_t i = 0; i < sizeof library_types / sizeof *library_types; i++) {
        const char *const module = library_types[i].module, *const name = library_types[i].name;
        PyObject *const imported = module != NULL ? calls_imported(module, name) : NULL;
        if (module == NULL                  ? calls_base_in_c(type, name) != NULL
            : library_types[i].with_derived ? calls_derives(type, imported)
                                            : imported == (PyObject *)type)
            return library_types[i].kind;
    }
    return KIND_PLAIN;
}

/* ---- the table ---- */

/* Takes a free entry; 0 if there is none. */
static uint32_t entry_take(struct calls_signer *signer)
{
    uint32_t index = signer->free_type;
    if (index != 0) {
        signer->free_type = (uint32_t)signer->types[index].word;
        return index;
    }
    if (signer->n_types == signer->room_types) {
        const uint32_t room = signer->room_types * 2;
        struct calls_type *const types = room <= 1u << WORD_INDEX_BITS
                                             ? PyMem_Realloc(signer->types, room * sizeof *types)
                                             : NULL;
        if (types == NULL)
            return 0;
        signer->types = types;
        signer->room_types = room;
    }
    return signer->n_types++;
}

/* Releases what the entry held once the table is consistent: that may run code. */
static void entry_give(struct calls_signer *signer, uint32_t index)
{
    const struct calls_type old = signer->types[index];
    struct calls_type_slot *const slot = calls_type_slot(signer, old.type);
    if (slot->type == old.type)
        slot->type = NULL;
    calls_table_remove(&signer->type_table, old.type);
    signer->types[index] = (struct calls_type){.word = signer->free_type};
    signer->free_type = index;
    Py_XDECREF(old.weak);
    Py_XDECREF(old.detail);
}

/* ---- the end of a type ---- */

/* The weak reference's callback; `self` is (capsule of the signer, address). */
static PyObject *type_ends(PyObject *self, PyObject *Py_UNUSED(weak))
{
    struct calls_signer *const signer = PyCapsule_GetPointer(PyTuple_GET_ITEM(self, 0), NULL);
    PyTypeObject *const type = PyLong_AsVoidPtr(PyTuple_GET_ITEM(self, 1));
    if (signer == NULL || type == NULL)
        return NULL;
    const uint32_t index = calls_table_get(&signer->type_table, type);
    if (index != 0)
        entry_give(signer, index);
    Py_RETURN_NONE;
}

static PyMethodDef type_ends_method = {"type_ends", type_ends, METH_O, NULL};

/* A new reference. */
static PyObject *watch(struct calls_signer *signer, PyTypeObject *type)
{
    PyObject *address EXT_OWNED = PyLong_FromVoidPtr(type);
    PyObject *self EXT_OWNED = address != NULL ? PyTuple_Pack(2, signer->capsule, address) : NULL;
    PyObject *callback EXT_OWNED = self != NULL ? PyCFunction_New(&type_ends_method, self) : NULL;
    return callback != NULL ? PyWeakref_NewRef((PyObject *)type, callback) : NULL;
}

/* ---- adding a type ---- */

/* Adds an entry for a new type; 0 on failure. */
static uint32_t type_add(struct calls_signer *signer, PyTypeObject *type)
{
    PyObject *const formatter = formatter_of(signer->options.formatters, type);
    struct calls_type new = {.type = type, .detail = formatter};
    Py_XINCREF(formatter);
    new.kind = formatter != NULL ? KIND_FORMATTED : kind_of(type);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && (new.weak = watch(signer, type)) == NULL)
        goto out;
    uint32_t index = calls_table_get(&signer->type_table, type);
    if (index == 0 && calls_table_reserve(&signer->type_table) && (index = entry_take(signer)) != 0) {
        new.word = index | ++signer->type_count << WORD_INDEX_BITS;
        signer->type_count &= (UINT64_C(1) << WORD_COUNT_BITS) - 1;
        signer->types[index] = new;
        calls_table_set(&signer->type_table, type, index);
        return index;
    }
out: /* no memory; or the collector ran code that met the type meanwhile, and then it has its index */
    index = calls_table_get(&signer->type_table, type);
    PyErr_Clear();
    Py_XDECREF(new.weak);
    Py_XDECREF(new.detail);
    return index;
}

const struct calls_type_slot *calls_type_find(struct calls_signer *signer, PyTypeObject *type)
{
    uint32_t index = calls_table_get(&signer->type_table, type);
    if (index == 0) {
        EXT_KEEP_ERROR();
        index = type_add(signer, type);
    }
    if (index == 0)
        return &signer->other;
    struct calls_type_slot *const slot = calls_type_slot(signer, type);
    *slot = (struct calls_type_slot){type, signer->types[index].word, signer->types[index].kind};
    return slot;
}

void calls_types_forget(struct calls_signer *signer)
{
    signer->registered = calls_sign_registered;
    for (uint32_t i = 1; i < signer->n_types; i++)
        if (signer->types[i].type != NULL)
            entry_give(signer, i);
}

static int make_names(struct calls_signer *signer)
{
#define NAME_TEXT(name, text) text,
    static const char *const names[] = {CALLS_NAMES(NAME_TEXT)};
#undef NAME_TEXT
    for (size_t i = 0; i < CALLS_N_NAMES; i++)
        if ((signer->names[i] = PyUnicode_InternFromString(names[i])) == NULL)
            return -1;
    return 0;
}

int calls_types_init(struct calls_signer *signer)
{
    enum { ROOM = 64 };
    signer->registered = calls_sign_registered;
    signer->types = PyMem_Calloc(ROOM, sizeof *signer->types);
    signer->room_types = ROOM;
    signer->n_types = 1;
    signer->capsule = PyCapsule_New(signer, NULL, NULL);
    if (calls_table_reserve(&signer->type_table) && calls_table_reserve(&signer->dtypes) &&
        signer->types != NULL && signer->capsule != NULL && make_names(signer) == 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

void calls_types_fini(struct calls_signer *signer)
{
    if (signer->types != NULL)
        calls_types_forget(signer);
    PyMem_Free(signer->types);
    PyMem_Free(signer->type_table.entries);
    Py_XDECREF(signer->capsule);
    for (size_t i = 0; i < CALLS_N_NAMES; i++)
        Py_XDECREF(signer->names[i]);
}

/* ---- texts ---- */

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static int texts_init(struct calls_texts *texts)
{
    texts->texts = PyMem_Calloc(MAX_TEXTS, sizeof *texts->texts);
    texts->table = PyMem_Calloc(2 * MAX_TEXTS, sizeof *texts->table);
    texts->n = 1; /* 0 means none */
    return texts->texts != NULL && texts->table != NULL ? 0 : -1;
}

uint32_t calls_text(struct calls_signer *signer, const char *text, size_t length)
{
    struct calls_texts *const texts = &signer->texts;
    if (texts->table == NULL && texts_init(texts) < 0)
        return 0;
    length = length < MAX_TEXT ? length : MAX_TEXT;
    size_t at = hash_of(text, length) % (2 * MAX_TEXTS);
    for (; texts->table[at] != 0; at = (at + 1) % (2 * MAX_TEXTS)) {
        const char *const known = texts->texts[texts->table[at]];
        if (strncmp(known, text, length) == 0 && known[length] == '\0')
            return texts->table[at];
    }
    char *const copy = texts->n < MAX_TEXTS ? PyMem_Malloc(length + 1) : NULL;
    if (copy == NULL)
        return 0;
    memcpy(copy, text, length);
    copy[length] = '\0';
    texts->texts[texts->n] = copy;
    texts->table[at] = texts->n;
    return texts->n++;
}

void calls_texts_fini(struct calls_texts *texts)
{
    for (uint32_t i = 1; texts->texts != NULL && i < texts->n; i++)
        PyMem_Free(texts->texts[i]);
    PyMem_Free(texts->texts);
    PyMem_Free(texts->table);
}
