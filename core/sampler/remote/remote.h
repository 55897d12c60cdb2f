/*
 * remote: another process that runs Python, read from outside. Nothing is written into it and nothing of it is stopped
 * here; whoever wants it to stand still stops it around these calls.
 *
 * One struct marey__remote stands for one process. It is used by one thread at a time. All that is read is input: a length
 * is checked before it is used, a pointer may lead anywhere, and what makes no sense is "unknown", never a crash.
 */
#ifndef MAREY_REMOTE_H
#define MAREY_REMOTE_H

#include <string.h>
#include <sys/types.h>

#include "base/base_internal.h"

struct marey__remote;

/* ---- opening ---- */

/*
 * Look for a Python in `pid` and read where its state stands. `parent`, unless NULL, is a process that it was forked
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
/* A Python whose memory is an image: `runtime` is where _PyRuntime stands, `version` its PY_VERSION_HEX. For tests. */
MAREY_WARN_UNUSED marey_status marey__remote_open_image(const struct marey__remote_memory *memory,
                                                        uint64_t runtime, uint32_t version,
                                                        struct marey__remote **out);

/* In order; how many spans came whole. One system call for each 1024; what lies behind the first failure is undefined. */
size_t marey__remote_read_spans(struct marey__remote *remote,
                                const struct marey__remote_span *spans, size_t n);
bool marey__remote_read(struct marey__remote *remote, uint64_t at, void *to, size_t n_bytes);
/* Calls and bytes so far. */
struct marey__remote_reads {
    uint64_t calls, bytes;
};
struct marey__remote_reads marey__remote_reads(const struct marey__remote *remote);

/* ---- where things stand ---- */

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
        uint32_t gil;                              /* 3.12 and later: a pointer to its struct */
        uint32_t gc_collecting;                    /* int32 */
        uint32_t code_generation, tlbc_generation; /* 3.14 and later */
    } interpreter;
    struct {
        uint32_t size, last_holder, locked /* int32 */,
            switch_number; /* the holder counts while it is locked */
        uint32_t enabled;  /* int32; free-threaded builds: 0 is no GIL at all */
    } gil;
    struct {
        uint32_t size, prev, next, interpreter, thread_id;
        uint32_t native_thread_id; /* 3.11 and later */
        uint32_t frame;            /* of 3.11 and 3.12: the cframe, which stands on the C stack */
        uint32_t datastack_chunk, datastack_top; /* 3.11 and later */
        uint32_t status;                         /* 3.12 and later: bits, int32 */
        uint32_t exc_info, exc_state; /* a pointer to the innermost item; the outermost item itself */
        uint32_t current_exception;   /* being raised; to 3.11 its type */
        uint32_t holds_gil, gil_requested; /* 3.15 */
    } thread;
    struct {
        uint32_t size, current_frame; /* 3.11 and 3.12; else absent, and thread.frame is the frame */
        uint32_t previous;            /* that of the evaluation loop around it */
    } cframe;
    struct {
        uint32_t size; /* the fields that are here; locals stand behind */
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
        uint8_t kind_shift, compact_shift, ascii_shift; /* bits of the state word */
    } unicode;
    struct {
        uint32_t size, data;
    } bytes;
    struct {
        uint32_t type; /* of any object */
        uint32_t type_name, type_basicsize, type_flags, type_dictoffset, type_cached_keys;
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
/* Where the GIL's struct of an interpreter stands; 0: there is none, or it cannot be read. */
uint64_t marey__remote_gil(struct marey__remote *remote, uint64_t interpreter);
/*
 * The plain way to a stack, one read for each frame, for those who read seldom and for the check of a layout. Innermost
 * first, shims left out. How many; `is_whole` says whether the chain's end was reached.
 */
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
 * What the code object at `address` is; NULL when that cannot be read or is no code object. Remembered by address and
 * looked at again about ten times a second, since addresses are used again. Lent until the process is closed; after a
 * reuse the same address gives another struct, and the old one stays as it was until marey__remote_forget().
 */
struct marey__remote_code *marey__remote_code(struct marey__remote *remote, uint64_t address);
/* The line of an instruction as the frame has it (f_lasti, prev_instr or instr_ptr); 0: unknown. */
uint32_t marey__remote_line(struct marey__remote *remote, struct marey__remote_code *code,
                            uint64_t instruction, uint32_t tlbc_index);
/* Read the code objects of `addresses` in as few calls as can be; those that changed are read anew. For exactness. */
void marey__remote_check_codes(struct marey__remote *remote, const uint64_t *addresses, size_t n);
/* Free what reuse left behind. No struct marey__remote_code from before may be used after it. */
void marey__remote_forget(struct marey__remote *remote);
/* A str object as UTF-8 into `to`, cut at a character when it is longer; the length without the NUL, 0 when unreadable. */
size_t marey__remote_string(struct marey__remote *remote, uint64_t address, char *to, size_t cap);

/* ---- threads ---- */

/* The thread's id in our pid namespace, of a whole thread state; 0: unknown. */
pid_t marey__remote_tid(struct marey__remote *remote, const void *thread_state_bytes);
/* Its name in threading, else the kernel's; with a NUL, the length. `thread_state` 0: the kernel's alone. */
size_t marey__remote_thread_name(struct marey__remote *remote, pid_t tid, uint64_t thread_state,
                                 char *to, size_t cap);

/* ---- asyncio, 3.14 and later ---- */

struct marey__remote_task {
    uint64_t address, coroutine, name; /* of the name's object */
};
/* The task that a thread runs; false: none, or this Python does not tell. */
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

/*
 * Why `pid` may not be read, as one sentence with what to type (permission.c). Always MAREY_EIO, with the sentence as the
 * last error.
 */
marey_status marey__remote_explain_denial(pid_t pid);

#endif
