/*
 * Pass 2 over a log: words, block by block as they were written, or those of one lane. Each is
 * unpacked and handed on in batches (log_batches.c). Who needs all threads together in order of time
 * has log_order.c.
 */
#include "read/read_internal.h"

struct visit {
    const struct kymo__log_file *log;
    kymo_visitor *visitor;
    void *ctx;
    struct kymo__block_reader reader;
    struct kymo__unpacker unpacker;
    struct kymo__sparse lanes; /* struct kymo__lane_state by number */
    uint64_t *words;
};

/* ---- blocks and chunks ---- */

/* The lane of `number` when `sequence` is new there; else NULL, or on `*status`. */
static struct kymo__lane_state *enter_lane(struct visit *visit, uint32_t number, uint32_t sequence,
                                           const struct kymo_lane_info **info, kymo_status *status)
{
    *status = KYMO_OK;
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

static kymo_status visit_chunk(struct visit *visit, const struct kymo__pool_chunk *chunk)
{
    kymo_status status;
    struct kymo__run run = {.log = visit->log,
                            .words = visit->log->pool.words + chunk->first_word,
                            .n = chunk->n_words,
                            .base_tick = chunk->base_tick,
                            .visitor = visit->visitor,
                            .ctx = visit->ctx};
    run.state = enter_lane(visit, chunk->lane, chunk->sequence, &run.lane, &status);
    return run.state != NULL ? kymo__run_hand_on(&run, true) : status;
}

/* ---- all of them, or a lane's ---- */

static kymo_status visit_blocks(struct visit *visit)
{
    const struct kymo__pool_copy *pool = &visit->log->pool;
    for (;;) {
        struct kymo__block block;
        const uint8_t *packed;
        bool done;
        KYMO_TRY(kymo__block_reader_next(&visit->reader, &block, &packed, &done));
        if (done)
            break;
        KYMO_TRY(visit_block(visit, &block, packed));
    }
    for (size_t i = 0; i < pool->n_chunks; i++)
        KYMO_TRY(visit_chunk(visit, &pool->chunks[i]));
    return KYMO_OK;
}

/* The block of a piece, unless the file has changed since it was seen. */
static kymo_status visit_piece(struct visit *visit, const struct kymo__piece *piece)
{
    struct kymo__block block;
    const uint8_t *packed;
    bool done;
    visit->reader.offset = piece->at;
    KYMO_TRY(kymo__block_reader_next(&visit->reader, &block, &packed, &done));
    if (done || block.lane != piece->lane || block.sequence != piece->sequence)
        return KYMO_OK;
    return visit_block(visit, &block, packed);
}

static kymo_status visit_pieces(struct visit *visit, uint32_t number)
{
    visit->reader.read_ahead = KYMO__NEAR_BYTES;
    while (number != 0) {
        const struct kymo__piece *piece = &visit->log->pieces[number - 1];
        KYMO_TRY(piece->is_in_pool ? visit_chunk(visit, &visit->log->pool.chunks[piece->at])
                                   : visit_piece(visit, piece));
        number = piece->next;
    }
    return KYMO_OK;
}

/* All of it, or with a piece those of its lane from that one on. */
static kymo_status visit_log(const struct kymo__log_file *log, uint32_t first_piece,
                             kymo_visitor *visitor, void *ctx)
{
    struct visit visit = {.log = log, .visitor = visitor, .ctx = ctx};
    KYMO_TRY(kymo__log_file_acquire(log, &visit.reader));
    kymo_status status = KYMO_OK;
    visit.words = kymo__alloc(KYMO__MAX_WORDS_BYTES);
    if (!kymo__unpacker_init(&visit.unpacker) || visit.words == NULL)
        status = kymo__fail(KYMO_ENOMEM, "no memory to read %s", log->info.log_path);
    if (status == KYMO_OK)
        status = first_piece != 0 ? visit_pieces(&visit, first_piece) : visit_blocks(&visit);
    kymo__unpacker_fini(&visit.unpacker);
    kymo__free(visit.words);
    kymo__sparse_fini(&visit.lanes);
    kymo__log_file_release(log, &visit.reader);
    return status;
}

kymo_status kymo__log_file_visit(const struct kymo__log_file *log, kymo_visitor *visitor, void *ctx)
{
    return visit_log(log, 0, visitor, ctx);
}

kymo_status kymo__log_file_visit_lane(const struct kymo__log_file *log, uint32_t number,
                                      kymo_visitor *visitor, void *ctx)
{
    const struct kymo__log_lane *lane = kymo__sparse_get(&log->lanes, number, sizeof *lane);
    if (lane == NULL || lane->first_piece == 0)
        return KYMO_OK;
    return visit_log(log, lane->first_piece, visitor, ctx);
}
