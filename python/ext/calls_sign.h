/*
 * calls_sign.h: what a function was called with, as a number.
 *
 *     frame's locals --calls_sign_frame()--> words --calls_sign_number()--> number of a signature
 *                                                          '-- at first sight --> text: "a:ndarray(dtype=float32, shape=(16,)), b:int"
 *
 * Words say of each argument what it is at the chosen level: its type, dtype, shape. They are equal exactly if the
 * signature is, so a call whose function saw the same words last costs a few loads and compares. Text is made of words,
 * once for each signature.
 *
 * No Python code and no code of an object runs here. Types are known by their address, arrays of numpy and the built-in
 * containers are read through their C structures, all others through getters that are written in C and belong to a type
 * that is known by address. The one exception is asked for by the user: a formatter (marey.profiler.register). While it
 * runs calls_sign_is_formatting is set on that thread, and the hook is to return at once. Besides, an allocation made here
 * may be where Python (before 3.12) collects garbage, as any allocation may be; what the collector
 * calls enters the hook again, as from anywhere else, and finds everything here in order.
 *
 * With the GIL, all of it. A type is known by its address only while it lives: a weak reference reports its end, so that
 * a type which gets the address of a dead one is another type, and nothing of the program is kept alive.
 */
#ifndef MAREY_PYTHON_CALLS_SIGN_H
#define MAREY_PYTHON_CALLS_SIGN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

struct marey_calls;

/* What does not fit is cut, and shown as "..." at the end of the signature. */
enum { CALLS_SIGN_WORDS = 64 };

enum calls_level {
    CALLS_NONE,   /* no signatures */
    CALLS_TYPES,  /* names of types */
    CALLS_DTYPE,  /* and dtypes of arrays, types of elements */
    CALLS_SHAPE,  /* and shapes of arrays, lengths of containers: the default */
    CALLS_LAYOUT, /* and how arrays lie in memory, and on which device */
};

/* The number of that text for that function; marey_calls_signature() has this form. 0: none can be had. */
typedef uint32_t calls_sign_define(struct marey_calls *calls, uint32_t function, const char *text,
                                   size_t length, double elements);

struct calls_sign_options {
    enum calls_level level;
    uint32_t depth;       /* how far containers are looked into; 0: 2 */
    uint32_t most;        /* signatures of one function before shapes are widened; 0: 64 */
    bool requires_grad;   /* show whether tensors of torch require gradients */
    PyObject *formatters; /* lent; dict: type -> callable, of marey.profiler.register; NULL: none */
    calls_sign_define *define; /* never NULL */
    void (*count_widened)(
        struct marey_calls *); /* once for each call with a widened signature; NULL: not counted */
};

/* Counts registrations of formatters in this process: signers that know less look at their types again. */
extern uint32_t calls_sign_registered;

/* What signing knows: of a Profile. */
struct calls_signer;

/* NULL and an exception when memory is short. */
struct calls_signer *calls_signer_create(const struct calls_sign_options *options);
/* Takes NULL. Releases what it holds of Python, so with the GIL and before the interpreter ends. */
void calls_signer_destroy(struct calls_signer *signer);
/* While a formatter of the user runs on this thread: the hook returns at once, neither signing nor counting. */
extern _Thread_local bool calls_sign_is_formatting;
/* On how many threads one runs: where it is 0, no thread need check its own flag. */
extern uint32_t calls_sign_n_formatting;

/*
 * The words of a call that begins. `locals` are the frame's fast locals, all of them, as they lie in the frame (3.11 and
 * later: localsplus; before: f_localsplus), all lent; parameters that are cells are found here. A parameter that has no
 * value any more, as in a generator that goes on, is marked as such: sign at the first start of a generator and keep the number.
 * Returns how many words, at most CALLS_SIGN_WORDS. Never fails and leaves no exception; one that is set stays set.
 */
size_t calls_sign_frame(struct calls_signer *signer, PyCodeObject *code, PyObject *const *locals,
                        uint64_t words[CALLS_SIGN_WORDS]);

/*
 * The number of these words for a function, by options.define at first sight. Past the cap the shapes that differ are
 * shown as ranges ("shape=(64..127, 768)"), and past a quarter more of those as one signature, "other shapes".
 * `code` is that of calls_sign_frame(), whose values still live. 0: no signature, when memory is short, and for code that is not a
 * function (modules, bodies of classes). Leaves no exception.
 */
uint32_t calls_sign_number(struct calls_signer *signer, struct marey_calls *calls, uint32_t function,
                           PyCodeObject *code, const uint64_t *words, size_t n_words);

/*
 * A function whose arguments are in a dict: put the parameters' values into `locals`, as many as `room`, borrowed from `dict`,
 * and return true. False: not a plain dict, not all of them, or too many.
 */
bool calls_sign_locals(PyCodeObject *code, PyObject *dict, PyObject **locals, size_t room);

/*
 * How a function with its signature is written in a table, a new str: "dot(a:int, b:int)"; for a text that begins with
 * "self:Class" "Class.method(rest)", and for __init__ "Class(rest)". NULL and an exception when memory is short.
 */
PyObject *calls_sign_display(const char *name, const char *text);
/* sys.modules[module].__dict__[name]: lent; NULL when it is not there. */
PyObject *calls_imported(const char *module, const char *name);

#endif
