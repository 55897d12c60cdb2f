/* The page as a file: complete, safe, and errors for partial writes. tests/cli/test_page.py decodes
 * its content. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/page/internal.h"
#include <marey/page.h>

enum { OUTER = 1, INNER = 2, LEAF = 3 };

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log != NULL)
        log_put_preamble(log);
    return log == NULL;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

/* Some of everything. */
static void put_events(struct log_maker *log)
{
    const uint64_t value[] = {LEAF, 0x4000000000000000}, handle[] = {INNER, 77};
    log_put_stream(log, 1, 0, 7, "stream 7");
    log_iteration_begin(log, 5, 0);
    for (uint64_t t = 10; t < 1010; t += 10) {
        log_begin(log, t, OUTER);
        log_begin(log, t + 2, INNER);
        log_end(log, t + 5, INNER);
        log_end(log, t + 8, OUTER);
    }
    log_word(log, 1020, MAREY_KIND_MARK, LEAF);
    log_record(log, 1030, MAREY_RECORD_COUNTER, value, 2);
    log_record(log, 1040, MAREY_RECORD_ASYNC_BEGIN, handle, 2);
    log_record(log, 1050, MAREY_RECORD_ASYNC_END, handle, 2);
    log_iteration(log, 1060, 0, false, 0);
    log_begin(log, 1070, OUTER);
    log_put_words(log, 0, 0);
    log_work(log, 500, LEAF, MAREY_WORK_KERNEL, 30, 0, 0);
    log_work(log, 510, INNER, MAREY_WORK_KERNEL, 40, 0, 0);
    log_put_words(log, 1, 0);
}

/* The page in an unnamed file; the caller closes it. */
static marey_status write_page(marey_recording *recording, const struct marey_page_options *options,
                               int *fd)
{
    *fd = memfd_create("page", MFD_CLOEXEC);
    assert_true(*fd >= 0);
    return marey_page_write(&recording, 1, options, *fd);
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

static void a_page_begins_and_ends_as_html_does(void **state)
{
    marey_recording *recording = NULL;
    int fd;
    put_events(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    assert_int_equal(write_page(recording, NULL, &fd), MAREY_OK);
    char *text = text_of(fd);
    assert_memory_equal(text, "<!doctype html>", 15);
    const char *end = strstr(text, "</html>\n");
    assert_non_null(end);
    assert_string_equal(end, "</html>\n");
    assert_non_null(strstr(text, "Content-Security-Policy"));
    free(text);
    log_close(recording);
}

static void a_title_is_a_text(void **state)
{
    marey_recording *recording = NULL;
    int fd;
    const struct marey_page_options options = {.title = "</title><script>alert(1)</script>"};
    put_events(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    assert_int_equal(write_page(recording, &options, &fd), MAREY_OK);
    char *text = text_of(fd);
    assert_null(strstr(text, "alert(1)</script>"));
    assert_non_null(strstr(text, "&lt;script&gt;alert(1)"));
    free(text);
    log_close(recording);
}

static void a_recording_without_events_has_a_page(void **state)
{
    marey_recording *recording = NULL;
    int fd;
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    assert_int_equal(write_page(recording, NULL, &fd), MAREY_OK);
    free(text_of(fd));
    log_close(recording);
}

/* A build without Node.js has an empty template. */
static void a_build_without_node_says_how_to_get_pages(void **state)
{
    (void)state;
    const int fd = memfd_create("page", MFD_CLOEXEC);
    assert_int_equal(marey__page_head(fd, "", "title"), MAREY_EUNAVAILABLE);
    assert_non_null(
        strstr(marey_last_error(), "Install a wheel of marey, or install nodejs and npm"));
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    close(fd);
}

static void a_full_disk_is_reported(void **state)
{
    marey_recording *recording = NULL;
    put_events(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(marey_page_write(&recording, 1, NULL, fd), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "write the page"));
    close(fd);
    log_close(recording);
}

static void memory_that_runs_out_leaves_nothing_behind(void **state)
{
    marey_recording *recording = NULL;
    put_events(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    const struct marey_page_options options = {.report = {.n_jobs = 1}};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        int fd = memfd_create("page", MFD_CLOEXEC);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_page_begins_and_ends_as_html_does),        TEST(a_title_is_a_text),
        TEST(a_recording_without_events_has_a_page),      TEST(a_full_disk_is_reported),
        TEST(memory_that_runs_out_leaves_nothing_behind),
    };
    const struct CMUnitTest in_any_build[] = {TEST(a_build_without_node_says_how_to_get_pages)};
    const int failed = cmocka_run_group_tests(in_any_build, NULL, NULL);
    return marey__page_template[0] == '\0' ? failed
                                           : failed + cmocka_run_group_tests(tests, NULL, NULL);
}
