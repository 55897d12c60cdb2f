/* A part of the last seconds: time by thread and stack, found by a hash of both. */
#include <string.h>

#include "sampler/loop/internal.h"

static size_t slot_of(uint32_t thread, uint32_t stack, size_t n_index)
{
    const uint64_t key = (uint64_t)thread << 32 | stack;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (n_index - 1);
}

/* The slot of the index that has it, or the free one where it belongs. */
static uint32_t *find(const struct marey__live_bucket *bucket, uint32_t thread, uint32_t stack)
{
    size_t slot = slot_of(thread, stack, bucket->n_index);
    while (bucket->index[slot] != 0) {
        const struct marey__live_sum *sum = &bucket->sums[bucket->index[slot] - 1];
        if (sum->thread == thread && sum->stack == stack)
            break;
        slot = (slot + 1) & (bucket->n_index - 1);
    }
    return &bucket->index[slot];
}

/* At most half of the index is in use, so that every search ends. */
static bool widen(struct marey__live_bucket *bucket)
{
    if (bucket->n * 2 < bucket->n_index)
        return true;
    const size_t n_index = bucket->n_index == 0 ? 64 : bucket->n_index * 2;
    uint32_t *index = marey__calloc(n_index, sizeof *index);
    if (index == NULL)
        return false;
    marey__free(bucket->index);
    bucket->index = index;
    bucket->n_index = n_index;
    for (size_t i = 0; i < bucket->n; i++)
        *find(bucket, bucket->sums[i].thread, bucket->sums[i].stack) = (uint32_t)i + 1;
    return true;
}

bool marey__live_bucket_add(struct marey__live_bucket *bucket,
                            const struct marey_samples_seen *seen, uint64_t weight_ns)
{
    if (!widen(bucket))
        return false;
    uint32_t *const place = find(bucket, seen->thread, seen->stack);
    if (*place == 0) {
        if (!MAREY__PUSH(bucket->sums, bucket->n, bucket->cap,
                         (struct marey__live_sum){.thread = seen->thread, .stack = seen->stack}))
            return false;
        *place = (uint32_t)bucket->n;
    }
    struct marey__live_sum *sum = &bucket->sums[*place - 1];
    sum->wall_ns += weight_ns;
    sum->cpu_ns += (seen->flags & MAREY_SAMPLE_OFF_CPU) == 0 ? weight_ns : 0;
    sum->gil_ns += (seen->flags & MAREY_SAMPLE_GIL) != 0 ? weight_ns : 0;
    sum->gc_ns += (seen->flags & MAREY_SAMPLE_GC) != 0 ? weight_ns : 0;
    return true;
}

void marey__live_bucket_empty(struct marey__live_bucket *bucket)
{
    bucket->n = 0;
    if (bucket->n_index != 0)
        memset(bucket->index, 0, bucket->n_index * sizeof *bucket->index);
}

void marey__live_bucket_fini(struct marey__live_bucket *bucket)
{
    marey__free(bucket->sums);
    marey__free(bucket->index);
    *bucket = (struct marey__live_bucket){0};
}
