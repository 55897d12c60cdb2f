/* The clock: which one, its resolution, and the cost of reading it and of recording a range. */
#include <math.h>

#include "doctor/internal.h"
#include "record/internal.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/"

enum { ROUNDS = 9, READS = 4000 };

static void read_name(const char *file, char *out, size_t size)
{
    for (size_t len = marey__read_line(file, out, size); len > 0 && out[len - 1] == ' '; len--)
        out[len - 1] = '\0';
}

/* Why the counter is not used, and how to change that. */
static const char *advice_without_tsc(const char *kernel, const char *available)
{
    const char *options = getenv("MAREY_OPTIONS");
    if (marey__clock_is_trusted())
        return options != NULL && strstr(options, "clock=monotonic") != NULL
                   ? "MAREY_OPTIONS has clock=monotonic; take it out to use the counter"
                   : NULL;
    if (!marey__clock_is_invariant())
        return "nothing to do: this processor, or its hypervisor, offers no invariant counter";
    if (strstr(available, "tsc") != NULL && strcmp(kernel, "tsc") != 0)
        return "write tsc into " CLOCKSOURCE
               "current_clocksource as root, or boot with clocksource=tsc";
    return "the kernel gave the counter up (see dmesg for 'clocksource'); boot with tsc=reliable "
           "if the machine is known to be sound";
}

static void report_clock(struct marey__doctor *doctor, bool is_tsc)
{
    char kernel[64], available[256];
    read_name(CLOCKSOURCE "current_clocksource", kernel, sizeof kernel);
    read_name(CLOCKSOURCE "available_clocksource", available, sizeof available);
    if (is_tsc)
        marey__doctor_ok(doctor, "clock", "tsc: the counter is invariant and the kernel uses it too");
    else
        marey__doctor_limited(doctor, "clock", advice_without_tsc(kernel, available),
                              "monotonic: the kernel's CLOCK_MONOTONIC, which is slower to read");
    if (kernel[0] != '\0')
        marey__doctor_ok(doctor, "clocksource", "%s (available: %s)", kernel, available);
    else
        marey__doctor_off(doctor, "clocksource", "not readable here");
}

/* The counter against CLOCK_MONOTONIC over two milliseconds: accurate to about 1e-5. */
static double frequency_hz(bool is_tsc)
{
    struct marey__moment a, b;
    if (!is_tsc)
        return 1e9;
    marey__clock_moment(true, &a);
    do
        marey__clock_moment(true, &b);
    while (b.monotonic_ns - a.monotonic_ns < 2000000);
    return (double)(b.tick - a.tick) * 1e9 / (double)(b.monotonic_ns - a.monotonic_ns);
}

static double read_cost_ns(bool is_tsc)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t sum = 0;
        const uint64_t start = marey__clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < READS; i++)
            sum += marey__clock_ticks_of(is_tsc);
        const uint64_t ns = marey__clock_ns(CLOCK_MONOTONIC) - start;
        __asm__ volatile("" : : "r"(sum)); /* keep the reads, not their sum */
        best = MAREY__MIN(best, (double)ns / READS);
    }
    return best;
}

/*
 * The typical smallest step between two consecutive reads that differ: the tenth percentile, because a counter that
 * advances in steps of 10 ns occasionally shows a difference of one tick.
 */
static double resolution_ns(bool is_tsc, double hz)
{
    uint64_t steps[READS];
    size_t n = 0;
    uint64_t before = marey__clock_ticks_of(is_tsc);
    for (int i = 0; i < ROUNDS * READS && n < READS; i++) {
        const uint64_t now = marey__clock_ticks_of(is_tsc);
        if (now > before)
            steps[n++] = now - before;
        before = now;
    }
    qsort(steps, n, sizeof steps[0], marey__compare_u64);
    const size_t tenth = n / 10;
    return n > 0 ? (double)steps[tenth] * 1e9 / hz : NAN;
}

void marey__doctor_clock(struct marey__doctor *doctor)
{
    const struct marey__trial *trial = &doctor->trial;
    const bool is_tsc = trial->is_fine ? strcmp(trial->clock, "tsc") == 0 : marey__clock_is_trusted();
    const char *no_recording = "see 'recording' below: without one the cost cannot be measured";
    const double hz = frequency_hz(is_tsc);
    report_clock(doctor, is_tsc);
    marey__doctor_amount(doctor, "frequency", NULL, hz, "Hz");
    marey__doctor_amount(doctor, "resolution", NULL, resolution_ns(is_tsc, hz), "ns");
    marey__doctor_amount(doctor, "cost of a read", NULL, read_cost_ns(is_tsc), "ns");
    if (trial->range_ns > 0) {
        marey__doctor_amount(doctor, "cost of a range", NULL, trial->range_ns, "ns");
        marey__doctor_amount(doctor, "cost of an event", NULL, trial->range_ns / 2, "ns");
    } else {
        marey__doctor_missing(doctor, "cost of a range", no_recording, "not measured");
    }
    if (trial->off_ns > 0)
        marey__doctor_amount(doctor, "cost when off", NULL, trial->off_ns, "ns");
}
