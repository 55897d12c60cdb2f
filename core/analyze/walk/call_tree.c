/* The call tree: an array of nodes, parents first, and a map from (parent, name) to node. */
#include "analyze/walk/internal.h"

bool marey__tree_init(struct marey__tree *tree)
{
    *tree = (struct marey__tree){0};
    if (!marey__grow(&tree->nodes, &tree->cap, 1, sizeof *tree->nodes))
        return false;
    tree->nodes[0] = (struct marey__node){.name = MAREY__NO_NAME};
    tree->n = 1;
    return true;
}

void marey__tree_fini(struct marey__tree *tree)
{
    marey__free(tree->nodes);
    marey__key_map_fini(&tree->by_key);
    *tree = (struct marey__tree){0};
}

static bool is_outermost(const struct marey__tree *tree, uint32_t parent, uint32_t name)
{
    for (uint32_t node = parent; node != 0; node = tree->nodes[node].parent)
        if (tree->nodes[node].name == name)
            return false;
    return true;
}

uint32_t marey__tree_add(struct marey__tree *tree, uint32_t parent, uint32_t name, uint32_t other)
{
    if (tree->n >= MAREY__TREE_NODES && (parent != 0 || name != other))
        return marey__tree_child(tree, 0, other, other);
    const uint64_t key = marey__pair_key(name, parent);
    const uint32_t number = MAREY__MAP_ADD(&tree->by_key, tree->nodes, tree->n, tree->cap, key);
    if (number == 0)
        return 0;
    tree->nodes[number - 1].depth = tree->nodes[parent].depth + 1;
    tree->nodes[number - 1].is_outermost = is_outermost(tree, parent, name);
    return number - 1;
}

bool marey__tree_join(struct marey__tree *into, const struct marey__tree *tree,
                      const uint32_t *names, uint32_t other)
{
    uint32_t *map = marey__calloc(tree->n, sizeof *map);
    size_t i = 1;
    for (; map != NULL && i < tree->n; i++) {
        const struct marey__node *node = &tree->nodes[i];
        map[i] = marey__tree_child(into, map[node->parent], names[node->name], other);
        if (map[i] == 0)
            break;
        into->nodes[map[i]].count += node->count;
        into->nodes[map[i]].total_ns += node->total_ns;
        into->nodes[map[i]].self_ns += node->self_ns;
    }
    marey__free(map);
    return map != NULL && i == tree->n;
}

/* ---- order ---- */

struct ordering {
    const struct marey__tree *tree;
    marey__sibling_order *compare;
    const void *ctx;
};

static int by_parent_and_place(const void *a, const void *b, void *ctx)
{
    const struct ordering *by = ctx;
    const struct marey__node *x = &by->tree->nodes[*(const uint32_t *)a];
    const struct marey__node *y = &by->tree->nodes[*(const uint32_t *)b];
    if (x->parent != y->parent)
        return x->parent > y->parent ? 1 : -1;
    return by->compare(x, y, by->ctx);
}

/*
 * Depth first without recursion: `next[node]` is the index in `sorted` of the node's next child; the node is done when
 * that element has another parent.
 */
static void visit_in_order(const struct marey__tree *tree, const uint32_t *sorted, size_t n,
                           uint32_t *next, uint32_t *order)
{
    size_t n_visited = 0;
    memset(next, 0xff, tree->n * sizeof *next);
    for (size_t i = n; i-- > 0;)
        next[tree->nodes[sorted[i]].parent] = (uint32_t)i;
    for (uint32_t at = 0; n_visited < n;) {
        const uint32_t place = next[at];
        if (place < n && tree->nodes[sorted[place]].parent == at) {
            next[at]++;
            at = sorted[place];
            order[n_visited++] = at;
        } else {
            at = tree->nodes[at].parent;
        }
    }
}

size_t marey__tree_order(const struct marey__tree *tree, uint8_t *keep,
                         marey__sibling_order *compare, const void *ctx, uint32_t *order)
{
    struct ordering by = {tree, compare, ctx};
    uint32_t *sorted MAREY__FREED = marey__calloc(tree->n, sizeof *sorted);
    uint32_t *next MAREY__FREED = marey__calloc(tree->n, sizeof *next);
    size_t n = 0;
    if (sorted == NULL || next == NULL)
        return MAREY__NO_ORDER;
    for (size_t i = tree->n; i-- > 1;)
        keep[tree->nodes[i].parent] |= keep[i];
    for (size_t i = 1; i < tree->n; i++)
        if (keep[i])
            sorted[n++] = (uint32_t)i;
    qsort_r(sorted, n, sizeof *sorted, by_parent_and_place, &by);
    visit_in_order(tree, sorted, n, next, order);
    return n;
}
