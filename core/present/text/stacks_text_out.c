/*
 * The stacks of many threads as text:
 *
 *   7 of 8 main threads, the majority: ranks 0-2, 4-7; waiting: futex
 *       all_reduce (torch/distributed/distributed_c10d.py:2810)
 *       step (train.py:41)
 *       <module> (train.py:60)
 *   1 of 8 main threads: rank 3, pid 4711 "MainThread"; running, holds the GIL
 *       load (train.py:17)
 *       step (train.py:39)
 *       ... 1 outer frame as the majority has it
 */
#include "present/text/internal.h"
#include "sampler/loop/internal.h"

enum { MOST_INNER = 200, MOST_OUTER = 40, MOST_NAMED = 8 };

struct writer {
    const struct marey_stack_groups *groups;
    struct marey__lines lines;
    size_t width; /* 0: no limit */
};

static void put_name(struct writer *writer, const char *name, size_t width)
{
    marey__text_put(&writer->lines.line, name, strlen(name), width);
}

/* ---- owners ---- */

/* "ranks 0-2, 4-7", from members sorted by rank. */
static void put_ranks(struct marey__buf *line, const struct marey__stack_member *members, size_t n)
{
    const char *separator = " ";
    marey__buf_puts(line, n == 1 ? "rank" : "ranks");
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && members[end].process->rank <= members[end - 1].process->rank + 1)
            end++;
        const int32_t first = members[i].process->rank, last = members[end - 1].process->rank;
        marey__buf_printf(line, first == last ? "%s%d" : "%s%d-%d", separator, first, last);
        separator = ", ";
        i = end;
    }
}

static void put_member(struct writer *writer, const struct marey__stack_member *member)
{
    struct marey__buf *line = &writer->lines.line;
    if (member->process->rank >= 0)
        marey__buf_printf(line, "rank %d, ", member->process->rank);
    marey__buf_printf(line, "pid %" PRId64, member->process->pid);
    if (member->thread->tid != member->process->pid && member->thread->tid != 0)
        marey__buf_printf(line, ", thread %" PRId64, member->thread->tid);
    marey__buf_puts(line, " \"");
    put_name(writer, member->thread->name, 40);
    marey__buf_puts(line, "\"");
}

static void put_members(struct writer *writer, const struct marey__stack_group *group)
{
    struct marey__buf *line = &writer->lines.line;
    const bool are_ranks =
        group->n > 1 && group->n == group->n_leading && group->members[0].process->rank >= 0;
    if (are_ranks) {
        put_ranks(line, group->members, group->n);
        return;
    }
    for (size_t i = 0; i < group->n && i < MOST_NAMED; i++) {
        marey__buf_puts(line, i == 0 ? "" : "; ");
        put_member(writer, &group->members[i]);
    }
    if (group->n > MOST_NAMED)
        marey__buf_printf(line, "; and %zu more", group->n - MOST_NAMED);
}

static void put_state(struct marey__buf *line, const struct marey__stack_member *member)
{
    const uint32_t flags = member->seen->flags;
    char wait[64];
    const char *text = marey_sampler_wait_text(member->seen->wait, wait, sizeof wait);
    if ((flags & MAREY_SAMPLE_ON_CPU) != 0)
        marey__buf_puts(line, "running");
    else if ((flags & MAREY_SAMPLE_OFF_CPU) != 0 && strcmp(text, "stopped") == 0)
        marey__buf_puts(line, "stopped (SIGSTOP or ctrl-Z)");
    else if ((flags & MAREY_SAMPLE_OFF_CPU) != 0)
        marey__buf_printf(line, "waiting%s%s", text[0] != '\0' ? ": " : "", text);
    else
        marey__buf_puts(line, "state not known");
    marey__buf_puts(line, (flags & MAREY_SAMPLE_GIL) != 0 ? ", holds the GIL" : "");
    marey__buf_puts(line, (flags & MAREY_SAMPLE_WANTS_GIL) != 0 ? ", waits for the GIL" : "");
    marey__buf_puts(line, (flags & MAREY_SAMPLE_GC) != 0 ? ", collects garbage" : "");
    marey__buf_puts(line, (flags & MAREY_SAMPLE_EXCEPTION) != 0 ? ", handles an exception" : "");
}

static bool is_same_state(const struct marey__stack_member *a, const struct marey__stack_member *b)
{
    const uint32_t shown = MAREY_SAMPLE_ON_CPU | MAREY_SAMPLE_OFF_CPU | MAREY_SAMPLE_GIL |
                           MAREY_SAMPLE_WANTS_GIL | MAREY_SAMPLE_GC | MAREY_SAMPLE_EXCEPTION;
    const bool waits = (a->seen->flags & MAREY_SAMPLE_OFF_CPU) != 0;
    return (a->seen->flags & shown) == (b->seen->flags & shown) &&
           (!waits || a->seen->wait == b->seen->wait);
}

/* One state if all have the same, else each with its count. */
static void put_states(struct marey__buf *line, const struct marey__stack_group *group)
{
    const char *separator = "; ";
    for (size_t i = 0; i < group->n; i++) {
        size_t n_same = 0, n_before = 0;
        for (size_t k = 0; k < group->n; k++) {
            const bool is_same = is_same_state(&group->members[i], &group->members[k]);
            n_same += is_same;
            n_before += is_same && k < i;
        }
        if (n_before != 0)
            continue;
        marey__buf_puts(line, separator);
        if (n_same != group->n)
            marey__buf_printf(line, "%zu ", n_same);
        put_state(line, &group->members[i]);
        separator = ", ";
    }
}

/* ---- frames ---- */

static marey_status put_frame(struct writer *writer, const struct marey_samples_stack *at)
{
    struct marey__buf *line = &writer->lines.line;
    const marey_samples *samples = writer->groups->stacks->samples;
    const struct marey_samples_location location = marey_samples_get_location(samples, at->location);
    const struct marey_samples_function *function =
        marey_samples_get_function(samples, location.function);
    struct marey__buf place = {0};
    marey__live_place(&place, function, location.line);
    const size_t room = writer->width > 60 ? writer->width - 20 : 60;
    marey__buf_puts(line, "    ");
    marey__buf_puts(line,
                    marey__style(&writer->lines, function->kind == MAREY_FRAME_PYTHON ? BOLD : ""));
    put_name(writer, function->name, room);
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
    if (place.len != 0) {
        marey__buf_puts(line, " (");
        marey__text_put(line, place.data, place.len, room);
        marey__buf_puts(line, ")");
    }
    marey__buf_end(&place, line);
    return marey__lines_end(&writer->lines);
}

static marey_status put_left_out(struct writer *writer, uint32_t n, const char *why)
{
    struct marey__buf *line = &writer->lines.line;
    marey__buf_printf(line, "    %s... ", marey__style(&writer->lines, DIM));
    marey__text_count_of(line, n, "frame");
    marey__buf_printf(line, " %s%s", why, marey__style(&writer->lines, PLAIN));
    return marey__lines_end(&writer->lines);
}

/* Innermost first. Frames of the majority are not repeated; a deep stack is shown without its middle. */
static marey_status put_frames(struct writer *writer, const struct marey__stack_group *group)
{
    const marey_samples *samples = writer->groups->stacks->samples;
    uint32_t stack = group->stack, n_put = 0;
    while (stack != 0) {
        struct marey_samples_stack at = marey_samples_get_stack(samples, stack);
        if (group->shared > 1 && at.depth <= group->shared)
            return put_left_out(writer, at.depth, "further out, as the majority has them");
        if (n_put++ == MOST_INNER && at.depth > MOST_OUTER + 1) {
            MAREY_TRY(put_left_out(writer, at.depth - MOST_OUTER, "left out; --json has all"));
            while (at.depth > MOST_OUTER)
                at = marey_samples_get_stack(samples, at.parent);
        }
        MAREY_TRY(put_frame(writer, &at));
        stack = at.parent;
    }
    return MAREY_OK;
}

/* ---- all stacks ---- */

static marey_status put_group(struct writer *writer, const struct marey__stack_group *group)
{
    struct marey__buf *line = &writer->lines.line;
    const size_t n_leading = writer->groups->n_leading;
    if (group->n_leading != 0 && n_leading > 1)
        marey__buf_printf(line, "%s%zu of %zu main threads%s%s: ",
                          marey__style(&writer->lines, group->is_majority ? BOLD : YELLOW),
                          group->n_leading, n_leading, group->is_majority ? ", the majority" : "",
                          marey__style(&writer->lines, PLAIN));
    else if (group->n > 1)
        marey__buf_printf(line, "%zu threads: ", group->n);
    put_members(writer, group);
    put_states(line, group);
    MAREY_TRY(marey__lines_end(&writer->lines));
    if (group->stack == 0) {
        marey__buf_puts(line, "    (no Python frames)");
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return put_frames(writer, group);
}

static marey_status put_head(struct writer *writer)
{
    struct marey__buf *line = &writer->lines.line;
    const struct marey_sampler_stacks *stacks = writer->groups->stacks;
    marey__text_count_of(line, stacks->n_rounds, "process");
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, writer->groups->n_members, "thread");
    marey__buf_puts(line, ", ");
    marey__text_count_of(line, writer->groups->n_groups, "different stack");
    MAREY_TRY(marey__lines_end(&writer->lines));
    for (size_t i = 0; i < stacks->n_rounds && i < MOST_NAMED; i++) {
        const struct marey_samples_process *process =
            marey_samples_get_process(stacks->samples, stacks->rounds[i].process);
        marey__buf_printf(line, "  pid %" PRId64, process->pid);
        if (process->rank >= 0)
            marey__buf_printf(line, ", rank %d", process->rank);
        marey__buf_puts(line, ", Python ");
        marey__put_python_version(line, process->python);
        marey__buf_puts(line, ": ");
        put_name(writer, process->command, writer->width > 60 ? writer->width - 30 : 80);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    if (stacks->n_rounds > MOST_NAMED)
        marey__buf_printf(line, "  and %zu more\n", stacks->n_rounds - MOST_NAMED);
    return MAREY_OK;
}

static marey_status put_all(struct writer *writer)
{
    const struct marey_sampler_stacks *stacks = writer->groups->stacks;
    MAREY_TRY(put_head(writer));
    for (size_t i = 0; i < writer->groups->n_groups; i++) {
        MAREY_TRY(marey__lines_end(&writer->lines));
        MAREY_TRY(put_group(writer, &writer->groups->groups[i]));
    }
    for (size_t i = 0; i < stacks->n_failures; i++) {
        marey__buf_printf(&writer->lines.line, "%s%snot read:%s ", i == 0 ? "\n" : "",
                          marey__style(&writer->lines, RED), marey__style(&writer->lines, PLAIN));
        put_name(writer, stacks->failures[i].why, 0);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return MAREY_OK;
}

marey_status marey_stacks_text(const marey_stack_groups *groups,
                               const struct marey_text_options *options, FILE *out)
{
    struct writer writer = {.groups = groups,
                            .lines = {.out = out, .has_color = options != NULL && options->color != 0},
                            .width = options != NULL ? options->width : 0};
    return marey__lines_close(&writer.lines, put_all(&writer));
}
