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

bool marey__find_hot_function(const struct marey__facts *facts, struct marey__finding *out)
{
    uint64_t n = 0, all_ns = 0;
    for (int kind = 0; kind < MAREY__FACT_PHASES; kind++) {
        n += facts->by_kind[kind].n;
        all_ns += facts->by_kind[kind].ns;
    }
    *out =
        (struct marey__finding){.id = "hot-function", .phase = MAREY__FACT_OTHER, .confidence = 0.8};
    if (n < FEWEST_SAMPLES || facts->has_device ||
        !marey__facts_find_place(facts, MAREY__FACT_OTHER, MAREY__FACT_PYTHON, &out->place) ||
        out->place.function == 0)
        return false;
    const double share = (double)out->place.ns / (double)all_ns,
                 error = sqrt(share * (1 - share) / (double)n);
    if (share < least_share)
        return false;
    marey__finding_set_share(out, share, error);
    out->place.share = share;
    snprintf(out->claim, sizeof out->claim,
             "Hot function: Python code of one function takes %.0f %% of %s.", share * 100,
             facts->n_steps != 0 ? "each step" : "the time");
    snprintf(out->detail, sizeof out->detail, "of %s, on the CPU and holding the interpreter lock.",
             facts->n_steps != 0 ? "each step" : "the time");
    snprintf(out->action, sizeof out->action,
             "Vectorize it, cache its results, or move it to compiled code.");
    return true;
}

/* ---- programs without Python ---- */

static const double least_native_share = 0.5; /* of the CPU time: every program has some function */

bool marey__find_hot_native(const struct marey__facts *facts, struct marey__finding *out)
{
    struct marey__native s;
    *out =
        (struct marey__finding){.id = "hot-function", .phase = MAREY__FACT_OTHER, .confidence = 0.8};
    bool found = marey__native_read(facts, &s);
    if (found) {
        s.hot_by_function[0] = 0;
        marey__native_place(&s, s.hot_by_function, s.hot_by_location, &out->place);
        const double part = marey__native_share(&s, out->place.ns, out);
        out->place.share = part;
        out->target = facts->trainers[0].target;
        found = out->place.function != 0 && part >= least_native_share;
        snprintf(out->claim, sizeof out->claim,
                 "Hot function: one function has %.0f %% of the CPU time.", part * 100);
        snprintf(out->detail, sizeof out->detail,
                 "of the CPU time, with what it calls in libraries.");
        snprintf(out->action, sizeof out->action,
                 "Make this function faster, or call it less often; marey report --samples has the "
                 "lines.");
    }
    marey__native_fini(&s);
    return found;
}
