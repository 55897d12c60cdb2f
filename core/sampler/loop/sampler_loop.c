/*
 * When: rounds come at random times, at the requested mean rate. Equal intervals would see a periodic program always at
 * the same point. A late round is still made; when the sampler is far behind, rounds are skipped and counted as missed.
 * Each round represents the mean interval, times the rounds due since the previous one: with random times this has less
 * variance than the elapsed time.
 *
 * How much: the share of a process's time during which threads are stopped stays below a budget. The cost of a stop is
 * estimated from recent ones; rounds that may stop are drawn at random, independent of what the process does.
 */
#include <errno.h>
#include <math.h>

#include "sampler/loop/internal.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t ms_ns = 1000000;
static const double unpaused = MAREY__PAUSE_ONE_IN / (MAREY__PAUSE_ONE_IN - 1.0);
#define TIME_SHARE 0.3 /* maximum share of our time for exact rounds */
enum {
    SLICE_MS = 50,      /* how long a stop request may go unnoticed */
    PUBLISH_MS = 100,   /* between two updates of the published counts */
    AHEAD_NS = 1000000, /* stops may be this far ahead of the budget */
    MOST_WORKERS = 1,   /* looks of a round, on average; without options that ask for more */
    MOST_OTHERS = 8,
    BEHIND_MS = 1, /* and four intervals: rounds further behind are missed */
};

static uint64_t gap_ns(struct marey_sampler *sampler)
{
    const double mean = 1e9 / sampler->rate_hz;
    const double gap = sampler->has_fixed_gaps
                           ? mean
                           : -log(marey__sampler_context_random(&sampler->context)) * mean;
    return (uint64_t)fmin(gap, 3600e9);
}

static void sleep_until(uint64_t due_ns)
{
    const struct timespec due = {
        .tv_sec = (time_t)(due_ns / second_ns),
        .tv_nsec = (long)(due_ns % second_ns),
    };
    /* After a signal, check everything just as well. */
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/* ---- the budget ---- */

/* The share of this process's rounds that may stop threads; 0 while the budget is used up. */
static double share_of_budget(const struct marey_sampler *sampler,
                              const struct marey__target *target, uint64_t now_ns)
{
    const double age_ns = (double)(now_ns - target->opened_ns);
    if (sampler->max_slowdown >= 1)
        return 1;
    if ((double)target->counts.stop_ns > sampler->max_slowdown * age_ns + AHEAD_NS)
        return 0;
    const double wanted = target->mean_stop_ns * 1e-9 * sampler->rate_hz;
    return wanted <= sampler->max_slowdown ? 1 : sampler->max_slowdown / wanted;
}

/* The same for our own time: if there are more threads than CPU cores, exact rounds wait, and others would be missed. */
static double share_of_time(const struct marey_sampler *sampler, const struct marey__target *target)
{
    const double wanted = target->mean_look_ns * 1e-9 * sampler->rate_hz * sampler->n_looked;
    return sampler->is_strict || wanted <= TIME_SHARE ? 1 : TIME_SHARE / wanted;
}

static enum marey__round choose_look(struct marey_sampler *sampler, struct marey__target *target,
                                     uint64_t now_ns)
{
    if (target->mean_stop_ns < 0) {
        target->mean_stop_ns = sampler->mean_stop_ns;
        target->mean_look_ns = sampler->mean_look_ns;
    }
    const double share =
        fmin(share_of_budget(sampler, target, now_ns), share_of_time(sampler, target));
    const double drawn = marey__sampler_context_random(&sampler->context);
    if (sampler->is_exact || target->is_program)
        return drawn <= share ? MAREY__LOOK_EXACT : MAREY__LOOK_SNAPSHOT;
    return drawn <= fmin(sampler->audit_share, share) ? MAREY__LOOK_AUDIT : MAREY__LOOK_SNAPSHOT;
}

/* Updates the cost of a round for this process and on average, the initial estimate for new processes. */
static void count_stops(struct marey_sampler *sampler, struct marey__target *target, uint64_t stop_ns)
{
    enum { MEMORY = 32, SHORT_MEMORY = 8 };
    const double look_ns = (double)(marey__clock_ns(CLOCK_MONOTONIC) - target->at_ns);
    target->mean_look_ns += (look_ns - target->mean_look_ns) / SHORT_MEMORY;
    sampler->mean_look_ns += (look_ns - sampler->mean_look_ns) / SHORT_MEMORY;
    target->mean_stop_ns += ((double)stop_ns - target->mean_stop_ns) / MEMORY;
    sampler->mean_stop_ns += ((double)stop_ns - sampler->mean_stop_ns) / MEMORY;
}

/* ---- rounds ---- */

static marey_status put_round(struct marey_sampler *sampler, struct marey__target *target)
{
    const struct marey_samples_round round = {
        .process = target->number,
        .at_ns = target->at_ns,
        .weight_ns = target->weight_ns,
        .seen = target->seen,
        .n_seen = target->n_seen,
    };
    target->weight_ns = 0;
    if (sampler->on_round != NULL)
        sampler->on_round(sampler->on_round_ctx, sampler->samples, &round);
    return sampler->log != NULL ? marey__samples_log_round(sampler->log, &round) : MAREY_OK;
}

/*
 * A cap on what all processes cost together: workers of data loaders are drawn, so that all of them cost as much as one,
 * and so are other processes where there are many. A round that is left out counts for the next one.
 */
static bool is_drawn(struct marey_sampler *sampler, const struct marey__family_member *member)
{
    const double most = member->worker >= 0 ? MOST_WORKERS : MOST_OTHERS,
                 n = member->worker >= 0 ? sampler->n_workers
                                         : sampler->n_looked - sampler->n_workers;
    return !sampler->family.is_calm || n <= most ||
           marey__sampler_context_random(&sampler->context) * n <= most;
}

static marey_status look_at_member(struct marey_sampler *sampler, size_t number, uint64_t n_due,
                                   uint64_t now_ns)
{
    struct marey__family_member *member = &sampler->family.members[number];
    struct marey__target *target = member->target;
    target->counts.asked += n_due;
    target->counts.missed += n_due - 1;
    /* A round also represents its share of pauses. */
    const double each_ns = 1e9 / sampler->rate_hz * (sampler->has_pauses ? unpaused : 1);
    target->weight_ns += (uint64_t)((double)n_due * each_ns);
    if (!is_drawn(sampler, member)) {
        target->counts.slowed++;
        return MAREY_OK;
    }
    const enum marey__round how = choose_look(sampler, target, now_ns);
    if (how == MAREY__LOOK_SNAPSHOT && (sampler->is_strict || target->is_program)) {
        target->counts.slowed++;
        return MAREY_OK;
    }
    const uint64_t stopped_ns = target->counts.stop_ns;
    if (!marey__target_look(&sampler->context, target, how)) {
        marey__family_recheck(&sampler->family, member);
        return MAREY_OK;
    }
    if (how != MAREY__LOOK_SNAPSHOT)
        count_stops(sampler, target, target->counts.stop_ns - stopped_ns);
    return target->n_seen > 0 ? put_round(sampler, target) : MAREY_OK;
}

static marey_status look_at_all(struct marey_sampler *sampler, uint64_t n_due, uint64_t now_ns)
{
    if (sampler->context.stops.n_late > 0)
        marey__stops_resume_late(&sampler->context.stops, false);
    sampler->n_looked = (double)marey__family_count(&sampler->family, MAREY__MEMBER_PYTHON);
    sampler->n_workers = 0;
    for (size_t i = 0; i < sampler->family.n; i++)
        sampler->n_workers += sampler->family.members[i].kind == MAREY__MEMBER_PYTHON &&
                              sampler->family.members[i].worker >= 0;
    const bool has_python = sampler->n_looked > 0;
    for (size_t i = 0; i < sampler->family.n; i++)
        if (sampler->family.members[i].target != NULL &&
            (!has_python || !sampler->family.members[i].target->is_program))
            MAREY_TRY(look_at_member(sampler, i, n_due, now_ns));
    return MAREY_OK;
}

/* During a pause the next round is due after it. */
static bool is_pause(struct marey_sampler *sampler, uint64_t now_ns)
{
    if (!sampler->has_pauses || !marey__samples_is_pause(sampler->seed, now_ns))
        return false;
    sampler->next_ns = (now_ns / MAREY__PAUSE_BLOCK_NS + 1) * MAREY__PAUSE_BLOCK_NS + gap_ns(sampler);
    return true;
}

/* The number of rounds due by now: one, plus missed ones. */
static uint64_t take_due(struct marey_sampler *sampler, uint64_t now_ns)
{
    const uint64_t behind_ns = (uint64_t)(4e9 / sampler->rate_hz) + BEHIND_MS * ms_ns;
    uint64_t n = 1;
    const uint64_t late_ns = now_ns - sampler->next_ns;
    sampler->next_ns += gap_ns(sampler);
    while (sampler->next_ns + behind_ns < now_ns) {
        sampler->next_ns += gap_ns(sampler);
        n++;
    }
    sampler->n_asked += n;
    sampler->n_missed += n - 1;
    sampler->late_ns += late_ns;
    sampler->n_late += (double)late_ns > 0.5e9 / sampler->rate_hz;
    return n;
}

/* ---- published counts ---- */

static void sum_counts(struct marey_sampler *sampler, struct marey_sampler_counts *out)
{
    struct marey__family *family = &sampler->family;
    *out = (struct marey_sampler_counts){
        .rate_hz = sampler->rate_hz,
        .target_ns = family->ended_target_ns,
        .late = sampler->n_late,
        .processes = family->n_processes,
        .children = family->n_born,
        .threads = marey_samples_n_threads(sampler->samples),
        .all = family->ended,
    };
    for (size_t i = 0; i < family->n; i++) {
        const struct marey__target *target = family->members[i].target;
        if (target == NULL)
            continue;
        out->alive++;
        out->target_ns += target->at_ns > target->opened_ns ? target->at_ns - target->opened_ns : 0;
        marey__counts_add(&out->all, &target->counts);
        marey__samples_set_counts(sampler->samples, target->number, &target->counts);
    }
    if (out->target_ns > 0)
        out->achieved_hz = (double)out->all.done * 1e9 / (double)out->target_ns;
    out->all.late_ns = sampler->late_ns;
    out->all.skipped = family->n_skipped;
    out->all.sampler_cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - sampler->cpu_begin_ns;
    marey__samples_set_counts(sampler->samples, 0, &out->all);
    if (sampler->log != NULL)
        out->recording_bytes = marey__samples_log_size(sampler->log);
}

void marey__sampler_publish_counts(struct marey_sampler *sampler)
{
    struct marey_sampler_counts counts;
    sum_counts(sampler, &counts);
    MAREY__HOLD(&sampler->lock);
    sampler->published = counts;
}

/* Processes from marey_sampler_add. Skips those that cannot be read. */
static void take_joining(struct marey_sampler *sampler)
{
    for (;;) {
        pid_t pid = 0;
        pthread_mutex_lock(&sampler->lock);
        if (sampler->n_joining > 0)
            pid = sampler->joining[--sampler->n_joining];
        pthread_mutex_unlock(&sampler->lock);
        if (pid == 0)
            return;
        marey__family_join(&sampler->family, pid);
    }
}

/* ---- the loop ---- */

static marey_status publish(struct marey_sampler *sampler, uint64_t now_ns)
{
    if (now_ns - sampler->published_ns < PUBLISH_MS * ms_ns)
        return MAREY_OK;
    sampler->published_ns = now_ns;
    take_joining(sampler);
    marey__sampler_publish_counts(sampler);
    if (sampler->counters != NULL)
        MAREY_TRY(
            marey__system_counters_read(sampler->counters, &sampler->family, sampler->log, now_ns));
    return sampler->log != NULL ? marey__samples_log_tick(sampler->log) : MAREY_OK;
}

static bool is_over(struct marey_sampler *sampler, uint64_t now_ns)
{
    if (atomic_load_explicit(&sampler->is_stopped, memory_order_relaxed) != 0)
        return true;
    if (sampler->duration_s > 0 && (double)(now_ns - sampler->begin_ns) >= sampler->duration_s * 1e9)
        return true;
    return marey__family_is_over(&sampler->family);
}

static uint64_t wake_ns(const struct marey_sampler *sampler, uint64_t now_ns)
{
    uint64_t wake = now_ns + SLICE_MS * ms_ns;
    wake = MAREY__MIN(wake, sampler->next_ns);
    wake = MAREY__MIN(wake, marey__family_due_ns(&sampler->family, false));
    if (sampler->context.stops.n_late > 0)
        wake = MAREY__MIN(wake, now_ns + ms_ns);
    if (sampler->duration_s > 0)
        wake = MAREY__MIN(wake, sampler->begin_ns + (uint64_t)(sampler->duration_s * 1e9));
    return wake;
}

marey_status marey__sampler_loop(struct marey_sampler *sampler)
{
    uint64_t now_ns = marey__clock_ns(CLOCK_MONOTONIC);
    sampler->cpu_begin_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sampler->begin_ns = now_ns;
    sampler->next_ns = now_ns; /* the first one immediately */
    take_joining(sampler);
    while (!is_over(sampler, now_ns)) {
        /* First, so that this round includes children born since the last one. */
        if (now_ns >= marey__family_due_ns(&sampler->family, true)) {
            marey__stops_resume_late(&sampler->context.stops, false);
            marey__family_poll(&sampler->family, now_ns);
        }
        if (now_ns >= sampler->next_ns && !is_pause(sampler, now_ns))
            MAREY_TRY(look_at_all(sampler, take_due(sampler, now_ns), now_ns));
        MAREY_TRY(publish(sampler, now_ns));
        now_ns = marey__clock_ns(CLOCK_MONOTONIC);
        const uint64_t wake = wake_ns(sampler, now_ns);
        if (wake > now_ns) {
            sleep_until(wake);
            now_ns = marey__clock_ns(CLOCK_MONOTONIC);
        }
    }
    return MAREY_OK;
}
