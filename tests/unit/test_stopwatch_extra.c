/* The stopwatch's measurements besides wall time: waiting for the GPU, GPU times (with a fake
 * driver), usage. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "instrument/cuda/internal.h"
#include "instrument/stopwatch/internal.h"
#include "scratch.h"

static int n_syncs;

static int count_sync(void)
{
    n_syncs++;
    return 1;
}

static void hear_nothing(void *ctx, const char *sentence)
{
    snprintf(ctx, 256, "%s", sentence);
}

static char heard[256];

static int setup(void **state)
{
    heard[0] = '\0';
    marey_set_sink(hear_nothing, heard);
    marey_cuda_set_sync_hook(count_sync);
    n_syncs = 0;
    return scratch_setup(state);
}

static int teardown(void **state)
{
    const int status = scratch_teardown(state);
    marey_cuda_set_sync_hook(NULL);
    marey_set_sink(NULL, NULL);
    return status;
}

#define EXTRA_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void enable(const struct marey_stopwatch_options *options)
{
    assert_int_equal(marey_stopwatch_enable(options), MAREY_OK);
}

static void finish(void)
{
    assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_OK);
}

/* Of the first row; a null is -1. */
static double value(const char *which, const char *column)
{
    marey_table *table = NULL;
    assert_int_equal(marey_stopwatch_table(which, &table), MAREY_OK);
    const int place = marey_table_find(table, column);
    assert_true(place >= 0 && marey_table_n_rows(table) > 0);
    const struct marey_cell cell = marey_table_cell(table, 0, (size_t)place);
    const enum marey_type type = marey_table_column(table, (size_t)place)->type;
    marey_table_destroy(table);
    return cell.is_null ? -1 : type == MAREY_TYPE_F64 ? cell.as.f64 : (double)cell.as.i64;
}

static size_t n_rows(const char *which)
{
    marey_table *table = NULL;
    assert_int_equal(marey_stopwatch_table(which, &table), MAREY_OK);
    const size_t n = marey_table_n_rows(table);
    marey_table_destroy(table);
    return n;
}

static void measure(marey_id id)
{
    assert_int_equal(marey_stopwatch_start(id), MAREY_OK);
    assert_int_equal(marey_stopwatch_stop(id), MAREY_OK);
}

/* ---- waiting ---- */

static void it_waits_at_both_ends_and_only_after_warmup(void **state)
{
    (void)state;
    enable(&(struct marey_stopwatch_options){.warmup = 2, .gpu = MAREY_GPU_SYNC});
    for (int i = 0; i < 5; i++) {
        measure(MAREY_ID("a"));
        finish();
        assert_int_equal(n_syncs, i < 2 ? 0 : 2 * (i - 1));
    }
    assert_int_equal(marey_stopwatch_once_start(MAREY_ID("once")), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_stop(MAREY_ID("once")), MAREY_OK);
    assert_int_equal(n_syncs, 6); /* not asked for there */
}

static void it_never_waits_unless_asked(void **state)
{
    (void)state;
    enable(NULL);
    measure(MAREY_ID("a"));
    finish();
    marey_stopwatch_disable();
    assert_int_equal(n_syncs, 0);
    enable(&(struct marey_stopwatch_options){.sync_one_time = 1});
    measure(MAREY_ID("a"));
    assert_int_equal(n_syncs, 0);
    assert_int_equal(marey_stopwatch_once_start(MAREY_ID("once")), MAREY_OK);
    assert_int_equal(marey_stopwatch_once_stop(MAREY_ID("once")), MAREY_OK);
    assert_int_equal(n_syncs, 2);
}

/* ---- times on the GPU ---- */

static struct {
    double *ms, *done_ms;
    int *is_capturing;
    void (*set_ctx)(uintptr_t ctx);
} driver;

static void without_cuda_one_sentence_is_said_and_time_is_measured(void **state)
{
    (void)state;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL)
        skip(); /* a machine that has it */
    enable(&(struct marey_stopwatch_options){.gpu = MAREY_GPU_EVENTS});
    assert_non_null(strstr(heard, "GPU times are not measured"));
    measure(MAREY_ID("a"));
    finish();
    assert_true(value("intervals", "count") == 1);
    assert_int_equal(n_rows("gpu"), 0);
}

/* The test's own, where the machine has none. */
static void load_driver(void)
{
    static void *library;
    if (library == NULL && dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL)
        skip();
    library = dlopen(MAREY_TEST_CUDA_DRIVER, RTLD_NOW);
    assert_non_null(library);
    *(void **)&driver.ms = dlsym(library, "marey_test_gpu_ms");
    *(void **)&driver.done_ms = dlsym(library, "marey_test_gpu_done_ms");
    *(void **)&driver.is_capturing = dlsym(library, "marey_test_gpu_is_capturing");
    *(void **)&driver.set_ctx = dlsym(library, "marey_test_gpu_set_ctx");
    assert_non_null(driver.set_ctx);
    driver.set_ctx(7);
    *driver.ms = *driver.done_ms = 0;
}

static void measure_on_gpu(marey_id id, double ms)
{
    assert_int_equal(marey_stopwatch_start(id), MAREY_OK);
    *driver.ms += ms;
    assert_int_equal(marey_stopwatch_stop(id), MAREY_OK);
}

static void the_gpu_notes_its_own_times(void **state)
{
    (void)state;
    load_driver();
    const marey_id a = MAREY_ID("a");
    enable(&(struct marey_stopwatch_options){.warmup = 1, .gpu = MAREY_GPU_EVENTS});
    measure_on_gpu(a, 100); /* in warm-up */
    finish();
    measure_on_gpu(a, 2);
    measure_on_gpu(a, 4);
    assert_true(value("gpu", "count") == 0); /* the GPU has not come there yet */
    assert_true(value("gpu", "pending") == 2);
    assert_true(value("intervals", "count") == 2);
    *driver.done_ms = 1e9;
    finish();
    assert_true(value("gpu", "count") == 2);
    assert_true(value("gpu", "pending") == 0);
    assert_true(value("gpu", "total_ns") == 6e6);
    assert_true(value("gpu", "mean_ns") == 3e6);
    assert_true(value("gpu", "min_ns") == 2e6 && value("gpu", "max_ns") == 4e6);
    assert_int_equal(marey_stopwatch_print(stderr), MAREY_OK);
}

static void a_capture_is_left_alone_and_reported(void **state)
{
    (void)state;
    load_driver();
    enable(&(struct marey_stopwatch_options){.gpu = MAREY_GPU_EVENTS});
    driver.is_capturing[0] = 1;
    measure_on_gpu(MAREY_ID("captured"), 1);
    driver.is_capturing[0] = 0;
    finish();
    assert_int_equal(n_rows("gpu"), 0);
    char *text = NULL;
    size_t len = 0;
    FILE *const stream = open_memstream(&text, &len);
    assert_int_equal(marey_stopwatch_print(stream), MAREY_OK);
    fclose(stream);
    assert_non_null(strstr(text, "1 interval without a time: in the capture of a graph"));
    free(text);
}

static void a_reset_and_a_cancel_forget_what_the_gpu_still_owes(void **state)
{
    (void)state;
    load_driver();
    const marey_id a = MAREY_ID("a"), b = MAREY_ID("b");
    enable(&(struct marey_stopwatch_options){.gpu = MAREY_GPU_EVENTS});
    measure_on_gpu(a, 5);
    assert_int_equal(marey_stopwatch_start(b), MAREY_OK);
    marey_stopwatch_reset();
    *driver.done_ms = 1e9;
    assert_int_equal(marey_stopwatch_stop(b), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(a), MAREY_OK);
    marey_stopwatch_cancel(a);
    finish();
    assert_int_equal(n_rows("gpu"), 0);
    measure_on_gpu(a, 7);
    finish();
    assert_true(value("gpu", "count") == 1 && value("gpu", "total_ns") == 7e6);
}

/* ---- usage ---- */

static uint64_t cpu_ns(clockid_t clock)
{
    return marey__clock_ns(clock);
}

static void burn_ms(int ms)
{
    const uint64_t until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000u;
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

/* Busy processors by the process's own clocks around the interval. */
struct truth {
    uint64_t wall, cpu;
};

static struct truth truth_now(void)
{
    return (struct truth){cpu_ns(CLOCK_MONOTONIC), cpu_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void a_busy_thread_uses_what_the_kernel_says(void **state)
{
    (void)state;
    const marey_id busy = MAREY_ID("busy");
    enable(NULL);
    assert_int_equal(marey_stopwatch_measure_usage(busy, MAREY__USAGE_ALL), MAREY_OK);
    const struct truth before = truth_now();
    assert_int_equal(marey_stopwatch_start(busy), MAREY_OK);
    burn_ms(100);
    assert_int_equal(marey_stopwatch_stop(busy), MAREY_OK);
    const struct truth after = truth_now();
    const double truth = (double)(after.cpu - before.cpu) / (double)(after.wall - before.wall);
    assert_true(value("usage", "process_cpu") > truth - 0.03);
    assert_true(value("usage", "process_cpu") < truth + 0.03);
    assert_true(value("usage", "thread_cpu") > truth - 0.03);
    assert_true(value("usage", "tree_cpu") > truth - 0.03);
    assert_true(value("threads", "thread_cpu") == value("usage", "thread_cpu"));
    assert_true(value("usage", "page_faults") >= 0 && value("usage", "context_switches") >= 0);
}

static void only_the_intervals_count(void **state)
{
    (void)state;
    const marey_id idle = MAREY_ID("idle");
    enable(&(struct marey_stopwatch_options){.warmup = 1});
    assert_int_equal(marey_stopwatch_measure_usage(idle, MAREY_USAGE_PROCESS_CPU), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(idle), MAREY_OK);
    burn_ms(50); /* in warm-up */
    assert_int_equal(marey_stopwatch_stop(idle), MAREY_OK);
    finish();
    for (int i = 0; i < 3; i++) {
        burn_ms(30); /* outside */
        assert_int_equal(marey_stopwatch_start(idle), MAREY_OK);
        usleep(30000);
        assert_int_equal(marey_stopwatch_stop(idle), MAREY_OK);
    }
    assert_true(value("usage", "process_cpu") < 0.1);
    assert_true(value("usage", "thread_cpu") == -1); /* not asked for */
    assert_true(value("usage", "rss_bytes") == -1);
}

static void what_cannot_be_measured_is_refused(void **state)
{
    (void)state;
    assert_int_equal(marey_stopwatch_measure_usage(MAREY_ID("off"), 1u << 30), MAREY_OK);
    enable(NULL);
    assert_int_equal(marey_stopwatch_measure_usage(MAREY_ID("a"), 1u << 30), MAREY_EINVAL);
    measure(MAREY_ID("a"));
    assert_int_equal(n_rows("usage"), 0);
}

static void *burn_in_thread(void *arg)
{
    const marey_id shared = MAREY_ID("shared");
    if (marey_stopwatch_start(shared) != MAREY_OK)
        *(int *)arg = 1;
    burn_ms(30);
    if (marey_stopwatch_stop(shared) != MAREY_OK)
        *(int *)arg = 1;
    return NULL;
}

/* The kernel counts it in ticks of 10 ms. */
static void a_moment_tells_nothing_of_the_machine(void **state)
{
    (void)state;
    const marey_id brief = MAREY_ID("brief");
    enable(NULL);
    assert_int_equal(
        marey_stopwatch_measure_usage(brief, MAREY_USAGE_MACHINE_CPU | MAREY_USAGE_THREAD_CPU),
        MAREY_OK);
    measure(brief);
    finish();
    assert_true(value("usage", "machine_cpu") == -1);
    assert_true(value("usage", "thread_cpu") >= 0);
}

static void usage_of_ended_threads_stays(void **state)
{
    (void)state;
    pthread_t threads[2];
    int failures[2] = {0};
    enable(NULL);
    assert_int_equal(marey_stopwatch_measure_usage(MAREY_ID("shared"), MAREY_USAGE_THREAD_CPU),
                     MAREY_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, burn_in_thread, &failures[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
    assert_true(value("usage", "thread_cpu") > 0.05 && value("usage", "thread_cpu") < 1.03);
    assert_true(value("intervals", "threads") == 2);
}

static void a_report_shows_usage(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    enable(NULL);
    assert_int_equal(marey_stopwatch_measure_usage(MAREY_ID("a"), MAREY_USAGE_PROCESS_CPU |
                                                                      MAREY_USAGE_FAULTS |
                                                                      MAREY_USAGE_RSS),
                     MAREY_OK);
    FILE *const stream = open_memstream(&text, &len);
    measure(MAREY_ID("b"));
    finish();
    assert_int_equal(marey_stopwatch_print(stream), MAREY_OK); /* asked for, not measured yet */
    measure(MAREY_ID("a"));
    finish();
    assert_int_equal(marey_stopwatch_print(stream), MAREY_OK);
    fclose(stream);
    assert_non_null(strstr(text, "Mean CPU usage during"));
    assert_non_null(strstr(text, "page faults"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXTRA_TEST(it_waits_at_both_ends_and_only_after_warmup),
        EXTRA_TEST(it_never_waits_unless_asked),
        EXTRA_TEST(without_cuda_one_sentence_is_said_and_time_is_measured),
        EXTRA_TEST(the_gpu_notes_its_own_times),
        EXTRA_TEST(a_capture_is_left_alone_and_reported),
        EXTRA_TEST(a_reset_and_a_cancel_forget_what_the_gpu_still_owes),
        EXTRA_TEST(a_busy_thread_uses_what_the_kernel_says),
        EXTRA_TEST(only_the_intervals_count),
        EXTRA_TEST(what_cannot_be_measured_is_refused),
        EXTRA_TEST(a_moment_tells_nothing_of_the_machine),
        EXTRA_TEST(usage_of_ended_threads_stays),
        EXTRA_TEST(a_report_shows_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
