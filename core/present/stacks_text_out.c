/*
 * The stacks of many threads for people:
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
#include <inttypes.h>
#include <string.h>

#include "present/present_internal.h"
#include "present/stack_groups.h"
#include "present/style.h"
#include "sampler/live_internal.h"

enum { MOST_INNER = 200, MOST_OUTER = 40, MOST_NAMED = 8 };

struct answer {
    const struct kymo_stack_groups *groups;
    struct kymo__lines lines;
    size_t width; /* 0: no limit */
};

static void put_name(struct answer *answer, const char *name, size_t width)
{
    kymo__text_put(&answer->lines.line, name, strlen(name), width);
}

/* ---- who ---- */

/* "ranks 0-2, 4-7", of members that are in order of their ranks. */
static void put_ranks(struct kymo__buf *line, const struct kymo__stack_member *members, size_t n)
{
    const char *separator = " ";
    kymo__buf_puts(line, n == 1 ? "rank" : "ranks");
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && members[end].process->rank <= members[end - 1].process->rank + 1)
            end++;
        const int32_t first = members[i].process->rank, last = members[end - 1].process->rank;
        kymo__buf_printf(line, first == last ? "%s%d" : "%s%d-%d", separator, first, last);
        separator = ", ";
        i = end;
    }
}

static void put_member(struct answer *answer, const struct kymo__stack_member *member)
{
    struct kymo__buf *line = &answer->lines.line;
    if (member->process->rank >= 0)
        kymo__buf_printf(line, "rank %d, ", member->process->rank);
    kymo__buf_printf(line, "pid %" PRId64, member->process->pid);
    if (member->thread->tid != member->process->pid && member->thread->tid != 0)
        kymo__buf_printf(line, ", thread %" PRId64, member->thread->tid);
    kymo__buf_puts(line, " \"");
    put_name(answer, member->thread->name, 40);
    kymo__buf_puts(line, "\"");
}

static void put_members(struct answer *answer, const struct kymo__stack_group *group)
{
    struct kymo__buf *line = &answer->lines.line;
    const bool are_ranks =
        group->n > 1 && group->n == group->n_leading && group->members[0].process->rank >= 0;
    if (are_ranks) {
        put_ranks(line, group->members, group->n);
        return;
    }
    for (size_t i = 0; i < group->n && i < MOST_NAMED; i++) {
        kymo__buf_puts(line, i == 0 ? "" : "; ");
        put_member(answer, &group->members[i]);
    }
    if (group->n > MOST_NAMED)
        kymo__buf_printf(line, "; and %zu more", group->n - MOST_NAMED);
}

static void put_state(struct kymo__buf *line, const struct kymo__stack_member *member)
{
    const uint32_t flags = member->seen->flags;
    char wait[64];
    const char *text = kymo_sampler_wait_text(member->seen->wait, wait, sizeof wait);
    if ((flags & KYMO_SAMPLE_ON_CPU) != 0)
        kymo__buf_puts(line, "running");
    else if ((flags & KYMO_SAMPLE_OFF_CPU) != 0 && strcmp(text, "stopped") == 0)
        kymo__buf_puts(line, "stopped (SIGSTOP or ctrl-Z)");
    else if ((flags & KYMO_SAMPLE_OFF_CPU) != 0)
        kymo__buf_printf(line, "waiting%s%s", text[0] != '\0' ? ": " : "", text);
    else
        kymo__buf_puts(line, "state not known");
    kymo__buf_puts(line, (flags & KYMO_SAMPLE_GIL) != 0 ? ", holds the GIL" : "");
    kymo__buf_puts(line, (flags & KYMO_SAMPLE_WANTS_GIL) != 0 ? ", waits for the GIL" : "");
    kymo__buf_puts(line, (flags & KYMO_SAMPLE_GC) != 0 ? ", collects garbage" : "");
    kymo__buf_puts(line, (flags & KYMO_SAMPLE_EXCEPTION) != 0 ? ", handles an exception" : "");
}

static bool is_same_state(const struct kymo__stack_member *a, const struct kymo__stack_member *b)
{
    const uint32_t told = KYMO_SAMPLE_ON_CPU | KYMO_SAMPLE_OFF_CPU | KYMO_SAMPLE_GIL |
                          KYMO_SAMPLE_WANTS_GIL | KYMO_SAMPLE_GC | KYMO_SAMPLE_EXCEPTION;
    const bool waits = (a->seen->flags & KYMO_SAMPLE_OFF_CPU) != 0;
    return (a->seen->flags & told) == (b->seen->flags & told) &&
           (!waits || a->seen->wait == b->seen->wait);
}

/* One state where all have it, else each with how many have it. */
static void put_states(struct kymo__buf *line, const struct kymo__stack_group *group)
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
        kymo__buf_puts(line, separator);
        if (n_same != group->n)
            kymo__buf_printf(line, "%zu ", n_same);
        put_state(line, &group->members[i]);
        separator = ", ";
    }
}

/* ---- frames ---- */

static kymo_status put_frame(struct answer *answer, const struct kymo_samples_stack *at)
{
    struct kymo__buf *line = &answer->lines.line;
    const kymo_samples *samples = answer->groups->stacks->samples;
    const struct kymo_samples_location location = kymo_samples_get_location(samples, at->location);
    const struct kymo_samples_function *function =
        kymo_samples_get_function(samples, location.function);
    struct kymo__buf place = {0};
    kymo__live_place(&place, function, location.line);
    const size_t room = answer->width > 60 ? answer->width - 20 : 60;
    kymo__buf_puts(line, "    ");
    kymo__buf_puts(line,
                   kymo__style(&answer->lines, function->kind == KYMO_FRAME_PYTHON ? BOLD : ""));
    put_name(answer, function->name, room);
    kymo__buf_puts(line, kymo__style(&answer->lines, PLAIN));
    if (place.len != 0) {
        kymo__buf_puts(line, " (");
        kymo__text_put(line, place.data, place.len, room);
        kymo__buf_puts(line, ")");
    }
    line->failed |= place.failed;
    kymo__buf_fini(&place);
    return kymo__lines_end(&answer->lines);
}

static kymo_status put_left_out(struct answer *answer, uint32_t n, const char *why)
{
    struct kymo__buf *line = &answer->lines.line;
    kymo__buf_printf(line, "    %s... ", kymo__style(&answer->lines, DIM));
    kymo__text_count_of(line, n, "frame");
    kymo__buf_printf(line, " %s%s", why, kymo__style(&answer->lines, PLAIN));
    return kymo__lines_end(&answer->lines);
}

/* Innermost first. What the majority has is not told again, and of a deep stack the middle is left out. */
static kymo_status put_frames(struct answer *answer, const struct kymo__stack_group *group)
{
    const kymo_samples *samples = answer->groups->stacks->samples;
    uint32_t stack = group->stack, n_put = 0;
    while (stack != 0) {
        struct kymo_samples_stack at = kymo_samples_get_stack(samples, stack);
        if (group->shared > 1 && at.depth <= group->shared)
            return put_left_out(answer, at.depth, "further out, as the majority has them");
        if (n_put++ == MOST_INNER && at.depth > MOST_OUTER + 1) {
            KYMO_TRY(put_left_out(answer, at.depth - MOST_OUTER, "left out; --json has all"));
            while (at.depth > MOST_OUTER)
                at = kymo_samples_get_stack(samples, stack = at.parent);
        }
        KYMO_TRY(put_frame(answer, &at));
        stack = at.parent;
    }
    return KYMO_OK;
}

/* ---- all of it ---- */

static kymo_status put_group(struct answer *answer, const struct kymo__stack_group *group)
{
    struct kymo__buf *line = &answer->lines.line;
    const size_t n_leading = answer->groups->n_leading;
    if (group->n_leading != 0 && n_leading > 1)
        kymo__buf_printf(line, "%s%zu of %zu main threads%s%s: ",
                         kymo__style(&answer->lines, group->is_majority ? BOLD : YELLOW),
                         group->n_leading, n_leading, group->is_majority ? ", the majority" : "",
                         kymo__style(&answer->lines, PLAIN));
    else if (group->n > 1)
        kymo__buf_printf(line, "%zu threads: ", group->n);
    put_members(answer, group);
    put_states(line, group);
    KYMO_TRY(kymo__lines_end(&answer->lines));
    if (group->stack == 0) {
        kymo__buf_puts(line, "    (no Python frames)");
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return put_frames(answer, group);
}

static kymo_status put_head(struct answer *answer)
{
    struct kymo__buf *line = &answer->lines.line;
    const struct kymo_sampler_stacks *stacks = answer->groups->stacks;
    kymo__text_count_of(line, stacks->n_rounds, "process");
    kymo__buf_puts(line, ", ");
    kymo__text_count_of(line, answer->groups->n_members, "thread");
    kymo__buf_puts(line, ", ");
    kymo__text_count_of(line, answer->groups->n_groups, "different stack");
    KYMO_TRY(kymo__lines_end(&answer->lines));
    for (size_t i = 0; i < stacks->n_rounds && i < MOST_NAMED; i++) {
        const struct kymo_samples_process *process =
            kymo_samples_get_process(stacks->samples, stacks->rounds[i].process);
        kymo__buf_printf(line, "  pid %" PRId64, process->pid);
        if (process->rank >= 0)
            kymo__buf_printf(line, ", rank %d", process->rank);
        kymo__buf_puts(line, ", Python ");
        kymo__put_python_version(line, process->python);
        kymo__buf_puts(line, ": ");
        put_name(answer, process->command, answer->width > 60 ? answer->width - 30 : 80);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    if (stacks->n_rounds > MOST_NAMED)
        kymo__buf_printf(line, "  and %zu more\n", stacks->n_rounds - MOST_NAMED);
    return KYMO_OK;
}

static kymo_status put_all(struct answer *answer)
{
    const struct kymo_sampler_stacks *stacks = answer->groups->stacks;
    KYMO_TRY(put_head(answer));
    for (size_t i = 0; i < answer->groups->n_groups; i++) {
        KYMO_TRY(kymo__lines_end(&answer->lines));
        KYMO_TRY(put_group(answer, &answer->groups->groups[i]));
    }
    for (size_t i = 0; i < stacks->n_failures; i++) {
        kymo__buf_printf(&answer->lines.line, "%s%snot read:%s ", i == 0 ? "\n" : "",
                         kymo__style(&answer->lines, RED), kymo__style(&answer->lines, PLAIN));
        put_name(answer, stacks->failures[i].why, 0);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return KYMO_OK;
}

kymo_status kymo_stacks_text(const kymo_stack_groups *groups,
                             const struct kymo_text_options *options, FILE *out)
{
    struct answer answer = {.groups = groups,
                            .lines = {.out = out, .has_color = options != NULL && options->color != 0},
                            .width = options != NULL ? options->width : 0};
    return kymo__lines_close(&answer.lines, put_all(&answer));
}
