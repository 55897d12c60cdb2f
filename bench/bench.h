/*
 * bench.h: shared by the benchmarks: arguments, pinning, medians with intervals, and rows of the
 * final table.
 *
 * A benchmark prints details to stdout. Results with a bar also go to the file --results, one line
 * of four tab-separated fields (what, measured, bar, met?), from which bench/run makes its table.
 */
#ifndef MAREY_BENCH_H
#define MAREY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <marey/marey.h>

struct bench_args {
    bool quick;          /* --quick: a short run that only shows that it works */
    const char *dir;     /* --dir: directory of recordings and files; "." by default */
    const char *results; /* --results: appended to; NULL: none */
};

/* Read the arguments; an unknown one ends the program. */
struct bench_args bench_parse(int argc, char **argv);

/* Exit with a message; adds marey's last error if `status` is a failure. */
void bench_die(const char *what, marey_status status) __attribute__((noreturn));

/* Pin this thread to one CPU core, or unpin it. New threads inherit the affinity. */
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

/* Ticks per nanosecond, measured over some milliseconds in the first call. */
double bench_ticks_per_ns(void);

/* A median and the middle 95 % of the medians of 1000 resamples. */
struct bench_interval {
    double low, mid, high;
};
struct bench_interval bench_median(const double *values, size_t n);
/* The value below which the share `q` of `values` lies; sorts them. */
double bench_quantile(double *values, size_t n, double q);

/* Peak resident memory of this process so far. */
double bench_max_rss_mb(void);

/* Create an empty directory below args->dir, removing an existing one; remove it. */
const char *bench_fresh_path(const struct bench_args *args, const char *name);
void bench_remove(const char *path);

/* Megabytes per second of plain write(2) of `bytes` to a file in the directory, in blocks of 256
 * KiB, then fdatasync(2). */
double bench_write_mb_s(const struct bench_args *args, uint64_t bytes);

enum bench_met { BENCH_NO_BAR, BENCH_MET, BENCH_MISSED };
static inline enum bench_met bench_met_if(bool met)
{
    return met ? BENCH_MET : BENCH_MISSED;
}

/* One row of the final table; `bar` as text, "" without one. */
void bench_result(const struct bench_args *args, const char *what, const char *bar,
                  enum bench_met met, const char *measured, ...)
    __attribute__((format(printf, 5, 6)));

#endif
