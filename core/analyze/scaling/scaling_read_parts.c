/* What a step of a process is made of, by the breakdown: its rows by step, added up and forgotten. */
#include "analyze/scaling/internal.h"

static void add_row(struct marey__scaling_parts *parts, const struct marey__device_row *row)
{
    const struct marey__atoms *atoms = &row->atoms;
    const uint64_t compute = marey__computing_ns(atoms), comm = marey__exposed_comm_ns(atoms),
                   memory = marey__exposed_mem_ns(atoms);
    parts->compute_ns += (double)compute;
    parts->communication_ns += (double)comm;
    parts->memory_ns += (double)memory;
    parts->idle_ns += (double)(row->span_ns - compute - comm - memory);
    parts->n_steps++;
    parts->has_device |= row->device >= 0;
}

/* Rows come device by device, each one's by step. */
static void add_rows(struct marey__scaling_parts *parts, const struct marey__device_rows *rows,
                     uint64_t n_warmup)
{
    uint64_t n_of_device = 0;
    for (size_t i = 0; i < rows->n; i++) {
        n_of_device = i > 0 && rows->rows[i].device == rows->rows[i - 1].device ? n_of_device + 1 : 0;
        if (n_of_device >= n_warmup)
            add_row(parts, &rows->rows[i]);
    }
}

marey_status marey__scaling_parts_read(struct marey__scaling_parts *parts,
                                       marey_recording *recording, size_t process,
                                       const struct marey__rules *rules, uint64_t n_warmup)
{
    struct marey__work_set set = {0};
    struct marey__device_windows windows = {0};
    struct marey__device_rows rows = {0};
    const struct marey__work_options options = {.rules = rules};
    marey_status status = marey__work_set_read(&set, recording, process, &options);
    if (status == MAREY_OK &&
        (!marey__device_windows_make(&windows, &set) ||
         !marey__by_rows_make(&rows, &set, &windows, MAREY__BY_STEP, MAREY__WINDOW_STEPS)))
        status = marey__no_memory();
    /* One worker has nobody to communicate with; of several, what was not recorded is unknown. */
    if (status == MAREY_OK && !(set.is_unknown && set.process->world_size > 1))
        add_rows(parts, &rows, n_warmup);
    marey__free(rows.rows);
    marey__device_windows_fini(&windows);
    marey__work_set_fini(&set);
    return status;
}
