/* marey breakdown: computation, communication, other; what each device did in each nanosecond. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct {
    bool json, csv, print_rules, legacy;
    const char *by, *window, *rules, *unit, *color, *output, *averages, *strategy;
    uint32_t jobs;
} given = {.color = "auto"};

static const struct cli_option options[] = {
    {"by", 'b', CLI_CHOICE, "step|range|stream|process-group", &given.by,
     "one more table: a row for each of these. Work belongs to the\n"
     "step and to the ranges that it was launched in"},
    {"window", 'w', CLI_CHOICE, "gpu_span|steps", &given.window,
     "the time that the first line is of: from the first GPU work\n"
     "to the last (default), or all steps, to the end of the last\n"
     "work launched in each"},
    {"rules", 0, CLI_TEXT, "FILE", &given.rules,
     "rules that are asked before marey's own what computes,\n"
     "communicates and copies"},
    {"print-rules", 0, CLI_FLAG, NULL, &given.print_rules, "print marey's own rules, as such a file"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: summary, devices, by, idle, collectives, rules,\n"
     "warnings. Times are whole nanoseconds"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "the table of devices, or the one of --by, as CSV"},
    {"legacy", 0, CLI_FLAG, NULL, &given.legacy,
     "itwinai's computation_fraction as well, with what is wrong\n"
     "with it. Of its own files of averages (AVERAGES.csv, or a\n"
     "folder of them) that alone"},
    {"write-averages", 0, CLI_TEXT, "FILE", &given.averages,
     "write the averages that it is made of, as its CSV"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy,
     "what that file calls the strategy (default: unknown)"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "processes to read at a time (default: as many as there are\n"
     "cores)"},
};

static struct marey_text_options text_options(FILE *out)
{
    return (struct marey_text_options){.width = cli_terminal_width(out),
                                       .color = cli_wants_color(out, given.color),
                                       .unit = given.unit};
}

static int exit_status(marey_status status)
{
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* ---- itwinai's fractions, which Python computes ---- */

/* Into `out`, of recordings or of files of averages. */
static int print_fractions(int n, char *const *paths, bool is_files, FILE *out)
{
    struct cli_words words = {0};
    cli_add_word(&words, "fractions");
    cli_add_word(&words, "--width=%u", (unsigned)cli_terminal_width(out));
    if (is_files)
        cli_add_word(&words, "--files");
    if (given.json || given.csv)
        cli_add_word(&words, "--%s", given.json ? "json" : "csv");
    return cli_python(&words, n, paths, out);
}

struct paths {
    char **list;
    int n;
};

static int print_fractions_of_files(void *ctx, FILE *out)
{
    const struct paths *const paths = ctx;
    if (given.json)
        fputs("{\n  \"legacy\": ", out);
    const int status = print_fractions(paths->n, paths->list, true, out);
    if (given.json)
        fputs("}\n", out);
    return status;
}

static int print_averages(void *ctx, FILE *out)
{
    const struct paths *const paths = ctx;
    struct cli_words words = {0};
    cli_add_word(&words, "averages");
    if (given.strategy != NULL)
        cli_add_word(&words, "--strategy=%s", given.strategy);
    return cli_python(&words, paths->n, paths->list, out);
}

static int tell_fractions(struct paths *paths)
{
    if (given.averages != NULL)
        return cli_fail("--write-averages takes recordings or traces, not files of averages");
    return cli_print_file(given.output, print_fractions_of_files, paths, NULL);
}

/* How many of the paths are files of averages. */
static int count_averages(char **paths, int n)
{
    int n_averages = 0;
    for (int i = 0; given.legacy && i < n; i++)
        n_averages += cli_is_csv(paths[i]);
    return n_averages;
}

/* ---- the breakdown ---- */

struct answer {
    marey_breakdown *breakdown;
    FILE *legacy; /* itwinai's fractions; NULL: not asked for */
};

static void copy(FILE *from, FILE *out)
{
    int c;
    rewind(from);
    while ((c = getc(from)) != EOF)
        putc(c, out);
}

/* The object with one more key. */
static int print_json(const struct answer *answer, FILE *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const whole = open_memstream(&text, &len);
    if (whole == NULL)
        return cli_fail("out of memory");
    marey_status status = marey_breakdown_json(answer->breakdown, whole);
    if (fclose(whole) != 0)
        status = MAREY_ENOMEM;
    while (status == MAREY_OK && len > 0 && strchr("\n}", text[len - 1]) != NULL)
        if (text[--len] == '}')
            break;
    if (status == MAREY_OK) {
        fwrite(text, 1, len, out);
        fputs(",\n  \"legacy\": ", out);
        copy(answer->legacy, out);
        fputs("}\n", out);
    }
    free(text);
    return exit_status(status);
}

static int print_breakdown(void *ctx, FILE *out)
{
    const struct answer *const answer = ctx;
    const struct marey_text_options wants = text_options(out);
    if (given.csv)
        return exit_status(marey_present_csv(
            marey_breakdown_table(answer->breakdown, given.by != NULL ? "by" : "devices"), out));
    if (given.json && answer->legacy != NULL)
        return print_json(answer, out);
    const int status = exit_status(given.json ? marey_breakdown_json(answer->breakdown, out)
                                              : marey_breakdown_text(answer->breakdown, &wants, out));
    if (status == CLI_FINE && answer->legacy != NULL)
        copy(answer->legacy, out);
    return status;
}

/* Python comes first: where it fails, nothing is printed. */
static int print_with_fractions(struct answer *answer, struct paths *paths)
{
    int status = CLI_FINE;
    if (given.legacy && !given.csv) {
        answer->legacy = tmpfile();
        status = answer->legacy != NULL
                     ? print_fractions(paths->n, paths->list, false, answer->legacy)
                     : cli_fail("cannot make a temporary file: %s", strerror(errno));
    }
    if (status == CLI_FINE)
        status = cli_print_file(given.output, print_breakdown, answer, NULL);
    if (answer->legacy != NULL)
        fclose(answer->legacy);
    return status;
}

static int break_down(const struct cli_recordings *recordings, struct paths *paths)
{
    const struct marey_breakdown_options wants = {
        .rules = given.rules,
        .by = given.by,
        .window = given.window,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    marey_breakdown *breakdown = NULL;
    const marey_status status =
        marey_breakdown_create(recordings->list, recordings->n, &wants, &breakdown);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    struct answer answer = {.breakdown = breakdown};
    const int printed = print_with_fractions(&answer, paths);
    marey_breakdown_destroy(breakdown);
    return printed;
}

static int run(int n_args, char **args)
{
    if (given.print_rules)
        return fputs(marey_breakdown_rules(), stdout) >= 0
                   ? CLI_FINE
                   : cli_fail("cannot write: %s", strerror(errno));
    if (n_args == 0)
        return cli_fail("breakdown needs a recording or a trace: marey breakdown RUN.marey");
    if (given.json && given.csv)
        return cli_fail("--json and --csv exclude one another");
    struct paths paths = {args, n_args};
    const int n_averages = count_averages(args, n_args);
    if (n_averages != 0 && n_averages != n_args)
        return cli_fail(
            "--legacy takes files of averages or recordings and traces, not both at once");
    if (n_averages != 0)
        return tell_fractions(&paths);
    struct cli_recordings recordings;
    cli_use_jobs(given.jobs);
    if (!cli_open(&recordings, args, n_args))
        return CLI_BAD;
    int status = break_down(&recordings, &paths);
    if (status == CLI_FINE && given.averages != NULL)
        status = cli_print_file(given.averages, print_averages, &paths, NULL);
    status = cli_tell_damage(&recordings, status);
    cli_close(&recordings);
    return status;
}

const struct cli_command cli_command_breakdown = {
    .name = "breakdown",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "computation, communication, other: what devices did",
    .about =
        "Says for each GPU of each rank how long it computed, how long it communicated with\n"
        "nothing computing beside it (exposed) and hidden behind computation, how long it only\n"
        "copied, and how long it was idle, and why. Each nanosecond counts once, so the parts\n"
        "add up to the whole. Of several ranks it tells how long they waited for one another.\n"
        "Takes traces of PyTorch's profiler as they are, one file or a folder of ranks. A\n"
        "program without a GPU is told by its ranges: those of category communication, copy,\n"
        "data, idle and wait; it computes in the rest of its time.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey breakdown trace.json.gz\n"
                "  marey breakdown traces/ --by step --window steps\n"
                "  marey breakdown train.marey --json | jq .summary\n"
                "  marey breakdown --print-rules > my.rules\n"
                "  marey breakdown --legacy torch_profiling_averages.csv",
    .run = run,
};
