/*
 * The activity of devices in traced steps, and the causes of their idle time.
 *
 *   device   ████████          ██████████████
 *   thread   ─[launch]─[ wait ]──[ data ]──[launch]─
 *                    '-'sync    '--data--''host'      exposed: the device is idle
 *
 * Each idle nanosecond has one cause, in this order: the phase data; a wait of the host that
 * drained the device's queue, for the length of the wait, since without it work would have been
 * launched that much earlier; the host, until it launches the next work. The rest is launch latency
 * and streams that wait for each other.
 *
 * Tracing slows steps down, so the device's shares are relative to traced steps.
 */
#include <math.h>
#include <string.h>

#include "analyze/device/internal.h"
#include "analyze/diagnosis/internal.h"

/* A call in which the host waits for the device. */
struct host_wait {
    uint64_t begin_ns, end_ns;
    uint64_t left_ns; /* part of the wait that does not explain idle time yet */
    uint32_t lane;
    bool is_upload; /* it follows a copy to the device at once */
};

struct edge {
    uint64_t ns;
    bool is_begin;
};

/* State of reading a process. */
struct reading {
    struct marey__facts *facts;
    struct marey__trainer *trainer;
    const struct marey__work_set *set;
    struct edge *edges; /* of GPU tracing windows */
    size_t n_edges, edges_cap;
    struct marey__interval *traced; /* the windows; without edges, steps that launch work */
    size_t n_traced, traced_cap;
    struct host_wait *waits;
    size_t n_waits, waits_cap;
};

/* One device of the process. */
struct device {
    struct reading *r;
    const struct marey__device_work *work;
    struct marey__interval *steps; /* by step: its traced part */
    struct marey__traced_step *sums;
};

/* ---- windows and waits, from the log ---- */

static bool take_record(void *ctx, struct marey__lane_stack *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct reading *const r = ctx;
    (void)lane, (void)batch;
    return marey_record_type_of(words[0]) != MAREY_RECORD_TRACED ||
           MAREY__PUSH(r->edges, r->n_edges, r->edges_cap, (struct edge){ns, words[1] != 0});
}

static bool take_call(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *call,
                      uint64_t end_ns, enum marey__ending how)
{
    struct reading *const r = ctx;
    const struct marey_site_info *const site = marey__work_site(r->set, call->site);
    (void)how;
    if (strstr(site->name, "Synchronize") == NULL || !marey__is_runtime_call(site))
        return true;
    return MAREY__PUSH(r->waits, r->n_waits, r->waits_cap,
                       (struct host_wait){.begin_ns = call->start_ns,
                                          .end_ns = end_ns,
                                          .left_ns = end_ns - call->start_ns,
                                          .lane = lane->info->lane});
}

/* A copy to the host is a wait if its call returns after the copy has ended. */
static bool add_copies(struct reading *r)
{
    for (size_t d = 0; d < r->set->n_devices; d++)
        for (size_t i = 0; i < r->set->devices[d].n_work; i++) {
            const struct marey__work *const work = &r->set->devices[d].work[i];
            if (work->kind != MAREY_WORK_COPY || work->launch == MAREY__NO_INDEX ||
                strstr(marey__work_site(r->set, work->site)->name, "DtoH") == NULL)
                continue;
            const struct marey__launch_call *const call = &r->set->launches[work->launch];
            if (call->end_ns >= work->end_ns &&
                !MAREY__PUSH(r->waits, r->n_waits, r->waits_cap,
                             (struct host_wait){.begin_ns = call->begin_ns,
                                                .end_ns = call->end_ns,
                                                .left_ns = call->end_ns - call->begin_ns,
                                                .lane = call->lane}))
                return false;
        }
    return true;
}

/* A copy from pageable memory is a call that copies, and a wait for it. Always true; waits are sorted. */
static bool mark_uploads(const struct reading *r)
{
    enum { MOST_BETWEEN_NS = 20000 };
    for (size_t d = 0; d < r->set->n_devices; d++)
        for (size_t i = 0; i < r->set->devices[d].n_work; i++) {
            const struct marey__work *const work = &r->set->devices[d].work[i];
            if (work->kind != MAREY_WORK_COPY || work->launch == MAREY__NO_INDEX ||
                strstr(marey__work_site(r->set, work->site)->name, "HtoD") == NULL)
                continue;
            const struct marey__launch_call *const call = &r->set->launches[work->launch];
            size_t at;
            MAREY__BISECT(at, 0, r->n_waits, r->waits[at].begin_ns < call->end_ns);
            while (at < r->n_waits && r->waits[at].lane != call->lane)
                at++;
            if (at < r->n_waits && r->waits[at].begin_ns < call->end_ns + MOST_BETWEEN_NS)
                r->waits[at].is_upload = true;
        }
    return true;
}

static bool wait_is_before(const void *a, const void *b)
{
    return ((const struct host_wait *)a)->begin_ns < ((const struct host_wait *)b)->begin_ns;
}

static bool edge_is_before(const void *a, const void *b)
{
    return ((const struct edge *)a)->ns < ((const struct edge *)b)->ns;
}

/* Without windows, a schedule may have skipped steps: ignore those that launch nothing. */
static bool find_steps(struct reading *r)
{
    const struct marey__trainer *const t = r->trainer;
    size_t last = t->n_steps;
    for (size_t i = 0; i < r->set->n_launches; i++) {
        const uint64_t ns = r->set->launches[i].begin_ns;
        size_t n; /* that have begun */
        MAREY__BISECT(n, 0, t->n_steps, t->steps[n].begin_ns <= ns);
        if (n == 0 || n - 1 == last || ns >= t->steps[n - 1].end_ns)
            continue;
        last = n - 1;
        if (!MAREY__PUSH(r->traced, r->n_traced, r->traced_cap,
                         (struct marey__interval){t->steps[last].begin_ns, t->steps[last].end_ns}))
            return false;
    }
    return marey__intervals_unite(r->traced, &r->n_traced);
}

/*
 * Marks the steps that overlap a window: they include the cost of tracing, its start and its end.
 * Returns true.
 */
static bool mark_steps(const struct reading *r)
{
    const struct marey__trainer *const t = r->trainer;
    for (size_t w = 0; w < r->n_traced; w++) {
        size_t i;
        MAREY__BISECT(i, 0, t->n_steps, t->steps[i].end_ns <= r->traced[w].begin_ns);
        for (; i < t->n_steps && t->steps[i].begin_ns < r->traced[w].end_ns; i++)
            t->steps[i].is_in_window = true;
    }
    return true;
}

static bool find_windows(struct reading *r)
{
    if (!marey__sort_runs(r->edges, r->n_edges, sizeof *r->edges, edge_is_before))
        return false;
    for (size_t i = 0; i < r->n_edges; i++) {
        const uint64_t end_ns = i + 1 < r->n_edges ? r->edges[i + 1].ns : UINT64_MAX;
        if (r->edges[i].is_begin && !MAREY__PUSH(r->traced, r->n_traced, r->traced_cap,
                                                 (struct marey__interval){r->edges[i].ns, end_ns}))
            return false;
    }
    return r->n_edges != 0 ? mark_steps(r) : find_steps(r);
}

/* ---- idle time ---- */

static bool add_interval(struct marey__interval **list, size_t *n, size_t *cap, uint64_t begin_ns,
                         uint64_t end_ns)
{
    return MAREY__PUSH(*list, *n, *cap, (struct marey__interval){begin_ns, end_ns});
}

/* A gap between two activities of a device, and its cause. */
struct gap {
    uint64_t begin_ns, end_ns;
    uint64_t host_end_ns;   /* the host causes it up to here at most */
    struct host_wait *wait; /* NULL: none */
    uint64_t reached_ns;    /* processed up to here without a hole */
};

/* Idle time outside of data. */
static bool take_rest(const struct device *d, struct gap *gap, struct marey__traced_step *sum,
                      uint64_t begin_ns, uint64_t end_ns)
{
    struct marey__trainer *const t = d->r->trainer;
    uint64_t sync_ns = 0;
    if (begin_ns >= end_ns)
        return true;
    if (gap->wait != NULL && gap->reached_ns >= begin_ns)
        sync_ns = MAREY__MIN(gap->wait->left_ns, end_ns - begin_ns);
    if (sync_ns != 0) {
        gap->wait->left_ns -= sync_ns;
        sum->part_ns[MAREY__TRACED_SYNC] += sync_ns;
        d->r->facts->device.sync_ns += sync_ns;
        d->r->facts->device.upload_ns += gap->wait->is_upload ? sync_ns : 0;
        if (!add_interval(&t->waits, &t->n_waits, &t->waits_cap, gap->wait->begin_ns,
                          gap->wait->end_ns))
            return false;
    }
    begin_ns += sync_ns;
    end_ns = MAREY__MIN(end_ns, gap->host_end_ns);
    if (begin_ns >= end_ns)
        return true;
    sum->part_ns[MAREY__TRACED_HOST] += end_ns - begin_ns;
    if (gap->end_ns - gap->begin_ns < MAREY__SHORT_GAP_NS)
        sum->part_ns[MAREY__TRACED_HOST_SHORT] += end_ns - begin_ns;
    return add_interval(&t->host_gaps, &t->n_host_gaps, &t->host_gaps_cap, begin_ns, end_ns);
}

/* Assigns the part of a gap within one step: first to phases of data. */
static bool take_piece(const struct device *d, struct gap *gap, struct marey__traced_step *sum,
                       uint64_t begin_ns, uint64_t end_ns)
{
    const struct marey__trainer *const t = d->r->trainer;
    size_t p;
    MAREY__BISECT(p, 0, t->n_phases, t->phases[p].end_ns <= begin_ns);
    for (; p < t->n_phases && t->phases[p].begin_ns < end_ns; p++) {
        if (t->phases[p].phase != MAREY__FACT_DATA)
            continue;
        const uint64_t from_ns = MAREY__MAX(begin_ns, t->phases[p].begin_ns),
                       to_ns = MAREY__MIN(end_ns, t->phases[p].end_ns);
        if (!take_rest(d, gap, sum, begin_ns, from_ns))
            return false;
        sum->part_ns[MAREY__TRACED_DATA_IDLE] += to_ns - from_ns;
        gap->reached_ns = begin_ns = to_ns;
    }
    if (!take_rest(d, gap, sum, begin_ns, end_ns))
        return false;
    gap->reached_ns = end_ns;
    return true;
}

static bool take_gap(const struct device *d, struct gap *gap)
{
    const struct marey__trainer *const t = d->r->trainer;
    size_t i;
    gap->reached_ns = gap->begin_ns;
    MAREY__BISECT(i, 0, t->n_steps, t->steps[i].end_ns <= gap->begin_ns);
    for (; i < t->n_steps && t->steps[i].begin_ns < gap->end_ns; i++) {
        const uint64_t begin_ns = MAREY__MAX(gap->begin_ns, d->steps[i].begin_ns),
                       end_ns = MAREY__MIN(gap->end_ns, d->steps[i].end_ns);
        if (begin_ns < end_ns && !take_piece(d, gap, &d->sums[i], begin_ns, end_ns))
            return false;
    }
    return true;
}

/* The wait during which the device's queue drained, and after which it stayed empty. */
static struct host_wait *find_wait(const struct reading *r, const struct gap *gap)
{
    enum { THREADS = 8 };
    size_t n; /* that have begun */
    MAREY__BISECT(n, 0, r->n_waits, r->waits[n].begin_ns <= gap->begin_ns);
    for (size_t i = n; i-- > 0 && n - i <= THREADS;)
        if (r->waits[i].end_ns >= gap->begin_ns && r->waits[i].end_ns <= gap->end_ns)
            return &r->waits[i];
    return NULL;
}

/* Work number `next` ends the gap; NO_INDEX for the last gap. */
static bool add_gap(const struct device *d, uint64_t begin_ns, size_t next)
{
    const struct marey__work_set *const set = d->r->set;
    struct gap gap = {.begin_ns = begin_ns, .end_ns = UINT64_MAX, .host_end_ns = UINT64_MAX};
    if (next != MAREY__NO_INDEX) {
        const struct marey__work *const work = marey__first_launched(set, d->work, next);
        const struct marey__launch_call *const call =
            work->launch != MAREY__NO_INDEX ? &set->launches[work->launch] : NULL;
        gap.end_ns = work->begin_ns;
        gap.host_end_ns =
            call != NULL ? MAREY__MAX(call->begin_ns + MAREY__LAUNCH_LATENCY_NS, call->end_ns) : 0;
    }
    gap.wait = find_wait(d->r, &gap);
    return take_gap(d, &gap);
}

static bool find_gaps(const struct device *d)
{
    uint64_t until_ns = 0;
    for (size_t i = 0; i < d->work->n_work; i++) {
        const struct marey__work *const work = &d->work->work[i];
        if (work->class == MAREY__IGNORED)
            continue;
        if (work->begin_ns > until_ns && !add_gap(d, until_ns, i))
            return false;
        until_ns = MAREY__MAX(until_ns, work->end_ns);
    }
    return add_gap(d, until_ns, MAREY__NO_INDEX);
}

/* ---- a device ---- */

/*
 * Work that ran when a window began is not recorded. If more was queued, the device was busy until
 * that began.
 */
static uint64_t begin_of(const struct device *d, const struct marey__interval *window)
{
    size_t i;
    MAREY__BISECT(i, 0, d->work->n_work, d->work->work[i].begin_ns < window->begin_ns);
    const bool is_queued = i < d->work->n_work && d->work->work[i].launch == MAREY__NO_INDEX &&
                           d->work->work[i].begin_ns < window->end_ns;
    return is_queued ? d->work->work[i].begin_ns : window->begin_ns;
}

static void cut_steps(const struct device *d)
{
    const struct reading *const r = d->r;
    const struct marey__trainer *const t = r->trainer;
    for (size_t w = 0; w < r->n_traced; w++) {
        const uint64_t window_ns =
            r->n_edges != 0 ? begin_of(d, &r->traced[w]) : r->traced[w].begin_ns;
        size_t i;
        MAREY__BISECT(i, 0, t->n_steps, t->steps[i].end_ns <= window_ns);
        for (i = MAREY__MAX(i, t->n_warmup);
             i < t->n_steps && t->steps[i].begin_ns < r->traced[w].end_ns; i++) {
            const struct marey__interval part = {MAREY__MAX(window_ns, t->steps[i].begin_ns),
                                                 MAREY__MIN(r->traced[w].end_ns, t->steps[i].end_ns)};
            if (part.begin_ns < part.end_ns && d->steps[i].end_ns == 0)
                d->steps[i] = part;
        }
    }
}

static bool add_sums(const struct device *d)
{
    const struct marey__trainer *const t = d->r->trainer;
    struct marey__fact_device *const sum = &d->r->facts->device;
    for (size_t i = 0; i < t->n_steps; i++) {
        const struct marey__interval *const step = &d->steps[i];
        struct marey__traced_step *const own = &d->sums[i];
        if (step->begin_ns == step->end_ns)
            continue;
        own->ns = step->end_ns - step->begin_ns;
        own->trainer = (uint32_t)(t - d->r->facts->trainers);
        size_t p;
        MAREY__BISECT(p, 0, t->n_phases, t->phases[p].end_ns <= step->begin_ns);
        for (; p < t->n_phases && t->phases[p].begin_ns < step->end_ns; p++)
            if (t->phases[p].phase == MAREY__FACT_DATA)
                own->part_ns[MAREY__TRACED_DATA] += MAREY__MIN(step->end_ns, t->phases[p].end_ns) -
                                                    MAREY__MAX(step->begin_ns, t->phases[p].begin_ns);
        if (!MAREY__PUSH(sum->steps, sum->n_steps, sum->steps_cap, *own))
            return false;
    }
    return true;
}

/* Sums what the device does at each time of the traced steps. */
static bool add_atoms(const struct device *d)
{
    struct marey__fact_device *const sum = &d->r->facts->device;
    size_t n = d->r->trainer->n_steps;
    struct marey__sweep sweep;
    if (!marey__intervals_unite(d->steps, &n))
        return false;
    marey__sweep_begin(&sweep, d->steps, n);
    for (size_t i = 0; i < d->work->n_work; i++)
        marey__sweep_add(&sweep, d->work->work[i].begin_ns, d->work->work[i].end_ns,
                         d->work->work[i].class);
    marey__sweep_finish(&sweep);
    sum->traced_ns += marey__intervals_length(d->steps, n);
    sum->computing_ns += marey__computing_ns(&sweep.atoms);
    sum->communication_ns += marey__exposed_comm_ns(&sweep.atoms);
    sum->copy_ns += marey__exposed_mem_ns(&sweep.atoms);
    sum->idle_ns += sweep.atoms.ns[0];
    return true;
}

static bool read_device(struct reading *r, const struct marey__device_work *work)
{
    struct device d = {.r = r,
                       .work = work,
                       .steps = marey__calloc(r->trainer->n_steps + 1, sizeof *d.steps),
                       .sums = marey__calloc(r->trainer->n_steps + 1, sizeof *d.sums)};
    bool done = d.steps != NULL && d.sums != NULL;
    if (done) {
        cut_steps(&d);
        done = find_gaps(&d) && add_sums(&d) && add_atoms(&d);
    }
    MAREY__FREE_ALL(d.steps, d.sums);
    return done;
}

/* ---- all ---- */

/* A second device that does little would make all of the idle time look worse; NULL: none. */
static const struct marey__device_work *find_busiest(const struct marey__work_set *set)
{
    const struct marey__device_work *found = NULL;
    uint64_t most_ns = 0;
    for (size_t d = 0; d < set->n_devices; d++) {
        uint64_t ns = 0;
        for (size_t i = 0; i < set->devices[d].n_work; i++)
            ns += set->devices[d].work[i].end_ns - set->devices[d].work[i].begin_ns;
        if (set->devices[d].device >= 0 && ns > most_ns) {
            most_ns = ns;
            found = &set->devices[d];
        }
    }
    return found;
}

static marey_status read_set(struct reading *r)
{
    static const struct marey__lane_visitor visitor = {.end = take_call, .record = take_record};
    struct marey__trainer *const t = r->trainer;
    struct marey__range_walk walk = {
        .recording = t->recording, .process = t->info, .visitor = &visitor, .ctx = r};
    MAREY_TRY(marey__range_walk(&walk));
    bool done = add_copies(r) &&
                marey__sort_runs(r->waits, r->n_waits, sizeof *r->waits, wait_is_before) &&
                mark_uploads(r) && find_windows(r);
    const struct marey__device_work *const device = find_busiest(r->set);
    done = done && (device == NULL || read_device(r, device));
    return done && marey__intervals_unite(t->host_gaps, &t->n_host_gaps) &&
                   marey__intervals_unite(t->waits, &t->n_waits)
               ? MAREY_OK
               : marey__no_memory();
}

static marey_status read_trainer(struct marey__facts *facts, struct marey__trainer *trainer,
                                 const struct marey__work_options *options)
{
    struct marey__work_set set = {0};
    struct reading r = {.facts = facts, .trainer = trainer, .set = &set};
    marey_status status =
        marey__work_set_read(&set, trainer->recording, trainer->info->index, options);
    if (status == MAREY_OK)
        status = read_set(&r);
    MAREY__FREE_ALL(r.edges, r.traced, r.waits);
    marey__work_set_fini(&set);
    return status;
}

/*
 * The CPU may run ahead of a device for many steps, and then wait until the queue has room. A
 * window with only the short steps, or only the wait, is not representative of the device.
 * Evaluation, checkpoints and logging are excluded.
 */
static void drop_untypical(struct marey__facts *facts)
{
    static const enum marey__fact_phase occasional[] = {MAREY__FACT_EVALUATION,
                                                        MAREY__FACT_CHECKPOINT, MAREY__FACT_LOGGING};
    const double most = 1.5; /* ratio of the mean traced step to the mean step */
    struct marey__fact_device *const d = &facts->device;
    double all_ns = (double)facts->steady_ns, traced_ns = 0;
    size_t n = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(occasional); i++)
        all_ns -= (double)facts->phase_ns[occasional[i]];
    for (size_t i = 0; i < facts->n_trainers; i++)
        n += facts->trainers[i].n_steps - facts->trainers[i].n_warmup;
    for (size_t i = 0; i < d->n_steps; i++)
        traced_ns += (double)d->steps[i].ns;
    const double ratio = traced_ns / (double)d->n_steps / (all_ns / (double)n);
    if (d->n_steps == 0 || (ratio < most && ratio > 1 / most))
        return;
    d->is_untypical = true;
    d->n_steps = 0;
    d->traced_ns = 0;
}

marey_status marey__facts_read_device(struct marey__facts *facts)
{
    struct marey__rules rules = {0};
    marey_status status = marey__rules_load(&rules, NULL);
    for (size_t i = 0; status == MAREY_OK && i < facts->n_trainers; i++)
        if (marey__has_streams(facts->trainers[i].recording, facts->trainers[i].info->index))
            status = read_trainer(facts, &facts->trainers[i],
                                  &(struct marey__work_options){.rules = &rules});
    marey__rules_fini(&rules);
    drop_untypical(facts);
    return status;
}

/* The step's time outside of data, the base of the shares below. */
static double rest_of(const struct marey__traced_step *step)
{
    return (double)step->ns - (double)step->part_ns[MAREY__TRACED_DATA];
}

/* Of an interval of 95 %: Student's t with few degrees of freedom, relative to the normal distribution. */
static double widening(size_t freedom)
{
    static const double t[] = {12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    return (freedom <= MAREY__COUNT_OF(t) ? t[freedom - 1] : 1.96 + 2.6 / (double)freedom) / 1.96;
}

/*
 * The share of the time outside of data in traced steps, scaled by the share of that time in all
 * steps. Together with shares of data, which refer to all steps, the sum never exceeds 1.
 */
static void share_of_trainer(const struct marey__facts *facts, uint32_t trainer,
                             enum marey__traced_part part, double *share, double *error)
{
    const struct marey__fact_device *const d = &facts->device;
    const double outside = 1 - (double)facts->phase_ns[MAREY__FACT_DATA] / (double)facts->steady_ns;
    double all_ns = 0, part_ns = 0, squares = 0;
    size_t n = 0;
    for (size_t i = 0; i < d->n_steps; i++) {
        if (d->steps[i].trainer != trainer)
            continue;
        n++;
        all_ns += rest_of(&d->steps[i]);
        part_ns += (double)d->steps[i].part_ns[part];
    }
    const double of_rest = all_ns > 0 ? part_ns / all_ns : 0;
    for (size_t i = 0; i < d->n_steps; i++) {
        if (d->steps[i].trainer != trainer)
            continue;
        const double unexplained =
            (double)d->steps[i].part_ns[part] - of_rest * rest_of(&d->steps[i]);
        squares += unexplained * unexplained;
    }
    *share = of_rest * outside;
    *error = n > 1 && all_ns > 0
                 ? sqrt(squares * (double)n / (double)(n - 1)) / all_ns * outside * widening(n - 1)
                 : *share;
}

/* The other ranks wait for the one whose device is idle the longest: theirs run a collective meanwhile. */
void marey__facts_traced_share(const struct marey__facts *facts, enum marey__traced_part part,
                               double *share, double *error)
{
    *share = *error = 0;
    for (uint32_t i = 0; i < facts->n_trainers; i++) {
        double own, own_error;
        share_of_trainer(facts, i, part, &own, &own_error);
        if (i > 0 && own <= *share)
            continue;
        *share = own;
        *error = own_error;
    }
}

double marey__facts_exposed_data(const struct marey__facts *facts)
{
    uint64_t data_ns = 0, idle_ns = 0;
    for (size_t i = 0; i < facts->device.n_steps; i++) {
        data_ns += facts->device.steps[i].part_ns[MAREY__TRACED_DATA];
        idle_ns += facts->device.steps[i].part_ns[MAREY__TRACED_DATA_IDLE];
    }
    return data_ns != 0 ? (double)idle_ns / (double)data_ns : -1;
}
