/* The memory report: growth, and reading files of other tools. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/memory/internal.h"
#include "codec/internal.h"
#include "import/stacks/internal.h"
#include "tensor/dumpfile/internal.h"

/* ---- lines ---- */

static void a_line_is_found_in_spite_of_outliers(void **state)
{
    enum { N = 60 };
    double y[N];
    struct marey__memory_line line;
    (void)state;
    for (size_t i = 0; i < N; i++)
        y[i] = 100 + 7 * (double)i + (i % 10 == 3 ? 1e6 : 0);
    assert_true(marey__memory_line(y, N, &line));
    assert_true(fabs(line.slope - 7) < 1e-9 && line.low <= 7 && line.high >= 7 && line.low > 0);
    for (size_t i = 0; i < N; i++)
        y[i] = i % 2 == 0 ? 10 : 20;
    assert_true(marey__memory_line(y, N, &line));
    assert_true(line.slope == 0 && line.low <= 0 && line.high >= 0);
}

/* ---- pickles ---- */

static void mistakes_in_pickles_are_reported(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *mistake;
    } cases[] = {
#define CASE(text, mistake) {text, sizeof text - 1, mistake}
        CASE("", "it ends in the middle of a value"),
        CASE("\x80\x01.", "it is not a pickle of protocol 2 to 5"),
        CASE("\x80\x04", "it ends in the middle of a value"),
        CASE("\x80\x04.", "it ends with more than one value, or none"),
        CASE("\x80\x04NN.", "it ends with more than one value, or none"),
        CASE("\x80\x04(N.", "it ends with more than one value, or none"),
        CASE("\x80\x04X\xff\xff\xff\xff", "it ends in the middle of a value"),
        CASE("\x80\x04t.", "it goes back to a mark that it did not set"),
        CASE("\x80\x04\x86.", "it takes more values than there are"),
        CASE("\x80\x04N(\x85.", "it takes more values than there are"),
        CASE("\x80\x04}(Nu.", "it has a key without a value"),
        CASE("\x80\x04NNa.", "it adds to something that is not its own list or dict"),
        CASE("\x80\x04](a.", "it adds to something that is not its own list or dict"),
        CASE("\x80\x04h\x00.", "it asks for a value that it did not remember"),
        CASE("\x80\x04q\x00.", "it remembers a value that is not there"),
        CASE("\x80\x04Nr\xff\xff\xff\x7f.", "memo indices are not consecutive"),
        CASE("\x80\x04"
             "c"
             "os\nsystem\n.",
             "it makes objects, and a plain pickle has only numbers, texts, lists and dicts"),
    };
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        struct marey__python_values pickle;
        assert_false(marey__unpickle(&pickle, cases[i].bytes, cases[i].len));
        assert_non_null(pickle.mistake);
        assert_string_equal(pickle.mistake, cases[i].mistake);
        marey__python_values_fini(&pickle);
    }
}

static void values_of_a_pickle_are_those_that_went_in(void **state)
{
    /* {"a": [1, -2, 300, 1 << 40, True, None, 0.5], "b": ("x", that list)}, protocol 4, by hand. */
    static const char bytes[] = "\x80\x04}\x94(\x8c\x01"
                                "a]\x94(K\x01J\xfe\xff\xff\xffM\x2c\x01\x8a\x06\0\0\0\0\0\x01"
                                "\x88NG\x3f\xe0\0\0\0\0\0\0e\x8c\x01"
                                "b\x8c\x01xh\x01\x86u.";
    struct marey__python_values pickle;
    size_t len;
    int64_t number;
    double real;
    (void)state;
    assert_true(marey__unpickle(&pickle, bytes, sizeof bytes - 1));
    const struct marey__python_value *const top = &pickle.values[pickle.top],
                                            *const a = marey__python_get(&pickle, top, "a"),
                                            *const b = marey__python_get(&pickle, top, "b");
    static const int64_t expected[] = {1, -2, 300, INT64_C(1) << 40};
    assert_int_equal(marey__python_length(a), 7);
    for (size_t i = 0; i < MAREY__COUNT_OF(expected); i++) {
        assert_true(marey__python_whole(marey__python_item(&pickle, a, i), &number));
        assert_true(number == expected[i]);
    }
    assert_true(marey__python_number(marey__python_item(&pickle, a, 6), &real) && real == 0.5);
    assert_false(marey__python_number(marey__python_item(&pickle, a, 5), &real));
    assert_ptr_equal(marey__python_item(&pickle, b, 1), a);
    assert_memory_equal(marey__python_text(marey__python_item(&pickle, b, 0), &len), "x", 1);
    assert_null(marey__python_get(&pickle, a, "a"));
    marey__python_values_fini(&pickle);
}

/* ---- reports, with each allocation failed once ---- */

static void open_corpus(const char *name, struct marey__map *map)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", MAREY_CORPUS, name);
    assert_int_equal(marey__map_open(path, map), MAREY_OK);
}

static void survive(const char *name)
{
    struct marey__map map;
    open_corpus(name, &map);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey__memory_report_bytes("snapshot", map.data, map.len, &report);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && report == NULL));
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    marey__map_close(&map);
}

static void snapshots_survive_a_lack_of_memory(void **state)
{
    (void)state;
    survive("snapshot/4.pickle");
    survive("snapshot/marks.pickle"); /* with phases and iterations */
}

static void reports_of_logs_survive_a_lack_of_memory(void **state)
{
    char path[512];
    marey_recording *recording = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s/held/samples.klog", MAREY_CORPUS);
    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_report_create("memory", &recording, 1, NULL, &report);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && report == NULL));
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    marey_recording_close(recording);
}

static void functions_are_found_by_their_addresses(void **state)
{
    struct marey__map map;
    struct marey__elf_files files = {0};
    struct marey__elf_symbol *symbols;
    char path[512];
    size_t n;
    (void)state;
    open_corpus("elf/two.elf", &map);
    marey__alloc_fail_nth(1);
    assert_false(marey__elf_symbols(map.data, map.len, &symbols, &n));
    marey__alloc_fail_nth(0);
    for (size_t len = 0; len < map.len; len++) { /* cut off anywhere, it has none or some */
        assert_true(marey__elf_symbols(map.data, len, &symbols, &n));
        marey__free(symbols);
    }
    marey__map_close(&map);
    snprintf(path, sizeof path, "%s/elf/two.elf", MAREY_CORPUS);
    assert_string_equal(marey__elf_function(&files, path, 0x1003, UINT64_MAX), "main");
    assert_string_equal(marey__elf_function(&files, path, 0x1010, UINT64_MAX), "work");
    assert_null(marey__elf_function(&files, path, 0x1020, UINT64_MAX));
    assert_null(marey__elf_function(&files, "/no/such/file", 0x1000, UINT64_MAX));
    marey__elf_files_fini(&files);
    files = (struct marey__elf_files){0};
    assert_null(marey__elf_function(&files, path, 0x1003, 1)); /* it is younger than the run */
    assert_int_equal(files.n_newer, 1);
    marey__elf_files_fini(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_in_spite_of_outliers),
        cmocka_unit_test(mistakes_in_pickles_are_reported),
        cmocka_unit_test(values_of_a_pickle_are_those_that_went_in),
        cmocka_unit_test(snapshots_survive_a_lack_of_memory),
        cmocka_unit_test(reports_of_logs_survive_a_lack_of_memory),
        cmocka_unit_test(functions_are_found_by_their_addresses),
    };
    return cmocka_run_group_tests_name("memory_report", tests, NULL, NULL);
}
