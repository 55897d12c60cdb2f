/*
 * Converts frames to the number of a stack. Only frames that differ from the previous stack, counted from the
 * outermost, are looked up: if only the innermost of a hundred frames changed, that is one lookup.
 *
 * The name of a thread's asyncio task is a mark around the frames of its coroutine. Names are cached by number, at most
 * a thousand per process: a server may create one per request.
 */
#include "sampler/loop/internal.h"

/* ---- names of tasks ---- */

enum {
    MAX_NAMES = 1000,
    NAME_BYTES = 128,
    MAX_INTO = 256, /* offset of the embedded frame in a coroutine, at most */
};

struct marey__task_name {
    uint64_t task, name; /* addresses; if both match, it is the same task */
    char text[NAME_BYTES];
};

/* The number of a task's name; SIZE_MAX if unreadable. Names beyond the limit share one. */
static size_t find_name(struct marey__target *target, const struct marey__remote_task *task)
{
    struct marey__task_names *names = &target->tasks;
    if (names->last < names->n && names->list[names->last].task == task->address &&
        names->list[names->last].name == task->name)
        return names->last;
    char text[NAME_BYTES];
    if (marey__remote_task_name(target->remote, task, text, sizeof text) == 0)
        return SIZE_MAX;
    size_t i = 0;
    while (i < names->n && strcmp(names->list[i].text, text) != 0)
        i++;
    if (i == names->n) {
        if (i == MAX_NAMES)
            snprintf(text, sizeof text, "(other tasks)");
        if (i > MAX_NAMES)
            i = MAX_NAMES;
        else if (!marey__grow(&names->list, &names->cap, i + 1, sizeof *names->list))
            return SIZE_MAX;
        else
            memcpy(names->list[names->n++].text, text, sizeof text);
    }
    names->list[i].task = task->address;
    names->list[i].name = task->name;
    names->last = i;
    return i;
}

/* Extends the run that contains frame `index` by one. */
static void lengthen_run(struct marey__sampler_context *context, size_t index)
{
    size_t end = 0;
    for (size_t i = 0; i < context->n_runs; i++) {
        end += context->runs[i].n_frames;
        if (index < end) {
            context->runs[i].n_frames++;
            return;
        }
    }
}

void marey__walk_put_task(struct marey__sampler_context *context, struct marey__target *target,
                          uint64_t thread_state, const struct marey__walk_coroutine *coroutines,
                          size_t n)
{
    struct marey__remote_task task;
    struct marey__walk *walk = &context->walk;
    if (n == 0 || !marey__remote_task(target->remote, thread_state, &task))
        return;
    size_t k = 0;
    while (k < n &&
           (coroutines[k].at <= task.coroutine || coroutines[k].at - task.coroutine > MAX_INTO))
        k++;
    if (k == n) /* it is between two tasks, or was when it was read */
        return;
    const size_t name = find_name(target, &task), index = coroutines[k].index;
    if (name == SIZE_MAX ||
        !marey__grow(&walk->frames, &walk->cap, walk->n + 1, sizeof *walk->frames))
        return;
    memmove(&walk->frames[index + 2], &walk->frames[index + 1],
            (walk->n - index - 1) * sizeof *walk->frames);
    walk->frames[index + 1] =
        (struct marey__walk_frame){.code = MAREY__WALK_TASK, .instruction = name};
    walk->n++;
    lengthen_run(context, index);
}

static uint32_t task_location(struct marey__sampler_context *context, struct marey__target *target,
                              uint64_t name)
{
    char text[NAME_BYTES + 8];
    if (name >= target->tasks.n)
        return 0;
    snprintf(text, sizeof text, "[task %s]", target->tasks.list[name].text);
    return marey__samples_location(
        context->samples,
        marey__samples_function(context->samples, MAREY_FRAME_MARK, text, "", "", 0), 0);
}

void marey__task_names_fini(struct marey__task_names *names)
{
    marey__free(names->list);
    *names = (struct marey__task_names){0};
}

/* ---- locations ---- */

enum { N_SLOTS = 1 << 14, MAX_CHECKED = 64 }; /* cache slots, a power of two */

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

static uint32_t frame_location(struct marey__sampler_context *context, struct marey__target *target,
                               const struct marey__walk_frame *frame)
{
    if (frame->code == MAREY__WALK_MARK)
        return marey__samples_location(
            context->samples,
            marey__samples_function(context->samples, MAREY_FRAME_MARK, "(truncated)", "", "", 0), 0);
    if (frame->code == MAREY__WALK_TASK)
        return task_location(context, target, frame->instruction);
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

/* How many frames, from the outermost, are unchanged. */
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

void marey__walk_check_codes(struct marey__target *target, const struct marey__walk *walk,
                             const struct marey__walk *before)
{
    uint64_t codes[MAX_CHECKED] = {0};
    const size_t n_new = walk->n - count_same(walk, before);
    size_t n = 0;
    for (size_t i = 0; i < n_new && n < MAX_CHECKED; i++)
        if (marey__is_code(walk->frames[i].code) &&
            (i >= before->n || walk->frames[i].code != before->frames[i].code))
            codes[n++] = walk->frames[i].code;
    target->codes_checked_ns = target->at_ns;
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
            const uint32_t location = frame_location(context, target, frame);
            if (location == 0 && (i > 0 || walk->n == 1))
                return false;
            /* The innermost one may be a shim that is not written yet. */
            frame->stack =
                location == 0 ? *stack : marey__samples_stack(context->samples, *stack, location);
        }
        *stack = frame->stack;
    }
    /* This walk is compared with the next one. */
    const struct marey__walk before = thread->walk;
    thread->walk = *walk;
    *walk = before;
    return true;
}
