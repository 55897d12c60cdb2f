/* The report of calls: what follows from a tree of paths, and what damaged blocks do to it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/calls/internal.h"
#include "calls_maker.h"
#include "present/draw/internal.h"
#include "table_view.h"
#include <marey/calls.h>

static struct log_maker *log_of_process(const char *rank)
{
    static struct log_maker log;
    log = (struct log_maker){0};
    log_put_process(&log, "rank", rank);
    log_put_moment(&log, 0, 0);
    return &log;
}

static marey_recording *open_log(struct log_maker *log)
{
    marey_recording *recording = NULL;
    log_put_end(log, "exit");
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    log_maker_fini(log);
    return recording;
}

/*
 * main (self 10) calls dot with two shapes, and fib(3) by itself within itself; even and odd call one another.
 */
static void put_program(struct log_maker *log)
{
    struct marey__buf block = {0};
    calls_profile(&block, 0, MAREY__CALLS_SIGNATURES);
    calls_thread(&block, 1, 11, "MainThread");
    calls_function(&block, 1, 1, "main");
    calls_function(&block, 2, 7, "dot");
    calls_function(&block, 3, 0, "<built-in method builtins.len>");
    calls_function(&block, 4, 20, "fib");
    calls_function(&block, 5, 30, "even");
    calls_function(&block, 6, 40, "odd");
    calls_signature(&block, 1, 2, 32, "a:ndarray(dtype=float32, shape=(16,)), b:int");
    calls_signature(&block, 2, 2, 3200, "a:ndarray(dtype=float32, shape=(1600,)), b:int");
    calls_path(&block, 1, 0, 1, 0, 1, 10, 1000);
    calls_path(&block, 2, 1, 2, 1, 4, 60, 64); /* 64 / (4 * 32) = 0.5 for an element */
    calls_path(&block, 3, 2, 3, 0, 4, 4, 4);
    calls_path(&block, 4, 1, 2, 2, 1, 630, 640); /* 0.2 */
    calls_path(&block, 5, 4, 3, 0, 1, 10, 10);
    calls_path(&block, 6, 1, 4, 0, 1, 20, 86);
    calls_path(&block, 7, 6, 4, 0, 2, 30, 66);
    calls_path(&block, 8, 7, 4, 0, 2, 36, 36);
    calls_path(&block, 9, 1, 5, 0, 1, 50, 200);
    calls_path(&block, 10, 9, 6, 0, 1, 60, 150);
    calls_path(&block, 11, 10, 5, 0, 1, 70, 90);
    calls_path(&block, 12, 11, 6, 0, 1, 20, 20);
    calls_put_block(log, &block);
}

static marey_report *report_of(marey_recording *recording, const char *const *settings)
{
    const struct marey_report_options options = {.settings = settings};
    marey_report *report = NULL;
    assert_int_equal(marey_report_create("calls", &recording, 1, &options, &report), MAREY_OK);
    return report;
}

static const struct marey__calls *calls_of(const marey_report *report)
{
    return &((const struct marey__calls_report *)report->data)->calls;
}

static marey_recording *open_program(void)
{
    struct log_maker *const log = log_of_process("0");
    put_program(log);
    return open_log(log);
}

/* ---- sums ---- */

static void check_sums(const marey_table *table, size_t row, uint64_t calls, uint64_t primitive,
                       uint64_t self_ns, uint64_t total_ns)
{
    assert_int_equal(table_number(table, row, "calls"), calls);
    assert_int_equal(table_number(table, row, "primitive_calls"), primitive);
    assert_int_equal(table_number(table, row, "self_ns"), self_ns);
    assert_int_equal(table_number(table, row, "total_ns"), total_ns);
}

static void recursion_is_counted_as_cprofile_counts_it(void **state)
{
    (void)state;
    marey_recording *recording = open_program();
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions");
    assert_int_equal(marey_table_n_rows(functions), 6);
    check_sums(functions, table_row(functions, "function", "fib"), 5, 1, 86, 86);
    check_sums(functions, table_row(functions, "function", "even"), 2, 1, 120, 200);
    check_sums(functions, table_row(functions, "function", "odd"), 2, 1, 80, 150);
    check_sums(functions, table_row(functions, "function", "dot"), 5, 5, 690, 704);
    assert_string_equal(table_cell(functions, 0, "function").as.text, "dot"); /* most by itself */
    const marey_table *totals = marey_report_table(report, "totals");
    assert_int_equal(table_number(totals, 0, "self_ns"), 1000);
    assert_int_equal(table_number(totals, 0, "calls"), 20);
    assert_int_equal(table_number(totals, 0, "paths"), 12);
    marey_report_destroy(report);
    log_close(recording);
}

static void callers_are_pairs_of_functions(void **state)
{
    (void)state;
    marey_recording *recording = open_program();
    marey_report *report = report_of(recording, (const char *const[]){"filter=odd", NULL});
    const marey_table *callers = marey_report_table(report, "callers");
    assert_int_equal(marey_table_n_rows(callers), 1);
    assert_string_equal(table_cell(callers, 0, "caller").as.text, "even");
    check_sums(callers, 0, 2, 1, 80, 150);
    marey_report_destroy(report);

    report = report_of(recording, (const char *const[]){"filter=fib", NULL});
    callers = marey_report_table(report, "callers");
    assert_int_equal(marey_table_n_rows(callers), 2);
    check_sums(callers, table_row(callers, "caller", "main"), 1, 1, 20, 86);
    check_sums(callers, table_row(callers, "caller", "fib"), 4, 2, 66, 66);
    marey_report_destroy(report);

    report = report_of(recording, (const char *const[]){"filter=main", "sort=total", NULL});
    const marey_table *callees = marey_report_table(report, "callees");
    assert_int_equal(marey_table_n_rows(callees), 3);
    assert_string_equal(table_cell(callees, 0, "callee").as.text, "dot");
    marey_report_destroy(report);
    log_close(recording);
}

static void the_slow_shape_is_the_one_with_the_most_time_for_an_element(void **state)
{
    (void)state;
    marey_recording *recording = open_program();
    marey_report *report = report_of(recording, NULL);
    const marey_table *shapes = marey_report_table(report, "shapes");
    assert_int_equal(marey_table_n_rows(shapes), 2); /* of dot alone */
    const size_t small =
        table_row(shapes, "signature", "a:ndarray(dtype=float32, shape=(16,)), b:int");
    assert_true(table_cell(shapes, small, "ns_per_element").as.f64 == 0.5);
    assert_true(table_cell(shapes, small, "times_best").as.f64 == 2.5);
    assert_true(table_cell(shapes, 1 - small, "times_best").as.f64 == 1);
    const marey_table *signatures = marey_report_table(report, "signatures");
    assert_int_equal(marey_table_n_rows(signatures), 7);
    marey_report_destroy(report);
    log_close(recording);
}

static void paths_are_depth_first_and_the_heaviest_comes_first(void **state)
{
    static const char *const expected[] = {
        "main", "dot", "<built-in method builtins.len>", "even", "odd", "even", "odd", "fib", "fib",
        "fib",  "dot", "<built-in method builtins.len>"};
    (void)state;
    marey_recording *recording = open_program();
    marey_report *report = report_of(recording, NULL);
    const marey_table *paths = marey_report_table(report, "paths");
    assert_int_equal(marey_table_n_rows(paths), 12);
    for (size_t row = 0; row < 12; row++)
        assert_string_equal(table_cell(paths, row, "function").as.text, expected[row]);
    assert_int_equal(table_number(paths, 6, "depth"), 4);
    marey_report_destroy(report);
    log_close(recording);
}

static void cost_is_taken_out_when_asked_for(void **state)
{
    (void)state;
    marey_recording *recording = open_program();
    marey_report *report = report_of(recording, (const char *const[]){"subtract", NULL});
    const marey_table *functions = marey_report_table(report, "functions");
    /* fib: 1 ns of each of its 5 calls, and 1 ns of each of the 4 that it makes. */
    check_sums(functions, table_row(functions, "function", "fib"), 5, 1, 77, 77);
    /* The outer half of main's own call lies outside of everything. */
    assert_int_equal(table_number(marey_report_table(report, "totals"), 0, "subtracted_ns"), 39);
    marey_report_destroy(report);
    log_close(recording);
}

/* ---- the writer ---- */

/* fib(n) on a clock of its own: each call takes a nanosecond before and one behind what it calls. */
static uint64_t call_fib(struct marey_calls_thread *thread, uint32_t fib, unsigned n, uint64_t now)
{
    marey_calls_enter_at(thread, fib, 0, now);
    now += 1;
    if (n >= 2) {
        now = call_fib(thread, fib, n - 1, now);
        now = call_fib(thread, fib, n - 2, now);
    }
    now += 1;
    marey_calls_leave_at(thread, fib, now);
    return now;
}

static void what_a_profile_writes_is_read(void **state)
{
    static const char text[] = "a:ndarray(dtype=float32, shape=(16,)), b:int";
    const struct marey_calls_options options = {.flags = MAREY_CALLS_USER | MAREY_CALLS_SIGNATURES};
    char path[] = "/tmp/marey-calls-XXXXXX";
    marey_recording *recording = NULL;
    (void)state;
    struct marey_calls *const calls = marey_calls_create(&options);
    assert_non_null(calls);
    const uint32_t fib = marey_calls_define(
        calls, &(struct marey_calls_function){.name = "fib", .file = "/src/f.py", .line = 3});
    const uint32_t dot = marey_calls_define(
        calls, &(struct marey_calls_function){.name = "dot", .file = "/src/f.py", .line = 9});
    const uint32_t signature = marey_calls_signature(calls, dot, text, sizeof text - 1, 32);
    struct marey_calls_thread *const thread = marey_calls_thread_create(calls);
    assert_non_null(thread);
    marey_calls_enter_at(thread, dot, signature, 100);
    const uint64_t end = call_fib(thread, fib, 8, 110);
    marey_calls_leave_at(thread, dot, end + 20);
    marey_calls_settle_at(calls, end + 20);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(marey_calls_write(calls, fd), MAREY_OK);
    close(fd);
    marey_calls_destroy(calls);

    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions"),
                      *signatures = marey_report_table(report, "signatures");
    check_sums(functions, table_row(functions, "function", "fib"), 67, 1, 2 * 67, 2 * 67);
    check_sums(functions, table_row(functions, "function", "dot"), 1, 1, 30, 2 * 67 + 30);
    assert_int_equal(table_number(signatures, table_row(signatures, "signature", text), "elements"),
                     32);
    assert_false(marey_recording_is_damaged(recording));
    marey_report_destroy(report);
    marey_recording_close(recording);
    unlink(path);
}

/* ---- several ---- */

static void processes_are_added_up_and_threads_stay_apart(void **state)
{
    marey_recording *both[2];
    marey_report *report = NULL;
    (void)state;
    both[0] = open_program();
    both[1] = open_program();
    assert_int_equal(marey_report_create("calls", both, 2, NULL, &report), MAREY_OK);
    const marey_table *functions = marey_report_table(report, "functions");
    assert_int_equal(marey_table_n_rows(functions), 6);
    check_sums(functions, table_row(functions, "function", "fib"), 10, 2, 172, 172);
    assert_int_equal(marey_table_n_rows(marey_report_table(report, "threads")), 2);
    assert_int_equal(calls_of(report)->n_nodes, 25);
    marey_report_destroy(report);
    log_close(both[0]);
    log_close(both[1]);
}

static void later_blocks_add_to_what_earlier_ones_said(void **state)
{
    struct log_maker *const log = log_of_process("0");
    struct marey__buf block = {0};
    (void)state;
    put_program(log);
    calls_profile(&block, 0, 0);
    calls_entry(&block, 'C', "nnnnnn", 8, 3, 1, 30, 30, 25);
    calls_entry(&block, 'O', "nnn", 9, 2, 1000);
    calls_put_block(log, &block);
    calls_profile(&block, 0, 0);
    calls_entry(&block, 'O', "nnn", 10, 2, 1000);
    calls_put_block(log, &block);
    marey_recording *recording = open_log(log);
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions");
    const size_t fib = table_row(functions, "function", "fib");
    assert_int_equal(table_number(functions, fib, "calls"), 8);
    assert_int_equal(table_number(functions, fib, "resumes"), 1);
    assert_int_equal(table_number(marey_report_table(report, "totals"), 0, "other_paths"), 10);
    assert_false(marey_recording_is_damaged(recording));
    marey_report_destroy(report);
    log_close(recording);
}

static void other_paths_are_nobodys_calls(void **state)
{
    struct log_maker *const log = log_of_process("0");
    struct marey__buf block = {0};
    (void)state;
    put_program(log);
    calls_profile(&block, 0, 0);
    calls_path(&block, 20, 0, 0, 0, 0, 0, 0);
    calls_path(&block, 21, 20, 4, 0, 7, 70, 140);
    calls_entry(&block, 'O', "nnn", 7, 0, 1000);
    calls_put_block(log, &block);
    marey_recording *recording = open_log(log);
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions"),
                      *callers = marey_report_table(report, "callers");
    assert_int_equal(marey_table_n_rows(functions), 6);
    check_sums(functions, table_row(functions, "function", "fib"), 12, 8, 156, 226);
    for (size_t row = 0; row < marey_table_n_rows(callers); row++)
        assert_string_not_equal(table_cell(callers, row, "caller").as.text, "(other paths)");
    marey_report_destroy(report);
    log_close(recording);
}

static void ranges_are_calls_where_nothing_was_profiled(void **state)
{
    static struct log_maker log;
    (void)state;
    log_put_preamble(&log);
    log_begin(&log, 0, 1);
    log_begin(&log, 10, 2);
    log_begin(&log, 20, 2);
    log_end(&log, 30, 2);
    log_end(&log, 40, 2);
    log_end(&log, 100, 1);
    log_put_words(&log, 0, 0);
    marey_recording *recording = open_log(&log);
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions");
    check_sums(functions, table_row(functions, "function", "outer"), 1, 1, 70, 100);
    check_sums(functions, table_row(functions, "function", "inner"), 2, 1, 30, 30);
    assert_string_equal(table_cell(marey_report_table(report, "totals"), 0, "source").as.text,
                        "ranges");
    marey_report_destroy(report);
    log_close(recording);
}

static void gpu_time_is_that_of_the_path_that_launched(void **state)
{
    struct log_maker *const log = log_of_process("0");
    (void)state;
    put_program(log);
    log_put_site(log, 1, "kernel");
    log_put_lane(log, 0, 11, "MainThread");
    log_put_stream(log, 1, 0, 7, "stream");
    log_launch(log, 10, 5);
    log_record(log, 10, MAREY_RECORD_CALL_NODE, (const uint64_t[]){0, 4}, 2);
    log_launch(log, 20, 6); /* in no call */
    log_launch(log, 30, 8);
    log_record(log, 30, MAREY_RECORD_CALL_NODE, (const uint64_t[]){0, 8}, 2);
    log_launch(log, 40, 9);
    log_record(log, 40, MAREY_RECORD_CALL_NODE, (const uint64_t[]){3, 8}, 2); /* no such profile */
    log_put_words(log, 0, 0);
    for (uint64_t correlation = 5; correlation < 10; correlation++)
        log_work(log, 100 * correlation, 1, MAREY_WORK_KERNEL, correlation, correlation, 0);
    log_put_words(log, 1, 0);
    marey_recording *recording = open_log(log);
    marey_report *report = report_of(recording, NULL);
    const marey_table *functions = marey_report_table(report, "functions");
    assert_int_equal(table_number(functions, table_row(functions, "function", "dot"), "gpu_ns"), 5);
    assert_int_equal(table_number(functions, table_row(functions, "function", "fib"), "gpu_ns"), 8);
    assert_int_equal(table_number(functions, table_row(functions, "function", "main"), "gpu_ns"), 13);
    assert_int_equal(table_number(functions, table_row(functions, "function", "odd"), "gpu_ns"), 0);
    marey_report_destroy(report);
    log_close(recording);
}

/* ---- labels ---- */

static void labels_are_those_of_the_document(void **state)
{
    static const struct {
        const char *name, *text, *label;
        bool is_signed;
    } cases[] = {
        {"dot", "", "dot", false},
        {"dot", "", "dot()", true},
        {"dot", "a:ndarray(dtype=float32, shape=(16,)), b:int",
         "dot(a:ndarray(dtype=float32, shape=(16,)), b:int)", true},
        {"step", "self:Model, x:int", "Model.step(x:int)", true},
        {"step", "self:Model", "Model.step()", true},
        {"__init__", "self:Model, n:int, m:int", "Model(n:int, m:int)", true},
        {"get", "self:dict[str, int], key:str", "dict[str, int].get(key:str)", true},
    };
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        struct marey__buf label = {0};
        marey__call_label_of(&label, cases[i].name, cases[i].text, cases[i].is_signed);
        marey__buf_put(&label, "", 1);
        assert_string_equal(label.data, cases[i].label);
        marey__buf_fini(&label);
    }
}

/* ---- damage ---- */

static void put_unknown_tag(struct marey__buf *block)
{
    calls_entry(block, 'Z', "n", 1);
}
static void put_unknown_function(struct marey__buf *block)
{
    calls_entry(block, 'N', "nnnnn", 50, 1, 1, 99, 0);
}
static void put_unknown_parent(struct marey__buf *block)
{
    calls_entry(block, 'N', "nnnnn", 50, 1, 77, 1, 0);
}
static void put_unknown_thread(struct marey__buf *block)
{
    calls_entry(block, 'N', "nnnnn", 50, 9, 1, 1, 0);
}
static void put_signature_of_another(struct marey__buf *block)
{
    calls_entry(block, 'N', "nnnnn", 50, 1, 1, 1, 1);
}
static void put_counts_of_nothing(struct marey__buf *block)
{
    calls_entry(block, 'C', "nnnnnn", 60, 1, 1, 1, 1, 1);
}
static void put_huge_number(struct marey__buf *block)
{
    marey__buf_put(block, "F\xff\xff\xff\xff\x0f", 6);
    marey__buf_put(block, "\0\0\0\0\0\0", 6);
}
static void put_endless_number(struct marey__buf *block)
{
    marey__buf_put(block, "N\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
}
static void put_text_beyond_the_end(struct marey__buf *block)
{
    marey__buf_put(block, "T\x02\x02\x7fxy", 6);
}
static void put_half_an_entry(struct marey__buf *block)
{
    marey__buf_put(block, "N\x01\x01", 3);
}
static void put_timer_that_is_none(struct marey__buf *block)
{
    calls_entry(block, 'P', "nrnn", 0, -1.0, 0, 0);
}

static void damage_is_reported_and_the_rest_is_kept(void **state)
{
    static void (*const damages[])(struct marey__buf *) = {
        put_unknown_tag,          put_unknown_function,  put_unknown_parent,    put_unknown_thread,
        put_signature_of_another, put_counts_of_nothing, put_huge_number,       put_endless_number,
        put_text_beyond_the_end,  put_half_an_entry,     put_timer_that_is_none};
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(damages); i++) {
        struct log_maker *const log = log_of_process("0");
        struct marey__buf block = {0};
        put_program(log);
        calls_profile(&block, 0, 0);
        calls_entry(&block, 'C', "nnnnnn", 8, 3, 0, 30, 30, 25); /* before the damage: counts */
        damages[i](&block);
        calls_put_block(log, &block);
        marey_recording *recording = open_log(log);
        for (int again = 0; again < 2; again++) {
            marey_report *report = report_of(recording, NULL);
            const marey_table *functions = marey_report_table(report, "functions");
            assert_int_equal(
                table_number(functions, table_row(functions, "function", "fib"), "calls"), 8);
            marey_report_destroy(report);
        }
        assert_true(marey_recording_is_damaged(recording));
        assert_non_null(strstr(marey_recording_warning(recording, 0), "1 of 2 blocks of calls"));
        assert_null(marey_recording_warning(recording, 1));
        log_close(recording);
    }
}

static void a_block_that_does_not_say_whose_it_is_is_damage(void **state)
{
    struct log_maker *const log = log_of_process("0");
    struct marey__buf block = {0};
    (void)state;
    put_program(log);
    calls_function(&block, 9, 1, "nobody");
    calls_put_block(log, &block);
    marey_recording *recording = open_log(log);
    marey_report_destroy(report_of(recording, NULL));
    assert_true(marey_recording_is_damaged(recording));
    log_close(recording);
}

/* ---- invalid input ---- */

static void nothing_recorded_is_reported(void **state)
{
    marey_report *report = NULL;
    (void)state;
    marey_recording *recording = open_log(log_of_process("0"));
    assert_int_equal(marey_report_create("calls", &recording, 1, NULL, &report), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "marey run --calls"));
    const char *const settings[] = {"sort=color", NULL};
    const struct marey_report_options options = {.settings = settings};
    assert_int_equal(marey_report_create("calls", &recording, 1, &options, &report), MAREY_EINVAL);
    log_close(recording);
}

static void reports_survive_a_lack_of_memory(void **state)
{
    FILE *const out = fopen("/dev/null", "w");
    (void)state;
    assert_non_null(out);
    marey_recording *recording = open_program();
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_report_create("calls", &recording, 1, NULL, &report);
        if (status == MAREY_OK)
            status = marey_report_write(report, "text", NULL, out);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    log_close(recording);
    fclose(out);
}

static void exports_survive_a_lack_of_memory(void **state)
{
    static const char *const formats[] = {"pstats", "callgrind", "collapsed"};
    (void)state;
    marey_recording *recording = open_program();
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status != MAREY_OK; nth++) {
            const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
            assert_true(fd >= 0);
            marey__alloc_fail_nth(nth);
            status = marey_export(&recording, 1, formats[i], NULL, fd);
            marey__alloc_fail_nth(0);
            close(fd);
            assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
            assert_true(nth < 10000);
        }
    }
    log_close(recording);
}

/* The text written to a pipe. */
static void export_text(marey_recording *recording, const char *format, char *text, size_t size)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(marey_export(&recording, 1, format, NULL, ends[1]), MAREY_OK);
    close(ends[1]);
    const ssize_t n = read(ends[0], text, size - 1);
    assert_true(n > 0);
    text[n] = '\0';
    close(ends[0]);
}

static void paths_of_calls_are_paths_of_ranges_in_other_exports(void **state)
{
    char text[4096];
    (void)state;
    marey_recording *recording = open_program();
    export_text(recording, "collapsed", text, sizeof text);
    assert_string_equal(
        text,
        "main 10\n"
        "main;dot(a:ndarray(dtype=float32, shape=(16,)), b:int) 60\n"
        "main;dot(a:ndarray(dtype=float32, shape=(16,)), b:int);<built-in method builtins.len> 4\n"
        "main;dot(a:ndarray(dtype=float32, shape=(1600,)), b:int) 630\n"
        "main;dot(a:ndarray(dtype=float32, shape=(1600,)), b:int);<built-in method builtins.len> "
        "10\n"
        "main;even 50\nmain;even;odd 60\nmain;even;odd;even 70\nmain;even;odd;even;odd 20\n"
        "main;fib 20\nmain;fib;fib 30\nmain;fib;fib;fib 36\n");
    log_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recursion_is_counted_as_cprofile_counts_it),
        cmocka_unit_test(callers_are_pairs_of_functions),
        cmocka_unit_test(the_slow_shape_is_the_one_with_the_most_time_for_an_element),
        cmocka_unit_test(paths_are_depth_first_and_the_heaviest_comes_first),
        cmocka_unit_test(cost_is_taken_out_when_asked_for),
        cmocka_unit_test(what_a_profile_writes_is_read),
        cmocka_unit_test(processes_are_added_up_and_threads_stay_apart),
        cmocka_unit_test(later_blocks_add_to_what_earlier_ones_said),
        cmocka_unit_test(other_paths_are_nobodys_calls),
        cmocka_unit_test(ranges_are_calls_where_nothing_was_profiled),
        cmocka_unit_test(gpu_time_is_that_of_the_path_that_launched),
        cmocka_unit_test(labels_are_those_of_the_document),
        cmocka_unit_test(damage_is_reported_and_the_rest_is_kept),
        cmocka_unit_test(a_block_that_does_not_say_whose_it_is_is_damage),
        cmocka_unit_test(nothing_recorded_is_reported),
        cmocka_unit_test(reports_survive_a_lack_of_memory),
        cmocka_unit_test(exports_survive_a_lack_of_memory),
        cmocka_unit_test(paths_of_calls_are_paths_of_ranges_in_other_exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
