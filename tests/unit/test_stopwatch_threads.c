/* The stopwatch with a recording, on threads, across forks and without memory. */
#include <pthread.h>
#include <sys/wait.h>

#include "stopwatch_view.h"

/* ---- the recording ---- */

struct shape {
    size_t n;
    uint32_t words[64]; /* kind << 20 | id, or a record's type << 24 | id */
};

static marey_status collect(void *ctx, const struct marey_batch *batch)
{
    struct shape *const shape = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        if (shape->n < 64)
            shape->words[shape->n++] = is_record ? marey_record_type_of(word) << 24 |
                                                       marey_record_site(batch->words[i + 1])
                                                 : (uint32_t)word & 0xffffffu;
        i += is_record ? marey_record_length(word) : 1;
    }
    return MAREY_OK;
}

static void read_shape(const char *path, struct shape *shape)
{
    marey_recording *recording;
    *shape = (struct shape){0};
    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        assert_int_equal(marey_recording_visit(recording, i, collect, shape), MAREY_OK);
    marey_recording_close(recording);
}

static void with_a_recording_each_measurement_is_a_range(void **state)
{
    const struct scratch *s = *state;
    const marey_id a = MAREY_ID("a"), b = MAREY_ID("b");
    enable(1);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(a), MAREY_OK); /* in warm-up too */
    assert_int_equal(marey_stopwatch_stop(a), MAREY_OK);
    finish();
    assert_int_equal(marey_stopwatch_start(a), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(b), MAREY_OK);
    assert_int_equal(marey_stopwatch_stop(a), MAREY_OK); /* across b */
    assert_int_equal(marey_stopwatch_stop(b), MAREY_OK);
    finish();
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(value("intervals", "a", "count") == 1);
    const uint32_t expected[] = {
        marey__tag(MAREY_KIND_BEGIN, a),  marey__tag(MAREY_KIND_END, a),
        MAREY_RECORD_ITERATION << 24 | 0, marey__tag(MAREY_KIND_BEGIN, a),
        marey__tag(MAREY_KIND_BEGIN, b),  (uint32_t)MAREY_RECORD_END_OF << 24 | a,
        marey__tag(MAREY_KIND_END, b),    MAREY_RECORD_ITERATION << 24 | 1};
    struct shape shape;
    read_shape(s->path, &shape);
    assert_int_equal(shape.n, MAREY__COUNT_OF(expected));
    assert_memory_equal(shape.words, expected, sizeof expected);
}

static void both_clocks_tell_the_same(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .clock = MAREY_CLOCK_MONOTONIC}),
        MAREY_OK);
    enable(0);
    assert_false(marey__stopwatch_state.is_tsc);
    start("a");
    pass_time();
    stop("a");
    assert_int_equal(marey_stop(), MAREY_OK);
    const double total = value("intervals", "a", "total_ns");
    assert_true(total >= 20000);
    start("a"); /* without the recording the clock stays */
    pass_time();
    stop("a");
    assert_true(value("intervals", "a", "total_ns") >= total + 20000);
}

static void a_recording_with_another_clock_changes_nothing(void **state)
{
    const struct scratch *s = *state;
    enable(0);
    start("a");
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .clock = MAREY_CLOCK_MONOTONIC}),
        MAREY_OK);
    const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
    pass_time();
    stop("a");
    start("b");
    pass_time();
    stop("b");
    const double most = (double)(marey__clock_ns(CLOCK_MONOTONIC) - before);
    assert_true(value("intervals", "b", "total_ns") <= most);
    assert_true(value("intervals", "b", "total_ns") >= 20000 * 0.99);
}

/* ---- threads ---- */

static void *measure_many(void *arg)
{
    const marey_id a = MAREY_ID("many"), inner = MAREY_ID("inner of many");
    for (int i = 0; i < 20000; i++) {
        if (marey_stopwatch_start(a) != MAREY_OK || marey_stopwatch_start(inner) != MAREY_OK ||
            marey_stopwatch_stop(inner) != MAREY_OK || marey_stopwatch_stop(a) != MAREY_OK)
            *(int *)arg += 1;
    }
    return NULL;
}

static void threads_measure_one_name_each_for_itself(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int failures[THREADS] = {0};
    enable(0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, measure_many, &failures[i]), 0);
    for (int i = 0; i < 200; i++) { /* meanwhile somebody looks, and iterations end */
        (void)n_rows("intervals");
        finish();
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
    finish();
    assert_true(value("intervals", "many", "count") == THREADS * 20000);
    assert_true(value("intervals", "many", "threads") == THREADS);
    assert_true(value("threads", "many", "count") == THREADS * 20000); /* all have ended */
    /* No time is lost or counted twice between the iterations. */
    const double by_iteration = value("iterations", "many", "total_ns");
    const double by_interval = value("intervals", "many", "total_ns");
    assert_true(by_iteration > by_interval * 0.9999 && by_iteration < by_interval * 1.0001);
}

static void *start_and_leave(void *arg)
{
    *(marey_status *)arg = marey_stopwatch_start(MAREY_ID("left"));
    return NULL;
}

static void what_runs_when_its_thread_ends_is_dropped_and_reported(void **state)
{
    (void)state;
    pthread_t thread;
    marey_status st = MAREY_EINVAL;
    enable(0);
    assert_int_equal(pthread_create(&thread, NULL, start_and_leave, &st), 0);
    pthread_join(thread, NULL);
    assert_int_equal(st, MAREY_OK);
    assert_true(misuse("left", "still ran when its thread ended") == 1);
    assert_true(value("intervals", "left", "count") == 0);
    assert_true(value("intervals", "left", "running") == 0);
}

struct meeting {
    pthread_barrier_t barrier;
    marey_status statuses[8];
    bool is_left_clean; /* nothing is in the first thread's chain */
};

static void *start_for_another(void *arg)
{
    struct meeting *const meeting = arg;
    meeting->statuses[0] = marey_stopwatch_start(MAREY_ID("handed over"));
    pthread_barrier_wait(&meeting->barrier); /* it runs */
    pthread_barrier_wait(&meeting->barrier); /* the other has stopped it */
    meeting->statuses[1] = marey_stopwatch_start(MAREY_ID("handed over"));
    meeting->statuses[2] = marey_stopwatch_start(MAREY_ID("inside"));
    meeting->statuses[3] = marey_stopwatch_stop(MAREY_ID("inside"));
    meeting->statuses[4] = marey_stopwatch_stop(MAREY_ID("handed over"));
    meeting->statuses[5] = marey_stopwatch_stop(MAREY_ID("handed over"));
    meeting->is_left_clean = marey__stopwatch_self.top == NULL;
    return NULL;
}

static void a_measurement_may_stop_on_another_thread(void **state)
{
    (void)state;
    struct meeting meeting;
    pthread_t thread;
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    enable(0);
    assert_int_equal(pthread_create(&thread, NULL, start_for_another, &meeting), 0);
    pthread_barrier_wait(&meeting.barrier);
    pass_time();
    stop("handed over");
    assert_true(value("intervals", "handed over", "total_ns") >= 20000 * 0.99);
    assert_int_equal(marey_stopwatch_stop(MAREY_ID("handed over")), MAREY_ESTATE); /* only once */
    pthread_barrier_wait(&meeting.barrier);
    pthread_join(thread, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(meeting.statuses[i], MAREY_OK);
    assert_int_equal(meeting.statuses[5], MAREY_ESTATE);
    assert_true(meeting.is_left_clean);
    assert_true(value("intervals", "handed over", "count") == 2);
    pthread_barrier_destroy(&meeting.barrier);
}

static void *toggle(void *arg)
{
    for (int i = 0; i < 300; i++) {
        marey_stopwatch_reset();
        marey_stopwatch_disable();
        if (marey_stopwatch_enable(NULL) != MAREY_OK)
            *(int *)arg += 1;
    }
    return NULL;
}

static void resets_in_the_middle_of_measurements_hurt_nobody(void **state)
{
    (void)state;
    pthread_t threads[2];
    int ignored = 0, failures = 0;
    enable(0);
    assert_int_equal(pthread_create(&threads[0], NULL, measure_many, &ignored), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, toggle, &failures), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(failures, 0);
    marey_stopwatch_reset();
    once("many");
    assert_true(value("intervals", "many", "count") == 1);
}

/* ---- forks ---- */

static int child_of_fork(void)
{
    struct marey_progress_counts counts;
    marey_iteration_counts(&counts);
    if (!marey_stopwatch_is_enabled() || counts.iterations != 0 || marey_stopwatch_n_measured() != 0)
        return 1;
    if (marey_stopwatch_stop(MAREY_ID("across")) != MAREY_OK)
        return 2;
    start("in the child");
    stop("in the child");
    finish();
    if (value("intervals", "across", "count") != 1 || value("intervals", "parent's", "count") != -1)
        return 3;
    if (marey_stopwatch_n_measured() != 1 || n_rows("misuse") != 0)
        return 4;
    return 0;
}

static void a_child_starts_with_nothing_but_what_runs(void **state)
{
    (void)state;
    enable(0);
    once("parent's");
    finish();
    start("across");
    const pid_t child = fork();
    if (child == 0)
        _exit(child_of_fork());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stop("across");
    assert_true(value("intervals", "parent's", "count") == 1);
    assert_true(value("intervals", "across", "count") == 1);
}

/* ---- memory ---- */

static void without_memory_it_says_so_and_goes_on(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 30; n++) {
        char name[32];
        enable(0);
        snprintf(name, sizeof name, "failing %d", (int)n);
        const marey_id id = marey_site_intern(name, strlen(name), NULL, 0, NULL, 0);
        marey__alloc_fail_nth(n);
        marey_status first = marey_stopwatch_start(id), second = marey_stopwatch_stop(id);
        finish();
        marey__alloc_fail_nth(0);
        assert_true(first == MAREY_OK || first == MAREY_ENOMEM);
        assert_true(second == MAREY_OK || second == MAREY_ENOMEM || second == MAREY_ESTATE);
        once(name);
        finish();
        assert_true(value("intervals", name, "count") >= 1);
        marey_stopwatch_disable();
    }
}

static void a_table_or_report_without_memory_fails_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"intervals", "iterations", "iteration", "threads",
                                        "once",      "series",     "outliers",  "misuse"};
    enable(0);
    for (int i = 0; i < 20; i++) {
        once("a");
        finish();
    }
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        for (uint64_t n = 1;; n++) {
            marey_table *table = NULL;
            marey__alloc_fail_nth(n);
            const marey_status st = marey_stopwatch_table(names[i], &table);
            marey__alloc_fail_nth(0);
            marey_table_destroy(table);
            if (st == MAREY_OK)
                break;
            assert_int_equal(st, MAREY_ENOMEM);
            assert_null(table);
        }
    FILE *const nowhere = fopen("/dev/null", "w");
    marey_status st = MAREY_ENOMEM;
    for (uint64_t n = 1; st != MAREY_OK; n++) {
        marey__alloc_fail_nth(n);
        st = marey_stopwatch_print(nowhere);
        marey__alloc_fail_nth(0);
        assert_true(st == MAREY_OK || st == MAREY_ENOMEM);
    }
    fclose(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUIET_TEST(with_a_recording_each_measurement_is_a_range),
        QUIET_TEST(both_clocks_tell_the_same),
        QUIET_TEST(a_recording_with_another_clock_changes_nothing),
        QUIET_TEST(threads_measure_one_name_each_for_itself),
        QUIET_TEST(what_runs_when_its_thread_ends_is_dropped_and_reported),
        QUIET_TEST(a_measurement_may_stop_on_another_thread),
        QUIET_TEST(resets_in_the_middle_of_measurements_hurt_nobody),
        QUIET_TEST(a_child_starts_with_nothing_but_what_runs),
        QUIET_TEST(without_memory_it_says_so_and_goes_on),
        QUIET_TEST(a_table_or_report_without_memory_fails_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
