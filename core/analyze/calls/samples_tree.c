/*
 * Samples as a call tree, for profile files, flame graphs, comparisons and pages. A path's calls are its samples, and
 * its time is the time they represent; its self time is that of samples which end there.
 *
 * Rounds repeat a few stacks, so samples are first summed by thread and stack. Each path is then created once, and
 * counts are propagated from the innermost node outwards.
 */
#include <stdlib.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"

/* Samples of a thread with one stack. */
struct sum {
    uint32_t thread, stack; /* the key */
    uint64_t n, weight_ns;
};

struct adding {
    struct marey__calls *calls;
    struct marey__samples_set *set;
    struct sum *sums;
    size_t n_sums, sums_cap;
    struct marey__key_map by_key;
    bool shows_imports, is_complete; /* as in marey__samples_choose() */
    uint32_t *threads;   /* by thread of the samples: the tree's, plus one; 0: not created */
    uint32_t *functions; /* by function of the samples, followed by those by location */
    uint32_t n_functions;
    struct path {
        uint32_t thread, node; /* of the tree, the thread plus one */
    } * nodes;                 /* by stack: its node for the latest thread */
    uint32_t *frames;          /* frames of the current stack without a node, innermost first */
    size_t frames_cap;
};

/* ---- sums by thread and stack ---- */

static marey_status add_round(void *ctx, const struct marey_samples_round *round)
{
    struct adding *const a = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        const uint64_t key = marey__pair_key(round->seen[i].thread, round->seen[i].stack);
        const uint32_t number = MAREY__MAP_NUMBER(&a->by_key, a->sums, a->n_sums, a->sums_cap, key);
        MAREY__TRY_MEMORY(number != 0);
        struct sum *const sum = &a->sums[number - 1];
        sum->n += MAREY__MAX(round->n_same, 1);
        sum->weight_ns += round->weight_ns;
    }
    return MAREY_OK;
}

/* ---- the tree ---- */

static uint32_t thread_of(struct adding *a, uint32_t thread)
{
    const marey_samples *const samples = a->set->samples;
    if (a->threads[thread] != 0)
        return a->threads[thread] - 1;
    const struct marey_samples_thread *const from = marey_samples_get_thread(samples, thread);
    const struct marey_samples_process *const process =
        marey_samples_get_process(samples, from->process);
    const struct marey__call_thread made = {
        .pid = process->pid, .tid = from->tid, .rank = process->rank, .name = from->name};
    const uint32_t number = marey__calls_thread(a->calls, &made, from->process);
    a->threads[thread] = number != MAREY__NO_CALL ? number + 1 : 0;
    return number;
}

/* The function of location 0 is a thread without Python. Top-level code has a function per executed line. */
static uint32_t function_of(struct adding *a, uint32_t location)
{
    const struct marey_samples_location at = marey_samples_get_location(a->set->samples, location);
    const uint32_t function = at.function;
    const struct marey_samples_function *const from =
        marey_samples_get_function(a->set->samples, function);
    const bool has_line = !a->is_complete && function != 0 && marey__is_top_level(from);
    uint32_t *const known = &a->functions[has_line ? a->n_functions + location : function];
    if (*known != 0)
        return *known - 1;
    const bool is_python = function != 0 && from->kind == MAREY_FRAME_PYTHON;
    const char *const name = function != 0 ? from->name : MAREY__NO_FRAMES;
    const char *const place = is_python || from->file[0] != '\0' ? from->file : from->module;
    const struct marey__call_function made = {
        .name = name,
        .qualified = name,
        .file = place[0] != '\0' ? place : "~",
        .module = from->module,
        .line = has_line ? at.line : from->first_line,
        .kind = is_python ? MAREY__CALL_PYTHON : MAREY__CALL_COMPILED,
    };
    const uint32_t number = marey__calls_function(a->calls, &made);
    *known = number != MAREY__NO_CALL ? number + 1 : 0;
    return number;
}

static bool is_hidden(const struct adding *a, uint32_t location)
{
    const marey_samples *const samples = a->set->samples;
    const uint32_t function = marey_samples_get_location(samples, location).function;
    return !a->shows_imports &&
           marey__is_importlib(marey_samples_get_function(samples, function)->file);
}

/*
 * The node of the thread's stack; 0 on out of memory. Sums are ordered by thread, so frames shared with an earlier
 * stack of the thread reuse its nodes. A hidden frame has the node of the frame around it.
 */
static uint32_t node_of(struct adding *a, uint32_t thread, uint32_t stack)
{
    const marey_samples *const samples = a->set->samples;
    size_t n = 0;
    uint32_t at = stack, node = 0;
    for (; at != 0 && a->nodes[at].thread != thread + 1; n++) {
        if (!marey__grow(&a->frames, &a->frames_cap, n + 1, sizeof *a->frames))
            return 0;
        a->frames[n] = at;
        at = marey_samples_get_stack(samples, at).parent;
    }
    node = at != 0 ? a->nodes[at].node : 0;
    while (n > 0) {
        at = a->frames[--n];
        const uint32_t location = marey_samples_get_stack(samples, at).location;
        if (node != 0 && is_hidden(a, location)) {
            a->nodes[at] = (struct path){thread + 1, node};
            continue;
        }
        const uint32_t function = function_of(a, location);
        node =
            function != MAREY__NO_CALL ? marey__calls_node(a->calls, node, function, 0, thread) : 0;
        if (node == 0)
            return 0;
        a->nodes[at] = (struct path){thread + 1, node};
    }
    return node;
}

static bool add_sum(struct adding *a, const struct sum *sum)
{
    const uint32_t thread = thread_of(a, sum->thread);
    if (thread == MAREY__NO_CALL)
        return false;
    const uint32_t nothing = sum->stack == 0 ? function_of(a, 0) : 0;
    const uint32_t node = sum->stack != 0 ? node_of(a, thread, sum->stack)
                          : nothing != MAREY__NO_CALL
                              ? marey__calls_node(a->calls, 0, nothing, 0, thread)
                              : 0;
    if (node == 0)
        return false;
    a->calls->nodes[node].calls += sum->n;
    a->calls->nodes[node].total_ns += sum->weight_ns;
    a->calls->nodes[node].self_ns += sum->weight_ns;
    return true;
}

MAREY__ORDER(by_thread_and_stack, struct sum, MAREY__UP(thread) MAREY__UP(stack))

static marey_status make_tree(struct adding *a)
{
    const marey_samples *const samples = a->set->samples;
    struct marey__calls *const calls = a->calls;
    a->threads = marey__calloc((size_t)marey_samples_n_threads(samples) + 1, sizeof *a->threads);
    a->n_functions = marey_samples_n_functions(samples);
    a->functions = marey__calloc((size_t)a->n_functions + marey_samples_n_locations(samples) + 1,
                                 sizeof *a->functions);
    a->nodes = marey__calloc((size_t)marey_samples_n_stacks(samples) + 1, sizeof *a->nodes);
    bool done = a->threads != NULL && a->functions != NULL && a->nodes != NULL;
    if (a->n_sums != 0)
        qsort(a->sums, a->n_sums, sizeof *a->sums, by_thread_and_stack);
    for (size_t i = 0; done && i < a->n_sums; i++) {
        const uint32_t of = marey_samples_get_thread(samples, a->sums[i].thread)->process;
        done = a->set->targets[of].is_idle || add_sum(a, &a->sums[i]);
    }
    MAREY__TRY_MEMORY(done);
    for (size_t i = calls->n_nodes; i-- > 1;) { /* parents come first; the root has no sums */
        const struct marey__call_node *const node = &calls->nodes[i];
        if (node->parent != 0) {
            calls->nodes[node->parent].calls += node->calls;
            calls->nodes[node->parent].total_ns += node->total_ns;
        }
    }
    return MAREY_OK;
}

static marey_status read_set(struct adding *a, const struct marey__samples_filter *filter)
{
    struct marey__samples_chosen *chosen = NULL;
    MAREY_TRY(marey__samples_choose(a->set, filter, a->is_complete, &chosen));
    a->shows_imports = marey__samples_shows_imports(chosen);
    marey_status status = marey__samples_visit(a->set, chosen, add_round, a);
    marey__samples_chosen_destroy(chosen);
    return status == MAREY_OK ? make_tree(a) : status;
}

marey_status marey__calls_read_samples(struct marey__calls *calls,
                                       marey_recording *const *recordings, size_t n,
                                       const struct marey__samples_filter *filter, bool is_complete)
{
    struct marey__samples_set set;
    struct adding a = {.calls = calls, .set = &set, .is_complete = is_complete};
    *calls = (struct marey__calls){0};
    MAREY_TRY(marey__samples_open(&set, recordings, n));
    marey_status status = marey__calls_init(calls) ? MAREY_OK : marey__no_memory();
    if (status == MAREY_OK)
        status = read_set(&a, filter);
    calls->from_samples = true;
    calls->startup_ns = set.startup_ns;
    calls->idle_ns = set.idle_ns + set.task_wait_ns;
    marey__free(a.sums);
    marey__key_map_fini(&a.by_key);
    MAREY__FREE_ALL(a.threads, a.functions, a.nodes, a.frames);
    marey__samples_fini(&set);
    if (status != MAREY_OK)
        marey__calls_fini(calls);
    return status;
}
