/*
 * The ranks of a summary held against one another: what is usual over them, and who is not.
 *
 *   rows of processes and names (summary_merge.c), of iterations (iteration_merge.c)
 *        --> rank_values.c: values by name, medians, who is far from them  --> rank_tables.c
 *
 * A rank is a process of the program that loads no data for another. Its value of a name is the time of that name in an
 * iteration, on average; of names that run in none, and of programs that tell no iterations, the time in all.
 */
#ifndef MAREY_RANKS_H
#define MAREY_RANKS_H

#include "analyze/summary/internal.h"

struct marey__rank_value {
    uint32_t process; /* in marey__merge.processes */
    double ns;
};

/* A name over the ranks that have it. */
struct marey__rank_name {
    uint32_t name; /* MAREY__NO_NAME: the whole iteration, or the whole run */
    bool is_per_iteration;
    const struct marey__rank_value *values; /* in ascending order */
    size_t n;
    double median_ns, p25_ns, p75_ns;
    double mad_ns; /* the median of the distances from the median */
};

/* One rank. */
struct marey__rank_row {
    uint32_t process;
    const struct marey__iteration_row *iterations; /* NULL: it told none that counts */
    double ns;       /* of the whole: a mean iteration, else from the first event to the last */
    uint32_t longer; /* the innermost range that makes it slower than others; MAREY__NO_NAME: none */
    double longer_ns; /* by how much, against the median */
    double slow_share; /* of its iterations that take longer than a rank may on average; negative: not known */
};

/* A machine. */
struct marey__rank_host {
    const char *host;
    size_t n_ranks, n_outliers;
    double median_ns, others_ns; /* of its ranks, and of those elsewhere */
    double sigma_ns;             /* how far the first may lie from the second by chance */
};

struct marey__ranks {
    struct marey__rank_name whole;
    struct marey__rank_name *names; /* per iteration first, then the heaviest first */
    size_t n_names;
    struct marey__rank_row *rows; /* the slowest first */
    size_t n_rows;
    struct marey__rank_host *hosts; /* the slowest first */
    size_t n_hosts;
    struct marey__rank_value *values;
    size_t n_values;
};

/* What is known of the ranks; with fewer than two, nothing. Fini takes a half-made one. False without memory. */
MAREY_WARN_UNUSED bool marey__ranks_make(struct marey__ranks *ranks,
                                         const struct marey__merge *merge);
void marey__ranks_fini(struct marey__ranks *ranks);

/* Of as many as this, an outlier can be told from chance. */
enum { MAREY__RANKS_TO_JUDGE = 5 };
/* How many typical distances a value lies from the median; a distance is a hundredth of the median at least. */
double marey__rank_score(const struct marey__rank_name *name, double ns);
/* Far from the others: five such distances, and more than a hundredth of the whole. */
bool marey__rank_is_outlier(const struct marey__ranks *ranks, const struct marey__rank_name *name,
                            double ns);
bool marey__rank_host_is_outlier(const struct marey__rank_host *host);

#endif
