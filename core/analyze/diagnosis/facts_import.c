/*
 * Phases of torch.profiler traces. They lack marey's phases but have torch's ranges: the loader,
 * the optimizer, and each autograd function. Gaps of at most 0.2 ms between autograd functions
 * count as backward.
 */
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { MAX_GAP_NS = 200000, NO_PHASE = 0xff };

struct reading {
    struct marey__trainer *trainer;
    uint8_t *phase_of; /* by site; NO_PHASE */
};

static uint8_t phase_of(const struct marey_site_info *site)
{
    static const struct {
        const char *prefix;
        enum marey__fact_phase phase;
    } known[] = {{"enumerate(DataLoader)", MAREY__FACT_DATA},
                 {"autograd::engine::evaluate_function", MAREY__FACT_BACKWARD},
                 {"Optimizer.step#", MAREY__FACT_OPTIMIZER}};
    for (size_t i = 0; i < MAREY__COUNT_OF(known); i++)
        if (marey__starts_with(site->name, site->name_len, known[i].prefix))
            return (uint8_t)known[i].phase;
    return NO_PHASE;
}

static bool take_range(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *range,
                       uint64_t end_ns, enum marey__ending how)
{
    struct reading *const r = ctx;
    struct marey__trainer *const t = r->trainer;
    const uint8_t phase = r->phase_of[range->site];
    (void)how;
    return phase == NO_PHASE || lane->info->kind != MAREY_LANE_THREAD || end_ns <= range->start_ns ||
           MAREY__PUSH(t->phases, t->n_phases, t->phases_cap,
                       (struct marey__fact_phase_span){range->start_ns, end_ns,
                                                       (enum marey__fact_phase)phase});
}

static bool is_before(const void *a, const void *b)
{
    return ((const struct marey__fact_phase_span *)a)->begin_ns <
           ((const struct marey__fact_phase_span *)b)->begin_ns;
}

/* Sorts phases and removes overlaps: the earlier one keeps the time. */
static bool arrange(struct marey__trainer *t)
{
    size_t n = 0;
    if (!marey__sort_runs(t->phases, t->n_phases, sizeof *t->phases, is_before))
        return false;
    for (size_t i = 0; i < t->n_phases; i++) {
        struct marey__fact_phase_span next = t->phases[i], *const last =
                                                               n > 0 ? &t->phases[n - 1] : NULL;
        if (last != NULL)
            next.begin_ns = MAREY__MAX(next.begin_ns, last->end_ns);
        if (next.begin_ns >= next.end_ns)
            continue;
        if (last != NULL && last->phase == MAREY__FACT_BACKWARD && next.phase == last->phase &&
            next.begin_ns - last->end_ns <= MAX_GAP_NS)
            last->end_ns = next.end_ns;
        else
            t->phases[n++] = next;
    }
    t->n_phases = n;
    return true;
}

marey_status marey__facts_read_import(struct marey__trainer *trainer)
{
    static const struct marey__lane_visitor visitor = {.end = take_range};
    const uint32_t n = trainer->info->n_sites;
    struct reading r = {.trainer = trainer, .phase_of = marey__calloc((size_t)n + 1, 1)};
    struct marey__range_walk walk = {
        .recording = trainer->recording, .process = trainer->info, .visitor = &visitor, .ctx = &r};
    MAREY__TRY_MEMORY(r.phase_of != NULL);
    for (uint32_t i = 0; i <= n; i++)
        r.phase_of[i] = phase_of(marey_recording_site(trainer->recording, trainer->info->index, i));
    const marey_status status = marey__range_walk(&walk);
    marey__free(r.phase_of);
    if (status != MAREY_OK)
        return status;
    MAREY__TRY_MEMORY(arrange(trainer));
    return MAREY_OK;
}
