/*
 * Paths and their nodes. A dictionary has keys, a list consecutive positions. A new value's path must be free; an empty
 * dictionary may be replaced. One hash table finds a child by its parent and key.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "instrument/dump/internal.h"

static uint32_t hash_part(uint32_t parent, const struct marey_dump_part *part)
{
    return (uint32_t)(part->key == NULL
                          ? marey__hash_bytes(parent, &part->index, sizeof part->index)
                          : marey__hash_bytes(~(uint64_t)parent, part->key, part->key_len));
}

static bool is_part(const struct marey_dump_part *a, const struct marey_dump_part *b)
{
    if (a->key == NULL || b->key == NULL)
        return a->key == b->key && a->index == b->index;
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

/* The number of a child; 0, the root's, if there is none. */
static uint32_t find_child(const struct marey__dump_tree *tree, uint32_t parent,
                           const struct marey_dump_part *part)
{
    const uint32_t hash = hash_part(parent, part);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&tree->by_part, hash, &at)) != 0;)
        if (tree->nodes[number].parent == parent && is_part(&tree->nodes[number].part, part))
            break;
    return number;
}

/* Makes room for `n` more nodes, and a root. */
static bool reserve(struct marey__dump_tree *tree, size_t n)
{
    if (!marey__grow(&tree->nodes, &tree->cap, tree->n + n + 1, sizeof *tree->nodes))
        return false;
    if (tree->n == 0)
        tree->nodes[tree->n++] = (struct marey__dump_node){.parent = MAREY__NO_NODE,
                                                           .first = MAREY__NO_NODE,
                                                           .last = MAREY__NO_NODE,
                                                           .next = MAREY__NO_NODE};
    return true;
}

/* Adds a child. The nodes have room; the tree owns the key. Returns 0 on out of memory. */
static uint32_t append(struct marey__dump_tree *tree, uint32_t parent, struct marey_dump_part part)
{
    const uint32_t number = (uint32_t)tree->n;
    struct marey__dump_node *const up = &tree->nodes[parent];
    if (!marey__index_put(&tree->by_part, hash_part(parent, &part), number))
        return 0;
    tree->nodes[tree->n++] = (struct marey__dump_node){.part = part,
                                                       .parent = parent,
                                                       .first = MAREY__NO_NODE,
                                                       .last = MAREY__NO_NODE,
                                                       .next = MAREY__NO_NODE,
                                                       .depth = up->depth + 1};
    if (up->n_children++ == 0)
        up->first = number;
    else
        tree->nodes[up->last].next = number;
    up->last = number;
    if (part.key == NULL)
        up->kind = MAREY__NODE_LIST;
    return number;
}

/* ---- the rules ---- */

static marey_status clash(const struct marey_dump_part *parts, size_t n_parts, const char *why)
{
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__name_put(&name, MAREY_DUMP_TENSORS, parts, n_parts);
    return marey__fail(MAREY_ESTATE, "'%.*s' cannot be added: %s",
                       (int)MAREY__MIN(name.len, (size_t)200), name.failed ? "" : name.data, why);
}

static bool read_position(const struct marey_dump_part *part, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < part->key_len; i++) {
        const unsigned digit = (unsigned)part->key[i] - '0';
        if (digit > 9 || *out > UINT32_MAX)
            return false;
        *out = *out * 10 + digit;
    }
    return part->key_len > 0;
}

/*
 * Resolves a part below `node`: to an existing child (`*child`) or a new one. In a list, a key of digits is a position.
 */
static const char *lead_on(const struct marey__dump_tree *tree, uint32_t number,
                           const struct marey_dump_part *part, uint32_t *child)
{
    const struct marey__dump_node *const node = &tree->nodes[number];
    struct marey_dump_part wanted = *part;
    *child = 0;
    if (node->kind == MAREY__NODE_LEAF)
        return "its path leads through a value that is not a dictionary or list";
    if (node->kind == MAREY__NODE_LIST && part->key != NULL) {
        wanted = (struct marey_dump_part){0};
        if (!read_position(part, &wanted.index) || wanted.index >= node->n_children)
            return "its path leads into a list by a key that is not a position in it";
    }
    if (node->kind == MAREY__NODE_DICT && part->key == NULL && (node->n_children > 0 || number == 0))
        return "its path leads into a dictionary by a position";
    if (wanted.key == NULL && wanted.index > node->n_children)
        return "positions in a list are added in order";
    *child = find_child(tree, number, &wanted);
    return NULL;
}

/* Whether a value of that kind can replace `node`. */
static const char *give_way(const struct marey__dump_node *node, enum marey_dump_kind kind)
{
    if (node->kind == MAREY__NODE_DICT && (node->n_children == 0 || kind == MAREY_DUMP_DICT))
        return NULL;
    if (node->kind == MAREY__NODE_DICT)
        return "there is a dictionary with values in it";
    return "something was added there already in this step; end the step with a dump or flush "
           "before adding it again";
}

/* Follows the path as far as it exists: `*i` parts. */
static const char *follow(const struct marey__dump_tree *tree, const struct marey_dump_part *parts,
                          size_t n_parts, uint32_t *at, size_t *i)
{
    const char *why = NULL;
    uint32_t child = 0;
    for (; *i < n_parts; ++*i, *at = child) {
        why = lead_on(tree, *at, &parts[*i], &child);
        if (why != NULL || child == 0)
            break;
    }
    /* Below a new node all nodes are new. */
    for (size_t below = *i + 1; why == NULL && below < n_parts; below++)
        if (parts[below].key == NULL && parts[below].index != 0)
            why = "positions in a list are added in order";
    return why;
}

static bool own_key(struct marey__dump_tree *tree, struct marey_dump_part *part)
{
    if (part->key != NULL)
        part->key = marey__arena_text(&tree->keys, part->key, part->key_len);
    else
        return true;
    return part->key != NULL;
}

marey_status marey__dump_tree_put(struct marey__dump_tree *tree, const struct marey_dump_part *parts,
                                  size_t n_parts, enum marey_dump_kind kind, uint32_t *node)
{
    uint32_t at = 0;
    size_t i = 0;
    MAREY__TRY_MEMORY(reserve(tree, n_parts));
    const char *why = n_parts == 0 ? "its path is empty" : follow(tree, parts, n_parts, &at, &i);
    if (why == NULL && i == n_parts)
        why = give_way(&tree->nodes[at], kind);
    if (why != NULL)
        return clash(parts, n_parts, why);
    for (; i < n_parts; i++) {
        struct marey_dump_part part = parts[i];
        MAREY__TRY_MEMORY(own_key(tree, &part));
        at = append(tree, at, part);
        MAREY__TRY_MEMORY(at != 0);
    }
    if (kind != MAREY_DUMP_DICT)
        tree->nodes[at].kind = kind == MAREY_DUMP_LIST ? MAREY__NODE_LIST : MAREY__NODE_LEAF;
    *node = at;
    return MAREY_OK;
}

void marey__dump_tree_path(const struct marey__dump_tree *tree, uint32_t node,
                           struct marey_dump_part *parts)
{
    for (size_t i = tree->nodes[node].depth; i-- > 0; node = tree->nodes[node].parent)
        parts[i] = tree->nodes[node].part;
}

void marey__dump_tree_fini(struct marey__dump_tree *tree)
{
    marey__free(tree->nodes);
    marey__index_fini(&tree->by_part);
    marey__arena_fini(&tree->keys);
    *tree = (struct marey__dump_tree){0};
}
