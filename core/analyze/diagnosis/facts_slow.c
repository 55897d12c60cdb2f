/*
 * Occasional work of steps: checkpoints, evaluation, logging, garbage collection; and outlier
 * steps, which take more than 1.5 times the median, or 3 or 6 times on a noisy machine with many
 * such steps. Work in more than a quarter of the steps is not occasional, except checkpoints and
 * evaluation. Lengths exclude loading data, which has its own finding; outliers exclude steps that
 * GPU tracing slows down.
 *
 *   length   ▁▁▁▁▁█▁▁▁▁▁█▁▁▁▁▁█
 *                 '-----'         period: most steps at this distance do it
 *
 * In a process that uses a GPU, a slow step may be hidden: the GPU was busy meanwhile, and the next
 * steps are shorter. The time that they make up is subtracted. If the mean is much longer than the
 * median, the CPU runs ahead and waits in the slow steps, which are not outliers then.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { FEWEST_STEPS = 8, LONGEST_PERIOD = 2000 };

struct search {
    struct marey__facts *facts;
    struct marey__trainer *t;
    uint64_t *ns, *at;            /* of steps that do it: the time, and the step's index */
    uint64_t *joint_ns;           /* by occasional work, and by joint step */
    uint64_t typical_ns, more_ns; /* the median; an outlier exceeds it by `more_ns` */
};

static uint64_t length_of(const struct marey__fact_step *step)
{
    const uint64_t whole_ns = step->end_ns - step->begin_ns;
    return whole_ns - MAREY__MIN(step->phase_ns[MAREY__FACT_DATA], whole_ns);
}

/* ---- garbage collections ---- */

static bool is_in_data(const struct marey__trainer *t, uint64_t ns)
{
    size_t p;
    MAREY__BISECT(p, 0, t->n_phases, t->phases[p].end_ns <= ns);
    return p < t->n_phases && t->phases[p].begin_ns <= ns && t->phases[p].phase == MAREY__FACT_DATA;
}

static void add_pauses(struct marey__fact_pauses *sum, const struct marey__trainer *t)
{
    for (size_t i = 0; i < t->n_pauses; i++) {
        const struct marey__fact_pause *const pause = &t->pauses[i];
        const uint64_t ns = pause->end_ns - pause->begin_ns;
        size_t at;
        MAREY__BISECT(at, 0, t->n_steps, t->steps[at].end_ns < pause->end_ns);
        if (at < t->n_warmup || at == t->n_steps || t->steps[at].begin_ns > pause->begin_ns ||
            is_in_data(t, pause->begin_ns))
            continue;
        t->steps[at].gc_ns += ns;
        sum->n++;
        sum->ns += ns;
        sum->longest_ns = MAREY__MAX(sum->longest_ns, ns);
        sum->by_generation[pause->generation]++;
    }
}

/* ---- what only some steps do ---- */

static uint64_t made_up_for(const struct search *s, size_t after)
{
    const struct marey__trainer *const t = s->t;
    uint64_t ns = 0;
    for (size_t i = after + 1; i < t->n_steps; i++) {
        const uint64_t length_ns = length_of(&t->steps[i]);
        if (length_ns > s->typical_ns + s->typical_ns / 2)
            break;
        if (length_ns < s->typical_ns - s->typical_ns / 5)
            ns += s->typical_ns - length_ns;
    }
    return ns;
}

uint64_t marey__facts_find_period(const uint64_t *at, size_t n, size_t n_steps)
{
    uint64_t best = 0, most = 0;
    uint32_t *const counts MAREY__FREED = marey__calloc(LONGEST_PERIOD, sizeof *counts);
    for (size_t p = 2; counts != NULL && n > 2 && p <= n_steps / 3 && p <= LONGEST_PERIOD; p++) {
        memset(counts, 0, p * sizeof *counts);
        for (size_t i = 0; i < n; i++) {
            const uint64_t hits = ++counts[at[i] % p];
            if (hits > most && 3 * hits >= 2 * (n_steps / p)) {
                most = hits;
                best = p;
            }
        }
    }
    return most > 2 && 4 * most >= 3 * n ? best : 0; /* chance puts half of a few into one class */
}

static uint64_t occasional_ns(const struct search *s, enum marey__occasional what,
                              const struct marey__fact_step *step)
{
    const uint64_t length_ns = length_of(step);
    switch (what) {
    case MAREY__OCCASIONAL_CHECKPOINT:
        return step->phase_ns[MAREY__FACT_CHECKPOINT];
    case MAREY__OCCASIONAL_EVALUATION:
        return step->phase_ns[MAREY__FACT_EVALUATION];
    case MAREY__OCCASIONAL_LOGGING:
        return step->phase_ns[MAREY__FACT_LOGGING];
    case MAREY__OCCASIONAL_GC:
        return step->gc_ns > s->typical_ns / 4 ? step->gc_ns : 0;
    default:
        return length_ns > s->typical_ns + s->more_ns && !step->is_in_window
                   ? length_ns - s->typical_ns
                   : 0;
    }
}

/* Fills the lists. Returns false if too many steps do it. */
static bool list_steps(const struct search *s, enum marey__occasional what, size_t *out)
{
    const struct marey__trainer *const t = s->t;
    const bool may_be_often =
        what == MAREY__OCCASIONAL_CHECKPOINT || what == MAREY__OCCASIONAL_EVALUATION;
    const size_t n_steps = t->n_steps - t->n_warmup;
    size_t n = 0;
    for (size_t i = t->n_warmup; i < t->n_steps; i++)
        if ((s->ns[n] = occasional_ns(s, what, &t->steps[i])) != 0)
            s->at[n++] = i;
    *out = n;
    /* If most steps evaluate, evaluation is not rare. */
    return n_steps >= FEWEST_STEPS && (n <= n_steps / 4 || may_be_often) &&
           (n <= n_steps / 2 || what != MAREY__OCCASIONAL_EVALUATION);
}

static void find_occasional(const struct search *s, enum marey__occasional what)
{
    struct marey__trainer *const t = s->t;
    struct marey__fact_occasional *const sum = &s->facts->occasional[what];
    const size_t n_steps = t->n_steps - t->n_warmup;
    size_t n;
    if (!list_steps(s, what, &n))
        return;
    if (sum->n == 0)
        sum->period = n == n_steps ? 1 : marey__facts_find_period(s->at, n, n_steps);
    for (size_t i = 0; i < n; i++) {
        const uint64_t hidden_ns = s->facts->has_device ? made_up_for(s, s->at[i]) : 0,
                       ns = s->ns[i] - MAREY__MIN(hidden_ns, s->ns[i]);
        t->steps[s->at[i]].is_slow |= what == MAREY__OCCASIONAL_OUTLIER;
        const size_t joint = marey__facts_joint_step(s->facts, t, s->at[i]);
        uint64_t *const most =
            &s->joint_ns[(size_t)what * (s->facts->n_joint + 1) + joint]; /* the last one: nowhere */
        *most = MAREY__MAX(*most, ns);
    }
    sum->n += n;
}

/* The rank that takes the longest in a step decides when it ends. */
static void add_joint(struct marey__facts *facts, const uint64_t *joint_ns)
{
    for (int what = 0; what < MAREY__OCCASIONAL_KINDS; what++) {
        struct marey__fact_occasional *const sum = &facts->occasional[what];
        sum->n = 0;
        for (size_t i = 0; i < facts->n_joint; i++) {
            const uint64_t ns = joint_ns[(size_t)what * (facts->n_joint + 1) + i];
            sum->n += ns != 0;
            sum->ns += ns;
            sum->squares += (double)ns * (double)ns;
        }
    }
}

static void find_in(struct search *s)
{
    size_t n = 0;
    double all_ns = 0;
    for (size_t i = s->t->n_warmup; i < s->t->n_steps; i++)
        all_ns += (double)(s->ns[n++] = length_of(&s->t->steps[i]));
    s->typical_ns = marey__fact_median(s->ns, n);
    s->facts->typical_ns = MAREY__MAX(s->facts->typical_ns, s->typical_ns);
    add_pauses(&s->facts->pauses, s->t);
    for (int what = 0; what < MAREY__OCCASIONAL_OUTLIER; what++)
        find_occasional(s, (enum marey__occasional)what);
    /* Where long outliers have a period, shorter ones without are chance. */
    static const double factors[] = {0.5, 2, 5};
    double factor = 0;
    for (size_t i = 0, n_outliers; i < MAREY__COUNT_OF(factors); i++) {
        s->more_ns = (uint64_t)(factors[i] * (double)s->typical_ns);
        if (!list_steps(s, MAREY__OCCASIONAL_OUTLIER, &n_outliers))
            continue;
        const bool is_regular = marey__facts_find_period(s->at, n_outliers, n) != 0;
        factor = factor <= 0 || is_regular ? factors[i] : factor;
        if (is_regular)
            break;
    }
    s->more_ns = (uint64_t)(factor * (double)s->typical_ns);
    const bool runs_ahead = s->facts->has_device && all_ns > 1.2 * (double)n * (double)s->typical_ns;
    if (factor > 0 && !runs_ahead)
        find_occasional(s, MAREY__OCCASIONAL_OUTLIER);
}

bool marey__facts_find_slow(struct marey__facts *facts)
{
    uint64_t *const joint_ns MAREY__FREED =
        marey__calloc(MAREY__OCCASIONAL_KINDS * (facts->n_joint + 1), sizeof *joint_ns);
    if (joint_ns == NULL)
        return false;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        struct marey__trainer *const t = &facts->trainers[i];
        const size_t n = t->n_steps + 1;
        uint64_t *const ns MAREY__FREED = marey__calloc(n, sizeof *ns),
                           *const at MAREY__FREED = marey__calloc(n, sizeof *at),
                           *const room MAREY__FREED = marey__calloc(n, sizeof *room);
        if (ns == NULL || at == NULL || room == NULL)
            return false;
        find_in(&(struct search){facts, t, ns, at, joint_ns, 0, 0});
    }
    add_joint(facts, joint_ns);
    return true;
}
