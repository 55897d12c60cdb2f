/* What `marey report` has for memory. */
#ifndef MAREY_CLI_REPORT_MEMORY_H
#define MAREY_CLI_REPORT_MEMORY_H

#include "cli.h"

struct report_memory {
    struct marey_text_options text;
    const char *filter, *table; /* NULL: not given */
    uint32_t limit;
    bool json, csv;
};

/* Print it. CLI_BAD, with a sentence said, when there is nothing about memory or a table does not exist. */
int report_memory(const struct cli_recordings *recordings, const struct report_memory *wants,
                  FILE *out);
/* The same of snapshots and traces. */
int report_memory_files(int n, char **paths, const struct report_memory *wants, FILE *out);

#endif
