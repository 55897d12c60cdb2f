/* Partial summaries: any distribution of logs and any merge order give the result of one reader. */
#include <stdio.h>
#include <sys/stat.h>

#include "log_maker.h"
#include "scratch.h"
#include <marey/partial.h>

enum {
    N_LOGS = 7,
    N_RECORDINGS = 2,
    MAX_PARTS = 5,
    STEP = 1,
    WORK = 2,
    VALUE = 3,
    OWN = 4,
    KERNEL = 5,
    EVENT_COST_PS = 12345
};

static const struct marey_report_options alone = {
    .n_jobs = 1, .settings = (const char *const[]){"data=work", NULL}};

/* ---- logs ---- */

static void put_iterations(struct log_maker *log, uint32_t which)
{
    uint64_t at = 1000;
    log_epoch(log, at, 0, true);
    log_phase(log, at, WORK);
    for (uint64_t i = 0; i < 40; i++) {
        const uint64_t long_ns = i == 7 * which % 40 ? 90000 : 0;
        log_begin(log, at, STEP);
        log_begin(log, at + 10, i % 2 == 0 ? WORK : OWN);
        log_end(log, at + 200 + which * i + long_ns, 0);
        log_end(log, at + 500 + long_ns, STEP);
        log_iteration(log, at + 510 + long_ns, i, i < 2, which + 0.1);
        at += 510 + long_ns;
    }
    log_phase(log, at, 0);
    log_epoch(log, at, 0, false);
}

static void put_rest(struct log_maker *log, uint32_t which)
{
    const uint64_t at = 400000;
    for (uint32_t i = 0; i < 3; i++) {
        double value = 0.1 * (which + 1) + i * 1e-9; /* whose sums depend on the order */
        uint64_t words[2] = {VALUE, 0};
        memcpy(&words[1], &value, sizeof value);
        log_record(log, at + i, MAREY_RECORD_COUNTER, words, 2);
    }
    log_word(log, at + 10, MAREY_KIND_MARK, VALUE);
    log_record(log, at + 20, MAREY_RECORD_ASYNC_BEGIN, (const uint64_t[]){WORK, 8}, 2);
    log_record(log, at + 30 + which, MAREY_RECORD_ASYNC_END, (const uint64_t[]){WORK, 8}, 2);
    log_begin(log, at + 100, STEP);
    log_launch(log, at + 101, 77);
    log_end(log, at + 110, STEP);
    log_end(log, at + 120, OWN); /* never begun */
    log_begin(log, at + 130, WORK);
}

static void write_log(const char *folder, uint32_t which)
{
    struct log_maker log = {0};
    char number[16], own[32], cost[16], path[200];
    /* Names do not tell the order: ranks go down, and two are unknown. */
    snprintf(number, sizeof number, "%d", which % 3 == 2 ? -1 : (int)(N_LOGS - which));
    snprintf(own, sizeof own, "own %u", which % 2);
    snprintf(cost, sizeof cost, "%d", EVENT_COST_PS);
    snprintf(path, sizeof path, "%s/r%u-host.klog", folder, which);
    log_put_process(&log, "note", "It was cold.");
    log_put_pairs(
        &log, MAREY__BLOCK_LOG,
        (const char *const[]){"rank", number, "worker", "1", MAREY__KEY_EVENT_COST, cost, NULL});
    log_put_site(&log, STEP, "step");
    log_put_site(&log, WORK, "work");
    log_put_site(&log, VALUE, "value");
    log_put_site(&log, OWN, own);
    log_put_site(&log, KERNEL, "kernel");
    log_put_moment(&log, 0, which); /* starts at different times */
    log_put_lane(&log, 0, 100, "main");
    log_put_stream(&log, 1, 0, 7, "stream 7");
    put_iterations(&log, which);
    put_rest(&log, which);
    log_put_words(&log, 0, 0);
    log_work(&log, 400200, KERNEL, MAREY_WORK_KERNEL, 50 + which, 77, 0);
    log_work(&log, 400300, VALUE, MAREY_WORK_COPY, 10, 78, 4096);
    log_put_words(&log, 1, 0);
    log_put_end(&log, "stop");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    const size_t len = which == 4 ? log.bytes.len - 100 : log.bytes.len; /* one is cut off */
    assert_int_equal(fwrite(log.bytes.data, 1, len, file), len);
    fclose(file);
    log_maker_fini(&log);
}

static void make_recordings(const struct scratch *s, char paths[N_RECORDINGS][100])
{
    for (uint32_t r = 0; r < N_RECORDINGS; r++) {
        snprintf(paths[r], 100, "%s/run%u.marey", s->folder, r);
        assert_int_equal(mkdir(paths[r], 0777), 0);
        for (uint32_t i = 0; i < N_LOGS; i++)
            write_log(paths[r], i);
    }
}

/* ---- summaries as texts ---- */

/* Every table there is. */
static char *all_of(marey_report *summary)
{
    static const char *const names[] = {
        "ranges",     "tree",    "threads",     "ranks",      "processes",     "async",
        "counters",   "marks",   "open",        "iterations", "throughput",    "iteration_ranks",
        "epochs",     "phases",  "outliers",    "steady",     "kernels",       "copies",
        "gpu_ranges", "workers", "rank_spread", "rank_times", "rank_outliers", "rank_hosts",
        "sites",      "warnings"};
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_non_null(marey_report_table(summary, names[i]));
        fprintf(out, "%s:\n", names[i]);
        assert_int_equal(marey_present_csv(marey_report_table(summary, names[i]), out), MAREY_OK);
    }
    assert_int_equal(
        marey_report_write(summary, "text",
                           &(struct marey_write_options){.table = "ranges,tree,iterations"}, out),
        MAREY_OK);
    fclose(out);
    return text;
}

static char *read_whole(char paths[N_RECORDINGS][100])
{
    marey_recording *recordings[N_RECORDINGS];
    marey_report *summary = NULL;
    for (size_t r = 0; r < N_RECORDINGS; r++)
        assert_int_equal(marey_recording_open(paths[r], &recordings[r]), MAREY_OK);
    assert_int_equal(marey_report_create("ranges", recordings, N_RECORDINGS, &alone, &summary),
                     MAREY_OK);
    char *text = all_of(summary);
    marey_report_destroy(summary);
    for (size_t r = 0; r < N_RECORDINGS; r++)
        marey_recording_close(recordings[r]);
    return text;
}

/* ---- parts ---- */

struct part {
    marey_recording *recordings[N_RECORDINGS];
    marey_partial *partial;
};

/* The logs of a part: from `from` to `to` of all recordings' in a row. */
static void open_part(struct part *part, char paths[N_RECORDINGS][100], size_t from, size_t to)
{
    for (size_t r = 0; r < N_RECORDINGS; r++) {
        char names[N_LOGS][32];
        const char *list[N_LOGS];
        size_t n = 0;
        for (size_t i = 0; i < N_LOGS; i++)
            if (r * N_LOGS + i >= from && r * N_LOGS + i < to) {
                snprintf(names[n], sizeof names[n], "r%zu-host.klog", i);
                list[n] = names[n];
                n++;
            }
        assert_int_equal(marey_recording_open_logs(paths[r], list, n, 1, &part->recordings[r]),
                         MAREY_OK);
    }
}

static void close_part(struct part *part)
{
    marey_partial_destroy(part->partial);
    for (size_t r = 0; r < N_RECORDINGS; r++)
        marey_recording_close(part->recordings[r]);
}

static marey_status join(struct part *into, struct part *from)
{
    const void *bytes;
    size_t len;
    marey_status status = marey_partial_pack(from->partial, &bytes, &len);
    if (status == MAREY_OK)
        status = marey_partial_join(into->partial, bytes, len);
    return status;
}

static char *report_of(struct part *part)
{
    marey_report *summary = NULL;
    assert_int_equal(marey_partial_report(part->partial, &alone, &summary), MAREY_OK);
    char *text = all_of(summary);
    marey_report_destroy(summary);
    return text;
}

/* Pairs, pairs of pairs, as ranks do it. */
static char *read_in_parts(char paths[N_RECORDINGS][100], size_t n_parts)
{
    struct part parts[MAX_PARTS] = {0};
    const size_t n_logs = (size_t)N_LOGS * N_RECORDINGS;
    for (size_t p = 0; p < n_parts; p++) {
        open_part(&parts[p], paths, p * n_logs / n_parts, (p + 1) * n_logs / n_parts);
        assert_int_equal(
            marey_partial_create(parts[p].recordings, N_RECORDINGS, &alone, &parts[p].partial),
            MAREY_OK);
    }
    for (size_t step = 1; step < n_parts; step *= 2)
        for (size_t p = 0; p + step < n_parts; p += 2 * step)
            assert_int_equal(join(&parts[p], &parts[p + step]), MAREY_OK);
    char *text = report_of(&parts[0]);
    for (size_t p = 0; p < n_parts; p++)
        close_part(&parts[p]);
    return text;
}

static void parts_give_the_answer_of_the_whole(void **state)
{
    char paths[N_RECORDINGS][100];
    make_recordings(*state, paths);
    char *whole = read_whole(paths);
    assert_non_null(strstr(whole, "It was cold."));
    for (size_t n_parts = 1; n_parts <= MAX_PARTS; n_parts++) {
        char *joined = read_in_parts(paths, n_parts);
        assert_string_equal(joined, whole);
        free(joined);
    }
    free(whole);
}

static void keep_file(const char *folder, const char *name, const void *bytes, size_t len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

/*
 * A part without its checksum, as fuzz_partial takes it: for its corpus, when MAREY_WRITE_PARTS names a folder. That of
 * one log also with events that cost less than nothing.
 */
static void keep_part(const char *name, const void *bytes, size_t len)
{
    const double cost_ns = EVENT_COST_PS / 1000.0, impossible = -1e300;
    const char *const folder = getenv("MAREY_WRITE_PARTS");
    if (folder == NULL)
        return;
    len -= sizeof(uint32_t);
    keep_file(folder, name, bytes, len);
    if (strcmp(name, "one") != 0)
        return;
    char *copy = malloc(len);
    memcpy(copy, bytes, len);
    void *const cost = memmem(copy, len, &cost_ns, sizeof cost_ns);
    assert_non_null(cost);
    memcpy(cost, &impossible, sizeof impossible);
    keep_file(folder, "impossible_cost", copy, len);
    free(copy);
}

static void joined_with_nothing(char paths[N_RECORDINGS][100], const char *name, size_t n_logs)
{
    struct part part = {0}, empty = {0};
    const void *bytes;
    size_t len;
    open_part(&part, paths, 0, n_logs);
    open_part(&empty, paths, 0, 0);
    assert_int_equal(marey_partial_create(part.recordings, N_RECORDINGS, &alone, &part.partial),
                     MAREY_OK);
    assert_int_equal(marey_partial_create(empty.recordings, N_RECORDINGS, &alone, &empty.partial),
                     MAREY_OK);
    assert_int_equal(marey_partial_pack(part.partial, &bytes, &len), MAREY_OK);
    keep_part(name, bytes, len);
    assert_int_equal(join(&empty, &part), MAREY_OK);
    char *joined = report_of(&empty), *by_itself = report_of(&part);
    assert_string_equal(joined, by_itself);
    free(joined);
    free(by_itself);
    close_part(&part);
    close_part(&empty);
}

static void what_is_joined_with_nothing_stays_as_it_is(void **state)
{
    char paths[N_RECORDINGS][100];
    make_recordings(*state, paths);
    joined_with_nothing(paths, "none", 0);
    joined_with_nothing(paths, "one", 1);
    joined_with_nothing(paths, "seven", N_LOGS);
}

static void bytes_that_changed_are_refused(void **state)
{
    char paths[N_RECORDINGS][100];
    struct part part = {0};
    const void *bytes;
    size_t len;
    make_recordings(*state, paths);
    open_part(&part, paths, 0, 3);
    assert_int_equal(marey_partial_create(part.recordings, N_RECORDINGS, &alone, &part.partial),
                     MAREY_OK);
    assert_int_equal(marey_partial_pack(part.partial, &bytes, &len), MAREY_OK);
    char *copy = malloc(len);
    memcpy(copy, bytes, len);
    copy[len / 2] ^= 1;
    assert_int_equal(marey_partial_join(part.partial, copy, len), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "was corrupted in transfer"));
    assert_int_equal(marey_partial_join(part.partial, copy, 5), MAREY_EFORMAT);
    copy[8] = 99;
    assert_int_equal(marey_partial_join(part.partial, copy, len), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "another version"));
    free(copy);
    close_part(&part);
}

static marey_status try_all(struct part *parts)
{
    marey_report *summary = NULL;
    marey_status status = MAREY_OK;
    for (size_t p = 0; p < 2 && status == MAREY_OK; p++)
        status = marey_partial_create(parts[p].recordings, N_RECORDINGS, &alone, &parts[p].partial);
    if (status == MAREY_OK)
        status = join(&parts[0], &parts[1]);
    if (status == MAREY_OK)
        status = marey_partial_report(parts[0].partial, &alone, &summary);
    marey_report_destroy(summary);
    return status;
}

static void joining_without_memory_leaks_nothing(void **state)
{
    char paths[N_RECORDINGS][100];
    struct part parts[2] = {0};
    make_recordings(*state, paths);
    open_part(&parts[0], paths, 6, 7);
    open_part(&parts[1], paths, 5, 6);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = try_all(parts);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        for (size_t p = 0; p < 2; p++) {
            marey_partial_destroy(parts[p].partial);
            parts[p].partial = NULL;
        }
        assert_true(nth < 20000);
    }
    close_part(&parts[0]);
    close_part(&parts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(parts_give_the_answer_of_the_whole),
        SCRATCH_TEST(what_is_joined_with_nothing_stays_as_it_is),
        SCRATCH_TEST(bytes_that_changed_are_refused),
        SCRATCH_TEST(joining_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
