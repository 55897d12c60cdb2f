/*
 * Compares the numbers of two tensors. If both have block digests, and statistics that report only finite numbers, only
 * blocks that differ are read: the others contribute nothing to sums of differences, and results for the whole tensor
 * follow from the statistics.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* ---- some blocks ---- */

static bool is_finite_throughout(const struct marey_tensor_stats *stats)
{
    return stats != NULL && stats->n_nan == 0 && stats->n_pos_inf == 0 && stats->n_neg_inf == 0;
}

/* The digests of an image are those of its tensor, not of the pixels that are read. */
static bool can_skip_blocks(const struct marey_dumped_value *a, const struct marey_dumped_value *b)
{
    return !marey__is_image(a->type) && !marey__is_image(b->type) && a->dtype == b->dtype &&
           a->blocks != NULL && b->blocks != NULL && a->n_blocks > 1 &&
           a->n_blocks == b->n_blocks && a->n_blocks == marey_digest_blocks(a->n_bytes) &&
           is_finite_throughout(a->stats) && is_finite_throughout(b->stats);
}

/* Sums of differences over parts. */
struct sums {
    double abs, squares;
};

static void keep_worst(struct marey_worst *into, struct marey_worst part, uint64_t offset)
{
    if (part.index != UINT64_MAX && (into->index == UINT64_MAX || part.value > into->value))
        *into = (struct marey_worst){part.value, part.index + offset};
}

static void add_part(struct marey_tensor_diff *into, struct sums *sums,
                     const struct marey_tensor_diff *part, uint64_t offset)
{
    into->n_wrong += part->n_wrong;
    into->n_unequal += part->n_unequal;
    if (into->first_wrong == UINT64_MAX && part->first_wrong != UINT64_MAX)
        into->first_wrong = part->first_wrong + offset;
    keep_worst(&into->abs, part->abs, offset);
    keep_worst(&into->rel, part->rel, offset);
    keep_worst(&into->ulp, part->ulp, offset);
    into->needs_abs = fmax(into->needs_abs, part->needs_abs);
    into->needs_rel = fmax(into->needs_rel, part->needs_rel);
    into->needs_ulp = fmax(into->needs_ulp, part->needs_ulp);
    sums->abs += part->mean_abs * (double)part->n;
    sums->squares += part->rmse * part->rmse * (double)part->n;
}

/* Results for the whole tensor: |a|, |b| and |a - b| give the angle between them. */
static void conclude_parts(struct marey_tensor_diff *diff, const struct sums *sums,
                           const struct marey_tensor_stats *a, const struct marey_tensor_stats *b)
{
    const double n = (double)diff->n;
    diff->mean_abs = sums->abs / n;
    diff->rmse = sqrt(sums->squares / n);
    diff->mean_a = a->mean;
    diff->mean_b = b->mean;
    diff->max_a = fmax(fabs(a->min), fabs(a->max));
    diff->max_b = fmax(fabs(b->min), fabs(b->max));
    diff->cosine = (a->l2 * a->l2 + b->l2 * b->l2 - sums->squares) / (2 * a->l2 * b->l2);
    diff->snr_db = 10 * log10(b->l2 * b->l2 / sums->squares);
}

/* The elements from `begin` on, with sizes `n`; `file` is storage for a part of a file. */
static struct marey_tensor part_of(const struct marey_tensor *whole, uint64_t begin,
                                   const int64_t *n, struct marey__tensor_file *file)
{
    const uint64_t at = begin * marey_dtype_size(whole->dtype);
    struct marey_tensor part = {
        .dtype = whole->dtype, .rank = 1, .sizes = n, .memory = whole->memory, .data = file};
    if (marey__tensor_is_in_file(whole)) {
        const struct marey__tensor_file *from = whole->data;
        *file = (struct marey__tensor_file){.fd = from->fd, .at = from->at + at, .path = from->path};
    } else {
        part.data = (const char *)whole->data + at;
    }
    return part;
}

static marey_status compare_blocks(const struct marey_dumped_value *a,
                                   const struct marey_dumped_value *b,
                                   const struct marey_tensor *ta, const struct marey_tensor *tb,
                                   const struct marey_tolerance *tolerance,
                                   struct marey_tensor_diff *out)
{
    const uint64_t size = marey_dtype_size(a->dtype), per_block = MAREY_DIGEST_BLOCK / size;
    struct sums sums = {0};
    *out = (struct marey_tensor_diff){.n = marey_tensor_count(ta), .first_wrong = UINT64_MAX};
    out->abs.index = out->rel.index = out->ulp.index = UINT64_MAX;
    for (size_t i = 0; i < a->n_blocks; i++) {
        if (memcmp(&a->blocks[i], &b->blocks[i], sizeof a->blocks[i]) == 0)
            continue;
        const uint64_t begin = i * per_block;
        const int64_t n = (int64_t)MAREY__MIN(per_block, out->n - begin);
        struct marey__tensor_file file_a, file_b;
        const struct marey_tensor part_a = part_of(ta, begin, &n, &file_a),
                                  part_b = part_of(tb, begin, &n, &file_b);
        struct marey_tensor_diff part;
        MAREY_TRY(marey_tensor_compare(&part_a, &part_b, tolerance, &part));
        add_part(out, &sums, &part, begin);
    }
    conclude_parts(out, &sums, a->stats, b->stats);
    return MAREY_OK;
}

/* ---- single elements ---- */

static marey_status fill_spot(struct marey__diff_spot *spot, uint64_t index,
                              const struct marey_tensor *a, const struct marey_tensor *b)
{
    spot->index = index;
    if (index == UINT64_MAX)
        return MAREY_OK;
    MAREY_TRY(marey_tensor_element(a, index, spot->a, sizeof spot->a));
    return marey_tensor_element(b, index, spot->b, sizeof spot->b);
}

static void put_bits(char *out, size_t room, const struct marey_tensor *tensor, uint64_t index)
{
    const size_t size = marey_dtype_size(tensor->dtype);
    struct marey__tensor_view view;
    unsigned char element[16];
    marey__tensor_view_of(tensor, &view);
    const unsigned char *bytes = marey__tensor_view_block(&view, index, 1, element);
    size_t len = (size_t)snprintf(out, room, "0x");
    for (size_t i = size; i-- > 0 && len + 2 < room; len += 2)
        snprintf(out + len, room - len, "%02x", bytes[i]);
}

static marey_status fill_details(struct marey__diff_result *out, const struct marey_tensor *a,
                                 const struct marey_tensor *b, bool has_pixels)
{
    struct marey__diff_details *d = out->details;
    MAREY_TRY(fill_spot(&d->first, out->diff.first_wrong, a, b));
    MAREY_TRY(fill_spot(&d->abs, out->diff.abs.index, a, b));
    MAREY_TRY(fill_spot(&d->rel, out->diff.rel.index, a, b));
    MAREY_TRY(fill_spot(&d->ulp, out->diff.ulp.index, a, b));
    if (d->first.index != UINT64_MAX) {
        put_bits(d->bits_a, sizeof d->bits_a, a, d->first.index);
        put_bits(d->bits_b, sizeof d->bits_b, b, d->first.index);
        long double difference[2];
        /* Complex differences have no order. */
        if (marey__tensor_difference(a, b, d->first.index, difference) == 1)
            d->difference = (double)difference[0];
    }
    const double peak = b->dtype == MAREY_U8 ? 255 : b->dtype == MAREY_U16 ? 65535 : NAN;
    if (has_pixels)
        d->psnr_db = 20 * log10(peak / out->diff.rmse);
    return MAREY_OK;
}

/* ---- noise ---- */

/* The corresponding value in the noise run, if it has numbers of the same sizes. */
static size_t find_noise(const struct marey__diff_side *side, const struct marey_dumped_value *like)
{
    const size_t i = marey__diff_find(side, like->tree, like->name);
    const struct marey_dumped_value *const value = i != MAREY__DIFF_NONE ? &side->values[i] : NULL;
    return value != NULL && value->has_data &&
                   marey__diff_same_sizes(value->rank, value->sizes, like->rank, like->sizes)
               ? i
               : MAREY__DIFF_NONE;
}

/* Treats differences up to a factor times the difference of two reference runs as noise. */
static marey_status weigh_noise(const struct marey__diff_inputs *inputs,
                                const struct marey_dumped_value *b, const struct marey_tensor *ta,
                                const struct marey_tensor *tb, struct marey__diff_result *out)
{
    const size_t i = find_noise(inputs->noise, b);
    struct marey_tensor tn;
    struct marey_tensor_diff noise, again;
    if (i == MAREY__DIFF_NONE || inputs->noise->open(inputs->noise, i, NULL, &tn) != MAREY_OK)
        return MAREY_OK;
    const marey_status status =
        marey_tensor_compare_with(&tn, tb, &out->tolerance, inputs->n_threads, &noise);
    marey__diff_close(inputs->noise, i, NULL);
    MAREY_TRY(status);
    const double factor = inputs->options->noise_factor != 0 ? inputs->options->noise_factor : 3;
    struct marey_tolerance wider = out->tolerance;
    wider.abs = fmax(wider.abs, factor * noise.abs.value);
    out->details->noise_abs = noise.abs.value;
    if (wider.bitwise || wider.abs <= out->tolerance.abs)
        return MAREY_OK;
    MAREY_TRY(marey_tensor_compare_with(ta, tb, &wider, inputs->n_threads, &again));
    if (again.n_wrong == 0)
        out->status = MAREY_DIFF_NOISE;
    return MAREY_OK;
}

/* ---- numbers of a JSON without types ---- */

/*
 * The writer may have shortened a float32 to the digits that read back to it: 0.1 for 0.100000001490116. Such text
 * means the float32, although its nearest float64 is another number. Other numbers stay unchanged, so that nothing is
 * rounded before the comparison.
 */

/* Whether `number` is the shortened form of `raw`, a number of the type; sets its value. */
static bool is_shortened(enum marey_dtype type, const void *raw, double number, double *value)
{
    const struct marey_tensor one = {.data = raw, .dtype = type};
    char text[64];
    marey__widen_to_double(type, raw, 1, value);
    return marey_tensor_element(&one, 0, text, sizeof text) == MAREY_OK &&
           strtod(text, NULL) == number;
}

static double restored(enum marey_dtype type, double number)
{
    double value;
    if (type != MAREY_F32) {
        const uint32_t raw = marey__narrow(type, number);
        return is_shortened(type, &raw, number, &value) ? value : number;
    }
    /* The float64 may have been rounded to the midpoint of two float32, so check the neighbors of its nearest one. */
    const float nearest = (float)number;
    const float near[] = {nearest, nextafterf(nearest, -INFINITY), nextafterf(nearest, INFINITY)};
    for (size_t i = 0; i < MAREY__COUNT_OF(near); i++)
        if (is_shortened(type, &near[i], number, &value))
            return value;
    return number;
}

marey_status marey__diff_restore(const struct marey_dumped_value *value,
                                 const struct marey_dumped_value *other,
                                 struct marey_tensor *tensor, double **made)
{
    const struct marey__dtype *type = marey__dtype_get(other->dtype);
    const uint64_t n = marey_tensor_count(tensor);
    if (!value->is_untyped || tensor->dtype != MAREY_F64 || type->kind != MAREY__IS_FLOAT ||
        type->n_parts != 1 || type->part == MAREY_F64)
        return MAREY_OK;
    *made = marey__alloc((size_t)n * sizeof **made + 1);
    MAREY__TRY_MEMORY(*made != NULL);
    const double *given = tensor->data;
    for (uint64_t i = 0; i < n; i++)
        (*made)[i] = isfinite(given[i]) ? restored(other->dtype, given[i]) : given[i];
    tensor->data = *made;
    return MAREY_OK;
}

/* ---- the pair ---- */

/* Fills in the results after `diff`. */
static marey_status describe(struct marey__diff_result *out, const struct marey_tensor *a,
                             const struct marey_tensor *b, bool has_pixels)
{
    out->n = out->diff.n;
    out->basis = MAREY__BY_DATA;
    out->has_diff = true;
    out->status = out->diff.n_wrong != 0     ? MAREY_DIFF_DIFFERENT
                  : out->diff.n_unequal != 0 ? MAREY_DIFF_CLOSE
                                             : MAREY_DIFF_SAME;
    if (out->status == MAREY_DIFF_SAME)
        return MAREY_OK;
    MAREY_TRY(marey__diff_details(out, b->sizes, b->rank));
    return fill_details(out, a, b, has_pixels);
}

marey_status marey__diff_compare_numbers(const struct marey_tensor *a, const struct marey_tensor *b,
                                         struct marey__diff_result *out)
{
    MAREY_TRY(marey_tensor_compare(a, b, &out->tolerance, &out->diff));
    return describe(out, a, b, false);
}

static marey_status compare_gotten(const struct marey__diff_inputs *inputs,
                                   const struct marey_dumped_value *a,
                                   const struct marey_dumped_value *b, struct marey_tensor *ta,
                                   struct marey_tensor *tb, struct marey__diff_result *out)
{
    double *made_a MAREY__FREED = NULL, *made_b MAREY__FREED = NULL;
    if (!marey__diff_same_sizes(ta->rank, ta->sizes, tb->rank, tb->sizes)) {
        out->status = MAREY_DIFF_SHAPE; /* images, whose sizes are not in a manifest */
        out->basis = MAREY__BY_DATA;
        return MAREY_OK;
    }
    MAREY_TRY(marey__diff_restore(a, b, ta, &made_a));
    MAREY_TRY(marey__diff_restore(b, a, tb, &made_b));
    MAREY_TRY(can_skip_blocks(a, b) ? compare_blocks(a, b, ta, tb, &out->tolerance, &out->diff)
                                    : marey_tensor_compare_with(ta, tb, &out->tolerance,
                                                                inputs->n_threads, &out->diff));
    MAREY_TRY(describe(out, ta, tb, marey__is_image(a->type) || marey__is_image(b->type)));
    if (out->status == MAREY_DIFF_DIFFERENT && inputs->noise != NULL)
        return weigh_noise(inputs, b, ta, tb, out);
    return MAREY_OK;
}

static marey_status compare_opened(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                   struct marey_tensor *ta, struct marey__diff_result *out)
{
    struct marey__tensor_file file;
    struct marey_tensor tb;
    MAREY_TRY(inputs->b->open(inputs->b, ib, &file, &tb));
    const marey_status status =
        compare_gotten(inputs, &inputs->a->values[ia], &inputs->b->values[ib], ta, &tb, out);
    marey__diff_close(inputs->b, ib, &file);
    return status;
}

marey_status marey__diff_compare_data(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                                      struct marey__diff_result *out)
{
    struct marey__tensor_file file;
    struct marey_tensor ta;
    marey_status status = inputs->a->open(inputs->a, ia, &file, &ta);
    if (status == MAREY_OK) {
        status = compare_opened(inputs, ia, ib, &ta, out);
        marey__diff_close(inputs->a, ia, &file);
    }
    return marey__diff_settle(status, out);
}
