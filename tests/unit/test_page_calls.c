/* Calls on pages: in a report's page, separately, and in comparisons. tests/cli/test_page.py
 * decodes pages. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/calls/internal.h"
#include "calls_maker.h"
#include "present/page/internal.h"
#include <marey/page.h>

/* main calls dot with two shapes; `n` calls of the second. */
static marey_recording *open_program(int n)
{
    struct log_maker log = {0};
    struct marey__buf block = {0};
    marey_recording *recording = NULL;
    log_put_process(&log, "rank", "0");
    log_put_moment(&log, 0, 0);
    calls_profile(&block, 0, MAREY__CALLS_SIGNATURES);
    calls_thread(&block, 1, 11, "MainThread");
    calls_function(&block, 1, 1, "main");
    calls_function(&block, 2, 7, "dot");
    calls_signature(&block, 1, 2, 32, "a:ndarray(dtype=float32, shape=(16,))");
    calls_signature(&block, 2, 2, 64, "a:ndarray(dtype=float32, shape=(32,))");
    calls_path(&block, 1, 0, 1, 0, 1, 10, 1000);
    calls_path(&block, 2, 1, 2, 1, 4, 60, 64);
    calls_path(&block, 3, 1, 2, 2, n, 630, 640);
    calls_put_block(&log, &block);
    log_put_end(&log, "exit");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    return recording;
}

static marey_recording *open_empty(void)
{
    struct log_maker log = {0};
    marey_recording *recording = NULL;
    log_put_preamble(&log);
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    return recording;
}

static char *text_of(int fd)
{
    const off_t n = lseek(fd, 0, SEEK_END);
    char *text = calloc((size_t)n + 1, 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)n, 0), n);
    close(fd);
    return text;
}

static size_t count_text(const char *text, const char *word)
{
    size_t n = 0;
    while ((text = strstr(text, word)) != NULL) {
        text++;
        n++;
    }
    return n;
}

static char *page_of(marey_recording *recording, const struct marey_page_calls_options *options)
{
    const int fd = memfd_create("page", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(marey_page_calls(&recording, 1, options, fd), MAREY_OK);
    return text_of(fd);
}

static void a_page_of_calls_has_their_nodes(void **state)
{
    (void)state;
    marey_recording *recording = open_program(1);
    char *const text = page_of(recording, NULL);
    assert_memory_equal(text, "<!doctype html>", 15);
    assert_int_equal(count_text(text, "</html>"), 1);
    assert_non_null(strstr(text, "<title>calls of "));
    assert_int_equal(count_text(text, "id=\"calls-"), 1);
    free(text);
    log_close(recording);
}

static void a_difference_has_two_profiles_and_both_names(void **state)
{
    (void)state;
    marey_recording *now = open_program(1), *before = open_program(5);
    const struct marey_page_calls_options options = {
        .name = "<now>", .before = &before, .n_before = 1, .name_before = "before"};
    char *const text = page_of(now, &options);
    assert_non_null(strstr(text, "<title>calls of &lt;now&gt; against before</title>"));
    assert_int_equal(count_text(text, "id=\"calls-"), 2);
    free(text);
    log_close(now);
    log_close(before);
}

static void a_report_has_calls_where_some_were_profiled(void **state)
{
    (void)state;
    marey_recording *recordings[] = {open_program(1), open_empty()};
    for (size_t i = 0; i < 2; i++) {
        const int fd = memfd_create("page", MFD_CLOEXEC);
        assert_int_equal(marey_page_write(&recordings[i], 1, NULL, fd), MAREY_OK);
        char *const text = text_of(fd);
        assert_int_equal(count_text(text, "id=\"calls-0\""), i == 0);
        free(text);
        log_close(recordings[i]);
    }
}

static void nothing_to_show_is_reported(void **state)
{
    (void)state;
    marey_recording *some = open_program(1), *none = open_empty();
    const struct marey_page_calls_options options = {.before = &none, .n_before = 1};
    const int fd = memfd_create("page", MFD_CLOEXEC);
    assert_int_equal(marey_page_calls(&none, 1, NULL, fd), MAREY_EFORMAT);
    assert_int_equal(marey_page_calls(&some, 1, &options, fd), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "has neither calls nor samples nor ranges"));
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    close(fd);
    log_close(some);
    log_close(none);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    marey_recording *recording = open_program(1);
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(marey_page_calls(&recording, 1, NULL, fd), MAREY_EIO);
    close(fd);
    log_close(recording);
}

static void memory_that_runs_out_leaves_nothing_behind(void **state)
{
    (void)state;
    marey_recording *now = open_program(1), *before = open_program(5);
    const struct marey_page_calls_options options = {.before = &before, .n_before = 1};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        const int fd = memfd_create("page", MFD_CLOEXEC);
        marey__alloc_fail_nth(nth);
        status = marey_page_calls(&now, 1, &options, fd);
        marey__alloc_fail_nth(0);
        close(fd);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 10000);
    }
    log_close(now);
    log_close(before);
}

static void a_report_page_survives_it_too(void **state)
{
    (void)state;
    marey_recording *recording = open_program(1);
    const struct marey_page_options options = {.report = {.n_jobs = 1}};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        const int fd = memfd_create("page", MFD_CLOEXEC);
        marey__alloc_fail_nth(nth);
        status = marey_page_write(&recording, 1, &options, fd);
        marey__alloc_fail_nth(0);
        close(fd);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 10000);
    }
    log_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_calls_has_their_nodes),
        cmocka_unit_test(a_difference_has_two_profiles_and_both_names),
        cmocka_unit_test(a_report_has_calls_where_some_were_profiled),
        cmocka_unit_test(nothing_to_show_is_reported),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing_behind),
        cmocka_unit_test(a_report_page_survives_it_too),
    };
    if (marey__page_template[0] == '\0')
        return 0; /* a build without Node.js cannot write pages */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
