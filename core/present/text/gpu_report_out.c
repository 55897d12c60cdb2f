/*
 * A report of GPU work: in a report of ranges for people, tables with a heading each;
 * as JSON all of its tables.
 */
#include <string.h>

#include "analyze/device/gpu_report_internal.h"
#include "present/draw/internal.h"
#include "present/text/internal.h"

/* Gaps that are drawn. */
enum { MAX_GAPS = 10 };

static marey_status put_line(struct marey__buf *line, FILE *out)
{
    marey__buf_puts(line, "\n");
    return marey__buf_to_stream(line, out);
}

/* ---- text ---- */

/* What a screen has no room for, and processes where there is one. */
static const char *const hidden[] = {
    "self_launch_ns", "delay_mean_ns", "delay_max_ns", "reason_share", NULL,
};
static const char *const hidden_alone[] = {
    "rank", "pid", "self_launch_ns", "delay_mean_ns", "delay_max_ns", "reason_share", NULL,
};

static const char *heading_of(enum marey__gpu_table table)
{
    static const char *const headings[MAREY__N_GPU_TABLES] = {
        [MAREY__GPU_DEVICES] = "GPUs",
        [MAREY__GPU_KERNELS] = "GPU work by name",
        [MAREY__GPU_SHAPES] = "kernels by launch shape",
        [MAREY__GPU_COPIES] = "copies and memory sets",
        [MAREY__GPU_STREAMS] = "streams",
        [MAREY__GPU_RANGES] = "GPU work by the ranges that launched it",
        [MAREY__GPU_LAUNCH_BOUND] = "where GPUs wait for the host",
        [MAREY__GPU_ITERATIONS] = "iterations",
        [MAREY__GPU_GAPS] = "longest gaps",
    };
    return headings[table];
}

static marey_status draw(const marey_table *table, enum marey__gpu_table which,
                         const struct marey__gpu_text *text, struct marey__buf *line, FILE *out)
{
    const size_t n = marey_table_n_rows(table), limit = text->limit != 0 ? text->limit : n;
    const struct marey__text_view view = {
        .table = table,
        .options = text->options,
        .n_rows = MAREY__MIN(n, which == MAREY__GPU_GAPS ? MAREY__MIN(limit, MAX_GAPS) : limit),
        .hide = text->is_alone ? hidden_alone : hidden,
    };
    if (n == 0)
        return MAREY_OK;
    marey__buf_printf(line, "%s%s%s", text->options.color ? DIM : "", heading_of(which),
                      text->options.color ? PLAIN : "");
    MAREY_TRY(put_line(line, out));
    MAREY_TRY(marey__text_draw(&view, out));
    if (view.n_rows < n) {
        marey__buf_printf(line, "... and %zu more; --all shows them", n - view.n_rows);
        MAREY_TRY(put_line(line, out));
    }
    return put_line(line, out);
}

marey_status marey__gpu_report_text(const struct marey_gpu_report *report,
                                    const struct marey__gpu_text *text, struct marey__buf *line,
                                    FILE *out)
{
    marey_table *const *tables = report->tables;
    if (marey_table_n_rows(tables[MAREY__GPU_DEVICES]) == 0) {
        marey__buf_puts(line,
                        "No GPU work was recorded: marey run --gpu records it, and a trace of "
                        "torch.profiler has it.\n");
        return put_line(line, out);
    }
    for (size_t t = 0; t < MAREY__GPU_WARNINGS; t++)
        MAREY_TRY(draw(tables[t], (enum marey__gpu_table)t, text, line, out));
    return marey__ncu_put(tables[MAREY__GPU_KERNELS], &text->ncu, line, out);
}

/* ---- JSON ---- */

marey_status marey_gpu_report_json(marey_gpu_report *report, FILE *out)
{
    const marey_table *tables[MAREY__N_GPU_TABLES];
    for (size_t t = 0; t < MAREY__N_GPU_TABLES; t++)
        tables[t] = report->tables[t];
    return marey_present_json_tables(tables, MAREY__N_GPU_TABLES, out);
}
