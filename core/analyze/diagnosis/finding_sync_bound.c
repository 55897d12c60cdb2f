/*
 * sync-bound: the device is idle after the CPU waited for it.
 *
 * A wait (.item(), .cpu(), printing a tensor, synchronize) drains the device's queue: the CPU
 * launches nothing meanwhile, and the device is idle from the end of its work until the next launch
 * arrives. Without the wait, launches would be earlier by its length, so exposed time is the
 * shorter of the wait and the idle time after it.
 * Wrong when: the rest of the step depends on the value.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_idle = 0.05; /* of the traced steps; a busier device has no problem */

bool marey__find_sync_bound(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    double share, error;
    const struct marey__fact_device *const device = &facts->device;
    if (device->n_steps < 2 || (double)device->idle_ns < least_idle * (double)device->traced_ns)
        return false;
    marey__facts_traced_share(facts, MAREY__TRACED_SYNC, &share, &error);
    /* A gradient scaler has to read whether a gradient overflowed. */
    uint64_t n;
    const uint64_t waits = MAREY__FACT_ONLY(MAREY__FACT_HOST_WAIT),
                   scaling_ns = marey__facts_weigh(facts, waits, MAREY__FACT_SCALING, &n),
                   waits_ns = marey__facts_sum(facts, waits).ns;
    if (scaling_ns * 2 > waits_ns)
        return false;
    share *= waits_ns != 0 ? 1 - (double)scaling_ns / (double)waits_ns : 1;
    out->statement.id = "sync-bound";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    marey__finding_set_share(out, share, error);
    if (!marey__facts_find_place(facts, MAREY__FACT_ONLY(MAREY__FACT_HOST_WAIT), MAREY__FACT_ALL,
                                 &out->statement.place))
        return false;
    char step[32], idle[32];
    marey_text_number(marey__facts_step_ns(facts), MAREY_UNIT_NS, step, sizeof step);
    marey_text_number(marey__facts_step_ns(facts) * share, MAREY_UNIT_NS, idle, sizeof idle);
    snprintf(
        out->statement.claim, sizeof out->statement.claim,
        "Sync-bound: the GPU is idle %.0f %% of each step (%s of %s) because the CPU waits for its "
        "results.",
        share * 100, idle, step);
    snprintf(out->detail, sizeof out->detail, "of these waits.");
    if (device->upload_ns * 2 > device->sync_ns)
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Copy from pinned memory: DataLoader(pin_memory=True) and "
                 ".to(device, non_blocking=True).");
    else
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Keep the value on the GPU: call .item(), .cpu() or print rarely, or "
                 "after the next "
                 "step is launched.");
    return true;
}
