/*
 * Options of `marey report` from the registry of analyses: the settings of the first analysis are options of the
 * command; each other analysis is a switch, --epochs, with its settings below it. The registry determines which
 * settings go with which analysis, and that two analyses exclude one another.
 */
#ifndef MAREY_CLI_REPORT_OPTIONS_H
#define MAREY_CLI_REPORT_OPTIONS_H

#include "lib/cli.h"

/* Appends them to the options of the command, once, before their first use. */
void report_options_add(struct cli_command *command);

/* For a command named like its analysis: inserts the settings before the options of the command; appends further options. */
void report_options_prepend(struct cli_command *command);
void report_options_append(struct cli_command *command, const struct cli_option *list, size_t n);
/*
 * Append the settings that select what this analysis counts, except those that the command has itself. Check those given;
 * sets `*selects` if there are any besides the command's.
 */
void report_options_append_selecting(struct cli_command *command,
                                     const struct marey_analysis *analysis);
bool report_options_check_selecting(const struct cli_command *command,
                                    const struct marey_analysis *analysis, bool *selects);
/* The entry of an analysis. */
const struct marey_analysis *report_options_find(const char *name);
/* The value given for a setting, or NULL. */
const char *report_options_value(const char *setting);
/* Adds the settings that Python handles to `words`, after its command. False: none was given. */
bool report_options_add_python(const struct marey_analysis *analysis, struct cli_words *words);
/* Validates its settings. False, with a message printed, for an invalid value. */
bool report_options_check(const char *analysis);

/* The result of the command line. */
struct report_choice {
    const struct marey_analysis *analysis; /* whose switch was given, else the default one */
    const struct marey_analysis *section;  /* added to the report of the default one, or NULL */
    bool is_plain;   /* neither a switch nor a flag of the default one was given */
    bool is_instead; /* the same, and another analysis replaces the default one */
};
/*
 * False, with a message printed, for two switches, a setting that fits neither, or an invalid value. Removes from `args` the
 * value of a setting that is a flag of another analysis (--samples --iterations slow).
 */
bool report_options_choose(struct report_choice *choice, char **args, int *n_args);

/* Acts as if the switch of this analysis had been given. */
bool report_options_turn_on(const char *analysis, struct report_choice *choice);

/*
 * The settings for it; NULL after the last. Lent until the program ends. Includes `limit`, the requested rows, if not 0
 * and accepted by the analysis.
 */
const char *const *report_options_settings(uint32_t limit);
/* The analysis whose short form goes above the ranges, if the recordings have its data; else NULL. */
const struct marey_analysis *report_options_lead(const struct cli_recordings *recordings);
/* Analysis number `i` whose short form goes below the ranges, of those that the recordings have; NULL past the last. */
const struct marey_analysis *report_options_below(const struct cli_recordings *recordings, size_t i);
/* Likewise for the section. */
const char *const *report_options_section_settings(void);

#endif
