/*
 * Shell completion: `marey completion` prints a script with the commands, their options and possible values, all taken
 * from the tables of the commands. Each shell has its file; kinds of values and quoting are shared.
 */
#ifndef MAREY_COMPLETION_H
#define MAREY_COMPLETION_H

#include "cli.h"

/* What a shell can offer for a word. */
enum completion_kind {
    COMPLETION_NOTHING,
    COMPLETION_FILE,
    COMPLETION_DIRECTORY,
    COMPLETION_RECORDING, /* *.marey directories, *.klog files and traces, else directories on the way to one */
    COMPLETION_CHOICE,  /* one of a|b|c */
    COMPLETION_KEYS,    /* options of a recording: key=value,key=value */
    COMPLETION_PROGRAM, /* a program and its arguments */
    COMPLETION_N_KINDS
};

/* By the command's usage. */
enum completion_kind completion_of_arguments(const struct cli_command *command);
/*
 * Print the action for the value of an option, or (NULL) for the command's arguments. `actions` has a text by kind; "*" in
 * it is replaced by the choices with blanks between.
 */
void completion_print_action(const char *const actions[COMPLETION_N_KINDS],
                             const struct cli_command *command, const struct cli_option *option);

/* Are the values a|b|c of a key words to choose from, or the name of what one writes there? */
bool completion_is_choice(const char *values);
/* a|b|c, which ends at a blank, with `separator` between the words. */
void completion_print_choices(const char *choices, const char *separator);
/* `text` in one line, with a backslash before each of `special`; a quote is closed, escaped and opened again. */
void completion_print_quoted(const char *text, const char *special);

void completion_print_bash(void);
void completion_print_zsh(void);
void completion_print_fish(void);

#endif
