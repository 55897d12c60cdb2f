/*
 * One point of a growth curve: record a number of events with a number of names, threads and
 * processes, and print the cost for the program. bench_growth.py runs it point by point and makes
 * the tables.
 *
 *   bench_growth record --path DIR [--events N] [--names N] [--used N] [--threads N] [--processes N] [--push 1]
 *                [--pace EVENTS_PER_S] [--pool MB] [--abandon 1]
 *   bench_growth open DIR            time to open the recording and close it again
 *   bench_growth time COMMAND...     time and memory of a command, its standard output thrown away
 *   bench_growth clock               T, one read of the clock
 *
 * The output is one JSON object on one line. Each range has a random name, so that neither
 * compression nor caches are favored. Threads are measured by CPU time, so even more threads than
 * cores show the cost of an event. Without --processes the program itself records; with it, that
 * many forked children record into one recording. A pace is kept by sleeping between bursts.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "training_trace.h"

enum { THREADS_MAX = 256, PROCESSES_MAX = 256, NAME_BYTES = 32, BURST = 1024 };

/* The workload. */
static struct {
    const char *path;
    uint64_t n_events;        /* over all threads and processes; a range is two */
    uint64_t n_names, n_used; /* number of names, and of those used; 0: all */
    uint64_t n_threads, n_processes;
    uint64_t events_per_s; /* in total; 0: full speed */
    uint64_t pool_mb;      /* 0: the default */
    uint64_t by_push;      /* by string instead of by id */
    uint64_t is_abandoned; /* processes end by _exit: readers must finalize */
} point = {.n_events = 1000000, .n_names = 16, .n_threads = 1};

/* Results: of one thread, then of one process. */
struct thread_cost {
    double range_ns, first_ns;
    pthread_t thread;
};

struct process_cost {
    double range_ns; /* median over its threads */
    double first_ns; /* the first range: the thread attaches; a child opens its log */
    double rss_mb, new_name_ns;
    uint64_t n_kept, n_lost, log_bytes;
};

static marey_id *ids;
static char (*names)[NAME_BYTES];

/* ---- threads ---- */

static void put_burst(uint64_t n_events, uint64_t *random)
{
    for (uint64_t i = 0; i < n_events / 2; i++) {
        const size_t k = (size_t)((training_random(random) >> 32) * point.n_used >> 32);
        if (point.by_push) {
            marey_push(names[k]);
            marey_pop();
        } else {
            marey_begin(ids[k]);
            marey_end(ids[k]);
        }
    }
}

/* The difference of two consecutive reads of the thread's CPU time. */
static uint64_t cpu_clock_ns(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        const uint64_t before = bench_thread_cpu_ns(), gone = bench_thread_cpu_ns() - before;
        least = gone < least ? gone : least;
    }
    return least;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u),
                                .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

/* CPU time of `n_events` in bursts at fixed times. */
static uint64_t time_paced(uint64_t n_events, double ns_each, uint64_t *random)
{
    const uint64_t clock_ns = cpu_clock_ns(), start = bench_ns();
    uint64_t sum = 0;
    for (uint64_t done = 0; done < n_events;) {
        const uint64_t n = n_events - done < BURST ? n_events - done : BURST;
        const uint64_t begin = bench_thread_cpu_ns();
        put_burst(n, random);
        const uint64_t gone = bench_thread_cpu_ns() - begin;
        sum += gone > clock_ns ? gone - clock_ns : 0;
        done += n;
        sleep_until(start + (uint64_t)((double)done * ns_each));
    }
    return sum;
}

static uint64_t n_writers(void)
{
    return point.n_threads * (point.n_processes > 0 ? point.n_processes : 1);
}

/* CPU time of this thread per range, including about 2 ns for the loop and the choice of a name. */
static double time_range(uint64_t n_events)
{
    uint64_t random = 88172645463325252u + (uint64_t)gettid(), ns;
    n_events &= ~UINT64_C(1);
    if (point.events_per_s > 0) {
        ns = time_paced(n_events, 1e9 * (double)n_writers() / (double)point.events_per_s, &random);
    } else {
        const uint64_t begin = bench_thread_cpu_ns();
        put_burst(n_events, &random);
        ns = bench_thread_cpu_ns() - begin;
    }
    return 2 * (double)ns / (double)n_events;
}

static double time_first_range(void)
{
    const uint64_t begin = bench_thread_cpu_ns();
    {
        MAREY_SCOPE("first");
    }
    return (double)(bench_thread_cpu_ns() - begin);
}

static void *run_thread(void *arg)
{
    struct thread_cost *cost = arg;
    cost->first_ns = time_first_range();
    cost->range_ns = time_range(point.n_events / n_writers());
    return NULL;
}

/* ---- processes ---- */

static void start(void)
{
    bench_remove(point.path);
    const struct marey_options options = {
        .path = point.path, .pool_bytes = point.pool_mb << 20, .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
}

static void make_names(void)
{
    ids = calloc(point.n_names, sizeof *ids);
    names = calloc(point.n_names, sizeof *names);
    if (ids == NULL || names == NULL)
        bench_die("no memory for the names", MAREY_OK);
    for (uint64_t i = 0; i < point.n_names; i++)
        snprintf(names[i], sizeof names[i], "name %llu", (unsigned long long)i);
}

/* Intern each name while the recording is open, so that the time includes writing it to the log. */
static double register_names(void)
{
    const uint64_t begin = bench_thread_cpu_ns();
    for (uint64_t i = 0; i < point.n_names; i++)
        ids[i] = marey_site_intern(names[i], strlen(names[i]), NULL, 0, NULL, 0);
    return (double)(bench_thread_cpu_ns() - begin) / (double)point.n_names;
}

static void run_threads(struct process_cost *cost)
{
    static struct thread_cost threads[THREADS_MAX];
    double range_ns[THREADS_MAX], first_ns[THREADS_MAX];
    const size_t n = (size_t)point.n_threads;
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]) != 0)
            bench_die("cannot start a thread", MAREY_OK);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i].thread, NULL);
        range_ns[i] = threads[i].range_ns;
        first_ns[i] = threads[i].first_ns;
    }
    cost->range_ns = bench_quantile(range_ns, n, 0.5);
    cost->first_ns = bench_quantile(first_ns, n, 0.5);
}

static void run_process(struct process_cost *cost)
{
    cost->new_name_ns = register_names();
    run_threads(cost);
    cost->rss_mb = bench_max_rss_mb();
    if (!point.is_abandoned && marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    struct marey_counts counts;
    marey_counts_get(&counts);
    cost->n_kept = counts.events;
    cost->n_lost = counts.lost_events;
    cost->log_bytes = counts.log_bytes;
}

/* ---- several processes ---- */

/* Shared with the children, which start together. */
struct shared {
    pthread_barrier_t barrier;
    struct process_cost costs[PROCESSES_MAX];
};

static struct shared *make_shared(size_t n)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attributes;
    if (shared == MAP_FAILED)
        bench_die("no memory to share", MAREY_OK);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)n);
    return shared;
}

static void run_processes(struct process_cost *costs, size_t n)
{
    struct shared *shared = make_shared(n);
    fflush(NULL);
    for (size_t i = 0; i < n; i++) {
        const pid_t child = fork();
        if (child < 0)
            bench_die("cannot fork", MAREY_OK);
        if (child == 0) {
            pthread_barrier_wait(&shared->barrier);
            run_process(&shared->costs[i]);
            _exit(0);
        }
    }
    for (size_t i = 0; i < n; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            bench_die("a process did not end well", MAREY_OK);
    }
    memcpy(costs, shared->costs, n * sizeof *costs);
    if (!point.is_abandoned && marey_stop() != MAREY_OK) /* it would finalize the children's logs */
        bench_die("cannot stop", MAREY_EIO);
}

static void print_costs(const struct process_cost *costs, size_t n, double seconds)
{
    double range_ns[PROCESSES_MAX], first_ns[PROCESSES_MAX], rss_mb[PROCESSES_MAX];
    uint64_t n_kept = 0, n_lost = 0, log_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        range_ns[i] = costs[i].range_ns;
        first_ns[i] = costs[i].first_ns;
        rss_mb[i] = costs[i].rss_mb;
        n_kept += costs[i].n_kept;
        n_lost += costs[i].n_lost;
        log_bytes += costs[i].log_bytes;
    }
    printf("{\"range_ns\": %.3f, ", bench_quantile(range_ns, n, 0.5));
    printf("\"first_us\": %.1f, \"new_name_ns\": %.1f, ", bench_quantile(first_ns, n, 0.5) / 1e3,
           costs[0].new_name_ns);
    printf("\"rss_mb\": %.2f, \"kept\": %llu, \"lost\": %llu, ", bench_quantile(rss_mb, n, 0.5),
           (unsigned long long)n_kept, (unsigned long long)n_lost);
    printf("\"log_bytes\": %llu, \"seconds\": %.4f}\n", (unsigned long long)log_bytes, seconds);
}

static int record(void)
{
    static struct process_cost costs[PROCESSES_MAX];
    if (point.n_threads - 1 >= THREADS_MAX || point.n_processes > PROCESSES_MAX)
        bench_die("between 1 and 256 threads, and at most 256 processes", MAREY_OK);
    if (point.n_names == 0)
        bench_die("at least one name", MAREY_OK);
    if (point.n_used == 0 || point.n_used > point.n_names)
        point.n_used = point.n_names;
    make_names();
    start();
    const uint64_t begin = bench_ns();
    if (point.n_processes == 0)
        run_process(&costs[0]);
    else
        run_processes(costs, (size_t)point.n_processes);
    print_costs(costs, point.n_processes == 0 ? 1 : (size_t)point.n_processes,
                (double)(bench_ns() - begin) / 1e9);
    fflush(NULL);
    if (point.is_abandoned)
        _exit(0);
    return 0;
}

/* ---- afterwards ---- */

static int open_it(const char *path)
{
    marey_recording *recording;
    const uint64_t begin = bench_ns();
    const marey_status st = marey_recording_open(path, &recording);
    if (st != MAREY_OK)
        bench_die("cannot open the recording", st);
    marey_recording_close(recording);
    printf("{\"seconds\": %.6f, \"rss_mb\": %.2f}\n", (double)(bench_ns() - begin) / 1e9,
           bench_max_rss_mb());
    return 0;
}

static double in_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Not started from Python: a child's peak includes its parent's size at the fork, which is 2 MB
 * here. */
static int time_command(char **command)
{
    const uint64_t begin = bench_ns();
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
            execv(command[0], command);
        _exit(127);
    }
    struct rusage usage;
    int status = 0;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0)
        bench_die("the command could not be run, or failed", MAREY_OK);
    printf("{\"seconds\": %.4f, \"cpu_seconds\": %.4f, \"rss_mb\": %.2f}\n",
           (double)(bench_ns() - begin) / 1e9,
           in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime), (double)usage.ru_maxrss / 1024);
    return 0;
}

static int time_clock(void)
{
    enum { N = 1 << 20, ROUNDS = 15 };
    double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = bench_thread_cpu_ns();
        for (int i = 0; i < N; i++) {
            (void)bench_ticks();
            __asm__ volatile("" ::: "memory");
        }
        ns[round] = (double)(bench_thread_cpu_ns() - begin) / N;
    }
    printf("{\"t_ns\": %.2f}\n", bench_quantile(ns, ROUNDS, 0.5));
    return 0;
}

/* ---- arguments ---- */

static int usage(void)
{
    fprintf(stderr, "usage: bench_growth record --path DIR [--NAME NUMBER...] | open DIR | time "
                    "COMMAND... | clock\n");
    return 2;
}

/* Whether `name` is an option of a point; sets it to `value`. */
static bool take_option(const char *name, const char *value)
{
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {
        {"--events", &point.n_events},       {"--names", &point.n_names},
        {"--used", &point.n_used},           {"--threads", &point.n_threads},
        {"--processes", &point.n_processes}, {"--pace", &point.events_per_s},
        {"--pool", &point.pool_mb},          {"--push", &point.by_push},
        {"--abandon", &point.is_abandoned},
    };
    if (strcmp(name, "--path") == 0) {
        point.path = value;
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].number = strtoull(value, NULL, 10);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "clock") == 0)
        return time_clock();
    if (argc == 3 && strcmp(argv[1], "open") == 0)
        return open_it(argv[2]);
    if (argc > 2 && strcmp(argv[1], "time") == 0)
        return time_command(argv + 2);
    if (argc < 4 || argc % 2 != 0 || strcmp(argv[1], "record") != 0)
        return usage();
    for (int i = 2; i < argc; i += 2)
        if (!take_option(argv[i], argv[i + 1]))
            return usage();
    return point.path != NULL ? record() : usage();
}
