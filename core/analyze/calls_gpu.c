/*
 * GPU time of calls. A record CALL_NODE behind a LAUNCH says in which node of which profile the launch was; the work of that
 * correlation, whenever it comes and on whichever stream, is time of that node.
 */
#include <string.h>

#include "analyze/calls.h"
#include "read/read_internal.h"

struct launch {
    uint64_t correlation;
    uint32_t node; /* of the tree */
};

struct work {
    uint64_t correlation, ns;
};

struct reading {
    kymo__call_finder *find;
    void *find_ctx;
    struct launch *launches;
    struct work *works;
    size_t n_launches, launches_cap, n_works, works_cap;
    uint64_t *last; /* by lane: the correlation that was launched last; 0: none */
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the GPU time of calls");
}

static bool take_launch(struct reading *r, uint32_t lane, const uint64_t *words)
{
    const uint32_t type = kymo_record_type_of(words[0]);
    if (type == KYMO_RECORD_LAUNCH)
        r->last[lane] = words[1];
    if (type != KYMO_RECORD_CALL_NODE || r->last[lane] == 0)
        return true;
    const uint32_t node = r->find(r->find_ctx, words[1], words[2]);
    if (node == 0)
        return true; /* of a block that is damaged */
    if (!kymo__grow(&r->launches, &r->launches_cap, r->n_launches + 1, sizeof *r->launches))
        return false;
    r->launches[r->n_launches++] = (struct launch){r->last[lane], node};
    r->last[lane] = 0;
    return true;
}

static bool take_work(struct reading *r, const struct kymo_batch *batch, const uint64_t *words)
{
    if (kymo_record_type_of(words[0]) != KYMO_RECORD_GPU || words[3] == 0 ||
        !kymo__is_work(kymo_record_work_kind(words[1])))
        return true;
    if (!kymo__grow(&r->works, &r->works_cap, r->n_works + 1, sizeof *r->works))
        return false;
    r->works[r->n_works++] = (struct work){words[3], kymo_batch_duration_ns(batch, words[2])};
    return true;
}

static kymo_status visit(void *ctx, const struct kymo_batch *batch)
{
    struct reading *const r = ctx;
    const bool is_stream = batch->lane->kind == KYMO_LANE_GPU;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *const words = &batch->words[i];
        const bool is_record = kymo_word_kind(words[0]) == KYMO_KIND_RECORD;
        if (is_record &&
            !(is_stream ? take_work(r, batch, words) : take_launch(r, batch->lane->lane, words)))
            return no_memory();
        i += is_record ? kymo_record_length(words[0]) : 1;
    }
    return KYMO_OK;
}

static int by_correlation(const void *a, const void *b)
{
    const uint64_t x = ((const struct launch *)a)->correlation,
                   y = ((const struct launch *)b)->correlation;
    return x < y ? -1 : x > y;
}

static void add_up(struct reading *r, struct kymo__calls *calls)
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

static bool has_streams(const kymo_recording *recording, const struct kymo_process *process)
{
    for (uint32_t i = 0; i < process->n_lanes; i++)
        if (kymo_recording_lane(recording, process->index, i)->kind == KYMO_LANE_GPU)
            return true;
    return false;
}

kymo_status kymo__calls_read_gpu(struct kymo__calls *calls, kymo_recording *recording,
                                 const struct kymo_process *process, kymo__call_finder *find,
                                 void *find_ctx)
{
    struct reading r = {.find = find, .find_ctx = find_ctx};
    if (!has_streams(recording, process))
        return KYMO_OK;
    /* A recording that still grows may show lanes that opened after we looked; numbers have a limit. */
    r.last = kymo__calloc((size_t)KYMO__MAX_LANES, sizeof *r.last);
    if (r.last == NULL)
        return no_memory();
    const kymo_status status = kymo_recording_visit(recording, process->index, visit, &r);
    if (status == KYMO_OK)
        add_up(&r, calls);
    kymo__free(r.last);
    kymo__free(r.launches);
    kymo__free(r.works);
    return status;
}
