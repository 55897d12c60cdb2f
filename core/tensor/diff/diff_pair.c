/* One pair of values: selects the basis of comparison, and compares. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "tensor/diff/internal.h"

struct marey_tolerance marey__diff_tolerance(const struct marey_diff_options *options,
                                             const struct marey_dumped_value *a,
                                             const struct marey_dumped_value *b)
{
    for (size_t i = options->n_rules; i-- > 0;)
        if (fnmatch(options->rules[i].pattern, a->name, 0) == 0)
            return options->rules[i].tolerance;
    if (options->tolerance != NULL)
        return *options->tolerance;
    struct marey_tolerance tolerance = marey_tolerance_default(a->dtype, b->dtype);
    if (options->nan_differs)
        tolerance.nan_equal = 0;
    return tolerance;
}

marey_status marey__diff_unknown(struct marey__diff_result *out, const char *why)
{
    out->status = MAREY_DIFF_UNKNOWN;
    out->basis = MAREY__DIFF_BY_NOTHING;
    out->why = marey__strndup(why, strlen(why));
    return out->why != NULL ? MAREY_OK : marey__no_memory();
}

marey_status marey__diff_settle(marey_status status, struct marey__diff_result *out)
{
    if (status == MAREY_OK || status == MAREY_ENOMEM)
        return status;
    marey__free(out->details); /* details of numbers read before a failure */
    out->details = NULL;
    out->has_diff = false;
    return marey__diff_unknown(out, marey_last_error());
}

size_t marey__diff_find(const struct marey__diff_side *side, enum marey_dump_tree tree,
                        const char *name)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->values[i].tree == tree && strcmp(side->values[i].name, name) == 0)
            return i;
    return MAREY__DIFF_NONE;
}

marey_status marey__diff_details(struct marey__diff_result *out, const int64_t *sizes, uint32_t n_dims)
{
    const size_t n_bytes = n_dims * sizeof *sizes;
    struct marey__diff_details *d = marey__calloc(1, sizeof *d + n_bytes);
    MAREY__TRY_MEMORY(d != NULL);
    out->details = d;
    d->n_dims = n_dims;
    if (n_dims != 0)
        memcpy(d->sizes, sizes, n_bytes);
    d->first.index = d->abs.index = d->rel.index = d->ulp.index = UINT64_MAX;
    d->difference = d->psnr_db = d->noise_abs = NAN;
    return MAREY_OK;
}

static uint64_t count_of(const struct marey_dumped_value *value)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < value->rank; i++)
        n *= (uint64_t)value->sizes[i];
    return n;
}

/* JSON has no sizes after an axis of 0, and no type: "[]" is any empty tensor. */
static bool both_empty_by_json(const struct marey_dumped_value *a, const struct marey_dumped_value *b)
{
    return (a->type == MAREY_DUMP_JSON || b->type == MAREY_DUMP_JSON) && count_of(a) == 0 &&
           count_of(b) == 0;
}

static marey_status compare_tensors(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                    struct marey__diff_result *out)
{
    const struct marey_dumped_value *a = &inputs->a->values[ia], *b = &inputs->b->values[ib];
    out->n = count_of(b);
    out->tolerance = marey__diff_tolerance(inputs->options, a, b);
    out->status = MAREY_DIFF_SAME;
    if (!marey__diff_same_sizes(a->rank, a->sizes, b->rank, b->sizes) && !both_empty_by_json(a, b)) {
        out->status = MAREY_DIFF_SHAPE;
        out->basis = MAREY__BY_VALUE;
    } else if (marey__diff_equal_digests(a, b, &out->tolerance)) {
        out->basis = MAREY__BY_DIGEST;
    } else if (out->n == 0) {
        out->basis = MAREY__BY_DATA;
    } else {
        return a->has_data && b->has_data ? marey__diff_compare_data(inputs, ia, ib, out)
                                          : marey__diff_compare_kept(inputs, ia, ib, out);
    }
    return MAREY_OK;
}

/* Whether its type is that of the program's tensor. Images are compared by pixels. */
static bool has_own_type(const struct marey_dumped_value *value)
{
    return value->kind == MAREY_DUMP_TENSOR && !value->is_untyped && !marey__is_image(value->type);
}

marey_status marey__diff_compare_pair(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                      struct marey__diff_result *out)
{
    const struct marey_dumped_value *a = &inputs->a->values[ia], *b = &inputs->b->values[ib];
    if (!marey__diff_is_tensor(a) || !marey__diff_is_tensor(b))
        return marey__diff_compare_values(inputs, ia, ib, out);
    MAREY_TRY(compare_tensors(inputs, ia, ib, out));
    if (!has_own_type(a) || !has_own_type(b) || a->dtype == b->dtype)
        return MAREY_OK;
    out->is_retyped = true;
    /* With different types all bits differ, which is no information about the numbers. */
    if (out->tolerance.bitwise ? out->status <= MAREY_DIFF_DIFFERENT
                               : out->status < MAREY_DIFF_DIFFERENT && !inputs->options->allow_dtype)
        out->status = MAREY_DIFF_DTYPE;
    return MAREY_OK;
}
