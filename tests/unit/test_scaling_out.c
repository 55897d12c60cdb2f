/* Texts and charts of given points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "made_points.h"

static const struct made_point stops[] = {
    {"", "ddp", 1, "strong", "epoch", 120, 1, {0.2, 0.001, 0.001, 0.004}, 52000, 0.9},
    {"", "ddp", 2, "strong", "epoch", 63, 0.95, {0.101, 0.006, 0.001, 0.004}, 54000, 0.8},
    {"", "ddp", 8, "strong", "epoch", 50, 0.3, {0.027, 0.054, 0.001, 0.005}, 64000, 0.7},
    {"", "ddp", 16, "strong", "epoch", 60, 0.125, {0.014, 0.08, 0.001, 0.006}, 88000, 0.6},
};
static const struct made_point holds[] = {
    {"", "", 2, "weak", "step", 0.01, 1, {0}, 0, 0},
    {"", "", 8, "weak", "step", 0.011, 0.91, {0}, 0, 0},
};

typedef marey_status writer(marey_report *scaling, FILE *out);

/* Owned by the caller; "" when nothing could be written. */
static char *written(marey_report *scaling, writer *write, marey_status *status)
{
    static char *text;
    static size_t len;
    FILE *out = open_memstream(&text, &len);
    *status = write(scaling, out);
    fclose(out);
    return text;
}

#define WRITER(function, format)                                                                   \
    static marey_status function(marey_report *scaling, FILE *out)                                 \
    {                                                                                              \
        return marey_report_write(scaling, format, NULL, out);                                     \
    }
WRITER(write_text, "text")
WRITER(write_markdown, "markdown")
WRITER(write_json, "json")
WRITER(write_html, "html")

static marey_status draw_picture(const marey_report *scaling, const char *name, FILE *out)
{
    return marey_report_write(scaling, "svg", &(struct marey_write_options){.table = name}, out);
}

static char *draw(const struct made_point *points, size_t n, writer *write)
{
    marey_status status;
    marey_report *scaling = scaling_make(points, n);
    char *text = written(scaling, write, &status);
    marey_report_destroy(scaling);
    assert_int_equal(status, MAREY_OK);
    return text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in %s", part, text);
}

/* ---- sentences ---- */

static void it_says_how_far_it_scales_and_what_holds_it_back(void **state)
{
    (void)state;
    char *text = draw(stops, 4, write_text);
    has(text, "ddp scales well to 2 workers and less beyond: 16 workers are 2 times as fast as 1, "
              "12.5 % of "
              "ideal (12.2 to 12.8 %); more than 8 make it slower.");
    has(text, " What holds it back most is exposed communication: of a step of 101 ms on 16 "
              "workers 79.9 ms "
              "exposed communication");
    free(text);
}

static void all_that_was_measured_is_reported_as_such(void **state)
{
    (void)state;
    char *text = draw(holds, 2, write_text);
    has(text, "It scales to 8 workers, the most that were measured: 8 workers do 3.64 times the "
              "work of 2 in a "
              "second, 91.0 % of ideal");
    assert_null(strstr(text, "holds it back"));
    free(text);
}

static void one_number_of_workers_is_no_scaling(void **state)
{
    (void)state;
    char *text = draw(stops, 1, write_text);
    has(text, "ddp was measured with 1 worker only");
    free(text);
}

static void what_does_not_get_faster_does_not_scale(void **state)
{
    (void)state;
    struct made_point slower[] = {stops[0], stops[1]};
    slower[1].efficiency = 0.4;
    char *text = draw(slower, 2, write_text);
    has(text, "ddp does not scale: 2 workers are 0.8 times as fast as 1, 40.0 % of ideal");
    free(text);
}

static void intervals_that_say_nothing_are_reported_as_such(void **state)
{
    (void)state;
    struct made_point noisy[] = {stops[0], stops[1]};
    noisy[1].efficiency = 20; /* its interval is two hundredths to each side */
    char *text = draw(noisy, 2, write_text);
    has(text, "ddp may scale or not, these runs differ too much to tell: 2 workers are 40 times as "
              "fast as 1");
    has(text, "Repeat them, or measure more epochs.");
    assert_null(strstr(text, "holds it back"));
    free(text);
}

/* ---- tables ---- */

static marey_status write_narrow(marey_report *scaling, FILE *out)
{
    return marey_report_write(scaling, "text", &(struct marey_write_options){.text = {.width = 80}},
                              out);
}

static void a_narrow_terminal_has_fewer_columns(void **state)
{
    (void)state;
    char *text = draw(stops, 4, write_narrow);
    /* The sentences above and the notes below are as long as they are. */
    for (const char *line = strstr(text, "time, speedup");
         *line != '\0' && strncmp(line, "note:", 5) != 0; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
            fail_msg("wider than 80 columns: %.*s", (int)strcspn(line, "\n"), line);
    free(text);
}

static void columns_and_tables_without_values_are_left_out(void **state)
{
    (void)state;
    char *text = draw(holds, 2, write_text);
    assert_null(strstr(text, "strategy"));
    assert_null(strstr(text, "energy"));
    assert_null(strstr(text, "a step, mean over ranks"));
    has(text, "samples/s");
    free(text);
}

static void markdown_has_no_marks_of_names(void **state)
{
    (void)state;
    char *text = draw(stops, 4, write_markdown);
    has(text, "| strategy | workers |");
    has(text, "- note: a note \\| with \\<marks\\>");
    free(text);
}

static void the_page_escapes_names_and_has_every_picture_once(void **state)
{
    (void)state;
    char *text = draw(stops, 4, write_html);
    has(text, "run of &lt;1&gt; &amp; &quot;more&quot;");
    has(text, "id=\"step-breakdown-title\"");
    has(text, "id=\"energy-title\"");
    assert_null(strstr(text, "<script"));
    assert_null(strstr(strstr(text, "id=\"speedup-title\"") + 1, "id=\"speedup-title\""));
    free(text);
    text = draw(holds, 2, write_html);
    assert_null(strstr(text, "id=\"energy-title\""));
    free(text);
}

/* ---- charts ---- */

static void pictures_by_unknown_names_or_without_data_are_errors(void **state)
{
    (void)state;
    marey_report *scaling = scaling_make(holds, 2);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(draw_picture(scaling, "nothing", out), MAREY_EINVAL);
    assert_int_equal(draw_picture(scaling, "energy", out), MAREY_EFORMAT);
    assert_int_equal(draw_picture(scaling, "computation_vs_other_plot", out), MAREY_EFORMAT);
    fclose(out);
    assert_int_equal(len, 0);
    free(text);
    marey_report_destroy(scaling);
}

static marey_status draw_energy_of_runs(marey_report *scaling, FILE *out)
{
    return draw_picture(scaling, "gpu_energy_plot", out);
}

static marey_status draw_fractions(marey_report *scaling, FILE *out)
{
    return draw_picture(scaling, "computation_vs_other_plot", out);
}

static void pictures_of_itwinai_say_what_they_show(void **state)
{
    (void)state;
    char *text = draw(stops, 4, draw_energy_of_runs);
    has(text, "energy of a run (Wh), median of repeats");
    has(text, "ddp 1: 144."); /* 520 kJ */
    free(text);
    text = draw(stops, 4, draw_fractions);
    has(text, "ddp 1: computation 72, other 28.");
    has(text, ">workers</text>");
    free(text);
}

/* A point of another series at the same number of workers is another bar, and repeats have one. */
static void repeats_of_a_point_are_not_added_up(void **state)
{
    (void)state;
    marey_status status;
    marey_report *scaling = scaling_make(stops, 4), *more = scaling_make(stops, 1);
    marey_table *runs = scaling->tables[MAREY__SCALING_RUNS],
                *again = more->tables[MAREY__SCALING_RUNS];
    const size_t n = marey_table_n_columns(runs);
    for (size_t c = 0; c < n; c++) { /* the first run once more */
        const struct marey_cell cell = marey_table_cell(again, 0, c);
        if (cell.is_null)
            marey_table_null(runs);
        else if (marey_table_column(runs, c)->type == MAREY_TYPE_TEXT)
            marey_table_text(runs, cell.as.text, cell.len);
        else if (marey_table_column(runs, c)->type == MAREY_TYPE_F64)
            marey_table_f64(runs, cell.as.f64);
        else if (marey_table_column(runs, c)->type == MAREY_TYPE_BOOL)
            marey_table_bool(runs, (int)cell.as.u64);
        else
            marey_table_u64(runs, cell.as.u64);
    }
    char *text = written(scaling, draw_energy_of_runs, &status);
    assert_int_equal(status, MAREY_OK);
    has(text, "ddp 1: 144.");
    free(text);
    marey_report_destroy(scaling);
    marey_report_destroy(more);
}

/* ---- no memory ---- */

static void each_writer_tells_when_memory_is_short(void **state)
{
    (void)state;
    static writer *const writers[] = {write_text, write_markdown, write_json,
                                      write_html, draw_fractions, draw_energy_of_runs};
    marey_report *scaling = scaling_make(stops, 4);
    for (size_t w = 0; w < MAREY__COUNT_OF(writers); w++) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status != MAREY_OK; nth++) {
            marey__alloc_fail_nth(nth);
            free(written(scaling, writers[w], &status));
            marey__alloc_fail_nth(0);
            assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
            assert_true(nth < 10000);
        }
    }
    marey_report_destroy(scaling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_how_far_it_scales_and_what_holds_it_back),
        cmocka_unit_test(all_that_was_measured_is_reported_as_such),
        cmocka_unit_test(one_number_of_workers_is_no_scaling),
        cmocka_unit_test(what_does_not_get_faster_does_not_scale),
        cmocka_unit_test(intervals_that_say_nothing_are_reported_as_such),
        cmocka_unit_test(a_narrow_terminal_has_fewer_columns),
        cmocka_unit_test(columns_and_tables_without_values_are_left_out),
        cmocka_unit_test(markdown_has_no_marks_of_names),
        cmocka_unit_test(the_page_escapes_names_and_has_every_picture_once),
        cmocka_unit_test(pictures_by_unknown_names_or_without_data_are_errors),
        cmocka_unit_test(pictures_of_itwinai_say_what_they_show),
        cmocka_unit_test(repeats_of_a_point_are_not_added_up),
        cmocka_unit_test(each_writer_tells_when_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
