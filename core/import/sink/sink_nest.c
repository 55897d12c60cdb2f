/*
 * The entries of a thread, in order, become begins and ends. A slice says where it ends when it begins, so its end waits
 * on a stack until something later comes.
 *
 *   slices   [-----A-----]  [---D---]        lane 0   A( B( B) A) D( D)
 *              [--B--] [--C--]               lane 1   C( C)            a further lane of the same thread
 *
 * A slice that would outlast the one around it goes to the first lane where it fits. Beyond a few lanes only empty ones
 * are looked for, by a heap, so that thousands at a time cost no more than a few. Begins and ends that come apart stay
 * on the first lane; where one of those ends in the middle, a record END_OF says so.
 */
#include <string.h>

#include "import/sink/sink_internal.h"

enum {
    FEW_LANES = 8,
    /* How far down the stack one looks for what is not on top; a hostile file must not cost a walk for each event. */
    MAX_SEARCH = 1000,
};

#define NO_END UINT64_MAX

struct open_range {
    uint64_t begin, end;
    uint32_t site;
    bool is_edge; /* its end comes by itself */
};

struct track {
    struct marey__sink_track out;
    struct open_range *stack;
    size_t depth, stack_cap;
    size_t n_edges; /* on the stack */
};

struct marey__nest {
    struct marey__sink_log *log;
    const struct marey__sink_lane *of;
    struct track **tracks; /* the first is the thread's own */
    size_t n_tracks, tracks_cap;
    struct marey__heap crowd; /* tracks from FEW_LANES on, by when they are empty */
    struct track *latest;     /* where a slice began last */
    uint64_t n_orphans, n_crowded;
};

static marey_status no_memory(void)
{
    return marey__fail(MAREY_ENOMEM, "no memory for the ranges of a trace");
}

static struct track *add_track(struct marey__nest *nest)
{
    if (!marey__grow(&nest->tracks, &nest->tracks_cap, nest->n_tracks + 1, sizeof(struct track *)))
        return NULL;
    struct track *track = marey__calloc(1, sizeof *track);
    if (track == NULL)
        return NULL;
    track->out.of = nest->of;
    track->out.number = nest->log->n_lanes++;
    nest->tracks[nest->n_tracks++] = track;
    return track;
}

marey_status marey__nest_create(struct marey__sink_log *log, const struct marey__sink_lane *of,
                                struct marey__nest **out)
{
    struct marey__nest *nest = marey__calloc(1, sizeof *nest);
    if (nest == NULL)
        return no_memory();
    nest->log = log;
    nest->of = of;
    if (add_track(nest) == NULL) {
        marey__nest_destroy(nest);
        return no_memory();
    }
    *out = nest;
    return MAREY_OK;
}

void marey__nest_destroy(struct marey__nest *nest)
{
    if (nest == NULL)
        return;
    for (size_t i = 0; i < nest->n_tracks; i++) {
        marey__free(nest->tracks[i]->out.words);
        marey__free(nest->tracks[i]->stack);
        marey__free(nest->tracks[i]);
    }
    marey__free(nest->tracks);
    marey__heap_fini(&nest->crowd);
    marey__free(nest);
}

uint32_t marey__nest_n_blocks(const struct marey__nest *nest)
{
    return nest->tracks[0]->out.sequence;
}

void marey__nest_losses(const struct marey__nest *nest, uint64_t *n_orphans, uint64_t *n_crowded)
{
    *n_orphans = nest->n_orphans;
    *n_crowded = nest->n_crowded;
}

/* ---- ends ---- */

/* End what is at `i` on the stack, at `ns`. */
static marey_status end_at(struct marey__nest *nest, struct track *track, size_t i, uint64_t ns)
{
    const struct open_range range = track->stack[i];
    ns = MAREY__MAX(ns, track->out.last_ns); /* one that was not found in time ends late */
    track->n_edges -= range.is_edge;
    if (i + 1 == track->depth--)
        return marey__track_word(nest->log, &track->out, ns, marey__tag(MAREY_KIND_END, range.site));
    memmove(&track->stack[i], &track->stack[i + 1], (track->depth - i) * sizeof *track->stack);
    const uint64_t record[] = {(uint64_t)MAREY_KIND_RECORD << 20 | MAREY_RECORD_END_OF << 12 | 2,
                               range.site};
    return marey__track_records(nest->log, &track->out, ns, 0, record, 2);
}

/* The slice below a begin without end that ends first, at `ns` or before; the depth when there is none. */
static size_t find_due(const struct track *track, uint64_t ns)
{
    size_t due = track->depth;
    const size_t stop = track->depth > MAX_SEARCH ? track->depth - MAX_SEARCH : 0;
    for (size_t i = track->depth; i-- > stop;)
        if (!track->stack[i].is_edge && track->stack[i].end <= ns &&
            (due == track->depth || track->stack[i].end < track->stack[due].end))
            due = i;
    return due;
}

static bool is_due(const struct open_range *range, uint64_t ns, bool for_point)
{
    return range->end < ns || (range->end == ns && !(for_point && range->begin == ns));
}

/* End the slices that end at `ns` or before. A point lies inside a slice without length of the same moment. */
static marey_status end_due(struct marey__nest *nest, struct track *track, uint64_t ns, bool for_point)
{
    for (;;) {
        while (track->depth != 0 && !track->stack[track->depth - 1].is_edge) {
            const struct open_range *top = &track->stack[track->depth - 1];
            if (!is_due(top, ns, for_point))
                return MAREY_OK;
            MAREY_TRY(end_at(nest, track, track->depth - 1, top->end));
        }
        if (track->n_edges == track->depth)
            return MAREY_OK;
        const size_t due = find_due(track, ns);
        if (due == track->depth)
            return MAREY_OK;
        MAREY_TRY(end_at(nest, track, due, track->stack[due].end));
    }
}

/* An end by itself: of the innermost begin of that site, or of any. */
static marey_status put_end(struct marey__nest *nest, uint64_t ns, uint32_t site)
{
    struct track *track = nest->tracks[0];
    MAREY_TRY(end_due(nest, track, ns, false));
    const size_t stop = track->depth > MAX_SEARCH ? track->depth - MAX_SEARCH : 0;
    if (track->n_edges != 0)
        for (size_t i = track->depth; i-- > stop;)
            if (track->stack[i].is_edge && (site == 0 || track->stack[i].site == site))
                return end_at(nest, track, i, ns);
    nest->n_orphans++;
    return MAREY_OK;
}

/* ---- begins ---- */

static marey_status push(struct marey__nest *nest, struct track *track,
                         const struct marey__sink_entry *entry, const uint64_t *extra, bool is_edge)
{
    if (!marey__grow(&track->stack, &track->stack_cap, track->depth + 1, sizeof *track->stack))
        return no_memory();
    track->stack[track->depth++] =
        (struct open_range){.begin = entry->ns,
                            .end = is_edge ? NO_END : entry->ns + entry->duration,
                            .site = marey_word_id(entry->tag),
                            .is_edge = is_edge};
    track->n_edges += is_edge;
    nest->latest = track;
    const uint32_t tag = marey__tag(MAREY_KIND_BEGIN, marey_word_id(entry->tag));
    if (extra == NULL)
        return marey__track_word(nest->log, &track->out, entry->ns, tag);
    return marey__track_records(nest->log, &track->out, entry->ns, tag, extra + 1, (size_t)extra[0]);
}

static bool fits(const struct track *track, uint64_t end)
{
    return track->depth == 0 || track->stack[track->depth - 1].end >= end;
}

/* A slice for which none of the first lanes has room: on one that is empty by now, or on a new one. */
static marey_status push_aside(struct marey__nest *nest, const struct marey__sink_entry *entry,
                               const uint64_t *extra)
{
    uint32_t number = (uint32_t)nest->n_tracks;
    struct track *track;
    if (nest->crowd.n != 0 && nest->crowd.items[0].key <= entry->ns) {
        number = nest->crowd.items[0].number;
        track = nest->tracks[number];
        MAREY_TRY(end_due(nest, track, entry->ns, false));
    } else if (nest->log->n_lanes >= MAREY__MAX_LANES) {
        nest->n_crowded++;
        return MAREY_OK;
    } else if ((track = add_track(nest)) == NULL) {
        return no_memory();
    }
    MAREY_TRY(push(nest, track, entry, extra, false));
    if (number >= FEW_LANES && !marey__heap_put(&nest->crowd, number, track->stack[0].end))
        return no_memory();
    return MAREY_OK;
}

static marey_status put_slice(struct marey__nest *nest, const struct marey__sink_entry *entry,
                              const uint64_t *extra)
{
    const size_t few = MAREY__MIN(nest->n_tracks, (size_t)FEW_LANES);
    for (size_t i = 0; i < few; i++) {
        struct track *track = nest->tracks[i];
        MAREY_TRY(end_due(nest, track, entry->ns, false));
        if (fits(track, entry->ns + entry->duration))
            return push(nest, track, entry, extra, false);
    }
    return push_aside(nest, entry, extra);
}

/* ---- everything else ---- */

/* Work of a stream, which may overlap and has its duration with it. */
static marey_status put_work(struct marey__nest *nest, const struct marey__sink_entry *entry,
                             const uint64_t *extra)
{
    struct marey__sink_track *out = &nest->tracks[0]->out;
    MAREY_TRY(marey__track_records(nest->log, out, entry->ns, 0, extra + 1, (size_t)extra[0]));
    out->end_ns = MAREY__MAX(out->end_ns, entry->ns + entry->duration);
    return MAREY_OK;
}

/* A point goes where the range around it is: that of the slice that began last, as long as that lasts. */
static marey_status put_point(struct marey__nest *nest, const struct marey__sink_entry *entry,
                              const uint64_t *extra)
{
    struct track *track = nest->tracks[0];
    if (nest->latest != NULL && nest->latest != track) {
        MAREY_TRY(end_due(nest, nest->latest, entry->ns, true));
        if (nest->latest->depth != 0)
            track = nest->latest;
    }
    MAREY_TRY(end_due(nest, track, entry->ns, true));
    if (extra == NULL)
        return marey__track_word(nest->log, &track->out, entry->ns, entry->tag & 0xffffffu);
    return marey__track_records(nest->log, &track->out, entry->ns, 0, extra + 1, (size_t)extra[0]);
}

/* About the whole process: on the thread's own lane, behind what ends with it. */
static marey_status put_iteration(struct marey__nest *nest, const struct marey__sink_entry *entry,
                                  const uint64_t *extra)
{
    MAREY_TRY(end_due(nest, nest->tracks[0], entry->ns, false));
    return marey__track_records(nest->log, &nest->tracks[0]->out, entry->ns, 0, extra + 1,
                                (size_t)extra[0]);
}

marey_status marey__nest_put(struct marey__nest *nest, const struct marey__sink_entry *entry,
                             const uint64_t *extra)
{
    switch ((enum marey__sink_class)marey__entry_class(entry)) {
    case MAREY__CLASS_ITERATION:
        return put_iteration(nest, entry, extra);
    case MAREY__CLASS_SLICE:
        return nest->of->kind == MAREY_LANE_GPU ? put_work(nest, entry, extra)
                                                : put_slice(nest, entry, extra);
    case MAREY__CLASS_EDGE:
        if (marey_word_kind(entry->tag) == MAREY_KIND_END)
            return put_end(nest, entry->ns, marey_word_id(entry->tag));
        MAREY_TRY(end_due(nest, nest->tracks[0], entry->ns, false));
        return push(nest, nest->tracks[0], entry, extra, true);
    case MAREY__CLASS_POINT:
        break;
    }
    return put_point(nest, entry, extra);
}

marey_status marey__nest_finish(struct marey__nest *nest)
{
    for (size_t i = 0; i < nest->n_tracks; i++) {
        MAREY_TRY(end_due(nest, nest->tracks[i], UINT64_MAX, false));
        MAREY_TRY(marey__track_flush(nest->log, &nest->tracks[i]->out));
    }
    return MAREY_OK;
}
