/*
 * GPU time of calls. A record CALL_NODE behind a LAUNCH says in which node of which profile the launch was; the work of that
 * correlation, whenever it comes and on whichever stream, is time of that node.
 */
#include <string.h>

#include "analyze/calls/internal.h"
#include "read/internal.h"

struct launch {
    uint64_t correlation;
    uint32_t node; /* of the tree */
};

struct work {
    uint64_t correlation, ns;
};

struct reading {
    marey__call_finder *find;
    void *find_ctx;
    struct launch *launches;
    struct work *works;
    size_t n_launches, launches_cap, n_works, works_cap;
    uint64_t *last; /* by lane: the correlation that was launched last; 0: none */
};

static bool take_launch(struct reading *r, uint32_t lane, const uint64_t *words)
{
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_LAUNCH)
        r->last[lane] = words[1];
    if (type != MAREY_RECORD_CALL_NODE || r->last[lane] == 0)
        return true;
    const uint32_t node = r->find(r->find_ctx, words[1], words[2]);
    if (node == 0)
        return true; /* of a block that is damaged */
    if (!MAREY__PUSH(r->launches, r->n_launches, r->launches_cap,
                     (struct launch){r->last[lane], node}))
        return false;
    r->last[lane] = 0;
    return true;
}

static bool take_work(struct reading *r, const struct marey_batch *batch, const uint64_t *words)
{
    if (marey_record_type_of(words[0]) != MAREY_RECORD_GPU || words[3] == 0 ||
        !marey__is_work(marey_record_work_kind(words[1])))
        return true;
    return MAREY__PUSH(r->works, r->n_works, r->works_cap,
                       (struct work){words[3], marey_batch_duration_ns(batch, words[2])});
}

static marey_status visit(void *ctx, const struct marey_batch *batch)
{
    struct reading *const r = ctx;
    const bool is_stream = batch->lane->kind == MAREY_LANE_GPU;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *const words = &batch->words[i];
        const bool is_record = marey_word_kind(words[0]) == MAREY_KIND_RECORD;
        if (is_record &&
            !(is_stream ? take_work(r, batch, words) : take_launch(r, batch->lane->lane, words)))
            return marey__no_memory();
        i += is_record ? marey_record_length(words[0]) : 1;
    }
    return MAREY_OK;
}

static int by_correlation(const void *a, const void *b)
{
    const uint64_t x = ((const struct launch *)a)->correlation,
                   y = ((const struct launch *)b)->correlation;
    return x < y ? -1 : x > y;
}

static void add_up(struct reading *r, struct marey__calls *calls)
{
    if (r->n_launches == 0)
        return;
    qsort(r->launches, r->n_launches, sizeof *r->launches, by_correlation);
    for (size_t i = 0; i < r->n_works; i++) {
        const struct launch key = {.correlation = r->works[i].correlation};
        const struct launch *const found =
            bsearch(&key, r->launches, r->n_launches, sizeof *r->launches, by_correlation);
        if (found != NULL)
            calls->nodes[found->node].gpu_ns += r->works[i].ns;
    }
    calls->has_gpu = true;
}

static bool has_streams(const marey_recording *recording, const struct marey_process *process)
{
    for (uint32_t i = 0; i < process->n_lanes; i++)
        if (marey_recording_lane(recording, process->index, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

marey_status marey__calls_read_gpu(struct marey__calls *calls, marey_recording *recording,
                                   const struct marey_process *process, marey__call_finder *find,
                                   void *find_ctx)
{
    struct reading r = {.find = find, .find_ctx = find_ctx};
    if (!has_streams(recording, process))
        return MAREY_OK;
    /* A recording that still grows may show lanes that opened after we looked; numbers have a limit. */
    r.last = marey__calloc((size_t)MAREY__MAX_LANES, sizeof *r.last);
    MAREY__TRY_MEMORY(r.last != NULL);
    const marey_status status = marey__recording_visit_in_order(recording, process->index, visit, &r);
    if (status == MAREY_OK)
        add_up(&r, calls);
    marey__free(r.last);
    marey__free(r.launches);
    marey__free(r.works);
    return status;
}
