/*
 * Sums from the call tree: by function, by function and signature, and by caller and callee.
 *
 * One depth-first walk. On the way down, a counter is incremented for each function and each pair of caller and callee.
 * A call whose function has the count 0 is a primitive one, and only its total time counts. This matches cProfile, and
 * handles indirect as well as direct recursion.
 */
#include <string.h>

#include "analyze/calls/internal.h"

enum { NO_EDGE = 0 };

/* ---- edges ---- */

/* The number of an edge, from 1, created if needed; NO_EDGE on out of memory. */
static uint32_t number_edge(struct marey__call_sums *sums, uint32_t caller, uint32_t callee)
{
    const uint64_t key = marey__pair_key(caller, callee);
    return MAREY__MAP_NUMBER(&sums->by_key, sums->edges, sums->n_edges, sums->edges_cap, key);
}

/* Find the edge that leads to each node, unless its caller is the root or "(other paths)". */
static bool find_edges(struct marey__call_sums *sums, const struct marey__calls *calls,
                       uint32_t *edges)
{
    for (size_t i = 1; i < calls->n_nodes; i++) {
        const struct marey__call_node *const node = &calls->nodes[i], *const parent =
                                                                          &calls->nodes[node->parent];
        if (node->function == 0 || parent->function == 0)
            continue;
        edges[i] = number_edge(sums, marey__call_entity(sums, parent->function, parent->signature),
                               marey__call_entity(sums, node->function, node->signature));
        if (edges[i] == NO_EDGE)
            return false;
    }
    return true;
}

/* ---- the walk ---- */

/* Children of each node as a list, in the order of the nodes. */
struct lists {
    uint32_t *first, *next;
};

static struct lists lists_of(size_t n)
{
    return (struct lists){marey__calloc(n, sizeof(uint32_t)), marey__calloc(n, sizeof(uint32_t))};
}

static void lists_fini(const struct lists *lists)
{
    MAREY__FREE_ALL(lists->first, lists->next);
}

static void make_lists(const struct marey__calls *calls, const struct lists *lists)
{
    for (size_t i = calls->n_nodes; i-- > 1;) {
        const uint32_t parent = calls->nodes[i].parent;
        lists->next[i] = lists->first[parent];
        lists->first[parent] = (uint32_t)i;
    }
}

struct walk {
    struct marey__call_sums *sums;
    const struct marey__calls *calls;
    const uint32_t *edges;  /* by node */
    const uint64_t *gpu_ns; /* by node, including its descendants */
    uint32_t *active;       /* by entity: how often it is on the path */
    uint32_t *active_edges; /* by edge */
};

static void add(struct marey__call_sum *sum, const struct marey__call_node *node, uint64_t gpu_ns,
                bool is_outermost)
{
    sum->calls += node->calls;
    sum->resumes += node->resumes;
    sum->self_ns += node->self_ns;
    sum->max_ns = MAREY__MAX(sum->max_ns, node->max_ns);
    if (!is_outermost)
        return;
    sum->primitive += node->calls;
    sum->total_ns += node->total_ns;
    sum->gpu_ns += gpu_ns;
}

static void enter(struct walk *w, uint32_t i)
{
    const struct marey__call_node *const node = &w->calls->nodes[i];
    if (node->function == 0)
        return;
    const uint32_t entity = marey__call_entity(w->sums, node->function, node->signature);
    add(&w->sums->entities[entity], node, w->gpu_ns[i], w->active[entity]++ == 0);
    if (w->edges[i] != NO_EDGE)
        add(&w->sums->edges[w->edges[i] - 1].sum, node, w->gpu_ns[i],
            w->active_edges[w->edges[i]]++ == 0);
}

static void leave(struct walk *w, uint32_t i)
{
    const struct marey__call_node *const node = &w->calls->nodes[i];
    if (node->function == 0)
        return;
    w->active[marey__call_entity(w->sums, node->function, node->signature)]--;
    if (w->edges[i] != NO_EDGE)
        w->active_edges[w->edges[i]]--;
}

static void walk_tree(struct walk *w, const struct lists *lists)
{
    uint32_t at = lists->first[0];
    while (at != 0) {
        enter(w, at);
        if (lists->first[at] != 0) {
            at = lists->first[at];
            continue;
        }
        /* Go up to a node with a further sibling. */
        leave(w, at);
        while (at != 0 && lists->next[at] == 0) {
            at = w->calls->nodes[at].parent;
            if (at != 0)
                leave(w, at);
        }
        at = at != 0 ? lists->next[at] : 0;
    }
}

void marey__calls_gpu_totals(const struct marey__calls *calls, uint64_t *gpu_ns)
{
    for (size_t i = 0; i < calls->n_nodes; i++)
        gpu_ns[i] = calls->nodes[i].gpu_ns;
    for (size_t i = calls->n_nodes; i-- > 1;)
        gpu_ns[calls->nodes[i].parent] += gpu_ns[i];
}

bool marey__call_sums_make(struct marey__call_sums *sums, const struct marey__calls *calls,
                           bool by_signature)
{
    *sums = (struct marey__call_sums){.by_signature = by_signature,
                                      .n_functions = calls->n_functions,
                                      .n_entities = calls->n_functions + calls->n_signatures};
    const size_t n = calls->n_nodes;
    uint32_t *const edges MAREY__FREED = marey__calloc(n, sizeof *edges);
    uint64_t *const gpu_ns MAREY__FREED = marey__calloc(n, sizeof *gpu_ns);
    const struct lists lists MAREY__FINALLY(lists_fini) = lists_of(n);
    struct walk w = {.sums = sums, .calls = calls, .edges = edges, .gpu_ns = gpu_ns};
    sums->entities = marey__calloc(sums->n_entities, sizeof *sums->entities);
    w.active = marey__calloc(sums->n_entities, sizeof *w.active);
    bool done = edges != NULL && gpu_ns != NULL && lists.first != NULL && lists.next != NULL &&
                sums->entities != NULL && w.active != NULL && find_edges(sums, calls, edges);
    if (done)
        w.active_edges = marey__calloc(sums->n_edges + 1, sizeof *w.active_edges);
    done = done && w.active_edges != NULL;
    if (done) {
        marey__calls_gpu_totals(calls, gpu_ns);
        make_lists(calls, &lists);
        walk_tree(&w, &lists);
    } else {
        marey__call_sums_fini(sums);
    }
    MAREY__FREE_ALL(w.active, w.active_edges);
    return done;
}

void marey__call_sums_fini(struct marey__call_sums *sums)
{
    MAREY__FREE_ALL(sums->entities, sums->edges);
    marey__key_map_fini(&sums->by_key);
    *sums = (struct marey__call_sums){0};
}

/* ---- order ---- */

static int by_parent_and_weight(const void *a, const void *b, void *ctx)
{
    const struct marey__calls *const calls = ctx;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct marey__call_node *const x = &calls->nodes[i], *const y = &calls->nodes[j];
    MAREY__UP(parent)
    MAREY__DOWN(total_ns)
    return i > j ? 1 : -1;
}

bool marey__calls_order(const struct marey__calls *calls, uint32_t *order)
{
    const size_t n = calls->n_nodes;
    uint32_t *const sorted MAREY__FREED = marey__calloc(n, sizeof *sorted);
    const struct lists lists MAREY__FINALLY(lists_fini) = lists_of(n);
    size_t n_ordered = 0;
    if (sorted == NULL || lists.first == NULL || lists.next == NULL)
        return false;
    for (size_t i = 1; i < n; i++)
        sorted[i - 1] = (uint32_t)i;
    if (n > 1)
        qsort_r(sorted, n - 1, sizeof *sorted, by_parent_and_weight, (void *)(uintptr_t)calls);
    for (size_t i = n - 1; i-- > 0;) {
        const uint32_t node = sorted[i], parent = calls->nodes[node].parent;
        lists.next[node] = lists.first[parent];
        lists.first[parent] = node;
    }
    for (uint32_t at = lists.first[0]; at != 0;) {
        order[n_ordered++] = at;
        if (lists.first[at] != 0) {
            at = lists.first[at];
            continue;
        }
        while (at != 0 && lists.next[at] == 0)
            at = calls->nodes[at].parent;
        at = lists.next[at];
    }
    return true;
}
