/* Vectorized search for characters, against a simple loop, on random strings. Built with and
 * without SIMD. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/internal.h"
#include "codec/json_chars.h"

enum { MAX_LEN = 300 };

static uint32_t random_state = 7;

static uint32_t draw(uint32_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)random_state * n >> 32);
}

/* A text of characters that matter, more or less of them, and what the functions want behind it. */
static const char *make_text(char *room, size_t len, const char *letters)
{
    for (size_t i = 0; i < len; i++)
        room[i] = draw(3) == 0 ? letters[draw((uint32_t)strlen(letters))] : (char)('a' + draw(26));
    for (size_t i = len; i < len + MAREY__JSON_PADDING; i++) /* what was there before */
        room[i] = "]}\"\\[{ "[draw(7)];
    room[len] = room[len + 1] = '"';
    return room + len;
}

static const char *one_by_one(const char *p, const char *wanted)
{
    while (strchr(wanted, *p) == NULL)
        p++;
    return p;
}

static void the_next_character_is_found(void **state)
{
    (void)state;
    char text[MAX_LEN + MAREY__JSON_PADDING];
    for (size_t round = 0; round < 20000; round++) {
        make_text(text, draw(MAX_LEN), "\"\\[]{},: \n\t;|Z");
        assert_ptr_equal(json_find_quote(text), one_by_one(text, "\"\\"));
        assert_ptr_equal(json_find_bracket(text), one_by_one(text, "\"[]{}"));
        assert_ptr_equal(json_find_delimiter(text), one_by_one(text, "\"]}, \n\t"));
    }
}

/* Behind the bracket that closes the first one, or NULL. */
static const char *close_one_by_one(const char *p, const char *end)
{
    bool in_string = false;
    for (size_t n_open = 0; p < end; p++) {
        if (in_string && *p == '\\')
            p++;
        else if (*p == '"')
            in_string = !in_string;
        else if (!in_string && (*p == '[' || *p == '{'))
            n_open++;
        else if (!in_string && (*p == ']' || *p == '}') && --n_open == 0)
            return p + 1;
    }
    return NULL;
}

static void what_is_nested_is_skipped(void **state)
{
    (void)state;
    static const char *const alphabets[] = {"\"[]{}",         "\"[[]]]", "\"\\[]{}",
                                            "\"\"\"\"\"[]]]", "]",       "\\\"]"};
    char text[MAX_LEN + MAREY__JSON_PADDING];
    size_t n_closed = 0;
    for (size_t round = 0; round < 60000; round++) {
        const char *end =
            make_text(text, 1 + draw(MAX_LEN - 1), alphabets[round % MAREY__COUNT_OF(alphabets)]);
        text[0] = draw(2) == 0 ? '[' : '{';
        /* An escape outside of strings is no JSON, and means whatever it likes. */
        bool in_string = false;
        for (char *p = text; p < end; p++) {
            if (*p == '\\' && !in_string)
                *p = 'x';
            else if (*p == '\\')
                p++;
            else if (*p == '"')
                in_string = !in_string;
        }
        const char *wanted = close_one_by_one(text, end);
        assert_ptr_equal(json_skip_nested(text, end), wanted);
        n_closed += wanted != NULL;
    }
    assert_true(n_closed > 10000 && n_closed < 59000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_character_is_found),
        cmocka_unit_test(what_is_nested_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
