/* The page of a memory timeline. */
#include "present/memory_out.h"
#include "present/page_internal.h"

static kymo_status write_plain(const struct kymo__memory_timeline *timeline, const char *title, int fd)
{
    struct kymo__memory_peaks peaks;
    kymo_status status = kymo__memory_peaks_init(&peaks, timeline);
    if (status == KYMO_OK)
        status = kymo__page_plain((kymo_table *[]){peaks.by_category, peaks.by_stack}, 2, title, fd);
    kymo__memory_peaks_fini(&peaks);
    return status;
}

kymo_status kymo__memory_page_write(const struct kymo__memory_timeline *timeline, const char *title,
                                    int fd)
{
    return write_plain(timeline, title, fd);
}
