/* Values as a reader of dumps lends them, in memory, for tests of comparing. */
#ifndef MAREY_TESTS_DIFF_VALUES_H
#define MAREY_TESTS_DIFF_VALUES_H

#include "tensor/diff/internal.h"

enum { MAX_VALUES = 64 };

/* A step's values with their numbers. A zeroed one is empty. */
struct made_side {
    struct marey_dumped_value values[MAX_VALUES];
    struct marey_tensor tensors[MAX_VALUES];
    int64_t sizes[MAX_VALUES][4];
    struct marey_digest digests[MAX_VALUES];
    struct marey_tensor_stats stats[MAX_VALUES];
    struct marey__diff_side side;
};

static inline marey_status get_made(const struct marey__diff_side *side, size_t value,
                                    struct marey__tensor_file *file, struct marey_tensor *out)
{
    const struct made_side *made = side->ctx;
    (void)file;
    if (!made->values[value].has_data)
        return marey__fail(MAREY_ESTATE, "%s has no numbers", made->values[value].name);
    *out = made->tensors[value];
    return MAREY_OK;
}

/* One row of `n` borrowed numbers. Returns the value's index. */
static inline size_t add_made(struct made_side *made, const char *name, enum marey_dtype dtype,
                              const void *data, int64_t n)
{
    const size_t i = made->side.n++;
    made->sizes[i][0] = n;
    made->tensors[i] =
        (struct marey_tensor){data, dtype, 1, made->sizes[i], NULL, MAREY_MEMORY_HOST, 0, 0};
    made->values[i] = (struct marey_dumped_value){
        .name = name,
        .seq = i,
        .dtype = dtype,
        .rank = 1,
        .sizes = made->sizes[i],
        .n_bytes = (uint64_t)n * marey_dtype_size(dtype),
        .has_data = 1,
    };
    made->side.values = made->values;
    made->side.open = get_made;
    made->side.ctx = made;
    return i;
}

static inline size_t add_floats(struct made_side *made, const char *name, const float *data, int64_t n)
{
    return add_made(made, name, MAREY_F32, data, n);
}

/* Set a value's digest, or a digest derived from a number. */
static inline void set_digest(struct made_side *made, size_t i, uint8_t number)
{
    made->digests[i] = (struct marey_digest){{number}};
    made->values[i].digest = &made->digests[i];
}

#endif
