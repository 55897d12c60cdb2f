/*
 * Values stored without numbers: digests show whether and in which block they differ, statistics by how much at least.
 */
#include <math.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* ---- digests ---- */

bool marey__diff_equal_digests(const struct marey_dumped_value *a, const struct marey_dumped_value *b,
                               const struct marey_tolerance *tolerance)
{
    if (a->digest == NULL || b->digest == NULL || a->dtype != b->dtype ||
        memcmp(a->digest, b->digest, sizeof *a->digest) != 0)
        return false;
    return tolerance->nan_equal || tolerance->bitwise || (b->stats != NULL && b->stats->n_nan == 0);
}

/* A side's digests, stored or computed from its numbers. */
struct digests {
    struct marey_digest whole;
    const struct marey_digest *blocks; /* NULL: unknown */
    struct marey_digest *made;
    size_t n_blocks;
};

static void digests_fini(struct digests *digests)
{
    marey__free(digests->made);
}

static marey_status find_digests(const struct marey__diff_side *side, size_t i, struct digests *out)
{
    const struct marey_dumped_value *value = &side->values[i];
    struct marey_tensor tensor;
    if (value->digest != NULL) {
        *out = (struct digests){*value->digest, value->blocks, NULL, value->n_blocks};
        return MAREY_OK;
    }
    MAREY_TRY(side->open(side, i, NULL, &tensor));
    out->n_blocks = (size_t)marey_digest_blocks(marey_tensor_bytes(&tensor));
    out->blocks = out->made = marey__alloc((out->n_blocks + 1) * sizeof *out->made);
    const marey_status status = out->made != NULL
                                    ? marey_tensor_digest(&tensor, &out->whole, out->made)
                                    : marey__no_memory();
    marey__diff_close(side, i, NULL);
    return status;
}

/* The range of elements that contains the first difference. */
static marey_status find_block(const struct digests *a, const struct digests *b,
                               const struct marey_dumped_value *value, struct marey__diff_result *out)
{
    const uint64_t per_block = MAREY_DIGEST_BLOCK / marey_dtype_size(value->dtype);
    MAREY_TRY(marey__diff_details(out, value->sizes, value->rank));
    if (a->blocks == NULL || b->blocks == NULL || a->n_blocks != b->n_blocks)
        return MAREY_OK;
    for (size_t i = 0; i < a->n_blocks; i++)
        if (memcmp(&a->blocks[i], &b->blocks[i], sizeof a->blocks[i]) != 0) {
            out->details->block_begin = i * per_block;
            out->details->block_end = MAREY__MIN((i + 1) * per_block, out->n);
            break;
        }
    return MAREY_OK;
}

static marey_status compare_digests(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                    struct marey__diff_result *out)
{
    struct digests a MAREY__FINALLY(digests_fini) = {0}, b MAREY__FINALLY(digests_fini) = {0};
    MAREY_TRY(find_digests(inputs->a, ia, &a));
    MAREY_TRY(find_digests(inputs->b, ib, &b));
    out->basis = MAREY__BY_DIGEST;
    out->status =
        memcmp(&a.whole, &b.whole, sizeof a.whole) == 0 ? MAREY_DIFF_SAME : MAREY_DIFF_DIFFERENT;
    return out->status == MAREY_DIFF_SAME ? MAREY_OK
                                          : find_block(&a, &b, &inputs->b->values[ib], out);
}

/* ---- statistics ---- */

static marey_status find_stats(const struct marey__diff_side *side, size_t i,
                               struct marey_tensor_stats *out)
{
    struct marey_tensor tensor;
    if (side->values[i].stats != NULL) {
        *out = *side->values[i].stats;
        return MAREY_OK;
    }
    MAREY_TRY(side->open(side, i, NULL, &tensor));
    const marey_status status = marey_tensor_stats_get(&tensor, out);
    marey__diff_close(side, i, NULL);
    return status;
}

static bool within(double a, double b, double allowed)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= allowed;
}

/*
 * Necessary conditions: if all elements agree, these do. The extremes agree like elements, the mean within the mean
 * tolerance of elements, the norm within its norm. The converse is not true.
 */
static bool stats_agree(const struct marey_tensor_stats *a, const struct marey_tensor_stats *b,
                        const struct marey_tolerance *t)
{
    const double n = (double)b->n, rms = n > 0 ? b->l2 / sqrt(n) : 0;
    if (a->n != b->n || a->n_nan != b->n_nan || a->n_pos_inf != b->n_pos_inf ||
        a->n_neg_inf != b->n_neg_inf || (!t->nan_equal && b->n_nan != 0))
        return false;
    return within(a->min, b->min, t->abs + t->rel * fabs(b->min)) &&
           within(a->max, b->max, t->abs + t->rel * fabs(b->max)) &&
           within(a->mean, b->mean, t->abs + t->rel * rms) &&
           within(a->l2, b->l2, t->abs * sqrt(n) + t->rel * b->l2);
}

static bool stats_equal(const struct marey_tensor_stats *a, const struct marey_tensor_stats *b)
{
    static const struct marey_tolerance exact = {.nan_equal = 1};
    return stats_agree(a, b, &exact) && a->n_zero == b->n_zero && a->n_denormal == b->n_denormal &&
           a->n_negative == b->n_negative && within(a->std, b->std, 0) &&
           memcmp(a->histogram, b->histogram, sizeof a->histogram) == 0;
}

static marey_status compare_stats(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                  struct marey__diff_result *out)
{
    struct marey_tensor_stats a, b;
    MAREY_TRY(find_stats(inputs->a, ia, &a));
    MAREY_TRY(find_stats(inputs->b, ib, &b));
    out->basis = MAREY__BY_STATS;
    out->status = stats_equal(&a, &b) ? MAREY_DIFF_SAME
                  : !out->tolerance.bitwise && stats_agree(&a, &b, &out->tolerance)
                      ? MAREY_DIFF_CLOSE
                      : MAREY_DIFF_DIFFERENT;
    return MAREY_OK;
}

/* ---- available data ---- */

marey_status marey__diff_compare_kept(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                      struct marey__diff_result *out)
{
    const struct marey_dumped_value *a = &inputs->a->values[ia], *b = &inputs->b->values[ib];
    const bool has_digests = (a->digest != NULL || a->has_data) && (b->digest != NULL || b->has_data);
    const bool has_stats = (a->stats != NULL || a->has_data) && (b->stats != NULL || b->has_data);
    /* Digests compare bytes of one type; a tolerance needs numbers. */
    if (has_digests && a->dtype == b->dtype) {
        MAREY_TRY(marey__diff_settle(compare_digests(inputs, ia, ib, out), out));
        if (out->status == MAREY_DIFF_SAME || !has_stats || out->tolerance.bitwise)
            return MAREY_OK;
        MAREY__FREE_ALL((void *)out->why, out->details);
        out->why = NULL;
        out->details = NULL;
    }
    if (has_stats)
        return marey__diff_settle(compare_stats(inputs, ia, ib, out), out);
    return marey__diff_unknown(out, a->missing != NULL   ? a->missing
                                    : b->missing != NULL ? b->missing
                                                         : "nothing of it was kept");
}
