/* The stacks of many threads as one JSON object. */
#include <inttypes.h>
#include <string.h>

#include "present/stack_groups.h"
#include "table/table_internal.h"

static void put_text(struct kymo__buf *line, const char *key, const char *text)
{
    kymo__buf_printf(line, "\"%s\": ", key);
    kymo__json_put(line, text, strlen(text));
}

static void put_number(struct kymo__buf *line, const char *key, int64_t number)
{
    if (number < 0)
        kymo__buf_printf(line, "\"%s\": null", key);
    else
        kymo__buf_printf(line, "\"%s\": %" PRId64, key, number);
}

static void put_flag(struct kymo__buf *line, const char *key, bool value)
{
    kymo__buf_printf(line, ", \"%s\": %s", key, value ? "true" : "false");
}

static void put_process(struct kymo__buf *line, const struct kymo_samples_process *process)
{
    kymo__buf_printf(line, "{\"pid\": %" PRId64 ", \"ppid\": %" PRId64 ", ", process->pid,
                     process->ppid);
    put_number(line, "rank", process->rank);
    kymo__buf_puts(line, ", ");
    put_number(line, "worker", process->worker);
    kymo__buf_puts(line, ", ");
    kymo__buf_puts(line, "\"python\": \"");
    kymo__put_python_version(line, process->python);
    kymo__buf_puts(line, "\", ");
    put_text(line, "command", process->command);
    kymo__buf_puts(line, "}");
}

static void put_thread(struct kymo__buf *line, const struct kymo__stack_member *member)
{
    const uint32_t flags = member->seen->flags;
    char wait[64];
    kymo__buf_printf(line, "{\"pid\": %" PRId64 ", \"tid\": %" PRId64 ", ", member->process->pid,
                     member->thread->tid);
    put_number(line, "rank", member->process->rank);
    kymo__buf_puts(line, ", ");
    put_number(line, "worker", member->process->worker);
    kymo__buf_puts(line, ", ");
    put_text(line, "name", member->thread->name);
    put_flag(line, "is_main", member->thread->is_main != 0);
    kymo__buf_printf(line, ", \"state\": %s, ",
                     (flags & KYMO_SAMPLE_ON_CPU) != 0    ? "\"running\""
                     : (flags & KYMO_SAMPLE_OFF_CPU) != 0 ? "\"waiting\""
                                                          : "null");
    put_text(line, "wait", kymo_sampler_wait_text(member->seen->wait, wait, sizeof wait));
    put_flag(line, "gil", (flags & KYMO_SAMPLE_GIL) != 0);
    put_flag(line, "wants_gil", (flags & KYMO_SAMPLE_WANTS_GIL) != 0);
    put_flag(line, "gc", (flags & KYMO_SAMPLE_GC) != 0);
    put_flag(line, "exception", (flags & KYMO_SAMPLE_EXCEPTION) != 0);
    put_flag(line, "truncated", (flags & KYMO_SAMPLE_TRUNCATED) != 0);
    kymo__buf_puts(line, "}");
}

static void put_frames(struct kymo__buf *line, const kymo_samples *samples, uint32_t stack)
{
    static const char *const kinds[] = {"python", "native", "kernel", "mark"};
    const char *separator = "";
    while (stack != 0) {
        const struct kymo_samples_stack at = kymo_samples_get_stack(samples, stack);
        const struct kymo_samples_location location = kymo_samples_get_location(samples, at.location);
        const struct kymo_samples_function *function =
            kymo_samples_get_function(samples, location.function);
        kymo__buf_printf(line, "%s\n      {", separator);
        put_text(line, "function", function->name);
        kymo__buf_puts(line, ", ");
        put_text(line, "file", function->file);
        kymo__buf_puts(line, ", ");
        put_number(line, "line", location.line != 0 ? (int64_t)location.line : -1);
        kymo__buf_puts(line, ", ");
        put_text(line, "kind", (unsigned)function->kind < 4 ? kinds[function->kind] : "mark");
        kymo__buf_puts(line, ", ");
        put_text(line, "library", function->module);
        kymo__buf_puts(line, "}");
        separator = ",";
        stack = at.parent;
    }
}

static void put_group(struct kymo__buf *line, const struct kymo_stack_groups *groups,
                      const struct kymo__stack_group *group)
{
    const bool has_majority = groups->n_groups != 0 && groups->groups[0].is_majority;
    const bool is_outlier = has_majority && !group->is_majority && group->n_leading != 0;
    kymo__buf_printf(line, "\n    {\"is_main\": %s", group->n_leading != 0 ? "true" : "false");
    put_flag(line, "is_majority", group->is_majority);
    kymo__buf_puts(line, ", ");
    put_number(line, "parts_at", is_outlier ? (int64_t)group->shared : -1);
    kymo__buf_puts(line, ", \"threads\": [");
    for (size_t i = 0; i < group->n; i++) {
        kymo__buf_puts(line, i == 0 ? "\n      " : ",\n      ");
        put_thread(line, &group->members[i]);
    }
    kymo__buf_puts(line, "], \"frames\": [");
    put_frames(line, groups->stacks->samples, group->stack);
    kymo__buf_puts(line, "]}");
}

kymo_status kymo_stacks_json(const kymo_stack_groups *groups, FILE *out)
{
    const struct kymo_sampler_stacks *stacks = groups->stacks;
    struct kymo__buf line = {0};
    kymo_status status = KYMO_OK;
    kymo__buf_puts(&line, "{\n  \"processes\": [");
    for (size_t i = 0; i < stacks->n_rounds; i++) {
        kymo__buf_puts(&line, i == 0 ? "\n    " : ",\n    ");
        put_process(&line, kymo_samples_get_process(stacks->samples, stacks->rounds[i].process));
    }
    kymo__buf_puts(&line, "],\n  \"groups\": [");
    for (size_t i = 0; i < groups->n_groups && status == KYMO_OK; i++) {
        kymo__buf_puts(&line, i == 0 ? "" : ",");
        put_group(&line, groups, &groups->groups[i]);
        status = kymo__buf_to_stream(&line, out);
    }
    kymo__buf_puts(&line, "],\n  \"failures\": [");
    for (size_t i = 0; i < stacks->n_failures; i++) {
        kymo__buf_printf(&line, "%s\n    {\"pid\": %d, ", i == 0 ? "" : ",",
                         (int)stacks->failures[i].pid);
        put_text(&line, "why", stacks->failures[i].why);
        kymo__buf_puts(&line, "}");
    }
    kymo__buf_puts(&line, "]\n}\n");
    if (status == KYMO_OK)
        status = kymo__buf_to_stream(&line, out);
    kymo__buf_fini(&line);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the stacks");
    return status;
}
