/*
 * Exports of stacks, from logs built by hand: collapsed lines, speedscope's events, the flame graph's boxes. One tick is
 * one nanosecond. Sites: 1 outer, 2 inner, 3 leaf, and the odd ones below; lanes 0 main and 1 worker.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/export/stacks/internal.h"

enum { OUTER = 1, INNER, LEAF, SEMI, COLON, LAYER, HOSTILE };

/* ---- logs ---- */

struct fixture {
    struct log_maker log, old;
    uint32_t sequence[2];
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    for (int i = 0; i < 2; i++) {
        struct log_maker *log = i == 0 ? &f->log : &f->old;
        log_put_preamble(log);
        log_put_site(log, SEMI, "a;b\n");
        log_put_site(log, COLON, "a:b ");
        log_put_site(log, LAYER, "layer 12");
        log_put_site(log, HOSTILE, "</title><script>alert(\"1\")&'\x01\xff\xef\xbf\xbf");
        log_put_lane(log, 1, 101, "worker");
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    log_maker_fini(&f->log);
    log_maker_fini(&f->old);
    test_free(f);
    return 0;
}

/* Letters: "o" begins outer, "i" inner, "l" leaf, "." ends the latest; each takes place `step` after the one before. */
static void play(struct log_maker *log, uint32_t lane, uint32_t sequence, uint64_t step,
                 const char *letters)
{
    uint64_t now = 1000;
    for (; *letters != '\0'; letters++, now += step) {
        const char *const known = "oilscyh";
        if (*letters == '.')
            log_end(log, now, 0);
        else
            log_begin(log, now, OUTER + (uint32_t)(strchr(known, *letters) - known));
    }
    log_put_words(log, lane, sequence);
}

/* ---- exports ---- */

struct wish {
    const char *filter, *by;
    bool with_old;
};

static marey_status export_to(struct fixture *f, const char *format, const struct wish *wish, int fd)
{
    struct marey_export_options options = {.filter = wish->filter, .by = wish->by};
    marey_recording *recording = NULL, *old = NULL;
    marey_status status = log_open(&f->log, &recording);
    if (status == MAREY_OK && wish->with_old) {
        status = log_open(&f->old, &old);
        options.baseline = &old;
        options.n_baseline = 1;
    }
    if (status == MAREY_OK)
        status = marey_export(&recording, 1, format, &options, fd);
    if (recording != NULL)
        log_close(recording);
    if (old != NULL)
        log_close(old);
    return status;
}

/* Free what comes back with test_free. */
static char *exported(struct fixture *f, const char *format, struct wish wish)
{
    const int fd = memfd_create("export", MFD_CLOEXEC);
    assert_int_equal(export_to(f, format, &wish, fd), MAREY_OK);
    const size_t len = (size_t)lseek(fd, 0, SEEK_CUR);
    char *text = test_calloc(len + 1, 1);
    assert_int_equal(pread(fd, text, len, 0), (ssize_t)len);
    close(fd);
    return text;
}

static void expect_lines(struct fixture *f, struct wish wish, const char *lines)
{
    char *text = exported(f, "collapsed", wish);
    assert_string_equal(text, lines);
    test_free(text);
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no %s in\n%s", part, text);
}

static size_t count_in(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* ---- collapsed ---- */

static void equal_paths_are_one_line_of_self_time(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi.l.i..");
    play(&f->log, 1, 0, 10, "oi..l.");
    expect_lines(f, (struct wish){0}, "leaf 10\nouter 60\nouter;inner 30\nouter;leaf 10\n");
}

/* Counts are not in the lines, but on the boxes. */
static void boxes_tell_all_calls_that_a_range_stands_for(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 1000, OUTER);
    log_repeat(&f->log, 1000, 250);
    log_begin(&f->log, 1000, INNER);
    log_end(&f->log, 3000, INNER);
    log_end(&f->log, 4000, OUTER);
    log_put_words(&f->log, 0, 0);
    char *text = exported(f, "flamegraph", (struct wish){0});
    expect_in(text, "250 calls");
    test_free(text);
    expect_lines(f, (struct wish){0}, "outer 1000\nouter;inner 2000\n");
}

static void recursion_keeps_its_levels(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "ooo...");
    expect_lines(f, (struct wish){0}, "outer 20\nouter;outer 20\nouter;outer;outer 10\n");
}

static void what_ended_in_a_range_left_open_keeps_its_path(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi.");
    expect_lines(f, (struct wish){0}, "outer;inner 10\n");
}

static void orphans_and_gaps_take_no_time(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, ".o.i");
    play(&f->log, 0, 5, 10, "....l.");
    expect_lines(f, (struct wish){0}, "leaf 10\nouter 10\n");
}

static void names_cannot_break_a_line(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "s.c.y.");
    expect_lines(f, (struct wish){0}, "a:b 20\nlayer_12 10\n");
}

static void only_digits_behind_a_space_look_like_a_number(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"layer 12", "layer_12"},
                                           {"loss 0.5", "loss_0.5"},
                                           {"loss 1.", "loss_1."},
                                           {"12", "12"},
                                           {"a .5", "a .5"},
                                           {"v1.2.3", "v1.2.3"},
                                           {"a 1.2.3", "a 1.2.3"},
                                           {"x 12a", "x 12a"},
                                           {"a ", "a"},
                                           {" 7", "_7"},
                                           {"loss 0.5 \n", "loss_0.5"},
                                           {"  ", "(unnamed)"},
                                           {"", "(unnamed)"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        struct marey__buf buf = {0};
        marey__collapsed_name(&buf, cases[i][0], strlen(cases[i][0]));
        marey__buf_put(&buf, "", 1);
        assert_string_equal(buf.data, cases[i][1]);
        marey__buf_fini(&buf);
    }
}

static void what_a_filter_leaves_out_counts_around_it(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oil...i.");
    expect_lines(f, (struct wish){.filter = "*e*"},
                 "inner 10\nouter 20\nouter;inner 20\nouter;inner;leaf 10\n");
    expect_lines(f, (struct wish){.filter = "outer"}, "outer 50\n");
    expect_lines(f, (struct wish){.filter = "leaf"}, "leaf 10\n");
    expect_lines(f, (struct wish){.filter = "none"}, "");
    expect_lines(f, (struct wish){.filter = "leaf", .by = "rank"}, "rank 0;leaf 10\n");
}

static void threads_or_ranks_come_first_when_asked_for(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "o.");
    play(&f->log, 1, 0, 20, "o.");
    expect_lines(f, (struct wish){.by = "rank"}, "rank 0;outer 30\n");
    expect_lines(f, (struct wish){.by = "thread"},
                 "rank 0, main;outer 10\nrank 0, worker;outer 20\n");
}

static void threads_of_one_name_are_numbered(void **state)
{
    struct fixture *f = *state;
    log_put_lane(&f->log, 2, 102, "worker");
    play(&f->log, 1, 0, 10, "o.");
    play(&f->log, 2, 0, 20, "o.");
    expect_lines(f, (struct wish){.by = "thread"},
                 "rank 0, worker;outer 10\nrank 0, worker #2;outer 20\n");
}

static void a_baseline_gives_two_numbers(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi..l.");
    play(&f->old, 0, 0, 20, "oi..i.");
    expect_lines(f, (struct wish){.with_old = true},
                 "inner 20 0\nleaf 0 10\nouter 40 20\nouter;inner 20 10\n");
}

static void wrong_wishes_are_refused_in_one_sentence(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "o.");
    const int fd = open("/dev/null", O_WRONLY);
    assert_int_equal(export_to(f, "collapsed", &(struct wish){.by = "host"}, fd), MAREY_EINVAL);
    expect_in(marey_last_error(), "'host'");
    assert_int_equal(export_to(f, "chrome", &(struct wish){.by = "rank"}, fd), MAREY_EINVAL);
    assert_int_equal(export_to(f, "speedscope", &(struct wish){.with_old = true}, fd), MAREY_EINVAL);
    expect_in(marey_last_error(), "collapsed and flamegraph");
    close(fd);
}

/* ---- speedscope ---- */

static void each_thread_is_one_balanced_profile(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi");
    play(&f->log, 1, 0, 10, "l.");
    play(&f->log, 0, 1, 10, "i..");
    char *text = exported(f, "speedscope", (struct wish){0});
    expect_in(
        text,
        "train, pid 100, main 100\",\"unit\":\"nanoseconds\",\"startValue\":1000,\"events\":[\n"
        "{\"type\":\"O\",\"frame\":0,\"at\":1000},\n"
        "{\"type\":\"O\",\"frame\":1,\"at\":1010},\n"
        "{\"type\":\"O\",\"frame\":1,\"at\":1010},\n"
        "{\"type\":\"C\",\"frame\":1,\"at\":1010},\n"
        "{\"type\":\"C\",\"frame\":1,\"at\":1020},\n"
        "{\"type\":\"C\",\"frame\":0,\"at\":1020}\n],\"endValue\":1020}");
    expect_in(text, ", worker 101\",\"unit\":\"nanoseconds\",\"startValue\":1000,\"events\":[\n"
                    "{\"type\":\"O\",\"frame\":2,\"at\":1000},\n"
                    "{\"type\":\"C\",\"frame\":2,\"at\":1010}\n],\"endValue\":1010}\n");
    expect_in(text, "{\"name\":\"inner\",\"file\":\"a.c\"");
    assert_int_equal(count_in(text, "\"name\":"), 2 + 3);
    test_free(text);
}

static void a_gap_closes_what_was_open(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi");
    play(&f->log, 0, 9, 10, "..l");
    char *text = exported(f, "speedscope", (struct wish){0});
    assert_int_equal(count_in(text, "\"O\""), 3);
    assert_int_equal(count_in(text, "\"C\""), 3);
    test_free(text);
}

static void without_ranges_there_is_one_empty_profile(void **state)
{
    struct fixture *f = *state;
    log_word(&f->log, 1000, MAREY_KIND_MARK, OUTER);
    log_put_words(&f->log, 0, 0);
    char *text = exported(f, "speedscope", (struct wish){0});
    expect_in(text, "\"profiles\":[\n{\"type\":\"evented\",\"name\":\"no ranges\"");
    expect_in(text, "\"events\":[],\"endValue\":0}\n],\"shared\":{\"frames\":[\n]}}");
    test_free(text);
}

/* ---- the flame graph ---- */

static void boxes_are_as_wide_as_their_total(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi..l.");
    char *text = exported(f, "flamegraph", (struct wish){0});
    expect_in(
        text,
        "<title>all\ntotal 40 ns (100 %)</title><rect x=\"10.00\" y=\"78\" width=\"1180.00\"");
    expect_in(text,
              "<title>outer\ntotal 30 ns (75.0 %)\nself 20 ns (50.0 %)\n1 call, mean 30 ns</title>"
              "<rect x=\"10.00\" y=\"96\" width=\"885.00\"");
    expect_in(text,
              "<title>inner\ntotal 10 ns (25.0 %)\nself 10 ns (25.0 %)\n1 call, mean 10 ns</title>"
              "<rect x=\"10.00\" y=\"114\" width=\"295.00\"");
    expect_in(text, "<title>leaf\n");
    expect_in(text, "<rect x=\"895.00\" y=\"96\" width=\"295.00\"");
    assert_int_equal(count_in(text, "class=\"b\""), 4);
    test_free(text);
}

static void children_begin_at_the_left_edge_of_their_parent(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi..li..");
    char *text = exported(f, "flamegraph", (struct wish){0});
    assert_int_equal(count_in(text, "<rect x=\"10.00\" y=\"114\" width=\"196.67\""), 1);
    assert_int_equal(count_in(text, "<rect x=\"600.00\" y=\"114\" width=\"196.67\""), 1);
    test_free(text);
}

static void narrow_paths_share_a_box_and_are_counted(void **state)
{
    struct fixture *f = *state;
    uint64_t now = 1000;
    for (int i = 0; i < 400; i++, now += 2) {
        log_begin(&f->log, now, OUTER + (uint32_t)(i % 2));
        log_begin(&f->log, now, LEAF);
        log_end(&f->log, now + 1, 0);
        log_end(&f->log, now + 1, 0);
    }
    log_begin(&f->log, now, LAYER);
    log_end(&f->log, now + 1000000, 0);
    log_put_words(&f->log, 0, 0);
    char *text = exported(f, "flamegraph", (struct wish){0});
    assert_int_equal(count_in(text, "class=\"b\""), 3);
    expect_in(text, "<title>2 narrow ones\ntotal 400 ns (0.04 %)</title>");
    expect_in(text, ">4 paths narrower than 0.25 pixels, together 400 ns, left out");
    test_free(text);
}

static void hostile_names_are_text(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "h.");
    char *text = exported(f, "flamegraph", (struct wish){0});
    expect_in(
        text,
        "<title>&lt;/"
        "title&gt;&lt;script&gt;alert(&quot;1&quot;)&amp;&#39;\\x01\xef\xbf\xbd\xef\xbf\xbd\n");
    assert_int_equal(count_in(text, "<script>"), 1);
    assert_int_equal(count_in(text, "\x01"), 0);
    test_free(text);
}

static void an_empty_recording_gives_a_picture_that_says_so(void **state)
{
    struct fixture *f = *state;
    char *text = exported(f, "flamegraph", (struct wish){0});
    expect_in(text, "No range has both a begin and an end.");
    expect_in(text, "</svg>");
    test_free(text);
    expect_lines(f, (struct wish){0}, "");
}

static void a_baseline_colours_changes_and_lists_what_is_gone(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 100000, "oi..l.");
    play(&f->old, 0, 0, 200000, "oi..y.");
    char *text = exported(f, "flamegraph", (struct wish){.with_old = true});
    expect_in(text, "400 us in ranges of 1 process and 1 thread; before, 800 us of 1 process and 1 "
                    "thread; -400 us (-50.0 %).");
    expect_in(text, "<title>outer\ntotal 300 us (75.0 %), before 600 us (-300 us)\n"
                    "self 200 us (50.0 %), before 400 us (-200 us)\n1 call, mean 300 us</title>");
    expect_in(text, "<title>leaf\ntotal 100 us (25.0 %), not there before\n");
    /* outer is faster, leaf slower */
    expect_in(text, "<rect x=\"10.00\" y=\"136\" width=\"885.00\" height=\"17\" fill=\"#5a9bd4\"");
    expect_in(text, "<rect x=\"895.00\" y=\"136\" width=\"295.00\" height=\"17\" fill=\"#e3705a\"");
    expect_in(text, ">layer 12, 1 call</text>");
    expect_in(text, ">200 us</text>");
    expect_in(text, ">+100 us</text>");
    test_free(text);
}

static void equal_recordings_have_no_change(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi..");
    play(&f->old, 0, 0, 10, "oi..");
    char *text = exported(f, "flamegraph", (struct wish){.with_old = true});
    expect_in(text, "(nothing changed)");
    assert_int_equal(count_in(text, "Only in"), 0);
    test_free(text);
}

static void labels_are_cut_in_the_middle_between_letters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *label;
        double letters;
    } cases[] = {
        {"forward", "forward  1 s", 12},
        {"forward", "forward", 11},
        {"forward",
         "fo\xe2\x80\xa6"
         "ard",
         6},
        {"forward", "f\xe2\x80\xa6rd", 4},
        {"forward", "", 3},
        {"ab", "ab", 2},
        {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa9", "\xc3\xa4\xe2\x80\xa6\xc3\x9f\xc3\xa9", 4}};
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        struct marey__buf label = {0}, name = {0};
        marey__buf_puts(&name, cases[i].name);
        marey__flame_label(&label, &name, "1 s", 6.1 + cases[i].letters * MAREY__FLAME_LETTER);
        marey__buf_put(&label, "", 1);
        assert_string_equal(label.data, cases[i].label);
        marey__buf_fini(&label);
        marey__buf_fini(&name);
    }
}

static void letters_are_dark_on_light_boxes(void **state)
{
    (void)state;
    for (uint64_t hash = 1; hash != 0; hash *= 6) {
        const uint32_t rgb = marey__flame_color(hash);
        const double light = 0.2126 * (rgb >> 16) + 0.7152 * (rgb >> 8 & 255) + 0.0722 * (rgb & 255);
        assert_true(light > 140);
        assert_int_equal(rgb, marey__flame_color(hash));
    }
}

/* ---- all formats ---- */

static void any_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    play(&f->log, 0, 0, 10, "oi..l.");
    play(&f->log, 1, 0, 10, "h.");
    play(&f->old, 0, 0, 10, "y.oi.i..");
    static const struct {
        const char *format;
        struct wish wish;
    } cases[] = {{"speedscope", {0}},
                 {"collapsed", {.by = "thread", .with_old = true}},
                 {"flamegraph", {.filter = "*", .with_old = true}}};
    const int fd = open("/dev/null", O_WRONLY);
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status == MAREY_ENOMEM && nth < 100000; nth++) {
            marey__alloc_fail_nth(nth);
            status = export_to(f, cases[i].format, &cases[i].wish, fd);
        }
        marey__alloc_fail_nth(0);
        assert_int_equal(status, MAREY_OK);
    }
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_paths_are_one_line_of_self_time),
        TEST(boxes_tell_all_calls_that_a_range_stands_for),
        TEST(recursion_keeps_its_levels),
        TEST(what_ended_in_a_range_left_open_keeps_its_path),
        TEST(orphans_and_gaps_take_no_time),
        TEST(names_cannot_break_a_line),
        cmocka_unit_test(only_digits_behind_a_space_look_like_a_number),
        TEST(what_a_filter_leaves_out_counts_around_it),
        TEST(threads_or_ranks_come_first_when_asked_for),
        TEST(threads_of_one_name_are_numbered),
        TEST(a_baseline_gives_two_numbers),
        TEST(wrong_wishes_are_refused_in_one_sentence),
        TEST(each_thread_is_one_balanced_profile),
        TEST(a_gap_closes_what_was_open),
        TEST(without_ranges_there_is_one_empty_profile),
        TEST(boxes_are_as_wide_as_their_total),
        TEST(children_begin_at_the_left_edge_of_their_parent),
        TEST(narrow_paths_share_a_box_and_are_counted),
        TEST(hostile_names_are_text),
        TEST(an_empty_recording_gives_a_picture_that_says_so),
        TEST(a_baseline_colours_changes_and_lists_what_is_gone),
        TEST(equal_recordings_have_no_change),
        cmocka_unit_test(labels_are_cut_in_the_middle_between_letters),
        cmocka_unit_test(letters_are_dark_on_light_boxes),
        TEST(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
