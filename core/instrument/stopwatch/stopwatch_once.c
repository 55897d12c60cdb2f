/* One-time measurements: setup, the whole run. Their names are separate from those of repeated ones. */
#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"

static void sync_if_asked(void)
{
    if (__atomic_load_n(&marey__stopwatch_state.options.sync_one_time, __ATOMIC_RELAXED))
        marey_cuda_sync();
}

marey_status marey_stopwatch_once_start(marey_id id)
{
    if (!marey_stopwatch_is_enabled())
        return MAREY_OK;
    struct marey__stopwatch_slot *const slot = marey__stopwatch_slot_get(id);
    if (slot == NULL)
        return marey__stopwatch_no_memory(id);
    sync_if_asked();
    const marey_async range = marey_async_begin(id);
    marey__stopwatch_lock();
    const bool is_new = !slot->is_once;
    if (is_new && (slot->is_once = marey__stopwatch_slots_add(&marey__stopwatch_state.once, slot))) {
        slot->once_runs = true;
        slot->once_async = range;
        slot->once_ticks = 0;
        slot->once_start = marey__stopwatch_ticks();
    }
    const bool is_started = slot->once_runs;
    marey__stopwatch_unlock();
    if (is_new && is_started)
        return MAREY_OK;
    marey_async_end(range);
    return is_new ? marey__stopwatch_no_memory(id)
                  : marey__stopwatch_misused(id, MAREY__STOPWATCH_ONCE_TWICE);
}

marey_status marey_stopwatch_once_stop(marey_id id)
{
    if (!marey_stopwatch_is_enabled())
        return MAREY_OK;
    sync_if_asked();
    const uint64_t now = marey__stopwatch_ticks();
    struct marey__stopwatch_slot *const slot = marey__stopwatch_slot_get(id);
    if (slot == NULL)
        return marey__stopwatch_no_memory(id);
    marey__stopwatch_lock();
    const bool ran = slot->once_runs;
    if (ran) {
        slot->once_ticks = now - slot->once_start;
        slot->once_runs = false;
    }
    const marey_async range = slot->once_async;
    marey__stopwatch_unlock();
    if (!ran)
        return marey__stopwatch_misused(id, MAREY__STOPWATCH_ONCE_NOT_STARTED);
    marey_async_end(range);
    return MAREY_OK;
}
