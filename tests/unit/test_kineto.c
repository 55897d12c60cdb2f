/*
 * The Kineto export of hand-made logs: operators, phases, steps and CUDA calls, and the limits of a
 * window. One tick is one nanosecond, and tick 0 is 0.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/export/internal.h"

enum { LINEAR = 1, ADDMM, FORWARD, STEP, LAUNCH, KERNEL, MINE, REDUCE };

static void put_payload(struct log_maker *log, uint64_t tick, uint32_t site, const char *text)
{
    uint64_t words[32] = {site | (uint64_t)MAREY_PAYLOAD_TEXT << 20 | (uint64_t)strlen(text) << 32};
    memcpy(words + 1, text, strlen(text));
    log_record(log, tick, MAREY_RECORD_BEGIN, words, 1 + (strlen(text) + 7) / 8);
}

/* What the inner operator has. */
static const char *addmm_payload = "sizes = [[4, 8], [";

/* A step with a phase, an operator within another that launches a kernel, and something of the user's own. */
static void put_training(struct log_maker *log)
{
    log_put_process(log, NULL, NULL);
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1u << 30, 1u << 30);
    log_put_site_of(log, LINEAR, "aten::linear", "operator", "");
    log_put_site_of(log, ADDMM, "aten::addmm", "operator", "");
    log_put_site_of(log, FORWARD, "forward", "phase", "");
    log_put_site_of(log, STEP, "ProfilerStep", "step", "");
    log_put_site_of(log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(log, KERNEL, "gemm", "", "");
    log_put_site_of(log, MINE, "my \"own\"", "", "");
    log_put_site_of(log, REDUCE, "gloo:all_reduce", "annotation", "");
    log_put_lane(log, 0, 42, "main");
    log_put_stream(log, 1, 0, 7, "");
    log_begin(log, 1000, MINE);
    const uint64_t step[] = {STEP | (uint64_t)MAREY_PAYLOAD_I64 << 20, 8};
    log_record(log, 2000, MAREY_RECORD_BEGIN, step, 2);
    log_begin(log, 2100, FORWARD);
    put_payload(log, 2200, LINEAR, "seq = 7, sizes = [[4, 8], [[2], []]]");
    put_payload(log, 2300, ADDMM, addmm_payload);
    log_begin(log, 2400, LAUNCH);
    log_launch(log, 2400, 99);
    log_end(log, 2500, LAUNCH);
    log_end(log, 2600, ADDMM);
    log_end(log, 2700, LINEAR);
    log_end(log, 2800, FORWARD);
    log_end(log, 2900, STEP);
    const uint64_t handle[] = {REDUCE, 5};
    log_record(log, 2950, MAREY_RECORD_ASYNC_BEGIN, handle, 2);
    log_end(log, 3000, MINE);
    log_record(log, 3100, MAREY_RECORD_ASYNC_END, handle, 2);
    log_put_words(log, 0, 0);
    log_work(log, 2450, KERNEL, MAREY_WORK_KERNEL, 1000, 99, 0);
    log_put_words(log, 1, 1);
    log_put_end(log, "stop");
}

static char *export_training(const struct marey_export_options *options)
{
    struct log_maker *log = test_calloc(1, sizeof *log);
    marey_recording *recording = NULL;
    put_training(log);
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const int fd = memfd_create("export", MFD_CLOEXEC);
    assert_int_equal(marey_export(&recording, 1, "kineto", options, fd), MAREY_OK);
    const size_t len = (size_t)lseek(fd, 0, SEEK_CUR);
    char *text = test_calloc(len + 1, 1);
    assert_int_equal(pread(fd, text, len, 0), (ssize_t)len);
    close(fd);
    log_close(recording);
    log_maker_fini(log);
    test_free(log);
    return text;
}

static void expect(const char *in, const char *text, bool is_there)
{
    if ((strstr(in, text) != NULL) != is_there)
        fail_msg("%s %s in\n%s", is_there ? "no" : "there is", text, in);
}

static void operators_have_shapes_and_numbers(void **state)
{
    (void)state;
    char *text = export_training(NULL);
    expect(text,
           "\"ts\":2.200,\"dur\":0.500,\"name\":\"aten::linear\",\"cat\":\"cpu_op\",\"args\":{"
           "\"External id\":4,\"Record function id\":0,\"Ev Idx\":3,\"Sequence number\":7,"
           "\"Input Dims\":[[4, 8], [[2], []]]}}",
           true);
    expect(text,
           "\"name\":\"aten::addmm\",\"cat\":\"cpu_op\",\"args\":{\"External id\":5,"
           "\"Record function id\":0,\"Ev Idx\":4}}",
           true); /* a list that is cut off is none */
    test_free(text);
}

static void what_is_no_list_of_shapes_is_left_out(void **state)
{
    static const char *const bad[] = {
        "sizes = [[4 8]]", "sizes = [,]",    "sizes = [[4,]]]", "sizes = 4", "sizes = []]",
        "sizes = [[4]",    "sizes = [[4]],", "sizes = ",        "size",      "sizes = [[4,,8]]",
    };
    (void)state;
    const char *const usual = addmm_payload;
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++) {
        addmm_payload = bad[i];
        char *text = export_training(NULL);
        expect(text,
               "\"name\":\"aten::addmm\",\"cat\":\"cpu_op\",\"args\":{\"External id\":5,"
               "\"Record function id\":0,\"Ev Idx\":4}}",
               true);
        test_free(text);
    }
    addmm_payload = "sizes = []";
    char *text = export_training(NULL);
    expect(text, "\"Ev Idx\":4,\"Input Dims\":[]}}", true);
    test_free(text);
    addmm_payload = usual;
}

static void all_else_has_the_names_that_torch_would_give(void **state)
{
    (void)state;
    char *text = export_training(NULL);
    expect(text, "\"name\":\"marey:forward\",\"cat\":\"user_annotation\"", true);
    expect(text, "\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#8\"", true);
    expect(text, "\"name\":\"my \\\"own\\\"\",\"cat\":\"user_annotation\"", true);
    expect(text, "\"ts\":2.950,\"dur\":0.150,\"name\":\"gloo:all_reduce\"", true);
    expect(text, "\"schemaVersion\":1", true);
    expect(text, "\"distributedInfo\":{\"rank\": 0", true);
    test_free(text);
}

static void a_call_of_cuda_is_tied_to_its_operator_and_its_kernel(void **state)
{
    (void)state;
    char *text = export_training(NULL);
    expect(text,
           "\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_runtime\",\"args\":{"
           "\"correlation\":99,\"External id\":5}}",
           true);
    expect(text,
           "\"name\":\"gemm\",\"cat\":\"kernel\",\"args\":{\"device\":0,\"stream\":7,"
           "\"correlation\":99}}",
           true);
    expect(text, "\"ph\":\"s\"", true);
    test_free(text);
}

static void a_window_has_what_lies_in_it(void **state)
{
    (void)state;
    char *text = export_training(&(struct marey_export_options){.from_ns = 2100, .until_ns = 2800});
    expect(text, "marey:forward", true);
    expect(text, "aten::linear", true);
    expect(text, "\"cat\":\"kernel\"", true); /* it began inside */
    expect(text, "ProfilerStep", false);
    expect(text, "my", false);
    expect(text, "all_reduce", false);
    test_free(text);
    text = export_training(&(struct marey_export_options){.from_ns = 2101, .until_ns = 2699});
    expect(text, "marey:forward", false);
    expect(text, "aten::linear", false);
    expect(text, "aten::addmm", true);
    test_free(text);
}

static void work_that_runs_behind_the_window_is_known_by_its_launch(void **state)
{
    (void)state;
    struct marey_export_options window = {.from_ns = 2100, .until_ns = 2440};
    char *text = export_training(&window);
    expect(text, "\"cat\":\"kernel\"", false);
    test_free(text);
    window.launched_before = 100;
    text = export_training(&window);
    expect(text, "\"cat\":\"kernel\"", true);
    expect(text, "aten::linear", false);
    test_free(text);
    window.launched_before = 99;
    text = export_training(&window);
    expect(text, "\"cat\":\"kernel\"", false);
    test_free(text);
    window.launched_before = (uint64_t)1 << 32; /* of a later session */
    window.from_ns = 2451;
    text = export_training(&window);
    expect(text, "\"cat\":\"kernel\"", false);
    test_free(text);
    window.from_ns = 2450;
    text = export_training(&window);
    expect(text, "\"cat\":\"kernel\"", true);
    test_free(text);
}

static void what_is_said_about_it_is_in_the_file(void **state)
{
    (void)state;
    char *text = export_training(&(struct marey_export_options){.about = "{\"step\": 9}"});
    expect(text, "\"marey\":{\"step\": 9},", true);
    test_free(text);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct log_maker *log = test_calloc(1, sizeof *log);
    marey_recording *recording = NULL;
    put_training(log);
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_export(&recording, 1, "kineto",
                                  &(struct marey_export_options){.about = "{\"step\":"}, -1),
                     MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "not a JSON object"));
    assert_int_equal(
        marey_export(&recording, 1, "csv", &(struct marey_export_options){.from_ns = 1}, -1),
        MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "kineto"));
    log_close(recording);
    log_maker_fini(log);
    test_free(log);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    struct log_maker *log = test_calloc(1, sizeof *log);
    marey_recording *recording = NULL;
    put_training(log);
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const int fd = open("/dev/null", O_WRONLY);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status == MAREY_ENOMEM && nth < 10000; nth++) {
        marey__alloc_fail_nth(nth);
        status = marey_export(&recording, 1, "kineto", NULL, fd);
    }
    marey__alloc_fail_nth(0);
    assert_int_equal(status, MAREY_OK);
    close(fd);
    log_close(recording);
    log_maker_fini(log);
    test_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_have_shapes_and_numbers),
        cmocka_unit_test(what_is_no_list_of_shapes_is_left_out),
        cmocka_unit_test(all_else_has_the_names_that_torch_would_give),
        cmocka_unit_test(a_call_of_cuda_is_tied_to_its_operator_and_its_kernel),
        cmocka_unit_test(a_window_has_what_lies_in_it),
        cmocka_unit_test(work_that_runs_behind_the_window_is_known_by_its_launch),
        cmocka_unit_test(what_is_said_about_it_is_in_the_file),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
