/* The errors of a comparison inside a run: the elements that differ most, searched in chunks that may have larger ones. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/diff/internal.h"

enum { CHUNK = 1024, MAX_ERRORS = 1000 };

static void put_row(struct marey_diff *diff, const char *path, const char *reference,
                    const char *current, const char *difference)
{
    marey_table *const table = diff->tables[MAREY__DIFF_ERRORS];
    marey__put_string(table, path);
    MAREY__PUT_TEXTS(table, reference, current, difference);
}

/* ---- the elements that differ most ---- */

struct error {
    uint64_t index;
    double size; /* of the difference; infinite if one is not a number */
    char reference[64], current[64], difference[64];
};

struct errors {
    struct error *list; /* largest first */
    size_t n, max;
};

static void keep_error(struct errors *errors, const struct error *error)
{
    size_t place = errors->n;
    while (place > 0 && errors->list[place - 1].size < error->size)
        place--;
    if (place >= errors->max)
        return;
    const size_t n_moved = MAREY__MIN(errors->n, errors->max - 1) - place;
    memmove(&errors->list[place + 1], &errors->list[place], n_moved * sizeof *error);
    errors->list[place] = *error;
    errors->n = MAREY__MIN(errors->n + 1, errors->max);
}

/* The difference of element `i` as text, and its size. */
static void measure(struct error *error, const struct marey_tensor *a, const struct marey_tensor *b,
                    uint64_t i)
{
    long double d[2];
    const unsigned n_parts = marey__tensor_difference(a, b, i, d);
    char *const text = error->difference;
    if (n_parts == 2)
        snprintf(text, sizeof error->difference, "(%.9Lg,%.9Lg)", d[0], d[1]);
    else if (d[0] == floorl(d[0]) && fabsl(d[0]) < 0x1p65L)
        snprintf(text, sizeof error->difference, "%.0Lf", d[0]); /* 64-bit integers exactly */
    else
        snprintf(text, sizeof error->difference, "%.9Lg", d[0]);
    error->size = n_parts == 2 ? (double)hypotl(d[0], d[1]) : (double)fabsl(d[0]);
    if (!isfinite(error->size))
        error->size = INFINITY;
}

/* `n` elements of a row-major tensor. */
static struct marey_tensor slice(const struct marey_tensor *tensor, uint64_t begin, const int64_t *n)
{
    return (struct marey_tensor){.data = (const char *)tensor->data +
                                         begin * marey_dtype_size(tensor->dtype),
                                 .dtype = tensor->dtype,
                                 .rank = 1,
                                 .sizes = n};
}

static marey_status search_chunk(struct errors *errors, const struct marey_tensor *a,
                                 const struct marey_tensor *b, uint64_t begin, uint64_t n,
                                 const struct marey_tolerance *tolerance)
{
    static const int64_t one = 1;
    for (uint64_t i = begin; i < begin + n; i++) {
        const struct marey_tensor ea = slice(a, i, &one), eb = slice(b, i, &one);
        struct marey_tensor_diff diff;
        struct error error = {.index = i};
        MAREY_TRY(marey_tensor_compare(&ea, &eb, tolerance, &diff));
        if (diff.n_wrong == 0)
            continue;
        MAREY_TRY(marey_tensor_element(&ea, 0, error.current, sizeof error.current));
        MAREY_TRY(marey_tensor_element(&eb, 0, error.reference, sizeof error.reference));
        measure(&error, &ea, &eb, 0);
        keep_error(errors, &error);
    }
    return MAREY_OK;
}

static bool may_have_larger(const struct errors *errors, const struct marey_tensor_diff *chunk)
{
    return errors->n < errors->max || chunk->abs.value > errors->list[errors->n - 1].size ||
           isinf(chunk->needs_abs);
}

static marey_status find_errors(struct errors *errors, const struct marey_tensor *a,
                                const struct marey_tensor *b, const struct marey_tolerance *tolerance)
{
    const uint64_t n = marey_tensor_count(a);
    for (uint64_t begin = 0; begin < n; begin += CHUNK) {
        const int64_t n_chunk = (int64_t)MAREY__MIN(n - begin, (uint64_t)CHUNK);
        const struct marey_tensor ca = slice(a, begin, &n_chunk), cb = slice(b, begin, &n_chunk);
        struct marey_tensor_diff diff;
        MAREY_TRY(marey_tensor_compare(&ca, &cb, tolerance, &diff));
        if (diff.n_wrong != 0 && may_have_larger(errors, &diff))
            MAREY_TRY(search_chunk(errors, a, b, begin, (uint64_t)n_chunk, tolerance));
    }
    return MAREY_OK;
}

/* ---- rows ---- */

static void put_error(struct marey__waiting *w, const struct marey__diff_result *result,
                      const struct error *error)
{
    struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&path, result->path);
    if (result->details != NULL && result->details->n_dims != 0)
        marey__diff_index_put(&path, result->details, error->index);
    marey__buf_put(&path, "", 1);
    if (!path.failed)
        put_row(w->diff, path.data, error->reference, error->current, error->difference);
}

static marey_status put_largest(struct marey__waiting *w, const struct marey_dumped_value *value,
                                struct marey_tensor *reference,
                                const struct marey__diff_result *result)
{
    const uint32_t wanted = w->diff->pending.n_errors != 0 ? w->diff->pending.n_errors : 1;
    const size_t max = MAREY__MIN(wanted, (uint32_t)MAX_ERRORS);
    struct error *const list MAREY__FREED = marey__calloc(max, sizeof *list);
    double *made MAREY__FREED = NULL;
    struct errors errors = {.list = list, .max = max};
    MAREY__TRY_MEMORY(list != NULL);
    MAREY_TRY(marey__diff_restore(value, &w->value, reference, &made));
    MAREY_TRY(find_errors(&errors, &w->tensor, reference, &result->tolerance));
    for (size_t i = 0; i < errors.n; i++)
        put_error(w, result, &errors.list[i]);
    return MAREY_OK;
}

marey_status marey__diff_put_errors(struct marey__waiting *w, const struct marey__diff_side *b,
                                    size_t ib, const struct marey__diff_result *result)
{
    if (result->status == MAREY_DIFF_DIFFERENT && result->basis == MAREY__BY_DATA) {
        struct marey_tensor reference;
        MAREY_TRY(b->open(b, ib, NULL, &reference));
        const marey_status status = put_largest(w, &b->values[ib], &reference, result);
        marey__diff_close(b, ib, NULL);
        return status;
    }
    if (result->status == MAREY_DIFF_DIFFERENT && result->basis != MAREY__BY_VALUE)
        put_row(w->diff, result->path, NULL, NULL,
                result->basis == MAREY__BY_DIGEST ? "the digests differ" : "the statistics differ");
    else if (result->status == MAREY_DIFF_DTYPE)
        put_row(w->diff, result->path, marey_dtype_name(result->dtype_b),
                marey_dtype_name(result->dtype_a), "the dtypes differ");
    else if (marey__diff_counts(w->diff, result->status))
        put_row(w->diff, result->path, result->form_b, result->form_a,
                result->status == MAREY_DIFF_SHAPE  ? "the shapes differ"
                : result->status == MAREY_DIFF_KIND ? "they are not of one kind"
                                                    : "the values differ");
    return MAREY_OK;
}

void marey__diff_put_alone(struct marey_diff *diff, const struct marey__diff_result *result)
{
    put_row(diff, result->path, NULL, NULL,
            result->status == MAREY_DIFF_MISSING ? "missing in the current data"
                                                 : "not in the earlier dump");
}

/* ---- as text ---- */

static void put_line(struct marey__buf *text, const marey_table *table, size_t row, size_t column,
                     const char *label)
{
    const struct marey_cell cell = marey_table_cell(table, row, column);
    if (cell.is_null)
        return;
    marey__buf_puts(text, label);
    marey__text_put(text, cell.as.text, cell.len, 0);
    marey__buf_puts(text, "\n");
}

static void put_retyped(struct marey__buf *text, const marey_diff *diff)
{
    const struct marey__diff_result *result = diff->results;
    if (diff->n_retyped == 0)
        return;
    while (!result->is_retyped)
        result++;
    marey__buf_puts(text, " The dtype of ");
    marey__text_put(text, result->path, strlen(result->path), 0);
    marey__buf_printf(text, " differs: %s in the dump, %s now.", marey_dtype_name(result->dtype_b),
                      marey_dtype_name(result->dtype_a));
}

marey_status marey_diff_pending_text(marey_diff *diff, FILE *out)
{
    const marey_table *table = diff->tables[MAREY__DIFF_ERRORS];
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&text, "Comparison failed for [%s] of dump %llu.",
                      diff->pending.tree == MAREY_DUMP_GRADIENTS ? "grads" : "tensors",
                      (unsigned long long)diff->step);
    put_retyped(&text, diff);
    marey__buf_puts(&text, "\n");
    marey__buf_printf(&text, "NOTE: of each tensor at most %u error%s shown, the largest first.\n",
                      diff->pending.n_errors, diff->pending.n_errors == 1 ? " is" : "s are");
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const bool has_values = !marey_table_cell(table, row, 1).is_null;
        const struct marey_cell path = marey_table_cell(table, row, 0);
        marey__buf_puts(&text, "  ");
        marey__text_put(&text, path.len != 0 ? path.as.text : ". (the root)",
                        path.len != 0 ? path.len : strlen(". (the root)"), 0);
        marey__buf_puts(&text, "\n");
        put_line(&text, table, row, 1, "    reference:  ");
        put_line(&text, table, row, 2, "    current:    ");
        put_line(&text, table, row, 3, has_values ? "    difference: " : "    ");
    }
    return marey__buf_to_stream(&text, out);
}
