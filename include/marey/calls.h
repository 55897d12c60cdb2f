/*
 * marey/calls.h: a call profile: which function was called from where, how often and for how long, for whoever sees a
 * program's functions begin and end. marey's Python package does so for Python; nothing here knows of it.
 *
 * A profile has functions, signatures of them (what a call was called with, as text) and a tree for each thread: a node
 * stands for a function and a signature called on exactly that path. Nodes have sums, nothing is kept for a single call.
 *
 *     struct marey_calls *calls = marey_calls_create(NULL);
 *     uint32_t f = marey_calls_define(calls, &(struct marey_calls_function){.name = "f", .file = "a.py", .line = 7});
 *     struct marey_calls_thread *thread = marey_calls_thread_create(calls);
 *     marey_calls_enter(thread, f, 0);
 *     marey_calls_leave(thread, f);
 *     marey_calls_settle(calls);
 *     marey_calls_write(calls, fd);          what `marey report --calls` and marey.load() read
 *
 * Cost: entering and leaving read the clock once each, and find the node by comparing it with the last callee of the same
 * caller, or by a hash; no lock is taken, and memory only when a path is new. Memory grows with paths up to a budget; past
 * it new paths are gathered below "(other paths)", one node for each function and signature, where counts and self times
 * stay exact.
 */
#ifndef MAREY_CALLS_H
#define MAREY_CALLS_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct marey_calls;
struct marey_calls_thread;

enum marey_calls_flags {
    MAREY_CALLS_SIGNATURES = 1u << 0, /* what functions are called with is told; a remark for readers */
    MAREY_CALLS_BUILTINS = 1u << 1, /* built-in functions are told; a remark for readers */
    MAREY_CALLS_CPU = 1u << 2,      /* time is what the thread spent on a processor */
    MAREY_CALLS_USER = 1u << 3,     /* time is handed in, by the calls that end in _at */
};

/* Zero means the default for every field. */
struct marey_calls_options {
    uint32_t flags;
    double ns_per_tick;    /* of a time that is handed in; default 1 */
    uint64_t memory_bytes; /* budget, default 64 MiB: some 800,000 paths */
};

/* A profile; NULL without memory. Destroy it when no thread enters or leaves any more; NULL is fine. */
MAREY_API struct marey_calls *marey_calls_create(const struct marey_calls_options *options);
MAREY_API void marey_calls_destroy(struct marey_calls *calls);

/*
 * Nodes, sums and stacks go; functions, signatures and threads stay known. No thread may be entering or leaving. A forked
 * child finds its profiles like this, with the thread that forked as the only one.
 */
MAREY_API void marey_calls_clear(struct marey_calls *calls);

enum marey_calls_kind { MAREY_CALLS_PYTHON = 0, MAREY_CALLS_BUILTIN = 1, MAREY_CALLS_COMPILED = 2 };

/* Texts are UTF-8, copied; NULL stands for "". */
struct marey_calls_function {
    const char *name; /* as the table of cProfile has it: "dot", "<built-in method builtins.len>" */
    const char *qualified; /* "Model.forward" */
    const char *file;      /* "~" for what is built in */
    const char *module;
    uint32_t line;
    enum marey_calls_kind kind;
};

/*
 * A number for a function, from 1; 0 without memory, which may be entered too. Each call gives a new one, unless one of the
 * same texts was released: what is defined again and again is one function. Any thread.
 */
MAREY_API uint32_t marey_calls_define(struct marey_calls *calls,
                                      const struct marey_calls_function *function);
/* The function is gone and will not be entered by this number; its sums stay. */
MAREY_API void marey_calls_release_function(struct marey_calls *calls, uint32_t function);
/* What a number stands for; texts are lent while the profile lives. False for a number that was never given. */
MAREY_API int marey_calls_function_get(struct marey_calls *calls, uint32_t number,
                                       struct marey_calls_function *out);

/*
 * The number of a signature of `function`, from 1; 0 without memory. `text` (copied, `len` bytes) is what stands within the
 * parentheses; equal texts of a function are one signature. `elements` are those of the arrays in it, 0: unknown. Any
 * thread.
 */
MAREY_API uint32_t marey_calls_signature(struct marey_calls *calls, uint32_t function,
                                         const char *text, size_t len, double elements);
MAREY_API int marey_calls_signature_get(struct marey_calls *calls, uint32_t number,
                                        uint32_t *function, const char **text, double *elements);
/* A call got a signature that stands for several, because its function had too many. */
MAREY_API void marey_calls_count_widened(struct marey_calls *calls);

/* What one call costs the program, in picoseconds, as whoever tells of calls has measured it. */
MAREY_API void marey_calls_set_cost(struct marey_calls *calls, uint64_t cost_ps);

/*
 * The calling thread, as the profile keeps it; NULL without memory. It stays when the thread ends. Only the thread itself
 * may enter and leave, or who holds a lock that it holds while it does.
 */
MAREY_API struct marey_calls_thread *marey_calls_thread_create(struct marey_calls *calls);
/* A name (copied) in place of the one that the system has. Before it is written for the first time. */
MAREY_API void marey_calls_name_thread(struct marey_calls_thread *thread, const char *name);

/* A function begins; resumed: it goes on, as a generator does. */
MAREY_API void marey_calls_enter(struct marey_calls_thread *thread, uint32_t function,
                                 uint32_t signature);
MAREY_API void marey_calls_resume(struct marey_calls_thread *thread, uint32_t function,
                                  uint32_t signature);
/*
 * It ends, whether it returns, yields or raises. What was entered after it and never left ends with it; one that is not on
 * the stack, because it began before the profile did, is no matter.
 */
MAREY_API void marey_calls_leave(struct marey_calls_thread *thread, uint32_t function);
/* The same with MAREY_CALLS_USER. */
MAREY_API void marey_calls_enter_at(struct marey_calls_thread *thread, uint32_t function,
                                    uint32_t signature, uint64_t now);
MAREY_API void marey_calls_resume_at(struct marey_calls_thread *thread, uint32_t function,
                                     uint32_t signature, uint64_t now);
MAREY_API void marey_calls_leave_at(struct marey_calls_thread *thread, uint32_t function,
                                    uint64_t now);
/* How many functions are entered and not left. */
MAREY_API size_t marey_calls_depth(const struct marey_calls_thread *thread);

/* What is open on any thread is counted up to this moment, and closed. No thread may be entering or leaving. */
MAREY_API void marey_calls_settle(struct marey_calls *calls);
MAREY_API void marey_calls_settle_at(struct marey_calls *calls, uint64_t now);

/*
 * A place of each thread for who tells of calls, NULL at first: what it knows of the thread. It lies where it is found by one
 * instruction, as a variable of a library that is loaded late does not.
 */
extern MAREY_API __thread void *marey_calls_own __attribute__((tls_model("initial-exec")));

/* ---- what was counted ---- */

/* Sums over threads and paths, of what has ended. Of a function, or of a function called by another. */
struct marey_calls_row {
    uint32_t function, signature;               /* signature 0: all of them, or none */
    uint32_t caller_function, caller_signature; /* both 0 in rows of functions */
    uint64_t calls;                             /* resumptions are calls */
    uint64_t resumes;                           /* of these */
    uint64_t recursive;                         /* of these, within another of the same row */
    uint64_t self, total;                       /* ticks; total without counting recursion twice */
};
struct marey_calls_rows {
    struct marey_calls_row *functions, *pairs; /* in the order in which they were met first */
    size_t n_functions, n_pairs;
};
/*
 * Add up, by function or by function and signature. Rows of "(other paths)" belong to no caller. No thread may be entering
 * or leaving. Free them with marey_calls_rows_fini(), also zeroed ones.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_rows_init(struct marey_calls *calls,
                                                               int by_signature,
                                                               struct marey_calls_rows *out);
MAREY_API void marey_calls_rows_fini(struct marey_calls_rows *rows);

struct marey_calls_counts {
    uint64_t nodes;       /* distinct paths with their signatures, over all threads */
    uint64_t other_paths; /* calls that were gathered below "(other paths)" */
    uint64_t widened;     /* calls whose signature stands for several */
    uint64_t bytes;       /* of memory */
    uint32_t functions, signatures, threads;
};
MAREY_API void marey_calls_counts_get(struct marey_calls *calls, struct marey_calls_counts *out);
/* What a tick is, in nanoseconds. */
MAREY_API double marey_calls_ns_per_tick(const struct marey_calls *calls);

/* ---- where it goes ---- */

/*
 * Write a log of its own into `fd` (lent, at its end): what docs/formats/recording.md says of blocks CALLS. Open calls are
 * not in it: settle first. Any thread; others may enter and leave meanwhile.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_write(struct marey_calls *calls, int fd);

/*
 * Into the recording of this process, from now on: some seconds apart, and when it stops. One profile at a time: MAREY_ESTATE
 * when there is another. It is profile 0. `calls` must live until marey_calls_unrecord(), which writes what is left.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_record(struct marey_calls *calls);
MAREY_API void marey_calls_unrecord(struct marey_calls *calls);

/* What the options of the recording ask for: calls and what begins with calls. */
struct marey_calls_asked {
    int signatures; /* 0 none, 1 types, 2 dtypes, 3 shapes, 4 layouts; -1: the default */
    int builtins;
    uint64_t memory_bytes; /* 0: the default */
    char modules[512];     /* names with ':' between; "": all */
};
/* 1 and `out` while a recording with calls is on, else 0. */
MAREY_API int marey_calls_asked_get(struct marey_calls_asked *out);

/* The node that the calling thread is in, of the profile that goes into the recording; 0 when there is none. */
MAREY_API int marey_calls_current(uint32_t *profile, uint32_t *node);

#ifdef __cplusplus
}
#endif
#endif
