/* The report of memory: its pools, its names, and the way from sources to tables. */
#include <stdio.h>
#include <string.h>

#include "analyze/memory_snapshot.h"

enum { N_STACKS = 20 };

kymo_status kymo__memory_no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the report of memory");
}

/* ---- what sources fill ---- */

uint32_t kymo__memory_name(struct kymo_memory_report *report, const char *text, size_t len)
{
    const size_t n = report->names.n;
    const uint32_t number = kymo__names_number(&report->names, text, len);
    if (number == KYMO__NO_NAME || number < n)
        return number;
    const char *const copy = kymo__arena_text(&report->texts, text, len);
    report->names.names[number].text = copy != NULL ? copy : "";
    report->names.names[number].len = copy != NULL ? len : 0;
    return copy != NULL ? number : KYMO__NO_NAME;
}

struct kymo__memory_pool *kymo__memory_pool_add(struct kymo_memory_report *report)
{
    if (!kymo__grow(&report->pools, &report->pools_cap, report->n_pools + 1, sizeof *report->pools))
        return NULL;
    struct kymo__memory_pool *const pool = &report->pools[report->n_pools++];
    *pool = (struct kymo__memory_pool){.rank = -1, .source = ""};
    return pool;
}

bool kymo__memory_block_add(struct kymo__memory_pool *pool, const struct kymo__held_block *block)
{
    if (!kymo__grow(&pool->blocks, &pool->blocks_cap, pool->n_blocks + 1, sizeof *pool->blocks))
        return false;
    pool->blocks[pool->n_blocks++] = *block;
    return true;
}

bool kymo__memory_reading_add(struct kymo__memory_readings *readings, uint64_t ns, double bytes)
{
    if (!kymo__grow(&readings->at, &readings->cap, readings->n + 1, sizeof *readings->at))
        return false;
    readings->at[readings->n++] = (struct kymo__memory_reading){ns, bytes};
    return true;
}

bool kymo__memory_span_add(struct kymo__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                           uint32_t name)
{
    if (!kymo__grow(&spans->at, &spans->cap, spans->n + 1, sizeof *spans->at))
        return false;
    spans->at[spans->n++] = (struct kymo__held_span){begin_ns, end_ns, name};
    return true;
}

uint32_t kymo__memory_stack_add(struct kymo_memory_report *report, const uint32_t *names, size_t n)
{
    if (report->n_stacks + 1 >= KYMO__NO_STACK ||
        !kymo__grow(&report->frames, &report->frames_cap, report->n_frames + n,
                    sizeof *report->frames) ||
        !kymo__grow(&report->stacks, &report->stacks_cap, report->n_stacks + 1,
                    sizeof *report->stacks))
        return KYMO__NO_STACK;
    report->stacks[report->n_stacks] = (struct kymo__memory_stack){report->n_frames, n};
    if (n != 0)
        memcpy(report->frames + report->n_frames, names, n * sizeof *names);
    report->n_frames += n;
    return (uint32_t)report->n_stacks++;
}

void kymo__memory_note(struct kymo_memory_report *report, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kymo__put_string(report->tables[KYMO__MEMORY_NOTES], text);
}

/* ---- from pools to tables ---- */

static int readings_by_time(const void *a, const void *b)
{
    const struct kymo__memory_reading *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void sort_readings(struct kymo__memory_readings *readings)
{
    if (readings->n != 0)
        qsort(readings->at, readings->n, sizeof *readings->at, readings_by_time);
}

static kymo_status make_tables(struct kymo_memory_report *report)
{
    if (!kymo__memory_find_where(report))
        return kymo__memory_no_memory();
    for (size_t i = 0; i < report->n_pools; i++) {
        struct kymo__memory_pool *const pool = &report->pools[i];
        sort_readings(&pool->resident);
        sort_readings(&pool->reserved);
        if (!kymo__memory_find_peak(pool) || !kymo__memory_put_phases(report, pool) ||
            !kymo__memory_put_alive(report, pool) || !kymo__memory_put_growth(report, pool) ||
            !kymo__memory_put_live(report, pool))
            return kymo__memory_no_memory();
        kymo__memory_put_pool(report, pool);
        kymo__memory_put_resident(report, pool);
    }
    for (size_t i = 0; i < KYMO__N_MEMORY_TABLES; i++)
        KYMO_TRY(kymo_table_status(report->tables[i]));
    return KYMO_OK;
}

static kymo_status create(const struct kymo_memory_report_options *options, kymo_memory_report **out)
{
    struct kymo_memory_report *const report = kymo__calloc(1, sizeof *report);
    if (report == NULL)
        return kymo__memory_no_memory();
    if (options != NULL)
        report->options = *options;
    if (report->options.n_stacks == 0)
        report->options.n_stacks = N_STACKS;
    const kymo_status status = kymo__memory_tables_create(report);
    if (status != KYMO_OK) {
        kymo_memory_report_destroy(report);
        return status;
    }
    *out = report;
    return KYMO_OK;
}

static kymo_status finish(struct kymo_memory_report *report, kymo_status status,
                          kymo_memory_report **out)
{
    if (status == KYMO_OK)
        status = make_tables(report);
    if (status != KYMO_OK) {
        kymo_memory_report_destroy(report);
        return status;
    }
    *out = report;
    return KYMO_OK;
}

kymo_status kymo_memory_report_create(kymo_recording *const *recordings, size_t n,
                                      const struct kymo_memory_report_options *options,
                                      kymo_memory_report **out)
{
    struct kymo_memory_report *report = NULL;
    KYMO_TRY(create(options, &report));
    kymo_status status = KYMO_OK;
    for (size_t i = 0; status == KYMO_OK && i < n; i++)
        status = kymo__memory_read_recording(report, recordings[i]);
    if (status == KYMO_OK && report->n_pools == 0)
        status = kymo__fail(
            KYMO_EFORMAT, "nothing about memory was recorded; record it with kymo run --memory, or "
                          "kymo.start(memory=True), and CUDA's with kymo run --gpu");
    return finish(report, status, out);
}

kymo_status kymo_memory_report_files(const char *const *paths, size_t n,
                                     const struct kymo_memory_report_options *options,
                                     kymo_memory_report **out)
{
    struct kymo_memory_report *report = NULL;
    KYMO_TRY(create(options, &report));
    kymo_status status = KYMO_OK;
    for (size_t i = 0; status == KYMO_OK && i < n; i++)
        status = kymo__memory_read_file(report, paths[i]);
    return finish(report, status, out);
}

kymo_status kymo__memory_report_bytes(const char *name, const void *bytes, size_t len,
                                      kymo_memory_report **out)
{
    struct kymo_memory_report *report = NULL;
    KYMO_TRY(create(NULL, &report));
    return finish(report, kymo__memory_take_snapshot(report, name, bytes, len), out);
}

void kymo_memory_report_destroy(kymo_memory_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < report->n_pools; i++) {
        struct kymo__memory_pool *const pool = &report->pools[i];
        kymo__free(pool->blocks);
        kymo__free(pool->phases.at);
        kymo__free(pool->iterations.at);
        kymo__free(pool->resident.at);
        kymo__free(pool->reserved.at);
    }
    for (size_t i = 0; i < KYMO__N_MEMORY_TABLES; i++)
        kymo_table_destroy(report->tables[i]);
    kymo__free(report->pools);
    kymo__free(report->stacks);
    kymo__free(report->frames);
    kymo__free(report->codes);
    kymo__names_fini(&report->names);
    kymo__arena_fini(&report->texts);
    kymo__free(report);
}

kymo_table *kymo_memory_report_table(kymo_memory_report *report, const char *name)
{
    for (size_t i = 0; i < KYMO__N_MEMORY_TABLES; i++)
        if (strcmp(kymo_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
