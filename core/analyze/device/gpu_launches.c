/*
 * Sums of work by name, kind and shape, and by stream; then launches by the ranges around them.
 *
 * For each range: the number of launches, their work on the device, the duration of the calls, and how long
 * the launched work was queued.
 *
 *   thread   [ train ............................... ]       calls of `train`: 1, launches 2, work 3
 *              [ forward ....... ]
 *                [launch] [launch]
 *   device          [ a ]  [ b ][ c ]                        span of `forward`: from its begin to the end of c
 */
#include "analyze/device/gpu_report.h"

/* The sum for this key, created if needed; NULL on out of memory. */
static struct marey__gpu_sum *sum_of(struct marey__gpu_sums *sums, uint32_t name, uint32_t kind,
                                     uint32_t shape)
{
    const uint32_t key[3] = {name, kind, shape};
    const uint32_t number = MAREY__MAP_NUMBER(&sums->keys, sums->sums, sums->n, sums->cap, key);
    return number != 0 ? &sums->sums[number - 1] : NULL;
}

bool marey__gpu_sums_add(struct marey__gpu_sums *sums, uint32_t name, uint32_t shape,
                         struct marey__gpu_sum *from)
{
    struct marey__gpu_sum *sum = sum_of(sums, name, from->kind, shape);
    if (sum == NULL)
        return false;
    sum->bytes += from->bytes;
    sum->bytes_ns += from->bytes_ns;
    if (sum->calls.count != 0)
        return marey__sketch_merge(&sum->calls, &from->calls);
    sum->calls = from->calls; /* moved, so that it is not in memory twice */
    from->calls = (struct marey__sketch){0};
    return true;
}

void marey__gpu_sums_fini(struct marey__gpu_sums *sums)
{
    for (size_t i = 0; i < sums->n; i++)
        marey__sketch_fini(&sums->sums[i].calls);
    marey__free(sums->sums);
    marey__key_map_fini(&sums->keys);
    *sums = (struct marey__gpu_sums){0};
}

/* ---- a process ---- */

static bool sum_one(struct marey__gpu_process *p, const struct marey__work *work)
{
    static const struct marey__work_facts none = {.shape = MAREY__NO_INDEX};
    const struct marey__work_set *set = &p->set;
    const struct marey__work_facts *facts =
        work->facts != MAREY__NO_INDEX ? &set->facts[work->facts] : &none;
    const struct marey_site_info *site = marey__work_site(set, work->site);
    const uint64_t ns = work->end_ns - work->begin_ns;
    const uint32_t name = marey__names_number(&p->names, site->name, site->name_len);
    struct marey__gpu_sum *sum =
        name != MAREY__NO_NAME ? sum_of(&p->sums, name, work->kind, facts->shape) : NULL;
    if (sum == NULL)
        return false;
    sum->bytes += facts->bytes;
    sum->bytes_ns += facts->bytes != 0 ? ns : 0;
    p->streams[work->lane].n[work->kind]++;
    p->streams[work->lane].bytes += facts->bytes;
    return marey__sketch_add(&sum->calls, ns);
}

static void count_launch(struct marey__gpu_process *p, const struct marey__work *work, size_t device)
{
    if (work->launch == MAREY__NO_INDEX)
        return;
    struct marey__launched *launched = &p->launched[work->launch];
    if (launched->n_work++ == 0)
        launched->first_ns = work->begin_ns;
    launched->first_ns = MAREY__MIN(launched->first_ns, work->begin_ns);
    launched->last_ns = MAREY__MAX(launched->last_ns, work->end_ns);
    launched->gpu_ns += work->end_ns - work->begin_ns;
    launched->devices |= UINT64_C(1) << MAREY__MIN(device, (size_t)MAREY__MAX_DEVICE_BITS - 1);
}

static void count_step(struct marey__gpu_process *p, const struct marey__work *work, size_t device)
{
    const uint32_t step = marey__step_of(&p->set, work);
    if (step == MAREY__NO_INDEX)
        return;
    p->iterations[device * p->set.n_steps + step].n_work++;
    p->iterations[device * p->set.n_steps + step].gpu_ns += work->end_ns - work->begin_ns;
}

bool marey__gpu_sum_work(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    p->streams = marey__calloc((size_t)set->process->n_lanes + 1, sizeof *p->streams);
    p->launched = marey__calloc(set->n_launches + 1, sizeof *p->launched);
    p->devices = marey__calloc(set->n_devices + 1, sizeof *p->devices);
    p->iterations = marey__calloc(set->n_devices * set->n_steps + 1, sizeof *p->iterations);
    if (p->streams == NULL || p->launched == NULL || p->devices == NULL || p->iterations == NULL)
        return false;
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct marey__device_work *device = &set->devices[d];
        p->devices[d].device = device->device;
        p->n_unlinked += device->n_unlinked;
        p->n_work += device->n_work;
        for (size_t i = 0; i < device->n_work; i++) {
            p->devices[d].n[device->work[i].kind]++;
            count_launch(p, &device->work[i], d);
            count_step(p, &device->work[i], d);
            if (!sum_one(p, &device->work[i]))
                return false;
        }
    }
    return true;
}

/* ---- ranges ---- */

const char marey__no_range[] = "(no range)";

struct marey__launching *marey__launching_of(struct marey__launching **ranges, size_t *n,
                                             size_t *cap, uint32_t name)
{
    if (!marey__extend(ranges, n, cap, (size_t)name + 1, sizeof **ranges))
        return NULL;
    (*ranges)[name].name = name;
    return &(*ranges)[name];
}

static struct marey__launching *range_of(struct marey__gpu_process *p, const char *text, size_t len,
                                         uint32_t *name)
{
    *name = marey__names_number(&p->names, text, len);
    return *name == MAREY__NO_NAME
               ? NULL
               : marey__launching_of(&p->ranges, &p->n_ranges, &p->ranges_cap, *name);
}

/* ---- names ---- */

static bool name_ranges(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    p->range_names = marey__calloc(set->n_ranges + 1, sizeof *p->range_names);
    if (p->range_names == NULL)
        return false;
    for (size_t i = 0; i < set->n_ranges; i++) {
        const struct marey_site_info *site = marey__work_site(set, set->ranges[i].site);
        p->range_names[i] = MAREY__NO_NAME;
        if (marey__is_runtime_call(site))
            continue;
        struct marey__launching *range = range_of(p, site->name, site->name_len, &p->range_names[i]);
        if (range == NULL)
            return false;
        if (range->category == NULL)
            range->category = site->category;
    }
    return true;
}

/* ---- one launch ---- */

static bool add_launch(struct marey__launching *range, const struct marey__launched *launched,
                       uint64_t call_ns, uint64_t delay_ns)
{
    range->n_launches++;
    range->n_work += launched->n_work;
    range->gpu_ns += launched->gpu_ns;
    range->launch_ns += call_ns;
    range->devices |= launched->devices;
    return marey__sketch_add(&range->delays, delay_ns);
}

static void add_self(struct marey__launching *range, const struct marey__launched *launched,
                     uint64_t call_ns)
{
    range->self_gpu_ns += launched->gpu_ns;
    range->self_launch_ns += call_ns;
}

/* Count the launch for each name around it, once; `ends` by range: the end of its window. */
static bool count_around(struct marey__gpu_process *p, size_t i, uint64_t call_ns,
                         uint64_t delay_ns, uint64_t *ends)
{
    const struct marey__work_set *set = &p->set;
    const struct marey__launched *launched = &p->launched[i];
    bool is_innermost = true;
    for (uint32_t at = set->launches[i].range; at != MAREY__NO_INDEX; at = set->ranges[at].parent) {
        if (p->range_names[at] == MAREY__NO_NAME)
            continue;
        struct marey__launching *range = &p->ranges[p->range_names[at]];
        range->calls += ends[at] == 0;
        ends[at] = MAREY__MAX(MAREY__MAX(ends[at], set->ranges[at].end_ns), launched->last_ns);
        if (is_innermost)
            add_self(range, launched, call_ns);
        is_innermost = false;
        if (range->stamp == i + 1)
            continue;
        range->stamp = i + 1;
        if (!add_launch(range, launched, call_ns, delay_ns))
            return false;
    }
    if (!is_innermost)
        return true;
    uint32_t name;
    struct marey__launching *none = range_of(p, marey__no_range, strlen(marey__no_range), &name);
    if (none == NULL)
        return false;
    add_self(none, launched, call_ns);
    return add_launch(none, launched, call_ns, delay_ns);
}

/* A call with several launches counts its duration once. */
static uint64_t call_ns_of(const struct marey__launch_call *launch)
{
    return launch->chained == MAREY__NO_INDEX ? launch->end_ns - launch->begin_ns : 0;
}

static uint64_t delay_of(const struct marey__gpu_process *p, size_t i)
{
    const uint64_t first_ns = p->launched[i].first_ns, begin_ns = p->set.launches[i].begin_ns;
    return first_ns > begin_ns ? first_ns - begin_ns : 0;
}

/* Count each launch for the device and for its step. */
static bool count_on_device(struct marey__gpu_process *p, size_t d)
{
    const struct marey__work_set *set = &p->set;
    for (size_t i = 0; i < set->devices[d].n_work; i++) {
        const uint32_t number = set->devices[d].work[i].launch;
        if (number == MAREY__NO_INDEX || p->launched[number].last_device == d + 1)
            continue;
        p->launched[number].last_device = d + 1;
        const uint64_t call_ns = call_ns_of(&set->launches[number]);
        const uint32_t step = marey__step_at(set, set->launches[number].begin_ns);
        p->devices[d].n_launches++;
        p->devices[d].launch_ns += call_ns;
        if (!marey__sketch_add(&p->devices[d].delays, delay_of(p, number)))
            return false;
        if (step == MAREY__NO_INDEX)
            continue;
        p->iterations[d * set->n_steps + step].n_launches++;
        p->iterations[d * set->n_steps + step].launch_ns += call_ns;
    }
    return true;
}

/* ---- spans ---- */

struct window {
    uint64_t begin_ns, end_ns;
    uint32_t name;
};

MAREY__ORDER_RUNS(window_is_before, struct window, MAREY__UP(name) MAREY__UP(begin_ns))

/* Unite the windows of each name. */
static void sum_spans(struct marey__gpu_process *p, const struct window *windows, size_t n)
{
    uint64_t until_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const struct window *w = &windows[i];
        if (i == 0 || w->name != w[-1].name)
            until_ns = 0;
        const uint64_t from_ns = MAREY__MAX(w->begin_ns, until_ns);
        p->ranges[w->name].span_ns += w->end_ns > from_ns ? w->end_ns - from_ns : 0;
        until_ns = MAREY__MAX(until_ns, w->end_ns);
    }
    for (size_t i = 0; i < p->n_ranges; i++)
        p->ranges[i].span_ns *= (uint64_t)__builtin_popcountll(p->ranges[i].devices);
}

static bool find_spans(struct marey__gpu_process *p, const uint64_t *ends)
{
    const struct marey__work_set *set = &p->set;
    struct window *const windows MAREY__FREED = marey__alloc((set->n_ranges + 1) * sizeof *windows);
    size_t n = 0;
    if (windows == NULL)
        return false;
    for (size_t i = 0; i < set->n_ranges; i++)
        if (ends[i] != 0)
            windows[n++] = (struct window){set->ranges[i].begin_ns, ends[i], p->range_names[i]};
    if (!marey__sort_runs(windows, n, sizeof *windows, window_is_before))
        return false;
    sum_spans(p, windows, n);
    return true;
}

bool marey__gpu_sum_launches(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    uint64_t *const ends MAREY__FREED = marey__calloc(set->n_ranges + 1, sizeof *ends);
    bool done = ends != NULL && name_ranges(p);
    for (size_t i = 0; done && i < set->n_launches; i++)
        if (p->launched[i].n_work != 0)
            done = count_around(p, i, call_ns_of(&set->launches[i]), delay_of(p, i), ends);
    for (size_t d = 0; done && d < set->n_devices; d++)
        done = count_on_device(p, d);
    return done && find_spans(p, ends);
}
