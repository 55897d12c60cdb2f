/*
 * Values in order of time. A lane takes events in order, but samples of the driver's come with stamps of the past, and those
 * of several GPUs one GPU after the other. So what is read waits here until nothing older can come.
 */
#include <string.h>

#include "instrument/energy/internal.h"

/* Shell's way: they are a few runs one behind the other, some hundred values, and there is no memory to be had. */
static void sort(struct marey__energy_entry *entries, size_t n)
{
    static const size_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < MAREY__COUNT_OF(gaps); g++)
        for (size_t i = gaps[g]; i < n; i++) {
            const struct marey__energy_entry entry = entries[i];
            size_t at = i;
            for (; at >= gaps[g] && entries[at - gaps[g]].tick > entry.tick; at -= gaps[g])
                entries[at] = entries[at - gaps[g]];
            entries[at] = entry;
        }
}

static void put_entry(const struct marey__energy_entry *entry)
{
    uint64_t words[2] = {entry->site, 0};
    memcpy(&words[1], &entry->value, sizeof entry->value);
    if ((marey_on() & MAREY_ON_RECORD) != 0)
        marey__lane_put_record_at(entry->tick, MAREY_RECORD_COUNTER, words, MAREY__COUNT_OF(words));
}

/* Without memory what waits is written at once: late samples then have the time of the value before them. */
void marey__energy_order_add(struct marey__energy_order *order,
                             const struct marey__energy_entry *entry)
{
    if (marey__grow(&order->entries, &order->cap, order->n + 1, sizeof *order->entries)) {
        order->entries[order->n++] = *entry;
        return;
    }
    marey__energy_order_write(order, UINT64_MAX);
    put_entry(entry);
}

void marey__energy_order_write(struct marey__energy_order *order, uint64_t until_tick)
{
    size_t n = 0;
    if (order->n == 0)
        return;
    sort(order->entries, order->n);
    while (n < order->n && order->entries[n].tick <= until_tick)
        put_entry(&order->entries[n++]);
    order->n -= n;
    memmove(order->entries, order->entries + n, order->n * sizeof *order->entries);
}
