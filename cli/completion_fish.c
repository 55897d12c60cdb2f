/* Completion for fish: one `complete` for each option, which holds where its command is the one on the line. */
#include "completion.h"

/* Inside single quotes fish knows these two escapes. */
#define SPECIAL "\\"

static const char helpers[] =
    "# Completion of marey for fish, printed by `marey completion fish`.\n"
    "\n"
    "# Is one of these commands on the line, and no program after it yet?\n"
    "function __marey_in\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and contains -- $words[2] $argv; and not count "
    "(__marey_program) >/dev/null\n"
    "end\n"
    "\n"
    "# The words from the program on that marey is to start.\n"
    "function __marey_program\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 3; and contains -- $words[2] $__marey_launchers; or return\n"
    "    set -l over 0\n"
    "    set -l i 3\n"
    "    while test $i -le (count $words)\n"
    "        if test $over = 0; and test \"$words[$i]\" = --\n"
    "            set over 1\n"
    "        else if test $over = 1; or not string match -q -- '-?*' $words[$i]\n"
    "            string join \\n -- $words[$i..]\n"
    "            return\n"
    "        else if contains -- $words[$i] $__marey_takes_value\n"
    "            set i (math $i + 1)\n"
    "        end\n"
    "        set i (math $i + 1)\n"
    "    end\n"
    "end\n"
    "\n"
    "function __marey_complete_program\n"
    "    set -l program (__marey_program)\n"
    "    complete -C (string join ' ' -- (string escape -- $program) (commandline -ct))\n"
    "end\n"
    "\n"
    "function __marey_recordings\n"
    "    set -l start (string unescape -- (string replace -r '^--[^=]*=' '' -- (commandline "
    "-ct)))\n"
    "    set -l found $start*.marey/ $start*.{klog,json,gz,folded,prof,pstats}\n"
    "    test (count $found) -gt 0; or set found $start*/\n"
    "    string join \\n -- $found\n"
    "end\n"
    "\n"
    "# key=value,key=value: what is complete stays in front of each word.\n"
    "function __marey_keys\n"
    "    set -l start (string replace -r '^--[^=]*=' '' -- (commandline -ct))\n"
    "    set -l before (string replace -r '[^,]*$' '' -- \"$start\")\n"
    "    string replace -r '^' -- \"$before\" $__marey_key_words\n"
    "end\n"
    "\n";

static void print_launchers(void)
{
    fputs("set -g __marey_launchers", stdout);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (cli_commands[i]->stops_at_argument)
            printf(" %s", cli_commands[i]->name);
    fputs("\nset -g __marey_takes_value", stdout);
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const struct cli_command *command = cli_commands[i];
        for (size_t o = 0; command->stops_at_argument && o < command->n_options; o++) {
            if (!cli_takes_word(&command->options[o]))
                continue;
            printf(" --%s", command->options[o].name);
            if (command->options[o].letter != 0)
                printf(" -%c", command->options[o].letter);
        }
    }
    putchar('\n');
}

/* key=word for each word to choose, else key= */
static void print_key_words(void)
{
    struct cli_key key;
    fputs("set -g __marey_key_words", stdout);
    for (const char *at = NULL; cli_next_key(&at, &key);) {
        printf(" %s=", key.name);
        if (!completion_is_choice(key.values))
            continue;
        char between[sizeof key.name + 2];
        snprintf(between, sizeof between, " %s=", key.name);
        completion_print_choices(key.values, between);
    }
    puts("\n\ncomplete -c marey -f");
}

/* -f: no files besides; -r: a value must follow. */
static const char *const actions[COMPLETION_N_KINDS] = {
    [COMPLETION_NOTHING] = " -f",
    [COMPLETION_FILE] = " -F",
    [COMPLETION_DIRECTORY] = " -f -a '(__fish_complete_directories)'",
    [COMPLETION_RECORDING] = " -f -a '(__marey_recordings)'",
    [COMPLETION_CHOICE] = " -f -a '*'",
    [COMPLETION_KEYS] = " -f -a '(__marey_keys)'",
    [COMPLETION_PROGRAM] = " -f -a '(__fish_complete_command)'",
};

static void print_option(const struct cli_command *command, const struct cli_option *option)
{
    printf("complete -c marey -n '__marey_in %s' -l %s", command->name, option->name);
    if (option->letter != 0)
        printf(" -s %c", option->letter);
    if (cli_takes_word(option)) {
        fputs(" -r", stdout);
        completion_print_action(actions, command, option);
    }
    fputs(" -d '", stdout);
    completion_print_quoted(option->help, SPECIAL);
    puts("'");
}

static void print_command(const struct cli_command *command)
{
    static const char is_first[] = "test (count (commandline -opc)) -eq 1";
    putchar('\n');
    printf("complete -c marey -n '%s' -a %s -d '", is_first, command->name);
    completion_print_quoted(command->brief, SPECIAL);
    puts("'");
    for (size_t i = 0; i < command->n_options; i++)
        if (!cli_is_repeated(command, i))
            print_option(command, &command->options[i]);
    printf("complete -c marey -n '__marey_in %s' -l help -s h -d 'show a short help and exit'\n",
           command->name);
    if (completion_of_arguments(command) == COMPLETION_NOTHING)
        return;
    printf("complete -c marey -n '__marey_in %s'", command->name);
    completion_print_action(actions, command, NULL);
    putchar('\n');
}

void completion_print_fish(void)
{
    fputs(helpers, stdout);
    print_launchers();
    print_key_words();
    puts("complete -c marey -n 'test (count (commandline -opc)) -eq 1' -l help -s h -d 'list the "
         "commands and exit'\n"
         "complete -c marey -n 'test (count (commandline -opc)) -eq 1' -l version -s V"
         " -d 'print the version and exit'\n"
         "complete -c marey -n 'test (count (commandline -opc)) -eq 1' -a help -d 'describe a "
         "command'\n"
         "complete -c marey -n 'count (__marey_program) >/dev/null' -a "
         "'(__marey_complete_program)'");
    fputs("complete -c marey -n '__marey_in help' -a '", stdout);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", cli_commands[i]->name);
    puts("'");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        print_command(cli_commands[i]);
}
