/*
 * The flush thread: packs full chunks into the log, grows the pool ahead of need, and takes the time each second. It
 * ends before a fork (so that the host forks as single-threaded as it was) and comes back at the next chunk swap.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/record_internal.h"

static struct {
    pthread_mutex_t lock; /* guards starting and joining */
    pthread_t thread;
    bool exists;          /* written under the lock, read anywhere */
    bool should_end;      /* told together with the bell; stays true until a new thread starts */
    uint32_t is_asleep;   /* set by the thread before it looks at the queue for the last time */
    uint32_t bell;        /* a futex; counts rings */
} flush = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct kymo__record *const record = &kymo__record;

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
    record->is_full = true;
    char sentence[256];
    snprintf(sentence, sizeof sentence,
             "the log reached its budget of %llu bytes (option disk); later events stay in memory until the pool is full, "
             "then they are dropped and counted",
             (unsigned long long)record->settings.disk_bytes);
    kymo__record_note(sentence);
    kymo__say("%s", sentence);
}

/* Write one chunk and give it back; false when it could not be written (it then stays in the pool). */
static bool write_chunk(uint32_t number)
{
    struct kymo__chunk_head *chunk = kymo__pool_chunk(&record->pool, number);
    size_t n_words;
    if (kymo__log_append_chunk(&record->log, record->packer, chunk, &n_words) != KYMO_OK) {
        kymo__record_failed(kymo_last_error());
        return false;
    }
    __atomic_fetch_add(&record->n_words_flushed, n_words, __ATOMIC_RELAXED);
    /* Release: a sealer that sees the chunk free knows that its words are in the log. */
    __atomic_store_n(&chunk->state, KYMO__CHUNK_FREE, __ATOMIC_RELEASE);
    kymo__queue_put(&record->pool.free, number);
    return true;
}

static bool may_write(void)
{
    if (record->log.is_broken)
        return false;
    return record->is_closing || (!record->is_full && record->settings.policy != KYMO_KEEP_NEWEST);
}

void kymo__flush_drain(void)
{
    uint32_t number;
    while (may_write() && kymo__queue_take(&record->pool.full, &number)) {
        if (!write_chunk(number))
            return;
        if (!record->is_closing && record->log.size > record->settings.disk_bytes)
            spend_budget();
    }
}

static void grow_ahead(void)
{
    enum { ENOUGH = 24 };
    while (kymo__queue_length(&record->pool.free) < ENOUGH && kymo__pool_grow(&record->pool))
        ;
}

static void *flush_main(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "kymo-flush");
    const uint64_t second = 1000000000u;
    /* The second moment comes soon, so that a short life that ends by a kill has a clock rate too. */
    uint64_t next_moment = kymo__clock_ns(CLOCK_MONOTONIC) + second / 50;
    while (!__atomic_load_n(&flush.should_end, __ATOMIC_RELAXED)) {
        const uint32_t heard = __atomic_load_n(&flush.bell, __ATOMIC_ACQUIRE);
        kymo__flush_drain();
        grow_ahead();
        const uint64_t now = kymo__clock_ns(CLOCK_MONOTONIC);
        if (now >= next_moment) {
            if (!record->log.is_broken && kymo__log_append_moment(&record->log, kymo__clock_is_tsc) != KYMO_OK)
                kymo__record_failed(kymo_last_error());
            next_moment = now + second;
        }
        /* Sequentially consistent with the load in nudge(): either it sees us asleep or we see its chunk. */
        __atomic_store_n(&flush.is_asleep, 1, __ATOMIC_SEQ_CST);
        if ((kymo__queue_length(&record->pool.full) == 0 || !may_write()) &&
            !__atomic_load_n(&flush.should_end, __ATOMIC_RELAXED))
            sleep_until_rung(heard, next_moment - now);
        __atomic_store_n(&flush.is_asleep, 0, __ATOMIC_RELAXED);
    }
    record->flush_cpu_ns += kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* The lock is held. */
static void start_thread(void)
{
    enum { STACK_BYTES = 512 << 10 };
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    flush.should_end = false;
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's signals are the host's */
    const int error = pthread_create(&flush.thread, &attr, flush_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    __atomic_store_n(&flush.exists, error == 0, __ATOMIC_RELEASE);
    if (error != 0)
        kymo__say("the flush thread could not be started (error %d): events are kept in the pool of %llu bytes only", error,
                  (unsigned long long)record->pool.bytes);
}

void kymo__flush_start(void)
{
    pthread_mutex_lock(&flush.lock);
    if (!flush.exists)
        start_thread();
    pthread_mutex_unlock(&flush.lock);
}

static bool join_within(int timeout_ms)
{
    if (timeout_ms < 0)
        return pthread_join(flush.thread, NULL) == 0;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)timeout_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(flush.thread, NULL, &until) == 0;
}

bool kymo__flush_stop(int timeout_ms)
{
    pthread_mutex_lock(&flush.lock);
    if (flush.exists) {
        __atomic_store_n(&flush.should_end, true, __ATOMIC_RELAXED);
        ring();
        __atomic_store_n(&flush.exists, !join_within(timeout_ms), __ATOMIC_RELEASE);
    }
    const bool gone = !flush.exists;
    pthread_mutex_unlock(&flush.lock);
    return gone;
}

/* The thread was ended for a fork, or is about to: put a new one in its place. */
static void restart(void)
{
    if (record->is_closing || pthread_mutex_trylock(&flush.lock) != 0)
        return;
    if (flush.exists && flush.should_end && pthread_tryjoin_np(flush.thread, NULL) == 0)
        flush.exists = false;
    if (!flush.exists)
        start_thread();
    pthread_mutex_unlock(&flush.lock);
}

void kymo__flush_nudge(void)
{
    if (KYMO_UNLIKELY(!__atomic_load_n(&flush.exists, __ATOMIC_ACQUIRE) ||
                      __atomic_load_n(&flush.should_end, __ATOMIC_RELAXED)))
        restart();
    else if (__atomic_load_n(&flush.is_asleep, __ATOMIC_SEQ_CST))
        ring();
}

void kymo__flush_after_fork(void)
{
    pthread_mutex_init(&flush.lock, NULL);
    flush.exists = false;
    flush.is_asleep = 0;
}
