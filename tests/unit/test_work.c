/* From a log to what its devices did: work, launches, steps, classes; and of a process without a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/device/internal.h"
#include "log_maker.h"

enum { STEP = 1, OPERATOR, LAUNCH, GEMM, REDUCE, COPY, GROUP, SEND, LOAD, WAIT };
enum { MAIN = 0, STREAM_7, STREAM_20, OTHER_DEVICE, HELPER };

struct fixture {
    struct log_maker log;
    struct marey__rules rules;
    struct marey__work_options options;
    marey_recording *recording;
    struct marey__work_set set;
};

static void put_sites(struct log_maker *log)
{
    log_put_site_of(log, STEP, "train step", "user_annotation", "");
    log_put_site_of(log, OPERATOR, "aten::mm", "cpu_op", "");
    log_put_site_of(log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(log, GEMM, "ampere_sgemm_128x64_nn", "kernel", "");
    log_put_site_of(log, REDUCE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", "");
    log_put_site_of(log, COPY, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", "");
    log_put_site_of(log, GROUP, "default_pg", "", "0,1");
    log_put_site_of(log, SEND, "exchange", "communication", "");
    log_put_site_of(log, LOAD, "load", "data", "");
    log_put_site_of(log, WAIT, "sleep", "idle", "");
}

static int setup_with(void **state, const char *source)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    if (f == NULL || marey__rules_load(&f->rules, NULL) != MAREY_OK)
        return 1;
    f->options.rules = &f->rules;
    log_put_process(&f->log, source != NULL ? "source" : NULL, source);
    put_sites(&f->log);
    log_put_lane(&f->log, MAIN, 100, "main");
    log_put_moment(&f->log, 0, 0);
    log_put_moment(&f->log, 1000000000, 1000000000);
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_imported(void **state)
{
    return setup_with(state, "kineto");
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    marey__work_set_fini(&f->set);
    marey__rules_fini(&f->rules);
    if (f->recording != NULL)
        log_close(f->recording);
    log_maker_fini(&f->log);
    free(f);
    return 0;
}

static struct marey__work_set *read_set(struct fixture *f)
{
    log_put_end(&f->log, "stop");
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    assert_int_equal(marey__work_set_read(&f->set, f->recording, 0, &f->options), MAREY_OK);
    return &f->set;
}

static void put_streams(struct log_maker *log)
{
    log_put_stream(log, STREAM_7, 0, 7, "");
    log_put_stream(log, STREAM_20, 0, 20, "");
    log_put_stream(log, OTHER_DEVICE, 3, 7, "");
}

static void expect_work(const struct marey__work *work, uint64_t begin, uint64_t end, uint32_t site,
                        uint8_t class)
{
    assert_int_equal(work->begin_ns, begin);
    assert_int_equal(work->end_ns, end);
    assert_int_equal(work->site, site);
    assert_int_equal(work->class, class);
}

/* One step with two launches in an operator, and one launch behind all steps. */
static void put_launches(struct log_maker *log)
{
    log_iteration_begin(log, 1000, 4);
    log_begin(log, 1000, STEP);
    log_begin(log, 1100, OPERATOR);
    log_begin(log, 1110, LAUNCH);
    log_launch(log, 1110, 71);
    log_end(log, 1120, LAUNCH);
    log_begin(log, 1130, LAUNCH);
    log_launch(log, 1130, 72);
    log_end(log, 1150, LAUNCH);
    log_end(log, 1200, OPERATOR);
    log_end(log, 2000, STEP);
    log_iteration(log, 2000, 4, false, 0);
    log_begin(log, 2100, LAUNCH);
    log_launch(log, 2100, 73);
    log_end(log, 2110, LAUNCH);
    log_put_words(log, MAIN, 0);
}

static void work_is_ordered_and_finds_its_launch(void **state)
{
    struct fixture *f = *state;
    put_streams(&f->log);
    put_launches(&f->log);
    log_work(&f->log, 1500, GEMM, MAREY_WORK_KERNEL, 300, 71, 0);
    log_work(&f->log, 2300, COPY, MAREY_WORK_COPY, 10, 73, 4096);
    log_work(&f->log, 2400, GEMM, MAREY_WORK_KERNEL, 5, 0, 0);
    log_put_words(&f->log, STREAM_7, 0);
    log_work(&f->log, 1600, REDUCE, MAREY_WORK_KERNEL, 900, 72, 0);
    log_work(&f->log, 2600, GEMM, MAREY_WORK_ANNOTATION, 900, 72, 0);
    log_put_words(&f->log, STREAM_20, 0);
    log_work(&f->log, 1400, GEMM, MAREY_WORK_KERNEL, 1, 71, 0);
    log_put_words(&f->log, OTHER_DEVICE, 0);

    const struct marey__work_set *set = read_set(f);
    assert_int_equal(set->n_devices, 2);
    assert_int_equal(set->devices[0].device, 0);
    assert_int_equal(set->devices[1].device, 3);
    const struct marey__work *work = set->devices[0].work;
    assert_int_equal(set->devices[0].n_work, 4);
    expect_work(&work[0], 1500, 1800, GEMM, MAREY__COMPUTES);
    expect_work(&work[1], 1600, 2500, REDUCE, MAREY__COMMUNICATES);
    expect_work(&work[2], 2300, 2310, COPY, MAREY__COPIES);
    expect_work(&work[3], 2400, 2405, GEMM, MAREY__COMPUTES);
    assert_int_equal(set->n_ignored_kinds, 1);
    assert_int_equal(set->devices[0].n_unlinked, 1);

    const struct marey__launch_call *launch = &set->launches[work[1].launch];
    assert_int_equal(launch->begin_ns, 1130);
    assert_int_equal(launch->end_ns, 1150);
    assert_int_equal(launch->site, LAUNCH);
    assert_int_equal(launch->around, OPERATOR);
    assert_int_equal(set->launches[work[2].launch].around, 0);

    assert_int_equal(set->n_steps, 1);
    assert_int_equal(set->steps[0].begin_ns, 1000);
    assert_int_equal(set->steps[0].end_ns, 2000);
    assert_int_equal(set->steps[0].number, 4);
    assert_int_equal(marey__step_of(set, &work[1]), 0); /* though it ends behind the step */
    assert_int_equal(marey__step_of(set, &work[2]), MAREY__NO_INDEX);
}

static void a_graph_has_much_work_of_one_launch(void **state)
{
    struct fixture *f = *state;
    put_streams(&f->log);
    put_launches(&f->log);
    for (uint64_t i = 0; i < 100; i++)
        log_work(&f->log, 3000 + 10 * i, GEMM, MAREY_WORK_KERNEL, 9, 73, 0);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__work_set *set = read_set(f);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(set->launches[set->devices[0].work[i].launch].begin_ns, 2100);
}

static void of_equal_correlations_the_last_launch_before_counts(void **state)
{
    struct fixture *f = *state;
    put_streams(&f->log);
    for (uint64_t i = 0; i < 3; i++) {
        log_begin(&f->log, 100 + 100 * i, LAUNCH);
        log_launch(&f->log, 100 + 100 * i, 5);
        log_end(&f->log, 110 + 100 * i, LAUNCH);
    }
    log_put_words(&f->log, MAIN, 0);
    log_work(&f->log, 50, GEMM, MAREY_WORK_KERNEL, 1, 5, 0); /* clocks differ: the nearest launch */
    log_work(&f->log, 150, GEMM, MAREY_WORK_KERNEL, 1, 5, 0);
    log_work(&f->log, 900, GEMM, MAREY_WORK_KERNEL, 1, 5, 0);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__work_set *set = read_set(f);
    const struct marey__work *work = set->devices[0].work;
    assert_int_equal(set->launches[work[0].launch].begin_ns, 100);
    assert_int_equal(set->launches[work[1].launch].begin_ns, 100);
    assert_int_equal(set->launches[work[2].launch].begin_ns, 300);
}

static void work_of_no_length_or_less_is_counted_and_left_out(void **state)
{
    struct fixture *f = *state;
    put_streams(&f->log);
    log_work(&f->log, 100, GEMM, MAREY_WORK_KERNEL, 0, 0, 0);
    log_work(&f->log, 110, GEMM, MAREY_WORK_KERNEL, (uint64_t)-5, 0, 0);
    log_work(&f->log, 120, GEMM, MAREY_WORK_KERNEL, 5, 0, 0);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__work_set *set = read_set(f);
    assert_int_equal(set->devices[0].n_work, 1);
    assert_int_equal(set->n_negative, 1);
}

static const struct marey_communication reduction = {.group = GROUP,
                                                     .what = MAREY_COLLECTIVE_ALL_REDUCE,
                                                     .bytes_in = 4096,
                                                     .sequence = 3,
                                                     .group_size = 2,
                                                     .peer = -1};

static void communication_is_reported_by_the_work_or_by_the_host(void **state)
{
    struct fixture *f = *state;
    put_streams(&f->log);
    log_begin(&f->log, 100, OPERATOR);
    log_communication(&f->log, 100, &reduction);
    log_begin(&f->log, 110, LAUNCH);
    log_launch(&f->log, 110, 1);
    log_end(&f->log, 120, LAUNCH);
    log_end(&f->log, 130, OPERATOR);
    log_put_words(&f->log, MAIN, 0);
    log_work(&f->log, 200, REDUCE, MAREY_WORK_KERNEL, 50, 1, 0);
    log_work(&f->log, 300, GEMM, MAREY_WORK_KERNEL, 50, 2, 0); /* a generic kernel */
    log_communication(&f->log, 300, &reduction);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__work_set *set = read_set(f);
    const struct marey__work *work = set->devices[0].work;
    assert_int_equal(set->n_collectives, 3);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(work[i].class, MAREY__COMMUNICATES);
        const struct marey__collective_call *call = &set->collectives[work[i].collective];
        assert_int_equal(call->what.sequence, 3);
        assert_int_equal(call->begin_ns, work[i].begin_ns);
        assert_int_equal(call->end_ns, work[i].end_ns);
        assert_false(call->is_on_host);
    }
    assert_true(set->collectives[set->launches[work[0].launch].collective].is_on_host);
    assert_int_equal(set->collectives[set->launches[work[0].launch].collective].end_ns, 130);
}

/* Ranges that launched something are kept with those around them, the others are not. */
static void ranges_around_launches_are_kept_where_asked_for(void **state)
{
    struct fixture *f = *state;
    f->options.wants_ranges = true;
    put_streams(&f->log);
    log_begin(&f->log, 10, LOAD);
    log_end(&f->log, 20, LOAD);
    put_launches(&f->log);
    log_work(&f->log, 1500, GEMM, MAREY_WORK_KERNEL, 300, 72, 0);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__work_set *set = read_set(f);
    assert_int_equal(set->n_ranges, 5);
    const struct marey__host_range *ranges = set->ranges;
    const uint32_t launch = set->launches[set->devices[0].work[0].launch].range;
    assert_int_equal(ranges[launch].site, LAUNCH);
    assert_int_equal(ranges[launch].end_ns, 1150);
    assert_int_equal(ranges[ranges[launch].parent].site, OPERATOR);
    assert_int_equal(ranges[ranges[launch].parent].end_ns, 1200);
    const uint32_t step = ranges[ranges[launch].parent].parent;
    assert_int_equal(ranges[step].site, STEP);
    assert_int_equal(ranges[step].parent, MAREY__NO_INDEX);
}

/* ---- a process without a GPU ---- */

static void put_host_ranges(struct log_maker *log)
{
    log_put_lane(log, HELPER, 101, "helper");
    log->base_tick = 100;
    log_begin(log, 100, STEP); /* annotated all the time, whatever it does */
    log_begin(log, 100, OPERATOR);
    log_begin(log, 120, SEND);
    log_communication(log, 120, &(struct marey_communication){.what = MAREY_COLLECTIVE_SEND});
    log_communication(log, 145, &reduction); /* said again, once all is known */
    log_end(log, 150, SEND);
    log_begin(log, 200, LOAD);
    log_end(log, 230, LOAD);
    log_end(log, 300, OPERATOR);
    log_begin(log, 400, WAIT);
    log_end(log, 450, WAIT);
    log_begin(log, 500, OPERATOR);
    log_end(log, 600, OPERATOR);
    log_end(log, 600, STEP);
    log_put_words(log, MAIN, 0);
    log_begin(log, 280, SEND);
    log_end(log, 420, SEND);
    log_begin(log, 430, WAIT);
    log_end(log, 440, WAIT);
    log_put_words(log, HELPER, 0);
}

static void expect_host_work(const struct marey__work_set *set, const uint64_t (*want)[3], size_t n)
{
    assert_int_equal(set->n_devices, 1);
    assert_int_equal(set->devices[0].device, -1);
    assert_int_equal(set->devices[0].n_work, n);
    for (size_t i = 0; i < n; i++) {
        const struct marey__work *work = &set->devices[0].work[i];
        assert_int_equal(work->begin_ns, want[i][0]);
        assert_int_equal(work->end_ns, want[i][1]);
        assert_int_equal(work->class, want[i][2]);
    }
}

static void a_program_computes_where_it_says_nothing_else(void **state)
{
    struct fixture *f = *state;
    put_host_ranges(&f->log);
    const uint64_t want[][3] = {{100, 120, MAREY__COMPUTES}, {120, 150, MAREY__COMMUNICATES},
                                {150, 200, MAREY__COMPUTES}, {200, 230, MAREY__IGNORED},
                                {230, 400, MAREY__COMPUTES}, {280, 420, MAREY__COMMUNICATES},
                                {400, 450, MAREY__IGNORED},  {450, 600, MAREY__COMPUTES}};
    const struct marey__work_set *set = read_set(f);
    expect_host_work(set, want, MAREY__COUNT_OF(want));
    assert_int_equal(set->n_collectives, 1);
    assert_int_equal(set->collectives[0].end_ns, 150);
    assert_int_equal(set->collectives[0].what.what, MAREY_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(set->devices[0].work[1].collective, 0);
}

static void a_profiled_thread_computes_where_it_has_a_range(void **state)
{
    struct fixture *f = *state;
    put_host_ranges(&f->log);
    const uint64_t want[][3] = {{100, 120, MAREY__COMPUTES}, {120, 150, MAREY__COMMUNICATES},
                                {150, 200, MAREY__COMPUTES}, {200, 230, MAREY__IGNORED},
                                {230, 300, MAREY__COMPUTES}, {280, 420, MAREY__COMMUNICATES},
                                {400, 450, MAREY__IGNORED},  {500, 600, MAREY__COMPUTES}};
    expect_host_work(read_set(f), want, MAREY__COUNT_OF(want));
}

static void async_communication_goes_on_beside_the_main_thread(void **state)
{
    struct fixture *f = *state;
    f->log.base_tick = 100;
    log_begin(&f->log, 100, STEP);
    log_record(&f->log, 110, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){SEND, 9}, 2);
    log_record(&f->log, 170, MAREY_RECORD_ASYNC_END, (const uint64_t[]){SEND, 9}, 2);
    log_end(&f->log, 200, STEP);
    log_put_words(&f->log, MAIN, 0);
    const uint64_t want[][3] = {{100, 200, MAREY__COMPUTES}, {110, 170, MAREY__COMMUNICATES}};
    expect_host_work(read_set(f), want, MAREY__COUNT_OF(want));
}

static void a_process_without_ranges_has_no_device(void **state)
{
    struct fixture *f = *state;
    log_word(&f->log, 100, MAREY_KIND_MARK, STEP);
    log_word(&f->log, 900, MAREY_KIND_MARK, STEP);
    log_put_words(&f->log, MAIN, 0);
    assert_int_equal(read_set(f)->n_devices, 0);
}

/* ---- no memory ---- */

static void fail_each_allocation(struct fixture *f)
{
    log_put_end(&f->log, "stop");
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    for (uint64_t nth = 1;; nth++) {
        marey__alloc_fail_nth(nth);
        const marey_status status = marey__work_set_read(&f->set, f->recording, 0, &f->options);
        marey__alloc_fail_nth(0);
        marey__work_set_fini(&f->set);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
}

static void every_failed_allocation_of_work_is_reported(void **state)
{
    struct fixture *f = *state;
    f->options.wants_ranges = true;
    put_streams(&f->log);
    put_launches(&f->log);
    log_work(&f->log, 1500, GEMM, MAREY_WORK_KERNEL, 300, 71, 0);
    log_communication(&f->log, 1500, &reduction);
    log_put_words(&f->log, STREAM_7, 0);
    log_work(&f->log, 1400, GEMM, MAREY_WORK_KERNEL, 300, 71, 0);
    log_put_words(&f->log, STREAM_20, 0);
    fail_each_allocation(f);
}

static void every_failed_allocation_of_a_host_is_reported(void **state)
{
    struct fixture *f = *state;
    f->options.wants_ranges = true;
    put_host_ranges(&f->log);
    fail_each_allocation(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_is_ordered_and_finds_its_launch),
        TEST(a_graph_has_much_work_of_one_launch),
        TEST(of_equal_correlations_the_last_launch_before_counts),
        TEST(work_of_no_length_or_less_is_counted_and_left_out),
        TEST(communication_is_reported_by_the_work_or_by_the_host),
        TEST(ranges_around_launches_are_kept_where_asked_for),
        TEST(a_program_computes_where_it_says_nothing_else),
        cmocka_unit_test_setup_teardown(a_profiled_thread_computes_where_it_has_a_range,
                                        setup_imported, teardown),
        TEST(async_communication_goes_on_beside_the_main_thread),
        TEST(a_process_without_ranges_has_no_device),
        TEST(every_failed_allocation_of_work_is_reported),
        TEST(every_failed_allocation_of_a_host_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
