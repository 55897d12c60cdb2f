/*
 * Cycles of calls: recursive functions, or a thousand modules that import one another through a few functions. The shares
 * of pstats_tree.c are undefined there. But the time of an inner call lies within that of the outer one, so long calls
 * must be outside shorter ones:
 *
 *   a path has the time of the call that led to it;
 *   it gets the longest of its function's calls that fits, then the next that fits into the remaining time;
 *   if time and unassigned calls remain, it goes around the cycle once more.
 *
 *   _call_impl 4.7 s ── Sequential.forward 4.6 s ── _call_impl, once more ── Linear.forward 3.9 s
 *                                                                         '─ ReLU.forward 0.7 s
 *
 * Each call is assigned once per entry into the cycle; an entry's share is its share of the time of all entries.
 */
#include <math.h>

#include "import/stacks/internal.h"

/* Tolerance for fitting: sums in the file do not add up to the last microsecond. */
static const double tolerance = 1.02, tolerance_ns = 1000;

/* Limit for a function in cycles with a million callees; beyond it, each call is checked once. */
static const uint64_t most_looks = 1 << 26;

/* ---- functions in cycles ---- */

/* Tarjan's algorithm; a function's number is 0 until it is visited. */
struct finding {
    uint32_t *numbers, *lowest;
    uint32_t *next_out; /* how many of its calls were visited */
    uint32_t *stack, *way;
    bool *is_on_stack;
    size_t n_stack, n_way;
    uint32_t n_met;
};

static void meet(struct finding *f, uint32_t function)
{
    f->numbers[function] = f->lowest[function] = ++f->n_met;
    f->stack[f->n_stack++] = function;
    f->is_on_stack[function] = true;
    f->way[f->n_way++] = function;
}

/* `function` and everything above it on the stack are one cycle. */
static void close_cycle(struct marey__profile_making *m, struct finding *f, uint32_t function)
{
    uint32_t member;
    do {
        member = f->stack[--f->n_stack];
        f->is_on_stack[member] = false;
        m->functions[member].cycle = (uint32_t)m->n_cycles;
    } while (member != function);
    m->n_cycles++;
}

static void find_from(struct marey__profile_making *m, struct finding *f, uint32_t start)
{
    meet(f, start);
    while (f->n_way != 0) {
        const uint32_t function = f->way[f->n_way - 1];
        const struct marey__function_state *state = &m->functions[function];
        if (f->next_out[function] < state->n_out) {
            const uint32_t edge = m->out[state->first_out + f->next_out[function]++];
            const uint32_t callee = m->profile->edges[edge].callee;
            if (f->numbers[callee] == 0)
                meet(f, callee);
            else if (f->is_on_stack[callee])
                f->lowest[function] = MAREY__MIN(f->lowest[function], f->numbers[callee]);
            continue;
        }
        f->n_way--;
        if (f->n_way != 0) {
            const uint32_t caller = f->way[f->n_way - 1];
            f->lowest[caller] = MAREY__MIN(f->lowest[caller], f->lowest[function]);
        }
        if (f->lowest[function] == f->numbers[function])
            close_cycle(m, f, function);
    }
}

/* Discard cycles of one function that does not call itself, which are most. */
static bool keep_cycles(struct marey__profile_making *m)
{
    const struct marey__profile *p = m->profile;
    m->cycles = marey__calloc(m->n_cycles + 1, sizeof *m->cycles);
    bool *is_cycle MAREY__FREED = marey__calloc(m->n_cycles + 1, sizeof *is_cycle);
    if (m->cycles == NULL || is_cycle == NULL)
        return false;
    for (size_t i = 0; i < p->n_edges; i++) {
        const uint32_t cycle = m->functions[p->edges[i].caller].cycle;
        m->edges[i].is_inner = cycle == m->functions[p->edges[i].callee].cycle;
        is_cycle[cycle] |= m->edges[i].is_inner;
    }
    for (size_t i = 0; i < p->n_functions; i++)
        if (!is_cycle[m->functions[i].cycle])
            m->functions[i].cycle = MAREY__NO_CYCLE;
    for (size_t i = 0; i < p->n_edges; i++) {
        const uint32_t caller = m->functions[p->edges[i].caller].cycle;
        const uint32_t callee = m->functions[p->edges[i].callee].cycle;
        if (caller != MAREY__NO_CYCLE) {
            m->cycles[caller].n_edges++;
            m->cycles[caller].n_new++;
        }
        if (callee != MAREY__NO_CYCLE && !m->edges[i].is_inner)
            m->cycles[callee].entries_ns += p->edges[i].total_ns;
    }
    return true;
}

bool marey__call_cycles_find(struct marey__profile_making *m)
{
    const size_t n = m->profile->n_functions;
    uint32_t *numbers = marey__calloc(5 * n + 1, sizeof *numbers);
    struct finding f = {.numbers = numbers,
                        .is_on_stack = marey__calloc(n + 1, sizeof *f.is_on_stack)};
    const bool has_memory = numbers != NULL && f.is_on_stack != NULL;
    if (has_memory) {
        f.lowest = numbers + n;
        f.next_out = numbers + 2 * n;
        f.stack = numbers + 3 * n;
        f.way = numbers + 4 * n;
        for (uint32_t i = 0; i < n; i++)
            if (f.numbers[i] == 0)
                find_from(m, &f, i);
    }
    MAREY__FREE_ALL(numbers, f.is_on_stack);
    return has_memory && keep_cycles(m);
}

/* ---- entries into a cycle ---- */

/* One entry. */
struct run {
    double share; /* of all entries into this cycle */
    uint64_t number;
    uint32_t n_left; /* calls not yet assigned */
    bool only_new;   /* calls on some path count as assigned */
};

static bool is_given(const struct marey__profile_making *m, const struct run *run, uint32_t edge)
{
    return m->edges[edge].run == run->number || (run->only_new && m->edges[edge].n_calls > 0);
}

static bool push(struct marey__profile_making *m, uint32_t path)
{
    return MAREY__PUSH(m->todo, m->n_todo, m->todo_cap, path);
}

/* Add a path for a call with the given calls and time. */
static bool add_path(struct marey__profile_making *m, uint32_t path, uint32_t edge, double n_calls,
                     double total_ns, bool is_once_more)
{
    const uint32_t callee = m->profile->edges[edge].callee;
    struct marey__edge_state *state = &m->edges[edge];
    const struct marey__profile_step step = {.edge = edge,
                                             .depth = m->steps[path].depth + 1,
                                             .share = state->share,
                                             .n_calls = fmax(n_calls, 1e-9),
                                             .total_ns = total_ns,
                                             .is_once_more = is_once_more};
    const uint32_t child = marey__profile_path(m, path, callee, &step);
    if (!(state->n_calls > 0))
        m->cycles[m->functions[m->profile->edges[edge].caller].cycle].n_new--;
    state->n_calls += step.n_calls;
    if (child == 0)
        return false;
    return state->is_inner ? push(m, child) : marey__profile_candidate(m, child);
}

/* Its caller's number of calls, but at least one for each where there are enough. */
static double calls_of(const struct marey__profile_making *m, uint32_t path, uint32_t edge,
                       double share)
{
    const struct marey__profiled_edge *e = &m->profile->edges[edge];
    const double per_call = e->n_calls / fmax((double)m->profile->functions[e->caller].n_calls, 1);
    return m->edges[edge].is_inner
               ? fmin(share * e->n_calls, m->steps[path].n_calls * fmax(per_call, 1))
               : share * e->n_calls;
}

static bool give(struct marey__profile_making *m, struct run *run, uint32_t path, uint32_t edge)
{
    m->edges[edge].run = run->number;
    run->n_left--;
    return add_path(m, path, edge, calls_of(m, path, edge, run->share),
                    run->share * m->profile->edges[edge].total_ns, false);
}

/* Whether the path since the last assigned call already contains this function. */
static bool goes_around(const struct marey__profile_making *m, uint32_t path)
{
    const uint32_t function = m->paths->paths[path].frame;
    while (m->steps[path].is_once_more) {
        path = m->paths->paths[path].parent;
        if (m->paths->paths[path].frame == function)
            return true;
    }
    return false;
}

static void keep_room(struct marey__profile_making *m, uint32_t path, double left_ns)
{
    struct marey__function_state *state = &m->functions[m->paths->paths[path].frame];
    m->steps[path].left_ns = left_ns;
    if (state->roomiest == 0 || m->steps[state->roomiest].left_ns < left_ns)
        state->roomiest = path;
}

static bool go_once_more(struct marey__profile_making *m, uint32_t path, uint32_t edge, double left_ns)
{
    const struct marey__profiled_edge *e = &m->profile->edges[edge];
    const double n_calls = m->steps[path].n_calls * e->n_calls /
                           fmax((double)m->profile->functions[e->caller].n_calls, 1);
    return add_path(m, path, edge, n_calls, left_ns, true);
}

static bool visit(struct marey__profile_making *m, struct run *run, uint32_t path)
{
    const uint32_t function = m->paths->paths[path].frame;
    struct marey__function_state *state = &m->functions[function];
    const struct marey__profiled *profiled = &m->profile->functions[function];
    const double part = fmin(m->steps[path].n_calls / fmax((double)profiled->n_calls, 1), 1);
    double left_ns = m->steps[path].total_ns - part * (double)profiled->self_ns;
    uint32_t again = MAREY__NO_EDGE;
    bool has_given = false;
    const bool is_first = !state->is_expanded;
    if (m->steps[path].depth >= MAREY__PROFILE_DEPTH || (m->n_looks > most_looks && !is_first))
        return true;
    state->is_expanded = true;
    m->steps[path].is_expanded = true;
    m->n_looks += state->n_out;
    for (uint32_t i = 0; i < state->n_out; i++) {
        const uint32_t edge = m->out[state->first_out + i];
        const double need_ns = run->share * m->profile->edges[edge].total_ns;
        if (is_given(m, run, edge)) {
            again = again == MAREY__NO_EDGE && m->edges[edge].is_inner ? edge : again;
        } else if (need_ns <= left_ns * tolerance + tolerance_ns) {
            left_ns -= need_ns;
            has_given = true;
            if (!give(m, run, path, edge))
                return false;
        }
    }
    const bool goes_on = run->n_left != 0 && again != MAREY__NO_EDGE && left_ns > tolerance_ns &&
                         m->paths->n < m->profile->max_paths;
    if (goes_on && (has_given || !goes_around(m, path)))
        return go_once_more(m, path, again, left_ns);
    keep_room(m, path, left_ns);
    return true;
}

bool marey__call_cycle_enter(struct marey__profile_making *m, uint32_t path, bool only_new)
{
    const uint32_t cycle = m->functions[m->paths->paths[path].frame].cycle;
    const double all_ns = m->cycles[cycle].entries_ns;
    struct run run = {.share = all_ns > 0 ? fmin(m->steps[path].total_ns / all_ns, 1) : 1,
                      .number = ++m->n_runs,
                      .n_left = m->cycles[cycle].n_edges,
                      .only_new = only_new};
    if (only_new) {
        run.share = 1;
        run.n_left = m->cycles[cycle].n_new;
    }
    m->n_todo = 0;
    if (!push(m, path))
        return false;
    while (m->n_todo != 0)
        if (!visit(m, &run, m->todo[--m->n_todo]))
            return false;
    return true;
}

/* ---- remaining calls ---- */

bool marey__call_cycles_force(struct marey__profile_making *m, bool *is_any)
{
    *is_any = false;
    for (uint32_t edge = 0; edge < m->profile->n_edges; edge++) {
        const struct marey__profiled_edge *e = &m->profile->edges[edge];
        const struct marey__function_state *caller = &m->functions[e->caller];
        if (caller->cycle == MAREY__NO_CYCLE || m->edges[edge].n_calls > 0 || caller->roomiest == 0)
            continue;
        const uint32_t path = caller->roomiest;
        *is_any = true;
        m->n_todo = 0;
        if (!add_path(m, path, edge, e->n_calls, e->total_ns, false))
            return false;
        if (m->n_todo != 0 && !marey__call_cycle_enter(m, m->todo[0], true))
            return false;
    }
    return true;
}
