/*
 * marey/operators.h: the table of operators that torch calls key averages, and stacks for flame graphs, made of a trace
 * (libmarey-tools).
 *
 *     marey_operators *operators;
 *     marey_operators_create(trace, NULL, &operators);
 *     marey_operators_text(operators, NULL, stdout);
 *
 * Numbers are those of torch's own key_averages() for the same profile, to the nanosecond. A call's self time is its time
 * without that of the calls directly within it, on its thread; its device time that of the kernels, copies and sets it
 * launched, with those of the calls within it. Memory is what was allocated less what was released while it ran, on any
 * thread. Steps (ProfilerStep#9) are one row, ProfilerStep*. A backward operator has the stack of its forward one.
 */
#ifndef MAREY_OPERATORS_H
#define MAREY_OPERATORS_H

#include <stdio.h>

#include <marey/table.h>
#include <marey/torch_trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_operators marey_operators;

struct marey_operators_options {
    int by_name_alone; /* non-zero: calls with different shapes and stacks are one row */
    int32_t stack_depth; /* entries of the stack, from the leaf, that calls are told apart by; 0: 5; -1: none */
    const char *sort; /* a key that marey_operators_check_sort() knows; NULL: self_device_time_total where there is
                           * device time, else self_cpu_time_total */
};

/* MAREY_EINVAL for a key that is none. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_check_sort(const char *key);

/* `trace` is lent until destroy. MAREY_ENOMEM, MAREY_EINVAL. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_operators_create(const marey_torch_trace *trace,
                       const struct marey_operators_options *options, marey_operators **out);
MAREY_API void marey_operators_destroy(marey_operators *operators);

/*
 * The table, lent until it goes, the first by the sort key first. Times are whole nanoseconds, of all calls.
 *   name kind calls cpu_ns self_cpu_ns device_ns self_device_ns cpu_bytes self_cpu_bytes device_bytes
 *   self_device_bytes flops shapes stack cpu_share device_share
 * kind: operator, annotation, python, runtime, overhead, kernel, copy, set, device_annotation, memory (allocated while
 * nothing ran).
 * shapes and stack are null where the trace has none, or they are not asked for; a stack's entries have ';' between, the
 * leaf first. The shares are of self times: of all CPU time, and of all that devices did.
 */
MAREY_API marey_table *marey_operators_table(marey_operators *operators);

struct marey_operators_text_options {
    uint32_t n_rows; /* 0: 25 */
};
/* As torch prints its table, with the columns of FLOPs and sources under their own titles. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_text(
    const marey_operators *operators, const struct marey_operators_text_options *options, FILE *out);

/*
 * A line for each call that has a stack and at least a microsecond: its stack, the root first, entries with ';' between,
 * a blank, whole microseconds; in the order of their begins. In an entry, blanks, tabs, newlines and ';' are '_'.
 * `metric` is self_cpu_time_total or self_device_time_total (also by the name self_cuda_time_total); NULL: of devices
 * where there is device time. MAREY_EINVAL, MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_stacks(const marey_operators *operators,
                                                                const char *metric, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
