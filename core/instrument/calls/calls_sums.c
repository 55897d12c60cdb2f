/*
 * Sums over paths: by function, and by function and caller. The walk counts how often a row is open, to detect
 * recursion.
 */
#include <string.h>

#include "base/internal.h"
#include "instrument/calls/internal.h"

/* A row under construction. */
struct row {
    struct marey_calls_row sums;
    uint32_t n_open; /* on the current path of the walk */
};

struct row_set {
    struct row *rows;
    size_t n, cap;
    struct marey__key_map by_names;
};

/* A node of any thread; parents precede their children. */
struct visit {
    const struct marey__calls_node *node;
    uint32_t parent, first_child, next_sibling; /* 1-based; 0: none */
    uint32_t row, pair;                         /* 1-based; 0: none */
};

struct walk {
    struct visit *visits;
    size_t n;
    struct row_set functions, pairs;
    bool by_signature;
};

/* The 1-based number of the row with the names of `key`; 0 on out of memory. */
static uint32_t row_of(struct row_set *set, const struct marey_calls_row *key)
{
    return marey__key_map_number(&set->by_names, &set->rows, &set->n, &set->cap, sizeof *set->rows,
                                 key, offsetof(struct marey_calls_row, calls));
}

/* ---- the tree as an array ---- */

/* `places` maps a node's number to its index. */
static marey_status gather_nodes(struct marey_calls *calls, struct walk *walk, uint32_t *places)
{
    size_t n = 0;
    for (const struct marey_calls_thread *t = calls->threads; t != NULL; t = t->next)
        n += (size_t)t->n_nodes;
    walk->visits = marey__calloc(n + 1, sizeof *walk->visits);
    MAREY__TRY_MEMORY(walk->visits != NULL && places != NULL);
    for (const struct marey_calls_thread *t = calls->threads; t != NULL; t = t->next) {
        uint64_t left = t->n_nodes;
        for (const struct marey__calls_chunk *chunk = t->chunks; left > 0; chunk = chunk->next)
            for (size_t i = 0; i < MAREY__CALLS_CHUNK && left > 0; i++, left--) {
                const struct marey__calls_node *const node = &chunk->nodes[i];
                walk->visits[walk->n++].node = node;
                places[node->number] = (uint32_t)walk->n;
            }
    }
    return MAREY_OK;
}

static struct marey_calls_row key_of(const struct walk *walk, const struct visit *visit)
{
    const struct visit *const caller = visit->parent != 0 ? &walk->visits[visit->parent - 1] : NULL;
    struct marey_calls_row key = {.function = visit->node->function};
    if (walk->by_signature)
        key.signature = visit->node->signature;
    if (caller != NULL) {
        key.caller_function = caller->node->function;
        if (walk->by_signature)
            key.caller_signature = caller->node->signature;
    }
    return key;
}

/* Links children to parents, and nodes to rows. */
static marey_status link_nodes(struct walk *walk, const uint32_t *places, uint32_t *first_root)
{
    for (size_t i = walk->n; i > 0; i--) {
        struct visit *const visit = &walk->visits[i - 1];
        visit->parent = places[visit->node->parent];
        uint32_t *const head =
            visit->parent != 0 ? &walk->visits[visit->parent - 1].first_child : first_root;
        visit->next_sibling = *head;
        *head = (uint32_t)i;
    }
    for (size_t i = 0; i < walk->n; i++) {
        struct visit *const visit = &walk->visits[i];
        struct marey_calls_row key = key_of(walk, visit);
        const bool has_caller = key.caller_function != 0;
        if (has_caller && (visit->pair = row_of(&walk->pairs, &key)) == 0)
            return marey__no_memory();
        key.caller_function = key.caller_signature = 0;
        if ((visit->row = row_of(&walk->functions, &key)) == 0)
            return marey__no_memory();
    }
    return MAREY_OK;
}

/* ---- the walk ---- */

static void add(struct row *row, const struct marey__calls_sums *sums)
{
    row->sums.calls += sums->calls;
    row->sums.resumes += sums->resumes;
    row->sums.self += sums->self;
    if (row->n_open++ == 0)
        row->sums.total += sums->total;
    else
        row->sums.recursive += sums->calls;
}

static void enter(struct walk *walk, const struct visit *visit)
{
    add(&walk->functions.rows[visit->row - 1], &visit->node->sums);
    if (visit->pair != 0)
        add(&walk->pairs.rows[visit->pair - 1], &visit->node->sums);
}

static void leave(struct walk *walk, const struct visit *visit)
{
    walk->functions.rows[visit->row - 1].n_open--;
    if (visit->pair != 0)
        walk->pairs.rows[visit->pair - 1].n_open--;
}

static void walk_from(struct walk *walk, uint32_t at)
{
    while (at != 0) {
        const struct visit *visit = &walk->visits[at - 1];
        enter(walk, visit);
        if (visit->first_child != 0) {
            at = visit->first_child;
            continue;
        }
        for (;;) {
            leave(walk, visit);
            at = visit->next_sibling;
            if (at != 0 || visit->parent == 0)
                break;
            visit = &walk->visits[visit->parent - 1];
        }
    }
}

/* Moves the non-empty rows' sums to an array. */
static struct marey_calls_row *take_rows(struct row_set *set, size_t *n)
{
    struct marey_calls_row *const out = marey__calloc(set->n + 1, sizeof *out);
    for (size_t i = 0; out != NULL && i < set->n; i++)
        if (set->rows[i].sums.calls != 0)
            out[(*n)++] = set->rows[i].sums;
    return out;
}

/* Caller holds the lock. */
static marey_status add_up(struct marey_calls *calls, struct walk *walk, struct marey_calls_rows *out)
{
    uint32_t *const places MAREY__FREED = marey__calloc((size_t)calls->last_node + 1, sizeof *places);
    uint32_t first_root = 0;
    MAREY_TRY(gather_nodes(calls, walk, places));
    MAREY_TRY(link_nodes(walk, places, &first_root));
    walk_from(walk, first_root);
    out->functions = take_rows(&walk->functions, &out->n_functions);
    out->pairs = take_rows(&walk->pairs, &out->n_pairs);
    return out->functions != NULL && out->pairs != NULL ? MAREY_OK : marey__no_memory();
}

static void walk_fini(struct walk *walk)
{
    MAREY__FREE_ALL(walk->visits, walk->functions.rows);
    marey__key_map_fini(&walk->functions.by_names);
    marey__free(walk->pairs.rows);
    marey__key_map_fini(&walk->pairs.by_names);
}

marey_status marey_calls_rows_init(struct marey_calls *calls, int by_signature,
                                   struct marey_calls_rows *out)
{
    struct walk walk MAREY__FINALLY(walk_fini) = {.by_signature = by_signature != 0};
    struct marey_calls_rows rows MAREY__FINALLY(marey_calls_rows_fini) = {0};
    MAREY__HOLD(&calls->lock);
    MAREY_TRY(add_up(calls, &walk, &rows));
    *out = rows;
    rows = (struct marey_calls_rows){0};
    return MAREY_OK;
}

void marey_calls_rows_fini(struct marey_calls_rows *rows)
{
    MAREY__FREE_ALL(rows->functions, rows->pairs);
    *rows = (struct marey_calls_rows){0};
}
