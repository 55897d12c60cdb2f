/* marey completion: a script for a shell, so that it can complete marey's commands. */
#include <ctype.h>

#include "completion.h"

/* ---- what the tables say about a word ---- */

/* By the name of the value; not for flags. */
static enum completion_kind kind_of_option(const struct cli_option *option)
{
    if (cli_kind(option) == CLI_CHOICE)
        return COMPLETION_CHOICE;
    if (cli_kind(option) != CLI_TEXT)
        return COMPLETION_NOTHING;
    if (strncmp(option->value, "KEY=", 4) == 0)
        return COMPLETION_KEYS;
    if (strstr(option->value, ".marey") != NULL)
        return COMPLETION_RECORDING;
    if (strstr(option->value, "DIR") != NULL)
        return COMPLETION_DIRECTORY;
    return strstr(option->value, "FILE") != NULL ? COMPLETION_FILE : COMPLETION_NOTHING;
}

bool completion_is_choice(const char *values)
{
    const size_t len = strcspn(values, " ");
    return memchr(values, '|', len) != NULL && !isupper((unsigned char)values[0]) &&
           isalnum((unsigned char)values[0]);
}

/* The usage up to its first option: a later FILE is the value of one. */
enum completion_kind completion_of_arguments(const struct cli_command *command)
{
    if (command->stops_at_argument)
        return COMPLETION_PROGRAM;
    if (completion_is_choice(command->usage))
        return COMPLETION_CHOICE;
    const char *option = strstr(command->usage, "[-");
    const size_t len = option != NULL ? (size_t)(option - command->usage) : strlen(command->usage);
    if (memmem(command->usage, len, ".marey", strlen(".marey")) != NULL)
        return COMPLETION_RECORDING;
    return memmem(command->usage, len, "FILE", strlen("FILE")) != NULL ? COMPLETION_FILE
                                                                       : COMPLETION_NOTHING;
}

/* ---- writing ---- */

void completion_print_choices(const char *choices, const char *separator)
{
    for (; *choices != '\0' && *choices != ' '; choices++) {
        if (*choices == '|')
            fputs(separator, stdout);
        else
            putchar(*choices);
    }
}

/* Whether an option of this name before number `before` has the word. */
static bool is_printed(const struct cli_command *command, size_t before, const char *name,
                       const char *word, size_t len)
{
    for (size_t i = 0; i < before; i++) {
        const char *const value = command->options[i].value;
        for (const char *at = value; strcmp(command->options[i].name, name) == 0 && at != NULL;
             at = strchr(at, '|')) {
            at += *at == '|';
            if (strcspn(at, "|") == len && memcmp(at, word, len) == 0)
                return true;
        }
    }
    return false;
}

/* The choices of all options of this name, each once. */
static void print_words(const struct cli_command *command, const struct cli_option *option)
{
    const char *between = "";
    for (size_t i = 0; i < command->n_options; i++) {
        if (strcmp(command->options[i].name, option->name) != 0)
            continue;
        for (const char *word = command->options[i].value; word != NULL; word = strchr(word, '|')) {
            word += *word == '|';
            const size_t len = strcspn(word, "|");
            if (is_printed(command, i, option->name, word, len))
                continue;
            printf("%s%.*s", between, (int)len, word);
            between = " ";
        }
    }
}

void completion_print_action(const char *const actions[COMPLETION_N_KINDS],
                             const struct cli_command *command, const struct cli_option *option)
{
    const char *const action =
        actions[option != NULL ? kind_of_option(option) : completion_of_arguments(command)];
    const char *const choices = strchrnul(action, '*');
    printf("%.*s", (int)(choices - action), action);
    if (*choices == '\0')
        return;
    if (option != NULL)
        print_words(command, option);
    else
        completion_print_choices(command->usage, " ");
    fputs(choices + 1, stdout);
}

void completion_print_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (*text == '\n')
            putchar(' ');
        else if (strchr(special, *text) != NULL)
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* ---- the command ---- */

static const struct shell {
    const char *name;
    void (*print)(void);
} shells[] = {
    {"bash", completion_print_bash},
    {"zsh", completion_print_zsh},
    {"fish", completion_print_fish},
};

static int completion(int n_args, char **args)
{
    if (n_args != 1)
        return cli_fail("completion needs the name of a shell: marey completion bash|zsh|fish");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, args[0]) == 0) {
            shells[i].print();
            return CLI_FINE;
        }
    }
    return cli_fail("there is no completion for '%s'; the shells are bash, zsh and fish", args[0]);
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .brief = "a script that lets a shell complete these commands",
    .about =
        "Prints a script for a shell. With it, the Tab key completes commands, options and their\n"
        "values, recordings, and the keys and values of --options. An installed marey has put the\n"
        "scripts where shells look for them; this is for other places.",
    .examples =
        "  source <(marey completion bash)            in this shell; in ~/.bashrc for good\n"
        "  source <(marey completion zsh)             in ~/.zshrc, after compinit\n"
        "  marey completion fish | source             in ~/.config/fish/config.fish",
    .run = completion,
};
