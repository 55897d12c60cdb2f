/*
 * The breakdown: reads and sweeps the processes in parallel, then fills the tables from the sums. Helper processes,
 * such as data loader workers, are excluded.
 */
#include "analyze/device/internal.h"
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

/* Explains idle time in the window of the first line. For a process without devices, its ranges show idle time. */
static marey_status find_idle(const struct marey__breakdown *breakdown,
                              struct marey__process_breakdown *p)
{
    const struct marey__work_set *set = &p->set;
    struct marey__idle_windows windows = {.whole = p->windows.spans,
                                          .stride = 1,
                                          .steps = set->n_steps != 0 ? p->windows.steps : NULL};
    if (breakdown->facts->window == MAREY__WINDOW_STEPS) {
        windows.whole = p->windows.united;
        windows.n_whole = p->windows.n_united;
        windows.stride = set->n_steps;
    }
    if (set->n_devices == 0 || (set->devices[0].device < 0 && set->n_waits == 0))
        return MAREY_OK;
    return marey__idle_find(&p->idle, set, &breakdown->rules, &windows);
}

static marey_status break_down_process(const struct marey__breakdown *breakdown,
                                       struct marey__process_breakdown *p)
{
    const struct marey__work_options options = {
        .rules = &breakdown->rules, .wants_ranges = breakdown->facts->by == MAREY__BY_RANGE};
    MAREY_TRY(marey__work_set_read(&p->set, p->recording, p->process, &options));
    MAREY__TRY_MEMORY(marey__device_windows_make(&p->windows, &p->set) &&
                      marey__device_rows_make(&p->devices, &p->set, &p->windows) &&
                      marey__by_rows_make(&p->by, &p->set, &p->windows, breakdown->facts->by,
                                          breakdown->facts->window));
    MAREY_TRY(find_idle(breakdown, p));
    MAREY__TRY_MEMORY(marey__collectives_keep(&p->set));
    count_outside(p);
    marey__work_set_drop_work(&p->set);
    return MAREY_OK;
}

static void free_process(struct marey__process_breakdown *p)
{
    marey__work_set_fini(&p->set);
    marey__device_windows_fini(&p->windows);
    marey__idle_fini(&p->idle);
    MAREY__FREE_ALL(p->devices.rows, p->by.rows);
}

/* ---- parallel reading ---- */

static marey_status break_down_nth(void *ctx, size_t i)
{
    struct marey__breakdown *breakdown = ctx;
    struct marey__process_breakdown *p = &breakdown->processes[i];
    return p->is_left_out ? MAREY_OK : break_down_process(breakdown, p);
}

/* ---- selection of processes ---- */

marey_status marey__run_for_each(const struct marey__request *request, size_t n,
                                 marey_status (*run)(void *ctx, size_t i), void *ctx)
{
    const struct marey__tasks tasks = {
        .run = run,
        .ctx = ctx,
        .n = n,
        .n_jobs = request->options->n_jobs,
        .progress = request->options->progress,
        .progress_ctx = request->options->progress_ctx,
    };
    return marey__tasks_run(&tasks);
}

/* If some processes have GPU streams, the others need not be read. */
static void leave_out_hosts(struct marey__breakdown *breakdown)
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

/* Among processes without a GPU, those with neither steps nor communication are helpers of the others. */
static void leave_out_helpers(struct marey__breakdown *breakdown)
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

/* ---- the report ---- */

static marey_status list_processes(struct marey__breakdown *breakdown,
                                   const struct marey__request *request)
{
    size_t cap = 0;
    for (size_t r = 0; r < request->n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(request->recordings[r]); p++)
            MAREY__TRY_MEMORY(MAREY__PUSH(breakdown->processes, breakdown->n_processes, cap,
                                          (struct marey__process_breakdown){
                                              .recording = request->recordings[r], .process = p}));
    return MAREY_OK;
}

/* Whether there is anything to break down, and steps if the settings need them. */
static marey_status check(const struct marey__breakdown *breakdown, const char *title)
{
    bool has_rows = false, has_steps = false;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        has_rows |= !p->is_left_out && p->devices.n != 0;
        has_steps |= !p->is_left_out && p->devices.n != 0 && p->set.n_steps != 0;
    }
    if (!has_rows)
        return marey__fail(MAREY_EFORMAT,
                           "%s has no GPU activity and no ranges: there is nothing to break down",
                           title);
    if (has_steps ||
        (breakdown->facts->window == MAREY__WINDOW_SPAN && breakdown->facts->by != MAREY__BY_STEP))
        return MAREY_OK;
    return marey__fail(
        MAREY_EFORMAT,
        "%s has no steps: they come from marey.iteration(), or from the schedule and "
        "step() of torch.profiler",
        title);
}

static int32_t rank_of(const struct marey__breakdown *breakdown, size_t i)
{
    const struct marey__process_breakdown *p = &breakdown->processes[i];
    return marey_recording_process(p->recording, p->process)->rank;
}

/* Whether the recording that starts with process `i` has an unknown rank, or one that those from `first` on have. */
static bool is_another_job(const struct marey__breakdown *breakdown, size_t first, size_t i)
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
 * Match collectives over ranks. Recordings of different ranks, such as files of a profiler, belong to one job; a
 * repeated rank starts another job.
 */
static marey_status match_collectives(struct marey__breakdown *breakdown)
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
    breakdown->facts->clocks = breakdown->collectives.clocks;
    breakdown->facts->alignment = breakdown->collectives.alignment;
    return MAREY_OK;
}

static marey_status run(struct marey__breakdown *breakdown, const marey_report *report,
                        const struct marey__request *request)
{
    MAREY_TRY(marey__rules_load(&breakdown->rules, marey__setting(request, "rules")));
    MAREY_TRY(list_processes(breakdown, request));
    leave_out_hosts(breakdown);
    MAREY_TRY(marey__run_for_each(request, breakdown->n_processes, break_down_nth, breakdown));
    leave_out_helpers(breakdown);
    MAREY_TRY(check(breakdown, report->title));
    MAREY_TRY(match_collectives(breakdown));
    return marey__breakdown_fill_tables(report->tables, breakdown, request);
}

static void breakdown_fini(struct marey__breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++)
        free_process(&breakdown->processes[i]);
    marey__free(breakdown->processes);
    marey__collectives_fini(&breakdown->collectives);
    marey__rules_fini(&breakdown->rules);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const char *const by = marey__setting(request, "by"), *const window =
                                                              marey__setting(request, "window");
    struct marey__breakdown_facts *const facts = marey__calloc(1, sizeof *facts);
    struct marey__breakdown breakdown MAREY__FINALLY(breakdown_fini) = {.facts = facts};
    MAREY__TRY_MEMORY(facts != NULL);
    report->data = facts;
    for (size_t i = 1; by != NULL && i < MAREY__COUNT_OF(marey__by_names); i++)
        if (strcmp(by, marey__by_names[i]) == 0)
            facts->by = (enum marey__by)i;
    facts->window = window != NULL && strcmp(window, marey__window_names[MAREY__WINDOW_STEPS]) == 0
                        ? MAREY__WINDOW_STEPS
                        : MAREY__WINDOW_SPAN;
    report->csv = by != NULL ? "by" : NULL;
    return run(&breakdown, report, request);
}

/* ---- registry entry ---- */

static bool has_communication(marey_recording *recording, const struct marey_process *process)
{
    for (uint32_t site = 1; site <= process->n_sites; site++)
        if (strcmp(marey_recording_site(recording, process->index, site)->category,
                   "communication") == 0)
            return true;
    return false;
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++)
            if (marey__has_streams(recordings[r], p) ||
                has_communication(recordings[r], marey_recording_process(recordings[r], p)))
                return true;
    return false;
}

/* False if streams have no activity and nothing communicated after all. */
static bool is_known(const marey_report *report)
{
    return !marey__cell_of(report->tables[MAREY__BREAKDOWN_SUMMARY], 0, "ns").is_null;
}

static const struct marey_setting settings[] = {
    {"by", MAREY_SETTING_CHOICE, "step|range|stream|process-group",
     "one more table: a row for each of these. GPU activity belongs\n"
     "to the step and to the ranges that launched it",
     'b'},
    {"window", MAREY_SETTING_CHOICE, "gpu_span|steps",
     "the time that the first line covers: from the first GPU\n"
     "activity to the last (default), or all steps, to the end of\n"
     "the last activity launched in each",
     'w'},
    {"rules", MAREY_SETTING_TEXT, "FILE",
     "rules that come before marey's own: what computes,\n"
     "communicates and copies"},
};

static const struct marey__page_table page_tables[] = {
    {"summary", NULL},
    {"devices", NULL},
    {"by", NULL},
    {"idle", NULL},
    {"rules", NULL},
    {"collectives", NULL},
    {"collective_ranks", NULL},
    {"warnings", NULL},
    {NULL, NULL},
};

const struct marey__analysis marey__analysis_breakdown = {
    .about = {.name = "breakdown",
              .help = "computation, communication, copies and idle time of devices, and why\n"
                      "they are idle",
              .needs = "'marey run --gpu' and 'marey run --mpi' record it, and a trace of "
                       "torch.profiler has it",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(marey__breakdown_tables),
              .csv = "devices",
              .command = "breakdown"},
    .visits_again = true,
    .make = make,
    .destroy = marey__free,
    .text = marey__breakdown_text,
    .json = marey__breakdown_json,
    .is_there = is_there,
    .page = page_tables,
    .page_key = "breakdown",
    .page_setting = "by=step",
    .is_on_page = is_known,
};
