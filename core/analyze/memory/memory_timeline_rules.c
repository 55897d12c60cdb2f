/*
 * A block's category by when it was made and released, for blocks that no role names. A role says more where roles were
 * taken while the block lived and none of them named it: then it is no gradient of a leaf, no state of the optimizer.
 */
#include "analyze/memory/internal.h"

/* When roles of one kind were taken, each instant once. */
struct instants {
    int64_t *ns;
    size_t n;
};

struct rules {
    const struct marey__memory_phases *phases;
    struct instants gradients, states;
};

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool find_instants(struct instants *instants, const struct marey__torch_trace *trace,
                          enum marey__torch_role_kind kind)
{
    instants->ns = marey__calloc(trace->n_roles + 1, sizeof *instants->ns);
    if (instants->ns == NULL)
        return false;
    for (size_t i = 0; i < trace->n_roles; i++) {
        const int64_t ns = trace->roles[i].ns;
        /* Roles of one instant stand together. */
        if (trace->roles[i].kind == kind && (instants->n == 0 || instants->ns[instants->n - 1] != ns))
            instants->ns[instants->n++] = ns;
    }
    qsort(instants->ns, instants->n, sizeof *instants->ns, by_value);
    return true;
}

/* Whether roles were taken between two instants. */
static bool were_taken(const struct instants *instants, int64_t from_ns, int64_t to_ns)
{
    size_t at;
    MAREY__BISECT(at, 0, instants->n, instants->ns[at] < from_ns);
    return at < instants->n && instants->ns[at] < to_ns;
}

static bool is_within_operator(const struct rules *rules, const struct marey__memory_block *block)
{
    const struct marey__memory_span *op =
        marey__memory_operator_at(rules->phases, block->thread, block->made_ns);
    return op != NULL && block->freed_ns <= op->end_ns;
}

/* Of a block that outlives the span it was made in. */
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
        return MAREY_MEMORY_UNKNOWN; /* it was there before, and nobody knows why */
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
    marey__free(rules.gradients.ns);
    marey__free(rules.states.ns);
    return ok;
}
