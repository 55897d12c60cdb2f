/*
 * A pair of tensors by their numbers. Where both have digests of their blocks, and statistics that know of nothing but
 * finite numbers, only the blocks that differ are read: the rest adds nothing to any sum of differences, and what is
 * asked of the whole follows from the statistics.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diff/diff_internal.h"

/* ---- some blocks ---- */

static bool is_finite_throughout(const struct kymo_tensor_stats *stats)
{
    return stats != NULL && stats->n_nan == 0 && stats->n_pos_inf == 0 && stats->n_neg_inf == 0;
}

/* What is read of a picture is pixels, and not what its digests are of. */
static bool can_skip_blocks(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b)
{
    return !kymo__diff_is_image(a->type) && !kymo__diff_is_image(b->type) && a->dtype == b->dtype &&
           a->blocks != NULL && b->blocks != NULL && a->n_blocks > 1 &&
           a->n_blocks == b->n_blocks && a->n_blocks == kymo_digest_blocks(a->n_bytes) &&
           is_finite_throughout(a->stats) && is_finite_throughout(b->stats);
}

/* Sums of differences, from parts. */
struct sums {
    double abs, squares;
};

static void keep_worst(struct kymo_worst *into, struct kymo_worst part, uint64_t offset)
{
    if (part.index != UINT64_MAX && (into->index == UINT64_MAX || part.value > into->value))
        *into = (struct kymo_worst){part.value, part.index + offset};
}

static void add_part(struct kymo_tensor_diff *into, struct sums *sums,
                     const struct kymo_tensor_diff *part, uint64_t offset)
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

/* What is asked of the whole: |a|, |b| and |a - b| give the angle between them. */
static void conclude_parts(struct kymo_tensor_diff *diff, const struct sums *sums,
                           const struct kymo_tensor_stats *a, const struct kymo_tensor_stats *b)
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

static bool blocks_differ(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b,
                          size_t i)
{
    return memcmp(&a->blocks[i], &b->blocks[i], sizeof a->blocks[i]) != 0;
}

/* Elements from `begin` on, as many as `n` says; `file` takes the place of the whole's. */
static struct kymo_tensor part_of(const struct kymo_tensor *whole, uint64_t begin, const int64_t *n,
                                  struct kymo__tensor_file *file)
{
    const uint64_t at = begin * kymo_dtype_size(whole->dtype);
    struct kymo_tensor part = {
        .dtype = whole->dtype, .rank = 1, .sizes = n, .memory = whole->memory, .data = file};
    if (kymo__tensor_is_in_file(whole)) {
        const struct kymo__tensor_file *from = whole->data;
        *file = (struct kymo__tensor_file){.fd = from->fd, .at = from->at + at, .path = from->path};
    } else {
        part.data = (const char *)whole->data + at;
    }
    return part;
}

static kymo_status compare_blocks(const struct kymo_dumped_value *a,
                                  const struct kymo_dumped_value *b, const struct kymo_tensor *ta,
                                  const struct kymo_tensor *tb,
                                  const struct kymo_tolerance *tolerance,
                                  struct kymo_tensor_diff *out)
{
    const uint64_t size = kymo_dtype_size(a->dtype), per_block = KYMO_DIGEST_BLOCK / size;
    struct sums sums = {0};
    *out = (struct kymo_tensor_diff){.n = kymo_tensor_count(ta), .first_wrong = UINT64_MAX};
    out->abs.index = out->rel.index = out->ulp.index = UINT64_MAX;
    for (size_t i = 0; i < a->n_blocks; i++) {
        if (!blocks_differ(a, b, i))
            continue;
        const uint64_t begin = i * per_block;
        const int64_t n = (int64_t)KYMO__MIN(per_block, out->n - begin);
        struct kymo__tensor_file file_a, file_b;
        const struct kymo_tensor part_a = part_of(ta, begin, &n, &file_a),
                                 part_b = part_of(tb, begin, &n, &file_b);
        struct kymo_tensor_diff part;
        KYMO_TRY(kymo_tensor_compare(&part_a, &part_b, tolerance, &part));
        add_part(out, &sums, &part, begin);
    }
    conclude_parts(out, &sums, a->stats, b->stats);
    return KYMO_OK;
}

static kymo_status compare(const struct kymo__diff_court *court, const struct kymo_dumped_value *a,
                           const struct kymo_dumped_value *b, const struct kymo_tensor *ta,
                           const struct kymo_tensor *tb, const struct kymo_tolerance *tolerance,
                           struct kymo_tensor_diff *out)
{
    if (can_skip_blocks(a, b))
        return compare_blocks(a, b, ta, tb, tolerance, out);
    return kymo_tensor_compare_with(ta, tb, tolerance, court->n_threads, out);
}

/* ---- single elements ---- */

static kymo_status fill_spot(struct kymo__diff_spot *spot, uint64_t index,
                             const struct kymo_tensor *a, const struct kymo_tensor *b)
{
    spot->index = index;
    if (index == UINT64_MAX)
        return KYMO_OK;
    KYMO_TRY(kymo_tensor_element(a, index, spot->a, sizeof spot->a));
    return kymo_tensor_element(b, index, spot->b, sizeof spot->b);
}

static void put_bits(char *out, size_t room, const struct kymo_tensor *tensor, uint64_t index)
{
    const size_t size = kymo_dtype_size(tensor->dtype);
    struct kymo__tensor_view view;
    unsigned char element[16];
    kymo__tensor_view_of(tensor, &view);
    const unsigned char *bytes = kymo__tensor_view_block(&view, index, 1, element);
    size_t len = (size_t)snprintf(out, room, "0x");
    for (size_t i = size; i-- > 0 && len + 2 < room; len += 2)
        snprintf(out + len, room - len, "%02x", bytes[i]);
}

static double psnr_of(const struct kymo_tensor *b, double rmse)
{
    const double peak = b->dtype == KYMO_U8 ? 255 : b->dtype == KYMO_U16 ? 65535 : NAN;
    return 20 * log10(peak / rmse);
}

static kymo_status fill_details(struct kymo__diff_result *out, const struct kymo_tensor *a,
                                const struct kymo_tensor *b, bool has_pixels)
{
    struct kymo__diff_details *d = out->details;
    KYMO_TRY(fill_spot(&d->first, out->diff.first_wrong, a, b));
    KYMO_TRY(fill_spot(&d->abs, out->diff.abs.index, a, b));
    KYMO_TRY(fill_spot(&d->rel, out->diff.rel.index, a, b));
    KYMO_TRY(fill_spot(&d->ulp, out->diff.ulp.index, a, b));
    if (d->first.index != UINT64_MAX) {
        put_bits(d->bits_a, sizeof d->bits_a, a, d->first.index);
        put_bits(d->bits_b, sizeof d->bits_b, b, d->first.index);
        long double difference[2];
        /* Of complex numbers there is none that orders. */
        if (kymo__tensor_difference(a, b, d->first.index, difference) == 1)
            d->difference = (double)difference[0];
    }
    if (has_pixels)
        d->psnr_db = psnr_of(b, out->diff.rmse);
    return KYMO_OK;
}

/* ---- noise ---- */

static size_t find_value(const struct kymo__diff_side *side, const struct kymo_dumped_value *like)
{
    for (size_t i = 0; i < side->n; i++) {
        const struct kymo_dumped_value *value = &side->values[i];
        if (value->tree == like->tree && strcmp(value->name, like->name) == 0)
            return value->has_data && value->rank == like->rank &&
                           (like->rank == 0 ||
                            memcmp(value->sizes, like->sizes, like->rank * sizeof *like->sizes) == 0)
                       ? i
                       : KYMO__DIFF_NONE;
    }
    return KYMO__DIFF_NONE;
}

/* What two runs of the reference differ by, so many times, is no difference. */
static kymo_status weigh_noise(const struct kymo__diff_court *court,
                               const struct kymo_dumped_value *b, const struct kymo_tensor *ta,
                               const struct kymo_tensor *tb, struct kymo__diff_result *out)
{
    const size_t i = find_value(court->noise, b);
    struct kymo_tensor tn;
    struct kymo_tensor_diff noise, again;
    if (i == KYMO__DIFF_NONE || court->noise->get(court->noise, i, &tn) != KYMO_OK)
        return KYMO_OK;
    const kymo_status status =
        kymo_tensor_compare_with(&tn, tb, &out->tolerance, court->n_threads, &noise);
    kymo__diff_drop(court->noise, i);
    KYMO_TRY(status);
    const double factor = court->options->noise_factor != 0 ? court->options->noise_factor : 3;
    struct kymo_tolerance wider = out->tolerance;
    wider.abs = fmax(wider.abs, factor * noise.abs.value);
    out->details->noise_abs = noise.abs.value;
    if (wider.bitwise || wider.abs <= out->tolerance.abs)
        return KYMO_OK;
    KYMO_TRY(kymo_tensor_compare_with(ta, tb, &wider, court->n_threads, &again));
    if (again.n_wrong == 0)
        out->status = KYMO_DIFF_NOISE;
    return KYMO_OK;
}

/* ---- the pair ---- */

static bool same_sizes(const struct kymo_tensor *a, const struct kymo_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0);
}

static enum kymo_diff_status status_of(const struct kymo_tensor_diff *diff)
{
    return diff->n_wrong != 0     ? KYMO_DIFF_DIFFERENT
           : diff->n_unequal != 0 ? KYMO_DIFF_CLOSE
                                  : KYMO_DIFF_SAME;
}

/* Where `diff` is made. */
static kymo_status describe(struct kymo__diff_result *out, const struct kymo_tensor *a,
                            const struct kymo_tensor *b, bool has_pixels)
{
    out->n = out->diff.n;
    out->basis = KYMO__BY_DATA;
    out->has_diff = true;
    out->status = status_of(&out->diff);
    if (out->status == KYMO_DIFF_SAME)
        return KYMO_OK;
    KYMO_TRY(kymo__diff_details(out, b->sizes, b->rank));
    return fill_details(out, a, b, has_pixels);
}

kymo_status kymo__diff_judge_numbers(const struct kymo_tensor *a, const struct kymo_tensor *b,
                                     struct kymo__diff_result *out)
{
    KYMO_TRY(kymo_tensor_compare(a, b, &out->tolerance, &out->diff));
    return describe(out, a, b, false);
}

static kymo_status judge_tensors(const struct kymo__diff_court *court,
                                 const struct kymo_dumped_value *a,
                                 const struct kymo_dumped_value *b, const struct kymo_tensor *ta,
                                 const struct kymo_tensor *tb, struct kymo__diff_result *out)
{
    KYMO_TRY(compare(court, a, b, ta, tb, &out->tolerance, &out->diff));
    KYMO_TRY(describe(out, ta, tb, kymo__diff_is_image(a->type) || kymo__diff_is_image(b->type)));
    if (out->status == KYMO_DIFF_DIFFERENT && court->noise != NULL)
        return weigh_noise(court, b, ta, tb, out);
    return KYMO_OK;
}

static kymo_status judge_gotten(const struct kymo__diff_court *court,
                                const struct kymo_dumped_value *a,
                                const struct kymo_dumped_value *b, struct kymo_tensor *ta,
                                struct kymo_tensor *tb, struct kymo__diff_result *out)
{
    double *made_a = NULL, *made_b = NULL;
    if (!same_sizes(ta, tb)) {
        out->status = KYMO_DIFF_SHAPE; /* of pictures, which lines of a manifest do not tell */
        out->basis = KYMO__BY_DATA;
        return KYMO_OK;
    }
    kymo_status status = kymo__diff_restore(a, b, ta, &made_a);
    if (status == KYMO_OK)
        status = kymo__diff_restore(b, a, tb, &made_b);
    if (status == KYMO_OK)
        status = judge_tensors(court, a, b, ta, tb, out);
    kymo__free(made_a);
    kymo__free(made_b);
    return status;
}

static kymo_status open_numbers(const struct kymo__diff_side *side, size_t i,
                                struct kymo__tensor_file *file, struct kymo_tensor *out)
{
    return side->open != NULL ? side->open(side, i, file, out) : side->get(side, i, out);
}

static void close_numbers(const struct kymo__diff_side *side, size_t i, struct kymo__tensor_file *file)
{
    if (side->close != NULL)
        side->close(side, i, file);
    else
        kymo__diff_drop(side, i);
}

static kymo_status judge_opened(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                struct kymo_tensor *ta, struct kymo__diff_result *out)
{
    struct kymo__tensor_file file;
    struct kymo_tensor tb;
    KYMO_TRY(open_numbers(court->b, ib, &file, &tb));
    const kymo_status status =
        judge_gotten(court, &court->a->values[ia], &court->b->values[ib], ta, &tb, out);
    close_numbers(court->b, ib, &file);
    return status;
}

kymo_status kymo__diff_judge_data(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                  struct kymo__diff_result *out)
{
    struct kymo__tensor_file file;
    struct kymo_tensor ta;
    kymo_status status = open_numbers(court->a, ia, &file, &ta);
    if (status == KYMO_OK) {
        status = judge_opened(court, ia, ib, &ta, out);
        close_numbers(court->a, ia, &file);
    }
    if (status == KYMO_OK || status == KYMO_ENOMEM)
        return status;
    kymo__free(out->details); /* of numbers that were read before one could not be */
    out->details = NULL;
    out->has_diff = false;
    return kymo__diff_unknown(out, kymo_last_error());
}
