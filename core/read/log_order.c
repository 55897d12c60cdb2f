/*
 * Pass 2 over a log, all lanes together: iterations, epochs and phases are recorded on one thread and hold for all, so
 * code that joins them with the other threads' events needs them in order of time.
 *
 * A log has blocks in the order in which they were filled; a thread with few events is written long after the others. So
 * each lane has a cursor with one decoded block. The events between lanes need no order, which would cost a comparison
 * each: words are delivered in stretches that end at a record of the whole process, or at the end of a lane's block, after
 * which nothing is known yet. A cursor is opened when its lane starts, so that programs with many short threads hold few
 * blocks. There may be a hundred thousand lanes, so two heaps find the lane whose stretch ends first and those with words
 * before that.
 *
 *   lane 0   ──words──I──words──────I──words──|         I: an iteration ends
 *   lane 1   ──────────────words─────────|   ^
 *                     ^             ^    ^   all lanes are delivered up to these times, one after another
 */
#include "read/internal.h"

#define MAX_HELD_WORDS (UINT64_C(64) << 20)
#define NO_PIECE UINT32_MAX /* 0 - 1: not a piece */

struct cursor {
    struct marey__lane_state state;
    const struct marey_lane_info *info;
    uint32_t next_piece;
    uint64_t *words; /* of one piece; its batches point into it */
    size_t words_cap;
    struct marey_batch *batches; /* the current one without the words already delivered */
    size_t n_batches, batches_cap, at;
    bool has_records;
    size_t stop; /* words of the current batch up to and including its first record about the process; 0: none */
    uint64_t limit_ns; /* time of that record, or of the last word */
    uint64_t next_ns;  /* time of the first word of the current batch */
    uint32_t number;   /* among the starts */
};

struct order {
    const struct marey__log_file *log;
    marey_visitor *visitor;
    void *ctx;
    struct marey__block_reader reader;
    struct marey__unpacker unpacker;
    uint32_t *starts; /* each lane's first piece, by time */
    size_t n_starts, n_started;
    struct cursor **cursors; /* by number; NULL: not begun, or ended */
    struct marey__heap by_limit, by_next;
};

/* ---- a piece ---- */

/* Decode the words of a block that was intact in pass 1; `*run` is empty if the file has changed since. */
static marey_status read_block(struct order *order, struct cursor *cursor,
                               const struct marey__piece *piece, struct marey__run *run)
{
    struct marey__block block;
    const uint8_t *packed;
    bool done;
    order->reader.offset = piece->at;
    MAREY_TRY(marey__block_reader_next(&order->reader, &block, &packed, &done));
    if (done || !marey__block_has_words(&block) || block.lane != piece->lane ||
        block.sequence != piece->sequence)
        return MAREY_OK;
    const size_t n = block.raw_len / 8;
    MAREY__TRY_MEMORY(marey__grow(&cursor->words, &cursor->words_cap, n, sizeof *cursor->words));
    if (!marey__unpack_block(&order->unpacker, &block, packed, cursor->words, &cursor->has_records))
        return MAREY_OK;
    run->words = cursor->words;
    run->n = n;
    run->base_tick = block.first_tick;
    return MAREY_OK;
}

static void read_chunk(const struct order *order, struct cursor *cursor,
                       const struct marey__piece *piece, struct marey__run *run)
{
    const struct marey__pool_chunk *chunk = &order->log->pool.chunks[piece->at];
    cursor->has_records = true;
    run->words = order->log->pool.words + chunk->first_word;
    run->n = chunk->n_words;
    run->base_tick = chunk->base_tick;
}

static marey_status keep_batch(void *ctx, const struct marey_batch *batch)
{
    struct cursor *cursor = ctx;
    MAREY__TRY_MEMORY(MAREY__PUSH(cursor->batches, cursor->n_batches, cursor->batches_cap, *batch));
    return MAREY_OK;
}

/* Load the lane's next piece as the current batches. An unreadable piece leaves none, and a gap. */
static marey_status take_piece(struct order *order, struct cursor *cursor)
{
    const struct marey__piece *piece = &order->log->pieces[cursor->next_piece];
    struct marey__run run = {.log = order->log,
                             .state = &cursor->state,
                             .lane = cursor->info,
                             .visitor = keep_batch,
                             .ctx = cursor};
    int gap;
    if (marey__sequence_is_new(piece->sequence, &cursor->state.next_sequence, &gap))
        cursor->state.gap |= gap;
    cursor->next_piece = piece->next - 1; /* NO_PIECE after the last */
    cursor->n_batches = cursor->at = 0;
    if (piece->is_in_pool)
        read_chunk(order, cursor, piece, &run);
    else
        MAREY_TRY(read_block(order, cursor, piece, &run));
    if (run.n == 0) {
        cursor->state.gap = 1;
        return MAREY_OK;
    }
    return marey__run_deliver(&run, cursor->has_records);
}

/* ---- a lane ---- */

static bool is_record_of(uint64_t word, uint32_t first, uint32_t last)
{
    return marey_word_kind(word) == MAREY_KIND_RECORD && marey_record_type_of(word) >= first &&
           marey_record_type_of(word) <= last;
}

static size_t step_of(uint64_t word)
{
    return marey_word_kind(word) == MAREY_KIND_RECORD ? marey_record_length(word) : 1;
}

/* How far the current batch may be delivered without looking at other lanes. */
static void find_limit(struct cursor *cursor)
{
    const struct marey_batch *batch = &cursor->batches[cursor->at];
    size_t last = batch->n - 1;
    cursor->stop = 0;
    for (size_t i = 0; cursor->has_records && i < batch->n; i += step_of(batch->words[i])) {
        last = i;
        if (is_record_of(batch->words[i], MAREY_RECORD_ITERATION, MAREY_RECORD_PHASE) ||
            is_record_of(batch->words[i], MAREY_RECORD_STEP_HINT, MAREY_RECORD_STEP_HINT)) {
            cursor->stop = i + step_of(batch->words[i]);
            break;
        }
    }
    cursor->limit_ns = marey_batch_ns(batch, batch->words[last]);
    cursor->next_ns = marey_batch_ns(batch, batch->words[0]);
}

static marey_status report_gap(const struct order *order, const struct cursor *cursor)
{
    static const uint64_t none;
    const struct marey_batch batch = {.words = &none,
                                      .process = &order->log->info,
                                      .lane = cursor->info,
                                      .gap = 1,
                                      .ns_mult = UINT64_C(1) << 40};
    return order->visitor(order->ctx, &batch);
}

/* Advance to the next batch, from the next piece if needed; sets `*done` at the end of the lane. */
static marey_status next_batch(struct order *order, struct cursor *cursor, bool *done)
{
    cursor->at++;
    *done = false;
    while (cursor->at >= cursor->n_batches) {
        if (cursor->next_piece == NO_PIECE) {
            *done = true;
            return order->log->info.lost_events != 0 ? report_gap(order, cursor) : MAREY_OK;
        }
        MAREY_TRY(take_piece(order, cursor));
    }
    find_limit(cursor);
    const struct marey_batch *batch = &cursor->batches[cursor->at];
    if (batch->gap || is_record_of(batch->words[0], MAREY_RECORD_GAP, MAREY_RECORD_GAP))
        return report_gap(order, cursor);
    return MAREY_OK;
}

/* How many words of the current batch are before `ns`. */
static size_t count_before(const struct cursor *cursor, uint64_t ns)
{
    const struct marey_batch *batch = &cursor->batches[cursor->at];
    size_t n = 0;
    if (cursor->has_records) {
        while (n < batch->n && marey_batch_ns(batch, batch->words[n]) < ns)
            n += step_of(batch->words[n]);
        return cursor->stop != 0 ? MAREY__MIN(n, cursor->stop) : n;
    }
    MAREY__BISECT(n, 0, batch->n, marey_batch_ns(batch, batch->words[n]) < ns);
    return n;
}

/* Deliver the first `n` words of the current batch. */
static marey_status deliver(struct order *order, struct cursor *cursor, size_t n, bool *done)
{
    *done = false;
    if (n == 0)
        return MAREY_OK;
    struct marey_batch *batch = &cursor->batches[cursor->at];
    struct marey_batch part = *batch;
    part.n = n;
    MAREY_TRY(order->visitor(order->ctx, &part));
    batch->words += n;
    batch->n -= n;
    batch->gap = 0;
    if (batch->n == 0)
        return next_batch(order, cursor, done);
    cursor->next_ns = marey_batch_ns(batch, batch->words[0]);
    if (cursor->stop == n)
        find_limit(cursor);
    else if (cursor->stop != 0)
        cursor->stop -= n;
    return MAREY_OK;
}

/* ---- all lanes ---- */

static void free_cursor(struct cursor *cursor)
{
    if (cursor == NULL)
        return;
    MAREY__FREE_ALL(cursor->words, cursor->batches, cursor);
}

/* Update the cursor's heap keys. Returns false on out of memory, which is possible only for a new cursor. */
static bool sort_in(struct order *order, const struct cursor *cursor)
{
    return marey__heap_put(&order->by_limit, cursor->number, cursor->limit_ns) &&
           marey__heap_put(&order->by_next, cursor->number, cursor->next_ns);
}

static marey_status deliver_from(struct order *order, struct cursor *cursor, size_t n)
{
    bool done;
    MAREY_TRY(deliver(order, cursor, n, &done));
    if (!done)
        return sort_in(order, cursor) ? MAREY_OK : marey__no_memory();
    marey__heap_remove(&order->by_limit, cursor->number);
    marey__heap_remove(&order->by_next, cursor->number);
    order->cursors[cursor->number] = NULL;
    free_cursor(cursor);
    return MAREY_OK;
}

/* Deliver the words of all other lanes before the earliest limit, then that lane's words up to it. */
static marey_status deliver_stretch(struct order *order)
{
    const uint64_t limit_ns = order->by_limit.items[0].key;
    struct cursor *const earliest = order->cursors[order->by_limit.items[0].number];
    earliest->next_ns = UINT64_MAX; /* it waits for the others */
    MAREY__TRY_MEMORY(sort_in(order, earliest));
    while (order->by_next.items[0].key < limit_ns) {
        struct cursor *next = order->cursors[order->by_next.items[0].number];
        MAREY_TRY(deliver_from(order, next, count_before(next, limit_ns)));
    }
    return deliver_from(order, earliest,
                        earliest->stop != 0 ? earliest->stop : earliest->batches[earliest->at].n);
}

/* ---- starts of lanes ---- */

/* When the lane of this first piece starts; 0 (at once) if earlier pieces are missing. */
static uint64_t start_tick(const struct marey__piece *piece)
{
    return piece->sequence != 0 ? 0 : piece->first_tick;
}

static int by_start(const void *a, const void *b, void *pieces)
{
    const struct marey__piece *x = (const struct marey__piece *)pieces + *(const uint32_t *)a,
                              *y = (const struct marey__piece *)pieces + *(const uint32_t *)b;
    if (start_tick(x) != start_tick(y))
        return start_tick(x) > start_tick(y) ? 1 : -1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

static marey_status start_lane(struct order *order)
{
    const uint32_t number = (uint32_t)order->n_started++, first = order->starts[number];
    const struct marey__log_lane *lane =
        marey__sparse_get(&order->log->lanes, order->log->pieces[first].lane, sizeof *lane);
    struct cursor *cursor = marey__alloc(sizeof *cursor);
    MAREY__TRY_MEMORY(cursor != NULL);
    order->cursors[number] = cursor;
    *cursor = (struct cursor){.info = &lane->info, .next_piece = first, .number = number};
    bool done;
    MAREY_TRY(next_batch(order, cursor, &done));
    if (done) {
        order->cursors[number] = NULL;
        free_cursor(cursor);
        return MAREY_OK;
    }
    return sort_in(order, cursor) ? MAREY_OK : marey__no_memory();
}

/* Start the lanes that have words before the next stretch ends. */
static marey_status start_lanes(struct order *order)
{
    while (order->n_started < order->n_starts) {
        const struct marey__piece *piece = &order->log->pieces[order->starts[order->n_started]];
        if (order->by_limit.n != 0 && start_tick(piece) != 0 &&
            marey__clock_map_ns(&order->log->clock, piece->first_tick) > order->by_limit.items[0].key)
            return MAREY_OK;
        MAREY_TRY(start_lane(order));
    }
    return MAREY_OK;
}

static void list_starts(struct order *order)
{
    const struct marey__log_file *log = order->log;
    for (uint32_t i = 0; i < log->info.n_lanes; i++) {
        const struct marey__log_lane *lane = marey__sparse_get(&log->lanes, i, sizeof *lane);
        if (lane != NULL && lane->first_piece != 0)
            order->starts[order->n_starts++] = lane->first_piece - 1;
    }
    qsort_r(order->starts, order->n_starts, sizeof *order->starts, by_start, log->pieces);
}

static marey_status visit(struct order *order)
{
    order->starts = marey__calloc(order->log->info.n_lanes, sizeof *order->starts);
    order->cursors = marey__calloc(order->log->info.n_lanes, sizeof(struct cursor *));
    MAREY__TRY_MEMORY(order->starts != NULL && order->cursors != NULL &&
                      marey__unpacker_init(&order->unpacker));
    list_starts(order);
    for (;;) {
        MAREY_TRY(start_lanes(order));
        if (order->by_limit.n == 0)
            return MAREY_OK;
        MAREY_TRY(deliver_stretch(order));
    }
}

/* Whether one block per lane could need too much memory. */
static bool is_too_large(const struct marey__log_file *log)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < log->n_pieces; i++)
        largest = MAREY__MAX(largest, log->pieces[i].n_words);
    const size_t n_lanes = MAREY__MIN((size_t)log->info.n_lanes, log->n_pieces);
    return largest * n_lanes > MAX_HELD_WORDS;
}

marey_status marey__log_file_visit_in_order(const struct marey__log_file *log,
                                            marey_visitor *visitor, void *ctx)
{
    if (log->info.n_lanes <= 1 || log->n_pieces == 0 || is_too_large(log))
        return marey__log_file_visit(log, visitor, ctx);
    struct order order = {.log = log, .visitor = visitor, .ctx = ctx};
    MAREY_TRY(marey__log_file_acquire(log, &order.reader));
    const marey_status status = visit(&order);
    for (size_t i = 0; order.cursors != NULL && i < order.n_started; i++)
        free_cursor(order.cursors[i]);
    marey__free(order.cursors);
    marey__heap_fini(&order.by_limit);
    marey__heap_fini(&order.by_next);
    marey__free(order.starts);
    marey__unpacker_fini(&order.unpacker);
    marey__log_file_release(log, &order.reader);
    return status;
}
