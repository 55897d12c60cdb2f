/* Which points are a series, and what it is called. */
#include <math.h>
#include <string.h>

#include "present/scaling_out.h"

double kymo__scaling_number(const kymo_table *table, size_t row, const char *column)
{
    const size_t c = (size_t)kymo_table_find(table, column);
    const struct kymo_cell cell = kymo_table_cell(table, row, c);
    const enum kymo_type type = kymo_table_column(table, c)->type;
    if (cell.is_null)
        return NAN;
    if (type == KYMO_TYPE_F64)
        return cell.as.f64;
    return type == KYMO_TYPE_I64 ? (double)cell.as.i64 : (double)cell.as.u64;
}

double kymo__scaling_share(const kymo_table *points, size_t row, const char *column,
                           const char *const *columns, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += kymo__scaling_number(points, row, columns[i]);
    return sum > 0 ? kymo__scaling_number(points, row, column) / sum : NAN;
}

static bool is_same_text(const kymo_table *points, size_t a, size_t b, const char *column)
{
    const struct kymo_cell one = kymo__cell_of(points, a, column),
                           other = kymo__cell_of(points, b, column);
    return one.len == other.len && memcmp(one.as.text, other.as.text, one.len) == 0;
}

static bool has_several_experiments(const kymo_table *points)
{
    for (size_t row = 1; row < kymo_table_n_rows(points); row++)
        if (!is_same_text(points, 0, row, "experiment"))
            return true;
    return false;
}

static const char *name_series(struct kymo__scaling_list *list, size_t row, bool has_experiments)
{
    const struct kymo_cell experiment = kymo__cell_of(list->points, row, "experiment"),
                           strategy = kymo__cell_of(list->points, row, "strategy");
    struct kymo__buf name = {0};
    if (has_experiments)
        kymo__buf_put(&name, experiment.as.text, experiment.len);
    if (strategy.len != 0) {
        kymo__buf_puts(&name, name.len != 0 ? ", " : "");
        kymo__buf_put(&name, strategy.as.text, strategy.len);
    }
    const char *text = name.failed ? NULL : kymo__arena_text(&list->texts, name.data, name.len);
    kymo__buf_fini(&name);
    return text;
}

kymo_status kymo__scaling_list_init(struct kymo__scaling_list *list, kymo_scaling *scaling)
{
    const kymo_table *points = kymo_scaling_table(scaling, "points");
    const size_t n_rows = kymo_table_n_rows(points);
    *list = (struct kymo__scaling_list){.points = points};
    list->series = kymo__calloc(n_rows + 1, sizeof *list->series);
    if (list->series == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the series of a scaling report");
    const bool has_experiments = n_rows != 0 && has_several_experiments(points);
    for (size_t row = 0; row < n_rows; row++) {
        if (row == 0 || !is_same_text(points, row - 1, row, "experiment") ||
            !is_same_text(points, row - 1, row, "strategy")) {
            const char *name = name_series(list, row, has_experiments);
            if (name == NULL)
                return kymo__fail(KYMO_ENOMEM, "no memory for the series of a scaling report");
            list->series[list->n++] = (struct kymo__scaling_line){.first = row, .name = name};
        }
        list->series[list->n - 1].n++;
    }
    for (size_t s = 0; list->n > 1 && s < list->n; s++)
        if (list->series[s].name[0] == '\0')
            list->series[s].name = "(no name)";
    return KYMO_OK;
}

void kymo__scaling_list_fini(struct kymo__scaling_list *list)
{
    kymo__free(list->series);
    kymo__arena_fini(&list->texts);
}
