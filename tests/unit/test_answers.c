/* Answers: what a recording is asked, what it says where it has nothing, and the page. */
#include <fcntl.h>

#include "log_maker.h"
#include "scratch.h"
#include <kymo/answers.h>

enum { STEP = 1, FORWARD = 2 };

/* Ten steps of 100 ns with 60 ns of forward in each. */
static void make_steps(struct log_maker *log)
{
    log_put_process(log, NULL, NULL);
    log_put_site(log, STEP, "step");
    log_put_site(log, FORWARD, "<forward>");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
    for (uint64_t i = 0; i < 10; i++) {
        log_begin(log, 100 * i, STEP);
        log_begin(log, 100 * i + 10, FORWARD);
        log_end(log, 100 * i + 70, FORWARD);
        log_end(log, 100 * i + 100, STEP);
    }
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
}

static kymo_recording *steps(struct log_maker *log)
{
    kymo_recording *recording = NULL;
    make_steps(log);
    assert_int_equal(log_open(log, &recording), KYMO_OK);
    return recording;
}

static const char *text_of(const kymo_answers *answers, size_t row, const char *column)
{
    const kymo_table *table = kymo_answers_table(answers);
    return kymo_table_cell(table, row, (size_t)kymo_table_find(table, column)).as.text;
}

static size_t count(const kymo_answers *answers)
{
    return kymo_table_n_rows(kymo_answers_table(answers));
}

static void a_recording_answers_what_it_can(void **state)
{
    (void)state;
    struct log_maker log = {0};
    kymo_recording *recording = steps(&log);
    kymo_answers *answers = NULL;
    assert_int_equal(kymo_answers_create(&answers), KYMO_OK);
    assert_int_equal(kymo_answers_ask(answers, NULL, &recording, 1, "'a b.kymo'"), KYMO_OK);
    assert_int_equal(count(answers), 1); /* no iterations, epochs, communication, samples, ... */
    assert_string_equal(text_of(answers, 0, "question"), "Where does the time go?");
    assert_string_equal(text_of(answers, 0, "answer"),
                        "<forward> takes most time of its own: 600 ns in 10 calls, 60.0 % of all");
    assert_string_equal(text_of(answers, 0, "command"), "kymo report 'a b.kymo'");
    assert_non_null(strstr(text_of(answers, 0, "details"), "step"));
    kymo_answers_destroy(answers);
    log_close(recording);
    log_maker_fini(&log);
}

static void what_it_has_nothing_for_is_answered_by_why(void **state)
{
    (void)state;
    struct log_maker log = {0};
    kymo_recording *recording = steps(&log);
    static const char *const names[] = {"iterations", "epochs", "energy", "samples",
                                        "calls",      "memory", "gpu",    "breakdown"};
    kymo_answers *answers = NULL;
    assert_int_equal(kymo_answers_create(&answers), KYMO_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(kymo_answers_ask(answers, names[i], &recording, 1, "run.kymo"), KYMO_OK);
        assert_int_equal(count(answers), i + 1);
        assert_true(strlen(text_of(answers, i, "answer")) > 10);
        assert_true(strlen(text_of(answers, i, "details")) > 10);
    }
    assert_non_null(strstr(text_of(answers, 2, "answer"), "kymo run --energy"));
    assert_int_equal(kymo_answers_ask(answers, "weather", &recording, 1, "run.kymo"), KYMO_EINVAL);
    kymo_answers_destroy(answers);
    log_close(recording);
    log_maker_fini(&log);
}

static void an_answer_is_the_first_line(void **state)
{
    (void)state;
    kymo_answers *answers = NULL;
    char *text = NULL;
    size_t len = 0;
    assert_int_equal(kymo_answers_create(&answers), KYMO_OK);
    assert_int_equal(kymo_answers_add(answers, "Why?", "because\nand more\n", NULL), KYMO_OK);
    assert_int_equal(kymo_answers_add(answers, "How long?", "", "kymo report"), KYMO_OK);
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(kymo_answers_text(answers, NULL, out), KYMO_OK);
    fclose(out);
    assert_string_equal(text, "Why?       because\nHow long?  \n");
    free(text);
    kymo_answers_destroy(answers);
}

static char *page_of(const struct scratch *s, const kymo_answers *answers, const char *title)
{
    char *text = calloc(1, 1 << 16);
    const int fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && text != NULL);
    assert_int_equal(kymo_answers_html(answers, title, fd), KYMO_OK);
    assert_true(pread(fd, text, (1 << 16) - 1, 0) > 0);
    close(fd);
    return text;
}

static void all_texts_of_the_page_are_escaped(void **state)
{
    static const char evil[] = "<script>&\"'";
    kymo_answers *answers = NULL;
    assert_int_equal(kymo_answers_create(&answers), KYMO_OK);
    assert_int_equal(kymo_answers_add(answers, evil, evil, evil), KYMO_OK);
    assert_int_equal(kymo_answers_link(answers, evil, evil), KYMO_OK);
    char *page = page_of(*state, answers, evil);
    assert_null(strstr(page, "<script"));
    assert_non_null(strstr(page, "<a href=\"#a1\">&lt;script&gt;"));
    assert_non_null(strstr(page, "<section id=\"a1\">"));
    assert_non_null(strstr(page, "See also: <a href=\"&lt;script&gt;&amp;&quot;"));
    free(page);
    kymo_answers_destroy(answers);
}

static void sides_that_cannot_be_read_are_errors(void **state)
{
    (void)state;
    kymo_answers *answers = NULL;
    assert_int_equal(kymo_answers_create(&answers), KYMO_OK);
    assert_int_not_equal(kymo_answers_compare(answers, "/nowhere/a", "/nowhere/b"), KYMO_OK);
    assert_int_not_equal(kymo_answers_diff(answers, "/nowhere/a", "/nowhere/b"), KYMO_OK);
    assert_int_equal(count(answers), 0);
    kymo_answers_destroy(answers);
}

static kymo_status ask_twice(kymo_recording *recording, int fd)
{
    kymo_answers *answers = NULL;
    KYMO_TRY(kymo_answers_create(&answers));
    kymo_status status = kymo_answers_ask(answers, "time", &recording, 1, "run.kymo");
    if (status == KYMO_OK)
        status = kymo_answers_ask(answers, "energy", &recording, 1, "run.kymo");
    if (status == KYMO_OK)
        status = kymo_answers_link(answers, "a link", "a.html");
    if (status == KYMO_OK)
        status = kymo_answers_html(answers, NULL, fd);
    kymo_answers_destroy(answers);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    const struct scratch *s = *state;
    struct log_maker log = {0};
    kymo_recording *recording = steps(&log);
    const int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    kymo_status status = KYMO_ENOMEM;
    for (uint64_t nth = 1; status != KYMO_OK; nth++) {
        kymo__alloc_fail_nth(nth);
        status = ask_twice(recording, fd);
        kymo__alloc_fail_nth(0);
        assert_true(status == KYMO_OK || status == KYMO_ENOMEM);
        assert_true(nth < 10000);
    }
    close(fd);
    log_close(recording);
    log_maker_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_recording_answers_what_it_can),
        SCRATCH_TEST(what_it_has_nothing_for_is_answered_by_why),
        SCRATCH_TEST(an_answer_is_the_first_line),
        SCRATCH_TEST(all_texts_of_the_page_are_escaped),
        SCRATCH_TEST(sides_that_cannot_be_read_are_errors),
        SCRATCH_TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
