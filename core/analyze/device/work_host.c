/*
 * A process without GPU work, by the ranges of its threads. Communication, copies and waits are ranges with such a rule:
 *
 *   communication, copy     on any thread: one piece of work each, including async ranges
 *   ignore                  on the main thread: it waits, and does not compute
 *
 * The rest of the main thread's time counts as computation. In marey's own recordings it extends from the
 * process's first event to its last, because programs also run outside ranges. In an imported trace it is the time in
 * operators, or in any range other than an annotation. A step, a phase or a Python function is open whatever the
 * thread does, including waiting for other ranks.
 *
 * This is valid only if possible communication was recorded: a range of class communication, or the operators
 * of a trace. Otherwise the rest may be anything, and set->is_unknown is set.
 */
#include "analyze/device/internal.h"

struct intervals {
    struct marey__interval *list;
    size_t n, cap;
};

struct host {
    struct marey__work_set *set;
    struct marey__classifier *classifier;
    struct marey__device_work *device;
    struct intervals covered; /* the main thread has an open range other than annotations */
    struct intervals blocked; /* it does not compute */
    struct marey__async_match async;
    uint64_t n_ranges;
    bool has_communication, has_operators;
    uint32_t main_lane; /* the first of the main thread's lanes */
    bool wants_ranges;
};

static bool add_interval(struct intervals *to, uint64_t begin_ns, uint64_t end_ns)
{
    return MAREY__PUSH(to->list, to->n, to->cap, (struct marey__interval){begin_ns, end_ns});
}

static bool add_work(struct host *host, const struct marey__work *work)
{
    struct marey__device_work *device = host->device;
    if (work->end_ns == work->begin_ns)
        return true;
    return MAREY__PUSH(device->work, device->n_work, device->work_cap, *work);
}

/* ---- the main thread ---- */

/* The first thread's lane, or that of thread `tid`. MAREY__NO_INDEX if there is none. */
static uint32_t find_lane(const struct marey__work_set *set, const int64_t *tid)
{
    for (uint32_t i = 0; i < set->process->n_lanes; i++) {
        const struct marey_lane_info *lane =
            marey_recording_lane(set->recording, set->process->index, i);
        if (lane->kind == MAREY_LANE_THREAD && (tid == NULL || lane->tid == *tid))
            return i;
    }
    return MAREY__NO_INDEX;
}

/* The thread whose id is the pid; else the one that recorded steps; else the first. */
static void find_main_thread(struct host *host)
{
    struct marey__work_set *set = host->set;
    host->main_lane = find_lane(set, &set->process->pid);
    if (host->main_lane == MAREY__NO_INDEX)
        host->main_lane = set->n_steps != 0 ? set->step_lane : find_lane(set, NULL);
    set->main_tid =
        host->main_lane != MAREY__NO_INDEX
            ? marey_recording_lane(set->recording, set->process->index, host->main_lane)->tid
            : -1;
}

static bool is_main(const struct host *host, const struct marey__lane_stack *lane)
{
    return lane->info->kind == MAREY_LANE_THREAD && lane->info->tid == host->set->main_tid;
}

/* ---- ranges ---- */

static bool open_range(void *ctx, struct marey__lane_stack *lane, struct marey__frame *call,
                       const uint64_t *words, size_t n)
{
    struct host *host = ctx;
    (void)words, (void)n;
    if (!host->wants_ranges || !is_main(host, lane))
        return true;
    call->range = marey__work_set_add_range(
        host->set, call, lane->n_open != 0 ? marey__stack_top(lane)->range - 1 : MAREY__NO_INDEX);
    return call->range != 0;
}

/* Handle the end of a range or async range, by its rule. */
static bool take_range(struct host *host, struct marey__work *work, bool is_main_thread)
{
    const struct marey_communication *what =
        work->collective != MAREY__NO_INDEX ? &host->set->collectives[work->collective].what : NULL;
    host->n_ranges++;
    work->rule = marey__classify(host->classifier, work->site, MAREY__KIND_RANGE, what);
    work->class = host->classifier->rules->rules[work->rule].class;
    if (work->class == MAREY__COMPUTES || (work->class == MAREY__IGNORED && !is_main_thread))
        return true;
    host->has_communication |= work->class == MAREY__COMMUNICATES;
    host->set->n_waits += work->class == MAREY__IGNORED;
    return add_work(host, work) &&
           (!is_main_thread || add_interval(&host->blocked, work->begin_ns, work->end_ns));
}

static const char *category_of(const struct host *host, uint32_t site)
{
    const struct marey__work_set *set = host->set;
    return site <= set->process->n_sites ? marey__work_site(set, site)->category : "";
}

static bool is_annotation(const struct host *host, uint32_t site)
{
    const char *category = category_of(host, site);
    return strcmp(category, "user_annotation") == 0 || strcmp(category, "python_function") == 0;
}

/* Whether a range of this site would be the outermost open one other than annotations. */
static bool is_outermost(const struct host *host, const struct marey__lane_stack *lane, uint32_t site)
{
    size_t i = 0;
    while (i < lane->n_open && is_annotation(host, lane->open[i].site))
        i++;
    return i == lane->n_open && !is_annotation(host, site);
}

static bool close_range(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *call,
                        uint64_t end_ns, enum marey__ending how)
{
    struct host *host = ctx;
    struct marey__work_set *set = host->set;
    (void)how;
    if (call->range != 0)
        set->ranges[call->range - 1].end_ns = end_ns;
    if (call->collective != 0)
        set->collectives[call->collective - 1].end_ns = end_ns;
    host->has_operators |= strcmp(category_of(host, call->site), "cpu_op") == 0;
    if (is_main(host, lane) && is_outermost(host, lane, call->site) &&
        !add_interval(&host->covered, call->start_ns, end_ns))
        return false;
    struct marey__work work = {.begin_ns = call->start_ns,
                               .end_ns = end_ns,
                               .site = call->site,
                               .lane = lane->info->lane,
                               .launch = MAREY__NO_INDEX,
                               .collective = call->collective - 1,
                               .kind = MAREY__KIND_RANGE};
    return take_range(host, &work, is_main(host, lane));
}

/* ---- records ---- */

static bool take_async(struct host *host, const struct marey__async_half *half)
{
    struct marey__async_half other;
    bool failed;
    if (!marey__async_match(&host->async, half, &other, &failed))
        return !failed;
    const struct marey__async_half *begin = half->is_begin ? half : &other,
                                   *end = half->is_begin ? &other : half;
    struct marey__work work = {.begin_ns = begin->ns,
                               .end_ns = MAREY__MAX(begin->ns, end->ns),
                               .site = begin->name,
                               .lane = begin->lane,
                               .launch = MAREY__NO_INDEX,
                               .collective = MAREY__NO_INDEX,
                               .kind = MAREY__KIND_RANGE};
    return take_range(host, &work, false);
}

static bool take_record(void *ctx, struct marey__lane_stack *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct host *host = ctx;
    const uint32_t type = marey_record_type_of(words[0]);
    (void)batch;
    if (type == MAREY_RECORD_ASYNC_BEGIN || type == MAREY_RECORD_ASYNC_END) {
        const struct marey__async_half half = {.handle = words[2],
                                               .ns = ns,
                                               .name = marey_record_site(words[1]),
                                               .lane = lane->info->lane,
                                               .is_begin = type == MAREY_RECORD_ASYNC_BEGIN};
        return take_async(host, &half);
    }
    if (type != MAREY_RECORD_COMMUNICATION || lane->n_open == 0)
        return true;
    struct marey__frame *call = marey__stack_top(lane);
    call->collective = marey__work_set_communicate(host->set, call->collective - 1, words,
                                                   call->start_ns, call->site, true) +
                       1;
    return call->collective != 0;
}

/* ---- computation: the rest of the main thread's time ---- */

static bool add_computation(struct host *host, uint64_t begin_ns, uint64_t end_ns)
{
    if (begin_ns >= end_ns)
        return true;
    const struct marey__work work = {.begin_ns = begin_ns,
                                     .end_ns = end_ns,
                                     .lane = host->main_lane,
                                     .launch = MAREY__NO_INDEX,
                                     .collective = MAREY__NO_INDEX,
                                     .kind = MAREY__KIND_RANGE};
    return add_work(host, &work);
}

/* `covered` minus `blocked`, both in order. */
static bool compute_in_the_rest(struct host *host)
{
    const struct intervals *blocked = &host->blocked;
    uint64_t done_ns = 0; /* the thread's state is known until here */
    size_t next = 0;
    for (size_t i = 0; i < host->covered.n; i++) {
        const struct marey__interval *in = &host->covered.list[i];
        done_ns = MAREY__MAX(done_ns, in->begin_ns);
        for (; next < blocked->n && blocked->list[next].begin_ns < in->end_ns; next++) {
            if (!add_computation(host, done_ns, blocked->list[next].begin_ns))
                return false;
            done_ns = MAREY__MAX(done_ns, blocked->list[next].end_ns);
        }
        if (!add_computation(host, done_ns, in->end_ns))
            return false;
        done_ns = MAREY__MAX(done_ns, in->end_ns);
    }
    return true;
}

static bool add_all_computation(struct host *host)
{
    const struct marey__work_set *set = host->set;
    if (set->process->source[0] == '\0') {
        host->covered.n = 0;
        if (!add_interval(&host->covered, set->first_ns, set->last_ns))
            return false;
    }
    return marey__intervals_unite(host->covered.list, &host->covered.n) &&
           marey__intervals_unite(host->blocked.list, &host->blocked.n) && compute_in_the_rest(host);
}

/* ---- one process ---- */

static marey_status read_ranges(struct host *host)
{
    struct marey__work_set *set = host->set;
    static const struct marey__lane_visitor visitor = {
        .begin = open_range, .end = close_range, .record = take_record};
    struct marey__range_walk walk = {
        .recording = set->recording, .process = set->process, .visitor = &visitor, .ctx = host};
    host->device = marey__work_set_device(set, -1);
    MAREY__TRY_MEMORY(host->device != NULL);
    MAREY_TRY(marey__range_walk(&walk));
    if (host->n_ranges != 0 && !add_all_computation(host))
        return marey__no_memory();
    return MAREY_OK;
}

marey_status marey__work_host_read(struct marey__work_set *set,
                                   const struct marey__work_options *options,
                                   struct marey__classifier *classifier)
{
    struct host host = {.set = set, .classifier = classifier, .wants_ranges = options->wants_ranges};
    set->n_devices = set->n_collectives = set->n_ranges =
        0; /* discard the results of the first reading */
    find_main_thread(&host);
    const marey_status status = read_ranges(&host);
    if (status == MAREY_OK && host.n_ranges == 0)
        set->n_devices = 0; /* unknown */
    set->is_unknown =
        !host.has_communication && (set->process->source[0] == '\0' || !host.has_operators);
    MAREY__FREE_ALL(host.covered.list, host.blocked.list);
    set->n_unmatched = host.async.n_dropped;
    marey__async_match_fini(&host.async);
    return status;
}
