/*
 * Gaps: times in which no stream of a device was busy, each split at the call that launched the next work.
 *
 * The time before the call is explained by the host: idle_host.c. The time after it is launch latency, or the launched
 * work waits for something else.
 */
#include "analyze/device/internal.h"

/* One gap and the work around it. */
struct gap {
    uint64_t begin_ns, end_ns;
    const struct marey__work *last; /* ends where the gap begins; NULL: none */
    const struct marey__work *next; /* begins where the gap ends; NULL: none */
};

/* A device while its gaps are searched. */
struct device {
    struct marey__idle_finder *finder;
    const struct marey__device_work *work;
    uint32_t number;
    uint32_t main_lane;
    struct marey__interval *full; /* times in which a launch queue was full, in order */
    size_t n_full;
};

bool marey__idle_name(struct marey__idle_finder *finder, uint32_t site, uint32_t *out)
{
    const struct marey_site_info *info = marey__work_site(finder->set, site);
    *out = MAREY__NO_NAME;
    if (site == 0 || !marey__is_operator(info))
        return true;
    *out = marey__names_number(&finder->idle->names, info->name, info->name_len);
    return *out != MAREY__NO_NAME;
}

static const struct marey__launch_call *launch_of(const struct marey__work_set *set,
                                                  const struct marey__work *work)
{
    return work == NULL || work->launch == MAREY__NO_INDEX ? NULL : &set->launches[work->launch];
}

/* ---- from the launch on ---- */

/* The time from `begin_ns` to the end of the gap is queued; a full queue is the reason while it lasts. */
static bool add_queued(const struct device *device, struct marey__idle_time *time, uint64_t end_ns)
{
    size_t low; /* the first full time that ends after the begin */
    MAREY__BISECT(low, 0, device->n_full, device->full[low].end_ns <= time->begin_ns);
    while (time->begin_ns < end_ns) {
        const struct marey__interval *full = low < device->n_full ? &device->full[low] : NULL;
        const bool is_full = full != NULL && full->begin_ns <= time->begin_ns;
        time->reason = is_full ? MAREY__IDLE_QUEUE_FULL : MAREY__IDLE_QUEUED;
        time->end_ns =
            full == NULL ? end_ns : MAREY__MIN(end_ns, is_full ? full->end_ns : full->begin_ns);
        if (!marey__idle_add(device->finder, time))
            return false;
        time->begin_ns = time->end_ns;
        low += is_full;
    }
    return true;
}

/* Add time for `reason` until `end_ns`, if that is later. */
static bool add_until(const struct device *device, struct marey__idle_time *time,
                      enum marey__idle_reason reason, uint64_t end_ns)
{
    time->reason = reason;
    time->end_ns = MAREY__MAX(time->begin_ns, end_ns);
    const bool is_done = marey__idle_add(device->finder, time);
    time->begin_ns = time->end_ns;
    return is_done;
}

/* The rest of a gap from the call `launch` of the next work on. */
static bool add_launched(const struct device *device, const struct gap *gap,
                         const struct marey__launch_call *launch, struct marey__idle_time time)
{
    const uint64_t end_ns = gap->end_ns, soon_ns = launch->begin_ns + MAREY__LAUNCH_LATENCY_NS;
    time.lane = launch->lane;
    time.begin_ns = MAREY__MAX(gap->begin_ns, launch->begin_ns);
    if (!marey__idle_name(device->finder, launch->around, &time.name) ||
        !add_until(device, &time, MAREY__IDLE_LATENCY, MAREY__MIN(end_ns, soon_ns)) ||
        !add_until(device, &time, MAREY__IDLE_LAUNCH_CALL, MAREY__MIN(end_ns, launch->end_ns)))
        return false;
    if (end_ns - time.begin_ns > MAREY__KERNEL_GAP_NS)
        return add_queued(device, &time, end_ns);
    const bool is_ahead = launch->begin_ns <= gap->begin_ns;
    return add_until(device, &time, is_ahead ? MAREY__IDLE_KERNEL_GAP : MAREY__IDLE_LATENCY, end_ns);
}

/* ---- gaps ---- */

/* The first lane of the same thread: overlapping ranges of an imported file use further lanes. */
static uint32_t find_sibling(struct marey__idle_finder *finder, uint32_t lane)
{
    const struct marey__work_set *set = finder->set;
    const size_t process = set->process->index;
    const struct marey_lane_info *own = marey_recording_lane(set->recording, process, lane);
    for (uint32_t i = 0; finder->siblings[lane] == 0 && i <= lane; i++) {
        const struct marey_lane_info *info = marey_recording_lane(set->recording, process, i);
        if (i == lane || (info->kind == MAREY_LANE_THREAD && info->tid == own->tid))
            finder->siblings[lane] = i + 1;
    }
    return finder->siblings[lane] - 1;
}

/* The lane to use if the launching thread has no open range: another lane of that thread, or the previous launcher. */
static uint32_t find_other_lane(struct marey__idle_finder *finder, uint32_t lane,
                                const struct marey__launch_call *before)
{
    const uint32_t sibling = find_sibling(finder, lane);
    if (sibling != lane)
        return sibling;
    return before != NULL && before->lane != lane ? before->lane : MAREY__NO_INDEX;
}

/* Add the time until `end_ns` for the host to explain. */
static bool add_part(const struct device *device, const struct gap *gap, uint64_t end_ns,
                     uint32_t lane)
{
    struct marey__idle_finder *finder = device->finder;
    if (end_ns <= gap->begin_ns)
        return true;
    const struct marey__idle_part part = {gap->begin_ns, end_ns, lane, (uint32_t)finder->n_gaps - 1};
    finder->gaps[part.gap].other_lane =
        find_other_lane(finder, lane, launch_of(finder->set, gap->last));
    return MAREY__PUSH(finder->parts, finder->n_parts, finder->parts_cap, part);
}

static bool add_unknown(const struct device *device, const struct gap *gap,
                        struct marey__idle_time time)
{
    time.reason = MAREY__IDLE_UNKNOWN;
    time.name = MAREY__NO_NAME;
    time.begin_ns = gap->begin_ns;
    time.end_ns = gap->end_ns;
    return marey__idle_add(device->finder, &time);
}

static bool add_gap(const struct device *device, const struct gap *gap)
{
    struct marey__idle_finder *finder = device->finder;
    if (!MAREY__PUSH(
            finder->gaps, finder->n_gaps, finder->gaps_cap,
            (struct marey__idle_gap){.device = device->number, .other_lane = MAREY__NO_INDEX}))
        return false;
    const struct marey__idle_time time = {.gap = &finder->gaps[finder->n_gaps - 1],
                                          .gap_number = (uint32_t)finder->n_gaps - 1};
    if (device->work->device < 0)
        return device->main_lane == MAREY__NO_INDEX
                   ? add_unknown(device, gap, time)
                   : add_part(device, gap, gap->end_ns, device->main_lane);
    /* After the last work, use its launching thread. */
    const struct marey__launch_call *launch =
        launch_of(finder->set, gap->next != NULL ? gap->next : gap->last);
    if (launch == NULL)
        return add_unknown(device, gap, time);
    if (gap->next == NULL || launch->begin_ns >= gap->end_ns)
        return add_part(device, gap, gap->end_ns, launch->lane);
    return add_part(device, gap, launch->begin_ns, launch->lane) &&
           add_launched(device, gap, launch, time);
}

/* Whether `work` was launched before `other`; an unknown launch counts as the last. */
static bool is_launched_before(const struct marey__work_set *set, const struct marey__work *work,
                               const struct marey__work *other)
{
    const struct marey__launch_call *a = launch_of(set, work), *b = launch_of(set, other);
    if (a == NULL || b == NULL)
        return a != NULL;
    return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->lane < b->lane;
}

const struct marey__work *marey__first_launched(const struct marey__work_set *set,
                                                const struct marey__device_work *device, size_t i)
{
    const struct marey__work *next = &device->work[i];
    for (size_t j = i + 1; j < device->n_work && device->work[j].begin_ns == next->begin_ns; j++)
        if (device->work[j].class != MAREY__IGNORED && is_launched_before(set, &device->work[j], next))
            next = &device->work[j];
    return next;
}

/* The interval in which gaps are needed: the whole window, and the steps. */
static struct marey__interval find_bounds(const struct device *device)
{
    const struct marey__idle_finder *finder = device->finder;
    const struct marey__idle_windows *windows = finder->windows;
    const struct marey__interval *whole = windows->whole + windows->stride * device->number;
    const size_t n = windows->n_whole != NULL ? windows->n_whole[device->number] : 1;
    struct marey__interval bounds = {UINT64_MAX, 0};
    if (n != 0)
        bounds = (struct marey__interval){whole[0].begin_ns, whole[n - 1].end_ns};
    for (size_t i = 0; i < finder->idle->n_steps; i++) {
        const struct marey__interval *step =
            &windows->steps[finder->idle->n_steps * device->number + i];
        bounds.begin_ns = MAREY__MIN(bounds.begin_ns, step->begin_ns);
        bounds.end_ns = MAREY__MAX(bounds.end_ns, step->end_ns);
    }
    return bounds;
}

static bool find_gaps(const struct device *device)
{
    const struct marey__work_set *set = device->finder->set;
    const struct marey__device_work *work = device->work;
    const struct marey__interval bounds = find_bounds(device);
    struct gap gap = {.begin_ns = bounds.begin_ns};
    for (size_t i = 0; i < work->n_work; i++) {
        const struct marey__work *w = &work->work[i];
        if (w->class == MAREY__IGNORED)
            continue;
        if (w->begin_ns > gap.begin_ns) {
            gap.next = marey__first_launched(set, work, i);
            gap.end_ns = w->begin_ns;
            if (!add_gap(device, &gap))
                return false;
        }
        if (w->end_ns > gap.begin_ns ||
            (w->end_ns == gap.begin_ns && is_launched_before(set, w, gap.last)))
            gap.last = w;
        gap.begin_ns = MAREY__MAX(gap.begin_ns, w->end_ns);
    }
    gap.next = NULL;
    gap.end_ns = bounds.end_ns;
    return gap.end_ns <= gap.begin_ns || add_gap(device, &gap);
}

/*
 * ---- full launch queues ----
 *
 * A stream queues a limited number of launches; then the call blocks until work begins. A launch is queued from the begin
 * of its call to the begin of its first work.
 */

/* A launch enters or leaves the queue of a stream. */
struct turn {
    uint64_t ns;
    uint32_t lane;
    int32_t change;
};

MAREY__ORDER(by_lane, struct turn, MAREY__UP(lane) MAREY__UP(ns) MAREY__UP(change))

/* A launch may have much work, as a graph does: only the first counts. Returns the number of turns. */
static size_t list_turns(const struct marey__work_set *set, const struct marey__device_work *device,
                         struct turn *turns, uint8_t *is_seen)
{
    size_t n = 0;
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->launch == MAREY__NO_INDEX || is_seen[work->launch])
            continue;
        is_seen[work->launch] = 1;
        turns[n++] = (struct turn){set->launches[work->launch].begin_ns, work->lane, 1};
        turns[n++] = (struct turn){work->begin_ns, work->lane, -1};
    }
    return n;
}

/* The times in which a queue was full, one stream after another; returns how many. */
static size_t list_full(const struct turn *turns, size_t n, struct marey__interval *full)
{
    int64_t length = 0;
    uint64_t since_ns = 0;
    size_t n_full = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || turns[i].lane != turns[i - 1].lane)
            length = 0;
        const bool was_full = length >= MAREY__LAUNCH_QUEUE;
        length += turns[i].change;
        const bool is_full = length >= MAREY__LAUNCH_QUEUE;
        if (is_full && !was_full)
            since_ns = turns[i].ns;
        if (!is_full && was_full && turns[i].ns > since_ns)
            full[n_full++] = (struct marey__interval){since_ns, turns[i].ns};
    }
    return n_full;
}

/* The times in which any launch queue was full, in order, freed with marey__free. Returns false on out of memory. */
static bool find_full(const struct marey__work_set *set, const struct marey__device_work *device,
                      struct marey__interval **out, size_t *n_out)
{
    *out = NULL;
    *n_out = 0;
    if (device->n_work < MAREY__LAUNCH_QUEUE)
        return true;
    struct turn *const turns MAREY__FREED = marey__calloc(device->n_work, 2 * sizeof *turns);
    uint8_t *const is_seen MAREY__FREED = marey__calloc(set->n_launches + 1, 1);
    struct marey__interval *full MAREY__FREED = marey__calloc(device->n_work, sizeof *full);
    if (turns == NULL || is_seen == NULL || full == NULL)
        return false;
    const size_t n = list_turns(set, device, turns, is_seen);
    qsort(turns, n, sizeof *turns, by_lane);
    *n_out = list_full(turns, n, full);
    if (!marey__intervals_unite(full, n_out))
        return false;
    *out = full;
    full = NULL;
    return true;
}

/* ---- all devices ---- */

/* The main thread of a process without devices. */
static uint32_t find_main_lane(const struct marey__work_set *set)
{
    for (uint32_t i = 0; i < set->process->n_lanes; i++) {
        const struct marey_lane_info *lane =
            marey_recording_lane(set->recording, set->process->index, i);
        if (lane->kind == MAREY_LANE_THREAD && lane->tid == set->main_tid)
            return i;
    }
    return MAREY__NO_INDEX;
}

static bool find_device(struct marey__idle_finder *finder, uint32_t number)
{
    struct marey__idle_device *result = &finder->idle->devices[number];
    struct device device = {.finder = finder,
                            .work = &finder->set->devices[number],
                            .number = number,
                            .main_lane = find_main_lane(finder->set)};
    result->device = device.work->device;
    if (!find_full(finder->set, device.work, &device.full, &device.n_full))
        return false;
    for (size_t i = 0; i < device.n_full; i++)
        result->queue_full_ns += device.full[i].end_ns - device.full[i].begin_ns;
    const bool is_done = find_gaps(&device);
    marey__free(device.full);
    return is_done;
}

static bool prepare_steps(struct marey__idle_finder *finder)
{
    struct marey__idle *idle = finder->idle;
    const struct marey__interval *steps = finder->windows->steps;
    const size_t n = idle->n_steps;
    finder->latest_ns = marey__calloc(n * idle->n_devices + 1, sizeof *finder->latest_ns);
    if (finder->latest_ns == NULL)
        return false;
    for (size_t d = 0; d < idle->n_devices; d++) {
        uint64_t latest_ns = 0;
        for (size_t i = 0; steps != NULL && i < n; i++) {
            latest_ns = MAREY__MAX(latest_ns, steps[d * n + i].end_ns);
            finder->latest_ns[d * n + i] = latest_ns;
        }
        idle->devices[d].step_ns =
            marey__calloc(n * MAREY__N_IDLE_REASONS + 1, sizeof *idle->devices[d].step_ns);
        if (idle->devices[d].step_ns == NULL)
            return false;
    }
    return true;
}

static marey_status find(struct marey__idle_finder *finder)
{
    struct marey__idle *idle = finder->idle;
    idle->devices = marey__calloc(finder->set->n_devices + 1, sizeof *idle->devices);
    MAREY__TRY_MEMORY(idle->devices != NULL);
    idle->n_devices = finder->set->n_devices;
    finder->siblings =
        marey__calloc((size_t)finder->set->process->n_lanes + 1, sizeof *finder->siblings);
    MAREY__TRY_MEMORY(finder->siblings != NULL && prepare_steps(finder));
    for (uint32_t d = 0; d < idle->n_devices; d++)
        MAREY__TRY_MEMORY(find_device(finder, d));
    MAREY_TRY(marey__idle_ask_host(finder));
    return marey__idle_make_rows(finder) ? MAREY_OK : marey__no_memory();
}

marey_status marey__idle_find(struct marey__idle *idle, const struct marey__work_set *set,
                              const struct marey__rules *rules,
                              const struct marey__idle_windows *windows)
{
    *idle = (struct marey__idle){.n_steps = windows->steps != NULL ? set->n_steps : 0};
    struct marey__idle_finder finder = {.idle = idle, .set = set, .rules = rules, .windows = windows};
    const marey_status status = find(&finder);
    MAREY__FREE_ALL(finder.siblings, finder.latest_ns, finder.gaps, finder.parts, finder.sums);
    marey__key_map_fini(&finder.by_key);
    if (status != MAREY_OK)
        marey__idle_fini(idle);
    return status;
}

void marey__idle_fini(struct marey__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++) {
        MAREY__FREE_ALL(idle->devices[d].rows, idle->devices[d].step_ns);
    }
    marey__free(idle->devices);
    marey__names_fini(&idle->names);
    *idle = (struct marey__idle){0};
}
