/*
 * unwind, inside: where bytes come from (a process, or a test's image of one), what is mapped, program files, rules.
 *
 *     unwind.c           a process: its mappings, what was found for an address
 *     unwind_maps.c      /proc/PID/maps as mappings
 *     unwind_process.c   bytes and registers of a living process
 *     unwind_program.c   program files: segments, build id, starts of functions
 *     cfi_rules.c        rules and their programs; cfi_dw.c has them from libdw, cfi_missing.c has none
 *     unwind_stack.c     registers and a stack -> frames; unwind_prologue.c reads how functions begin
 *     unwind_names.c     an address -> a name; unwind_debug.c has the tables, unwind_roles.c knows CPython's functions
 *     unwind_merge.c     native frames and Python's
 */
#ifndef MAREY_UNWIND_INTERNAL_H
#define MAREY_UNWIND_INTERNAL_H

#include "codec/elf_symbols.h"
#include "sampler/unwind/unwind.h"

/* ---- where bytes come from ---- */

struct marey__program;

struct marey__unwind_map {
    uint64_t start, end, offset, inode;
    const char *path; /* in the text that was read; "" for none */
    bool is_executable, is_readable, is_writable;
    bool was_looked_for;            /* `program` is what there is */
    struct marey__program *program; /* NULL: none, or it cannot be had */
};

struct marey__unwind_source {
    bool (*maps)(void *self, struct marey__buf *to); /* as /proc/PID/maps */
    bool (*memory)(void *self, uint64_t at, void *to, size_t n_bytes);
    int (*open_map)(void *self,
                    const struct marey__unwind_map *map); /* a descriptor of what is mapped; -1: none */
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
void marey__program_destroy(struct marey__program *program);

/* ---- names ---- */

/* Read the tables of symbols, once. */
void marey__program_read_symbols(struct marey__program *program,
                                 const struct marey__unwind_source *source);
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
/* A symbol in one allocation, its name copied; NULL without memory. */
struct marey__native_symbol *marey__native_symbol_make(const char *name,
                                                       const struct marey__program *program,
                                                       uint64_t address, bool *is_outermost);
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
    struct marey__buf text; /* of the mappings, cut into strings */
    uint32_t text_sum;      /* as it was before it was cut */
    bool wants_maps;        /* a stack was nowhere */
    struct marey__unwind_map *maps;
    size_t n_maps, maps_cap;
    uint64_t maps_read_ns, maps_pause_ns; /* when last, and how long not again */
    struct marey__unwind_known *known;
    struct marey__unwind_counts counts;
    struct marey__program_function *jit; /* of perf-PID.map, sorted */
    size_t n_jit, jit_cap;
    uint64_t jit_read_ns;
    off_t jit_at; /* up to where the file was read */
};

/* Cut the text of /proc/PID/maps into mappings, in order of addresses; what is none is left out. False without memory. */
MAREY_WARN_UNUSED bool marey__unwind_parse_maps(char *text, size_t len,
                                                struct marey__unwind_map **maps, size_t *cap,
                                                size_t *n);
/* The mapping around `address`; NULL: nothing is mapped. */
struct marey__unwind_map *marey__unwind_map_known(struct marey__unwind *unwind, uint64_t address);
/* The same, and the mappings are read again, now and then, when there is none: for addresses that must be somewhere. */
struct marey__unwind_map *marey__unwind_map_at(struct marey__unwind *unwind, uint64_t address);
/* Read the mappings again when they are old, or when a stack was in none. */
void marey__unwind_keep_up(struct marey__unwind *unwind);
/* The program of code that is mapped, looked for once, and the address as that counts. NULL: it has none. */
struct marey__program *marey__unwind_program_at(struct marey__unwind *unwind, uint64_t pc,
                                                uint64_t *address);
/* What is known of `pc`, looked up where it has to be. */
const struct marey__unwind_known *marey__unwind_know(struct marey__unwind *unwind, uint64_t pc);
/* `*state` becomes the caller's by the first instructions of the function that `pc` is in; false: they do not tell. */
bool marey__unwind_prologue(struct marey__unwind *unwind, const struct marey__native_symbol *symbol,
                            uint64_t pc, struct marey__unwind_state *state);
/* The named function of generated code around `pc`; NULL: none is known. */
const struct marey__program_function *marey__unwind_jit_at(struct marey__unwind *unwind, uint64_t pc);

#endif
