/*
 * The work of a process's streams: counts and times by name, and by the path of ranges that launched it.
 *
 *   a record LAUNCH, on a thread       correlation ──> the innermost open range, as a node of the lane's tree
 *   a record GPU, on a stream          correlation ──> add the time to that node
 *
 * Streams and threads come in any order, so whichever comes first waits in a table for the other. Waiting work is kept as
 * a sum. A launch stays in the table, because one graph launch has many pieces of work; the table grows with launches.
 */
#include "analyze/walk/internal.h"

void marey__gpu_walk_init(struct marey__process_walk *walk)
{
    for (uint32_t i = 0; i < walk->info->n_lanes && !walk->gpu.has_streams; i++)
        walk->gpu.has_streams =
            marey_recording_lane(walk->recording, walk->info->index, i)->kind == MAREY_LANE_GPU;
}

void marey__gpu_walk_fini(struct marey__gpu_walk *gpu)
{
    for (size_t i = 0; i < gpu->n_works; i++)
        marey__sketch_fini(&gpu->works[i].calls);
    MAREY__FREE_ALL(gpu->works, gpu->by_name);
    marey__pairs_fini(&gpu->where);
    marey__free(gpu->launches);
    marey__key_map_fini(&gpu->by_correlation);
    *gpu = (struct marey__gpu_walk){0};
}

/* ---- launches and waiting work ---- */

/* The entry of a correlation, created if needed; NULL on out of memory. */
static struct marey__gpu_launch *launch_of(struct marey__gpu_walk *gpu, uint64_t correlation)
{
    const size_t n_before = gpu->n_launches;
    const uint32_t number = MAREY__MAP_NUMBER(&gpu->by_correlation, gpu->launches, gpu->n_launches,
                                              gpu->launches_cap, correlation);
    if (gpu->n_launches > n_before)
        gpu->launches[number - 1].lane = MAREY__NO_LANE;
    return number != 0 ? &gpu->launches[number - 1] : NULL;
}

static bool add_to_node(struct marey__lane_walk *lane, uint32_t node,
                        const struct marey__gpu_time *time)
{
    if (node >= lane->n_gpu && !marey__extend(&lane->gpu, &lane->n_gpu, &lane->gpu_cap,
                                              (size_t)node + 1, sizeof *lane->gpu))
        return false;
    lane->gpu[node].count += time->count;
    lane->gpu[node].ns += time->ns;
    return true;
}

bool marey__gpu_walk_launch(struct marey__process_walk *walk, struct marey__lane_walk *lane,
                            uint64_t correlation)
{
    if (!walk->gpu.has_streams || correlation == 0)
        return true;
    struct marey__gpu_launch *launch = launch_of(&walk->gpu, correlation);
    if (launch == NULL)
        return false;
    launch->lane = lane->stack.info->lane;
    launch->node = marey__stack_top(&lane->stack)->node; /* 0: no open range */
    const struct marey__gpu_time waiting = launch->waiting;
    launch->waiting = (struct marey__gpu_time){0};
    return waiting.count == 0 || add_to_node(lane, launch->node, &waiting);
}

static bool find_launch(struct marey__process_walk *walk, uint64_t correlation, uint64_t ns)
{
    const struct marey__gpu_time time = {1, ns};
    struct marey__gpu_launch *launch = launch_of(&walk->gpu, correlation);
    if (launch == NULL)
        return false;
    if (launch->lane != MAREY__NO_LANE)
        return add_to_node(walk->lanes[launch->lane], launch->node, &time);
    launch->waiting.count++;
    launch->waiting.ns += ns;
    return true;
}

/* ---- work ---- */

static struct marey__work_stats *new_work(struct marey__process_walk *walk, uint32_t name,
                                          uint32_t kind)
{
    struct marey__gpu_walk *gpu = &walk->gpu;
    if (!marey__grow(&gpu->works, &gpu->works_cap, gpu->n_works + 1, sizeof *gpu->works))
        return NULL;
    struct marey__work_stats *work = &gpu->works[gpu->n_works++];
    *work = (struct marey__work_stats){
        .name = name, .kind = kind, .next = gpu->by_name[name], .last_lane = MAREY__NO_LANE};
    gpu->by_name[name] = (uint32_t)gpu->n_works;
    return work;
}

/* The sums of a name and kind, created if needed; NULL on out of memory. */
static struct marey__work_stats *work_of(struct marey__process_walk *walk, uint32_t name,
                                         uint32_t kind)
{
    struct marey__gpu_walk *gpu = &walk->gpu;
    if (gpu->by_name == NULL) {
        gpu->by_name = marey__calloc(walk->names.n, sizeof *gpu->by_name);
        if (gpu->by_name == NULL)
            return NULL;
    }
    for (uint32_t i = gpu->by_name[name]; i != 0; i = gpu->works[i - 1].next)
        if (gpu->works[i - 1].kind == kind)
            return &gpu->works[i - 1];
    return new_work(walk, name, kind);
}

/* Each stream and device is counted once per work. */
static bool count_stream(struct marey__gpu_walk *gpu, struct marey__work_stats *work,
                         const struct marey_lane_info *lane)
{
    const uint32_t number = (uint32_t)(work - gpu->works);
    bool failed;
    if (work->last_lane == lane->lane)
        return true;
    work->last_lane = lane->lane;
    if (!marey__pairs_add(&gpu->where, 2 * number, lane->lane, &failed))
        return !failed;
    work->n_streams++;
    work->n_devices += marey__pairs_add(&gpu->where, 2 * number + 1, (uint32_t)lane->device, &failed);
    return !failed;
}

static bool take_work(struct marey__process_walk *walk, const struct marey_batch *batch,
                      const uint64_t *words)
{
    const uint32_t kind = marey_record_work_kind(words[1]);
    const uint64_t ns = marey_batch_duration_ns(batch, words[2]), correlation = words[3];
    struct marey__work_stats *work =
        work_of(walk, marey__name_of_site(walk, marey_record_site(words[1])), kind);
    if (work != NULL && words[4] != 0) {
        work->bytes += words[4];
        work->bytes_ns += ns;
    }
    return work != NULL && marey__sketch_add(&work->calls, ns) &&
           count_stream(&walk->gpu, work, batch->lane) &&
           (correlation == 0 || !marey__is_work(kind) || find_launch(walk, correlation, ns));
}

marey_status marey__gpu_walk_batch(struct marey__process_walk *walk, const struct marey_batch *batch)
{
    const uint64_t *word = batch->words, *const end = word + batch->n;
    for (; word < end;
         word += marey_word_kind(*word) == MAREY_KIND_RECORD ? marey_record_length(*word) : 1)
        if (marey_word_kind(*word) == MAREY_KIND_RECORD &&
            marey_record_type_of(*word) == MAREY_RECORD_GPU && !take_work(walk, batch, word))
            return marey__no_memory();
    return MAREY_OK;
}
