/*
 * calls_sign.h: signatures, the arguments of a call, as numbers.
 *
 *     frame's locals --calls_sign_frame()--> words --calls_sign_number()--> number of a signature
 *                                                          '-- at first sight --> text: "a:ndarray(dtype=float32, shape=(16,)), b:int"
 *
 * Words describe each argument at the chosen level: type, dtype, shape. They are equal if and only if the signature is,
 * so a call with the same words as the function's last call costs a few loads and compares. Text is made from words,
 * once per signature.
 *
 * No Python code and no code of an object runs here. Types are identified by address, numpy arrays and built-in
 * containers are read through their C structures, all others through getters that are written in C and belong to a type
 * identified by address. The only exception is a formatter registered by the user (marey.profiler.register). While it
 * runs, calls_sign_is_formatting is set on that thread, and the hook must return immediately. An allocation made here
 * may trigger Python's garbage collector (before 3.12); code called by it enters the hook recursively and finds
 * consistent data.
 *
 * Everything holds the GIL. A type is identified by its address only while it lives: a weak reference reports its end,
 * so that a type that reuses the address is a new type, and nothing of the program is kept alive.
 */
#ifndef MAREY_PYTHON_CALLS_SIGN_H
#define MAREY_PYTHON_CALLS_SIGN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

struct marey_calls;

/* Signatures with more words are truncated, with "..." at the end. */
enum { CALLS_SIGN_WORDS = 64 };

enum calls_level {
    CALLS_NONE,   /* no signatures */
    CALLS_TYPES,  /* names of types */
    CALLS_DTYPE,  /* also dtypes of arrays, types of elements */
    CALLS_SHAPE,  /* also shapes of arrays, lengths of containers: the default */
    CALLS_LAYOUT, /* also memory layout of arrays, and device */
};

/* Returns the number of a text for a function, like marey_calls_signature(). 0 on failure. */
typedef uint32_t calls_sign_define(struct marey_calls *calls, uint32_t function, const char *text,
                                   size_t length, double elements);

struct calls_sign_options {
    enum calls_level level;
    uint32_t depth;     /* levels of containers to describe; 0: 2 */
    uint32_t most;      /* signatures per function before shapes are widened; 0: 64 */
    bool requires_grad; /* include whether torch tensors require gradients */
    PyObject *formatters; /* borrowed; dict: type -> callable, from marey.profiler.register, or NULL */
    calls_sign_define *define; /* never NULL */
    void (*count_widened)(
        struct marey_calls *); /* called once for each call with a widened signature; NULL: not counted */
};

/* Counts registrations of formatters in this process: signers with an older count check types again. */
extern uint32_t calls_sign_registered;

/* The state of signing, per Profile. */
struct calls_signer;

/* NULL and MemoryError on failure. */
struct calls_signer *calls_signer_create(const struct calls_sign_options *options);
/* Accepts NULL. Releases Python objects, so it needs the GIL and a running interpreter. */
void calls_signer_destroy(struct calls_signer *signer);
/* Set while a user's formatter runs on this thread: the hook returns immediately, without signing or counting. */
extern _Thread_local bool calls_sign_is_formatting;
/* The number of threads in a formatter: if it is 0, no thread need check its own flag. */
extern uint32_t calls_sign_n_formatting;

/*
 * Computes the words of a call that begins. `locals` are all fast locals of the frame (3.11 and later: localsplus;
 * before: f_localsplus), borrowed; finds parameters that are cells. A parameter without a value, as in a resumed
 * generator, is marked as such: sign a generator at its first start and keep the number. Returns the number of words,
 * at most CALLS_SIGN_WORDS. Never fails, sets no exception and preserves an existing one.
 */
size_t calls_sign_frame(struct calls_signer *signer, PyCodeObject *code, PyObject *const *locals,
                        uint64_t words[CALLS_SIGN_WORDS]);

/*
 * The number of these words for a function; new ones are defined by options.define. Past the cap, differing shapes
 * become ranges ("shape=(64..127, 768)"), and past a quarter more of those a single signature, "other shapes". `code`
 * is that of calls_sign_frame(), whose values are still alive. 0: no signature, on out of memory, and for code that is
 * not a function (modules, class bodies). Leaves no exception.
 */
uint32_t calls_sign_number(struct calls_signer *signer, struct marey_calls *calls, uint32_t function,
                           PyCodeObject *code, const uint64_t *words, size_t n_words);

/*
 * For a function whose arguments are in a dict: stores the parameters' values in `locals`, up to `room`, borrowed from
 * `dict`. False if it is not a plain dict, lacks some, or there are too many.
 */
bool calls_sign_locals(PyCodeObject *code, PyObject *dict, PyObject **locals, size_t room);

/*
 * A function with its signature for a table, a new str: "dot(a:int, b:int)"; if the text begins with "self:Class",
 * "Class.method(rest)", and for __init__ "Class(rest)". NULL and MemoryError on failure.
 */
PyObject *calls_sign_display(const char *name, const char *text);
/* sys.modules[module].__dict__[name], borrowed; NULL if missing. */
PyObject *calls_imported(const char *module, const char *name);

#endif
