/* The reader: hand-made logs, valid and invalid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "read/internal.h"

/* Results of a visit. */
struct seen {
    struct {
        uint64_t ns;
        uint32_t lane, kind, id;
        int gap; /* of the batch it is the first word of */
    } words[5000];
    size_t n, n_batches;
};

static marey_status see(void *ctx, const struct marey_batch *batch)
{
    struct seen *seen = ctx;
    seen->n_batches++;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        const size_t length = is_record ? marey_record_length(word) : 1;
        assert_true(length >= 1 && length <= batch->n - i);
        if (seen->n < MAREY__COUNT_OF(seen->words)) {
            seen->words[seen->n].ns = marey_batch_ns(batch, word);
            seen->words[seen->n].lane = batch->lane->lane;
            seen->words[seen->n].kind = marey_word_kind(word);
            seen->words[seen->n].id = marey_word_id(word);
            seen->words[seen->n].gap = i == 0 && batch->gap;
        }
        seen->n++;
        i += length;
    }
    return MAREY_OK;
}

static marey_recording *open_log(const struct log_maker *log)
{
    marey_recording *recording = NULL;
    assert_int_equal(log_open(log, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 1);
    return recording;
}

static void visit(marey_recording *recording, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    assert_int_equal(marey_recording_visit(recording, 0, see, seen), MAREY_OK);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct log_maker));
    return *state == NULL;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

static struct seen seen;

/* ---- properties of a log ---- */

static void a_log_tells_about_its_process(void **state)
{
    struct log_maker *log = *state;
    log_put_process(log, "note", "the first note");
    log_put_pairs(log, MAREY__BLOCK_LOG,
                  (const char *const[]){"note", "the second", "rank", "3", "news", "x", NULL});
    log_put_site(log, 5, "step");
    log_put_lane(log, 2, 4711, "loader");
    log_put_moment(log, 1000, 5000);
    log->base_tick = 1000;
    log_begin(log, 1000, 5);
    log_end(log, 1400, 5);
    log_put_words(log, 2, 0);
    const struct marey__loss_entry loss = {17, 1100, 1200};
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_LOSS}, &loss, sizeof loss);
    log_put_block(log, (struct marey__block){.type = 99}, "of a later version", 18);
    log_put_end(log, "stop");

    marey_recording *recording = open_log(log);
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_null(marey_recording_warning(recording, 0));
    assert_int_equal(process->pid, 100);
    assert_int_equal(process->ppid, 99);
    assert_int_equal(process->rank, 3);
    assert_int_equal(process->world_size, -1);
    assert_string_equal(process->host, "testhost");
    assert_string_equal(process->command, "train --fast");
    assert_string_equal(process->run_id, "abc");
    assert_string_equal(process->clock, "tsc");
    assert_string_equal(process->end, "stop");
    assert_string_equal(process->note, "the first note\nthe second");
    assert_int_equal(process->n_events, 2);
    assert_int_equal(process->first_ns, 5000);
    assert_int_equal(process->last_ns, 5400);
    assert_int_equal(process->start_unix_ns, 1000000005000u);
    assert_int_equal(process->mono_to_unix_ns, 1000000000000);
    assert_int_equal(process->lost_events, 17);
    assert_int_equal(process->lost_first_ns, 5100);
    assert_int_equal(process->lost_last_ns, 5200);
    assert_int_equal(process->flush_cpu_ns, 1234);
    assert_true(process->event_cost_ns == 9.5);
    assert_int_equal(process->log_bytes, log->bytes.len);
    assert_int_equal(process->n_sites, 5);
    assert_int_equal(process->n_lanes, 3);
    assert_string_equal(marey_recording_site(recording, 0, 5)->name, "step");
    assert_string_equal(marey_recording_site(recording, 0, 5)->file, "a.c");
    assert_int_equal(marey_recording_site(recording, 0, 5)->line, 7);
    assert_string_equal(marey_recording_site(recording, 0, 4)->name, "");
    assert_string_equal(marey_recording_site(recording, 9, 1u << 30)->name, "");
    assert_string_equal(marey_recording_lane(recording, 0, 2)->name, "loader");
    assert_int_equal(marey_recording_lane(recording, 0, 2)->tid, 4711);
    assert_string_equal(marey_recording_lane(recording, 0, 77)->name, "");
    log_close(recording);
}

static void words_come_back_packed_or_bare(void **state)
{
    struct log_maker *log = *state;
    log_put_preamble(log);
    for (uint32_t i = 0; i < 1003; i++)
        log_word(log, i * 10, i % 2 == 0 ? MAREY_KIND_BEGIN : MAREY_KIND_END, 1 + i / 2 % 3);
    const size_t n = log->n_words;
    static uint64_t words[4000];
    memcpy(words, log->words, sizeof words);
    log_put_words(log, 0, 0);
    memcpy(log->words, words, sizeof words);
    log->n_words = n;
    log_put_bare_words(log, 0, 1);
    log_put_end(log, "exit");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    assert_int_equal(seen.n, 2006);
    assert_int_equal(seen.n_batches, 2);
    for (uint32_t i = 0; i < 2006; i++) {
        assert_int_equal(seen.words[i].ns, i % 1003 * 10);
        assert_int_equal(seen.words[i].id, 1 + i % 1003 / 2 % 3);
    }
    log_close(recording);
}

static void unpacking_undoes_packing_for_any_words(void **state)
{
    (void)state;
    enum { MAX = 100 };
    uint64_t words[MAX], back[MAX], x = 88172645463325252u;
    uint8_t planes[MAX * 8];
    for (size_t n = 0; n < MAX; n++) {
        uint64_t before = 0;
        bool has_records = false;
        for (size_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            words[i] = i % 3 == 0 ? x : x & ~UINT64_C(0xf00000);
            has_records |= marey_word_kind(words[i]) == MAREY_KIND_RECORD;
            const uint64_t step = ((words[i] >> 24) - before) & 0xffffffffffu;
            before = words[i] >> 24;
            for (size_t p = 0; p < 5; p++)
                planes[p * n + i] = (uint8_t)(step >> (8 * p));
            for (size_t p = 0; p < 3; p++)
                planes[(p + 5) * n + i] = (uint8_t)(words[i] >> (8 * p));
        }
        assert_int_equal(marey__unpack_words(planes, back, n), has_records);
        assert_memory_equal(words, back, n * sizeof words[0]);
        assert_int_equal(marey__words_have_records(back, n), has_records);
    }
}

/* ---- clocks ---- */

static void the_clock_is_linear_between_moments(void **state)
{
    struct log_maker *log = *state;
    log_put_process(log, NULL, NULL);
    log_put_lane(log, 0, 1, "");
    log_put_moment(log, 1000, 100000);
    log_put_moment(log, 2000, 101000); /* a nanosecond a tick */
    log_put_moment(log, 3000, 103000); /* then two */
    for (uint64_t tick = 500; tick < 4000; tick += 500)
        log_begin(log, tick, 0);
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    const uint64_t want[] = {99500, 100000, 100500, 101000, 102000, 103000, 104000};
    assert_int_equal(seen.n, 7);
    assert_int_equal(seen.n_batches, 2);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(seen.words[i].ns, want[i]);
    log_close(recording);
}

static void one_moment_goes_by_the_stated_rate(void **state)
{
    struct log_maker *log = *state;
    log_put_process(log, "tick_hz", "2000000000");
    log_put_lane(log, 0, 1, "");
    log_put_moment(log, 1000, 100);
    log_begin(log, 1000, 0);
    log_begin(log, 3000, 0);
    log_put_words(log, 0, 0);
    log_put_end(log, "stop");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    assert_int_equal(seen.words[0].ns, 100);
    assert_int_equal(seen.words[1].ns, 1100);
    log_close(recording);
}

static void time_never_runs_backwards(void **state)
{
    struct log_maker *log = *state;
    uint64_t x = 12345, tick = 7, ns = 1000;
    log_put_process(log, NULL, NULL);
    log_put_lane(log, 0, 1, "");
    for (size_t i = 0; i < 50; i++) { /* slopes between a third and three, at odd places */
        log_put_moment(log, tick, ns);
        x = x * 6364136223846793005u + 1442695040888963407u;
        tick += 50 + x % 97;
        ns += 30 + (x >> 32) % 97;
    }
    const uint64_t last_tick = tick;
    uint32_t sequence = 0;
    for (tick = 0; tick < last_tick + 100;) {
        log->base_tick = tick;
        for (size_t i = 0; i < 37; i++)
            log_begin(log, tick++, 0);
        log_put_words(log, 0, sequence++);
    }
    log_put_end(log, "stop");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    assert_true(seen.n > 3000 && seen.n <= MAREY__COUNT_OF(seen.words));
    for (size_t i = 1; i < seen.n; i++)
        assert_true(seen.words[i].ns >= seen.words[i - 1].ns);
    log_close(recording);
}

static void moments_that_make_no_sense_are_left_out(void **state)
{
    (void)state;
    struct marey__clock_entry moments[] = {
        {3000, 3000, 0, 0}, {1000, 1000, 0, 0},       {2000, 500, 0, 0},
        {1000, 1000, 0, 0}, {UINT64_MAX, 3001, 0, 0},
    };
    struct marey__clock_map map;
    assert_int_equal(marey__clock_map_build(&map, moments, MAREY__COUNT_OF(moments), 0), MAREY_OK);
    assert_int_equal(marey__clock_map_ns(&map, 2000), 2000);
    assert_int_equal(marey__clock_map_ns(&map, 5000), 5000);
    assert_int_equal(marey__clock_map_ns(&map, 900), 900);
    marey__clock_map_fini(&map);
    assert_int_equal(marey__clock_map_build(&map, NULL, 0, 0), MAREY_OK);
    assert_int_equal(marey__clock_map_ns(&map, 123), 123);
    marey__clock_map_fini(&map);
}

/* ---- gaps, doubles, records ---- */

static void put_pair(struct log_maker *log, uint32_t lane, uint32_t sequence)
{
    log_begin(log, sequence * 100, 1);
    log_end(log, sequence * 100 + 50, 1);
    log_put_words(log, lane, sequence);
}

static void missing_numbers_are_gaps_and_doubles_are_skipped(void **state)
{
    struct log_maker *log = *state;
    log_put_preamble(log);
    log_put_lane(log, 1, 101, "other");
    put_pair(log, 0, 0);
    put_pair(log, 1, 3); /* begins with a gap */
    put_pair(log, 0, 1);
    put_pair(log, 0, 1); /* written twice around a crash */
    put_pair(log, 0, 4);
    put_pair(log, 0, 5);
    log_put_end(log, "unclosed");
    marey_recording *recording = open_log(log);
    assert_int_equal(marey_recording_process(recording, 0)->n_events, 10);
    visit(recording, &seen);
    const int gaps[] = {0, 1, 0, 1, 0};
    const uint32_t lanes[] = {0, 1, 0, 0, 0};
    assert_int_equal(seen.n, 10);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(seen.words[2 * i].gap, gaps[i]);
        assert_int_equal(seen.words[2 * i].lane, lanes[i]);
    }
    log_close(recording);
}

static void unsound_records_never_reach_a_visitor(void **state)
{
    struct log_maker *log = *state;
    log_put_preamble(log);
    const uint64_t counter[] = {2, 0}, text[] = {1 | 4u << 20 | UINT64_C(100) << 32, 0};
    log_begin(log, 10, 1);
    log_record(log, 20, MAREY_RECORD_COUNTER, counter, 2);
    log_record(log, 30, MAREY_RECORD_COUNTER, counter, 1); /* without its value */
    log_record(log, 40, MAREY_RECORD_BEGIN, text, 2);      /* a text longer than the record */
    log_record(log, 50, (enum marey_record_type)200, counter, 2); /* of a later version */
    log_end(log, 60, 1);
    log_put_words(log, 0, 0);
    log_begin(log, 70, 1);
    log_word(log, 80, MAREY_KIND_RECORD, MAREY_RECORD_MARK << 12 | 100); /* runs over the end */
    log_end(log, 90, 1);
    log_put_words(log, 0, 1);
    log_word(log, 100, MAREY_KIND_RECORD, MAREY_RECORD_MARK << 12); /* no length at all */
    log_put_words(log, 0, 2);
    log_put_end(log, "stop");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    const uint64_t times[] = {10, 20, 50, 60, 70};
    assert_int_equal(seen.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(seen.words[i].ns, times[i]);
    assert_int_equal(seen.words[2].gap, 1);
    log_close(recording);
}

/* ---- damage ---- */

static void put_three_blocks(struct log_maker *log, size_t offsets[3])
{
    log_put_preamble(log);
    for (uint32_t i = 0; i < 3; i++) {
        log_begin(log, i * 100, 1);
        log_end(log, i * 100 + 50, 1);
        offsets[i] = log_put_words(log, 0, i);
    }
    log_put_end(log, "stop");
}

static void a_flipped_byte_costs_its_block_and_a_warning(void **state)
{
    struct log_maker *log = *state;
    size_t offsets[3];
    put_three_blocks(log, offsets);
    log->bytes.data[offsets[1] + 60] ^= 4;
    marey_recording *recording = open_log(log);
    const char *warning = marey_recording_warning(recording, 0);
    assert_non_null(warning);
    char at[32];
    snprintf(at, sizeof at, "at byte %zu", offsets[1]);
    assert_non_null(strstr(warning, at));
    assert_non_null(strstr(warning, "checksum"));
    assert_non_null(strstr(warning, marey_recording_process(recording, 0)->log_path));
    assert_null(marey_recording_warning(recording, 1));
    visit(recording, &seen);
    assert_int_equal(seen.n, 4);
    assert_int_equal(seen.words[2].gap, 1);
    assert_string_equal(marey_recording_process(recording, 0)->end, "stop");
    log_close(recording);
}

static void a_lying_length_costs_its_block(void **state)
{
    struct log_maker *log = *state;
    size_t offsets[3];
    put_three_blocks(log, offsets);
    const uint32_t huge = 0xfffffff0u;
    memcpy(log->bytes.data + offsets[0] + offsetof(struct marey__block, packed_len), &huge,
           sizeof huge);
    marey_recording *recording = open_log(log);
    assert_non_null(strstr(marey_recording_warning(recording, 0), "impossible length"));
    visit(recording, &seen);
    assert_int_equal(seen.n, 4);
    assert_int_equal(seen.words[0].gap, 1);
    log_close(recording);
}

/* With any number of remaining bytes, reading gives complete blocks or a clear error. */
static void a_log_cut_anywhere_gives_what_is_whole(void **state)
{
    struct log_maker *log = *state;
    size_t offsets[3];
    put_three_blocks(log, offsets);
    const size_t full = log->bytes.len;
    for (size_t len = 0; len < full; len += 5) {
        log->bytes.len = len;
        marey_recording *recording = NULL;
        const marey_status status = log_open(log, &recording);
        if (status != MAREY_OK) {
            assert_int_equal(status, MAREY_EFORMAT);
            assert_true(len < 300);
            continue;
        }
        visit(recording, &seen);
        size_t n_whole = 0;
        for (size_t i = 0; i < 3; i++)
            n_whole += 2 * (len >= (i < 2 ? offsets[i + 1] : offsets[2] + 64));
        assert_true(seen.n + 2 >= n_whole && seen.n <= 6);
        assert_string_equal(marey_recording_process(recording, 0)->end, "unclosed");
        log_close(recording);
    }
    log->bytes.len = full;
}

/* Any single flipped bit: never a crash, never a record over the end (see `see`). */
static void any_flipped_bit_is_survived(void **state)
{
    struct log_maker *log = *state;
    size_t offsets[3];
    put_three_blocks(log, offsets);
    for (size_t i = 0; i < log->bytes.len; i++) {
        log->bytes.data[i] ^= (char)(1 << i % 8);
        marey_recording *recording = NULL;
        const marey_status status = log_open(log, &recording);
        if (status == MAREY_OK) {
            visit(recording, &seen);
            assert_true(seen.n <= 6);
            log_close(recording);
        } else {
            assert_int_equal(status, MAREY_EFORMAT);
        }
        log->bytes.data[i] ^= (char)(1 << i % 8);
    }
}

static void a_foreign_file_is_refused_by_name(void **state)
{
    (void)state;
    char path[64];
    const char *const contents[] = {"", "{\"traceEvents\": []}", "MBLK"};
    for (size_t i = 0; i < 3; i++) {
        marey_recording *recording = NULL;
        log_write(contents[i], strlen(contents[i]), path);
        assert_int_equal(marey_recording_open(path, &recording), MAREY_EFORMAT);
        assert_non_null(strstr(marey_last_error(), path));
        unlink(path);
    }
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open("/nowhere/at.all", &recording), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "/nowhere/at.all"));
    assert_int_equal(marey_recording_open("/dev/null", &recording), MAREY_EFORMAT);
}

/* A block that claims to unpack to a thousand times its size is not believed. */
static void a_block_of_words_larger_than_any_chunk_is_left_out(void **state)
{
    struct log_maker *log = *state;
    log_put_preamble(log);
    const struct marey__block block = {.type = MAREY__BLOCK_WORDS,
                                       .raw_len = MAREY__BLOCK_MAX,
                                       .flags = MAREY__FLAG_ZSTD | MAREY__FLAG_PLANES};
    log_put_block(log, block, "bogus", 5);
    put_pair(log, 0, 1);
    log_put_end(log, "stop");
    marey_recording *recording = open_log(log);
    visit(recording, &seen);
    assert_int_equal(seen.n, 2);
    log_close(recording);
}

/* ---- directories ---- */

static void put_file(const char *folder, const char *name, const void *bytes, size_t len)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static void a_directory_is_ordered_by_rank_and_start(void **state)
{
    (void)state;
    char folder[] = "/tmp/marey-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_EFORMAT);

    put_file(folder, "meta.json", "{}", 2);
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 0);
    marey_recording_close(recording);

    const struct {
        const char *file, *rank, *pid;
        uint64_t start;
    } logs[] = {{"a.klog", "-1", "5", 10},
                {"b.klog", "1", "4", 10},
                {"c.klog", "0", "3", 20},
                {"d.klog", "0", "2", 10}};
    for (size_t i = 0; i < 4; i++) {
        struct log_maker log = {0};
        log_put_pairs(&log, MAREY__BLOCK_LOG,
                      (const char *const[]){"rank", logs[i].rank, "pid", logs[i].pid, NULL});
        log_put_moment(&log, logs[i].start, logs[i].start);
        log_put_end(&log, "stop");
        put_file(folder, logs[i].file, log.bytes.data, log.bytes.len);
        log_maker_fini(&log);
    }
    put_file(folder, "e.klog", "rubbish", 7);
    put_file(folder, "f.klog", "", 0);
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_OK);
    assert_string_equal(marey_recording_name(recording), folder + 5);
    assert_int_equal(marey_recording_n_processes(recording), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(marey_recording_process(recording, i)->pid, 2 + i);
        assert_int_equal(marey_recording_process(recording, i)->index, i);
    }
    assert_non_null(strstr(marey_recording_warning(recording, 0), "e.klog is not a marey log"));
    assert_non_null(strstr(marey_recording_warning(recording, 1), "1 of 5 logs could not be read"));
    assert_non_null(strstr(marey_recording_warning(recording, 2), "1 log is empty"));
    assert_null(marey_recording_warning(recording, 3));
    marey_recording_close(recording);

    for (size_t i = 0; i < 4; i++)
        remove_file(folder, logs[i].file);
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "e.klog"));
    remove_file(folder, "e.klog");
    remove_file(folder, "f.klog");
    remove_file(folder, "meta.json");
    assert_int_equal(rmdir(folder), 0);
}

static void small_logs_are_read_once(void **state)
{
    struct log_maker *log = *state;
    char folder[] = "/tmp/marey-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    log_put_preamble(log);
    put_pair(log, 0, 0);
    log_put_end(log, "stop");
    put_file(folder, "a.klog", log->bytes.data, log->bytes.len);
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_OK);
    remove_file(folder, "a.klog");
    visit(recording, &seen);
    assert_int_equal(seen.n, 2);
    visit(recording, &seen);
    assert_int_equal(seen.n, 2);
    marey_recording_close(recording);
    assert_int_equal(rmdir(folder), 0);

    assert_int_equal(marey__log_file_most_kept(10000), 0); /* memory per rank counts there */
    assert_true(64 * marey__log_file_most_kept(64) <= 32 << 20);
}

/* ---- an unfinalized pool ---- */

static void put_chunk(char *pool, size_t slot, uint32_t state, uint32_t lane, uint32_t sequence)
{
    struct marey__chunk_head head = {.state = state,
                                     .lane = lane,
                                     .sequence = sequence,
                                     .base_tick = 1000,
                                     .tid = 55,
                                     .thread_name = "pooled"};
    uint64_t words[3] = {(uint64_t)sequence << 24 | 1u << 20 | 1,
                         (uint64_t)(sequence + 1) << 24 | 2u << 20 | 1, 0};
    memcpy(pool + slot * MAREY__CHUNK_BYTES, &head, sizeof head);
    memcpy(pool + slot * MAREY__CHUNK_BYTES + sizeof head, words, sizeof words);
}

static void an_unfinalized_log_is_read_with_its_pool(void **state)
{
    struct log_maker *log = *state;
    enum { SLOTS = 7 };
    char *pool = calloc(SLOTS, MAREY__CHUNK_BYTES);
    assert_non_null(pool);
    const struct marey__pool_head head = {.magic = MAREY__POOL_MAGIC,
                                          .version = MAREY__LOG_VERSION,
                                          .chunk_bytes = MAREY__CHUNK_BYTES,
                                          .n_chunks = SLOTS - 1,
                                          .n_lost = 5,
                                          .lost_first_tick = 1100,
                                          .lost_last_tick = 1200};
    memcpy(pool, &head, sizeof head);
    put_chunk(pool, 1, MAREY__CHUNK_OWNED, 0, 3);
    put_chunk(pool, 2, MAREY__CHUNK_FREE, 0, 1);
    put_chunk(pool, 3, MAREY__CHUNK_FULL, 0, 2);
    put_chunk(pool, 4, MAREY__CHUNK_FULL, 0, 1); /* in the log already */
    put_chunk(pool, 5, MAREY__CHUNK_OWNED, 7, 0);
    put_chunk(pool, 6, MAREY__CHUNK_OWNED, 0xffffffffu, 0);
    char pool_path[64];
    log_write(pool, (size_t)SLOTS * MAREY__CHUNK_BYTES, pool_path);
    free(pool);

    log_put_process(log, "pool", pool_path);
    log_put_moment(log, 1000, 0);
    log->base_tick = 1000;
    for (uint32_t i = 0; i < 2; i++) {
        log_begin(log, 1000 + i, 1);
        log_put_words(log, 0, i);
    }
    marey__buf_puts(&log->bytes, "MBLK and then it was killed"); /* a write cut short is no damage */
    marey_recording *recording = open_log(log);
    assert_null(marey_recording_warning(recording, 0));
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_string_equal(process->end, "unclosed");
    assert_int_equal(process->n_events, 8);
    assert_int_equal(process->lost_events, 7); /* two in a lane past the limit */
    assert_int_equal(process->n_lanes, 8);
    assert_string_equal(marey_recording_lane(recording, 0, 7)->name, "pooled");
    visit(recording, &seen);
    assert_int_equal(seen.n, 8);
    const uint64_t times[] = {0, 1, 2, 3, 3, 4, 0, 1};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(seen.words[i].ns, times[i]);
        assert_int_equal(seen.words[i].gap, 0);
    }
    log_close(recording);
    unlink(pool_path);
}

/* ---- memory ---- */

static void opening_without_memory_leaks_nothing(void **state)
{
    struct log_maker *log = *state;
    size_t offsets[3];
    put_three_blocks(log, offsets);
    log->bytes.data[offsets[1] + 60] ^= 4; /* for a warning */
    char path[64];
    log_write(log->bytes.data, log->bytes.len, path);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_recording *recording = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_recording_open(path, &recording);
        if (status == MAREY_OK) {
            memset(&seen, 0, sizeof seen);
            status = marey_recording_visit(recording, 0, see, &seen);
        }
        marey__alloc_fail_nth(0);
        marey_recording_close(recording);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 1000);
    }
    unlink(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_log_tells_about_its_process),
        TEST(words_come_back_packed_or_bare),
        TEST(unpacking_undoes_packing_for_any_words),
        TEST(the_clock_is_linear_between_moments),
        TEST(one_moment_goes_by_the_stated_rate),
        TEST(time_never_runs_backwards),
        TEST(moments_that_make_no_sense_are_left_out),
        TEST(missing_numbers_are_gaps_and_doubles_are_skipped),
        TEST(unsound_records_never_reach_a_visitor),
        TEST(a_flipped_byte_costs_its_block_and_a_warning),
        TEST(a_lying_length_costs_its_block),
        TEST(a_log_cut_anywhere_gives_what_is_whole),
        TEST(any_flipped_bit_is_survived),
        TEST(a_foreign_file_is_refused_by_name),
        TEST(a_block_of_words_larger_than_any_chunk_is_left_out),
        TEST(a_directory_is_ordered_by_rank_and_start),
        TEST(small_logs_are_read_once),
        TEST(an_unfinalized_log_is_read_with_its_pool),
        TEST(opening_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
