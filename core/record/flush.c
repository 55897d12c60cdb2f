/*
 * The flush thread: packs full chunks into the log, grows the pool ahead of need, and samples the clocks each second.
 * It ends before a fork, so that a single-threaded host forks single-threaded, and restarts at the next chunk swap.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/internal.h"

enum {
    FREE_CHUNKS =
        64, /* free chunks kept ready, some milliseconds of events at full speed; below that the pool grows */
    BATCH_CHUNKS = 16, /* enough to wake the thread */
};

static struct {
    pthread_mutex_t lock; /* guards starting and joining */
    pthread_t thread;
    bool exists;        /* written under the lock, read anywhere */
    bool should_end;    /* set together with the bell; stays true until a new thread starts */
    uint32_t is_asleep; /* set by the thread before it checks the queue for the last time */
    uint32_t bell;      /* a futex that counts wakeups */
    struct visitor {
        uint64_t period_ns;  /* between two calls; stored before the visitor */
        void (*visit)(void); /* NULL: none. Release */
    } visitors[2];
} flush = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct marey__record *const record = &marey__record;

static void ring(void)
{
    __atomic_fetch_add(&flush.bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &flush.bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_until_rung(uint32_t heard, uint64_t ns)
{
    const struct timespec timeout = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_futex, &flush.bell, FUTEX_WAIT_PRIVATE, heard, &timeout, NULL, 0);
}

static void spend_budget(void)
{
    __atomic_store_n(&record->is_full, true, __ATOMIC_RELAXED);
    char sentence[256];
    snprintf(sentence, sizeof sentence,
             "the log reached its budget of %llu bytes (option disk); later events stay in memory "
             "until the pool is full, "
             "then they are dropped and counted",
             (unsigned long long)record->settings.disk_bytes);
    marey__record_note(sentence);
    marey__say("%s", sentence);
}

/* Writes one chunk and frees it. Returns false if the write failed; the chunk then stays in the pool. */
static bool write_chunk(uint32_t number)
{
    struct marey__chunk_head *chunk = marey__pool_chunk(&record->pool, number);
    size_t n_events;
    if (marey__log_append_chunk(&record->log, record->packer, chunk, &n_events) != MAREY_OK) {
        marey__record_failed(marey_last_error());
        return false;
    }
    __atomic_fetch_add(&record->n_events_flushed, n_events, __ATOMIC_RELAXED);
    /* Release: a finalizer that sees the chunk free knows that the log has its words. */
    __atomic_store_n(&chunk->state, MAREY__CHUNK_FREE, __ATOMIC_RELEASE);
    marey__queue_put(&record->pool.free, number);
    return true;
}

static bool may_write(void)
{
    if (marey__log_is_broken(&record->log))
        return false;
    return __atomic_load_n(&record->is_closing, __ATOMIC_RELAXED) ||
           (!__atomic_load_n(&record->is_full, __ATOMIC_RELAXED) &&
            record->settings.policy != MAREY_KEEP_NEWEST);
}

void marey__flush_drain(void)
{
    uint32_t number;
    while (may_write() && marey__queue_take(&record->pool.full, &number)) {
        if (!write_chunk(number))
            return;
        if (!__atomic_load_n(&record->is_closing, __ATOMIC_RELAXED) &&
            marey__log_size(&record->log) > record->settings.disk_bytes)
            spend_budget();
    }
}

static void grow_ahead(void)
{
    while (marey__queue_length(&record->pool.free) < FREE_CHUNKS &&
           marey__pool_grow(&record->pool, FREE_CHUNKS))
        ;
}

/* Calls the visitors. Returns how long the thread may sleep afterwards. */
static uint64_t visit(uint64_t most_ns)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(flush.visitors); i++) {
        void (*const visitor)(void) = __atomic_load_n(&flush.visitors[i].visit, __ATOMIC_ACQUIRE);
        if (visitor == NULL)
            break;
        visitor();
        most_ns = MAREY__MIN(most_ns, flush.visitors[i].period_ns);
    }
    return most_ns;
}

static void *flush_main(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "marey-flush");
    const uint64_t second = 1000000000u;
    /* The second clock sample comes early, so that a process killed soon after its start has a clock rate too. */
    uint64_t next_moment = marey__clock_ns(CLOCK_MONOTONIC) + second / 50;
    while (!__atomic_load_n(&flush.should_end, __ATOMIC_RELAXED)) {
        const uint32_t heard = __atomic_load_n(&flush.bell, __ATOMIC_ACQUIRE);
        marey__flush_drain();
        grow_ahead();
        const uint64_t rest_ns = visit(second);
        const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
        if (now >= next_moment) {
            if (!marey__log_is_broken(&record->log) &&
                marey__log_append_moment(&record->log, marey__clock_is_tsc) != MAREY_OK)
                marey__record_failed(marey_last_error());
            next_moment = now + second;
        }
        /* Sequentially consistent with the load in nudge(): either nudge() sees us asleep, or we see its chunk. */
        __atomic_store_n(&flush.is_asleep, 1, __ATOMIC_SEQ_CST);
        if ((marey__queue_length(&record->pool.full) == 0 || !may_write()) &&
            !__atomic_load_n(&flush.should_end, __ATOMIC_RELAXED))
            sleep_until_rung(heard, MAREY__MIN(next_moment - now, rest_ns));
        __atomic_store_n(&flush.is_asleep, 0, __ATOMIC_RELAXED);
    }
    record->flush_cpu_ns += marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Caller holds the lock. */
static void start_thread(void)
{
    enum { STACK_BYTES = 512 << 10 };
    __atomic_store_n(&flush.should_end, false, __ATOMIC_RELAXED);
    const int error = marey__thread_create(&flush.thread, STACK_BYTES, flush_main, NULL);
    __atomic_store_n(&flush.exists, error == 0, __ATOMIC_RELEASE);
    if (error != 0)
        marey__say("the flush thread could not be started (error %d): events are kept in the pool "
                   "of %llu bytes only",
                   error, (unsigned long long)record->pool.bytes);
}

void marey__flush_start(void)
{
    MAREY__HOLD(&flush.lock);
    if (!flush.exists)
        start_thread();
}

static bool join_within(int timeout_ms)
{
    if (timeout_ms < 0)
        return pthread_join(flush.thread, NULL) == 0;
    const struct timespec until = marey__clock_after(CLOCK_REALTIME, (uint64_t)timeout_ms * 1000000);
    return pthread_timedjoin_np(flush.thread, NULL, &until) == 0;
}

/* Caller holds the lock. */
static void end_thread(int timeout_ms)
{
    if (!flush.exists)
        return;
    __atomic_store_n(&flush.should_end, true, __ATOMIC_RELAXED);
    ring();
    __atomic_store_n(&flush.exists, !join_within(timeout_ms), __ATOMIC_RELEASE);
}

void marey__flush_stop(void)
{
    MAREY__HOLD(&flush.lock);
    end_thread(-1);
}

/* The thread was ended for a fork, or is about to be: start a new one. */
static void restart(void)
{
    if (pthread_mutex_trylock(&flush.lock) != 0)
        return;
    if (flush.exists && flush.should_end && pthread_tryjoin_np(flush.thread, NULL) == 0)
        __atomic_store_n(&flush.exists, false, __ATOMIC_RELEASE);
    /* Checked under the lock: close sets is_closing before it takes the lock and ends the thread for good. */
    if (!flush.exists && !__atomic_load_n(&record->is_closing, __ATOMIC_RELAXED))
        start_thread();
    pthread_mutex_unlock(&flush.lock);
}

/*
 * Waking a thread costs the waker some microseconds, as much as a few hundred events. So the thread is woken for a
 * batch of chunks, or when few are free; smaller amounts wait for its next clock sample, within a second. In the pool
 * they are safe either way.
 */
static bool has_work(void)
{
    const struct marey__pool *pool = &record->pool;
    const uint32_t n_free = marey__queue_length(&pool->free);
    if (n_free < FREE_CHUNKS && marey__pool_can_grow(pool))
        return true;
    return may_write() && (n_free < BATCH_CHUNKS || marey__queue_length(&pool->full) >= BATCH_CHUNKS);
}

void marey__flush_nudge(void)
{
    if (MAREY_UNLIKELY(!__atomic_load_n(&flush.exists, __ATOMIC_ACQUIRE) ||
                       __atomic_load_n(&flush.should_end, __ATOMIC_RELAXED)))
        restart();
    else if (__atomic_load_n(&flush.is_asleep, __ATOMIC_SEQ_CST) && has_work())
        ring();
}

void marey__flush_wake(void)
{
    if (__atomic_load_n(&flush.is_asleep, __ATOMIC_SEQ_CST))
        ring();
}

void marey__flush_add_visitor(void (*visitor)(void), uint64_t period_ns)
{
    pthread_mutex_lock(&flush.lock);
    size_t i = 0;
    while (flush.visitors[i].visit != NULL && flush.visitors[i].visit != visitor)
        MAREY_ASSERT(++i < MAREY__COUNT_OF(flush.visitors));
    if (flush.visitors[i].visit == NULL) {
        flush.visitors[i].period_ns = period_ns;
        __atomic_store_n(&flush.visitors[i].visit, visitor, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&flush.lock);
    marey__flush_wake();
}

void marey__flush_before_fork(void)
{
    enum { PARK_MS = 10 };
    pthread_mutex_lock(&flush.lock);
    end_thread(PARK_MS);
}

bool marey__flush_after_fork(bool in_child)
{
    const bool was_parked = !flush.exists;
    if (in_child) {
        flush.exists = false;
        flush.is_asleep = 0;
    }
    pthread_mutex_unlock(&flush.lock);
    return was_parked;
}
