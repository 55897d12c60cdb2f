/*
 * Many ranks by exception: what is usual over them, and who is not. Few are shown row by row; of thousands, those that
 * are slow, fast or out of the ordinary are what a reader can look at.
 */
#include <inttypes.h>
#include <string.h>

#include "present/report_internal.h"

enum { NAME_WIDTH = 40, FASTEST = 3 };

static struct kymo_cell cell_of(const kymo_summary *summary, enum kymo__summary_table table,
                                size_t row, const char *column)
{
    return kymo__cell_of(summary->tables[table], row, column);
}

static size_t n_rows(const kymo_summary *summary, enum kymo__summary_table table)
{
    return kymo_table_n_rows(summary->tables[table]);
}

static kymo_status end_line(struct kymo__buf *line, FILE *out)
{
    kymo__buf_puts(line, "\n");
    return kymo__buf_to_stream(line, out);
}

bool kymo__report_has_many_ranks(const kymo_summary *summary)
{
    return n_rows(summary, KYMO__TABLE_RANK_TIMES) > KYMO__FEW_RANKS;
}

/* "rank 12 on node3", or a process without a rank by its number. */
static void put_rank(struct kymo__buf *line, const kymo_summary *summary, size_t row)
{
    const enum kymo__summary_table table = KYMO__TABLE_RANK_TIMES;
    const struct kymo_cell rank = cell_of(summary, table, row, "rank"),
                           host = cell_of(summary, table, row, "host");
    if (rank.is_null)
        kymo__buf_printf(line, "process %" PRId64, cell_of(summary, table, row, "pid").as.i64);
    else
        kymo__buf_printf(line, "rank %" PRId64, rank.as.i64);
    if (host.len == 0 || n_rows(summary, KYMO__TABLE_RANK_HOSTS) == 0)
        return;
    kymo__buf_puts(line, " on ");
    kymo__text_put(line, host.as.text, host.len, NAME_WIDTH);
}

/* "4.00 % above the median" */
static void put_difference(struct kymo__buf *line, struct kymo_cell by_share, const char *than)
{
    const double share = by_share.is_null ? 0 : by_share.as.f64;
    kymo__text_share(line, share < 0 ? -share : share);
    kymo__buf_printf(line, " %s %s", share < 0 ? "below" : "above", than);
}

/* ---- lines ---- */

/* "ranks: 128 on 16 hosts; an iteration takes 21.0 ms in the median, half of the ranks between 20.9 ms and 21.1 ms" */
static kymo_status put_usual(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    const enum kymo__summary_table spread = KYMO__TABLE_RANK_SPREAD;
    const size_t n_hosts = n_rows(summary, KYMO__TABLE_RANK_HOSTS);
    const bool is_run = strcmp(cell_of(summary, spread, 0, "per").as.text, "run") == 0;
    kymo__buf_printf(line, "ranks: %zu", n_rows(summary, KYMO__TABLE_RANK_TIMES));
    if (n_hosts > 1)
        kymo__buf_printf(line, " on %zu hosts", n_hosts);
    kymo__buf_printf(line, "; %s takes ", is_run ? "the run" : "an iteration");
    kymo__text_duration(line, (double)cell_of(summary, spread, 0, "median_ns").as.u64, NULL);
    kymo__buf_puts(line, " in the median, half of the ranks between ");
    kymo__text_duration(line, (double)cell_of(summary, spread, 0, "p25_ns").as.u64, NULL);
    kymo__buf_puts(line, " and ");
    kymo__text_duration(line, (double)cell_of(summary, spread, 0, "p75_ns").as.u64, NULL);
    return end_line(line, out);
}

static kymo_status put_slowest(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    const enum kymo__summary_table table = KYMO__TABLE_RANK_TIMES;
    const struct kymo_cell longer = cell_of(summary, table, 0, "longer"),
                           slow = cell_of(summary, table, 0, "slow_share");
    kymo__buf_puts(line, "  slowest: ");
    put_rank(line, summary, 0);
    kymo__buf_puts(line, ", ");
    kymo__text_duration(line, (double)cell_of(summary, table, 0, "mean_ns").as.u64, NULL);
    kymo__buf_puts(line, ", ");
    put_difference(line, cell_of(summary, table, 0, "by_share"), "the median");
    if (!longer.is_null) {
        kymo__buf_puts(line, "; ");
        kymo__text_put(line, longer.as.text, longer.len, NAME_WIDTH);
        kymo__buf_puts(line, " is longer by ");
        kymo__text_duration(line, (double)cell_of(summary, table, 0, "longer_by_ns").as.u64, NULL);
    }
    if (!slow.is_null && slow.as.f64 > 0) {
        kymo__buf_puts(line, "; slow in ");
        kymo__text_share(line, slow.as.f64);
        kymo__buf_puts(line, " of its iterations");
    }
    return end_line(line, out);
}

static kymo_status put_fastest(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    const enum kymo__summary_table table = KYMO__TABLE_RANK_TIMES;
    const size_t n = n_rows(summary, table);
    kymo__buf_puts(line, "  fastest: ");
    for (size_t i = 0; i < FASTEST && i < n; i++) {
        kymo__buf_puts(line, i == 0 ? "" : "; ");
        put_rank(line, summary, n - 1 - i);
        kymo__buf_puts(line, ", ");
        kymo__text_duration(line, (double)cell_of(summary, table, n - 1 - i, "mean_ns").as.u64, NULL);
    }
    return end_line(line, out);
}

static kymo_status put_outliers(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    const enum kymo__summary_table table = KYMO__TABLE_RANK_TIMES;
    size_t n_slow = 0, n_fast = 0;
    for (size_t row = 0; row < n_rows(summary, table); row++) {
        if (cell_of(summary, table, row, "outlier").as.u64 == 0)
            continue;
        if (cell_of(summary, table, row, "by_ns").as.i64 > 0)
            n_slow++;
        else
            n_fast++;
    }
    kymo__buf_puts(line, "  outliers: ");
    if (n_slow + n_fast == 0 && n_rows(summary, KYMO__TABLE_RANK_OUTLIERS) == 0)
        kymo__buf_puts(line, "none");
    else if (n_slow + n_fast == 0)
        kymo__buf_puts(line, "none by the whole; some by single ranges, see the table");
    else
        kymo__buf_printf(line, "%zu of %zu ranks are slow, %zu are fast", n_slow,
                         n_rows(summary, table), n_fast);
    return end_line(line, out);
}

static kymo_status put_hosts(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    const enum kymo__summary_table table = KYMO__TABLE_RANK_HOSTS;
    for (size_t row = 0, n = 0; row < n_rows(summary, table) && n < FASTEST; row++) {
        const struct kymo_cell host = cell_of(summary, table, row, "host");
        if (cell_of(summary, table, row, "outlier").as.u64 == 0)
            continue;
        n++;
        kymo__buf_puts(line, "  host ");
        kymo__text_put(line, host.as.text, host.len, NAME_WIDTH);
        kymo__buf_puts(line, " stands out: ");
        kymo__text_count_of(line, cell_of(summary, table, row, "ranks").as.u64, "rank");
        kymo__buf_puts(line, ", ");
        put_difference(line, cell_of(summary, table, row, "by_share"), "those elsewhere");
        KYMO_TRY(end_line(line, out));
    }
    return KYMO_OK;
}

kymo_status kymo__report_ranks(const kymo_summary *summary, struct kymo__buf *line, FILE *out)
{
    if (!kymo__report_has_many_ranks(summary) || n_rows(summary, KYMO__TABLE_RANK_SPREAD) == 0)
        return KYMO_OK;
    KYMO_TRY(put_usual(summary, line, out));
    KYMO_TRY(put_slowest(summary, line, out));
    KYMO_TRY(put_fastest(summary, line, out));
    KYMO_TRY(put_outliers(summary, line, out));
    return put_hosts(summary, line, out);
}
