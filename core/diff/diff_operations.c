/*
 * Operations: what stands in paths before "in" and "out", "layer1.norm.in[0]" and "layer1.norm.out". One whose inputs
 * agree and whose outputs do not makes the difference by itself; others pass on what they got.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_internal.h"

/* In the backward pass gradients of outputs come in, and those of inputs and parameters go out. */
static const struct {
    const char *word;
    enum kymo__diff_role role;
} words[] = {
    {"in", KYMO__DIFF_INPUT},    {"input", KYMO__DIFF_INPUT},    {"inputs", KYMO__DIFF_INPUT},
    {"param", KYMO__DIFF_INPUT}, {"grad_out", KYMO__DIFF_INPUT}, {"grad_output", KYMO__DIFF_INPUT},
    {"out", KYMO__DIFF_OUTPUT},  {"output", KYMO__DIFF_OUTPUT},  {"outputs", KYMO__DIFF_OUTPUT},
    {"grad", KYMO__DIFF_OUTPUT}, {"grad_in", KYMO__DIFF_OUTPUT}, {"grad_input", KYMO__DIFF_OUTPUT},
};

static enum kymo__diff_role role_of_part(const char *part, size_t len)
{
    while (len > 0 && part[len - 1] >= '0' && part[len - 1] <= '9')
        len--; /* "in0" */
    for (size_t i = 0; i < KYMO__COUNT_OF(words); i++)
        if (strlen(words[i].word) == len && memcmp(words[i].word, part, len) == 0)
            return words[i].role;
    return KYMO__DIFF_NO_ROLE;
}

/* The last part that is such a word. */
enum kymo__diff_role kymo__diff_role(const char *path, size_t *len)
{
    enum kymo__diff_role role = KYMO__DIFF_NO_ROLE;
    for (size_t begin = 0; path[begin] != '\0';) {
        const size_t n = strcspn(path + begin, ".[");
        const enum kymo__diff_role found = role_of_part(path + begin, n);
        if (found != KYMO__DIFF_NO_ROLE) {
            role = found;
            *len = begin > 0 ? begin - 1 : 0;
        }
        begin += n;
        begin += path[begin] != '\0';
    }
    return role;
}

double kymo__diff_error(const struct kymo__diff_result *result)
{
    if (result->status == KYMO_DIFF_SAME)
        return 0;
    if (!result->has_diff)
        return NAN;
    if (isinf(result->diff.needs_abs))
        return INFINITY; /* NaN or an infinity on one side */
    return isnan(result->diff.snr_db) ? INFINITY : pow(10, -result->diff.snr_db / 20);
}

/* ---- operations of a step ---- */

struct operation {
    const struct kymo__diff_result *first_out; /* of those that differ */
    uint64_t step;
    int64_t rank;
    const char *name; /* in a path */
    size_t len;
    uint32_t phase_order;
    bool differs;                /* something of it */
    bool has_input, is_innocent; /* an input differs already */
    double error_in, error_out;
};

struct part {
    const struct kymo__diff_result *result;
    enum kymo__diff_role role;
    size_t len;
};

/* Those of one operation stand together, its phases one behind the other. */
static int by_operation(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    const struct kymo__diff_result *ra = a->result, *rb = b->result;
    if (ra->step != rb->step)
        return ra->step < rb->step ? -1 : 1;
    if (ra->rank != rb->rank)
        return ra->rank < rb->rank ? -1 : 1;
    const int order = memcmp(ra->path, rb->path, KYMO__MIN(a->len, b->len));
    if (order != 0)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    if (ra->phase_order != rb->phase_order)
        return ra->phase_order < rb->phase_order ? -1 : 1;
    return (ra > rb) - (ra < rb);
}

/* In whatever phase. */
static bool same_operation(const struct operation *op, const struct part *part)
{
    return op->step == part->result->step && op->rank == part->result->rank &&
           op->len == part->len && memcmp(op->name, part->result->path, op->len) == 0;
}

static void take_part(struct kymo_diff *diff, struct operation *op, const struct part *part)
{
    const struct kymo__diff_result *result = part->result;
    const bool differs = kymo__diff_counts(diff, result->status);
    const double error = kymo__diff_error(result);
    op->differs |= differs;
    if (part->role == KYMO__DIFF_INPUT) {
        op->has_input = true;
        op->is_innocent |= differs || result->status == KYMO_DIFF_UNKNOWN;
        op->error_in = fmax(op->error_in, error);
    } else {
        op->error_out = fmax(op->error_out, error);
        if (differs && op->first_out == NULL)
            op->first_out = result;
    }
}

static int by_first_out(const void *pa, const void *pb)
{
    const struct operation *a = pa, *b = pb;
    return (a->first_out > b->first_out) - (a->first_out < b->first_out);
}

/* ---- the table ---- */

static const struct kymo_column columns[] = {
    {"step", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    {"phase", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"seq", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"operation", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"output", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"error_in", "input error", KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"error_out", "output error", KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"growth", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
};

static void put_known(kymo_table *table, double value)
{
    if (isnan(value))
        kymo_table_null(table);
    else
        kymo_table_f64(table, value);
}

static void put_operation(kymo_table *table, const struct operation *op)
{
    const struct kymo__diff_result *out = op->first_out;
    kymo_table_u64(table, op->step);
    if (op->rank >= 0)
        kymo_table_i64(table, op->rank);
    else
        kymo_table_null(table);
    if (out->phase != NULL)
        kymo_table_text(table, out->phase, strlen(out->phase));
    else
        kymo_table_null(table);
    kymo_table_u64(table, out->seq);
    kymo_table_text(table, op->name, op->len);
    kymo_table_text(table, out->path, strlen(out->path));
    put_known(table, op->error_in);
    put_known(table, op->error_out);
    put_known(table, op->error_in > 0 ? op->error_out / op->error_in : NAN);
}

static size_t find_parts(const struct kymo_diff *diff, struct part *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < diff->n; i++) {
        struct part part = {.result = &diff->results[i]};
        part.role = kymo__diff_role(part.result->path, &part.len);
        if (part.role != KYMO__DIFF_NO_ROLE)
            parts[n++] = part;
    }
    return n;
}

/* Operations that make a difference, out of parts that are sorted; how many. */
static size_t find_operations(struct kymo_diff *diff, const struct part *parts, size_t n_parts,
                              struct operation *operations)
{
    size_t n = 0;
    struct operation op = {0};
    for (size_t i = 0; i < n_parts;) {
        const struct kymo__diff_result *result = parts[i].result;
        /* Gradients are made of what went through it forward, which came in as much as they did. */
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

kymo_status kymo__diff_operations(struct kymo_diff *diff)
{
    kymo_table **table = &diff->tables[KYMO__DIFF_OPERATIONS];
    KYMO_TRY(kymo_table_create("operations", columns, KYMO__COUNT_OF(columns), table));
    struct part *parts = kymo__alloc((diff->n + 1) * sizeof *parts);
    struct operation *operations = kymo__alloc((diff->n + 1) * sizeof *operations);
    kymo_status status = KYMO_OK;
    if (parts != NULL && operations != NULL) {
        const size_t n_parts = find_parts(diff, parts);
        qsort(parts, n_parts, sizeof *parts, by_operation);
        const size_t n = find_operations(diff, parts, n_parts, operations);
        qsort(operations, n, sizeof *operations, by_first_out);
        for (size_t i = 0; i < n; i++)
            put_operation(*table, &operations[i]);
        status = kymo_table_status(*table);
    } else {
        status = kymo__fail(KYMO_ENOMEM, "no memory to look at operations");
    }
    kymo__free(parts);
    kymo__free(operations);
    return status;
}
