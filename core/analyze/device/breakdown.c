/*
 * A breakdown as a whole: every process is read and swept, several at a time, and the tables are made of what is left of
 * them. Processes that only help (loaders of data) are left out where others speak for the run.
 */
#include <string.h>

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "read/internal.h"

const char *const marey__window_names[2] = {"gpu_span", "steps"};
const char *const marey__by_names[5] = {"", "step", "range", "stream", "process-group"};

/* ---- one process ---- */

static void count_outside(struct marey__process_breakdown *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++)
        for (size_t i = 0; i < p->set.devices[d].n_work; i++) {
            const struct marey__work *work = &p->set.devices[d].work[i];
            p->n_work++;
            if (p->set.devices[d].device < 0 || marey__step_of(&p->set, work) != MAREY__NO_INDEX)
                continue;
            p->n_outside++;
            p->outside_ns += work->end_ns - work->begin_ns;
        }
}

/* What only the sweeps need. */
static void drop_work(struct marey__work_set *set)
{
    for (size_t d = 0; d < set->n_devices; d++) {
        marey__free(set->devices[d].work);
        set->devices[d].work = NULL;
        set->devices[d].n_work = set->devices[d].work_cap = 0;
    }
    marey__free(set->launches);
    marey__free(set->ranges);
    set->launches = NULL;
    set->ranges = NULL;
    set->n_launches = set->launches_cap = set->n_ranges = set->ranges_cap = 0;
}

/* The window of the first line is what is explained. A process without devices is idle where it says so. */
static marey_status ask_why_idle(const marey_breakdown *breakdown, struct marey__process_breakdown *p)
{
    const struct marey__work_set *set = &p->set;
    struct marey__idle_windows windows = {.whole = p->windows.spans,
                                          .stride = 1,
                                          .steps = set->n_steps != 0 ? p->windows.steps : NULL};
    if (breakdown->window == MAREY__WINDOW_STEPS) {
        windows.whole = p->windows.united;
        windows.n_whole = p->windows.n_united;
        windows.stride = set->n_steps;
    }
    if (set->n_devices == 0 || (set->devices[0].device < 0 && set->n_waits == 0))
        return MAREY_OK;
    return marey__idle_find(&p->idle, set, &breakdown->rules, &windows);
}

static marey_status break_down_process(const marey_breakdown *breakdown,
                                       struct marey__process_breakdown *p)
{
    const struct marey__work_options options = {.rules = &breakdown->rules,
                                                .wants_ranges = breakdown->by == MAREY__BY_RANGE};
    MAREY_TRY(marey__work_set_read(&p->set, p->recording, p->process, &options));
    MAREY__TRY_MEMORY(
        marey__device_windows_make(&p->windows, &p->set) &&
        marey__device_rows_make(&p->devices, &p->set, &p->windows) &&
        marey__by_rows_make(&p->by, &p->set, &p->windows, breakdown->by, breakdown->window));
    MAREY_TRY(ask_why_idle(breakdown, p));
    MAREY__TRY_MEMORY(marey__collectives_keep(&p->set));
    count_outside(p);
    drop_work(&p->set);
    return MAREY_OK;
}

static void free_process(struct marey__process_breakdown *p)
{
    marey__work_set_fini(&p->set);
    marey__device_windows_fini(&p->windows);
    marey__idle_fini(&p->idle);
    marey__free(p->devices.rows);
    marey__free(p->by.rows);
}

/* ---- several at a time ---- */

static marey_status break_down_nth(void *ctx, size_t i)
{
    marey_breakdown *breakdown = ctx;
    struct marey__process_breakdown *p = &breakdown->processes[i];
    return p->is_left_out ? MAREY_OK : break_down_process(breakdown, p);
}

static marey_status read_processes(marey_breakdown *breakdown,
                                   const struct marey_breakdown_options *options)
{
    const struct marey__tasks tasks = {
        .run = break_down_nth,
        .ctx = breakdown,
        .n = breakdown->n_processes,
        .n_jobs = options->n_jobs,
        .progress = options->progress,
        .progress_ctx = options->progress_ctx,
    };
    return marey__tasks_run(&tasks);
}

/* ---- who counts ---- */

bool marey__has_streams(const marey_recording *recording, size_t process)
{
    const uint32_t n = marey_recording_process(recording, process)->n_lanes;
    for (uint32_t i = 0; i < n; i++)
        if (marey_recording_lane(recording, process, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

/* Where some processes have streams of a GPU, the others need not even be read. */
static void leave_out_hosts(marey_breakdown *breakdown)
{
    bool any = false;
    for (size_t i = 0; i < breakdown->n_processes; i++)
        any |= marey__has_streams(breakdown->processes[i].recording, breakdown->processes[i].process);
    for (size_t i = 0; i < breakdown->n_processes; i++)
        breakdown->processes[i].is_left_out =
            any &&
            !marey__has_streams(breakdown->processes[i].recording, breakdown->processes[i].process);
}

static bool leads(const struct marey__process_breakdown *p)
{
    uint64_t comm_ns = 0;
    for (size_t i = 0; i < p->devices.n; i++)
        for (size_t atom = 0; atom < MAREY__N_ATOMS; atom++)
            comm_ns += (atom & MAREY__COMMUNICATES) != 0 ? p->devices.rows[i].atoms.ns[atom] : 0;
    return p->set.n_steps != 0 || comm_ns != 0;
}

/* Of processes without a GPU, those that take no steps and communicate nothing help those that do. */
static void leave_out_helpers(marey_breakdown *breakdown)
{
    bool any = false;
    for (size_t i = 0; i < breakdown->n_processes; i++)
        any |= leads(&breakdown->processes[i]);
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        struct marey__process_breakdown *p = &breakdown->processes[i];
        const bool is_host = p->devices.n != 0 && p->devices.rows[0].device < 0;
        p->is_left_out |= any && is_host && !leads(p);
    }
}

/* ---- the whole ---- */

static marey_status take_options(marey_breakdown *breakdown,
                                 const struct marey_breakdown_options *options)
{
    const char *by = options->by != NULL ? options->by : "",
               *window = options->window != NULL ? options->window : marey__window_names[0];
    size_t i = 0;
    while (i < MAREY__COUNT_OF(marey__by_names) && strcmp(by, marey__by_names[i]) != 0)
        i++;
    if (i == MAREY__COUNT_OF(marey__by_names))
        return marey__fail(
            MAREY_EINVAL, "a breakdown is by step, range, stream or process-group, and not by '%s'",
            by);
    breakdown->by = (enum marey__by)i;
    if (strcmp(window, marey__window_names[0]) != 0 && strcmp(window, marey__window_names[1]) != 0)
        return marey__fail(MAREY_EINVAL, "the window is gpu_span or steps, and not '%s'", window);
    breakdown->window =
        strcmp(window, marey__window_names[1]) == 0 ? MAREY__WINDOW_STEPS : MAREY__WINDOW_SPAN;
    return marey__rules_load(&breakdown->rules, options->rules);
}

static marey_status list_processes(marey_breakdown *breakdown, marey_recording *const *recordings,
                                   size_t n)
{
    size_t n_processes = 0;
    for (size_t r = 0; r < n; r++)
        n_processes += marey_recording_n_processes(recordings[r]);
    breakdown->processes = marey__calloc(n_processes + 1, sizeof *breakdown->processes);
    breakdown->title = marey__recordings_title(recordings, n);
    MAREY__TRY_MEMORY(breakdown->processes != NULL && breakdown->title != NULL);
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++)
            breakdown->processes[breakdown->n_processes++] =
                (struct marey__process_breakdown){.recording = recordings[r], .process = p};
    return MAREY_OK;
}

/* There must be something to tell, and steps where the window is theirs. */
static marey_status check(const marey_breakdown *breakdown)
{
    bool has_rows = false, has_steps = false;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        has_rows |= !p->is_left_out && p->devices.n != 0;
        has_steps |= !p->is_left_out && p->devices.n != 0 && p->set.n_steps != 0;
    }
    if (!has_rows)
        return marey__fail(MAREY_EFORMAT,
                           "%s has no GPU work and no ranges: there is nothing to break down",
                           breakdown->title);
    if (has_steps || (breakdown->window == MAREY__WINDOW_SPAN && breakdown->by != MAREY__BY_STEP))
        return MAREY_OK;
    return marey__fail(
        MAREY_EFORMAT,
        "%s has no steps: they come from marey.iteration(), or from the schedule and "
        "step() of torch.profiler",
        breakdown->title);
}

static int32_t rank_of(const marey_breakdown *breakdown, size_t i)
{
    const struct marey__process_breakdown *p = &breakdown->processes[i];
    return marey_recording_process(p->recording, p->process)->rank;
}

/* Whether the recording that begins with process `i` has a rank that those from `first` on have, or an unknown one. */
static bool is_another_job(const marey_breakdown *breakdown, size_t first, size_t i)
{
    const marey_recording *recording = breakdown->processes[i].recording;
    for (size_t own = i;
         own < breakdown->n_processes && breakdown->processes[own].recording == recording; own++) {
        if (rank_of(breakdown, own) < 0)
            return true;
        for (size_t other = first; other < i; other++)
            if (rank_of(breakdown, own) == rank_of(breakdown, other))
                return true;
    }
    return false;
}

/*
 * What ranks did together. Recordings of different ranks are of one job, as files of a profiler are; where a rank comes
 * again, it is a repeat.
 */
static marey_status match_collectives(marey_breakdown *breakdown)
{
    uint32_t job = 0;
    size_t first = 0;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        if (i > 0 && p->recording != p[-1].recording && is_another_job(breakdown, first, i)) {
            job++;
            first = i;
        }
        if (!p->is_left_out)
            MAREY_TRY(marey__collectives_add(&breakdown->collectives, job, &p->set));
    }
    MAREY_TRY(marey__collectives_match(&breakdown->collectives));
    breakdown->clocks = breakdown->collectives.clocks;
    breakdown->n_nodes = breakdown->collectives.n_nodes;
    breakdown->clocks_within_ns = breakdown->collectives.uncertainty_ns;
    breakdown->n_aligned_by = breakdown->collectives.n_aligned_by;
    breakdown->clocks_drift = breakdown->collectives.has_drifted;
    return MAREY_OK;
}

static marey_status run(marey_breakdown *breakdown, marey_recording *const *recordings, size_t n,
                        const struct marey_breakdown_options *options)
{
    MAREY_TRY(take_options(breakdown, options));
    MAREY_TRY(list_processes(breakdown, recordings, n));
    leave_out_hosts(breakdown);
    MAREY_TRY(read_processes(breakdown, options));
    leave_out_helpers(breakdown);
    MAREY_TRY(check(breakdown));
    MAREY_TRY(match_collectives(breakdown));
    return marey__breakdown_make_tables(breakdown, recordings, n);
}

/* What was only needed to make the tables. */
static void free_making(marey_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++)
        free_process(&breakdown->processes[i]);
    marey__free(breakdown->processes);
    marey__collectives_fini(&breakdown->collectives);
    marey__rules_fini(&breakdown->rules);
    breakdown->processes = NULL;
    breakdown->n_processes = 0;
}

marey_status marey_breakdown_create(marey_recording *const *recordings, size_t n,
                                    const struct marey_breakdown_options *options,
                                    marey_breakdown **out)
{
    static const struct marey_breakdown_options defaults;
    marey_breakdown *breakdown = marey__calloc(1, sizeof *breakdown);
    MAREY__TRY_MEMORY(breakdown != NULL);
    marey__recordings_keep_events(recordings, n); /* idle times need a second visit */
    const marey_status status = run(breakdown, recordings, n, options != NULL ? options : &defaults);
    marey__recordings_drop_events(recordings, n);
    free_making(breakdown);
    if (status != MAREY_OK) {
        marey_breakdown_destroy(breakdown);
        return status;
    }
    *out = breakdown;
    return MAREY_OK;
}

void marey_breakdown_destroy(marey_breakdown *breakdown)
{
    if (breakdown == NULL)
        return;
    for (size_t t = 0; t < MAREY__N_BROKEN; t++)
        marey_table_destroy(breakdown->tables[t]);
    marey__free(breakdown->title);
    marey__free(breakdown);
}

marey_table *marey_breakdown_table(marey_breakdown *breakdown, const char *name)
{
    for (size_t t = 0; t < MAREY__N_BROKEN; t++)
        if (breakdown->tables[t] != NULL && strcmp(marey_table_name(breakdown->tables[t]), name) == 0)
            return breakdown->tables[t];
    return NULL;
}
