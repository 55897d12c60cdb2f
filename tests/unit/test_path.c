/* The critical path of graphs that are known by hand, each to the nanosecond; and of random ones, which must add up. */
#include "path_fixture.h"

/* ---- graphs ---- */

static void a_launch_bound_step_is_on_the_host(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    log_begin(&f->log, 0, FORWARD);
    put_launch(f, 100, 110, 1);
    put_launch(f, 500, 511, 2);
    put_range(f, 520, 1000, SYNC);
    log_end(&f->log, 1003, FORWARD);
    end_step(f, 1003, 4);
    put_lane(f, MAIN);
    put_work(f, GEMM, 115, 205, 1);
    put_work(f, GEMM, 514, 903, 2);
    put_lane(f, STREAM_7);
    find(f, 1003);
    expect(f, "other host", "forward", 100 + 390 + 3);
    expect(f, "runtime call", "cudaLaunchKernel", 10 + 11);
    expect(f, "launch latency", "sgemm", 3);
    expect(f, "compute", "sgemm", 389);
    expect(f, "wake-up", "cudaStreamSynchronize", 97);
    expect_nothing_else(f);
    assert_int_equal(table_number(table_of(f, "steps"), 0, "step"), 4);
    const marey_table *parts = table_of(f, "parts");
    const size_t row = table_row(parts, "class", "runtime call");
    assert_string_equal(table_cell(parts, row, "operator").as.text, "forward");
    assert_string_equal(table_cell(parts, row, "where").as.text, "step thread");
    assert_int_equal(table_number(parts, row, "count"), 2);
}

static void a_device_bound_step_is_on_the_device(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    for (uint64_t i = 1; i <= 3; i++)
        put_launch(f, 10 * i, 10 * i + 5, i);
    put_range(f, 40, 910, SYNC);
    end_step(f, 920, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 16, 300, 1);
    put_work(f, GEMM, 300, 600, 2);
    put_work(f, GEMM, 605, 900, 3);
    put_lane(f, STREAM_7);
    find(f, 920);
    expect(f, "compute", "sgemm", 284 + 300 + 295);
    expect(f, "stream gap", "sgemm", 5);
    expect(f, "launch latency", "sgemm", 1);
    expect(f, "runtime call", "cudaLaunchKernel", 5);
    expect(f, "other host", "(no range)", 10 + 10);
    expect(f, "wake-up", "cudaStreamSynchronize", 10);
    expect_nothing_else(f);
}

static void a_wait_in_the_middle_joins_host_and_device(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 15, 1);
    put_range(f, 30, 210, SYNC);
    put_launch(f, 400, 410, 2);
    put_range(f, 420, 610, SYNC);
    end_step(f, 620, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 20, 200, 1);
    put_work(f, GEMM, 412, 600, 2);
    put_lane(f, STREAM_7);
    find(f, 620);
    expect(f, "compute", "sgemm", 180 + 188);
    expect(f, "launch latency", "sgemm", 5 + 2);
    expect(f, "wake-up", "cudaStreamSynchronize", 10 + 10);
    expect(f, "runtime call", "cudaLaunchKernel", 5 + 10);
    expect(f, "other host", "(no range)", 10 + 190 + 10);
    expect_nothing_else(f);
}

/* C is hidden by the communication, for which B waits, which waits for A. */
static void of_overlapping_streams_the_last_to_end_counts(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    for (uint64_t i = 1; i <= 4; i++)
        put_launch(f, 10 * i, 10 * i + 5, i);
    put_range(f, 50, 90100, SYNC);
    end_step(f, 90100, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 20, 30000, 1);
    put_work(f, GEMM, 30000, 50000, 3);
    put_work(f, GEMM, 80003, 90000, 4);
    put_lane(f, STREAM_7);
    put_work(f, NCCL, 30002, 80000, 2);
    put_lane(f, STREAM_20);
    find(f, 90100);
    expect(f, "compute", "sgemm", 29980 + 9997);
    expect(f, "communication", sites[NCCL][0], 49998);
    expect(f, "stream gap", "sgemm", 3);
    expect(f, "stream gap", sites[NCCL][0], 2);
    expect(f, "launch latency", "sgemm", 5);
    expect(f, "wake-up", "cudaStreamSynchronize", 100);
    expect(f, "runtime call", "cudaLaunchKernel", 5);
    expect(f, "other host", "(no range)", 10);
    expect_nothing_else(f);
    assert_non_null(strstr(table_cell(table_of(f, "notes"), 0, "text").as.text,
                           "inferred from times because event waits are not recorded: 2"));
}

/* A queued copy, and one that blocks its call. */
static void exposed_copies_are_on_the_path(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_call(f, COPY_CALL, 10, 15, 1);
    put_launch(f, 20, 25, 2);
    put_range(f, 30, 705, SYNC);
    put_call(f, COPY_CALL, 710, 1010, 3);
    end_step(f, 1010, 0);
    put_lane(f, MAIN);
    put_work(f, MEMCPY, 20, 500, 1);
    put_work(f, GEMM, 503, 700, 2);
    put_work(f, MEMCPY, 750, 1000, 3);
    put_lane(f, STREAM_20);
    find(f, 1010);
    expect(f, "copy", "Memcpy DtoH", 480 + 250);
    expect(f, "compute", "sgemm", 197);
    expect(f, "stream gap", "sgemm", 3);
    expect(f, "launch latency", "Memcpy DtoH", 5 + 40);
    expect(f, "wake-up", "cudaMemcpyAsync", 10);
    expect(f, "wake-up", "cudaStreamSynchronize", 5);
    expect(f, "runtime call", "cudaMemcpyAsync", 5);
    expect(f, "other host", "(no range)", 10 + 5);
    expect_nothing_else(f);
}

/* It is over before its call returns, which would have returned anyway. */
static void an_asynchronous_upload_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_call(f, COPY_CALL, 10, 100, 1);
    end_step(f, 120, 0);
    put_lane(f, MAIN);
    put_work(f, UPLOAD, 20, 30, 1);
    put_lane(f, STREAM_7);
    find(f, 120);
    expect(f, "runtime call", "cudaMemcpyAsync", 90);
    expect(f, "other host", "(no range)", 30);
    expect_nothing_else(f);
}

static void work_may_begin_before_its_call_returns(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 100, 200, 1);
    put_range(f, 210, 450, SYNC);
    end_step(f, 450, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 150, 400, 1);
    put_lane(f, STREAM_7);
    find(f, 450);
    expect(f, "compute", "sgemm", 250);
    expect(f, "launch latency", "sgemm", 50);
    expect(f, "wake-up", "cudaStreamSynchronize", 50);
    expect(f, "other host", "(no range)", 100);
    expect_nothing_else(f);
}

static void what_the_host_does_in_a_gap_has_its_names(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 15, 1);
    put_range(f, 30, 110, SYNC);
    log_begin(&f->log, 110, PYTHON);
    put_range(f, 150, 250, ADD);
    log_end(&f->log, 300, PYTHON);
    put_launch(f, 300, 310, 2);
    put_range(f, 310, 420, SYNC);
    end_step(f, 420, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 20, 100, 1);
    put_work(f, GEMM, 311, 400, 2);
    put_lane(f, STREAM_7);
    find(f, 420);
    expect(f, "python", sites[PYTHON][0], 40 + 50);
    expect(f, "operator", "aten::add", 100);
    expect(f, "runtime call", "cudaLaunchKernel", 5 + 10);
    expect(f, "compute", "sgemm", 80 + 89);
    expect(f, "launch latency", "sgemm", 5 + 1);
    expect(f, "wake-up", "cudaStreamSynchronize", 10 + 20);
    expect(f, "other host", "(no range)", 10);
    expect_nothing_else(f);
}

static void time_before_an_unknown_launch_is_unexplained(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 15, 1);
    put_range(f, 300, 60000, SYNC);
    end_step(f, 60010, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 20, 200, 1);
    put_work(f, GEMM, 20300, 40000, 0); /* too late to follow from the one before */
    put_work(f, GEMM, 40007, 59990, 9); /* follows */
    put_lane(f, STREAM_7);
    find(f, 60010);
    expect(f, "unexplained", "sgemm", 20100);
    expect(f, "compute", "sgemm", 180 + 19700 + 19983);
    expect(f, "stream gap", "sgemm", 7);
    expect(f, "launch latency", "sgemm", 5);
    expect(f, "wake-up", "cudaStreamSynchronize", 10);
    expect(f, "runtime call", "cudaLaunchKernel", 5);
    expect(f, "other host", "(no range)", 10 + 10);
    expect_nothing_else(f);
    assert_int_equal(table_number(table_of(f, "steps"), 0, "unexplained_ns"), 20100);
}

static void without_any_predecessor_the_rest_is_unexplained(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 5, 6, 7); /* of nothing */
    put_range(f, 300, 410, SYNC);
    end_step(f, 410, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 200, 400, 9);
    put_lane(f, STREAM_7);
    find(f, 410);
    expect(f, "unexplained", "sgemm", 200);
    expect(f, "compute", "sgemm", 200);
    expect(f, "wake-up", "cudaStreamSynchronize", 10);
    expect_nothing_else(f);
}

/* The first step does not wait; of the second, the kernel has run for half of its time when it begins. */
static void a_step_may_begin_within_a_kernel(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 20, 1);
    end_step(f, 100, 0);
    put_launch(f, 102, 105, 2);
    put_range(f, 120, 310, SYNC);
    end_step(f, 501, 1);
    put_lane(f, MAIN);
    put_work(f, GEMM, 50, 300, 1);
    put_work(f, GEMM, 400, 700, 2);
    put_lane(f, STREAM_7);
    find(f, 501);
    expect(f, "compute", "sgemm", 200);
    expect(f, "wake-up", "cudaStreamSynchronize", 10);
    expect(f, "runtime call", "cudaLaunchKernel", 10);
    expect(f, "other host", "(no range)", 90 + 191);
    expect_nothing_else(f);
    const marey_table *steps = table_of(f, "steps");
    assert_int_equal(table_number(steps, 0, "length_ns"), 100);
    assert_int_equal(table_number(steps, 0, "host_ns"), 100);
    assert_int_equal(table_number(steps, 1, "length_ns"), 401);
    assert_int_equal(table_number(steps, 1, "device_ns"), 200);
}

/* The step ends while its thread waits: for what runs, although it ends later. */
static void a_step_may_end_within_a_wait(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 20, 1);
    log_begin(&f->log, 30, SYNC);
    end_step(f, 200, 0);
    log_end(&f->log, 310, SYNC);
    put_lane(f, MAIN);
    put_work(f, GEMM, 50, 300, 1);
    put_lane(f, STREAM_7);
    find(f, 200);
    expect(f, "compute", "sgemm", 150);
    expect(f, "launch latency", "sgemm", 30);
    expect(f, "runtime call", "cudaLaunchKernel", 10);
    expect(f, "other host", "(no range)", 10);
    expect_nothing_else(f);
}

static void a_backward_call_waits_for_the_thread_that_runs_it(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_range(f, 1000, 60000, BACKWARD);
    end_step(f, 70000, 0);
    put_lane(f, MAIN);
    log_begin(&f->log, 15000, AUTOGRAD);
    put_launch(f, 20000, 20005, 1);
    put_launch(f, 49000, 49010, 2);
    log_end(&f->log, 50000, AUTOGRAD);
    put_lane(f, WORKER);
    put_work(f, GEMM, 20010, 20020, 1);
    put_work(f, GEMM, 49012, 59000, 2);
    put_lane(f, STREAM_7);
    find(f, 70000);
    expect(f, "other host", "(no range)", 10000 + 1000);
    expect(f, "other host", "loss.backward", 10000 + 14000);
    expect(f, "operator", sites[AUTOGRAD][0], 35000 - 15);
    expect(f, "runtime call", "cudaLaunchKernel", 15);
    expect_nothing_else(f);
    const marey_table *parts = table_of(f, "parts");
    assert_string_equal(table_cell(parts, table_row(parts, "class", "operator"), "where").as.text,
                        "other thread");
    assert_non_null(strstr(table_cell(table_of(f, "notes"), 0, "text").as.text, "no thread"));
}

static void a_wait_is_not_for_what_is_launched_later(void **state)
{
    struct fixture *f = *state;
    enum { N = 70 };
    begin_step(f, 0);
    put_launch(f, 10, 15, 1);
    put_range(f, 30, 60100, SYNC);
    end_step(f, 60110, 0);
    put_lane(f, MAIN);
    for (uint64_t i = 0; i < N; i++)
        put_launch(f, 31 + 10 * i, 35 + 10 * i, 2 + i);
    put_lane(f, WORKER);
    put_work(f, GEMM, 20, 59990, 1);
    put_lane(f, STREAM_7);
    for (uint64_t i = 0; i < N; i++)
        put_work(f, NCCL, 59991 + i, 59992 + i, 2 + i);
    put_lane(f, STREAM_20);
    find(f, 60110);
    expect(f, "compute", "sgemm", 59970);
    expect(f, "launch latency", "sgemm", 5);
    expect(f, "wake-up", "cudaStreamSynchronize", 110);
    expect(f, "runtime call", "cudaLaunchKernel", 5);
    expect(f, "other host", "(no range)", 10 + 10);
    expect_nothing_else(f);
}

/* As in recordings of marey run: phases instead of ranges, and of another thread only its calls. */
static void phases_name_what_has_no_range(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    log_phase(&f->log, 100, FORWARD);
    put_launch(f, 500, 510, 1);
    log_phase(&f->log, 20000, BACKWARD);
    log_phase(&f->log, 60000, 0);
    end_step(f, 60500, 0);
    put_lane(f, MAIN);
    put_launch(f, 35000, 35007, 2);
    put_launch(f, 50000, 50009, 3);
    put_lane(f, WORKER);
    put_work(f, GEMM, 520, 600, 1);
    put_lane(f, STREAM_7);
    find(f, 60500);
    expect(f, "other host", "(no range)", 500 + (50000 - 35007) + 100);
    expect(f, "other host", "loss.backward", (60000 - 50009) + 15000);
    expect(f, "other host", "forward", 20000 - 100 - 10);
    expect(f, "runtime call", "cudaLaunchKernel", 7 + 9 + 10);
    expect_nothing_else(f);
    assert_int_equal(table_number(table_of(f, "steps"), 0, "host_ns"), 60500);
}

/* Launches of another thread alone, without such a range, prove nothing. */
static void a_quiet_thread_need_not_wait(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_range(f, 1000, 60000, FORWARD);
    end_step(f, 70000, 0);
    put_lane(f, MAIN);
    put_launch(f, 20000, 20005, 1);
    put_lane(f, WORKER);
    put_work(f, GEMM, 20010, 20020, 1);
    put_lane(f, STREAM_7);
    find(f, 70000);
    expect(f, "other host", "forward", 59000);
    expect(f, "other host", "(no range)", 11000);
    expect_nothing_else(f);
}

static void without_steps_the_traced_time_ends_with_the_last_work(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, FORWARD);
    put_launch(f, 10, 15, 1);
    log_end(&f->log, 30, FORWARD);
    put_lane(f, MAIN);
    put_work(f, GEMM, 20, 217, 1);
    put_lane(f, STREAM_7);
    find(f, 217);
    expect(f, "compute", "sgemm", 197);
    expect(f, "launch latency", "sgemm", 5);
    expect(f, "runtime call", "cudaLaunchKernel", 5);
    expect(f, "other host", "forward", 10);
    expect_nothing_else(f);
    assert_true(table_cell(table_of(f, "steps"), 0, "step").is_null);
}

/* The host runs ahead until a call blocks: it returns when work has made a place. No call waits for the step's end. */
static void a_full_launch_queue_waits_for_the_device(void **state)
{
    struct fixture *f = *state;
    enum { N = 1002 };
    begin_step(f, 0);
    for (uint64_t i = 0; i < N; i++) {
        put_launch(f, 10 * i + 5, i == N - 1 ? 60030 : 10 * i + 7, i + 1);
        if (i % 500 == 499)
            log_put_words(&f->log, MAIN, (uint32_t)(i / 500));
    }
    end_step(f, 60100, 0);
    log_put_words(&f->log, MAIN, 2);
    for (uint64_t i = 0; i < N; i++) {
        put_work(f, GEMM, 20 + 30000 * i, 20 + 30000 * (i + 1), i + 1);
        if (i % 500 == 499)
            log_put_words(&f->log, STREAM_7, (uint32_t)(i / 500));
    }
    log_put_words(&f->log, STREAM_7, 2);
    find(f, 60100);
    expect(f, "compute", "sgemm", 60000);
    expect(f, "launch latency", "sgemm", 13);
    expect(f, "wake-up", "cudaLaunchKernel", 10);
    expect(f, "runtime call", "cudaLaunchKernel", 2);
    expect(f, "other host", "(no range)", 5 + 70);
    expect_nothing_else(f);
}

static void steps_outside_of_windows_of_tracing_do_not_count(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 0);
    put_launch(f, 10, 20, 1); /* its work is not recorded */
    end_step(f, 100, 0);
    log_record(&f->log, 100, MAREY_RECORD_TRACED, (const uint64_t[]){1}, 1);
    put_launch(f, 110, 120, 2);
    put_range(f, 130, 190, SYNC);
    end_step(f, 200, 1);
    log_record(&f->log, 200, MAREY_RECORD_TRACED, (const uint64_t[]){0}, 1);
    end_step(f, 300, 2);
    put_lane(f, MAIN);
    put_work(f, GEMM, 125, 185, 2);
    put_lane(f, STREAM_7);
    find(f, 100);
    expect(f, "compute", "sgemm", 60);
    assert_int_equal(table_number(table_of(f, "steps"), 0, "step"), 1);
    assert_string_equal(table_cell(table_of(f, "notes"), 0, "text").as.text,
                        "steps without GPU tracing or a launch, excluded: 2");
}

/* ---- damaged and random logs ---- */

/* Work before its launch, overlapping work of one stream, work that waits for itself. */
static void impossible_times_add_up_all_the_same(void **state)
{
    struct fixture *f = *state;
    begin_step(f, 50);
    put_launch(f, 500, 510, 1);
    put_range(f, 600, 900, SYNC);
    put_launch(f, 650, 660, 2);
    end_step(f, 1000, 0);
    put_lane(f, MAIN);
    put_work(f, GEMM, 100, 880, 1);
    put_work(f, GEMM, 100, 890, 1);
    put_work(f, GEMM, 120, 700, 2);
    put_lane(f, STREAM_7);
    find(f, 950);
    expect(f, "compute", "sgemm", 790);
}

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*seed >> 33) % n;
}

static void put_random_thread(struct fixture *f, uint64_t *seed, uint32_t lane, uint64_t correlation)
{
    uint64_t ns = random_below(seed, 100);
    unsigned depth = 0;
    if (lane == MAIN)
        begin_step(f, 0);
    for (unsigned i = 0; i < 40; i++) {
        ns += random_below(seed, i % 5 == 0 ? 30000 : 50);
        const uint64_t what = random_below(seed, 8);
        if (what < 2 && depth < 5) {
            log_begin(&f->log, ns, FORWARD + (uint32_t)random_below(seed, GEMM - FORWARD));
            depth++;
        } else if (what < 4 && depth > 0) {
            log_end(&f->log, ns, 0);
            depth--;
        } else if (what < 6) {
            put_launch(f, ns, ns + random_below(seed, 20), correlation++);
            ns += 20;
        } else if (what == 6 && lane == MAIN) {
            end_step(f, ns, i);
        } else {
            put_range(f, ns, ns + random_below(seed, 5000), SYNC);
            ns += 5000;
        }
    }
    put_lane(f, lane);
}

static void random_graphs_add_up(void **state)
{
    uint64_t seed = 1;
    for (unsigned round = 0; round < 300; round++) {
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
        struct fixture *f = *state;
        put_random_thread(f, &seed, MAIN, 1);
        put_random_thread(f, &seed, WORKER, 20);
        for (uint32_t stream = STREAM_7; stream <= STREAM_20; stream++) {
            uint64_t ns = 0;
            for (unsigned i = 0; i < 30; i++) {
                ns += random_below(&seed, 12000);
                put_work(f, GEMM + (uint32_t)random_below(&seed, 4), ns,
                         ns + random_below(&seed, 15000), random_below(&seed, 40));
            }
            put_lane(f, stream);
        }
        log_put_end(&f->log, "stop");
        assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
        assert_int_equal(marey_report_create("path", &f->recording, 1, NULL, &f->report), MAREY_OK);
        assert_true(expect_sums(f) != 0);
    }
}

static void a_recording_without_gpu_and_steps_says_what_to_do(void **state)
{
    struct fixture *f = *state;
    put_range(f, 10, 20, FORWARD);
    put_lane(f, MAIN);
    log_put_end(&f->log, "stop");
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    assert_int_equal(marey_report_create("path", &f->recording, 1, NULL, &f->report), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "marey run --gpu"));
}

static void put_everything(struct fixture *f)
{
    log_record(&f->log, 0, MAREY_RECORD_TRACED, (const uint64_t[]){1}, 1);
    begin_step(f, 0);
    put_launch(f, 10, 15, 1);
    put_range(f, 30, 210, SYNC);
    put_range(f, 1000, 60000, BACKWARD);
    end_step(f, 70000, 0);
    put_lane(f, MAIN);
    log_begin(&f->log, 15000, AUTOGRAD);
    put_launch(f, 20000, 20005, 2);
    log_end(&f->log, 50000, AUTOGRAD);
    put_lane(f, WORKER);
    put_work(f, GEMM, 20, 200, 1);
    put_lane(f, STREAM_7);
    put_work(f, MEMCPY, 20000, 20004, 2);
    put_lane(f, STREAM_20);
    log_put_end(&f->log, "stop");
}

static void each_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    put_everything(f);
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    for (uint64_t nth = 1;; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        const marey_status status = marey_report_create(
            "path", &f->recording, 1, &(struct marey_report_options){.n_jobs = 1}, &report);
        marey__alloc_fail_nth(0);
        marey_report_destroy(report);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        assert_true(nth < 10000);
    }
}

static void the_text_begins_with_the_result(void **state)
{
    struct fixture *f = *state;
    char *text = NULL;
    size_t len = 0;
    a_wait_in_the_middle_joins_host_and_device(state);
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(f->report, "text", NULL, out), MAREY_OK);
    fclose(out);
    assert_ptr_equal(strstr(text,
                            "The critical path of a step (620 ns): compute 59.4 %, host 36.3 %, "
                            "launch latency 1.1 %, wake-up 3.2 %; unexplained 0.0 %.\n"),
                     text);
    assert_non_null(strstr(text, "sgemm"));
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_launch_bound_step_is_on_the_host),
        TEST(a_device_bound_step_is_on_the_device),
        TEST(a_wait_in_the_middle_joins_host_and_device),
        TEST(of_overlapping_streams_the_last_to_end_counts),
        TEST(exposed_copies_are_on_the_path),
        TEST(an_asynchronous_upload_is_not_waited_for),
        TEST(work_may_begin_before_its_call_returns),
        TEST(what_the_host_does_in_a_gap_has_its_names),
        TEST(time_before_an_unknown_launch_is_unexplained),
        TEST(without_any_predecessor_the_rest_is_unexplained),
        TEST(a_step_may_begin_within_a_kernel),
        TEST(a_step_may_end_within_a_wait),
        TEST(a_backward_call_waits_for_the_thread_that_runs_it),
        TEST(a_wait_is_not_for_what_is_launched_later),
        TEST(phases_name_what_has_no_range),
        TEST(a_quiet_thread_need_not_wait),
        TEST(without_steps_the_traced_time_ends_with_the_last_work),
        TEST(a_full_launch_queue_waits_for_the_device),
        TEST(steps_outside_of_windows_of_tracing_do_not_count),
        TEST(impossible_times_add_up_all_the_same),
        TEST(random_graphs_add_up),
        TEST(a_recording_without_gpu_and_steps_says_what_to_do),
        TEST(each_allocation_may_fail),
        TEST(the_text_begins_with_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
