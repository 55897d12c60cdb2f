/*
 * Copies out of GPU memory without holding up the program.
 *
 *      the program's stream     ... work that makes the data │ clone ▏event │ the program's next work ...
 *      our stream                                              └─ waits for the event ─> pieces ─> pinned ring
 *      our thread                                                    waits for each piece, copies it to plain memory
 *
 * The program's stream only makes the clone, half a millisecond per GiB; after that the program may change, free or
 * reuse the memory. Clones are allocated from a memory pool of ours, which keeps its memory; the program's allocator is
 * not used. A pool may make one stream wait for another to reuse memory sooner; ours must not, as the program's stream
 * would wait for our copies.
 *
 * Nothing here waits for the device; our thread waits for events of our own stream.
 */
#include <pthread.h>
#include <string.h>

#include "instrument/cuda/internal.h"

enum {
    MAX_DEVICES = 32,
    SLOT_BYTES = 16 << 20,
    N_SLOTS = 4,
    EVENT_FLAGS = 1 | 2, /* a waiting thread sleeps; no timing */
    STREAM_NON_BLOCKING = 1,
    HOST_PORTABLE = 1,
    MEMORY_DEVICE = 2, /* CU_MEMORYTYPE_DEVICE */
    POOL_ALLOW_INTERNAL_DEPENDENCIES = 3,
    POOL_RELEASE_THRESHOLD = 4,
    CUDA_OUT_OF_MEMORY = 2,
};

/* As in cuda.h; reserved bytes follow. */
struct pool_properties {
    int allocation_type, handle_types, location_type, location_id;
    void *security;
    size_t max_size;
    unsigned char reserved[128];
};
struct copy_2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    unsigned long long src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    int dst_type;
    void *dst_host;
    unsigned long long dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

/* X(field, symbol, arguments) */
#define FUNCTIONS(X)                                                                                \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                             \
    X(stream_wait, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))                \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                                \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                   \
    X(event_wait, "cuEventSynchronize", (void *event))                                              \
    X(pool_create, "cuMemPoolCreate", (void **pool, const struct pool_properties *properties))      \
    X(pool_set, "cuMemPoolSetAttribute", (void *pool, int attribute, void *value))                  \
    X(allocate, "cuMemAllocFromPoolAsync",                                                          \
      (unsigned long long *at, size_t size, void *pool, void *stream))                              \
    X(release, "cuMemFreeAsync", (unsigned long long at, void *stream))                             \
    X(copy, "cuMemcpyDtoDAsync_v2",                                                                 \
      (unsigned long long to, unsigned long long from, size_t len, void *stream))                   \
    X(copy_2d, "cuMemcpy2DAsync_v2", (const struct copy_2d *what, void *stream))                    \
    X(fetch, "cuMemcpyDtoHAsync_v2", (void *to, unsigned long long from, size_t len, void *stream)) \
    X(host_allocate, "cuMemHostAlloc", (void **bytes, size_t size, unsigned flags))                 \
    X(context_device, "cuCtxGetDevice", (int *device))                                              \
    X(pool_trim, "cuMemPoolTrimTo", (void *pool, size_t keep))                                      \
    X(primary_context, "cuDevicePrimaryCtxRetain", (void **ctx, int device))

static struct {
#define FIELD(field, symbol, arguments) int(*field) arguments;
    FUNCTIONS(FIELD)
#undef FIELD
} cu;

/* One for each context that was copied from; never freed. */
struct place {
    void *ctx, *stream, *pool;
    void *events[N_SLOTS];        /* for the slots, in this context */
    struct marey__gpu_copy *free; /* each has an event */
};

struct marey__gpu_copy {
    struct marey__gpu_copy *next;
    struct place *place;
    void *event; /* recorded after the clone */
    unsigned long long clone;
    size_t len;
};

static struct {
    pthread_mutex_t lock; /* guards places and their lists; held during CUDA calls only to create a place */
    pthread_mutex_t fetch_lock; /* guards the ring; one thread fetches at a time */
    struct place places[MAX_DEVICES];
    size_t n_places;
    char *slots[N_SLOTS]; /* pinned; allocated with the first fetch */
    bool is_found;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER, .fetch_lock = PTHREAD_MUTEX_INITIALIZER};

static marey_status refused(const char *what, int error)
{
    return marey__fail(error == CUDA_OUT_OF_MEMORY ? MAREY_ENOMEM : MAREY_EIO,
                       "CUDA cannot %s (error %d)", what, error);
}

/* ---- places ---- */

static bool find_functions(void)
{
    bool is_whole = true;
#define FIND(field, symbol, arguments)                                                             \
    *(void **)&cu.field = marey__driver_symbol(symbol);                                            \
    is_whole = is_whole && cu.field != NULL;
    FUNCTIONS(FIND)
#undef FIND
    return is_whole;
}

/* The context is current. Caller holds the lock. */
static int make_place(struct place *place, void *ctx)
{
    int device = 0, never = 0;
    uint64_t always = UINT64_MAX;
    int error = cu.context_device(&device);
    const struct pool_properties properties = {
        .allocation_type = 1, .location_type = 1, .location_id = device};
    if (error == 0)
        error = cu.stream_create(&place->stream, STREAM_NON_BLOCKING);
    if (error == 0)
        error = cu.pool_create(&place->pool, &properties);
    if (error == 0)
        error = cu.pool_set(place->pool, POOL_ALLOW_INTERNAL_DEPENDENCIES, &never);
    if (error == 0)
        error = cu.pool_set(place->pool, POOL_RELEASE_THRESHOLD, &always);
    for (int i = 0; i < N_SLOTS && error == 0; i++)
        error = cu.event_create(&place->events[i], EVENT_FLAGS);
    place->ctx = ctx;
    return error;
}

static bool has_functions(void)
{
    MAREY__HOLD(&gpu.lock);
    gpu.is_found = gpu.is_found || find_functions();
    return gpu.is_found;
}

/*
 * The context to work in. A default stream belongs to the current context, which must be on the tensor's device. On
 * another device, or in a thread that has not used CUDA yet, it means the device's primary context, as in the runtime
 * and in torch. Like those, we retain it on each call and never release it.
 */
static int choose_context(const struct marey__driver *driver, int device, void *stream, void **ctx)
{
    int current = -1;
    if ((uintptr_t)stream > 2)
        return marey__driver_context(driver, stream, ctx);
    if (driver->ctx_get_current(ctx) == 0 && *ctx != NULL && cu.context_device(&current) == 0 &&
        current == device)
        return 0;
    return cu.primary_context(ctx, device);
}

/* The context is current. */
static marey_status get_place(void *ctx, struct place **out)
{
    marey_status st = MAREY_OK;
    MAREY__HOLD(&gpu.lock);
    size_t i = 0;
    while (i < gpu.n_places && gpu.places[i].ctx != ctx)
        i++;
    if (i == MAX_DEVICES)
        st = marey__fail(MAREY_EUNAVAILABLE, "there are more than %d CUDA contexts", MAX_DEVICES);
    else if (i == gpu.n_places) {
        const int error = make_place(&gpu.places[i], ctx);
        gpu.n_places += error == 0;
        st = error == 0 ? MAREY_OK : refused("make a stream and a pool of memory", error);
    }
    *out = &gpu.places[i];
    return st;
}

/* ---- clones ---- */

/* NULL with a status and message on failure. */
static struct marey__gpu_copy *take(struct place *place, marey_status *st)
{
    pthread_mutex_lock(&gpu.lock);
    struct marey__gpu_copy *copy = place->free;
    if (copy != NULL)
        place->free = copy->next;
    pthread_mutex_unlock(&gpu.lock);
    if (copy != NULL)
        return copy;
    copy = marey__calloc(1, sizeof *copy);
    if (copy == NULL) {
        *st = marey__no_memory();
        return NULL;
    }
    copy->place = place;
    const int error = cu.event_create(&copy->event, EVENT_FLAGS);
    if (error == 0)
        return copy;
    *st = refused("make an event", error);
    marey__free(copy);
    return NULL;
}

static void give(struct marey__gpu_copy *copy)
{
    MAREY__HOLD(&gpu.lock);
    copy->next = copy->place->free;
    copy->place->free = copy;
}

static int enqueue(struct marey__gpu_copy *copy, const struct marey__gpu_region *region, void *stream)
{
    const unsigned long long from = (uintptr_t)region->data;
    int error = cu.allocate(&copy->clone, copy->len, copy->place->pool, stream);
    if (error != 0)
        return error;
    if (region->n_rows == 1) {
        error = cu.copy(copy->clone, from, copy->len, stream);
    } else {
        const struct copy_2d what = {.src_type = MEMORY_DEVICE,
                                     .src_device = from,
                                     .src_pitch = region->pitch,
                                     .dst_type = MEMORY_DEVICE,
                                     .dst_device = copy->clone,
                                     .dst_pitch = region->row_bytes,
                                     .width = region->row_bytes,
                                     .height = region->n_rows};
        error = cu.copy_2d(&what, stream);
    }
    if (error == 0)
        error = cu.event_record(copy->event, stream);
    if (error != 0)
        cu.release(copy->clone, stream);
    return error;
}

/* The context is current. */
static marey_status begin_in(void *ctx, void *stream, const struct marey__gpu_region *region,
                             struct marey__gpu_copy **out)
{
    const struct marey__driver *const driver = marey__driver_get();
    int is_capturing = 0;
    int error = driver->stream_is_capturing(stream, &is_capturing);
    if (error == MAREY__CUDA_CAPTURE_IMPLICIT || (error == 0 && is_capturing != 0))
        return marey__fail(MAREY_EUNAVAILABLE, "its stream is being captured into a graph");
    if (error != 0)
        return refused("read the state of a stream", error);
    struct place *place = NULL;
    marey_status st = get_place(ctx, &place);
    struct marey__gpu_copy *const copy = st == MAREY_OK ? take(place, &st) : NULL;
    if (copy == NULL)
        return st;
    copy->len = region->row_bytes * region->n_rows;
    error = enqueue(copy, region, stream);
    if (error != 0) {
        give(copy);
        return refused("clone a tensor", error);
    }
    *out = copy;
    return MAREY_OK;
}

marey_status marey__gpu_copy_begin(const struct marey__gpu_region *region, void *stream,
                                   struct marey__gpu_copy **out)
{
    const struct marey__driver *const driver = marey__driver_get();
    void *ctx = NULL;
    bool is_entered;
    if (driver == NULL)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "this process has no CUDA driver, but a tensor of CUDA");
    if (!has_functions())
        return marey__fail(MAREY_EUNAVAILABLE, "the CUDA driver is older than CUDA 11.2");
    const int error = choose_context(driver, region->device, stream, &ctx);
    if (error == MAREY__CUDA_CAPTURE_IMPLICIT)
        return marey__fail(MAREY_EUNAVAILABLE, "its stream is being captured into a graph");
    if (error != 0)
        return refused("find the context of a stream", error);
    if (!marey__driver_enter(driver, ctx, &is_entered))
        return marey__fail(MAREY_EIO, "CUDA cannot switch to the context of a stream");
    /* Our allocations must not invalidate a graph capture of the program in another stream. */
    const int mode = marey__driver_exchange_capture_mode(driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
    const marey_status st = begin_in(ctx, stream, region, out);
    marey__driver_exchange_capture_mode(driver, mode);
    marey__driver_leave(driver, is_entered);
    return st;
}

/* ---- fetching ---- */

static int make_ring(void)
{
    int error = 0;
    for (int i = 0; i < N_SLOTS && error == 0; i++)
        if (gpu.slots[i] == NULL)
            error = cu.host_allocate((void **)&gpu.slots[i], SLOT_BYTES, HOST_PORTABLE);
    return error;
}

/* Starts the copy of piece `i` into its slot. */
static int ask(const struct marey__gpu_copy *copy, size_t i)
{
    const struct place *const place = copy->place;
    const size_t at = i * SLOT_BYTES, len = MAREY__MIN(copy->len - at, (size_t)SLOT_BYTES);
    const int error = cu.fetch(gpu.slots[i % N_SLOTS], copy->clone + at, len, place->stream);
    return error == 0 ? cu.event_record(place->events[i % N_SLOTS], place->stream) : error;
}

/* Caller holds the ring's lock, the context is current. A slot is reused once it was emptied. */
static int fetch_pieces(const struct marey__gpu_copy *copy, char *out)
{
    const size_t n = (copy->len + SLOT_BYTES - 1) / SLOT_BYTES;
    int error = make_ring();
    for (size_t i = 0; i < MAREY__MIN(n, (size_t)N_SLOTS) && error == 0; i++)
        error = ask(copy, i);
    for (size_t i = 0; i < n && error == 0; i++) {
        const size_t at = i * SLOT_BYTES;
        error = cu.event_wait(copy->place->events[i % N_SLOTS]);
        if (error == 0)
            memcpy(out + at, gpu.slots[i % N_SLOTS], MAREY__MIN(copy->len - at, (size_t)SLOT_BYTES));
        if (error == 0 && i + N_SLOTS < n)
            error = ask(copy, i + N_SLOTS);
    }
    return error;
}

marey_status marey__gpu_copy_fetch(struct marey__gpu_copy *copy, void *out)
{
    const struct marey__driver *const driver = marey__driver_get();
    bool is_entered;
    marey_status st = MAREY_OK;
    if (!marey__driver_enter(driver, copy->place->ctx, &is_entered))
        return marey__fail(MAREY_EIO, "CUDA cannot switch to the context of a tensor");
    pthread_mutex_lock(&gpu.fetch_lock);
    const int mode = marey__driver_exchange_capture_mode(driver, MAREY__CUDA_CAPTURE_MODE_RELAXED);
    int error = cu.stream_wait(copy->place->stream, copy->event, 0); /* also before it is freed */
    if (error == 0 && out != NULL)
        error = fetch_pieces(copy, out);
    cu.release(copy->clone, copy->place->stream);
    marey__driver_exchange_capture_mode(driver, mode);
    pthread_mutex_unlock(&gpu.fetch_lock);
    st = error == 0 ? MAREY_OK : refused("copy a tensor to the host", error);
    marey__driver_leave(driver, is_entered);
    give(copy);
    return st;
}

void marey__gpu_copy_trim(void)
{
    MAREY__HOLD(&gpu.lock);
    for (size_t i = 0; i < gpu.n_places; i++)
        cu.pool_trim(gpu.places[i].pool, 0); /* memory that cannot be trimmed stays in the pool */
}

void marey__gpu_copy_after_fork(void)
{
    pthread_mutex_init(&gpu.lock, NULL);
    pthread_mutex_init(&gpu.fetch_lock, NULL);
    gpu.n_places = 0;
    memset(gpu.slots, 0, sizeof gpu.slots);
}
