/*
 * clock: ticks, the cheapest steady time there is, and what they mean in nanoseconds.
 *
 * Ticks are the raw time-stamp counter when it is invariant and the kernel itself trusts it, else CLOCK_MONOTONIC in
 * nanoseconds. The hot path reads ticks and converts nothing; moments (one instant on three clocks), taken at start, at
 * stop and each second, let the reader convert later, piece by piece.
 */
#ifndef MAREY_CLOCK_INTERNAL_H
#define MAREY_CLOCK_INTERNAL_H

#include <time.h>

#include "base/base_internal.h"
#include <marey/switchboard.h>

/* One instant on three clocks; the tick was read between two monotonic reads `width_ns` apart. */
struct marey__moment {
    uint64_t tick, monotonic_ns, realtime_ns, width_ns;
};

/* Stored by marey__clock_choose alone, before a recording opens; relaxed, as a late event of the one before may look. */
extern bool marey__clock_is_tsc;

static inline uint64_t marey__clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t marey__clock_ticks_of(bool is_tsc)
{
#if defined(__x86_64__)
    if (MAREY_LIKELY(is_tsc))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (MAREY_LIKELY(is_tsc)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    (void)is_tsc;
    return marey__clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t marey__clock_ticks(void)
{
    return marey__clock_ticks_of(__atomic_load_n(&marey__clock_is_tsc, __ATOMIC_RELAXED));
}

/* Whether the counter runs at one rate for good; and whether the kernel uses it as well, which MAREY_CLOCK_AUTO asks for. */
MAREY_PRIVATE_API bool marey__clock_is_invariant(void);
MAREY_PRIVATE_API bool marey__clock_is_trusted(void);
/* Decide which clock ticks come from. Fails only when `want` is MAREY_CLOCK_TSC and it cannot be trusted. */
marey_status marey__clock_choose(enum marey_clock want);
/* "tsc" or "monotonic". */
const char *marey__clock_name(void);
/* Ticks per second as far as is known by now; the moments in the log know better. */
uint64_t marey__clock_hz(void);
/* The present in ticks of the one clock or the other, with the tightest bracket of a few tries. */
MAREY_PRIVATE_API void marey__clock_moment(bool is_tsc, struct marey__moment *out);

#endif
