#include <string.h>

#include "made_points.h"

static void put_text(marey_table *table, const char *text)
{
    marey_table_text(table, text, strlen(text));
}

static void put_real(marey_table *table, double value)
{
    if (value != 0)
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

static const struct made_point *first_of(const struct made_point *points, size_t i)
{
    size_t first = i;
    while (first > 0 && strcmp(points[first - 1].strategy, points[i].strategy) == 0 &&
           strcmp(points[first - 1].experiment, points[i].experiment) == 0)
        first--;
    return &points[first];
}

struct cell {
    const char *column;
    double value;
};

/* Where a column has no value it is null. */
static void put_columns(marey_table *table, size_t from, const struct cell *cells, size_t n)
{
    for (size_t c = from; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        double value = 0;
        for (size_t i = 0; i < n; i++)
            if (strcmp(cells[i].column, column->name) == 0)
                value = cells[i].value;
        if (column->type == MAREY_TYPE_BOOL)
            marey_table_bool(table, value != 0);
        else if (column->type == MAREY_TYPE_U64)
            marey_table_u64(table, (uint64_t)value);
        else if (column->type == MAREY_TYPE_F64)
            put_real(table, value);
        else
            return;
    }
}

static void add_point(marey_table *table, const struct made_point *points, size_t i)
{
    const struct made_point *p = &points[i];
    const double ideal = (double)p->workers / first_of(points, i)->workers,
                 samples = p->time_s > 0 ? 10000 : 0;
    const struct cell cells[] = {
        {"time_s", p->time_s},
        {"low_s", p->time_s * 0.97},
        {"high_s", p->time_s * 1.04},
        {"throughput", samples / p->time_s},
        {"speedup", p->efficiency * ideal},
        {"speedup_low", p->efficiency * ideal * 0.98},
        {"speedup_high", p->efficiency * ideal * 1.02},
        {"ideal", ideal},
        {"efficiency", p->efficiency},
        {"efficiency_low", p->efficiency * 0.98},
        {"efficiency_high", p->efficiency * 1.02},
        {"compute_s", p->parts[0]},
        {"communication_s", p->parts[1]},
        {"memory_s", p->parts[2]},
        {"idle_s", p->parts[3]},
        {"joules_per_epoch", p->joules},
        {"joules_low", p->joules * 0.9},
        {"joules_high", p->joules * 1.1},
        {"utilization", p->utilization},
        {"computation_fraction", p->utilization * 0.8},
        {"computation_vs_communication", p->utilization * 0.9},
        {"spread", 0.02},
    };
    put_text(table, p->experiment);
    put_text(table, p->strategy);
    marey_table_u64(table, p->workers);
    marey_table_u64(table, (p->workers + 3) / 4);
    marey_table_u64(table, 3);
    marey_table_u64(table, 30);
    put_text(table, p->kind);
    put_columns(table, 7, cells, MAREY__COUNT_OF(cells));
    put_text(table, p->measure);
    marey_table_f64(table, samples);
}

static void add_run(marey_table *table, const struct made_point *p)
{
    const struct cell cells[] = {
        {"epochs", 10}, {"median_epoch_s", p->time_s}, {"joules", p->joules * 10}};
    put_text(table, p->experiment);
    put_text(table, p->strategy);
    marey_table_u64(table, p->workers);
    put_text(table, "run of <1> & \"more\"");
    put_columns(table, 4, cells, MAREY__COUNT_OF(cells));
}

marey_report *scaling_make(const struct made_point *points, size_t n)
{
    marey_report *scaling = marey__calloc(1, sizeof *scaling);
    if (scaling == NULL)
        return NULL;
    scaling->analysis = marey__analysis_find("scale");
    scaling->tables = marey__calloc(MAREY__N_SCALING_TABLES, sizeof(marey_table *));
    for (size_t i = 0; i < MAREY__N_SCALING_TABLES; i++)
        if (marey_table_create(marey__scaling_tables[i].name, marey__scaling_tables[i].columns,
                               marey__scaling_tables[i].n_columns, &scaling->tables[i]) != MAREY_OK)
            return NULL;
    for (size_t i = 0; i < n; i++) {
        add_point(scaling->tables[MAREY__SCALING_POINTS], points, i);
        add_run(scaling->tables[MAREY__SCALING_RUNS], &points[i]);
    }
    put_text(scaling->tables[MAREY__SCALING_NOTES], "a note | with <marks>");
    scaling->data = marey__scaling_list_create(scaling->tables[MAREY__SCALING_POINTS]);
    return scaling;
}
