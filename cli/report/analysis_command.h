/*
 * Commands that print an analysis of the registry, such as marey compare: options from its settings, report, formats.
 */
#ifndef MAREY_CLI_ANALYSIS_COMMAND_H
#define MAREY_CLI_ANALYSIS_COMMAND_H

#include "lib/cli.h"

/* Completes the options of a command named like its analysis: settings before its own, formats after. */
void analysis_command_prepare(struct cli_command *command);

/* Whether the options fit together. Prints a message if not. */
bool analysis_command_check(const char *analysis);

/*
 * Makes a report of these paths; fills in settings, threads and progress. Returns CLI_BAD after a message, or without
 * one if `is_reported` (NULL: never) was set meanwhile.
 */
int analysis_command_make(const char *analysis, char *const *paths, int n,
                          struct marey_report_options *options, const bool *is_reported,
                          marey_report **out);

/* The same for recordings and traces at these paths, which cli_open() opens and the caller closes. */
int analysis_command_open(const char *analysis, char *const *paths, int n,
                          struct cli_recordings *recordings, marey_report **out);

/* Writes it to --output in the requested format; `limit` and `unit` for text, or 0 and NULL. */
int analysis_command_write(const marey_report *report, uint32_t limit, const char *unit);
/* Writes it to the file `path` as a page. */
int analysis_command_write_page(const marey_report *report, const char *path);

#endif
