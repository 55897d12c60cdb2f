/* marey report: read recordings, summarize, draw the tables that were asked for. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "report_mpi.h"
#include "report_options.h"

/* Rows a screen takes in at one glance. */
#define DEFAULT_LIMIT 30
#define NOT_GIVEN UINT32_MAX

static struct {
    bool json, csv, tree, threads, ranks, all, per_iteration;
    const char *sort, *filter, *unit, *color, *output, *data, *html, *table;
    const char *strategy, *itwinai;
    const char *iterations; /* "" without a value */
    const char *process;
    uint32_t depth, limit, jobs;
} given = {.color = "auto", .limit = NOT_GIVEN};

static const struct cli_option options[] = {
    {"tree", 0, CLI_FLAG, NULL, &given.tree, "which range was called from which"},
    {"threads", 0, CLI_FLAG, NULL, &given.threads, "a row for each range and thread"},
    {"ranks", 0, CLI_FLAG, NULL, &given.ranks,
     "a row for each range and rank; of more than 16 ranks what is\n"
     "usual, and which ranks and hosts are not: --all shows each row"},
    {"iterations", 0, CLI_MAYBE, "slow|A..B", &given.iterations,
     "the time of each range in an iteration, warm-up left out;\n"
     "ranks, epochs, phases and outliers. With --samples: those of\n"
     "slow iterations alone, or of these"},
    {"data", 0, CLI_TEXT, "RANGE", &given.data,
     "the range in which an iteration waits for its data: say\n"
     "what share of the time that is"},
    {"per-iteration", 0, CLI_FLAG, NULL, &given.per_iteration,
     "CSV of every iteration and every range in it"},
    {"write-itwinai", 0, CLI_TEXT, "DIR", &given.itwinai,
     "with --energy: power and epoch times as itwinai 0.3 wrote them"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy,
     "with --write-itwinai: what its column of that name says\n(default: unknown)"},
    {"process", 0, CLI_TEXT, "PID|NAME", &given.process,
     "of these processes only: a PID, worker (of a data loader),\n"
     "worker0, main (all others), or a part of the command"},
    {"sort", 's', CLI_TEXT, "COLUMN", &given.sort,
     "name, count, total, self, mean, min, p50, p90, p99, max, share\n"
     "(default: total); -COLUMN for the other direction. With\n"
     "--samples: self (default), total, samples, name"},
    {"filter", 'f', CLI_TEXT, "PATTERN", &given.filter,
     "only ranges whose name has this word in it, or matches it\n"
     "where it has one of *?["},
    {"depth", 'd', CLI_COUNT, "N", &given.depth,
     "only ranges less than N deep in others (default: all)"},
    {"limit", 'n', CLI_COUNT, "N", &given.limit,
     "at most N rows, 0 for all (default: 30; all with --json and\n"
     "--csv)"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "all rows"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"json", 0, CLI_FLAG, NULL, &given.json, "an object: ranges, lost_events, cost, and more"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "one table as CSV, times in nanoseconds"},
    {"table", 0, CLI_TEXT, "NAME", &given.table,
     "which: ranges, tree, processes, ... as --json calls them;\n"
     "docs/reference/analyses.md lists those of --gpu, --samples and\n"
     "the others"},
    {"html", 0, CLI_TEXT, "FILE", &given.html,
     "a page to look at: timeline, tables, iterations, flame graph,\n"
     "in one file that opens in any browser"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "threads to read with (default: as many as there are cores)"},
};

/* ---- what was asked for ---- */

/*
 * The analysis that was asked for, in place of the ranges or, in `section`, as a section of their report; NULL: none.
 */
static const struct marey_analysis *analysis, *section;

/* The tables, comma separated; `ranges` when none is named. */
static const char *table_list(char *into, size_t size)
{
    snprintf(into, size, "%s%s%s%s", given.tree ? ",tree" : "", given.threads ? ",threads" : "",
             given.ranks ? ",ranks" : "", given.iterations != NULL ? ",iterations" : "");
    return into[0] != '\0' ? into + 1 : section != NULL ? "" : "ranges";
}

/*
 * A column as a table calls it, "total_ns", or as people do, "total", "median"; -1 when there is
 * none.
 */
static int find_column(const marey_table *table, const char *name)
{
    char in_ns[64];
    const int column = marey_table_find(table, name);
    if (column >= 0)
        return column;
    for (size_t i = 0; i < marey_table_n_columns(table); i++) {
        const char *title = marey_table_column(table, i)->title;
        if (title != NULL && strcmp(title, name) == 0)
            return (int)i;
    }
    snprintf(in_ns, sizeof in_ns, "%s_ns", name);
    return marey_table_find(table, in_ns);
}

/* As the text is sorted: names from A to Z, everything else from the largest on. */
static bool sort_rows(marey_table *table, const char *sort)
{
    const bool is_reversed = sort[0] == '-';
    const int column = find_column(table, sort + is_reversed);
    if (column < 0)
        return false;
    const bool is_text = marey_table_column(table, (size_t)column)->type == MAREY_TYPE_TEXT;
    marey_table_sort(table, (size_t)column, is_text == is_reversed);
    return true;
}

/* The table called so, or the first that was asked for; NULL for a name that there is none of. */
static marey_table *table_for_csv(marey_summary *summary,
                                  const struct marey_summary_text_options *report)
{
    char first[32];
    if (section != NULL)
        return marey_report_table(report->section, given.table != NULL ? given.table : section->csv);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(report->tables, ","), report->tables);
    return marey_summary_table(summary, given.table != NULL ? given.table : first);
}

/* CSV is one table, sorted and cut as the text would be. */
static int print_csv(marey_summary *summary, const struct marey_summary_text_options *report,
                     FILE *out)
{
    marey_table *table = table_for_csv(summary, report);
    if (table == NULL)
        return cli_fail("no table '%s'%s%s; --json has all of them", given.table,
                        section != NULL ? " of " : "", section != NULL ? section->name : "");
    if (report->sort != NULL && !given.tree && !sort_rows(table, report->sort))
        return cli_fail("no column '%s' to sort by", report->sort);
    if (report->limit != 0)
        marey_table_truncate(table, report->limit);
    return marey_present_csv(table, out) == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* A launcher of MPI hands on what we print. It may give us a terminal of its own, and none is at the other end. */
static bool is_relayed;

/* Some MPI launchers end the job when a process exits with an error, and drop the output they have not read yet. */
static int flush_for_launcher(int status)
{
    fflush(stdout);
    if (is_relayed && status != CLI_FINE)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return status;
}

static struct marey_text_options text_wants(FILE *out)
{
    return (struct marey_text_options){.width = is_relayed ? 0 : cli_terminal_width(out),
                                       .color = !(is_relayed && strcmp(given.color, "auto") == 0) &&
                                                cli_wants_color(out, given.color),
                                       .unit = given.unit};
}

static uint32_t limit_wanted(void)
{
    const bool is_for_people = !given.json && !given.csv;
    return given.all                  ? 0
           : given.limit != NOT_GIVEN ? given.limit
           : is_for_people            ? DEFAULT_LIMIT
                                      : 0;
}

/* What was found out; without a summary, an analysis or the series is printed. */
struct findings {
    marey_summary *summary;
    marey_report *section; /* NULL: not asked for */
    int n_files;     /* that other tools wrote and are no recordings; then there is nothing else */
    bool is_itwinai; /* of GPU power and epoch times; Python reads them */
    char **files;
};

/* A few lines of another analysis below the summary, where the recordings have its events. */
static int print_short(const char *name, const struct cli_recordings *recordings, FILE *out)
{
    const struct marey_write_options wants = {.text = text_wants(out), .is_short = 1};
    marey_report *made = NULL;
    if (!marey_report_is_there(name, recordings->list, recordings->n))
        return CLI_FINE;
    marey_status status = marey_report_create(name, recordings->list, recordings->n, NULL, &made);
    if (status == MAREY_EFORMAT)
        return CLI_FINE; /* nothing after all */
    if (status == MAREY_OK)
        status = marey_report_write(made, "text", &wants, out);
    marey_report_destroy(made);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int print_report(const struct findings *findings, const struct cli_recordings *recordings,
                        FILE *out)
{
    char tables[64];
    const struct marey_summary_text_options wants = {
        .text = text_wants(out),
        .tables = table_list(tables, sizeof tables),
        .sort = given.sort,
        .limit = limit_wanted(),
        .section = findings->section,
    };
    if (given.csv)
        return print_csv(findings->summary, &wants, out);
    const marey_status status = given.json ? marey_summary_json(findings->summary, &wants, out)
                                           : marey_summary_text(findings->summary, &wants, out);
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    if (given.json || strcmp(wants.tables, "ranges") != 0)
        return CLI_FINE;
    cli_print_runs(recordings, out);
    const int result = print_short("energy", recordings, out);
    return result == CLI_FINE ? print_short("samples", recordings, out) : result;
}

static int print_series(const struct cli_recordings *recordings, FILE *out)
{
    const marey_status status =
        marey_report_per_iteration(recordings->list, recordings->n, given.filter, out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* ---- analyses of the registry ---- */

static int print_analysis(const struct findings *findings, const struct cli_recordings *recordings,
                          FILE *out)
{
    const uint32_t limit = limit_wanted();
    const struct marey_report_options how = {
        .settings = report_options_settings(limit),
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    const struct marey_write_options wants = {
        .text = text_wants(out), .table = given.table, .limit = limit};
    marey_report *made = NULL;
    marey_status status =
        findings->n_files != 0
            ? marey_report_create_files(analysis->name, (const char *const *)findings->files,
                                        (size_t)findings->n_files, &how, &made)
            : marey_report_create(analysis->name, recordings->list, recordings->n, &how, &made);
    cli_progress_end();
    if (status == MAREY_OK)
        status = marey_report_write(made,
                                    given.json  ? "json"
                                    : given.csv ? "csv"
                                                : "text",
                                    &wants, out);
    marey_report_destroy(made);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* ---- itwinai's files ---- */

static int print_itwinai_energy(const struct findings *findings, FILE *out)
{
    struct cli_words words = {0};
    cli_add_word(&words, "energy");
    cli_add_word(&words, "--width=%u", (unsigned)text_wants(out).width);
    if (given.json || given.csv)
        cli_add_word(&words, "--%s", given.json ? "json" : "csv");
    return cli_python(&words, findings->n_files, findings->files, out);
}

static int write_itwinai(int n, char **paths)
{
    struct cli_words words = {0};
    cli_add_word(&words, "power");
    cli_add_word(&words, "--folder=%s", given.itwinai);
    if (given.strategy != NULL)
        cli_add_word(&words, "--strategy=%s", given.strategy);
    return cli_python(&words, n, paths, stdout);
}

/* ---- from paths to a file ---- */

struct answer {
    const struct findings *findings;
    const struct cli_recordings *recordings;
};

static int print(void *ctx, FILE *out)
{
    const struct answer *const answer = ctx;
    const struct findings *const findings = answer->findings;
    const struct cli_recordings *const recordings = answer->recordings;
    if (findings->is_itwinai)
        return print_itwinai_energy(findings, out);
    if (analysis != NULL)
        return print_analysis(findings, recordings, out);
    return findings->summary != NULL ? print_report(findings, recordings, out)
                                     : print_series(recordings, out);
}

static int report_to(const struct findings *findings, const struct cli_recordings *recordings,
                     const char *path)
{
    struct answer answer = {findings, recordings};
    return cli_print_file(path, print, &answer, NULL);
}

static struct marey_summary_options summary_wants(const char *doing)
{
    return (struct marey_summary_options){
        .filter = given.filter,
        .max_depth = given.depth,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)doing,
        .data = given.data,
    };
}

static marey_status write_page(void *ctx, int fd)
{
    const struct cli_recordings *recordings = ctx;
    const struct marey_page_options wants = {.summary = summary_wants("writing the page")};
    const marey_status status = marey_page_write(recordings->list, recordings->n, &wants, fd);
    cli_progress_end();
    return status;
}

static int make_page(int n_args, char **args)
{
    struct cli_recordings recordings;
    if (given.json || given.csv || given.per_iteration || given.output != NULL)
        return cli_fail("--html FILE writes the page alone and excludes --json, --csv, "
                        "--per-iteration and --output");
    if (!cli_open(&recordings, args, n_args) || !cli_select_process(&recordings, given.process))
        return CLI_BAD;
    const int status = cli_write_file(given.html, write_page, &recordings, CLI_PAGE_NEXT);
    const int told = cli_report_damage(&recordings, status);
    cli_close(&recordings);
    return told;
}

static marey_status find_out(const struct cli_recordings *recordings, struct findings *findings)
{
    char tables[64];
    struct marey_summary_options wants = summary_wants("reading");
    wants.tables = given.table != NULL ? given.table : table_list(tables, sizeof tables);
    const struct marey_report_options how = {.settings = report_options_settings(0),
                                             .n_jobs = given.jobs};
    marey_status status = MAREY_OK;
    if (!given.per_iteration && analysis == NULL)
        status = marey_summary_create(recordings->list, recordings->n, &wants, &findings->summary);
    if (status == MAREY_OK && section != NULL)
        status = marey_report_create(section->name, recordings->list, recordings->n, &how,
                                     &findings->section);
    cli_progress_end();
    return status;
}

/* Nobody in it but samplers: then where they found the threads is the report. */
static bool has_samples_alone(const struct cli_recordings *recordings)
{
    for (size_t i = 0; i < recordings->n; i++)
        if (marey_recording_n_processes(recordings->list[i]) != 0)
            return false;
    return marey_report_is_there("samples", recordings->list, recordings->n);
}

static bool is_plain(void)
{
    return !given.per_iteration && analysis == NULL && section == NULL && !given.tree &&
           !given.threads && !given.ranks && given.iterations == NULL && given.table == NULL;
}

/*
 * Each log needs the same few buffers for a millisecond. Given back to the system in between, they would cost a tenth of
 * the time of a report over thousands of logs.
 */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

/* The report that one process makes, by its option; NULL: a summary, which several can share. */
static const char *made_alone(void)
{
    return given.process != NULL ? "--process"
           : given.html != NULL  ? "--html"
           : analysis != NULL    ? analysis->name
           : section != NULL     ? section->name
           : given.per_iteration ? "--per-iteration"
                                 : NULL;
}

/* What several processes have summed up. Energy and samples are of one, who opens all for them. */
static int print_share(struct report_share *share, int n_args, char **args)
{
    struct cli_recordings whole = {0};
    const bool needs_whole = share->has_energy || share->has_samples;
    int status = needs_whole && !cli_open(&whole, args, n_args) ? CLI_BAD : CLI_FINE;
    if (status == CLI_FINE)
        status = report_to(&(struct findings){.summary = share->summary},
                           needs_whole ? &whole : &share->recordings, given.output);
    if (status == CLI_FINE && share->damaged != NULL)
        status = cli_fail("%s is damaged; this is what could be read of it", share->damaged);
    marey_summary_destroy(share->summary);
    cli_close(&share->recordings);
    if (needs_whole)
        cli_close(&whole);
    return status;
}

static bool names_iterations(const char *word)
{
    return strcmp(word, "slow") == 0 ||
           (word[0] != '\0' && word[strspn(word, "0123456789.")] == '\0');
}

/* --samples --iterations slow: take the argument that is meant and is not a file out of the list; "" when there is none. */
static const char *take_iterations(char **args, int *n_args)
{
    for (int i = 0; i < *n_args; i++) {
        char *const word = args[i];
        if (!names_iterations(word) || access(word, F_OK) == 0)
            continue;
        memmove(&args[i], &args[i + 1], (size_t)(*n_args - i) * sizeof *args);
        --*n_args;
        return word;
    }
    return "";
}

static int report(int n_args, char **args)
{
    if (given.iterations != NULL && given.iterations[0] == '\0' && report_options_is_on("samples"))
        given.iterations = take_iterations(args, &n_args);
    if (!report_options_choose(&analysis))
        return CLI_BAD;
    if (analysis != NULL && analysis->is_section) {
        section = analysis;
        analysis = NULL;
    }
    if (analysis == NULL && given.iterations != NULL && given.iterations[0] != '\0')
        return cli_fail("--iterations with a value goes with --samples");
    if (n_args == 0)
        return cli_fail("report needs a recording: marey report RUN.marey");
    if (given.json && given.csv)
        return cli_fail("--json and --csv exclude one another");
    if (given.table != NULL && !given.csv && analysis == NULL)
        return cli_fail("--table NAME goes with --csv, or with a report such as --samples");
    if (given.per_iteration && (given.json || given.csv || given.iterations != NULL || given.tree))
        return cli_fail("--per-iteration writes a CSV of its own and goes with --filter and "
                        "--output only");
    const bool is_energy = report_options_is_on("energy");
    if (!is_energy && (given.itwinai != NULL || given.strategy != NULL))
        return cli_fail("--write-itwinai and --strategy go with --energy");
    if (analysis != NULL && (given.per_iteration || given.html != NULL))
        return cli_fail("--%s excludes --per-iteration and --html", analysis->name);
    keep_memory();
    cli_use_jobs(given.jobs);
    struct report_share share;
    const struct marey_summary_options wants = summary_wants("reading");
    const enum report_mpi who = report_mpi(n_args, args, &wants, made_alone(), &share);
    is_relayed = share.is_job;
    switch (who) {
    case REPORT_DONE:
        return flush_for_launcher(print_share(&share, n_args, args));
    case REPORT_LEAVE:
        return CLI_FINE;
    case REPORT_BAD:
        return CLI_BAD;
    case REPORT_ALONE:
        break;
    }
    if (given.html != NULL)
        return make_page(n_args, args);

    const bool is_itwinai = is_energy && cli_is_csv(args[0]);
    if (is_itwinai || (analysis != NULL && marey_report_is_file(analysis->name, args[0])))
        return report_to(
            &(struct findings){.n_files = n_args, .is_itwinai = is_itwinai, .files = args},
            &(struct cli_recordings){0}, given.output);
    if (given.itwinai != NULL && write_itwinai(n_args, args) != CLI_FINE)
        return CLI_BAD;
    struct cli_recordings recordings;
    /* Grid and block sizes are in the arguments of a trace. */
    if (!(section != NULL && section->needs_arguments ? cli_open_whole : cli_open)(&recordings,
                                                                                   args, n_args) ||
        !cli_select_process(&recordings, given.process))
        return CLI_BAD;
    if (is_plain() && has_samples_alone(&recordings) && !report_options_turn_on("samples", &analysis))
        return CLI_BAD;
    struct findings findings = {0};
    const int status =
        find_out(&recordings, &findings) == MAREY_OK
            ? cli_report_damage(&recordings, report_to(&findings, &recordings, given.output))
            : cli_fail("%s", marey_last_error());
    marey_summary_destroy(findings.summary);
    marey_report_destroy(findings.section);
    cli_close(&recordings);
    return flush_for_launcher(status);
}

struct cli_command cli_command_report = {
    .name = "report",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "where the time went: a table of ranges",
    .about =
        "Reads recordings and says where the time went: for each range how often it ran, how\n"
        "long in total and by itself (without the ranges inside it), typical and worst times,\n"
        "and its share of the run. Ranks, processes and several recordings are merged. What\n"
        "was lost, what is missing and what the measuring cost stand below the table. Traces and\n"
        "profiles of other tools are read as they are; 'marey import --help' says which.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples =
        "  marey report train.marey                     the table, heaviest first\n"
        "  marey report train.marey --tree --depth 3    who called whom\n"
        "  marey report train.marey -f 'data*' -s p99   some ranges, slowest tail first\n"
        "  marey report train.marey --iterations        what an iteration is made of\n"
        "  marey report train.marey --html train.html   a page with everything\n"
        "  marey report trace.json.gz --tree            a trace of torch.profiler\n"
        "  marey report train.marey --json | jq '.ranges[0]'\n"
        "  mpirun -n 8 marey report train.marey         thousands of logs, read by eight processes",
    .run = report,
};
