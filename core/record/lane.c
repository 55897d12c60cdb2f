/*
 * Lanes: where a thread writes. The fast path is inline in the header; here are the slow ones: attaching a thread,
 * swapping a full chunk for a free one, counting lost events, thread exit.
 */
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/internal.h"

/*
 * Two lanes that accept nothing. A thread starts with `absent`, which routes its first event here. While this file
 * works for a thread it has `occupied`, so that an event from a signal handler or from malloc counts as lost instead of
 * recursing. Both are always busy, so neither is ever written.
 */
static struct marey__lane absent = {.is_busy = 1};
static struct marey__lane occupied = {.is_busy = 1};

__thread struct marey__lane *marey__lane_self __attribute__((tls_model("initial-exec"))) = &absent;

static struct {
    pthread_mutex_t lock; /* guards the list */
    struct marey__lane *first;
    pthread_key_t exit_key;
    pthread_once_t once;
} lanes = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static struct marey__record *const record = &marey__record;

#define NOW UINT64_MAX /* a tick that no event has: use the current time */

/* ---- chunks ---- */

/* The tick of the last event. Payload words of a record cannot be distinguished from events, so a record's tick is stored. */
static uint64_t last_tick(const struct marey__lane *lane)
{
    if (lane->pos == NULL)
        return 0;
    return lane->pos == lane->record_end ? lane->record_tick
                                         : lane->base_tick + (lane->pos[-1] >> 24);
}

/* Caller holds the lane's lock. */
static void hand_over(struct marey__lane *lane)
{
    struct marey__chunk_head *chunk = lane->chunk;
    if (chunk == NULL)
        return;
    lane->chunk = NULL;
    __atomic_store_n(&chunk->state, MAREY__CHUNK_FULL, __ATOMIC_RELEASE);
    marey__queue_put(&record->pool.full, marey__pool_number(&record->pool, chunk));
    marey__flush_nudge();
}

/* Flight recorder: drop the oldest waiting chunk. */
static bool reclaim_oldest(uint32_t *number)
{
    if (!marey__queue_take(&record->pool.full, number))
        return false;
    struct marey__chunk_head *chunk = marey__pool_chunk(&record->pool, *number);
    const struct marey__extent lost = marey__chunk_extent(chunk);
    marey__record_lost(lost.n_events, chunk->base_tick, chunk->base_tick + lost.last_ticks);
    /* If the process is killed while renew() rewrites the head, the old words must not appear under the new lane. */
    __atomic_store_n(&chunk->state, MAREY__CHUNK_FREE, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return true;
}

static bool wait_for_free(uint32_t *number)
{
    enum { TRIES = 1000, EACH_US = 100 }; /* 0.1 s in total */
    for (int i = 0; i < TRIES && !marey__log_is_broken(&record->log) &&
                    !__atomic_load_n(&record->is_full, __ATOMIC_RELAXED);
         i++) {
        usleep(EACH_US);
        if (marey__queue_take(&record->pool.free, number))
            return true;
    }
    return false;
}

static bool take_free(uint32_t *number)
{
    struct marey__pool *pool = &record->pool;
    if (marey__queue_take(&pool->free, number))
        return true;
    marey__flush_nudge();
    /* The flush thread grows the pool ahead of need. If it did not get to run, grow here rather than lose events. */
    while (marey__pool_grow(pool, 1)) /* others may take the new chunk first */
        if (marey__queue_take(&pool->free, number))
            return true;
    switch (record->settings.policy) {
    case MAREY_KEEP_NEWEST:
        return reclaim_oldest(number);
    case MAREY_BLOCK:
        return wait_for_free(number);
    case MAREY_KEEP_OLDEST:
        break;
    }
    return marey__queue_take(&pool->free, number);
}

bool marey__lane_renew(struct marey__lane *lane, uint64_t base_tick)
{
    hand_over(lane);
    uint32_t number;
    if (!take_free(&number))
        return false;
    struct marey__chunk_head *chunk = marey__pool_chunk(&record->pool, number);
    uint64_t *words = (uint64_t *)(chunk + 1);
    lane->base_tick = base_tick;
    chunk->lane = lane->id;
    chunk->kind = lane->kind;
    chunk->sequence = lane->next_sequence++;
    chunk->base_tick = lane->base_tick;
    chunk->tid = lane->tid;
    if (lane->kind == MAREY_LANE_THREAD)
        prctl(PR_GET_NAME, chunk->thread_name);
    else
        memcpy(chunk->thread_name, lane->name, sizeof chunk->thread_name);
    __atomic_store_n(&words[0], 0, __ATOMIC_RELAXED);
    /* Release: a finalizer that sees the chunk owned also sees its owner and the zero word. */
    __atomic_store_n(&chunk->state, MAREY__CHUNK_OWNED, __ATOMIC_RELEASE);
    lane->chunk = chunk;
    lane->pos = lane->record_end = words;
    lane->record_tick = lane->base_tick;
    __atomic_store_n(&lane->limit, words + MAREY__CHUNK_WORDS - 1, __ATOMIC_RELAXED);
    return true;
}

/* ---- threads ---- */

void marey__lane_retire(struct marey__lane *lane)
{
    pthread_mutex_lock(&lanes.lock);
    /* Still registered: the closing thread waits here until the chunk is queued. */
    pthread_mutex_lock(&lane->lock);
    if (record->owner == getpid()) /* the thread of a raw clone() has no pool to give anything back to */
        hand_over(lane);
    pthread_mutex_unlock(&lane->lock);
    *lane->link = lane->next;
    if (lane->next != NULL)
        lane->next->link = lane->link;
    pthread_mutex_unlock(&lanes.lock);
    marey__free(lane);
}

/* At thread exit the chunk goes to the log; events from later destructors get a new lane. */
static void thread_exits(void *arg)
{
    marey__lane_self = &occupied;
    marey__lane_retire(arg);
    marey__lane_self = &absent;
}

static void make_exit_key(void)
{
    pthread_key_create(&lanes.exit_key, thread_exits);
}

void marey__lane_register(struct marey__lane *lane)
{
    pthread_mutex_init(&lane->lock, NULL);
    MAREY__HOLD(&lanes.lock);
    lane->next = lanes.first;
    lane->link = &lanes.first;
    if (lane->next != NULL)
        lane->next->link = &lane->next;
    lanes.first = lane;
}

static struct marey__lane *lane_create(void)
{
    struct marey__lane *lane = marey__calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    pthread_once(&lanes.once, make_exit_key);
    lane->tid = syscall(SYS_gettid);
    marey__lane_register(lane);
    pthread_setspecific(lanes.exit_key, lane);
    return lane;
}

/* The lane enters a new recording: it gets a new number, and its state is reset. */
void marey__lane_join(struct marey__lane *lane)
{
    lane->generation = __atomic_load_n(&record->generation, __ATOMIC_RELAXED);
    lane->id = __atomic_fetch_add(&record->next_lane, 1, __ATOMIC_RELAXED);
    lane->next_sequence = 0;
    lane->gap_events = 0;
    lane->floor_tick = 0;
    lane->pos = NULL;
}

/* ---- the slow path ---- */

static bool is_open(void)
{
    return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == MAREY__RECORD_OPEN;
}

bool marey__lane_is_current(const struct marey__lane *lane)
{
    return lane->generation == __atomic_load_n(&record->generation, __ATOMIC_RELAXED);
}

/* Whether `n` words at `tick` or earlier fit. */
static bool has_room(const struct marey__lane *lane, size_t n, uint64_t tick)
{
    const uint64_t *pos = lane->pos;
    const uint64_t *limit = __atomic_load_n(&lane->limit, __ATOMIC_RELAXED);
    return limit != NULL && pos != NULL && pos + n <= limit && (tick - lane->base_tick) >> 40 == 0;
}

static void lose_one(struct marey__lane *lane)
{
    const uint64_t now = marey__clock_ticks();
    if (lane->gap_events++ == 0)
        lane->gap_first_tick = now;
    lane->gap_last_tick = now;
    marey__record_lost(1, now, now);
}

/* Stores the zero word after the record first, its header last. */
void marey__lane_store_record(struct marey__lane *lane, uint64_t tick, enum marey_record_type type,
                              const uint64_t *words, size_t n)
{
    uint64_t *pos = lane->pos;
    __atomic_store_n(&pos[n + 1], 0, __ATOMIC_RELAXED);
    memcpy(pos + 1, words, n * sizeof *words);
    const uint64_t ticks = tick - lane->base_tick;
    const uint32_t tag = marey__tag(MAREY_KIND_RECORD, (uint32_t)type << 12 | (uint32_t)(n + 1));
    __atomic_store_n(&pos[0], ticks << 24 | tag,
                     __ATOMIC_RELEASE); /* pairs with the acquire in marey__chunk_extent() */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->pos = lane->record_end = pos + n + 1;
    lane->record_tick = tick;
}

/* Makes room for `n` words of an event at `tick`, at most `now`. Caller holds the lane's lock. */
static bool make_room(struct marey__lane *lane, size_t n, uint64_t tick, uint64_t now)
{
    if (!is_open())
        return false;
    if (!marey__lane_is_current(lane)) {
        lane->chunk = NULL;
        marey__lane_join(lane);
    } else if (lane->chunk != NULL && has_room(lane, n, now)) {
        return true;
    }
    /* A chunk begins with its first event, but never before the last event of earlier chunks. */
    lane->floor_tick = MAREY__MAX(lane->floor_tick, last_tick(lane));
    if (!marey__lane_renew(lane, MAREY__MAX(tick, lane->floor_tick))) {
        lose_one(lane);
        return false;
    }
    if (lane->gap_events > 0) {
        const uint64_t gap[] = {lane->gap_events, lane->gap_last_tick - lane->gap_first_tick};
        marey__lane_store_record(lane, lane->base_tick, MAREY_RECORD_GAP, gap, MAREY__COUNT_OF(gap));
        lane->gap_events = 0;
    }
    return true;
}

/* Counts an event that met a busy lane or found no memory. Async-signal-safe. */
static void lose_without_lane(void)
{
    const uint64_t now = marey__clock_ticks();
    marey__record_lost(1, now, now);
}

/* The lane of this thread, created if missing; NULL on out of memory. */
static struct marey__lane *attach(struct marey__lane *lane)
{
    if (lane == &absent && (lane = lane_create()) == NULL)
        lose_without_lane();
    return lane;
}

/* The tick to store for an event at `tick` (or NOW): lanes are ordered by time, and none is ahead of `now`. */
static uint64_t order_tick(const struct marey__lane *lane, uint64_t tick, uint64_t now)
{
    return MAREY__MAX(MAREY__MIN(tick, now), last_tick(lane));
}

/*
 * The lane of this thread, busy and with room for `n` words at `*tick`, which is adjusted to the lane; NULL if the
 * event is not taken. The clock is read once: the tick that was found to fit is the one stored.
 */
static struct marey__lane *lane_with_room(size_t n, uint64_t *tick)
{
    struct marey__lane *const before = marey__lane_self;
    if (before->is_busy && before != &absent) {
        lose_without_lane();
        return NULL;
    }
    marey__lane_set_aside();
    struct marey__lane *lane = is_open() || marey__record_open_pending() ? attach(before) : NULL;
    bool ready = false;
    if (lane != NULL) {
        pthread_mutex_lock(&lane->lock);
        const uint64_t now = marey__clock_ticks();
        ready = make_room(lane, n, MAREY__MIN(*tick, now), now);
        if (ready) {
            *tick = order_tick(lane, *tick, now);
        } else {
            lane->pos = NULL;
            __atomic_store_n(&lane->limit, NULL, __ATOMIC_RELAXED);
        }
        pthread_mutex_unlock(&lane->lock);
        lane->is_busy = ready;
    }
    marey__lane_resume(lane != NULL ? lane : before);
    return ready ? lane : NULL;
}

struct marey__lane *marey__lane_set_aside(void)
{
    struct marey__lane *const lane = marey__lane_self;
    marey__lane_self = &occupied;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return lane;
}

void marey__lane_resume(struct marey__lane *lane)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    marey__lane_self = lane;
}

bool marey__lane_is_aside(void)
{
    return marey__lane_self == &occupied;
}

static void set_idle(struct marey__lane *lane)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->is_busy = 0;
}

void marey__lane_put_slowly(uint32_t tag)
{
    uint64_t tick = NOW;
    struct marey__lane *lane = lane_with_room(1, &tick);
    if (lane != NULL)
        marey__lane_store(lane, lane->pos, (tick - lane->base_tick) << 24 | tag);
}

void marey__lane_put_monotonic(uint32_t tag)
{
    marey__lane_put_at(tag, false);
}

/* This thread's lane, busy, if it already has room for `n` words at `*tick`, which is adjusted to the lane. */
static struct marey__lane *lane_as_it_is(size_t n, uint64_t *tick)
{
    struct marey__lane *lane = marey__lane_self;
    if (lane->is_busy)
        return NULL;
    lane->is_busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const uint64_t now = marey__clock_ticks();
    if (has_room(lane, n, now)) {
        *tick = order_tick(lane, *tick, now);
        return lane;
    }
    set_idle(lane);
    return NULL;
}

void marey__lane_put_record_at(uint64_t tick, enum marey_record_type type, const uint64_t *words,
                               size_t n)
{
    MAREY_ASSERT(n <= MAREY__RECORD_WORDS_MAX);
    struct marey__lane *lane = lane_as_it_is(n + 1, &tick);
    if (lane == NULL)
        lane = lane_with_room(n + 1, &tick);
    if (lane == NULL)
        return;
    marey__lane_store_record(lane, tick, type, words, n);
    set_idle(lane);
}

void marey__lane_put_record(enum marey_record_type type, const uint64_t *words, size_t n)
{
    marey__lane_put_record_at(NOW, type, words, n);
}

/* ---- all lanes ---- */

void marey__lanes_close(void)
{
    MAREY__HOLD(&lanes.lock);
    for (struct marey__lane *lane = lanes.first; lane != NULL; lane = lane->next) {
        pthread_mutex_lock(&lane->lock);
        __atomic_store_n(&lane->limit, NULL, __ATOMIC_RELAXED);
        if (marey__lane_is_current(lane))
            hand_over(lane);
        lane->chunk = NULL;
        pthread_mutex_unlock(&lane->lock);
    }
}

void marey__lanes_before_fork(void)
{
    pthread_mutex_lock(&lanes.lock);
}

/* The child's lanes point to memory it does not have; its one thread starts afresh. */
static void forget_lanes(void)
{
    const struct marey__lane *const self = marey__lane_self;
    for (struct marey__lane *lane = lanes.first, *next; lane != NULL; lane = next) {
        next = lane->next;
        marey__free(lane);
    }
    lanes.first = NULL;
    if (self != &absent && self != &occupied)
        pthread_setspecific(lanes.exit_key, NULL);
    marey__lane_self = &absent;
}

void marey__lanes_after_fork(bool in_child)
{
    if (in_child)
        forget_lanes();
    pthread_mutex_unlock(&lanes.lock);
}

bool marey__lanes_find(int64_t tid, uint32_t *number)
{
    bool is_found = false;
    MAREY__HOLD(&lanes.lock);
    for (struct marey__lane *lane = lanes.first; lane != NULL && !is_found; lane = lane->next) {
        pthread_mutex_lock(&lane->lock);
        is_found =
            lane->kind == MAREY_LANE_THREAD && lane->tid == tid && marey__lane_is_current(lane);
        *number = lane->id;
        pthread_mutex_unlock(&lane->lock);
    }
    return is_found;
}

uint64_t marey__lanes_n_events(void)
{
    uint64_t n = 0;
    MAREY__HOLD(&lanes.lock);
    for (struct marey__lane *lane = lanes.first; lane != NULL; lane = lane->next) {
        pthread_mutex_lock(&lane->lock);
        if (lane->chunk != NULL && marey__lane_is_current(lane))
            n += marey__chunk_extent(lane->chunk).n_events;
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

uint64_t marey__lane_measure_cost(void)
{
    enum { EVENTS = 256, ROUNDS = 8 };
    static uint64_t scratch[EVENTS + 1]; /* recordings open one at a time */
    struct marey__lane fake = {.limit = scratch + EVENTS};
    struct marey__lane *const mine = marey__lane_self;
    uint64_t best = UINT64_MAX;
    marey__lane_self = &fake;
    for (int round = 0; round < ROUNDS; round++) {
        fake.pos = scratch;
        const uint64_t start = marey__clock_ticks();
        fake.base_tick = start;
        for (int i = 0; i < EVENTS; i++)
            marey__lane_put(marey__tag(MAREY_KIND_MARK, 1));
        best = MAREY__MIN(best, marey__clock_ticks() - start);
    }
    marey__lane_self = mine;
    return best * 1000 / EVENTS * 1000000000u / marey__clock_hz();
}
