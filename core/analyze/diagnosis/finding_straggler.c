/*
 * straggler: one rank of a training on CPUs works longer than the others in each step, and they
 * wait for it.
 *
 * Exposed time is its work beyond the median of the other ranks. The place is the code that it runs
 * in the phase with the largest excess. With a GPU, NCCL kernels hide which rank waits for which:
 * such trainings have no finding yet.
 * Wrong when: work is uneven by design, as between the stages of a pipeline.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.1; /* of a step; other programs may share the cores */

static void put_action(enum marey__fact_phase phase, struct marey__finding *out)
{
    snprintf(
        out->statement.action, sizeof out->statement.action, "%s",
        phase == MAREY__FACT_DATA ? "Give each rank equal work: load on all ranks alike, or load "
                                    "ahead in workers on this one."
        : phase == MAREY__FACT_FORWARD || phase == MAREY__FACT_BACKWARD
            ? "Give each rank equal work: batches of equal size, sequences of similar length; or "
              "compare the "
              "CPU of its machine with the others."
            : "Move what only this rank does out of the step, do it less often, or in another "
              "process.");
}

/* "rank 9 (node2), which works"; the node only if there are several. */
static void put_who(const struct marey__fact_ranks *ranks, char *text, size_t size)
{
    const struct marey_process *const info = ranks->slowest->trainer->info;
    if (ranks->is_slow_node)
        snprintf(text, size, "the ranks of %s, which work up to", info->host);
    else if (ranks->has_nodes)
        snprintf(text, size, "rank %d (%s), which works", info->rank, info->host);
    else
        snprintf(text, size, "rank %d, which works", info->rank);
}

bool marey__find_straggler(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    struct marey__fact_ranks ranks;
    bool found =
        marey__fact_ranks_read(facts, &ranks) && ranks.excess_ns >= least_share * ranks.step_ns &&
        marey__fact_ranks_find_place(facts, ranks.slowest, ranks.phase, &out->statement.place);
    if (found) {
        const struct marey_process *const info = ranks.slowest->trainer->info;
        char more[32], step[32], who[128];
        out->statement.id = "straggler";
        out->statement.phase = ranks.phase;
        out->confidence = 0.8;
        out->trainer = ranks.slowest->trainer;
        marey__finding_set_share(out, ranks.excess_ns / ranks.step_ns,
                                 ranks.error_ns / ranks.step_ns);
        marey_text_number(ranks.excess_ns, MAREY_UNIT_NS, more, sizeof more);
        marey_text_number(ranks.step_ns, MAREY_UNIT_NS, step, sizeof step);
        put_who(&ranks, who, sizeof who);
        snprintf(
            out->statement.claim, sizeof out->statement.claim,
            "Straggler: the other ranks wait for %s %s longer in each step of %s, mostly in the "
            "phase %s.",
            who, more, step, marey__fact_phase_names[ranks.phase]);
        snprintf(out->detail, sizeof out->detail, "of this phase on rank %d.", info->rank);
        if (ranks.is_slow_node)
            snprintf(out->statement.action, sizeof out->statement.action,
                     "Compare CPU clocks, other programs, memory and storage of %s with the other "
                     "nodes; "
                     "or give its ranks less work.",
                     info->host);
        else
            put_action(ranks.phase, out);
    }
    marey__fact_ranks_fini(&ranks);
    return found;
}
