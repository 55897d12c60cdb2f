/*
 * Hand-made logs, block by block, for tests of the reader and the analyses.
 */
#ifndef MAREY_TEST_LOG_MAKER_H
#define MAREY_TEST_LOG_MAKER_H

#include "base/internal.h"
#include "record/log_format.h"
#include <marey/recording.h>

/* Ticks are nanoseconds in these logs unless a test says otherwise. */
struct log_maker {
    struct marey__buf bytes;
    uint64_t words[4000]; /* of the block in the making */
    size_t n_words;
    uint64_t base_tick;
};

void log_maker_fini(struct log_maker *log);

/* A block of any content; lengths, magic and checksum are filled in. Returns its offset. */
size_t log_put_block(struct log_maker *log, struct marey__block block, const void *packed,
                     size_t len);

/* A LOG block with pid 100, rank 0, a command and a clock of 1 GHz; `extra` is one more key, NULL for none. */
void log_put_process(struct log_maker *log, const char *extra_key, const char *extra_value);
void log_put_pairs(struct log_maker *log, enum marey__block_type type, const char *const *pairs);
void log_put_site(struct log_maker *log, uint32_t id, const char *name);
/* With a category and a domain, and no file. */
void log_put_site_of(struct log_maker *log, uint32_t id, const char *name, const char *category,
                     const char *domain);
void log_put_lane(struct log_maker *log, uint32_t lane, int64_t tid, const char *name);
/* A lane of kind MAREY_LANE_GPU. */
void log_put_stream(struct log_maker *log, uint32_t lane, int32_t device, uint32_t stream,
                    const char *name);
void log_put_moment(struct log_maker *log, uint64_t tick, uint64_t monotonic_ns);
void log_put_end(struct log_maker *log, const char *how);

/* Words of the next block, ticks from `base_tick`. */
void log_word(struct log_maker *log, uint64_t tick, enum marey_kind kind, uint32_t id);
void log_begin(struct log_maker *log, uint64_t tick, uint32_t site);
void log_end(struct log_maker *log, uint64_t tick, uint32_t site);
void log_record(struct log_maker *log, uint64_t tick, enum marey_record_type type,
                const uint64_t *words, size_t n);
void log_iteration(struct log_maker *log, uint64_t tick, uint64_t number, bool is_warmup,
                   double samples);
void log_iteration_begin(struct log_maker *log, uint64_t tick, uint64_t number);
void log_epoch(struct log_maker *log, uint64_t tick, uint64_t number, bool begins);
void log_phase(struct log_maker *log, uint64_t tick, uint32_t site);
void log_end_of(struct log_maker *log, uint64_t tick, uint32_t site);
void log_repeat(struct log_maker *log, uint64_t tick, uint64_t n_calls);
/* GPU work of a stream's lane, from `tick` on for `duration` ticks. */
void log_work(struct log_maker *log, uint64_t tick, uint32_t site, enum marey_work_kind kind,
              uint64_t duration, uint64_t correlation, uint64_t bytes);
/* Launch, arguments and communication of the innermost range, or of the preceding GPU activity. */
void log_launch(struct log_maker *log, uint64_t tick, uint64_t correlation);
void log_arguments(struct log_maker *log, uint64_t tick, const char *text);
void log_communication(struct log_maker *log, uint64_t tick, const struct marey_communication *what);
void log_flow(struct log_maker *log, uint64_t tick, uint32_t site, uint64_t id,
              enum marey_flow_end end);
/* Write them as a block, compressed like the writer's or not. Returns its offset. */
size_t log_put_words(struct log_maker *log, uint32_t lane, uint32_t sequence);
size_t log_put_bare_words(struct log_maker *log, uint32_t lane, uint32_t sequence);

/* `n` ranges of site 1 on lane 0, 3 ticks each, in blocks of 4000 words. */
void log_put_ranges(struct log_maker *log, uint64_t n);

/* A process with sites "outer", "inner", "leaf" (1 to 3), lane 0 "main" and a clock that starts at 0. */
void log_put_preamble(struct log_maker *log);

/* Write the log to a new file and open that. Close also removes the file. */
marey_status log_open(const struct log_maker *log, marey_recording **out);
void log_close(marey_recording *recording);
/* A new file with the bytes; the caller removes it. */
void log_write(const void *bytes, size_t len, char path[64]);

#endif
