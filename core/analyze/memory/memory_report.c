/* The report of memory: its sources, its names, and tables from pools. */
#include <fcntl.h>
#include <unistd.h>

#include "analyze/memory/internal.h"

/* Whether the first bytes are a pickle's of protocol 2 to 5. */
static bool is_pickle(const char *path)
{
    unsigned char first[2] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool done = read(fd, first, sizeof first) == (ssize_t)sizeof first;
    close(fd);
    return done && first[0] == 0x80 && first[1] >= 2 && first[1] <= 5;
}

static bool is_trace(const char *path)
{
    const size_t len = strlen(path);
    return marey__ends_with(path, len, ".json") || marey__ends_with(path, len, ".json.gz");
}

static bool is_file(const char *path)
{
    return is_pickle(path) || is_trace(path);
}

static marey_status read_file(struct marey__memory_report *report, const char *path)
{
    if (is_pickle(path))
        return marey__memory_read_snapshot(report, path);
    if (is_trace(path))
        return marey__memory_read_trace(report, path);
    if (access(path, R_OK) != 0)
        return marey__fail_errno("read %s", path);
    return marey__fail(
        MAREY_EFORMAT,
        "%s is neither a snapshot of torch's CUDA allocator (a pickle) nor a trace of "
        "torch.profiler (.json, .json.gz)",
        path);
}

enum { N_STACKS = 20 };

/* ---- data filled by sources ---- */

uint32_t marey__memory_name(struct marey__memory_report *report, const char *text, size_t len)
{
    return marey__names_keep(&report->names, &report->texts, text, len);
}

struct marey__memory_pool *marey__memory_pool_add(struct marey__memory_report *report)
{
    if (!marey__grow(&report->pools, &report->pools_cap, report->n_pools + 1, sizeof *report->pools))
        return NULL;
    struct marey__memory_pool *const pool = &report->pools[report->n_pools++];
    *pool = (struct marey__memory_pool){.rank = -1, .source = ""};
    return pool;
}

bool marey__memory_block_add(struct marey__memory_pool *pool, const struct marey__held_block *block)
{
    return MAREY__PUSH(pool->blocks, pool->n_blocks, pool->blocks_cap, *block);
}

bool marey__memory_reading_add(struct marey__memory_readings *readings, uint64_t ns, double bytes)
{
    return MAREY__PUSH(readings->at, readings->n, readings->cap,
                       (struct marey__memory_reading){ns, bytes});
}

bool marey__memory_progress_add(struct marey__memory_report *report, const struct marey__span *span,
                                const struct marey_site_info *site,
                                struct marey__held_spans *iterations,
                                struct marey__held_spans *phases)
{
    if (span->kind == MAREY__SPAN_ITERATION)
        return (span->flags & MAREY__ITERATION_WARMUP) != 0 ||
               marey__memory_span_add(iterations, span->begin_ns, span->end_ns, MAREY__NO_NAME);
    if (span->kind != MAREY__SPAN_PHASE)
        return true;
    const uint32_t name = marey__memory_name(report, site->name, site->name_len);
    return name != MAREY__NO_NAME &&
           marey__memory_span_add(phases, span->begin_ns, span->end_ns, name);
}

bool marey__memory_span_add(struct marey__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                            uint32_t name)
{
    return MAREY__PUSH(spans->at, spans->n, spans->cap,
                       (struct marey__held_span){begin_ns, end_ns, name});
}

uint32_t marey__memory_stack_add(struct marey__memory_report *report, const uint32_t *names, size_t n)
{
    if (report->n_stacks + 1 >= MAREY__NO_STACK ||
        !marey__grow(&report->frames, &report->frames_cap, report->n_frames + n,
                     sizeof *report->frames) ||
        !marey__grow(&report->stacks, &report->stacks_cap, report->n_stacks + 1,
                     sizeof *report->stacks))
        return MAREY__NO_STACK;
    report->stacks[report->n_stacks] = (struct marey__memory_stack){report->n_frames, n};
    if (n != 0)
        memcpy(report->frames + report->n_frames, names, n * sizeof *names);
    report->n_frames += n;
    return (uint32_t)report->n_stacks++;
}

/* ---- tables from pools ---- */

MAREY__ORDER(readings_by_time, struct marey__memory_reading, MAREY__UP(ns))

static void sort_readings(struct marey__memory_readings *readings)
{
    if (readings->n != 0)
        qsort(readings->at, readings->n, sizeof *readings->at, readings_by_time);
}

static marey_status make_tables(struct marey__memory_report *report)
{
    MAREY__TRY_MEMORY(marey__memory_find_where(report));
    for (size_t i = 0; i < report->n_pools; i++) {
        struct marey__memory_pool *const pool = &report->pools[i];
        sort_readings(&pool->resident);
        sort_readings(&pool->reserved);
        MAREY__TRY_MEMORY(marey__memory_find_peak(pool) && marey__memory_put_phases(report, pool) &&
                          marey__memory_put_alive(report, pool) &&
                          marey__memory_put_growth(report, pool) &&
                          marey__memory_put_live(report, pool));
        marey__memory_put_pool(report, pool);
        marey__memory_put_resident(report, pool);
    }
    return MAREY_OK;
}

/* ---- the report ---- */

static marey_status read_all(struct marey__memory_report *memory, const marey_report *report,
                             const struct marey__request *request)
{
    if (request->bytes != NULL)
        return marey__memory_take_snapshot(memory, request->paths[0], request->bytes,
                                           request->n_bytes);
    for (size_t i = 0; i < request->n; i++)
        MAREY_TRY(request->paths != NULL
                      ? read_file(memory, request->paths[i])
                      : marey__memory_read_recording(memory, request->recordings[i]));
    return memory->n_pools == 0 && request->paths == NULL ? marey__report_missing(report) : MAREY_OK;
}

static void fini(struct marey__memory_report *memory)
{
    for (size_t i = 0; i < memory->n_pools; i++) {
        struct marey__memory_pool *const pool = &memory->pools[i];
        MAREY__FREE_ALL(pool->blocks, pool->phases.at, pool->iterations.at, pool->resident.at,
                        pool->reserved.at);
    }
    MAREY__FREE_ALL(memory->pools, memory->stacks, memory->frames, memory->codes);
    marey__names_fini(&memory->names);
    marey__arena_fini(&memory->texts);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const uint32_t limit = marey__setting_count(request, "limit");
    struct marey__memory_report memory MAREY__FINALLY(fini) = {
        .options = {.filter = marey__setting(request, "filter"),
                    .n_stacks = limit != 0 ? limit : N_STACKS},
        .tables = report->tables,
    };
    MAREY_TRY(read_all(&memory, report, request));
    return make_tables(&memory);
}

marey_status marey__memory_report_bytes(const char *name, const void *bytes, size_t len,
                                        marey_report **out)
{
    static const struct marey_report_options defaults;
    const struct marey__request request = {
        .paths = &name, .n = 1, .bytes = bytes, .n_bytes = len, .options = &defaults};
    return marey__report_make("memory", &request, out);
}

/* Memory was sampled, or CUPTI recorded allocations, which are among the summary's kernels. */
static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++) {
            const struct marey_process *const process = marey_recording_process(recordings[r], i);
            if ((process->memory[0] != '\0' && process->n_events != 0) ||
                (ranges == NULL && marey__has_streams(recordings[r], i)))
                return true;
        }
    if (ranges == NULL)
        return false;
    const marey_table *const kernels = marey_report_table(ranges, "kernels");
    for (size_t row = 0; row < marey_table_n_rows(kernels); row++)
        if (strcmp(marey__cell_of(kernels, row, "kind").as.text, "memory") == 0)
            return true;
    return false;
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only stacks with a frame that matches", 'f'},
    {"limit", MAREY_SETTING_COUNT, "N", "stacks of each pool (default: 20)"},
};

static const struct marey__page_table page_tables[] = {
    {"stacks", NULL},        {"pools", NULL},    {"phases", NULL},
    {"categories", NULL},    {"modules", NULL},  {"growth", NULL},
    {"fragmentation", NULL}, {"resident", NULL}, {"live", NULL},
    {"notes", NULL},         {NULL, NULL},
};

const struct marey__analysis marey__analysis_memory = {
    .about =
        {.name = "memory",
         .help = "allocations: the peak, live memory at the peak, growth and\n"
                 "leaks; also of a CUDA snapshot (.pickle) or a torch trace",
         .needs = "'marey run --memory' and marey.start(memory=True) record it, 'marey run "
                  "--gpu' records CUDA's",
         .examples =
             "  marey report train.marey --memory            live memory at the peak, leaks\n"
             "  marey report --memory snapshot.pickle        the same of torch's CUDA allocator",
         MAREY__SETTINGS(settings),
         MAREY__TABLES(marey__memory_tables),
         .csv = "stacks",
         .option = "memory"},
    .make = make,
    .text = marey__memory_text,
    .is_file = is_file,
    .is_there = is_there,
    .page = page_tables,
    .page_setting = "filter",
    .page_key = "memory",
};
