/*
 * Start and stop. The quick way is the first half of each function: a cell that this thread has used before, with nothing
 * but time to measure. The clock is read last at a start and first at a stop, so that the work of both stays outside.
 */
#include "cuda/cuda_internal.h"
#include "nvtx/nvtx_internal.h"
#include "record/record_internal.h"
#include "stack/stack_internal.h"
#include "stopwatch/stopwatch_internal.h"

/* Where a measurement goes besides, as a range. */
#define PLACES (KYMO_ON_RECORD | KYMO__STACK_USERS)

/* ---- as a range ---- */

/* One that lies across others: those begun after it stay open. A tool's ranges nest; it is told of an end all the same. */
static void end_of(kymo_id id, uint32_t on)
{
    const uint64_t words[] = {id};
    const kymo__entry entry = on & KYMO__STACK_USERS ? kymo__stack_take(id) : 0;
    if (on & KYMO_ON_RECORD)
        kymo__lane_put_record(KYMO_RECORD_END_OF, words, KYMO__COUNT_OF(words));
    if (entry & KYMO__ENTRY_NVTX)
        kymo__nvtx_pop(entry & KYMO__ENTRY_ID);
}

static void end_range(kymo_id id, uint32_t on, bool is_innermost)
{
    if ((on & PLACES) == 0)
        return;
    if (is_innermost)
        kymo_end_on(id);
    else
        end_of(id, on);
}

/* ---- the chain of those that run on this thread ---- */

static void link_cell(struct kymo__watch_self *self, struct kymo__watch_cell *cell)
{
    cell->outer = self->top;
    cell->children = 0;
    self->top = cell;
}

/*
 * Take out one that is not the innermost, at `now`. What started inside it and still runs covered its time until now, and
 * is a part of the one around it from now on.
 */
static void unlink_from_within(struct kymo__watch_cell *cell, uint64_t now)
{
    struct kymo__watch_cell *inside = kymo__watch_self.top;
    while (inside != NULL && inside->outer != cell)
        inside = inside->outer;
    if (inside == NULL)
        return;
    if (now > inside->inner_from)
        cell->children += now - inside->inner_from;
    inside->inner_from = now;
    inside->outer = cell->outer;
}

static void unlink_cell(struct kymo__watch_cell *cell, uint64_t now)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    if (self->top == cell)
        self->top = cell->outer;
    else
        unlink_from_within(cell, now);
}

static inline bool add(struct kymo__watch_cell *cell, uint64_t start, uint64_t now)
{
    const uint64_t ticks = now - start;
    const uint64_t children = cell->children;
    return kymo__watch_sum_add(&cell->sum, ticks, ticks > children ? ticks - children : 0);
}

/* ---- start ---- */

static void begin_others(struct kymo__watch_cell *cell, uint32_t mode)
{
    (void)cell;
    if (mode & KYMO__WATCH_SYNC)
        kymo_cuda_sync();
}

__attribute__((noinline)) static kymo_status start_slowly(kymo_id id, uint32_t on)
{
    if ((on & KYMO_ON_STOPWATCH) == 0)
        return KYMO_OK;
    struct kymo__watch_cell *const cell = kymo__watch_cell_get(id);
    if (cell == NULL)
        return kymo__watch_no_memory(id);
    if (kymo__watch_start_of(cell) != 0)
        return kymo__watch_misused(id, KYMO__WATCH_STARTED_TWICE);
    const uint32_t mode = kymo__watch_mode_of(cell);
    if (mode & KYMO__WATCH_TAKEN) {
        end_range(id, on, false); /* the thread that stopped it could not end the range of this one */
        kymo__watch_unlink(cell);
        __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_TAKEN, __ATOMIC_RELAXED);
    }
    if ((mode & KYMO__WATCH_WARMUP) == 0)
        begin_others(cell, mode);
    if (on & PLACES)
        kymo_begin_on(id);
    link_cell(&kymo__watch_self, cell);
    cell->inner_from = kymo__watch_ticks();
    __atomic_store_n(&cell->start, cell->inner_from, __ATOMIC_RELAXED);
    return KYMO_OK;
}

kymo_status kymo_stopwatch_start_on(kymo_id id)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    const uint32_t on = kymo_on() & (KYMO_ON_STOPWATCH | PLACES);
    struct kymo__watch_cell *const cell = KYMO_LIKELY(id < self->n) ? self->cells[id] : NULL;
    if (KYMO_UNLIKELY(cell == NULL || on != KYMO_ON_STOPWATCH || kymo__watch_start_of(cell) != 0 ||
                      kymo__watch_mode_of(cell) != 0))
        return start_slowly(id, on);
    link_cell(self, cell);
    cell->inner_from = kymo__clock_ticks_of(true);
    __atomic_store_n(&cell->start, cell->inner_from, __ATOMIC_RELAXED);
    return KYMO_OK;
}

/* ---- stop ---- */

/* What counts of an interval in `mode`; false for nothing. */
static bool clip(uint32_t mode, uint64_t *start)
{
    if (mode & (KYMO__WATCH_WARMUP | KYMO__WATCH_STALE))
        return false;
    if (mode & KYMO__WATCH_STRADDLES)
        *start = KYMO__MAX(*start, __atomic_load_n(&kymo__watch.measured_from, __ATOMIC_RELAXED));
    return true;
}

/* The one cell of this name that runs on another thread, taken from it; 0 when there is none or there are several. */
static uint64_t take_from_other(const struct kymo__watch_slot *slot, uint32_t *mode)
{
    struct kymo__watch_cell *found = NULL;
    size_t n = 0;
    for (struct kymo__watch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if (kymo__watch_start_of(cell) != 0 && (kymo__watch_mode_of(cell) & KYMO__WATCH_STALE) == 0) {
            found = cell;
            n++;
        }
    if (n != 1)
        return 0;
    /* First the mark: the owner, when it finds that its cell does not run, must know why it is in its chain. */
    uint64_t start = kymo__watch_start_of(found);
    *mode = __atomic_fetch_or(&found->mode, KYMO__WATCH_TAKEN, __ATOMIC_RELEASE);
    if (start != 0 && __atomic_compare_exchange_n(&found->start, &start, 0, false, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_RELAXED))
        return start;
    __atomic_fetch_and(&found->mode, ~(uint32_t)KYMO__WATCH_TAKEN, __ATOMIC_RELAXED);
    return 0;
}

/* It does not run here. Maybe somewhere else; then what it measured is this thread's. */
static kymo_status stop_for_other(kymo_id id)
{
    const uint64_t now = kymo__watch_ticks();
    struct kymo__watch_slot *const slot = kymo__watch_slot_get(id);
    uint32_t mode = 0;
    uint64_t start = 0;
    if (slot != NULL) {
        kymo__watch_lock();
        start = take_from_other(slot, &mode);
        kymo__watch_unlock();
    }
    if (start == 0)
        return kymo__watch_misused(id, KYMO__WATCH_NOT_STARTED);
    if (!clip(mode, &start))
        return KYMO_OK;
    struct kymo__watch_cell *const cell = kymo__watch_cell_get(id);
    const uint64_t ticks = now > start ? now - start : 0;
    return cell != NULL && kymo__watch_sum_add(&cell->sum, ticks, ticks) ? KYMO_OK
                                                                         : kymo__watch_no_memory(id);
}

__attribute__((noinline)) static kymo_status stop_slowly(kymo_id id, uint32_t on)
{
    if ((on & KYMO_ON_STOPWATCH) == 0)
        return KYMO_OK;
    struct kymo__watch_cell *const cell = kymo__watch_cell_find(id);
    uint64_t start = cell != NULL ? kymo__watch_start_of(cell) : 0;
    if (start == 0)
        return stop_for_other(id);
    const uint32_t mode = kymo__watch_mode_of(cell);
    if ((mode & KYMO__WATCH_SYNC) && (mode & KYMO__WATCH_WARMUP) == 0)
        kymo_cuda_sync();
    const uint64_t now = kymo__watch_ticks();
    const bool is_innermost = kymo__watch_self.top == cell;
    unlink_cell(cell, now);
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    end_range(id, on, is_innermost);
    if (!clip(mode, &start))
        return KYMO_OK;
    if (mode & KYMO__WATCH_STRADDLES) {
        cell->inner_from = KYMO__MAX(cell->inner_from, start);
        __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_STRADDLES, __ATOMIC_RELAXED);
    }
    if (cell->outer != NULL)
        cell->outer->children += now - cell->inner_from;
    return add(cell, start, now) ? KYMO_OK : kymo__watch_no_memory(id);
}

kymo_status kymo_stopwatch_stop_on(kymo_id id)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    const uint32_t on = kymo_on() & (KYMO_ON_STOPWATCH | PLACES);
    struct kymo__watch_cell *const cell = KYMO_LIKELY(id < self->n) ? self->cells[id] : NULL;
    if (KYMO_UNLIKELY(cell == NULL || on != KYMO_ON_STOPWATCH || self->top != cell ||
                      kymo__watch_mode_of(cell) != 0))
        return stop_slowly(id, on);
    const uint64_t now = kymo__clock_ticks_of(true);
    const uint64_t start = kymo__watch_start_of(cell);
    if (KYMO_UNLIKELY(start == 0)) /* another thread is just stopping it */
        return stop_slowly(id, on);
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    self->top = cell->outer;
    if (cell->outer != NULL)
        cell->outer->children += now - cell->inner_from;
    return KYMO_LIKELY(add(cell, start, now)) ? KYMO_OK : kymo__watch_no_memory(id);
}

void kymo_stopwatch_cancel(kymo_id id)
{
    struct kymo__watch_cell *const cell = kymo__watch_cell_find(id);
    const uint32_t on = kymo_on();
    if ((on & KYMO_ON_STOPWATCH) == 0 || cell == NULL || kymo__watch_start_of(cell) == 0)
        return;
    const bool is_innermost = kymo__watch_self.top == cell;
    unlink_cell(cell, kymo__watch_ticks());
    if (cell->outer != NULL) /* as if those inside had been inside that one */
        cell->outer->children += cell->children;
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_STRADDLES, __ATOMIC_RELAXED);
    end_range(id, on, is_innermost);
}
