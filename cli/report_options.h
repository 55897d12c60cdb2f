/*
 * Options of `marey report` that come from the registry of analyses: the settings of the first
 * analysis are options of the command; each other one is a switch, --epochs, with its settings below it. Which settings go with which analysis, and that two analyses exclude one another, follows from the registry.
 */
#ifndef MAREY_CLI_REPORT_OPTIONS_H
#define MAREY_CLI_REPORT_OPTIONS_H

#include "cli.h"

/* Append them to the options of the command, once, before anything reads these. */
void report_options_add(struct cli_command *command);

/*
 * Of a command that is the analysis of its name: put the settings before the options of the command; append more of these.
 */
void report_options_prepend(struct cli_command *command);
void report_options_append(struct cli_command *command, const struct cli_option *list, size_t n);
/* The entry of an analysis. */
const struct marey_analysis *report_options_find(const char *name);
/* What was given for a setting; NULL: nothing. */
const char *report_options_value(const char *setting);
void report_options_set(const char *setting, const char *value);
/* Its settings as they were given. False, with a sentence said, when a value is wrong. */
bool report_options_check(const char *analysis);

/* What the command line asks for. */
struct report_choice {
    const struct marey_analysis *analysis; /* whose switch was given, else the default one */
    const struct marey_analysis *section; /* that is added to the report of the default one; NULL: none */
    bool is_plain;   /* neither a switch nor a flag of the default one was given */
    bool is_instead; /* the same, and another analysis takes the place of the default one */
};
/* False, with a sentence said, for two switches, a setting that goes with neither, or a wrong value. */
bool report_options_choose(struct report_choice *choice);

/* Whether the switch of this analysis was given. */
bool report_options_is_on(const char *analysis);
/* As if it had been given. */
bool report_options_turn_on(const char *analysis, struct report_choice *choice);

/*
 * The settings for it; NULL after the last. Lent until the program ends. `limit`, the rows that are wanted, is among them
 * where the analysis takes it and it is not 0.
 */
const char *const *report_options_settings(uint32_t limit);
/* Analysis number `i` whose short form is printed below the ranges, of those that the recordings have; NULL: no more. */
const struct marey_analysis *report_options_below(const struct cli_recordings *recordings, size_t i);
/* Likewise, of the section. */
const char *const *report_options_section_settings(void);

#endif
