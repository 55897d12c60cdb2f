/*
 * How often something is read, by what a reading takes. Measuring may take a thousandth of a core for each GPU. The ring of
 * power samples needs some 0.03 % of a core where drivers are slow, the thread itself 0.005 %; the others divide the rest
 * between them, and leave some for the last readings, which a short run pays for as much as a long one. What a reading
 * takes is measured at the first one, before the time that counts, so that a run of seconds has the right paces as well.
 */
#include "instrument/energy/internal.h"

enum { SECOND_MS = 1000 };

static const struct {
    uint32_t share; /* millionths of a core */
    uint32_t least_ms, most_ms;
} paces[MAREY__N_PACED] = {
    [MAREY__DUE_POWER] = {400, SECOND_MS / 20, SECOND_MS / 10},
    /* Power gives the shape in between. Where the counter is dear, epochs are what it is kept for. */
    [MAREY__DUE_COUNT] = {150, 4 * SECOND_MS, 30 * SECOND_MS},
    [MAREY__DUE_UTILIZATION] = {200, SECOND_MS, 10 * SECOND_MS},
    [MAREY__DUE_GPM] = {40, SECOND_MS, 8 * SECOND_MS},
    [MAREY__DUE_STATE] = {30, SECOND_MS, 8 * SECOND_MS},
};

void marey__pace_note(struct marey__due *due, uint64_t cost_ns)
{
    /* The first time the driver makes things that it keeps. */
    due->cost_ns = due->n_costs++ < 2 ? cost_ns : (3 * due->cost_ns + cost_ns) / 4;
}

uint64_t marey__pace_period_ns(enum marey__due_kind kind, uint64_t cost_ns)
{
    const uint64_t least_ns = paces[kind].least_ms * UINT64_C(1000000),
                   most_ns = paces[kind].most_ms * UINT64_C(1000000),
                   period_ns = cost_ns * 1000000 / paces[kind].share;
    return MAREY__MIN(MAREY__MAX(period_ns, least_ns), most_ns);
}

/* The driver's buffer of utilization must not run over: a quarter is in hand. */
static uint64_t longest_ns(const struct marey__energy_session *s)
{
    uint64_t most_ns = UINT64_MAX;
    for (size_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].has_samples && s->gpus[i].kept_us > 0)
            most_ns = MAREY__MIN(most_ns, s->gpus[i].kept_us * 750);
    return MAREY__MAX(most_ns, MAREY__SECOND_NS);
}

uint64_t marey__pace_plan(const struct marey__energy_session *s, enum marey__due_kind kind)
{
    if (kind == MAREY__DUE_POWER && s->power_hz != 0)
        return MAREY__SECOND_NS / s->power_hz;
    const uint64_t period_ns = marey__pace_period_ns(kind, s->due[kind].cost_ns);
    return kind == MAREY__DUE_UTILIZATION ? MAREY__MIN(period_ns, longest_ns(s)) : period_ns;
}

bool marey__pace_is_dear(const struct marey__due *due)
{
    return due->cost_ns > 1000000;
}

bool marey__pace_can_afford(const struct marey__energy_session *s, enum marey__due_kind kind,
                            uint64_t now_ns)
{
    const struct marey__due *const due = &s->due[kind];
    if (!marey__pace_is_dear(due))
        return true;
    const uint64_t spent_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns,
                   allowed_ns = (now_ns - s->began_ns) / 1000 * s->n_gpus;
    return spent_ns + due->cost_ns * s->n_gpus <= allowed_ns / 100 * 85;
}
