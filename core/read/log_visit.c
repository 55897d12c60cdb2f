/*
 * Pass 2 over a log: words, block by block as they were written. Each is unpacked and handed on in
 * batches (log_batches.c). Who needs all threads together in order of time has log_order.c.
 */
#include "read/read_internal.h"

struct visit {
    const struct kymo__log_file *log;
    uint32_t lane; /* the one that is wanted, or KYMO__ALL_LANES */
    kymo_visitor *visitor;
    void *ctx;
    struct kymo__unpacker unpacker;
    struct kymo__sparse lanes; /* struct kymo__lane_state by number */
    uint64_t *words;
};

/* ---- blocks and chunks ---- */

/* The lane of `number` when it is wanted and `sequence` is new there; else NULL, or on `*status`. */
static struct kymo__lane_state *enter_lane(struct visit *visit, uint32_t number, uint32_t sequence,
                                           const struct kymo_lane_info **info, kymo_status *status)
{
    *status = KYMO_OK;
    if (visit->lane != KYMO__ALL_LANES && visit->lane != number)
        return NULL;
    const struct kymo__log_lane *lane =
        number < KYMO__MAX_LANES ? kymo__sparse_get(&visit->log->lanes, number, sizeof *lane) : NULL;
    if (lane == NULL || !lane->is_known)
        return NULL;
    struct kymo__lane_state *state = kymo__sparse_make(&visit->lanes, number, sizeof *state);
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

static kymo_status visit_block(struct visit *visit, const struct kymo__block *block,
                               const uint8_t *packed)
{
    const size_t n = block->raw_len / 8;
    if (!kymo__block_has_words(block))
        return KYMO_OK;
    kymo_status status;
    struct kymo__run run = {.log = visit->log,
                            .words = visit->words,
                            .n = n,
                            .base_tick = block->first_tick,
                            .visitor = visit->visitor,
                            .ctx = visit->ctx};
    run.state = enter_lane(visit, block->lane, block->sequence, &run.lane, &status);
    if (run.state == NULL)
        return status;
    bool may_have_records;
    if (!kymo__unpack_block(&visit->unpacker, block, packed, visit->words, &may_have_records)) {
        run.state->gap = 1; /* its checksum was right, so this was written wrongly */
        return KYMO_OK;
    }
    return kymo__run_hand_on(&run, may_have_records);
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
        struct kymo__run run = {.log = visit->log,
                                .words = pool->words + chunk->first_word,
                                .n = chunk->n_words,
                                .base_tick = chunk->base_tick,
                                .visitor = visit->visitor,
                                .ctx = visit->ctx};
        run.state = enter_lane(visit, chunk->lane, chunk->sequence, &run.lane, &status);
        if (run.state == NULL) {
            KYMO_TRY(status);
            continue;
        }
        KYMO_TRY(kymo__run_hand_on(&run, true));
    }
    return KYMO_OK;
}

kymo_status kymo__log_file_visit(const struct kymo__log_file *log, uint32_t lane,
                                 kymo_visitor *visitor, void *ctx)
{
    struct kymo__block_reader reader;
    KYMO_TRY(kymo__log_file_acquire(log, &reader));
    struct visit visit = {
        .log = log,
        .lane = lane,
        .visitor = visitor,
        .ctx = ctx,
        .words = kymo__alloc(KYMO__MAX_WORDS_BYTES),
    };
    kymo_status status;
    if (!kymo__unpacker_init(&visit.unpacker) || visit.words == NULL)
        status = kymo__fail(KYMO_ENOMEM, "no memory to read %s", log->info.log_path);
    else
        status = visit_blocks(&visit, &reader);
    if (status == KYMO_OK)
        status = visit_pool(&visit);
    kymo__unpacker_fini(&visit.unpacker);
    kymo__free(visit.words);
    kymo__sparse_fini(&visit.lanes);
    kymo__log_file_release(log, &reader);
    return status;
}
