/* Samples as trees of calls, as ranges in time, and as files of other tools. Rounds are 10 ms apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "importing.h"
#include "present/export/stacks/internal.h"
#include "samples_maker.h"

#define MS UINT64_C(1000000)

static int set_up(void **state)
{
    return samples_maker_init((*state = calloc(1, sizeof(struct samples_maker))));
}

static int tear_down(void **state)
{
    samples_maker_fini(*state);
    free(*state);
    return 0;
}

/* The main thread is in step, in step and what it calls, and back; another waits, and works once. */
static void sample_some(struct samples_maker *m)
{
    const uint32_t main_thread = samples_thread(m, true, "MainThread"),
                   other = samples_thread(m, false, "load;er"),
                   step = samples_stack(m, "main:3;step:9"),
                   kernel = samples_stack(m, "main:3;step:10;conv@libtorch.so"),
                   load = samples_stack(m, "load:7");
    const struct marey_samples_seen rounds[][2] = {
        {{main_thread, step, MAREY_SAMPLE_ON_CPU, 0}, {other, load, MAREY_SAMPLE_OFF_CPU, 0}},
        {{main_thread, step, MAREY_SAMPLE_ON_CPU, 0}, {other, load, MAREY_SAMPLE_OFF_CPU, 0}},
        {{main_thread, kernel, MAREY_SAMPLE_ON_CPU, 0}, {other, load, MAREY_SAMPLE_ON_CPU, 0}},
        {{main_thread, 0, MAREY_SAMPLE_OFF_CPU, 0}, {other, load, MAREY_SAMPLE_OFF_CPU, 0}},
        {{main_thread, step, MAREY_SAMPLE_ON_CPU, 0}, {other, load, MAREY_SAMPLE_OFF_CPU, 0}},
    };
    const struct marey_samples_round first = {
        .process = 1, .at_ns = 1000 * MS, .weight_ns = 10 * MS, .seen = rounds[0], .n_seen = 2};
    samples_begin(m);
    assert_int_equal(marey__samples_log_round(m->log, &first), MAREY_OK);
    for (size_t i = 1; i < 5; i++)
        samples_round(m, 1000000 + 10000 * i, 2, rounds[i]);
    samples_end(m, "stop");
}

static marey_recording *open_made(const struct samples_maker *m)
{
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    return recording;
}

/* ---- the tree ---- */

static const struct marey__call_node *find_node(const struct marey__calls *calls, const char *name,
                                                const char *caller)
{
    for (size_t i = 1; i < calls->n_nodes; i++) {
        const struct marey__call_node *const node = &calls->nodes[i];
        const char *const parent =
            node->parent != 0 ? calls->functions[calls->nodes[node->parent].function].name : "";
        if (strcmp(calls->functions[node->function].name, name) == 0 && strcmp(parent, caller) == 0)
            return node;
    }
    return NULL;
}

static void expect_node(const struct marey__calls *calls, const char *name, const char *caller,
                        uint64_t n, uint64_t self_ns, uint64_t total_ns)
{
    const struct marey__call_node *const node = find_node(calls, name, caller);
    assert_non_null(node);
    assert_int_equal(node->calls, n);
    /* Times of rounds are known to 33 us. */
    assert_in_range(node->self_ns, self_ns - self_ns / 100, self_ns + self_ns / 100);
    assert_in_range(node->total_ns, total_ns - total_ns / 100, total_ns + total_ns / 100);
}

static void paths_have_samples_and_their_time(void **state)
{
    struct samples_maker *const m = *state;
    struct marey__calls calls;
    sample_some(m);
    marey_recording *recording = open_made(m);
    assert_int_equal(marey__calls_read_samples(&calls, &recording, 1, NULL, false), MAREY_OK);
    assert_true(calls.from_samples);
    expect_node(&calls, "main", "", 4, 0, 40 * MS);
    expect_node(&calls, "step", "main", 4, 30 * MS, 40 * MS);
    expect_node(&calls, "conv", "step", 1, 10 * MS, 10 * MS);
    expect_node(&calls, "(no Python frames)", "", 1, 10 * MS, 10 * MS);
    expect_node(&calls, "load", "", 1, 10 * MS, 10 * MS); /* others count on a processor */
    marey__calls_fini(&calls);
    marey_recording_close(recording);
}

static void filters_choose(void **state)
{
    struct samples_maker *const m = *state;
    struct marey__calls calls;
    sample_some(m);
    marey_recording *recording = open_made(m);
    const struct marey__samples_filter idle = {.idle = 1}, main_only = {.thread = "Main"},
                                       wrong = {.mode = "dreaming"};
    assert_int_equal(marey__calls_read_samples(&calls, &recording, 1, &idle, false), MAREY_OK);
    expect_node(&calls, "load", "", 5, 50 * MS, 50 * MS);
    marey__calls_fini(&calls);
    assert_int_equal(marey__calls_read_samples(&calls, &recording, 1, &main_only, false), MAREY_OK);
    assert_null(find_node(&calls, "load", ""));
    marey__calls_fini(&calls);
    assert_int_equal(marey__calls_read_samples(&calls, &recording, 1, &wrong, false), MAREY_EINVAL);
    marey_recording_close(recording);
}

/* What asks for calls gets samples where nobody counted calls. */
static void calls_are_samples_where_there_are_none(void **state)
{
    struct samples_maker *const m = *state;
    struct marey__calls calls;
    sample_some(m);
    marey_recording *recording = open_made(m);
    assert_int_equal(marey__calls_read(&calls, &recording, 1), MAREY_OK);
    assert_true(calls.from_samples);
    assert_false(calls.from_ranges);
    marey__calls_fini(&calls);
    marey_recording_close(recording);
}

/* ---- in time ---- */

static void a_function_is_one_range_while_it_is_seen(void **state)
{
    struct samples_maker *const m = *state;
    marey_recording *laid = NULL;
    sample_some(m);
    marey_recording *recording = open_made(m);
    assert_int_equal(marey__samples_as_ranges(&recording, 1, NULL, false, &laid), MAREY_OK);
    const struct marey_process *const process = marey_recording_process(laid, 0);
    assert_int_equal(process->pid, 100);
    assert_string_equal(process->source, MAREY__SAMPLES_SOURCE);
    /* On the sampler's clock: 10 ms before the first round. */
    assert_in_range(process->first_ns, 989 * MS, 991 * MS);
    assert_true(process->mono_to_unix_ns > 0);
    char *text = exported_text(laid, "csv");
    assert_non_null(strstr(text, ",MainThread,step,"));
    assert_null(strstr(text, ": samples"));
    free(text);
    marey_report *summary = summary_of(laid);
    marey_recording_close(recording);
    marey_table *ranges = marey_report_table(summary, "ranges");
    size_t n_steps = 0;
    for (size_t i = 0; i < marey_table_n_rows(ranges); i++) {
        const struct marey_cell name = marey_table_cell(ranges, i, 0);
        if (strcmp(name.as.text, "step") != 0)
            continue;
        n_steps = marey_table_cell(ranges, i, (size_t)marey_table_find(ranges, "count")).as.u64;
    }
    assert_int_equal(n_steps, 4); /* samples */
    marey_report_destroy(summary);
}

static void beside_events_threads_have_other_numbers(void **state)
{
    struct samples_maker *const m = *state;
    marey_recording *laid = NULL;
    sample_some(m);
    marey_recording *recording = open_made(m);
    assert_int_equal(marey__samples_as_ranges(&recording, 1, NULL, true, &laid), MAREY_OK);
    for (uint32_t i = 0; i < marey_recording_process(laid, 0)->n_lanes; i++) {
        const struct marey_lane_info *const lane = marey_recording_lane(laid, 0, i);
        assert_true(lane->tid > 1 << 30);
        assert_non_null(strstr(lane->name, ": samples"));
    }
    marey_recording_close(laid);
    marey_recording_close(recording);
}

/* ---- files ---- */

static char *export(const struct samples_maker *m, const char *format,
                    const struct marey_export_options *options)
{
    char path[] = "/tmp/marey-out-XXXXXX", *text = calloc(1, 1 << 16);
    marey_recording *recording = open_made(m);
    FILE *const file = fdopen(mkstemp(path), "w+b");
    assert_non_null(file);
    assert_int_equal(marey_export(&recording, 1, format, options, fileno(file)), MAREY_OK);
    marey_recording_close(recording);
    rewind(file);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    remove(path);
    return text;
}

static void py_spy_s_format_has_lines_and_counts(void **state)
{
    struct samples_maker *const m = *state;
    const char *const idle[] = {"idle", NULL};
    const struct marey_export_options by_thread = {.by = "thread", .samples = idle};
    sample_some(m);
    char *text = export(m, "pyspy", NULL);
    assert_string_equal(text, "main (/src/main.py:3);step (/src/step.py:9) 3\n"
                              "(no Python frames) 1\n"
                              "main (/src/main.py:3);step (/src/step.py:10);conv (libtorch.so) 1\n"
                              "load (/src/load.py:7) 1\n");
    free(text);
    text = export(m, "pyspy", &by_thread);
    assert_non_null(strstr(text, "thread (101): load:er;load (/src/load.py:7) 5\n"));
    assert_non_null(strstr(text, "thread (100): MainThread;main (/src/main.py:3);"));
    free(text);
}

/* Without being asked for: there is nothing else in it. */
static void every_format_has_the_samples(void **state)
{
    struct samples_maker *const m = *state;
    sample_some(m);
    char *text = export(m, "collapsed", NULL);
    assert_non_null(strstr(text, "main;step;conv "));
    free(text);
    const struct marey_export_format *format;
    for (size_t i = 0; (format = marey_export_format_at(i)) != NULL; i++) {
        if (format->missing != NULL)
            continue;
        text = export(m, format->name, NULL);
        if (!format->is_binary)
            assert_non_null(strstr(text, "conv"));
        free(text);
    }
}

static void what_cannot_be_is_reported(void **state)
{
    struct samples_maker *const m = *state;
    const struct marey_export_options by_rank = {.by = "rank"}, named = {.filter = "step"};
    sample_some(m);
    marey_recording *recording = open_made(m);
    assert_int_equal(marey_export(&recording, 1, "pyspy", &by_rank, 1), MAREY_EINVAL);
    assert_int_equal(marey_export(&recording, 1, "pyspy", &named, 1), MAREY_EINVAL);
    marey_recording_close(recording);
    recording =
        import_text(&marey__import_chrome,
                    "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]");
    const char *const any[] = {NULL};
    const struct marey_export_options wants = {.samples = any};
    assert_int_equal(marey_export(&recording, 1, "chrome", &wants, 1), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "nothing was sampled"));
    marey_recording_close(recording);
}

/* ---- files of other samplers ---- */

#define STACKS                                                                                     \
    "process 7:\"python\";thread (0x8): main;f (a.py:1);g (a.py:2) 3\n"                            \
    "process 7:\"python\";thread (0x8): main;f (a.py:1) 2\n"                                       \
    "process 7:\"python\";thread (0x8): main;f (b.py:4);memcpy (libc.so.6) 1\n"

static void files_of_others_are_samples(void **state)
{
    struct marey__calls calls;
    marey_recording *recording = import_text(&marey__import_collapsed, STACKS);
    (void)state;
    assert_false(marey_report_is_there("samples", &recording, 1));
    assert_int_equal(marey__calls_read_samples(&calls, &recording, 1, NULL, false), MAREY_OK);
    expect_node(&calls, "g", "f", 3, 30 * MS, 30 * MS);
    expect_node(&calls, "memcpy", "f", 1, 10 * MS, 10 * MS);
    const struct marey__call_node *const f = find_node(&calls, "f", "");
    assert_int_equal(f->calls, 5); /* that of a.py came first */
    assert_int_equal(f->self_ns, 20 * MS);
    assert_string_equal(calls.functions[f->function].file, "a.py");
    marey__calls_fini(&calls);
    marey_recording_close(recording);
}

/* ---- memory ---- */

static marey_status read_tree(marey_recording *recording)
{
    struct marey__calls calls;
    const marey_status status = marey__calls_read_samples(&calls, &recording, 1, NULL, false);
    marey__calls_fini(&calls);
    return status;
}

static marey_status lay(marey_recording *recording)
{
    marey_recording *laid = NULL;
    const marey_status status = marey__samples_as_ranges(&recording, 1, NULL, true, &laid);
    marey_recording_close(laid);
    return status;
}

static marey_status write_stacks(marey_recording *recording)
{
    FILE *const file = tmpfile();
    const marey_status status = marey_export(&recording, 1, "pyspy", NULL, fileno(file));
    fclose(file);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    struct samples_maker *const m = *state;
    marey_status (*const works[])(marey_recording *) = {read_tree, lay, write_stacks};
    sample_some(m);
    marey_recording *recording = open_made(m);
    for (size_t i = 0; i < MAREY__COUNT_OF(works); i++)
        for (unsigned nth = 1;; nth++) {
            marey__alloc_fail_nth(nth);
            const marey_status status = works[i](recording);
            marey__alloc_fail_nth(0);
            if (status == MAREY_OK)
                break;
            assert_int_equal(status, MAREY_ENOMEM);
        }
    marey_recording_close(recording);
    recording = import_text(&marey__import_collapsed, STACKS);
    for (unsigned nth = 1;; nth++) {
        marey__alloc_fail_nth(nth);
        const marey_status status = read_tree(recording);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    marey_recording_close(recording);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_have_samples_and_their_time),
        TEST(filters_choose),
        TEST(calls_are_samples_where_there_are_none),
        TEST(a_function_is_one_range_while_it_is_seen),
        TEST(beside_events_threads_have_other_numbers),
        TEST(py_spy_s_format_has_lines_and_counts),
        TEST(every_format_has_the_samples),
        TEST(what_cannot_be_is_reported),
        TEST(files_of_others_are_samples),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
