/* The tables of GPU work: by name, copies by direction, and by the ranges that launched it. */
#include <string.h>

#include "analyze/summary/internal.h"

static const struct marey_column kernel_columns[] = {
    MAREY__NAME_COLUMN,
    {"kind", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("min_ns", "min"),
    MAREY__NS_COLUMN("p50_ns", "median"),
    MAREY__NS_COLUMN("p90_ns", "p90"),
    MAREY__NS_COLUMN("p99_ns", "p99"),
    MAREY__NS_COLUMN("max_ns", "max"),
    MAREY__SHARE_COLUMN("of GPU"),
    MAREY__TALLY_COLUMN("streams", NULL),
    MAREY__TALLY_COLUMN("devices", NULL),
    MAREY__TALLY_COLUMN("processes", "procs"),
};

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
static marey_status fill_kernels(marey_table *table, const struct marey__making *m)
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

const struct marey_column marey__copy_columns[MAREY__N_COPY_COLUMNS] = {
    MAREY__NAME_COLUMN,
    {"direction", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__COUNT_COLUMN,
    {"bytes", NULL, MAREY_TYPE_U64, MAREY_UNIT_BYTES},
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("min_ns", "min"),
    MAREY__NS_COLUMN("max_ns", "max"),
    {"bytes_per_s", "bytes/s", MAREY_TYPE_F64, MAREY_UNIT_BYTES},
};

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

static marey_status fill_copies(marey_table *table, const struct marey__making *m)
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

static const struct marey_column gpu_range_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("gpu_ns", "GPU"),
    MAREY__NS_COLUMN("self_gpu_ns", "self GPU"),
    MAREY__SHARE_COLUMN("of GPU"),
};

static marey_status fill_gpu_ranges(marey_table *table, const struct marey__making *m)
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

const struct marey__table_kind marey__kernels_kind =
    MAREY__TABLE_KIND("kernels", kernel_columns, fill_kernels);
const struct marey__table_kind marey__copies_kind =
    MAREY__TABLE_KIND("copies", marey__copy_columns, fill_copies);
const struct marey__table_kind marey__gpu_ranges_kind =
    MAREY__TABLE_KIND("gpu_ranges", gpu_range_columns, fill_gpu_ranges);
