/*
 * cpu-oversubscribed: in a Python program, many more threads want to run than there are CPU cores
 * for them.
 *
 * The kernel counts the time that threads run and the time that they wait for a core. The sum gives
 * the mean number of threads that want to run, regardless of other programs on the machine. A risk
 * without a gain: it is unknown how much of the threads' time is useful work, and how much is spent
 * waiting for each other at barriers.
 * Wrong when: the threads do work that the training needs, and fewer threads would not do it
 * sooner.
 */
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_threads = 2;  /* that want to run, per usable core */
static const double severe_threads = 4; /* the same; or the cgroup throttles */
static const double least_ns =
    5e8; /* covered by counters, which are read less often with many threads */

bool marey__find_cpu_oversubscribed(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__system_facts *const s = &facts->system;
    out->statement.id = "cpu-oversubscribed";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.6;
    const bool is_python =
        facts->has_samples && facts->trainers[0].target != 0 &&
        marey_samples_get_process(facts->set.samples, facts->trainers[0].target)->python != 0;
    if (facts->n_steps == 1 || (facts->n_steps == 0 && !is_python) || s->counted_ns < least_ns)
        return false;
    const double cores = s->mean[MAREY__SYSTEM_CORES],
                 wanted = s->mean[MAREY__SYSTEM_RUNNING] + s->mean[MAREY__SYSTEM_WAITING];
    if (cores <= 0 || wanted < cores * least_threads)
        return false;
    const bool is_throttled = s->mean[MAREY__SYSTEM_THROTTLED] > 0.05;
    out->is_risk = true;
    out->is_severe = is_throttled || wanted >= cores * severe_threads;
    out->statement.share = -1;
    char throttled[64] = "";
    if (is_throttled)
        snprintf(throttled, sizeof throttled, "; the cgroup throttles %.1f threads",
                 s->mean[MAREY__SYSTEM_THROTTLED]);
    snprintf(
        out->statement.claim, sizeof out->statement.claim,
        "CPU oversubscribed: %.1f threads want to run on %.4g CPU core%s (%.0f threads in %.0f "
        "process%s, %.0f involuntary switches/s%s).",
        wanted, cores, cores == 1 ? "" : "s", s->mean[MAREY__SYSTEM_THREADS],
        s->mean[MAREY__SYSTEM_PROCESSES], s->mean[MAREY__SYSTEM_PROCESSES] < 1.5 ? "" : "es",
        s->mean[MAREY__SYSTEM_SWITCHES], throttled);
    snprintf(
        out->statement.action, sizeof out->statement.action,
        "Start fewer threads or data-loader workers: OMP_NUM_THREADS or torch.set_num_threads() "
        "times processes should not exceed %.4g.",
        cores);
    return true;
}
