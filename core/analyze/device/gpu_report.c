/* The GPU report: reads every process with streams in parallel, then merges the results by name. */
#include "analyze/device/gpu_report.h"

/* ---- one process ---- */

/* How long devices, streams and steps were busy, by sweeps as in the breakdown. */
static bool find_busy(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    struct marey__device_windows windows MAREY__FINALLY(marey__device_windows_fini) = {0};
    struct marey__device_rows devices MAREY__FINALLY(marey__device_rows_fini) = {0};
    struct marey__device_rows steps MAREY__FINALLY(marey__device_rows_fini) = {0};
    if (!marey__device_windows_make(&windows, set) ||
        !marey__device_rows_make(&devices, set, &windows) ||
        !marey__by_rows_make(&p->stream_rows, set, &windows, MAREY__BY_STREAM, MAREY__WINDOW_SPAN) ||
        !marey__by_rows_make(&steps, set, &windows, MAREY__BY_STEP, MAREY__WINDOW_STEPS))
        return false;
    const size_t n_windows = set->n_steps != 0 ? 2 : 1; /* the span comes first */
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct marey__device_row *row = &devices.rows[d * n_windows];
        p->devices[d].span_ns = row->span_ns;
        p->devices[d].busy_ns = row->span_ns - row->atoms.ns[0];
    }
    for (size_t i = 0; i < p->stream_rows.n; i++)
        p->streams[p->stream_rows.rows[i].lane].row = &p->stream_rows.rows[i];
    for (size_t i = 0; i < steps.n; i++) {
        p->iterations[i].span_ns = steps.rows[i].span_ns;
        p->iterations[i].busy_ns = steps.rows[i].span_ns - steps.rows[i].atoms.ns[0];
    }
    return true;
}

static marey_status read_nth(void *ctx, size_t i)
{
    const struct marey__gpu_report *const report = ctx;
    struct marey__gpu_process *const p = &report->processes[i];
    const struct marey__work_options options = {
        .rules = &report->rules, .wants_ranges = true, .wants_facts = true};
    MAREY_TRY(marey__work_set_read(&p->set, p->recording, p->process, &options));
    /* Streams without activity: the set has the threads of the process instead. */
    if (p->set.n_devices == 0 || p->set.devices[0].device < 0) {
        marey__work_set_fini(&p->set);
        return MAREY_OK;
    }
    MAREY__TRY_MEMORY(marey__gpu_sum_work(p) && find_busy(p) && marey__gpu_sum_launches(p) &&
                      marey__gpu_sum_waits(p, report->max_gaps));
    MAREY_TRY(marey__gpu_explain_gaps(p, &report->rules));
    marey__work_set_drop_work(&p->set);
    MAREY__FREE_ALL(p->launched, p->range_names);
    p->launched = NULL;
    p->range_names = NULL;
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
    MAREY__FREE_ALL(p->streams, p->devices, p->stream_rows.rows, p->launched, p->iterations);
    free_ranges(p->ranges, p->n_ranges);
    MAREY__FREE_ALL(p->range_names, p->gaps);
}

/* ---- merging ---- */

/* Maps names to the report's numbers; NULL on out of memory. */
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
    for (size_t i = 0; i < MAREY__COUNT_OF(into->sums); i++)
        into->sums[i] += from->sums[i];
    return marey__sketch_merge(&into->delays, &from->delays);
}

static bool merge(struct marey__gpu_report *report, struct marey__gpu_process *p)
{
    uint32_t *const names MAREY__FREED = map_names(&report->names, &p->names);
    uint32_t *const shapes MAREY__FREED = map_names(&report->shapes, &p->set.shapes);
    if (names == NULL || shapes == NULL)
        return false;
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

/* ---- the report ---- */

/* Processes without streams need not be read. */
static marey_status list_processes(struct marey__gpu_report *report,
                                   const struct marey__request *request)
{
    size_t cap = 0;
    for (size_t r = 0; r < request->n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(request->recordings[r]); p++)
            if (marey__has_streams(request->recordings[r], p))
                MAREY__TRY_MEMORY(MAREY__PUSH(
                    report->processes, report->n_processes, cap,
                    (struct marey__gpu_process){.recording = request->recordings[r], .process = p}));
    return MAREY_OK;
}

static void report_fini(struct marey__gpu_report *report)
{
    for (size_t i = 0; i < report->n_processes; i++)
        free_process(&report->processes[i]);
    marey__free(report->processes);
    marey__names_fini(&report->names);
    marey__names_fini(&report->shapes);
    marey__gpu_sums_fini(&report->sums);
    free_ranges(report->ranges, report->n_ranges);
    marey__rules_fini(&report->rules);
}

/* The command of the first process; an imported trace has only a name. NULL on out of memory. */
static struct marey__gpu_program *program_of(const struct marey__request *request)
{
    const char *command = NULL;
    size_t n = 0;
    for (size_t r = 0; r < request->n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(request->recordings[r]); p++, n++) {
            const struct marey_process *const process =
                marey_recording_process(request->recordings[r], p);
            if (command == NULL)
                command = strcmp(process->clock, "trace") != 0 ? process->command : "";
        }
    const size_t len = command != NULL ? strlen(command) : 0;
    struct marey__gpu_program *const program = marey__calloc(1, sizeof *program + len + 1);
    if (program == NULL)
        return NULL;
    program->n_processes = n;
    memcpy(program->command, command != NULL ? command : "", len);
    return program;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const uint32_t n_gaps = marey__setting_count(request, "gaps");
    struct marey__gpu_report making MAREY__FINALLY(report_fini) = {
        .tables = report->tables,
        .filter = marey__setting(request, "filter"),
        .max_gaps = n_gaps != 0 ? MAREY__MIN(n_gaps, (uint32_t)MAREY__MAX_GAPS) : MAREY__N_GAPS,
    };
    report->data = program_of(request);
    MAREY__TRY_MEMORY(report->data != NULL);
    MAREY_TRY(marey__rules_load(&making.rules, NULL));
    MAREY_TRY(list_processes(&making, request));
    MAREY_TRY(marey__run_for_each(request, making.n_processes, read_nth, &making));
    for (size_t i = 0; i < making.n_processes; i++)
        MAREY__TRY_MEMORY(merge(&making, &making.processes[i]));
    MAREY__TRY_MEMORY(marey__gpu_fill_tables(&making));
    return MAREY_OK;
}

/* ---- registry entry ---- */

bool marey__gpu_is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++)
            if (marey__has_streams(recordings[r], p))
                return true;
    return false;
}

static bool has_devices(const marey_report *report)
{
    return marey_table_n_rows(report->tables[MAREY__GPU_DEVICES]) != 0;
}

static const struct marey_setting settings[] = {
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only kernels and ranges with such a name", 'f'},
    {"gaps", MAREY_SETTING_COUNT, "N", "the N longest gaps, up to 1000 (default: 20)"},
    {"sort", MAREY_SETTING_TEXT, "COLUMN", "with --csv: a column of the table; -COLUMN reverses", 's'},
};

static const struct marey__page_table page_tables[] = {
    {"launch_bound", NULL}, {"devices", NULL}, {"kernels", NULL}, {"shapes", NULL},
    {"copies", NULL},       {"streams", NULL}, {"ranges", NULL},  {"iterations", NULL},
    {"gaps", NULL},         {NULL, NULL},
};

const struct marey__analysis marey__analysis_gpu = {
    .about =
        {.name = "gpu",
         .help = "GPU activity: kernels, grid and block sizes, copies, streams,\n"
                 "the ranges that launched them, where GPUs wait for the host",
         .needs = "'marey run --gpu' records it, and a trace of torch.profiler has it",
         .examples =
             "  marey report train.marey --gpu               kernels, launches, waits of GPUs\n"
             "  marey report train.marey --gpu --csv --table launch_bound",
         MAREY__SETTINGS(settings),
         MAREY__TABLES(marey__gpu_tables),
         .csv = "kernels",
         .option = "gpu",
         .is_section = 1,
         .needs_arguments = 1},
    .make = make,
    .destroy = marey__free,
    .text = marey__gpu_text,
    .sorts_csv = true,
    .is_there = marey__gpu_is_there,
    .page = page_tables,
    .page_setting = "filter",
    .page_key = "gpu",
    .is_on_page = has_devices,
};
