/*
 * From frames to the number of a stack. Of a stack that was there before, only the frames that differ, counted from the
 * outermost, are looked up: a stack of a hundred frames whose innermost has moved on costs one.
 */
#include "sampler/loop/internal.h"

enum { FIRST_SLOTS = 1024, MAX_SLOTS = 1 << 16, MAX_MET = 64 };

void marey__locations_fini(struct marey__location_cache *cache)
{
    marey__free(cache->slots);
    *cache = (struct marey__location_cache){0};
}

static size_t hash(uint64_t code, uint64_t instruction)
{
    const uint64_t mixed = (code ^ (instruction * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    return (size_t)(mixed ^ (mixed >> 29));
}

static struct marey__location_slot *slot_of(const struct marey__location_cache *cache,
                                            uint64_t code, uint64_t instruction)
{
    size_t i = hash(code, instruction) & (cache->n_slots - 1);
    while (cache->slots[i].code != 0 &&
           (cache->slots[i].code != code || cache->slots[i].instruction != instruction))
        i = (i + 1) & (cache->n_slots - 1);
    return &cache->slots[i];
}

/* Room for one more; a cache that has grown too large begins anew. False without memory. */
static bool make_room(struct marey__location_cache *cache)
{
    if (cache->n_slots != 0 && cache->n < cache->n_slots / 2)
        return true;
    const size_t n_slots = cache->n_slots == 0          ? FIRST_SLOTS
                           : cache->n_slots < MAX_SLOTS ? 2 * cache->n_slots
                                                        : MAX_SLOTS;
    struct marey__location_cache larger = {
        .slots = marey__calloc(n_slots, sizeof *larger.slots),
        .n_slots = n_slots,
    };
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < cache->n_slots && n_slots > cache->n_slots; i++) {
        const struct marey__location_slot *old = &cache->slots[i];
        if (old->code == 0)
            continue;
        *slot_of(&larger, old->code, old->instruction) = *old;
        larger.n++;
    }
    marey__free(cache->slots);
    *cache = larger;
    return true;
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
    struct marey__location_cache *cache = &target->locations;
    if (frame->tlbc_index != 0 || !make_room(cache)) /* copies of bytecode come and go */
        return find_location(context, target, code, frame);
    struct marey__location_slot *slot = slot_of(cache, frame->code, frame->instruction);
    if (slot->code != 0 && slot->generation == code->generation)
        return slot->location;
    const uint32_t location = find_location(context, target, code, frame);
    cache->n += slot->code == 0;
    *slot = (struct marey__location_slot){
        .code = frame->code,
        .instruction = frame->instruction,
        .generation = code->generation,
        .location = location,
    };
    return location;
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
