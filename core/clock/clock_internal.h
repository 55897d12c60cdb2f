/*
 * clock: ticks, the cheapest steady time there is, and what they mean in nanoseconds.
 *
 * Ticks are the raw time-stamp counter when it is invariant and the kernel itself trusts it, else CLOCK_MONOTONIC in
 * nanoseconds. The hot path reads ticks and converts nothing; moments (one instant on three clocks), taken at start, at
 * stop and each second, let the reader convert later, piece by piece.
 */
#ifndef KYMO_CLOCK_INTERNAL_H
#define KYMO_CLOCK_INTERNAL_H

#include <time.h>

#include "base/base_internal.h"
#include <kymo/switchboard.h>

/* One instant on three clocks; the tick was read between two monotonic reads `width_ns` apart. */
struct kymo__moment {
    uint64_t tick, monotonic_ns, realtime_ns, width_ns;
};

/* Stored by kymo__clock_choose alone, before a recording opens; relaxed, as a late event of the one before may look. */
extern bool kymo__clock_is_tsc;

static inline uint64_t kymo__clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t kymo__clock_ticks_of(bool is_tsc)
{
#if defined(__x86_64__)
    if (KYMO_LIKELY(is_tsc))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (KYMO_LIKELY(is_tsc)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    (void)is_tsc;
    return kymo__clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t kymo__clock_ticks(void)
{
    return kymo__clock_ticks_of(__atomic_load_n(&kymo__clock_is_tsc, __ATOMIC_RELAXED));
}

/* Whether the counter runs at one rate for good; and whether the kernel uses it as well, which KYMO_CLOCK_AUTO asks for. */
KYMO_PRIVATE_API bool kymo__clock_is_invariant(void);
KYMO_PRIVATE_API bool kymo__clock_is_trusted(void);
/* Decide which clock ticks come from. Fails only when `want` is KYMO_CLOCK_TSC and it cannot be trusted. */
kymo_status kymo__clock_choose(enum kymo_clock want);
/* "tsc" or "monotonic". */
const char *kymo__clock_name(void);
/* Ticks per second as far as is known by now; the moments in the log know better. */
uint64_t kymo__clock_hz(void);
/* The present in ticks of the one clock or the other, with the tightest bracket of a few tries. */
KYMO_PRIVATE_API void kymo__clock_moment(bool is_tsc, struct kymo__moment *out);

#endif
