/*
 * Cost of the stopwatch in C: start and stop against two bare clock reads of the same round, the
 * end of an iteration with many names, and the memory of a name.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { ROUNDS_MAX = 31, NAMES = 1000 };

static struct bench_args args;
static uint64_t sink;

/* Prevents the compiler from merging loop iterations. */
#define TURN() __asm__ volatile("" ::: "memory")

/* ---- candidates ---- */

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

static void pair(uint64_t n)
{
    const marey_id id = MAREY_ID("bench");
    for (uint64_t i = 0; i < n; i++) {
        marey_stopwatch_start(id);
        TURN();
        marey_stopwatch_stop(id);
    }
}

/* Only the inner one; the outer one runs all the time. */
static void nested(uint64_t n)
{
    const marey_id outer = MAREY_ID("outer");
    marey_stopwatch_start(outer);
    pair(n);
    marey_stopwatch_stop(outer);
}

static void empty_loop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        TURN();
}

static void enable(void)
{
    if (marey_stopwatch_enable(NULL) != MAREY_OK)
        bench_die("cannot enable the stopwatch", MAREY_ESTATE);
}

static void start_both(void)
{
    bench_unpin(); /* the flush thread inherits the affinity */
    const struct marey_options options = {.path = bench_fresh_path(&args, "stopwatch.marey"),
                                          .policy = MAREY_KEEP_NEWEST,
                                          .pool_bytes = 2 << 20};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    bench_pin(0);
    enable();
}

static void stop_both(void)
{
    marey_stopwatch_disable();
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    bench_remove(marey_recording_path());
}

struct candidate {
    const char *name;
    void (*run)(uint64_t n);
    void (*before)(void), (*after)(void);
    uint64_t n;
    double ns[ROUNDS_MAX], ratio[ROUNDS_MAX];
};

enum { CLOCK_PAIR, ENABLED, NESTED, RECORDING, DISABLED, EMPTY, N_CANDIDATES };
#define BLOCK (UINT64_C(1) << 18)

static struct candidate candidates[N_CANDIDATES] = {
    [CLOCK_PAIR] = {"two bare clock reads (2T)", clock_pair, NULL, NULL, BLOCK * 2},
    [ENABLED] = {"start and stop", pair, enable, marey_stopwatch_disable, BLOCK * 2},
    [NESTED] = {"start and stop inside another", nested, enable, marey_stopwatch_disable, BLOCK * 2},
    [RECORDING] = {"start and stop, recorded too", pair, start_both, stop_both, BLOCK * 2},
    [DISABLED] = {"start and stop, disabled", pair, NULL, NULL, BLOCK * 16},
    [EMPTY] = {"an empty loop", empty_loop, NULL, NULL, BLOCK * 16},
};

static double time_one(const struct candidate *c)
{
    if (c->before != NULL)
        c->before();
    c->run(BLOCK / 8);
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
            struct candidate *const c = &candidates[(round + i) % N_CANDIDATES];
            c->ns[round] = time_one(c);
        }
        for (size_t i = 0; i < N_CANDIDATES; i++)
            candidates[i].ratio[round] = candidates[i].ns[round] / candidates[CLOCK_PAIR].ns[round];
    }
    for (size_t i = 0; i < N_CANDIDATES; i++)
        printf("  %-32s %8.2f ns  %.3f x 2T\n", candidates[i].name,
               bench_median(candidates[i].ns, n_rounds).mid,
               bench_median(candidates[i].ratio, n_rounds).mid);
}

static void put_rounds(size_t n_rounds)
{
    static const struct {
        int which;
        double bar;
        const char *bar_text;
    } rows[] = {{ENABLED, 1.15, "<= 1.15 x 2T"}, {NESTED, 0, ""}, {RECORDING, 0, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct candidate *const c = &candidates[rows[i].which];
        const struct bench_interval x = bench_median(c->ratio, n_rounds);
        char what[64];
        snprintf(what, sizeof what, "C stopwatch %s", c->name);
        bench_result(&args, what, rows[i].bar_text,
                     rows[i].bar > 0 ? bench_met_if(x.mid <= rows[i].bar) : BENCH_NO_BAR,
                     "%.2f x 2T (%.2f to %.2f), %.1f ns", x.mid, x.low, x.high,
                     bench_median(c->ns, n_rounds).mid);
    }
    const struct bench_interval off = bench_median(candidates[DISABLED].ns, n_rounds);
    bench_result(&args, "C stopwatch disabled, loop included", "", BENCH_NO_BAR, "%.2f ns", off.mid);
}

/* ---- many names ---- */

static marey_id ids[NAMES];

static void one_iteration(void)
{
    for (int i = 0; i < NAMES; i++) {
        marey_stopwatch_start(ids[i]);
        marey_stopwatch_stop(ids[i]);
    }
}

static void make_names(const char *stem)
{
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "%s %d", stem, i);
        ids[i] = marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
    }
}

static void run_names(size_t n_rounds)
{
    double us[ROUNDS_MAX];
    enum { ITERATIONS = 200, WARM = 100 };
    make_names("name");
    for (size_t round = 0; round < n_rounds; round++) {
        enable();
        uint64_t spent = 0;
        for (int i = 0; i < WARM + ITERATIONS; i++) {
            one_iteration();
            const uint64_t begin = bench_thread_cpu_ns();
            if (marey_stopwatch_finish_iteration(0) != MAREY_OK)
                bench_die("cannot finish an iteration", MAREY_ESTATE);
            spent += i >= WARM ? bench_thread_cpu_ns() - begin : 0;
        }
        us[round] = (double)spent / ITERATIONS / 1000;
        marey_stopwatch_disable();
    }
    const struct bench_interval x = bench_median(us, n_rounds);
    bench_result(&args, "C stopwatch, an iteration of 1000 names", "<= 20 us",
                 bench_met_if(x.mid <= 20), "%.1f us (%.1f to %.1f)", x.mid, x.low, x.high);
}

static void run_memory(void)
{
    make_names("another name");
    enable();
    const size_t before = mallinfo2().uordblks;
    one_iteration();
    const size_t few = mallinfo2().uordblks;
    for (int k = 0; k < 5000; k++) {
        one_iteration();
        if (marey_stopwatch_finish_iteration(0) != MAREY_OK)
            bench_die("cannot finish an iteration", MAREY_ESTATE);
    }
    const size_t all = mallinfo2().uordblks;
    bench_result(&args, "C stopwatch, memory of a name", "", BENCH_NO_BAR,
                 "%.1f kB at first, %.1f kB after 5000 iterations",
                 (double)(few - before) / NAMES / 1000, (double)(all - before) / NAMES / 1000);
    marey_stopwatch_disable();
}

int main(int argc, char **argv)
{
    args = bench_parse(argc, argv);
    const size_t n_rounds = args.quick ? 3 : ROUNDS_MAX;
    bench_pin(0);
    run_rounds(n_rounds);
    put_rounds(n_rounds);
    run_names(args.quick ? 3 : 11);
    run_memory();
    return 0;
}
