/*
 * Pass 2 over a log: decodes words block by block in the order written, or those of one lane, and
 * passes them on in batches (log_batches.c). log_order.c delivers all threads in order of time.
 */
#include "read/internal.h"

struct visit {
    const struct marey__log_file *log;
    marey_visitor *visitor;
    void *ctx;
    struct marey__block_reader reader;
    struct marey__unpacker unpacker;
    struct marey__sparse lanes; /* struct marey__lane_state by number */
    uint64_t *words;
};

/* ---- blocks and chunks ---- */

/* The lane of `number` if `sequence` is new there; else NULL, with the reason in `*status`. */
static struct marey__lane_state *enter_lane(struct visit *visit, uint32_t number, uint32_t sequence,
                                            const struct marey_lane_info **info, marey_status *status)
{
    *status = MAREY_OK;
    const struct marey__log_lane *lane =
        number < MAREY__MAX_LANES ? marey__sparse_get(&visit->log->lanes, number, sizeof *lane)
                                  : NULL;
    if (lane == NULL || !lane->is_known)
        return NULL;
    struct marey__lane_state *state = marey__sparse_make(&visit->lanes, number, sizeof *state);
    if (state == NULL) {
        *status = marey__no_memory();
        return NULL;
    }
    int gap;
    if (!marey__sequence_is_new(sequence, &state->next_sequence, &gap))
        return NULL;
    state->gap |= gap;
    *info = &lane->info;
    return state;
}

static marey_status visit_block(struct visit *visit, const struct marey__block *block,
                                const uint8_t *packed)
{
    const size_t n = block->raw_len / 8;
    if (!marey__block_has_words(block))
        return MAREY_OK;
    marey_status status;
    struct marey__run run = {.log = visit->log,
                             .words = visit->words,
                             .n = n,
                             .base_tick = block->first_tick,
                             .visitor = visit->visitor,
                             .ctx = visit->ctx};
    run.state = enter_lane(visit, block->lane, block->sequence, &run.lane, &status);
    if (run.state == NULL)
        return status;
    bool may_have_records;
    if (!marey__unpack_block(&visit->unpacker, block, packed, visit->words, &may_have_records)) {
        run.state->gap = 1; /* its checksum is valid, so it was written incorrectly */
        return MAREY_OK;
    }
    return marey__run_deliver(&run, may_have_records);
}

static marey_status visit_chunk(struct visit *visit, const struct marey__pool_chunk *chunk)
{
    marey_status status;
    struct marey__run run = {.log = visit->log,
                             .words = visit->log->pool.words + chunk->first_word,
                             .n = chunk->n_words,
                             .base_tick = chunk->base_tick,
                             .visitor = visit->visitor,
                             .ctx = visit->ctx};
    run.state = enter_lane(visit, chunk->lane, chunk->sequence, &run.lane, &status);
    return run.state != NULL ? marey__run_deliver(&run, true) : status;
}

/* ---- all of them, or a lane's ---- */

static marey_status visit_blocks(struct visit *visit)
{
    const struct marey__pool_copy *pool = &visit->log->pool;
    for (;;) {
        struct marey__block block;
        const uint8_t *packed;
        bool done;
        MAREY_TRY(marey__block_reader_next(&visit->reader, &block, &packed, &done));
        if (done)
            break;
        MAREY_TRY(visit_block(visit, &block, packed));
    }
    for (size_t i = 0; i < pool->n_chunks; i++)
        MAREY_TRY(visit_chunk(visit, &pool->chunks[i]));
    return MAREY_OK;
}

/* Visit the block of a piece, unless the file has changed since pass 1. */
static marey_status visit_piece(struct visit *visit, const struct marey__piece *piece)
{
    struct marey__block block;
    const uint8_t *packed;
    bool done;
    visit->reader.offset = piece->at;
    MAREY_TRY(marey__block_reader_next(&visit->reader, &block, &packed, &done));
    if (done || block.lane != piece->lane || block.sequence != piece->sequence)
        return MAREY_OK;
    return visit_block(visit, &block, packed);
}

static marey_status visit_pieces(struct visit *visit, uint32_t number)
{
    visit->reader.read_ahead = MAREY__NEAR_BYTES;
    while (number != 0) {
        const struct marey__piece *piece = &visit->log->pieces[number - 1];
        MAREY_TRY(piece->is_in_pool ? visit_chunk(visit, &visit->log->pool.chunks[piece->at])
                                    : visit_piece(visit, piece));
        number = piece->next;
    }
    return MAREY_OK;
}

/* Visit the whole log, or with a piece only its lane from there on. */
static marey_status visit_log(const struct marey__log_file *log, uint32_t first_piece,
                              marey_visitor *visitor, void *ctx)
{
    struct visit visit = {.log = log, .visitor = visitor, .ctx = ctx};
    MAREY_TRY(marey__log_file_acquire(log, &visit.reader));
    marey_status status = MAREY_OK;
    visit.words = marey__alloc(MAREY__MAX_WORDS_BYTES);
    if (!marey__unpacker_init(&visit.unpacker) || visit.words == NULL)
        status = marey__no_memory();
    if (status == MAREY_OK)
        status = first_piece != 0 ? visit_pieces(&visit, first_piece) : visit_blocks(&visit);
    marey__unpacker_fini(&visit.unpacker);
    marey__free(visit.words);
    marey__sparse_fini(&visit.lanes);
    marey__log_file_release(log, &visit.reader);
    return status;
}

marey_status marey__log_file_visit(const struct marey__log_file *log, marey_visitor *visitor,
                                   void *ctx)
{
    return visit_log(log, 0, visitor, ctx);
}

marey_status marey__log_file_visit_lane(const struct marey__log_file *log, uint32_t number,
                                        marey_visitor *visitor, void *ctx)
{
    const struct marey__log_lane *lane = marey__sparse_get(&log->lanes, number, sizeof *lane);
    if (lane == NULL || lane->first_piece == 0)
        return MAREY_OK;
    return visit_log(log, log->pieces != NULL ? lane->first_piece : 0, visitor, ctx);
}
