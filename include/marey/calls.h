/*
 * marey/calls.h: a call profile: which function was called from where, how often and for how long. For tracers that see
 * functions start and return; marey's Python package is one, and nothing here depends on Python.
 *
 * A profile has functions, their signatures (the arguments of a call, as text) and a call tree per thread. A node is a
 * function with a signature, called on exactly that path. Nodes hold sums; single calls are not kept.
 *
 *     struct marey_calls *calls = marey_calls_create(NULL);
 *     uint32_t f = marey_calls_define(calls, &(struct marey_calls_function){.name = "f", .file = "a.py", .line = 7});
 *     struct marey_calls_thread *thread = marey_calls_thread_create(calls);
 *     marey_calls_enter(thread, f, 0);
 *     marey_calls_leave(thread, f);
 *     marey_calls_settle(calls);
 *     marey_calls_write(calls, fd);          for `marey report --calls` and marey.load()
 *
 * Cost: enter and leave read the clock once each. They find the node by comparing it with the last callee of the same
 * caller, or by a hash. They take no lock, and allocate only for a new path. Memory grows with the number of paths up to a
 * budget. Past the budget, new paths are collected below "(other paths)", one node for each function and signature; counts
 * and self times stay exact.
 */
#ifndef MAREY_CALLS_H
#define MAREY_CALLS_H

#include <marey/base.h>

MAREY_BEGIN_C

struct marey_calls;
struct marey_calls_thread;

enum marey_calls_flags {
    MAREY_CALLS_SIGNATURES = 1u << 0, /* calls have signatures; informative */
    MAREY_CALLS_BUILTINS = 1u << 1,   /* includes built-in functions; informative */
    MAREY_CALLS_CPU = 1u << 2,        /* times are CPU time of the thread */
    MAREY_CALLS_USER = 1u << 3,       /* the caller passes times to the functions *_at */
};

/* Zero means the default for every field. */
struct marey_calls_options {
    uint32_t flags;
    double ns_per_tick;    /* of times passed to *_at; default 1 */
    uint64_t memory_bytes; /* budget, default 64 MiB: about 800,000 paths */
};

/* Returns NULL on out of memory. Destroy when no thread enters or leaves any more; accepts NULL. */
MAREY_API struct marey_calls *marey_calls_create(const struct marey_calls_options *options);
MAREY_API void marey_calls_destroy(struct marey_calls *calls);

/*
 * Remove nodes, sums and stacks; keep functions, signatures and threads. No thread may be entering or leaving. In a forked
 * child, profiles are cleared and have only the thread that forked.
 */
MAREY_API void marey_calls_clear(struct marey_calls *calls);

enum marey_calls_kind { MAREY_CALLS_PYTHON = 0, MAREY_CALLS_BUILTIN = 1, MAREY_CALLS_COMPILED = 2 };

/* Strings are UTF-8, copied; NULL: "". */
struct marey_calls_function {
    const char *name;      /* as cProfile prints it: "dot", "<built-in method builtins.len>" */
    const char *qualified; /* "Model.forward" */
    const char *file;      /* "~": built-in */
    const char *module;
    uint32_t line;
    enum marey_calls_kind kind;
};

/*
 * Returns the function's number, from 1; 0 on out of memory (0 may be entered, too). Each call returns a new number, unless
 * a function with the same strings was released: a function that is defined repeatedly keeps one number. Any thread.
 */
MAREY_API uint32_t marey_calls_define(struct marey_calls *calls,
                                      const struct marey_calls_function *function);
/* The function no longer exists, and its number is not entered again; its sums stay. */
MAREY_API void marey_calls_release_function(struct marey_calls *calls, uint32_t function);
/* The function of a number; strings are lent until the profile is destroyed. Returns false for an unknown number. */
MAREY_API int marey_calls_function_get(struct marey_calls *calls, uint32_t number,
                                       struct marey_calls_function *out);

/*
 * Returns the number of a signature of `function`, from 1; 0 on out of memory. `text` (copied, `len` bytes) is the text
 * within the parentheses; equal texts of a function are one signature. `elements`: number of array elements in the
 * arguments, 0: unknown. Any thread.
 */
MAREY_API uint32_t marey_calls_signature(struct marey_calls *calls, uint32_t function,
                                         const char *text, size_t len, double elements);
MAREY_API int marey_calls_signature_get(struct marey_calls *calls, uint32_t number,
                                        uint32_t *function, const char **text, double *elements);
/* Count a call whose signature was widened to cover several, because its function had too many. */
MAREY_API void marey_calls_count_widened(struct marey_calls *calls);

/* Overhead of one call in picoseconds, as the tracer measured it. */
MAREY_API void marey_calls_set_cost(struct marey_calls *calls, uint64_t cost_ps);

/*
 * Register the calling thread; returns NULL on out of memory. It stays after the thread ends. Only this thread may enter
 * and leave; another one may if both hold the same lock meanwhile.
 */
MAREY_API struct marey_calls_thread *marey_calls_thread_create(struct marey_calls *calls);
/* A name (copied) that replaces the system's. Call before the profile is first written. */
MAREY_API void marey_calls_name_thread(struct marey_calls_thread *thread, const char *name);

/* A function starts; resume: a generator continues. */
MAREY_API void marey_calls_enter(struct marey_calls_thread *thread, uint32_t function,
                                 uint32_t signature);
MAREY_API void marey_calls_resume(struct marey_calls_thread *thread, uint32_t function,
                                  uint32_t signature);
/*
 * A function returns, yields or raises. Functions entered after it and never left end with it. A function that is not on
 * the stack, because it started before the profile, is ignored.
 */
MAREY_API void marey_calls_leave(struct marey_calls_thread *thread, uint32_t function);
/* The same with MAREY_CALLS_USER. */
MAREY_API void marey_calls_enter_at(struct marey_calls_thread *thread, uint32_t function,
                                    uint32_t signature, uint64_t now);
MAREY_API void marey_calls_resume_at(struct marey_calls_thread *thread, uint32_t function,
                                     uint32_t signature, uint64_t now);
MAREY_API void marey_calls_leave_at(struct marey_calls_thread *thread, uint32_t function,
                                    uint64_t now);
/* Number of functions entered and not left. */
MAREY_API size_t marey_calls_depth(const struct marey_calls_thread *thread);

/* Count the open calls of all threads up to now, and close them. No thread may be entering or leaving. */
MAREY_API void marey_calls_settle(struct marey_calls *calls);
MAREY_API void marey_calls_settle_at(struct marey_calls *calls, uint64_t now);

/*
 * Per-thread pointer for the tracer's data about the thread; initially NULL. initial-exec: one instruction reads it, unlike
 * a thread-local variable of a library loaded with dlopen.
 */
extern MAREY_API __thread void *marey_calls_own __attribute__((tls_model("initial-exec")));

/* ---- results ---- */

/* Sums of finished calls over threads and paths: of a function, or of a pair of caller and function. */
struct marey_calls_row {
    uint32_t function, signature;               /* signature 0: all of them, or none */
    uint32_t caller_function, caller_signature; /* both 0 in rows of functions */
    uint64_t calls;                             /* resumptions are calls */
    uint64_t resumes;                           /* of the calls */
    uint64_t recursive;   /* of the calls: within another call of the same row */
    uint64_t self, total; /* ticks; total without counting recursion twice */
};
struct marey_calls_rows {
    struct marey_calls_row *functions, *pairs; /* in the order of their first call */
    size_t n_functions, n_pairs;
};
/*
 * Add up, by function or by function and signature. Rows of "(other paths)" have no caller. No thread may be entering or
 * leaving. Free with marey_calls_rows_fini(), which accepts a zeroed struct.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_rows_init(struct marey_calls *calls,
                                                               int by_signature,
                                                               struct marey_calls_rows *out);
MAREY_API void marey_calls_rows_fini(struct marey_calls_rows *rows);

struct marey_calls_counts {
    uint64_t nodes;       /* distinct paths with their signatures, over all threads */
    uint64_t other_paths; /* calls below "(other paths)" */
    uint64_t widened;     /* calls whose signature was widened */
    uint64_t bytes;       /* of memory */
    uint32_t functions, signatures, threads;
};
MAREY_API void marey_calls_counts_get(struct marey_calls *calls, struct marey_calls_counts *out);
/* Nanoseconds per tick. */
MAREY_API double marey_calls_ns_per_tick(const struct marey_calls *calls);

/* ---- output ---- */

/*
 * Append a log with only this profile to `fd` (lent): the blocks CALLS of docs/formats/recording.md. Open calls are not
 * included: settle first. Any thread; other threads may enter and leave meanwhile.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_write(struct marey_calls *calls, int fd);

/*
 * Write the profile to the recording of this process from now on: every few seconds, and when the recording stops. One
 * profile at a time: MAREY_ESTATE while another is recorded. It is profile 0. `calls` must live until
 * marey_calls_unrecord(), which writes the rest.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_record(struct marey_calls *calls);
MAREY_API void marey_calls_unrecord(struct marey_calls *calls);

/* The recording's options `calls` and calls_*. */
struct marey_calls_asked {
    int signatures; /* 0 none, 1 types, 2 dtypes, 3 shapes, 4 layouts; -1: the default */
    int builtins;
    uint64_t memory_bytes; /* 0: the default */
    char modules[512];     /* names separated by ':'; "": all */
};
/* Returns 1 and fills `out` while a recording with calls is open, else 0. */
MAREY_API int marey_calls_asked_get(struct marey_calls_asked *out);

/* The calling thread's current node in the recorded profile. Returns 0 if there is none. */
MAREY_API int marey_calls_current(uint32_t *profile, uint32_t *node);

MAREY_END_C
#endif
