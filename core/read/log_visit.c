/*
 * Pass 2 over a log: words. Each block is unpacked, its records are checked, and it is handed on in
 * batches that each lie on one segment of the clock.
 *
 * Nearly every block is one batch: nothing in it is a record and the clock's slope does not change,
 * and then no word is looked at here at all. A block with records is walked once.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "read/read_internal.h"

struct lane_state {
    uint64_t next_sequence;
    uint64_t last_ns; /* of its latest word */
    int gap;          /* words are missing before the next batch */
};

struct visit {
    const struct kymo__log_file *log;
    uint32_t lane; /* the one that is wanted, or KYMO__ALL_LANES */
    kymo_visitor *visitor;
    void *ctx;
    ZSTD_DCtx *zstd;
    struct kymo__sparse lanes; /* struct lane_state by number */
    uint8_t *planes;
    uint64_t *words;
};

/* Words of one lane, relative to one tick. */
struct run {
    struct lane_state *state;
    const struct kymo_lane_info *lane;
    const uint64_t *words;
    size_t n;
    uint64_t base_tick;
};

/* ---- batches ---- */

/*
 * Hand on words [from, to) of the run, on clock segment `segment`; `last` is the last that is no
 * part of a record.
 */
static kymo_status hand_on(struct visit *visit, const struct run *run, size_t from, size_t to,
                           size_t last, size_t segment)
{
    if (from == to)
        return KYMO_OK;
    __extension__ typedef unsigned __int128 u128;
    const struct kymo__clock_segment *s = &visit->log->clock.segments[segment];
    const bool is_behind = run->base_tick >= s->tick;
    const uint64_t away = is_behind ? run->base_tick - s->tick : s->tick - run->base_tick;
    const uint64_t away_ns = (uint64_t)(((u128)away * s->mult) >> 40);
    struct kymo_batch batch = {
        .process = &visit->log->info,
        .lane = run->lane,
        .words = run->words + from,
        .n = to - from,
        .gap = run->state->gap,
        .base_ns = is_behind ? s->base_ns + away_ns : s->base_ns - away_ns,
        .ns_mult = s->mult,
    };
    /*
     * Rounding may put a batch's first word a nanosecond before the last of the batch before; time
     * stands still then.
     */
    const uint64_t first_ns = kymo_batch_ns(&batch, batch.words[0]);
    if (first_ns < run->state->last_ns && run->state->last_ns - first_ns <= 2)
        batch.base_ns += run->state->last_ns - first_ns;
    run->state->last_ns = kymo_batch_ns(&batch, run->words[last]);
    run->state->gap = 0;
    return visit->visitor(visit->ctx, &batch);
}

/* The number of ticks, relative to `base`, at which segment `i` ends. */
static uint64_t end_of_segment(const struct kymo__clock_map *clock, size_t i, uint64_t base)
{
    if (i + 1 >= clock->n)
        return UINT64_MAX;
    const uint64_t end = clock->segments[i + 1].tick;
    return end > base ? end - base : 0;
}

/*
 * Whether a record of a known type has the words it needs. Unknown types pass: who does not know
 * them skips them.
 */
static bool is_sound_record(const uint64_t *words, size_t n)
{
    const size_t length = kymo_record_length(words[0]);
    const uint32_t type = kymo_record_type_of(words[0]);
    if (length == 0 || length > n)
        return false;
    if (type == KYMO_RECORD_COUNTER || type == KYMO_RECORD_ASYNC_BEGIN ||
        type == KYMO_RECORD_ASYNC_END || type == KYMO_RECORD_GAP)
        return length >= 3;
    if (type != KYMO_RECORD_BEGIN && type != KYMO_RECORD_MARK)
        return true;
    if (length < 2)
        return false;
    const uint32_t payload = kymo_record_payload_type(words[1]);
    if (payload == 4) /* KYMO_PAYLOAD_TEXT */
        return kymo_record_text_len(words[1]) <= (length - 2) * 8;
    return payload == 0 || length >= 3;
}

/* Cut a run into batches at clock segments and at records that are unsound. */
static kymo_status walk_run(struct visit *visit, const struct run *run)
{
    const struct kymo__clock_map *clock = &visit->log->clock;
    const uint64_t *words = run->words;
    size_t from = 0, last = 0, i = 0;
    size_t segment = kymo__clock_map_find(clock, run->base_tick + kymo_word_ticks(words[0]));
    uint64_t end = end_of_segment(clock, segment, run->base_tick);
    while (i < run->n) {
        const uint64_t ticks = kymo_word_ticks(words[i]);
        if (ticks >= end) {
            KYMO_TRY(hand_on(visit, run, from, i, last, segment));
            from = i;
            segment = kymo__clock_map_find(clock, run->base_tick + ticks);
            end = end_of_segment(clock, segment, run->base_tick);
        }
        if (kymo_word_kind(words[i]) != KYMO_KIND_RECORD) {
            last = i++;
            continue;
        }
        const size_t length = kymo_record_length(words[i]);
        if (is_sound_record(words + i, run->n - i)) {
            last = i;
            i += length;
            continue;
        }
        KYMO_TRY(hand_on(visit, run, from, i, last, segment));
        /*
         * One that runs over the end takes the rest with it: nothing says where the next word
         * begins.
         */
        i = length == 0 || length > run->n - i ? run->n : i + length;
        from = i;
        run->state->gap = 1;
    }
    return hand_on(visit, run, from, run->n < i ? run->n : i, last, segment);
}

static kymo_status take_run(struct visit *visit, const struct run *run, bool may_have_records)
{
    const struct kymo__clock_map *clock = &visit->log->clock;
    const size_t last = run->n - 1;
    const size_t segment =
        kymo__clock_map_find(clock, run->base_tick + kymo_word_ticks(run->words[0]));
    const bool is_one =
        kymo_word_ticks(run->words[last]) < end_of_segment(clock, segment, run->base_tick);
    if (KYMO_LIKELY(is_one && !may_have_records))
        return hand_on(visit, run, 0, run->n, last, segment);
    return walk_run(visit, run);
}

/* ---- blocks and chunks ---- */

/* The lane of `number` when it is wanted and `sequence` is new there; else NULL, or on `*status`. */
static struct lane_state *enter_lane(struct visit *visit, uint32_t number, uint32_t sequence,
                                     const struct kymo_lane_info **info, kymo_status *status)
{
    *status = KYMO_OK;
    if (visit->lane != KYMO__ALL_LANES && visit->lane != number)
        return NULL;
    const struct kymo__log_lane *lane =
        number < KYMO__MAX_LANES ? kymo__sparse_get(&visit->log->lanes, number, sizeof *lane) : NULL;
    if (lane == NULL || !lane->is_known)
        return NULL;
    struct lane_state *state = kymo__sparse_make(&visit->lanes, number, sizeof *state);
    if (state == NULL) {
        *status = kymo__fail(KYMO_ENOMEM, "no memory to read %s", visit->log->info.log_path);
        return NULL;
    }
    int gap;
    if (!kymo__sequence_is_new(sequence, &state->next_sequence, &gap))
        return NULL;
    state->gap |= gap;
    *info = &lane->info;
    return state;
}

/* The words of a block into visit->words. False when they cannot be had. */
static bool unpack_block(struct visit *visit, const struct kymo__block *block,
                         const uint8_t *packed, bool *may_have_records)
{
    const uint8_t *raw = packed;
    const size_t n = block->raw_len / 8;
    if ((block->flags & KYMO__FLAG_ZSTD) != 0) {
        const size_t got = ZSTD_decompressDCtx(visit->zstd, visit->planes, block->raw_len, packed,
                                               block->packed_len);
        if (ZSTD_isError(got) || got != block->raw_len)
            return false;
        raw = visit->planes;
    } else if (block->packed_len != block->raw_len) {
        return false;
    }
    if ((block->flags & KYMO__FLAG_PLANES) != 0) {
        *may_have_records = kymo__unpack_words(raw, visit->words, n);
    } else {
        memcpy(visit->words, raw, n * sizeof *visit->words);
        *may_have_records = kymo__words_have_records(visit->words, n);
    }
    return true;
}

static kymo_status visit_block(struct visit *visit, const struct kymo__block *block,
                               const uint8_t *packed)
{
    const size_t n = block->raw_len / 8;
    if (block->type != KYMO__BLOCK_WORDS || block->version > KYMO__LOG_VERSION ||
        block->raw_len > KYMO__MAX_WORDS_BYTES || block->raw_len % 8 != 0 || n == 0)
        return KYMO_OK;
    kymo_status status;
    struct run run = {.words = visit->words, .n = n, .base_tick = block->first_tick};
    run.state = enter_lane(visit, block->lane, block->sequence, &run.lane, &status);
    if (run.state == NULL)
        return status;
    bool may_have_records;
    if (!unpack_block(visit, block, packed, &may_have_records)) {
        run.state->gap = 1; /* its checksum was right, so this was written wrongly */
        return KYMO_OK;
    }
    return take_run(visit, &run, may_have_records);
}

static kymo_status visit_blocks(struct visit *visit, struct kymo__block_reader *reader)
{
    for (;;) {
        struct kymo__block block;
        const uint8_t *packed;
        bool done;
        KYMO_TRY(kymo__block_reader_next(reader, &block, &packed, &done));
        if (done)
            return KYMO_OK;
        KYMO_TRY(visit_block(visit, &block, packed));
    }
}

static kymo_status visit_pool(struct visit *visit)
{
    const struct kymo__pool_copy *pool = &visit->log->pool;
    for (size_t i = 0; i < pool->n_chunks; i++) {
        const struct kymo__pool_chunk *chunk = &pool->chunks[i];
        kymo_status status;
        struct run run = {.words = pool->words + chunk->first_word,
                          .n = chunk->n_words,
                          .base_tick = chunk->base_tick};
        run.state = enter_lane(visit, chunk->lane, chunk->sequence, &run.lane, &status);
        if (run.state == NULL) {
            KYMO_TRY(status);
            continue;
        }
        KYMO_TRY(take_run(visit, &run, true));
    }
    return KYMO_OK;
}

kymo_status kymo__log_file_visit(const struct kymo__log_file *log, uint32_t lane,
                                 kymo_visitor *visitor, void *ctx)
{
    const int fd = open(log->info.log_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kymo__fail_errno("open %s", log->info.log_path);
    struct kymo__block_reader reader;
    kymo__block_reader_init(&reader, fd, log->info.log_path, log->size);
    struct visit visit = {
        .log = log,
        .lane = lane,
        .visitor = visitor,
        .ctx = ctx,
        .zstd = ZSTD_createDCtx(),
        .planes = kymo__alloc(KYMO__MAX_WORDS_BYTES),
        .words = kymo__alloc(KYMO__MAX_WORDS_BYTES),
    };
    kymo_status status;
    if (visit.zstd == NULL || visit.planes == NULL || visit.words == NULL)
        status = kymo__fail(KYMO_ENOMEM, "no memory to read %s", log->info.log_path);
    else
        status = visit_blocks(&visit, &reader);
    if (status == KYMO_OK)
        status = visit_pool(&visit);
    ZSTD_freeDCtx(visit.zstd);
    kymo__free(visit.planes);
    kymo__free(visit.words);
    kymo__sparse_fini(&visit.lanes);
    kymo__block_reader_fini(&reader);
    close(fd);
    return status;
}
