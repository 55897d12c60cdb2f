/*
 * The windows of a process's devices, and the sweep of each device, or of parts of its work, within them.
 *
 *   span    from the begin of the first work to the end of the last; for a host from its first event to its last
 *   steps   each step from its begin on the host to its end there or to the end of the last work launched in it,
 *           whichever is later. Neighbors may overlap: each is a window, and the device's row uses their union, in
 *           which no nanosecond counts twice
 *
 * The parts of a device, computed in one pass over its work:
 *
 *   step     work launched in it, within the step's window; for a host its activity in that time
 *   range    work launched within a range of that name, in windows like those of steps; for a host its activity then
 *   stream   work of the stream
 *   group    communication of the process group, with all computation and copies: the time that only that
 *            group's communication hides and exposes
 */
#include "analyze/device/internal.h"

/* ---- windows ---- */

static struct marey__interval span_of(const struct marey__work_set *set,
                                      const struct marey__device_work *device)
{
    struct marey__interval span = {0, 0};
    if (device->device < 0)
        return (struct marey__interval){set->first_ns, set->last_ns};
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->class == MAREY__IGNORED)
            continue;
        span.begin_ns = span.end_ns == 0 ? work->begin_ns : span.begin_ns;
        span.end_ns = MAREY__MAX(span.end_ns, work->end_ns);
    }
    return span;
}

static void find_steps(const struct marey__work_set *set, const struct marey__device_work *device,
                       struct marey__interval *steps)
{
    for (size_t i = 0; i < set->n_steps; i++)
        steps[i] = (struct marey__interval){set->steps[i].begin_ns, set->steps[i].end_ns};
    for (size_t i = 0; device->device >= 0 && i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        const uint32_t step = marey__step_of(set, work);
        if (step != MAREY__NO_INDEX && work->class != MAREY__IGNORED)
            steps[step].end_ns = MAREY__MAX(steps[step].end_ns, work->end_ns);
    }
}

bool marey__device_windows_make(struct marey__device_windows *windows,
                                const struct marey__work_set *set)
{
    const size_t n = set->n_devices, n_steps = set->n_steps;
    *windows = (struct marey__device_windows){
        .spans = marey__calloc(n + 1, sizeof *windows->spans),
        .steps = marey__calloc(n * n_steps + 1, sizeof *windows->steps),
        .united = marey__calloc(n * n_steps + 1, sizeof *windows->united),
        .n_united = marey__calloc(n + 1, sizeof *windows->n_united),
    };
    if (windows->spans == NULL || windows->steps == NULL || windows->united == NULL ||
        windows->n_united == NULL)
        return false;
    for (size_t d = 0; d < n; d++) {
        struct marey__interval *steps = windows->steps + d * n_steps,
                               *united = windows->united + d * n_steps;
        windows->spans[d] = span_of(set, &set->devices[d]);
        find_steps(set, &set->devices[d], steps);
        for (size_t i = 0; i < n_steps; i++)
            united[i] = steps[i];
        windows->n_united[d] = n_steps;
        if (!marey__intervals_unite(united, &windows->n_united[d]))
            return false;
    }
    return true;
}

void marey__device_windows_fini(struct marey__device_windows *windows)
{
    MAREY__FREE_ALL(windows->spans, windows->steps, windows->united, windows->n_united);
    *windows = (struct marey__device_windows){0};
}

/* ---- rows ---- */

static bool add_row(struct marey__device_rows *rows, const struct marey__device_work *device,
                    enum marey__window window, const struct marey__interval *intervals, size_t n)
{
    struct marey__sweep sweep;
    marey__sweep_begin(&sweep, intervals, n);
    for (size_t i = 0; i < device->n_work; i++)
        marey__sweep_add(&sweep, device->work[i].begin_ns, device->work[i].end_ns,
                         device->work[i].class);
    marey__sweep_finish(&sweep);
    return MAREY__PUSH(rows->rows, rows->n, rows->cap,
                       (struct marey__device_row){.device = device->device,
                                                  .window = window,
                                                  .span_ns = marey__intervals_length(intervals, n),
                                                  .atoms = sweep.atoms});
}

bool marey__device_rows_make(struct marey__device_rows *rows, const struct marey__work_set *set,
                             const struct marey__device_windows *windows)
{
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct marey__device_work *device = &set->devices[d];
        if (!add_row(rows, device, MAREY__WINDOW_SPAN, &windows->spans[d], 1) ||
            (set->n_steps != 0 && !add_row(rows, device, MAREY__WINDOW_STEPS,
                                           windows->united + d * set->n_steps, windows->n_united[d])))
            return false;
    }
    return true;
}

/* ---- parts ---- */

/* Limit on ranges and groups with a row: a longer table is not useful, and each row costs a sweep. */
enum { MAX_PARTS = 1000 };

struct part {
    struct marey__sweep sweep;
    uint64_t number;
    const char *text;
    size_t len;
    uint32_t lane;
    uint64_t span_ns;
    size_t last_work; /* 1 + the index of the work added last */
};

/* The parts of one device. */
struct parts {
    const struct marey__work_set *set;
    const struct marey__device_work *device;
    const struct marey__interval *windows; /* of the device */
    size_t n_windows;
    const struct marey__interval *steps;
    struct part *parts;
    size_t n, cap;
};

static struct part *add_part(struct parts *p, const struct marey__interval *windows, size_t n_windows)
{
    if (!marey__grow(&p->parts, &p->cap, p->n + 1, sizeof *p->parts))
        return NULL;
    struct part *part = &p->parts[p->n++];
    *part = (struct part){.span_ns = marey__intervals_length(windows, n_windows),
                          .sweep = {.windows = windows, .n_windows = n_windows}};
    return part;
}

static void add_work(struct part *part, const struct marey__work *work)
{
    marey__sweep_add(&part->sweep, work->begin_ns, work->end_ns, work->class);
}

/* Add rows for the parts with any time. */
static bool put_rows(struct marey__device_rows *rows, struct parts *p, enum marey__window window,
                     bool keeps_empty)
{
    for (size_t i = 0; i < p->n; i++) {
        struct part *part = &p->parts[i];
        marey__sweep_finish(&part->sweep);
        if (part->sweep.atoms.n_work == 0 && !keeps_empty)
            continue;
        if (!MAREY__PUSH(rows->rows, rows->n, rows->cap,
                         (struct marey__device_row){.device = p->device->device,
                                                    .window = window,
                                                    .span_ns = part->span_ns,
                                                    .atoms = part->sweep.atoms,
                                                    .number = part->number,
                                                    .lane = part->lane,
                                                    .text = part->text,
                                                    .len = part->len}))
            return false;
    }
    return true;
}

/* ---- steps ---- */

/* An activity of a host may extend over many steps. */
static void add_to_host_steps(struct parts *p, const struct marey__work *work)
{
    const struct marey__step *steps = p->set->steps;
    size_t from;
    MAREY__BISECT(from, 0, p->n, steps[from].end_ns <= work->begin_ns);
    for (; from < p->n && steps[from].begin_ns < work->end_ns; from++)
        add_work(&p->parts[from], work);
}

static bool break_down_steps(struct marey__device_rows *rows, struct parts *p)
{
    for (size_t i = 0; i < p->set->n_steps; i++) {
        struct part *part = add_part(p, &p->steps[i], 1);
        if (part == NULL)
            return false;
        part->number = p->set->steps[i].number;
    }
    for (size_t i = 0; i < p->device->n_work; i++) {
        const struct marey__work *work = &p->device->work[i];
        if (p->device->device < 0) {
            add_to_host_steps(p, work);
            continue;
        }
        const uint32_t step = marey__step_of(p->set, work);
        if (step != MAREY__NO_INDEX)
            add_work(&p->parts[step], work);
    }
    return put_rows(rows, p, MAREY__WINDOW_STEPS, true);
}

/* ---- streams ---- */

MAREY__ORDER_RUNS(lane_is_before, uint32_t, MAREY__UP_BY(*x, *y))

/*
 * Create a part for each lane with work on the device, and map lanes to parts. `lanes` needs space for each piece of
 * work.
 */
static bool add_lanes(struct parts *p, uint32_t *lanes, uint32_t *part_of_lane)
{
    const struct marey_process *process = p->set->process;
    for (size_t i = 0; i < p->device->n_work; i++)
        lanes[i] = p->device->work[i].lane;
    if (!marey__sort_runs(lanes, p->device->n_work, sizeof *lanes, lane_is_before))
        return false;
    for (size_t i = 0; i < p->device->n_work; i++) {
        if ((i > 0 && lanes[i] == lanes[i - 1]) || lanes[i] >= process->n_lanes)
            continue;
        const struct marey_lane_info *lane =
            marey_recording_lane(p->set->recording, process->index, lanes[i]);
        part_of_lane[lanes[i]] = (uint32_t)p->n;
        struct part *part = add_part(p, p->windows, p->n_windows);
        if (part == NULL)
            return false;
        part->lane = lanes[i];
        part->number = lane->kind == MAREY_LANE_GPU ? lane->stream : (uint64_t)lane->tid;
        part->text = lane->name;
        part->len = strlen(lane->name);
    }
    return true;
}

/* `part_of_lane` need not be cleared between devices: add_lanes sets it for each lane that is looked up later. */
static bool break_down_streams(struct marey__device_rows *rows, struct parts *p,
                               enum marey__window window, uint32_t *part_of_lane)
{
    uint32_t *const lanes MAREY__FREED = marey__calloc(p->device->n_work + 1, sizeof *lanes);
    if (lanes == NULL || !add_lanes(p, lanes, part_of_lane))
        return false;
    for (size_t i = 0; i < p->device->n_work; i++)
        if (p->device->work[i].lane < p->set->process->n_lanes)
            add_work(&p->parts[part_of_lane[p->device->work[i].lane]], &p->device->work[i]);
    return put_rows(rows, p, window, false);
}

/* ---- process groups ---- */

/* The part of this communication's group; SIZE_MAX on out of memory. */
static size_t group_part(struct parts *p, struct marey__names *names, const struct marey__work *work)
{
    static const char unknown[] = "(unknown)";
    const struct marey__work_set *set = p->set;
    const uint32_t group =
        work->collective != MAREY__NO_INDEX ? set->collectives[work->collective].what.group : 0;
    const struct marey_site_info *site = marey__work_site(set, group);
    const bool is_known = group != 0 && site->name_len != 0;
    const uint32_t number = marey__names_number(names, is_known ? site->name : unknown,
                                                is_known ? site->name_len : strlen(unknown));
    if (number == MAREY__NO_NAME)
        return SIZE_MAX;
    if (number == p->n && p->n < MAX_PARTS) {
        struct part *part = add_part(p, p->windows, p->n_windows);
        if (part == NULL)
            return SIZE_MAX;
        part->text = names->names[number].text;
        part->len = names->names[number].len;
    }
    return number;
}

static bool break_down_groups(struct marey__device_rows *rows, struct parts *p,
                              enum marey__window window)
{
    struct marey__names names MAREY__FINALLY(marey__names_fini) = {0};
    const struct marey__work *const work = p->device->work;
    for (size_t i = 0; i < p->device->n_work; i++)
        if ((work[i].class & MAREY__COMMUNICATES) != 0 && group_part(p, &names, &work[i]) == SIZE_MAX)
            return false;
    for (size_t i = 0; i < p->device->n_work; i++) {
        const bool is_shared = (work[i].class & MAREY__COMMUNICATES) == 0;
        const size_t first = is_shared ? 0 : group_part(p, &names, &work[i]),
                     end = is_shared ? p->n : first + 1;
        if (first == SIZE_MAX)
            return false;
        for (size_t part = first; part < end && part < p->n; part++)
            add_work(&p->parts[part], &work[i]);
    }
    return put_rows(rows, p, window, false);
}

/* ---- ranges ---- */

struct touched {
    uint32_t name, range;
};

/* The ranges of a process by name, and the touched ones: those with work on the current device. */
struct range_names {
    struct marey__names names;
    uint32_t *name_of; /* by range; MAREY__NO_NAME: a call of a runtime */
    uint64_t *end_ns; /* by range: its end, or that of the last work launched in it; 0: it launched none */
    uint32_t *part_of; /* by name; MAREY__NO_INDEX: no range is touched */
    struct touched *touched;
    size_t n_touched, touched_cap;
    struct marey__interval *windows; /* of the touched ranges, united per name */
    size_t windows_cap;
};

static void range_names_fini(struct range_names *r)
{
    marey__names_fini(&r->names);
    MAREY__FREE_ALL(r->name_of, r->end_ns, r->part_of, r->touched, r->windows);
}

static bool range_names_init(struct range_names *r, const struct marey__work_set *set)
{
    r->name_of = marey__calloc(set->n_ranges + 1, sizeof *r->name_of);
    r->end_ns = marey__calloc(set->n_ranges + 1, sizeof *r->end_ns);
    if (r->name_of == NULL || r->end_ns == NULL)
        return false;
    for (size_t i = 0; i < set->n_ranges; i++) {
        const struct marey_site_info *site = marey__work_site(set, set->ranges[i].site);
        r->name_of[i] = MAREY__NO_NAME;
        if (marey__is_runtime_call(site))
            continue;
        r->name_of[i] = marey__names_number(&r->names, site->name, site->name_len);
        if (r->name_of[i] == MAREY__NO_NAME)
            return false;
    }
    r->part_of = marey__alloc((r->names.n + 1) * sizeof *r->part_of);
    if (r->part_of != NULL)
        memset(r->part_of, 0xff, (r->names.n + 1) * sizeof *r->part_of);
    return r->part_of != NULL;
}

/* Extend the window of the range to `end_ns` at least. */
static bool touch(struct range_names *r, uint32_t range, uint64_t end_ns)
{
    if (r->name_of[range] == MAREY__NO_NAME)
        return true;
    if (r->end_ns[range] == 0 && !MAREY__PUSH(r->touched, r->n_touched, r->touched_cap,
                                              (struct touched){r->name_of[range], range}))
        return false;
    r->end_ns[range] = MAREY__MAX(r->end_ns[range], end_ns);
    return true;
}

/*
 * Find the end of each range's window on this device. A host has all its ranges, a device those that launched work on
 * it.
 */
static bool find_ends(struct range_names *r, const struct parts *p)
{
    const struct marey__work_set *set = p->set;
    for (size_t i = 0; p->device->device < 0 && i < set->n_ranges; i++)
        if (!touch(r, (uint32_t)i, set->ranges[i].end_ns))
            return false;
    for (size_t i = 0; i < p->device->n_work; i++) {
        const struct marey__work *work = &p->device->work[i];
        if (work->launch == MAREY__NO_INDEX || work->class == MAREY__IGNORED)
            continue;
        for (uint32_t at = set->launches[work->launch].range; at != MAREY__NO_INDEX;
             at = set->ranges[at].parent)
            if (!touch(r, at, MAREY__MAX(set->ranges[at].end_ns, work->end_ns)))
                return false;
    }
    return true;
}

MAREY__ORDER_RUNS(touched_is_before, struct touched, MAREY__UP(name) MAREY__UP(range))

/* Create a part per name, with its windows united. */
static bool make_windows(struct range_names *r, struct parts *p)
{
    if (r->n_touched == 0)
        return true;
    if (!marey__grow(&r->windows, &r->windows_cap, r->n_touched, sizeof *r->windows) ||
        !marey__sort_runs(r->touched, r->n_touched, sizeof *r->touched, touched_is_before))
        return false;
    for (size_t i = 0; i < r->n_touched; i++) {
        const uint32_t range = r->touched[i].range;
        const uint64_t begin_ns = p->set->ranges[range].begin_ns;
        r->windows[i] = (struct marey__interval){begin_ns, MAREY__MAX(r->end_ns[range], begin_ns)};
    }
    for (size_t i = 0, n; i < r->n_touched; i += n) {
        const uint32_t name = r->touched[i].name;
        for (n = 1; i + n < r->n_touched && r->touched[i + n].name == name;)
            n++;
        size_t n_windows = n;
        r->part_of[name] = (uint32_t)p->n;
        struct part *part = NULL;
        if (!marey__intervals_unite(r->windows + i, &n_windows) ||
            (part = add_part(p, r->windows + i, n_windows)) == NULL)
            return false;
        part->text = r->names.names[name].text;
        part->len = r->names.names[name].len;
    }
    return true;
}

static void forget_touched(struct range_names *r)
{
    for (size_t i = 0; i < r->n_touched; i++) {
        r->end_ns[r->touched[i].range] = 0;
        r->part_of[r->touched[i].name] = MAREY__NO_INDEX;
    }
    r->n_touched = 0;
}

/* Add work to each name around its launch, once. */
static void add_launched(struct parts *p, const struct range_names *r)
{
    const struct marey__work_set *set = p->set;
    for (size_t i = 0; i < p->device->n_work; i++) {
        const struct marey__work *work = &p->device->work[i];
        if (work->launch == MAREY__NO_INDEX || work->class == MAREY__IGNORED)
            continue;
        for (uint32_t at = set->launches[work->launch].range; at != MAREY__NO_INDEX;
             at = set->ranges[at].parent) {
            if (r->name_of[at] == MAREY__NO_NAME)
                continue;
            struct part *part = &p->parts[r->part_of[r->name_of[at]]];
            if (part->last_work != i + 1)
                add_work(part, work);
            part->last_work = i + 1;
        }
    }
}

/* The minimum duration for a name to be among the MAX_PARTS longest. */
static uint64_t least_span(const struct parts *p)
{
    if (p->n <= MAX_PARTS)
        return 0;
    uint64_t low = 0, high = UINT64_MAX;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        size_t n_longer = 0;
        for (size_t i = 0; i < p->n; i++)
            n_longer += p->parts[i].span_ns > middle;
        if (n_longer > MAX_PARTS)
            low = middle + 1;
        else
            high = middle;
    }
    return low + 1;
}

static void add_host_time(struct parts *p)
{
    const uint64_t least_ns = least_span(p);
    for (size_t name = 0; name < p->n; name++) {
        struct part *part = &p->parts[name];
        if (part->span_ns < least_ns || part->sweep.n_windows == 0)
            continue;
        const uint64_t end_ns = part->sweep.windows[part->sweep.n_windows - 1].end_ns;
        for (size_t i = 0; i < p->device->n_work && p->device->work[i].begin_ns < end_ns; i++)
            if (p->device->work[i].end_ns > part->sweep.windows[0].begin_ns)
                add_work(part, &p->device->work[i]);
    }
}

/* The ranges with the most work first. */
MAREY__ORDER_RUNS(row_is_before, struct marey__device_row,
                  MAREY__UP_BY(y->span_ns - y->atoms.ns[0], x->span_ns - x->atoms.ns[0]))

static bool break_down_ranges(struct marey__device_rows *rows, struct parts *p, struct range_names *r)
{
    const size_t n_before = rows->n;
    bool done = find_ends(r, p) && make_windows(r, p);
    if (done && p->device->device < 0)
        add_host_time(p);
    else if (done)
        add_launched(p, r);
    done = done && put_rows(rows, p, MAREY__WINDOW_SPAN, false);
    forget_touched(r);
    return done && (rows->n == n_before || marey__sort_runs(rows->rows + n_before, rows->n - n_before,
                                                            sizeof *rows->rows, row_is_before));
}

/* ---- all rows ---- */

bool marey__by_rows_make(struct marey__device_rows *rows, const struct marey__work_set *set,
                         const struct marey__device_windows *windows, enum marey__by by,
                         enum marey__window window)
{
    uint32_t *const part_of_lane MAREY__FREED =
        marey__calloc((size_t)set->process->n_lanes + 1, sizeof *part_of_lane);
    struct range_names ranges MAREY__FINALLY(range_names_fini) = {0};
    bool done = part_of_lane != NULL && (by != MAREY__BY_RANGE || range_names_init(&ranges, set));
    for (size_t d = 0; done && d < set->n_devices; d++) {
        const bool is_span = window == MAREY__WINDOW_SPAN;
        struct parts p = {.set = set,
                          .device = &set->devices[d],
                          .windows = is_span ? &windows->spans[d] : windows->united + d * set->n_steps,
                          .n_windows = is_span ? 1 : windows->n_united[d],
                          .steps = windows->steps + d * set->n_steps};
        if (by == MAREY__BY_STEP)
            done = break_down_steps(rows, &p);
        else if (by == MAREY__BY_RANGE)
            done = break_down_ranges(rows, &p, &ranges);
        else if (by == MAREY__BY_STREAM)
            done = break_down_streams(rows, &p, window, part_of_lane);
        else if (by == MAREY__BY_GROUP)
            done = break_down_groups(rows, &p, window);
        marey__free(p.parts);
    }
    return done;
}
