/* marey import: convert traces and profiles of other tools to a recording. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/cli.h"

static struct {
    const char *output, *from;
    bool force, quiet;
    uint32_t jobs, rate;
} given;

static char format_choices[128];

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "DIR", &given.output,
     "the recording (default: the name of the first file with\n"
     ".marey, in the current directory)"},
    {"from", 0, CLI_CHOICE, format_choices, &given.from,
     "the format of the files (default: detected by their first bytes)"},
    {"rate", 0, CLI_COUNT, "HZ", &given.rate,
     "samples per second, for stacks without times: py-spy raw and\n"
     "other collapsed stacks (default: 100)"},
    {"force", 0, CLI_FLAG, NULL, &given.force, "replace an existing recording"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "files to read in parallel (default: one per CPU core)"},
    {"quiet", 'q', CLI_FLAG, NULL, &given.quiet, "print nothing on success"},
};

/* ---- output ---- */

/* runs/rank0.json.gz becomes rank0.marey in the current directory. */
static void default_output(const char *path, char *into, size_t size)
{
    char stem[NAME_MAX];
    snprintf(into, size, "%s.marey", cli_stem(path, stem, sizeof stem, "imported"));
}

/* False, with a message, if the directory must not be used. */
static bool may_use(const char *path)
{
    char quoted[PATH_MAX];
    if (!cli_may_hold_recording(path, cli_quote(path, quoted, sizeof quoted)))
        return false;
    if (cli_look_at(path) != CLI_IS_RECORDING)
        return true;
    if (!given.force)
        cli_fail("%s already contains a recording; --force replaces it", quoted);
    return given.force;
}

/* Replaces the old recording by the complete new one. */
static bool replace(const char *path, const char *with)
{
    if (cli_look_at(path) == CLI_IS_RECORDING && !cli_empty_recording(path))
        return cli_refuse("cannot remove the old recording in %s: %s", path, strerror(errno));
    if (rename(with, path) == 0)
        return true;
    return cli_refuse("cannot rename %s to %s: %s", with, path, strerror(errno));
}

static marey_status import_into(const char *path, char **files, int n,
                                struct marey_import_result *result)
{
    const struct marey_import_options wants = {.from = given.from,
                                               .keep_arguments = 1,
                                               .samples_per_second = given.rate,
                                               .n_jobs = given.jobs,
                                               .progress = cli_progress,
                                               .progress_ctx = (void *)"importing"};
    const marey_status status =
        marey_import((const char *const *)files, (size_t)n, path, &wants, result);
    cli_progress_end();
    return status;
}

/* ---- the command ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void say_imported(const struct marey_import_result *result, const char *path, double seconds)
{
    char quoted[PATH_MAX], events[32], bytes[32];
    cli_say("imported %s event%s of %llu file%s (%s, %s) in %.1f s; next: marey report %s",
            cli_count(result->n_events, events, sizeof events), result->n_events == 1 ? "" : "s",
            (unsigned long long)result->n_files, result->n_files == 1 ? "" : "s", result->format,
            marey_text_number((double)result->n_bytes, MAREY_UNIT_BYTES, bytes, sizeof bytes),
            seconds, cli_quote(path, quoted, sizeof quoted));
}

static int import(int n_args, char **args)
{
    if (n_args == 0)
        return cli_fail("import needs a file: marey import trace.json.gz -o RUN.marey");
    char name[PATH_MAX], beside[PATH_MAX + 16];
    if (given.output != NULL)
        snprintf(name, sizeof name, "%s", given.output);
    else
        default_output(args[0], name, sizeof name);
    if (!may_use(name))
        return CLI_BAD;
    signal(SIGXFSZ, SIG_IGN); /* report a file-size limit as an error, like a full disk */
    const bool is_replaced = cli_look_at(name) == CLI_IS_RECORDING;
    snprintf(beside, sizeof beside, "%s%s", name, is_replaced ? ".new" : "");
    struct marey_import_result result;
    const double start = now();
    CLI_TRY(cli_status(import_into(beside, args, n_args, &result)));
    if (is_replaced && !replace(name, beside))
        return CLI_BAD;
    if (!given.quiet)
        say_imported(&result, name, now() - start);
    marey_recording *recording = NULL;
    CLI_TRY(cli_status(marey_recording_open(name, &recording)));
    cli_print_notes(recording);
    marey_recording_close(recording);
    return CLI_FINE;
}

static bool format_term(size_t i, struct cli_term *term)
{
    const struct marey_import_format *const format = marey_import_format_at(i);
    if (format != NULL)
        *term = (struct cli_term){format->name, format->brief, NULL};
    return format != NULL;
}

static void prepare(void)
{
    cli_term_choices(format_term, format_choices, sizeof format_choices);
}

const struct cli_command cli_command_import = {
    .name = "import",
    .usage = "FILE... [-o RUN.marey] [OPTIONS]",
    .brief = "traces and profiles of other tools as a recording",
    .about =
        "Converts files of other tools to a recording, which all other commands accept. Files may\n"
        "be gzipped. Several files, or a folder of them, are the ranks of one run.\n"
        "\n"
        "report, export, compare and others also read such files and folders directly; importing\n"
        "once avoids converting them each time. Files may be of any size; memory does not grow\n"
        "with them.",
    .terms = "Formats",
    .term = format_term,
    .prepare = prepare,
    CLI_OPTIONS(options),
    .examples = "  marey import trace.json.gz                 trace.marey\n"
                "  marey import traces/ -o run.marey          a folder: each file is a rank\n"
                "  marey import rank0.json rank1.json -o run.marey\n"
                "  marey import stacks.txt --from collapsed --rate 250",
    .run = import,
};
