/*
 * The last step of a merge: sorts everything that was added in arbitrary order into the order that a single reader
 * would have used. The result is then identical to the last digit, however many readers were involved.
 */
#include <string.h>

#include "analyze/summary/internal.h"
#include "read/internal.h"

static int compare(const struct marey__merge *merge, uint32_t a, uint32_t b)
{
    const uint32_t x = merge->process_recordings[a], y = merge->process_recordings[b];
    return x != y ? (x > y) - (x < y)
                  : marey__process_compare(merge->processes[a], merge->processes[b]);
}

bool marey__merge_is_before(const struct marey__merge *merge, uint32_t a, uint32_t b)
{
    return compare(merge, a, b) < 0;
}

/* ---- processes ---- */

static int by_place(const void *a, const void *b, void *merge)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int order = compare(merge, x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Every row begins with its process. */
static uint32_t process_of(const void *row)
{
    uint32_t process;
    memcpy(&process, row, sizeof process);
    return process;
}

static bool is_row_before(const void *a, const void *b)
{
    return process_of(a) < process_of(b);
}

/* Stable within a process. */
static bool sort_rows(void *rows, size_t n, size_t size, const uint32_t *places)
{
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)rows + i * size;
        memcpy(row, &places[process_of(row)], sizeof *places);
    }
    return n < 2 || marey__sort_runs(rows, n, size, is_row_before);
}

#define SORT_ROWS(rows, n) sort_rows((rows), (n), sizeof *(rows), places)

static bool place_rows(struct marey__merge *merge, const uint32_t *places)
{
    struct marey__iteration_merge *it = &merge->iterations;
    for (size_t i = 0; i < it->n_names; i++)
        if (it->names[i].n_processes != 0)
            it->names[i].highest_process = places[it->names[i].highest_process];
    return SORT_ROWS(merge->threads.rows, merge->threads.n) &&
           SORT_ROWS(merge->open, merge->n_open) &&
           SORT_ROWS(merge->counter_rows, merge->n_counter_rows) &&
           SORT_ROWS(merge->sites.rows, merge->sites.n) && SORT_ROWS(it->rows, it->n_rows) &&
           SORT_ROWS(it->outliers, it->n_outliers) && SORT_ROWS(it->epochs, it->n_epochs);
}

/* Put elements into that order. */
static bool place(void *array, size_t n, size_t size, const uint32_t *order)
{
    char *const copy MAREY__FREED = marey__calloc(n, size);
    if (copy == NULL)
        return false;
    memcpy(copy, array, n * size);
    for (size_t i = 0; i < n; i++)
        memcpy((char *)array + i * size, copy + order[i] * size, size);
    return true;
}

/* `order`: the processes in order. `places`: the place of each. */
static bool place_processes(struct marey__merge *m, const uint32_t *order, uint32_t *places)
{
    const size_t n = m->n_processes;
    for (size_t i = 0; i < n; i++)
        places[order[i]] = (uint32_t)i;
    return place(m->processes, n, sizeof(const struct marey_process *), order) &&
           place(m->process_recordings, n, sizeof *m->process_recordings, order) &&
           place(m->ranks.starts, n, sizeof *m->ranks.starts, order) && place_rows(m, places);
}

static bool put_in_order(struct marey__merge *merge)
{
    const size_t n = merge->n_processes;
    bool is_in_order = true;
    for (uint32_t i = 1; i < n; i++)
        is_in_order &= !marey__merge_is_before(merge, i, i - 1);
    if (is_in_order)
        return true;
    uint32_t *const order MAREY__FREED = marey__calloc(n, sizeof *order);
    uint32_t *const places MAREY__FREED = marey__calloc(n, sizeof *places);
    if (order == NULL || places == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_place, merge);
    return place_processes(merge, order, places);
}

/* ---- counters ---- */

static void add_counter(struct marey__counter *into, const struct marey__counter *from, uint64_t shift)
{
    const bool is_first = into->count == 0;
    const uint64_t last_ns =
        from->last_ns + shift; /* since 1970: processes may be on different machines */
    into->min = is_first || from->min < into->min ? from->min : into->min;
    into->max = is_first || from->max > into->max ? from->max : into->max;
    if (is_first || last_ns >= into->last_ns) {
        into->last = from->last;
        into->last_ns = last_ns;
    }
    into->count += from->count;
    into->sum += from->sum;
}

static bool add_counters(struct marey__merge *m)
{
    if (m->n_counter_rows != 0 && !marey__cover_names(&m->names, &m->counters, &m->n_counters,
                                                      &m->counters_cap, sizeof *m->counters))
        return false;
    for (size_t i = 0; i < m->n_counter_rows; i++) {
        const struct marey__counter_row *row = &m->counter_rows[i];
        add_counter(&m->counters[row->name], &row->counter,
                    (uint64_t)m->processes[row->process]->mono_to_unix_ns);
    }
    m->n_counter_rows = 0;
    return true;
}

/* ---- sites, and notes of recordings ---- */

MAREY__ORDER_RUNS(is_site_before, struct marey__site_row, MAREY__UP(process) MAREY__UP(id))

/* Per recording: warnings about logs first, then notes. */
MAREY__ORDER_RUNS(is_note_before, struct marey__note_row, MAREY__UP(recording) MAREY__UP(is_note))

static bool sort_notes(struct marey__merge *merge)
{
    struct marey__site_rows *sites = &merge->sites;
    return (sites->n < 2 ||
            marey__sort_runs(sites->rows, sites->n, sizeof *sites->rows, is_site_before)) &&
           (merge->n_notes < 2 ||
            marey__sort_runs(merge->notes, merge->n_notes, sizeof *merge->notes, is_note_before));
}

/* ---- the merge ---- */

/* Where ranges overlap, the durations of children may exceed their parent's; self times count once. */
static void sum_tree(struct marey__tree *tree)
{
    for (size_t i = 1; i < tree->n; i++)
        tree->nodes[i].total_ns = tree->nodes[i].self_ns;
    for (size_t i = tree->n; i-- > 1;)
        tree->nodes[tree->nodes[i].parent].total_ns += tree->nodes[i].total_ns;
}

marey_status marey__merge_finish(struct marey__merge *merge)
{
    if (merge->n_overlapping != 0)
        sum_tree(&merge->tree);
    /* Rank steps refer to rows by index, so count the slowest before rows move. */
    marey__iteration_merge_finish(&merge->iterations);
    return put_in_order(merge) && add_counters(merge) && sort_notes(merge) ? MAREY_OK
                                                                           : marey__no_memory();
}
