/* The tables of GPU work: by name, copies by direction, and by the ranges that launched it. */
#include <string.h>

#include "analyze/gpu_tables.h"

static const struct kymo_column kernel_columns[] = {
    KYMO__NAME_COLUMN,
    {"kind", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("mean_ns", "mean"),
    KYMO__NS_COLUMN("min_ns", "min"),
    KYMO__NS_COLUMN("p50_ns", "median"),
    KYMO__NS_COLUMN("p90_ns", "p90"),
    KYMO__NS_COLUMN("p99_ns", "p99"),
    KYMO__NS_COLUMN("max_ns", "max"),
    KYMO__SHARE_COLUMN("of GPU"),
    KYMO__TALLY_COLUMN("streams", NULL),
    KYMO__TALLY_COLUMN("devices", NULL),
    KYMO__TALLY_COLUMN("processes", "procs"),
};

const char *kymo__work_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [KYMO_WORK_KERNEL] = "kernel", [KYMO_WORK_COPY] = "copy",
        [KYMO_WORK_SET] = "set",       [KYMO_WORK_ANNOTATION] = "annotation",
        [KYMO_WORK_SYNC] = "sync",     [KYMO_WORK_MEMORY] = "memory",
    };
    return kind < KYMO__COUNT_OF(names) && names[kind] != NULL ? names[kind] : "other";
}

static void put_work(kymo_table *table, const struct kymo__making *m,
                     const struct kymo__merged_work *work)
{
    const struct kymo__sketch *calls = &work->calls;
    kymo__put_name(table, m, work->name);
    kymo__put_string(table, kymo__work_kind_name(work->kind));
    kymo_table_u64(table, calls->count);
    kymo_table_u64(table, calls->sum);
    kymo_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    kymo_table_u64(table, calls->min);
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.5));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.9));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.99));
    kymo_table_u64(table, calls->max);
    kymo__put_share(table, calls->sum, kymo__is_work(work->kind) ? m->merge->gpu.work_ns : 0);
    kymo_table_u64(table, work->n_streams);
    kymo_table_u64(table, work->n_devices);
    kymo_table_u64(table, work->n_processes);
}

/* What has no share, since it is no work, comes last. */
static kymo_status fill_kernels(kymo_table *table, const struct kymo__making *m)
{
    const struct kymo__gpu_merge *gpu = &m->merge->gpu;
    for (size_t i = 0; i < gpu->n_works; i++)
        if (kymo__is_wanted(m, gpu->works[i].name))
            put_work(table, m, &gpu->works[i]);
    kymo__sort_by(table, "kind", 0);
    kymo__sort_by(table, "name", 0);
    kymo__sort_by(table, "total_ns", 1);
    kymo__sort_by(table, "share", 1);
    return KYMO_OK;
}

/* ---- copies ---- */

const struct kymo_column kymo__copy_columns[KYMO__N_COPY_COLUMNS] = {
    KYMO__NAME_COLUMN,
    {"direction", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__COUNT_COLUMN,
    {"bytes", NULL, KYMO_TYPE_U64, KYMO_UNIT_BYTES},
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("mean_ns", "mean"),
    KYMO__NS_COLUMN("min_ns", "min"),
    KYMO__NS_COLUMN("max_ns", "max"),
    {"bytes_per_s", "bytes/s", KYMO_TYPE_F64, KYMO_UNIT_BYTES},
};

/* "HtoD" of "Memcpy HtoD (Pageable -> Device)"; null for what is not named so. */
static void put_direction(kymo_table *table, const char *name, size_t len)
{
    static const char prefix[] = "Memcpy ";
    const size_t from = sizeof prefix - 1;
    size_t to = from;
    if (len > from && memcmp(name, prefix, from) == 0)
        while (to < len && name[to] != ' ')
            to++;
    if (to == from)
        kymo_table_null(table);
    else
        kymo_table_text(table, name + from, to - from);
}

void kymo__put_byte_rate(kymo_table *table, uint64_t bytes, uint64_t ns)
{
    if (bytes == 0 || ns == 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)bytes * 1e9 / (double)ns);
}

void kymo__put_copy(kymo_table *table, const struct kymo__copy *copy)
{
    const struct kymo__sketch *calls = copy->calls;
    kymo_table_text(table, copy->name, copy->len);
    put_direction(table, copy->name, copy->len);
    kymo_table_u64(table, calls->count);
    if (copy->bytes == 0)
        kymo_table_null(table);
    else
        kymo_table_u64(table, copy->bytes);
    kymo_table_u64(table, calls->sum);
    kymo_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    kymo_table_u64(table, calls->min);
    kymo_table_u64(table, calls->max);
    kymo__put_byte_rate(table, copy->bytes, copy->bytes_ns);
}

static kymo_status fill_copies(kymo_table *table, const struct kymo__making *m)
{
    const struct kymo__gpu_merge *gpu = &m->merge->gpu;
    for (size_t i = 0; i < gpu->n_works; i++) {
        const struct kymo__merged_work *work = &gpu->works[i];
        const struct kymo__name *name = &m->merge->names.names[work->name];
        if ((work->kind != KYMO_WORK_COPY && work->kind != KYMO_WORK_SET) ||
            !kymo__is_wanted(m, work->name))
            continue;
        kymo__put_copy(table, &(struct kymo__copy){.name = name->text,
                                                   .len = name->len,
                                                   .calls = &work->calls,
                                                   .bytes = work->bytes,
                                                   .bytes_ns = work->bytes_ns});
    }
    kymo__sort_by(table, "name", 0);
    kymo__sort_by(table, "total_ns", 1);
    return KYMO_OK;
}

/* ---- ranges ---- */

static const struct kymo_column gpu_range_columns[] = {
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("gpu_ns", "GPU"),
    KYMO__NS_COLUMN("self_gpu_ns", "self GPU"),
    KYMO__SHARE_COLUMN("of GPU"),
};

static kymo_status fill_gpu_ranges(kymo_table *table, const struct kymo__making *m)
{
    const struct kymo__gpu_merge *gpu = &m->merge->gpu;
    for (uint32_t name = 0; name < gpu->n_ranges; name++) {
        const struct kymo__gpu_range *range = &gpu->ranges[name];
        if (range->count == 0 || !kymo__is_range_wanted(m, name))
            continue;
        kymo__put_name(table, m, name);
        kymo_table_u64(table, range->count);
        kymo_table_u64(table, range->total_ns);
        kymo_table_u64(table, range->self_ns);
        kymo__put_share(table, range->total_ns, gpu->work_ns);
    }
    kymo__sort_by(table, "name", 0);
    kymo__sort_by(table, "gpu_ns", 1);
    return KYMO_OK;
}

const struct kymo__table_kind kymo__kernels_kind =
    KYMO__TABLE_KIND("kernels", kernel_columns, fill_kernels);
const struct kymo__table_kind kymo__copies_kind =
    KYMO__TABLE_KIND("copies", kymo__copy_columns, fill_copies);
const struct kymo__table_kind kymo__gpu_ranges_kind =
    KYMO__TABLE_KIND("gpu_ranges", gpu_range_columns, fill_gpu_ranges);
