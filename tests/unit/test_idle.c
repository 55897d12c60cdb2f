/* Why devices are idle: gaps, launches, what threads did, full queues, rules, tables. */
#include "idle_fixture.h"

/* ---- single gaps ---- */

static void a_gap_is_split_at_the_launch_of_what_comes_next(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    log_begin(&f->log, 100 * US, FORWARD);
    log_begin(&f->log, 140 * US, ADD);
    put_launch(f, 160, 165, 2);
    log_end(&f->log, 170 * US, ADD);
    log_end(&f->log, 180 * US, FORWARD);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 120, 1);
    put_work(f, 172, 300, 2);
    log_put_words(&f->log, STREAM_7, 0);
    const struct marey__idle_device *device = find(f);
    expect_reasons(device, (const uint64_t[MAREY__N_IDLE_REASONS]){
                               [MAREY__IDLE_HOST] = 40, [MAREY__IDLE_LATENCY] = 12});
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, "forward"), 20);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, "aten::add"), 20);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_LATENCY, "aten::add"), 12);
    assert_int_equal(device->count[MAREY__IDLE_HOST], 1);
    assert_int_equal(device->n_rows, 3);
    assert_int_equal(device->rows[0].count, 1);
}

/* Each range of the list is open for 10 us in the gap, with another inside that says nothing. */
static void ranges_of_the_launching_thread_tell_the_reason(void **state)
{
    struct fixture *f = *state;
    static const uint32_t said[] = {SYNC, MALLOC, DATA,     OPTIMIZER, ITEM,
                                    GLOO, LOAD,   OVERHEAD, RESTING};
    uint64_t want[MAREY__N_IDLE_REASONS] = {[MAREY__IDLE_LATENCY] = 1};
    put_launch(f, 10, 15, 1);
    log_begin(&f->log, 20 * US, STEP);
    for (uint64_t i = 0; i < MAREY__COUNT_OF(said); i++) {
        log_begin(&f->log, (100 + 10 * i) * US, said[i]);
        put_range(f, 102 + 10 * i, 106 + 10 * i, ADD);
        log_end(&f->log, (110 + 10 * i) * US, said[i]);
        want[sites[said[i]].reason] += 10;
    }
    want[MAREY__IDLE_HOST] = 5;
    put_launch(f, 195, 196, 2);
    log_end(&f->log, 200 * US, STEP);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 196, 300, 2);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(find(f), want);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_SYNCHRONISE, ""), 6); /* no site_around around it */
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_DATA, sites[DATA].name), 6);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_DATA, "aten::add"), 4);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, ""), 5); /* a step is no site_around */
}

static void of_several_reasons_the_one_that_blocks_counts(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    log_begin(&f->log, 100 * US, DATA);
    log_begin(&f->log, 110 * US, ITEM); /* of a value of the host, in a loader */
    log_begin(&f->log, 120 * US, SYNC);
    log_end(&f->log, 130 * US, SYNC);
    log_end(&f->log, 140 * US, ITEM);
    log_end(&f->log, 150 * US, DATA);
    put_launch(f, 150, 151, 2);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 160, 170, 2);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(
        find(f),
        (const uint64_t[MAREY__N_IDLE_REASONS]){
            [MAREY__IDLE_DATA] = 40, [MAREY__IDLE_SYNCHRONISE] = 10, [MAREY__IDLE_LATENCY] = 10});
}

static void what_was_launched_ahead_was_queued(void **state)
{
    struct fixture *f = *state;
    for (uint64_t i = 1; i <= 5; i++)
        put_launch(f, 10 * i, 10 * i + 5, i);
    put_launch(f, 500, 600, 6); /* a long call */
    put_launch(f, 700, 705, 7);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 103, 200, 2); /* the device's own time */
    put_work(f, 210, 300, 3);
    put_work(f, 311, 400, 4); /* waits for something */
    put_work(f, 550, 560, 6); /* within its call */
    put_work(f, 770, 780, 7); /* long after it */
    put_work(f, 780, 790, 5);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(find(f), (const uint64_t[MAREY__N_IDLE_REASONS]){
                                [MAREY__IDLE_KERNEL_GAP] = 3 + 10,
                                [MAREY__IDLE_QUEUED] = 11 + 50,
                                [MAREY__IDLE_HOST] = 100 + 140,
                                [MAREY__IDLE_LATENCY] = 20 + 20,
                                [MAREY__IDLE_LAUNCH_CALL] = 30,
                            });
}

static void clocks_may_differ_and_launches_be_unknown(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    put_launch(f, 205, 215, 2);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 200, 300, 2); /* seems to begin before its launch */
    put_work(f, 400, 500, 0);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(find(f), (const uint64_t[MAREY__N_IDLE_REASONS]){
                                [MAREY__IDLE_HOST] = 100, [MAREY__IDLE_UNKNOWN] = 100});
}

/* Of what begins at once, the launch that came first ended the wait. */
static void busy_streams_leave_no_gap(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    put_launch(f, 20, 25, 2);
    put_launch(f, 150, 155, 3);
    put_launch(f, 180, 185, 4);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 60, 1);
    put_work(f, 190, 200, 4);
    log_put_words(&f->log, STREAM_7, 0);
    put_work(f, 50, 100, 2);
    put_work(f, 190, 200, 3);
    log_put_words(&f->log, STREAM_20, 0);
    expect_reasons(
        find(f), (const uint64_t[MAREY__N_IDLE_REASONS]){
                     [MAREY__IDLE_HOST] = 50, [MAREY__IDLE_LATENCY] = 20, [MAREY__IDLE_QUEUED] = 20});
}

/* The thread that runs backwards sleeps until it is told to. */
static void a_sleeping_thread_is_relieved_by_who_launched_before(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    log_begin(&f->log, 110 * US, OPTIMIZER);
    put_range(f, 120, 140, ADD);
    log_end(&f->log, 180 * US, OPTIMIZER);
    log_put_words(&f->log, MAIN, 0);
    put_range(f, 130, 135, FORWARD);
    log_begin(&f->log, 160 * US, FORWARD);
    put_launch(f, 170, 171, 2);
    log_end(&f->log, 180 * US, FORWARD);
    log_put_words(&f->log, BACKWARD, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 175, 180, 2);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(find(f), (const uint64_t[MAREY__N_IDLE_REASONS]){
                                [MAREY__IDLE_HOST] = 5 + 10 + 10,
                                [MAREY__IDLE_OPTIMIZER] = 45,
                                [MAREY__IDLE_LATENCY] = 5,
                            });
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_OPTIMIZER, "aten::add"), 15);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, "forward"), 15);
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, ""), 10);
}

/* A range taken out of the middle: those begun after it stay. */
static void ranges_may_end_out_of_order(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    log_begin(&f->log, 100 * US, DATA);
    log_begin(&f->log, 110 * US, ADD);
    log_end_of(&f->log, 120 * US, DATA);
    log_end(&f->log, 130 * US, ADD);
    put_launch(f, 140, 141, 2);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 100, 1);
    put_work(f, 141, 200, 2);
    log_put_words(&f->log, STREAM_7, 0);
    expect_reasons(find(f),
                   (const uint64_t[MAREY__N_IDLE_REASONS]){
                       [MAREY__IDLE_DATA] = 20, [MAREY__IDLE_HOST] = 20, [MAREY__IDLE_LATENCY] = 1});
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_HOST, "aten::add"), 10);
}

/* ---- steps, devices, queues, processes without devices ---- */

static void steps_reach_beyond_the_work(void **state)
{
    struct fixture *f = *state;
    log_iteration_begin(&f->log, 0, 4);
    put_range(f, 0, 60, DATA);
    put_launch(f, 80, 90, 1);
    log_iteration(&f->log, 200 * US, 4, false, 0);
    log_iteration_begin(&f->log, 200 * US, 5);
    put_launch(f, 230, 235, 2);
    put_range(f, 310, 350, SYNC);
    log_iteration(&f->log, 400 * US, 5, false, 0);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 100, 220, 1); /* the first step ends with it */
    put_work(f, 250, 300, 2);
    log_put_words(&f->log, STREAM_7, 0);
    read_set(f);
    const struct marey__interval steps[] = {{0, 220 * US}, {200 * US, 400 * US}};
    f->steps = calloc(2, sizeof *f->steps);
    memcpy(f->steps, steps, sizeof steps);
    const struct marey__idle_device *device = find(f);
    expect_reasons(device, (const uint64_t[MAREY__N_IDLE_REASONS]){
                               [MAREY__IDLE_HOST] = 10, [MAREY__IDLE_LATENCY] = 20});
    const uint64_t *first = device->step_ns, *second = device->step_ns + MAREY__N_IDLE_REASONS;
    assert_int_equal(first[MAREY__IDLE_DATA], 60 * US);
    assert_int_equal(first[MAREY__IDLE_HOST], 20 * US);
    assert_int_equal(first[MAREY__IDLE_LATENCY], 20 * US);
    assert_int_equal(second[MAREY__IDLE_HOST], (10 + 10 + 50) * US);
    assert_int_equal(second[MAREY__IDLE_LATENCY], 20 * US);
    assert_int_equal(second[MAREY__IDLE_SYNCHRONISE], 40 * US);
    assert_int_equal(second[MAREY__IDLE_DATA], 0);
}

static void devices_are_idle_each_for_itself(void **state)
{
    struct fixture *f = *state;
    put_launch(f, 10, 15, 1);
    put_launch(f, 20, 25, 2);
    put_range(f, 60, 90, DATA);
    put_launch(f, 100, 105, 3);
    put_launch(f, 110, 115, 4);
    log_put_words(&f->log, MAIN, 0);
    put_work(f, 20, 50, 1);
    put_work(f, 105, 110, 3);
    log_put_words(&f->log, STREAM_7, 0);
    put_work(f, 30, 70, 2);
    put_work(f, 115, 116, 4);
    log_put_words(&f->log, OTHER_DEVICE, 0);
    const struct marey__idle_device *device = find(f);
    expect_reasons(&device[0],
                   (const uint64_t[MAREY__N_IDLE_REASONS]){
                       [MAREY__IDLE_HOST] = 20, [MAREY__IDLE_DATA] = 30, [MAREY__IDLE_LATENCY] = 5});
    expect_reasons(&device[1],
                   (const uint64_t[MAREY__N_IDLE_REASONS]){
                       [MAREY__IDLE_HOST] = 20, [MAREY__IDLE_DATA] = 20, [MAREY__IDLE_LATENCY] = 5});
    assert_int_equal(device[1].device, 1);
}

static void a_full_launch_queue_is_reported(void **state)
{
    struct fixture *f = *state;
    const uint64_t n = MAREY__LAUNCH_QUEUE + 10;
    put_launch(f, 10, 15, 1);
    for (uint64_t i = 2; i <= n; i++) {
        log_begin(&f->log, (20 + i) * US, LAUNCH);
        log_launch(&f->log, (20 + i) * US, i);
        log_end(&f->log, (20 + i) * US, LAUNCH);
        if (i % 500 == 0)
            log_put_words(&f->log, MAIN, (uint32_t)(i / 500 - 1));
    }
    log_put_words(&f->log, MAIN, 2);
    put_work(f, 20, 100, 1);
    for (uint64_t i = 2; i <= n; i++) { /* the first waits, the others follow one another */
        log_work(&f->log, (2998 + i) * US, GEMM, MAREY_WORK_KERNEL, US, i, 0);
        if (i % 500 == 0)
            log_put_words(&f->log, STREAM_7, (uint32_t)(i / 500 - 1));
    }
    log_put_words(&f->log, STREAM_7, 2);
    const struct marey__idle_device *device = find(f);
    const uint64_t full_from = 20 + MAREY__LAUNCH_QUEUE + 1; /* the second is outstanding since then */
    expect_reasons(device, (const uint64_t[MAREY__N_IDLE_REASONS]){
                               [MAREY__IDLE_QUEUED] = full_from - 100,
                               [MAREY__IDLE_QUEUE_FULL] = 3000 - full_from,
                           });
    assert_true(device->queue_full_ns > device->ns[MAREY__IDLE_QUEUE_FULL]);
}

static void a_process_without_devices_waits_where_it_says_so(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, FORWARD);
    put_range(f, 50, 80, DATA);
    put_range(f, 90, 95, GLOO);
    put_range(f, 100, 120, RESTING);
    log_end(&f->log, 150 * US, FORWARD);
    log_put_words(&f->log, MAIN, 0);
    const struct marey__idle_device *device = find(f);
    assert_int_equal(device->device, -1);
    /* The loader's name is no category, so that it computes there; "sleep" has the category idle. */
    expect_reasons(device, (const uint64_t[MAREY__N_IDLE_REASONS]){[MAREY__IDLE_WAIT] = 20});
    assert_int_equal(operator_us(f, 0, MAREY__IDLE_WAIT, "sleep"), 20);
}

/* ---- rules ---- */

static void rules_of_the_user_come_first(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "mine idle:data_loading range forward\n";
    marey__rules_fini(&f->rules);
    assert_int_equal(marey__rules_parse(&f->rules, "mine", text, strlen(text)), MAREY_OK);
    assert_int_equal(f->rules.n, 0);
    assert_int_equal(f->rules.n_idle, 1);
    const struct marey_site_info site = {.name = "my_forward", .name_len = 10, .category = ""};
    assert_int_equal(marey__idle_rule_of(&f->rules, &site), 0);
    assert_int_equal(f->rules.idle[0].class, MAREY__IDLE_DATA);
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"a idle:nothing range x", "does not have the reason 'nothing'"},
        {"a idle:queued range x", "does not have the reason"}, /* a device's reason, not a thread's */
        {"a idle: range x", "does not have the reason"},
        {"a idle:wait kind kernel", "looks at range or category, not 'kind'"},
        {"a idle range x", "idle:REASON"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++) {
        assert_int_equal(marey__rules_parse(&f->rules, "mine", bad[i].text, strlen(bad[i].text)),
                         MAREY_EFORMAT);
        assert_non_null(strstr(marey_last_error(), bad[i].part));
    }
}

static void names_of_runtimes_and_frameworks_are_known(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name;
        enum marey__idle_reason reason;
    } want[] = {
        {"cudaDeviceSynchronize", MAREY__IDLE_SYNCHRONISE},
        {"cudaEventSynchronize", MAREY__IDLE_SYNCHRONISE},
        {"cuStreamSynchronize", MAREY__IDLE_SYNCHRONISE},
        {"hipStreamSynchronize", MAREY__IDLE_SYNCHRONISE},
        {"cudaMemcpy", MAREY__IDLE_SYNCHRONISE},
        {"cudaMemcpyAsync", MAREY__IDLE_HOST},
        {"cuMemcpyDtoH_v2", MAREY__IDLE_SYNCHRONISE},
        {"cuMemcpyDtoHAsync_v2", MAREY__IDLE_HOST},
        {"hipMemcpy", MAREY__IDLE_SYNCHRONISE},
        {"hipMemcpyAsync", MAREY__IDLE_HOST},
        {"torch/cuda/__init__.py(1040): synchronize", MAREY__IDLE_SYNCHRONISE},
        {"cudaStreamWaitEvent", MAREY__IDLE_HOST},
        {"cudaMalloc", MAREY__IDLE_ALLOCATE},
        {"cudaFree", MAREY__IDLE_ALLOCATE},
        {"cudaHostAlloc", MAREY__IDLE_ALLOCATE},
        {"hipMalloc", MAREY__IDLE_ALLOCATE},
        {"hipHostMalloc", MAREY__IDLE_ALLOCATE},
        {"cuMemCreate", MAREY__IDLE_ALLOCATE},
        {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", MAREY__IDLE_DATA},
        {"[pl][profile][_TrainingEpochLoop].train_dataloader_next", MAREY__IDLE_DATA},
        {"data", MAREY__IDLE_DATA},
        {"load_data", MAREY__IDLE_DATA},
        {"Optimizer.zero_grad#AdamW.zero_grad", MAREY__IDLE_OPTIMIZER},
        {"optimizer", MAREY__IDLE_OPTIMIZER},
        {"cuModuleLoadDataEx", MAREY__IDLE_LOAD},
        {"cuLibraryLoadData", MAREY__IDLE_LOAD},
        {"MPI_Allreduce", MAREY__IDLE_COMMUNICATE},
        {"aten::_local_scalar_dense", MAREY__IDLE_SYNCHRONISE},
        {"aten::add_", MAREY__IDLE_HOST},
        {"cudaLaunchKernel", MAREY__IDLE_HOST},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(want); i++) {
        const struct marey_site_info site = {
            .name = want[i].name, .name_len = (uint32_t)strlen(want[i].name), .category = ""};
        const uint16_t rule = marey__idle_rule_of(&f->rules, &site);
        const uint8_t reason =
            rule == MAREY__NO_IDLE_RULE ? MAREY__IDLE_HOST : f->rules.idle[rule].class;
        if (reason != want[i].reason)
            fail_msg("%s: %s", want[i].name, marey__idle_words[reason].id);
    }
}

/* ---- tables ---- */

static void tables_have_what_was_found(void **state)
{
    struct fixture *f = *state;
    marey_table *reasons, *operators, *steps;
    a_gap_is_split_at_the_launch_of_what_comes_next(state);
    assert_int_equal(
        marey_table_create("idle", marey__idle_columns, MAREY__N_IDLE_COLUMNS, &reasons), MAREY_OK);
    assert_int_equal(marey_table_create("idle_by_operator", marey__idle_operator_columns,
                                        MAREY__N_IDLE_OPERATOR_COLUMNS, &operators),
                     MAREY_OK);
    assert_int_equal(marey_table_create("idle_by_step", marey__idle_step_columns,
                                        MAREY__N_IDLE_STEP_COLUMNS, &steps),
                     MAREY_OK);
    marey__idle_put(reasons, &f->set, &f->idle);
    marey__idle_put_operators(operators, &f->set, &f->idle);
    marey__idle_put_steps(steps, &f->set, &f->idle);
    assert_int_equal(marey_table_status(reasons), MAREY_OK);
    assert_int_equal(marey_table_n_rows(reasons), 2);
    assert_string_equal(marey_table_cell(reasons, 0, 3).as.text, "host_bound");
    assert_int_equal(marey_table_cell(reasons, 0, 5).as.u64, 40 * US);
    assert_true(marey_table_cell(reasons, 0, 6).as.f64 == 40.0 / 52);
    assert_int_equal(marey_table_n_rows(operators), 3);
    assert_string_equal(marey_table_cell(operators, 2, 4).as.text, "aten::add");
    assert_int_equal(marey_table_cell(operators, 2, 6).as.u64, 12 * US);
    assert_int_equal(marey_table_n_rows(steps), 0);
    marey_table_destroy(reasons);
    marey_table_destroy(operators);
    marey_table_destroy(steps);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_gap_is_split_at_the_launch_of_what_comes_next),
        TEST(ranges_of_the_launching_thread_tell_the_reason),
        TEST(of_several_reasons_the_one_that_blocks_counts),
        TEST(what_was_launched_ahead_was_queued),
        TEST(clocks_may_differ_and_launches_be_unknown),
        TEST(busy_streams_leave_no_gap),
        TEST(a_sleeping_thread_is_relieved_by_who_launched_before),
        TEST(ranges_may_end_out_of_order),
        TEST(steps_reach_beyond_the_work),
        TEST(devices_are_idle_each_for_itself),
        TEST(a_full_launch_queue_is_reported),
        TEST(a_process_without_devices_waits_where_it_says_so),
        TEST(rules_of_the_user_come_first),
        TEST(names_of_runtimes_and_frameworks_are_known),
        TEST(tables_have_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
