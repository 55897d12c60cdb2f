/*
 * marey/operators.h: the report "operators" of an open torch trace, and its stacks (libmarey-tools).
 *
 *     marey_report *report;
 *     marey_operators_report(trace, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * marey_report_create_files("operators", ...) creates the same report from a file.
 *
 * Numbers equal torch's key_averages() for the same profile, to the nanosecond. Self time of a call is its time minus that
 * of its direct children on the same thread. Device time is that of the kernels, copies and memsets launched by the call
 * and its children. Memory is allocated minus released bytes while it ran, on any thread. Steps (ProfilerStep#9) are
 * merged into one row, ProfilerStep*. A backward operator has the stack of its forward operator.
 */
#ifndef MAREY_OPERATORS_H
#define MAREY_OPERATORS_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/torch_trace.h>

MAREY_BEGIN_C

/* `trace` is lent until the report is destroyed. `options` may be NULL. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_report(
    const marey_torch_trace *trace, const struct marey_report_options *options, marey_report **out);

/*
 * One line for each call with a stack and at least one microsecond, in order of start time: the stack, root first,
 * separated by ';', then a blank and whole microseconds. Blanks, tabs, newlines and ';' in an entry become '_'. `metric` is
 * self_cpu_time_total or self_device_time_total (alias self_cuda_time_total); NULL: device time if there is any, else CPU.
 * MAREY_EINVAL, MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_operators_stacks(const marey_report *report,
                                                                const char *metric, FILE *out);

MAREY_END_C
#endif
