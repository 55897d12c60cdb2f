/* Logs of a process with two threads and two streams, and checks of its critical path. Times are nanoseconds. */
#ifndef MAREY_TEST_PATH_FIXTURE_H
#define MAREY_TEST_PATH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log_maker.h"
#include "table_view.h"
#include <marey/report.h>

enum {
    FORWARD = 1,
    ADD,
    LAUNCH,
    SYNC,
    COPY_CALL,
    BACKWARD,
    AUTOGRAD,
    PYTHON,
    GEMM,
    NCCL,
    MEMCPY,
    UPLOAD,
    N_SITES,
};
enum { MAIN = 0, WORKER, STREAM_7, STREAM_20, N_LANES };

static const char *const sites[N_SITES][2] = {
    [FORWARD] = {"forward", "user_annotation"},
    [ADD] = {"aten::add", "cpu_op"},
    [LAUNCH] = {"cudaLaunchKernel", "cuda_runtime"},
    [SYNC] = {"cudaStreamSynchronize", "cuda_runtime"},
    [COPY_CALL] = {"cudaMemcpyAsync", "cuda_runtime"},
    [BACKWARD] = {"loss.backward", "user_annotation"},
    [AUTOGRAD] = {"autograd::engine::evaluate_function: AddBackward0", "cpu_op"},
    [PYTHON] = {"train.py(12): prepare", "python_function"},
    [GEMM] = {"sgemm", "kernel"},
    [NCCL] = {"ncclDevKernel_AllReduce_Sum_f32", "kernel"},
    [MEMCPY] = {"Memcpy DtoH", "gpu_memcpy"},
    [UPLOAD] = {"Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"},
};

struct fixture {
    struct log_maker log;
    marey_recording *recording;
    marey_report *report;
    size_t n_checked; /* rows of parts */
};

static inline int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    if (f == NULL)
        return 1;
    log_put_process(&f->log, NULL, NULL);
    for (uint32_t i = 1; i < N_SITES; i++)
        log_put_site_of(&f->log, i, sites[i][0], sites[i][1], "");
    log_put_lane(&f->log, MAIN, 100, "main");
    log_put_lane(&f->log, WORKER, 101, "worker");
    log_put_stream(&f->log, STREAM_7, 0, 7, "");
    log_put_stream(&f->log, STREAM_20, 0, 20, "");
    log_put_moment(&f->log, 0, 0);
    log_put_moment(&f->log, 1000000000, 1000000000);
    return 0;
}

static inline void forget(struct fixture *f)
{
    marey_report_destroy(f->report);
    if (f->recording != NULL)
        log_close(f->recording);
    f->report = NULL;
    f->recording = NULL;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    forget(f);
    log_maker_fini(&f->log);
    free(f);
    return 0;
}

/* ---- making logs ---- */

static inline void put_range(struct fixture *f, uint64_t begin, uint64_t end, uint32_t site)
{
    log_begin(&f->log, begin, site);
    log_end(&f->log, end, site);
}

static inline void put_call(struct fixture *f, uint32_t site, uint64_t begin, uint64_t end,
                            uint64_t correlation)
{
    log_begin(&f->log, begin, site);
    log_launch(&f->log, begin, correlation);
    log_end(&f->log, end, site);
}

static inline void put_launch(struct fixture *f, uint64_t begin, uint64_t end, uint64_t correlation)
{
    put_call(f, LAUNCH, begin, end, correlation);
}

static inline void put_work(struct fixture *f, uint32_t site, uint64_t begin, uint64_t end,
                            uint64_t correlation)
{
    log_work(&f->log, begin, site, site >= MEMCPY ? MAREY_WORK_COPY : MAREY_WORK_KERNEL,
             end - begin, correlation, 0);
}

static inline void put_lane(struct fixture *f, uint32_t lane)
{
    log_put_words(&f->log, lane, 0);
}

static inline void begin_step(struct fixture *f, uint64_t begin)
{
    log_iteration_begin(&f->log, begin, 0);
}

static inline void end_step(struct fixture *f, uint64_t end, uint64_t number)
{
    log_iteration(&f->log, end, number, false, 0);
}

/* ---- checks ---- */

static inline marey_table *table_of(struct fixture *f, const char *name)
{
    return (marey_table *)marey_report_table(f->report, name);
}

/* The sides of each step, and the classes and parts of all, add up. Returns the length of all steps. */
static inline uint64_t expect_sums(struct fixture *f)
{
    static const char *const sides[] = {"device_ns", "host_ns", "between_ns", "unexplained_ns"};
    const marey_table *steps = table_of(f, "steps");
    uint64_t length = 0;
    for (size_t row = 0; row < marey_table_n_rows(steps); row++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < MAREY__COUNT_OF(sides); i++)
            sum += table_number(steps, row, sides[i]);
        assert_int_equal(sum, table_number(steps, row, "length_ns"));
        length += sum;
    }
    for (size_t t = 0; t < 2; t++) {
        const marey_table *table = table_of(f, t == 0 ? "classes" : "parts");
        uint64_t sum = 0;
        for (size_t row = 0; row < marey_table_n_rows(table); row++)
            sum += table_number(table, row, "ns");
        assert_int_equal(sum, length);
    }
    return length;
}

static inline void find(struct fixture *f, uint64_t length)
{
    log_put_end(&f->log, "stop");
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    assert_int_equal(marey_report_create("path", &f->recording, 1, NULL, &f->report), MAREY_OK);
    assert_int_equal(expect_sums(f), length);
    f->n_checked = 0;
}

/* Part of this name and class takes that long, in all its rows (places, operators). */
static inline void expect(struct fixture *f, const char *class, const char *name, uint64_t ns)
{
    const marey_table *parts = table_of(f, "parts");
    uint64_t sum = 0;
    for (size_t row = 0; row < marey_table_n_rows(parts); row++)
        if (strcmp(table_cell(parts, row, "name").as.text, name) == 0 &&
            strcmp(table_cell(parts, row, "class").as.text, class) == 0) {
            sum += table_number(parts, row, "ns");
            f->n_checked++;
        }
    if (sum != ns)
        fail_msg("%s, %s: %llu ns, not %llu", class, name, (unsigned long long)sum,
                 (unsigned long long)ns);
}

static inline void expect_nothing_else(struct fixture *f)
{
    assert_int_equal(marey_table_n_rows(table_of(f, "parts")), f->n_checked);
}

#endif
