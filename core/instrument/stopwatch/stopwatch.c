/*
 * Start and stop. The fast path is the first half of each function: a cell that this thread has used before, with only
 * time to measure. The clock is read last at a start and first at a stop, so that the cost of both is excluded.
 */
#include "instrument/cuda/internal.h"
#include "instrument/nvtx/internal.h"
#include "instrument/stopwatch/internal.h"
#include "record/internal.h"

/* Where a measurement also goes as a range. */
#define PLACES (MAREY_ON_RECORD | MAREY__STACK_USERS)

/* ---- as a range ---- */

/* A measurement that overlaps others: those begun after it stay open. A tool's ranges nest; it gets the end anyway. */
static void end_of(marey_id id, uint32_t on)
{
    const uint64_t words[] = {id};
    const marey__entry entry = on & MAREY__STACK_USERS ? marey__stack_take(id) : 0;
    if (on & MAREY_ON_RECORD)
        marey__lane_put_record(MAREY_RECORD_END_OF, words, MAREY__COUNT_OF(words));
    if (entry & MAREY__ENTRY_NVTX)
        marey__nvtx_pop(entry & MAREY__ENTRY_ID);
}

static void end_range(marey_id id, uint32_t on, bool is_innermost)
{
    if ((on & PLACES) == 0)
        return;
    if (is_innermost)
        marey_end_on(id);
    else
        end_of(id, on);
}

/* ---- the chain of running measurements of this thread ---- */

static void link_cell(struct marey__stopwatch_self *self, struct marey__stopwatch_cell *cell)
{
    cell->outer = self->top;
    cell->children = 0;
    self->top = cell;
}

/* The start of its nested part: its start, unless it overlapped another one before. */
static uint64_t inner_from(const struct marey__stopwatch_cell *cell)
{
    return marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_OVERLAPS
               ? cell->inner_from
               : marey__stopwatch_start_of(cell);
}

/* Removes one that is not the innermost. Nested ones that keep running belong to the one around it from `now`. */
static void unlink_from_within(struct marey__stopwatch_cell *cell, uint64_t now)
{
    struct marey__stopwatch_cell *inside = marey__stopwatch_self.top;
    while (inside != NULL && inside->outer != cell)
        inside = inside->outer;
    if (inside == NULL)
        return;
    const uint64_t from = inner_from(inside);
    if (now > from)
        cell->children += now - from;
    inside->inner_from = now;
    __atomic_fetch_or(&inside->mode, MAREY__STOPWATCH_OVERLAPS, __ATOMIC_RELAXED);
    inside->outer = cell->outer;
}

static void unlink_cell(struct marey__stopwatch_cell *cell, uint64_t now)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (self->top == cell)
        self->top = cell->outer;
    else
        unlink_from_within(cell, now);
}

/* Updates all sums for an interval except its bucket in the sketch. */
static inline void add_sums(struct marey__stopwatch_cell *cell, uint64_t ticks, uint64_t children)
{
    struct marey__stopwatch_sum *const sum = &cell->sum;
    const double distance = (double)(int64_t)ticks - sum->shift;
    marey__stopwatch_store(&sum->squares, sum->squares + distance * distance);
    __atomic_store_n(&sum->self, sum->self + (ticks - children), __ATOMIC_RELAXED);
    __atomic_store_n(&sum->sketch.sum, sum->sketch.sum + ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&sum->sketch.count, sum->sketch.count + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&cell->latest, ticks + 1, __ATOMIC_RELAXED);
}

/* Handles all rare cases: a first value, a new page of the sketch, a new extreme. */
__attribute__((noinline)) static marey_status
add_slowly(marey_id id, struct marey__stopwatch_cell *cell, uint64_t ticks)
{
    struct marey__sketch *const sketch = &cell->sum.sketch;
    if (cell->latest == 0 ? !marey__sketch_reserve(sketch)
                          : !marey__sketch_add_slow(sketch, cell->latest - 1))
        return marey__stopwatch_no_memory(id);
    if (sketch->count == 0)
        marey__stopwatch_store(&cell->sum.shift, (double)ticks);
    if (ticks < sketch->min || sketch->count == 0)
        __atomic_store_n(&sketch->min, ticks, __ATOMIC_RELAXED);
    if (ticks > sketch->max)
        __atomic_store_n(&sketch->max, ticks, __ATOMIC_RELAXED);
    add_sums(cell, ticks, MAREY__MIN(cell->children, ticks));
    return MAREY_OK;
}

/*
 * Adds an interval on the fast path; rare cases take the slow one. No call returns here, so no registers are saved.
 *
 * The bucket is that of the previous interval: a store whose address depends on a clock value just read delays the next
 * read by a quarter. Readers of the sketch include `latest`.
 */
static inline marey_status add_quickly(marey_id id, struct marey__stopwatch_cell *cell, uint64_t ticks)
{
    struct marey__sketch *const sketch = &cell->sum.sketch;
    const uint64_t children = cell->children, latest = cell->latest - 1;
    if (MAREY_UNLIKELY(sketch->pages == NULL))
        return add_slowly(id, cell, ticks);
    uint32_t bucket;
    uint64_t *const page = sketch->pages[marey__sketch_page_of(latest, &bucket)];
    if (MAREY_UNLIKELY(page == NULL || ticks - sketch->min > sketch->max - sketch->min ||
                       children > ticks))
        return add_slowly(id, cell, ticks);
    __atomic_store_n(&page[bucket], page[bucket] + 1, __ATOMIC_RELAXED);
    add_sums(cell, ticks, children);
    return MAREY_OK;
}

/* Stops the innermost of this thread at `now`; only time is measured. */
static inline marey_status stop_at(marey_id id, struct marey__stopwatch_cell *cell, uint64_t start,
                                   uint64_t now)
{
    struct marey__stopwatch_cell *const outer = cell->outer;
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    marey__stopwatch_self.top = outer;
    if (outer != NULL)
        outer->children += now - start;
    return add_quickly(id, cell, now - start);
}

/* ---- with a recording and nothing else ---- */

/* Both use the time-stamp counter: the time of the word is that of the measurement, so one clock read suffices. */
static bool is_recorded_plainly(uint32_t on, const struct marey__stopwatch_cell *cell)
{
    return on == (MAREY_ON_STOPWATCH | MAREY_ON_RECORD) && marey__stopwatch_mode_of(cell) == 0 &&
           __atomic_load_n(&marey__clock_is_tsc, __ATOMIC_RELAXED);
}

static uint64_t put_word(enum marey_kind kind, marey_id id)
{
    const uint64_t ticks = marey__lane_put_at(marey__tag(kind, id), true);
    return ticks != 0 ? ticks : marey__clock_ticks_of(true); /* a thread's first event, a full chunk */
}

/* ---- start ---- */

#define EXTRAS (MAREY__STOPWATCH_USAGE | MAREY__STOPWATCH_EVENTS)

__attribute__((noinline)) static marey_status start_slowly(marey_id id, uint32_t on)
{
    if ((on & MAREY_ON_STOPWATCH) == 0)
        return MAREY_OK;
    struct marey__stopwatch_cell *const cell = marey__stopwatch_cell_get(id);
    if (cell == NULL)
        return marey__stopwatch_no_memory(id);
    if (marey__stopwatch_start_of(cell) != 0)
        return marey__stopwatch_misused(id, MAREY__STOPWATCH_STARTED_TWICE);
    if (is_recorded_plainly(on, cell)) {
        link_cell(&marey__stopwatch_self, cell);
        __atomic_store_n(&cell->start, put_word(MAREY_KIND_BEGIN, id), __ATOMIC_RELAXED);
        return MAREY_OK;
    }
    const uint32_t mode = marey__stopwatch_mode_of(cell);
    if (mode & MAREY__STOPWATCH_TAKEN) {
        marey__stopwatch_extra_drop(cell);
        end_range(id, on, false); /* the thread that stopped it could not end this thread's range */
        marey__stopwatch_unlink(cell);
        __atomic_fetch_and(&cell->mode, ~(uint32_t)MAREY__STOPWATCH_TAKEN, __ATOMIC_RELAXED);
    }
    const bool is_measured = (mode & MAREY__STOPWATCH_WARMUP) == 0;
    if (is_measured && (mode & MAREY__STOPWATCH_SYNC))
        marey_cuda_sync();
    if (on & PLACES)
        marey_begin_on(id);
    if (is_measured && (mode & EXTRAS))
        marey__stopwatch_extra_begin(cell, mode);
    link_cell(&marey__stopwatch_self, cell);
    __atomic_store_n(&cell->start, marey__stopwatch_ticks(), __ATOMIC_RELAXED);
    return MAREY_OK;
}

marey_status marey_stopwatch_start_on(marey_id id)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    const uint32_t on = marey_on() & (MAREY_ON_STOPWATCH | PLACES);
    if (MAREY_UNLIKELY(id >= self->n || on != MAREY_ON_STOPWATCH))
        return start_slowly(id, on);
    struct marey__stopwatch_cell *const cell = self->cells[id];
    if (MAREY_UNLIKELY((marey__stopwatch_start_of(cell) | marey__stopwatch_mode_of(cell)) != 0))
        return start_slowly(id, on);
    link_cell(self, cell);
    __atomic_store_n(&cell->start, marey__clock_ticks_of(true), __ATOMIC_RELAXED);
    return MAREY_OK;
}

/* ---- stop ---- */

/* Clips an interval to what counts in `mode`; false if nothing counts. */
static bool clip(uint32_t mode, uint64_t *start)
{
    if (mode & (MAREY__STOPWATCH_WARMUP | MAREY__STOPWATCH_STALE))
        return false;
    if (mode & MAREY__STOPWATCH_STRADDLES)
        *start = MAREY__MAX(
            *start, __atomic_load_n(&marey__stopwatch_state.measured_from, __ATOMIC_RELAXED));
    return true;
}

/* Takes the only running cell of this name from another thread; 0 if there is none or several. */
static uint64_t take_from_other(const struct marey__stopwatch_slot *slot, uint32_t *mode)
{
    struct marey__stopwatch_cell *found = NULL;
    size_t n = 0;
    for (struct marey__stopwatch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if (marey__stopwatch_start_of(cell) != 0 &&
            (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0) {
            found = cell;
            n++;
        }
    if (n != 1)
        return 0;
    /* Set the mark first: when the owner finds its cell stopped, it must know why the cell is in its chain. */
    uint64_t start = marey__stopwatch_start_of(found);
    *mode = __atomic_fetch_or(&found->mode, MAREY__STOPWATCH_TAKEN, __ATOMIC_RELEASE);
    if (start != 0 && __atomic_compare_exchange_n(&found->start, &start, 0, false, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_RELAXED))
        return start;
    __atomic_fetch_and(&found->mode, ~(uint32_t)MAREY__STOPWATCH_TAKEN, __ATOMIC_RELAXED);
    return 0;
}

/* It is not running here. If it is running on one other thread, stops it there and counts it for this thread. */
static marey_status stop_for_other(marey_id id)
{
    const uint64_t now = marey__stopwatch_ticks();
    struct marey__stopwatch_slot *const slot = marey__stopwatch_slot_get(id);
    uint32_t mode = 0;
    uint64_t start = 0;
    if (slot != NULL) {
        marey__stopwatch_lock();
        start = take_from_other(slot, &mode);
        marey__stopwatch_unlock();
    }
    if (start == 0)
        return marey__stopwatch_misused(id, MAREY__STOPWATCH_NOT_STARTED);
    if (!clip(mode, &start))
        return MAREY_OK;
    struct marey__stopwatch_cell *const cell = marey__stopwatch_cell_get(id);
    if (cell == NULL)
        return marey__stopwatch_no_memory(id);
    cell->children = 0;
    return add_slowly(id, cell, now > start ? now - start : 0);
}

/* Marks it as stopped. */
static void end_cell(struct marey__stopwatch_cell *cell)
{
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    if (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_OF_ONE_RUN)
        __atomic_fetch_and(&cell->mode, ~(uint32_t)MAREY__STOPWATCH_OF_ONE_RUN, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static marey_status stop_slowly(marey_id id, uint32_t on)
{
    if ((on & MAREY_ON_STOPWATCH) == 0)
        return MAREY_OK;
    struct marey__stopwatch_cell *const cell = marey__stopwatch_cell_find(id);
    uint64_t start = cell != NULL ? marey__stopwatch_start_of(cell) : 0;
    if (start == 0)
        return stop_for_other(id);
    if (is_recorded_plainly(on, cell) && marey__stopwatch_self.top == cell)
        return stop_at(id, cell, start, put_word(MAREY_KIND_END, id));
    const uint32_t mode = marey__stopwatch_mode_of(cell);
    if ((mode & MAREY__STOPWATCH_SYNC) && (mode & MAREY__STOPWATCH_WARMUP) == 0)
        marey_cuda_sync();
    const uint64_t now = marey__stopwatch_ticks();
    const bool is_innermost = marey__stopwatch_self.top == cell;
    const uint64_t from = inner_from(cell);
    unlink_cell(cell, now);
    end_cell(cell);
    if (mode & (MAREY__STOPWATCH_WARMUP | MAREY__STOPWATCH_STALE))
        marey__stopwatch_extra_drop(cell);
    else
        marey__stopwatch_extra_end(cell);
    end_range(id, on, is_innermost);
    if (!clip(mode, &start))
        return MAREY_OK;
    if (cell->outer != NULL)
        cell->outer->children += now - MAREY__MAX(from, start);
    return add_slowly(id, cell, now - start);
}

marey_status marey_stopwatch_stop_on(marey_id id)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    const uint32_t on = marey_on() & (MAREY_ON_STOPWATCH | PLACES);
    if (MAREY_UNLIKELY(id >= self->n || on != MAREY_ON_STOPWATCH))
        return stop_slowly(id, on);
    struct marey__stopwatch_cell *const cell = self->cells[id];
    if (MAREY_UNLIKELY(self->top != cell || marey__stopwatch_mode_of(cell) != 0))
        return stop_slowly(id, on);
    const uint64_t now = marey__clock_ticks_of(true);
    const uint64_t start = marey__stopwatch_start_of(cell);
    if (MAREY_UNLIKELY(start == 0)) /* another thread is stopping it */
        return stop_slowly(id, on);
    return stop_at(id, cell, start, now);
}

void marey_stopwatch_cancel(marey_id id)
{
    struct marey__stopwatch_cell *const cell = marey__stopwatch_cell_find(id);
    const uint32_t on = marey_on();
    if ((on & MAREY_ON_STOPWATCH) == 0 || cell == NULL || marey__stopwatch_start_of(cell) == 0)
        return;
    const bool is_innermost = marey__stopwatch_self.top == cell;
    unlink_cell(cell, marey__stopwatch_ticks());
    if (cell->outer != NULL) /* as if those nested in it had been nested in that one */
        cell->outer->children += cell->children;
    end_cell(cell);
    marey__stopwatch_extra_drop(cell);
    end_range(id, on, is_innermost);
}

/* ---- queries about running measurements of this thread ---- */

/* Running, and neither from before a reset nor stopped by another thread. */
static bool runs(const struct marey__stopwatch_cell *cell)
{
    return marey__stopwatch_start_of(cell) != 0 &&
           (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0;
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
        if (!runs(cell) || (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_WARMUP))
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
