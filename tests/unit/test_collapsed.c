/* Collapsed stacks and py-spy's raw format, read as recordings. A sample is 10 ms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/stacks/internal.h"
#include "importing.h"

#define MS UINT64_C(1000000)

static marey_recording *read_text(const char *text)
{
    return import_text(&marey__import_collapsed, text);
}

static marey_report *summarise(const char *text)
{
    return summary_of(read_text(text));
}

static bool looks_like(const char *text)
{
    return marey__import_collapsed.looks_like(text, strlen(text));
}

/* ---- frames ---- */

static void expect_frame(const char *text, const char *name, const char *file, uint32_t line)
{
    struct marey__frames frames;
    marey__frames_init(&frames);
    const uint32_t number = marey__frames_of_text(&frames, text, strlen(text));
    const struct marey__text_frame *frame = &frames.frames[number];
    assert_int_equal(frame->name_len, strlen(name));
    assert_memory_equal(frame->name, name, frame->name_len);
    assert_int_equal(frame->file_len, strlen(file));
    assert_memory_equal(frame->file, file, frame->file_len);
    assert_int_equal(frame->line, line);
    marey__frames_fini(&frames);
}

static void frames_are_taken_apart(void **state)
{
    (void)state;
    expect_frame("main (a/b.py:3)", "main", "a/b.py", 3);
    expect_frame("main (a.py)", "main", "a.py", 0);
    expect_frame("main", "main", "", 0);
    expect_frame("<lambda> (a.py:1)", "<lambda>", "a.py", 1);
    expect_frame("f (<string>:1)", "f", "<string>", 1);
    expect_frame("operator() (x.cpp:3)", "operator()", "x.cpp", 3);
    expect_frame("operator()", "operator()", "", 0);
    expect_frame("at::native::add (int) (libtorch_cpu.so)", "at::native::add (int)",
                 "libtorch_cpu.so", 0);
    expect_frame("two words (a.py:4)", "two words", "a.py", 4);
    expect_frame("f (/home/x (old)/a.py:5)", "f", "/home/x (old)/a.py", 5);
    expect_frame("f (C:\\Program Files (x86)\\a.py:6)", "f", "C:\\Program Files (x86)\\a.py", 6);
    expect_frame("f (C:\\a.py)", "f", "C:\\a.py", 0);
    expect_frame("f (odd).py:7)", "f", "odd).py", 7);
    expect_frame("_find_and_load (<frozen importlib._bootstrap>:1007)", "_find_and_load",
                 "<frozen importlib._bootstrap>", 1007);
    expect_frame("do_syscall_64_[k]", "do_syscall_64_[k]", "", 0);
    expect_frame("f (a.py:99999999999)", "f", "a.py:99999999999", 0);
    expect_frame(" ()", " ()", "", 0);
    expect_frame(")", ")", "", 0);
}

static void expect_frames(const char *text, const char *const *frames)
{
    struct marey__text stack = {text, strlen(text)}, frame;
    for (; *frames != NULL; frames++) {
        assert_true(marey__collapsed_frame(&stack, &frame));
        assert_int_equal(frame.len, strlen(*frames));
        assert_memory_equal(frame.at, *frames, frame.len);
    }
    assert_false(marey__collapsed_frame(&stack, &frame));
}

static void semicolons_in_a_command_end_no_frame(void **state)
{
    (void)state;
#define FRAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
    expect_frames("a;b", FRAMES("a", "b"));
    expect_frames(";a;;b;", FRAMES("a", "b"));
    expect_frames("process 12:\"python -c a;b\";main (a.py:3)",
                  FRAMES("process 12:\"python -c a;b\"", "main (a.py:3)"));
    expect_frames("process 12:\"python -c x=\"a\";y()\";main (a.py:3);f",
                  FRAMES("process 12:\"python -c x=\"a\";y()\"", "main (a.py:3)", "f"));
    expect_frames("process 1:\"a\";process 2:\"b;c\";thread (0x7F): x;f (a.py:1)",
                  FRAMES("process 1:\"a\"", "process 2:\"b;c\"", "thread (0x7F): x", "f (a.py:1)"));
    expect_frames("process 12:\"python\"", FRAMES("process 12:\"python\""));
    expect_frames("process 12:\"python\";native", FRAMES("process 12:\"python\"", "native"));
    expect_frames("process 12:\"no end;f", FRAMES("process 12:\"no end", "f"));
    expect_frames("process of mine;f", FRAMES("process of mine", "f"));
}

/* ---- lines ---- */

static void expect_line(const char *line, bool is_difference, const char *stack, uint64_t count)
{
    struct marey__text got;
    uint64_t n = 0;
    const bool is_stack = marey__collapsed_line(line, strlen(line), is_difference, &got, &n);
    assert_int_equal(is_stack, stack != NULL);
    if (stack == NULL)
        return;
    assert_int_equal(got.len, strlen(stack));
    assert_memory_equal(got.at, stack, got.len);
    assert_int_equal(n, count);
}

static void lines_end_in_a_number(void **state)
{
    (void)state;
    expect_line("a;b 5", false, "a;b", 5);
    expect_line("a b;c d\t5 \r", false, "a b;c d", 5);
    expect_line("a 2.5", false, "a", 3);
    expect_line("a 2.49", false, "a", 2);
    expect_line("a 2.", false, "a", 2);
    expect_line("a 2.3.4", false, NULL, 0);
    expect_line("a .5", false, NULL, 0);
    expect_line("a", false, NULL, 0);
    expect_line("5", false, NULL, 0);
    expect_line(" 5", false, "", 5); /* py-spy before the first frame of a thread */
    expect_line("a -5", false, NULL, 0);
    expect_line("a5", false, NULL, 0);
    expect_line("layer 12 500", false, "layer 12", 500);
    expect_line("a;b 10 20", true, "a;b", 20);
    expect_line("a;b 20", true, "a;b", 20);
    expect_line("a 99999999999999999999999", false, "a", UINT64_MAX);
}

static void a_difference_has_two_numbers_on_each_line(void **state)
{
    (void)state;
    static const char all[] = "# made by difffolded\n\na 1 2\nb;c 3 4\n", one[] = "a 1 2\nb 3\n";
    assert_true(marey__collapsed_is_difference(all, strlen(all)));
    assert_false(marey__collapsed_is_difference(one, strlen(one)));
    assert_true(marey__collapsed_is_difference(one, 9)); /* the end is not there yet */
    assert_false(marey__collapsed_is_difference("", 0));
    marey_report *summary = summarise("a;b 10 20\na;c 5 0\n");
    expect_range(summary, "a", 20, 200 * MS, 0);
    expect_range(summary, "b", 20, 200 * MS, 200 * MS);
    expect_no_range(summary, "c");
    expect_warning(summary, "the second is used");
    marey_report_destroy(summary);
}

/* ---- recordings ---- */

static void stacks_become_a_tree_of_samples(void **state)
{
    (void)state;
    marey_report *summary = summarise("main;f;g 3\nmain 1\nmain;h 4\nmain;f 2\n\nother;f 10\n");
    expect_range(summary, "main", 10, 100 * MS, 10 * MS);
    expect_range(summary, "f", 15, 150 * MS, 120 * MS);
    expect_range(summary, "g", 3, 30 * MS, 30 * MS);
    expect_range(summary, "h", 4, 40 * MS, 40 * MS);
    expect_range(summary, "other", 10, 100 * MS, 0);
    expect_warning(
        summary,
        "20 samples, taken as 10.0 ms each, so that counts are samples; a.file has no times");
    marey_report_destroy(summary);
}

/* Each row of what itwinai's parser takes or refuses. */
static void every_kind_of_line_counts(void **state)
{
    (void)state;
    static const char raw[] = "main (a/b.py:3);f (c.py:10) 5\n"
                              "process 12:\"python x.py\";main (a.py:3) 5\n"
                              "process 12:\"python -c a;b\";main (a.py:3) 5\n"
                              "thread (0x7F): MainThread;main (a.py:3) 5\n"
                              "main (a.py) 5\n"
                              "f (libx.so) 5\n"
                              "two words (a (1).py:3) 5\n"
                              "f (C:\\x\\a.py:9) 5\n"
                              "\n"
                              "<lambda> (a.py:1) 5\n"
                              "f (<string>:1) 5\n"
                              "operator() (x.cpp:3) 5\n"
                              "<module> (a.py:1) 5\n"
                              "_call (<frozen importlib._bootstrap>:2) 5\n";
    assert_true(looks_like(raw));
    marey_recording *recording = read_text(raw);
    uint64_t n_samples = 0;
    assert_false(marey_recording_is_damaged(recording));
    assert_int_equal(marey_recording_n_processes(recording), 2);
    marey_report *summary = summary_of(recording);
    const marey_table *ranges = marey_report_table(summary, "ranges");
    for (size_t row = 0; row < marey_table_n_rows(ranges); row++)
        n_samples +=
            marey_table_cell(ranges, row, (size_t)marey_table_find(ranges, "self_ns")).as.u64;
    assert_int_equal(n_samples, 13 * 5 * 10 * MS);
    /* One in two files, in the same process or not: told apart. Without a file it is none of them. */
    expect_range(summary, "main (a/b.py)", 5, 50 * MS, 0);
    expect_range(summary, "main (a.py)", 20, 200 * MS, 200 * MS);
    expect_range(summary, "f (<string>)", 5, 50 * MS, 50 * MS);
    expect_range(summary, "two words", 5, 50 * MS, 50 * MS);
    marey_report_destroy(summary);
}

static void folders_of_packages_tell_nothing(void **state)
{
    (void)state;
    marey_report *summary = summarise("f (/x/lib/python3.11/json/decoder.py:1) 1\n"
                                      "f (/x/lib/python3.11/site-packages/torch/nn.py:1) 2\n"
                                      "f (/usr/lib/python3/dist-packages/numpy/core.py:1) 3\n"
                                      "f (/lib/python3.11) 4\nf (/home/me/f.py:1) 5\n");
    expect_range(summary, "f (json/decoder.py)", 1, 10 * MS, 10 * MS);
    expect_range(summary, "f (torch/nn.py)", 2, 20 * MS, 20 * MS);
    expect_range(summary, "f (numpy/core.py)", 3, 30 * MS, 30 * MS);
    expect_range(summary, "f (/lib/python3.11)", 4, 40 * MS, 40 * MS);
    expect_range(summary, "f (/home/me/f.py)", 5, 50 * MS, 50 * MS);
    marey_report_destroy(summary);
}

static void the_innermost_process_has_the_samples(void **state)
{
    (void)state;
    marey_recording *recording = read_text(
        "process 1:\"torchrun x\";process 7:\"python -c \"a;b\"\";thread (0x10): main;f (a.py:1) "
        "2\n"
        "process 1:\"torchrun x\";process 7:\"python -c \"a;b\"\";thread (32);g (a.py:2) 3\n"
        "process 1:\"torchrun x\";process 7:\"python -c \"a;b\"\";thread (32): one; two;g (a.py:2) "
        "1\n"
        "process 1:\"torchrun x\";thread (0x10): main;f (a.py:1) 4\n"
        "process 1:\"torchrun x\" 6\n");
    assert_int_equal(marey_recording_n_processes(recording), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct marey_process *process = marey_recording_process(recording, i);
        const bool is_child = process->pid == 7;
        assert_true(is_child || process->pid == 1);
        assert_int_equal(process->ppid, is_child ? 1 : 0);
        assert_string_equal(process->command, is_child ? "python -c \"a;b\"" : "torchrun x");
        assert_string_equal(process->source, "collapsed");
        assert_int_equal(process->n_lanes, 2);
        const struct marey_lane_info *lane = marey_recording_lane(recording, i, 0);
        assert_int_equal(lane->tid, 16);
        assert_string_equal(lane->name, "main");
        lane = marey_recording_lane(recording, i, 1);
        assert_int_equal(lane->tid, is_child ? 32 : 1);
        assert_string_equal(lane->name, is_child ? "one; two" : "samples");
    }
    marey_report *summary = summary_of(recording);
    expect_range(summary, "f", 6, 60 * MS, 60 * MS);
    expect_range(summary, "g", 4, 40 * MS, 40 * MS);
    expect_range(summary, "(no frames)", 6, 60 * MS, 60 * MS);
    expect_warning(summary, "6 samples");
    expect_warning(summary, "10 samples");
    marey_report_destroy(summary);
}

/* In the order of the export, which sorts paths; 10 ms are 10000000 ns. */
static void what_is_exported_again_is_the_same(void **state)
{
    (void)state;
    static const char text[] =
        "a 1\na;b 2\na;b;a 30\na;b;a_[k] 4\na;c 7\nz;with blanks;<x>() 1000\n";
    marey_recording *recording = read_text(text);
    char *out = exported_text(recording, "collapsed");
    marey_recording_close(recording);
    struct marey__buf mine = {0};
    for (const char *at = text; *at != '\0'; at++)
        marey__buf_printf(&mine, "%s%c", *at == '\n' ? "0000000" : "", *at);
    marey__buf_put(&mine, "", 1);
    assert_string_equal(out, mine.data);
    marey__buf_fini(&mine);
    /* Sums of nanoseconds, as marey writes them, are too many for samples: they stay what they are. */
    recording = read_text("a;b 2598000123\na 77\n");
    char *again = exported_text(recording, "collapsed");
    assert_string_equal(again, "a 77\na;b 2598000123\n");
    marey_report *summary = summary_of(recording);
    expect_range(summary, "b", 1, 2598000123, 2598000123);
    expect_warning(summary, "2598000200 samples, taken as 1 ns each");
    marey_report_destroy(summary);
    free(out);
    free(again);
}

static void a_second_has_as_many_samples_as_one_says(void **state)
{
    (void)state;
    import_wants.samples_per_second = 250;
    marey_report *summary = summarise("a;b 5\n");
    expect_range(summary, "b", 5, 20 * MS, 20 * MS);
    expect_warning(summary, "5 samples, taken as 4.00 ms each");
    marey_report_destroy(summary);
    /* Not more than a clock can tell. */
    import_wants.samples_per_second = 1;
    summary = summarise("a 2000000000000000000\n");
    expect_range(summary, "a", UINT64_C(1) << 40, UINT64_C(4000000000000000000),
                 UINT64_C(4000000000000000000));
    marey_report_destroy(summary);
    import_wants.samples_per_second = 0;
}

static void pieces_of_any_length_give_the_same(void **state)
{
    (void)state;
    static const char text[] = "process 3:\"x;y\";main (a.py:1);f 5\r\n\nmain;g 6\nlast 7";
    for (size_t cut = 1; cut < 20; cut++) {
        marey_recording *recording = NULL;
        assert_int_equal(import_bytes(&marey__import_collapsed, text, strlen(text), cut, &recording),
                         MAREY_OK);
        marey_report *summary = summary_of(recording);
        expect_range(summary, "f", 5, 50 * MS, 50 * MS);
        expect_range(summary, "g", 6, 60 * MS, 60 * MS);
        expect_range(summary, "last", 7, 70 * MS, 70 * MS);
        marey_report_destroy(summary);
    }
}

static void lines_that_are_none_are_reported(void **state)
{
    (void)state;
    marey_recording *recording = read_text("a;b 1\nno number here\nc 2\nd x\n");
    marey_report *summary = summary_of(recording);
    expect_range(summary, "b", 1, 10 * MS, 10 * MS);
    expect_range(summary, "c", 2, 20 * MS, 20 * MS);
    expect_warning(summary,
                   "left out 2 of 4 lines that are not stacks; the first is line 2: no number");
    marey_report_destroy(summary);
    /* Numbers that together are more than a clock has. */
    summary = summarise("a 4000000000000000000\nb 4000000000000000000\nc 5\n");
    expect_range(summary, "c", 1, 5, 5);
    expect_no_range(summary, "b");
    expect_warning(summary, "left out 1 of 3 lines");
    marey_report_destroy(summary);
}

static void a_file_without_stacks_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# comment 5\n", "nothing\n", "a 0\n"};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++) {
        marey_recording *recording = NULL;
        assert_int_equal(
            import_bytes(&marey__import_collapsed, texts[i], strlen(texts[i]), 0, &recording),
            MAREY_EFORMAT);
        assert_non_null(strstr(marey_last_error(), "a.file has no stacks"));
    }
}

static void other_files_are_not_taken_for_stacks(void **state)
{
    (void)state;
    assert_true(looks_like("a;b 5\n"));
    assert_true(looks_like("a 5"));
    assert_true(looks_like("# header\n\na;b;c 5\nd 7\ncut of"));
    assert_false(looks_like(""));
    assert_false(looks_like("{\"traceEvents\": [\n{\"ts\": 5},\n"));
    assert_false(looks_like("Dear reader,\nthis is chapter 1\nof many.\n"));
    assert_false(marey__import_collapsed.looks_like("a\0b 5\n", 6));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] =
        "process 3:\"x;y\";thread (1): t;main (a.py:1);f 5\nmain (b.py:1);g 6\nbad\n";
    fail_each_allocation(&marey__import_collapsed, text, strlen(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_taken_apart),
        cmocka_unit_test(semicolons_in_a_command_end_no_frame),
        cmocka_unit_test(lines_end_in_a_number),
        cmocka_unit_test(a_difference_has_two_numbers_on_each_line),
        cmocka_unit_test(stacks_become_a_tree_of_samples),
        cmocka_unit_test(every_kind_of_line_counts),
        cmocka_unit_test(folders_of_packages_tell_nothing),
        cmocka_unit_test(the_innermost_process_has_the_samples),
        cmocka_unit_test(what_is_exported_again_is_the_same),
        cmocka_unit_test(a_second_has_as_many_samples_as_one_says),
        cmocka_unit_test(pieces_of_any_length_give_the_same),
        cmocka_unit_test(lines_that_are_none_are_reported),
        cmocka_unit_test(a_file_without_stacks_is_refused),
        cmocka_unit_test(other_files_are_not_taken_for_stacks),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
