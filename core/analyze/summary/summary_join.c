/*
 * All that was added up by one, added to what was added up by another: the step of a reduction. Names and processes get
 * new numbers. Sums are of whole numbers and so the same in any order; what depends on an order is kept as rows, and
 * summary_order.c has the last word.
 */
#include <string.h>

#include "analyze/summary/internal.h"

struct joining {
    struct marey__merge *into, *from;
    uint32_t *names; /* of `from`, to the numbers of `into` */
    uint32_t first_process;
};

static bool map_names(struct joining *j)
{
    const struct marey__names *names = &j->from->names;
    j->names = marey__calloc(names->n + 1, sizeof *j->names);
    for (size_t i = 0; j->names != NULL && i < names->n; i++) {
        j->names[i] = marey__names_number(&j->into->names, names->names[i].text, names->names[i].len);
        if (j->names[i] == MAREY__NO_NAME)
            return false;
    }
    return j->names != NULL;
}

/* What the first one has is handed over, so that it is not in memory twice. */
static bool join_sketch(struct marey__sketch *into, struct marey__sketch *from)
{
    if (into->count != 0)
        return marey__sketch_merge(into, from);
    marey__sketch_fini(into);
    *into = *from;
    *from = (struct marey__sketch){0};
    return true;
}

/* ---- by name ---- */

static bool join_stats(struct marey__name_stats *into, struct marey__name_stats *from)
{
    into->total_ns += from->total_ns;
    into->self_ns += from->self_ns;
    into->steady_ns += from->steady_ns;
    into->n_threads += from->n_threads;
    into->n_processes += from->n_processes;
    return join_sketch(&into->calls, &from->calls);
}

static bool cover_names(const struct joining *j)
{
    struct marey__merge *m = j->into;
    return marey__cover_names(&m->names, &m->ranges, &m->n_ranges, &m->ranges_cap, sizeof *m->ranges) &&
           marey__cover_names(&m->names, &m->marks, &m->n_marks, &m->marks_cap, sizeof *m->marks) &&
           (j->from->n_async == 0 ||
            marey__cover_names(&m->names, &m->async, &m->n_async, &m->async_cap, sizeof *m->async));
}

static bool join_names(const struct joining *j)
{
    struct marey__merge *into = j->into, *from = j->from;
    if (!cover_names(j))
        return false;
    for (size_t i = 0; i < from->n_ranges; i++)
        if (!join_stats(&into->ranges[j->names[i]], &from->ranges[i]))
            return false;
    for (size_t i = 0; i < from->n_async; i++)
        if (!join_stats(&into->async[j->names[i]], &from->async[i]))
            return false;
    for (size_t i = 0; i < from->n_marks; i++)
        into->marks[j->names[i]] += from->marks[i];
    return true;
}

static bool join_tree(const struct joining *j)
{
    const uint32_t other =
        marey__names_number(&j->into->names, MAREY__OTHER_RANGES, strlen(MAREY__OTHER_RANGES));
    return other != MAREY__NO_NAME &&
           marey__tree_join(&j->into->tree, &j->from->tree, j->names, other);
}

/* ---- rows ---- */

static bool join_processes(struct joining *j)
{
    struct marey__merge *into = j->into;
    const struct marey__merge *from = j->from;
    j->first_process = (uint32_t)into->n_processes;
    if (!marey__merge_grow_processes(into, into->n_processes + from->n_processes))
        return false;
    for (size_t i = 0; i < from->n_processes; i++) {
        into->process_recordings[into->n_processes] = from->process_recordings[i];
        into->processes[into->n_processes++] = from->processes[i];
    }
    into->n_threads += from->n_threads;
    into->n_orphans += from->n_orphans;
    into->n_cut_off += from->n_cut_off;
    into->n_unwound += from->n_unwound;
    into->n_async_dropped += from->n_async_dropped;
    into->n_overlapping += from->n_overlapping;
    into->n_too_deep += from->n_too_deep;
    return true;
}

/* Append the rows of `from` to those of `into`; where the first of them is goes into `first`. */
static bool append(void *into, size_t *n, size_t *cap, const void *from, size_t n_from, size_t size,
                   void *first)
{
    char *rows;
    if (!marey__grow(into, cap, *n + n_from, size))
        return false;
    memcpy(&rows, into, sizeof rows);
    if (n_from != 0)
        memcpy(rows + *n * size, from, n_from * size);
    rows = n_from != 0 ? rows + *n * size : NULL;
    memcpy(first, &rows, sizeof rows);
    *n += n_from;
    return true;
}

static bool join_name_rows(const struct joining *j, struct marey__row_list *into,
                           const struct marey__row_list *from)
{
    struct marey__name_row *rows;
    if (!append(&into->rows, &into->n, &into->cap, from->rows, from->n, sizeof *rows, &rows))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        rows[i].process += j->first_process;
        rows[i].name = j->names[rows[i].name];
    }
    return true;
}

static bool join_open(const struct joining *j)
{
    struct marey__merge *into = j->into;
    struct marey__open_row *rows;
    if (!append(&into->open, &into->n_open, &into->open_cap, j->from->open, j->from->n_open,
                sizeof *rows, &rows))
        return false;
    for (size_t i = 0; i < j->from->n_open; i++) {
        rows[i].process += j->first_process;
        rows[i].name = j->names[rows[i].name];
    }
    return true;
}

static bool join_counters(const struct joining *j)
{
    struct marey__merge *into = j->into;
    struct marey__counter_row *rows;
    if (!append(&into->counter_rows, &into->n_counter_rows, &into->counter_rows_cap,
                j->from->counter_rows, j->from->n_counter_rows, sizeof *rows, &rows))
        return false;
    for (size_t i = 0; i < j->from->n_counter_rows; i++) {
        rows[i].process += j->first_process;
        rows[i].name = j->names[rows[i].name];
    }
    return true;
}

static bool join_left_out(const struct joining *j)
{
    for (size_t i = 0; i < j->from->n_left_out; i++) {
        const struct marey__left_out *from = &j->from->left_out[i];
        struct marey__left_out *into = marey__merge_left_out(j->into, from->recording);
        if (into == NULL)
            return false;
        into->n_broken += from->n_broken;
        into->n_empty += from->n_empty;
        for (size_t p = 0; p < from->n_measuring; p++)
            if (!marey__left_out_add(into, from->measuring[p]))
                return false;
    }
    return true;
}

static bool join_told(const struct joining *j)
{
    struct marey__merge *into = j->into;
    struct marey__note_row *rows;
    for (size_t i = 0; i < j->from->sites.n; i++) {
        struct marey__site_row site = j->from->sites.rows[i];
        site.process += j->first_process;
        if (!marey__merge_add_site(into, &site))
            return false;
    }
    return append(&into->told, &into->n_reported, &into->told_cap, j->from->told,
                  j->from->n_reported, sizeof *rows, &rows) &&
           join_left_out(j);
}

/* ---- iterations ---- */

/* Of two processes with the highest mean it is the one that comes first. */
static bool is_higher(const struct joining *j, const struct marey__iteration_name *into,
                      const struct marey__iteration_name *from, uint32_t process)
{
    return into->n_processes == 0 || from->highest_mean_ns > into->highest_mean_ns ||
           (from->highest_mean_ns == into->highest_mean_ns &&
            marey__merge_is_before(j->into, process, into->highest_process));
}

static bool join_values(struct marey__iteration_values *into, struct marey__iteration_values *from)
{
    into->sum_of_squares += from->sum_of_squares;
    into->first_ns += from->first_ns;
    return join_sketch(&into->ns, &from->ns);
}

static bool join_iteration_name(const struct joining *j, struct marey__iteration_name *into,
                                struct marey__iteration_name *from)
{
    const uint32_t process = from->highest_process + j->first_process;
    if (from->n_processes == 0)
        return true;
    if (is_higher(j, into, from, process)) {
        into->highest_mean_ns = from->highest_mean_ns;
        into->highest_process = process;
    }
    if (into->n_processes == 0 || from->lowest_mean_ns < into->lowest_mean_ns)
        into->lowest_mean_ns = from->lowest_mean_ns;
    into->n_processes += from->n_processes;
    into->n_iterations += from->n_iterations;
    into->whole_ns += from->whole_ns;
    into->n_first += from->n_first;
    into->first_whole_ns += from->first_whole_ns;
    return join_values(&into->values, &from->values);
}

static bool join_iteration_names(const struct joining *j)
{
    struct marey__iteration_merge *into = &j->into->iterations, *from = &j->from->iterations;
    if (from->n_names != 0 && !marey__cover_names(&j->into->names, &into->names, &into->n_names,
                                                  &into->names_cap, sizeof *into->names))
        return false;
    for (size_t i = 0; i < from->n_names; i++)
        if (!join_iteration_name(j, &into->names[j->names[i]], &from->names[i]))
            return false;
    if (from->n_phases != 0 && !marey__cover_names(&j->into->names, &into->phases, &into->n_phases,
                                                   &into->phases_cap, sizeof *into->phases))
        return false;
    for (size_t i = 0; i < from->n_phases; i++) {
        struct marey__phase_stats *phase = &into->phases[j->names[i]];
        phase->count += from->phases[i].count;
        phase->total_ns += from->phases[i].total_ns;
        phase->n_iterations += from->phases[i].n_iterations;
        phase->steady_ns += from->phases[i].steady_ns;
    }
    into->phased_ns += from->phased_ns;
    into->steady_ns += from->steady_ns;
    into->steady_phased_ns += from->steady_phased_ns;
    into->n_first += from->n_first;
    return join_values(&into->whole, &from->whole) && join_values(&into->no_range, &from->no_range);
}

static bool join_courses(const struct joining *j, uint32_t first_row)
{
    struct marey__iteration_merge *into = &j->into->iterations, *from = &j->from->iterations;
    for (size_t c = 0; c < from->n_courses; c++) {
        const struct marey__rank_steps *course = &from->courses[c];
        const struct marey__rank_steps *joined =
            marey__iteration_course(into, course->recording, course->n);
        if (joined == NULL)
            return false;
        for (size_t i = 0; i < course->n; i++) {
            struct marey__rank_step race = course->races[i];
            if (race.n == 0)
                continue;
            if (race.slowest != MAREY__NO_NAME)
                race.slowest += first_row;
            marey__race_add(&joined->races[i], &race);
        }
    }
    return true;
}

static bool join_iteration_rows(const struct joining *j)
{
    struct marey__iteration_merge *into = &j->into->iterations, *from = &j->from->iterations;
    const uint32_t first_row = (uint32_t)into->n_rows;
    struct marey__iteration_row *rows;
    struct marey__outlier_row *outliers;
    struct marey__epoch_row *epochs;
    if (!append(&into->rows, &into->n_rows, &into->rows_cap, from->rows, from->n_rows, sizeof *rows,
                &rows) ||
        !append(&into->outliers, &into->n_outliers, &into->outliers_cap, from->outliers,
                from->n_outliers, sizeof *outliers, &outliers) ||
        !append(&into->epochs, &into->n_epochs, &into->epochs_cap, from->epochs, from->n_epochs,
                sizeof *epochs, &epochs))
        return false;
    for (size_t i = 0; i < from->n_rows; i++)
        rows[i].process += j->first_process;
    for (size_t i = 0; i < from->n_epochs; i++)
        epochs[i].process += j->first_process;
    for (size_t i = 0; i < from->n_outliers; i++) {
        outliers[i].process += j->first_process;
        if (outliers[i].name != MAREY__NO_NAME)
            outliers[i].name = j->names[outliers[i].name];
    }
    return join_courses(j, first_row);
}

/* ---- work of GPUs ---- */

static bool join_work(struct marey__merged_work *into, struct marey__merged_work *from)
{
    into->n_streams += from->n_streams;
    into->n_devices += from->n_devices;
    into->n_processes += from->n_processes;
    into->bytes += from->bytes;
    into->bytes_ns += from->bytes_ns;
    return join_sketch(&into->calls, &from->calls);
}

static bool join_gpu(const struct joining *j)
{
    struct marey__gpu_merge *into = &j->into->gpu, *from = &j->from->gpu;
    if (from->n_works == 0 && from->n_ranges == 0)
        return true;
    if (!marey__gpu_merge_cover(j->into))
        return false;
    for (size_t i = 0; i < from->n_works; i++) {
        struct marey__merged_work *work =
            marey__gpu_merge_work(into, j->names[from->works[i].name], from->works[i].kind);
        if (work == NULL || !join_work(work, &from->works[i]))
            return false;
    }
    for (size_t i = 0; i < from->n_ranges; i++) {
        struct marey__gpu_range *range = &into->ranges[j->names[i]];
        range->count += from->ranges[i].count;
        range->total_ns += from->ranges[i].total_ns;
        range->self_ns += from->ranges[i].self_ns;
    }
    into->work_ns += from->work_ns;
    return true;
}

bool marey__merge_join(struct marey__merge *into, struct marey__merge *from)
{
    struct joining j = {.into = into, .from = from};
    const bool done = map_names(&j) && join_tree(&j) && join_names(&j) && join_processes(&j) &&
                      join_name_rows(&j, &into->threads, &from->threads) &&
                      join_name_rows(&j, &into->ranks, &from->ranks) && join_open(&j) &&
                      join_counters(&j) && join_told(&j) && join_iteration_names(&j) &&
                      join_iteration_rows(&j) && join_gpu(&j);
    marey__free(j.names);
    return done;
}
