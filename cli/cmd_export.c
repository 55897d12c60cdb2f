/* marey export: the events of recordings as a file for another tool. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include <marey/samples_report.h>

static struct {
    const char *to, *output, *filter, *by, *baseline, *from, *until, *launched_before, *about;
    const char *mode, *range, *iterations, *epochs, *phase, *thread, *rank, *process;
    bool split, quiet, calls, samples, idle, startup;
} given;

static const struct cli_option options[] = {
    {"to", 't',
     CLI_CHOICE, "perfetto|perfetto-gpu|chrome|kineto|csv|sqlite|speedscope|collapsed|flamegraph|pstats|callgrind|pyspy",
     &given.to, "the format (default: by the ending of FILE, else perfetto)"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output,
     "write there; - is standard output (default: the name of\n"
     "the recording with the ending of the format, here)"},
    {"split", 0, CLI_FLAG, NULL, &given.split,
     "perfetto: a trace for each process, in one TAR; so does a\n"
     "FILE that ends in .tar"},
    {"filter", 'f', CLI_TEXT, "PATTERN", &given.filter,
     "only ranges whose name has this word in it, or matches it\n"
     "where it has one of *?["},
    {"by", 0, CLI_CHOICE, "thread|rank", &given.by,
     "collapsed, flamegraph, pyspy: threads or ranks apart\n"
     "(default: all added up)"},
    {"baseline", 'b', CLI_TEXT, "OLD.marey", &given.baseline,
     "collapsed, flamegraph: what changed since this one"},
    {"calls", 0, CLI_FLAG, NULL, &given.calls,
     "what a call profiler counted instead of ranges: each path\n"
     "one box; of itself where there are no ranges"},
    {"samples", 0, CLI_FLAG, NULL, &given.samples,
     "what a sampler saw instead of ranges; beside them in what\n"
     "draws time. So does each of the next ones, which choose"},
    {"mode", 0, CLI_CHOICE, "wall|cpu|gil|exception", &given.mode,
     "samples: which threads (default: wall, that is main threads\n"
     "all the time, others on a processor)"},
    {"idle", 0, CLI_FLAG, NULL, &given.idle,
     "samples: all threads, all the time; in collapsed and\n"
     "flamegraph idle processes as well"},
    {"range", 0, CLI_TEXT, "NAME", &given.range, "samples: while this range was open"},
    {"iterations", 0, CLI_TEXT, "WHICH", &given.iterations,
     "samples: of these iterations: slow, 7, 10..20"},
    {"epochs", 0, CLI_TEXT, "WHICH", &given.epochs, "samples: of these epochs"},
    {"phase", 0, CLI_TEXT, "NAME", &given.phase, "samples: of this phase"},
    {"thread", 0, CLI_TEXT, "NAME", &given.thread, "samples: of threads of this name"},
    {"rank", 0, CLI_TEXT, "R", &given.rank, "samples: of this rank"},
    {"process", 0, CLI_TEXT, "PID|NAME", &given.process,
     "of these processes: a PID, worker (of a data loader), worker0,\n"
     "main (all others), or a part of the command"},
    {"startup", 0, CLI_FLAG, NULL, &given.startup,
     "collapsed, flamegraph, of calls and samples: imports at\n"
     "start-up as well; other formats always have them"},
    {"from", 0, CLI_TEXT, "TIME", &given.from,
     "kineto: leave out what began before; in seconds since the\n"
     "first event, or as csv has it in start_ns, followed by ns"},
    {"until", 0, CLI_TEXT, "TIME", &given.until, "kineto: leave out what ended later"},
    {"launched-before", 0, CLI_TEXT, "N", &given.launched_before,
     "kineto: GPU work by the number of its launch instead, as\n"
     "marey_gpu_stop_later() gives it"},
    {"about", 0, CLI_TEXT, "JSON", &given.about,
     "kineto: an object for the file's key \"marey\", such as\n"
     "{\"rank\":0,\"step\":9}"},
    {"quiet", 'q', CLI_FLAG, NULL, &given.quiet, "say nothing when all went well"},
};

static const struct format {
    const char *name, *suffix, *next; /* `next`: what to do with the file */
} formats[] = {
    {"perfetto", ".pftrace", "open it at https://ui.perfetto.dev; it stays in your browser"},
    {"perfetto-tar", ".tar",
     "open it at https://ui.perfetto.dev as it is: one timeline of all processes"},
    {"perfetto-gpu", ".gpu.pftrace",
     "open it at https://ui.perfetto.dev, v55 or later: GPU work as events of its own"},
    {"chrome", ".json", "open it at chrome://tracing or https://ui.perfetto.dev"},
    {"kineto", ".pt.trace.json", "as torch.profiler writes it; 'marey artifacts' makes tables of it"},
    {"csv", ".csv", "one line per range, mark and counter value"},
    {"sqlite", ".db", "ask it with sqlite3: SELECT * FROM summary_by_name"},
    {"sqlite", ".sqlite", "ask it with sqlite3: SELECT * FROM summary_by_name"},
    {"speedscope", ".speedscope.json",
     "open it at https://www.speedscope.app; it stays in your browser"},
    {"collapsed", ".collapsedstack.txt", "self time of each path in nanoseconds"},
    {"pstats", ".prof", "open it with python -m pstats, snakeviz or gprof2dot -f pstats"},
    {"callgrind", ".callgrind", "open it with kcachegrind, or callgrind_annotate"},
    {"pyspy", ".raw", "stacks and how many samples had them, as py-spy record -f raw writes them"},
    {"flamegraph", ".svg", "open it in a browser; click a box to zoom, Ctrl-F to search"},
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

static bool is_perfetto(const struct format *format)
{
    return strncmp(format->name, "perfetto", strlen("perfetto")) == 0;
}

/* Into a trace for each process. */
static bool can_split(const struct format *format)
{
    return format == &formats[0] || format == &formats[1];
}

/* By --to, else by the longest of the endings that the output's name has, else the first. */
static const struct format *choose_by_name(void)
{
    const struct format *chosen = &formats[0];
    size_t longest = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (given.to != NULL && strcmp(given.to, formats[i].name) == 0)
            return &formats[i];
        const size_t len = strlen(formats[i].suffix);
        if (given.output != NULL && ends_with(given.output, formats[i].suffix) && len > longest) {
            chosen = &formats[i];
            longest = len;
        }
    }
    return chosen;
}

static const struct format *choose_format(void)
{
    const struct format *format = choose_by_name();
    const bool wants_tar = given.split || (given.output != NULL && ends_with(given.output, ".tar"));
    return wants_tar && can_split(format) ? &formats[1] : format;
}

/* runs/train.marey becomes train.pftrace, here. Free what comes back. */
static char *default_output(const marey_recording *recording, const char *suffix)
{
    char stem[NAME_MAX];
    char *path = NULL;
    cli_stem(marey_recording_name(recording), stem, sizeof stem, "recording");
    return asprintf(&path, "%s%s", stem, suffix) >= 0 ? path : NULL;
}

/* Whether the output is one of the files that are read. */
static bool is_input(const char *output, char **args, int n_args)
{
    struct stat out, in;
    if (stat(output, &out) != 0)
        return false;
    for (int i = 0; i < n_args; i++)
        if (stat(args[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    return false;
}

/* Recordings to compare with; none when --baseline was not given. */
static struct cli_recordings baseline;

/* The window that was asked for, by CLOCK_MONOTONIC. */
static struct {
    uint64_t from_ns, until_ns, launched_before;
} window;

static uint64_t first_event_ns(const struct cli_recordings *recordings)
{
    uint64_t first_ns = 0;
    for (size_t r = 0; r < recordings->n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings->list[r]); i++) {
            const struct marey_process *process = marey_recording_process(recordings->list[r], i);
            if (process->n_words > 0 && (first_ns == 0 || process->first_ns < first_ns))
                first_ns = process->first_ns;
        }
    return first_ns;
}

/* "2.5" or "35503677894664ns"; false when it is neither. NULL leaves `*ns` as it is. */
static bool parse_time(const char *text, uint64_t first_ns, uint64_t *ns)
{
    char *end;
    if (text == NULL)
        return true;
    if (ends_with(text, "ns")) {
        errno = 0;
        *ns = strtoull(text, &end, 10);
        return errno == 0 && text[0] >= '0' && text[0] <= '9' && strcmp(end, "ns") == 0;
    }
    const double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0 && seconds < 1e9))
        return false;
    *ns = first_ns + (uint64_t)(seconds * 1e9);
    return true;
}

/* False when it is no number. NULL leaves `*number` as it is. */
static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    if (text == NULL)
        return true;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse_window(const struct cli_recordings *recordings)
{
    if (!parse_number(given.launched_before, &window.launched_before)) {
        cli_say("--launched-before '%s' is no number of a launch", given.launched_before);
        return false;
    }
    const uint64_t first_ns = first_event_ns(recordings);
    const bool has_from = parse_time(given.from, first_ns, &window.from_ns);
    if (has_from && parse_time(given.until, first_ns, &window.until_ns))
        return true;
    cli_say(
        "--%s '%s' is not a time: seconds since the first event, such as 2.5, or nanoseconds of "
        "CLOCK_MONOTONIC followed by ns",
        has_from ? "until" : "from", has_from ? given.until : given.from);
    return false;
}

/* Whether samples were asked for, or chosen among. */
static bool wants_samples(void)
{
    return given.samples || given.mode != NULL || given.idle || given.range != NULL ||
           given.iterations != NULL || given.epochs != NULL || given.phase != NULL ||
           given.thread != NULL || given.rank != NULL;
}

/* These leave start-up and idle processes out; others have everything, each sample at its time or as its profiler would. */
static bool adds_up_calls(const struct format *format)
{
    return strcmp(format->name, "collapsed") == 0 || strcmp(format->name, "flamegraph") == 0;
}

static marey_status export_to(const struct cli_recordings *recordings, const struct format *format,
                              int fd)
{
    const struct marey_samples_filter chosen = {.mode = given.mode,
                                                .idle = given.idle,
                                                .range = given.range,
                                                .iterations = given.iterations,
                                                .epochs = given.epochs,
                                                .phase = given.phase,
                                                .thread = given.thread,
                                                .rank = given.rank,
                                                .process = given.process};
    uint64_t startup_ns = 0, idle_ns = 0, n_too_deep = 0, n_unmatched = 0;
    const struct marey_export_options wants = {
        .samples = wants_samples() ? &chosen : NULL,
        .filter = given.filter,
        .by = given.by,
        .baseline = baseline.list,
        .n_baseline = baseline.n,
        .from_ns = window.from_ns,
        .until_ns = window.until_ns,
        .launched_before = window.launched_before,
        .about = given.about,
        .calls = given.calls,
        .startup = given.startup,
        .startup_ns = &startup_ns,
        .idle_ns = &idle_ns,
        .n_too_deep = &n_too_deep,
        .n_unmatched = &n_unmatched,
        .progress = cli_progress,
        .progress_ctx = (void *)"writing",
    };
    const marey_status status =
        marey_export(recordings->list, recordings->n, format->name, &wants, fd);
    cli_progress_end();
    char left_out[32];
    if (status == MAREY_OK && startup_ns != 0 && !given.quiet)
        cli_say("left out %s of imports at start-up; --startup shows them",
                cli_duration(startup_ns, left_out, sizeof left_out));
    if (status == MAREY_OK && idle_ns != 0 && !given.quiet)
        cli_say("left out %s of idle processes and workers; --idle shows them",
                cli_duration(idle_ns, left_out, sizeof left_out));
    if (status == MAREY_OK)
        cli_say_left_out(n_too_deep, "range", "nested too deep");
    if (status == MAREY_OK)
        cli_say_left_out(n_unmatched, "async event", "too many async ranges were in flight");
    return status;
}

static void tell_warnings(const struct cli_recordings *recordings)
{
    for (size_t r = 0; r < recordings->n; r++) {
        const char *warning;
        for (size_t i = 0; (warning = marey_recording_warning(recordings->list[r], i)) != NULL; i++)
            cli_say("%s", warning);
        cli_tell_notes(recordings->list[r]);
    }
}

struct job {
    const struct cli_recordings *recordings;
    const struct format *format;
};

static marey_status write_job(void *ctx, int fd)
{
    const struct job *job = ctx;
    return export_to(job->recordings, job->format, fd);
}

/* SQLite would read a -journal or -wal of an earlier database as part of the one that takes its name. */
static bool has_leftover(const char *path, char *out, size_t size)
{
    static const char *const endings[] = {"-journal", "-wal"};
    char final[PATH_MAX];
    struct stat st;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(out, size, "%s%s", realpath(path, final) != NULL ? final : path, endings[i]);
        if (stat(out, &st) == 0 && st.st_size > 0)
            return true;
    }
    return false;
}

static int export_to_file(const struct cli_recordings *recordings, const struct format *format,
                          const char *path)
{
    struct job job = {recordings, format};
    char leftover[PATH_MAX + 16];
    if (strcmp(format->name, "sqlite") == 0 && has_leftover(path, leftover, sizeof leftover))
        return cli_fail("%s is left from an earlier database of that name and would damage the new "
                        "one; remove it, or choose another name",
                        leftover);
    return cli_write_file(path, write_job, &job, given.quiet ? NULL : format->next);
}

static bool is_binary(const struct format *format)
{
    return is_perfetto(format) || strcmp(format->name, "pstats") == 0 ||
           strcmp(format->name, "sqlite") == 0;
}

static int export_to_stdout(const struct cli_recordings *recordings, const struct format *format)
{
    if (isatty(STDOUT_FILENO) && is_binary(format))
        return cli_fail("refusing to write binary data to a terminal; redirect it, or use -o FILE");
    return export_to(recordings, format, STDOUT_FILENO) == MAREY_OK
               ? CLI_FINE
               : cli_fail("%s", marey_last_error());
}

/* These have sums by path; the others have single events. */
static bool adds_up(const struct format *format)
{
    return strcmp(format->name, "collapsed") == 0 || strcmp(format->name, "flamegraph") == 0 ||
           strcmp(format->name, "pyspy") == 0;
}

static int export(int n_args, char **args)
{
    if (n_args == 0)
        return cli_fail("export needs a recording: marey export RUN.marey --to perfetto");
    if (given.split && !can_split(choose_format()))
        return cli_fail("only Perfetto traces can be split; leave --split or --to %s out",
                        choose_format()->name);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error to tell, like a full disk */
    const struct format *format = choose_format();
    if (marey_export_check(format->name) != MAREY_OK) /* before a file is made, or an old one emptied */
        return cli_fail("%s", marey_last_error());

    if ((given.by != NULL || given.baseline != NULL) && !adds_up(format))
        return cli_fail("%s goes with --to collapsed or --to flamegraph, which add times up",
                        given.by != NULL ? "--by" : "--baseline");
    if (given.calls && wants_samples())
        return cli_fail("calls and samples go into files of their own: leave --calls out, or what "
                        "chooses samples");
    const char *const of_kineto = given.from != NULL              ? "from"
                                  : given.until != NULL           ? "until"
                                  : given.launched_before != NULL ? "launched-before"
                                  : given.about != NULL           ? "about"
                                                                  : NULL;
    if (of_kineto != NULL && strcmp(format->name, "kineto") != 0)
        return cli_fail("--%s goes with --to kineto", of_kineto);
    struct cli_recordings recordings = {0};
    if (!(adds_up(format) ? cli_open : cli_open_whole)(&recordings, args, n_args))
        return CLI_BAD;
    if (!cli_select_process(&recordings, given.process))
        return CLI_BAD;
    /* Samples that are drawn without being asked for are of these processes, too. */
    given.samples |= given.process != NULL && !given.calls &&
                     marey_samples_are_there(recordings.list, recordings.n) &&
                     (!adds_up_calls(format) || first_event_ns(&recordings) == 0);
    if (!parse_window(&recordings)) {
        cli_close(&recordings);
        return CLI_BAD;
    }
    if (given.baseline != NULL && !cli_open(&baseline, (char **)&given.baseline, 1)) {
        cli_close(&recordings);
        return CLI_BAD;
    }
    char *own_name = given.output == NULL ? default_output(recordings.list[0], format->suffix) : NULL;
    const char *output = own_name != NULL ? own_name : given.output;
    int status;
    if (output == NULL)
        status = cli_fail("out of memory");
    else if (strcmp(output, "-") == 0)
        status = export_to_stdout(&recordings, format);
    else if (is_input(output, args, n_args))
        status = cli_fail("%s is what is read; choose another file with -o", output);
    else
        status = export_to_file(&recordings, format, output);
    if (status == CLI_FINE) {
        tell_warnings(&recordings);
        tell_warnings(&baseline);
    }
    status = cli_tell_damage(&baseline, cli_tell_damage(&recordings, status));
    free(own_name);
    cli_close(&recordings);
    cli_close(&baseline);
    return status;
}

const struct cli_command cli_command_export = {
    .name = "export",
    .usage = "RUN.marey|TRACE|FOLDER... [--to FORMAT] [-o FILE]",
    .brief = "a timeline, a flame graph or a database",
    .about =
        "Writes the events of recordings into one file for another tool: perfetto (compact, what\n"
        "to use for a timeline), chrome (JSON, which many programs read), csv (a line for each\n"
        "range, mark and counter value), sqlite (a database with views for the usual questions),\n"
        "speedscope (JSON, a profile for each thread), kineto (JSON as torch.profiler writes it,\n"
        "of all events or of a window of time). Several recordings, and all ranks in them, lie on\n"
        "one time axis. Files may be of any size; memory does not grow with them. Traces and\n"
        "profiles of other tools ('marey import --help' says which) are converted as well.\n"
        "\n"
        "Or adds up the time of each path of ranges within ranges: flamegraph (a picture, SVG,\n"
        "that opens in any browser and needs nothing else), collapsed (lines for flamegraph.pl,\n"
        "inferno and others). With --baseline both show what changed. Ranges only: marks,\n"
        "counters and async ranges have no place in a stack.\n"
        "\n"
        "Or has functions and who called them: pstats (what cProfile dumps), callgrind. Both are\n"
        "of what a call profiler counted; of samples, else of ranges, where there was none.\n"
        "\n"
        "Of samples ('marey attach', 'marey run --sample') all of these, and pyspy (stacks with\n"
        "lines, as py-spy writes them). Perfetto and chrome have samples beside other events.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples =
        "  marey export train.marey                      train.pftrace, for ui.perfetto.dev\n"
        "  marey export train.marey -o train.tar         a trace for each rank, opened as one\n"
        "  marey export train.marey --to chrome          train.json\n"
        "  marey export a.marey b.marey -o both.pftrace  two runs side by side\n"
        "  marey export train.marey -o train.svg         a flame graph\n"
        "  marey export new.marey -b old.marey -o d.svg  what became slower, what faster\n"
        "  marey export trace.json.gz -o trace.db        one format into another\n"
        "  marey export train.marey --to kineto          train.pt.trace.json, for tools of torch\n"
        "  marey export train.marey --to pstats          train.prof, for pstats and snakeviz\n"
        "  marey export train.marey --calls -o t.svg     a flame graph of functions\n"
        "  marey export train.marey --iterations slow -o slow.svg  samples of slow iterations\n"
        "  marey export train.marey --to csv -o - | head\n"
        "  marey export train.marey -o train.db          a database, for sqlite3",
    .run = export,
};
