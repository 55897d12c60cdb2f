/*
 * Two visits of a process's log. The first, before the walk, keeps times in which threads may have waited. The second,
 * after it, divides the stretches of threads on the path among their innermost ranges.
 */
#include "analyze/path/internal.h"

enum {
    MAX_AROUND = 256, /* search depth for the operator around a call */
    MAX_ROUNDS = 4,   /* lanes of one thread that are searched for an open range */
};

/* What a site is. */
enum {
    IS_KNOWN = 1,
    IS_CALL = 2, /* of a runtime or driver */
    IS_WAIT = 4, /* likewise, and it waits for the device */
    IS_BACKWARD = 8,
    IS_AUTOGRAD = 16,
    IS_PYTHON = 32,
    IS_OPERATOR = 64,
};

struct lane {
    uint64_t since_ns; /* of the latest event */
    uint64_t began_ns; /* of the outermost open range */
    size_t next, end;  /* the second visit: its stretches not divided yet */
    uint32_t phase;    /* site of the open phase that this lane began; 0: none */
};

struct visit {
    struct marey__path_process *p;
    uint8_t *sites;
    struct lane *lanes;
    struct marey__path_stretch *left; /* without an open range: for the next lane of the thread */
    size_t n_left, left_cap;
    unsigned round;
};

static uint8_t look_at(struct visit *v, uint32_t site)
{
    const struct marey__work_set *set = &v->p->set;
    site = site <= set->process->n_sites ? site : 0;
    if (v->sites[site] != 0 || site == 0)
        return v->sites[site];
    const struct marey_site_info *info = marey__work_site(set, site);
    unsigned is = IS_KNOWN;
    if (marey__is_runtime_call(info))
        is |= IS_CALL | (strstr(info->name, "Synchronize") != NULL ? IS_WAIT : 0u);
    else if (strcmp(info->category, "python_function") == 0)
        is |= IS_PYTHON;
    else if (strcmp(info->category, "cpu_op") == 0)
        is |= IS_OPERATOR;
    if (marey__pattern_fits("backward", info->name, info->name_len))
        is |= IS_BACKWARD;
    if (strncmp(info->name, "autograd::engine", 16) == 0)
        is |= IS_AUTOGRAD;
    return v->sites[site] = (uint8_t)is;
}

static bool add_time(struct marey__path_times *times, struct marey__path_time time)
{
    return MAREY__PUSH(times->list, times->n, times->cap, time);
}

static uint32_t top_of(const struct marey__lane_stack *stack)
{
    return stack->n_open != 0 ? marey__stack_top(stack)->site : 0;
}

/* ---- the first visit: waits ---- */

/* The lane had no event until `ns`, with `site` as its innermost range. */
static bool end_quiet(struct visit *v, uint32_t number, uint32_t site, uint64_t ns)
{
    struct marey__path_process *p = v->p;
    struct lane *lane = &v->lanes[number];
    const uint64_t since_ns = lane->since_ns;
    if (ns <= since_ns)
        return true;
    lane->since_ns = ns;
    const uint8_t is = look_at(v, site);
    const bool is_quiet = number == p->main_lane && ns - since_ns >= MAREY__PATH_QUIET_NS;
    if ((is & IS_WAIT) == 0 && !is_quiet)
        return true;
    const uint8_t is_in = is | look_at(v, lane->phase);
    return add_time(&p->waits, (struct marey__path_time){.begin_ns = since_ns,
                                                         .end_ns = ns,
                                                         .thread = p->first_lanes[number],
                                                         .site = site,
                                                         .is_call = (is & IS_WAIT) != 0,
                                                         .is_backward = (is_in & IS_BACKWARD) != 0});
}

static bool see_begin(void *ctx, struct marey__lane_stack *stack, struct marey__frame *range,
                      const uint64_t *words, size_t n)
{
    struct visit *v = ctx;
    const uint32_t lane = stack->info->lane;
    (void)words, (void)n;
    if (stack->n_open == 0) {
        v->lanes[lane].began_ns = range->start_ns;
        if ((look_at(v, range->site) & IS_AUTOGRAD) != 0)
            v->p->is_autograd[v->p->first_lanes[lane]] = 1;
    }
    return end_quiet(v, lane, top_of(stack), range->start_ns);
}

static bool see_end(void *ctx, struct marey__lane_stack *stack, const struct marey__frame *range,
                    uint64_t end_ns, enum marey__ending how)
{
    struct visit *v = ctx;
    struct marey__path_process *p = v->p;
    const uint32_t lane = stack->info->lane;
    if (!end_quiet(v, lane, range->site, end_ns))
        return false;
    if (stack->n_open != 0 || how == MAREY__TAKEN_OUT || p->first_lanes[lane] == p->main_lane)
        return true;
    return add_time(&p->busy, (struct marey__path_time){.begin_ns = v->lanes[lane].began_ns,
                                                        .end_ns = end_ns,
                                                        .thread = p->first_lanes[lane]});
}

/* Called first with the stack as it was, then see_end() has nothing left to do. */
static bool see_out(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t shared_ns,
                    bool is_done)
{
    return is_done || end_quiet(ctx, stack->info->lane, top_of(stack),
                                stack->open[depth + 1].start_ns + shared_ns);
}

/* Until the list is sorted, an edge of tracing is an interval that ends with whether it is a begin. */
static bool see_record(void *ctx, struct marey__lane_stack *stack, const struct marey_batch *batch,
                       const uint64_t *words, uint64_t ns)
{
    struct visit *v = ctx;
    struct marey__path_process *p = v->p;
    const uint32_t type = marey_record_type_of(words[0]), lane = batch->lane->lane;
    if (type == MAREY_RECORD_TRACED)
        return MAREY__PUSH(p->traced, p->n_traced, p->traced_cap,
                           (struct marey__interval){ns, words[1] != 0});
    if (type == MAREY_RECORD_PHASE && !end_quiet(v, lane, top_of(stack), ns))
        return false;
    if (type == MAREY_RECORD_PHASE)
        v->lanes[lane].phase = marey_record_site(words[1]);
    return true;
}

MAREY__ORDER_RUNS(time_is_before, struct marey__path_time, MAREY__UP(thread) MAREY__UP(begin_ns))
MAREY__ORDER_RUNS(edge_is_before, struct marey__interval, MAREY__UP(begin_ns))

static bool sort_times(struct marey__path_times *times)
{
    return marey__sort_runs(times->list, times->n, sizeof *times->list, time_is_before);
}

static void join_edges(struct marey__path_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_traced; i++) {
        const uint64_t end_ns = i + 1 < p->n_traced ? p->traced[i + 1].begin_ns : UINT64_MAX;
        if (p->traced[i].end_ns != 0)
            p->traced[n++] = (struct marey__interval){p->traced[i].begin_ns, end_ns};
    }
    /* An end without a begin still tells that tracing came in windows. */
    p->n_traced = n != 0 || p->n_traced == 0 ? n : 1;
}

static bool add_call(struct marey__path_process *p, const struct marey__launch_call *call)
{
    return add_time(&p->waits, (struct marey__path_time){.begin_ns = call->begin_ns,
                                                         .end_ns = call->end_ns,
                                                         .thread = p->first_lanes[call->lane],
                                                         .site = call->site,
                                                         .is_call = true});
}

/* The launch queue of a stream while its work is visited. */
struct queue {
    size_t n;
    uint32_t last;  /* work */
    uint32_t ahead; /* MAREY__LAUNCH_QUEUE before that, once there are so many */
};

/* Whether its call waits for a copy: not if asynchronous, except for one to the host, which must be there on return. */
static bool is_blocking_copy(const struct marey__work_set *set, const struct marey__work *work,
                             const struct marey__launch_call *call)
{
    return work->kind == MAREY_WORK_COPY && call->begin_ns <= work->begin_ns &&
           work->end_ns <= call->end_ns &&
           (strstr(marey__work_site(set, work->site)->name, "DtoH") != NULL ||
            strstr(marey__work_site(set, call->site)->name, "Async") == NULL);
}

/* Launch calls that waited: for their own copy, which ended within the call, or for a place in a full launch queue. */
static bool add_calls(struct marey__path_process *p, const struct marey__device_work *device)
{
    uint32_t *const next MAREY__FREED = marey__alloc((device->n_work + 1) * sizeof *next);
    struct queue *const queues MAREY__FREED =
        marey__calloc((size_t)p->set.process->n_lanes + 1, sizeof *queues);
    if (next == NULL || queues == NULL)
        return false;
    for (uint32_t i = 0; i < MAREY__MIN(device->n_work, (size_t)MAREY__NO_INDEX); i++) {
        const struct marey__work *work = &device->work[i];
        struct queue *queue = &queues[p->first_lanes[work->lane]];
        /* A graph is one launch of much work: only the first counts. */
        if (queue->n != 0 && device->work[queue->last].launch == work->launch)
            continue;
        *(queue->n == 0 ? &queue->ahead : &next[queue->last]) = i;
        queue->last = i;
        if (++queue->n > MAREY__LAUNCH_QUEUE + 1)
            queue->ahead = next[queue->ahead];
        if (work->launch == MAREY__NO_INDEX)
            continue;
        const struct marey__launch_call *call = &p->set.launches[work->launch];
        const bool is_full = queue->n > MAREY__LAUNCH_QUEUE &&
                             call->end_ns - call->begin_ns > MAREY__LAUNCH_LATENCY_NS &&
                             device->work[queue->ahead].begin_ns > call->begin_ns;
        if ((is_full || is_blocking_copy(&p->set, work, call)) && !add_call(p, call))
            return false;
    }
    return true;
}

static bool add_all_calls(struct marey__path_process *p)
{
    for (size_t d = 0; marey__path_is_on_gpu(&p->set) && d < p->set.n_devices; d++)
        if (!add_calls(p, &p->set.devices[d]))
            return false;
    return true;
}

static void fini(struct visit *v)
{
    MAREY__FREE_ALL(v->sites, v->lanes, v->left);
}

static bool init(struct visit *v)
{
    v->sites = marey__calloc((size_t)v->p->set.process->n_sites + 1, 1);
    v->lanes = marey__calloc((size_t)v->p->set.process->n_lanes + 1, sizeof *v->lanes);
    return v->sites != NULL && v->lanes != NULL;
}

marey_status marey__path_read_host(struct marey__path_process *p)
{
    static const struct marey__lane_visitor visitor = {
        .begin = see_begin, .end = see_end, .take_out = see_out, .record = see_record};
    struct visit v MAREY__FINALLY(fini) = {.p = p};
    struct marey__range_walk walk = {
        .recording = p->recording, .process = p->set.process, .visitor = &visitor, .ctx = &v};
    MAREY__TRY_MEMORY(init(&v));
    for (uint32_t i = 0; i < p->set.process->n_lanes; i++)
        v.lanes[i].since_ns = p->set.first_ns;
    MAREY_TRY(marey__range_walk(&walk));
    MAREY__TRY_MEMORY(
        (p->main_lane == MAREY__NO_INDEX || end_quiet(&v, p->main_lane, 0, p->set.last_ns)) &&
        add_all_calls(p) && sort_times(&p->waits) && sort_times(&p->busy) &&
        marey__sort_runs(p->traced, p->n_traced, sizeof *p->traced, edge_is_before));
    join_edges(p);
    return MAREY_OK;
}

/* ---- the second visit: ranges of the stretches ---- */

/* The innermost of the `n` outermost open ranges that is not a call; 0: none. */
static uint32_t find_around(struct visit *v, const struct marey__lane_stack *stack, size_t n)
{
    const size_t stop = n > MAX_AROUND ? n - MAX_AROUND : 0;
    for (size_t i = n; i > stop; i--)
        if ((look_at(v, stack->open[i - 1].site) & IS_CALL) == 0)
            return stack->open[i - 1].site;
    return 0;
}

/* Add `piece`, in which the lane's ranges do not change. The innermost is `site`, inside of `n_around` ranges; else a phase. */
static bool add_piece(struct visit *v, const struct marey__path_stretch *piece,
                      const struct marey__lane_stack *stack, uint32_t site, size_t n_around)
{
    struct marey__path_process *p = v->p;
    site = site != 0 ? site : v->lanes[piece->lane].phase;
    const uint8_t is = look_at(v, site);
    const uint32_t next = p->next_lanes[piece->lane];
    struct marey__path_key key = {.name = MAREY__NO_NAME,
                                  .around = MAREY__NO_NAME,
                                  .class = (is & IS_CALL) != 0       ? MAREY__PATH_CALL
                                           : (is & IS_PYTHON) != 0   ? MAREY__PATH_PYTHON
                                           : (is & IS_OPERATOR) != 0 ? MAREY__PATH_OPERATOR
                                                                     : MAREY__PATH_OTHER,
                                  .place = p->first_lanes[piece->lane] == p->main_lane
                                               ? MAREY__PATH_STEP_THREAD
                                               : MAREY__PATH_OTHER_THREAD};
    if (site == 0 && next != 0 && v->round + 1 < MAX_ROUNDS)
        return MAREY__PUSH(v->left, v->n_left, v->left_cap,
                           (struct marey__path_stretch){piece->begin_ns, piece->end_ns, next - 1});
    if (site != 0 && (key.name = marey__path_name(p, site)) == MAREY__NO_NAME)
        return false;
    const uint32_t around = (is & IS_CALL) != 0 ? find_around(v, stack, n_around) : 0;
    if (around != 0 && (key.around = marey__path_name(p, around)) == MAREY__NO_NAME)
        return false;
    return marey__path_add(&p->parts, &key, 1, piece->end_ns - piece->begin_ns);
}

/* Advance to `ns` with these ranges. */
static bool go_on_to(struct visit *v, const struct marey__lane_stack *stack, uint32_t number,
                     uint32_t site, size_t n_around, uint64_t ns)
{
    struct lane *lane = &v->lanes[number];
    for (; lane->next < lane->end; lane->next++) {
        const struct marey__path_stretch *stretch = &v->p->stretches[lane->next];
        const struct marey__path_stretch piece = {MAREY__MAX(stretch->begin_ns, lane->since_ns),
                                                  MAREY__MIN(stretch->end_ns, ns), number};
        if (stretch->begin_ns >= ns)
            break;
        if (piece.end_ns > piece.begin_ns && !add_piece(v, &piece, stack, site, n_around))
            return false;
        if (stretch->end_ns > ns)
            break;
    }
    lane->since_ns = MAREY__MAX(lane->since_ns, ns);
    return true;
}

static bool pass_begin(void *ctx, struct marey__lane_stack *stack, struct marey__frame *range,
                       const uint64_t *words, size_t n)
{
    (void)words, (void)n;
    return go_on_to(ctx, stack, stack->info->lane, top_of(stack),
                    stack->n_open - (stack->n_open != 0), range->start_ns);
}

static bool pass_end(void *ctx, struct marey__lane_stack *stack, const struct marey__frame *range,
                     uint64_t end_ns, enum marey__ending how)
{
    (void)how;
    return go_on_to(ctx, stack, stack->info->lane, range->site, stack->n_open, end_ns);
}

static bool pass_out(void *ctx, struct marey__lane_stack *stack, size_t depth, uint64_t shared_ns,
                     bool is_done)
{
    return is_done || go_on_to(ctx, stack, stack->info->lane, top_of(stack), stack->n_open - 1,
                               stack->open[depth + 1].start_ns + shared_ns);
}

static bool pass_record(void *ctx, struct marey__lane_stack *stack, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct visit *v = ctx;
    const uint32_t lane = batch->lane->lane;
    if (marey_record_type_of(words[0]) != MAREY_RECORD_PHASE)
        return true;
    const bool is_done =
        go_on_to(v, stack, lane, top_of(stack), stack->n_open - (stack->n_open != 0), ns);
    v->lanes[lane].phase = marey_record_site(words[1]);
    return is_done;
}

MAREY__ORDER_RUNS(stretch_is_before, struct marey__path_stretch, MAREY__UP(lane) MAREY__UP(begin_ns))

static marey_status divide_once(struct visit *v)
{
    static const struct marey__lane_visitor visitor = {
        .begin = pass_begin, .end = pass_end, .take_out = pass_out, .record = pass_record};
    struct marey__path_process *p = v->p;
    struct marey__range_walk walk = {
        .recording = p->recording, .process = p->set.process, .visitor = &visitor, .ctx = v};
    const uint32_t n_lanes = p->set.process->n_lanes;
    MAREY__TRY_MEMORY(
        marey__sort_runs(p->stretches, p->n_stretches, sizeof *p->stretches, stretch_is_before));
    memset(v->lanes, 0, n_lanes * sizeof *v->lanes);
    for (size_t i = 0; i < p->n_stretches; i++) {
        struct lane *lane = &v->lanes[p->stretches[i].lane];
        lane->next = lane->end == 0 ? i : lane->next;
        lane->end = i + 1;
    }
    MAREY_TRY(marey__range_walk(&walk));
    for (uint32_t i = 0; i < n_lanes; i++)
        MAREY__TRY_MEMORY(go_on_to(v, NULL, i, 0, 0, UINT64_MAX));
    return MAREY_OK;
}

marey_status marey__path_divide_host(struct marey__path_process *p)
{
    struct visit v MAREY__FINALLY(fini) = {.p = p};
    MAREY__TRY_MEMORY(init(&v));
    while (p->n_stretches != 0) {
        MAREY_TRY(divide_once(&v));
        marey__free(p->stretches);
        p->stretches = v.left;
        p->n_stretches = v.n_left;
        p->stretches_cap = v.left_cap;
        v.left = NULL;
        v.n_left = v.left_cap = 0;
        v.round++;
    }
    return MAREY_OK;
}
