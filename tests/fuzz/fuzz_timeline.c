/* Any text as a trace of torch.profiler: its memory over time adds up, and every file of it is written. */
#include <fcntl.h>
#include <stdlib.h>

#include "analyze/memory_timeline.h"
#include "fuzz.h"

/* At the end there is what was made and not released, and the peak is what was alive then. */
static void check_device(const kymo_memory_timeline *timeline,
                         const struct kymo__memory_device *device)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct kymo__memory_change *change = &device->changes[i];
        const struct kymo__memory_block *block = &timeline->blocks[change->block];
        KYMO_ASSERT((change->is_end ? block->freed_change : block->made_change) == i);
        KYMO_ASSERT(i == 0 || kymo__memory_change_ns(timeline, change) >=
                                  kymo__memory_change_ns(timeline, change - 1));
        bytes += change->is_end ? -block->bytes : block->bytes;
        KYMO_ASSERT(bytes >= 0);
    }
    struct kymo__memory_alive alive;
    if (kymo__memory_alive_init(&alive, timeline, device, device->peak_change) != KYMO_OK)
        abort();
    KYMO_ASSERT(alive.bytes == device->peak_bytes);
    kymo__memory_alive_fini(&alive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct kymo__torch_trace *trace;
    kymo_memory_timeline *timeline;
    if (fd < 0 && (fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
        abort();
    if (kymo__torch_read_memory("fuzzed", data, size, NULL, &trace) != KYMO_OK)
        return 0;
    if (kymo_memory_timeline_create(trace, &timeline) != KYMO_OK)
        abort();
    for (size_t i = 0; i < timeline->n_devices; i++)
        check_device(timeline, &timeline->devices[i]);
    for (int file = KYMO_MEMORY_JSON; timeline->n_devices != 0 && file <= KYMO_MEMORY_SNAPSHOT; file++)
        if (kymo_memory_timeline_write(timeline, (enum kymo_memory_file)file, "fuzzed", fd) != KYMO_OK)
            abort();
    kymo_memory_timeline_destroy(timeline);
    kymo__torch_free(trace);
    return 0;
}
