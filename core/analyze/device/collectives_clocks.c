/*
 * The clocks of several machines, brought together by what their ranks did together.
 *
 *   node a   ──────[ E_a ............ L_a ]──        nobody leaves before the last has come, so
 *   node b   ────────────[ E_b ..... L_b ]───        L_a >= E_b + d   and   L_b + d >= E_a
 *
 * E is the latest begin on a node, L the earliest end, each by its own clock; d is to be added to b's clock to have a's.
 * Each collective over both leaves d between two bounds, many leave it between close ones: the middle is taken, and
 * half their distance is how far off it can be. Where bounds contradict one another, clocks have drifted apart while the
 * program ran, and half the contradiction is how far.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/device/internal.h"

/* A machine, and what is known of its clock against that of the first one. */
struct node {
    const char *host;
    uint64_t latest_begin, earliest_end; /* of the collective at hand */
    bool is_in;                          /* in it */
    int64_t at_least, at_most;
    uint64_t n; /* collectives with the first one */
};

/* Fewer say little: how long one takes is how far off it leaves the clocks. */
enum { FEWEST = 8 };

struct aligning {
    struct marey__collectives *all;
    struct node *nodes;
    size_t n_nodes;
    uint32_t *node_of; /* by member */
};

/* Nobody leaves these before all have come. Of others, a scan among them, one rank may leave early. */
static bool is_for_all(enum marey_collective what)
{
    return what == MAREY_COLLECTIVE_ALL_REDUCE || what == MAREY_COLLECTIVE_ALL_GATHER ||
           what == MAREY_COLLECTIVE_REDUCE_SCATTER || what == MAREY_COLLECTIVE_ALL_TO_ALL ||
           what == MAREY_COLLECTIVE_BARRIER;
}

/* ---- nodes ---- */

static int by_host(const void *a, const void *b, void *ctx)
{
    const struct marey__member *members = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int order = strcmp(members[x].process->host, members[y].process->host);
    return order != 0 ? order : (x > y) - (x < y);
}

static bool find_nodes(struct aligning *a)
{
    struct marey__collectives *all = a->all;
    uint32_t *order = marey__calloc(all->n_members, sizeof *order);
    a->nodes = marey__calloc(all->n_members, sizeof *a->nodes);
    a->node_of = marey__calloc(all->n_members, sizeof *a->node_of);
    const bool has_memory = order != NULL && a->nodes != NULL && a->node_of != NULL;
    for (uint32_t i = 0; has_memory && i < all->n_members; i++)
        order[i] = i;
    if (has_memory)
        qsort_r(order, all->n_members, sizeof *order, by_host, all->members);
    for (size_t i = 0; has_memory && i < all->n_members; i++) {
        const char *host = all->members[order[i]].process->host;
        if (i == 0 || strcmp(host, a->nodes[a->n_nodes - 1].host) != 0)
            a->nodes[a->n_nodes++] =
                (struct node){.host = host, .at_least = INT64_MIN, .at_most = INT64_MAX};
        a->node_of[order[i]] = (uint32_t)(a->n_nodes - 1);
    }
    marey__free(order);
    return has_memory;
}

/* ---- bounds ---- */

static void take_call(struct aligning *a, const struct marey__rank_call *call)
{
    struct node *node = &a->nodes[a->node_of[call->member]];
    node->latest_begin =
        node->is_in ? MAREY__MAX(node->latest_begin, call->begin_ns) : call->begin_ns;
    node->earliest_end = node->is_in ? MAREY__MIN(node->earliest_end, call->end_ns) : call->end_ns;
    node->is_in = true;
}

static void take_match(struct aligning *a, const struct marey__rank_call *calls, size_t n)
{
    const struct node *first = &a->nodes[0];
    if (n < 2 || !is_for_all(a->all->kinds[calls[0].kind].collective))
        return;
    for (size_t i = 0; i < n; i++)
        take_call(a, &calls[i]);
    for (size_t i = 0; i < n; i++) {
        struct node *node = &a->nodes[a->node_of[calls[i].member]];
        if (node != first && node->is_in && first->is_in) {
            const int64_t least = (int64_t)(first->latest_begin - node->earliest_end),
                          most = (int64_t)(first->earliest_end - node->latest_begin);
            node->at_least = MAREY__MAX(node->at_least, least);
            node->at_most = MAREY__MIN(node->at_most, most);
            node->n++;
        }
        if (node != first)
            node->is_in = false; /* once for a node */
    }
    a->nodes[0].is_in = false;
}

/* ---- the whole ---- */

static bool is_one_job(const struct marey__collectives *all)
{
    for (size_t i = 1; i < all->n_members; i++)
        if (all->members[i].job != all->members[0].job)
            return false;
    return true;
}

static bool shift(struct aligning *a)
{
    struct marey__collectives *all = a->all;
    uint64_t worst_ns = 0, n = UINT64_MAX;
    for (size_t i = 1; i < a->n_nodes; i++) {
        const struct node *node = &a->nodes[i];
        if (node->n < FEWEST)
            return false;
        const uint64_t apart = node->at_most > node->at_least
                                   ? (uint64_t)node->at_most - (uint64_t)node->at_least
                                   : (uint64_t)node->at_least - (uint64_t)node->at_most;
        worst_ns = MAREY__MAX(worst_ns, apart / 2 + 1);
        n = MAREY__MIN(n, node->n);
        all->alignment.has_drifted |= node->at_least > node->at_most;
    }
    for (size_t i = 0; i < all->n_members; i++) {
        const struct node *node = &a->nodes[a->node_of[i]];
        all->members[i].shift_ns = node == &a->nodes[0] ? 0 : node->at_least / 2 + node->at_most / 2;
    }
    all->alignment.n_nodes = a->n_nodes;
    all->alignment.n_aligned_by = n;
    all->alignment.uncertainty_ns = worst_ns;
    return true;
}

marey_status marey__collectives_align(struct marey__collectives *all)
{
    struct aligning a = {.all = all};
    bool has_memory = find_nodes(&a);
    for (size_t i = 0; has_memory && i < all->n_calls;) {
        const size_t n = marey__collective_length(all, i);
        take_match(&a, &all->calls[i], n);
        i += n;
    }
    /* Hosts that have no name may be one machine or several; and between jobs a machine may have been started anew. */
    if (has_memory && is_one_job(all) && a.n_nodes > 1 && a.nodes[0].host[0] != '\0' && shift(&a))
        all->clocks = MAREY__CLOCKS_ALIGNED;
    marey__free(a.nodes);
    marey__free(a.node_of);
    return has_memory ? MAREY_OK : marey__no_memory();
}
