/*
 * Values that are not arrays. Containers of exactly the built-in types are read through their structures: nothing is
 * hashed, compared or iterated by Python's protocols. Only the first elements are read, so that a long list costs no
 * more than a short one.
 */
#include "calls/calls_signer.h"

_Thread_local bool calls_sign_is_formatting;
uint32_t calls_sign_n_formatting;

enum { MAX_LOOKS = 8, MAX_ALTERNATIVES = 3, MAX_SET_SLOTS = 64 };

/* ---- elements ---- */

/* Equal elements are shown once: where the words of each different one begin. */
struct alternatives {
    uint32_t at[MAX_ALTERNATIVES + 1]; /* plus the end of the last one */
    uint32_t n;
    bool has_more;
    const PyTypeObject *plain; /* type of an element that was added with only its type */
};

__attribute__((noinline)) static void
alternatives_put(struct calls_put *put, struct alternatives *all, PyObject *element, uint32_t depth)
{
    const uint32_t begin = put->n;
    calls_put_value(put, element, depth);
    const uint32_t length = put->n - begin;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i + 1] - all->at[i] == length &&
            memcmp(&put->words[all->at[i]], &put->words[begin], length * sizeof *put->words) == 0) {
            put->n = begin;
            return;
        }
    if (all->n == MAX_ALTERNATIVES) {
        put->n = begin;
        all->has_more = true;
        return;
    }
    all->at[all->n++] = begin;
    all->at[all->n] = put->n;
}

static inline void alternatives_add(struct calls_put *put, struct alternatives *all,
                                    PyObject *element, uint32_t depth)
{
    if (Py_TYPE(element) == all->plain || all->has_more)
        return;
    const struct calls_type_slot *const type = calls_type(put->signer, Py_TYPE(element));
    if (type->kind <= KIND_NONE)
        all->plain = Py_TYPE(element);
    if (type->kind > KIND_NONE || all->n > 0) {
        alternatives_put(put, all, element, depth);
        return;
    }
    all->at[0] = put->n;
    calls_put(put, type->word);
    all->at[1] = put->n;
    all->n = 1;
}

static uint64_t length_of(const struct calls_put *put, Py_ssize_t length)
{
    return put->signer->options.level >= CALLS_SHAPE ? (uint64_t)length : SIZE_UNKNOWN;
}

/* Size and elements are reread each time, because a formatter may have changed the container. */
static void put_sequence(struct calls_put *put, PyObject *sequence, bool is_tuple, uint32_t depth)
{
    const uint32_t at = put->n;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    struct calls_container_word word = {.n_first = 0};
    struct alternatives all = {.n = 0};
    calls_put(put, 0); /* filled in later */
    calls_put(put, length_of(put, n));
    word.is_each = is_tuple && n <= MAX_LOOKS;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence) && i < MAX_LOOKS; i++)
        if (word.is_each)
            calls_put_value(put, PySequence_Fast_GET_ITEM(sequence, i), depth);
        else
            alternatives_add(put, &all, PySequence_Fast_GET_ITEM(sequence, i), depth);
    word.n_first = word.is_each ? (uint16_t)n : (uint16_t)all.n;
    word.has_more = all.has_more;
    if (!put->is_cut)
        put->words[at] = container_word(word);
}

static void put_set(struct calls_put *put, PySetObject *set, uint32_t depth)
{
    const uint32_t at = put->n;
    struct alternatives all = {.n = 0};
    calls_put(put, 0);
    calls_put(put, length_of(put, set->used));
    uint32_t looks = 0;
    for (Py_ssize_t i = 0; i <= set->mask && i < MAX_SET_SLOTS && looks < MAX_LOOKS; i++) {
        /* A free slot has no key; a deleted one has a hash that no key has. */
        if (set->table[i].key == NULL || set->table[i].hash == -1)
            continue;
        alternatives_add(put, &all, set->table[i].key, depth);
        looks++;
    }
    const struct calls_container_word word = {.n_first = (uint16_t)all.n, .has_more = all.has_more};
    if (!put->is_cut)
        put->words[at] = container_word(word);
}

/* How many entries of a dict are read, known without calling PyDict_Next() once more. */
static Py_ssize_t n_looks(PyObject *dict)
{
    return PyDict_GET_SIZE(dict) < MAX_LOOKS ? PyDict_GET_SIZE(dict) : MAX_LOOKS;
}

/* Adds the keys of a dict. `value_word` is that of all values if they have one plain type, as is usual; else 0. */
static struct alternatives put_keys(struct calls_put *put, PyObject *dict, uint32_t depth,
                                    uint64_t *value_word)
{
    struct alternatives all = {.n = 0};
    const PyTypeObject *plain = NULL;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    *value_word = 0;
    for (Py_ssize_t i = 0; i < n_looks(dict) && PyDict_Next(dict, &position, &key, &value); i++) {
        if (i == 0) {
            const struct calls_type_slot *const type = calls_type(put->signer, Py_TYPE(value));
            plain = Py_TYPE(value);
            *value_word = type->kind <= KIND_NONE ? type->word : 0;
        } else if (Py_TYPE(value) != plain) {
            *value_word = 0;
        }
        alternatives_add(put, &all, key, depth);
    }
    return all;
}

static struct alternatives put_values(struct calls_put *put, PyObject *dict, uint32_t depth)
{
    struct alternatives all = {.n = 0};
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; i < n_looks(dict) && PyDict_Next(dict, &position, &key, &value); i++)
        alternatives_add(put, &all, value, depth);
    return all;
}

static void put_dict(struct calls_put *put, PyObject *dict, uint32_t depth)
{
    const uint32_t at = put->n;
    calls_put(put, 0);
    calls_put(put, length_of(put, PyDict_GET_SIZE(dict)));
    uint64_t value_word;
    const struct alternatives keys = put_keys(put, dict, depth, &value_word);
    struct alternatives values = {.n = 1};
    if (value_word != 0)
        calls_put(put, value_word);
    else
        values = put_values(put, dict, depth);
    const struct calls_container_word word = {.n_first = (uint16_t)keys.n,
                                              .n_second = (uint16_t)values.n,
                                              .has_more = keys.has_more || values.has_more};
    if (!put->is_cut)
        put->words[at] = container_word(word);
}

static void put_container(struct calls_put *put, enum calls_kind kind, PyObject *value, uint32_t depth)
{
    switch (kind) {
    case KIND_LIST:
        put_sequence(put, value, false, depth);
        break;
    case KIND_TUPLE:
        put_sequence(put, value, true, depth);
        break;
    case KIND_SET:
        put_set(put, (PySetObject *)value, depth);
        break;
    default:
        put_dict(put, value, depth);
    }
}

/* ---- values with a name ---- */

static uint32_t text_of(struct calls_signer *signer, PyObject *str)
{
    Py_ssize_t length;
    const char *const text =
        str != NULL && PyUnicode_CheckExact(str) ? PyUnicode_AsUTF8AndSize(str, &length) : NULL;
    if (text != NULL)
        return calls_text(signer, text, (size_t)length);
    PyErr_Clear();
    return 0;
}

static uint32_t name_of(struct calls_signer *signer, enum calls_kind kind, PyObject *value)
{
    if (kind == KIND_BUILTIN) {
        const char *const name = ((PyCFunctionObject *)value)->m_ml->ml_name;
        return name != NULL ? calls_text(signer, name, strlen(name)) : 0;
    }
    PyObject *const function = kind == KIND_METHOD ? PyMethod_GET_FUNCTION(value) : value;
    return Py_TYPE(function) == &PyFunction_Type
               ? text_of(signer, ((PyFunctionObject *)function)->func_qualname)
               : 0;
}

/* The result of the user's formatter. If it raises, prints that once, and only the type is used. */
static uint32_t format(struct calls_signer *signer, PyObject *value, uint64_t type_word)
{
    if (calls_type_of(signer, type_word)->detail == NULL || calls_sign_is_formatting)
        return 0;
    EXT_KEEP_ERROR();
    PyObject *const formatter EXT_OWNED = Py_NewRef(calls_type_of(signer, type_word)->detail);
    calls_sign_is_formatting = true;
    calls_sign_n_formatting++;
    PyObject *text EXT_OWNED = PyObject_CallFunctionObjArgs(formatter, value, NULL);
    if (text != NULL && !PyUnicode_CheckExact(text))
        PyErr_Format(PyExc_TypeError,
                     "a formatter of marey.profiler.register() returns a str, not %.200s",
                     Py_TYPE(text)->tp_name);
    struct calls_type *const type = calls_type_of(signer, type_word);
    if (PyErr_Occurred() && type->word == type_word && !type->is_reported) {
        type->is_reported = true;
        PyErr_WriteUnraisable(formatter);
    }
    PyErr_Clear();
    calls_sign_n_formatting--;
    calls_sign_is_formatting = false;
    return text_of(signer, text);
}

static bool put_text(struct calls_put *put, uint32_t text)
{
    if (text != 0)
        calls_put(put, text);
    return text != 0;
}

/* ---- any ---- */

/* Adds what follows the type's word. False if there is nothing. */
static bool put_details(struct calls_put *put, const struct calls_type_slot *type, PyObject *value,
                        uint32_t depth)
{
    switch (type->kind) {
    case KIND_ARRAY:
        calls_put_numpy(put, value);
        return true;
    case KIND_TENSOR:
        return calls_put_torch(put, value);
    case KIND_GETTERS:
    case KIND_JAX:
    case KIND_DEVICE:
        return calls_put_getters(put, type->kind, value);
    case KIND_FRAME:
    case KIND_SERIES:
        return calls_put_pandas(put, type->kind, value);
    case KIND_CLASS:
        calls_put(put, calls_type(put->signer, (PyTypeObject *)value)->word);
        return true;
    case KIND_FUNCTION:
    case KIND_BUILTIN:
    case KIND_METHOD:
        return put_text(put, name_of(put->signer, type->kind, value));
    case KIND_FORMATTED:
        return put_text(put, format(put->signer, value, type->word));
    default:
        if (depth == 0)
            return false;
        put_container(put, type->kind, value, depth - 1);
        return true;
    }
}

void calls_put_detailed(struct calls_put *put, const struct calls_type_slot *slot, PyObject *value,
                        uint32_t depth)
{
    const struct calls_type_slot type = *slot; /* another type may take the slot meanwhile */
    const uint32_t begin = put->n;
    bool is_detailed = put->signer->options.level > CALLS_TYPES || type.kind == KIND_FORMATTED;
    if (is_detailed) {
        calls_put(put, type.word);
        Py_INCREF(value); /* a formatter may remove it from its container */
        is_detailed = put_details(put, &type, value, depth);
        Py_DECREF(value);
    }
    if (is_detailed && !put->is_cut)
        return;
    put->n = begin;
    put->is_cut = false;
    calls_put(put, type.word | WORD_PLAIN);
}

/* ---- the arguments of a call ---- */

enum { DEFAULT_DEPTH = 2, CELL_KIND = 0x40 };

struct calls_signer *calls_signer_create(const struct calls_sign_options *options)
{
    struct calls_signer *const signer = PyMem_Calloc(1, sizeof *signer);
    if (signer == NULL)
        return (struct calls_signer *)PyErr_NoMemory();
    signer->options = *options;
    if (options->depth == 0)
        signer->options.depth = DEFAULT_DEPTH;
    Py_XINCREF(options->formatters);
    if (calls_types_init(signer) == 0)
        return signer;
    calls_signer_destroy(signer);
    return NULL;
}

void calls_signer_destroy(struct calls_signer *signer)
{
    if (signer == NULL)
        return;
    calls_types_fini(signer);
    calls_functions_fini(signer);
    calls_dtypes_fini(signer);
    calls_texts_fini(&signer->texts);
    Py_XDECREF(signer->options.formatters);
    PyMem_Free(signer);
}

/* ---- cells ---- */

#if PY_VERSION_HEX >= 0x030b0000
/* Whether it is the frame's own cell rather than an argument. */
static PyObject *value_of(PyCodeObject *code, PyObject *const *locals, uint32_t i)
{
    PyObject *const value = locals[i];
    if (value == NULL || Py_TYPE(value) != &PyCell_Type ||
        i >= PyBytes_GET_SIZE(code->co_localspluskinds) ||
        !(PyBytes_AS_STRING(code->co_localspluskinds)[i] & CELL_KIND))
        return value;
    return PyCell_GET(value);
}
#else
/* An argument used by inner functions has moved to a cell after the locals. */
static PyObject *value_of(PyCodeObject *code, PyObject *const *locals, uint32_t i)
{
    if (locals[i] != NULL || code->co_cell2arg == NULL)
        return locals[i];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_cellvars); k++)
        if (code->co_cell2arg[k] == (Py_ssize_t)i) {
            PyObject *const cell = locals[code->co_nlocals + k];
            return cell != NULL && Py_TYPE(cell) == &PyCell_Type ? PyCell_GET(cell) : NULL;
        }
    return NULL;
}
#endif

/* ---- frames ---- */

/* `self` is described only by its type, which becomes part of the method name. */
static bool is_self(const struct calls_signer *signer, const struct calls_parameters *parameters)
{
    return parameters->n > 0 && PyTuple_GET_ITEM(parameters->names, 0) == signer->names[NAME_SELF] &&
           parameters->args != 0 && parameters->kwargs != 0;
}

size_t calls_sign_frame(struct calls_signer *signer, PyCodeObject *code, PyObject *const *locals,
                        uint64_t words[CALLS_SIGN_WORDS])
{
    const struct calls_parameters parameters = calls_parameters(code);
    struct calls_put put = {.signer = signer, .words = words};
    if (signer->registered != calls_sign_registered)
        calls_types_forget(signer);
    uint32_t i = 0;
    if (is_self(signer, &parameters)) {
        PyObject *const self = value_of(code, locals, i++);
        calls_put(&put, self == NULL ? WORD_DELETED
                                     : calls_type(signer, Py_TYPE(self))->word | WORD_PLAIN);
    }
    for (; i < parameters.n && !put.is_cut; i++)
        calls_put_value(&put, value_of(code, locals, i), signer->options.depth);
    if (put.is_cut)
        words[put.n++] = WORD_CUT;
    return put.n;
}

bool calls_sign_locals(PyCodeObject *code, PyObject *dict, PyObject **locals, size_t room)
{
    const struct calls_parameters parameters = calls_parameters(code);
    if (!PyDict_CheckExact(dict) || parameters.n > room)
        return false;
    EXT_KEEP_ERROR();
    bool is_whole = true;
    for (uint32_t i = 0; i < parameters.n; i++) {
        locals[i] = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(parameters.names, i));
        is_whole = is_whole && locals[i] != NULL;
    }
    return is_whole;
}
