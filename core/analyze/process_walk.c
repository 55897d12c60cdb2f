/* One process: its names, its lanes, and the records that are no ranges of a stack. */
#include <string.h>

#include "analyze/analyze_internal.h"
#include "read/read_internal.h"

static kymo_status no_memory(const struct kymo__process_walk *walk)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to summarise %s", walk->info->log_path);
}

static bool number_sites(struct kymo__process_walk *walk)
{
    static const char nameless[] = "(unnamed)", other[] = KYMO__OTHER_RANGES;
    const size_t process = walk->info->index;
    walk->site_names[0] = kymo__names_number(&walk->names, nameless, strlen(nameless));
    walk->other = kymo__names_number(&walk->names, other, strlen(other));
    if (walk->site_names[0] == KYMO__NO_NAME || walk->other == KYMO__NO_NAME)
        return false;
    for (uint32_t site = 1; site <= walk->info->n_sites; site++) {
        const struct kymo_site_info *info = kymo_recording_site(walk->recording, process, site);
        walk->site_names[site] = info->name_len == 0
                                     ? walk->site_names[0]
                                     : kymo__names_number(&walk->names, info->name, info->name_len);
        if (walk->site_names[site] == KYMO__NO_NAME)
            return false;
    }
    return true;
}

kymo_status kymo__process_walk_init(struct kymo__process_walk *walk, kymo_recording *recording,
                                    size_t process)
{
    *walk = (struct kymo__process_walk){
        .recording = recording,
        .info = kymo_recording_process(recording, process),
    };
    walk->site_names = kymo__calloc((size_t)walk->info->n_sites + 1, sizeof *walk->site_names);
    walk->lanes = kymo__calloc((size_t)walk->info->n_lanes + 1, sizeof *walk->lanes);
    if (walk->site_names == NULL || walk->lanes == NULL || !number_sites(walk))
        return no_memory(walk);
    walk->ranges = kymo__calloc(walk->names.n, sizeof *walk->ranges);
    walk->marks = kymo__calloc(walk->names.n, sizeof *walk->marks);
    if (walk->ranges == NULL || walk->marks == NULL || !kymo__iteration_walk_init(walk))
        return no_memory(walk);
    kymo__gpu_walk_init(walk);
    return KYMO_OK;
}

static void free_sketches(struct kymo__sketch *sketches, size_t n)
{
    for (size_t i = 0; sketches != NULL && i < n; i++)
        kymo__sketch_fini(&sketches[i]);
    kymo__free(sketches);
}

static void free_lane(struct kymo__lane_walk *lane)
{
    if (lane == NULL)
        return;
    kymo__tree_fini(&lane->tree);
    kymo__free(lane->frames);
    kymo__free(lane->gpu);
    kymo__free(lane);
}

void kymo__process_walk_fini(struct kymo__process_walk *walk)
{
    for (size_t i = 0; walk->lanes != NULL && i < walk->info->n_lanes; i++)
        free_lane(walk->lanes[i]);
    kymo__free(walk->lanes);
    free_sketches(walk->ranges, walk->names.n);
    free_sketches(walk->async, walk->names.n);
    kymo__free(walk->counters);
    kymo__free(walk->marks);
    kymo__free(walk->site_names);
    kymo__async_match_fini(&walk->pending);
    kymo__gpu_walk_fini(&walk->gpu);
    kymo__iteration_walk_fini(&walk->iterations);
    kymo__iteration_stats_fini(&walk->iteration_stats, walk->names.n);
    kymo__names_fini(&walk->names);
}

/* ---- records ---- */

static kymo_status take_counter(struct kymo__process_walk *walk, uint32_t name, double value,
                                uint64_t ns)
{
    if (walk->counters == NULL) {
        walk->counters = kymo__calloc(walk->names.n, sizeof *walk->counters);
        if (walk->counters == NULL)
            return no_memory(walk);
    }
    struct kymo__counter *counter = &walk->counters[name];
    const bool is_first = counter->count++ == 0;
    counter->min = is_first || value < counter->min ? value : counter->min;
    counter->max = is_first || value > counter->max ? value : counter->max;
    counter->sum += value;
    if (is_first || ns >= counter->last_ns) {
        counter->last = value;
        counter->last_ns = ns;
    }
    return KYMO_OK;
}

static kymo_status take_async(struct kymo__process_walk *walk, const struct kymo__async_half *half)
{
    struct kymo__async_half other;
    bool failed;
    if (!kymo__async_match(&walk->pending, half, &other, &failed))
        return failed ? no_memory(walk) : KYMO_OK;
    if (walk->async == NULL) {
        walk->async = kymo__calloc(walk->names.n, sizeof *walk->async);
        if (walk->async == NULL)
            return no_memory(walk);
    }
    const struct kymo__async_half *begin = half->is_begin ? half : &other,
                                  *end = half->is_begin ? &other : half;
    const uint64_t duration = end->ns > begin->ns ? end->ns - begin->ns : 0;
    return kymo__sketch_add(&walk->async[begin->name], duration) ? KYMO_OK : no_memory(walk);
}

kymo_status kymo__process_walk_record(struct kymo__process_walk *walk, uint32_t lane,
                                      const uint64_t *words, uint64_t ns)
{
    const uint32_t type = kymo_record_type_of(words[0]);
    if (type == KYMO_RECORD_MARK) {
        walk->marks[kymo__name_of_site(walk, kymo_record_site(words[1]))]++;
    } else if (type == KYMO_RECORD_COUNTER) {
        double value;
        memcpy(&value, &words[2], sizeof value);
        return take_counter(walk, kymo__name_of_site(walk, kymo_record_site(words[1])), value, ns);
    } else if (type == KYMO_RECORD_ASYNC_BEGIN || type == KYMO_RECORD_ASYNC_END) {
        const struct kymo__async_half half = {
            .handle = words[2],
            .ns = ns,
            .name = kymo__name_of_site(walk, kymo_record_site(words[1])),
            .lane = lane,
            .is_begin = type == KYMO_RECORD_ASYNC_BEGIN,
        };
        return take_async(walk, &half);
    }
    return KYMO_OK; /* types of later versions */
}

/* ---- the visit ---- */

static struct kymo__lane_walk *make_lane(const struct kymo_lane_info *info)
{
    struct kymo__lane_walk *lane = kymo__calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->info = info;
    if (!kymo__tree_init(&lane->tree) ||
        !kymo__grow(&lane->frames, &lane->frames_cap, 1, sizeof *lane->frames)) {
        free_lane(lane);
        return NULL;
    }
    lane->frames[0] = (struct kymo__frame){.name = KYMO__NO_NAME};
    lane->n_frames = 1;
    return lane;
}

static void count_words(struct kymo__process_walk *walk, size_t n)
{
    walk->n_words_done += n;
    if (walk->n_words_done <= 1 << 20)
        return;
    if (walk->progress != NULL)
        __atomic_fetch_add(walk->progress, walk->n_words_done, __ATOMIC_RELAXED);
    walk->n_words_done = 0;
    if (walk->tell != NULL)
        walk->tell(walk->tell_ctx);
}

static kymo_status visit_batch(void *ctx, const struct kymo_batch *batch)
{
    struct kymo__process_walk *walk = ctx;
    struct kymo__lane_walk **lane = &walk->lanes[batch->lane->lane];
    count_words(walk, batch->n);
    if (batch->lane->kind == KYMO_LANE_GPU) {
        const struct kymo__walk_tap *tap = walk->tap;
        if (tap != NULL && tap->gpu != NULL && !tap->gpu(walk->tap_ctx, batch))
            return no_memory(walk);
        return kymo__gpu_walk_batch(walk, batch);
    }
    if (batch->lane->kind != KYMO_LANE_THREAD)
        return KYMO_OK; /* of a later version */
    if (*lane == NULL && (*lane = make_lane(batch->lane)) == NULL)
        return no_memory(walk);
    if (!kymo__iteration_walk_batch(walk, *lane, batch))
        return no_memory(walk);
    return kymo__lane_walk_batch(walk, *lane, batch);
}

static bool lane_is_before(const void *a, const void *b)
{
    const struct kymo_lane_info *x = (*(struct kymo__lane_walk *const *)a)->info,
                                *y = (*(struct kymo__lane_walk *const *)b)->info;
    return x->tid != y->tid ? x->tid < y->tid : x->lane < y->lane;
}

/* In an imported trace, lanes with one tid are of one thread; in a recording, a tid may have been given again. */
static kymo_status mark_lanes_beside(struct kymo__process_walk *walk)
{
    if (walk->info->source[0] == '\0')
        return KYMO_OK;
    struct kymo__lane_walk **lanes = kymo__calloc((size_t)walk->info->n_lanes + 1, sizeof *lanes);
    size_t n = 0;
    for (size_t i = 0; lanes != NULL && i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL)
            lanes[n++] = walk->lanes[i];
    const bool done = lanes != NULL && kymo__sort_runs(lanes, n, sizeof *lanes, lane_is_before);
    for (size_t i = 1; done && i < n; i++)
        lanes[i]->is_beside = lanes[i]->info->tid == lanes[i - 1]->info->tid;
    kymo__free(lanes);
    return done ? KYMO_OK : no_memory(walk);
}

kymo_status kymo__process_walk_run(struct kymo__process_walk *walk)
{
    KYMO_TRY(kymo__recording_visit_in_order(walk->recording, walk->info->index, visit_batch, walk));
    KYMO_TRY(mark_lanes_beside(walk));
    return kymo__iteration_walk_finish(walk);
}
