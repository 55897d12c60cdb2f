/*
 * logging-in-step: steps wait for logging.
 *
 * Exposed time is that of samples in steps, outside of the model and the optimizer, that are in the
 * phase "logging" (TensorBoard, W&B, MLflow), in libraries for logging and progress bars, or in
 * functions of the user's whose name says logging. If only some steps have that phase, it is a
 * cause of slow-steps instead. In a process that uses a GPU it may be hidden, and does not count.
 * Wrong when: a function with such a name does something else.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.03; /* of the steps */
enum { FEWEST_SAMPLES = 10 };

bool marey__find_logging_in_step(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__fact_sum all = marey__facts_sum(facts, MAREY__FACT_STEPS);
    const bool is_occasional = facts->occasional[MAREY__OCCASIONAL_LOGGING].n != 0;
    const uint64_t kinds = MAREY__FACT_BOTH(MAREY__FACT_OTHER) |
                           (is_occasional ? 0 : MAREY__FACT_BOTH(MAREY__FACT_LOGGING));
    uint64_t n;
    if (facts->n_steps == 0 || !facts->has_samples || facts->has_device || all.n == 0)
        return false;
    const double share =
        (double)marey__facts_weigh(facts, kinds, MAREY__FACT_LOGGED, &n) / (double)all.ns;
    if (n < FEWEST_SAMPLES || share < least_share)
        return false;
    out->statement.id = "logging-in-step";
    out->statement.phase = MAREY__FACT_LOGGING;
    out->confidence = 0.8;
    out->claims = MAREY__FACT_LOGS;
    marey__finding_set_measured(out, share, sqrt(share * (1 - share) / (double)all.n));
    if (!marey__facts_find_place(facts, kinds, MAREY__FACT_LOGGED, &out->statement.place))
        return false;
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Logging: steps log for %.0f %% of their time.", share * 100);
    snprintf(out->detail, sizeof out->detail, "of logging.");
    marey__finding_add_io(facts, facts->system.io_logged_ns, out);
    snprintf(out->statement.action, sizeof out->statement.action,
             "Log less often, log less, or collect values as tensors and write them "
             "between epochs.");
    return true;
}
