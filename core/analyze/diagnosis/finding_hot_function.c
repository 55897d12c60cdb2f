/*
 * hot-function: one Python function of the user's code dominates.
 *
 * Counts samples that hold the interpreter lock, in the user's code and in the Python code of numpy
 * and torch that it calls: Python code, and C code that does not release the lock. Kernels of torch
 * and numpy release it, so a function that waits for a matrix product is not hot. A line that calls
 * many small kernels is hot, and the upper bound of its gain includes them. Half of the function's
 * samples must be at adjacent lines or in one of its loops: a function that calls several others in
 * turn is not hot. In a program with training steps only the phase "other" counts: the framework's
 * phases have their own findings.
 * Wrong when: C code that holds the lock is already as fast as it can be.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.25; /* of the run or of steps */
enum { FEWEST_SAMPLES = 50 };

/*
 * Without steps, the gain refers to the whole run: returns the share of it that was sampled after
 * imports.
 */
static double part_of_run(const struct marey__facts *facts, uint64_t after_ns)
{
    const struct marey__trainer *const t = &facts->trainers[0];
    const struct marey_process *const run = marey_recording_run(t->recording, 0);
    const uint64_t imports_ns = marey__facts_sum(facts, MAREY__FACT_ONLY(MAREY__FACT_STARTUP)).ns,
                   span_ns = t->end_ns - t->start_ns,
                   run_ns = run != NULL ? MAREY__MAX(run->wall_ns, span_ns) : span_ns;
    return (double)after_ns / (double)(after_ns + imports_ns) * (double)span_ns / (double)run_ns;
}

bool marey__find_hot_function(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    /* slow-steps covers outlier steps. */
    const bool has_slow = marey__diagnosis_find(d, "slow-steps") != NULL;
    const uint64_t kinds =
        has_slow ? MAREY__FACT_ONLY(MAREY__FACT_OTHER) : MAREY__FACT_BOTH(MAREY__FACT_OTHER);
    const struct marey__fact_sum all = marey__facts_sum(facts, MAREY__FACT_STEPS);
    struct marey__fact_place *const place = &out->statement.place;
    struct marey__fact_lines at;
    out->statement.id = "hot-function";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    if (all.n < FEWEST_SAMPLES || facts->has_device ||
        !marey__facts_find_place(facts, kinds, MAREY__FACT_PYTHON, place) || place->function == 0 ||
        !marey__facts_find_hot_lines(facts, kinds, place, &at) || place->function == 0)
        return false;
    const double python = (double)place->ns / (double)all.ns,
                 lines = (double)marey__facts_weigh_lines(facts, kinds, place->function, &at) /
                         (double)all.ns,
                 share = fmin(fmax(python, lines), 1),
                 error = sqrt(share * (1 - share) / (double)all.n);
    const bool has_kernels = share > 1.25 * python;
    const double of_run = facts->n_steps != 0 ? 1 : part_of_run(facts, all.ns);
    if (python < least_share)
        return false;
    marey__finding_set_between(out, python * of_run, share * of_run, error);
    out->statement.share = place->share = share * of_run;
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Hot function: Python code of one function%s takes %.0f %% of %s.",
             has_kernels ? ", with small operations that it calls," : "", share * of_run * 100,
             facts->n_steps != 0 ? "each step" : "the time");
    snprintf(out->detail, sizeof out->detail, "of %s%s.",
             facts->n_steps != 0 ? "each step" : "the time",
             has_kernels ? "" : ", on the CPU and holding the interpreter lock");
    snprintf(out->statement.action, sizeof out->statement.action,
             "Vectorize it, cache its results, or move it to compiled code.");
    return true;
}
