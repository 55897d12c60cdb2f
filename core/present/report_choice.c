/* Which tables a report shows and how they are sorted. */
#include <string.h>

#include "present/report_internal.h"

/* ---- sorting ---- */

/*
 * A column by its name, its title, or its name without the unit: total_ns, total, p50_ns, median,
 * p50.
 */
static bool is_column(const struct kymo_column *column, const char *name)
{
    const size_t len = strlen(name);
    return strcmp(column->name, name) == 0 || strcmp(column->title, name) == 0 ||
           (strncmp(column->name, name, len) == 0 && strcmp(column->name + len, "_ns") == 0);
}

static kymo_status find_column(const kymo_table *table, const char *name, size_t *out)
{
    struct kymo__buf valid = {0};
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        if (is_column(column, name)) {
            kymo__buf_fini(&valid);
            *out = c;
            return KYMO_OK;
        }
        kymo__buf_printf(&valid, "%s%s", c == 0 ? "" : ", ", column->name);
    }
    kymo__buf_put(&valid, "", 1);
    const kymo_status status = kymo__fail(KYMO_EINVAL, "no column '%s' to sort by; there are %s",
                                          name, valid.failed ? "others" : valid.data);
    kymo__buf_fini(&valid);
    return status;
}

kymo_status kymo__report_sort(kymo_summary *summary, const char *sort)
{
    if (sort == NULL)
        return KYMO_OK; /* they come sorted by total */
    const int is_ascending = sort[0] == '-';
    kymo_table *const tables[] = {summary->tables[KYMO__TABLE_RANGES],
                                  summary->tables[KYMO__TABLE_ASYNC],
                                  summary->tables[KYMO__TABLE_KERNELS]};
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++) {
        size_t column = 0;
        if (find_column(tables[i], sort + is_ascending, &column) != KYMO_OK) {
            if (tables[i] == summary->tables[KYMO__TABLE_KERNELS])
                break; /* work has no self time, and no threads */
            return KYMO_EINVAL;
        }
        /* Names are read from A to Z; everything else is looked at from the largest on. */
        const bool is_text = kymo_table_column(tables[i], column)->type == KYMO_TYPE_TEXT;
        kymo_table_sort(tables[i], column, is_text ? is_ascending : !is_ascending);
        KYMO_TRY(kymo_table_status(tables[i]));
    }
    return KYMO_OK;
}

/* ---- choosing ---- */

static void add(kymo_table **tables, size_t *n, kymo_table *table)
{
    for (size_t i = 0; i < *n; i++)
        if (tables[i] == table)
            return;
    tables[(*n)++] = table;
}

/* What goes with `ranges` and with `iterations`, where there is any. */
static const struct {
    enum kymo__summary_table table, company;
    size_t n_from; /* rows that make it worth showing */
} companies[] = {
    {KYMO__TABLE_RANGES, KYMO__TABLE_KERNELS, 1},
    {KYMO__TABLE_RANGES, KYMO__TABLE_COPIES, 1},
    {KYMO__TABLE_RANGES, KYMO__TABLE_ASYNC, 1},
    {KYMO__TABLE_RANGES, KYMO__TABLE_COUNTERS, 1},
    {KYMO__TABLE_RANGES, KYMO__TABLE_MARKS, 1},
    {KYMO__TABLE_ITERATIONS, KYMO__TABLE_ITERATION_RANKS, 2},
    {KYMO__TABLE_ITERATIONS, KYMO__TABLE_EPOCHS, 1},
    {KYMO__TABLE_ITERATIONS, KYMO__TABLE_PHASES, 1},
    {KYMO__TABLE_ITERATIONS, KYMO__TABLE_OUTLIERS, 1},
    {KYMO__TABLE_ITERATIONS, KYMO__TABLE_WORKERS, 1},
};

static void add_company(kymo_summary *summary, const kymo_table *table, kymo_table **tables,
                        size_t *n)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(companies); i++) {
        kymo_table *company = summary->tables[companies[i].company];
        if (summary->tables[companies[i].table] == table &&
            kymo_table_n_rows(company) >= companies[i].n_from)
            add(tables, n, company);
    }
}

static kymo_table *find_table(kymo_summary *summary, const char *name, size_t len)
{
    for (size_t t = 0; t < KYMO__N_TABLES; t++) {
        const char *known = kymo_table_name(summary->tables[t]);
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return summary->tables[t];
    }
    return NULL;
}

kymo_status kymo__report_tables(kymo_summary *summary, const char *names, kymo_table **tables,
                                size_t *n)
{
    *n = 0;
    for (const char *name = names != NULL ? names : "ranges"; *name != '\0';) {
        const size_t len = strcspn(name, ",");
        kymo_table *table = find_table(summary, name, len);
        if (table == NULL)
            return kymo__fail(KYMO_EINVAL, "no table '%.*s'", (int)KYMO__MIN(len, (size_t)100), name);
        add(tables, n, table);
        add_company(summary, table, tables, n);
        name += len + (name[len] == ',');
    }
    return KYMO_OK;
}
