/*
 * A report of GPU work: in a report of ranges for people, tables with a heading each;
 * as JSON all of its tables.
 */
#include <string.h>

#include "analyze/gpu_report_internal.h"
#include "present/present_internal.h"
#include "present/report_internal.h"
#include "present/style.h"

/* Gaps that are drawn. */
enum { MAX_GAPS = 10 };

static kymo_status put_line(struct kymo__buf *line, FILE *out)
{
    kymo__buf_puts(line, "\n");
    return kymo__buf_to_stream(line, out);
}

/* ---- text ---- */

/* What a screen has no room for, and processes where there is one. */
static const char *const hidden[] = {
    "self_launch_ns", "delay_mean_ns", "delay_max_ns", "reason_share", NULL,
};
static const char *const hidden_alone[] = {
    "rank", "pid", "self_launch_ns", "delay_mean_ns", "delay_max_ns", "reason_share", NULL,
};

static const char *heading_of(enum kymo__gpu_table table)
{
    static const char *const headings[KYMO__N_GPU_TABLES] = {
        [KYMO__GPU_DEVICES] = "GPUs",
        [KYMO__GPU_KERNELS] = "GPU work by name",
        [KYMO__GPU_SHAPES] = "kernels by launch shape",
        [KYMO__GPU_COPIES] = "copies and memory sets",
        [KYMO__GPU_STREAMS] = "streams",
        [KYMO__GPU_RANGES] = "GPU work by the ranges that launched it",
        [KYMO__GPU_LAUNCH_BOUND] = "where GPUs wait for the host",
        [KYMO__GPU_ITERATIONS] = "iterations",
        [KYMO__GPU_GAPS] = "longest gaps",
    };
    return headings[table];
}

static kymo_status draw(const kymo_table *table, enum kymo__gpu_table which,
                        const struct kymo__gpu_text *text, struct kymo__buf *line, FILE *out)
{
    const size_t n = kymo_table_n_rows(table), limit = text->limit != 0 ? text->limit : n;
    const struct kymo__text_view view = {
        .table = table,
        .options = text->options,
        .n_rows = KYMO__MIN(n, which == KYMO__GPU_GAPS ? KYMO__MIN(limit, MAX_GAPS) : limit),
        .hide = text->is_alone ? hidden_alone : hidden,
    };
    if (n == 0)
        return KYMO_OK;
    kymo__buf_printf(line, "%s%s%s", text->options.color ? DIM : "", heading_of(which),
                     text->options.color ? PLAIN : "");
    KYMO_TRY(put_line(line, out));
    KYMO_TRY(kymo__text_draw(&view, out));
    if (view.n_rows < n) {
        kymo__buf_printf(line, "... and %zu more; --all shows them", n - view.n_rows);
        KYMO_TRY(put_line(line, out));
    }
    return put_line(line, out);
}

kymo_status kymo__gpu_report_text(const struct kymo_gpu_report *report,
                                  const struct kymo__gpu_text *text, struct kymo__buf *line,
                                  FILE *out)
{
    kymo_table *const *tables = report->tables;
    if (kymo_table_n_rows(tables[KYMO__GPU_DEVICES]) == 0) {
        kymo__buf_puts(line, "No GPU work was recorded: kymo run --gpu records it, and a trace of "
                             "torch.profiler has it.\n");
        return put_line(line, out);
    }
    for (size_t t = 0; t < KYMO__GPU_WARNINGS; t++)
        KYMO_TRY(draw(tables[t], (enum kymo__gpu_table)t, text, line, out));
    return kymo__ncu_put(tables[KYMO__GPU_KERNELS], &text->ncu, line, out);
}

/* ---- JSON ---- */

kymo_status kymo_gpu_report_json(kymo_gpu_report *report, FILE *out)
{
    const kymo_table *tables[KYMO__N_GPU_TABLES];
    for (size_t t = 0; t < KYMO__N_GPU_TABLES; t++)
        tables[t] = report->tables[t];
    return kymo_present_json_tables(tables, KYMO__N_GPU_TABLES, out);
}
