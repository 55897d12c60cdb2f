/*
 * exposed-communication: ranks of a training on CPUs wait for transfers.
 *
 * Exposed time is the wait of the rank that waits least. It arrives last, so it does not wait for
 * other ranks: its wait is communication. Waits for a late rank belong to straggler.
 * Experimental: it is unknown how much of these waits a fix removes. Small models on CPUs always
 * have them.
 * Wrong when: ranks take turns at arriving last; then part of the wait is uneven work.
 */
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.1; /* of a step; includes waits of threads for each other */

bool marey__find_exposed_communication(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    struct marey__fact_ranks ranks;
    bool found = marey__fact_ranks_read(facts, &ranks) &&
                 ranks.slowest->wait_ns >= least_share * ranks.step_ns &&
                 marey__facts_find_place(facts, MAREY__FACT_STEPS, MAREY__FACT_WAITING,
                                         &out->statement.place);
    if (found) {
        const double share = ranks.slowest->wait_ns / ranks.step_ns;
        char wait[32], step[32];
        out->statement.id = "exposed-communication";
        out->is_experimental = true;
        out->statement.phase = MAREY__FACT_BACKWARD;
        out->confidence = 0.7;
        marey__finding_set_share(out, share, ranks.error_ns / ranks.step_ns);
        marey_text_number(ranks.slowest->wait_ns, MAREY_UNIT_NS, wait, sizeof wait);
        marey_text_number(ranks.step_ns, MAREY_UNIT_NS, step, sizeof step);
        snprintf(
            out->statement.claim, sizeof out->statement.claim,
            "Exposed communication: %zu ranks wait for each other's data %.0f %% of each step (%s "
            "of %s).",
            ranks.n, share * 100, wait, step);
        snprintf(out->detail, sizeof out->detail, "of these waits.");
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Communicate less often (gradient accumulation with no_sync(), larger batches) or "
                 "fewer bytes (a compression hook of DistributedDataParallel), or use a faster "
                 "network.");
    }
    marey__fact_ranks_fini(&ranks);
    return found;
}
