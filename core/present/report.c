/*
 * The whole answer of `kymo report`, for people. From top to bottom: what ran, the tables, its
 * iterations, what was left open, what was lost, what the measuring cost, and what else the reader ought to know.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/analyze_internal.h"
#include "analyze/gpu_report_internal.h"
#include "present/report_internal.h"
#include "present/style.h"
#include <kymo/communication.h>

/* How many ranges left open are listed; the rest is a number. */
enum { MAX_OPEN = 10, COMMAND_WIDTH = 60 };

struct report {
    kymo_summary *summary;
    const struct kymo_report_options *options;
    struct kymo__buf line;
    FILE *out;
};

static kymo_table *table_of(const struct report *report, enum kymo__summary_table table)
{
    return report->summary->tables[table];
}

static const char *style(const struct report *report, const char *code)
{
    return report->options->text.color ? code : "";
}

static kymo_status end_line(struct report *report)
{
    kymo__buf_puts(&report->line, "\n");
    return kymo__buf_to_stream(&report->line, report->out);
}

/* ---- the headline ---- */

/* The longest of the processes: they run side by side. */
static uint64_t longest_ns(const kymo_table *processes)
{
    uint64_t longest = 0;
    for (size_t row = 0; row < kymo_table_n_rows(processes); row++)
        longest = KYMO__MAX(longest, kymo__cell_of(processes, row, "duration_ns").as.u64);
    return longest;
}

static size_t count_active(const kymo_table *processes)
{
    size_t n = 0;
    for (size_t row = 0; row < kymo_table_n_rows(processes); row++)
        n += kymo__cell_of(processes, row, "events").as.u64 != 0;
    return n;
}

static size_t count_ends(const kymo_table *processes, const char *end)
{
    size_t n = 0;
    for (size_t row = 0; row < kymo_table_n_rows(processes); row++) {
        const struct kymo_cell cell = kymo__cell_of(processes, row, "end");
        n += !cell.is_null && strcmp(cell.as.text, end) == 0;
    }
    return n;
}

static void put_command(struct report *report, const kymo_table *processes)
{
    if (kymo_table_n_rows(processes) == 0)
        return;
    const struct kymo_cell command = kymo__cell_of(processes, 0, "command");
    if (command.is_null || command.len == 0)
        return;
    kymo__buf_puts(&report->line, ": ");
    kymo__text_put(&report->line, command.as.text, command.len, COMMAND_WIDTH);
}

/* Ends worth a word; the others closed their logs. */
static void put_ends(struct kymo__buf *line, const kymo_table *processes)
{
    static const struct {
        const char *end, *words;
    } told[] = {{"unclosed", "ended by a kill or _exit"},
                {"running", "still running"},
                {"write failed", "not recorded to the end because a write failed"}};
    const bool is_alone = kymo_table_n_rows(processes) == 1;
    for (size_t i = 0; i < KYMO__COUNT_OF(told); i++) {
        const size_t n = count_ends(processes, told[i].end);
        if (n != 0 && is_alone)
            kymo__buf_printf(line, ", %s", told[i].words);
        else if (n != 0)
            kymo__buf_printf(line, ", %zu %s", n, told[i].words);
    }
}

static kymo_status put_headline(struct report *report)
{
    const kymo_table *processes = table_of(report, KYMO__TABLE_PROCESSES);
    const kymo_summary *summary = report->summary;
    struct kymo__buf *line = &report->line;
    kymo__buf_puts(line, style(report, BOLD));
    kymo__text_put(line, summary->title, strlen(summary->title), 0);
    kymo__buf_puts(line, style(report, PLAIN));
    put_command(report, processes);
    KYMO_TRY(end_line(report));
    if (summary->cost.events == 0) {
        kymo__buf_puts(line, "No events were recorded.");
        return end_line(report);
    }
    kymo__text_count_of(line, count_active(processes), "process");
    kymo__buf_puts(line, ", ");
    kymo__text_count_of(line, summary->n_threads, "thread");
    kymo__buf_puts(line, ", ");
    kymo__text_duration(line, (double)longest_ns(processes), NULL);
    kymo__buf_puts(line, ", ");
    kymo__text_count_of(line, summary->cost.events, "event");
    put_ends(line, processes);
    return end_line(report);
}

/* ---- tables ---- */

static kymo_status put_table(struct report *report, const kymo_table *table, bool has_title,
                             uint32_t limit)
{
    static const char *const one_process[] = {"processes", "rank_min_ns", "rank_max_ns", "max_rank",
                                              NULL};
    /* What is the same in all rows of these; a line below the tables says it. */
    static const char *const many_ranks[] = {"per", "median_ns", NULL};
    const size_t n = kymo_table_n_rows(table);
    const bool is_tree = strcmp(kymo_table_name(table), "tree") == 0;
    const bool is_alone = kymo_table_n_rows(table_of(report, KYMO__TABLE_PROCESSES)) <= 1;
    struct kymo__text_view view = {
        .table = table,
        .options = report->options->text,
        .n_rows = limit != 0 && n > limit ? limit : n,
        .hide = is_alone                                            ? one_process
                : table == table_of(report, KYMO__TABLE_RANK_TIMES) ? many_ranks
                                                                    : NULL,
    };
    view.options.tree = is_tree ? "name" : NULL;
    KYMO_TRY(end_line(report)); /* an empty one */
    if (n == 0) {
        kymo__buf_printf(&report->line, "No %s.", kymo_table_name(table));
        return end_line(report);
    }
    if (has_title) {
        kymo__buf_printf(&report->line, "%s%s%s", style(report, DIM), kymo_table_name(table),
                         style(report, PLAIN));
        KYMO_TRY(end_line(report));
    }
    KYMO_TRY(kymo__text_draw(&view, report->out));
    if (view.n_rows == n)
        return KYMO_OK;
    kymo__buf_printf(&report->line, "%s... and %zu more; --all shows them%s", style(report, DIM),
                     n - view.n_rows, style(report, PLAIN));
    return end_line(report);
}

/* Many ranks: what is usual, and who is not; each row of each rank where all rows are wanted. */
static kymo_status put_exceptions(struct report *report)
{
    static const enum kymo__summary_table tables[] = {KYMO__TABLE_RANK_SPREAD, KYMO__TABLE_RANK_TIMES,
                                                      KYMO__TABLE_RANK_OUTLIERS,
                                                      KYMO__TABLE_RANK_HOSTS};
    const uint32_t limit = report->options->limit;
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++) {
        const bool is_spread = tables[i] == KYMO__TABLE_RANK_SPREAD;
        const kymo_table *table = table_of(report, tables[i]);
        if (kymo_table_n_rows(table) != 0)
            KYMO_TRY(put_table(report, table, true,
                               is_spread ? limit : KYMO__MIN(limit, (uint32_t)KYMO__RANK_ROWS)));
    }
    return KYMO_OK;
}

static kymo_status put_tables(struct report *report)
{
    kymo_table *tables[KYMO__N_TABLES + 1];
    size_t n;
    const uint32_t limit = report->options->limit;
    KYMO_TRY(kymo__report_tables(report->summary, report->options->tables, tables, &n));
    for (size_t i = 0; i < n; i++) {
        const bool is_by_exception = tables[i] == table_of(report, KYMO__TABLE_RANKS) &&
                                     kymo__report_has_many_ranks(report->summary);
        if (is_by_exception)
            KYMO_TRY(put_exceptions(report));
        if (!is_by_exception || limit == 0)
            KYMO_TRY(put_table(report, tables[i], n > 1 || is_by_exception, limit));
    }
    return KYMO_OK;
}

/* The first process's command; that of an imported trace is a name. */
static const char *command_of(const kymo_table *processes)
{
    if (kymo_table_n_rows(processes) == 0)
        return NULL;
    const struct kymo_cell command =
        kymo_table_cell(processes, 0, (size_t)kymo_table_find(processes, "command"));
    const struct kymo_cell clock =
        kymo_table_cell(processes, 0, (size_t)kymo_table_find(processes, "clock"));
    return command.len > 0 && strcmp(clock.as.text, "trace") != 0 ? command.as.text : NULL;
}

static kymo_status put_gpu(struct report *report)
{
    const kymo_table *const processes = table_of(report, KYMO__TABLE_PROCESSES);
    const struct kymo__gpu_text text = {
        .options = report->options->text,
        .limit = report->options->limit,
        .is_alone = kymo_table_n_rows(processes) <= 1,
        .ncu = {command_of(processes), kymo_table_n_rows(processes)},
    };
    return report->options->gpu != NULL
               ? kymo__gpu_report_text(report->options->gpu, &text, &report->line, report->out)
               : KYMO_OK;
}

/* ---- what stands below ---- */

static kymo_status put_open(struct report *report)
{
    const kymo_table *open = table_of(report, KYMO__TABLE_OPEN);
    const size_t n = kymo_table_n_rows(open),
                 n_processes = kymo_table_n_rows(table_of(report, KYMO__TABLE_PROCESSES));
    struct kymo__buf *line = &report->line;
    if (n == 0)
        return KYMO_OK;
    kymo__buf_puts(line, style(report, YELLOW));
    kymo__buf_puts(line, "left open: ");
    kymo__text_count_of(line, n, "range");
    kymo__buf_printf(line, " had begun and not ended%s", style(report, PLAIN));
    KYMO_TRY(end_line(report));
    for (size_t row = 0; row < n && row < MAX_OPEN; row++) {
        const struct kymo_cell name = kymo__cell_of(open, row, "name"),
                               thread = kymo__cell_of(open, row, "thread");
        kymo__buf_puts(line, "  ");
        kymo__text_put(line, name.as.text, name.len, COMMAND_WIDTH);
        kymo__buf_puts(line, ", since ");
        kymo__text_duration(line, (double)kymo__cell_of(open, row, "since_ns").as.u64, NULL);
        kymo__buf_puts(line, " after the start");
        if (thread.len != 0) {
            kymo__buf_puts(line, ", thread ");
            kymo__text_put(line, thread.as.text, thread.len, COMMAND_WIDTH);
        }
        if (n_processes > 1)
            kymo__buf_printf(line, ", process %" PRId64, kymo__cell_of(open, row, "pid").as.i64);
        KYMO_TRY(end_line(report));
    }
    if (n > MAX_OPEN) {
        kymo__buf_printf(line, "  ... and %zu more", n - MAX_OPEN);
        KYMO_TRY(end_line(report));
    }
    return KYMO_OK;
}

static kymo_status put_loss(struct report *report)
{
    const struct kymo_cost *cost = &report->summary->cost;
    struct kymo__buf *line = &report->line;
    if (report->summary->source[0] != '\0')
        return KYMO_OK; /* nobody knows what another tool lost */
    if (cost->lost_events == 0 && cost->n_stopped == 0 && cost->n_cut == 0) {
        kymo__buf_puts(line, "lost: none");
        return end_line(report);
    }
    const char *next = "lost: ";
    kymo__buf_puts(line, style(report, YELLOW));
    if (cost->n_stopped != 0) {
        kymo__buf_printf(line, "%sall events after recording stopped in ", next);
        kymo__text_count_of(line, cost->n_stopped, "process");
        next = ", and ";
    }
    if (cost->n_cut != 0) {
        kymo__buf_printf(line, "%sunknown in ", next);
        kymo__text_count_of(line, cost->n_cut, "process");
        kymo__buf_puts(line, ", whose log has no end");
        next = ", and ";
    }
    if (cost->lost_events != 0) {
        kymo__buf_puts(line, next);
        kymo__text_count_of(line, cost->lost_events, "event");
        kymo__buf_puts(line, " between ");
        kymo__text_duration(line, (double)cost->lost_first_ns, NULL);
        kymo__buf_puts(line, " and ");
        kymo__text_duration(line, (double)cost->lost_last_ns, NULL);
        kymo__buf_puts(line, " after the start; times of ranges around there are not complete");
    }
    kymo__buf_puts(line, style(report, PLAIN));
    return end_line(report);
}

static kymo_status put_cost(struct report *report)
{
    struct kymo__buf *line = &report->line;
    if (report->summary->source[0] != '\0' && report->summary->cost.events != 0)
        kymo__buf_printf(line, "imported from %s", report->summary->source);
    else if (!kymo__cost_put(line, &report->summary->cost))
        return KYMO_OK;
    KYMO_TRY(end_line(report));
    return kymo__cost_put_missing(line, &report->summary->cost) ? end_line(report) : KYMO_OK;
}

static kymo_status put_notes(struct report *report, const kymo_table *warnings)
{
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++) {
        const struct kymo_cell text = kymo_table_cell(warnings, row, 0);
        kymo__buf_printf(&report->line, "%snote:%s ", style(report, YELLOW), style(report, PLAIN));
        kymo__text_put(&report->line, text.as.text, text.len, 0);
        KYMO_TRY(end_line(report));
    }
    return KYMO_OK;
}

static kymo_status put_warnings(struct report *report)
{
    KYMO_TRY(put_notes(report, table_of(report, KYMO__TABLE_WARNINGS)));
    return report->options->gpu != NULL
               ? put_notes(report, report->options->gpu->tables[KYMO__GPU_WARNINGS])
               : KYMO_OK;
}

/* A site may be known without a range of it. */
static bool has_range(const struct report *report, const char *name)
{
    const kymo_table *ranges = table_of(report, KYMO__TABLE_RANGES);
    for (size_t row = 0; row < kymo_table_n_rows(ranges); row++)
        if (strcmp(kymo__cell_of(ranges, row, "name").as.text, name) == 0)
            return true;
    return false;
}

/* Whether 'kymo breakdown' has more: GPU activity, or communication. */
static bool has_breakdown(const struct report *report)
{
    const kymo_table *sites = table_of(report, KYMO__TABLE_SITES);
    const size_t category = (size_t)kymo_table_find(sites, "category");
    if (kymo_table_n_rows(table_of(report, KYMO__TABLE_KERNELS)) != 0)
        return true;
    for (size_t row = 0; row < kymo_table_n_rows(sites); row++)
        if (strcmp(kymo_table_cell(sites, row, category).as.text, KYMO_COMMUNICATION) == 0 &&
            has_range(report, kymo__cell_of(sites, row, "name").as.text))
            return true;
    return false;
}

static kymo_status put_next(struct report *report)
{
    if (!has_breakdown(report))
        return KYMO_OK;
    kymo__buf_puts(&report->line,
                   "next: kymo breakdown shows computation, communication and idle time");
    return end_line(report);
}

static kymo_status put_report(struct report *report)
{
    KYMO_TRY(kymo__report_sort(report->summary, report->options->sort));
    KYMO_TRY(put_headline(report));
    if (report->summary->cost.events != 0)
        KYMO_TRY(put_tables(report));
    KYMO_TRY(end_line(report));
    KYMO_TRY(put_gpu(report));
    KYMO_TRY(kymo__report_iterations(report->summary, &report->line, report->out));
    KYMO_TRY(kymo__report_ranks(report->summary, &report->line, report->out));
    KYMO_TRY(kymo__report_workers(report->summary, &report->line, report->out));
    KYMO_TRY(put_open(report));
    KYMO_TRY(put_loss(report));
    KYMO_TRY(put_cost(report));
    KYMO_TRY(put_warnings(report));
    KYMO_TRY(put_next(report));
    return fflush(report->out) == 0 ? KYMO_OK : kymo__fail_errno("write the report");
}

kymo_status kymo_report_text(kymo_summary *summary, const struct kymo_report_options *options,
                             FILE *out)
{
    static const struct kymo_report_options defaults;
    struct report report = {
        .summary = summary, .options = options != NULL ? options : &defaults, .out = out};
    const kymo_status status = put_report(&report);
    kymo__buf_fini(&report.line);
    return status;
}
