/* The table of the call tree: depth first, the heaviest child first. */
#include "analyze/analyze_internal.h"

const struct kymo_column kymo__tree_columns[KYMO__N_TREE_COLUMNS] = {
    {"depth", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("self_ns", "self"),
    KYMO__SHARE_COLUMN("of run"),
};

static int heaviest_first(const struct kymo__node *a, const struct kymo__node *b, const void *ctx)
{
    const struct kymo__merge *merge = ctx;
    if (a->total_ns != b->total_ns)
        return a->total_ns < b->total_ns ? 1 : -1;
    return kymo__names_compare(&merge->names, a->name, b->name);
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

/* Nodes that were counted, pass the filter and are not too deep; those that lead to one come along. */
static void choose_nodes(const struct kymo__making *m, uint8_t *keep)
{
    const struct kymo__tree *tree = &m->merge->tree;
    for (size_t i = 1; i < tree->n; i++)
        keep[i] = (tree->nodes[i].count != 0 || tree->nodes[i].total_ns != 0) &&
                  (m->max_depth == 0 || tree->nodes[i].depth <= m->max_depth) &&
                  kymo__is_wanted(m, tree->nodes[i].name);
}

kymo_status kymo__fill_tree(kymo_table *table, const struct kymo__making *m)
{
    const struct kymo__tree *tree = &m->merge->tree;
    uint8_t *keep = kymo__calloc(tree->n, sizeof *keep);
    uint32_t *order = kymo__calloc(tree->n, sizeof *order);
    size_t n = KYMO__NO_ORDER;
    if (keep != NULL && order != NULL) {
        choose_nodes(m, keep);
        n = kymo__tree_order(tree, keep, heaviest_first, m->merge, order);
    }
    for (size_t i = 0; n != KYMO__NO_ORDER && i < n; i++)
        put_node(table, m, &tree->nodes[order[i]]);
    kymo__free(keep);
    kymo__free(order);
    return n != KYMO__NO_ORDER ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the call tree");
}
