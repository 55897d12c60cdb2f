/*
 * input-bound: steps wait in the data loader.
 *
 * Exposed time is that of the phase "data": the training thread is inside the loader and does nothing else. Of a process
 * that uses a GPU only that in which the GPU is idle, as in the steps that were traced; without a traced step the gain is
 * an upper bound, and only a large share is a finding.
 *
 *   workers are busy in a dataset          that place; more workers
 *   they are idle, or in torch's own code  batches are on their way: fewer, larger tensors
 *   the same, at the start of epochs       persistent_workers
 *
 * Wrong when: a wait in the loader hides a wait for another rank (the step would not end sooner).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.05;   /* of a step */
static const double least_unknown = 0.1;  /* where no function stands out */
static const double least_untraced = 0.3; /* where a GPU may be busy meanwhile */
static const double least_start = 0.05;   /* of a step, for starts of epochs to be a cause */
static const double short_load_ns = 2e6;  /* per step: workers would not help */
static const double most_start = 0.5;     /* of loading */
static const double least_handing_over = 0.25;
/* Workers that are idle for most of the time are fast enough: batches are on their way. */
static const double most_idle = 2.0 / 3, most_busy = 1.0 / 3;

/* How a training loads its data. */
struct loading {
    long n_workers; /* below 0: unknown */
    bool by_workers, is_handing_over;
    bool is_restarting; /* that is so because each epoch starts workers */
    double start_share; /* of a step: starts of epochs */
};

/* Torch's own loader, or what hands batches over between its processes. */
static bool is_loaders(const struct marey__facts *facts, uint32_t function)
{
    static const char *const files[] = {"/multiprocessing/", "/threading.py", "/queue.py",
                                        "/selectors.py", "/torch/utils/data/"};
    const char *const file = marey_samples_get_function(facts->set.samples, function)->file;
    for (size_t i = 0; i < MAREY__COUNT_OF(files); i++)
        if (strstr(file, files[i]) != NULL)
            return true;
    return false;
}

/* Also finds the place in workers. Returns false on out of memory. */
static bool find_loading(const struct marey__facts *facts, double share, double exposed,
                         struct loading *l, struct marey__fact_place *place)
{
    const uint64_t workers = MAREY__FACT_ONLY(MAREY__FACT_WORKER);
    const char *const loader = facts->trainers[0].loader;
    l->n_workers = marey__fact_number(loader, "num_workers");
    l->by_workers = facts->has_workers && l->n_workers != 0;
    if (!l->by_workers)
        return true;
    if (!marey__facts_find_place(facts, workers, MAREY__FACT_ALL, place))
        return false;
    const bool is_busy =
        facts->workers_idle >= 0 && facts->workers_idle < most_busy &&
        (double)marey__facts_sum(facts, workers).ns >= short_load_ns * (double)facts->n_steps;
    l->start_share = exposed * (double)facts->start_of_epoch_ns / (double)facts->steady_ns;
    if (loader == NULL || strstr(loader, "\"persistent_workers\":false") == NULL)
        l->start_share = 0;
    l->is_handing_over = facts->workers_idle >= most_idle || place->function == 0 ||
                         (is_loaders(facts, place->function) && !is_busy);
    l->is_restarting = l->is_handing_over && l->start_share >= most_start * share;
    return true;
}

static const char *where_of(const struct loading *l)
{
    return l->is_restarting ? "in the main process, which starts data-loader workers in each epoch"
           : l->is_handing_over ? "in the main process, which waits for batches on their way from "
                                  "data-loader workers"
           : l->by_workers      ? "in the data-loader workers"
           : l->n_workers == 0  ? "in the main process: the DataLoader has num_workers=0"
                                : "in the main process";
}

static void put_action(const struct marey__diagnosis *d, const struct loading *l, double wait_ns,
                       char *out, size_t size)
{
    const bool is_full = marey__diagnosis_find(d, "cpu-oversubscribed") != NULL;
    if (!l->is_restarting && !l->is_handing_over && l->n_workers > 0 && !is_full) {
        snprintf(out, size, "Try more workers than num_workers=%ld, or make this function faster.",
                 l->n_workers);
        return;
    }
    snprintf(
        out, size, "%s",
        l->is_restarting
            ? "Set persistent_workers=True: workers then start once. If loading is fast, "
              "use num_workers=0."
        : l->is_handing_over
            ? "Workers are fast enough, but handing over batches is slow: use num_workers=0 if "
              "loading is fast, hand over fewer and larger tensors, or set "
              "persistent_workers=True where epochs are short."
        : !l->by_workers && wait_ns < short_load_ns
            ? "Loading is short: handing batches over between processes would take as long. Use "
              "larger batches, or index tensors without a DataLoader."
        : l->n_workers == 0 ? "Try num_workers=4, or make this function faster."
        : l->n_workers > 0
            ? "There are no CPU cores for more workers: make this function faster, or start fewer "
              "threads."
            : "Load batches ahead in other processes, or make this function faster.");
}

static void add_start_of_epochs(struct marey__finding *out, const struct loading *l)
{
    struct marey__cause *const cause = &out->because[out->n_because++];
    cause->id = "worker-restart";
    cause->phase = MAREY__FACT_DATA;
    cause->share = l->start_share;
    snprintf(cause->claim, sizeof cause->claim,
             "each epoch starts new workers: its start takes %.0f %% of the time of its steps.",
             l->start_share * 100);
    snprintf(cause->action, sizeof cause->action, "Set persistent_workers=True.");
}

bool marey__find_input_bound(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    struct loading l = {0};
    double share, error;
    if (facts->n_steps < 2 || facts->steady_ns == 0)
        return false;
    marey__facts_share(facts, MAREY__FACT_DATA, &share, &error);
    const double traced = marey__facts_exposed_data(facts);
    const bool is_untraced = facts->has_device && traced < 0;
    const double exposed = traced < 0 ? 1 : traced;
    /* What one rank loads longer than the others is reported as straggler. */
    const struct marey__finding *const straggler = marey__diagnosis_find(d, "straggler");
    if (straggler != NULL && straggler->statement.phase == MAREY__FACT_DATA)
        share -= straggler->statement.share;
    share *= exposed;
    error *= exposed;
    if (share < (is_untraced ? least_untraced : least_share) ||
        !find_loading(facts, share, exposed, &l, &out->statement.place) ||
        (l.is_handing_over && share < (l.is_restarting ? least_unknown : least_handing_over)))
        return false;
    out->statement.id = "input-bound";
    out->statement.phase = MAREY__FACT_DATA;
    out->confidence = is_untraced ? 0.5 : 0.9;
    marey__finding_set_share(out, share, error);
    if (is_untraced) /* by how much, if at all, is unknown */
        out->gain_low = MAREY__GAIN_LOW_LEAST;
    if ((!l.by_workers || l.is_handing_over) &&
        !marey__facts_find_place(facts, MAREY__FACT_BOTH(MAREY__FACT_DATA), MAREY__FACT_ALL,
                                 &out->statement.place))
        return false;
    if (facts->has_samples && out->statement.place.function == 0 && share < least_unknown)
        return false;
    const double step_ns = marey__facts_step_ns(facts);
    char step[32], wait[32];
    marey_text_number(step_ns, MAREY_UNIT_NS, step, sizeof step);
    marey_text_number(step_ns * share, MAREY_UNIT_NS, wait, sizeof wait);
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Input-bound: training waits for data %s%.0f %% of each step (%s of %s)%s.",
             is_untraced ? "at most " : "", share * 100, wait, step,
             is_untraced ? "; GPU activity meanwhile was not traced" : "");
    snprintf(out->detail, sizeof out->detail, "of loading, %s.", where_of(&l));
    put_action(d, &l, share * step_ns, out->statement.action, sizeof out->statement.action);
    if (l.by_workers && l.start_share >= least_start)
        add_start_of_epochs(out, &l);
    return true;
}
