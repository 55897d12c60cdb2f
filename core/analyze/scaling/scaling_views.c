/*
 * Tables for people: those of the analysis with times in units that fit, shares in percent, intervals in one column. What
 * is the same in each row because it is not there is left out.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

enum how {
    AS_TEXT,
    AS_COUNT,
    AS_SECONDS,
    AS_REAL,
    AS_PERCENT,
    AS_YES,
    TO_SECONDS,
    TO_PERCENT,
    TO_REAL
};

struct drawn {
    const char *title, *from, *high; /* of an interval: its low and high columns */
    enum how how;
    bool is_key;   /* says whose row it is: a row of nothing else is not drawn */
    uint32_t room; /* columns that a terminal must have for it; 0: any */
};

enum { NARROW = 100, WIDE = 130, MOST_COLUMNS = 16 };

#define SERIES                                                                                     \
    {"experiment", "experiment", NULL, AS_TEXT, true, 0},                                          \
    {                                                                                              \
        "strategy", "strategy", NULL, AS_TEXT, true, 0                                             \
    }
#define WORKERS                                                                                    \
    {                                                                                              \
        "workers", "workers", NULL, AS_COUNT, true, 0                                              \
    }

static const struct drawn point_columns[] = {
    SERIES,
    WORKERS,
    {"nodes", "nodes", NULL, AS_COUNT, true, WIDE},
    {"runs", "runs", NULL, AS_COUNT, true, 0},
    {"epochs", "epochs", NULL, AS_COUNT, true, WIDE},
    {"scaling", "kind", NULL, AS_TEXT, true, WIDE},
    {"of", "measure", NULL, AS_TEXT, true, 0},
    {"time", "time_s", NULL, AS_SECONDS, false, 0},
    {"interval", "low_s", "high_s", TO_SECONDS, false, NARROW},
    {"speedup", "speedup", NULL, AS_REAL, false, 0},
    {"efficiency %", "efficiency", NULL, AS_PERCENT, false, 0},
    {"interval %", "efficiency_low", "efficiency_high", TO_PERCENT, false, 0},
    {"samples/s", "throughput", NULL, AS_REAL, false, NARROW},
    {"Karp-Flatt %", "karp_flatt", NULL, AS_PERCENT, false, WIDE},
    {"repeats disagree", "disagrees", NULL, AS_YES, false, 0},
};
static const struct drawn step_columns[] = {
    SERIES,
    WORKERS,
    {"compute", "compute_s", NULL, AS_SECONDS, false, 0},
    {"exposed communication", "communication_s", NULL, AS_SECONDS, false, 0},
    {"exposed copies", "memory_s", NULL, AS_SECONDS, false, 0},
    {"idle", "idle_s", NULL, AS_SECONDS, false, 0},
};
static const struct drawn energy_columns[] = {
    SERIES,
    WORKERS,
    {"J/epoch", "joules_per_epoch", NULL, AS_REAL, false, 0},
    {"interval", "joules_low", "joules_high", TO_REAL, false, 0},
    {"J/sample", "joules_per_sample", NULL, AS_REAL, false, 0},
    {"energy efficiency %", "energy_efficiency", NULL, AS_PERCENT, false, 0},
    {"energy x delay Js", "energy_delay", NULL, AS_REAL, false, WIDE},
    {"GPU utilization %", "utilization", NULL, AS_PERCENT, false, 0},
};
static const struct drawn fit_columns[] = {
    SERIES,
    {"model", "model", NULL, AS_TEXT, true, 0},
    {"serial %", "serial", NULL, AS_PERCENT, false, 0},
    {"interval %", "serial_low", "serial_high", TO_PERCENT, false, 0},
    {"contention", "contention", NULL, AS_REAL, false, 0},
    {"interval", "contention_low", "contention_high", TO_REAL, false, WIDE},
    {"coherency", "coherency", NULL, AS_REAL, false, 0},
    {"interval", "coherency_low", "coherency_high", TO_REAL, false, WIDE},
    {"off by %", "residual", NULL, AS_PERCENT, false, 0},
    {"fastest at", "best_workers", NULL, AS_REAL, false, 0},
    {"interval", "best_low", "best_high", TO_REAL, false, WIDE},
    {"note", "note", NULL, AS_TEXT, false, 0},
};
static const struct drawn forecast_columns[] = {
    SERIES,
    {"model", "model", NULL, AS_TEXT, true, 0},
    WORKERS,
    {"time", "time_s", NULL, AS_SECONDS, false, 0},
    {"interval", "low_s", "high_s", TO_SECONDS, false, 0},
    {"speedup", "speedup", NULL, AS_REAL, false, 0},
    {"efficiency %", "efficiency", NULL, AS_PERCENT, false, 0},
};
static const struct drawn best_columns[] = {
    SERIES,
    {"for", "for", NULL, AS_TEXT, true, 0},
    WORKERS,
    {"measured", "measured", NULL, AS_YES, false, 0},
};
static const struct drawn run_columns[] = {
    SERIES,
    WORKERS,
    {"run", "run", NULL, AS_TEXT, true, 0},
    {"epochs", "epochs", NULL, AS_COUNT, true, 0},
    {"median epoch", "median_epoch_s", NULL, AS_SECONDS, false, 0},
    {"median step", "median_step_s", NULL, AS_SECONDS, false, 0},
    {"joules", "joules", NULL, AS_REAL, false, 0},
    {"stopped half-way", "partial", NULL, AS_YES, false, 0},
};

#define SECTION(heading, table, columns)                                                           \
    {                                                                                              \
        heading, table, columns, MAREY__COUNT_OF(columns)                                          \
    }
static const struct {
    const char *heading, *table;
    const struct drawn *columns;
    size_t n;
} sections[] = {
    SECTION("time, speedup, efficiency", "points", point_columns),
    SECTION("a step, mean over ranks", "points", step_columns),
    SECTION("energy", "points", energy_columns),
    SECTION("fits", "fits", fit_columns),
    SECTION("forecast", "forecast", forecast_columns),
    SECTION("best number of workers", "best", best_columns),
    SECTION("runs", "runs", run_columns),
};
static_assert(MAREY__COUNT_OF(sections) == MAREY__SCALING_SECTIONS, "scaling_out.h says how many");

const char *marey__scaling_heading(size_t section)
{
    return sections[section].heading;
}

/* ---- what is worth a column, and a row ---- */

static bool is_empty(const marey_table *from, size_t row, const struct drawn *column)
{
    if (column->how == AS_TEXT)
        return marey__cell_of(from, row, column->from).len == 0;
    const double value = marey__scaling_number(from, row, column->from);
    if (column->high != NULL)
        return !isfinite(value) || !isfinite(marey__scaling_number(from, row, column->high));
    return !isfinite(value) || (value == 0 && column->how == AS_YES);
}

static bool is_worth_a_row(const marey_table *from, size_t row, const struct drawn *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!columns[i].is_key && columns[i].how != AS_YES && !is_empty(from, row, &columns[i]))
            return true;
    return columns == best_columns;
}

/* All of one machine, all measured by epochs, no time at all: not worth telling. */
static bool is_usual(const marey_table *from, const struct drawn *column, size_t row)
{
    if (strcmp(column->from, "nodes") == 0)
        return marey__scaling_number(from, row, "nodes") <= 1;
    if (strcmp(column->from, "measure") == 0)
        return strcmp(marey__cell_of(from, row, "measure").as.text, "epoch") == 0;
    return column->how == AS_SECONDS && marey__scaling_number(from, row, column->from) == 0;
}

static bool is_worth_a_column(const marey_table *from, const struct drawn *column, uint32_t width)
{
    if (width != 0 && width < column->room)
        return false;
    for (size_t row = 0; row < marey_table_n_rows(from); row++)
        if (!is_empty(from, row, column) && !is_usual(from, column, row))
            return true;
    return false;
}

/* ---- cells ---- */

/* Both ends in one text: "9.8 s to 10.4 s", "78.1 to 82.0". */
static void put_interval(marey_table *into, struct marey__buf *text, const marey_table *from,
                         size_t row, const struct drawn *column)
{
    const double ends[] = {marey__scaling_number(from, row, column->from),
                           marey__scaling_number(from, row, column->high)};
    text->len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(ends); i++) {
        marey__buf_puts(text, i != 0 ? " to " : "");
        if (column->how == TO_SECONDS)
            marey__text_duration(text, ends[i] * 1e9, NULL);
        else if (column->how == TO_PERCENT)
            marey__buf_printf(text, "%.1f", ends[i] * 100);
        else
            marey__buf_printf(text, fabs(ends[i]) >= 1000 ? "%.0f" : "%.3g", ends[i]);
    }
    marey_table_text(into, text->data, text->failed ? 0 : text->len);
}

/* `text` is room for a text, and remembers when there was no memory. */
static void put_cell(marey_table *into, struct marey__buf *text, const marey_table *from,
                     size_t row, const struct drawn *column)
{
    const struct marey_cell cell = marey__cell_of(from, row, column->from);
    const double value =
        column->how == AS_TEXT ? NAN : marey__scaling_number(from, row, column->from);
    if (is_empty(from, row, column) && column->how != AS_YES)
        marey_table_null(into);
    else if (column->how == AS_TEXT)
        marey_table_text(into, cell.as.text, cell.len);
    else if (column->high != NULL)
        put_interval(into, text, from, row, column);
    else if (column->how == AS_YES)
        marey_table_bool(into, value > 0);
    else if (column->how == AS_COUNT)
        marey_table_u64(into, (uint64_t)value);
    else if (column->how == AS_SECONDS)
        marey_table_f64(into, value * 1e9);
    else if (column->how == AS_PERCENT)
        marey_table_f64(into, round(value * 1000) / 10);
    else
        marey_table_f64(into, value);
}

static struct marey_column column_of(const struct drawn *column)
{
    static const struct {
        enum marey_type type;
        enum marey_unit unit;
    } kinds[] = {
        [AS_TEXT] = {MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        [AS_COUNT] = {MAREY_TYPE_U64, MAREY_UNIT_COUNT},
        [AS_SECONDS] = {MAREY_TYPE_F64, MAREY_UNIT_NS},
        [AS_REAL] = {MAREY_TYPE_F64, MAREY_UNIT_NONE},
        [AS_PERCENT] = {MAREY_TYPE_F64, MAREY_UNIT_NONE},
        [AS_YES] = {MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
        [TO_SECONDS] = {MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        [TO_PERCENT] = {MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        [TO_REAL] = {MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    };
    return (struct marey_column){column->from, column->title, kinds[column->how].type,
                                 kinds[column->how].unit};
}

/* ---- the table ---- */

marey_status marey__scaling_view(const marey_report *report, size_t section, uint32_t width,
                                 marey_table **out)
{
    const marey_table *from = marey_report_table(report, sections[section].table);
    const struct drawn *columns = sections[section].columns, *chosen[MOST_COLUMNS];
    struct marey_column made[MOST_COLUMNS];
    struct marey__buf text = {0};
    marey_table *table = NULL;
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < sections[section].n; i++)
        if (is_worth_a_column(from, &columns[i], width)) {
            chosen[n] = &columns[i];
            made[n++] = column_of(&columns[i]);
        }
    if (n == 0)
        return MAREY_OK;
    MAREY_TRY(marey_table_create(sections[section].table, made, n, &table));
    for (size_t row = 0; row < marey_table_n_rows(from); row++)
        for (size_t i = 0; i < n && is_worth_a_row(from, row, columns, sections[section].n); i++)
            put_cell(table, &text, from, row, chosen[i]);
    const marey_status status = text.failed ? marey__no_memory() : marey_table_status(table);
    marey__buf_fini(&text);
    if (status != MAREY_OK || marey_table_n_rows(table) == 0)
        marey_table_destroy(table);
    else
        *out = table;
    return status;
}
