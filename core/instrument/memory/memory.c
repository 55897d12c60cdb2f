/* The memory instrument: on and off with a recording, periodic work on the flush thread, forks. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/memory/internal.h"

enum { PERIOD_NS = 100000000 }; /* between two readings of resident memory */

static struct {
    pthread_mutex_t lock; /* of the thread that makes records: the flush thread, or one that stops. Guards the next two */
    uint64_t read_ns, adapted_ns; /* last reading of resident memory; 0: none in this recording */
    bool is_wanted;
    int64_t owner;       /* the measured process, not a raw clone() */
    bool is_hooked;      /* whether malloc is hooked; relaxed */
    const char *why_not; /* why it is not hooked */
    bool is_python_told; /* in this recording; guarded by the lock */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *marey__memory_map(size_t bytes)
{
    void *const p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_WIPEONFORK);
    madvise(p, bytes, MADV_NOHUGEPAGE); /* sparsely used: huge pages would count as our memory */
    return p;
}

static void *open_main(void *arg)
{
    (void)arg;
    marey__memory_exclude_thread();
    marey__record_open_pending();
    return NULL;
}

void marey__memory_open_beside(void)
{
    pthread_t thread;
    if (marey__thread_create(&thread, 0, open_main, NULL) == 0)
        pthread_detach(thread);
}

void marey_memory_hooked(const char *why_not)
{
    memory.why_not = why_not;
    __atomic_store_n(&memory.is_hooked, why_not == NULL, __ATOMIC_RELAXED);
}

int marey_memory_is_hooked(void)
{
    return __atomic_load_n(&memory.is_hooked, __ATOMIC_RELAXED);
}

/* ---- into the recording; callers hold the lock ---- */

static void tell_sources(void)
{
    char text[256];
    snprintf(text, sizeof text, "malloc=%s\npython=%s\ninterval=%" PRIu64,
             memory.is_hooked         ? "yes"
             : memory.why_not != NULL ? memory.why_not
                                      : "no: start the program with marey run --memory",
             marey__memory_interpreter() != NULL ? "yes" : "no", marey__memory_interval());
    marey__record_text(MAREY__KEY_MEMORY, text);
    memory.is_python_told = marey__memory_interpreter() != NULL;
}

static void write_counts(void)
{
    struct marey__memory_counts counts;
    char text[256];
    marey__memory_counts_get(&counts);
    snprintf(text, sizeof text,
             "told=%" PRIu64 "\ndropped=%" PRIu64 "\nunfollowed=%" PRIu64 "\nticks=%" PRIu64
             "\nlast_interval=%" PRIu64,
             counts.n_reported, counts.n_dropped, counts.n_unfollowed, counts.ticks,
             marey__memory_interval());
    marey__record_text(MAREY__KEY_MEMORY_COUNTS, text);
    marey__memory_cost_record(&counts);
}

static void work(bool is_last)
{
    const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
    const bool is_first = memory.read_ns == 0;
    if (is_first || memory.is_python_told != (marey__memory_interpreter() != NULL))
        tell_sources();
    if (is_first) {
        marey__record_text(MAREY__KEY_MEMORY_COST, MAREY__COST_UNKNOWN);
        memory.adapted_ns = now;
    }
    marey__memory_write();
    if (is_first || is_last || now - memory.read_ns >= PERIOD_NS) {
        marey__memory_resident_read(is_first, is_last);
        memory.read_ns = now;
    }
    if (now - memory.adapted_ns >= UINT64_C(10) * PERIOD_NS) {
        marey__memory_adapt(now - memory.adapted_ns);
        memory.adapted_ns = now;
    }
    if (is_last)
        write_counts();
}

/* Called by the flush thread. */
static void visit(void)
{
    if (!__atomic_load_n(&memory.is_wanted, __ATOMIC_RELAXED) ||
        pthread_mutex_trylock(&memory.lock) != 0)
        return;
    marey__memory_exclude_thread();
    work(false);
    pthread_mutex_unlock(&memory.lock);
}

/* ---- instrument callbacks ---- */

struct memory_settings {
    bool is_wanted;
    uint64_t interval; /* bytes between two samples; 0: the default, which may double */
};
static const struct marey__option options[] = {
    {"memory", "0|1", "0", "records resident memory, and allocations by samples",
     MAREY__OPTION_BOOL, MAREY__OPTION_FIELD(struct memory_settings, is_wanted)},
    {"memory.sample", "SIZE", "512KiB, more where needed",
     "bytes between two samples of allocations; 1: every allocation", MAREY__OPTION_SIZE,
     MAREY__OPTION_FIELD(struct memory_settings, interval), .most = UINT64_C(1) << 40},
};
static const struct marey__instrument instrument;

static bool is_wanted(const void *settings)
{
    return ((const struct memory_settings *)settings)->is_wanted;
}

static void switch_on(const struct memory_settings *s)
{
    pthread_mutex_lock(&memory.lock);
    const bool can = marey__blocks_open() && marey__memory_queue_open() && marey__places_open();
    marey__blocks_clear();
    while (marey__memory_queue_next() != NULL)
        marey__memory_queue_release(); /* left from the previous recording */
    marey__memory_write_reset();
    marey__memory_sample_start(s->interval);
    memory.read_ns = 0;
    memory.owner = getpid();
    __atomic_store_n(&memory.is_wanted, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&memory.lock);
    marey__flush_add_visitor(visit, PERIOD_NS);
    if (can)
        __atomic_fetch_or(&marey_switch[0], MAREY_ON_MEMORY, __ATOMIC_RELEASE);
}

static void configure(const struct marey__settings *s)
{
    const struct memory_settings *const own = marey__settings_of(s, &instrument);
    if (own->is_wanted && marey_enabled())
        switch_on(own);
}

static void stop(void)
{
    if (!__atomic_load_n(&memory.is_wanted, __ATOMIC_RELAXED) || memory.owner != getpid())
        return;
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_MEMORY, __ATOMIC_RELEASE);
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_PENDING &&
        marey__memory_queue_next() != NULL) /* sampled before the recording opened */
        marey__record_open_pending();
    MAREY__HOLD(&memory.lock);
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_OPEN)
        work(true);
    __atomic_store_n(&memory.is_wanted, false, __ATOMIC_RELAXED);
}

/* The tables are wiped in the child: it samples its own allocations into its own recording. */
static void after_fork(bool in_child)
{
    if (!in_child)
        return;
    pthread_mutex_init(&memory.lock, NULL);
    memory.owner = getpid();
    memory.read_ns = 0;
    marey__memory_write_forget();
    marey__memory_sample_after_fork();
    if (!marey_enabled()) {
        __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_MEMORY, __ATOMIC_RELEASE);
        __atomic_store_n(&memory.is_wanted, false, __ATOMIC_RELAXED);
    }
}

static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct memory_settings),
    .measures = "memory",
    .ask_by = "marey run --memory",
    .is_wanted = is_wanted,
    .configure = configure,
    .stopping = stop,
    .reset = stop,
    .after_fork = after_fork};

MAREY__INSTRUMENT_AT_LOAD(5, instrument)
