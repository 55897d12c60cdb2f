/* A session: CUPTI is ours from subscription until it is returned. Both ends take milliseconds. Callers hold the turn. */
#include <stdio.h>

#include "instrument/cuda/internal.h"
#include "instrument/gpu/internal.h"

static struct marey__gpu *const gpu = &marey__gpu;

static const int kinds[] = {MAREY__CUPTI_KERNEL, MAREY__CUPTI_MEMCPY, MAREY__CUPTI_MEMCPY_PEER,
                            MAREY__CUPTI_MEMSET, MAREY__CUPTI_SYNC,   MAREY__CUPTI_MEMORY};

/* ---- taking CUPTI ---- */

static marey_status fail_taken(const char *who)
{
    return marey__fail(
        MAREY_EUNAVAILABLE,
        "GPU work is not recorded: another tool in this process has CUPTI (%s), and "
        "CUPTI serves one at a time. torch.profiler keeps it once it was used, unless "
        "TEARDOWN_CUPTI=1; its trace can be read by 'marey import'",
        who[0] != '\0' ? who : "torch.profiler or Nsight, perhaps");
}

static marey_status subscribe(const struct marey__cupti *cupti)
{
    char who[128] = "";
    struct marey__cupti_subscription params = {
        .struct_size = sizeof params, .name = "marey", .old_name = who, .old_name_size = sizeof who};
    const int result = cupti->subscribe_named != NULL
                           ? cupti->subscribe_named(&gpu->subscriber, marey__gpu_call, NULL, &params)
                           : cupti->subscribe(&gpu->subscriber, marey__gpu_call, NULL);
    if (result == MAREY__CUPTI_SUCCESS)
        return MAREY_OK;
    if (result == MAREY__CUPTI_TAKEN)
        return fail_taken(who);
    const char *text = NULL;
    if (cupti->result_text(result, &text) != MAREY__CUPTI_SUCCESS || text == NULL)
        text = "unknown error";
    return marey__fail(
        MAREY_EUNAVAILABLE, "GPU work is not recorded: CUPTI refused with %s (%d)%s", text, result,
        result == MAREY__CUPTI_NO_PRIVILEGE ? "; the driver restricts profiling to root "
                                              "(NVreg_RestrictProfilingToAdminUsers)"
                                            : "; 'marey doctor' says more");
}

/* The recording chooses the clock, so it must be open before CUPTI gets it. */
static bool is_recording_open(void)
{
    struct marey__lane *const lane = marey__lane_set_aside();
    const bool is_open =
        __atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_OPEN ||
        marey__record_open_pending();
    marey__lane_resume(lane);
    return is_open;
}

static void disable_kinds(const struct marey__cupti *cupti)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++)
        cupti->disable(kinds[i]);
}

static marey_status enable_kinds(const struct marey__cupti *cupti)
{
    int result = MAREY__CUPTI_SUCCESS;
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++) {
        if (kinds[i] == MAREY__CUPTI_SYNC && !gpu->wants_syncs)
            continue;
        const int one = cupti->enable(kinds[i]);
        result = kinds[i] == MAREY__CUPTI_KERNEL ? one : result;
    }
    if (result == MAREY__CUPTI_SUCCESS)
        return MAREY_OK;
    disable_kinds(cupti);
    return marey__fail(MAREY_EUNAVAILABLE,
                       "GPU activity is not recorded: CUPTI refuses kernel records (error %d); run "
                       "'marey doctor'",
                       result);
}

/* ---- a context for timing calls ---- */

struct found_context {
    void *context;
    int (*release)(int device); /* NULL: it is the thread's current context */
    int device;
};

/* The thread's context, else the first primary context that the program has created. */
static struct found_context find_context(void)
{
    struct found_context found = {0};
    const struct marey__driver *const driver = marey__driver_get();
    int (*get_state)(int device, unsigned *flags, int *is_active) = NULL;
    int (*retain)(void **context, int device) = NULL;
    unsigned flags;
    int is_active = 0;
    if (driver == NULL || (driver->ctx_get_current(&found.context) == 0 && found.context != NULL))
        return found;
    *(void **)&get_state = marey__driver_symbol("cuDevicePrimaryCtxGetState");
    *(void **)&retain = marey__driver_symbol("cuDevicePrimaryCtxRetain");
    *(void **)&found.release = marey__driver_symbol("cuDevicePrimaryCtxRelease_v2");
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

/* ---- an injected session: CUDA is being initialized and has no context yet ---- */

/* Held while records are enabled: first calls of other threads wait for that. */
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;

void marey__gpu_session_enable_context(void *context)
{
    MAREY__HOLD(&first_lock);
    if (__atomic_load_n(&gpu->awaits_context, __ATOMIC_RELAXED)) {
        marey__gpu_calls_set_own(true);
        marey__gpu_cost_untraced(context);
        const marey_status st = enable_kinds(gpu->cupti);
        if (st == MAREY_OK)
            marey__gpu_cost_traced(context);
        else
            marey__gpu_give_up();
        marey__gpu_calls_set_own(false);
        __atomic_store_n(&gpu->awaits_context, false, __ATOMIC_RELEASE);
    }
}

static void stop_awaiting(void)
{
    MAREY__HOLD(&first_lock);
    __atomic_store_n(&gpu->awaits_context, false, __ATOMIC_RELEASE);
}

void marey__gpu_session_forget(void)
{
    pthread_mutex_init(&first_lock, NULL);
    gpu->awaits_context = false;
}

/* ---- start ---- */

marey_status marey__gpu_session_start(void)
{
    if (gpu->n_pauses > 0) {
        marey__gpu_pause_note();
        return MAREY_OK;
    }
    if (!is_recording_open())
        return marey__fail(MAREY_ESTATE, "GPU work is not recorded: no recording is open");
    const struct marey__cupti *cupti = marey__cupti_open();
    if (cupti == NULL)
        return MAREY_EUNAVAILABLE;
    MAREY_TRY(subscribe(cupti));
    __atomic_store_n(&gpu->cupti, cupti, __ATOMIC_RELAXED);
    /* One buffer list for all threads keeps a stream's records in order. Not supported before CUDA 12.3. */
    uint8_t off = 0;
    size_t size = sizeof off;
    cupti->set_attribute(MAREY__CUPTI_PER_THREAD_BUFFER, &size, &off);
    __atomic_store_n(&gpu->before, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->first, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->context, NULL, __ATOMIC_RELAXED);
    cupti->register_clock(marey__clock_ticks);
    cupti->register_buffers(marey__gpu_buffer_request, marey__gpu_buffer_complete);
    const bool is_injected = __atomic_load_n(&gpu->is_injected, __ATOMIC_RELAXED);
    const struct found_context found = !is_injected ? find_context() : (struct found_context){0};
    marey__gpu_cost_untraced(found.context);
    const marey_status st = is_injected ? MAREY_OK : enable_kinds(cupti);
    if (st != MAREY_OK) {
        cupti->unsubscribe(gpu->subscriber);
        release_context(&found);
        return st;
    }
    __atomic_store_n(&gpu->awaits_context, is_injected, __ATOMIC_RELEASE);
    marey__gpu_calls_enable(cupti, gpu->subscriber);
    marey__gpu_calls_set_own(true);
    marey__gpu_cost_traced(found.context);
    marey__gpu_calls_set_own(false);
    release_context(&found);
    marey__record_text(MAREY__KEY_GPU_COST, MAREY__COST_UNKNOWN);
    marey__gpu_poll_start(cupti);
    marey__gpu_expect_exit();
    MAREY__HOLD(&gpu->lock);
    gpu->is_tracing = true;
    return MAREY_OK;
}

void marey__gpu_keep(void)
{
    if (!gpu->is_tracing || !gpu->is_on || marey__gpu_keep_from() != UINT64_MAX)
        return;
    __atomic_store_n(&gpu->keep_from, marey__clock_ticks(), __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->tells, MAREY__GPU_ALL_CALLS, __ATOMIC_RELAXED);
    marey__gpu_put_traced(true);
}

void marey__gpu_put_traced(bool is_traced)
{
    const uint64_t words[] = {is_traced};
    if ((gpu->schedule.window_gap == 0 && is_traced) ||
        __atomic_exchange_n(&gpu->is_said_traced, is_traced, __ATOMIC_RELAXED) == is_traced)
        return;
    if (marey_enabled())
        marey__lane_put_record(MAREY_RECORD_TRACED, words, MAREY__COUNT_OF(words));
}

/* ---- returning CUPTI ---- */

/*
 * Returns CUPTI. Otherwise the program stays slower: CUPTI leaves its hooks in the driver. While other threads are in
 * CUDA this is safe only at the end of a call, so we make one. Once there are CUDA graphs it is never safe:
 * reinitializing CUPTI breaks their launches (CUDA 11 to 13).
 */
static void finalize(const struct marey__cupti *cupti)
{
    const bool has_graphs = __atomic_load_n(&gpu->has_graphs, __ATOMIC_RELAXED);
    if (!has_graphs && marey__gpu_finalize_in_call(cupti, gpu->subscriber))
        return;
    cupti->unsubscribe(gpu->subscriber);
    if (!has_graphs)
        cupti->finalize();
}

/* Work that other threads launch meanwhile need not end; the stopping thread knows its context. */
static void wait_for_work(const struct marey__gpu_ending *ending)
{
    if (!ending->is_ordered)
        marey_cuda_sync();
    const int error = ending->context != NULL ? marey__driver_sync(ending->context) : 0;
    if (error != 0)
        marey__say("could not wait for the GPU (CUDA error %d): GPU work may be missing", error);
}

void marey__gpu_session_stop(struct marey__gpu_ending ending)
{
    if (!gpu->is_tracing)
        return;
    const struct marey__cupti *cupti = gpu->cupti;
    stop_awaiting();
    if (!ending.is_ordered && !ending.is_exit) /* an order has done that, and at exit CUDA may be gone */
        marey__gpu_calls_mark();
    marey__gpu_put_traced(false);
    marey__gpu_calls_end();
    marey__gpu_cost_record();
    if (!ending.is_exit)
        wait_for_work(&ending);
    marey__gpu_poll_stop();
    const int result = cupti->flush(MAREY__CUPTI_FLUSH_FORCED);
    if (result != MAREY__CUPTI_SUCCESS) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "CUPTI did not return its last records (error %d): GPU work may be missing", result);
        marey__record_note(sentence);
    }
    if (!ending.is_exit) { /* otherwise CUDA may be gone, and CUPTI would call it */
        cupti->enable_domain(0, gpu->subscriber, MAREY__CUPTI_RUNTIME);
        cupti->enable_domain(0, gpu->subscriber, MAREY__CUPTI_DRIVER);
        disable_kinds(cupti);
        finalize(cupti);
        marey__gpu_buffers_settle();
    }
    __atomic_store_n(&gpu->keep_from, UINT64_MAX, __ATOMIC_RELAXED);
    MAREY__HOLD(&gpu->lock);
    gpu->is_tracing = false;
    __atomic_fetch_add(&gpu->session, 1, __ATOMIC_RELAXED);
}
