/* The table of operators: nesting, attribution, formulas, and the order of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/operators/internal.h"

/* ---- short traces ---- */

/* An operator on thread 1 of `ns` and a duration, with more arguments behind "External id". */
#define OP(name, begin, duration, id, more)                                                        \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" #begin    \
    ",\"dur\":" #duration ",\"args\":{\"External id\":" #id more "}},"
#define EVENT(category, name, tid, begin, duration, args)                                          \
    "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid         \
    ",\"ts\":" #begin ",\"dur\":" #duration ",\"args\":{" args "}},"
#define MEMORY(begin, bytes, device)                                                               \
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" #begin                       \
    ",\"args\":{\"Addr\":1,\"Bytes\":" #bytes ",\"Device Type\":" #device "}},"
#define DIMS(dims) ",\"Input Dims\":" dims
#define STACK(stack) ",\"Call stack\":\"" stack "\""

struct made {
    struct marey__torch_trace *trace;
    marey_report *report;
    const struct marey__operators *operators; /* of the report */
};

/* `setting` may be NULL. */
static struct made make(const char *events, const char *setting)
{
    struct made made = {0};
    char *json = NULL;
    assert_true(asprintf(&json, "{\"with_flops\":1,\"traceEvents\":[%s]}", events) > 0);
    assert_int_equal(marey__torch_read_memory("a", json, strlen(json), NULL, &made.trace), MAREY_OK);
    free(json);
    const char *const settings[] = {setting, NULL};
    const struct marey_report_options options = {.settings = settings};
    assert_int_equal(marey_operators_report(made.trace, &options, &made.report), MAREY_OK);
    made.operators = made.report->data;
    return made;
}

static void drop(struct made made)
{
    marey_report_destroy(made.report);
    marey__torch_free(made.trace);
}

/* The row of a name and kind. */
static const struct marey__operator *row_of(struct made made, const char *name, unsigned kind)
{
    for (size_t i = 0; i < made.operators->n_rows; i++) {
        const struct marey__operator *row = &made.operators->rows[i];
        const struct marey__operator_text text = marey__operator_name(made.operators, row);
        if (row->kind == kind && text.len == strlen(name) && memcmp(text.text, name, text.len) == 0)
            return row;
    }
    fail_msg("no row %s", name);
    return NULL;
}

static void expect_times(struct made made, const char *name, uint64_t n, int64_t total_us,
                         int64_t self_us)
{
    const struct marey__operator *row = row_of(made, name, MAREY__TORCH_OP);
    assert_int_equal(row->n_calls, n);
    assert_int_equal(row->cpu_ns, total_us * 1000);
    assert_int_equal(row->self_cpu_ns, self_us * 1000);
}

/* ---- times ---- */

static void self_time_is_without_direct_children_on_the_thread(void **state)
{
    (void)state;
    struct made made = make(OP("a", 0, 10, 1, "") OP("b", 1, 6, 2, "") OP("c", 2, 2, 3, "")
                                OP("b", 8, 1, 4, "") EVENT("cpu_op", "d", 2, 1, 5, ""),
                            NULL);
    expect_times(made, "a", 1, 10, 3);
    expect_times(made, "b", 2, 7, 5);
    expect_times(made, "c", 1, 2, 2);
    expect_times(made, "d", 1, 5, 5);
    assert_int_equal(made.operators->sum_cpu_ns, 15000);
    drop(made);
}

static void what_only_overlaps_is_no_child(void **state)
{
    (void)state;
    struct made made =
        make(OP("a", 0, 10, 1, "") OP("b", 5, 10, 2, "") OP("c", 6, 2, 3, "") OP("d", 10, 1, 4, ""),
             NULL);
    expect_times(made, "a", 1, 10, 10);
    expect_times(made, "b", 1, 10, 7); /* c and d are within it, not within a */
    drop(made);
}

static void an_only_child_of_the_same_name_counts_as_one_with_its_parent(void **state)
{
    (void)state;
    struct made made =
        make(OP("a", 0, 10, 1, "") OP("a", 1, 8, 2, "") OP("a", 2, 6, 3, "") OP("b", 3, 2, 4, "")
                 OP("b", 20, 5, 5, "") OP("b", 21, 1, 6, "") OP("b", 23, 1, 7, ""),
             NULL);
    expect_times(made, "a", 1, 10, 8);
    expect_times(made, "b", 4, 9, 7);
    drop(made);
}

static void utility_operators_are_left_out(void **state)
{
    (void)state;
    struct made made = make(OP("a", 0, 10, 1, "") OP("aten::is_leaf", 1, 2, 2, "")
                                OP("profiler::_record_function_exit", 4, 2, 3, ""),
                            NULL);
    expect_times(made, "a", 1, 10, 10);
    assert_int_equal(made.operators->n_rows, 1);
    drop(made);
}

static void steps_are_one_row(void **state)
{
    (void)state;
    struct made made = make(EVENT("user_annotation", "ProfilerStep#1", 1, 0, 5, "")
                                EVENT("user_annotation", "ProfilerStep#2", 1, 5, 6, "")
                                    EVENT("gpu_user_annotation", "ProfilerStep#2", 7, 5, 6, ""),
                            NULL);
    assert_int_equal(made.operators->n_rows, 2);
    assert_int_equal(row_of(made, "ProfilerStep*", MAREY__TORCH_ANNOTATION)->n_calls, 2);
    assert_int_equal(row_of(made, "ProfilerStep*", MAREY__TORCH_GPU_ANNOTATION)->device_ns, 6000);
    assert_int_equal(made.operators->sum_device_ns, 0);
    drop(made);
}

/* ---- devices ---- */

static void work_belongs_to_the_operator_whose_id_it_has(void **state)
{
    (void)state;
    struct made made =
        make(OP("a", 0, 10, 1, "") OP("b", 1, 6, 2, "")
                 EVENT("cuda_runtime", "launch", 1, 2, 1, "\"External id\":2,\"correlation\":9")
                     EVENT("kernel", "k", 7, 20, 4, "\"External id\":2,\"correlation\":9")
                         EVENT("gpu_memcpy", "m", 7, 30, 3, "\"External id\":1,\"correlation\":10")
                             EVENT("kernel", "k", 7, 40, 1, "\"External id\":77"),
             NULL);
    assert_int_equal(row_of(made, "a", MAREY__TORCH_OP)->device_ns, 7000);
    assert_int_equal(row_of(made, "a", MAREY__TORCH_OP)->self_device_ns, 3000);
    assert_int_equal(row_of(made, "b", MAREY__TORCH_OP)->device_ns, 4000);
    assert_int_equal(row_of(made, "b", MAREY__TORCH_OP)->self_device_ns, 4000);
    assert_int_equal(row_of(made, "launch", MAREY__TORCH_RUNTIME)->device_ns, 0);
    assert_int_equal(row_of(made, "k", MAREY__TORCH_KERNEL)->device_ns, 5000);
    assert_int_equal(made.operators->sum_device_ns, 8000);
    assert_true(made.operators->rows[0].self_device_ns == 5000); /* by device time, without being asked */
    drop(made);
}

/* Older traces repeat the correlation as the id, which may also be that of some other operator. */
static void without_an_id_it_belongs_to_the_operator_around_the_launch(void **state)
{
    (void)state;
    struct made made =
        make(OP("a", 0, 10, 9, "") OP("b", 20, 10, 2, "") EVENT("python_function", "f", 1, 21, 5, "")
                 EVENT("cuda_runtime", "launch", 1, 22, 1, "\"External id\":9,\"correlation\":9")
                     EVENT("kernel", "k", 7, 40, 4, "\"External id\":9,\"correlation\":9"),
             NULL);
    assert_int_equal(row_of(made, "a", MAREY__TORCH_OP)->device_ns, 0);
    assert_int_equal(row_of(made, "b", MAREY__TORCH_OP)->self_device_ns, 4000);
    drop(made);
}

/* ---- memory ---- */

static void allocations_belong_to_all_that_runs(void **state)
{
    (void)state;
    struct made made = make(OP("a", 0, 10, 1, "") OP("b", 2, 4, 2, "") MEMORY(1, 100, 0)
                                MEMORY(2, 7, 0) MEMORY(6, 8, 1) MEMORY(9, -50, 0) MEMORY(11, 3, 0)
                                    MEMORY(12, 5, 1) MEMORY(13, 9, 3),
                            NULL);
    const struct marey__operator *a = row_of(made, "a", MAREY__TORCH_OP),
                                 *b = row_of(made, "b", MAREY__TORCH_OP),
                                 *outside = row_of(made, "[memory]", MAREY__TORCH_N_KINDS);
    assert_int_equal(a->cpu_bytes, 57);
    assert_int_equal(a->self_cpu_bytes, 50);
    assert_int_equal(b->cpu_bytes, 7);
    assert_int_equal(b->device_bytes, 8);
    assert_int_equal(a->self_device_bytes, 0);
    assert_int_equal(outside->n_calls, 3);
    assert_int_equal(outside->cpu_bytes, 3);
    assert_int_equal(outside->device_bytes, 14);
    drop(made);
}

/* ---- shapes and stacks ---- */

static void rows_are_distinguished_by_shapes_and_the_top_of_the_stack(void **state)
{
    (void)state;
    static const char events[] = OP("a", 0, 1, 1, DIMS("[[2, 3], [[1], [2]]]") STACK("f;g;h;"))
        OP("a", 2, 1, 2, DIMS("[[2, 3], [[4], [5]]]") STACK("f;g;i;"))
            OP("a", 4, 1, 3, DIMS("[[2, 4], []]") STACK("f;g;h;"))
                OP("a", 6, 1, 4, DIMS("[[2, 3], []]") STACK("x;g;h;"));
    struct made made = make(events, "stack-depth=2");
    assert_int_equal(made.operators->n_rows, 3);
    assert_int_equal(made.operators->rows[0].n_calls, 2);
    assert_string_equal(marey__operator_shapes(made.operators, &made.operators->rows[0]).text,
                        "[[2, 3], []]");
    drop(made);
    made = make(events, "stack-depth=3");
    assert_int_equal(made.operators->n_rows, 4);
    drop(made);
    made = make(events, "stack-depth=0");
    assert_int_equal(made.operators->n_rows, 2);
    drop(made);
    made = make(events, "by-name");
    assert_int_equal(made.operators->n_rows, 1);
    assert_false(made.operators->has_shapes || made.operators->has_stacks);
    drop(made);
}

/* The lines of stacks. Free with free. */
static char *stacks_of(struct made made, const char *metric)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_operators_stacks(made.report, metric, out), MAREY_OK);
    fclose(out);
    return text;
}

#define EVALUATE "autograd::engine::evaluate_function: "

static void a_backward_operator_has_the_stack_of_its_forward_one(void **state)
{
    (void)state;
    struct made made = make(
        OP("mm", 0, 5, 1, ",\"Sequence number\":3,\"Fwd thread id\":0" STACK("model.py(1): forward;"))
            EVENT("cpu_op", "mm", 4, 0, 5,
                  "\"Sequence number\":3,\"Fwd thread id\":0" STACK("other.py(1): thread;"))
                EVENT("cpu_op", "mm", 4, 6, 5,
                      "\"Sequence number\":4,\"Fwd thread id\":0" STACK("other.py(2): thread;"))
                    EVENT("cpu_op", EVALUATE "MmBackward0", 2, 10, 20,
                          "\"Sequence number\":3,\"Fwd thread id\":9" STACK("loop.py(1): f;"))
                        EVENT("cpu_op", "MmBackward0", 2, 11, 15,
                              "\"Sequence number\":3,\"Fwd thread id\":9" STACK("loop.py(1): f;"))
                            EVENT("cpu_op", "grad", 2, 12, 10, "\"External id\":8")
                                EVENT("cpu_op", EVALUATE "MmBackward0", 2, 40, 9,
                                      "\"Sequence number\":4,\"Fwd thread id\":9")
                                    EVENT("cpu_op", "MmBackward0", 2, 41, 5,
                                          "\"Sequence number\":4,\"Fwd thread id\":9"),
        NULL);
    /* Number 9 of torch's is thread 4, which alone has both sequence numbers. */
    char *lines = stacks_of(made, NULL);
    assert_string_equal(lines,
                        "model.py(1):_forward 5\nother.py(1):_thread 5\nother.py(2):_thread 5\n"
                        "loop.py(1):_f 5\nother.py(1):_thread 5\nother.py(1):_thread 10\n"
                        "other.py(2):_thread 5\n");
    free(lines);
    drop(made);
}

static void stacks_have_the_root_first_and_leave_frames_of_autograd_out(void **state)
{
    (void)state;
    struct made made = make(
        OP("a", 5, 2.999, 1,
           STACK("a b.py(3): f\\tg;torch/autograd/__init__.py(255): backward;m.py(1): <module>;"))
            OP("b", 0, 0.999, 2, STACK("x;")) OP("c", 0, 3, 3, "")
                EVENT("kernel", "k", 7, 9, 6, "\"External id\":1"),
        NULL);
    char *lines = stacks_of(made, "self_cpu_time_total");
    assert_string_equal(lines, "m.py(1):_<module>;a_b.py(3):_f_g 2\n");
    free(lines);
    lines = stacks_of(made, NULL);
    assert_string_equal(lines, "m.py(1):_<module>;a_b.py(3):_f_g 6\n");
    free(lines);
    assert_int_equal(marey_operators_stacks(made.report, "self_tpu_time_total", stdout),
                     MAREY_EINVAL);
    drop(made);
}

/* ---- floating point operations ---- */

static void expect_flops(const char *name, const char *dims, const char *concrete, uint64_t flops)
{
    char *event = NULL;
    assert_true(asprintf(&event,
                         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"ts\":1,\"dur\":1,"
                         "\"args\":{\"Input Dims\":%s,\"Concrete Inputs\":%s}},",
                         name, dims, concrete) > 0);
    struct made made = make(event, NULL);
    if (made.operators->rows[0].flops != flops)
        fail_msg("%s has %llu", event, (unsigned long long)made.operators->rows[0].flops);
    drop(made);
    free(event);
}

static void floating_point_operations_come_from_shapes(void **state)
{
    (void)state;
    static const char conv[] = "[\"\",\"\",\"\",\"[2, 1]\",\"[1, 0]\",\"[1, 2]\",\"2\"]";
    expect_flops("aten::mm", "[[2, 3], [3, 4]]", "[]", 48);
    expect_flops("aten::mm", "[[2, 0], [0, 4]]", "[]", 0);
    expect_flops("aten::addmm", "[[4], [2, 3], [3, 4], [], []]", "[]", 48);
    expect_flops("aten::bmm", "[[5, 2, 3], [5, 3, 4]]", "[]", 240);
    expect_flops("aten::baddbmm", "[[2, 4], [5, 2, 3], [5, 3, 4]]", "[]", 240);
    expect_flops("aten::add", "[[5, 6], [6], []]", "[]", 30);
    expect_flops("aten::mul", "[[], []]", "[]", 1);
    expect_flops("aten::linear", "[[5, 6], [6]]", "[]", 0);
    /* 7 + 2 - 3 over 2 and one more; 9 - 2 * 2: 4 x 5 outputs */
    expect_flops("aten::conv2d", "[[3, 4, 7, 9], [8, 2, 3, 3], [8], [], [], [], []]", conv,
                 2 * 3 * 4 * 5 * 3 * 3 * 4 * 8 / 2);
    expect_flops("aten::conv2d", "[[4, 7, 9], [8, 2, 3, 3], [8]]", conv, 0);
    expect_flops("aten::conv2d", "[[3, 4, 7, 9], [8, 2, 3, 3], [8]]", "[\"\", \"\"]", 0);
}

static void what_is_no_shape_has_no_operations(void **state)
{
    (void)state;
    expect_flops("aten::mm", "[[2, 3]]", "[]", 0);
    expect_flops("aten::mm", "[\"[2, 3]\\\"], [\", [3, 4]]", "[]", 0);
    expect_flops("aten::mm", "{\"a\": [[2, 3], [3, 4]]}", "[]", 0);
    expect_flops("aten::mm", "[[2, -3], [3, 4]]", "[]", 0);
    expect_flops("aten::mm", "[[[2, 3]], [3, 4]]", "[]", 0);
    expect_flops("aten::mul", "[[9223372036854775807, 9223372036854775807, 3], []]", "[]", 0);
    expect_flops("aten::mul", "[[99999999999999999999999], []]", "[]", 0);
}

/* ---- order and text ---- */

static marey_status check(const char *setting)
{
    return marey_report_check("operators", (const char *const[]){setting, NULL});
}

static void rows_are_sorted_and_equal_ones_stay_in_the_order_of_their_calls(void **state)
{
    (void)state;
    static const char events[] = OP("c", 4, 2, 1, "") OP("b", 0, 2, 2, "") OP("a", 8, 2, 3, "")
        OP("a", 12, 1, 4, "") OP("d", 20, 9, 5, "");
    static const struct {
        const char *key, *order;
    } cases[] = {{"cpu_time_total", "dabc"},
                 {"self_cpu_time_total", "dabc"},
                 {"count", "abcd"},
                 {"cpu_time", "dbca"},
                 {"self_cuda_time_total", "bcad"},
                 {"flops", "bcad"},
                 {"self_xpu_memory_usage", "bcad"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        char setting[64];
        snprintf(setting, sizeof setting, "sort=%s", cases[i].key);
        struct made made = make(events, setting);
        for (size_t r = 0; r < 4; r++)
            assert_int_equal(marey__operator_name(made.operators, &made.operators->rows[r]).text[0],
                             cases[i].order[r]);
        drop(made);
    }
    assert_int_equal(check("sort=self_cuda_memory_usage"), MAREY_OK);
    assert_int_equal(check("sort=cpu_tim"), MAREY_EINVAL);
    assert_int_equal(check("sort=device"), MAREY_EINVAL);
    assert_int_equal(check("sort="), MAREY_EINVAL);
}

/* One of everything. */
static const char everything[] =
    OP("aten::mm", 0, 10, 1, DIMS("[[2, 3], [3, 4]]") STACK("f\xc3\xa9;g;")) OP("b", 1, 6, 2, "")
        EVENT("user_annotation", "ProfilerStep#3", 1, 0, 12,
              "") EVENT("cuda_runtime", "launch", 1, 2, 1, "\"External id\":2,\"correlation\":9")
            EVENT("kernel", "k", 7, 20, 4, "\"External id\":2,\"correlation\":9")
                EVENT("cpu_op", EVALUATE "B", 2, 10, 20, "\"Sequence number\":3,\"Fwd thread id\":1")
                    EVENT("cpu_op", "B", 2, 11, 15, "\"Sequence number\":3,\"Fwd thread id\":1")
                        OP("fwd", 60, 1, 5, ",\"Sequence number\":3" STACK("x;")) MEMORY(1, 3000, 0)
                            MEMORY(5, -2000000, 1) MEMORY(99, 5, 1);

static void columns_stand_under_their_titles(void **state)
{
    (void)state;
    struct made made = make(everything, NULL);
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(made.report, "text", NULL, out), MAREY_OK);
    fclose(out);
    assert_non_null(strstr(text, "Source Location"));
    const char *row = strstr(text, "f\xc3\xa9"), *begin = row;
    while (begin[-1] != '\n')
        begin--;
    /* A column begins there in the rule of dashes, which is the first line. */
    assert_memory_equal(text + (row - begin) - 3, "-  -", 4);
    const char *flops = strstr(begin, "48.000");
    assert_non_null(flops);
    assert_true(flops < strchr(begin, '\n'));
    assert_true(flops > row);
    assert_non_null(strstr(text, "Self CUDA time total: 4.000us\n"));
    assert_non_null(strstr(text, "-1.91 MB"));
    assert_non_null(strstr(text, "2.93 KB"));
    free(text);
    drop(made);
}

static void without_memory_nothing_is_left_behind(void **state)
{
    (void)state;
    struct made made = make(everything, NULL);
    FILE *out = fopen("/dev/null", "w");
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_operators_report(made.trace, NULL, &report);
        if (status == MAREY_OK)
            status = marey_report_write(report, "text", NULL, out);
        if (status == MAREY_OK)
            status = marey_operators_stacks(report, NULL, out);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    fclose(out);
    drop(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_time_is_without_direct_children_on_the_thread),
        cmocka_unit_test(what_only_overlaps_is_no_child),
        cmocka_unit_test(an_only_child_of_the_same_name_counts_as_one_with_its_parent),
        cmocka_unit_test(utility_operators_are_left_out),
        cmocka_unit_test(steps_are_one_row),
        cmocka_unit_test(work_belongs_to_the_operator_whose_id_it_has),
        cmocka_unit_test(without_an_id_it_belongs_to_the_operator_around_the_launch),
        cmocka_unit_test(allocations_belong_to_all_that_runs),
        cmocka_unit_test(rows_are_distinguished_by_shapes_and_the_top_of_the_stack),
        cmocka_unit_test(a_backward_operator_has_the_stack_of_its_forward_one),
        cmocka_unit_test(stacks_have_the_root_first_and_leave_frames_of_autograd_out),
        cmocka_unit_test(floating_point_operations_come_from_shapes),
        cmocka_unit_test(what_is_no_shape_has_no_operations),
        cmocka_unit_test(rows_are_sorted_and_equal_ones_stay_in_the_order_of_their_calls),
        cmocka_unit_test(columns_stand_under_their_titles),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
