/*
 * Reads the activity of a process's devices from its log, with launches and steps.
 *
 *   records GPU, on lanes of streams         work, with the record COMMUNICATION after it
 *   records LAUNCH, on lanes of threads      a launch by the open range, with which it ends
 *   records COMMUNICATION, on threads        a collective of the open range
 *   records ITERATION                        steps
 *
 * Other ranges of a thread are only on its stack. work_link.c finally links launches and their work, which come in
 * any order.
 */
#include "analyze/device/internal.h"

/* Search depth for a launch's operator and collective; nesting depth of kept ranges. */
enum { MAX_AROUND = 256, MAX_KEPT = 256 };

/* Work of one stream, in the order of the log. */
struct stream {
    struct marey__work *work;
    size_t n, cap;
    bool is_last_kept; /* the latest work is kept, so the records after it count */
};

struct reader {
    struct marey__work_set *set;
    struct marey__progress progress;
    struct stream *streams; /* by lane */
    uint8_t *is_runtime;    /* by site: 0 unchecked, 1 no, 2 yes */
    uint32_t *site_shapes;  /* by site, if facts are wanted: see marey__work_facts_take */
    bool wants_ranges, wants_facts;
};

/* ---- parts of the set ---- */

struct marey__device_work *marey__work_set_device(struct marey__work_set *set, int32_t device)
{
    const size_t n = set->n_devices;
    if (n > 0 && set->devices[n - 1].device == device)
        return &set->devices[n - 1];
    if (!marey__grow(&set->devices, &set->devices_cap, n + 1, sizeof *set->devices))
        return NULL;
    set->devices[set->n_devices++] = (struct marey__device_work){.device = device};
    return &set->devices[n];
}

uint32_t marey__work_set_add_collective(struct marey__work_set *set,
                                        const struct marey__collective_call *call)
{
    return set->n_collectives != MAREY__NO_INDEX &&
                   MAREY__PUSH(set->collectives, set->n_collectives, set->collectives_cap, *call)
               ? (uint32_t)(set->n_collectives - 1)
               : MAREY__NO_INDEX;
}

uint32_t marey__work_set_communicate(struct marey__work_set *set, uint32_t said,
                                     const uint64_t *words, uint64_t begin_ns, uint32_t site,
                                     bool is_on_host)
{
    struct marey__collective_call call = {
        .begin_ns = begin_ns, .end_ns = begin_ns, .site = site, .is_on_host = is_on_host};
    marey_record_communication(words, &call.what);
    if (said == MAREY__NO_INDEX)
        return marey__work_set_add_collective(set, &call);
    set->collectives[said] = call;
    return said;
}

uint32_t marey__step_at(const struct marey__work_set *set, uint64_t ns)
{
    size_t n; /* begun so far */
    MAREY__BISECT(n, 0, set->n_steps, set->steps[n].begin_ns <= ns);
    return n > 0 && ns < set->steps[n - 1].end_ns ? (uint32_t)(n - 1) : MAREY__NO_INDEX;
}

bool marey__is_runtime_call(const struct marey_site_info *site)
{
    const size_t len = strlen(site->category);
    return marey__pattern_fits("runtime", site->category, len) ||
           marey__pattern_fits("driver", site->category, len);
}

void marey__work_set_drop_work(struct marey__work_set *set)
{
    for (size_t d = 0; d < set->n_devices; d++) {
        marey__free(set->devices[d].work);
        set->devices[d].work = NULL;
        set->devices[d].n_work = set->devices[d].work_cap = 0;
    }
    MAREY__FREE_ALL(set->launches, set->ranges, set->facts);
    set->launches = NULL;
    set->ranges = NULL;
    set->facts = NULL;
    set->n_launches = set->launches_cap = set->n_ranges = set->ranges_cap = 0;
    set->n_facts = set->facts_cap = 0;
}

void marey__work_set_fini(struct marey__work_set *set)
{
    marey__work_set_drop_work(set);
    MAREY__FREE_ALL(set->devices, set->collectives, set->steps);
    marey__names_fini(&set->shapes);
    marey__arena_fini(&set->shape_texts);
    marey__free(set->matches);
    *set = (struct marey__work_set){0};
}

/* ---- work of a stream ---- */

/* Rounded like a begin at that time, so that work which is adjacent in ticks is adjacent in nanoseconds. */
static uint64_t end_of_work(const struct marey_batch *batch, uint64_t word, uint64_t duration)
{
    __extension__ typedef unsigned __int128 u128;
    const u128 ticks = (u128)marey_word_ticks(word) + duration;
    return batch->base_ns + (uint64_t)((ticks * batch->ns_mult) >> 40);
}

static bool take_work(struct reader *r, const struct marey_batch *batch, const uint64_t *words,
                      uint64_t ns)
{
    struct stream *stream = &r->streams[batch->lane->lane];
    const uint32_t kind = marey_record_work_kind(words[1]);
    stream->is_last_kept = false;
    if (!marey__is_work(kind)) {
        r->set->n_ignored_kinds++;
        return true;
    }
    const int64_t duration = (int64_t)words[2];
    const uint64_t end_ns = duration > 0 ? end_of_work(batch, words[0], words[2]) : ns;
    if (end_ns <= ns && !(r->wants_facts && duration >= 0)) {
        r->set->n_negative += duration < 0;
        return true;
    }
    if (MAREY_UNLIKELY(stream->n == stream->cap) &&
        !marey__grow(&stream->work, &stream->cap, stream->n + 1, sizeof *stream->work))
        return false;
    stream->work[stream->n++] = (struct marey__work){.begin_ns = ns,
                                                     .end_ns = end_ns,
                                                     .correlation = words[3],
                                                     .site = marey_record_site(words[1]),
                                                     .lane = batch->lane->lane,
                                                     .launch = MAREY__NO_INDEX,
                                                     .collective = MAREY__NO_INDEX,
                                                     .facts = MAREY__NO_INDEX,
                                                     .kind = (uint8_t)kind};
    stream->is_last_kept = true;
    return !r->wants_facts ||
           marey__work_facts_take(r->set, &stream->work[stream->n - 1], words, r->site_shapes);
}

static bool take_stream_record(struct reader *r, const struct marey_batch *batch,
                               const uint64_t *words, uint64_t ns)
{
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_GPU)
        return take_work(r, batch, words, ns);
    const struct stream *stream = &r->streams[batch->lane->lane];
    if (!stream->is_last_kept)
        return true;
    struct marey__work *work = &stream->work[stream->n - 1];
    if (type == MAREY_RECORD_ARGUMENTS && r->wants_facts)
        return marey__work_facts_arguments(r->set, work, words);
    if (type != MAREY_RECORD_COMMUNICATION)
        return true;
    work->collective = marey__work_set_communicate(r->set, work->collective, words, work->begin_ns,
                                                   work->site, false);
    if (work->collective == MAREY__NO_INDEX)
        return false;
    r->set->collectives[work->collective].end_ns = work->end_ns;
    return true;
}

/* ---- calls of a thread ---- */

static bool is_runtime(struct reader *r, uint32_t site)
{
    site = site <= r->set->process->n_sites ? site : 0;
    if (r->is_runtime[site] == 0) {
        const struct marey_site_info *info = marey__work_site(r->set, site);
        r->is_runtime[site] = marey__is_runtime_call(info) ? 2 : 1;
    }
    return r->is_runtime[site] == 2;
}

uint32_t marey__work_set_add_range(struct marey__work_set *set, const struct marey__frame *call,
                                   uint32_t parent)
{
    const struct marey__host_range range = {call->start_ns, call->start_ns, call->site, parent};
    return set->n_ranges != MAREY__NO_INDEX &&
                   MAREY__PUSH(set->ranges, set->n_ranges, set->ranges_cap, range)
               ? (uint32_t)set->n_ranges
               : 0;
}

/* Keep the open ranges not kept yet. `*range` is the innermost's index. */
static bool keep_ranges(struct reader *r, struct marey__lane_stack *lane, uint32_t *range)
{
    struct marey__work_set *set = r->set;
    const size_t n_open = MAREY__MIN(lane->n_open, (size_t)MAX_KEPT);
    size_t first = n_open;
    while (first > 0 && lane->open[first - 1].range == 0)
        first--;
    uint32_t parent = first > 0 ? lane->open[first - 1].range - 1 : MAREY__NO_INDEX;
    for (size_t i = first; i < n_open; i++) {
        lane->open[i].range = marey__work_set_add_range(set, &lane->open[i], parent);
        if (lane->open[i].range == 0)
            return false;
        parent = lane->open[i].range - 1;
    }
    *range = parent;
    return true;
}

/* Find the operator and the collective around a launch. */
static void look_around(struct reader *r, const struct marey__lane_stack *lane,
                        struct marey__launch_call *launch)
{
    bool has_operator = false;
    const size_t stop = lane->n_open > MAX_AROUND ? lane->n_open - MAX_AROUND : 0;
    for (size_t i = lane->n_open; i > stop; i--) {
        const struct marey__frame *call = &lane->open[i - 1];
        if (!has_operator && !is_runtime(r, call->site)) {
            launch->around = call->site;
            has_operator = true;
        }
        if (launch->collective == MAREY__NO_INDEX)
            launch->collective = call->collective - 1;
        if (has_operator && launch->collective != MAREY__NO_INDEX)
            return;
    }
}

static bool take_launch(struct reader *r, struct marey__lane_stack *lane, uint64_t correlation,
                        uint64_t ns)
{
    struct marey__work_set *set = r->set;
    struct marey__launch_call launch = {.begin_ns = ns,
                                        .end_ns = ns,
                                        .correlation = correlation,
                                        .lane = lane->info->lane,
                                        .range = MAREY__NO_INDEX,
                                        .collective = MAREY__NO_INDEX,
                                        .chained = MAREY__NO_INDEX};
    if (set->n_launches == MAREY__NO_INDEX ||
        !marey__grow(&set->launches, &set->launches_cap, set->n_launches + 1, sizeof *set->launches) ||
        (r->wants_ranges && !keep_ranges(r, lane, &launch.range)))
        return false;
    if (lane->n_open > 0) {
        struct marey__frame *call = marey__stack_top(lane);
        launch.begin_ns = call->start_ns;
        launch.site = call->site;
        launch.chained = call->launch - 1;
        call->launch = (uint32_t)set->n_launches + 1;
        look_around(r, lane, &launch);
    }
    set->launches[set->n_launches++] = launch;
    return true;
}

/* Ignored outside of all ranges. */
static bool take_host_communication(struct reader *r, const struct marey__lane_stack *lane,
                                    const uint64_t *words)
{
    if (lane->n_open == 0)
        return true;
    struct marey__frame *call = marey__stack_top(lane);
    call->collective = marey__work_set_communicate(r->set, call->collective - 1, words,
                                                   call->start_ns, call->site, true) +
                       1;
    return call->collective != 0;
}

/* At the end of a range: set the end of its launches, its collective and its kept range. */
static bool end_call(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *call,
                     uint64_t end_ns, enum marey__ending how)
{
    struct reader *r = ctx;
    (void)lane, (void)how;
    for (uint32_t i = call->launch - 1; i != MAREY__NO_INDEX; i = r->set->launches[i].chained)
        r->set->launches[i].end_ns = end_ns;
    if (call->collective != 0)
        r->set->collectives[call->collective - 1].end_ns = end_ns;
    if (call->range != 0)
        r->set->ranges[call->range - 1].end_ns = end_ns;
    return true;
}

/* ---- steps ---- */

static bool take_progress(struct reader *r, uint32_t lane, const uint64_t *words, uint64_t ns)
{
    struct marey__work_set *set = r->set;
    struct marey__span span;
    if (!marey__progress_take(&r->progress, words, ns, &span) || span.kind != MAREY__SPAN_ITERATION)
        return true;
    set->step_lane = lane;
    return set->n_steps != MAREY__NO_INDEX &&
           MAREY__PUSH(set->steps, set->n_steps, set->steps_cap,
                       (struct marey__step){span.begin_ns, span.end_ns, span.number});
}

MAREY__ORDER_RUNS(step_is_before, struct marey__step, MAREY__UP(begin_ns))

/* They are ordered already unless the log was too wide to be read in order. */
static bool order_steps(struct marey__work_set *set)
{
    if (!marey__sort_runs(set->steps, set->n_steps, sizeof *set->steps, step_is_before))
        return false;
    for (size_t i = 1; i < set->n_steps; i++) {
        struct marey__step *step = &set->steps[i];
        step->begin_ns = MAREY__MAX(step->begin_ns, set->steps[i - 1].end_ns);
        step->end_ns = MAREY__MAX(step->end_ns, step->begin_ns);
    }
    return true;
}

/* ---- one process ---- */

static bool take_record(void *ctx, struct marey__lane_stack *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct reader *r = ctx;
    const uint32_t type = marey_record_type_of(words[0]);
    if (marey__is_progress(type))
        return take_progress(r, batch->lane->lane, words, ns);
    if (batch->lane->kind == MAREY_LANE_GPU)
        return take_stream_record(r, batch, words, ns);
    if (type == MAREY_RECORD_LAUNCH)
        return marey_record_launches_memory(words) || take_launch(r, lane, words[1], ns);
    if (type == MAREY_RECORD_COMMUNICATION)
        return take_host_communication(r, lane, words);
    return true;
}

struct place {
    int32_t device;
    uint32_t lane;
};

MAREY__ORDER_RUNS(place_is_before, struct place, MAREY__UP(device) MAREY__UP(lane))

/* The streams with work, by device; NULL on out of memory. */
static struct place *order_streams(const struct reader *r, size_t *n)
{
    const struct marey__work_set *set = r->set;
    struct place *places = marey__calloc((size_t)set->process->n_lanes + 1, sizeof *places);
    *n = 0;
    for (uint32_t lane = 0; places != NULL && lane < set->process->n_lanes; lane++)
        if (r->streams[lane].n != 0)
            places[(*n)++] = (struct place){
                marey_recording_lane(set->recording, set->process->index, lane)->device, lane};
    if (places != NULL && !marey__sort_runs(places, *n, sizeof *places, place_is_before)) {
        marey__free(places);
        places = NULL;
    }
    return places;
}

/* Append the streams of each device. */
static bool gather_streams(struct reader *r)
{
    size_t n;
    struct place *const places = order_streams(r, &n);
    bool done = places != NULL;
    for (size_t i = 0; done && i < n; i++) {
        struct stream *stream = &r->streams[places[i].lane];
        struct marey__device_work *device = marey__work_set_device(r->set, places[i].device);
        done = device != NULL && marey__grow(&device->work, &device->work_cap,
                                             device->n_work + stream->n, sizeof *device->work);
        if (!done)
            break;
        memcpy(device->work + device->n_work, stream->work, stream->n * sizeof *stream->work);
        device->n_work += stream->n;
        marey__free(stream->work);
        *stream = (struct stream){0};
    }
    marey__free(places);
    return done;
}

static marey_status read_log(struct reader *r)
{
    struct marey__work_set *set = r->set;
    const size_t n_lanes = set->process->n_lanes;
    r->streams = marey__calloc(n_lanes + 1, sizeof *r->streams);
    r->is_runtime = marey__calloc((size_t)set->process->n_sites + 1, 1);
    if (r->wants_facts)
        r->site_shapes = marey__calloc((size_t)set->process->n_sites + 1, sizeof *r->site_shapes);
    marey__progress_init(&r->progress, set->process, set->process->first_ns);
    static const struct marey__lane_visitor visitor = {.end = end_call, .record = take_record};
    struct marey__range_walk walk = {
        .recording = set->recording, .process = set->process, .visitor = &visitor, .ctx = r};
    marey_status status = MAREY_OK;
    if (r->streams == NULL || r->is_runtime == NULL || (r->wants_facts && r->site_shapes == NULL))
        status = marey__no_memory();
    if (status == MAREY_OK)
        status = marey__range_walk(&walk);
    /* A step that began before the first event begins with the log; rounding may put an event after the log's end. */
    set->first_ns = MAREY__MIN(walk.first_ns, set->process->first_ns);
    set->last_ns = MAREY__MAX(walk.last_ns, set->process->last_ns);
    set->n_too_deep = walk.replay.n_too_deep;
    if (status == MAREY_OK && (!gather_streams(r) || !order_steps(set)))
        status = marey__no_memory();
    for (size_t i = 0; r->streams != NULL && i < n_lanes; i++)
        marey__free(r->streams[i].work);
    MAREY__FREE_ALL(r->streams, r->is_runtime, r->site_shapes);
    return status;
}

marey_status marey__work_set_read(struct marey__work_set *set, marey_recording *recording,
                                  size_t process, const struct marey__work_options *options)
{
    *set = (struct marey__work_set){.recording = recording,
                                    .process = marey_recording_process(recording, process)};
    struct reader r = {
        .set = set, .wants_ranges = options->wants_ranges, .wants_facts = options->wants_facts};
    MAREY_TRY(read_log(&r));
    set->matches = marey__calloc(options->rules->n, sizeof *set->matches);
    struct marey__classifier classifier MAREY__FINALLY(marey__classifier_fini) = {0};
    MAREY__TRY_MEMORY(set->matches != NULL &&
                      marey__classifier_init(&classifier, options->rules, recording, set->process));
    if (set->n_devices == 0)
        MAREY_TRY(marey__work_host_read(set, options, &classifier));
    MAREY__TRY_MEMORY(marey__work_set_link(set) && marey__work_set_classify(set, &classifier));
    return MAREY_OK;
}
