/*
 * The archive of Perfetto traces: headers as tar(1) wants them, sizes of any magnitude, the same
 * bytes into a file, a pipe and behind what is there already. tests/browser opens one in the UI.
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
#include "present/export/perfetto/tar_internal.h"

#define BLOCK MAREY__TAR_BLOCK

/* ---- recordings ---- */

/* What makes a trace larger than the buffers in front of its file. */
enum { LONG = 200000 };

/* One rank on `host`, with `n` ranges of 3 ns. Its wall clock is 1000 s ahead of its CLOCK_MONOTONIC. */
static marey_recording *make_ranges(const char *rank, const char *pid, const char *host, uint64_t n)
{
    struct log_maker log = {0};
    const char *const about[] = {MAREY__KEY_PID,
                                 pid,
                                 MAREY__KEY_HOST,
                                 host,
                                 MAREY__KEY_RANK,
                                 rank,
                                 MAREY__KEY_CLOCK,
                                 "monotonic",
                                 MAREY__KEY_COMMAND,
                                 "a",
                                 NULL};
    marey_recording *recording = NULL;
    log_put_pairs(&log, MAREY__BLOCK_LOG, about);
    log_put_moment(&log, 0, 500);
    log_put_moment(&log, 1u << 30, 500 + (1u << 30));
    log_put_site(&log, 1, "step");
    log_put_lane(&log, 0, 7, "main");
    log_put_ranges(&log, n);
    log_put_end(&log, "stop");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    return recording;
}

static marey_recording *make_rank(const char *rank, const char *pid, const char *host)
{
    return make_ranges(rank, pid, host, 1);
}

struct archive {
    char *bytes;
    size_t len;
};

static struct archive take_file(int fd, off_t from)
{
    const off_t end = lseek(fd, 0, SEEK_END);
    struct archive archive = {.len = (size_t)(end - from)};
    archive.bytes = test_calloc(archive.len + 1, 1);
    assert_int_equal(pread(fd, archive.bytes, archive.len, from), (ssize_t)archive.len);
    close(fd);
    return archive;
}

static struct archive export_file(marey_recording *const *recordings, size_t n, const char *format)
{
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    assert_int_equal(marey_export(recordings, n, format, NULL, fd), MAREY_OK);
    return take_file(fd, 0);
}

/* ---- what is in an archive ---- */

struct entry {
    const char *name, *bytes;
    size_t len;
};

static void check_sum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    assert_int_equal(strtoul((const char *)header + 148, NULL, 8), sum);
}

/* The entry at `*at`, which moves behind it; false at the two empty blocks that end an archive. */
static bool next_entry(const struct archive *archive, size_t *at, struct entry *entry)
{
    static const char empty[2 * BLOCK];
    const char *header = archive->bytes + *at;
    assert_true(archive->len - *at >= 2 * BLOCK);
    if (memcmp(header, empty, sizeof empty) == 0)
        return false;
    assert_memory_equal(header + 257, "ustar\00000", 8);
    check_sum((const uint8_t *)header);
    *entry = (struct entry){header, header + BLOCK, strtoul(header + 124, NULL, 8)};
    *at += BLOCK + (entry->len + BLOCK - 1) / BLOCK * BLOCK;
    assert_true(*at <= archive->len);
    return true;
}

static struct entry nth_entry(const struct archive *archive, size_t n)
{
    struct entry entry = {0};
    size_t at = 0;
    for (size_t i = 0; i <= n; i++)
        assert_true(next_entry(archive, &at, &entry));
    return entry;
}

static void each_process_has_a_whole_trace(void **state)
{
    (void)state;
    marey_recording *rank = make_rank("0", "42", "box");
    struct archive archive = export_file(&rank, 1, "perfetto-tar");
    struct archive alone = export_file(&rank, 1, "perfetto");
    assert_string_equal(nth_entry(&archive, 0).name, "perfetto_manifest.json");
    const struct entry trace = nth_entry(&archive, 1);
    assert_string_equal(trace.name, "0000-rank-0-box-42.pftrace");
    assert_int_equal(trace.len, alone.len);
    assert_memory_equal(trace.bytes, alone.bytes, alone.len);
    test_free(alone.bytes);
    test_free(archive.bytes);
    log_close(rank);
}

static void expect_manifest(const struct archive *archive, const char *text)
{
    const struct entry manifest = nth_entry(archive, 0);
    assert_int_equal(manifest.len, strlen(text));
    assert_memory_equal(manifest.bytes, text, manifest.len);
}

static void ranks_of_one_machine_are_on_its_clock(void **state)
{
    (void)state;
    marey_recording *ranks[] = {make_rank("0", "42", "box"), make_rank("1", "43", "box")};
    struct archive archive = export_file(ranks, 2, "perfetto-tar");
    expect_manifest(
        &archive,
        "{\"perfetto_manifest\":{\"version\":1,\n"
        "\"trace_time\":{\"clock\":\"MONOTONIC\",\"file\":\"0000-rank-0-box-42.pftrace\"},\n"
        "\"files\":[\n"
        "{\"path\":\"0000-rank-0-box-42.pftrace\",\"machine\":{\"name\":\"box\"}},\n"
        "{\"path\":\"0001-rank-1-box-43.pftrace\",\"machine\":{\"name\":\"box\"}}]}}\n");
    test_free(archive.bytes);
    log_close(ranks[0]);
    log_close(ranks[1]);
}

/* A host's name may hold what a file's name should not. */
static void ranks_of_two_machines_are_on_the_wall_clock(void **state)
{
    (void)state;
    marey_recording *ranks[] = {make_rank("0", "42", "a/\"b"), make_rank("1", "42", "c")};
    struct archive archive = export_file(ranks, 2, "perfetto-tar");
    expect_manifest(
        &archive,
        "{\"perfetto_manifest\":{\"version\":1,\n"
        "\"trace_time\":{\"clock\":\"REALTIME\",\"file\":\"0000-rank-0-a--b-42.pftrace\"},\n"
        "\"files\":[\n"
        "{\"path\":\"0000-rank-0-a--b-42.pftrace\",\"machine\":{\"name\":\"a/\\\"b\"}},\n"
        "{\"path\":\"0001-rank-1-c-42.pftrace\",\"machine\":{\"name\":\"c\"}}]}}\n");
    assert_string_equal(nth_entry(&archive, 2).name, "0001-rank-1-c-42.pftrace");
    test_free(archive.bytes);
    log_close(ranks[0]);
    log_close(ranks[1]);
}

/* ---- where it goes ---- */

static void a_pipe_gets_the_same_bytes(void **state)
{
    (void)state;
    marey_recording *ranks[] = {make_rank("0", "42", "box"), make_rank("1", "43", "box")};
    struct archive expected = export_file(ranks, 2, "perfetto-tar");
    int ends[2];
    char piped[1 << 16];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(marey_export(ranks, 2, "perfetto-tar", NULL, ends[1]), MAREY_OK);
    close(ends[1]);
    assert_int_equal(read(ends[0], piped, sizeof piped), (ssize_t)expected.len);
    assert_memory_equal(piped, expected.bytes, expected.len);
    close(ends[0]);
    test_free(expected.bytes);
    log_close(ranks[0]);
    log_close(ranks[1]);
}

/* Long enough for headers to have left the buffer when their sizes are known. */
static void long_traces_are_whole_in_a_file(void **state)
{
    (void)state;
    marey_recording *ranks[] = {make_ranges("0", "42", "box", LONG), make_rank("1", "43", "box")};
    struct archive archive = export_file(ranks, 2, "perfetto-tar");
    struct archive alone = export_file(ranks, 1, "perfetto");
    const struct entry trace = nth_entry(&archive, 1);
    assert_true(alone.len > 4 * MAREY__OUT_BYTES);
    assert_int_equal(trace.len, alone.len);
    assert_memory_equal(trace.bytes, alone.bytes, alone.len);
    assert_string_equal(nth_entry(&archive, 2).name, "0001-rank-1-box-43.pftrace");

    static const int flags[] = {0, O_APPEND};
    for (size_t i = 0; i < MAREY__COUNT_OF(flags); i++) {
        const int fd = memfd_create("archive", MFD_CLOEXEC);
        assert_int_equal(write(fd, "before", 6), 6);
        assert_int_equal(fcntl(fd, F_SETFL, flags[i]), 0);
        assert_int_equal(marey_export(ranks, 2, "perfetto-tar", NULL, fd), MAREY_OK);
        struct archive behind = take_file(fd, 6);
        assert_int_equal(behind.len, archive.len);
        assert_memory_equal(behind.bytes, archive.bytes, archive.len);
        test_free(behind.bytes);
    }
    test_free(alone.bytes);
    test_free(archive.bytes);
    log_close(ranks[0]);
    log_close(ranks[1]);
}

/* As if so much had been written: nothing but the count tells. */
static void expect_size(uint64_t size, const char field[12])
{
    struct marey__out out;
    struct marey__tar tar;
    char header[BLOCK];
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    assert_int_equal(marey__out_init(&out, fd), MAREY_OK);
    assert_int_equal(marey__tar_init(&tar, &out), MAREY_OK);
    assert_int_equal(marey__tar_open(&tar, "large", 1), MAREY_OK);
    marey__out_drain(&out);
    out.n_flushed += size;
    assert_int_equal(marey__tar_close(&tar), MAREY_OK);
    assert_int_equal(pread(fd, header, sizeof header, 0), BLOCK);
    assert_memory_equal(header + 124, field, 12);
    check_sum((const uint8_t *)header);
    marey__tar_fini(&tar);
    marey__out_fini(&out);
    close(fd);
}

static void sizes_past_eight_gigabytes_are_reported(void **state)
{
    (void)state;
    expect_size(UINT64_C(511), "00000000777\0");
    expect_size((UINT64_C(1) << 33) - 1, "77777777777\0");
    expect_size(UINT64_C(1) << 33, "\x80\0\0\0\0\0\0\2\0\0\0");
    expect_size(UINT64_C(0x123456789a00), "\x80\0\0\0\0\0\x12\x34\x56\x78\x9a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_whole_trace),
        cmocka_unit_test(ranks_of_one_machine_are_on_its_clock),
        cmocka_unit_test(ranks_of_two_machines_are_on_the_wall_clock),
        cmocka_unit_test(a_pipe_gets_the_same_bytes),
        cmocka_unit_test(long_traces_are_whole_in_a_file),
        cmocka_unit_test(sizes_past_eight_gigabytes_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
