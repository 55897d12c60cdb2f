/*
 * Merges the ranks of a step, to be compared with a run that has only one: tensor parallelism of 2 against 1.
 *
 * The reference determines how a value is merged. With the same sizes it is a copy on each rank, and one that differs
 * from the first is compared. With a smaller size along one axis it is a piece, and pieces are concatenated in the
 * order of ranks. Terms of a sum cannot be recognized: they are the paths that match `partial`.
 */
#include <fnmatch.h>
#include <string.h>

#include "tensor/diff/internal.h"

enum how { COPIES, PIECES, SUMMANDS };

struct merged_value {
    enum how how;
    uint32_t axis;  /* for PIECES */
    size_t *places; /* in each rank; MAREY__DIFF_NONE: missing */
    int64_t *sizes; /* of the whole tensor */
    void *data;     /* once computed */
};

struct merged {
    const struct marey__diff_side *ranks;
    size_t n_ranks;
    struct marey_dumped_value *values;
    struct merged_value *parts;
    size_t n, cap, parts_cap;
};

/* ---- values to merge ---- */

static bool is_partial(const struct marey_diff_options *options, const char *name)
{
    for (size_t i = 0; i < options->n_partial; i++)
        if (fnmatch(options->partial[i], name, 0) == 0)
            return true;
    return false;
}

/* The value in one of the ranks that has it. */
static const struct marey_dumped_value *in_rank(const struct merged *m,
                                                const struct merged_value *part, size_t rank)
{
    const size_t place = part->places[rank];
    return place != MAREY__DIFF_NONE ? &m->ranks[rank].values[place] : NULL;
}

static int64_t sum_of_axis(const struct merged *m, const struct merged_value *part, uint32_t rank,
                           uint32_t axis)
{
    int64_t sum = 0;
    for (size_t r = 0; r < m->n_ranks; r++) {
        const struct marey_dumped_value *value = in_rank(m, part, r);
        if (value != NULL && value->rank == rank)
            sum += value->sizes[axis];
    }
    return sum;
}

/* The one axis along which it is a piece of `whole`; false if it is not a piece. */
static bool find_axis(const struct merged *m, const struct merged_value *part,
                      const struct marey_dumped_value *piece,
                      const struct marey_dumped_value *whole, uint32_t *axis)
{
    size_t n_other = 0;
    if (piece->rank != whole->rank)
        return false;
    for (uint32_t i = 0; i < piece->rank; i++)
        if (piece->sizes[i] != whole->sizes[i]) {
            n_other++;
            *axis = i;
        }
    return n_other == 1 && sum_of_axis(m, part, piece->rank, *axis) == whole->sizes[*axis];
}

/* Whether pieces or terms have the same type, and the same sizes except along that axis. */
static bool fit_together(const struct merged *m, const struct merged_value *part,
                         const struct marey_dumped_value *first)
{
    for (size_t r = 0; r < m->n_ranks; r++) {
        const struct marey_dumped_value *value = in_rank(m, part, r);
        if (value == NULL)
            continue;
        if (value->dtype != first->dtype || value->rank != first->rank || !value->has_data)
            return false;
        for (uint32_t i = 0; i < value->rank; i++)
            if (value->sizes[i] != first->sizes[i] && (part->how != PIECES || i != part->axis))
                return false;
    }
    return true;
}

static bool same_digests(const struct merged *m, const struct merged_value *part)
{
    const struct marey_digest *first = NULL;
    for (size_t r = 0; r < m->n_ranks; r++) {
        const struct marey_dumped_value *value = in_rank(m, part, r);
        if (value == NULL)
            continue;
        if (value->digest == NULL ||
            (first != NULL && memcmp(first, value->digest, sizeof *first) != 0))
            return false;
        first = value->digest;
    }
    return true;
}

static void plan(struct merged *m, const struct marey__diff_side *like,
                 const struct marey_diff_options *options, struct marey_dumped_value *value,
                 struct merged_value *part)
{
    const size_t place = marey__diff_find(like, value->tree, value->name);
    const struct marey_dumped_value *whole = place != MAREY__DIFF_NONE ? &like->values[place] : NULL;
    const struct marey_dumped_value first = *value;
    if (!marey__diff_is_tensor(value) || whole == NULL || !marey__diff_is_tensor(whole))
        return;
    if (is_partial(options, value->name))
        part->how = SUMMANDS;
    else if (find_axis(m, part, value, whole, &part->axis))
        part->how = PIECES;
    if (part->how != COPIES && !fit_together(m, part, &first))
        part->how = COPIES;
    if (part->how == PIECES)
        part->sizes[part->axis] = whole->sizes[part->axis];
    if (part->how != COPIES || !same_digests(m, part)) {
        value->digest = value->blocks = NULL; /* these belong to one rank */
        value->n_blocks = 0;
        value->stats = NULL;
    }
}

/* ---- the whole ---- */

static void copy_pieces(const struct merged_value *part, const struct marey_tensor *pieces, size_t n)
{
    const size_t size = marey_dtype_size(pieces[0].dtype);
    size_t n_outer = 1, inner = size, done = 0, row = 0;
    for (uint32_t i = 0; i < part->axis; i++)
        n_outer *= (size_t)pieces[0].sizes[i];
    for (uint32_t i = part->axis + 1; i < pieces[0].rank; i++)
        inner *= (size_t)pieces[0].sizes[i];
    row = (size_t)part->sizes[part->axis] * inner;
    for (size_t p = 0; p < n; p++) {
        const size_t n_bytes = (size_t)pieces[p].sizes[part->axis] * inner;
        for (size_t o = 0; o < n_outer && n_bytes != 0; o++)
            memcpy((char *)part->data + o * row + done, (const char *)pieces[p].data + o * n_bytes,
                   n_bytes);
        done += n_bytes;
    }
}

static void put_sum(const struct marey__dtype *type, void *data, uint64_t i, double sum)
{
    if (type->part == MAREY_F64) {
        ((double *)data)[i] = sum;
    } else if (type->part == MAREY_F32) {
        ((float *)data)[i] = (float)sum;
    } else {
        const uint32_t bits = marey__narrow((enum marey_dtype)type->part, sum);
        memcpy((char *)data + i * (type->part_bits / 8), &bits, type->part_bits / 8);
    }
}

static void add_summands(const struct merged_value *part, const struct marey_tensor *summands,
                         size_t n)
{
    const struct marey__dtype *type = marey__dtype_get(summands[0].dtype);
    const uint64_t n_parts = marey_tensor_count(&summands[0]) * type->n_parts;
    for (uint64_t i = 0; i < n_parts; i++) {
        double sum = 0, number;
        for (size_t s = 0; s < n; s++) {
            marey__widen_to_double((enum marey_dtype)type->part,
                                   (const char *)summands[s].data + i * (type->part_bits / 8), 1,
                                   &number);
            sum += number;
        }
        put_sum(type, part->data, i, sum);
    }
}

static marey_status make_whole(struct merged_value *part, const struct marey_dumped_value *value,
                               const struct marey_tensor *tensors, size_t n, struct marey_tensor *out)
{
    const struct marey__dtype *type = marey__dtype_get(value->dtype);
    *out = (struct marey_tensor){.dtype = value->dtype, .rank = value->rank, .sizes = part->sizes};
    if (part->how == SUMMANDS && (type->kind != MAREY__IS_FLOAT || type->part_bits < 8))
        return marey__fail(MAREY_EINVAL, "parts of a sum are floats, and %s is %s", value->name,
                           marey_dtype_name(value->dtype));
    if (part->data == NULL) {
        part->data = marey__alloc((size_t)marey_tensor_bytes(out) + 1);
        MAREY__TRY_MEMORY(part->data != NULL);
        if (part->how == PIECES)
            copy_pieces(part, tensors, n);
        else
            add_summands(part, tensors, n);
    }
    out->data = part->data;
    return MAREY_OK;
}

/* A copy that differs from the first, else the first. */
static const struct marey_tensor *odd_one(const struct marey_tensor *copies, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (copies[i].dtype != copies[0].dtype ||
            marey_tensor_bytes(&copies[i]) != marey_tensor_bytes(&copies[0]) ||
            memcmp(copies[i].data, copies[0].data, (size_t)marey_tensor_bytes(&copies[0])) != 0)
            return &copies[i];
    return &copies[0];
}

static marey_status open_merged(const struct marey__diff_side *side, size_t i,
                                struct marey__tensor_file *file, struct marey_tensor *out)
{
    struct merged *m = side->ctx;
    struct merged_value *part = &m->parts[i];
    size_t n = 0;
    struct marey_tensor *const tensors MAREY__FREED = marey__alloc(m->n_ranks * sizeof *tensors);
    (void)file;
    MAREY__TRY_MEMORY(tensors != NULL);
    for (size_t r = 0; r < m->n_ranks; r++)
        if (part->places[r] != MAREY__DIFF_NONE)
            MAREY_TRY(m->ranks[r].open(&m->ranks[r], part->places[r], NULL, &tensors[n++]));
    if (part->how != COPIES)
        return make_whole(part, &m->values[i], tensors, n, out);
    *out = *odd_one(tensors, n);
    return MAREY_OK;
}

static void close_merged(const struct marey__diff_side *side, size_t i,
                         struct marey__tensor_file *file)
{
    const struct merged *m = side->ctx;
    struct merged_value *part = &m->parts[i];
    (void)file;
    for (size_t r = 0; r < m->n_ranks; r++)
        if (part->places[r] != MAREY__DIFF_NONE)
            marey__diff_close(&m->ranks[r], part->places[r], NULL);
    marey__free(part->data);
    part->data = NULL;
}

/* ---- merging ---- */

static bool was_before(const struct merged *m, size_t rank, const struct marey_dumped_value *value)
{
    for (size_t r = 0; r < rank; r++)
        if (marey__diff_find(&m->ranks[r], value->tree, value->name) != MAREY__DIFF_NONE)
            return true;
    return false;
}

static marey_status add_value(struct merged *m, const struct marey_dumped_value *value,
                              const struct marey__diff_side *like,
                              const struct marey_diff_options *options)
{
    MAREY__TRY_MEMORY(marey__grow(&m->values, &m->cap, m->n + 1, sizeof *m->values) &&
                      marey__grow(&m->parts, &m->parts_cap, m->n + 1, sizeof *m->parts));
    struct marey_dumped_value *const merged = &m->values[m->n];
    struct merged_value *const part = &m->parts[m->n++];
    *merged = *value;
    *part = (struct merged_value){.places = marey__alloc(m->n_ranks * sizeof *part->places),
                                  .sizes = marey__alloc((value->rank + 1) * sizeof *part->sizes)};
    MAREY__TRY_MEMORY(part->places != NULL && part->sizes != NULL);
    for (size_t r = 0; r < m->n_ranks; r++)
        part->places[r] = marey__diff_find(&m->ranks[r], value->tree, value->name);
    if (marey__diff_is_tensor(value) && value->rank != 0)
        memcpy(part->sizes, value->sizes, value->rank * sizeof *part->sizes);
    plan(m, like, options, merged, part);
    merged->sizes = part->sizes;
    return MAREY_OK;
}

marey_status marey__diff_merge_open(const struct marey__diff_side *ranks, size_t n_ranks,
                                    const struct marey__diff_side *like,
                                    const struct marey_diff_options *options,
                                    struct marey__diff_side *out)
{
    struct merged *m = marey__calloc(1, sizeof *m);
    *out = (struct marey__diff_side){.open = open_merged, .close = close_merged, .ctx = m};
    MAREY__TRY_MEMORY(m != NULL);
    m->ranks = ranks;
    m->n_ranks = n_ranks;
    for (size_t r = 0; r < n_ranks; r++)
        for (size_t i = 0; i < ranks[r].n; i++)
            if (!was_before(m, r, &ranks[r].values[i]))
                MAREY_TRY(add_value(m, &ranks[r].values[i], like, options));
    out->values = m->values;
    out->n = m->n;
    return MAREY_OK;
}

void marey__diff_merge_close(struct marey__diff_side *side)
{
    struct merged *const m = side->ctx;
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n; i++)
        MAREY__FREE_ALL(m->parts[i].places, m->parts[i].sizes, m->parts[i].data);
    MAREY__FREE_ALL(m->values, m->parts, m);
}
