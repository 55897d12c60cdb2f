/*
 * Joules for a terminal and as JSON. The first line of each run is the answer; tables follow, without the columns that
 * nothing is known for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/energy_whole.h"
#include "present/export_internal.h"
#include "present/present_internal.h"
#include "present/style.h"

enum { MAX_COLUMNS = 40, MAX_ROWS = 30, SHORT_ROWS = 6 };

struct answer {
    struct kymo_energy_report *report;
    const struct kymo_energy_text_options *options;
    struct kymo__lines lines;
};

/* ---- the first lines ---- */

/* "1.23 kJ": three digits that count. */
static void put_joules(struct kymo__buf *line, double joules)
{
    if (joules >= 999500)
        kymo__buf_printf(line, "%.4g MJ", joules / 1e6);
    else if (joules >= 999.95)
        kymo__buf_printf(line, "%.4g kJ", joules / 1e3);
    else
        kymo__buf_printf(line, "%.4g J", joules);
}

static void put_kind(struct kymo__buf *line, const kymo_table *runs, size_t row)
{
    const char *kind = kymo__cell_of(runs, row, "kind").as.text;
    const uint64_t n = kymo__cell_of(runs, row, "devices").as.u64;
    if (strcmp(kind, "gpu") == 0)
        kymo__text_count_of(line, n, "GPU");
    else if (strcmp(kind, "cpu") == 0)
        kymo__text_count_of(line, n, "processor package");
    else if (strcmp(kind, "dram") == 0)
        kymo__buf_puts(line, "memory of the processors");
    else
        kymo__buf_puts(line, "together");
}

static kymo_status put_run(struct answer *answer, const kymo_table *runs, size_t row, bool is_alone)
{
    struct kymo__buf *line = &answer->lines.line;
    const struct kymo_cell joules = kymo__cell_of(runs, row, "joules"),
                           mean = kymo__cell_of(runs, row, "mean_w"),
                           peak = kymo__cell_of(runs, row, "peak_w"),
                           sample = kymo__cell_of(runs, row, "joules_per_sample"),
                           co2 = kymo__cell_of(runs, row, "co2_g"),
                           note = kymo__cell_of(runs, row, "note");
    kymo__buf_puts(line, "energy");
    if (!is_alone)
        kymo__buf_printf(line, " of run %" PRIu64, kymo__cell_of(runs, row, "run").as.u64);
    kymo__buf_puts(line, ", ");
    put_kind(line, runs, row);
    kymo__buf_puts(line, ": ");
    if (joules.is_null) {
        kymo__buf_puts(line, note.as.text);
        return kymo__lines_end(&answer->lines);
    }
    kymo__buf_puts(line, kymo__style(&answer->lines, BOLD));
    put_joules(line, joules.as.f64);
    kymo__buf_puts(line, kymo__style(&answer->lines, PLAIN));
    kymo__buf_puts(line, " ± ");
    put_joules(line, kymo__cell_of(runs, row, "plus_minus_j").as.f64);
    kymo__buf_puts(line, " in ");
    kymo__text_duration(line, (double)kymo__cell_of(runs, row, "duration_ns").as.u64, NULL);
    kymo__buf_printf(line, ", mean %.4g W", mean.as.f64);
    if (!peak.is_null)
        kymo__buf_printf(line, ", peak %.4g W", peak.as.f64);
    if (!sample.is_null)
        kymo__buf_printf(line, ", %.4g J for a sample", sample.as.f64);
    if (!co2.is_null)
        kymo__buf_printf(line, ", %.4g g CO2", co2.as.f64);
    if (note.len != 0)
        kymo__buf_printf(line, " (%s)", note.as.text);
    return kymo__lines_end(&answer->lines);
}

static kymo_status put_runs(struct answer *answer)
{
    const kymo_table *runs = answer->report->tables[KYMO__JOULES_RUNS],
                     *repeats = answer->report->tables[KYMO__JOULES_REPEATS];
    const size_t n = kymo_table_n_rows(runs);
    const bool is_alone = n != 0 && kymo__cell_of(runs, n - 1, "run").as.u64 == 1;
    for (size_t row = 0; row < n && row < MAX_ROWS; row++)
        KYMO_TRY(put_run(answer, runs, row, is_alone));
    for (size_t row = 0; row < kymo_table_n_rows(repeats); row++) {
        struct kymo__buf *line = &answer->lines.line;
        kymo__buf_printf(
            line, "mean of %" PRIu64 " runs, %s: %s", kymo__cell_of(repeats, row, "runs").as.u64,
            kymo__cell_of(repeats, row, "kind").as.text, kymo__style(&answer->lines, BOLD));
        put_joules(line, kymo__cell_of(repeats, row, "mean_j").as.f64);
        kymo__buf_printf(line, "%s, with 95 %% confidence between ",
                         kymo__style(&answer->lines, PLAIN));
        put_joules(line, kymo__cell_of(repeats, row, "low_j").as.f64);
        kymo__buf_puts(line, " and ");
        put_joules(line, kymo__cell_of(repeats, row, "high_j").as.f64);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return KYMO_OK;
}

/* ---- tables ---- */

static bool is_empty(const struct kymo_cell *cell, const struct kymo_column *column)
{
    return cell->is_null || (column->type == KYMO_TYPE_TEXT && cell->len == 0) ||
           (column->type == KYMO_TYPE_BOOL && cell->as.u64 == 0) ||
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
static bool is_dull(const kymo_table *table, const char *name)
{
    static const char *const always[] = {"run_id", "energy_delay_js", "devices", "used"};
    static const char *const but_of_devices[] = {"sm_occupancy", "tensor_active", "dram_active"};
    static const char *const of_devices[] = {"memory_clock_mhz", "measured_by"};
    const bool is_devices = strcmp(kymo_table_name(table), "devices") == 0;
    return is_among(name, always, KYMO__COUNT_OF(always)) ||
           (is_devices ? is_among(name, of_devices, KYMO__COUNT_OF(of_devices))
                       : is_among(name, but_of_devices, KYMO__COUNT_OF(but_of_devices)));
}

static bool has_value(const kymo_table *table, size_t column)
{
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const struct kymo_cell cell = kymo_table_cell(table, row, column);
        if (!is_empty(&cell, kymo_table_column(table, column)))
            return true;
    }
    return false;
}

/* Columns that say nothing: without a value, or of which there can be one only. */
static void choose_columns(const struct answer *answer, const kymo_table *table,
                           const char *hide[MAX_COLUMNS + 1])
{
    const kymo_table *runs = answer->report->tables[KYMO__JOULES_RUNS];
    const size_t n_runs = kymo_table_n_rows(runs);
    const bool is_alone = n_runs == 0 || kymo__cell_of(runs, n_runs - 1, "run").as.u64 == 1;
    size_t n_hidden = 0;
    for (size_t c = 0; c < kymo_table_n_columns(table) && n_hidden < MAX_COLUMNS; c++) {
        const char *name = kymo_table_column(table, c)->name;
        if ((is_alone && strcmp(name, "run") == 0) || is_dull(table, name) || !has_value(table, c))
            hide[n_hidden++] = name;
    }
    hide[n_hidden] = NULL;
}

/* A copy for people, with four digits that count. */
static kymo_status round_table(const kymo_table *table, size_t n_rows, kymo_table **out)
{
    struct kymo_column columns[MAX_COLUMNS];
    const size_t n = KYMO__MIN(kymo_table_n_columns(table), (size_t)MAX_COLUMNS);
    for (size_t c = 0; c < n; c++)
        columns[c] = *kymo_table_column(table, c);
    KYMO_TRY(kymo_table_create(kymo_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++)
        for (size_t c = 0; c < n; c++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            char digits[32];
            if (cell.is_null)
                kymo_table_null(*out);
            else if (columns[c].type == KYMO_TYPE_TEXT)
                kymo_table_text(*out, cell.as.text, cell.len);
            else if (columns[c].type == KYMO_TYPE_I64)
                kymo_table_i64(*out, cell.as.i64);
            else if (columns[c].type == KYMO_TYPE_BOOL)
                kymo_table_bool(*out, (int)cell.as.u64);
            else if (columns[c].type == KYMO_TYPE_U64)
                kymo_table_u64(*out, cell.as.u64);
            else {
                snprintf(digits, sizeof digits, "%.4g", cell.as.f64);
                kymo_table_f64(*out, columns[c].unit == KYMO_UNIT_NONE ? strtod(digits, NULL)
                                                                       : cell.as.f64);
            }
        }
    return kymo_table_status(*out);
}

static kymo_status put_table(struct answer *answer, const kymo_table *table, size_t limit)
{
    const char *hide[MAX_COLUMNS + 1];
    const size_t n = kymo_table_n_rows(table), n_drawn = limit != 0 ? KYMO__MIN(n, limit) : n;
    kymo_table *drawn = NULL;
    if (n == 0)
        return KYMO_OK;
    choose_columns(answer, table, hide);
    kymo_status status = round_table(table, n_drawn, &drawn);
    if (status == KYMO_OK) {
        kymo__buf_printf(&answer->lines.line, "%s%s%s", kymo__style(&answer->lines, DIM),
                         kymo_table_name(table), kymo__style(&answer->lines, PLAIN));
        status = kymo__lines_end(&answer->lines);
    }
    const struct kymo__text_view view = {
        .table = drawn, .options = answer->options->text, .n_rows = n_drawn, .hide = hide};
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, answer->lines.out);
    kymo_table_destroy(drawn);
    KYMO_TRY(status);
    if (n_drawn == n)
        return KYMO_OK;
    kymo__buf_printf(&answer->lines.line, "%s... and %zu more; --all shows them%s",
                     kymo__style(&answer->lines, DIM), n - n_drawn,
                     kymo__style(&answer->lines, PLAIN));
    return kymo__lines_end(&answer->lines);
}

/* ---- all ---- */

static kymo_status put_all(struct answer *answer)
{
    static const enum kymo__energy_table order[] = {
        KYMO__JOULES_DEVICES, KYMO__JOULES_RANKS,      KYMO__JOULES_NODES, KYMO__JOULES_EPOCHS,
        KYMO__JOULES_PHASES,  KYMO__JOULES_ITERATIONS, KYMO__JOULES_RANGES};
    const bool is_short = answer->options->is_short != 0;
    KYMO_TRY(put_runs(answer));
    for (size_t i = 0; i < KYMO__COUNT_OF(order); i++) {
        const kymo_table *table = answer->report->tables[order[i]];
        const bool is_one = order[i] == KYMO__JOULES_RANKS || order[i] == KYMO__JOULES_NODES;
        if (kymo_table_n_rows(table) == 0 || (is_short && order[i] != KYMO__JOULES_EPOCHS) ||
            (is_one && kymo_table_n_rows(table) < 2))
            continue;
        KYMO_TRY(kymo__lines_end(&answer->lines)); /* an empty one */
        KYMO_TRY(put_table(answer, table, is_short ? SHORT_ROWS : answer->options->limit));
    }
    if (!is_short)
        KYMO_TRY(kymo__lines_end(&answer->lines));
    return kymo__lines_put_notes(&answer->lines, answer->report->tables[KYMO__JOULES_NOTES]);
}

static kymo_status put_one(struct answer *answer)
{
    kymo_table *table = kymo_energy_report_table(answer->report, answer->options->by);
    if (table == NULL)
        return kymo__fail(KYMO_EINVAL, "energy has no table '%s'", answer->options->by);
    if (kymo_table_n_rows(table) == 0) {
        kymo__buf_printf(&answer->lines.line, "No %s.", answer->options->by);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    KYMO_TRY(put_table(answer, table, answer->options->limit));
    return kymo__lines_put_notes(&answer->lines, answer->report->tables[KYMO__JOULES_NOTES]);
}

kymo_status kymo_energy_report_text(kymo_energy_report *report,
                                    const struct kymo_energy_text_options *options, FILE *out)
{
    static const struct kymo_energy_text_options defaults;
    struct answer answer = {
        .report = report, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->text.color;
    return kymo__lines_close(&answer.lines,
                             answer.options->by != NULL ? put_one(&answer) : put_all(&answer));
}

kymo_status kymo_energy_report_json(kymo_energy_report *report, FILE *out)
{
    return kymo__json_report(report->tables, KYMO__JOULES_NOTES, report->tables[KYMO__JOULES_NOTES],
                             out);
}
