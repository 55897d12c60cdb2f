/* Memory for a terminal. One or two lines per pool are the result; tables follow. */
#include <inttypes.h>

#include "analyze/memory/internal.h"
#include "present/draw/internal.h"

enum { RESIDENT_ROWS = 10, WIDEST_PLACE = 160 };

/* ---- the first lines ---- */

/* ", WORDS 12.3 MB" if known. */
static void put_bytes(struct marey__report_writer *writer, const char *words,
                      const marey_table *table, size_t row, const char *column)
{
    const struct marey_cell cell = marey__cell_of(table, row, column);
    if (cell.is_null)
        return;
    marey__buf_puts(&writer->lines.line, words);
    marey__text_bytes(&writer->lines.line, cell.as.f64);
}

static bool is_same_pool(const marey_table *a, size_t row_a, const marey_table *b, size_t row_b)
{
    const struct marey_cell pid_a = marey__cell_of(a, row_a, "pid"),
                            pid_b = marey__cell_of(b, row_b, "pid");
    return pid_a.is_null == pid_b.is_null && pid_a.as.i64 == pid_b.as.i64 &&
           strcmp(marey__cell_of(a, row_a, "device").as.text,
                  marey__cell_of(b, row_b, "device").as.text) == 0;
}

/* The sentence about a leak: the total growth, and the stack that grows most. */
static marey_status put_leak(struct marey__report_writer *writer, size_t pool)
{
    const marey_table *const pools = writer->report->tables[MAREY__MEMORY_POOLS],
                             *const growth = writer->report->tables[MAREY__MEMORY_GROWTH];
    struct marey__buf *const line = &writer->lines.line;
    for (size_t row = 0; row < marey_table_n_rows(growth); row++) {
        const char *what = marey__cell_of(growth, row, "what").as.text;
        const struct marey_cell where = marey__cell_of(growth, row, "where");
        if (!is_same_pool(pools, pool, growth, row) ||
            marey__cell_of(growth, row, "is_suspected").as.u64 == 0)
            continue;
        marey__buf_printf(line, "  %sleak suspected:%s %s grows by ",
                          marey__style(&writer->lines, YELLOW), marey__style(&writer->lines, PLAIN),
                          strcmp(what, "stack") == 0  ? "what this allocates"
                          : strcmp(what, "live") == 0 ? "what is alive"
                                                      : "resident memory");
        marey__text_bytes(line, marey__cell_of(growth, row, "slope_bytes").as.f64);
        marey__buf_printf(line, " each %s (95 %%: ", marey__cell_of(growth, row, "per").as.text);
        marey__text_bytes(line, marey__cell_of(growth, row, "low_bytes").as.f64);
        marey__buf_puts(line, " to ");
        marey__text_bytes(line, marey__cell_of(growth, row, "high_bytes").as.f64);
        marey__buf_puts(line, "), ");
        marey__text_bytes(line, marey__cell_of(growth, row, "total_bytes").as.f64);
        marey__buf_puts(line, " in all");
        if (!where.is_null) {
            marey__buf_puts(line, ": ");
            marey__text_put(line, where.as.text, where.len, 0);
        }
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return MAREY_OK;
}

static marey_status put_pool(struct marey__report_writer *writer, size_t row)
{
    const marey_table *const pools = writer->report->tables[MAREY__MEMORY_POOLS];
    struct marey__buf *const line = &writer->lines.line;
    const struct marey_cell rank = marey__cell_of(pools, row, "rank"),
                            pid = marey__cell_of(pools, row, "pid"),
                            at = marey__cell_of(pools, row, "peak_at_ns"),
                            cost = marey__cell_of(pools, row, "cost_ns"),
                            span = marey__cell_of(pools, row, "span_ns");
    marey__buf_printf(line, "%s%s", marey__style(&writer->lines, BOLD),
                      marey__cell_of(pools, row, "device").as.text);
    if (!rank.is_null)
        marey__buf_printf(line, ", rank %" PRId64, rank.as.i64);
    if (!pid.is_null)
        marey__buf_printf(line, ", process %" PRId64, pid.as.i64);
    marey__buf_printf(line, "%s:", marey__style(&writer->lines, PLAIN));
    const bool has_blocks = !marey__cell_of(pools, row, "peak_bytes").is_null;
    put_bytes(writer, " at most ", pools, row, "peak_bytes");
    put_bytes(writer, " ± ", pools, row, "plus_minus_bytes");
    if (!at.is_null) {
        marey__buf_puts(line, " alive, after ");
        marey__text_duration(line, (double)at.as.u64, NULL);
        marey__buf_puts(line, ";");
    }
    put_bytes(writer, " at the end ", pools, row, "end_bytes");
    put_bytes(writer, has_blocks ? "; resident at most " : " resident at most ", pools, row,
              "peak_resident_bytes");
    put_bytes(writer, ", of ", pools, row, "limit_bytes");
    put_bytes(writer, "; reserved at most ", pools, row, "peak_reserved_bytes");
    MAREY_TRY(marey__lines_end(&writer->lines));
    marey__buf_printf(line, "  %sfrom %s", marey__style(&writer->lines, DIM),
                      marey__cell_of(pools, row, "source").as.text);
    if (!span.is_null) {
        marey__buf_puts(line, " over ");
        marey__text_duration(line, (double)span.as.u64, NULL);
    }
    put_bytes(writer, ", one for each ", pools, row, "interval_bytes");
    if (has_blocks)
        marey__buf_printf(line, ": %" PRIu64 "%s", marey__cell_of(pools, row, "samples").as.u64,
                          marey__cell_of(pools, row, "interval_bytes").is_null ? " blocks" : "");
    else
        marey__buf_puts(line, ": none");
    if (!cost.is_null) {
        marey__buf_puts(line, ", which took the program ");
        marey__text_duration(line, (double)cost.as.u64, NULL);
    }
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
    MAREY_TRY(marey__lines_end(&writer->lines));
    return put_leak(writer, row);
}

/* ---- tables ---- */

/* With one pool, its columns are hidden; stacks are too wide. */
static bool is_hidden(const void *ctx, const marey_table *table, size_t column)
{
    const marey_report *const report = ctx;
    const bool is_one_pool = marey_table_n_rows(report->tables[MAREY__MEMORY_POOLS]) < 2;
    return (column < 3 && is_one_pool) || !marey__table_has_values(table, column) ||
           strcmp(marey_table_column(table, column)->name, "stack") == 0;
}

static marey_status put_table(struct marey__report_writer *writer, enum marey__memory_table which,
                              const char *title)
{
    const marey_table *const table = writer->report->tables[which];
    const size_t n = marey_table_n_rows(table);
    const bool is_thinned = (which == MAREY__MEMORY_RESIDENT || which == MAREY__MEMORY_LIVE) &&
                            writer->options->limit != 0;
    const struct marey__report_view view = {
        .table = table,
        .title = title,
        .n_rows = n,
        .options = writer->options,
        .hides = is_hidden,
        .ctx = writer->report,
        .widest_text = WIDEST_PLACE,
        .step = is_thinned ? (n + RESIDENT_ROWS - 1) / RESIDENT_ROWS : 1};
    if (n == 0)
        return MAREY_OK;
    MAREY_TRY(marey__lines_end(&writer->lines)); /* an empty line */
    return marey__report_draw(&writer->lines, &view);
}

marey_status marey__memory_text(struct marey__report_writer *writer)
{
    const marey_table *const pools = writer->report->tables[MAREY__MEMORY_POOLS];
    static const struct {
        enum marey__memory_table which;
        const char *title;
    } parts[] = {
        {MAREY__MEMORY_PHASES, "the maximum in each phase"},
        {MAREY__MEMORY_CATEGORIES, "alive at the peak, by category"},
        {MAREY__MEMORY_MODULES, "alive at the peak, by module"},
        {MAREY__MEMORY_STACKS,
         "alive at the peak, by where it was allocated, the innermost function first"},
        {MAREY__MEMORY_GROWTH, "growth"},
        {MAREY__MEMORY_FRAGMENTATION, "reserved by torch but unused at the end; free memory "
                                      "between blocks in use cannot be returned to CUDA"},
        {MAREY__MEMORY_RESIDENT, "resident memory over time"},
        {MAREY__MEMORY_LIVE, "alive over time"},
    };
    for (size_t row = 0; row < marey_table_n_rows(pools); row++)
        MAREY_TRY(put_pool(writer, row));
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++)
        MAREY_TRY(put_table(writer, parts[i].which, parts[i].title));
    if (marey_table_n_rows(writer->report->tables[MAREY__MEMORY_NOTES]) != 0)
        MAREY_TRY(marey__lines_end(&writer->lines));
    return marey__lines_put_notes(&writer->lines, writer->report->tables[MAREY__MEMORY_NOTES]);
}
