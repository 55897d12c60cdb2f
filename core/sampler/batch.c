/* Many places of a process, copied by one call. */
#include "sampler/sampler_internal.h"

enum { FIRST_SPANS = 1024 };
/* Address space, of which only what is used becomes memory: room for the deepest stacks, which never has to move. */
#define ROOM ((size_t)48 << 20)

bool kymo__batch_init(struct kymo__batch *batch)
{
    *batch = (struct kymo__batch){0};
    batch->bytes = kymo__alloc(ROOM);
    batch->bytes_cap = ROOM;
    return batch->bytes != NULL &&
           kymo__grow(&batch->spans, &batch->spans_cap, FIRST_SPANS, sizeof *batch->spans);
}

void kymo__batch_fini(struct kymo__batch *batch)
{
    kymo__free(batch->spans);
    kymo__free(batch->bytes);
    *batch = (struct kymo__batch){0};
}

void kymo__batch_clear(struct kymo__batch *batch)
{
    batch->n = 0;
    batch->n_bytes = 0;
}

size_t kymo__batch_add(struct kymo__batch *batch, uint64_t at, size_t n_bytes)
{
    if (at == 0 || n_bytes == 0 || n_bytes > batch->bytes_cap - batch->n_bytes ||
        (batch->n == batch->spans_cap &&
         !kymo__grow(&batch->spans, &batch->spans_cap, batch->n + 1, sizeof *batch->spans)))
        return KYMO__BATCH_NONE;
    batch->spans[batch->n] = (struct kymo__remote_span){
        .at = at,
        .to = batch->bytes + batch->n_bytes,
        .n_bytes = n_bytes,
    };
    /* Each copy begins at a multiple of 16, as the original does: fields are aligned in both. */
    const size_t padded = (n_bytes + 15) & ~(size_t)15;
    batch->n_bytes += KYMO__MIN(padded, batch->bytes_cap - batch->n_bytes);
    return batch->n++;
}

void kymo__batch_read(struct kymo__batch *batch, struct kymo__remote *remote, size_t first)
{
    while (first < batch->n) {
        first += kymo__remote_read_spans(remote, batch->spans + first, batch->n - first);
        if (first < batch->n)
            batch->spans[first++].n_bytes = 0; /* this one cannot be read; those behind it may */
    }
}
