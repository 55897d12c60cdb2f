/* The whole answer of `kymo report` as one JSON object. Keys are fixed: scripts lean on them. */
#include <inttypes.h>
#include <string.h>

#include "present/export_internal.h"
#include "present/report_internal.h"
#include <kymo/gpu_report.h>

static kymo_status put_table(const kymo_table *table, size_t limit, struct kymo__buf *buf, FILE *out)
{
    const size_t n = kymo_table_n_rows(table);
    kymo__buf_printf(buf, "  \"%s\": ", kymo_table_name(table));
    KYMO_TRY(kymo__buf_to_stream(buf, out));
    KYMO_TRY(kymo__json_rows(table, limit != 0 && n > limit ? limit : n, "  ", out));
    kymo__buf_puts(buf, ",\n");
    return kymo__buf_to_stream(buf, out);
}

/* The tables asked for, those that are always there first. */
static kymo_status put_tables(kymo_summary *summary, const struct kymo_report_options *options,
                              struct kymo__buf *buf, FILE *out)
{
    static const enum kymo__summary_table always[] = {
        KYMO__TABLE_RANGES,     KYMO__TABLE_ASYNC,
        KYMO__TABLE_COUNTERS,   KYMO__TABLE_MARKS,
        KYMO__TABLE_OPEN,       KYMO__TABLE_PROCESSES,
        KYMO__TABLE_ITERATIONS, KYMO__TABLE_ITERATION_RANKS,
        KYMO__TABLE_THROUGHPUT, KYMO__TABLE_EPOCHS,
        KYMO__TABLE_PHASES,     KYMO__TABLE_OUTLIERS,
        KYMO__TABLE_KERNELS,    KYMO__TABLE_COPIES,
        KYMO__TABLE_GPU_RANGES, KYMO__TABLE_RANK_SPREAD,
        KYMO__TABLE_RANK_TIMES, KYMO__TABLE_RANK_OUTLIERS,
        KYMO__TABLE_RANK_HOSTS,
    };
    kymo_table *asked[KYMO__N_TABLES];
    size_t n;
    KYMO_TRY(kymo__report_tables(summary, options->tables, asked, &n));
    for (size_t i = 0; i < KYMO__COUNT_OF(always); i++)
        KYMO_TRY(put_table(summary->tables[always[i]],
                           always[i] == KYMO__TABLE_RANGES ? options->limit : 0, buf, out));
    for (size_t i = 0; i < n; i++) {
        bool is_new = asked[i] != summary->tables[KYMO__TABLE_WARNINGS];
        for (size_t a = 0; a < KYMO__COUNT_OF(always); a++)
            is_new &= asked[i] != summary->tables[always[a]];
        if (is_new)
            KYMO_TRY(put_table(asked[i], options->limit, buf, out));
    }
    return KYMO_OK;
}

static kymo_status put_gpu(kymo_gpu_report *gpu, struct kymo__buf *buf, FILE *out)
{
    kymo__buf_puts(buf, "  \"gpu\": ");
    KYMO_TRY(kymo__buf_to_stream(buf, out));
    KYMO_TRY(kymo_gpu_report_json(gpu, out));
    kymo__buf_puts(buf, "  ,\n");
    return kymo__buf_to_stream(buf, out);
}

static void put_warnings(struct kymo__buf *buf, const kymo_table *warnings)
{
    kymo__buf_puts(buf, "  \"warnings\": [");
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++) {
        const struct kymo_cell text = kymo_table_cell(warnings, row, 0);
        kymo__buf_puts(buf, row == 0 ? "\n    " : ",\n    ");
        kymo__json_put(buf, text.as.text, text.len);
    }
    kymo__buf_puts(buf, kymo_table_n_rows(warnings) == 0 ? "],\n" : "\n  ],\n");
}

static void put_number(struct kymo__buf *buf, const char *key, uint64_t value)
{
    kymo__buf_printf(buf, "    \"%s\": %" PRIu64 ",\n", key, value);
}

static void put_cost(struct kymo__buf *buf, const struct kymo_cost *cost)
{
    char share[40];
    const double program = cost->program_ns != 0 ? (double)cost->program_ns : 1;
    char *end = kymo__put_f64(share, (double)cost->high_ns / program);
    kymo__buf_puts(buf, "  \"cost\": {\n");
    put_number(buf, "events", cost->events);
    put_number(buf, "in_program_ns", cost->in_program_ns);
    put_number(buf, "flush_cpu_ns", cost->flush_cpu_ns);
    put_number(buf, "log_bytes", cost->log_bytes);
    put_number(buf, "program_ns", cost->program_ns);
    put_number(buf, "lost_events", cost->lost_events);
    put_number(buf, "incomplete_processes", (uint64_t)cost->n_stopped + cost->n_cut);
    put_number(buf, "lost_first_ns", cost->lost_first_ns);
    put_number(buf, "lost_last_ns", cost->lost_last_ns);
    put_number(buf, "low_ns", cost->low_ns);
    put_number(buf, "high_ns", cost->high_ns);
    kymo__buf_puts(buf, "    \"parts\": ");
    kymo__cost_put_json(buf, cost);
    kymo__buf_printf(buf, ",\n    \"sampling_included\": %s,\n", cost->is_sampled ? "false" : "null");
    kymo__buf_printf(buf, "    \"share\": %.*s\n  }\n}\n", (int)(end - share), share);
}

static kymo_status put_report(kymo_summary *summary, const struct kymo_report_options *options,
                              struct kymo__buf *buf, FILE *out)
{
    KYMO_TRY(kymo__report_sort(summary, options->sort));
    kymo__buf_puts(buf, "{\n");
    KYMO_TRY(put_tables(summary, options, buf, out));
    if (options->gpu != NULL)
        KYMO_TRY(put_gpu(options->gpu, buf, out));
    put_warnings(buf, summary->tables[KYMO__TABLE_WARNINGS]);
    kymo__buf_printf(buf, "  \"lost_events\": %" PRIu64 ",\n", summary->cost.lost_events);
    put_cost(buf, &summary->cost);
    KYMO_TRY(kymo__buf_to_stream(buf, out));
    return fflush(out) == 0 ? KYMO_OK : kymo__fail_errno("write the report");
}

kymo_status kymo_report_json(kymo_summary *summary, const struct kymo_report_options *options,
                             FILE *out)
{
    static const struct kymo_report_options defaults;
    struct kymo__buf buf = {0};
    const kymo_status status = put_report(summary, options != NULL ? options : &defaults, &buf, out);
    kymo__buf_fini(&buf);
    return status;
}
