/*
 * From functions and their callers to a tree of paths. A Python profile has the number of calls and the time of each
 * function, in total and per caller, but nothing about paths of three or more functions. A function's work below one of
 * its callers is estimated as that caller's share of the time in the function's callees:
 *
 *   share of a path = share of the path of its caller x  time in its callees from that caller / from all callers
 *
 * The shares of all paths of a function add up to 1, so that calls and self times of each function match the file even
 * when paths are cut: beyond the limit on paths, only the first path of each function is followed. Without cuts, totals
 * match as well: a function's time from a caller is its self time there plus its share of its callees. Recursive functions
 * are handled in pstats_cycles.c; their totals are approximate, and a note gives the largest difference.
 *
 * Paths are followed in order of weight. In the end, calls and nanoseconds are distributed in proportion, as integers.
 */
#include <math.h>

#include "import/stacks/internal.h"

/* ---- shares ---- */

static double at_least_zero(double value)
{
    return value > 0 ? value : 0;
}

/* The rest of a function after its callers' shares: calls from outside the profile. */
static void find_roots(struct marey__profile_making *m)
{
    const struct marey__profile *p = m->profile;
    for (size_t i = 0; i < p->n_functions; i++) {
        struct marey__function_state *state = &m->functions[i];
        state->root_calls = (double)p->functions[i].n_calls;
        state->root_self_ns = (double)p->functions[i].self_ns;
        state->root_total_ns = p->functions[i].total_ns;
        state->below_ns = at_least_zero(p->functions[i].total_ns - (double)p->functions[i].self_ns);
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        struct marey__function_state *callee = &m->functions[p->edges[i].callee];
        callee->root_calls -= p->edges[i].n_calls;
        callee->root_self_ns -= p->edges[i].self_ns;
        /* The total of a recursion is that of its outermost calls, which contain the inner ones. */
        callee->root_total_ns -= m->edges[i].is_inner ? 0 : p->edges[i].total_ns;
    }
    for (size_t i = 0; i < p->n_functions; i++) {
        struct marey__function_state *state = &m->functions[i];
        const bool is_root = state->root_calls > 0.5;
        state->root_calls = is_root ? state->root_calls : 0;
        state->root_self_ns = is_root ? at_least_zero(state->root_self_ns) : 0;
        state->root_total_ns = is_root ? at_least_zero(state->root_total_ns) : 0;
        if (state->cycle != MAREY__NO_CYCLE)
            m->cycles[state->cycle].entries_ns += state->root_total_ns;
    }
}

/* By time in callees, or by calls if that is 0. */
static void find_shares(struct marey__profile_making *m, double *sums)
{
    const struct marey__profile *p = m->profile;
    for (size_t i = 0; i < p->n_functions; i++) {
        struct marey__function_state *state = &m->functions[i];
        state->root_share = at_least_zero(state->root_total_ns - state->root_self_ns);
        sums[i] = state->root_share;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct marey__profiled_edge *edge = &p->edges[i];
        m->edges[i].share = m->edges[i].is_inner ? 0 : at_least_zero(edge->total_ns - edge->self_ns);
        sums[edge->callee] += m->edges[i].share;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        const double sum = sums[p->edges[i].callee];
        const double n_calls = (double)p->functions[p->edges[i].callee].n_calls;
        m->edges[i].share =
            sum > 0 ? m->edges[i].share / sum : p->edges[i].n_calls / fmax(n_calls, 1);
    }
    for (size_t i = 0; i < p->n_functions; i++) {
        struct marey__function_state *state = &m->functions[i];
        const double n_calls = (double)p->functions[i].n_calls;
        state->root_share =
            sums[i] > 0 ? state->root_share / sums[i] : state->root_calls / fmax(n_calls, 1);
    }
}

static int longest_first(const void *a, const void *b, void *ctx)
{
    const struct marey__profiled_edge *edges = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (edges[x].total_ns != edges[y].total_ns)
        return edges[x].total_ns < edges[y].total_ns ? 1 : -1;
    return (x > y) - (x < y);
}

static void sort_edges(struct marey__profile_making *m)
{
    const struct marey__profile *p = m->profile;
    uint32_t first = 0;
    for (size_t i = 0; i < p->n_edges; i++)
        m->functions[p->edges[i].caller].n_out++;
    for (size_t i = 0; i < p->n_functions; i++) {
        m->functions[i].first_out = first;
        first += m->functions[i].n_out;
        m->functions[i].n_out = 0;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        struct marey__function_state *caller = &m->functions[p->edges[i].caller];
        m->out[caller->first_out + caller->n_out++] = (uint32_t)i;
    }
    for (size_t i = 0; i < p->n_functions; i++)
        qsort_r(m->out + m->functions[i].first_out, m->functions[i].n_out, sizeof *m->out,
                longest_first, p->edges);
}

/* ---- the heap ---- */

static bool push(struct marey__profile_making *m, double ns, uint32_t path)
{
    if (!marey__grow(&m->heap, &m->heap_cap, m->n_heap + 1, sizeof *m->heap))
        return false;
    size_t i = m->n_heap++;
    for (; i > 0 && m->heap[(i - 1) / 2].ns < ns; i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = (struct marey__profile_candidate){ns, path};
    return true;
}

static struct marey__profile_candidate pop(struct marey__profile_making *m)
{
    const struct marey__profile_candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        child += child + 1 < m->n_heap && m->heap[child + 1].ns > m->heap[child].ns;
        if (m->heap[child].ns <= last.ns)
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return top;
}

/* ---- paths ---- */

uint32_t marey__profile_path(struct marey__profile_making *m, uint32_t parent, uint32_t function,
                             const struct marey__profile_step *step)
{
    const uint32_t path = marey__paths_child(m->paths, parent, function);
    if (path == 0 || !marey__grow(&m->steps, &m->steps_cap, (size_t)path + 1, sizeof *m->steps))
        return 0;
    m->steps[path] = *step;
    m->functions[function].n_paths++;
    return path;
}

bool marey__profile_candidate(struct marey__profile_making *m, uint32_t path)
{
    const struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
    return state->n_out == 0 || push(m, m->steps[path].share * state->below_ns, path);
}

/* Add all calls of the function, each with its share. */
static bool expand(struct marey__profile_making *m, uint32_t path)
{
    const uint32_t depth = m->steps[path].depth + 1;
    const double share = m->steps[path].share;
    struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
    m->steps[path].is_expanded = true;
    state->is_expanded = true;
    state->expanded_share += share;
    state->n_expanded++;
    for (uint32_t i = 0; i < state->n_out; i++) {
        const uint32_t edge = m->out[state->first_out + i];
        const struct marey__profiled_edge *e = &m->profile->edges[edge];
        const struct marey__profile_step step = {.edge = edge,
                                                 .depth = depth,
                                                 .share = share * m->edges[edge].share,
                                                 .n_calls = share * e->n_calls,
                                                 .total_ns = share * e->total_ns};
        const uint32_t child = marey__profile_path(m, path, e->callee, &step);
        if (child == 0 || (depth < MAREY__PROFILE_DEPTH && !marey__profile_candidate(m, child)))
            return false;
    }
    return true;
}

/* Follow the heaviest candidate until none is left. The first path of a function is always followed. */
static bool follow_all(struct marey__profile_making *m)
{
    while (m->n_heap != 0) {
        const struct marey__profile_candidate next = pop(m);
        const struct marey__function_state *state = &m->functions[m->paths->paths[next.path].frame];
        if (m->paths->n >= m->profile->max_paths && state->is_expanded) {
            m->profile->n_folded++;
            m->profile->folded_ns += next.ns;
        } else if (state->cycle != MAREY__NO_CYCLE
                       ? !marey__call_cycle_enter(m, next.path, m->steps[next.path].is_spare)
                       : !expand(m, next.path)) {
            return false;
        }
    }
    return true;
}

static bool add_root(struct marey__profile_making *m, uint32_t function,
                     const struct marey__profile_step *step)
{
    const uint32_t path = marey__profile_path(m, 0, function, step);
    return path != 0 && marey__profile_candidate(m, path);
}

static bool add_roots(struct marey__profile_making *m)
{
    for (uint32_t i = 0; i < m->profile->n_functions; i++) {
        const struct marey__function_state *state = &m->functions[i];
        const struct marey__profile_step step = {.edge = MAREY__NO_EDGE,
                                                 .share = state->root_share,
                                                 .n_calls = state->root_calls,
                                                 .total_ns = state->root_total_ns};
        if (state->root_calls > 0 && !add_root(m, i, &step))
            return false;
    }
    return follow_all(m);
}

/* Assign calls that fit nowhere in a cycle, until all are assigned. */
static bool force_all(struct marey__profile_making *m)
{
    for (bool is_any = true; is_any;)
        if (!marey__call_cycles_force(m, &is_any) || !follow_all(m))
            return false;
    return true;
}

/* Functions on no path, or only on paths that were cut, start a path themselves. */
static bool add_spare_roots(struct marey__profile_making *m)
{
    for (uint32_t i = 0; i < m->profile->n_functions; i++) {
        const struct marey__function_state *state = &m->functions[i];
        const struct marey__profile_step step = {.edge = MAREY__NO_EDGE,
                                                 .share = 1,
                                                 .n_calls = (double)m->profile->functions[i].n_calls,
                                                 .total_ns = m->profile->functions[i].total_ns,
                                                 .is_spare = true};
        if (state->is_expanded || (state->n_out == 0 && state->n_paths != 0))
            continue;
        if (!add_root(m, i, &step) || !follow_all(m) || !force_all(m))
            return false;
    }
    return true;
}

/* ---- distribution ---- */

/* A path's share of its function's callees. */
static double final_share(const struct marey__profile_making *m, uint32_t path)
{
    const struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
    return state->expanded_share > 0 ? m->steps[path].share / state->expanded_share
                                     : 1.0 / state->n_expanded;
}

static void weigh(const struct marey__profile_making *m, uint32_t path, double *calls, double *self_ns)
{
    const struct marey__profile_step *step = &m->steps[path];
    const struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
    if (step->edge == MAREY__NO_EDGE) {
        *calls = step->is_spare ? 0 : state->root_calls;
        *self_ns = step->is_spare ? 0 : state->root_self_ns;
        return;
    }
    const struct marey__profiled_edge *edge = &m->profile->edges[step->edge];
    const bool is_in_cycle = m->functions[edge->caller].cycle != MAREY__NO_CYCLE;
    const double share = is_in_cycle ? step->n_calls / m->edges[step->edge].n_calls
                                     : final_share(m, m->paths->paths[path].parent);
    *calls = edge->n_calls * share;
    *self_ns = edge->self_ns * share;
}

/*
 * The next portion of the integer `whole`: up to the cumulative weight `seen` of `weight`, minus `*given`. The last one
 * gets the rest.
 */
static uint64_t deal(uint64_t whole, double seen, double weight, bool is_last, uint64_t *given)
{
    const double part = weight > 0 ? seen / weight * (double)whole : 0;
    uint64_t until = part < (double)whole ? (uint64_t)(part + 0.5) : whole;
    until = is_last ? whole : MAREY__MIN(MAREY__MAX(until, *given), whole);
    const uint64_t now = until - *given;
    *given = until;
    return now;
}

static void deal_out(struct marey__profile_making *m)
{
    double calls, self_ns;
    for (uint32_t path = 1; path < m->paths->n; path++) {
        struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
        weigh(m, path, &calls, &self_ns);
        state->calls_weight += calls;
        state->self_weight += self_ns;
    }
    for (uint32_t path = 1; path < m->paths->n; path++) {
        const uint32_t function = m->paths->paths[path].frame;
        struct marey__function_state *state = &m->functions[function];
        const bool is_last = --state->n_paths == 0;
        weigh(m, path, &calls, &self_ns);
        state->calls_seen += calls;
        state->self_seen += self_ns;
        m->paths->paths[path].calls = deal(m->profile->functions[function].n_calls, state->calls_seen,
                                           state->calls_weight, is_last, &state->calls_given);
        m->paths->paths[path].self = deal(m->profile->functions[function].self_ns, state->self_seen,
                                          state->self_weight, is_last, &state->self_given);
    }
}

static bool make_tree(struct marey__profile_making *m)
{
    double *sums MAREY__FREED = marey__calloc(m->profile->n_functions + 1, sizeof *sums);
    if (sums == NULL)
        return false;
    sort_edges(m);
    bool done = marey__call_cycles_find(m);
    if (done) {
        find_roots(m);
        find_shares(m, sums);
        done = add_roots(m) && force_all(m) && add_spare_roots(m);
    }
    if (done)
        deal_out(m);
    return done;
}

bool marey__profile_expand(struct marey__profile *profile, struct marey__paths *paths)
{
    struct marey__profile_making m = {.profile = profile, .paths = paths};
    m.functions = marey__calloc(profile->n_functions + 1, sizeof *m.functions);
    m.edges = marey__calloc(profile->n_edges + 1, sizeof *m.edges);
    m.out = marey__calloc(profile->n_edges + 1, sizeof *m.out);
    const bool done = m.functions != NULL && m.edges != NULL && m.out != NULL && make_tree(&m);
    MAREY__FREE_ALL(m.functions, m.edges, m.out, m.steps, m.heap, m.cycles, m.todo);
    return done;
}

/* ---- differences ---- */

static bool is_on_path(const struct marey__paths *paths, uint32_t path, uint32_t function)
{
    for (; path != 0; path = paths->paths[path].parent)
        if (paths->paths[path].frame == function)
            return true;
    return false;
}

bool marey__profile_check(struct marey__profile *profile, const struct marey__paths *paths)
{
    double *totals MAREY__FREED = marey__calloc(profile->n_functions + 1, sizeof *totals);
    if (totals == NULL)
        return false;
    for (uint32_t path = 1; path < paths->n; path++)
        if (!is_on_path(paths, paths->paths[path].parent, paths->paths[path].frame))
            totals[paths->paths[path].frame] += (double)paths->paths[path].total;
    for (size_t i = 0; i < profile->n_functions; i++) {
        const double off_ns = fabs(totals[i] - profile->functions[i].total_ns);
        profile->n_off += off_ns > 1000 && off_ns > 0.01 * profile->functions[i].total_ns;
        if (off_ns > profile->most_off_ns) {
            profile->most_off = (uint32_t)i;
            profile->most_off_ns = off_ns;
        }
    }
    return true;
}
