/* Traces of torch.profiler in memory: rows, texts, what stands around them, and what is wrong with a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/kineto/internal.h"

static marey_status read_text(const char *json, struct marey__torch_trace **out)
{
    return marey__torch_read_memory("a.json", json, strlen(json), NULL, out);
}

static struct marey__torch_trace *trace_of(const char *json)
{
    struct marey__torch_trace *trace = NULL;
    if (read_text(json, &trace) != MAREY_OK)
        fail_msg("%s\n%s", json, marey_last_error());
    return trace;
}

static const char *text(const struct marey__torch_trace *trace, marey__torch_id id)
{
    return marey__torch_text(trace, id, NULL);
}

/* ---- rows ---- */

static const char mixed[] =
    "{\"schemaVersion\": 1, \"record_shapes\": 1, \"profile_memory\": 1, \"with_stack\": 1,\n"
    "\"deviceProperties\": [{\"id\": 0, \"name\": \"A100\", \"totalGlobalMem\": 42, \"numSms\": "
    "108}],\n"
    "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 4},\n"
    "\"baseTimeNanoseconds\": 1000000, \"traceEvents\": [\n"
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 9, \"tid\": 11, \"args\": {\"name\": "
    "\"main\"}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 9, \"tid\": 11, \"ts\": "
    "20.5,"
    " \"dur\": 4.001, \"args\": {\"External id\": 7, \"Sequence number\": 5, \"Fwd thread id\": 0,"
    " \"Input Dims\": [[2, 3], [3, 4]], \"Input type\": [\"float\", \"float\"],"
    " \"Concrete Inputs\": [\"\", \"\"], \"Call stack\": \"a.py(1): f;a.py(2): \\\"g\\\";\"}},\n"
    "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"a.py(1): f\", \"pid\": 9, \"tid\": "
    "11,"
    " \"ts\": 20, \"dur\": 5},\n"
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 9, "
    "\"tid\": 11,"
    " \"ts\": 21, \"dur\": 1, \"args\": {\"External id\": 7, \"correlation\": 40}},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 23,"
    " \"dur\": 2, \"args\": {\"External id\": 7, \"correlation\": 40}},\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 9, \"tid\": 11, \"ts\": "
    "20.5,"
    " \"dur\": 9},\n"
    "{\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"PyTorch Profiler (0)\", \"pid\": \"Spans\","
    " \"tid\": \"PyTorch Profiler\", \"ts\": 1, \"dur\": 2},\n"
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 9, \"tid\": "
    "11,"
    " \"ts\": 22, \"args\": {\"Addr\": 94503979187392, \"Bytes\": -512, \"Device Type\": 1,"
    " \"Device Id\": 2, \"Total Allocated\": 1024, \"Total Reserved\": 4096,"
    " \"Call stack\": \"a.py(1): f;\"}},\n"
    "{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 9, \"tid\": 12, \"ts\": 21,"
    " \"args\": {\"Addr\": 1, \"Bytes\": 3, \"Device Type\": 0, \"Device Id\": -1}}\n"
    "], \"marey\": {\"version\": 1, \"rank\": 6, \"world_size\": 8, \"step\": 9, \"steps\": 2,"
    " \"partial\": true, \"why\": \"an exception\", \"later\": {\"a\": [1]}, \"roles\": ["
    "[\"parameter\", 94503979187392, 512, 1, 2, 1000021000, \"fc.weight\"],"
    "[\"gradient\", 5, 6, 0, -1, 7, \"fc.bias\", \"of a later version\"],"
    "[\"unheard of\", 1, 1, 0, -1, 1, \"x\"], 3, [\"input\"]]}}";

static void rows_are_by_thread_and_begin_the_longer_first(void **state)
{
    (void)state;
    struct marey__torch_trace *trace = trace_of(mixed);
    static const char *const names[] = {"a.py(1): f", "aten::mm", "aten::mm", "cudaLaunchKernel",
                                        "gemm"};
    static const int64_t begins[] = {1020000, 1020500, 1020500, 1021000, 1023000};
    static const int64_t ends[] = {1025000, 1029500, 1024501, 1022000, 1025000};
    assert_int_equal(trace->n_events, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(text(trace, trace->events[i].name), names[i]);
        assert_int_equal(trace->events[i].begin_ns, begins[i]);
        assert_int_equal(trace->events[i].end_ns, ends[i]);
    }
    assert_int_equal(trace->n_threads, 3);
    assert_int_equal(trace->threads[0].tid, 11);
    assert_string_equal(text(trace, trace->threads[0].name), "main");
    assert_int_equal(trace->threads[0].begin, 0);
    assert_int_equal(trace->threads[0].end, 4);
    assert_int_equal(trace->threads[1].pid, 0);
    assert_int_equal(trace->threads[1].begin, 4);
    assert_int_equal(trace->threads[1].end, 5);
    assert_int_equal(trace->threads[2].end, 0);
    marey__torch_free(trace);
}

static void an_operator_keeps_its_arguments(void **state)
{
    (void)state;
    struct marey__torch_trace *trace = trace_of(mixed);
    const struct marey__torch_event *mm = &trace->events[2], *other = &trace->events[1];
    assert_int_equal(mm->kind, MAREY__TORCH_OP);
    assert_int_equal(mm->external_id, 7);
    assert_int_equal(mm->sequence, 5);
    assert_string_equal(text(trace, mm->shapes), "[[2, 3], [3, 4]]");
    assert_string_equal(text(trace, mm->types), "[\"float\", \"float\"]");
    assert_string_equal(text(trace, mm->concrete), "[\"\", \"\"]");
    assert_string_equal(text(trace, mm->stack), "a.py(1): f;a.py(2): \"g\";");
    assert_int_equal(other->external_id, -1);
    assert_int_equal(other->sequence, -1);
    assert_int_equal(other->shapes, 0);
    assert_int_equal(other->stack, 0);
    assert_int_equal(other->name, mm->name);
    assert_int_equal(trace->events[3].kind, MAREY__TORCH_RUNTIME);
    assert_int_equal(trace->events[3].correlation, 40);
    assert_int_equal(trace->events[4].correlation, 40);
    assert_true(marey__torch_on_device(trace->events[4].kind));
    assert_int_equal(marey__torch_find(trace, "aten::mm", 8), mm->name);
    assert_int_equal(marey__torch_find(trace, "aten::m", 7), 0);
    marey__torch_free(trace);
}

static void allocations_are_by_time(void **state)
{
    (void)state;
    struct marey__torch_trace *trace = trace_of(mixed);
    assert_int_equal(trace->n_memory, 2);
    assert_int_equal(trace->memory[0].bytes, 3);
    assert_int_equal(trace->memory[0].device_id, -1);
    assert_int_equal(trace->memory[0].ns, 1021000);
    const struct marey__torch_memory *last = &trace->memory[1];
    assert_int_equal(last->ns, 1022000);
    assert_int_equal(last->bytes, -512);
    assert_int_equal(last->address, 94503979187392);
    assert_int_equal(last->device_type, 1);
    assert_int_equal(last->device_id, 2);
    assert_int_equal(last->total_allocated, 1024);
    assert_int_equal(last->total_reserved, 4096);
    assert_string_equal(text(trace, last->stack), "a.py(1): f;");
    assert_int_equal(last->thread, 0);
    marey__torch_free(trace);
}

static void the_header_tells_ranks_devices_and_roles(void **state)
{
    (void)state;
    struct marey__torch_trace *trace = trace_of(mixed);
    assert_true(trace->header.has_shapes && trace->header.has_memory && trace->header.has_stacks &&
                !trace->header.has_flops);
    assert_int_equal(trace->header.rank, 3);
    assert_int_equal(trace->header.world_size, 4);
    assert_int_equal(marey__torch_rank(trace), 6);
    assert_int_equal(trace->marey_world_size, 8);
    assert_true(trace->is_partial);
    assert_string_equal(text(trace, trace->why), "an exception");
    assert_int_equal(trace->header.n_devices, 1);
    assert_string_equal(trace->header.devices[0].name, "A100");
    assert_int_equal(trace->n_roles, 2);
    assert_int_equal(trace->roles[0].kind, MAREY__TORCH_PARAMETER);
    assert_int_equal(trace->roles[0].address, 94503979187392);
    assert_int_equal(trace->roles[0].bytes, 512);
    assert_int_equal(trace->roles[0].ns, 1000021000);
    assert_int_equal(trace->roles[0].device_type, 1);
    assert_int_equal(trace->roles[0].device_id, 2);
    assert_string_equal(text(trace, trace->roles[0].name), "fc.weight");
    assert_int_equal(trace->roles[1].kind, MAREY__TORCH_GRADIENT);
    assert_int_equal(trace->roles[1].device_id, -1);
    marey__torch_free(trace);
}

static void what_nobody_wants_is_counted_and_left_out(void **state)
{
    (void)state;
    const struct marey__torch_options options = {.kinds = MAREY__TORCH_BIT(MAREY__TORCH_KERNEL),
                                                 .without_memory = true};
    struct marey__torch_trace *trace = NULL;
    assert_int_equal(marey__torch_read_memory("a.json", mixed, sizeof mixed - 1, &options, &trace),
                     MAREY_OK);
    assert_int_equal(trace->n_events, 1);
    assert_int_equal(trace->n_memory, 0);
    assert_int_equal(trace->n_by_kind[MAREY__TORCH_OP], 2);
    assert_int_equal(trace->n_by_kind[MAREY__TORCH_PYTHON], 1);
    marey__torch_free(trace);
}

/* Rows that come in the reverse order, and many different texts. */
static void many_rows_come_into_order(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct marey__buf json = {0};
    marey__buf_puts(&json, "[");
    for (int i = 0; i < N; i++)
        marey__buf_printf(&json,
                          "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op%d\",\"pid\":1,\"tid\":%d,"
                          "\"ts\":%d,\"dur\":1},",
                          i % 5000, i % 3, N - i);
    marey__buf_puts(&json, "]");
    struct marey__torch_trace *trace = NULL;
    assert_int_equal(marey__torch_read_memory("a", json.data, json.len, NULL, &trace), MAREY_OK);
    assert_int_equal(trace->n_events, N);
    assert_int_equal(trace->strings.n, 5001);
    for (size_t i = 1; i < N; i++) {
        const struct marey__torch_event *a = &trace->events[i - 1], *b = &trace->events[i];
        assert_true(a->thread < b->thread || (a->thread == b->thread && a->begin_ns < b->begin_ns));
    }
    for (size_t i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "op%d", (int)(trace->events[i].order % 5000));
        assert_string_equal(text(trace, trace->events[i].name), name);
    }
    marey__torch_free(trace);
    marey__buf_fini(&json);
}

/* ---- what is wrong ---- */

static void expect_failure(const char *json, const char *part)
{
    struct marey__torch_trace *trace = NULL;
    assert_int_equal(read_text(json, &trace), MAREY_EFORMAT);
    assert_null(trace);
    if (strstr(marey_last_error(), part) == NULL)
        fail_msg("%s: %s", json, marey_last_error());
}

static void what_is_no_trace_gets_a_sentence(void **state)
{
    (void)state;
    expect_failure("", "no list of events");
    expect_failure("{}", "no list of events");
    expect_failure("17", "no list of events");
    expect_failure("[]", "is it a trace of torch.profiler?");
    expect_failure("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"other\", \"ts\": 1}]}",
                   "is it a trace of torch.profiler?");
    expect_failure("{\"traceEvents\": [{\"ph\" 3}]}", "damaged: a key without a colon");
    expect_failure("{\"traceEvents\": [{\"ph\": \"X\"", "cut off");
}

static void a_file_that_is_cut_off_is_read_that_far(void **state)
{
    (void)state;
    static const char whole[] = "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
                                "\"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1}, ";
    struct marey__torch_trace *trace = trace_of(whole);
    assert_int_equal(trace->n_events, 1);
    assert_non_null(strstr(trace->damage, "a.json is cut off"));
    marey__torch_free(trace);
    trace = trace_of(mixed);
    assert_null(trace->damage);
    marey__torch_free(trace);
}

static void times_that_are_none_are_counted(void **state)
{
    (void)state;
    struct marey__torch_trace *trace =
        trace_of("[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"ts\": \"x\"},"
                 "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"b\", \"ts\": 1e17},"
                 "{\"ph\": \"i\", \"name\": \"[memory]\"},"
                 "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"c\", \"ts\": 1, \"dur\": -4}]");
    assert_int_equal(trace->n_events, 1);
    assert_int_equal(trace->n_without_time, 3);
    assert_int_equal(trace->events[0].end_ns, trace->events[0].begin_ns);
    assert_int_equal(trace->threads[0].pid, INT64_MIN);
    marey__torch_free(trace);
}

static void without_memory_nothing_is_left_behind(void **state)
{
    (void)state;
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        struct marey__torch_trace *trace = NULL;
        marey__alloc_fail_nth(nth);
        status = read_text(mixed, &trace);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && trace == NULL));
        marey__torch_free(trace);
        assert_true(nth < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_by_thread_and_begin_the_longer_first),
        cmocka_unit_test(an_operator_keeps_its_arguments),
        cmocka_unit_test(allocations_are_by_time),
        cmocka_unit_test(the_header_tells_ranks_devices_and_roles),
        cmocka_unit_test(what_nobody_wants_is_counted_and_left_out),
        cmocka_unit_test(many_rows_come_into_order),
        cmocka_unit_test(what_is_no_trace_gets_a_sentence),
        cmocka_unit_test(a_file_that_is_cut_off_is_read_that_far),
        cmocka_unit_test(times_that_are_none_are_counted),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
