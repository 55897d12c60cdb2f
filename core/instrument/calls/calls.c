/* Profiles, their threads, and forks. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/calls/internal.h"

static struct {
    pthread_mutex_t lock; /* guards all */
    struct marey_calls *first;
    int64_t forking; /* the forking thread */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool marey__calls_spend(struct marey_calls *calls, size_t bytes, bool must)
{
    const uint64_t after = __atomic_add_fetch(&calls->n_bytes, bytes, __ATOMIC_RELAXED);
    if (must || after <= calls->budget)
        return true;
    __atomic_fetch_sub(&calls->n_bytes, bytes, __ATOMIC_RELAXED);
    return false;
}

/* ---- the recording: differences, written by the flush thread every few seconds and at stop ---- */

struct calls_settings {
    bool is_wanted, builtins;
    int signatures; /* a level, 0 to 4; -1: the default */
    uint64_t memory_bytes;
    char modules[512]; /* names with ':' between; "": all */
};
static const struct marey__instrument instrument;

#define PERIOD_NS UINT64_C(5000000000) /* between two writes */

static struct {
    pthread_mutex_t lock;      /* guards everything */
    struct marey_calls *calls; /* the recorded profile, or NULL */
    uint64_t written_ns;
    struct calls_settings asked; /* options for a recorded profile */
    uint32_t turn; /* odd while one is recorded; changes with each. Written under the lock, loaded anywhere */
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The calling thread's data in the profile of that turn. */
static __thread struct {
    struct marey_calls_thread *thread;
    uint32_t turn;
} self __attribute__((tls_model("initial-exec")));

/* Caller holds the lock. */
static void set_recorded(struct marey_calls *calls)
{
    if (recorded.calls != calls)
        __atomic_fetch_add(&recorded.turn, 1, __ATOMIC_RELAXED);
    recorded.calls = calls;
}

/* Caller holds the lock. */
static void write_cost(struct marey_calls *calls)
{
    const uint64_t cost_ps = __atomic_load_n(&calls->cost_ps, __ATOMIC_RELAXED);
    pthread_mutex_lock(&calls->write_lock);
    const uint64_t n = calls->recorded.calls;
    pthread_mutex_unlock(&calls->write_lock);
    if (cost_ps != 0 && n != 0)
        marey__record_cost(MAREY__KEY_CALLS_COST, n, cost_ps, cost_ps);
    else
        marey__record_text(MAREY__KEY_CALLS_COST, MAREY__COST_UNKNOWN);
}

/* Caller holds the lock. */
static void write_now(void)
{
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) != MAREY__RECORD_OPEN ||
        marey__record_is_foreign() || marey__log_is_broken(&marey__record.log))
        return;
    if (marey__calls_append(recorded.calls, &marey__record.log, true, 0) != MAREY_OK)
        marey__record_failed(marey_last_error());
    else
        write_cost(recorded.calls);
    recorded.written_ns = marey__clock_ns(CLOCK_MONOTONIC);
}

/* Called by the flush thread, which skips its turn if another thread holds the lock. */
static void visit(void)
{
    if (pthread_mutex_trylock(&recorded.lock) != 0)
        return;
    if (recorded.calls != NULL && marey__clock_ns(CLOCK_MONOTONIC) - recorded.written_ns >= PERIOD_NS)
        write_now();
    pthread_mutex_unlock(&recorded.lock);
}

marey_status marey_calls_record(struct marey_calls *calls)
{
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_PENDING)
        marey__record_open_pending();
    if (!marey_enabled())
        return marey__fail(MAREY_ESTATE, "a call profile goes into a recording, and none is open");
    pthread_mutex_lock(&recorded.lock);
    const bool is_free = recorded.calls == NULL || recorded.calls == calls;
    if (is_free) {
        marey__calls_append_reset(calls);
        set_recorded(calls);
        write_now(); /* so that the log of a process killed soon still records what is missing */
    }
    pthread_mutex_unlock(&recorded.lock);
    if (!is_free)
        return marey__fail(MAREY_ESTATE, "another call profile goes into this recording");
    marey__flush_add_visitor(visit, UINT64_C(1000000000));
    return MAREY_OK;
}

/* Stops recording this profile. */
static void record_end(struct marey_calls *calls, bool is_written)
{
    MAREY__HOLD(&recorded.lock);
    if (recorded.calls != calls || calls == NULL)
        return;
    if (is_written)
        write_now();
    set_recorded(NULL);
}

void marey_calls_unrecord(struct marey_calls *calls)
{
    record_end(calls, true);
}

static void record_stop(void)
{
    MAREY__HOLD(&recorded.lock);
    if (recorded.calls != NULL)
        write_now();
}

/* ---- options ---- */

static void record_configure(const struct marey__settings *s)
{
    MAREY__HOLD(&recorded.lock);
    recorded.asked = *(const struct calls_settings *)marey__settings_of(s, &instrument);
}

int marey_calls_asked_get(struct marey_calls_asked *out)
{
    MAREY__HOLD(&recorded.lock);
    if (!recorded.asked.is_wanted || !marey_enabled())
        return 0;
    *out = (struct marey_calls_asked){.signatures = recorded.asked.signatures,
                                      .builtins = recorded.asked.builtins,
                                      .memory_bytes = recorded.asked.memory_bytes};
    memcpy(out->modules, recorded.asked.modules, sizeof out->modules);
    return 1;
}

/* ---- the calling thread ---- */

/* Registers a new thread of a profile; called by that thread. */
static void record_thread(struct marey_calls_thread *thread)
{
    MAREY__HOLD(&recorded.lock);
    if (recorded.calls == thread->calls) {
        self.thread = thread;
        self.turn = recorded.turn;
    }
}

int marey_calls_current(uint32_t *profile, uint32_t *node)
{
    if (self.turn % 2 == 0 || self.turn != __atomic_load_n(&recorded.turn, __ATOMIC_RELAXED))
        return 0;
    *profile = 0;
    *node = self.thread->top->node->number;
    return *node != 0;
}

/* ---- profiles ---- */

static enum marey__calls_timer timer_of(uint32_t flags)
{
    if (flags & MAREY_CALLS_USER)
        return MAREY__TIMER_USER;
    if (flags & MAREY_CALLS_CPU)
        return MAREY__TIMER_CPU;
    /* Use the recording's ticks if one is open: its clock is chosen then, not before. */
    const bool is_open =
        __atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_OPEN;
    const bool is_tsc = is_open ? marey__clock_is_tsc : marey__clock_is_trusted();
    return is_tsc ? MAREY__TIMER_TSC : MAREY__TIMER_MONOTONIC;
}

struct marey_calls *marey_calls_create(const struct marey_calls_options *options)
{
    static const struct marey_calls_options defaults;
    const struct marey_calls_options *const o = options != NULL ? options : &defaults;
    struct marey_calls *const calls = marey__calloc(1, sizeof *calls);
    if (calls == NULL)
        return NULL;
    pthread_mutex_init(&calls->write_lock, NULL);
    pthread_mutex_init(&calls->lock, NULL);
    calls->flags = o->flags;
    calls->timer = timer_of(o->flags);
    calls->budget = o->memory_bytes != 0 ? o->memory_bytes : MAREY__CALLS_MEMORY;
    calls->ns_per_tick = calls->timer == MAREY__TIMER_USER && o->ns_per_tick > 0 ? o->ns_per_tick
                         : calls->timer >= MAREY__TIMER_CPU                      ? 1.0
                                                                                 : 0.0;
    calls->threads_end = &calls->threads;
    marey__clock_moment(calls->timer == MAREY__TIMER_TSC, &calls->begin);
    MAREY__HOLD(&registry.lock);
    calls->next = registry.first;
    return registry.first = calls;
}

static void unregister(const struct marey_calls *calls)
{
    MAREY__HOLD(&registry.lock);
    struct marey_calls **link = &registry.first;
    while (*link != calls)
        link = &(*link)->next;
    *link = calls->next;
}

static void free_thread(struct marey_calls_thread *thread)
{
    marey__calls_tree_fini(thread);
    marey__free(thread);
}

void marey_calls_destroy(struct marey_calls *calls)
{
    if (calls == NULL)
        return;
    record_end(calls, false);
    unregister(calls);
    for (struct marey_calls_thread *thread = calls->threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        free_thread(thread);
    }
    marey__calls_names_fini(calls);
    pthread_mutex_destroy(&calls->lock);
    pthread_mutex_destroy(&calls->write_lock);
    marey__free(calls);
}

void marey_calls_clear(struct marey_calls *calls)
{
    pthread_mutex_lock(&calls->write_lock);
    pthread_mutex_lock(&calls->lock);
    for (struct marey_calls_thread *thread = calls->threads; thread != NULL; thread = thread->next)
        marey__calls_tree_clear(thread);
    __atomic_store_n(&calls->n_widened, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&calls->lock);
    pthread_mutex_unlock(&calls->write_lock);
}

struct marey_calls_thread *marey_calls_thread_create(struct marey_calls *calls)
{
    struct marey_calls_thread *const thread = marey__calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->calls = calls;
    thread->timer = (uint8_t)calls->timer;
    thread->tid = (int64_t)syscall(SYS_gettid);
    prctl(PR_GET_NAME, thread->name);
    if (!marey__calls_tree_init(thread)) {
        free_thread(thread);
        return NULL;
    }
    marey__calls_spend(calls, sizeof *thread, true);
    pthread_mutex_lock(&calls->lock);
    thread->number = ++calls->n_threads;
    *calls->threads_end = thread;
    calls->threads_end = &thread->next;
    pthread_mutex_unlock(&calls->lock);
    record_thread(thread);
    return thread;
}

void marey_calls_name_thread(struct marey_calls_thread *thread, const char *name)
{
    MAREY__HOLD(&thread->calls->lock);
    snprintf(thread->name, sizeof thread->name, "%s", name);
}

static void settle(struct marey_calls *calls, const uint64_t *now)
{
    MAREY__HOLD(&calls->lock);
    for (struct marey_calls_thread *thread = calls->threads; thread != NULL; thread = thread->next)
        marey__calls_tree_settle(thread, now != NULL ? *now : marey__calls_now(thread));
}

void marey_calls_settle(struct marey_calls *calls)
{
    settle(calls, NULL);
}

void marey_calls_settle_at(struct marey_calls *calls, uint64_t now)
{
    settle(calls, &now);
}

void marey_calls_count_widened(struct marey_calls *calls)
{
    __atomic_fetch_add(&calls->n_widened, 1, __ATOMIC_RELAXED);
}

void marey_calls_set_cost(struct marey_calls *calls, uint64_t cost_ps)
{
    __atomic_store_n(&calls->cost_ps, cost_ps, __ATOMIC_RELAXED);
}

void marey_calls_counts_get(struct marey_calls *calls, struct marey_calls_counts *out)
{
    MAREY__HOLD(&calls->lock);
    *out =
        (struct marey_calls_counts){.nodes = __atomic_load_n(&calls->n_nodes, __ATOMIC_RELAXED),
                                    .widened = __atomic_load_n(&calls->n_widened, __ATOMIC_RELAXED),
                                    .bytes = __atomic_load_n(&calls->n_bytes, __ATOMIC_RELAXED),
                                    .functions = (uint32_t)calls->n_names,
                                    .signatures = (uint32_t)calls->n_texts,
                                    .threads = calls->n_threads};
    for (const struct marey_calls_thread *t = calls->threads; t != NULL; t = t->next)
        out->other_paths += __atomic_load_n(&t->n_other, __ATOMIC_RELAXED);
}

double marey_calls_ns_per_tick(const struct marey_calls *calls)
{
    enum { ENOUGH_NS = 1000000 }; /* between two clock samples, for a rate accurate to 1e-4 */
    if (calls->timer != MAREY__TIMER_TSC)
        return calls->timer == MAREY__TIMER_MONOTONIC ? 1.0 : calls->ns_per_tick;
    struct marey__moment now;
    do
        marey__clock_moment(true, &now);
    while (now.monotonic_ns - calls->begin.monotonic_ns < ENOUGH_NS);
    return (double)(now.monotonic_ns - calls->begin.monotonic_ns) /
           (double)(now.tick - calls->begin.tick);
}

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&registry.lock);
    registry.forking = (int64_t)syscall(SYS_gettid);
}

/* The forking thread: the latest with its id, as ids are reused. NULL if the profile has none. */
static struct marey_calls_thread *forking_thread(const struct marey_calls *calls)
{
    struct marey_calls_thread *found = NULL;
    for (struct marey_calls_thread *thread = calls->threads; thread != NULL; thread = thread->next)
        if (thread->tid == registry.forking)
            found = thread;
    return found;
}

/* The child has one thread and starts with empty results. A parent thread that held a profile's lock does not exist here. */
static void start_anew(struct marey_calls *calls)
{
    struct marey_calls_thread *const left = forking_thread(calls);
    pthread_mutex_init(&calls->write_lock, NULL);
    pthread_mutex_init(&calls->lock, NULL);
    marey_calls_clear(calls);
    calls->recorded = (struct marey__calls_recorded){0};
    for (struct marey_calls_thread *thread = calls->threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        if (thread != left)
            free_thread(thread);
    }
    calls->threads = left;
    calls->threads_end = left != NULL ? &left->next : &calls->threads;
    calls->n_threads = left != NULL;
    if (left != NULL) {
        left->next = NULL;
        left->number = 1;
        left->last = 0;
        left->tid = (int64_t)syscall(SYS_gettid);
    }
}

static void after_fork(bool in_child)
{
    for (struct marey_calls *calls = in_child ? registry.first : NULL; calls != NULL;
         calls = calls->next)
        start_anew(calls);
    pthread_mutex_unlock(&registry.lock);
    /* The child's log has nothing of the profile; it is written on request or with the next event. */
    if (in_child)
        pthread_mutex_init(&recorded.lock, NULL);
}

static bool set_signatures(void *settings, const char *text)
{
    struct calls_settings *const s = settings;
    bool value;
    if (marey__option_bool(text, &value)) {
        s->signatures = value ? -1 : 0;
        return true;
    }
    return marey__option_choice(text, "none|types|dtype|shape|layout", &s->signatures);
}

#define FIELD(field) MAREY__OPTION_FIELD(struct calls_settings, field)
static const struct marey__option options[] = {
    {"calls", "0|1", "0", "records calls of Python functions", MAREY__OPTION_BOOL, FIELD(is_wanted)},
    {"calls.modules", "NAME[:NAME...]", "all", "modules and packages whose functions are recorded",
     MAREY__OPTION_TEXT, FIELD(modules)},
    {"calls.signatures", "0|1|types|dtype|shape|layout", "1, which is shape",
     "which properties of the arguments make a call signature", MAREY__OPTION_PARSED,
     .parse = set_signatures},
    {"calls.builtins", "0|1", "1", "calls of functions written in C are recorded too",
     MAREY__OPTION_BOOL, FIELD(builtins)},
    {"calls.memory", "SIZE", "64MiB", "memory for call paths", MAREY__OPTION_SIZE,
     FIELD(memory_bytes)},
};
static const struct calls_settings defaults = {.builtins = true, .signatures = -1};
static const struct marey__instrument instrument = {MAREY__INSTRUMENT_OPTIONS(options, defaults),
                                                    .defaults = &defaults,
                                                    .configure = record_configure,
                                                    .stopping = record_stop,
                                                    .before_fork = before_fork,
                                                    .after_fork = after_fork};

MAREY__INSTRUMENT_AT_LOAD(6, instrument)
