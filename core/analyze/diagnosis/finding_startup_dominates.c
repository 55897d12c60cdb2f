/*
 * startup-dominates: the user's Python code takes a large part of the run, before a training that
 * is shorter than its start-up.
 *
 * Counts samples before the end of warm-up in which the user's code, or the standard library called
 * by it, holds the interpreter lock. Imports of installed packages, compilation and the first steps
 * are excluded: every program has them. The share refers to the whole run.
 * Wrong when: a short run is a trial of a long one.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.2, least_ns = 3e8; /* of the run; in all */
enum { FEWEST_SAMPLES = 20 };

bool marey__find_startup_dominates(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const uint64_t kinds =
        MAREY__FACT_ONLY(MAREY__FACT_STARTUP) | MAREY__FACT_ONLY(MAREY__FACT_FIRST_STEPS);
    const struct marey__fact_sum before = marey__facts_sum(facts, kinds);
    if (facts->n_steps == 0 || !facts->has_samples || before.ns == 0)
        return false;
    const struct marey__trainer *const t = &facts->trainers[0];
    const uint64_t training_ns = t->steps[t->n_steps - 1].end_ns - t->steps[t->n_warmup].begin_ns;
    if (facts->startup_ns < training_ns)
        return false;
    uint64_t n;
    const double part = (double)marey__facts_weigh(facts, kinds, MAREY__FACT_USER_STARTUP, &n) /
                        (double)before.ns,
                 startup_ns = (double)facts->startup_ns, run_ns = startup_ns + (double)training_ns;
    if (n < FEWEST_SAMPLES ||
        !marey__facts_find_place(facts, kinds, MAREY__FACT_USER_STARTUP, &out->statement.place) ||
        out->statement.place.function == 0)
        return false;
    const double of_startup = part * out->statement.place.share,
                 share = of_startup * startup_ns / run_ns;
    if (share < least_share || of_startup * startup_ns < least_ns)
        return false;
    char startup[32], training[32];
    marey_text_number(startup_ns, MAREY_UNIT_NS, startup, sizeof startup);
    marey_text_number((double)training_ns, MAREY_UNIT_NS, training, sizeof training);
    out->statement.id = "startup-dominates";
    out->statement.phase = MAREY__FACT_STARTUP;
    out->confidence = 0.8;
    marey__finding_set_measured(
        out, share, sqrt(of_startup * (1 - of_startup) / (double)before.n) * startup_ns / run_ns);
    out->statement.place.share = of_startup;
    snprintf(
        out->statement.claim, sizeof out->statement.claim,
        "Start-up takes %s, the training %s: Python code of the program is %.0f %% of the run.",
        startup, training, share * 100);
    snprintf(out->detail, sizeof out->detail, "of start-up.");
    snprintf(out->statement.action, sizeof out->statement.action,
             "Vectorize it, or store its result in a file and load that.");
    return true;
}
