/* `marey report` as one JSON object. Keys are stable, because scripts depend on them. */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"

static marey_status put_table(const marey_table *table, size_t limit, struct marey__buf *buf,
                              FILE *out)
{
    const size_t n = marey_table_n_rows(table);
    marey__buf_printf(buf, "  \"%s\": ", marey_table_name(table));
    MAREY_TRY(marey__buf_to_stream(buf, out));
    MAREY_TRY(marey__json_rows(table, limit != 0 && n > limit ? limit : n, "  ", out));
    marey__buf_puts(buf, ",\n");
    return marey__buf_to_stream(buf, out);
}

/* The selected tables, after those that are always present. */
static marey_status put_tables(const marey_report *report, const struct marey_write_options *options,
                               struct marey__buf *buf, FILE *out)
{
    static const enum marey__summary_table always[] = {
        MAREY__TABLE_RANGES,        MAREY__TABLE_ASYNC,
        MAREY__TABLE_COUNTERS,      MAREY__TABLE_MARKS,
        MAREY__TABLE_OPEN,          MAREY__TABLE_PROCESSES,
        MAREY__TABLE_ITERATIONS,    MAREY__TABLE_ITERATION_RANKS,
        MAREY__TABLE_THROUGHPUT,    MAREY__TABLE_EPOCHS,
        MAREY__TABLE_PHASES,        MAREY__TABLE_OUTLIERS,
        MAREY__TABLE_STEADY,        MAREY__TABLE_KERNELS,
        MAREY__TABLE_COPIES,        MAREY__TABLE_GPU_RANGES,
        MAREY__TABLE_RANK_SPREAD,   MAREY__TABLE_RANK_TIMES,
        MAREY__TABLE_RANK_OUTLIERS, MAREY__TABLE_RANK_HOSTS,
    };
    marey_table *asked[MAREY__N_TABLES];
    const char *const list = options->table == NULL && options->section != NULL ? "" : options->table;
    const size_t n = marey__summary_choose(report, list, asked);
    for (size_t i = 0; i < MAREY__COUNT_OF(always); i++)
        MAREY_TRY(put_table(report->tables[always[i]],
                            always[i] == MAREY__TABLE_RANGES ? options->limit : 0, buf, out));
    for (size_t i = 0; i < n; i++) {
        bool is_new = asked[i] != report->tables[MAREY__TABLE_WARNINGS];
        for (size_t a = 0; a < MAREY__COUNT_OF(always); a++)
            is_new &= asked[i] != report->tables[always[a]];
        if (is_new)
            MAREY_TRY(put_table(asked[i], options->limit, buf, out));
    }
    return MAREY_OK;
}

static marey_status put_section(const marey_report *section, struct marey__buf *buf, FILE *out)
{
    marey__buf_printf(buf, "  \"%s\": ", marey_report_analysis(section)->name);
    MAREY_TRY(marey__buf_to_stream(buf, out));
    MAREY_TRY(marey_report_write(section, "json", NULL, out));
    marey__buf_puts(buf, "  ,\n");
    return marey__buf_to_stream(buf, out);
}

static void put_warnings(struct marey__buf *buf, const marey_table *warnings)
{
    marey__buf_puts(buf, "  \"warnings\": [");
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++) {
        const struct marey_cell text = marey_table_cell(warnings, row, 0);
        marey__buf_puts(buf, row == 0 ? "\n    " : ",\n    ");
        marey__json_put(buf, text.as.text, text.len);
    }
    marey__buf_puts(buf, marey_table_n_rows(warnings) == 0 ? "],\n" : "\n  ],\n");
}

static void put_number(struct marey__buf *buf, const char *key, uint64_t value)
{
    marey__buf_printf(buf, "    \"%s\": %" PRIu64 ",\n", key, value);
}

static void put_cost(struct marey__buf *buf, const struct marey_cost *cost)
{
    char share[40];
    const double program = cost->program_ns != 0 ? (double)cost->program_ns : 1;
    char *end = marey__put_f64(share, (double)cost->high_ns / program);
    marey__buf_puts(buf, "  \"cost\": {\n");
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
    marey__buf_puts(buf, "    \"parts\": ");
    marey__cost_put_json(buf, cost);
    marey__buf_printf(buf, ",\n    \"sampling_included\": %s,\n",
                      cost->is_sampled ? "false" : "null");
    marey__buf_printf(buf, "    \"share\": %.*s\n  }\n}\n", (int)(end - share), share);
}

marey_status marey__summary_json(struct marey__report_writer *writer)
{
    const marey_report *const report = writer->report;
    const struct marey_write_options *const options = writer->options;
    struct marey__buf *const buf = &writer->lines.line;
    FILE *const out = writer->lines.out;
    marey__buf_puts(buf, "{\n");
    if (options->lead != NULL)
        MAREY_TRY(put_section(options->lead, buf, out));
    MAREY_TRY(put_tables(report, options, buf, out));
    if (options->section != NULL)
        MAREY_TRY(put_section(options->section, buf, out));
    put_warnings(buf, report->tables[MAREY__TABLE_WARNINGS]);
    marey__buf_printf(buf, "  \"lost_events\": %" PRIu64 ",\n", report->cost.lost_events);
    put_cost(buf, &report->cost);
    return marey__buf_to_stream(buf, out);
}
