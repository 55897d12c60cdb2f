/*
 * Two merges joined: the step of a reduction over threads and MPI processes. Names and processes get new numbers. Sums
 * are of whole numbers, so any order gives the same result; values that depend on an order are kept as rows, which
 * summary_order.c sorts.
 */
#include "analyze/summary/fields.h"

struct joining {
    struct marey__merge *into, *from;
    uint32_t *names; /* of `from`, to the numbers of `into` */
    uint32_t first_process;
};

/* The first one hands its sketch over, so that it is not in memory twice. */
static bool join_sketch(struct marey__sketch *into, struct marey__sketch *from)
{
    if (into->count != 0)
        return marey__sketch_merge(into, from);
    marey__sketch_fini(into);
    *into = *from;
    *from = (struct marey__sketch){0};
    return true;
}

/* Add up the numbers and sketches; other fields stay as they are. */
static bool add_fields(void *into, void *from, const struct field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *const to = at(into, fields[i].offset), *const value = at(from, fields[i].offset);
        const enum kind kind = fields[i].kind;
        for (size_t k = 0; kind == U64 && k < fields[i].size / sizeof(uint64_t); k++)
            ((uint64_t *)to)[k] += ((uint64_t *)value)[k];
        for (size_t k = 0;
             (kind == U32 || kind == U32_OR_END) && k < fields[i].size / sizeof(uint32_t); k++)
            ((uint32_t *)to)[k] += ((uint32_t *)value)[k];
        if (kind == U128)
            *(marey__u128 *)to += *(marey__u128 *)value;
        else if (kind == SKETCH && !join_sketch(to, value))
            return false;
    }
    return true;
}
#define ADD_FIELDS(into, from, fields) add_fields((into), (from), (fields), MAREY__COUNT_OF(fields))

static bool join_by_name(const struct joining *j, const struct list *list)
{
    size_t *const n = n_of(j->into, list);
    const size_t n_from = *n_of(j->from, list);
    if (n_from == 0 && list->kind == BY_NAME)
        return true;
    if (!marey__cover_names(&j->into->names, at(j->into, list->rows), n, at(j->into, list->cap),
                            list->size))
        return false;
    char *const into = rows_of(j->into, list), *const from = rows_of(j->from, list);
    for (size_t i = 0; i < n_from; i++)
        if (!add_fields(into + j->names[i] * list->size, from + i * list->size, list->fields,
                        list->n_fields))
            return false;
    return true;
}

static void renumber(const struct joining *j, const struct list *list, char *row)
{
    for (size_t i = 0; i < list->n_fields; i++) {
        uint32_t *const value = at(row, list->fields[i].offset);
        const enum kind kind = list->fields[i].kind;
        if (kind == PROCESS)
            *value += j->first_process;
        else if (kind == NAME || (kind == NAME_OR_NONE && *value != MAREY__NO_NAME))
            *value = j->names[*value];
    }
}

static bool join_rows(const struct joining *j, const struct list *list)
{
    size_t *const n = n_of(j->into, list);
    const size_t n_from = *n_of(j->from, list);
    if (n_from == 0)
        return true;
    if (!marey__grow(at(j->into, list->rows), at(j->into, list->cap), *n + n_from, list->size))
        return false;
    char *const rows = rows_of(j->into, list) + *n * list->size;
    memcpy(rows, rows_of(j->from, list), n_from * list->size);
    for (size_t i = 0; i < n_from; i++)
        renumber(j, list, rows + i * list->size);
    *n += n_from;
    return true;
}

static bool join_lists(const struct joining *j)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(lists); i++)
        if (!(lists[i].kind == ROWS ? join_rows : join_by_name)(j, &lists[i]))
            return false;
    return true;
}

static bool join_tree(const struct joining *j)
{
    const uint32_t other =
        marey__names_number(&j->into->names, MAREY__OTHER_RANGES, strlen(MAREY__OTHER_RANGES));
    return other != MAREY__NO_NAME &&
           marey__tree_join(&j->into->tree, &j->from->tree, j->names, other);
}

static bool join_processes(struct joining *j)
{
    struct marey__merge *into = j->into;
    const struct marey__merge *from = j->from;
    j->first_process = (uint32_t)into->n_processes;
    if (!marey__merge_grow_processes(into, into->n_processes + from->n_processes))
        return false;
    for (size_t i = 0; i < from->n_processes; i++) {
        const uint8_t *at = marey__rank_rows_of(from, i);
        into->process_recordings[into->n_processes] = from->process_recordings[i];
        into->ranks.starts[into->n_processes] = into->ranks.bytes.len;
        into->processes[into->n_processes++] = from->processes[i];
        for (struct marey__name_row row; marey__rank_row_next(from, &at, &row);) {
            row.name = j->names[row.name];
            marey__rank_row_put(into, &row);
        }
        marey__rank_row_put(into, NULL);
    }
    return !into->ranks.bytes.failed;
}

static bool join_sites(const struct joining *j)
{
    for (size_t i = 0; i < j->from->sites.n; i++) {
        struct marey__site_row site = j->from->sites.rows[i];
        site.process += j->first_process;
        if (!marey__merge_add_site(j->into, &site))
            return false;
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

/* Before sums are added. If two processes have the highest mean, the first of them counts. */
static void join_means(const struct joining *j, struct marey__iteration_name *into,
                       const struct marey__iteration_name *from)
{
    const uint32_t process = from->highest_process + j->first_process;
    if (from->n_processes == 0)
        return;
    if (into->n_processes == 0 || from->highest_mean_ns > into->highest_mean_ns ||
        (from->highest_mean_ns == into->highest_mean_ns &&
         marey__merge_is_before(j->into, process, into->highest_process))) {
        into->highest_mean_ns = from->highest_mean_ns;
        into->highest_process = process;
    }
    if (into->n_processes == 0 || from->lowest_mean_ns < into->lowest_mean_ns)
        into->lowest_mean_ns = from->lowest_mean_ns;
}

static bool join_iteration_names(const struct joining *j)
{
    struct marey__iteration_merge *into = &j->into->iterations, *from = &j->from->iterations;
    if (from->n_names != 0 && !marey__cover_names(&j->into->names, &into->names, &into->n_names,
                                                  &into->names_cap, sizeof *into->names))
        return false;
    for (size_t i = 0; i < from->n_names; i++)
        join_means(j, &into->names[j->names[i]], &from->names[i]);
    return true;
}

/* `first_row`: the number that the first iteration row of `from` gets. */
static bool join_rank_steps(const struct joining *j, uint32_t first_row)
{
    struct marey__iteration_merge *into = &j->into->iterations, *from = &j->from->iterations;
    for (size_t r = 0; r < from->n_rank_steps; r++) {
        const struct marey__rank_steps *steps = &from->rank_steps[r];
        const struct marey__rank_steps *joined =
            marey__rank_steps_of(into, steps->recording, steps->n);
        if (joined == NULL)
            return false;
        for (size_t i = 0; i < steps->n; i++) {
            struct marey__rank_step step = steps->steps[i];
            if (step.n == 0)
                continue;
            if (step.slowest != MAREY__NO_NAME)
                step.slowest += first_row;
            marey__rank_step_add(&joined->steps[i], &step);
        }
    }
    return true;
}

static bool join_works(const struct joining *j)
{
    struct marey__gpu_merge *into = &j->into->gpu, *from = &j->from->gpu;
    if (from->n_works != 0 && !marey__gpu_merge_cover(j->into))
        return false;
    for (size_t i = 0; i < from->n_works; i++) {
        struct marey__merged_work *work =
            marey__gpu_merge_work(into, j->names[from->works[i].name], from->works[i].kind);
        if (work == NULL || !ADD_FIELDS(work, &from->works[i], work_fields))
            return false;
    }
    return true;
}

bool marey__merge_join(struct marey__merge *into, struct marey__merge *from)
{
    struct joining j = {.into = into, .from = from};
    const uint32_t first_row = (uint32_t)into->iterations.n_rows;
    j.names = marey__calloc(from->names.n + 1, sizeof *j.names);
    const bool done = j.names != NULL && marey__map_names(&into->names, &from->names, j.names) &&
                      join_tree(&j) && join_processes(&j) && join_iteration_names(&j) &&
                      join_lists(&j) && join_sites(&j) && join_left_out(&j) &&
                      ADD_FIELDS(into, from, total_fields) && join_rank_steps(&j, first_row) &&
                      join_works(&j);
    marey__free(j.names);
    return done;
}
