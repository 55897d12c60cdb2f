/* The stacks of many threads as one JSON object. */
#include <inttypes.h>
#include <string.h>

#include "base/internal.h"
#include "present/text/internal.h"

/* The key of a member; the first one of an object has no comma. */
static void put_key(struct marey__buf *line, const char *key)
{
    const bool is_first = line->len != 0 && line->data[line->len - 1] == '{';
    marey__buf_printf(line, "%s\"%s\": ", is_first ? "" : ", ", key);
}

static void put_text(struct marey__buf *line, const char *key, const char *text)
{
    put_key(line, key);
    marey__json_put(line, text, strlen(text));
}

static void put_number(struct marey__buf *line, const char *key, int64_t number)
{
    put_key(line, key);
    if (number < 0)
        marey__buf_puts(line, "null");
    else
        marey__buf_printf(line, "%" PRId64, number);
}

static void put_flag(struct marey__buf *line, const char *key, bool value)
{
    put_key(line, key);
    marey__buf_puts(line, value ? "true" : "false");
}

static void put_process(struct marey__buf *line, const struct marey_samples_process *process)
{
    marey__buf_printf(line, "{\"pid\": %" PRId64 ", \"ppid\": %" PRId64, process->pid, process->ppid);
    put_number(line, "rank", process->rank);
    put_number(line, "worker", process->worker);
    put_key(line, "python");
    marey__buf_puts(line, "\"");
    marey__put_python_version(line, process->python);
    marey__buf_puts(line, "\"");
    put_text(line, "command", process->command);
    marey__buf_puts(line, "}");
}

static void put_thread(struct marey__buf *line, const struct marey__stack_member *member)
{
    const uint32_t flags = member->seen->flags;
    char wait[64];
    marey__buf_printf(line, "{\"pid\": %" PRId64 ", \"tid\": %" PRId64, member->process->pid,
                      member->thread->tid);
    put_number(line, "rank", member->process->rank);
    put_number(line, "worker", member->process->worker);
    put_text(line, "name", member->thread->name);
    put_flag(line, "is_main", member->thread->is_main != 0);
    put_key(line, "state");
    marey__buf_puts(line, (flags & MAREY_SAMPLE_ON_CPU) != 0    ? "\"running\""
                          : (flags & MAREY_SAMPLE_OFF_CPU) != 0 ? "\"waiting\""
                                                                : "null");
    put_text(line, "wait", marey_sampler_wait_text(member->seen->wait, wait, sizeof wait));
    put_flag(line, "gil", (flags & MAREY_SAMPLE_GIL) != 0);
    put_flag(line, "wants_gil", (flags & MAREY_SAMPLE_WANTS_GIL) != 0);
    put_flag(line, "gc", (flags & MAREY_SAMPLE_GC) != 0);
    put_flag(line, "exception", (flags & MAREY_SAMPLE_EXCEPTION) != 0);
    put_flag(line, "truncated", (flags & MAREY_SAMPLE_TRUNCATED) != 0);
    marey__buf_puts(line, "}");
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
        marey__buf_printf(line, "%s\n      {", separator);
        put_text(line, "function", function->name);
        put_text(line, "file", function->file);
        put_number(line, "line", location.line != 0 ? (int64_t)location.line : -1);
        put_text(line, "kind", (unsigned)function->kind < 4 ? kinds[function->kind] : "mark");
        put_text(line, "library", function->module);
        marey__buf_puts(line, "}");
        separator = ",";
        stack = at.parent;
    }
}

static void put_group(struct marey__buf *line, const struct marey_stack_groups *groups,
                      const struct marey__stack_group *group)
{
    const bool has_majority = groups->n_groups != 0 && groups->groups[0].is_majority;
    const bool is_outlier = has_majority && !group->is_majority && group->n_leading != 0;
    marey__buf_puts(line, "\n    {");
    put_flag(line, "is_main", group->n_leading != 0);
    put_flag(line, "is_majority", group->is_majority);
    put_number(line, "parts_at", is_outlier ? (int64_t)group->shared : -1);
    marey__buf_puts(line, ", \"threads\": [");
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
    struct marey__buf line = {0};
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
        marey__buf_printf(&line, "%s\n    {\"pid\": %d", i == 0 ? "" : ",",
                          (int)stacks->failures[i].pid);
        put_text(&line, "why", stacks->failures[i].why);
        marey__buf_puts(&line, "}");
    }
    marey__buf_puts(&line, "]\n}\n");
    if (status == MAREY_OK)
        status = marey__buf_to_stream(&line, out);
    marey__buf_fini(&line);
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write the stacks");
    return status;
}
