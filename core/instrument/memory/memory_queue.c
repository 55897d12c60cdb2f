/*
 * A bounded queue from many producers to one consumer. A slot counts turns: 2 k if it is free for round k, 2 k + 1 if
 * it is filled. So zeros are an empty queue, as found by a forked child.
 */
#include "instrument/memory/internal.h"

enum { N_PLACES = 4096 };

struct place {
    uint64_t turn; /* stored with release, loaded with acquire by the other side */
    struct marey__memory_entry entry;
};

static struct queue {
    uint64_t head; /* next to read. Consumer only; relaxed for others */
    uint64_t tail __attribute__((aligned(64))); /* next to fill */
    struct place places[N_PLACES] __attribute__((aligned(64)));
} * queue; /* stored before hooks are enabled */

bool marey__memory_queue_open(void)
{
    if (queue == NULL)
        queue = marey__memory_map(sizeof *queue);
    return queue != NULL;
}

struct marey__memory_entry *marey__memory_queue_claim(uint64_t *ticket)
{
    uint64_t at = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
    for (;;) {
        struct place *const place = &queue->places[at % N_PLACES];
        const uint64_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE),
                       free_turn = at / N_PLACES * 2;
        if (turn < free_turn)
            return NULL; /* one round behind: full */
        if (turn > free_turn) {
            at = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&queue->tail, &at, at + 1, true, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED)) {
            *ticket = at;
            return &place->entry;
        }
    }
}

void marey__memory_queue_publish(uint64_t ticket)
{
    /* Release: pairs with the acquire in marey__memory_queue_next(). */
    __atomic_store_n(&queue->places[ticket % N_PLACES].turn, ticket / N_PLACES * 2 + 1,
                     __ATOMIC_RELEASE);
}

const struct marey__memory_entry *marey__memory_queue_next(void)
{
    if (queue == NULL)
        return NULL;
    struct place *const place = &queue->places[queue->head % N_PLACES];
    const uint64_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE);
    return turn == queue->head / N_PLACES * 2 + 1 ? &place->entry : NULL;
}

void marey__memory_queue_release(void)
{
    struct place *const place = &queue->places[queue->head % N_PLACES];
    __atomic_store_n(&place->turn, place->turn + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->head, queue->head + 1, __ATOMIC_RELAXED);
}

bool marey__memory_queue_is_filling(void)
{
    return __atomic_load_n(&queue->tail, __ATOMIC_RELAXED) -
               __atomic_load_n(&queue->head, __ATOMIC_RELAXED) >
           N_PLACES / 2;
}
