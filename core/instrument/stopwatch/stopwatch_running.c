/* What runs on this thread, for those who ask before they act: blocks that may be within one another, strict callers. */
#include "instrument/stopwatch/internal.h"

/* Its start counts: it is not from before a reset, and no other thread has stopped it. */
static bool runs(const struct marey__stopwatch_cell *cell)
{
    return marey__stopwatch_start_of(cell) != 0 &&
           (marey__stopwatch_mode_of(cell) & MAREY__WATCH_STALE) == 0;
}

int marey_stopwatch_is_running(marey_id id)
{
    if (!marey_stopwatch_is_enabled())
        return 0;
    const struct marey__stopwatch_cell *const cell = marey__stopwatch_cell_find(id);
    return cell != NULL && runs(cell);
}

marey_status marey_stopwatch_check_stopped(void)
{
    for (const struct marey__stopwatch_cell *cell = marey__stopwatch_self.top; cell != NULL;
         cell = cell->outer) {
        if (!runs(cell) || (marey__stopwatch_mode_of(cell) & MAREY__WATCH_WARMUP))
            continue;
        size_t len;
        const char *const name = marey_site_name(cell->slot->id, &len);
        return marey__fail(MAREY_ESTATE,
                           "the measurement '%.*s' still runs; end it before the iteration is "
                           "finished",
                           (int)MAREY__MIN(len, 200), name);
    }
    return MAREY_OK;
}
