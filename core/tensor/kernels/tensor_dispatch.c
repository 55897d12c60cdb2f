/* Chooses the best kernels that the CPU and the operating system support. */
#include <stdatomic.h>
#include <string.h>

#include "tensor/kernels/internal.h"

static bool has_avx2(void)
{
#ifdef __x86_64__
    /* Every CPU with AVX2 has F16C, for which clang has no name here. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
#else
    return false;
#endif
}

static bool has_avx512(void)
{
#ifdef __x86_64__
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* Best first. */
static const struct {
    const struct marey__kernels *kernels;
    bool (*is_here)(void);
} choices[] = {
#ifdef __x86_64__
    {&marey__kernels_avx512, has_avx512},
    {&marey__kernels_avx2, has_avx2},
#endif
    {&marey__kernels_plain, NULL},
};

/* Set by the first call; concurrent first calls store the same value, so relaxed order suffices. */
static const struct marey__kernels *_Atomic chosen;

static const struct marey__kernels *choose(const char *name)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(choices); i++)
        if ((name == NULL || strcmp(choices[i].kernels->name, name) == 0) &&
            (choices[i].is_here == NULL || choices[i].is_here()))
            return choices[i].kernels;
    return NULL;
}

const struct marey__kernels *marey__kernels_get(void)
{
    const struct marey__kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (kernels == NULL) {
        kernels = choose(NULL);
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}

void marey__kernels_use(const struct marey__kernels *kernels)
{
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
}

bool marey__kernels_force(const char *name)
{
    const struct marey__kernels *kernels = choose(name);
    if (kernels != NULL)
        marey__kernels_use(kernels);
    return kernels != NULL;
}
