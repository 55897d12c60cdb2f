/*
 * Exports of hand-made logs: each test has the words of a process and the expected file. One tick
 * is one nanosecond and tick 0 is ORIGIN, so times are easy to read.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/export/internal.h"

#define ORIGIN UINT64_C(1000000000)

/* ---- a log ---- */

struct fixture {
    struct log_maker log;
    uint32_t sequence;
};

static void put_site(struct log_maker *log, uint32_t id, const char *name, const char *category,
                     const char *file)
{
    struct marey__buf buf = {0};
    const struct marey__site_entry entry = {
        .id = id,
        .line = 7,
        .name_len = (uint32_t)strlen(name),
        .category_len = (uint32_t)strlen(category),
        .file_len = (uint32_t)strlen(file),
    };
    marey__buf_put(&buf, &entry, sizeof entry);
    marey__buf_puts(&buf, name);
    marey__buf_puts(&buf, category);
    marey__buf_puts(&buf, file);
    marey__buf_put(&buf, "\0\0\0", (4 - buf.len % 4) % 4);
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_SITES}, buf.data, buf.len);
    marey__buf_fini(&buf);
}

/* Sites of all tests. ALIAS is another place that uses STEP's name. */
enum { STEP = 1, FORWARD, LOSS, ALIAS, ODD };

static int setup(void **state)
{
    static const char *const about[] = {MAREY__KEY_PID,
                                        "42",
                                        MAREY__KEY_HOST,
                                        "box",
                                        MAREY__KEY_COMMAND,
                                        "python3 train.py --fast",
                                        MAREY__KEY_CLOCK,
                                        "monotonic",
                                        NULL};
    struct fixture *f = test_calloc(1, sizeof *f);
    log_put_pairs(&f->log, MAREY__BLOCK_LOG, about);
    log_put_moment(&f->log, 0, ORIGIN);
    log_put_moment(&f->log, 1u << 30, ORIGIN + (1u << 30));
    put_site(&f->log, STEP, "step", "", "a.c");
    put_site(&f->log, FORWARD, "forward", "model", "");
    put_site(&f->log, LOSS, "loss", "", "");
    put_site(&f->log, ALIAS, "step", "", "b.c");
    put_site(&f->log, ODD, "a \"b\",\n\xff", "", "");
    log_put_lane(&f->log, 0, 42, "main");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    log_maker_fini(&f->log);
    test_free(f);
    return 0;
}

static void word(struct fixture *f, uint64_t ticks, enum marey_kind kind, uint32_t id)
{
    log_word(&f->log, ticks, kind, id);
}

static void record(struct fixture *f, uint64_t ticks, enum marey_record_type type, uint64_t first,
                   uint64_t second)
{
    const uint64_t words[] = {first, second};
    log_record(&f->log, ticks, type, words, 2);
}

/* Words so far become one block of lane 0; `n_missing` blocks before it were lost. */
static void flush_words(struct fixture *f, uint32_t n_missing)
{
    f->sequence += n_missing;
    log_put_words(&f->log, 0, f->sequence++);
}

/* ---- its export ---- */

struct exported {
    char *text; /* NUL-terminated besides */
    size_t len;
};

static marey_status export_to(struct fixture *f, const char *format, const char *filter, int fd)
{
    const struct marey_export_options options = {.filter = filter};
    marey_recording *recording = NULL;
    char path[64];
    log_write(f->log.bytes.data, f->log.bytes.len, path);
    marey_status status = marey_recording_open(path, &recording);
    if (status == MAREY_OK)
        status = marey_export(&recording, 1, format, &options, fd);
    marey_recording_close(recording);
    unlink(path);
    return status;
}

static struct exported export_log(struct fixture *f, const char *format, const char *filter)
{
    struct exported out = {0};
    if (f->log.n_words > 0)
        flush_words(f, 0);
    log_put_end(&f->log, "stop");
    const int fd = memfd_create("export", MFD_CLOEXEC);
    assert_int_equal(export_to(f, format, filter, fd), MAREY_OK);
    out.len = (size_t)lseek(fd, 0, SEEK_CUR);
    out.text = test_calloc(out.len + 1, 1);
    assert_int_equal(pread(fd, out.text, out.len, 0), (ssize_t)out.len);
    close(fd);
    return out;
}

#define CSV_HEAD                                                                                   \
    "kind,process,rank,pid,tid,thread,name,category,start_ns,duration_ns,depth,value,count,"       \
    "device,"                                                                                      \
    "stream,correlation,bytes\n"

/* The four columns of GPUs are empty on each line, and go. A text may have an end of line in it, with quotes around. */
static void cut_gpu_columns(char *text)
{
    char *to = text;
    bool is_quoted = false;
    for (const char *at = text; *at != '\0'; at++) {
        is_quoted ^= *at == '"';
        if (*at == '\n' && !is_quoted) {
            assert_memory_equal(to - 4, ",,,,", 4);
            to -= 4;
        }
        *to++ = *at;
    }
    *to = '\0';
}

static void expect_csv(struct fixture *f, const char *filter, const char *lines)
{
    struct exported out = export_log(f, "csv", filter);
    assert_memory_equal(out.text, CSV_HEAD, strlen(CSV_HEAD));
    cut_gpu_columns(out.text + strlen(CSV_HEAD));
    assert_string_equal(out.text + strlen(CSV_HEAD), lines);
    test_free(out.text);
}

static void expect_in(const struct exported *out, const char *text)
{
    if (strstr(out->text, text) == NULL)
        fail_msg("no %s in\n%s", text, out->text);
}

/* ---- the walk, through CSV ---- */

static void ranges_nest_and_have_depths(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_BEGIN, FORWARD);
    word(f, 50, MAREY_KIND_END, FORWARD);
    word(f, 70, MAREY_KIND_END, 0);
    expect_csv(f, NULL,
               "range,0,,42,42,main,forward,model,1000000020,30,1,,\n"
               "range,0,,42,42,main,step,,1000000010,60,0,,\n");
}

static void orphan_ends_are_left_out(void **state)
{
    struct fixture *f = *state;
    word(f, 5, MAREY_KIND_END, FORWARD);
    word(f, 6, MAREY_KIND_END, 0);
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_END, FORWARD);
    word(f, 30, MAREY_KIND_END, STEP);
    expect_csv(f, NULL, "range,0,,42,42,main,step,,1000000010,20,0,,\n");
}

static void an_outer_end_closes_what_is_inside(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_BEGIN, FORWARD);
    word(f, 70, MAREY_KIND_END, STEP);
    expect_csv(f, NULL,
               "range,0,,42,42,main,forward,model,1000000020,50,1,,\n"
               "range,0,,42,42,main,step,,1000000010,60,0,,\n");
}

static void a_range_may_end_at_another_site_of_its_name(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 70, MAREY_KIND_END, ALIAS);
    expect_csv(f, NULL, "range,0,,42,42,main,step,,1000000010,60,0,,\n");
}

static void missing_words_cut_ranges_off_without_a_duration(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    flush_words(f, 0);
    word(f, 70, MAREY_KIND_END, STEP);
    flush_words(f, 3);
    expect_csv(f, NULL,
               "range,0,,42,42,main,step,,1000000010,,0,,\n"
               "lost,0,,42,42,main,,,1000000070,,,,\n");
}

static void counted_losses_are_reported(void **state)
{
    struct fixture *f = *state;
    record(f, 10, MAREY_RECORD_GAP, 99, 5);
    expect_csv(f, NULL, "lost,0,,42,42,main,,,1000000010,,,99,\n");
}

static void ranges_left_open_have_no_duration(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_MARK, FORWARD);
    expect_csv(f, NULL,
               "mark,0,,42,42,main,forward,model,1000000020,,1,,\n"
               "range,0,,42,42,main,step,,1000000010,,0,,\n");
}

static void async_ranges_find_their_ends(void **state)
{
    struct fixture *f = *state;
    record(f, 10, MAREY_RECORD_ASYNC_BEGIN, STEP, 1);
    record(f, 20, MAREY_RECORD_ASYNC_BEGIN, FORWARD, 2);
    record(f, 30, MAREY_RECORD_ASYNC_END, 0, 1);
    expect_csv(f, NULL,
               "async,0,,42,42,main,step,,1000000010,20,,,\n"
               "async,0,,42,42,main,forward,model,1000000020,,,,\n");
}

static void a_filter_keeps_names_and_depths(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_BEGIN, FORWARD);
    word(f, 50, MAREY_KIND_END, FORWARD);
    word(f, 70, MAREY_KIND_END, STEP);
    expect_csv(f, "forw*", "range,0,,42,42,main,forward,model,1000000020,30,1,,\n");
}

/* ---- iterations, epochs, phases; ranges that overlap ---- */

static void put_progress(struct fixture *f)
{
    log_epoch(&f->log, 10, 3, true);
    log_phase(&f->log, 10, FORWARD);
    log_iteration(&f->log, 50, 0, true, 0);
    log_iteration(&f->log, 90, 1, false, 8);
    log_phase(&f->log, 95, 0);
    word(f, 100, MAREY_KIND_MARK, LOSS); /* the epoch goes on */
}

static void iterations_have_lines_of_their_own(void **state)
{
    struct fixture *f = *state;
    put_progress(f);
    expect_csv(f, NULL,
               "iteration,0,,42,,,iteration,warmup,1000000010,40,,0,\n"
               "iteration,0,,42,,,iteration,,1000000050,40,,1,\n"
               "phase,0,,42,,,forward,,1000000010,85,,,\n"
               "mark,0,,42,42,main,loss,,1000000100,,0,,\n"
               "epoch,0,,42,,,epoch,,1000000010,,,3,\n");
}

static void chrome_has_a_thread_of_iterations(void **state)
{
    struct fixture *f = *state;
    put_progress(f);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"tid\":4194305,\"name\":\"thread_name\",\"args\":{\"name\":\"iterations\"}}");
    expect_in(&out, "{\"ph\":\"X\",\"pid\":42,\"tid\":4194305,\"ts\":0.010,\"dur\":0.040,"
                    "\"name\":\"iteration 0\",\"args\":{\"warmup\":true}}");
    expect_in(&out, "\"name\":\"iteration 1\",\"args\":{\"samples\":8}}");
    expect_in(&out, "\"name\":\"forward\"}");
    expect_in(&out, "{\"ph\":\"B\",\"pid\":42,\"tid\":4194306,\"ts\":0.010,\"name\":\"epoch 3\"");
    test_free(out.text);
}

static void perfetto_has_a_track_of_iterations(void **state)
{
    struct fixture *f = *state;
    put_progress(f);
    struct exported out = export_log(f, "perfetto", NULL);
    const char *const texts[] = {"iterations",  "epochs", "phases", "iteration 0",
                                 "iteration 1", "warmup", "epoch 3"};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++)
        assert_non_null(memmem(out.text, out.len, texts[i], strlen(texts[i])));
    test_free(out.text);
}

static void put_overlap(struct fixture *f)
{
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 20, MAREY_KIND_BEGIN, FORWARD);
    word(f, 30, MAREY_KIND_BEGIN, LOSS);
    log_end_of(&f->log, 60, FORWARD); /* loss goes on */
    word(f, 80, MAREY_KIND_END, LOSS);
    log_end_of(&f->log, 90, STEP);
    log_end_of(&f->log, 95, STEP); /* has no begin */
}

static void overlapping_ranges_are_whole_where_that_is_possible(void **state)
{
    struct fixture *f = *state;
    put_overlap(f);
    expect_csv(f, NULL,
               "range,0,,42,42,main,forward,model,1000000020,40,1,,\n"
               "range,0,,42,42,main,loss,,1000000030,50,1,,\n"
               "range,0,,42,42,main,step,,1000000010,80,0,,\n");
}

static void overlapping_ranges_are_split_where_they_must_nest(void **state)
{
    struct fixture *f = *state;
    put_overlap(f);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"ts\":0.030,\"dur\":0.030,\"name\":\"loss\"");
    expect_in(&out, "\"ts\":0.020,\"dur\":0.040,\"name\":\"forward\"");
    expect_in(&out, "\"ts\":0.060,\"dur\":0.020,\"name\":\"loss\"");
    expect_in(&out, "\"ts\":0.010,\"dur\":0.080,\"name\":\"step\"");
    test_free(out.text);
}

/* Begins and ends alternate as brackets do. */
static void speedscope_stays_balanced_when_ranges_overlap(void **state)
{
    struct fixture *f = *state;
    put_overlap(f);
    struct exported out = export_log(f, "speedscope", NULL);
    char order[16] = {0};
    size_t n = 0;
    for (const char *at = out.text; (at = strstr(at, "{\"type\":\"")) != NULL; at += 9)
        if ((at[9] == 'O' || at[9] == 'C') && n < sizeof order - 1)
            order[n++] = at[9];
    assert_string_equal(order, "OOOCCOCC");
    test_free(out.text);
}

static void odd_names_are_quoted_and_made_utf8(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_MARK, ODD);
    expect_csv(f, NULL, "mark,0,,42,42,main,\"a \"\"b\"\",\n\xef\xbf\xbd\",,1000000010,,0,,\n");
}

static void an_unknown_site_has_no_name(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_MARK, 0xfffff);
    expect_csv(f, NULL, "mark,0,,42,42,main,,,1000000010,,0,,\n");
}

static void endless_begins_are_bounded(void **state)
{
    struct fixture *f = *state;
    for (uint32_t block = 0; block < 300; block++) {
        for (uint64_t i = 0; i < MAREY__COUNT_OF(f->log.words); i++)
            word(f, block * MAREY__COUNT_OF(f->log.words) + i, MAREY_KIND_BEGIN, STEP);
        flush_words(f, 0);
    }
    struct exported out = export_log(f, "perfetto", NULL);
    assert_true(out.len > 10u << 20);
    test_free(out.text);
}

/* ---- Chrome ---- */

static void chrome_times_are_exact_to_the_nanosecond(void **state)
{
    struct fixture *f = *state;
    word(f, 0, MAREY_KIND_BEGIN, STEP);
    word(f, 1, MAREY_KIND_BEGIN, FORWARD);
    word(f, 1234567, MAREY_KIND_END, FORWARD);
    word(f, 1073741823, MAREY_KIND_END, STEP);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, ",\n{\"ph\":\"X\",\"pid\":42,\"tid\":42,\"ts\":0.001,\"dur\":1234.566,"
                    "\"name\":\"forward\",\"cat\":\"model\"}");
    expect_in(&out, ",\n{\"ph\":\"X\",\"pid\":42,\"tid\":42,\"ts\":0.000,\"dur\":1073741.823,"
                    "\"name\":\"step\"}");
    expect_in(&out, "\"origin_monotonic_ns\":\"1000000000\"");
    expect_in(&out, "\"process_name\",\"args\":{\"name\":\"train.py\"}");
    test_free(out.text);
}

/* The names of ranges in the order in which they stand in the file. */
static void expect_order(const struct exported *out, const char *const *names, size_t n)
{
    const char *at = out->text;
    for (size_t i = 0; i < n; i++) {
        char text[64];
        snprintf(text, sizeof text, "\"name\":\"%s\"", names[i]);
        at = strstr(strstr(at, "{\"ph\":\"X\""), text);
        if (at == NULL)
            fail_msg("%s is not where it should be in\n%s", text, out->text);
    }
}

/* Readers take the first of two that begin and end together for the outer one. */
static void chrome_has_the_outer_of_equal_ranges_first(void **state)
{
    struct fixture *f = *state;
    static const char *const order[] = {"step", "forward", "loss", "loss", "loss", "forward"};
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    record(f, 10, MAREY_RECORD_BEGIN, FORWARD | UINT64_C(1) << 20, 7);
    word(f, 10, MAREY_KIND_BEGIN, LOSS);
    word(f, 20, MAREY_KIND_END, LOSS);
    word(f, 20, MAREY_KIND_END, FORWARD);
    word(f, 20, MAREY_KIND_END, STEP);
    /* Two without length, one after the other, and the range around them outlasts both. */
    word(f, 30, MAREY_KIND_BEGIN, FORWARD);
    word(f, 30, MAREY_KIND_BEGIN, LOSS);
    word(f, 30, MAREY_KIND_END, LOSS);
    word(f, 30, MAREY_KIND_BEGIN, LOSS);
    word(f, 30, MAREY_KIND_END, LOSS);
    word(f, 40, MAREY_KIND_END, FORWARD);
    /* What waits for a range that never ends is written all the same. */
    word(f, 50, MAREY_KIND_BEGIN, STEP);
    word(f, 50, MAREY_KIND_BEGIN, ODD);
    word(f, 60, MAREY_KIND_END, ODD);
    struct exported out = export_log(f, "chrome", NULL);
    expect_order(&out, order, sizeof order / sizeof order[0]);
    expect_in(&out,
              "\"dur\":0.010,\"name\":\"forward\",\"cat\":\"model\",\"args\":{\"payload\":7}}");
    expect_in(&out, "{\"ph\":\"X\",\"pid\":42,\"tid\":42,\"ts\":0.050,\"dur\":0.010,\"name\":\"a ");
    expect_in(&out, "{\"ph\":\"B\",\"pid\":42,\"tid\":42,\"ts\":0.050,\"name\":\"step\"}");
    test_free(out.text);
}

static void chrome_has_payloads_counters_and_open_ranges(void **state)
{
    struct fixture *f = *state;
    const double half = 0.5;
    uint64_t bits;
    memcpy(&bits, &half, sizeof bits);
    record(f, 10, MAREY_RECORD_BEGIN, STEP | (uint64_t)MAREY_PAYLOAD_I64 << 20, (uint64_t)-3);
    record(f, 20, MAREY_RECORD_COUNTER, LOSS, bits);
    word(f, 30, MAREY_KIND_END, STEP);
    word(f, 40, MAREY_KIND_BEGIN, ODD);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"name\":\"step\",\"args\":{\"payload\":-3}}");
    expect_in(&out, "\"ph\":\"C\",\"pid\":42,\"tid\":42,\"ts\":0.020,\"name\":\"loss\",\"args\":{"
                    "\"value\":0.5}}");
    expect_in(&out, "\"ph\":\"B\",\"pid\":42,\"tid\":42,\"ts\":0.040,\"name\":\"a \\\"b\\\",\\n");
    test_free(out.text);
}

/* The second payload has no place among integers with a sign. */
static void put_large_payloads(struct fixture *f)
{
    record(f, 10, MAREY_RECORD_MARK, STEP | (uint64_t)MAREY_PAYLOAD_U64 << 20, INT64_MAX);
    record(f, 20, MAREY_RECORD_MARK, STEP | (uint64_t)MAREY_PAYLOAD_U64 << 20, UINT64_MAX);
}

static void chrome_keeps_the_digits_of_large_payloads(void **state)
{
    struct fixture *f = *state;
    put_large_payloads(f);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"args\":{\"payload\":9223372036854775807}}");
    expect_in(&out, "\"args\":{\"payload\":\"18446744073709551615\"}}");
    test_free(out.text);
}

static void record_double(struct fixture *f, uint64_t ticks, enum marey_record_type type,
                          uint64_t first, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    record(f, ticks, type, first, bits);
}

static void chrome_has_texts_for_what_json_has_no_numbers(void **state)
{
    struct fixture *f = *state;
    record_double(f, 10, MAREY_RECORD_COUNTER, LOSS, NAN);
    record_double(f, 20, MAREY_RECORD_COUNTER, LOSS, INFINITY);
    record_double(f, 30, MAREY_RECORD_COUNTER, LOSS, -INFINITY);
    record_double(f, 40, MAREY_RECORD_MARK, STEP | (uint64_t)MAREY_PAYLOAD_F64 << 20, NAN);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"ts\":0.010,\"name\":\"loss\",\"args\":{\"value\":\"NaN\"}}");
    expect_in(&out, "\"ts\":0.020,\"name\":\"loss\",\"args\":{\"value\":\"Infinity\"}}");
    expect_in(&out, "\"ts\":0.030,\"name\":\"loss\",\"args\":{\"value\":\"-Infinity\"}}");
    expect_in(&out, "\"name\":\"step\",\"args\":{\"payload\":\"NaN\"}}");
    test_free(out.text);
}

static void chrome_takes_the_nearest_color_that_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(marey__chrome_color(0xff0000ff), "vsync_highlight_color");
    assert_string_equal(marey__chrome_color(0xffff0000), "terrible");
    assert_string_equal(marey__chrome_color(0xff008000), "good");
    assert_string_equal(marey__chrome_color(0xffffa500), "thread_state_iowait");
    assert_string_equal(marey__chrome_color(0xff000000), "black");
    assert_string_equal(marey__chrome_color(0xffffffff), "white");
}

/* ---- Perfetto: tests/cli reads it with the real classes; here its framing and its bytes ---- */

static uint64_t take_varint(const uint8_t **p)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static void perfetto_is_a_row_of_packets(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_BEGIN, STEP);
    word(f, 300, MAREY_KIND_END, STEP);
    struct exported out = export_log(f, "perfetto", NULL);
    const uint8_t *p = (const uint8_t *)out.text, *const end = p + out.len;
    size_t n = 0;
    for (; p < end; n++) {
        assert_int_equal(*p++, 0x0a);
        const uint64_t len = take_varint(&p);
        assert_true(len <= (uint64_t)(end - p));
        p += len;
    }
    assert_int_equal(n, 8); /* clock, root, process; thread, its clock; a name; begin, end */
    static const uint8_t last[] = {0x0a, 13, 0x40, 0xa2, 0x02, 0x50, 2, 0x68, 2, 0x5a, 2, 0x48, 2};
    assert_memory_equal(end - sizeof last, last, 1);
    assert_memory_equal(end - sizeof last + 2, last + 2, sizeof last - 2);
    test_free(out.text);
}

/* ---- errors ---- */

static void perfetto_has_a_text_for_a_payload_that_is_no_number(void **state)
{
    struct fixture *f = *state;
    record_double(f, 10, MAREY_RECORD_MARK, STEP | (uint64_t)MAREY_PAYLOAD_F64 << 20, NAN);
    struct exported out = export_log(f, "perfetto", NULL);
    assert_non_null(memmem(out.text, out.len, "NaN", 3));
    test_free(out.text);
}

static void perfetto_keeps_the_digits_of_large_payloads(void **state)
{
    struct fixture *f = *state;
    put_large_payloads(f);
    struct exported out = export_log(f, "perfetto", NULL);
    const char as_integer[] = "\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f"; /* field 3 */
    assert_non_null(memmem(out.text, out.len, as_integer, sizeof as_integer - 1));
    assert_non_null(memmem(out.text, out.len, "18446744073709551615", 20));
    test_free(out.text);
}

static void a_full_disk_is_an_error(void **state)
{
    struct fixture *f = *state;
    word(f, 10, MAREY_KIND_MARK, STEP);
    flush_words(f, 0);
    const int fd = open("/dev/full", O_WRONLY);
    assert_int_equal(export_to(f, "csv", NULL, fd), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "No space left"));
    close(fd);
}

static void an_unknown_format_names_the_known_ones(void **state)
{
    assert_int_equal(export_to(*state, "flac", NULL, -1), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "perfetto, perfetto-tar, perfetto-gpu, chrome"));
}

/* With and without a payload; the range behind them stands for itself. */
static void put_repeated(struct fixture *f)
{
    log_repeat(&f->log, 5, 12);
    word(f, 5, MAREY_KIND_BEGIN, STEP);
    log_repeat(&f->log, 6, 3);
    record(f, 6, MAREY_RECORD_BEGIN, FORWARD | (uint64_t)MAREY_PAYLOAD_U64 << 20, 77);
    word(f, 7, MAREY_KIND_END, 0);
    word(f, 8, MAREY_KIND_BEGIN, FORWARD);
    word(f, 9, MAREY_KIND_END, 0);
    word(f, 10, MAREY_KIND_END, 0);
}

static void ranges_tell_how_many_calls_they_stand_for(void **state)
{
    struct fixture *f = *state;
    put_repeated(f);
    expect_csv(f, NULL,
               "range,0,,42,42,main,forward,model,1000000006,1,1,77,3\n"
               "range,0,,42,42,main,forward,model,1000000008,1,1,,\n"
               "range,0,,42,42,main,step,,1000000005,5,0,,12\n");
}

static void viewers_are_reported_how_many_calls_a_range_stands_for(void **state)
{
    struct fixture *f = *state;
    put_repeated(f);
    struct exported out = export_log(f, "chrome", NULL);
    expect_in(&out, "\"name\":\"step\",\"args\":{\"calls\":12}}");
    expect_in(&out, "\"args\":{\"payload\":77,\"calls\":3}}");
    test_free(out.text);
    f->log.n_words = 0;
    out = export_log(f, "perfetto", NULL);
    const char *calls = memmem(out.text, out.len, "calls", 5);
    assert_non_null(calls);
    assert_memory_equal(calls + 5, "\x18\x0c", 2); /* an unsigned annotation of 12 */
    test_free(out.text);
}

static void any_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    log_repeat(&f->log, 4, 5);
    record(f, 5, MAREY_RECORD_BEGIN, STEP | (uint64_t)MAREY_PAYLOAD_U64 << 20, 3);
    record(f, 10, MAREY_RECORD_ASYNC_BEGIN, STEP, 1);
    word(f, 20, MAREY_KIND_END, STEP);
    flush_words(f, 0);
    log_put_end(&f->log, "stop");
    static const char *const formats[] = {"perfetto", "chrome", "csv", "perfetto-tar", "kineto"};
    const int fd = open("/dev/null", O_WRONLY);
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++) {
        marey_status status = MAREY_ENOMEM;
        for (uint64_t nth = 1; status == MAREY_ENOMEM && nth < 10000; nth++) {
            marey__alloc_fail_nth(nth);
            status = export_to(f, formats[i], NULL, fd);
        }
        marey__alloc_fail_nth(0);
        assert_int_equal(status, MAREY_OK);
    }
    close(fd);
}

/* ---- numbers ---- */

static void numbers_are_written_as_printf_would(void **state)
{
    (void)state;
    uint64_t value = 1;
    for (int i = 0; i < 200; i++) {
        for (int64_t d = -1; d <= 1; d++) {
            char ours[64], theirs[64];
            const uint64_t n = value + (uint64_t)d;
            *marey__u64_text(ours, n) = '\0';
            snprintf(theirs, sizeof theirs, "%llu", (unsigned long long)n);
            assert_string_equal(ours, theirs);
            *marey__put_us(ours, n) = '\0';
            snprintf(theirs, sizeof theirs, "%llu.%03llu", (unsigned long long)n / 1000,
                     (unsigned long long)n % 1000);
            assert_string_equal(ours, theirs);
        }
        value = i < 19 ? value * 10 : value * 6364136223846793005u + 1442695040888963407u;
    }
}

static void doubles_read_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-3, "-3"},
                 {0.1, "0.1"},
                 {1e300, "1e+300"},
                 {1.0 / 3, "0.3333333333333333"},
                 {1e-7, "1e-07"}};
    char text[64];
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        *marey__put_f64(text, cases[i].value) = '\0';
        assert_string_equal(text, cases[i].text);
    }
    *marey__put_f64(text, 1.0 / 0.0) = '\0';
    assert_string_equal(text, "null");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ranges_nest_and_have_depths),
        TEST(orphan_ends_are_left_out),
        TEST(an_outer_end_closes_what_is_inside),
        TEST(a_range_may_end_at_another_site_of_its_name),
        TEST(missing_words_cut_ranges_off_without_a_duration),
        TEST(counted_losses_are_reported),
        TEST(ranges_left_open_have_no_duration),
        TEST(async_ranges_find_their_ends),
        TEST(a_filter_keeps_names_and_depths),
        TEST(iterations_have_lines_of_their_own),
        TEST(chrome_has_a_thread_of_iterations),
        TEST(perfetto_has_a_track_of_iterations),
        TEST(overlapping_ranges_are_whole_where_that_is_possible),
        TEST(overlapping_ranges_are_split_where_they_must_nest),
        TEST(speedscope_stays_balanced_when_ranges_overlap),
        TEST(odd_names_are_quoted_and_made_utf8),
        TEST(an_unknown_site_has_no_name),
        TEST(endless_begins_are_bounded),
        TEST(chrome_times_are_exact_to_the_nanosecond),
        TEST(chrome_has_the_outer_of_equal_ranges_first),
        TEST(chrome_has_payloads_counters_and_open_ranges),
        TEST(chrome_keeps_the_digits_of_large_payloads),
        TEST(chrome_has_texts_for_what_json_has_no_numbers),
        cmocka_unit_test(chrome_takes_the_nearest_color_that_has_a_name),
        TEST(perfetto_is_a_row_of_packets),
        TEST(perfetto_keeps_the_digits_of_large_payloads),
        TEST(perfetto_has_a_text_for_a_payload_that_is_no_number),
        TEST(a_full_disk_is_an_error),
        TEST(an_unknown_format_names_the_known_ones),
        TEST(ranges_tell_how_many_calls_they_stand_for),
        TEST(viewers_are_reported_how_many_calls_a_range_stands_for),
        TEST(any_allocation_may_fail),
        cmocka_unit_test(numbers_are_written_as_printf_would),
        cmocka_unit_test(doubles_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
