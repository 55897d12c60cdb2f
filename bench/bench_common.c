/* Shared by the benchmarks in C; see bench.h. */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

struct bench_args bench_parse(int argc, char **argv)
{
    struct bench_args args = {.dir = "."};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            args.quick = true;
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            args.dir = argv[++i];
        } else if (strcmp(argv[i], "--results") == 0 && i + 1 < argc) {
            args.results = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--quick] [--dir DIR] [--results FILE]\n", argv[0]);
            exit(2);
        }
    }
    return args;
}

void bench_die(const char *what, marey_status status)
{
    fprintf(stderr, "bench: %s%s%s\n", what, status != MAREY_OK ? ": " : "",
            status != MAREY_OK ? marey_last_error() : "");
    exit(1);
}

/* ---- CPU cores and clocks ---- */

/* The CPU affinity of the process; threads are pinned to these cores. */
static const cpu_set_t *given_cpus(void)
{
    static cpu_set_t given;
    static bool known;
    if (!known && sched_getaffinity(0, sizeof given, &given) != 0)
        bench_die("sched_getaffinity failed", MAREY_OK);
    known = true;
    return &given;
}

int bench_n_cpus(void)
{
    return CPU_COUNT(given_cpus());
}

void bench_pin(int cpu)
{
    const cpu_set_t *given = given_cpus();
    int number = 0;
    for (int seen = -1;; number++) {
        seen += CPU_ISSET(number, given) != 0;
        if (seen == cpu % CPU_COUNT(given))
            break;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        bench_die("sched_setaffinity failed", MAREY_OK);
}

void bench_unpin(void)
{
    sched_setaffinity(0, sizeof(cpu_set_t), given_cpus());
}

static uint64_t ns_of(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t bench_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

uint64_t bench_thread_cpu_ns(void)
{
    return ns_of(CLOCK_THREAD_CPUTIME_ID);
}

double bench_ticks_per_ns(void)
{
    static double known;
    if (known > 0)
        return known;
    const uint64_t ns = bench_ns(), ticks = bench_ticks();
    while (bench_ns() - ns < 20000000)
        ;
    known = (double)(bench_ticks() - ticks) / (double)(bench_ns() - ns);
    return known;
}

/* Not getrusage(2): its peak survives exec(2), so a program started by Python would begin with
 * Python's. */
double bench_max_rss_mb(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    double kb = 0;
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %lf", &kb) == 1)
            break;
    if (kb == 0)
        bench_die("/proc/self/status does not tell the memory", MAREY_OK);
    fclose(status);
    return kb / 1024;
}

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, by_value);
    const double at = q * (double)(n - 1);
    const size_t below = (size_t)at;
    const double rest = at - (double)below;
    return below + 1 < n ? values[below] * (1 - rest) + values[below + 1] * rest : values[n - 1];
}

struct bench_interval bench_median(const double *values, size_t n)
{
    enum { RESAMPLINGS = 1000 };
    double medians[RESAMPLINGS], *sample = malloc(n * sizeof *sample);
    if (sample == NULL)
        bench_die("no memory", MAREY_OK);
    uint64_t random = 88172645463325252u; /* fixed seed for reproducible intervals */
    for (int i = 0; i < RESAMPLINGS; i++) {
        for (size_t k = 0; k < n; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            sample[k] = values[random % n];
        }
        medians[i] = bench_quantile(sample, n, 0.5);
    }
    memcpy(sample, values, n * sizeof *sample);
    const struct bench_interval out = {bench_quantile(medians, RESAMPLINGS, 0.025),
                                       bench_quantile(sample, n, 0.5),
                                       bench_quantile(medians, RESAMPLINGS, 0.975)};
    free(sample);
    return out;
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void bench_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *bench_fresh_path(const struct bench_args *args, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", args->dir, name);
    bench_remove(path);
    return path;
}

double bench_write_mb_s(const struct bench_args *args, uint64_t bytes)
{
    enum { PIECE = 256 << 10 };
    static char piece[PIECE];
    memset(piece, 'k', sizeof piece);
    const char *path = bench_fresh_path(args, "plain-write.bin");
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die("cannot create a file for the plain write", MAREY_OK);
    const uint64_t start = bench_ns();
    for (uint64_t done = 0; done < bytes;) {
        const size_t want = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
        const ssize_t got = write(fd, piece, want);
        if (got <= 0)
            bench_die("the plain write failed", MAREY_OK);
        done += (uint64_t)got;
    }
    if (fdatasync(fd) != 0)
        bench_die("the plain write did not reach the disk", MAREY_OK);
    const double seconds = (double)(bench_ns() - start) / 1e9;
    close(fd);
    bench_remove(path);
    return (double)bytes / 1e6 / seconds;
}

/* ---- results ---- */

void bench_result(const struct bench_args *args, const char *what, const char *bar,
                  enum bench_met met, const char *measured, ...)
{
    static const char *const words[] = {
        [BENCH_NO_BAR] = "", [BENCH_MET] = "yes", [BENCH_MISSED] = "no"};
    char text[256];
    va_list values;
    va_start(values, measured);
    vsnprintf(text, sizeof text, measured, values);
    va_end(values);
    printf("  %-44s %s%s%s%s%s\n", what, text, *bar != '\0' ? "   bar: " : "", bar,
           *bar != '\0' ? "   met: " : "", words[met]);
    if (args->results == NULL)
        return;
    FILE *out = fopen(args->results, "a");
    if (out == NULL)
        bench_die("cannot append to the results", MAREY_OK);
    fprintf(out, "%s\t%s\t%s\t%s\n", what, text, bar, words[met]);
    fclose(out);
}
