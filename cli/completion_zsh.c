/* Completion for zsh: a description of each option that zsh's own _arguments reads. */
#include "completion.h"

/* What the text of a description means to _arguments, _values and _describe. */
#define SPECIAL "\\[]:"

static const char *const actions[COMPLETION_N_KINDS] = {
    [COMPLETION_NOTHING] = " ",           [COMPLETION_FILE] = "_files",
    [COMPLETION_DIRECTORY] = "_files -/", [COMPLETION_RECORDING] = "_marey_recordings",
    [COMPLETION_CHOICE] = "(*)",          [COMPLETION_KEYS] = "_marey_keys",
    [COMPLETION_PROGRAM] = " ",
};

/* '(-o --output)'{-o+,--output=}'[help]:DIR:_files -/' */
static void print_option(const struct cli_command *command, const struct cli_option *option)
{
    const bool has_value = cli_kind(option) != CLI_FLAG, is_maybe = cli_kind(option) == CLI_MAYBE;
    if (option->letter != 0)
        printf("                '(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name,
               option->letter, has_value ? "+" : "", option->name, has_value ? "=" : "");
    else
        printf("                '--%s%s[", option->name, is_maybe ? "=-" : has_value ? "=" : "");
    completion_print_quoted(option->help, SPECIAL);
    putchar(']');
    if (has_value) {
        fputs(is_maybe ? "::" : ":", stdout);
        completion_print_quoted(option->value, SPECIAL);
        putchar(':');
        completion_print_action(actions, command, option);
    }
    puts("' \\");
}

static void print_arguments(const struct cli_command *command)
{
    const enum completion_kind kind = completion_of_arguments(command);
    if (kind == COMPLETION_PROGRAM) {
        puts("                '(-)1:program:_command_names -e' '*::arguments:_normal' && ret=0");
        return;
    }
    printf("                '%s:", kind == COMPLETION_CHOICE ? "1" : "*");
    fputs(kind == COMPLETION_RECORDING ? "recording:" : "argument:", stdout);
    completion_print_action(actions, command, NULL);
    puts("' && ret=0");
}

static void print_command(const struct cli_command *command)
{
    printf("        %s)\n            _arguments -s -S%s \\\n", command->name,
           command->stops_at_argument ? " -A '-*'" : "");
    for (size_t i = 0; i < command->n_options; i++)
        if (!cli_is_repeated(command, i))
            print_option(command, &command->options[i]);
    puts("                '(- *)'{-h,--help}'[show a short help and exit]' \\");
    print_arguments(command);
    puts("            ;;");
}

static void print_keys(void)
{
    struct cli_key key;
    puts("_marey_keys() {\n    _values -s , 'option' \\");
    for (const char *at = NULL; cli_next_key(&at, &key);) {
        const bool is_choice = completion_is_choice(key.values);
        printf("        '%s[", key.name);
        completion_print_quoted(key.meaning, SPECIAL);
        fputs("]:", stdout);
        completion_print_quoted(is_choice ? "value" : key.values, SPECIAL);
        fputs(is_choice ? ":(" : ":", stdout);
        if (is_choice)
            completion_print_choices(key.values, " ");
        puts(is_choice ? ")' \\" : " ' \\");
    }
    puts("        && return\n}\n");
}

static void print_commands(void)
{
    puts("    local -a commands=(");
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        printf("        '%s:", cli_commands[i]->name);
        completion_print_quoted(cli_commands[i]->brief, "\\:");
        puts("'");
    }
    puts("        'help:describe a command'\n    )");
}

void completion_print_zsh(void)
{
    puts("#compdef marey\n# Completion of marey for zsh, printed by `marey completion zsh`.\n\n"
         "_marey_recordings() {\n"
         "    _files -g '*.marey(-/) *.(klog|json|gz|folded|prof|pstats)(-.)'\n}\n");
    print_keys();
    puts(
        "_marey() {\n    local curcontext=$curcontext state state_descr line ret=1\n    typeset -A "
        "opt_args");
    print_commands();
    puts("    _arguments -C \\\n"
         "        '(- *)'{-h,--help}'[list the commands and exit]' \\\n"
         "        '(- *)'{-V,--version}'[print the version and exit]' \\\n"
         "        '1: :->command' '*:: :->arguments' && ret=0\n"
         "    case $state in\n"
         "    command) _describe -t commands command commands && ret=0 ;;\n"
         "    arguments)\n"
         "        case $words[1] in\n"
         "        help) _describe -t commands command commands && ret=0 ;;");
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        print_command(cli_commands[i]);
    puts(
        "        esac\n        ;;\n    esac\n    return ret\n}\n\n"
        "# Loaded by zsh's own search the file is the function; sourced, it has to be made known.\n"
        "if [[ $funcstack[1] == _marey ]]; then\n    _marey \"$@\"\nelse\n    compdef _marey "
        "marey\nfi");
}
