/* The report of memory: its pools, its names, and the way from sources to tables. */
#include <stdio.h>
#include <string.h>

#include "analyze/memory/memory_snapshot.h"

enum { N_STACKS = 20 };

/* ---- what sources fill ---- */

uint32_t marey__memory_name(struct marey_memory_report *report, const char *text, size_t len)
{
    const size_t n = report->names.n;
    const uint32_t number = marey__names_number(&report->names, text, len);
    if (number == MAREY__NO_NAME || number < n)
        return number;
    const char *const copy = marey__arena_text(&report->texts, text, len);
    report->names.names[number].text = copy != NULL ? copy : "";
    report->names.names[number].len = copy != NULL ? len : 0;
    return copy != NULL ? number : MAREY__NO_NAME;
}

struct marey__memory_pool *marey__memory_pool_add(struct marey_memory_report *report)
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

bool marey__memory_span_add(struct marey__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                            uint32_t name)
{
    return MAREY__PUSH(spans->at, spans->n, spans->cap,
                       (struct marey__held_span){begin_ns, end_ns, name});
}

uint32_t marey__memory_stack_add(struct marey_memory_report *report, const uint32_t *names, size_t n)
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

void marey__memory_note(struct marey_memory_report *report, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    marey__put_string(report->tables[MAREY__MEMORY_NOTES], text);
}

/* ---- from pools to tables ---- */

static int readings_by_time(const void *a, const void *b)
{
    const struct marey__memory_reading *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void sort_readings(struct marey__memory_readings *readings)
{
    if (readings->n != 0)
        qsort(readings->at, readings->n, sizeof *readings->at, readings_by_time);
}

static marey_status make_tables(struct marey_memory_report *report)
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
    for (size_t i = 0; i < MAREY__N_MEMORY_TABLES; i++)
        MAREY_TRY(marey_table_status(report->tables[i]));
    return MAREY_OK;
}

static marey_status create(const struct marey_memory_report_options *options,
                           marey_memory_report **out)
{
    struct marey_memory_report *const report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    if (options != NULL)
        report->options = *options;
    if (report->options.n_stacks == 0)
        report->options.n_stacks = N_STACKS;
    const marey_status status = marey__memory_tables_create(report);
    if (status != MAREY_OK) {
        marey_memory_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

static marey_status finish(struct marey_memory_report *report, marey_status status,
                           marey_memory_report **out)
{
    if (status == MAREY_OK)
        status = make_tables(report);
    if (status != MAREY_OK) {
        marey_memory_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

marey_status marey_memory_report_create(marey_recording *const *recordings, size_t n,
                                        const struct marey_memory_report_options *options,
                                        marey_memory_report **out)
{
    struct marey_memory_report *report = NULL;
    MAREY_TRY(create(options, &report));
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++)
        status = marey__memory_read_recording(report, recordings[i]);
    if (status == MAREY_OK && report->n_pools == 0)
        status =
            marey__fail(MAREY_EFORMAT,
                        "nothing about memory was recorded; record it with marey run --memory, or "
                        "marey.start(memory=True), and CUDA's with marey run --gpu");
    return finish(report, status, out);
}

marey_status marey_memory_report_files(const char *const *paths, size_t n,
                                       const struct marey_memory_report_options *options,
                                       marey_memory_report **out)
{
    struct marey_memory_report *report = NULL;
    MAREY_TRY(create(options, &report));
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++)
        status = marey__memory_read_file(report, paths[i]);
    return finish(report, status, out);
}

marey_status marey__memory_report_bytes(const char *name, const void *bytes, size_t len,
                                        marey_memory_report **out)
{
    struct marey_memory_report *report = NULL;
    MAREY_TRY(create(NULL, &report));
    return finish(report, marey__memory_take_snapshot(report, name, bytes, len), out);
}

void marey_memory_report_destroy(marey_memory_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < report->n_pools; i++) {
        struct marey__memory_pool *const pool = &report->pools[i];
        marey__free(pool->blocks);
        marey__free(pool->phases.at);
        marey__free(pool->iterations.at);
        marey__free(pool->resident.at);
        marey__free(pool->reserved.at);
    }
    for (size_t i = 0; i < MAREY__N_MEMORY_TABLES; i++)
        marey_table_destroy(report->tables[i]);
    marey__free(report->pools);
    marey__free(report->stacks);
    marey__free(report->frames);
    marey__free(report->codes);
    marey__names_fini(&report->names);
    marey__arena_fini(&report->texts);
    marey__free(report);
}

marey_table *marey_memory_report_table(marey_memory_report *report, const char *name)
{
    for (size_t i = 0; i < MAREY__N_MEMORY_TABLES; i++)
        if (strcmp(marey_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
