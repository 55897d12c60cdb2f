/* Rows of the tables that compare ranks. */
#include <math.h>

#include "analyze/summary/internal.h"

/* The difference from a typical time: in ns, as a share of it, and in typical distances. */
static void put_difference(marey_table *table, double ns, double typical_ns, double score)
{
    const double by = ns - typical_ns;
    MAREY__PUT_ROW(table, I64(by >= 0x1p63 ? INT64_MAX : (int64_t)(by + (by < 0 ? -0.5 : 0.5))),
                   KNOWN(typical_ns > 0, FINITE(by / typical_ns)), F64(round(10 * score) / 10));
}

static int32_t rank_of(const struct marey__table_context *m, uint32_t process)
{
    return m->merge->processes[process]->rank;
}

static const char *per(const struct marey__rank_name *name)
{
    return name->is_per_iteration ? "iteration" : "run";
}

static struct marey__cell name_of(const struct marey__table_context *m,
                                  const struct marey__rank_name *name)
{
    return name->name != MAREY__NO_NAME
               ? NAMED(m, name->name)
               : STRING(name->is_per_iteration ? MAREY__WHOLE_ITERATION : "(whole run)");
}

/* The whole, then each selected name; NULL past the last. */
static const struct marey__rank_name *nth_name(const struct marey__table_context *m, size_t i)
{
    if (i > m->ranks->n_names)
        return NULL;
    return i == 0 ? &m->ranks->whole : &m->ranks->names[i - 1];
}

static bool is_shown(const struct marey__table_context *m, const struct marey__rank_name *name)
{
    return name->n != 0 && (name->name == MAREY__NO_NAME || marey__is_range_wanted(m, name->name));
}

/* ---- a name over ranks ---- */

void marey__fill_rank_spread(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__rank_name *name;
    for (size_t i = 0; (name = nth_name(m, i)) != NULL; i++) {
        if (name->n < 2 || !is_shown(m, name))
            continue;
        const struct marey__rank_value *low = &name->low, *high = &name->high;
        MAREY__PUT_ROW(table, name_of(m, name), STRING(per(name)), U64(name->n),
                       ROUNDED(name->median_ns), ROUNDED(name->mad_ns), ROUNDED(name->p25_ns),
                       ROUNDED(name->p75_ns), ROUNDED(low->ns), RANK_OF(rank_of(m, low->process)),
                       ROUNDED(high->ns), RANK_OF(rank_of(m, high->process)),
                       KNOWN(name->median_ns > 0, FINITE((high->ns - low->ns) / name->median_ns)),
                       U64(name->n_outliers));
    }
}

/* ---- each rank ---- */

void marey__fill_rank_times(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__rank_name *whole = &m->ranks->whole;
    for (size_t i = 0; i < m->ranks->n_rows; i++) {
        const struct marey__rank_row *row = &m->ranks->rows[i];
        MAREY__PUT_ROW(table, PROCESS_OF(m->merge->processes[row->process]),
                       STRING(m->merge->processes[row->process]->host), STRING(per(whole)),
                       ROUNDED(row->ns), ROUNDED(whole->median_ns));
        put_difference(table, row->ns, whole->median_ns, marey__rank_score(whole, row->ns));
        MAREY__PUT_ROW(table, TRUTH(marey__rank_is_outlier(m->ranks, whole, row->ns)),
                       KNOWN(row->slow_share >= 0, FINITE(row->slow_share)),
                       KNOWN(row->longer != MAREY__NO_NAME, NAMED(m, row->longer)),
                       KNOWN(row->longer != MAREY__NO_NAME, ROUNDED(row->longer_ns)));
    }
}

/* ---- outliers ---- */

static void put_outlier(marey_table *table, const struct marey__table_context *m,
                        const struct marey__rank_name *name, const struct marey__rank_value *value)
{
    MAREY__PUT_ROW(table, PROCESS_OF(m->merge->processes[value->process]),
                   STRING(m->merge->processes[value->process]->host), name_of(m, name),
                   STRING(per(name)), ROUNDED(value->ns), ROUNDED(name->median_ns));
    put_difference(table, value->ns, name->median_ns, marey__rank_score(name, value->ns));
}

void marey__fill_rank_outliers(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__rank_name *name;
    for (size_t i = 0; (name = nth_name(m, i)) != NULL; i++)
        for (size_t k = 0; k < name->n_outliers && is_shown(m, name); k++)
            put_outlier(table, m, name, &m->ranks->outliers[name->first_outlier + k]);
    MAREY__SORT_BY(table, "-by_ns");
}

/* ---- machines ---- */

void marey__fill_rank_hosts(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; m->ranks->n_hosts > 1 && i < m->ranks->n_hosts; i++) {
        const struct marey__rank_host *host = &m->ranks->hosts[i];
        const double by = host->median_ns - host->others_ns;
        MAREY__PUT_ROW(table, STRING(host->host), STRING(per(&m->ranks->whole)), U64(host->n_ranks),
                       ROUNDED(host->median_ns), ROUNDED(host->others_ns));
        put_difference(table, host->median_ns, host->others_ns,
                       host->sigma_ns > 0 ? by / host->sigma_ns : 0);
        MAREY__PUT_ROW(table, U64(host->n_outliers), TRUTH(marey__rank_host_is_outlier(host)));
    }
}
