/* See log_maker.h. */
#include "log_maker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/internal.h"

void log_maker_fini(struct log_maker *log)
{
    marey__buf_fini(&log->bytes);
}

size_t log_put_block(struct log_maker *log, struct marey__block block, const void *packed, size_t len)
{
    static const char zeros[8];
    const size_t offset = log->bytes.len;
    block.magic = MAREY__BLOCK_MAGIC;
    block.version = block.version != 0 ? block.version : MAREY__LOG_VERSION;
    block.packed_len = (uint32_t)len;
    block.raw_len = block.raw_len != 0 ? block.raw_len : (uint32_t)len;
    block.crc = 0;
    block.crc = marey__crc32c(marey__crc32c(0, &block, sizeof block), packed, len);
    marey__buf_put(&log->bytes, &block, sizeof block);
    marey__buf_put(&log->bytes, packed, len);
    marey__buf_put(&log->bytes, zeros, (8 - len % 8) % 8);
    return offset;
}

void log_put_pairs(struct log_maker *log, enum marey__block_type type, const char *const *pairs)
{
    struct marey__buf texts = {0};
    for (; pairs[0] != NULL; pairs += 2) {
        const uint32_t lengths[2] = {(uint32_t)strlen(pairs[0]), (uint32_t)strlen(pairs[1])};
        marey__buf_put(&texts, lengths, sizeof lengths);
        marey__buf_puts(&texts, pairs[0]);
        marey__buf_puts(&texts, pairs[1]);
    }
    log_put_block(log, (struct marey__block){.type = (uint8_t)type}, texts.data, texts.len);
    marey__buf_fini(&texts);
}

void log_put_process(struct log_maker *log, const char *extra_key, const char *extra_value)
{
    const char *const pairs[] = {
        "pid",      "100",        "ppid",          "99",     "rank",    "0",         "host",
        "testhost", "command",    "train --fast",  "run_id", "abc",     "clock",     "tsc",
        "tick_hz",  "1000000000", "event_cost_ps", "9500",   extra_key, extra_value, NULL};
    log_put_pairs(log, MAREY__BLOCK_LOG, pairs);
}

void log_put_site(struct log_maker *log, uint32_t id, const char *name)
{
    struct marey__buf bytes = {0};
    const struct marey__site_entry entry = {
        .id = id, .line = 7, .name_len = (uint32_t)strlen(name), .file_len = 3};
    marey__buf_put(&bytes, &entry, sizeof entry);
    marey__buf_puts(&bytes, name);
    marey__buf_puts(&bytes, "a.c");
    marey__buf_put(&bytes, "\0\0\0", (4 - bytes.len % 4) % 4);
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_SITES}, bytes.data, bytes.len);
    marey__buf_fini(&bytes);
}

void log_put_site_of(struct log_maker *log, uint32_t id, const char *name, const char *category,
                     const char *domain)
{
    struct marey__buf bytes = {0};
    const struct marey__site_entry entry = {.id = id,
                                            .name_len = (uint32_t)strlen(name),
                                            .category_len = (uint32_t)strlen(category),
                                            .domain_len = (uint32_t)strlen(domain)};
    marey__buf_put(&bytes, &entry, sizeof entry);
    marey__buf_puts(&bytes, name);
    marey__buf_puts(&bytes, category);
    marey__buf_puts(&bytes, domain);
    marey__buf_put(&bytes, "\0\0\0", (4 - bytes.len % 4) % 4);
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_SITES}, bytes.data, bytes.len);
    marey__buf_fini(&bytes);
}

static void put_lane(struct log_maker *log, uint32_t lane, enum marey_lane_kind kind, int64_t tid,
                     const char *name)
{
    struct marey__buf bytes = {0};
    const struct marey__lane_entry entry = {
        .tid = tid, .kind = kind, .name_len = (uint32_t)strlen(name)};
    marey__buf_put(&bytes, &entry, sizeof entry);
    marey__buf_puts(&bytes, name);
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_LANE, .lane = lane}, bytes.data,
                  bytes.len);
    marey__buf_fini(&bytes);
}

void log_put_lane(struct log_maker *log, uint32_t lane, int64_t tid, const char *name)
{
    put_lane(log, lane, MAREY_LANE_THREAD, tid, name);
}

void log_put_stream(struct log_maker *log, uint32_t lane, int32_t device, uint32_t stream,
                    const char *name)
{
    put_lane(log, lane, MAREY_LANE_GPU, (int64_t)((uint64_t)(uint32_t)device << 32 | stream), name);
}

void log_put_moment(struct log_maker *log, uint64_t tick, uint64_t monotonic_ns)
{
    const struct marey__clock_entry entry = {tick, monotonic_ns, monotonic_ns + 1000000000000u, 20};
    log_put_block(log, (struct marey__block){.type = MAREY__BLOCK_CLOCK}, &entry, sizeof entry);
}

void log_put_end(struct log_maker *log, const char *how)
{
    const char *const pairs[] = {"end", how, "flush_cpu_ns", "1234", NULL};
    log_put_pairs(log, MAREY__BLOCK_END, pairs);
}

void log_word(struct log_maker *log, uint64_t tick, enum marey_kind kind, uint32_t id)
{
    log->words[log->n_words++] = (tick - log->base_tick) << 24 | (uint64_t)kind << 20 | id;
}

void log_begin(struct log_maker *log, uint64_t tick, uint32_t site)
{
    log_word(log, tick, MAREY_KIND_BEGIN, site);
}

void log_end(struct log_maker *log, uint64_t tick, uint32_t site)
{
    log_word(log, tick, MAREY_KIND_END, site);
}

void log_record(struct log_maker *log, uint64_t tick, enum marey_record_type type,
                const uint64_t *words, size_t n)
{
    log_word(log, tick, MAREY_KIND_RECORD, (uint32_t)type << 12 | (uint32_t)(n + 1));
    for (size_t i = 0; i < n; i++)
        log->words[log->n_words++] = words[i];
}

void log_iteration(struct log_maker *log, uint64_t tick, uint64_t number, bool is_warmup,
                   double samples)
{
    uint64_t words[3] = {number, is_warmup};
    memcpy(&words[2], &samples, sizeof samples);
    log_record(log, tick, MAREY_RECORD_ITERATION, words, 3);
}

void log_iteration_begin(struct log_maker *log, uint64_t tick, uint64_t number)
{
    log_record(log, tick, MAREY_RECORD_ITERATION_BEGIN, &number, 1);
}

void log_epoch(struct log_maker *log, uint64_t tick, uint64_t number, bool begins)
{
    log_record(log, tick, MAREY_RECORD_EPOCH, (const uint64_t[]){number, begins}, 2);
}

void log_phase(struct log_maker *log, uint64_t tick, uint32_t site)
{
    log_record(log, tick, MAREY_RECORD_PHASE, (const uint64_t[]){site}, 1);
}

void log_end_of(struct log_maker *log, uint64_t tick, uint32_t site)
{
    log_record(log, tick, MAREY_RECORD_END_OF, (const uint64_t[]){site}, 1);
}

void log_repeat(struct log_maker *log, uint64_t tick, uint64_t n_calls)
{
    log_record(log, tick, MAREY_RECORD_REPEAT, &n_calls, 1);
}

void log_work(struct log_maker *log, uint64_t tick, uint32_t site, enum marey_work_kind kind,
              uint64_t duration, uint64_t correlation, uint64_t bytes)
{
    const uint64_t words[] = {site | (uint64_t)kind << 20, duration, correlation, bytes};
    log_record(log, tick, MAREY_RECORD_GPU, words, 4);
}

void log_launch(struct log_maker *log, uint64_t tick, uint64_t correlation)
{
    log_record(log, tick, MAREY_RECORD_LAUNCH, &correlation, 1);
}

void log_arguments(struct log_maker *log, uint64_t tick, const char *text)
{
    uint64_t words[256] = {strlen(text)};
    memcpy(&words[1], text, strlen(text));
    log_record(log, tick, MAREY_RECORD_ARGUMENTS, words, 1 + (strlen(text) + 7) / 8);
}

void log_communication(struct log_maker *log, uint64_t tick, const struct marey_communication *what)
{
    const uint64_t words[] = {what->group | (uint64_t)what->what << 20, what->bytes_in,
                              what->bytes_out, what->sequence,
                              what->group_size | (uint64_t)(uint32_t)what->peer << 32};
    log_record(log, tick, MAREY_RECORD_COMMUNICATION, words, 5);
}

void log_flow(struct log_maker *log, uint64_t tick, uint32_t site, uint64_t id,
              enum marey_flow_end end)
{
    log_record(log, tick, MAREY_RECORD_FLOW, (const uint64_t[]){site, id, end}, 3);
}

static struct marey__block words_block(struct log_maker *log, uint32_t lane, uint32_t sequence)
{
    uint64_t last = 0;
    for (size_t i = 0; i < log->n_words;) {
        const uint64_t word = log->words[i];
        const bool is_work = marey_word_kind(word) == MAREY_KIND_RECORD &&
                             marey_record_type_of(word) == MAREY_RECORD_GPU;
        last = MAREY__MAX(last, marey_word_ticks(word) + (is_work ? log->words[i + 2] : 0));
        i += marey_word_kind(word) == MAREY_KIND_RECORD ? MAREY__MAX(marey_record_length(word), 1)
                                                        : 1;
    }
    return (struct marey__block){.type = MAREY__BLOCK_WORDS,
                                 .lane = lane,
                                 .sequence = sequence,
                                 .first_tick = log->base_tick,
                                 .last_tick = log->base_tick + last};
}

size_t log_put_words(struct log_maker *log, uint32_t lane, uint32_t sequence)
{
    struct marey__block block = words_block(log, lane, sequence);
    marey__packer *packer = marey__packer_create();
    const void *packed = marey__pack_words(packer, log->words, log->n_words, &block);
    const size_t offset = log_put_block(log, block, packed, block.packed_len);
    marey__packer_destroy(packer);
    log->n_words = 0;
    return offset;
}

size_t log_put_bare_words(struct log_maker *log, uint32_t lane, uint32_t sequence)
{
    const size_t offset = log_put_block(log, words_block(log, lane, sequence), log->words,
                                        log->n_words * sizeof log->words[0]);
    log->n_words = 0;
    return offset;
}

void log_put_ranges(struct log_maker *log, uint64_t n)
{
    uint32_t sequence = 0;
    for (uint64_t i = 1; i <= n; i++) {
        log_begin(log, 10 * i, 1);
        log_end(log, 10 * i + 3, 1);
        if (i % 2000 == 0 || i == n)
            log_put_words(log, 0, sequence++);
    }
}

void log_put_preamble(struct log_maker *log)
{
    log_put_process(log, NULL, NULL);
    log_put_site(log, 1, "outer");
    log_put_site(log, 2, "inner");
    log_put_site(log, 3, "leaf");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
}

void log_write(const void *bytes, size_t len, char path[64])
{
    strcpy(path, "/tmp/marey-test-XXXXXX.klog");
    const int fd = mkstemps(path, 5);
    if (fd < 0 || !marey__write_all(fd, bytes, len))
        abort();
    close(fd);
}

marey_status log_open(const struct log_maker *log, marey_recording **out)
{
    char path[64];
    log_write(log->bytes.data, log->bytes.len, path);
    const marey_status status = marey_recording_open(path, out);
    if (status != MAREY_OK)
        unlink(path);
    return status;
}

void log_close(marey_recording *recording)
{
    if (marey_recording_n_processes(recording) != 0)
        unlink(marey_recording_process(recording, 0)->log_path);
    marey_recording_close(recording);
}
