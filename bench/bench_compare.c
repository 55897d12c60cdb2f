/*
 * `marey compare` of two long recordings with many iterations and ranges: wall time of reading,
 * summarizing and comparing, in a separate process. Both are real recordings of empty ranges.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { N_RANGES = 50 };

static struct bench_args args;
static marey_id ranges[N_RANGES];

static void name_ranges(void)
{
    for (int i = 0; i < N_RANGES; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "range %d", i);
        ranges[i] = marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
    }
}

static void record(const char *path, uint64_t n_iterations)
{
    const struct marey_options options = {
        .path = path, .policy = MAREY_BLOCK, .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    marey_iteration_reset();
    marey_iteration_set_warmup(10);
    for (uint64_t i = 0; i < n_iterations; i++) {
        for (int r = 0; r < N_RANGES; r++) {
            marey_begin(ranges[r]);
            marey_end(ranges[r]);
        }
        marey_iteration_finish();
    }
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
}

static double compare(const char *a, const char *b)
{
    const char *const paths[] = {a, b};
    marey_report *report;
    const uint64_t begin = bench_ns();
    const marey_status st = marey_report_create_files("compare", paths, 2, NULL, &report);
    if (st != MAREY_OK)
        bench_die("cannot compare", st);
    if (marey_table_n_rows(marey_report_table(report, "ranges")) != N_RANGES)
        bench_die("ranges are missing", MAREY_OK);
    marey_report_destroy(report);
    return (double)(bench_ns() - begin) / 1e9;
}

/* In a child, to get its peak memory. */
static double compare_apart(const char *a, const char *b, double *cpu_seconds, double *rss_mb)
{
    int ends[2];
    double seconds = 0;
    struct rusage usage;
    if (pipe(ends) != 0)
        bench_die("no pipe", MAREY_OK);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        seconds = compare(a, b);
        _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds || wait4(child, NULL, 0, &usage) < 0)
        bench_die("a comparison did not end well", MAREY_OK);
    close(ends[0]);
    *cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    *rss_mb = (double)usage.ru_maxrss / 1024;
    return seconds;
}

int main(int argc, char **argv)
{
    enum { REPEATS = 3 };
    char paths[2][4096];
    double seconds[REPEATS], cpu_seconds = 0, rss_mb = 0;
    args = bench_parse(argc, argv);
    const uint64_t n = args.quick ? 50000 : 1000000;
    name_ranges();
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s",
                 bench_fresh_path(&args, i == 0 ? "compare-a.marey" : "compare-b.marey"));
        record(paths[i], n);
    }
    for (int i = 0; i < REPEATS; i++)
        seconds[i] = compare_apart(paths[0], paths[1], &cpu_seconds, &rss_mb);
    const double median = bench_median(seconds, REPEATS).mid;
    const double bar = 5 * (double)n / 1e6;
    char what[128], bar_text[32];
    snprintf(what, sizeof what, "Compare two recordings, %g iterations x %d ranges each", (double)n,
             N_RANGES);
    snprintf(bar_text, sizeof bar_text, "<= %g s", bar);
    bench_result(&args, what, bar_text, bench_met_if(median <= bar),
                 "%.2f s (%.1f s of processor time), %.0f MB resident", median, cpu_seconds, rss_mb);
    bench_remove(paths[0]);
    bench_remove(paths[1]);
    return 0;
}
