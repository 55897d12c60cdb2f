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
 *   source_dw.c                             addresses to source lines and inlined functions
 *   cfi_rules.c (cfi_dw.c, cfi_missing.c)   call frame information from .eh_frame by libdw, kept as compact rules
 *   unwind_stack.c, unwind_prologue.c       registers and a stack to frames; frame pointers and prologues without CFI
 *   unwind_names.c, unwind_debug.c, unwind_roles.c   addresses to names; CPython's own functions
 *   unwind_merge.c, wait_reason.c           native and Python frames in one list; why the kernel holds a thread
 *
 * Input: registers, a copied stack, program files; all untrusted. Output: frames. Nothing here stops, resumes or writes
 * to a process. Objects belong to one thread at a time. Does not know the sampling loop or the store.
 */
#ifndef MAREY_SAMPLER_UNWIND_INTERNAL_H
#define MAREY_SAMPLER_UNWIND_INTERNAL_H

#include "base/internal.h"
#include "codec/internal.h"
#include "sampler/remote/internal.h"

#if defined(__aarch64__)
#define MAREY__UNWIND_REGISTERS 33 /* x0-x30, sp, pc: DWARF numbers, then pc */
#define MAREY__UNWIND_SP 31
#define MAREY__UNWIND_PC 32
#define MAREY__UNWIND_FP 29
#else
#define MAREY__UNWIND_REGISTERS 17 /* DWARF numbers of x86-64, 16 is the return address */
#define MAREY__UNWIND_SP 7
#define MAREY__UNWIND_PC 16
#define MAREY__UNWIND_FP 6
#endif
#define MAREY__UNWIND_MAX_STACK ((size_t)64 << 10) /* maximum bytes of stack to copy */
#define MAREY__UNWIND_MAX_FRAMES ((size_t)512)     /* enough for all but runaway recursion */

/* ---- one thread, stopped or asleep ---- */

struct marey__unwind_input {
    uint64_t registers[MAREY__UNWIND_REGISTERS];
    uint64_t unknown;     /* a bit for each unavailable register; 0 for a stopped thread */
    const uint8_t *stack; /* lent: a copy of the target's memory from `stack_at`, usually sp */
    uint64_t stack_at;
    size_t n_stack;
};

/*
 * Reads the registers of a thread that the caller traces and has stopped; does not change `stack`. False if it is gone.
 */
bool marey__unwind_registers(pid_t tid, struct marey__unwind_input *input);

/* ---- one process ---- */

/* Data of program files, shared by the processes of a sampler, which have most files in common. */
struct marey__unwind_files;
MAREY_WARN_UNUSED marey_status marey__unwind_files_create(struct marey__unwind_files **out);
/* Call after all processes that use it are destroyed. */
void marey__unwind_files_destroy(struct marey__unwind_files *files);

struct marey__unwind;
/* Reads the mappings of `pid`; files are opened on demand. `files` is lent. MAREY_EUNAVAILABLE: gone, or not readable. */
MAREY_WARN_UNUSED marey_status marey__unwind_create(pid_t pid, struct marey__unwind_files *files,
                                                    struct marey__unwind **out);
void marey__unwind_destroy(struct marey__unwind *unwind);

/*
 * How many mapped bytes to copy from `sp` on, at most `cap`. Makes no system calls, because the thread is stopped
 * meanwhile: for a new stack returns the rest of the page, the next time the whole stack.
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
    uint64_t pc; /* within the instruction that runs or calls, so that it belongs to the right function */
    uint64_t sp;  /* start of the frame */
    uint64_t cfa; /* end of the frame; 0: unknown */
    uint8_t by;   /* enum marey__unwind_by: how it was found */
    bool is_eval; /* CPython's evaluation loop, by name */
};

/*
 * Frames of `input`, innermost first, at most `cap`; the first is that of the registers. `*is_complete`: they reach the
 * start of the thread. Cannot fail: on out of memory fewer rules are cached.
 */
size_t marey__unwind_stack(struct marey__unwind *unwind, const struct marey__unwind_input *input,
                           struct marey__native_frame *out, size_t cap, bool *is_complete);

/* ---- names ---- */

enum marey__native_role {
    MAREY__NATIVE_CODE = 0, /* of interest to the user */
    MAREY__NATIVE_EVAL,     /* the evaluation loop, replaced by Python frames */
    MAREY__NATIVE_PLUMBING, /* how CPython calls from one to the other: of no interest between Python's frames */
    MAREY__NATIVE_START /* the start of a program or thread, outside the outermost Python frame */
};

struct marey__native_symbol {
    const char *name; /* C++ names demangled if libstdc++ is available; "[libfoo.so+0x1234]" without a name */
    const char *library;  /* base name of the file; "[vdso]", "[jit]", "[anon]" */
    const char *path;     /* as in the target's /proc/PID/maps; "" without a file */
    const char *build_id; /* hexadecimal; "" if it has none */
    uint64_t address;     /* `pc` as an address in the file, for symbolizing later by build id */
    enum marey__native_role role;
};
/* The symbol of a frame's `pc`; lent until `unwind` is destroyed or forgets. Never NULL. Cached by address. */
const struct marey__native_symbol *marey__unwind_symbol(struct marey__unwind *unwind, uint64_t pc);

/* A number for the caller, 0 at first, that lives as long as the symbol; NULL for the shared unknown symbol. */
uint32_t *marey__native_symbol_tag(const struct marey__native_symbol *symbol);

/* A source position. */
struct marey__source_line {
    char name[256]; /* the inlined function; "": the frame's own function */
    char file[512];
    uint32_t line;
};
enum { MAREY__SOURCE_LINES = 8 };
/*
 * The source positions of `pc`, innermost first: functions that the compiler inlined there, then the frame's own.
 * Returns 0 if the file has no debug information. Queries libdw each time: callers cache the result.
 */
size_t marey__unwind_lines(struct marey__unwind *unwind, uint64_t pc,
                           struct marey__source_line out[MAREY__SOURCE_LINES]);

/* ---- Python's frames and native ones ---- */

/* Python frames executed by one call of the evaluation loop; innermost run first, frames counted from the innermost. */
struct marey__unwind_run {
    uint32_t n_frames; /* up to 3.10: 1. 3.11: up to and with `is_entry`. From 3.12 on: up to the next shim; may be 0 */
    uint64_t anchor; /* an address in that call's C frame: the shim from 3.12 on, the cframe of 3.10 and
                        3.11; 0: none */
};
struct marey__unwind_merged {
    bool is_python;
    uint32_t index; /* of the native or Python frame, both counted from the innermost */
};
struct marey__unwind_merge {
    const struct marey__native_frame *native;
    size_t n_native;
    bool is_complete;
    const struct marey__unwind_run *runs;
    size_t n_runs;
};
/*
 * Merges into one list, innermost first: each evaluation loop is replaced by its Python frames, without plumbing. It
 * always contains all Python frames; `*is_mismatch` reports a bad match. `out` has room for n_native and all Python
 * frames; returns the number of entries. Runs are matched by anchors if all have one, else by the loop's name, in
 * order.
 */
size_t marey__unwind_merge(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                           struct marey__unwind_merged *out, bool *is_mismatch);

/* ---- statistics ---- */

struct marey__unwind_counts {
    uint64_t n_stacks, n_complete, n_frames, n_by_rule, n_by_prologue, n_by_frame_pointer, n_by_scan;
    uint64_t n_asked;         /* queries to libdw, not cached */
    uint64_t n_maps_reads;    /* of /proc/PID/maps, at the start and for unmapped addresses */
    uint64_t n_without_rules; /* frames in files without call frame information, or unreadable ones */
};
void marey__unwind_counts(const struct marey__unwind *unwind, struct marey__unwind_counts *out);
/* Whether this build has libdw. */
bool marey__unwind_has_rules(void);

/* ---- wait_reason.c: why a thread is blocked; also used without native frames ---- */

/*
 * What thread `tid` of `pid` waits for: a code for marey__wait_text, stable and the same on every machine. 0: it is
 * running, or unreadable. Reads /proc/PID/task/TID/syscall, the call's file descriptor, and wchan. Call it before the
 * thread is stopped.
 */
uint32_t marey__wait_reason(pid_t pid, pid_t tid);
/* The same in a third of the time, with an open descriptor of /proc/PID/task/TID/syscall. */
uint32_t marey__wait_reason_by(pid_t pid, pid_t tid, int syscall_fd);
/* The code for a process stopped by SIGSTOP or ctrl-Z. */
uint32_t marey__wait_stopped(void);
/* Whether SIGSTOP or ctrl-Z has stopped the process: its threads then do not wait for their system calls. */
bool marey__is_stopped(pid_t pid);
/* The same for text: of `syscall`, and the link target of its descriptor ("" or NULL: unknown). */
uint32_t marey__wait_parse(const char *text, const char *link);
/* "futex", "poll", "read socket", "ioctl nvidia", "sleep"; a static string, or `to`. "" for 0. */
const char *marey__wait_text(uint32_t wait, char *to, size_t cap);

/* ---- sources of bytes ---- */

struct marey__program;

struct marey__unwind_source {
    bool (*maps)(void *self, struct marey__buf *to); /* text of /proc/PID/maps */
    bool (*memory)(void *self, uint64_t at, void *to, size_t n_bytes);
    int (*open_map)(void *self,
                    const struct marey__remote_map *map); /* a descriptor of the mapped file; -1: none */
    int (*open_path)(void *self, const char *path);       /* as the target sees paths; -1 */
    int (*open_perf_map)(void *self);                     /* -1: none */
    void (*close)(void *self);
    void *self;
};
/* The bytes of process `pid`. */
MAREY_WARN_UNUSED marey_status marey__unwind_source_open(pid_t pid, struct marey__unwind_source *out);
/* Like marey__unwind_create; takes ownership of `source`, even on failure. */
MAREY_WARN_UNUSED marey_status marey__unwind_create_from(const struct marey__unwind_source *source,
                                                         struct marey__unwind_files *files,
                                                         struct marey__unwind **out);

/* ---- rules of call frames ---- */

enum marey__cfi_where { /* where a register of the caller is; registers without an entry are unchanged */
                        MAREY__AT_CFA = 1, /* in memory, at CFA + offset */
                        MAREY__IS_CFA,     /* CFA + offset */
                        MAREY__IN_REGISTER,
                        MAREY__AT_PROGRAM, /* in memory, at the result of a DWARF program */
                        MAREY__IS_PROGRAM, /* the result of a DWARF program */
                        MAREY__IS_LOST
};
struct marey__cfi_rule {
    int32_t cfa_offset;
    uint16_t cfa_program; /* 0: register + offset; else a program's number */
    uint8_t cfa_register;
    uint8_t ra; /* the register of the return address */
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
/* All different rules, by 1-based number. */
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
/* The number of an equal rule, added if missing; zero `rule` before filling it. 0 on out of memory. */
uint32_t marey__cfi_rules_add(struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule);
/* The 1-based number of a program; 0 if it is too long, there are too many, or on out of memory. */
uint16_t marey__cfi_rules_program(struct marey__cfi_rules *rules, const struct marey__cfi_op *ops,
                                  size_t n);
void marey__cfi_rules_fini(struct marey__cfi_rules *rules);

/* A thread's registers during a walk. */
struct marey__unwind_state {
    uint64_t registers[MAREY__UNWIND_REGISTERS];
    uint64_t known; /* one bit each */
    const struct marey__unwind_input *input;
};
/* Reads a word of the copied stack. */
bool marey__unwind_load(const struct marey__unwind_state *state, uint64_t at, uint64_t *out);
/* Changes `*state` to the caller's, with its return address as pc. False, and no change, if the rule does not fit. */
bool marey__cfi_apply(const struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule,
                      struct marey__unwind_state *state, uint64_t *cfa);

/* Call frame information of one program. */
struct marey__cfi;
/* `bytes` are lent and private: their first page is modified. NULL: no call frame information. */
struct marey__cfi *marey__cfi_open(void *bytes, size_t len);
void marey__cfi_close(struct marey__cfi *cfi);
/* The rule for `address`, and the end of its range; `begin` is that address. False if there is none. */
struct marey__cfi_range {
    uint64_t begin, end;
    uint32_t rule;
};
bool marey__cfi_at(struct marey__cfi *cfi, uint64_t address, struct marey__cfi_rules *rules,
                   struct marey__cfi_range *out);

/* Debug information of one program, source_dw.c. `bytes` are lent. NULL if there is none. */
struct marey__source;
struct marey__source *marey__source_open(void *bytes, size_t len);
void marey__source_close(struct marey__source *source);
/* Like marey__unwind_lines, for an address of the file. */
size_t marey__source_lines(struct marey__source *source, uint64_t address,
                           struct marey__source_line out[MAREY__SOURCE_LINES]);

/* ---- program files ---- */

struct marey__program_symbols {
    struct marey__elf_symbol *symbols; /* names are in `bytes` */
    size_t n;
    void *bytes; /* NULL: those of the program */
    size_t len;
    bool is_mapped; /* by marey__map_file; else allocated */
};
/* An address range with one name. */
struct marey__program_function {
    uint64_t begin, end;
    struct marey__native_symbol *symbol;
    bool is_outermost; /* a thread starts here */
};
struct marey__program {
    struct marey__program *next;
    uint64_t device, inode, changed_ns; /* identify the file; all 0: a copy of memory */
    char *path;
    const char *base;                   /* last component of `path` */
    char build_id[2 * 32 + 1];          /* hexadecimal, or "" */
    char debug_link[128];               /* the name of a separate debug file, or "" */
    uint64_t minidebug_at, n_minidebug; /* .gnu_debugdata in the file; 0: none */
    void *bytes;
    size_t len;
    bool is_mapped; /* otherwise allocated */
    struct {
        uint64_t offset, n_bytes, address;
        bool is_executable;
    } loads[16];
    size_t n_loads;
    uint64_t starts_at, n_starts,
        starts_base; /* the sorted table of .eh_frame_hdr: function starts; 0: none */
    void *cfi_bytes; /* a second mapping, or allocation, as `is_mapped`; NULL: none */
    struct marey__cfi *cfi;
    struct marey__source *source; /* NULL: missing, or not requested */
    bool was_cfi_opened, were_symbols_read, was_source_opened;
    struct marey__cfi_range *ranges; /* sorted cache */
    size_t n_ranges, ranges_cap;
    struct marey__program_symbols symbols[2]; /* its own, and those of a debug file or .gnu_debugdata */
    struct marey__program_function *functions; /* sorted cache */
    size_t n_functions, functions_cap;
};
struct marey__unwind_files {
    struct marey__program *first;
    struct marey__cfi_rules rules;
};

/* The program of an open descriptor, existing or new; NULL if invalid, or on out of memory. Does not close `fd`. */
struct marey__program *marey__program_open(struct marey__unwind_files *files, int fd,
                                           const char *path);
/* A program that exists only in memory, existing or new; takes ownership of `bytes`, even on failure. */
struct marey__program *marey__program_copy(struct marey__unwind_files *files, void *bytes,
                                           size_t len, const char *path);
/* Converts a file offset to the file's address. */
bool marey__program_address(const struct marey__program *program, uint64_t offset, uint64_t *address);
/* `n_bytes` at an address; NULL if the file does not have them. */
const uint8_t *marey__program_at(const struct marey__program *program, uint64_t address,
                                 size_t n_bytes);
/* The function around `address`, from the unwind table; false if there is none. */
bool marey__program_start(const struct marey__program *program, uint64_t address, uint64_t *begin,
                          uint64_t *end);
/* The number of the rule for `address`, 0 for none. `*has_asked`: libdw was queried. */
uint32_t marey__program_rule(struct marey__unwind_files *files, struct marey__program *program,
                             uint64_t address, bool *has_asked);
/* Unmaps a file's bytes, or frees allocated ones. */
void marey__program_free(void *bytes, size_t len, bool is_mapped);

/* ---- names ---- */

/* Reads the symbol tables, once. */
void marey__program_read_symbols(struct marey__program *program,
                                 const struct marey__unwind_source *source);
/* The symbol around `address`, or NULL. */
const struct marey__elf_symbol *marey__program_symbol_at(const struct marey__program *program,
                                                         uint64_t address);
/* The function around `address`, named; NULL on out of memory. Lent until the next call. */
const struct marey__program_function *marey__program_name(struct marey__program *program,
                                                          const struct marey__unwind_source *source,
                                                          uint64_t address);
/* Copies `len` bytes of text into `to`, truncated, with control characters replaced. */
void marey__native_clean(const char *text, size_t len, char *to, size_t cap);
/* Writes a demangled name without parameters into `to`, truncated, with control characters replaced. */
void marey__demangle(const char *name, char *to, size_t cap);
/* The role of a function. `is_outermost`: a thread or a program starts with it. */
enum marey__native_role marey__native_role(const char *name, bool *is_outermost);
extern const struct marey__native_symbol marey__native_unknown;

/* ---- a process ---- */

/* A cache entry for an address; a newer one replaces another in the same slot. */
struct marey__unwind_cache_entry {
    uint64_t pc; /* 0: empty */
    const struct marey__native_symbol *symbol;
    uint32_t rule;
    bool is_outermost;
};
enum { MAREY__UNWIND_CACHE_SIZE = 4096 };

struct marey__unwind {
    struct marey__unwind_source source;
    struct marey__unwind_files *files;
    struct marey__remote_maps maps;
    uint32_t maps_sum;                    /* checksum of the maps text */
    bool wants_maps;                      /* a stack was in no mapping */
    uint64_t maps_read_ns, maps_pause_ns; /* when last read, and the minimum interval */
    struct marey__unwind_cache_entry *cache;
    struct marey__unwind_counts counts;
    struct marey__program_function *jit; /* from perf-PID.map, sorted */
    size_t n_jit, jit_cap;
    uint64_t jit_read_ns;
    off_t jit_at; /* how far the file was read */
};

/* The mapping around `address`, or NULL. */
struct marey__remote_map *marey__unwind_map_known(struct marey__unwind *unwind, uint64_t address);
/* The same, but rereads the mappings occasionally if there is none: for addresses that must be mapped. */
struct marey__remote_map *marey__unwind_map_at(struct marey__unwind *unwind, uint64_t address);
/* Rereads the mappings if they are old, or if a stack was in none. */
void marey__unwind_refresh_maps(struct marey__unwind *unwind);
/* The program of mapped code, searched once, and `pc` as its address. NULL if there is none. */
struct marey__program *marey__unwind_program_at(struct marey__unwind *unwind, uint64_t pc,
                                                uint64_t *address);
/* The cache entry of `pc`, looked up if missing. */
const struct marey__unwind_cache_entry *marey__unwind_lookup(struct marey__unwind *unwind,
                                                             uint64_t pc);
/* Changes `*state` to the caller's by the first instructions of the function around `pc`; false if they do not suffice. */
bool marey__unwind_prologue(struct marey__unwind *unwind, const struct marey__native_symbol *symbol,
                            uint64_t pc, struct marey__unwind_state *state);
/* The named function of generated code around `pc`, or NULL. */
const struct marey__program_function *marey__unwind_jit_at(struct marey__unwind *unwind, uint64_t pc);

#endif
