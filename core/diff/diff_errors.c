/*
 * The errors of a comparison inside a run: of each tensor the elements that differ most. They are found in chunks, of which
 * those without an error, or without one that is large enough, are not looked at singly.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diff/diff_pending.h"

enum { CHUNK = 1024, MAX_ERRORS = 1000 };

static const struct kymo_column columns[] = {
    {"path", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"reference", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"current", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"difference", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};

kymo_status kymo__diff_errors_create(struct kymo_diff *diff)
{
    return kymo_table_create("errors", columns, KYMO__COUNT_OF(columns),
                             &diff->tables[KYMO__DIFF_ERRORS]);
}

static void put_row(struct kymo_diff *diff, const char *path, const char *reference,
                    const char *current, const char *difference)
{
    const char *const cells[] = {path, reference, current, difference};
    kymo_table *table = diff->tables[KYMO__DIFF_ERRORS];
    for (size_t i = 0; i < KYMO__COUNT_OF(cells); i++)
        if (cells[i] != NULL)
            kymo_table_text(table, cells[i], strlen(cells[i]));
        else
            kymo_table_null(table);
}

/* ---- the elements that differ most ---- */

struct error {
    uint64_t index;
    double size; /* of the difference; infinite where one is no number */
    char reference[64], current[64], difference[64];
};

struct errors {
    struct error *list; /* the largest first */
    size_t n, max;
};

static void keep_error(struct errors *errors, const struct error *error)
{
    size_t place = errors->n;
    while (place > 0 && errors->list[place - 1].size < error->size)
        place--;
    if (place >= errors->max)
        return;
    const size_t n_moved = KYMO__MIN(errors->n, errors->max - 1) - place;
    memmove(&errors->list[place + 1], &errors->list[place], n_moved * sizeof *error);
    errors->list[place] = *error;
    errors->n = KYMO__MIN(errors->n + 1, errors->max);
}

/* The difference of element `i` as a text, and its size. */
static void measure(struct error *error, const struct kymo_tensor *a, const struct kymo_tensor *b,
                    uint64_t i)
{
    long double d[2];
    const unsigned n_parts = kymo__tensor_difference(a, b, i, d);
    char *const text = error->difference;
    if (n_parts == 2)
        snprintf(text, sizeof error->difference, "(%.9Lg,%.9Lg)", d[0], d[1]);
    else if (d[0] == floorl(d[0]) && fabsl(d[0]) < 0x1p65L)
        snprintf(text, sizeof error->difference, "%.0Lf", d[0]); /* 64-bit integers to the last digit */
    else
        snprintf(text, sizeof error->difference, "%.9Lg", d[0]);
    error->size = n_parts == 2 ? (double)hypotl(d[0], d[1]) : (double)fabsl(d[0]);
    if (!isfinite(error->size))
        error->size = INFINITY;
}

static kymo_status look_at_chunk(struct errors *errors, const struct kymo_tensor *a,
                                 const struct kymo_tensor *b, uint64_t begin, uint64_t n,
                                 const struct kymo_tolerance *tolerance)
{
    static const int64_t one = 1;
    const size_t size_a = kymo_dtype_size(a->dtype), size_b = kymo_dtype_size(b->dtype);
    for (uint64_t i = begin; i < begin + n; i++) {
        struct kymo_tensor ea = {.dtype = a->dtype, .rank = 1, .sizes = &one},
                           eb = {.dtype = b->dtype, .rank = 1, .sizes = &one};
        struct kymo_tensor_diff diff;
        struct error error = {.index = i};
        ea.data = (const char *)a->data + i * size_a;
        eb.data = (const char *)b->data + i * size_b;
        KYMO_TRY(kymo_tensor_compare(&ea, &eb, tolerance, &diff));
        if (diff.n_wrong == 0)
            continue;
        KYMO_TRY(kymo_tensor_element(&ea, 0, error.current, sizeof error.current));
        KYMO_TRY(kymo_tensor_element(&eb, 0, error.reference, sizeof error.reference));
        measure(&error, &ea, &eb, 0);
        keep_error(errors, &error);
    }
    return KYMO_OK;
}

static bool may_have_larger(const struct errors *errors, const struct kymo_tensor_diff *chunk)
{
    return errors->n < errors->max || chunk->abs.value > errors->list[errors->n - 1].size ||
           isinf(chunk->needs_abs);
}

static kymo_status find_errors(struct errors *errors, const struct kymo_tensor *a,
                               const struct kymo_tensor *b, const struct kymo_tolerance *tolerance)
{
    const uint64_t n = kymo_tensor_count(a);
    const size_t size_a = kymo_dtype_size(a->dtype), size_b = kymo_dtype_size(b->dtype);
    for (uint64_t begin = 0; begin < n; begin += CHUNK) {
        const int64_t n_chunk = (int64_t)KYMO__MIN(n - begin, (uint64_t)CHUNK);
        struct kymo_tensor ca = {.dtype = a->dtype, .rank = 1, .sizes = &n_chunk},
                           cb = {.dtype = b->dtype, .rank = 1, .sizes = &n_chunk};
        struct kymo_tensor_diff diff;
        ca.data = (const char *)a->data + begin * size_a;
        cb.data = (const char *)b->data + begin * size_b;
        KYMO_TRY(kymo_tensor_compare(&ca, &cb, tolerance, &diff));
        if (diff.n_wrong != 0 && may_have_larger(errors, &diff))
            KYMO_TRY(look_at_chunk(errors, a, b, begin, (uint64_t)n_chunk, tolerance));
    }
    return KYMO_OK;
}

/* ---- rows ---- */

static void put_error(struct kymo__waiting *w, const struct kymo__diff_result *result,
                      const struct error *error)
{
    struct kymo__buf path = {0};
    kymo__buf_puts(&path, result->path);
    if (result->details != NULL && result->details->n_dims != 0)
        kymo__diff_index_put(&path, result->details, error->index);
    kymo__buf_put(&path, "", 1);
    if (!path.failed)
        put_row(w->diff, path.data, error->reference, error->current, error->difference);
    kymo__buf_fini(&path);
}

static kymo_status put_largest(struct kymo__waiting *w, const struct kymo__diff_side *b, size_t ib,
                               const struct kymo__diff_result *result)
{
    const uint32_t wanted = w->diff->pending.n_errors != 0 ? w->diff->pending.n_errors : 1;
    struct errors errors = {.max = KYMO__MIN(wanted, (uint32_t)MAX_ERRORS)};
    struct kymo_tensor reference;
    double *made = NULL;
    KYMO_TRY(b->get(b, ib, &reference));
    errors.list = kymo__calloc(errors.max, sizeof *errors.list);
    kymo_status status = errors.list != NULL
                             ? kymo__diff_restore(&b->values[ib], &w->value, &reference, &made)
                             : kymo__fail(KYMO_ENOMEM, "no memory for errors");
    if (status == KYMO_OK)
        status = find_errors(&errors, &w->tensor, &reference, &result->tolerance);
    for (size_t i = 0; i < errors.n; i++)
        put_error(w, result, &errors.list[i]);
    kymo__free(errors.list);
    kymo__free(made);
    kymo__diff_drop(b, ib);
    return status;
}

kymo_status kymo__diff_put_errors(struct kymo__waiting *w, const struct kymo__diff_side *b,
                                  size_t ib, const struct kymo__diff_result *result)
{
    if (result->status == KYMO_DIFF_DIFFERENT && result->basis == KYMO__BY_DATA)
        return put_largest(w, b, ib, result);
    if (result->status == KYMO_DIFF_DIFFERENT && result->basis != KYMO__BY_VALUE)
        put_row(w->diff, result->path, NULL, NULL,
                result->basis == KYMO__BY_DIGEST ? "the digests differ" : "the statistics differ");
    else if (result->status == KYMO_DIFF_SHAPE)
        put_row(w->diff, result->path, result->form_b, result->form_a, "the shapes differ");
    else if (result->status == KYMO_DIFF_KIND)
        put_row(w->diff, result->path, result->form_b, result->form_a, "they are not of one kind");
    else if (result->status == KYMO_DIFF_DTYPE)
        put_row(w->diff, result->path, kymo_dtype_name(result->dtype_b),
                kymo_dtype_name(result->dtype_a), "the dtypes differ");
    else if (kymo__diff_counts(w->diff, result->status))
        put_row(w->diff, result->path, result->form_b, result->form_a, "the values differ");
    return KYMO_OK;
}

void kymo__diff_put_alone(struct kymo_diff *diff, const struct kymo__diff_result *result)
{
    put_row(diff, result->path, NULL, NULL,
            result->status == KYMO_DIFF_MISSING ? "missing in the current data"
                                                : "not in the earlier dump");
}

/* ---- as text ---- */

static void put_line(struct kymo__buf *text, const kymo_table *table, size_t row, size_t column,
                     const char *label)
{
    const struct kymo_cell cell = kymo_table_cell(table, row, column);
    if (cell.is_null)
        return;
    kymo__buf_puts(text, label);
    kymo__text_put(text, cell.as.text, cell.len, 0);
    kymo__buf_puts(text, "\n");
}

static void put_retyped(struct kymo__buf *text, const kymo_diff *diff)
{
    const struct kymo__diff_result *result = diff->results;
    if (diff->n_retyped == 0)
        return;
    while (!result->is_retyped)
        result++;
    kymo__buf_puts(text, " The dtype of ");
    kymo__text_put(text, result->path, strlen(result->path), 0);
    kymo__buf_printf(text, " differs: %s in the dump, %s now.", kymo_dtype_name(result->dtype_b),
                     kymo_dtype_name(result->dtype_a));
}

kymo_status kymo_diff_pending_text(kymo_diff *diff, FILE *out)
{
    const kymo_table *table = diff->tables[KYMO__DIFF_ERRORS];
    struct kymo__buf text = {0};
    if (table == NULL)
        return kymo__fail(KYMO_EINVAL, "this is no comparison inside a run");
    kymo__buf_printf(&text, "Comparison failed for [%s] of dump %llu.",
                     diff->pending.tree == KYMO_DUMP_GRADIENTS ? "grads" : "tensors",
                     (unsigned long long)diff->step);
    put_retyped(&text, diff);
    kymo__buf_puts(&text, "\n");
    kymo__buf_printf(&text, "NOTE: of each tensor at most %u error%s shown, the largest first.\n",
                     diff->pending.n_errors, diff->pending.n_errors == 1 ? " is" : "s are");
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const bool has_values = !kymo_table_cell(table, row, 1).is_null;
        const struct kymo_cell path = kymo_table_cell(table, row, 0);
        kymo__buf_puts(&text, "  ");
        kymo__text_put(&text, path.len != 0 ? path.as.text : ". (the root)",
                       path.len != 0 ? path.len : strlen(". (the root)"), 0);
        kymo__buf_puts(&text, "\n");
        put_line(&text, table, row, 1, "    reference:  ");
        put_line(&text, table, row, 2, "    current:    ");
        put_line(&text, table, row, 3, has_values ? "    difference: " : "    ");
    }
    const kymo_status status = kymo__buf_to_stream(&text, out);
    kymo__buf_fini(&text);
    return status;
}
