/*
 * input-bound: steps wait in the data loader.
 *
 * Exposed time is that of the phase "data": the training thread is inside the loader and does nothing else. Of a process
 * that uses a GPU only that in which the GPU is idle, as in the steps that were traced; without a traced step the gain is
 * an upper bound.
 * Wrong when: a wait in the loader hides a wait for another rank (the step would not end sooner).
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.05;  /* of a step */
static const double least_unknown = 0.1; /* where no function stands out */
static const double short_load_ns = 2e6; /* per step: workers would not help */
/* Workers that are idle for most of the time, or run no code of the user's, are fast enough: batches are on their way. */
static const double most_idle = 2.0 / 3, least_handing_over = 0.25;

static bool is_users(const struct marey__facts *facts, uint32_t function)
{
    return marey__facts_is_users(marey_samples_get_function(facts->set.samples, function));
}

bool marey__find_input_bound(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    double share, error;
    if (facts->n_steps < 2 || facts->steady_ns == 0)
        return false;
    marey__facts_share(facts, MAREY__FACT_DATA, &share, &error);
    const double exposed = marey__facts_exposed_data(facts);
    /* What one rank loads longer than the others is a finding of its own. */
    const struct marey__finding *const straggler = marey__diagnosis_find(d, "straggler");
    if (straggler != NULL && straggler->statement.phase == MAREY__FACT_DATA)
        share -= straggler->statement.share;
    share *= exposed;
    error *= exposed;
    if (share < least_share)
        return false;
    const long n_workers = marey__fact_number(facts->trainers[0].loader, "num_workers");
    const uint64_t workers = MAREY__FACT_ONLY(MAREY__FACT_WORKER),
                   workers_ns = marey__facts_sum(facts, workers).ns;
    const bool by_workers = workers_ns != 0;
    uint64_t n_idle;
    if (by_workers && !marey__facts_find_place(facts, workers, MAREY__FACT_ALL, &out->statement.place))
        return false;
    const bool is_handing_over =
        by_workers && (out->statement.place.function == 0 || !is_users(facts, out->statement.place.function) ||
                       (double)marey__facts_weigh(facts, workers, MAREY__FACT_IDLE, &n_idle) >=
                           most_idle * (double)workers_ns);
    if (is_handing_over && share < least_handing_over)
        return false;
    out->statement.id = "input-bound";
    out->statement.phase = MAREY__FACT_DATA;
    out->confidence = 0.9;
    marey__finding_set_share(out, share, error);
    if ((!by_workers || is_handing_over) &&
        !marey__facts_find_place(facts, MAREY__FACT_BOTH(MAREY__FACT_DATA), MAREY__FACT_ALL,
                                 &out->statement.place))
        return false;
    if (facts->has_samples && out->statement.place.function == 0 && share < least_unknown)
        return false;
    char step[32], wait[32];
    marey_text_number((double)facts->median_ns, MAREY_UNIT_NS, step, sizeof step);
    marey_text_number((double)facts->median_ns * share, MAREY_UNIT_NS, wait, sizeof wait);
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Input-bound: training waits for data %.0f %% of each step (%s of %s).", share * 100,
             wait, step);
    const char *const where =
        is_handing_over  ? "in the main process, which waits for batches on their way from "
                           "data-loader workers"
        : by_workers     ? "in the data-loader workers"
        : n_workers == 0 ? "in the main process: the DataLoader has num_workers=0"
                         : "in the main process";
    snprintf(out->detail, sizeof out->detail, "of loading, %s.", where);
    if (is_handing_over)
        snprintf(
            out->statement.action, sizeof out->statement.action,
            "Workers are fast enough, handing batches over is not: use num_workers=0 if loading "
            "is fast, hand over fewer and larger tensors, or set persistent_workers=True where "
            "epochs are short.");
    else if (share * (double)facts->median_ns < short_load_ns)
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Loading is short: handing batches over between processes would take as long. Use "
                 "larger "
                 "batches, or index tensors without a DataLoader.");
    else if (n_workers == 0)
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Try num_workers=4, or make this function faster.");
    else if (n_workers > 0 && marey__diagnosis_find(d, "cpu-oversubscribed") != NULL)
        snprintf(
            out->statement.action, sizeof out->statement.action,
            "There are no CPU cores for more workers: make this function faster, or start fewer "
            "threads.");
    else if (n_workers > 0)
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Try more workers than num_workers=%ld, or make this function faster.", n_workers);
    else
        snprintf(out->statement.action, sizeof out->statement.action,
                 "Load batches ahead in other processes, or make this function faster.");
    return true;
}
