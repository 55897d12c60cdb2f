/* Sizes and strides: validating them, and copying elements into row-major order. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tensor/kernels/internal.h"

/* Adds |n * m| to *sum; false beyond 63 bits. */
static bool add_product(uint64_t n, uint64_t m, uint64_t *sum)
{
    uint64_t product;
    return !__builtin_mul_overflow(n, m, &product) && !__builtin_add_overflow(*sum, product, sum) &&
           *sum <= INT64_MAX;
}

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

/* Whether the distance between its elements, in bytes, fits into 63 bits. */
static bool reach_fits(const struct marey_tensor *tensor, size_t size)
{
    uint64_t reach = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!add_product((uint64_t)tensor->sizes[i] - 1, magnitude(tensor->strides[i]), &reach))
            return false;
    uint64_t bytes = 0;
    return add_product(reach, size, &bytes);
}

static marey_status check_sizes(const struct marey_tensor *tensor, bool *is_empty)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->sizes[i] < 0)
            return marey__fail(MAREY_EINVAL, "size %lld of axis %u of a tensor is negative",
                               (long long)tensor->sizes[i], i);
        else if (tensor->sizes[i] == 0)
            *is_empty = true;
    return MAREY_OK;
}

marey_status marey_tensor_check(const struct marey_tensor *tensor)
{
    if (tensor == NULL)
        return marey__fail(MAREY_EINVAL, "the tensor is NULL");
    const struct marey__dtype *type = marey__dtype_get(tensor->dtype);
    if (type == NULL)
        return marey__fail(MAREY_EINVAL, "%d is not a dtype", (int)tensor->dtype);
    if (tensor->rank > MAREY_MAX_RANK)
        return marey__fail(MAREY_EINVAL, "a tensor of rank %u; %d is the most that can be read",
                           tensor->rank, MAREY_MAX_RANK);
    if (tensor->rank > 0 && tensor->sizes == NULL)
        return marey__fail(MAREY_EINVAL, "a tensor of rank %u without sizes (NULL)", tensor->rank);
    bool is_empty = false;
    MAREY_TRY(check_sizes(tensor, &is_empty));
    if (is_empty)
        return MAREY_OK;
    uint64_t bytes = type->size;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint64_t grown = 0;
        if (!add_product(bytes, (uint64_t)tensor->sizes[i], &grown))
            return marey__fail(MAREY_EINVAL, "a tensor whose sizes multiply to more than 63 bits");
        bytes = grown;
    }
    if (tensor->strides != NULL && !reach_fits(tensor, type->size))
        return marey__fail(MAREY_EINVAL, "a tensor whose strides reach further than 63 bits");
    if (tensor->data == NULL)
        return marey__fail(MAREY_EINVAL, "a tensor with elements but without data (NULL)");
    return MAREY_OK;
}

marey_status marey__tensor_check_host(const struct marey_tensor *tensor)
{
    MAREY_TRY(marey_tensor_check(tensor));
    if (tensor->memory != MAREY_MEMORY_HOST && tensor->memory != MAREY_MEMORY_CPU)
        return marey__fail(
            MAREY_EINVAL, "a tensor in memory of kind %d, where the host's is needed: copy it first",
            (int)tensor->memory);
    return MAREY_OK;
}

marey_status marey__tensor_check_readable(const struct marey_tensor *tensor)
{
    return marey__tensor_is_in_file(tensor) && tensor->strides == NULL
               ? marey_tensor_check(tensor)
               : marey__tensor_check_host(tensor);
}

uint64_t marey_tensor_count(const struct marey_tensor *tensor)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        n *= (uint64_t)tensor->sizes[i];
    return n;
}

uint64_t marey_tensor_bytes(const struct marey_tensor *tensor)
{
    return marey_tensor_count(tensor) * marey_dtype_size(tensor->dtype);
}

int marey_tensor_is_row_major(const struct marey_tensor *tensor)
{
    if (tensor->strides == NULL || marey_tensor_count(tensor) <= 1)
        return 1;
    int64_t expected = 1;
    for (uint32_t i = tensor->rank; i-- > 0;) {
        if (tensor->sizes[i] != 1 && tensor->strides[i] != expected)
            return 0;
        expected *= tensor->sizes[i];
    }
    return 1;
}

static void layout_of(const struct marey_tensor *tensor, struct marey__layout *out)
{
    const int64_t size = (int64_t)marey_dtype_size(tensor->dtype);
    int64_t row_major[MAREY_MAX_RANK];
    const int64_t *strides = tensor->strides;
    if (strides == NULL) {
        int64_t stride = 1;
        for (uint32_t i = tensor->rank; i-- > 0; stride *= tensor->sizes[i])
            row_major[i] = stride;
        strides = row_major;
    }
    out->rank = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const uint64_t n = (uint64_t)tensor->sizes[i];
        const uint32_t last = out->rank - 1;
        if (n == 1)
            continue;
        if (out->rank > 0 && out->strides[last] == (int64_t)n * strides[i] * size) {
            out->sizes[last] *= n;
            out->strides[last] = strides[i] * size;
        } else {
            out->sizes[out->rank] = n;
            out->strides[out->rank++] = strides[i] * size;
        }
    }
    if (out->rank == 0) {
        out->rank = 1;
        out->sizes[0] = 1;
        out->strides[0] = size;
    }
}

/* Copies one row of elements, `stride` bytes apart. */
static void copy_row(const unsigned char *from, int64_t stride, size_t size, uint64_t n,
                     unsigned char *to)
{
    if (stride == (int64_t)size) {
        memcpy(to, from, n * size);
        return;
    }
    /* A copy of constant length is one load and one store. */
#define COPY(SIZE)                                                                                 \
    case SIZE:                                                                                     \
        for (uint64_t i = 0; i < n; i++)                                                           \
            memcpy(to + i * (SIZE), from + (int64_t)i * stride, (SIZE));                           \
        break
    switch (size) {
        COPY(1);
        COPY(2);
        COPY(4);
        COPY(8);
        COPY(16);
    default:
        break;
    }
#undef COPY
}

/* Copies `n` elements of `size` bytes from row-major index `first`. */
static void layout_copy(const struct marey__layout *layout, const void *data, size_t size,
                        uint64_t first, uint64_t n, void *out)
{
    const uint32_t last = layout->rank - 1;
    uint64_t at[MAREY_MAX_RANK];
    const unsigned char *from = data;
    uint64_t rest = first;
    for (uint32_t i = layout->rank; i-- > 0;) {
        at[i] = rest % layout->sizes[i];
        rest /= layout->sizes[i];
        from += (int64_t)at[i] * layout->strides[i];
    }
    unsigned char *to = out;
    while (n > 0) {
        const uint64_t run = MAREY__MIN(n, layout->sizes[last] - at[last]);
        copy_row(from, layout->strides[last], size, run, to);
        to += run * size;
        n -= run;
        /* Advances to the next row: each finished axis restarts and advances the one before it. */
        from -= (int64_t)at[last] * layout->strides[last];
        at[last] = 0;
        for (uint32_t i = last; i-- > 0;) {
            from += layout->strides[i];
            if (++at[i] < layout->sizes[i])
                break;
            from -= (int64_t)layout->sizes[i] * layout->strides[i];
            at[i] = 0;
        }
    }
}

marey_status marey_tensor_gather(const struct marey_tensor *tensor, void *out)
{
    MAREY_TRY(marey__tensor_check_host(tensor));
    const uint64_t n = marey_tensor_count(tensor);
    if (n == 0)
        return MAREY_OK;
    struct marey__layout layout;
    layout_of(tensor, &layout);
    layout_copy(&layout, tensor->data, marey_dtype_size(tensor->dtype), 0, n, out);
    return MAREY_OK;
}

void marey__tensor_view_of(const struct marey_tensor *tensor, struct marey__tensor_view *out)
{
    out->data = tensor->data;
    out->file = marey__tensor_is_in_file(tensor) ? (struct marey__tensor_file *)tensor->data : NULL;
    out->type = marey__dtype_get(tensor->dtype);
    out->is_row_major = marey_tensor_is_row_major(tensor) != 0;
    if (!out->is_row_major)
        layout_of(tensor, &out->layout);
}

static void read_block(struct marey__tensor_file *file, uint64_t at, size_t n, char *room)
{
    while (n > 0) {
        const ssize_t got = pread(file->fd, room, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            memset(room, 0, n);
            atomic_store_explicit(&file->error, got == 0 ? -1 : errno, memory_order_relaxed);
            return;
        }
        room += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
}

marey_status marey__tensor_read_status(const struct marey_tensor *tensor)
{
    if (!marey__tensor_is_in_file(tensor))
        return MAREY_OK;
    const struct marey__tensor_file *file = tensor->data;
    const int error = atomic_load_explicit(&file->error, memory_order_relaxed);
    if (error == 0)
        return MAREY_OK;
    return error < 0 ? marey__fail(MAREY_EFORMAT, "%s was truncated while it was read", file->path)
                     : marey__fail(MAREY_EIO, "cannot read %s: %s", file->path, strerror(error));
}

const void *marey__tensor_view_block(const struct marey__tensor_view *view, uint64_t first,
                                     size_t n, void *room)
{
    if (view->file != NULL) {
        read_block(view->file, view->file->at + first * view->type->size, n * view->type->size, room);
        return room;
    }
    if (view->is_row_major)
        return view->data + first * view->type->size;
    layout_copy(&view->layout, view->data, view->type->size, first, n, room);
    return room;
}
