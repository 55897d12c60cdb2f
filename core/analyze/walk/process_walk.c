/* One process: its names, its lanes, and the records that are not ranges of a stack. */
#include "analyze/walk/internal.h"
#include "read/internal.h"

bool marey__replay_init(struct marey__replay *replay, marey_recording *recording, size_t process,
                        struct marey__names *names)
{
    static const char unnamed[] = "(unnamed)";
    const uint32_t n = marey_recording_process(recording, process)->n_sites;
    *replay = (struct marey__replay){
        .site_names = marey__calloc((size_t)n + 1, sizeof *replay->site_names), .n_sites = n};
    uint32_t *const numbers = replay->site_names;
    bool done = numbers != NULL;
    for (uint32_t site = 0; done && site <= n; site++) {
        const struct marey_site_info *info = marey_recording_site(recording, process, site);
        if (site == 0)
            numbers[site] = marey__names_number(names, unnamed, strlen(unnamed));
        else if (info->name_len != 0)
            numbers[site] = marey__names_number(names, info->name, info->name_len);
        else
            numbers[site] = numbers[0];
        done = numbers[site] != MAREY__NO_NAME;
    }
    return done;
}

marey_status marey__process_walk_init(struct marey__process_walk *walk, marey_recording *recording,
                                      size_t process)
{
    *walk = (struct marey__process_walk){
        .recording = recording,
        .info = marey_recording_process(recording, process),
    };
    static const char other[] = MAREY__OTHER_RANGES;
    walk->lanes = marey__calloc((size_t)walk->info->n_lanes + 1, sizeof *walk->lanes);
    walk->other = marey__names_number(&walk->names, other, strlen(other));
    if (walk->lanes == NULL || walk->other == MAREY__NO_NAME ||
        !marey__replay_init(&walk->replay, recording, process, &walk->names))
        return marey__no_memory();
    walk->ranges = marey__calloc(walk->names.n, sizeof *walk->ranges);
    walk->marks = marey__calloc(walk->names.n, sizeof *walk->marks);
    MAREY__TRY_MEMORY(walk->ranges != NULL && walk->marks != NULL && marey__iteration_walk_init(walk));
    marey__gpu_walk_init(walk);
    return MAREY_OK;
}

static void free_sketches(struct marey__sketch *sketches, size_t n)
{
    for (size_t i = 0; sketches != NULL && i < n; i++)
        marey__sketch_fini(&sketches[i]);
    marey__free(sketches);
}

static void free_lane(struct marey__lane_walk *lane)
{
    if (lane == NULL)
        return;
    marey__tree_fini(&lane->tree);
    marey__stack_fini(&lane->stack);
    MAREY__FREE_ALL(lane->gpu, lane->steady_from, lane);
}

void marey__process_walk_fini(struct marey__process_walk *walk)
{
    for (size_t i = 0; walk->lanes != NULL && i < walk->info->n_lanes; i++)
        free_lane(walk->lanes[i]);
    marey__free(walk->lanes);
    free_sketches(walk->ranges, walk->names.n);
    free_sketches(walk->async, walk->names.n);
    MAREY__FREE_ALL(walk->counters, walk->marks, walk->replay.site_names);
    marey__async_match_fini(&walk->pending);
    marey__gpu_walk_fini(&walk->gpu);
    marey__iteration_walk_fini(&walk->iterations);
    marey__iteration_stats_fini(&walk->iteration_stats, walk->names.n);
    marey__names_fini(&walk->names);
}

/* ---- records ---- */

static bool take_counter(struct marey__process_walk *walk, uint32_t name, double value, uint64_t ns)
{
    if (walk->counters == NULL) {
        walk->counters = marey__calloc(walk->names.n, sizeof *walk->counters);
        if (walk->counters == NULL)
            return false;
    }
    struct marey__counter *counter = &walk->counters[name];
    const bool is_first = counter->count++ == 0;
    counter->min = is_first || value < counter->min ? value : counter->min;
    counter->max = is_first || value > counter->max ? value : counter->max;
    counter->sum += value;
    if (is_first || ns >= counter->last_ns) {
        counter->last = value;
        counter->last_ns = ns;
    }
    return true;
}

static bool take_async(struct marey__process_walk *walk, const struct marey__async_half *half)
{
    struct marey__async_half other;
    bool failed;
    if (!marey__async_match(&walk->pending, half, &other, &failed))
        return !failed;
    if (walk->async == NULL) {
        walk->async = marey__calloc(walk->names.n, sizeof *walk->async);
        if (walk->async == NULL)
            return false;
    }
    const struct marey__async_half *begin = half->is_begin ? half : &other,
                                   *end = half->is_begin ? &other : half;
    const uint64_t duration = end->ns > begin->ns ? end->ns - begin->ns : 0;
    return marey__sketch_add(&walk->async[begin->name], duration);
}

bool marey__process_walk_record(struct marey__process_walk *walk, uint32_t lane,
                                const uint64_t *words, uint64_t ns)
{
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_MARK) {
        walk->marks[marey__name_of_site(walk, marey_record_site(words[1]))]++;
    } else if (type == MAREY_RECORD_COUNTER) {
        double value;
        memcpy(&value, &words[2], sizeof value);
        return take_counter(walk, marey__name_of_site(walk, marey_record_site(words[1])), value, ns);
    } else if (type == MAREY_RECORD_ASYNC_BEGIN || type == MAREY_RECORD_ASYNC_END) {
        const struct marey__async_half half = {
            .handle = words[2],
            .ns = ns,
            .name = marey__name_of_site(walk, marey_record_site(words[1])),
            .lane = lane,
            .is_begin = type == MAREY_RECORD_ASYNC_BEGIN,
        };
        return take_async(walk, &half);
    }
    return true; /* types of later versions */
}

/* ---- the visit ---- */

static struct marey__lane_walk *make_lane(struct marey__process_walk *walk,
                                          const struct marey_lane_info *info)
{
    bool failed;
    struct marey__lane_walk *lane = marey__calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->stack.info = info;
    if (!marey__tree_init(&lane->tree) ||
        !marey__stack_make_room(&walk->replay, &lane->stack, &failed)) {
        free_lane(lane);
        return NULL;
    }
    return lane;
}

static void count_words(struct marey__process_walk *walk, size_t n)
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

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct marey__process_walk *walk = ctx;
    struct marey__lane_walk **lane = &walk->lanes[batch->lane->lane];
    count_words(walk, batch->n);
    if (batch->lane->kind == MAREY_LANE_GPU) {
        const struct marey__walk_tap *tap = walk->tap;
        if (tap != NULL && tap->gpu != NULL && !tap->gpu(walk->tap_ctx, batch))
            return marey__no_memory();
        return marey__gpu_walk_batch(walk, batch);
    }
    if (batch->lane->kind != MAREY_LANE_THREAD)
        return MAREY_OK; /* of a later version */
    if (*lane == NULL && (*lane = make_lane(walk, batch->lane)) == NULL)
        return marey__no_memory();
    if (!marey__iteration_walk_batch(walk, *lane, batch))
        return marey__no_memory();
    return marey__lane_walk_batch(walk, *lane, batch);
}

MAREY__ORDER_RUNS(lane_is_before, struct marey__lane_walk *const,
                  MAREY__UP_BY((*x)->stack.info->tid, (*y)->stack.info->tid)
                      MAREY__UP_BY((*x)->stack.info->lane, (*y)->stack.info->lane))

/* Logs of earlier versions lack the self times of overlapping ranges: count each nanosecond once. */
static void clear_self_times(struct marey__lane_walk *lane)
{
    for (size_t i = 0; !lane->has_self_times && i < lane->tree.n; i++)
        lane->tree.nodes[i].self_ns = lane->tree.nodes[i].self_before_ns = 0;
}

/* In an imported trace, lanes with one tid belong to one thread; in a recording, a tid may have been reused. */
static marey_status find_first_lanes(struct marey__process_walk *walk)
{
    if (walk->info->source[0] == '\0')
        return MAREY_OK;
    struct marey__lane_walk **lanes MAREY__FREED =
        marey__calloc((size_t)walk->info->n_lanes + 1, sizeof *lanes);
    size_t n = 0;
    for (size_t i = 0; lanes != NULL && i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL)
            lanes[n++] = walk->lanes[i];
    const bool done = lanes != NULL && marey__sort_runs(lanes, n, sizeof *lanes, lane_is_before);
    for (size_t i = 1; done && i < n; i++)
        if (lanes[i]->stack.info->tid == lanes[i - 1]->stack.info->tid) {
            lanes[i]->first = lanes[i - 1]->first != NULL ? lanes[i - 1]->first : lanes[i - 1];
            clear_self_times(lanes[i]);
        }
    return done ? MAREY_OK : marey__no_memory();
}

marey_status marey__process_walk_run(struct marey__process_walk *walk)
{
    MAREY_TRY(marey__recording_visit_in_order(walk->recording, walk->info->index, visit_batch, walk));
    MAREY_TRY(find_first_lanes(walk));
    return marey__iteration_walk_finish(walk);
}
