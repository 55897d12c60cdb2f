/* One-time measurements: set-up, the whole run. Names of their own, beside those of the repeated ones. */
#include "cuda/cuda_internal.h"
#include "stopwatch/stopwatch_internal.h"

static void sync_if_asked(void)
{
    if (__atomic_load_n(&kymo__watch.options.sync_one_time, __ATOMIC_RELAXED))
        kymo_cuda_sync();
}

kymo_status kymo_stopwatch_once_start(kymo_id id)
{
    if (!kymo_stopwatch_is_enabled())
        return KYMO_OK;
    struct kymo__watch_slot *const slot = kymo__watch_slot_get(id);
    if (slot == NULL)
        return kymo__watch_no_memory(id);
    sync_if_asked();
    const kymo_async range = kymo_async_begin(id);
    kymo__watch_lock();
    const bool is_new = !slot->is_once;
    if (is_new && (slot->is_once = kymo__watch_slots_add(&kymo__watch.once, slot))) {
        slot->once_runs = true;
        slot->once_async = range;
        slot->once_ticks = 0;
        slot->once_start = kymo__watch_ticks();
    }
    const bool is_started = slot->once_runs;
    kymo__watch_unlock();
    if (is_new && is_started)
        return KYMO_OK;
    kymo_async_end(range);
    return is_new ? kymo__watch_no_memory(id) : kymo__watch_misused(id, KYMO__WATCH_ONCE_TWICE);
}

kymo_status kymo_stopwatch_once_stop(kymo_id id)
{
    if (!kymo_stopwatch_is_enabled())
        return KYMO_OK;
    sync_if_asked();
    const uint64_t now = kymo__watch_ticks();
    struct kymo__watch_slot *const slot = kymo__watch_slot_get(id);
    if (slot == NULL)
        return kymo__watch_no_memory(id);
    kymo__watch_lock();
    const bool ran = slot->once_runs;
    if (ran) {
        slot->once_ticks = now - slot->once_start;
        slot->once_runs = false;
    }
    const kymo_async range = slot->once_async;
    kymo__watch_unlock();
    if (!ran)
        return kymo__watch_misused(id, KYMO__WATCH_ONCE_NOT_STARTED);
    kymo_async_end(range);
    return KYMO_OK;
}
