/*
 * From frames to the number of a stack. Of a stack that was there before, only the frames that differ, counted from the
 * outermost, are looked up: a stack of a hundred frames whose innermost has moved on costs one.
 */
#include "sampler/loop/internal.h"

enum { N_SLOTS = 1 << 14, MAX_MET = 64 }; /* of the cache: a power of two */

static struct marey__location_slot *slot_of(struct marey__location_slot *slots, uint64_t code,
                                            uint64_t instruction)
{
    const uint64_t mixed = (code ^ (instruction * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    return &slots[(mixed ^ mixed >> 29) & (N_SLOTS - 1)];
}

static uint32_t find_location(struct marey__sampler_context *context, struct marey__target *target,
                              struct marey__remote_code *code, const struct marey__walk_frame *frame)
{
    if (code->tag == 0)
        code->tag = marey__samples_function(context->samples, MAREY_FRAME_PYTHON, code->name,
                                            code->file, "", code->first_line);
    const uint32_t line =
        marey__remote_line(target->remote, code, frame->instruction, frame->tlbc_index);
    return marey__samples_location(context->samples, code->tag, line);
}

uint32_t marey__frame_location(struct marey__sampler_context *context, struct marey__target *target,
                               const struct marey__walk_frame *frame)
{
    if (frame->code == MAREY__WALK_MARK)
        return marey__samples_location(
            context->samples,
            marey__samples_function(context->samples, MAREY_FRAME_MARK, "(truncated)", "", "", 0), 0);
    if (frame->code == MAREY__WALK_TASK)
        return marey__task_location(context, target, frame->instruction);
    struct marey__remote_code *code = marey__remote_code(target->remote, frame->code);
    if (code == NULL)
        return 0;
    if (target->locations == NULL)
        target->locations = marey__calloc(N_SLOTS, sizeof *target->locations);
    if (frame->tlbc_index != 0 || target->locations == NULL) /* copies of bytecode come and go */
        return find_location(context, target, code, frame);
    struct marey__location_slot *slot = slot_of(target->locations, frame->code, frame->instruction);
    if (slot->code != frame->code || slot->instruction != frame->instruction ||
        slot->generation != code->generation)
        *slot = (struct marey__location_slot){
            .code = frame->code,
            .instruction = frame->instruction,
            .generation = code->generation,
            .location = find_location(context, target, code, frame),
        };
    return slot->location;
}

/* How many frames, from the outermost on, are as they were. */
static size_t count_same(const struct marey__walk *walk, const struct marey__walk *before)
{
    const size_t most = MAREY__MIN(walk->n, before->n);
    const struct marey__walk_frame *now = walk->frames + walk->n, *then = before->frames + before->n;
    size_t n = 0;
    while (n < most && now[-1].code == then[-1].code &&
           now[-1].instruction == then[-1].instruction && now[-1].tlbc_index == then[-1].tlbc_index) {
        n++;
        now--;
        then--;
    }
    return n;
}

void marey__walk_meet(struct marey__target *target, const struct marey__walk *walk,
                      const struct marey__walk *before)
{
    uint64_t codes[MAX_MET] = {0};
    const size_t n_new = walk->n - count_same(walk, before);
    size_t n = 0;
    for (size_t i = 0; i < n_new && n < MAX_MET; i++)
        if (marey__is_code(walk->frames[i].code) &&
            (i >= before->n || walk->frames[i].code != before->frames[i].code))
            codes[n++] = walk->frames[i].code;
    target->met_ns = target->at_ns;
    marey__remote_check_codes(target->remote, codes, n);
    for (size_t i = 0; i < n_new; i++)
        if (marey__is_code(walk->frames[i].code))
            (void)marey__remote_code(target->remote, walk->frames[i].code);
}

bool marey__thread_resolve(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__target_thread *thread, uint32_t *stack)
{
    struct marey__walk *walk = &context->walk;
    const size_t n_same = count_same(walk, &thread->walk), n_new = walk->n - n_same;
    *stack = 0;
    for (size_t i = walk->n; i-- > 0;) {
        struct marey__walk_frame *frame = &walk->frames[i];
        if (i >= n_new) {
            frame->stack = thread->walk.frames[thread->walk.n - (walk->n - i)].stack;
        } else {
            const uint32_t location = marey__frame_location(context, target, frame);
            if (location == 0 && (i > 0 || walk->n == 1))
                return false;
            /* The innermost one may be a shim that is not written yet. */
            frame->stack =
                location == 0 ? *stack : marey__samples_stack(context->samples, *stack, location);
        }
        *stack = frame->stack;
    }
    /* What was read becomes what the next one is held against. */
    const struct marey__walk before = thread->walk;
    thread->walk = *walk;
    *walk = before;
    return true;
}
