/*
 * Completion for bash, 4.2 or later. Bash breaks words at "=", so the script first puts them together again; what
 * it offers is cut back to where bash believes that the word begins. It needs no package bash-completion, and
 * where that is there, programs after `marey run` are completed as they are without it.
 */
#include "completion.h"

/* The parts that are the same for every table. */
static const char helpers[] =
    "# Completion of marey for bash, printed by `marey completion bash`.\n"
    "\n"
    "_marey_words() # WORDS\n"
    "{\n"
    "    local found\n"
    "    mapfile -t found < <(compgen -W \"$1\" -- \"$cur\")\n"
    "    COMPREPLY+=(\"${found[@]}\")\n"
    "}\n"
    "\n"
    "_marey_paths() # what compgen is to find: -f files, -d directories\n"
    "{\n"
    "    local found\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t found < <(compgen \"$@\" -- \"$cur\")\n"
    "    COMPREPLY+=(\"${found[@]}\")\n"
    "}\n"
    "\n"
    "_marey_recordings()\n"
    "{\n"
    "    local ending\n"
    "    _marey_paths -d -X '!*.marey'\n"
    "    for ending in klog json gz folded prof pstats; do\n"
    "        _marey_paths -f -X \"!*.$ending\"\n"
    "    done\n"
    "    ((${#COMPREPLY[@]})) || _marey_paths -d\n"
    "}\n"
    "\n"
    "_marey_keys() # key=value,key=value: what is complete stays in front of each word\n"
    "{\n"
    "    local whole=$cur\n"
    "    local before=${cur%\"${cur##*,}\"}\n"
    "    cur=${cur##*,}\n"
    "    if [[ $cur == *=* ]]; then\n"
    "        before+=${cur%%=*}=\n"
    "        local key=${cur%%=*}\n"
    "        cur=${cur#*=}\n"
    "        _marey_words \"$(_marey_key_values \"$key\")\"\n"
    "    else\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        _marey_words \"$_marey_key_names\"\n"
    "    fi\n"
    "    cur=$whole\n"
    "    ((${#COMPREPLY[@]} == 0)) || COMPREPLY=(\"${COMPREPLY[@]/#/$before}\")\n"
    "}\n"
    "\n"
    "_marey_program() # INDEX of the program among the words that bash made\n"
    "{\n"
    "    if declare -F _comp_command_offset >/dev/null; then\n"
    "        _comp_command_offset \"$1\"\n"
    "    elif declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$1\"\n"
    "    elif (($1 == COMP_CWORD)); then\n"
    "        _marey_paths -c\n"
    "        _marey_paths -d\n"
    "    else\n"
    "        _marey_paths -f\n"
    "    fi\n"
    "}\n"
    "\n";

static const char driver[] =
    "# words: those up to the cursor, with what bash broke at \"=\" put together; at: where each "
    "began.\n"
    "_marey_join()\n"
    "{\n"
    "    local i word glue=\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#words[@]})) && [[ $word == = || $glue ]]; then\n"
    "            words[${#words[@]} - 1]+=$word\n"
    "        else\n"
    "            at+=(\"$i\")\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        [[ $word == = ]] && glue=1 || glue=\n"
    "    done\n"
    "}\n"
    "\n"
    "_marey_in_command() # COMMAND\n"
    "{\n"
    "    local i over= last=$((${#words[@]} - 1))\n"
    "    for ((i = 2; i < last; i++)); do\n"
    "        if [[ -z $over && ${words[i]} == -- ]]; then\n"
    "            over=1\n"
    "        elif [[ -n $over || ${words[i]} != -?* ]]; then\n"
    "            [[ $_marey_launchers != *\" $1 \"* ]] || { _marey_program \"${at[i]}\"; return; "
    "}\n"
    "        elif [[ ${words[i]} != *=* ]] && _marey_takes_value \"$1 ${words[i]}\"; then\n"
    "            ((++i < last)) || { _marey_value \"$1 ${words[last - 1]}\"; return; }\n"
    "        fi\n"
    "    done\n"
    "    if [[ -z $over && $cur == --*=* ]]; then\n"
    "        local option=${cur%%=*}\n"
    "        cur=${cur#*=}\n"
    "        _marey_value \"$1 $option\"\n"
    "        [[ $COMP_WORDBREAKS == *=* || ${#COMPREPLY[@]} == 0 ]] || "
    "COMPREPLY=(\"${COMPREPLY[@]/#/$option=}\")\n"
    "    elif [[ -z $over && $cur == -* ]]; then\n"
    "        _marey_words \"$(_marey_option_names \"$1\")\"\n"
    "    else\n"
    "        _marey_arguments \"$1\" \"${at[last]}\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "_marey()\n"
    "{\n"
    "    local cur words=() at=()\n"
    "    COMPREPLY=()\n"
    "    _marey_join\n"
    "    cur=${words[${#words[@]} - 1]}\n"
    "    if ((${#words[@]} == 2)); then\n"
    "        _marey_words \"$_marey_commands help --help --version\"\n"
    "    elif [[ ${words[1]} == help ]]; then\n"
    "        ((${#words[@]} > 3)) || _marey_words \"$_marey_commands\"\n"
    "    else\n"
    "        _marey_in_command \"${words[1]}\"\n"
    "    fi\n"
    "    # Bash replaces the text after the last \"=\".\n"
    "    local before=${cur%\"${cur##*=}\"}\n"
    "    [[ $COMP_WORDBREAKS != *=* || -z $before || ${#COMPREPLY[@]} == 0 ]] ||\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
    "}\n"
    "complete -F _marey marey\n";

/* ---- the parts that come from the tables ---- */

static void print_names(void)
{
    struct cli_key key;
    fputs("_marey_commands='", stdout);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", cli_commands[i]->name);
    fputs("'\n# Options end where the program begins.\n_marey_launchers=' ", stdout);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (cli_commands[i]->stops_at_argument)
            printf("%s ", cli_commands[i]->name);
    fputs("'\n_marey_key_names='", stdout);
    for (const char *at = NULL; cli_next_key(&at, &key);)
        printf("%s= ", key.name);
    puts("'\n");
}

static void print_key_values(void)
{
    struct cli_key key;
    puts("_marey_key_values() # KEY\n{\n    case $1 in");
    for (const char *at = NULL; cli_next_key(&at, &key);) {
        if (!completion_is_choice(key.values))
            continue;
        printf("    %s) echo '", key.name);
        completion_print_choices(key.values, " ");
        puts("' ;;");
    }
    puts("    esac\n}\n");
}

static void print_option_names(void)
{
    puts("_marey_option_names() # COMMAND\n{\n    case $1 in");
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const struct cli_command *command = cli_commands[i];
        printf("    %s) echo '", command->name);
        for (size_t o = 0; o < command->n_options; o++)
            if (!cli_is_repeated(command, o))
                printf("--%s ", command->options[o].name);
        puts("--help' ;;");
    }
    puts("    esac\n}\n");
}

static const char *const actions[COMPLETION_N_KINDS] = {
    [COMPLETION_NOTHING] = "",
    [COMPLETION_FILE] = "_marey_paths -f ",
    [COMPLETION_DIRECTORY] = "_marey_paths -d ",
    [COMPLETION_RECORDING] = "_marey_recordings ",
    [COMPLETION_CHOICE] = "_marey_words '*' ",
    [COMPLETION_KEYS] = "_marey_keys ",
    [COMPLETION_PROGRAM] = "_marey_program \"$2\" ",
};

/* 'run --output' | 'run -o') */
static void print_pattern(const struct cli_command *command, const struct cli_option *option)
{
    printf("    '%s --%s'", command->name, option->name);
    if (option->letter != 0)
        printf(" | '%s -%c'", command->name, option->letter);
    fputs(") ", stdout);
}

/* One case for each option that takes a value; with what to offer for it, or with nothing but that. */
static void print_values(const char *function, bool with_action)
{
    printf("%s() # \"COMMAND OPTION\"\n{\n    case $1 in\n", function);
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        for (size_t o = 0; o < cli_commands[i]->n_options; o++) {
            const struct cli_option *option = &cli_commands[i]->options[o];
            if (!cli_takes_word(option) || cli_is_repeated(cli_commands[i], o))
                continue;
            print_pattern(cli_commands[i], option);
            if (with_action)
                completion_print_action(actions, cli_commands[i], option);
            puts(";;");
        }
    }
    puts("    *) return 1 ;;\n    esac\n}\n");
}

static void print_arguments(void)
{
    puts("_marey_arguments() # COMMAND INDEX\n{\n    case $1 in");
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        printf("    %s) ", cli_commands[i]->name);
        completion_print_action(actions, cli_commands[i], NULL);
        puts(";;");
    }
    puts("    esac\n}\n");
}

void completion_print_bash(void)
{
    fputs(helpers, stdout);
    print_names();
    print_key_values();
    print_option_names();
    print_values("_marey_takes_value", false);
    print_values("_marey_value", true);
    print_arguments();
    fputs(driver, stdout);
}
