/*
 * The slow paths of the quantile sketch: making pages, merging, reading quantiles. See internal.h.
 */
#include "base/internal.h"

static void free_pages(uint64_t **pages)
{
    if (pages == NULL)
        return;
    for (size_t p = 0; p < MAREY__SKETCH_PAGES; p++)
        marey__free(pages[p]);
    marey__free(pages);
}

void marey__sketch_fini(struct marey__sketch *sketch)
{
    free_pages(sketch->pages);
    *sketch = (struct marey__sketch){0};
}

static bool put(uint64_t **pages, uint32_t page, uint32_t bucket, uint64_t count)
{
    if (pages[page] == NULL) {
        uint64_t *const made = marey__calloc(MAREY__SKETCH_PAGE, sizeof *made);
        if (made == NULL)
            return false;
        __atomic_store_n(&pages[page], made, __ATOMIC_RELEASE); /* meets merge_pages() */
    }
    __atomic_store_n(&pages[page][bucket], pages[page][bucket] + count, __ATOMIC_RELAXED);
    return true;
}

/* Moves the few values into pages. */
static bool make_pages(struct marey__sketch *sketch)
{
    uint64_t **pages = marey__calloc(MAREY__SKETCH_PAGES, sizeof *pages);
    if (pages == NULL)
        return false;
    for (uint64_t i = 0; i < sketch->count; i++) {
        uint32_t bucket;
        const uint32_t page = marey__sketch_page_of(sketch->few[i], &bucket);
        if (!put(pages, page, bucket, 1)) {
            free_pages(pages);
            return false;
        }
    }
    __atomic_store_n(&sketch->pages, pages, __ATOMIC_RELEASE); /* meets marey__sketch_merge() */
    return true;
}

bool marey__sketch_reserve(struct marey__sketch *sketch)
{
    return sketch->pages != NULL || make_pages(sketch);
}

bool marey__sketch_add_slow(struct marey__sketch *sketch, uint64_t value)
{
    if (sketch->pages == NULL) {
        if (sketch->count < MAREY__SKETCH_FEW) {
            __atomic_store_n(&sketch->few[sketch->count], value, __ATOMIC_RELAXED);
            return true;
        }
        if (!make_pages(sketch))
            return false;
    }
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    return put(sketch->pages, page, bucket, 1);
}

bool marey__sketch_add_sum(struct marey__sketch *sketch, uint64_t sum, uint64_t n)
{
    const uint64_t mean = n != 0 ? sum / n : 0, count = sketch->count;
    const bool are_few = sketch->pages == NULL &&
                         n <= MAREY__SKETCH_FEW - MAREY__MIN(count, (uint64_t)MAREY__SKETCH_FEW);
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(mean, &bucket);
    if (n == 0) {
        __atomic_store_n(&sketch->sum, sketch->sum + sum, __ATOMIC_RELAXED);
        return true;
    }
    if (are_few) {
        for (uint64_t i = 0; i < n; i++)
            __atomic_store_n(&sketch->few[count + i], mean, __ATOMIC_RELAXED);
    } else if (!marey__sketch_reserve(sketch) || !put(sketch->pages, page, bucket, n)) {
        return false;
    }
    if (mean < sketch->min || count == 0)
        __atomic_store_n(&sketch->min, mean, __ATOMIC_RELAXED);
    if (mean > sketch->max)
        __atomic_store_n(&sketch->max, mean, __ATOMIC_RELAXED);
    __atomic_store_n(&sketch->sum, sketch->sum + sum, __ATOMIC_RELAXED);
    __atomic_store_n(&sketch->count, count + n, __ATOMIC_RELEASE); /* as in marey__sketch_add() */
    return true;
}

static bool merge_pages(struct marey__sketch *into, uint64_t *const *pages)
{
    for (uint32_t p = 0; p < MAREY__SKETCH_PAGES; p++) {
        const uint64_t *const page = __atomic_load_n(&pages[p], __ATOMIC_ACQUIRE);
        if (page == NULL)
            continue;
        for (uint32_t b = 0; b < MAREY__SKETCH_PAGE; b++) {
            const uint64_t count = __atomic_load_n(&page[b], __ATOMIC_RELAXED);
            if (count != 0 && !put(into->pages, p, b, count))
                return false;
        }
    }
    return true;
}

bool marey__sketch_merge(struct marey__sketch *into, const struct marey__sketch *from)
{
    const uint64_t count = __atomic_load_n(&from->count, __ATOMIC_ACQUIRE);
    if (count == 0)
        return true;
    uint64_t *const *const pages = __atomic_load_n(&from->pages, __ATOMIC_ACQUIRE);
    if (pages == NULL) {
        for (uint64_t i = 0; i < MAREY__MIN(count, (uint64_t)MAREY__SKETCH_FEW); i++)
            if (!marey__sketch_add(into, __atomic_load_n(&from->few[i], __ATOMIC_RELAXED)))
                return false;
        return true;
    }
    if (into->pages == NULL && !make_pages(into))
        return false;
    if (!merge_pages(into, pages))
        return false;
    const uint64_t min = __atomic_load_n(&from->min, __ATOMIC_RELAXED);
    into->min = into->count == 0 ? min : MAREY__MIN(into->min, min);
    into->max = MAREY__MAX(into->max, __atomic_load_n(&from->max, __ATOMIC_RELAXED));
    into->count += count;
    into->sum += __atomic_load_n(&from->sum, __ATOMIC_RELAXED);
    return true;
}

/* The middle of a bucket. */
static uint64_t bucket_value(uint32_t page, uint32_t bucket)
{
    if (page == 0)
        return bucket;
    const uint32_t shift = page - 1;
    const uint64_t low = (uint64_t)(MAREY__SKETCH_PAGE + bucket) << shift;
    return low + ((UINT64_C(1) << shift) >> 1);
}

/* The rank-th smallest value, 0-based, within the precision of the pages. */
static uint64_t value_at(const struct marey__sketch *sketch, uint64_t rank)
{
    uint64_t below = 0;
    for (uint32_t p = 0; p < MAREY__SKETCH_PAGES; p++) {
        if (sketch->pages[p] == NULL)
            continue;
        for (uint32_t b = 0; b < MAREY__SKETCH_PAGE; b++) {
            below += sketch->pages[p][b];
            if (below > rank)
                return bucket_value(p, b);
        }
    }
    return sketch->max;
}

/* The nearest rank of `count` values, 0-based: the median of three is the second, of four also the second. */
static uint64_t nearest_rank(uint64_t count, double q)
{
    const double share = q > 0 ? q * (double)count : 0;
    const uint64_t rank = share < (double)count ? (uint64_t)share : count - 1;
    return rank > 0 && (double)rank == share ? rank - 1 : rank;
}

uint64_t marey__sketch_quantile(const struct marey__sketch *sketch, double q)
{
    return marey__sketch_quantile_with_zeros(sketch, 0, q);
}

uint64_t marey__sketch_quantile_with_zeros(const struct marey__sketch *sketch, uint64_t n_zeros,
                                           double q)
{
    if (sketch->count == 0)
        return 0;
    uint64_t rank = nearest_rank(sketch->count + n_zeros, q);
    if (rank < n_zeros)
        return 0;
    rank -= n_zeros;
    if (sketch->pages == NULL) {
        uint64_t sorted[MAREY__SKETCH_FEW];
        memcpy(sorted, sketch->few, sizeof sorted);
        qsort(sorted, sketch->count, sizeof sorted[0], marey__compare_u64);
        return sorted[rank];
    }
    const uint64_t value = value_at(sketch, rank);
    return value < sketch->min ? sketch->min : MAREY__MIN(value, sketch->max);
}

void marey__sketch_visit(const struct marey__sketch *sketch, marey__sketch_visitor *visitor, void *ctx)
{
    if (sketch->pages == NULL) {
        for (uint64_t i = 0; i < sketch->count; i++)
            visitor(ctx, sketch->few[i], 1);
        return;
    }
    for (uint32_t p = 0; p < MAREY__SKETCH_PAGES; p++) {
        for (uint32_t b = 0; sketch->pages[p] != NULL && b < MAREY__SKETCH_PAGE; b++)
            if (sketch->pages[p][b] != 0)
                visitor(ctx, bucket_value(p, b), sketch->pages[p][b]);
    }
}
