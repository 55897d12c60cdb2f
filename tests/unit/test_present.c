/* Presenters of tables, and the report. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/draw/internal.h"

/* ---- output ---- */

static char *written;
static size_t written_len;

static FILE *open_stream(void)
{
    FILE *stream = open_memstream(&written, &written_len);
    assert_non_null(stream);
    return stream;
}

static void expect_written(FILE *stream, const char *text)
{
    fclose(stream);
    assert_string_equal(written, text);
    free(written);
}

static int count_of(const char *part)
{
    int n = 0;
    for (const char *at = written; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

/* ---- units ---- */

static void expect_duration(double ns, const char *unit, const char *text)
{
    struct marey__buf buf = {0};
    marey__text_duration(&buf, ns, unit);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, text);
    marey__buf_fini(&buf);
}

static void durations_have_three_digits_and_a_unit_that_fits(void **state)
{
    (void)state;
    expect_duration(0, NULL, "0 ns");
    expect_duration(999, NULL, "999 ns");
    expect_duration(1000, NULL, "1.00 us");
    expect_duration(1234, NULL, "1.23 us");
    expect_duration(12345, NULL, "12.3 us");
    expect_duration(123456, NULL, "123 us");
    expect_duration(999900, NULL, "1.00 ms");
    expect_duration(1.5e9, NULL, "1.50 s");
    expect_duration(95e9, NULL, "95.0 s");
    expect_duration(720e9, NULL, "12.0 min");
    expect_duration(9000e9, NULL, "2.50 h");
    expect_duration(1234567, "ns", "1234567");
    expect_duration(1234567, "us", "1234.567");
    expect_duration(1234567, "ms", "1.235");
    expect_duration(1234567, "s", "0.001235");
}

static void expect_real(double value, const char *want)
{
    struct marey__buf buf = {0};
    const struct marey_cell cell = {.as.f64 = value};
    const struct marey_column column = {"x", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE};
    marey__text_number(&buf, &cell, &column, NULL);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, want);
    marey__buf_fini(&buf);
}

static void numbers_have_four_digits_and_all_before_the_point(void **state)
{
    (void)state;
    expect_real(9.91883, "9.919");
    expect_real(1.0, "1");
    expect_real(-0.000123456, "-0.0001235");
    expect_real(123456.78, "123457");
    expect_real(1048576, "1048576");
    expect_real(999.96, "1000");
    expect_real(0.999165, "0.999165");
    expect_real(0.9, "0.9");
    expect_real(1.23456e18, "1.235e+18");
    expect_real(NAN, "nan");
    expect_real(-INFINITY, "-inf");
}

static void expect_text(const char *text, size_t len, size_t width, const char *want)
{
    struct marey__buf buf = {0};
    const size_t got = marey__text_put(&buf, text, len, width);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, want);
    assert_true(width == 0 || got <= width);
    marey__buf_fini(&buf);
}

static void names_are_made_fit_for_a_terminal(void **state)
{
    (void)state;
    expect_text("plain", 5, 0, "plain");
    expect_text("a\nb\tc\x1b[31m\0d", 11, 0, "a\\nb\\tc\\x1b[31m\\x00");
    expect_text("\xc2\x9b", 2, 0, "\\x9b");
    expect_text("\xff\xfe", 2, 0, "\xef\xbf\xbd\xef\xbf\xbd");
    expect_text("abcdefghij", 10, 7, "ab...ij");
    expect_text("abcdefghij", 10, 2, "..");
    expect_text("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac", 11, 4, "\xc3\xa4...");
    expect_text("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac", 11, 5,
                "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xe2\x82\xac");
}

/* ---- tables ---- */

static const struct marey_column columns[] = {
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"total_ns", "total", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"min_ns", "min", MAREY_TYPE_U64, MAREY_UNIT_NS},
};

static marey_table *make_table(void)
{
    marey_table *table = NULL;
    assert_int_equal(marey_table_create("t", columns, MAREY__COUNT_OF(columns), &table), MAREY_OK);
    marey_table_text(table, "step", 4);
    marey_table_u64(table, 2500000000);
    marey_table_f64(table, 0.6543);
    marey_table_u64(table, 7);
    marey_table_text(table, "say \"hi\",\r\n", 11);
    marey_table_u64(table, 12345);
    marey_table_f64(table, 0.001);
    marey_table_null(table);
    return table;
}

static void text_lines_up(void **state)
{
    (void)state;
    marey_table *table = make_table();
    FILE *stream = open_stream();
    assert_int_equal(marey_present_text(table, NULL, stream), MAREY_OK);
    expect_written(stream, "name               total   share   min\n"
                           "step             2.50 s   65.4 %  7 ns\n"
                           "say \"hi\",\\x0d\\n  12.3 us  0.10 %     -\n");
    stream = open_stream();
    assert_int_equal(marey_present_text(table, &(struct marey_text_options){.unit = "us"}, stream),
                     MAREY_OK);
    expect_written(stream, "name                total us   share  min us\n"
                           "step             2500000.000  65.4 %   0.007\n"
                           "say \"hi\",\\x0d\\n       12.345  0.10 %       -\n");
    marey_table_destroy(table);
}

static void narrow_text_cuts_names_then_leaves_columns_out(void **state)
{
    (void)state;
    marey_table *table = make_table();
    for (uint32_t width = 30; width < 60; width++) {
        FILE *stream = open_stream();
        marey_table_text(table, "a name that goes on and on and on and on and on", 47);
        marey_table_u64(table, 1);
        marey_table_f64(table, 0);
        marey_table_u64(table, 1);
        assert_int_equal(
            marey_present_text(table, &(struct marey_text_options){.width = width}, stream),
            MAREY_OK);
        fclose(stream);
        for (char *line = strtok(written, "\n"); line != NULL; line = strtok(NULL, "\n"))
            assert_true(strlen(line) <= width || line[0] == '(');
        free(written);
    }
    marey_table_destroy(table);
}

static void colours_come_only_when_asked(void **state)
{
    (void)state;
    marey_table *table = make_table();
    FILE *stream = open_stream();
    assert_int_equal(marey_present_text(table, &(struct marey_text_options){.color = 1}, stream),
                     MAREY_OK);
    fclose(stream);
    assert_int_equal(count_of("\033[1m"), 4);
    assert_int_equal(count_of("\033[31m65.4 %\033[0m"), 1);
    free(written);
    marey_table_destroy(table);
}

static void csv_quotes_what_it_must(void **state)
{
    (void)state;
    marey_table *table = make_table();
    FILE *stream = open_stream();
    assert_int_equal(marey_present_csv(table, stream), MAREY_OK);
    expect_written(stream, "name,total_ns,share,min_ns\r\n"
                           "step,2500000000,0.6543,7\r\n"
                           "\"say \"\"hi\"\",\r\n\",12345,0.001,\r\n");
    marey_table_destroy(table);
}

static void json_is_a_list_of_objects(void **state)
{
    (void)state;
    marey_table *table = make_table();
    FILE *stream = open_stream();
    assert_int_equal(marey_present_json(table, stream), MAREY_OK);
    expect_written(
        stream,
        "[\n"
        "  {\"name\": \"step\", \"total_ns\": 2500000000, \"share\": 0.6543, \"min_ns\": 7},\n"
        "  {\"name\": \"say \\\"hi\\\",\\u000d\\n\", \"total_ns\": 12345, \"share\": 0.001, "
        "\"min_ns\": null}\n"
        "]\n");
    marey_table_truncate(table, 0);
    stream = open_stream();
    assert_int_equal(marey_present_json(table, stream), MAREY_OK);
    expect_written(stream, "[]\n");
    marey_table_destroy(table);
}

static void a_refusing_stream_is_reported(void **state)
{
    (void)state;
    marey_table *table = make_table();
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL)
        skip();
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(marey_present_text(table, NULL, full), MAREY_EIO);
    assert_int_equal(marey_present_csv(table, full), MAREY_EIO);
    assert_int_equal(marey_present_json(table, full), MAREY_EIO);
    assert_int_equal(marey_append_csv(table, "/dev/full"), MAREY_EIO);
    fclose(full);
    marey_table_destroy(table);
}

/* ---- rows appended to a file ---- */

static void expect_file(const char *path, const char *text)
{
    char found[400] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void appended_rows_follow_one_line_of_names(void **state)
{
    (void)state;
    char path[] = "/tmp/marey-test-csv-XXXXXX";
    close(mkstemp(path));
    marey_table *table = make_table();
    marey_table_truncate(table, 1);
    assert_int_equal(marey_append_csv(table, path), MAREY_OK);
    assert_int_equal(marey_append_csv(table, path), MAREY_OK);
    expect_file(path, "name,total_ns,share,min_ns\r\n"
                      "step,2500000000,0.6543,7\r\n"
                      "step,2500000000,0.6543,7\r\n");
    write_file(path, "name,total_ns,share,min_ns\r\nste");
    assert_int_equal(marey_append_csv(table, path), MAREY_OK);
    expect_file(path, "name,total_ns,share,min_ns\r\nste\r\nstep,2500000000,0.6543,7\r\n");
    write_file(path, "name,total_ns,share\r\nand,other,rows\r\n");
    assert_int_equal(marey_append_csv(table, path), MAREY_EINVAL);
    expect_file(path, "name,total_ns,share\r\nand,other,rows\r\n");
    unlink(path);
    marey_table_destroy(table);
}

static void appending_without_memory_leaves_the_file_as_it_was(void **state)
{
    (void)state;
    char path[] = "/tmp/marey-test-csv-XXXXXX";
    close(mkstemp(path));
    marey_table *table = make_table();
    marey_table_truncate(table, 1);
    assert_int_equal(marey_append_csv(table, path), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        expect_file(path, "name,total_ns,share,min_ns\r\nstep,2500000000,0.6543,7\r\n");
        marey__alloc_fail_nth(nth);
        status = marey_append_csv(table, path);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 1000);
    }
    unlink(path);
    marey_table_destroy(table);
}

/* ---- the report ---- */

static marey_status summarise_by(struct log_maker *log, const char *setting, marey_report **summary)
{
    marey_recording *recording = NULL;
    const struct marey_report_options options = {.settings = (const char *const[]){setting, NULL}};
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    const marey_status status = marey_report_create("ranges", &recording, 1, &options, summary);
    log_close(recording);
    log_maker_fini(log);
    return status;
}

static marey_report *summarise(struct log_maker *log)
{
    marey_report *summary = NULL;
    assert_int_equal(summarise_by(log, NULL, &summary), MAREY_OK);
    return summary;
}

static marey_status make_summary_by(const char *setting, marey_report **summary)
{
    struct log_maker log = {0};
    log_put_preamble(&log);
    log_put_pairs(&log, MAREY__BLOCK_LOG,
                  (const char *const[]){"note", "The pool is not kill-safe.", NULL});
    log_begin(&log, 0, 1);
    log_begin(&log, 1000, 2);
    log_end(&log, 3000, 2);
    log_end(&log, 5000, 1);
    log_begin(&log, 6000, 3);
    log_put_words(&log, 0, 0);
    const struct marey__loss_entry loss = {3, 3000, 4000};
    log_put_block(&log, (struct marey__block){.type = MAREY__BLOCK_LOSS}, &loss, sizeof loss);
    log_put_end(&log, "stop");
    return summarise_by(&log, setting, summary);
}

static marey_report *make_summary(void)
{
    marey_report *summary = NULL;
    assert_int_equal(make_summary_by(NULL, &summary), MAREY_OK);
    return summary;
}

static void the_text_report_tells_everything(void **state)
{
    (void)state;
    marey_report *summary = make_summary();
    FILE *stream = open_stream();
    assert_int_equal(marey_report_write(summary, "text", NULL, stream), MAREY_OK);
    fclose(stream);
    assert_int_equal(count_of(": train --fast\n"), 1);
    assert_int_equal(count_of("1 process, 1 thread, 6.00 us, 5 events\n"), 1);
    assert_int_equal(count_of("\nouter "), 1);
    assert_int_equal(
        count_of(
            "left open: 1 range had begun and not ended\n  leaf, since 6.00 us after the start, "
            "thread main\n"),
        1);
    assert_int_equal(count_of("lost: 3 events between 3.00 us and 4.00 us after the start"), 1);
    assert_int_equal(count_of("marey cost: 5 events x 9.4 ns = 47 ns, 0.78 % of the program; flush "
                              "thread 1.23 us CPU; "
                              "log "),
                     1);
    assert_int_equal(count_of("note: The pool is not kill-safe.\n"), 1);
    free(written);
    marey_report_destroy(summary);
}

static void an_empty_recording_says_so(void **state)
{
    (void)state;
    struct log_maker log = {0};
    log_put_preamble(&log);
    log_put_end(&log, "stop");
    marey_report *summary = summarise(&log);
    FILE *stream = open_stream();
    assert_int_equal(marey_report_write(summary, "text", NULL, stream), MAREY_OK);
    fclose(stream);
    assert_int_equal(count_of("No events were recorded.\n"), 1);
    assert_int_equal(count_of("lost: none\n"), 1);
    free(written);
    marey_report_destroy(summary);
}

static void sort_limit_and_tables_choose(void **state)
{
    (void)state;
    marey_report *summary = NULL;
    assert_int_equal(make_summary_by("sort=-total", &summary), MAREY_OK);
    FILE *stream = open_stream();
    struct marey_write_options options = {.limit = 1, .table = "ranges,tree"};
    assert_int_equal(marey_report_write(summary, "text", &options, stream), MAREY_OK);
    fclose(stream);
    assert_int_equal(count_of("... and 1 more; --all shows them\n"), 2);
    assert_int_equal(count_of("\ninner "), 1); /* the lightest first, and the rest is not shown */
    assert_int_equal(count_of("\n  inner "), 0);
    free(written);
    stream = open_stream();
    marey_report *unsorted = NULL;
    assert_int_equal(make_summary_by("sort=nothing", &unsorted), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "total_ns, self_ns"));
    options = (struct marey_write_options){.table = "ranges,chairs"};
    assert_int_equal(marey_report_write(summary, "text", &options, stream), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "chairs"));
    fclose(stream);
    free(written);
    marey_report_destroy(summary);
}

static void the_json_report_has_its_keys(void **state)
{
    (void)state;
    marey_report *summary = make_summary();
    FILE *stream = open_stream();
    assert_int_equal(
        marey_report_write(summary, "json", &(struct marey_write_options){.table = "tree"}, stream),
        MAREY_OK);
    fclose(stream);
    const char *const keys[] = {
        "ranges",
        "tree",
        "processes",
        "open",
        "warnings",
        "lost_events\": 3",
        "cost\": {",
        "in_program_ns\": 47",
        "name\": \"outer\", \"count\": 1, \"total_ns\": 5000, "
        "\"self_ns\": 3000, \"mean_ns\": 5000, \"min_ns\": 5000, \"p50_ns\": 5000, "
        "\"p90_ns\": 5000, \"p99_ns\": 5000, \"max_ns\": 5000"};
    for (size_t i = 0; i < MAREY__COUNT_OF(keys); i++) {
        char key[200];
        snprintf(key, sizeof key, "\"%s", keys[i]);
        assert_true(count_of(key) >= 1);
    }
    free(written);
    marey_report_destroy(summary);
}

static void drawing_without_memory_leaks_nothing(void **state)
{
    (void)state;
    marey_report *summary = make_summary();
    FILE *stream = fopen("/dev/null", "w");
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = marey_report_write(summary, "text", NULL, stream);
        if (status == MAREY_OK)
            status = marey_report_write(summary, "json", NULL, stream);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 10000);
    }
    fclose(stream);
    marey_report_destroy(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_three_digits_and_a_unit_that_fits),
        cmocka_unit_test(numbers_have_four_digits_and_all_before_the_point),
        cmocka_unit_test(names_are_made_fit_for_a_terminal),
        cmocka_unit_test(text_lines_up),
        cmocka_unit_test(narrow_text_cuts_names_then_leaves_columns_out),
        cmocka_unit_test(colours_come_only_when_asked),
        cmocka_unit_test(csv_quotes_what_it_must),
        cmocka_unit_test(json_is_a_list_of_objects),
        cmocka_unit_test(a_refusing_stream_is_reported),
        cmocka_unit_test(appended_rows_follow_one_line_of_names),
        cmocka_unit_test(appending_without_memory_leaves_the_file_as_it_was),
        cmocka_unit_test(the_text_report_tells_everything),
        cmocka_unit_test(an_empty_recording_says_so),
        cmocka_unit_test(sort_limit_and_tables_choose),
        cmocka_unit_test(the_json_report_has_its_keys),
        cmocka_unit_test(drawing_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
