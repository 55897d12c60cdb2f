/* GPU intervals, with a fake CUDA driver (tests/nvtx/cuda_driver.c), whose clock the test sets. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "instrument/cuda/internal.h"
#include "scratch.h"

#define MS 1000000u

static struct {
    double *ms, *done_ms, *offset_ms;
    int *is_capturing, *error;
    _Atomic int *n_events, *n_records, *n_queries, *n_spoiled;
    void (*set_ctx)(uintptr_t ctx);
} driver;

struct results {
    size_t n;
    uint64_t tags[8], ns[8];
};

static void keep(void *ctx, uint64_t tag, uint64_t elapsed_ns)
{
    struct results *r = ctx;
    if (r->n < MAREY__COUNT_OF(r->tags)) {
        r->tags[r->n] = tag;
        r->ns[r->n] = elapsed_ns;
    }
    r->n++;
}

static struct results collect_until(double done_ms)
{
    struct results r = {0};
    *driver.done_ms = done_ms;
    const size_t n = marey__gpu_collect(keep, &r);
    assert_int_equal(n, r.n);
    return r;
}

static struct marey__gpu_counts counts(void)
{
    struct marey__gpu_counts c;
    marey__gpu_counts_get(&c);
    return c;
}

static void *stream(uintptr_t number)
{
    return (void *)number;
}

/* A span in stream 0 from one instant of the GPU's clock to another. */
static void put_span(uint64_t tag, void *s, double from_ms, double to_ms)
{
    *driver.ms = from_ms;
    const marey__gpu_span span = marey__gpu_begin(s, tag);
    assert_int_not_equal(span, 0);
    *driver.ms = to_ms;
    marey__gpu_end(span, s);
}

static void load_driver(void)
{
    void *library = dlopen(MAREY_TEST_CUDA_DRIVER, RTLD_NOW);
    assert_non_null(library);
#define FIND(field, name) *(void **)&driver.field = dlsym(library, "marey_test_gpu_" name)
    FIND(ms, "ms");
    FIND(done_ms, "done_ms");
    FIND(offset_ms, "offset_ms");
    FIND(is_capturing, "is_capturing");
    FIND(error, "error");
    FIND(n_events, "n_events");
    FIND(n_records, "n_records");
    FIND(n_queries, "n_queries");
    FIND(n_spoiled, "n_spoiled");
    FIND(set_ctx, "set_ctx");
#undef FIND
    assert_non_null(driver.set_ctx);
}

static int setup(void **state)
{
    (void)state;
    marey__gpu_reset();
    marey_cuda_set_stream_hook(NULL);
    if (driver.ms == NULL)
        return 0;
    *driver.ms = *driver.done_ms = 0;
    *driver.error = 0;
    *driver.n_spoiled = 0;
    *driver.n_queries = 0;
    driver.set_ctx(7);
    return 0;
}

/* ---- before there is any CUDA ---- */

static void without_cuda_one_sentence_says_so(void **state)
{
    (void)state;
    if (marey__gpu_check() == MAREY_OK)
        skip(); /* the machine has a driver */
    assert_int_equal(marey__gpu_check(), MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "there is no CUDA driver here (libcuda.so.1)"));
}

static void without_cuda_spans_are_counted_and_nothing_else(void **state)
{
    (void)state;
    struct results r = {0};
    assert_int_equal(marey__gpu_begin(NULL, 1), 0);
    marey__gpu_end(0, NULL);
    marey__gpu_cancel(0);
    assert_int_equal(marey__gpu_collect(keep, &r), 0);
    assert_int_equal(counts().n_no_context, 1);
}

static void a_driver_that_comes_later_is_found(void **state)
{
    load_driver();
    setup(state);
    assert_int_equal(marey__gpu_check(), MAREY_OK);
    assert_int_not_equal(marey__gpu_begin(NULL, 1), 0);
}

/* ---- with the stand-in ---- */

static void results_come_in_order_when_the_gpu_is_done(void **state)
{
    (void)state;
    put_span(11, NULL, 1, 3.5);
    put_span(12, NULL, 4, 4.25);
    assert_int_equal(collect_until(3).n, 0);
    assert_int_equal(counts().n_pending, 2);
    struct results r = collect_until(4);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.tags[0], 11);
    assert_int_equal(r.ns[0], 2500000);
    r = collect_until(100);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.tags[0], 12);
    assert_int_equal(r.ns[0], 250000);
    assert_int_equal(counts().n_pending, 0);
}

static void a_busy_stream_does_not_hold_up_another(void **state)
{
    (void)state;
    driver.offset_ms[701] = 1000;
    put_span(1, stream(701), 1, 2);
    put_span(2, stream(702), 1, 4);
    put_span(3, stream(701), 2, 3);
    put_span(4, stream(702), 4, 5);
    *driver.n_queries = 0;
    struct results r = collect_until(10);
    assert_int_equal(*driver.n_queries, 3); /* nobody asks for what lies behind an unfinished one */
    assert_int_equal(r.n, 2);
    assert_int_equal(r.tags[0], 2);
    assert_int_equal(r.tags[1], 4);
    r = collect_until(2000);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.tags[0], 1);
    assert_int_equal(r.ns[1], MS);
    driver.offset_ms[701] = 0;
}

static void a_span_may_end_in_another_stream_of_its_device(void **state)
{
    (void)state;
    *driver.ms = 1;
    const marey__gpu_span span = marey__gpu_begin(stream(701), 5);
    *driver.ms = 3;
    marey__gpu_end(span, stream(702));
    assert_int_equal(collect_until(10).ns[0], 2 * MS);
    const marey__gpu_span other = marey__gpu_begin(stream(701), 6);
    marey__gpu_end(other, stream(801));
    assert_int_equal(collect_until(10).n, 0);
    assert_int_equal(counts().n_two_devices, 1);
}

static void each_device_has_its_own_events(void **state)
{
    (void)state;
    put_span(1, stream(801), 1, 2); /* context 8, while 7 is current */
    put_span(2, stream(901), 1, 3);
    put_span(3, NULL, 1, 4);
    const struct results r = collect_until(10);
    assert_int_equal(r.n, 3);
    assert_int_equal(r.ns[0] + r.ns[1] + r.ns[2], 6 * MS);
    assert_int_equal(counts().n_failed, 0);
}

static void events_are_used_again(void **state)
{
    (void)state;
    put_span(1, NULL, 1, 2);
    collect_until(10);
    const int n_events = *driver.n_events;
    for (int i = 0; i < 100; i++) {
        put_span(1, NULL, 1, 2);
        collect_until(10);
    }
    assert_int_equal(*driver.n_events, n_events);
}

static void a_capture_is_left_alone_and_counted(void **state)
{
    (void)state;
    put_span(1, NULL, 1, 2);
    const marey__gpu_span open = marey__gpu_begin(stream(701), 2);
    const int n_records = *driver.n_records;
    driver.is_capturing[701] = 1;
    assert_int_equal(marey__gpu_begin(stream(701), 3), 0);
    assert_int_equal(marey__gpu_begin(NULL, 4), 0); /* the legacy stream waits for the captured one */
    marey__gpu_end(open, stream(701));
    assert_int_equal(*driver.n_records, n_records);
    put_span(5, stream(702), 1, 2); /* a stream beside it, and new events for it */
    assert_int_equal(collect_until(10).n, 2);
    assert_int_equal(*driver.n_spoiled, 0);
    driver.is_capturing[701] = 0;
    assert_int_equal(counts().n_captured, 3);
    assert_int_equal(counts().n_pending, 0);
}

static void a_thread_without_a_context_is_counted(void **state)
{
    (void)state;
    driver.set_ctx(0);
    assert_int_equal(marey__gpu_begin(NULL, 1), 0);
    assert_int_equal(counts().n_no_context, 1);
    put_span(2, stream(701), 1, 2); /* a stream knows its context */
    assert_int_equal(collect_until(10).n, 1);
}

static void when_too_many_are_under_way_the_rest_is_counted(void **state)
{
    (void)state;
    size_t n = 0;
    for (int i = 0; i < MAREY__GPU_MAX_SPANS + 10; i++) {
        const marey__gpu_span span = marey__gpu_begin(NULL, 1);
        n += span != 0;
        marey__gpu_end(span, NULL);
    }
    assert_int_equal(n + counts().n_full, MAREY__GPU_MAX_SPANS + 10);
    assert_in_range(n, MAREY__GPU_MAX_SPANS - 20, MAREY__GPU_MAX_SPANS);
    assert_int_equal(collect_until(10).n, n);
    assert_int_not_equal(marey__gpu_begin(NULL, 1), 0);
}

static void refusals_of_cuda_are_counted(void **state)
{
    (void)state;
    const marey__gpu_span open = marey__gpu_begin(NULL, 1);
    put_span(2, NULL, 1, 2);
    *driver.error = 700;
    assert_int_equal(marey__gpu_begin(NULL, 3), 0);
    marey__gpu_end(open, NULL);
    assert_int_equal(collect_until(10).n, 0);
    assert_int_equal(counts().n_failed, 3);
    assert_int_equal(counts().n_pending, 0);
}

static void forgotten_spans_stay_so(void **state)
{
    (void)state;
    const marey__gpu_span cancelled = marey__gpu_begin(NULL, 1);
    marey__gpu_cancel(cancelled);
    const marey__gpu_span next = marey__gpu_begin(NULL, 2); /* has the place of the other one */
    marey__gpu_end(cancelled, NULL);
    assert_int_equal(counts().n_pending, 0);
    marey__gpu_end(next, NULL);
    marey__gpu_end(next, NULL);
    assert_int_equal(counts().n_pending, 1);
    const marey__gpu_span open = marey__gpu_begin(NULL, 3);
    marey__gpu_reset();
    marey__gpu_end(open, NULL);
    assert_int_equal(collect_until(10).n, 0);
}

static int hook_answer;
static int give_stream(void **out)
{
    *out = stream(701);
    return hook_answer;
}

static void the_hook_names_the_stream(void **state)
{
    (void)state;
    void *s = stream(5);
    assert_true(marey__gpu_stream(&s));
    assert_null(s);
    marey_cuda_set_stream_hook(give_stream);
    hook_answer = 1;
    assert_true(marey__gpu_stream(&s));
    assert_ptr_equal(s, stream(701));
    hook_answer = -1;
    assert_true(marey__gpu_stream(&s));
    assert_null(s);
    hook_answer = 0;
    assert_false(marey__gpu_stream(&s));
}

static void *measure(void *arg)
{
    driver.set_ctx(7);
    for (int i = 0; i < 2000; i++) {
        const marey__gpu_span span = marey__gpu_begin(NULL, 1);
        marey__gpu_end(span, NULL);
        if (i % 16 == 0)
            marey__gpu_collect(keep, arg);
    }
    return arg;
}

static void threads_share_the_spans(void **state)
{
    (void)state;
    pthread_t threads[3];
    struct results results[MAREY__COUNT_OF(threads)] = {0};
    *driver.done_ms = 10;
    for (size_t i = 0; i < MAREY__COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, measure, &results[i]), 0);
    size_t n = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
        n += results[i].n;
    }
    assert_int_equal(n + collect_until(10).n + counts().n_full, 6000);
}

/* In a forked child, which begins with nothing. */
static bool begin_without_memory(void)
{
    marey__gpu_after_fork();
    marey__alloc_fail_nth(1);
    const bool is_none = marey__gpu_begin(NULL, 1) == 0;
    marey__alloc_fail_nth(0);
    const bool is_counted = counts().n_full == 1 && counts().n_pending == 0;
    put_span(1, NULL, 1, 2);
    return is_none && is_counted && collect_until(10).n == 1;
}

static void without_memory_a_span_is_counted(void **state)
{
    (void)state;
    int status;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip();              /* what a forked child leaves behind is a leak to it */
    put_span(1, NULL, 1, 2); /* the parent's is none of the child's */
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(begin_without_memory() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_cuda_one_sentence_says_so, setup),
        cmocka_unit_test_setup(without_cuda_spans_are_counted_and_nothing_else, setup),
        cmocka_unit_test_setup(a_driver_that_comes_later_is_found, setup),
        cmocka_unit_test_setup(results_come_in_order_when_the_gpu_is_done, setup),
        cmocka_unit_test_setup(a_busy_stream_does_not_hold_up_another, setup),
        cmocka_unit_test_setup(a_span_may_end_in_another_stream_of_its_device, setup),
        cmocka_unit_test_setup(each_device_has_its_own_events, setup),
        cmocka_unit_test_setup(events_are_used_again, setup),
        cmocka_unit_test_setup(a_capture_is_left_alone_and_counted, setup),
        cmocka_unit_test_setup(a_thread_without_a_context_is_counted, setup),
        cmocka_unit_test_setup(when_too_many_are_under_way_the_rest_is_counted, setup),
        cmocka_unit_test_setup(refusals_of_cuda_are_counted, setup),
        cmocka_unit_test_setup(forgotten_spans_stay_so, setup),
        cmocka_unit_test_setup(the_hook_names_the_stream, setup),
        cmocka_unit_test_setup(threads_share_the_spans, setup),
        cmocka_unit_test_setup(without_memory_a_span_is_counted, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
