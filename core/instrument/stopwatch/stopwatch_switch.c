/* Switching on and off, options, reset, forks. */
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"
#include "switchboard/internal.h"

/* A machine without CUDA is not an error: print a message and measure only time. */
static void leave_out_gpu(struct marey_stopwatch_options *o)
{
    if (o->gpu != MAREY_GPU_EVENTS || marey__gpu_check() == MAREY_OK)
        return;
    marey__say("stopwatch: GPU times are not measured: %s", marey_last_error());
    o->gpu = MAREY_GPU_NONE;
}

static uint32_t mode_of_options(const struct marey_stopwatch_options *o)
{
    return o->gpu == MAREY_GPU_SYNC     ? MAREY__STOPWATCH_SYNC
           : o->gpu == MAREY_GPU_EVENTS ? MAREY__STOPWATCH_EVENTS
                                        : 0;
}

/*
 * The recording's clock if one is open, else the better one. Constant while the stopwatch is on. Caller holds the lock.
 */
static void choose_clock(void)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const bool is_tsc = marey_enabled() ? __atomic_load_n(&marey__clock_is_tsc, __ATOMIC_RELAXED)
                                        : marey__clock_is_trusted();
    __atomic_store_n(&watch->is_tsc, is_tsc, __ATOMIC_RELAXED);
    marey__clock_moment(is_tsc, &watch->begun);
    watch->tick_baseline_ns = 0;
}

/* Everything except switching on. Caller holds the lock. */
static void begin_anew(const struct marey_stopwatch_options *o)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    choose_clock();
    watch->options = *o;
    watch->mode = mode_of_options(o) | (watch->is_tsc ? 0 : MAREY__STOPWATCH_CLOCK);
    marey__stopwatch_forget();
    for (size_t i = 0; i < watch->slots.n; i++)
        watch->slots.all[i]->usage = watch->slots.all[i]->usage_ever = 0;
}

/* Publishes whether a start or stop waits for the GPU. */
static void set_sync_bit(const struct marey_stopwatch_options *o)
{
    if (o->gpu == MAREY_GPU_SYNC || o->sync_one_time)
        __atomic_fetch_or(&marey_switch[0], MAREY_ON_STOPWATCH_SYNC, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_STOPWATCH_SYNC, __ATOMIC_RELEASE);
}

static void switch_on(void)
{
    marey__iteration_subscribe(&marey__stopwatch_subscriber);
    marey__iteration_more_warmup(marey__stopwatch_state.options.warmup);
    const struct marey__iteration_place place = marey__iteration_place();
    marey__stopwatch_state.warmup_first = place.n_finished;
    marey__stopwatch_set_warmup(place.n_finished < place.warmup_end);
    set_sync_bit(&marey__stopwatch_state.options);
    __atomic_fetch_or(&marey_switch[0], MAREY_ON_STOPWATCH, __ATOMIC_RELEASE);
}

marey_status marey_stopwatch_enable_sized(const struct marey_stopwatch_options *options, size_t size)
{
    struct marey_stopwatch_options o = {0};
    if (options != NULL)
        memcpy(&o, options, MAREY__MIN(size, sizeof o));
    if ((unsigned)o.gpu > MAREY_GPU_EVENTS)
        return marey__fail(MAREY_EINVAL, "gpu %d is none of those marey/stopwatch.h names",
                           (int)o.gpu);
    MAREY_TRY(marey__copies_check());
    if (marey_stopwatch_is_enabled())
        return marey__fail(MAREY_ESTATE, "the stopwatch is already enabled; disable it before "
                                         "enabling it with other options");
    leave_out_gpu(&o);
    marey__stopwatch_lock();
    begin_anew(&o);
    marey__stopwatch_unlock();
    marey__gpu_reset();
    switch_on();
    return MAREY_OK;
}

void marey_stopwatch_disable(void)
{
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)(MAREY_ON_STOPWATCH | MAREY_ON_STOPWATCH_SYNC),
                       __ATOMIC_RELEASE);
    marey__iteration_unsubscribe(&marey__stopwatch_subscriber);
}

void marey_stopwatch_reset(void)
{
    marey__stopwatch_lock();
    marey__stopwatch_forget();
    marey__stopwatch_unlock();
    marey__gpu_reset();
}

/* ---- options, and instrument callbacks ---- */

enum { GIVEN_WARMUP = 1, GIVEN_PRINT_EVERY = 2, GIVEN_GPU = 4 };
struct stopwatch_settings {
    uint32_t given; /* not 0: the stopwatch is switched on */
    int gpu;        /* enum marey_stopwatch_gpu */
    uint64_t warmup, print_every;
};

static bool set_cuda_sync(void *settings, const char *text)
{
    struct stopwatch_settings *const s = settings;
    bool value;
    if (!marey__option_bool(text, &value))
        return false;
    s->gpu = value ? MAREY_GPU_SYNC : MAREY_GPU_NONE;
    return true;
}

#define FIELD(field) MAREY__OPTION_FIELD(struct stopwatch_settings, field)
static const struct marey__option options[] = {
    {"stopwatch.warmup", "N", "0", "Stopwatch leaves out N iterations", MAREY__OPTION_COUNT,
     FIELD(warmup), .flag = GIVEN_WARMUP},
    {"stopwatch.print_every", "N", "0", "Stopwatch prints its report every N measured iterations",
     MAREY__OPTION_COUNT, FIELD(print_every), .flag = GIVEN_PRINT_EVERY},
    {"stopwatch.cuda_sync", "0|1", "0", "Stopwatch waits for the GPU at both ends",
     MAREY__OPTION_PARSED, .parse = set_cuda_sync, .flag = GIVEN_GPU},
    {"stopwatch.gpu", "none|sync|events", "none", "how Stopwatch measures GPU work",
     MAREY__OPTION_CHOICE, FIELD(gpu), .flag = GIVEN_GPU},
};

/* Options given while it is on change only what they name; results are kept. */
static void change_options(const struct stopwatch_settings *s)
{
    struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    struct marey_stopwatch_options wanted = {.gpu = (enum marey_stopwatch_gpu)s->gpu};
    leave_out_gpu(&wanted);
    marey__stopwatch_lock();
    if (s->given & GIVEN_PRINT_EVERY)
        watch->options.print_every = s->print_every;
    if (s->given & GIVEN_GPU) {
        const uint32_t before = mode_of_options(&watch->options);
        const uint32_t now = mode_of_options(&wanted);
        __atomic_store_n(&watch->options.gpu, wanted.gpu, __ATOMIC_RELAXED);
        watch->mode = (watch->mode & ~before) | now;
        marey__stopwatch_mode_all(before, now);
        set_sync_bit(&watch->options);
    }
    marey__stopwatch_unlock();
    if (s->given & GIVEN_WARMUP)
        marey__iteration_more_warmup(s->warmup);
}

static const struct marey__instrument instrument;

static void configure(const struct marey__settings *settings)
{
    const struct stopwatch_settings *const s = marey__settings_of(settings, &instrument);
    if (s->given == 0)
        return;
    if (marey_stopwatch_is_enabled()) {
        change_options(s);
        return;
    }
    const struct marey_stopwatch_options o = {
        .warmup = s->warmup, .print_every = s->print_every, .gpu = (enum marey_stopwatch_gpu)s->gpu};
    if (marey_stopwatch_enable(&o) != MAREY_OK)
        marey__say("%s", marey_last_error());
}

static void reset(void)
{
    marey_stopwatch_disable();
    marey_stopwatch_reset();
}

/* The child restarts the count of iterations, and its results. */
static void after_fork(bool in_child)
{
    if (in_child) {
        marey__stopwatch_cells_after_fork();
        marey__stopwatch_state.warmup_first = 0;
    }
    marey__stopwatch_unlock();
    if (in_child && marey_stopwatch_is_enabled())
        marey__stopwatch_set_warmup(false);
}

static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct stopwatch_settings), .configure = configure,
    .reset = reset, .before_fork = marey__stopwatch_lock, .after_fork = after_fork};

MAREY__INSTRUMENT_AT_LOAD(1, instrument)
