/*
 * Gates of `marey report`, for CI: exit status 1 if the diagnosis has one of these findings, or the GPU computes too
 * little.
 */
#ifndef MAREY_CLI_REPORT_GATES_H
#define MAREY_CLI_REPORT_GATES_H

#include "lib/cli.h"

struct report_gates {
    const char *ids;     /* comma-separated; NULL: not given */
    const char *compute; /* percent; NULL: not given */
};
static inline bool report_gates_are_given(const struct report_gates *gates)
{
    return gates->ids != NULL || gates->compute != NULL;
}
/* Validates the gates before anything is read. False with a message printed. */
bool report_gates_check(const struct report_gates *gates);
/* CLI_FINE, or CLI_NO with a message per failed gate; CLI_BAD if the recordings cannot be judged. */
int report_gates_judge(const struct report_gates *gates, const marey_report *diagnosis);

#endif
