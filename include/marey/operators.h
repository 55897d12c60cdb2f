/*
 * marey/operators.h: the report "operators" of a torch trace that is open, and its stacks (libmarey-tools).
 *
 *     marey_report *report;
 *     marey_operators_report(trace, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * marey_report_create_files("operators", ...) makes the same report of a file.
 *
 * Numbers are those of torch's own key_averages() for the same profile, to the nanosecond. A call's self time is its time
 * without that of the calls directly within it, on its thread; its device time that of the kernels, copies and memsets it
 * launched, with those of the calls within it. Memory is what was allocated less what was released while it ran, on any
 * thread. Steps (ProfilerStep#9) are one row, ProfilerStep*. A backward operator has the stack of its forward one.
 */
#ifndef MAREY_OPERATORS_H
#define MAREY_OPERATORS_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/torch_trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `trace` is lent until the report is destroyed. `options` may be NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_report(
    const marey_torch_trace *trace, const struct marey_report_options *options, marey_report **out);

/*
 * A line for each call that has a stack and at least a microsecond: its stack, the root first, entries with ';' between,
 * a blank, whole microseconds; in the order of their begins. In an entry, blanks, tabs, newlines and ';' are '_'.
 * `metric` is self_cpu_time_total or self_device_time_total (also by the name self_cuda_time_total); NULL: of devices
 * where there is device time. MAREY_EINVAL, MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_stacks(const marey_report *report,
                                                                const char *metric, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
