/* Tracing by iterations: wait, warm up, trace, and again. */
#include "gpu/gpu_internal.h"
#include "iteration/iteration_internal.h"

static struct kymo__gpu *const gpu = &kymo__gpu;
static uint64_t n_done; /* iterations of the schedule that have ended; guarded by gpu.lock, as the next is */
static bool is_following;

enum part { WAIT, WARMUP, ACTIVE, OVER };

static enum part part_of(uint64_t iteration)
{
    const struct kymo_gpu_options *s = &gpu->schedule;
    const uint64_t each = (uint64_t)s->wait + s->warmup + s->active;
    const uint64_t at = iteration % each;
    if (s->repeat != 0 && iteration / each >= s->repeat)
        return OVER;
    return at < s->wait ? WAIT : at < (uint64_t)s->wait + s->warmup ? WARMUP : ACTIVE;
}

/* gpu.lock is held. */
static kymo_status enter(enum part before, enum part now)
{
    if (before == now)
        return KYMO_OK;
    if (now == WAIT || now == OVER)
        kymo__gpu_session_stop(false);
    else if (gpu->is_tracing && now == ACTIVE)
        kymo__gpu_keep();
    else if (!gpu->is_tracing)
        return kymo__gpu_session_start(now == ACTIVE);
    return KYMO_OK;
}

/* What follows an active part directly is a new one: without a wait between, tracing just goes on. */
static void iteration_finished(const struct kymo__iteration *iteration)
{
    (void)iteration;
    pthread_mutex_lock(&gpu->lock);
    kymo_status st = KYMO_OK;
    if (is_following) {
        const enum part before = part_of(n_done++);
        st = enter(before, part_of(n_done));
    }
    pthread_mutex_unlock(&gpu->lock);
    if (st != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}

static void warmup_set(bool in_warmup)
{
    (void)in_warmup;
}

static const struct kymo__iteration_subscriber subscriber = {.finished = iteration_finished,
                                                             .warmup_set = warmup_set};

bool kymo__gpu_schedule_is_due(bool *is_kept)
{
    const enum part part = part_of(n_done);
    *is_kept = part == ACTIVE;
    return part == ACTIVE || part == WARMUP;
}

bool kymo__gpu_schedule_begin(bool *is_kept)
{
    n_done = 0;
    is_following = kymo__iteration_subscribe(&subscriber);
    return kymo__gpu_schedule_is_due(is_kept);
}

void kymo__gpu_schedule_end(void)
{
    if (is_following)
        kymo__iteration_unsubscribe(&subscriber);
    is_following = false;
}
