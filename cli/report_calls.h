/* What `marey report` has for calls. */
#ifndef MAREY_CLI_REPORT_CALLS_H
#define MAREY_CLI_REPORT_CALLS_H

#include "cli.h"

struct report_calls {
    struct marey_text_options text;
    const char *by, *callers, *callees; /* NULL: not given */
    const char *filter, *sort, *table;  /* the same */
    uint32_t limit;
    bool startup, subtract, json, csv;
};

/* Whether `by` is a way of grouping calls: function, signature, shape, path, thread. */
bool report_calls_knows(const char *by);
/* Print it. CLI_BAD, with a sentence said, when there is nothing to tell or a table does not exist. */
int report_calls(const struct cli_recordings *recordings, const struct report_calls *wants,
                 FILE *out);

#endif
