/* Memory timelines of traces: blocks, roles, phases, categories, peaks, and output files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/memory/internal.h"
#include "codec/internal.h"
#include "present/memory/internal.h"
#include "present/page/internal.h"

/* ---- a trace in the making; times are microseconds ---- */

static struct marey__buf json;
static struct marey__torch_trace *trace;
static marey_memory_timeline *timeline;

static int setup(void **state)
{
    (void)state;
    marey__buf_puts(&json, "{\"schemaVersion\":1,\"baseTimeNanoseconds\":0,\"traceEvents\":[");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    marey_memory_timeline_destroy(timeline);
    marey__torch_free(trace);
    marey__buf_fini(&json);
    json = (struct marey__buf){0};
    timeline = NULL;
    trace = NULL;
    return 0;
}

static void put_memory_on(int type, int id, double us, uint64_t address, int64_t bytes, int64_t total)
{
    marey__buf_printf(&json,
                      "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,"
                      "\"tid\":1,\"ts\":%.3f,\"s\":\"t\",\"args\":{\"Addr\":%ju,\"Bytes\":%jd,"
                      "\"Device Type\":%d,\"Device Id\":%d,\"Total Allocated\":%jd,"
                      "\"Call stack\":\"leaf.py(7): f;<built-in>;main.py(1): <module>;\"}},",
                      us, (uintmax_t)address, (intmax_t)bytes, type, id, (intmax_t)total);
}

static void put_memory(double us, uint64_t address, int64_t bytes)
{
    put_memory_on(0, -1, us, address, bytes, 0);
}

static void put_slice(const char *category, const char *name, double us, double duration,
                      const char *args)
{
    marey__buf_printf(
        &json,
        "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
        "\"dur\":%.3f,\"args\":{%s}},",
        category, name, us, duration, args);
}

static void put_phase(const char *name, double us, double duration)
{
    put_slice("user_annotation", name, us, duration, "");
}

/* Behind the events: what marey's callback says of addresses. */
static void make_with_roles(const char *roles)
{
    put_phase("ProfilerStep#1", 0, 100000);
    json.len--; /* the comma */
    marey__buf_printf(&json, "],\"marey\":{\"version\":1,\"rank\":0,\"roles\":[%s]}}", roles);
    assert_false(json.failed);
    assert_int_equal(marey__torch_read_memory("trace", json.data, json.len, NULL, &trace), MAREY_OK);
    assert_int_equal(marey_memory_timeline_create(trace, &timeline), MAREY_OK);
}

static void make(void)
{
    make_with_roles("");
}

/* ---- looking ---- */

static const struct marey__memory_block *block_at(uint64_t address, int64_t bytes)
{
    for (size_t i = 0; i < timeline->n_blocks; i++)
        if (timeline->blocks[i].address == address && timeline->blocks[i].bytes == bytes)
            return &timeline->blocks[i];
    fail_msg("no block of %jd bytes at %ju", (intmax_t)bytes, (uintmax_t)address);
    return NULL;
}

static void expect(uint64_t address, int64_t bytes, enum marey_memory_category category)
{
    assert_string_equal(
        marey_memory_category_name((enum marey_memory_category)block_at(address, bytes)->category),
        marey_memory_category_name(category));
}

/* A step: data 0..10, forward 10..20, backward 30..40, optimizer 50..60. */
static void put_step(void)
{
    put_phase("marey:data", 0, 10);
    put_phase("marey:forward", 10, 10);
    put_phase("marey:backward", 30, 10);
    put_phase("marey:optimizer", 50, 20);
    put_phase("Optimizer.step#Adam.step", 52, 8);
}

/* ---- tests ---- */

static void phases_tell_categories(void **state)
{
    (void)state;
    put_step();
    put_memory(1, 0x1000, 10); /* a batch */
    put_memory(2, 0x2000, 20); /* gone before the phase ends */
    put_memory(3, 0x2000, -20);
    put_memory(11, 0x3000, 30); /* kept for the backward pass */
    put_memory(12, 0x4000, 40);
    put_memory(13, 0x4000, -40);
    put_memory(25, 0x5000, 50); /* a loss, behind the forward pass */
    put_memory(31, 0x6000, 60); /* handed from one backward operator to the next */
    put_memory(32, 0x6000, -60);
    put_memory(33, 0x7000, 70); /* outlives the backward pass */
    put_memory(35, 0x3000, -30);
    put_memory(51, 0x8000, 80); /* around the optimizer's step */
    put_memory(53, 0x9000, 90); /* and in it */
    put_memory(54, 0xa000, 100);
    put_memory(55, 0xa000, -100);
    put_memory(90, 0xb000, 110); /* nowhere */
    make();
    expect(0x1000, 10, MAREY_MEMORY_INPUT);
    expect(0x2000, 20, MAREY_MEMORY_TEMPORARY);
    expect(0x3000, 30, MAREY_MEMORY_ACTIVATION);
    expect(0x4000, 40, MAREY_MEMORY_TEMPORARY);
    expect(0x5000, 50, MAREY_MEMORY_ACTIVATION);
    expect(0x6000, 60, MAREY_MEMORY_AUTOGRAD_DETAIL);
    expect(0x7000, 70, MAREY_MEMORY_GRADIENT);
    expect(0x8000, 80, MAREY_MEMORY_UNKNOWN);
    expect(0x9000, 90, MAREY_MEMORY_OPTIMIZER_STATE);
    expect(0xa000, 100, MAREY_MEMORY_TEMPORARY);
    expect(0xb000, 110, MAREY_MEMORY_UNKNOWN);
    assert_int_equal(timeline->n_lost, 0);
}

static void what_one_operator_makes_and_releases_is_temporary(void **state)
{
    (void)state;
    put_step();
    put_slice("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 31, 4, "");
    put_slice("cpu_op", "aten::mm", 32, 1, "");
    put_memory(32, 0x1000, 10);
    put_memory(34, 0x1000, -10); /* behind the inner operator, within the outer one */
    put_memory(34.5, 0x1000, 20);
    put_memory(38, 0x1000, -20);
    make();
    expect(0x1000, 10, MAREY_MEMORY_TEMPORARY);
    expect(0x1000, 20, MAREY_MEMORY_AUTOGRAD_DETAIL);
}

static void operators_tell_phases_where_nobody_annotates(void **state)
{
    (void)state;
    put_phase("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 5);
    put_slice("cpu_op", "aten::mul", 1, 1, "\"Sequence number\":1,\"Fwd thread id\":0");
    put_slice("cpu_op", "aten::linear", 10, 2, "\"Sequence number\":2,\"Fwd thread id\":0");
    put_slice("cpu_op", "aten::relu", 13, 2, "\"Sequence number\":3,\"Fwd thread id\":0");
    put_slice("cpu_op", "autograd::engine::evaluate_function: X", 20, 2,
              "\"Sequence number\":3,\"Fwd thread id\":1");
    put_slice("cpu_op", "autograd::engine::evaluate_function: Y", 25, 3,
              "\"Sequence number\":2,\"Fwd thread id\":1");
    put_slice("cpu_op", "aten::add", 26, 1, "\"Sequence number\":9,\"Fwd thread id\":0");
    put_phase("Optimizer.step#SGD.step", 40, 5);
    put_memory(1.5, 0x1000, 10); /* by an operator of the data phase */
    put_memory(7, 0x2000, 20);   /* between the data and the forward pass */
    put_memory(11, 0x3000, 30);
    put_memory(13.5, 0x4000, 40);
    put_memory(14, 0x3000, -30); /* by the next operator of the forward pass */
    put_memory(21, 0x5000, 50);
    put_memory(26.5, 0x6000, 60);
    put_memory(27.5, 0x5000, -50);
    put_memory(27.7, 0x4000, -40);
    put_memory(41, 0x7000, 70);
    make();
    expect(0x1000, 10, MAREY_MEMORY_INPUT);
    expect(0x2000, 20, MAREY_MEMORY_INPUT);
    expect(0x3000, 30, MAREY_MEMORY_TEMPORARY);
    expect(0x4000, 40, MAREY_MEMORY_ACTIVATION);
    expect(0x5000, 50, MAREY_MEMORY_AUTOGRAD_DETAIL);
    expect(0x6000, 60, MAREY_MEMORY_GRADIENT);
    expect(0x7000, 70, MAREY_MEMORY_OPTIMIZER_STATE);
}

static void roles_go_before_phases(void **state)
{
    (void)state;
    put_step();
    put_memory(33, 0x1000, 10); /* a gradient that is named */
    put_memory(34, 0x2000, 20); /* one that is not, though names were taken */
    put_memory(36, 0x3000, 30);
    put_memory(61, 0x1000, -10);
    put_memory(62, 0x1000, 40); /* the same place later */
    put_memory(70, 0x2000, -20);
    put_memory(71, 0x3000, -30); /* before names were taken the second time */
    make_with_roles(
        "[\"gradient\",4096,10,0,-1,45000,\"w\"],[\"gradient\",12288,30,0,-1,45000,\"b\"],"
        "[\"parameter\",12288,30,0,-1,45000,\"b too\"],"
        "[\"parameter\",20480,50,0,-1,80000,\"w\"]");
    expect(0x1000, 10, MAREY_MEMORY_GRADIENT);
    expect(0x2000, 20, MAREY_MEMORY_AUTOGRAD_DETAIL);
    expect(0x3000, 30, MAREY_MEMORY_PARAMETER);
    expect(0x1000, 40, MAREY_MEMORY_UNKNOWN);
    expect(0x5000, 50, MAREY_MEMORY_PARAMETER);
    assert_string_equal(marey__torch_text(trace, block_at(0x3000, 30)->name, NULL), "b too");
    assert_true(block_at(0x5000, 50)->made_ns == MAREY__MEMORY_BEFORE);
    assert_true(block_at(0x5000, 50)->freed_ns == MAREY__MEMORY_NEVER);
}

static void a_place_has_one_block_at_a_time(void **state)
{
    (void)state;
    put_memory(10, 0x1000, -10); /* was there before */
    put_memory(20, 0x1000, 20);
    put_memory(30, 0x1000, 30); /* the release of the other was not seen */
    put_memory(40, 0x1000, -30);
    put_memory(50, 0x1000, -30); /* a second time */
    put_memory(60, 0, 99);
    put_memory(70, 0x9000, 0);
    /* Named where nothing is known to be: between two blocks, and behind the last. */
    make_with_roles("[\"input\",4096,7,0,-1,15000,\"x\"],[\"input\",4096,8,0,-1,45000,\"y\"],"
                    "[\"input\",8192,9,0,-1,45000,\"z\"],[\"input\",4096,10,0,-1,5000,\"early\"]");
    assert_true(block_at(0x1000, 10)->made_ns == MAREY__MEMORY_BEFORE);
    assert_int_equal(block_at(0x1000, 10)->freed_ns, 10000);
    expect(0x1000, 10, MAREY_MEMORY_INPUT);
    assert_int_equal(block_at(0x1000, 20)->freed_ns, 30000);
    assert_int_equal(block_at(0x1000, 30)->freed_ns, 40000);
    assert_int_equal(block_at(0x1000, 7)->made_ns, 15000);
    assert_int_equal(block_at(0x1000, 7)->freed_ns, 20000);
    assert_int_equal(block_at(0x1000, 8)->made_ns, 45000);
    assert_true(block_at(0x1000, 8)->freed_ns == MAREY__MEMORY_NEVER);
    assert_true(block_at(0x2000, 9)->made_ns == MAREY__MEMORY_BEFORE);
    assert_int_equal(timeline->n_blocks, 6);
    assert_int_equal(timeline->n_lost, 2);
}

static void the_peak_is_what_was_alive_at_once(void **state)
{
    (void)state;
    put_step();
    put_memory(11, 0x1000, 100);
    put_memory(12, 0x2000, 50);
    put_memory(13, 0x1000, -100);
    put_memory(14, 0x3000, 90);
    put_memory(15, 0x4000, 30); /* the peak: 170 */
    put_memory(36, 0x3000, -90);
    make();
    const struct marey__memory_device *device = marey__memory_main_device(timeline);
    int64_t bytes = 0;
    size_t n_alive = 0;
    assert_int_equal(device->peak_bytes, 170);
    for (size_t i = 0; i < timeline->n_blocks; i++) {
        const struct marey__memory_block *block = &timeline->blocks[i];
        if (block->made_change > device->peak_change || block->freed_change <= device->peak_change)
            continue;
        assert_int_equal(block->category, MAREY_MEMORY_ACTIVATION);
        bytes += block->bytes;
        n_alive++;
    }
    assert_int_equal(bytes, 170);
    assert_int_equal(n_alive, 3);
}

static void a_gpu_has_what_its_sum_says_was_there(void **state)
{
    (void)state;
    put_memory_on(1, 2, 10, 0x7000000, 512, 10512);
    put_memory_on(1, 2, 11, 0x7100000, -1000, 9512);
    put_memory_on(0, -1, 12, 0x1000, 10, 5000); /* what a CPU's sum has besides is of no meaning */
    make_with_roles("[\"parameter\",120586240,2000,1,2,5000,\"w\"]");
    const struct marey__memory_device *device = marey__memory_main_device(timeline);
    char name[32];
    marey__memory_device_name(device, name);
    assert_string_equal(name, "GPU 2");
    assert_int_equal(device->peak_bytes, 10512);
    assert_int_equal(device->n_before, 3); /* the parameter, what is released, and the rest */
    expect(0, 7000, MAREY_MEMORY_UNKNOWN);
    assert_int_equal(timeline->n_devices, 2);
    assert_int_equal(timeline->devices[0].peak_bytes, 10);
}

static void spans_of_several_threads_are_cut(void **state)
{
    (void)state;
    put_phase("marey:forward", 0, 10);
    put_phase("marey:logging", 5, 10); /* ends behind what it began in */
    put_phase("marey:backward", 15, 5);
    make();
    const struct marey__memory_phases *phases = &timeline->phases;
    assert_int_equal(marey__memory_span_at(phases, 4000)->phase, MAREY__MEMORY_IN_FORWARD);
    assert_int_equal(marey__memory_span_at(phases, 6000)->phase, MAREY__MEMORY_IN_OTHER);
    assert_null(marey__memory_span_at(phases, 12000));
    assert_int_equal(marey__memory_span_at(phases, 16000)->phase, MAREY__MEMORY_IN_BACKWARD);
    assert_null(marey__memory_span_at(phases, 20000));
    assert_int_equal(marey_memory_timeline_n_devices(timeline), 0);
}

/* ---- files ---- */

static size_t unpack(FILE *file, char *text, size_t size)
{
    struct marey__flate_io io = {.out = (uint8_t *)text, .n_out = size - 1};
    uint8_t packed[8192];
    rewind(file);
    io.in = packed;
    io.n_in = fread(packed, 1, sizeof packed, file);
    marey__inflate *inflate = marey__inflate_create(MAREY__INFLATE_GZIP);
    assert_non_null(inflate);
    assert_int_equal(marey__inflate_run(inflate, &io), MAREY__INFLATE_DONE);
    marey__inflate_destroy(inflate);
    const size_t n = size - 1 - io.n_out;
    text[n] = '\0';
    return n;
}

static void expect_file(enum marey_memory_file kind, const char *wanted)
{
    char text[4096];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(marey_memory_timeline_write(timeline, kind, NULL, fileno(file)), MAREY_OK);
    assert_true(unpack(file, text, sizeof text) > 0);
    assert_string_equal(text, wanted);
    fclose(file);
}

static void json_files_are_torchs(void **state)
{
    (void)state;
    put_step();
    put_memory(11.1, 0x1000, 100);
    put_memory(11.2, 0x2000, 50); /* the same microsecond */
    put_memory(12, 0x2000, -50);
    make_with_roles("[\"parameter\",20480,7,0,-1,5000,\"w\"]");
    expect_file(MAREY_MEMORY_JSON,
                "[[11, 11, 12], [[0, 7, 0, 0, 0, 0, 0, 0, 0], "
                "[0, 7, 0, 0, 50, 100, 0, 0, 0], [0, 7, 0, 0, 0, 100, 0, 0, 0]]]");
    expect_file(MAREY_MEMORY_RAW,
                "[[-1, 1, 7, 0], [11100, 2, 100, 4], [11200, 2, 50, 3], [12000, 4, -50, 3]]");
}

static void segments_hold_all_that_was_ever_there(void **state)
{
    (void)state;
    put_memory(1, 0x10000000, 100);
    put_memory(2, 0x10000080, 100);
    put_memory(3, 0x10000000, -100);
    put_memory(4, 0x20000000, 3 << 20);
    put_memory(5, 0x20000000 + (2 << 20), 3 << 20); /* over the end of the other: its release is lost */
    put_memory(6, UINT64_MAX - 5, 3);               /* no double holds that */
    make();
    struct marey__memory_arenas arenas;
    assert_int_equal(marey__memory_arenas_init(&arenas, timeline, 0), MAREY_OK);
    assert_int_equal(arenas.n_arenas, 2);
    assert_int_equal(arenas.arenas[0].begin, 0x10000000);
    assert_int_equal(arenas.arenas[0].end, 0x10000080 + 100);
    assert_int_equal(arenas.arenas[0].n_live, 1);
    assert_int_equal(arenas.arenas[0].live_bytes, 100);
    assert_true(arenas.arenas[0].is_small);
    assert_int_equal(arenas.arenas[1].end, 0x20000000 + (5 << 20));
    assert_int_equal(arenas.arenas[1].n_live, 1);
    assert_int_equal(timeline->blocks[arenas.live[1]].address, 0x20000000 + (2 << 20));
    marey__memory_arenas_fini(&arenas);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    put_step();
    for (unsigned i = 0; i < 40; i++) {
        put_memory(11 + i * 0.1, 0x1000 + 0x100 * i, 64 + i);
        put_slice("cpu_op", "aten::relu", 11 + i * 0.1, 0.05, "");
    }
    make_with_roles("[\"parameter\",1048576,7,0,-1,5000,\"w\"]");
    for (uint64_t n = 1;; n++) {
        marey_memory_timeline *other = NULL;
        FILE *file = tmpfile();
        assert_non_null(file);
        marey__alloc_fail_nth(n);
        marey_status status = marey_memory_timeline_create(trace, &other);
        for (int kind = MAREY_MEMORY_JSON; status == MAREY_OK && kind <= MAREY_MEMORY_SNAPSHOT; kind++)
            if (kind != MAREY_MEMORY_PAGE || marey__memory_template[0] != '\0')
                status = marey_memory_timeline_write(other, (enum marey_memory_file)kind, "x",
                                                     fileno(file));
        marey__alloc_fail_nth(0);
        marey_memory_timeline_destroy(other);
        fclose(file);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
        assert_true(n < 10000);
    }
}

static void a_trace_without_memory_is_reported(void **state)
{
    (void)state;
    make();
    assert_int_equal(marey_memory_timeline_write(timeline, MAREY_MEMORY_JSON, NULL, -1),
                     MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "profile_memory"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(phases_tell_categories),
        TEST(what_one_operator_makes_and_releases_is_temporary),
        TEST(operators_tell_phases_where_nobody_annotates),
        TEST(roles_go_before_phases),
        TEST(a_place_has_one_block_at_a_time),
        TEST(the_peak_is_what_was_alive_at_once),
        TEST(a_gpu_has_what_its_sum_says_was_there),
        TEST(spans_of_several_threads_are_cut),
        TEST(json_files_are_torchs),
        TEST(segments_hold_all_that_was_ever_there),
        TEST(every_allocation_may_fail),
        TEST(a_trace_without_memory_is_reported),
    };
    return cmocka_run_group_tests_name("memory_timeline", tests, NULL, NULL);
}
