/* The table of the call tree: depth first, the heaviest child first. */
#include "analyze/summary/internal.h"

static int heaviest_first(const struct marey__node *a, const struct marey__node *b, const void *ctx)
{
    const struct marey__merge *merge = ctx;
    if (a->total_ns != b->total_ns)
        return a->total_ns < b->total_ns ? 1 : -1;
    return marey__names_compare(&merge->names, a->name, b->name);
}

/* Select nodes that were counted, pass the filter and are not too deep, and their ancestors. */
static void choose_nodes(const struct marey__table_context *m, uint8_t *keep)
{
    const struct marey__tree *tree = &m->merge->tree;
    for (size_t i = 1; i < tree->n; i++)
        keep[i] = (tree->nodes[i].count != 0 || tree->nodes[i].total_ns != 0) &&
                  (m->max_depth == 0 || tree->nodes[i].depth <= m->max_depth) &&
                  marey__is_wanted(m, tree->nodes[i].name);
}

void marey__fill_tree(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__tree *tree = &m->merge->tree;
    uint8_t *const keep MAREY__FREED = marey__calloc(tree->n, sizeof *keep);
    uint32_t *const order MAREY__FREED = marey__calloc(tree->n, sizeof *order);
    size_t n = MAREY__NO_ORDER;
    if (keep != NULL && order != NULL) {
        choose_nodes(m, keep);
        n = marey__tree_order(tree, keep, heaviest_first, m->merge, order);
    }
    for (size_t i = 0; n != MAREY__NO_ORDER && i < n; i++) {
        const struct marey__node *const node = &tree->nodes[order[i]];
        MAREY__PUT_ROW(table, U64(node->depth - 1), NAMED(m, node->name), U64(node->count),
                       U64(node->total_ns), U64(node->self_ns),
                       RATIO(node->total_ns, m->cost->program_ns));
    }
    *m->failed |= n == MAREY__NO_ORDER;
}
