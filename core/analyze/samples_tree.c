/*
 * Samples as a tree of calls: what profilers' files, flame graphs and pages are made of. A path has as many calls as there are
 * samples with it, and the time that these stand for; its own is that of samples which end there.
 *
 * Rounds repeat the same few stacks. They are added up by thread and stack first, so that each path is walked once.
 */
#include <string.h>

#include "analyze/calls.h"
#include "analyze/samples.h"

/* Samples of a thread with one stack. */
struct sum {
    uint32_t thread, stack;
    uint64_t n, weight_ns;
};

struct adding {
    struct kymo__calls *calls;
    struct kymo__samples_set *set;
    struct sum *sums;
    size_t n_sums, sums_cap;
    uint32_t *slots; /* of sums, plus one; 0: empty */
    uint32_t n_slots_log2;
    uint32_t *threads;   /* by thread of the samples: the tree's, plus one; 0: not made */
    uint32_t *functions; /* by function of the samples, as well */
    uint32_t *frames;    /* of the stack at hand, functions of the samples; the innermost first */
    size_t frames_cap;
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the stacks of samples");
}

/* ---- sums by thread and stack ---- */

static size_t slot_of(const struct adding *a, uint32_t thread, uint32_t stack)
{
    const uint64_t key = (uint64_t)thread << 32 | stack;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - a->n_slots_log2));
}

static uint32_t *find_slot(const struct adding *a, uint32_t thread, uint32_t stack)
{
    const size_t mask = ((size_t)1 << a->n_slots_log2) - 1;
    for (size_t at = slot_of(a, thread, stack);; at = (at + 1) & mask) {
        const uint32_t number = a->slots[at];
        if (number == 0 ||
            (a->sums[number - 1].thread == thread && a->sums[number - 1].stack == stack))
            return &a->slots[at];
    }
}

static bool make_slots(struct adding *a, uint32_t log2)
{
    uint32_t *const slots = kymo__calloc((size_t)1 << log2, sizeof *slots);
    if (slots == NULL)
        return false;
    kymo__free(a->slots);
    a->slots = slots;
    a->n_slots_log2 = log2;
    for (size_t i = 0; i < a->n_sums; i++)
        *find_slot(a, a->sums[i].thread, a->sums[i].stack) = (uint32_t)i + 1;
    return true;
}

static struct sum *find_sum(struct adding *a, uint32_t thread, uint32_t stack)
{
    uint32_t *const slot = find_slot(a, thread, stack);
    if (*slot != 0)
        return &a->sums[*slot - 1];
    if (!kymo__grow(&a->sums, &a->sums_cap, a->n_sums + 1, sizeof *a->sums))
        return NULL;
    a->sums[a->n_sums] = (struct sum){.thread = thread, .stack = stack};
    *slot = (uint32_t)++a->n_sums;
    if (a->n_sums * 2 > (size_t)1 << a->n_slots_log2 && !make_slots(a, a->n_slots_log2 + 1))
        return NULL;
    return &a->sums[a->n_sums - 1];
}

static kymo_status add_round(void *ctx, const struct kymo_samples_round *round)
{
    struct adding *const a = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        struct sum *const sum = find_sum(a, round->seen[i].thread, round->seen[i].stack);
        if (sum == NULL)
            return no_memory();
        sum->n += KYMO__MAX(round->n_same, 1);
        sum->weight_ns += round->weight_ns;
    }
    return KYMO_OK;
}

/* ---- the tree ---- */

static uint32_t thread_of(struct adding *a, uint32_t thread)
{
    const kymo_samples *const samples = a->set->samples;
    if (a->threads[thread] != 0)
        return a->threads[thread] - 1;
    const struct kymo_samples_thread *const from = kymo_samples_get_thread(samples, thread);
    const struct kymo_samples_process *const process =
        kymo_samples_get_process(samples, from->process);
    const struct kymo__call_thread made = {
        .pid = process->pid, .tid = from->tid, .rank = process->rank, .name = from->name};
    const uint32_t number = kymo__calls_thread(a->calls, &made, from->process);
    a->threads[thread] = number != KYMO__NO_CALL ? number + 1 : 0;
    return number;
}

/* Number 0 is a thread that ran no Python. */
static uint32_t function_of(struct adding *a, uint32_t function)
{
    if (a->functions[function] != 0)
        return a->functions[function] - 1;
    const struct kymo_samples_function *const from =
        kymo_samples_get_function(a->set->samples, function);
    const bool is_python = function != 0 && from->kind == KYMO_FRAME_PYTHON;
    const char *const name = function != 0 ? from->name : "(no Python frames)";
    const char *const place = is_python || from->file[0] != '\0' ? from->file : from->module;
    const struct kymo__call_function made = {
        .name = name,
        .qualified = name,
        .file = place[0] != '\0' ? place : "~",
        .module = from->module,
        .line = from->first_line,
        .kind = is_python ? KYMO__CALL_PYTHON : KYMO__CALL_COMPILED,
    };
    const uint32_t number = kymo__calls_function(a->calls, &made);
    a->functions[function] = number != KYMO__NO_CALL ? number + 1 : 0;
    return number;
}

/* The functions of a stack, the innermost first; how many. */
static bool unroll(struct adding *a, uint32_t stack, size_t *n)
{
    const kymo_samples *const samples = a->set->samples;
    *n = 0;
    for (uint32_t at = stack; at != 0;) {
        const struct kymo_samples_stack frame = kymo_samples_get_stack(samples, at);
        if (!kymo__grow(&a->frames, &a->frames_cap, *n + 1, sizeof *a->frames))
            return false;
        a->frames[(*n)++] = kymo_samples_get_location(samples, frame.location).function;
        at = frame.parent;
    }
    if (*n != 0)
        return true;
    if (!kymo__grow(&a->frames, &a->frames_cap, 1, sizeof *a->frames))
        return false;
    a->frames[(*n)++] = 0;
    return true;
}

static bool add_path(struct adding *a, const struct sum *sum)
{
    const uint32_t thread = thread_of(a, sum->thread);
    uint32_t node = 0;
    size_t n;
    if (thread == KYMO__NO_CALL || !unroll(a, sum->stack, &n))
        return false;
    while (n > 0) {
        const uint32_t function = function_of(a, a->frames[--n]);
        node = function != KYMO__NO_CALL ? kymo__calls_node(a->calls, node, function, 0, thread) : 0;
        if (node == 0)
            return false;
        a->calls->nodes[node].calls += sum->n;
        a->calls->nodes[node].total_ns += sum->weight_ns;
    }
    a->calls->nodes[node].self_ns += sum->weight_ns;
    return true;
}

static kymo_status make_tree(struct adding *a)
{
    const kymo_samples *const samples = a->set->samples;
    a->threads = kymo__calloc((size_t)kymo_samples_n_threads(samples) + 1, sizeof *a->threads);
    a->functions = kymo__calloc((size_t)kymo_samples_n_functions(samples) + 1, sizeof *a->functions);
    bool done = a->threads != NULL && a->functions != NULL;
    for (size_t i = 0; done && i < a->n_sums; i++)
        done = add_path(a, &a->sums[i]);
    return done ? KYMO_OK : no_memory();
}

static kymo_status read_set(struct adding *a, const struct kymo_samples_filter *filter)
{
    enum { FIRST_SLOTS_LOG2 = 8 };
    struct kymo__samples_chosen *chosen = NULL;
    if (!make_slots(a, FIRST_SLOTS_LOG2))
        return no_memory();
    KYMO_TRY(kymo__samples_choose(a->set, filter, &chosen));
    kymo_status status = kymo__samples_visit(a->set, chosen, add_round, a);
    kymo__samples_chosen_destroy(chosen);
    return status == KYMO_OK ? make_tree(a) : status;
}

kymo_status kymo__calls_read_samples(struct kymo__calls *calls, kymo_recording *const *recordings,
                                     size_t n, const struct kymo_samples_filter *filter)
{
    static const struct kymo_samples_filter defaults;
    struct kymo__samples_set set;
    struct adding a = {.calls = calls, .set = &set};
    *calls = (struct kymo__calls){0};
    KYMO_TRY(kymo__samples_open(&set, recordings, n));
    kymo_status status = kymo__calls_init(calls) ? KYMO_OK : no_memory();
    if (status == KYMO_OK)
        status = read_set(&a, filter != NULL ? filter : &defaults);
    calls->from_samples = true;
    kymo__free(a.sums);
    kymo__free(a.slots);
    kymo__free(a.threads);
    kymo__free(a.functions);
    kymo__free(a.frames);
    kymo__samples_fini(&set);
    if (status != KYMO_OK)
        kymo__calls_fini(calls);
    return status;
}
