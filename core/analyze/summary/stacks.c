/*
 * Stacks: the time of each path of nested ranges, summed over threads, processes and recordings, for the new
 * recordings and, as a second side, those they are compared with.
 *
 *   process_walk.c (a tree per lane)  ──>  one tree of all paths, with for each side   count, self
 *                                                                 at the end           total = self + children
 *
 * Totals are computed from self times instead of the lanes' totals: a range that never ended has no time but is as
 * wide as the ranges that ended in it, and folded parts of the tree are not counted twice. Otherwise the two
 * agree to the nanosecond. Processes are walked one after another; memory holds one of them and the sum.
 */
#include <string.h>

#include "analyze/walk/internal.h"

/* State while the processes of one side are added. */
struct adding {
    struct marey__stacks *stacks;
    enum marey__side side;
    struct marey__process_walk walk; /* of the current process */
    uint32_t *names; /* the process's names to the stacks' numbers; MAREY__NO_NAME: filtered out */
    struct marey__names labels; /* used so far on this side */
    uint32_t *n_labels;         /* how often */
    size_t labels_cap;
};

marey_status marey__stacks_init(struct marey__stacks *stacks,
                                const struct marey__stacks_options *options)
{
    *stacks = (struct marey__stacks){.options = options};
    return marey__tree_init(&stacks->tree) ? MAREY_OK : marey__no_memory();
}

void marey__stacks_fini(struct marey__stacks *stacks)
{
    for (size_t s = 0; s < MAREY__N_SIDES; s++)
        marey__free(stacks->times[s]);
    marey__tree_fini(&stacks->tree);
    marey__names_fini(&stacks->names);
    marey__arena_fini(&stacks->texts);
}

/* ---- names ---- */

/* The number of a text, which is copied if new. */
static uint32_t number_text(struct marey__stacks *stacks, const struct marey__buf *text)
{
    const char *kept = text->failed ? NULL : marey__arena_text(&stacks->texts, text->data, text->len);
    return kept != NULL ? marey__names_number(&stacks->names, kept, text->len) : MAREY__NO_NAME;
}

static uint32_t number_name(struct marey__stacks *stacks, const struct marey__name *name)
{
    if (stacks->options->clean == NULL)
        return marey__names_number(&stacks->names, name->text, name->len);
    struct marey__buf clean MAREY__FINALLY(marey__buf_fini) = {0};
    stacks->options->clean(&clean, name->text, name->len);
    return number_text(stacks, &clean);
}

static bool map_names(struct adding *adding)
{
    const struct marey__names *names = &adding->walk.names;
    const char *filter = adding->stacks->options->filter;
    for (size_t i = 0; i < names->n; i++) {
        const struct marey__name *name = &names->names[i];
        adding->names[i] = MAREY__NO_NAME;
        if (!marey__name_matches(filter, name->text, name->len))
            continue;
        adding->names[i] = number_name(adding->stacks, name);
        if (adding->names[i] == MAREY__NO_NAME)
            return false;
    }
    return true;
}

/* How often this label occurred on this side, including this time; 0 on out of memory. */
static uint32_t count_label(struct adding *adding, const struct marey__buf *label)
{
    const char *kept = marey__arena_text(&adding->stacks->texts, label->data, label->len);
    if (kept == NULL || !marey__grow(&adding->n_labels, &adding->labels_cap, adding->labels.n + 1,
                                     sizeof *adding->n_labels))
        return 0;
    const size_t n_before = adding->labels.n;
    const uint32_t number = marey__names_number(&adding->labels, kept, label->len);
    if (number == MAREY__NO_NAME)
        return 0;
    if (adding->labels.n > n_before)
        adding->n_labels[number] = 0;
    return ++adding->n_labels[number];
}

/* The node above the lane's paths; false on out of memory. */
static bool find_base(struct adding *adding, const struct marey_lane_info *lane, uint32_t *base)
{
    struct marey__stacks *stacks = adding->stacks;
    struct marey__buf label MAREY__FINALLY(marey__buf_fini) = {0};
    *base = 0;
    if (stacks->options->label == NULL)
        return true;
    stacks->options->label(&label, adding->walk.info, lane);
    const uint32_t n =
        stacks->options->numbers_labels && !label.failed ? count_label(adding, &label) : 1;
    if (n > 1)
        marey__buf_printf(&label, " #%u", n);
    const uint32_t name = n != 0 ? number_text(stacks, &label) : MAREY__NO_NAME;
    if (name == MAREY__NO_NAME)
        return false;
    *base = marey__tree_child(&stacks->tree, 0, name, name);
    return *base != 0;
}

/* ---- times ---- */

/* Grow to the number of nodes, new elements zeroed. */
static bool cover_nodes(struct marey__stacks *stacks, enum marey__side side)
{
    return marey__extend(&stacks->times[side], &stacks->n_times[side], &stacks->cap[side],
                         stacks->tree.n, sizeof *stacks->times[side]);
}

/*
 * Add the lane's tree below `base`. `map` leads from its nodes to ours; a filtered one leads to the node around it,
 * whose self time grows by its time.
 */
static bool add_nodes(struct adding *adding, const struct marey__tree *tree, uint32_t base,
                      uint32_t *map)
{
    struct marey__stacks *stacks = adding->stacks;
    const uint32_t other = adding->names[adding->walk.other];
    map[0] = base;
    for (size_t i = 1; i < tree->n; i++) {
        const struct marey__node *node = &tree->nodes[i];
        const uint32_t name = adding->names[node->name], around = map[node->parent];
        map[i] = name == MAREY__NO_NAME ? around
                                        : marey__tree_child(&stacks->tree, around, name,
                                                            other == MAREY__NO_NAME ? name : other);
        if (name != MAREY__NO_NAME && map[i] == 0)
            return false;
        if (!cover_nodes(stacks, adding->side))
            return false;
        if (map[i] == base)
            continue; /* filtered out, and nothing around it */
        struct marey__stack_times *times = &stacks->times[adding->side][map[i]];
        times->count += name != MAREY__NO_NAME ? node->count : 0;
        times->self_ns += node->self_ns;
    }
    return cover_nodes(stacks, adding->side);
}

/* Add the lane below `*base`, which the first lane of a thread sets. */
static bool add_lane(struct adding *adding, const struct marey__lane_walk *lane, uint32_t *base)
{
    uint32_t *const map MAREY__FREED = marey__calloc(lane->tree.n, sizeof *map);
    return map != NULL && (lane->first != NULL || find_base(adding, lane->stack.info, base)) &&
           add_nodes(adding, &lane->tree, *base, map);
}

/* ---- processes ---- */

static void report_progress(void *ctx)
{
    const struct marey__stacks *stacks = ctx;
    const double done = (double)stacks->n_words_done, total = (double)stacks->options->n_words;
    stacks->options->progress(stacks->options->progress_ctx, done < total ? done / total : 1);
}

static marey_status add_walked(struct adding *adding)
{
    const struct marey__process_walk *walk = &adding->walk;
    struct marey__stacks *stacks = adding->stacks;
    uint64_t n_threads = 0;
    adding->names = marey__calloc(walk->names.n, sizeof *adding->names);
    uint32_t *const bases = marey__calloc((size_t)walk->info->n_lanes + 1, sizeof *bases);
    bool done = adding->names != NULL && bases != NULL && map_names(adding);
    for (size_t i = 0; done && i < walk->info->n_lanes; i++) {
        const struct marey__lane_walk *const lane = walk->lanes[i];
        if (lane == NULL)
            continue;
        n_threads += lane->first == NULL;
        done = add_lane(adding, lane,
                        &bases[(lane->first != NULL ? lane->first : lane)->stack.info->lane]);
    }
    MAREY__FREE_ALL(bases, adding->names);
    adding->names = NULL;
    stacks->n_processes[adding->side] += n_threads != 0;
    stacks->n_threads[adding->side] += n_threads;
    stacks->has_async |= walk->async != NULL || walk->pending.n != 0;
    stacks->n_too_deep += walk->replay.n_too_deep;
    stacks->lost_events[adding->side] += walk->info->lost_events;
    return done ? MAREY_OK : marey__no_memory();
}

static marey_status add_process(struct adding *adding, marey_recording *recording, size_t process)
{
    struct marey__process_walk *walk = &adding->walk;
    marey_status status = marey__process_walk_init(walk, recording, process);
    walk->progress = &adding->stacks->n_words_done;
    if (adding->stacks->options->progress != NULL) {
        walk->tell = report_progress;
        walk->tell_ctx = adding->stacks;
    }
    if (status == MAREY_OK)
        status = marey__process_walk_run(walk);
    if (status == MAREY_OK)
        status = add_walked(adding);
    marey__process_walk_fini(walk);
    return status;
}

marey_status marey__stacks_add(struct marey__stacks *stacks, enum marey__side side,
                               marey_recording *const *recordings, size_t n)
{
    struct adding adding = {.stacks = stacks, .side = side};
    marey_status status = MAREY_OK;
    for (size_t r = 0; r < n && status == MAREY_OK; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]) && status == MAREY_OK; i++)
            status = add_process(&adding, recordings[r], i);
    marey__names_fini(&adding.labels);
    marey__free(adding.n_labels);
    return status;
}

marey_status marey__stacks_finish(struct marey__stacks *stacks)
{
    for (size_t s = 0; s < MAREY__N_SIDES; s++) {
        MAREY__TRY_MEMORY(cover_nodes(stacks, (enum marey__side)s));
        struct marey__stack_times *times = stacks->times[s];
        for (size_t i = stacks->tree.n; i-- > 1;) {
            times[i].total_ns += times[i].self_ns;
            times[stacks->tree.nodes[i].parent].total_ns += times[i].total_ns;
        }
    }
    return MAREY_OK;
}
