/* The stacks of many threads as one JSON object. */
#include "present/text/internal.h"

static void put_process(struct marey__buf *line, const struct marey_samples_process *process)
{
    struct marey__buf python MAREY__FINALLY(marey__buf_fini) = {0};
    marey__put_python_version(&python, process->python);
    marey__json_printf(line,
                       "{'pid': %" PRId64 ", 'ppid': %" PRId64
                       ", 'rank': %i, 'worker': %i, 'python': %.*s, 'command': %s}",
                       process->pid, process->ppid, process->rank, process->worker, (int)python.len,
                       python.data, process->command);
}

static void put_thread(struct marey__buf *line, const struct marey__stack_member *member)
{
    const uint32_t flags = member->seen->flags;
    char wait[64];
    marey__json_printf(
        line,
        "{'pid': %" PRId64 ", 'tid': %" PRId64
        ", 'rank': %i, 'worker': %i, 'name': %s, 'is_main': %x, 'state': %s, 'wait': %s, "
        "'gil': %x, 'wants_gil': %x, 'gc': %x, 'exception': %x, 'truncated': %x}",
        member->process->pid, member->thread->tid, member->process->rank, member->process->worker,
        member->thread->name, member->thread->is_main != 0,
        (flags & MAREY_SAMPLE_ON_CPU) != 0    ? "running"
        : (flags & MAREY_SAMPLE_OFF_CPU) != 0 ? "waiting"
                                              : NULL,
        marey_sampler_wait_text(member->seen->wait, wait, sizeof wait),
        (flags & MAREY_SAMPLE_GIL) != 0, (flags & MAREY_SAMPLE_WANTS_GIL) != 0,
        (flags & MAREY_SAMPLE_GC) != 0, (flags & MAREY_SAMPLE_EXCEPTION) != 0,
        (flags & MAREY_SAMPLE_TRUNCATED) != 0);
}

static void put_frames(struct marey__buf *line, const marey_samples *samples, uint32_t stack)
{
    static const char *const kinds[] = {"python", "native", "kernel", "mark"};
    const char *separator = "";
    while (stack != 0) {
        const struct marey_samples_stack at = marey_samples_get_stack(samples, stack);
        const struct marey_samples_location location =
            marey_samples_get_location(samples, at.location);
        const struct marey_samples_function *function =
            marey_samples_get_function(samples, location.function);
        marey__buf_printf(line, "%s\n      ", separator);
        marey__json_printf(
            line, "{'function': %s, 'file': %s, 'line': %i, 'kind': %s, 'library': %s}",
            function->name, function->file, location.line != 0 ? (int)location.line : -1,
            (unsigned)function->kind < 4 ? kinds[function->kind] : "mark", function->module);
        separator = ",";
        stack = at.parent;
    }
}

static void put_group(struct marey__buf *line, const struct marey_stack_groups *groups,
                      const struct marey__stack_group *group)
{
    const bool has_majority = groups->n_groups != 0 && groups->groups[0].is_majority;
    const bool is_outlier = has_majority && !group->is_majority && group->n_leading != 0;
    marey__json_printf(line, "\n    {'is_main': %x, 'is_majority': %x, 'parts_at': %i, 'threads': [",
                       group->n_leading != 0, group->is_majority,
                       is_outlier ? (int)group->shared : -1);
    for (size_t i = 0; i < group->n; i++) {
        marey__buf_puts(line, i == 0 ? "\n      " : ",\n      ");
        put_thread(line, &group->members[i]);
    }
    marey__buf_puts(line, "], \"frames\": [");
    put_frames(line, groups->stacks->samples, group->stack);
    marey__buf_puts(line, "]}");
}

marey_status marey_stacks_json(const marey_stack_groups *groups, FILE *out)
{
    const struct marey_sampler_stacks *stacks = groups->stacks;
    struct marey__buf line MAREY__FINALLY(marey__buf_fini) = {0};
    marey_status status = MAREY_OK;
    marey__buf_puts(&line, "{\n  \"processes\": [");
    for (size_t i = 0; i < stacks->n_rounds; i++) {
        marey__buf_puts(&line, i == 0 ? "\n    " : ",\n    ");
        put_process(&line, marey_samples_get_process(stacks->samples, stacks->rounds[i].process));
    }
    marey__buf_puts(&line, "],\n  \"groups\": [");
    for (size_t i = 0; i < groups->n_groups && status == MAREY_OK; i++) {
        marey__buf_puts(&line, i == 0 ? "" : ",");
        put_group(&line, groups, &groups->groups[i]);
        status = marey__buf_to_stream(&line, out);
    }
    marey__buf_puts(&line, "],\n  \"failures\": [");
    for (size_t i = 0; i < stacks->n_failures; i++) {
        marey__buf_puts(&line, i == 0 ? "" : ",");
        marey__json_printf(&line, "\n    {'pid': %d, 'why': %s}", (int)stacks->failures[i].pid,
                           stacks->failures[i].why);
    }
    marey__buf_puts(&line, "]\n}\n");
    if (status == MAREY_OK)
        status = marey__buf_to_stream(&line, out);
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write the stacks");
    return status;
}
