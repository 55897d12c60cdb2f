/* Lanes that are no thread's. They are written rarely or in batches, so each record takes the lane's lock. */
#include <stdio.h>
#include <string.h>

#include "record/record_internal.h"

static struct kymo__record *const record = &kymo__record;

struct kymo__lane *kymo__side_lane_open(enum kymo_lane_kind kind, int64_t tid, const char *name)
{
    struct kymo__lane *lane = kymo__calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->kind = kind;
    lane->tid = tid;
    snprintf(lane->name, sizeof lane->name, "%s", name);
    kymo__lane_register(lane);
    return lane;
}

static bool has_room(const struct kymo__lane *lane, uint64_t tick, size_t n)
{
    return lane->chunk != NULL && lane->pos + n <= lane->limit && (tick - lane->base_tick) >> 40 == 0;
}

/* The lane's lock is held. */
static bool put(struct kymo__lane *lane, uint64_t tick, enum kymo_record_type type,
                const uint64_t *words, size_t n)
{
    if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) != KYMO__RECORD_OPEN)
        return false;
    if (!kymo__lane_is_current(lane)) {
        lane->chunk = NULL;
        kymo__lane_join(lane);
    }
    if (!has_room(lane, tick, n + 1) && !kymo__lane_renew(lane, tick)) {
        kymo__record_lost(1, tick, tick);
        return false;
    }
    kymo__lane_store_record(lane, tick, type, words, n);
    return true;
}

bool kymo__side_lane_put(struct kymo__lane *lane, uint64_t tick, enum kymo_record_type type,
                         const uint64_t *words, size_t n)
{
    KYMO_ASSERT(n <= KYMO__RECORD_WORDS_MAX);
    struct kymo__lane *const own = kymo__lane_set_aside();
    if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == KYMO__RECORD_PENDING)
        kymo__record_open_pending();
    pthread_mutex_lock(&lane->lock);
    const bool is_taken = put(lane, tick, type, words, n);
    pthread_mutex_unlock(&lane->lock);
    kymo__lane_resume(own);
    return is_taken;
}

void kymo__side_lane_close(struct kymo__lane *lane)
{
    struct kymo__lane *const own = kymo__lane_set_aside();
    kymo__lane_retire(lane);
    kymo__lane_resume(own);
}
