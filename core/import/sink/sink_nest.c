/*
 * Turns the sorted entries of a thread into begins and ends. A slice's end is known at its begin and waits on a stack
 * until a later entry comes.
 *
 *   slices   [-----A-----]  [---D---]        lane 0   A( B( B) A) D( D)
 *              [--B--] [--C--]               lane 1   C( C)            a further lane of the same thread
 *
 * A slice that would outlast the one around it goes to the first lane where it fits. After the first few lanes, a slice
 * needs an empty lane, and a heap orders these slices by end, so that thousands of them stay cheap. Separate begins and
 * ends stay on the first lane; a record END_OF marks the end of one that is not innermost.
 *
 * Each nanosecond is self time of exactly one range of the thread. Readers see one lane at a time and would count it for
 * the innermost range of every lane, so two records correct that: AROUND names the ranges around the outermost one of a
 * further lane, COVERED holds the self time that a range loses to ranges of other lanes. Among the innermost ranges of
 * all lanes, the time belongs to the one that ends first: above, C has only the time after A.
 */
#include "import/sink/internal.h"

enum {
    FEW_LANES = 8,
    /*
     * Search depth for a range that is not on top of the stack; a hostile file must not cost a full search per event.
     */
    MAX_SEARCH = 1000,
    /* Names in a record AROUND; of more, the innermost are omitted. */
    MAX_AROUND = 256,
    /* Kineto rounds starts and durations, so a range may outlast the one around it by this much. */
    ROUNDING_NS = 1000,
};

#define NO_END UINT64_MAX

struct open_range {
    uint64_t begin, end;
    uint64_t covered_ns; /* self time on its lane that belongs to ranges of other lanes */
    uint32_t site;
    bool is_edge; /* ends by a separate event */
};

struct track {
    struct marey__sink_track out;
    uint32_t place; /* index in the nest's `tracks` */
    struct open_range *stack;
    size_t depth, stack_cap;
    size_t n_edges; /* separate begins on the stack */
    uint32_t *around; /* sites of the ranges around stack[0], which are on other tracks, outermost first */
    size_t n_around, around_cap;
    struct track *next_idle;
};

struct marey__nest {
    struct marey__sink_log *log;
    const struct marey__sink_lane *of;
    struct track **tracks; /* the first is the thread's own */
    size_t n_tracks, tracks_cap;
    size_t n_busy;            /* tracks with an open range */
    struct marey__heap crowd; /* busy tracks from FEW_LANES on, each with one slice, by its end */
    struct track *idle;       /* tracks from FEW_LANES on that are not busy */
    struct track *latest;     /* of the latest begin of a slice */
    uint64_t now_ns;          /* time is accounted for up to here */
};

static struct track *add_track(struct marey__nest *nest)
{
    if (!marey__grow(&nest->tracks, &nest->tracks_cap, nest->n_tracks + 1, sizeof(struct track *)))
        return NULL;
    struct track *track = marey__calloc(1, sizeof *track);
    if (track == NULL)
        return NULL;
    track->out.of = nest->of;
    track->out.number = nest->log->n_lanes++;
    track->place = (uint32_t)nest->n_tracks;
    nest->tracks[nest->n_tracks++] = track;
    return track;
}

marey_status marey__nest_create(struct marey__sink_log *log, const struct marey__sink_lane *of,
                                struct marey__nest **out)
{
    struct marey__nest *nest = marey__calloc(1, sizeof *nest);
    MAREY__TRY_MEMORY(nest != NULL);
    nest->log = log;
    nest->of = of;
    if (add_track(nest) == NULL) {
        marey__nest_destroy(nest);
        return marey__no_memory();
    }
    *out = nest;
    return MAREY_OK;
}

void marey__nest_destroy(struct marey__nest *nest)
{
    if (nest == NULL)
        return;
    for (size_t i = 0; i < nest->n_tracks; i++) {
        MAREY__FREE_ALL(nest->tracks[i]->out.words, nest->tracks[i]->stack, nest->tracks[i]->around,
                        nest->tracks[i]);
    }
    marey__free(nest->tracks);
    marey__heap_fini(&nest->crowd);
    marey__free(nest);
}

uint32_t marey__nest_n_blocks(const struct marey__nest *nest)
{
    return nest->tracks[0]->out.sequence;
}

/* ---- ends ---- */

/*
 * Readers end the innermost range of a name, so of several on a stack the innermost must end first; the outer one then
 * takes its end. Returns the index of the range to end for the one at `i`.
 */
static size_t trade_ends(struct track *track, size_t i)
{
    struct open_range *stack = track->stack;
    size_t inner = track->depth - 1;
    const size_t stop = MAREY__MAX(i, inner > MAX_SEARCH ? inner - MAX_SEARCH : 0);
    while (inner > stop && stack[inner].site != stack[i].site)
        inner--;
    if (inner == stop)
        return i;
    const struct open_range ending = stack[i];
    stack[i].end = stack[inner].end;
    stack[i].is_edge = stack[inner].is_edge;
    stack[inner].end = ending.end;
    stack[inner].is_edge = ending.is_edge;
    return inner;
}

/* End the range at stack index `i`, at `ns`. */
static marey_status end_at(struct marey__nest *nest, struct track *track, size_t i, uint64_t ns)
{
    i = trade_ends(track, i);
    const struct open_range range = track->stack[i];
    ns = MAREY__MAX(ns, track->out.last_ns); /* a range found too late ends late */
    track->n_edges -= range.is_edge;
    nest->n_busy -= track->depth == 1;
    if (range.covered_ns != 0) {
        const uint64_t covered[] = {(uint64_t)MAREY_KIND_RECORD << 20 | MAREY_RECORD_COVERED << 12 | 3,
                                    range.site, range.covered_ns};
        MAREY_TRY(marey__track_records(nest->log, &track->out, ns, 0, covered, 3));
    }
    if (i + 1 == track->depth--)
        return marey__track_word(nest->log, &track->out, ns, marey__tag(MAREY_KIND_END, range.site));
    memmove(&track->stack[i], &track->stack[i + 1], (track->depth - i) * sizeof *track->stack);
    const uint64_t record[] = {(uint64_t)MAREY_KIND_RECORD << 20 | MAREY_RECORD_END_OF << 12 | 2,
                               range.site};
    return marey__track_records(nest->log, &track->out, ns, 0, record, 2);
}

/* The first slice to end, at `ns` or before, below a separate begin; the depth if there is none. */
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

/* End the slices that end at `ns` or before. A point lies inside a slice of length 0 with the same timestamp. */
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

/* ---- self time ---- */

static struct open_range *top_of(const struct track *track)
{
    MAREY_ASSERT(track != NULL);
    return &track->stack[track->depth - 1];
}

static size_t count_few(const struct marey__nest *nest)
{
    return MAREY__MIN(nest->n_tracks, (size_t)FEW_LANES);
}

static struct track *first_of_crowd(const struct marey__nest *nest)
{
    return nest->crowd.n != 0 ? nest->tracks[nest->crowd.items[0].number] : NULL;
}

/* The track whose innermost range ends first; NULL if all are empty. */
static struct track *find_first_end(const struct marey__nest *nest)
{
    struct track *first = first_of_crowd(nest);
    for (size_t i = 0; i < count_few(nest); i++) {
        struct track *track = nest->tracks[i];
        if (track->depth != 0 && (first == NULL || top_of(track)->end < top_of(first)->end))
            first = track;
    }
    return first;
}

/* Among ends that differ only by rounding, the range that began last is the inner one. */
static struct track *find_owner(const struct marey__nest *nest)
{
    const uint64_t first_end = top_of(find_first_end(nest))->end;
    struct track *owner = first_of_crowd(nest);
    if (owner != NULL && top_of(owner)->end - first_end > ROUNDING_NS)
        owner = NULL;
    for (size_t i = 0; i < count_few(nest); i++) {
        struct track *track = nest->tracks[i];
        if (track->depth != 0 && top_of(track)->end - first_end <= ROUNDING_NS &&
            (owner == NULL || top_of(track)->begin >= top_of(owner)->begin))
            owner = track;
    }
    return owner;
}

/* Attribute the time until `ns`, in which no range begins or ends. */
static void count_time(struct marey__nest *nest, uint64_t ns)
{
    const uint64_t passed_ns = ns - nest->now_ns;
    nest->now_ns = ns;
    if (passed_ns == 0 || (nest->n_busy < 2 && nest->crowd.n == 0))
        return;
    struct track *owner = find_owner(nest);
    for (size_t i = 0; i < count_few(nest); i++) {
        struct track *track = nest->tracks[i];
        if (track->depth != 0 && track != owner)
            top_of(track)->covered_ns += passed_ns;
    }
    if (owner == first_of_crowd(nest)) /* covered from its begin, except for this time */
        top_of(owner)->covered_ns -= passed_ns;
}

/* End the slices of all tracks that end at `ns` or before, in order. */
static marey_status advance(struct marey__nest *nest, uint64_t ns, bool for_point)
{
    while (nest->n_busy > 1 || nest->crowd.n != 0) {
        struct track *first = find_first_end(nest);
        const struct open_range *top = top_of(first);
        if (top->is_edge || !is_due(top, ns, for_point))
            break;
        count_time(nest, MAREY__MAX(top->end, nest->now_ns));
        const bool is_of_crowd = first == first_of_crowd(nest);
        MAREY_TRY(end_due(nest, first, top->end, false));
        if (is_of_crowd) {
            marey__heap_remove(&nest->crowd, nest->crowd.items[0].number);
            first->next_idle = nest->idle;
            nest->idle = first;
        }
    }
    count_time(nest, ns);
    for (size_t i = 0; i < count_few(nest); i++)
        MAREY_TRY(end_due(nest, nest->tracks[i], ns, for_point));
    return MAREY_OK;
}

/* A separate end: of the innermost begin of that site, or of any. */
static marey_status put_end(struct marey__nest *nest, uint64_t ns, uint32_t site)
{
    struct track *track = nest->tracks[0];
    const size_t stop = track->depth > MAX_SEARCH ? track->depth - MAX_SEARCH : 0;
    if (track->n_edges != 0)
        for (size_t i = track->depth; i-- > stop;)
            if (track->stack[i].is_edge && (site == 0 || track->stack[i].site == site))
                return end_at(nest, track, i, ns);
    nest->log->n_orphans++;
    return MAREY_OK;
}

/* ---- begins ---- */

/* The track of the innermost range around one that ends at `end`, and how many of its ranges contain it; NULL: none. */
static const struct track *find_around(const struct marey__nest *nest, uint64_t end, size_t *depth)
{
    const struct track *found = NULL;
    for (size_t i = 0; i < count_few(nest); i++) {
        const struct track *track = nest->tracks[i];
        size_t n = track->depth;
        const size_t stop = n > MAX_SEARCH ? n - MAX_SEARCH : 0;
        while (n > stop && track->stack[n - 1].end < end &&
               end - track->stack[n - 1].end > ROUNDING_NS)
            n--;
        if (n == stop ||
            (found != NULL && track->stack[n - 1].begin < found->stack[*depth - 1].begin))
            continue;
        found = track;
        *depth = n;
    }
    return found;
}

/* Record the ranges around a slice that becomes the outermost of a further lane. */
static marey_status put_around(struct marey__nest *nest, struct track *track,
                               const struct marey__sink_entry *entry)
{
    size_t depth = 0;
    const struct track *outer = find_around(nest, entry->ns + entry->duration, &depth);
    const size_t n_outer = outer != NULL ? outer->n_around : 0;
    const size_t n = MAREY__MIN(n_outer + depth, (size_t)MAX_AROUND);
    uint64_t record[2 + MAX_AROUND] = {
        (uint64_t)MAREY_KIND_RECORD << 20 | MAREY_RECORD_AROUND << 12 | (2 + n), n};
    for (size_t i = 0; i < n; i++)
        record[2 + i] = i < n_outer ? outer->around[i] : outer->stack[i - n_outer].site;
    if (track->place < FEW_LANES) { /* find_around() searches only these */
        MAREY__TRY_MEMORY(marey__grow(&track->around, &track->around_cap, n, sizeof *track->around));
        track->n_around = n;
        for (size_t i = 0; i < n; i++)
            track->around[i] = (uint32_t)record[2 + i];
    }
    return marey__track_records(nest->log, &track->out, entry->ns, 0, record, 2 + n);
}

static marey_status push(struct marey__nest *nest, struct track *track,
                         const struct marey__sink_entry *entry, const uint64_t *extra, bool is_edge)
{
    MAREY__TRY_MEMORY(
        marey__grow(&track->stack, &track->stack_cap, track->depth + 1, sizeof *track->stack));
    if (track->depth == 0 && track != nest->tracks[0])
        MAREY_TRY(put_around(nest, track, entry));
    nest->n_busy += track->depth == 0;
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

/* Put a slice that fits on none of the first lanes on an empty one, or a new one. */
static marey_status push_aside(struct marey__nest *nest, const struct marey__sink_entry *entry,
                               const uint64_t *extra)
{
    struct track *track = nest->idle;
    if (track != NULL) {
        nest->idle = track->next_idle;
    } else if (nest->log->n_lanes >= MAREY__MAX_LANES) {
        nest->log->n_crowded++;
        return MAREY_OK;
    } else if ((track = add_track(nest)) == NULL) {
        return marey__no_memory();
    }
    MAREY_TRY(push(nest, track, entry, extra, false));
    if (track->place < FEW_LANES)
        return MAREY_OK;
    top_of(track)->covered_ns = entry->duration;
    return marey__heap_put(&nest->crowd, track->place, top_of(track)->end) ? MAREY_OK
                                                                           : marey__no_memory();
}

static marey_status put_slice(struct marey__nest *nest, const struct marey__sink_entry *entry,
                              const uint64_t *extra)
{
    for (size_t i = 0; i < count_few(nest); i++)
        if (fits(nest->tracks[i], entry->ns + entry->duration))
            return push(nest, nest->tracks[i], entry, extra, false);
    return push_aside(nest, entry, extra);
}

/* ---- other events ---- */

/* Work of a stream, which may overlap and stores its duration. */
static marey_status put_work(struct marey__nest *nest, const struct marey__sink_entry *entry,
                             const uint64_t *extra)
{
    struct marey__sink_track *out = &nest->tracks[0]->out;
    MAREY_TRY(marey__track_records(nest->log, out, entry->ns, 0, extra + 1, (size_t)extra[0]));
    out->end_ns = MAREY__MAX(out->end_ns, entry->ns + entry->duration);
    return MAREY_OK;
}

/* A point, or words about the whole process, on this track. */
static marey_status put_point(struct marey__nest *nest, struct track *track,
                              const struct marey__sink_entry *entry, const uint64_t *extra)
{
    if (extra == NULL)
        return marey__track_word(nest->log, &track->out, entry->ns, entry->tag & 0xffffffu);
    return marey__track_records(nest->log, &track->out, entry->ns, 0, extra + 1, (size_t)extra[0]);
}

marey_status marey__nest_put(struct marey__nest *nest, const struct marey__sink_entry *entry,
                             const uint64_t *extra)
{
    const enum marey__sink_class class = (enum marey__sink_class)marey__entry_class(entry);
    MAREY_TRY(advance(nest, entry->ns, class == MAREY__CLASS_POINT));
    switch (class) {
    case MAREY__CLASS_ITERATION:
        return put_point(nest, nest->tracks[0], entry, extra); /* after ranges that end with it */
    case MAREY__CLASS_SLICE:
        return nest->of->kind == MAREY_LANE_GPU ? put_work(nest, entry, extra)
                                                : put_slice(nest, entry, extra);
    case MAREY__CLASS_EDGE:
        if (marey_word_kind(entry->tag) == MAREY_KIND_END)
            return put_end(nest, entry->ns, marey_word_id(entry->tag));
        return push(nest, nest->tracks[0], entry, extra, true);
    case MAREY__CLASS_POINT:
        break;
    }
    /* On the track of the slice that began last, as long as that is open. */
    const bool is_inside = nest->latest != NULL && nest->latest->depth != 0;
    return put_point(nest, is_inside ? nest->latest : nest->tracks[0], entry, extra);
}

marey_status marey__nest_finish(struct marey__nest *nest)
{
    MAREY_TRY(advance(nest, UINT64_MAX, false));
    for (size_t i = 0; i < nest->n_tracks; i++)
        MAREY_TRY(marey__track_flush(nest->log, &nest->tracks[i]->out));
    return MAREY_OK;
}
