/* marey export: recordings as a file for another tool. The formats are described in their registry. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report_options.h"

static struct {
    const char *to, *output, *baseline, *from, *until, *launched_before, *process;
    bool split, quiet, calls, samples, startup;
} given;

static struct marey_export_options wants; /* partly set by options */
static struct cli_recordings baseline;    /* empty without --baseline */

static char format_choices[256];

static struct cli_option options[] = {
    {"to", 't', CLI_CHOICE, format_choices, &given.to,
     "the format (default: by the extension of FILE, else the first)"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output,
     "output file; - is standard output (default: the name of the\n"
     "recording with the extension of the format)"},
    {"split", 0, CLI_FLAG, NULL, &given.split,
     "one trace per process, in a TAR; the default if FILE ends in .tar"},
    {"filter", 'f', CLI_TEXT, "PATTERN", &wants.filter,
     "only ranges whose name contains this word, or matches it\n"
     "if it has one of *?["},
    {"by", 0, CLI_CHOICE, "thread|rank", &wants.by, "separate threads or ranks (default: merged)"},
    {"baseline", 'b', CLI_TEXT, "OLD.marey", &given.baseline, "show the change from this recording"},
    {"calls", 0, CLI_FLAG, NULL, &given.calls,
     "the call profile instead of ranges: one box per path; the\n"
     "default if there are no ranges"},
    {"process", 0, CLI_TEXT, "PID|NAME", &given.process,
     "only these processes: a PID, worker (of a data loader), worker0,\n"
     "main (all others), or part of the command"},
    {"startup", 0, CLI_FLAG, NULL, &given.startup,
     "include imports at start-up, of calls and samples; other formats always do"},
    {"from", 0, CLI_TEXT, "TIME", &given.from,
     "omit what began before; in seconds since the first event, or as start_ns of csv, "
     "followed by ns"},
    {"until", 0, CLI_TEXT, "TIME", &given.until, "omit what ended later"},
    {"launched-before", 0, CLI_TEXT, "N", &given.launched_before,
     "select GPU activity by launch number instead, as returned by marey_gpu_stop_later()"},
    {"about", 0, CLI_TEXT, "JSON", &wants.about,
     "an object to store under the key \"marey\", such as {\"rank\":0,\"step\":9}"},
    {"quiet", 'q', CLI_FLAG, NULL, &given.quiet, "print nothing on success"},
    /* The settings that select samples follow. */
    {"samples", 0, CLI_FLAG, NULL, &given.samples,
     "samples instead of ranges; in timelines beside them. The next\n"
     "options imply it and select samples"},
};

/* ---- options that only some formats take ---- */

static const struct bound {
    const char *option;
    uint32_t bit;                 /* of enum marey_export_takes; 0: --split */
    bool is_prefixed, is_refused; /* its help begins with the formats; other formats refuse it */
} bounds[] = {
    {"split", 0, true, true},
    {"filter", MAREY_EXPORT_FILTER, false, true},
    {"by", MAREY_EXPORT_BY, true, true},
    {"baseline", MAREY_EXPORT_BASELINE, true, true},
    {"startup", MAREY_EXPORT_STARTUP, true, false},
    {"from", MAREY_EXPORT_WINDOW, true, true},
    {"until", MAREY_EXPORT_WINDOW, true, true},
    {"launched-before", MAREY_EXPORT_WINDOW, true, true},
    {"about", MAREY_EXPORT_WINDOW, true, true},
};
enum {
    N_BOUNDS = sizeof bounds / sizeof bounds[0],
    N_OPTIONS = sizeof options / sizeof options[0]
};

static bool takes(const struct marey_export_format *format, const struct bound *bound)
{
    return bound->bit != 0 ? (format->takes & bound->bit) != 0 : format->split != NULL;
}

/* "a, b or c": the formats that accept an option, with `last` before the last one. */
static const char *names_of(const struct bound *bound, const char *last, char *into, size_t size)
{
    const struct marey_export_format *format;
    size_t n = 0;
    into[0] = '\0';
    for (size_t i = 0; (format = marey_export_format_at(i)) != NULL; i++)
        n += takes(format, bound);
    for (size_t i = 0; (format = marey_export_format_at(i)) != NULL; i++)
        if (takes(format, bound))
            cli_append(into, size, --n == 0 ? last : ", ", format->name);
    return into;
}

static struct cli_option *find_option(const char *name)
{
    size_t i = 0;
    while (strcmp(options[i].name, name) != 0)
        i++;
    return &options[i];
}

/* Wraps `text` at blanks for the help. */
static void wrap(char *text)
{
    enum { WIDTH = 62 };
    char *line = text, *blank = NULL;
    for (char *c = text; *c != '\0'; c++) {
        if (c - line > WIDTH && blank != NULL) {
            *blank = '\n';
            line = blank + 1;
            blank = NULL;
        }
        blank = *c == ' ' ? c : blank;
    }
}

static bool format_term(size_t i, struct cli_term *term)
{
    const struct marey_export_format *const format = marey_export_format_at(i);
    if (format != NULL)
        *term = (struct cli_term){format->name, format->brief, format->extensions};
    return format != NULL;
}

static void prepare(void)
{
    static char helps[N_BOUNDS][256];
    char names[128];
    cli_term_choices(format_term, format_choices, sizeof format_choices);
    for (size_t i = 0; i < N_BOUNDS; i++) {
        struct cli_option *const option = find_option(bounds[i].option);
        if (!bounds[i].is_prefixed)
            continue;
        snprintf(helps[i], sizeof helps[i], "%s: %s",
                 names_of(&bounds[i], ", ", names, sizeof names), option->help);
        wrap(helps[i]);
        option->help = helps[i];
    }
    report_options_append_selecting(&cli_command_export, report_options_find("samples"));
}

/* False, with a message, if an option was given that the format does not accept. */
static bool check_options(const struct marey_export_format *format)
{
    char names[128];
    for (size_t i = 0; i < N_BOUNDS; i++)
        if (bounds[i].is_refused && cli_given(find_option(bounds[i].option)) != NULL &&
            !takes(format, &bounds[i]))
            return cli_refuse("--%s goes with --to %s", bounds[i].option,
                              names_of(&bounds[i], " or ", names, sizeof names));
    return true;
}

/* ---- the format ---- */

static const struct marey_export_format *find_format(const char *name)
{
    size_t i = 0;
    while (strcmp(marey_export_format_at(i)->name, name) != 0)
        i++;
    return marey_export_format_at(i);
}

/* The length of the format's longest extension that the output's name has; 0: none. */
static size_t extension_length(const struct marey_export_format *format)
{
    size_t len, longest = 0;
    const char *at = format->extensions;
    for (const char *word; given.output != NULL && (word = cli_next_word(&at, &len)) != NULL;)
        if (len > longest && cli_ends_with(given.output, word, len))
            longest = len;
    return longest;
}

/* By --to, else by the longest extension of the output's name, else the first format. */
static const struct marey_export_format *choose_format(void)
{
    const struct marey_export_format *chosen = marey_export_format_at(0), *format;
    size_t longest = 0;
    if (given.to != NULL)
        chosen = find_format(given.to);
    for (size_t i = 0; given.to == NULL && (format = marey_export_format_at(i)) != NULL; i++)
        if (extension_length(format) > longest) {
            chosen = format;
            longest = extension_length(format);
        }
    const struct marey_export_format *const split =
        chosen->split != NULL ? find_format(chosen->split) : NULL;
    return split != NULL && (given.split || extension_length(split) != 0) ? split : chosen;
}

/* ---- the file ---- */

/* runs/train.marey becomes train.pftrace in the current directory. Written to `path`, of `size` bytes. */
static const char *default_output(const marey_recording *recording, const char *extensions,
                                  char *path, size_t size)
{
    char stem[NAME_MAX];
    snprintf(path, size, "%s%.*s",
             cli_stem(marey_recording_name(recording), stem, sizeof stem, "recording"),
             (int)strcspn(extensions, " "), extensions);
    return path;
}

/* Whether the output is one of the inputs. */
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

/* Parses digits followed by `end`; false for anything else. NULL leaves `*number` unchanged. */
static bool parse_number(const char *text, const char *end, uint64_t *number)
{
    char *rest;
    if (text == NULL)
        return true;
    errno = 0;
    *number = strtoull(text, &rest, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && strcmp(rest, end) == 0;
}

/* Parses "2.5" or "35503677894664ns"; false for anything else. NULL leaves `*ns` unchanged. */
static bool parse_time(const char *text, uint64_t first_ns, uint64_t *ns)
{
    char *end;
    if (text == NULL)
        return true;
    if (cli_ends_with(text, "ns", 2))
        return parse_number(text, "ns", ns);
    const double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0 && seconds < 1e9))
        return false;
    *ns = first_ns + (uint64_t)(seconds * 1e9);
    return true;
}

static bool parse_window(const struct cli_recordings *recordings)
{
    if (!parse_number(given.launched_before, "", &wants.launched_before))
        return cli_refuse("--launched-before '%s' is not the number of a launch",
                          given.launched_before);
    const uint64_t first_ns = first_event_ns(recordings);
    const bool has_from = parse_time(given.from, first_ns, &wants.from_ns);
    if (has_from && parse_time(given.until, first_ns, &wants.until_ns))
        return true;
    return cli_refuse(
        "--%s '%s' is not a time: seconds since the first event, such as 2.5, or nanoseconds of "
        "CLOCK_MONOTONIC followed by ns",
        has_from ? "until" : "from", has_from ? given.until : given.from);
}

/* `what` ends with the option that includes it. */
static void say_left_out(uint64_t ns, const char *what)
{
    char time[32];
    if (ns != 0 && !given.quiet)
        cli_say("omitted %s of %s includes them",
                marey_text_number((double)ns, MAREY_UNIT_NS, time, sizeof time), what);
}

static marey_status export_to(const struct cli_recordings *recordings,
                              const struct marey_export_format *format, int fd)
{
    uint64_t startup_ns = 0, idle_ns = 0, n_too_deep = 0, n_unmatched = 0;
    wants.samples = given.samples ? report_options_settings(0) : NULL;
    wants.baseline = baseline.list;
    wants.n_baseline = baseline.n;
    wants.calls = given.calls;
    wants.startup = given.startup;
    wants.startup_ns = &startup_ns;
    wants.idle_ns = &idle_ns;
    wants.n_too_deep = &n_too_deep;
    wants.n_unmatched = &n_unmatched;
    wants.progress = cli_progress;
    wants.progress_ctx = (void *)"writing";
    const marey_status status =
        marey_export(recordings->list, recordings->n, format->name, &wants, fd);
    cli_progress_end();
    if (status != MAREY_OK)
        return status;
    say_left_out(startup_ns, "imports at start-up; --startup");
    say_left_out(idle_ns, "idle processes and workers; --idle");
    cli_say_left_out(n_too_deep, "range", "nested too deep");
    cli_say_left_out(n_unmatched, "async event", "too many async ranges were in flight");
    return MAREY_OK;
}

static void print_warnings(const struct cli_recordings *recordings)
{
    for (size_t r = 0; r < recordings->n; r++) {
        const char *warning;
        for (size_t i = 0; (warning = marey_recording_warning(recordings->list[r], i)) != NULL; i++)
            cli_say("%s", warning);
        cli_print_notes(recordings->list[r]);
    }
}

struct job {
    const struct cli_recordings *recordings;
    const struct marey_export_format *format;
};

static marey_status write_job(void *ctx, int fd)
{
    const struct job *job = ctx;
    return export_to(job->recordings, job->format, fd);
}

/* Whether a leftover of an earlier file of that name would corrupt the new one; its path goes to `out`. */
static bool has_leftover(const struct marey_export_format *format, const char *path, char *out,
                         size_t size)
{
    char final[PATH_MAX];
    struct stat st;
    size_t len;
    const char *at = format->leftovers != NULL ? format->leftovers : "";
    for (const char *word; (word = cli_next_word(&at, &len)) != NULL;) {
        snprintf(out, size, "%s%.*s", realpath(path, final) != NULL ? final : path, (int)len, word);
        if (stat(out, &st) == 0 && st.st_size > 0)
            return true;
    }
    return false;
}

static int export_to_file(const struct cli_recordings *recordings,
                          const struct marey_export_format *format, const char *path)
{
    struct job job = {recordings, format};
    char leftover[PATH_MAX + 16];
    if (has_leftover(format, path, leftover, sizeof leftover))
        return cli_fail(
            "%s is left over from an earlier file of that name and would corrupt the new one; "
            "remove it, or choose another name",
            leftover);
    return cli_write_file(path, write_job, &job, given.quiet ? NULL : format->next);
}

static int export_to_stdout(const struct cli_recordings *recordings,
                            const struct marey_export_format *format)
{
    if (isatty(STDOUT_FILENO) && format->is_binary)
        return cli_fail("refusing to write binary data to a terminal; redirect it, or use -o FILE");
    return cli_status(export_to(recordings, format, STDOUT_FILENO));
}

static int export(int n_args, char **args)
{
    if (n_args == 0)
        return cli_fail("export needs a recording: marey export RUN.marey --to perfetto");
    signal(SIGXFSZ, SIG_IGN); /* report a file-size limit as an error, like a full disk */
    const struct marey_export_format *format = choose_format();
    if (format->missing != NULL) /* check before a file is created or truncated */
        return cli_fail("%s", format->missing);
    if (!check_options(format))
        return CLI_BAD;
    if (!report_options_check_selecting(&cli_command_export, report_options_find("samples"),
                                        &given.samples))
        return CLI_BAD;
    if (given.calls && given.samples)
        return cli_fail("calls and samples need separate files: remove --calls, or the options "
                        "that select samples");
    struct cli_recordings recordings CLI_FINALLY(cli_close) = {0};
    if (!(format->content == MAREY_EXPORT_EVENTS ? cli_open_whole : cli_open)(&recordings, args,
                                                                              n_args) ||
        !cli_select_process(&recordings, given.process))
        return CLI_BAD;
    /* Samples drawn by default are also those of the selected processes. */
    given.samples |=
        given.process != NULL && !given.calls &&
        marey_report_is_there("samples", recordings.list, recordings.n) &&
        ((format->takes & MAREY_EXPORT_STARTUP) == 0 || first_event_ns(&recordings) == 0);
    if (!parse_window(&recordings) ||
        (given.baseline != NULL && !cli_open(&baseline, (char **)&given.baseline, 1)))
        return CLI_BAD;
    char own_name[2 * NAME_MAX];
    const char *const output =
        given.output != NULL
            ? given.output
            : default_output(recordings.list[0], format->extensions, own_name, sizeof own_name);
    int status;
    if (strcmp(output, "-") == 0)
        status = export_to_stdout(&recordings, format);
    else if (is_input(output, args, n_args))
        status = cli_fail("%s is also the input; choose another file with -o", output);
    else
        status = export_to_file(&recordings, format, output);
    if (status == CLI_FINE) {
        print_warnings(&recordings);
        print_warnings(&baseline);
    }
    status = cli_report_damage(&baseline, cli_report_damage(&recordings, status));
    cli_close(&baseline);
    return status;
}

struct cli_command cli_command_export = {
    .name = "export",
    .usage = "RUN.marey|TRACE|FOLDER... [--to FORMAT] [-o FILE]",
    .brief = "a timeline, a flame graph or a database",
    .about =
        "Writes recordings into one file for another tool. Several recordings, and all ranks in\n"
        "them, share one time axis. Files may be of any size; memory does not grow with them.\n"
        "Also converts traces and profiles of other tools ('marey import --help' lists them).\n"
        "\n"
        "Timelines and tables contain single events: ranges, marks, counters and GPU activity.\n"
        "Flame graphs and stacks contain the total time of each path of nested ranges, without\n"
        "marks, counters and async ranges; with --baseline they show the change. Formats of\n"
        "functions and callers contain the call profile; without one samples, else ranges.\n"
        "Timelines contain samples ('marey attach', 'marey run --sample') beside other events;\n"
        "--samples exports samples in every format.",
    .terms = "Formats",
    .term = format_term,
    .prepare = prepare,
    .options = options,
    .n_options = N_OPTIONS,
    .examples =
        "  marey export train.marey                      train.pftrace, for ui.perfetto.dev\n"
        "  marey export train.marey -o train.tar         a trace for each rank, opened as one\n"
        "  marey export train.marey --to chrome          train.json\n"
        "  marey export a.marey b.marey -o both.pftrace  two runs side by side\n"
        "  marey export train.marey -o train.svg         a flame graph\n"
        "  marey export new.marey -b old.marey -o d.svg  what became slower or faster\n"
        "  marey export trace.json.gz -o trace.db        one format into another\n"
        "  marey export train.marey --to kineto          train.pt.trace.json, for tools of torch\n"
        "  marey export train.marey --to pstats          train.prof, for pstats and snakeviz\n"
        "  marey export train.marey --calls -o t.svg     a flame graph of functions\n"
        "  marey export train.marey --iterations slow -o slow.svg  samples of slow iterations\n"
        "  marey export train.marey --to csv -o - | head\n"
        "  marey export train.marey -o train.db          a database, for sqlite3",
    .run = export,
};
