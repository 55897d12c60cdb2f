/* marey compare: two sets of runs; is B faster, by how much, with what uncertainty? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis_command.h"

/* Rows that fit on a screen. */
#define DEFAULT_LIMIT 30

static struct {
    bool all;
    const char *gate, *range, *unit, *html;
    uint32_t limit;
    int n_a; /* arguments before "--" */
} given = {.n_a = -1};

static const struct cli_option options[] = {
    {"fail-if-slower", 0, CLI_TEXT, "PERCENT", &given.gate,
     "exit with 1 if B's iteration is slower by more than this\n"
     "with confidence: '2' or '2%'. Without iterations any range\n"
     "counts, without ranges the wall time, of several runs each"},
    {"range", 'r', CLI_TEXT, "NAME", &given.range,
     "the range or function that --fail-if-slower checks, or\n"
     "'(wall time)' or '(CPU time)'"},
    {"region", 0, CLI_TEXT, "NAME", &given.range, "older name of --range"},
    {"limit", 'n', CLI_COUNT, "N", &given.limit,
     "at most N ranges and N functions (default: 30; all with\n"
     "--json and --csv)"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "all ranges"},
    CLI_UNIT_OPTION(&given.unit),
    {"html", 0, CLI_TEXT, "FILE", &given.html, "a page with verdicts and distributions of times"},
};

/* ---- the gate ---- */

static struct marey_cell cell_of(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

/* 1 if a row of this name (NULL: any) is slower, 0 if not, -1 if there is no such row; at least `found`. */
static int find_slower(const marey_table *table, const char *name, double percent, int found)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell low = cell_of(table, row, "low_percent");
        if (name != NULL && strcmp(cell_of(table, row, "name").as.text, name) != 0)
            continue;
        const bool is_slower = !low.is_null && low.as.f64 > percent &&
                               strcmp(cell_of(table, row, "verdict").as.text, "slower") == 0;
        found = is_slower ? 1 : found < 0 ? 0 : found;
    }
    return found;
}

static int fail_gate(const char *what, double percent)
{
    cli_say("%s is slower by more than %g %%", what, percent);
    return CLI_NO;
}

/* A gate without an interval could never fail: report an error instead. */
static int check_wall(const marey_table *program, double percent)
{
    if (cell_of(program, 0, "low_percent").is_null)
        return cli_fail(
            "one run on each side gives no confidence interval for the wall time; record several "
            "with 'marey run --repeat 5'");
    return find_slower(program, "(wall time)", percent, 0) == 0
               ? CLI_FINE
               : fail_gate(given.range != NULL ? given.range : "the program", percent);
}

static int check_gate(const marey_report *report, double percent)
{
    static const char *const names[] = {"iteration", "ranges", "program", "functions"};
    const marey_table *const iteration = marey_report_table(report, "iteration"),
                             *const ranges = marey_report_table(report, "ranges"),
                             *const program = marey_report_table(report, "program");
    const char *const range = given.range;
    int found = -1;
    if (marey_table_n_rows(program) != 0 &&
        (range != NULL ? strcmp(range, "(wall time)") == 0
                       : marey_table_n_rows(iteration) + marey_table_n_rows(ranges) == 0))
        return check_wall(program, percent);
    if (range == NULL && marey_table_n_rows(iteration) != 0)
        return find_slower(iteration, NULL, percent, 0) == 0 ? CLI_FINE
                                                             : fail_gate("the iteration", percent);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (range != NULL || i == 1)
            found = find_slower(marey_report_table(report, names[i]), range, percent, found);
    if (found < 0 && range != NULL)
        return cli_fail("no range '%s' is on both sides", range);
    return found <= 0 ? CLI_FINE : fail_gate(range != NULL ? range : "a range", percent);
}

/* ---- the two sides ---- */

static int make(int n, char **args, int n_a, marey_report **report)
{
    const char **const sides CLI_FREED = calloc((size_t)n, sizeof *sides);
    struct marey_report_options how = {.groups = sides};
    if (sides == NULL)
        return cli_fail("out of memory");
    for (int i = 0; i < n; i++)
        sides[i] = i < n_a ? "A" : "B";
    return analysis_command_make("compare", args, n, &how, NULL, report);
}

static int write_all(marey_report *report, double gate)
{
    const uint32_t limit = given.all ? 0 : given.limit != 0 ? given.limit : DEFAULT_LIMIT;
    CLI_TRY(given.html != NULL ? analysis_command_write_page(report, given.html)
                               : analysis_command_write(report, limit, given.unit));
    if (marey_report_is_damaged(report))
        return cli_fail("a recording is damaged; only the readable part is included");
    return given.gate != NULL ? check_gate(report, gate) : CLI_FINE;
}

/* A B, or A1 A2 ... -- B1 B2 ... */
static int compare(int n_args, char **args)
{
    const int n_a = given.n_a < 0 && n_args == 2 ? 1 : given.n_a;
    double gate = 0;
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    if (n_a < 1 || n_a >= n_args)
        return cli_fail(
            "compare needs two sides: marey compare A.marey B.marey, or with several of each "
            "marey compare A1.marey A2.marey -- B1.marey B2.marey");
    if (!cli_exclude(&cli_command_compare, "json csv markdown html") ||
        !cli_exclude(&cli_command_compare, "html output"))
        return CLI_BAD;
    if (given.gate != NULL && !cli_percent("fail-if-slower", given.gate, &gate))
        return CLI_BAD;
    if (given.range != NULL && given.gate == NULL)
        return cli_fail("--range goes with --fail-if-slower; --filter chooses what is shown");
    if (!analysis_command_check("compare"))
        return CLI_BAD;
    CLI_TRY(make(n_args, args, n_a, &report));
    return write_all(report, gate);
}

struct cli_command cli_command_compare = {
    .name = "compare",
    .usage = "A.marey... [--] B.marey... [OPTIONS]",
    .brief = "is B faster than A, by how much, with what confidence",
    .about =
        "Compares two recordings, or several repeats of each, range by range: the change of\n"
        "the median with a 95 % interval, a verdict (faster, slower, same: no difference\n"
        "found, unsure: too noisy to decide) and the effect on the whole iteration, the\n"
        "largest first. Any two runs of 'marey run' are compared by wall time and CPU time, and\n"
        "by self times of functions if both sides were sampled ('marey run --sample') or have\n"
        "call profiles. A recording made by 'marey run --repeat N' contains N repeats. Stats\n"
        "saved by a Stopwatch (JSON), and traces and profiles of other tools (see 'marey import\n"
        "--help'), can be compared too. Warm-up is excluded; the intervals include differences\n"
        "between repeats and correlation between iterations.",
    CLI_OPTIONS(options),
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
