/* Rows in order. A trace is a few long runs that are in order already: operators, python functions, kernels. */
#include "import/kineto/internal.h"

static bool event_before(const void *a, const void *b)
{
    const struct marey__torch_event *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns;
    return x->end_ns != y->end_ns ? x->end_ns > y->end_ns : x->order < y->order;
}

static bool memory_before(const void *a, const void *b)
{
    const struct marey__torch_memory *x = a, *y = b;
    return x->ns != y->ns ? x->ns < y->ns : x->order < y->order;
}

bool marey__torch_sort(struct marey__torch_trace *trace)
{
    if (!marey__sort_runs(trace->events, trace->n_events, sizeof *trace->events, event_before) ||
        !marey__sort_runs(trace->memory, trace->n_memory, sizeof *trace->memory, memory_before))
        return false;
    for (size_t i = 0; i < trace->n_events; i++) {
        struct marey__torch_thread *thread = &trace->threads[trace->events[i].thread];
        if (thread->end == 0)
            thread->begin = i;
        thread->end = i + 1;
    }
    return true;
}
