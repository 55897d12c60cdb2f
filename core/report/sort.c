/* Sorts rows for --sort. */
#include <string.h>

#include "report/internal.h"

static bool is_column(const struct marey_column *column, const char *name)
{
    const size_t len = strlen(name);
    return strcmp(column->name, name) == 0 || strcmp(column->title, name) == 0 ||
           (strncmp(column->name, name, len) == 0 && strcmp(column->name + len, "_ns") == 0);
}

static marey_status unknown_column(const marey_table *table, const char *name)
{
    struct marey__buf names MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_printf(&names, "%s%s", c == 0 ? "" : ", ", marey_table_column(table, c)->name);
    marey__buf_put(&names, "", 1);
    return marey__fail(MAREY_EINVAL, "no column '%s' to sort by; there are %s", name,
                       names.failed ? "others" : names.data);
}

marey_status marey__table_sort(marey_table *table, const char *sort)
{
    const bool is_reversed = sort[0] == '-';
    size_t c = 0;
    while (c < marey_table_n_columns(table) &&
           !is_column(marey_table_column(table, c), sort + is_reversed))
        c++;
    if (c == marey_table_n_columns(table))
        return unknown_column(table, sort + is_reversed);
    if (marey_table_find(table, "depth") >= 0)
        return MAREY_OK;
    marey_table_sort(table, c,
                     (marey_table_column(table, c)->type == MAREY_TYPE_TEXT) == is_reversed);
    return marey_table_status(table);
}
