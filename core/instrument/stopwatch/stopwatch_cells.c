/*
 * Names on threads. Cells are found by id without a lock; a thread's first use of an id, and its exit, are handled
 * here.
 */
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/stopwatch/internal.h"
#include "record/internal.h"

__thread struct marey__stopwatch_self marey__stopwatch_self
    __attribute__((tls_model("initial-exec")));

struct marey__stopwatch_cell marey__stopwatch_absent = {.mode = MAREY__STOPWATCH_ABSENT};

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

static bool grow_self(struct marey__stopwatch_self *self, marey_id id)
{
    return marey__stopwatch_grow_by_id(&self->cells, &self->n, id, &marey__stopwatch_absent);
}

/* This thread's cell by id, or NULL. */
static struct marey__stopwatch_cell *cell_by_id(const struct marey__stopwatch_self *self, marey_id id)
{
    return id < self->n && self->cells[id] != &marey__stopwatch_absent ? self->cells[id] : NULL;
}

/* ---- threads ---- */

/* Removes `cell` from its slot's list. */
static void leave_slot(struct marey__stopwatch_cell *cell)
{
    struct marey__stopwatch_cell **place = &cell->slot->cells;
    while (*place != cell)
        place = &(*place)->next_of_slot;
    *place = cell->next_of_slot;
}

static void cell_clear(struct marey__stopwatch_cell *cell)
{
    __atomic_store_n(&cell->latest, 0, __ATOMIC_RELAXED);
    marey__stopwatch_sum_clear(&cell->sum);
}

static void cell_free(struct marey__stopwatch_cell *cell)
{
    marey__stopwatch_sum_clear(&cell->sum);
    MAREY__FREE_ALL(cell->extra, cell->block);
}

/* Adds the thread's results to the slot. */
static void retire(struct marey__stopwatch_cell *cell)
{
    struct marey__stopwatch_slot *const slot = cell->slot;
    if ((marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0) {
        slot->n_gone += cell->sum.sketch.count != 0;
        slot->misuses[MAREY__STOPWATCH_THREAD_ENDED] +=
            marey_stopwatch_is_enabled() && marey__stopwatch_start_of(cell) != 0;
        if (!marey__stopwatch_cell_merge(&slot->gone, cell))
            marey__stopwatch_state.n_lost++;
        if (cell->extra != NULL)
            marey__usage_merge(&slot->gone_usage, &cell->extra->usage);
    }
    leave_slot(cell);
    cell_free(cell);
}

/* Destroys all cells of `thread`, each through `part`. Caller holds the lock. */
static void thread_destroy(struct marey__stopwatch_thread *thread,
                           void (*part)(struct marey__stopwatch_cell *cell))
{
    for (struct marey__stopwatch_cell *cell = thread->cells, *next; cell != NULL; cell = next) {
        next = cell->next_of_thread;
        part(cell);
    }
    *thread->link = thread->next;
    if (thread->next != NULL)
        thread->next->link = thread->link;
    marey__free(thread);
}

static void thread_exits(void *arg)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    marey__stopwatch_lock();
    thread_destroy(arg, retire);
    marey__stopwatch_unlock();
    marey__free(self->cells);
    *self = (struct marey__stopwatch_self){
        0}; /* later measurements by other destructors belong to a new thread */
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, thread_exits);
}

static struct marey__stopwatch_thread *thread_get(void)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (self->thread != NULL)
        return self->thread;
    struct marey__stopwatch_thread *const thread = marey__calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    pthread_once(&exit_key_once, make_exit_key);
    thread->tid = syscall(SYS_gettid);
    prctl(PR_GET_NAME, thread->name);
    pthread_setspecific(exit_key, thread);
    MAREY__STOPWATCH_HOLD();
    thread->next = marey__stopwatch_state.threads;
    thread->link = &marey__stopwatch_state.threads;
    if (thread->next != NULL)
        thread->next->link = &thread->next;
    marey__stopwatch_state.threads = thread;
    return self->thread = thread;
}

/* ---- cells ---- */

static uint32_t mode_of_new(const struct marey__stopwatch_slot *slot)
{
    return marey__stopwatch_state.mode | (slot->usage != 0 ? MAREY__STOPWATCH_USAGE : 0);
}

/* This thread's cell of the slot, created if missing. Caller holds the lock. */
static struct marey__stopwatch_cell *cell_of_slot(struct marey__stopwatch_slot *slot,
                                                  struct marey__stopwatch_thread *thread)
{
    for (struct marey__stopwatch_cell *cell = slot->cells; cell != NULL; cell = cell->next_of_slot)
        if (cell->thread == thread)
            return cell;
    void *block;
    struct marey__stopwatch_cell *const cell = marey__stopwatch_calloc(sizeof *cell, &block);
    if (cell == NULL)
        return NULL;
    *cell = (struct marey__stopwatch_cell){.block = block,
                                           .slot = slot,
                                           .thread = thread,
                                           .mode = mode_of_new(slot),
                                           .next_of_slot = slot->cells,
                                           .next_of_thread = thread->cells};
    slot->cells = cell;
    thread->cells = cell;
    return cell;
}

/* Resets a cell from before a reset. Caller holds the lock. */
static void renew(struct marey__stopwatch_cell *cell)
{
    marey__stopwatch_unlink(cell);
    cell_clear(cell);
    if (cell->extra != NULL) /* its GPU span was dropped with the results */
        *cell->extra = (struct marey__stopwatch_extra){0};
    __atomic_store_n(&cell->start, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->mode, mode_of_new(cell->slot), __ATOMIC_RELAXED);
}

void marey__stopwatch_unlink(struct marey__stopwatch_cell *cell)
{
    struct marey__stopwatch_cell **place = &marey__stopwatch_self.top;
    while (*place != NULL && *place != cell)
        place = &(*place)->outer;
    if (*place == cell)
        *place = cell->outer;
}

/* Another site with the same name may have created it. */
static struct marey__stopwatch_cell *find_by_name(struct marey__stopwatch_self *self, marey_id id)
{
    const marey_id bare = self->thread != NULL ? marey__stopwatch_bare_site(id) : 0;
    struct marey__stopwatch_cell *cell = NULL;
    MAREY__STOPWATCH_HOLD();
    const struct marey__stopwatch_slot *const slot =
        bare < marey__stopwatch_state.n_by_id ? marey__stopwatch_state.by_id[bare] : NULL;
    if (slot != NULL)
        for (cell = slot->cells; cell != NULL && cell->thread != self->thread;)
            cell = cell->next_of_slot;
    if (cell != NULL && grow_self(self, id))
        self->cells[id] = cell;
    return cell;
}

struct marey__stopwatch_cell *marey__stopwatch_cell_find(marey_id id)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (id >= MAREY__SITE_LIMIT)
        id = MAREY__SITE_OTHER;
    struct marey__stopwatch_cell *const cell = cell_by_id(self, id);
    return cell != NULL ? cell : find_by_name(self, id);
}

struct marey__stopwatch_cell *marey__stopwatch_cell_get(marey_id id)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    if (id >= MAREY__SITE_LIMIT)
        id = MAREY__SITE_OTHER;
    struct marey__stopwatch_cell *cell = cell_by_id(self, id);
    if (cell != NULL && (marey__stopwatch_mode_of(cell) & MAREY__STOPWATCH_STALE) == 0)
        return cell;
    struct marey__stopwatch_thread *const thread = thread_get();
    if (thread == NULL || !grow_self(self, id))
        return NULL;
    struct marey__stopwatch_slot *const slot =
        cell != NULL ? cell->slot : marey__stopwatch_slot_get(id);
    if (slot == NULL)
        return NULL;
    MAREY__STOPWATCH_HOLD();
    cell = cell_of_slot(slot, thread);
    if (cell == NULL)
        return NULL;
    if (cell->mode & MAREY__STOPWATCH_STALE)
        renew(cell);
    marey__stopwatch_list(slot);
    return self->cells[id] = cell;
}

/* ---- forks ---- */

/* Drops another thread's cell, which does not exist here. */
static void drop(struct marey__stopwatch_cell *cell)
{
    leave_slot(cell);
    cell_free(cell);
}

/* Running measurements of this thread continue and count from now; others leave the chain. */
static void keep_running(void)
{
    const uint64_t now = marey__stopwatch_ticks();
    for (struct marey__stopwatch_cell *cell = marey__stopwatch_self.top, *outer; cell != NULL;
         cell = outer) {
        outer = cell->outer;
        if ((cell->mode & (MAREY__STOPWATCH_STALE | MAREY__STOPWATCH_TAKEN)) || cell->start == 0) {
            marey__stopwatch_unlink(cell);
            continue;
        }
        cell_clear(cell);
        marey__free(cell->extra);
        cell->extra = NULL;
        cell->start = now;
        cell->children = 0;
    }
}

void marey__stopwatch_cells_after_fork(void)
{
    struct marey__stopwatch_self *const self = &marey__stopwatch_self;
    for (struct marey__stopwatch_thread *thread = marey__stopwatch_state.threads, *next;
         thread != NULL; thread = next) {
        next = thread->next;
        if (thread != self->thread)
            thread_destroy(thread, drop);
    }
    if (self->thread != NULL)
        self->thread->tid = syscall(SYS_gettid);
    keep_running();
    marey__stopwatch_forget();
    for (struct marey__stopwatch_cell *cell = self->top; cell != NULL; cell = cell->outer) {
        cell->mode &= ~(uint32_t)MAREY__STOPWATCH_STALE;
        marey__stopwatch_list(cell->slot);
    }
}
