/*
 * marey completion: a script for a shell, so that it can complete marey's commands.
 *
 * The scripts are independent of the commands. On Tab they call
 *
 *     marey completion words -- WORDS...      what follows "marey" up to the cursor; the last word may be ""
 *
 * and get a line "KIND PREFIX", where PREFIX is the start of the last word, before the part to be completed:
 *
 *     words          lines of WORD or WORD<tab>MEANING follow; no space is added after one that ends in "="
 *     files, directories
 *     recordings     *.marey directories, *.klog files and traces, else directories on the way to one
 *     program        instead of PREFIX: the 1-based index of the program in WORDS
 *     value          instead of PREFIX: the placeholder of the value; there are no suggestions
 */
#include <ctype.h>

#include "lib/cli.h"

/* ---- words ---- */

static void offer(const char *lead, const char *word, const char *meaning)
{
    printf("%s%s\t", lead, word);
    for (; *meaning != '\0'; meaning++)
        putchar(*meaning != '\n' ? *meaning : ' ');
    putchar('\n');
}

/* Prints the words of a|b|c, which ends at a blank. */
static void offer_choices(const char *choices)
{
    for (size_t len = strcspn(choices, "| "); len > 0; len = strcspn(choices, "| ")) {
        printf("%.*s\n", (int)len, choices);
        choices += len + (choices[len] == '|');
        if (choices[0] == ' ')
            return;
    }
}

/* Whether the values a|b|c of a key are literal choices rather than a placeholder. */
static bool is_choice(const char *values)
{
    return memchr(values, '|', strcspn(values, " ")) != NULL &&
           !isupper((unsigned char)values[0]) && isalnum((unsigned char)values[0]);
}

/* Completes recording options, key=value,key=value, in `word` from `at` on. */
static void offer_keys(const char *word, size_t at)
{
    struct cli_key key;
    const char *const comma = strrchr(word + at, ',');
    const char *const begin = comma != NULL ? comma + 1 : word + at;
    const size_t len = strcspn(begin, "=");
    const bool has_name = begin[len] == '=';
    printf("words %.*s\n", (int)(begin - word + (has_name ? (ptrdiff_t)len + 1 : 0)), word);
    for (const char *line = NULL; cli_next_key(&line, &key);) {
        if (!has_name)
            offer(strcat(key.name, "="), "", key.meaning);
        else if (strlen(key.name) == len && memcmp(key.name, begin, len) == 0 && is_choice(key.values))
            offer_choices(key.values);
    }
}

/* Completes an option's value, according to its placeholder, in `word` from `at` on. */
static void offer_value(const struct cli_command *command, const struct cli_option *option,
                        const char *word, size_t at)
{
    const char *const value = option->value;
    if (cli_kind(option) == CLI_CHOICE) {
        printf("words %.*s\n", (int)at, word);
        for (size_t i = 0; i < command->n_options; i++) /* several may share the name */
            if (strcmp(command->options[i].name, option->name) == 0)
                offer_choices(command->options[i].value);
    } else if (cli_kind(option) == CLI_TEXT && strncmp(value, "KEY=", 4) == 0) {
        offer_keys(word, at);
    } else {
        const char *const kind = cli_kind(option) != CLI_TEXT      ? NULL
                                 : strstr(value, ".marey") != NULL ? "recordings"
                                 : strstr(value, "DIR") != NULL    ? "directories"
                                 : strstr(value, "FILE") != NULL   ? "files"
                                                                   : NULL;
        printf("%s %.*s\n", kind != NULL ? kind : "value",
               kind != NULL ? (int)at : (int)strlen(value), kind != NULL ? word : value);
    }
}

static void offer_options(const struct cli_command *command, bool with_letters)
{
    puts("words ");
    for (size_t i = 0; i < command->n_options; i++) {
        const struct cli_option *const option = &command->options[i];
        const char letter[] = {option->letter, '\0'};
        if (cli_is_repeated(command, i))
            continue;
        offer("--", option->name, option->help);
        if (with_letters && option->letter != 0)
            offer("-", letter, option->help);
    }
    offer("--", "help", "show a short help and exit");
}

/* Uses the usage up to its first option: a FILE after that belongs to an option. */
static void offer_arguments(const struct cli_command *command)
{
    const char *const usage = command->usage, *const option = strstr(usage, "[-");
    const size_t len = option != NULL ? (size_t)(option - usage) : strlen(usage);
    if (is_choice(usage)) {
        puts("words ");
        offer_choices(usage);
    } else if (memmem(usage, len, ".marey", strlen(".marey")) != NULL) {
        puts("recordings ");
    } else if (memmem(usage, len, "FILE", strlen("FILE")) != NULL) {
        puts("files ");
    } else if (command->term != NULL) {
        struct cli_term term;
        puts("words ");
        for (size_t i = 0; command->term(i, &term); i++)
            offer("", term.word, term.meaning);
    }
}

static void offer_commands(bool with_help)
{
    puts("words ");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        offer("", cli_commands[i]->name, cli_commands[i]->brief);
    if (with_help)
        offer("", "help", "describe a command");
}

/* ---- a line ---- */

/* Completes the last of `n` `words`, the first of which is the command's name. */
static void complete(const struct cli_command *command, int n, char *const *words)
{
    const char *const word = words[n - 1];
    const struct cli_option *option;
    bool is_over = false;
    for (int i = 1; i < n; i++) {
        const bool is_last = i == n - 1;
        if (!is_over && !is_last && strcmp(words[i], "--") == 0) {
            is_over = true;
        } else if (is_over || words[i][0] != '-' || words[i][1] == '\0') {
            if (command->stops_at_argument && (!is_last || is_over || words[i][0] != '-')) {
                printf("program %d\n", i + 1);
                return;
            }
        } else if (!is_last && strchr(words[i], '=') == NULL &&
                   (option = cli_find_option(command, words[i])) != NULL &&
                   cli_takes_word(option) && ++i == n - 1) {
            offer_value(command, option, word, 0);
            return;
        }
    }
    const size_t name = strcspn(word, "=");
    if (!is_over && strncmp(word, "--", 2) == 0 && word[name] == '=') {
        if ((option = cli_find_option(command, word)) != NULL && cli_kind(option) != CLI_FLAG)
            offer_value(command, option, word, name + 1);
    } else if (!is_over && word[0] == '-') {
        offer_options(command, word[1] == '\0');
    } else {
        offer_arguments(command);
    }
}

static void complete_line(int n, char *const *words)
{
    const struct cli_command *const command = n > 0 ? cli_find_command(words[0]) : NULL;
    if (n == 1 && words[0][0] == '-') {
        puts("words ");
        offer("--", "help", "list the commands and exit");
        offer("--", "version", "print the version and exit");
    } else if (n == 1 || (n == 2 && strcmp(words[0], "help") == 0)) {
        offer_commands(n == 1);
    } else if (command != NULL) {
        complete(command, n, words);
    }
}

/* ---- the command ---- */

static const struct shell {
    const char *name, *script;
    char between; /* extensions */
} shells[] = {
    {"bash", cli_completion_bash, ' '},
    {"zsh", cli_completion_zsh, '|'},
    {"fish", cli_completion_fish, ','},
};

/* The extensions of files that are read like recordings take the place of \1. */
static void print_script(const struct shell *shell)
{
    const size_t before = strcspn(shell->script, "\1");
    const struct marey_import_format *format;
    printf("%.*sgz", (int)before, shell->script);
    for (size_t i = 0; (format = marey_import_format_at(i)) != NULL; i++) {
        size_t len;
        const char *at = format->extensions;
        for (const char *word; (word = cli_next_word(&at, &len)) != NULL;)
            printf("%c%.*s", shell->between, (int)len - 1, word + 1);
    }
    fputs(shell->script + before + 1, stdout);
}

static int completion(int n_args, char **args)
{
    if (n_args > 0 && strcmp(args[0], "words") == 0) {
        complete_line(n_args - 1, args + 1);
        return CLI_FINE;
    }
    if (n_args != 1)
        return cli_fail("completion needs the name of a shell: marey completion bash|zsh|fish");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, args[0]) == 0) {
            print_script(&shells[i]);
            return CLI_FINE;
        }
    }
    return cli_fail("no completion for '%s'; the supported shells are bash, zsh and fish", args[0]);
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .brief = "a completion script for a shell",
    .about =
        "Prints a completion script for a shell. With it, the Tab key completes commands, options\n"
        "and their values, recordings, and the keys and values of --options. An installed marey\n"
        "has put the scripts where shells find them; this is for other cases.",
    .examples =
        "  source <(marey completion bash)            in this shell; permanently: in ~/.bashrc\n"
        "  source <(marey completion zsh)             in ~/.zshrc, after compinit\n"
        "  marey completion fish | source             in ~/.config/fish/config.fish",
    .run = completion,
};
