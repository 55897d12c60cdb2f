/*
 * Statistics and digests of a value. Those of a large one are made by a thread of their own while the data are written:
 * writing waits for the disk, measuring for memory.
 */
#include <string.h>

#include "dump/dump_internal.h"

static struct kymo__dump *const dump = &kymo__dump;

static void take_digest(const struct kymo_tensor *tensor, struct kymo__dump_measure *out)
{
    out->n_blocks = kymo_digest_blocks(kymo_tensor_bytes(tensor));
    if (out->n_blocks > 1)
        out->blocks = kymo__alloc(out->n_blocks * sizeof *out->blocks);
    if (out->blocks == NULL)
        out->n_blocks = 0;
    out->has_digest = kymo_tensor_digest(tensor, &out->digest, out->blocks) == KYMO_OK;
}

void kymo__dump_measure(const struct kymo_tensor *tensor, uint32_t what,
                        struct kymo__dump_measure *out)
{
    *out = (struct kymo__dump_measure){0};
    if (what & KYMO__MEASURE_DIGEST)
        take_digest(tensor, out);
    if (what & KYMO__MEASURE_STATS)
        out->has_stats = kymo_tensor_stats_get(tensor, &out->stats) == KYMO_OK;
}

void kymo__dump_measure_fini(struct kymo__dump_measure *measure)
{
    kymo__free(measure->blocks);
    *measure = (struct kymo__dump_measure){0};
}

/* ---- beside the writer ---- */

static struct {
    struct kymo__dump_item *first, *last; /* that wait; all of this is guarded by dump.lock */
    bool has_thread, is_idle;
} queue;

/* The lock is held. */
static struct kymo__dump_item *take_first(void)
{
    struct kymo__dump_item *const item = queue.first;
    queue.first = item->measuring.next;
    item->measuring.state = KYMO__MEASURE_RUNS;
    return item;
}

static void *run(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "kymo-dump-sums");
    pthread_mutex_lock(&dump->lock);
    for (;;) {
        queue.is_idle = true;
        const bool has_work = kymo__dump_wait_for(&dump->measure_work, (void *const *)&queue.first);
        queue.is_idle = false;
        if (!has_work)
            break;
        struct kymo__dump_item *const item = take_first();
        pthread_mutex_unlock(&dump->lock);
        kymo__dump_measure(&item->value.tensor, item->measuring.what, item->measure);
        pthread_mutex_lock(&dump->lock);
        item->measuring.state = KYMO__MEASURED;
        pthread_cond_broadcast(&dump->done);
    }
    queue.has_thread = false;
    dump->n_threads--;
    pthread_cond_broadcast(&dump->done);
    pthread_mutex_unlock(&dump->lock);
    return NULL;
}

void kymo__dump_measure_begin(struct kymo__dump_item *item, uint32_t what)
{
    if (item->measure != NULL || what == 0 ||
        (item->measure = kymo__calloc(1, sizeof *item->measure)) == NULL)
        return;
    pthread_mutex_lock(&dump->lock);
    if (!queue.has_thread)
        queue.has_thread = kymo__dump_start_thread(run);
    item->measuring = (struct kymo__dump_measuring){.state = KYMO__MEASURE_WAITS, .what = what};
    *(queue.first != NULL ? &queue.last->measuring.next : &queue.first) = item;
    queue.last = item;
    if (queue.is_idle)
        pthread_cond_signal(&dump->measure_work);
    pthread_mutex_unlock(&dump->lock);
}

/* One that is still waiting is taken out of the queue. The lock is held. */
static void take_out(struct kymo__dump_item *item)
{
    struct kymo__dump_item *before = NULL;
    for (struct kymo__dump_item *at = queue.first; at != item; at = at->measuring.next)
        before = at;
    *(before != NULL ? &before->measuring.next : &queue.first) = item->measuring.next;
    if (queue.last == item)
        queue.last = before;
}

void kymo__dump_measure_finish(struct kymo__dump_item *item)
{
    if (item->measuring.what == 0) /* never begun, by this very thread */
        return;
    pthread_mutex_lock(&dump->lock);
    const bool is_ours = item->measuring.state == KYMO__MEASURE_WAITS;
    if (is_ours)
        take_out(item);
    while (item->measuring.state == KYMO__MEASURE_RUNS)
        pthread_cond_wait(&dump->done, &dump->lock);
    pthread_mutex_unlock(&dump->lock);
    if (is_ours)
        kymo__dump_measure(&item->value.tensor, item->measuring.what, item->measure);
    item->measuring.what = 0;
}

void kymo__dump_measure_after_fork(void)
{
    memset(&queue, 0, sizeof queue);
}
