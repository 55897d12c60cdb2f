/* Compares two tensors: chooses the arithmetic, compares blocks, and combines the results. */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "tensor/kernels/internal.h"

/* ---- combining results ---- */

void marey__diff_part_init(struct marey__diff_part *part)
{
    const struct marey__where nowhere = {UINT64_MAX, false};
    *part = (struct marey__diff_part){
        .abs_at = nowhere, .rel_at = nowhere, .ulp_at = nowhere, .wrong_at = nowhere};
}

void marey__diff_part_add(struct marey__diff_part *into, const struct marey__diff_part *later)
{
    if (into->n_wrong == 0)
        into->wrong_at = later->wrong_at;
    into->n_wrong += later->n_wrong;
    into->n_unequal += later->n_unequal;
    into->n_nan_a += later->n_nan_a;
    into->n_nan_b += later->n_nan_b;
    into->n_nan_one += later->n_nan_one;
    into->is_hopeless |= later->is_hopeless;
    into->n_finite += later->n_finite;
    MAREY__KEEP_LARGER(into, abs, later->abs, later->abs_at);
    MAREY__KEEP_LARGER(into, rel, later->rel, later->rel_at);
    MAREY__KEEP_LARGER(into, ulp, later->ulp, later->ulp_at);
    into->max_a = MAREY__MAX(into->max_a, later->max_a);
    into->max_b = MAREY__MAX(into->max_b, later->max_b);
    for (size_t k = 0; k < MAREY__N_SUMS; k++)
        into->sums[k] += later->sums[k];
}

/* The next larger float in the type's arithmetic, because `value` itself may have been rounded down. */
static double next_up(const struct marey__compare *job, double value)
{
    if (job->common == MAREY_F64 || job->common == MAREY_DTYPE_NONE)
        return nextafter(value, INFINITY);
    return nextafterf((float)value, INFINITY);
}

static void finish_needs(const struct marey__compare *job, const struct marey__diff_part *part,
                         struct marey_tensor_diff *out)
{
    out->needs_abs = out->needs_rel = out->needs_ulp = INFINITY;
    if (part->is_hopeless)
        return;
    /* Differences of 64-bit integers may have been rounded down. */
    out->needs_abs = job->common == MAREY_DTYPE_NONE && part->abs >= 0x1p53
                         ? nextafter(part->abs, INFINITY)
                         : part->abs;
    out->needs_ulp = (double)part->ulp;
    out->needs_rel = part->rel > 0 ? next_up(job, part->rel) : 0;
}

static void finish(const struct marey__compare *job, const struct marey__diff_part *part,
                   struct marey_tensor_diff *out)
{
    const long double n = (long double)part->n_finite, *const sums = part->sums;
    const long double norms = sqrtl(sums[MAREY__SUM_AA]) * sqrtl(sums[MAREY__SUM_BB]);
    *out = (struct marey_tensor_diff){
        .n = job->n,
        .n_wrong = part->n_wrong,
        .n_unequal = part->n_unequal,
        .n_nan_a = part->n_nan_a,
        .n_nan_b = part->n_nan_b,
        .n_nan_one = part->n_nan_one,
        .first_wrong = part->wrong_at.index,
        .abs = {part->abs, part->abs_at.index},
        .rel = {part->rel, part->rel_at.index},
        .ulp = {(double)part->ulp, part->ulp_at.index},
        .mean_abs = (double)(sums[MAREY__SUM_ABS] / n),
        .rmse = (double)sqrtl(sums[MAREY__SUM_DD] / n),
        .mean_a = (double)(sums[MAREY__SUM_A] / n),
        .mean_b = (double)(sums[MAREY__SUM_B] / n),
        .cosine = norms > 0 ? (double)(sums[MAREY__SUM_AB] / norms) : NAN,
        .snr_db = sums[MAREY__SUM_DD] > 0
                      ? (double)(10 * log10l(sums[MAREY__SUM_BB] / sums[MAREY__SUM_DD]))
                      : INFINITY,
        .max_a = part->max_a,
        .max_b = part->max_b,
    };
    if (part->n_finite == 0)
        out->mean_abs = out->rmse = out->mean_a = out->mean_b = NAN;
    finish_needs(job, part, out);
}

/* ---- preparing a comparison ---- */

/* Significant bits of a type's numbers; the lowest signed integer is a power of two and needs only one. */
static unsigned digits_of(const struct marey__dtype *type)
{
    return type->kind == MAREY__IS_FLOAT ? type->digits
                                         : type->part_bits - (type->kind == MAREY__IS_SIGNED);
}

/* A type that represents all numbers of both: float32 up to 24 significant bits. NONE: integers, or neither suffices. */
static enum marey_dtype common_type(const struct marey__dtype *a, const struct marey__dtype *b)
{
    if (a->n_parts != b->n_parts || (a->kind != MAREY__IS_FLOAT && b->kind != MAREY__IS_FLOAT))
        return MAREY_DTYPE_NONE;
    if (a->part == b->part)
        return (enum marey_dtype)a->part;
    const unsigned digits = MAREY__MAX(digits_of(a), digits_of(b));
    return digits <= 24 ? MAREY_F32 : digits <= 53 ? MAREY_F64 : MAREY_DTYPE_NONE;
}

struct marey_tolerance marey_tolerance_default(enum marey_dtype a, enum marey_dtype b)
{
    const struct marey__dtype *types[] = {marey__dtype_get(a), marey__dtype_get(b)};
    struct marey_tolerance tolerance = {.nan_equal = 1};
    for (int i = 0; i < 2; i++)
        if (types[i] != NULL) {
            tolerance.abs = MAREY__MAX(tolerance.abs, types[i]->abs);
            tolerance.rel = MAREY__MAX(tolerance.rel, types[i]->rel);
        }
    return tolerance;
}

static marey_status check_shapes(const struct marey_tensor *a, const struct marey_tensor *b)
{
    MAREY_TRY(marey__tensor_check_readable(a));
    MAREY_TRY(marey__tensor_check_readable(b));
    if (a->rank != b->rank)
        return marey__fail(MAREY_EINVAL, "tensors of rank %u and %u cannot be compared", a->rank,
                           b->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i])
            return marey__fail(MAREY_EINVAL,
                               "tensors of sizes %lld and %lld along axis %u cannot be compared",
                               (long long)a->sizes[i], (long long)b->sizes[i], i);
    const struct marey__dtype *type_a = marey__dtype_get(a->dtype),
                              *type_b = marey__dtype_get(b->dtype);
    if ((type_a->part_bits == 4) != (type_b->part_bits == 4))
        return marey__fail(MAREY_EINVAL, "elements of type %s and %s cannot be compared",
                           type_a->name, type_b->name);
    return MAREY_OK;
}

static enum marey__form form_of(const struct marey__compare *job)
{
    if (job->common == MAREY_F64)
        return MAREY__FORM_F64;
    if (job->a.type->part != job->b.type->part)
        return MAREY__FORM_EXPANDED;
    return job->common == MAREY_F32    ? MAREY__FORM_F32
           : job->common == MAREY_BF16 ? MAREY__FORM_BF16
           : job->common == MAREY_F16  ? MAREY__FORM_F16
                                       : MAREY__FORM_EXPANDED;
}

static marey_status prepare(const struct marey_tensor *a, const struct marey_tensor *b,
                            const struct marey_tolerance *tolerance, struct marey__compare *job)
{
    MAREY_TRY(check_shapes(a, b));
    if (!(tolerance->abs >= 0) || !(tolerance->rel >= 0))
        return marey__fail(MAREY_EINVAL,
                           "a tolerance of %g absolute and %g relative; they are 0 or more",
                           tolerance->abs, tolerance->rel);
    marey__tensor_view_of(a, &job->a);
    marey__tensor_view_of(b, &job->b);
    job->common = common_type(job->a.type, job->b.type);
    job->is_mixed = job->common == MAREY_DTYPE_NONE &&
                    (job->a.type->kind == MAREY__IS_FLOAT || job->b.type->kind == MAREY__IS_FLOAT);
    job->n_parts = MAREY__MAX(job->a.type->n_parts, job->b.type->n_parts);
    job->block_elements = MAREY__BLOCK_PARTS / job->n_parts;
    job->n = marey_tensor_count(a);
    job->tolerance = *tolerance;
    /* In the type's own arithmetic it would be infinite, and infinity times 0 is NaN. */
    const double most =
        job->common == MAREY_F64 || job->common == MAREY_DTYPE_NONE ? DBL_MAX : FLT_MAX;
    job->tolerance.abs = MAREY__MIN(tolerance->abs, most);
    job->tolerance.rel = MAREY__MIN(tolerance->rel, most);
    job->kernels = marey__kernels_get();
    job->form = form_of(job);
    job->pattern_shift = 0;
    if (job->common != MAREY_DTYPE_NONE && job->common != MAREY_F64)
        job->pattern_shift = marey__pattern_shift(job->common);
    return MAREY_OK;
}

static bool cannot_read(const struct marey__tensor_view *view)
{
    return view->file != NULL && atomic_load_explicit(&view->file->error, memory_order_relaxed) != 0;
}

/* Stop comparing after a read error. */
static bool has_failed(const struct marey__compare *job)
{
    return cannot_read(&job->a) || cannot_read(&job->b);
}

/* ---- threads ---- */

/* Chunks whose sums wait for earlier ones; a thread further ahead waits. */
enum { MAX_WAITING = 128 };

/* `lock` guards all but `job`. */
struct chunk_queue {
    const struct marey__compare *job;
    uint64_t n_chunks, chunk_elements;
    pthread_mutex_t lock;
    pthread_cond_t moved;   /* signaled when `n_added` grows */
    uint64_t next, n_added; /* chunks taken, and added to `whole` */
    struct marey__diff_part whole;
    struct marey__diff_part waiting[MAX_WAITING]; /* ring buffer by chunk number */
    bool is_done[MAX_WAITING];
};

/* Takes the next chunk, once there is a slot for its sums; false at the end. */
static bool take_chunk(struct chunk_queue *queue, uint64_t *chunk)
{
    MAREY__HOLD(&queue->lock);
    while (queue->next < queue->n_chunks && queue->next >= queue->n_added + MAX_WAITING)
        pthread_cond_wait(&queue->moved, &queue->lock);
    const bool is_one = queue->next < queue->n_chunks && !has_failed(queue->job);
    *chunk = queue->next;
    queue->next += is_one;
    return is_one;
}

/* Sums are added in order, by the thread that provides the missing one. */
static void give_part(struct chunk_queue *queue, uint64_t chunk, const struct marey__diff_part *part)
{
    MAREY__HOLD(&queue->lock);
    queue->waiting[chunk % MAX_WAITING] = *part;
    queue->is_done[chunk % MAX_WAITING] = true;
    for (; queue->is_done[queue->n_added % MAX_WAITING]; queue->n_added++) {
        marey__diff_part_add(&queue->whole, &queue->waiting[queue->n_added % MAX_WAITING]);
        queue->is_done[queue->n_added % MAX_WAITING] = false;
    }
    pthread_cond_broadcast(&queue->moved);
}

static void work(void *ctx, bool may_tell)
{
    struct chunk_queue *queue = ctx;
    struct marey__diff_part part;
    uint64_t chunk;
    fenv_t saved;
    (void)may_tell;
    marey__float_enter(&saved);
    while (take_chunk(queue, &chunk)) {
        const uint64_t first = chunk * queue->chunk_elements;
        marey__compare_chunk(queue->job, first,
                             MAREY__MIN(first + queue->chunk_elements, queue->job->n), &part);
        give_part(queue, chunk, &part);
    }
    marey__float_leave(&saved);
}

static void compare_together(const struct marey__compare *job, uint64_t n_chunks,
                             uint32_t n_threads, struct marey__diff_part *whole)
{
    struct chunk_queue queue = {.job = job,
                                .n_chunks = n_chunks,
                                .chunk_elements = (uint64_t)job->block_elements * MAREY__CHUNK_BLOCKS,
                                .lock = PTHREAD_MUTEX_INITIALIZER,
                                .moved = PTHREAD_COND_INITIALIZER};
    marey__diff_part_init(&queue.whole);
    marey__run_parallel(work, &queue, n_threads, (size_t)n_chunks);
    pthread_cond_destroy(&queue.moved);
    pthread_mutex_destroy(&queue.lock);
    *whole = queue.whole;
}

/* Single-threaded. */
static void compare_alone(const struct marey__compare *job, struct marey__diff_part *whole)
{
    const uint64_t step = (uint64_t)job->block_elements * MAREY__CHUNK_BLOCKS;
    struct marey__diff_part part;
    marey__diff_part_init(whole);
    for (uint64_t first = 0; first < job->n && !has_failed(job); first += step) {
        marey__compare_chunk(job, first, MAREY__MIN(first + step, job->n), &part);
        marey__diff_part_add(whole, &part);
    }
}

marey_status marey_tensor_compare_with(const struct marey_tensor *a, const struct marey_tensor *b,
                                       const struct marey_tolerance *tolerance, uint32_t n_threads,
                                       struct marey_tensor_diff *out)
{
    struct marey__compare job = {.block_elements = 1};
    MAREY_TRY(prepare(a, b, tolerance, &job));
    const uint64_t step = (uint64_t)job.block_elements * MAREY__CHUNK_BLOCKS;
    const uint64_t n_chunks = (job.n + step - 1) / step;
    struct marey__diff_part whole;
    fenv_t saved;
    marey__float_enter(&saved);
    if (n_threads == 1 || n_chunks < 2)
        compare_alone(&job, &whole);
    else
        compare_together(&job, n_chunks, n_threads, &whole);
    marey__compare_find(&job, &whole);
    finish(&job, &whole, out);
    marey__float_leave(&saved);
    MAREY_TRY(marey__tensor_read_status(a));
    return marey__tensor_read_status(b);
}

marey_status marey_tensor_compare(const struct marey_tensor *a, const struct marey_tensor *b,
                                  const struct marey_tolerance *tolerance,
                                  struct marey_tensor_diff *out)
{
    return marey_tensor_compare_with(a, b, tolerance, 1, out);
}
