/*
 * The whole answer of `marey report`, for people. From top to bottom: what ran, the tables, its
 * iterations, what was left open, what was lost, what the measuring cost, and what else the reader ought to know.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"
#include "present/draw/internal.h"
#include "present/text/internal.h"
#include <marey/communication.h>

/* How many ranges left open are listed; the rest is a number. */
enum { MAX_OPEN = 10, COMMAND_WIDTH = 60 };

struct report {
    marey_summary *summary;
    const struct marey_summary_text_options *options;
    struct marey__buf line;
    FILE *out;
};

static marey_table *table_of(const struct report *report, enum marey__summary_table table)
{
    return report->summary->tables[table];
}

static const char *style(const struct report *report, const char *code)
{
    return report->options->text.color ? code : "";
}

static marey_status end_line(struct report *report)
{
    marey__buf_puts(&report->line, "\n");
    return marey__buf_to_stream(&report->line, report->out);
}

/* ---- the headline ---- */

/* The longest of the processes: they run side by side. */
static uint64_t longest_ns(const marey_table *processes)
{
    uint64_t longest = 0;
    for (size_t row = 0; row < marey_table_n_rows(processes); row++)
        longest = MAREY__MAX(longest, marey__cell_of(processes, row, "duration_ns").as.u64);
    return longest;
}

static size_t count_active(const marey_table *processes)
{
    size_t n = 0;
    for (size_t row = 0; row < marey_table_n_rows(processes); row++)
        n += marey__cell_of(processes, row, "events").as.u64 != 0;
    return n;
}

static size_t count_ends(const marey_table *processes, const char *end)
{
    size_t n = 0;
    for (size_t row = 0; row < marey_table_n_rows(processes); row++) {
        const struct marey_cell cell = marey__cell_of(processes, row, "end");
        n += !cell.is_null && strcmp(cell.as.text, end) == 0;
    }
    return n;
}

static void put_command(struct report *report, const marey_table *processes)
{
    if (marey_table_n_rows(processes) == 0)
        return;
    const struct marey_cell command = marey__cell_of(processes, 0, "command");
    if (command.is_null || command.len == 0)
        return;
    marey__buf_puts(&report->line, ": ");
    marey__text_put(&report->line, command.as.text, command.len, COMMAND_WIDTH);
}

/* Ends worth a word; the others closed their logs. */
static void put_ends(struct marey__buf *line, const marey_table *processes)
{
    static const struct {
        const char *end, *words;
    } told[] = {{"unclosed", "ended by a kill or _exit"},
                {"running", "still running"},
                {"write failed", "not recorded to the end because a write failed"}};
    const bool is_alone = marey_table_n_rows(processes) == 1;
    for (size_t i = 0; i < MAREY__COUNT_OF(told); i++) {
        const size_t n = count_ends(processes, told[i].end);
        if (n != 0 && is_alone)
            marey__buf_printf(line, ", %s", told[i].words);
        else if (n != 0)
            marey__buf_printf(line, ", %zu %s", n, told[i].words);
    }
}

static marey_status put_headline(struct report *report)
{
    const marey_table *processes = table_of(report, MAREY__TABLE_PROCESSES);
    const marey_summary *summary = report->summary;
    struct marey__buf *line = &report->line;
    marey__buf_puts(line, style(report, BOLD));
    marey__text_put(line, summary->title, strlen(summary->title), 0);
    marey__buf_puts(line, style(report, PLAIN));
    put_command(report, processes);
    MAREY_TRY(end_line(report));
    if (summary->cost.events == 0) {
        marey__buf_puts(line, "No events were recorded.");
        return end_line(report);
    }
    marey__text_count_of(line, count_active(processes), "process");
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, summary->n_threads, "thread");
    marey__buf_puts(line, ", ");
    marey__text_duration(line, (double)longest_ns(processes), NULL);
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, summary->cost.events, "event");
    put_ends(line, processes);
    return end_line(report);
}

/* ---- tables ---- */

static marey_status put_table(struct report *report, const marey_table *table, bool has_title,
                              uint32_t limit)
{
    static const char *const one_process[] = {"processes", "rank_min_ns", "rank_max_ns", "max_rank",
                                              NULL};
    /* What is the same in all rows of these; a line below the tables says it. */
    static const char *const many_ranks[] = {"per", "median_ns", NULL};
    const size_t n = marey_table_n_rows(table);
    const bool is_tree = strcmp(marey_table_name(table), "tree") == 0;
    const bool is_alone = marey_table_n_rows(table_of(report, MAREY__TABLE_PROCESSES)) <= 1;
    struct marey__text_view view = {
        .table = table,
        .options = report->options->text,
        .n_rows = limit != 0 && n > limit ? limit : n,
        .hide = is_alone                                             ? one_process
                : table == table_of(report, MAREY__TABLE_RANK_TIMES) ? many_ranks
                                                                     : NULL,
    };
    view.options.tree = is_tree ? "name" : NULL;
    MAREY_TRY(end_line(report)); /* an empty one */
    if (n == 0) {
        marey__buf_printf(&report->line, "No %s.", marey_table_name(table));
        return end_line(report);
    }
    if (has_title) {
        marey__buf_printf(&report->line, "%s%s%s", style(report, DIM), marey_table_name(table),
                          style(report, PLAIN));
        MAREY_TRY(end_line(report));
    }
    MAREY_TRY(marey__text_draw(&view, report->out));
    if (view.n_rows == n)
        return MAREY_OK;
    marey__buf_printf(&report->line, "%s... and %zu more; --all shows them%s", style(report, DIM),
                      n - view.n_rows, style(report, PLAIN));
    return end_line(report);
}

/* Many ranks: what is usual, and who is not; each row of each rank where all rows are wanted. */
static marey_status put_exceptions(struct report *report)
{
    static const enum marey__summary_table tables[] = {
        MAREY__TABLE_RANK_SPREAD, MAREY__TABLE_RANK_TIMES, MAREY__TABLE_RANK_OUTLIERS,
        MAREY__TABLE_RANK_HOSTS};
    const uint32_t limit = report->options->limit;
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++) {
        const bool is_spread = tables[i] == MAREY__TABLE_RANK_SPREAD;
        const marey_table *table = table_of(report, tables[i]);
        if (marey_table_n_rows(table) != 0)
            MAREY_TRY(put_table(report, table, true,
                                is_spread ? limit : MAREY__MIN(limit, (uint32_t)MAREY__RANK_ROWS)));
    }
    return MAREY_OK;
}

static marey_status put_tables(struct report *report)
{
    marey_table *tables[MAREY__N_TABLES + 1];
    size_t n;
    const uint32_t limit = report->options->limit;
    MAREY_TRY(marey__report_tables(report->summary, report->options->tables, tables, &n));
    for (size_t i = 0; i < n; i++) {
        const bool is_by_exception = tables[i] == table_of(report, MAREY__TABLE_RANKS) &&
                                     marey__report_has_many_ranks(report->summary);
        if (is_by_exception)
            MAREY_TRY(put_exceptions(report));
        if (!is_by_exception || limit == 0)
            MAREY_TRY(put_table(report, tables[i], n > 1 || is_by_exception, limit));
    }
    return MAREY_OK;
}

static marey_status put_section(struct report *report)
{
    const struct marey_write_options wants = {.text = report->options->text,
                                              .limit = report->options->limit};
    return report->options->section != NULL
               ? marey_report_write(report->options->section, "text", &wants, report->out)
               : MAREY_OK;
}

/* ---- what stands below ---- */

static marey_status put_open(struct report *report)
{
    const marey_table *open = table_of(report, MAREY__TABLE_OPEN);
    const size_t n = marey_table_n_rows(open),
                 n_processes = marey_table_n_rows(table_of(report, MAREY__TABLE_PROCESSES));
    struct marey__buf *line = &report->line;
    if (n == 0)
        return MAREY_OK;
    marey__buf_puts(line, style(report, YELLOW));
    marey__buf_puts(line, "left open: ");
    marey__text_count_of(line, n, "range");
    marey__buf_printf(line, " had begun and not ended%s", style(report, PLAIN));
    MAREY_TRY(end_line(report));
    for (size_t row = 0; row < n && row < MAX_OPEN; row++) {
        const struct marey_cell name = marey__cell_of(open, row, "name"),
                                thread = marey__cell_of(open, row, "thread");
        marey__buf_puts(line, "  ");
        marey__text_put(line, name.as.text, name.len, COMMAND_WIDTH);
        marey__buf_puts(line, ", since ");
        marey__text_duration(line, (double)marey__cell_of(open, row, "since_ns").as.u64, NULL);
        marey__buf_puts(line, " after the start");
        if (thread.len != 0) {
            marey__buf_puts(line, ", thread ");
            marey__text_put(line, thread.as.text, thread.len, COMMAND_WIDTH);
        }
        if (n_processes > 1)
            marey__buf_printf(line, ", process %" PRId64, marey__cell_of(open, row, "pid").as.i64);
        MAREY_TRY(end_line(report));
    }
    if (n > MAX_OPEN) {
        marey__buf_printf(line, "  ... and %zu more", n - MAX_OPEN);
        MAREY_TRY(end_line(report));
    }
    return MAREY_OK;
}

static marey_status put_loss(struct report *report)
{
    const struct marey_cost *cost = &report->summary->cost;
    struct marey__buf *line = &report->line;
    if (report->summary->source[0] != '\0')
        return MAREY_OK; /* nobody knows what another tool lost */
    if (cost->lost_events == 0 && cost->n_stopped == 0 && cost->n_cut == 0) {
        marey__buf_puts(line, "lost: none");
        return end_line(report);
    }
    const char *next = "lost: ";
    marey__buf_puts(line, style(report, YELLOW));
    if (cost->n_stopped != 0) {
        marey__buf_printf(line, "%sall events after recording stopped in ", next);
        marey__text_count_of(line, cost->n_stopped, "process");
        next = ", and ";
    }
    if (cost->n_cut != 0) {
        marey__buf_printf(line, "%sunknown in ", next);
        marey__text_count_of(line, cost->n_cut, "process");
        marey__buf_puts(line, ", whose log has no end");
        next = ", and ";
    }
    if (cost->lost_events != 0) {
        marey__buf_puts(line, next);
        marey__text_count_of(line, cost->lost_events, "event");
        marey__buf_puts(line, " between ");
        marey__text_duration(line, (double)cost->lost_first_ns, NULL);
        marey__buf_puts(line, " and ");
        marey__text_duration(line, (double)cost->lost_last_ns, NULL);
        marey__buf_puts(line, " after the start; times of ranges around there are not complete");
    }
    marey__buf_puts(line, style(report, PLAIN));
    return end_line(report);
}

static marey_status put_cost(struct report *report)
{
    struct marey__buf *line = &report->line;
    if (report->summary->source[0] != '\0' && report->summary->cost.events != 0)
        marey__buf_printf(line, "imported from %s", report->summary->source);
    else if (!marey__cost_put(line, &report->summary->cost))
        return MAREY_OK;
    MAREY_TRY(end_line(report));
    return marey__cost_put_missing(line, &report->summary->cost) ? end_line(report) : MAREY_OK;
}

static marey_status put_warnings(struct report *report)
{
    const marey_table *const warnings = table_of(report, MAREY__TABLE_WARNINGS);
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++) {
        const struct marey_cell text = marey_table_cell(warnings, row, 0);
        marey__buf_printf(&report->line, "%snote:%s ", style(report, YELLOW), style(report, PLAIN));
        marey__text_put(&report->line, text.as.text, text.len, 0);
        MAREY_TRY(end_line(report));
    }
    return MAREY_OK;
}

/* A site may be known without a range of it. */
static bool has_range(const struct report *report, const char *name)
{
    const marey_table *ranges = table_of(report, MAREY__TABLE_RANGES);
    for (size_t row = 0; row < marey_table_n_rows(ranges); row++)
        if (strcmp(marey__cell_of(ranges, row, "name").as.text, name) == 0)
            return true;
    return false;
}

/* Whether 'marey breakdown' has more: GPU activity, or communication. */
static bool has_breakdown(const struct report *report)
{
    const marey_table *sites = table_of(report, MAREY__TABLE_SITES);
    const size_t category = (size_t)marey_table_find(sites, "category");
    if (marey_table_n_rows(table_of(report, MAREY__TABLE_KERNELS)) != 0)
        return true;
    for (size_t row = 0; row < marey_table_n_rows(sites); row++)
        if (strcmp(marey_table_cell(sites, row, category).as.text, MAREY_COMMUNICATION) == 0 &&
            has_range(report, marey__cell_of(sites, row, "name").as.text))
            return true;
    return false;
}

static marey_status put_next(struct report *report)
{
    if (!has_breakdown(report))
        return MAREY_OK;
    marey__buf_puts(&report->line,
                    "next: marey breakdown shows computation, communication and idle time");
    return end_line(report);
}

static marey_status put_report(struct report *report)
{
    MAREY_TRY(marey__report_sort(report->summary, report->options->sort));
    MAREY_TRY(put_headline(report));
    if (report->summary->cost.events != 0)
        MAREY_TRY(put_tables(report));
    MAREY_TRY(end_line(report));
    MAREY_TRY(put_section(report));
    MAREY_TRY(marey__report_iterations(report->summary, &report->line, report->out));
    MAREY_TRY(marey__report_ranks(report->summary, &report->line, report->out));
    MAREY_TRY(marey__report_workers(report->summary, &report->line, report->out));
    MAREY_TRY(put_open(report));
    MAREY_TRY(put_loss(report));
    MAREY_TRY(put_cost(report));
    MAREY_TRY(put_warnings(report));
    MAREY_TRY(put_next(report));
    return fflush(report->out) == 0 ? MAREY_OK : marey__fail_errno("write the report");
}

marey_status marey_summary_text(marey_summary *summary,
                                const struct marey_summary_text_options *options, FILE *out)
{
    static const struct marey_summary_text_options defaults;
    struct report report = {
        .summary = summary, .options = options != NULL ? options : &defaults, .out = out};
    const marey_status status = put_report(&report);
    marey__buf_fini(&report.line);
    return status;
}
