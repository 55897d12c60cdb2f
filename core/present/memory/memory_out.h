/*
 * Presenters of the memory timeline (analyze/memory_timeline.h): torch's two JSON files, the page, the allocator's snapshot.
 * Each writes a whole file into `fd`, which stays open, of a timeline that has a device. MAREY_EIO, MAREY_ENOMEM.
 */
#ifndef MAREY_MEMORY_OUT_H
#define MAREY_MEMORY_OUT_H

#include "analyze/memory/memory_timeline.h"

/* ---- memory_json_out.c: of the main device, gzip ---- */

/* [times, sizes]: microseconds, and for each 0 and the bytes of the eight categories. */
MAREY_WARN_UNUSED marey_status marey__memory_json_write(const struct marey__memory_timeline *timeline,
                                                        int fd);
/* [time, action, signed bytes, category] of each change; nanoseconds, -1 for what was there before. */
MAREY_WARN_UNUSED marey_status marey__memory_raw_write(const struct marey__memory_timeline *timeline,
                                                       int fd);

/* ---- memory_page_out.c: all devices ---- */

MAREY_WARN_UNUSED marey_status marey__memory_page_write(const struct marey__memory_timeline *timeline,
                                                        const char *title, int fd);

/* ---- memory_snapshot_out.c: all devices, for PyTorch's memory viewer ---- */

MAREY_WARN_UNUSED marey_status
marey__memory_snapshot_write(const struct marey__memory_timeline *timeline, int fd);

#endif
