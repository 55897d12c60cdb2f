/*
 * bench.h: what the benchmarks share: arguments, pinning, medians with an interval, and lines for the closing table.
 *
 * A benchmark prints its details to stdout as it goes. What has a bar goes to the file named by --results as well, one
 * line of four fields between tabs (what, measured, bar, met?), from which bench/run makes its table.
 */
#ifndef MAREY_BENCH_H
#define MAREY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <marey/marey.h>

struct bench_args {
    bool quick;          /* --quick: enough to see that it works, not to quote */
    const char *dir;     /* --dir: where recordings and files go; "." by default */
    const char *results; /* --results: appended to; NULL: none */
};

/* Read the arguments; an unknown one ends the program. */
struct bench_args bench_parse(int argc, char **argv);

/* End the program with a sentence; marey's own last error is added when `status` is a failure. */
void bench_die(const char *what, marey_status status) __attribute__((noreturn));

/* Keep this thread on one processor, or let it run anywhere again. Threads started meanwhile inherit it. */
void bench_pin(int cpu);
void bench_unpin(void);
int bench_n_cpus(void);

uint64_t bench_ns(void);
uint64_t bench_thread_cpu_ns(void);

static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return bench_ns();
#endif
}

/* Ticks for a nanosecond, measured over some milliseconds the first time. */
double bench_ticks_per_ns(void);

/* A median and the middle 95 % of the medians of a thousand resamplings. */
struct bench_interval {
    double low, mid, high;
};
struct bench_interval bench_median(const double *values, size_t n);
/* The value below which the share `q` of `values` lies; sorts them. */
double bench_quantile(double *values, size_t n, double q);

/* Resident memory at its highest, of this process so far. */
double bench_max_rss_mb(void);

/* A directory below args->dir, without whatever was there before; and away with it. */
const char *bench_fresh_path(const struct bench_args *args, const char *name);
void bench_remove(const char *path);

/* Megabytes per second of a plain write(2) of `bytes` to a file in the directory, by 256 KiB, then fdatasync(2). */
double bench_write_mb_s(const struct bench_args *args, uint64_t bytes);

enum bench_met { BENCH_NO_BAR, BENCH_MET, BENCH_MISSED };
static inline enum bench_met bench_met_if(bool met)
{
    return met ? BENCH_MET : BENCH_MISSED;
}

/* One line of the closing table; `bar` in words, "" without one. */
void bench_result(const struct bench_args *args, const char *what, const char *bar,
                  enum bench_met met, const char *measured, ...)
    __attribute__((format(printf, 5, 6)));

#endif
