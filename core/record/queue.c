/*
 * A bounded lock-free FIFO for many producers and many consumers. Each cell has a turn: it may be filled when the turn
 * equals the producer's ticket, and taken when it is one more. A thread only meets an unfinished cell if another thread
 * is between two adjacent instructions, and then gives up instead of waiting.
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

/* Takes the next ticket of `counter` whose cell is at its turn: the ticket to fill, one more to take. NULL if none. */
static struct marey__queue_cell *take_cell(struct marey__queue *q, uint32_t *counter, uint32_t past,
                                           uint32_t *ticket)
{
    *ticket = __atomic_load_n(counter, __ATOMIC_RELAXED);
    for (;;) {
        struct marey__queue_cell *cell = &q->cells[*ticket & q->mask];
        const uint32_t turn = __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE);
        if (turn == *ticket + past) {
            if (__atomic_compare_exchange_n(counter, ticket, *ticket + 1, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
                return cell;
        } else if ((int32_t)(turn - (*ticket + past)) < 0) {
            return NULL; /* full, or empty */
        } else {
            *ticket = __atomic_load_n(counter, __ATOMIC_RELAXED);
        }
    }
}

bool marey__queue_put(struct marey__queue *q, uint32_t value)
{
    uint32_t ticket;
    struct marey__queue_cell *const cell = take_cell(q, &q->tail, 0, &ticket);
    if (cell == NULL)
        return false;
    cell->value = value;
    __atomic_store_n(&cell->turn, ticket + 1, __ATOMIC_RELEASE); /* meets the acquire of who takes it */
    return true;
}

bool marey__queue_take(struct marey__queue *q, uint32_t *value)
{
    uint32_t ticket;
    struct marey__queue_cell *const cell = take_cell(q, &q->head, 1, &ticket);
    if (cell == NULL)
        return false;
    *value = cell->value;
    __atomic_store_n(&cell->turn, ticket + q->mask + 1, __ATOMIC_RELEASE); /* of who fills it */
    return true;
}

uint32_t marey__queue_length(const struct marey__queue *q)
{
    return __atomic_load_n(&q->tail, __ATOMIC_RELAXED) - __atomic_load_n(&q->head, __ATOMIC_RELAXED);
}
