/*
 * Joules for a terminal and as JSON. The first line of each run is the answer; tables follow, without the columns that
 * nothing is known for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/energy/internal.h"
#include "present/draw/internal.h"

enum { MAX_COLUMNS = 40, MAX_ROWS = 30, SHORT_ROWS = 6 };

struct answer {
    struct marey_energy_report *report;
    const struct marey_energy_text_options *options;
    struct marey__lines lines;
};

/* ---- the first lines ---- */

/* "1.23 kJ": three digits that count. */
static void put_joules(struct marey__buf *line, double joules)
{
    if (joules >= 999500)
        marey__buf_printf(line, "%.4g MJ", joules / 1e6);
    else if (joules >= 999.95)
        marey__buf_printf(line, "%.4g kJ", joules / 1e3);
    else
        marey__buf_printf(line, "%.4g J", joules);
}

static void put_kind(struct marey__buf *line, const marey_table *runs, size_t row)
{
    const char *kind = marey__cell_of(runs, row, "kind").as.text;
    const uint64_t n = marey__cell_of(runs, row, "devices").as.u64;
    if (strcmp(kind, "gpu") == 0)
        marey__text_count_of(line, n, "GPU");
    else if (strcmp(kind, "cpu") == 0)
        marey__text_count_of(line, n, "processor package");
    else if (strcmp(kind, "dram") == 0)
        marey__buf_puts(line, "memory of the processors");
    else
        marey__buf_puts(line, "together");
}

static marey_status put_run(struct answer *answer, const marey_table *runs, size_t row, bool is_alone)
{
    struct marey__buf *line = &answer->lines.line;
    const struct marey_cell joules = marey__cell_of(runs, row, "joules"),
                            mean = marey__cell_of(runs, row, "mean_w"),
                            peak = marey__cell_of(runs, row, "peak_w"),
                            sample = marey__cell_of(runs, row, "joules_per_sample"),
                            co2 = marey__cell_of(runs, row, "co2_g"),
                            note = marey__cell_of(runs, row, "note");
    marey__buf_puts(line, "energy");
    if (!is_alone)
        marey__buf_printf(line, " of run %" PRIu64, marey__cell_of(runs, row, "run").as.u64);
    marey__buf_puts(line, ", ");
    put_kind(line, runs, row);
    marey__buf_puts(line, ": ");
    if (joules.is_null) {
        marey__buf_puts(line, note.as.text);
        return marey__lines_end(&answer->lines);
    }
    marey__buf_puts(line, marey__style(&answer->lines, BOLD));
    put_joules(line, joules.as.f64);
    marey__buf_puts(line, marey__style(&answer->lines, PLAIN));
    marey__buf_puts(line, " ± ");
    put_joules(line, marey__cell_of(runs, row, "plus_minus_j").as.f64);
    marey__buf_puts(line, " in ");
    marey__text_duration(line, (double)marey__cell_of(runs, row, "duration_ns").as.u64, NULL);
    marey__buf_printf(line, ", mean %.4g W", mean.as.f64);
    if (!peak.is_null)
        marey__buf_printf(line, ", peak %.4g W", peak.as.f64);
    if (!sample.is_null)
        marey__buf_printf(line, ", %.4g J for a sample", sample.as.f64);
    if (!co2.is_null)
        marey__buf_printf(line, ", %.4g g CO2", co2.as.f64);
    if (note.len != 0)
        marey__buf_printf(line, " (%s)", note.as.text);
    return marey__lines_end(&answer->lines);
}

static marey_status put_runs(struct answer *answer)
{
    const marey_table *runs = answer->report->tables[MAREY__ENERGY_RUNS],
                      *repeats = answer->report->tables[MAREY__ENERGY_REPEATS];
    const size_t n = marey_table_n_rows(runs);
    const bool is_alone = n != 0 && marey__cell_of(runs, n - 1, "run").as.u64 == 1;
    for (size_t row = 0; row < n && row < MAX_ROWS; row++)
        MAREY_TRY(put_run(answer, runs, row, is_alone));
    for (size_t row = 0; row < marey_table_n_rows(repeats); row++) {
        struct marey__buf *line = &answer->lines.line;
        marey__buf_printf(
            line, "mean of %" PRIu64 " runs, %s: %s", marey__cell_of(repeats, row, "runs").as.u64,
            marey__cell_of(repeats, row, "kind").as.text, marey__style(&answer->lines, BOLD));
        put_joules(line, marey__cell_of(repeats, row, "mean_j").as.f64);
        marey__buf_printf(line, "%s, with 95 %% confidence between ",
                          marey__style(&answer->lines, PLAIN));
        put_joules(line, marey__cell_of(repeats, row, "low_j").as.f64);
        marey__buf_puts(line, " and ");
        put_joules(line, marey__cell_of(repeats, row, "high_j").as.f64);
        MAREY_TRY(marey__lines_end(&answer->lines));
    }
    return MAREY_OK;
}

/* ---- tables ---- */

static bool is_empty(const struct marey_cell *cell, const struct marey_column *column)
{
    return cell->is_null || (column->type == MAREY_TYPE_TEXT && cell->len == 0) ||
           (column->type == MAREY_TYPE_BOOL && cell->as.u64 == 0) ||
           (strcmp(column->name, "throttled") == 0 && cell->as.f64 == 0);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What JSON and CSV have and a screen does not: it is wide enough without. */
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

static bool has_value(const marey_table *table, size_t column)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell cell = marey_table_cell(table, row, column);
        if (!is_empty(&cell, marey_table_column(table, column)))
            return true;
    }
    return false;
}

/* Columns that say nothing: without a value, or of which there can be one only. */
static void choose_columns(const struct answer *answer, const marey_table *table,
                           const char *hide[MAX_COLUMNS + 1])
{
    const marey_table *runs = answer->report->tables[MAREY__ENERGY_RUNS];
    const size_t n_runs = marey_table_n_rows(runs);
    const bool is_alone = n_runs == 0 || marey__cell_of(runs, n_runs - 1, "run").as.u64 == 1;
    size_t n_hidden = 0;
    for (size_t c = 0; c < marey_table_n_columns(table) && n_hidden < MAX_COLUMNS; c++) {
        const char *name = marey_table_column(table, c)->name;
        if ((is_alone && strcmp(name, "run") == 0) || is_hidden(table, name) || !has_value(table, c))
            hide[n_hidden++] = name;
    }
    hide[n_hidden] = NULL;
}

/* A copy for people, with four digits that count. */
static marey_status round_table(const marey_table *table, size_t n_rows, marey_table **out)
{
    struct marey_column columns[MAX_COLUMNS];
    const size_t n = MAREY__MIN(marey_table_n_columns(table), (size_t)MAX_COLUMNS);
    for (size_t c = 0; c < n; c++)
        columns[c] = *marey_table_column(table, c);
    MAREY_TRY(marey_table_create(marey_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++)
        for (size_t c = 0; c < n; c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            char digits[32];
            if (cell.is_null)
                marey_table_null(*out);
            else if (columns[c].type == MAREY_TYPE_TEXT)
                marey_table_text(*out, cell.as.text, cell.len);
            else if (columns[c].type == MAREY_TYPE_I64)
                marey_table_i64(*out, cell.as.i64);
            else if (columns[c].type == MAREY_TYPE_BOOL)
                marey_table_bool(*out, (int)cell.as.u64);
            else if (columns[c].type == MAREY_TYPE_U64)
                marey_table_u64(*out, cell.as.u64);
            else {
                snprintf(digits, sizeof digits, "%.4g", cell.as.f64);
                marey_table_f64(*out, columns[c].unit == MAREY_UNIT_NONE ? strtod(digits, NULL)
                                                                         : cell.as.f64);
            }
        }
    return marey_table_status(*out);
}

static marey_status put_table(struct answer *answer, const marey_table *table, size_t limit)
{
    const char *hide[MAX_COLUMNS + 1];
    const size_t n = marey_table_n_rows(table), n_drawn = limit != 0 ? MAREY__MIN(n, limit) : n;
    marey_table *drawn = NULL;
    if (n == 0)
        return MAREY_OK;
    choose_columns(answer, table, hide);
    marey_status status = round_table(table, n_drawn, &drawn);
    if (status == MAREY_OK) {
        marey__buf_printf(&answer->lines.line, "%s%s%s", marey__style(&answer->lines, DIM),
                          marey_table_name(table), marey__style(&answer->lines, PLAIN));
        status = marey__lines_end(&answer->lines);
    }
    const struct marey__text_view view = {
        .table = drawn, .options = answer->options->text, .n_rows = n_drawn, .hide = hide};
    if (status == MAREY_OK)
        status = marey__text_draw(&view, answer->lines.out);
    marey_table_destroy(drawn);
    MAREY_TRY(status);
    if (n_drawn == n)
        return MAREY_OK;
    marey__buf_printf(&answer->lines.line, "%s... and %zu more; --all shows them%s",
                      marey__style(&answer->lines, DIM), n - n_drawn,
                      marey__style(&answer->lines, PLAIN));
    return marey__lines_end(&answer->lines);
}

/* ---- all ---- */

static marey_status put_all(struct answer *answer)
{
    static const enum marey__energy_table order[] = {
        MAREY__ENERGY_DEVICES, MAREY__ENERGY_RANKS,      MAREY__ENERGY_NODES, MAREY__ENERGY_EPOCHS,
        MAREY__ENERGY_PHASES,  MAREY__ENERGY_ITERATIONS, MAREY__ENERGY_RANGES};
    const bool is_short = answer->options->is_short != 0;
    MAREY_TRY(put_runs(answer));
    for (size_t i = 0; i < MAREY__COUNT_OF(order); i++) {
        const marey_table *table = answer->report->tables[order[i]];
        const bool is_one = order[i] == MAREY__ENERGY_RANKS || order[i] == MAREY__ENERGY_NODES;
        if (marey_table_n_rows(table) == 0 || (is_short && order[i] != MAREY__ENERGY_EPOCHS) ||
            (is_one && marey_table_n_rows(table) < 2))
            continue;
        MAREY_TRY(marey__lines_end(&answer->lines)); /* an empty one */
        MAREY_TRY(put_table(answer, table, is_short ? SHORT_ROWS : answer->options->limit));
    }
    if (!is_short)
        MAREY_TRY(marey__lines_end(&answer->lines));
    return marey__lines_put_notes(&answer->lines, answer->report->tables[MAREY__ENERGY_NOTES]);
}

static marey_status put_one(struct answer *answer)
{
    marey_table *table = marey_energy_report_table(answer->report, answer->options->by);
    if (table == NULL)
        return marey__fail(MAREY_EINVAL, "energy has no table '%s'", answer->options->by);
    if (marey_table_n_rows(table) == 0) {
        marey__buf_printf(&answer->lines.line, "No %s.", answer->options->by);
        MAREY_TRY(marey__lines_end(&answer->lines));
    }
    MAREY_TRY(put_table(answer, table, answer->options->limit));
    return marey__lines_put_notes(&answer->lines, answer->report->tables[MAREY__ENERGY_NOTES]);
}

marey_status marey_energy_report_text(marey_energy_report *report,
                                      const struct marey_energy_text_options *options, FILE *out)
{
    static const struct marey_energy_text_options defaults;
    struct answer answer = {
        .report = report, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->text.color;
    return marey__lines_close(&answer.lines,
                              answer.options->by != NULL ? put_one(&answer) : put_all(&answer));
}

marey_status marey_energy_report_json(marey_energy_report *report, FILE *out)
{
    return marey__json_report(report->tables, MAREY__ENERGY_NOTES,
                              report->tables[MAREY__ENERGY_NOTES], out);
}
