/* What runs on this thread, for those who ask before they act: blocks that may be within one another, strict callers. */
#include "stopwatch/stopwatch_internal.h"

/* Its start counts: it is not from before a reset, and no other thread has stopped it. */
static bool runs(const struct kymo__watch_cell *cell)
{
    return kymo__watch_start_of(cell) != 0 && (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE) == 0;
}

int kymo_stopwatch_is_running(kymo_id id)
{
    if (!kymo_stopwatch_is_enabled())
        return 0;
    const struct kymo__watch_cell *const cell = kymo__watch_cell_find(id);
    return cell != NULL && runs(cell);
}

kymo_status kymo_stopwatch_check_stopped(void)
{
    for (const struct kymo__watch_cell *cell = kymo__watch_self.top; cell != NULL;
         cell = cell->outer) {
        if (!runs(cell) || (kymo__watch_mode_of(cell) & KYMO__WATCH_WARMUP))
            continue;
        size_t len;
        const char *const name = kymo_site_name(cell->slot->id, &len);
        return kymo__fail(KYMO_ESTATE,
                          "the measurement '%.*s' still runs; end it before the iteration is "
                          "finished",
                          (int)KYMO__MIN(len, 200), name);
    }
    return KYMO_OK;
}
