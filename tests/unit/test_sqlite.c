/*
 * The export to SQLite, from logs built by hand and read back with the library. A tick is a
 * nanosecond, and the first block begins at tick 0 unless a test says otherwise. Answers to queries
 * are compared as text: columns between |, rows in lines, NULL is -.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/export/sqlite/internal.h"

enum { OUTER = 1, INNER, LEAF };

/* ---- a log and its database ---- */

struct fixture {
    struct log_maker log;
    uint32_t sequence[2]; /* by lane */
    char path[64];        /* of the database */
    char log_path[64];    /* once it is written */
    sqlite3 *db;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    log_put_preamble(&f->log);
    log_put_lane(&f->log, 1, 101, "worker");
    strcpy(f->path, "/tmp/marey-test-XXXXXX");
    close(mkstemp(f->path));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    sqlite3_close(f->db);
    unlink(f->path);
    unlink(f->log_path);
    log_maker_fini(&f->log);
    test_free(f);
    return 0;
}

/* Words so far become a block of `lane`. */
static void flush_words(struct fixture *f, uint32_t lane)
{
    log_put_words(&f->log, lane, f->sequence[lane]++);
}

static marey_status export_to(struct fixture *f, const char *filter, int fd)
{
    const struct marey_export_options options = {.filter = filter};
    marey_recording *recording = NULL;
    if (f->log_path[0] == '\0')
        log_write(f->log.bytes.data, f->log.bytes.len, f->log_path);
    marey_status status = marey_recording_open(f->log_path, &recording);
    if (status == MAREY_OK)
        status = marey_export(&recording, 1, "sqlite", &options, fd);
    marey_recording_close(recording);
    return status;
}

static void export_log(struct fixture *f, const char *filter)
{
    if (f->log.n_words > 0)
        flush_words(f, 0);
    log_put_end(&f->log, "stop");
    const int fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(export_to(f, filter, fd), MAREY_OK);
    close(fd);
    assert_int_equal(sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
}

static void put_row(struct marey__buf *buf, sqlite3_stmt *query)
{
    for (int i = 0; i < sqlite3_column_count(query); i++) {
        const char *text = (const char *)sqlite3_column_text(query, i);
        marey__buf_printf(buf, "%s%s", i > 0 ? "|" : "", text != NULL ? text : "-");
    }
    marey__buf_puts(buf, "\n");
}

static void expect(const struct fixture *f, const char *sql, const char *rows)
{
    struct marey__buf buf = {0};
    sqlite3_stmt *query = NULL;
    if (sqlite3_prepare_v2(f->db, sql, -1, &query, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(f->db));
    while (sqlite3_step(query) == SQLITE_ROW)
        put_row(&buf, query);
    sqlite3_finalize(query);
    marey__buf_put(&buf, "", 1);
    assert_string_equal(buf.data, rows);
    marey__buf_fini(&buf);
}

#define RANGES "SELECT id, parent, depth, name, start_ns, duration_ns, self_ns FROM ranges"

/* ---- ranges ---- */

static void children_know_their_parents(void **state)
{
    struct fixture *f = *state;
    f->log.base_tick = 1000;
    log_begin(&f->log, 1000, OUTER);
    log_begin(&f->log, 1010, INNER);
    log_begin(&f->log, 1020, LEAF);
    log_end(&f->log, 1025, LEAF);
    log_end(&f->log, 1040, INNER);
    log_begin(&f->log, 1050, LEAF);
    log_end(&f->log, 1060, LEAF);
    log_end(&f->log, 1100, OUTER);
    export_log(f, NULL);
    expect(f, RANGES,
           "1|-|0|outer|0|100|60\n"
           "2|1|1|inner|10|30|25\n"
           "3|2|2|leaf|20|5|5\n"
           "4|1|1|leaf|50|10|10\n");
    expect(f, "SELECT caller, name, count, total_ns FROM calls",
           "-|outer|1|100\nouter|inner|1|30\nouter|leaf|1|10\ninner|leaf|1|5\n");
    expect(f, "SELECT value FROM meta WHERE key IN ('origin_ns', 'clock') ORDER BY key",
           "monotonic\n1000\n");
}

static void recursion_counts_the_outermost_once(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, OUTER);
    log_begin(&f->log, 10, INNER);
    log_begin(&f->log, 20, OUTER);
    log_end(&f->log, 30, OUTER);
    log_end(&f->log, 40, INNER);
    log_end(&f->log, 50, OUTER);
    export_log(f, NULL);
    expect(f, "SELECT id, recursion FROM range", "1|0\n2|0\n3|1\n");
    expect(f, "SELECT name, count, total_ns, self_ns, mean_ns, min_ns, max_ns FROM summary_by_name",
           "outer|2|50|30|30|10|50\ninner|1|30|20|30|30|30\n");
}

static void calls_that_a_range_stands_for_are_counted(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, OUTER);
    log_repeat(&f->log, 10, 7);
    log_begin(&f->log, 10, INNER);
    log_end(&f->log, 80, INNER);
    log_begin(&f->log, 80, INNER);
    log_end(&f->log, 95, INNER);
    log_end(&f->log, 100, OUTER);
    export_log(f, NULL);
    expect(f, "SELECT * FROM repeat", "2|7\n");
    expect(f, "SELECT name, count, total_ns, self_ns, mean_ns, min_ns, max_ns FROM summary_by_name",
           "outer|1|100|15|100|100|100\ninner|8|85|85|11|10|15\n");
    expect(f, "SELECT caller, name, count FROM calls", "-|outer|1\nouter|inner|8\n");
}

/* Names on the stack are counted for one lane at a time. */
static void threads_do_not_count_each_others_ranges(void **state)
{
    struct fixture *f = *state;
    for (uint32_t lane = 0; lane < 2; lane++) {
        log_begin(&f->log, 10 + lane, OUTER);
        flush_words(f, lane);
    }
    for (uint32_t lane = 0; lane < 2; lane++) {
        log_begin(&f->log, 20 + lane, INNER);
        log_begin(&f->log, 30 + lane, OUTER);
        log_end(&f->log, 40, OUTER);
        log_end(&f->log, 50, INNER);
        log_end(&f->log, 60, OUTER);
        flush_words(f, lane);
    }
    export_log(f, NULL);
    expect(f, "SELECT thread, name, parent, recursion FROM ranges ORDER BY thread, id",
           "1|outer|-|0\n1|inner|1|0\n1|outer|5|1\n2|outer|-|0\n2|inner|2|0\n2|outer|3|1\n");
    expect(f, "SELECT thread_name, name, total_ns FROM summary_by_thread",
           "main|outer|50\nmain|inner|30\nworker|outer|49\nworker|inner|29\n");
}

/* Rows that end long after the window over ids has moved on. */
static void a_range_around_many_comes_in_its_place(void **state)
{
    struct fixture *f = *state;
    enum { N = 20000 };
    uint64_t tick = 0;
    log_begin(&f->log, tick++, OUTER);
    log_begin(&f->log, tick++, INNER);
    for (int i = 0; i < N; i++) {
        log_begin(&f->log, tick++, LEAF);
        log_end(&f->log, tick++, LEAF);
        if (f->log.n_words > 3000)
            flush_words(f, 0);
    }
    log_end(&f->log, tick++, INNER);
    log_end(&f->log, tick++, OUTER);
    export_log(f, NULL);
    expect(f,
           "SELECT count(*), min(id), max(id), min(parent), max(parent) FROM range WHERE depth = 2",
           "20000|3|20002|2|2\n");
    expect(f, RANGES " WHERE depth < 2", "1|-|0|outer|0|40003|2\n2|1|1|inner|1|40001|20001\n");
    expect(f, "PRAGMA integrity_check", "ok\n");
}

static void a_deep_stack_unwinds_into_order(void **state)
{
    struct fixture *f = *state;
    enum { N = 30000 };
    for (int i = 0; i < 2 * N; i++) {
        log_word(&f->log, (uint64_t)i, i < N ? MAREY_KIND_BEGIN : MAREY_KIND_END, LEAF);
        if (f->log.n_words > 3000)
            flush_words(f, 0);
    }
    export_log(f, NULL);
    expect(f,
           "SELECT count(*), sum(parent = id - 1), sum(depth = id - 1), sum(recursion = depth),"
           " sum(self_ns) FROM range",
           "30000|29999|30000|30000|59999\n");
    expect(f, "SELECT count, total_ns FROM summary_by_name", "30000|59999\n");
    expect(f, "PRAGMA integrity_check", "ok\n");
}

/* ---- missing data ---- */

static void a_loss_cuts_ranges_off(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 10, OUTER);
    log_begin(&f->log, 20, INNER);
    flush_words(f, 0);
    f->sequence[0]++; /* a block that nobody will see */
    log_begin(&f->log, 50, LEAF);
    log_end(&f->log, 60, LEAF);
    const uint64_t gap[] = {7, 10};
    log_record(&f->log, 70, MAREY_RECORD_GAP, gap, 2);
    log_begin(&f->log, 80, LEAF);
    export_log(f, NULL);
    expect(f, RANGES,
           "1|-|0|outer|10|-|-\n2|1|1|inner|20|-|-\n4|-|0|leaf|50|10|10\n6|-|0|leaf|80|-|-\n");
    expect(f, "SELECT id, thread_name, at_ns, events FROM losses", "3|main|50|-\n5|main|70|7\n");
    expect(f, "SELECT id, name FROM open_ranges", "6|leaf\n");
    expect(f, "SELECT name, count FROM summary_by_name", "leaf|1\n");
}

static void a_filter_changes_no_self_time(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, OUTER);
    log_begin(&f->log, 10, INNER);
    log_begin(&f->log, 20, LEAF);
    log_word(&f->log, 22, MAREY_KIND_MARK, LEAF);
    log_word(&f->log, 23, MAREY_KIND_MARK, INNER);
    log_end(&f->log, 25, LEAF);
    log_end(&f->log, 40, INNER);
    log_end(&f->log, 100, OUTER);
    log_begin(&f->log, 110, INNER);
    export_log(f, "[ol]*");
    expect(f, RANGES, "1|-|0|outer|0|100|70\n2|1|2|leaf|20|5|5\n");
    expect(f, "SELECT name, range FROM marks", "leaf|2\n");
    expect(f, "SELECT count(*) FROM site", "2\n");
    expect(f, "SELECT value FROM meta WHERE key = 'filter'", "[ol]*\n");
}

static void an_empty_recording_is_an_empty_database(void **state)
{
    struct fixture *f = *state;
    export_log(f, NULL);
    expect(f, "SELECT count(*) FROM range", "0\n");
    expect(f, "SELECT * FROM summary_by_name", "");
    expect(f, "SELECT first_ns, events, \"end\" FROM process", "-|0|stop\n");
}

/* ---- values ---- */

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void put_mark(struct fixture *f, uint64_t tick, enum marey_payload_type type, uint64_t len,
                     uint64_t bits)
{
    const uint64_t words[] = {LEAF | (uint64_t)type << 20 | len << 32, bits};
    log_record(&f->log, tick, MAREY_RECORD_MARK, words, 2);
}

static void payloads_keep_their_types(void **state)
{
    struct fixture *f = *state;
    uint64_t text = 0;
    memcpy(&text, "a\0b\xff", 4);
    put_mark(f, 1, MAREY_PAYLOAD_I64, 0, (uint64_t)-7);
    put_mark(f, 2, MAREY_PAYLOAD_U64, 0, UINT64_MAX);
    put_mark(f, 3, MAREY_PAYLOAD_F64, 0, bits_of(0.5));
    put_mark(f, 4, MAREY_PAYLOAD_F64, 0, bits_of(NAN));
    put_mark(f, 5, MAREY_PAYLOAD_TEXT, 1, text);
    put_mark(f, 6, MAREY_PAYLOAD_TEXT, 3, text);
    put_mark(f, 7, MAREY_PAYLOAD_TEXT, 4, text);
    const uint64_t begin[] = {OUTER | (uint64_t)MAREY_PAYLOAD_TEXT << 20 | UINT64_C(4) << 32, text};
    log_record(&f->log, 8, MAREY_RECORD_BEGIN, begin, 2);
    log_end(&f->log, 9, OUTER);
    export_log(f, NULL);
    expect(f,
           "SELECT typeof(payload), CASE typeof(payload) WHEN 'blob' THEN hex(payload) ELSE "
           "payload END"
           " FROM mark",
           "integer|-7\ntext|18446744073709551615\nreal|0.5\nnull|-\ntext|a\nblob|610062\nblob|"
           "610062FF\n");
    expect(f, "SELECT typeof(payload), hex(payload) FROM range", "blob|610062FF\n");
}

static void an_overlapping_range_has_one_row(void **state)
{
    struct fixture *f = *state;
    log_begin(&f->log, 0, OUTER);
    log_begin(&f->log, 10, INNER);
    log_begin(&f->log, 30, LEAF);
    log_end_of(&f->log, 60, INNER); /* while leaf goes on */
    log_end(&f->log, 90, LEAF);
    log_end(&f->log, 100, OUTER);
    export_log(f, NULL);
    expect(f, "SELECT name, depth, parent, start_ns, duration_ns, self_ns FROM ranges ORDER BY id",
           "outer|0|-|0|100|20\ninner|1|1|10|50|20\nleaf|1|1|30|60|60\n");
}

static void iterations_and_what_ran_in_them_have_rows(void **state)
{
    struct fixture *f = *state;
    log_epoch(&f->log, 0, 0, true);
    log_begin(&f->log, 10, OUTER);
    log_end(&f->log, 30, OUTER);
    log_iteration(&f->log, 100, 0, true, 0);
    log_begin(&f->log, 150, OUTER);
    log_end(&f->log, 170, OUTER);
    log_begin(&f->log, 190, OUTER); /* in three iterations */
    log_iteration(&f->log, 200, 1, false, 4);
    log_phase(&f->log, 200, LEAF);
    log_iteration(&f->log, 300, 2, false, 4);
    log_end(&f->log, 350, OUTER);
    log_iteration(&f->log, 400, 3, false, 4);
    log_epoch(&f->log, 400, 0, false);
    flush_words(f, 0);
    log_begin(&f->log, 205, INNER); /* on the other thread */
    log_end(&f->log, 215, INNER);
    flush_words(f, 1);
    export_log(f, NULL);
    expect(f, "SELECT process, number, warmup, start_ns, duration_ns, samples FROM iteration",
           "1|0|1|0|100|-\n1|1|0|100|100|4.0\n1|2|0|200|100|4.0\n1|3|0|300|100|4.0\n");
    expect(f, "SELECT process, number, iterations, start_ns, duration_ns, samples FROM epoch",
           "1|0|4|0|400|12.0\n");
    expect(f, "SELECT name, iterations, start_ns, duration_ns FROM phases", "leaf|2|200|-\n");
    expect(f, "SELECT number, name, ranges, ns, iteration_ns FROM per_iteration",
           "0|outer|1|20|100\n1|outer|2|30|100\n2|outer|1|100|100\n2|inner|1|10|100\n3|outer|1|50|"
           "100\n");
}

static void counters_and_async_ranges_have_rows(void **state)
{
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t words[] = {LEAF, bits_of(i < 3 ? (double)i : NAN)};
        log_record(&f->log, i, MAREY_RECORD_COUNTER, words, 2);
    }
    const uint64_t first[] = {INNER, 77}, second[] = {OUTER, 78};
    log_record(&f->log, 10, MAREY_RECORD_ASYNC_BEGIN, first, 2);
    log_record(&f->log, 20, MAREY_RECORD_ASYNC_BEGIN, second, 2);
    flush_words(f, 0);
    log_record(&f->log, 35, MAREY_RECORD_ASYNC_END, first, 2);
    flush_words(f, 1);
    export_log(f, NULL);
    expect(f, "SELECT name, count, min, mean, max, last FROM summary_of_counters",
           "leaf|4|0.0|1.0|2.0|-\n");
    expect(f, "SELECT name, thread, end_thread, start_ns, duration_ns FROM async_ranges ORDER BY start_ns",
           "inner|1|2|10|25\nouter|1|-|20|-\n");
    expect(f, "SELECT name, count, total_ns FROM summary_of_async", "inner|1|25\n");
}

static void names_are_text_and_their_bytes_are_kept(void **state)
{
    struct fixture *f = *state;
    log_put_site(&f->log, 4, "odd \xff");
    log_put_site(&f->log, 5, "odd \xfe");
    for (uint32_t site = 3; site <= 5; site++)
        log_word(&f->log, site, MAREY_KIND_MARK, site);
    log_word(&f->log, 9, MAREY_KIND_MARK, 0);
    export_log(f, NULL);
    expect(
        f, "SELECT id, name, hex(name_bytes), file, line FROM site",
        "1|leaf||a.c|7\n2|odd \xef\xbf\xbd|6F646420FF|a.c|7\n3|odd \xef\xbf\xbd|6F646420FE|a.c|7\n"
        "4|(unnamed)|||0\n");
    expect(f, "SELECT count FROM summary_of_marks", "1\n1\n1\n1\n");
}

/* ---- files ---- */

static void put_one_range(struct fixture *f)
{
    log_begin(&f->log, 0, OUTER);
    log_end(&f->log, 5, OUTER);
    flush_words(f, 0);
    log_put_end(&f->log, "stop");
}

/* Behind `lead` bytes in a file of memory, which has no path; opened with `flags` besides. */
static size_t export_behind(struct fixture *f, const char *lead, int flags, char *out, size_t cap)
{
    const int memory = memfd_create("export", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    const int fd = open(path, O_WRONLY | flags);
    assert_int_equal(write(fd, lead, strlen(lead)), (ssize_t)strlen(lead));
    assert_int_equal(export_to(f, NULL, fd), MAREY_OK);
    if (flags == 0)
        assert_int_equal(lseek(fd, 0, SEEK_CUR), lseek(memory, 0, SEEK_END));
    const ssize_t n = pread(memory, out, cap, (off_t)strlen(lead));
    close(fd);
    close(memory);
    return (size_t)n;
}

static void any_file_gets_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    enum { CAP = 1 << 20 };
    char *first = test_calloc(2, CAP), *other = first + CAP;
    put_one_range(f);
    const size_t len = export_behind(f, "", 0, first, CAP);
    assert_true(len > 4096 && len < CAP);
    assert_memory_equal(first, "SQLite format 3", 16);
    assert_int_equal(export_behind(f, "in the middle", 0, other, CAP), len);
    assert_memory_equal(first, other, len);
    assert_int_equal(export_behind(f, "", O_APPEND, other, CAP), len);
    assert_memory_equal(first, other, len);
    test_free(first);
}

/* SQLite would take what is there for a database, and refuse it. */
static void a_file_with_something_in_it_is_written_over(void **state)
{
    struct fixture *f = *state;
    char start[16] = "";
    put_one_range(f);
    const int fd = open(f->path, O_RDWR);
    assert_int_equal(write(fd, "no database", 11), 11);
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(export_to(f, NULL, fd), MAREY_OK);
    assert_int_equal(pread(fd, start, sizeof start, 0), sizeof start);
    assert_string_equal(start, "SQLite format 3");
    close(fd);
}

static void a_device_without_room_is_an_error(void **state)
{
    struct fixture *f = *state;
    put_one_range(f);
    const int fd = open("/dev/full", O_WRONLY);
    assert_int_equal(export_to(f, NULL, fd), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "No space left"));
    close(fd);
}

/* SQLite would play it back into the new database. */
static void a_journal_of_an_earlier_database_is_refused(void **state)
{
    struct fixture *f = *state;
    char journal[80];
    put_one_range(f);
    snprintf(journal, sizeof journal, "%s-journal", f->path);
    const int left = open(journal, O_WRONLY | O_CREAT, 0600), fd = open(f->path, O_WRONLY);
    assert_int_equal(write(left, "x", 1), 1);
    assert_int_equal(export_to(f, NULL, fd), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), journal));
    unlink(journal);
    assert_int_equal(export_to(f, NULL, fd), MAREY_OK);
    close(left);
    close(fd);
}

/* ---- GPUs ---- */

enum { GEMM = 4, NOTE, GROUP, FLOW };

/* outer { inner { launches 7; outer { launches 8 } } } and what these are, on two streams */
static void put_launches(struct fixture *f)
{
    const struct marey_communication reduce = {.group = GROUP,
                                               .what = MAREY_COLLECTIVE_ALL_REDUCE,
                                               .bytes_in = 64,
                                               .sequence = UINT64_MAX,
                                               .group_size = 2,
                                               .peer = -1};
    struct log_maker *log = &f->log;
    log_put_site_of(log, GEMM, "gemm", "kernel", "");
    log_put_site_of(log, NOTE, "note", "gpu_user_annotation", "");
    log_put_site_of(log, GROUP, "world", "", "[0, 1]");
    log_put_site_of(log, FLOW, "fwdbwd", "", "");
    log_put_stream(log, 2, 0, 7, "");
    log_put_stream(log, 3, 1, 9, "nine");
    log_begin(log, 10, OUTER);
    log_begin(log, 20, INNER);
    log_launch(log, 20, 7);
    log_flow(log, 20, FLOW, 3, MAREY_FLOW_BEGIN);
    log_arguments(log, 20, "{\"a\": 1}");
    log_begin(log, 30, OUTER);
    log_launch(log, 30, 8);
    log_communication(log, 30, &reduce);
    log_end(log, 40, OUTER);
    log_end(log, 50, INNER);
    log_end(log, 60, OUTER);
    flush_words(f, 0);
    log_work(log, 45, GEMM, MAREY_WORK_KERNEL, 100, 7, 0);
    log_arguments(log, 45, "{\"grid\": 2}");
    log_flow(log, 45, FLOW, 3, MAREY_FLOW_END);
    log_work(log, 145, GEMM, MAREY_WORK_COPY, 10, 8, 512);
    log_put_words(log, 2, 0);
    log_work(log, 50, NOTE, MAREY_WORK_ANNOTATION, 500, 7, 0);
    log_work(log, 50, GEMM, MAREY_WORK_KERNEL, 1, 9, 0);
    log_put_words(log, 3, 0);
}

static void streams_and_their_work_have_rows(void **state)
{
    struct fixture *f = *state;
    put_launches(f);
    export_log(f, NULL);
    expect(f, "SELECT count(*) FROM thread", "2\n");
    expect(f, "SELECT device, number, name FROM stream ORDER BY id", "0|7|\n1|9|nine\n");
    expect(f,
           "SELECT kind, name, device, stream_number, start_ns, duration_ns, correlation, bytes"
           " FROM gpu_works ORDER BY start_ns, device, kind",
           "kernel|gemm|0|7|45|100|7|-\n"
           "annotation|note|1|9|50|500|7|-\n"
           "kernel|gemm|1|9|50|1|9|-\n"
           "copy|gemm|0|7|145|10|8|512\n");
    expect(f, "SELECT name, kind, count, total_ns, streams, devices FROM summary_of_gpu",
           "gemm|kernel|2|101|2|2\n"
           "gemm|copy|1|10|1|1\n"
           "note|annotation|1|500|1|1\n");
    expect(f, "SELECT a.json FROM arguments a JOIN gpu_work w ON w.id = a.event", "{\"grid\": 2}\n");
    expect(f, "SELECT a.json FROM arguments a JOIN ranges r ON r.id = a.event AND r.name = 'inner'",
           "{\"a\": 1}\n");
}

static void ranges_know_what_they_launched(void **state)
{
    struct fixture *f = *state;
    put_launches(f);
    export_log(f, NULL);
    expect(f,
           "SELECT r.name, l.correlation, l.duration_ns, l.latency_ns FROM launches l"
           " JOIN ranges r ON r.id = l.range ORDER BY l.correlation",
           "inner|7|100|25\nouter|8|10|115\n");
    expect(f, "SELECT * FROM summary_of_launches ORDER BY name", "inner|2|110|100\nouter|2|110|10\n");
    expect(f,
           "SELECT r.name, what, group_name, group_ranks, group_size, bytes_in, bytes_out,"
           " sequence, peer FROM communication c JOIN ranges r ON r.id = c.event",
           "outer|all_reduce|world|[0, 1]|2|64|-|-|-\n");
    expect(f,
           "SELECT f.name, f.number, r.name, f.from_ns, w.name, f.to_ns FROM flows f"
           " JOIN ranges r ON r.id = f.from_event JOIN gpu_works w ON w.id = f.to_event",
           "fwdbwd|3|inner|20|gemm|45\n");
}

static void any_allocation_of_ours_may_fail(void **state)
{
    struct fixture *f = *state;
    const uint64_t begin[] = {OUTER | (uint64_t)MAREY_PAYLOAD_U64 << 20, 3}, async[] = {INNER, 9};
    log_record(&f->log, 0, MAREY_RECORD_BEGIN, begin, 2);
    log_record(&f->log, 1, MAREY_RECORD_ASYNC_BEGIN, async, 2);
    log_repeat(&f->log, 1, 5);
    put_launches(f);
    put_one_range(f);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status == MAREY_ENOMEM && nth < 10000; nth++) {
        const int fd = open(f->path, O_WRONLY | O_TRUNC);
        marey__alloc_fail_nth(nth);
        status = export_to(f, NULL, fd);
        marey__alloc_fail_nth(0);
        close(fd);
    }
    assert_int_equal(status, MAREY_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(children_know_their_parents),
        TEST(recursion_counts_the_outermost_once),
        TEST(calls_that_a_range_stands_for_are_counted),
        TEST(threads_do_not_count_each_others_ranges),
        TEST(a_range_around_many_comes_in_its_place),
        TEST(a_deep_stack_unwinds_into_order),
        TEST(a_loss_cuts_ranges_off),
        TEST(a_filter_changes_no_self_time),
        TEST(an_empty_recording_is_an_empty_database),
        TEST(payloads_keep_their_types),
        TEST(an_overlapping_range_has_one_row),
        TEST(iterations_and_what_ran_in_them_have_rows),
        TEST(counters_and_async_ranges_have_rows),
        TEST(names_are_text_and_their_bytes_are_kept),
        TEST(any_file_gets_the_same_bytes),
        TEST(a_file_with_something_in_it_is_written_over),
        TEST(a_device_without_room_is_an_error),
        TEST(a_journal_of_an_earlier_database_is_refused),
        TEST(streams_and_their_work_have_rows),
        TEST(ranges_know_what_they_launched),
        TEST(any_allocation_of_ours_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
