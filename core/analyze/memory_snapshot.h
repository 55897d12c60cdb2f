/* Snapshots of torch's allocator, from bytes. */
#ifndef KYMO_MEMORY_SNAPSHOT_H
#define KYMO_MEMORY_SNAPSHOT_H

#include "analyze/memory_whole.h"
#include "import/pickle_in.h"

/* Pools of the devices that a snapshot, called `name` in sentences, tells of. KYMO_EFORMAT, KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__memory_take_snapshot(struct kymo_memory_report *report,
                                                        const char *name, const void *bytes,
                                                        size_t len);
/* Phases and iterations of one device's pool, from the snapshot's annotations; NULL: it has none. False without memory. */
bool kymo__memory_take_marks(struct kymo_memory_report *report,
                             const struct kymo__unpickled *pickle, struct kymo__memory_pool *pool,
                             const struct kymo__unpickled_value *annotations, size_t device);

#endif
