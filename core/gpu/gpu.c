/* GPU tracing on and off: whose CUPTI is, when tracing begins, and what the switchboard is told. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu/gpu_internal.h"
#include "switchboard/switchboard_internal.h"
#include <kymo/cuda.h>

#define INJECTION "CUDA_INJECTION64_PATH"
#define SHIM "libkymo-cuda.so"

struct kymo__gpu kymo__gpu = {.lock = PTHREAD_MUTEX_INITIALIZER, .keep_from = UINT64_MAX};
static struct kymo__gpu *const gpu = &kymo__gpu;

static const int kinds[] = {KYMO__CUPTI_KERNEL, KYMO__CUPTI_MEMCPY, KYMO__CUPTI_MEMCPY_PEER,
                            KYMO__CUPTI_MEMSET, KYMO__CUPTI_SYNC,   KYMO__CUPTI_MEMORY};

/* ---- a session: CUPTI is ours ---- */

static kymo_status fail_taken(const char *who)
{
    return kymo__fail(
        KYMO_EUNAVAILABLE,
        "GPU work is not recorded: another tool in this process has CUPTI (%s), and "
        "CUPTI serves one at a time. torch.profiler keeps it once it was used, unless "
        "TEARDOWN_CUPTI=1; its trace can be read by 'kymo import'",
        who[0] != '\0' ? who : "torch.profiler or Nsight, perhaps");
}

static kymo_status subscribe(const struct kymo__cupti *cupti)
{
    char who[128] = "";
    struct kymo__cupti_subscription params = {
        .struct_size = sizeof params, .name = "kymo", .old_name = who, .old_name_size = sizeof who};
    const int result = cupti->subscribe_named != NULL
                           ? cupti->subscribe_named(&gpu->subscriber, kymo__gpu_call, NULL, &params)
                           : cupti->subscribe(&gpu->subscriber, kymo__gpu_call, NULL);
    if (result == KYMO__CUPTI_SUCCESS)
        return KYMO_OK;
    if (result == KYMO__CUPTI_TAKEN)
        return fail_taken(who);
    const char *text = NULL;
    if (cupti->result_text(result, &text) != KYMO__CUPTI_SUCCESS || text == NULL)
        text = "unknown error";
    return kymo__fail(
        KYMO_EUNAVAILABLE, "GPU work is not recorded: CUPTI refused with %s (%d)%s", text, result,
        result == KYMO__CUPTI_NO_PRIVILEGE ? "; the driver restricts profiling to root "
                                             "(NVreg_RestrictProfilingToAdminUsers)"
                                           : "; 'kymo doctor' says more");
}

static void at_exit(void);

/* The recording decides where ticks come from, so it must be open before CUPTI is given the clock. */
static bool is_recording_open(void)
{
    struct kymo__lane *const lane = kymo__lane_set_aside();
    const bool is_open = __atomic_load_n(&kymo__record.state, __ATOMIC_ACQUIRE) == KYMO__RECORD_OPEN ||
                         kymo__record_open_pending();
    kymo__lane_resume(lane);
    return is_open;
}

static void disable_kinds(const struct kymo__cupti *cupti)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(kinds); i++)
        cupti->disable(kinds[i]);
}

kymo_status kymo__gpu_session_start(bool is_kept)
{
    if (gpu->n_pauses > 0) {
        kymo__gpu_pause_tell();
        return KYMO_OK;
    }
    if (!is_recording_open())
        return kymo__fail(KYMO_ESTATE, "GPU work is not recorded: no recording is open");
    const struct kymo__cupti *cupti = kymo__cupti_open();
    if (cupti == NULL)
        return KYMO_EUNAVAILABLE;
    KYMO_TRY(subscribe(cupti));
    __atomic_store_n(&gpu->cupti, cupti, __ATOMIC_RELAXED);
    /* One list of buffers for all threads keeps the records of a stream in order. Unknown before CUDA 12.3. */
    uint8_t off = 0;
    size_t size = sizeof off;
    cupti->set_attribute(KYMO__CUPTI_PER_THREAD_BUFFER, &size, &off);
    cupti->register_clock(kymo__clock_ticks);
    cupti->register_buffers(kymo__gpu_buffer_request, kymo__gpu_buffer_complete);
    int result = KYMO__CUPTI_SUCCESS;
    for (size_t i = 0; i < KYMO__COUNT_OF(kinds); i++) {
        if (kinds[i] == KYMO__CUPTI_SYNC && !gpu->wants_syncs)
            continue;
        const int one = cupti->enable(kinds[i]);
        result = kinds[i] == KYMO__CUPTI_KERNEL ? one : result;
    }
    if (result != KYMO__CUPTI_SUCCESS) {
        disable_kinds(cupti);
        cupti->unsubscribe(gpu->subscriber);
        return kymo__fail(KYMO_EUNAVAILABLE,
                          "GPU work is not recorded: CUPTI does not give records of kernels (error "
                          "%d); 'kymo doctor' says more",
                          result);
    }
    kymo__gpu_calls_enable(cupti, gpu->subscriber);
    kymo__gpu_poll_start(cupti);
    gpu->is_tracing = true;
    if (is_kept) /* not before all is set: then there is work without the call that launched it */
        kymo__gpu_keep();
    static bool is_exit_told; /* once CUDA is there, so that its own handlers come after ours */
    if (!is_exit_told)
        atexit(at_exit);
    is_exit_told = true;
    return KYMO_OK;
}

void kymo__gpu_keep(void)
{
    __atomic_store_n(&gpu->keep_from, kymo__clock_ticks(), __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->takes_calls, true, __ATOMIC_RELAXED);
}

/*
 * Give CUPTI back. Without this the program stays slower than it was: CUPTI leaves its hooks in the driver. While other
 * threads are in CUDA it is safe at the end of a call alone, so a call is made for it.
 */
static void finalize(const struct kymo__cupti *cupti)
{
    if (!kymo__gpu_finalize_in_call(cupti, gpu->subscriber)) {
        cupti->unsubscribe(gpu->subscriber);
        cupti->finalize();
    }
}

static void tell_unflushed(int result)
{
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "CUPTI did not hand out its last records (error %d): GPU work may be missing", result);
    kymo__record_note(sentence);
}

void kymo__gpu_session_stop(bool is_exit)
{
    if (!gpu->is_tracing)
        return;
    const struct kymo__cupti *cupti = gpu->cupti;
    kymo__gpu_calls_end();
    if (!is_exit)
        kymo_cuda_sync();
    kymo__gpu_poll_stop();
    const int result = cupti->flush(KYMO__CUPTI_FLUSH_FORCED);
    if (result != KYMO__CUPTI_SUCCESS)
        tell_unflushed(result);
    if (!is_exit) { /* else CUDA may be gone, and CUPTI would ask it */
        cupti->enable_domain(0, gpu->subscriber, KYMO__CUPTI_RUNTIME);
        cupti->enable_domain(0, gpu->subscriber, KYMO__CUPTI_DRIVER);
        disable_kinds(cupti);
        finalize(cupti);
        kymo__gpu_buffers_settle();
    }
    gpu->is_tracing = false;
    __atomic_store_n(&gpu->keep_from, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_fetch_add(&gpu->session, 1, __ATOMIC_RELAXED);
}

/* ---- on and off; the lock is held ---- */

/* The shim lies beside this library. False when it does not, or its path is too long. */
static bool shim_path(char *out, size_t size)
{
    const char *own = kymo_library_path(), *slash = strrchr(own, '/');
    return slash != NULL && snprintf(out, size, "%.*s/%s", (int)(slash - own), own, SHIM) < (int)size;
}

/* The driver is not there yet. It asks for a library in the environment when it comes, and that one is ours. */
static kymo_status arm(void)
{
    char path[PATH_MAX];
    const char *before = getenv(INJECTION);
    const char *name = before != NULL ? strrchr(before, '/') : NULL;
    const bool is_ours = name != NULL && strcmp(name + 1, SHIM) == 0;
    if (before != NULL && before[0] != '\0' && !is_ours)
        return kymo__fail(KYMO_EUNAVAILABLE,
                          "GPU work is not recorded: another tool waits for CUDA (" INJECTION
                          "=%s); run "
                          "without it",
                          before);
    if (!is_ours && (!shim_path(path, sizeof path) || setenv(INJECTION, path, 1) != 0))
        return kymo__fail(KYMO_EUNAVAILABLE,
                          "GPU work is not recorded: " SHIM
                          " was not found beside %s; install kymo "
                          "anew, with all of its files",
                          kymo_library_path());
    gpu->is_armed = true;
    return KYMO_OK;
}

static kymo_status begin(void)
{
    bool is_kept = true;
    if (gpu->schedule.active == 0 || kymo__gpu_schedule_begin(&is_kept))
        return kymo__gpu_session_start(is_kept);
    return KYMO_OK;
}

static kymo_status switch_on(const struct kymo_gpu_options *options)
{
    if (gpu->is_on)
        return kymo__fail(KYMO_ESTATE, "GPU tracing is on already");
    if (gpu->is_child)
        return kymo__fail(KYMO_ESTATE,
                          "GPU work is not recorded: CUDA cannot be used in a process forked from "
                          "one that uses it; start processes by spawn");
    if (!kymo_enabled())
        return kymo__fail(KYMO_ESTATE, "GPU work is not recorded: no recording is open");
    if (options->active == 0 && (options->wait | options->warmup | options->repeat) != 0)
        return kymo__fail(KYMO_EINVAL, "a schedule of GPU tracing needs active iterations");
    gpu->schedule = *options;
    const kymo_status st = kymo__cuda_is_loaded() ? begin() : arm();
    if (st != KYMO_OK) {
        kymo__gpu_schedule_end();
        return st;
    }
    gpu->is_on = true;
    return KYMO_OK;
}

static void tell_losses(void)
{
    struct kymo_gpu_counts counts;
    kymo_gpu_counts_get(&counts);
    if (counts.dropped == 0 && counts.incomplete == 0)
        return;
    char sentence[256];
    snprintf(
        sentence, sizeof sentence,
        "%llu records of GPU work were dropped by CUPTI, and %llu pieces of work had not ended "
        "when tracing stopped: they are missing",
        (unsigned long long)counts.dropped, (unsigned long long)counts.incomplete);
    kymo__record_note(sentence);
}

static void switch_off(bool is_exit)
{
    pthread_mutex_lock(&gpu->lock);
    const bool was_on = gpu->is_on;
    kymo__gpu_schedule_end();
    kymo__gpu_session_stop(is_exit);
    gpu->is_on = gpu->is_armed = false;
    pthread_mutex_unlock(&gpu->lock);
    if (was_on)
        tell_losses();
}

/* CUDA goes down soon: nothing is waited for, and nobody is left to be slowed down. */
static void at_exit(void)
{
    switch_off(true);
}

kymo_status kymo_gpu_start_sized(const struct kymo_gpu_options *options, size_t size)
{
    struct kymo_gpu_options o = {0};
    if (options != NULL)
        memcpy(&o, options, KYMO__MIN(size, sizeof o));
    pthread_mutex_lock(&gpu->lock);
    const kymo_status st = switch_on(&o);
    pthread_mutex_unlock(&gpu->lock);
    return st;
}

void kymo_gpu_stop(void)
{
    switch_off(false);
}

int kymo_gpu_is_on(void)
{
    pthread_mutex_lock(&gpu->lock);
    const bool is_on = gpu->is_on;
    pthread_mutex_unlock(&gpu->lock);
    return is_on;
}

void kymo_gpu_counts_get(struct kymo_gpu_counts *out)
{
    uint64_t *from = (uint64_t *)&gpu->counts, *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static void say_and_note(void)
{
    kymo__say("%s", kymo_last_error());
    kymo__record_note(kymo_last_error());
}

void kymo_gpu_injected(void)
{
    pthread_mutex_lock(&gpu->lock);
    const bool begins = gpu->is_on && gpu->is_armed;
    gpu->is_armed = false;
    const kymo_status st = begins ? begin() : KYMO_OK;
    gpu->is_on = gpu->is_on && st == KYMO_OK;
    pthread_mutex_unlock(&gpu->lock);
    if (st != KYMO_OK)
        say_and_note();
}

/* ---- what the switchboard says ---- */

static void start_as_wanted(const struct kymo__settings *s)
{
    if (s->gpu.is_wanted)
        __atomic_store_n(&gpu->wants_syncs, s->gpu.syncs, __ATOMIC_RELAXED);
    const struct kymo_gpu_options o = {s->gpu.wait, s->gpu.warmup, s->gpu.active, s->gpu.repeat};
    if (s->gpu.is_wanted && kymo_gpu_start(&o) != KYMO_OK)
        say_and_note();
}

/* A recording that the environment asks for opens with its first event, which may be the GPU's. */
static void configure(const struct kymo__settings *s)
{
    if (s->by_environment)
        start_as_wanted(s);
}

static void stopping(void)
{
    if (kymo_gpu_is_on())
        switch_off(kymo__process_is_ending());
}

static void before_fork(void)
{
    pthread_mutex_lock(&gpu->lock);
    kymo__gpu_decode_before_fork();
}

static void after_fork(bool in_child)
{
    kymo__gpu_decode_after_fork(in_child);
    if (in_child) {
        gpu->is_child = gpu->is_child || gpu->is_tracing || gpu->session > 0;
        gpu->is_on = gpu->is_on && gpu->is_armed;
        gpu->is_tracing = false;
        gpu->keep_from = UINT64_MAX;
        memset(&gpu->counts, 0, sizeof gpu->counts);
    }
    pthread_mutex_unlock(&gpu->lock);
}

__attribute__((constructor(KYMO__INSTRUMENT_LOAD + 3))) static void load(void)
{
    static const struct kymo__instrument instrument = {.configure = configure,
                                                       .started = start_as_wanted,
                                                       .stopping = stopping,
                                                       .reset = kymo_gpu_stop,
                                                       .before_fork = before_fork,
                                                       .after_fork = after_fork};
    kymo__instrument_register(&instrument);
}
