/* Any text as a torch.profiler trace: its memory over time adds up, and every file can be written.
 * */
#include <fcntl.h>
#include <stdlib.h>

#include "analyze/memory/internal.h"
#include "fuzz.h"

/* Live memory at the end is what was allocated and not released, and the peak equals live memory at
 * that time. */
static void check_device(const marey_memory_timeline *timeline,
                         const struct marey__memory_device *device)
{
    int64_t bytes = 0, peak = 0;
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_change *change = &device->changes[i];
        const struct marey__memory_block *block = &timeline->blocks[change->block];
        MAREY_ASSERT((change->is_end ? block->freed_change : block->made_change) == i);
        MAREY_ASSERT(i == 0 || marey__memory_change_ns(timeline, change) >=
                                   marey__memory_change_ns(timeline, change - 1));
        bytes += change->is_end ? -block->bytes : block->bytes;
        MAREY_ASSERT(bytes >= 0);
        peak = i == device->peak_change ? bytes : peak;
    }
    MAREY_ASSERT(peak == device->peak_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct marey__torch_trace *trace;
    marey_memory_timeline *timeline;
    if (fd < 0 && (fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
        abort();
    if (marey__torch_read_memory("fuzzed", data, size, NULL, &trace) != MAREY_OK)
        return 0;
    if (marey_memory_timeline_create(trace, &timeline) != MAREY_OK)
        abort();
    for (size_t i = 0; i < timeline->n_devices; i++)
        check_device(timeline, &timeline->devices[i]);
    for (int file = MAREY_MEMORY_JSON; timeline->n_devices != 0 && file <= MAREY_MEMORY_SNAPSHOT;
         file++) {
        const marey_status status =
            marey_memory_timeline_write(timeline, (enum marey_memory_file)file, "fuzzed", fd);
        /* A build without Node has no pages. */
        if (status != MAREY_OK && (status != MAREY_EUNAVAILABLE || file != MAREY_MEMORY_PAGE))
            abort();
    }
    marey_memory_timeline_destroy(timeline);
    marey__torch_free(trace);
    return 0;
}
