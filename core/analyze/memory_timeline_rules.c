/*
 * A block's category by when it was made and released, for blocks that no role names. A role says more where roles were
 * taken while the block lived and none of them named it: then it is no gradient of a leaf, no state of the optimizer.
 */
#include "analyze/memory_timeline.h"

/* When roles of one kind were taken, each instant once. */
struct instants {
    int64_t *ns;
    size_t n;
};

struct rules {
    const struct kymo__memory_phases *phases;
    struct instants gradients, states;
};

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool find_instants(struct instants *instants, const struct kymo__torch_trace *trace,
                          enum kymo__torch_role_kind kind)
{
    instants->ns = kymo__calloc(trace->n_roles + 1, sizeof *instants->ns);
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
    size_t low = 0, high = instants->n; /* the first at or behind `from_ns` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (instants->ns[middle] < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < instants->n && instants->ns[low] < to_ns;
}

static bool is_within_operator(const struct rules *rules, const struct kymo__memory_block *block)
{
    const struct kymo__memory_span *op =
        kymo__memory_operator_at(rules->phases, block->thread, block->made_ns);
    return op != NULL && block->freed_ns <= op->end_ns;
}

/* Of a block that outlives the span it was made in. */
static enum kymo_memory_category lasting(const struct rules *rules,
                                         const struct kymo__memory_span *span,
                                         const struct kymo__memory_block *block)
{
    switch (span->phase) {
    case KYMO__MEMORY_IN_DATA:
        return KYMO_MEMORY_INPUT;
    case KYMO__MEMORY_IN_FORWARD:
        return KYMO_MEMORY_ACTIVATION;
    case KYMO__MEMORY_IN_BACKWARD:
        return were_taken(&rules->gradients, span->end_ns, block->freed_ns)
                   ? KYMO_MEMORY_AUTOGRAD_DETAIL
                   : KYMO_MEMORY_GRADIENT;
    case KYMO__MEMORY_IN_STEP:
        return were_taken(&rules->states, span->end_ns, block->freed_ns)
                   ? KYMO_MEMORY_UNKNOWN
                   : KYMO_MEMORY_OPTIMIZER_STATE;
    default:
        return KYMO_MEMORY_UNKNOWN;
    }
}

static enum kymo_memory_category category_of(const struct rules *rules,
                                             const struct kymo__memory_block *block)
{
    if (block->made_event == KYMO__MEMORY_NONE)
        return KYMO_MEMORY_UNKNOWN; /* it was there before, and nobody knows why */
    if (is_within_operator(rules, block))
        return KYMO_MEMORY_TEMPORARY;
    const struct kymo__memory_span *span = kymo__memory_span_at(rules->phases, block->made_ns);
    if (span == NULL)
        return KYMO_MEMORY_UNKNOWN;
    if (block->freed_ns > span->end_ns)
        return lasting(rules, span, block);
    return span->phase == KYMO__MEMORY_IN_BACKWARD ? KYMO_MEMORY_AUTOGRAD_DETAIL
                                                   : KYMO_MEMORY_TEMPORARY;
}

bool kymo__memory_classify(struct kymo__memory_timeline *timeline)
{
    struct rules rules = {.phases = &timeline->phases};
    const bool ok = find_instants(&rules.gradients, timeline->trace, KYMO__TORCH_GRADIENT) &&
                    find_instants(&rules.states, timeline->trace, KYMO__TORCH_OPTIMIZER_STATE);
    for (size_t i = 0; ok && i < timeline->n_blocks; i++)
        if (!timeline->blocks[i].has_role)
            timeline->blocks[i].category = (uint8_t)category_of(&rules, &timeline->blocks[i]);
    kymo__free(rules.gradients.ns);
    kymo__free(rules.states.ns);
    return ok;
}
