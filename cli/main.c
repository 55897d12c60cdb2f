/*
 * marey: the command line. `marey run` measures a program, `marey report` shows where its time went, `marey export`
 * writes the events for another viewer. This file has the table of commands and dispatches; each command has its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "report/analysis_command.h"
#include "report/report_options.h"

const struct cli_command *const cli_commands[] = {
    &cli_command_run,
    &cli_command_attach,
    &cli_command_top,
    &cli_command_stacks,
    &cli_command_watch,
    &cli_command_report,
    &cli_command_explain,
    &cli_command_export,
    &cli_command_compare,
    &cli_command_breakdown,
    &cli_command_scale,
    &cli_command_artifacts,
    &cli_command_import,
    &cli_command_diff,
    &cli_command_dump,
    &cli_command_doctor,
    &cli_command_completion,
    &cli_command_generate_scalability_report,
    &cli_command_generate_py_spy_report,
    &cli_command_generate_flamegraph,
    NULL,
};
#define N_COMMANDS (sizeof cli_commands / sizeof cli_commands[0] - 1)

const struct cli_command cli_program = {
    .name = "marey",
    .usage = "COMMAND ...",
    .brief = "where the time of a training program goes",
    .about = "Records what a training program does and reports where its time goes.",
    .examples = "  marey run -- python train.py             records into train.marey\n"
                "  marey report train.marey                 the table: which range took how long\n"
                "  marey export train.marey --to perfetto   the timeline, for ui.perfetto.dev\n"
                "  marey top 4711                           live view of a running Python process",
    .exits = "0 fine, 1 negative result, such as a failed gate, 2 wrong usage or input,\n"
             "3 the program could not be started; 'marey run' returns the program's own status.",
};

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    }
    return NULL;
}

static void print_commands(bool of_itwinai, int width)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (cli_commands[i]->is_itwinai_command == of_itwinai)
            printf("  %-*s%s\n", width, cli_commands[i]->name, cli_commands[i]->brief);
}

static void print_overview(void)
{
    printf("Usage: marey %s\n\n%s\n\nCommands:\n", cli_program.usage, cli_program.about);
    print_commands(false, 12);
    printf("\nCommands of itwinai, with its options:\n");
    print_commands(true, 29);
    printf(
        "\nA first look:\n%s\n\n"
        "Which command for which question, and what each costs: docs/guide/which-instrument.md.\n"
        "'marey COMMAND --help' describes one command, 'marey --version' prints the version.\n"
        "Exit status: %s\n",
        cli_program.examples, cli_program.exits);
}

static int unknown_command(const char *name)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = cli_commands[i]->name;
    const char *nearest = cli_nearest(name, names, N_COMMANDS, sizeof names[0]);
    if (nearest != NULL)
        return cli_fail("unknown command '%s'; did you mean 'marey %s'?", name, nearest);
    return cli_fail("unknown command '%s'; 'marey --help' lists them", name);
}

static int run_command(const struct cli_command *command, char **args)
{
    int n_args, status;
    if (!cli_parse(command, args, &n_args, &status))
        return status;
    return command->run(n_args, args);
}

static int no_such_command(const char *word)
{
    if (word[0] == '-')
        return cli_fail("no option '%s' is valid before a command; see 'marey --help'", word);
    return unknown_command(word);
}

static void print_names(void)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        puts(cli_commands[i]->name);
}

/* marey help [COMMAND]. The build also uses --names, the list of commands, and --man, the manual page instead of the help. */
static int help(char **args)
{
    const bool wants_man = args[0] != NULL && strcmp(args[0], "--man") == 0;
    const char *word = args[wants_man];
    const struct cli_command *command = word != NULL ? cli_find_command(word) : NULL;
    if (word != NULL && strcmp(word, "--names") == 0)
        print_names();
    else if (word != NULL && command == NULL)
        return no_such_command(word);
    else if (wants_man)
        cli_print_man(command != NULL ? command : &cli_program);
    else if (command != NULL)
        cli_print_help(command);
    else
        print_overview();
    return CLI_FINE;
}

static int dispatch(char **argv)
{
    const char *word = argv[1];
    if (word == NULL || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_overview();
        return CLI_FINE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("marey %s\n", marey_version());
        return CLI_FINE;
    }
    if (strcmp(word, "help") == 0)
        return help(argv + 2);
    const struct cli_command *command = cli_find_command(word);
    return command != NULL ? run_command(command, argv + 2) : no_such_command(word);
}

void (*cli_inherited_sigpipe)(int sig) = SIG_DFL;

/*
 * Keeps the number of a closed standard stream in use; otherwise the next file we open would get it, and our output.
 * The placeholder refuses reading and writing like a closed descriptor, and is not inherited.
 */
static void reserve_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
            return;
}

static void ignore_signal(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    if (argc < 1)
        return CLI_BAD;
    reserve_standard_streams();
    /* Exceeding a file-size limit becomes a write error. Uses a handler, so that programs we start have the default. */
    signal(SIGXFSZ, ignore_signal);
    /* With MAREY in the environment, libmarey has begun to record this process, which is not intended. */
    marey_reset();
    /* If the reader closes the pipe (| head), end silently, whatever SIGPIPE disposition we inherited. */
    cli_inherited_sigpipe = signal(SIGPIPE, SIG_DFL);
    report_options_add(&cli_command_report);
    analysis_command_prepare(&cli_command_breakdown);
    analysis_command_prepare(&cli_command_compare);
    analysis_command_prepare(&cli_command_diff);
    analysis_command_prepare(&cli_command_scale);
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (cli_commands[i]->prepare != NULL)
            cli_commands[i]->prepare();
    int status = dispatch(argv);
    /* Report output that could not be written. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_FINE)
        status = cli_fail("cannot write to standard output: %s", strerror(errno));
    return status;
}
