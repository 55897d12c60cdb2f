/*
 * Epochs: one pass over each process collects its epochs and the time of each phase in them. Then the same epochs of
 * all ranks are grouped, the slowest rank is found, and tables are made.
 */
#include <math.h>
#include <string.h>

#include "analyze/epochs/internal.h"
#include "read/internal.h"

const char *const marey__epoch_phase_names[MAREY__N_PHASES] = {
    "data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other"};

/* ---- reading ---- */

/* A process while it is read. */
struct reading {
    struct marey__epochs *epochs;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__progress progress;
    uint64_t last_ns;  /* the open phase is counted up to here */
    uint64_t began_ns; /* of the open epoch, if `is_open` */
    uint32_t run;
    bool is_open, is_first;
};

static struct marey__epoch_time *epoch_of(const struct reading *r)
{
    return &r->epochs->times[r->epochs->n_times - 1];
}

/* The entry of the open phase in the open epoch, created if needed; NULL on out of memory. */
static struct marey__epoch_part *part_of(struct reading *r, uint32_t site)
{
    struct marey__epochs *epochs = r->epochs;
    struct marey__epoch_time *epoch = epoch_of(r);
    const struct marey_site_info *info = marey_recording_site(r->recording, r->process->index, site);
    const uint32_t name = marey__names_number(&epochs->names, info->name, info->name_len);
    if (name == MAREY__NO_NAME)
        return NULL;
    for (size_t i = epoch->first_part; i < epochs->n_parts; i++)
        if (epochs->parts[i].name == name)
            return &epochs->parts[i];
    if (!marey__grow(&epochs->parts, &epochs->parts_cap, epochs->n_parts + 1, sizeof *epochs->parts))
        return NULL;
    epoch->n_parts++;
    epochs->parts[epochs->n_parts] = (struct marey__epoch_part){.name = name};
    return &epochs->parts[epochs->n_parts++];
}

/* Advance time to `ns`, for the open phase. Returns false on out of memory. */
static bool go_on(struct reading *r, uint64_t ns)
{
    const struct marey__span *phase = &r->progress.phase;
    const uint64_t since_ns = r->last_ns;
    r->last_ns = MAREY__MAX(r->last_ns, ns);
    if (!r->is_open || !phase->is_open || phase->site > r->process->n_sites || r->last_ns == since_ns)
        return true;
    struct marey__epoch_part *part = part_of(r, phase->site);
    if (part == NULL)
        return false;
    part->ns += r->last_ns - since_ns;
    if (part->name < MAREY__PHASE_OTHER)
        epoch_of(r)->phase_ns[part->name] += r->last_ns - since_ns;
    return true;
}

static bool begin_epoch(struct reading *r)
{
    struct marey__epochs *epochs = r->epochs;
    if (!MAREY__PUSH(epochs->times, epochs->n_times, epochs->times_cap,
                     (struct marey__epoch_time){.process = r->process,
                                                .number = r->progress.epoch.number,
                                                .first_part = epochs->n_parts,
                                                .run = r->run,
                                                .flags = r->is_first ? MAREY__EPOCH_FIRST : 0u}))
        return false;
    r->began_ns = r->last_ns;
    r->is_open = true;
    r->is_first = false;
    return true;
}

static void end_epoch(struct reading *r, const struct marey__span *span)
{
    struct marey__epoch_time *epoch = epoch_of(r);
    const struct marey_process *p = r->process;
    uint64_t known_ns = 0;
    epoch->ns = r->last_ns - r->began_ns;
    epoch->n_iterations = span->n_iterations;
    epoch->samples = span->samples;
    if (span->is_open)
        epoch->flags |= MAREY__EPOCH_OPEN;
    if (p->lost_events != 0 && p->lost_first_ns <= r->last_ns && p->lost_last_ns >= r->began_ns)
        epoch->flags |= MAREY__EPOCH_CUT;
    for (size_t i = 0; i < MAREY__PHASE_OTHER; i++)
        known_ns += epoch->phase_ns[i];
    epoch->phase_ns[MAREY__PHASE_OTHER] = epoch->ns - known_ns;
    r->is_open = false;
}

static bool take_record(struct reading *r, const uint64_t *words, uint64_t ns)
{
    struct marey__span span;
    if (!go_on(r, ns))
        return false;
    if (marey__progress_take(&r->progress, words, ns, &span) && span.kind == MAREY__SPAN_EPOCH &&
        r->is_open)
        end_epoch(r, &span);
    if (r->progress.epoch.is_open && !r->is_open && !begin_epoch(r))
        return false;
    if (marey_record_type_of(words[0]) != MAREY_RECORD_PHASE || !r->progress.phase.is_open ||
        !r->is_open || r->progress.phase.site > r->process->n_sites)
        return true;
    struct marey__epoch_part *part = part_of(r, r->progress.phase.site);
    if (part != NULL)
        part->count++;
    return part != NULL;
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *r = ctx;
    if (batch->gap && r->is_open)
        epoch_of(r)->flags |= MAREY__EPOCH_CUT;
    const uint64_t *word = batch->words, *const end = word + batch->n;
    while (word < end) {
        const bool is_record = marey_word_kind(*word) == MAREY_KIND_RECORD;
        if (is_record && marey__is_progress(marey_record_type_of(*word)) &&
            !take_record(r, word, marey_batch_ns(batch, *word)))
            return marey__no_memory();
        word += is_record ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

static marey_status walk(struct reading *r)
{
    struct marey__span span;
    MAREY_TRY(marey__recording_visit_in_order(r->recording, r->process->index, visit_batch, r));
    if (r->is_open && !go_on(r, r->process->last_ns))
        return marey__no_memory();
    while (marey__progress_finish(&r->progress, r->process->last_ns, &span))
        if (span.kind == MAREY__SPAN_EPOCH && r->is_open)
            end_epoch(r, &span);
    return MAREY_OK;
}

static marey_status read_recording(struct marey__epochs *epochs, marey_recording *recording)
{
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
        struct reading r = {.epochs = epochs,
                            .recording = recording,
                            .process = marey_recording_process(recording, i),
                            .is_first = true};
        r.last_ns = r.process->first_ns;
        MAREY__TRY_MEMORY(marey__process_runs_find(&epochs->runs, r.process, &r.run));
        marey__progress_init(&r.progress, r.process, r.process->first_ns);
        MAREY_TRY(walk(&r));
    }
    return MAREY_OK;
}

/* ---- the slowest rank ---- */

/* Smaller differences between ranks are chance. */
#define STANDS_OUT 0.02

/* Phases in which ranks that exchange gradients wait for one another. */
static bool is_waited_in(enum marey__epoch_phase phase)
{
    return phase == MAREY__PHASE_BACKWARD || phase == MAREY__PHASE_OPTIMIZER;
}

static uint64_t own_ns(const struct marey__epoch_time *time)
{
    uint64_t ns = time->ns;
    for (unsigned phase = 0; phase < MAREY__PHASE_OTHER; phase++)
        ns -= is_waited_in(phase) ? time->phase_ns[phase] : 0;
    return ns;
}

/* The mean of all except one. */
static double mean_of_others(const struct marey__epoch_time *times, size_t n, size_t but,
                             uint64_t (*ns_of)(const struct marey__epoch_time *time))
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += i == but ? 0 : (double)ns_of(&times[i]);
    return n > 1 ? sum / (double)(n - 1) : 0;
}

static uint64_t whole_ns(const struct marey__epoch_time *time)
{
    return time->ns;
}

static size_t longest_of(const struct marey__epoch_time *times, size_t n,
                         uint64_t (*ns_of)(const struct marey__epoch_time *time))
{
    size_t longest = 0;
    for (size_t i = 1; i < n; i++)
        if (ns_of(&times[i]) > ns_of(&times[longest]))
            longest = i;
    return longest;
}

/* The phase with the largest excess over the others; waiting counts only if the rank is slower as a whole. */
static enum marey__epoch_phase phase_behind(const struct marey__epoch_time *times, size_t n,
                                            size_t slowest, bool with_waiting)
{
    enum marey__epoch_phase most = MAREY__PHASE_OTHER;
    double most_ns = -INFINITY;
    for (unsigned phase = 0; phase < MAREY__N_PHASES; phase++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += i == slowest ? 0 : (double)times[i].phase_ns[phase];
        const double more_ns = (double)times[slowest].phase_ns[phase] - sum / (double)(n - 1);
        if (more_ns > most_ns && (with_waiting || !is_waited_in(phase))) {
            most_ns = more_ns;
            most = phase;
        }
    }
    return most;
}

static void judge(const struct marey__epochs *epochs, struct marey__epoch_group *group)
{
    const struct marey__epoch_time *times = &epochs->times[group->first];
    const size_t n = group->n;
    const size_t longest = longest_of(times, n, whole_ns), busiest = longest_of(times, n, own_ns);
    const double least_ns = STANDS_OUT * (double)times[longest].ns;
    const double behind_ns = (double)times[longest].ns - mean_of_others(times, n, longest, whole_ns);
    const double own_behind_ns =
        (double)own_ns(&times[busiest]) - mean_of_others(times, n, busiest, own_ns);
    group->longest = group->first + longest;
    group->slowest = SIZE_MAX;
    if (n < 2)
        return;
    if (behind_ns > least_ns) {
        group->slowest = group->first + longest;
        group->behind_ns = marey__epoch_ns(behind_ns);
        group->slowest_in = phase_behind(times, n, longest, true);
    } else if (own_behind_ns > least_ns) {
        group->slowest = group->first + busiest;
        group->behind_ns = marey__epoch_ns(own_behind_ns);
        group->slowest_in = phase_behind(times, n, busiest, false);
    }
}

MAREY__ORDER_RUNS(is_before, struct marey__epoch_time,
                  MAREY__UP(run) MAREY__UP(number) MAREY__UP(process->rank)
                      MAREY__UP(process->start_unix_ns))

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

/* Select a run's epochs that count, in groups `from` up to `to`. Returns false if there are none. */
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
            (void)choose(epochs, from, g, true); /* use the first epoch if there is no other */
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
        judge(epochs, &epochs->groups[g]);
    choose_all(epochs);
    return true;
}

/* ---- the report ---- */

static marey_status read_all(struct marey__epochs *epochs, const struct marey__request *request)
{
    for (uint32_t i = 0; i < MAREY__PHASE_OTHER; i++) {
        const char *name = marey__epoch_phase_names[i];
        if (marey__names_number(&epochs->names, name, strlen(name)) == MAREY__NO_NAME)
            return marey__no_memory();
    }
    for (size_t i = 0; i < request->n; i++) {
        MAREY_TRY(read_recording(epochs, request->recordings[i]));
        marey__report_progress(request, (double)(i + 1) / (double)request->n);
    }
    return MAREY_OK;
}

static void fini(struct marey__epochs *epochs)
{
    MAREY__FREE_ALL(epochs->times, epochs->parts, epochs->runs.list, epochs->groups);
    marey__names_fini(&epochs->names);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__epochs epochs MAREY__FINALLY(fini) = {
        .tables = report->tables, .with_first = marey__setting_is_on(request, "first")};
    MAREY_TRY(read_all(&epochs, request));
    if (epochs.n_times == 0)
        return marey__report_missing(report);
    for (size_t i = 0; i < epochs.n_times; i++)
        epochs.times[i].run = marey__process_runs_place(&epochs.runs, epochs.times[i].run);
    MAREY__TRY_MEMORY(marey__sort_runs(epochs.times, epochs.n_times, sizeof *epochs.times, is_before) &&
                      make_groups(&epochs) && marey__epochs_fill(&epochs));
    return MAREY_OK;
}

/* The summary has a row for each epoch of a process. */
static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)recordings;
    return n != 0 &&
           (ranges == NULL || marey_table_n_rows(marey_report_table(ranges, "epochs")) != 0);
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"first", MAREY_SETTING_FLAG, NULL, "the first epoch counts in averages as well"},
};

/* The summary also has tables `epochs` and `phases`. */
static const struct marey__page_table page_tables[] = {{"epochs", "epoch times"},
                                                       {"averages", "epoch averages"},
                                                       {"phases", "phases of epochs"},
                                                       {"ranks", "epochs by rank"},
                                                       {0}};

const struct marey__analysis marey__analysis_epochs = {
    .about = {.name = "epochs",
              .help = "how long an epoch takes, on which rank, in which phases; the\n"
                      "first one does not count in averages",
              .needs = "marey.TrainingMonitor, the callbacks of marey.hf and marey.lightning, "
                       "marey.epoch() and marey_epoch_begin() record them",
              .examples =
                  "  marey report train.marey --epochs            epochs, by rank and phase",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(marey__epoch_tables),
              .csv = "ranks"},
    .make = make,
    .text = marey__epochs_text,
    .is_there = is_there,
    .page = page_tables,
};
