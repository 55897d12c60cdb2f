/*
 * The name of the asyncio task that a thread runs, as a mark around the frames of its coroutine. Names are kept by number,
 * a thousand of a process at most: a server makes one for each request.
 */
#include <stdio.h>

#include "sampler/loop/internal.h"

enum {
    MAX_NAMES = 1000,
    NAME_BYTES = 128,
    MAX_INTO = 256, /* bytes of a coroutine before its frame, which is part of it */
};

struct marey__task_name {
    uint64_t task, name; /* addresses; both again: the same */
    char text[NAME_BYTES];
};

/* The number of a task's name; SIZE_MAX when it cannot be read. Those beyond the limit share one. */
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

/* The run of frames that frame `index` is in has one more. */
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

uint32_t marey__task_location(struct marey__sampler_context *context, struct marey__target *target,
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
