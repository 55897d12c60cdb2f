/*
 * calls_signer.h: what the files of calls_sign share.
 *
 *     calls_sign_types.c    types by number, and how each is read
 *     calls_sign_values.c   a frame's arguments: containers, classes, callables, values with a formatter
 *     calls_sign_arrays.c   arrays, tensors and tables of libraries
 *     calls_sign_text.c     words to text
 *     calls_sign_number.c   words to numbers, by function
 *
 * Words, each value beginning with the word of its type:
 *
 *     plain        type                                         also of any other kind, with WORD_PLAIN
 *     array        type, array word, a size for each dimension
 *     list, set    type, container word, length, words of elements   equal elements once
 *     dict         type, container word, length, words of keys, words of values
 *     tuple        type, container word, length, words of each element; a long one is described like a list
 *     class        type, type of that class
 *     named        type, text                                   functions, and values with a formatter
 *     table        type, container word, rows, then a word for each dtype with dtype and number of columns
 */
#ifndef MAREY_PYTHON_CALLS_SIGNER_H
#define MAREY_PYTHON_CALLS_SIGNER_H

#include "calls/calls_hook.h"

#include <assert.h>
#include <string.h>

enum calls_kind {
    KIND_PLAIN,
    KIND_NONE,
    KIND_ARRAY,   /* numpy.ndarray and subclasses */
    KIND_TENSOR,  /* exactly torch.Tensor and Parameter */
    KIND_GETTERS, /* CuPy: getters in C */
    KIND_JAX,
    KIND_DEVICE, /* numba's device arrays: in the instance dict */
    KIND_FRAME,  /* pandas.DataFrame */
    KIND_SERIES,
    KIND_LIST,
    KIND_TUPLE,
    KIND_SET,
    KIND_DICT,
    KIND_CLASS,
    KIND_FUNCTION,
    KIND_BUILTIN,
    KIND_METHOD,
    KIND_FORMATTED,
};

/*
 * The word of a type: 20 bits of index into signer.types, 36 of a unique count, then flags. Index 0 is for types that
 * do not fit into the table.
 */
enum { WORD_INDEX_BITS = 20, WORD_COUNT_BITS = 36 };
#define WORD_PLAIN (UINT64_C(1) << 56)   /* only the type; no words follow */
#define WORD_DELETED (UINT64_C(1) << 57) /* alone: a parameter without a value */
#define WORD_CUT (UINT64_C(1) << 58)     /* alone and last: truncated */
#define WORD_INDEX(word) ((uint32_t)((word) & ((1u << WORD_INDEX_BITS) - 1)))

/* The array word. A dtype below DTYPE_TEXT is numpy's type_num, else a text. */
enum { DTYPE_TEXT = 1 << 16, NO_SHAPE = 255 };
struct calls_array_word {
    uint32_t dtype;
    uint8_t n_dims; /* NO_SHAPE: not shown */
    uint8_t flags;
    uint16_t device; /* a text; 0: not shown */
};
enum { ARRAY_LAYOUT = 1, ARRAY_C = 2, ARRAY_F = 4, ARRAY_READONLY = 8, ARRAY_GRAD = 16 };

/* The container word. */
struct calls_container_word {
    uint16_t n_first;  /* number of elements or keys that follow */
    uint16_t n_second; /* values of a dict that follow */
    uint16_t has_more; /* there are more kinds of elements */
    uint16_t is_each;  /* all elements of a tuple are included */
};

/* A size that is not a number, as in torch or JAX tracing; or an omitted length. */
#define SIZE_UNKNOWN UINT64_MAX

/* With shifts: loading a struct as one word right after storing its fields would stall. */
static inline uint64_t array_word(struct calls_array_word word)
{
    return word.dtype | (uint64_t)word.n_dims << 32 | (uint64_t)word.flags << 40 |
           (uint64_t)word.device << 48;
}

static inline struct calls_array_word array_of_word(uint64_t bits)
{
    return (struct calls_array_word){.dtype = (uint32_t)bits,
                                     .n_dims = (uint8_t)(bits >> 32),
                                     .flags = (uint8_t)(bits >> 40),
                                     .device = (uint16_t)(bits >> 48)};
}

static inline uint64_t container_word(struct calls_container_word word)
{
    return word.n_first | (uint64_t)word.n_second << 16 | (uint64_t)word.has_more << 32 |
           (uint64_t)word.is_each << 48;
}

static inline struct calls_container_word container_of_word(uint64_t bits)
{
    return (struct calls_container_word){.n_first = (uint16_t)bits,
                                         .n_second = (uint16_t)(bits >> 16),
                                         .has_more = (uint16_t)(bits >> 32),
                                         .is_each = (uint16_t)(bits >> 48)};
}

struct calls_type {
    PyTypeObject *type; /* borrowed while it lives; NULL: free */
    PyObject *weak;     /* owned; reports its end; NULL for types that are never freed */
    PyObject *detail;   /* owned; a formatter, or the getter for a value of the type; or NULL */
    uint64_t word;
    enum calls_kind kind;
    bool is_reported; /* its formatter's exception was reported */
};

/* Names of attributes and parameters: X(in NAME_..., text). */
#define CALLS_NAMES(X)                                                                             \
    X(SELF, "self")                                                                                \
    X(SHAPE, "shape")                                                                              \
    X(DTYPE, "dtype")                                                                              \
    X(DEVICE, "device")                                                                            \
    X(REQUIRES_GRAD, "requires_grad")                                                              \
    X(IS_CONTIGUOUS, "is_contiguous")                                                              \
    X(AVAL, "aval")                                                                                \
    X(FGET, "fget")                                                                                \
    X(STR, "str")                                                                                  \
    X(FIELDS, "fields")                                                                            \
    X(NAMES, "names")                                                                              \
    X(MANAGER, "_mgr")                                                                             \
    X(BLOCKS, "blocks")                                                                            \
    X(VALUES, "values")                                                                            \
    X(DATA, "_data")                                                                               \
    X(NDARRAY, "_ndarray")
#define CALLS_NAME_NUMBER(name, text) NAME_##name,
enum calls_name { CALLS_NAMES(CALLS_NAME_NUMBER) CALLS_N_NAMES };

/* Cache in front of the table: most calls have the same types again. */
enum { TYPE_SLOTS = 256 };
struct calls_type_slot {
    PyTypeObject *type;
    uint64_t word;
    enum calls_kind kind;
};

enum { MAX_TEXTS = 4096, MAX_TEXT = 200, MAX_DTYPES = 384 };
struct calls_texts {
    char **texts;    /* owned; text 0 is "..." */
    uint32_t *table; /* by hash: numbers, 0: free */
    uint32_t n;
};

struct calls_signer {
    struct calls_sign_options options;
    uint32_t registered; /* value of calls_sign_registered when types were read */
    struct calls_type_slot slots[TYPE_SLOTS];
    struct calls_type_slot other;            /* for types that do not fit */
    PyObject *names[CALLS_N_NAMES];          /* owned, interned */
    struct calls_type *types;                /* [0] is for those that do not fit */
    uint32_t n_types, room_types, free_type; /* free ones are linked through `word`, ended by 0 */
    struct calls_table type_table;           /* indices by address */
    uint64_t type_count;
    struct calls_texts texts;
    struct calls_table dtypes; /* texts of dtypes by object, which it owns: so addresses are not reused */
    PyObject *capsule;         /* identifies us for weak references */
    struct calls_function **functions; /* by number; NULL: not called yet */
    uint32_t n_functions;
};

/* ---- calls_sign_types.c ---- */

int calls_types_init(struct calls_signer *signer);
void calls_types_fini(struct calls_signer *signer);
/* Checks all types again when they occur next. */
void calls_types_forget(struct calls_signer *signer);
/* The slot of a type that is not cached. Lent until the next type occurs. */
const struct calls_type_slot *calls_type_find(struct calls_signer *signer, PyTypeObject *type);
/* The name of a type as UTF-8, without its module; borrowed. */
const char *calls_type_name(PyTypeObject *type);
/* Itself or a base, if it is declared in C under that name; or NULL. */
PyTypeObject *calls_base_in_c(PyTypeObject *type, const char *name);
/* Whether it is `base` or derives from it; NULL: no. */
bool calls_derives(PyTypeObject *type, const PyObject *base);
/* The number of a text, equal for equal ones; 0 if there are too many, or on out of memory. */
uint32_t calls_text(struct calls_signer *signer, const char *text, size_t length);
void calls_texts_fini(struct calls_texts *texts);

static inline struct calls_type_slot *calls_type_slot(struct calls_signer *signer, PyTypeObject *type)
{
    const uintptr_t address = (uintptr_t)type >> 4;
    return &signer->slots[(address ^ (address >> 7)) % TYPE_SLOTS];
}

static inline const struct calls_type_slot *calls_type(struct calls_signer *signer, PyTypeObject *type)
{
    const struct calls_type_slot *const slot = calls_type_slot(signer, type);
    return __builtin_expect(slot->type == type, 1) ? slot : calls_type_find(signer, type);
}

/* The entry of a known, living type. */
static inline struct calls_type *calls_type_of(struct calls_signer *signer, uint64_t word)
{
    return &signer->types[WORD_INDEX(word)];
}

/* ---- putting words ---- */

struct calls_put {
    struct calls_signer *signer;
    uint64_t *words;
    uint32_t n;
    bool is_cut; /* a word did not fit: the value is described by type only */
};

static inline void calls_put(struct calls_put *put, uint64_t word)
{
    if (put->n < CALLS_SIGN_WORDS - 1) /* one is reserved for WORD_CUT */
        put->words[put->n++] = word;
    else
        put->is_cut = true;
}

/* Adds a value whose type has more than its name. */
void calls_put_detailed(struct calls_put *put, const struct calls_type_slot *type, PyObject *value,
                        uint32_t depth);

/* Adds a complete value; `depth` more levels of containers are included. */
static inline void calls_put_value(struct calls_put *put, PyObject *value, uint32_t depth)
{
    if (value == NULL) {
        calls_put(put, WORD_DELETED);
        return;
    }
    const struct calls_type_slot *const type = calls_type(put->signer, Py_TYPE(value));
    if (type->kind <= KIND_NONE)
        calls_put(put, type->word);
    else
        calls_put_detailed(put, type, value, depth);
}
/* Add the words after the type's; set is_cut if they do not fit. */
void calls_put_numpy(struct calls_put *put, PyObject *value);
/* These return false, and add nothing, if the value cannot be read. */
bool calls_put_getters(struct calls_put *put, enum calls_kind kind, PyObject *value);
bool calls_put_torch(struct calls_put *put, PyObject *value);
bool calls_put_pandas(struct calls_put *put, enum calls_kind kind, PyObject *value);

/* ---- calls_sign_arrays.c ---- */

#define CALLS_CUPY_BASE "cupy._core.core._ndarray_base"
/* The name of the dtype of an array word. */
const char *calls_dtype_name(const struct calls_signer *signer, uint32_t dtype);
void calls_dtypes_fini(struct calls_signer *signer);

/* ---- calls_sign_text.c ---- */

enum { MAX_SIGNATURE = 1024 };
struct calls_text {
    char text[MAX_SIGNATURE + 8]; /* UTF-8, ends in zero */
    size_t length;
    uint64_t sizes;  /* a bit for each word that is a dimension, a length or rows */
    double elements; /* of arrays; of containers where there is no array */
};
/* Truncated at a character. Control characters become '?'. */
void calls_append(struct calls_text *out, const char *text);
/* The text of words; sizes in `wide` are shown as the range they represent. */
void calls_text_make(struct calls_signer *signer, PyCodeObject *code, const uint64_t *words,
                     size_t n_words, uint64_t wide, struct calls_text *out);
/* The smallest and largest of the sizes in a range. */
static inline uint64_t calls_range_first(uint64_t size)
{
    return size == 0 ? 0 : UINT64_C(1) << (63 - __builtin_clzll(size));
}

/* The parameters of a function: *args and **kwargs are last. */
struct calls_parameters {
    PyObject *names; /* borrowed; a tuple of str */
    uint32_t n;
    uint32_t args, kwargs; /* their indices; n: none */
};
static inline struct calls_parameters calls_parameters(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030b0000
    struct calls_parameters p = {.names = code->co_localsplusnames};
#else
    struct calls_parameters p = {.names = code->co_varnames};
#endif
    p.n = (uint32_t)(code->co_argcount + code->co_kwonlyargcount);
    const uint32_t plain = p.n;
    p.n += (code->co_flags & CO_VARARGS) != 0;
    p.n += (code->co_flags & CO_VARKEYWORDS) != 0;
    p.args = code->co_flags & CO_VARARGS ? plain : p.n;
    p.kwargs = code->co_flags & CO_VARKEYWORDS ? p.n - 1 : p.n;
    return p;
}

/* ---- calls_sign_number.c ---- */

void calls_functions_fini(struct calls_signer *signer);

#endif
