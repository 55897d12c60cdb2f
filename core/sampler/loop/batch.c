/* Many places of a process, copied by one call. */
#include "sampler/loop/internal.h"

enum { FIRST_SPANS = 1024 };
/* Address space, of which only what is used becomes memory: room for the deepest stacks, which never has to move. */
#define ROOM ((size_t)48 << 20)

bool marey__batch_init(struct marey__batch *batch)
{
    *batch = (struct marey__batch){0};
    batch->bytes = marey__alloc(ROOM);
    batch->bytes_cap = ROOM;
    return batch->bytes != NULL &&
           marey__grow(&batch->spans, &batch->spans_cap, FIRST_SPANS, sizeof *batch->spans);
}

void marey__batch_fini(struct marey__batch *batch)
{
    marey__free(batch->spans);
    marey__free(batch->bytes);
    *batch = (struct marey__batch){0};
}

void marey__batch_clear(struct marey__batch *batch)
{
    batch->n = 0;
    batch->n_bytes = 0;
}

size_t marey__batch_add(struct marey__batch *batch, uint64_t at, size_t n_bytes)
{
    if (at == 0 || n_bytes == 0 || n_bytes > batch->bytes_cap - batch->n_bytes ||
        (batch->n == batch->spans_cap &&
         !marey__grow(&batch->spans, &batch->spans_cap, batch->n + 1, sizeof *batch->spans)))
        return MAREY__BATCH_NONE;
    batch->spans[batch->n] = (struct marey__remote_span){
        .at = at,
        .to = batch->bytes + batch->n_bytes,
        .n_bytes = n_bytes,
    };
    /* Each copy begins at a multiple of 16, as the original does: fields are aligned in both. */
    const size_t padded = (n_bytes + 15) & ~(size_t)15;
    batch->n_bytes += MAREY__MIN(padded, batch->bytes_cap - batch->n_bytes);
    return batch->n++;
}

void marey__batch_read(struct marey__batch *batch, struct marey__remote *remote, size_t first)
{
    while (first < batch->n) {
        first += marey__remote_read_spans(remote, batch->spans + first, batch->n - first);
        if (first < batch->n)
            batch->spans[first++].n_bytes = 0; /* this one cannot be read; those behind it may */
    }
}
