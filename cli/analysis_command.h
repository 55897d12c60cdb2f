/*
 * Commands that print an analysis of the registry, such as marey compare: options from its settings, the report, each
 * format.
 */
#ifndef MAREY_CLI_ANALYSIS_COMMAND_H
#define MAREY_CLI_ANALYSIS_COMMAND_H

#include "cli.h"

/* Complete the options of the command, called as its analysis is: settings before its own, formats after. */
void analysis_command_prepare(struct cli_command *command);

/* Whether the options fit together. False with a sentence said. */
bool analysis_command_check(const char *analysis);

/*
 * A report of these paths; settings, threads and progress are filled in. CLI_BAD after a sentence, or without one where
 * `is_reported` (NULL: never) is set by then.
 */
int analysis_command_make(const char *analysis, char *const *paths, int n,
                          struct marey_report_options *options, const bool *is_reported,
                          marey_report **out);

/* The same of the recordings and traces at these paths, which cli_open() opens and the caller closes. */
int analysis_command_open(const char *analysis, char *const *paths, int n,
                          struct cli_recordings *recordings, marey_report **out);

/* Write it where --output says, in the format that was asked for; `limit` and `unit` for people, or 0 and NULL. */
int analysis_command_write(const marey_report *report, uint32_t limit, const char *unit);
/* Whether one of --json, --csv, --markdown, or with `also_output` --output, was given. */
bool analysis_command_has_format(bool also_output);
/* Write it to the file `path` as a page. */
int analysis_command_write_page(const marey_report *report, const char *path);

#endif
