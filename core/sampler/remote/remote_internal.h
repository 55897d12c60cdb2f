/* Inside of core/sampler/remote: one process, what was found in it, and what is remembered of it. */
#ifndef MAREY_REMOTE_INTERNAL_H
#define MAREY_REMOTE_INTERNAL_H

#include "sampler/remote/remote.h"

/* ---- mappings of a process: remote_maps.c ---- */

struct marey__remote_map {
    uint64_t begin, end, offset, inode;
    const char *path; /* "" for none; without the " (deleted)" */
    bool is_readable, is_writable, is_executable, is_deleted;
};
struct marey__remote_maps {
    struct marey__remote_map *maps;
    size_t n, cap;
    struct marey__buf text; /* the paths lie in it */
    char program[4096];     /* what /proc/PID/exe names, without the " (deleted)" */
};
/* MAREY_EIO when it is gone or may not be read. */
MAREY_WARN_UNUSED marey_status marey__remote_maps_read(pid_t pid, struct marey__remote_maps *out);
/* Of a text as /proc/PID/maps has it, which is changed and kept; false without memory. */
MAREY_WARN_UNUSED bool marey__remote_maps_parse(struct marey__remote_maps *out);
void marey__remote_maps_fini(struct marey__remote_maps *maps);

/* ---- where Python's state stands: remote_find.c ---- */

struct marey__remote_found {
    uint64_t runtime;   /* _PyRuntime */
    uint64_t none;      /* _Py_NoneStruct; 0: not known */
    uint64_t code_type; /* PyCode_Type; 0: not known */
    uint32_t version;   /* Py_Version or its like; 0: not known */
};
/* MAREY_EUNAVAILABLE, with a sentence, when there is no Python in it. */
MAREY_WARN_UNUSED marey_status marey__remote_find(struct marey__remote *remote,
                                                  struct marey__remote_found *out);

const char *marey__remote_base_name(const char *path);
/* Where asyncio's table of offsets stands; 0: it is not imported, or has none. */
uint64_t marey__remote_find_asyncio(struct marey__remote *remote);
/* The same by searching the data of the file `path`, of which no symbols can be had: remote_scan.c. */
bool marey__remote_scan(struct marey__remote *remote, const struct marey__remote_maps *maps,
                        const char *path, uint32_t version, struct marey__remote_found *out);
/* The version by the text that sys.version begins with, without what follows the patch; 0: not found. */
uint32_t marey__remote_scan_version(struct marey__remote *remote,
                                    const struct marey__remote_maps *maps, const char *path);

/* ---- layouts: remote_layout.c, remote_offsets.c ---- */

/* Older versions are not supported. */
#define MAREY__REMOTE_OLDEST 0x030a0000u
/* Fails with the one sentence for a Python before MAREY__REMOTE_OLDEST. */
marey_status marey__remote_fail_too_old(const struct marey__remote *remote, uint32_t version);
/* The layout of a version that does not publish it (3.10 to 3.12); NULL for others. */
const struct marey__remote_layout *marey__remote_layout_fixed(uint32_t version);
/* The layout of a Python that describes itself (3.13 and later). */
MAREY_WARN_UNUSED marey_status marey__remote_layout_described(struct marey__remote *remote,
                                                              struct marey__remote_layout *out);
/* Find a layout for what was found and hold it against the process. */
MAREY_WARN_UNUSED marey_status marey__remote_layout_choose(struct marey__remote *remote,
                                                           uint32_t version);

/* ---- code objects: remote_code.c; lines: remote_lines.c ---- */

struct marey__remote_line_run {
    uint32_t begin; /* in bytes of bytecode */
    uint32_t line;  /* 0: none */
};
/* Runs of equal lines by where they begin; false without memory. A table that makes no sense ends where it does. */
MAREY_WARN_UNUSED bool marey__remote_lines_decode(enum marey__remote_line_format format,
                                                  const uint8_t *table, size_t len,
                                                  uint32_t first_line,
                                                  struct marey__remote_line_run **out, size_t *n);
/* The line at an offset; 0: none. */
uint32_t marey__remote_lines_at(const struct marey__remote_line_run *runs, size_t n, uint32_t offset);

struct marey__remote_code_entry;
struct marey__remote_codes {
    struct marey__remote_code_entry **slots; /* by address, open; a power of two */
    size_t n, n_slots;
    struct marey__remote_code_entry *retired; /* whose addresses were used again */
    uint32_t last_generation, epoch;
    uint64_t epoch_ns;
};
void marey__remote_codes_fini(struct marey__remote_codes *codes);

/* ---- objects: remote_objects.c ---- */

struct marey__remote_entry {
    uint64_t hash; /* 0 where all keys are strings */
    uint64_t key, value;
};
/* False ends the walk. */
typedef bool marey__remote_each(void *ctx, const struct marey__remote_entry *entry);
/* Whatever is in a dict; false when it cannot be read to its end. */
bool marey__remote_dict_each(struct marey__remote *remote, uint64_t dict, marey__remote_each *each,
                             void *ctx);
/* The value of the key `name`, which is ASCII and short; 0: there is none, or it cannot be read. */
uint64_t marey__remote_dict_get(struct marey__remote *remote, uint64_t dict, const char *name);
/* The attribute `name` that an instance has itself; 0: there is none, or it cannot be read. */
uint64_t marey__remote_attribute(struct marey__remote *remote, uint64_t object, const char *name);

/* ---- threads: remote_threads.c, remote_names.c ---- */

struct marey__remote_thread_name {
    uint64_t ident; /* as threading has it: the pthread */
    char *name;
};
struct marey__remote_threads {
    struct marey__remote_thread_name *names;
    size_t n, cap;
    uint64_t walked_ns; /* when the names were read; 0: never */
    uint64_t active;    /* the dict threading._active of the main interpreter; 0: not found yet */
    uint32_t tid_offset; /* of the tid in libc's struct of a thread; 0: not looked for; ABSENT: not found */
    struct marey__remote_tid {
        pid_t inner, outer; /* in the process's pid namespace, in ours */
    } * tids;
    size_t n_tids, tids_cap;
    uint64_t listed_ns; /* when the ids were listed */
};
void marey__remote_threads_fini(struct marey__remote_threads *threads);
/* The name that threading has for a pthread, lent until the next call; NULL: none. */
const char *marey__remote_python_name(struct marey__remote *remote, uint64_t ident);

/* ---- asyncio: remote_tasks.c ---- */

struct marey__remote_task_layout {
    uint32_t size, name, coroutine; /* of a task; size 0: not known */
    uint32_t running;               /* the task, from the thread state on */
    uint64_t looked_ns;
};

/* ---- the whole ---- */

struct marey__remote {
    struct marey__remote_memory memory;
    struct marey__remote_reads reads;
    int mem_fd; /* /proc/PID/mem, where process_vm_readv is not allowed; -1: not needed */
    struct marey__remote_process process;
    uint64_t start_stack; /* field 28 of its stat: another one after exec */
    struct marey__remote_found found;
    struct marey__remote_layout layout;
    struct marey__remote_codes codes;
    struct marey__remote_threads threads;
    struct marey__remote_task_layout tasks;
};

/* The memory of the process `remote->process.pid`. */
size_t marey__remote_process_spans(void *self, const struct marey__remote_span *spans, size_t n);
/* What /proc says; false when the process is not there. */
bool marey__remote_process_fill(struct marey__remote *remote);
/* CLOCK_MONOTONIC_COARSE: some milliseconds late at most, and cheap. */
uint64_t marey__remote_now_ns(void);
bool marey__remote_read_u64(struct marey__remote *remote, uint64_t at, uint64_t *out);
/* A NUL-terminated text, such as the name of a type; false when it cannot be read or is longer. */
bool marey__remote_read_text(struct marey__remote *remote, uint64_t at, char *to, size_t cap);
/* Whether the type of the object at `at` is called `name`. */
bool marey__remote_is_type(struct marey__remote *remote, uint64_t at, const char *name);
/* A str appended as valid UTF-8, at most `max_chars` of it; false when it is none or cannot be read. */
bool marey__remote_put_string(struct marey__remote *remote, uint64_t address, size_t max_chars,
                              struct marey__buf *out);

#endif
