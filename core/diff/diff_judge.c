/* One pair of values: by what they are compared, and what comes of it. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "diff/diff_internal.h"

bool kymo__diff_is_tensor(const struct kymo_dumped_value *value)
{
    return value->dtype != KYMO_DTYPE_NONE;
}

struct kymo_tolerance kymo__diff_tolerance(const struct kymo_diff_options *options,
                                           const struct kymo_dumped_value *a,
                                           const struct kymo_dumped_value *b)
{
    for (size_t i = options->n_rules; i-- > 0;)
        if (fnmatch(options->rules[i].pattern, a->name, 0) == 0)
            return options->rules[i].tolerance;
    if (options->tolerance != NULL)
        return *options->tolerance;
    struct kymo_tolerance tolerance = kymo_tolerance_default(a->dtype, b->dtype);
    if (options->nan_differs)
        tolerance.nan_equal = 0;
    return tolerance;
}

void kymo__diff_drop(const struct kymo__diff_side *side, size_t value)
{
    if (side->drop != NULL)
        side->drop(side, value);
}

kymo_status kymo__diff_unknown(struct kymo__diff_result *out, const char *why)
{
    out->status = KYMO_DIFF_UNKNOWN;
    out->basis = KYMO__BY_NOTHING;
    out->why = kymo__strndup(why, strlen(why));
    return out->why != NULL ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory to compare two values");
}

bool kymo__diff_is_image(enum kymo_dump_type type)
{
    return type == KYMO_DUMP_IMAGE_RGB || type == KYMO_DUMP_IMAGE_BGR || type == KYMO_DUMP_IMAGE_I;
}

kymo_status kymo__diff_details(struct kymo__diff_result *out, const int64_t *sizes, uint32_t n_dims)
{
    const size_t n_bytes = n_dims * sizeof *sizes;
    struct kymo__diff_details *d = kymo__calloc(1, sizeof *d + n_bytes);
    if (d == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to compare two values");
    out->details = d;
    d->n_dims = n_dims;
    if (n_dims != 0)
        memcpy(d->sizes, sizes, n_bytes);
    d->first.index = d->abs.index = d->rel.index = d->ulp.index = UINT64_MAX;
    d->difference = d->psnr_db = d->noise_abs = NAN;
    return KYMO_OK;
}

static bool same_sizes(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0);
}

static uint64_t count_of(const struct kymo_dumped_value *value)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < value->rank; i++)
        n *= (uint64_t)value->sizes[i];
    return n;
}

/* A JSON tells no sizes behind an axis of 0, and no type: "[]" is any empty tensor. */
static bool both_empty_by_json(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b)
{
    return (a->type == KYMO_DUMP_JSON || b->type == KYMO_DUMP_JSON) && count_of(a) == 0 &&
           count_of(b) == 0;
}

static kymo_status judge_tensors(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                 struct kymo__diff_result *out)
{
    const struct kymo_dumped_value *a = &court->a->values[ia], *b = &court->b->values[ib];
    out->n = count_of(b);
    out->tolerance = kymo__diff_tolerance(court->options, a, b);
    if (!same_sizes(a, b) && !both_empty_by_json(a, b)) {
        out->status = KYMO_DIFF_SHAPE;
        out->basis = KYMO__BY_VALUE;
        return KYMO_OK;
    }
    if (kymo__diff_equal_digests(a, b, &out->tolerance)) {
        out->status = KYMO_DIFF_SAME;
        out->basis = KYMO__BY_DIGEST;
        return KYMO_OK;
    }
    if (out->n == 0) {
        out->status = KYMO_DIFF_SAME;
        out->basis = KYMO__BY_DATA;
        return KYMO_OK;
    }
    if (a->has_data && b->has_data)
        return kymo__diff_judge_data(court, ia, ib, out);
    return kymo__diff_judge_kept(court, ia, ib, out);
}

/* Whether its type is that of the program's tensor. Pictures are compared by their pixels. */
static bool has_own_type(const struct kymo_dumped_value *value)
{
    return value->kind == KYMO_DUMP_TENSOR && !value->is_untyped && !kymo__diff_is_image(value->type);
}

kymo_status kymo__diff_judge(const struct kymo__diff_court *court, size_t ia, size_t ib,
                             struct kymo__diff_result *out)
{
    const struct kymo_dumped_value *a = &court->a->values[ia], *b = &court->b->values[ib];
    if (!kymo__diff_is_tensor(a) || !kymo__diff_is_tensor(b))
        return kymo__diff_judge_values(court, ia, ib, out);
    KYMO_TRY(judge_tensors(court, ia, ib, out));
    if (!has_own_type(a) || !has_own_type(b) || a->dtype == b->dtype)
        return KYMO_OK;
    out->is_retyped = true;
    /* Of two types all bits differ, which says nothing of the numbers. */
    if (out->tolerance.bitwise ? out->status <= KYMO_DIFF_DIFFERENT
                               : out->status < KYMO_DIFF_DIFFERENT && !court->options->allow_dtype)
        out->status = KYMO_DIFF_DTYPE;
    return KYMO_OK;
}
