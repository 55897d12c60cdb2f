/*
 * Completion in shells: `marey completion` prints a script that knows the commands, their options
 * and what may stand for a value, all taken from the tables of the commands. Each shell has a file
 * of its own; what a value is and how texts are written is shared.
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
    COMPLETION_PROGRAM, /* a program and what belongs to it */
};

/* By what the value is called; not for flags. */
enum completion_kind completion_of_option(const struct cli_option *option);
/* By the command's usage. */
enum completion_kind completion_of_arguments(const struct cli_command *command);

/* Are the values a|b|c of a key words to choose from, or the name of what one writes there? */
bool completion_is_choice(const char *values);
/* a|b|c, which ends at a blank, with `separator` between the words. */
void completion_print_choices(const char *choices, const char *separator);
/* The choices of all options of this name, each once. */
void completion_print_words(const struct cli_command *command, const struct cli_option *option,
                            const char *separator);
/* `text` in one line, with a backslash before each of `special`; a quote is closed, escaped and opened again. */
void completion_print_quoted(const char *text, const char *special);

void completion_print_bash(void);
void completion_print_zsh(void);
void completion_print_fish(void);

#endif
