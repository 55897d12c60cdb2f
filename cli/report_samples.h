/* What `marey report` has for samples. */
#ifndef MAREY_CLI_REPORT_SAMPLES_H
#define MAREY_CLI_REPORT_SAMPLES_H

#include "cli.h"

struct report_samples {
    struct marey_text_options text;
    struct marey_samples_filter which;
    const char *by, *library, *filter, *sort, *table; /* NULL: not given */
    uint32_t limit;
    bool native, json, csv;
    bool is_short; /* a few lines, as a part of another report */
};

/* Whether `by` is a way of adding samples up: function, line, file, module, thread, process, rank, stack. */
bool report_samples_knows(const char *by);
/* Print it. CLI_BAD, with a sentence said, when there is nothing to tell or a table does not exist. */
int report_samples(const struct cli_recordings *recordings, const struct report_samples *wants,
                   FILE *out);
/*
 * Take which iterations are asked for out of the arguments, where it stands behind --iterations and not in one word with it:
 * "slow", "12", "10..20"; NULL when none does.
 */
const char *report_samples_take_iterations(char **args, int *n_args);

#endif
