/*
 * Values of ranks by name, what is usual over them, and which ranges make a rank slower than others. Medians and their
 * distances, so that a few ranks that are very slow do not hide one another.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary/internal.h"

/* A distance from the median that is typical of normal values whose median distance is 1. */
#define MAD_TO_SIGMA 1.4826
#define LEAST_SIGMA 0.01 /* of the median: below, nobody cares */
#define FAR 5            /* typical distances */

static int by_ns(const void *a, const void *b)
{
    const struct marey__rank_value *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? 1 : -1;
    return (x->process > y->process) - (x->process < y->process);
}

/* Between the two in the middle where there is no middle one. */
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

/* Sort the values of a name, and find what is usual; `scratch` has room for as many. */
static void sum_up(struct marey__rank_name *name, struct marey__rank_value *values, size_t n,
                   double *scratch)
{
    qsort(values, n, sizeof *values, by_ns);
    name->values = values;
    name->n = n;
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

bool marey__rank_host_is_outlier(const struct marey__rank_host *host)
{
    return host->others_ns > 0 && fabs(host->median_ns - host->others_ns) > FAR * host->sigma_ns;
}

/* ---- who is there ---- */

/* While it is made; all by the process's number. */
struct making {
    struct marey__ranks *ranks;
    const struct marey__merge *merge;
    const struct marey__iteration_row **iterations; /* NULL: none that counts */
    struct marey__rank_row **rows;                  /* NULL: it is no rank */
    double *scratch;                                /* room for a value of each process */
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

/* The share of a rank's iterations that are longer than `ns`, by its quantiles. */
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

/* How many ranks have each name, and how many of them in iterations. */
struct tally {
    uint32_t n, n_in_iterations;
    size_t at; /* of its values */
};

static bool is_in_iterations(const struct making *m, const struct marey__name_row *row)
{
    return m->iterations[row->process] != NULL && row->iteration_ns != 0;
}

static size_t count_names(const struct making *m, struct tally *tallies)
{
    size_t n_values = 0;
    for (size_t i = 0; i < m->merge->ranks.n; i++) {
        const struct marey__name_row *row = &m->merge->ranks.rows[i];
        if (m->rows[row->process] == NULL)
            continue;
        tallies[row->name].n++;
        tallies[row->name].n_in_iterations += is_in_iterations(m, row);
    }
    /* What runs in iterations here and there, and elsewhere in most ranks, is no part of an iteration. */
    for (size_t name = 0; name < m->merge->names.n; name++) {
        struct tally *tally = &tallies[name];
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

static void put_values(const struct making *m, struct tally *tallies)
{
    for (size_t i = 0; i < m->merge->ranks.n; i++) {
        const struct marey__name_row *row = &m->merge->ranks.rows[i];
        struct tally *tally = &tallies[row->name];
        const bool is_per_iteration = tally->n_in_iterations != 0;
        if (m->rows[row->process] == NULL || (is_per_iteration && !is_in_iterations(m, row)))
            continue;
        const double n = is_per_iteration ? (double)m->iterations[row->process]->n_counted : 1;
        const uint64_t ns = is_per_iteration ? row->iteration_ns : row->total_ns;
        m->ranks->values[tally->at++] = (struct marey__rank_value){row->process, (double)ns / n};
    }
}

static int heaviest_first(const void *a, const void *b, void *names)
{
    const struct marey__rank_name *x = a, *y = b;
    if (x->is_per_iteration != y->is_per_iteration)
        return x->is_per_iteration ? -1 : 1;
    if (x->median_ns != y->median_ns)
        return x->median_ns < y->median_ns ? 1 : -1;
    return marey__names_compare(names, x->name, y->name);
}

static void sum_up_names(const struct making *m, const struct tally *tallies)
{
    struct marey__ranks *ranks = m->ranks;
    size_t n = 0;
    for (uint32_t name = 0; name < m->merge->names.n; name++) {
        const struct tally *tally = &tallies[name];
        if (tally->n == 0)
            continue;
        ranks->names[n] =
            (struct marey__rank_name){.name = name, .is_per_iteration = tally->n_in_iterations != 0};
        sum_up(&ranks->names[n++], ranks->values + tally->at - tally->n, tally->n, m->scratch);
    }
    if (n != 0)
        qsort_r(ranks->names, n, sizeof *ranks->names, heaviest_first, (void *)&m->merge->names);
}

static bool make_names(struct making *m)
{
    struct marey__ranks *ranks = m->ranks;
    struct tally *tallies = marey__calloc(m->merge->names.n + 1, sizeof *tallies);
    if (tallies == NULL)
        return false;
    ranks->n_values = count_names(m, tallies) + ranks->n_rows;
    ranks->values = marey__calloc(ranks->n_values, sizeof *ranks->values);
    ranks->names = marey__calloc(ranks->n_names + 1, sizeof *ranks->names);
    const bool done = ranks->values != NULL && ranks->names != NULL;
    if (done) {
        put_values(m, tallies);
        sum_up_names(m, tallies);
        struct marey__rank_value *whole = ranks->values + ranks->n_values - ranks->n_rows;
        for (size_t i = 0; i < ranks->n_rows; i++)
            whole[i] = (struct marey__rank_value){ranks->rows[i].process, ranks->rows[i].ns};
        sum_up(&ranks->whole, whole, ranks->n_rows, m->scratch);
    }
    marey__free(tallies);
    return done;
}

/* ---- what makes a rank slow, and how often it is ---- */

static void count_slow(const struct making *m)
{
    const struct marey__rank_name *whole = &m->ranks->whole;
    for (size_t i = 0; i < m->ranks->n_rows; i++) {
        struct marey__rank_row *row = &m->ranks->rows[i];
        if (row->iterations != NULL)
            row->slow_share = share_above(row->iterations, whole->median_ns + FAR * sigma_of(whole));
    }
}

static bool is_wait(const struct making *m, const struct marey__rank_name *name)
{
    const struct marey__name *text = &m->merge->names.names[name->name];
    return marey__name_is_wait(text->text, text->len);
}

/* For each process, the largest excess of a name over its median: `most` among work, `waits` among waits for other ranks. */
static void find_most(const struct making *m, double *most, double *waits)
{
    for (size_t i = 0; i < m->ranks->n_names; i++) {
        const struct marey__rank_name *name = &m->ranks->names[i];
        double *const into = is_wait(m, name) ? waits : most;
        for (size_t k = 0; k < name->n; k++) {
            double *of = &into[name->values[k].process];
            if (name->is_per_iteration == m->ranks->whole.is_per_iteration)
                *of = fmax(*of, name->values[k].ns - name->median_ns);
        }
    }
}

/*
 * A range is longer because one within it is: of those nearly as much longer as the most, the shortest. None where half of
 * it is waiting for others: they are the cause.
 */
static void find_longer(const struct making *m, const double *most, const double *waits)
{
    const struct marey__rank_name *whole = &m->ranks->whole;
    for (size_t i = 0; i < m->ranks->n_names; i++) {
        const struct marey__rank_name *name = &m->ranks->names[i];
        if (name->is_per_iteration != whole->is_per_iteration || is_wait(m, name))
            continue;
        for (size_t k = 0; k < name->n; k++) {
            struct marey__rank_row *row = m->rows[name->values[k].process];
            const double extra = name->values[k].ns - name->median_ns, top = most[row->process];
            if (extra < 0.9 * top || top < LEAST_SIGMA * whole->median_ns ||
                top < (row->ns - whole->median_ns) / 2 ||
                waits[row->process] > fmax(row->ns - whole->median_ns, top) / 2)
                continue;
            row->longer = name->name; /* names come the heaviest first */
            row->longer_ns = extra;
        }
    }
}

static int slowest_first(const void *a, const void *b)
{
    const struct marey__rank_row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return (x->process > y->process) - (x->process < y->process);
}

/* ---- machines ---- */

/* Rows by host, each host's together. */
static int by_host(const void *a, const void *b, void *merge)
{
    const struct marey__merge *m = merge;
    const struct marey__rank_row *x = *(struct marey__rank_row *const *)a,
                                 *y = *(struct marey__rank_row *const *)b;
    const int order = strcmp(m->processes[x->process]->host, m->processes[y->process]->host);
    return order != 0 ? order : slowest_first(x, y);
}

static int slowest_host_first(const void *a, const void *b)
{
    const struct marey__rank_host *x = a, *y = b;
    if (x->median_ns != y->median_ns)
        return x->median_ns < y->median_ns ? 1 : -1;
    return strcmp(x->host, y->host);
}

/* The median of the ranks that are not among `sorted[from, to)`; of many hosts one changes nothing. */
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
    /* Of several ranks the median is steadier than one. */
    host->sigma_ns =
        fmax(MAD_TO_SIGMA * ranks->whole.mad_ns / sqrt((double)n), LEAST_SIGMA * host->others_ns);
}

static bool make_hosts(struct making *m)
{
    struct marey__ranks *ranks = m->ranks;
    struct marey__rank_row **sorted = marey__calloc(ranks->n_rows, sizeof(struct marey__rank_row *));
    ranks->hosts = marey__calloc(ranks->n_rows, sizeof *ranks->hosts);
    const bool done = sorted != NULL && ranks->hosts != NULL;
    for (size_t i = 0; done && i < ranks->n_rows; i++)
        sorted[i] = &ranks->rows[i];
    if (done)
        qsort_r(sorted, ranks->n_rows, sizeof(struct marey__rank_row *), by_host, (void *)m->merge);
    for (size_t from = 0, to = 0; done && from < ranks->n_rows; from = to) {
        const char *host = m->merge->processes[sorted[from]->process]->host;
        while (to < ranks->n_rows && strcmp(m->merge->processes[sorted[to]->process]->host, host) == 0)
            to++;
        add_host(m, sorted, from, to);
    }
    if (done)
        qsort(ranks->hosts, ranks->n_hosts, sizeof *ranks->hosts, slowest_host_first);
    marey__free(sorted);
    return done;
}

/* ---- the whole ---- */

static bool has_several(const struct making *m)
{
    bool found = false;
    for (size_t i = 1; !found && i < m->ranks->n_rows; i++)
        found = marey__is_other_rank(m->merge->processes[m->ranks->rows[i].process],
                                     m->merge->processes[m->ranks->rows[0].process]);
    return found;
}

static bool make_all(struct making *m)
{
    list_iterations(m);
    list_rows(m, m->merge->iterations.whole.ns.count != 0);
    if (!has_several(m)) {
        m->ranks->n_rows = 0;
        return true;
    }
    double *most = marey__calloc(2 * m->merge->n_processes, sizeof *most);
    const bool done = most != NULL && make_names(m);
    if (done) {
        count_slow(m);
        find_most(m, most, most + m->merge->n_processes);
        find_longer(m, most, most + m->merge->n_processes);
        qsort(m->ranks->rows, m->ranks->n_rows, sizeof *m->ranks->rows, slowest_first);
    }
    marey__free(most);
    return done && make_hosts(m); /* the rows have moved: m->rows is no longer of use */
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
    marey__free(m.iterations);
    marey__free(m.rows);
    marey__free(m.scratch);
    return done;
}

void marey__ranks_fini(struct marey__ranks *ranks)
{
    marey__free(ranks->names);
    marey__free(ranks->rows);
    marey__free(ranks->hosts);
    marey__free(ranks->values);
    *ranks = (struct marey__ranks){0};
}
