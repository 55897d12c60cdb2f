/* Choosing the clock, measuring its rate, and sampling three clocks at once. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "record/internal.h"

bool marey__clock_is_tsc;

#if defined(__x86_64__)
#include <cpuid.h>

bool marey__clock_is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
}

/*
 * The kernel checks its clock source on all sockets; if it abandoned "tsc" (a hypervisor that migrates, sockets out of
 * sync), we do too. kvm-clock and Hyper-V clock pages also use the counter, but such guests may be migrated.
 */
static bool kernel_trusts_counter(void)
{
    char name[32] = "";
    const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    return n >= 4 && memcmp(name, "tsc\n", 4) == 0;
}

bool marey__clock_is_trusted(void)
{
    return marey__clock_is_invariant() && kernel_trusts_counter();
}
#else
bool marey__clock_is_invariant(void)
{
#if defined(__aarch64__)
    return true; /* the architecture guarantees a system-wide counter with a fixed rate */
#else
    return false;
#endif
}

bool marey__clock_is_trusted(void)
{
    return marey__clock_is_invariant();
}
#endif

marey_status marey__clock_choose(enum marey_clock want)
{
    const bool trusted = want != MAREY_CLOCK_MONOTONIC && marey__clock_is_trusted();
    if (want == MAREY_CLOCK_TSC && !trusted)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "clock=tsc: this machine's time-stamp counter is not invariant or the "
                           "kernel does not use it; leave clock=auto");
    __atomic_store_n(&marey__clock_is_tsc, trusted, __ATOMIC_RELAXED);
    return MAREY_OK;
}

const char *marey__clock_name(void)
{
    return marey__clock_is_tsc ? "tsc" : "monotonic";
}

void marey__clock_moment(bool is_tsc, struct marey__moment *out)
{
    enum { TRIES = 8 };
    struct marey__moment best = {.width_ns = UINT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
        const uint64_t tick = marey__clock_ticks_of(is_tsc);
        const uint64_t real = marey__clock_ns(CLOCK_REALTIME);
        const uint64_t after = marey__clock_ns(CLOCK_MONOTONIC);
        if (after - before < best.width_ns)
            best = (struct marey__moment){.tick = tick,
                                          .monotonic_ns = before + (after - before) / 2,
                                          .realtime_ns = real,
                                          .width_ns = after - before};
    }
    /* If ticks are nanoseconds, make the conversion exactly the identity. */
    if (!is_tsc)
        best.monotonic_ns = best.tick;
    *out = best;
}

uint64_t marey__clock_hz(void)
{
    static uint64_t hz; /* any thread's measured value is equally good */
    if (!marey__clock_is_tsc)
        return 1000000000u;
    uint64_t known = __atomic_load_n(&hz, __ATOMIC_RELAXED);
    if (known != 0)
        return known;
    struct marey__moment a, b;
    marey__clock_moment(true, &a);
    do
        marey__clock_moment(true, &b);
    while (b.monotonic_ns - a.monotonic_ns < 200000); /* 0.2 ms: to about 1e-4, once per process */
    known = (uint64_t)((double)(b.tick - a.tick) * 1e9 / (double)(b.monotonic_ns - a.monotonic_ns));
    __atomic_store_n(&hz, known, __ATOMIC_RELAXED);
    return known;
}
