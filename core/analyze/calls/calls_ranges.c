/*
 * Ranges as calls, for imported cProfile files and recordings without a call profiler. A name is a function; its file
 * and line are those of the first site with that name.
 */
#include <string.h>

#include "analyze/calls/internal.h"

struct turning {
    struct marey__calls *calls;
    struct marey__process_walk walk;
    uint32_t *functions; /* by name */
};

static bool name_function(struct turning *t, uint32_t name, const struct marey_site_info *site)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    const bool has_file = site->file[0] != '\0';
    marey__buf_put(&text, site->name, marey__function_name_len(site));
    marey__buf_put(&text, "", 1);
    const struct marey__call_function function = {
        .name = text.failed ? "" : text.data,
        .qualified = site->name,
        .file = has_file ? site->file : "~", /* "~" is what Python profiles write if there is no file */
        .module = site->category,
        .line = site->line,
        .kind = has_file ? MAREY__CALL_PYTHON : MAREY__CALL_BUILTIN,
    };
    t->functions[name] = text.failed ? MAREY__NO_CALL : marey__calls_function(t->calls, &function);
    return t->functions[name] != MAREY__NO_CALL;
}

/* In order of sites, so that the first site of each name is used; a name without a site stands for itself. */
static bool name_functions(struct turning *t)
{
    const struct marey__process_walk *const walk = &t->walk;
    for (size_t i = 0; i < walk->names.n; i++)
        t->functions[i] = MAREY__NO_CALL;
    for (uint32_t site = 1; site <= walk->info->n_sites; site++) {
        const uint32_t name = walk->replay.site_names[site];
        const struct marey_site_info *const info =
            marey_recording_site(walk->recording, walk->info->index, site);
        if (info->name_len != 0 && t->functions[name] == MAREY__NO_CALL &&
            !name_function(t, name, info))
            return false;
    }
    for (uint32_t i = 0; i < walk->names.n; i++) {
        const struct marey__name *const name = &walk->names.names[i];
        const struct marey_site_info bare = {.name = name->len != 0 ? name->text : "(unnamed)",
                                             .name_len = name->len != 0 ? name->len : 9,
                                             .file = "",
                                             .category = ""};
        if (t->functions[i] == MAREY__NO_CALL && !name_function(t, i, &bare))
            return false;
    }
    return true;
}

static bool add_lane(struct turning *t, const struct marey__lane_walk *lane, uint32_t thread,
                     uint32_t *map)
{
    const struct marey__tree *const tree = &lane->tree;
    for (size_t i = 1; i < tree->n; i++) {
        const struct marey__node *const node = &tree->nodes[i];
        map[i] = marey__calls_node(t->calls, map[node->parent], t->functions[node->name], 0, thread);
        if (map[i] == 0)
            return false;
        const struct marey__call_node sums = {
            .calls = node->count,
            .self_ns = node->self_ns,
            .total_ns = node->total_ns,
            .gpu_ns = i < lane->n_gpu ? lane->gpu[i].ns : 0,
        };
        marey__call_node_add(&t->calls->nodes[map[i]], &sums);
        t->calls->has_gpu |= sums.gpu_ns != 0;
    }
    return true;
}

/* Totals from self times, for the nodes from `first` on: where ranges overlap, shared time counts once. */
static void sum_nodes(struct marey__calls *calls, size_t first)
{
    for (size_t i = first; i < calls->n_nodes; i++)
        calls->nodes[i].total_ns = calls->nodes[i].self_ns;
    for (size_t i = calls->n_nodes; i-- > first;)
        if (calls->nodes[i].parent >= first)
            calls->nodes[calls->nodes[i].parent].total_ns += calls->nodes[i].total_ns;
}

static bool add_lanes(struct turning *t, uint64_t key)
{
    const size_t n_before = t->calls->n_nodes;
    bool has_overlaps = false;
    const struct marey_process *const process = t->walk.info;
    t->functions = marey__calloc(t->walk.names.n + 1, sizeof *t->functions);
    bool done = t->functions != NULL && name_functions(t);
    for (size_t i = 0; done && i < process->n_lanes; i++) {
        const struct marey__lane_walk *const lane = t->walk.lanes[i];
        if (lane == NULL || lane->tree.n < 2)
            continue;
        has_overlaps |= lane->first != NULL;
        const struct marey__call_thread thread = {.pid = process->pid,
                                                  .rank = process->rank,
                                                  .tid = lane->stack.info->tid,
                                                  .name = lane->stack.info->name};
        const uint32_t number = marey__calls_thread(t->calls, &thread, key);
        uint32_t *const map = marey__calloc(lane->tree.n, sizeof *map);
        done = number != MAREY__NO_CALL && map != NULL && add_lane(t, lane, number, map);
        marey__free(map);
    }
    if (has_overlaps)
        sum_nodes(t->calls, n_before);
    marey__free(t->functions);
    return done;
}

marey_status marey__calls_add_ranges(struct marey__calls *calls, marey_recording *recording,
                                     size_t process, uint64_t key)
{
    struct turning t = {.calls = calls};
    marey_status status = marey__process_walk_init(&t.walk, recording, process);
    if (status == MAREY_OK)
        status = marey__process_walk_run(&t.walk);
    if (status == MAREY_OK && !add_lanes(&t, key))
        status = marey__no_memory();
    calls->n_too_deep += t.walk.replay.n_too_deep;
    marey__process_walk_fini(&t.walk);
    return status;
}
