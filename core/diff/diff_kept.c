/*
 * What was kept in place of numbers: digests, which tell whether anything differs and in which block, and statistics,
 * which tell by how much at least. Of a side that has its numbers the same is made of them.
 */
#include <math.h>
#include <string.h>

#include "diff/diff_internal.h"

/* ---- digests ---- */

bool kymo__diff_equal_digests(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b,
                              const struct kymo_tolerance *tolerance)
{
    if (a->digest == NULL || b->digest == NULL || a->dtype != b->dtype ||
        memcmp(a->digest, b->digest, sizeof *a->digest) != 0)
        return false;
    return tolerance->nan_equal || tolerance->bitwise || (b->stats != NULL && b->stats->n_nan == 0);
}

/* A side's digests, its own or made of its numbers. */
struct digests {
    struct kymo_digest whole;
    const struct kymo_digest *blocks; /* NULL: not known */
    struct kymo_digest *made;
    size_t n_blocks;
};

static kymo_status make_digests(const struct kymo__diff_side *side, size_t value, struct digests *out)
{
    struct kymo_tensor tensor;
    KYMO_TRY(side->get(side, value, &tensor));
    out->n_blocks = (size_t)kymo_digest_blocks(kymo_tensor_bytes(&tensor));
    out->made = kymo__alloc((out->n_blocks + 1) * sizeof *out->made);
    out->blocks = out->made;
    const kymo_status status = out->made != NULL
                                   ? kymo_tensor_digest(&tensor, &out->whole, out->made)
                                   : kymo__fail(KYMO_ENOMEM, "no memory for digests");
    kymo__diff_drop(side, value);
    return status;
}

static kymo_status find_digests(const struct kymo__diff_side *side, size_t i, struct digests *out)
{
    const struct kymo_dumped_value *value = &side->values[i];
    *out = (struct digests){0};
    if (value->digest == NULL)
        return make_digests(side, i, out);
    out->whole = *value->digest;
    out->blocks = value->blocks;
    out->n_blocks = value->n_blocks;
    return KYMO_OK;
}

/* Between which elements the first difference lies. */
static kymo_status find_block(const struct digests *a, const struct digests *b,
                              const struct kymo_dumped_value *value, struct kymo__diff_result *out)
{
    const uint64_t per_block = KYMO_DIGEST_BLOCK / kymo_dtype_size(value->dtype);
    KYMO_TRY(kymo__diff_details(out, value->sizes, value->rank));
    if (a->blocks == NULL || b->blocks == NULL || a->n_blocks != b->n_blocks)
        return KYMO_OK;
    for (size_t i = 0; i < a->n_blocks; i++)
        if (memcmp(&a->blocks[i], &b->blocks[i], sizeof a->blocks[i]) != 0) {
            out->details->block_begin = i * per_block;
            out->details->block_end = KYMO__MIN((i + 1) * per_block, out->n);
            break;
        }
    return KYMO_OK;
}

static kymo_status judge_digests(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                 struct kymo__diff_result *out)
{
    struct digests a = {0}, b = {0};
    kymo_status status = find_digests(court->a, ia, &a);
    if (status == KYMO_OK)
        status = find_digests(court->b, ib, &b);
    if (status == KYMO_OK) {
        out->basis = KYMO__BY_DIGEST;
        out->status =
            memcmp(&a.whole, &b.whole, sizeof a.whole) == 0 ? KYMO_DIFF_SAME : KYMO_DIFF_DIFFERENT;
        if (out->status == KYMO_DIFF_DIFFERENT)
            status = find_block(&a, &b, &court->b->values[ib], out);
    }
    kymo__free(a.made);
    kymo__free(b.made);
    return status == KYMO_OK || status == KYMO_ENOMEM ? status
                                                      : kymo__diff_unknown(out, kymo_last_error());
}

/* ---- statistics ---- */

static kymo_status find_stats(const struct kymo__diff_side *side, size_t i,
                              struct kymo_tensor_stats *out)
{
    struct kymo_tensor tensor;
    if (side->values[i].stats != NULL) {
        *out = *side->values[i].stats;
        return KYMO_OK;
    }
    KYMO_TRY(side->get(side, i, &tensor));
    const kymo_status status = kymo_tensor_stats_get(&tensor, out);
    kymo__diff_drop(side, i);
    return status;
}

static bool within(double a, double b, double allowed)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= allowed;
}

/*
 * If each element agrees, these do: the extremes as if they were elements, the mean within the mean of what elements
 * may differ by, the norm within the norm of it. So what fails here would fail there; the reverse is not true.
 */
static bool stats_agree(const struct kymo_tensor_stats *a, const struct kymo_tensor_stats *b,
                        const struct kymo_tolerance *t)
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

static bool stats_equal(const struct kymo_tensor_stats *a, const struct kymo_tensor_stats *b)
{
    static const struct kymo_tolerance exact = {.nan_equal = 1};
    return stats_agree(a, b, &exact) && a->n_zero == b->n_zero && a->n_denormal == b->n_denormal &&
           a->n_negative == b->n_negative && within(a->std, b->std, 0) &&
           memcmp(a->histogram, b->histogram, sizeof a->histogram) == 0;
}

static kymo_status judge_stats(const struct kymo__diff_court *court, size_t ia, size_t ib,
                               struct kymo__diff_result *out)
{
    struct kymo_tensor_stats a, b;
    kymo_status status = find_stats(court->a, ia, &a);
    if (status == KYMO_OK)
        status = find_stats(court->b, ib, &b);
    if (status != KYMO_OK)
        return status == KYMO_ENOMEM ? status : kymo__diff_unknown(out, kymo_last_error());
    out->basis = KYMO__BY_STATS;
    out->status = stats_equal(&a, &b) ? KYMO_DIFF_SAME
                  : !out->tolerance.bitwise && stats_agree(&a, &b, &out->tolerance)
                      ? KYMO_DIFF_CLOSE
                      : KYMO_DIFF_DIFFERENT;
    return KYMO_OK;
}

/* ---- what there is ---- */

static const char *why_not(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b)
{
    return a->missing != NULL   ? a->missing
           : b->missing != NULL ? b->missing
                                : "nothing of it was kept";
}

kymo_status kymo__diff_judge_kept(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                  struct kymo__diff_result *out)
{
    const struct kymo_dumped_value *a = &court->a->values[ia], *b = &court->b->values[ib];
    const bool has_digests = (a->digest != NULL || a->has_data) && (b->digest != NULL || b->has_data);
    const bool has_stats = (a->stats != NULL || a->has_data) && (b->stats != NULL || b->has_data);
    /* Digests are of one type's bytes; a tolerance needs numbers. */
    if (has_digests && a->dtype == b->dtype) {
        KYMO_TRY(judge_digests(court, ia, ib, out));
        if (out->status == KYMO_DIFF_SAME || !has_stats || out->tolerance.bitwise)
            return KYMO_OK;
        kymo__free((void *)out->why);
        kymo__free(out->details);
        out->why = NULL;
        out->details = NULL;
    }
    if (has_stats)
        return judge_stats(court, ia, ib, out);
    return kymo__diff_unknown(out, why_not(a, b));
}
