/*
 * Gaps of devices, and the ranges responsible.
 *
 *   device   [ a ]              [ b ]        b was launched after a had ended: the device waited for the host
 *   thread             [launch]
 *
 * The part of a wait within the range that launched the next activity belongs to that range.
 */
#include "analyze/device/gpu_report.h"

struct waits {
    struct marey__gpu_process *p;
    size_t device, max_gaps;
    uint64_t number; /* of the gap, from 1, over all devices */
};

/* ---- waits ---- */

static void add_to_ranges(const struct waits *waits, const struct marey__launch_call *launch,
                          uint64_t begin_ns, uint64_t end_ns)
{
    const struct marey__gpu_process *p = waits->p;
    const bool is_long = end_ns - begin_ns > MAREY__LAUNCH_WAIT_NS;
    bool is_in_none = true;
    /* Of nested ranges with one name the outermost counts: subtract what the inner one had counted. */
    for (uint32_t at = launch->range; at != MAREY__NO_INDEX; at = p->set.ranges[at].parent) {
        if (p->range_names[at] == MAREY__NO_NAME)
            continue;
        is_in_none = false;
        struct marey__launching *range = &p->ranges[p->range_names[at]];
        const uint64_t own_begin_ns = p->set.ranges[at].begin_ns;
        const uint64_t ns = end_ns - MAREY__MIN(end_ns, MAREY__MAX(begin_ns, own_begin_ns));
        uint64_t *sum = is_long ? &range->host_wait_ns : &range->launch_wait_ns;
        *sum += ns - (range->stamp == waits->number ? range->last_wait_ns : 0);
        range->stamp = waits->number;
        range->last_wait_ns = ns;
    }
    /* The row exists, because the launch created it. */
    const uint32_t none =
        is_in_none ? marey__names_find(&p->names, marey__no_range, strlen(marey__no_range))
                   : MAREY__NO_NAME;
    if (none != MAREY__NO_NAME)
        *(is_long ? &p->ranges[none].host_wait_ns : &p->ranges[none].launch_wait_ns) +=
            end_ns - begin_ns;
}

static void add_wait(const struct waits *waits, const struct marey__work *next, uint64_t begin_ns)
{
    const struct marey__gpu_process *p = waits->p;
    const uint64_t end_ns = next->begin_ns, ns = end_ns - begin_ns;
    const struct marey__launch_call *launch =
        next->launch != MAREY__NO_INDEX ? &p->set.launches[next->launch] : NULL;
    if (launch == NULL || launch->begin_ns < begin_ns)
        return;
    struct marey__gpu_device *device = &p->devices[waits->device];
    const bool is_long = ns > MAREY__LAUNCH_WAIT_NS;
    *(is_long ? &device->host_wait_ns : &device->launch_wait_ns) += ns;
    add_to_ranges(waits, launch, begin_ns, end_ns);
    const uint32_t step = marey__step_at(&p->set, launch->begin_ns);
    if (step == MAREY__NO_INDEX)
        return;
    struct marey__gpu_iteration *iteration = &p->iterations[waits->device * p->set.n_steps + step];
    const uint64_t from_ns = MAREY__MAX(begin_ns, p->set.steps[step].begin_ns);
    *(is_long ? &iteration->host_wait_ns : &iteration->launch_wait_ns) +=
        end_ns > from_ns ? end_ns - from_ns : 0;
}

/* ---- gaps ---- */

/* The longest first; of equal ones the earlier. */
static void keep_gap(const struct waits *waits, const struct marey__work *last,
                     const struct marey__work *next, uint64_t begin_ns)
{
    struct marey__gpu_process *p = waits->p;
    const uint64_t ns = next->begin_ns - begin_ns;
    size_t at = p->n_gaps;
    while (at > 0 && p->gaps[at - 1].end_ns - p->gaps[at - 1].begin_ns < ns)
        at--;
    if (at == waits->max_gaps)
        return;
    p->n_gaps += p->n_gaps < waits->max_gaps;
    memmove(&p->gaps[at + 1], &p->gaps[at], (p->n_gaps - at - 1) * sizeof *p->gaps);
    p->gaps[at] = (struct marey__gpu_gap){.begin_ns = begin_ns,
                                          .end_ns = next->begin_ns,
                                          .device = waits->device,
                                          .before = last->site,
                                          .next = next->site,
                                          .launch = next->launch,
                                          .step = marey__step_of(&p->set, next)};
}

static void find_gaps(struct waits *waits)
{
    const struct marey__work_set *set = &waits->p->set;
    const struct marey__device_work *device = &set->devices[waits->device];
    const struct marey__work *last = NULL;
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->class == MAREY__IGNORED)
            continue;
        if (last != NULL && work->begin_ns > last->end_ns) {
            const struct marey__work *next = marey__first_launched(set, device, i);
            waits->number++;
            add_wait(waits, next, last->end_ns);
            keep_gap(waits, last, next, last->end_ns);
        }
        if (last == NULL || work->end_ns >= last->end_ns)
            last = work;
    }
}

/* "train > forward > aten::mm", freed with marey__free; NULL on out of memory, or without ranges. */
static char *path_of(const struct marey__gpu_process *p, uint32_t launch, bool *failed)
{
    const struct marey__work_set *set = &p->set;
    struct marey__buf path = {0};
    uint32_t around[16]; /* innermost first */
    size_t n = 0;
    if (launch == MAREY__NO_INDEX)
        return NULL;
    for (uint32_t at = set->launches[launch].range; at != MAREY__NO_INDEX; at = set->ranges[at].parent)
        if (p->range_names[at] != MAREY__NO_NAME && n < MAREY__COUNT_OF(around))
            around[n++] = p->range_names[at];
    if (n == 0)
        return NULL;
    for (size_t i = n; i-- > 0;) {
        const struct marey__name *name = &p->names.names[around[i]];
        marey__buf_put(&path, name->text, name->len);
        marey__buf_put(&path, i == 0 ? "" : " > ", i == 0 ? 1 : 3);
    }
    *failed |= path.failed;
    return path.data;
}

bool marey__gpu_sum_waits(struct marey__gpu_process *p, size_t max_gaps)
{
    struct waits waits = {.p = p, .max_gaps = max_gaps};
    bool failed = false;
    p->gaps = marey__calloc(max_gaps + 1, sizeof *p->gaps);
    if (p->gaps == NULL)
        return false;
    for (size_t i = 0; i < p->n_ranges; i++)
        p->ranges[i].stamp = 0;
    for (; waits.device < p->set.n_devices; waits.device++)
        find_gaps(&waits);
    for (size_t i = 0; i < p->n_gaps; i++)
        p->gaps[i].path = path_of(p, p->gaps[i].launch, &failed);
    return !failed;
}

/* ---- reasons ---- */

MAREY__ORDER_RUNS(gap_is_before, struct marey__gpu_gap *const,
                  MAREY__UP_BY((*x)->begin_ns, (*y)->begin_ns))

static void take_reason(struct marey__gpu_gap *gap, const uint64_t *ns)
{
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++)
        if (ns[i] > gap->reason_ns) {
            gap->reason = (enum marey__idle_reason)i;
            gap->reason_ns = ns[i];
        }
}

/* The gaps are passed as steps, in order of their begin, so that each gets its own reasons. */

marey_status marey__gpu_explain_gaps(struct marey__gpu_process *p, const struct marey__rules *rules)
{
    const size_t n = p->n_gaps, n_devices = p->set.n_devices;
    if (n == 0)
        return MAREY_OK;
    struct marey__gpu_gap **const order MAREY__FREED = marey__calloc(n, sizeof *order);
    struct marey__interval *const windows MAREY__FREED =
        marey__calloc(n * n_devices, sizeof *windows);
    size_t *const n_whole MAREY__FREED =
        marey__calloc(n_devices, sizeof *n_whole); /* zero: no other windows */
    MAREY__TRY_MEMORY(order != NULL && windows != NULL && n_whole != NULL);
    for (size_t i = 0; i < n; i++)
        order[i] = &p->gaps[i];
    MAREY__TRY_MEMORY(marey__sort_runs(order, n, sizeof *order, gap_is_before));
    for (size_t d = 0; d < n_devices; d++)
        for (size_t i = 0; i < n; i++)
            windows[d * n + i] = (struct marey__interval){
                order[i]->begin_ns, order[i]->device == d ? order[i]->end_ns : order[i]->begin_ns};
    struct marey__work_set set = p->set;
    struct marey__idle idle;
    set.n_steps = n;
    const struct marey__idle_windows wants = {
        .whole = windows, .n_whole = n_whole, .stride = n, .steps = windows};
    MAREY_TRY(marey__idle_find(&idle, &set, rules, &wants));
    for (size_t i = 0; i < n; i++)
        take_reason(order[i], idle.devices[order[i]->device].step_ns + i * MAREY__N_IDLE_REASONS);
    marey__idle_fini(&idle);
    return MAREY_OK;
}
