/*
 * calls_hook.h: how calls of Python functions get into a call profile, <marey/calls.h>.
 *
 *   the interpreter ──> calls_monitoring.c, 3.12 and later: sys.monitoring, all threads
 *                  └──> calls_setprofile.c, before: the profile hook of each thread
 *                            '──> calls_hook.c: the enabled profiles, this thread in each ──> marey_calls_enter, marey_calls_leave
 *                                 calls_functions.c: code objects and built-ins to numbers
 *   calls_profile.c: the base type of marey.Profile, and the cost of a call; calls_stats.c: its tables
 *
 * Everything holds the GIL. Up to CALLS_PROFILES profiles are enabled at a time, each in a slot; a thread finds its
 * data in a profile by comparing the profile's id with the one cached for the slot.
 *
 * Functions are identified by the address of their code object, or of their PyMethodDef. Code objects are not kept
 * alive: they notify us when they are freed (through their extra data), and the number can then be reused for one with
 * the same strings. For a built-in function its module or type is kept alive, because it cannot notify us.
 */
#ifndef MAREY_PYTHON_CALLS_HOOK_H
#define MAREY_PYTHON_CALLS_HOOK_H

#include "native.h"

#include "calls/calls_sign.h"

#include <marey/calls.h>
#include <stdbool.h>

#if PY_VERSION_HEX >= 0x030c0000
#define CALLS_MONITORING 1
#else
#define CALLS_MONITORING 0
#endif

enum { CALLS_PROFILES = 4 };

/* Maps addresses to numbers, both nonzero. */
struct calls_table {
    struct calls_entry {
        const void *key; /* NULL: empty */
        uint32_t number;
    } * entries;
    size_t n_entries, n_used; /* n_entries a power of two, or 0 */
};
/* The number of functions that the profile does not watch. */
#define CALLS_IGNORED UINT32_MAX

struct calls_profile {
    PyObject_HEAD struct marey_calls *calls;
    uint64_t id;                  /* unique */
    struct calls_table functions; /* by address */
    PyObject **codes; /* by number: the code object, borrowed; NULL: freed, or a built-in */
    size_t n_codes;
    PyObject *kept;                /* a list: owners of built-in functions */
    PyObject *timer;               /* NULL: libmarey's clock */
    double timer_unit;             /* seconds; 0: the timer returns seconds as a float */
    PyObject *modules;             /* a tuple of names to watch; NULL: all */
    struct calls_signer *signer;   /* NULL: no signatures */
    struct calls_table generators; /* signatures of started generators and coroutines, by frame */
    bool with_builtins, with_subcalls, is_recorded;
    int slot; /* -1: off */
    struct calls_known {
        uint64_t thread; /* id, never reused */
        struct marey_calls_thread *calls;
    } * threads;
    size_t n_threads;
    struct calls_profile *next; /* list of all profiles */
};

/* The enabled profiles, by slot. */
struct calls_hook {
    struct calls_profile *profiles[CALLS_PROFILES]; /* strong */
    size_t n_slots;                                 /* the last used one, plus 1 */
    struct calls_profile *one; /* the only one, in slot 0, if it is plain: libmarey's clock, no filter; else NULL */
};
extern struct calls_hook calls_hook;

/* This thread in each slot's profile; id 0: unknown. At marey_calls_own. */
struct calls_here {
    uint64_t id;
    struct marey_calls_thread *thread;
};

/*
 * This thread in the only plain profile; NULL if there is none, the thread is new to it, or a formatter is running in
 * any thread, whose calls are not counted: then take the slow path.
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

/* 0: not found. */
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

/* Ends a call in the only plain profile, by the key of its function. False: take the slow path. */
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

/* Makes room for one more; required before calls_table_get(). False on out of memory. */
bool calls_table_reserve(struct calls_table *table);
/* Adds or replaces a number; false on out of memory. */
bool calls_table_set(struct calls_table *table, const void *key, uint32_t number);
void calls_table_remove(struct calls_table *table, const void *key);

/* Prepares for calls_table_get(); -1 and MemoryError on failure. */
int calls_numbers_init(struct calls_profile *profile);
void calls_numbers_fini(struct calls_profile *profile);
/* The number of a Python function, defined if new; `globals` may be NULL. 0 on out of memory. Leaves no exception. */
uint32_t calls_function_of_code(struct calls_profile *profile, PyObject *code, PyObject *globals);
/* The same for a built-in, identified by `key`; `self` is the object of a method descriptor's call, else NULL. */
uint32_t calls_function_of_builtin(struct calls_profile *profile, const PyMethodDef *key,
                                   PyObject *callable, PyObject *self);

/* ---- calls_hook.c ---- */

/* A frame of a call. `locals` as for calls_sign_frame(), NULL: unknown; `key` is its address. */
struct calls_frame {
    PyObject *code, *globals;
    PyObject *const *locals;
    const void *key;
    bool is_resumed;
};
/* A call begins or ends on this thread, in every enabled profile; the slow path. */
void calls_begin_code(const struct calls_frame *frame);
/* A known function begins in the only plain profile, which has signatures; not a resumption. */
void calls_begin_signed(struct calls_profile *one, struct marey_calls_thread *thread,
                        uint32_t function, const struct calls_frame *frame);
void calls_begin_builtin(const PyMethodDef *key, PyObject *callable, PyObject *self);
/* The function whose code object or PyMethodDef is `key`. */
void calls_end(const void *key, bool is_builtin);
/* Whether an enabled profile watches this code; false: its events may be disabled. */
bool calls_is_watched(PyObject *code, PyObject *globals);

/* Whether an enabled profile has signatures. */
bool calls_is_signing(void);
/* Enables and disables; enabling twice has no effect. -1 and an exception on failure. */
int calls_enable(struct calls_profile *profile);
int calls_disable(struct calls_profile *profile);
/* At interpreter exit: disables all. */
void calls_disable_all(void);

/* ---- calls_monitoring.c or calls_setprofile.c ---- */

/* Starts receiving calls. -1 and an exception, which names a conflicting tool. */
int calls_source_start(void);
/* The enabled profiles or their options changed. */
int calls_source_change(void);
int calls_source_stop(void);
/* The profile hook for new threads; NULL if none is needed. */
extern PyMethodDef calls_source_functions[];

/* ---- calls_numba.c ---- */

/*
 * The arguments of a call reported by numba, as for calls_sign_frame(), up to `room`; borrowed until numba's function
 * returns. False if unknown. Sets no exception and preserves an existing one.
 */
bool calls_compiled_locals(PyObject *code, PyObject **locals, size_t room);
/* Makes arguments available if numba is imported; calling again has no effect. No exception is set before or after. */
void calls_numba_watch(void);
void calls_numba_leave(void);

/* ---- calls_profile.c ---- */

/* The module marey._native, borrowed. */
PyObject *calls_module(void);
/* Prepares for the first profile: callbacks for interpreter exit and forks. -1 and an exception on failure. */
int calls_prepare(void);

/* Reports the cost of a call to the profile, measured once per process when no other hook interferes. Leaves no exception. */
void calls_tell_cost(struct calls_profile *profile);

/* ---- calls_stats.c ---- */

PyObject *calls_getstats(struct calls_profile *profile);
/* {(file, line, name): (primitive calls, calls, self time, total time, callers)}, as in pstats. */
PyObject *calls_stats_dict(struct calls_profile *profile);

#endif
