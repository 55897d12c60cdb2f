/*
 * recompilation: torch.compile compiles again in steps after warm-up.
 *
 * A compiled function has guards: sizes, types and Python values that it was compiled for. A call
 * that fails a guard recompiles it. Exposed time is that of the training thread's samples inside
 * the compiler in steps after warm-up; each such step is one observation. torch keeps the
 * recompiled functions and the failed guards until the program ends.
 * Wrong when: after a while all variants are compiled, and the training is much longer than the
 * recording.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.03; /* of the steps */
enum {
    FEWEST_SAMPLES = 10,
    FEWEST_TIMES = 3,
    MOST_KEPT = 64 /* compilations that torch keeps */
};

/* The string value of the first "key" after `from`; empty if missing. */
static void get_text(const char *from, const char *key, char *out, size_t size)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", key);
    const char *at = from != NULL ? strstr(from, quoted) : NULL;
    size_t n = 0;
    for (at = at != NULL ? at + strlen(quoted) : ""; *at != '\0' && *at != '"' && n + 1 < size; at++) {
        at += *at == '\\' && at[1] != '\0';
        out[n++] = *at;
    }
    out[n] = '\0';
}

bool marey__find_recompilation(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__fact_sum all = marey__facts_sum(facts, MAREY__FACT_STEPS);
    uint64_t n;
    if (facts->n_steps == 0 || !facts->has_samples || all.n == 0)
        return false;
    const double share =
        (double)marey__facts_weigh(facts, MAREY__FACT_STEPS, MAREY__FACT_COMPILING, &n) /
        (double)all.ns;
    /* A last batch that is shorter, or a change to model.eval(), compiles once. */
    if (n < FEWEST_SAMPLES || share < least_share || facts->compiling.n < FEWEST_TIMES)
        return false;
    const double last_ns = (double)facts->compiling.ns,
                 squares = facts->compiling.squares + last_ns * last_ns;
    out->statement.id = "recompilation";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.9;
    out->claims = MAREY__FACT_COMPILES;
    marey__finding_set_measured(out, share, sqrt(squares) / (double)all.ns);
    if (!marey__facts_find_place(facts, MAREY__FACT_STEPS, MAREY__FACT_COMPILING,
                                 &out->statement.place))
        return false;
    const char *const compiled = facts->trainers[0].compiled, *const first =
                                                                  compiled != NULL
                                                                      ? strstr(compiled,
                                                                               "\"recompiled\":[{")
                                                                      : NULL;
    const long n_times = marey__fact_number(compiled, "recompiles");
    char function[64], reason[160], times[64] = "";
    get_text(first, "function", function, sizeof function);
    get_text(first, "reason", reason, sizeof reason);
    if (n_times > 0)
        snprintf(times, sizeof times, " (%s%ld times)", n_times < MOST_KEPT ? "" : "at least ",
                 n_times);
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Recompilation: torch.compile compiles %s again%s, which takes %.0f %% of the steps.",
             function[0] != '\0' ? function : "code", times, share * 100);
    snprintf(out->detail, sizeof out->detail, "of compiling.");
    if (reason[0] != '\0') {
        struct marey__cause *const cause = &out->because[out->n_because++];
        cause->id = "guard";
        cause->phase = MAREY__FACT_OTHER;
        snprintf(cause->claim, sizeof cause->claim, "a guard fails: %s", reason);
    }
    const bool is_mode = strstr(reason, "training") != NULL || strstr(reason, "rad_mode") != NULL ||
                         strstr(reason, "GRAD_MODE") != NULL || strstr(reason, "grad mode") != NULL;
    if (is_mode)
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Call train(), eval() and no_grad() outside of the compiled function, or evaluate "
                 "the model without torch.compile.");
    else
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Pass changing numbers as tensors, compile with dynamic=True, or pad inputs to "
                 "few sizes.");
    return true;
}
