/*
 * Adds one process to the sums: by name, as a tree, and as rows for each thread and process. Processes are added in
 * order, so the result does not depend on the number of reading threads.
 */
#include <string.h>

#include "analyze/summary/internal.h"

/* State while one process is added. Both lists are by the process's own name numbers. */
struct adding {
    struct marey__merge *merge;
    struct marey__process_walk *walk;
    uint32_t process;
    uint32_t *names;               /* maps to the summary's numbers */
    struct marey__name_row *lane;  /* sums over the current lane */
    struct marey__name_row *total; /* sums over the process */
    uint32_t *touched;             /* names of the lane */
    size_t n_touched;
};

marey_status marey__merge_init(struct marey__merge *merge)
{
    *merge = (struct marey__merge){0};
    return marey__tree_init(&merge->tree) ? MAREY_OK : marey__no_memory();
}

static void free_stats(struct marey__name_stats *stats, size_t n)
{
    for (size_t i = 0; stats != NULL && i < n; i++)
        marey__sketch_fini(&stats[i].calls);
    marey__free(stats);
}

void marey__merge_fini(struct marey__merge *merge)
{
    free_stats(merge->ranges, merge->n_ranges);
    free_stats(merge->async, merge->n_async);
    MAREY__FREE_ALL(merge->counters, merge->marks);
    marey__tree_fini(&merge->tree);
    marey__free(merge->threads.rows);
    marey__buf_fini(&merge->ranks.bytes);
    MAREY__FREE_ALL(merge->ranks.starts, merge->open, merge->processes, merge->process_recordings,
                    merge->counter_rows, merge->notes);
    for (size_t i = 0; i < merge->n_exclusions; i++)
        marey__free(merge->exclusions[i].measuring);
    MAREY__FREE_ALL(merge->exclusions, merge->sites.rows);
    marey__names_fini(&merge->sites.keys);
    marey__arena_fini(&merge->sites.texts);
    marey__iteration_merge_fini(&merge->iterations);
    marey__gpu_merge_fini(&merge->gpu);
    marey__names_fini(&merge->names);
}

/* ---- names ---- */

bool marey__cover_names(const struct marey__names *names, void *array, size_t *n, size_t *cap,
                        size_t size)
{
    return marey__extend(array, n, cap, names->n, size);
}

/* Most programs have no async ranges, so memory is not allocated for a million names. */
static bool grow_stats(struct marey__merge *m, const struct marey__process_walk *walk)
{
    return marey__cover_names(&m->names, &m->ranges, &m->n_ranges, &m->ranges_cap, sizeof *m->ranges) &&
           marey__cover_names(&m->names, &m->marks, &m->n_marks, &m->marks_cap, sizeof *m->marks) &&
           (walk->async == NULL ||
            marey__cover_names(&m->names, &m->async, &m->n_async, &m->async_cap, sizeof *m->async));
}

bool marey__map_names(struct marey__names *into, const struct marey__names *from, uint32_t *numbers)
{
    for (size_t i = 0; i < from->n; i++) {
        numbers[i] = marey__names_number(into, from->names[i].text, from->names[i].len);
        if (numbers[i] == MAREY__NO_NAME)
            return false;
    }
    return true;
}

static bool keep_counter(const struct adding *adding, const struct marey__counter *counter,
                         uint32_t name)
{
    struct marey__merge *merge = adding->merge;
    if (counter->count == 0)
        return true;
    return MAREY__PUSH(merge->counter_rows, merge->n_counter_rows, merge->counter_rows_cap,
                       (struct marey__counter_row){adding->process, name, *counter});
}

/* The first process with a name moves its sketch, so that it is not in memory twice. */
static bool add_calls(struct marey__name_stats *stats, struct marey__sketch *calls)
{
    stats->n_processes += calls->count != 0;
    if (stats->calls.count != 0)
        return marey__sketch_merge(&stats->calls, calls);
    stats->calls = *calls;
    *calls = (struct marey__sketch){0};
    return true;
}

static bool add_by_name(const struct adding *adding)
{
    struct marey__merge *merge = adding->merge;
    const struct marey__process_walk *walk = adding->walk;
    for (size_t i = 0; i < walk->names.n; i++) {
        const uint32_t name = adding->names[i];
        if (!add_calls(&merge->ranges[name], &walk->ranges[i]))
            return false;
        merge->marks[name] += walk->marks[i];
        if (walk->counters != NULL && !keep_counter(adding, &walk->counters[i], name))
            return false;
        if (walk->async == NULL)
            continue;
        merge->async[name].total_ns += walk->async[i].sum;
        merge->async[name].self_ns += walk->async[i].sum;
        if (!add_calls(&merge->async[name], &walk->async[i]))
            return false;
    }
    return true;
}

/* ---- rows ---- */

static int heaviest_first(const void *a, const void *b, void *names)
{
    const struct marey__name_row *x = a, *y = b;
    MAREY__DOWN(total_ns)
    return marey__names_compare(names, x->name, y->name);
}

/* A new row at the end of the list; NULL on out of memory. */
static struct marey__name_row *new_row(struct marey__row_list *list)
{
    if (!marey__grow(&list->rows, &list->cap, list->n + 1, sizeof *list->rows))
        return NULL;
    return &list->rows[list->n++];
}

static void sort_from(struct marey__merge *merge, struct marey__row_list *list, size_t first)
{
    if (list->n - first > 1)
        qsort_r(list->rows + first, list->n - first, sizeof *list->rows, heaviest_first,
                &merge->names);
}

/* Add up the lane's nodes by name. Of a recursive range, only the outermost counts for the total. */
static void sum_lane(struct adding *adding, const struct marey__lane_walk *lane)
{
    const struct marey__tree *tree = &lane->tree;
    for (size_t i = 1; i < tree->n; i++) {
        const struct marey__node *node = &tree->nodes[i];
        struct marey__name_row *row = &adding->lane[node->name];
        if (node->count == 0 && node->total_ns == 0)
            continue;
        if (row->lane == NULL)
            adding->touched[adding->n_touched++] = node->name;
        row->lane = lane->stack.info;
        row->count += node->count;
        row->self_ns += node->self_ns;
        adding->merge->n_overlapping += lane->first != NULL ? node->count : 0;
        adding->merge->ranges[adding->names[node->name]].steady_ns +=
            marey__lane_steady_ns(adding->walk, lane, i);
        row->total_ns += node->is_outermost ? node->total_ns : 0;
    }
}

/* The rows of a thread, after its lanes were added up. */
static bool add_thread_rows(struct adding *adding)
{
    struct marey__row_list *threads = &adding->merge->threads;
    const size_t first = threads->n;
    adding->merge->n_threads++;
    for (size_t t = 0; t < adding->n_touched; t++) {
        const uint32_t name = adding->touched[t];
        struct marey__name_row *sum = &adding->lane[name], *total = &adding->total[name];
        struct marey__name_row *row = adding->merge->without_threads ? sum : new_row(threads);
        if (row == NULL)
            return false;
        *row = *sum;
        row->process = adding->process;
        row->name = adding->names[name];
        adding->merge->ranges[row->name].n_threads++;
        total->count += sum->count;
        total->total_ns += sum->total_ns;
        total->self_ns += sum->self_ns;
        *sum = (struct marey__name_row){0};
    }
    adding->n_touched = 0;
    sort_from(adding->merge, threads, first);
    return true;
}

/* Times are written as differences, most of which are small: a range without a parent runs mostly in iterations. */
void marey__rank_row_put(struct marey__merge *merge, const struct marey__name_row *row)
{
    struct marey__buf *const bytes = &merge->ranks.bytes;
    marey__buf_put_leb128(bytes, row != NULL ? (uint64_t)row->name + 1 : 0);
    if (row == NULL)
        return;
    marey__buf_put_leb128(bytes, row->count);
    marey__buf_put_leb128(bytes, row->total_ns);
    marey__buf_put_leb128(bytes, row->total_ns - row->self_ns);
    marey__buf_put_leb128(bytes, row->total_ns - row->iteration_ns);
}

const uint8_t *marey__rank_rows_of(const struct marey__merge *merge, size_t process)
{
    return (const uint8_t *)merge->ranks.bytes.data + merge->ranks.starts[process];
}

bool marey__rank_row_next(const struct marey__merge *merge, const uint8_t **at,
                          struct marey__name_row *row)
{
    const uint8_t *const end = (const uint8_t *)merge->ranks.bytes.data + merge->ranks.bytes.len;
    uint64_t above = 0, in_others = 0, outside = 0;
    if (!marey__take_leb128(at, end, &above) || above > merge->names.n) {
        *at = NULL;
        return false;
    }
    if (above == 0)
        return false;
    const bool is_whole =
        marey__take_leb128(at, end, &row->count) && marey__take_leb128(at, end, &row->total_ns) &&
        marey__take_leb128(at, end, &in_others) && marey__take_leb128(at, end, &outside);
    row->name = (uint32_t)above - 1;
    row->self_ns = row->total_ns - in_others;
    row->iteration_ns = row->total_ns - outside;
    if (!is_whole)
        *at = NULL;
    return is_whole;
}

static bool add_process_rows(struct adding *adding)
{
    struct marey__merge *merge = adding->merge;
    const struct marey__iteration_values *in_iterations = adding->walk->iteration_stats.by_name;
    struct marey__row_list rows = {.rows = adding->total};
    for (size_t i = 0; i < adding->walk->names.n; i++) {
        struct marey__name_row row = adding->total[i];
        if (row.count == 0 && row.self_ns == 0 && row.total_ns == 0)
            continue;
        row.name = adding->names[i];
        row.iteration_ns = in_iterations != NULL ? in_iterations[i].ns.sum : 0;
        merge->ranges[row.name].total_ns += row.total_ns;
        merge->ranges[row.name].self_ns += row.self_ns;
        rows.rows[rows.n++] = row; /* overwrites sums already read */
    }
    sort_from(merge, &rows, 0);
    for (size_t i = 0; i < rows.n; i++)
        marey__rank_row_put(merge, &rows.rows[i]);
    marey__rank_row_put(merge, NULL);
    return !merge->ranks.bytes.failed;
}

/* ---- open ranges ---- */

static bool add_open(const struct adding *adding, uint32_t name, const struct marey_lane_info *lane,
                     uint64_t ns)
{
    struct marey__merge *merge = adding->merge;
    const uint64_t first_ns = adding->walk->info->first_ns;
    return MAREY__PUSH(merge->open, merge->n_open, merge->open_cap,
                       (struct marey__open_row){.process = adding->process,
                                                .name = adding->names[name],
                                                .lane = lane,
                                                .since_ns = ns > first_ns ? ns - first_ns : 0});
}

static bool add_open_ranges(const struct adding *adding, const struct marey__lane_walk *lane)
{
    const struct marey__lane_stack *stack = &lane->stack;
    for (size_t i = 0; i < stack->n_open; i++)
        if (!add_open(adding, stack->open[i].name, stack->info, stack->open[i].start_ns))
            return false;
    return true;
}

static bool add_open_async(const struct adding *adding)
{
    const struct marey__async_match *pending = &adding->walk->pending;
    for (size_t i = 0; i < pending->n_slots; i++) {
        const struct marey__async_half *half = &pending->slots[i];
        if (half->handle == 0)
            continue;
        if (!half->is_begin)
            adding->merge->n_orphans++;
        else if (!add_open(adding, half->name, adding->walk->lanes[half->lane]->stack.info, half->ns))
            return false;
    }
    return true;
}

/* ---- a process ---- */

MAREY__ORDER(by_thread, struct marey__lane_walk *const,
             MAREY__UP_BY((*x)->stack.info->tid, (*y)->stack.info->tid)
                 MAREY__UP_BY((*x)->stack.info->lane, (*y)->stack.info->lane))

/*
 * A recorder has one lane per thread, though two successive threads may have had the same tid. An imported trace has
 * further lanes for overlapping ranges of a thread.
 */
static bool add_lanes(struct adding *adding)
{
    const struct marey__process_walk *walk = adding->walk;
    const bool is_imported = walk->info->source[0] != '\0';
    struct marey__lane_walk **const lanes MAREY__FREED =
        marey__calloc((size_t)walk->info->n_lanes + 1, sizeof *lanes);
    size_t n = 0;
    if (lanes == NULL)
        return false;
    for (size_t i = 0; i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL)
            lanes[n++] = walk->lanes[i];
    if (is_imported)
        qsort(lanes, n, sizeof *lanes, by_thread);
    for (size_t i = 0; i < n; i++) {
        const bool is_last = i + 1 == n || !is_imported ||
                             lanes[i + 1]->stack.info->tid != lanes[i]->stack.info->tid;
        sum_lane(adding, lanes[i]);
        if (!marey__tree_join(&adding->merge->tree, &lanes[i]->tree, adding->names,
                              adding->names[walk->other]) ||
            !add_open_ranges(adding, lanes[i]) || (is_last && !add_thread_rows(adding)))
            return false;
    }
    return true;
}

bool marey__merge_grow_processes(struct marey__merge *merge, size_t n)
{
    return marey__grow(&merge->processes, &merge->processes_cap, n, sizeof *merge->processes) &&
           marey__grow(&merge->process_recordings, &merge->process_recordings_cap, n,
                       sizeof *merge->process_recordings) &&
           marey__grow(&merge->ranks.starts, &merge->ranks.starts_cap, n,
                       sizeof *merge->ranks.starts);
}

static bool add_process(struct adding *adding)
{
    struct marey__merge *merge = adding->merge;
    const struct marey__process_walk *walk = adding->walk;
    if (!marey__merge_grow_processes(merge, merge->n_processes + 1))
        return false;
    adding->process = (uint32_t)merge->n_processes;
    merge->process_recordings[merge->n_processes] = walk->recording_number;
    merge->ranks.starts[merge->n_processes] = merge->ranks.bytes.len;
    merge->processes[merge->n_processes++] = walk->info;
    merge->n_orphans += walk->replay.n_orphans;
    merge->n_cut_off += walk->replay.n_cut_off;
    merge->n_unwound += walk->replay.n_unwound;
    merge->n_too_deep += walk->replay.n_too_deep;
    merge->n_async_dropped += walk->pending.n_dropped;
    return marey__map_names(&merge->names, &walk->names, adding->names) && grow_stats(merge, walk) &&
           add_by_name(adding) && add_lanes(adding) && add_process_rows(adding) &&
           add_open_async(adding) && marey__gpu_merge_add(merge, adding->walk, adding->names) &&
           marey__iteration_merge_add(merge, walk, adding->process, adding->names);
}

marey_status marey__merge_add(struct marey__merge *merge, struct marey__process_walk *walk)
{
    const size_t n = walk->names.n;
    struct adding adding = {
        .merge = merge,
        .walk = walk,
        .names = marey__calloc(n, sizeof *adding.names),
        .lane = marey__calloc(n, sizeof *adding.lane),
        .total = marey__calloc(n, sizeof *adding.total),
        .touched = marey__calloc(n, sizeof *adding.touched),
    };
    const bool done = adding.names != NULL && adding.lane != NULL && adding.total != NULL &&
                      adding.touched != NULL && add_process(&adding);
    MAREY__FREE_ALL(adding.names, adding.lane, adding.total, adding.touched);
    return done ? MAREY_OK : marey__no_memory();
}
