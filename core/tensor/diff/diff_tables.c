/* Results as tables: tensors, first, steps. */
#include <math.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* ---- cells ---- */

/* For a pair without details. */
static const struct marey__diff_details no_details = {.first.index = UINT64_MAX,
                                                      .abs.index = UINT64_MAX,
                                                      .rel.index = UINT64_MAX,
                                                      .ulp.index = UINT64_MAX,
                                                      .difference = NAN,
                                                      .psnr_db = NAN,
                                                      .noise_abs = NAN};

static const struct marey__diff_details *details_of(const struct marey__diff_result *result)
{
    return result->details != NULL ? result->details : &no_details;
}

static double if_known(bool is_known, double value)
{
    return is_known ? value : NAN;
}

/* `scratch` holds the text. */
static void put_index(marey_table *table, struct marey__buf *scratch,
                      const struct marey__diff_details *details, uint64_t index)
{
    scratch->len = 0;
    if (index != UINT64_MAX)
        marey__diff_index_put(scratch, details, index);
    if (index != UINT64_MAX && !scratch->failed)
        marey_table_text(table, scratch->data, scratch->len);
    else
        marey_table_null(table);
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

static void put_place(marey_table *table, const struct marey__diff_result *result)
{
    marey_table_u64(table, result->step);
    marey__put_rank(table, result->rank);
    MAREY__PUT_TEXTS(table, result->phase);
    marey_table_u64(table, result->seq);
    MAREY__PUT_TEXTS(table, result->tree == MAREY_DUMP_GRADIENTS ? "gradients" : "tensors");
    marey__put_string(table, result->path);
    MAREY__PUT_TEXTS(table, marey_diff_status_name(result->status));
}

static void put_worst(marey_table *table, struct marey__buf *scratch,
                      const struct marey__diff_details *details,
                      const struct marey__diff_spot *spot, double worst)
{
    MAREY__PUT_REALS(table, worst);
    put_index(table, scratch, details, spot->index);
    MAREY__PUT_TEXTS(table, spot->a, spot->b);
}

/* Equal tensors have no differences, whether read or not. */
static void put_tensor(marey_table *table, struct marey__buf *scratch,
                       const struct marey__diff_result *r)
{
    const struct marey_tensor_diff *const diff = &r->diff;
    const struct marey__diff_details *const d = details_of(r);
    const bool has_diff = r->has_diff, is_known = has_diff || r->status == MAREY_DIFF_SAME,
               has_a = r->dtype_a != MAREY_DTYPE_NONE, has_b = r->dtype_b != MAREY_DTYPE_NONE;
    put_place(table, r);
    MAREY__PUT_TEXTS(table, basis_names[r->basis], type_name(r->dtype_a), type_name(r->dtype_b),
                     has_a ? r->form_a : NULL, has_b ? r->form_b : NULL);
    marey__put_u64_or_null(table, r->n, has_a && has_b && r->status != MAREY_DIFF_SHAPE);
    marey__put_u64_or_null(table, diff->n_wrong, is_known);
    MAREY__PUT_REALS(table, if_known(is_known, r->n != 0 ? (double)diff->n_wrong / (double)r->n : 0));
    marey__put_u64_or_null(table, diff->n_unequal, is_known);
    marey__put_u64_or_null(table, diff->n_nan_a, has_diff);
    marey__put_u64_or_null(table, diff->n_nan_b, has_diff);
    put_index(table, scratch, d, d->first.index);
    put_worst(table, scratch, d, &d->abs, if_known(is_known, diff->abs.value));
    put_worst(table, scratch, d, &d->rel, if_known(is_known, diff->rel.value));
    put_worst(table, scratch, d, &d->ulp, if_known(is_known, diff->ulp.value));
    MAREY__PUT_REALS(table, if_known(has_diff, diff->mean_abs), if_known(has_diff, diff->rmse),
                     if_known(has_diff, diff->cosine), if_known(has_diff, diff->snr_db), d->psnr_db,
                     if_known(has_diff, diff->needs_abs), if_known(has_diff, diff->needs_rel),
                     if_known(has_diff, diff->needs_ulp), if_known(has_a && has_b, r->tolerance.abs),
                     if_known(has_a && has_b, r->tolerance.rel));
    marey__put_u64_or_null(table, r->tolerance.ulp, has_a && has_b);
    MAREY__PUT_REALS(table, d->noise_abs);
    MAREY__PUT_TEXTS(table, r->path_b, r->source, has_a ? NULL : r->form_a, has_b ? NULL : r->form_b);
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

/* Includes the element's values; without an element, descriptions of both sides. */
static void put_first(marey_table *table, struct marey__buf *scratch,
                      const struct marey__diff_result *r)
{
    const struct marey__diff_details *const d = details_of(r);
    const bool is_type = r->status == MAREY_DIFF_DTYPE,
               has_spot = d->first.index != UINT64_MAX && !is_type,
               has_forms = r->status == MAREY_DIFF_SHAPE || r->status == MAREY_DIFF_KIND ||
                           r->basis == MAREY__BY_VALUE,
               has_block = d->block_end > d->block_begin;
    put_place(table, r);
    put_index(table, scratch, d, has_spot ? d->first.index : UINT64_MAX);
    if (has_spot)
        MAREY__PUT_TEXTS(table, d->first.a, d->first.b, d->bits_a, d->bits_b);
    else if (is_type)
        MAREY__PUT_TEXTS(table, type_name(r->dtype_a), type_name(r->dtype_b), NULL, NULL);
    else
        MAREY__PUT_TEXTS(table, has_forms ? r->form_a : NULL, has_forms ? r->form_b : NULL, NULL,
                         NULL);
    MAREY__PUT_REALS(table, if_known(has_spot, d->difference));
    marey__put_u64_or_null(table, d->block_begin, has_block);
    marey__put_u64_or_null(table, d->block_end, has_block);
    MAREY__PUT_TEXTS(table, r->source, type_name(r->dtype_a), type_name(r->dtype_b));
}

/* ---- steps ---- */

static const struct marey_column step_columns[] = {
    WHOLE("step"),        COUNT("n", "values"),   COUNT("same", NULL),      COUNT("close", NULL),
    COUNT("noise", NULL), COUNT("unknown", NULL), COUNT("different", NULL), COUNT("missing", NULL),
    COUNT("extra", NULL),
};

static void put_steps(marey_table *table, const struct marey_diff *diff)
{
    for (size_t i = 0; i < diff->n;) {
        const uint64_t step = diff->results[i].step;
        uint64_t n[MAREY_N_DIFF_STATUSES] = {0}, all = 0;
        for (; i < diff->n && diff->results[i].step == step; i++, all++)
            n[diff->results[i].status]++;
        MAREY__PUT_COUNTS(table, step, all, n[MAREY_DIFF_SAME], n[MAREY_DIFF_CLOSE],
                          n[MAREY_DIFF_NOISE], n[MAREY_DIFF_UNKNOWN],
                          n[MAREY_DIFF_DIFFERENT] + n[MAREY_DIFF_DTYPE] + n[MAREY_DIFF_SHAPE] +
                              n[MAREY_DIFF_KIND],
                          n[MAREY_DIFF_MISSING], n[MAREY_DIFF_EXTRA]);
    }
}

/* ---- operations, which diff_order.c fills ---- */

static const struct marey_column operation_columns[] = {
    {"step", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    NUMBER("rank"),
    TEXT("phase"),
    {"seq", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    TEXT("operation"),
    TEXT("output"),
    REAL("error_in", "input error"),
    REAL("error_out", "output error"),
    REAL("growth", NULL),
};

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
    {"operations", COLUMNS(operation_columns), NULL,
     "operations whose inputs agree and whose outputs do not, with relative errors"},
    {"steps", COLUMNS(step_columns), NULL, "how many values of each step have which status"},
    {"warnings", COLUMNS(marey__warning_columns), NULL, "what limits the comparison"},
    {"errors", COLUMNS(error_columns), NULL,
     "the largest errors of each tensor, of a comparison inside a run"},
};

marey_status marey__diff_tables(struct marey_diff *diff)
{
    struct marey__buf scratch MAREY__FINALLY(marey__buf_fini) = {0};
    const struct marey__diff_result *const first = marey__diff_first(diff);
    for (size_t i = 0; i < diff->n; i++)
        put_tensor(diff->tables[MAREY__DIFF_TENSORS], &scratch, &diff->results[i]);
    if (first != NULL)
        put_first(diff->tables[MAREY__DIFF_FIRST], &scratch, first);
    put_steps(diff->tables[MAREY__DIFF_STEPS], diff);
    MAREY__TRY_MEMORY(!scratch.failed);
    for (size_t i = MAREY__DIFF_TENSORS; i <= MAREY__DIFF_STEPS; i++)
        MAREY_TRY(marey_table_status(diff->tables[i]));
    return MAREY_OK;
}
