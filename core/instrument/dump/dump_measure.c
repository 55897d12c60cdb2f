/*
 * Statistics and digests of a value. Those of a large one are made by a thread of their own while the data are written:
 * writing waits for the disk, measuring for memory.
 */
#include <string.h>

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

/* ---- beside the writer ---- */

static struct {
    struct marey__dump_item *first, *last; /* that wait; all of this is guarded by dump.lock */
    bool has_thread, is_idle;
} queue;

/* The lock is held. */
static struct marey__dump_item *take_first(void)
{
    struct marey__dump_item *const item = queue.first;
    queue.first = item->measuring.next;
    item->measuring.state = MAREY__MEASURE_RUNS;
    return item;
}

static void *run(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "marey-dump-sums");
    pthread_mutex_lock(&dump->lock);
    for (;;) {
        queue.is_idle = true;
        const bool has_work = marey__dump_wait_for(&dump->measure_work, (void *const *)&queue.first);
        queue.is_idle = false;
        if (!has_work)
            break;
        struct marey__dump_item *const item = take_first();
        pthread_mutex_unlock(&dump->lock);
        marey__dump_measure(&item->value.tensor, item->measuring.what, item->measure);
        pthread_mutex_lock(&dump->lock);
        item->measuring.state = MAREY__MEASURED;
        pthread_cond_broadcast(&dump->done);
    }
    queue.has_thread = false;
    dump->n_threads--;
    pthread_cond_broadcast(&dump->done);
    pthread_mutex_unlock(&dump->lock);
    return NULL;
}

void marey__dump_measure_begin(struct marey__dump_item *item, uint32_t what)
{
    if (item->measure != NULL || what == 0 ||
        (item->measure = marey__calloc(1, sizeof *item->measure)) == NULL)
        return;
    pthread_mutex_lock(&dump->lock);
    if (!queue.has_thread)
        queue.has_thread = marey__dump_start_thread(run);
    item->measuring = (struct marey__dump_measuring){.state = MAREY__MEASURE_WAITS, .what = what};
    *(queue.first != NULL ? &queue.last->measuring.next : &queue.first) = item;
    queue.last = item;
    if (queue.is_idle)
        pthread_cond_signal(&dump->measure_work);
    pthread_mutex_unlock(&dump->lock);
}

/* One that is still waiting is taken out of the queue. The lock is held. */
static void take_out(struct marey__dump_item *item)
{
    struct marey__dump_item *before = NULL;
    for (struct marey__dump_item *at = queue.first; at != item; at = at->measuring.next)
        before = at;
    *(before != NULL ? &before->measuring.next : &queue.first) = item->measuring.next;
    if (queue.last == item)
        queue.last = before;
}

void marey__dump_measure_finish(struct marey__dump_item *item)
{
    if (item->measuring.what == 0) /* never begun, by this very thread */
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

void marey__dump_measure_after_fork(void)
{
    memset(&queue, 0, sizeof queue);
}
