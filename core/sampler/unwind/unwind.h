/*
 * unwind: the native side of a stopped thread. Registers and a copy of the stack become addresses, addresses become names,
 * and native frames and Python's become one list. Nothing here stops, resumes or writes to a process.
 *
 *     marey__unwind_registers       while the thread is stopped
 *     (the sampler copies marey__unwind_stack_size bytes from sp on, then resumes the thread)
 *     marey__unwind_stack           copy -> frames
 *     marey__unwind_merge           native frames and Python's -> one list
 *     marey__unwind_symbol          for each new address
 *
 * Call frame information comes from .eh_frame by libdw (elfutils), where the build has it. What libdw says of an address
 * is kept as a rule of a few words for the range it holds for, so that the second unwinding through it asks nobody. Where a
 * file has no such information, or the build no libdw, the first instructions of the function are read, frame pointers are
 * followed, and where they lead nowhere the stack is searched for return addresses behind calls. Everything in the target's memory and files is input and may be hostile.
 *
 * All objects belong to one thread at a time.
 */
#ifndef MAREY_UNWIND_H
#define MAREY_UNWIND_H

#include <sys/types.h>

#include "base/base_internal.h"

#if defined(__aarch64__)
#define MAREY__UNWIND_REGISTERS 33 /* x0-x30, sp, pc: DWARF's numbers, pc behind them */
#define MAREY__UNWIND_SP 31
#define MAREY__UNWIND_PC 32
#define MAREY__UNWIND_FP 29
#else
#define MAREY__UNWIND_REGISTERS 17 /* DWARF's numbers of x86-64, 16 is the return address */
#define MAREY__UNWIND_SP 7
#define MAREY__UNWIND_PC 16
#define MAREY__UNWIND_FP 6
#endif
#define MAREY__UNWIND_MAX_STACK ((size_t)64 << 10) /* bytes of stack that are worth copying */
#define MAREY__UNWIND_MAX_FRAMES ((size_t)512)     /* room that holds all but runaway recursion */

/* ---- one thread, stopped or asleep ---- */

struct marey__unwind_input {
    uint64_t registers[MAREY__UNWIND_REGISTERS];
    uint64_t unknown; /* a bit for each register that was not to be had; 0 of a thread that is stopped */
    const uint8_t *stack; /* lent: a copy of the target's memory from `stack_at` on, usually from sp on */
    uint64_t stack_at;
    size_t n_stack;
};

/* The registers of a thread that the caller traces and has stopped; `stack` is left alone. False: it is gone. */
bool marey__unwind_registers(pid_t tid, struct marey__unwind_input *input);

/* ---- one process ---- */

/* What was found in program files: shared by the processes of one sampler, for they have most files in common. */
struct marey__unwind_files;
MAREY_WARN_UNUSED marey_status marey__unwind_files_create(struct marey__unwind_files **out);
/* After all processes that use it. */
void marey__unwind_files_destroy(struct marey__unwind_files *files);

struct marey__unwind;
/*
 * Read what `pid` has mapped; files are looked into when an address leads there. `files` is lent and outlives the result.
 * MAREY_EUNAVAILABLE: the process is gone, or its mappings may not be read.
 */
MAREY_WARN_UNUSED marey_status marey__unwind_create(pid_t pid, struct marey__unwind_files *files,
                                                    struct marey__unwind **out);
void marey__unwind_destroy(struct marey__unwind *unwind);
/* The process has called exec: nothing of what was known holds. */
void marey__unwind_forget(struct marey__unwind *unwind);

/*
 * How many bytes to copy from `sp` on, at most `cap`: what is mapped there. Asks nobody, for the thread stands still
 * meanwhile: of a stack that is new it is the rest of the page, and the next time all of it.
 */
size_t marey__unwind_stack_size(struct marey__unwind *unwind, uint64_t sp, size_t cap);

enum marey__unwind_by {
    MAREY__BY_REGISTERS = 0,
    MAREY__BY_RULE,
    MAREY__BY_PROLOGUE,
    MAREY__BY_FRAME_POINTER,
    MAREY__BY_SCAN
};

struct marey__native_frame {
    uint64_t pc; /* within the instruction that runs or calls, so that it names the right function */
    uint64_t sp;  /* the frame lies from here ... */
    uint64_t cfa; /* ... up to here; 0: not known */
    uint8_t by;   /* enum marey__unwind_by: how it was found */
    bool is_eval; /* CPython's evaluation loop, by its name */
};

/*
 * Frames of `input`, innermost first, at most `cap`; the first is the registers' own. `*is_complete`: they reach the
 * start of the thread. Cannot fail: without memory there are fewer rules to keep and the next sample asks again.
 */
size_t marey__unwind_stack(struct marey__unwind *unwind, const struct marey__unwind_input *input,
                           struct marey__native_frame *out, size_t cap, bool *is_complete);

/* ---- names ---- */

enum marey__native_role {
    MAREY__NATIVE_CODE = 0, /* what a user wants to see */
    MAREY__NATIVE_EVAL,     /* the evaluation loop: Python's frames stand in its place */
    MAREY__NATIVE_PLUMBING, /* how CPython calls from one to the other: of no interest between Python's frames */
    MAREY__NATIVE_START /* what a program or a thread begins with, outside of the outermost Python frame */
};

struct marey__native_symbol {
    const char *name; /* C++ names readable where a libstdc++ is there; "[libfoo.so+0x1234]" where there is none */
    const char *library;  /* base name of the file; "[vdso]", "[jit]", "[anon]" */
    const char *path;     /* as the target's /proc/PID/maps has it; "" without a file */
    const char *build_id; /* hexadecimal; "" where there is none */
    uint64_t address; /* of `pc` as the file counts addresses, for naming it later by build id */
    enum marey__native_role role;
};
/* The name of a frame's `pc`; lent until `unwind` is destroyed or forgets. Never NULL. Cached by address. */
const struct marey__native_symbol *marey__unwind_symbol(struct marey__unwind *unwind, uint64_t pc);

/* A number of the caller's own, 0 at first, that lives as long as the symbol; NULL: this one has none. */
uint32_t *marey__native_symbol_tag(const struct marey__native_symbol *symbol);

/* ---- Python's frames and native ones ---- */

/* Python frames that one call of CPython's evaluation loop runs; innermost run first, frames counted from the innermost. */
struct marey__unwind_run {
    uint32_t n_frames; /* up to 3.10: 1. 3.11: up to and with `is_entry`. From 3.12 on: up to the next shim; may be 0 */
    uint64_t anchor; /* an address in the C frame of that call: the shim from 3.12 on, the cframe of 3.10 and 3.11; 0: none */
};
struct marey__unwind_merged {
    bool is_python;
    uint32_t index; /* of the native frame, or of the Python frame, both counted from the innermost */
};
struct marey__unwind_merge {
    const struct marey__native_frame *native;
    size_t n_native;
    bool is_complete;
    const struct marey__unwind_run *runs;
    size_t n_runs;
};
/*
 * One list, innermost first: in the place of each evaluation loop its Python frames, without plumbing. All Python frames
 * are in it whatever does not fit; `*is_mismatch` says so then. `out` has room for n_native and all Python frames; the
 * number of entries is returned. Runs are paired by anchors where all have one, else by the loop's name, in order.
 */
size_t marey__unwind_merge(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                           struct marey__unwind_merged *out, bool *is_mismatch);

/* ---- what it took ---- */

struct marey__unwind_counts {
    uint64_t n_stacks, n_complete, n_frames, n_by_rule, n_by_prologue, n_by_frame_pointer, n_by_scan;
    uint64_t n_asked;         /* questions to libdw: what was not known yet */
    uint64_t n_maps_reads;    /* /proc/PID/maps, at the start and when an address led nowhere */
    uint64_t n_without_rules; /* frames in files that have no information or could not be read */
};
void marey__unwind_counts(const struct marey__unwind *unwind, struct marey__unwind_counts *out);
/* Whether this build has libdw. */
bool marey__unwind_has_rules(void);

/* ---- wait_reason.c: why the kernel holds a thread; used without native frames too ---- */

/*
 * What thread `tid` of `pid` waits in: a code that marey__wait_text puts into words, the same on every machine and for good.
 * 0: it runs, or that may not be read. Looks at /proc/PID/task/TID/syscall, at the file that the call names, and at wchan.
 * Ask before the thread is stopped.
 */
uint32_t marey__wait_reason(pid_t pid, pid_t tid);
/* The same, a third of the time, by a descriptor of /proc/PID/task/TID/syscall that the caller keeps open. */
uint32_t marey__wait_reason_by(pid_t pid, pid_t tid, int syscall_fd);
/* The reason of a thread whose process was stopped by SIGSTOP or ctrl-Z. */
uint32_t marey__wait_stopped(void);
/* Whether SIGSTOP or ctrl-Z has stopped the process: then its threads do not wait for the system calls that they are in. */
bool marey__is_stopped(pid_t pid);
/* The same of texts: that of `syscall`, and what the descriptor in it is a link to ("" or NULL: not known). */
uint32_t marey__wait_parse(const char *text, const char *link);
/* "futex", "poll", "read socket", "ioctl nvidia", "sleep"; a static text, or `to`. "" for 0. */
const char *marey__wait_text(uint32_t wait, char *to, size_t cap);

#endif
