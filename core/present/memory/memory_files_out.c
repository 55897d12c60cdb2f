/* The files of a memory timeline by their kind. */
#include "present/memory/internal.h"

marey_status marey_memory_timeline_write(const marey_memory_timeline *timeline,
                                         enum marey_memory_file file, const char *title, int fd)
{
    if (timeline->n_devices == 0)
        return marey__fail(MAREY_EINVAL,
                           "the trace has no memory events; record it with profile_memory");
    switch (file) {
    case MAREY_MEMORY_JSON:
        return marey__memory_json_write(timeline, fd);
    case MAREY_MEMORY_RAW:
        return marey__memory_raw_write(timeline, fd);
    case MAREY_MEMORY_PAGE:
        return marey__memory_page_write(timeline, title != NULL ? title : "Memory", fd);
    case MAREY_MEMORY_SNAPSHOT:
        return marey__memory_snapshot_write(timeline, fd);
    }
    return marey__fail(MAREY_EINVAL, "no such file of a memory timeline: %d", (int)file);
}
