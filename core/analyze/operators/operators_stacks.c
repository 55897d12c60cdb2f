/*
 * Stacks of calls as entries. A call within an autograd function has no source line; it gets the stack of the forward
 * call with the function's sequence number, on the forward thread, or none.
 */
#include "analyze/operators/internal.h"

/* ---- entries ---- */

static bool has(const struct marey__torch_entry *entry, const char *part)
{
    return memmem(entry->text, entry->len, part, strlen(part)) != NULL;
}

/* Frames around every backward call, which torch does not show. */
static bool is_shown(const struct marey__torch_entry *entry)
{
    static const char *const hidden[][2] = {
        {"autograd/__init__", "_make_grads"},
        {"autograd/__init__", "backward"},
        {"torch/tensor", "backward"},
        {"_internal/common_utils", "prof_callable"},
        {"_internal/common_utils", "prof_func_call"},
        {"_internal/common_utils", "prof_meth_call"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(hidden); i++)
        if (has(entry, hidden[i][0]) && has(entry, hidden[i][1]))
            return false;
    return true;
}

static bool add_entries(struct marey__operators *operators, const char *text, size_t len,
                        struct marey__torch_stack *stack)
{
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, ';', len - at);
        const size_t n = end != NULL ? (size_t)(end - text) - at : len - at;
        const struct marey__torch_entry entry = {text + at, (uint32_t)n};
        at += n + 1;
        if (n == 0 || !is_shown(&entry))
            continue;
        if (!MAREY__PUSH(operators->entries, operators->n_entries, operators->entries_cap, entry))
            return false;
        stack->n++;
    }
    return true;
}

/* The number of the top entries that distinguish rows. */
static bool find_top(struct marey__operators *operators, struct marey__torch_stack *stack)
{
    const uint32_t n = operators->by_name_alone ? 0 : MAREY__MIN(stack->n, operators->stack_depth);
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct marey__torch_entry *entry = &operators->entries[stack->first + i];
        marey__buf_put(&text, ";", i > 0);
        marey__buf_put(&text, entry->text, entry->len);
    }
    stack->top = text.failed
                     ? MAREY__NO_NAME
                     : marey__names_keep(&operators->texts, &operators->arena, text.data, text.len);
    return stack->top != MAREY__NO_NAME;
}

/* The stack of a text of the trace, created if needed. */
static bool stack_of(struct marey__operators *operators, marey__torch_id id, uint32_t *number)
{
    if (operators->stack_of[id] == 0) {
        size_t len;
        const char *text = marey__torch_text(operators->trace, id, &len);
        struct marey__torch_stack stack = {.first = (uint32_t)operators->n_entries};
        if (operators->n_entries + len >= UINT32_MAX ||
            !add_entries(operators, text, len, &stack) || !find_top(operators, &stack) ||
            !MAREY__PUSH(operators->stacks, operators->n_stacks, operators->stacks_cap, stack))
            return false;
        operators->stack_of[id] = (uint32_t)operators->n_stacks;
    }
    *number = operators->stack_of[id] - 1;
    return true;
}

/* ---- forward calls of backward calls ---- */

/* The first call with a sequence number on a thread. */
struct forward {
    int64_t sequence;
    uint32_t thread, stack;
};

struct forwards {
    struct forward *list; /* by sequence number, then thread */
    size_t n, cap;
    /* Maps torch's thread numbers to threads, by votes of matching sequence numbers. */
    struct vote {
        int64_t number;
        uint32_t thread;
        uint64_t n;
    } * votes;
    size_t n_votes, votes_cap;
};

MAREY__ORDER_RUNS(forward_before, struct forward, MAREY__UP(sequence) MAREY__UP(thread))

/* The autograd function around a call, or itself; MAREY__NO_OPERATOR_CALL: not in a backward pass. */
static uint32_t autograd_around(const struct marey__operators *operators, const uint32_t *around,
                                size_t i)
{
    const struct marey__torch_call *call = &operators->calls[i];
    if (call->is_backward)
        return (uint32_t)i;
    return call->parent == MAREY__NO_OPERATOR_CALL ? MAREY__NO_OPERATOR_CALL : around[call->parent];
}

static bool add_forward(const struct marey__operators *operators, struct forwards *forwards, size_t i)
{
    const struct marey__torch_event *event = marey__call_event(operators, &operators->calls[i]);
    if (event->sequence < 0)
        return true;
    return MAREY__PUSH(forwards->list, forwards->n, forwards->cap,
                       (struct forward){event->sequence, event->thread, operators->calls[i].stack});
}

/* The first one with this sequence number; the end of the list if there is none. */
static size_t find_sequence(const struct forwards *forwards, int64_t sequence)
{
    size_t at;
    MAREY__BISECT(at, 0, forwards->n, forwards->list[at].sequence < sequence);
    return at;
}

static bool add_vote(struct forwards *forwards, int64_t number, uint32_t thread)
{
    size_t i = 0;
    while (i < forwards->n_votes &&
           (forwards->votes[i].number != number || forwards->votes[i].thread != thread))
        i++;
    if (i == forwards->n_votes) {
        if (!marey__grow(&forwards->votes, &forwards->votes_cap, i + 1, sizeof *forwards->votes))
            return false;
        forwards->votes[forwards->n_votes++] = (struct vote){number, thread, 0};
    }
    forwards->votes[i].n++;
    return true;
}

static bool vote(struct forwards *forwards, const struct marey__torch_event *event)
{
    enum { MAX_VOTES = 4096 }; /* limit for threads in a hostile file */
    if (event->sequence < 0 || event->forward_thread <= 0)
        return true;
    for (size_t i = find_sequence(forwards, event->sequence);
         i < forwards->n && forwards->list[i].sequence == event->sequence; i++)
        if ((i == 0 || forward_before(&forwards->list[i - 1], &forwards->list[i])) &&
            forwards->n_votes < MAX_VOTES &&
            !add_vote(forwards, event->forward_thread, forwards->list[i].thread))
            return false;
    return true;
}

static uint32_t thread_of(const struct forwards *forwards, int64_t number)
{
    uint64_t most = 0;
    uint32_t thread = UINT32_MAX;
    for (size_t i = 0; i < forwards->n_votes; i++)
        if (forwards->votes[i].number == number && forwards->votes[i].n > most) {
            most = forwards->votes[i].n;
            thread = forwards->votes[i].thread;
        }
    return thread;
}

/* The stack of the forward call of an autograd function; 0, the empty stack, if missing. */
static uint32_t forward_stack(const struct forwards *forwards, const struct marey__torch_event *event)
{
    const uint32_t thread = thread_of(forwards, event->forward_thread);
    if (event->sequence < 0 || event->forward_thread <= 0)
        return 0;
    for (size_t i = find_sequence(forwards, event->sequence);
         i < forwards->n && forwards->list[i].sequence == event->sequence; i++)
        if (forwards->list[i].thread == thread)
            return forwards->list[i].stack;
    return 0;
}

static void forwards_fini(struct forwards *forwards)
{
    MAREY__FREE_ALL(forwards->list, forwards->votes);
}

static bool give_forward_stacks(struct marey__operators *operators, struct forwards *forwards,
                                uint32_t *around)
{
    struct marey__torch_call *const calls = operators->calls;
    for (size_t i = 0; i < operators->n_calls; i++) {
        around[i] = autograd_around(operators, around, i);
        if (around[i] == MAREY__NO_OPERATOR_CALL && !calls[i].is_double &&
            !add_forward(operators, forwards, i))
            return false;
    }
    if (!marey__sort_runs(forwards->list, forwards->n, sizeof *forwards->list, forward_before))
        return false;
    for (size_t i = 0; i < operators->n_calls; i++)
        if (calls[i].is_backward && !vote(forwards, marey__call_event(operators, &calls[i])))
            return false;
    for (size_t i = 0; i < operators->n_calls; i++)
        if (around[i] == i)
            calls[i].stack = forward_stack(forwards, marey__call_event(operators, &calls[i]));
        else if (around[i] != MAREY__NO_OPERATOR_CALL)
            calls[i].stack = calls[around[i]].stack;
    return true;
}

bool marey__operators_find_stacks(struct marey__operators *operators)
{
    uint32_t none;
    operators->stack_of = marey__calloc(operators->trace->strings.n, sizeof *operators->stack_of);
    if (operators->stack_of == NULL || !stack_of(operators, 0, &none))
        return false;
    for (size_t i = 0; i < operators->n_calls; i++) {
        struct marey__torch_call *call = &operators->calls[i];
        if (!stack_of(operators, marey__call_event(operators, call)->stack, &call->stack))
            return false;
    }
    uint32_t *const around MAREY__FREED = marey__alloc((operators->n_calls + 1) * sizeof *around);
    struct forwards forwards MAREY__FINALLY(forwards_fini) = {0};
    return around != NULL && give_forward_stacks(operators, &forwards, around);
}
