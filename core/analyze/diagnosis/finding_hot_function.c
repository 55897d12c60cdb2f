/*
 * hot-function: one Python function of the user's code dominates.
 *
 * Counted are samples that hold the interpreter lock outside of installed packages: Python code itself, and C code that does
 * not release the lock. Kernels of torch and numpy release it, so a function that waits for a matrix product is not hot. In
 * a program with training steps only their phase "other" counts: the phases of the framework have findings of their own.
 * Of a program without Python: a function of its own that has, with library functions it calls, most of the CPU time.
 * Wrong when: C code that holds the lock is already as fast as it can be.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.25; /* of the run or of steps */
enum { FEWEST_SAMPLES = 50 };

bool marey__find_hot_function(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    /* What outlier steps do is a finding of its own. */
    const bool has_slow = marey__diagnosis_find(d, "slow-steps") != NULL;
    const struct marey__fact_sum all = marey__facts_sum(facts, MAREY__FACT_STEPS);
    out->is.id = "hot-function";
    out->is.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    if (all.n < FEWEST_SAMPLES || facts->has_device ||
        !marey__facts_find_place(facts,
                                 has_slow ? MAREY__FACT_ONLY(MAREY__FACT_OTHER)
                                          : MAREY__FACT_BOTH(MAREY__FACT_OTHER),
                                 MAREY__FACT_PYTHON, &out->is.place) ||
        out->is.place.function == 0)
        return false;
    const double share = (double)out->is.place.ns / (double)all.ns,
                 error = sqrt(share * (1 - share) / (double)all.n);
    if (share < least_share)
        return false;
    marey__finding_set_share(out, share, error);
    out->is.place.share = share;
    snprintf(out->is.claim, sizeof out->is.claim,
             "Hot function: Python code of one function takes %.0f %% of %s.", share * 100,
             facts->n_steps != 0 ? "each step" : "the time");
    snprintf(out->detail, sizeof out->detail, "of %s, on the CPU and holding the interpreter lock.",
             facts->n_steps != 0 ? "each step" : "the time");
    snprintf(out->is.action, sizeof out->is.action,
             "Vectorize it, cache its results, or move it to compiled code.");
    return true;
}

/* ---- programs without Python ---- */

static const double least_native_share = 0.5; /* of the CPU time: every program has some function */

bool marey__find_hot_native(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    struct marey__native s;
    out->is.id = "hot-function";
    out->is.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    bool found = marey__native_read(facts, &s);
    if (found) {
        s.hot_by_function[0] = 0;
        marey__place_most(s.samples, s.hot_by_function, s.hot_by_location, &out->is.place);
        const double part = marey__native_share(&s, out->is.place.ns, out);
        out->is.place.share = part;
        found = out->is.place.function != 0 && part >= least_native_share;
        snprintf(out->is.claim, sizeof out->is.claim,
                 "Hot function: one function has %.0f %% of the CPU time.", part * 100);
        snprintf(out->detail, sizeof out->detail,
                 "of the CPU time, with what it calls in libraries.");
        snprintf(out->is.action, sizeof out->is.action,
                 "Make this function faster, or call it less often; marey report --samples has the "
                 "lines.");
    }
    marey__native_fini(&s);
    return found;
}
