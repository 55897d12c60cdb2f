/* Values as a reader of dumps lends them, in memory, for tests of comparing. */
#ifndef KYMO_TESTS_DIFF_VALUES_H
#define KYMO_TESTS_DIFF_VALUES_H

#include "diff/diff_internal.h"

enum { MAX_VALUES = 64 };

/* A step's values with their numbers. A zeroed one is empty. */
struct made_side {
    struct kymo_dumped_value values[MAX_VALUES];
    struct kymo_tensor tensors[MAX_VALUES];
    int64_t sizes[MAX_VALUES][4];
    struct kymo_digest digests[MAX_VALUES];
    struct kymo_tensor_stats stats[MAX_VALUES];
    struct kymo__diff_side side;
};

static inline kymo_status get_made(const struct kymo__diff_side *side, size_t value,
                                   struct kymo_tensor *out)
{
    const struct made_side *made = side->ctx;
    if (!made->values[value].has_data)
        return kymo__fail(KYMO_ESTATE, "%s has no numbers", made->values[value].name);
    *out = made->tensors[value];
    return KYMO_OK;
}

/* One row of `n` numbers, lent. Returns the value's place. */
static inline size_t add_made(struct made_side *made, const char *name, enum kymo_dtype dtype,
                              const void *data, int64_t n)
{
    const size_t i = made->side.n++;
    made->sizes[i][0] = n;
    made->tensors[i] =
        (struct kymo_tensor){data, dtype, 1, made->sizes[i], NULL, KYMO_MEMORY_HOST, 0, 0};
    made->values[i] = (struct kymo_dumped_value){
        .name = name,
        .seq = i,
        .dtype = dtype,
        .rank = 1,
        .sizes = made->sizes[i],
        .n_bytes = (uint64_t)n * kymo_dtype_size(dtype),
        .has_data = 1,
    };
    made->side.values = made->values;
    made->side.get = get_made;
    made->side.ctx = made;
    return i;
}

static inline size_t add_floats(struct made_side *made, const char *name, const float *data, int64_t n)
{
    return add_made(made, name, KYMO_F32, data, n);
}

/* Give a value its digest, or a digest by number. */
static inline void set_digest(struct made_side *made, size_t i, uint8_t number)
{
    made->digests[i] = (struct kymo_digest){{number}};
    made->values[i].digest = &made->digests[i];
}

#endif
