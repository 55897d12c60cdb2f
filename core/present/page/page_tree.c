/*
 * Reduces a call tree with too many rows for a page: the heaviest stay, and below each row with omitted children one
 * row stands for these, with their number and total time. Widths in the flame graph then still add up.
 */
#include <assert.h>

#include "present/page/internal.h"

#define NO_PARENT SIZE_MAX

/* Columns of the table, as in summary_report.c. */
enum { DEPTH, NAME, COUNT, TOTAL_NS, SELF_NS, SHARE, N_COLUMNS };
static_assert((int)N_COLUMNS == (int)MAREY__N_TREE_COLUMNS, "the tree has other columns");

struct others {
    uint64_t n; /* rows, including their descendants */
    uint64_t count, total_ns;
    double share;
};

struct reduction {
    const marey_table *tree;
    size_t n;
    size_t *parents;
    uint64_t *weights; /* its total, or a descendant's if larger: never more than its parent's */
    uint64_t *sorted;
    uint8_t *is_kept;
    struct others *others; /* by the parent's row; the last is for rows without a parent */
};

static uint64_t cell(const struct reduction *r, size_t row, size_t column)
{
    return marey_table_cell(r->tree, row, column).as.u64;
}

/* Rows are depth first. A parent without an own time, because it has no end, weighs as much as its descendants. */
static void find_weights(struct reduction *r, size_t *path)
{
    for (size_t i = 0; i < r->n; i++) {
        const size_t depth = (size_t)cell(r, i, DEPTH);
        path[depth] = i;
        r->parents[i] = depth != 0 ? path[depth - 1] : NO_PARENT;
        r->weights[i] = cell(r, i, TOTAL_NS);
    }
    for (size_t i = r->n; i-- > 0;)
        if (r->parents[i] != NO_PARENT)
            r->weights[r->parents[i]] = MAREY__MAX(r->weights[r->parents[i]], r->weights[i]);
}

MAREY__ORDER(heaviest_first, uint64_t, MAREY__UP_BY(*y, *x))

/* Of equal rows the first ones stay, and parents come before their children: the parent of a kept row is kept. */
static void choose(struct reduction *r, size_t n_most)
{
    for (size_t i = 0; i < r->n; i++)
        r->sorted[i] = r->weights[i];
    qsort(r->sorted, r->n, sizeof *r->sorted, heaviest_first);
    const uint64_t bound = r->sorted[n_most - 1];
    size_t n_equal = 0;
    for (size_t i = 0; i < n_most; i++)
        n_equal += r->sorted[i] == bound;
    for (size_t i = 0; i < r->n; i++) {
        r->is_kept[i] = r->weights[i] > bound || (r->weights[i] == bound && n_equal != 0);
        n_equal -= r->is_kept[i] && r->weights[i] == bound;
    }
}

static void add_up_others(struct reduction *r)
{
    size_t top = r->n; /* the parent of the topmost omitted row on this path */
    for (size_t i = 0; i < r->n; i++) {
        if (r->is_kept[i])
            continue;
        const size_t parent = r->parents[i];
        if (parent == NO_PARENT || r->is_kept[parent]) {
            top = parent == NO_PARENT ? r->n : parent;
            r->others[top].count += cell(r, i, COUNT);
            r->others[top].total_ns += cell(r, i, TOTAL_NS);
            r->others[top].share += marey_table_cell(r->tree, i, SHARE).as.f64;
        }
        r->others[top].n++;
    }
}

static void put_row(marey_table *out, const struct reduction *r, size_t i)
{
    const struct marey_cell name = marey_table_cell(r->tree, i, NAME),
                            share = marey_table_cell(r->tree, i, SHARE);
    MAREY__PUT_ROW(out, U64(cell(r, i, DEPTH)), STRING_N(name.as.text, name.len),
                   U64(cell(r, i, COUNT)), U64(cell(r, i, TOTAL_NS)), U64(cell(r, i, SELF_NS)));
    if (share.is_null)
        marey_table_null(out);
    else
        marey_table_f64(out, share.as.f64);
}

static size_t put_others(marey_table *out, const struct others *others, uint64_t depth)
{
    char name[40];
    if (others->n == 0)
        return 0;
    const int len =
        snprintf(name, sizeof name, "(%" PRIu64 " other%s)", others->n, others->n == 1 ? "" : "s");
    MAREY__PUT_ROW(out, U64(depth), STRING_N(name, (size_t)len), U64(others->count),
                   U64(others->total_ns), U64(others->total_ns), F64(others->share));
    return 1;
}

/* Rows for omitted ones come after their siblings; returns how many there are. */
static size_t put_rows(marey_table *out, const struct reduction *r, size_t *path)
{
    size_t depth = 0, n_others = 0; /* rows on the path */
    for (size_t i = 0; i < r->n; i++) {
        if (!r->is_kept[i])
            continue;
        for (; depth > cell(r, i, DEPTH); depth--)
            n_others += put_others(out, &r->others[path[depth - 1]], depth);
        path[depth++] = i;
        put_row(out, r, i);
    }
    for (; depth > 0; depth--)
        n_others += put_others(out, &r->others[path[depth - 1]], depth);
    return n_others + put_others(out, &r->others[r->n], 0);
}

static size_t deepest(const struct reduction *r)
{
    size_t depth = 0;
    for (size_t i = 0; i < r->n; i++)
        depth = MAREY__MAX(depth, (size_t)cell(r, i, DEPTH));
    return depth;
}

static bool reduce(struct reduction *r, size_t n_most, marey_table *out, size_t *n_others)
{
    size_t *path = marey__calloc(deepest(r) + 1, sizeof *path);
    r->parents = marey__calloc(r->n, sizeof *r->parents);
    r->weights = marey__calloc(r->n, sizeof *r->weights);
    r->sorted = marey__calloc(r->n, sizeof *r->sorted);
    r->is_kept = marey__calloc(r->n, sizeof *r->is_kept);
    r->others = marey__calloc(r->n + 1, sizeof *r->others);
    const bool ok = path != NULL && r->parents != NULL && r->weights != NULL && r->sorted != NULL &&
                    r->is_kept != NULL && r->others != NULL;
    if (ok) {
        find_weights(r, path);
        choose(r, n_most);
        add_up_others(r);
        *n_others = put_rows(out, r, path);
    }
    MAREY__FREE_ALL(path, r->parents, r->weights, r->sorted, r->is_kept, r->others);
    return ok && marey_table_status(out) == MAREY_OK;
}

bool marey__page_reduce_tree(const marey_table *tree, size_t n_most, marey_table **out,
                             size_t *n_others)
{
    struct reduction r = {.tree = tree, .n = marey_table_n_rows(tree)};
    marey_table *table = NULL;
    MAREY_ASSERT(n_most != 0 && n_most < r.n);
    if (marey_table_create(marey_table_name(tree), marey__tree_columns, N_COLUMNS, &table) != MAREY_OK)
        return false;
    if (!reduce(&r, n_most, table, n_others)) {
        marey_table_destroy(table);
        return false;
    }
    *out = table;
    return true;
}
