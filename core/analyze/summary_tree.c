/* The table of the call tree: depth first, the heaviest child first. */
#include <string.h>

#include "analyze/analyze_internal.h"

const struct kymo_column kymo__tree_columns[KYMO__N_TREE_COLUMNS] = {
    {"depth", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("self_ns", "self"),
    KYMO__SHARE_COLUMN,
};

/* A node as it is put in order: below its parent, heaviest first. */
struct placed {
    uint64_t total_ns;
    uint32_t node, parent, name;
};

static int by_parent_and_weight(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent > y->parent ? 1 : -1;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static void put_node(kymo_table *table, const struct kymo__making *m, const struct kymo__node *node)
{
    kymo_table_u64(table, node->depth - 1);
    kymo__put_name(table, m, node->name);
    kymo_table_u64(table, node->count);
    kymo_table_u64(table, node->total_ns);
    kymo_table_u64(table, node->self_ns);
    kymo__put_share(table, node->total_ns, m->cost->program_ns);
}

/* Nodes that were counted and pass the filter, or that lead to one that does, in order. */
static size_t place_nodes(const struct kymo__making *m, struct placed *placed, uint8_t *keep)
{
    const struct kymo__tree *tree = &m->merge->tree;
    for (size_t i = tree->n; i-- > 1;) {
        keep[i] |= tree->nodes[i].count != 0 && kymo__is_wanted(m, tree->nodes[i].name);
        keep[tree->nodes[i].parent] |= keep[i];
    }
    size_t n = 0;
    for (size_t i = 1; i < tree->n; i++) {
        const struct kymo__node *node = &tree->nodes[i];
        if (keep[i])
            placed[n++] = (struct placed){node->total_ns, (uint32_t)i, node->parent, node->name};
    }
    qsort(placed, n, sizeof *placed, by_parent_and_weight);
    return n;
}

/*
 * Depth first without recursion: `next[node]` is the place of the child to be drawn next, and a
 * node is left when that place holds somebody else's child.
 */
static void draw_tree(kymo_table *table, const struct kymo__making *m, const struct placed *placed,
                      size_t n, uint32_t *next)
{
    const struct kymo__tree *tree = &m->merge->tree;
    memset(next, 0xff, tree->n * sizeof *next);
    for (size_t i = n; i-- > 0;)
        next[placed[i].parent] = (uint32_t)i;
    for (uint32_t at = 0;;) {
        const uint32_t child = next[at];
        if (child < n && placed[child].parent == at) {
            next[at]++;
            at = placed[child].node;
            put_node(table, m, &tree->nodes[at]);
        } else if (at == 0) {
            return;
        } else {
            at = tree->nodes[at].parent;
        }
    }
}

kymo_status kymo__fill_tree(kymo_table *table, const struct kymo__making *m)
{
    const size_t n_nodes = m->merge->tree.n;
    struct placed *placed = kymo__calloc(n_nodes, sizeof *placed);
    uint8_t *keep = kymo__calloc(n_nodes, sizeof *keep);
    uint32_t *next = kymo__calloc(n_nodes, sizeof *next);
    const bool has_memory = placed != NULL && keep != NULL && next != NULL;
    if (has_memory)
        draw_tree(table, m, placed, place_nodes(m, placed, keep), next);
    kymo__free(placed);
    kymo__free(keep);
    kymo__free(next);
    return has_memory ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the call tree");
}
