/*
 * GPU tensors: cloned when added, then copied to the host in order by a separate thread. Readers wait until then.
 */
#include "instrument/cuda/internal.h"
#include "instrument/dump/internal.h"

static struct marey__dump *const dump = &marey__dump;

struct marey__dump_transit {
    struct marey__gpu_copy *copy;
    size_t n_bytes;    /* of the clone */
    int64_t first;     /* index of the first element in it */
    bool is_dense;     /* already row-major */
    uint32_t measures; /* not 0: measured instead of kept */
};

static uint64_t n_clone_bytes; /* of items in transit. Guarded by dump.lock */

/* ---- which bytes ---- */

/* Plans rows of contiguous elements at equal distances. */
static bool plan_rows(const struct marey_tensor *t, const int64_t *strides, size_t size,
                      struct marey__gpu_region *region)
{
    int64_t row = 1;
    uint32_t i = t->rank;
    for (; i > 0 && (t->sizes[i - 1] == 1 || strides[i - 1] == row); i--)
        row *= t->sizes[i - 1];
    if (i == 0)
        return false;
    int64_t n_rows = t->sizes[i - 1];
    const int64_t pitch = strides[i - 1];
    for (i--; i > 0; i--) {
        if (t->sizes[i - 1] != 1 && strides[i - 1] != pitch * n_rows)
            return false;
        n_rows *= t->sizes[i - 1];
    }
    *region = (struct marey__gpu_region){.device = t->device,
                                         .data = t->data,
                                         .row_bytes = (size_t)row * size,
                                         .n_rows = (size_t)n_rows,
                                         .pitch = (size_t)pitch * size};
    return pitch >= row;
}

/* Copies all bytes from the first to the last element if few are unused (transposed, expanded tensors), else rows. */
static marey_status plan(const struct marey__dump_item *item, struct marey__gpu_region *region,
                         struct marey__dump_transit *way)
{
    const struct marey_tensor *const t = &item->value.tensor;
    const size_t size = marey_dtype_size(t->dtype);
    way->is_dense = item->strides == NULL;
    *region = (struct marey__gpu_region){
        .device = t->device, .data = t->data, .row_bytes = item->n_bytes, .n_rows = 1};
    if (way->is_dense)
        return MAREY_OK;
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        const int64_t reach = (t->sizes[i] - 1) * item->strides[i];
        *(reach < 0 ? &low : &high) += reach;
    }
    const uint64_t span = (uint64_t)(high - low + 1) * size;
    way->first = -low;
    region->data = (const char *)t->data + low * (int64_t)size;
    region->row_bytes = span;
    if (span <= 4 * item->n_bytes + ((uint64_t)1 << 20))
        return MAREY_OK;
    way->is_dense = plan_rows(t, item->strides, size, region);
    return way->is_dense
               ? MAREY_OK
               : marey__fail(MAREY_EUNAVAILABLE,
                             "its elements lie far apart on the GPU; add a contiguous copy");
}

/* ---- to the host ---- */

/* Converts the bytes of the clone to row-major order. */
static marey_status arrange(struct marey__dump_item *item, const struct marey__dump_transit *way,
                            const char *bytes, void *out)
{
    struct marey_tensor t = item->value.tensor;
    t.data = bytes + way->first * (int64_t)marey_dtype_size(t.dtype);
    t.strides = item->strides;
    t.memory = MAREY_MEMORY_HOST;
    return marey_tensor_gather(&t, out);
}

/* Fetches into memory owned by the item. */
static marey_status fetch(struct marey__dump_item *item, struct marey__dump_transit *way)
{
    void *copy = NULL;
    marey_status st = marey__dump_item_take_room(item, &copy);
    void *const bytes =
        st != MAREY_OK || way->is_dense ? copy : marey__dump_memory_take(way->n_bytes);
    const marey_status fetched = marey__gpu_copy_fetch(way->copy, bytes);
    if (st == MAREY_OK && bytes == NULL)
        st = marey__no_memory();
    if (st == MAREY_OK)
        st = fetched;
    if (st == MAREY_OK && !way->is_dense)
        st = arrange(item, way, bytes, copy);
    if (bytes != copy)
        marey__dump_memory_give(bytes, way->n_bytes);
    if (st == MAREY_OK)
        marey__dump_item_own(item, copy);
    else
        marey__dump_item_give_room(item, copy);
    return st;
}

static marey_status bring(struct marey__dump_item *item, struct marey__dump_transit *way)
{
    MAREY_TRY(fetch(item, way));
    if (way->measures == 0)
        return MAREY_OK;
    MAREY_TRY(marey__dump_item_measure(item, way->measures));
    marey__dump_item_give_room(item, item->copy);
    item->copy = NULL;
    item->value.tensor.data = NULL;
    return MAREY_OK;
}

/* Caller holds the lock, which is released meanwhile. */
static void arrive(struct marey__dump_item *item)
{
    struct marey__dump_transit *const way = item->transit;
    pthread_mutex_unlock(&dump->lock);
    const marey_status st = bring(item, way);
    if (st != MAREY_OK)
        marey__say("dump: tensors of the GPU are missing: %s", marey_last_error());
    pthread_mutex_lock(&dump->lock);
    if (st != MAREY_OK) {
        item->missing = "gpu";
        dump->counts.n_failed++;
    }
    item->transit = NULL;
    n_clone_bytes -= way->n_bytes;
    pthread_cond_broadcast(&dump->done);
    marey__free(way);
}

struct marey__dump_worker marey__dump_gpu_worker = {
    .name = "marey-dump-gpu", .work = arrive, .has_work = PTHREAD_COND_INITIALIZER};

/* ---- from the program ---- */

/* Clones may use as much GPU memory as copies use host memory. */
static void wait_for_clones(uint64_t n_bytes)
{
    MAREY__HOLD(&dump->lock);
    while (n_clone_bytes > 0 && n_clone_bytes + n_bytes > dump->options.memory_bytes)
        pthread_cond_wait(&dump->done, &dump->lock);
}

/* If the GPU has no memory, waits until no other clones exist and tries again. */
static marey_status begin(const struct marey__gpu_region *region, void *stream,
                          struct marey__gpu_copy **out)
{
    const marey_status st = marey__gpu_copy_begin(region, stream, out);
    if (st != MAREY_ENOMEM)
        return st;
    wait_for_clones(UINT64_MAX / 2);
    return marey__gpu_copy_begin(region, stream, out);
}

marey_status marey__dump_gpu_take(struct marey__dump_item *item, uint32_t measures)
{
    struct marey__gpu_region region;
    struct marey__dump_transit *way MAREY__FREED = marey__calloc(1, sizeof *way);
    MAREY__TRY_MEMORY(way != NULL);
    MAREY_TRY(plan(item, &region, way));
    way->n_bytes = region.row_bytes * region.n_rows;
    way->measures = measures;
    wait_for_clones(way->n_bytes);
    MAREY_TRY(begin(&region, (void *)item->value.tensor.stream, &way->copy));
    item->transit = way;
    item->is_measured_only = measures != 0;
    item->value.tensor.data = NULL;
    item->value.tensor.strides = NULL;
    MAREY__HOLD(&dump->lock);
    n_clone_bytes += way->n_bytes;
    way = NULL; /* now owned by the item */
    if (!marey__dump_worker_add(&marey__dump_gpu_worker, item))
        arrive(item);
    return MAREY_OK;
}

void marey__dump_await(struct marey__dump_item *item)
{
    MAREY__HOLD(&dump->lock);
    while (item->transit != NULL)
        pthread_cond_wait(&dump->done, &dump->lock);
}

void marey__dump_gpu_after_fork(void)
{
    marey__dump_worker_after_fork(&marey__dump_gpu_worker);
    n_clone_bytes = 0;
}
