/*
 * Cost of a range for its thread, in C.
 *
 * One pinned thread runs all candidates in each round, in rotating order, and each candidate's time
 * is divided by that of two bare clock reads in the same round, so that disturbances cancel. The
 * figure is the median of these ratios. Memory states differ:
 *
 *   enabled     the pool is a small, reused ring (policy keep-newest): only the range
 *   first touch the first events after marey_start: the pool grows, the thread attaches
 *   streaming   at full speed into the log; the flush thread compresses and writes on another core
 *
 * Then the same with cold caches, and on several threads.
 *
 * Ranges also go to an NVTX tool. Without a tool this must cost almost nothing compared with
 * nvtx=0; with a tool that only counts, a child process measures the cost. In the other direction,
 * libmarey-nvtx receives the NVTX ranges of a library.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "nvtx_peer.h"

enum { ROUNDS_MAX = 31, THREADS_MAX = 64 };

static struct bench_args args;
static uint64_t n_lost, n_streamed;

/* ---- recordings around a candidate ---- */

static void start(enum marey_policy policy, uint64_t pool_bytes, const char *text)
{
    /* The flush thread inherits the affinity: it must not share this core. */
    bench_unpin();
    const struct marey_options options = {.path = bench_fresh_path(&args, "range.marey"),
                                          .text = text,
                                          .policy = policy,
                                          .pool_bytes = pool_bytes,
                                          .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    bench_pin(0);
}

static void start_ring(void)
{
    start(MAREY_KEEP_NEWEST, 2 << 20, NULL);
}

static void start_ring_without_nvtx(void)
{
    start(MAREY_KEEP_NEWEST, 2 << 20, "nvtx=0");
}

static void start_stream(void)
{
    start(MAREY_KEEP_OLDEST, 0, NULL);
}

static void stop(void)
{
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    bench_remove(marey_recording_path());
}

static void stop_stream(void)
{
    struct marey_counts counts;
    marey_counts_get(&counts);
    n_lost += counts.lost_events;
    n_streamed += counts.events;
    stop();
}

/* ---- candidates ---- */

/* Prevents the compiler from merging loop iterations. */
#define TURN() __asm__ volatile("" ::: "memory")

static uint64_t sink;

static void clock_pair(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum -= bench_ticks();
        TURN();
        sum += bench_ticks();
        TURN();
    }
    sink += sum;
}

static void vdso_pair(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum -= bench_ns();
        sum += bench_ns();
    }
    sink += sum;
}

static void scope(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        MAREY_SCOPE("bench");
        TURN();
    }
}

static void push_pop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        marey_push("bench by name");
        TURN();
        marey_pop();
    }
}

static void empty_loop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        TURN();
}

struct candidate {
    const char *name;
    void (*run)(uint64_t n);
    void (*before)(void), (*after)(void);
    uint64_t warm_up, n;      /* ranges not timed, then timed */
    double ns[ROUNDS_MAX];    /* per range, by round */
    double ratio[ROUNDS_MAX]; /* to the first candidate of the same round */
};

enum {
    CLOCK_PAIR,
    ENABLED,
    WITHOUT_NVTX,
    FIRST_TOUCH,
    STREAMING,
    BY_NAME,
    VDSO_PAIR,
    NVTX_PEER,
    RECEIVED,
    RECEIVED_TEXT,
    DISABLED,
    EMPTY,
    N_CANDIDATES
};

#define BLOCK (UINT64_C(1) << 18)

static struct candidate candidates[N_CANDIDATES] = {
    [CLOCK_PAIR] = {"two bare clock reads (2T)", clock_pair, NULL, NULL, BLOCK / 8, BLOCK * 2},
    [ENABLED] = {"range, enabled", scope, start_ring, stop, BLOCK, BLOCK * 2},
    [WITHOUT_NVTX] = {"range, enabled, nvtx=0", scope, start_ring_without_nvtx, stop, BLOCK,
                      BLOCK * 2},
    [FIRST_TOUCH] = {"range, first touch", scope, start_stream, stop, 0, BLOCK},
    [STREAMING] = {"range, streaming to disk", scope, start_stream, stop_stream, BLOCK * 8,
                   BLOCK * 16},
    [BY_NAME] = {"push and pop by string, enabled", push_pop, start_ring, stop, BLOCK, BLOCK * 2},
    [VDSO_PAIR] = {"two vDSO clock reads", vdso_pair, NULL, NULL, BLOCK / 8, BLOCK},
    [NVTX_PEER] = {"NVTX's own push and pop, no tool", nvtx_peer_push_pop, NULL, NULL, BLOCK,
                   BLOCK * 2},
    [RECEIVED] = {"NVTX range received, registered name", nvtx_peer_received, start_ring, stop,
                  BLOCK, BLOCK * 2},
    [RECEIVED_TEXT] = {"NVTX range received, name as text", nvtx_peer_received_text, start_ring,
                       stop, BLOCK, BLOCK * 2},
    [DISABLED] = {"range, disabled, loop included", scope, NULL, NULL, BLOCK, BLOCK * 16},
    [EMPTY] = {"an empty loop", empty_loop, NULL, NULL, BLOCK, BLOCK * 16},
};

static double time_one(const struct candidate *c)
{
    if (c->before != NULL)
        c->before();
    c->run(c->warm_up);
    const uint64_t begin = bench_thread_cpu_ns(); /* independent of other programs */
    c->run(c->n);
    const uint64_t end = bench_thread_cpu_ns();
    if (c->after != NULL)
        c->after();
    return (double)(end - begin) / (double)c->n;
}

static void run_rounds(size_t n_rounds)
{
    for (size_t round = 0; round < n_rounds; round++) {
        for (size_t i = 0; i < N_CANDIDATES; i++) {
            struct candidate *c = &candidates[(round + i) % N_CANDIDATES];
            c->ns[round] = time_one(c);
        }
        for (size_t i = 0; i < N_CANDIDATES; i++)
            candidates[i].ratio[round] = candidates[i].ns[round] / candidates[CLOCK_PAIR].ns[round];
    }
}

static void print_rounds(size_t n_rounds)
{
    printf("%zu rounds in rotating order; ratios are medians of per-round ratios with a 95%% "
           "interval\n",
           n_rounds);
    printf("  %-36s %9s %9s %24s\n", "", "min ns", "median ns", "x 2T");
    for (size_t i = 0; i < N_CANDIDATES; i++) {
        double ns[ROUNDS_MAX];
        if ((i == NVTX_PEER || i == RECEIVED || i == RECEIVED_TEXT) && !nvtx_peer_is_built())
            continue;
        for (size_t k = 0; k < n_rounds; k++)
            ns[k] = candidates[i].ns[k];
        const double least = bench_quantile(ns, n_rounds, 0),
                     middle = bench_quantile(ns, n_rounds, 0.5);
        const struct bench_interval x = bench_median(candidates[i].ratio, n_rounds);
        printf("  %-36s %9.2f %9.2f %9.3f (%.3f to %.3f)\n", candidates[i].name, least, middle,
               x.mid, x.low, x.high);
    }
}

static void put_ratio(int which, size_t n_rounds, double bar, const char *bar_text)
{
    const struct candidate *c = &candidates[which];
    const struct bench_interval x = bench_median(c->ratio, n_rounds),
                                ns = bench_median(c->ns, n_rounds);
    char what[64];
    snprintf(what, sizeof what, "C %s", c->name);
    bench_result(&args, what, bar_text, bar > 0 ? bench_met_if(x.mid <= bar) : BENCH_NO_BAR,
                 "%.2f x 2T (%.2f to %.2f), %.1f ns", x.mid, x.low, x.high, ns.mid);
}

static void put_rounds(size_t n_rounds)
{
    const struct bench_interval pair = bench_median(candidates[CLOCK_PAIR].ns, n_rounds);
    bench_result(&args, "T, one clock read", "", BENCH_NO_BAR, "%.2f ns", pair.mid / 2);
    put_ratio(ENABLED, n_rounds, 1.10, "<= 1.10 x 2T");
    put_ratio(STREAMING, n_rounds, 1.25, "<= 1.25 x 2T");
    bench_result(&args, "  events lost while at that", "0", bench_met_if(n_lost == 0), "%llu of %llu",
                 (unsigned long long)n_lost, (unsigned long long)(n_streamed + n_lost));
    put_ratio(FIRST_TOUCH, n_rounds, 0, "");
    put_ratio(BY_NAME, n_rounds, 0, "");
    put_ratio(VDSO_PAIR, n_rounds, 0, "");
    const struct bench_interval off = bench_median(candidates[DISABLED].ns, n_rounds);
    bench_result(&args, "C range, disabled, loop included", "<= 0.6 ns",
                 bench_met_if(off.mid <= 0.6), "%.2f ns (%.2f to %.2f)", off.mid, off.low, off.high);
}

/* ---- with NVTX ---- */

static void put_nvtx(size_t n_rounds)
{
    static const char what[] = "C range, what NVTX adds without a tool", bar[] = "<= 5 ns",
                      peer[] = "  NVTX's own push and pop, no tool";
    double added[ROUNDS_MAX];
    for (size_t i = 0; i < n_rounds; i++)
        added[i] = candidates[ENABLED].ns[i] - candidates[WITHOUT_NVTX].ns[i];
    const struct bench_interval x = bench_median(added, n_rounds);
    if (marey_nvtx_version()[0] != '\0')
        bench_result(&args, what, bar, bench_met_if(x.mid <= 5), "%.2f ns (%.2f to %.2f)", x.mid,
                     x.low, x.high);
    else
        bench_result(&args, what, bar, BENCH_NO_BAR, "not built");
    if (nvtx_peer_is_built())
        bench_result(&args, peer, "", BENCH_NO_BAR, "%.2f ns",
                     bench_median(candidates[NVTX_PEER].ns, n_rounds).mid);
    else
        bench_result(&args, peer, "", BENCH_NO_BAR, "not built");
}

/* `marey run --nvtx`: NVTX ranges of a program. */
static void put_received(size_t n_rounds)
{
    static const int which[] = {RECEIVED, RECEIVED_TEXT};
    static const char bar[] = "<= 1.15 x 2T";
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        if (nvtx_peer_is_built())
            put_ratio(which[i], n_rounds, 1.15, bar);
        else
            bench_result(&args, candidates[which[i]].name, bar, BENCH_NO_BAR, "not built");
    }
}

static double time_median(const struct candidate *c)
{
    enum { ROUNDS = 9 };
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        ns[i] = time_one(c);
    return bench_quantile(ns, ROUNDS, 0.5);
}

/* In the child, because a tool cannot be removed, so nothing else could be measured afterwards. */
static void put_with_tool(const char *what)
{
    setenv("NVTX_INJECTION64_PATH", nvtx_peer_tool(), 1);
    const double on = time_median(&candidates[ENABLED]), off = time_median(&candidates[DISABLED]);
    if (marey_nvtx_attach())
        bench_result(&args, what, "", BENCH_NO_BAR, "%.1f ns; without a recording %.1f ns", on, off);
    else
        bench_result(&args, what, "", BENCH_NO_BAR, "not attached: %s", marey_nvtx_state());
}

static void run_with_tool(void)
{
    static const char what[] = "  C range with a tool that only counts";
    if (marey_nvtx_version()[0] == '\0' || !nvtx_peer_is_built()) {
        bench_result(&args, what, "", BENCH_NO_BAR, "not built");
        return;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        put_with_tool(what);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        bench_die("the child with an NVTX tool did not end well", MAREY_OK);
}

/* ---- with cold caches ---- */

enum { WALK_BYTES = 4 << 20, LINE = 64 };

static void walk_memory(unsigned char *memory)
{
    for (size_t i = 0; i < WALK_BYTES; i += LINE)
        memory[i]++;
    TURN();
}

static void no_range(void)
{
    TURN();
}

static void one_range(void)
{
    MAREY_SCOPE("bench cold");
    TURN();
}

/* Percentiles of the time between two clock reads, in nanoseconds. */
static void time_cold(void (*run)(void), unsigned char *memory, double *ns, size_t n,
                      double ticks_per_ns)
{
    for (size_t i = 0; i < n; i++) {
        walk_memory(memory);
        const uint64_t begin = bench_ticks();
        run();
        ns[i] = (double)(bench_ticks() - begin) / ticks_per_ns;
    }
}

static void run_cold(void)
{
    const size_t n = args.quick ? 2000 : 16000;
    const double ticks_per_ns = bench_ticks_per_ns();
    unsigned char *memory = calloc(1, WALK_BYTES);
    double *bare = malloc(n * sizeof *bare), *with = malloc(n * sizeof *with);
    if (memory == NULL || bare == NULL || with == NULL)
        bench_die("no memory", MAREY_OK);
    start_stream();
    time_cold(no_range, memory, bare, n, ticks_per_ns);
    time_cold(one_range, memory, with, n, ticks_per_ns);
    stop();
    const double floor = bench_quantile(bare, n, 0.5);
    bench_result(&args, "C range after walking 4 MB, p50/p99/p99.9", "", BENCH_NO_BAR,
                 "%.0f / %.0f / %.0f ns", bench_quantile(with, n, 0.5) - floor,
                 bench_quantile(with, n, 0.99) - floor, bench_quantile(with, n, 0.999) - floor);
    free(memory);
    free(bare);
    free(with);
}

/* ---- on several threads ---- */

static void *run_thread(void *ns_for_one)
{
    const uint64_t n = BLOCK * (args.quick ? 4 : 16);
    scope(BLOCK);
    const uint64_t begin = bench_thread_cpu_ns();
    scope(n);
    *(double *)ns_for_one = (double)(bench_thread_cpu_ns() - begin) / (double)n;
    return NULL;
}

/* CPU time of each thread, not wall time divided by the ranges of all threads. */
static void run_threads(int n)
{
    pthread_t threads[THREADS_MAX];
    double ns[THREADS_MAX];
    start(MAREY_KEEP_NEWEST, 0, NULL);
    bench_unpin();
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run_thread, &ns[i]) != 0)
            bench_die("cannot start a thread", MAREY_OK);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    stop();
    char what[64];
    snprintf(what, sizeof what, "C range on %d thread%s, each thread's time", n, n == 1 ? "" : "s");
    const struct bench_interval x = bench_median(ns, (size_t)n);
    bench_result(&args, what, "", BENCH_NO_BAR, "%.1f ns", x.mid);
}

int main(int argc, char **argv)
{
    args = bench_parse(argc, argv);
    bench_pin(0);
    const size_t n_rounds = args.quick ? 15 : ROUNDS_MAX;
    run_rounds(n_rounds);
    print_rounds(n_rounds);
    put_rounds(n_rounds);
    put_nvtx(n_rounds);
    put_received(n_rounds);
    run_with_tool();
    run_cold();
    run_threads(1);
    run_threads(2);
    if (bench_n_cpus() > 2)
        run_threads(bench_n_cpus() < THREADS_MAX ? bench_n_cpus() : THREADS_MAX);
    return sink == 1; /* never true; prevents optimizing the sums away */
}
