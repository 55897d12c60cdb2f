/* Matches calls of different ranks to collectives, and finds who waited for whom. */
#include "analyze/device/internal.h"

#define YEAR_2000_NS (UINT64_C(946684800) * 1000000000)

/* ---- clocks ---- */

/* A process's timestamp on the common clock, if there is one. */
static uint64_t common_ns(const struct marey__collectives *all, const struct marey__rank_call *call,
                          uint64_t ns)
{
    const struct marey__member *member = &all->members[call->member];
    return all->clocks == MAREY__CLOCKS_WALL ? ns + (uint64_t)member->process->mono_to_unix_ns
                                             : ns + (uint64_t)member->shift_ns;
}

static enum marey__clocks find_clocks(const struct marey__collectives *all)
{
    bool is_same = true, is_wall = true;
    for (size_t i = 0; i < all->n_members; i++) {
        const struct marey_process *process = all->members[i].process;
        const char *host = process->host;
        is_same &= host[0] != '\0' && strcmp(host, all->members[0].process->host) == 0;
        is_wall &= process->first_ns + (uint64_t)process->mono_to_unix_ns > YEAR_2000_NS;
    }
    return is_same ? MAREY__CLOCKS_SAME : is_wall ? MAREY__CLOCKS_WALL : MAREY__CLOCKS_APART;
}

/* ---- matching ---- */

MAREY__ORDER(by_rank, struct marey__rank_call,
             MAREY__UP(kind) MAREY__UP(member) MAREY__UP(sequence) MAREY__UP(begin_ns)
                 MAREY__UP(end_ns))

static void number_turns(struct marey__collectives *all)
{
    struct marey__rank_call *calls = all->calls;
    qsort(calls, all->n_calls, sizeof *calls, by_rank);
    for (size_t i = 1; i < all->n_calls; i++)
        if (calls[i].kind == calls[i - 1].kind && calls[i].member == calls[i - 1].member &&
            calls[i].sequence == calls[i - 1].sequence)
            calls[i].turn = calls[i - 1].turn + 1;
}

/* Compares everything but the rank: equal calls are one collective. */
static int compare_call(const struct marey__collectives *all, const struct marey__rank_call *x,
                        const struct marey__rank_call *y)
{
    MAREY__UP(kind)
    MAREY__UP_BY(all->members[x->member].job, all->members[y->member].job)
    MAREY__UP(sequence)
    MAREY__UP(turn)
    return 0;
}

static int by_collective(const void *a, const void *b, void *all)
{
    const struct marey__rank_call *x = a, *y = b;
    MAREY__UP_BY(compare_call(all, x, y), 0)
    MAREY__UP(member)
    return 0;
}

/* The calls of one collective. */
struct match {
    struct marey__rank_call *calls;
    size_t n;
};

/* The collective that starts at calls[i]. */
static struct match match_at(const struct marey__collectives *all, size_t i)
{
    struct match match = {&all->calls[i], 1};
    while (i + match.n < all->n_calls && compare_call(all, match.calls, &match.calls[match.n]) == 0)
        match.n++;
    return match;
}

/* Whether no rank can leave before all have arrived. In others, such as a scan, a rank may leave early. */
static bool is_for_all(enum marey_collective what)
{
    return what == MAREY_COLLECTIVE_ALL_REDUCE || what == MAREY_COLLECTIVE_ALL_GATHER ||
           what == MAREY_COLLECTIVE_REDUCE_SCATTER || what == MAREY_COLLECTIVE_ALL_TO_ALL ||
           what == MAREY_COLLECTIVE_BARRIER;
}

/* ---- clocks of several machines ---- */

/*
 * Aligns clocks by the collectives of their ranks.
 *
 *   node a   ──────[ E_a ............ L_a ]──        no rank leaves before the last has arrived, so
 *   node b   ────────────[ E_b ..... L_b ]───        L_a >= E_b + d   and   L_b + d >= E_a
 *
 * E is the latest begin on a node, L the earliest end, by its own clock; adding d to b's clock gives a's.
 * Each collective over both nodes gives two bounds for d, and many collectives give close bounds: the result is their
 * middle, with half their distance as the uncertainty. If bounds contradict one another, clocks have drifted during the
 * run, and half the contradiction is the uncertainty.
 */

/* A machine, and the relation of its clock to the first machine's. */
struct node {
    const char *host;
    uint64_t latest_begin, earliest_end; /* of the current collective */
    bool is_in;                          /* takes part in it */
    int64_t at_least, at_most;
    uint64_t n; /* collectives shared with the first machine */
};

/* With fewer collectives, the uncertainty is too large. */
enum { FEWEST = 8 };

struct aligning {
    struct marey__collectives *all;
    struct node *nodes;
    size_t n_nodes;
    uint32_t *node_of; /* by member */
};

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
    uint32_t *const order MAREY__FREED = marey__calloc(all->n_members, sizeof *order);
    a->nodes = marey__calloc(all->n_members, sizeof *a->nodes);
    a->node_of = marey__calloc(all->n_members, sizeof *a->node_of);
    if (order == NULL || a->nodes == NULL || a->node_of == NULL)
        return false;
    for (uint32_t i = 0; i < all->n_members; i++)
        order[i] = i;
    qsort_r(order, all->n_members, sizeof *order, by_host, all->members);
    for (size_t i = 0; i < all->n_members; i++) {
        const char *host = all->members[order[i]].process->host;
        if (i == 0 || strcmp(host, a->nodes[a->n_nodes - 1].host) != 0)
            a->nodes[a->n_nodes++] =
                (struct node){.host = host, .at_least = INT64_MIN, .at_most = INT64_MAX};
        a->node_of[order[i]] = (uint32_t)(a->n_nodes - 1);
    }
    return true;
}

static void take_bounds(struct aligning *a, const struct marey__rank_call *call)
{
    struct node *node = &a->nodes[a->node_of[call->member]];
    node->latest_begin =
        node->is_in ? MAREY__MAX(node->latest_begin, call->begin_ns) : call->begin_ns;
    node->earliest_end = node->is_in ? MAREY__MIN(node->earliest_end, call->end_ns) : call->end_ns;
    node->is_in = true;
}

static void bound_by(struct aligning *a, const struct marey__rank_call *calls, size_t n)
{
    const struct node *first = &a->nodes[0];
    if (n < 2 || !is_for_all(a->all->kinds[calls[0].kind].collective))
        return;
    for (size_t i = 0; i < n; i++)
        take_bounds(a, &calls[i]);
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
            node->is_in = false; /* once per node */
    }
    a->nodes[0].is_in = false;
}

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

static void aligning_fini(struct aligning *a)
{
    MAREY__FREE_ALL(a->nodes, a->node_of);
}

static marey_status align(struct marey__collectives *all)
{
    struct aligning a MAREY__FINALLY(aligning_fini) = {.all = all};
    MAREY__TRY_MEMORY(find_nodes(&a));
    for (size_t i = 0; i < all->n_calls;) {
        const struct match match = match_at(all, i);
        bound_by(&a, match.calls, match.n);
        i += match.n;
    }
    /* Unnamed hosts may be one machine or several, and a machine may have been rebooted between jobs. */
    if (is_one_job(all) && a.n_nodes > 1 && a.nodes[0].host[0] != '\0' && shift(&a))
        all->clocks = MAREY__CLOCKS_ALIGNED;
    return MAREY_OK;
}

/* ---- one collective ---- */

struct times {
    uint64_t transfer_ns;       /* of the shortest call */
    uint64_t first_ns, last_ns; /* of the begins */
    uint64_t first_end_ns;
    uint64_t sum_ns, bytes;
    const struct marey__rank_call *last; /* the last to arrive */
};

static uint64_t duration_of(const struct marey__rank_call *call)
{
    return call->end_ns - call->begin_ns;
}

static struct times look_at(const struct marey__collectives *all, const struct match *match)
{
    struct times t = {.transfer_ns = UINT64_MAX, .first_ns = UINT64_MAX, .first_end_ns = UINT64_MAX};
    for (size_t i = 0; i < match->n; i++) {
        const struct marey__rank_call *call = &match->calls[i];
        const uint64_t begin = common_ns(all, call, call->begin_ns), ns = duration_of(call);
        /* Unaligned clocks may make a rank seem late, but its duration is measured by one clock. */
        const bool is_later =
            all->clocks == MAREY__CLOCKS_SAME ? begin > t.last_ns : ns < t.transfer_ns;
        if (t.last == NULL || is_later)
            t.last = call;
        t.transfer_ns = MAREY__MIN(t.transfer_ns, ns);
        t.first_ns = MAREY__MIN(t.first_ns, begin);
        t.last_ns = MAREY__MAX(t.last_ns, begin);
        t.first_end_ns = MAREY__MIN(t.first_end_ns, common_ns(all, call, call->end_ns));
        t.sum_ns += ns;
        t.bytes = MAREY__MAX(t.bytes, call->bytes);
    }
    return t;
}

static void take_match(struct marey__collectives *all, struct match *match)
{
    struct marey__collective_kind *kind = &all->kinds[match->calls[0].kind];
    if (match->n == 1) {
        kind->n_lone++;
        return;
    }
    const struct times t = look_at(all, match);
    const bool has_clocks = all->clocks != MAREY__CLOCKS_APART;
    kind->n_matched++;
    kind->n_short += match->n < kind->n_ranks;
    kind->bytes += t.bytes;
    kind->transfer_ns += t.transfer_ns;
    kind->wait_ns += (double)t.sum_ns / (double)match->n - (double)t.transfer_ns;
    if (t.bytes != 0 && t.transfer_ns != 0) {
        kind->timed_bytes += t.bytes;
        kind->timed_ns += t.transfer_ns;
    }
    kind->skew_ns += has_clocks ? t.last_ns - t.first_ns : 0;
    const bool is_joint = is_for_all(kind->collective) || kind->collective == MAREY_COLLECTIVE_OTHER;
    kind->n_apart += has_clocks && is_joint && t.last_ns >= t.first_end_ns;
    for (size_t i = 0; i < match->n; i++) {
        struct marey__rank_call *call = &match->calls[i];
        call->is_matched = true;
        call->wait_ns = duration_of(call) - t.transfer_ns;
        call->late_ns = has_clocks ? common_ns(all, call, call->begin_ns) - t.first_ns : 0;
        call->is_last = call == t.last;
        call->held_ns = call->is_last ? t.sum_ns - match->n * t.transfer_ns : 0;
        call->is_first = has_clocks && call->late_ns == 0;
    }
}

/* ---- sums per rank ---- */

/* Sum up the calls from calls[i] on with one kind and member; returns how many. */
static size_t sum_up(struct marey__collectives *all, size_t i, struct marey__member_sum *sum)
{
    const struct marey__rank_call *first = &all->calls[i];
    size_t n = 0;
    *sum =
        (struct marey__member_sum){.member = first->member, .group = all->kinds[first->kind].group};
    for (; i + n < all->n_calls; n++) {
        const struct marey__rank_call *call = &first[n];
        if (call->kind != first->kind || call->member != first->member)
            break;
        const uint64_t ns = duration_of(call);
        sum->n_calls++;
        sum->n_between_two += all->kinds[call->kind].is_between_two;
        sum->ns += ns;
        if (!call->is_matched)
            continue;
        sum->n_matched++;
        sum->wait_ns += call->wait_ns;
        sum->transfer_ns += ns - call->wait_ns;
        sum->late_ns += call->late_ns;
        sum->held_ns += call->held_ns;
        sum->n_first += call->is_first;
        sum->n_last += call->is_last;
    }
    return n;
}

MAREY__ORDER(by_member, struct marey__member_sum, MAREY__UP(member) MAREY__UP(group))

/* Merge sums of different kinds in one group. */
static void unite_sums(struct marey__collectives *all)
{
    size_t n = 0;
    qsort(all->sums, all->n_sums, sizeof *all->sums, by_member);
    for (size_t i = 0; i < all->n_sums; i++) {
        struct marey__member_sum *sum = n != 0 ? &all->sums[n - 1] : NULL;
        const struct marey__member_sum *other = &all->sums[i];
        if (sum == NULL || by_member(sum, other) != 0) {
            all->sums[n++] = *other;
            continue;
        }
        for (size_t k = 0; k < MAREY__COUNT_OF(sum->sums); k++)
            sum->sums[k] += other->sums[k];
    }
    all->n_sums = n;
}

/* By time instead of count: being last by a microsecond is chance, being last by a second has a cause. */
static void take_slowest(struct marey__collective_kind *kind, const struct marey__member_sum *sum)
{
    const bool is_more = sum->held_ns != kind->slowest_held_ns ? sum->held_ns > kind->slowest_held_ns
                                                               : sum->n_last > kind->n_slowest;
    if (!is_more)
        return;
    kind->slowest = sum->member;
    kind->n_slowest = sum->n_last;
    kind->slowest_held_ns = sum->held_ns;
}

static bool sum_members(struct marey__collectives *all)
{
    struct marey__member_sum sum;
    qsort(all->calls, all->n_calls, sizeof *all->calls, by_rank);
    for (size_t i = 0; i < all->n_calls;) {
        struct marey__collective_kind *kind = &all->kinds[all->calls[i].kind];
        i += sum_up(all, i, &sum);
        take_slowest(kind, &sum);
        if (!MAREY__PUSH(all->sums, all->n_sums, all->sums_cap, sum))
            return false;
    }
    if (all->n_sums != 0)
        unite_sums(all);
    return true;
}

marey_status marey__collectives_match(struct marey__collectives *all)
{
    all->clocks = find_clocks(all);
    if (all->n_calls == 0)
        return MAREY_OK;
    number_turns(all);
    qsort_r(all->calls, all->n_calls, sizeof *all->calls, by_collective, all);
    if (all->clocks != MAREY__CLOCKS_SAME)
        MAREY_TRY(align(all));
    for (size_t i = 0; i < all->n_calls;) {
        const struct match match = match_at(all, i);
        struct marey__collective_kind *kind = &all->kinds[match.calls[0].kind];
        kind->n_ranks = MAREY__MAX(kind->n_ranks, match.n);
        i += match.n;
    }
    for (size_t i = 0; i < all->n_calls;) {
        struct match match = match_at(all, i);
        if (!all->kinds[match.calls[0].kind].is_between_two)
            take_match(all, &match);
        i += match.n;
    }
    return sum_members(all) ? MAREY_OK : marey__no_memory();
}

double marey__bus_factor(enum marey_collective what, uint32_t n)
{
    if (n < 2)
        return 0;
    switch (what) {
    case MAREY_COLLECTIVE_ALL_REDUCE:
        return 2.0 * (n - 1) / n;
    case MAREY_COLLECTIVE_ALL_GATHER:
    case MAREY_COLLECTIVE_REDUCE_SCATTER:
    case MAREY_COLLECTIVE_ALL_TO_ALL:
    case MAREY_COLLECTIVE_GATHER:
    case MAREY_COLLECTIVE_SCATTER:
        return 1.0 * (n - 1) / n;
    case MAREY_COLLECTIVE_BROADCAST:
    case MAREY_COLLECTIVE_REDUCE:
        return 1;
    default:
        return 0;
    }
}
