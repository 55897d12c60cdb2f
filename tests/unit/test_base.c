/* base: buffers, UTF-8 and JSON, checksums, errors, sentences, allocation that fails on request. */
#include <errno.h>

#include "scratch.h"

static void assert_utf8(const char *bytes, size_t len, const char *expected)
{
    struct marey__buf buf = {0};
    marey__utf8_put(&buf, bytes, len);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, expected);
    marey__buf_fini(&buf);
}

static void invalid_utf8_becomes_replacement_characters(void **state)
{
    (void)state;
    assert_utf8("plain", 5, "plain");
    assert_utf8("\xe2\x82\xac", 3, "\xe2\x82\xac");
    assert_utf8("\xff", 1, "\xef\xbf\xbd");
    assert_utf8("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd");                 /* cut short */
    assert_utf8("\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd");                 /* too long a form */
    assert_utf8("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* half of a pair */
    assert_utf8("\xf4\x90\x80\x80", 4,
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* past the last */
}

static void json_escapes_what_it_must(void **state)
{
    (void)state;
    struct marey__buf buf = {0};
    marey__json_put(&buf, "a\"b\\c\nd\0e\x7f\xff", 11);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, "\"a\\\"b\\\\c\\nd\\u0000e\\u007f\\ufffd\"");
    marey__buf_fini(&buf);
}

static void assert_escaped(const char *text, size_t len, const char *expected)
{
    char into[128];
    assert_int_equal(marey_text_escape(text, len, into, sizeof into), strlen(expected));
    assert_string_equal(into, expected);
}

static void nothing_that_a_terminal_obeys_is_left(void **state)
{
    (void)state;
    assert_escaped("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
    assert_escaped("a\nb\tc\0d", 7, "a\\nb\\tc\\x00d");
    assert_escaped("\x1b]0;x\x07\x7f", 7, "\\x1b]0;x\\x07\\x7f");
    assert_escaped("\xc2\x9b"
                   "31m",
                   5, "\\x9b31m"); /* CSI as one character */
    assert_escaped("\x9b"
                   "31m",
                   4,
                   "\xef\xbf\xbd"
                   "31m"); /* and as one byte */
    assert_escaped("\xe2\x80\xaegnp.\xe2\x81\xa6", 10, "\\u202egnp.\\u2066");
    assert_escaped("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8", 11,
                   "\\u200e\\u200f\\u061c\\u2028");
    assert_escaped("\xf0\x9f\x9a\x80", 4, "\xf0\x9f\x9a\x80");
    assert_escaped("", 0, "");
}

static void what_does_not_fit_is_cut_between_characters(void **state)
{
    char into[8];
    (void)state;
    assert_int_equal(marey_text_escape("abc\x1bxy", 6, into, sizeof into), 9);
    assert_string_equal(into, "abc\\x1b");
    assert_int_equal(marey_text_escape("abcd\x1bxy", 7, into, sizeof into), 10);
    assert_string_equal(into, "abcd"); /* nor anything after the cut */
    assert_int_equal(marey_text_escape("abc", 3, NULL, 0), 3);
    assert_int_equal(marey_text_escape("abc", 3, into, 1), 3);
    assert_string_equal(into, "");
}

static void names_in_errors_are_escaped(void **state)
{
    (void)state;
    assert_int_equal(marey__fail(MAREY_EINVAL, "no file %s", "\x1b[2J\n"), MAREY_EINVAL);
    assert_string_equal(marey_last_error(), "no file \\x1b[2J\\n");
}

static void checksums_are_those_of_the_standard(void **state)
{
    (void)state;
    assert_int_equal(marey__crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(marey__crc32c(0, "", 0), 0);
    /* In pieces as in one. */
    assert_int_equal(marey__crc32c(marey__crc32c(0, "12345", 5), "6789", 4), 0xe3069283u);
}

static void a_buffer_without_memory_stays_failed(void **state)
{
    (void)state;
    struct marey__buf buf = {0};
    marey__buf_puts(&buf, "before");
    marey__alloc_fail_nth(1);
    char large[1000] = {0};
    marey__buf_put(&buf, large, sizeof large);
    assert_true(buf.failed);
    marey__buf_puts(&buf, "after");
    assert_int_equal(buf.len, 6);
    marey__buf_fini(&buf);
    assert_false(buf.failed);
}

static void long_text_is_printed_whole(void **state)
{
    (void)state;
    struct marey__buf buf = {0};
    marey__buf_printf(&buf, "%01000d|", 7);
    assert_int_equal(buf.len, 1001);
    assert_memory_equal(buf.data + 998, "07|", 3);
    marey__buf_fini(&buf);
}

static void an_array_that_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    int *array = NULL;
    size_t cap = 0;
    assert_true(marey__grow(&array, &cap, 3, sizeof *array));
    array[2] = 7;
    const size_t before = cap;
    assert_false(marey__grow(&array, &cap, SIZE_MAX / 2, sizeof *array));
    marey__alloc_fail_nth(1);
    assert_false(marey__grow(&array, &cap, 1000, sizeof *array));
    assert_int_equal(cap, before);
    assert_int_equal(array[2], 7);
    marey__free(array);
}

static void an_error_keeps_its_sentence_and_its_errno(void **state)
{
    (void)state;
    errno = ENOSPC;
    assert_int_equal(marey__fail_errno("write %s", "log"), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "write log: No space left on device"));
    assert_int_equal(errno, ENOSPC);
    errno = ENOMEM;
    assert_int_equal(marey__fail_errno("map"), MAREY_ENOMEM);
    assert_string_equal(marey_status_name(MAREY_EFORMAT), "MAREY_EFORMAT");
    assert_string_equal(marey_status_name((marey_status)99), "MAREY_?");
}

static void count_sentence(void *ctx, const char *sentence)
{
    (void)sentence;
    ++*(int *)ctx;
}

static void each_sentence_is_said_once(void **state)
{
    (void)state;
    int n = 0;
    marey_set_sink(count_sentence, &n);
    for (int i = 0; i < 3; i++)
        marey__say("the disk is full");
    marey__say("the disk is %s", "slow");
    assert_int_equal(n, 2);
    marey_set_sink(NULL, NULL);
}

struct heard {
    int n;
    char last[256];
};

static void hear(void *ctx, const char *sentence)
{
    struct heard *const heard = ctx;
    heard->n++;
    snprintf(heard->last, sizeof heard->last, "%s", sentence);
}

static void important_sentences_get_through_and_the_others_are_counted(void **state)
{
    (void)state;
    struct heard heard = {0};
    marey_set_sink(hear, &heard);
    for (int i = 0; i < 100; i++)
        marey__say("misuse number %d", i);
    assert_int_equal(heard.n, 64);
    marey__say_always("recording stopped");
    marey__say_always("recording stopped");
    assert_int_equal(heard.n, 65);
    assert_string_equal(heard.last, "recording stopped");
    marey__say_suppressed();
    assert_string_equal(heard.last, "36 more messages were not shown, after the first 64");
    marey__say_suppressed();
    assert_int_equal(heard.n, 66);
    marey_set_sink(NULL, NULL);
}

static void text_is_appended_as_far_as_it_fits(void **state)
{
    (void)state;
    char text[8] = "";
    size_t len = 0;
    for (int i = 0; i < 5; i++)
        marey__append(text, sizeof text, &len, "%d, ", i);
    assert_string_equal(text, "0, 1, 2");
    assert_int_equal(len, 7);
}

/* Numbers with random keys, some changed, some removed: the lowest always comes first. */
static void a_heap_gives_the_lowest_key_first(void **state)
{
    (void)state;
    enum { N = 500 };
    struct marey__heap heap = {0};
    uint64_t keys[N], random = 1;
    for (uint32_t i = 0; i < 4 * N; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t number = i < N ? i : (uint32_t)(random >> 33) % N;
        keys[number] = random >> 50 & 63;
        assert_true(marey__heap_put(&heap, number, keys[number]));
    }
    assert_int_equal(heap.n, N);
    for (uint32_t number = 0; number < N; number += 3)
        marey__heap_remove(&heap, number);
    uint64_t last_key = 0;
    uint32_t last_number = 0;
    for (size_t n = heap.n; n > 0; n--) {
        const struct marey__heap_item first = heap.items[0];
        assert_true(first.number % 3 != 0);
        assert_int_equal(first.key, keys[first.number]);
        assert_true(first.key > last_key || (first.key == last_key && first.number >= last_number));
        last_key = first.key;
        last_number = first.number;
        marey__heap_remove(&heap, first.number);
    }
    assert_int_equal(heap.n, 0);
    marey__heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_gives_the_lowest_key_first),
        cmocka_unit_test(invalid_utf8_becomes_replacement_characters),
        cmocka_unit_test(json_escapes_what_it_must),
        cmocka_unit_test(nothing_that_a_terminal_obeys_is_left),
        cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
        cmocka_unit_test(names_in_errors_are_escaped),
        cmocka_unit_test(checksums_are_those_of_the_standard),
        cmocka_unit_test(a_buffer_without_memory_stays_failed),
        cmocka_unit_test(long_text_is_printed_whole),
        cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_was),
        cmocka_unit_test(an_error_keeps_its_sentence_and_its_errno),
        cmocka_unit_test(each_sentence_is_said_once),
        cmocka_unit_test(important_sentences_get_through_and_the_others_are_counted),
        cmocka_unit_test(text_is_appended_as_far_as_it_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
