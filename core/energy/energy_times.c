/*
 * The timetable: what is read when. The ring of power samples before it runs over, or power itself often; everything else as
 * seldom as what it takes makes sensible; the counters of energy above all where epochs begin and end.
 */
#include "energy/energy_session.h"
#include <kymo/iteration.h>

/* Between readings of the energy counters: the least; and the most where epochs are told, whose edges come first. */
#define COUNT_NS (4 * KYMO__SECOND_NS)
#define COUNT_BETWEEN_EDGES_NS (30 * KYMO__SECOND_NS)

/* `early_ns`: what would be due so soon is taken along, because to wake up takes as long as to read. */
static bool is_due(struct kymo__due *due, uint64_t now, uint64_t early_ns)
{
    if (now + early_ns < due->next_ns)
        return false;
    due->next_ns += due->period_ns;
    if (due->next_ns <= now) /* it overslept: what was missed stays missed */
        due->next_ns = now + due->period_ns - (now - due->next_ns) % due->period_ns;
    return true;
}

/* ---- readings, and what they take ---- */

static void read_power(struct kymo__energy_gpu *gpu)
{
    if (!gpu->ring.is_used)
        kymo__energy_read_power(gpu);
}

void kymo__energy_read_power(struct kymo__energy_gpu *gpu)
{
    kymo__energy_gpu_power(gpu, kymo__energy_now_ns());
}

static void read_count(struct kymo__energy_gpu *gpu)
{
    kymo__energy_gpu_count(gpu, kymo__energy_now_ns());
}

static kymo__energy_reader *const readers[KYMO__N_PACED] = {
    [KYMO__DUE_POWER] = read_power,
    [KYMO__DUE_COUNT] = read_count,
    [KYMO__DUE_UTILIZATION] = kymo__energy_gpu_utilization,
    [KYMO__DUE_GPM] = kymo__energy_gpu_gpm,
    [KYMO__DUE_STATE] = kymo__energy_gpu_state,
};

void kymo__energy_read_all(struct kymo__energy_session *s, kymo__energy_reader *read)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        pthread_mutex_lock(&s->calls);
        read(&s->gpus[i]);
        pthread_mutex_unlock(&s->calls);
    }
}

void kymo__energy_read_paced(struct kymo__energy_session *s, enum kymo__due_kind kind, uint64_t now)
{
    struct kymo__due *const due = &s->due[kind];
    const uint64_t cpu_ns = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    due->read_ns = now;
    if (s->n_gpus == 0)
        return;
    kymo__energy_read_all(s, readers[kind]);
    kymo__pace_note(due, (kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) / s->n_gpus);
    const uint64_t period_ns = kymo__pace_plan(s, kind);
    if (period_ns != due->period_ns)
        due->next_ns = now + period_ns;
    due->period_ns = period_ns;
}

void kymo__energy_read_first(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    for (enum kymo__due_kind kind = 0; kind < KYMO__N_PACED; kind++) {
        const uint64_t cpu_ns = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
        readers[kind](gpu);
        kymo__pace_note(&s->due[kind], kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    }
    kymo__energy_ring_open(gpu, s->settings.energy.hz);
}

void kymo__energy_read_zones(struct kymo__energy_session *s)
{
    for (size_t i = 0; i < s->n_zones; i++)
        kymo__zone_read(&s->zones[i], kymo__energy_now_ns());
}

static void read_rings(struct kymo__energy_session *s, uint64_t now)
{
    kymo__energy_read_all(s, kymo__energy_ring_read);
    s->due[KYMO__DUE_RING].next_ns = now + s->due[KYMO__DUE_RING].period_ns;
}

/* The integral of power, up to here, is what the counter is compared with. */
static void read_counts(struct kymo__energy_session *s, uint64_t now)
{
    read_rings(s, now);
    kymo__energy_read_paced(s, KYMO__DUE_COUNT, now);
}

/* ---- when ---- */

/*
 * An epoch begins or ends: what is read there divides the energy of two epochs exactly. Where the counter is so dear that
 * all edges would be too many, those that are left out are found by power, scaled to the counter on both sides.
 */
static void read_edge(struct kymo__energy_session *s, uint64_t now, uint32_t n)
{
    if (n == s->n_edges)
        return;
    s->n_edges = n;
    s->has_edges = true; /* a reading in between would forbid the one at the next edge */
    if (now < s->edge_ns + KYMO__SECOND_NS / 20)
        return;
    s->edge_ns = now;
    if (now >= s->due[KYMO__DUE_COUNT].read_ns + COUNT_NS &&
        kymo__pace_can_afford(s, KYMO__DUE_COUNT, now))
        read_counts(s, now);
    kymo__energy_read_zones(s);
    kymo__energy_read_all(s, read_power); /* a ring has samples on both sides */
}

static uint64_t next_count_ns(const struct kymo__energy_session *s)
{
    const struct kymo__due *const due = &s->due[KYMO__DUE_COUNT];
    return due->read_ns + (s->has_edges ? COUNT_BETWEEN_EDGES_NS : due->period_ns);
}

static void look_at_rings(struct kymo__energy_session *s)
{
    uint64_t period_ns = UINT64_MAX;
    s->n_rings = 0;
    for (size_t i = 0; i < s->n_gpus; i++) {
        if (!s->gpus[i].ring.is_used || s->gpus[i].is_lost)
            continue;
        s->n_rings++;
        period_ns = KYMO__MIN(period_ns, kymo__energy_ring_period_ns(&s->gpus[i].ring));
    }
    struct kymo__due *const due = &s->due[KYMO__DUE_RING];
    if (s->n_rings > 0 && period_ns != due->period_ns)
        *due = (struct kymo__due){kymo__energy_now_ns() + period_ns, period_ns, 0, 0, 0};
}

/* Those who came into the line, and rings that were empty at first. */
static void look_around(struct kymo__energy_session *s)
{
    pthread_mutex_lock(&s->calls);
    kymo__energy_sources_add(s);
    for (size_t i = 0; i < s->n_gpus; i++)
        kymo__energy_ring_open(&s->gpus[i], s->settings.energy.hz);
    pthread_mutex_unlock(&s->calls);
}

/* What is slow is spread over the second, so that no reading waits for all the others. */
void kymo__energy_times_init(struct kymo__energy_session *s)
{
    const uint64_t now = kymo__energy_now_ns(), quarter = KYMO__SECOND_NS / 4;
    struct kymo_progress_counts told;
    kymo_iteration_counts(&told);
    s->has_edges = told.in_epoch || told.epochs > 0;
    for (enum kymo__due_kind kind = 0; kind < KYMO__N_PACED; kind++) {
        s->due[kind].period_ns = kymo__pace_plan(s, kind);
        s->due[kind].next_ns = now + s->due[kind].period_ns;
    }
    s->due[KYMO__DUE_UTILIZATION].next_ns -= 3 * quarter;
    s->due[KYMO__DUE_GPM].next_ns -= 3 * quarter;
    s->due[KYMO__DUE_STATE].next_ns -= 2 * quarter;
    s->due[KYMO__DUE_COUNT].read_ns = now;
    s->due[KYMO__DUE_CPUS] =
        (struct kymo__due){.next_ns = now + 4 * quarter, .period_ns = 4 * quarter};
    s->due[KYMO__DUE_LINE] =
        (struct kymo__due){.next_ns = now + 3 * quarter, .period_ns = 16 * quarter};
    look_at_rings(s);
    s->began_ns = now;
    s->cpu_ns = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t next_ns(const struct kymo__energy_session *s)
{
    uint64_t next = s->due[KYMO__DUE_LINE].next_ns;
    if (s->n_zones > 0)
        next = KYMO__MIN(next, s->due[KYMO__DUE_CPUS].next_ns);
    if (s->n_gpus == 0)
        return next;
    next = KYMO__MIN(next, next_count_ns(s));
    if (s->n_rings > 0)
        next = KYMO__MIN(next, s->due[KYMO__DUE_RING].next_ns);
    if (s->n_rings < s->n_gpus)
        next = KYMO__MIN(next, s->due[KYMO__DUE_POWER].next_ns);
    for (enum kymo__due_kind kind = KYMO__DUE_UTILIZATION; kind < KYMO__N_PACED; kind++)
        next = KYMO__MIN(next, s->due[kind].next_ns);
    return next;
}

uint64_t kymo__energy_times_read(struct kymo__energy_session *s, uint64_t now, uint32_t n_edges)
{
    read_edge(s, now, n_edges);
    uint64_t early_ns = 0;
    if (s->n_rings > 0 && now >= s->due[KYMO__DUE_RING].next_ns) {
        read_rings(s, now);
        early_ns = s->due[KYMO__DUE_RING].period_ns / 2;
    }
    if (s->n_rings < KYMO__MAX(s->n_gpus, (size_t)1) && is_due(&s->due[KYMO__DUE_POWER], now, 0))
        kymo__energy_read_paced(s, KYMO__DUE_POWER, now);
    if (is_due(&s->due[KYMO__DUE_CPUS], now, 0))
        kymo__energy_read_zones(s);
    for (enum kymo__due_kind kind = KYMO__DUE_UTILIZATION; kind < KYMO__N_PACED; kind++)
        if (is_due(&s->due[kind], now, KYMO__MIN(early_ns, s->due[kind].period_ns / 4)))
            kymo__energy_read_paced(s, kind, now);
    if (now >= next_count_ns(s))
        read_counts(s, now);
    if (is_due(&s->due[KYMO__DUE_LINE], now, early_ns))
        look_around(s);
    look_at_rings(s);
    kymo__energy_write(s, false);
    return next_ns(s);
}
