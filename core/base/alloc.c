/* All allocations of core, so that a test can make any one of them fail. */
#include <sys/mman.h>

#include "base/internal.h"

/* Set by tests: counts down to the allocation that fails. 0: none fails. */
static uint64_t fail_countdown;

static bool fails_now(void)
{
    if (MAREY_LIKELY(__atomic_load_n(&fail_countdown, __ATOMIC_RELAXED) == 0))
        return false;
    return __atomic_sub_fetch(&fail_countdown, 1, __ATOMIC_RELAXED) == 0;
}

void marey__alloc_fail_nth(uint64_t n)
{
    __atomic_store_n(&fail_countdown, n, __ATOMIC_RELAXED);
}

void *marey__alloc(size_t size)
{
    return fails_now() ? NULL : malloc(size);
}

void *marey__alloc_large(size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *bytes;
    if (size < HUGE_PAGE)
        return marey__alloc(size);
    if (fails_now() || posix_memalign(&bytes, HUGE_PAGE, size) != 0)
        return NULL;
    (void)madvise(bytes, size, MADV_HUGEPAGE);
    return bytes;
}

void *marey__calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : calloc(n, size);
}

void *marey__realloc(void *p, size_t size)
{
    return fails_now() ? NULL : realloc(p, size);
}

void marey__free(void *p)
{
    free(p);
}

void marey__free_all(void *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__free(all[i]);
}

char *marey__strndup(const char *s, size_t len)
{
    char *copy = marey__alloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, s, len);
        copy[len] = '\0';
    }
    return copy;
}

bool marey__grow(void *array, size_t *n_cap, size_t want, size_t size)
{
    if (want <= *n_cap)
        return true;
    size_t cap = *n_cap < 8 ? 8 : *n_cap;
    while (cap < want && cap <= SIZE_MAX / 2)
        cap *= 2;
    if (cap < want || cap > SIZE_MAX / size)
        return false;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = marey__realloc(old, cap * size);
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *n_cap = cap;
    return true;
}

bool marey__extend(void *array, size_t *n, size_t *n_cap, size_t want, size_t size)
{
    char *elements;
    if (want <= *n)
        return true;
    if (!marey__grow(array, n_cap, want, size))
        return false;
    memcpy(&elements, array, sizeof elements);
    memset(elements + *n * size, 0, (want - *n) * size);
    *n = want;
    return true;
}

/* ---- sorting ---- */

int marey__compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int marey__compare_f64(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
