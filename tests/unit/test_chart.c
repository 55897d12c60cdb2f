/* SVG charts: positions of values, labels, escaping. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "present/draw/internal.h"

static int set_up(void **state)
{
    static struct marey__buf svg;
    svg = (struct marey__buf){0};
    *state = &svg;
    return 0;
}

static int tear_down(void **state)
{
    marey__buf_fini(*state);
    return 0;
}

static const struct marey__chart_words words = {
    .id = "picture", .title = "Time <of> a & \"b\"", .x_title = "workers", .y_title = "time (s)"};

static const struct marey__chart_point halving[] = {
    {1, 8, 7, 9}, {2, 4, 3.5, 4.5}, {4, 2, NAN, NAN}, {8, NAN, NAN, NAN}};

static const struct marey__chart_series series_of_one = {
    .name = "a]]><script>", .points = halving, .n = 4, .color = 2};

static void has(const struct marey__buf *svg, const char *text)
{
    assert_non_null(svg->data);
    if (memmem(svg->data, svg->len, text, strlen(text)) == NULL)
        fail_msg("'%s' is not in %.*s", text, (int)svg->len, svg->data);
}

static void lacks(const struct marey__buf *svg, const char *text)
{
    assert_null(memmem(svg->data, svg->len, text, strlen(text)));
}

static size_t count(const struct marey__buf *svg, const char *text)
{
    size_t n = 0;
    for (const char *at = svg->data;
         (at = memmem(at, svg->len - (size_t)(at - svg->data), text, strlen(text))) != NULL; at++)
        n++;
    return n;
}

static struct marey__chart lines(void)
{
    return (struct marey__chart){.words = words,
                                 .x_scale = MAREY__CHART_LOG2,
                                 .y_scale = MAREY__CHART_LOG10,
                                 .series = &series_of_one,
                                 .n_series = 1};
}

/* ---- axes ---- */

static void equal_factors_are_equally_far_apart_on_a_logarithmic_axis(void **state)
{
    (void)state;
    struct marey__axis axis = {.scale = MAREY__CHART_LOG2, .from = 0, .to = 100};
    marey__axis_fit(&axis, 1, 64);
    const double at_1 = marey__axis_at(&axis, 1), at_8 = marey__axis_at(&axis, 8),
                 at_64 = marey__axis_at(&axis, 64);
    assert_true(at_1 > 0 && at_64 < 100);
    assert_true(fabs((at_8 - at_1) - (at_64 - at_8)) < 1e-9);
    assert_int_equal(axis.n_ticks, 7);
    for (size_t i = 0; i < axis.n_ticks; i++)
        assert_true(axis.ticks[i] == pow(2, (double)i));
}

static void a_linear_axis_begins_at_zero_and_ends_at_a_tick(void **state)
{
    (void)state;
    struct marey__axis axis = {.scale = MAREY__CHART_LINEAR, .from = 300, .to = 0};
    marey__axis_fit(&axis, 30, 97);
    assert_true(axis.low == 0 && axis.high == 100);
    assert_true(axis.ticks[axis.n_ticks - 1] == 100);
    assert_true(marey__axis_at(&axis, 50) == 150);
}

static void any_range_has_ticks_within_the_axis(void **state)
{
    (void)state;
    for (int scale = MAREY__CHART_LINEAR; scale <= MAREY__CHART_LOG10; scale++)
        for (double low = 1e-9; low < 1e12; low *= 7)
            for (double times = 1; times < 1e10; times *= 3) {
                struct marey__axis axis = {
                    .scale = (enum marey__chart_scale)scale, .from = 0, .to = 1};
                marey__axis_fit(&axis, low, low * times);
                assert_in_range(axis.n_ticks, 1, 32);
                for (size_t i = 0; i < axis.n_ticks; i++) {
                    const double at = marey__axis_at(&axis, axis.ticks[i]);
                    assert_true(at > -1e-6 && at < 1 + 1e-6);
                }
            }
}

static void numbers_beside_axes_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } numbers[] = {{0, "0"},         {1, "1"},         {0.25, "0.25"},   {12.345, "12.3"},
                   {12345, "12345"}, {1.6e6, "1.6 M"}, {2.5e9, "2.5 G"}, {3e-6, "3e-06"}};
    char text[24];
    for (size_t i = 0; i < MAREY__COUNT_OF(numbers); i++)
        assert_string_equal(marey__axis_number(numbers[i].value, text), numbers[i].text);
}

/* ---- lines ---- */

static void a_picture_has_titles_axes_and_numbers_in_words(void **state)
{
    const struct marey__chart chart = lines();
    assert_true(marey__chart_lines(&chart, *state));
    has(*state, "role=\"img\" aria-labelledby=\"picture-title picture-about\"");
    has(*state, "<title id=\"picture-title\">Time &lt;of&gt; a &amp; &quot;b&quot;</title>");
    has(*state, "time (s) against workers.");
    has(*state, "1: 8,  2: 4,  4: 2.");
    has(*state, ">workers</text>");
    has(*state, ">time (s)</text>");
}

static void names_are_escaped(void **state)
{
    const struct marey__chart chart = lines();
    assert_true(marey__chart_lines(&chart, *state));
    has(*state, "a]]&gt;&lt;script&gt;");
    lacks(*state, "<script");
}

static void unknown_values_and_bounds_are_not_drawn(void **state)
{
    const struct marey__chart chart = lines();
    assert_true(marey__chart_lines(&chart, *state));
    assert_int_equal(count(*state, "class=\"mark f2\""), 3 + 1); /* and one in the legend */
    assert_int_equal(count(*state, "class=\"bound s2\""), 2);
    lacks(*state, "nan");
}

static void a_chart_without_a_point_is_no_picture(void **state)
{
    struct marey__chart chart = lines();
    const struct marey__chart_series none = {.name = "none", .points = halving + 3, .n = 1};
    chart.series = &none;
    assert_false(marey__chart_lines(&chart, *state));
    assert_int_equal(((struct marey__buf *)*state)->len, 0);
}

static void an_ideal_line_is_dashed_and_has_no_marks(void **state)
{
    struct marey__chart chart = lines();
    const struct marey__chart_series both[] = {
        series_of_one,
        {.name = "ideal", .points = halving, .n = 3, .color = MAREY__CHART_MUTED, .is_ideal = true}};
    chart.series = both;
    chart.n_series = 2;
    assert_true(marey__chart_lines(&chart, *state));
    assert_int_equal(count(*state, "class=\"ideal s8\""), 2); /* and one in the legend */
    lacks(*state, "class=\"mark f8\"");
}

static void close_counts_are_labelled_without_overlap_powers_of_two_first(void **state)
{
    struct marey__chart_point points[130];
    for (size_t i = 0; i < 128; i++)
        points[i] = (struct marey__chart_point){(double)i + 1, 1 + (double)i, NAN, NAN};
    struct marey__chart chart = lines();
    const struct marey__chart_series many = {.name = "many", .points = points, .n = 128};
    chart.series = &many;
    assert_true(marey__chart_lines(&chart, *state));
    has(*state, "class=\"tick\">128</text>");
    has(*state, "class=\"tick\">64</text>");
    lacks(*state, "class=\"tick\">127</text>");
    assert_in_range(count(*state, "class=\"tick\">"), 8, 40);
}

static void the_style_is_inside_only_where_it_is_asked_for(void **state)
{
    struct marey__chart chart = lines();
    assert_true(marey__chart_lines(&chart, *state));
    lacks(*state, "<style>");
    chart.words.has_style = true;
    assert_true(marey__chart_lines(&chart, *state));
    has(*state, "prefers-color-scheme: dark");
}

/* ---- bars ---- */

static const char *const two[] = {"A<", "B"}, *const counts[] = {"1", "2"};
static const char *const parts[] = {"computation", "idle"};
static const uint32_t colors[] = {0, 1, 2};

static void parts_of_a_bar_stand_upon_one_another(void **state)
{
    static const double values[] = {6, 4};
    static const char *const name[] = {""};
    const struct marey__bars bars = {.words = words,
                                     .groups = counts,
                                     .series = name,
                                     .parts = parts,
                                     .n_groups = 1,
                                     .n_series = 1,
                                     .n_parts = 2,
                                     .series_colors = colors,
                                     .part_colors = colors,
                                     .values = values};
    assert_true(marey__chart_bars(&bars, *state));
    struct marey__buf *svg = *state;
    marey__buf_put(svg, "", 1); /* for what reads texts */
    double x[2], y[2], height[2];
    const char *at = svg->data;
    for (size_t i = 0; i < 2; i++) {
        at = strstr(at, "<rect class=\"bar") + 16;
        assert_int_equal(sscanf(strstr(at, "x=\""), "x=\"%lf\" y=\"%lf\"", &x[i], &y[i]), 2);
        assert_int_equal(sscanf(strstr(at, "height=\""), "height=\"%lf\"", &height[i]), 1);
    }
    assert_true(x[0] == x[1]);
    assert_true(fabs(y[1] + height[1] - y[0]) < 0.2);
    assert_true(fabs(height[0] * 4 - height[1] * 6) < 1);
    has(svg, "computation 6, idle 4.");
}

static void bars_of_several_parts_tell_series_by_letters(void **state)
{
    static const double values[] = {6, 4, 5, 5, NAN, NAN, 3, 1};
    const struct marey__bars bars = {.words = words,
                                     .groups = counts,
                                     .series = two,
                                     .parts = parts,
                                     .n_groups = 2,
                                     .n_series = 2,
                                     .n_parts = 2,
                                     .series_colors = colors,
                                     .part_colors = colors,
                                     .values = values};
    assert_true(marey__chart_bars(&bars, *state));
    assert_int_equal(count(*state, "<rect class=\"bar"), 6);
    has(*state, "class=\"sign\">B</text>");
    has(*state, "A&lt;");
    lacks(*state, "nan");
}

static void bars_of_one_part_have_the_colours_of_series_and_bounds(void **state)
{
    static const double values[] = {6, 4, 5, NAN}, low[] = {5, 3, NAN, NAN},
                        high[] = {7, 5, NAN, NAN};
    const struct marey__bars bars = {.words = words,
                                     .groups = counts,
                                     .series = two,
                                     .parts = parts,
                                     .n_groups = 2,
                                     .n_series = 2,
                                     .n_parts = 1,
                                     .series_colors = colors + 1,
                                     .values = values,
                                     .low = low,
                                     .high = high};
    assert_true(marey__chart_bars(&bars, *state));
    assert_int_equal(count(*state, "class=\"bar f1\""), 2);
    assert_int_equal(count(*state, "class=\"bar f2\""), 1);
    assert_int_equal(count(*state, "class=\"bound over\""), 2);
}

static void bars_without_a_value_are_no_picture(void **state)
{
    static const double values[] = {NAN, NAN};
    const struct marey__bars bars = {.words = words,
                                     .groups = counts,
                                     .series = two,
                                     .parts = parts,
                                     .n_groups = 1,
                                     .n_series = 2,
                                     .n_parts = 1,
                                     .series_colors = colors,
                                     .values = values};
    assert_false(marey__chart_bars(&bars, *state));
    assert_int_equal(((struct marey__buf *)*state)->len, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(equal_factors_are_equally_far_apart_on_a_logarithmic_axis),
        TEST(a_linear_axis_begins_at_zero_and_ends_at_a_tick),
        TEST(any_range_has_ticks_within_the_axis),
        TEST(numbers_beside_axes_are_short),
        TEST(a_picture_has_titles_axes_and_numbers_in_words),
        TEST(names_are_escaped),
        TEST(unknown_values_and_bounds_are_not_drawn),
        TEST(a_chart_without_a_point_is_no_picture),
        TEST(an_ideal_line_is_dashed_and_has_no_marks),
        TEST(close_counts_are_labelled_without_overlap_powers_of_two_first),
        TEST(the_style_is_inside_only_where_it_is_asked_for),
        TEST(parts_of_a_bar_stand_upon_one_another),
        TEST(bars_of_several_parts_tell_series_by_letters),
        TEST(bars_of_one_part_have_the_colours_of_series_and_bounds),
        TEST(bars_without_a_value_are_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
