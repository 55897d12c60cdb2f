/*
 * remote: reads another process that runs Python. Writes nothing into it and stops nothing.
 *
 *   remote.c, remote_process.c, remote_maps.c, remote_memory.c   one process: mappings, bytes
 *   remote_find.c, remote_scan.c, remote_layout.c   location of the interpreter; layout of its version
 *   remote_threads.c, remote_stack.c, remote_tasks.c   threads, frames, asyncio tasks
 *   remote_code.c, remote_lines.c, remote_names.c, remote_string.c, remote_objects.c   code objects to names and lines
 *   permission.c                                        why a process may not be read
 *
 * Input: memory of another process; pointers and lengths are untrusted and checked, and invalid data count as unknown.
 * Output: frames. One struct marey__remote is used by one thread at a time. Does not know when it is called, nor where
 * frames are stored; includes no header of Python, so one build reads all versions.
 */
#ifndef MAREY_SAMPLER_REMOTE_INTERNAL_H
#define MAREY_SAMPLER_REMOTE_INTERNAL_H

#include "base/internal.h"

struct marey__remote;

/* ---- opening ---- */

/*
 * Finds a Python in `pid` and the address of its state. `parent` (may be NULL) is a process that it was forked from,
 * whose addresses are tried first. Waits up to `patience_ms` for a Python that is still starting.
 *
 *   MAREY_EUNAVAILABLE  it is not Python, or one that cannot be read; the message gives the reason
 *   MAREY_ESTATE        not yet: it is starting, or too new to decide
 *   MAREY_EIO           it is gone, or reading is not permitted; the message has the command to fix that
 */
MAREY_WARN_UNUSED marey_status marey__remote_open(pid_t pid, const struct marey__remote *parent,
                                                  unsigned patience_ms, struct marey__remote **out);
/* Opens any process, only for its memory, without searching for Python. MAREY_EIO as above. */
MAREY_WARN_UNUSED marey_status marey__remote_open_program(pid_t pid, struct marey__remote **out);
void marey__remote_close(struct marey__remote *remote);

/* ---- memory ---- */

struct marey__remote_span {
    uint64_t at;
    void *to;
    size_t n_bytes;
};
/* The source of bytes: a process, or an image in a test. Returns how many leading spans were read completely, in order. */
struct marey__remote_memory {
    size_t (*read_spans)(void *self, const struct marey__remote_span *spans, size_t n);
    void *self;
};
/* A Python whose memory is an image: `runtime` is the address of _PyRuntime, `version` its PY_VERSION_HEX. For tests. */
MAREY_WARN_UNUSED marey_status marey__remote_open_image(const struct marey__remote_memory *memory,
                                                        uint64_t runtime, uint32_t version,
                                                        struct marey__remote **out);

/* Returns how many leading spans were read completely. One system call per 1024; data after a failure are undefined. */
size_t marey__remote_read_spans(struct marey__remote *remote,
                                const struct marey__remote_span *spans, size_t n);
bool marey__remote_read(struct marey__remote *remote, uint64_t at, void *to, size_t n_bytes);
/* Calls and bytes so far. */
struct marey__remote_reads {
    uint64_t calls, bytes;
};
struct marey__remote_reads marey__remote_reads(const struct marey__remote *remote);

/* ---- offsets ---- */

/* A field missing in this version. */
#define MAREY__REMOTE_ABSENT UINT32_MAX

/* How a frame stores its current instruction. */
enum marey__remote_instruction {
    MAREY__REMOTE_LASTI_UNITS,         /* int32, in units of two bytes: 3.10 */
    MAREY__REMOTE_INSTRUCTION_POINTER, /* an address in the bytecode: 3.11 and later */
};
enum marey__remote_line_format {
    MAREY__REMOTE_LINES_LINETABLE, /* 3.10 */
    MAREY__REMOTE_LINES_LOCATIONS, /* 3.11 and later */
};
/* Values of a frame's owner. From MAREY__REMOTE_OWNER_SHIM on: not a Python function, a C evaluation loop begins there. */
enum {
    MAREY__REMOTE_OWNER_THREAD,
    MAREY__REMOTE_OWNER_GENERATOR,
    MAREY__REMOTE_OWNER_OBJECT,
    MAREY__REMOTE_OWNER_SHIM
};

/* All offsets, in bytes from the start of each struct, for this process's version. */
struct marey__remote_layout {
    uint32_t version; /* PY_VERSION_HEX */
    bool is_free_threaded;
    enum marey__remote_instruction instruction_kind;
    enum marey__remote_line_format line_format;
    struct {
        uint32_t interpreters_head; /* newest first */
        uint32_t tstate_current;    /* 3.10, 3.11: the thread state that has the GIL, or 0 */
        uint32_t gil;               /* 3.10, 3.11: the GIL's struct, embedded */
    } runtime;
    struct {
        uint32_t next, id, threads_head, modules;
        uint32_t gil;           /* 3.12 and later: a pointer to its struct */
        uint32_t gc_collecting; /* int32 */
    } interpreter;
    struct {
        uint32_t size, last_holder, locked /* int32 */,
            switch_number; /* `switch_number`: incremented by the holder while it is locked */
        uint32_t enabled;  /* int32; free-threaded builds: 0 means no GIL */
    } gil;
    struct {
        uint32_t size, next, interpreter, thread_id;
        uint32_t native_thread_id;               /* 3.11 and later */
        uint32_t frame;                          /* in 3.11 and 3.12: the cframe, on the C stack */
        uint32_t datastack_chunk, datastack_top; /* 3.11 and later */
        uint32_t exc_info, exc_state; /* a pointer to the innermost item; the outermost item itself */
        uint32_t current_exception;   /* being raised; up to 3.11 its type */
    } thread;
    struct {
        uint32_t size, current_frame; /* 3.11 and 3.12; else absent, and thread.frame is the frame */
        uint32_t previous;            /* the cframe of the evaluation loop around it */
    } cframe;
    struct {
        uint32_t size; /* without locals, which follow */
        uint32_t previous, code, instruction;
        uint32_t owner;      /* a byte; 3.11 and later */
        uint32_t is_entry;   /* a byte; 3.11: a C evaluation loop begins with this frame */
        uint32_t stack_top;  /* int32; 3.11 to 3.13: -1 while the frame runs */
        uint32_t tlbc_index; /* int32; free-threaded 3.14 */
        uint64_t code_mask;  /* for the code field: from 3.14 on the low bits are tags */
    } frame;
    struct {
        uint32_t previous, size, top,
            data; /* `top`: in words from `data`, stale in the newest chunk */
    } chunk;
    struct {
        uint32_t value, previous; /* an item of the chain of handled exceptions */
    } exception;
    struct {
        uint32_t size, type, filename, name, qualname, linetable, first_line;
        uint32_t bytecode; /* from 3.11 on inside the object, before a pointer to a bytes object */
        uint32_t tlbc; /* free-threaded 3.14: a pointer to the per-thread copies of the bytecode */
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

/* Reads a field from copied bytes; 0 if the field is absent. */
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

/* The addresses of the interpreters, newest first. Returns how many, at most `cap`. */
size_t marey__remote_interpreters(struct marey__remote *remote, uint64_t *out, size_t cap);
/* The addresses of an interpreter's thread states. Returns how many, at most `cap`. */
size_t marey__remote_thread_states(struct marey__remote *remote, uint64_t interpreter,
                                   uint64_t *out, size_t cap);
/* The address of an interpreter's GIL struct; 0 if there is none, or it cannot be read. */
uint64_t marey__remote_gil(struct marey__remote *remote, uint64_t interpreter);
/* Reads frame by frame, for rare use and layout checks. Innermost first, no shims. Returns how many; `is_whole`: all. */
struct marey__remote_frame {
    uint64_t address, code, instruction;
    uint32_t tlbc_index;
    uint8_t owner;
    bool is_entry; /* a C evaluation loop begins here: 3.11's flag, or followed by a shim */
};
size_t marey__remote_stack(struct marey__remote *remote, uint64_t thread_state,
                           struct marey__remote_frame *out, size_t cap, bool *is_whole);
/* Whether the thread of these bytes (a whole thread state, read from `thread_state`) is raising or handling an exception. */
bool marey__remote_in_exception(struct marey__remote *remote, uint64_t thread_state,
                                const void *bytes);

/* ---- code objects, lines, names ---- */

struct marey__remote_code {
    uint64_t address;
    const char *name; /* qualified from 3.11 on; valid UTF-8 */
    const char *file;
    uint32_t first_line;
    uint32_t generation; /* changes when the address is reused for another code object; never 0 */
    uint32_t tag;        /* for the caller; 0 when new */
};
/*
 * The code object at `address`; NULL if it cannot be read or is not a code object. Cached by address and rechecked
 * about ten times a second, since addresses are reused. Lent until the process is closed; after a reuse the same
 * address gives another struct, and the old one remains until marey__remote_forget().
 */
struct marey__remote_code *marey__remote_code(struct marey__remote *remote, uint64_t address);
/* The line of an instruction as stored in the frame (f_lasti, prev_instr or instr_ptr); 0: unknown. */
uint32_t marey__remote_line(struct marey__remote *remote, struct marey__remote_code *code,
                            uint64_t instruction, uint32_t tlbc_index);
/* Rechecks the code objects of `addresses` with few calls, and rereads changed ones. For exact samples. */
void marey__remote_check_codes(struct marey__remote *remote, const uint64_t *addresses, size_t n);
/* Frees entries retired by reuse. Earlier struct marey__remote_code pointers become invalid. */
void marey__remote_forget(struct marey__remote *remote);
/*
 * Reads a str object as UTF-8 into `to`, truncated at a character. Returns the length without the NUL, 0 if unreadable.
 */
size_t marey__remote_string(struct marey__remote *remote, uint64_t address, char *to, size_t cap);

/* ---- threads ---- */

/* The thread's id in our pid namespace, from a whole thread state; 0: unknown. */
pid_t marey__remote_tid(struct marey__remote *remote, const void *thread_state_bytes);
/* Its name in threading, else the kernel's, NUL-terminated. Returns the length. `thread_state` 0: only the kernel's. */
size_t marey__remote_thread_name(struct marey__remote *remote, pid_t tid, uint64_t thread_state,
                                 char *to, size_t cap);

/* ---- asyncio, 3.14 and later ---- */

struct marey__remote_task {
    uint64_t address, coroutine, name; /* `name`: of the str object */
};
/* The current task of a thread; false if there is none, or this Python does not publish it. */
bool marey__remote_task(struct marey__remote *remote, uint64_t thread_state,
                        struct marey__remote_task *out);
/* Its name, truncated. Returns the length without the NUL, 0 if it cannot be read. */
size_t marey__remote_task_name(struct marey__remote *remote, const struct marey__remote_task *task,
                               char *to, size_t cap);

/* ---- the process ---- */

struct marey__remote_process {
    pid_t pid, parent;
    uint64_t start_time; /* field 22 of its stat: identifies the process together with the pid */
    uint32_t python_version; /* PY_VERSION_HEX; 0: unknown */
    int rank, worker;        /* from its environment, as in marey's logs; -1: none */
    char command[256];       /* space-separated arguments, truncated */
};
const struct marey__remote_process *marey__remote_process(const struct marey__remote *remote);
enum marey__remote_state {
    MAREY__REMOTE_SAME,     /* still running the same program */
    MAREY__REMOTE_GONE,     /* ended, a zombie, or the pid was reused */
    MAREY__REMOTE_REPLACED, /* it called exec: close and open again */
};
enum marey__remote_state marey__remote_state(struct marey__remote *remote);

/*
 * Always returns MAREY_EIO; the message explains why `pid` may not be read, and the command to fix that (permission.c).
 */
marey_status marey__remote_explain_denial(pid_t pid);

/* ---- mappings of a process: remote_maps.c ---- */

struct marey__remote_map {
    uint64_t begin, end, offset, inode;
    const char *path; /* "" for none; without " (deleted)" */
    bool is_readable, is_writable, is_executable, is_deleted;
    bool was_looked_for;            /* for unwind: `program` is set */
    struct marey__program *program; /* for unwind: the file; NULL: none, or unreadable */
};
struct marey__remote_maps {
    struct marey__remote_map *maps;
    size_t n, cap;
    struct marey__buf text; /* contains the paths */
    char program[4096];     /* the target of /proc/PID/exe, without " (deleted)" */
};
/* Appends the text of /proc/PID/maps; false with errno if it cannot be opened. Out of memory sets `out->failed`. */
bool marey__remote_maps_text(pid_t pid, struct marey__buf *out);
/* MAREY_EIO if the process is gone or may not be read. */
MAREY_WARN_UNUSED marey_status marey__remote_maps_read(pid_t pid, struct marey__remote_maps *out);
/* Parses `out->text` (/proc/PID/maps), modifies and keeps it; maps are sorted by address. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__remote_maps_parse(struct marey__remote_maps *out);
void marey__remote_maps_fini(struct marey__remote_maps *maps);

/* ---- the address of Python's state: remote_find.c ---- */

struct marey__remote_found {
    uint64_t runtime;   /* _PyRuntime */
    uint64_t none;      /* _Py_NoneStruct; 0: unknown */
    uint64_t code_type; /* PyCode_Type; 0: unknown */
    uint32_t version;   /* Py_Version or equivalent; 0: unknown */
};
/* MAREY_EUNAVAILABLE with a message if there is no Python in it. */
MAREY_WARN_UNUSED marey_status marey__remote_find(struct marey__remote *remote,
                                                  struct marey__remote_found *out);

/* The address of asyncio's table of offsets; 0 if asyncio is not imported, or has no table. */
uint64_t marey__remote_find_asyncio(struct marey__remote *remote);
/* The same by scanning the data of the file `path`, for files without symbols: remote_scan.c. */
bool marey__remote_scan(struct marey__remote *remote, const struct marey__remote_maps *maps,
                        const char *path, uint32_t version, struct marey__remote_found *out);
/* The version from the text of sys.version, without anything after the patch number; 0: not found. */
uint32_t marey__remote_scan_version(struct marey__remote *remote,
                                    const struct marey__remote_maps *maps, const char *path);

/* ---- layouts: remote_layout.c ---- */

/* Older versions are not supported. */
#define MAREY__REMOTE_OLDEST 0x030a0000u
/* Fails with the message for a Python before MAREY__REMOTE_OLDEST. */
marey_status marey__remote_fail_too_old(const struct marey__remote *remote, uint32_t version);
/* The layout of a version that does not publish it (3.10 to 3.12); false for others. */
bool marey__remote_layout_fixed(uint32_t version, struct marey__remote_layout *out);
/* The layout from the table that 3.13 and later publish. */
MAREY_WARN_UNUSED marey_status marey__remote_layout_described(struct marey__remote *remote,
                                                              struct marey__remote_layout *out);

/* ---- code objects: remote_code.c; lines: remote_lines.c ---- */

struct marey__remote_line_run {
    uint32_t begin; /* in bytes of bytecode */
    uint32_t line;  /* 0: none */
};
/* Decodes into runs of equal lines, sorted by begin; false on out of memory. An invalid table ends at the fault. */
MAREY_WARN_UNUSED bool marey__remote_lines_decode(enum marey__remote_line_format format,
                                                  const uint8_t *table, size_t len,
                                                  uint32_t first_line,
                                                  struct marey__remote_line_run **out, size_t *n);
/* The line at an offset; 0: none. */
uint32_t marey__remote_lines_at(const struct marey__remote_line_run *runs, size_t n, uint32_t offset);

struct marey__remote_code_entry;
struct marey__remote_codes {
    struct marey__remote_code_entry **slots; /* hash table by address, open addressing; size a power of two */
    size_t n, n_slots;
    struct marey__remote_code_entry *retired; /* entries whose addresses were reused */
    uint32_t last_generation, epoch;
    uint64_t epoch_ns;
};
void marey__remote_codes_fini(struct marey__remote_codes *codes);

/* ---- objects: remote_objects.c ---- */

struct marey__remote_entry {
    uint64_t hash; /* 0 if all keys are strings */
    uint64_t key, value;
};
/* Return false to stop. */
typedef bool marey__remote_each(void *ctx, const struct marey__remote_entry *entry);
/* Calls `each` for all entries of a dict; false if it cannot be read completely. */
bool marey__remote_dict_each(struct marey__remote *remote, uint64_t dict, marey__remote_each *each,
                             void *ctx);
/* The value of the key `name`, short ASCII; 0 if it is missing or cannot be read. */
uint64_t marey__remote_dict_get(struct marey__remote *remote, uint64_t dict, const char *name);
/* The instance attribute `name`; 0 if it is missing or cannot be read. */
uint64_t marey__remote_attribute(struct marey__remote *remote, uint64_t object, const char *name);

/* ---- threads: remote_threads.c, remote_names.c ---- */

struct marey__remote_thread_name {
    uint64_t ident; /* as in threading: the pthread */
    char *name;
};
struct marey__remote_threads {
    struct marey__remote_thread_name *names;
    size_t n, cap;
    uint64_t walked_ns; /* when the names were read; 0: never */
    uint64_t active;    /* the dict threading._active of the main interpreter; 0: unknown */
    uint32_t tid_offset; /* of the tid in libc's thread struct; 0: not searched yet; ABSENT: not found */
    struct marey__remote_tid {
        pid_t inner, outer; /* in the process's pid namespace, in ours */
    } * tids;
    size_t n_tids, tids_cap;
    uint64_t listed_ns; /* when the ids were listed */
};
void marey__remote_threads_fini(struct marey__remote_threads *threads);
/* The name of a pthread in threading, lent until the next call; NULL if there is none. */
const char *marey__remote_python_name(struct marey__remote *remote, uint64_t ident);

/* ---- asyncio: remote_tasks.c ---- */

struct marey__remote_task_layout {
    uint32_t size, name, coroutine; /* of a task; size 0: unknown */
    uint32_t running;               /* the current task, in the thread state */
    uint64_t looked_ns;
};

/* ---- the whole ---- */

struct marey__remote {
    struct marey__remote_memory memory;
    struct marey__remote_reads reads;
    int mem_fd; /* /proc/PID/mem, if process_vm_readv is not permitted; -1: not needed */
    struct marey__remote_process process;
    uint64_t start_stack; /* field 28 of its stat: changes with exec */
    struct marey__remote_found found;
    struct marey__remote_layout layout;
    struct marey__remote_codes codes;
    struct marey__remote_threads threads;
    struct marey__remote_task_layout tasks;
};

/* The memory of the process `remote->process.pid`. */
size_t marey__remote_process_spans(void *self, const struct marey__remote_span *spans, size_t n);
/* Fills in data from /proc; false if the process does not exist. */
bool marey__remote_process_fill(struct marey__remote *remote);
/* CLOCK_MONOTONIC_COARSE: cheap, up to some milliseconds late. */
uint64_t marey__remote_now_ns(void);
bool marey__remote_read_u64(struct marey__remote *remote, uint64_t at, uint64_t *out);
/* Reads a NUL-terminated string, such as a type name; false if it cannot be read or is too long. */
bool marey__remote_read_text(struct marey__remote *remote, uint64_t at, char *to, size_t cap);
/* Whether the object at `at` has a type named `name`. */
bool marey__remote_is_type(struct marey__remote *remote, uint64_t at, const char *name);
/* Appends a str as valid UTF-8, at most `max_chars`; false if it is not a str or cannot be read. */
bool marey__remote_put_string(struct marey__remote *remote, uint64_t address, size_t max_chars,
                              struct marey__buf *out);

/* permission.c: what the kernel checks before one process may read another, and the advice if it refuses. */

struct marey__permission {
    pid_t pid;
    uid_t uid, own_uid;
    uint64_t capabilities, own_capabilities; /* permitted ones of the process; our effective ones */
    int yama;                                /* kernel.yama.ptrace_scope; -1: no Yama */
    pid_t tracer;                            /* its current tracer, such as a debugger; 0: none */
    bool is_filtered;                        /* our system calls are filtered by seccomp */
    bool is_descendant;                      /* a descendant of ours */
    bool is_undumpable, is_other_user_namespace;
};
/* False if the process does not exist. */
bool marey__permission_look(pid_t pid, struct marey__permission *out);
/* Explains a refusal, in at most 512 bytes. */
void marey__permission_explain(const struct marey__permission *permission, char *out, size_t size);

#endif
