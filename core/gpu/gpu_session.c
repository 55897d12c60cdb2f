/*
 * A session: CUPTI is ours, from the subscription until it is given back. Both ends take milliseconds. The turn is held.
 */
#include <stdio.h>

#include "cuda/cuda_internal.h"
#include "gpu/gpu_internal.h"

static struct kymo__gpu *const gpu = &kymo__gpu;

static const int kinds[] = {KYMO__CUPTI_KERNEL, KYMO__CUPTI_MEMCPY, KYMO__CUPTI_MEMCPY_PEER,
                            KYMO__CUPTI_MEMSET, KYMO__CUPTI_SYNC,   KYMO__CUPTI_MEMORY};

/* ---- CUPTI is taken ---- */

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

static kymo_status enable_kinds(const struct kymo__cupti *cupti)
{
    int result = KYMO__CUPTI_SUCCESS;
    for (size_t i = 0; i < KYMO__COUNT_OF(kinds); i++) {
        if (kinds[i] == KYMO__CUPTI_SYNC && !gpu->wants_syncs)
            continue;
        const int one = cupti->enable(kinds[i]);
        result = kinds[i] == KYMO__CUPTI_KERNEL ? one : result;
    }
    if (result == KYMO__CUPTI_SUCCESS)
        return KYMO_OK;
    disable_kinds(cupti);
    return kymo__fail(KYMO_EUNAVAILABLE,
                      "GPU activity is not recorded: CUPTI refuses kernel records (error %d); run "
                      "'kymo doctor'",
                      result);
}

/* ---- a context to time calls in ---- */

struct found_context {
    void *context;
    int (*release)(int device); /* NULL: it is the thread's own */
    int device;
};

/* The thread's context, else the first primary context that the program has made. */
static struct found_context find_context(void)
{
    struct found_context found = {0};
    const struct kymo__driver *const driver = kymo__driver_get();
    int (*get_state)(int device, unsigned *flags, int *is_active) = NULL;
    int (*retain)(void **context, int device) = NULL;
    unsigned flags;
    int is_active = 0;
    if (driver == NULL || (driver->ctx_get_current(&found.context) == 0 && found.context != NULL))
        return found;
    *(void **)&get_state = kymo__driver_symbol("cuDevicePrimaryCtxGetState");
    *(void **)&retain = kymo__driver_symbol("cuDevicePrimaryCtxRetain");
    *(void **)&found.release = kymo__driver_symbol("cuDevicePrimaryCtxRelease_v2");
    if (get_state == NULL || retain == NULL || found.release == NULL)
        return (struct found_context){0};
    while (!is_active && get_state(found.device, &flags, &is_active) == 0)
        found.device += is_active ? 0 : 1;
    return is_active && retain(&found.context, found.device) == 0 ? found : (struct found_context){0};
}

static void release_context(const struct found_context *found)
{
    if (found->release != NULL)
        found->release(found->device);
}

/* ---- an injected session: CUDA is being initialised and has no context yet ---- */

static struct {
    pthread_mutex_t lock; /* held while records are enabled: other threads' first calls wait for that */
} first = {.lock = PTHREAD_MUTEX_INITIALIZER};

void kymo__gpu_session_meet_context(void *context)
{
    pthread_mutex_lock(&first.lock);
    if (__atomic_load_n(&gpu->awaits_context, __ATOMIC_RELAXED)) {
        kymo__gpu_calls_set_own(true);
        kymo__gpu_cost_untraced(context);
        const kymo_status st = enable_kinds(gpu->cupti);
        if (st == KYMO_OK)
            kymo__gpu_cost_traced(context);
        else
            kymo__gpu_give_up();
        kymo__gpu_calls_set_own(false);
        if (st == KYMO_OK && kymo__gpu_keep_from() != UINT64_MAX) /* the timed calls are older */
            kymo__gpu_keep();
        __atomic_store_n(&gpu->awaits_context, false, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&first.lock);
}

static void stop_awaiting(void)
{
    pthread_mutex_lock(&first.lock);
    __atomic_store_n(&gpu->awaits_context, false, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&first.lock);
}

void kymo__gpu_session_forget(void)
{
    pthread_mutex_init(&first.lock, NULL);
    gpu->awaits_context = false;
}

/* ---- start ---- */

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
    __atomic_store_n(&gpu->before, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->context, NULL, __ATOMIC_RELAXED);
    cupti->register_clock(kymo__clock_ticks);
    cupti->register_buffers(kymo__gpu_buffer_request, kymo__gpu_buffer_complete);
    const bool is_injected = __atomic_load_n(&gpu->is_injected, __ATOMIC_RELAXED);
    const struct found_context found = is_injected ? (struct found_context){0} : find_context();
    kymo__gpu_cost_untraced(found.context);
    const kymo_status st = is_injected ? KYMO_OK : enable_kinds(cupti);
    if (st != KYMO_OK) {
        cupti->unsubscribe(gpu->subscriber);
        release_context(&found);
        return st;
    }
    __atomic_store_n(&gpu->awaits_context, is_injected, __ATOMIC_RELEASE);
    kymo__gpu_calls_enable(cupti, gpu->subscriber);
    kymo__gpu_calls_set_own(true);
    kymo__gpu_cost_traced(found.context);
    kymo__gpu_calls_set_own(false);
    release_context(&found);
    kymo__record_text(KYMO__KEY_GPU_COST, KYMO__COST_UNKNOWN);
    kymo__gpu_poll_start(cupti);
    kymo__gpu_expect_exit();
    pthread_mutex_lock(&gpu->lock);
    gpu->is_tracing = true;
    /* Not before all is set, else there is work without the call that launched it; and not if it is over already. */
    if (is_kept && gpu->is_on)
        kymo__gpu_keep();
    pthread_mutex_unlock(&gpu->lock);
    return KYMO_OK;
}

void kymo__gpu_keep(void)
{
    __atomic_store_n(&gpu->keep_from, kymo__clock_ticks(), __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->tells, KYMO__GPU_ALL_CALLS, __ATOMIC_RELAXED);
}

/* ---- CUPTI is given back ---- */

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

/* Work that other threads launch meanwhile need not end; whose tracing it is knows the context. */
static void wait_for_work(const struct kymo__gpu_ending *ending)
{
    if (!ending->is_ordered)
        kymo_cuda_sync();
    const int error = ending->context != NULL ? kymo__driver_sync(ending->context) : 0;
    if (error != 0)
        kymo__say("could not wait for the GPU (CUDA error %d): GPU work may be missing", error);
}

void kymo__gpu_session_stop(struct kymo__gpu_ending ending)
{
    if (!gpu->is_tracing)
        return;
    const struct kymo__cupti *cupti = gpu->cupti;
    stop_awaiting();
    kymo__gpu_calls_end();
    kymo__gpu_cost_record();
    if (!ending.is_exit)
        wait_for_work(&ending);
    kymo__gpu_poll_stop();
    const int result = cupti->flush(KYMO__CUPTI_FLUSH_FORCED);
    if (result != KYMO__CUPTI_SUCCESS)
        tell_unflushed(result);
    if (!ending.is_exit) { /* else CUDA may be gone, and CUPTI would ask it */
        cupti->enable_domain(0, gpu->subscriber, KYMO__CUPTI_RUNTIME);
        cupti->enable_domain(0, gpu->subscriber, KYMO__CUPTI_DRIVER);
        disable_kinds(cupti);
        finalize(cupti);
        kymo__gpu_buffers_settle();
    }
    __atomic_store_n(&gpu->keep_from, UINT64_MAX, __ATOMIC_RELAXED);
    pthread_mutex_lock(&gpu->lock);
    gpu->is_tracing = false;
    __atomic_fetch_add(&gpu->session, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&gpu->lock);
}
