/* Native frames of a thread: copied in the same stop as Python's, put together afterwards. */
#include "sampler/loop/internal.h"

static void plan_stack(struct marey__sampler_context *context, struct marey__target *target,
                       struct marey__native_copy *copy, size_t *index)
{
    const uint64_t sp = copy->input.registers[MAREY__UNWIND_SP];
    copy->input.stack_at = sp;
    copy->input.n_stack = marey__unwind_stack_size(target->unwind, sp, MAREY__UNWIND_MAX_STACK);
    *index = marey__batch_add(&context->batch, sp, copy->input.n_stack);
}

void marey__native_plan(struct marey__sampler_context *context, struct marey__target *target,
                        pid_t tid, struct marey__native_copy *copy, size_t *index)
{
    copy->is_there = marey__unwind_registers(tid, &copy->input);
    if (!copy->is_there)
        return;
    plan_stack(context, target, copy, index);
}

void marey__native_plan_asleep(struct marey__sampler_context *context, struct marey__target *target,
                               const struct marey__thread_state *state,
                               struct marey__native_copy *copy, size_t *index)
{
    const uint64_t told = (uint64_t)1 << MAREY__UNWIND_SP | (uint64_t)1 << MAREY__UNWIND_PC;
    copy->is_there = state->sp != 0 && state->pc != 0;
    if (!copy->is_there)
        return;
    copy->input.registers[MAREY__UNWIND_SP] = state->sp;
    copy->input.registers[MAREY__UNWIND_PC] = state->pc;
    copy->input.unknown = ~told;
    plan_stack(context, target, copy, index);
}

/* The symbol remembers: names of C++ are long, and a stack of torch has dozens of them. */
static uint32_t native_location(struct marey__sampler_context *context,
                                struct marey__target *target, uint64_t pc)
{
    const struct marey__native_symbol *symbol = marey__unwind_symbol(target->unwind, pc);
    uint32_t *const tag = marey__native_symbol_tag(symbol);
    if (tag != NULL && *tag != 0)
        return *tag;
    const uint32_t function = marey__samples_function(context->samples, MAREY_FRAME_NATIVE,
                                                      symbol->name, "", symbol->library, 0);
    const uint32_t location = marey__samples_location(context->samples, function, 0);
    if (tag != NULL)
        *tag = location;
    return location;
}

static uint32_t put_merged(struct marey__sampler_context *context, struct marey__target *target,
                           const struct marey__walk *walk, size_t n)
{
    uint32_t stack = 0;
    for (size_t i = n; i-- > 0;) {
        const struct marey__unwind_merged *entry = &context->merged[i];
        const uint32_t location =
            entry->is_python
                ? marey_samples_get_stack(context->samples, walk->frames[entry->index].stack).location
                : native_location(context, target, context->native[entry->index].pc);
        if (location != 0)
            stack = marey__samples_stack(context->samples, stack, location);
    }
    return stack;
}

uint32_t marey__native_resolve(struct marey__sampler_context *context, struct marey__target *target,
                               const struct marey__target_thread *thread,
                               struct marey__native_copy *copy, size_t index, uint32_t *flags)
{
    const struct marey__walk *walk = &thread->walk;
    bool is_complete = false, is_mismatch = false;
    copy->input.stack = marey__batch_at(&context->batch, index);
    if (copy->input.stack == NULL)
        copy->input.n_stack = 0;
    const size_t n_native = marey__unwind_stack(target->unwind, &copy->input, context->native,
                                                MAREY__UNWIND_MAX_FRAMES, &is_complete);
    copy->is_sure = is_complete;
    for (size_t i = 1; i < n_native; i++)
        copy->is_sure &= context->native[i].by == MAREY__BY_RULE;
    if (!marey__grow(&context->merged, &context->merged_cap, n_native + walk->n,
                     sizeof *context->merged))
        return thread->stack;
    const size_t n = marey__unwind_merge(target->unwind,
                                         &(struct marey__unwind_merge){
                                             .native = context->native,
                                             .n_native = n_native,
                                             .is_complete = is_complete,
                                             .runs = context->runs,
                                             .n_runs = context->n_runs,
                                         },
                                         context->merged, &is_mismatch);
    *flags |= MAREY_SAMPLE_NATIVE;
    if (is_mismatch)
        *flags |= MAREY_SAMPLE_MERGE_MISMATCH;
    if (!is_complete)
        *flags |= MAREY_SAMPLE_NATIVE_CUT;
    return put_merged(context, target, walk, n);
}
