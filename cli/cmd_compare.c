/* marey compare: two sets of runs; is B faster, by how much, how surely? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Rows a screen takes in at one glance. */
#define DEFAULT_LIMIT 30

static struct {
    bool json, csv, markdown, all, idle, startup;
    const char *gate, *region, *filter, *unit, *color, *output, *smallest, *html;
    uint32_t limit, jobs, skip;
    int n_a; /* arguments before the dashes */
} given = {.color = "auto", .n_a = -1};

static const struct cli_option options[] = {
    {"fail-if-slower", 0, CLI_TEXT, "PERCENT", &given.gate,
     "exit with 1 when B's iteration is slower by more than this\n"
     "with confidence: '2' or '2%'. Without iterations any region\n"
     "counts, without regions the wall time, of several runs each"},
    {"region", 'r', CLI_TEXT, "NAME", &given.region,
     "the region or function that --fail-if-slower checks, or\n"
     "'(wall time)' or '(CPU time)'"},
    {"smallest", 0, CLI_TEXT, "PERCENT", &given.smallest,
     "a change that does not matter: where nothing is shown and the\n"
     "interval is narrower, the verdict is 'same' (default: 1%)"},
    {"skip", 0, CLI_COUNT, "N", &given.skip,
     "leave the first N iterations of each run out; warm-up that\n"
     "the program marked is left out anyway"},
    {"filter", 'f', CLI_TEXT, "PATTERN", &given.filter,
     "only regions and functions whose name has this word in it, or\n"
     "matches it where it has one of *?["},
    {"limit", 'n', CLI_COUNT, "N", &given.limit,
     "at most N regions and N functions (default: 30; all with\n"
     "--json and --csv)"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "all regions"},
    {"idle", 0, CLI_FLAG, NULL, &given.idle,
     "sampled functions: all threads all the time, idle processes\n"
     "too (default: without, and a note has their time)"},
    {"startup", 0, CLI_FLAG, NULL, &given.startup,
     "functions: imports at start-up as well (default: without,\n"
     "and a note has their time)"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: summary, iteration, regions, program, functions, ..."},
    {"csv", 0, CLI_FLAG, NULL, &given.csv,
     "the regions as CSV, times in nanoseconds; without regions the\nfunctions"},
    {"markdown", 0, CLI_FLAG, NULL, &given.markdown, "for a pull request"},
    {"html", 0, CLI_TEXT, "FILE", &given.html,
     "a page to look at: verdicts, and how times are distributed"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "threads to read with (default: as many as there are cores)"},
};

/* The regions; of runs without any the functions, or at least the program. */
static marey_table *csv_table(marey_comparison *comparison)
{
    static const char *const names[] = {"regions", "functions", "program"};
    size_t i = 0;
    while (i < 2 && marey_table_n_rows(marey_comparison_table(comparison, names[i])) == 0)
        i++;
    return marey_comparison_table(comparison, names[i]);
}

static int print_comparison(void *ctx, FILE *out)
{
    marey_comparison *const comparison = ctx;
    const struct marey_compare_text_options wants = {
        .text = {.width = cli_terminal_width(out),
                 .color = cli_wants_color(out, given.color),
                 .unit = given.unit},
        .limit = given.all          ? 0
                 : given.limit != 0 ? given.limit
                                    : DEFAULT_LIMIT,
    };
    marey_status status;
    if (given.json)
        status = marey_compare_json(comparison, out);
    else if (given.csv)
        status = marey_present_csv(csv_table(comparison), out);
    else if (given.markdown)
        status = marey_compare_markdown(comparison, &wants, out);
    else
        status = marey_compare_text(comparison, &wants, out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static marey_status write_page(void *ctx, int fd)
{
    return marey_page_compare(ctx, NULL, fd);
}

static int print_to(marey_comparison *comparison, const char *path)
{
    if (given.html != NULL)
        return cli_write_file(given.html, write_page, comparison, CLI_PAGE_NEXT);
    return cli_print_file(path, print_comparison, comparison, NULL);
}

/* ---- the gate ---- */

static size_t n_rows(const marey_comparison *comparison, const char *table)
{
    return marey_table_n_rows(marey_comparison_table((marey_comparison *)comparison, table));
}

static int check_gate(const marey_comparison *comparison, double percent)
{
    const int is_slower = marey_comparison_is_slower(comparison, given.region, percent);
    if (is_slower < 0)
        return cli_fail("%s", marey_last_error());
    if (is_slower == 0)
        return CLI_FINE;
    cli_say("%s is slower by more than %g %%",
            given.region != NULL                   ? given.region
            : n_rows(comparison, "iteration") != 0 ? "the iteration"
            : n_rows(comparison, "regions") != 0   ? "a region"
                                                   : "the program",
            percent);
    return CLI_NO;
}

/* ---- the two sides ---- */

static bool add_all(marey_comparison *comparison, enum marey_compare_side side, char **paths, int n)
{
    for (int i = 0; i < n; i++)
        if (marey_comparison_add(comparison, side, paths[i]) != MAREY_OK) {
            cli_fail("%s", marey_last_error());
            return false;
        }
    return true;
}

static int compare_sides(marey_comparison *comparison, double gate)
{
    double smallest = 0;
    if (given.smallest != NULL && !cli_percent("smallest", given.smallest, &smallest))
        return CLI_BAD;
    const struct marey_compare_options wants = {
        .smallest_percent = smallest,
        .filter = given.filter,
        .skip = given.skip,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
        .wants_quantiles = given.html != NULL,
        .idle = given.idle,
        .startup = given.startup,
    };
    const marey_status status = marey_comparison_run(comparison, &wants);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int printed = print_to(comparison, given.output);
    if (printed != CLI_FINE)
        return printed;
    if (marey_comparison_is_damaged(comparison))
        return cli_fail("a recording is damaged; this is what could be read of it");
    return given.gate != NULL ? check_gate(comparison, gate) : CLI_FINE;
}

/* A B, or A1 A2 ... -- B1 B2 ... */
static int compare(int n_args, char **args)
{
    const int n_a = given.n_a < 0 && n_args == 2 ? 1 : given.n_a;
    double gate = 0;
    if (n_a < 1 || n_a >= n_args)
        return cli_fail(
            "compare needs two sides: marey compare A.marey B.marey, or with several of each "
            "marey compare A1.marey A2.marey -- B1.marey B2.marey");
    if (given.json + given.csv + given.markdown + (given.html != NULL) > 1)
        return cli_fail("--json, --csv, --markdown and --html exclude one another");
    if (given.html != NULL && given.output != NULL)
        return cli_fail("--html FILE writes the page there and excludes --output");
    if (given.gate != NULL && !cli_percent("fail-if-slower", given.gate, &gate))
        return CLI_BAD;
    if (given.region != NULL && given.gate == NULL)
        return cli_fail("--region goes with --fail-if-slower; --filter chooses what is shown");

    marey_comparison *comparison = NULL;
    if (marey_comparison_create(&comparison) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    int status = CLI_BAD;
    if (add_all(comparison, MAREY_A, args, n_a) &&
        add_all(comparison, MAREY_B, args + n_a, n_args - n_a))
        status = compare_sides(comparison, gate);
    marey_comparison_destroy(comparison);
    return status;
}

const struct cli_command cli_command_compare = {
    .name = "compare",
    .usage = "A.marey... [--] B.marey... [OPTIONS]",
    .brief = "is B faster than A, by how much, how surely",
    .about =
        "Compares two recordings, or several repeats of each, region by region: the change of\n"
        "the median with a 95 % interval, a verdict (faster, slower, same: no difference\n"
        "shown, unsure: too noisy to tell) and what it does to the whole iteration, the\n"
        "heaviest first. Any two runs of 'marey run' are compared by wall time and CPU time, and\n"
        "by self times of functions where both sides were sampled ('marey run --sample') or have\n"
        "call profiles. A recording made by 'marey run --repeat N' holds N repeats. Stats\n"
        "saved by a Stopwatch (JSON), and traces and profiles of other tools ('marey import\n"
        "--help' says which), serve as well. Warm-up is left out; differences between repeats\n"
        "and dependence between iterations are in the intervals.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey run --repeat 5 -o before.marey -- python train.py\n"
                "  marey run --repeat 5 -o after.marey -- python train.py --fast\n"
                "  marey compare before.marey after.marey\n"
                "  marey compare A1.marey A2.marey A3.marey -- B1.marey B2.marey B3.marey\n"
                "  marey compare main.marey pr.marey --fail-if-slower 2%  for CI\n"
                "  marey compare main.marey pr.marey --markdown           for the pull request\n"
                "  marey compare main.marey pr.marey --html pr.html       a page",
    .exits = "0 fine, 1 the gate failed: slower than allowed, 2 wrong usage or input.",
    .divider = &given.n_a,
    .run = compare,
};
