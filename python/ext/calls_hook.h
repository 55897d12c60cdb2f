/*
 * calls_hook.h: how calls of Python functions come into a call profile, <marey/calls.h>.
 *
 *   the interpreter ──> calls_monitoring.c, 3.12 and later: sys.monitoring, all threads
 *                  └──> calls_setprofile.c, before: the profile hook of each thread
 *                            '──> calls_hook.c: which profiles are on, this thread in each ──> marey_calls_enter, marey_calls_leave
 *                                 calls_functions.c: code objects and built-ins to numbers
 *   calls_profile.c: the base type of marey.Profile, and the cost of a call; calls_stats.c: its tables
 *
 * All of it happens with the GIL. Up to CALLS_PROFILES profiles are on at a time, each in a slot; a thread finds itself in a
 * profile by comparing that profile's id with the one it has in the slot.
 *
 * Functions are found by the address of their code object, or of their PyMethodDef. Nothing of the program is kept alive for
 * that: a code object calls us when it goes (by its extra data), and its number is then free for one of the same texts. Of a
 * built-in function its module or type is kept, because it has no such way.
 */
#ifndef MAREY_PYTHON_CALLS_HOOK_H
#define MAREY_PYTHON_CALLS_HOOK_H

#include "native.h"

#include "calls_sign.h"

#include <marey/calls.h>
#include <stdbool.h>

#if PY_VERSION_HEX >= 0x030c0000
#define CALLS_MONITORING 1
#else
#define CALLS_MONITORING 0
#endif

enum { CALLS_PROFILES = 4 };

/* Numbers by address, both not 0. */
struct calls_table {
    struct calls_entry {
        const void *key; /* NULL: empty */
        uint32_t number;
    } * entries;
    size_t n_entries, n_used; /* n_entries a power of two, or 0 */
};
/* Of a function that the profile does not watch. */
#define CALLS_IGNORED UINT32_MAX

struct calls_profile {
    PyObject_HEAD struct marey_calls *calls;
    uint64_t id;                  /* no two have the same */
    struct calls_table functions; /* by address */
    PyObject **codes;             /* by number: the code object, lent; NULL: gone, or built in */
    size_t n_codes;
    PyObject *kept;              /* a list: owners of built-in functions */
    PyObject *timer;             /* NULL: libmarey's clock */
    double timer_unit;           /* seconds; 0: the timer gives seconds as a float */
    PyObject *modules;           /* a tuple of names to watch; NULL: all */
    struct calls_signer *signer; /* NULL: no signatures */
    struct calls_table generators; /* signatures of generators and coroutines that began, by their frames */
    bool with_builtins, with_subcalls, is_recorded;
    int slot; /* -1: off */
    struct calls_known {
        uint64_t thread; /* id, never used again */
        struct marey_calls_thread *calls;
    } * threads;
    size_t n_threads;
    struct calls_profile *next; /* of all that there are */
};

/* The profiles that are on, by slot. */
struct calls_hook {
    struct calls_profile *profiles[CALLS_PROFILES]; /* strong */
    size_t n_slots;                                 /* the last that is taken, plus 1 */
    struct calls_profile *one; /* the only one, in slot 0, when it is plain: libmarey's clock, no filter; else NULL */
};
extern struct calls_hook calls_hook;

/* This thread in each slot's profile; id 0: not known. At marey_calls_own. */
struct calls_here {
    uint64_t id;
    struct marey_calls_thread *thread;
};

/*
 * This thread in the one plain profile; NULL when there is none, the thread is new to it, or a formatter runs
 * somewhere, whose calls are not counted: the long way then.
 */
static inline struct marey_calls_thread *calls_plain(const struct calls_profile *one)
{
    const struct calls_here *const here = marey_calls_own;
    return MAREY_LIKELY(one != NULL && here != NULL && here->id == one->id &&
                        calls_sign_n_formatting == 0)
               ? here->thread
               : NULL;
}

/* ---- calls_functions.c ---- */

static inline size_t calls_hash(const void *key)
{
    return (size_t)(((uint64_t)(uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* 0: not there. */
static inline uint32_t calls_table_get(const struct calls_table *table, const void *key)
{
    const size_t mask = table->n_entries - 1;
    for (size_t i = calls_hash(key) & mask;; i = (i + 1) & mask) {
        if (MAREY_LIKELY(table->entries[i].key == key))
            return table->entries[i].number;
        if (table->entries[i].key == NULL)
            return 0;
    }
}

/* The end of a call in the one plain profile, by the key of its function. False: take the long way. */
static inline bool calls_end_plain(const void *key)
{
    const struct calls_profile *const one = calls_hook.one;
    struct marey_calls_thread *const thread = calls_plain(one);
    if (MAREY_UNLIKELY(thread == NULL))
        return false;
    const uint32_t function = calls_table_get(&one->functions, key);
    if (MAREY_LIKELY(function != 0))
        marey_calls_leave(thread, function);
    return true;
}

/* Room for one more; a table needs it before calls_table_get(). False on out of memory. */
bool calls_table_reserve(struct calls_table *table);
/* Add a number, or replace the present one; false on out of memory. */
bool calls_table_set(struct calls_table *table, const void *key, uint32_t number);
void calls_table_remove(struct calls_table *table, const void *key);

/* Ready for calls_table_get(); -1 and an exception without memory. */
int calls_numbers_init(struct calls_profile *profile);
void calls_numbers_fini(struct calls_profile *profile);
/* The number of a Python function, made where it is new; `globals` may be NULL. 0 without memory. Leaves no exception. */
uint32_t calls_function_of_code(struct calls_profile *profile, PyObject *code, PyObject *globals);
/* The same of a built-in, which `key` identifies; `self` is what a method descriptor is called on, else NULL. */
uint32_t calls_function_of_builtin(struct calls_profile *profile, const PyMethodDef *key,
                                   PyObject *callable, PyObject *self);

/* ---- calls_hook.c ---- */

/* A frame as it is met. `locals` as calls_sign_frame() wants them, NULL: not known; `key` is its address. */
struct calls_frame {
    PyObject *code, *globals;
    PyObject *const *locals;
    const void *key;
    bool is_resumed;
};
/* Something begins or ends on this thread, in every profile that is on; the way for all that is not plain. */
void calls_begin_code(const struct calls_frame *frame);
/* A function that is known begins in the one plain profile, which signs, and is not going on. */
void calls_begin_signed(struct calls_profile *one, struct marey_calls_thread *thread,
                        uint32_t function, const struct calls_frame *frame);
void calls_begin_builtin(const PyMethodDef *key, PyObject *callable, PyObject *self);
/* The function whose code object or PyMethodDef is `key`. */
void calls_end(const void *key, bool is_builtin);
/* Whether any profile that is on watches this code; false: its events may be disabled. */
bool calls_is_watched(PyObject *code, PyObject *globals);

/* Whether a profile with signatures is on. */
bool calls_is_signing(void);
/* On and off; on again is nothing. -1 and an exception when it cannot be. */
int calls_enable(struct calls_profile *profile);
int calls_disable(struct calls_profile *profile);
/* The exit of the interpreter: all off. */
void calls_disable_all(void);

/* ---- calls_monitoring.c or calls_setprofile.c ---- */

/* See calls from now on. -1 and an exception, which says who is in the way. */
int calls_source_start(void);
/* Others, or other options, are on than before. */
int calls_source_change(void);
int calls_source_stop(void);
/* The profile hook of a new thread; NULL where none is needed. */
extern PyMethodDef calls_source_functions[];

/* ---- calls_numba.c ---- */

/*
 * The arguments of the call that numba reports, as calls_sign_frame() wants them, as many as `room`; lent until numba's function
 * returns. False: not known. Leaves no exception; one that is set stays set.
 */
bool calls_compiled_locals(PyObject *code, PyObject **locals, size_t room);
/* Keep arguments at hand where numba is imported; done already is nothing. No exception is set before or after. */
void calls_numba_watch(void);
void calls_numba_leave(void);

/* ---- calls_profile.c ---- */

/* The module marey._native, lent. */
PyObject *calls_module(void);
/* What has to be there before the first profile is on: the ends of the interpreter and of forks. -1 and an exception. */
int calls_prepare(void);

/* Tell the profile what a call costs, measured once in a process where nothing is in the way. Leaves no exception. */
void calls_tell_cost(struct calls_profile *profile);

/* ---- calls_stats.c ---- */

PyObject *calls_getstats(struct calls_profile *profile);
/* {(file, line, name): (primitive calls, calls, own time, time, callers)}, as pstats has it. */
PyObject *calls_stats_dict(struct calls_profile *profile);

#endif
