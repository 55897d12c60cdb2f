/* Comparing ranks: typical times, outliers, their ranges, their machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "summary_view.h"

enum { STEP = 1, DATA = 2, FORWARD = 3, N_ITERATIONS = 33 };

struct times {
    uint64_t data, forward;
};
typedef struct times (*rule)(uint32_t rank, uint64_t i);

struct job {
    char folder[32];
    uint32_t n;
    marey_recording *recording;
};

static void write_rank(const struct job *job, uint32_t r, rule times, bool has_iterations)
{
    struct log_maker *log = calloc(1, sizeof *log);
    char rank[12], pid[12], host[24], path[64];
    assert_non_null(log);
    snprintf(rank, sizeof rank, "%u", r);
    snprintf(pid, sizeof pid, "%u", 100 + r);
    snprintf(host, sizeof host, "node%u", r / 4);
    const char *const pairs[] = {"pid", pid,       "rank",       rank,    "host", host, "run_id",
                                 "abc", "tick_hz", "1000000000", "clock", "tsc",  NULL};
    log_put_pairs(log, MAREY__BLOCK_LOG, pairs);
    log_put_site(log, STEP, "step");
    log_put_site(log, DATA, "data");
    log_put_site(log, FORWARD, "forward");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
    uint64_t t = 0;
    for (uint64_t i = 0; i < N_ITERATIONS; i++) {
        const struct times took = times(r, i);
        log_begin(log, t, STEP);
        log_begin(log, t, DATA);
        log_end(log, t + took.data, DATA);
        log_begin(log, t + took.data, FORWARD);
        t += took.data + took.forward;
        log_end(log, t, FORWARD);
        log_end(log, t, STEP);
        if (has_iterations)
            log_iteration(log, t, i, i == 0, 0);
    }
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
    snprintf(path, sizeof path, "%s/r%u.klog", job->folder, r);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(log->bytes.data, 1, log->bytes.len, file), log->bytes.len);
    assert_int_equal(fclose(file), 0);
    log_maker_fini(log);
    free(log);
}

static struct job make_job(uint32_t n, rule times, bool has_iterations)
{
    struct job job = {.folder = "/tmp/marey-job-XXXXXX", .n = n};
    assert_non_null(mkdtemp(job.folder));
    for (uint32_t r = 0; r < n; r++)
        write_rank(&job, r, times, has_iterations);
    assert_int_equal(marey_recording_open(job.folder, &job.recording), MAREY_OK);
    return job;
}

static void end_job(struct job *job)
{
    marey_recording_close(job->recording);
    for (uint32_t r = 0; r < job->n; r++) {
        char path[64];
        snprintf(path, sizeof path, "%s/r%u.klog", job->folder, r);
        unlink(path);
    }
    assert_int_equal(rmdir(job->folder), 0);
}

static marey_report *summarise(rule times, uint32_t n, bool has_iterations)
{
    struct job job = make_job(n, times, has_iterations);
    marey_report *summary;
    assert_int_equal(marey_report_create("ranges", &job.recording, 1, NULL, &summary), MAREY_OK);
    end_job(&job);
    return summary;
}

static double real(marey_report *summary, const char *table, size_t row, const char *column)
{
    return cell(summary, table, row, column).as.f64;
}

static void expect_text(marey_report *summary, const char *table, size_t row, const char *column,
                        const char *text)
{
    assert_string_equal(cell(summary, table, row, column).as.text, text);
}

/* ---- one slow rank, one slow machine ---- */

/* Rank 6 is slower in `forward` in three of four; the ranks of node3, 12 to 15, wait longer for data; others differ a little. */
static struct times planted(uint32_t rank, uint64_t i)
{
    struct times times = {2000, 8000 + rank};
    times.forward += rank == 6 && i % 4 != 0 ? 4000 : 0;
    times.data += rank >= 12 && rank < 16 ? 1500 : 0;
    return times;
}

static void slow_ranks_and_hosts_stand_out(void **state)
{
    (void)state;
    marey_report *summary = summarise(planted, 20, true);
    assert_int_equal(n_rows(summary, "rank_times"), 20);
    assert_int_equal(number(summary, "rank_times", 0, "rank"), 6);
    expect_text(summary, "rank_times", 0, "host", "node1");
    expect_text(summary, "rank_times", 0, "per", "iteration");
    expect_text(summary, "rank_times", 0, "longer", "forward");
    assert_int_equal(number(summary, "rank_times", 0, "mean_ns"), 10006 + 3000); /* 24 of 32 */
    assert_int_equal(number(summary, "rank_times", 0, "outlier"), 1);
    /* Three quarters of its iterations: the quantiles are 33. */
    assert_true(real(summary, "rank_times", 0, "slow_share") > 0.72 &&
                real(summary, "rank_times", 0, "slow_share") < 0.78);
    for (size_t row = 1; row <= 4; row++) {
        assert_int_equal(number(summary, "rank_times", row, "rank"), 16 - row);
        expect_text(summary, "rank_times", row, "longer", "data");
        assert_int_equal(number(summary, "rank_times", row, "longer_by_ns"), 1500);
        assert_int_equal(number(summary, "rank_times", row, "outlier"), 1);
    }
    assert_int_equal(number(summary, "rank_times", 5, "outlier"), 0);
    assert_true(cell(summary, "rank_times", 19, "longer").is_null);
    assert_int_equal(number(summary, "rank_times", 19, "rank"), 0);

    assert_int_equal(n_rows(summary, "rank_hosts"), 5);
    expect_text(summary, "rank_hosts", 0, "host", "node3");
    assert_int_equal(number(summary, "rank_hosts", 0, "outlier"), 1);
    assert_int_equal(number(summary, "rank_hosts", 0, "outliers"), 4);
    for (size_t row = 1; row < 5; row++)
        assert_int_equal(number(summary, "rank_hosts", row, "outlier"), 0);
    marey_report_destroy(summary);
}

static void the_spread_is_reported_by_medians(void **state)
{
    (void)state;
    marey_report *summary = summarise(planted, 20, true);
    assert_int_equal(n_rows(summary, "rank_spread"), 4);
    expect_text(summary, "rank_spread", 0, "name", "(whole iteration)");
    const size_t forward = row_of(summary, "rank_spread", "forward");
    assert_int_equal(number(summary, "rank_spread", forward, "ranks"), 20);
    assert_int_equal(number(summary, "rank_spread", forward, "median_ns"),
                     8010 + 1); /* 6 is above: 10.5 */
    assert_int_equal(number(summary, "rank_spread", forward, "min_ns"), 8000);
    assert_int_equal(number(summary, "rank_spread", forward, "max_ns"), 11006);
    assert_int_equal(number(summary, "rank_spread", forward, "max_rank"), 6);
    assert_int_equal(number(summary, "rank_spread", forward, "outliers"), 1);
    assert_int_equal(
        number(summary, "rank_spread", row_of(summary, "rank_spread", "data"), "outliers"), 4);
    assert_int_equal(
        number(summary, "rank_spread", row_of(summary, "rank_spread", "data"), "mad_ns"), 0);
    /* By how much, largest first: forward of rank 6, and what encloses it. */
    assert_int_equal(number(summary, "rank_outliers", 0, "rank"), 6);
    expect_text(summary, "rank_outliers", 0, "name", "(whole iteration)");
    marey_report_destroy(summary);
}

/* ---- no false outliers ---- */

static struct times noisy(uint32_t rank, uint64_t i)
{
    return (struct times){2000 + 37 * ((rank * 7 + i * 3) % 11), 8000 + 61 * ((rank * 5 + i) % 13)};
}

static void ranks_that_differ_by_chance_are_no_outliers(void **state)
{
    (void)state;
    marey_report *summary = summarise(noisy, 20, true);
    assert_int_equal(n_rows(summary, "rank_outliers"), 0);
    for (size_t row = 0; row < 5; row++)
        assert_int_equal(number(summary, "rank_hosts", row, "outlier"), 0);
    marey_report_destroy(summary);
}

static void a_few_ranks_are_not_judged(void **state)
{
    (void)state;
    marey_report *summary = summarise(planted, 4, true);
    assert_int_equal(n_rows(summary, "rank_times"), 4);
    assert_int_equal(n_rows(summary, "rank_outliers"), 0);
    assert_int_equal(n_rows(summary, "rank_hosts"), 0); /* one machine */
    marey_report_destroy(summary);
    summary = summarise(planted, 1, true);
    assert_int_equal(n_rows(summary, "rank_times"), 0);
    assert_int_equal(n_rows(summary, "rank_spread"), 0);
    marey_report_destroy(summary);
}

static void without_iterations_whole_runs_are_compared(void **state)
{
    (void)state;
    marey_report *summary = summarise(planted, 20, false);
    expect_text(summary, "rank_times", 0, "per", "run");
    assert_int_equal(number(summary, "rank_times", 0, "rank"), 6);
    assert_true(cell(summary, "rank_times", 0, "slow_share").is_null);
    expect_text(summary, "rank_times", 0, "longer", "forward");
    expect_text(summary, "rank_spread", 0, "name", "(whole run)");
    marey_report_destroy(summary);
}

static void many_ranks_are_reported_by_exception(void **state)
{
    (void)state;
    marey_report *summary = summarise(planted, 20, true);
    const struct marey_write_options options = {.table = "ranks", .limit = 30};
    char text[16384] = {0};
    FILE *out = tmpfile();
    assert_int_equal(marey_report_write(summary, "text", &options, out), MAREY_OK);
    rewind(out);
    assert_true(fread(text, 1, sizeof text - 1, out) > 0);
    fclose(out);
    assert_non_null(strstr(text, "ranks: 20 on 5 hosts; an iteration takes 10.0 us in the median"));
    assert_non_null(strstr(text, "slowest: rank 6 on node1, 13.0 us, 29."));
    assert_non_null(strstr(text, "forward is longer by 3.00 us; slow in 7"));
    assert_non_null(strstr(text, "outliers: 5 of 20 ranks are slow, 0 are fast"));
    assert_non_null(
        strstr(text, "host node3 is an outlier: 4 ranks, 15.0 % above those elsewhere"));
    marey_report_destroy(summary);
}

static void each_failed_allocation_is_reported(void **state)
{
    (void)state;
    struct job job = make_job(6, planted, true);
    const struct marey_report_options options = {.n_jobs = 1};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t n = 1; status != MAREY_OK; n++) {
        marey_report *summary = NULL;
        marey__alloc_fail_nth(n);
        status = marey_report_create("ranges", &job.recording, 1, &options, &summary);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey_report_destroy(summary);
    }
    end_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_ranks_and_hosts_stand_out),
        cmocka_unit_test(the_spread_is_reported_by_medians),
        cmocka_unit_test(ranks_that_differ_by_chance_are_no_outliers),
        cmocka_unit_test(a_few_ranks_are_not_judged),
        cmocka_unit_test(without_iterations_whole_runs_are_compared),
        cmocka_unit_test(many_ranks_are_reported_by_exception),
        cmocka_unit_test(each_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
