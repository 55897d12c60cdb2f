/* Pairs compared, in the order of execution: statuses, the first difference, operations, noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diff_values.h"
#include "table_view.h"

struct fixture {
    struct made_side a, b, noise;
    struct marey_diff_options options;
    struct marey_diff *diff;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    marey_diff_close(f->diff);
    free(f);
    return 0;
}

static marey_status run_sides(struct fixture *f)
{
    const struct marey__diff_place place = {3, -1};
    MAREY_TRY(marey__diff_create(&f->options, &f->diff));
    MAREY_TRY(marey__diff_sides(f->diff, &place, &f->a.side, &f->b.side,
                                f->noise.side.n != 0 ? &f->noise.side : NULL));
    return marey__diff_conclude(f->diff);
}

static void run(struct fixture *f)
{
    assert_int_equal(run_sides(f), MAREY_OK);
}

static struct marey_cell cell(struct fixture *f, const char *table, size_t row, const char *column)
{
    return table_cell(marey_diff_table(f->diff, table), row, column);
}

static void expect_text(struct fixture *f, const char *table, size_t row, const char *column,
                        const char *wanted)
{
    const struct marey_cell found = cell(f, table, row, column);
    if (wanted == NULL) {
        assert_true(found.is_null);
        return;
    }
    assert_false(found.is_null);
    assert_string_equal(found.as.text, wanted);
}

static void expect_status(struct fixture *f, size_t row, const char *status)
{
    expect_text(f, "tensors", row, "status", status);
}

static void expect_near(double found, double wanted, double by)
{
    if (!(fabs(found - wanted) <= by))
        fail_msg("%.17g is not %.17g", found, wanted);
}

/* ---- statuses ---- */

static void one_wrong_element_is_named_with_both_values_and_bits(void **state)
{
    static const float a[] = {1, 2, 3.5f, 4}, b[] = {1, 2, 3, 4};
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 4);
    add_floats(&f->b, "x", b, 4);
    run(f);
    assert_false(marey_diff_is_same(f->diff));
    expect_status(f, 0, "different");
    assert_int_equal(cell(f, "tensors", 0, "n_wrong").as.u64, 1);
    expect_near(cell(f, "tensors", 0, "max_abs").as.f64, 0.5, 0);
    expect_text(f, "first", 0, "path", "x");
    expect_text(f, "first", 0, "index", "[2]");
    expect_text(f, "first", 0, "a", "3.5");
    expect_text(f, "first", 0, "b", "3");
    expect_text(f, "first", 0, "bits_a", "0x40600000");
    expect_text(f, "first", 0, "bits_b", "0x40400000");
    assert_int_equal(cell(f, "first", 0, "step").as.u64, 3);
}

static void what_is_within_the_default_tolerance_is_close(void **state)
{
    static const float a[] = {1.000001f}, b[] = {1};
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 1);
    add_floats(&f->b, "x", b, 1);
    run(f);
    assert_true(marey_diff_is_same(f->diff));
    expect_status(f, 0, "close");
}

static void a_nan_against_a_number_differs_and_against_a_nan_does_not(void **state)
{
    static const float a[] = {NAN, NAN}, b[] = {NAN, 1};
    struct fixture *f = *state;
    add_floats(&f->a, "both", a, 1);
    add_floats(&f->b, "both", b, 1);
    add_floats(&f->a, "one", a + 1, 1);
    add_floats(&f->b, "one", b + 1, 1);
    run(f);
    expect_status(f, 0, "same");
    expect_status(f, 1, "different");
    expect_text(f, "first", 0, "path", "one");
    expect_text(f, "first", 0, "a", "NaN");
}

static void nans_differ_when_asked_even_with_equal_digests(void **state)
{
    static const float a[] = {NAN};
    struct fixture *f = *state;
    f->options.nan_differs = 1;
    set_digest(&f->a, add_floats(&f->a, "x", a, 1), 1);
    set_digest(&f->b, add_floats(&f->b, "x", a, 1), 1);
    run(f);
    expect_status(f, 0, "different");
}

static void zeroes_of_two_signs_differ_bitwise_alone(void **state)
{
    static const float a[] = {-0.0f}, b[] = {0.0f};
    static const struct marey_tolerance bitwise = {.bitwise = 1, .nan_equal = 1};
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 1);
    add_floats(&f->b, "x", b, 1);
    run(f);
    assert_true(marey_diff_is_same(f->diff));
    marey_diff_close(f->diff);
    f->options.tolerance = &bitwise;
    run(f);
    expect_status(f, 0, "different");
}

static void infinities_of_two_signs_differ(void **state)
{
    static const float a[] = {INFINITY}, b[] = {-INFINITY};
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 1);
    add_floats(&f->b, "x", b, 1);
    run(f);
    expect_status(f, 0, "different");
}

static void integers_past_the_doubles_are_compared_exactly(void **state)
{
    static const int64_t a[] = {INT64_C(9007199254740993)}, b[] = {INT64_C(9007199254740992)};
    struct fixture *f = *state;
    add_made(&f->a, "x", MAREY_I64, a, 1);
    add_made(&f->b, "x", MAREY_I64, b, 1);
    run(f);
    expect_status(f, 0, "different");
    expect_text(f, "first", 0, "a", "9007199254740993");
}

static void a_changed_shape_or_kind_differs(void **state)
{
    static const float a[] = {1, 2};
    struct fixture *f = *state;
    add_floats(&f->a, "shape", a, 2);
    add_floats(&f->b, "shape", a, 1);
    add_floats(&f->a, "kind", a, 2);
    struct marey_dumped_value *text = &f->b.values[add_floats(&f->b, "kind", a, 1)];
    *text = (struct marey_dumped_value){
        .name = "kind", .kind = MAREY_DUMP_TEXT, .text = "none", .text_len = 4};
    run(f);
    expect_status(f, 0, "shape");
    expect_status(f, 1, "kind");
    expect_text(f, "first", 0, "a", "[2]");
    expect_text(f, "first", 0, "b", "[1]");
}

static void another_type_differs_unless_allowed_and_its_numbers_are_not_rounded(void **state)
{
    static const float a[] = {1.001f};
    static const uint16_t b[] = {0x3f80}; /* 1 in bfloat16 */
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 1);
    add_made(&f->b, "x", MAREY_BF16, b, 1);
    run(f);
    expect_status(f, 0, "dtype");
    expect_text(f, "first", 0, "a", "float32");
    expect_text(f, "first", 0, "b", "bfloat16");
    marey_diff_close(f->diff);
    f->options.allow_dtype = 1;
    run(f);
    expect_status(f, 0, "close");
    assert_true(marey_diff_is_same(f->diff));
}

static void missing_and_extra_names_differ_unless_allowed(void **state)
{
    static const float a[] = {1};
    struct fixture *f = *state;
    add_floats(&f->a, "both", a, 1);
    add_floats(&f->a, "new", a, 1);
    add_floats(&f->b, "both", a, 1);
    add_floats(&f->b, "old", a, 1);
    run(f);
    assert_false(marey_diff_is_same(f->diff));
    expect_status(f, 1, "extra");
    expect_status(f, 2, "missing");
    marey_diff_close(f->diff);
    f->options.allow_missing = f->options.allow_extra = 1;
    run(f);
    assert_true(marey_diff_is_same(f->diff));
    assert_int_equal(marey_table_n_rows(marey_diff_table(f->diff, "first")), 0);
}

static void the_last_rule_that_matches_has_the_tolerance(void **state)
{
    static const float a[] = {1.5f}, b[] = {1};
    static const struct marey_diff_rule rules[] = {
        {"*", {.abs = 1, .nan_equal = 1}},
        {"y*", {.abs = 0, .nan_equal = 1}},
    };
    struct fixture *f = *state;
    f->options.rules = rules;
    f->options.n_rules = 2;
    add_floats(&f->a, "x", a, 1);
    add_floats(&f->b, "x", b, 1);
    add_floats(&f->a, "y", a, 1);
    add_floats(&f->b, "y", b, 1);
    run(f);
    expect_status(f, 0, "close");
    expect_status(f, 1, "different");
}

/* ---- what was kept in place of numbers ---- */

static void equal_digests_are_not_read(void **state)
{
    static const float a[] = {1}, b[] = {2};
    struct fixture *f = *state;
    /* The numbers differ, which nobody can know who does not read them. */
    set_digest(&f->a, add_floats(&f->a, "x", a, 1), 1);
    set_digest(&f->b, add_floats(&f->b, "x", b, 1), 1);
    run(f);
    expect_status(f, 0, "same");
    expect_text(f, "tensors", 0, "basis", "digest");
}

static void digests_alone_tell_that_something_differs(void **state)
{
    static const float a[] = {1};
    struct fixture *f = *state;
    set_digest(&f->a, add_floats(&f->a, "x", a, 1), 1);
    set_digest(&f->b, add_floats(&f->b, "x", a, 1), 2);
    f->a.values[0].has_data = f->b.values[0].has_data = 0;
    run(f);
    expect_status(f, 0, "different");
    expect_text(f, "tensors", 0, "basis", "digest");
    assert_true(cell(f, "tensors", 0, "n_wrong").is_null);
    assert_int_equal(marey_table_n_rows(marey_diff_table(f->diff, "warnings")), 1);
}

static void statistics_are_compared_with_those_of_numbers(void **state)
{
    static const float a[] = {1, 2, 3}, b[] = {1, 2, 3}, c[] = {1, 2, 30};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        const size_t at = add_floats(&f->a, i == 0 ? "same" : "other", i == 0 ? a : c, 3);
        assert_int_equal(marey_tensor_stats_get(&f->a.tensors[at], &f->a.stats[at]), MAREY_OK);
        f->a.values[at].stats = &f->a.stats[at];
        f->a.values[at].has_data = 0;
        add_floats(&f->b, i == 0 ? "same" : "other", b, 3);
    }
    run(f);
    expect_status(f, 0, "same");
    expect_status(f, 1, "different");
    expect_text(f, "tensors", 1, "basis", "stats");
}

static void what_was_dropped_is_not_known_and_the_answer_is_partial(void **state)
{
    static const float a[] = {1};
    struct fixture *f = *state;
    add_floats(&f->a, "x", a, 1);
    add_floats(&f->b, "x", a, 1);
    f->a.values[0].has_data = 0;
    f->a.values[0].missing = "dropped";
    run(f);
    expect_status(f, 0, "unknown");
    assert_true(marey_diff_is_same(f->diff));
    assert_true(marey_diff_is_partial(f->diff));
}

/* A MiB and a half, in two blocks, one number of the second changed. */
static void only_blocks_that_differ_are_read(void **state)
{
    enum { N = 3 << 17 };
    struct fixture *f = *state;
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    struct marey_digest blocks[2][2];
    struct marey_tensor_diff whole;
    for (size_t i = 0; i < N; i++)
        a[i] = b[i] = (float)(i % 1000) - 500;
    a[N - 5] += 1;
    struct made_side *sides[] = {&f->a, &f->b};
    for (size_t s = 0; s < 2; s++) {
        add_floats(sides[s], "x", s == 0 ? a : b, N);
        struct marey_dumped_value *value = &sides[s]->values[0];
        if (marey_tensor_digest(&sides[s]->tensors[0], &sides[s]->digests[0], blocks[s]) != MAREY_OK) {
            free(a);
            free(b);
            skip(); /* a build without xxHash */
        }
        assert_int_equal(marey_tensor_stats_get(&sides[s]->tensors[0], &sides[s]->stats[0]),
                         MAREY_OK);
        value->digest = &sides[s]->digests[0];
        value->blocks = blocks[s];
        value->n_blocks = 2;
        value->stats = &sides[s]->stats[0];
    }
    const struct marey_tolerance t = marey_tolerance_default(MAREY_F32, MAREY_F32);
    assert_int_equal(marey_tensor_compare(&f->a.tensors[0], &f->b.tensors[0], &t, &whole), MAREY_OK);
    a[7] = 1e9f; /* in the first block, whose digests are those of before */
    run(f);
    free(a);
    free(b);
    const struct marey_tensor_diff *found = &f->diff->results[0].diff;
    assert_int_equal(found->n_wrong, 1);
    assert_int_equal(found->first_wrong, N - 5);
    assert_int_equal(found->abs.index, whole.abs.index);
    expect_near(found->rmse, whole.rmse, 1e-9);
    expect_near(found->mean_abs, whole.mean_abs, 1e-9);
    expect_near(found->cosine, whole.cosine, 1e-7);
    expect_near(found->snr_db, whole.snr_db, 1e-4);
    expect_near(found->needs_abs, whole.needs_abs, 1e-9);
}

/* Enough of them that they are shared out among threads. */
static void threads_compare_each_pair_once(void **state)
{
    enum { N = 1 << 16, N_PAIRS = 16 };
    static const char *const names[N_PAIRS] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                               "i", "j", "k", "l", "m", "n", "o", "p"};
    struct fixture *f = *state;
    float *a = calloc((size_t)N * N_PAIRS, sizeof *a), *b = calloc(N, sizeof *b);
    f->options.n_jobs = 4;
    for (size_t i = 0; i < N_PAIRS; i++) {
        a[i * N + 100 * i] = 1;
        add_floats(&f->a, names[i], a + i * N, N);
        add_floats(&f->b, names[i], b, N);
    }
    run(f);
    free(a);
    free(b);
    assert_int_equal(f->diff->n_by_status[MAREY_DIFF_DIFFERENT], N_PAIRS);
    for (size_t i = 0; i < N_PAIRS; i++) {
        assert_string_equal(f->diff->results[i].path, names[i]);
        assert_int_equal(f->diff->results[i].diff.first_wrong, 100 * i);
    }
}

/* ---- noise ---- */

static void what_two_references_differ_by_is_noise(void **state)
{
    static const float a[] = {1.2f}, b[] = {1}, c[] = {1.1f}, far[] = {1.5f};
    struct fixture *f = *state;
    add_floats(&f->a, "near", a, 1);
    add_floats(&f->a, "far", far, 1);
    for (int i = 0; i < 2; i++) {
        add_floats(&f->b, i == 0 ? "near" : "far", b, 1);
        add_floats(&f->noise, i == 0 ? "near" : "far", c, 1);
    }
    run(f);
    expect_status(f, 0, "noise");
    expect_status(f, 1, "different");
    expect_near(cell(f, "tensors", 0, "noise_abs").as.f64, 0.1, 1e-6);
}

/* ---- order ---- */

static void the_first_difference_is_that_of_execution(void **state)
{
    static const float a[] = {1}, b[] = {2};
    static const char *const names[] = {"grad", "step", "forward"};
    static const char *const phases[] = {"backward", "optimizer", "forward"};
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        f->a.values[add_floats(&f->a, names[i], a, 1)].phase = phases[i];
        add_floats(&f->b, names[i], b, 1);
    }
    run(f);
    expect_text(f, "first", 0, "path", "forward");
    expect_text(f, "tensors", 1, "path", "grad");
    expect_text(f, "tensors", 2, "path", "step");
}

static void the_operation_with_agreeing_inputs_is_the_one(void **state)
{
    static const float one[] = {1}, near[] = {1.000001f}, two[] = {2}, three[] = {3};
    struct fixture *f = *state;
    add_floats(&f->a, "net.first.in", near, 1);
    add_floats(&f->b, "net.first.in", one, 1);
    add_floats(&f->a, "net.first.out", two, 1);
    add_floats(&f->b, "net.first.out", three, 1);
    add_floats(&f->a, "net.second.in[0]", two, 1);
    add_floats(&f->b, "net.second.in[0]", three, 1);
    add_floats(&f->a, "net.second.out", one, 1);
    add_floats(&f->b, "net.second.out", two, 1);
    run(f);
    assert_int_equal(marey_table_n_rows(marey_diff_table(f->diff, "operations")), 1);
    expect_text(f, "operations", 0, "operation", "net.first");
    expect_text(f, "operations", 0, "output", "net.first.out");
    const double in = cell(f, "operations", 0, "error_in").as.f64;
    expect_near(in, 1e-6, 1e-7);
    expect_near(cell(f, "operations", 0, "growth").as.f64, 1.0 / 3 / in, 1e3);
}

static void parameters_are_inputs(void **state)
{
    static const float one[] = {1}, two[] = {2};
    struct fixture *f = *state;
    static const char *const names[] = {"l.in", "l.param.weight", "l.out"};
    for (int i = 0; i < 3; i++) {
        add_floats(&f->a, names[i], one, 1);
        add_floats(&f->b, names[i], i == 0 ? one : two, 1);
    }
    run(f);
    assert_int_equal(marey_table_n_rows(marey_diff_table(f->diff, "operations")), 0);
    expect_text(f, "first", 0, "path", "l.param.weight");
}

/* A gradient of other activations is another one, though the gradient that came in is the same. */
static void a_backward_pass_is_innocent_where_the_forward_pass_differed(void **state)
{
    static const float one[] = {1}, two[] = {2};
    static const struct {
        const char *name, *phase;
        bool differs;
    } values[] = {{"l.in", "forward", true},         {"l.out", "forward", false},
                  {"l.grad_out", "backward", false}, {"l.grad.weight", "backward", true},
                  {"m.in", "forward", false},        {"m.out", "forward", false},
                  {"m.grad_out", "backward", false}, {"m.grad_in", "backward", true}};
    struct fixture *f = *state;
    for (size_t i = 0; i < MAREY__COUNT_OF(values); i++) {
        f->a.values[add_floats(&f->a, values[i].name, one, 1)].phase = values[i].phase;
        f->b.values[add_floats(&f->b, values[i].name, values[i].differs ? two : one, 1)].phase =
            values[i].phase;
    }
    run(f);
    assert_int_equal(marey_table_n_rows(marey_diff_table(f->diff, "operations")), 1);
    expect_text(f, "operations", 0, "operation", "m");
    expect_text(f, "operations", 0, "output", "m.grad_in");
}

static void roles_are_read_from_paths(void **state)
{
    size_t len = 0;
    (void)state;
    assert_int_equal(marey__diff_role("a.b.in[0].x", &len), MAREY__DIFF_INPUT);
    assert_int_equal(len, 3);
    assert_int_equal(marey__diff_role("out", &len), MAREY__DIFF_OUTPUT);
    assert_int_equal(len, 0);
    assert_int_equal(marey__diff_role("a.grad_in[1]", &len), MAREY__DIFF_OUTPUT);
    assert_int_equal(len, 1);
    assert_int_equal(marey__diff_role("a.inner.weight", &len), MAREY__DIFF_NO_ROLE);
}

/* ---- memory ---- */

static void each_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    static const float a[] = {1, 2}, b[] = {1, 3};
    struct fixture *f = *state;
    add_floats(&f->a, "x.in", b, 2);
    add_floats(&f->b, "x.in", b, 2);
    add_floats(&f->a, "x.out", a, 2);
    add_floats(&f->b, "x.out", b, 2);
    add_floats(&f->a, "gone", a, 1);
    f->a.values[0].phase = f->a.values[0].source = "text";
    f->a.values[1].missing = NULL;
    for (uint64_t n = 1;; n++) {
        f->diff = NULL;
        marey__alloc_fail_nth(n);
        const marey_status status = run_sides(f);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        marey_diff_close(f->diff);
        assert_true(n < 1000);
    }
    expect_text(f, "first", 0, "path", "x.out");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_wrong_element_is_named_with_both_values_and_bits),
        TEST(what_is_within_the_default_tolerance_is_close),
        TEST(a_nan_against_a_number_differs_and_against_a_nan_does_not),
        TEST(nans_differ_when_asked_even_with_equal_digests),
        TEST(zeroes_of_two_signs_differ_bitwise_alone),
        TEST(infinities_of_two_signs_differ),
        TEST(integers_past_the_doubles_are_compared_exactly),
        TEST(a_changed_shape_or_kind_differs),
        TEST(another_type_differs_unless_allowed_and_its_numbers_are_not_rounded),
        TEST(missing_and_extra_names_differ_unless_allowed),
        TEST(the_last_rule_that_matches_has_the_tolerance),
        TEST(equal_digests_are_not_read),
        TEST(digests_alone_tell_that_something_differs),
        TEST(statistics_are_compared_with_those_of_numbers),
        TEST(what_was_dropped_is_not_known_and_the_answer_is_partial),
        TEST(only_blocks_that_differ_are_read),
        TEST(threads_compare_each_pair_once),
        TEST(what_two_references_differ_by_is_noise),
        TEST(the_first_difference_is_that_of_execution),
        TEST(the_operation_with_agreeing_inputs_is_the_one),
        TEST(a_backward_pass_is_innocent_where_the_forward_pass_differed),
        TEST(parameters_are_inputs),
        TEST(roles_are_read_from_paths),
        TEST(each_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
