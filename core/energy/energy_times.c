/*
 * The timetable: what is read when. Power often, for its shape; what is slow or changes slowly once a second; the counters of
 * energy seldom, as a reading of those takes the driver milliseconds.
 */
#include "energy/energy_session.h"
#include <kymo/iteration.h>

/* The driver keeps utilization for some 14 s, so that reading it every 8 loses nothing. */
enum { DEFAULT_HZ = 20, LEAST_HZ = 10, MOST_SECONDS = 8 };

/* Between readings of the energy counters: the least; and the most where epochs are told, whose edges come first. */
#define COUNT_NS (4 * KYMO__SECOND_NS)
#define COUNT_BETWEEN_EDGES_NS (30 * KYMO__SECOND_NS)

static bool is_due(struct kymo__due *due, uint64_t now)
{
    if (now < due->next_ns)
        return false;
    due->next_ns += due->period_ns;
    if (due->next_ns <= now) /* it overslept: what was missed stays missed */
        due->next_ns = now + due->period_ns - (now - due->next_ns) % due->period_ns;
    return true;
}

void kymo__energy_read_all(struct kymo__energy_session *s, kymo__energy_reader *read)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        pthread_mutex_lock(&s->calls);
        read(&s->gpus[i]);
        pthread_mutex_unlock(&s->calls);
    }
}

void kymo__energy_read_power(struct kymo__energy_gpu *gpu)
{
    kymo__energy_gpu_power(gpu, kymo__energy_now_ns());
}

void kymo__energy_read_count(struct kymo__energy_gpu *gpu)
{
    kymo__energy_gpu_count(gpu, kymo__energy_now_ns());
}

/* A reading takes the driver milliseconds, so there are never two within COUNT_NS but at the end. */
static void read_counts(struct kymo__energy_session *s, uint64_t now, uint64_t period_ns)
{
    if (now < s->counted_ns + period_ns)
        return;
    s->counted_ns = now;
    kymo__energy_read_all(s, kymo__energy_read_count);
}

void kymo__energy_read_zones(struct kymo__energy_session *s)
{
    for (size_t i = 0; i < s->n_zones; i++)
        kymo__zone_read(&s->zones[i], kymo__energy_now_ns());
}

/* An epoch begins or ends: what is read there divides the energy of two epochs exactly. */
static void read_edge(struct kymo__energy_session *s, uint64_t now, uint32_t n)
{
    if (n == s->n_edges)
        return;
    s->n_edges = n;
    /* A reading in between would forbid the one at the next edge. */
    s->count_period_ns = COUNT_BETWEEN_EDGES_NS;
    if (now < s->edge_ns + KYMO__SECOND_NS / DEFAULT_HZ)
        return;
    s->edge_ns = now;
    read_counts(s, now, COUNT_NS);
    kymo__energy_read_zones(s);
    kymo__energy_read_all(s, kymo__energy_read_power);
}

/*
 * A thousandth of a core for each GPU is what measuring may take. Where the driver is slow, and the user has not asked for a
 * rate, there are fewer readings, and energy_sources tells how many there were.
 */
static void keep_within_budget(struct kymo__energy_session *s)
{
    const uint64_t now = kymo__energy_now_ns(), cpu = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t allowed = (now - s->budget_ns) / 1000 * KYMO__MAX(s->n_gpus, (size_t)1);
    const bool is_over = cpu - s->budget_cpu_ns > allowed;
    s->budget_ns = now;
    s->budget_cpu_ns = cpu;
    if (!is_over || s->settings.energy.hz != 0)
        return;
    if (s->power.period_ns < KYMO__SECOND_NS / LEAST_HZ) {
        s->power.period_ns = KYMO__SECOND_NS / LEAST_HZ;
    } else if (s->busy.period_ns < MOST_SECONDS * KYMO__SECOND_NS) {
        s->busy.period_ns *= 2;
        s->state_due.period_ns *= 2;
    } else if (s->count_period_ns < MOST_SECONDS * KYMO__SECOND_NS) {
        s->count_period_ns = MOST_SECONDS * KYMO__SECOND_NS;
    }
}

/* What is slow is spread over the second, so that no reading waits for all the others. */
void kymo__energy_times_init(struct kymo__energy_session *s)
{
    const uint32_t hz = s->settings.energy.hz != 0 ? s->settings.energy.hz : DEFAULT_HZ;
    const uint64_t now = kymo__energy_now_ns();
    s->power = (struct kymo__due){now + KYMO__SECOND_NS / hz, KYMO__SECOND_NS / hz};
    s->cpus = (struct kymo__due){now + KYMO__SECOND_NS, KYMO__SECOND_NS};
    s->busy = (struct kymo__due){now + KYMO__SECOND_NS / 4, KYMO__SECOND_NS};
    s->state_due = (struct kymo__due){now + KYMO__SECOND_NS / 2, KYMO__SECOND_NS};
    s->line = (struct kymo__due){now + KYMO__SECOND_NS / 4 * 3, KYMO__SECOND_NS};
    s->budget = (struct kymo__due){now + 4 * KYMO__SECOND_NS, 4 * KYMO__SECOND_NS};
    struct kymo_progress_counts told;
    kymo_iteration_counts(&told);
    s->counted_ns = now;
    s->count_period_ns = told.in_epoch || told.epochs > 0 ? COUNT_BETWEEN_EDGES_NS : COUNT_NS;
    s->budget_ns = now;
    s->cpu_ns = s->budget_cpu_ns = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t next_ns(const struct kymo__energy_session *s)
{
    const struct kymo__due *const all[] = {&s->power,     &s->cpus, &s->busy,
                                           &s->state_due, &s->line, &s->budget};
    uint64_t next = KYMO__MIN(s->line.next_ns, s->counted_ns + s->count_period_ns);
    for (size_t i = 0; i < KYMO__COUNT_OF(all); i++)
        if (s->n_gpus > 0 || all[i] == &s->line || (all[i] == &s->cpus && s->n_zones > 0))
            next = KYMO__MIN(next, all[i]->next_ns);
    return next;
}

uint64_t kymo__energy_times_read(struct kymo__energy_session *s, uint64_t now, uint32_t n_edges)
{
    read_edge(s, now, n_edges);
    if (is_due(&s->power, now))
        kymo__energy_read_all(s, kymo__energy_read_power);
    if (is_due(&s->cpus, now))
        kymo__energy_read_zones(s);
    if (is_due(&s->busy, now))
        kymo__energy_read_all(s, kymo__energy_gpu_busy);
    if (is_due(&s->state_due, now))
        kymo__energy_read_all(s, kymo__energy_gpu_state);
    read_counts(s, now, s->count_period_ns);
    if (is_due(&s->budget, now))
        keep_within_budget(s);
    if (is_due(&s->line, now)) {
        pthread_mutex_lock(&s->calls);
        kymo__energy_sources_add(s);
        pthread_mutex_unlock(&s->calls);
    }
    return next_ns(s);
}
