/* What `marey report` has for epochs. */
#ifndef MAREY_CLI_REPORT_EPOCHS_H
#define MAREY_CLI_REPORT_EPOCHS_H

#include "cli.h"

struct report_epochs {
    struct marey_text_options text;
    const char *table; /* for CSV; NULL: that of each epoch and rank */
    uint32_t limit;
    bool with_first, json, csv;
};

/* Print it. CLI_BAD, with a sentence said, when there are no epochs or there is no such table. */
int report_epochs(const struct cli_recordings *recordings, const struct report_epochs *wants,
                  FILE *out);

#endif
