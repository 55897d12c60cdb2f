/*
 * The SQLite export: rows from events. Times count from the export's origin, the first event.
 *
 * In addition to the walk's stack, each lane has a stack with data that a row needs and a begin does not have: the ids
 * of the ranges around, and the time in children. A filter only decides which ranges get rows. Filtered ranges are
 * still walked, so that self times do not change, and their children have the next range around as their parent.
 */
#include "present/export/sqlite/internal.h"
#include "present/export/sqlite/sqlite_format.h"

struct frame {
    int64_t id; /* the range's, or that of the next range around with a row; 0: none */
    uint64_t children_ns;
};

struct frames {
    size_t n;
    struct frame frames[]; /* the first is that of the thread itself */
};

static struct marey__db *db_of(const struct marey__export *x)
{
    return x->own;
}

static bool is_left_out(const struct marey__export *x, uint32_t site)
{
    const uint8_t *skip = db_of(x)->skip;
    return skip != NULL && skip[marey__site_slot(x, site)] != 0;
}

/* ---- before the first event ---- */

static void on_start(struct marey__export *x)
{
    struct marey__db *db = db_of(x);
    x->status = marey__db_open(db, x->out.fd);
    if (x->status != MAREY_OK)
        return;
    marey__db_put_meta(x, db);
    marey__db_put_warnings(x, db);
    x->status = db->status;
}

static void put_lane(const struct marey__export *x, struct marey__db *db,
                     const struct marey_lane_info *lane)
{
    if (lane->kind == MAREY_LANE_THREAD)
        MAREY__DB_INSERT(db, THREAD, DB_INT(marey__db_lane(x, lane->lane)),
                         DB_INT(x->process_number + 1), DB_INT(lane->tid), DB_TEXT(lane->name));
    else if (lane->kind == MAREY_LANE_GPU)
        MAREY__DB_INSERT(db, STREAM, DB_INT(marey__db_lane(x, lane->lane)),
                         DB_INT(x->process_number + 1), DB_INT(lane->device),
                         DB_INT((int32_t)lane->stream), DB_TEXT(lane->name));
}

static marey_status on_process(struct marey__export *x)
{
    MAREY_TRY(x->status);
    struct marey__db *db = db_of(x);
    const size_t n_slots = (size_t)x->process->n_sites + 1;
    db->skip = x->skip;
    x->skip = NULL;
    db->lane = NULL;
    db->n_on_stack = marey__calloc(n_slots, sizeof db->n_on_stack[0]);
    x->sites = marey__calloc(n_slots, sizeof(uint32_t));
    MAREY__TRY_MEMORY(db->n_on_stack != NULL && x->sites != NULL);
    marey__db_put_process(x, db);
    for (uint32_t i = 0; i < x->process->n_lanes; i++)
        if (x->lanes[i].stack.info->lane == i) /* lane 0 stands for numbers skipped by a damaged log */
            put_lane(x, db, x->lanes[i].stack.info);
    return db->status;
}

static void forget_process(struct marey__db *db)
{
    MAREY__FREE_ALL(db->skip, db->n_on_stack);
    db->skip = NULL;
    db->n_on_stack = NULL;
}

/* ---- the lane's stack ---- */

static bool grow_frames(struct marey__export *x, struct marey__export_lane *lane)
{
    const struct frames *before = lane->own;
    const size_t n_before = before != NULL ? before->n : 0, n = lane->stack.open_cap + 1;
    struct frames *frames = marey__realloc(lane->own, sizeof *frames + n * sizeof frames->frames[0]);
    if (frames == NULL) {
        x->status = marey__no_memory();
        return false;
    }
    memset(frames->frames + n_before, 0, (n - n_before) * sizeof frames->frames[0]);
    frames->n = n;
    lane->own = frames;
    return true;
}

/* False before the lane's first range, and after running out of memory. */
static inline bool has_frame(const struct marey__export_lane *lane, size_t depth)
{
    const struct frames *frames = lane->own;
    return frames != NULL && depth < frames->n;
}

/* The frame of the range at `depth` from 1 on; 0 is the thread's. */
static inline struct frame *frame_at(const struct marey__export_lane *lane, size_t depth)
{
    return &((struct frames *)lane->own)->frames[depth];
}

static inline uint32_t *count_of(const struct marey__export *x, uint32_t site)
{
    return &db_of(x)->n_on_stack[marey__replay_name(&x->replay, site)];
}

/* Names are counted on one stack at a time: switches to another lane's stack. */
static void count_lane(const struct marey__export *x, const struct marey__export_lane *lane)
{
    struct marey__db *db = db_of(x);
    if (db->lane == lane)
        return;
    for (size_t i = 0; db->lane != NULL && i < db->lane->stack.n_open; i++)
        --*count_of(x, db->lane->stack.open[i].site);
    for (size_t i = 0; i < lane->stack.n_open; i++)
        ++*count_of(x, lane->stack.open[i].site);
    db->lane = lane;
}

/* ---- events ---- */

static void on_begin(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                     uint32_t site, const struct marey__payload *payload)
{
    (void)ns, (void)payload; /* the row is written when it ends */
    const size_t depth = lane->stack.n_open + 1;
    ++*count_of(x, site);
    if (MAREY_UNLIKELY(!has_frame(lane, depth)) && !grow_frames(x, lane))
        return;
    *frame_at(lane, depth) = (struct frame){
        .id = is_left_out(x, site) ? frame_at(lane, depth - 1)->id : marey__db_rows_begin(db_of(x)),
    };
}

/* The row of a range that was at `depth`, from 0, and is no longer counted by its name. */
static void put_range(struct marey__export *x, const struct marey__export_lane *lane, size_t depth,
                      const struct marey__frame *range, uint64_t duration_ns)
{
    const struct frame *frame = frame_at(lane, depth + 1);
    const struct marey__db_range row = {
        .id = frame->id,
        .parent = frame[-1].id,
        .start_ns = range->start_ns - x->origin_ns,
        .duration_ns = duration_ns,
        .self_ns = lane->first != NULL && !lane->has_self_times && duration_ns != MAREY__DB_UNKNOWN
                       ? 0 /* not recorded by earlier versions */
                       : duration_ns - MAREY__MIN(frame->children_ns, duration_ns),
        .thread = marey__db_lane(x, lane->stack.info->lane),
        .site = marey__db_site(x, db_of(x), range->site),
        .depth = (uint32_t)depth,
        .recursion = *count_of(x, range->site),
    };
    if (MAREY_LIKELY(range->payload == 0)) {
        marey__db_rows_put(db_of(x), &row, NULL);
        return;
    }
    const struct marey__payload payload = marey__open_payload(lane, range);
    marey__db_rows_put(db_of(x), &row, &payload);
    marey__db_put_records(x, db_of(x), row.id, &payload);
    if (payload.repeat != 0) {
        MAREY__DB_INSERT(db_of(x), REPEAT, DB_INT(row.id), DB_INT(payload.repeat - 1));
        db_of(x)->has_repeats = true;
    }
}

static void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                   const struct marey__frame *range, bool is_cut)
{
    const uint64_t duration_ns = is_cut ? MAREY__DB_UNKNOWN : ns - range->start_ns;
    --*count_of(x, range->site);
    if (MAREY_UNLIKELY(!has_frame(lane, lane->stack.n_open + 1)))
        return;
    if (!is_cut)
        frame_at(lane, lane->stack.n_open)->children_ns += duration_ns;
    if (!is_left_out(x, range->site))
        put_range(x, lane, lane->stack.n_open, range, duration_ns);
}

static void on_mark(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint32_t site, const struct marey__payload *payload)
{
    struct marey__db *db = db_of(x);
    char digits[MAREY__NUMBER_ROOM];
    const int64_t around =
        has_frame(lane, lane->stack.n_open) ? frame_at(lane, lane->stack.n_open)->id : 0;
    if (is_left_out(x, site))
        return;
    const uint32_t id = marey__db_site(x, db, site);
    MAREY__DB_INSERT(db, MARK, DB_INT(marey__db_new_id(db)),
                     DB_INT(marey__db_lane(x, lane->stack.info->lane)), DB_NOT_0(around),
                     DB_INT(id), DB_INT(ns - x->origin_ns), marey__db_payload(db, payload, digits));
}

static void on_counter(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    struct marey__db *db = db_of(x);
    if (is_left_out(x, site))
        return;
    const uint32_t id = marey__db_site(x, db, site);
    /* SQLite stores NaN as NULL. */
    MAREY__DB_INSERT(db, COUNTER, DB_INT(marey__db_new_id(db)),
                     DB_INT(marey__db_lane(x, lane->stack.info->lane)), DB_INT(id),
                     DB_INT(ns - x->origin_ns), DB_REAL(value));
}

/* `end` is NULL if it has not ended. */
static void put_async(struct marey__export *x, const struct marey__async_half *begin,
                      const struct marey__async_half *end)
{
    struct marey__db *db = db_of(x);
    const uint32_t site = marey__db_site(x, db, begin->name);
    const uint32_t end_lane = end != NULL ? marey__db_lane(x, end->lane) : 0;
    const uint64_t ns = end != NULL && end->ns > begin->ns ? end->ns - begin->ns : 0;
    MAREY__DB_INSERT(db, ASYNC, DB_INT(marey__db_new_id(db)),
                     DB_INT(marey__db_lane(x, begin->lane)), DB_KNOWN(end != NULL, end_lane),
                     DB_INT(site), DB_INT(begin->ns - x->origin_ns), DB_KNOWN(end != NULL, ns));
}

static void on_async(struct marey__export *x, struct marey__export_lane *lane,
                     const struct marey__async_half *half)
{
    (void)lane;
    struct marey__async_half begin, end;
    if (!is_left_out(x, half->name) && marey__export_async(x, half, &begin, &end))
        put_async(x, &begin, &end);
}

static void on_lost(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    const uint64_t at_ns = MAREY__MAX(ns, lane->stack.last_ns) - x->origin_ns;
    struct marey__db *db = db_of(x);
    MAREY__DB_INSERT(db, LOSS, DB_INT(marey__db_new_id(db)),
                     DB_INT(marey__db_lane(x, lane->stack.info->lane)), DB_INT(at_ns),
                     DB_NOT_0(n_events));
}

/* The frames of ranges above move down with them; the shared time belongs to the inner one. */
static void on_take_out(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                        uint64_t shared_ns, bool is_done)
{
    const size_t n_above = lane->stack.n_open - depth;
    (void)x;
    if (!is_done) {
        if (has_frame(lane, depth + 1))
            frame_at(lane, depth + 1)->children_ns += shared_ns;
        return;
    }
    if (!has_frame(lane, depth + 1 + n_above))
        return;
    struct frame *around = frame_at(lane, depth);
    around->children_ns -= MAREY__MIN(shared_ns, around->children_ns);
    memmove(around + 1, around + 2, n_above * sizeof *around);
}

static void on_covered(struct marey__export *x, struct marey__export_lane *lane, size_t depth,
                       uint64_t ns)
{
    (void)x;
    if (has_frame(lane, depth + 1))
        frame_at(lane, depth + 1)->children_ns += ns;
}

static void on_work(struct marey__export *x, struct marey__export_lane *lane,
                    const struct marey__stream_work *work)
{
    if (!is_left_out(x, work->site))
        marey__db_put_work(x, db_of(x), lane->stack.info, work);
}

static void on_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    const uint64_t *words)
{
    const bool is_stream = lane->stack.info->kind == MAREY_LANE_GPU;
    const int64_t around = !is_stream && has_frame(lane, lane->stack.n_open)
                               ? frame_at(lane, lane->stack.n_open)->id
                               : 0;
    if (!is_left_out(x, marey_record_site(words[1])))
        marey__db_put_flow(x, db_of(x), lane->stack.info, around, ns, words);
}

static const struct marey__walker walker = {.begin = on_begin,
                                            .end = on_end,
                                            .mark = on_mark,
                                            .counter = on_counter,
                                            .async = on_async,
                                            .lost = on_lost,
                                            .take_out = on_take_out};

static marey_status on_batch(struct marey__export *x, struct marey__export_lane *lane,
                             const struct marey_batch *batch)
{
    count_lane(x, lane);
    MAREY_TRY(marey__walk(x, lane, batch, &walker));
    return db_of(x)->status;
}

/* ---- after the last event ---- */

/* Ranges and async ranges that never ended. */
static void on_process_done(struct marey__export *x)
{
    struct marey__db *db = db_of(x);
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        const struct marey__export_lane *lane = &x->lanes[i];
        count_lane(x, lane);
        for (size_t k = lane->stack.n_open; k-- > 0;) {
            --*count_of(x, lane->stack.open[k].site);
            if (!is_left_out(x, lane->stack.open[k].site))
                put_range(x, lane, k, &lane->stack.open[k], MAREY__DB_UNKNOWN);
        }
        db->lane = NULL; /* no longer counted */
    }
    for (size_t i = 0; i < x->asyncs.n_slots; i++) {
        if (x->asyncs.slots[i].handle != 0 && x->asyncs.slots[i].is_begin)
            put_async(x, &x->asyncs.slots[i], NULL);
    }
    forget_process(db);
    x->status = db->status;
}

static void on_finish(struct marey__export *x)
{
    if (x->status == MAREY_OK) {
        marey__db_put_energy(x, db_of(x));
        x->status = db_of(x)->status;
    }
    if (x->status == MAREY_OK)
        x->status = marey__db_commit(db_of(x));
    if (x->status == MAREY_OK)
        x->status = marey__db_file_deliver(&db_of(x)->file, &x->out);
}

static void on_close(struct marey__export *x)
{
    forget_process(db_of(x)); /* after a failure */
    marey__db_close(db_of(x));
}

const struct marey__export_format marey__export_sqlite = {
    .info = {MAREY__SQLITE_INFO},
    .own_size = sizeof(struct marey__db),
    .start = on_start,
    .process = on_process,
    .batch = on_batch,
    .process_done = on_process_done,
    .finish = on_finish,
    .close = on_close,
    .span = marey__db_put_span,
    .work = on_work,
    .covered = on_covered,
    .flow = on_flow,
    .has_samples_beside = true,
};
