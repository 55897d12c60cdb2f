/*
 * Stacks: how much time each path of ranges within ranges took, added up over threads, processes and recordings, for
 * what is measured and, on the other side, for what it is compared with.
 *
 *   process_walk.c (a tree per lane)  ──>  one tree of all paths, in it for each side  count, self
 *                                                                 at the end           total = self + children
 *
 * Totals come from below rather than from the lanes' trees: a range that never ended has no time of its own but is as
 * wide as what ended in it, and what lies in a folded part of the tree is not counted twice. For all others the two
 * agree to the nanosecond. Processes are walked one after the other; memory holds one of them and the sum.
 */
#include <string.h>

#include "analyze/path_times.h"

/* While the processes of one side are added. */
struct adding {
    struct kymo__stacks *stacks;
    enum kymo__side side;
    struct kymo__process_walk walk; /* of the process at hand */
    uint32_t *names; /* to the numbers of the stacks, by the process's; KYMO__NO_NAME: left out */
    struct kymo__names labels; /* used so far on this side, by themselves */
    uint32_t *n_labels;        /* how often */
    size_t labels_cap;
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the stacks");
}

kymo_status kymo__stacks_init(struct kymo__stacks *stacks, const struct kymo__stacks_options *options)
{
    *stacks = (struct kymo__stacks){.options = options};
    return kymo__tree_init(&stacks->tree) ? KYMO_OK : no_memory();
}

void kymo__stacks_fini(struct kymo__stacks *stacks)
{
    for (size_t s = 0; s < KYMO__N_SIDES; s++)
        kymo__free(stacks->times[s]);
    kymo__tree_fini(&stacks->tree);
    kymo__names_fini(&stacks->names);
    kymo__arena_fini(&stacks->texts);
}

/* ---- names ---- */

/* The number of a text that need not stay where it is. */
static uint32_t number_text(struct kymo__stacks *stacks, const struct kymo__buf *text)
{
    const char *kept = text->failed ? NULL : kymo__arena_text(&stacks->texts, text->data, text->len);
    return kept != NULL ? kymo__names_number(&stacks->names, kept, text->len) : KYMO__NO_NAME;
}

static uint32_t number_name(struct kymo__stacks *stacks, const struct kymo__name *name)
{
    if (stacks->options->clean == NULL)
        return kymo__names_number(&stacks->names, name->text, name->len);
    struct kymo__buf clean = {0};
    stacks->options->clean(&clean, name->text, name->len);
    const uint32_t number = number_text(stacks, &clean);
    kymo__buf_fini(&clean);
    return number;
}

static bool map_names(struct adding *adding)
{
    const struct kymo__names *names = &adding->walk.names;
    const char *filter = adding->stacks->options->filter;
    for (size_t i = 0; i < names->n; i++) {
        const struct kymo__name *name = &names->names[i];
        adding->names[i] = KYMO__NO_NAME;
        if (!kymo__name_matches(filter, name->text, name->len))
            continue;
        adding->names[i] = number_name(adding->stacks, name);
        if (adding->names[i] == KYMO__NO_NAME)
            return false;
    }
    return true;
}

/* How often this label has come on this side, this time counted; 0 without memory. */
static uint32_t count_label(struct adding *adding, const struct kymo__buf *label)
{
    const char *kept = kymo__arena_text(&adding->stacks->texts, label->data, label->len);
    if (kept == NULL || !kymo__grow(&adding->n_labels, &adding->labels_cap, adding->labels.n + 1,
                                    sizeof *adding->n_labels))
        return 0;
    const size_t n_before = adding->labels.n;
    const uint32_t number = kymo__names_number(&adding->labels, kept, label->len);
    if (number == KYMO__NO_NAME)
        return 0;
    if (adding->labels.n > n_before)
        adding->n_labels[number] = 0;
    return ++adding->n_labels[number];
}

/* The node below which the lane's paths go; false without memory. */
static bool find_base(struct adding *adding, const struct kymo_lane_info *lane, uint32_t *base)
{
    struct kymo__stacks *stacks = adding->stacks;
    struct kymo__buf label = {0};
    *base = 0;
    if (stacks->options->label == NULL)
        return true;
    stacks->options->label(&label, adding->walk.info, lane);
    const uint32_t n =
        stacks->options->numbers_labels && !label.failed ? count_label(adding, &label) : 1;
    if (n > 1)
        kymo__buf_printf(&label, " #%u", n);
    const uint32_t name = n != 0 ? number_text(stacks, &label) : KYMO__NO_NAME;
    kymo__buf_fini(&label);
    if (name == KYMO__NO_NAME)
        return false;
    *base = kymo__tree_child(&stacks->tree, 0, name, name);
    return *base != 0;
}

/* ---- times ---- */

/* Elements for all nodes, new ones zeroed. */
static bool cover_nodes(struct kymo__stacks *stacks, enum kymo__side side)
{
    const size_t before = stacks->n_times[side], n = stacks->tree.n;
    if (!kymo__grow(&stacks->times[side], &stacks->cap[side], n, sizeof *stacks->times[side]))
        return false;
    memset(stacks->times[side] + before, 0, (n - before) * sizeof *stacks->times[side]);
    stacks->n_times[side] = n;
    return true;
}

/*
 * Add the lane's tree below `base`. `map` leads from its nodes to ours; one that is left out leads to the node around
 * it, whose own time grows by what it took.
 */
static bool add_nodes(struct adding *adding, const struct kymo__tree *tree, uint32_t base,
                      uint32_t *map)
{
    struct kymo__stacks *stacks = adding->stacks;
    const uint32_t other = adding->names[adding->walk.other];
    map[0] = base;
    for (size_t i = 1; i < tree->n; i++) {
        const struct kymo__node *node = &tree->nodes[i];
        const uint32_t name = adding->names[node->name], around = map[node->parent];
        map[i] = name == KYMO__NO_NAME ? around
                                       : kymo__tree_child(&stacks->tree, around, name,
                                                          other == KYMO__NO_NAME ? name : other);
        if (name != KYMO__NO_NAME && map[i] == 0)
            return false;
        if (!cover_nodes(stacks, adding->side))
            return false;
        if (map[i] == base)
            continue; /* left out, and nothing around it */
        struct kymo__stack_times *times = &stacks->times[adding->side][map[i]];
        times->count += name != KYMO__NO_NAME ? node->count : 0;
        times->self_ns += node->self_ns;
    }
    return cover_nodes(stacks, adding->side);
}

static bool add_lane(struct adding *adding, const struct kymo__lane_walk *lane)
{
    uint32_t base;
    uint32_t *map = kymo__calloc(lane->tree.n, sizeof *map);
    const bool done = map != NULL && find_base(adding, lane->info, &base) &&
                      add_nodes(adding, &lane->tree, base, map);
    kymo__free(map);
    return done;
}

/* ---- processes ---- */

static void tell_progress(void *ctx)
{
    const struct kymo__stacks *stacks = ctx;
    const double done = (double)stacks->n_words_done, total = (double)stacks->options->n_words;
    stacks->options->progress(stacks->options->progress_ctx, done < total ? done / total : 1);
}

static kymo_status add_walked(struct adding *adding)
{
    const struct kymo__process_walk *walk = &adding->walk;
    struct kymo__stacks *stacks = adding->stacks;
    uint64_t n_threads = 0;
    adding->names = kymo__calloc(walk->names.n, sizeof *adding->names);
    bool done = adding->names != NULL && map_names(adding);
    for (size_t i = 0; done && i < walk->info->n_lanes; i++) {
        if (walk->lanes[i] == NULL)
            continue;
        if (walk->lanes[i]->is_beside) {
            stacks->has_overlaps = true;
            continue;
        }
        n_threads++;
        done = add_lane(adding, walk->lanes[i]);
    }
    kymo__free(adding->names);
    adding->names = NULL;
    stacks->n_processes[adding->side] += n_threads != 0;
    stacks->n_threads[adding->side] += n_threads;
    stacks->has_async |= walk->async != NULL || walk->pending.n != 0;
    stacks->n_too_deep += walk->n_too_deep;
    stacks->lost_events[adding->side] += walk->info->lost_events;
    return done ? KYMO_OK : no_memory();
}

static kymo_status add_process(struct adding *adding, kymo_recording *recording, size_t process)
{
    struct kymo__process_walk *walk = &adding->walk;
    kymo_status status = kymo__process_walk_init(walk, recording, process);
    walk->progress = &adding->stacks->n_words_done;
    if (adding->stacks->options->progress != NULL) {
        walk->tell = tell_progress;
        walk->tell_ctx = adding->stacks;
    }
    if (status == KYMO_OK)
        status = kymo__process_walk_run(walk);
    if (status == KYMO_OK)
        status = add_walked(adding);
    kymo__process_walk_fini(walk);
    return status;
}

kymo_status kymo__stacks_add(struct kymo__stacks *stacks, enum kymo__side side,
                             kymo_recording *const *recordings, size_t n)
{
    struct adding adding = {.stacks = stacks, .side = side};
    kymo_status status = KYMO_OK;
    for (size_t r = 0; r < n && status == KYMO_OK; r++)
        for (size_t i = 0; i < kymo_recording_n_processes(recordings[r]) && status == KYMO_OK; i++)
            status = add_process(&adding, recordings[r], i);
    kymo__names_fini(&adding.labels);
    kymo__free(adding.n_labels);
    return status;
}

kymo_status kymo__stacks_finish(struct kymo__stacks *stacks)
{
    for (size_t s = 0; s < KYMO__N_SIDES; s++) {
        if (!cover_nodes(stacks, (enum kymo__side)s))
            return no_memory();
        struct kymo__stack_times *times = stacks->times[s];
        for (size_t i = stacks->tree.n; i-- > 1;) {
            times[i].total_ns += times[i].self_ns;
            times[stacks->tree.nodes[i].parent].total_ns += times[i].total_ns;
        }
    }
    return KYMO_OK;
}
