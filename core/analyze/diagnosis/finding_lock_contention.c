/*
 * lock-contention: threads of a program without Python spend a large share of their active time
 * waiting for locks or handing them over.
 *
 * The gain is a share of the time in which any thread works or is at a lock; the rest of the run is
 * excluded. It is limited to what all cores could gain by sharing the work, without the calls that
 * take locks.
 * Wrong when: threads that did not wait for the lock would wait for something else, such as memory.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.1; /* of the time of threads that could work */

bool marey__find_lock_contention(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    struct marey__native s;
    out->statement.id = "lock-contention";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.7;
    bool found = marey__native_read(facts, &s);
    if (found) {
        s.lock_by_function[0] = 0;
        marey__place_find_heaviest(s.samples, s.lock_by_function, s.lock_by_location,
                                   &out->statement.place);
        const double part = marey__native_share(&s, s.lock_ns, out),
                     cores = facts->system.mean[MAREY__SYSTEM_CORES];
        uint64_t run_ns = 0;
        for (uint32_t i = 1; i <= marey_samples_n_processes(s.samples); i++)
            run_ns += s.processes[i].run_ns;
        if (cores > 0 && s.work_ns > s.calls_ns) /* threads that no longer wait need cores */
            out->at_most = out->gain_high = fmax(
                1, fmin(out->at_most, cores * (double)run_ns / (double)(s.work_ns - s.calls_ns)));
        out->gain_low = fmin(out->gain_low, out->at_most);
        out->statement.place.share =
            s.lock_ns != 0 ? (double)out->statement.place.ns / (double)s.lock_ns : 0;
        found = out->statement.place.function != 0 && part >= least_share;
        snprintf(
            out->statement.claim, sizeof out->statement.claim,
            "Lock contention: threads wait for locks %.0f %% of the time in which they could work.",
            part * 100);
        snprintf(out->detail, sizeof out->detail, "of these waits.");
        snprintf(
            out->statement.action, sizeof out->statement.action,
            "Hold the lock for less work, split it, or give each thread its own data and merge "
            "at the end.");
    }
    marey__native_fini(&s);
    return found;
}
