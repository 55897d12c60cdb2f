/* Stacks for the exports that add up: labels of threads and ranks, both sides, and an order. */
#include "present/stack_export.h"

/* ---- the outermost frame ---- */

/*
 * Pids and tids differ from run to run, and the paths of two runs must meet: a process goes by its rank, or by what it
 * runs.
 */
static void put_rank(struct kymo__buf *buf, const struct kymo_process *process,
                     const struct kymo_lane_info *lane)
{
    (void)lane;
    struct kymo__buf program = {0};
    kymo__export_program(&program, process->command);
    if (process->rank >= 0)
        kymo__buf_printf(buf, "rank %d", process->rank);
    else if (program.len != 0)
        kymo__collapsed_text(buf, program.data, program.len);
    else
        kymo__buf_puts(buf, "(no rank)");
    if (process->worker >= 0)
        kymo__buf_printf(buf, " worker %d", process->worker);
    kymo__buf_fini(&program);
}

static void put_thread(struct kymo__buf *buf, const struct kymo_process *process,
                       const struct kymo_lane_info *lane)
{
    const char *name = lane->name[0] != '\0' ? lane->name : "thread";
    put_rank(buf, process, lane);
    kymo__buf_puts(buf, ", ");
    kymo__collapsed_text(buf, name, strlen(name));
}

static kymo_status take_by(struct kymo__stacks_options *options, const char *by)
{
    if (by == NULL)
        return KYMO_OK;
    const bool is_thread = strcmp(by, "thread") == 0;
    if (!is_thread && strcmp(by, "rank") != 0)
        return kymo__fail(KYMO_EINVAL, "no outermost frame by '%s'; it may be thread or rank", by);
    options->label = is_thread ? put_thread : put_rank;
    options->numbers_labels = is_thread;
    return KYMO_OK;
}

/* ---- reading ---- */

static uint64_t count_words(kymo_recording *const *recordings, size_t n)
{
    uint64_t n_words = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < kymo_recording_n_processes(recordings[r]); i++)
            n_words += kymo_recording_process(recordings[r], i)->n_words;
    return n_words;
}

static kymo_status read_all(struct kymo__stack_export *e, const struct kymo_export_options *wants,
                            kymo_recording *const *recordings, size_t n)
{
    KYMO_TRY(kymo__stacks_init(&e->stacks, &e->options));
    KYMO_TRY(kymo__stacks_add(&e->stacks, KYMO__NEW, recordings, n));
    KYMO_TRY(kymo__stacks_add(&e->stacks, KYMO__OLD, wants->baseline, wants->n_baseline));
    return kymo__stacks_finish(&e->stacks);
}

int kymo__stack_by_name(const struct kymo__node *a, const struct kymo__node *b, const void *ctx)
{
    const struct kymo__stack_export *e = ctx;
    const struct kymo__name *x = &e->stacks.names.names[a->name],
                            *y = &e->stacks.names.names[b->name];
    const int order = memcmp(x->text, y->text, KYMO__MIN(x->len, y->len));
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static kymo_status put_in_order(struct kymo__stack_export *e, kymo__sibling_order *compare)
{
    const struct kymo__stacks *stacks = &e->stacks;
    uint8_t *keep = kymo__calloc(stacks->tree.n, sizeof *keep);
    e->order = kymo__calloc(stacks->tree.n, sizeof *e->order);
    size_t n = KYMO__NO_ORDER;
    if (keep != NULL && e->order != NULL) {
        for (size_t i = 1; i < stacks->tree.n; i++)
            keep[i] = stacks->times[KYMO__NEW][i].total_ns != 0 ||
                      stacks->times[KYMO__OLD][i].total_ns != 0;
        n = kymo__tree_order(&stacks->tree, keep, compare, e, e->order);
    }
    kymo__free(keep);
    if (n == KYMO__NO_ORDER)
        return kymo__fail(KYMO_ENOMEM, "no memory for the stacks");
    e->n = n;
    return KYMO_OK;
}

kymo_status kymo__stack_export_init(struct kymo__stack_export *e, struct kymo__export *x,
                                    kymo_recording *const *recordings, size_t n,
                                    kymo__clean_name *clean, kymo__sibling_order *compare)
{
    const struct kymo_export_options *wants = x->options;
    *e = (struct kymo__stack_export){
        .options = {.filter = wants->filter,
                    .clean = clean,
                    .progress = wants->progress,
                    .progress_ctx = wants->progress_ctx,
                    .n_words = count_words(recordings, n) +
                               count_words(wants->baseline, wants->n_baseline)},
        .has_baseline = wants->n_baseline != 0,
    };
    KYMO_TRY(take_by(&e->options, wants->by));
    KYMO_TRY(read_all(e, wants, recordings, n));
    if (wants->n_too_deep != NULL)
        *wants->n_too_deep += e->stacks.n_too_deep;
    return put_in_order(e, compare);
}

void kymo__stack_export_fini(struct kymo__stack_export *e)
{
    kymo__stacks_fini(&e->stacks);
    kymo__free(e->order);
    e->order = NULL;
}
