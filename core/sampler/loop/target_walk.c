/*
 * Reading a thread: everything in one call, at the addresses of the last time.
 *
 *   frames outside of the data stack | older chunks | reference | thread state | cframes | newest chunk
 *
 * This is the order of copying. The thread state is next to the newest chunk, because it has the end of the stack
 * there. The reference is a first copy of the end of the newest chunk: if it differs from the second, the stack changed
 * meanwhile. An address that is no longer right costs another read later, whose data may be from a different time
 * unless the thread stands still.
 *
 * To keep such reads rare without waiting, addresses that were useful in recent reads are read again: for a program
 * that alternates between two generators, both are copied each time. Retrying only after a failure would favor slow
 * code (retry until stable is a bias).
 *
 * Then copies are converted to frames, innermost first. Any pointer may be invalid: a frame is taken from a copy or
 * read, at most MAREY__WALK_MAX of them, and invalid data end the walk.
 */
#include "sampler/loop/internal.h"

enum {
    SLACK = 512,     /* bytes past the end of the stack, for some more frames */
    REFERENCE = 640, /* bytes of the reference */
    RUN = 64,        /* reads after which the reach of the previous run is dropped */
    STRAY_AGE = 32,  /* reads after which an unused address is dropped */
    MAX_CHUNKS = 1 << 14,
};
#define MAX_CHUNK_SIZE ((uint64_t)1 << 28)

void marey__places_fini(struct marey__places *places)
{
    MAREY__FREE_ALL(places->chunks, places->chunks_before, places->heap, places->heap_before);
    *places = (struct marey__places){0};
}

static void plan_chunk(struct marey__batch *batch, struct marey__chunk *chunk, uint64_t n_bytes)
{
    chunk->n_copied = MAREY__MIN(n_bytes, chunk->size);
    chunk->copy = marey__batch_add(batch, chunk->at, chunk->n_copied);
}

static void plan_strays(struct marey__batch *batch, struct marey__places *places, size_t frame_size)
{
    size_t kept = 0;
    for (size_t i = 0; i < places->n_strays; i++) {
        if (places->n_reads - places->strays[i].used > STRAY_AGE)
            continue;
        places->strays[kept] = places->strays[i];
        places->strays[kept].copy = marey__batch_add(batch, places->strays[i].at, frame_size);
        kept++;
    }
    places->n_strays = kept;
}

/* Frames of the last walk become the ones to search. */
static void plan_heap(struct marey__batch *batch, struct marey__places *places, size_t frame_size)
{
    struct marey__place *heap = places->heap;
    const size_t cap = places->heap_cap;
    places->heap = places->heap_before;
    places->heap_cap = places->heap_before_cap;
    places->heap_before = heap;
    places->heap_before_cap = cap;
    places->n_heap_before = places->n_heap;
    places->n_heap = 0;
    for (size_t i = 0; i < places->n_heap_before; i++)
        heap[i].copy = marey__batch_add(batch, heap[i].at, frame_size);
}

static void plan_reference(struct marey__batch *batch, struct marey__places *places)
{
    const struct marey__chunk *newest = &places->chunks[0];
    places->reference_bytes = MAREY__MIN(newest->n_used, REFERENCE);
    places->reference_at = newest->at + newest->n_used - places->reference_bytes;
    places->reference_copy = marey__batch_add(batch, places->reference_at, places->reference_bytes);
}

void marey__thread_plan(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread)
{
    const struct marey__remote_layout *layout = target->layout;
    struct marey__batch *batch = &context->batch;
    struct marey__places *places = &thread->places;
    if (++places->n_reads % RUN == 0) {
        places->reach_before = places->reach;
        places->reach = 0;
    }
    plan_strays(batch, places, layout->frame.size);
    plan_heap(batch, places, layout->frame.size);
    for (size_t i = places->n_chunks; i-- > 1;)
        plan_chunk(batch, &places->chunks[i], places->chunks[i].n_used);
    places->reference_copy = MAREY__BATCH_NONE;
    if (places->n_chunks > 0)
        plan_reference(batch, places);
    places->state_copy = marey__batch_add(batch, thread->address, layout->thread.size);
    for (size_t i = 0; i < places->n_cframes; i++)
        places->cframes[i].copy = marey__batch_add(batch, places->cframes[i].at, layout->cframe.size);
    if (places->n_chunks > 0)
        plan_chunk(batch, &places->chunks[0],
                   MAREY__MAX(places->reach, places->reach_before) + SLACK);
}

enum {
    MAX_LATE_STILL =
        1024, /* frames read one by one while a thread is stopped: some milliseconds at worst */
    MAX_LATE = 8192,
    MAX_COROUTINES = 16,
    MAX_STEPS = 32,
    CALLEE_BYTES = 1024,
};

/* A walk in progress. */
struct walker {
    struct marey__sampler_context *context;
    struct marey__target *target;
    struct marey__places *places;
    size_t chunk, heap; /* where the last frame was found */
    size_t n_late, max_late;
    bool is_torn;
    bool is_cut;     /* it reached one of our limits */
    bool is_partial; /* the chain ended, but not at the start of a thread's stack */
    uint64_t around; /* 3.11 and 3.12: the cframe of the evaluation loop around the innermost; 0: none */
    uint32_t n_run;                                          /* Python frames since the last shim */
    struct marey__walk_coroutine coroutines[MAX_COROUTINES]; /* the outermost ones if there are too many */
    size_t n_coroutines;
};

/* ---- data that moved ---- */

/* Reads `n_bytes` at `at` now. */
static size_t read_late(const struct walker *w, uint64_t at, size_t n_bytes, bool *is_torn)
{
    struct marey__batch *batch = &w->context->batch;
    const size_t index = marey__batch_add(batch, at, n_bytes);
    if (index == MAREY__BATCH_NONE)
        return index;
    *is_torn = true;
    marey__batch_read(batch, w->target->remote, index);
    return marey__batch_at(batch, index) != NULL ? index : MAREY__BATCH_NONE;
}

/* Moves `at` to the front; the last one may be dropped. */
static struct marey__place *keep(struct marey__place *places, size_t *n, size_t cap, uint64_t at)
{
    size_t i = 0;
    while (i < *n && places[i].at != at)
        i++;
    if (i == *n && *n < cap)
        ++*n;
    memmove(&places[1], &places[0], MAREY__MIN(i, *n - 1) * sizeof *places);
    places[0] = (struct marey__place){.at = at, .copy = MAREY__BATCH_NONE};
    return &places[0];
}

static void expect_cframe(struct marey__places *places, uint64_t at)
{
    for (size_t i = 0; i < places->n_cframes; i++)
        if (places->cframes[i].at == at)
            return;
    if (places->n_cframes < MAREY__CFRAMES)
        places->n_cframes++;
    places->cframes[places->n_cframes - 1] =
        (struct marey__place){.at = at, .copy = MAREY__BATCH_NONE};
}

static const uint8_t *find_cframe(struct walker *w, uint64_t at)
{
    struct marey__places *places = w->places;
    for (size_t i = 0; i < places->n_cframes; i++) {
        const uint8_t *copy = marey__batch_at(&w->context->batch, places->cframes[i].copy);
        if (places->cframes[i].at == at && copy != NULL)
            return copy;
    }
    struct marey__place *place = keep(places->cframes, &places->n_cframes, MAREY__CFRAMES, at);
    place->copy = read_late(w, at, w->target->layout->cframe.size, &w->is_torn);
    return marey__batch_at(&w->context->batch, place->copy);
}

static const uint8_t *find_stray(struct walker *w, uint64_t at, bool *is_torn)
{
    struct marey__places *places = w->places;
    for (size_t i = 0; i < places->n_strays; i++) {
        const uint8_t *copy = marey__batch_at(&w->context->batch, places->strays[i].copy);
        if (places->strays[i].at != at || copy == NULL)
            continue;
        places->strays[i].used = places->n_reads;
        return copy;
    }
    struct marey__place *place = keep(places->strays, &places->n_strays, MAREY__STRAYS, at);
    place->used = places->n_reads;
    place->copy = read_late(w, at, w->target->layout->frame.size, is_torn);
    return marey__batch_at(&w->context->batch, place->copy);
}

/* The chunk at `at` in the last read, whose copy has `n_used` bytes (0: as in its header). */
static bool find_chunk(const struct walker *w, size_t n_before, size_t *hint,
                       struct marey__chunk *chunk)
{
    const struct marey__remote_layout *layout = w->target->layout;
    for (size_t k = 0; k < n_before; k++) {
        const struct marey__chunk *before = &w->places->chunks_before[(*hint + k) % n_before];
        const uint8_t *copy = marey__batch_at(&w->context->batch, before->copy);
        if (before->at != chunk->at || copy == NULL)
            continue;
        *hint = *hint + k + 1;
        chunk->size = marey__remote_u64(copy, layout->chunk.size);
        if (chunk->n_used == 0)
            chunk->n_used = layout->chunk.data + 8 * marey__remote_u64(copy, layout->chunk.top);
        chunk->copy = before->copy;
        chunk->n_copied = before->n_copied;
        return chunk->n_used <= before->n_copied;
    }
    return false;
}

static bool read_chunk(struct walker *w, struct marey__chunk *chunk)
{
    const struct marey__remote_layout *layout = w->target->layout;
    uint8_t header[64];
    if (layout->chunk.data > sizeof header ||
        !marey__remote_read(w->target->remote, chunk->at, header, layout->chunk.data))
        return false;
    chunk->size = marey__remote_u64(header, layout->chunk.size);
    if (chunk->n_used == 0)
        chunk->n_used = layout->chunk.data + 8 * marey__remote_u64(header, layout->chunk.top);
    if (chunk->size > MAX_CHUNK_SIZE || chunk->n_used > chunk->size ||
        chunk->n_used < layout->chunk.data)
        return false;
    chunk->n_copied = MAREY__MIN(chunk->n_used + SLACK, chunk->size);
    chunk->copy = read_late(w, chunk->at, chunk->n_copied, &w->is_torn);
    return chunk->copy != MAREY__BATCH_NONE;
}

static bool refresh_chunks(struct walker *w, const uint8_t *state)
{
    const struct marey__remote_layout *layout = w->target->layout;
    struct marey__places *places = w->places;
    uint64_t at = marey__remote_u64(state, layout->thread.datastack_chunk);
    const uint64_t top = marey__remote_u64(state, layout->thread.datastack_top);
    struct marey__chunk *before = places->chunks;
    const size_t n_before = places->n_chunks, before_cap = places->chunks_cap;
    places->chunks = places->chunks_before;
    places->chunks_cap = places->chunks_before_cap;
    places->chunks_before = before;
    places->chunks_before_cap = before_cap;
    places->n_chunks = 0;
    if (at != 0 && (top <= at || top - at > MAX_CHUNK_SIZE))
        return false;
    size_t hint = 0;
    for (uint64_t n_used = top - at; at != 0; n_used = 0) {
        struct marey__chunk chunk = {.at = at, .n_used = n_used};
        if (places->n_chunks == MAX_CHUNKS ||
            !marey__grow(&places->chunks, &places->chunks_cap, places->n_chunks + 1, sizeof chunk) ||
            (!find_chunk(w, n_before, &hint, &chunk) && !read_chunk(w, &chunk)))
            return false;
        places->chunks[places->n_chunks++] = chunk;
        const uint64_t next = marey__remote_u64(marey__batch_at(&w->context->batch, chunk.copy),
                                                layout->chunk.previous);
        if (next == at)
            return false;
        at = next;
    }
    if (places->n_chunks > 0) {
        if (n_before == 0 || before[0].at != places->chunks[0].at)
            places->reach = places->reach_before = 0;
        places->reach = MAREY__MAX(places->reach, places->chunks[0].n_used);
    }
    return true;
}

/* ---- copies to frames ---- */

static const uint8_t *find_in_chunks(struct walker *w, uint64_t at)
{
    const struct marey__places *places = w->places;
    for (size_t k = 0; k < places->n_chunks; k++) {
        size_t i = w->chunk + k;
        if (i >= places->n_chunks)
            i -= places->n_chunks;
        const struct marey__chunk *chunk = &places->chunks[i];
        if (at < chunk->at || at - chunk->at + w->target->layout->frame.size > chunk->n_copied)
            continue;
        w->chunk = i;
        return marey__batch_at(&w->context->batch, chunk->copy) + (at - chunk->at);
    }
    return NULL;
}

/* Up to 3.10: searches the last read's list, usually right after the previous one. */
static const uint8_t *find_on_heap(struct walker *w, uint64_t at)
{
    struct marey__places *places = w->places;
    struct marey__place place = {.at = at, .copy = MAREY__BATCH_NONE};
    for (size_t k = 0; k < places->n_heap_before; k++) {
        const size_t i = (w->heap + k) % places->n_heap_before;
        if (places->heap_before[i].at != at)
            continue;
        place.copy = places->heap_before[i].copy;
        w->heap = i + 1;
        break;
    }
    if (marey__batch_at(&w->context->batch, place.copy) == NULL) {
        w->is_cut = w->n_late == w->max_late;
        if (w->is_cut)
            return NULL;
        w->n_late++;
        place.copy = marey__batch_add(&w->context->batch, at, w->target->layout->frame.size);
        if (place.copy == MAREY__BATCH_NONE)
            return NULL;
        w->is_torn = true;
        marey__batch_read(&w->context->batch, w->target->remote, place.copy);
    }
    (void)MAREY__PUSH(places->heap, places->n_heap, places->heap_cap, place);
    return marey__batch_at(&w->context->batch, place.copy);
}

static const uint8_t *find_frame(struct walker *w, uint64_t at)
{
    if (w->target->layout->frame.owner == MAREY__REMOTE_ABSENT)
        return find_on_heap(w, at);
    const uint8_t *frame = find_in_chunks(w, at);
    if (frame != NULL)
        return frame;
    bool is_torn = false;
    w->is_cut = w->n_late == w->max_late;
    if (w->is_cut)
        return NULL;
    frame = find_stray(w, at, &is_torn);
    w->n_late += is_torn;
    w->is_torn = w->is_torn || is_torn;
    return frame;
}

static void end_run(struct walker *w, uint64_t anchor)
{
    struct marey__sampler_context *context = w->context;
    if (context->native_files != NULL)
        (void)MAREY__PUSH(context->runs, context->n_runs, context->runs_cap,
                          (struct marey__unwind_run){.n_frames = w->n_run, .anchor = anchor});
    w->n_run = 0;
}

/* Whether this frame is the first of a C evaluation loop, for versions that record that in the frame. */
static bool is_entry(const struct marey__remote_layout *layout, const uint8_t *frame)
{
    if (layout->frame.owner == MAREY__REMOTE_ABSENT)
        return true;
    return layout->frame.is_entry != MAREY__REMOTE_ABSENT &&
           marey__remote_u8(frame, layout->frame.is_entry) != 0;
}

static bool put_frame(struct walker *w, const uint8_t *frame)
{
    const struct marey__remote_layout *layout = w->target->layout;
    struct marey__walk *walk = &w->context->walk;
    struct marey__walk_frame found = {
        .code = marey__remote_u64(frame, layout->frame.code) & layout->frame.code_mask,
        .tlbc_index = marey__remote_u32(frame, layout->frame.tlbc_index),
    };
    found.instruction = layout->instruction_kind == MAREY__REMOTE_INSTRUCTION_POINTER
                            ? marey__remote_u64(frame, layout->frame.instruction)
                            : marey__remote_u32(frame, layout->frame.instruction);
    w->is_cut = walk->n == MAREY__WALK_MAX;
    if (found.code == 0 || w->is_cut || !MAREY__PUSH(walk->frames, walk->n, walk->cap, found))
        return false;
    w->n_run++;
    if (is_entry(layout, frame))
        end_run(w, 0);
    return true;
}

/*
 * Whether a stack can end with a frame of this owner. Suspended generators have no caller; the interpreter clears it
 * just before it leaves them. From 3.12 on each evaluation loop begins with a shim.
 */
static bool is_outermost(const struct marey__remote_layout *layout, unsigned owner)
{
    if (layout->frame.owner == MAREY__REMOTE_ABSENT)
        return true;
    return layout->frame.is_entry != MAREY__REMOTE_ABSENT ? owner != MAREY__REMOTE_OWNER_GENERATOR
                                                          : owner >= MAREY__REMOTE_OWNER_SHIM;
}

/*
 * 3.11 and 3.12: whether the walk's last frame is a real one. The cframe of a loop that just begins may point anywhere,
 * and the data there may look like a frame without a caller.
 */
static bool ends_with_code(const struct walker *w)
{
    const struct marey__walk *walk = &w->context->walk;
    return w->target->layout->cframe.current_frame == MAREY__REMOTE_ABSENT || walk->n == 0 ||
           marey__remote_code(w->target->remote, walk->frames[walk->n - 1].code) != NULL;
}

/*
 * Walks outward from `at`; true if the end of the stack was reached. A chain copied at different times may contain
 * cycles, as frames are reused: detected with Brent's algorithm.
 */
static bool walk_from(struct walker *w, uint64_t at)
{
    const struct marey__remote_layout *layout = w->target->layout;
    /* Without a frame there is no evaluation loop, nor one around it. */
    unsigned owner =
        w->around == 0 || at != 0 ? MAREY__REMOTE_OWNER_SHIM : MAREY__REMOTE_OWNER_GENERATOR;
    w->context->walk.n = w->context->n_runs = 0;
    w->n_run = 0;
    w->n_coroutines = 0;
    w->is_cut = w->is_partial = false;
    uint64_t remembered = 0;
    for (size_t n = 0; at != 0; n++) {
        if (at == remembered)
            return false;
        if ((n & (n - 1)) == 0)
            remembered = at;
        const uint8_t *frame = n < 2 * MAREY__WALK_MAX ? find_frame(w, at) : NULL;
        if (frame == NULL)
            return false;
        owner = marey__remote_u8(frame, layout->frame.owner);
        if (owner >= MAREY__REMOTE_OWNER_SHIM)
            end_run(w, at);
        else if (!put_frame(w, frame))
            return false;
        else if (owner == MAREY__REMOTE_OWNER_GENERATOR)
            w->coroutines[w->n_coroutines++ % MAX_COROUTINES] =
                (struct marey__walk_coroutine){.at = at, .index = w->context->walk.n - 1};
        at = marey__remote_u64(frame, layout->frame.previous);
    }
    w->is_partial = !is_outermost(layout, owner);
    return !w->is_partial && ends_with_code(w);
}

/* Walks from the frame of the cframe at `at`; true if the stack is whole. */
static bool walk_from_cframe(struct walker *w, uint64_t at, uint64_t *innermost)
{
    const struct marey__remote_layout *layout = w->target->layout;
    const uint8_t *cframe = find_cframe(w, at);
    if (cframe == NULL)
        return false;
    *innermost = marey__remote_u64(cframe, layout->cframe.current_frame);
    return *innermost != 0 && walk_from(w, *innermost);
}

/*
 * 3.11 and 3.12: while an evaluation loop begins, its cframe is already set in the thread, but its content is left over
 * from earlier use of the C stack. Then use the stack of the enclosing loop: the one named by the cframe, or the
 * nearest known one further out. True if one is whole; otherwise the walk is that from `innermost`.
 */
static bool walk_around(struct walker *w, uint64_t cframe, uint64_t *innermost)
{
    const uint64_t first = *innermost;
    uint64_t known[MAREY__CFRAMES];
    size_t n = 0;
    if (w->target->layout->cframe.current_frame == MAREY__REMOTE_ABSENT)
        return false;
    for (size_t i = 0; i < w->places->n_cframes; i++)
        if (w->places->cframes[i].at > cframe)
            known[n++] = w->places->cframes[i].at;
    if (w->around > cframe && walk_from_cframe(w, w->around, innermost))
        return true;
    while (n > 0) {
        size_t nearest = 0;
        for (size_t i = 1; i < n; i++)
            nearest = known[i] < known[nearest] ? i : nearest;
        if (walk_from_cframe(w, known[nearest], innermost))
            return true;
        known[nearest] = known[--n];
    }
    *innermost = first;
    return walk_from(w, first);
}

/*
 * Whether frames at the end of the newest chunk changed since the first copy, ignoring the innermost one's instruction.
 */
static bool differs_from_reference(const struct walker *w, uint64_t innermost)
{
    const struct marey__remote_layout *layout = w->target->layout;
    const struct marey__places *places = w->places;
    const struct marey__batch *batch = &w->context->batch;
    const uint8_t *reference = marey__batch_at(batch, places->reference_copy);
    if (reference == NULL || places->n_chunks == 0)
        return false;
    const struct marey__chunk *newest = &places->chunks[0];
    const uint8_t *copy = marey__batch_at(batch, newest->copy);
    uint64_t at = innermost;
    while (at >= places->reference_at && at >= newest->at &&
           at + layout->frame.size <= places->reference_at + places->reference_bytes &&
           at + layout->frame.size <= newest->at + newest->n_copied) {
        const uint8_t *now = copy + (at - newest->at),
                      *then = reference + (at - places->reference_at);
        const uint64_t previous = marey__remote_u64(now, layout->frame.previous);
        if (previous != marey__remote_u64(then, layout->frame.previous) ||
            marey__remote_u64(now, layout->frame.code) != marey__remote_u64(then, layout->frame.code) ||
            (at != innermost && marey__remote_u64(now, layout->frame.instruction) !=
                                    marey__remote_u64(then, layout->frame.instruction)))
            return true;
        if (previous >= at)
            return false; /* it leaves the chunk, or is invalid, which the walk detects */
        at = previous;
    }
    return false;
}

/*
 * ---- a thread that keeps running while it is copied ----
 *
 * Its state is copied first and its frames slightly later, when another frame may be running. So the state is only a
 * hint for finding the frame that was running when the frames were copied: then the whole stack is from one time. It is
 * one of the callers of the frame in the state, if that has returned, or one of its callees.
 */

/* Up to 3.13 a frame is marked while it runs; later, a frame that has returned has no code. */
static bool is_marked(const struct marey__remote_layout *layout, const uint8_t *frame)
{
    return layout->frame.stack_top != MAREY__REMOTE_ABSENT
               ? marey__remote_u32(frame, layout->frame.stack_top) == UINT32_MAX
               : (marey__remote_u64(frame, layout->frame.code) & layout->frame.code_mask) != 0;
}

/* The frame at `at`, else its nearest marked caller within one evaluation loop; 0: none. */
static uint64_t find_caller(struct walker *w, uint64_t at)
{
    const struct marey__remote_layout *layout = w->target->layout;
    for (unsigned n = 0; n < MAX_STEPS; n++) {
        const uint8_t *frame = find_in_chunks(w, at);
        if (frame == NULL || marey__remote_u8(frame, layout->frame.owner) >= MAREY__REMOTE_OWNER_SHIM)
            return 0;
        if (is_marked(layout, frame))
            return at;
        if (is_entry(layout, frame))
            return 0;
        at = marey__remote_u64(frame, layout->frame.previous);
    }
    return 0;
}

/* The callee of the frame at `at` in the data copied after it: a marked one, else any; 0: none. */
static uint64_t find_callee(struct walker *w, uint64_t at, bool *is_good)
{
    const struct marey__remote_layout *layout = w->target->layout;
    uint64_t found = 0;
    for (uint64_t i = layout->frame.size; i < CALLEE_BYTES; i += 8) {
        const uint8_t *frame = find_in_chunks(w, at + i);
        if (frame == NULL)
            break;
        if (marey__remote_u64(frame, layout->frame.previous) != at ||
            marey__remote_u8(frame, layout->frame.owner) != MAREY__REMOTE_OWNER_THREAD)
            continue;
        found = found == 0 ? at + i : found;
        *is_good = is_marked(layout, frame);
        if (*is_good)
            return at + i;
    }
    return found;
}

static uint64_t find_running(struct walker *w, uint64_t at)
{
    const struct marey__remote_layout *layout = w->target->layout;
    const bool has_marks = layout->frame.stack_top != MAREY__REMOTE_ABSENT;
    const uint64_t caller = find_caller(w, at);
    if (has_marks ? caller != 0 : caller == 0)
        return has_marks ? caller : at;
    /* Neither it nor its callers are running: it has called. Later versions: a live frame may have called. */
    uint64_t found = has_marks ? at : caller;
    uint64_t next = found;
    for (unsigned n = 0; n < MAX_STEPS && next != 0; n++) {
        bool is_good = false;
        next = find_callee(w, next, &is_good);
        if (is_good)
            found = next;
        if (is_good == has_marks)
            break;
    }
    return found;
}

/* Finds the innermost frame; false if that is impossible. */
static bool find_innermost(struct walker *w, const uint8_t *state, uint64_t *innermost)
{
    const struct marey__remote_layout *layout = w->target->layout;
    *innermost = marey__remote_u64(state, layout->thread.frame);
    if (layout->cframe.current_frame != MAREY__REMOTE_ABSENT && *innermost != 0) {
        const uint8_t *cframe = find_cframe(w, *innermost);
        if (cframe == NULL)
            return false;
        *innermost = marey__remote_u64(cframe, layout->cframe.current_frame);
        w->around = marey__remote_u64(cframe, layout->cframe.previous);
    }
    return layout->thread.datastack_chunk == MAREY__REMOTE_ABSENT || refresh_chunks(w, state);
}

enum marey__walked marey__thread_walk(struct marey__sampler_context *context,
                                      struct marey__target *target,
                                      struct marey__target_thread *thread, bool is_still,
                                      uint32_t *flags)
{
    const struct marey__remote_layout *layout = target->layout;
    struct walker w = {
        .context = context,
        .target = target,
        .places = &thread->places,
        .max_late = is_still ? MAX_LATE_STILL : MAX_LATE,
    };
    const uint8_t *state = marey__batch_at(&context->batch, thread->places.state_copy);
    if (state == NULL || marey__remote_u64(state, layout->thread.interpreter) !=
                             target->interpreters[thread->interpreter].address)
        return MAREY__WALK_ENDED;
    uint64_t innermost;
    if (!find_innermost(&w, state, &innermost))
        return MAREY__WALK_REJECTED;
    if (!is_still)
        innermost = find_running(&w, innermost);
    if (walk_from(&w, innermost)) {
        if (w.around != 0) /* where to search when a nested loop begins */
            expect_cframe(&thread->places, w.around);
    } else if (!walk_around(&w, marey__remote_u64(state, layout->thread.frame), &innermost)) {
        /* A broken chain in a thread that moved mixes two stacks. */
        if (context->walk.n == 0 || (!is_still && !w.is_cut && !w.is_partial))
            return MAREY__WALK_REJECTED;
        *flags |= MAREY_SAMPLE_TRUNCATED;
        w.is_torn = w.is_torn || w.is_partial;
    }
    if (w.n_run > 0)
        end_run(&w, 0);
    if ((*flags & MAREY_SAMPLE_TRUNCATED) != 0)
        (void)MAREY__PUSH(context->walk.frames, context->walk.n, context->walk.cap,
                          (struct marey__walk_frame){.code = MAREY__WALK_MARK});
    marey__walk_put_task(context, target, thread->address, w.coroutines,
                         MAREY__MIN(w.n_coroutines, (size_t)MAX_COROUTINES));
    if (context->walk.n == 0)
        *flags |= MAREY_SAMPLE_NO_FRAMES;
    if (!is_still && (w.is_torn || differs_from_reference(&w, innermost)))
        *flags |= MAREY_SAMPLE_UNSTABLE;
    if (marey__remote_in_exception(target->remote, thread->address, state))
        *flags |= MAREY_SAMPLE_EXCEPTION;
    return MAREY__WALKED;
}
