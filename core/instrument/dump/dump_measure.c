/* Statistics and digests. Those of large values are computed by a separate thread while the data are written. */
#include "instrument/dump/internal.h"

static struct marey__dump *const dump = &marey__dump;

static void take_digest(const struct marey_tensor *tensor, struct marey__dump_measure *out)
{
    out->n_blocks = marey_digest_blocks(marey_tensor_bytes(tensor));
    if (out->n_blocks > 1)
        out->blocks = marey__alloc(out->n_blocks * sizeof *out->blocks);
    if (out->blocks == NULL)
        out->n_blocks = 0;
    out->has_digest = marey_tensor_digest(tensor, &out->digest, out->blocks) == MAREY_OK;
}

void marey__dump_measure(const struct marey_tensor *tensor, uint32_t what,
                         struct marey__dump_measure *out)
{
    *out = (struct marey__dump_measure){0};
    if (what & MAREY__MEASURE_DIGEST)
        take_digest(tensor, out);
    if (what & MAREY__MEASURE_STATS)
        out->has_stats = marey_tensor_stats_get(tensor, &out->stats) == MAREY_OK;
}

void marey__dump_measure_fini(struct marey__dump_measure *measure)
{
    marey__free(measure->blocks);
    *measure = (struct marey__dump_measure){0};
}

/* ---- in parallel to the writer ---- */

/* Caller holds the lock, which is released meanwhile. */
static void measure_item(struct marey__dump_item *item)
{
    item->measuring.state = MAREY__MEASURE_RUNS;
    pthread_mutex_unlock(&dump->lock);
    marey__dump_measure(&item->value.tensor, item->measuring.what, item->measure);
    pthread_mutex_lock(&dump->lock);
    item->measuring.state = MAREY__MEASURED;
    pthread_cond_broadcast(&dump->done);
}

struct marey__dump_worker marey__dump_measure_worker = {
    .name = "marey-dump-sums", .work = measure_item, .has_work = PTHREAD_COND_INITIALIZER};

void marey__dump_measure_begin(struct marey__dump_item *item, uint32_t what)
{
    if (item->measure != NULL || what == 0 ||
        (item->measure = marey__calloc(1, sizeof *item->measure)) == NULL)
        return;
    MAREY__HOLD(&dump->lock);
    item->measuring = (struct marey__dump_measuring){.state = MAREY__MEASURE_WAITS, .what = what};
    marey__dump_worker_add(&marey__dump_measure_worker, item);
}

/* Removes a waiting item from the queue; without a thread it is not there. Caller holds the lock. */
static void take_out(const struct marey__dump_item *item)
{
    struct marey__dump_worker *const queue = &marey__dump_measure_worker;
    struct marey__dump_item *before = NULL, *at = queue->first;
    for (; at != NULL && at != item; at = at->next_waiting)
        before = at;
    if (at == NULL)
        return;
    *(before != NULL ? &before->next_waiting : &queue->first) = item->next_waiting;
    if (queue->last == item)
        queue->last = before;
}

void marey__dump_measure_finish(struct marey__dump_item *item)
{
    if (item->measuring.what == 0) /* never begun */
        return;
    pthread_mutex_lock(&dump->lock);
    const bool is_ours = item->measuring.state == MAREY__MEASURE_WAITS;
    if (is_ours)
        take_out(item);
    while (item->measuring.state == MAREY__MEASURE_RUNS)
        pthread_cond_wait(&dump->done, &dump->lock);
    pthread_mutex_unlock(&dump->lock);
    if (is_ours)
        marey__dump_measure(&item->value.tensor, item->measuring.what, item->measure);
    item->measuring.what = 0;
}
