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

/* Rows without a share, which are not work, come last. */
void marey__fill_kernels(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__gpu_merge *gpu = &m->merge->gpu;
    for (size_t i = 0; i < gpu->n_works; i++) {
        const struct marey__merged_work *const work = &gpu->works[i];
        const struct marey__sketch *const calls = &work->calls;
        if (!marey__is_wanted(m, work->name))
            continue;
        MAREY__PUT_ROW(
            table, NAMED(m, work->name), STRING(marey__work_kind_name(work->kind)),
            U64(calls->count), U64(calls->sum), U64((calls->sum + calls->count / 2) / calls->count),
            U64(calls->min), U64(marey__sketch_quantile(calls, 0.5)),
            U64(marey__sketch_quantile(calls, 0.9)), U64(marey__sketch_quantile(calls, 0.99)),
            U64(calls->max), RATIO(calls->sum, marey__is_work(work->kind) ? gpu->work_ns : 0),
            U64(work->n_streams), U64(work->n_devices), U64(work->n_processes));
    }
    MAREY__SORT_BY(table, "-share", "-total_ns", "name", "kind");
}

/* ---- copies ---- */

/* "HtoD" from "Memcpy HtoD (Pageable -> Device)"; null for other names. */
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
    marey__put_real(table, (double)bytes * 1e9 / (double)ns, bytes != 0 && ns != 0);
}

void marey__put_copy(marey_table *table, const struct marey__copy *copy)
{
    const struct marey__sketch *calls = copy->calls;
    marey_table_text(table, copy->name, copy->len);
    put_direction(table, copy->name, copy->len);
    MAREY__PUT_ROW(table, U64(calls->count), KNOWN(copy->bytes != 0, U64(copy->bytes)),
                   U64(calls->sum), U64((calls->sum + calls->count / 2) / calls->count),
                   U64(calls->min), U64(calls->max));
    marey__put_byte_rate(table, copy->bytes, copy->bytes_ns);
}

void marey__fill_copies(marey_table *table, const struct marey__table_context *m)
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
    MAREY__SORT_BY(table, "-total_ns", "name");
}

/* ---- ranges ---- */

void marey__fill_gpu_ranges(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__gpu_merge *gpu = &m->merge->gpu;
    for (uint32_t name = 0; name < gpu->n_ranges; name++) {
        const struct marey__gpu_range *range = &gpu->ranges[name];
        if (range->count == 0 || !marey__is_range_wanted(m, name))
            continue;
        MAREY__PUT_ROW(table, NAMED(m, name), U64(range->count), U64(range->total_ns),
                       U64(range->self_ns), RATIO(range->total_ns, gpu->work_ns));
    }
    MAREY__SORT_BY(table, "-gpu_ns", "name");
}
