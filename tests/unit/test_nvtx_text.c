/* libmarey-nvtx's names: variable parts, the limit on names, wide characters. */
#include "scratch.h"

#include "inject.h"

static void check_cut(const char *text, const char *site)
{
    const size_t cut = inject_text_cut(text, strlen(text));
    assert_int_equal(cut, strlen(site));
    assert_memory_equal(text, site, cut);
}

static void arguments_behind_a_name_are_cut(void **state)
{
    (void)state;
    check_cut("aten::mul, seq = 7", "aten::mul");
    check_cut("aten::mul, seq = 7, sizes = [[2, 3], []]", "aten::mul");
    check_cut("autograd::engine::evaluate_function: MulBackward0, op_id = 12",
              "autograd::engine::evaluate_function: MulBackward0");
    check_cut("load a, b, step_2 = 3", "load a, b");
    check_cut(", x = ", "");
}

static void other_commas_stay(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",       ",",       ", ",      ", x",     ", x =",      "f(a, b)",
        "a, = b", "a,b = c", "a, b= c", "a, b =c", "a, b c = d",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_cut(texts[i], texts[i]);
    assert_int_equal(inject_text_cut("a, b = c", 6), 6); /* not past the end */
}

static void numbers_fold(void **state)
{
    (void)state;
    char text[INJECT_TEXT_MAX], longest[INJECT_TEXT_MAX + 10];
    assert_int_equal(inject_text_fold("step 12 of 3x", 13, text), 12);
    assert_string_equal(text, "step # of #x");
    assert_int_equal(inject_text_fold("", 0, text), 0);
    memset(longest, 'a', sizeof longest);
    assert_int_equal(inject_text_fold(longest, sizeof longest, text), INJECT_TEXT_MAX - 1);
    memset(longest, '7', sizeof longest);
    assert_int_equal(inject_text_fold(longest, sizeof longest, text), 1);
}

static void wide_characters_become_utf8(void **state)
{
    (void)state;
    char text[INJECT_TEXT_MAX];
    wchar_t longest[INJECT_TEXT_MAX];
    inject_text_narrow(L"a\u00e9\u65e5\U0001f600", text);
    assert_string_equal(text, "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80");
    inject_text_narrow((const wchar_t[]){0xd800, 0x110000, 0x7fffffff, -1, 'x', 0}, text);
    assert_string_equal(text, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx");
    inject_text_narrow(NULL, text);
    assert_string_equal(text, "");
    for (size_t i = 0; i < INJECT_TEXT_MAX - 1; i++)
        longest[i] = 0x65e5;
    longest[INJECT_TEXT_MAX - 1] = 0;
    inject_text_narrow(longest, text);
    assert_int_equal(strlen(text), (INJECT_TEXT_MAX - 1) / 3 * 3); /* cut between characters */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_behind_a_name_are_cut),
        cmocka_unit_test(other_commas_stay),
        cmocka_unit_test(numbers_fold),
        cmocka_unit_test(wide_characters_become_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
