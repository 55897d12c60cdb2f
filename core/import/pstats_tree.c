/*
 * From functions and their callers to a tree of paths. A profile of Python says of each function how often it was called
 * and how long it took, in all and from each of its callers; of a path over three functions it says nothing. What a
 * function did below one of its callers is taken as the share that it had there of the time in what it called:
 *
 *   share of a path = share of the path of its caller x  time in its callees from that caller / from all callers
 *
 * Shares of all paths of a function are 1 together, so that calls and self times of each function come out as they are
 * in the file whatever is cut short: a function that is on its path already goes no deeper there (recursion), and when
 * there are enough paths only those that are the first of their function do. Without either, totals come out exactly as
 * well: what a function took from a caller is what it took itself, and its share of what it called. In a circle of
 * calls they cannot be had: a file does not say which module was imported by which, as all of them call one function that
 * calls all of them. How far totals are off is found out and told.
 *
 * Paths are followed the heaviest first. In the end calls and nanoseconds, which are whole, are dealt out in proportion.
 */
#include <math.h>

#include "import/stack_in.h"

enum { MAX_DEPTH = 300 };

static const uint32_t no_edge = UINT32_MAX;

/* Of a function, while the tree is made. */
struct state {
    uint32_t first_out, n_out; /* its calls of others, in `out` */
    double root_calls, root_self_ns;
    double root_share, sum_of_shares; /* of time in its callees, of which `sum_of_shares` is 1 */
    double below_ns;                  /* time in its callees */
    bool is_expanded;
    double expanded_share;            /* sum over its paths that are expanded */
    double calls_weight, self_weight; /* sums over all its paths, and how much of that was dealt out */
    double calls_seen, self_seen;
    uint64_t calls_given, self_given;
    uint32_t n_paths, n_expanded;
};

/* Of a path, by its number. */
struct step {
    uint32_t edge; /* from its caller; no_edge: it is outermost */
    uint32_t depth;
    double share;
    bool is_expanded;
    bool is_spare; /* outermost though the file has no such call: its function is called in circles alone */
};

struct making {
    struct kymo__profile *profile;
    struct kymo__paths *paths;
    struct state *states; /* by function */
    double *edge_shares;
    uint32_t *out; /* edges by caller */
    struct step *steps;
    size_t n_steps, steps_cap;
    struct candidate {
        double ns;
        uint32_t path;
    } * heap; /* the heaviest first */
    size_t n_heap, heap_cap;
};

/* ---- shares ---- */

static double at_least_zero(double value)
{
    return value > 0 ? value : 0;
}

/* What is left of a function when its callers have theirs: calls from outside of what was profiled. */
static void find_roots(struct making *m)
{
    const struct kymo__profile *p = m->profile;
    for (size_t i = 0; i < p->n_functions; i++) {
        m->states[i].root_calls = (double)p->functions[i].n_calls;
        m->states[i].root_self_ns = (double)p->functions[i].self_ns;
        m->states[i].root_share = p->functions[i].total_ns;
        m->states[i].below_ns =
            at_least_zero(p->functions[i].total_ns - (double)p->functions[i].self_ns);
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        struct state *callee = &m->states[p->edges[i].callee];
        callee->root_calls -= p->edges[i].n_calls;
        callee->root_self_ns -= p->edges[i].self_ns;
        callee->root_share -= p->edges[i].total_ns;
    }
    for (size_t i = 0; i < p->n_functions; i++) {
        struct state *state = &m->states[i];
        const bool is_root = state->root_calls > 0.5;
        state->root_calls = is_root ? state->root_calls : 0;
        state->root_self_ns = is_root ? at_least_zero(state->root_self_ns) : 0;
        state->root_share = is_root ? at_least_zero(state->root_share - state->root_self_ns) : 0;
    }
}

/* By time in callees; by calls, where that is nothing. */
static void find_shares(struct making *m)
{
    const struct kymo__profile *p = m->profile;
    for (size_t i = 0; i < p->n_functions; i++)
        m->states[i].sum_of_shares = m->states[i].root_share;
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct kymo__profiled_edge *edge = &p->edges[i];
        m->edge_shares[i] = at_least_zero(edge->total_ns - edge->self_ns);
        m->states[edge->callee].sum_of_shares += m->edge_shares[i];
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        const struct kymo__profiled_edge *edge = &p->edges[i];
        const double sum = m->states[edge->callee].sum_of_shares;
        const double n_calls = (double)p->functions[edge->callee].n_calls;
        m->edge_shares[i] = sum > 0 ? m->edge_shares[i] / sum : edge->n_calls / fmax(n_calls, 1);
    }
    for (size_t i = 0; i < p->n_functions; i++) {
        struct state *state = &m->states[i];
        const double n_calls = (double)p->functions[i].n_calls;
        state->root_share = state->sum_of_shares > 0 ? state->root_share / state->sum_of_shares
                                                     : state->root_calls / fmax(n_calls, 1);
    }
}

static void sort_edges(struct making *m)
{
    const struct kymo__profile *p = m->profile;
    uint32_t first = 0;
    for (size_t i = 0; i < p->n_edges; i++)
        m->states[p->edges[i].caller].n_out++;
    for (size_t i = 0; i < p->n_functions; i++) {
        m->states[i].first_out = first;
        first += m->states[i].n_out;
        m->states[i].n_out = 0;
    }
    for (size_t i = 0; i < p->n_edges; i++) {
        struct state *caller = &m->states[p->edges[i].caller];
        m->out[caller->first_out + caller->n_out++] = (uint32_t)i;
    }
}

/* ---- the heap ---- */

static bool push(struct making *m, double ns, uint32_t path)
{
    if (!kymo__grow(&m->heap, &m->heap_cap, m->n_heap + 1, sizeof *m->heap))
        return false;
    size_t i = m->n_heap++;
    for (; i > 0 && m->heap[(i - 1) / 2].ns < ns; i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = (struct candidate){ns, path};
    return true;
}

static struct candidate pop(struct making *m)
{
    const struct candidate top = m->heap[0], last = m->heap[--m->n_heap];
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

/* A new path, which is a candidate unless it ends here. False without memory. */
static bool add_path(struct making *m, uint32_t parent, uint32_t function, const struct step *step,
                     bool ends_here)
{
    const uint32_t path = kymo__paths_child(m->paths, parent, function);
    if (path == 0 || !kymo__grow(&m->steps, &m->steps_cap, (size_t)path + 1, sizeof *m->steps))
        return false;
    if (path < m->n_steps) /* a caller that is there twice */
        return true;
    m->steps[path] = *step;
    m->n_steps = (size_t)path + 1;
    m->states[function].n_paths++;
    if (ends_here || m->states[function].n_out == 0)
        return true;
    return push(m, step->share * m->states[function].below_ns, path);
}

static bool is_on_path(const struct kymo__paths *paths, uint32_t path, uint32_t function)
{
    for (; path != 0; path = paths->paths[path].parent)
        if (paths->paths[path].frame == function)
            return true;
    return false;
}

static bool expand(struct making *m, uint32_t path)
{
    const uint32_t function = m->paths->paths[path].frame;
    const uint32_t depth = m->steps[path].depth + 1;
    const double share = m->steps[path].share;
    struct state *state = &m->states[function];
    m->steps[path].is_expanded = true;
    state->is_expanded = true;
    state->expanded_share += share;
    state->n_expanded++;
    for (uint32_t i = 0; i < state->n_out; i++) {
        const uint32_t edge = m->out[state->first_out + i];
        const uint32_t callee = m->profile->edges[edge].callee;
        const bool ends_here = depth >= MAX_DEPTH || is_on_path(m->paths, path, callee);
        const struct step step = {
            .edge = edge, .depth = depth, .share = ends_here ? 0 : share * m->edge_shares[edge]};
        if (!add_path(m, path, callee, &step, ends_here))
            return false;
    }
    return true;
}

/* Follow the heaviest candidate until none is left. The first path of a function is followed in any case. */
static bool follow_all(struct making *m)
{
    while (m->n_heap != 0) {
        const struct candidate next = pop(m);
        const bool is_first = !m->states[m->paths->paths[next.path].frame].is_expanded;
        if (m->paths->n < m->profile->max_paths || is_first) {
            if (!expand(m, next.path))
                return false;
            continue;
        }
        m->profile->n_folded++;
        m->profile->folded_ns += next.ns;
    }
    return true;
}

static bool add_roots(struct making *m)
{
    for (size_t i = 0; i < m->profile->n_functions; i++) {
        const struct step step = {.edge = no_edge, .share = m->states[i].root_share};
        if (m->states[i].root_calls > 0 && !add_path(m, 0, (uint32_t)i, &step, false))
            return false;
    }
    return follow_all(m);
}

/* Functions that no path from outside has reached, or none that went deep enough: they begin a path themselves. */
static bool add_spare_roots(struct making *m)
{
    for (size_t i = 0; i < m->profile->n_functions; i++) {
        const struct state *state = &m->states[i];
        const struct step step = {.edge = no_edge, .share = 1, .is_spare = true};
        if (state->is_expanded || (state->n_out == 0 && state->n_paths != 0))
            continue;
        if (!add_path(m, 0, (uint32_t)i, &step, false) || !follow_all(m))
            return false;
    }
    return true;
}

/* ---- dealing out ---- */

/* The share of its function that a path has of what the function calls. */
static double final_share(const struct making *m, uint32_t path)
{
    const struct state *state = &m->states[m->paths->paths[path].frame];
    if (!m->steps[path].is_expanded)
        return 0;
    return state->expanded_share > 0 ? m->steps[path].share / state->expanded_share
                                     : 1.0 / state->n_expanded;
}

static void weigh(const struct making *m, uint32_t path, double *calls, double *self_ns)
{
    const struct step *step = &m->steps[path];
    const struct state *state = &m->states[m->paths->paths[path].frame];
    if (step->edge == no_edge) {
        *calls = step->is_spare ? 0 : state->root_calls;
        *self_ns = step->is_spare ? 0 : state->root_self_ns;
        return;
    }
    const double share = final_share(m, m->paths->paths[path].parent);
    *calls = m->profile->edges[step->edge].n_calls * share;
    *self_ns = m->profile->edges[step->edge].self_ns * share;
}

/* Of `whole`, what belongs to all up to the weight `seen` of `weight`, less what was given; at the end all that is left. */
static uint64_t deal(uint64_t whole, double seen, double weight, bool is_last, uint64_t *given)
{
    const double part = weight > 0 ? seen / weight * (double)whole : 0;
    uint64_t until = part < (double)whole ? (uint64_t)(part + 0.5) : whole;
    until = is_last ? whole : KYMO__MIN(KYMO__MAX(until, *given), whole);
    const uint64_t now = until - *given;
    *given = until;
    return now;
}

static void deal_out(struct making *m)
{
    double calls, self_ns;
    for (uint32_t path = 1; path < m->paths->n; path++) {
        struct state *state = &m->states[m->paths->paths[path].frame];
        weigh(m, path, &calls, &self_ns);
        state->calls_weight += calls;
        state->self_weight += self_ns;
    }
    for (uint32_t path = 1; path < m->paths->n; path++) {
        const uint32_t function = m->paths->paths[path].frame;
        struct state *state = &m->states[function];
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

bool kymo__profile_expand(struct kymo__profile *profile, struct kymo__paths *paths)
{
    struct making m = {.profile = profile, .paths = paths};
    m.states = kymo__calloc(profile->n_functions + 1, sizeof *m.states);
    m.edge_shares = kymo__calloc(profile->n_edges + 1, sizeof *m.edge_shares);
    m.out = kymo__calloc(profile->n_edges + 1, sizeof *m.out);
    bool done = m.states != NULL && m.edge_shares != NULL && m.out != NULL;
    if (done) {
        find_roots(&m);
        find_shares(&m);
        sort_edges(&m);
        done = add_roots(&m) && add_spare_roots(&m);
    }
    if (done)
        deal_out(&m);
    kymo__free(m.states);
    kymo__free(m.edge_shares);
    kymo__free(m.out);
    kymo__free(m.steps);
    kymo__free(m.heap);
    return done;
}

bool kymo__profile_check(struct kymo__profile *profile, const struct kymo__paths *paths)
{
    double *totals = kymo__calloc(profile->n_functions + 1, sizeof *totals);
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
    kymo__free(totals);
    return true;
}
