/*
 * Explains gaps by what threads did meanwhile: visits the log again, and adds each stretch between two events of a
 * thread to the parts of gaps that contain it.
 *
 * A launching thread may have been asleep before: torch's backward thread is woken by the forward thread. Where it has
 * no open range, a second visit uses the previous launcher.
 */
#include "analyze/device/internal.h"

/* Classification by the open ranges of a thread, up to one of them. */
struct frame {
    uint32_t site;
    uint32_t name; /* of the innermost operator, or MAREY__NO_NAME */
    uint16_t rule; /* the lowest, which takes precedence */
};

/* The parts of one thread and device: parts[next] to parts[end - 1] are still ahead. */
struct slice {
    size_t next, end;
};

struct lane {
    struct slice *slices; /* NULL: the thread has no parts */
    size_t n_slices;
    struct frame *frames; /* the first is the thread itself */
    size_t n_frames, frames_cap;
    uint64_t since_ns; /* everything until here is added */
};

/* Classification of a site. */
struct site {
    uint32_t name; /* of an operator, or MAREY__NO_NAME */
    uint16_t rule;
    bool is_known;
};

struct host {
    struct marey__idle_finder *finder;
    struct site *sites; /* by site; 0 is for none */
    uint32_t n_sites;
    struct lane *lanes; /* by lane */
    struct slice *slices;
    size_t n_slices;
    struct marey__idle_part *left; /* by the first visit, for the second */
    size_t n_left, left_cap;
    bool is_second;
};

/* Limit on parts for a second visit, per gap and in addition. */
enum { LEFT_PER_GAP = 4, LEFT_AT_LEAST = 4096 };

/* ---- sites ---- */

/* NULL on out of memory. */
static const struct site *look_at(struct host *host, uint32_t number)
{
    struct site *site = &host->sites[number < host->n_sites ? number : 0];
    if (site->is_known)
        return site;
    const struct marey__work_set *set = host->finder->set;
    const struct marey_site_info *info = marey__work_site(set, number);
    site->rule = marey__idle_rule_of(host->finder->rules, info);
    site->is_known = marey__idle_name(host->finder, number, &site->name);
    return site->is_known ? site : NULL;
}

static bool push(struct host *host, struct lane *lane, uint32_t number)
{
    const struct site *site = look_at(host, number);
    if (site == NULL)
        return false;
    const struct frame *const below = &lane->frames[lane->n_frames - 1];
    const struct frame frame = {
        .site = number,
        .name = site->name != MAREY__NO_NAME ? site->name : below->name,
        .rule = MAREY__MIN(site->rule, below->rule),
    };
    return MAREY__PUSH(lane->frames, lane->n_frames, lane->frames_cap, frame);
}

/* ---- stretches ---- */

/* A thread without a range explains nothing: keep the part for another thread. Returns false on out of memory. */
static bool keep_for_other(struct host *host, const struct marey__idle_part *part, bool *is_kept)
{
    const uint32_t other = host->finder->gaps[part->gap].other_lane;
    const size_t limit = host->finder->n_gaps * LEFT_PER_GAP + LEFT_AT_LEAST;
    *is_kept = !host->is_second && other != MAREY__NO_INDEX && host->n_left < limit;
    struct marey__idle_part left = *part;
    left.lane = other;
    return !*is_kept || MAREY__PUSH(host->left, host->n_left, host->left_cap, left);
}

static enum marey__idle_reason reason_of(const struct marey__idle_finder *finder,
                                         const struct marey__idle_gap *gap, const struct lane *lane)
{
    const uint16_t rule = lane->frames[lane->n_frames - 1].rule;
    if (rule != MAREY__NO_IDLE_RULE)
        return (enum marey__idle_reason)finder->rules->idle[rule].class;
    if (finder->set->devices[gap->device].device >= 0)
        return MAREY__IDLE_HOST;
    /* The process itself waits in a range that a user's rule ignores, or the reason is unknown. */
    return lane->n_frames > 1 ? MAREY__IDLE_WAIT : MAREY__IDLE_UNKNOWN;
}

/* Add `part`, during which the thread's ranges do not change. */
static bool explain(struct host *host, const struct lane *lane, const struct marey__idle_part *part)
{
    struct marey__idle_finder *finder = host->finder;
    bool is_kept = false;
    if (lane->n_frames == 1 && !keep_for_other(host, part, &is_kept))
        return false;
    if (is_kept)
        return true;
    struct marey__idle_gap *gap = &finder->gaps[part->gap];
    const struct marey__idle_time time = {
        .gap = gap,
        .gap_number = part->gap,
        .lane = part->lane,
        .reason = reason_of(finder, gap, lane),
        .name = lane->frames[lane->n_frames - 1].name,
        .begin_ns = part->begin_ns,
        .end_ns = part->end_ns,
    };
    return marey__idle_add(finder, &time);
}

/* Advance to `ns` with the thread's current ranges. */
static bool go_on_to(struct host *host, struct lane *lane, uint64_t ns)
{
    for (size_t i = 0; i < lane->n_slices; i++) {
        struct slice *slice = &lane->slices[i];
        while (slice->next < slice->end) {
            const struct marey__idle_part *part = &host->finder->parts[slice->next];
            if (part->begin_ns >= ns)
                break;
            struct marey__idle_part stretch = *part;
            stretch.begin_ns = MAREY__MAX(part->begin_ns, lane->since_ns);
            stretch.end_ns = MAREY__MIN(part->end_ns, ns);
            if (stretch.end_ns > stretch.begin_ns && !explain(host, lane, &stretch))
                return false;
            if (part->end_ns > ns)
                break;
            slice->next++;
        }
    }
    lane->since_ns = MAREY__MAX(lane->since_ns, ns);
    return true;
}

static bool take_begin(void *ctx, struct marey__lane_stack *stack, struct marey__frame *range,
                       const uint64_t *words, size_t n)
{
    struct host *host = ctx;
    struct lane *lane = &host->lanes[stack->info->lane];
    (void)words, (void)n;
    if (lane->slices == NULL)
        return true;
    return go_on_to(host, lane, range->start_ns) && push(host, lane, range->site);
}

static bool take_end(void *ctx, struct marey__lane_stack *stack, const struct marey__frame *range,
                     uint64_t end_ns, enum marey__ending how)
{
    struct host *host = ctx;
    struct lane *lane = &host->lanes[stack->info->lane];
    (void)range;
    if (lane->slices == NULL)
        return true;
    if (!go_on_to(host, lane, end_ns))
        return false;
    lane->n_frames -= how != MAREY__TAKEN_OUT;
    return true;
}

/* A range below others has ended: recompute the frames above. */
static bool take_out(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t shared_ns,
                     bool is_done)
{
    struct host *host = ctx;
    struct lane *lane = &host->lanes[stack->info->lane];
    (void)shared_ns;
    if (lane->slices == NULL || !is_done)
        return true;
    lane->n_frames = depth + 1;
    for (size_t i = depth; i < stack->n_open; i++)
        if (!push(host, lane, stack->open[i].site))
            return false;
    return true;
}

/* ---- a visit ---- */

static int by_lane(const void *a, const void *b, void *gaps)
{
    const struct marey__idle_part *x = a, *y = b;
    const struct marey__idle_gap *all = gaps;
    MAREY__UP(lane)
    MAREY__UP_BY(all[x->gap].device, all[y->gap].device)
    MAREY__UP(begin_ns)
    return 0;
}

/* Gaps are ordered, so the parts of one thread are sorted already. */
static void sort_parts(const struct marey__idle_finder *finder)
{
    const struct marey__idle_part *parts = finder->parts;
    size_t i = 1;
    while (i < finder->n_parts && by_lane(&parts[i - 1], &parts[i], finder->gaps) <= 0)
        i++;
    if (i < finder->n_parts)
        qsort_r(finder->parts, finder->n_parts, sizeof *parts, by_lane, finder->gaps);
}

/* Create a slice for each thread and device with parts. Returns false on out of memory. */
static bool cut_slices(struct host *host)
{
    const struct marey__idle_finder *finder = host->finder;
    const struct marey__idle_part *parts = finder->parts;
    sort_parts(finder);
    host->slices = marey__calloc(finder->n_parts + 1, sizeof *host->slices);
    if (host->slices == NULL)
        return false;
    struct slice *slice = host->slices;
    for (size_t i = 0; i < finder->n_parts; i = slice++->end) {
        *slice = (struct slice){i, i + 1};
        while (slice->end < finder->n_parts && parts[slice->end].lane == parts[i].lane &&
               finder->gaps[parts[slice->end].gap].device == finder->gaps[parts[i].gap].device)
            slice->end++;
        struct lane *lane = &host->lanes[parts[i].lane];
        if (lane->slices == NULL)
            lane->slices = slice;
        lane->n_slices++;
        if (lane->n_frames == 0 &&
            !marey__grow(&lane->frames, &lane->frames_cap, 1, sizeof *lane->frames))
            return false;
        lane->frames[0] = (struct frame){.name = MAREY__NO_NAME, .rule = MAREY__NO_IDLE_RULE};
        lane->n_frames = 1;
    }
    return true;
}

static bool finish_lanes(struct host *host)
{
    for (uint32_t i = 0; i < host->finder->set->process->n_lanes; i++)
        if (!go_on_to(host, &host->lanes[i], UINT64_MAX))
            return false;
    return true;
}

static void drop_lanes(struct host *const *at)
{
    struct host *const host = *at;
    for (uint32_t i = 0; host->lanes != NULL && i < host->finder->set->process->n_lanes; i++)
        marey__free(host->lanes[i].frames);
    MAREY__FREE_ALL(host->lanes, host->slices);
    host->lanes = NULL;
    host->slices = NULL;
}

static marey_status visit(struct host *host)
{
    const struct marey__work_set *set = host->finder->set;
    static const struct marey__lane_visitor visitor = {
        .begin = take_begin, .end = take_end, .take_out = take_out};
    struct marey__range_walk walk = {
        .recording = set->recording, .process = set->process, .visitor = &visitor, .ctx = host};
    struct host *const lent MAREY__FINALLY(drop_lanes) = host;
    host->lanes = marey__calloc((size_t)set->process->n_lanes + 1, sizeof *host->lanes);
    MAREY__TRY_MEMORY(host->lanes != NULL && cut_slices(host));
    MAREY_TRY(marey__range_walk(&walk));
    return finish_lanes(host) ? MAREY_OK : marey__no_memory();
}

/* Visit again with the parts left by the first visit. */
static marey_status visit_again(struct host *host)
{
    struct marey__idle_finder *finder = host->finder;
    marey__free(finder->parts);
    finder->parts = host->left;
    finder->n_parts = finder->parts_cap = host->n_left;
    host->left = NULL;
    host->is_second = true;
    return visit(host);
}

marey_status marey__idle_ask_host(struct marey__idle_finder *finder)
{
    struct host host = {.finder = finder, .n_sites = finder->set->process->n_sites + 1};
    if (finder->n_parts == 0)
        return MAREY_OK;
    host.sites = marey__calloc(host.n_sites, sizeof *host.sites);
    marey_status status = host.sites != NULL ? visit(&host) : marey__no_memory();
    if (status == MAREY_OK && host.n_left != 0)
        status = visit_again(&host);
    MAREY__FREE_ALL(host.left, host.sites);
    return status;
}
