/*
 * Ranks of a training on CPUs: the time that each works in a step, and the time that it waits for
 * the others.
 *
 * A rank waits while its main thread is off the CPU in the backward pass, where
 * DistributedDataParallel reduces gradients, or in a function of torch.distributed. Samples give
 * the share of waits, hooks the exact lengths of steps and phases. The last rank to arrive waits
 * only for the transfer. Work of only some steps belongs to slow-steps.
 *
 *   rank 0  [ work ][...... waits ......]
 *   rank 1  [ work ][...... waits ......]
 *   rank 2  [ work      excess     ][...]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { FEWEST_STEPS = 8, FEWEST_SAMPLES = 30 };
static const double most_different =
    1.15; /* ratio of mean steps among ranks that wait for each other */
static const double part_of_forward = 0.15;

/* Steps that are slow by chance are not apart. */
static bool is_apart(const struct marey__facts *facts, const struct marey__fact_step *step)
{
    return step->is_slow && facts->occasional[MAREY__OCCASIONAL_OUTLIER].period != 0;
}

static bool fill(const struct marey__facts *facts, struct marey__fact_rank *rank,
                 const struct marey__trainer *t)
{
    size_t n = 0;
    *rank = (struct marey__fact_rank){.trainer = t};
    for (size_t i = t->n_warmup; i < t->n_steps; i++)
        n += !is_apart(facts, &t->steps[i]);
    if (n < FEWEST_STEPS || t->info == NULL || t->info->rank < 0)
        return false;
    for (size_t i = t->n_warmup; i < t->n_steps; i++) {
        if (is_apart(facts, &t->steps[i]))
            continue;
        rank->step_ns += (double)(t->steps[i].end_ns - t->steps[i].begin_ns) / (double)n;
        for (int p = 0; p < MAREY__FACT_PHASES; p++)
            rank->phase_ns[p] += (double)t->steps[i].phase_ns[p] / (double)n;
    }
    rank->apart_ns = rank->phase_ns[MAREY__FACT_CHECKPOINT] + rank->phase_ns[MAREY__FACT_EVALUATION];
    return true;
}

static bool add_waits(const struct marey__facts *facts, struct marey__fact_rank *rank)
{
    const uint64_t number = (uint64_t)(rank->trainer - facts->trainers) + 1,
                   kinds = facts->occasional[MAREY__OCCASIONAL_OUTLIER].period != 0
                               ? MAREY__FACT_TYPICAL_STEPS
                               : MAREY__FACT_STEPS;
    uint64_t all_ns = 0, n = 0, waits_ns[MAREY__FACT_PHASES] = {0};
    for (size_t i = 0; i < facts->n_rank_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->rank_buckets[i];
        if (bucket->key >> 40 != number || !marey__sample_bucket_has_kind(bucket, kinds))
            continue;
        n += bucket->sum.n;
        all_ns += bucket->sum.ns;
        waits_ns[(bucket->key >> 32 & 0xff) % MAREY__FACT_SLOW] +=
            marey__fact_weight(facts, bucket, MAREY__FACT_WAITING);
    }
    if (n < FEWEST_SAMPLES || all_ns == 0)
        return false;
    for (int p = 0; p < MAREY__FACT_PHASES; p++) {
        const double ns = (double)waits_ns[p] / (double)all_ns * rank->step_ns;
        rank->wait_ns += ns;
        rank->phase_ns[p] -= fmin(ns, rank->phase_ns[p]);
    }
    rank->phase_ns[MAREY__FACT_CHECKPOINT] = rank->phase_ns[MAREY__FACT_EVALUATION] = 0;
    const double share = fmin(rank->wait_ns / rank->step_ns, 1);
    rank->error_ns = sqrt(share * (1 - share) / (double)n) * rank->step_ns;
    return true;
}

static double work_of(const struct marey__fact_rank *rank)
{
    return rank->step_ns - rank->wait_ns - rank->apart_ns;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool is_on_node(const struct marey__fact_rank *a, const struct marey__fact_rank *b)
{
    return strcmp(a->trainer->info->host, b->trainer->info->host) == 0;
}

/*
 * The median over the other ranks, or the ranks of other nodes, of a phase without waits; `phase`
 * < 0: of all work.
 */
static double median_of_others(const struct marey__fact_ranks *ranks, double *room, int phase)
{
    size_t n = 0;
    for (size_t i = 0; i < ranks->n; i++)
        if (ranks->is_slow_node ? !is_on_node(&ranks->list[i], ranks->slowest)
                                : &ranks->list[i] != ranks->slowest)
            room[n++] = phase < 0 ? work_of(&ranks->list[i]) : ranks->list[i].phase_ns[phase];
    qsort(room, n, sizeof *room, compare_doubles);
    return n % 2 != 0 ? room[n / 2] : (room[n / 2 - 1] + room[n / 2]) / 2;
}

/* A node is slow if each of its ranks has at least half of the excess of the slowest rank. */
static void find_slow_node(struct marey__fact_ranks *ranks, double *room)
{
    size_t n_here = 0;
    double least = INFINITY;
    for (size_t i = 0; i < ranks->n; i++)
        if (is_on_node(&ranks->list[i], ranks->slowest)) {
            n_here++;
            least = fmin(least, work_of(&ranks->list[i]));
        }
    ranks->has_nodes = n_here < ranks->n;
    if (n_here < 2 || !ranks->has_nodes)
        return;
    ranks->is_slow_node = true;
    const double others = median_of_others(ranks, room, -1);
    ranks->is_slow_node = least - others >= (work_of(ranks->slowest) - others) / 2;
}

static bool compare_ranks(struct marey__fact_ranks *ranks)
{
    double *const room MAREY__FREED = marey__calloc(ranks->n, sizeof *room), least = INFINITY,
                       most = 0;
    if (room == NULL)
        return false;
    for (size_t i = 0; i < ranks->n; i++) {
        const struct marey__fact_rank *const rank = &ranks->list[i];
        least = fmin(least, rank->step_ns);
        most = fmax(most, rank->step_ns);
        if (ranks->slowest == NULL || work_of(rank) > work_of(ranks->slowest))
            ranks->slowest = rank;
    }
    find_slow_node(ranks, room);
    ranks->step_ns = most;
    ranks->excess_ns = work_of(ranks->slowest) - median_of_others(ranks, room, -1);
    for (size_t i = 0; i < ranks->n; i++)
        ranks->error_ns = fmax(ranks->error_ns, ranks->list[i].error_ns);
    ranks->error_ns *= sqrt(2);
    double excess_ns[MAREY__FACT_PHASES];
    for (int p = 0; p < MAREY__FACT_PHASES; p++) {
        excess_ns[p] = ranks->slowest->phase_ns[p] - median_of_others(ranks, room, p);
        if (excess_ns[p] > excess_ns[ranks->phase])
            ranks->phase = (enum marey__fact_phase)p;
    }
    /* More data lengthens both passes; the user's code is in the forward pass. */
    if (ranks->phase == MAREY__FACT_BACKWARD &&
        excess_ns[MAREY__FACT_FORWARD] >= part_of_forward * ranks->excess_ns)
        ranks->phase = MAREY__FACT_FORWARD;
    return most <= least * most_different;
}

bool marey__fact_ranks_read(const struct marey__facts *facts, struct marey__fact_ranks *out)
{
    *out = (struct marey__fact_ranks){.n = facts->n_trainers};
    if (facts->n_trainers < 2 || facts->has_device || facts->is_imported || facts->n_rank_buckets == 0)
        return false;
    out->list = marey__calloc(out->n, sizeof *out->list);
    for (size_t i = 0; out->list != NULL && i < out->n; i++)
        if (!fill(facts, &out->list[i], &facts->trainers[i]) || !add_waits(facts, &out->list[i]) ||
            (i > 0 && facts->trainers[i].info->rank == facts->trainers[i - 1].info->rank))
            return false;
    return out->list != NULL && compare_ranks(out);
}

void marey__fact_ranks_fini(struct marey__fact_ranks *ranks)
{
    marey__free(ranks->list);
}

bool marey__fact_ranks_find_place(const struct marey__facts *facts,
                                  const struct marey__fact_rank *rank, enum marey__fact_phase phase,
                                  struct marey__fact_place *out)
{
    const uint64_t number = (uint64_t)(rank->trainer - facts->trainers) + 1;
    uint64_t *const weights MAREY__FREED =
        marey__calloc((size_t)facts->n_stacks + 1, sizeof *weights);
    *out = (struct marey__fact_place){0};
    for (size_t i = 0; weights != NULL && i < facts->n_rank_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->rank_buckets[i];
        if (bucket->key >> 40 == number &&
            marey__sample_bucket_has_kind(bucket, MAREY__FACT_BOTH(phase)))
            weights[marey__sample_bucket_stack(bucket)] +=
                bucket->sum.ns - marey__fact_weight(facts, bucket, MAREY__FACT_WAITING);
    }
    const bool done = weights != NULL && marey__facts_find_place_of(
                                             facts, weights, phase == MAREY__FACT_DATA, false, out);
    out->process = rank->trainer->target;
    return done;
}
