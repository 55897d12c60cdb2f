/*
 * kymo/calls.h: a call profile: which function was called from where, how often and for how long, for whoever sees a
 * program's functions begin and end. kymo's Python package does so for Python; nothing here knows of it.
 *
 * A profile has functions, signatures of them (what a call was called with, as text) and a tree for each thread: a node
 * stands for a function and a signature called on exactly that path. Nodes have sums, nothing is kept for a single call.
 *
 *     struct kymo_calls *calls = kymo_calls_create(NULL);
 *     uint32_t f = kymo_calls_define(calls, &(struct kymo_calls_function){.name = "f", .file = "a.py", .line = 7});
 *     struct kymo_calls_thread *thread = kymo_calls_thread_create(calls);
 *     kymo_calls_enter(thread, f, 0);
 *     kymo_calls_leave(thread, f);
 *     kymo_calls_settle(calls);
 *     kymo_calls_write(calls, fd);           what `kymo report --calls` and kymo.load() read
 *
 * Cost: entering and leaving read the clock once each, and find the node by comparing it with the last callee of the same
 * caller, or by a hash; no lock is taken, and memory only when a path is new. Memory grows with paths up to a budget; past
 * it new paths are gathered below "(other paths)", one node for each function and signature, where counts and self times
 * stay exact.
 */
#ifndef KYMO_CALLS_H
#define KYMO_CALLS_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kymo_calls;
struct kymo_calls_thread;

enum kymo_calls_flags {
    KYMO_CALLS_SIGNATURES = 1u << 0, /* what functions are called with is told; a remark for readers */
    KYMO_CALLS_BUILTINS = 1u << 1, /* built-in functions are told; a remark for readers */
    KYMO_CALLS_CPU = 1u << 2,      /* time is what the thread spent on a processor */
    KYMO_CALLS_USER = 1u << 3,     /* time is handed in, by the calls that end in _at */
};

/* Zero means the default for every field. */
struct kymo_calls_options {
    uint32_t flags;
    double ns_per_tick;    /* of a time that is handed in; default 1 */
    uint64_t memory_bytes; /* budget, default 64 MiB: some 800,000 paths */
};

/* A profile; NULL without memory. Destroy it when no thread enters or leaves any more; NULL is fine. */
KYMO_API struct kymo_calls *kymo_calls_create(const struct kymo_calls_options *options);
KYMO_API void kymo_calls_destroy(struct kymo_calls *calls);

/*
 * Nodes, sums and stacks go; functions, signatures and threads stay known. No thread may be entering or leaving. A forked
 * child finds its profiles like this, with the thread that forked as the only one.
 */
KYMO_API void kymo_calls_clear(struct kymo_calls *calls);

enum kymo_calls_kind { KYMO_CALLS_PYTHON = 0, KYMO_CALLS_BUILTIN = 1, KYMO_CALLS_COMPILED = 2 };

/* Texts are UTF-8, copied; NULL stands for "". */
struct kymo_calls_function {
    const char *name; /* as the table of cProfile has it: "dot", "<built-in method builtins.len>" */
    const char *qualified; /* "Model.forward" */
    const char *file;      /* "~" for what is built in */
    const char *module;
    uint32_t line;
    enum kymo_calls_kind kind;
};

/*
 * A number for a function, from 1; 0 without memory, which may be entered too. Each call gives a new one, unless one of the
 * same texts was released: what is defined again and again is one function. Any thread.
 */
KYMO_API uint32_t kymo_calls_define(struct kymo_calls *calls,
                                    const struct kymo_calls_function *function);
/* The function is gone and will not be entered by this number; its sums stay. */
KYMO_API void kymo_calls_release_function(struct kymo_calls *calls, uint32_t function);
/* What a number stands for; texts are lent while the profile lives. False for a number that was never given. */
KYMO_API int kymo_calls_function_get(struct kymo_calls *calls, uint32_t number,
                                     struct kymo_calls_function *out);

/*
 * The number of a signature of `function`, from 1; 0 without memory. `text` (copied, `len` bytes) is what stands within the
 * parentheses; equal texts of a function are one signature. `elements` are those of the arrays in it, 0: unknown. Any
 * thread.
 */
KYMO_API uint32_t kymo_calls_signature(struct kymo_calls *calls, uint32_t function,
                                       const char *text, size_t len, double elements);
KYMO_API int kymo_calls_signature_get(struct kymo_calls *calls, uint32_t number, uint32_t *function,
                                      const char **text, double *elements);
/* A call got a signature that stands for several, because its function had too many. */
KYMO_API void kymo_calls_count_widened(struct kymo_calls *calls);

/* What one call costs the program, in picoseconds, as whoever tells of calls has measured it. */
KYMO_API void kymo_calls_set_cost(struct kymo_calls *calls, uint64_t cost_ps);

/*
 * The calling thread, as the profile keeps it; NULL without memory. It stays when the thread ends. Only the thread itself
 * may enter and leave, or who holds a lock that it holds while it does.
 */
KYMO_API struct kymo_calls_thread *kymo_calls_thread_create(struct kymo_calls *calls);
/* A name (copied) in place of the one that the system has. Before it is written for the first time. */
KYMO_API void kymo_calls_name_thread(struct kymo_calls_thread *thread, const char *name);

/* A function begins; resumed: it goes on, as a generator does. */
KYMO_API void kymo_calls_enter(struct kymo_calls_thread *thread, uint32_t function,
                               uint32_t signature);
KYMO_API void kymo_calls_resume(struct kymo_calls_thread *thread, uint32_t function,
                                uint32_t signature);
/*
 * It ends, whether it returns, yields or raises. What was entered after it and never left ends with it; one that is not on
 * the stack, because it began before the profile did, is no matter.
 */
KYMO_API void kymo_calls_leave(struct kymo_calls_thread *thread, uint32_t function);
/* The same with KYMO_CALLS_USER. */
KYMO_API void kymo_calls_enter_at(struct kymo_calls_thread *thread, uint32_t function,
                                  uint32_t signature, uint64_t now);
KYMO_API void kymo_calls_resume_at(struct kymo_calls_thread *thread, uint32_t function,
                                   uint32_t signature, uint64_t now);
KYMO_API void kymo_calls_leave_at(struct kymo_calls_thread *thread, uint32_t function, uint64_t now);
/* How many functions are entered and not left. */
KYMO_API size_t kymo_calls_depth(const struct kymo_calls_thread *thread);

/* What is open on any thread is counted up to this moment, and closed. No thread may be entering or leaving. */
KYMO_API void kymo_calls_settle(struct kymo_calls *calls);
KYMO_API void kymo_calls_settle_at(struct kymo_calls *calls, uint64_t now);

/*
 * A place of each thread for who tells of calls, NULL at first: what it knows of the thread. It lies where it is found by one
 * instruction, as a variable of a library that is loaded late does not.
 */
extern KYMO_API __thread void *kymo_calls_own __attribute__((tls_model("initial-exec")));

/* ---- what was counted ---- */

/* Sums over threads and paths, of what has ended. Of a function, or of a function called by another. */
struct kymo_calls_row {
    uint32_t function, signature;               /* signature 0: all of them, or none */
    uint32_t caller_function, caller_signature; /* both 0 in rows of functions */
    uint64_t calls;                             /* resumptions are calls */
    uint64_t resumes;                           /* of these */
    uint64_t recursive;                         /* of these, within another of the same row */
    uint64_t self, total;                       /* ticks; total without counting recursion twice */
};
struct kymo_calls_rows {
    struct kymo_calls_row *functions, *pairs; /* in the order in which they were met first */
    size_t n_functions, n_pairs;
};
/*
 * Add up, by function or by function and signature. Rows of "(other paths)" belong to no caller. No thread may be entering
 * or leaving. Free them with kymo_calls_rows_fini(), also zeroed ones.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_calls_rows_init(struct kymo_calls *calls, int by_signature,
                                                           struct kymo_calls_rows *out);
KYMO_API void kymo_calls_rows_fini(struct kymo_calls_rows *rows);

struct kymo_calls_counts {
    uint64_t nodes;       /* distinct paths with their signatures, over all threads */
    uint64_t other_paths; /* calls that were gathered below "(other paths)" */
    uint64_t widened;     /* calls whose signature stands for several */
    uint64_t bytes;       /* of memory */
    uint32_t functions, signatures, threads;
};
KYMO_API void kymo_calls_counts_get(struct kymo_calls *calls, struct kymo_calls_counts *out);
/* What a tick is, in nanoseconds. */
KYMO_API double kymo_calls_ns_per_tick(const struct kymo_calls *calls);

/* ---- where it goes ---- */

/*
 * Write a log of its own into `fd` (lent, at its end): what docs/formats/recording.md says of blocks CALLS. Open calls are
 * not in it: settle first. Any thread; others may enter and leave meanwhile.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_calls_write(struct kymo_calls *calls, int fd);

/*
 * Into the recording of this process, from now on: some seconds apart, and when it stops. One profile at a time: KYMO_ESTATE
 * when there is another. It is profile 0. `calls` must live until kymo_calls_unrecord(), which writes what is left.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_calls_record(struct kymo_calls *calls);
KYMO_API void kymo_calls_unrecord(struct kymo_calls *calls);

/* What the options of the recording ask for: calls and what begins with calls. */
struct kymo_calls_asked {
    int signatures; /* 0 none, 1 types, 2 dtypes, 3 shapes, 4 layouts; -1: the default */
    int builtins;
    uint64_t memory_bytes; /* 0: the default */
    char modules[512];     /* names with ':' between; "": all */
};
/* 1 and `out` while a recording with calls is on, else 0. */
KYMO_API int kymo_calls_asked_get(struct kymo_calls_asked *out);

/* The node that the calling thread is in, of the profile that goes into the recording; 0 when there is none. */
KYMO_API int kymo_calls_current(uint32_t *profile, uint32_t *node);

#ifdef __cplusplus
}
#endif
#endif
