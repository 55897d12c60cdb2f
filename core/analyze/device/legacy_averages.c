/*
 * Recordings to the rows of torch's key_averages(): of each name, the ranges of threads with the device time of what they
 * launched, the work of devices itself, and the devices' copies of annotations. The same nanosecond is so in up to three
 * rows; that is what itwinai adds up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/device/legacy_internal.h"

/* What a row is of. */
enum of { OF_HOST, OF_DEVICE, OF_ANNOTATION, N_OF };

struct average {
    uint64_t calls, self_ns, total_ns;
};

/* The averages of one process. */
struct averages {
    const struct marey__work_set *set;
    struct marey__names names;
    uint32_t *site_names;             /* by site; MAREY__NO_NAME: in no row */
    struct average (*averages)[N_OF]; /* by name */
};

/* ---- names ---- */

/* What torch leaves out of its averages, or this file would not show in a trace. */
static bool is_left_out(const struct marey_site_info *site)
{
    static const char *const names[] = {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    };
    static const char *const categories[] = {"python_function", "overhead", "Trace"};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (strcmp(site->name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < MAREY__COUNT_OF(categories); i++)
        if (strcmp(site->category, categories[i]) == 0)
            return true;
    return false;
}

/* Steps are one row whatever their number. */
static uint32_t name_of(struct averages *a, const struct marey_site_info *site)
{
    static const char step[] = "ProfilerStep#", steps[] = "ProfilerStep*";
    return strncmp(site->name, step, sizeof step - 1) == 0
               ? marey__names_number(&a->names, steps, sizeof steps - 1)
               : marey__names_number(&a->names, site->name, site->name_len);
}

static bool number_names(struct averages *a)
{
    const struct marey_process *process = a->set->process;
    a->site_names = marey__calloc((size_t)process->n_sites + 1, sizeof *a->site_names);
    if (a->site_names == NULL)
        return false;
    a->site_names[0] = MAREY__NO_NAME;
    for (uint32_t site = 1; site <= process->n_sites; site++) {
        const struct marey_site_info *info =
            marey_recording_site(a->set->recording, process->index, site);
        a->site_names[site] = is_left_out(info) ? MAREY__NO_NAME : name_of(a, info);
        if (a->site_names[site] == MAREY__NO_NAME && !is_left_out(info))
            return false;
    }
    a->averages = marey__calloc(a->names.n + 1, sizeof *a->averages);
    return a->averages != NULL;
}

/* Where times of a site go; NULL: nowhere. */
static struct average *average_of(const struct averages *a, uint32_t site, enum of of)
{
    const uint32_t name =
        site <= a->set->process->n_sites ? a->site_names[site] : (uint32_t)MAREY__NO_NAME;
    return name != MAREY__NO_NAME ? &a->averages[name][of] : NULL;
}

static void add(const struct averages *a, uint32_t site, enum of of, uint64_t self_ns,
                uint64_t total_ns, bool is_call)
{
    struct average *average = average_of(a, site, of);
    if (average == NULL)
        return;
    average->self_ns += self_ns;
    average->total_ns += total_ns;
    average->calls += is_call;
}

/* ---- one process ---- */

/* Each range around the launch has the time; as its own, the innermost that is no call of a runtime. */
static void add_to_host(const struct averages *a, const struct marey__launch_call *launch, uint64_t ns)
{
    const struct marey__work_set *set = a->set;
    bool is_own = true;
    for (uint32_t r = launch->range; r != MAREY__NO_INDEX; r = set->ranges[r].parent) {
        const uint32_t site = set->ranges[r].site;
        if (is_own && site != launch->around)
            continue;
        add(a, site, OF_HOST, is_own ? ns : 0, ns, false);
        is_own = false;
    }
}

static void add_work(const struct averages *a, const struct marey__work *work)
{
    const uint64_t ns = work->end_ns - work->begin_ns;
    add(a, work->site, OF_DEVICE, ns, ns, true);
    if (work->launch != MAREY__NO_INDEX)
        add_to_host(a, &a->set->launches[work->launch], ns);
}

static bool count_range(void *ctx, struct marey__call_lane *lane)
{
    if (lane->info->kind == MAREY_LANE_THREAD)
        add(ctx, lane->open[lane->n_open - 1].site, OF_HOST, 0, 0, true);
    return true;
}

static bool close_range(void *ctx, struct marey__call_lane *lane, uint64_t end_ns)
{
    (void)ctx, (void)lane, (void)end_ns;
    return true;
}

static bool take_record(void *ctx, struct marey__call_lane *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    (void)lane, (void)ns;
    if (marey_record_type_of(words[0]) == MAREY_RECORD_GPU &&
        marey_record_work_kind(words[1]) == MAREY_WORK_ANNOTATION && (int64_t)words[2] > 0) {
        const uint64_t duration = marey_batch_duration_ns(batch, words[2]);
        add(ctx, marey_record_site(words[1]), OF_ANNOTATION, duration, duration, true);
    }
    return true;
}

static marey_status average(struct averages *a)
{
    struct marey__range_walk walk = {
        .recording = a->set->recording,
        .process = a->set->process,
        .opened = count_range,
        .closed = close_range,
        .record = take_record,
        .ctx = a,
    };
    MAREY__TRY_MEMORY(number_names(a));
    for (size_t d = 0; d < a->set->n_devices; d++)
        for (size_t i = 0; a->set->devices[d].device >= 0 && i < a->set->devices[d].n_work; i++)
            add_work(a, &a->set->devices[d].work[i]);
    return marey__range_walk(&walk);
}

/* ---- the table ---- */

static const struct marey_column columns[] = {
    MAREY__NAME_COLUMN,
    {"node_id", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("self_cuda_time_total", NULL),
    MAREY__NUMBER_COLUMN("cuda_time_total", NULL),
    {"cuda_time_total_str", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"calls", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"strategy", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"num_gpus", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"global_rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
};

/* Whose rows are put. */
struct whose {
    const char *strategy;
    uint64_t num_gpus;
    int64_t rank;
};

/* As torch words it. */
static void put_time_text(marey_table *table, double us)
{
    char text[48];
    if (us >= 1e6)
        snprintf(text, sizeof text, "%.3fs", us / 1e6);
    else if (us >= 1e3)
        snprintf(text, sizeof text, "%.3fms", us / 1e3);
    else
        snprintf(text, sizeof text, "%.3fus", us);
    marey__put_string(table, text);
}

static void put_rows(marey_table *table, const struct averages *a, const struct whose *whose)
{
    for (size_t name = 0; name < a->names.n; name++)
        for (size_t of = 0; of < N_OF; of++) {
            const struct average *average = &a->averages[name][of];
            if (average->calls == 0)
                continue;
            marey_table_text(table, a->names.names[name].text, a->names.names[name].len);
            marey_table_i64(table, -1); /* what torch says where it does not apply */
            marey_table_f64(table, (double)average->self_ns / 1e3);
            marey_table_f64(table, (double)average->total_ns / 1e3);
            put_time_text(table, (double)average->total_ns / 1e3);
            marey_table_u64(table, average->calls);
            marey__put_string(table, whose->strategy);
            marey_table_u64(table, whose->num_gpus);
            marey_table_i64(table, whose->rank);
        }
}

static marey_status put_process(marey_table *table, marey_recording *recording, size_t process,
                                const struct marey__rules *rules, const struct whose *whose)
{
    const struct marey__work_options options = {.rules = rules, .wants_ranges = true};
    struct marey__work_set set = {0};
    struct averages a = {.set = &set};
    marey_status status = marey__work_set_read(&set, recording, process, &options);
    if (status == MAREY_OK)
        status = average(&a);
    if (status == MAREY_OK)
        put_rows(table, &a, whose);
    marey__free(a.site_names);
    marey__free(a.averages);
    marey__names_fini(&a.names);
    marey__work_set_fini(&set);
    return status;
}

static bool has_streams(const marey_recording *recording, size_t process)
{
    const uint32_t n_lanes = marey_recording_process(recording, process)->n_lanes;
    for (uint32_t i = 0; i < n_lanes; i++)
        if (marey_recording_lane(recording, process, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

/* Those with a GPU; where none has one, all. */
static marey_status put_processes(marey_table *table, marey_recording *const *recordings, size_t n,
                                  const struct marey__rules *rules, const char *strategy)
{
    uint64_t n_gpus = 0, n_all = 0;
    int64_t number = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++) {
            n_gpus += has_streams(recordings[r], p);
            n_all++;
        }
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++) {
            const struct marey_process *process = marey_recording_process(recordings[r], p);
            if (n_gpus != 0 && !has_streams(recordings[r], p))
                continue;
            const struct whose whose = {
                .strategy = strategy,
                .num_gpus = process->world_size > 0 ? (uint64_t)process->world_size
                            : n_gpus != 0           ? n_gpus
                                                    : n_all,
                .rank = process->rank >= 0 ? process->rank : number,
            };
            number++;
            MAREY_TRY(put_process(table, recordings[r], p, rules, &whose));
        }
    return marey_table_status(table);
}

marey_status marey_averages_create(marey_recording *const *recordings, size_t n,
                                   const char *strategy, marey_table **out)
{
    struct marey__rules rules = {0};
    marey_table *table = NULL;
    marey_status status = marey__rules_load(&rules, NULL);
    if (status == MAREY_OK)
        status = marey_table_create("averages", columns, MAREY__COUNT_OF(columns), &table);
    if (status == MAREY_OK)
        status = put_processes(table, recordings, n, &rules, strategy != NULL ? strategy : "unknown");
    marey__rules_fini(&rules);
    if (status != MAREY_OK) {
        marey_table_destroy(table);
        return status;
    }
    marey_table_sort(table, (size_t)marey_table_find(table, "self_cuda_time_total"), 1);
    *out = table;
    return MAREY_OK;
}
