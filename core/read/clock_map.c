/*
 * Ticks to nanoseconds, piecewise linear between the clock samples of a process.
 *
 * Slopes are rounded down, so that a segment never reaches past the start of the next one: time
 * never runs backwards from one segment to the next.
 */
#include "read/internal.h"

__extension__ typedef unsigned __int128 u128;

/*
 * Slopes outside these limits are damage: less than about 1000 ticks per second or more than 256
 * per nanosecond.
 */
#define MULT_MAX ((UINT64_C(1) << 40) * 1000000)
#define MULT_MIN (UINT64_C(1) << 32)

MAREY__ORDER(by_tick, struct marey__clock_entry, MAREY__UP(tick) MAREY__UP(monotonic_ns))

/* The slope from `from` to `to`, or 0 if it is outside the limits. */
static uint64_t slope(const struct marey__clock_entry *from, const struct marey__clock_entry *to)
{
    if (to->tick <= from->tick || to->monotonic_ns <= from->monotonic_ns)
        return 0;
    const u128 mult = ((u128)(to->monotonic_ns - from->monotonic_ns) << 40) / (to->tick - from->tick);
    return mult >= MULT_MIN && mult <= MULT_MAX ? (uint64_t)mult : 0;
}

static uint64_t slope_of_rate(uint64_t tick_hz)
{
    if (tick_hz == 0)
        return UINT64_C(1) << 40;
    const u128 mult = ((u128)1000000000u << 40) / tick_hz;
    return mult < MULT_MIN ? MULT_MIN : (uint64_t)MAREY__MIN(mult, (u128)MULT_MAX);
}

marey_status marey__clock_map_build(struct marey__clock_map *map,
                                    struct marey__clock_entry *moments, size_t n, uint64_t tick_hz)
{
    map->segments = marey__calloc(n + 1, sizeof *map->segments);
    MAREY__TRY_MEMORY(map->segments != NULL);
    if (n != 0)
        qsort(moments, n, sizeof *moments, by_tick);
    map->n = 0;
    const struct marey__clock_entry *from = n != 0 ? &moments[0] : NULL;
    for (size_t i = 1; i < n; i++) {
        const uint64_t mult = slope(from, &moments[i]);
        if (mult == 0)
            continue; /* an implausible sample is skipped and the segment continues */
        map->segments[map->n++] = (struct marey__clock_segment){from->tick, from->monotonic_ns, mult};
        from = &moments[i];
    }
    if (map->n == 0) {
        const uint64_t mult = slope_of_rate(tick_hz);
        map->segments[0] = (struct marey__clock_segment){
            .tick = n != 0 ? from->tick : 0,
            .base_ns = n != 0 ? from->monotonic_ns : 0,
            .mult = mult,
        };
        map->n = 1;
    }
    return MAREY_OK;
}

void marey__clock_map_fini(struct marey__clock_map *map)
{
    marey__free(map->segments);
    *map = (struct marey__clock_map){0};
}

size_t marey__clock_map_find(const struct marey__clock_map *map, uint64_t tick)
{
    size_t at; /* the segment after the one that contains `tick` */
    MAREY__BISECT(at, 1, map->n, map->segments[at].tick <= tick);
    return at - 1;
}

uint64_t marey__clock_map_ns(const struct marey__clock_map *map, uint64_t tick)
{
    const struct marey__clock_segment *s = &map->segments[marey__clock_map_find(map, tick)];
    if (tick >= s->tick)
        return s->base_ns + (uint64_t)(((u128)(tick - s->tick) * s->mult) >> 40);
    return s->base_ns - (uint64_t)(((u128)(s->tick - tick) * s->mult) >> 40);
}

double marey__clock_map_ns_per_tick(const struct marey__clock_map *map)
{
    if (map->n == 0)
        return 1;
    const struct marey__clock_segment *first = &map->segments[0], *last = &map->segments[map->n - 1];
    /*
     * Over the whole log: a segment may be only a second long, and its ends are uncertain by about
     * 50 ns.
     */
    if (last->tick > first->tick && last->base_ns > first->base_ns)
        return (double)(last->base_ns - first->base_ns) / (double)(last->tick - first->tick);
    return (double)first->mult / (double)(UINT64_C(1) << 40);
}
