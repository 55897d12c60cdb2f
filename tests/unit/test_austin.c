/* Profiles of austin, as text and as bytes, read as recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/stacks/internal.h"
#include "importing.h"

#define MS UINT64_C(1000000)
#define HEAD "# austin: 3.7.0\n# interval: 10000\n# mode: wall\n\n"

/* Version 3: two texts, a frame of them, a sample of that frame; 10 ms. Thread 0x1f. */
#define MOJO                                                                                       \
    "MOJ\x03"                                                                                      \
    "\x01mode\0wall\0"                                                                             \
    "\x02\x05\x00"                                                                                 \
    "1f\0"                                                                                         \
    "\x0b\x01"                                                                                     \
    "a.py\0"                                                                                       \
    "\x0b\x02"                                                                                     \
    "main\0"                                                                                       \
    "\x03\x03\x01\x02\x07\x07\x01\x05"                                                             \
    "\x05\x03"                                                                                     \
    "\x09\x90\x9c\x01"

static marey_recording *read_text(const char *text)
{
    return import_text(&marey__import_austin, text);
}

static marey_report *summarise(const char *text)
{
    return summary_of(read_text(text));
}

static bool looks_like(const char *text)
{
    return marey__import_austin.looks_like(text, strlen(text));
}

static marey_recording *read_mojo(const void *bytes, size_t len)
{
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_austin, bytes, len, 0, &recording), MAREY_OK);
    return recording;
}

/* ---- text ---- */

static void what_is_of_austin_is_known(void **state)
{
    (void)state;
    assert_true(looks_like(HEAD));
    assert_true(looks_like("P1;T2;a.py:f:3 10\n"));
    assert_true(looks_like("# a: b\n\nP1;T0:2;a.py:f:3 10\n"));
    assert_true(looks_like("P1;T0x7f00aa;a.py:f:3 10\n"));
    assert_true(looks_like("MOJ\x03"));
    assert_false(looks_like("main;step 3\n"));
    assert_false(looks_like("Peter;Thomas 3\n"));
    assert_false(looks_like("P1;T2x;f 3\n"));
    assert_false(looks_like("MOJITO"));
    assert_false(looks_like(""));
}

/* A stack that stays is one range; counts are samples. */
static void samples_become_ranges_in_time(void **state)
{
    marey_report *summary = summarise(HEAD "P1;T0:2;a.py:main:3;a.py:step:9 10000\n"
                                           "P1;T0:2;a.py:main:3;a.py:step:9 10000\n"
                                           "P1;T0:2;a.py:main:4 5000\n"
                                           "P1;T0:2;a.py:main:3;a.py:step:9 10000\n");
    (void)state;
    expect_range(summary, "main", 4, 35 * MS, 5 * MS);
    expect_range(summary, "step", 3, 30 * MS, 30 * MS);
    expect_warning(summary, "4 samples of austin 3.7.0, of wall time, one each 10 ms");
    marey_report_destroy(summary);
}

/* A round's threads lie beside one another; a thread that was gone for a round is not drawn through it. */
static void rounds_are_distinguished(void **state)
{
    marey_recording *recording = read_text(HEAD "P1;T0:2;a.py:f:1 10000\n"
                                                "P1;T0:3;a.py:g:1 10000\n"
                                                "P1;T0:2;a.py:f:1 20000\n"
                                                "P1;T0:2;a.py:f:1 10000\n"
                                                "P1;T0:3;a.py:g:1 10000\n");
    char *text = exported_text(recording, "csv");
    (void)state;
    /* Thread 2 is one range of 40 ms; thread 3 two of 10 ms, the second of them 30 ms after the first began. */
    const char *first = strstr(text, ",g,"),
               *second = first != NULL ? strstr(first + 1, ",g,") : NULL;
    assert_non_null(second);
    assert_null(strstr(second + 1, ",g,"));
    free(text);
    marey_report *summary = summary_of(recording);
    expect_range(summary, "f", 3, 40 * MS, 40 * MS);
    expect_range(summary, "g", 2, 20 * MS, 20 * MS);
    marey_report_destroy(summary);
}

static void odd_frames_are_read(void **state)
{
    marey_report *summary =
        summarise(HEAD "P1;T0:2;C:\\x.py:main:3;:GC: 1000\n"
                       "P1;T0:2;a b.py:Model.forward.<locals>.<listcomp>:3;libc.so.6:read:0 2000\n"
                       "P1;T0:2 4000\n"
                       "P1;T0:2;plain 8000\n");
    (void)state;
    expect_range(summary, "GC", 1, MS, MS);
    expect_range(summary, "main", 1, MS, 0);
    expect_range(summary, "Model.forward.<locals>.<listcomp>", 1, 2 * MS, 0);
    expect_range(summary, "read", 1, 2 * MS, 2 * MS);
    expect_range(summary, "(no frames)", 1, 4 * MS, 4 * MS);
    expect_range(summary, "plain", 1, 8 * MS, 8 * MS);
    expect_warning(summary, "1 samples have no frames");
    marey_report_destroy(summary);
}

static void the_mode_full_has_three_numbers(void **state)
{
    marey_report *summary = summarise("# mode: full\n"
                                      "P1;T0:2;a.py:f:1 1000,1,-4096\n"
                                      "P1;T0:2;a.py:f:1 1000,0,4096\n"
                                      "P1;T0:2;a.py:f:1 1000,0\n");
    (void)state;
    expect_range(summary, "f", 2, 2 * MS, 2 * MS);
    expect_warning(summary, "1 idle");
    expect_warning(summary, "left out 1 lines that are not samples; the first is at line 4");
    marey_report_destroy(summary);
}

static void the_mode_memory_has_bytes(void **state)
{
    marey_report *summary = summarise("# mode: memory\n"
                                      "P1;T0:2;a.py:f:1 4096\n"
                                      "P1;T0:2;a.py:f:1 -4096\n");
    (void)state;
    expect_range(summary, "f", 2, 4096, 4096);
    expect_warning(summary, "bytes are shown as nanoseconds");
    expect_warning(summary, "1 samples released memory");
    marey_report_destroy(summary);
}

/* ---- bytes ---- */

static void bytes_are_read(void **state)
{
    const char text[] = MOJO "\x02\x05\x00"
                             "1f\0"
                             "\x05\x03\x07\x08\x09\x90\x9c\x01\x0a\x41";
    marey_report *summary = summary_of(read_mojo(text, sizeof text - 1));
    (void)state;
    expect_range(summary, "main", 2, 20 * MS, 10 * MS);
    expect_range(summary, "GC", 1, 10 * MS, 10 * MS);
    expect_warning(summary, "1 idle");
    marey_report_destroy(summary);
}

/* Keys of two processes are not the same; a key may come to mean another frame. */
static void keys_are_of_their_process(void **state)
{
    const char text[] = MOJO "\x02\x06\x00"
                             "2a\0"
                             "\x05\x03"
                             "\x09\x90\x9c\x01"
                             "\x02\x05\x00"
                             "1f\0"
                             "\x0b\x02"
                             "step\0"
                             "\x03\x03\x01\x02\x09\x09\x01\x05"
                             "\x05\x03\x09\x90\x9c\x01";
    marey_report *summary = summary_of(read_mojo(text, sizeof text - 1));
    (void)state;
    expect_range(summary, "main", 1, 10 * MS, 10 * MS);
    expect_range(summary, "step", 1, 10 * MS, 10 * MS);
    expect_range(summary, "(unknown)", 1, 10 * MS, 10 * MS);
    expect_warning(summary, "left out 1 undefined frames");
    marey_report_destroy(summary);
}

static void what_comes_before_a_mistake_is_kept(void **state)
{
    const char text[] = MOJO "\x02\x05\x00"
                             "1f\0"
                             "\x63";
    marey_report *summary = summary_of(read_mojo(text, sizeof text - 1));
    (void)state;
    expect_range(summary, "main", 1, 10 * MS, 10 * MS);
    expect_warning(summary, "an event is of no known kind");
    marey_report_destroy(summary);
}

/* A file that is truncated anywhere, or read in pieces, gives its data, or an error message. */
static void cut_files_do_no_harm(void **state)
{
    const char text[] = MOJO "\x02\x05\x00"
                             "1f\0";
    (void)state;
    for (size_t len = 4; len < sizeof text; len++) {
        marey_recording *recording = NULL;
        const marey_status status = import_bytes(&marey__import_austin, text, len, 3, &recording);
        assert_true(status == MAREY_OK || status == MAREY_EFORMAT);
        if (status == MAREY_OK)
            marey_recording_close(recording);
    }
}

static void want_of_memory_is_reported(void **state)
{
    const char mojo[] = MOJO,
               text[] = HEAD "P1;T0:2;a.py:f:1;a.py:g:2 1000\nP1;T1:2;b.py:f:1 1000\n";
    (void)state;
    fail_each_allocation(&marey__import_austin, mojo, sizeof mojo - 1);
    fail_each_allocation(&marey__import_austin, text, sizeof text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_of_austin_is_known),
        cmocka_unit_test(samples_become_ranges_in_time),
        cmocka_unit_test(rounds_are_distinguished),
        cmocka_unit_test(odd_frames_are_read),
        cmocka_unit_test(the_mode_full_has_three_numbers),
        cmocka_unit_test(the_mode_memory_has_bytes),
        cmocka_unit_test(bytes_are_read),
        cmocka_unit_test(keys_are_of_their_process),
        cmocka_unit_test(what_comes_before_a_mistake_is_kept),
        cmocka_unit_test(cut_files_do_no_harm),
        cmocka_unit_test(want_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
