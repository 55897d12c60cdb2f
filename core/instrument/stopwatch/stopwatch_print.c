/*
 * The report: the sections and headings of print_eval_times, in its order, with units, deviations and quantiles beside
 * the averages, and sections for what is new behind them.
 */
#include <inttypes.h>
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"

/* The mean and what is around it. */
static void put_averages(struct marey__buf *out, const struct marey__stopwatch_lines *view,
                         const char *heading)
{
    static const char *const columns[][2] = {
        {"std", "std_ns"}, {"p50", "p50_ns"}, {"p90", "p90_ns"}, {"p99", "p99_ns"}, {"max", "max_ns"}};
    marey__buf_printf(out, "%s\n", heading);
    for (size_t row = 0; row < marey_table_n_rows(view->table); row++) {
        marey__line_name(out, view, row);
        marey__line_time(out, view, row, "mean_ns");
        for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++) {
            marey__buf_printf(out, "  %s", columns[i][0]);
            marey__line_time(out, view, row, columns[i][1]);
        }
        marey__buf_puts(out, marey__line_runs(view, row) ? "  running\n" : "\n");
    }
    marey__line_separator(out);
}

static void put_totals(struct marey__buf *out, const struct marey__stopwatch_lines *intervals,
                       const struct marey__stopwatch_lines *iterations)
{
    marey__buf_puts(out, "Total runtime:\n");
    for (size_t row = 0; row < marey_table_n_rows(intervals->table); row++) {
        marey__line_name(out, intervals, row);
        marey__line_time(out, intervals, row, "total_ns");
        marey__buf_puts(out, "  self");
        marey__line_time(out, intervals, row, "self_ns");
        marey__buf_puts(out, "  in ");
        marey__text_count_of(out, marey__line_cell(intervals, row, "count").as.u64, "interval");
        /* A name may have come between the two tables. */
        const struct marey_cell share = row < marey_table_n_rows(iterations->table)
                                            ? marey__line_cell(iterations, row, "share")
                                            : (struct marey_cell){.is_null = 1};
        if (!share.is_null) {
            marey__buf_puts(out, "  ");
            marey__text_share(out, share.as.f64);
            marey__buf_puts(out, " of the iterations");
        }
        marey__buf_puts(out, marey__line_runs(intervals, row) ? "  running\n" : "\n");
    }
    marey__line_separator(out);
}

/* ---- what is measured besides time ---- */

static void put_percent(struct marey__buf *out, const struct marey__stopwatch_lines *view,
                        size_t row, const char *column, const char *title)
{
    const struct marey_cell cell = marey__line_cell(view, row, column);
    if (!cell.is_null)
        marey__buf_printf(out, "  %s %.1f %%", title, cell.as.f64 * 100);
}

static void put_number(struct marey__buf *out, const struct marey__stopwatch_lines *view,
                       size_t row, const char *column, const char *title)
{
    const struct marey_cell cell = marey__line_cell(view, row, column);
    if (!cell.is_null)
        marey__buf_printf(out, "  %s %" PRIu64, title, cell.as.u64);
}

static void put_growth(struct marey__buf *out, const struct marey__stopwatch_lines *view, size_t row)
{
    const struct marey_cell cell = marey__line_cell(view, row, "rss_bytes");
    if (cell.is_null)
        return;
    marey__buf_puts(out, cell.as.i64 < 0 ? "  memory -" : "  memory +");
    marey__text_bytes(out, cell.as.i64 < 0 ? -(double)cell.as.i64 : (double)cell.as.i64);
}

static marey_status put_usage(struct marey__buf *out)
{
    struct marey__stopwatch_lines usage;
    MAREY_TRY(marey__lines_open(&usage, "usage"));
    const size_t n = marey_table_n_rows(usage.table);
    if (n > 0)
        marey__buf_puts(out, "Mean CPU usage during (100 % is one processor):\n");
    for (size_t row = 0; row < n; row++) {
        marey__line_name(out, &usage, row);
        put_percent(out, &usage, row, "thread_cpu", "thread");
        put_percent(out, &usage, row, "process_cpu", "process");
        put_percent(out, &usage, row, "tree_cpu", "with children");
        put_percent(out, &usage, row, "machine_cpu", "machine");
        put_number(out, &usage, row, "context_switches", "context switches");
        put_number(out, &usage, row, "page_faults", "page faults");
        put_growth(out, &usage, row);
        marey__buf_puts(out, "\n");
    }
    if (n > 0)
        marey__line_separator(out);
    marey_table_destroy(usage.table);
    return MAREY_OK;
}

/* Why some have no time. */
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
    struct marey__stopwatch_lines gpu;
    if (marey__stopwatch_state.options.gpu != MAREY_GPU_EVENTS)
        return MAREY_OK;
    MAREY_TRY(marey__lines_open(&gpu, "gpu"));
    put_averages(out, &gpu, "Average GPU time per measured interval:");
    put_gpu_losses(out);
    marey_table_destroy(gpu.table);
    return MAREY_OK;
}

static void put_iteration_line(struct marey__buf *out, const struct marey__stopwatch_lines *iteration)
{
    const struct marey_cell rate = marey__line_cell(iteration, 0, "samples_per_s");
    marey__buf_puts(out, "Time of an iteration:");
    marey__line_time(out, iteration, 0, "mean_ns");
    marey__buf_puts(out, "  p50");
    marey__line_time(out, iteration, 0, "p50_ns");
    marey__buf_puts(out, "  p99");
    marey__line_time(out, iteration, 0, "p99_ns");
    if (!rate.is_null)
        marey__buf_printf(out, "  %.4g samples/s", rate.as.f64);
    marey__buf_puts(out, "\n");
}

static marey_status put_measured(struct marey__buf *out, uint64_t n)
{
    struct marey__stopwatch_lines iterations, intervals, iteration;
    marey_status st = marey__lines_open(&iterations, "iterations");
    MAREY_TRY(st);
    st = marey__lines_open(&intervals, "intervals");
    if (st == MAREY_OK && (st = marey__lines_open(&iteration, "iteration")) == MAREY_OK) {
        marey__buf_printf(out, "Num. measured iterations: %" PRIu64 "\n", n);
        put_iteration_line(out, &iteration);
        marey__line_separator(out);
        put_averages(out, &iterations, "Average runtime per iteration:");
        put_averages(out, &intervals, "Average runtime per measured interval:");
        put_totals(out, &intervals, &iterations);
        marey_table_destroy(iteration.table);
    }
    marey_table_destroy(intervals.table);
    marey_table_destroy(iterations.table);
    MAREY_TRY(st);
    MAREY_TRY(put_usage(out));
    return put_gpu(out);
}

static marey_status put_once(struct marey__buf *out)
{
    struct marey__stopwatch_lines once;
    MAREY_TRY(marey__lines_open(&once, "once"));
    if (marey_table_n_rows(once.table) > 0) {
        marey__line_divider(out);
        marey__buf_puts(out, "One-time measurements:\n");
    }
    for (size_t row = 0; row < marey_table_n_rows(once.table); row++) {
        marey__line_name(out, &once, row);
        if (marey__line_runs(&once, row))
            marey__buf_puts(out, "   running");
        else
            marey__line_time(out, &once, row, "total_ns");
        marey__buf_puts(out, "\n");
    }
    marey_table_destroy(once.table);
    return MAREY_OK;
}

static marey_status put_misuse(struct marey__buf *out)
{
    struct marey__stopwatch_lines misuse;
    MAREY_TRY(marey__lines_open(&misuse, "misuse"));
    if (marey_table_n_rows(misuse.table) > 0) {
        marey__line_divider(out);
        marey__buf_puts(out, "Used wrongly:\n");
    }
    for (size_t row = 0; row < marey_table_n_rows(misuse.table); row++) {
        marey__line_name(out, &misuse, row);
        marey__buf_printf(out, "  %s, %" PRIu64 " x\n",
                          marey__line_cell(&misuse, row, "what").as.text,
                          marey__line_cell(&misuse, row, "count").as.u64);
    }
    marey_table_destroy(misuse.table);
    return MAREY_OK;
}

/* What stands there while nothing is measured yet, or the measurements. */
static marey_status put_state(struct marey__buf *out)
{
    const struct marey__iteration_place place = marey__iteration_place();
    marey__stopwatch_lock();
    const uint64_t n = marey__stopwatch_state.n_measured, first = marey__stopwatch_state.warmup_first;
    const bool in_warmup = (marey__stopwatch_state.mode & MAREY__WATCH_WARMUP) != 0;
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
    marey__line_repeat(out, "#", 25);
    marey__buf_puts(out, " Stopwatch ");
    marey__line_rule(out, "#", 25);
    marey__line_divider(out);
    MAREY_TRY(put_state(out));
    MAREY_TRY(put_once(out));
    MAREY_TRY(put_misuse(out));
    marey__line_divider(out);
    marey__line_rule(out, "#", 61);
    return MAREY_OK;
}

marey_status marey_stopwatch_print(FILE *out)
{
    struct marey__buf buf = {0};
    marey_status st = put_report(&buf);
    if (st == MAREY_OK)
        st = marey__buf_to_stream(&buf, out);
    if (st == MAREY_OK && fflush(out) != 0)
        st = marey__fail_errno("write the stopwatch's report");
    marey__buf_fini(&buf);
    return st;
}

/* ---- by itself, every so many iterations ---- */

static struct {
    marey_stopwatch_printer *print; /* guarded by the stopwatch's lock, as is `ctx` */
    void *ctx;
} printer;

void marey_stopwatch_set_printer(marey_stopwatch_printer *print, void *ctx)
{
    marey__stopwatch_lock();
    printer.print = print;
    printer.ctx = ctx;
    marey__stopwatch_unlock();
}

void marey__stopwatch_print_by_itself(void)
{
    marey__stopwatch_lock();
    marey_stopwatch_printer *const print = printer.print;
    void *const ctx = printer.ctx;
    marey__stopwatch_unlock();
    struct marey__buf buf = {0};
    marey_status st = MAREY_OK;
    if (print == NULL) {
        st = marey_stopwatch_print(stdout);
    } else if ((st = put_report(&buf)) == MAREY_OK && !buf.failed) {
        print(ctx, buf.data, buf.len);
    }
    if (st != MAREY_OK)
        marey__say("the stopwatch could not print its report: %s", marey_last_error());
    marey__buf_fini(&buf);
}
