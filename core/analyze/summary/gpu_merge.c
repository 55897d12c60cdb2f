/*
 * Adds the GPU work of one process to the sums: by name and kind, and by the name of the ranges that launched it. Of
 * nested ranges with one name, the outermost counts, as for host times.
 */
#include "analyze/summary/internal.h"

void marey__gpu_merge_fini(struct marey__gpu_merge *gpu)
{
    for (size_t i = 0; i < gpu->n_works; i++)
        marey__sketch_fini(&gpu->works[i].calls);
    MAREY__FREE_ALL(gpu->works, gpu->by_name, gpu->ranges);
}

/* ---- work ---- */

static struct marey__merged_work *new_work(struct marey__gpu_merge *gpu, uint32_t name, uint32_t kind)
{
    if (!marey__grow(&gpu->works, &gpu->works_cap, gpu->n_works + 1, sizeof *gpu->works))
        return NULL;
    struct marey__merged_work *work = &gpu->works[gpu->n_works++];
    *work = (struct marey__merged_work){.name = name, .kind = kind, .next = gpu->by_name[name]};
    gpu->by_name[name] = (uint32_t)gpu->n_works;
    return work;
}

struct marey__merged_work *marey__gpu_merge_work(struct marey__gpu_merge *gpu, uint32_t name,
                                                 uint32_t kind)
{
    for (uint32_t i = gpu->by_name[name]; i != 0; i = gpu->works[i - 1].next)
        if (gpu->works[i - 1].kind == kind)
            return &gpu->works[i - 1];
    return new_work(gpu, name, kind);
}

static bool add_work(struct marey__gpu_merge *gpu, uint32_t name, struct marey__work_stats *from)
{
    struct marey__merged_work *work = marey__gpu_merge_work(gpu, name, from->kind);
    if (work == NULL)
        return false;
    gpu->work_ns += marey__is_work(from->kind) ? from->calls.sum : 0;
    work->n_streams += from->n_streams;
    work->n_devices += from->n_devices;
    work->n_processes++;
    work->bytes += from->bytes;
    work->bytes_ns += from->bytes_ns;
    if (work->calls.count != 0)
        return marey__sketch_merge(&work->calls, &from->calls);
    work->calls = from->calls; /* moved, so that it is not in memory twice */
    from->calls = (struct marey__sketch){0};
    return true;
}

/* ---- ranges ---- */

/* Work launched in a node's children counts for the node, too; children come after their parents. */
static bool add_lane(struct marey__gpu_merge *gpu, const struct marey__lane_walk *lane,
                     const uint32_t *names)
{
    struct marey__gpu_time *const within MAREY__FREED = marey__calloc(lane->n_gpu, sizeof *within);
    if (within == NULL)
        return false;
    for (size_t i = lane->n_gpu; i-- > 1;) {
        const struct marey__node *node = &lane->tree.nodes[i];
        struct marey__gpu_range *range = &gpu->ranges[names[node->name]];
        within[i].count += lane->gpu[i].count;
        within[i].ns += lane->gpu[i].ns;
        within[node->parent].count += within[i].count;
        within[node->parent].ns += within[i].ns;
        range->self_ns += lane->gpu[i].ns;
        range->count += node->is_outermost ? within[i].count : 0;
        range->total_ns += node->is_outermost ? within[i].ns : 0;
    }
    return true;
}

bool marey__gpu_merge_cover(struct marey__merge *merge)
{
    struct marey__gpu_merge *gpu = &merge->gpu;
    return marey__cover_names(&merge->names, &gpu->by_name, &gpu->n_by_name, &gpu->by_name_cap,
                              sizeof *gpu->by_name) &&
           marey__cover_names(&merge->names, &gpu->ranges, &gpu->n_ranges, &gpu->ranges_cap,
                              sizeof *gpu->ranges);
}

bool marey__gpu_merge_add(struct marey__merge *merge, struct marey__process_walk *walk,
                          const uint32_t *names)
{
    struct marey__gpu_merge *gpu = &merge->gpu;
    struct marey__gpu_walk *from = &walk->gpu;
    if (from->n_works == 0)
        return true;
    if (!marey__gpu_merge_cover(merge))
        return false;
    for (size_t i = 0; i < from->n_works; i++)
        if (!add_work(gpu, names[from->works[i].name], &from->works[i]))
            return false;
    for (size_t i = 0; i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL && walk->lanes[i]->n_gpu != 0 &&
            !add_lane(gpu, walk->lanes[i], names))
            return false;
    return true;
}
