/*
 * Scaling with known answers: runs simulated by a law give its parameters, and intervals have their
 * coverage. Seeds are fixed, so results are reproducible.
 */
#include "analyze/scaling/internal.h"
#include "scaling_maker.h"

/* The law that runs are made by. */
struct law {
    double one_s, contention, coherency;
    bool is_weak; /* work grows as workers do */
};

static double law_s(const struct law *law, double n)
{
    const double s = law->one_s * (1 + law->contention * (n - 1) + law->coherency * n * (n - 1)) / n;
    return law->is_weak ? s * n : s;
}

/* ---- without noise ---- */

static marey_report *scale_law(const struct law *law, const uint32_t *workers, size_t n)
{
    struct marey__scaling_runs *runs = runs_create();
    for (size_t i = 0; i < n; i++) {
        const double s = law_s(law, workers[i]), epochs[] = {9 * s, s, s, s};
        struct marey__scaling_run run = run_with("s", workers[i]);
        run.epoch_s = epochs;
        run.n_epochs = 4;
        run.numbers.samples_per_epoch = law->is_weak ? 10.0 * workers[i] : 1000;
        add(runs, &run);
    }
    const uint32_t forecast[] = {100, 3000};
    marey_report *scaling =
        scale_with(runs, &(struct marey__scaling_options){.forecast = forecast, .n_forecast = 2});
    runs_destroy(runs);
    return scaling;
}

enum { AMDAHL, USL };

static void amdahl_is_recovered(void **state)
{
    (void)state;
    const uint32_t grids[][3] = {{1, 2, 4}, {4, 8, 64}, {7, 8, 9}, {100, 1000, 100000}};
    const double shares[] = {0, 0.001, 0.05, 0.5, 1};
    for (size_t g = 0; g < 4; g++)
        for (size_t s = 0; s < 5; s++) {
            const struct law law = {.one_s = 100, .contention = shares[s]};
            marey_report *scaling = scale_law(&law, grids[g], 3);
            assert_string_equal(text(scaling, "fits", AMDAHL, "model"), "amdahl");
            assert_true(fabs(real(scaling, "fits", AMDAHL, "serial") - shares[s]) < 1e-6);
            expect_near(real(scaling, "fits", AMDAHL, "time_one_s"), 100, 1e-6);
            assert_true(real(scaling, "fits", AMDAHL, "residual") < 1e-6);
            expect_near(real(scaling, "forecast", 0, "time_s"), law_s(&law, 100), 1e-6);
            expect_near(real(scaling, "forecast", 1, "time_s"), law_s(&law, 3000), 1e-6);
            assert_true(cell(scaling, "fits", AMDAHL, "best_workers").is_null);
            marey_report_destroy(scaling);
        }
}

static void usl_is_recovered_in_strong_and_weak_scaling(void **state)
{
    (void)state;
    const uint32_t grids[][5] = {{1, 2, 4, 8, 16}, {4, 6, 8, 32, 48}, {3, 20, 30, 200, 900}};
    for (size_t g = 0; g < 3; g++)
        for (int is_weak = 0; is_weak < 2; is_weak++) {
            const struct law law = {100, 0.03, 0.0004, is_weak != 0};
            marey_report *scaling = scale_law(&law, grids[g], 5);
            assert_string_equal(text(scaling, "fits", USL, "model"), "usl");
            assert_string_equal(text(scaling, "points", 0, "kind"), is_weak ? "weak" : "strong");
            expect_near(real(scaling, "fits", USL, "contention"), 0.03, 1e-6);
            expect_near(real(scaling, "fits", USL, "coherency"), 0.0004, 1e-6);
            expect_near(real(scaling, "fits", USL, "best_workers"), sqrt(0.97 / 0.0004), 1e-6);
            expect_near(real(scaling, "forecast", 2, "time_s"), law_s(&law, 100), 1e-6);
            const double faster =
                law_s(&law, grids[g][0]) / law_s(&law, 3000) * (is_weak ? 3000.0 / grids[g][0] : 1);
            expect_near(real(scaling, "forecast", 3, "speedup"), faster, 1e-6);
            expect_near(real(scaling, "forecast", 3, "efficiency"), faster * grids[g][0] / 3000,
                        1e-6);
            assert_string_equal(text(scaling, "fits", AMDAHL, "note"),
                                "coherency is significant: prefer usl");
            assert_true(has_note(scaling, "3000 workers are") == (grids[g][4] < 375));
            marey_report_destroy(scaling);
        }
}

static void the_best_count_is_a_whole_one(void **state)
{
    (void)state;
    const struct law law = {100, 0, 0.01, false}; /* best at 10 workers */
    const uint32_t workers[] = {1, 2, 4, 32};
    marey_report *scaling = scale_law(&law, workers, 4);
    assert_int_equal(n_rows(scaling, "best"), 2);
    assert_int_equal(whole(scaling, "best", 0, "workers"), 4); /* of those measured */
    assert_true(whole(scaling, "best", 0, "measured") == 1);
    assert_int_equal(whole(scaling, "best", 1, "workers"), 10);
    assert_true(whole(scaling, "best", 1, "measured") == 0);
    expect_near(real(scaling, "best", 1, "value"), law_s(&law, 10), 1e-6);
    expect_note(scaling, "by the universal scalability law 10 workers are fastest");
    marey_report_destroy(scaling);
}

static void what_cannot_be_fitted_is_said(void **state)
{
    (void)state;
    const struct law law = {100, 0.05, 0, false};
    const uint32_t workers[] = {1, 2, 4};
    marey_report *scaling = scale_law(&law, workers, 1);
    assert_string_equal(text(scaling, "fits", AMDAHL, "note"),
                        "not fitted: needs at least three numbers of workers");
    assert_int_equal(n_rows(scaling, "best"), 0);
    marey_report_destroy(scaling);
    for (size_t n = 1; n <= 3; n++) { /* as many points as parameters check nothing */
        scaling = scale_law(&law, workers, n);
        assert_true(cell(scaling, "fits", AMDAHL, "serial").is_null == (n < 3));
        assert_true(cell(scaling, "fits", AMDAHL, "residual").is_null == (n < 3));
        assert_true(cell(scaling, "fits", AMDAHL, "time_one_s").is_null == (n < 3));
        assert_string_equal(text(scaling, "fits", USL, "note"),
                            "not fitted: needs at least four numbers of workers");
        assert_true(cell(scaling, "fits", USL, "contention").is_null);
        assert_int_equal(n_rows(scaling, "forecast"), n < 3 ? 0 : 2);
        assert_true(has_note(scaling, "Amdahl's law") == (n == 3));
        assert_true(has_note(scaling, "is a guess") == (n == 3));
        marey_report_destroy(scaling);
    }
}

static void times_that_follow_no_law_are_said(void **state)
{
    (void)state;
    struct marey__scaling_runs *runs = runs_create();
    const double times[] = {10, 2, 9, 1, 8, 2};
    for (uint32_t i = 0; i < 6; i++) {
        const double epochs[] = {times[i], times[i], times[i]};
        add_epochs(runs, "s", 1u << i, epochs, 3);
    }
    marey_report *scaling = scale_with(runs, NULL);
    for (size_t model = AMDAHL; model <= USL; model++)
        assert_string_equal(text(scaling, "fits", model, "note"),
                            "the times do not follow this law");
    marey_report_destroy(scaling);
    runs_destroy(runs);
}

/* Noise alone makes a little coherency: no best number of workers comes of it. */
static void a_best_that_may_be_nowhere_is_not_told(void **state)
{
    (void)state;
    struct marey__scaling_runs *runs = runs_create();
    const double times[] = {100, 51, 25, 13};
    for (uint32_t i = 0; i < 4; i++) {
        const double epochs[] = {times[i] * 0.98, times[i], times[i] * 1.02};
        add_epochs(runs, "s", 1u << i, epochs, 3);
    }
    marey_report *scaling = scale_with(runs, NULL);
    assert_true(real(scaling, "fits", USL, "coherency") > 0);
    assert_true(real(scaling, "fits", USL, "coherency_low") == 0);
    assert_true(cell(scaling, "fits", USL, "best_workers").is_null);
    assert_true(cell(scaling, "fits", USL, "best_high").is_null);
    assert_true(real(scaling, "fits", USL, "best_low") > 1);
    assert_string_equal(text(scaling, "fits", USL, "note"),
                        "coherency is not significant: amdahl is enough");
    assert_int_equal(n_rows(scaling, "best"), 1);
    marey_report_destroy(scaling);
    runs_destroy(runs);
}

/* ---- the nearest curve ---- */

static double distance(const struct marey__scaling_curve *curve, const double *workers,
                       const double *seconds, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = marey__scaling_curve_at(curve, workers[i]) / seconds[i] - 1;
        sum += off * off;
    }
    return sum;
}

/* Whether a curve that only rises, and has no T(1), is the nearest: it is not taken. */
static bool only_rises(const double *workers, const double *seconds, size_t n, double best)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double term = (workers[i] - 1) / seconds[i];
        sum += term;
        squares += term * term;
    }
    return (double)n - sum * sum / squares < best;
}

/* No curve around it is nearer, and none far away that chance finds. */
static void no_curve_is_nearer(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t n_looked_at = 0;
    for (size_t round = 0; round < 200; round++) {
        double workers[8], seconds[8];
        const size_t n = 3 + round % 6;
        for (size_t i = 0; i < n; i++) {
            workers[i] = (double)(1 + next_number(&seed) % 100);
            seconds[i] = 1 + (double)(next_number(&seed) % 1000);
        }
        const struct marey__scaling_curve curve = marey__scaling_curve_fit(workers, seconds, n, true);
        const double best = distance(&curve, workers, seconds, n);
        if (only_rises(workers, seconds, n, best))
            continue;
        n_looked_at++;
        assert_true(curve.parallel_s >= 0 && curve.serial_s >= 0 && curve.coherency_s >= 0);
        for (size_t trial = 0; trial < 500; trial++) {
            const double reach = trial % 2 == 0 ? 0.01 : 3;
            const struct marey__scaling_curve other = {
                fmax(curve.parallel_s * exp(reach * next_normal(&seed)) + next_normal(&seed), 0),
                fmax(curve.serial_s * exp(reach * next_normal(&seed)) + next_normal(&seed), 0),
                fmax(curve.coherency_s * exp(reach * next_normal(&seed)) + 0.01 * next_normal(&seed),
                     0)};
            if (other.parallel_s + other.serial_s > 0)
                assert_true(distance(&other, workers, seconds, n) >= best * (1 - 1e-9));
        }
    }
    assert_true(n_looked_at > 100);
}

/* ---- with noise ---- */

enum { N_TRIALS = 200, MOST_POINTS = 6 };

struct trial {
    struct law law;
    size_t n_points, n_runs, n_epochs;
    double run_noise, epoch_noise;
    bool is_heavy; /* one run in five strays four times as far */
    double widest; /* a forecast may be, to either side on the logarithm */
};

static marey_report *scale_trial(const struct trial *trial, uint64_t *seed)
{
    struct marey__scaling_runs *runs = runs_create();
    for (size_t p = 0; p < trial->n_points; p++)
        for (size_t r = 0; r < trial->n_runs; r++) {
            double epochs[16];
            const double far = trial->is_heavy && next_number(seed) % 5 == 0 ? 4 : 1,
                         off = far * trial->run_noise * next_normal(seed);
            for (size_t e = 0; e < trial->n_epochs; e++)
                epochs[e] =
                    law_s(&trial->law, 1u << p) * exp(off + trial->epoch_noise * next_normal(seed));
            add_epochs(runs, "s", 1u << p, epochs, trial->n_epochs);
        }
    const uint32_t forecast = 64;
    const struct marey__scaling_options options = {
        .n_resamples = 300, .forecast = &forecast, .n_forecast = 1};
    marey_report *scaling = scale_with(runs, &options);
    runs_destroy(runs);
    return scaling;
}

/* How often intervals hold the truth, and how wide they are. */
struct tally {
    double n, n_held, width;
};

static void count(struct tally *tally, marey_report *scaling, const char *table, size_t row,
                  const char *low, const char *high, double truth)
{
    const double from = real(scaling, table, row, low), to = real(scaling, table, row, high);
    tally->n++;
    /* Without an end where it is null: a best number of workers that may be anywhere. */
    tally->n_held += !(from > truth) && !(to < truth);
    tally->width += from > 0 ? log(to / from) / 2 : 0;
}

static void expect_tally(const struct tally *tally, const char *what, double least, double width)
{
    const double held = tally->n_held / tally->n;
    print_message("%-10s %.1f %% of %.0f hold the truth\n", what, 100 * held, tally->n);
    if (held < least)
        fail_msg("%s: %.1f %% of intervals hold the truth", what, 100 * held);
    if (!(tally->width / tally->n < width))
        fail_msg("%s: intervals are as wide as %g", what, tally->width / tally->n);
}

/* What 95 % intervals of a perfect method would reach to either side, were the noise of a point's median known. */
static double best_width(const struct trial *trial)
{
    const double of_run = 1.5 * trial->epoch_noise * trial->epoch_noise / (double)trial->n_epochs +
                          trial->run_noise * trial->run_noise;
    return 1.96 * sqrt(1.5 * of_run / (double)trial->n_runs);
}

static void expect_trial(const struct trial *trial, size_t model)
{
    struct tally time = {0}, speedup = {0}, share = {0}, coherency = {0}, forecast = {0};
    const struct law *law = &trial->law;
    uint64_t seed = 77;
    for (size_t i = 0; i < N_TRIALS; i++) {
        marey_report *scaling = scale_trial(trial, &seed);
        for (size_t p = 0; p < trial->n_points; p++) {
            const double s = law_s(law, 1u << p);
            if (trial->n_runs == 1) { /* epochs of one run do not show how much runs differ */
                assert_true(cell(scaling, "points", p, "low_s").is_null);
                assert_true(p == 0 || cell(scaling, "points", p, "efficiency_high").is_null);
                continue;
            }
            count(&time, scaling, "points", p, "low_s", "high_s", s);
            if (p > 0)
                count(&speedup, scaling, "points", p, "speedup_low", "speedup_high", law->one_s / s);
        }
        if (model == AMDAHL) {
            count(&share, scaling, "fits", model, "serial_low", "serial_high", law->contention);
        } else {
            count(&share, scaling, "fits", model, "contention_low", "contention_high",
                  law->contention);
            count(&coherency, scaling, "fits", model, "coherency_low", "coherency_high",
                  law->coherency);
        }
        count(&forecast, scaling, "forecast", model, "low_s", "high_s", law_s(law, 64));
        marey_report_destroy(scaling);
    }
    const double width = best_width(trial);
    if (trial->n_runs > 1) {
        expect_tally(&time, "time", 0.94, trial->is_heavy ? INFINITY : 2 * width);
        expect_tally(&speedup, "speedup", 0.94, trial->is_heavy ? INFINITY : 2 * 1.42 * width);
    }
    expect_tally(&share, "share", trial->n_runs > 1 ? 0.93 : 0.9, INFINITY);
    if (model == USL)
        expect_tally(&coherency, "coherency", 0.93, INFINITY);
    expect_tally(&forecast, "forecast", 0.92, trial->widest);
}

static void intervals_of_three_repeats_hold_the_truth(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.05, 0, false},
                                 .n_points = 5,
                                 .n_runs = 3,
                                 .n_epochs = 5,
                                 .run_noise = 0.02,
                                 .epoch_noise = 0.02,
                                 .widest = 0.2},
                 AMDAHL);
}

static void intervals_of_two_repeats_hold_the_truth(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.02, 0, false},
                                 .n_points = 5,
                                 .n_runs = 2,
                                 .n_epochs = 3,
                                 .run_noise = 0.02,
                                 .epoch_noise = 0.02,
                                 .widest = 0.2},
                 AMDAHL);
}

/* Three degrees of freedom are all there is. */
static void intervals_of_three_points_hold_the_truth(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.1, 0, false},
                                 .n_points = 3,
                                 .n_runs = 2,
                                 .n_epochs = 5,
                                 .run_noise = 0.02,
                                 .epoch_noise = 0.01,
                                 .widest = 2},
                 AMDAHL);
}

/* Points have no intervals then. How far they lie off the curve shows how much runs differ, and so fits have. */
static void fits_of_single_runs_hold_the_truth(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.05, 0, false},
                                 .n_points = 5,
                                 .n_runs = 1,
                                 .n_epochs = 8,
                                 .epoch_noise = 0.03,
                                 .widest = 0.2},
                 AMDAHL);
    expect_trial(&(struct trial){.law = {100, 0.05, 0, false},
                                 .n_points = 5,
                                 .n_runs = 1,
                                 .n_epochs = 10,
                                 .run_noise = 0.02,
                                 .epoch_noise = 0.02,
                                 .widest = 0.3},
                 AMDAHL);
}

static void intervals_of_usl_hold_the_truth(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.03, 0.0005, false},
                                 .n_points = 6,
                                 .n_runs = 3,
                                 .n_epochs = 5,
                                 .run_noise = 0.02,
                                 .epoch_noise = 0.02,
                                 .widest = 0.3},
                 USL);
}

static void intervals_bear_runs_that_stray(void **state)
{
    (void)state;
    expect_trial(&(struct trial){.law = {100, 0.05, 0, false},
                                 .n_points = 5,
                                 .n_runs = 4,
                                 .n_epochs = 5,
                                 .run_noise = 0.01,
                                 .epoch_noise = 0.01,
                                 .is_heavy = true,
                                 .widest = 0.2},
                 AMDAHL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amdahl_is_recovered),
        cmocka_unit_test(usl_is_recovered_in_strong_and_weak_scaling),
        cmocka_unit_test(the_best_count_is_a_whole_one),
        cmocka_unit_test(what_cannot_be_fitted_is_said),
        cmocka_unit_test(times_that_follow_no_law_are_said),
        cmocka_unit_test(a_best_that_may_be_nowhere_is_not_told),
        cmocka_unit_test(no_curve_is_nearer),
        cmocka_unit_test(intervals_of_three_repeats_hold_the_truth),
        cmocka_unit_test(intervals_of_two_repeats_hold_the_truth),
        cmocka_unit_test(intervals_of_three_points_hold_the_truth),
        cmocka_unit_test(fits_of_single_runs_hold_the_truth),
        cmocka_unit_test(intervals_of_usl_hold_the_truth),
        cmocka_unit_test(intervals_bear_runs_that_stray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
