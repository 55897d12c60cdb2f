/* The timeline: blocks, categories, then the changes of each device in order. */
#include "analyze/memory/internal.h"

/* ---- categories ---- */

static const char *const names[MAREY_MEMORY_N_CATEGORIES] = {
    [MAREY_MEMORY_PARAMETER] = "parameter",
    [MAREY_MEMORY_OPTIMIZER_STATE] = "optimizer_state",
    [MAREY_MEMORY_INPUT] = "input",
    [MAREY_MEMORY_TEMPORARY] = "temporary",
    [MAREY_MEMORY_ACTIVATION] = "activation",
    [MAREY_MEMORY_GRADIENT] = "gradient",
    [MAREY_MEMORY_AUTOGRAD_DETAIL] = "autograd_detail",
    [MAREY_MEMORY_UNKNOWN] = "unknown",
};

const char *marey_memory_category_name(enum marey_memory_category category)
{
    return (unsigned)category < MAREY_MEMORY_N_CATEGORIES ? names[category] : "unknown";
}

/* ---- changes ---- */

/* A change with its sort keys. */
struct sorted_change {
    uint32_t device;
    int64_t ns;
    uint32_t event, block;
    bool is_end;
};

/* A release comes before an allocation at the same address. */
MAREY__ORDER(in_order, struct sorted_change,
             MAREY__UP(device) MAREY__UP(ns) MAREY__UP(event) MAREY__DOWN(is_end) MAREY__UP(block))

static size_t list_changes(const struct marey__memory_timeline *timeline, struct sorted_change *list)
{
    size_t n = 0;
    for (uint32_t i = 0; i < timeline->n_blocks; i++) {
        const struct marey__memory_block *block = &timeline->blocks[i];
        list[n++] =
            (struct sorted_change){block->device, block->made_ns, block->made_event, i, false};
        if (block->freed_ns != MAREY__MEMORY_NEVER)
            list[n++] =
                (struct sorted_change){block->device, block->freed_ns, block->freed_event, i, true};
    }
    qsort(list, n, sizeof *list, in_order);
    return n;
}

/* Give each device its changes, and set the blocks' indexes to them. */
static void share_out(struct marey__memory_timeline *timeline, const struct sorted_change *list,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct marey__memory_device *device = &timeline->devices[list[i].device];
        struct marey__memory_block *block = &timeline->blocks[list[i].block];
        if (device->n_changes == 0)
            device->changes = &timeline->changes[i];
        timeline->changes[i] =
            (struct marey__memory_change){.block = list[i].block, .is_end = list[i].is_end};
        *(list[i].is_end ? &block->freed_change : &block->made_change) = (uint32_t)device->n_changes;
        device->n_changes++;
        device->n_before += list[i].ns == MAREY__MEMORY_BEFORE;
    }
}

static bool order_changes(struct marey__memory_timeline *timeline)
{
    if (timeline->n_blocks == 0)
        return true;
    struct sorted_change *const list MAREY__FREED =
        marey__calloc(2 * timeline->n_blocks, sizeof *list);
    timeline->changes = marey__calloc(2 * timeline->n_blocks, sizeof *timeline->changes);
    if (list == NULL || timeline->changes == NULL)
        return false;
    share_out(timeline, list, list_changes(timeline, list));
    return true;
}

static void find_peak(const struct marey__memory_timeline *timeline,
                      struct marey__memory_device *device)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_change *change = &device->changes[i];
        const int64_t size = timeline->blocks[change->block].bytes;
        bytes += change->is_end ? -size : size;
        if (bytes > device->peak_bytes) {
            device->peak_bytes = bytes;
            device->peak_change = i;
        }
    }
}

/* ---- the timeline ---- */

static bool fill(struct marey__memory_timeline *timeline)
{
    const bool ok = marey__memory_make_blocks(timeline) &&
                    marey__memory_phases_init(&timeline->phases, timeline->trace) &&
                    marey__memory_classify(timeline) && order_changes(timeline);
    for (size_t i = 0; ok && i < timeline->n_devices; i++)
        find_peak(timeline, &timeline->devices[i]);
    return ok;
}

marey_status marey_memory_timeline_create(const struct marey__torch_trace *trace,
                                          struct marey__memory_timeline **out)
{
    marey_memory_timeline *timeline = marey__calloc(1, sizeof *timeline);
    MAREY__TRY_MEMORY(timeline != NULL);
    timeline->trace = trace;
    if (!fill(timeline)) {
        marey_memory_timeline_destroy(timeline);
        return marey__no_memory();
    }
    *out = timeline;
    return MAREY_OK;
}

void marey_memory_timeline_destroy(struct marey__memory_timeline *timeline)
{
    if (timeline == NULL)
        return;
    marey__memory_phases_fini(&timeline->phases);
    MAREY__FREE_ALL(timeline->blocks, timeline->devices, timeline->changes, timeline);
}

size_t marey_memory_timeline_n_devices(const marey_memory_timeline *timeline)
{
    return timeline->n_devices;
}

void marey__memory_device_name(const struct marey__memory_device *device, char name[32])
{
    if (device->type == 0)
        snprintf(name, 32, "CPU");
    else if (device->type == 1)
        snprintf(name, 32, "GPU %d", device->id);
    else
        snprintf(name, 32, "device %d:%d", device->type, device->id);
}

const struct marey__memory_device *
marey__memory_main_device(const struct marey__memory_timeline *timeline)
{
    for (size_t i = 0; i < timeline->n_devices; i++)
        if (timeline->devices[i].type != 0 && timeline->devices[i].n_changes != 0)
            return &timeline->devices[i];
    return &timeline->devices[0];
}

int64_t marey__memory_change_ns(const struct marey__memory_timeline *timeline,
                                const struct marey__memory_change *change)
{
    const struct marey__memory_block *block = &timeline->blocks[change->block];
    return change->is_end ? block->freed_ns : block->made_ns;
}
