/* Epochs over ranks: their phases, which ones count, the slowest rank, truncated ones. */
#include <fcntl.h>
#include <math.h>

#include "log_maker.h"
#include "scratch.h"
#include <marey/report.h>

enum { DATA = 1, FORWARD = 2, BACKWARD = 3, OWN = 4 };

/* A process of a rank of a run, with the sites above. Times are seconds. */
struct rank {
    struct log_maker log;
    char pid[16], rank[16], start[32];
};

static uint64_t ns_of(double t)
{
    return (uint64_t)(t * 1e9 + 0.5);
}

static void begin(struct rank *r, int number, const char *run)
{
    *r = (struct rank){0};
    snprintf(r->pid, sizeof r->pid, "%d", 100 + number);
    snprintf(r->rank, sizeof r->rank, "%d", number);
    const char *const pairs[] = {"pid", r->pid, "rank", r->rank, "run_id", run, NULL};
    log_put_process(&r->log, NULL, NULL);
    log_put_pairs(&r->log, MAREY__BLOCK_LOG, pairs);
    log_put_site(&r->log, DATA, "data");
    log_put_site(&r->log, FORWARD, "forward");
    log_put_site(&r->log, BACKWARD, "backward");
    log_put_site(&r->log, OWN, "augment");
    log_put_lane(&r->log, 0, 100, "main");
    log_put_moment(&r->log, 0, 0);
    log_put_moment(&r->log, 1000000000, 1000000000);
}

static void phase(struct rank *r, double t, uint32_t site)
{
    log_phase(&r->log, ns_of(t), site);
}

static void epoch(struct rank *r, double t, uint64_t number, bool begins)
{
    log_epoch(&r->log, ns_of(t), number, begins);
}

/* An epoch from `t` on: data, forward, backward, then a tenth of a second of nothing; its end is returned. */
static double train(struct rank *r, double t, uint64_t number, double data, double backward)
{
    epoch(r, t, number, true);
    phase(r, t, DATA);
    phase(r, t + data, FORWARD);
    phase(r, t + data + 1, BACKWARD);
    phase(r, t + data + 1 + backward, 0);
    log_iteration(&r->log, ns_of(t + data + 1 + backward), number, false, 32);
    t += data + 1 + backward + 0.1;
    epoch(r, t, number, false);
    return t;
}

static void finish(struct rank *r, const char *folder, const char *name, const char *how)
{
    char path[160];
    if (r->log.n_words != 0)
        log_put_words(&r->log, 0, 0);
    if (how != NULL)
        log_put_end(&r->log, how);
    snprintf(path, sizeof path, "%s/%s.klog", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && marey__write_all(fd, r->log.bytes.data, r->log.bytes.len));
    close(fd);
    log_maker_fini(&r->log);
}

static marey_report *report_of(const char *folder, bool with_first)
{
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    const char *const settings[] = {with_first ? "first" : NULL, NULL};
    const struct marey_report_options options = {.settings = settings};
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("epochs", &recording, 1, &options, &report), MAREY_OK);
    marey_recording_close(recording);
    return report;
}

static struct marey_cell cell(marey_report *report, const char *name, size_t row, const char *column)
{
    const marey_table *table = marey_report_table(report, name);
    assert_non_null(table);
    assert_true(row < marey_table_n_rows(table));
    const int c = marey_table_find(table, column);
    assert_true(c >= 0);
    return marey_table_cell(table, row, (size_t)c);
}

static uint64_t number(marey_report *report, const char *name, size_t row, const char *column)
{
    return cell(report, name, row, column).as.u64;
}

static size_t rows(marey_report *report, const char *name)
{
    return marey_table_n_rows(marey_report_table(report, name));
}

static double real(marey_report *report, const char *name, size_t row, const char *column)
{
    return cell(report, name, row, column).as.f64;
}

/* ---- parts of an epoch ---- */

static void phases_and_other_add_up_to_the_epoch(void **state)
{
    const struct scratch *s = *state;
    struct rank r;
    begin(&r, 0, "a");
    phase(&r, 0.5, DATA); /* open when the epoch begins, and when it ends */
    epoch(&r, 1, 0, true);
    phase(&r, 2, OWN);
    phase(&r, 2.5, DATA);
    phase(&r, 3, 0);
    phase(&r, 3.25, FORWARD);
    epoch(&r, 4, 0, false);
    phase(&r, 9, 0);
    finish(&r, s->folder, "r0", "stop");
    marey_report *report = report_of(s->folder, true);
    assert_int_equal(number(report, "ranks", 0, "duration_ns"), 3000000000);
    assert_int_equal(number(report, "ranks", 0, "data_ns"), 1500000000);
    assert_int_equal(number(report, "ranks", 0, "forward_ns"), 750000000);
    assert_int_equal(number(report, "ranks", 0, "backward_ns"), 0);
    assert_int_equal(number(report, "ranks", 0, "other_ns"), 750000000); /* of which 0.5 s is OWN */
    /* by name: what the program calls its own has a row, and so has the rest */
    assert_int_equal(rows(report, "phases"), 4);
    assert_string_equal(cell(report, "phases", 2, "name").as.text, "augment");
    assert_int_equal(number(report, "phases", 2, "mean_ns"), 500000000);
    assert_string_equal(cell(report, "phases", 3, "name").as.text, "(no phase)");
    assert_int_equal(number(report, "phases", 3, "mean_ns"), 250000000);
    assert_int_equal(number(report, "phases", 0, "count"), 1); /* one of two began within it */
    marey_report_destroy(report);
}

static void the_first_epoch_is_no_part_of_averages(void **state)
{
    const struct scratch *s = *state;
    struct rank r;
    begin(&r, 0, "a");
    double t = train(&r, 1, 0, 30, 1);
    t = train(&r, t, 1, 10, 1);
    t = train(&r, t, 2, 12, 1);
    train(&r, t, 3, 11, 1);
    finish(&r, s->folder, "r0", "stop");
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(number(report, "averages", 0, "epochs"), 3);
    assert_int_equal(number(report, "averages", 0, "mean_ns"), 13100000000);
    assert_int_equal(number(report, "averages", 0, "median_ns"), 13100000000);
    assert_int_equal(number(report, "averages", 0, "std_ns"), 1000000000);
    assert_int_equal(number(report, "averages", 0, "min_ns"), 12100000000);
    assert_int_equal(number(report, "averages", 0, "data_ns"), 11000000000);
    assert_true(fabs(real(report, "averages", 0, "samples_per_s") * 39.3 - 96) < 1e-6);
    assert_string_equal(cell(report, "ranks", 0, "note").as.text, "first");
    assert_false(number(report, "ranks", 0, "counted"));
    assert_int_equal(rows(report, "notes"), 0);
    marey_report_destroy(report);
    report = report_of(s->folder, true);
    assert_int_equal(number(report, "averages", 0, "epochs"), 4);
    assert_int_equal(number(report, "averages", 0, "mean_ns"), 17850000000);
    marey_report_destroy(report);
}

static void one_epoch_is_better_than_none(void **state)
{
    const struct scratch *s = *state;
    struct rank r;
    begin(&r, 0, "a");
    train(&r, 1, 0, 3, 1);
    finish(&r, s->folder, "r0", "stop");
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(number(report, "averages", 0, "epochs"), 1);
    assert_int_equal(rows(report, "notes"), 1);
    assert_non_null(strstr(cell(report, "notes", 0, "text").as.text, "no epoch but the first"));
    marey_report_destroy(report);
}

/* ---- ranks ---- */

static void the_slowest_rank_is_named_with_its_phase(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 3; i++) {
        struct rank r;
        char name[8];
        begin(&r, i, "a");
        double t = train(&r, 1, 0, 2, 1);
        for (uint64_t e = 1; e < 4; e++)
            t = train(&r, t, e, i == 1 ? 4 : 2, 1);
        snprintf(name, sizeof name, "r%d", i);
        finish(&r, s->folder, name, "stop");
    }
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(rows(report, "epochs"), 4);
    assert_true(cell(report, "epochs", 0, "slowest_rank").is_null);
    assert_int_equal(number(report, "epochs", 1, "ranks"), 3);
    assert_int_equal(number(report, "epochs", 1, "duration_ns"), 6100000000);
    assert_int_equal(number(report, "epochs", 1, "shortest_ns"), 4100000000);
    assert_int_equal(cell(report, "epochs", 1, "slowest_rank").as.i64, 1);
    assert_int_equal(number(report, "epochs", 1, "behind_ns"), 2000000000);
    assert_string_equal(cell(report, "epochs", 1, "slowest_in").as.text, "data");
    assert_true(real(report, "epochs", 1, "samples") == 96);
    assert_int_equal(rows(report, "ranks"), 12);
    assert_int_equal(rows(report, "averages"), 4); /* all, and each of three */
    assert_true(cell(report, "averages", 0, "rank").is_null);
    assert_int_equal(number(report, "averages", 0, "mean_ns"), 6100000000);
    assert_int_equal(number(report, "averages", 1, "mean_ns"), 4100000000);
    assert_int_equal(cell(report, "averages", 2, "rank").as.i64, 1);
    assert_int_equal(number(report, "averages", 2, "slowest"), 3);
    assert_int_equal(number(report, "averages", 3, "slowest"), 0);
    marey_report_destroy(report);
}

/* Data parallel: who is quick waits in backward, and all take equally long. */
static void of_ranks_in_step_the_busiest_is_the_slowest(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, i, "a");
        double t = 1;
        for (uint64_t e = 0; e < 3; e++)
            t = train(&r, t, e, i == 1 ? 4 : 2, i == 1 ? 1 : 3);
        finish(&r, s->folder, i == 0 ? "r0" : "r1", "stop");
    }
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(cell(report, "epochs", 1, "slowest_rank").as.i64, 1);
    assert_string_equal(cell(report, "epochs", 1, "slowest_in").as.text, "data");
    assert_int_equal(number(report, "epochs", 1, "behind_ns"), 2000000000);
    marey_report_destroy(report);
}

static void ranks_that_are_as_quick_have_no_slowest(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, i, "a");
        train(&r, train(&r, 1, 0, 2, 1), 1, 2 + 0.01 * i, 1);
        finish(&r, s->folder, i == 0 ? "r0" : "r1", "stop");
    }
    marey_report *report = report_of(s->folder, false);
    assert_true(cell(report, "epochs", 1, "slowest_rank").is_null);
    assert_true(cell(report, "epochs", 1, "slowest_in").is_null);
    marey_report_destroy(report);
}

static void runs_are_not_mixed(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, 0, i == 0 ? "one" : "two");
        train(&r, train(&r, 1, 0, 2, 1), 1, i == 0 ? 2 : 3, 1);
        finish(&r, s->folder, i == 0 ? "r0" : "r1", "stop");
    }
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(rows(report, "epochs"), 4);
    assert_int_equal(number(report, "epochs", 0, "ranks"), 1);
    assert_int_equal(number(report, "epochs", 3, "run"), 2);
    assert_int_equal(rows(report, "averages"), 4);
    const uint64_t first = number(report, "averages", 0, "mean_ns"),
                   second = number(report, "averages", 2, "mean_ns");
    assert_int_equal(first + second, 9200000000);
    assert_int_equal(first > second ? first - second : second - first, 1000000000);
    marey_report_destroy(report);
}

/* ---- missing data ---- */

static void an_epoch_that_was_not_ended_does_not_count(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, i, "a");
        double t = train(&r, train(&r, 1, 0, 2, 1), 1, 2, 1);
        epoch(&r, t, 2, true);
        phase(&r, t, DATA);
        phase(&r, t + 1, FORWARD);
        if (i == 0) {
            phase(&r, t + 2, 0);
            epoch(&r, t + 2, 2, false);
        }
        finish(&r, s->folder, i == 0 ? "r0" : "r1", i == 0 ? "stop" : NULL); /* rank 1 was killed */
    }
    marey_report *report = report_of(s->folder, false);
    assert_int_equal(rows(report, "epochs"), 3);
    assert_true(number(report, "epochs", 1, "counted"));
    assert_false(number(report, "epochs", 2, "counted"));
    assert_string_equal(cell(report, "ranks", 5, "note").as.text, "not ended");
    assert_int_equal(number(report, "ranks", 5, "duration_ns"), 1000000000);
    assert_int_equal(number(report, "ranks", 5, "data_ns"), 1000000000);
    assert_int_equal(number(report, "averages", 0, "epochs"), 1);
    assert_non_null(strstr(cell(report, "notes", 0, "text").as.text, "not ended"));
    marey_report_destroy(report);
}

static void a_recording_without_epochs_says_what_to_do(void **state)
{
    const struct scratch *s = *state;
    struct rank r;
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    begin(&r, 0, "a");
    phase(&r, 1, DATA);
    phase(&r, 2, 0);
    finish(&r, s->folder, "r0", "stop");
    assert_int_equal(marey_recording_open(s->folder, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("epochs", &recording, 1, NULL, &report), MAREY_EFORMAT);
    assert_null(report);
    assert_non_null(strstr(marey_last_error(), "marey.TrainingMonitor"));
    marey_recording_close(recording);
}

/* A record of a damaged file may name a site that there is none of. */
static void a_phase_without_a_name_is_other(void **state)
{
    const struct scratch *s = *state;
    struct rank r;
    begin(&r, 0, "a");
    epoch(&r, 1, 0, true);
    phase(&r, 1, 4000);
    phase(&r, 2, 0);
    epoch(&r, 3, 0, false);
    finish(&r, s->folder, "r0", "stop");
    marey_report *report = report_of(s->folder, true);
    assert_int_equal(number(report, "ranks", 0, "other_ns"), 2000000000);
    marey_report_destroy(report);
}

static void each_allocation_may_fail(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording = NULL;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, i, "a");
        double t = 1;
        for (uint64_t e = 0; e < 3; e++)
            t = train(&r, t, e, 2 + i, 1);
        epoch(&r, t, 3, true);
        phase(&r, t, OWN);
        phase(&r, t + 1, 0);
        finish(&r, s->folder, i == 0 ? "r0" : "r1", "stop");
    }
    assert_int_equal(marey_recording_open(s->folder, &recording), MAREY_OK);
    for (uint64_t nth = 1;; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        const marey_status status = marey_report_create("epochs", &recording, 1, NULL, &report);
        marey__alloc_fail_nth(0);
        marey_report_destroy(report);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    marey_recording_close(recording);
}

/* ---- for people ---- */

static void the_text_tells_the_answer_first(void **state)
{
    const struct scratch *s = *state;
    char *text = NULL;
    size_t len = 0;
    for (int i = 0; i < 2; i++) {
        struct rank r;
        begin(&r, i, "a");
        double t = 1;
        for (uint64_t e = 0; e < 3; e++)
            t = train(&r, t, e, i == 1 ? 4 : 2, 1);
        finish(&r, s->folder, i == 0 ? "r0" : "r1", "stop");
    }
    marey_report *report = report_of(s->folder, false);
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(report, "text", NULL, out), MAREY_OK);
    fclose(out);
    assert_ptr_equal(
        strstr(text, "an epoch takes 6.10 s (median of 2 of 3; mean 6.10 s, 6.10 s to 6.10 s), "
                     "10.49 samples/s\nrank 1 is the slowest in 2 of 2, by 2.00 s on average, "
                     "mostly in data\n"),
        text);
    assert_null(strstr(text, "checkpoint")); /* nobody wrote one */
    assert_null(strstr(text, "run"));
    free(text);
    out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(report, "json", NULL, out), MAREY_OK);
    fclose(out);
    assert_non_null(strstr(text, "\"slowest_in\": \"data\""));
    free(text);
    marey_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(phases_and_other_add_up_to_the_epoch),
        SCRATCH_TEST(the_first_epoch_is_no_part_of_averages),
        SCRATCH_TEST(one_epoch_is_better_than_none),
        SCRATCH_TEST(the_slowest_rank_is_named_with_its_phase),
        SCRATCH_TEST(of_ranks_in_step_the_busiest_is_the_slowest),
        SCRATCH_TEST(ranks_that_are_as_quick_have_no_slowest),
        SCRATCH_TEST(runs_are_not_mixed),
        SCRATCH_TEST(an_epoch_that_was_not_ended_does_not_count),
        SCRATCH_TEST(a_recording_without_epochs_says_what_to_do),
        SCRATCH_TEST(a_phase_without_a_name_is_other),
        SCRATCH_TEST(each_allocation_may_fail),
        SCRATCH_TEST(the_text_tells_the_answer_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
