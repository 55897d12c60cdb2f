/*
 * Common data of call profile formats: a row for each function as the format identifies it, with callers and callees.
 * Functions with the same file, line and name share a row, because readers cannot distinguish them.
 */
#include "present/export/stacks/internal.h"

static void add_sum(struct marey__call_sum *into, const struct marey__call_sum *from)
{
    into->calls += from->calls;
    into->primitive += from->primitive;
    into->resumes += from->resumes;
    into->self_ns += from->self_ns;
    into->total_ns += from->total_ns;
    into->gpu_ns += from->gpu_ns;
    into->max_ns = MAREY__MAX(into->max_ns, from->max_ns);
}

/* The row of an entity, created if needed; false on out of memory. */
static bool find_row(struct marey__function_rows *files, struct marey__names *keys,
                     const struct marey__call_sums *sums, uint32_t entity, uint32_t *row)
{
    const struct marey__call_function *const function =
        &files->calls.functions[marey__entity_function(sums, &files->calls, entity)];
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    marey__call_label(&key, &files->calls, marey__entity_function(sums, &files->calls, entity),
                      marey__entity_signature(sums, entity));
    marey__buf_put(&key, "", 1);
    marey__buf_put(&key, function->file, strlen(function->file) + 1);
    marey__buf_put(&key, &function->line, sizeof function->line);
    const uint32_t number =
        key.failed ? MAREY__NO_NAME : marey__names_keep(keys, &files->texts, key.data, key.len);
    if (number == MAREY__NO_NAME)
        return false;
    if (number == files->n_rows) {
        const char *const label = keys->names[number].text;
        files->rows[files->n_rows++] = (struct marey__call_row){
            .label = label, .file = label + strlen(label) + 1, .line = function->line};
    }
    *row = number;
    return true;
}

static bool make_rows(struct marey__function_rows *files, const struct marey__call_sums *sums,
                      uint32_t *rows)
{
    struct marey__names keys MAREY__FINALLY(marey__names_fini) = {0};
    bool done = true;
    for (uint32_t i = 0; done && i < sums->n_entities; i++)
        if (sums->entities[i].calls != 0 || sums->entities[i].self_ns != 0) {
            done = find_row(files, &keys, sums, i, &rows[i]);
            if (done)
                add_sum(&files->rows[rows[i]].sum, &sums->entities[i]);
        }
    return done;
}

MAREY__ORDER(by_callee, struct marey__call_edge, MAREY__UP(callee) MAREY__UP(caller))

MAREY__ORDER(by_caller, struct marey__call_edge, MAREY__UP(caller) MAREY__UP(callee))

/* Sort edges, and merge those between the same rows. */
static void make_edges(struct marey__function_rows *files, struct marey__call_sums *sums,
                       const uint32_t *rows, enum marey__call_rows_order order)
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
              order == MAREY__ROWS_BY_CALLEE ? by_callee : by_caller);
    files->edges = sums->edges;
    for (size_t i = 0; i < n; i++) {
        struct marey__call_edge *const last =
            files->n_edges != 0 ? &files->edges[files->n_edges - 1] : NULL;
        if (last != NULL && by_callee(last, &files->edges[i]) == 0)
            add_sum(&last->sum, &files->edges[i].sum);
        else
            files->edges[files->n_edges++] = files->edges[i];
    }
    sums->edges = NULL; /* now owned by `files` */
}

marey_status marey__function_rows_init(struct marey__function_rows *files,
                                       marey_recording *const *recordings, size_t n,
                                       const struct marey_export_options *options,
                                       enum marey__call_rows_order order)
{
    struct marey__call_sums sums MAREY__FINALLY(marey__call_sums_fini) = {0};
    *files = (struct marey__function_rows){0};
    MAREY_TRY(marey__calls_wanted(&files->calls, recordings, n, options, true));
    uint32_t *rows = NULL;
    bool done = marey__call_sums_make(&sums, &files->calls, true);
    if (done) {
        rows = marey__calloc(sums.n_entities, sizeof *rows);
        files->rows = marey__calloc(sums.n_entities, sizeof *files->rows);
        done = rows != NULL && files->rows != NULL && make_rows(files, &sums, rows);
    }
    if (done)
        make_edges(files, &sums, rows, order);
    marey__free(rows);
    if (!done)
        marey__function_rows_fini(files);
    return done ? MAREY_OK : marey__no_memory();
}

void marey__function_rows_fini(struct marey__function_rows *files)
{
    MAREY__FREE_ALL(files->rows, files->edges);
    marey__arena_fini(&files->texts);
    marey__calls_fini(&files->calls);
    *files = (struct marey__function_rows){0};
}
