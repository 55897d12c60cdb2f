/* Lanes that belong to no thread. They are written rarely or in batches, so each record takes the lane's lock. */
#include <stdio.h>
#include <string.h>

#include "record/internal.h"

static struct marey__record *const record = &marey__record;

struct marey__lane *marey__side_lane_open(enum marey_lane_kind kind, int64_t tid, const char *name)
{
    struct marey__lane *lane = marey__calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->kind = kind;
    lane->tid = tid;
    snprintf(lane->name, sizeof lane->name, "%s", name);
    marey__lane_register(lane);
    return lane;
}

static bool has_room(const struct marey__lane *lane, uint64_t tick, size_t n)
{
    return lane->chunk != NULL && lane->pos + n <= lane->limit && (tick - lane->base_tick) >> 40 == 0;
}

/* Caller holds the lane's lock. */
static bool put(struct marey__lane *lane, uint64_t tick, enum marey_record_type type,
                const uint64_t *words, size_t n)
{
    if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) != MAREY__RECORD_OPEN)
        return false;
    if (!marey__lane_is_current(lane)) {
        lane->chunk = NULL;
        marey__lane_join(lane);
    }
    if (!has_room(lane, tick, n + 1) && !marey__lane_renew(lane, tick)) {
        marey__record_lost(1, tick, tick);
        return false;
    }
    marey__lane_store_record(lane, tick, type, words, n);
    return true;
}

bool marey__side_lane_put(struct marey__lane *lane, uint64_t tick, enum marey_record_type type,
                          const uint64_t *words, size_t n)
{
    MAREY_ASSERT(n <= MAREY__RECORD_WORDS_MAX);
    struct marey__lane *const own = marey__lane_set_aside();
    if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == MAREY__RECORD_PENDING)
        marey__record_open_pending();
    pthread_mutex_lock(&lane->lock);
    const bool is_taken = put(lane, tick, type, words, n);
    pthread_mutex_unlock(&lane->lock);
    marey__lane_resume(own);
    return is_taken;
}

void marey__side_lane_close(struct marey__lane *lane)
{
    struct marey__lane *const own = marey__lane_set_aside();
    marey__lane_retire(lane);
    marey__lane_resume(own);
}
