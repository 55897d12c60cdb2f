/* Tables of samples by who they are of, by what is waited for, by who holds the interpreter lock. */
#include <string.h>

#include "analyze/samples/internal.h"

/* ---- threads, processes, ranks ---- */

static uint32_t thread_of_cell(const void *ctx, const struct marey__samples_report *report,
                               const struct marey__samples_cell *cell)
{
    (void)ctx, (void)report;
    return cell->thread;
}

static uint32_t process_of_cell(const void *ctx, const struct marey__samples_report *report,
                                const struct marey__samples_cell *cell)
{
    (void)ctx;
    return marey_samples_get_thread(report->set.samples, cell->thread)->process;
}

/* By process: the first one of its rank; of those without a rank one together. */
static uint32_t rank_of_cell(const void *ctx, const struct marey__samples_report *report,
                             const struct marey__samples_cell *cell)
{
    const uint32_t *const first = ctx;
    return first[process_of_cell(NULL, report, cell)];
}

static void put_number(marey_table *table, int64_t number, bool is_known)
{
    if (is_known)
        marey_table_i64(table, number);
    else
        marey_table_null(table);
}

static bool put_threads(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_THREADS];
    const uint32_t n = marey_samples_n_threads(s);
    struct marey__samples_row *const rows =
        marey__samples_rows_of_cells(report, thread_of_cell, NULL, n);
    for (uint32_t i = 1; rows != NULL && i <= n; i++) {
        const struct marey_samples_thread *const t = marey_samples_get_thread(s, i);
        const struct marey_samples_process *const p = marey_samples_get_process(s, t->process);
        if (rows[i].own.n == 0)
            continue;
        put_number(table, p->rank, p->rank >= 0);
        marey_table_i64(table, p->pid);
        put_number(table, t->tid, t->tid != 0);
        marey__put_string(table, t->name);
        marey_table_bool(table, t->is_main);
        marey__samples_put_row(table, &report->sums, &rows[i], false);
    }
    marey__free(rows);
    return rows != NULL;
}

static bool put_processes(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_PROCESSES];
    const uint32_t n = marey_samples_n_processes(s);
    struct marey__samples_row *const rows =
        marey__samples_rows_of_cells(report, process_of_cell, NULL, n);
    for (uint32_t i = 1; rows != NULL && i <= n; i++) {
        const struct marey_samples_process *const p = marey_samples_get_process(s, i);
        if (rows[i].own.n == 0)
            continue;
        put_number(table, p->rank, p->rank >= 0);
        put_number(table, p->worker, p->worker >= 0);
        marey_table_i64(table, p->pid);
        marey__put_string(table, p->command);
        marey__samples_put_row(table, &report->sums, &rows[i], false);
    }
    marey__free(rows);
    return rows != NULL;
}

static uint32_t *first_of_ranks(const marey_samples *s)
{
    const uint32_t n = marey_samples_n_processes(s);
    uint32_t *const first = marey__calloc((size_t)n + 1, sizeof *first);
    for (uint32_t i = 1; first != NULL && i <= n; i++) {
        uint32_t k = 1;
        while (marey_samples_get_process(s, k)->rank != marey_samples_get_process(s, i)->rank)
            k++;
        first[i] = k;
    }
    return first;
}

static bool put_ranks(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_RANKS];
    const uint32_t n = marey_samples_n_processes(s);
    uint32_t *const first = first_of_ranks(s);
    struct marey__samples_row *const rows =
        first != NULL ? marey__samples_rows_of_cells(report, rank_of_cell, first, n) : NULL;
    for (uint32_t i = 1; rows != NULL && i <= n; i++) {
        uint64_t n_processes = 0;
        if (rows[i].own.n == 0)
            continue;
        for (uint32_t k = 1; k <= n; k++)
            n_processes += first[k] == i;
        const int32_t rank = marey_samples_get_process(s, i)->rank;
        put_number(table, rank, rank >= 0);
        marey_table_u64(table, n_processes);
        marey__samples_put_row(table, &report->sums, &rows[i], false);
    }
    const bool done = rows != NULL;
    marey__free(rows);
    marey__free(first);
    return done;
}

bool marey__samples_put_owners(struct marey__samples_report *report)
{
    return put_threads(report) && put_processes(report) && put_ranks(report);
}

/* ---- groups of cells by a few numbers ---- */

static int by_key(const void *a, const void *b)
{
    const struct marey__samples_group *x = a, *y = b;
    for (size_t i = 0; i < 3; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

size_t marey__samples_groups_add(struct marey__samples_group *groups, size_t n)
{
    size_t last = 0;
    if (n == 0)
        return 0;
    qsort(groups, n, sizeof *groups, by_key);
    for (size_t i = 1; i < n; i++)
        if (by_key(&groups[last], &groups[i]) == 0)
            marey__samples_sum_add(&groups[last].sum, &groups[i].sum);
        else
            groups[++last] = groups[i];
    return last + 1;
}

static uint32_t leaf_of(const struct marey__samples_report *report, uint32_t stack)
{
    return marey_samples_get_stack(report->set.samples, stack).location;
}

/* ---- what is waited for ---- */

static void put_wait_row(marey_table *table, const struct marey__samples_report *report,
                         const struct marey__samples_group *group, uint64_t whole_ns)
{
    const marey_samples *const s = report->set.samples;
    marey__samples_put_wait(table, group->key[0]);
    marey__samples_put_place(table, s, group->key[1]);
    marey__put_string(table, marey_samples_get_thread(s, group->key[2])->name);
    marey_table_u64(table, group->sum.n);
    marey_table_u64(table, group->sum.ns);
    marey__put_share(table, group->sum.ns, whole_ns);
}

/* Of all threads, whatever mode is asked for: who waits does not run. */
bool marey__samples_put_waits(struct marey__samples_report *report)
{
    const struct marey__samples_sums *const sums = &report->sums;
    marey_table *const table = report->tables[MAREY__SAMPLES_WAITS];
    struct marey__samples_group *const groups = marey__calloc(sums->n_cells + 1, sizeof *groups);
    uint64_t whole_ns = 0;
    size_t n = 0;
    for (size_t i = 0; groups != NULL && i < sums->n_cells; i++) {
        const struct marey__samples_cell *const cell = &sums->cells[i];
        whole_ns += cell->sum.ns;
        const struct marey__samples_group group = {
            .key = {cell->wait, leaf_of(report, cell->stack), cell->thread}, .sum = cell->sum};
        /* A cell has both kinds of samples where nothing is known of what is waited for. */
        if (cell->wait != 0)
            groups[n++] = group;
    }
    n = groups != NULL ? marey__samples_groups_add(groups, n) : 0;
    for (size_t i = 0; i < n; i++)
        put_wait_row(table, report, &groups[i], whole_ns);
    marey__free(groups);
    return groups != NULL;
}

/* ---- the interpreter lock ---- */

struct holding {
    uint64_t held_ns, wants_ns, ns;
};

static void put_holding(struct marey__samples_report *report, uint32_t thread,
                        const struct holding *of, const struct holding *of_process)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_GIL];
    const struct marey_samples_thread *const t = marey_samples_get_thread(s, thread);
    const struct marey_samples_process *const p = marey_samples_get_process(s, t->process);
    const struct marey__samples_target *const target = &report->set.targets[t->process];
    const uint64_t switches = marey_samples_get_counts(s, t->process).gil_switches;
    put_number(table, p->rank, p->rank >= 0);
    marey_table_i64(table, p->pid);
    marey__put_string(table, t->name);
    marey_table_u64(table, of->held_ns);
    marey__put_share(table, of->held_ns, of_process->ns);
    marey_table_u64(table, of->wants_ns);
    marey__put_share(table, of->wants_ns, of_process->ns);
    if (switches != 0 && target->last_ns > target->first_ns)
        marey_table_f64(table, (double)switches * 1e9 / (double)(target->last_ns - target->first_ns));
    else
        marey_table_null(table);
}

/* Shares are of the time that the thread's process was sampled; that is the longest that a thread of it was seen. */
bool marey__samples_put_gil(struct marey__samples_report *report)
{
    const struct marey__samples_sums *const sums = &report->sums;
    const marey_samples *const s = report->set.samples;
    const uint32_t n = marey_samples_n_threads(s);
    struct holding *const by_thread = marey__calloc((size_t)n + 1, sizeof *by_thread),
                          *const by_process = marey__calloc((size_t)marey_samples_n_processes(s) + 1,
                                                            sizeof *by_process);
    const bool done = by_thread != NULL && by_process != NULL;
    for (size_t i = 0; done && i < sums->n_cells; i++) {
        struct holding *const of = &by_thread[sums->cells[i].thread];
        of->held_ns += sums->cells[i].sum.gil_ns;
        of->wants_ns += sums->cells[i].wants_ns;
        of->ns += sums->cells[i].sum.ns;
    }
    for (uint32_t i = 1; done && i <= n; i++) {
        struct holding *const of = &by_process[marey_samples_get_thread(s, i)->process];
        of->ns = MAREY__MAX(of->ns, by_thread[i].ns);
    }
    for (uint32_t i = 1; done && i <= n; i++)
        if (by_thread[i].held_ns != 0 || by_thread[i].wants_ns != 0)
            put_holding(report, i, &by_thread[i],
                        &by_process[marey_samples_get_thread(s, i)->process]);
    marey__free(by_thread);
    marey__free(by_process);
    return done;
}
