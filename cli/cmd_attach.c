/* marey attach: sample running Python processes into a recording. */
#include <signal.h>
#include <unistd.h>

#include "run/run.h"

static struct {
    const char *output, *rate, *duration, *max_slowdown;
    bool append, force, exact, snapshot, native, no_children, quiet;
} given;

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "DIR", &given.output,
     "the recording (default: attach-PID.marey, or the first free of\n"
     "attach-PID-2.marey, ...)"},
    {"rate", 'r', CLI_TEXT, "HZ", &given.rate, "samples per second and process (default: 100)"},
    {"duration", 'd', CLI_TEXT, "TIME", &given.duration,
     "duration: 10, 500ms, 5m (default: until ctrl-C, or until all\n"
     "processes have ended)"},
    {"append", 0, CLI_FLAG, NULL, &given.append, "add to an existing recording"},
    {"force", 0, CLI_FLAG, NULL, &given.force, "replace an existing recording"},
    {"exact", 0, CLI_FLAG, NULL, &given.exact,
     "stop each thread for about 50 us while it is read, for\n"
     "consistent stacks (default: up to 250 Hz)"},
    {"snapshot", 0, CLI_FLAG, NULL, &given.snapshot,
     "stop nothing; stacks that changed meanwhile are marked, and one\n"
     "sample in a hundred is exact, to check the error (default: above)"},
    {"native", 'n', CLI_FLAG, NULL, &given.native,
     "include frames of C and C++; each sample stops its thread"},
    {"no-children", 0, CLI_FLAG, NULL, &given.no_children, "only these processes, not their children"},
    {"max-slowdown", 0, CLI_TEXT, "PERCENT", &given.max_slowdown,
     "maximum share of time a process is stopped; takes fewer samples\n"
     "if necessary (default: 0.5%)"},
    {"quiet", 'q', CLI_FLAG, NULL, &given.quiet, "no progress and no summary"},
};

/* ---- options ---- */

static bool read_options(struct marey_sampler_options *wants)
{
    double percent = 0;
    *wants = (struct marey_sampler_options){.size = sizeof *wants,
                                            .native = given.native,
                                            .no_children = given.no_children,
                                            .strategy = given.exact      ? MAREY_SAMPLER_EXACT
                                                        : given.snapshot ? MAREY_SAMPLER_SNAPSHOT
                                                                         : MAREY_SAMPLER_AUTO};
    if (!cli_exclude(&cli_command_attach, "exact snapshot") ||
        !cli_exclude(&cli_command_attach, "append force") ||
        (given.rate != NULL && !cli_rate("rate", given.rate, &wants->rate_hz)) ||
        (given.duration != NULL && !cli_seconds("duration", given.duration, &wants->duration_s)) ||
        (given.max_slowdown != NULL && !cli_percent("max-slowdown", given.max_slowdown, &percent)))
        return false;
    if (given.max_slowdown != NULL && (percent <= 0 || percent > 100))
        return cli_refuse("--max-slowdown takes more than 0 and up to 100 percent, not '%s'",
                          given.max_slowdown);
    wants->max_slowdown = percent / 100;
    return true;
}

/* ---- during sampling ---- */

static marey_sampler *volatile running; /* for the handler; NULL once the sampler is unused */

static void stop(int sig)
{
    (void)sig;
    if (running != NULL)
        marey_sampler_stop(running);
}

/* `begins`: handle terminating signals, except ignored ones (nohup). Else restore them. */
static void handle_signals(bool begins)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static struct sigaction before[sizeof signals / sizeof signals[0]];
    const struct sigaction ours = {.sa_handler = stop, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (begins)
            sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], begins ? &ours : &before[i], NULL);
    }
}

struct progress {
    const marey_sampler *sampler;
    uint64_t begin_ns, next_ns;
};

/* Twice a second, in the sampler's thread. */
static void report_progress(void *ctx, const marey_samples *samples,
                            const struct marey_samples_round *round)
{
    struct progress *progress = ctx;
    struct marey_sampler_counts counts;
    char text[32];
    (void)samples;
    if (progress->begin_ns == 0)
        progress->begin_ns = round->at_ns;
    if (round->at_ns < progress->next_ns)
        return;
    progress->next_ns = round->at_ns + 500000000;
    marey_sampler_counts_get(progress->sampler, &counts, sizeof counts);
    fprintf(stderr, "\rmarey: %.0f s, %s samples of %llu process%s (ctrl-C ends it)\033[K",
            (double)(round->at_ns - progress->begin_ns) / 1e9,
            cli_count(counts.all.samples, text, sizeof text), (unsigned long long)counts.alive,
            counts.alive == 1 ? "" : "es");
}

static marey_status sample(marey_sampler *sampler)
{
    struct progress progress = {.sampler = sampler};
    const bool shows_progress = !given.quiet && isatty(STDERR_FILENO);
    running = sampler;
    handle_signals(true);
    if (shows_progress)
        marey_sampler_on_round(sampler, report_progress, &progress);
    const marey_status status = marey_sampler_run(sampler);
    if (shows_progress)
        cli_progress_end();
    return status;
}

/* ---- from the command line to the exit status ---- */

/* Prints a summary of the closed recording. */
static int print_end(const struct run_target *target, const struct marey_sampler_counts *counts)
{
    if (counts->all.samples == 0) {
        run_target_abandon(target);
        return cli_fail("nothing was sampled: %s", counts->processes == 0
                                                       ? "no Python was found in these processes"
                                                       : "the processes ended at once");
    }
    if (!given.quiet)
        sampling_summarize(target->path);
    return CLI_FINE;
}

static int sample_into(const struct run_target *target, struct marey_sampler_options *wants,
                       const pid_t *pids, size_t n)
{
    struct marey_sampler_counts counts;
    size_t n_failed;
    wants->path = target->path;
    marey_sampler *sampler = sampling_create(wants, pids, n, &n_failed);
    if (sampler == NULL) {
        run_target_abandon(target);
        return CLI_BAD;
    }
    int status = CLI_FINE;
    if (sample(sampler) != MAREY_OK)
        status = cli_fail("%s", marey_last_error());
    marey_sampler_counts_get(sampler, &counts, sizeof counts);
    /* Ignore a second ctrl-C while the recording is closed; after that it ends us. */
    running = NULL;
    marey_sampler_destroy(sampler);
    handle_signals(false);
    const int end = print_end(target, &counts);
    return status != CLI_FINE || n_failed != 0 ? CLI_BAD : end;
}

static int attach(int n_args, char **args)
{
    struct marey_sampler_options wants;
    struct run_target target;
    char name[64];
    pid_t *pids CLI_FREED = NULL;
    if (!read_options(&wants) || !cli_pids(&cli_command_attach, n_args, args, &pids))
        return CLI_BAD;
    snprintf(name, sizeof name, "attach-%d", (int)pids[0]);
    char *const program[] = {name, NULL};
    return run_target_prepare(&target, given.output,
                              given.append  ? RUN_APPEND
                              : given.force ? RUN_FORCE
                                            : RUN_REFUSE,
                              program)
               ? sample_into(&target, &wants, pids, (size_t)n_args)
               : CLI_BAD;
}

const struct cli_command cli_command_attach = {
    .name = "attach",
    .usage = "PID... [OPTIONS]",
    .brief = "sample running Python processes into a recording",
    .about =
        "Reads the stacks of all threads of running Python processes, CPython 3.10 to 3.14, and\n"
        "of their children, at random times. It runs no code in them and does not write to them.\n"
        "For a launcher (a shell, torchrun, mpirun) it samples the programs that the launcher\n"
        "starts. 'marey doctor' reports missing permissions.",
    CLI_OPTIONS(options),
    .examples =
        "  marey attach 4711 --duration 10s             ten seconds into attach-4711.marey\n"
        "  marey attach $(pgrep -f train.py)            all ranks, until ctrl-C\n"
        "  marey attach 4711 -o run.marey --append      into the recording of 'marey run'\n"
        "  marey attach 4711 --rate 1k --native         a thousand a second, with C frames\n"
        "  marey report run.marey --samples             then: functions and lines",
    .exits = "0 fine, even if interrupted; 2 wrong usage, or a process could not be\n"
             "read; the others are sampled.",
    .run = attach,
};
