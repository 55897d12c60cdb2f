/*
 * What files of calls have in common: a row for each function as a file calls it, and who called whom. Two functions of one
 * file, line and name are one row, because nobody who reads such a file could tell them apart.
 */
#include <string.h>

#include "present/calls_out.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the calls");
}

static void add_sum(struct kymo__call_sum *into, const struct kymo__call_sum *from)
{
    into->calls += from->calls;
    into->primitive += from->primitive;
    into->resumes += from->resumes;
    into->self_ns += from->self_ns;
    into->total_ns += from->total_ns;
    into->gpu_ns += from->gpu_ns;
    into->max_ns = KYMO__MAX(into->max_ns, from->max_ns);
}

/* The row of an entity, made when new; false without memory. */
static bool find_row(struct kymo__call_files *files, struct kymo__names *keys,
                     const struct kymo__call_sums *sums, uint32_t entity, uint32_t *row)
{
    const struct kymo__call_function *const function =
        &files->calls.functions[kymo__entity_function(sums, &files->calls, entity)];
    struct kymo__buf key = {0};
    kymo__call_label(&key, &files->calls, kymo__entity_function(sums, &files->calls, entity),
                     kymo__entity_signature(sums, entity));
    kymo__buf_put(&key, "", 1);
    kymo__buf_put(&key, function->file, strlen(function->file) + 1);
    kymo__buf_put(&key, &function->line, sizeof function->line);
    const char *const kept = key.failed ? NULL : kymo__arena_text(&files->texts, key.data, key.len);
    const uint32_t number = kept != NULL ? kymo__names_number(keys, kept, key.len) : KYMO__NO_NAME;
    kymo__buf_fini(&key);
    if (number == KYMO__NO_NAME)
        return false;
    if (number == files->n_rows)
        files->rows[files->n_rows++] = (struct kymo__call_row){
            .label = kept, .file = kept + strlen(kept) + 1, .line = function->line};
    *row = number;
    return true;
}

static bool make_rows(struct kymo__call_files *files, const struct kymo__call_sums *sums,
                      uint32_t *rows)
{
    struct kymo__names keys = {0};
    bool done = true;
    for (uint32_t i = 0; done && i < sums->n_entities; i++)
        if (sums->entities[i].calls != 0 || sums->entities[i].self_ns != 0) {
            done = find_row(files, &keys, sums, i, &rows[i]);
            if (done)
                add_sum(&files->rows[rows[i]].sum, &sums->entities[i]);
        }
    kymo__names_fini(&keys);
    return done;
}

static int by_callee(const void *a, const void *b)
{
    const struct kymo__call_edge *const x = a, *const y = b;
    if (x->callee != y->callee)
        return x->callee < y->callee ? -1 : 1;
    return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static int by_caller(const void *a, const void *b)
{
    const struct kymo__call_edge *const x = a, *const y = b;
    if (x->caller != y->caller)
        return x->caller < y->caller ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* In order, and those that are one between rows made one. */
static void make_edges(struct kymo__call_files *files, struct kymo__call_sums *sums,
                       const uint32_t *rows, enum kymo__call_rows_order order)
{
    size_t n = 0;
    for (size_t i = 0; i < sums->n_edges; i++)
        if (sums->edges[i].sum.calls != 0) {
            sums->edges[n] = sums->edges[i];
            sums->edges[n].caller = rows[sums->edges[i].caller];
            sums->edges[n].callee = rows[sums->edges[i].callee];
            n++;
        }
    if (n != 0)
        qsort(sums->edges, n, sizeof *sums->edges,
              order == KYMO__ROWS_BY_CALLEE ? by_callee : by_caller);
    files->edges = sums->edges;
    for (size_t i = 0; i < n; i++) {
        struct kymo__call_edge *const last =
            files->n_edges != 0 ? &files->edges[files->n_edges - 1] : NULL;
        if (last != NULL && by_callee(last, &files->edges[i]) == 0)
            add_sum(&last->sum, &files->edges[i].sum);
        else
            files->edges[files->n_edges++] = files->edges[i];
    }
    sums->edges = NULL; /* they are the files' now */
}

kymo_status kymo__call_files_init(struct kymo__call_files *files, kymo_recording *const *recordings,
                                  size_t n, const struct kymo_export_options *options,
                                  enum kymo__call_rows_order order)
{
    struct kymo__call_sums sums = {0};
    *files = (struct kymo__call_files){0};
    if (options->filter != NULL)
        return kymo__fail(KYMO_EINVAL, "a filter would leave callers without callees; these files "
                                       "have all functions");
    KYMO_TRY(kymo__calls_wanted(&files->calls, recordings, n, options, true));
    uint32_t *rows = NULL;
    bool done = kymo__call_sums_make(&sums, &files->calls, true);
    if (done) {
        rows = kymo__calloc(sums.n_entities, sizeof *rows);
        files->rows = kymo__calloc(sums.n_entities, sizeof *files->rows);
        done = rows != NULL && files->rows != NULL && make_rows(files, &sums, rows);
    }
    if (done)
        make_edges(files, &sums, rows, order);
    kymo__free(rows);
    kymo__call_sums_fini(&sums);
    if (!done)
        kymo__call_files_fini(files);
    return done ? KYMO_OK : no_memory();
}

void kymo__call_files_fini(struct kymo__call_files *files)
{
    kymo__free(files->rows);
    kymo__free(files->edges);
    kymo__arena_fini(&files->texts);
    kymo__calls_fini(&files->calls);
    *files = (struct kymo__call_files){0};
}
