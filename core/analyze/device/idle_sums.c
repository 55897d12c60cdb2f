/* Sums of idle time: by reason and step in arrays, by name in a map. */
#include <assert.h>

#include "analyze/device/internal.h"

/*
 * A sum's key: 4 bits of reason, 21 of the name's number plus one, 18 of lane, 21 of device. Sums are per thread: a
 * thread's times come in order of gaps, so comparing with the last gap is enough to count each gap once.
 */
enum { NAME_BITS = 21, LANE_BITS = 18, REASON_BITS = 4 };
static_assert(MAREY__N_IDLE_REASONS <= 1 << REASON_BITS, "fits the key");

static uint64_t key_of(const struct marey__idle_time *time)
{
    const uint64_t name = time->name == MAREY__NO_NAME ? 0 : (uint64_t)time->name + 1;
    return (((uint64_t)time->gap->device << LANE_BITS | time->lane) << NAME_BITS | name)
               << REASON_BITS |
           time->reason;
}

static void add_to_steps(struct marey__idle_finder *finder, const struct marey__idle_time *time)
{
    const size_t n = finder->idle->n_steps, first = time->gap->device * n;
    const struct marey__interval *windows = finder->windows->steps + first;
    size_t low; /* earlier windows begin before the time ends */
    MAREY__BISECT(low, 0, n, windows[low].begin_ns < time->end_ns);
    uint64_t *step_ns = finder->idle->devices[time->gap->device].step_ns;
    while (low-- > 0 && finder->latest_ns[first + low] > time->begin_ns) {
        const uint64_t begin = MAREY__MAX(windows[low].begin_ns, time->begin_ns),
                       end = MAREY__MIN(windows[low].end_ns, time->end_ns);
        if (end > begin)
            step_ns[low * MAREY__N_IDLE_REASONS + time->reason] += end - begin;
    }
}

/* The part of the time within the window to be explained. */
static uint64_t wanted_ns(const struct marey__idle_finder *finder, const struct marey__idle_time *time)
{
    const struct marey__idle_windows *windows = finder->windows;
    const size_t device = time->gap->device;
    const struct marey__interval *whole = windows->whole + windows->stride * device;
    const size_t n = windows->n_whole != NULL ? windows->n_whole[device] : 1;
    uint64_t ns = 0;
    size_t low; /* the first that ends after the begin */
    MAREY__BISECT(low, 0, n, whole[low].end_ns <= time->begin_ns);
    for (; low < n && whole[low].begin_ns < time->end_ns; low++)
        ns += MAREY__MIN(time->end_ns, whole[low].end_ns) -
              MAREY__MAX(time->begin_ns, whole[low].begin_ns);
    return ns;
}

bool marey__idle_add(struct marey__idle_finder *finder, const struct marey__idle_time *time)
{
    if (time->end_ns <= time->begin_ns)
        return true;
    if (finder->idle->n_steps != 0)
        add_to_steps(finder, time);
    const uint64_t ns = wanted_ns(finder, time);
    if (ns == 0)
        return true;
    const uint64_t key = key_of(time);
    const uint32_t number =
        MAREY__MAP_NUMBER(&finder->by_key, finder->sums, finder->n_sums, finder->sums_cap, key);
    if (number == 0)
        return false;
    struct marey__idle_device *device = &finder->idle->devices[time->gap->device];
    device->ns[time->reason] += ns;
    device->count[time->reason] += (time->gap->reasons >> time->reason & 1u) == 0;
    time->gap->reasons |= (uint16_t)(1u << time->reason);
    struct marey__idle_sum *sum = &finder->sums[number - 1];
    if (sum->count == 0 || sum->last_gap != time->gap_number)
        sum->count++;
    sum->last_gap = time->gap_number;
    sum->ns += ns;
    return true;
}

/* ---- rows ---- */

/* The key without the thread: device, operator and reason. */
static uint64_t row_key(const struct marey__idle_sum *sum)
{
    const uint64_t low = ((uint64_t)1 << (NAME_BITS + REASON_BITS)) - 1;
    const uint64_t device = sum->key >> (NAME_BITS + REASON_BITS + LANE_BITS);
    return device << (NAME_BITS + REASON_BITS) | (sum->key & low);
}

MAREY__ORDER(by_row, struct marey__idle_sum, MAREY__UP_BY(row_key(x), row_key(y)))

MAREY__ORDER(by_time, struct marey__idle_row, MAREY__DOWN(ns) MAREY__UP(reason) MAREY__UP(name))

/* Sort the sums and merge those of one row. Returns the number of rows. */
static size_t merge_threads(struct marey__idle_sum *sums, size_t n)
{
    size_t n_rows = 0;
    if (n != 0)
        qsort(sums, n, sizeof *sums, by_row);
    for (size_t i = 0; i < n; i++) {
        if (n_rows != 0 && row_key(&sums[n_rows - 1]) == row_key(&sums[i])) {
            sums[n_rows - 1].ns += sums[i].ns;
            sums[n_rows - 1].count += sums[i].count;
        } else {
            sums[n_rows++] = sums[i];
        }
    }
    return n_rows;
}

static size_t device_of(const struct marey__idle_sum *sum)
{
    return (size_t)(row_key(sum) >> (NAME_BITS + REASON_BITS));
}

static struct marey__idle_row make_row(const struct marey__idle_sum *sum)
{
    const uint32_t name = (uint32_t)(sum->key >> REASON_BITS) & (((uint32_t)1 << NAME_BITS) - 1);
    return (struct marey__idle_row){
        .reason = (enum marey__idle_reason)(sum->key & ((1u << REASON_BITS) - 1)),
        .name = name == 0 ? MAREY__NO_NAME : name - 1,
        .ns = sum->ns,
        .count = sum->count,
    };
}

bool marey__idle_make_rows(struct marey__idle_finder *finder)
{
    const size_t n = merge_threads(finder->sums, finder->n_sums);
    for (size_t i = 0; i < n;) {
        struct marey__idle_device *device = &finder->idle->devices[device_of(&finder->sums[i])];
        size_t end = i + 1;
        while (end < n && device_of(&finder->sums[end]) == device_of(&finder->sums[i]))
            end++;
        device->rows = marey__calloc(end - i, sizeof *device->rows);
        if (device->rows == NULL)
            return false;
        while (i < end)
            device->rows[device->n_rows++] = make_row(&finder->sums[i++]);
        qsort(device->rows, device->n_rows, sizeof *device->rows, by_time);
    }
    return true;
}
