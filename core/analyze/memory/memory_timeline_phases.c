/*
 * Phases of a training step, from annotations: marey's phases, the optimizer's and the DataLoader's. Without marey's,
 * operators are used: those run by the autograd engine are the backward pass, and those with a sequence number, which
 * autograd assigns to operators it will differentiate, are the forward pass.
 *
 * Phases belong to the process, not to a thread: a GPU's backward pass runs on a thread of the autograd engine.
 */
#include "analyze/memory/internal.h"

/* ---- spans ---- */

static bool put_span(struct marey__memory_phases *phases, const struct marey__torch_event *event,
                     enum marey__memory_phase phase)
{
    return MAREY__PUSH(phases->spans, phases->n_spans, phases->spans_cap,
                       (struct marey__memory_span){.begin_ns = event->begin_ns,
                                                   .end_ns = event->end_ns,
                                                   .phase = (uint8_t)phase});
}

static enum marey__memory_phase phase_of_annotation(const char *name)
{
    static const struct {
        const char *begin;
        enum marey__memory_phase phase;
    } known[] = {
        {"marey:data", MAREY__MEMORY_IN_DATA},
        {"enumerate(DataLoader)#", MAREY__MEMORY_IN_DATA},
        {"marey:forward", MAREY__MEMORY_IN_FORWARD},
        {"marey:backward", MAREY__MEMORY_IN_BACKWARD},
        {"Optimizer.step#", MAREY__MEMORY_IN_STEP},
        {"marey:optimizer", MAREY__MEMORY_IN_UPDATE},
        {"Optimizer.zero_grad#", MAREY__MEMORY_IN_UPDATE},
        {"marey:evaluate", MAREY__MEMORY_IN_OTHER},
        {"marey:checkpoint", MAREY__MEMORY_IN_OTHER},
        {"marey:logging", MAREY__MEMORY_IN_OTHER},
    };
    const size_t own = marey__phase_prefix(name, strlen(name));
    for (size_t i = 0; i < MAREY__COUNT_OF(known); i++) {
        const size_t prefix = marey__phase_prefix(known[i].begin, strlen(known[i].begin));
        if ((own > 0) == (prefix > 0) &&
            strncmp(name + own, known[i].begin + prefix, strlen(known[i].begin + prefix)) == 0)
            return known[i].phase;
    }
    return MAREY__MEMORY_IN_NONE;
}

static bool put_annotations(struct marey__memory_phases *phases,
                            const struct marey__torch_trace *trace)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct marey__torch_event *event = &trace->events[i];
        if (event->kind != MAREY__TORCH_ANNOTATION)
            continue;
        const enum marey__memory_phase phase =
            phase_of_annotation(marey__torch_text(trace, event->name, NULL));
        if (phase != MAREY__MEMORY_IN_NONE && !put_span(phases, event, phase))
            return false;
    }
    return true;
}

static bool has_phase(const struct marey__memory_phases *phases, enum marey__memory_phase phase)
{
    for (size_t i = 0; i < phases->n_spans; i++)
        if (phases->spans[i].phase == phase)
            return true;
    return false;
}

/* Of two spans that begin together, the longer one comes first: it contains the other. */
MAREY__ORDER(by_begin, struct marey__memory_span, MAREY__UP(begin_ns) MAREY__DOWN(end_ns))

static void sort_spans(struct marey__memory_phases *phases)
{
    if (phases->n_spans > 1)
        qsort(phases->spans, phases->n_spans, sizeof *phases->spans, by_begin);
}

/* ---- without annotations ---- */

static enum marey__memory_phase phase_of_operator(const struct marey__torch_trace *trace,
                                                  const struct marey__torch_event *event)
{
    if (strncmp(marey__torch_text(trace, event->name, NULL), "autograd::engine::", 18) == 0)
        return MAREY__MEMORY_IN_BACKWARD;
    return event->sequence >= 0 && event->forward_thread == 0 ? MAREY__MEMORY_IN_FORWARD
                                                              : MAREY__MEMORY_IN_NONE;
}

static bool is_pass(const struct marey__memory_span *span)
{
    return span->phase == MAREY__MEMORY_IN_FORWARD || span->phase == MAREY__MEMORY_IN_BACKWARD;
}

/*
 * Join operators of one pass without anything between them into one span. Operators within an annotated phase belong to
 * it, and autograd's operators within its backward pass belong there, whatever their kind. Sorted before and after.
 */
static void join_operators(struct marey__memory_phases *phases)
{
    size_t n = 0;
    int64_t annotated_ns = INT64_MIN;
    for (size_t i = 0; i < phases->n_spans; i++) {
        const struct marey__memory_span span = phases->spans[i];
        struct marey__memory_span *last = n != 0 ? &phases->spans[n - 1] : NULL;
        if (!is_pass(&span)) {
            annotated_ns = MAREY__MAX(annotated_ns, span.end_ns);
            phases->spans[n++] = span;
        } else if (last != NULL && is_pass(last) &&
                   (last->phase == span.phase || span.end_ns <= last->end_ns)) {
            last->end_ns = MAREY__MAX(last->end_ns, span.end_ns);
        } else if (span.end_ns > annotated_ns) {
            phases->spans[n++] = span;
        }
    }
    phases->n_spans = n;
}

/* Forward and backward passes by their operators, if no annotation names any. */
static bool put_operators(struct marey__memory_phases *phases, const struct marey__torch_trace *trace)
{
    if (has_phase(phases, MAREY__MEMORY_IN_FORWARD) || has_phase(phases, MAREY__MEMORY_IN_BACKWARD))
        return true;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct marey__torch_event *event = &trace->events[i];
        if (event->kind != MAREY__TORCH_OP)
            continue;
        const enum marey__memory_phase phase = phase_of_operator(trace, event);
        if (phase != MAREY__MEMORY_IN_NONE && !put_span(phases, event, phase))
            return false;
    }
    sort_spans(phases);
    join_operators(phases);
    return true;
}

/* ---- pieces ---- */

static bool put_piece(struct marey__memory_phases *phases, int64_t begin_ns, uint32_t span)
{
    if (phases->n_pieces != 0 && phases->pieces[phases->n_pieces - 1].begin_ns == begin_ns)
        phases->n_pieces--; /* empty */
    return MAREY__PUSH(phases->pieces, phases->n_pieces, phases->pieces_cap,
                       (struct marey__memory_piece){.begin_ns = begin_ns, .span = span});
}

/* The open spans, the innermost last. */
struct open_spans {
    uint32_t *numbers;
    size_t n;
};

static bool close_until(struct marey__memory_phases *phases, struct open_spans *open, int64_t ns)
{
    while (open->n != 0) {
        const int64_t end_ns = phases->spans[open->numbers[open->n - 1]].end_ns;
        if (end_ns > ns)
            return true;
        open->n--;
        if (!put_piece(phases, end_ns, open->n != 0 ? open->numbers[open->n - 1] : MAREY__MEMORY_NONE))
            return false;
    }
    return true;
}

static enum marey__memory_phase phase_of_piece(const struct marey__memory_phases *phases, size_t i)
{
    const uint32_t span = phases->pieces[i].span;
    return span != MAREY__MEMORY_NONE ? (enum marey__memory_phase)phases->spans[span].phase
                                      : MAREY__MEMORY_IN_NONE;
}

/*
 * Assigns gaps between two phases to the earlier one: a loss is computed after the model's forward pass and before the
 * backward pass, a batch is moved to its device after the DataLoader and before the forward pass.
 */
static void fill_gaps(struct marey__memory_phases *phases)
{
    for (size_t i = 1; i + 1 < phases->n_pieces; i++) {
        if (phases->pieces[i].span != MAREY__MEMORY_NONE)
            continue;
        const enum marey__memory_phase before = phase_of_piece(phases, i - 1),
                                       behind = phase_of_piece(phases, i + 1);
        if ((before == MAREY__MEMORY_IN_FORWARD && behind == MAREY__MEMORY_IN_BACKWARD) ||
            (before == MAREY__MEMORY_IN_DATA && behind == MAREY__MEMORY_IN_FORWARD)) {
            const uint32_t span = phases->pieces[i - 1].span;
            phases->pieces[i].span = span;
            phases->spans[span].end_ns = phases->pieces[i + 1].begin_ns;
        }
    }
}

static bool cut_into_pieces(struct marey__memory_phases *phases)
{
    uint32_t *const numbers MAREY__FREED = marey__calloc(phases->n_spans + 1, sizeof *numbers);
    struct open_spans open = {.numbers = numbers};
    if (numbers == NULL)
        return false;
    for (uint32_t i = 0; i < phases->n_spans; i++) {
        struct marey__memory_span *span = &phases->spans[i];
        if (!close_until(phases, &open, span->begin_ns))
            return false;
        /* Spans of different threads need not nest. */
        if (open.n != 0)
            span->end_ns = MAREY__MIN(span->end_ns, phases->spans[numbers[open.n - 1]].end_ns);
        numbers[open.n++] = i;
        if (!put_piece(phases, span->begin_ns, i))
            return false;
    }
    if (!close_until(phases, &open, INT64_MAX))
        return false;
    fill_gaps(phases);
    return true;
}

/* ---- operators ---- */

static bool put_outermost(struct marey__memory_phases *phases, const struct marey__torch_trace *trace,
                          const struct marey__torch_thread *thread)
{
    int64_t end_ns = INT64_MIN;
    for (size_t i = thread->begin; i < thread->end; i++) {
        const struct marey__torch_event *event = &trace->events[i];
        if (event->kind != MAREY__TORCH_OP || event->begin_ns < end_ns)
            continue;
        end_ns = event->end_ns;
        if (!MAREY__PUSH(phases->operators, phases->n_operators, phases->operators_cap,
                         (struct marey__memory_span){.begin_ns = event->begin_ns, .end_ns = end_ns}))
            return false;
    }
    return true;
}

static bool find_operators(struct marey__memory_phases *phases, const struct marey__torch_trace *trace)
{
    phases->first_operator = marey__calloc(trace->n_threads + 1, sizeof *phases->first_operator);
    if (phases->first_operator == NULL)
        return false;
    for (size_t t = 0; t < trace->n_threads; t++) {
        phases->first_operator[t] = phases->n_operators;
        if (!put_outermost(phases, trace, &trace->threads[t]))
            return false;
    }
    phases->first_operator[trace->n_threads] = phases->n_operators;
    return true;
}

/* ---- lookup ---- */

const struct marey__memory_span *marey__memory_span_at(const struct marey__memory_phases *phases,
                                                       int64_t ns)
{
    size_t after;
    MAREY__BISECT(after, 0, phases->n_pieces, phases->pieces[after].begin_ns <= ns);
    if (after == 0 || phases->pieces[after - 1].span == MAREY__MEMORY_NONE)
        return NULL;
    return &phases->spans[phases->pieces[after - 1].span];
}

/* The outermost operator of a thread at a timestamp, or NULL. */
static const struct marey__memory_span *operator_at(const struct marey__memory_phases *phases,
                                                    uint32_t thread, int64_t ns)
{
    const size_t first = phases->first_operator[thread];
    size_t after;
    MAREY__BISECT(after, first, phases->first_operator[thread + 1],
                  phases->operators[after].begin_ns <= ns);
    return after > first && phases->operators[after - 1].end_ns >= ns ? &phases->operators[after - 1]
                                                                      : NULL;
}

bool marey__memory_phases_init(struct marey__memory_phases *phases,
                               const struct marey__torch_trace *trace)
{
    *phases = (struct marey__memory_phases){0};
    if (!put_annotations(phases, trace) || !put_operators(phases, trace))
        return false;
    sort_spans(phases);
    /* A custom training loop may have no optimizer known to torch. */
    if (!has_phase(phases, MAREY__MEMORY_IN_STEP))
        for (size_t i = 0; i < phases->n_spans; i++)
            if (phases->spans[i].phase == MAREY__MEMORY_IN_UPDATE)
                phases->spans[i].phase = MAREY__MEMORY_IN_STEP;
    return cut_into_pieces(phases) && find_operators(phases, trace);
}

void marey__memory_phases_fini(struct marey__memory_phases *phases)
{
    MAREY__FREE_ALL(phases->spans, phases->pieces, phases->operators, phases->first_operator);
    *phases = (struct marey__memory_phases){0};
}

/*
 * ---- categories ----
 *
 * The category of a block without a role follows from its times of allocation and release. If roles were recorded while
 * it lived and none named it, it is neither a gradient of a leaf nor optimizer state.
 */

/* The distinct times at which roles of one kind were recorded. */
struct instants {
    int64_t *ns;
    size_t n;
};

struct rules {
    const struct marey__memory_phases *phases;
    struct instants gradients, states;
};

MAREY__ORDER(by_value, int64_t, MAREY__UP_BY(*x, *y))

static bool find_instants(struct instants *instants, const struct marey__torch_trace *trace,
                          enum marey__torch_role_kind kind)
{
    instants->ns = marey__calloc(trace->n_roles + 1, sizeof *instants->ns);
    if (instants->ns == NULL)
        return false;
    for (size_t i = 0; i < trace->n_roles; i++) {
        const int64_t ns = trace->roles[i].ns;
        /* Roles of one time are adjacent. */
        if (trace->roles[i].kind == kind && (instants->n == 0 || instants->ns[instants->n - 1] != ns))
            instants->ns[instants->n++] = ns;
    }
    qsort(instants->ns, instants->n, sizeof *instants->ns, by_value);
    return true;
}

/* Whether roles were recorded between two times. */
static bool were_taken(const struct instants *instants, int64_t from_ns, int64_t to_ns)
{
    size_t at;
    MAREY__BISECT(at, 0, instants->n, instants->ns[at] < from_ns);
    return at < instants->n && instants->ns[at] < to_ns;
}

static bool is_within_operator(const struct rules *rules, const struct marey__memory_block *block)
{
    const struct marey__memory_span *op = operator_at(rules->phases, block->thread, block->made_ns);
    return op != NULL && block->freed_ns <= op->end_ns;
}

/* The category of a block that outlives the span in which it was allocated. */
static enum marey_memory_category lasting(const struct rules *rules,
                                          const struct marey__memory_span *span,
                                          const struct marey__memory_block *block)
{
    switch (span->phase) {
    case MAREY__MEMORY_IN_DATA:
        return MAREY_MEMORY_INPUT;
    case MAREY__MEMORY_IN_FORWARD:
        return MAREY_MEMORY_ACTIVATION;
    case MAREY__MEMORY_IN_BACKWARD:
        return were_taken(&rules->gradients, span->end_ns, block->freed_ns)
                   ? MAREY_MEMORY_AUTOGRAD_DETAIL
                   : MAREY_MEMORY_GRADIENT;
    case MAREY__MEMORY_IN_STEP:
        return were_taken(&rules->states, span->end_ns, block->freed_ns)
                   ? MAREY_MEMORY_UNKNOWN
                   : MAREY_MEMORY_OPTIMIZER_STATE;
    default:
        return MAREY_MEMORY_UNKNOWN;
    }
}

static enum marey_memory_category category_of(const struct rules *rules,
                                              const struct marey__memory_block *block)
{
    if (block->made_event == MAREY__MEMORY_NONE)
        return MAREY_MEMORY_UNKNOWN; /* allocated before the first event, for an unknown purpose */
    if (is_within_operator(rules, block))
        return MAREY_MEMORY_TEMPORARY;
    const struct marey__memory_span *span = marey__memory_span_at(rules->phases, block->made_ns);
    if (span == NULL)
        return MAREY_MEMORY_UNKNOWN;
    if (block->freed_ns > span->end_ns)
        return lasting(rules, span, block);
    return span->phase == MAREY__MEMORY_IN_BACKWARD ? MAREY_MEMORY_AUTOGRAD_DETAIL
                                                    : MAREY_MEMORY_TEMPORARY;
}

bool marey__memory_classify(struct marey__memory_timeline *timeline)
{
    struct rules rules = {.phases = &timeline->phases};
    const bool ok = find_instants(&rules.gradients, timeline->trace, MAREY__TORCH_GRADIENT) &&
                    find_instants(&rules.states, timeline->trace, MAREY__TORCH_OPTIMIZER_STATE);
    for (size_t i = 0; ok && i < timeline->n_blocks; i++)
        if (!timeline->blocks[i].has_role)
            timeline->blocks[i].category = (uint8_t)category_of(&rules, &timeline->blocks[i]);
    MAREY__FREE_ALL(rules.gradients.ns, rules.states.ns);
    return ok;
}
