/* Which allocations are sampled: each byte has the same probability; samples are queued with a stack. */
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/memory/internal.h"

enum { EVERY = 1 }; /* the interval that samples every allocation */

static struct {
    uint64_t interval; /* bytes; relaxed. Stored by a start and by the flush thread */
    bool is_fixed;     /* set by the user: never doubles */
    uint64_t last_number;
    struct marey__memory_counts counts; /* incremented by any thread */
    uint64_t n_seen, ticks_seen;        /* of these at the last check; flush thread only */
} sampling = {.interval = MAREY__MEMORY_INTERVAL};

/* Set while this thread is in here: allocations of a signal handler are not sampled. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
/* When the thread began to record the current allocation. */
static __thread uint64_t began __attribute__((tls_model("initial-exec")));
/* Set for marey's own threads. */
static __thread bool is_ours __attribute__((tls_model("initial-exec")));

static bool is_opening; /* a thread is opening the recording; relaxed */

static struct marey__record *const record = &marey__record;

void marey__memory_exclude_thread(void)
{
    is_ours = true;
}

uint64_t marey__memory_interval(void)
{
    return __atomic_load_n(&sampling.interval, __ATOMIC_RELAXED);
}

static bool is_on(void)
{
    return (marey_on() & MAREY_ON_MEMORY) != 0;
}

static void add(uint64_t *count, uint64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

void marey__memory_counts_get(struct marey__memory_counts *out)
{
    const uint64_t *from = (const uint64_t *)&sampling.counts;
    uint64_t *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void marey__memory_sample_start(uint64_t interval)
{
    __atomic_store_n(&sampling.interval, interval != 0 ? interval : MAREY__MEMORY_INTERVAL,
                     __ATOMIC_RELAXED);
    sampling.is_fixed = interval != 0;
    sampling.counts = (struct marey__memory_counts){0};
    sampling.n_seen = sampling.ticks_seen = 0;
}

void marey__memory_sample_after_fork(void)
{
    marey__memory_sample_start(sampling.is_fixed ? sampling.interval : 0);
    is_inside = false;
    is_opening = false;
}

/* Too many, or too expensive: deep stacks take tens of microseconds each. Ignores a few that a busy machine delayed. */
static bool is_too_much(uint64_t n, uint64_t ticks, uint64_t elapsed_ns)
{
    enum { SOME = 50, PER_CENT = 100 };
    const double seconds = (double)elapsed_ns / 1e9;
    const double spent_s = (double)ticks / (double)marey__clock_hz();
    return (double)n > MAREY__MEMORY_RATE * seconds || (n >= SOME && spent_s * PER_CENT > seconds);
}

void marey__memory_adapt(uint64_t elapsed_ns)
{
    struct marey__memory_counts now;
    marey__memory_counts_get(&now);
    if (!sampling.is_fixed &&
        is_too_much(now.n_reported - sampling.n_seen, now.ticks - sampling.ticks_seen, elapsed_ns))
        __atomic_store_n(&sampling.interval, sampling.interval * 2, __ATOMIC_RELAXED);
    sampling.n_seen = now.n_reported;
    sampling.ticks_seen = now.ticks;
}

/* ---- random numbers ---- */

/* A number in (0, 1]. */
static double draw_share(struct marey_memory_thread *thread)
{
    uint64_t x = thread->random;
    if (x == 0)
        x = (marey__clock_ticks() ^ (uint64_t)(uintptr_t)thread) | 1;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    thread->random = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53 + 0x1p-53;
}

static void draw(struct marey_memory_thread *thread)
{
    thread->interval = marey__memory_interval();
    thread->until = thread->interval <= EVERY
                        ? 0
                        : (int64_t)(-log(draw_share(thread)) * (double)thread->interval);
}

int marey_memory_wants(struct marey_memory_thread *thread, size_t bytes)
{
    const bool is_drawn = thread->interval != 0;
    if (!is_drawn) {
        draw(thread);
        thread->until -= (int64_t)bytes;
    }
    if (thread->until >= 0)
        return 0;
    if (!is_inside && !is_ours && !marey__lane_is_aside() && marey__blocks_marks() != NULL) {
        began = marey__clock_ticks();
        return 1;
    }
    draw(thread);
    return 0;
}

/* ---- recording samples ---- */

/*
 * A pending recording is opened in a separate thread: files cannot be created inside malloc. Also restarts a flush
 * thread that a fork ended.
 */
static void keep_going(void)
{
    const enum marey__record_state state = __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
    if (state == MAREY__RECORD_OPEN) {
        __atomic_store_n(&is_opening, false, __ATOMIC_RELAXED);
        marey__flush_nudge();
    } else if (state == MAREY__RECORD_PENDING &&
               !__atomic_exchange_n(&is_opening, true, __ATOMIC_RELAXED)) {
        marey__memory_open_beside();
    }
}

/* Reserves an entry. If every allocation is sampled, waits for the writer. */
static struct marey__memory_entry *claim(uint64_t *ticket)
{
    enum { TRIES = 1000, EACH_US = 100 };
    struct marey__memory_entry *entry = marey__memory_queue_claim(ticket);
    for (int i = 0; entry == NULL && marey__memory_interval() <= EVERY && is_on() && i < TRIES; i++) {
        marey__flush_wake();
        usleep(EACH_US);
        entry = marey__memory_queue_claim(ticket);
    }
    if (entry == NULL)
        add(&sampling.counts.n_dropped, 1);
    return entry;
}

/* Fills the fields common to allocations and frees, and publishes the entry. */
static void publish(struct marey__memory_entry *entry, uint64_t ticket,
                    enum marey__memory_kind kind, uint64_t tick, uint64_t number)
{
    entry->tick = tick;
    entry->number = number;
    entry->kind = (uint8_t)kind;
    marey__memory_queue_publish(ticket);
    if (marey__memory_queue_is_filling())
        marey__flush_wake();
}

/* How many allocations of that size a sample represents: the inverse of its probability. */
static uint64_t n_represented(size_t bytes, uint64_t interval)
{
    return interval <= EVERY || bytes == 0
               ? 1
               : (uint64_t)(-1 / expm1(-(double)bytes / (double)interval) + 0.5);
}

static void tell(const struct marey_memory_thread *thread, const void *block, size_t bytes,
                 enum marey_memory_source source, void *const *frames, size_t n)
{
    const uint64_t tick = marey__clock_ticks();
    const uint64_t number = __atomic_add_fetch(&sampling.last_number, 1, __ATOMIC_RELAXED);
    uint64_t ticket;
    if (!marey__blocks_put(block, number)) {
        add(&sampling.counts.n_unfollowed, 1);
        return;
    }
    struct marey__memory_entry *const entry = claim(&ticket);
    if (entry == NULL) {
        marey__blocks_take(block);
        return;
    }
    entry->bytes = bytes;
    entry->interval = thread->interval;
    entry->tid = syscall(SYS_gettid);
    entry->source = (uint8_t)source;
    entry->n_frames = (uint32_t)MAREY__MIN(n, (size_t)MAREY__MEMORY_FRAMES);
    for (size_t i = 0; i < entry->n_frames; i++)
        entry->frames[i] = (uint64_t)(uintptr_t)frames[i];
    entry->n_places = (uint32_t)marey__places_now(entry->places, MAREY__MEMORY_PLACES);
    publish(entry, ticket, MAREY__MEMORY_TAKE, tick, number);
    add(&sampling.counts.n_reported, 1);
    add(&sampling.counts.n_allocations, n_represented(bytes, thread->interval));
    add(&sampling.counts.ticks, marey__clock_ticks() - began);
}

void marey_memory_take(struct marey_memory_thread *thread, const void *block, size_t bytes,
                       enum marey_memory_source source, void *const *frames, size_t n)
{
    if (is_inside)
        return;
    is_inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (thread->interval != 0)
        tell(thread, block, bytes, source, frames, n);
    draw(thread);
    keep_going();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    is_inside = false;
}

void marey_memory_give(const void *block)
{
    if (is_inside)
        return;
    is_inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t ticket;
    const uint64_t number = marey__blocks_take(block);
    /* Frees of blocks from an earlier recording are not recorded. */
    struct marey__memory_entry *const entry = number != 0 && is_on() ? claim(&ticket) : NULL;
    if (entry != NULL)
        publish(entry, ticket, MAREY__MEMORY_GIVE, marey__clock_ticks(), number);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    is_inside = false;
}

const uint8_t *marey_memory_marks(void)
{
    return marey__blocks_marks();
}
