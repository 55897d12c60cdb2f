/* Memory for a terminal and as JSON. A line or two for each pool are the answer; tables follow. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/memory_whole.h"
#include "present/export_internal.h"
#include "present/present_internal.h"
#include "present/style.h"

enum { MAX_COLUMNS = 20, RESIDENT_ROWS = 10, WIDEST_PLACE = 160 };

struct answer {
    struct kymo_memory_report *report;
    const struct kymo_memory_text_options *options;
    struct kymo__lines lines;
};

/* ---- the first lines ---- */

/* ", WORDS 12.3 MB", unless it is not known. */
static void put_bytes(struct answer *answer, const char *words, const kymo_table *table, size_t row,
                      const char *column)
{
    const struct kymo_cell cell = kymo__cell_of(table, row, column);
    if (cell.is_null)
        return;
    kymo__buf_puts(&answer->lines.line, words);
    kymo__text_bytes(&answer->lines.line, cell.as.f64);
}

static bool is_same_pool(const kymo_table *a, size_t row_a, const kymo_table *b, size_t row_b)
{
    const struct kymo_cell pid_a = kymo__cell_of(a, row_a, "pid"),
                           pid_b = kymo__cell_of(b, row_b, "pid");
    return pid_a.is_null == pid_b.is_null && pid_a.as.i64 == pid_b.as.i64 &&
           strcmp(kymo__cell_of(a, row_a, "device").as.text,
                  kymo__cell_of(b, row_b, "device").as.text) == 0;
}

/* The sentence about a leak: what grows in all, and the stack that grows most. */
static kymo_status put_leak(struct answer *answer, size_t pool)
{
    const kymo_table *const pools = answer->report->tables[KYMO__MEMORY_POOLS],
                            *const growth = answer->report->tables[KYMO__MEMORY_GROWTH];
    struct kymo__buf *const line = &answer->lines.line;
    for (size_t row = 0; row < kymo_table_n_rows(growth); row++) {
        const char *what = kymo__cell_of(growth, row, "what").as.text;
        const struct kymo_cell where = kymo__cell_of(growth, row, "where");
        if (!is_same_pool(pools, pool, growth, row) ||
            kymo__cell_of(growth, row, "is_suspected").as.u64 == 0)
            continue;
        kymo__buf_printf(line, "  %sleak suspected:%s %s grows by ",
                         kymo__style(&answer->lines, YELLOW), kymo__style(&answer->lines, PLAIN),
                         strcmp(what, "stack") == 0  ? "what this allocates"
                         : strcmp(what, "live") == 0 ? "what is alive"
                                                     : "resident memory");
        kymo__text_bytes(line, kymo__cell_of(growth, row, "slope_bytes").as.f64);
        kymo__buf_printf(line, " each %s (95 %%: ", kymo__cell_of(growth, row, "per").as.text);
        kymo__text_bytes(line, kymo__cell_of(growth, row, "low_bytes").as.f64);
        kymo__buf_puts(line, " to ");
        kymo__text_bytes(line, kymo__cell_of(growth, row, "high_bytes").as.f64);
        kymo__buf_puts(line, "), ");
        kymo__text_bytes(line, kymo__cell_of(growth, row, "total_bytes").as.f64);
        kymo__buf_puts(line, " in all");
        if (!where.is_null) {
            kymo__buf_puts(line, ": ");
            kymo__text_put(line, where.as.text, where.len, 0);
        }
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return KYMO_OK;
}

static kymo_status put_pool(struct answer *answer, size_t row)
{
    const kymo_table *const pools = answer->report->tables[KYMO__MEMORY_POOLS];
    struct kymo__buf *const line = &answer->lines.line;
    const struct kymo_cell rank = kymo__cell_of(pools, row, "rank"),
                           pid = kymo__cell_of(pools, row, "pid"),
                           at = kymo__cell_of(pools, row, "peak_at_ns"),
                           cost = kymo__cell_of(pools, row, "cost_ns"),
                           span = kymo__cell_of(pools, row, "span_ns");
    kymo__buf_printf(line, "%s%s", kymo__style(&answer->lines, BOLD),
                     kymo__cell_of(pools, row, "device").as.text);
    if (!rank.is_null)
        kymo__buf_printf(line, ", rank %" PRId64, rank.as.i64);
    if (!pid.is_null)
        kymo__buf_printf(line, ", process %" PRId64, pid.as.i64);
    kymo__buf_printf(line, "%s:", kymo__style(&answer->lines, PLAIN));
    const bool has_blocks = !kymo__cell_of(pools, row, "peak_bytes").is_null;
    put_bytes(answer, " at most ", pools, row, "peak_bytes");
    put_bytes(answer, " ± ", pools, row, "plus_minus_bytes");
    if (!at.is_null) {
        kymo__buf_puts(line, " alive, after ");
        kymo__text_duration(line, (double)at.as.u64, NULL);
        kymo__buf_puts(line, ";");
    }
    put_bytes(answer, " at the end ", pools, row, "end_bytes");
    put_bytes(answer, has_blocks ? "; resident at most " : " resident at most ", pools, row,
              "peak_resident_bytes");
    put_bytes(answer, ", of ", pools, row, "limit_bytes");
    put_bytes(answer, "; reserved at most ", pools, row, "peak_reserved_bytes");
    KYMO_TRY(kymo__lines_end(&answer->lines));
    kymo__buf_printf(line, "  %sfrom %s", kymo__style(&answer->lines, DIM),
                     kymo__cell_of(pools, row, "source").as.text);
    if (!span.is_null) {
        kymo__buf_puts(line, " over ");
        kymo__text_duration(line, (double)span.as.u64, NULL);
    }
    put_bytes(answer, ", one for each ", pools, row, "interval_bytes");
    if (has_blocks)
        kymo__buf_printf(line, ": %" PRIu64 "%s", kymo__cell_of(pools, row, "samples").as.u64,
                         kymo__cell_of(pools, row, "interval_bytes").is_null ? " blocks" : "");
    else
        kymo__buf_puts(line, ": none");
    if (!cost.is_null) {
        kymo__buf_puts(line, ", which took the program ");
        kymo__text_duration(line, (double)cost.as.u64, NULL);
    }
    kymo__buf_puts(line, kymo__style(&answer->lines, PLAIN));
    KYMO_TRY(kymo__lines_end(&answer->lines));
    return put_leak(answer, row);
}

/* ---- tables ---- */

static bool has_value(const kymo_table *table, size_t column)
{
    const struct kymo_column *const c = kymo_table_column(table, column);
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const struct kymo_cell cell = kymo_table_cell(table, row, column);
        if (!cell.is_null && (c->type != KYMO_TYPE_BOOL || cell.as.u64 != 0))
            return true;
    }
    return false;
}

/* Whether all rows are of one pool, so that nothing need say whose they are. */
static bool is_one_pool(const struct answer *answer)
{
    return kymo_table_n_rows(answer->report->tables[KYMO__MEMORY_POOLS]) < 2;
}

static void choose_columns(const struct answer *answer, const kymo_table *table,
                           const char *hide[MAX_COLUMNS + 1])
{
    size_t n = 0;
    for (size_t c = 0; c < kymo_table_n_columns(table) && n < MAX_COLUMNS; c++)
        if ((c < 3 && is_one_pool(answer)) || !has_value(table, c) ||
            strcmp(kymo_table_column(table, c)->name, "stack") == 0)
            hide[n++] = kymo_table_column(table, c)->name;
    hide[n] = NULL;
}

static void copy_cell(kymo_table *into, const struct kymo_cell *cell, const struct kymo_column *column)
{
    if (cell->is_null)
        kymo_table_null(into);
    else if (column->type == KYMO_TYPE_TEXT)
        kymo_table_text(into, cell->as.text, cell->len);
    else if (column->type == KYMO_TYPE_I64)
        kymo_table_i64(into, cell->as.i64);
    else if (column->type == KYMO_TYPE_U64)
        kymo_table_u64(into, cell->as.u64);
    else
        kymo_table_f64(into, cell->as.f64);
}

/* A copy of every so many rows of readings. */
static kymo_status thin(const kymo_table *table, size_t n_rows, size_t step, kymo_table **out)
{
    struct kymo_column columns[MAX_COLUMNS];
    const size_t n = KYMO__MIN(kymo_table_n_columns(table), (size_t)MAX_COLUMNS);
    for (size_t c = 0; c < n; c++)
        columns[c] = *kymo_table_column(table, c);
    KYMO_TRY(kymo_table_create(kymo_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++)
        for (size_t c = 0; c < n; c++) {
            const struct kymo_cell cell = kymo_table_cell(table, row * step, c);
            copy_cell(*out, &cell, &columns[c]);
        }
    return kymo_table_status(*out);
}

static kymo_status put_table(struct answer *answer, enum kymo__memory_table which, const char *title)
{
    const kymo_table *const table = answer->report->tables[which];
    const size_t n = kymo_table_n_rows(table), limit = answer->options->limit;
    const bool is_thinned = (which == KYMO__MEMORY_RESIDENT || which == KYMO__MEMORY_LIVE) &&
                            n > RESIDENT_ROWS && limit != 0;
    const size_t step = is_thinned ? (n + RESIDENT_ROWS - 1) / RESIDENT_ROWS : 1;
    const size_t n_drawn = is_thinned   ? (n + step - 1) / step
                           : limit != 0 ? KYMO__MIN(n, limit)
                                        : n;
    const char *hide[MAX_COLUMNS + 1];
    kymo_table *drawn = NULL;
    if (n == 0)
        return KYMO_OK;
    kymo__buf_printf(&answer->lines.line, "\n%s%s%s", kymo__style(&answer->lines, DIM), title,
                     kymo__style(&answer->lines, PLAIN));
    kymo_status status = kymo__lines_end(&answer->lines);
    if (status == KYMO_OK && is_thinned)
        status = thin(table, n_drawn, step, &drawn);
    choose_columns(answer, table, hide);
    const struct kymo__text_view view = {.table = is_thinned ? drawn : table,
                                         .options = answer->options->text,
                                         .n_rows = n_drawn,
                                         .hide = hide,
                                         .widest_text = WIDEST_PLACE};
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, answer->lines.out);
    kymo_table_destroy(drawn);
    if (status != KYMO_OK || n_drawn == n)
        return status;
    kymo__buf_printf(&answer->lines.line, "%s... of %zu; --all shows them%s",
                     kymo__style(&answer->lines, DIM), n, kymo__style(&answer->lines, PLAIN));
    return kymo__lines_end(&answer->lines);
}

static kymo_status put_all(struct answer *answer)
{
    const kymo_table *const pools = answer->report->tables[KYMO__MEMORY_POOLS];
    static const struct {
        enum kymo__memory_table which;
        const char *title;
    } parts[] = {
        {KYMO__MEMORY_PHASES, "the most in each phase"},
        {KYMO__MEMORY_CATEGORIES, "alive at the peak, by category"},
        {KYMO__MEMORY_MODULES, "alive at the peak, by module"},
        {KYMO__MEMORY_STACKS,
         "alive at the peak, by where it was allocated, the innermost function first"},
        {KYMO__MEMORY_GROWTH, "growth"},
        {KYMO__MEMORY_FRAGMENTATION, "what torch holds and does not use at the end; free memory "
                                     "between blocks in use cannot go back to CUDA"},
        {KYMO__MEMORY_RESIDENT, "resident memory over time"},
        {KYMO__MEMORY_LIVE, "alive over time"},
    };
    for (size_t row = 0; row < kymo_table_n_rows(pools); row++)
        KYMO_TRY(put_pool(answer, row));
    for (size_t i = 0; i < KYMO__COUNT_OF(parts); i++)
        KYMO_TRY(put_table(answer, parts[i].which, parts[i].title));
    if (kymo_table_n_rows(answer->report->tables[KYMO__MEMORY_NOTES]) != 0)
        KYMO_TRY(kymo__lines_end(&answer->lines));
    return kymo__lines_put_notes(&answer->lines, answer->report->tables[KYMO__MEMORY_NOTES]);
}

kymo_status kymo_memory_report_text(kymo_memory_report *report,
                                    const struct kymo_memory_text_options *options, FILE *out)
{
    static const struct kymo_memory_text_options defaults;
    struct answer answer = {
        .report = report, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->text.color;
    return kymo__lines_close(&answer.lines, put_all(&answer));
}

kymo_status kymo_memory_report_json(kymo_memory_report *report, FILE *out)
{
    return kymo__json_report(report->tables, KYMO__MEMORY_NOTES, report->tables[KYMO__MEMORY_NOTES],
                             out);
}
