/*
 * memory-leak: the anonymous memory of a process grows in every part of the training.
 *
 * Reads the process with the most anonymous memory. The kernel reclaims the pages of mapped files,
 * such as a dataset in a memmap, so they are not a leak; nor are pages that workers share.
 * A risk without a gain: the kernel kills the program when memory is exhausted. Early growth is
 * warm-up, so the first eighth of the steps is ignored. The allocating code is unknown here; marey
 * run --memory records it.
 * Wrong when: a cache fills, such as a dataset that keeps what it has read, and the recording ends
 * before it is full.
 */
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_growth = 64e6, least_share = 0.05; /* in bytes; of the initial memory */
static const double least_part = 0.05;                       /* of the growth, in each part */
static const double least_ns = 5e9;
static const double severe_growth = 1e9; /* bytes each minute: 64 GB are full in an hour */
enum { FEWEST_STEPS = 50 };

bool marey__find_memory_leak(const struct marey__diagnosis *d, struct marey__finding *out)
{
    enum { LAST = MAREY__MEMORY_PARTS - 1 };
    const struct marey__facts *const facts = &d->facts;
    const double *const anonymous = facts->system.anonymous, growth = anonymous[LAST] - anonymous[1];
    const struct marey__trainer *const t = &facts->trainers[0];
    if (facts->n_steps < FEWEST_STEPS || anonymous[1] <= 0 || growth < least_growth ||
        growth < least_share * anonymous[1] ||
        (double)(t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns) < least_ns)
        return false;
    const double minutes =
        (double)(t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns) / 60e9;
    for (int i = 1; i < LAST; i++)
        if (anonymous[i + 1] - anonymous[i] < least_part * growth)
            return false;
    char each[32], from[32], to[32];
    const double n_steps = (double)facts->n_steps * (LAST - 1) / MAREY__MEMORY_PARTS;
    marey_text_number(growth / n_steps, MAREY_UNIT_BYTES, each, sizeof each);
    marey_text_number(anonymous[1], MAREY_UNIT_BYTES, from, sizeof from);
    marey_text_number(anonymous[LAST], MAREY_UNIT_BYTES, to, sizeof to);
    out->statement.id = "memory-leak";
    out->statement.phase = MAREY__FACT_OTHER;
    out->is_risk = true;
    out->is_severe = growth > severe_growth * minutes;
    out->confidence = 0.7;
    snprintf(
        out->statement.claim,
        sizeof out->statement.claim, "Memory leak: the memory of a process grows by %s in each step, to the end (from %s to %s).",
        each, from, to);
    snprintf(out->statement.action, sizeof out->statement.action,
             "Keep loss.item() or loss.detach() in lists, not the loss with its graph, and bound "
             "caches; marey run --memory names what allocates.");
    return true;
}
