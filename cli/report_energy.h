/* What `marey report` has for energy. */
#ifndef MAREY_CLI_REPORT_ENERGY_H
#define MAREY_CLI_REPORT_ENERGY_H

#include "cli.h"

struct report_energy {
    struct marey_text_options text;
    const char *by, *filter, *co2, *pue; /* as they were given; NULL: not */
    uint32_t group, limit;
    bool json, csv;
    bool is_short; /* a few lines for the end of another report */
};

/* Print it. CLI_BAD, with a sentence said, when there is no energy or an option is wrong. */
int report_energy(const struct cli_recordings *recordings, const struct report_energy *wants,
                  FILE *out);
/* The same of itwinai's files of GPU power and epoch times, or of folders of them. */
int report_energy_files(int n, char **paths, const struct report_energy *wants, FILE *out);
/* Write such files of recordings into a folder; `strategy` may be NULL. */
int report_energy_write(int n, char **paths, const char *folder, const char *strategy);

#endif
