/*
 * Comparisons of simulated series with known answers: rates of false alarms, coverage of intervals,
 * rates of detection. Seeds are fixed, so results are reproducible.
 *
 *     test_compare_truth              the tests
 *     test_compare_truth --table N    the table of docs/internals/compare.md from N comparisons for each cell
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <marey/compare.h>

enum { MAX_RUNS = 20, MAX_TIMES = 2000 };

/* ---- noise ---- */

static uint64_t seed;

/* SplitMix64, 0 < u < 1. */
static double uniform(void)
{
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Student's t with two degrees of freedom: its variance is infinite. */
static double heavy(void)
{
    const double x = normal(), y = normal();
    return normal() / sqrt((x * x + y * y) / 2);
}

enum noise { INDEPENDENT, DRIFTING, WALKING, CORRELATED, STRONG, HEAVY, SKEWED, N_NOISES };
static const char *const noise_names[] = {
    "independent",           "drifting",    "random walk", "autocorrelated (0.9)",
    "autocorrelated (0.99)", "heavy tails", "skewed",
};

/* `n` deviations around 0, of a size of about 1 from one to the next or over the whole. */
static void make_noise(enum noise noise, double *out, size_t n)
{
    const double slope = 4 * normal();
    const double phi = noise == STRONG ? 0.99 : 0.9;
    double state = normal(), walk = 0;
    for (size_t i = 0; i < n; i++) {
        state = phi * state + sqrt(1 - phi * phi) * normal();
        walk += 2 * normal() / sqrt((double)n);
        const double at = (double)i / (double)n - 0.5;
        out[i] = noise == DRIFTING     ? normal() + slope * at
                 : noise == WALKING    ? normal() + walk
                 : noise == CORRELATED ? state
                 : noise == STRONG     ? state
                 : noise == HEAVY      ? heavy()
                 : noise == SKEWED     ? exp(normal()) - 1
                                       : normal();
    }
}

/* ---- one comparison ---- */

enum design { REPEATS, TURNS, SESSION, PAIRS, SINGLE };

struct experiment {
    enum design design;
    enum noise noise;
    size_t n_runs, n_times;
    double percent; /* the change that is planted */
    double within;  /* size of the noise */
    double between; /* and of what differs from run to run */
};

static double store[2][MAX_RUNS][MAX_TIMES];

static void fill_run(const struct experiment *e, double *times, double level)
{
    static double noise[MAX_TIMES];
    const double ratio = e->noise == HEAVY ? heavy() / 2 : normal();
    make_noise(e->noise, noise, e->n_times);
    for (size_t i = 0; i < e->n_times; i++)
        times[i] = 1e6 * level * exp(e->between * ratio + e->within * noise[i]);
}

/* While the machine gets slower by 1 % from run to run: TURNS A, B, A, B; SESSION all of A, then all of B. */
static struct marey_change compare_repeats(const struct experiment *e)
{
    struct marey_run_times runs[2][MAX_RUNS];
    struct marey_change change;
    const double levels[2] = {1, 1 + e->percent / 100};
    for (size_t s = 0; s < 2; s++)
        for (size_t r = 0; r < e->n_runs; r++) {
            const double at = (double)(e->design == TURNS ? 2 * r + s + 1 : s * e->n_runs + r + 1);
            fill_run(e, store[s][r],
                     levels[s] * (e->design == REPEATS || e->design == SINGLE ? 1 : exp(0.01 * at)));
            runs[s][r] = (struct marey_run_times){store[s][r], e->n_times, at};
        }
    assert_int_equal(marey_compare_runs(runs[0], e->n_runs, runs[1], e->n_runs, NULL, &change),
                     MAREY_OK);
    return change;
}

/* One noise goes on while A and B take turns: AB BA AB. */
static struct marey_change compare_pairs(const struct experiment *e)
{
    static double noise[2 * MAX_TIMES], a[MAX_TIMES], b[MAX_TIMES];
    struct marey_change change;
    make_noise(e->noise, noise, 2 * e->n_times);
    for (size_t i = 0; i < e->n_times; i++) {
        a[i] = 1e6 * exp(e->within * noise[2 * i + i % 2]);
        b[i] = 1e6 * (1 + e->percent / 100) * exp(e->within * noise[2 * i + 1 - i % 2]);
    }
    assert_int_equal(marey_compare_pairs(a, b, e->n_times, NULL, &change), MAREY_OK);
    return change;
}

struct tally {
    double alarms, coverage, found, unsure; /* shares of the comparisons */
};

static struct tally repeat(const struct experiment *e, size_t n)
{
    struct tally tally = {0};
    seed = 20260101 + 1000 * (uint64_t)e->design + 100 * (uint64_t)e->noise + e->n_runs;
    for (size_t i = 0; i < n; i++) {
        const struct marey_change c = e->design == PAIRS ? compare_pairs(e) : compare_repeats(e);
        const int is_sure = c.verdict == MAREY_FASTER || c.verdict == MAREY_SLOWER;
        tally.alarms += is_sure;
        tally.unsure += c.verdict == MAREY_UNSURE;
        tally.found += c.verdict == (e->percent > 0 ? MAREY_SLOWER : MAREY_FASTER);
        tally.coverage += c.low_percent <= e->percent && e->percent <= c.high_percent;
    }
    tally.alarms /= (double)n;
    tally.coverage /= (double)n;
    tally.found /= (double)n;
    tally.unsure /= (double)n;
    return tally;
}

/* ---- guarantees ---- */

static const struct experiment designs[] = {
    {REPEATS, 0, 5, 200, 0, 0.03, 0.005}, {REPEATS, 0, 10, 200, 0, 0.03, 0.005},
    {TURNS, 0, 5, 200, 0, 0.03, 0.005},   {SESSION, 0, 5, 200, 0, 0.03, 0.005},
    {PAIRS, 0, 1, 50, 0, 0.03, 0},        {PAIRS, 0, 1, 400, 0, 0.03, 0},
    {SINGLE, 0, 1, 50, 0, 0.03, 0},       {SINGLE, 0, 1, 400, 0, 0.03, 0},
    {SINGLE, 0, 1, 2000, 0, 0.03, 0},
};
static const char *const design_names[] = {"repeats", "repeats in turns, drift",
                                           "repeats, A first, drift", "pairs", "one run each"};

#define N_DESIGNS (sizeof designs / sizeof designs[0])
/* The last one is for the table; it takes as long as the others together. */
#define N_TESTED (N_DESIGNS - 1)

/* Valgrind makes it fifty times slower, and test_compare.c shows it the same code. */
static void skip_where_it_takes_for_ever(void)
{
    if (getenv("MAREY_VALGRIND") != NULL)
        skip();
}

static struct experiment experiment_of(size_t design, enum noise noise, double percent)
{
    struct experiment e = designs[design];
    e.noise = noise;
    e.percent = percent;
    return e;
}

/* Noise between runs that is larger than the drift hides it: nobody can tell it from a change when all of A ran first. */
static int is_hopeless(const struct experiment *e)
{
    return e->design == SESSION && (e->noise == WALKING || e->noise == STRONG);
}

static void no_change_raises_an_alarm_in_5_of_100_at_most(void **state)
{
    (void)state;
    skip_where_it_takes_for_ever();
    for (size_t d = 0; d < N_TESTED; d++)
        for (enum noise noise = 0; noise < N_NOISES; noise++) {
            const struct experiment e = experiment_of(d, noise, 0);
            const struct tally tally = repeat(&e, 300);
            if (tally.alarms > 0.05 && !is_hopeless(&e))
                fail_msg("%s of %zu x %zu, %s noise: %.1f %% false alarms", design_names[e.design],
                         e.n_runs, e.n_times, noise_names[noise], 100 * tally.alarms);
        }
}

static void the_interval_of_repeats_and_pairs_holds_the_truth_in_93_of_100(void **state)
{
    static const double percents[] = {0, 0.5, 5};
    (void)state;
    skip_where_it_takes_for_ever();
    for (size_t d = 0; d < N_TESTED; d++)
        for (enum noise noise = 0; noise < N_NOISES && designs[d].design != SINGLE; noise++)
            for (size_t p = 0; p < 3; p++) {
                const struct experiment e = experiment_of(d, noise, percents[p]);
                const struct tally tally = repeat(&e, 200);
                if (tally.coverage < 0.93 && !is_hopeless(&e))
                    fail_msg("%s of %zu x %zu, %s noise, %g %%: the interval holds the truth in "
                             "%.1f %%",
                             design_names[e.design], e.n_runs, e.n_times, noise_names[noise],
                             e.percent, 100 * tally.coverage);
            }
}

static void a_change_of_5_percent_is_found(void **state)
{
    static const struct experiment found[] = {
        {REPEATS, INDEPENDENT, 5, 200, 5, 0.03, 0.005}, {REPEATS, HEAVY, 5, 200, 5, 0.03, 0.005},
        {REPEATS, CORRELATED, 5, 200, 5, 0.03, 0.005},  {PAIRS, DRIFTING, 1, 400, 5, 0.03, 0},
        {SINGLE, INDEPENDENT, 1, 400, 5, 0.03, 0},      {SINGLE, INDEPENDENT, 1, 400, -5, 0.03, 0},
    };
    (void)state;
    skip_where_it_takes_for_ever();
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        const struct tally tally = repeat(&found[i], 200);
        if (tally.found < 0.9)
            fail_msg("%s, %s noise: %g %% is found in %.1f %%", design_names[found[i].design],
                     noise_names[found[i].noise], found[i].percent, 100 * tally.found);
    }
}

static void one_run_that_depends_on_itself_is_unsure(void **state)
{
    static const enum noise noises[] = {STRONG, WALKING, DRIFTING};
    (void)state;
    skip_where_it_takes_for_ever();
    for (size_t i = 0; i < 3; i++) {
        const struct experiment e = {SINGLE, noises[i], 1, 400, 1, 0.03, 0};
        assert_true(repeat(&e, 200).unsure > 0.9);
    }
}

/* ---- the table ---- */

static void print_row(size_t design, enum noise noise, size_t n)
{
    static const double percents[] = {0, 0.5, 1, 5};
    const struct experiment *e = &designs[design];
    double coverage = 1;
    if (e->design == PAIRS || e->design == SINGLE)
        printf("| %s, %zu | %s |", design_names[e->design], e->n_times, noise_names[noise]);
    else
        printf("| %zu %s | %s |", e->n_runs, design_names[e->design], noise_names[noise]);
    for (size_t p = 0; p < 4; p++) {
        const struct experiment planted = experiment_of(design, noise, percents[p]);
        const struct tally tally = repeat(&planted, n);
        printf(" %.1f |", 100 * (percents[p] == 0 ? tally.alarms : tally.found));
        coverage = fmin(coverage, tally.coverage);
    }
    printf(" %.1f |\n", 100 * coverage);
}

static int print_table(size_t n)
{
    printf("| design | noise | at 0 %% | at 0.5 %% | at 1 %% | at 5 %% | coverage |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t d = 0; d < N_DESIGNS; d++)
        for (enum noise noise = 0; noise < N_NOISES; noise++)
            print_row(d, noise, n);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--table") == 0)
        return print_table((size_t)strtoul(argv[2], NULL, 10));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_change_raises_an_alarm_in_5_of_100_at_most),
        cmocka_unit_test(the_interval_of_repeats_and_pairs_holds_the_truth_in_93_of_100),
        cmocka_unit_test(a_change_of_5_percent_is_found),
        cmocka_unit_test(one_run_that_depends_on_itself_is_unsure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
