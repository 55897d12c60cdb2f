/* marey stacks: print all threads of Python processes once, equal stacks together. */
#include "sampling.h"

static struct {
    bool json, native, no_children;
    const char *color;
} given = {.color = "auto"};

static const struct cli_option options[] = {
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: processes, groups of equal stacks with their threads\n"
     "and frames, failures"},
    {"native", 'n', CLI_FLAG, NULL, &given.native, "include frames of C and C++"},
    {"no-children", 0, CLI_FLAG, NULL, &given.no_children, "only these processes"},
    CLI_COLOR_OPTION(&given.color),
};

static int stacks(int n_args, char **args)
{
    const struct marey_sampler_options wants = {
        .size = sizeof wants, .native = given.native, .no_children = given.no_children};
    struct marey_sampler_stacks *found;
    pid_t *pids CLI_FREED = NULL;
    if (!cli_pids(&cli_command_stacks, n_args, args, &pids))
        return CLI_BAD;
    marey_status status = marey_sampler_stacks_read(pids, (size_t)n_args, &wants, &found);
    CLI_TRY(cli_status(status));
    const size_t n_failures = found->n_failures;
    if (found->n_rounds == 0 && !given.json)
        for (size_t i = 0; i < n_failures; i++)
            cli_say("%s", found->failures[i].why);
    else
        status = sampling_print_stacks(found, given.json, given.color, stdout);
    marey_sampler_stacks_free(found);
    CLI_TRY(cli_status(status));
    return n_failures != 0 ? CLI_BAD : CLI_FINE;
}

const struct cli_command cli_command_stacks = {
    .name = "stacks",
    .usage = "PID... [OPTIONS]",
    .brief = "print the stacks of Python processes once",
    .about =
        "Prints the stack of each thread of Python processes and their children, and what it\n"
        "waits for. Threads with equal stacks are grouped: with many ranks this shows where most\n"
        "are, and which differ. Each thread is stopped for about 50 us while it is read.",
    CLI_OPTIONS(options),
    .examples = "  marey stacks 4711                     all threads of one process\n"
                "  marey stacks $(pgrep -f train.py)     all ranks of a job on this machine\n"
                "  marey stacks 4711 --json | jq '.groups[0].frames[0]'",
    .exits = "0 fine, 2 wrong usage, or a process could not be read; the others are shown.",
    .run = stacks,
};
