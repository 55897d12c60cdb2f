/* Kineto and Chrome traces, read as recordings: the result of each kind of event, and of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/internal.h"
#include "event_list.h"
#include "importing.h"

/* ---- a trace as lines of text ---- */

/* Free it with free. */
static char *lines_of(marey_recording *recording)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(list_events(recording, out), 0);
    fclose(out);
    marey_recording_close(recording);
    return text;
}

static char *lines(const char *json)
{
    return lines_of(import_text(&marey__import_chrome, json));
}

/* Each line of `wanted` is a line of the trace; blanks stand for tabs. */
static void expect(const char *json, const char *wanted)
{
    char *got = lines(json);
    for (char *c = got; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
    while (*wanted != '\0') {
        const size_t len = strcspn(wanted, "\n");
        char line[1024];
        snprintf(line, sizeof line, "\n%.*s\n", (int)len, wanted);
        char *around = malloc(strlen(got) + 2);
        sprintf(around, "\n%s", got);
        if (strstr(around, line) == NULL)
            fail_msg("%s\nhas no line%sbut\n%s", json, line, got);
        free(around);
        wanted += len + (wanted[len] == '\n');
    }
    free(got);
}

static void expect_none(const char *json, const char *part)
{
    char *got = lines(json);
    if (strstr(got, part) != NULL)
        fail_msg("%s\nhas\n%s", json, got);
    free(got);
}

static void expect_failure(const char *json, const char *part)
{
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_chrome, json, strlen(json), 0, &recording),
                     MAREY_EFORMAT);
    if (strstr(marey_last_error(), part) == NULL)
        fail_msg("%s\nsays %s", json, marey_last_error());
}

#define EVENTS(...) "{\"traceEvents\": [" __VA_ARGS__ "]}"
#define KINETO(...) "{\"schemaVersion\": 1, \"traceEvents\": [" __VA_ARGS__ "]}"

/* A trace with everything in it, as Kineto writes it. */
static const char whole_trace[] =
    "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"NVIDIA "
    "A100\", \"numSms\": 108},\n"
    "    {\"id\": 1, \"name\": \"NVIDIA H100\"}\n  ],\n"
    "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, \"pg_config\": "
    "[{\"ranks\": [0, 1]}]},\n"
    "  \"traceEvents\": [\n  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
    "\"ProfilerStep#7\", \"pid\": 100, \"tid\": 100,\n"
    "    \"ts\": 4458676983543.183, \"dur\": 900.5,\n    \"args\": {\"External id\": 1, \"Ev "
    "Idx\": 0}\n  },\n"
    "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\\n\\u00e9\", \"pid\": 100, "
    "\"tid\": 100,\n"
    "    \"ts\": 4458676983550.000, \"dur\": 20.125,\n"
    "    \"args\": {\"Input Dims\": [[8, 64], [\"]\"]], \"Input type\": [\"float\", \"\"]}\n  },\n"
    "  {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 100, "
    "\"tid\": 100,"
    " \"ts\": 4458676983552.5, \"dur\": 3.000, \"args\": {\"cbid\": 211, \"correlation\": 42}},\n"
    "  {\"ph\": \"s\", \"id\": 42, \"pid\": 100, \"tid\": 100, \"ts\": 4458676983552.5, \"cat\": "
    "\"ac2g\", \"name\": \"ac2g\"},\n"
    "  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_f32\", "
    "\"pid\": 0, \"tid\": 20,"
    " \"ts\": 4458676983560.001, \"dur\": 123.456, \"args\": {\"External id\": 2, \"queued\": 0, "
    "\"device\": 0,"
    " \"context\": 1, \"stream\": 20, \"correlation\": 42, \"grid\": [8, 16, 5], \"Collective "
    "name\": \"allreduce\","
    " \"In msg nelems\": 1024, \"Out msg nelems\": 1024, \"Group size\": 8, \"dtype\": "
    "\"BFloat16\","
    " \"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\","
    " \"Process Group Ranks\": \"[0, 1, 2]\", \"Seq\": 17}},\n"
    "  {\"ph\": \"f\", \"id\": 42, \"pid\": 0, \"tid\": 20, \"ts\": 4458676983560.001, \"cat\": "
    "\"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"},\n"
    "  {\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": 100, \"tid\": 0, \"args\": "
    "{\"name\": \"python3\"}},\n"
    "  {\"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 1, \"pid\": 0, \"tid\": 0, \"args\": "
    "{\"labels\": \"GPU 0\"}},\n"
    "  {\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": 100, \"tid\": 100, \"args\": "
    "{\"name\": \"thread 100 (python3)\"}},\n"
    "  {\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": 0, \"tid\": 20, \"args\": "
    "{\"name\": \"stream 20 \"}},\n"
    "  {\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": 5, \"tid\": 9, \"args\": "
    "{\"name\": \"nobody\"}},\n"
    "  {\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": 4458676983000, \"dur\": 5000, \"pid\": "
    "\"Spans\", \"tid\": \"PyTorch Profiler\","
    " \"name\": \"PyTorch Profiler (0)\", \"args\": {\"Op count\": 0}},\n"
    "  {\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": "
    "\"\", \"ts\": 4458676988000}\n"
    "  ],\"traceName\": \"t.json\", \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": "
    "1719853884000000000\n}\n";

static void a_kineto_trace_is_read_whole(void **state)
{
    (void)state;
    expect(
        whole_trace,
        "process 100 3 8 python3  nccl NVIDIA A100 kineto\n"
        "thread 100 100 thread 100 (python3)\n"
        "stream 100 0 20 stream 20 \n"
        "thread 100 1073741825 PyTorch Profiler\n"
        "range 100 100 1724312560983543183 1724312560984443683 ProfilerStep#7 user_annotation :0 \n"
        "iteration_begin 100 100 1724312560983543183 7\n"
        "iteration_end 100 100 1724312560984443683 7\n"
        "range 100 100 1724312560983552500 1724312560983555500 cudaLaunchKernel cuda_runtime :0 "
        "launch=42\n"
        "work 100 0 20 1724312560983560001 1724312560983683457 ncclDevKernel_AllReduce_Sum_f32 "
        "kernel 1 42 0 "
        "comm=1:0:[0, 1, 2]:2048:2048:17:8:-1\n"
        "mark 100 1073741825 1724312560983000000 PyTorch Profiler (0) Trace\n"
        "mark 100 1073741826 1724312560988000000 Record Window End ");
    expect_none(whole_trace, "ac2g");
    expect_none(whole_trace, "nobody");
    expect_none(whole_trace, "note");
    char *got = lines(whole_trace);
    assert_non_null(
        strstr(got, "\t1724312560983550000\t1724312560983570125\taten::add\n\xc3\xa9\tcpu_op\t"));
    free(got);
}

/* Wherever pieces end, the same comes out. */
static void a_trace_may_be_cut_anywhere(void **state)
{
    (void)state;
    char *whole = lines(whole_trace);
    for (size_t cut = 1; cut < sizeof whole_trace; cut++) {
        marey_recording *recording = NULL;
        assert_int_equal(import_bytes(&marey__import_chrome, whole_trace, sizeof whole_trace - 1,
                                      cut, &recording),
                         MAREY_OK);
        char *got = lines_of(recording);
        assert_string_equal(got, whole);
        free(got);
    }
    free(whole);
}

/* ---- times ---- */

static void times_are_taken_from_the_digits(void **state)
{
    (void)state;
#define AT(ts, dur)                                                                                \
    EVENTS("{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 2, \"ts\": " ts                  \
           ", \"dur\": " dur "}")
    expect(AT("1712195495505582.988", "0.001"),
           "range 1 2 1712195495505582988 1712195495505582989 a  :0 ");
    expect(AT("1712195495505582.989", "10"),
           "range 1 2 1712195495505582989 1712195495505592989 a  :0 ");
    expect(AT("1661203462598738", "19"),
           "range 1 2 1661203462598738000 1661203462598757000 a  :0 ");
    expect(AT("\"1.5\"", "\"2.25\""), "range 1 2 1500 3750 a  :0 ");
    expect(AT("1.7e3", "25E-1"), "range 1 2 1700000 1702500 a  :0 ");
    expect(AT("0.0004", "0.0005"), "range 1 2 0 1 a  :0 ");
    expect(AT("1.23456", "1.23449"), "range 1 2 1235 2469 a  :0 ");
}

static void the_base_may_stand_anywhere(void **state)
{
    (void)state;
#define EVENT_A                                                                                    \
    "{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 2, \"ts\": 1.001, \"dur\": 1}"
    static const char line[] = "range 1 2 1719853884000001001 1719853884000002001 a  :0 ";
    expect("{\"baseTimeNanoseconds\": 1719853884000000000, \"traceEvents\": [" EVENT_A "]}", line);
    expect("{\"traceEvents\": [" EVENT_A "], \"baseTimeNanoseconds\": 1719853884000000000}", line);
    expect("{\"traceEvents\": [" EVENT_A "], \"baseTimeNanoseconds\": \"soon\"}",
           "range 1 2 1001 2001 a  :0 ");
}

static void odd_times_are_counted_and_reported(void **state)
{
    (void)state;
#define GOOD "{\"ph\": \"i\", \"name\": \"good\", \"pid\": 1, \"tid\": 1, \"ts\": 5}"
#define ONE(fields) "{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1" fields "},"
    expect(EVENTS(ONE(", \"ts\": 1, \"dur\": -5") GOOD),
           "note 1 1 events of the trace have a negative duration: taken as 0.\nrange 1 1 1000 "
           "1000 a  :0 ");
    expect(
        EVENTS(ONE(", \"ts\": 1") ONE(", \"ts\": 2, \"dur\": null") ONE(", \"ts\": 3, \"dur\": NaN")
                   GOOD),
        "note 1 3 events of the trace have no duration: taken as 0.\nrange 1 1 3000 3000 a  :0 ");
    expect(EVENTS(ONE("") ONE(", \"ts\": NaN, \"dur\": 1") ONE(", \"ts\": \"x\", \"dur\": 1")
                      ONE(", \"ts\": [1], \"dur\": 1") ONE(", \"ts\": 1e300, \"dur\": 1") GOOD),
           "note 1 5 events of the trace have no time: left out.");
    expect(EVENTS(ONE(", \"ts\": -1, \"dur\": 1") GOOD),
           "note 1 1 events of the trace have a negative time: left out.");
    expect(EVENTS("{\"ph\": \"P\", \"ts\": 1}, {\"ph\": \"T\", \"ts\": 1}, {\"ts\": 1}, {\"ph\": "
                  "5, \"ts\": 1}," GOOD),
           "note 1 4 events have an unsupported phase (5, P, T): left out.");
    expect(EVENTS("1, \"a\", [[{}]], null," GOOD),
           "note 1 4 entries of the trace are not events: left out.");
}

/* ---- forms ---- */

static void a_bare_list_is_a_trace_too(void **state)
{
    (void)state;
    static const char line[] = "range 1 2 1001 2001 a  :0 ";
    expect("[" EVENT_A "]", line);
    expect("[" EVENT_A ",]", line);
    expect("[" EVENT_A ",\n", line); /* a program that died */
    expect("[" EVENT_A, line);
    expect("\xef\xbb\xbf \n[" EVENT_A "]", line);
    expect_none("[" EVENT_A ",\n", "note");
    expect("[" EVENT_A ", {\"ph\": \"X\", \"na",
           "range 1 2 1001 2001 a  :0 \n"
           "note 1 a.file is cut off: it ends in the middle of an event, at byte 70. What came "
           "before is here: 1 "
           "events.");
}

static void keys_come_in_any_order_and_the_last_one_counts(void **state)
{
    (void)state;
    expect(EVENTS("{\"args\": {\"correlation\": 7, \"stream\": 3, \"device\": 1}, \"dur\": 1, "
                  "\"ts\": 1.001, \"tid\": 2, "
                  "\"pid\": 1, \"name\": \"k\", \"cat\": \"kernel\", \"ph\": \"X\"}"),
           "work 0 1 3 1001 2001 k kernel 1 7 0 ");
    expect(EVENTS("{\"ph\": \"B\", \"ph\": \"X\", \"name\": \"x\", \"ts\": 9, \"pid\": 3, \"tid\": "
                  "2, \"dur\": 5, \"ts\": "
                  "1.001, \"name\": \"a\", \"dur\": 1, \"pid\": 1, \"unknown\": {\"ts\": 5, \"x\": "
                  "[\"}\"]}}"),
           "range 1 2 1001 2001 a  :0 ");
    expect("{\"traceEvents\": [" EVENT_A
           "], \"distributedInfo\": {\"world_size\": 2, \"rank\": 1, \"rank\": 0}}",
           "process 1 0 2 a.file    kineto");
}

static void blanks_and_commas_may_be_anywhere(void **state)
{
    (void)state;
    expect("{ \"traceEvents\" : [ , {\"ph\" : \"X\" ,, "
           "\"name\":\"a\",\"pid\":1,\"tid\":2,\n\t\"ts\"  :\n1.001 , \"dur\":1,"
           " \"args\":{},}\r\n,, ] , }",
           "range 1 2 1001 2001 a  :0 ");
}

/* ---- GPU work ---- */

static void work_of_gpus_is_known_by_its_category(void **state)
{
    (void)state;
#define WORK(cat, more)                                                                            \
    "{\"ph\": \"X\", \"cat\": \"" cat                                                              \
    "\", \"name\": \"k\", \"pid\": 2, \"tid\": 7, \"ts\": 1, \"dur\": 2" more "}"
    expect(EVENTS(WORK("Kernel", "")), "work 0 2 7 1000 3000 k Kernel 1 0 0 ");
    expect(EVENTS(WORK(
               "gpu_memcpy",
               ", \"args\": {\"bytes\": 512, \"device\": 3, \"stream\": 9, \"correlation\": 5}")),
           "work 0 3 9 1000 3000 k gpu_memcpy 2 5 512 ");
    expect(EVENTS(WORK("Memcpy", "")), "work 0 2 7 1000 3000 k Memcpy 2 0 0 ");
    expect(EVENTS(WORK("gpu_memset", "")), "work 0 2 7 1000 3000 k gpu_memset 3 0 0 ");
    expect(EVENTS(WORK("Memset", "")), "work 0 2 7 1000 3000 k Memset 3 0 0 ");
    expect(EVENTS(WORK("gpu_user_annotation", "")),
           "work 0 2 7 1000 3000 k gpu_user_annotation 4 0 0 ");
    expect(EVENTS(WORK("cuda_sync",
                       ", \"args\": {\"stream\": -1, \"device\": 0, \"correlation\": 24}")),
           "work 0 0 -1 1000 3000 k cuda_sync 5 24 0 \nstream 0 0 -1 the whole device");
    /* All of it belongs to the one process of the file. */
    expect(EVENTS(WORK("kernel", "") ", {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op\", "
                                     "\"pid\": 55, \"tid\": 56, "
                                     "\"ts\": 1, \"dur\": 2}"),
           "work 55 2 7 1000 3000 k kernel 1 0 0 \nrange 55 56 1000 3000 op cpu_op :0 ");
}

static void launches_carry_their_correlation(void **state)
{
    (void)state;
#define LAUNCH(cat, args)                                                                          \
    "{\"ph\": \"X\", \"cat\": \"" cat                                                              \
    "\", \"name\": \"l\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1, \"args\": " args "}"
    expect(EVENTS(LAUNCH("cuda_runtime", "{\"correlation\": 9}")),
           "range 1 1 1000 2000 l cuda_runtime :0 launch=9");
    expect(EVENTS(LAUNCH("cuda_driver", "{\"correlation\": \"9\"}")),
           "range 1 1 1000 2000 l cuda_driver :0 launch=9");
    expect(EVENTS(LAUNCH("hip_runtime", "{\"stream\": \"0x0\", \"correlation\": 9}")),
           "range 1 1 1000 2000 l hip_runtime :0 launch=9");
    expect(EVENTS(LAUNCH("Runtime", "{\"correlation\": 9}")),
           "range 1 1 1000 2000 l Runtime :0 launch=9");
    expect(EVENTS(LAUNCH("cuda_runtime", "{\"correlation\": -1}")),
           "range 1 1 1000 2000 l cuda_runtime :0 ");
    expect(EVENTS(LAUNCH("cuda_runtime", "[9]")), "range 1 1 1000 2000 l cuda_runtime :0 ");
    expect(EVENTS(LAUNCH("cpu_op", "{\"correlation\": 9}")), "range 1 1 1000 2000 l cpu_op :0 ");
}

static void communication_is_reported_by_the_host_too(void **state)
{
    (void)state;
#define HOST(name, args)                                                                           \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                                       \
    "\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1, \"args\": {" args "}}"
    expect(EVENTS(HOST("record_param_comms", "\"Collective name\": \"_allgather_base\", \"In msg "
                                             "nelems\": 10, \"Out msg nelems\": 40, "
                                             "\"Group size\": 4, \"dtype\": \"Float\", \"Process "
                                             "Group Name\": \"dp\", \"Process Group "
                                             "Ranks\": [0, 1, 2, 3], \"Seq\": 0")),
           "range 1 1 1000 2000 record_param_comms cpu_op :0 comm=2:dp:[0, 1, 2, 3]:40:160:0:4:-1");
    expect(EVENTS(HOST("record_param_comms",
                       "\"Collective name\": \"send\", \"In msg nelems\": 3, \"dtype\": \"Long\", "
                       "\"Dst Rank\": 5, \"Src Rank\": 1")),
           "range 1 1 1000 2000 record_param_comms cpu_op :0 comm=10:::24:0:-1:0:5");
    expect(
        EVENTS(HOST("gloo:all_reduce", "\"Input Dims\": [[32, 2]], \"Input type\": [\"float\"]")),
        "range 1 1 1000 2000 gloo:all_reduce cpu_op :0 comm=1:::256:0:-1:0:-1");
    expect(EVENTS(HOST("gloo:broadcast",
                       "\"Input Dims\": [[3], [2]], \"Input type\": [\"float\", \"int\"]")),
           "range 1 1 1000 2000 gloo:broadcast cpu_op :0 comm=5:::0:0:-1:0:-1");
    /* Inside record_param_comms, which says more. */
    expect(EVENTS(HOST("nccl:all_reduce", "\"Input Dims\": [[32]], \"Input type\": [\"float\"]")),
           "range 1 1 1000 2000 nccl:all_reduce cpu_op :0 ");
    expect(EVENTS(HOST("aten::add", "\"Collective name\": \"none\"")),
           "range 1 1 1000 2000 aten::add cpu_op :0 ");
}

static void collectives_have_many_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum marey_collective what;
    } names[] = {
        {"allreduce", MAREY_COLLECTIVE_ALL_REDUCE},
        {"allreduce_coalesced", MAREY_COLLECTIVE_ALL_REDUCE},
        {"all_reduce_barrier", MAREY_COLLECTIVE_ALL_REDUCE},
        {"_reduce_scatter_base", MAREY_COLLECTIVE_REDUCE_SCATTER},
        {"reduce_scatter_tensor_coalesced", MAREY_COLLECTIVE_REDUCE_SCATTER},
        {"allgather_into_tensor_coalesced", MAREY_COLLECTIVE_ALL_GATHER},
        {"all_to_allv", MAREY_COLLECTIVE_ALL_TO_ALL},
        {"_broadcast_oop", MAREY_COLLECTIVE_BROADCAST},
        {"gather", MAREY_COLLECTIVE_GATHER},
        {"scatter", MAREY_COLLECTIVE_SCATTER},
        {"reduce", MAREY_COLLECTIVE_REDUCE},
        {"barrier", MAREY_COLLECTIVE_BARRIER},
        {"send", MAREY_COLLECTIVE_SEND},
        {"recv", MAREY_COLLECTIVE_RECV},
        {"wait", MAREY_COLLECTIVE_OTHER},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        char json[512], line[256];
        snprintf(json, sizeof json,
                 EVENTS(WORK("kernel", ", \"args\": {\"Collective name\": \"%s\"}")), names[i].name);
        snprintf(line, sizeof line, "work 0 2 7 1000 3000 k kernel 1 0 0 comm=%d:::0:0:-1:0:-1",
                 (int)names[i].what);
        expect(json, line);
    }
}

/* ---- other phases ---- */

static void begins_ends_marks_and_async_ranges(void **state)
{
    (void)state;
#define AT_TS(ph, ts, more)                                                                        \
    "{\"ph\": \"" ph "\", \"cat\": \"c\", \"pid\": 1, \"tid\": 2, \"ts\": " ts more "}"
    expect(EVENTS(AT_TS("B", "1", ", \"name\": \"outer\"") "," AT_TS(
               "B", "2", ", \"name\": \"inner\"") "," AT_TS("E", "3",
                                                            "") "," AT_TS("E", "4",
                                                                          ", \"name\": \"outer\"")),
           "range 1 2 2000 3000 inner c :0 \nrange 1 2 1000 4000 outer c :0 ");
    expect(
        EVENTS(
            AT_TS("i", "1", ", \"name\": \"m\", \"s\": \"g\"") "," AT_TS("I", "2", ", \"name\": \"m\"") "," AT_TS(
                "R", "3", ", \"name\": \"m\"") "," AT_TS("n", "4", ", \"name\": \"m\", \"id\": 5")),
        "mark 1 2 1000 m c\nmark 1 2 2000 m c\nmark 1 2 3000 m c\nmark 1 2 4000 m c");
    char *got = lines(EVENTS(
        AT_TS("b", "1", ", \"name\": \"a\", \"id\": \"0x1f\"") "," AT_TS("e", "2", ", \"name\": \"a\", \"id\": \"0x1F\"") "," AT_TS(
            "b", "3",
            ", \"name\": \"a\", \"id2\": {\"local\": "
            "\"q\"}") "," AT_TS("e", "4", ", \"name\": \"a\", \"id2\": {\"local\": \"q\"}")));
    unsigned long long first[2] = {0}, second[2] = {0};
    assert_int_equal(
        sscanf(strstr(got, "async_begin"),
               "async_begin\t1\t2\t1000\ta\tc\t%llu\nasync_end\t1\t2\t2000\ta\tc\t%llu\nasync_"
               "begin\t1\t2\t3000\ta\tc\t%llu\nasync_end\t1\t2\t4000\ta\tc\t%llu",
               &first[0], &first[1], &second[0], &second[1]),
        4);
    assert_true(first[0] == first[1] && second[0] == second[1] && first[0] != second[0]);
    free(got);
}

static void flows_are_kept_but_those_that_correlation_implies(void **state)
{
    (void)state;
#define FLOW(ph, cat, ts)                                                                          \
    "{\"ph\": \"" ph "\", \"id\": 3, \"pid\": 1, \"tid\": 2, \"ts\": " ts ", \"cat\": \"" cat      \
    "\", \"name\": \"n\"}"
    expect(EVENTS(FLOW("s", "fwdbwd", "1") "," FLOW("t", "fwdbwd", "2") "," FLOW("f", "fwdbwd", "3")),
           "flow 1 2 1000 n fwdbwd 3 0\nflow 1 2 2000 n fwdbwd 3 1\nflow 1 2 3000 n fwdbwd 3 2");
    expect_none(EVENTS(FLOW("s", "ac2g", "1") "," FLOW("f", "ac2g", "2") "," GOOD), "flow");
    expect(EVENTS("{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 2, \"ts\": 1, \"dur\": 1, "
                  "\"bind_id\": \"0x10\", \"flow_out\": true},"
                  "{\"ph\": \"X\", \"name\": \"b\", \"pid\": 1, \"tid\": 2, \"ts\": 3, \"dur\": 1, "
                  "\"bind_id\": \"0x10\", \"flow_in\": true}"),
           "flow 1 2 1000 a  16 0\nflow 1 2 3000 b  16 2");
}

static void counters_have_a_name_for_each_value(void **state)
{
    (void)state;
#define COUNTER(args) "{\"ph\": \"C\", \"name\": \"c\", \"pid\": 1, \"ts\": 1, \"args\": " args "}"
    expect(EVENTS(COUNTER("{\"value\": 1.5}")), "counter 1 1 1000 c  1.5");
    expect(EVENTS(COUNTER("{\"value\": 1, \"other\": \"2\"}")),
           "counter 1 1 1000 c value  1\ncounter 1 1 1000 c other  2");
    expect(EVENTS(COUNTER("{\"x\": -3e2}")), "counter 1 1 1000 c x  -300");
    expect(
        EVENTS(COUNTER("{\"x\": \"many\", \"y\": {}, \"z\": 1}") "," COUNTER("5")),
        "counter 1 1 1000 c z  1\nnote 1 3 values of counters in the trace are not numbers: left "
        "out.");
    expect(EVENTS("{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", "
                  "\"pid\": 1, \"tid\": 2, \"ts\": 1, "
                  "\"args\": {\"Total Reserved\": 4096, \"Total Allocated\": 1024, \"Bytes\": 8, "
                  "\"Addr\": 9, \"Device Id\": 0, "
                  "\"Device Type\": 1}},"
                  "{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 2, \"ts\": 2, "
                  "\"args\": {\"Device Type\": 0, "
                  "\"Device Id\": -1, \"Total Allocated\": 7}}"),
           "counter 1 2 1000 memory allocated GPU 0 cpu_instant_event 1024\n"
           "counter 1 2 1000 memory reserved GPU 0 cpu_instant_event 4096\n"
           "counter 1 2 2000 memory allocated CPU  7");
}

/* ---- who ---- */

#define HOST_OF(pid, tid)                                                                          \
    "{\"ph\": \"X\", \"name\": \"a\", \"pid\": " pid ", \"tid\": " tid ", \"ts\": 1, \"dur\": 1}"

static void a_chrome_trace_has_a_process_for_each_pid(void **state)
{
    (void)state;
    expect(
        EVENTS(
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 8, \"args\": {\"name\": "
            "\"worker\"}}," HOST_OF("7", "1") "," HOST_OF("8", "1") "," HOST_OF(
                "\"named\"",
                "\"t"
                "\"") "," HOST_OF("\"8\"", "\"2\"") ","
                                                    "{\"ph\": \"X\", \"name\": \"a\", \"pid\": 9, "
                                                    "\"ts\": 1, \"dur\": 1},"
                                                    "{\"ph\": \"M\", \"name\": \"thread_name\", "
                                                    "\"pid\": 7, \"tid\": 1, "
                                                    "\"args\": {\"name\": \"main \\\"one\\\"\"}}"),
        "process 7 -1 -1 a.file    kineto\nprocess 8 -1 -1 worker    kineto\n"
        "process 1073741824 -1 -1 named    kineto\nprocess 9 -1 -1 a.file    kineto\n"
        "thread 7 1 main \"one\"\nthread 8 1 \nthread 8 2 \nthread 1073741824 1073741825 t\nthread "
        "9 9 ");
}

static void labels_name_a_process_that_has_no_name(void **state)
{
    (void)state;
#define NAMED(what, key, name)                                                                     \
    "{\"ph\": \"M\", \"name\": \"" what "\", \"pid\": 7, \"args\": {\"" key "\": \"" name "\"}},"
    expect(EVENTS(NAMED("process_labels", "labels", "CPU") HOST_OF("7", "1")),
           "process 7 -1 -1 CPU    kineto");
    expect(EVENTS(NAMED("process_name", "name", "python") NAMED("process_labels", "labels", "CPU")
                      HOST_OF("7", "1")),
           "process 7 -1 -1 python    kineto");
    expect(EVENTS("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7, \"args\": {\"name\": "
                  "5}}," HOST_OF("7", "1")),
           "process 7 -1 -1 a.file    kineto");
}

static void kineto_has_one_process(void **state)
{
    (void)state;
    expect(KINETO(HOST_OF("7", "1") "," HOST_OF("8", "2") "," HOST_OF("\"Spans\"", "\"x\"")),
           "range 7 1 1000 2000 a  :0 \nrange 7 2 1000 2000 a  :0 \nrange 7 1073741825 1000 2000 a "
           " :0 ");
    expect_none(KINETO(HOST_OF("7", "1") "," HOST_OF("8", "2")), "process\t8");
}

static void what_stands_around_the_events_is_reported(void **state)
{
    (void)state;
    expect(
        "{\"traceEvents\": [" WORK("kernel", ", \"args\": {\"device\": 1, \"stream\": 1}") "," WORK(
            "kernel", "") "],"
                          "\"deviceProperties\": [{\"id\": 0, \"name\": \"unused\"}, 5, {\"name\": "
                          "\"A\", \"id\": 1}, {\"id\": 2, \"name\": \"B\"},"
                          " {\"id\": 2, \"name\": \"A\"}, {\"id\": 1}], \"host_name\": \"node7\","
                          " \"distributedInfo\": {\"backend\": [\"nccl\"], \"rank\": \"4\", "
                          "\"world_size\": 1.0}}",
        "process 0 4 1 a.file node7  A, B kineto");
    expect("{\"distributedInfo\": [1], \"deviceProperties\": {\"id\": 1}, \"host_name\": 5, "
           "\"traceEvents\": [" EVENT_A "]}",
           "process 1 -1 -1 a.file    kineto");
    expect("{\"distributedInfo\": {\"rank\": -3, \"world_size\": {}}, \"traceEvents\": [" EVENT_A
           "]}",
           "process 1 -1 -1 a.file    kineto");
}

static void viztracer_names_are_taken_apart(void **state)
{
    (void)state;
#define FEE(name)                                                                                  \
    EVENTS("{\"pid\": 1, \"tid\": 2, \"ts\": 1, \"ph\": \"X\", \"cat\": \"fee\", \"dur\": 1, "     \
           "\"name\": \"" name "\"}")
    expect(FEE("A.go (/tmp/v.py:4)"), "range 1 2 1000 2000 A.go fee /tmp/v.py:4 ");
    expect(FEE("f (C (1):x.py:12)"), "range 1 2 1000 2000 f fee C (1):x.py:12 ");
    expect(FEE("builtins.sum"), "range 1 2 1000 2000 builtins.sum fee :0 ");
    expect(FEE("f (x)"), "range 1 2 1000 2000 f (x) fee :0 ");
    expect(FEE("f (:3)"), "range 1 2 1000 2000 f (:3) fee :0 ");
    expect(FEE(" (x.py:3)"), "range 1 2 1000 2000  (x.py:3) fee :0 ");
    expect(FEE("f (x.py:99999999999999)"), "range 1 2 1000 2000 f (x.py:99999999999999) fee :0 ");
    expect(EVENTS("{\"pid\": 1, \"tid\": 2, \"ts\": 1, \"ph\": \"X\", \"cat\": \"kernels\", "
                  "\"dur\": 1, \"name\": \"f (x.py:3)\"}"),
           "range 1 2 1000 2000 f (x.py:3) kernels :0 ");
}

static void what_viztracer_lost_is_reported(void **state)
{
    (void)state;
    expect("{\"traceEvents\": [" EVENT_A
           "], \"viztracer_metadata\": {\"version\": \"1\", \"a\": [1], \"overflow\": true},"
           " \"file_info\": {\"files\": {\"a.py\": [\"x = '}'\\n\", 1]}}}",
           "note 1 viztracer's buffer was full: its oldest events are lost; give it more by "
           "--tracer_entries.");
    expect_none("{\"traceEvents\": [" EVENT_A "], \"viztracer_metadata\": {\"overflow\": false}}",
                "note");
    expect_none("{\"traceEvents\": [" EVENT_A "], \"viztracer_metadata\": true}", "note");
}

static void arguments_are_kept_on_request(void **state)
{
    (void)state;
    static const char json[] = EVENTS(LAUNCH("cpu_op", "{\"a\": [1, {\"b\": \"}\"}]}") "," WORK(
        "kernel", ", \"args\": {\"stream\": 7}") "," LAUNCH("x", "5") "," LAUNCH("y", "[5]"));
    import_wants.keep_arguments = 1;
    expect(json, "range 1 1 1000 2000 l cpu_op :0 args={\"a\": [1, {\"b\": \"}\"}]}\n"
                 "work 1 2 7 1000 3000 k kernel 1 0 0 args={\"stream\": 7}\n"
                 "range 1 1 1000 2000 l x :0 \nrange 1 1 1000 2000 l y :0 ");
    import_wants.keep_arguments = 0;
    expect_none(json, "args=");
}

/* ---- bad files ---- */

static void a_file_without_events_says_so(void **state)
{
    (void)state;
    expect_failure("", "a.file has no list of events (traceEvents)");
    expect_failure("{}", "a.file has no list of events (traceEvents)");
    expect_failure("5", "a.file has no list of events (traceEvents)");
    expect_failure("{\"traceEvents\": null}", "a.file has no list of events (traceEvents)");
    expect_failure("{\"traceEvents\": {\"ph\": \"X\"}}",
                   "a.file has no list of events (traceEvents)");
    expect_failure("{\"traceEvents\": []}", "a.file has no events in its list of events");
    expect_failure("[]", "a.file has no events in its list of events");
    expect_failure("[", "a.file has no events in its list of events");
    expect_failure(
        EVENTS(
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": \"x\"}}"),
        "a.file has no events in its list of events");
    expect_failure(
        "{\"traceEvents\": [",
        "a.file is cut off: it ends in the middle, at byte 17; it has no events before that");
    expect_failure("{\"traceEvents\": [{\"ph\": \"X\"",
                   "a.file is cut off: it ends in the middle of an event, at byte 17");
    expect_failure("{\"traceEvents\" [", "a.file is damaged: a key without a colon, at byte 15");
    expect_failure("[{\"ph\" \"X\"}]", "a.file is damaged: a key without a colon, at byte 7");
    expect_failure("[{\"ph\": }]", "a.file is damaged: a key without a value, at byte 8");
    expect_failure("[{ph: \"X\"}]", "a.file is damaged: a key that is not in quotes, at byte 2");
    expect_failure("[nul]", "a.file is damaged: an unknown value, at byte 1");
    expect_failure("\x01\x02", "a.file is damaged: an unknown value, at byte 0");
}

static void nesting_is_no_danger(void **state)
{
    (void)state;
    const size_t deep = 200000;
    static const char before[] = "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, "
                                 "\"tid\": 2, \"ts\": 1.001, \"dur\": 1, \"args\": ";
    char *json = malloc(2 * deep + sizeof before + 10);
    strcpy(json, before);
    char *p = json + sizeof before - 1;
    memset(p, '[', deep);
    memset(p + deep, ']', deep);
    strcpy(p + 2 * deep, "}]}");
    expect(json, "range 1 2 1001 2001 a  :0 ");
    free(json);
    char nested[3000];
    strcpy(nested, "[" EVENT_A ", ");
    memset(nested + strlen(nested), '[', 2000);
    nested[2100] = '\0';
    char *got = NULL;
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_chrome, nested, 2000, 0, &recording), MAREY_OK);
    got = lines_of(recording);
    assert_non_null(strstr(got, "is cut off"));
    free(got);
}

/* Truncated after any byte, earlier events are read, or there is an error message. */
static void a_file_may_end_anywhere(void **state)
{
    (void)state;
    size_t n_read = 0;
    for (size_t len = 0; len < sizeof whole_trace - 3; len++) {
        marey_recording *recording = NULL;
        const marey_status status =
            import_bytes(&marey__import_chrome, whole_trace, len, 0, &recording);
        if (status == MAREY_OK) {
            char *got = lines_of(recording);
            assert_non_null(strstr(got, "a.file is cut off: it ends in the middle"));
            n_read++;
            free(got);
        } else {
            assert_int_equal(status, MAREY_EFORMAT);
        }
    }
    assert_true(n_read > sizeof whole_trace / 2);
}

/* Any byte may be any other one. */
static void any_byte_may_be_wrong(void **state)
{
    (void)state;
    static const char others[] = {'"', '{', '}', '[', ']', ',', ':', '\\', '0', '\0', (char)0xff};
    char *json = malloc(sizeof whole_trace);
    memcpy(json, whole_trace, sizeof whole_trace);
    for (size_t i = 0; i < sizeof whole_trace - 1; i++) {
        json[i] = others[i % sizeof others];
        marey_recording *recording = NULL;
        const marey_status status =
            import_bytes(&marey__import_chrome, json, sizeof whole_trace - 1, i % 5, &recording);
        assert_true(status == MAREY_OK || status == MAREY_EFORMAT);
        marey_recording_close(recording);
        json[i] = whole_trace[i];
    }
    free(json);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each_allocation(&marey__import_chrome, whole_trace, sizeof whole_trace - 1);
}

/* ---- which files ---- */

static void traces_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    static const char *const traces[] = {"{\"traceEvents\": []}",
                                         " {\n \"schemaVersion\": 1,",
                                         "[]",
                                         " [ ",
                                         "[{\"ph\": \"X\"",
                                         "\xef\xbb\xbf{\"displayTimeUnit\": \"ms\", "};
    static const char *const others[] = {"",
                                         " ",
                                         "{",
                                         "{}",
                                         "[1, 2]",
                                         "[{\"a\": 1}]",
                                         "{\"$schema\": \"x\", \"profiles\": []}",
                                         "main;f 3",
                                         "\"traceEvents\""};
    for (size_t i = 0; i < MAREY__COUNT_OF(traces); i++)
        assert_true(marey__import_chrome.looks_like(traces[i], strlen(traces[i])));
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++)
        assert_false(marey__import_chrome.looks_like(others[i], strlen(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kineto_trace_is_read_whole),
        cmocka_unit_test(a_trace_may_be_cut_anywhere),
        cmocka_unit_test(times_are_taken_from_the_digits),
        cmocka_unit_test(the_base_may_stand_anywhere),
        cmocka_unit_test(odd_times_are_counted_and_reported),
        cmocka_unit_test(a_bare_list_is_a_trace_too),
        cmocka_unit_test(keys_come_in_any_order_and_the_last_one_counts),
        cmocka_unit_test(blanks_and_commas_may_be_anywhere),
        cmocka_unit_test(work_of_gpus_is_known_by_its_category),
        cmocka_unit_test(launches_carry_their_correlation),
        cmocka_unit_test(communication_is_reported_by_the_host_too),
        cmocka_unit_test(collectives_have_many_names),
        cmocka_unit_test(begins_ends_marks_and_async_ranges),
        cmocka_unit_test(flows_are_kept_but_those_that_correlation_implies),
        cmocka_unit_test(counters_have_a_name_for_each_value),
        cmocka_unit_test(a_chrome_trace_has_a_process_for_each_pid),
        cmocka_unit_test(labels_name_a_process_that_has_no_name),
        cmocka_unit_test(kineto_has_one_process),
        cmocka_unit_test(what_stands_around_the_events_is_reported),
        cmocka_unit_test(viztracer_names_are_taken_apart),
        cmocka_unit_test(what_viztracer_lost_is_reported),
        cmocka_unit_test(arguments_are_kept_on_request),
        cmocka_unit_test(a_file_without_events_says_so),
        cmocka_unit_test(nesting_is_no_danger),
        cmocka_unit_test(a_file_may_end_anywhere),
        cmocka_unit_test(any_byte_may_be_wrong),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(traces_are_known_by_their_first_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
