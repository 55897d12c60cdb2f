/* The tables of calls that are not of functions alone: paths, shapes, threads, the whole. */
#include <stdio.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "present/draw/internal.h"

/* ---- labels ---- */

void marey__call_label(struct marey__buf *label, const struct marey__calls *calls,
                       uint32_t function, uint32_t signature)
{
    marey__call_label_of(label, calls->functions[function].name, calls->signatures[signature].text,
                         signature != 0);
}

/* ---- paths ---- */

static void put_thread_name(marey_table *table, const struct marey__calls *calls, uint32_t number)
{
    const struct marey__call_thread *const thread =
        number < calls->n_threads ? &calls->threads[number] : NULL;
    if (thread == NULL)
        marey_table_null(table);
    else
        marey__put_string(table, thread->name);
}

static void put_path(marey_table *table, const struct marey__calls *calls, uint32_t i,
                     uint32_t depth, uint64_t whole_ns, uint64_t gpu_ns)
{
    const struct marey__call_node *const node = &calls->nodes[i];
    marey_table_u64(table, i);
    marey_table_u64(table, node->parent);
    marey_table_u64(table, depth);
    marey__put_string(table, calls->functions[node->function].name);
    marey__put_string(table, calls->signatures[node->signature].text);
    marey__calls_put_where(table, &calls->functions[node->function]);
    put_thread_name(table, calls, node->thread);
    marey__put_whole(table, node->calls, !calls->from_samples);
    marey_table_u64(table, node->self_ns);
    marey_table_u64(table, node->total_ns);
    marey__put_share(table, node->total_ns, whole_ns);
    marey__put_whole(table, gpu_ns, calls->has_gpu);
}

bool marey__calls_put_paths(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    uint32_t *const order = marey__calloc(calls->n_nodes, sizeof *order);
    uint32_t *const depths = marey__calloc(calls->n_nodes, sizeof *depths);
    uint64_t *const gpu_ns = marey__calloc(calls->n_nodes, sizeof *gpu_ns);
    uint64_t whole_ns = 0;
    const bool done =
        order != NULL && depths != NULL && gpu_ns != NULL && marey__calls_order(calls, order);
    if (done)
        marey__calls_gpu_totals(calls, gpu_ns);
    for (size_t i = 1; done && i < calls->n_nodes; i++) {
        const uint32_t parent = calls->nodes[i].parent;
        depths[i] = parent != 0 ? depths[parent] + 1 : 0;
        whole_ns += parent == 0 ? calls->nodes[i].total_ns : 0;
    }
    for (size_t i = 0; done && i + 1 < calls->n_nodes; i++)
        put_path(report->tables[MAREY__CALLS_PATHS], calls, order[i], depths[order[i]], whole_ns,
                 gpu_ns[order[i]]);
    marey__free(order);
    marey__free(depths);
    marey__free(gpu_ns);
    return done;
}

/* ---- shapes ---- */

/* A function with one of its signatures. */
struct shape {
    uint32_t function, signature;
    uint64_t function_ns; /* of all its signatures, to have the heaviest first */
    const struct marey__call_sum *sum;
};

static int by_function_and_time(const void *a, const void *b)
{
    const struct shape *const x = a, *const y = b;
    if (x->function_ns != y->function_ns)
        return x->function_ns < y->function_ns ? 1 : -1;
    if (x->function != y->function)
        return x->function > y->function ? 1 : -1;
    if (x->sum->total_ns != y->sum->total_ns)
        return x->sum->total_ns < y->sum->total_ns ? 1 : -1;
    return x->signature > y->signature ? 1 : -1;
}

/* Total time for each element that was handed in; 0 when that is not known. */
static double per_element(const struct marey__calls *calls, const struct shape *shape)
{
    const double elements =
        calls->signatures[shape->signature].elements * (double)shape->sum->primitive;
    return elements > 0 ? (double)shape->sum->total_ns / elements : 0;
}

/* Null unless it is positive. */
static void put_real(marey_table *table, double value)
{
    marey__put_real(table, value, value > 0);
}

static void put_shape(marey_table *table, const struct marey__calls *calls,
                      const struct shape *shape, double best)
{
    const struct marey__call_function *const function = &calls->functions[shape->function];
    const double elements = calls->signatures[shape->signature].elements,
                 of_element = per_element(calls, shape);
    marey__put_string(table, function->name);
    marey__calls_put_where(table, function);
    marey__put_string(table, calls->signatures[shape->signature].text);
    marey_table_u64(table, shape->sum->calls);
    put_real(table, shape->sum->primitive != 0
                        ? (double)shape->sum->total_ns / (double)shape->sum->primitive
                        : 0);
    marey__put_whole(table, (uint64_t)elements, elements > 0);
    put_real(table, of_element);
    put_real(table, best > 0 ? of_element / best : 0);
    marey__put_share(table, shape->sum->total_ns, shape->function_ns);
}

/* Those of one function, `n` of them. */
static void put_shapes_of(struct marey__calls_report *report, const struct shape *shapes, size_t n)
{
    const struct marey__calls *const calls = &report->calls;
    const char *const name = calls->functions[shapes[0].function].name;
    double best = 0;
    if (n < 2 || !marey__name_matches(report->options.filter, name, strlen(name)))
        return;
    for (size_t i = 0; i < n; i++) {
        const double ns = per_element(calls, &shapes[i]);
        best = ns > 0 && (best == 0 || ns < best) ? ns : best;
    }
    for (size_t i = 0; i < n; i++)
        put_shape(report->tables[MAREY__CALLS_SHAPES], calls, &shapes[i], best);
}

bool marey__calls_put_shapes(struct marey__calls_report *report,
                             const struct marey__call_sums *by_function,
                             const struct marey__call_sums *by_signature)
{
    const struct marey__calls *const calls = &report->calls;
    struct shape *const shapes = marey__calloc(by_signature->n_entities, sizeof *shapes);
    uint64_t *const ns = marey__calloc(by_function->n_entities, sizeof *ns);
    size_t n = 0;
    for (uint32_t i = 0; ns != NULL && i < by_signature->n_entities; i++)
        ns[marey__entity_function(by_signature, calls, i)] += by_signature->entities[i].total_ns;
    for (uint32_t i = 0; ns != NULL && shapes != NULL && i < by_signature->n_entities; i++) {
        const uint32_t function = marey__entity_function(by_signature, calls, i);
        if (by_signature->entities[i].calls != 0)
            shapes[n++] = (struct shape){.function = function,
                                         .signature = marey__entity_signature(by_signature, i),
                                         .function_ns = ns[function],
                                         .sum = &by_signature->entities[i]};
    }
    if (n != 0)
        qsort(shapes, n, sizeof *shapes, by_function_and_time);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && shapes[end].function == shapes[i].function;)
            end++;
        put_shapes_of(report, shapes + i, end - i);
    }
    const bool done = shapes != NULL && ns != NULL;
    marey__free(shapes);
    marey__free(ns);
    return done;
}

/* ---- threads ---- */

struct thread_sums {
    uint64_t calls, self_ns;
    uint64_t functions;
};

static void put_thread(marey_table *table, const struct marey__calls *calls,
                       const struct marey__call_thread *thread, const struct thread_sums *sums)
{
    marey__put_rank(table, thread->rank);
    marey_table_i64(table, thread->pid);
    marey_table_i64(table, thread->tid);
    marey__put_string(table, thread->name);
    marey__put_whole(table, sums->calls, !calls->from_samples);
    marey_table_u64(table, sums->functions);
    marey_table_u64(table, sums->self_ns);
}

bool marey__calls_put_threads(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    struct thread_sums *const sums = marey__calloc(calls->n_threads + 1, sizeof *sums);
    struct marey__pairs seen = {0};
    bool failed = sums == NULL;
    for (size_t i = 1; !failed && i < calls->n_nodes; i++) {
        const struct marey__call_node *const node = &calls->nodes[i];
        sums[node->thread].calls += node->calls;
        sums[node->thread].self_ns += node->self_ns;
        if (node->function != 0 && node->calls != 0)
            sums[node->thread].functions +=
                marey__pairs_add(&seen, node->thread, node->function, &failed);
    }
    for (size_t i = 0; !failed && i < calls->n_threads; i++)
        put_thread(report->tables[MAREY__CALLS_THREADS], calls, &calls->threads[i], &sums[i]);
    marey__pairs_fini(&seen);
    marey__free(sums);
    return !failed;
}

/* ---- the whole ---- */

static const char *timer_of(const struct marey__calls *calls)
{
    return (calls->flags & MAREY__CALLS_OWN_TIMER) != 0   ? "own"
           : (calls->flags & MAREY__CALLS_CPU_TIMER) != 0 ? "cpu"
                                                          : "wall";
}

/* Whose calls are not all here. A call is counted when it ends, and counts are written every 5 s. */
static void put_missing(marey_table *notes, uint32_t n, const char *one, const char *several)
{
    if (n == 1)
        marey__put_note(
            notes,
            "%s: its last calls, up to 5 s of them, and those that were under way are missing", one);
    else if (n > 1)
        marey__put_note(
            notes,
            "%u %s: their last calls, up to 5 s of them, and those that were under way are missing",
            n, several);
}

static void put_notes(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const notes = report->tables[MAREY__CALLS_NOTES];
    put_missing(notes, calls->n_killed, "the process died, by a kill or _exit",
                "processes died, by a kill or _exit");
    put_missing(notes, calls->n_running, "the process still runs", "processes still run");
    put_missing(notes, calls->n_refused, "the process could not write its log to the end",
                "processes could not write their logs to the end");
    if (calls->from_ranges)
        marey__put_note(notes, "nothing was profiled: these are the ranges of the recording");
    if (calls->from_samples)
        marey__put_note(notes,
                        "no calls were profiled: these are samples, which have no call counts; "
                        "'marey run --calls' counts calls");
    if (calls->startup_ns != 0)
        marey__put_note(notes, "left out: %.3g s of imports at start-up; --startup shows them",
                        (double)calls->startup_ns / 1e9);
    if (calls->n_too_deep != 0)
        marey__put_note(notes, "ranges left out, nested too deep: %llu",
                        (unsigned long long)calls->n_too_deep);
    if (calls->idle_ns != 0)
        marey__put_note(notes,
                        "left out: %.3g s of idle processes and workers; 'marey report --samples "
                        "--idle' shows them",
                        (double)calls->idle_ns / 1e9);
    if (calls->other_paths != 0)
        marey__put_note(
            notes,
            "the paths of %llu calls were not followed, because the profile's memory was used "
            "up: counts and self times are exact, their callers and totals are not known; "
            "give it more (calls.memory)",
            (unsigned long long)calls->other_paths);
    if (calls->widened != 0)
        marey__put_note(
            notes,
            "calls whose signature represents several, because the function had too many: %llu",
            (unsigned long long)calls->widened);
    if (calls->n_profiles > 1 && calls->n_threads != 0)
        marey__put_note(notes, "%u profiles are added up", calls->n_profiles);
    if (report->subtracted_ns != 0)
        marey__put_note(notes,
                        "the cost of measuring, %.3g us for a call, is taken out of these times",
                        (double)calls->cost_ps / 1e6);
}

void marey__calls_put_totals(struct marey__calls_report *report,
                             const struct marey__call_sums *by_function)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const table = report->tables[MAREY__CALLS_TOTALS];
    struct marey__call_sum all = {0};
    uint64_t n_functions = 0;
    for (size_t i = 0; i < by_function->n_entities; i++) {
        const struct marey__call_sum *const sum = &by_function->entities[i];
        all.calls += sum->calls;
        all.primitive += sum->primitive;
        all.self_ns += sum->self_ns;
        n_functions += sum->calls != 0;
    }
    marey__put_whole(table, all.calls, !calls->from_samples);
    marey__put_whole(table, all.primitive, !calls->from_samples);
    marey_table_u64(table, n_functions);
    marey_table_u64(table, calls->n_signatures - 1);
    marey_table_u64(table, calls->n_nodes - 1);
    marey_table_u64(table, calls->n_threads);
    marey_table_u64(table, all.self_ns);
    marey_table_u64(table, calls->other_paths);
    marey_table_u64(table, calls->widened);
    marey__put_real(table, (double)calls->cost_ps / 1000, calls->cost_ps != 0);
    marey_table_u64(table, report->subtracted_ns);
    marey__put_string(table, timer_of(calls));
    marey__put_string(table, calls->from_ranges    ? "ranges"
                             : calls->from_samples ? "samples"
                                                   : "calls");
    put_notes(report);
}
