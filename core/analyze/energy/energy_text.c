/*
 * Energy for a terminal. The first line of each run has the result; tables follow, without columns that have no values.
 */
#include <inttypes.h>

#include "analyze/energy/internal.h"
#include "present/draw/internal.h"

enum { MAX_ROWS = 30, SHORT_ROWS = 6 };

/* ---- the first lines ---- */

static void put_cell(struct marey__buf *line, const char *before, struct marey_cell cell,
                     const char *after)
{
    if (cell.is_null)
        return;
    marey__buf_puts(line, before);
    marey__text_real(line, cell.as.f64);
    marey__buf_puts(line, after);
}

static void put_kind(struct marey__buf *line, const marey_table *runs, size_t row)
{
    const char *kind = marey__cell_of(runs, row, "kind").as.text;
    const uint64_t n = marey__cell_of(runs, row, "devices").as.u64;
    if (strcmp(kind, "gpu") == 0)
        marey__text_count_of(line, n, "GPU");
    else if (strcmp(kind, "cpu") == 0)
        marey__text_count_of(line, n, "CPU package");
    else if (strcmp(kind, "dram") == 0)
        marey__buf_puts(line, "DRAM");
    else
        marey__buf_puts(line, "together");
}

static marey_status put_run(struct marey__report_writer *writer, const marey_table *runs,
                            size_t row, bool is_alone)
{
    struct marey__buf *line = &writer->lines.line;
    const struct marey_cell joules = marey__cell_of(runs, row, "joules"),
                            note = marey__cell_of(runs, row, "note");
    marey__buf_puts(line, "energy");
    if (!is_alone)
        marey__buf_printf(line, " of run %" PRIu64, marey__cell_of(runs, row, "run").as.u64);
    marey__buf_puts(line, ", ");
    put_kind(line, runs, row);
    marey__buf_puts(line, ": ");
    if (joules.is_null) {
        marey__buf_puts(line, note.as.text);
        return marey__lines_end(&writer->lines);
    }
    marey__buf_puts(line, marey__style(&writer->lines, BOLD));
    marey__text_joules(line, joules.as.f64);
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
    marey__buf_puts(line, " ± ");
    marey__text_joules(line, marey__cell_of(runs, row, "plus_minus_j").as.f64);
    marey__buf_puts(line, " in ");
    marey__text_duration(line, (double)marey__cell_of(runs, row, "duration_ns").as.u64, NULL);
    put_cell(line, ", mean ", marey__cell_of(runs, row, "mean_w"), " W");
    put_cell(line, ", peak ", marey__cell_of(runs, row, "peak_w"), " W");
    put_cell(line, ", ", marey__cell_of(runs, row, "joules_per_sample"), " J per training sample");
    put_cell(line, ", ", marey__cell_of(runs, row, "co2_g"), " g CO2");
    if (note.len != 0)
        marey__buf_printf(line, " (%s)", note.as.text);
    return marey__lines_end(&writer->lines);
}

static bool has_runs(const marey_table *runs)
{
    const size_t n = marey_table_n_rows(runs);
    return n != 0 && marey__cell_of(runs, n - 1, "run").as.u64 > 1;
}

static marey_status put_runs(struct marey__report_writer *writer)
{
    const marey_table *runs = writer->report->tables[MAREY__ENERGY_RUNS],
                      *repeats = writer->report->tables[MAREY__ENERGY_REPEATS];
    const size_t n = marey_table_n_rows(runs);
    for (size_t row = 0; row < n && row < MAX_ROWS; row++)
        MAREY_TRY(put_run(writer, runs, row, !has_runs(runs)));
    for (size_t row = 0; row < marey_table_n_rows(repeats); row++) {
        struct marey__buf *line = &writer->lines.line;
        marey__buf_printf(
            line, "mean of %" PRIu64 " runs, %s: %s", marey__cell_of(repeats, row, "runs").as.u64,
            marey__cell_of(repeats, row, "kind").as.text, marey__style(&writer->lines, BOLD));
        marey__text_joules(line, marey__cell_of(repeats, row, "mean_j").as.f64);
        marey__buf_printf(line, "%s, with 95 %% confidence between ",
                          marey__style(&writer->lines, PLAIN));
        marey__text_joules(line, marey__cell_of(repeats, row, "low_j").as.f64);
        marey__buf_puts(line, " and ");
        marey__text_joules(line, marey__cell_of(repeats, row, "high_j").as.f64);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return MAREY_OK;
}

/* ---- tables ---- */

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Columns only in JSON and CSV, to keep tables narrow. */
static bool is_hidden(const marey_table *table, const char *name)
{
    static const char *const always[] = {"run_id", "energy_delay_js", "devices", "used"};
    static const char *const but_of_devices[] = {"sm_occupancy", "tensor_active", "dram_active"};
    static const char *const of_devices[] = {"memory_clock_mhz", "measured_by"};
    const bool is_devices = strcmp(marey_table_name(table), "devices") == 0;
    return is_among(name, always, MAREY__COUNT_OF(always)) ||
           (is_devices ? is_among(name, of_devices, MAREY__COUNT_OF(of_devices))
                       : is_among(name, but_of_devices, MAREY__COUNT_OF(but_of_devices)));
}

static bool is_never_throttled(const marey_table *table, size_t column)
{
    if (strcmp(marey_table_column(table, column)->name, "throttled") != 0)
        return false;
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        if (marey_table_cell(table, row, column).as.f64 != 0)
            return false;
    return true;
}

/* Columns without values, or with a single possible value. */
static bool says_nothing(const void *ctx, const marey_table *table, size_t column)
{
    const marey_table *runs = ctx;
    const char *const name = marey_table_column(table, column)->name;
    return (!has_runs(runs) && strcmp(name, "run") == 0) || is_hidden(table, name) ||
           is_never_throttled(table, column) || !marey__table_has_values(table, column);
}

static marey_status put_table(struct marey__report_writer *writer, const marey_table *table)
{
    struct marey_write_options wants = *writer->options;
    wants.limit = wants.is_short ? SHORT_ROWS : wants.limit;
    const struct marey__report_view view = {.table = table,
                                            .title = marey_table_name(table),
                                            .n_rows = marey_table_n_rows(table),
                                            .options = &wants,
                                            .hides = says_nothing,
                                            .ctx = writer->report->tables[MAREY__ENERGY_RUNS]};
    return marey__report_draw(&writer->lines, &view);
}

/* ---- all lines ---- */

static marey_status put_all(struct marey__report_writer *writer)
{
    static const enum marey__energy_table order[] = {
        MAREY__ENERGY_DEVICES, MAREY__ENERGY_RANKS,      MAREY__ENERGY_NODES, MAREY__ENERGY_EPOCHS,
        MAREY__ENERGY_PHASES,  MAREY__ENERGY_ITERATIONS, MAREY__ENERGY_RANGES};
    const bool is_short = writer->options->is_short != 0;
    if (is_short)
        MAREY_TRY(marey__lines_end(&writer->lines));
    MAREY_TRY(put_runs(writer));
    for (size_t i = 0; i < MAREY__COUNT_OF(order); i++) {
        const marey_table *table = writer->report->tables[order[i]];
        const bool is_one = order[i] == MAREY__ENERGY_RANKS || order[i] == MAREY__ENERGY_NODES;
        if (marey_table_n_rows(table) == 0 || (is_short && order[i] != MAREY__ENERGY_EPOCHS) ||
            (is_one && marey_table_n_rows(table) < 2))
            continue;
        MAREY_TRY(marey__lines_end(&writer->lines)); /* an empty line */
        MAREY_TRY(put_table(writer, table));
    }
    if (!is_short)
        MAREY_TRY(marey__lines_end(&writer->lines));
    return marey__lines_put_notes(&writer->lines, writer->report->tables[MAREY__ENERGY_NOTES]);
}

static marey_status put_one(struct marey__report_writer *writer)
{
    const marey_table *const table = marey_report_table(writer->report, writer->options->table);
    if (marey_table_n_rows(table) != 0) {
        MAREY_TRY(put_table(writer, table));
    } else {
        marey__buf_printf(&writer->lines.line, "No %s.", writer->options->table);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return marey__lines_put_notes(&writer->lines, writer->report->tables[MAREY__ENERGY_NOTES]);
}

marey_status marey__energy_text(struct marey__report_writer *writer)
{
    return writer->options->table != NULL ? put_one(writer) : put_all(writer);
}
