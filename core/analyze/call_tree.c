/* The call tree: an array of nodes, parents first, and a hash table from (parent, name) to node. */
#include <string.h>

#include "analyze/analyze_internal.h"

enum { FIRST_SLOTS_LOG2 = 5 };

static bool make_slots(struct kymo__tree *tree, uint32_t log2)
{
    uint32_t *slots = kymo__calloc((size_t)1 << log2, sizeof *slots);
    if (slots == NULL)
        return false;
    kymo__free(tree->slots);
    tree->slots = slots;
    tree->n_slots_log2 = log2;
    return true;
}

bool kymo__tree_init(struct kymo__tree *tree)
{
    *tree = (struct kymo__tree){0};
    if (!kymo__grow(&tree->nodes, &tree->cap, 1, sizeof *tree->nodes) ||
        !make_slots(tree, FIRST_SLOTS_LOG2)) {
        kymo__tree_fini(tree);
        return false;
    }
    tree->nodes[0] = (struct kymo__node){.name = KYMO__NO_NAME};
    tree->n = 1;
    return true;
}

void kymo__tree_fini(struct kymo__tree *tree)
{
    kymo__free(tree->nodes);
    kymo__free(tree->slots);
    *tree = (struct kymo__tree){0};
}

static void enter(struct kymo__tree *tree, uint32_t node)
{
    const size_t mask = ((size_t)1 << tree->n_slots_log2) - 1;
    size_t slot = kymo__tree_slot(tree, tree->nodes[node].parent, tree->nodes[node].name);
    while (tree->slots[slot] != 0)
        slot = (slot + 1) & mask;
    tree->slots[slot] = node;
}

static bool is_outermost(const struct kymo__tree *tree, uint32_t parent, uint32_t name)
{
    for (uint32_t node = parent; node != 0; node = tree->nodes[node].parent)
        if (tree->nodes[node].name == name)
            return false;
    return true;
}

uint32_t kymo__tree_add(struct kymo__tree *tree, uint32_t parent, uint32_t name, uint32_t other)
{
    if (tree->n >= KYMO__TREE_NODES && (parent != 0 || name != other))
        return kymo__tree_child(tree, 0, other, other);
    if (!kymo__grow(&tree->nodes, &tree->cap, tree->n + 1, sizeof *tree->nodes))
        return 0;
    if ((tree->n + 1) * 2 > (size_t)1 << tree->n_slots_log2) {
        if (!make_slots(tree, tree->n_slots_log2 + 1))
            return 0;
        for (size_t i = 1; i < tree->n; i++)
            enter(tree, (uint32_t)i);
    }
    const uint32_t node = (uint32_t)tree->n++;
    tree->nodes[node] = (struct kymo__node){
        .name = name,
        .parent = parent,
        .depth = tree->nodes[parent].depth + 1,
        .is_outermost = is_outermost(tree, parent, name),
    };
    enter(tree, node);
    return node;
}
