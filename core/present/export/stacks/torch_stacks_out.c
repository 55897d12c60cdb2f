/*
 * Stacks with the time of each call, one per line, for flamegraph.pl and similar tools, as torch's export_stacks()
 * writes them.
 */
#include "analyze/operators/internal.h"

/* A call with a line, by its begin. */
struct line {
    int64_t begin_ns, end_ns, ns;
    uint32_t order, stack;
};

MAREY__ORDER_RUNS(line_before, struct line, MAREY__UP(begin_ns) MAREY__DOWN(end_ns) MAREY__UP(order))

static bool collect(const struct marey__operators *operators, bool of_device, struct line **lines,
                    size_t *n)
{
    size_t cap = 0;
    for (size_t i = 0; i < operators->n_calls; i++) {
        const struct marey__torch_call *call = &operators->calls[i];
        const struct marey__torch_event *event = marey__call_event(operators, call);
        const int64_t ns = of_device ? call->self_device_ns : call->self_cpu_ns;
        if (call->is_double || operators->stacks[call->stack].n == 0 || ns < 1000)
            continue;
        if (!marey__grow(lines, &cap, *n + 1, sizeof **lines))
            return false;
        (*lines)[(*n)++] =
            (struct line){event->begin_ns, event->end_ns, ns, event->order, call->stack};
    }
    return marey__sort_runs(*lines, *n, sizeof **lines, line_before);
}

static void put_entry(struct marey__buf *buf, const struct marey__torch_entry *entry)
{
    char *room = marey__buf_extend(buf, entry->len);
    for (size_t i = 0; room != NULL && i < entry->len; i++) {
        const char c = entry->text[i];
        room[i] = c == ' ' || c == ';' || c == '\t' || c == '\n' ? '_' : c;
    }
}

static marey_status put_lines(const struct marey__operators *operators, const struct line *lines,
                              size_t n, FILE *out)
{
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++) {
        const struct marey__torch_stack *stack = &operators->stacks[lines[i].stack];
        for (uint32_t e = stack->n; e-- > 0;) {
            put_entry(&buf, &operators->entries[stack->first + e]);
            marey__buf_put(&buf, e > 0 ? ";" : " ", 1);
        }
        marey__buf_put_u64(&buf, (uint64_t)lines[i].ns / 1000);
        marey__buf_puts(&buf, "\n");
        status = marey__buf_to_stream(&buf, out);
    }
    return status;
}

/* Whether it is the time on devices; fails for an unknown metric. */
static marey_status choose(const struct marey__operators *operators, const char *metric,
                           bool *of_device)
{
    static const char *const devices[] = {"self_device_time_total", "self_cuda_time_total",
                                          "self_xpu_time_total", "self_privateuse1_time_total"};
    *of_device = operators->has_device_time;
    if (metric == NULL)
        return MAREY_OK;
    *of_device = false;
    for (size_t i = 0; i < MAREY__COUNT_OF(devices); i++)
        *of_device |= strcmp(metric, devices[i]) == 0;
    if (*of_device || strcmp(metric, "self_cpu_time_total") == 0)
        return MAREY_OK;
    return marey__fail(MAREY_EINVAL,
                       "stacks have no metric '%s': there are self_cpu_time_total and "
                       "self_device_time_total",
                       metric);
}

marey_status marey_operators_stacks(const marey_report *report, const char *metric, FILE *out)
{
    const struct marey__operators *const operators = report->data;
    struct line *lines MAREY__FREED = NULL;
    size_t n = 0;
    bool of_device;
    if (strcmp(report->analysis->about.name, "operators") != 0)
        return marey__fail(MAREY_EINVAL, "stacks are those of a report of operators");
    MAREY_TRY(choose(operators, metric, &of_device));
    return collect(operators, of_device, &lines, &n) ? put_lines(operators, lines, n, out)
                                                     : marey__no_memory();
}
