/*
 * The walk: from the end of a step backward, always to the predecessor that arrived last.
 *
 *   a call that waited ──> the last work that ended in it        work ──> its launch, earlier work of its stream,
 *   a quiet step thread ──> the thread that launched meanwhile            or of another one
 *   a thread that was idle before its ranges ──> the step's thread
 *
 * `at_ns` only decreases, and all time from there to the end of the step is in segments. Work is entered only at a time
 * after its begin, so that a walk ends even if a damaged log has a cycle. Searches are limited by MAX_SCAN; a walk visits
 * each wait, busy time and piece of work of a step at most once, so that everything takes O(n log n).
 */
#include "analyze/path/internal.h"

enum { MAX_SCAN = 1024 };

/* The end of a piece of work, or of a launch. */
struct arrival {
    uint64_t end_ns;
    uint32_t index;
};

struct graph {
    struct marey__path_process *p;
    const struct marey__work **works; /* by device, then begin */
    uint32_t *previous; /* by work: the one before it on its stream, or MAREY__NO_INDEX */
    uint32_t n_works;
    struct arrival *ends;   /* of works, in order */
    struct arrival *others; /* of launches by other threads than the step's, in order */
    size_t n_others;
};

struct walker {
    const struct graph *g;
    struct marey__path_step *step;
    uint64_t at_ns;
    bool is_on_host, is_done, failed;
    uint32_t lane; /* on the host */
    uint32_t work; /* on a device: index in graph.works */
};

/* ---- preparation ---- */

MAREY__ORDER_RUNS(arrives_before, struct arrival, MAREY__UP(end_ns) MAREY__UP(index))

/* Devices list their work by begin, so that the previous work of a stream comes before. */
static bool list_work(struct graph *g)
{
    const struct marey__work_set *set = &g->p->set;
    size_t n = 0;
    for (size_t d = 0; d < set->n_devices; d++)
        n += set->devices[d].n_work;
    uint32_t *const last MAREY__FREED =
        marey__alloc(((size_t)set->process->n_lanes + 1) * sizeof *last); /* by stream */
    g->works = marey__calloc(n + 1, sizeof *g->works);
    g->previous = marey__calloc(n + 1, sizeof *g->previous);
    g->ends = marey__calloc(n + 1, sizeof *g->ends);
    if (last == NULL || g->works == NULL || g->previous == NULL || g->ends == NULL)
        return false;
    for (uint32_t i = 0; i < set->process->n_lanes; i++)
        last[i] = MAREY__NO_INDEX;
    for (size_t d = 0; d < set->n_devices; d++)
        for (size_t i = 0; i < set->devices[d].n_work && g->n_works < MAREY__NO_INDEX; i++) {
            const struct marey__work *work = &set->devices[d].work[i];
            if (work->class == MAREY__IGNORED || work->end_ns <= work->begin_ns)
                continue;
            uint32_t *const before = &last[g->p->first_lanes[work->lane]];
            g->previous[g->n_works] = *before;
            g->works[g->n_works] = work;
            g->ends[g->n_works] = (struct arrival){work->end_ns, g->n_works};
            *before = g->n_works++;
        }
    return marey__sort_runs(g->ends, g->n_works, sizeof *g->ends, arrives_before);
}

static bool list_others(struct graph *g)
{
    const struct marey__work_set *set = &g->p->set;
    g->others = marey__calloc(set->n_launches + 1, sizeof *g->others);
    if (g->others == NULL)
        return false;
    for (size_t i = 0; i < set->n_launches; i++)
        if (g->p->first_lanes[set->launches[i].lane] != g->p->main_lane)
            g->others[g->n_others++] = (struct arrival){set->launches[i].end_ns, (uint32_t)i};
    return marey__sort_runs(g->others, g->n_others, sizeof *g->others, arrives_before);
}

static void fini(struct graph *g)
{
    MAREY__FREE_ALL(g->works, g->previous, g->ends, g->others);
}

/* ---- segments ---- */

static const enum marey__path_side sides[MAREY__N_PATH_CLASSES] = {
    [MAREY__PATH_PYTHON] = MAREY__PATH_HOST,     [MAREY__PATH_OPERATOR] = MAREY__PATH_HOST,
    [MAREY__PATH_CALL] = MAREY__PATH_HOST,       [MAREY__PATH_OTHER] = MAREY__PATH_HOST,
    [MAREY__PATH_LATENCY] = MAREY__PATH_BETWEEN, [MAREY__PATH_GAP] = MAREY__PATH_BETWEEN,
    [MAREY__PATH_WAKE_UP] = MAREY__PATH_BETWEEN, [MAREY__PATH_UNEXPLAINED] = MAREY__PATH_UNKNOWN,
};

/* Move to `from_ns`, but not before the step; returns how far. */
static uint64_t go_back(struct walker *w, uint64_t from_ns, enum marey__path_side side)
{
    const uint64_t to_ns = MAREY__MAX(from_ns, w->step->begin_ns);
    const uint64_t ns = w->at_ns - MAREY__MIN(to_ns, w->at_ns);
    w->at_ns -= ns;
    w->step->ns[side] += ns;
    w->is_done |= w->at_ns <= w->step->begin_ns;
    return ns;
}

/* Everything from `from_ns` on belongs to `site`, with `around` around it. */
static void add_segment(struct walker *w, enum marey__path_class class, enum marey__path_place place,
                        uint32_t site, uint32_t around, uint64_t from_ns)
{
    struct marey__path_process *p = w->g->p;
    const uint64_t ns = go_back(w, from_ns, sides[class]);
    struct marey__path_key key = {MAREY__NO_NAME, MAREY__NO_NAME, class, place};
    if (ns == 0)
        return;
    if (site != 0)
        w->failed |= (key.name = marey__path_name(p, site)) == MAREY__NO_NAME;
    if (around != 0)
        w->failed |= (key.around = marey__path_name(p, around)) == MAREY__NO_NAME;
    w->failed |= !marey__path_add(&p->parts, &key, 1, ns);
}

/* The thread's time from `from_ns` on is divided later. */
static void add_stretch(struct walker *w, uint64_t from_ns)
{
    struct marey__path_process *p = w->g->p;
    const uint64_t end_ns = w->at_ns;
    if (go_back(w, from_ns, MAREY__PATH_HOST) != 0)
        w->failed |= !MAREY__PUSH(p->stretches, p->n_stretches, p->stretches_cap,
                                  (struct marey__path_stretch){w->at_ns, end_ns, w->lane});
}

static void enter_work(struct walker *w, uint32_t work)
{
    w->is_on_host = false;
    w->work = work;
}

static void enter_host(struct walker *w, uint32_t lane)
{
    w->is_on_host = true;
    w->lane = lane;
}

/* ---- on a thread ---- */

/* How many times of the thread, and of threads before it, begin before `ns`. */
static size_t times_before(const struct marey__path_times *times, uint32_t thread, uint64_t ns)
{
    size_t n;
    MAREY__BISECT(n, 0, times->n,
                  times->list[n].thread < thread ||
                      (times->list[n].thread == thread && times->list[n].begin_ns < ns));
    return n;
}

/* The latest of these, if it is of the thread; NULL: none. */
static const struct marey__path_time *latest_of(const struct marey__path_times *times, size_t n,
                                                uint32_t thread)
{
    return n != 0 && times->list[n - 1].thread == thread ? &times->list[n - 1] : NULL;
}

/* The work that ended last within a call that waited, and was launched before it; MAREY__NO_INDEX: none. */
static uint32_t find_awaited(const struct graph *g, const struct marey__path_time *wait,
                             uint64_t at_ns)
{
    const struct marey__work_set *set = &g->p->set;
    size_t n;
    MAREY__BISECT(n, 0, g->n_works, g->ends[n].end_ns <= wait->end_ns);
    const size_t stop = n > MAX_SCAN ? n - MAX_SCAN : 0;
    for (; n > stop && g->ends[n - 1].end_ns > wait->begin_ns; n--) {
        const struct marey__work *work = g->works[g->ends[n - 1].index];
        if (work->begin_ns < at_ns && (work->launch == MAREY__NO_INDEX ||
                                       set->launches[work->launch].begin_ns <= wait->begin_ns))
            return g->ends[n - 1].index;
    }
    return MAREY__NO_INDEX;
}

/* The last launch of another thread during a wait, if that is known to be the reason; MAREY__NO_INDEX: none. */
static uint32_t find_other(const struct graph *g, const struct marey__path_time *wait, uint64_t at_ns)
{
    const struct marey__path_process *p = g->p;
    size_t n;
    MAREY__BISECT(n, 0, g->n_others, g->others[n].end_ns <= at_ns);
    const size_t stop = n > MAX_SCAN ? n - MAX_SCAN : 0;
    for (; n > stop && g->others[n - 1].end_ns > wait->begin_ns; n--) {
        const struct marey__launch_call *launch = &p->set.launches[g->others[n - 1].index];
        if (launch->begin_ns >= wait->begin_ns &&
            (wait->is_backward || p->is_autograd[p->first_lanes[launch->lane]]))
            return g->others[n - 1].index;
    }
    return MAREY__NO_INDEX;
}

/* Returns false if nothing is known that the thread waited for. */
static bool follow_wait(struct walker *w, const struct marey__path_time *wait)
{
    const struct marey__path_process *p = w->g->p;
    const uint64_t at_ns = MAREY__MIN(wait->end_ns, w->at_ns);
    if (wait->is_call) {
        const uint32_t work = find_awaited(w->g, wait, at_ns);
        if (work == MAREY__NO_INDEX)
            return false;
        add_stretch(w, at_ns);
        add_segment(w, MAREY__PATH_WAKE_UP,
                    wait->thread == p->main_lane ? MAREY__PATH_STEP_THREAD : MAREY__PATH_OTHER_THREAD,
                    wait->site, 0, MAREY__MIN(w->g->works[work]->end_ns, at_ns));
        enter_work(w, work);
        return true;
    }
    const uint32_t found = find_other(w->g, wait, at_ns);
    if (found == MAREY__NO_INDEX)
        return false;
    const struct marey__launch_call *launch = &p->set.launches[found];
    const uint32_t thread = p->first_lanes[launch->lane];
    const struct marey__path_time *busy =
        latest_of(&p->busy, times_before(&p->busy, thread, at_ns), thread);
    const uint64_t busy_ns = busy != NULL ? MAREY__MIN(busy->end_ns, at_ns) : 0;
    add_stretch(w, MAREY__MAX(launch->end_ns, busy_ns));
    enter_host(w, launch->lane);
    return true;
}

/* Whether a thread did nothing from `since_ns` to `until_ns` while the step's thread ran. */
static bool waited_for_main(const struct walker *w, uint64_t since_ns, uint64_t until_ns)
{
    const struct marey__path_process *p = w->g->p;
    since_ns = MAREY__MAX(since_ns, w->step->begin_ns);
    if (p->main_lane == MAREY__NO_INDEX || until_ns < since_ns + MAREY__PATH_QUIET_NS)
        return false;
    const struct marey__path_time *wait =
        latest_of(&p->waits, times_before(&p->waits, p->main_lane, since_ns + 1), p->main_lane);
    return wait == NULL || wait->end_ns < until_ns;
}

/* Time of a thread, back to whatever it waited for. */
static void walk_host(struct walker *w)
{
    const struct marey__path_process *p = w->g->p;
    const uint32_t thread = p->first_lanes[w->lane];
    const uint64_t begin_ns = w->step->begin_ns;
    size_t n_waits = times_before(&p->waits, thread, w->at_ns);
    size_t n_busy = times_before(&p->busy, thread, w->at_ns);
    for (;;) {
        const struct marey__path_time *wait = latest_of(&p->waits, n_waits, thread),
                                      *busy = latest_of(&p->busy, n_busy, thread);
        const uint64_t wait_ns = wait != NULL ? wait->end_ns : 0;
        const uint64_t busy_ns = busy != NULL ? busy->begin_ns : 0;
        if (wait_ns <= begin_ns && busy_ns <= begin_ns)
            break;
        if (wait != NULL && wait_ns > begin_ns && wait_ns >= busy_ns) {
            if (follow_wait(w, wait))
                return;
            n_waits--;
            continue;
        }
        const struct marey__path_time *before = latest_of(&p->busy, --n_busy, thread);
        if (waited_for_main(w, before != NULL ? before->end_ns : 0, busy_ns)) {
            add_stretch(w, busy_ns);
            enter_host(w, p->main_lane);
            return;
        }
    }
    add_stretch(w, begin_ns);
}

/* ---- on a device ---- */

/* The previous work of the stream that had ended; MAREY__NO_INDEX: none. */
static uint32_t find_previous(const struct graph *g, uint32_t work)
{
    uint32_t before = g->previous[work];
    for (unsigned i = 0; i < MAX_SCAN && before != MAREY__NO_INDEX; i++) {
        if (g->works[before]->end_ns <= g->works[work]->begin_ns)
            return before;
        before = g->previous[before];
    }
    return MAREY__NO_INDEX;
}

/*
 * The work of another stream that ended after `since_ns` and just before `work` began. Recordings rarely have event
 * waits; if neither the launch nor the stream explains so long a delay, the work waited for something.
 */
static uint32_t find_across(const struct graph *g, uint32_t work, uint64_t since_ns)
{
    const uint64_t begin_ns = g->works[work]->begin_ns;
    const uint32_t *const first = g->p->first_lanes;
    since_ns = MAREY__MAX(since_ns, begin_ns - MAREY__MIN(begin_ns, MAREY__KERNEL_GAP_NS));
    size_t n;
    MAREY__BISECT(n, 0, g->n_works, g->ends[n].end_ns <= begin_ns);
    const size_t stop = n > MAX_SCAN ? n - MAX_SCAN : 0;
    for (; n > stop && g->ends[n - 1].end_ns > since_ns; n--)
        if (first[g->works[g->ends[n - 1].index]->lane] != first[g->works[work]->lane])
            return g->ends[n - 1].index;
    return MAREY__NO_INDEX;
}

static enum marey__path_class class_of(const struct marey__work *work)
{
    return work->class == MAREY__COMMUNICATES ? MAREY__PATH_COMMUNICATION
           : work->class == MAREY__COPIES     ? MAREY__PATH_COPY
                                              : MAREY__PATH_COMPUTE;
}

/* From work `work`, now at its begin, to its predecessor. */
static void leave_work(struct walker *w, uint32_t work, const struct marey__launch_call *launch)
{
    const struct graph *g = w->g;
    const struct marey__work *at = g->works[work];
    const uint32_t around = launch != NULL ? launch->around : 0;
    const uint32_t previous = find_previous(g, work);
    const uint64_t previous_ns = previous != MAREY__NO_INDEX ? g->works[previous]->end_ns : 0;
    /* A call that returns after its work began is left at its begin. Clocks may differ: a launch may seem late. */
    const uint64_t launch_ns = launch == NULL                    ? 0
                               : launch->end_ns <= at->begin_ns  ? launch->end_ns
                               : launch->begin_ns < at->begin_ns ? launch->begin_ns
                                                                 : at->begin_ns;
    const bool is_after_work = previous != MAREY__NO_INDEX && previous_ns > launch_ns;
    const uint64_t gap_ns = at->begin_ns - MAREY__MAX(previous_ns, launch_ns);
    if (gap_ns > (uint64_t)(is_after_work ? MAREY__KERNEL_GAP_NS : MAREY__LAUNCH_LATENCY_NS)) {
        const uint32_t across = find_across(g, work, MAREY__MAX(previous_ns, launch_ns));
        if (across != MAREY__NO_INDEX) {
            g->p->n_inferred++;
            add_segment(w, MAREY__PATH_GAP, MAREY__PATH_STREAM, at->site, around,
                        g->works[across]->end_ns);
            enter_work(w, across);
            return;
        }
    }
    if (!is_after_work && launch != NULL) {
        add_segment(w, MAREY__PATH_LATENCY, MAREY__PATH_STREAM, at->site, around, launch_ns);
        enter_host(w, launch->lane);
        return;
    }
    const bool is_known = is_after_work && (launch != NULL || gap_ns <= MAREY__KERNEL_GAP_NS);
    add_segment(w, is_known ? MAREY__PATH_GAP : MAREY__PATH_UNEXPLAINED, MAREY__PATH_STREAM,
                at->site, around, previous_ns);
    if (!w->is_done)
        enter_work(w, previous);
}

static void walk_device(struct walker *w)
{
    const struct marey__work *work = w->g->works[w->work];
    const struct marey__launch_call *launch =
        work->launch != MAREY__NO_INDEX ? &w->g->p->set.launches[work->launch] : NULL;
    MAREY_ASSERT(work->begin_ns < w->at_ns);
    add_segment(w, class_of(work), MAREY__PATH_STREAM, work->site,
                launch != NULL ? launch->around : 0, work->begin_ns);
    if (!w->is_done)
        leave_work(w, w->work, launch);
}

/* ---- a step ---- */

static bool walk_step(const struct graph *g, struct marey__path_step *step)
{
    const struct marey__path_process *p = g->p;
    struct walker w = {.g = g, .step = step, .at_ns = step->end_ns, .lane = p->main_lane};
    const bool ends_on_device =
        g->n_works != 0 && p->is_window && g->ends[g->n_works - 1].end_ns == step->end_ns;
    w.is_done = step->end_ns <= step->begin_ns;
    w.is_on_host = !ends_on_device;
    if (ends_on_device)
        w.work = g->ends[g->n_works - 1].index;
    if (!ends_on_device && p->main_lane == MAREY__NO_INDEX)
        add_segment(&w, MAREY__PATH_UNEXPLAINED, MAREY__PATH_STEP_THREAD, 0, 0, step->begin_ns);
    while (!w.is_done && !w.failed)
        if (w.is_on_host)
            walk_host(&w);
        else
            walk_device(&w);
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < MAREY__N_PATH_SIDES; i++)
        sum_ns += step->ns[i];
    MAREY_ASSERT(w.failed || sum_ns == step->end_ns - step->begin_ns);
    return !w.failed;
}

bool marey__path_walk(struct marey__path_process *p)
{
    struct graph g MAREY__FINALLY(fini) = {.p = p};
    if ((marey__path_is_on_gpu(&p->set) && !list_work(&g)) || !list_others(&g))
        return false;
    for (size_t i = 0; i < p->n_steps; i++)
        if (!walk_step(&g, &p->steps[i]))
            return false;
    return true;
}
