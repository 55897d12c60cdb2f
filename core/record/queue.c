/*
 * A bounded queue for many writers and many readers, in order, without a lock. Each cell carries a turn: it may be
 * filled when the turn equals the ticket of the filler, and taken when it is one past. A thread only ever waits for
 * another that is between two adjacent instructions, and then gives up rather than waits.
 */
#include "record/internal.h"

bool marey__queue_init(struct marey__queue *q, uint32_t n)
{
    uint32_t size = 1;
    while (size < n)
        size *= 2;
    *q = (struct marey__queue){.cells = marey__calloc(size, sizeof *q->cells), .mask = size - 1};
    for (uint32_t i = 0; q->cells != NULL && i < size; i++)
        q->cells[i].turn = i;
    return q->cells != NULL;
}

void marey__queue_fini(struct marey__queue *q)
{
    marey__free(q->cells);
    *q = (struct marey__queue){0};
}

bool marey__queue_put(struct marey__queue *q, uint32_t value)
{
    uint32_t ticket = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
    for (;;) {
        struct marey__queue_cell *cell = &q->cells[ticket & q->mask];
        const uint32_t turn = __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE);
        if (turn == ticket) {
            if (__atomic_compare_exchange_n(&q->tail, &ticket, ticket + 1, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
                cell->value = value;
                __atomic_store_n(&cell->turn, ticket + 1,
                                 __ATOMIC_RELEASE); /* meets the acquire in take */
                return true;
            }
        } else if ((int32_t)(turn - ticket) < 0) {
            return false; /* full */
        } else {
            ticket = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
        }
    }
}

bool marey__queue_take(struct marey__queue *q, uint32_t *value)
{
    uint32_t ticket = __atomic_load_n(&q->head, __ATOMIC_RELAXED);
    for (;;) {
        struct marey__queue_cell *cell = &q->cells[ticket & q->mask];
        const uint32_t turn = __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE);
        if (turn == ticket + 1) {
            if (__atomic_compare_exchange_n(&q->head, &ticket, ticket + 1, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
                *value = cell->value;
                __atomic_store_n(&cell->turn, ticket + q->mask + 1,
                                 __ATOMIC_RELEASE); /* meets the acquire in put */
                return true;
            }
        } else if ((int32_t)(turn - (ticket + 1)) < 0) {
            return false; /* empty */
        } else {
            ticket = __atomic_load_n(&q->head, __ATOMIC_RELAXED);
        }
    }
}

uint32_t marey__queue_length(const struct marey__queue *q)
{
    return __atomic_load_n(&q->tail, __ATOMIC_RELAXED) - __atomic_load_n(&q->head, __ATOMIC_RELAXED);
}
