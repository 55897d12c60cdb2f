/*
 * kymo: the command line. `kymo run` measures a program, `kymo report` says where its time went,
 * `kymo export` hands the events to another viewer. This file picks the command; each has a file of
 * its own.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct cli_command *const commands[] = {
    &cli_command_run,
    &cli_command_report,
    &cli_command_export,
    &cli_command_doctor,
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static void print_overview(void)
{
    puts("Usage: kymo COMMAND ...\n\n"
         "Records what a training program does and tells where its time goes.\n\n"
         "Commands:");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-10s%s\n", commands[i]->name, commands[i]->brief);
    puts("\n"
         "A first look:\n"
         "  kymo run -- python train.py              records into train.kymo\n"
         "  kymo report train.kymo                   the table: which range took how long\n"
         "  kymo export train.kymo --to perfetto     the timeline, for ui.perfetto.dev\n"
         "\n"
         "'kymo COMMAND --help' tells about one command, 'kymo --version' which kymo this is.\n"
         "Exit status: 0 fine, 1 the answer is no, 2 wrong usage or input, 3 the program could\n"
         "not be started; 'kymo run' passes the program's own status on.");
}

static int unknown_command(const char *name)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *nearest = cli_nearest(name, names, N_COMMANDS, sizeof names[0]);
    if (nearest != NULL)
        return cli_fail("there is no command '%s'; did you mean 'kymo %s'?", name, nearest);
    return cli_fail("there is no command '%s'; 'kymo --help' lists them", name);
}

static int run_command(const struct cli_command *command, char **args)
{
    int n_args, status;
    if (!cli_parse(command, args, &n_args, &status))
        return status;
    return command->run(n_args, args);
}

static int dispatch(char **argv)
{
    const char *word = argv[1];
    if (word == NULL || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
        (strcmp(word, "help") == 0 && argv[2] == NULL)) {
        print_overview();
        return CLI_FINE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("kymo %s\n", kymo_version());
        return CLI_FINE;
    }
    if (strcmp(word, "help") == 0)
        word = argv[2];
    const struct cli_command *command = find_command(word);
    if (command == NULL)
        return word[0] == '-'
                   ? cli_fail("there is no option '%s' before a command; see 'kymo --help'", word)
                   : unknown_command(word);
    if (word == argv[2]) {
        cli_print_help(command);
        return CLI_FINE;
    }
    return run_command(command, argv + 2);
}

int main(int argc, char **argv)
{
    if (argc < 1)
        return CLI_BAD;
    /*
     * With KYMO in the environment our own library has begun to record us; that is not what was
     * meant.
     */
    kymo_reset();
    int status = dispatch(argv);
    /* What could not be written to stdout was not answered. */
    if (fflush(stdout) != 0 && status == CLI_FINE)
        status = cli_fail("cannot write to standard output");
    return status;
}
