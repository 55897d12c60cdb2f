/* Results as tables: tensors, first, steps. */
#include <math.h>
#include <string.h>

#include "report/internal.h"
#include "tensor/diff/internal.h"

/* ---- cells ---- */

struct row {
    marey_table *table;
    struct marey__buf text; /* for indices */
};

void marey__diff_put_text(marey_table *table, const char *text)
{
    if (text != NULL && text[0] != '\0')
        marey__put_string(table, text);
    else
        marey_table_null(table);
}

void marey__diff_put_number(marey_table *table, double value)
{
    if (!isnan(value))
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

static void put_text(const struct row *row, const char *text)
{
    marey__diff_put_text(row->table, text);
}

static void put_count(const struct row *row, uint64_t n, bool is_known)
{
    marey__put_whole(row->table, n, is_known);
}

static void put_number(const struct row *row, double value, bool is_known)
{
    marey__diff_put_number(row->table, is_known ? value : NAN);
}

static void put_index(struct row *row, const struct marey__diff_details *details, uint64_t index)
{
    if (details == NULL || index == UINT64_MAX) {
        marey_table_null(row->table);
        return;
    }
    row->text.len = 0;
    marey__diff_index_put(&row->text, details, index);
    marey_table_text(row->table, row->text.data, row->text.failed ? 0 : row->text.len);
}

static void put_spot(struct row *row, const struct marey__diff_details *details,
                     const struct marey__diff_spot *spot)
{
    const bool is_known = details != NULL && spot->index != UINT64_MAX;
    put_index(row, details, is_known ? spot->index : UINT64_MAX);
    put_text(row, is_known ? spot->a : NULL);
    put_text(row, is_known ? spot->b : NULL);
}

/* ---- tensors ---- */

static const struct marey_column tensor_columns[] = {
    WHOLE("step"),
    NUMBER("rank"),
    TEXT("phase"),
    WHOLE("seq"),
    TEXT("tree"),
    COLUMN("path", "tensor", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    TEXT("status"),
    TEXT("basis"),
    COLUMN("dtype_a", "type", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("dtype_b", "type of B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("shape_a", "shape", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("shape_b", "shape of B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COUNT("n", "elements"),
    COUNT("n_wrong", "wrong"),
    {"share_wrong", "share", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    COUNT("n_unequal", "unequal"),
    COUNT("n_nan_a", "NaN"),
    COUNT("n_nan_b", "NaN of B"),
    COLUMN("first_index", "first at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    REAL("max_abs", "max abs"),
    COLUMN("max_abs_index", "at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_abs_a", "A", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_abs_b", "B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    REAL("max_rel", "max rel"),
    COLUMN("max_rel_index", "at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_rel_a", "A", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_rel_b", "B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    REAL("max_ulp", "max ulp"),
    COLUMN("max_ulp_index", "at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_ulp_a", "A", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("max_ulp_b", "B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    REAL("mean_abs", "mean abs"),
    REAL("rmse", NULL),
    REAL("cosine", NULL),
    REAL("snr_db", "SNR dB"),
    REAL("psnr_db", "PSNR dB"),
    REAL("needs_abs", "passes at abs"),
    REAL("needs_rel", "passes at rel"),
    REAL("needs_ulp", "passes at ulp"),
    REAL("atol", NULL),
    REAL("rtol", NULL),
    COUNT("ulp", NULL),
    REAL("noise_abs", "noise"),
    COLUMN("path_b", "path in B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    TEXT("source"),
    COLUMN("value_a", "value", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COLUMN("value_b", "value of B", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
};

static const char *const basis_names[] = {"none", "data", "digest", "stats", "value"};

static const char *type_name(enum marey_dtype dtype)
{
    return dtype != MAREY_DTYPE_NONE ? marey_dtype_name(dtype) : NULL;
}

static void put_place(const struct row *row, const struct marey__diff_result *result)
{
    marey_table_u64(row->table, result->step);
    marey__put_rank(row->table, result->rank);
    put_text(row, result->phase);
    marey_table_u64(row->table, result->seq);
    put_text(row, result->tree == MAREY_DUMP_GRADIENTS ? "gradients" : "tensors");
    marey_table_text(row->table, result->path, strlen(result->path));
    put_text(row, marey_diff_status_name(result->status));
}

static void put_form(const struct row *row, const struct marey__diff_result *result)
{
    put_text(row, basis_names[result->basis]);
    put_text(row, type_name(result->dtype_a));
    put_text(row, type_name(result->dtype_b));
    put_text(row, result->dtype_a != MAREY_DTYPE_NONE ? result->form_a : NULL);
    put_text(row, result->dtype_b != MAREY_DTYPE_NONE ? result->form_b : NULL);
}

/* What is equal has no differences, whether it was read or not. */
static void put_counts(struct row *row, const struct marey__diff_result *result)
{
    const struct marey_tensor_diff *diff = &result->diff;
    const bool is_same = result->status == MAREY_DIFF_SAME, is_known = result->has_diff || is_same,
               is_tensor = result->dtype_b != MAREY_DTYPE_NONE && result->dtype_a != MAREY_DTYPE_NONE;
    put_count(row, result->n, is_tensor && result->status != MAREY_DIFF_SHAPE);
    put_count(row, diff->n_wrong, is_known);
    put_number(row, result->n != 0 ? (double)diff->n_wrong / (double)result->n : 0, is_known);
    put_count(row, diff->n_unequal, is_known);
    put_count(row, diff->n_nan_a, result->has_diff);
    put_count(row, diff->n_nan_b, result->has_diff);
    put_index(row, result->details,
              result->details != NULL ? result->details->first.index : UINT64_MAX);
}

static void put_worst(struct row *row, const struct marey__diff_result *result)
{
    const struct marey_tensor_diff *diff = &result->diff;
    const struct marey__diff_details *d = result->details;
    const bool is_known = result->has_diff || result->status == MAREY_DIFF_SAME;
    put_number(row, diff->abs.value, is_known);
    put_spot(row, d, d != NULL ? &d->abs : NULL);
    put_number(row, diff->rel.value, is_known);
    put_spot(row, d, d != NULL ? &d->rel : NULL);
    put_number(row, diff->ulp.value, is_known);
    put_spot(row, d, d != NULL ? &d->ulp : NULL);
}

static void put_sums(const struct row *row, const struct marey__diff_result *result)
{
    const struct marey_tensor_diff *diff = &result->diff;
    const struct marey__diff_details *d = result->details;
    put_number(row, diff->mean_abs, result->has_diff);
    put_number(row, diff->rmse, result->has_diff);
    put_number(row, diff->cosine, result->has_diff);
    put_number(row, diff->snr_db, result->has_diff);
    put_number(row, d != NULL ? d->psnr_db : NAN, true);
    put_number(row, diff->needs_abs, result->has_diff);
    put_number(row, diff->needs_rel, result->has_diff);
    put_number(row, diff->needs_ulp, result->has_diff);
    const bool has_tolerance =
        result->dtype_a != MAREY_DTYPE_NONE && result->dtype_b != MAREY_DTYPE_NONE;
    put_number(row, result->tolerance.abs, has_tolerance);
    put_number(row, result->tolerance.rel, has_tolerance);
    put_count(row, result->tolerance.ulp, has_tolerance);
    put_number(row, d != NULL ? d->noise_abs : NAN, true);
    put_text(row, result->path_b);
    put_text(row, result->source);
    put_text(row, result->dtype_a == MAREY_DTYPE_NONE ? result->form_a : NULL);
    put_text(row, result->dtype_b == MAREY_DTYPE_NONE ? result->form_b : NULL);
}

static marey_status make_tensors(struct marey_diff *diff, struct row *row)
{
    row->table = diff->tables[MAREY__DIFF_TENSORS];
    for (size_t i = 0; i < diff->n; i++) {
        const struct marey__diff_result *result = &diff->results[i];
        put_place(row, result);
        put_form(row, result);
        put_counts(row, result);
        put_worst(row, result);
        put_sums(row, result);
    }
    return marey_table_status(row->table);
}

/* ---- the first ---- */

static const struct marey_column first_columns[] = {
    WHOLE("step"),
    NUMBER("rank"),
    TEXT("phase"),
    WHOLE("seq"),
    TEXT("tree"),
    TEXT("path"),
    TEXT("status"),
    TEXT("index"),
    TEXT("a"),
    TEXT("b"),
    TEXT("bits_a"),
    TEXT("bits_b"),
    REAL("difference", NULL),
    COUNT("block_begin", NULL),
    COUNT("block_end", NULL),
    TEXT("source"),
    TEXT("dtype_a"),
    TEXT("dtype_b"),
};

/* The element's values; where there is none what the two are. */
static void put_two(struct row *row, const struct marey__diff_result *result)
{
    const struct marey__diff_details *d = result->details;
    const struct marey__diff_details *spot =
        d != NULL && d->first.index != UINT64_MAX && result->status != MAREY_DIFF_DTYPE ? d : NULL;
    const bool has_forms = result->status == MAREY_DIFF_SHAPE ||
                           result->status == MAREY_DIFF_KIND || result->basis == MAREY__BY_VALUE;
    put_index(row, d, spot != NULL ? spot->first.index : UINT64_MAX);
    if (spot != NULL) {
        put_text(row, spot->first.a);
        put_text(row, spot->first.b);
    } else if (result->status == MAREY_DIFF_DTYPE) {
        put_text(row, type_name(result->dtype_a));
        put_text(row, type_name(result->dtype_b));
    } else {
        put_text(row, has_forms ? result->form_a : NULL);
        put_text(row, has_forms ? result->form_b : NULL);
    }
    put_text(row, spot != NULL ? spot->bits_a : NULL);
    put_text(row, spot != NULL ? spot->bits_b : NULL);
    put_number(row, spot != NULL ? spot->difference : NAN, true);
    const bool has_block = d != NULL && d->block_end > d->block_begin;
    put_count(row, has_block ? d->block_begin : 0, has_block);
    put_count(row, has_block ? d->block_end : 0, has_block);
}

static marey_status make_first(struct marey_diff *diff, struct row *row)
{
    const struct marey__diff_result *first = marey__diff_first(diff);
    row->table = diff->tables[MAREY__DIFF_FIRST];
    if (first != NULL) {
        put_place(row, first);
        put_two(row, first);
        put_text(row, first->source);
        put_text(row, type_name(first->dtype_a));
        put_text(row, type_name(first->dtype_b));
    }
    return marey_table_status(row->table);
}

/* ---- steps ---- */

static const struct marey_column step_columns[] = {
    WHOLE("step"),        COUNT("n", "values"),   COUNT("same", NULL),      COUNT("close", NULL),
    COUNT("noise", NULL), COUNT("unknown", NULL), COUNT("different", NULL), COUNT("missing", NULL),
    COUNT("extra", NULL),
};

static marey_status make_steps(struct marey_diff *diff, struct row *row)
{
    row->table = diff->tables[MAREY__DIFF_STEPS];
    for (size_t i = 0; i < diff->n;) {
        const uint64_t step = diff->results[i].step;
        uint64_t n[MAREY_N_DIFF_STATUSES] = {0}, all = 0;
        for (; i < diff->n && diff->results[i].step == step; i++, all++)
            n[diff->results[i].status]++;
        const uint64_t cells[] = {
            step,
            all,
            n[MAREY_DIFF_SAME],
            n[MAREY_DIFF_CLOSE],
            n[MAREY_DIFF_NOISE],
            n[MAREY_DIFF_UNKNOWN],
            n[MAREY_DIFF_DIFFERENT] + n[MAREY_DIFF_DTYPE] + n[MAREY_DIFF_SHAPE] + n[MAREY_DIFF_KIND],
            n[MAREY_DIFF_MISSING],
            n[MAREY_DIFF_EXTRA],
        };
        for (size_t c = 0; c < MAREY__COUNT_OF(cells); c++)
            marey_table_u64(row->table, cells[c]);
    }
    return marey_table_status(row->table);
}

/* ---- all ---- */

static const struct marey_column error_columns[] = {
    TEXT("path"),
    TEXT("reference"),
    TEXT("current"),
    TEXT("difference"),
};

#define COLUMNS(columns) columns, MAREY__COUNT_OF(columns)
const struct marey_table_definition marey__diff_definitions[] = {
    {"tensors", COLUMNS(tensor_columns), NULL,
     "pairs of values in the order of execution; `basis` is what was compared: data, digest, "
     "stats, "
     "value or none"},
    {"first", COLUMNS(first_columns), NULL,
     "the first difference, or no row; without data the elements of the first block that differs"},
    {"operations", COLUMNS(marey__diff_operation_columns), NULL,
     "operations whose inputs agree and whose outputs do not, with relative errors"},
    {"steps", COLUMNS(step_columns), NULL, "how many values of each step have which status"},
    {"warnings", COLUMNS(marey__warning_columns), NULL, "what limits the comparison"},
    {"errors", COLUMNS(error_columns), NULL,
     "the largest errors of each tensor, of a comparison inside a run"},
};

marey_status marey__diff_tables(struct marey_diff *diff)
{
    struct row row = {0};
    marey_status status = make_tensors(diff, &row);
    if (status == MAREY_OK)
        status = make_first(diff, &row);
    if (status == MAREY_OK)
        status = make_steps(diff, &row);
    if (status == MAREY_OK && row.text.failed)
        status = marey__no_memory();
    marey__buf_fini(&row.text);
    return status;
}
