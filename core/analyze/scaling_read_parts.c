/* What a step of a process is made of, by the breakdown: its rows by step, added up and forgotten. */
#include "analyze/scaling_read.h"

static void add_row(struct kymo__scaling_parts *parts, const struct kymo__device_row *row)
{
    const struct kymo__atoms *atoms = &row->atoms;
    const uint64_t compute = kymo__computing_ns(atoms), comm = kymo__exposed_comm_ns(atoms),
                   memory = kymo__exposed_mem_ns(atoms);
    parts->compute_ns += (double)compute;
    parts->communication_ns += (double)comm;
    parts->memory_ns += (double)memory;
    parts->idle_ns += (double)(row->span_ns - compute - comm - memory);
    parts->n_steps++;
    parts->has_device |= row->device >= 0;
}

/* Rows come device by device, each one's by step. */
static void add_rows(struct kymo__scaling_parts *parts, const struct kymo__device_rows *rows,
                     uint64_t n_warmup)
{
    uint64_t n_of_device = 0;
    for (size_t i = 0; i < rows->n; i++) {
        n_of_device = i > 0 && rows->rows[i].device == rows->rows[i - 1].device ? n_of_device + 1 : 0;
        if (n_of_device >= n_warmup)
            add_row(parts, &rows->rows[i]);
    }
}

kymo_status kymo__scaling_parts_read(struct kymo__scaling_parts *parts, kymo_recording *recording,
                                     size_t process, const struct kymo__rules *rules,
                                     uint64_t n_warmup)
{
    struct kymo__work_set set = {0};
    struct kymo__device_windows windows = {0};
    struct kymo__device_rows rows = {0};
    const struct kymo__work_options options = {.rules = rules};
    kymo_status status = kymo__work_set_read(&set, recording, process, &options);
    if (status == KYMO_OK &&
        (!kymo__device_windows_make(&windows, &set) ||
         !kymo__by_rows_make(&rows, &set, &windows, KYMO__BY_STEP, KYMO__WINDOW_STEPS)))
        status = kymo__fail(KYMO_ENOMEM, "no memory to break steps down");
    /* One worker has nobody to communicate with; of several, what was not recorded is unknown. */
    if (status == KYMO_OK && !(set.is_unknown && set.process->world_size > 1))
        add_rows(parts, &rows, n_warmup);
    kymo__free(rows.rows);
    kymo__device_windows_fini(&windows);
    kymo__work_set_fini(&set);
    return status;
}
