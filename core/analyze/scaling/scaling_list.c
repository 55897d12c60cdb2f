/* Which points are a series, and what it is called. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

double marey__scaling_number(const marey_table *table, size_t row, const char *column)
{
    const size_t c = (size_t)marey_table_find(table, column);
    const struct marey_cell cell = marey_table_cell(table, row, c);
    const enum marey_type type = marey_table_column(table, c)->type;
    if (cell.is_null)
        return NAN;
    if (type == MAREY_TYPE_F64)
        return cell.as.f64;
    return type == MAREY_TYPE_I64 ? (double)cell.as.i64 : (double)cell.as.u64;
}

double marey__scaling_share(const marey_table *points, size_t row, const char *column,
                            const char *const *columns, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += marey__scaling_number(points, row, columns[i]);
    return sum > 0 ? marey__scaling_number(points, row, column) / sum : NAN;
}

static bool is_same_text(const marey_table *points, size_t a, size_t b, const char *column)
{
    const struct marey_cell one = marey__cell_of(points, a, column),
                            other = marey__cell_of(points, b, column);
    return one.len == other.len && memcmp(one.as.text, other.as.text, one.len) == 0;
}

static bool has_several_experiments(const marey_table *points)
{
    for (size_t row = 1; row < marey_table_n_rows(points); row++)
        if (!is_same_text(points, 0, row, "experiment"))
            return true;
    return false;
}

static const char *name_series(struct marey__scaling_list *list, size_t row, bool has_experiments)
{
    const struct marey_cell experiment = marey__cell_of(list->points, row, "experiment"),
                            strategy = marey__cell_of(list->points, row, "strategy");
    struct marey__buf name = {0};
    if (has_experiments)
        marey__buf_put(&name, experiment.as.text, experiment.len);
    if (strategy.len != 0) {
        marey__buf_puts(&name, name.len != 0 ? ", " : "");
        marey__buf_put(&name, strategy.as.text, strategy.len);
    }
    const char *text = name.failed ? NULL : marey__arena_text(&list->texts, name.data, name.len);
    marey__buf_fini(&name);
    return text;
}

marey_status marey__scaling_list_init(struct marey__scaling_list *list, const marey_report *report)
{
    const marey_table *points = marey_report_table(report, "points");
    const size_t n_rows = marey_table_n_rows(points);
    *list = (struct marey__scaling_list){.points = points};
    list->series = marey__calloc(n_rows + 1, sizeof *list->series);
    MAREY__TRY_MEMORY(list->series != NULL);
    const bool has_experiments = n_rows != 0 && has_several_experiments(points);
    for (size_t row = 0; row < n_rows; row++) {
        if (row == 0 || !is_same_text(points, row - 1, row, "experiment") ||
            !is_same_text(points, row - 1, row, "strategy")) {
            const char *name = name_series(list, row, has_experiments);
            MAREY__TRY_MEMORY(name != NULL);
            list->series[list->n++] = (struct marey__scaling_line){.first = row, .name = name};
        }
        list->series[list->n - 1].n++;
    }
    for (size_t s = 0; list->n > 1 && s < list->n; s++)
        if (list->series[s].name[0] == '\0')
            list->series[s].name = "(no name)";
    return MAREY_OK;
}

void marey__scaling_list_fini(struct marey__scaling_list *list)
{
    marey__free(list->series);
    marey__arena_fini(&list->texts);
}
