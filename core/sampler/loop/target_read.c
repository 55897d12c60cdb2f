/*
 * What is read of a thread: everything by one call, at the addresses of the last time.
 *
 *   frames outside of the data stack | older chunks | twin | thread state | cframes | newest chunk
 *
 * The order is that of the copy. Thread state and newest chunk stand side by side, as the one says where in the other the
 * stack ends. The twin is a first copy of the end of the newest chunk: where it differs from the second, the stack has
 * changed meanwhile. An address that is no longer right costs another read, later; what it brings may be of another
 * moment, unless the thread stands still.
 *
 * To keep such reads rare without waiting for anything, addresses that were of use in one of the last reads are read
 * again: a program that goes to and fro between two generators has both copied each time. Taking a second look only when
 * the first went wrong would favour what is slow (spec: retry until stable is a bias).
 */
#include <string.h>

#include "sampler/loop/internal.h"

enum {
    SLACK = 512,    /* bytes behind the end of the stack: it may grow by some frames */
    TWIN = 640,     /* bytes of the twin */
    RUN = 64,       /* reads after which the reach of the run before is forgotten */
    STRAY_AGE = 32, /* reads for which an address is kept that was of no use */
    MAX_CHUNKS = 1 << 14,
};
#define MAX_CHUNK_SIZE ((uint64_t)1 << 28)

void marey__places_fini(struct marey__places *places)
{
    marey__free(places->chunks);
    marey__free(places->chunks_before);
    marey__free(places->heap);
    marey__free(places->heap_before);
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

/* The frames of the last walk become the ones to look in. */
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

static void plan_twin(struct marey__batch *batch, struct marey__places *places)
{
    const struct marey__chunk *newest = &places->chunks[0];
    places->twin_bytes = MAREY__MIN(newest->n_used, TWIN);
    places->twin_at = newest->at + newest->n_used - places->twin_bytes;
    places->twin_copy = marey__batch_add(batch, places->twin_at, places->twin_bytes);
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
    places->twin_copy = MAREY__BATCH_NONE;
    if (places->n_chunks > 0)
        plan_twin(batch, places);
    places->state_copy = marey__batch_add(batch, thread->address, layout->thread.size);
    for (size_t i = 0; i < places->n_cframes; i++)
        places->cframes[i].copy = marey__batch_add(batch, places->cframes[i].at, layout->cframe.size);
    if (places->n_chunks > 0)
        plan_chunk(batch, &places->chunks[0],
                   MAREY__MAX(places->reach, places->reach_before) + SLACK);
}

/* ---- what was not where it used to be ---- */

/* Read `n_bytes` at `at` now. */
static size_t read_late(struct marey__sampler_context *context, struct marey__target *target,
                        uint64_t at, size_t n_bytes, bool *is_torn)
{
    struct marey__batch *batch = &context->batch;
    const size_t index = marey__batch_add(batch, at, n_bytes);
    if (index == MAREY__BATCH_NONE)
        return index;
    *is_torn = true;
    marey__batch_read(batch, target->remote, index);
    return marey__batch_at(batch, index) != NULL ? index : MAREY__BATCH_NONE;
}

/* `at` to the front; of those that were there the last one may fall out. */
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

void marey__places_expect_cframe(struct marey__places *places, uint64_t at)
{
    for (size_t i = 0; i < places->n_cframes; i++)
        if (places->cframes[i].at == at)
            return;
    if (places->n_cframes < MAREY__CFRAMES)
        places->n_cframes++;
    places->cframes[places->n_cframes - 1] =
        (struct marey__place){.at = at, .copy = MAREY__BATCH_NONE};
}

const uint8_t *marey__places_cframe(struct marey__sampler_context *context,
                                    struct marey__target *target, struct marey__places *places,
                                    uint64_t at, bool *is_torn)
{
    for (size_t i = 0; i < places->n_cframes; i++) {
        const uint8_t *copy = marey__batch_at(&context->batch, places->cframes[i].copy);
        if (places->cframes[i].at == at && copy != NULL)
            return copy;
    }
    struct marey__place *place = keep(places->cframes, &places->n_cframes, MAREY__CFRAMES, at);
    place->copy = read_late(context, target, at, target->layout->cframe.size, is_torn);
    return marey__batch_at(&context->batch, place->copy);
}

const uint8_t *marey__places_stray(struct marey__sampler_context *context,
                                   struct marey__target *target, struct marey__places *places,
                                   uint64_t at, bool *is_torn)
{
    for (size_t i = 0; i < places->n_strays; i++) {
        const uint8_t *copy = marey__batch_at(&context->batch, places->strays[i].copy);
        if (places->strays[i].at != at || copy == NULL)
            continue;
        places->strays[i].used = places->n_reads;
        return copy;
    }
    struct marey__place *place = keep(places->strays, &places->n_strays, MAREY__STRAYS, at);
    place->used = places->n_reads;
    place->copy = read_late(context, target, at, target->layout->frame.size, is_torn);
    return marey__batch_at(&context->batch, place->copy);
}

/* The chunk at `at` among those of last time, whose copy holds `n_used` bytes (0: as many as its header says). */
static bool find_chunk(struct marey__sampler_context *context, struct marey__target *target,
                       const struct marey__places *places, size_t n_before, size_t *hint,
                       struct marey__chunk *chunk)
{
    const struct marey__remote_layout *layout = target->layout;
    for (size_t k = 0; k < n_before; k++) {
        const struct marey__chunk *before = &places->chunks_before[(*hint + k) % n_before];
        const uint8_t *copy = marey__batch_at(&context->batch, before->copy);
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

static bool read_chunk(struct marey__sampler_context *context, struct marey__target *target,
                       struct marey__chunk *chunk, bool *is_torn)
{
    const struct marey__remote_layout *layout = target->layout;
    uint8_t header[64];
    if (layout->chunk.data > sizeof header ||
        !marey__remote_read(target->remote, chunk->at, header, layout->chunk.data))
        return false;
    chunk->size = marey__remote_u64(header, layout->chunk.size);
    if (chunk->n_used == 0)
        chunk->n_used = layout->chunk.data + 8 * marey__remote_u64(header, layout->chunk.top);
    if (chunk->size > MAX_CHUNK_SIZE || chunk->n_used > chunk->size ||
        chunk->n_used < layout->chunk.data)
        return false;
    chunk->n_copied = MAREY__MIN(chunk->n_used + SLACK, chunk->size);
    chunk->copy = read_late(context, target, chunk->at, chunk->n_copied, is_torn);
    return chunk->copy != MAREY__BATCH_NONE;
}

bool marey__places_refresh(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__places *places, const uint8_t *state, bool *is_torn)
{
    const struct marey__remote_layout *layout = target->layout;
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
            (!find_chunk(context, target, places, n_before, &hint, &chunk) &&
             !read_chunk(context, target, &chunk, is_torn)))
            return false;
        places->chunks[places->n_chunks++] = chunk;
        const uint64_t next =
            marey__remote_u64(marey__batch_at(&context->batch, chunk.copy), layout->chunk.previous);
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
