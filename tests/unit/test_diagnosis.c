/* Places of findings: of samples and steps that are made here, with a GPU, threads and installed packages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "samples_maker.h"
#include <marey/marey.h>

enum { GEMM = 4, CALL = 5, WAIT = 6, STEP_NS = 10000000, N_STEPS = 80 };
enum { GIL = MAREY_SAMPLE_GIL | MAREY_SAMPLE_ON_CPU, OFF = MAREY_SAMPLE_OFF_CPU };

struct run {
    struct samples_maker samples;
    struct log_maker log;
    marey_recording *recording;
    marey_report *report;
};

static int set_up(void **state)
{
    char host[256];
    struct run *const run = *state = calloc(1, sizeof *run);
    if (run == NULL || samples_maker_init(&run->samples) != 0)
        return 1;
    gethostname(host, sizeof host);
    for (char *c = host; *c != '\0'; c++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._", *c) == NULL)
            *c = '_';
    log_put_pairs(&run->log, MAREY__BLOCK_LOG,
                  (const char *const[]){"pid", "100", "host", host, "clock", "monotonic", "tick_hz",
                                        "1000000000", "pid_start_time", "5", "steps",
                                        "driver marey.hf.Callback", NULL});
    log_put_site_of(&run->log, GEMM, "gemm", "kernel", "");
    log_put_site_of(&run->log, CALL, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(&run->log, WAIT, "cudaStreamSynchronize", "cuda_runtime", "");
    return 0;
}

static int tear_down(void **state)
{
    struct run *const run = *state;
    marey_report_destroy(run->report);
    marey_recording_close(run->recording);
    samples_maker_fini(&run->samples);
    log_maker_fini(&run->log);
    free(run);
    return 0;
}

/* Steps of 10 ms, which the thread `tid` ends. With a GPU: a kernel of 1 ms from 3 ms on, which the host waits for. */
static void put_steps(struct run *run, int64_t tid, bool has_gpu)
{
    struct log_maker *const log = &run->log;
    log_put_lane(log, 0, tid, "training");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
    for (uint64_t i = 0; i < N_STEPS; i++) {
        const uint64_t at = i * STEP_NS;
        if (has_gpu) {
            log_begin(log, at + 3000000, CALL);
            log_launch(log, at + 3000000, i + 1);
            log_end(log, at + 3010000, CALL);
            log_begin(log, at + 3020000, WAIT);
            log_end(log, at + 4000000, WAIT);
        }
        log_iteration(log, at + STEP_NS, i, false, 0);
    }
    log_put_words(log, 0, 0);
    if (has_gpu) {
        log_put_stream(log, 1, 0, 7, "");
        for (uint64_t i = 0; i < N_STEPS; i++)
            log_work(log, i * STEP_NS + 3010000, GEMM, MAREY_WORK_KERNEL, 980000, i + 1, 0);
        log_put_words(log, 1, 0);
    }
    log_put_end(log, "exit");
}

/* A sample of each of some steps, at a time in the step. */
struct put {
    uint32_t thread;
    const char *frames;
    uint32_t flags;
    uint64_t at_us;
    size_t every;
};

static void put_samples(struct run *run, const struct put *list, size_t n)
{
    for (uint64_t step = 0; step < N_STEPS; step++)
        for (size_t i = 0; i < n; i++) {
            struct marey_samples_seen seen[8] = {{0}};
            size_t n_seen = 0, first = i;
            for (; i < n && list[i].at_us == list[first].at_us; i++)
                if (step % list[i].every == 0)
                    seen[n_seen++] = (struct marey_samples_seen){
                        list[i].thread, samples_stack(&run->samples, list[i].frames), list[i].flags,
                        0};
            i--;
            if (n_seen != 0)
                samples_round(&run->samples, step * STEP_NS / 1000 + list[first].at_us, n_seen, seen);
        }
}
#define PUT(...)                                                                                   \
    put_samples(run, (const struct put[]){__VA_ARGS__},                                            \
                sizeof((const struct put[]){__VA_ARGS__}) / sizeof(struct put))

static void make_report(struct run *run)
{
    char path[128];
    snprintf(path, sizeof path, "%s/r0-x-100-1.klog", run->samples.path);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(run->log.bytes.data, 1, run->log.bytes.len, file), run->log.bytes.len);
    fclose(file);
    samples_end(&run->samples, "stop");
    assert_int_equal(marey_recording_open(run->samples.path, &run->recording), MAREY_OK);
    assert_int_equal(marey_report_create("diagnosis", &run->recording, 1, NULL, &run->report),
                     MAREY_OK);
}

/* The report has the text. */
static void expect(const struct run *run, const char *format, const char *wanted)
{
    char *text = NULL;
    size_t len;
    FILE *const file = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(run->report, format, NULL, file), MAREY_OK);
    fclose(file);
    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in %s", wanted, text);
    free(text);
}

/* Most samples are at a line that waits for the GPU; few fall into idle time. */
static void put_waits(struct run *run, size_t every)
{
    const uint32_t main = samples_thread(&run->samples, true, "main");
    put_steps(run, 100, true);
    PUT({main, "main:3;prepare:9", GIL, 1500, every}, {main, "main:3;item:7", GIL, 3500, 1});
    make_report(run);
}

static void the_line_that_waits_for_a_gpu_does_not_leave_it_idle(void **state)
{
    put_waits(*state, 10);
    expect(*state, "json", "\"id\":\"host-bound\"");
    expect(*state, "text", "prepare (prepare.py:9) is 100 % of that time.");
}

static void too_few_samples_name_no_function(void **state)
{
    put_waits(*state, 40);
    expect(*state, "text", "The function is unknown: too few samples were taken at these times.");
}

static void a_line_that_all_samples_are_in_is_no_place_but_a_caller(void **state)
{
    struct run *const run = *state;
    const uint32_t main = samples_thread(&run->samples, true, "main");
    put_steps(run, 100, true);
    PUT({main, "main:88;site-packages/hf/train:5;site-packages/hf/log:7", GIL, 1500, 1},
        {main, "main:88;site-packages/hf/train:5;site-packages/hf/step:9", GIL, 3500, 1});
    make_report(run);
    expect(run, "text", "hf/log (log.py:7), called by main (main.py:88), is 100 % of that time.");
    expect(
        run,
        "json", "\"line\":7,\"process\":100,\"rank\":null},{\"function\":\"main\",\"file\":\"/src/main.py\",");
}

static void samples_are_those_of_the_thread_that_ends_steps(void **state)
{
    struct run *const run = *state;
    const uint32_t main = samples_thread(&run->samples, true, "main"),
                   trainer = samples_thread(&run->samples, false, "trainer");
    put_steps(run, 101, false);
    PUT({main, "main:30;join:5", OFF, 1500, 1}, {trainer, "train:4;score:6", GIL, 1500, 1});
    make_report(run);
    expect(run, "text", "score (score.py:6) is 100 % of each step");
    expect(run, "json", "\"detected_by\":\"callback\"");
}

static void the_package_that_runs_is_the_users(void **state)
{
    struct run *const run = *state;
    const uint32_t main = samples_thread(&run->samples, true, "main");
    put_steps(run, 100, false);
    PUT({main, "site-packages/pack/__main__:3;site-packages/pack/score:6", GIL, 1500, 1});
    make_report(run);
    expect(run, "text", "pack/score (score.py:6) is 100 % of each step");
}

static void time_in_calls_of_several_functions_is_no_hot_function(void **state)
{
    struct run *const run = *state;
    const uint32_t main = samples_thread(&run->samples, true, "main");
    put_steps(run, 100, false);
    PUT({main, "main:3;parse:6", GIL, 1500, 1}, {main, "main:4;check:6", GIL, 4800, 1},
        {main, "main:4;save:6", GIL, 8200, 1});
    make_report(run);
    expect(run, "json", "\"findings\":[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(the_line_that_waits_for_a_gpu_does_not_leave_it_idle),
        TEST(too_few_samples_name_no_function),
        TEST(a_line_that_all_samples_are_in_is_no_place_but_a_caller),
        TEST(samples_are_those_of_the_thread_that_ends_steps),
        TEST(the_package_that_runs_is_the_users),
        TEST(time_in_calls_of_several_functions_is_no_hot_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
