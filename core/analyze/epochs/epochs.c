/* Epochs as a whole: recordings are read, the same epoch of all ranks put together, and tables made. */
#include <string.h>

#include "analyze/epochs/internal.h"

const char *const marey__epoch_phase_names[MAREY__N_PHASES] = {
    "data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other"};

static bool is_before(const void *a, const void *b)
{
    const struct marey__epoch_time *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run;
    if (x->number != y->number)
        return x->number < y->number;
    if (x->process->rank != y->process->rank)
        return x->process->rank < y->process->rank;
    return x->process->start_unix_ns < y->process->start_unix_ns;
}

/* ---- the same epoch on all ranks ---- */

static bool group_counts(const struct marey__epochs *epochs, const struct marey__epoch_group *group,
                         bool with_first)
{
    const uint32_t bad = MAREY__EPOCH_OPEN | MAREY__EPOCH_CUT | (with_first ? 0 : MAREY__EPOCH_FIRST);
    for (size_t i = group->first; i < group->first + group->n; i++)
        if ((epochs->times[i].flags & bad) != 0)
            return false;
    return true;
}

/* Say which of a run's epochs count, groups `from` up to `to`. False when none does. */
static bool choose(struct marey__epochs *epochs, size_t from, size_t to, bool with_first)
{
    bool any = false;
    for (size_t g = from; g < to; g++) {
        epochs->groups[g].counts = group_counts(epochs, &epochs->groups[g], with_first);
        any |= epochs->groups[g].counts;
    }
    return any;
}

static void choose_all(struct marey__epochs *epochs)
{
    size_t from = 0;
    for (size_t g = 1; g <= epochs->n_groups; g++) {
        if (g < epochs->n_groups && epochs->times[epochs->groups[g].first].run ==
                                        epochs->times[epochs->groups[from].first].run)
            continue;
        if (!choose(epochs, from, g, epochs->with_first))
            (void)choose(epochs, from, g, true); /* one epoch is better than none */
        from = g;
    }
    for (size_t g = 0; g < epochs->n_groups; g++)
        for (size_t i = 0; i < epochs->groups[g].n; i++)
            epochs->times[epochs->groups[g].first + i].flags |=
                epochs->groups[g].counts ? MAREY__EPOCH_COUNTS : 0u;
}

static bool make_groups(struct marey__epochs *epochs)
{
    for (size_t i = 0; i < epochs->n_times; i++) {
        const struct marey__epoch_time *time = &epochs->times[i];
        if (i > 0 && time->run == time[-1].run && time->number == time[-1].number) {
            epochs->groups[epochs->n_groups - 1].n++;
            continue;
        }
        if (!MAREY__PUSH(epochs->groups, epochs->n_groups, epochs->groups_cap,
                         (struct marey__epoch_group){.first = i, .n = 1}))
            return false;
    }
    for (size_t g = 0; g < epochs->n_groups; g++)
        marey__epoch_group_judge(epochs, &epochs->groups[g]);
    choose_all(epochs);
    return true;
}

/* ---- making ---- */

static marey_status read_all(struct marey__epochs *epochs, const struct marey__request *request)
{
    for (uint32_t i = 0; i < MAREY__PHASE_OTHER; i++) {
        const char *name = marey__epoch_phase_names[i];
        if (marey__names_number(&epochs->names, name, strlen(name)) == MAREY__NO_NAME)
            return marey__no_memory();
    }
    for (size_t i = 0; i < request->n; i++) {
        MAREY_TRY(marey__epochs_read(epochs, request->recordings[i]));
        marey__report_progress(request, (double)(i + 1) / (double)request->n);
    }
    return MAREY_OK;
}

static marey_status fill(struct marey__epochs *epochs, const marey_report *report,
                         const struct marey__request *request)
{
    MAREY_TRY(read_all(epochs, request));
    if (epochs->n_times == 0)
        return marey__report_missing(report);
    for (size_t i = 0; i < epochs->n_times; i++)
        epochs->times[i].run = marey__process_runs_place(&epochs->runs, epochs->times[i].run);
    if (!marey__sort_runs(epochs->times, epochs->n_times, sizeof *epochs->times, is_before) ||
        !make_groups(epochs) || !marey__epochs_fill(epochs))
        return marey__no_memory();
    return MAREY_OK;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__epochs epochs = {.tables = report->tables,
                                   .with_first = marey__setting_is_on(request, "first")};
    const marey_status status = fill(&epochs, report, request);
    marey__free(epochs.times);
    marey__free(epochs.parts);
    marey__free(epochs.runs.list);
    marey__free(epochs.groups);
    marey__names_fini(&epochs.names);
    return status;
}

/* The summary has a row for each epoch of a process. */
static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)recordings;
    return n != 0 &&
           (ranges == NULL || marey_table_n_rows(marey_report_table(ranges, "epochs")) != 0);
}

/* ---- the entry ---- */

static const struct marey_setting settings[] = {
    {"first", MAREY_SETTING_FLAG, NULL, "the first epoch counts in averages as well"},
};

/* The summary has tables `epochs` and `phases` as well. */
static const struct marey__page_table page_tables[] = {{"epochs", "epoch times"},
                                                       {"averages", "epoch averages"},
                                                       {"phases", "phases of epochs"},
                                                       {"ranks", "epochs by rank"},
                                                       {0}};

extern const struct marey__analysis marey__analysis_epochs;
const struct marey__analysis marey__analysis_epochs = {
    .about = {.name = "epochs",
              .help = "how long an epoch takes, on which rank, in which phases; the\n"
                      "first one does not count in averages",
              .needs = "marey.TrainingMonitor, the callbacks of marey.hf and marey.lightning, "
                       "marey.epoch() and marey_epoch_begin() record them",
              .examples =
                  "  marey report train.marey --epochs            epochs, by rank and phase",
              .settings = settings,
              .n_settings = MAREY__COUNT_OF(settings),
              .tables = marey__epoch_tables,
              .n_tables = MAREY__N_EPOCH_TABLES,
              .csv = "ranks"},
    .make = make,
    .text = marey__epochs_text,
    .is_there = is_there,
    .page = page_tables,
};
