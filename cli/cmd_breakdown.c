/* marey breakdown: computation, communication, copies and idle time of each device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis_command.h"

static struct {
    bool print_rules, legacy;
    const char *unit, *averages, *strategy;
} given;

static const struct cli_option options[] = {
    {"print-rules", 0, CLI_FLAG, NULL, &given.print_rules, "print marey's own rules, as such a file"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"legacy", 0, CLI_FLAG, NULL, &given.legacy,
     "itwinai's computation_fraction as well, with its errors\n"
     "explained. Its files of averages (AVERAGES.csv, or a folder of\n"
     "them) give only that"},
    {"write-averages", 0, CLI_TEXT, "FILE", &given.averages,
     "write the averages that it is made of, as its CSV"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy, "the strategy in that file (default: unknown)"},
};

struct answer {
    char **paths;
    int n;
    marey_report *report;
    FILE *legacy; /* itwinai's fractions; NULL: not asked for */
};

static bool is_format(const char *format)
{
    return strcmp(analysis_command_format(), format) == 0;
}

/* ---- itwinai's fractions, which Python computes ---- */

/* Of recordings or of files of averages. */
static int print_fractions(const struct answer *answer, bool is_files, FILE *out)
{
    struct cli_words words = {0};
    cli_add_word(&words, "fractions");
    cli_add_word(&words, "--width=%u", (unsigned)cli_terminal_width(out));
    if (is_files)
        cli_add_word(&words, "--files");
    if (is_format("json") || is_format("csv"))
        cli_add_word(&words, "--%s", analysis_command_format());
    return cli_python(&words, answer->n, answer->paths, out);
}

static int print_fractions_of_files(void *ctx, FILE *out)
{
    if (is_format("json"))
        fputs("{\n  \"legacy\": ", out);
    const int status = print_fractions(ctx, true, out);
    if (is_format("json"))
        fputs("}\n", out);
    return status;
}

static int print_averages(void *ctx, FILE *out)
{
    const struct answer *const answer = ctx;
    struct cli_words words = {0};
    cli_add_word(&words, "averages");
    if (given.strategy != NULL)
        cli_add_word(&words, "--strategy=%s", given.strategy);
    return cli_python(&words, answer->n, answer->paths, out);
}

static int count_averages(const struct answer *answer)
{
    int n_averages = 0;
    for (int i = 0; given.legacy && i < answer->n; i++)
        n_averages += cli_is_csv(answer->paths[i]);
    return n_averages;
}

/* ---- the report ---- */

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
    FILE *const object = open_memstream(&text, &len);
    if (object == NULL)
        return cli_fail("out of memory");
    int status = analysis_command_print(answer->report, 0, NULL, object);
    if (fclose(object) != 0)
        status = cli_fail("out of memory");
    while (status == CLI_FINE && len > 0 && strchr("\n}", text[len - 1]) != NULL)
        if (text[--len] == '}')
            break;
    if (status == CLI_FINE) {
        fwrite(text, 1, len, out);
        fputs(",\n  \"legacy\": ", out);
        copy(answer->legacy, out);
        fputs("}\n", out);
    }
    free(text);
    return status;
}

static int print_breakdown(void *ctx, FILE *out)
{
    const struct answer *const answer = ctx;
    if (answer->legacy != NULL && is_format("json"))
        return print_json(answer, out);
    const int status = analysis_command_print(answer->report, 0, given.unit, out);
    if (status == CLI_FINE && answer->legacy != NULL)
        copy(answer->legacy, out);
    return status;
}

/* Python comes first: where it fails, nothing is printed. */
static int print_with_fractions(struct answer *answer)
{
    int status = CLI_FINE;
    if (given.legacy && (is_format("json") || is_format("text"))) {
        answer->legacy = tmpfile();
        status = answer->legacy != NULL
                     ? print_fractions(answer, false, answer->legacy)
                     : cli_fail("cannot make a temporary file: %s", strerror(errno));
    }
    if (status == CLI_FINE)
        status = cli_print_file(analysis_command_output(), print_breakdown, answer, NULL);
    if (answer->legacy != NULL)
        fclose(answer->legacy);
    return status;
}

static int break_down(struct answer *answer)
{
    struct cli_recordings recordings = {0};
    int status =
        analysis_command_open("breakdown", answer->paths, answer->n, &recordings, &answer->report);
    if (status == CLI_FINE)
        status = print_with_fractions(answer);
    if (status == CLI_FINE && given.averages != NULL)
        status = cli_print_file(given.averages, print_averages, answer, NULL);
    status = cli_report_damage(&recordings, status);
    marey_report_destroy(answer->report);
    cli_close(&recordings);
    return status;
}

static int run(int n_args, char **args)
{
    struct answer answer = {.paths = args, .n = n_args};
    if (given.print_rules)
        return fputs(marey_breakdown_rules(), stdout) >= 0
                   ? CLI_FINE
                   : cli_fail("cannot write: %s", strerror(errno));
    if (n_args == 0)
        return cli_fail("breakdown needs a recording or a trace: marey breakdown RUN.marey");
    if (!analysis_command_check("breakdown"))
        return CLI_BAD;
    const int n_averages = count_averages(&answer);
    if (n_averages == 0)
        return break_down(&answer);
    if (n_averages != n_args)
        return cli_fail("--legacy takes either files of averages or recordings and traces");
    if (given.averages != NULL)
        return cli_fail("--write-averages takes recordings or traces, not files of averages");
    return cli_print_file(analysis_command_output(), print_fractions_of_files, &answer, NULL);
}

static void prepare(void)
{
    analysis_command_prepare(&cli_command_breakdown, "breakdown");
}

struct cli_command cli_command_breakdown = {
    .name = "breakdown",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "computation, communication and idle time of devices",
    .about =
        "Prints for each GPU of each rank how long it computed, how long it communicated with\n"
        "nothing computing in parallel (exposed) and hidden by computation, how long it only\n"
        "copied, and how long it was idle, and why. Each nanosecond counts once, so the parts\n"
        "add up to the total. With several ranks: how long they waited for one another. Reads\n"
        "traces of PyTorch's profiler directly, one file or a folder of ranks. A program without\n"
        "a GPU is broken down by its ranges of category communication, copy, data, idle and\n"
        "wait; it computes in the rest of its time.",
    .prepare = prepare,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey breakdown trace.json.gz\n"
                "  marey breakdown traces/ --by step --window steps\n"
                "  marey breakdown train.marey --json | jq .summary\n"
                "  marey breakdown --print-rules > my.rules\n"
                "  marey breakdown --legacy torch_profiling_averages.csv",
    .run = run,
};
