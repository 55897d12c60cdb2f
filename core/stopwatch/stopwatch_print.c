/*
 * The report: the sections and headings of print_eval_times, in its order, with units, deviations and quantiles beside
 * the averages, and sections for what is new behind them.
 */
#include <inttypes.h>
#include <string.h>

#include "cuda/cuda_internal.h"
#include "stopwatch/stopwatch_lines.h"

/* The mean and what is around it. */
static void put_averages(struct kymo__buf *out, const struct kymo__lines *view, const char *heading)
{
    static const char *const columns[][2] = {
        {"std", "std_ns"}, {"p50", "p50_ns"}, {"p90", "p90_ns"}, {"p99", "p99_ns"}, {"max", "max_ns"}};
    kymo__buf_printf(out, "%s\n", heading);
    for (size_t row = 0; row < kymo_table_n_rows(view->table); row++) {
        kymo__line_name(out, view, row);
        kymo__line_time(out, view, row, "mean_ns");
        for (size_t i = 0; i < KYMO__COUNT_OF(columns); i++) {
            kymo__buf_printf(out, "  %s", columns[i][0]);
            kymo__line_time(out, view, row, columns[i][1]);
        }
        kymo__buf_puts(out, kymo__line_runs(view, row) ? "  running\n" : "\n");
    }
    kymo__line_separator(out);
}

static void put_totals(struct kymo__buf *out, const struct kymo__lines *intervals,
                       const struct kymo__lines *iterations)
{
    kymo__buf_puts(out, "Total runtime:\n");
    for (size_t row = 0; row < kymo_table_n_rows(intervals->table); row++) {
        kymo__line_name(out, intervals, row);
        kymo__line_time(out, intervals, row, "total_ns");
        kymo__buf_puts(out, "  self");
        kymo__line_time(out, intervals, row, "self_ns");
        kymo__buf_puts(out, "  in ");
        kymo__text_count_of(out, kymo__line_cell(intervals, row, "count").as.u64, "interval");
        /* A name may have come between the two tables. */
        const struct kymo_cell share = row < kymo_table_n_rows(iterations->table)
                                           ? kymo__line_cell(iterations, row, "share")
                                           : (struct kymo_cell){.is_null = 1};
        if (!share.is_null) {
            kymo__buf_puts(out, "  ");
            kymo__text_share(out, share.as.f64);
            kymo__buf_puts(out, " of the iterations");
        }
        kymo__buf_puts(out, kymo__line_runs(intervals, row) ? "  running\n" : "\n");
    }
    kymo__line_separator(out);
}

/* ---- what is measured besides time ---- */

static void put_percent(struct kymo__buf *out, const struct kymo__lines *view, size_t row,
                        const char *column, const char *title)
{
    const struct kymo_cell cell = kymo__line_cell(view, row, column);
    if (!cell.is_null)
        kymo__buf_printf(out, "  %s %.1f %%", title, cell.as.f64 * 100);
}

static void put_number(struct kymo__buf *out, const struct kymo__lines *view, size_t row,
                       const char *column, const char *title)
{
    const struct kymo_cell cell = kymo__line_cell(view, row, column);
    if (!cell.is_null)
        kymo__buf_printf(out, "  %s %" PRIu64, title, cell.as.u64);
}

static void put_growth(struct kymo__buf *out, const struct kymo__lines *view, size_t row)
{
    const struct kymo_cell cell = kymo__line_cell(view, row, "rss_bytes");
    if (cell.is_null)
        return;
    kymo__buf_puts(out, cell.as.i64 < 0 ? "  memory -" : "  memory +");
    kymo__text_bytes(out, cell.as.i64 < 0 ? -(double)cell.as.i64 : (double)cell.as.i64);
}

static kymo_status put_usage(struct kymo__buf *out)
{
    struct kymo__lines usage;
    KYMO_TRY(kymo__lines_open(&usage, "usage"));
    const size_t n = kymo_table_n_rows(usage.table);
    if (n > 0)
        kymo__buf_puts(out, "Mean CPU usage during (100 % is one processor):\n");
    for (size_t row = 0; row < n; row++) {
        kymo__line_name(out, &usage, row);
        put_percent(out, &usage, row, "thread_cpu", "thread");
        put_percent(out, &usage, row, "process_cpu", "process");
        put_percent(out, &usage, row, "tree_cpu", "with children");
        put_percent(out, &usage, row, "machine_cpu", "machine");
        put_number(out, &usage, row, "context_switches", "context switches");
        put_number(out, &usage, row, "page_faults", "page faults");
        put_growth(out, &usage, row);
        kymo__buf_puts(out, "\n");
    }
    if (n > 0)
        kymo__line_separator(out);
    kymo_table_destroy(usage.table);
    return KYMO_OK;
}

/* Why some have no time. */
static void put_gpu_losses(struct kymo__buf *out)
{
    struct kymo__gpu_counts counts;
    kymo__gpu_counts_get(&counts);
    const struct {
        uint64_t n;
        const char *why;
    } losses[] = {{counts.n_pending, "not finished yet"},
                  {counts.n_captured, "in the capture of a graph"},
                  {counts.n_no_context, "on threads that do not use the GPU"},
                  {counts.n_full, "too many at once"},
                  {counts.n_two_devices, "ended on another device"},
                  {counts.n_failed, "refused by CUDA"}};
    for (size_t i = 0; i < KYMO__COUNT_OF(losses); i++) {
        if (losses[i].n == 0)
            continue;
        kymo__buf_puts(out, "  ");
        kymo__text_count_of(out, losses[i].n, "interval");
        kymo__buf_printf(out, " without a time: %s\n", losses[i].why);
    }
}

static kymo_status put_gpu(struct kymo__buf *out)
{
    struct kymo__lines gpu;
    if (kymo__watch.options.gpu != KYMO_GPU_EVENTS)
        return KYMO_OK;
    KYMO_TRY(kymo__lines_open(&gpu, "gpu"));
    put_averages(out, &gpu, "Average GPU time per measured interval:");
    put_gpu_losses(out);
    kymo_table_destroy(gpu.table);
    return KYMO_OK;
}

static void put_iteration_line(struct kymo__buf *out, const struct kymo__lines *iteration)
{
    const struct kymo_cell rate = kymo__line_cell(iteration, 0, "samples_per_s");
    kymo__buf_puts(out, "Time of an iteration:");
    kymo__line_time(out, iteration, 0, "mean_ns");
    kymo__buf_puts(out, "  p50");
    kymo__line_time(out, iteration, 0, "p50_ns");
    kymo__buf_puts(out, "  p99");
    kymo__line_time(out, iteration, 0, "p99_ns");
    if (!rate.is_null)
        kymo__buf_printf(out, "  %.4g samples/s", rate.as.f64);
    kymo__buf_puts(out, "\n");
}

static kymo_status put_measured(struct kymo__buf *out, uint64_t n)
{
    struct kymo__lines iterations, intervals, iteration;
    kymo_status st = kymo__lines_open(&iterations, "iterations");
    KYMO_TRY(st);
    st = kymo__lines_open(&intervals, "intervals");
    if (st == KYMO_OK && (st = kymo__lines_open(&iteration, "iteration")) == KYMO_OK) {
        kymo__buf_printf(out, "Num. measured iterations: %" PRIu64 "\n", n);
        put_iteration_line(out, &iteration);
        kymo__line_separator(out);
        put_averages(out, &iterations, "Average runtime per iteration:");
        put_averages(out, &intervals, "Average runtime per measured interval:");
        put_totals(out, &intervals, &iterations);
        kymo_table_destroy(iteration.table);
    }
    kymo_table_destroy(intervals.table);
    kymo_table_destroy(iterations.table);
    KYMO_TRY(st);
    KYMO_TRY(put_usage(out));
    return put_gpu(out);
}

static kymo_status put_once(struct kymo__buf *out)
{
    struct kymo__lines once;
    KYMO_TRY(kymo__lines_open(&once, "once"));
    if (kymo_table_n_rows(once.table) > 0) {
        kymo__line_divider(out);
        kymo__buf_puts(out, "One-time measurements:\n");
    }
    for (size_t row = 0; row < kymo_table_n_rows(once.table); row++) {
        kymo__line_name(out, &once, row);
        if (kymo__line_runs(&once, row))
            kymo__buf_puts(out, "   running");
        else
            kymo__line_time(out, &once, row, "total_ns");
        kymo__buf_puts(out, "\n");
    }
    kymo_table_destroy(once.table);
    return KYMO_OK;
}

static kymo_status put_misuse(struct kymo__buf *out)
{
    struct kymo__lines misuse;
    KYMO_TRY(kymo__lines_open(&misuse, "misuse"));
    if (kymo_table_n_rows(misuse.table) > 0) {
        kymo__line_divider(out);
        kymo__buf_puts(out, "Used wrongly:\n");
    }
    for (size_t row = 0; row < kymo_table_n_rows(misuse.table); row++) {
        kymo__line_name(out, &misuse, row);
        kymo__buf_printf(out, "  %s, %" PRIu64 " x\n", kymo__line_cell(&misuse, row, "what").as.text,
                         kymo__line_cell(&misuse, row, "count").as.u64);
    }
    kymo_table_destroy(misuse.table);
    return KYMO_OK;
}

/* What stands there while nothing is measured yet, or the measurements. */
static kymo_status put_state(struct kymo__buf *out)
{
    const struct kymo__iteration_place place = kymo__iteration_place();
    kymo__watch_lock();
    const uint64_t n = kymo__watch.n_measured, first = kymo__watch.warmup_first;
    const bool in_warmup = (kymo__watch.mode & KYMO__WATCH_WARMUP) != 0;
    kymo__watch_unlock();
    if (n > 0)
        return put_measured(out, n);
    if (in_warmup && place.n_finished >= first)
        kymo__buf_printf(out,
                         "Warm-up is not finished yet (%" PRIu64 " out of %" PRIu64
                         " iterations are done)\n",
                         place.n_finished - first, place.warmup_end - first);
    else
        kymo__buf_puts(out, "Warm-up is finished, but no iteration was measured yet\n");
    return KYMO_OK;
}

static kymo_status put_report(struct kymo__buf *out)
{
    kymo__line_repeat(out, "#", 25);
    kymo__buf_puts(out, " Stopwatch ");
    kymo__line_rule(out, "#", 25);
    kymo__line_divider(out);
    KYMO_TRY(put_state(out));
    KYMO_TRY(put_once(out));
    KYMO_TRY(put_misuse(out));
    kymo__line_divider(out);
    kymo__line_rule(out, "#", 61);
    return KYMO_OK;
}

kymo_status kymo_stopwatch_print(FILE *out)
{
    struct kymo__buf buf = {0};
    kymo_status st = put_report(&buf);
    if (st == KYMO_OK)
        st = kymo__buf_to_stream(&buf, out);
    if (st == KYMO_OK && fflush(out) != 0)
        st = kymo__fail_errno("write the stopwatch's report");
    kymo__buf_fini(&buf);
    return st;
}

/* ---- by itself, every so many iterations ---- */

static struct {
    kymo_stopwatch_printer *print; /* guarded by the stopwatch's lock, as is `ctx` */
    void *ctx;
} printer;

void kymo_stopwatch_set_printer(kymo_stopwatch_printer *print, void *ctx)
{
    kymo__watch_lock();
    printer.print = print;
    printer.ctx = ctx;
    kymo__watch_unlock();
}

void kymo__watch_print_by_itself(void)
{
    kymo__watch_lock();
    kymo_stopwatch_printer *const print = printer.print;
    void *const ctx = printer.ctx;
    kymo__watch_unlock();
    struct kymo__buf buf = {0};
    kymo_status st = KYMO_OK;
    if (print == NULL) {
        st = kymo_stopwatch_print(stdout);
    } else if ((st = put_report(&buf)) == KYMO_OK && !buf.failed) {
        print(ctx, buf.data, buf.len);
    }
    if (st != KYMO_OK)
        kymo__say("the stopwatch could not print its report: %s", kymo_last_error());
    kymo__buf_fini(&buf);
}
