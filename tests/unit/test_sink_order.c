/* The sink in detail: conversion of slices to begins and ends, limits, and failures. */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "import/internal.h"
#include "read/internal.h"
#include "summary_view.h"

/* ---- a sink over a temporary store ---- */

struct fixture {
    struct marey__log_store *store;
    marey__sink *sink;
    marey__sink_process *process;
    uint32_t lane;
};

static void open_sink(struct fixture *f, uint64_t memory_bytes)
{
    assert_int_equal(marey__log_store_open(NULL, &f->store), MAREY_OK);
    const struct marey__sink_options options = {.store = f->store,
                                                .memory_bytes = memory_bytes,
                                                .command = "trace.json",
                                                .source = "test",
                                                .run_id = "r"};
    assert_int_equal(marey__sink_create(&options, &f->sink), MAREY_OK);
    f->process = marey__sink_process_get(f->sink, 42);
    assert_non_null(f->process);
    f->lane = marey__sink_thread(f->process, 7);
}

static void drop_sink(struct fixture *f)
{
    marey__sink_destroy(f->sink);
    marey__log_store_close(f->store);
}

static marey_recording *close_sink(struct fixture *f)
{
    marey_recording *recording = NULL;
    assert_int_equal(marey__sink_finish(f->sink), MAREY_OK);
    assert_int_equal(marey__log_store_read(f->store, "/some/where/trace.json", &recording), MAREY_OK);
    drop_sink(f);
    return recording;
}

static uint32_t site(struct fixture *f, const char *name)
{
    return marey__sink_site(f->process,
                            &(struct marey__sink_site){.name = name, .name_len = strlen(name)});
}

static void slice(struct fixture *f, const char *name, uint64_t begin, uint64_t end)
{
    marey__sink_put(f->process, &(struct marey__sink_event){.kind = MAREY__SINK_SLICE,
                                                            .lane = f->lane,
                                                            .site = site(f, name),
                                                            .ns = begin,
                                                            .duration_ns = end - begin});
}

static void point(struct fixture *f, enum marey__sink_kind kind, const char *name, uint64_t ns)
{
    marey__sink_put(f->process, &(struct marey__sink_event){.kind = kind,
                                                            .lane = f->lane,
                                                            .site = name != NULL ? site(f, name) : 0,
                                                            .ns = ns,
                                                            .id = 5});
}

/* ---- lanes as text: "A(0 B(2 B)5 A)10"; lanes are apart by a bar ---- */

struct drawing {
    const marey_recording *recording;
    struct marey__buf lanes[64];
};

static void draw_record(struct drawing *drawing, struct marey__buf *out,
                        const struct marey_batch *batch, const uint64_t *words)
{
    const uint64_t ns = marey_batch_ns(batch, words[0]);
    const uint32_t type = marey_record_type_of(words[0]);
    const char *name =
        marey_recording_site(drawing->recording, batch->process->index, marey_record_site(words[1]))->name;
    switch (type) {
    case MAREY_RECORD_END_OF:
        marey__buf_printf(out, "%s~)%" PRIu64 " ", name, ns);
        break;
    case MAREY_RECORD_COVERED:
        marey__buf_printf(out, "%s-%" PRIu64 " ", name, words[2]);
        break;
    case MAREY_RECORD_AROUND:
        for (uint64_t i = 0; i < words[1]; i++)
            marey__buf_printf(out, "%s/",
                              marey_recording_site(drawing->recording, batch->process->index,
                                                   marey_record_site(words[2 + i]))
                                  ->name);
        break;
    case MAREY_RECORD_FLOW:
        marey__buf_printf(out, "flow%" PRIu64 " ", ns);
        break;
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
        marey__buf_printf(out, "%" PRIu64 "%s%" PRIu64 " ", words[1],
                          type == MAREY_RECORD_ITERATION ? "]" : "[", ns);
        break;
    case MAREY_RECORD_GPU:
        marey__buf_printf(out, "%s%" PRIu64 "-%" PRIu64 " ", name, ns, ns + words[2]);
        break;
    default:
        marey__buf_printf(out, "<%u> ", type);
    }
}

static marey_status draw_batch(void *ctx, const struct marey_batch *batch)
{
    struct drawing *drawing = ctx;
    struct marey__buf *out = &drawing->lanes[batch->lane->lane];
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const uint32_t kind = marey_word_kind(word);
        if (kind == MAREY_KIND_RECORD)
            draw_record(drawing, out, batch, &batch->words[i]);
        else
            marey__buf_printf(
                out, "%s%s%" PRIu64 " ",
                marey_recording_site(drawing->recording, batch->process->index, marey_word_id(word))->name,
                kind == MAREY_KIND_BEGIN ? "("
                : kind == MAREY_KIND_END ? ")"
                                         : "!",
                marey_batch_ns(batch, word));
        i += kind == MAREY_KIND_RECORD ? marey_record_length(word) : 1;
    }
    return MAREY_OK;
}

/* Closes the recording; free what comes back. */
static char *draw(marey_recording *recording)
{
    struct drawing drawing = {.recording = recording};
    struct marey__buf all = {0};
    const size_t n_lanes = marey_recording_process(recording, 0)->n_lanes;
    assert_true(n_lanes <= MAREY__COUNT_OF(drawing.lanes));
    assert_int_equal(marey_recording_visit(recording, 0, draw_batch, &drawing), MAREY_OK);
    for (size_t i = 0; i < n_lanes; i++) {
        marey__buf_puts(&all, i == 0 ? "" : "| ");
        marey__buf_put(&all, drawing.lanes[i].data, drawing.lanes[i].len);
        marey__buf_fini(&drawing.lanes[i]);
    }
    all.len -= all.len != 0;
    marey__buf_put(&all, "", 1);
    marey_recording_close(recording);
    return all.data;
}

static void expect_drawn(struct fixture *f, const char *wanted)
{
    char *drawn = draw(close_sink(f));
    assert_string_equal(drawn, wanted);
    marey__free(drawn);
}

/* ---- slices ---- */

static void slices_in_any_order_are_nested(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "C", 6, 8);
    slice(&f, "B", 2, 5);
    slice(&f, "D", 12, 13);
    slice(&f, "A", 0, 10);
    expect_drawn(&f, "A(0 B(2 B)5 C(6 C)8 A)10 D(12 D)13");
}

static void of_one_begin_the_longer_is_around_the_shorter(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "none", 5, 5);
    slice(&f, "short", 5, 7);
    slice(&f, "long", 5, 9);
    slice(&f, "same", 5, 9);
    expect_drawn(&f, "long(5 same(5 short(5 none(5 none)5 short)7 same)9 long)9");
}

static void slices_that_touch_are_neighbours(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "outer", 0, 20);
    slice(&f, "B", 10, 20);
    slice(&f, "A", 0, 10);
    slice(&f, "Z", 20, 20);
    expect_drawn(&f, "outer(0 A(0 A)10 B(10 B)20 outer)20 Z(20 Z)20");
}

static void what_overlaps_goes_to_a_further_lane_of_the_thread(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    marey__sink_name_lane(f.process, f.lane, "main", 4);
    slice(&f, "A", 0, 10000);
    slice(&f, "B", 5000, 15000);
    slice(&f, "b", 6000, 8000);
    slice(&f, "C", 7000, 20000);
    slice(&f, "D", 15000, 30000);
    marey_recording *recording = close_sink(&f);
    for (uint32_t lane = 0; lane < 3; lane++) {
        assert_int_equal(marey_recording_lane(recording, 0, lane)->tid, 7);
        assert_string_equal(marey_recording_lane(recording, 0, lane)->name, "main");
    }
    char *drawn = draw(recording);
    assert_string_equal(drawn, "A(0 b(6000 b)8000 A)10000 D(15000 D-5000 D)30000 | "
                               "B(5000 B-5000 B)15000 | C(7000 C-8000 C)20000");
    marey__free(drawn);
}

/* P loses the time in which B is on another lane; B loses what it shares with A, which ends first. */
static void what_overlaps_lies_in_the_ranges_around_it(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "O", 0, 50000);
    slice(&f, "P", 0, 20000);
    slice(&f, "A", 2000, 10000);
    slice(&f, "B", 5000, 15000);
    slice(&f, "C", 30000, 40000);
    slice(&f, "D", 35000, 60000);
    expect_drawn(&f, "O(0 P(0 A(2000 A)10000 P-5000 P)20000 C(30000 C)40000 O)50000 | "
                     "O/P/B(5000 B-5000 B)15000 D(35000 D-15000 D)60000");
}

/* Kineto rounds to a microsecond: who began last is the inner one. */
static void what_outlasts_another_by_rounding_lies_in_it(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "P", 0, 10000);
    slice(&f, "C", 2000, 11000);
    slice(&f, "c", 3000, 9000);
    expect_drawn(&f, "P(0 c(3000 c)9000 P-2000 P)10000 | P/C(2000 C-6000 C)11000");
}

static void thousands_at_a_time_each_keep_their_times(void **state)
{
    (void)state;
    enum { N = 5000 };
    struct fixture f;
    open_sink(&f, 0);
    for (uint64_t i = 0; i < N; i++)
        slice(&f, "call", i, 2 * N - (i * 7919) % N);
    slice(&f, "later", 3 * N, 4 * N);
    marey_recording *recording = close_sink(&f);
    assert_true(marey_recording_process(recording, 0)->n_lanes <= N);
    assert_int_equal(marey_recording_process(recording, 0)->n_events, N + 1);
    assert_string_equal(marey_recording_process(recording, 0)->note, "");
    marey_report *summary = NULL;
    assert_int_equal(marey_report_create("ranges", &recording, 1, NULL, &summary), MAREY_OK);
    assert_int_equal(number(summary, "ranges", 0, "count"), N);
    assert_int_equal(number(summary, "ranges", 0, "self_ns"), 2 * N); /* one after the other */
    assert_int_equal(number(summary, "ranges", 1, "self_ns"), N);
    marey_report_destroy(summary);
    marey_recording_close(recording);
}

/* ---- begins and ends apart, points ---- */

static void begins_and_ends_of_one_moment_keep_the_order_of_the_file(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    point(&f, MAREY__SINK_BEGIN, "A", 5);
    point(&f, MAREY__SINK_END, NULL, 5);
    point(&f, MAREY__SINK_BEGIN, "B", 5);
    point(&f, MAREY__SINK_BEGIN, "C", 5);
    point(&f, MAREY__SINK_END, NULL, 5);
    point(&f, MAREY__SINK_END, "B", 9);
    point(&f, MAREY__SINK_BEGIN, "first", 1);
    point(&f, MAREY__SINK_END, NULL, 2);
    expect_drawn(&f, "first(1 first)2 A(5 A)5 B(5 C(5 C)5 B)9");
}

static void slices_and_single_ends_share_a_lane(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    point(&f, MAREY__SINK_BEGIN, "B", 0);
    slice(&f, "in", 2, 4);
    slice(&f, "over", 5, 12); /* outlasts B */
    point(&f, MAREY__SINK_END, NULL, 10);
    point(&f, MAREY__SINK_BEGIN, "open", 11); /* and outlasts "over" */
    slice(&f, "last", 14, 15);
    expect_drawn(&f, "B(0 in(2 in)4 over(5 B~)10 open(11 over~)12 last(14 last)15");
}

static void an_end_without_a_begin_is_left_out_and_reported(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "A", 0, 10);
    point(&f, MAREY__SINK_END, NULL, 5);
    point(&f, MAREY__SINK_END, "B", 6);
    marey_recording *recording = close_sink(&f);
    assert_non_null(strstr(marey_recording_process(recording, 0)->note, "2 ends without a begin"));
    char *drawn = draw(recording);
    assert_string_equal(drawn, "A(0 A)10");
    marey__free(drawn);
}

static void a_flow_lies_in_the_slice_that_begins_with_it(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    point(&f, MAREY__SINK_FLOW, "f", 2);
    point(&f, MAREY__SINK_FLOW, "f", 5);
    point(&f, MAREY__SINK_FLOW, "f", 11);
    point(&f, MAREY__SINK_MARK, "m", 30);
    slice(&f, "outer", 0, 10);
    slice(&f, "launch", 2, 4);
    slice(&f, "none", 5, 5);
    slice(&f, "over", 8, 20);
    expect_drawn(&f, "outer(0 launch(2 flow2 launch)4 none(5 flow5 none)5 outer-2 outer)10 m!30 | "
                     "outer/over(8 flow11 over)20");
}

static void iterations_end_before_the_next_begin(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    for (uint64_t i = 3; i-- > 0;)
        marey__sink_put(f.process, &(struct marey__sink_event){.kind = MAREY__SINK_ITERATION,
                                                               .lane = f.lane,
                                                               .ns = 10 * i,
                                                               .duration_ns = i == 2 ? 0 : 10,
                                                               .id = i});
    slice(&f, "A", 2, 10);
    slice(&f, "B", 10, 20);
    assert_int_equal(f.sink->n_events, 5);
    expect_drawn(&f, "0[0 A(2 A)10 0]10 1[10 B(10 B)20 1]20 2[20 2]20");
}

static void gpu_work_keeps_its_duration_and_may_overlap(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    f.lane = marey__sink_stream(f.process, 3, 7);
    for (uint64_t i = 0; i < 3; i++)
        marey__sink_put(f.process, &(struct marey__sink_event){.kind = MAREY__SINK_GPU,
                                                               .lane = f.lane,
                                                               .site = site(&f, "k"),
                                                               .ns = 100 - 10 * i,
                                                               .duration_ns = 15 + 100 * i,
                                                               .work_kind = MAREY_WORK_KERNEL});
    slice(&f, "annotation", 85, 99);
    point(&f, MAREY__SINK_MARK, "no work", 85);
    marey_recording *recording = close_sink(&f);
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_int_equal(process->last_ns, 295); /* the end of the longest, not the begin of the last */
    assert_non_null(strstr(process->note, "1 events of a GPU stream"));
    assert_int_equal(marey_recording_lane(recording, 0, 0)->kind, MAREY_LANE_GPU);
    assert_int_equal(marey_recording_lane(recording, 0, 0)->device, 3);
    assert_int_equal(marey_recording_lane(recording, 0, 0)->stream, 7);
    char *drawn = draw(recording);
    assert_string_equal(drawn, "k80-295 annotation85-99 k90-205 k100-115");
    marey__free(drawn);
}

/* ---- times ---- */

static void times_lie_anywhere_in_64_bits(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "all", 0, UINT64_MAX);
    slice(&f, "late", UINT64_MAX - 1, UINT64_MAX);
    slice(&f, "day", 1, 86400000000001);
    slice(&f, "now", 1712195495505582988, 1712195495505582989);
    /* One that would end behind all time ends with it. */
    marey__sink_put(f.process, &(struct marey__sink_event){.kind = MAREY__SINK_SLICE,
                                                           .lane = f.lane,
                                                           .site = site(&f, "too long"),
                                                           .ns = UINT64_MAX - 1,
                                                           .duration_ns = 5});
    expect_drawn(&f, "all(0 day(1 day)86400000000001 now(1712195495505582988 "
                     "now)1712195495505582989 late(18446744073709551614 too "
                     "long(18446744073709551614 too long)18446744073709551615 "
                     "late)18446744073709551615 all)18446744073709551615");
}

/* ---- spilling ---- */

static char *draw_random(uint64_t memory_bytes)
{
    struct fixture f;
    uint64_t random = 12345;
    open_sink(&f, memory_bytes);
    for (int i = 0; i < 3000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t begin = random >> 33 & 1023; /* most times come more than once */
        const char name[] = {(char)('a' + (random >> 50) % 26), '\0'};
        f.lane = marey__sink_thread(f.process, 100 + (int64_t)(random >> 57 & 1));
        if (i % 50 == 0)
            point(&f, MAREY__SINK_FLOW, name, begin);
        else if (i % 50 == 25)
            point(&f, MAREY__SINK_MARK, name, begin);
        else
            slice(&f, name, begin, begin + (random >> 44 & 15) / 8);
    }
    return draw(close_sink(&f));
}

static void what_was_sorted_on_disk_is_the_same_to_the_word(void **state)
{
    (void)state;
    char *whole = draw_random(0);
    for (uint64_t memory_bytes = 1000; memory_bytes < 200000; memory_bytes *= 3) {
        char *spilled = draw_random(memory_bytes);
        assert_string_equal(spilled, whole);
        marey__free(spilled);
    }
    marey__free(whole);
}

/* ---- lanes and whole processes in order ---- */

struct order_check {
    uint64_t boundary_ns; /* of the latest record about the process */
    uint64_t seen_ns;     /* the latest time of any word so far */
    size_t n_boundaries;
};

static marey_status check_order(void *ctx, const struct marey_batch *batch)
{
    struct order_check *check = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i], ns = marey_batch_ns(batch, word);
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        assert_true(ns >= check->boundary_ns);
        if (is_record && marey_record_type_of(word) == MAREY_RECORD_ITERATION) {
            assert_true(check->seen_ns <= ns);
            check->boundary_ns = ns;
            check->n_boundaries++;
        }
        check->seen_ns = MAREY__MAX(check->seen_ns, ns);
        i += is_record ? marey_record_length(word) : 1;
    }
    return MAREY_OK;
}

static void a_reader_gets_iterations_in_order_among_all_lanes(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    for (uint64_t i = 0; i < 60; i++)
        marey__sink_put(f.process, &(struct marey__sink_event){.kind = MAREY__SINK_ITERATION,
                                                               .lane = f.lane,
                                                               .ns = 1000 * i,
                                                               .duration_ns = 999,
                                                               .id = i});
    for (int64_t tid = 20; tid-- > 0;) {
        f.lane = marey__sink_thread(f.process, tid);
        for (uint64_t i = 0; i < 3000; i++)
            slice(&f, "op", 20 * i + (uint64_t)tid, 20 * i + (uint64_t)tid + 9);
    }
    marey_recording *recording = close_sink(&f);
    struct order_check check = {0};
    assert_int_equal(marey__recording_visit_in_order(recording, 0, check_order, &check), MAREY_OK);
    assert_int_equal(check.n_boundaries, 60);
    marey_recording_close(recording);
}

/* ---- identity ---- */

static void a_process_is_who_the_file_says(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    slice(&f, "A", 1000, 1001);
    marey__sink_identify(
        f.process, &(struct marey__sink_identity){
                       .pid = 4711, .rank = 3, .world_size = 8, .backend = "nccl", .gpu = "H200"});
    marey__sink_identify(f.process,
                         &(struct marey__sink_identity){.pid = -1, .rank = -1, .world_size = -1});
    marey__sink_note(f.process, "It was %s.", "cut off");
    marey__sink_note(f.process, "It was %s.", "cut off");
    marey__sink_process_get(f.sink, 43); /* has no events, and no log */
    marey_recording *recording = close_sink(&f);
    assert_int_equal(marey_recording_n_processes(recording), 1);
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_string_equal(marey_recording_name(recording), "trace.json");
    assert_int_equal(process->pid, 4711);
    assert_int_equal(process->rank, 3);
    assert_int_equal(process->world_size, 8);
    assert_string_equal(process->backend, "nccl");
    assert_string_equal(process->gpu, "H200");
    assert_string_equal(process->source, "test");
    assert_string_equal(process->command, "trace.json");
    assert_string_equal(process->run_id, "r");
    assert_string_equal(process->clock, "trace");
    assert_string_equal(process->end, "stop");
    assert_string_equal(process->note, "It was cut off.");
    assert_int_equal(process->start_unix_ns, 1000);
    assert_int_equal(marey_recording_is_damaged(recording), 0);
    marey_recording_close(recording);
}

/* ---- limits ---- */

static void names_past_a_million_are_other_names(void **state)
{
    (void)state;
    struct fixture f;
    char name[32];
    open_sink(&f, 0);
    uint32_t last = 0;
    for (int i = 0; i < (1 << 20) + 10; i++) {
        snprintf(name, sizeof name, "n%d", i);
        last = site(&f, name);
    }
    assert_int_equal(last, 1);
    assert_int_equal(site(&f, "n0"), 2);
    slice(&f, name, 0, 1);
    slice(&f, "n1048000", 2, 3);
    marey_recording *recording = close_sink(&f);
    assert_non_null(strstr(marey_recording_process(recording, 0)->note, "after the first million"));
    char *drawn = draw(recording);
    assert_string_equal(drawn, "(other names)(0 (other names))1 n1048000(2 n1048000)3");
    marey__free(drawn);
}

static void threads_past_a_hundred_thousand_share_a_lane(void **state)
{
    (void)state;
    enum { N = 140000 };
    struct fixture f;
    open_sink(&f, 0);
    const uint32_t id = site(&f, "A");
    for (int64_t tid = 0; tid < N; tid++)
        marey__sink_put(f.process,
                        &(struct marey__sink_event){.kind = MAREY__SINK_SLICE,
                                                    .lane = marey__sink_thread(f.process, tid),
                                                    .site = id,
                                                    .ns = (uint64_t)tid,
                                                    .duration_ns = 1});
    marey_recording *recording = close_sink(&f);
    assert_int_equal(marey_recording_process(recording, 0)->n_words, 2 * N);
    assert_non_null(strstr(marey_recording_process(recording, 0)->note, "hundred thousand"));
    marey_recording_close(recording);
}

static void arguments_that_do_not_fit_a_block_are_left_out_and_reported(void **state)
{
    (void)state;
    struct fixture f;
    open_sink(&f, 0);
    const size_t len = 40000;
    char *text = calloc(len, 1);
    assert_non_null(text);
    memset(text, 'x', len);
    for (uint64_t i = 0; i < 2; i++)
        marey__sink_put(f.process,
                        &(struct marey__sink_event){.kind = MAREY__SINK_SLICE,
                                                    .lane = f.lane,
                                                    .site = site(&f, "A"),
                                                    .ns = i,
                                                    .arguments = text,
                                                    .arguments_len = i == 0 ? len : 32000});
    marey_recording *recording = close_sink(&f);
    assert_non_null(strstr(marey_recording_process(recording, 0)->note, "1 events have arguments"));
    char *drawn = draw(recording);
    assert_string_equal(drawn, "A(0 A)0 A(1 <15> A)1");
    marey__free(drawn);
    free(text);
}

/* ---- failures ---- */

/* A few of everything, spilled. */
static marey_status import_some(struct marey__log_store *store, uint64_t memory_bytes, int n)
{
    struct fixture f = {.store = store};
    const struct marey__sink_options options = {.store = store, .memory_bytes = memory_bytes};
    MAREY_TRY(marey__sink_create(&options, &f.sink));
    for (uint64_t key = 0; key < 2; key++) {
        f.process = marey__sink_process_get(f.sink, key);
        if (f.process == NULL)
            break;
        marey__sink_identify(f.process, &(struct marey__sink_identity){.host = "h", .gpu = "g"});
        marey__sink_note(f.process, "A note.");
        for (int i = 0; i < n; i++) {
            const char name[] = {(char)('a' + i % 26), '\0'};
            f.lane = marey__sink_thread(f.process, i % 3);
            marey__sink_name_lane(f.process, f.lane, "lane", 4);
            slice(&f, name, (uint64_t)(1000 - i), (uint64_t)(1000 - i + 100 * (i % 2)));
            point(&f, MAREY__SINK_COUNTER, name, (uint64_t)i);
        }
    }
    const marey_status status = marey__sink_finish(f.sink);
    marey__sink_destroy(f.sink);
    return status;
}

static marey_status import_and_read(uint64_t memory_bytes, marey_recording **out)
{
    struct marey__log_store *store = NULL;
    MAREY_TRY(marey__log_store_open(NULL, &store));
    marey_status status = import_some(store, memory_bytes, 40);
    if (status == MAREY_OK)
        status = marey__log_store_read(store, "x", out);
    marey__log_store_close(store);
    return status;
}

static void each_failing_allocation_is_reported_and_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t memory_bytes = 0; memory_bytes < 5000; memory_bytes += 4000) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status != MAREY_OK; nth++) {
            marey_recording *recording = NULL;
            marey__alloc_fail_nth(nth);
            status = import_and_read(memory_bytes, &recording);
            marey__alloc_fail_nth(0);
            assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && recording == NULL));
            if (status == MAREY_OK)
                assert_int_equal(marey_recording_n_processes(recording), 2);
            marey_recording_close(recording);
            assert_true(nth < 100000);
        }
    }
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    const struct rlimit tiny = {2000, RLIM_INFINITY};
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    for (uint64_t memory_bytes = 0; memory_bytes < 5000; memory_bytes += 4000) {
        struct marey__log_store *store;
        assert_int_equal(marey__log_store_open(NULL, &store), MAREY_OK);
        setrlimit(RLIMIT_FSIZE, &tiny);
        const marey_status status = import_some(store, memory_bytes, 900);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, MAREY_EIO);
        assert_non_null(strstr(marey_last_error(), "File too large"));
        assert_non_null(strstr(marey_last_error(), "temporary"));
        marey__log_store_close(store);
    }
    signal(SIGXFSZ, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_in_any_order_are_nested),
        cmocka_unit_test(of_one_begin_the_longer_is_around_the_shorter),
        cmocka_unit_test(slices_that_touch_are_neighbours),
        cmocka_unit_test(what_overlaps_goes_to_a_further_lane_of_the_thread),
        cmocka_unit_test(what_overlaps_lies_in_the_ranges_around_it),
        cmocka_unit_test(what_outlasts_another_by_rounding_lies_in_it),
        cmocka_unit_test(thousands_at_a_time_each_keep_their_times),
        cmocka_unit_test(begins_and_ends_of_one_moment_keep_the_order_of_the_file),
        cmocka_unit_test(slices_and_single_ends_share_a_lane),
        cmocka_unit_test(an_end_without_a_begin_is_left_out_and_reported),
        cmocka_unit_test(a_flow_lies_in_the_slice_that_begins_with_it),
        cmocka_unit_test(iterations_end_before_the_next_begin),
        cmocka_unit_test(gpu_work_keeps_its_duration_and_may_overlap),
        cmocka_unit_test(times_lie_anywhere_in_64_bits),
        cmocka_unit_test(what_was_sorted_on_disk_is_the_same_to_the_word),
        cmocka_unit_test(a_reader_gets_iterations_in_order_among_all_lanes),
        cmocka_unit_test(a_process_is_who_the_file_says),
        cmocka_unit_test(names_past_a_million_are_other_names),
        cmocka_unit_test(threads_past_a_hundred_thousand_share_a_lane),
        cmocka_unit_test(arguments_that_do_not_fit_a_block_are_left_out_and_reported),
        cmocka_unit_test(each_failing_allocation_is_reported_and_leaves_nothing),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests_name("sink_order", tests, NULL, NULL);
}
