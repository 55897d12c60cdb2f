/* The files of a memory timeline by their kind. */
#include "present/memory_out.h"

kymo_status kymo_memory_timeline_write(const kymo_memory_timeline *timeline,
                                       enum kymo_memory_file file, const char *title, int fd)
{
    if (timeline->n_devices == 0)
        return kymo__fail(KYMO_EINVAL,
                          "the trace has no memory events; record it with profile_memory");
    switch (file) {
    case KYMO_MEMORY_JSON:
        return kymo__memory_json_write(timeline, fd);
    case KYMO_MEMORY_RAW:
        return kymo__memory_raw_write(timeline, fd);
    case KYMO_MEMORY_PAGE:
        return kymo__memory_page_write(timeline, title != NULL ? title : "Memory", fd);
    case KYMO_MEMORY_SNAPSHOT:
        return kymo__memory_snapshot_write(timeline, fd);
    }
    return kymo__fail(KYMO_EINVAL, "no such file of a memory timeline: %d", (int)file);
}
