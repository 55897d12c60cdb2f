/* Python profiles: all forms of marshal, and the tree derived from functions and their callers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/stacks/internal.h"
#include "importing.h"

/* ---- marshal ---- */

#define BYTES(text) text, sizeof(text) - 1

static struct marey__python_value read_one(const char *bytes, size_t len)
{
    struct marey__python_values marshal;
    assert_true(marey__unmarshal(&marshal, bytes, len));
    const struct marey__python_value value = marshal.values[marshal.top];
    marey__python_values_fini(&marshal);
    return value;
}

static void expect_integer(const char *bytes, size_t len, int64_t number)
{
    const struct marey__python_value value = read_one(bytes, len);
    assert_int_equal(value.type, MAREY__PYTHON_INT);
    assert_true(value.as.number == number);
}

static void numbers_of_all_kinds_are_read(void **state)
{
    (void)state;
    expect_integer(BYTES("i\x2a\0\0\0"), 42);
    expect_integer(BYTES("i\xff\xff\xff\xff"), -1);
    expect_integer(BYTES("\xe9\x2a\0\0\0"), 42); /* others may refer to it */
    expect_integer(BYTES("I\0\0\0\0\1\0\0\0"), INT64_C(1) << 32);
    expect_integer(BYTES("l\0\0\0\0"), 0);
    expect_integer(BYTES("l\2\0\0\0\1\0\1\0"), 32769);
    expect_integer(BYTES("l\xfe\xff\xff\xff\1\0\1\0"), -32769);
    expect_integer(BYTES("l\5\0\0\0\0\0\0\0\0\0\0\0\7\0"), INT64_C(7) << 60);
    expect_integer(BYTES("l\5\0\0\0\0\0\0\0\0\0\0\0\x08\0"), INT64_MAX);
    expect_integer(BYTES("l\xf9\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\1\0"), -INT64_MAX);
    expect_integer(BYTES("T"), 1);
    expect_integer(BYTES("F"), 0);
    struct marey__python_value real = read_one(BYTES("g\0\0\0\0\0\0\xf8\x3f"));
    assert_true(real.type == MAREY__PYTHON_FLOAT && real.as.real == 1.5);
    real = read_one(BYTES("f\4"
                          "1e-3"));
    assert_true(real.type == MAREY__PYTHON_FLOAT && real.as.real == 1e-3);
    real = read_one(BYTES("f\3"
                          "nan"));
    assert_true(isnan(real.as.real));
    assert_int_equal(read_one(BYTES("N")).type, MAREY__PYTHON_NONE);
}

static void texts_of_all_kinds_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } all[] = {{BYTES("s\2\0\0\0ab")}, {BYTES("u\2\0\0\0ab")}, {BYTES("t\2\0\0\0ab")},
               {BYTES("a\2\0\0\0ab")}, {BYTES("A\2\0\0\0ab")}, {BYTES("z\2ab")},
               {BYTES("Z\2ab")},       {BYTES("\xda\2ab")}};
    for (size_t i = 0; i < MAREY__COUNT_OF(all); i++) {
        const struct marey__python_value value = read_one(all[i].bytes, all[i].len);
        assert_int_equal(value.type, MAREY__PYTHON_TEXT);
        assert_int_equal(value.n, 2);
        assert_memory_equal(value.as.text, "ab", 2);
    }
}

/* ("x", [], ("x", <the list>), "x" as Python 2 refers to it) */
static void references_lead_to_what_was_there(void **state)
{
    (void)state;
    struct marey__python_values marshal;
    assert_true(marey__unmarshal(&marshal, BYTES("\xa9\4"
                                                 "\xf4\1\0\0\0x"
                                                 "\xdb\0\0\0\0"
                                                 "(\2\0\0\0"
                                                 "r\1\0\0\0"
                                                 "r\2\0\0\0"
                                                 "R\0\0\0\0")));
    const struct marey__python_value *all = &marshal.values[marshal.top];
    assert_int_equal(all->n, 4);
    const struct marey__python_value *pair = marey__python_item(&marshal, all, 2);
    assert_ptr_equal(marey__python_item(&marshal, pair, 0), marey__python_item(&marshal, all, 0));
    assert_ptr_equal(marey__python_item(&marshal, pair, 1), marey__python_item(&marshal, all, 1));
    assert_ptr_equal(marey__python_item(&marshal, all, 3), marey__python_item(&marshal, all, 0));
    marey__python_values_fini(&marshal);
}

static void damaged_values_are_refused(void **state)
{
    (void)state;
    static char deep[100];
    static const struct {
        const char *bytes;
        size_t len;
        const char *mistake;
    } all[] = {
        {BYTES(""), "ends in the middle"},
        {BYTES("i\1\0"), "ends in the middle"},
        {BYTES("l\xff\xff\xff\x7f\1\0"), "ends in the middle"},
        {BYTES("l\0\0\0\x80"), "ends in the middle"},
        {BYTES("s\xff\xff\xff\xff"
               "a"),
         "beyond the end"},
        {BYTES("(\xff\xff\xff\x7fN"), "beyond the end"},
        {BYTES("(\1\0\0\0"
               "0"),
         "nothing where"},
        {BYTES("0"), "nothing where"},
        {BYTES("{N0"), "a key without"},
        {BYTES("{NN"), "ends in the middle"},
        {BYTES("r\0\0\0\0"), "not there"},
        {BYTES("\xa9\1r\0\0\0\0"), "not there"}, /* to the tuple that is being read */
        {BYTES("R\0\0\0\0"), "not there"},
        {BYTES("c"), "no profile has"},
        {BYTES("{q"), "no profile has"},
        {deep, sizeof deep, "too deep"},
    };
    for (size_t i = 0; i < sizeof deep; i += 2)
        memcpy(deep + i, ")\1", 2);
    for (size_t i = 0; i < MAREY__COUNT_OF(all); i++) {
        struct marey__python_values marshal;
        assert_false(marey__unmarshal(&marshal, all[i].bytes, all[i].len));
        assert_non_null(marshal.mistake);
        if (strstr(marshal.mistake, all[i].mistake) == NULL)
            fail_msg("case %zu: %s", i, marshal.mistake);
        marey__python_values_fini(&marshal);
    }
}

/* ---- the tree ---- */

/* A call of `frame` below `parent` (a path, 0: outermost) must have these; its number comes back. */
static uint32_t expect_path(struct marey__paths *paths, uint32_t parent, uint32_t frame,
                            uint64_t calls, uint64_t self, uint64_t total)
{
    const size_t n = paths->n;
    const uint32_t path = marey__paths_child(paths, parent, frame);
    assert_int_equal(paths->n, n); /* it was there */
    assert_int_equal(paths->paths[path].calls, calls);
    assert_int_equal(paths->paths[path].self, self);
    assert_int_equal(paths->paths[path].total, total);
    return path;
}

static void make_tree(struct marey__profile *profile, struct marey__paths *paths)
{
    assert_true(marey__paths_init(paths));
    assert_true(marey__profile_expand(profile, paths));
    assert_true(marey__paths_finish(paths));
    assert_true(marey__profile_check(profile, paths));
}

/* 0 calls 1 and 2; both call 3, which calls 4. What 3 does below each is known, what 4 does below them is shared out. */
static void a_function_below_two_callers_is_shared_out(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {
        {1, 100, 1000}, {10, 50, 550}, {1, 50, 350}, {30, 200, 800}, {90, 600, 600}};
    struct marey__profiled_edge edges[] = {{0, 1, 10, 50, 550},
                                           {0, 2, 1, 50, 350},
                                           {1, 3, 20, 50, 500},
                                           {2, 3, 10, 150, 300},
                                           {3, 4, 90, 600, 600}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 5, .edges = edges, .n_edges = 5, .max_paths = 1000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    const uint32_t zero = expect_path(&paths, 0, 0, 1, 100, 1000);
    const uint32_t one = expect_path(&paths, zero, 1, 10, 50, 550);
    const uint32_t two = expect_path(&paths, zero, 2, 1, 50, 350);
    /* Time below 3 is 450 there and 150 here: 3 in 4 of the calls of 4, 67 or 68 of 90. */
    const uint32_t three = expect_path(&paths, one, 3, 20, 50, 500);
    expect_path(&paths, three, 4, 68, 450, 450);
    const uint32_t other = expect_path(&paths, two, 3, 10, 150, 300);
    expect_path(&paths, other, 4, 22, 150, 150);
    assert_int_equal(profile.n_folded, 0);
    assert_int_equal(profile.n_off, 0);
    assert_true(profile.most_off_ns == 0);
    marey__paths_fini(&paths);
}

/* fib: called once from outside and 99 times by itself; it also calls 1. */
static void recursion_goes_one_level_deep(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {{100, 700, 1000}, {50, 300, 300}};
    struct marey__profiled_edge edges[] = {{0, 0, 99, 690, 980}, {0, 1, 50, 300, 300}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 2, .edges = edges, .n_edges = 2, .max_paths = 1000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    const uint32_t fib = expect_path(&paths, 0, 0, 1, 10, 1000);
    expect_path(&paths, fib, 0, 99, 690, 690);
    expect_path(&paths, fib, 1, 50, 300, 300);
    marey__paths_fini(&paths);
}

/* Two that call one another, and nobody calls them from outside. */
static void cycles_without_a_begin_begin_somewhere(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {{10, 100, 300}, {10, 200, 300}};
    struct marey__profiled_edge edges[] = {{0, 1, 10, 200, 300}, {1, 0, 10, 100, 300}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 2, .edges = edges, .n_edges = 2, .max_paths = 1000};
    struct marey__paths paths;
    uint64_t calls[2] = {0}, self[2] = {0};
    make_tree(&profile, &paths);
    for (size_t i = 1; i < paths.n; i++) {
        calls[paths.paths[i].frame] += paths.paths[i].calls;
        self[paths.paths[i].frame] += paths.paths[i].self;
    }
    assert_true(calls[0] == 10 && calls[1] == 10 && self[0] == 100 && self[1] == 200);
    assert_int_equal(paths.paths[0].total, 300);
    marey__paths_fini(&paths);
}

/* 0 imports 1 by way of 3, and 1 imports 2 the same way: what takes longer is outside. */
static void of_a_cycle_the_longer_calls_are_outside(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {
        {1, 1000, 3001000}, {1, 1000000, 2999000}, {1, 1998000, 1998000}, {2, 1000, 3000000}};
    struct marey__profiled_edge edges[] = {{0, 3, 1, 500, 3000000},
                                           {3, 1, 1, 1000000, 2999000},
                                           {1, 3, 1, 500, 1998500},
                                           {3, 2, 1, 1998000, 1998000}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 4, .edges = edges, .n_edges = 4, .max_paths = 1000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    const uint32_t zero = expect_path(&paths, 0, 0, 1, 1000, 3000000);
    const uint32_t by = expect_path(&paths, zero, 3, 1, 500, 2999000);
    const uint32_t one = expect_path(&paths, by, 1, 1, 1000000, 2998500);
    const uint32_t again = expect_path(&paths, one, 3, 1, 500, 1998500);
    expect_path(&paths, again, 2, 1, 1998000, 1998000);
    assert_int_equal(profile.n_off, 0);
    marey__paths_fini(&paths);
}

/* As modules of PyTorch call one another: 0 the caller, 1 what calls all of them, 2 a sequence of 3 and 4. */
static void inner_calls_of_a_function_go_around_once_more(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {{1, 1000000, 11000000},
                                          {60, 600000, 10000000},
                                          {20, 400000, 9800000},
                                          {20, 7000000, 7000000},
                                          {20, 2000000, 2000000}};
    struct marey__profiled_edge edges[] = {{0, 1, 20, 200000, 10000000},
                                           {1, 2, 20, 400000, 9800000},
                                           {2, 1, 40, 400000, 9400000},
                                           {1, 3, 20, 7000000, 7000000},
                                           {1, 4, 20, 2000000, 2000000}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 5, .edges = edges, .n_edges = 5, .max_paths = 1000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    const uint32_t zero = expect_path(&paths, 0, 0, 1, 1000000, 11000000);
    const uint32_t call = expect_path(&paths, zero, 1, 20, 200000, 10000000);
    const uint32_t sequence = expect_path(&paths, call, 2, 20, 400000, 9800000);
    const uint32_t inner = expect_path(&paths, sequence, 1, 40, 400000, 9400000);
    expect_path(&paths, inner, 3, 20, 7000000, 7000000);
    expect_path(&paths, inner, 4, 20, 2000000, 2000000);
    marey__paths_fini(&paths);
}

/* Times that no nesting can have: each of two is said to be in the other for longer than that takes. */
static void totals_that_cannot_be_are_reported(void **state)
{
    (void)state;
    struct marey__profiled functions[] = {{2, 1000000, 3000000}, {2, 1000000, 9000000}};
    struct marey__profiled_edge edges[] = {{0, 1, 2, 1000000, 9000000}, {1, 0, 1, 500000, 8000000}};
    struct marey__profile profile = {
        .functions = functions, .n_functions = 2, .edges = edges, .n_edges = 2, .max_paths = 1000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    assert_int_equal(profile.n_off, 2);
    assert_int_equal(profile.most_off, 1);
    assert_int_equal(paths.paths[0].total, 2000000);
    marey__paths_fini(&paths);
}

/* Layers of functions each of which calls all of the next: the number of paths doubles with each. */
static void paths_without_number_are_bounded_and_sums_stay(void **state)
{
    (void)state;
    enum { LAYERS = 40, N = 2 * LAYERS };
    static struct marey__profiled functions[N];
    static struct marey__profiled_edge edges[4 * LAYERS];
    size_t n_edges = 0;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t layer = i / 2;
        functions[i] = (struct marey__profiled){layer + 1, 10, 10.0 * (LAYERS - layer)};
        for (uint32_t k = 0; layer > 0 && k < 2; k++)
            edges[n_edges++] = (struct marey__profiled_edge){
                2 * (layer - 1) + k, i, (layer + 1) / 2.0, 5, 5.0 * (LAYERS - layer)};
    }
    struct marey__profile profile = {.functions = functions,
                                     .n_functions = N,
                                     .edges = edges,
                                     .n_edges = n_edges,
                                     .max_paths = 5000};
    struct marey__paths paths;
    static uint64_t calls[N], self[N];
    make_tree(&profile, &paths);
    assert_in_range(paths.n, 5000, 5400);
    assert_true(profile.n_folded > 0 && profile.folded_ns > 0);
    for (size_t i = 1; i < paths.n; i++) {
        calls[paths.paths[i].frame] += paths.paths[i].calls;
        self[paths.paths[i].frame] += paths.paths[i].self;
    }
    for (size_t i = 0; i < N; i++)
        assert_true(calls[i] == functions[i].n_calls && self[i] == functions[i].self_ns);
    marey__paths_fini(&paths);
}

/* A chain that is longer than paths go. */
static void a_long_chain_goes_on_outermost(void **state)
{
    (void)state;
    enum { N = 1000 };
    static struct marey__profiled functions[N];
    static struct marey__profiled_edge edges[N];
    for (uint32_t i = 0; i < N; i++) {
        functions[i] = (struct marey__profiled){1, 1, N - i};
        if (i > 0)
            edges[i - 1] = (struct marey__profiled_edge){i - 1, i, 1, 1, N - i};
    }
    struct marey__profile profile = {
        .functions = functions, .n_functions = N, .edges = edges, .n_edges = N - 1, .max_paths = 5000};
    struct marey__paths paths;
    make_tree(&profile, &paths);
    assert_int_equal(paths.paths[0].total, N);
    marey__paths_fini(&paths);
}

/* ---- files ---- */

/* {("a.py", 3, "main"): (1, 1, 0.5, 2.0, {}), ("~", 0, "len"): (4, 4, 1.5, 1.5, {main: (4, 4, 1.5, 1.5)})} */
#define KEY_MAIN                                                                                   \
    "\xa9\3"                                                                                       \
    "\xfa\4a.py"                                                                                   \
    "\xe9\3\0\0\0"                                                                                 \
    "\xda\4main"
#define HALF "g\0\0\0\0\0\0\xe0\x3f"
#define ONE_AND_A_HALF "g\0\0\0\0\0\0\xf8\x3f"
#define TWO "g\0\0\0\0\0\0\0\x40"
static const char profile_of_two[] = "{" KEY_MAIN ")\5"
                                     "\xe9\1\0\0\0"
                                     "r\4\0\0\0" HALF TWO "{0"
                                     ")\3z\1~i\0\0\0\0z\3len"
                                     ")\5"
                                     "\xe9\4\0\0\0"
                                     "r\5\0\0\0" ONE_AND_A_HALF ONE_AND_A_HALF "{r\0\0\0\0"
                                     ")\4r\5\0\0\0r\5\0\0\0" ONE_AND_A_HALF ONE_AND_A_HALF "00";

static void a_profile_is_read(void **state)
{
    (void)state;
    marey_recording *recording = NULL;
    assert_true(marey__import_pstats.looks_like(BYTES(profile_of_two)));
    assert_int_equal(import_bytes(&marey__import_pstats, BYTES(profile_of_two), 3, &recording),
                     MAREY_OK);
    assert_string_equal(marey_recording_process(recording, 0)->source, "pstats");
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 1, 2000000000, 500000000);
    expect_range(summary, "len", 4, 1500000000, 1500000000);
    expect_warning(summary, "a.file has sums over 5 calls and no times");
    marey_report_destroy(summary);
}

/* profile (not cProfile) has the number of calls alone for a caller. Functions of one name have their place with it. */
static void callers_may_be_numbers_alone(void **state)
{
    (void)state;
    static const char bytes[] = "{" KEY_MAIN ")\5"
                                "i\1\0\0\0"
                                "i\1\0\0\0" HALF TWO "{0"
                                ")\3z\4a.pyi\x09\0\0\0z\4main"
                                ")\5"
                                "i\4\0\0\0"
                                "i\4\0\0\0" ONE_AND_A_HALF ONE_AND_A_HALF "{r\0\0\0\0"
                                "i\4\0\0\0"
                                "0"
                                ")\1z\x0b__sampled__T"
                                "0";
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_pstats, BYTES(bytes), 0, &recording), MAREY_OK);
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main (a.py:3)", 1, 2000000000, 500000000);
    expect_range(summary, "main (a.py:9)", 4, 1500000000, 1500000000);
    expect_warning(summary, "sums over 5 samples");
    marey_report_destroy(summary);
}

static void wrong_entries_are_left_out_and_reported(void **state)
{
    (void)state;
    static const char bytes[] = "{" KEY_MAIN ")\5"
                                "i\1\0\0\0"
                                "i\1\0\0\0" HALF TWO "{NN0"
                                "Ni\1\0\0\0"
                                ")\3z\1bi\1\0\0\0z\1cN"
                                "0";
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_pstats, BYTES(bytes), 0, &recording), MAREY_OK);
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 1, 500000000, 500000000);
    expect_warning(summary, "left out 3 invalid entries");
    marey_report_destroy(summary);
}

static void expect_refused(const char *bytes, size_t len, const char *sentence)
{
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_pstats, bytes, len, 0, &recording), MAREY_EFORMAT);
    if (strstr(marey_last_error(), sentence) == NULL)
        fail_msg("%s", marey_last_error());
}

static void other_files_are_refused(void **state)
{
    (void)state;
    expect_refused(BYTES("{0"), "a.file has no functions in it");
    expect_refused(BYTES("i\1\0\0\0"), "holds no dict of functions");
    expect_refused(BYTES("{\"a\": 1}"), "a damaged one: at byte 1, a type of value");
    expect_refused(profile_of_two, 20, "a damaged one: at byte 20");
    const struct marey__import_format *format = &marey__import_pstats;
    assert_true(format->looks_like(BYTES("{0")));
    assert_true(format->looks_like(BYTES("\xfb\xa9\3")));
    assert_true(format->looks_like(BYTES("{(\3\0\0\0")));
    assert_false(format->looks_like(BYTES("{\"traceEvents\":")));
    assert_false(format->looks_like(BYTES("{\n")));
    assert_false(format->looks_like(BYTES("{}")));
    assert_false(format->looks_like(BYTES("")));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each_allocation(&marey__import_pstats, BYTES(profile_of_two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_all_kinds_are_read),
        cmocka_unit_test(texts_of_all_kinds_are_read),
        cmocka_unit_test(references_lead_to_what_was_there),
        cmocka_unit_test(damaged_values_are_refused),
        cmocka_unit_test(a_function_below_two_callers_is_shared_out),
        cmocka_unit_test(recursion_goes_one_level_deep),
        cmocka_unit_test(cycles_without_a_begin_begin_somewhere),
        cmocka_unit_test(of_a_cycle_the_longer_calls_are_outside),
        cmocka_unit_test(inner_calls_of_a_function_go_around_once_more),
        cmocka_unit_test(totals_that_cannot_be_are_reported),
        cmocka_unit_test(paths_without_number_are_bounded_and_sums_stay),
        cmocka_unit_test(a_long_chain_goes_on_outermost),
        cmocka_unit_test(a_profile_is_read),
        cmocka_unit_test(callers_may_be_numbers_alone),
        cmocka_unit_test(wrong_entries_are_left_out_and_reported),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
