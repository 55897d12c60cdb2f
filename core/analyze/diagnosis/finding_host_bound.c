/*
 * host-bound: the device is idle because the CPU has not launched its next work.
 *
 * Exposed time is the idle time until the next launch, except in the data loader (input-bound) and
 * after waits of the CPU for the device (sync-bound). The place is that of the samples in these
 * gaps. The action depends on the gaps: with many short ones, kernels are shorter than their
 * launch; in a long one, Python runs between launches.
 * Wrong when: another rank is slower, and communication would fill the time.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_idle = 0.05; /* of the traced steps; a busier device has no problem */
static const double mostly_short = 0.5;

bool marey__find_host_bound(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    double share, error, short_share, short_error;
    const struct marey__fact_device *const device = &facts->device;
    if (device->n_steps < 2 || (double)device->idle_ns < least_idle * (double)device->traced_ns)
        return false;
    marey__facts_traced_share(facts, MAREY__TRACED_HOST, &share, &error);
    marey__facts_traced_share(facts, MAREY__TRACED_HOST_SHORT, &short_share, &short_error);
    out->statement.id = "host-bound";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    marey__finding_set_share(out, share, error);
    if (!marey__facts_find_place(facts, MAREY__FACT_ONLY(MAREY__FACT_HOST_GAP), MAREY__FACT_ALL,
                                 &out->statement.place))
        return false;
    char step[32], gaps[32];
    marey_text_number(marey__facts_step_ns(facts), MAREY_UNIT_NS, step, sizeof step);
    marey_text_number(marey__facts_step_ns(facts) * share, MAREY_UNIT_NS, gaps, sizeof gaps);
    snprintf(
        out->statement.claim, sizeof out->statement.claim,
        "Host-bound: the GPU waits for the CPU to launch work %.0f %% of each step (%s of %s).",
        share * 100, gaps, step);
    snprintf(out->detail, sizeof out->detail, "of that time.");
    snprintf(
        out->statement.action, sizeof out->statement.action, "%s",
        short_share > mostly_short * share
            ? "Kernels are shorter than their launch: try torch.compile(mode=\"reduce-overhead\"), "
              "CUDA graphs, or a larger batch."
            : "Move this work out of the step, or launch GPU work before it.");
    return true;
}
