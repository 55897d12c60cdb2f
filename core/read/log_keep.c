/*
 * Keeps decoded events in memory: the page and the breakdown visit the events of a process once per analysis. The first
 * visit decodes and keeps the batches; later visits get the same batches without reading the log.
 */
#include "read/internal.h"

struct marey__kept_events {
    struct marey_batch *batches;
    size_t n_batches, batches_cap;
    uint64_t *words; /* of all batches */
    size_t n_words, words_cap;
};

struct keeping {
    struct marey__kept_events *kept;
    bool is_full; /* or out of memory: the events kept so far are dropped at the end */
    marey_visitor *visitor;
    void *ctx;
};

static void free_kept(struct marey__kept_events *kept)
{
    if (kept == NULL)
        return;
    MAREY__FREE_ALL(kept->batches, kept->words, kept);
}

static marey_status keep_batch(void *ctx, const struct marey_batch *batch)
{
    struct keeping *keeping = ctx;
    struct marey__kept_events *kept = keeping->kept;
    if (!keeping->is_full && (batch->n > kept->words_cap - kept->n_words ||
                              !marey__grow(&kept->batches, &kept->batches_cap, kept->n_batches + 1,
                                           sizeof *kept->batches)))
        keeping->is_full = true;
    if (!keeping->is_full) {
        struct marey_batch *own = &kept->batches[kept->n_batches++];
        *own = *batch;
        own->words = kept->words + kept->n_words;
        memcpy(kept->words + kept->n_words, batch->words, batch->n * sizeof *batch->words);
        kept->n_words += batch->n;
    }
    return keeping->visitor(keeping->ctx, batch);
}

static marey_status visit_kept(const struct marey__kept_events *kept, marey_visitor *visitor,
                               void *ctx)
{
    for (size_t i = 0; i < kept->n_batches; i++)
        MAREY_TRY(visitor(ctx, &kept->batches[i]));
    return MAREY_OK;
}

/* Allocate space for the words of the log; NULL on out of memory. */
static struct marey__kept_events *make_kept(const struct marey__log_file *log)
{
    struct marey__kept_events *kept = marey__calloc(1, sizeof *kept);
    if (kept == NULL)
        return NULL;
    kept->words_cap = log->info.n_words + 1;
    kept->words = marey__alloc_large(kept->words_cap * sizeof *kept->words);
    if (kept->words != NULL)
        return kept;
    free_kept(kept);
    return NULL;
}

/* Subtract `bytes` from the budget. Returns false if it has less. */
static bool take_bytes(_Atomic uint64_t *budget, uint64_t bytes)
{
    uint64_t left = atomic_load_explicit(budget, memory_order_relaxed);
    while (bytes <= left)
        if (atomic_compare_exchange_weak_explicit(budget, &left, left - bytes, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

marey_status marey__log_file_visit_kept(struct marey__log_file *log, _Atomic uint64_t *budget,
                                        marey_visitor *visitor, void *ctx)
{
    /* Acquire: pairs with the release below, so that the batches are complete. */
    const struct marey__kept_events *kept = atomic_load_explicit(&log->kept, memory_order_acquire);
    if (kept != NULL)
        return visit_kept(kept, visitor, ctx);
    const uint64_t bytes = (log->info.n_words + 1) * sizeof(uint64_t);
    if (atomic_exchange_explicit(&log->is_keeping, true, memory_order_relaxed) ||
        !take_bytes(budget, bytes))
        return marey__log_file_visit_in_order(log, visitor, ctx);
    struct keeping keeping = {.kept = make_kept(log), .visitor = visitor, .ctx = ctx};
    if (keeping.kept == NULL)
        return marey__log_file_visit_in_order(log, visitor, ctx);
    const marey_status status = marey__log_file_visit_in_order(log, keep_batch, &keeping);
    if (status == MAREY_OK && !keeping.is_full)
        atomic_store_explicit(&log->kept, keeping.kept, memory_order_release);
    else
        free_kept(keeping.kept);
    return status;
}

const struct marey__kept_payload *marey__keep_payload(struct marey__payload_blocks *blocks, size_t i,
                                                      uint64_t sequence, struct marey__buf *raw,
                                                      _Atomic uint64_t *budget)
{
    if (blocks->kept == NULL)
        blocks->kept = marey__calloc(blocks->n, sizeof *blocks->kept);
    if (blocks->kept == NULL || !take_bytes(budget, raw->cap))
        return NULL;
    blocks->kept[i] =
        (struct marey__kept_payload){.raw = *raw, .sequence = sequence, .is_there = true};
    *raw = (struct marey__buf){0};
    return &blocks->kept[i];
}

static void drop_payloads(struct marey__payload_blocks *blocks)
{
    for (size_t i = 0; blocks->kept != NULL && i < blocks->n; i++)
        marey__buf_fini(&blocks->kept[i].raw);
    marey__free(blocks->kept);
    blocks->kept = NULL;
}

void marey__log_file_drop_kept(struct marey__log_file *log)
{
    for (size_t i = 0; i < MAREY__N_PAYLOADS; i++)
        drop_payloads(&log->payloads[i]);
    free_kept(atomic_load_explicit(&log->kept, memory_order_relaxed));
    atomic_store_explicit(&log->kept, NULL, memory_order_relaxed);
    atomic_store_explicit(&log->is_keeping, false, memory_order_relaxed);
}
