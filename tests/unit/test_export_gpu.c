/* Exports of GPU work, launches, communication, arguments and flows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include <marey/report.h>

enum {
    STEP = 1,
    LAUNCH = 2,
    GEMM = 3,
    COPY = 4,
    NOTE = 5,
    GROUP = 6,
    FLOW = 7,
    BARE = 8,
    SHAPE = 9,
    BROKEN = 10
};

static void put_process(struct log_maker *log, const char *pid, const char *source)
{
    const char *const about[] = {
        "pid",   pid,         "host",    "box",  "command",    "python train.py",
        "rank",  "3",         "backend", "nccl", "world_size", "8",
        "clock", "monotonic", "source",  source, NULL};
    log_put_pairs(log, MAREY__BLOCK_LOG, about);
    log_put_moment(log, 0, 1000);
    log_put_moment(log, 1u << 30, 1000 + (1u << 30));
    log_put_site_of(log, STEP, "step", "user_annotation", "");
    log_put_site_of(log, LAUNCH, "cudaLaunchKernel", "cuda_runtime", "");
    log_put_site_of(log, GEMM, "gemm<\"x\">", "kernel", "");
    log_put_site_of(log, COPY, "Memcpy HtoD", "gpu_memcpy", "");
    log_put_site_of(log, NOTE, "step", "gpu_user_annotation", "");
    log_put_site_of(log, GROUP, "default_pg", "", "[0, 1]");
    log_put_site_of(log, FLOW, "fwdbwd", "fwdbwd", "");
    log_put_site_of(log, BARE, "bare", "", "");
    log_put_site_of(log, SHAPE, "{\"grid\":[8,1,1],\"registers per thread\":32}", "details", "");
    log_put_site_of(log, BROKEN, "{\"grid\":[8", "details", "");
    log_put_lane(log, 0, 42, "main");
    log_put_stream(log, 1, 1, 7, "");
    log_put_stream(log, 2, 1, 20, "comms");
}

static int setup(void **state)
{
    struct log_maker *log = *state = test_calloc(1, sizeof *log);
    put_process(log, "4711", "");
    return 0;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    test_free(*state);
    return 0;
}

static void put_thread(struct log_maker *log)
{
    log_begin(log, 100, STEP);
    log_arguments(log, 100, "{\"External id\": 5, \"dims\": [[2, 3], []]}");
    log_begin(log, 110, LAUNCH);
    log_launch(log, 110, 77);
    log_flow(log, 110, FLOW, 9, MAREY_FLOW_BEGIN);
    log_end(log, 120, LAUNCH);
    log_end(log, 150, STEP);
    log_put_words(log, 0, 0);
}

/* An annotation around two kernels that follow one another, then work that overlaps. */
static void put_streams(struct log_maker *log)
{
    const struct marey_communication reduce = {.group = GROUP,
                                               .what = MAREY_COLLECTIVE_ALL_REDUCE,
                                               .bytes_in = 4096,
                                               .bytes_out = 4096,
                                               .sequence = 12,
                                               .group_size = 2,
                                               .peer = -1};
    log_work(log, 130, NOTE, MAREY_WORK_ANNOTATION, 100, 0, 0);
    log_work(log, 130, GEMM, MAREY_WORK_KERNEL, 40, 77, 0);
    log_arguments(log, 130, "{\"grid\": [1, 2, 3], \"correlation\": 77}");
    log_work(log, 170, GEMM, MAREY_WORK_KERNEL, 60, 78, 0);
    log_work(log, 200, COPY, MAREY_WORK_COPY, 60, 79, 512);
    log_put_words(log, 1, 0);
    log_work(log, 140, BARE, MAREY_WORK_KERNEL, 0, 80, 0);
    log_communication(log, 140, &reduce);
    log_flow(log, 140, FLOW, 9, MAREY_FLOW_END);
    log_put_words(log, 2, 0);
}

/* Work that tells by its details' site how it was launched, and memory that was taken. */
static void put_launched(struct log_maker *log)
{
    static const struct {
        uint32_t site, kind, details;
        uint64_t bytes;
    } works[] = {{GEMM, MAREY_WORK_KERNEL, SHAPE, 0},
                 {GEMM, MAREY_WORK_KERNEL, SHAPE, 0},
                 {GEMM, MAREY_WORK_KERNEL, BROKEN, 0},
                 {BARE, MAREY_WORK_MEMORY, 0, 4096}};
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        const uint64_t words[] = {works[i].site | (uint64_t)works[i].kind << 20 |
                                      (uint64_t)works[i].details << 28,
                                  works[i].bytes != 0 ? 0 : 40, 77, works[i].bytes};
        log_record(log, 130 + 50 * i, MAREY_RECORD_GPU, words, 4);
    }
    log_put_words(log, 1, 0);
}

/* ---- exporting ---- */

struct exported {
    char *text; /* NUL-terminated besides */
    size_t len;
};

static struct exported export_all(struct log_maker *const *logs, size_t n, const char *format,
                                  const char *filter)
{
    const struct marey_export_options options = {.filter = filter};
    marey_recording *recordings[4] = {NULL};
    struct exported out = {0};
    const int fd = memfd_create("export", MFD_CLOEXEC);
    for (size_t i = 0; i < n; i++) {
        log_put_end(logs[i], "stop");
        assert_int_equal(log_open(logs[i], &recordings[i]), MAREY_OK);
    }
    assert_int_equal(marey_export(recordings, n, format, &options, fd), MAREY_OK);
    for (size_t i = 0; i < n; i++)
        log_close(recordings[i]);
    out.len = (size_t)lseek(fd, 0, SEEK_CUR);
    out.text = test_calloc(out.len + 1, 1);
    assert_int_equal(pread(fd, out.text, out.len, 0), (ssize_t)out.len);
    close(fd);
    return out;
}

static struct exported export_log(struct log_maker *log, const char *format)
{
    return export_all(&log, 1, format, NULL);
}

static void expect_in(const struct exported *out, const char *text)
{
    if (strstr(out->text, text) == NULL)
        fail_msg("no %s in\n%s", text, out->text);
}

static void expect_not_in(const struct exported *out, const char *text)
{
    if (strstr(out->text, text) != NULL)
        fail_msg("%s in\n%s", text, out->text);
}

static size_t count_of(const struct exported *out, const char *text)
{
    size_t n = 0;
    for (const char *at = out->text; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

/* ---- Chrome ---- */

static void chrome_has_streams_as_kineto_does(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_log(log, "chrome");
    expect_in(&out,
              "\"schemaVersion\":1,\n\"distributedInfo\":{\"backend\": \"nccl\", \"rank\": 3, "
              "\"world_size\": 8},\n\"baseTimeNanoseconds\":");
    expect_in(&out, "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_labels\",\"args\":{"
                    "\"labels\":\"GPU 1\"}}");
    expect_in(&out, "{\"ph\":\"M\",\"pid\":1,\"tid\":7,\"name\":\"thread_name\",\"args\":{\"name\":"
                    "\"stream 7\"}}");
    expect_in(&out, "{\"ph\":\"M\",\"pid\":1,\"tid\":20,\"name\":\"thread_name\",\"args\":{"
                    "\"name\":\"comms\"}}");
    /* What was given stays as it was; where nothing was, it is made. */
    expect_in(
        &out,
        "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"ts\":0.130,\"dur\":0.040,\"name\":\"gemm<\\\"x\\\">\","
        "\"cat\":\"kernel\",\"args\":{\"grid\": [1, 2, 3], \"correlation\": 77}}");
    expect_in(&out, "\"ts\":0.200,\"dur\":0.060,\"name\":\"Memcpy HtoD\",\"cat\":\"gpu_memcpy\","
                    "\"args\":{\"device\":1,\"stream\":7,\"correlation\":79,\"bytes\":512}}");
    expect_in(&out, "\"cat\":\"gpu_user_annotation\",\"args\":{\"device\":1,\"stream\":7}}");
    expect_in(
        &out,
        "\"tid\":20,\"ts\":0.140,\"dur\":0.000,\"name\":\"bare\",\"cat\":\"kernel\",\"args\":{"
        "\"device\":1,\"stream\":20,\"correlation\":80,\"Collective name\":\"all_reduce\","
        "\"dtype\":\"Byte\",\"In msg nelems\":4096,\"Out msg nelems\":4096,\"Group size\":2,"
        "\"Process Group Name\":\"default_pg\",\"Process Group Ranks\":\"[0, 1]\",\"Seq\":12}}");
    assert_int_equal(count_of(&out, "\"name\":\"process_labels\",\"args\":{\"labels\":\"GPU 1\""), 1);
    test_free(out.text);
}

static void chrome_keeps_arguments_launches_and_flows(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_log(log, "chrome");
    expect_in(&out, "\"name\":\"step\",\"cat\":\"user_annotation\",\"args\":{\"External id\": 5, "
                    "\"dims\": [[2, 3], []]}}");
    expect_in(
        &out,
        "\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_runtime\",\"args\":{\"correlation\":77}}");
    expect_in(&out, "{\"ph\":\"s\",\"pid\":4711,\"tid\":42,\"ts\":0.110,\"id\":77,\"cat\":\"ac2g\","
                    "\"name\":\"ac2g\"}");
    expect_in(&out, "{\"ph\":\"f\",\"pid\":1,\"tid\":7,\"ts\":0.130,\"id\":77,\"cat\":\"ac2g\","
                    "\"name\":\"ac2g\",\"bp\":\"e\"}");
    expect_in(&out, "{\"ph\":\"s\",\"pid\":4711,\"tid\":42,\"ts\":0.110,\"id\":9,\"name\":"
                    "\"fwdbwd\",\"cat\":\"fwdbwd\"}");
    expect_in(&out, "{\"ph\":\"f\",\"pid\":1,\"tid\":20,\"ts\":0.140,\"id\":9,\"name\":\"fwdbwd\","
                    "\"cat\":\"fwdbwd\",\"bp\":\"e\"}");
    test_free(out.text);
}

static void chrome_has_the_details_that_work_shares(void **state)
{
    struct log_maker *log = *state;
    put_launched(log);
    struct exported out = export_log(log, "chrome");
    assert_int_equal(count_of(&out, "\"args\":{\"grid\":[8,1,1],\"registers per thread\":32,"
                                    "\"device\":1,\"stream\":7,\"correlation\":77}}"),
                     2);
    expect_in(&out, "\"args\":{\"arguments\":\"{\\\"grid\\\":[8\",\"device\":1,\"stream\":7,"
                    "\"correlation\":77}}");
    expect_in(&out, "\"dur\":0.000,\"name\":\"bare\",\"cat\":\"gpu_memory\",\"args\":{\"device\":1,"
                    "\"stream\":7,\"correlation\":77,\"bytes\":4096}}");
    test_free(out.text);
}

/* Whatever bytes stand where a JSON object should, the file stays one that can be read. */
static void chrome_quotes_arguments_that_are_not_sound(void **state)
{
    struct log_maker *log = *state;
    static const char *const broken[] = {"{\"a\": [1}",       "{\"a\": 1} {", "[1]",      "",
                                         "{\"a\": \"\x01\"}", "{\"a\": 1,}",  "{\"a\" 1}"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        log_begin(log, 100 + 10 * i, STEP);
        log_arguments(log, 100 + 10 * i, broken[i]);
        log_end(log, 105 + 10 * i, STEP);
    }
    log_begin(log, 300, STEP);
    log_arguments(log, 300, "{ \"a\": NaN, \"b\": [-Infinity, \"NaN\"], \"c\": \"\xff\"}");
    log_end(log, 310, STEP);
    log_begin(log, 320, STEP);
    log_arguments(log, 320, " {\n }");
    log_launch(log, 320, 5);
    log_end(log, 330, STEP);
    log_put_words(log, 0, 0);
    struct exported out = export_log(log, "chrome");
    assert_int_equal(count_of(&out, "\"args\":{\"arguments\":\""), 7);
    expect_in(&out, "\"args\":{\"arguments\":\"{\\\"a\\\": [1}\"}}");
    expect_in(
        &out,
        "\"args\":{\"a\": \"NaN\", \"b\": [\"-Infinity\", \"NaN\"], \"c\": \"\xef\xbf\xbd\"}}");
    expect_in(&out, "\"args\":{\"correlation\":5}}");
    test_free(out.text);
}

/* Records about a range may come while ranges within it have been, and after some were taken out of the middle. */
static void records_may_come_late(void **state)
{
    struct log_maker *log = *state;
    log_begin(log, 100, STEP);
    log_arguments(log, 100, "{\"early\": 1}");
    log_begin(log, 110, BARE);
    log_arguments(log, 110, "{\"middle\": 1}");
    log_begin(log, 120, LAUNCH);
    log_arguments(log, 120, "{\"top\": 1}");
    log_end_of(log, 130, BARE);
    log_end(log, 140, LAUNCH);
    log_launch(log, 145, 88);
    log_end(log, 150, STEP);
    log_put_words(log, 0, 0);
    struct exported out = export_log(log, "chrome");
    expect_in(&out, "\"name\":\"step\",\"cat\":\"user_annotation\",\"args\":{\"early\": "
                    "1,\"correlation\":88}}");
    expect_in(&out, "\"args\":{\"top\": 1}}");
    test_free(out.text);
}

/* Two processes with the same device, and one whose pid is a device's number. */
static void devices_of_several_processes_stay_apart(void **state)
{
    struct log_maker *other = test_calloc(1, sizeof *other);
    put_process(other, "4712", "");
    put_streams(*state);
    put_streams(other);
    struct exported out = export_all((struct log_maker *[]){*state, other}, 2, "chrome", NULL);
    expect_in(&out, "\"pid\":5000001,\"tid\":7,");
    expect_in(&out, "\"pid\":5065537,\"tid\":7,");
    expect_in(&out,
              "\"args\":{\"grid\": [1, 2, 3], \"correlation\": 77,\"device\":1,\"stream\":7}}");
    expect_not_in(&out, "\"distributedInfo\"");
    test_free(out.text);
    log_maker_fini(other);

    *other = (struct log_maker){0};
    put_process(other, "1", "");
    put_streams(other);
    out = export_log(other, "chrome");
    expect_in(&out, "\"pid\":5000001,\"tid\":7,");
    test_free(out.text);
    log_maker_fini(other);
    test_free(other);
}

static void a_recording_without_gpus_has_no_head_of_kineto(void **state)
{
    struct log_maker *log = test_calloc(1, sizeof *log);
    (void)state;
    log_put_preamble(log);
    log_begin(log, 10, 1);
    log_end(log, 20, 1);
    log_put_words(log, 0, 0);
    struct exported out = export_log(log, "chrome");
    expect_not_in(&out, "baseTimeNanoseconds");
    expect_not_in(&out, "schemaVersion");
    test_free(out.text);
    log_maker_fini(log);
    test_free(log);
}

/* ---- others ---- */

static void csv_has_lines_of_streams(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_log(log, "csv");
    expect_in(&out,
              "\nkernel,0,3,4711,,,\"gemm<\"\"x\"\">\",kernel,1130,40,,\"{\"\"grid\"\": [1, 2, 3], "
              "\"\"correlation\"\": 77}\",,1,7,77,\n");
    expect_in(&out, "\ncopy,0,3,4711,,,Memcpy HtoD,gpu_memcpy,1200,60,,,,1,7,79,512\n");
    expect_in(&out, "\nannotation,0,3,4711,,,step,gpu_user_annotation,1130,100,,,,1,7,,\n");
    expect_in(&out, "\nrange,0,3,4711,42,main,cudaLaunchKernel,cuda_runtime,1110,10,1,,,,,77,\n");
    expect_in(&out, "\nflow,0,3,4711,42,main,fwdbwd,begin,1110,,,9,,,,,\n");
    expect_in(&out, "\nflow,0,3,4711,,,fwdbwd,end,1140,,,9,,1,20,,\n");
    test_free(out.text);
}

static void csv_has_the_details_that_work_shares(void **state)
{
    struct log_maker *log = *state;
    put_launched(log);
    struct exported out = export_log(log, "csv");
    assert_int_equal(
        count_of(&out, "\"{\"\"grid\"\":[8,1,1],\"\"registers per thread\"\":32}\",,1,7,77,\n"), 2);
    expect_in(&out, "\nmemory,0,3,4711,,,bare,,1280,0,,,,1,7,77,4096\n");
    test_free(out.text);
}

static void a_filter_chooses_work(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_all(&log, 1, "csv", "Memcpy*");
    assert_int_equal(count_of(&out, "\n"), 2);
    expect_in(&out, "\ncopy,");
    test_free(out.text);
}

/* The second kernel ends with the annotation around it; the copy outlasts both, and is told. */
static void speedscope_has_streams_that_nest(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_log(log, "speedscope");
    expect_in(&out, "\"name\":\"rank 3 train.py, pid 4711, main 42\",\"unit\"");
    expect_in(
        &out,
        "{\"type\":\"O\",\"frame\":0,\"at\":130},\n{\"type\":\"O\",\"frame\":2,\"at\":130},\n"
        "{\"type\":\"C\",\"frame\":2,\"at\":170},\n{\"type\":\"O\",\"frame\":2,\"at\":170},\n"
        "{\"type\":\"C\",\"frame\":2,\"at\":230},\n{\"type\":\"C\",\"frame\":0,\"at\":230}\n],"
        "\"endValue\":260,\"name\":\"rank 3 train.py, pid 4711, GPU 1 stream 7 (1 overlapping left "
        "out)\"}");
    expect_in(&out, "\"endValue\":140,\"name\":\"rank 3 train.py, pid 4711, GPU 1 stream 20\"}");
    test_free(out.text);
}

static void sums_leave_streams_out(void **state)
{
    struct log_maker *log = *state;
    put_thread(log);
    put_streams(log);
    struct exported out = export_log(log, "collapsed");
    assert_string_equal(out.text, "step 40\nstep;cudaLaunchKernel 10\n");
    test_free(out.text);
}

/* Records about the last work of a block may stand in the next one. */
static void records_may_stand_in_the_next_block(void **state)
{
    struct log_maker *log = *state;
    log_work(log, 130, BARE, MAREY_WORK_KERNEL, 40, 77, 0);
    log_put_words(log, 1, 0);
    log->base_tick = 100;
    log_arguments(log, 130, "{\"late\": 1}");
    log_flow(log, 130, FLOW, 9, MAREY_FLOW_END);
    log_flow(log, 150, FLOW, 10, MAREY_FLOW_END); /* at another moment: not the work's own */
    log_put_words(log, 1, 1);
    struct exported out = export_log(log, "chrome");
    expect_in(&out,
              "\"name\":\"bare\",\"cat\":\"kernel\",\"args\":{\"late\": 1,\"correlation\":77}}");
    expect_in(&out, "\"ts\":0.130,\"id\":9,");
    expect_in(&out, "\"ts\":0.150,\"id\":10,");
    test_free(out.text);
}

static void any_allocation_may_fail(void **state)
{
    static const char *const formats[] = {"perfetto",   "chrome",       "csv",
                                          "speedscope", "perfetto-tar", "perfetto-gpu"};
    struct log_maker *log = *state;
    put_thread(log);
    log_begin(log, 200, STEP);
    log_begin(log, 200, BARE); /* one that begins and ends with the one around it */
    log_arguments(log, 200, "{\"a\": 1}");
    log_end(log, 210, BARE);
    log_end(log, 210, STEP);
    log_put_words(log, 0, 1);
    put_streams(log);
    put_launched(log);
    log_put_end(log, "stop");
    marey_recording *recording = NULL;
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status != MAREY_OK; nth++) {
            const int fd = memfd_create("export", MFD_CLOEXEC);
            marey__alloc_fail_nth(nth);
            status = marey_export(&recording, 1, formats[f], NULL, fd);
            marey__alloc_fail_nth(0);
            assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
            close(fd);
            assert_true(nth < 10000);
        }
    }
    log_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(chrome_has_streams_as_kineto_does),
        TEST(chrome_keeps_arguments_launches_and_flows),
        TEST(chrome_has_the_details_that_work_shares),
        TEST(csv_has_the_details_that_work_shares),
        TEST(chrome_quotes_arguments_that_are_not_sound),
        TEST(records_may_come_late),
        TEST(devices_of_several_processes_stay_apart),
        TEST(a_recording_without_gpus_has_no_head_of_kineto),
        TEST(csv_has_lines_of_streams),
        TEST(a_filter_chooses_work),
        TEST(speedscope_has_streams_that_nest),
        TEST(sums_leave_streams_out),
        TEST(records_may_stand_in_the_next_block),
        TEST(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
