/*
 * The process-wide count of iterations, for any driver. Not on a hot path: the lock is released before any call or
 * write.
 */
#include <pthread.h>
#include <string.h>

#include "switchboard/internal.h"

enum { MAX_SUBSCRIBERS = 8 };

typedef const struct marey__iteration_subscriber *subscriber_list[MAX_SUBSCRIBERS];

static struct {
    pthread_mutex_t lock; /* guards everything below */
    uint64_t n_finished, n_warmup, n_epochs;
    uint64_t warmup_end; /* number of the first measured iteration */
    uint64_t begin_ns;   /* of the running iteration, CLOCK_MONOTONIC; 0: unknown */
    bool is_begun;       /* by its driver, so that epochs and phases within it do not restart it */
    bool in_epoch;
    marey_id phase;                             /* 0: none */
    uint64_t epoch_ns;                          /* start of the open epoch */
    uint64_t phase_ns;                          /* phase times in `epoch` are complete up to here */
    struct marey_epoch_times epoch, last_epoch; /* the open one; the last ended one, if `has_last` */
    bool has_last;
    uint32_t informed_recording; /* the recording that has the epoch and the phase */
    marey_driver driver;         /* NULL before the first iteration */
    subscriber_list subscribers;
} counter = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
    return marey__clock_ns(CLOCK_MONOTONIC);
}

/* ---- into the recording ---- */

static void put(enum marey_record_type type, const uint64_t *words, size_t n)
{
    if (marey_enabled())
        marey__lane_put_record(type, words, n);
}
#define PUT(type, ...)                                                                             \
    put(MAREY_RECORD_##type, (const uint64_t[]){__VA_ARGS__},                                      \
        sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* A recording that started inside an epoch or phase first gets their begin events. */
static void put_surroundings(void)
{
    if (!marey_enabled())
        return;
    const uint32_t recording = __atomic_load_n(&marey__record.generation, __ATOMIC_RELAXED);
    pthread_mutex_lock(&counter.lock);
    const bool is_informed = counter.informed_recording == recording;
    const bool in_epoch = counter.in_epoch && !is_informed;
    const uint64_t epoch = counter.n_epochs, phase = is_informed ? 0 : counter.phase;
    counter.informed_recording = recording;
    pthread_mutex_unlock(&counter.lock);
    if (in_epoch)
        PUT(EPOCH, epoch, 1);
    if (phase != 0)
        PUT(PHASE, phase);
}

/* ---- iterations ---- */

static marey_driver named(marey_driver driver)
{
    return driver != NULL ? driver : "a driver without a name";
}

/* Whether `driver` may count. Caller holds the lock. */
static bool is_driver(marey_driver driver)
{
    return counter.driver == NULL || strcmp(counter.driver, driver) == 0;
}

void marey_iteration_begin_by(marey_driver driver)
{
    put_surroundings();
    pthread_mutex_lock(&counter.lock);
    const bool counts = is_driver(named(driver));
    const uint64_t number = counter.n_finished;
    if (counts) {
        counter.begin_ns = now_ns();
        counter.is_begun = true;
    }
    pthread_mutex_unlock(&counter.lock);
    if (counts)
        PUT(ITERATION_BEGIN, number);
}

/* Caller holds the lock. */
static void count_one(struct marey__iteration_event *it, double samples)
{
    const uint64_t now = now_ns();
    *it = (struct marey__iteration_event){
        .number = counter.n_finished,
        .is_warmup = counter.n_finished<counter.warmup_end,
                                        .next_is_warmup = counter.n_finished + 1 < counter.warmup_end,
                                        .has_begin = counter.begin_ns != 0, .samples = samples> 0 &&
                             samples < 1e300
                         ? samples
                         : 0};
    it->duration_ns = it->has_begin ? now - counter.begin_ns : 0;
    counter.n_finished++;
    counter.n_warmup += it->is_warmup;
    counter.begin_ns = now;
    counter.is_begun = false;
    counter.epoch.iterations++;
    counter.epoch.samples += it->samples;
}

int marey_iteration_finish_by(marey_driver driver, double samples)
{
    struct marey__iteration_event it = {0};
    subscriber_list subscribers;
    put_surroundings();
    pthread_mutex_lock(&counter.lock);
    const bool counts = is_driver(named(driver)), is_first = counter.driver == NULL;
    if (counts) {
        counter.driver = named(driver);
        count_one(&it, samples);
    }
    const marey_driver first = counter.driver;
    memcpy(subscribers, counter.subscribers, sizeof subscribers);
    pthread_mutex_unlock(&counter.lock);
    if (!counts) {
        marey__say("%s already counts iterations; %s is ignored. Use one of them", first,
                   named(driver));
        return 0;
    }
    uint64_t sample_bits;
    memcpy(&sample_bits, &it.samples, sizeof sample_bits);
    PUT(ITERATION, it.number, it.is_warmup, sample_bits);
    if (is_first)
        marey__steps_counted_by(first);
    for (size_t i = 0; i < MAX_SUBSCRIBERS; i++)
        if (subscribers[i] != NULL && subscribers[i]->finished != NULL)
            subscribers[i]->finished(&it);
    return 1;
}

void marey_iteration_counts(struct marey_progress_counts *out)
{
    MAREY__HOLD(&counter.lock);
    *out = (struct marey_progress_counts){.iterations = counter.n_finished,
                                          .warmup = counter.n_warmup,
                                          .epochs = counter.n_epochs,
                                          .in_epoch = counter.in_epoch,
                                          .driver = counter.driver};
}

struct marey__iteration_place marey__iteration_place(void)
{
    MAREY__HOLD(&counter.lock);
    return (struct marey__iteration_place){counter.n_finished, counter.warmup_end};
}

marey_driver marey__iteration_driver(void)
{
    MAREY__HOLD(&counter.lock);
    return counter.driver;
}

void marey__iteration_tell_step(uint64_t n)
{
    subscriber_list subscribers;
    pthread_mutex_lock(&counter.lock);
    memcpy(subscribers, counter.subscribers, sizeof subscribers);
    pthread_mutex_unlock(&counter.lock);
    for (size_t i = 0; i < MAX_SUBSCRIBERS; i++)
        if (subscribers[i] != NULL && subscribers[i]->step != NULL)
            subscribers[i]->step(n);
}

/* ---- warm-up ---- */

/* Sets the end of warm-up, and notifies subscribers if that changes the running iteration. Takes the lock. */
static void set_warmup_end(uint64_t end, bool only_later)
{
    subscriber_list subscribers;
    pthread_mutex_lock(&counter.lock);
    const bool was_warmup = counter.n_finished < counter.warmup_end;
    counter.warmup_end = only_later ? MAREY__MAX(end, counter.warmup_end) : end;
    const bool is_warmup = counter.n_finished < counter.warmup_end;
    memcpy(subscribers, counter.subscribers, sizeof subscribers);
    pthread_mutex_unlock(&counter.lock);
    for (size_t i = 0; i < MAX_SUBSCRIBERS && is_warmup != was_warmup; i++)
        if (subscribers[i] != NULL && subscribers[i]->warmup_set != NULL)
            subscribers[i]->warmup_set(is_warmup);
}

void marey_iteration_set_warmup(uint64_t n)
{
    set_warmup_end(n, false);
}

void marey__iteration_more_warmup(uint64_t n)
{
    const uint64_t n_finished = marey__iteration_place().n_finished;
    set_warmup_end(n < UINT64_MAX - n_finished ? n_finished + n : UINT64_MAX, true);
}

/* ---- epochs and phases ---- */

static void tell_epoch_edge(void)
{
    subscriber_list subscribers;
    pthread_mutex_lock(&counter.lock);
    memcpy(subscribers, counter.subscribers, sizeof subscribers);
    pthread_mutex_unlock(&counter.lock);
    for (size_t i = 0; i < MAX_SUBSCRIBERS; i++)
        if (subscribers[i] != NULL && subscribers[i]->epoch_edge != NULL)
            subscribers[i]->epoch_edge();
}

/* Begins an iteration implicitly, unless the driver has. Caller holds the lock. */
static void begin_here(uint64_t now)
{
    if (!counter.is_begun)
        counter.begin_ns = now;
}

/* The index of the phase in the epoch, whose sites may differ; one past the last if it is new. */
static uint32_t find_phase(const struct marey_epoch_times *epoch, marey_id phase)
{
    uint32_t i = 0;
    while (i < epoch->n_phases && epoch->phases[i].name != phase)
        i++;
    if (i < epoch->n_phases)
        return i;
    size_t len, known_len;
    const char *name = marey_site_name(phase, &len);
    for (i = 0; i < epoch->n_phases; i++) {
        const char *known = marey_site_name(epoch->phases[i].name, &known_len);
        if (known_len == len && memcmp(known, name, len) == 0)
            break;
    }
    return i;
}

/* Adds the time of the open phase up to now to the epoch. Caller holds the lock. */
static void go_on(uint64_t now)
{
    struct marey_epoch_times *epoch = &counter.epoch;
    const uint64_t ns = now - counter.phase_ns;
    const uint32_t i = counter.phase != 0 ? find_phase(epoch, counter.phase) : 0;
    counter.phase_ns = now;
    if (counter.phase == 0 || i == MAREY_EPOCH_PHASES) {
        epoch->none_ns += ns;
        return;
    }
    if (i == epoch->n_phases)
        epoch->phases[epoch->n_phases++].name = counter.phase;
    epoch->phases[i].ns += ns;
}

static void end_times(uint64_t now)
{
    go_on(now);
    counter.epoch.duration_ns = now - counter.epoch_ns;
    counter.last_epoch = counter.epoch;
    counter.has_last = true;
}

/* `at` NULL: the next number. */
static void begin_epoch(const uint64_t *at)
{
    put_surroundings();
    pthread_mutex_lock(&counter.lock);
    const uint64_t now = now_ns(), old = counter.n_epochs;
    const bool ends_one = counter.in_epoch;
    if (ends_one)
        end_times(now);
    counter.n_epochs = at != NULL ? *at : old + ends_one;
    counter.in_epoch = true;
    const uint64_t number = counter.n_epochs;
    counter.epoch = (struct marey_epoch_times){.number = number};
    counter.epoch_ns = counter.phase_ns = now;
    begin_here(now);
    pthread_mutex_unlock(&counter.lock);
    if (ends_one)
        PUT(EPOCH, old, false);
    PUT(EPOCH, number, true);
    tell_epoch_edge();
}

void marey_epoch_begin(void)
{
    begin_epoch(NULL);
}

void marey_epoch_begin_at(uint64_t number)
{
    begin_epoch(&number);
}

void marey_epoch_end(void)
{
    put_surroundings();
    pthread_mutex_lock(&counter.lock);
    const bool ends_one = counter.in_epoch;
    const uint64_t number = counter.n_epochs;
    if (ends_one)
        end_times(now_ns());
    counter.n_epochs += ends_one;
    counter.in_epoch = false;
    pthread_mutex_unlock(&counter.lock);
    if (ends_one) {
        PUT(EPOCH, number, false);
        tell_epoch_edge();
    }
}

int marey_epoch_last(struct marey_epoch_times *out)
{
    MAREY__HOLD(&counter.lock);
    *out = counter.last_epoch;
    return counter.has_last;
}

void marey_phase(marey_id name)
{
    put_surroundings();
    pthread_mutex_lock(&counter.lock);
    const bool changes = counter.phase != name;
    const uint64_t now = now_ns();
    if (counter.in_epoch)
        go_on(now);
    counter.phase = name;
    if (name != 0)
        begin_here(now);
    pthread_mutex_unlock(&counter.lock);
    if (changes)
        PUT(PHASE, name);
}

/* ---- subscribers ---- */

bool marey__iteration_subscribe(const struct marey__iteration_subscriber *subscriber)
{
    size_t place = MAX_SUBSCRIBERS;
    pthread_mutex_lock(&counter.lock);
    for (size_t i = MAX_SUBSCRIBERS; i-- > 0;)
        if (counter.subscribers[i] == NULL)
            place = i;
    for (size_t i = 0; i < MAX_SUBSCRIBERS; i++)
        if (counter.subscribers[i] == subscriber)
            place = i;
    if (place < MAX_SUBSCRIBERS)
        counter.subscribers[place] = subscriber;
    if (counter.begin_ns == 0)
        counter.begin_ns = now_ns();
    pthread_mutex_unlock(&counter.lock);
    return place < MAX_SUBSCRIBERS;
}

void marey__iteration_unsubscribe(const struct marey__iteration_subscriber *subscriber)
{
    MAREY__HOLD(&counter.lock);
    for (size_t i = 0; i < MAX_SUBSCRIBERS; i++)
        if (counter.subscribers[i] == subscriber)
            counter.subscribers[i] = NULL;
}

/* ---- reset, forks, options ---- */

/* Resets everything but the subscribers. Caller holds the lock. */
static void forget(void)
{
    counter.n_finished = counter.n_warmup = counter.n_epochs = counter.warmup_end = 0;
    counter.begin_ns = 0;
    counter.is_begun = counter.in_epoch = counter.has_last = false;
    counter.last_epoch = (struct marey_epoch_times){0};
    counter.phase = 0;
    counter.driver = NULL;
}

void marey_iteration_reset(void)
{
    set_warmup_end(0, false); /* notify subscribers that warm-up is over */
    MAREY__HOLD(&counter.lock);
    forget();
}

static void before_fork(void)
{
    pthread_mutex_lock(&counter.lock);
}

static void after_fork(bool in_child)
{
    if (in_child)
        forget();
    pthread_mutex_unlock(&counter.lock);
}

/* ---- instrument callbacks ---- */

struct iteration_settings {
    uint32_t given; /* not 0: `warmup` was given */
    uint64_t warmup;
};
static const struct marey__option options[] = {
    {"warmup", "N", "0", "the first N iterations are marked as warm-up", MAREY__OPTION_COUNT,
     MAREY__OPTION_FIELD(struct iteration_settings, warmup), .flag = 1},
};
static void configure(const struct marey__settings *s);
static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct iteration_settings), .configure = configure,
    .reset = marey_iteration_reset, .before_fork = before_fork, .after_fork = after_fork};

static void configure(const struct marey__settings *s)
{
    const struct iteration_settings *const own = marey__settings_of(s, &instrument);
    if (own->given)
        marey_iteration_set_warmup(own->warmup);
}

MAREY__INSTRUMENT_AT_LOAD(0, instrument)
