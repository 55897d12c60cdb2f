/*
 * Joins samples with the log of the sampled process, by the machine's CLOCK_MONOTONIC. Ranges, iterations, epochs and
 * phases of the log become spans of time of a thread or process; memory grows with ranges of one name, not with events.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/samples/internal.h"
#include "read/internal.h"

/* ---- spans ---- */

static bool add_span(struct marey__spans *spans, uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns <= begin_ns)
        return true;
    return MAREY__PUSH(spans->items, spans->n, spans->cap,
                       (struct marey__time_span){begin_ns, end_ns});
}

MAREY__ORDER(by_begin, struct marey__time_span, MAREY__UP(begin_ns))

static void finish_spans(struct marey__spans *spans)
{
    size_t n = 0;
    if (spans->n == 0)
        return;
    qsort(spans->items, spans->n, sizeof *spans->items, by_begin);
    for (size_t i = 1; i < spans->n; i++) {
        struct marey__time_span *const last = &spans->items[n];
        if (spans->items[i].begin_ns <= last->end_ns)
            last->end_ns = MAREY__MAX(last->end_ns, spans->items[i].end_ns);
        else
            spans->items[++n] = spans->items[i];
    }
    spans->n = n + 1;
}

bool marey__spans_have(const struct marey__spans *spans, uint64_t ns)
{
    size_t at;
    MAREY__BISECT(at, 0, spans->n, spans->items[at].end_ns <= ns);
    return at < spans->n && spans->items[at].begin_ns <= ns;
}

void marey__spans_fini(struct marey__spans *spans)
{
    marey__free(spans->items);
    *spans = (struct marey__spans){0};
}

static bool is_called(const struct marey_site_info *site, const char *name)
{
    if (strpbrk(name, "*?[") != NULL)
        return fnmatch(name, site->name, 0) == 0;
    return strcmp(name, site->name) == 0;
}

/* The sites with the name, by site; NULL on out of memory. */
static uint8_t *sites_called(const struct marey__samples_target *target, const char *name, bool *any)
{
    const uint32_t n = marey_recording_process(target->recording, target->log)->n_sites;
    uint8_t *const sites = marey__calloc((size_t)n + 1, sizeof *sites);
    for (uint32_t i = 1; sites != NULL && i <= n; i++) {
        sites[i] = is_called(marey_recording_site(target->recording, target->log, i), name);
        *any = *any || sites[i];
    }
    return sites;
}

/* ---- ranges ---- */

struct ranges {
    const uint8_t *sites;
    uint32_t n_sites;
    struct marey__spans *by_lane;
};

static bool is_wanted(const struct ranges *r, uint32_t site)
{
    return site <= r->n_sites && r->sites[site] != 0;
}

static bool range_ended(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *range,
                        uint64_t end_ns, enum marey__ending how)
{
    struct ranges *const r = ctx;
    (void)how;
    if (!is_wanted(r, range->site))
        return true;
    for (size_t i = 0; i < lane->n_open; i++)
        if (is_wanted(r, lane->open[i].site))
            return true; /* within another one, whose span includes it */
    return add_span(&r->by_lane[lane->info->lane], range->start_ns, end_ns);
}

/* Copy a lane's spans to all threads of the process with its tid. */
static bool give_spans(const struct marey__samples_set *set, uint32_t process, int64_t tid,
                       const struct marey__spans *from, struct marey__spans *by_thread)
{
    for (uint32_t i = 1; from->n != 0 && i <= marey_samples_n_threads(set->samples); i++) {
        const struct marey_samples_thread *const t = marey_samples_get_thread(set->samples, i);
        if (t->process != process || t->tid != tid)
            continue;
        for (size_t k = 0; k < from->n; k++)
            if (!add_span(&by_thread[i], from->items[k].begin_ns, from->items[k].end_ns))
                return false;
    }
    return true;
}

static marey_status walk_ranges(struct marey__samples_set *set, uint32_t process, struct ranges *r,
                                struct marey__spans *by_thread)
{
    const struct marey__samples_target *const target = &set->targets[process];
    const struct marey_process *const log = marey_recording_process(target->recording, target->log);
    static const struct marey__lane_visitor visitor = {.end = range_ended};
    struct marey__range_walk walk = {
        .recording = target->recording, .process = log, .visitor = &visitor, .ctx = r};
    r->n_sites = log->n_sites;
    r->by_lane = marey__calloc((size_t)log->n_lanes + 1, sizeof *r->by_lane);
    marey_status status = r->by_lane != NULL ? marey__range_walk(&walk) : marey__no_memory();
    for (uint32_t i = 0; r->by_lane != NULL && i < log->n_lanes; i++) {
        const struct marey_lane_info *const lane =
            marey_recording_lane(target->recording, target->log, i);
        if (status == MAREY_OK && !give_spans(set, process, lane->tid, &r->by_lane[i], by_thread))
            status = marey__no_memory();
        marey__spans_fini(&r->by_lane[i]);
    }
    marey__free(r->by_lane);
    return status;
}

marey_status marey__samples_join_ranges(struct marey__samples_set *set, const char *name,
                                        struct marey__spans *by_thread, bool *is_there)
{
    *is_there = false;
    for (uint32_t i = 1; i <= marey_samples_n_processes(set->samples); i++) {
        if (set->targets[i].log == MAREY__NO_LOG)
            continue;
        bool any = false;
        uint8_t *const sites = sites_called(&set->targets[i], name, &any);
        struct ranges r = {.sites = sites};
        const marey_status status = sites == NULL ? marey__no_memory()
                                    : any         ? walk_ranges(set, i, &r, by_thread)
                                                  : MAREY_OK;
        marey__free(sites);
        if (status != MAREY_OK)
            return status;
        *is_there = *is_there || any;
    }
    for (uint32_t i = 0; i <= marey_samples_n_threads(set->samples); i++)
        finish_spans(&by_thread[i]);
    return MAREY_OK;
}

/* ---- iterations, epochs and phases ---- */

struct spans_wanted {
    enum marey__span_kind kind;
    struct marey__progress progress;
    struct marey__span *spans;
    size_t n, cap;
};

static bool keep_span(struct spans_wanted *w, const struct marey__span *span)
{
    if (span->kind != w->kind)
        return true;
    return MAREY__PUSH(w->spans, w->n, w->cap, *span);
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct spans_wanted *const w = ctx;
    const uint64_t *word = batch->words, *const end = word + batch->n;
    struct marey__span span;
    while (word < end) {
        const bool is_record = marey_word_kind(*word) == MAREY_KIND_RECORD;
        if (is_record && marey__is_progress(marey_record_type_of(*word)) &&
            marey__progress_take(&w->progress, word, marey_batch_ns(batch, *word), &span) &&
            !keep_span(w, &span))
            return marey__no_memory();
        word += is_record ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

static marey_status read_spans(const struct marey__samples_target *target, struct spans_wanted *w)
{
    const struct marey_process *const log = marey_recording_process(target->recording, target->log);
    struct marey__span span;
    w->n = 0;
    marey__progress_init(&w->progress, log, log->first_ns);
    MAREY_TRY(marey__recording_visit_in_order(target->recording, log->index, visit_batch, w));
    while (marey__progress_finish(&w->progress, log->last_ns, &span))
        MAREY__TRY_MEMORY(keep_span(w, &span));
    return MAREY_OK;
}

static uint64_t length_of(const struct marey__span *span)
{
    return span->end_ns - span->begin_ns;
}

static bool is_whole(const struct marey__span *span)
{
    return (span->flags & (MAREY__ITERATION_WARMUP | MAREY__ITERATION_CUT)) == 0;
}

/*
 * The length from which an iteration is slow: 1.5 times the median, or if none is, that of the slowest 5 %. UINT64_MAX
 * without iterations.
 */
static uint64_t slow_limit(uint64_t *lengths, size_t n, struct marey__slow_found *slow)
{
    if (n == 0)
        return UINT64_MAX;
    qsort(lengths, n, sizeof *lengths, marey__compare_u64);
    const uint64_t median = lengths[n / 2], limit = median + median / 2 + 1;
    if (lengths[n - 1] >= limit)
        return limit;
    slow->is_by_rank = true;
    return lengths[n - 1 - (n - 1) / 20];
}

/* The limit of one process, and how many of its iterations are slow. Returns false on out of memory. */
static bool find_slow(const struct spans_wanted *found, struct marey__slow_found *slow,
                      uint64_t *limit)
{
    uint64_t *const lengths MAREY__FREED = marey__calloc(found->n + 1, sizeof *lengths);
    size_t n = 0;
    if (lengths == NULL)
        return false;
    for (size_t i = 0; i < found->n; i++)
        if (is_whole(&found->spans[i]))
            lengths[n++] = length_of(&found->spans[i]);
    *limit = slow_limit(lengths, n, slow);
    slow->n_iterations += n;
    return true;
}

static bool is_chosen(const struct marey__spans_choice *which,
                      const struct marey__samples_target *target, const struct marey__span *span,
                      uint64_t limit)
{
    if (which->is_slow)
        return is_whole(span) && length_of(span) >= limit;
    if (which->kind == MAREY__SPAN_PHASE)
        return is_called(marey_recording_site(target->recording, target->log, span->site),
                         which->name);
    return span->number >= which->first && span->number <= which->last;
}

static bool take_spans(const struct marey__spans_choice *which,
                       const struct marey__samples_target *target, const struct spans_wanted *found,
                       struct marey__spans *into, struct marey__slow_found *slow)
{
    uint64_t limit = 0;
    if (which->is_slow && !find_slow(found, slow, &limit))
        return false;
    for (size_t i = 0; i < found->n; i++) {
        const struct marey__span *const span = &found->spans[i];
        if (!is_chosen(which, target, span, limit))
            continue;
        slow->n_slow++;
        if (!add_span(into, span->begin_ns, span->end_ns))
            return false;
    }
    finish_spans(into);
    return true;
}

marey_status marey__samples_join_spans(struct marey__samples_set *set,
                                       const struct marey__spans_choice *which,
                                       struct marey__spans *by_process,
                                       struct marey__slow_found *slow)
{
    struct spans_wanted w = {.kind = which->kind};
    marey_status status = MAREY_OK;
    *slow = (struct marey__slow_found){0};
    for (uint32_t i = 1; status == MAREY_OK && i <= marey_samples_n_processes(set->samples); i++) {
        if (set->targets[i].log == MAREY__NO_LOG)
            continue;
        status = read_spans(&set->targets[i], &w);
        if (status == MAREY_OK && !take_spans(which, &set->targets[i], &w, &by_process[i], slow))
            status = marey__no_memory();
    }
    marey__free(w.spans);
    return status;
}
