/* Joules of planted power curves, against closed forms. */
#include "energy_plant.h"

/* ---- curves ---- */

static double constant_power(double t)
{
    (void)t;
    return 100;
}
static double constant_energy(double t)
{
    return 100 * t;
}
static double ramp_power(double t)
{
    return 100 + 20 * t;
}
static double ramp_energy(double t)
{
    return 100 * t + 10 * t * t;
}
/* 100 W and 300 W, a second each. */
static double square_power(double t)
{
    return fmod(t, 2) < 1 ? 100 : 300;
}
static double square_energy(double t)
{
    const double whole = floor(t / 2), rest = t - 2 * whole;
    return 400 * whole + (rest < 1 ? 100 * rest : 100 + 300 * (rest - 1));
}
/* 100 W, and 5000 W for ten milliseconds, which falls between two readings of power. */
static const double burst_at = 5.02, burst_ends = 5.03;
static double burst_power(double t)
{
    return t >= burst_at && t < burst_ends ? 5000 : 100;
}
static double burst_energy(double t)
{
    return 100 * t + 4900 * fmin(fmax(t - burst_at, 0), burst_ends - burst_at);
}

static const struct curve constant = {constant_power, constant_energy},
                          ramp = {ramp_power, ramp_energy}, square = {square_power, square_energy},
                          burst = {burst_power, burst_energy};

static const char *const with_device[] = {"devices", "GPU-a", NULL};

/* Ten seconds of a curve on GPU-a, counter each 4 s, whole program in a range "one". */
static void plant_ten_seconds(struct plant *plant, const struct curve *curve)
{
    plant_begin(plant, with_device);
    plant_power(plant, "GPU-a", curve, 0, 10, 20);
    plant_counter(plant, "GPU-a", curve, 0, 10, 4);
}

static bool is_near(double value, double truth, double tolerance)
{
    if (fabs(value - truth) <= tolerance)
        return true;
    print_error("%.9g is not %.9g within %g\n", value, truth, tolerance);
    return false;
}

/* The figure is as it should be within what it says of itself. */
static void expect_within(marey_report *report, const char *table, size_t row, double truth)
{
    const double joules = number_in(report, table, row, "joules"),
                 plus_minus = number_in(report, table, row, "plus_minus_j");
    assert_true(is_near(joules, truth, plus_minus + 1e-6));
}

/* ---- curves ---- */

static void constant_power_is_power_times_time(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_ten_seconds(&plant, &constant);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_int_equal(rows_in(report, "runs"), 1);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 1000, 1e-6));
    assert_true(is_near(number_in(report, "runs", 0, "mean_w"), 100, 1e-6));
    assert_true(is_near(number_in(report, "runs", 0, "peak_w"), 100, 1e-9));
    assert_true(is_near(number_in(report, "runs", 0, "energy_delay_js"), 10000, 1e-5));
    /* A counter that is late by a tenth of a second, at both ends: a tenth of 100 J twice, as squares. */
    assert_true(is_near(number_in(report, "runs", 0, "plus_minus_j"), 10 * sqrt(2), 1e-3));
    assert_string_equal(text_in(report, "runs", 0, "kind"), "gpu");
    assert_string_equal(text_in(report, "runs", 0, "measured_by"), "counter");
    assert_string_equal(text_in(report, "runs", 0, "note"), "");
    assert_string_equal(text_in(report, "devices", 0, "device"), "GPU-a");
    assert_string_equal(text_in(report, "devices", 0, "name"), "GPU 0");
    assert_true(cell_in(report, "runs", 0, "joules_per_sample").is_null);
    assert_int_equal(rows_in(report, "notes"), 0);
    assert_int_equal(rows_in(report, "repeats"), 0);
    marey_report_destroy(report);
}

/* Three epochs back to back; their times are no readings of the counter. */
static void plant_epochs(struct plant *plant, double first, double second)
{
    plant_epoch(plant, 0, 0, true);
    plant_epoch(plant, first, 1, true);
    plant_epoch(plant, second, 2, true);
    plant_epoch(plant, 10, 2, false);
    plant_words(plant, 0);
}

static void expect_epochs(const struct curve *curve, const char *folder, double tolerance)
{
    struct plant plant;
    const double edges[] = {0, 3.3125, 7.1625, 10};
    double sum = 0;
    plant_ten_seconds(&plant, curve);
    plant_epochs(&plant, edges[1], edges[2]);
    plant_finish(&plant, folder, "r0");
    marey_report *report = report_of(folder, NULL);
    assert_int_equal(rows_in(report, "epochs"), 3);
    for (size_t i = 0; i < 3; i++) {
        const double truth = curve->energy(edges[i + 1]) - curve->energy(edges[i]);
        assert_int_equal((int)number_in(report, "epochs", i, "epoch"), i);
        expect_within(report, "epochs", i, truth);
        assert_true(is_near(number_in(report, "epochs", i, "joules"), truth, tolerance));
        sum += number_in(report, "epochs", i, "joules");
    }
    assert_true(is_near(sum, number_in(report, "runs", 0, "joules"), 1e-6));
    assert_true(is_near(sum, curve->energy(10), 1e-6));
    marey_report_destroy(report);
}

static void epochs_of_a_ramp_add_up_to_the_run(void **state)
{
    expect_epochs(&ramp, ((struct scratch *)*state)->folder, 1e-6); /* straight lines are exact */
}

static void epochs_of_a_square_wave_add_up_to_the_run(void **state)
{
    expect_epochs(&square, ((struct scratch *)*state)->folder, 20);
}

static void the_counter_has_a_burst_that_power_does_not_see(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_ten_seconds(&plant, &burst);
    plant_range(&plant, 4.9, 5.1, 1);
    plant_range(&plant, 6, 7, 2);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 1049, 1e-6));
    /* The position of the burst in its interval is unknown; the uncertainty must include that. */
    expect_within(report, "ranges", row_named(report, "ranges", "name", "two"), 100);
    assert_true(number_in(report, "ranges", 0, "plus_minus_j") > 0.85 * 49);
    marey_report_destroy(report);
}

/* Windows of any place and length, of power that jumps at any time: the ± must cover nearly all. */
static void the_stated_uncertainty_holds(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    uint64_t random = 12345;
    size_t n_outside = 0;
    double begins[9], ends[9];
    for (int round = 0; round < 20; round++) {
        plant_begin(&plant, with_device);
        plant_power(&plant, "GPU-a", &square, 0.001 * (double)(round * 7 % 50), 60, 20);
        plant_counter(&plant, "GPU-a", &square, 0.3, 59.7, 4.1);
        for (uint32_t i = 0; i < 9; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            begins[i] = 1 + 6 * i + (double)(random >> 44) / 1048576.0;
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            ends[i] = begins[i] + 0.2 + 4 * (double)(random >> 44) / 1048576.0;
            plant_range(&plant, begins[i], ends[i], i + 1);
        }
        plant_words(&plant, 0);
        plant_finish(&plant, s->folder, "r0");
        marey_report *report = report_of(s->folder, NULL);
        for (uint32_t i = 0; i < 9; i++) {
            static const char *const names[] = {"one", "two",   "three", "four", "five",
                                                "six", "seven", "eight", "nine"};
            const size_t row = row_named(report, "ranges", "name", names[i]);
            const double truth = square_energy(ends[i]) - square_energy(begins[i]);
            n_outside += fabs(number_in(report, "ranges", row, "joules") - truth) >
                         number_in(report, "ranges", row, "plus_minus_j");
        }
        marey_report_destroy(report);
    }
    assert_true(n_outside <= 180 / 20);
}

/* ---- counters that fail ---- */

static double reset_energy(double t)
{
    return t < 5 ? ramp_energy(t) : ramp_energy(t) - ramp_energy(5) - 5000;
}

static void after_a_reset_power_stands_in(void **state)
{
    const struct scratch *s = *state;
    const struct curve reset = {ramp_power, reset_energy};
    struct plant plant;
    plant_ten_seconds(&plant, &reset);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), ramp_energy(10), 1e-6));
    assert_string_equal(text_in(report, "runs", 0, "measured_by"), "counter and power");
    assert_true(has_note(report, "GPU 0 of testhost: its energy counter was reset 1 time; the "
                                 "integral of power is used"));
    marey_report_destroy(report);
}

static double stuck_energy(double t)
{
    return ramp_energy(t < 4 ? t : t < 8 ? 4 : t - 4);
}

static void a_counter_that_stands_still_is_not_believed(void **state)
{
    const struct scratch *s = *state;
    const struct curve stuck = {ramp_power, stuck_energy};
    struct plant plant;
    plant_begin(&plant, with_device);
    plant_power(&plant, "GPU-a", &stuck, 0, 8, 20);
    plant_counter(&plant, "GPU-a", &stuck, 0, 8, 4);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), ramp_energy(8), 1e-6));
    assert_true(has_note(report, "did not move although power was drawn 1 time"));
    marey_report_destroy(report);
}

static double wrapped_energy(double t)
{
    return fmod(262000 + 100 * t, 262143.328850) - 5000;
}

/* RAPL: a counter alone, read twenty times a second. */
static void a_counter_that_goes_over_its_end_is_followed(void **state)
{
    const struct scratch *s = *state;
    const struct curve wrapped = {constant_power, wrapped_energy};
    struct plant plant;
    plant_begin(&plant, NULL);
    plant_counter(&plant, "package-0", &wrapped, 0, 10, 0.05);
    plant_range(&plant, 1, 4, 1);
    plant_words(&plant, 0);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_string_equal(text_in(report, "runs", 0, "kind"), "cpu");
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 1000, 1e-3));
    assert_true(is_near(number_in(report, "ranges", 0, "joules"), 300, 1e-3));
    assert_true(is_near(number_in(report, "runs", 0, "peak_w"), 100, 1e-3));
    assert_true(has_note(report, "wrapped around 1 time"));
    marey_report_destroy(report);
}

static void without_power_a_reset_is_time_that_was_not_measured(void **state)
{
    const struct scratch *s = *state;
    const struct curve reset = {ramp_power, reset_energy};
    struct plant plant;
    plant_begin(&plant, NULL);
    plant_counter(&plant, "package-0", &reset, 0, 10, 1);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_string_equal(text_in(report, "runs", 0, "note"), "partly measured");
    assert_true(is_near(number_in(report, "runs", 0, "joules"),
                        ramp_energy(10) - (ramp_energy(5) - ramp_energy(4)), 1e-6));
    assert_true(has_note(report, "the time around it is not measured"));
    marey_report_destroy(report);
}

static void without_a_counter_power_is_integrated_and_reported(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, with_device);
    plant_power(&plant, "GPU-a", &ramp, 0, 10, 20);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    assert_string_equal(text_in(report, "runs", 0, "measured_by"), "power");
    assert_true(has_note(report, "no energy counter; joules are the integral"));
    marey_report_destroy(report);
}

static void missing_readings_are_reported_and_the_counter_holds(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_begin(&plant, with_device);
    const uint32_t power = plant_site(&plant, "GPU-a", "power");
    for (int i = 0; i <= 200; i++)
        if (i < 60 || i > 120)
            plant_reading(&plant, power, i / 20.0, ramp_power(i / 20.0));
    plant_words(&plant, 1);
    plant_counter(&plant, "GPU-a", &ramp, 0, 10, 4);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 2000, 1e-6));
    assert_true(has_note(report, "power readings are missing for 3.10 s"));
    marey_report_destroy(report);
}

static double half_energy(double t)
{
    return 50 * t;
}

/* 187 J against 327 J was seen on one card. */
static void a_counter_and_power_that_disagree_are_reported(void **state)
{
    const struct scratch *s = *state;
    const struct curve half = {constant_power, half_energy};
    struct plant plant;
    plant_ten_seconds(&plant, &half);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 500, 1e-6));
    assert_true(number_in(report, "runs", 0, "plus_minus_j") >= 500);
    assert_true(has_note(report, "gives 500 J and its power readings 1000 J"));
    marey_report_destroy(report);
}

static void readings_that_cannot_be_are_left_out(void **state)
{
    const struct scratch *s = *state;
    struct plant plant;
    plant_ten_seconds(&plant, &constant);
    const uint32_t power = plant_site(&plant, "GPU-a", "power");
    plant_reading(&plant, power, 3.01, NAN);
    plant_reading(&plant, power, 3.02, -INFINITY);
    plant_reading(&plant, power, 3.03, -5);
    plant_reading(&plant, power, 3.04, 1e300);
    plant_words(&plant, 1);
    plant_finish(&plant, s->folder, "r0");
    marey_report *report = report_of(s->folder, NULL);
    assert_true(is_near(number_in(report, "runs", 0, "joules"), 1000, 1e-6));
    assert_true(has_note(report, "4 impossible readings are left out"));
    marey_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(constant_power_is_power_times_time),
        SCRATCH_TEST(epochs_of_a_ramp_add_up_to_the_run),
        SCRATCH_TEST(epochs_of_a_square_wave_add_up_to_the_run),
        SCRATCH_TEST(the_counter_has_a_burst_that_power_does_not_see),
        SCRATCH_TEST(the_stated_uncertainty_holds),
        SCRATCH_TEST(after_a_reset_power_stands_in),
        SCRATCH_TEST(a_counter_that_stands_still_is_not_believed),
        SCRATCH_TEST(a_counter_that_goes_over_its_end_is_followed),
        SCRATCH_TEST(without_power_a_reset_is_time_that_was_not_measured),
        SCRATCH_TEST(without_a_counter_power_is_integrated_and_reported),
        SCRATCH_TEST(missing_readings_are_reported_and_the_counter_holds),
        SCRATCH_TEST(a_counter_and_power_that_disagree_are_reported),
        SCRATCH_TEST(readings_that_cannot_be_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
