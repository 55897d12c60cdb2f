/* Snapshots of torch's allocator, from bytes. */
#ifndef MAREY_MEMORY_SNAPSHOT_H
#define MAREY_MEMORY_SNAPSHOT_H

#include "analyze/memory/internal.h"
#include "import/stacks/pickle_in.h"

/* Pools of the devices that a snapshot, called `name` in sentences, tells of. MAREY_EFORMAT, MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__memory_take_snapshot(struct marey__memory_report *report,
                                                           const char *name, const void *bytes,
                                                           size_t len);
/* Phases and iterations of one device's pool, from the snapshot's annotations; NULL: it has none. False without memory. */
bool marey__memory_take_marks(struct marey__memory_report *report,
                              const struct marey__unpickled *pickle, struct marey__memory_pool *pool,
                              const struct marey__unpickled_value *annotations, size_t device);

#endif
