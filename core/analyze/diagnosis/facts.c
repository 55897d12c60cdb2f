/* Summaries of steps: which are warm-up, and how their time splits into phases. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

/* ---- steps ---- */

static uint64_t length_of(const struct marey__fact_step *step)
{
    return step->end_ns - step->begin_ns;
}

uint64_t marey__fact_median(uint64_t *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, marey__compare_u64);
    return n % 2 != 0 ? values[n / 2] : values[n / 2 - 1] / 2 + values[n / 2] / 2;
}

/* The median length of the steps from `first` on; 0 on out of memory, as without steps. */
static uint64_t median_from(const struct marey__trainer *t, size_t first)
{
    const size_t n = t->n_steps - first;
    uint64_t *const lengths = marey__calloc(n + 1, sizeof *lengths);
    if (lengths == NULL)
        return 0;
    for (size_t i = 0; i < n; i++)
        lengths[i] = length_of(&t->steps[first + i]);
    const uint64_t median = marey__fact_median(lengths, n);
    marey__free(lengths);
    return median;
}

/*
 * The first of several steps is always warm-up: allocators, caches and compilers start in it. The
 * next ones are warm-up while they take longer than 1.5 times the median, up to a tenth of all
 * steps or three.
 */
static void find_warmup(struct marey__trainer *t)
{
    const size_t most = t->n_steps < 4 ? t->n_steps - 1 : MAREY__MAX((size_t)3, t->n_steps / 10);
    /* torch.profiler starts in the middle of a training, so its first step is not warm-up. */
    t->n_warmup = t->n_steps > 1 && !marey__is_torch_trace(t->info);
    const uint64_t median = median_from(t, t->n_warmup);
    while (t->n_warmup < most && length_of(&t->steps[t->n_warmup]) > median + median / 2)
        t->n_warmup++;
    t->median_ns = median_from(t, t->n_warmup);
}

/* Phases are sorted by start and do not overlap. */
static void split_steps(struct marey__trainer *t)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_steps; i++) {
        struct marey__fact_step *const step = &t->steps[i];
        uint64_t in_phases_ns = 0;
        while (at < t->n_phases && t->phases[at].end_ns <= step->begin_ns)
            at++;
        for (size_t p = at; p < t->n_phases && t->phases[p].begin_ns < step->end_ns; p++) {
            const uint64_t begin = MAREY__MAX(t->phases[p].begin_ns, step->begin_ns),
                           end = MAREY__MIN(t->phases[p].end_ns, step->end_ns);
            step->phase_ns[t->phases[p].phase] += end - begin;
            step->start_of_epoch_ns += t->phases[p].is_start_of_epoch ? end - begin : 0;
            in_phases_ns += end - begin;
        }
        step->phase_ns[MAREY__FACT_OTHER] +=
            length_of(step) - MAREY__MIN(in_phases_ns, length_of(step));
    }
}

static const char *detected_by(const struct marey_process *info)
{
    const size_t len = strlen(info->steps);
    return marey__starts_with(info->steps, len, "updates")         ? "optimizer"
           : marey__starts_with(info->steps, len, "driver marey.") ? "callback"
           : strcmp(info->steps, "batches") == 0                   ? "batches"
                                                                   : "api";
}

static void add_trainer(struct marey__facts *facts, const struct marey__trainer *t)
{
    double samples = 0;
    uint64_t known_ns = 0, all_ns = 0;
    for (size_t i = t->n_warmup; i < t->n_steps; i++) {
        const struct marey__fact_step *const step = &t->steps[i];
        all_ns += length_of(step);
        for (int p = 0; p < MAREY__FACT_PHASES; p++)
            facts->phase_ns[p] += step->phase_ns[p];
        facts->start_of_epoch_ns += step->start_of_epoch_ns;
        samples += step->samples;
        known_ns += step->samples > 0 ? length_of(step) : 0;
    }
    facts->steady_ns += all_ns;
    if (known_ns != 0)
        facts->samples_per_s += samples * 1e9 / (double)known_ns;
    const uint64_t startup_ns =
        t->steps[t->n_warmup].begin_ns - MAREY__MIN(t->start_ns, t->steps[t->n_warmup].begin_ns);
    if (!marey__is_torch_trace(t->info))
        facts->startup_ns = MAREY__MAX(facts->startup_ns, startup_ns);
    if (t->median_ns < facts->median_ns)
        return;
    facts->median_ns = t->median_ns;
    facts->n_steps = t->n_steps - t->n_warmup;
    facts->mean_ns = all_ns / facts->n_steps;
    facts->n_warmup = t->n_warmup;
    facts->detected_by = detected_by(t->info);
}

/* ---- steps of several ranks ---- */

static uint64_t mean_of(const struct marey__trainer *t)
{
    return (t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns) /
           (t->n_steps - t->n_warmup);
}

/* Ranks that wait for each other have as many steps, of the same mean length. */
static bool is_synchronous(const struct marey__facts *facts)
{
    const double most_different = 1.15;
    const struct marey__trainer *const first = facts->trainers;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        const struct marey__trainer *const t = &facts->trainers[i];
        const double ratio = (double)mean_of(t) / (double)MAREY__MAX(mean_of(first), UINT64_C(1));
        if (t->info == NULL || t->info->rank < 0 || ratio > most_different ||
            ratio < 1 / most_different || t->n_steps > first->n_steps + 1 ||
            first->n_steps > t->n_steps + 1 || (i > 0 && t->info->rank == t[-1].info->rank))
            return false;
    }
    return facts->n_trainers > 1;
}

/* The first step that counts on all ranks. */
static size_t first_joint(const struct marey__facts *facts)
{
    size_t first = 0;
    for (size_t i = 0; i < facts->n_trainers; i++)
        first = MAREY__MAX(first, facts->trainers[i].n_warmup);
    return first;
}

size_t marey__facts_joint_step(const struct marey__facts *facts, const struct marey__trainer *t,
                               size_t step)
{
    size_t at = 0;
    if (facts->is_synchronous) {
        const size_t first = first_joint(facts);
        return step >= first && step - first < facts->n_joint ? step - first : facts->n_joint;
    }
    for (const struct marey__trainer *each = facts->trainers; each != t; each++)
        at += each->n_steps - each->n_warmup;
    return step >= t->n_warmup ? at + step - t->n_warmup : facts->n_joint;
}

static bool join_steps(struct marey__facts *facts)
{
    size_t n = 0, least = SIZE_MAX;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        n += facts->trainers[i].n_steps - facts->trainers[i].n_warmup;
        least = MAREY__MIN(least, facts->trainers[i].n_steps);
    }
    facts->joint = marey__calloc(n + 1, sizeof *facts->joint);
    if (facts->joint == NULL)
        return false;
    facts->is_synchronous = is_synchronous(facts) && least > first_joint(facts);
    facts->n_joint = facts->is_synchronous ? least - first_joint(facts) : n;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        const struct marey__trainer *const t = &facts->trainers[i];
        for (size_t k = t->n_warmup; k < t->n_steps; k++) {
            const size_t at = marey__facts_joint_step(facts, t, k);
            struct marey__fact_step *const step = &facts->joint[at];
            const uint64_t ns =
                length_of(&t->steps[k]) / (facts->is_synchronous ? facts->n_trainers : 1);
            if (at == facts->n_joint)
                continue;
            step->end_ns += ns;
            facts->joint_ns += ns;
            for (int p = 0; p < MAREY__FACT_PHASES; p++)
                step->phase_ns[p] = MAREY__MAX(step->phase_ns[p], t->steps[k].phase_ns[p]);
        }
    }
    return true;
}

bool marey__facts_summarize_steps(struct marey__facts *facts)
{
    for (size_t i = 0; i < facts->n_trainers; i++) {
        struct marey__trainer *const t = &facts->trainers[i];
        if (t->target != 0 && facts->set.targets[t->target].first_ns != 0)
            t->start_ns = MAREY__MIN(t->start_ns, facts->set.targets[t->target].first_ns);
        find_warmup(t);
        if (t->median_ns == 0 && t->n_steps > 2)
            return false;
        split_steps(t);
        add_trainer(facts, t);
    }
    return facts->n_trainers == 0 || join_steps(facts);
}

double marey__facts_step_ns(const struct marey__facts *facts)
{
    const uint64_t mean_ns = facts->mean_ns, median_ns = facts->median_ns;
    const uint64_t more_ns = MAREY__MAX(mean_ns, median_ns), less_ns = MAREY__MIN(mean_ns, median_ns);
    return (double)(more_ns - less_ns > median_ns / 5 ? mean_ns : median_ns);
}

/* A ratio of sums; its standard error follows from each step's residual. */
void marey__facts_share(const struct marey__facts *facts, enum marey__fact_phase phase,
                        double *share, double *error)
{
    const double all_ns = (double)facts->joint_ns;
    const size_t n = facts->n_joint;
    double squares = 0;
    *share = 0;
    for (size_t i = 0; i < n; i++)
        *share += (double)facts->joint[i].phase_ns[phase] / all_ns;
    for (size_t i = 0; i < n; i++) {
        const double rest =
            (double)facts->joint[i].phase_ns[phase] - *share * (double)length_of(&facts->joint[i]);
        squares += rest * rest;
    }
    *error = n > 1 ? sqrt(squares * (double)n / (double)(n - 1)) / all_ns : *share;
}

struct marey__fact_sum marey__facts_sum(const struct marey__facts *facts, uint64_t kinds)
{
    struct marey__fact_sum sum = {0};
    for (size_t i = 0; i < facts->n_buckets; i++)
        if (marey__sample_bucket_has_kind(&facts->buckets[i], kinds)) {
            const struct marey__fact_sum *const own = &facts->buckets[i].sum;
            sum.n += own->n;
            sum.ns += own->ns;
            sum.gil_ns += own->gil_ns;
            sum.gc_ns += own->gc_ns;
            sum.wants_ns += own->wants_ns;
            sum.off_ns += own->off_ns;
        }
    return sum;
}
