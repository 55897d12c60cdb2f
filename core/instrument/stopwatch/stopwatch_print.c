/* The report: the sections and headings of print_eval_times, with deviations and quantiles, then sections of other results. */
#include <inttypes.h>
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"

enum { NAME_WIDTH = 60 };

/* A table being printed. */
struct lines {
    marey_table *table;
    size_t width; /* of the widest name, including quotes and colon */
};

/* ---- rules, names and times ---- */

static void put_repeated(struct marey__buf *out, const char *text, size_t n)
{
    while (n-- > 0)
        marey__buf_puts(out, text);
}

#define DIVIDER "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"

static void put_separator(struct marey__buf *out)
{
    put_repeated(out, ". ", 25);
    marey__buf_puts(out, "\n");
}

static struct marey_cell cell_of(const struct lines *lines, size_t row, const char *column)
{
    return marey__cell_of(lines->table, row, column);
}

static size_t put_quoted(struct marey__buf *out, const struct marey_cell *name)
{
    marey__buf_puts(out, "`");
    const size_t width = marey__text_put(out, name->as.text, name->len, NAME_WIDTH);
    marey__buf_puts(out, "`:");
    return width + 3;
}

static marey_status lines_open(struct lines *lines, const char *name)
{
    MAREY_TRY(marey_stopwatch_table(name, &lines->table));
    struct marey__buf scratch MAREY__FINALLY(marey__buf_fini) = {0};
    const bool has_names = marey_table_find(lines->table, "name") >= 0;
    for (size_t row = 0; has_names && row < marey_table_n_rows(lines->table); row++) {
        const struct marey_cell cell = cell_of(lines, row, "name");
        scratch.len = 0;
        lines->width = MAREY__MAX(lines->width, put_quoted(&scratch, &cell));
    }
    return MAREY_OK;
}

static void lines_close(struct lines *lines)
{
    marey_table_destroy(lines->table);
}

/* The quoted name, padded to the widest. */
static void put_name(struct marey__buf *out, const struct lines *lines, size_t row)
{
    const struct marey_cell cell = cell_of(lines, row, "name");
    marey__buf_puts(out, "  ");
    const size_t width = put_quoted(out, &cell);
    put_repeated(out, " ", lines->width - width);
}

/* A cell of nanoseconds, ten columns wide; 0 if it is null. */
static void put_time(struct marey__buf *out, const struct lines *lines, size_t row, const char *column)
{
    const size_t number = (size_t)marey_table_find(lines->table, column);
    const struct marey_cell cell = marey_table_cell(lines->table, row, number);
    const bool is_f64 = marey_table_column(lines->table, number)->type == MAREY_TYPE_F64;
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__text_duration(&text, is_f64 ? cell.as.f64 : (double)cell.as.u64, NULL);
    put_repeated(out, " ", text.len < 10 ? 10 - text.len : 0);
    marey__buf_put(out, text.data, text.len);
    out->failed |= text.failed;
}

static bool is_running(const struct lines *lines, size_t row)
{
    return marey_table_find(lines->table, "running") >= 0 &&
           cell_of(lines, row, "running").as.u64 != 0;
}

/* ---- sections ---- */

/* Prints a table, one line per row; nothing if it is empty. */
static marey_status put_section(struct marey__buf *out, const char *table, const char *heading,
                                void (*put_row)(struct marey__buf *out, const struct lines *lines,
                                                size_t row))
{
    struct lines lines MAREY__FINALLY(lines_close) = {0};
    MAREY_TRY(lines_open(&lines, table));
    const size_t n = marey_table_n_rows(lines.table);
    marey__buf_puts(out, n > 0 ? heading : "");
    for (size_t row = 0; row < n; row++) {
        put_name(out, &lines, row);
        put_row(out, &lines, row);
        marey__buf_puts(out, "\n");
    }
    return MAREY_OK;
}

/* Prints the mean and its spread. */
static void put_averages(struct marey__buf *out, const struct lines *view, const char *heading)
{
    static const char *const columns[][2] = {
        {"std", "std_ns"}, {"p50", "p50_ns"}, {"p90", "p90_ns"}, {"p99", "p99_ns"}, {"max", "max_ns"}};
    marey__buf_printf(out, "%s\n", heading);
    for (size_t row = 0; row < marey_table_n_rows(view->table); row++) {
        put_name(out, view, row);
        put_time(out, view, row, "mean_ns");
        for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++) {
            marey__buf_printf(out, "  %s", columns[i][0]);
            put_time(out, view, row, columns[i][1]);
        }
        marey__buf_puts(out, is_running(view, row) ? "  running\n" : "\n");
    }
    put_separator(out);
}

static void put_totals(struct marey__buf *out, const struct lines *intervals,
                       const struct lines *iterations)
{
    marey__buf_puts(out, "Total runtime:\n");
    for (size_t row = 0; row < marey_table_n_rows(intervals->table); row++) {
        put_name(out, intervals, row);
        put_time(out, intervals, row, "total_ns");
        marey__buf_puts(out, "  self");
        put_time(out, intervals, row, "self_ns");
        marey__buf_puts(out, "  in ");
        marey__text_count_of(out, cell_of(intervals, row, "count").as.u64, "interval");
        /* A name may have been added between the two tables. */
        const struct marey_cell share = row < marey_table_n_rows(iterations->table)
                                            ? cell_of(iterations, row, "share")
                                            : (struct marey_cell){.is_null = 1};
        if (!share.is_null) {
            marey__buf_puts(out, "  ");
            marey__text_share(out, share.as.f64);
            marey__buf_puts(out, " of the iterations");
        }
        marey__buf_puts(out, is_running(intervals, row) ? "  running\n" : "\n");
    }
    put_separator(out);
}

/* ---- GPU time, usage and other sections ---- */

static void put_usage(struct marey__buf *out, const struct lines *usage, size_t row)
{
    static const char *const shares[][2] = {{"thread_cpu", "thread"},
                                            {"process_cpu", "process"},
                                            {"tree_cpu", "with children"},
                                            {"machine_cpu", "machine"}},
                             *const counts[][2] = {{"context_switches", "context switches"},
                                                   {"page_faults", "page faults"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(shares); i++) {
        const struct marey_cell cell = cell_of(usage, row, shares[i][0]);
        if (!cell.is_null)
            marey__buf_printf(out, "  %s %.1f %%", shares[i][1], cell.as.f64 * 100);
    }
    for (size_t i = 0; i < MAREY__COUNT_OF(counts); i++) {
        const struct marey_cell cell = cell_of(usage, row, counts[i][0]);
        if (!cell.is_null)
            marey__buf_printf(out, "  %s %" PRIu64, counts[i][1], cell.as.u64);
    }
    const struct marey_cell growth = cell_of(usage, row, "rss_bytes");
    if (growth.is_null)
        return;
    marey__buf_puts(out, growth.as.i64 < 0 ? "  memory -" : "  memory +");
    marey__text_bytes(out, growth.as.i64 < 0 ? -(double)growth.as.i64 : (double)growth.as.i64);
}

/* Explains missing GPU times. */
static void put_gpu_losses(struct marey__buf *out)
{
    struct marey__gpu_counts counts;
    marey__gpu_counts_get(&counts);
    const struct {
        uint64_t n;
        const char *why;
    } losses[] = {{counts.n_pending, "not finished yet"},
                  {counts.n_captured, "in the capture of a graph"},
                  {counts.n_no_context, "on threads that do not use the GPU"},
                  {counts.n_full, "too many at once"},
                  {counts.n_two_devices, "ended on another device"},
                  {counts.n_failed, "refused by CUDA"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(losses); i++) {
        if (losses[i].n == 0)
            continue;
        marey__buf_puts(out, "  ");
        marey__text_count_of(out, losses[i].n, "interval");
        marey__buf_printf(out, " without a time: %s\n", losses[i].why);
    }
}

static marey_status put_gpu(struct marey__buf *out)
{
    struct lines gpu MAREY__FINALLY(lines_close) = {0};
    if (marey__stopwatch_state.options.gpu != MAREY_GPU_EVENTS)
        return MAREY_OK;
    MAREY_TRY(lines_open(&gpu, "gpu"));
    put_averages(out, &gpu, "Average GPU time per measured interval:");
    put_gpu_losses(out);
    return MAREY_OK;
}

static void put_iteration_line(struct marey__buf *out, const struct lines *iteration)
{
    const struct marey_cell rate = cell_of(iteration, 0, "samples_per_s");
    marey__buf_puts(out, "Time of an iteration:");
    put_time(out, iteration, 0, "mean_ns");
    marey__buf_puts(out, "  p50");
    put_time(out, iteration, 0, "p50_ns");
    marey__buf_puts(out, "  p99");
    put_time(out, iteration, 0, "p99_ns");
    if (!rate.is_null) {
        marey__buf_puts(out, "  ");
        marey__text_real(out, rate.as.f64);
        marey__buf_puts(out, " samples/s");
    }
    marey__buf_puts(out, "\n");
}

static marey_status put_measured(struct marey__buf *out, uint64_t n)
{
    struct lines iterations MAREY__FINALLY(lines_close) = {0};
    struct lines intervals MAREY__FINALLY(lines_close) = {0};
    struct lines iteration MAREY__FINALLY(lines_close) = {0};
    MAREY_TRY(lines_open(&iterations, "iterations"));
    MAREY_TRY(lines_open(&intervals, "intervals"));
    MAREY_TRY(lines_open(&iteration, "iteration"));
    marey__buf_printf(out, "Num. measured iterations: %" PRIu64 "\n", n);
    put_iteration_line(out, &iteration);
    put_separator(out);
    put_averages(out, &iterations, "Average runtime per iteration:");
    put_averages(out, &intervals, "Average runtime per measured interval:");
    put_totals(out, &intervals, &iterations);
    const size_t before = out->len;
    MAREY_TRY(
        put_section(out, "usage", "Mean CPU usage during (100 % is one CPU core):\n", put_usage));
    if (out->len > before)
        put_separator(out);
    return put_gpu(out);
}

static void put_once(struct marey__buf *out, const struct lines *once, size_t row)
{
    if (is_running(once, row))
        marey__buf_puts(out, "   running");
    else
        put_time(out, once, row, "total_ns");
}

static void put_misuse(struct marey__buf *out, const struct lines *misuse, size_t row)
{
    marey__buf_printf(out, "  %s, %" PRIu64 " x", cell_of(misuse, row, "what").as.text,
                      cell_of(misuse, row, "count").as.u64);
}

/* Prints the number of measurements, or why there are none yet. */
static marey_status put_state(struct marey__buf *out)
{
    const struct marey__iteration_place place = marey__iteration_place();
    marey__stopwatch_lock();
    const uint64_t n = marey__stopwatch_state.n_measured, first = marey__stopwatch_state.warmup_first;
    const bool in_warmup = (marey__stopwatch_state.mode & MAREY__STOPWATCH_WARMUP) != 0;
    marey__stopwatch_unlock();
    if (n > 0)
        return put_measured(out, n);
    if (in_warmup && place.n_finished >= first)
        marey__buf_printf(out,
                          "Warm-up is not finished yet (%" PRIu64 " out of %" PRIu64
                          " iterations are done)\n",
                          place.n_finished - first, place.warmup_end - first);
    else
        marey__buf_puts(out, "Warm-up is finished, but no iteration was measured yet\n");
    return MAREY_OK;
}

static marey_status put_report(struct marey__buf *out)
{
    put_repeated(out, "#", 25);
    marey__buf_puts(out, " Stopwatch ");
    put_repeated(out, "#", 25);
    marey__buf_puts(out, "\n");
    marey__buf_puts(out, DIVIDER);
    MAREY_TRY(put_state(out));
    MAREY_TRY(put_section(out, "once", DIVIDER "One-time measurements:\n", put_once));
    MAREY_TRY(put_section(out, "misuse", DIVIDER "Used wrongly:\n", put_misuse));
    marey__buf_puts(out, DIVIDER);
    put_repeated(out, "#", 61);
    marey__buf_puts(out, "\n");
    return MAREY_OK;
}

marey_status marey_stopwatch_print(FILE *out)
{
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(put_report(&buf));
    MAREY_TRY(marey__buf_to_stream(&buf, out));
    return fflush(out) == 0 ? MAREY_OK : marey__fail_errno("write the stopwatch's report");
}

/* ---- automatic reports every so many iterations ---- */

static struct {
    marey_stopwatch_printer *print; /* guarded by the stopwatch's lock, like `ctx` */
    void *ctx;
} printer;

void marey_stopwatch_set_printer(marey_stopwatch_printer *print, void *ctx)
{
    MAREY__STOPWATCH_HOLD();
    printer.print = print;
    printer.ctx = ctx;
}

void marey__stopwatch_print_by_itself(void)
{
    marey__stopwatch_lock();
    marey_stopwatch_printer *const print = printer.print;
    void *const ctx = printer.ctx;
    marey__stopwatch_unlock();
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    const marey_status st = print == NULL ? marey_stopwatch_print(stdout) : put_report(&buf);
    if (st != MAREY_OK)
        marey__say("the stopwatch could not print its report: %s", marey_last_error());
    else if (print != NULL && !buf.failed)
        print(ctx, buf.data, buf.len);
}
