/*
 * The files of a memory timeline, including torch's two gzipped JSON files: sums by category over time, and changes.
 * Both follow torch.profiler.profile.export_memory_timeline, for the main device:
 *
 *   [times, sizes]                           microseconds; for each, 0 and the bytes of the eight categories
 *   [time, action, signed bytes, category]   of each change; nanoseconds, -1 for blocks from before the first event
 */
#include "present/memory/internal.h"

/* torch's numbers of actions. Changes of a tensor's version are not in a trace. */
enum action { PREEXISTING = 1, CREATE = 2, DESTROY = 4 };

static marey_status write_packed(const struct marey__buf *json, int fd)
{
    struct marey__buf packed MAREY__FINALLY(marey__buf_fini) = {.failed = json->failed};
    if (!packed.failed)
        marey__gzip_pack(&packed, json->data, json->len);
    marey_status status = MAREY_OK;
    if (packed.failed)
        status = marey__no_memory();
    else if (!marey__write_all(fd, packed.data, packed.len))
        status = marey__fail_errno("write the memory timeline");
    return status;
}

/* ---- sums ---- */

/* Microseconds; for blocks from before the first event, its time. */
static int64_t us_of(const struct marey__memory_timeline *timeline,
                     const struct marey__memory_device *device, size_t change)
{
    const size_t at = MAREY__MAX(change, device->n_before);
    if (at >= device->n_changes)
        return -1;
    return marey__memory_change_ns(timeline, &device->changes[at]) / 1000;
}

/* A row ends where the next change has another time; blocks from before the first event have a separate row. */
static bool ends_row(const struct marey__memory_timeline *timeline,
                     const struct marey__memory_device *device, size_t change)
{
    if (change + 1 == device->n_changes || change + 1 == device->n_before)
        return true;
    return change + 1 > device->n_before &&
           us_of(timeline, device, change) != us_of(timeline, device, change + 1);
}

static void put_times(struct marey__buf *json, const struct marey__memory_timeline *timeline,
                      const struct marey__memory_device *device)
{
    const char *comma = "";
    for (size_t i = 0; i < device->n_changes; i++) {
        if (!ends_row(timeline, device, i))
            continue;
        marey__buf_printf(json, "%s%" PRId64, comma, us_of(timeline, device, i));
        comma = ", ";
    }
}

static void put_sizes(struct marey__buf *json, const struct marey__memory_timeline *timeline,
                      const struct marey__memory_device *device)
{
    int64_t sums[MAREY_MEMORY_N_CATEGORIES] = {0};
    const char *comma = "";
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_block *block = &timeline->blocks[device->changes[i].block];
        sums[block->category] += device->changes[i].is_end ? -block->bytes : block->bytes;
        if (!ends_row(timeline, device, i))
            continue;
        marey__buf_printf(json, "%s[0", comma);
        for (size_t c = 0; c < MAREY_MEMORY_N_CATEGORIES; c++)
            marey__buf_printf(json, ", %" PRId64, sums[c]);
        marey__buf_puts(json, "]");
        comma = ", ";
    }
}

static marey_status write_json(const struct marey__memory_timeline *timeline, int fd)
{
    const struct marey__memory_device *device = marey__memory_main_device(timeline);
    struct marey__buf json MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&json, "[[");
    put_times(&json, timeline, device);
    marey__buf_puts(&json, "], [");
    put_sizes(&json, timeline, device);
    marey__buf_puts(&json, "]]");
    return write_packed(&json, fd);
}

/* ---- changes ---- */

static void put_change(struct marey__buf *json, const struct marey__memory_timeline *timeline,
                       const struct marey__memory_change *change)
{
    const struct marey__memory_block *block = &timeline->blocks[change->block];
    const int64_t ns = marey__memory_change_ns(timeline, change);
    const bool was_before = ns == MAREY__MEMORY_BEFORE;
    marey__buf_printf(json, "[%" PRId64 ", %d, %" PRId64 ", %d]", was_before ? -1 : ns,
                      change->is_end ? DESTROY
                      : was_before   ? PREEXISTING
                                     : CREATE,
                      change->is_end ? -block->bytes : block->bytes, block->category);
}

static marey_status write_raw(const struct marey__memory_timeline *timeline, int fd)
{
    const struct marey__memory_device *device = marey__memory_main_device(timeline);
    struct marey__buf json MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&json, "[");
    for (size_t i = 0; i < device->n_changes; i++) {
        marey__buf_puts(&json, i == 0 ? "" : ", ");
        put_change(&json, timeline, &device->changes[i]);
    }
    marey__buf_puts(&json, "]");
    return write_packed(&json, fd);
}

/* ---- the files of a timeline ---- */

marey_status marey_memory_timeline_write(const marey_memory_timeline *timeline,
                                         enum marey_memory_file file, const char *title, int fd)
{
    if (timeline->n_devices == 0)
        return marey__fail(MAREY_EINVAL,
                           "the trace has no memory events; record it with profile_memory");
    switch (file) {
    case MAREY_MEMORY_JSON:
        return write_json(timeline, fd);
    case MAREY_MEMORY_RAW:
        return write_raw(timeline, fd);
    case MAREY_MEMORY_PAGE:
        return marey__memory_page_write(timeline, title != NULL ? title : "Memory", fd);
    case MAREY_MEMORY_SNAPSHOT:
        return marey__memory_snapshot_write(timeline, fd);
    }
    return marey__fail(MAREY_EINVAL, "no such file of a memory timeline: %d", (int)file);
}
