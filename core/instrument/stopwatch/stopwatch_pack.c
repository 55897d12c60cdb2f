/*
 * The results of this process as bytes. They are made under the lock from what stands there at that moment;
 * docs/formats/stopwatch.md has their layout.
 */
#include <string.h>

#include "instrument/stopwatch/internal.h"

static void put_u32(struct marey__buf *out, uint32_t value)
{
    const unsigned char b[] = {(unsigned char)value, (unsigned char)(value >> 8),
                               (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    marey__buf_put(out, b, sizeof b);
}

static void put_u64(struct marey__buf *out, uint64_t value)
{
    put_u32(out, (uint32_t)value);
    put_u32(out, (uint32_t)(value >> 32));
}

static void put_f64(struct marey__buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(out, bits);
}

/* A sum and `n_zeros` zeros. False without memory. */
static bool put_sum(struct marey__buf *out, const struct marey__stopwatch_sum *sum,
                    uint64_t n_zeros, double scale)
{
    struct marey__spread spread;
    if (!marey__spread_of(sum, n_zeros, scale, &spread))
        return false;
    put_u64(out, spread.count);
    put_f64(out, spread.total);
    put_f64(out, spread.m2);
    put_f64(out, spread.min);
    put_f64(out, spread.max);
    put_u32(out, (uint32_t)spread.n);
    for (size_t i = 0; i < spread.n; i++) {
        put_u32(out, spread.points[i].key);
        put_u64(out, spread.points[i].count);
    }
    marey__spread_fini(&spread);
    return true;
}

/* ---- all names; the lock is held ---- */

static bool put_name(struct marey__buf *out, const char *name, size_t len)
{
    put_u32(out, (uint32_t)len);
    marey__buf_put(out, name, len);
    return len <= UINT32_MAX;
}

static bool put_slot(struct marey__buf *out, const struct marey__stopwatch_slot *slot, double tick_ns)
{
    size_t len;
    const char *const name = marey_site_name(slot->id, &len);
    struct marey__stopwatch_sum sum = {0};
    uint64_t n_threads;
    const struct marey__stopwatch_sum *const periods = &slot->periods.sum;
    const bool ok =
        put_name(out, name, len) && marey__stopwatch_sum_of_threads(slot, &sum, &n_threads) &&
        put_sum(out, &sum, 0, tick_ns) &&
        put_sum(out, periods, marey__stopwatch_state.n_measured - periods->sketch.count, tick_ns);
    marey__stopwatch_sum_clear(&sum);
    return ok;
}

static bool put_results(struct marey__buf *out, int64_t rank)
{
    static const struct marey__stopwatch_sum nothing;
    const struct marey__stopwatch_state *const watch = &marey__stopwatch_state;
    const double tick_ns = marey__stopwatch_tick_ns();
    const bool has_whole = watch->n_measured > 0;
    marey__buf_puts(out, MAREY__PACK_MAGIC);
    put_u32(out, (uint32_t)(watch->listed.n + has_whole));
    put_u64(out, (uint64_t)rank);
    put_u64(out, watch->n_measured);
    if (has_whole && (!put_name(out, MAREY__WATCH_WHOLE, strlen(MAREY__WATCH_WHOLE)) ||
                      !put_sum(out, &nothing, 0, 1) || !put_sum(out, &watch->whole.sum, 0, 1)))
        return false;
    for (size_t i = 0; i < watch->listed.n; i++)
        if (!put_slot(out, watch->listed.all[i], tick_ns))
            return false;
    return !out->failed;
}

marey_status marey_stopwatch_pack(int64_t rank, void **data, size_t *len)
{
    struct marey__buf out = {0};
    marey__stopwatch_lock();
    const bool ok = put_results(&out, rank);
    marey__stopwatch_unlock();
    if (!ok) {
        marey__buf_fini(&out);
        return marey__no_memory();
    }
    *data = out.data;
    *len = out.len;
    return MAREY_OK;
}
