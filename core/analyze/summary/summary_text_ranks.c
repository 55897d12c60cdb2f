/*
 * Many ranks by exception: what is usual over them, and who is not. Few are shown row by row; of thousands, those that
 * are slow, fast or out of the ordinary are what a reader can look at.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"

enum { NAME_WIDTH = 40, FASTEST = 3 };

static struct marey_cell cell_of(const marey_report *report, enum marey__summary_table table,
                                 size_t row, const char *column)
{
    return marey__cell_of(report->tables[table], row, column);
}

static size_t n_rows(const marey_report *report, enum marey__summary_table table)
{
    return marey_table_n_rows(report->tables[table]);
}

bool marey__summary_has_many_ranks(const marey_report *report)
{
    return n_rows(report, MAREY__TABLE_RANK_TIMES) > MAREY__FEW_RANKS;
}

/* "rank 12 on node3", or a process without a rank by its number. */
static void put_rank(struct marey__buf *line, const marey_report *report, size_t row)
{
    const enum marey__summary_table table = MAREY__TABLE_RANK_TIMES;
    const struct marey_cell rank = cell_of(report, table, row, "rank"),
                            host = cell_of(report, table, row, "host");
    if (rank.is_null)
        marey__buf_printf(line, "process %" PRId64, cell_of(report, table, row, "pid").as.i64);
    else
        marey__buf_printf(line, "rank %" PRId64, rank.as.i64);
    if (host.len == 0 || n_rows(report, MAREY__TABLE_RANK_HOSTS) == 0)
        return;
    marey__buf_puts(line, " on ");
    marey__text_put(line, host.as.text, host.len, NAME_WIDTH);
}

/* "4.00 % above the median" */
static void put_difference(struct marey__buf *line, struct marey_cell by_share, const char *than)
{
    const double share = by_share.is_null ? 0 : by_share.as.f64;
    marey__text_share(line, share < 0 ? -share : share);
    marey__buf_printf(line, " %s %s", share < 0 ? "below" : "above", than);
}

/* ---- lines ---- */

/* "ranks: 128 on 16 hosts; an iteration takes 21.0 ms in the median, half of the ranks between 20.9 ms and 21.1 ms" */
static marey_status put_usual(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table spread = MAREY__TABLE_RANK_SPREAD;
    const size_t n_hosts = n_rows(report, MAREY__TABLE_RANK_HOSTS);
    const bool is_run = strcmp(cell_of(report, spread, 0, "per").as.text, "run") == 0;
    marey__buf_printf(line, "ranks: %zu", n_rows(report, MAREY__TABLE_RANK_TIMES));
    if (n_hosts > 1)
        marey__buf_printf(line, " on %zu hosts", n_hosts);
    marey__buf_printf(line, "; %s takes ", is_run ? "the run" : "an iteration");
    marey__text_duration(line, (double)cell_of(report, spread, 0, "median_ns").as.u64, NULL);
    marey__buf_puts(line, " in the median, half of the ranks between ");
    marey__text_duration(line, (double)cell_of(report, spread, 0, "p25_ns").as.u64, NULL);
    marey__buf_puts(line, " and ");
    marey__text_duration(line, (double)cell_of(report, spread, 0, "p75_ns").as.u64, NULL);
    return marey__lines_end(lines);
}

static marey_status put_slowest(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_RANK_TIMES;
    const struct marey_cell longer = cell_of(report, table, 0, "longer"),
                            slow = cell_of(report, table, 0, "slow_share");
    marey__buf_puts(line, "  slowest: ");
    put_rank(line, report, 0);
    marey__buf_puts(line, ", ");
    marey__text_duration(line, (double)cell_of(report, table, 0, "mean_ns").as.u64, NULL);
    marey__buf_puts(line, ", ");
    put_difference(line, cell_of(report, table, 0, "by_share"), "the median");
    if (!longer.is_null) {
        marey__buf_puts(line, "; ");
        marey__text_put(line, longer.as.text, longer.len, NAME_WIDTH);
        marey__buf_puts(line, " is longer by ");
        marey__text_duration(line, (double)cell_of(report, table, 0, "longer_by_ns").as.u64, NULL);
    }
    if (!slow.is_null && slow.as.f64 > 0) {
        marey__buf_puts(line, "; slow in ");
        marey__text_share(line, slow.as.f64);
        marey__buf_puts(line, " of its iterations");
    }
    return marey__lines_end(lines);
}

static marey_status put_fastest(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_RANK_TIMES;
    const size_t n = n_rows(report, table);
    marey__buf_puts(line, "  fastest: ");
    for (size_t i = 0; i < FASTEST && i < n; i++) {
        marey__buf_puts(line, i == 0 ? "" : "; ");
        put_rank(line, report, n - 1 - i);
        marey__buf_puts(line, ", ");
        marey__text_duration(line, (double)cell_of(report, table, n - 1 - i, "mean_ns").as.u64, NULL);
    }
    return marey__lines_end(lines);
}

static marey_status put_outliers(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_RANK_TIMES;
    size_t n_slow = 0, n_fast = 0;
    for (size_t row = 0; row < n_rows(report, table); row++) {
        if (cell_of(report, table, row, "outlier").as.u64 == 0)
            continue;
        if (cell_of(report, table, row, "by_ns").as.i64 > 0)
            n_slow++;
        else
            n_fast++;
    }
    marey__buf_puts(line, "  outliers: ");
    if (n_slow + n_fast == 0 && n_rows(report, MAREY__TABLE_RANK_OUTLIERS) == 0)
        marey__buf_puts(line, "none");
    else if (n_slow + n_fast == 0)
        marey__buf_puts(line, "none by the whole; some by single ranges, see the table");
    else
        marey__buf_printf(line, "%zu of %zu ranks are slow, %zu are fast", n_slow,
                          n_rows(report, table), n_fast);
    return marey__lines_end(lines);
}

static marey_status put_hosts(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_RANK_HOSTS;
    for (size_t row = 0, n = 0; row < n_rows(report, table) && n < FASTEST; row++) {
        const struct marey_cell host = cell_of(report, table, row, "host");
        if (cell_of(report, table, row, "outlier").as.u64 == 0)
            continue;
        n++;
        marey__buf_puts(line, "  host ");
        marey__text_put(line, host.as.text, host.len, NAME_WIDTH);
        marey__buf_puts(line, " stands out: ");
        marey__text_count_of(line, cell_of(report, table, row, "ranks").as.u64, "rank");
        marey__buf_puts(line, ", ");
        put_difference(line, cell_of(report, table, row, "by_share"), "those elsewhere");
        MAREY_TRY(marey__lines_end(lines));
    }
    return MAREY_OK;
}

marey_status marey__summary_put_ranks(const marey_report *report, struct marey__lines *lines)
{
    if (!marey__summary_has_many_ranks(report) || n_rows(report, MAREY__TABLE_RANK_SPREAD) == 0)
        return MAREY_OK;
    MAREY_TRY(put_usual(report, lines));
    MAREY_TRY(put_slowest(report, lines));
    MAREY_TRY(put_fastest(report, lines));
    MAREY_TRY(put_outliers(report, lines));
    return put_hosts(report, lines);
}
