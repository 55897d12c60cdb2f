/* Logs of a process with two streams and two threads, for the tests of idle time. Times are microseconds. */
#ifndef MAREY_TEST_IDLE_FIXTURE_H
#define MAREY_TEST_IDLE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/device/internal.h"
#include "log_maker.h"

enum {
    STEP = 1,
    FORWARD,
    ADD,
    LAUNCH,
    SYNC,
    MALLOC,
    DATA,
    OPTIMIZER,
    ITEM,
    GLOO,
    LOAD,
    OVERHEAD,
    GEMM,
    RESTING,
    N_SITES,
};
enum { MAIN = 0, BACKWARD, STREAM_7, STREAM_20, OTHER_DEVICE, N_LANES };
enum { US = 1000 };

static const struct {
    const char *name, *category;
    enum marey__idle_reason reason;
} sites[N_SITES] = {
    [STEP] = {"ProfilerStep#7", "user_annotation", MAREY__IDLE_HOST},
    [FORWARD] = {"forward", "user_annotation", MAREY__IDLE_HOST},
    [ADD] = {"aten::add", "cpu_op", MAREY__IDLE_HOST},
    [LAUNCH] = {"cudaLaunchKernel", "cuda_runtime", MAREY__IDLE_HOST},
    [SYNC] = {"cudaStreamSynchronize", "cuda_runtime", MAREY__IDLE_SYNCHRONISE},
    [MALLOC] = {"cudaMalloc", "cuda_runtime", MAREY__IDLE_ALLOCATE},
    [DATA] = {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation",
              MAREY__IDLE_DATA},
    [OPTIMIZER] = {"Optimizer.step#SGD.step", "user_annotation", MAREY__IDLE_OPTIMIZER},
    [ITEM] = {"aten::item", "cpu_op", MAREY__IDLE_SYNCHRONISE},
    [GLOO] = {"gloo:all_reduce", "communication", MAREY__IDLE_COMMUNICATE},
    [LOAD] = {"cuModuleLoadData", "cuda_driver", MAREY__IDLE_LOAD},
    [OVERHEAD] = {"Buffer Flush", "overhead", MAREY__IDLE_PROFILER},
    [GEMM] = {"sgemm", "kernel", MAREY__IDLE_HOST},
    [RESTING] = {"sleep", "idle", MAREY__IDLE_WAIT},
};

struct fixture {
    struct log_maker log;
    struct marey__rules rules;
    marey_recording *recording;
    struct marey__work_set set;
    struct marey__interval spans[2];
    struct marey__interval *steps;
    struct marey__idle idle;
};

static inline int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    if (f == NULL || marey__rules_load(&f->rules, NULL) != MAREY_OK)
        return 1;
    log_put_process(&f->log, NULL, NULL);
    for (uint32_t i = 1; i < N_SITES; i++)
        log_put_site_of(&f->log, i, sites[i].name, sites[i].category, "");
    log_put_lane(&f->log, MAIN, 100, "main");
    log_put_lane(&f->log, BACKWARD, 101, "backward");
    log_put_stream(&f->log, STREAM_7, 0, 7, "");
    log_put_stream(&f->log, STREAM_20, 0, 20, "");
    log_put_stream(&f->log, OTHER_DEVICE, 1, 7, "");
    log_put_moment(&f->log, 0, 0);
    log_put_moment(&f->log, 1000000000, 1000000000);
    return 0;
}

static inline void forget_recording(struct fixture *f)
{
    marey__idle_fini(&f->idle);
    marey__work_set_fini(&f->set);
    if (f->recording != NULL)
        log_close(f->recording);
    f->recording = NULL;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    forget_recording(f);
    marey__rules_fini(&f->rules);
    log_maker_fini(&f->log);
    free(f->steps);
    free(f);
    return 0;
}

/* ---- making logs ---- */

static inline void put_range(struct fixture *f, uint64_t begin, uint64_t end, uint32_t site)
{
    log_begin(&f->log, begin * US, site);
    log_end(&f->log, end * US, site);
}

static inline void put_launch(struct fixture *f, uint64_t begin, uint64_t end, uint64_t correlation)
{
    log_begin(&f->log, begin * US, LAUNCH);
    log_launch(&f->log, begin * US, correlation);
    log_end(&f->log, end * US, LAUNCH);
}

static inline void put_work(struct fixture *f, uint64_t begin, uint64_t end, uint64_t correlation)
{
    log_work(&f->log, begin * US, GEMM, MAREY_WORK_KERNEL, (end - begin) * US, correlation, 0);
}

static inline void read_set(struct fixture *f)
{
    const struct marey__work_options options = {.rules = &f->rules};
    log_put_end(&f->log, "stop");
    assert_int_equal(log_open(&f->log, &f->recording), MAREY_OK);
    assert_int_equal(marey__work_set_read(&f->set, f->recording, 0, &options), MAREY_OK);
    for (size_t d = 0; d < f->set.n_devices; d++) {
        const struct marey__device_work *device = &f->set.devices[d];
        f->spans[d] = (struct marey__interval){device->work[0].begin_ns, 0};
        for (size_t i = 0; i < device->n_work; i++)
            f->spans[d].end_ns = MAREY__MAX(f->spans[d].end_ns, device->work[i].end_ns);
    }
}

static inline const struct marey__idle_device *find(struct fixture *f)
{
    const struct marey__idle_windows windows = {.whole = f->spans, .stride = 1, .steps = f->steps};
    if (f->recording == NULL)
        read_set(f);
    assert_int_equal(marey__idle_find(&f->idle, &f->set, &f->rules, &windows), MAREY_OK);
    return &f->idle.devices[0];
}

/* ---- looking at results ---- */

static inline void expect_reasons(const struct marey__idle_device *device,
                                  const uint64_t want_us[MAREY__N_IDLE_REASONS])
{
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++)
        if (device->ns[i] != want_us[i] * US)
            fail_msg("%s: %llu us, not %llu", marey__idle_words[i].id,
                     (unsigned long long)device->ns[i] / US, (unsigned long long)want_us[i]);
}

static inline uint64_t operator_us(const struct fixture *f, size_t device,
                                   enum marey__idle_reason reason, const char *name)
{
    for (size_t i = 0; i < f->idle.devices[device].n_rows; i++) {
        const struct marey__idle_row *row = &f->idle.devices[device].rows[i];
        const char *text = row->name == MAREY__NO_NAME ? "" : f->idle.names.names[row->name].text;
        if (row->reason == reason && strcmp(text, name) == 0)
            return row->ns / US;
    }
    return 0;
}

#endif
