/*
 * Lanes that are streams of a GPU: records of work, each followed by what is known of it. A piece of work goes to the
 * format once a word comes that is no longer about it. One at the end of a batch waits in the lane for the next batch:
 *
 *   lane->payloads    | struct marey__stream_work | records |
 */
#include "present/export/export_walk.h"

enum { MAX_RECORDS = 1 << 14 }; /* words about one piece; the records beyond are left out */

static uint64_t ns_of(const struct marey__export *x, const struct marey_batch *batch, uint64_t word)
{
    const uint64_t ns = marey_batch_ns(batch, word) + (uint64_t)x->shift_ns;
    return MAREY__MAX(ns, x->origin_ns);
}

/* How many words from `from` on are records about work that began at `ns`; of flows, those with that timestamp. */
static size_t count_records(const struct marey__export *x, const struct marey_batch *batch,
                            size_t from, uint64_t ns)
{
    size_t i = from;
    while (i < batch->n && i - from < MAX_RECORDS) {
        const uint64_t word = batch->words[i];
        const uint32_t type = marey_record_type_of(word);
        const bool is_about_it = type >= MAREY_RECORD_LAUNCH && type <= MAREY_RECORD_ARGUMENTS;
        const bool is_flow = type == MAREY_RECORD_FLOW && ns_of(x, batch, word) == ns;
        if (marey_word_kind(word) != MAREY_KIND_RECORD || (!is_about_it && !is_flow))
            break;
        MAREY_ASSERT(marey_record_length(word) <= batch->n - i);
        i += marey_record_length(word);
    }
    return i - from;
}

static void hand_on(struct marey__export *x, struct marey__export_lane *lane,
                    struct marey__stream_work *work, const uint64_t *records, size_t n)
{
    work->payload.records = records;
    work->payload.n_words = (uint32_t)n;
    lane->stack.last_ns = MAREY__MAX(lane->stack.last_ns, work->ns + work->duration_ns);
    if (x->format->work != NULL && !marey__is_skipped(x, work->site))
        x->format->work(x, lane, work);
}

void marey__export_work_end(struct marey__export *x, struct marey__export_lane *lane)
{
    struct marey__stream_work work;
    if (lane->stack.info->kind != MAREY_LANE_GPU || lane->payloads.len < sizeof work)
        return;
    memcpy(&work, lane->payloads.data, sizeof work);
    hand_on(x, lane, &work, (const uint64_t *)(lane->payloads.data + sizeof work),
            (lane->payloads.len - sizeof work) / sizeof(uint64_t));
    lane->payloads.len = 0;
}

static void keep(struct marey__export *x, struct marey__export_lane *lane, const void *bytes, size_t n)
{
    if (lane->payloads.len + n <= 2 * MAX_RECORDS * sizeof(uint64_t))
        marey__buf_put(&lane->payloads, bytes, n);
    if (lane->payloads.failed)
        x->status = marey__no_memory();
}

static struct marey__stream_work work_of(const struct marey__export *x,
                                         const struct marey_batch *batch, const uint64_t *words)
{
    struct marey__stream_work work = {
        .ns = ns_of(x, batch, words[0]),
        .duration_ns = marey_batch_duration_ns(batch, words[2]),
        .site = marey_record_site(words[1]),
        .kind = marey_record_work_kind(words[1]),
        .correlation = words[3],
        .bytes = words[4],
        .details = marey_record_work_details(words[1]),
    };
    work.has_launch = marey_record_launch(words, &work.launch);
    return work;
}

/* More about the work that waits; returns how many words that was. */
static size_t take_rest(struct marey__export *x, struct marey__export_lane *lane,
                        const struct marey_batch *batch)
{
    struct marey__stream_work work;
    if (lane->payloads.len < sizeof work)
        return 0;
    memcpy(&work, lane->payloads.data, sizeof work);
    const size_t n = count_records(x, batch, 0, work.ns);
    keep(x, lane, batch->words, n * sizeof batch->words[0]);
    return n;
}

/* The record at `i`; returns how many words were taken with it. */
static size_t take_record(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey_batch *batch, size_t i)
{
    const uint64_t *words = batch->words + i;
    const size_t len = MAREY__MAX(marey_record_length(words[0]), 1u);
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_FLOW && x->format->flow != NULL &&
        !marey__is_skipped(x, marey_record_site(words[1])))
        x->format->flow(x, lane, ns_of(x, batch, words[0]), words);
    if (type != MAREY_RECORD_GPU)
        return len;
    struct marey__stream_work work = work_of(x, batch, words);
    const size_t n = count_records(x, batch, i + len, work.ns);
    if (i + len + n < batch->n) {
        hand_on(x, lane, &work, words + len, n);
    } else {
        keep(x, lane, &work, sizeof work);
        keep(x, lane, words + len, n * sizeof words[0]);
    }
    return len + n;
}

marey_status marey__export_work(struct marey__export *x, struct marey__export_lane *lane,
                                const struct marey_batch *batch)
{
    for (size_t i = take_rest(x, lane, batch); i < batch->n;) {
        marey__export_work_end(x, lane);
        i += marey_word_kind(batch->words[i]) == MAREY_KIND_RECORD ? take_record(x, lane, batch, i)
                                                                   : 1;
    }
    return x->status != MAREY_OK ? x->status : x->out.status;
}
