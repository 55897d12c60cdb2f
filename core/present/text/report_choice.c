/* Which tables a report shows and how they are sorted. */
#include <string.h>

#include "present/text/internal.h"

/* ---- sorting ---- */

/*
 * A column by its name, its title, or its name without the unit: total_ns, total, p50_ns, median,
 * p50.
 */
static bool is_column(const struct marey_column *column, const char *name)
{
    const size_t len = strlen(name);
    return strcmp(column->name, name) == 0 || strcmp(column->title, name) == 0 ||
           (strncmp(column->name, name, len) == 0 && strcmp(column->name + len, "_ns") == 0);
}

static marey_status find_column(const marey_table *table, const char *name, size_t *out)
{
    struct marey__buf valid = {0};
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        if (is_column(column, name)) {
            marey__buf_fini(&valid);
            *out = c;
            return MAREY_OK;
        }
        marey__buf_printf(&valid, "%s%s", c == 0 ? "" : ", ", column->name);
    }
    marey__buf_put(&valid, "", 1);
    const marey_status status = marey__fail(MAREY_EINVAL, "no column '%s' to sort by; there are %s",
                                            name, valid.failed ? "others" : valid.data);
    marey__buf_fini(&valid);
    return status;
}

marey_status marey__report_sort(marey_summary *summary, const char *sort)
{
    if (sort == NULL)
        return MAREY_OK; /* they come sorted by total */
    const int is_ascending = sort[0] == '-';
    marey_table *const tables[] = {summary->tables[MAREY__TABLE_RANGES],
                                   summary->tables[MAREY__TABLE_ASYNC],
                                   summary->tables[MAREY__TABLE_KERNELS]};
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++) {
        size_t column = 0;
        if (find_column(tables[i], sort + is_ascending, &column) != MAREY_OK) {
            if (tables[i] == summary->tables[MAREY__TABLE_KERNELS])
                break; /* work has no self time, and no threads */
            return MAREY_EINVAL;
        }
        /* Names are read from A to Z; everything else is looked at from the largest on. */
        const bool is_text = marey_table_column(tables[i], column)->type == MAREY_TYPE_TEXT;
        marey_table_sort(tables[i], column, is_text ? is_ascending : !is_ascending);
        MAREY_TRY(marey_table_status(tables[i]));
    }
    return MAREY_OK;
}

/* ---- choosing ---- */

static void add(marey_table **tables, size_t *n, marey_table *table)
{
    for (size_t i = 0; i < *n; i++)
        if (tables[i] == table)
            return;
    tables[(*n)++] = table;
}

/* What goes with `ranges` and with `iterations`, where there is any. */
static const struct {
    enum marey__summary_table table, company;
    size_t n_from; /* rows that make it worth showing */
} companies[] = {
    {MAREY__TABLE_RANGES, MAREY__TABLE_KERNELS, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_COPIES, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_ASYNC, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_COUNTERS, 1},
    {MAREY__TABLE_RANGES, MAREY__TABLE_MARKS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_ITERATION_RANKS, 2},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_EPOCHS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_PHASES, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_OUTLIERS, 1},
    {MAREY__TABLE_ITERATIONS, MAREY__TABLE_WORKERS, 1},
};

static void add_company(marey_summary *summary, const marey_table *table, marey_table **tables,
                        size_t *n)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(companies); i++) {
        marey_table *company = summary->tables[companies[i].company];
        if (summary->tables[companies[i].table] == table &&
            marey_table_n_rows(company) >= companies[i].n_from)
            add(tables, n, company);
    }
}

static marey_table *find_table(marey_summary *summary, const char *name, size_t len)
{
    for (size_t t = 0; t < MAREY__N_TABLES; t++) {
        const char *known = marey_table_name(summary->tables[t]);
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return summary->tables[t];
    }
    return NULL;
}

marey_status marey__report_tables(marey_summary *summary, const char *names, marey_table **tables,
                                  size_t *n)
{
    *n = 0;
    for (const char *name = names != NULL ? names : "ranges"; *name != '\0';) {
        const size_t len = strcspn(name, ",");
        marey_table *table = find_table(summary, name, len);
        if (table == NULL)
            return marey__fail(MAREY_EINVAL, "no table '%.*s'", (int)MAREY__MIN(len, (size_t)100),
                               name);
        add(tables, n, table);
        add_company(summary, table, tables, n);
        name += len + (name[len] == ',');
    }
    return MAREY_OK;
}
