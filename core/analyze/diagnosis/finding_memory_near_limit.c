/*
 * memory-near-limit: the program uses almost all the memory that it may use, on the host or on a GPU.
 *
 * A risk without a gain. On the host, the kernel stops the program at the limit of its cgroup, or where the machine has no
 * memory left. On a GPU, torch's allocator first gives back what it has cached and asks CUDA again, which is slow.
 * Wrong when: the peak is the same in each run, and a little more will never be needed.
 */
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.95; /* of the limit */
static const double severe_share = 0.98;

/* "in step 120, phase forward", with the phase. */
static const char *find_time(const struct marey__trainer *t, uint64_t ns, char text[64],
                             enum marey__fact_phase *phase)
{
    size_t step, at;
    *phase = MAREY__FACT_OTHER;
    MAREY__BISECT(step, 0, t->n_steps, t->steps[step].end_ns <= ns);
    MAREY__BISECT(at, 0, t->n_phases, t->phases[at].end_ns <= ns);
    if (step == t->n_steps)
        return t->n_steps != 0 ? "after the last step" : "in a run without steps";
    if (ns < t->steps[0].begin_ns) {
        *phase = MAREY__FACT_STARTUP;
        return "before the first step";
    }
    const bool has_phase = at < t->n_phases && t->phases[at].begin_ns <= ns;
    *phase = has_phase ? t->phases[at].phase : MAREY__FACT_OTHER;
    snprintf(text, 64, "in step %zu%s%s", step + 1, has_phase ? ", phase " : "",
             has_phase ? marey__fact_phase_names[*phase] : "");
    return text;
}

static bool find_host(const struct marey__facts *facts, struct marey__finding *out)
{
    const struct marey__fact_memory *const m = &facts->system.memory;
    char peak[32], limit[32], time[64];
    if (m->limit <= 0 || m->peak < least_share * m->limit)
        return false;
    marey_text_number(m->peak, MAREY_UNIT_BYTES, peak, sizeof peak);
    marey_text_number(m->limit, MAREY_UNIT_BYTES, limit, sizeof limit);
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Memory near the limit: the program uses %s at its peak, %.0f %% of the %s %s (%s).",
             peak, m->peak / m->limit * 100, m->is_group ? "cgroup's" : "machine's", limit,
             find_time(&facts->trainers[0], m->peak_ns, time, &out->statement.phase));
    snprintf(out->statement.action, sizeof out->statement.action,
             "Use fewer data-loader workers or a smaller prefetch_factor, or map files instead of "
             "reading them%s.",
             m->is_group ? "; or raise the limit of the job or container" : "");
    out->is_severe = m->peak > severe_share * m->limit;
    return true;
}

/* What is cached does not shrink, so the peak is where CUDA refused memory last, else where most was cached. */
static bool find_gpu(const struct marey__trainer *t, struct marey__finding *out)
{
    const struct marey__fact_allocator *peak = NULL, *const all = t->allocators;
    char limit[32], time[64];
    long n_refused = 0;
    for (size_t i = 0; i < t->n_allocators; i++) {
        /* The first mark is of the first step, or of the start before it. */
        const long n =
            i > 0 ? all[i].retries + all[i].ooms - all[i - 1].retries - all[i - 1].ooms : 0;
        n_refused += n;
        if (n > 0 || peak == NULL || (n_refused == 0 && all[i].reserved > peak->reserved))
            peak = &all[i];
    }
    if (peak == NULL ||
        (n_refused <= 0 &&
         (peak->total <= 0 || (double)peak->reserved < least_share * (double)peak->total)))
        return false;
    marey_text_number((double)peak->total, MAREY_UNIT_BYTES, limit, sizeof limit);
    const char *const when = find_time(t, peak->ns, time, &out->statement.phase);
    if (n_refused > 0)
        snprintf(out->statement.claim, sizeof out->statement.claim,
                 "GPU memory at the limit: CUDA refused memory %ld times in steps, the last time "
                 "%s, and "
                 "torch gave back what it had cached (GPU %ld, %s).",
                 n_refused, when, peak->device, limit);
    else
        snprintf(out->statement.claim, sizeof out->statement.claim,
                 "GPU memory near the limit: torch reserves %.0f %% of the %s of GPU %ld (%s).",
                 (double)peak->reserved / (double)peak->total * 100, limit, peak->device, when);
    snprintf(out->statement.action, sizeof out->statement.action,
             "Use a smaller batch, activation checkpointing or bf16; to reduce fragmentation, set "
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
    out->is_severe = n_refused > 0;
    out->trainer = t->info->rank >= 0 ? t : NULL;
    return true;
}

bool marey__find_memory_near_limit(const struct marey__diagnosis *d, struct marey__finding *out)
{
    out->statement.id = "memory-near-limit";
    out->is_risk = true;
    out->confidence = 0.8;
    bool found = find_host(&d->facts, out);
    for (size_t i = 0; i < d->facts.n_trainers && !found; i++)
        found = find_gpu(&d->facts.trainers[i], out);
    return found;
}
