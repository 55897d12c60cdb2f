/*
 * memory-leak: resident memory grows during the whole training, in every part of it.
 *
 * A risk without a gain: the program is stopped when the memory is used up. Growth at the beginning is warm-up, so the first
 * eighth of the steps does not count. What allocates it is unknown here; marey run --memory records that.
 * Wrong when: a cache fills, such as a dataset that keeps what it has read, and the recording ends before it is full.
 */
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_growth = 64e6, least_share = 0.05; /* in bytes; of the memory before */
static const double least_part = 0.05;                       /* of the growth, in each part */
static const double least_ns = 5e9;
static const double severe_growth = 1e9; /* bytes each minute: 64 GB are full in an hour */
enum { FEWEST_STEPS = 50 };

bool marey__find_memory_leak(const struct marey__diagnosis *d, struct marey__finding *out)
{
    enum { LAST = MAREY__RESIDENT_PARTS - 1 };
    const struct marey__facts *const facts = &d->facts;
    const double *const resident = facts->system.resident, growth = resident[LAST] - resident[1];
    const struct marey__trainer *const t = &facts->trainers[0];
    if (facts->n_steps < FEWEST_STEPS || resident[1] <= 0 || growth < least_growth ||
        growth < least_share * resident[1] ||
        (double)(t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns) < least_ns)
        return false;
    const double minutes =
        (double)(t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns) / 60e9;
    for (int i = 1; i < LAST; i++)
        if (resident[i + 1] - resident[i] < least_part * growth)
            return false;
    char each[32], from[32], to[32];
    const double n_steps = (double)facts->n_steps * (LAST - 1) / MAREY__RESIDENT_PARTS;
    marey_text_number(growth / n_steps, MAREY_UNIT_BYTES, each, sizeof each);
    marey_text_number(resident[1], MAREY_UNIT_BYTES, from, sizeof from);
    marey_text_number(resident[LAST], MAREY_UNIT_BYTES, to, sizeof to);
    out->statement.id = "memory-leak";
    out->statement.phase = MAREY__FACT_OTHER;
    out->is_risk = true;
    out->is_severe = growth > severe_growth * minutes;
    out->confidence = 0.7;
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Memory leak: resident memory grows by %s in each step, to the end (from %s to %s).",
             each, from, to);
    snprintf(out->statement.action, sizeof out->statement.action,
             "Keep loss.item() or loss.detach() in lists, not the loss with its graph, and bound "
             "caches; marey run --memory names what allocates.");
    return true;
}
