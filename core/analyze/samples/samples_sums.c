/*
 * One pass over all rounds sums up samples by thread, stack and wait. Every table is made from these sums, whose number
 * depends on different stacks, not on the length of the recording.
 *
 * Sums of frames follow from the tree of stacks: the samples of a stack and its descendants are added only at the
 * outermost frame of an entity, so that recursion counts once.
 */
#include <math.h>
#include <string.h>

#include "analyze/samples/internal.h"

void marey__samples_sum_add(struct marey__samples_sum *into, const struct marey__samples_sum *from)
{
    into->n += from->n;
    into->ns += from->ns;
    into->known_ns += from->known_ns;
    into->cpu_ns += from->cpu_ns;
    into->gil_ns += from->gil_ns;
}

/* ---- hidden frames ---- */

static bool is_shown(const struct marey__samples_report *report, uint32_t location)
{
    const marey_samples *const s = report->set.samples;
    const uint32_t function = marey_samples_get_location(s, location).function;
    const enum marey_frame_kind kind = marey_samples_get_function(s, function)->kind;
    if (!marey__samples_shows_imports(report->chosen) &&
        marey__is_importlib(marey_samples_get_function(s, function)->file))
        return false;
    return report->options.native || (kind != MAREY_FRAME_NATIVE && kind != MAREY_FRAME_KERNEL);
}

/* A thread with only native frames is shown with its innermost one. */
static bool fold_stacks(struct marey__samples_report *report)
{
    struct marey__samples_sums *const sums = &report->sums;
    marey_samples *const s = report->set.samples;
    const uint32_t n = marey_samples_n_stacks(s);
    sums->folds = marey__calloc((size_t)n + 1, sizeof *sums->folds);
    uint8_t *const has_shown MAREY__FREED = marey__calloc((size_t)n + 1, sizeof *has_shown);
    if (sums->folds == NULL || has_shown == NULL)
        return false;
    for (uint32_t i = 1; i <= n; i++) {
        const struct marey_samples_stack k = marey_samples_get_stack(s, i);
        const bool is_one = is_shown(report, k.location);
        const uint32_t around = has_shown[k.parent] ? sums->folds[k.parent] : 0;
        has_shown[i] = is_one || has_shown[k.parent];
        sums->folds[i] =
            has_shown[i] && !is_one ? around : marey__samples_stack(s, around, k.location);
        if (sums->folds[i] == 0)
            return false;
    }
    return true;
}

/* ---- cells ---- */

/* The cell of this key, created if needed; NULL on out of memory. */
static struct marey__samples_cell *cell_of(struct marey__samples_sums *sums,
                                           const struct marey__samples_cell *key)
{
    const uint32_t number =
        marey__key_map_number(&sums->by_key, &sums->cells, &sums->n_cells, &sums->cells_cap,
                              sizeof *sums->cells, key, offsetof(struct marey__samples_cell, sum));
    return number != 0 ? &sums->cells[number - 1] : NULL;
}

/* ---- the pass ---- */

static void add_audit(struct marey__samples_report *report, uint32_t process, uint32_t stack,
                      uint32_t flags)
{
    struct marey__samples_sums *const sums = &report->sums;
    const marey_samples *const s = report->set.samples;
    const uint32_t location = marey_samples_get_stack(s, stack).location,
                   function = marey_samples_get_location(s, location).function;
    uint64_t *const counts = (flags & MAREY_SAMPLE_AUDIT) != 0   ? sums->audits
                             : (flags & MAREY_SAMPLE_EXACT) == 0 ? sums->snapshots
                                                                 : NULL;
    if (counts != NULL)
        counts[report->set.targets[process].source * sums->n_functions + function]++;
}

static bool add_sample(struct marey__samples_report *report, const struct marey_samples_round *round,
                       const struct marey_samples_seen *seen, bool is_chosen)
{
    struct marey__samples_sums *const sums = &report->sums;
    const bool is_off = (seen->flags & MAREY_SAMPLE_OFF_CPU) != 0;
    const uint64_t ns = round->weight_ns, n = MAREY__MAX(round->n_same, 1);
    const struct marey__samples_sum one = {
        .n = n,
        .ns = ns,
        .known_ns = is_off || (seen->flags & MAREY_SAMPLE_ON_CPU) != 0 ? ns : 0,
        .cpu_ns = (seen->flags & MAREY_SAMPLE_ON_CPU) != 0 ? ns : 0,
        .gil_ns = (seen->flags & MAREY_SAMPLE_GIL) != 0 ? ns : 0};
    const struct marey__samples_cell key = {.thread = seen->thread,
                                            .stack = sums->folds[seen->stack],
                                            .wait = is_off ? seen->wait : 0,
                                            .is_chosen = is_chosen};
    struct marey__samples_cell *const cell = cell_of(sums, &key);
    if (cell == NULL)
        return false;
    marey__samples_sum_add(&cell->sum, &one);
    cell->squares += (double)ns * (double)ns / (double)n;
    cell->gc_ns += seen->stack == 0 && (seen->flags & MAREY_SAMPLE_GC) != 0 ? ns : 0;
    cell->wants_ns += (seen->flags & MAREY_SAMPLE_WANTS_GIL) != 0 ? ns : 0;
    if (!is_chosen)
        return true;
    marey__samples_sum_add(&sums->whole, &one);
    sums->squares += (double)ns * (double)ns / (double)n;
    add_audit(report, round->process, key.stack, seen->flags);
    return true;
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct marey__samples_report *const report = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        MAREY__TRY_MEMORY(
            add_sample(report, round, seen, marey__samples_is_of_mode(report->chosen, seen)));
    }
    return MAREY_OK;
}

/* Cells of idle processes are kept for the tables of waits and of the GIL. */
static void drop_idle(struct marey__samples_report *report)
{
    struct marey__samples_sums *const sums = &report->sums;
    struct marey__samples_sum *const whole = &sums->whole;
    for (size_t i = 0; report->set.n_idle != 0 && i < sums->n_cells; i++) {
        struct marey__samples_cell *const cell = &sums->cells[i];
        const uint32_t of = marey_samples_get_thread(report->set.samples, cell->thread)->process;
        if (!cell->is_chosen || !report->set.targets[of].is_idle)
            continue;
        cell->is_chosen = false;
        whole->n -= cell->sum.n;
        whole->ns -= cell->sum.ns;
        whole->known_ns -= cell->sum.known_ns;
        whole->cpu_ns -= cell->sum.cpu_ns;
        whole->gil_ns -= cell->sum.gil_ns;
        sums->squares -= cell->squares;
    }
}

marey_status marey__samples_sums_make(struct marey__samples_report *report)
{
    struct marey__samples_sums *const sums = &report->sums;
    MAREY__TRY_MEMORY(fold_stacks(report));
    sums->n_functions = (size_t)marey_samples_n_functions(report->set.samples) + 1;
    const size_t n = sums->n_functions * MAREY__MAX(report->set.n_sources, (size_t)1);
    sums->snapshots = marey__calloc(n, sizeof(uint64_t));
    sums->audits = marey__calloc(n, sizeof(uint64_t));
    MAREY__TRY_MEMORY(sums->snapshots != NULL && sums->audits != NULL);
    MAREY_TRY(marey__samples_visit_modes(&report->set, report->chosen, take_round, report));
    drop_idle(report);
    return MAREY_OK;
}

void marey__samples_sums_fini(struct marey__samples_sums *sums)
{
    marey__free(sums->cells);
    marey__key_map_fini(&sums->by_key);
    MAREY__FREE_ALL(sums->folds, sums->snapshots, sums->audits);
    *sums = (struct marey__samples_sums){0};
}

/* 1.96 standard deviations of a binomial share, with the effective number of samples for unequal weights. */
double marey__samples_error(const struct marey__samples_sums *sums, uint64_t ns)
{
    const double whole = (double)sums->whole.ns;
    if (whole <= 0 || sums->squares <= 0)
        return 0;
    const double p = (double)ns / whole, n = whole * whole / sums->squares;
    return 1.96 * sqrt(p * (1 - p) / n);
}

/* ---- rows ---- */

/* A wait of less than a twentieth of the time is not reported for it. */
enum { LEAST_WAIT = 20 };

/* Waits of each entity: times by (entity, wait), sorted by entity. */
struct wait_time {
    uint32_t entity, wait;
    uint64_t ns;
};

MAREY__ORDER(by_entity_and_wait, struct wait_time, MAREY__UP(entity) MAREY__UP(wait))

static void find_waits(struct marey__samples_row *rows, struct wait_time *times, size_t n)
{
    uint64_t most_ns = 0;
    qsort(times, n, sizeof *times, by_entity_and_wait);
    for (size_t i = 0; i < n;) {
        const struct wait_time first = times[i];
        uint64_t ns = 0;
        if (i == 0 || times[i - 1].entity != first.entity)
            most_ns = 0;
        for (; i < n && times[i].entity == first.entity && times[i].wait == first.wait; i++)
            ns += times[i].ns;
        if (ns > most_ns && ns >= rows[first.entity].own.ns / LEAST_WAIT) {
            most_ns = ns;
            rows[first.entity].wait = first.wait;
        }
    }
}

struct marey__samples_row *marey__samples_rows_of_cells(const struct marey__samples_report *report,
                                                        marey__samples_entity *entity,
                                                        const void *ctx, uint32_t n)
{
    const struct marey__samples_sums *const sums = &report->sums;
    struct wait_time *const times MAREY__FREED = marey__calloc(sums->n_cells + 1, sizeof *times);
    struct marey__samples_row *const rows =
        times != NULL ? marey__calloc((size_t)n + 1, sizeof *rows) : NULL;
    size_t n_times = 0;
    if (rows == NULL)
        return NULL;
    for (size_t i = 0; i < sums->n_cells; i++) {
        const struct marey__samples_cell *const cell = &sums->cells[i];
        if (!cell->is_chosen)
            continue;
        const uint32_t of = entity(ctx, report, cell);
        marey__samples_sum_add(&rows[of].own, &cell->sum);
        rows[of].total_ns += cell->sum.ns;
        if (cell->wait != 0)
            times[n_times++] = (struct wait_time){of, cell->wait, cell->sum.ns};
    }
    find_waits(rows, times, n_times);
    return rows;
}

/* ---- totals, by the tree ---- */

struct tree {
    uint64_t *below_ns;           /* by stack: samples of it and its descendants */
    uint32_t *first_child, *next; /* by stack */
    uint32_t *n_open;             /* by entity: open frames on the way down */
    uint32_t n_stacks;
};

static bool tree_init(struct tree *tree, const struct marey__samples_report *report,
                      uint32_t n_entities)
{
    const marey_samples *const s = report->set.samples;
    const size_t n = (size_t)marey_samples_n_stacks(s) + 1;
    tree->n_stacks = (uint32_t)n - 1;
    tree->below_ns = marey__calloc(n, sizeof *tree->below_ns);
    tree->first_child = marey__calloc(n, sizeof *tree->first_child);
    tree->next = marey__calloc(n, sizeof *tree->next);
    tree->n_open = marey__calloc((size_t)n_entities + 1, sizeof *tree->n_open);
    if (tree->below_ns == NULL || tree->first_child == NULL || tree->next == NULL ||
        tree->n_open == NULL)
        return false;
    for (size_t i = 0; i < report->sums.n_cells; i++)
        if (report->sums.cells[i].is_chosen)
            tree->below_ns[report->sums.cells[i].stack] += report->sums.cells[i].sum.ns;
    for (uint32_t i = tree->n_stacks; i > 0; i--) { /* a parent's number is lower */
        const uint32_t parent = marey_samples_get_stack(s, i).parent;
        if (parent != 0)
            tree->below_ns[parent] += tree->below_ns[i];
        tree->next[i] = tree->first_child[parent];
        tree->first_child[parent] = i;
    }
    return true;
}

static void tree_fini(struct tree *tree)
{
    MAREY__FREE_ALL(tree->below_ns, tree->first_child, tree->next, tree->n_open);
}

static void add_totals(struct tree *tree, const struct marey__samples_report *report,
                       const struct marey__samples_entities *entities,
                       struct marey__samples_row *rows)
{
    const marey_samples *const s = report->set.samples;
    uint32_t at = tree->first_child[0];
    while (at != 0) {
        uint32_t of = entities->of_location[marey_samples_get_stack(s, at).location];
        if (of != 0 && tree->n_open[of]++ == 0)
            rows[of].total_ns += tree->below_ns[at];
        if (tree->first_child[at] != 0 && tree->below_ns[at] != 0) {
            at = tree->first_child[at];
            continue;
        }
        for (;;) { /* go up to the next sibling */
            of = entities->of_location[marey_samples_get_stack(s, at).location];
            if (of != 0)
                tree->n_open[of]--;
            if (tree->next[at] != 0) {
                at = tree->next[at];
                break;
            }
            at = marey_samples_get_stack(s, at).parent;
            if (at == 0)
                return;
        }
    }
}

static uint32_t innermost(const void *ctx, const struct marey__samples_report *report,
                          const struct marey__samples_cell *cell)
{
    const struct marey__samples_entities *const entities = ctx;
    return entities->of_location[marey_samples_get_stack(report->set.samples, cell->stack).location];
}

struct marey__samples_row *marey__samples_rows(const struct marey__samples_report *report,
                                               const struct marey__samples_entities *entities)
{
    struct tree tree MAREY__FINALLY(tree_fini) = {0};
    struct marey__samples_row *const rows =
        marey__samples_rows_of_cells(report, innermost, entities, entities->n);
    if (rows == NULL || !tree_init(&tree, report, entities->n)) {
        marey__free(rows);
        return NULL;
    }
    for (uint32_t i = 1; i <= entities->n; i++)
        rows[i].total_ns = 0;
    add_totals(&tree, report, entities, rows);
    return rows;
}
