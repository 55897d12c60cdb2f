/*
 * The energy instrument: starts with a recording, stops before it closes, and pauses during forks.
 *
 * The thread `marey-energy` waits until this process is the one that measures, opens the sources, and reads by a
 * timetable until it has to end. It sleeps until absolute times, so that the cost of readings does not add up. Foreign
 * code (NVML) may hang forever. Then stop() abandons the thread: it writes nothing more, and frees the session if it
 * ever returns.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/energy/internal.h"
#include "switchboard/internal.h"

/* Outside of sessions, so that an epoch never meets one that is being freed. */
static uint32_t bell;    /* a futex that counts wakeups */
static uint32_t n_edges; /* epochs begun and ended so far */

static __thread struct marey__energy_session *my_session; /* set in the energy thread */

static void ring(void)
{
    __atomic_fetch_add(&bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Waits until the futex is no longer `value`, or until the deadline (CLOCK_MONOTONIC). */
static void wait_until(uint32_t *futex, uint32_t value, uint64_t deadline_ns)
{
    const struct timespec until = {(time_t)(deadline_ns / MAREY__SECOND_NS),
                                   (long)(deadline_ns % MAREY__SECOND_NS)};
    syscall(SYS_futex, futex, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static bool should_end(const struct marey__energy_session *s)
{
    return __atomic_load_n(&s->should_end, __ATOMIC_RELAXED);
}

static void epoch_edge(void)
{
    __atomic_fetch_add(&n_edges, 1, __ATOMIC_RELAXED);
    ring();
}

/*
 * ---- values ordered by time ----
 *
 * A lane takes events in order, but the driver's samples have past timestamps, and those of several GPUs come one GPU
 * after the other. So values wait here until nothing older can come.
 */

MAREY__ORDER(by_tick, struct marey__energy_entry, MAREY__UP(tick))

static void put_entry(const struct marey__energy_entry *entry)
{
    uint64_t words[2] = {entry->site, 0};
    memcpy(&words[1], &entry->value, sizeof entry->value);
    if ((marey_on() & MAREY_ON_RECORD) != 0)
        marey__lane_put_record_at(entry->tick, MAREY_RECORD_COUNTER, words, MAREY__COUNT_OF(words));
}

/* Writes entries up to `until_tick`, in order; the rest keeps waiting. */
static void order_write(struct marey__energy_order *order, uint64_t until_tick)
{
    size_t n = 0;
    if (order->n == 0)
        return;
    qsort(order->entries, order->n, sizeof *order->entries, by_tick);
    while (n < order->n && order->entries[n].tick <= until_tick)
        put_entry(&order->entries[n++]);
    order->n -= n;
    memmove(order->entries, order->entries + n, order->n * sizeof *order->entries);
}

/* On out of memory, waiting values are written at once: late samples then get the time of the value before them. */
static void order_add(struct marey__energy_order *order, const struct marey__energy_entry *entry)
{
    if (MAREY__PUSH(order->entries, order->n, order->cap, *entry))
        return;
    order_write(order, UINT64_MAX);
    put_entry(entry);
}

/* ---- into the recording ---- */

/* Whether this thread may still write; if so, end_write() must follow. */
static bool begin_write(void)
{
    if (my_session == NULL)
        return true; /* a test's thread has no session */
    pthread_mutex_lock(&my_session->write_lock);
    if (my_session->state == MAREY__SESSION_RUNNING)
        return true;
    pthread_mutex_unlock(&my_session->write_lock);
    return false;
}

static void end_write(void)
{
    if (my_session != NULL)
        pthread_mutex_unlock(&my_session->write_lock);
}

void marey__energy_put_at(uint64_t tick, marey_id site, double value)
{
    const struct marey__energy_entry entry = {tick, site, value};
    if (my_session == NULL || !begin_write())
        return; /* a test's thread has no recording */
    order_add(&my_session->order, &entry);
    end_write();
}

void marey__energy_put(marey_id site, double value)
{
    marey__energy_put_at(marey__clock_ticks(), site, value);
}

void marey__energy_write(struct marey__energy_session *s, bool all)
{
    uint64_t until = UINT64_MAX;
    for (size_t i = 0; i < s->n_gpus && !all; i++)
        if (s->gpus[i].ring.is_used && !s->gpus[i].is_lost)
            until = MAREY__MIN(until, s->gpus[i].ring.seen_tick);
    if (!begin_write())
        return;
    order_write(&s->order, until);
    end_write();
}

void marey__energy_put_text(const char *key, struct marey__buf *text)
{
    marey__buf_put(text, "", 1);
    if (!text->failed && begin_write()) {
        if (marey_enabled())
            marey__record_text(key, text->data);
        end_write();
    }
    marey__buf_fini(text);
}

void marey__energy_warn(const char *fmt, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    struct marey__buf note = {0};
    marey__buf_puts(&note, sentence);
    marey__energy_put_text(MAREY__KEY_NOTE, &note);
    marey__say("%s", sentence);
}

/* ---- the thread ---- */

static void measure(struct marey__energy_session *s)
{
    marey__energy_sources_open(s);
    s->n_edges = __atomic_load_n(&n_edges, __ATOMIC_RELAXED);
    marey__energy_times_init(s);
    while (!should_end(s)) {
        const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        const uint64_t next_ns = marey__energy_times_read(
            s, marey__energy_now_ns(), __atomic_load_n(&n_edges, __ATOMIC_RELAXED));
        if (!should_end(s))
            wait_until(&bell, heard, next_ns);
    }
    marey__energy_sources_close(s);
}

/* Returns false if the program ends first; without energy.after, even the shortest program is measured. */
static bool wait_to_begin(struct marey__energy_session *s)
{
    const struct marey__energy_settings *const settings =
        marey__settings_of(&s->settings, &marey__energy_instrument);
    const uint64_t begin_ns = marey__energy_now_ns() + settings->after_s * MAREY__SECOND_NS;
    while (marey__energy_now_ns() < begin_ns) {
        const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        if (should_end(s))
            return false;
        wait_until(&bell, heard, begin_ns);
    }
    return true;
}

/* Asks once a second, as the measuring process may end; the first time even after the end of a very short program. */
static bool wait_for_turn(struct marey__energy_session *s)
{
    for (;;) {
        const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        const enum marey__energy_turn turn = marey__energy_lock_try(&s->lock, s->settings.path);
        if (turn == MAREY__TURN_OURS)
            return true;
        if (turn == MAREY__TURN_NEVER) {
            /* The file system has no locks: use the first rank of each machine. */
            if (s->local_rank <= 0)
                marey__say("energy: %s cannot be locked: if several processes of this machine "
                           "measure, energy is recorded several times",
                           s->lock.path);
            return s->local_rank <= 0;
        }
        if (!should_end(s))
            wait_until(&bell, heard, marey__energy_now_ns() + MAREY__SECOND_NS);
        if (should_end(s))
            return false;
    }
}

static bool open_recording(struct marey__energy_session *s)
{
    if (s->settings.role == NULL)
        return true;
    if (marey__record_open(&s->settings) == MAREY_OK)
        return true;
    marey__say("energy is not recorded: %s", marey_last_error());
    return false;
}

static void session_free(struct marey__energy_session *s)
{
    MAREY__FREE_ALL(s->nodes, s->devices, s->gpus, s->order.entries);
    pthread_mutex_destroy(&s->calls);
    pthread_mutex_destroy(&s->write_lock);
    marey__free(s);
}

static void *energy_main(void *arg)
{
    struct marey__energy_session *s = arg;
    prctl(PR_SET_NAME, "marey-energy");
    my_session = s;
    if (wait_to_begin(s) && wait_for_turn(s) && open_recording(s))
        measure(s);
    marey__energy_lock_release(&s->lock);
    pthread_mutex_lock(&s->write_lock);
    const bool is_alone = s->state == MAREY__SESSION_ABANDONED;
    __atomic_store_n(&s->state, is_alone ? MAREY__SESSION_ABANDONED : MAREY__SESSION_ENDED,
                     __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->write_lock);
    if (is_alone)
        session_free(s);
    else
        syscall(SYS_futex, &s->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return NULL;
}

static struct marey__energy_session *session_start(const struct marey__settings *settings,
                                                   int local_rank)
{
    enum { STACK_BYTES = 512 << 10 };
    struct marey__energy_session *s = marey__calloc(1, sizeof *s);
    int error = ENOMEM;
    if (s != NULL) {
        s->settings = *settings;
        s->power_hz = ((const struct marey__energy_settings *)marey__settings_of(
                           settings, &marey__energy_instrument))
                          ->hz;
        s->local_rank = local_rank;
        s->lock.file.fd = -1;
        pthread_mutex_init(&s->calls, NULL);
        pthread_mutex_init(&s->write_lock, NULL);
        error = marey__thread_create(&s->thread, STACK_BYTES, energy_main, s);
    }
    if (error == 0)
        return s;
    marey__say("energy is not measured: its thread could not be started (%s)", strerror(error));
    if (s != NULL)
        session_free(s);
    return NULL;
}

/* Waits at most a second for the last reading. Frees the session. */
static void session_stop(struct marey__energy_session *s)
{
    const uint64_t deadline = marey__energy_now_ns() + MAREY__SECOND_NS;
    __atomic_store_n(&s->should_end, true, __ATOMIC_RELAXED);
    ring();
    while (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == MAREY__SESSION_RUNNING &&
           marey__energy_now_ns() < deadline)
        wait_until(&s->state, MAREY__SESSION_RUNNING, deadline);
    const pthread_t thread = s->thread;
    pthread_mutex_lock(&s->write_lock);
    const bool has_ended = s->state == MAREY__SESSION_ENDED;
    if (!has_ended)
        s->state = MAREY__SESSION_ABANDONED; /* now owned by the thread */
    pthread_mutex_unlock(&s->write_lock);
    if (has_ended) {
        pthread_join(thread, NULL);
        session_free(s);
        return;
    }
    pthread_detach(thread);
    marey__say("the last reading of energy is missing: NVML did not answer within a second");
}

/* Keeps the thread out of foreign code during a fork; false if it does not return in time. */
static bool session_pause(struct marey__energy_session *s)
{
    const bool is_opening = __atomic_load_n(&s->is_opening, __ATOMIC_RELAXED);
    const uint64_t patience = s->is_stuck  ? 0
                              : is_opening ? 2 * MAREY__SECOND_NS
                                           : MAREY__SECOND_NS / 100;
    const uint64_t until_ns = marey__clock_ns(CLOCK_REALTIME) + patience;
    const struct timespec until = {(time_t)(until_ns / MAREY__SECOND_NS),
                                   (long)(until_ns % MAREY__SECOND_NS)};
    s->is_stuck = pthread_mutex_timedlock(&s->calls, &until) != 0;
    return !s->is_stuck;
}

/* ---- start and stop ---- */

static struct {
    pthread_mutex_t lock; /* guards the fields below */
    struct marey__energy_session *session;
    struct marey__energy_session *parents; /* inherited by a forked child, which cannot end it */
    bool is_paused;                        /* for the fork in progress */
    int64_t owner;                         /* the process that has the thread; not a raw clone() */
} energy = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct marey__iteration_subscriber subscriber = {.epoch_edge = epoch_edge};

static void stop(void)
{
    if (__atomic_load_n(&energy.owner, __ATOMIC_RELAXED) != getpid())
        return;
    MAREY__HOLD(&energy.lock);
    struct marey__energy_session *const session = energy.session;
    energy.session = NULL;
    if (session == NULL)
        return;
    marey__iteration_unsubscribe(&subscriber);
    session_stop(session);
}

static void start(const struct marey__settings *s)
{
    stop();
    struct marey__launch launch;
    marey__identity_launch(&launch);
    MAREY__HOLD(&energy.lock);
    energy.session = session_start(s, launch.local_rank);
    __atomic_store_n(&energy.owner, getpid(), __ATOMIC_RELAXED);
    if (energy.session != NULL)
        marey__iteration_subscribe(&subscriber);
}

/*
 * Libraries loaded after us, NVML too, are unloaded first. A handler registered after they are loaded runs before that.
 */
void marey__energy_stop_at_exit(void)
{
    static bool is_registered;
    if (!__atomic_exchange_n(&is_registered, true, __ATOMIC_RELAXED))
        atexit(stop);
}

/* ---- instrument callbacks ---- */

static const struct marey__option options[] = {
    {"energy", "0|1", "0", "records energy, power and utilization", MAREY__OPTION_BOOL,
     MAREY__OPTION_FIELD(struct marey__energy_settings, is_wanted)},
    {"energy.hz", "N", "50, 20 without samples", "power readings per second, 1 to 100",
     MAREY__OPTION_COUNT, MAREY__OPTION_FIELD(struct marey__energy_settings, hz), .least = 1,
     .most = 100},
    {"energy.after", "SECONDS", "0", "begins so long after the start of the program",
     MAREY__OPTION_COUNT, MAREY__OPTION_FIELD(struct marey__energy_settings, after_s), .most = 86400},
};

static bool is_wanted(const void *settings)
{
    return ((const struct marey__energy_settings *)settings)->is_wanted;
}

static void started(const struct marey__settings *s)
{
    if (is_wanted(marey__settings_of(s, &marey__energy_instrument)))
        start(s);
}

static void before_fork(void)
{
    pthread_mutex_lock(&energy.lock);
    energy.is_paused = energy.session != NULL && session_pause(energy.session);
}

static void after_fork(bool in_child)
{
    if (energy.session != NULL && in_child) {
        /* The lock belongs to the parent, but would last as long as the child has the file open. */
        marey__held_close(&energy.session->lock.file);
        energy.parents = energy.session;
        energy.session = NULL;
    } else if (energy.is_paused) {
        pthread_mutex_unlock(&energy.session->calls);
    }
    pthread_mutex_unlock(&energy.lock);
}

const struct marey__instrument marey__energy_instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct marey__energy_settings),
    .measures = "energy",
    .ask_by = "marey run --energy",
    .is_wanted = is_wanted,
    .started = started,
    .stopping = stop,
    .reset = stop,
    .before_fork = before_fork,
    .after_fork = after_fork};

__attribute__((constructor(MAREY__INSTRUMENT_LOAD + 3))) static void load(void)
{
    marey__instrument_register(&marey__energy_instrument);
    marey__finalize_add_cleaner(marey__energy_lock_clean);
}

/* ---- measuring for another program ---- */

marey_status marey_energy_start(const char *path, const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    MAREY_TRY(marey__settings_parse(&s, text));
    if (path == NULL || realpath(path, s.path) == NULL) /* absolute: the thread opens it later */
        return marey__fail_errno("find the recording %s", path != NULL ? path : "without a path");
    marey_reset(); /* also clears a recording that the environment requested for this process */
    s.role = "energy";
    s.rank = s.world_size = -1;
    start(&s);
    return MAREY_OK;
}

void marey_energy_stop(void)
{
    if (marey_stop() != MAREY_OK)
        marey__say("%s", marey_last_error());
}

int marey_energy_asked(const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    return marey__settings_parse(&s, text) == MAREY_OK &&
           is_wanted(marey__settings_of(&s, &marey__energy_instrument));
}
