/*
 * The fast path of the stack machine: begins and ends that nest, on known paths. Nearly every event of a recording is
 * of this kind, so this loop determines the speed of a report over thousands of ranks.
 *
 * Any other word (a new path, the first few calls of a name, an end of another name, a record) is left, without side
 * effects, to lane_walk.c, which follows all rules of lane_replay.h.
 *
 * The loop works on local variables: through pointers, the compiler would have to reload values after each store.
 * Programs repeat their loops, so each node remembers the node that came next after its range's last begin and last
 * end. Usually the same one comes again, and the tree need not be searched.
 */
#include "analyze/walk/internal.h"

struct machine {
    const uint32_t *site_names;
    uint32_t n_sites;
    uint64_t last_ns;
    struct marey__node *nodes;
    const struct marey__tree *tree;
    struct marey__frame *top, *const first, *const last; /* the thread; the last frame with space */
    uint32_t *next;                                      /* where to store the next node */
    struct marey__sketch *ranges;
    struct marey__iteration_walk *iterations;
    const uint32_t n_ended; /* iterations */
};

#define HOT static inline __attribute__((always_inline))

/* The node of `name` below `parent`; 0 if there is none yet. */
HOT uint32_t find_node(const struct machine *m, uint32_t parent, uint32_t name)
{
    const uint32_t node = *m->next;
    if (MAREY_LIKELY(m->nodes[node].parent == parent && m->nodes[node].name == name))
        return node;
    const uint64_t key = marey__pair_key(name, parent);
    const uint32_t number = MAREY__MAP_FIND(&m->tree->by_key, m->nodes, key);
    return *m->next = number != 0 ? number - 1 : 0;
}

/* Returns false if the fast path does not apply. */
HOT bool begin(struct machine *m, uint32_t site, uint64_t ns)
{
    if (MAREY_UNLIKELY(m->top == m->last || site > m->n_sites))
        return false;
    const uint32_t name = m->site_names[site];
    const uint32_t node = find_node(m, m->top->node, name);
    if (MAREY_UNLIKELY(node == 0 || m->nodes[node].depth > MAREY__TREE_DEPTH))
        return false;
    m->next = &m->nodes[node].next_inside;
    struct marey__frame *const frame = ++m->top;
    frame->start_ns = ns;
    frame->children_ns = 0;
    frame->repeat = 0;
    frame->node = node;
    frame->name = name;
    frame->site = site;
    return true;
}

HOT bool end(struct machine *m, uint32_t site, uint64_t ns)
{
    struct marey__frame *const frame = m->top;
    if (MAREY_UNLIKELY(frame == m->first || frame->repeat != 0))
        return false;
    if (site != frame->site && site != 0 && (site > m->n_sites || m->site_names[site] != frame->name))
        return false;
    struct marey__node *const node = &m->nodes[frame->node];
    const uint64_t duration = ns - frame->start_ns;
    if (MAREY_UNLIKELY(node->depth > MAREY__TREE_DEPTH) ||
        MAREY_UNLIKELY(!marey__sketch_add_known(&m->ranges[frame->name], duration)))
        return false;
    frame[-1].children_ns += duration;
    node->count++;
    node->total_ns += duration;
    marey__node_add_self(node, m->n_ended, duration - MAREY__MIN(frame->children_ns, duration));
    if (node->is_outermost)
        marey__iteration_add(m->iterations, frame->name, frame->start_ns, ns);
    m->next = &node->next_behind;
    m->top = frame - 1;
    return true;
}

const uint64_t *marey__lane_walk_plain(struct marey__process_walk *walk,
                                       struct marey__lane_walk *lane,
                                       const struct marey_batch *batch, const uint64_t *word)
{
    const uint64_t *const stop = batch->words + batch->n;
    const struct marey_batch times = {.base_ns = batch->base_ns, .ns_mult = batch->ns_mult};
    struct machine m = {
        .site_names = walk->replay.site_names,
        .n_sites = walk->replay.n_sites,
        .last_ns = lane->stack.last_ns,
        .nodes = lane->tree.nodes,
        .tree = &lane->tree,
        .top = marey__stack_top(&lane->stack),
        .first = lane->stack.open - 1,
        .last = lane->stack.open + lane->stack.open_cap - 1,
        .ranges = walk->ranges,
        .iterations = &walk->iterations,
        .n_ended = walk->iterations.n_ended,
    };
    m.next = &m.nodes[m.top->node].next_inside;
    bool is_fast = true;
    while (word < stop) {
        const uint64_t w = *word, ns = MAREY__MAX(marey_batch_ns(&times, w), m.last_ns);
        const uint32_t kind = marey_word_kind(w);
        if (kind == MAREY_KIND_BEGIN)
            is_fast = begin(&m, marey_word_id(w), ns);
        else if (kind == MAREY_KIND_END)
            is_fast = end(&m, marey_word_id(w), ns);
        else
            break;
        if (MAREY_UNLIKELY(!is_fast))
            break;
        m.last_ns = ns;
        word++;
    }
    lane->stack.n_open = (size_t)(m.top - m.first);
    lane->stack.last_ns = m.last_ns;
    return word;
}
