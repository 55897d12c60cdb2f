/* The screen of marey top: it fits the terminal, and keys change what it shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top.h"

static marey_table *functions(size_t n)
{
    static const struct marey_column columns[] = {
        {"self", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"total", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"function", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        {"place", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    };
    static const char name[] = "Trainer.a_method_with_a_name_that_is_rather_long";
    static const char place[] = "torch/nn/modules/container_of_something.py:1234";
    marey_table *table = NULL;
    assert_int_equal(marey_table_create("functions", columns, 4, &table), MAREY_OK);
    for (size_t i = 0; i < n; i++) {
        marey_table_f64(table, 0.5);
        marey_table_f64(table, 1);
        marey_table_text(table, name, sizeof name - 1);
        marey_table_text(table, place, sizeof place - 1);
    }
    return table;
}

/* How many lines there are; none is wider than `columns`. */
static size_t lines_of(const char *text, size_t columns)
{
    size_t n = 0;
    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");
        if (len > columns)
            fail_msg("wider than %zu: %.*s", columns, (int)len, text);
        text += len + (text[len] == '\n');
        n++;
    }
    return n;
}

static char *drawn(const struct top_screen *screen, uint32_t columns, uint32_t rows)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_true(top_draw(screen, columns, rows, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static void it_fits_small_terminals(void **state)
{
    static const struct {
        uint32_t columns, rows;
    } sizes[] = {{40, 10}, {60, 5}, {80, 24}, {200, 60}};
    marey_table *table = functions(100);
    const struct top_screen screen = {.title = "pid 4711",
                                      .table = table,
                                      .state = {.n_processes = 1234, .cpu = 99.9, .gil = 12.3},
                                      .counts = {.achieved_hz = 1000}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *text = drawn(&screen, sizes[i].columns, sizes[i].rows);
        assert_int_equal(lines_of(text, sizes[i].columns), sizes[i].rows);
        assert_non_null(strstr(text, "Trainer"));
        assert_null(strstr(text, "\033"));
        free(text);
    }
    marey_table_destroy(table);
}

static void colours_are_there_when_they_are_wanted(void **state)
{
    marey_table *table = functions(1);
    const struct top_screen screen = {.title = "pid 4711", .table = table, .has_color = true};
    (void)state;
    char *text = drawn(&screen, 80, 24);
    assert_non_null(strstr(text, "\033[1m"));
    free(text);
    marey_table_destroy(table);
}

static void before_the_first_sample_it_says_so(void **state)
{
    const struct top_screen screen = {.title = "pid 4711"};
    (void)state;
    char *text = drawn(&screen, 80, 24);
    assert_non_null(strstr(text, "no sample yet"));
    free(text);
}

static void keys_change_the_view(void **state)
{
    struct top_view view = {0};
    (void)state;
    assert_true(top_key(&view, 'l'));
    assert_int_equal(view.by, MAREY_LIVE_LINES);
    assert_true(top_key(&view, 't'));
    assert_int_equal(view.by, MAREY_LIVE_THREADS);
    assert_true(top_key(&view, 'r'));
    assert_int_equal(view.by, MAREY_LIVE_RANKS);
    assert_true(top_key(&view, 'f'));
    assert_int_equal(view.by, MAREY_LIVE_FUNCTIONS);
    assert_true(top_key(&view, 'o') && view.by_total);
    assert_true(top_key(&view, 's') && !view.by_total);
    assert_true(top_key(&view, 'p') && view.is_paused);
    assert_true(top_key(&view, 'p') && !view.is_paused);
    assert_true(top_key(&view, 'i') && view.is_idle);
    assert_true(top_key(&view, 'x'));
    assert_true(top_key(&view, 27));
    assert_false(top_key(&view, 'q'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_fits_small_terminals),
        cmocka_unit_test(colours_are_there_when_they_are_wanted),
        cmocka_unit_test(before_the_first_sample_it_says_so),
        cmocka_unit_test(keys_change_the_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
