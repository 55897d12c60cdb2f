/*
 * operators: the table of operators, as torch computes it from its events.
 *
 *   operators_calls.c    rows of a trace to nested calls, per thread
 *   operators_links.c    kernels to the calls that launched them, allocations to the calls around them
 *   operators_stacks.c   stacks; those of backward calls from their forward calls
 *   operators_flops.c    floating point operations from shapes
 *   operators.c, operators_table.c   rows by name, shapes and stack; the sorted table; the registry entry
 *   operators_text.c     the table in torch's layout
 *
 * Input: a torch trace (import/kineto). Output: a table. Does not read recordings: they lack shapes and
 * forward-backward links. Does not know the file's JSON: import/kineto returns rows.
 */
#ifndef MAREY_ANALYZE_OPERATORS_INTERNAL_H
#define MAREY_ANALYZE_OPERATORS_INTERNAL_H

#include "analyze/walk/internal.h"
#include "import/kineto/internal.h"
#include "report/internal.h"
#include <marey/operators.h>

#define MAREY__NO_OPERATOR_CALL UINT32_MAX
enum { MAREY__N_OPERATOR_COLUMNS = 16 };

/* A call on a host thread: an operator, an annotation, a Python function, a CUDA call. */
struct marey__torch_call {
    uint32_t event; /* of the trace */
    uint32_t parent; /* innermost call around it on its thread, an earlier index; MAREY__NO_OPERATOR_CALL: none */
    uint32_t n_children; /* direct children */
    uint32_t stack;      /* index in `stacks` */
    bool is_double;      /* the only child of a call with the same name, and merged with it */
    bool is_backward;    /* an autograd function */
    int64_t self_cpu_ns;
    int64_t device_ns, self_device_ns; /* of launched work, including and excluding nested calls */
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
};

/* A stack as entries, the leaf first. Number 0 is the empty stack. */
struct marey__torch_stack {
    uint32_t first, n; /* in `entries` */
    uint32_t top;      /* index in `texts`: its first entries, separated by ';' */
};

struct marey__torch_entry {
    const char *text; /* borrowed from the trace */
    uint32_t len;
};

/* A row of the table. */
struct marey__operator {
    struct marey__operator_key {
        marey__torch_id name; /* for steps that of the first one */
        uint32_t shapes, top; /* index in `texts` */
        uint32_t place;       /* host or device, annotation or not */
    } key;
    uint8_t kind; /* of its first call; MAREY__TORCH_N_KINDS: allocations outside all calls */
    bool is_step;
    uint32_t stack;                 /* of its first call */
    int64_t first_ns, first_end_ns; /* of its first call */
    uint32_t first_order;
    uint64_t n_calls, flops;
    int64_t cpu_ns, self_cpu_ns, device_ns, self_device_ns;
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
};

/* The data of a report. */
struct marey__operators {
    const struct marey__torch_trace *trace;
    struct marey__torch_trace *owned; /* the trace if it was read for the report; else NULL */
    uint32_t stack_depth;
    bool by_name_alone;

    struct marey__torch_call *calls; /* by thread, then begin, the longer first */
    size_t n_calls, calls_cap;
    uint8_t *is_within; /* by allocation: it is within a call */

    struct marey__torch_stack *stacks;
    size_t n_stacks, stacks_cap;
    struct marey__torch_entry *entries;
    size_t n_entries, entries_cap;
    uint32_t *stack_of, *shapes_of; /* by text of the trace, plus one; 0: not looked up yet */
    struct marey__names texts;      /* shapes and tops of stacks */
    struct marey__arena arena;      /* storage of these */

    struct marey__operator *rows; /* sorted by the sort key */
    size_t n_rows, rows_cap;
    struct marey__key_map keys; /* index of rows before they are sorted */
    bool has_device_time, has_device_memory, has_shapes, has_stacks;
    int64_t sum_cpu_ns, sum_device_ns; /* sums of self times; for devices of their own activity */
};

/* Call these in this order; each returns false on out of memory. */
bool marey__operators_find_calls(struct marey__operators *operators);
bool marey__operators_link(struct marey__operators *operators);
bool marey__operators_find_stacks(struct marey__operators *operators);
/* `key` is valid; NULL: self time on devices if there is any, else on the CPU. */
bool marey__operators_sort(struct marey__operators *operators, const char *key);
void marey__operators_fill(const struct marey__operators *operators, marey_table *table);

/* MAREY_EINVAL for an unknown key. */
MAREY_WARN_UNUSED marey_status marey__operators_check_sort(const char *key);
extern const struct marey_column marey__operator_columns[MAREY__N_OPERATOR_COLUMNS];
marey__put_answer marey__operators_text;

/* Merge calls with an only child of the same name, and subtract children from each call. */
void marey__operators_split(struct marey__operators *operators);

/* Add an untrusted number; wraps around on overflow, without undefined behavior. */
static inline void marey__sum(int64_t *sum, int64_t number)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)number);
}

static inline const struct marey__torch_event *
marey__call_event(const struct marey__operators *operators, const struct marey__torch_call *call)
{
    return &operators->trace->events[call->event];
}

/* Whether it is one of ProfilerStep#0, ProfilerStep#1, ..., which count as one name. */
bool marey__torch_is_step(const struct marey__torch_trace *trace,
                          const struct marey__torch_event *event);

/* operators_flops.c: the ids of names with formulas; FLOPs of a call, 0 for other names. */
enum { MAREY__N_FLOPS_NAMES = 7 };
struct marey__flops_names {
    marey__torch_id ids[MAREY__N_FLOPS_NAMES];
};
void marey__flops_init(struct marey__flops_names *names, const struct marey__torch_trace *trace);
uint64_t marey__flops_of(const struct marey__flops_names *names,
                         const struct marey__torch_trace *trace,
                         const struct marey__torch_event *event);

/* Append shapes, with lists of tensors as [], as torch prints them. */
void marey__shapes_put(struct marey__buf *out, const char *text, size_t len);

/* Rows with torch's names and formats; also for the table. */
struct marey__operator_text {
    const char *text;
    size_t len;
};
struct marey__operator_text marey__operator_name(const struct marey__operators *operators,
                                                 const struct marey__operator *row);
struct marey__operator_text marey__operator_shapes(const struct marey__operators *operators,
                                                   const struct marey__operator *row);

#endif
