/*
 * unwind: native frames of a stopped thread.
 *
 *     marey__unwind_registers       while the thread is stopped
 *     (the sampler copies marey__unwind_stack_size bytes from sp on, then resumes the thread)
 *     marey__unwind_stack           copy -> frames
 *     marey__unwind_merge           native frames and Python's -> one list
 *     marey__unwind_symbol          for each new address
 *
 *   unwind.c, unwind_process.c, unwind_program.c   mappings, bytes, program files
 *   cfi_rules.c (cfi_dw.c, cfi_missing.c)   call frame information from .eh_frame by libdw, kept as compact rules
 *   unwind_stack.c, unwind_prologue.c       registers and a stack to frames; frame pointers and prologues without CFI
 *   unwind_names.c, unwind_debug.c, unwind_roles.c   addresses to names; CPython's own functions
 *   wait_reason.c                           why the kernel holds a thread
 *
 * Input: registers, a copied stack, program files; all of it may be hostile. Output: frames. Nothing here stops,
 * resumes or writes to a process. Objects belong to one thread at a time.
 */
#ifndef MAREY_SAMPLER_UNWIND_INTERNAL_H
#define MAREY_SAMPLER_UNWIND_INTERNAL_H

#include "base/internal.h"
#include "codec/internal.h"
#include "sampler/remote/internal.h"

#if defined(__aarch64__)
#define MAREY__UNWIND_REGISTERS 33 /* x0-x30, sp, pc: DWARF's numbers, then pc */
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

/* The registers of a thread that the caller traces and has stopped; `stack` is not changed. False: it is gone. */
bool marey__unwind_registers(pid_t tid, struct marey__unwind_input *input);

/* ---- one process ---- */

/* What was found in program files: shared by the processes of one sampler, for they have most files in common. */
struct marey__unwind_files;
MAREY_WARN_UNUSED marey_status marey__unwind_files_create(struct marey__unwind_files **out);
/* After all processes that use it. */
void marey__unwind_files_destroy(struct marey__unwind_files *files);

struct marey__unwind;
/* Read what `pid` has mapped; files are opened on demand. `files` is lent. MAREY_EUNAVAILABLE: gone, or not readable. */
MAREY_WARN_UNUSED marey_status marey__unwind_create(pid_t pid, struct marey__unwind_files *files,
                                                    struct marey__unwind **out);
void marey__unwind_destroy(struct marey__unwind *unwind);

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
    MAREY__NATIVE_EVAL,     /* the evaluation loop: Python's frames replace it */
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

/* ---- where bytes come from ---- */

struct marey__program;

struct marey__unwind_source {
    bool (*maps)(void *self, struct marey__buf *to); /* as /proc/PID/maps */
    bool (*memory)(void *self, uint64_t at, void *to, size_t n_bytes);
    int (*open_map)(void *self,
                    const struct marey__remote_map *map); /* a descriptor of what is mapped; -1: none */
    int (*open_path)(void *self, const char *path);       /* as the target sees paths; -1 */
    int (*open_perf_map)(void *self);                     /* -1 */
    void (*close)(void *self);
    void *self;
};
/* The bytes of process `pid`. */
MAREY_WARN_UNUSED marey_status marey__unwind_source_open(pid_t pid, struct marey__unwind_source *out);
/* As marey__unwind_create; takes `source` over, also when it fails. */
MAREY_WARN_UNUSED marey_status marey__unwind_create_from(const struct marey__unwind_source *source,
                                                         struct marey__unwind_files *files,
                                                         struct marey__unwind **out);

/* ---- rules of call frames ---- */

enum marey__cfi_where { /* where a register of the caller is; what a rule does not name has not changed */
                        MAREY__AT_CFA = 1, /* in memory, at the CFA and an offset */
                        MAREY__IS_CFA,     /* the CFA and an offset itself */
                        MAREY__IN_REGISTER,
                        MAREY__AT_PROGRAM, /* in memory, where a program of DWARF's operations says */
                        MAREY__IS_PROGRAM, /* what such a program says */
                        MAREY__IS_LOST
};
struct marey__cfi_rule {
    int32_t cfa_offset;
    uint16_t cfa_program; /* 0: register and offset; else a program's number */
    uint8_t cfa_register;
    uint8_t ra; /* the register that the return address is counted as */
    bool is_signal, is_end;
    uint8_t n_saved;
    struct {
        int32_t value; /* offset, register or program */
        uint8_t reg, where;
    } saved[MAREY__UNWIND_REGISTERS];
};
struct marey__cfi_op {
    uint64_t number;
    uint8_t atom; /* DW_OP_... */
};
/* All different rules, by number from 1. */
struct marey__cfi_rules {
    struct marey__cfi_rule *rules;
    size_t n, cap;
    struct marey__cfi_op *ops;
    size_t n_ops, ops_cap;
    struct marey__cfi_program {
        uint32_t first, n;
    } * programs;
    size_t n_programs, programs_cap;
};
/* The number of an equal rule, made when there is none; `rule` was zeroed before it was filled. 0 without memory. */
uint32_t marey__cfi_rules_add(struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule);
/* The number of a program, from 1; 0 when it is longer than any frame's, there are too many, or without memory. */
uint16_t marey__cfi_rules_program(struct marey__cfi_rules *rules, const struct marey__cfi_op *ops,
                                  size_t n);
void marey__cfi_rules_fini(struct marey__cfi_rules *rules);

/* A thread's registers while it is walked. */
struct marey__unwind_state {
    uint64_t registers[MAREY__UNWIND_REGISTERS];
    uint64_t known; /* a bit for each */
    const struct marey__unwind_input *input;
};
/* A word of the copied stack. */
bool marey__unwind_load(const struct marey__unwind_state *state, uint64_t at, uint64_t *out);
/* `*state` becomes the caller's, with its return address as pc. False leaves it: the rule does not fit this stack. */
bool marey__cfi_apply(const struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule,
                      struct marey__unwind_state *state, uint64_t *cfa);

/* Call frame information of one program. */
struct marey__cfi;
/* `bytes` are lent, and not shared with anybody: their first page is written to. NULL: there is none in them. */
struct marey__cfi *marey__cfi_open(void *bytes, size_t len);
void marey__cfi_close(struct marey__cfi *cfi);
/* The rule for `address`, and up to where it holds; `begin` is that address. False: nothing is said of it. */
struct marey__cfi_range {
    uint64_t begin, end;
    uint32_t rule;
};
bool marey__cfi_at(struct marey__cfi *cfi, uint64_t address, struct marey__cfi_rules *rules,
                   struct marey__cfi_range *out);

/* ---- program files ---- */

struct marey__program_symbols {
    struct marey__elf_symbol *symbols; /* names are lent by `bytes` */
    size_t n;
    void *bytes; /* NULL: they are the program's own */
    size_t len;
    bool is_mapped; /* by marey__map_file; else allocated */
};
/* A part of a program that has one name. */
struct marey__program_function {
    uint64_t begin, end;
    struct marey__native_symbol *symbol;
    bool is_outermost; /* a thread begins here */
};
struct marey__program {
    struct marey__program *next;
    uint64_t device, inode, changed_ns; /* which file it is; all 0: a copy of memory */
    char *path;
    const char *base;                   /* the end of `path` */
    char build_id[2 * 32 + 1];          /* hexadecimal; "" */
    char debug_link[128];               /* the name of a file with symbols; "" */
    uint64_t minidebug_at, n_minidebug; /* .gnu_debugdata in the file; 0: none */
    void *bytes;
    size_t len;
    bool is_mapped; /* else allocated */
    struct {
        uint64_t offset, n_bytes, address;
        bool is_executable;
    } loads[16];
    size_t n_loads;
    uint64_t starts_at, n_starts,
        starts_base; /* the sorted table of .eh_frame_hdr: starts of functions; 0: none */
    void *cfi_bytes; /* a second view, `is_mapped` as the first; NULL: none */
    struct marey__cfi *cfi;
    bool was_cfi_opened, were_symbols_read;
    struct marey__cfi_range *ranges; /* sorted: what was asked for */
    size_t n_ranges, ranges_cap;
    struct marey__program_symbols symbols[2]; /* its own, and those of a file for debugging or of .gnu_debugdata */
    struct marey__program_function *functions; /* sorted: what was asked for */
    size_t n_functions, functions_cap;
};
struct marey__unwind_files {
    struct marey__program *first;
    struct marey__cfi_rules rules;
};

/* The program of an open descriptor, known or new; NULL: it is none, or no memory. The descriptor stays the caller's. */
struct marey__program *marey__program_open(struct marey__unwind_files *files, int fd,
                                           const char *path);
/* A program that is nowhere but in memory, equal to one that is known or new; takes `bytes` over, also when it fails. */
struct marey__program *marey__program_copy(struct marey__unwind_files *files, void *bytes,
                                           size_t len, const char *path);
/* The address, in the file's own counting, of what lies at `offset` in it. */
bool marey__program_address(const struct marey__program *program, uint64_t offset, uint64_t *address);
/* `n_bytes` at an address, NULL where the file has none. */
const uint8_t *marey__program_at(const struct marey__program *program, uint64_t address,
                                 size_t n_bytes);
/* The function around `address` by the table that unwinding has; false where there is none. */
bool marey__program_start(const struct marey__program *program, uint64_t address, uint64_t *begin,
                          uint64_t *end);
/* The number of the rule for `address`, 0 for none. `*has_asked`: libdw had to be. */
uint32_t marey__program_rule(struct marey__unwind_files *files, struct marey__program *program,
                             uint64_t address, bool *has_asked);
/* Unmap bytes of a file, or free those that were allocated. */
void marey__program_free(void *bytes, size_t len, bool is_mapped);

/* ---- names ---- */

/* Read the tables of symbols, once. */
void marey__program_read_symbols(struct marey__program *program,
                                 const struct marey__unwind_source *source);
/* The symbol around `address`; NULL: none is known. */
const struct marey__elf_symbol *marey__program_symbol_at(const struct marey__program *program,
                                                         uint64_t address);
/* The function around `address`, named; NULL without memory. Lent until the next call. */
const struct marey__program_function *marey__program_name(struct marey__program *program,
                                                          const struct marey__unwind_source *source,
                                                          uint64_t address);
/* `len` bytes of text into `to`, cut to its size, control characters replaced. */
void marey__native_clean(const char *text, size_t len, char *to, size_t cap);
/* A readable name into `to`, cut to its size, control characters replaced, without parameters. */
void marey__demangle(const char *name, char *to, size_t cap);
/* What kind of function it is. `is_outermost`: a thread or a program begins with it. */
enum marey__native_role marey__native_role(const char *name, bool *is_outermost);
extern const struct marey__native_symbol marey__native_unknown;

/* ---- a process ---- */

/* What was found for an address; the latest of those that fall on one place. */
struct marey__unwind_known {
    uint64_t pc; /* 0: none yet */
    const struct marey__native_symbol *symbol;
    uint32_t rule;
    bool is_outermost;
};
enum { MAREY__UNWIND_KNOWN = 4096 };

struct marey__unwind {
    struct marey__unwind_source source;
    struct marey__unwind_files *files;
    struct marey__remote_maps maps;
    uint32_t maps_sum;                    /* checksum of their text */
    bool wants_maps;                      /* a stack was in none of them */
    uint64_t maps_read_ns, maps_pause_ns; /* when last, and how long not again */
    struct marey__unwind_known *known;
    struct marey__unwind_counts counts;
    struct marey__program_function *jit; /* of perf-PID.map, sorted */
    size_t n_jit, jit_cap;
    uint64_t jit_read_ns;
    off_t jit_at; /* up to where the file was read */
};

/* The mapping around `address`; NULL: nothing is mapped. */
struct marey__remote_map *marey__unwind_map_known(struct marey__unwind *unwind, uint64_t address);
/* The same, and the mappings are read again, now and then, when there is none: for addresses that must be somewhere. */
struct marey__remote_map *marey__unwind_map_at(struct marey__unwind *unwind, uint64_t address);
/* Read the mappings again when they are old, or when a stack was in none. */
void marey__unwind_keep_up(struct marey__unwind *unwind);
/* The program of code that is mapped, looked for once, and the address as that counts. NULL: it has none. */
struct marey__program *marey__unwind_program_at(struct marey__unwind *unwind, uint64_t pc,
                                                uint64_t *address);
/* What is known of `pc`, looked up where it has to be. */
const struct marey__unwind_known *marey__unwind_know(struct marey__unwind *unwind, uint64_t pc);
/* `*state` becomes the caller's by the first instructions of the function that `pc` is in; false: they do not show it. */
bool marey__unwind_prologue(struct marey__unwind *unwind, const struct marey__native_symbol *symbol,
                            uint64_t pc, struct marey__unwind_state *state);
/* The named function of generated code around `pc`; NULL: none is known. */
const struct marey__program_function *marey__unwind_jit_at(struct marey__unwind *unwind, uint64_t pc);

#endif
