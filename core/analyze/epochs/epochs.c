/* Epochs as a whole: recordings are read, the same epoch of all ranks put together, and tables made. */
#include <string.h>

#include "analyze/epochs/epochs_whole.h"

const char *const marey__epoch_phase_names[MAREY__N_PHASES] = {
    "data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other"};

/* ---- runs in order of time ---- */

static void order_runs(struct marey_epoch_report *report)
{
    for (size_t i = 0; i < report->n_times; i++) {
        const struct marey__process_run *own = &report->runs.list[report->times[i].run];
        uint32_t place = 0;
        for (size_t r = 0; r < report->runs.n; r++) {
            const struct marey__process_run *run = &report->runs.list[r];
            place += run->start_unix_ns < own->start_unix_ns ||
                     (run->start_unix_ns == own->start_unix_ns && run < own);
        }
        report->times[i].run = place;
    }
}

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

static bool group_counts(const struct marey_epoch_report *report,
                         const struct marey__epoch_group *group, bool with_first)
{
    const uint32_t bad = MAREY__EPOCH_OPEN | MAREY__EPOCH_CUT | (with_first ? 0 : MAREY__EPOCH_FIRST);
    for (size_t i = group->first; i < group->first + group->n; i++)
        if ((report->times[i].flags & bad) != 0)
            return false;
    return true;
}

/* Say which of a run's epochs count, groups `from` up to `to`. False when none does. */
static bool choose(struct marey_epoch_report *report, size_t from, size_t to, bool with_first)
{
    bool any = false;
    for (size_t g = from; g < to; g++) {
        report->groups[g].counts = group_counts(report, &report->groups[g], with_first);
        any |= report->groups[g].counts;
    }
    return any;
}

static void choose_all(struct marey_epoch_report *report)
{
    size_t from = 0;
    for (size_t g = 1; g <= report->n_groups; g++) {
        if (g < report->n_groups && report->times[report->groups[g].first].run ==
                                        report->times[report->groups[from].first].run)
            continue;
        if (!choose(report, from, g, report->options.with_first != 0))
            (void)choose(report, from, g, true); /* one epoch is better than none */
        from = g;
    }
    for (size_t g = 0; g < report->n_groups; g++)
        for (size_t i = 0; i < report->groups[g].n; i++)
            report->times[report->groups[g].first + i].flags |=
                report->groups[g].counts ? MAREY__EPOCH_COUNTS : 0u;
}

static bool make_groups(struct marey_epoch_report *report)
{
    for (size_t i = 0; i < report->n_times; i++) {
        const struct marey__epoch_time *time = &report->times[i];
        if (i > 0 && time->run == time[-1].run && time->number == time[-1].number) {
            report->groups[report->n_groups - 1].n++;
            continue;
        }
        if (!MAREY__PUSH(report->groups, report->n_groups, report->groups_cap,
                         (struct marey__epoch_group){.first = i, .n = 1}))
            return false;
    }
    for (size_t g = 0; g < report->n_groups; g++)
        marey__epoch_group_judge(report, &report->groups[g]);
    choose_all(report);
    return true;
}

/* ---- making ---- */

static marey_status read_all(struct marey_epoch_report *report, marey_recording *const *recordings,
                             size_t n)
{
    for (uint32_t i = 0; i < MAREY__PHASE_OTHER; i++) {
        const char *name = marey__epoch_phase_names[i];
        if (marey__names_number(&report->names, name, strlen(name)) == MAREY__NO_NAME)
            return marey__no_memory();
    }
    for (size_t i = 0; i < n; i++) {
        MAREY_TRY(marey__epochs_read(report, recordings[i]));
        if (report->options.progress != NULL)
            report->options.progress(report->options.progress_ctx, (double)(i + 1) / (double)n);
    }
    return MAREY_OK;
}

static marey_status make(struct marey_epoch_report *report, marey_recording *const *recordings,
                         size_t n)
{
    report->title = marey__recordings_title(recordings, n);
    MAREY__TRY_MEMORY(report->title != NULL);
    MAREY_TRY(read_all(report, recordings, n));
    if (report->n_times == 0)
        return marey__fail(
            MAREY_EFORMAT,
            "%s has no epochs in it: marey.TrainingMonitor, the callbacks of marey.hf "
            "and marey.lightning, marey.epoch() and marey_epoch_begin() tell of them",
            report->title);
    order_runs(report);
    MAREY__TRY_MEMORY(
        marey__sort_runs(report->times, report->n_times, sizeof *report->times, is_before) &&
        make_groups(report));
    return marey__epochs_make_tables(report);
}

/* What was only needed to make the tables. */
static void free_making(struct marey_epoch_report *report)
{
    marey__free(report->times);
    marey__free(report->parts);
    marey__free(report->runs.list);
    marey__free(report->groups);
    marey__names_fini(&report->names);
}

marey_status marey_epoch_report_create(marey_recording *const *recordings, size_t n,
                                       const struct marey_epoch_report_options *options,
                                       marey_epoch_report **out)
{
    marey_epoch_report *report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    if (options != NULL)
        report->options = *options;
    const marey_status status = make(report, recordings, n);
    free_making(report);
    if (status != MAREY_OK) {
        marey_epoch_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

void marey_epoch_report_destroy(marey_epoch_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < MAREY__N_EPOCH_TABLES; i++)
        marey_table_destroy(report->tables[i]);
    marey__free(report->title);
    marey__free(report);
}

marey_table *marey_epoch_report_table(marey_epoch_report *report, const char *name)
{
    for (size_t i = 0; i < MAREY__N_EPOCH_TABLES; i++)
        if (strcmp(marey_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
