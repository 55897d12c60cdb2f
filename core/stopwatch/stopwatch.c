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

/* Where it begins to be a part of the one around it: at its start, unless it was an overlapping one's before. */
static uint64_t inner_from(const struct kymo__watch_cell *cell)
{
    return kymo__watch_mode_of(cell) & KYMO__WATCH_OVERLAPS ? cell->inner_from
                                                            : kymo__watch_start_of(cell);
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
    const uint64_t from = inner_from(inside);
    if (now > from)
        cell->children += now - from;
    inside->inner_from = now;
    __atomic_fetch_or(&inside->mode, KYMO__WATCH_OVERLAPS, __ATOMIC_RELAXED);
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

/* Everything about an interval but its bucket in the sketch. */
static inline void add_sums(struct kymo__watch_cell *cell, uint64_t ticks, uint64_t children)
{
    struct kymo__watch_sum *const sum = &cell->sum;
    const double distance = (double)(int64_t)ticks - sum->shift;
    kymo__watch_store(&sum->squares, sum->squares + distance * distance);
    __atomic_store_n(&sum->self, sum->self + (ticks - children), __ATOMIC_RELAXED);
    __atomic_store_n(&sum->sketch.sum, sum->sketch.sum + ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&sum->sketch.count, sum->sketch.count + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&cell->latest, ticks + 1, __ATOMIC_RELAXED);
}

/* With all that is rare: a first value, a new page of the sketch, a new extreme. */
__attribute__((noinline)) static kymo_status add_slowly(kymo_id id, struct kymo__watch_cell *cell,
                                                        uint64_t ticks)
{
    struct kymo__sketch *const sketch = &cell->sum.sketch;
    if (cell->latest == 0 ? !kymo__sketch_reserve(sketch)
                          : !kymo__sketch_add_slow(sketch, cell->latest - 1))
        return kymo__watch_no_memory(id);
    if (sketch->count == 0)
        kymo__watch_store(&cell->sum.shift, (double)ticks);
    if (ticks < sketch->min || sketch->count == 0)
        __atomic_store_n(&sketch->min, ticks, __ATOMIC_RELAXED);
    if (ticks > sketch->max)
        __atomic_store_n(&sketch->max, ticks, __ATOMIC_RELAXED);
    add_sums(cell, ticks, KYMO__MIN(cell->children, ticks));
    return KYMO_OK;
}

/*
 * Add an interval the quick way; what is rare takes the slow one. No call returns here, so that nothing is saved.
 *
 * The bucket is that of the interval before: a store whose address comes from a clock that has just been read holds up
 * the next read, and cost a quarter more. Whoever reads the sketch counts `latest` in.
 */
static inline kymo_status add_quickly(kymo_id id, struct kymo__watch_cell *cell, uint64_t ticks)
{
    struct kymo__sketch *const sketch = &cell->sum.sketch;
    const uint64_t children = cell->children, latest = cell->latest - 1;
    if (KYMO_UNLIKELY(sketch->pages == NULL))
        return add_slowly(id, cell, ticks);
    uint32_t bucket;
    uint64_t *const page = sketch->pages[kymo__sketch_page_of(latest, &bucket)];
    if (KYMO_UNLIKELY(page == NULL || ticks - sketch->min > sketch->max - sketch->min ||
                      children > ticks))
        return add_slowly(id, cell, ticks);
    __atomic_store_n(&page[bucket], page[bucket] + 1, __ATOMIC_RELAXED);
    add_sums(cell, ticks, children);
    return KYMO_OK;
}

/* The innermost of this thread stops at `now`; nothing but time is measured. */
static inline kymo_status stop_at(kymo_id id, struct kymo__watch_cell *cell, uint64_t start,
                                  uint64_t now)
{
    struct kymo__watch_cell *const outer = cell->outer;
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    kymo__watch_self.top = outer;
    if (outer != NULL)
        outer->children += now - start;
    return add_quickly(id, cell, now - start);
}

/* ---- with a recording and nothing else ---- */

/* Both on the time-stamp counter: then a word's own time is the measurement's, and one clock read serves both. */
static bool is_recorded_plainly(uint32_t on, const struct kymo__watch_cell *cell)
{
    return on == (KYMO_ON_STOPWATCH | KYMO_ON_RECORD) && kymo__watch_mode_of(cell) == 0 &&
           __atomic_load_n(&kymo__clock_is_tsc, __ATOMIC_RELAXED);
}

static uint64_t put_word(enum kymo_kind kind, kymo_id id)
{
    const uint64_t ticks = kymo__lane_put_at(kymo__tag(kind, id), true);
    return ticks != 0 ? ticks : kymo__clock_ticks_of(true); /* a thread's first event, a full chunk */
}

/* ---- start ---- */

#define EXTRAS (KYMO__WATCH_USAGE | KYMO__WATCH_EVENTS)

__attribute__((noinline)) static kymo_status start_slowly(kymo_id id, uint32_t on)
{
    if ((on & KYMO_ON_STOPWATCH) == 0)
        return KYMO_OK;
    struct kymo__watch_cell *const cell = kymo__watch_cell_get(id);
    if (cell == NULL)
        return kymo__watch_no_memory(id);
    if (kymo__watch_start_of(cell) != 0)
        return kymo__watch_misused(id, KYMO__WATCH_STARTED_TWICE);
    if (is_recorded_plainly(on, cell)) {
        link_cell(&kymo__watch_self, cell);
        __atomic_store_n(&cell->start, put_word(KYMO_KIND_BEGIN, id), __ATOMIC_RELAXED);
        return KYMO_OK;
    }
    const uint32_t mode = kymo__watch_mode_of(cell);
    if (mode & KYMO__WATCH_TAKEN) {
        kymo__watch_extra_drop(cell);
        end_range(id, on, false); /* the thread that stopped it could not end the range of this one */
        kymo__watch_unlink(cell);
        __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_TAKEN, __ATOMIC_RELAXED);
    }
    const bool is_measured = (mode & KYMO__WATCH_WARMUP) == 0;
    if (is_measured && (mode & KYMO__WATCH_SYNC))
        kymo_cuda_sync();
    if (on & PLACES)
        kymo_begin_on(id);
    if (is_measured && (mode & EXTRAS))
        kymo__watch_extra_begin(cell, mode);
    link_cell(&kymo__watch_self, cell);
    __atomic_store_n(&cell->start, kymo__watch_ticks(), __ATOMIC_RELAXED);
    return KYMO_OK;
}

kymo_status kymo_stopwatch_start_on(kymo_id id)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    const uint32_t on = kymo_on() & (KYMO_ON_STOPWATCH | PLACES);
    if (KYMO_UNLIKELY(id >= self->n || on != KYMO_ON_STOPWATCH))
        return start_slowly(id, on);
    struct kymo__watch_cell *const cell = self->cells[id];
    if (KYMO_UNLIKELY((kymo__watch_start_of(cell) | kymo__watch_mode_of(cell)) != 0))
        return start_slowly(id, on);
    link_cell(self, cell);
    __atomic_store_n(&cell->start, kymo__clock_ticks_of(true), __ATOMIC_RELAXED);
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
    if (cell == NULL)
        return kymo__watch_no_memory(id);
    cell->children = 0;
    return add_slowly(id, cell, now > start ? now - start : 0);
}

/* It does not run any more. */
static void end_cell(struct kymo__watch_cell *cell)
{
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    if (kymo__watch_mode_of(cell) & KYMO__WATCH_OF_ONE_RUN)
        __atomic_fetch_and(&cell->mode, ~(uint32_t)KYMO__WATCH_OF_ONE_RUN, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static kymo_status stop_slowly(kymo_id id, uint32_t on)
{
    if ((on & KYMO_ON_STOPWATCH) == 0)
        return KYMO_OK;
    struct kymo__watch_cell *const cell = kymo__watch_cell_find(id);
    uint64_t start = cell != NULL ? kymo__watch_start_of(cell) : 0;
    if (start == 0)
        return stop_for_other(id);
    if (is_recorded_plainly(on, cell) && kymo__watch_self.top == cell)
        return stop_at(id, cell, start, put_word(KYMO_KIND_END, id));
    const uint32_t mode = kymo__watch_mode_of(cell);
    if ((mode & KYMO__WATCH_SYNC) && (mode & KYMO__WATCH_WARMUP) == 0)
        kymo_cuda_sync();
    const uint64_t now = kymo__watch_ticks();
    const bool is_innermost = kymo__watch_self.top == cell;
    const uint64_t from = inner_from(cell);
    unlink_cell(cell, now);
    end_cell(cell);
    if (mode & (KYMO__WATCH_WARMUP | KYMO__WATCH_STALE))
        kymo__watch_extra_drop(cell);
    else
        kymo__watch_extra_end(cell);
    end_range(id, on, is_innermost);
    if (!clip(mode, &start))
        return KYMO_OK;
    if (cell->outer != NULL)
        cell->outer->children += now - KYMO__MAX(from, start);
    return add_slowly(id, cell, now - start);
}

kymo_status kymo_stopwatch_stop_on(kymo_id id)
{
    struct kymo__watch_self *const self = &kymo__watch_self;
    const uint32_t on = kymo_on() & (KYMO_ON_STOPWATCH | PLACES);
    if (KYMO_UNLIKELY(id >= self->n || on != KYMO_ON_STOPWATCH))
        return stop_slowly(id, on);
    struct kymo__watch_cell *const cell = self->cells[id];
    if (KYMO_UNLIKELY(self->top != cell || kymo__watch_mode_of(cell) != 0))
        return stop_slowly(id, on);
    const uint64_t now = kymo__clock_ticks_of(true);
    const uint64_t start = kymo__watch_start_of(cell);
    if (KYMO_UNLIKELY(start == 0)) /* another thread is just stopping it */
        return stop_slowly(id, on);
    return stop_at(id, cell, start, now);
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
    end_cell(cell);
    kymo__watch_extra_drop(cell);
    end_range(id, on, is_innermost);
}
