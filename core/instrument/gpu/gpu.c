/* Switching GPU tracing on and off: immediately or in the background; options and forks. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/gpu/internal.h"
#include "switchboard/internal.h"

#define INJECTION "CUDA_INJECTION64_PATH"
#define SHIM "libmarey-cuda.so"

struct marey__gpu marey__gpu = {
    .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .keep_from = UINT64_MAX};
static struct marey__gpu *const gpu = &marey__gpu;

/*
 * ---- iterations; callers hold the lock unless noted ----
 *
 * Wait, warm up, trace, repeat. A thread takes CUPTI during the warm-up and returns it after the active part, so that
 * iterations do not wait. If CUPTI is not ours when the active part begins, that iteration waits.
 */

static marey_status acquire(bool is_kept);

static uint64_t n_done; /* iterations that have ended under the schedule; like the next two, under gpu.lock */
static bool is_following;
static uint32_t n_captures; /* CUDA graph captures in progress: CUPTI is neither taken nor returned */

enum part { WAIT, WARMUP, ACTIVE, OVER };
static enum part part_now; /* under gpu.lock */

/*
 * Windows: one per `gap` steps, the first one early, since a program may be short. A hash of their number selects the
 * place of the others: equal on all ranks, and not in phase with anything periodic in the program.
 */
enum { WINDOW_FIRST = 5, WINDOW_WARMUP = 2, WINDOW_STEPS = 5, WINDOW_GAP_LEAST = 16 };
static const uint64_t window_ns = 2000000000;
static uint64_t window_begin_ns; /* of the active part; 0: none */

static uint64_t window_begin(uint64_t number, uint64_t gap)
{
    const uint64_t room = gap - WINDOW_WARMUP - WINDOW_STEPS,
                   drawn = marey__hash_mix(number ^ UINT64_C(0x9e3779b97f4a7c15),
                                           UINT64_C(0xd6e8feb86659fd93));
    return WINDOW_FIRST + number * gap + (number == 0 ? 0 : WINDOW_WARMUP + drawn % room);
}

static enum part window_part(uint64_t step, uint64_t gap)
{
    const uint64_t number = step < WINDOW_FIRST ? 0 : (step - WINDOW_FIRST) / gap,
                   begin = window_begin(number, gap);
    if (step >= begin)
        return step < begin + WINDOW_STEPS ? ACTIVE : WAIT;
    return step + WINDOW_WARMUP >= begin ? WARMUP : WAIT;
}

static enum part part_of(uint64_t iteration)
{
    const struct marey_gpu_options *s = &gpu->schedule;
    if (s->window_gap != 0)
        return window_part(iteration, s->window_gap);
    const uint64_t each = (uint64_t)s->wait + s->warmup + s->active;
    const uint64_t at = iteration % each;
    if (s->repeat != 0 && iteration / each >= s->repeat)
        return OVER;
    return at < s->wait ? WAIT : at < (uint64_t)s->wait + s->warmup ? WARMUP : ACTIVE;
}

/* False: the caller has to act. */
static bool enter(enum part before, enum part now)
{
    uint64_t bound;
    bool is_served = true;
    if (before == now)
        return true;
    if (before == ACTIVE || (before == WARMUP && now == WAIT)) /* numbers jump: another driver counts */
        is_served = marey__gpu_order_stop(&bound);
    if (now == WARMUP)
        is_served = marey__gpu_order_start(false);
    return is_served && now != ACTIVE;
}

/* The part that begins after `n` iterations. A window ends early if it has lasted long enough. */
static enum part part_after(uint64_t n, enum part before)
{
    const enum part now = part_of(n);
    if (gpu->schedule.window_gap == 0 || now != ACTIVE)
        return now;
    if (before == ACTIVE)
        return marey__clock_ns(CLOCK_MONOTONIC) - window_begin_ns < window_ns ? ACTIVE : WAIT;
    window_begin_ns = before == WARMUP ? marey__clock_ns(CLOCK_MONOTONIC) : window_begin_ns;
    return before == WARMUP ? ACTIVE : WAIT;
}

/*
 * Iteration or training step `number` has ended. Takes the lock. An active part directly after another one, without a
 * warm-up, does not restart tracing. Steps that the program does not count matter only for windows.
 */
static void one_finished(uint64_t number, bool is_counted)
{
    bool is_done = true;
    enum part now = OVER;
    pthread_mutex_lock(&gpu->lock);
    const bool has_windows = gpu->schedule.window_gap != 0;
    if (is_following && n_captures == 0 && (is_counted || has_windows)) {
        const enum part before = part_now;
        n_done = has_windows ? number + 1 : n_done + 1;
        now = part_now = part_after(n_done, before);
        is_done = enter(before, now);
    }
    pthread_mutex_unlock(&gpu->lock);
    if (is_done)
        return;
    if (now != ACTIVE)
        marey_gpu_settle();
    else if (acquire(true) != MAREY_OK)
        marey__gpu_report_failure();
}

static void iteration_finished(const struct marey__iteration_event *iteration)
{
    one_finished(iteration->number, true);
}

/* The n-th step derived from hints. */
static void step_ended(uint64_t n)
{
    one_finished(n - 1, false);
}

static const struct marey__iteration_subscriber subscriber = {.finished = iteration_finished,
                                                              .step = step_ended};

/* Whether the current iteration should be traced, and its records kept. */
static bool schedule_is_due(bool *is_kept)
{
    *is_kept = part_now == ACTIVE;
    return part_now == ACTIVE || part_now == WARMUP;
}

/* Applies gpu->schedule from the current iteration on; true if tracing begins with it. Windows begin later. */
static bool schedule_begin(bool *is_kept)
{
    n_done = 0;
    window_begin_ns = 0;
    is_following = marey__iteration_subscribe(&subscriber);
    part_now = part_of(0);
    return schedule_is_due(is_kept);
}

/* ---- on and off; callers hold the lock ---- */

/* The path of the shim beside this library. False if it is missing, or the path is too long. */
static bool shim_path(char *out, size_t size)
{
    const char *own = marey_library_path(), *slash = strrchr(own, '/');
    return slash != NULL && snprintf(out, size, "%.*s/%s", (int)(slash - own), own, SHIM) < (int)size;
}

/* The driver is not loaded yet. It will load the library named in the environment, which is ours. */
static marey_status arm(void)
{
    char path[PATH_MAX];
    const char *before = getenv(INJECTION);
    const char *name = before != NULL ? strrchr(before, '/') : NULL;
    const bool is_ours = name != NULL && strcmp(name + 1, SHIM) == 0;
    if (before != NULL && before[0] != '\0' && !is_ours)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "GPU work is not recorded: another tool waits for CUDA (" INJECTION
                           "=%s); run "
                           "without it",
                           before);
    if (!is_ours && (!shim_path(path, sizeof path) || setenv(INJECTION, path, 1) != 0))
        return marey__fail(MAREY_EUNAVAILABLE,
                           "GPU work is not recorded: " SHIM
                           " was not found beside %s; install marey "
                           "anew, with all of its files",
                           marey_library_path());
    __atomic_store_n(&gpu->is_armed, true, __ATOMIC_RELAXED);
    return MAREY_OK;
}

/* Whether CUPTI is needed now, and its records are kept. */
static bool is_due(bool *is_kept)
{
    *is_kept = true;
    return !marey__gpu_has_schedule() || schedule_begin(is_kept);
}

static marey_status check(const struct marey_gpu_options *options)
{
    if (gpu->is_on)
        return marey__fail(MAREY_ESTATE, "GPU tracing is on already");
    if (gpu->is_child)
        return marey__fail(MAREY_ESTATE,
                           "GPU work is not recorded: CUDA cannot be used in a process forked from "
                           "one that uses it; start processes by spawn");
    if (!marey_enabled())
        return marey__fail(MAREY_ESTATE, "GPU work is not recorded: no recording is open");
    if (options->active == 0 && (options->wait | options->warmup | options->repeat) != 0)
        return marey__fail(MAREY_EINVAL, "a schedule of GPU tracing needs active iterations");
    if (options->window_gap != 0 && options->window_gap < WINDOW_GAP_LEAST)
        return marey__fail(MAREY_EINVAL, "windows of GPU tracing are at least %d steps apart",
                           WINDOW_GAP_LEAST);
    return MAREY_OK;
}

/* `*begins`: CUPTI must be taken; otherwise it is not due or CUDA is not loaded. */
static marey_status switch_on(const struct marey_gpu_options *options, bool *begins, bool *is_kept)
{
    MAREY_TRY(check(options));
    gpu->schedule = *options;
    const bool has_cuda = marey__cuda_is_loaded();
    if (!has_cuda)
        MAREY_TRY(arm());
    gpu->is_on = true;
    *begins = has_cuda && is_due(is_kept);
    return MAREY_OK;
}

static void set_off(void)
{
    if (is_following)
        marey__iteration_unsubscribe(&subscriber);
    is_following = false;
    gpu->is_on = false;
    __atomic_store_n(&gpu->is_armed, false, __ATOMIC_RELAXED);
}

/* ---- immediate start and stop ---- */

static bool is_wanted(void)
{
    MAREY__HOLD(&gpu->lock);
    return gpu->is_on;
}

/*
 * No lock is held. After pending orders, takes CUPTI if tracing is on and CUPTI is not ours, and keeps records from now
 * on if `is_kept`. Another thread may have stopped tracing meanwhile, or been faster.
 */
static marey_status acquire(bool is_kept)
{
    marey_status st = MAREY_OK;
    marey_gpu_settle();
    pthread_mutex_lock(&gpu->turn);
    if (!gpu->is_tracing && is_wanted())
        st = marey__gpu_session_start();
    pthread_mutex_lock(&gpu->lock);
    if (is_kept)
        marey__gpu_keep();
    pthread_mutex_unlock(&gpu->lock);
    pthread_mutex_unlock(&gpu->turn);
    return st;
}

static marey_status begin_or_off(bool is_kept)
{
    const marey_status st = acquire(is_kept);
    if (st != MAREY_OK) {
        MAREY__HOLD(&gpu->lock);
        set_off();
    }
    return st;
}

void marey__gpu_note_losses(void)
{
    struct marey_gpu_counts counts;
    marey_gpu_counts_get(&counts);
    if (counts.dropped == 0 && counts.incomplete == 0)
        return;
    char sentence[256];
    snprintf(
        sentence, sizeof sentence,
        "%llu records of GPU work were dropped by CUPTI, and %llu pieces of work had not ended "
        "when tracing stopped: they are missing",
        (unsigned long long)counts.dropped, (unsigned long long)counts.incomplete);
    marey__record_note(sentence);
}

/* Ends tracing after pending orders; a start ordered later remains. */
static void end(bool is_exit)
{
    marey_gpu_settle();
    MAREY__HOLD(&gpu->turn);
    if (!is_wanted())
        marey__gpu_session_stop((struct marey__gpu_ending){.is_exit = is_exit});
}

static void switch_off(bool is_exit)
{
    pthread_mutex_lock(&gpu->lock);
    const bool was_on = gpu->is_on;
    marey__gpu_order_drop();
    set_off();
    pthread_mutex_unlock(&gpu->lock);
    end(is_exit);
    if (was_on)
        marey__gpu_note_losses();
}

/* CUDA is about to shut down: stop as usual, but without waiting for more than a stop does. */
static void at_exit(void)
{
    switch_off(true);
}

static void register_exit(void)
{
    atexit(at_exit);
}

void marey__gpu_expect_exit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_exit);
}

/* `later`: in the background. */
static marey_status start(const struct marey_gpu_options *options, size_t size, bool later)
{
    struct marey_gpu_options o = {0};
    if (options != NULL)
        memcpy(&o, options, MAREY__MIN(size, sizeof o));
    bool begins = false, is_kept;
    pthread_mutex_lock(&gpu->lock);
    const marey_status st = switch_on(&o, &begins, &is_kept);
    const bool is_served = !later || !begins || marey__gpu_order_start(is_kept);
    pthread_mutex_unlock(&gpu->lock);
    if (begins && !later)
        return begin_or_off(is_kept);
    if (begins)
        marey__gpu_expect_exit();
    if (!is_served)
        marey_gpu_settle();
    return st;
}

marey_status marey_gpu_start_sized(const struct marey_gpu_options *options, size_t size)
{
    return start(options, size, false);
}

marey_status marey_gpu_start_later_sized(const struct marey_gpu_options *options, size_t size)
{
    return start(options, size, true);
}

void marey_gpu_note_graph(void)
{
    __atomic_store_n(&gpu->has_graphs, true, __ATOMIC_RELAXED);
}

void marey_gpu_capture(int begins)
{
    marey_gpu_note_graph();
    pthread_mutex_lock(&gpu->lock);
    n_captures = begins ? n_captures + 1 : n_captures - (n_captures != 0);
    pthread_mutex_unlock(&gpu->lock);
    if (begins)
        marey_gpu_settle();
}

void marey_gpu_stop(void)
{
    switch_off(false);
}

uint64_t marey_gpu_stop_later(void)
{
    uint64_t bound = 0;
    pthread_mutex_lock(&gpu->lock);
    const bool was_on = gpu->is_on;
    set_off();
    const bool is_served = !was_on || marey__gpu_order_stop(&bound);
    pthread_mutex_unlock(&gpu->lock);
    if (!is_served)
        marey_gpu_settle();
    return bound;
}

/* ---- pauses: CUPTI serves one tool per process, and marey yields to others ---- */

void marey__gpu_pause_note(void)
{
    static char reported[sizeof gpu->pause_reason];
    if (gpu->pause_reason[0] == '\0' || strcmp(reported, gpu->pause_reason) == 0)
        return;
    memcpy(reported, gpu->pause_reason, sizeof reported);
    marey__say("%s", reported);
    marey__record_note(reported);
}

void marey_gpu_pause(const char *why)
{
    marey_gpu_settle();
    MAREY__HOLD(&gpu->turn);
    if (gpu->n_pauses++ == 0) {
        snprintf(gpu->pause_reason, sizeof gpu->pause_reason, "%s", why != NULL ? why : "");
        if (gpu->is_tracing)
            marey__gpu_pause_note();
        marey__gpu_session_stop((struct marey__gpu_ending){0});
    }
}

/* Caller holds the turn, with no pause left. */
static marey_status go_on(void)
{
    bool is_kept = true;
    pthread_mutex_lock(&gpu->lock);
    const bool is_due = gpu->is_on && !gpu->is_armed && !gpu->is_tracing &&
                        (!marey__gpu_has_schedule() || schedule_is_due(&is_kept));
    pthread_mutex_unlock(&gpu->lock);
    if (is_due)
        MAREY_TRY(marey__gpu_session_start());
    MAREY__HOLD(&gpu->lock);
    if (is_due && is_kept)
        marey__gpu_keep();
    return MAREY_OK;
}

marey_status marey_gpu_resume(void)
{
    marey_status st = MAREY_OK;
    marey_gpu_settle();
    MAREY__HOLD(&gpu->turn);
    if (gpu->n_pauses > 0 && --gpu->n_pauses == 0) {
        st = go_on();
        gpu->n_pauses = st != MAREY_OK;
    }
    return st;
}

/* ---- queries ---- */

int marey_gpu_is_on(void)
{
    return is_wanted();
}

void marey_gpu_counts_get(struct marey_gpu_counts *out)
{
    uint64_t *from = (uint64_t *)&gpu->counts, *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Each window may fail for the same reason: report it once. */
void marey__gpu_report_failure(void)
{
    static char reported[512]; /* under the lock */
    char sentence[sizeof reported];
    snprintf(sentence, sizeof sentence, "%s", marey_last_error());
    pthread_mutex_lock(&gpu->lock);
    const bool is_known = gpu->schedule.window_gap != 0 && strcmp(reported, sentence) == 0;
    memcpy(reported, sentence, sizeof reported);
    pthread_mutex_unlock(&gpu->lock);
    if (is_known)
        return;
    marey__say("%s", sentence);
    marey__record_note(sentence);
}

void marey__gpu_give_up(void)
{
    marey__gpu_report_failure();
    __atomic_store_n(&gpu->tells, MAREY__GPU_NO_CALLS, __ATOMIC_SEQ_CST);
    MAREY__HOLD(&gpu->lock);
    set_off();
}

/* The driver holds its locks here: do not wait for a thread that waits for the driver, such as the background thread. */
void marey_gpu_injected(void)
{
    if (!__atomic_load_n(&gpu->is_armed, __ATOMIC_RELAXED))
        return;
    bool is_kept;
    pthread_mutex_lock(&gpu->lock);
    const bool begins = gpu->is_on && gpu->is_armed && is_due(&is_kept);
    __atomic_store_n(&gpu->is_armed, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&gpu->lock);
    __atomic_store_n(&gpu->is_injected, true, __ATOMIC_RELAXED);
    if (begins && begin_or_off(is_kept) != MAREY_OK)
        marey__gpu_report_failure();
    __atomic_store_n(&gpu->is_injected, false, __ATOMIC_RELAXED);
}

/* ---- instrument callbacks ---- */

struct gpu_settings {
    bool is_wanted, syncs;
    struct marey_gpu_options schedule; /* in iterations; `active` 0: no schedule */
};

/* "WAIT:WARMUP:ACTIVE" or "WAIT:WARMUP:ACTIVE:REPEAT", in iterations. Does not switch tracing on. */
static bool set_schedule(void *settings, const char *text)
{
    struct gpu_settings *const s = settings;
    uint32_t numbers[4] = {0};
    size_t n = 0;
    for (const char *at = text; n == 0 || at[-1] == ':';) {
        const size_t len = strspn(at, "0123456789");
        uint64_t value;
        if (n == MAREY__COUNT_OF(numbers) || !marey__parse_number(at, len, &value) ||
            value > INT32_MAX || (at[len] != ':' && at[len] != '\0'))
            return false;
        numbers[n++] = (uint32_t)value;
        at += len + 1;
    }
    if (n < 3 || numbers[2] == 0)
        return false;
    s->schedule = (struct marey_gpu_options){numbers[0], numbers[1], numbers[2], numbers[3]};
    return true;
}

/* "1%": tracing slows a step by at most a quarter, as measured, so 5 of 125 steps cost 1 %. */
static bool set_windows(void *settings, const char *text)
{
    enum { SLOWDOWN_PERCENT = 25 };
    struct gpu_settings *const s = settings;
    char *end;
    const double percent = strtod(text, &end);
    if (end == text || (*end != '\0' && strcmp(end, "%") != 0) ||
        !(percent >= 0.01 && percent <= 100))
        return false;
    const double gap = WINDOW_STEPS * SLOWDOWN_PERCENT / percent;
    s->schedule = (struct marey_gpu_options){
        .window_gap = gap > WINDOW_GAP_LEAST ? (uint32_t)gap : WINDOW_GAP_LEAST};
    return true;
}

static const struct marey__option options[] = {
    {"gpu", "0|1", "0", "records the activity of NVIDIA GPUs", MAREY__OPTION_BOOL,
     MAREY__OPTION_FIELD(struct gpu_settings, is_wanted)},
    {"gpu.schedule", "WAIT:WARMUP:ACTIVE[:REPEAT]", "always", "the iterations that are traced",
     MAREY__OPTION_PARSED, .parse = set_schedule},
    {"gpu.windows", "PERCENT", "off", "traces windows of training steps, at most at this cost",
     MAREY__OPTION_PARSED, .parse = set_windows},
    {"gpu.syncs", "0|1", "0", "also records streams that wait, which slows launches",
     MAREY__OPTION_BOOL, MAREY__OPTION_FIELD(struct gpu_settings, syncs)},
};
static const struct marey__instrument instrument;

static void start_as_wanted(const struct marey__settings *settings)
{
    const struct gpu_settings *const s = marey__settings_of(settings, &instrument);
    marey__gpu_cost_reset();
    if (!s->is_wanted)
        return;
    __atomic_store_n(&gpu->wants_syncs, s->syncs, __ATOMIC_RELAXED);
    if (marey_gpu_start(&s->schedule) != MAREY_OK)
        marey__gpu_report_failure();
}

/* A recording from the environment opens with its first event, which may be the GPU's. */
static void configure(const struct marey__settings *s)
{
    if (s->by_environment)
        start_as_wanted(s);
}

static void stopping(void)
{
    switch_off(marey__process_is_ending());
}

static void before_fork(void)
{
    pthread_mutex_lock(&gpu->turn);
    pthread_mutex_lock(&gpu->lock);
    marey__gpu_decode_before_fork();
}

static void after_fork(bool in_child)
{
    marey__gpu_decode_after_fork(in_child);
    if (in_child) {
        const bool had_orders = marey__gpu_orders_forget();
        gpu->is_child = gpu->is_child || gpu->is_tracing || gpu->session > 0 || had_orders;
        gpu->is_on = gpu->is_on && gpu->is_armed;
        gpu->is_tracing = is_following = gpu->is_said_traced = false;
        n_captures = 0;
        marey__gpu_session_forget();
        gpu->keep_from = UINT64_MAX;
        memset(&gpu->counts, 0, sizeof gpu->counts);
    }
    pthread_mutex_unlock(&gpu->lock);
    pthread_mutex_unlock(&gpu->turn);
}

static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct gpu_settings),
    .configure = configure,
    .started = start_as_wanted,
    .stopping = stopping,
    .reset = marey_gpu_stop,
    .before_fork = before_fork,
    .after_fork = after_fork};

MAREY__INSTRUMENT_AT_LOAD(3, instrument)
