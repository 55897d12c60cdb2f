/*
 * Values of ranks by name, their medians, and the ranges that make a rank slower than others. Uses medians and median
 * distances, so that a few very slow ranks do not hide one another.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary/internal.h"

/* Standard deviation of normal values whose median distance from the median is 1. */
#define MAD_TO_SIGMA 1.4826
#define LEAST_SIGMA 0.01 /* of the median; smaller differences do not matter */
#define FAR 5            /* typical distances */

MAREY__ORDER(by_ns, struct marey__rank_value, MAREY__UP(ns) MAREY__UP(process))

/* The median; the mean of the two middle values if `n` is even. */
static double middle_of(const double *sorted, size_t n)
{
    return n == 0 ? 0 : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static double value_at(const struct marey__rank_value *sorted, size_t n, double share)
{
    const double at = share * (double)(n - 1);
    const size_t i = (size_t)at;
    const double next = sorted[MAREY__MIN(i + 1, n - 1)].ns;
    return sorted[i].ns + (next - sorted[i].ns) * (at - (double)i);
}

/* Sort the values of a name, at least one, and compute its median and distances; `scratch` needs space for as many. */
static void sum_up(struct marey__rank_name *name, struct marey__rank_value *values, size_t n,
                   double *scratch)
{
    qsort(values, n, sizeof *values, by_ns);
    name->n = n;
    name->low = values[0];
    name->high = values[n - 1];
    name->p25_ns = value_at(values, n, 0.25);
    name->median_ns = value_at(values, n, 0.5);
    name->p75_ns = value_at(values, n, 0.75);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(values[i].ns - name->median_ns);
    qsort(scratch, n, sizeof *scratch, marey__compare_f64);
    name->mad_ns = middle_of(scratch, n);
}

static double sigma_of(const struct marey__rank_name *name)
{
    return fmax(MAD_TO_SIGMA * name->mad_ns, LEAST_SIGMA * name->median_ns);
}

double marey__rank_score(const struct marey__rank_name *name, double ns)
{
    const double sigma = sigma_of(name);
    return sigma > 0 ? (ns - name->median_ns) / sigma : 0;
}

bool marey__rank_is_outlier(const struct marey__ranks *ranks, const struct marey__rank_name *name,
                            double ns)
{
    const bool is_like_whole = name->is_per_iteration == ranks->whole.is_per_iteration;
    const double least = is_like_whole ? LEAST_SIGMA * ranks->whole.median_ns : 0;
    return name->n >= MAREY__RANKS_TO_JUDGE && fabs(marey__rank_score(name, ns)) > FAR &&
           fabs(ns - name->median_ns) > least;
}

/* Store the outliers among a name's sorted values. Returns false on out of memory. */
static bool keep_outliers(struct marey__ranks *ranks, struct marey__rank_name *name,
                          const struct marey__rank_value *values)
{
    name->first_outlier = ranks->n_outliers;
    for (size_t k = name->n; k-- > 0;)
        if (marey__rank_is_outlier(ranks, name, values[k].ns) &&
            !MAREY__PUSH(ranks->outliers, ranks->n_outliers, ranks->outliers_cap, values[k]))
            return false;
    name->n_outliers = ranks->n_outliers - name->first_outlier;
    return true;
}

bool marey__rank_host_is_outlier(const struct marey__rank_host *host)
{
    return host->others_ns > 0 && fabs(host->median_ns - host->others_ns) > FAR * host->sigma_ns;
}

/* ---- ranks ---- */

/* State of the comparison; arrays are by process number. */
struct making {
    struct marey__ranks *ranks;
    const struct marey__merge *merge;
    const struct marey__iteration_row **iterations; /* NULL: none that counts */
    struct marey__rank_row **rows;                  /* NULL: not a rank */
    double *scratch;                                /* a value per process */
    struct tally *tallies;                          /* by name */
};

static double duration_of(const struct marey_process *process)
{
    return process->last_ns > process->first_ns ? (double)(process->last_ns - process->first_ns) : 0;
}

bool marey__is_other_rank(const struct marey_process *a, const struct marey_process *b)
{
    if (a->rank >= 0 || b->rank >= 0)
        return a->rank != b->rank;
    const bool is_one = a->pid == b->pid && strcmp(a->host, b->host) == 0;
    return !is_one && a->first_ns < b->last_ns && b->first_ns < a->last_ns;
}

static void list_iterations(struct making *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    for (size_t i = 0; i < it->n_rows; i++)
        if (it->rows[i].n_counted != 0)
            m->iterations[it->rows[i].process] = &it->rows[i];
}

/* The share of a rank's iterations that are longer than `ns`, from its quantiles. */
static double share_above(const struct marey__iteration_row *row, double ns)
{
    const float *q = row->quantiles;
    const int n = MAREY__N_RANK_QUANTILES - 1;
    int k = 0;
    while (k <= n && (double)q[k] <= ns)
        k++;
    if (k == 0)
        return 1;
    if (k > n)
        return 0;
    const double between = (ns - (double)q[k - 1]) / ((double)q[k] - (double)q[k - 1]);
    return 1 - ((double)(k - 1) + between) / (double)n;
}

static void list_rows(struct making *m, bool has_iterations)
{
    struct marey__ranks *ranks = m->ranks;
    for (uint32_t p = 0; p < m->merge->n_processes; p++) {
        const struct marey__iteration_row *it = m->iterations[p];
        const struct marey_process *process = m->merge->processes[p];
        if (process->worker >= 0 || (has_iterations && it == NULL))
            continue;
        m->rows[p] = &ranks->rows[ranks->n_rows++];
        *m->rows[p] = (struct marey__rank_row){
            .process = p,
            .iterations = it,
            .ns = it != NULL ? (double)it->sum_ns / (double)it->n_counted : duration_of(process),
            .longer = MAREY__NO_NAME,
            .slow_share = -1,
        };
    }
    ranks->whole =
        (struct marey__rank_name){.name = MAREY__NO_NAME, .is_per_iteration = has_iterations};
}

/* ---- values by name ---- */

struct tally {
    uint32_t n, n_in_iterations; /* ranks with the name, and those with it in iterations */
    uint32_t number;             /* index in the list of names, the heaviest first */
    size_t at;                   /* index of its next value */
};

/* One rank's row of a name. */
typedef void visit_row(struct making *m, struct marey__rank_row *rank,
                       const struct marey__name_row *row, void *ctx);

static void visit_rows(struct making *m, visit_row *visit, void *ctx)
{
    struct marey__name_row row;
    for (size_t p = 0; p < m->merge->n_processes; p++) {
        const uint8_t *at = marey__rank_rows_of(m->merge, p);
        while (m->rows[p] != NULL && marey__rank_row_next(m->merge, &at, &row))
            visit(m, m->rows[p], &row, ctx);
    }
}

static bool is_in_iterations(const struct marey__rank_row *rank, const struct marey__name_row *row)
{
    return rank->iterations != NULL && row->iteration_ns != 0;
}

static void count_row(struct making *m, struct marey__rank_row *rank,
                      const struct marey__name_row *row, void *ctx)
{
    (void)ctx;
    m->tallies[row->name].n++;
    m->tallies[row->name].n_in_iterations += is_in_iterations(rank, row);
}

static size_t count_names(struct making *m)
{
    size_t n_values = 0;
    visit_rows(m, count_row, NULL);
    /* A name that most of its ranks have only outside of iterations counts as outside. */
    for (size_t name = 0; name < m->merge->names.n; name++) {
        struct tally *tally = &m->tallies[name];
        if (2 * tally->n_in_iterations >= tally->n)
            tally->n = tally->n_in_iterations;
        else
            tally->n_in_iterations = 0;
        tally->at = n_values;
        n_values += tally->n;
        m->ranks->n_names += tally->n != 0;
    }
    return n_values;
}

/* The rank's value of the name; negative: none. */
static double value_of(const struct tally *tally, const struct marey__rank_row *rank,
                       const struct marey__name_row *row)
{
    if (tally->n_in_iterations == 0)
        return (double)row->total_ns;
    return is_in_iterations(rank, row)
               ? (double)row->iteration_ns / (double)rank->iterations->n_counted
               : -1;
}

/* Values of a range of names; those of all names at once would need too much memory. */
struct batch {
    uint32_t from, to; /* names */
    size_t first;      /* index of their first value among those of all names */
    struct marey__rank_value *values;
};

static void put_value(struct making *m, struct marey__rank_row *rank,
                      const struct marey__name_row *row, void *ctx)
{
    const struct batch *batch = ctx;
    struct tally *tally = &m->tallies[row->name];
    const double ns = value_of(tally, rank, row);
    if (row->name >= batch->from && row->name < batch->to && ns >= 0)
        batch->values[tally->at++ - batch->first] = (struct marey__rank_value){rank->process, ns};
}

static int heaviest_first(const void *a, const void *b, void *names)
{
    const struct marey__rank_name *x = a, *y = b;
    MAREY__DOWN(is_per_iteration)
    MAREY__DOWN(median_ns)
    return marey__names_compare(names, x->name, y->name);
}

static bool sum_up_batch(struct making *m, struct batch *batch, size_t *n)
{
    struct marey__ranks *ranks = m->ranks;
    visit_rows(m, put_value, batch);
    for (uint32_t i = batch->from; i < batch->to; i++) {
        const struct tally *tally = &m->tallies[i];
        const struct marey__name *text = &m->merge->names.names[i];
        struct marey__rank_value *values = batch->values + (tally->at - tally->n - batch->first);
        if (tally->n == 0)
            continue;
        struct marey__rank_name *name = &ranks->names[(*n)++];
        *name = (struct marey__rank_name){.name = i,
                                          .is_per_iteration = tally->n_in_iterations != 0,
                                          .is_wait = marey__name_is_wait(text->text, text->len)};
        sum_up(name, values, tally->n, m->scratch);
        if (!keep_outliers(ranks, name, values))
            return false;
    }
    return true;
}

/* `n_values` of all names; `values` has space for `room`, at least the number of ranks. */
static bool sum_up_names(struct making *m, size_t n_values, struct marey__rank_value *values,
                         size_t room)
{
    struct marey__ranks *ranks = m->ranks;
    struct batch batch = {.values = values};
    size_t n = 0;
    while (batch.first < n_values) {
        size_t end = batch.first;
        for (batch.from = batch.to; batch.to < m->merge->names.n; batch.to++) {
            if (end + m->tallies[batch.to].n - batch.first > room)
                break;
            end += m->tallies[batch.to].n;
        }
        if (!sum_up_batch(m, &batch, &n))
            return false;
        batch.first = end;
    }
    if (n != 0)
        qsort_r(ranks->names, n, sizeof *ranks->names, heaviest_first, (void *)&m->merge->names);
    for (uint32_t i = 0; i < n; i++)
        m->tallies[ranks->names[i].name].number = i;
    return true;
}

static bool make_names(struct making *m)
{
    enum { MOST_BATCHES = 8 };
    struct marey__ranks *ranks = m->ranks;
    const size_t n_values = count_names(m);
    const size_t room = MAREY__MAX(ranks->n_rows, n_values / MOST_BATCHES);
    struct marey__rank_value *const values MAREY__FREED = marey__calloc(room, sizeof *values);
    ranks->names = marey__calloc(ranks->n_names + 1, sizeof *ranks->names);
    if (values == NULL || ranks->names == NULL)
        return false;
    for (size_t i = 0; i < ranks->n_rows; i++)
        values[i] = (struct marey__rank_value){ranks->rows[i].process, ranks->rows[i].ns};
    sum_up(&ranks->whole, values, ranks->n_rows, m->scratch);
    return keep_outliers(ranks, &ranks->whole, values) && sum_up_names(m, n_values, values, room);
}

/* ---- causes of slow ranks, and their frequency ---- */

static void count_slow(const struct making *m)
{
    const struct marey__rank_name *whole = &m->ranks->whole;
    for (size_t i = 0; i < m->ranks->n_rows; i++) {
        struct marey__rank_row *row = &m->ranks->rows[i];
        if (row->iterations != NULL)
            row->slow_share = share_above(row->iterations, whole->median_ns + FAR * sigma_of(whole));
    }
}

/*
 * For each process, the largest excess of a name over its median: `most` among work, `waits` among waits for other
 * ranks.
 */
struct excess {
    double *most, *waits;
};

/* The rank's excess for a name of the same kind as the whole; NULL for others. */
static const struct marey__rank_name *excess_of(const struct making *m,
                                                const struct marey__rank_row *rank,
                                                const struct marey__name_row *row, double *extra)
{
    const struct tally *tally = &m->tallies[row->name];
    const double ns = tally->n != 0 ? value_of(tally, rank, row) : -1;
    const struct marey__rank_name *name = ns >= 0 ? &m->ranks->names[tally->number] : NULL;
    if (name == NULL || name->is_per_iteration != m->ranks->whole.is_per_iteration)
        return NULL;
    *extra = ns - name->median_ns;
    return name;
}

static void find_most(struct making *m, struct marey__rank_row *rank,
                      const struct marey__name_row *row, void *ctx)
{
    const struct excess *excess = ctx;
    double extra;
    const struct marey__rank_name *name = excess_of(m, rank, row, &extra);
    if (name == NULL)
        return;
    double *of = &(name->is_wait ? excess->waits : excess->most)[rank->process];
    *of = fmax(*of, extra);
}

/*
 * A range is longer because one within it is: among those within 10 % of the largest excess, choose the shortest. None
 * if waiting explains half of the excess: the others are the cause.
 */
static void find_longer(struct making *m, struct marey__rank_row *rank,
                        const struct marey__name_row *row, void *ctx)
{
    const struct excess *excess = ctx;
    const double whole_ns = m->ranks->whole.median_ns, top = excess->most[rank->process];
    double extra;
    const struct marey__rank_name *name = excess_of(m, rank, row, &extra);
    if (name == NULL || name->is_wait || extra < 0.9 * top || top < LEAST_SIGMA * whole_ns ||
        top < (rank->ns - whole_ns) / 2 ||
        excess->waits[rank->process] > fmax(rank->ns - whole_ns, top) / 2)
        return;
    /* Names are ordered by weight. */
    if (rank->longer != MAREY__NO_NAME &&
        m->tallies[rank->longer].number > m->tallies[row->name].number)
        return;
    rank->longer = row->name;
    rank->longer_ns = extra;
}

MAREY__ORDER(slowest_first, struct marey__rank_row, MAREY__DOWN(ns) MAREY__UP(process))

/* ---- machines ---- */

/* Rows by host. */
static int by_host(const void *a, const void *b, void *merge)
{
    const struct marey__merge *m = merge;
    const struct marey__rank_row *x = *(struct marey__rank_row *const *)a,
                                 *y = *(struct marey__rank_row *const *)b;
    const int order = strcmp(m->processes[x->process]->host, m->processes[y->process]->host);
    return order != 0 ? order : slowest_first(x, y);
}

MAREY__ORDER(slowest_host_first, struct marey__rank_host,
             MAREY__DOWN(median_ns) MAREY__UP_BY(strcmp(x->host, y->host), 0))

/* The median of the ranks outside `sorted[from, to)`; with many hosts, removing one has no effect. */
static double median_elsewhere(const struct making *m, struct marey__rank_row *const *sorted,
                               size_t from, size_t to)
{
    size_t n = 0;
    if (m->ranks->n_rows - (to - from) > 512 && (to - from) * 16 < m->ranks->n_rows)
        return m->ranks->whole.median_ns;
    for (size_t i = 0; i < m->ranks->n_rows; i++)
        if (i < from || i >= to)
            m->scratch[n++] = sorted[i]->ns;
    qsort(m->scratch, n, sizeof *m->scratch, marey__compare_f64);
    return middle_of(m->scratch, n);
}

static void add_host(const struct making *m, struct marey__rank_row *const *sorted, size_t from,
                     size_t to)
{
    struct marey__ranks *ranks = m->ranks;
    struct marey__rank_host *host = &ranks->hosts[ranks->n_hosts++];
    const size_t n = to - from;
    *host = (struct marey__rank_host){.host = m->merge->processes[sorted[from]->process]->host,
                                      .n_ranks = n};
    for (size_t i = from; i < to; i++)
        host->n_outliers += marey__rank_is_outlier(ranks, &ranks->whole, sorted[i]->ns);
    host->median_ns = (sorted[from + (n - 1) / 2]->ns + sorted[from + n / 2]->ns) / 2;
    host->others_ns = median_elsewhere(m, sorted, from, to);
    /* A median of several ranks varies less than one value. */
    host->sigma_ns =
        fmax(MAD_TO_SIGMA * ranks->whole.mad_ns / sqrt((double)n), LEAST_SIGMA * host->others_ns);
}

static bool make_hosts(struct making *m)
{
    struct marey__ranks *ranks = m->ranks;
    struct marey__rank_row **const sorted MAREY__FREED = marey__calloc(ranks->n_rows, sizeof *sorted);
    ranks->hosts = marey__calloc(ranks->n_rows, sizeof *ranks->hosts);
    if (sorted == NULL || ranks->hosts == NULL)
        return false;
    for (size_t i = 0; i < ranks->n_rows; i++)
        sorted[i] = &ranks->rows[i];
    qsort_r(sorted, ranks->n_rows, sizeof *sorted, by_host, (void *)m->merge);
    for (size_t from = 0, to = 0; from < ranks->n_rows; from = to) {
        const char *host = m->merge->processes[sorted[from]->process]->host;
        while (to < ranks->n_rows && strcmp(m->merge->processes[sorted[to]->process]->host, host) == 0)
            to++;
        add_host(m, sorted, from, to);
    }
    qsort(ranks->hosts, ranks->n_hosts, sizeof *ranks->hosts, slowest_host_first);
    return true;
}

/* ---- all ---- */

static bool has_several(const struct making *m)
{
    for (size_t i = 1; i < m->ranks->n_rows; i++)
        if (marey__is_other_rank(m->merge->processes[m->ranks->rows[i].process],
                                 m->merge->processes[m->ranks->rows[0].process]))
            return true;
    return false;
}

static bool make_all(struct making *m)
{
    list_iterations(m);
    list_rows(m, m->merge->iterations.whole.ns.count != 0);
    if (!has_several(m)) {
        m->ranks->n_rows = 0;
        return true;
    }
    double *const most MAREY__FREED = marey__calloc(2 * m->merge->n_processes, sizeof *most);
    m->tallies = marey__calloc(m->merge->names.n + 1, sizeof *m->tallies);
    if (most == NULL || m->tallies == NULL || !make_names(m))
        return false;
    struct excess excess = {most, most + m->merge->n_processes};
    count_slow(m);
    visit_rows(m, find_most, &excess);
    visit_rows(m, find_longer, &excess);
    qsort(m->ranks->rows, m->ranks->n_rows, sizeof *m->ranks->rows, slowest_first);
    return make_hosts(m); /* the rows have moved, so m->rows is invalid */
}

bool marey__ranks_make(struct marey__ranks *ranks, const struct marey__merge *merge)
{
    const size_t n = merge->n_processes + 1;
    *ranks = (struct marey__ranks){.rows = marey__calloc(n, sizeof *ranks->rows)};
    struct making m = {
        .ranks = ranks,
        .merge = merge,
        .iterations = marey__calloc(n, sizeof(const struct marey__iteration_row *)),
        .rows = marey__calloc(n, sizeof(struct marey__rank_row *)),
        .scratch = marey__calloc(n, sizeof *m.scratch),
    };
    const bool done = ranks->rows != NULL && m.iterations != NULL && m.rows != NULL &&
                      m.scratch != NULL && make_all(&m);
    MAREY__FREE_ALL(m.iterations, m.rows, m.scratch, m.tallies);
    return done;
}

void marey__ranks_fini(struct marey__ranks *ranks)
{
    MAREY__FREE_ALL(ranks->names, ranks->rows, ranks->hosts, ranks->outliers);
    *ranks = (struct marey__ranks){0};
}
