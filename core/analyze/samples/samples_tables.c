/* Tables of samples by function, line, file, module, stack, thread, process, rank, wait and holder of the GIL. */
#include <string.h>

#include "analyze/samples/internal.h"
#include "sampler/unwind/internal.h"

/* The wait; null for none. */
static void put_wait(marey_table *table, uint32_t wait)
{
    char text[64];
    if (wait != 0)
        marey__put_string(table, marey__wait_text(wait, text, sizeof text));
    else
        marey_table_null(table);
}

/* samples self_ns [total_ns] share [total_share] error cpu gil waits */
static void put_row(marey_table *table, const struct marey__samples_sums *sums,
                    const struct marey__samples_row *row, bool has_total)
{
    const struct marey__samples_sum *const own = &row->own;
    MAREY__PUT_ROW(table, U64(own->n), U64(own->ns));
    if (has_total)
        marey_table_u64(table, row->total_ns);
    marey__put_share(table, own->ns, sums->whole.ns);
    if (has_total)
        marey__put_share(table, row->total_ns, sums->whole.ns);
    MAREY__PUT_ROW(table, F64(marey__samples_error(sums, own->ns)),
                   RATIO(own->cpu_ns, own->known_ns), RATIO(own->gil_ns, own->ns));
    put_wait(table, row->wait);
}

void marey__samples_put_place(marey_table *table, const marey_samples *samples, uint32_t location)
{
    const struct marey_samples_location l = marey_samples_get_location(samples, location);
    const struct marey_samples_function *const f = marey_samples_get_function(samples, l.function);
    if (location == 0) {
        MAREY__PUT_ROW(table, NO_CELL, NO_CELL, NO_CELL);
        return;
    }
    MAREY__PUT_ROW(table, STRING(f->name), STRING(f->file[0] != '\0' ? f->file : f->module),
                   KNOWN(l.line != 0, U64(l.line)));
}

/* ---- entities of frames ---- */

/* Entities of a table: one per location, numbered from 1 in order of first occurrence. */
struct making {
    struct marey__samples_report *report;
    marey_table *table;
    uint32_t *of_location;
    struct marey__names names;
    struct marey__arena texts;
};

static bool making_init(struct making *m, struct marey__samples_report *report,
                        enum marey__samples_table table)
{
    const uint32_t n = marey_samples_n_locations(report->set.samples);
    *m = (struct making){.report = report, .table = report->tables[table]};
    m->of_location = marey__calloc((size_t)n + 1, sizeof *m->of_location);
    return m->of_location != NULL;
}

/* Map strings to entities; strings of functions, which are fewer. */
static bool name_entities(struct making *m,
                          void (*name)(struct marey__buf *, const struct marey_samples_function *))
{
    const marey_samples *const s = m->report->set.samples;
    const uint32_t n = marey_samples_n_functions(s);
    uint32_t *const of_function MAREY__FREED = marey__calloc((size_t)n + 1, sizeof *of_function);
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    if (of_function == NULL)
        return false;
    for (uint32_t i = 1; i <= n; i++) {
        text.len = 0;
        name(&text, marey_samples_get_function(s, i));
        const uint32_t number = marey__names_keep(&m->names, &m->texts, text.data, text.len);
        if (text.failed || number == MAREY__NO_NAME)
            return false;
        of_function[i] = number + 1;
    }
    for (uint32_t i = 1; i <= marey_samples_n_locations(s); i++)
        m->of_location[i] = of_function[marey_samples_get_location(s, i).function];
    return true;
}

static void name_file(struct marey__buf *text, const struct marey_samples_function *f)
{
    marey__buf_puts(text, f->file[0] != '\0' ? f->file : f->module);
}

static bool is_wanted(const struct marey__samples_report *report, const char *name)
{
    return marey__name_matches(report->options.names, name, strlen(name));
}

/* Append the cells of entity `i`; returns false, with nothing appended, if its name is filtered out. */
typedef bool put_entity(const struct making *m, uint32_t i);

/* A row for each of `n` entities with samples, and one for samples without frames. Frees the entities. */
static bool put_rows(struct making *m, bool done, uint32_t n, put_entity *put)
{
    const struct marey__samples_entities entities = {m->of_location, n};
    struct marey__samples_row *const rows = done ? marey__samples_rows(m->report, &entities) : NULL;
    for (uint32_t i = 0; rows != NULL && i <= n; i++)
        if ((rows[i].own.n != 0 || rows[i].total_ns != 0) && put(m, i))
            put_row(m->table, &m->report->sums, &rows[i], true);
    MAREY__FREE_ALL(rows, m->of_location);
    marey__names_fini(&m->names);
    marey__arena_fini(&m->texts);
    return rows != NULL;
}

static const char no_frames[] = MAREY__NO_FRAMES;

/* ---- functions and lines ---- */

static const char *kind_name(enum marey_frame_kind kind)
{
    static const char *const names[] = {"python", "native", "kernel", "mark"};
    return names[kind];
}

static void put_module(marey_table *table, const struct marey_samples_function *f)
{
    struct marey__buf module MAREY__FINALLY(marey__buf_fini) = {0};
    marey__samples_module(&module, f);
    marey_table_text(table, module.len != 0 ? module.data : "", module.len);
}

/* Returns false for a function that is filtered out. */
static bool put_function(const struct making *m, uint32_t i, uint32_t function, uint32_t line)
{
    const struct marey_samples_function *const f =
        marey_samples_get_function(m->report->set.samples, function);
    const char *const name = i == 0 ? no_frames : f->name;
    if (!is_wanted(m->report, name))
        return false;
    MAREY__PUT_ROW(m->table, STRING(name), STRING(f->file[0] != '\0' ? f->file : f->module),
                   KNOWN(line != 0, U64(line)));
    put_module(m->table, f);
    return true;
}

/* Functions, then locations: each line of top-level code has its own row, because <module> always begins at line 1. */
static bool put_one_function(const struct making *m, uint32_t i)
{
    const marey_samples *const s = m->report->set.samples;
    const uint32_t n = marey_samples_n_functions(s);
    const struct marey_samples_location l = marey_samples_get_location(s, i > n ? i - n : 0);
    const uint32_t function = i > n ? l.function : i;
    const struct marey_samples_function *const f = marey_samples_get_function(s, function);
    if (!put_function(m, i, function, i > n ? l.line : f->first_line))
        return false;
    marey__put_string(m->table, kind_name(f->kind));
    return true;
}

static bool put_functions(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    const uint32_t n_functions = marey_samples_n_functions(s), n = marey_samples_n_locations(s);
    struct making m;
    const bool done = making_init(&m, report, MAREY__SAMPLES_FUNCTIONS);
    for (uint32_t i = 1; done && i <= n; i++) {
        const uint32_t function = marey_samples_get_location(s, i).function;
        m.of_location[i] = marey__is_top_level(marey_samples_get_function(s, function))
                               ? n_functions + i
                               : function;
    }
    return put_rows(&m, done, n_functions + n, put_one_function);
}

static bool put_one_line(const struct making *m, uint32_t i)
{
    const struct marey_samples_location l = marey_samples_get_location(m->report->set.samples, i);
    return put_function(m, i, l.function, l.line);
}

static bool put_lines(struct marey__samples_report *report)
{
    const uint32_t n = marey_samples_n_locations(report->set.samples);
    struct making m;
    const bool done = making_init(&m, report, MAREY__SAMPLES_LINES);
    for (uint32_t i = 1; done && i <= n; i++)
        m.of_location[i] = i;
    return put_rows(&m, done, n, put_one_line);
}

/* ---- files and modules ---- */

static bool put_one_name(const struct making *m, uint32_t i)
{
    const char *const text = i == 0                           ? no_frames
                             : m->names.names[i - 1].len == 0 ? "(unknown)"
                                                              : m->names.names[i - 1].text;
    if (!is_wanted(m->report, text))
        return false;
    marey__put_string(m->table, text);
    return true;
}

static bool put_named(struct marey__samples_report *report, enum marey__samples_table which,
                      void (*name)(struct marey__buf *, const struct marey_samples_function *))
{
    struct making m;
    const bool done = making_init(&m, report, which) && name_entities(&m, name);
    return put_rows(&m, done, (uint32_t)m.names.n, put_one_name);
}

bool marey__samples_put_frames(struct marey__samples_report *report)
{
    return put_functions(report) && put_lines(report) &&
           put_named(report, MAREY__SAMPLES_FILES, name_file) &&
           put_named(report, MAREY__SAMPLES_MODULES, marey__samples_module);
}

/* ---- stacks ---- */

/* Frames from the outermost, "train (loop.py:12)"; of a very deep stack, only its two ends. */
static void put_frames(struct marey__buf *text, const marey_samples *s, uint32_t stack)
{
    enum { MOST = 512 };
    uint32_t frames[MOST];
    uint32_t n = 0;
    const uint32_t depth = marey_samples_get_stack(s, stack).depth;
    for (; stack != 0 && n < MOST; stack = marey_samples_get_stack(s, stack).parent)
        frames[n++] = marey_samples_get_stack(s, stack).location;
    if (depth > n)
        marey__buf_printf(text, "(%u more);", depth - n);
    for (; n > 0; n--) {
        const struct marey_samples_location l = marey_samples_get_location(s, frames[n - 1]);
        const struct marey_samples_function *const f = marey_samples_get_function(s, l.function);
        const char *const file = f->file[0] != '\0' ? f->file : f->module;
        marey__buf_puts(text, f->name);
        if (file[0] != '\0')
            marey__buf_printf(text, " (%s", marey__base_name(file));
        if (file[0] != '\0' && l.line != 0)
            marey__buf_printf(text, ":%u", l.line);
        marey__buf_puts(text, file[0] != '\0' ? ")" : "");
        marey__buf_puts(text, n > 1 ? ";" : "");
    }
}

/* ---- rows of cells: stacks, threads, processes, ranks ---- */

/* Append the cells of row `i`; returns false, with nothing appended, if its name is filtered out. */
typedef bool put_owner(const struct marey__samples_report *report, marey_table *table, void *ctx,
                       uint32_t i);

static bool put_cells(struct marey__samples_report *report, enum marey__samples_table which,
                      marey__samples_entity *entity, void *ctx, uint32_t n, put_owner *put)
{
    struct marey__samples_row *const rows = marey__samples_rows_of_cells(report, entity, ctx, n);
    for (uint32_t i = 0; rows != NULL && i <= n; i++)
        if (rows[i].own.n != 0 && put(report, report->tables[which], ctx, i))
            put_row(report->tables[which], &report->sums, &rows[i], false);
    marey__free(rows);
    return rows != NULL;
}

static uint32_t stack_of_cell(const void *ctx, const struct marey__samples_report *report,
                              const struct marey__samples_cell *cell)
{
    (void)ctx, (void)report;
    return cell->stack;
}

/* `ctx` is a buffer, which records running out of memory. */
static bool put_stack(const struct marey__samples_report *report, marey_table *table, void *ctx,
                      uint32_t i)
{
    struct marey__buf *const text = ctx;
    text->len = 0;
    if (i == 0)
        marey__buf_puts(text, no_frames);
    put_frames(text, report->set.samples, i);
    marey__buf_put(text, "", 1);
    if (text->failed || !is_wanted(report, text->data))
        return false;
    marey_table_text(table, text->data, text->len - 1);
    return true;
}

static uint32_t thread_of_cell(const void *ctx, const struct marey__samples_report *report,
                               const struct marey__samples_cell *cell)
{
    (void)ctx, (void)report;
    return cell->thread;
}

static bool put_thread(const struct marey__samples_report *report, marey_table *table, void *ctx,
                       uint32_t i)
{
    const marey_samples *const s = report->set.samples;
    const struct marey_samples_thread *const t = marey_samples_get_thread(s, i);
    const struct marey_samples_process *const p = marey_samples_get_process(s, t->process);
    (void)ctx;
    MAREY__PUT_ROW(table, RANK_OF(p->rank), I64(p->pid), RANK_OF(t->tid != 0 ? t->tid : -1),
                   STRING(t->name), TRUTH(t->is_main));
    return true;
}

static uint32_t process_of_cell(const void *ctx, const struct marey__samples_report *report,
                                const struct marey__samples_cell *cell)
{
    (void)ctx;
    return marey_samples_get_thread(report->set.samples, cell->thread)->process;
}

static bool put_process(const struct marey__samples_report *report, marey_table *table, void *ctx,
                        uint32_t i)
{
    const struct marey_samples_process *const p = marey_samples_get_process(report->set.samples, i);
    (void)ctx;
    MAREY__PUT_ROW(table, RANK_OF(p->rank), RANK_OF(p->worker), I64(p->pid), STRING(p->command));
    return true;
}

/* By process: the first process of its rank, and one for all without a rank. */
static uint32_t rank_of_cell(const void *ctx, const struct marey__samples_report *report,
                             const struct marey__samples_cell *cell)
{
    const uint32_t *const first = ctx;
    return first[process_of_cell(NULL, report, cell)];
}

static bool put_rank(const struct marey__samples_report *report, marey_table *table, void *ctx,
                     uint32_t i)
{
    const uint32_t *const first = ctx;
    uint64_t n_processes = 0;
    for (uint32_t k = 1; k <= marey_samples_n_processes(report->set.samples); k++)
        n_processes += first[k] == i;
    MAREY__PUT_ROW(table, RANK_OF(marey_samples_get_process(report->set.samples, i)->rank),
                   U64(n_processes));
    return true;
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

bool marey__samples_put_owners(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    const uint32_t n = marey_samples_n_processes(s);
    uint32_t *const first MAREY__FREED = first_of_ranks(s);
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    return first != NULL &&
           put_cells(report, MAREY__SAMPLES_STACKS, stack_of_cell, &text, marey_samples_n_stacks(s),
                     put_stack) &&
           !text.failed &&
           put_cells(report, MAREY__SAMPLES_THREADS, thread_of_cell, NULL,
                     marey_samples_n_threads(s), put_thread) &&
           put_cells(report, MAREY__SAMPLES_PROCESSES, process_of_cell, NULL, n, put_process) &&
           put_cells(report, MAREY__SAMPLES_RANKS, rank_of_cell, first, n, put_rank);
}

/* ---- groups of cells by a few numbers ---- */

MAREY__ORDER(by_key, struct marey__samples_group,
             MAREY__UP(key[0]) MAREY__UP(key[1]) MAREY__UP(key[2]))

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

/* ---- waits ---- */

static void put_wait_row(marey_table *table, const struct marey__samples_report *report,
                         const struct marey__samples_group *group, uint64_t whole_ns)
{
    const marey_samples *const s = report->set.samples;
    put_wait(table, group->key[0]);
    marey__samples_put_place(table, s, group->key[1]);
    MAREY__PUT_ROW(table, STRING(marey_samples_get_thread(s, group->key[2])->name),
                   U64(group->sum.n), U64(group->sum.ns), RATIO(group->sum.ns, whole_ns));
}

/* Of all threads, in any mode: a waiting thread does not run. */
bool marey__samples_put_waits(struct marey__samples_report *report)
{
    const struct marey__samples_sums *const sums = &report->sums;
    marey_table *const table = report->tables[MAREY__SAMPLES_WAITS];
    struct marey__samples_group *const groups MAREY__FREED =
        marey__calloc(sums->n_cells + 1, sizeof *groups);
    uint64_t whole_ns = 0;
    size_t n = 0;
    if (groups == NULL)
        return false;
    for (size_t i = 0; i < sums->n_cells; i++) {
        const struct marey__samples_cell *const cell = &sums->cells[i];
        whole_ns += cell->sum.ns;
        const struct marey__samples_group group = {
            .key = {cell->wait, marey__samples_leaf(report, cell->stack), cell->thread},
            .sum = cell->sum};
        /* A cell contains both kinds of samples if its wait is unknown. */
        if (cell->wait != 0)
            groups[n++] = group;
    }
    n = marey__samples_groups_add(groups, n);
    for (size_t i = 0; i < n; i++)
        put_wait_row(table, report, &groups[i], whole_ns);
    return true;
}

/* ---- GIL ---- */

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
    MAREY__PUT_ROW(
        table, RANK_OF(p->rank), I64(p->pid), STRING(t->name), U64(of->held_ns),
        RATIO(of->held_ns, of_process->ns), U64(of->wants_ns), RATIO(of->wants_ns, of_process->ns),
        KNOWN(switches != 0 && target->last_ns > target->first_ns,
              FINITE((double)switches * 1e9 / (double)(target->last_ns - target->first_ns))));
}

/* Shares are of the sampled time of the thread's process: the longest time that a thread of it was seen. */
bool marey__samples_put_gil(struct marey__samples_report *report)
{
    const struct marey__samples_sums *const sums = &report->sums;
    const marey_samples *const s = report->set.samples;
    const uint32_t n = marey_samples_n_threads(s);
    struct holding *const by_thread MAREY__FREED = marey__calloc((size_t)n + 1, sizeof *by_thread);
    struct holding *const by_process MAREY__FREED =
        marey__calloc((size_t)marey_samples_n_processes(s) + 1, sizeof *by_process);
    if (by_thread == NULL || by_process == NULL)
        return false;
    for (size_t i = 0; i < sums->n_cells; i++) {
        struct holding *const of = &by_thread[sums->cells[i].thread];
        of->held_ns += sums->cells[i].sum.gil_ns;
        of->wants_ns += sums->cells[i].wants_ns;
        of->ns += sums->cells[i].sum.ns;
    }
    for (uint32_t i = 1; i <= n; i++) {
        struct holding *const of = &by_process[marey_samples_get_thread(s, i)->process];
        of->ns = MAREY__MAX(of->ns, by_thread[i].ns);
    }
    for (uint32_t i = 1; i <= n; i++)
        if (by_thread[i].held_ns != 0 || by_thread[i].wants_ns != 0)
            put_holding(report, i, &by_thread[i],
                        &by_process[marey_samples_get_thread(s, i)->process]);
    return true;
}
