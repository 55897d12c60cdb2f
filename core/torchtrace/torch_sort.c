/*
 * Rows in order. A trace is a few long runs that are in order already (operators, then python functions, then kernels),
 * so runs are found and merged, two at a time: as many passes as the number of runs can be halved, one for most traces.
 */
#include <string.h>

#include "torchtrace/torchtrace_internal.h"

typedef bool comes_before(const void *rows, uint32_t a, uint32_t b);

static bool event_before(const void *rows, uint32_t a, uint32_t b)
{
    const struct kymo__torch_event *events = rows, *x = &events[a], *y = &events[b];
    if (x->thread != y->thread)
        return x->thread < y->thread;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns;
    return x->order < y->order;
}

static bool memory_before(const void *rows, uint32_t a, uint32_t b)
{
    const struct kymo__torch_memory *memory = rows, *x = &memory[a], *y = &memory[b];
    return x->ns != y->ns ? x->ns < y->ns : x->order < y->order;
}

/* Behind the run that begins at `begin`. */
static size_t run_end(const void *rows, comes_before *before, const uint32_t *order, size_t begin,
                      size_t n)
{
    size_t end = begin + 1;
    while (end < n && !before(rows, order[end], order[end - 1]))
        end++;
    return end;
}

/* Two runs next to each other, [begin, middle) and [middle, end), into one. */
static void merge(const void *rows, comes_before *before, const uint32_t *from, uint32_t *into,
                  const size_t bounds[3])
{
    size_t a = bounds[0], b = bounds[1];
    for (size_t i = bounds[0]; i < bounds[2]; i++) {
        const bool takes_b = a == bounds[1] || (b < bounds[2] && before(rows, from[b], from[a]));
        into[i] = from[takes_b ? b++ : a++];
    }
}

/* Merge each pair of runs; whether there was more than one. */
static bool merge_pairs(const void *rows, comes_before *before, const uint32_t *from,
                        uint32_t *into, size_t n)
{
    bool had_pairs = false;
    for (size_t begin = 0; begin < n;) {
        const size_t middle = run_end(rows, before, from, begin, n);
        const size_t end = middle < n ? run_end(rows, before, from, middle, n) : n;
        const size_t bounds[3] = {begin, middle, end};
        merge(rows, before, from, into, bounds);
        had_pairs |= middle < n;
        begin = end;
    }
    return had_pairs;
}

/* The rows, `n` of `size` bytes, in a new array that replaces the old one. */
static bool sort_rows(void **rows, size_t n, size_t size, comes_before *before)
{
    if (n < 2)
        return true;
    uint32_t *from = kymo__alloc(n * sizeof *from), *into = kymo__alloc(n * sizeof *into);
    char *sorted = NULL;
    for (size_t i = 0; from != NULL && i < n; i++)
        from[i] = (uint32_t)i;
    bool is_moved = false;
    while (from != NULL && into != NULL && merge_pairs(*rows, before, from, into, n)) {
        uint32_t *const swapped = from;
        from = into;
        into = swapped;
        is_moved = true;
    }
    const bool has_order = from != NULL && into != NULL;
    if (has_order && is_moved && (sorted = kymo__alloc(n * size)) != NULL) {
        for (size_t i = 0; i < n; i++)
            memcpy(sorted + i * size, (const char *)*rows + from[i] * size, size);
        kymo__free(*rows);
        *rows = sorted;
    }
    kymo__free(from);
    kymo__free(into);
    return has_order && (!is_moved || sorted != NULL);
}

bool kymo__torch_sort(struct kymo__torch_trace *trace)
{
    void *events = trace->events, *memory = trace->memory;
    bool is_done = sort_rows(&events, trace->n_events, sizeof *trace->events, event_before);
    trace->events = events;
    is_done = is_done && sort_rows(&memory, trace->n_memory, sizeof *trace->memory, memory_before);
    trace->memory = memory;
    for (size_t i = 0; is_done && i < trace->n_events; i++) {
        struct kymo__torch_thread *thread = &trace->threads[trace->events[i].thread];
        if (thread->end == 0)
            thread->begin = i;
        thread->end = i + 1;
    }
    return is_done;
}
