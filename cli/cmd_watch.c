/*
 * marey watch: wait until a job makes no progress, then print all stacks. A thread samples ten times a second without
 * stopping anything; this one checks how long nothing has changed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "sampling.h"

enum { LOOK_HZ = 10, ASK_MS = 200, MOST_PROCESSES = 4096 };

static struct {
    const char *stall, *output, *color;
    bool once, busy, native, no_children;
} given = {.stall = "60s", .color = "auto"};

static const struct cli_option options[] = {
    {"stall", 's', CLI_TEXT, "TIME", &given.stall, "time without progress: 60s, 5m (default: 60s)"},
    {"busy", 0, CLI_FLAG, NULL, &given.busy,
     "ignore CPU use: for threads that spin while they wait for a\n"
     "GPU or another rank"},
    {"once", 0, CLI_FLAG, NULL, &given.once, "exit with status 1 after the first stall"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output,
     "append stacks to this file (default: standard output)"},
    {"native", 'n', CLI_FLAG, NULL, &given.native, "include frames of C and C++"},
    {"no-children", 0, CLI_FLAG, NULL, &given.no_children, "only these processes"},
    CLI_COLOR_OPTION(&given.color),
};

static volatile sig_atomic_t is_asked_to_end;

static void ask_to_end(int sig)
{
    (void)sig;
    is_asked_to_end = 1;
}

struct watch {
    struct sampling sampling;
    marey_live *live;
    double stall_s;
};

/* ---- stacks ---- */

static marey_status print_stacks(const struct watch *watch, FILE *out)
{
    /* All processes seen: a named one may have ended while those it started continue. */
    const struct marey_sampler_options wants = {
        .size = sizeof wants, .native = given.native, .no_children = 1};
    struct marey_sampler_stacks *stacks;
    pid_t pids[MOST_PROCESSES];
    const size_t n = marey_live_pids(watch->live, pids, MOST_PROCESSES);
    MAREY_TRY(
        marey_sampler_stacks_read(pids, n < MOST_PROCESSES ? n : MOST_PROCESSES, &wants, &stacks));
    const marey_status status = sampling_print_stacks(stacks, false, given.color, out);
    marey_sampler_stacks_free(stacks);
    return status;
}

static void print_time(const struct watch *watch, FILE *out)
{
    const time_t now = time(NULL);
    struct tm tm;
    char text[40] = "";
    if (localtime_r(&now, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(out, "%s: no progress for %g s\n", text, watch->stall_s);
}

static int report_stall(const struct watch *watch)
{
    FILE *const file = given.output != NULL ? fopen(given.output, "a") : NULL;
    if (given.output != NULL && file == NULL)
        return cli_fail("cannot write %s: %s", given.output, strerror(errno));
    FILE *const out = file != NULL ? file : stdout;
    print_time(watch, out);
    const marey_status status = print_stacks(watch, out);
    const bool is_written = fputc('\n', out) != EOF && fflush(out) == 0;
    if (file != NULL)
        fclose(file);
    CLI_TRY(cli_status(status));
    if (!is_written)
        return cli_fail("cannot write the stacks: %s", strerror(errno));
    if (given.output != NULL)
        cli_say("no progress for %g s; the stacks are in %s", watch->stall_s, given.output);
    return CLI_FINE;
}

/* ---- waiting ---- */

/* Each stall is reported once; it ends with any change. */
static int wait_for_stalls(struct watch *watch)
{
    bool is_reported = false;
    while (!is_asked_to_end && sampling_goes_on(&watch->sampling)) {
        struct marey_live_state state;
        marey_live_state_get(watch->live, given.busy, &state, sizeof state);
        const bool is_stalled = (double)state.still_ns >= watch->stall_s * 1e9;
        if (is_stalled && !is_reported) {
            CLI_TRY(report_stall(watch));
            if (given.once)
                return CLI_NO;
        }
        is_reported = is_stalled;
        poll(NULL, 0, ASK_MS);
    }
    return CLI_FINE;
}

static int watch_sampler(struct watch *watch, marey_sampler *sampler)
{
    int status = CLI_BAD;
    CLI_TRY(cli_status(marey_live_create(0, &watch->live)));
    marey_live_attach(watch->live, sampler);
    if (sampling_start(&watch->sampling, sampler))
        status = wait_for_stalls(watch);
    sampling_stop(&watch->sampling);
    if (watch->sampling.status != MAREY_OK)
        return cli_fail("%s", watch->sampling.error);
    return status;
}

static int watch(int n_args, char **args)
{
    struct marey_sampler_options wants = {.size = sizeof wants,
                                          .rate_hz = LOOK_HZ,
                                          .strategy = MAREY_SAMPLER_SNAPSHOT,
                                          .audit_share = -1,
                                          .no_children = given.no_children};
    struct watch watch = {.live = NULL};
    struct sigaction end = {.sa_handler = ask_to_end};
    size_t n_failed;
    pid_t *pids CLI_FREED = NULL;
    if (!cli_seconds("stall", given.stall, &watch.stall_s) ||
        !cli_pids(&cli_command_watch, n_args, args, &pids))
        return CLI_BAD;
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    marey_sampler *sampler = sampling_create(&wants, pids, (size_t)n_args, &n_failed);
    const int status = sampler != NULL ? watch_sampler(&watch, sampler) : CLI_BAD;
    marey_sampler_destroy(sampler);
    marey_live_destroy(watch.live);
    return status == CLI_FINE && n_failed != 0 ? CLI_BAD : status;
}

const struct cli_command cli_command_watch = {
    .name = "watch",
    .usage = "PID... [OPTIONS]",
    .brief = "wait until a job hangs, then print all stacks",
    .about =
        "Watches Python processes and their children. If no stack of any thread has changed and\n"
        "no process has used 2 % of a CPU core for the time of --stall, prints the stacks of all\n"
        "threads, grouped by equality, and what they wait for; once per stall. Ends with the\n"
        "processes, or on ctrl-C.",
    CLI_OPTIONS(options),
    .examples =
        "  marey watch $(pgrep -f train.py) --stall 60s         all ranks of a job on this "
        "machine\n"
        "  marey watch 4711 --stall 5m -o hang.txt --once       for a script: status 1 on a stall\n"
        "  marey watch 4711 --busy --native                     even while it spins in NCCL",
    .exits = "0 the processes ended, or ctrl-C; with --once 1 after a stall; 2 wrong usage,\n"
             "or a process could not be read.",
    .run = watch,
};
