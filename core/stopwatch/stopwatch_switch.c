/* On and off, options, forgetting, forks. */
#include <string.h>

#include "cuda/cuda_internal.h"
#include "stopwatch/stopwatch_internal.h"
#include "switchboard/switchboard_internal.h"

static kymo_status check_options(const struct kymo_stopwatch_options *o)
{
    if ((unsigned)o->gpu > KYMO_GPU_EVENTS)
        return kymo__fail(KYMO_EINVAL, "gpu %d is none of those kymo/stopwatch.h names", (int)o->gpu);
    return KYMO_OK;
}

/* A machine without CUDA is no mistake of the program's: it is told, and time is measured. */
static void leave_out_gpu(struct kymo_stopwatch_options *o)
{
    if (o->gpu != KYMO_GPU_EVENTS || kymo__gpu_check() == KYMO_OK)
        return;
    kymo__say("stopwatch: GPU times are not measured: %s", kymo_last_error());
    o->gpu = KYMO_GPU_NONE;
}

static uint32_t mode_of_options(const struct kymo_stopwatch_options *o)
{
    return o->gpu == KYMO_GPU_SYNC     ? KYMO__WATCH_SYNC
           : o->gpu == KYMO_GPU_EVENTS ? KYMO__WATCH_EVENTS
                                       : 0;
}

/* The recording's clock while one is open, else the better one. It stays while the stopwatch is on. The lock is held. */
static void choose_clock(void)
{
    struct kymo__watch *const watch = &kymo__watch;
    const bool is_tsc = kymo_enabled() ? __atomic_load_n(&kymo__clock_is_tsc, __ATOMIC_RELAXED)
                                       : kymo__clock_is_trusted();
    __atomic_store_n(&watch->is_tsc, is_tsc, __ATOMIC_RELAXED);
    kymo__clock_moment(is_tsc, &watch->begun);
    watch->tick_baseline_ns = 0;
}

/* Everything but the switch. The lock is held. */
static void begin_anew(const struct kymo_stopwatch_options *o)
{
    struct kymo__watch *const watch = &kymo__watch;
    choose_clock();
    watch->options = *o;
    watch->mode = mode_of_options(o) | (watch->is_tsc ? 0 : KYMO__WATCH_CLOCK);
    kymo__watch_forget();
    for (size_t i = 0; i < watch->slots.n; i++)
        watch->slots.all[i]->usage = watch->slots.all[i]->usage_ever = 0;
}

/* Whether a start or stop waits for the GPU, as others see it. */
static void set_sync_bit(const struct kymo_stopwatch_options *o)
{
    if (o->gpu == KYMO_GPU_SYNC || o->sync_one_time)
        __atomic_fetch_or(&kymo_switch[0], KYMO_ON_STOPWATCH_SYNC, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&kymo_switch[0], ~(uint32_t)KYMO_ON_STOPWATCH_SYNC, __ATOMIC_RELEASE);
}

static void switch_on(void)
{
    kymo__iteration_subscribe(&kymo__watch_subscriber);
    kymo__iteration_more_warmup(kymo__watch.options.warmup);
    const struct kymo__iteration_place place = kymo__iteration_place();
    kymo__watch.warmup_first = place.n_finished;
    kymo__watch_set_warmup(place.n_finished < place.warmup_end);
    set_sync_bit(&kymo__watch.options);
    __atomic_fetch_or(&kymo_switch[0], KYMO_ON_STOPWATCH, __ATOMIC_RELEASE);
}

kymo_status kymo_stopwatch_enable_sized(const struct kymo_stopwatch_options *options, size_t size)
{
    struct kymo_stopwatch_options o = {0};
    if (options != NULL)
        memcpy(&o, options, KYMO__MIN(size, sizeof o));
    KYMO_TRY(check_options(&o));
    if (kymo__earlier_copy() != NULL)
        return kymo__fail(KYMO_EDUPLICATE,
                          "this copy of libkymo (%s) stays off, because %s was loaded before it",
                          kymo_library_path(), kymo__earlier_copy());
    if (kymo_stopwatch_is_enabled())
        return kymo__fail(KYMO_ESTATE, "the stopwatch is already enabled; disable it before "
                                       "enabling it with other options");
    leave_out_gpu(&o);
    kymo__watch_lock();
    begin_anew(&o);
    kymo__watch_unlock();
    kymo__gpu_reset();
    switch_on();
    return KYMO_OK;
}

void kymo_stopwatch_disable(void)
{
    __atomic_fetch_and(&kymo_switch[0], ~(uint32_t)(KYMO_ON_STOPWATCH | KYMO_ON_STOPWATCH_SYNC),
                       __ATOMIC_RELEASE);
    kymo__iteration_unsubscribe(&kymo__watch_subscriber);
}

void kymo_stopwatch_reset(void)
{
    kymo__watch_lock();
    kymo__watch_forget();
    kymo__watch_unlock();
    kymo__gpu_reset();
}

/* ---- by options, and what the switchboard calls ---- */

/* Options that come while it is on change what they name, and nothing is forgotten. */
static void change_options(const struct kymo__stopwatch_settings *s)
{
    struct kymo__watch *const watch = &kymo__watch;
    struct kymo_stopwatch_options wanted = {.gpu = (enum kymo_stopwatch_gpu)s->gpu};
    leave_out_gpu(&wanted);
    kymo__watch_lock();
    if (s->has_print_every)
        watch->options.print_every = s->print_every;
    if (s->has_gpu) {
        const uint32_t before = mode_of_options(&watch->options);
        const uint32_t now = mode_of_options(&wanted);
        __atomic_store_n(&watch->options.gpu, wanted.gpu, __ATOMIC_RELAXED);
        watch->mode = (watch->mode & ~before) | now;
        kymo__watch_mode_all(before, now);
        set_sync_bit(&watch->options);
    }
    kymo__watch_unlock();
    if (s->has_warmup)
        kymo__iteration_more_warmup(s->warmup);
}

static void configure(const struct kymo__settings *settings)
{
    const struct kymo__stopwatch_settings *const s = &settings->stopwatch;
    if (!s->is_wanted)
        return;
    if (kymo_stopwatch_is_enabled()) {
        change_options(s);
        return;
    }
    const struct kymo_stopwatch_options o = {
        .warmup = s->warmup, .print_every = s->print_every, .gpu = (enum kymo_stopwatch_gpu)s->gpu};
    if (kymo_stopwatch_enable(&o) != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}

static void reset(void)
{
    kymo_stopwatch_disable();
    kymo_stopwatch_reset();
}

/* The count of iterations begins anew in the child, and so do the results. */
static void after_fork(bool in_child)
{
    if (in_child) {
        kymo__watch_cells_after_fork();
        kymo__watch.warmup_first = 0;
    }
    kymo__watch_unlock();
    if (in_child && kymo_stopwatch_is_enabled())
        kymo__watch_set_warmup(false);
}

__attribute__((constructor(KYMO__INSTRUMENT_LOAD + 1))) static void load(void)
{
    static const struct kymo__instrument stopwatch = {.configure = configure,
                                                      .reset = reset,
                                                      .before_fork = kymo__watch_lock,
                                                      .after_fork = after_fork};
    kymo__instrument_register(&stopwatch);
}
