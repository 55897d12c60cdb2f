/*
 * remote: another process that runs Python, read from outside. Writes nothing into it and stops nothing.
 *
 *   remote.c, remote_process.c, remote_maps.c, remote_memory.c   one process: mappings, bytes
 *   remote_find.c, remote_scan.c, remote_layout.c   where the interpreter is; its version's layout
 *   remote_threads.c, remote_stack.c, remote_tasks.c   threads, frames, asyncio tasks
 *   remote_code.c, remote_lines.c, remote_names.c, remote_string.c, remote_objects.c   code objects to names and lines
 *   permission.c                                        why a process may not be read
 *
 * Input: memory of another process; any pointer may lead anywhere, every length is checked, and what does not fit is
 * "unknown". Output: frames. One struct marey__remote is used by one thread at a time.
 */
#ifndef MAREY_SAMPLER_REMOTE_INTERNAL_H
#define MAREY_SAMPLER_REMOTE_INTERNAL_H

#include "base/internal.h"

struct marey__remote;

/* ---- opening ---- */

/*
 * Find a Python in `pid` and the address of its state. `parent`, unless NULL, is a process that it was forked
 * from: what was found there is tried first. A Python that is still starting is waited for, `patience_ms` at most.
 *
 *   MAREY_EUNAVAILABLE  it is no Python, or one that cannot be read; the sentence says which and why
 *   MAREY_ESTATE        not yet: it is starting, or so young that it may still become a Python
 *   MAREY_EIO           it is gone, or may not be read; the sentence says what to type
 */
MAREY_WARN_UNUSED marey_status marey__remote_open(pid_t pid, const struct marey__remote *parent,
                                                  unsigned patience_ms, struct marey__remote **out);
void marey__remote_close(struct marey__remote *remote);

/* ---- memory ---- */

struct marey__remote_span {
    uint64_t at;
    void *to;
    size_t n_bytes;
};
/* Where bytes come from: a process, or an image of one in a test. In order; how many spans came whole from the first on. */
struct marey__remote_memory {
    size_t (*read_spans)(void *self, const struct marey__remote_span *spans, size_t n);
    void *self;
};
/* A Python whose memory is an image: `runtime` is the address of _PyRuntime, `version` its PY_VERSION_HEX. For tests. */
MAREY_WARN_UNUSED marey_status marey__remote_open_image(const struct marey__remote_memory *memory,
                                                        uint64_t runtime, uint32_t version,
                                                        struct marey__remote **out);

/* In order; how many spans came whole. One system call for each 1024; what follows the first failure is undefined. */
size_t marey__remote_read_spans(struct marey__remote *remote,
                                const struct marey__remote_span *spans, size_t n);
bool marey__remote_read(struct marey__remote *remote, uint64_t at, void *to, size_t n_bytes);
/* Calls and bytes so far. */
struct marey__remote_reads {
    uint64_t calls, bytes;
};
struct marey__remote_reads marey__remote_reads(const struct marey__remote *remote);

/* ---- offsets ---- */

/* A field that this version does not have. */
#define MAREY__REMOTE_ABSENT UINT32_MAX

/* How a frame says which instruction it is at. */
enum marey__remote_instruction {
    MAREY__REMOTE_LASTI_UNITS,         /* int32, in units of two bytes: 3.10 */
    MAREY__REMOTE_INSTRUCTION_POINTER, /* an address in the bytecode: 3.11 and later */
};
enum marey__remote_line_format {
    MAREY__REMOTE_LINES_LINETABLE, /* 3.10 */
    MAREY__REMOTE_LINES_LOCATIONS, /* 3.11 and later */
};
/* Values of a frame's owner; from MAREY__REMOTE_OWNER_SHIM on it is no Python function: a C eval loop begins there. */
enum {
    MAREY__REMOTE_OWNER_THREAD,
    MAREY__REMOTE_OWNER_GENERATOR,
    MAREY__REMOTE_OWNER_OBJECT,
    MAREY__REMOTE_OWNER_SHIM
};

/* Every offset, in bytes from the start of its struct, for the one version of this process. */
struct marey__remote_layout {
    uint32_t version; /* PY_VERSION_HEX */
    bool is_free_threaded;
    enum marey__remote_instruction instruction_kind;
    enum marey__remote_line_format line_format;
    struct {
        uint32_t interpreters_head; /* the newest first */
        uint32_t tstate_current;    /* 3.10, 3.11: the thread state that has the GIL, or 0 */
        uint32_t gil;               /* 3.10, 3.11: the GIL's struct itself */
    } runtime;
    struct {
        uint32_t next, id, threads_head, modules;
        uint32_t gil;           /* 3.12 and later: a pointer to its struct */
        uint32_t gc_collecting; /* int32 */
    } interpreter;
    struct {
        uint32_t size, last_holder, locked /* int32 */,
            switch_number; /* the holder counts while it is locked */
        uint32_t enabled;  /* int32; free-threaded builds: 0 is no GIL at all */
    } gil;
    struct {
        uint32_t size, next, interpreter, thread_id;
        uint32_t native_thread_id; /* 3.11 and later */
        uint32_t frame;            /* of 3.11 and 3.12: the cframe, which is on the C stack */
        uint32_t datastack_chunk, datastack_top; /* 3.11 and later */
        uint32_t exc_info, exc_state; /* a pointer to the innermost item; the outermost item itself */
        uint32_t current_exception;   /* being raised; to 3.11 its type */
    } thread;
    struct {
        uint32_t size, current_frame; /* 3.11 and 3.12; else absent, and thread.frame is the frame */
        uint32_t previous;            /* that of the evaluation loop around it */
    } cframe;
    struct {
        uint32_t size; /* the fields that are here; locals follow */
        uint32_t previous, code, instruction;
        uint32_t owner;      /* a byte; 3.11 and later */
        uint32_t is_entry;   /* a byte; 3.11: a C eval loop begins with this frame */
        uint32_t stack_top;  /* int32; 3.11 to 3.13: -1 while the frame runs */
        uint32_t tlbc_index; /* int32; free-threaded 3.14 */
        uint64_t code_mask;  /* and with the code field: the low bits are tags from 3.14 on */
    } frame;
    struct {
        uint32_t previous, size, top,
            data; /* `top` in words from `data` on, and stale in the newest chunk */
    } chunk;
    struct {
        uint32_t value, previous; /* an item of handled exceptions */
    } exception;
    struct {
        uint32_t size, type, filename, name, qualname, linetable, first_line;
        uint32_t bytecode; /* in the object itself from 3.11 on; before, a pointer to a bytes object */
        uint32_t tlbc; /* free-threaded 3.14: a pointer to the threads' copies of the bytecode */
    } code;
    struct {
        uint32_t ascii_size, compact_size, length, state;
    } unicode;
    struct {
        uint32_t size, data;
    } bytes;
    struct {
        uint32_t type; /* of any object */
        uint32_t type_name, type_flags, type_dictoffset, type_cached_keys;
    } object;
};
const struct marey__remote_layout *marey__remote_layout(const struct marey__remote *remote);
uint64_t marey__remote_runtime(const struct marey__remote *remote);

/* Fields out of copied bytes; 0 for one that is absent. */
static inline uint64_t marey__remote_u64(const void *bytes, uint32_t offset)
{
    uint64_t value = 0;
    if (offset != MAREY__REMOTE_ABSENT)
        memcpy(&value, (const char *)bytes + offset, sizeof value);
    return value;
}
static inline uint32_t marey__remote_u32(const void *bytes, uint32_t offset)
{
    uint32_t value = 0;
    if (offset != MAREY__REMOTE_ABSENT)
        memcpy(&value, (const char *)bytes + offset, sizeof value);
    return value;
}
static inline uint8_t marey__remote_u8(const void *bytes, uint32_t offset)
{
    return offset != MAREY__REMOTE_ABSENT ? ((const uint8_t *)bytes)[offset] : 0;
}

/* The addresses of the interpreters, the newest first; how many, at most `cap`. */
size_t marey__remote_interpreters(struct marey__remote *remote, uint64_t *out, size_t cap);
/* The addresses of an interpreter's thread states; how many, at most `cap`. */
size_t marey__remote_thread_states(struct marey__remote *remote, uint64_t interpreter,
                                   uint64_t *out, size_t cap);
/* The address of the GIL's struct of an interpreter; 0: there is none, or it cannot be read. */
uint64_t marey__remote_gil(struct marey__remote *remote, uint64_t interpreter);
/* One read per frame, for rare readers and layout checks. Innermost first, no shims. Returns how many; `is_whole`: all. */
struct marey__remote_frame {
    uint64_t address, code, instruction;
    uint32_t tlbc_index;
    uint8_t owner;
    bool is_entry; /* a C eval loop begins here: 3.11's flag, or a shim lies outside of it */
};
size_t marey__remote_stack(struct marey__remote *remote, uint64_t thread_state,
                           struct marey__remote_frame *out, size_t cap, bool *is_whole);
/* Whether the thread of these bytes (a whole thread state, read from `thread_state`) raises or handles an exception. */
bool marey__remote_in_exception(struct marey__remote *remote, uint64_t thread_state,
                                const void *bytes);

/* ---- code objects, lines, names ---- */

struct marey__remote_code {
    uint64_t address;
    const char *name; /* qualified where the version has that (3.11 and later); valid UTF-8 */
    const char *file;
    uint32_t first_line;
    uint32_t generation; /* another number when the address was used again for another code object; never 0 */
    uint32_t tag; /* the caller's own; 0 when new */
};
/*
 * What the code object at `address` is; NULL when that cannot be read or is not a code object. Remembered by address and
 * looked at again about ten times a second, since addresses are used again. Lent until the process is closed; after a
 * reuse the same address gives another struct, and the old one stays as it was until marey__remote_forget().
 */
struct marey__remote_code *marey__remote_code(struct marey__remote *remote, uint64_t address);
/* The line of an instruction as the frame has it (f_lasti, prev_instr or instr_ptr); 0: unknown. */
uint32_t marey__remote_line(struct marey__remote *remote, struct marey__remote_code *code,
                            uint64_t instruction, uint32_t tlbc_index);
/* Read the code objects of `addresses` in as few calls as can be; those that changed are read anew. For exactness. */
void marey__remote_check_codes(struct marey__remote *remote, const uint64_t *addresses, size_t n);
/* Free what reuse left over. No struct marey__remote_code from before may be used after it. */
void marey__remote_forget(struct marey__remote *remote);
/* A str object as UTF-8 into `to`, cut at a character when it is longer; the length without the NUL, 0 when unreadable. */
size_t marey__remote_string(struct marey__remote *remote, uint64_t address, char *to, size_t cap);

/* ---- threads ---- */

/* The thread's id in our pid namespace, of a whole thread state; 0: unknown. */
pid_t marey__remote_tid(struct marey__remote *remote, const void *thread_state_bytes);
/* Its name in threading, else the kernel's; with a NUL, the length. `thread_state` 0: only the kernel's. */
size_t marey__remote_thread_name(struct marey__remote *remote, pid_t tid, uint64_t thread_state,
                                 char *to, size_t cap);

/* ---- asyncio, 3.14 and later ---- */

struct marey__remote_task {
    uint64_t address, coroutine, name; /* of the name's object */
};
/* The task that a thread runs; false: none, or this Python does not publish it. */
bool marey__remote_task(struct marey__remote *remote, uint64_t thread_state,
                        struct marey__remote_task *out);
/* Its name, cut where it is longer; the length without the NUL, 0 when it cannot be read. */
size_t marey__remote_task_name(struct marey__remote *remote, const struct marey__remote_task *task,
                               char *to, size_t cap);

/* ---- the process ---- */

struct marey__remote_process {
    pid_t pid, parent;
    uint64_t start_time;     /* field 22 of its stat: with the pid it names the process for good */
    uint32_t python_version; /* PY_VERSION_HEX; 0: not known */
    int rank, worker;        /* from its environment, as marey's own logs have them; -1: none */
    char command[256];       /* its arguments with blanks between, cut */
};
const struct marey__remote_process *marey__remote_process(const struct marey__remote *remote);
enum marey__remote_fate {
    MAREY__REMOTE_SAME,     /* it runs on */
    MAREY__REMOTE_GONE,     /* ended, a zombie, or another process has the number */
    MAREY__REMOTE_REPLACED, /* it began another program: close and open again */
};
enum marey__remote_fate marey__remote_fate(struct marey__remote *remote);

/* Why `pid` may not be read, with what to type (permission.c): always MAREY_EIO, the sentence as the last error. */
marey_status marey__remote_explain_denial(pid_t pid);

/* ---- mappings of a process: remote_maps.c ---- */

struct marey__remote_map {
    uint64_t begin, end, offset, inode;
    const char *path; /* "" for none; without the " (deleted)" */
    bool is_readable, is_writable, is_executable, is_deleted;
    bool was_looked_for;            /* of unwind: `program` is set */
    struct marey__program *program; /* of unwind: the file; NULL: none, or it cannot be read */
};
struct marey__remote_maps {
    struct marey__remote_map *maps;
    size_t n, cap;
    struct marey__buf text; /* the paths lie in it */
    char program[4096];     /* what /proc/PID/exe names, without the " (deleted)" */
};
/* Append the text of /proc/PID/maps; false with errno when it cannot be opened. Out of memory sets `out->failed`. */
bool marey__remote_maps_text(pid_t pid, struct marey__buf *out);
/* MAREY_EIO when it is gone or may not be read. */
MAREY_WARN_UNUSED marey_status marey__remote_maps_read(pid_t pid, struct marey__remote_maps *out);
/* Parse `out->text` (/proc/PID/maps), changed and kept, into maps in order of address. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__remote_maps_parse(struct marey__remote_maps *out);
void marey__remote_maps_fini(struct marey__remote_maps *maps);

/* ---- the address of Python's state: remote_find.c ---- */

struct marey__remote_found {
    uint64_t runtime;   /* _PyRuntime */
    uint64_t none;      /* _Py_NoneStruct; 0: not known */
    uint64_t code_type; /* PyCode_Type; 0: not known */
    uint32_t version;   /* Py_Version or its like; 0: not known */
};
/* MAREY_EUNAVAILABLE, with a sentence, when there is no Python in it. */
MAREY_WARN_UNUSED marey_status marey__remote_find(struct marey__remote *remote,
                                                  struct marey__remote_found *out);

/* The address of asyncio's table of offsets; 0: it is not imported, or has none. */
uint64_t marey__remote_find_asyncio(struct marey__remote *remote);
/* The same by searching the data of the file `path`, of which no symbols can be had: remote_scan.c. */
bool marey__remote_scan(struct marey__remote *remote, const struct marey__remote_maps *maps,
                        const char *path, uint32_t version, struct marey__remote_found *out);
/* The version by the text that sys.version begins with, without what follows the patch; 0: not found. */
uint32_t marey__remote_scan_version(struct marey__remote *remote,
                                    const struct marey__remote_maps *maps, const char *path);

/* ---- layouts: remote_layout.c ---- */

/* Older versions are not supported. */
#define MAREY__REMOTE_OLDEST 0x030a0000u
/* Fails with the one sentence for a Python before MAREY__REMOTE_OLDEST. */
marey_status marey__remote_fail_too_old(const struct marey__remote *remote, uint32_t version);
/* The layout of a version that does not publish it (3.10 to 3.12); false for others. */
bool marey__remote_layout_fixed(uint32_t version, struct marey__remote_layout *out);
/* The layout of a Python that describes itself (3.13 and later). */
MAREY_WARN_UNUSED marey_status marey__remote_layout_described(struct marey__remote *remote,
                                                              struct marey__remote_layout *out);

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

/* permission.c: what the kernel looks at before one process may read another, and what to type when it says no. */

struct marey__permission {
    pid_t pid;
    uid_t uid, own_uid;
    uint64_t capabilities,
        own_capabilities; /* those that the process is permitted; those that we have in force */
    int yama;             /* kernel.yama.ptrace_scope; -1: the kernel has none */
    pid_t tracer;         /* who traces it already, as a debugger does; 0: nobody */
    bool is_filtered;     /* our system calls are, by seccomp */
    bool is_descendant;   /* we started it, or one who did */
    bool is_undumpable, is_other_user_namespace;
};
/* False when there is no such process. */
bool marey__permission_look(pid_t pid, struct marey__permission *out);
/* The sentence for one that was refused, in 512 bytes at most. */
void marey__permission_explain(const struct marey__permission *permission, char *out, size_t size);

#endif
