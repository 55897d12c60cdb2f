/*
 * Tracing by iterations: wait, warm up, trace, and again. CUPTI is taken with the warm-up and given back behind the active
 * part by a thread, so that iterations do not wait. Where it is not there when the active part begins, that waits.
 */
#include "instrument/gpu/internal.h"
#include "switchboard/internal.h"

static struct marey__gpu *const gpu = &marey__gpu;
static uint64_t n_done; /* iterations of the schedule that have ended; guarded by gpu.lock, as the next is */
static bool is_following;

enum part { WAIT, WARMUP, ACTIVE, OVER };

static enum part part_of(uint64_t iteration)
{
    const struct marey_gpu_options *s = &gpu->schedule;
    const uint64_t each = (uint64_t)s->wait + s->warmup + s->active;
    const uint64_t at = iteration % each;
    if (s->repeat != 0 && iteration / each >= s->repeat)
        return OVER;
    return at < s->wait ? WAIT : at < (uint64_t)s->wait + s->warmup ? WARMUP : ACTIVE;
}

/* gpu.lock is held. False: the caller has to see to it. */
static bool enter(enum part before, enum part now)
{
    uint64_t bound;
    bool is_served = true;
    if (before == now)
        return true;
    if (before == ACTIVE)
        is_served = marey__gpu_order_stop(&bound);
    if (now == WARMUP)
        is_served = marey__gpu_order_start(false);
    return is_served && now != ACTIVE;
}

/* What follows an active part directly, without a warm-up, is not a new one: tracing just goes on. */
static void iteration_finished(const struct marey__iteration_event *iteration)
{
    (void)iteration;
    bool is_done = true;
    enum part now = OVER;
    pthread_mutex_lock(&gpu->lock);
    if (is_following) {
        const enum part before = part_of(n_done++);
        now = part_of(n_done);
        is_done = enter(before, now);
    }
    pthread_mutex_unlock(&gpu->lock);
    if (is_done)
        return;
    if (now != ACTIVE)
        marey_gpu_settle();
    else if (marey__gpu_acquire(true) != MAREY_OK)
        marey__say("%s", marey_last_error());
}

static const struct marey__iteration_subscriber subscriber = {.finished = iteration_finished};

bool marey__gpu_schedule_is_due(bool *is_kept)
{
    const enum part part = part_of(n_done);
    *is_kept = part == ACTIVE;
    return part == ACTIVE || part == WARMUP;
}

bool marey__gpu_schedule_begin(bool *is_kept)
{
    n_done = 0;
    is_following = marey__iteration_subscribe(&subscriber);
    return marey__gpu_schedule_is_due(is_kept);
}

void marey__gpu_schedule_end(void)
{
    if (is_following)
        marey__iteration_unsubscribe(&subscriber);
    is_following = false;
}
