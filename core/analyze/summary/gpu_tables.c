/* The tables of GPU work: by name, copies by direction, and by the ranges that launched it. */
#include <string.h>

#include "analyze/summary/internal.h"

const char *marey__work_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [MAREY_WORK_KERNEL] = "kernel", [MAREY_WORK_COPY] = "copy",
        [MAREY_WORK_SET] = "set",       [MAREY_WORK_ANNOTATION] = "annotation",
        [MAREY_WORK_SYNC] = "sync",     [MAREY_WORK_MEMORY] = "memory",
    };
    return kind < MAREY__COUNT_OF(names) && names[kind] != NULL ? names[kind] : "other";
}

static void put_work(marey_table *table, const struct marey__making *m,
                     const struct marey__merged_work *work)
{
    const struct marey__sketch *calls = &work->calls;
    marey__put_name(table, m, work->name);
    marey__put_string(table, marey__work_kind_name(work->kind));
    marey_table_u64(table, calls->count);
    marey_table_u64(table, calls->sum);
    marey_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    marey_table_u64(table, calls->min);
    marey_table_u64(table, marey__sketch_quantile(calls, 0.5));
    marey_table_u64(table, marey__sketch_quantile(calls, 0.9));
    marey_table_u64(table, marey__sketch_quantile(calls, 0.99));
    marey_table_u64(table, calls->max);
    marey__put_share(table, calls->sum, marey__is_work(work->kind) ? m->merge->gpu.work_ns : 0);
    marey_table_u64(table, work->n_streams);
    marey_table_u64(table, work->n_devices);
    marey_table_u64(table, work->n_processes);
}

/* What has no share, since it is no work, comes last. */
marey_status marey__fill_kernels(marey_table *table, const struct marey__making *m)
{
    const struct marey__gpu_merge *gpu = &m->merge->gpu;
    for (size_t i = 0; i < gpu->n_works; i++)
        if (marey__is_wanted(m, gpu->works[i].name))
            put_work(table, m, &gpu->works[i]);
    marey__sort_by(table, "kind", 0);
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "total_ns", 1);
    marey__sort_by(table, "share", 1);
    return MAREY_OK;
}

/* ---- copies ---- */

/* "HtoD" of "Memcpy HtoD (Pageable -> Device)"; null for what is not named so. */
static void put_direction(marey_table *table, const char *name, size_t len)
{
    static const char prefix[] = "Memcpy ";
    const size_t from = sizeof prefix - 1;
    size_t to = from;
    if (len > from && memcmp(name, prefix, from) == 0)
        while (to < len && name[to] != ' ')
            to++;
    if (to == from)
        marey_table_null(table);
    else
        marey_table_text(table, name + from, to - from);
}

void marey__put_byte_rate(marey_table *table, uint64_t bytes, uint64_t ns)
{
    if (bytes == 0 || ns == 0)
        marey_table_null(table);
    else
        marey_table_f64(table, (double)bytes * 1e9 / (double)ns);
}

void marey__put_copy(marey_table *table, const struct marey__copy *copy)
{
    const struct marey__sketch *calls = copy->calls;
    marey_table_text(table, copy->name, copy->len);
    put_direction(table, copy->name, copy->len);
    marey_table_u64(table, calls->count);
    if (copy->bytes == 0)
        marey_table_null(table);
    else
        marey_table_u64(table, copy->bytes);
    marey_table_u64(table, calls->sum);
    marey_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    marey_table_u64(table, calls->min);
    marey_table_u64(table, calls->max);
    marey__put_byte_rate(table, copy->bytes, copy->bytes_ns);
}

marey_status marey__fill_copies(marey_table *table, const struct marey__making *m)
{
    const struct marey__gpu_merge *gpu = &m->merge->gpu;
    for (size_t i = 0; i < gpu->n_works; i++) {
        const struct marey__merged_work *work = &gpu->works[i];
        const struct marey__name *name = &m->merge->names.names[work->name];
        if ((work->kind != MAREY_WORK_COPY && work->kind != MAREY_WORK_SET) ||
            !marey__is_wanted(m, work->name))
            continue;
        marey__put_copy(table, &(struct marey__copy){.name = name->text,
                                                     .len = name->len,
                                                     .calls = &work->calls,
                                                     .bytes = work->bytes,
                                                     .bytes_ns = work->bytes_ns});
    }
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "total_ns", 1);
    return MAREY_OK;
}

/* ---- ranges ---- */

marey_status marey__fill_gpu_ranges(marey_table *table, const struct marey__making *m)
{
    const struct marey__gpu_merge *gpu = &m->merge->gpu;
    for (uint32_t name = 0; name < gpu->n_ranges; name++) {
        const struct marey__gpu_range *range = &gpu->ranges[name];
        if (range->count == 0 || !marey__is_range_wanted(m, name))
            continue;
        marey__put_name(table, m, name);
        marey_table_u64(table, range->count);
        marey_table_u64(table, range->total_ns);
        marey_table_u64(table, range->self_ns);
        marey__put_share(table, range->total_ns, gpu->work_ns);
    }
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "gpu_ns", 1);
    return MAREY_OK;
}
