/*
 * The order of execution, the first difference in it, and operations: the prefix of a path before "in" and "out", as in
 * "layer1.norm.in[0]" and "layer1.norm.out". An operation whose inputs agree and whose outputs differ introduces the
 * difference; others propagate it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* A gradient may be added with its tensor, long before it is computed, so the phase precedes the order of adding. */
MAREY__ORDER(by_execution, struct marey__diff_result,
             MAREY__UP(step) MAREY__UP(phase_order) MAREY__UP(order) MAREY__UP(rank))

const struct marey__diff_result *marey__diff_first(const struct marey_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        if (marey__diff_counts(diff, diff->results[i].status))
            return &diff->results[i];
    return NULL;
}

static void warn_about_basis(struct marey_diff *diff)
{
    size_t n_digests = 0, n_stats = 0;
    for (size_t i = 0; i < diff->n; i++) {
        const struct marey__diff_result *result = &diff->results[i];
        n_digests += result->basis == MAREY__BY_DIGEST && result->status == MAREY_DIFF_DIFFERENT;
        n_stats += result->basis == MAREY__BY_STATS;
    }
    if (n_digests != 0)
        marey__diff_warn(
            diff,
            "values that differ by an unknown amount, because only their digests were kept: %zu",
            n_digests);
    if (n_stats != 0)
        marey__diff_warn(
            diff, "values compared only by their statistics, which may be equal for different numbers: %zu",
            n_stats);
    if (diff->n_reported > diff->n_by_status[MAREY_DIFF_UNKNOWN])
        return;
    if (diff->n_by_status[MAREY_DIFF_UNKNOWN] > 5)
        marey__diff_warn(diff, "values besides these that could not be compared: %zu",
                         diff->n_by_status[MAREY_DIFF_UNKNOWN] - 5);
}

static void warn_about_names(struct marey_diff *diff)
{
    if (diff->n_renamed != 0)
        marey__diff_warn(diff, "values that were paired by their order, under different paths: %zu",
                         diff->n_renamed);
    if (diff->options.allow_missing && diff->n_by_status[MAREY_DIFF_MISSING] != 0)
        marey__diff_warn(diff, "values that only B has, which was allowed: %zu",
                         diff->n_by_status[MAREY_DIFF_MISSING]);
    if (diff->options.allow_extra && diff->n_by_status[MAREY_DIFF_EXTRA] != 0)
        marey__diff_warn(diff, "values that only A has, which was allowed: %zu",
                         diff->n_by_status[MAREY_DIFF_EXTRA]);
}

/* ---- operations ---- */

/* In the backward pass gradients of outputs are inputs, and those of inputs and parameters are outputs. */
static const struct {
    const char *word;
    enum marey__diff_role role;
} words[] = {
    {"in", MAREY__DIFF_INPUT},       {"input", MAREY__DIFF_INPUT},
    {"inputs", MAREY__DIFF_INPUT},   {"param", MAREY__DIFF_INPUT},
    {"grad_out", MAREY__DIFF_INPUT}, {"grad_output", MAREY__DIFF_INPUT},
    {"out", MAREY__DIFF_OUTPUT},     {"output", MAREY__DIFF_OUTPUT},
    {"outputs", MAREY__DIFF_OUTPUT}, {"grad", MAREY__DIFF_OUTPUT},
    {"grad_in", MAREY__DIFF_OUTPUT}, {"grad_input", MAREY__DIFF_OUTPUT},
};

static enum marey__diff_role role_of_part(const char *part, size_t len)
{
    while (len > 0 && part[len - 1] >= '0' && part[len - 1] <= '9')
        len--; /* "in0" */
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
        if (strlen(words[i].word) == len && memcmp(words[i].word, part, len) == 0)
            return words[i].role;
    return MAREY__DIFF_NO_ROLE;
}

/* The last path component that is such a word. */
enum marey__diff_role marey__diff_role(const char *path, size_t *len)
{
    enum marey__diff_role role = MAREY__DIFF_NO_ROLE;
    for (size_t begin = 0; path[begin] != '\0';) {
        const size_t n = strcspn(path + begin, ".[");
        const enum marey__diff_role found = role_of_part(path + begin, n);
        if (found != MAREY__DIFF_NO_ROLE) {
            role = found;
            *len = begin > 0 ? begin - 1 : 0;
        }
        begin += n;
        begin += path[begin] != '\0';
    }
    return role;
}

/* Relative: RMSE divided by the reference's RMS; infinite if NaNs or infinities differ. */
static double error_of(const struct marey__diff_result *result)
{
    if (result->status == MAREY_DIFF_SAME)
        return 0;
    if (!result->has_diff)
        return NAN;
    if (isinf(result->diff.needs_abs))
        return INFINITY; /* NaN or an infinity on one side */
    return isnan(result->diff.snr_db) ? INFINITY : pow(10, -result->diff.snr_db / 20);
}

struct operation {
    const struct marey__diff_result *first_out; /* the first that differs */
    uint64_t step;
    int64_t rank;
    const char *name; /* inside a path */
    size_t len;
    uint32_t phase_order;
    bool differs;                /* some of its values differ */
    bool has_input, is_innocent; /* an input differs already */
    double error_in, error_out;
};

struct part {
    const struct marey__diff_result *result;
    enum marey__diff_role role;
    size_t len;
};

/* By operation, then by phase. */
static int by_operation(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    const struct marey__diff_result *ra = a->result, *rb = b->result;
    if (ra->step != rb->step)
        return ra->step < rb->step ? -1 : 1;
    if (ra->rank != rb->rank)
        return ra->rank < rb->rank ? -1 : 1;
    const int order = memcmp(ra->path, rb->path, MAREY__MIN(a->len, b->len));
    if (order != 0)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    if (ra->phase_order != rb->phase_order)
        return ra->phase_order < rb->phase_order ? -1 : 1;
    return (ra > rb) - (ra < rb);
}

/* In any phase. */
static bool same_operation(const struct operation *op, const struct part *part)
{
    return op->step == part->result->step && op->rank == part->result->rank &&
           op->len == part->len && memcmp(op->name, part->result->path, op->len) == 0;
}

static void take_part(struct marey_diff *diff, struct operation *op, const struct part *part)
{
    const struct marey__diff_result *result = part->result;
    const bool differs = marey__diff_counts(diff, result->status);
    const double error = error_of(result);
    op->differs |= differs;
    if (part->role == MAREY__DIFF_INPUT) {
        op->has_input = true;
        op->is_innocent |= differs || result->status == MAREY_DIFF_UNKNOWN;
        op->error_in = fmax(op->error_in, error);
    } else {
        op->error_out = fmax(op->error_out, error);
        if (differs && op->first_out == NULL)
            op->first_out = result;
    }
}

MAREY__ORDER(by_first_out, struct operation, MAREY__UP(first_out))

static void put_operation(marey_table *table, const struct operation *op)
{
    const struct marey__diff_result *out = op->first_out;
    marey_table_u64(table, op->step);
    marey__put_rank(table, op->rank);
    MAREY__PUT_TEXTS(table, out->phase);
    marey_table_u64(table, out->seq);
    marey_table_text(table, op->name, op->len);
    marey__put_string(table, out->path);
    MAREY__PUT_REALS(table, op->error_in, op->error_out,
                     op->error_in > 0 ? op->error_out / op->error_in : NAN);
}

static size_t find_parts(const struct marey_diff *diff, struct part *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < diff->n; i++) {
        struct part part = {.result = &diff->results[i]};
        part.role = marey__diff_role(part.result->path, &part.len);
        if (part.role != MAREY__DIFF_NO_ROLE)
            parts[n++] = part;
    }
    return n;
}

/* Collects operations that introduce differences from sorted parts. Returns how many. */
static size_t find_operations(struct marey_diff *diff, const struct part *parts, size_t n_parts,
                              struct operation *operations)
{
    size_t n = 0;
    struct operation op = {0};
    for (size_t i = 0; i < n_parts;) {
        const struct marey__diff_result *result = parts[i].result;
        /* Forward values of the operation are inputs of its backward pass. */
        const bool came_in = i != 0 && same_operation(&op, &parts[i]) && op.differs;
        op = (struct operation){.step = result->step,
                                .rank = result->rank,
                                .phase_order = result->phase_order,
                                .name = result->path,
                                .len = parts[i].len,
                                .differs = came_in,
                                .is_innocent = came_in};
        for (; i < n_parts && same_operation(&op, &parts[i]) &&
               parts[i].result->phase_order == op.phase_order;
             i++)
            take_part(diff, &op, &parts[i]);
        if (op.has_input && !op.is_innocent && op.first_out != NULL)
            operations[n++] = op;
    }
    return n;
}

static marey_status make_operations(struct marey_diff *diff)
{
    marey_table *const table = diff->tables[MAREY__DIFF_OPERATIONS];
    struct part *const parts MAREY__FREED = marey__alloc((diff->n + 1) * sizeof *parts);
    struct operation *const operations MAREY__FREED =
        marey__alloc((diff->n + 1) * sizeof *operations);
    MAREY__TRY_MEMORY(parts != NULL && operations != NULL);
    const size_t n_parts = find_parts(diff, parts);
    qsort(parts, n_parts, sizeof *parts, by_operation);
    const size_t n = find_operations(diff, parts, n_parts, operations);
    qsort(operations, n, sizeof *operations, by_first_out);
    for (size_t i = 0; i < n; i++)
        put_operation(table, &operations[i]);
    return marey_table_status(table);
}

/* ---- all ---- */

marey_status marey__diff_conclude(struct marey_diff *diff)
{
    if (diff->n != 0)
        qsort(diff->results, diff->n, sizeof *diff->results, by_execution);
    warn_about_basis(diff);
    warn_about_names(diff);
    MAREY_TRY(marey__diff_tables(diff));
    MAREY_TRY(make_operations(diff));
    return marey_table_status(diff->tables[MAREY__DIFF_WARNINGS]);
}
