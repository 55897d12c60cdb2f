/*
 * Summary lines about iterations, loader workers and many ranks. The tables have the details.
 *
 * Few ranks are shown row by row; of thousands, only typical times, the slowest, the fastest and outliers.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"

enum { MAX_NAMES = 4, MAX_OUTLIERS = 3, MAX_FASTEST = 3, NAME_WIDTH = 40 };

static struct marey_cell cell_of(const marey_report *report, enum marey__summary_table table,
                                 size_t row, const char *column)
{
    return marey__cell_of(report->tables[table], row, column);
}

static size_t n_rows(const marey_report *report, enum marey__summary_table table)
{
    return marey_table_n_rows(report->tables[table]);
}

static void put_ns(struct marey__buf *line, const char *before, struct marey_cell ns)
{
    marey__buf_puts(line, before);
    marey__text_duration(line, (double)ns.as.u64, NULL);
}

/* "iterations: 98 and 2 of warm-up, mean 1.00 ms, ..." */
static marey_status put_times(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table whole = MAREY__TABLE_ITERATIONS, all = MAREY__TABLE_THROUGHPUT;
    const uint64_t n = cell_of(report, all, 0, "iterations").as.u64,
                   n_warmup = cell_of(report, all, 0, "warmup").as.u64,
                   n_ranks = cell_of(report, all, 0, "ranks").as.u64;
    marey__buf_puts(line, "iterations: ");
    marey__text_amount(line, (double)(n - n_warmup));
    if (n_warmup != 0) {
        marey__buf_puts(line, " and ");
        marey__text_amount(line, (double)n_warmup);
        marey__buf_puts(line, " of warm-up");
    }
    if (n_ranks > 1)
        marey__buf_printf(line, ", of %" PRIu64 " processes", n_ranks);
    if (n_rows(report, whole) == 0) {
        marey__buf_puts(line, "; none that counts");
        return marey__lines_end(lines);
    }
    put_ns(line, "; mean ", cell_of(report, whole, 0, "mean_ns"));
    put_ns(line, ", median ", cell_of(report, whole, 0, "p50_ns"));
    put_ns(line, ", p99 ", cell_of(report, whole, 0, "p99_ns"));
    put_ns(line, ", max ", cell_of(report, whole, 0, "max_ns"));
    return marey__lines_end(lines);
}

static marey_status put_throughput(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table all = MAREY__TABLE_THROUGHPUT;
    const struct marey_cell rate = cell_of(report, all, 0, "iterations_per_s"),
                            samples = cell_of(report, all, 0, "samples_per_s"),
                            data = cell_of(report, all, 0, "data_share");
    if (rate.is_null)
        return MAREY_OK;
    marey__buf_puts(line, "  throughput: ");
    marey__text_rate(line, rate.as.f64, "iterations");
    if (!samples.is_null) {
        marey__buf_puts(line, ", ");
        marey__text_rate(line, samples.as.f64, "samples");
    }
    if (!data.is_null) {
        marey__buf_puts(line, ", ");
        marey__text_share(line, data.as.f64);
        marey__buf_puts(line, " of the time of an iteration waiting for data");
    }
    return marey__lines_end(lines);
}

static bool is_no_range(const marey_report *report, size_t row)
{
    const struct marey_cell name = cell_of(report, MAREY__TABLE_ITERATIONS, row, "name");
    return name.len == strlen(MAREY__NO_RANGE) &&
           memcmp(name.as.text, MAREY__NO_RANGE, name.len) == 0;
}

/* "backward 43.9 % (16.8 ms)" */
static void put_name(const marey_report *report, struct marey__buf *line, size_t row,
                     const char *before)
{
    const enum marey__summary_table table = MAREY__TABLE_ITERATIONS;
    const struct marey_cell name = cell_of(report, table, row, "name");
    marey__buf_puts(line, before);
    marey__text_put(line, name.as.text, name.len, NAME_WIDTH);
    marey__buf_puts(line, " ");
    marey__text_share(line, cell_of(report, table, row, "share").as.f64);
    put_ns(line, " (", cell_of(report, table, row, "steady_ns"));
    marey__buf_puts(line, ")");
}

/* Row 0 is the whole; the others come heaviest first, and time outside all ranges last. */
static marey_status put_names(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_ITERATIONS;
    const size_t n = n_rows(report, table);
    if (n < 2)
        return MAREY_OK;
    const bool has_rest = is_no_range(report, n - 1);
    const size_t n_names = n - 1 - has_rest;
    const uint64_t n_warmup = cell_of(report, MAREY__TABLE_THROUGHPUT, 0, "warmup").as.u64;
    marey__buf_printf(
        line, "  of the time of an iteration%s: ", n_warmup == 0 ? ", without the first" : "");
    for (size_t row = 1; row <= n_names && row <= MAX_NAMES; row++)
        put_name(report, line, row, row == 1 ? "" : ", ");
    if (has_rest)
        put_name(report, line, n - 1, n_names == 0 ? "" : ", ");
    if (n_names > MAX_NAMES)
        marey__buf_printf(line, "; --iterations has %zu more", n_names - MAX_NAMES);
    return marey__lines_end(lines);
}

static void put_rank(const marey_report *report, struct marey__buf *line,
                     enum marey__summary_table table, size_t row)
{
    const struct marey_cell rank = cell_of(report, table, row, "rank");
    if (rank.is_null)
        marey__buf_printf(line, "process %" PRId64, cell_of(report, table, row, "pid").as.i64);
    else
        marey__buf_printf(line, "rank %" PRId64, rank.as.i64);
}

static marey_status put_outlier(const marey_report *report, struct marey__lines *lines, size_t row)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_OUTLIERS;
    const struct marey_cell longer = cell_of(report, table, row, "longer");
    marey__buf_printf(line, "  outlier: iteration %" PRIu64,
                      cell_of(report, table, row, "iteration").as.u64);
    if (n_rows(report, MAREY__TABLE_ITERATION_RANKS) > 1) {
        marey__buf_puts(line, " of ");
        put_rank(report, line, table, row);
    }
    put_ns(line, " took ", cell_of(report, table, row, "duration_ns"));
    put_ns(line, " (typical: ", cell_of(report, table, row, "usual_ns"));
    marey__buf_puts(line, ")");
    if (!longer.is_null) {
        marey__buf_puts(line, "; ");
        marey__text_put(line, longer.as.text, longer.len, NAME_WIDTH);
        put_ns(line, " was longer by ", cell_of(report, table, row, "extra_ns"));
    }
    return marey__lines_end(lines);
}

static marey_status put_outliers(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const size_t n = n_rows(report, MAREY__TABLE_OUTLIERS);
    for (size_t row = 0; row < n && row < MAX_OUTLIERS; row++)
        MAREY_TRY(put_outlier(report, lines, row));
    if (n <= MAX_OUTLIERS)
        return MAREY_OK;
    marey__buf_printf(line, "  ... and %zu more; --iterations shows them", n - MAX_OUTLIERS);
    return marey__lines_end(lines);
}

/* "rank 3 is slowest in 81 % of iterations, by 4.2 ms on average" */
static marey_status put_straggler(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_ITERATION_RANKS;
    if (marey__summary_of(report)->straggler < 0)
        return MAREY_OK;
    const size_t row = (size_t)marey__summary_of(report)->straggler;
    marey__buf_puts(line, "  straggler: ");
    put_rank(report, line, table, row);
    marey__buf_puts(line, " is slowest in ");
    marey__text_share(line, cell_of(report, table, row, "slowest_share").as.f64);
    put_ns(line, " of iterations, by ", cell_of(report, table, row, "behind_ns"));
    marey__buf_puts(line, " on average");
    return marey__lines_end(lines);
}

/* Each epoch has new workers with the same numbers. The rows are sorted by these. */
static bool is_same_worker(const marey_report *report, size_t a, size_t b)
{
    const enum marey__summary_table table = MAREY__TABLE_WORKERS;
    return cell_of(report, table, a, "worker").as.i64 == cell_of(report, table, b, "worker").as.i64 &&
           cell_of(report, table, a, "rank").as.i64 == cell_of(report, table, b, "rank").as.i64;
}

/* "loader workers: 4, busy 45.2 % of the time; most so worker 1 of rank 0, 61.0 %" */
marey_status marey__summary_put_workers(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_WORKERS;
    const size_t n = n_rows(report, table);
    double busy_ns = 0, duration_ns = 0, most = -1;
    size_t busiest = 0, n_workers = 0;
    for (size_t row = 0; row < n; row++) {
        n_workers += row == 0 || !is_same_worker(report, row - 1, row);
        const struct marey_cell share = cell_of(report, table, row, "share");
        busy_ns += (double)cell_of(report, table, row, "busy_ns").as.u64;
        duration_ns += (double)cell_of(report, table, row, "duration_ns").as.u64;
        if (!share.is_null && share.as.f64 > most) {
            most = share.as.f64;
            busiest = row;
        }
    }
    if (duration_ns == 0)
        return MAREY_OK;
    marey__buf_printf(line, "loader workers: %zu, busy ", n_workers);
    marey__text_share(line, busy_ns / duration_ns);
    marey__buf_printf(line, " of the time; most so worker %" PRId64 " of ",
                      cell_of(report, table, busiest, "worker").as.i64);
    if (cell_of(report, table, busiest, "rank").is_null)
        marey__buf_puts(line, "the program");
    else
        put_rank(report, line, table, busiest);
    marey__buf_puts(line, ", ");
    marey__text_share(line, most);
    return marey__lines_end(lines);
}

marey_status marey__summary_put_iterations(const marey_report *report, struct marey__lines *lines)
{
    if (n_rows(report, MAREY__TABLE_THROUGHPUT) == 0)
        return MAREY_OK;
    MAREY_TRY(put_times(report, lines));
    MAREY_TRY(put_throughput(report, lines));
    MAREY_TRY(put_names(report, lines));
    MAREY_TRY(put_outliers(report, lines));
    return put_straggler(report, lines);
}

/* ---- many ranks ---- */

bool marey__summary_has_many_ranks(const marey_report *report)
{
    return n_rows(report, MAREY__TABLE_RANK_TIMES) > MAREY__FEW_RANKS;
}

/* "rank 12 on node3" */
static void put_rank_and_host(struct marey__buf *line, const marey_report *report, size_t row)
{
    const struct marey_cell host = cell_of(report, MAREY__TABLE_RANK_TIMES, row, "host");
    put_rank(report, line, MAREY__TABLE_RANK_TIMES, row);
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

/* "ranks: 128 on 16 hosts; an iteration takes 21.0 ms in the median, half of the ranks between 20.9 ms and 21.1 ms" */
static marey_status put_typical(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table spread = MAREY__TABLE_RANK_SPREAD;
    const size_t n_hosts = n_rows(report, MAREY__TABLE_RANK_HOSTS);
    const bool is_run = strcmp(cell_of(report, spread, 0, "per").as.text, "run") == 0;
    marey__buf_printf(line, "ranks: %zu", n_rows(report, MAREY__TABLE_RANK_TIMES));
    if (n_hosts > 1)
        marey__buf_printf(line, " on %zu hosts", n_hosts);
    put_ns(line, is_run ? "; the run takes " : "; an iteration takes ",
           cell_of(report, spread, 0, "median_ns"));
    put_ns(line, " in the median, half of the ranks between ", cell_of(report, spread, 0, "p25_ns"));
    put_ns(line, " and ", cell_of(report, spread, 0, "p75_ns"));
    return marey__lines_end(lines);
}

static marey_status put_slowest(const marey_report *report, struct marey__lines *lines)
{
    struct marey__buf *const line = &lines->line;
    const enum marey__summary_table table = MAREY__TABLE_RANK_TIMES;
    const struct marey_cell longer = cell_of(report, table, 0, "longer"),
                            slow = cell_of(report, table, 0, "slow_share");
    marey__buf_puts(line, "  slowest: ");
    put_rank_and_host(line, report, 0);
    put_ns(line, ", ", cell_of(report, table, 0, "mean_ns"));
    marey__buf_puts(line, ", ");
    put_difference(line, cell_of(report, table, 0, "by_share"), "the median");
    if (!longer.is_null) {
        marey__buf_puts(line, "; ");
        marey__text_put(line, longer.as.text, longer.len, NAME_WIDTH);
        put_ns(line, " is longer by ", cell_of(report, table, 0, "longer_by_ns"));
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
    for (size_t i = 0; i < MAX_FASTEST && i < n; i++) {
        marey__buf_puts(line, i == 0 ? "" : "; ");
        put_rank_and_host(line, report, n - 1 - i);
        put_ns(line, ", ", cell_of(report, table, n - 1 - i, "mean_ns"));
    }
    return marey__lines_end(lines);
}

static marey_status put_outlier_ranks(const marey_report *report, struct marey__lines *lines)
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
    for (size_t row = 0, n = 0; row < n_rows(report, table) && n < MAX_FASTEST; row++) {
        const struct marey_cell host = cell_of(report, table, row, "host");
        if (cell_of(report, table, row, "outlier").as.u64 == 0)
            continue;
        n++;
        marey__buf_puts(line, "  host ");
        marey__text_put(line, host.as.text, host.len, NAME_WIDTH);
        marey__buf_puts(line, " is an outlier: ");
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
    MAREY_TRY(put_typical(report, lines));
    MAREY_TRY(put_slowest(report, lines));
    MAREY_TRY(put_fastest(report, lines));
    MAREY_TRY(put_outlier_ranks(report, lines));
    return put_hosts(report, lines);
}
