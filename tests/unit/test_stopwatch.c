/* The stopwatch: counting, messages, nesting and overlap, tables and the report. */
#include "stopwatch_view.h"

/* ---- on and off ---- */

static void off_it_does_nothing(void **state)
{
    (void)state;
    assert_false(marey_stopwatch_is_enabled());
    const marey_id id = MAREY_ID("off");
    assert_int_equal(marey_stopwatch_stop(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_start_on(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_stop_on(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_stop(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_OK);
    marey_stopwatch_cancel(id);
    struct marey_progress_counts counts;
    marey_iteration_counts(&counts);
    assert_int_equal(counts.iterations, 0); /* nor does it drive iterations */
    assert_int_equal(marey_stopwatch_n_measured(), 0);
    assert_int_equal(n_rows("intervals"), 0);
    assert_int_equal(n_rows("misuse"), 0);
}

static void a_second_enable_is_refused(void **state)
{
    (void)state;
    enable(0);
    assert_int_equal(marey_stopwatch_enable(NULL), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "already enabled"));
    marey_stopwatch_disable();
    enable(0);
    assert_int_equal(marey_stopwatch_enable(
                         &(struct marey_stopwatch_options){.gpu = (enum marey_stopwatch_gpu)9}),
                     MAREY_EINVAL);
}

static void results_stay_until_the_next_enable(void **state)
{
    (void)state;
    enable(0);
    once("a");
    finish();
    start("b");
    marey_stopwatch_disable();
    stop("a"); /* nothing happens any more */
    assert_true(value("intervals", "a", "count") == 1);
    assert_true(value("intervals", "b", "running") == 0); /* what ran was dropped */
    assert_int_equal(marey_stopwatch_n_measured(), 1);
    enable(0);
    assert_int_equal(n_rows("intervals"), 0);
    assert_int_equal(n_rows("misuse"), 0);
    assert_int_equal(marey_stopwatch_n_measured(), 0);
    once("b"); /* it does not run any more */
    assert_true(value("intervals", "b", "count") == 1);
    assert_int_equal(n_rows("misuse"), 0);
}

static void a_reset_forgets_results_and_what_runs(void **state)
{
    (void)state;
    enable(0);
    once("a");
    finish();
    start("b");
    start("c");
    marey_stopwatch_reset();
    assert_true(marey_stopwatch_is_enabled());
    assert_int_equal(n_rows("intervals"), 0);
    stop("c"); /* dropped, and nobody complains */
    assert_int_equal(n_rows("misuse"), 0);
    once("b");
    once("a");
    finish();
    assert_int_equal(n_rows("intervals"), 2);
    assert_true(value("intervals", "b", "count") == 1);
    const double all = value("intervals", "a", "total_ns");
    const double by_iteration = value("iterations", "a", "total_ns");
    assert_true(by_iteration > all * 0.99 - 1 && by_iteration < all * 1.01 + 1);
}

static void options_switch_it_on_and_change_it(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_start(&(struct marey_options){
                         .path = s->path, .text = "stopwatch.warmup=2,stopwatch.print_every=0"}),
                     MAREY_OK);
    assert_true(marey_stopwatch_is_enabled());
    for (int i = 0; i < 3; i++) {
        once("a");
        finish();
    }
    assert_int_equal(marey_stopwatch_n_measured(), 1);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(marey_stopwatch_is_enabled());
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .text = "stopwatch.gpu=sync"}),
        MAREY_OK);
    assert_int_equal(marey__stopwatch_state.options.gpu, MAREY_GPU_SYNC);
    assert_true(value("intervals", "a", "count") == 1); /* nothing is forgotten */
    assert_int_equal(marey_options_check("stopwatch.warmup=-1"), MAREY_EINVAL);
    assert_int_equal(marey_options_check("stopwatch.gpu=maybe"), MAREY_EINVAL);
    assert_int_equal(marey_options_check("stopwatch.cuda_sync=1,warmup=3"), MAREY_OK);
    assert_int_equal(marey_stop(), MAREY_OK);
    marey_reset();
    assert_false(marey_stopwatch_is_enabled());
    assert_int_equal(marey_on(), 0);
}

/* ---- counting ---- */

static void a_warmup_of_n_leaves_out_exactly_n(void **state)
{
    (void)state;
    enable(3);
    for (int i = 0; i < 10; i++) {
        once("every");
        finish();
        assert_int_equal(marey_stopwatch_n_measured(), i < 3 ? 0 : i - 2);
    }
    assert_true(value("intervals", "every", "count") == 7);
    assert_true(value("iterations", "every", "iterations") == 7);
    assert_true(value("iteration", NULL, "iterations") == 7);
}

static void averages_are_over_all_measured_iterations(void **state)
{
    (void)state;
    enable(0);
    for (int i = 0; i < 9; i++) {
        start("one");
        pass_time();
        stop("one");
        once("two");
        once("two");
        if (i % 3 == 0) {
            start("third");
            pass_time();
            stop("third");
        }
        finish();
    }
    assert_true(value("intervals", "one", "count") == 9);
    assert_true(value("intervals", "two", "count") == 18);
    assert_true(value("intervals", "third", "count") == 3);
    assert_true(value("iterations", "third", "iterations") == 3);
    const char *const names[] = {"one", "two", "third"};
    const double counts[] = {9, 18, 3};
    for (size_t i = 0; i < 3; i++) {
        const double total = value("intervals", names[i], "total_ns");
        const double mean = value("intervals", names[i], "mean_ns");
        const double per_iteration = value("iterations", names[i], "mean_ns");
        assert_true(mean * counts[i] > total * 0.999 - 20 && mean * counts[i] < total * 1.001 + 20);
        assert_true(per_iteration * 9 > total * 0.999 - 20 && per_iteration * 9 < total * 1.001 + 20);
    }
    /* Zeros count: six of nine iterations were without it. */
    assert_true(value("iterations", "third", "min_ns") == 0);
    assert_true(value("iterations", "third", "p50_ns") == 0);
    assert_true(value("iterations", "third", "p90_ns") > 0);
    assert_true(value("iterations", "third", "std_ns") > 0);
}

static void a_name_seen_only_in_warmup_is_there_with_nothing(void **state)
{
    (void)state;
    enable(1);
    once("set up");
    finish();
    once("other");
    finish();
    assert_true(value("intervals", "set up", "count") == 0);
    assert_true(value("intervals", "set up", "total_ns") == 0);
    assert_true(value("iterations", "set up", "total_ns") == 0);
    assert_int_equal(marey_stopwatch_print(stderr), MAREY_OK);
}

static void what_straddles_the_end_of_warmup_counts_from_there(void **state)
{
    (void)state;
    enable(1);
    start("across");
    start("inner");
    for (int i = 0; i < 50; i++)
        pass_time();
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    finish(); /* in warm-up nothing is said to run on */
    stop("inner");
    stop("across");
    const double most = (double)(marey__clock_ns(CLOCK_MONOTONIC) - before);
    assert_true(value("intervals", "across", "count") == 1);
    assert_true(value("intervals", "across", "total_ns") <= most * 1.01 + 100);
    assert_true(value("intervals", "across", "total_ns") >= value("intervals", "inner", "total_ns"));
    assert_true(value("intervals", "across", "self_ns") <= value("intervals", "across", "total_ns"));
    assert_int_equal(n_rows("misuse"), 0);
    once("across"); /* and the next one is whole again */
    assert_true(value("intervals", "across", "count") == 2);
}

static void warmup_may_be_set_later_and_by_others(void **state)
{
    (void)state;
    enable(0);
    marey_iteration_set_warmup(1);
    once("a");
    finish();
    assert_true(value("intervals", "a", "count") == 0);
    once("a");
    finish();
    assert_true(value("intervals", "a", "count") == 1);
    assert_int_equal(marey_stopwatch_n_measured(), 1);
}

static void warmup_counts_from_the_enabling(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        marey_iteration_finish_by("marey_stopwatch_finish_iteration", 0);
    enable(2);
    for (int i = 0; i < 5; i++) {
        once("a");
        finish();
    }
    assert_int_equal(marey_stopwatch_n_measured(), 3);
    assert_true(value("series", "a", "iteration") == 22);
}

static void a_reset_of_the_iterations_ends_warmup(void **state)
{
    (void)state;
    enable(0);
    for (int i = 0; i < 3; i++) {
        once("a");
        finish();
    }
    marey__iteration_more_warmup(5);
    once("a");
    marey_iteration_reset();
    once("a");
    finish();
    assert_true(value("intervals", "a", "count") == 4);
    assert_int_equal(marey_stopwatch_n_measured(), 4);
    assert_int_equal(n_rows("series"), 2 * 4);
}

static void any_driver_of_iterations_will_do(void **state)
{
    (void)state;
    enable(1);
    for (int i = 0; i < 4; i++) {
        once("a");
        assert_int_equal(marey_iteration_finish(), 1);
        assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_OK); /* counts nothing */
    }
    assert_int_equal(marey_stopwatch_n_measured(), 3);
    assert_true(value("iterations", "a", "iterations") == 3);
}

static void samples_give_a_rate(void **state)
{
    (void)state;
    enable(1);
    for (int i = 0; i < 3; i++) {
        pass_time();
        assert_int_equal(marey_stopwatch_finish_iteration(16), MAREY_OK);
    }
    assert_true(value("iteration", NULL, "samples") == 32);
    const double total = value("iteration", NULL, "total_ns");
    const double rate = value("iteration", NULL, "samples_per_s");
    assert_true(rate * total / 1e9 > 31.9 && rate * total / 1e9 < 32.1);
}

/* ---- misuse ---- */

static void misuse_changes_nothing_and_is_counted(void **state)
{
    (void)state;
    struct heard heard = {0};
    marey_set_sink(hear, &heard);
    enable(0);
    const marey_id a = MAREY_ID("a"), never = MAREY_ID("never");
    assert_int_equal(marey_stopwatch_stop(never), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "'never' is not running"));
    assert_int_equal(marey_stopwatch_start(a), MAREY_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(marey_stopwatch_start(a), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "'a' is already running"));
    assert_int_equal(marey_stopwatch_stop(a), MAREY_OK);
    assert_int_equal(marey_stopwatch_stop(a), MAREY_ESTATE);
    assert_true(value("intervals", "a", "count") == 1);
    assert_true(value("intervals", "never", "count") == -1); /* it was never started */
    assert_true(misuse("never", "stopped without a start") == 1);
    assert_true(misuse("a", "stopped without a start") == 1);
    assert_true(misuse("a", "started while it ran") == 3);
    assert_int_equal(heard.n, 3); /* each once */
}

static void in_warmup_misuse_is_reported_as_well(void **state)
{
    (void)state;
    enable(5);
    assert_int_equal(marey_stopwatch_stop(MAREY_ID("never")), MAREY_ESTATE);
    start("a");
    assert_int_equal(marey_stopwatch_start(MAREY_ID("a")), MAREY_ESTATE);
    stop("a");
}

static void what_runs_at_the_end_of_an_iteration_goes_on(void **state)
{
    (void)state;
    enable(0);
    start("long");
    pass_time();
    once("short");
    assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "'long' still runs at the end of an iteration"));
    assert_int_equal(marey_stopwatch_n_measured(), 1); /* the iteration counts */
    assert_true(value("iterations", "long", "iterations") == 0);
    assert_true(value("intervals", "long", "running") == 1);
    stop("long");
    finish();
    assert_true(value("iterations", "long", "iterations") == 1);
    assert_true(value("iterations", "long", "min_ns") == 0);
    assert_true(misuse("long", "still ran at the end of an iteration") == 1);
}

static void a_cancelled_one_was_never_started(void **state)
{
    (void)state;
    enable(0);
    start("outer");
    start("failed");
    start("inner");
    stop("inner");
    marey_stopwatch_cancel(MAREY_ID("failed"));
    marey_stopwatch_cancel(MAREY_ID("failed"));
    marey_stopwatch_cancel(MAREY_ID("unknown"));
    stop("outer");
    finish();
    assert_true(value("intervals", "failed", "count") == 0);
    assert_int_equal(n_rows("misuse"), 0);
    once("failed");
    assert_true(value("intervals", "failed", "count") == 1);
    const double self = value("intervals", "outer", "self_ns");
    assert_true(self + value("intervals", "inner", "total_ns") <=
                value("intervals", "outer", "total_ns") * 1.002 + 2);
}

/* ---- one-time ---- */

static void one_time_measurements_are_once(void **state)
{
    (void)state;
    enable(3); /* warm-up does not matter to them */
    const marey_id setup = MAREY_ID("setup"), run = MAREY_ID("run");
    assert_int_equal(marey_stopwatch_once_stop(setup), MAREY_ESTATE);
    assert_int_equal(marey_stopwatch_once_start(setup), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_start(setup), MAREY_ESTATE);
    pass_time();
    assert_int_equal(marey_stopwatch_once_start(run), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_stop(setup), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_stop(setup), MAREY_ESTATE);
    assert_int_equal(marey_stopwatch_once_start(setup), MAREY_ESTATE);
    assert_true(value("once", "setup", "total_ns") >= 20000 * 0.99);
    assert_true(value("once", "setup", "running") == 0);
    assert_true(value("once", "run", "running") == 1);
    once("setup"); /* the name is another one as a repeated one */
    assert_true(value("once", "setup", "total_ns") >= 20000 * 0.99);
    assert_true(misuse("setup", "started twice as a one-time measurement") == 2);
    assert_true(misuse("setup", "stopped without a start as a one-time measurement") == 2);
}

/* ---- names, nesting, overlap ---- */

static void names_decide_and_not_places(void **state)
{
    (void)state;
    enable(0);
    assert_int_equal(marey_stopwatch_start(MAREY_ID("shared")), MAREY_OK);
    assert_int_equal(marey_stopwatch_stop(MAREY_ID("shared", .category = "elsewhere")), MAREY_OK);
    once("shared");
    assert_int_equal(n_rows("intervals"), 1);
    assert_true(value("intervals", "shared", "count") == 2);
}

static void self_time_is_what_is_left(void **state)
{
    (void)state;
    enable(0);
    for (int i = 0; i < 10; i++) {
        start("outer");
        pass_time();
        start("inner");
        pass_time();
        start("innermost");
        pass_time();
        stop("innermost");
        stop("inner");
        once("inner");
        stop("outer");
    }
    finish();
    const double outer = value("intervals", "outer", "total_ns");
    const double inner = value("intervals", "inner", "total_ns");
    const double innermost = value("intervals", "innermost", "total_ns");
    const double left = value("intervals", "outer", "self_ns") - (outer - inner);
    assert_true(left > -outer / 500 && left < outer / 500);
    const double left_inside = value("intervals", "inner", "self_ns") - (inner - innermost);
    assert_true(left_inside > -outer / 500 && left_inside < outer / 500);
    assert_true(value("iterations", "outer", "share") <= 1);
}

static void what_overlaps_is_counted_once_in_what_is_around(void **state)
{
    (void)state;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* its times are exact to a hundredth */
    enable(0);
    start("around");
    start("a");
    pass_time();
    start("b");
    pass_time();
    stop("a");
    pass_time();
    stop("b");
    stop("around");
    finish();
    const double around = value("intervals", "around", "total_ns");
    const double a = value("intervals", "a", "total_ns"), b = value("intervals", "b", "total_ns");
    assert_true(a + b > around); /* they lie across each other */
    const double self = value("intervals", "around", "self_ns");
    assert_true(self >= 0 && self < around - 60000 * 0.99 + 3);
    /* Of a what b did not cover, and all of b. */
    assert_true(value("intervals", "a", "self_ns") <= a - 20000 * 0.99);
    assert_true(value("intervals", "b", "self_ns") > b * 0.999);
    assert_int_equal(n_rows("misuse"), 0);
    assert_null(marey__stopwatch_self.top);
}

/* ---- tables and the report ---- */

static void unknown_tables_are_refused(void **state)
{
    (void)state;
    marey_table *table = NULL;
    assert_int_equal(marey_stopwatch_table("no such", &table), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "intervals, iterations"));
    assert_int_equal(marey_stopwatch_table(NULL, &table), MAREY_EINVAL);
}

static void statistics_are_those_of_the_values(void **state)
{
    (void)state;
    struct marey__stopwatch_sum all = {0}, parts[3] = {{{0}, 0, 0, 0}};
    struct marey__stopwatch_stats stats;
    double sum = 0, squares = 0;
    enum { N = 3000 };
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t v = 1000000 + i * 7919 % 1000;
        sum += (double)v;
        assert_true(marey__stopwatch_sum_add(&parts[i % 3], v, 1));
    }
    for (uint64_t i = 0; i < N; i++) {
        const double d = (double)(1000000 + i * 7919 % 1000) - sum / N;
        squares += d * d;
    }
    for (int i = 0; i < 3; i++)
        assert_true(marey__stopwatch_sum_merge(&all, &parts[i]));
    marey__stopwatch_stats_of(&all, 0, 1, &stats);
    assert_int_equal(stats.count, N);
    assert_true(stats.total == sum && stats.mean == sum / N && stats.self == N);
    const double variance = squares / (N - 1);
    assert_true(stats.std * stats.std > variance * 0.9999 &&
                stats.std * stats.std < variance * 1.0001);
    assert_true(stats.min == 1000000 && stats.max == 1000999);
    assert_true(stats.p50 > 1000500 * 0.992 && stats.p50 < 1000500 * 1.008);
    marey__stopwatch_stats_of(&all, N, 1, &stats); /* as many zeros */
    assert_int_equal(stats.count, 2 * N);
    assert_true(stats.mean == sum / N / 2 && stats.min == 0 && stats.p50 == 0 && stats.p90 > 900000);
    assert_true(stats.std > 500000 && stats.std < 500500);
    for (int i = 0; i < 3; i++)
        marey__stopwatch_sum_clear(&parts[i]);
    marey__stopwatch_sum_clear(&all);
}

static void the_series_keeps_the_latest_iterations(void **state)
{
    (void)state;
    enum { N = MAREY__STOPWATCH_SERIES + 100 };
    enable(0);
    once("rare");
    for (int i = 0; i < N; i++) {
        start("often");
        stop("often");
        finish();
    }
    assert_int_equal(n_rows("series"), 3 * MAREY__STOPWATCH_SERIES);
    assert_true(value("series", "often", "iteration") == 100);
    assert_true(value("series", "rare", "total_ns") == 0); /* it has left the series */
    assert_true(value("iterations", "rare", "iterations") == 1);
    once("rare");
    finish();
    marey_table *const table = table_of("series");
    const struct marey_cell last = marey_table_cell(table, marey_table_n_rows(table) - 1, 0);
    assert_int_equal(last.as.u64, N);
    marey_table_destroy(table);
}

static void iterations_without_a_name_are_zeros_in_its_series(void **state)
{
    (void)state;
    enum { N = MAREY__STOPWATCH_SERIES + 50, SKIPPED = 10 };
    uint64_t n_zeros = 0;
    enable(0);
    for (int i = 0; i < N; i++) {
        if (i < N - SKIPPED - 1 || i == N - 1)
            once("now and then"); /* the ring is full when it stops for a while */
        finish();
    }
    const struct marey__stopwatch_periods *const periods =
        &marey__stopwatch_state.listed.all[0]->periods;
    for (uint64_t i = marey__stopwatch_series_first(periods); i < N; i++)
        n_zeros += marey__stopwatch_periods_at(periods, i) == 0;
    assert_int_equal(n_zeros, SKIPPED);
}

static void the_latest_interval_is_in_the_sketch(void **state)
{
    (void)state;
    struct marey__stopwatch_sum sum = {0};
    uint64_t n = 0;
    enable(0);
    for (int i = 0; i < 7; i++)
        once("a");
    assert_true(marey__stopwatch_cell_merge(&sum, marey__stopwatch_state.listed.all[0]->cells));
    for (size_t p = 0; p < MAREY__SKETCH_PAGES; p++)
        for (size_t k = 0; sum.sketch.pages[p] != NULL && k < MAREY__SKETCH_PAGE; k++)
            n += sum.sketch.pages[p][k];
    assert_int_equal(n, 7);
    assert_int_equal(sum.sketch.count, 7);
    marey__stopwatch_sum_clear(&sum);
}

static void iterations_far_above_the_rest_are_named(void **state)
{
    (void)state;
    struct marey__stopwatch_periods *periods;
    enable(0);
    once("a");
    finish();
    marey__stopwatch_periods_clear(&marey__stopwatch_state.whole);
    periods = &marey__stopwatch_state.listed.all[0]->periods;
    marey__stopwatch_periods_clear(periods);
    marey__stopwatch_state.n_measured = 0;
    for (uint64_t i = 0; i < 100; i++, marey__stopwatch_state.n_measured++)
        marey__stopwatch_periods_add(periods, i,
                                     i == 30   ? 3000000
                                     : i == 60 ? 9000000
                                               : 1000000 + i * 100);
    marey__stopwatch_state.last_number = 99;
    assert_int_equal(n_rows("outliers"), 2);
    assert_true(value("outliers", "a", "iteration") == 60); /* the worst first */
    assert_true(value("outliers", "a", "times") > 8.9 && value("outliers", "a", "times") < 9.1);
}

static void take_report(void *ctx, const char *text, size_t len)
{
    struct heard *const heard = ctx;
    heard->n++;
    snprintf(heard->text, sizeof heard->text, "%.*s", (int)len, text);
}

static void reports_come_at_multiples_and_not_in_warmup(void **state)
{
    (void)state;
    struct heard reports = {0};
    marey_stopwatch_set_printer(take_report, &reports);
    assert_int_equal(
        marey_stopwatch_enable(&(struct marey_stopwatch_options){.warmup = 2, .print_every = 3}),
        MAREY_OK);
    for (int i = 1; i <= 12; i++) {
        once("a");
        finish();
        assert_int_equal(reports.n, i < 2 ? 0 : (i - 2) / 3);
    }
    assert_non_null(strstr(reports.text, "Num. measured iterations: 9\n"));
}

static void print_into(struct heard *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const stream = open_memstream(&text, &len);
    assert_int_equal(marey_stopwatch_print(stream), MAREY_OK);
    fclose(stream);
    snprintf(out->text, sizeof out->text, "%s", text);
    free(text);
}

/* The report contains `part` after `*at`, which advances past it. */
static void expect(const char **at, const char *part)
{
    const char *const found = strstr(*at, part);
    if (found == NULL)
        print_error("missing: %s\nin: %s\n", part, *at);
    assert_non_null(found);
    *at = found + strlen(part);
}

static void the_report_has_its_sections_in_order(void **state)
{
    (void)state;
    struct heard report = {0};
    enable(2);
    assert_int_equal(marey_stopwatch_once_start(MAREY_ID("whole run")), MAREY_OK);
    once("a\nb");
    finish();
    print_into(&report);
    const char *at = report.text;
    expect(&at, "######################### Stopwatch #########################\n");
    expect(&at, "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
    expect(&at, "1 out of 2");
    expect(&at, "One-time measurements:\n");
    expect(&at, "  `whole run`:   running\n");
    finish();
    print_into(&report);
    assert_non_null(strstr(report.text, "no iteration was measured yet"));
    once("c");
    start("d");
    assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_ESTATE);
    print_into(&report);
    at = report.text;
    expect(&at, "Num. measured iterations: 1\n");
    expect(&at, ". . . . . . . . . . . . . . . . . . . . . . . . . \n");
    expect(&at, "Average runtime per iteration:\n  `a\\nb`:");
    expect(&at, "  `c`:");
    expect(&at, "Average runtime per measured interval:\n");
    expect(&at, "`d`:");
    expect(&at, "running\n");
    expect(&at, "Total runtime:\n");
    expect(&at, "One-time measurements:\n");
    expect(&at, "Used wrongly:\n  `d`:  still ran at the end of an iteration, 1 x\n");
    expect(&at, "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
    expect(&at, "#############################################################\n");
    assert_string_equal(at, "");
}

static void a_stream_that_refuses_is_reported(void **state)
{
    (void)state;
    FILE *const full = fopen("/dev/full", "w");
    enable(0);
    assert_int_equal(marey_stopwatch_print(full), MAREY_EIO);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUIET_TEST(off_it_does_nothing),
        QUIET_TEST(a_second_enable_is_refused),
        QUIET_TEST(results_stay_until_the_next_enable),
        QUIET_TEST(a_reset_forgets_results_and_what_runs),
        QUIET_TEST(options_switch_it_on_and_change_it),
        QUIET_TEST(a_warmup_of_n_leaves_out_exactly_n),
        QUIET_TEST(averages_are_over_all_measured_iterations),
        QUIET_TEST(a_name_seen_only_in_warmup_is_there_with_nothing),
        QUIET_TEST(what_straddles_the_end_of_warmup_counts_from_there),
        QUIET_TEST(warmup_may_be_set_later_and_by_others),
        QUIET_TEST(warmup_counts_from_the_enabling),
        QUIET_TEST(a_reset_of_the_iterations_ends_warmup),
        QUIET_TEST(any_driver_of_iterations_will_do),
        QUIET_TEST(samples_give_a_rate),
        QUIET_TEST(misuse_changes_nothing_and_is_counted),
        QUIET_TEST(in_warmup_misuse_is_reported_as_well),
        QUIET_TEST(what_runs_at_the_end_of_an_iteration_goes_on),
        QUIET_TEST(a_cancelled_one_was_never_started),
        QUIET_TEST(one_time_measurements_are_once),
        QUIET_TEST(names_decide_and_not_places),
        QUIET_TEST(self_time_is_what_is_left),
        QUIET_TEST(what_overlaps_is_counted_once_in_what_is_around),
        QUIET_TEST(unknown_tables_are_refused),
        QUIET_TEST(statistics_are_those_of_the_values),
        QUIET_TEST(the_series_keeps_the_latest_iterations),
        QUIET_TEST(iterations_without_a_name_are_zeros_in_its_series),
        QUIET_TEST(the_latest_interval_is_in_the_sketch),
        QUIET_TEST(iterations_far_above_the_rest_are_named),
        QUIET_TEST(reports_come_at_multiples_and_not_in_warmup),
        QUIET_TEST(the_report_has_its_sections_in_order),
        QUIET_TEST(a_stream_that_refuses_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
