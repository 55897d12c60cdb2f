/*
 * A GPU report as a whole: every process with streams is read, several at a time, and what is left of them is put
 * together by name.
 */
#include <string.h>

#include "analyze/device/gpu_report_internal.h"
#include "analyze/walk/internal.h"

/* ---- one process ---- */

/* How long devices, streams and steps were busy: the sweeps of a breakdown. */
static bool find_busy(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    struct marey__device_windows windows = {0};
    struct marey__device_rows devices = {0}, steps = {0};
    const bool done =
        marey__device_windows_make(&windows, set) &&
        marey__device_rows_make(&devices, set, &windows) &&
        marey__by_rows_make(&p->stream_rows, set, &windows, MAREY__BY_STREAM, MAREY__WINDOW_SPAN) &&
        marey__by_rows_make(&steps, set, &windows, MAREY__BY_STEP, MAREY__WINDOW_STEPS);
    const size_t n_windows = set->n_steps != 0 ? 2 : 1; /* the span comes first */
    for (size_t d = 0; done && d < set->n_devices; d++) {
        const struct marey__device_row *row = &devices.rows[d * n_windows];
        p->devices[d].span_ns = row->span_ns;
        p->devices[d].busy_ns = row->span_ns - row->atoms.ns[0];
    }
    for (size_t i = 0; done && i < p->stream_rows.n; i++)
        p->streams[p->stream_rows.rows[i].lane].row = &p->stream_rows.rows[i];
    for (size_t i = 0; done && i < steps.n; i++) {
        p->iterations[i].span_ns = steps.rows[i].span_ns;
        p->iterations[i].busy_ns = steps.rows[i].span_ns - steps.rows[i].atoms.ns[0];
    }
    marey__device_windows_fini(&windows);
    marey__free(devices.rows);
    marey__free(steps.rows);
    return done;
}

/* What only the sums need. */
static void drop_work(struct marey__gpu_process *p)
{
    struct marey__work_set *set = &p->set;
    for (size_t d = 0; d < set->n_devices; d++) {
        marey__free(set->devices[d].work);
        set->devices[d].work = NULL;
        set->devices[d].n_work = set->devices[d].work_cap = 0;
    }
    marey__free(set->launches);
    marey__free(set->ranges);
    marey__free(set->facts);
    set->launches = NULL;
    set->ranges = NULL;
    set->facts = NULL;
    marey__free(p->launched);
    marey__free(p->range_names);
    p->launched = NULL;
    p->range_names = NULL;
}

static marey_status read_process(const marey_gpu_report *report, struct marey__gpu_process *p)
{
    const struct marey__work_options options = {
        .rules = &report->rules, .wants_ranges = true, .wants_facts = true};
    MAREY_TRY(marey__work_set_read(&p->set, p->recording, p->process, &options));
    /* Where its streams did nothing, what is told is its threads. */
    if (p->set.n_devices == 0 || p->set.devices[0].device < 0) {
        marey__work_set_fini(&p->set);
        return MAREY_OK;
    }
    MAREY__TRY_MEMORY(marey__gpu_sum_work(p) && find_busy(p) && marey__gpu_sum_launches(p) &&
                      marey__gpu_sum_waits(p, report->max_gaps));
    MAREY_TRY(marey__gpu_explain_gaps(p, &report->rules));
    drop_work(p);
    return MAREY_OK;
}

static void free_ranges(struct marey__launching *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__sketch_fini(&ranges[i].delays);
    marey__free(ranges);
}

static void free_process(struct marey__gpu_process *p)
{
    for (size_t d = 0; p->devices != NULL && d < p->set.n_devices; d++)
        marey__sketch_fini(&p->devices[d].delays);
    for (size_t i = 0; i < p->n_gaps; i++)
        marey__free(p->gaps[i].path);
    marey__work_set_fini(&p->set);
    marey__names_fini(&p->names);
    marey__gpu_sums_fini(&p->sums);
    marey__free(p->streams);
    marey__free(p->devices);
    marey__free(p->stream_rows.rows);
    marey__free(p->launched);
    marey__free(p->iterations);
    free_ranges(p->ranges, p->n_ranges);
    marey__free(p->range_names);
    marey__free(p->gaps);
}

static marey_status read_nth(void *ctx, size_t i)
{
    marey_gpu_report *report = ctx;
    return read_process(report, &report->processes[i]);
}

static marey_status read_processes(marey_gpu_report *report,
                                   const struct marey_gpu_report_options *options)
{
    const struct marey__tasks tasks = {
        .run = read_nth,
        .ctx = report,
        .n = report->n_processes,
        .n_jobs = options->n_jobs,
        .progress = options->progress,
        .progress_ctx = options->progress_ctx,
    };
    return marey__tasks_run(&tasks);
}

/* ---- put together ---- */

/* The numbers of texts in the report's own list; NULL without memory. */
static uint32_t *map_names(struct marey__names *into, const struct marey__names *from)
{
    uint32_t *map = marey__calloc(from->n + 1, sizeof *map);
    for (size_t i = 0; map != NULL && i < from->n; i++) {
        map[i] = marey__names_number(into, from->names[i].text, from->names[i].len);
        if (map[i] == MAREY__NO_NAME) {
            marey__free(map);
            return NULL;
        }
    }
    return map;
}

static bool add_range(struct marey__launching *into, const struct marey__launching *from)
{
    into->category = into->category != NULL ? into->category : from->category;
    into->calls += from->calls;
    into->n_launches += from->n_launches;
    into->n_work += from->n_work;
    into->gpu_ns += from->gpu_ns;
    into->self_gpu_ns += from->self_gpu_ns;
    into->launch_ns += from->launch_ns;
    into->self_launch_ns += from->self_launch_ns;
    into->span_ns += from->span_ns;
    into->launch_wait_ns += from->launch_wait_ns;
    into->host_wait_ns += from->host_wait_ns;
    return marey__sketch_merge(&into->delays, &from->delays);
}

static bool merge_with(marey_gpu_report *report, struct marey__gpu_process *p,
                       const uint32_t *names, const uint32_t *shapes)
{
    for (size_t i = 0; i < p->sums.n; i++) {
        struct marey__gpu_sum *sum = &p->sums.sums[i];
        const uint32_t shape = sum->shape != MAREY__NO_INDEX ? shapes[sum->shape] : MAREY__NO_INDEX;
        if (!marey__gpu_sums_add(&report->sums, names[sum->name], shape, sum))
            return false;
    }
    for (size_t i = 0; i < p->n_ranges; i++) {
        if (p->ranges[i].n_launches == 0)
            continue;
        struct marey__launching *range =
            marey__launching_of(&report->ranges, &report->n_ranges, &report->ranges_cap, names[i]);
        if (range == NULL || !add_range(range, &p->ranges[i]))
            return false;
    }
    return true;
}

static bool merge(marey_gpu_report *report, struct marey__gpu_process *p)
{
    uint32_t *names = map_names(&report->names, &p->names);
    uint32_t *shapes = map_names(&report->shapes, &p->set.shapes);
    const bool done = names != NULL && shapes != NULL && merge_with(report, p, names, shapes);
    marey__free(names);
    marey__free(shapes);
    return done;
}

/* ---- the whole ---- */

static bool has_streams(const marey_recording *recording, size_t process)
{
    const uint32_t n = marey_recording_process(recording, process)->n_lanes;
    for (uint32_t i = 0; i < n; i++)
        if (marey_recording_lane(recording, process, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

/* Processes without streams need not be read. */
static marey_status list_processes(marey_gpu_report *report, marey_recording *const *recordings,
                                   size_t n)
{
    size_t n_processes = 0;
    for (size_t r = 0; r < n; r++)
        n_processes += marey_recording_n_processes(recordings[r]);
    report->processes = marey__calloc(n_processes + 1, sizeof *report->processes);
    MAREY__TRY_MEMORY(report->processes != NULL);
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++)
            if (has_streams(recordings[r], p))
                report->processes[report->n_processes++] =
                    (struct marey__gpu_process){.recording = recordings[r], .process = p};
    return MAREY_OK;
}

static marey_status run(marey_gpu_report *report, marey_recording *const *recordings, size_t n,
                        const struct marey_gpu_report_options *options)
{
    report->filter = options->filter;
    report->max_gaps = options->n_gaps != 0 ? options->n_gaps : MAREY__N_GAPS;
    MAREY_TRY(marey__rules_load(&report->rules, NULL));
    MAREY_TRY(list_processes(report, recordings, n));
    MAREY_TRY(read_processes(report, options));
    for (size_t i = 0; i < report->n_processes; i++)
        MAREY__TRY_MEMORY(merge(report, &report->processes[i]));
    return marey__gpu_report_make_tables(report);
}

/* What was only needed to make the tables. */
static void free_making(marey_gpu_report *report)
{
    for (size_t i = 0; i < report->n_processes; i++)
        free_process(&report->processes[i]);
    marey__free(report->processes);
    report->processes = NULL;
    report->n_processes = 0;
    marey__names_fini(&report->names);
    marey__names_fini(&report->shapes);
    marey__gpu_sums_fini(&report->sums);
    free_ranges(report->ranges, report->n_ranges);
    report->ranges = NULL;
    marey__rules_fini(&report->rules);
    report->filter = NULL; /* it was lent */
}

marey_status marey_gpu_report_create(marey_recording *const *recordings, size_t n,
                                     const struct marey_gpu_report_options *options,
                                     marey_gpu_report **out)
{
    static const struct marey_gpu_report_options defaults;
    marey_gpu_report *report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    const marey_status status = run(report, recordings, n, options != NULL ? options : &defaults);
    free_making(report);
    if (status != MAREY_OK) {
        marey_gpu_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

void marey_gpu_report_destroy(marey_gpu_report *report)
{
    if (report == NULL)
        return;
    for (size_t t = 0; t < MAREY__N_GPU_TABLES; t++)
        marey_table_destroy(report->tables[t]);
    marey__free(report);
}

marey_table *marey_gpu_report_table(marey_gpu_report *report, const char *name)
{
    for (size_t t = 0; t < MAREY__N_GPU_TABLES; t++)
        if (strcmp(marey_table_name(report->tables[t]), name) == 0)
            return report->tables[t];
    return NULL;
}
