/* Stacks for the exports of sums: labels of threads and ranks, both sides, and an order. */
#include "present/export/stacks/internal.h"

/* ---- the outermost frame ---- */

/*
 * Pids and tids differ between runs, but paths of two runs must match: a process is labelled by its rank, or by its
 * program.
 */
static void put_rank(struct marey__buf *buf, const struct marey_process *process,
                     const struct marey_lane_info *lane)
{
    (void)lane;
    struct marey__buf program MAREY__FINALLY(marey__buf_fini) = {0};
    marey__export_program(&program, process->command);
    if (process->rank >= 0)
        marey__buf_printf(buf, "rank %d", process->rank);
    else if (program.len != 0)
        marey__collapsed_text(buf, program.data, program.len);
    else
        marey__buf_puts(buf, "(no rank)");
    if (process->worker >= 0)
        marey__buf_printf(buf, " worker %d", process->worker);
}

static void put_thread(struct marey__buf *buf, const struct marey_process *process,
                       const struct marey_lane_info *lane)
{
    const char *name = lane->name[0] != '\0' ? lane->name : "thread";
    put_rank(buf, process, lane);
    marey__buf_puts(buf, ", ");
    marey__collapsed_text(buf, name, strlen(name));
}

static marey_status take_by(struct marey__stacks_options *options, const char *by)
{
    if (by == NULL)
        return MAREY_OK;
    const bool is_thread = strcmp(by, "thread") == 0;
    if (!is_thread && strcmp(by, "rank") != 0)
        return marey__fail(MAREY_EINVAL, "no outermost frame by '%s'; it may be thread or rank", by);
    options->label = is_thread ? put_thread : put_rank;
    options->numbers_labels = is_thread;
    return MAREY_OK;
}

/* ---- reading ---- */

static uint64_t count_words(marey_recording *const *recordings, size_t n)
{
    uint64_t n_words = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            n_words += marey_recording_process(recordings[r], i)->n_words;
    return n_words;
}

static marey_status read_all(struct marey__stack_export *e, const struct marey_export_options *wants,
                             marey_recording *const *recordings, size_t n)
{
    MAREY_TRY(marey__stacks_init(&e->stacks, &e->options));
    MAREY_TRY(marey__stacks_add(&e->stacks, MAREY__NEW, recordings, n));
    MAREY_TRY(marey__stacks_add(&e->stacks, MAREY__OLD, wants->baseline, wants->n_baseline));
    return marey__stacks_finish(&e->stacks);
}

int marey__stack_by_name(const struct marey__node *a, const struct marey__node *b, const void *ctx)
{
    const struct marey__stack_export *e = ctx;
    return marey__names_compare(&e->stacks.names, a->name, b->name);
}

static marey_status put_in_order(struct marey__stack_export *e, marey__sibling_order *compare)
{
    const struct marey__stacks *stacks = &e->stacks;
    uint8_t *keep MAREY__FREED = marey__calloc(stacks->tree.n, sizeof *keep);
    e->order = marey__calloc(stacks->tree.n, sizeof *e->order);
    MAREY__TRY_MEMORY(keep != NULL && e->order != NULL);
    for (size_t i = 1; i < stacks->tree.n; i++)
        keep[i] = stacks->times[MAREY__NEW][i].total_ns != 0 ||
                  stacks->times[MAREY__OLD][i].total_ns != 0;
    const size_t n = marey__tree_order(&stacks->tree, keep, compare, e, e->order);
    MAREY__TRY_MEMORY(n != MAREY__NO_ORDER);
    e->n = n;
    return MAREY_OK;
}

marey_status marey__stack_export_init(struct marey__stack_export *e, struct marey__export *x,
                                      marey_recording *const *recordings, size_t n,
                                      marey__clean_name *clean, marey__sibling_order *compare)
{
    const struct marey_export_options *wants = x->options;
    *e = (struct marey__stack_export){
        .options = {.filter = wants->filter,
                    .clean = clean,
                    .progress = wants->progress,
                    .progress_ctx = wants->progress_ctx,
                    .n_words = count_words(recordings, n) +
                               count_words(wants->baseline, wants->n_baseline)},
        .has_baseline = wants->n_baseline != 0,
    };
    MAREY_TRY(take_by(&e->options, wants->by));
    MAREY_TRY(read_all(e, wants, recordings, n));
    if (wants->n_too_deep != NULL)
        *wants->n_too_deep += e->stacks.n_too_deep;
    return put_in_order(e, compare);
}

void marey__stack_export_fini(struct marey__stack_export *e)
{
    marey__stacks_fini(&e->stacks);
    marey__free(e->order);
    e->order = NULL;
}
