/*
 * Gaps of devices, and who was waited for.
 *
 *   device   [ a ]              [ b ]        b was launched when a had ended: the device waited for the host
 *   thread             [launch]
 *
 * A wait is of the range that launched what ended it, as far as it lies behind that range's begin.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu_report_internal.h"

struct waits {
    struct kymo__gpu_process *p;
    size_t device, max_gaps;
    uint64_t number; /* of the gap, from 1, over all devices */
};

/* Of work that begins at the same time, what was launched first is what ended the gap. */
static const struct kymo__work *find_next(const struct kymo__work_set *set,
                                          const struct kymo__device_work *device, size_t i)
{
    const struct kymo__work *next = &device->work[i];
    for (size_t j = i + 1; j < device->n_work && device->work[j].begin_ns == next->begin_ns; j++) {
        const struct kymo__work *other = &device->work[j];
        if (other->class == KYMO__IGNORED || other->launch == KYMO__NO_INDEX)
            continue;
        if (next->launch == KYMO__NO_INDEX ||
            set->launches[other->launch].begin_ns < set->launches[next->launch].begin_ns)
            next = other;
    }
    return next;
}

/* ---- waits ---- */

static void add_to_ranges(const struct waits *waits, const struct kymo__launch_call *launch,
                          uint64_t begin_ns, uint64_t end_ns)
{
    const struct kymo__gpu_process *p = waits->p;
    const bool is_long = end_ns - begin_ns > KYMO__LAUNCH_WAIT_NS;
    bool is_in_none = true;
    /* Of several ranges of a name the outermost counts: what the one within it had counted is taken back. */
    for (uint32_t at = launch->range; at != KYMO__NO_INDEX; at = p->set.ranges[at].parent) {
        if (p->range_names[at] == KYMO__NO_NAME)
            continue;
        is_in_none = false;
        struct kymo__launching *range = &p->ranges[p->range_names[at]];
        const uint64_t own_begin_ns = p->set.ranges[at].begin_ns;
        const uint64_t ns = end_ns - KYMO__MIN(end_ns, KYMO__MAX(begin_ns, own_begin_ns));
        uint64_t *sum = is_long ? &range->host_wait_ns : &range->launch_wait_ns;
        *sum += ns - (range->stamp == waits->number ? range->last_wait_ns : 0);
        range->stamp = waits->number;
        range->last_wait_ns = ns;
    }
    /* The launch has made the row of its name. */
    const uint32_t none = is_in_none
                              ? kymo__names_find(&p->names, kymo__no_range, strlen(kymo__no_range))
                              : KYMO__NO_NAME;
    if (none != KYMO__NO_NAME)
        *(is_long ? &p->ranges[none].host_wait_ns : &p->ranges[none].launch_wait_ns) +=
            end_ns - begin_ns;
}

static void add_wait(const struct waits *waits, const struct kymo__work *next, uint64_t begin_ns)
{
    const struct kymo__gpu_process *p = waits->p;
    const uint64_t end_ns = next->begin_ns, ns = end_ns - begin_ns;
    const struct kymo__launch_call *launch =
        next->launch != KYMO__NO_INDEX ? &p->set.launches[next->launch] : NULL;
    if (launch == NULL || launch->begin_ns < begin_ns)
        return;
    struct kymo__gpu_device *device = &p->devices[waits->device];
    const bool is_long = ns > KYMO__LAUNCH_WAIT_NS;
    *(is_long ? &device->host_wait_ns : &device->launch_wait_ns) += ns;
    add_to_ranges(waits, launch, begin_ns, end_ns);
    const uint32_t step = kymo__step_at(&p->set, launch->begin_ns);
    if (step == KYMO__NO_INDEX)
        return;
    struct kymo__gpu_iteration *iteration = &p->iterations[waits->device * p->set.n_steps + step];
    const uint64_t from_ns = KYMO__MAX(begin_ns, p->set.steps[step].begin_ns);
    *(is_long ? &iteration->host_wait_ns : &iteration->launch_wait_ns) +=
        end_ns > from_ns ? end_ns - from_ns : 0;
}

/* ---- gaps ---- */

/* The longest first; of equal ones the earlier. */
static void keep_gap(const struct waits *waits, const struct kymo__work *last,
                     const struct kymo__work *next, uint64_t begin_ns)
{
    struct kymo__gpu_process *p = waits->p;
    const uint64_t ns = next->begin_ns - begin_ns;
    size_t at = p->n_gaps;
    while (at > 0 && p->gaps[at - 1].end_ns - p->gaps[at - 1].begin_ns < ns)
        at--;
    if (at == waits->max_gaps)
        return;
    p->n_gaps += p->n_gaps < waits->max_gaps;
    memmove(&p->gaps[at + 1], &p->gaps[at], (p->n_gaps - at - 1) * sizeof *p->gaps);
    p->gaps[at] = (struct kymo__gpu_gap){.begin_ns = begin_ns,
                                         .end_ns = next->begin_ns,
                                         .device = waits->device,
                                         .before = last->site,
                                         .next = next->site,
                                         .launch = next->launch,
                                         .step = kymo__step_of(&p->set, next)};
}

static void find_gaps(struct waits *waits)
{
    const struct kymo__work_set *set = &waits->p->set;
    const struct kymo__device_work *device = &set->devices[waits->device];
    const struct kymo__work *last = NULL;
    for (size_t i = 0; i < device->n_work; i++) {
        const struct kymo__work *work = &device->work[i];
        if (work->class == KYMO__IGNORED)
            continue;
        if (last != NULL && work->begin_ns > last->end_ns) {
            const struct kymo__work *next = find_next(set, device, i);
            waits->number++;
            add_wait(waits, next, last->end_ns);
            keep_gap(waits, last, next, last->end_ns);
        }
        if (last == NULL || work->end_ns >= last->end_ns)
            last = work;
    }
}

/* "train > forward > aten::mm", freed with kymo__free; NULL without memory, or where there is none. */
static char *path_of(const struct kymo__gpu_process *p, uint32_t launch, bool *failed)
{
    const struct kymo__work_set *set = &p->set;
    struct kymo__buf path = {0};
    uint32_t around[16]; /* the innermost ones first */
    size_t n = 0;
    if (launch == KYMO__NO_INDEX)
        return NULL;
    for (uint32_t at = set->launches[launch].range; at != KYMO__NO_INDEX; at = set->ranges[at].parent)
        if (p->range_names[at] != KYMO__NO_NAME && n < KYMO__COUNT_OF(around))
            around[n++] = p->range_names[at];
    if (n == 0)
        return NULL;
    for (size_t i = n; i-- > 0;) {
        const struct kymo__name *name = &p->names.names[around[i]];
        kymo__buf_put(&path, name->text, name->len);
        kymo__buf_put(&path, i == 0 ? "" : " > ", i == 0 ? 1 : 3);
    }
    *failed |= path.failed;
    return path.data;
}

bool kymo__gpu_sum_waits(struct kymo__gpu_process *p, size_t max_gaps)
{
    struct waits waits = {.p = p, .max_gaps = max_gaps};
    bool failed = false;
    p->gaps = kymo__calloc(max_gaps + 1, sizeof *p->gaps);
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

/* ---- why ---- */

static kymo_status no_memory(const struct kymo__gpu_process *p)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the gaps of %s", p->set.process->log_path);
}

static bool gap_is_before(const void *a, const void *b)
{
    const struct kymo__gpu_gap *x = *(struct kymo__gpu_gap *const *)a,
                               *y = *(struct kymo__gpu_gap *const *)b;
    return x->begin_ns < y->begin_ns;
}

static void take_reason(struct kymo__gpu_gap *gap, const uint64_t *ns)
{
    for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++)
        if (ns[i] > gap->reason_ns) {
            gap->reason = (enum kymo__idle_reason)i;
            gap->reason_ns = ns[i];
        }
}

/* The gaps take the place of steps, in order of their begin: what each is due to is then told apart. */
struct explaining {
    struct kymo__gpu_gap **order;
    struct kymo__interval *windows; /* by device, then gap */
    size_t *n_whole;                /* by device: nothing else is to be explained */
};

static void make_windows(const struct explaining *e, const struct kymo__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++)
        for (size_t i = 0; i < p->n_gaps; i++) {
            const struct kymo__gpu_gap *gap = e->order[i];
            const uint64_t end_ns = gap->device == d ? gap->end_ns : gap->begin_ns;
            e->windows[d * p->n_gaps + i] = (struct kymo__interval){gap->begin_ns, end_ns};
        }
}

static kymo_status explain(const struct explaining *e, struct kymo__gpu_process *p,
                           const struct kymo__rules *rules)
{
    const size_t n = p->n_gaps;
    struct kymo__work_set set = p->set;
    struct kymo__idle idle;
    if (e->order == NULL || e->windows == NULL || e->n_whole == NULL)
        return no_memory(p);
    for (size_t i = 0; i < n; i++)
        e->order[i] = &p->gaps[i];
    if (!kymo__sort_runs(e->order, n, sizeof *e->order, gap_is_before))
        return no_memory(p);
    make_windows(e, p);
    set.n_steps = n;
    const struct kymo__idle_windows wants = {
        .whole = e->windows, .n_whole = e->n_whole, .stride = n, .steps = e->windows};
    KYMO_TRY(kymo__idle_find(&idle, &set, rules, &wants));
    for (size_t i = 0; i < n; i++) {
        struct kymo__gpu_gap *gap = e->order[i];
        take_reason(gap, idle.devices[gap->device].step_ns + i * KYMO__N_IDLE_REASONS);
    }
    kymo__idle_fini(&idle);
    return KYMO_OK;
}

kymo_status kymo__gpu_explain_gaps(struct kymo__gpu_process *p, const struct kymo__rules *rules)
{
    const size_t n = p->n_gaps, n_devices = p->set.n_devices;
    if (n == 0)
        return KYMO_OK;
    const struct explaining e = {
        .order = kymo__calloc(n, sizeof(struct kymo__gpu_gap *)),
        .windows = kymo__calloc(n * n_devices, sizeof *e.windows),
        .n_whole = kymo__calloc(n_devices, sizeof *e.n_whole),
    };
    const kymo_status status = explain(&e, p, rules);
    kymo__free(e.order);
    kymo__free(e.windows);
    kymo__free(e.n_whole);
    return status;
}
