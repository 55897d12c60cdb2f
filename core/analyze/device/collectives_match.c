/* Which calls of different ranks are one collective, and who waited for whom. */
#include <stdlib.h>
#include <string.h>

#include "analyze/device/internal.h"

#define YEAR_2000_NS (UINT64_C(946684800) * 1000000000)

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* ---- clocks ---- */

/* A moment of a process's clock on the one that all share, as far as they do. */
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

/* ---- which calls belong together ---- */

static int by_rank(const void *a, const void *b)
{
    const struct marey__rank_call *x = a, *y = b;
    if (x->kind != y->kind)
        return compare(x->kind, y->kind);
    if (x->member != y->member)
        return compare(x->member, y->member);
    if (x->sequence != y->sequence)
        return compare(x->sequence, y->sequence);
    if (x->begin_ns != y->begin_ns)
        return compare(x->begin_ns, y->begin_ns);
    return compare(x->end_ns, y->end_ns);
}

static void number_turns(struct marey__collectives *all)
{
    struct marey__rank_call *calls = all->calls;
    qsort(calls, all->n_calls, sizeof *calls, by_rank);
    for (size_t i = 1; i < all->n_calls; i++)
        if (calls[i].kind == calls[i - 1].kind && calls[i].member == calls[i - 1].member &&
            calls[i].sequence == calls[i - 1].sequence)
            calls[i].turn = calls[i - 1].turn + 1;
}

/* All but the rank. */
static int compare_call(const struct marey__collectives *all, const struct marey__rank_call *x,
                        const struct marey__rank_call *y)
{
    const uint32_t own = all->members[x->member].job, other = all->members[y->member].job;
    if (x->kind != y->kind)
        return compare(x->kind, y->kind);
    if (own != other)
        return compare(own, other);
    if (x->sequence != y->sequence)
        return compare(x->sequence, y->sequence);
    return compare(x->turn, y->turn);
}

static int by_collective(const void *a, const void *b, void *all)
{
    const struct marey__rank_call *x = a, *y = b;
    const int order = compare_call(all, x, y);
    return order != 0 ? order : compare(x->member, y->member);
}

/* Some calls that are one collective. */
struct match {
    struct marey__rank_call *calls;
    size_t n;
};

/* The one that begins with calls[i]. */
static struct match match_at(const struct marey__collectives *all, size_t i)
{
    struct match match = {&all->calls[i], 1};
    while (i + match.n < all->n_calls && compare_call(all, match.calls, &match.calls[match.n]) == 0)
        match.n++;
    return match;
}

size_t marey__collective_length(const struct marey__collectives *all, size_t i)
{
    return match_at(all, i).n;
}

/* ---- one collective ---- */

struct times {
    uint64_t transfer_ns;       /* the shortest */
    uint64_t first_ns, last_ns; /* of their begins */
    uint64_t first_end_ns;
    uint64_t sum_ns, bytes;
    const struct marey__rank_call *last; /* who came last */
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
        /* By clocks of different machines a rank may seem late that is not; its duration is its own clock's. */
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

/* Whether nobody can leave before all have come. */
static bool is_for_all(enum marey_collective what)
{
    return what == MAREY_COLLECTIVE_ALL_REDUCE || what == MAREY_COLLECTIVE_ALL_GATHER ||
           what == MAREY_COLLECTIVE_REDUCE_SCATTER || what == MAREY_COLLECTIVE_ALL_TO_ALL ||
           what == MAREY_COLLECTIVE_BARRIER || what == MAREY_COLLECTIVE_OTHER;
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
    kind->n_apart += has_clocks && is_for_all(kind->collective) && t.last_ns >= t.first_end_ns;
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

/* ---- each rank ---- */

/* The sum of those calls from calls[i] on that are of one kind and member; how many. */
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

static int by_member(const void *a, const void *b)
{
    const struct marey__member_sum *x = a, *y = b;
    return x->member != y->member ? compare(x->member, y->member) : compare(x->group, y->group);
}

/* Sums of different kinds of one group become one. */
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
        sum->n_calls += other->n_calls;
        sum->n_between_two += other->n_between_two;
        sum->ns += other->ns;
        sum->n_matched += other->n_matched;
        sum->wait_ns += other->wait_ns;
        sum->transfer_ns += other->transfer_ns;
        sum->late_ns += other->late_ns;
        sum->held_ns += other->held_ns;
        sum->n_first += other->n_first;
        sum->n_last += other->n_last;
    }
    all->n_sums = n;
}

/* By time and not by number: to be last by a microsecond is chance, to be last by a second is a cause. */
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
        MAREY_TRY(marey__collectives_align(all));
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
