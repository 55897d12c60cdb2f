/* JSON in one pass: tokens, wherever the bytes are cut; what is tolerated; what is a mistake; numbers to the last digit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/internal.h"

/* ---- a text as a list of its tokens, one character and the text each ---- */

static const char letters[] = "$[(])ks#tfn!"; /* by enum marey__json_token, objects as square */

static marey_status list_all(struct marey__json *scan, struct marey__buf *out)
{
    enum marey__json_token token;
    do {
        token = marey__json_next(scan);
        marey__buf_printf(out, "%c", letters[token]);
        if (token == MAREY__JSON_KEY || token == MAREY__JSON_STRING || token == MAREY__JSON_NUMBER)
            marey__buf_printf(out, "<%.*s>", (int)scan->text_len, scan->text);
        if (token == MAREY__JSON_KEY || token == MAREY__JSON_STRING)
            assert_int_equal(scan->text[scan->text_len], 0);
        if (token == MAREY__JSON_MISTAKE)
            marey__buf_printf(out, "%s at %zu", scan->mistake, (size_t)marey__json_offset(scan));
    } while (token != MAREY__JSON_END && token != MAREY__JSON_MISTAKE);
    const marey_status status = scan->status;
    marey__json_fini(scan);
    marey__buf_put(out, "", 1);
    return status;
}

static marey_status list_tokens_by(const char *json, size_t len, size_t cut, unsigned rules,
                                   struct marey__buf *out)
{
    marey__byte_source *bytes = NULL;
    struct marey__json scan;
    MAREY_TRY(marey__bytes_open_memory(json, len, &bytes));
    marey__bytes_cut(bytes, cut);
    marey_status status = marey__json_init(&scan, bytes);
    scan.rules = rules;
    if (status == MAREY_OK)
        status = list_all(&scan, out);
    marey__bytes_close(bytes);
    return status;
}

static marey_status list_tokens(const char *json, size_t len, size_t cut, struct marey__buf *out)
{
    return list_tokens_by(json, len, cut, 0, out);
}

static void check_tokens(const char *json, size_t cut, struct marey__buf *got, const char *tokens)
{
    if (strcmp(got->data, tokens) != 0)
        fail_msg("%s in pieces of %zu gives %s, not %s", json, cut, got->data, tokens);
    marey__buf_fini(got);
}

/* The tokens of `json` as a string, in one piece, and cut into pieces of every size. */
static void expect_by(const char *json, unsigned rules, const char *tokens)
{
    struct marey__buf got = {0};
    struct marey__json scan;
    for (size_t cut = 0; cut <= strlen(json); cut++) {
        list_tokens_by(json, strlen(json), cut, rules, &got);
        check_tokens(json, cut, &got, tokens);
    }
    marey__json_init_text(&scan, json, strlen(json), rules);
    list_all(&scan, &got);
    check_tokens(json, 0, &got, tokens);
}

static void expect(const char *json, const char *tokens)
{
    expect_by(json, 0, tokens);
}

static void every_kind_of_value_is_a_token(void **state)
{
    (void)state;
    expect("", "$");
    expect(" \n\t\r ", "$");
    expect("{}", "[($");
    expect("{\"a\": [1, -2.5e3, true, false, null, \"x\"], \"b\":{}}",
           "[k<a>]#<1>#<-2.5e3>tfns<x>)k<b>[(($");
    expect("\"alone\"", "s<alone>$");
    expect("12", "#<12>$");
    expect("\xef\xbb\xbf[]", "])$");
    expect("{\"a\" \n:\t1}", "[k<a>#<1>($");
    expect("[1]\n[2]", "]#<1>)]#<2>)$");
}

static void escapes_are_decoded_and_odd_strings_survive(void **state)
{
    (void)state;
    expect("\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "s<a\"b\\c/d\b\f\n\r\t>$");
    expect("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "s<A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>$");
    expect("\"\\ud83d \\ude00 \\ud83d\\u0041\"", "s<\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd\x41>$");
    expect("\"\\uZZZZ\\x\\u12\"", "s<uZZZZxu12>$");
    expect("{\"a\\nb\": \"\x01\x1f\n\xff\xfe\"}", "[k<a\nb>s<\x01\x1f\n\xff\xfe>($");
    expect("\"a long text without any escape in it at all, longer than a register\"",
           "s<a long text without any escape in it at all, longer than a register>$");
}

static void nan_and_commas_are_tolerated(void **state)
{
    (void)state;
    expect("[NaN, Infinity, -Infinity, nan, inf]", "]#<NaN>#<Infinity>#<-Infinity>#<nan>#<inf>)$");
    expect("[1,,2,]", "]#<1>#<2>)$");
    expect("{\"a\":1,,\"b\":2,}", "[k<a>#<1>k<b>#<2>($");
    expect("[1 2 {}{}]", "]#<1>#<2>[([()$");
    expect("[],", "])$");
}

static void mistakes_say_what_and_where(void **state)
{
    (void)state;
    expect("[1, 2", "]#<1>#<2>!it ends in the middle at 5");
    expect("[\"abc", "]!it ends in the middle at 1");
    expect("{\"abc\"", "[!it ends in the middle at 1");
    expect("{\"abc\":", "[k<abc>!it ends in the middle at 7");
    expect("[\"abc\\", "]!it ends in the middle at 1");
    expect("{\"a\" 1}", "[!a key without a colon at 5");
    expect("{a: 1}", "[!a key that is not in quotes at 1");
    expect("{\"a\":}", "[k<a>!a key without a value at 5");
    expect("[1}", "]#<1>!a bracket that closes what is not open at 2");
    expect("]", "!a bracket that closes what is not open at 0");
    expect("[nul]", "]!an unknown value at 1");
    expect("[\x01]", "]!an unknown value at 1");
    expect("<html>", "!an unknown value at 0");
    expect("-", "!an unknown value at 0");
}

static void strict_rules_refuse_what_json_does_not_have(void **state)
{
    (void)state;
    static const unsigned strict = MAREY__JSON_STRICT;
    expect_by("", strict, "$");
    expect_by(" {\"a\": [1, -2.5e3, 0, true ,{}, []], \"b\":\"x\\n\\/\"} \n", strict,
              "[k<a>]#<1>#<-2.5e3>#<0>t[(]))k<b>s<x\n/>($");
    expect_by("[1 2]", strict, "]#<1>!a comma is missing at 3");
    expect_by("[1,,2]", strict, "]#<1>!an unknown value at 3");
    expect_by("[,1]", strict, "]!an unknown value at 1");
    expect_by("[1,]", strict, "]#<1>!a comma without a value at 3");
    expect_by("{\"a\":1,}", strict, "[k<a>#<1>!a comma without a value at 7");
    expect_by("{\"a\":1 \"b\":2}", strict, "[k<a>#<1>!a comma is missing at 7");
    expect_by("{\"a\":,1}", strict, "[k<a>!an unknown value at 5");
    expect_by("[1]\n[2]", strict, "]#<1>)!something follows the end at 4");
    expect_by("[1],", strict, "]#<1>)!something follows the end at 3");
    expect_by("[1]]", strict, "]#<1>)!a bracket that closes what is not open at 3");
    expect_by("[\"a\tb\"]", strict, "]!a control character in a string at 1");
    expect_by("[\"\\x\"]", strict, "]!an unknown escape in a string at 1");
    expect_by("[\"\\u12\"]", strict, "]!an unknown escape in a string at 1");
    static const char *const wrong[] = {"[01]", "[+1]",  "[1.]",  "[.5]",  "[1e]",       "[1e+]",
                                        "[-]",  "[0x1]", "[--1]", "[NaN]", "[Infinity]", "[1.5.5]"};
    for (size_t i = 0; i < MAREY__COUNT_OF(wrong); i++)
        expect_by(wrong[i], strict, "]!an unknown value at 1");
    expect_by("[NaN, nan, Infinity, -Infinity]", strict | MAREY__JSON_NAN,
              "]#<NaN>#<nan>#<Infinity>#<-Infinity>)$");
    expect_by("[inf]", strict | MAREY__JSON_NAN, "]!an unknown value at 1");
    expect_by("\"\\ud83d\"", strict, "s<\xef\xbf\xbd>$");
    expect_by("\"\\ud83d\"", strict | MAREY__JSON_SURROGATES, "s<\xed\xa0\xbd>$");
}

static void a_caller_may_parse_values_itself(void **state)
{
    (void)state;
    struct marey__json json;
    static const char text[] = " [ 12 , {\"a\": 3}] ";
    marey__json_init_text(&json, text, sizeof text - 1, MAREY__JSON_STRICT);
    assert_int_equal(marey__json_peek(&json), '[');
    assert_int_equal(marey__json_next(&json), MAREY__JSON_ARRAY);
    assert_int_equal(marey__json_peek(&json), '1');
    marey__json_taken(&json, json.at + 2);
    assert_int_equal(marey__json_peek(&json), '{');
    assert_int_equal(marey__json_next(&json), MAREY__JSON_OBJECT);
    assert_true(marey__json_next_key(&json) && marey__json_is(&json, "a"));
    assert_int_equal(marey__json_peek(&json), '3');
    marey__json_taken(&json, json.at + 1);
    assert_false(marey__json_next_key(&json));
    assert_int_equal(marey__json_peek(&json), ']');
    assert_int_equal(marey__json_next(&json), MAREY__JSON_ARRAY_END);
    assert_int_equal(marey__json_peek(&json), 0);
    assert_int_equal(marey__json_next(&json), MAREY__JSON_END);
    marey__json_fini(&json);
}

static void zeros_in_the_text_are_bytes_like_others(void **state)
{
    (void)state;
    static const char json[] = "[\"a\0b\", 1]\0";
    struct marey__buf got = {0};
    assert_int_equal(list_tokens(json, sizeof json - 2, 0, &got), MAREY_OK);
    assert_memory_equal(got.data, "]s<a", 4);
    marey__buf_fini(&got);
    assert_int_equal(list_tokens(json, sizeof json - 1, 3, &got), MAREY_EFORMAT);
    marey__buf_fini(&got);
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    char deep[MAREY__JSON_MAX_DEPTH + 2];
    memset(deep, '[', sizeof deep);
    struct marey__buf got = {0};
    assert_int_equal(list_tokens(deep, sizeof deep, 0, &got), MAREY_EFORMAT);
    assert_non_null(strstr(got.data, "nested more than 1024 deep at 1024"));
    marey__buf_fini(&got);
}

static void a_string_may_be_longer_than_a_piece(void **state)
{
    (void)state;
    const size_t len = 3 << 20;
    char *json = malloc(len);
    memset(json, 'x', len);
    json[0] = json[len - 1] = '"';
    marey__byte_source *bytes;
    struct marey__json scan;
    assert_int_equal(marey__bytes_open_memory(json, len, &bytes), MAREY_OK);
    assert_int_equal(marey__json_init(&scan, bytes), MAREY_OK);
    assert_int_equal(marey__json_next(&scan), MAREY__JSON_STRING);
    assert_int_equal(scan.text_len, len - 2);
    assert_memory_equal(scan.text, json + 1, len - 2);
    assert_int_equal(marey__json_next(&scan), MAREY__JSON_END);
    marey__json_fini(&scan);
    marey__bytes_close(bytes);
    free(json);
}

/* ---- skipping ---- */

/* Of an object: skip the value of each key that begins with 's', and list what is left. */
static void list_unskipped(const char *json, size_t cut, struct marey__buf *out)
{
    marey__byte_source *bytes;
    struct marey__json scan;
    assert_int_equal(marey__bytes_open_memory(json, strlen(json), &bytes), MAREY_OK);
    marey__bytes_cut(bytes, cut);
    assert_int_equal(marey__json_init(&scan, bytes), MAREY_OK);
    for (enum marey__json_token token; (token = marey__json_next(&scan)) != MAREY__JSON_END;) {
        marey__buf_printf(out, "%c", letters[token]);
        if (token == MAREY__JSON_MISTAKE)
            break;
        if (token == MAREY__JSON_KEY) {
            marey__buf_printf(out, "<%.*s>", (int)scan.text_len, scan.text);
            if (scan.text[0] == 's' && !marey__json_skip(&scan))
                marey__buf_puts(out, scan.is_cut ? "cut" : "mistake");
        }
        if (token == MAREY__JSON_ARRAY && !marey__json_skip(&scan))
            marey__buf_puts(out, "array");
    }
    marey__buf_put(out, "", 1);
    marey__json_fini(&scan);
    marey__bytes_close(bytes);
}

static void expect_skipped(const char *json, const char *tokens)
{
    for (size_t cut = 0; cut <= strlen(json); cut++) {
        struct marey__buf got = {0};
        list_unskipped(json, cut, &got);
        if (strcmp(got.data, tokens) != 0)
            fail_msg("%s in pieces of %zu gives %s, not %s", json, cut, got.data, tokens);
        marey__buf_fini(&got);
    }
}

static void a_value_can_be_skipped(void **state)
{
    (void)state;
    expect_skipped("{\"s\": {\"a\": [1, \"]}\\\"\", {}]}, \"b\": 1}", "[k<s>k<b>#(");
    expect_skipped(
        "{\"s1\": 1.5, \"s2\": \"x\\\\\", \"s3\": null, \"b\": [1, [\"]\"], {}], \"s4\": []}",
        "[k<s1>k<s2>k<s3>k<b>]k<s4>(");
    expect_skipped("{\"s\": [1, 2", "[k<s>cut!");
    expect_skipped("{\"s\": [\"1, 2", "[k<s>cut!");
    expect_skipped("{\"s\": }", "[k<s>mistake!");
    expect_skipped("[[[[]]]]", "]");
}

static void skipping_needs_no_depth(void **state)
{
    (void)state;
    char deep[100001];
    memset(deep, '[', 50000);
    memset(deep + 50000, ']', 50000);
    deep[100000] = '\0';
    struct marey__buf got = {0};
    list_unskipped(deep, 0, &got);
    assert_string_equal(got.data, "]");
    marey__buf_fini(&got);
}

/* ---- numbers ---- */

static void expect_decimal(const char *text, int scale, int64_t value)
{
    int64_t got = 4242;
    if (!marey__decimal(text, strlen(text), scale, &got) || got != value)
        fail_msg("%s by 10^%d gives %lld, not %lld", text, scale, (long long)got, (long long)value);
}

static void expect_no_decimal(const char *text, int scale)
{
    int64_t got = 4242;
    if (marey__decimal(text, strlen(text), scale, &got))
        fail_msg("%s by 10^%d gives %lld", text, scale, (long long)got);
    assert_int_equal(got, 4242);
}

static void decimals_are_exact(void **state)
{
    (void)state;
    expect_decimal("1712195495505582.988", 3, 1712195495505582988);
    expect_decimal("1712195495505582.989", 3, 1712195495505582989);
    expect_decimal("4458676983543.183", 3, 4458676983543183);
    expect_decimal("1661203462598738", 3, 1661203462598738000);
    expect_decimal("0", 3, 0);
    expect_decimal("-0.0", 3, 0);
    expect_decimal("-1.5", 3, -1500);
    expect_decimal("+7", 0, 7);
    expect_decimal("1.0004", 3, 1000);
    expect_decimal("1.0005", 3, 1001);
    expect_decimal("-1.0005", 3, -1001);
    expect_decimal("1.00049999999999999999999999999", 3, 1000);
    expect_decimal("2.5", 0, 3);
    expect_decimal("1.7e15", 3, 1700000000000000000);
    expect_decimal("1.712195495505582988E+15", 3, 1712195495505582988);
    expect_decimal("123e-2", 3, 1230);
    expect_decimal("5e-4", 3, 1);
    expect_decimal("4e-4", 3, 0);
    expect_decimal("1e-999999999999", 3, 0);
    expect_decimal("0e999999999999", 3, 0);
    expect_decimal(".5", 3, 500);
    expect_decimal("5.", 3, 5000);
    expect_decimal("9223372036854775807", 0, INT64_MAX);
    expect_decimal("-9223372036854775807", 0, -INT64_MAX);
    expect_decimal("9223372036854775.807", 3, INT64_MAX);
    expect_decimal("00000000000000000000000000000000012", 0, 12);
}

static void what_is_no_number_gives_none(void **state)
{
    (void)state;
    static const char *const others[] = {"",         "-",     ".",   "e5",   "1e", "1e+x",
                                         "1-2",      "1.2.3", "0x1", "1 ",   " 1", "NaN",
                                         "Infinity", "abc",   "--1", "1e5e5"};
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++)
        expect_no_decimal(others[i], 3);
    expect_no_decimal("9223372036854775808", 0);
    expect_no_decimal("9223372036854775.808", 3);
    expect_no_decimal("18446744073709551615", 0);
    expect_no_decimal("99999999999999999999999999", 0);
    expect_no_decimal("1e300", 3);
    expect_no_decimal("1e999999999999", 0);
}

static void doubles_are_the_nearest(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "1",
                                        "0.1",
                                        "-2.5e-3",
                                        "123456789.123456789",
                                        "1e22",
                                        "1e23",
                                        "9007199254740993",
                                        "5e-324",
                                        "1e308",
                                        "1e-400",
                                        "3.14159265358979323846264338327950288",
                                        "1e400"};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++) {
        double got;
        assert_true(marey__decimal_double(texts[i], strlen(texts[i]), &got));
        const double want = strtod(texts[i], NULL);
        assert_memory_equal(&got, &want, sizeof got);
    }
    double got;
    assert_true(marey__decimal_double("NaN", 3, &got) && isnan(got));
    assert_true(marey__decimal_double("-Infinity", 9, &got) && got == -INFINITY);
    assert_false(marey__decimal_double("abc", 3, &got));
    assert_false(marey__decimal_double("", 0, &got));
}

/* ---- without memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const size_t len = 1 << 20;
    char *json = malloc(len);
    memset(json, 'x', len);
    memcpy(json, "[\"\\n\", \"", 8);
    json[len - 2] = '"';
    json[len - 1] = ']';
    marey_status status = MAREY_ENOMEM;
    uint64_t n = 0;
    while (status != MAREY_OK) {
        struct marey__buf got = {0};
        char room[64];
        marey__buf_put(&got, room, 1); /* the list itself is not what is tried */
        marey__grow(&got.data, &got.cap, 2 * len, 1);
        got.len = 0;
        marey__alloc_fail_nth(++n);
        status = list_tokens(json, len, 0, &got);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey__buf_fini(&got);
    }
    assert_true(n > 4);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_a_token),
        cmocka_unit_test(escapes_are_decoded_and_odd_strings_survive),
        cmocka_unit_test(nan_and_commas_are_tolerated),
        cmocka_unit_test(mistakes_say_what_and_where),
        cmocka_unit_test(strict_rules_refuse_what_json_does_not_have),
        cmocka_unit_test(a_caller_may_parse_values_itself),
        cmocka_unit_test(zeros_in_the_text_are_bytes_like_others),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_string_may_be_longer_than_a_piece),
        cmocka_unit_test(a_value_can_be_skipped),
        cmocka_unit_test(skipping_needs_no_depth),
        cmocka_unit_test(decimals_are_exact),
        cmocka_unit_test(what_is_no_number_gives_none),
        cmocka_unit_test(doubles_are_the_nearest),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
