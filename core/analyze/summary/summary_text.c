/*
 * The text of `marey report`. From top to bottom: the program, the tables, iterations, open ranges, lost events, the
 * cost of measuring, and notes.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"
#include "present/draw/internal.h"
#include <marey/communication.h>

/* Limit on listed open ranges; the rest is a count. */
enum { MAX_OPEN = 10, COMMAND_WIDTH = 60 };

static marey_table *table_of(const struct marey__report_writer *text, enum marey__summary_table table)
{
    return text->report->tables[table];
}

static const char *style(const struct marey__report_writer *text, const char *code)
{
    return marey__style(&text->lines, code);
}

static marey_status end_line(struct marey__report_writer *text)
{
    return marey__lines_end(&text->lines);
}

/* ---- the headline ---- */

/* The longest of the processes, because they run in parallel. */
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

static void put_command(struct marey__report_writer *text, const marey_table *processes)
{
    if (marey_table_n_rows(processes) == 0)
        return;
    const struct marey_cell command = marey__cell_of(processes, 0, "command");
    if (command.is_null || command.len == 0)
        return;
    marey__buf_puts(&text->lines.line, ": ");
    marey__text_put(&text->lines.line, command.as.text, command.len, COMMAND_WIDTH);
}

/* Processes that did not close their logs. */
static void put_ends(struct marey__buf *line, const marey_table *processes)
{
    static const struct {
        const char *end, *words;
    } ends[] = {{"unclosed", "ended by a kill or _exit"},
                {"running", "still running"},
                {"write failed", "not recorded to the end because a write failed"}};
    const bool is_alone = marey_table_n_rows(processes) == 1;
    for (size_t i = 0; i < MAREY__COUNT_OF(ends); i++) {
        const size_t n = count_ends(processes, ends[i].end);
        if (n != 0 && is_alone)
            marey__buf_printf(line, ", %s", ends[i].words);
        else if (n != 0)
            marey__buf_printf(line, ", %zu %s", n, ends[i].words);
    }
}

static marey_status put_headline(struct marey__report_writer *text)
{
    const marey_table *processes = table_of(text, MAREY__TABLE_PROCESSES);
    const marey_report *const report = text->report;
    struct marey__buf *line = &text->lines.line;
    marey__buf_puts(line, style(text, BOLD));
    marey__text_put(line, report->title, strlen(report->title), 0);
    marey__buf_puts(line, style(text, PLAIN));
    put_command(text, processes);
    MAREY_TRY(end_line(text));
    if (report->cost.events == 0) {
        marey__buf_puts(line, "No events were recorded.");
        return end_line(text);
    }
    marey__text_count_of(line, count_active(processes), "process");
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, marey__summary_of(report)->n_threads, "thread");
    marey__buf_puts(line, ", ");
    marey__text_duration(line, (double)longest_ns(processes), NULL);
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, report->cost.events, "event");
    put_ends(line, processes);
    return end_line(text);
}

/* ---- choice of tables ---- */

/* Tables shown after `ranges` and after `iterations`, if they have that many rows. */
static const struct {
    enum marey__summary_table table, follower;
    size_t n_from;
} followers[] = {
    {MAREY__TABLE_RANGES, MAREY__TABLE_KERNELS, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_COPIES, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_ASYNC, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_COUNTERS, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_MARKS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_ITERATION_RANKS, 2},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_EPOCHS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_PHASES, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_OUTLIERS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_WORKERS, 1},
};

static void add(marey_table **tables, size_t *n, marey_table *table)
{
    for (size_t i = 0; i < *n; i++)
        if (tables[i] == table)
            return;
    tables[(*n)++] = table;
}

size_t marey__summary_choose(const marey_report *report, const char *list, marey_table **tables)
{
    size_t n = 0, len;
    for (const char *name = list != NULL ? list : "ranges"; *name != '\0'; name += len) {
        name += *name == ',';
        len = strcspn(name, ",");
        marey_table *const table = marey__report_table(report, name, len);
        add(tables, &n, table);
        for (size_t i = 0; i < MAREY__COUNT_OF(followers); i++)
            if (report->tables[followers[i].table] == table &&
                marey_table_n_rows(report->tables[followers[i].follower]) >= followers[i].n_from)
                add(tables, &n, report->tables[followers[i].follower]);
    }
    return n;
}

/* ---- tables ---- */

static marey_status put_table(struct marey__report_writer *text, const marey_table *table,
                              bool has_title, uint32_t limit)
{
    static const char *const one_process[] = {"processes", "rank_min_ns", "rank_max_ns", "max_rank",
                                              NULL};
    /* Equal in all rows; shown in a line below the tables. */
    static const char *const many_ranks[] = {"per", "median_ns", NULL};
    const size_t n = marey_table_n_rows(table);
    const bool is_tree = strcmp(marey_table_name(table), "tree") == 0;
    const bool is_alone = marey_table_n_rows(table_of(text, MAREY__TABLE_PROCESSES)) <= 1;
    struct marey__text_view view = {
        .table = table,
        .options = text->options->text,
        .n_rows = limit != 0 && n > limit ? limit : n,
        .hide = is_alone                                           ? one_process
                : table == table_of(text, MAREY__TABLE_RANK_TIMES) ? many_ranks
                                                                   : NULL,
    };
    view.options.tree = is_tree ? "name" : NULL;
    MAREY_TRY(end_line(text)); /* an empty line */
    if (n == 0) {
        marey__buf_printf(&text->lines.line, "No %s.", marey_table_name(table));
        return end_line(text);
    }
    if (has_title) {
        marey__buf_printf(&text->lines.line, "%s%s%s", style(text, DIM), marey_table_name(table),
                          style(text, PLAIN));
        MAREY_TRY(end_line(text));
    }
    MAREY_TRY(marey__text_draw(&view, text->lines.out));
    if (view.n_rows == n)
        return MAREY_OK;
    marey__buf_printf(&text->lines.line, "%s... and %zu more; --all shows them%s", style(text, DIM),
                      n - view.n_rows, style(text, PLAIN));
    return end_line(text);
}

/* Many ranks: typical values and outliers; every row with --all. */
static marey_status put_exceptions(struct marey__report_writer *text)
{
    static const enum marey__summary_table tables[] = {
        MAREY__TABLE_RANK_SPREAD, MAREY__TABLE_RANK_TIMES, MAREY__TABLE_RANK_OUTLIERS,
        MAREY__TABLE_RANK_HOSTS};
    const uint32_t limit = text->options->limit;
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++) {
        const bool is_spread = tables[i] == MAREY__TABLE_RANK_SPREAD;
        const marey_table *table = table_of(text, tables[i]);
        if (marey_table_n_rows(table) != 0)
            MAREY_TRY(put_table(text, table, true,
                                is_spread ? limit : MAREY__MIN(limit, (uint32_t)MAREY__RANK_ROWS)));
    }
    return MAREY_OK;
}

static marey_status put_tables(struct marey__report_writer *text)
{
    marey_table *tables[MAREY__N_TABLES + 1];
    const uint32_t limit = text->options->limit;
    const size_t n = marey__summary_choose(text->report, text->options->table, tables);
    for (size_t i = 0; i < n; i++) {
        const bool is_by_exception = tables[i] == table_of(text, MAREY__TABLE_RANKS) &&
                                     marey__summary_has_many_ranks(text->report);
        if (is_by_exception)
            MAREY_TRY(put_exceptions(text));
        if (!is_by_exception || limit == 0)
            MAREY_TRY(put_table(text, tables[i], n > 1 || is_by_exception, limit));
    }
    return MAREY_OK;
}

/* A section from another report; NULL: none. */
static marey_status put_section(struct marey__report_writer *text, const marey_report *section)
{
    const struct marey_write_options wants = {.text = text->options->text,
                                              .limit = text->options->limit};
    return section != NULL ? marey_report_write(section, "text", &wants, text->lines.out) : MAREY_OK;
}

/* ---- below the tables ---- */

static marey_status put_open(struct marey__report_writer *text)
{
    const marey_table *open = table_of(text, MAREY__TABLE_OPEN);
    const size_t n = marey_table_n_rows(open),
                 n_processes = marey_table_n_rows(table_of(text, MAREY__TABLE_PROCESSES));
    struct marey__buf *line = &text->lines.line;
    if (n == 0)
        return MAREY_OK;
    marey__buf_puts(line, style(text, YELLOW));
    marey__buf_puts(line, "left open: ");
    marey__text_count_of(line, n, "range");
    marey__buf_printf(line, " had begun and not ended%s", style(text, PLAIN));
    MAREY_TRY(end_line(text));
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
        MAREY_TRY(end_line(text));
    }
    if (n > MAX_OPEN) {
        marey__buf_printf(line, "  ... and %zu more", n - MAX_OPEN);
        MAREY_TRY(end_line(text));
    }
    return MAREY_OK;
}

static marey_status put_loss(struct marey__report_writer *text)
{
    const struct marey_cost *cost = &text->report->cost;
    struct marey__buf *line = &text->lines.line;
    if (marey__summary_of(text->report)->source[0] != '\0')
        return MAREY_OK; /* unknown for other tools */
    if (cost->lost_events == 0 && cost->n_stopped == 0 && cost->n_cut == 0) {
        marey__buf_puts(line, "lost: none");
        return end_line(text);
    }
    const char *next = "lost: ";
    marey__buf_puts(line, style(text, YELLOW));
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
    marey__buf_puts(line, style(text, PLAIN));
    return end_line(text);
}

static marey_status put_cost(struct marey__report_writer *text)
{
    struct marey__buf *line = &text->lines.line;
    if (marey__summary_of(text->report)->source[0] != '\0' && text->report->cost.events != 0)
        marey__buf_printf(line, "imported from %s", marey__summary_of(text->report)->source);
    else if (!marey__cost_put(line, &text->report->cost))
        return MAREY_OK;
    MAREY_TRY(end_line(text));
    return marey__cost_put_missing(line, &text->report->cost) ? end_line(text) : MAREY_OK;
}

/* A site may be known without a range of it. */
static bool has_range(const struct marey__report_writer *text, const char *name)
{
    const marey_table *ranges = table_of(text, MAREY__TABLE_RANGES);
    for (size_t row = 0; row < marey_table_n_rows(ranges); row++)
        if (strcmp(marey__cell_of(ranges, row, "name").as.text, name) == 0)
            return true;
    return false;
}

/* Whether 'marey breakdown' shows more: GPU activity, or communication. */
static bool has_breakdown(const struct marey__report_writer *text)
{
    const marey_table *sites = table_of(text, MAREY__TABLE_SITES);
    const size_t category = (size_t)marey_table_find(sites, "category");
    if (marey_table_n_rows(table_of(text, MAREY__TABLE_KERNELS)) != 0)
        return true;
    for (size_t row = 0; row < marey_table_n_rows(sites); row++)
        if (strcmp(marey_table_cell(sites, row, category).as.text, MAREY_COMMUNICATION) == 0 &&
            has_range(text, marey__cell_of(sites, row, "name").as.text))
            return true;
    return false;
}

static marey_status put_next(struct marey__report_writer *text)
{
    if (!has_breakdown(text))
        return MAREY_OK;
    marey__buf_puts(&text->lines.line,
                    "next: marey breakdown shows computation, communication and idle time");
    return end_line(text);
}

marey_status marey__summary_text(struct marey__report_writer *text)
{
    const bool has_tables = text->options->table != NULL || text->options->section == NULL;
    if (text->options->lead != NULL) {
        MAREY_TRY(put_section(text, text->options->lead));
        MAREY_TRY(end_line(text));
    }
    MAREY_TRY(put_headline(text));
    if (text->report->cost.events != 0 && has_tables)
        MAREY_TRY(put_tables(text));
    MAREY_TRY(end_line(text));
    MAREY_TRY(put_section(text, text->options->section));
    MAREY_TRY(marey__summary_put_iterations(text->report, &text->lines));
    MAREY_TRY(marey__summary_put_ranks(text->report, &text->lines));
    MAREY_TRY(marey__summary_put_workers(text->report, &text->lines));
    MAREY_TRY(put_open(text));
    MAREY_TRY(put_loss(text));
    MAREY_TRY(put_cost(text));
    MAREY_TRY(marey__lines_put_notes(&text->lines, table_of(text, MAREY__TABLE_WARNINGS)));
    return put_next(text);
}
