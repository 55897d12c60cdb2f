/* A priority queue of numbers, lowest key first; keys can change at any time. */
#include "base/internal.h"

static void place(struct marey__heap *heap, size_t at, struct marey__heap_item item)
{
    heap->items[at] = item;
    heap->places[item.number] = (uint32_t)at + 1;
}

/* Ties are broken by number, so the order is deterministic. */
static bool is_before(const struct marey__heap_item *a, const struct marey__heap_item *b)
{
    return a->key != b->key ? a->key < b->key : a->number < b->number;
}

/* Moves `item` from the free place `at` to where its key belongs. */
static void settle(struct marey__heap *heap, size_t at, struct marey__heap_item item)
{
    const struct marey__heap_item *items = heap->items;
    for (; at != 0 && is_before(&item, &items[(at - 1) / 2]); at = (at - 1) / 2)
        place(heap, at, items[(at - 1) / 2]);
    for (size_t child; (child = 2 * at + 1) < heap->n; at = child) {
        child += child + 1 < heap->n && is_before(&items[child + 1], &items[child]);
        if (!is_before(&items[child], &item))
            break;
        place(heap, at, items[child]);
    }
    place(heap, at, item);
}

static bool make_room(struct marey__heap *heap, uint32_t number)
{
    const size_t before = heap->places_cap;
    if (!marey__grow(&heap->items, &heap->cap, heap->n + 1, sizeof *heap->items) ||
        !marey__grow(&heap->places, &heap->places_cap, (size_t)number + 1, sizeof *heap->places))
        return false;
    memset(heap->places + before, 0, (heap->places_cap - before) * sizeof *heap->places);
    return true;
}

bool marey__heap_put(struct marey__heap *heap, uint32_t number, uint64_t key)
{
    const struct marey__heap_item item = {key, number};
    if (number < heap->places_cap && heap->places[number] != 0) {
        settle(heap, heap->places[number] - 1, item);
        return true;
    }
    if (!make_room(heap, number))
        return false;
    settle(heap, heap->n++, item);
    return true;
}

void marey__heap_remove(struct marey__heap *heap, uint32_t number)
{
    const size_t at = heap->places[number] - 1;
    const struct marey__heap_item last = heap->items[--heap->n];
    heap->places[number] = 0;
    if (last.number != number)
        settle(heap, at, last);
}

void marey__heap_fini(struct marey__heap *heap)
{
    MAREY__FREE_ALL(heap->items, heap->places);
    *heap = (struct marey__heap){0};
}
