/*
 * gc-pauses: garbage collections within steps.
 *
 * Python's collector stops the program while it traverses objects. A program that creates and keeps
 * many objects makes it traverse all of them repeatedly. Pauses of 100 us and more are recorded.
 * Exposed time is that of pauses in steps, outside of data. Pauses that make outlier steps are a
 * cause of slow-steps instead. In a process that uses a GPU, pauses may be hidden, so only those
 * that make outliers count.
 * Wrong when: the program frees cycles of large objects by these collections, and needs the memory.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.03; /* of a step */
enum { FEWEST = 5 };

const char marey__gc_action[] = "Call gc.freeze() after set-up, raise gc.set_threshold(), or "
                                "disable it and call gc.collect() between "
                                "epochs; keep fewer objects.";

bool marey__find_gc_pauses(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__finding *const slow = marey__diagnosis_find(d, "slow-steps");
    struct marey__fact_pauses sum = facts->pauses;
    if (facts->steady_ns == 0 || facts->has_device)
        return false;
    for (size_t i = 0; slow != NULL && i < slow->n_because; i++)
        if (strcmp(slow->because[i].id, "gc-pauses") == 0) {
            sum.n -= MAREY__MIN(facts->occasional[MAREY__OCCASIONAL_GC].n, sum.n);
            sum.ns -= MAREY__MIN(facts->occasional[MAREY__OCCASIONAL_GC].ns, sum.ns);
        }
    const double share = (double)sum.ns / (double)facts->steady_ns * marey__facts_unclaimed_gc(facts);
    if (sum.n < FEWEST || share < least_share)
        return false;
    size_t most = 0;
    for (size_t i = 1; i < MAREY__COUNT_OF(sum.by_generation); i++)
        most = sum.by_generation[i] >= sum.by_generation[most] ? i : most;
    out->statement.id = "gc-pauses";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.9;
    /* The number of pauses varies between runs. */
    marey__finding_set_measured(out, share, share / sqrt((double)sum.n) / 2);
    if (!marey__facts_find_place(facts, MAREY__FACT_STEPS & ~MAREY__FACT_BOTH(MAREY__FACT_DATA),
                                 MAREY__FACT_GC, &out->statement.place))
        return false;
    char mean[32], longest[32];
    marey_text_number((double)sum.ns / (double)sum.n, MAREY_UNIT_NS, mean, sizeof mean);
    marey_text_number((double)sum.longest_ns, MAREY_UNIT_NS, longest, sizeof longest);
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Garbage collection: %llu pauses of %s on average (at most %s) take %.0f %% of the "
             "steps, mostly of "
             "generation %zu.",
             (unsigned long long)sum.n, mean, longest, share * 100, most);
    snprintf(out->detail, sizeof out->detail, "of the pauses.");
    snprintf(out->statement.action, sizeof out->statement.action, "%s", marey__gc_action);
    return true;
}
