/*
 * A GPU report as a whole: every process with streams is read, several at a time, and what is left of them is put
 * together by name.
 */
#include <string.h>

#include "analyze/gpu_report_internal.h"
#include "analyze/tasks.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the report of GPU work");
}

/* ---- one process ---- */

/* How long devices, streams and steps were busy: the sweeps of a breakdown. */
static bool find_busy(struct kymo__gpu_process *p)
{
    const struct kymo__work_set *set = &p->set;
    struct kymo__device_windows windows = {0};
    struct kymo__device_rows devices = {0}, steps = {0};
    const bool done =
        kymo__device_windows_make(&windows, set) && kymo__device_rows_make(&devices, set, &windows) &&
        kymo__by_rows_make(&p->stream_rows, set, &windows, KYMO__BY_STREAM, KYMO__WINDOW_SPAN) &&
        kymo__by_rows_make(&steps, set, &windows, KYMO__BY_STEP, KYMO__WINDOW_STEPS);
    const size_t n_windows = set->n_steps != 0 ? 2 : 1; /* the span comes first */
    for (size_t d = 0; done && d < set->n_devices; d++) {
        const struct kymo__device_row *row = &devices.rows[d * n_windows];
        p->devices[d].span_ns = row->span_ns;
        p->devices[d].busy_ns = row->span_ns - row->atoms.ns[0];
    }
    for (size_t i = 0; done && i < p->stream_rows.n; i++)
        p->streams[p->stream_rows.rows[i].lane].row = &p->stream_rows.rows[i];
    for (size_t i = 0; done && i < steps.n; i++) {
        p->iterations[i].span_ns = steps.rows[i].span_ns;
        p->iterations[i].busy_ns = steps.rows[i].span_ns - steps.rows[i].atoms.ns[0];
    }
    kymo__device_windows_fini(&windows);
    kymo__free(devices.rows);
    kymo__free(steps.rows);
    return done;
}

/* What only the sums need. */
static void drop_work(struct kymo__gpu_process *p)
{
    struct kymo__work_set *set = &p->set;
    for (size_t d = 0; d < set->n_devices; d++) {
        kymo__free(set->devices[d].work);
        set->devices[d].work = NULL;
        set->devices[d].n_work = set->devices[d].work_cap = 0;
    }
    kymo__free(set->launches);
    kymo__free(set->ranges);
    kymo__free(set->facts);
    set->launches = NULL;
    set->ranges = NULL;
    set->facts = NULL;
    kymo__free(p->launched);
    kymo__free(p->range_names);
    p->launched = NULL;
    p->range_names = NULL;
}

static kymo_status read_process(const kymo_gpu_report *report, struct kymo__gpu_process *p)
{
    const struct kymo__work_options options = {
        .rules = &report->rules, .wants_ranges = true, .wants_facts = true};
    KYMO_TRY(kymo__work_set_read(&p->set, p->recording, p->process, &options));
    /* Where its streams did nothing, what is told is its threads. */
    if (p->set.n_devices == 0 || p->set.devices[0].device < 0) {
        kymo__work_set_fini(&p->set);
        return KYMO_OK;
    }
    if (!kymo__gpu_sum_work(p) || !find_busy(p) || !kymo__gpu_sum_launches(p) ||
        !kymo__gpu_sum_waits(p, report->max_gaps))
        return no_memory();
    KYMO_TRY(kymo__gpu_explain_gaps(p, &report->rules));
    drop_work(p);
    return KYMO_OK;
}

static void free_ranges(struct kymo__launching *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kymo__sketch_fini(&ranges[i].delays);
    kymo__free(ranges);
}

static void free_process(struct kymo__gpu_process *p)
{
    for (size_t d = 0; p->devices != NULL && d < p->set.n_devices; d++)
        kymo__sketch_fini(&p->devices[d].delays);
    for (size_t i = 0; i < p->n_gaps; i++)
        kymo__free(p->gaps[i].path);
    kymo__work_set_fini(&p->set);
    kymo__names_fini(&p->names);
    kymo__gpu_sums_fini(&p->sums);
    kymo__free(p->streams);
    kymo__free(p->devices);
    kymo__free(p->stream_rows.rows);
    kymo__free(p->launched);
    kymo__free(p->iterations);
    free_ranges(p->ranges, p->n_ranges);
    kymo__free(p->range_names);
    kymo__free(p->gaps);
}

static kymo_status read_nth(void *ctx, size_t i)
{
    kymo_gpu_report *report = ctx;
    return read_process(report, &report->processes[i]);
}

static kymo_status read_processes(kymo_gpu_report *report,
                                  const struct kymo_gpu_report_options *options)
{
    const struct kymo__tasks tasks = {
        .run = read_nth,
        .ctx = report,
        .n = report->n_processes,
        .n_jobs = options->n_jobs,
        .progress = options->progress,
        .progress_ctx = options->progress_ctx,
    };
    return kymo__tasks_run(&tasks);
}

/* ---- put together ---- */

/* The numbers of texts in the report's own list; NULL without memory. */
static uint32_t *map_names(struct kymo__names *into, const struct kymo__names *from)
{
    uint32_t *map = kymo__calloc(from->n + 1, sizeof *map);
    for (size_t i = 0; map != NULL && i < from->n; i++) {
        map[i] = kymo__names_number(into, from->names[i].text, from->names[i].len);
        if (map[i] == KYMO__NO_NAME) {
            kymo__free(map);
            return NULL;
        }
    }
    return map;
}

static bool add_range(struct kymo__launching *into, const struct kymo__launching *from)
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
    return kymo__sketch_merge(&into->delays, &from->delays);
}

static bool merge_with(kymo_gpu_report *report, struct kymo__gpu_process *p, const uint32_t *names,
                       const uint32_t *shapes)
{
    for (size_t i = 0; i < p->sums.n; i++) {
        struct kymo__gpu_sum *sum = &p->sums.sums[i];
        const uint32_t shape = sum->shape != KYMO__NO_INDEX ? shapes[sum->shape] : KYMO__NO_INDEX;
        if (!kymo__gpu_sums_add(&report->sums, names[sum->name], shape, sum))
            return false;
    }
    for (size_t i = 0; i < p->n_ranges; i++) {
        if (p->ranges[i].n_launches == 0)
            continue;
        struct kymo__launching *range =
            kymo__launching_of(&report->ranges, &report->n_ranges, &report->ranges_cap, names[i]);
        if (range == NULL || !add_range(range, &p->ranges[i]))
            return false;
    }
    return true;
}

static bool merge(kymo_gpu_report *report, struct kymo__gpu_process *p)
{
    uint32_t *names = map_names(&report->names, &p->names);
    uint32_t *shapes = map_names(&report->shapes, &p->set.shapes);
    const bool done = names != NULL && shapes != NULL && merge_with(report, p, names, shapes);
    kymo__free(names);
    kymo__free(shapes);
    return done;
}

/* ---- the whole ---- */

static bool has_streams(const kymo_recording *recording, size_t process)
{
    const uint32_t n = kymo_recording_process(recording, process)->n_lanes;
    for (uint32_t i = 0; i < n; i++)
        if (kymo_recording_lane(recording, process, i)->kind == KYMO_LANE_GPU)
            return true;
    return false;
}

/* Processes without streams need not be read. */
static kymo_status list_processes(kymo_gpu_report *report, kymo_recording *const *recordings, size_t n)
{
    size_t n_processes = 0;
    for (size_t r = 0; r < n; r++)
        n_processes += kymo_recording_n_processes(recordings[r]);
    report->processes = kymo__calloc(n_processes + 1, sizeof *report->processes);
    if (report->processes == NULL)
        return no_memory();
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < kymo_recording_n_processes(recordings[r]); p++)
            if (has_streams(recordings[r], p))
                report->processes[report->n_processes++] =
                    (struct kymo__gpu_process){.recording = recordings[r], .process = p};
    return KYMO_OK;
}

static kymo_status run(kymo_gpu_report *report, kymo_recording *const *recordings, size_t n,
                       const struct kymo_gpu_report_options *options)
{
    report->filter = options->filter;
    report->max_gaps = options->n_gaps != 0 ? options->n_gaps : KYMO__N_GAPS;
    KYMO_TRY(kymo__rules_load(&report->rules, NULL));
    KYMO_TRY(list_processes(report, recordings, n));
    KYMO_TRY(read_processes(report, options));
    for (size_t i = 0; i < report->n_processes; i++)
        if (!merge(report, &report->processes[i]))
            return no_memory();
    return kymo__gpu_report_make_tables(report);
}

/* What was only needed to make the tables. */
static void free_making(kymo_gpu_report *report)
{
    for (size_t i = 0; i < report->n_processes; i++)
        free_process(&report->processes[i]);
    kymo__free(report->processes);
    report->processes = NULL;
    report->n_processes = 0;
    kymo__names_fini(&report->names);
    kymo__names_fini(&report->shapes);
    kymo__gpu_sums_fini(&report->sums);
    free_ranges(report->ranges, report->n_ranges);
    report->ranges = NULL;
    kymo__rules_fini(&report->rules);
    report->filter = NULL; /* it was lent */
}

kymo_status kymo_gpu_report_create(kymo_recording *const *recordings, size_t n,
                                   const struct kymo_gpu_report_options *options,
                                   kymo_gpu_report **out)
{
    static const struct kymo_gpu_report_options defaults;
    kymo_gpu_report *report = kymo__calloc(1, sizeof *report);
    if (report == NULL)
        return no_memory();
    const kymo_status status = run(report, recordings, n, options != NULL ? options : &defaults);
    free_making(report);
    if (status != KYMO_OK) {
        kymo_gpu_report_destroy(report);
        return status;
    }
    *out = report;
    return KYMO_OK;
}

void kymo_gpu_report_destroy(kymo_gpu_report *report)
{
    if (report == NULL)
        return;
    for (size_t t = 0; t < KYMO__N_GPU_TABLES; t++)
        kymo_table_destroy(report->tables[t]);
    kymo__free(report);
}

kymo_table *kymo_gpu_report_table(kymo_gpu_report *report, const char *name)
{
    for (size_t t = 0; t < KYMO__N_GPU_TABLES; t++)
        if (strcmp(kymo_table_name(report->tables[t]), name) == 0)
            return report->tables[t];
    return NULL;
}
