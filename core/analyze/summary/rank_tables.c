/* Rows of the tables that compare ranks. */
#include <math.h>

#include "analyze/summary/internal.h"

/* The difference from a typical time: in ns, as a share of it, in typical distances. */
static void put_difference(marey_table *table, double ns, double typical_ns, double score)
{
    const double by = ns - typical_ns;
    marey_table_i64(table, by >= 0x1p63 ? INT64_MAX : (int64_t)(by + (by < 0 ? -0.5 : 0.5)));
    marey__put_real(table, by / typical_ns, typical_ns > 0);
    marey_table_f64(table, round(10 * score) / 10);
}

static void put_rank_of(marey_table *table, const struct marey__making *m, uint32_t process)
{
    marey__put_rank(table, m->merge->processes[process]->rank);
}

static void put_per(marey_table *table, const struct marey__rank_name *name)
{
    marey__put_string(table, name->is_per_iteration ? "iteration" : "run");
}

static void put_name_of(marey_table *table, const struct marey__making *m,
                        const struct marey__rank_name *name)
{
    if (name->name != MAREY__NO_NAME)
        marey__put_name(table, m, name->name);
    else
        marey__put_string(table, name->is_per_iteration ? MAREY__WHOLE_ITERATION : "(whole run)");
}

/* The whole, then each name that is wanted; NULL past the last. */
static const struct marey__rank_name *nth_name(const struct marey__making *m, size_t i)
{
    if (i > m->ranks->n_names)
        return NULL;
    return i == 0 ? &m->ranks->whole : &m->ranks->names[i - 1];
}

static bool is_shown(const struct marey__making *m, const struct marey__rank_name *name)
{
    return name->n != 0 && (name->name == MAREY__NO_NAME || marey__is_range_wanted(m, name->name));
}

/* ---- a name over ranks ---- */

marey_status marey__fill_rank_spread(marey_table *table, const struct marey__making *m)
{
    const struct marey__rank_name *name;
    for (size_t i = 0; (name = nth_name(m, i)) != NULL; i++) {
        if (name->n < 2 || !is_shown(m, name))
            continue;
        const struct marey__rank_value *low = &name->low, *high = &name->high;
        put_name_of(table, m, name);
        put_per(table, name);
        marey_table_u64(table, name->n);
        marey__put_ns(table, name->median_ns);
        marey__put_ns(table, name->mad_ns);
        marey__put_ns(table, name->p25_ns);
        marey__put_ns(table, name->p75_ns);
        marey__put_ns(table, low->ns);
        put_rank_of(table, m, low->process);
        marey__put_ns(table, high->ns);
        put_rank_of(table, m, high->process);
        marey__put_real(table, (high->ns - low->ns) / name->median_ns, name->median_ns > 0);
        marey_table_u64(table, name->n_outliers);
    }
    return MAREY_OK;
}

/* ---- each rank ---- */

marey_status marey__fill_rank_times(marey_table *table, const struct marey__making *m)
{
    const struct marey__rank_name *whole = &m->ranks->whole;
    for (size_t i = 0; i < m->ranks->n_rows; i++) {
        const struct marey__rank_row *row = &m->ranks->rows[i];
        marey__put_process(table, m->merge->processes[row->process]);
        marey__put_string(table, m->merge->processes[row->process]->host);
        put_per(table, whole);
        marey__put_ns(table, row->ns);
        marey__put_ns(table, whole->median_ns);
        put_difference(table, row->ns, whole->median_ns, marey__rank_score(whole, row->ns));
        marey_table_bool(table, marey__rank_is_outlier(m->ranks, whole, row->ns));
        marey__put_real(table, row->slow_share, row->slow_share >= 0);
        if (row->longer != MAREY__NO_NAME) {
            marey__put_name(table, m, row->longer);
            marey__put_ns(table, row->longer_ns);
        } else {
            marey_table_null(table);
            marey_table_null(table);
        }
    }
    return MAREY_OK;
}

/* ---- outliers ---- */

static void put_outlier(marey_table *table, const struct marey__making *m,
                        const struct marey__rank_name *name, const struct marey__rank_value *value)
{
    marey__put_process(table, m->merge->processes[value->process]);
    marey__put_string(table, m->merge->processes[value->process]->host);
    put_name_of(table, m, name);
    put_per(table, name);
    marey__put_ns(table, value->ns);
    marey__put_ns(table, name->median_ns);
    put_difference(table, value->ns, name->median_ns, marey__rank_score(name, value->ns));
}

marey_status marey__fill_rank_outliers(marey_table *table, const struct marey__making *m)
{
    const struct marey__rank_name *name;
    for (size_t i = 0; (name = nth_name(m, i)) != NULL; i++)
        for (size_t k = 0; k < name->n_outliers && is_shown(m, name); k++)
            put_outlier(table, m, name, &m->ranks->outliers[name->first_outlier + k]);
    marey__sort_by(table, "by_ns", 1);
    return MAREY_OK;
}

/* ---- machines ---- */

marey_status marey__fill_rank_hosts(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; m->ranks->n_hosts > 1 && i < m->ranks->n_hosts; i++) {
        const struct marey__rank_host *host = &m->ranks->hosts[i];
        const double by = host->median_ns - host->others_ns;
        marey__put_string(table, host->host);
        put_per(table, &m->ranks->whole);
        marey_table_u64(table, host->n_ranks);
        marey__put_ns(table, host->median_ns);
        marey__put_ns(table, host->others_ns);
        put_difference(table, host->median_ns, host->others_ns,
                       host->sigma_ns > 0 ? by / host->sigma_ns : 0);
        marey_table_u64(table, host->n_outliers);
        marey_table_bool(table, marey__rank_host_is_outlier(host));
    }
    return MAREY_OK;
}
