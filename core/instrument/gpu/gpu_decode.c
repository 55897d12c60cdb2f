/* Records of CUPTI to events of their streams, each in the order in which work began. */
#include <stdio.h>
#include <string.h>

#include "instrument/gpu/internal.h"

/* One piece of work, decoded. */
struct work {
    uint64_t begin, end; /* ticks */
    uint64_t correlation, bytes;
    uint64_t address; /* of memory that is allocated or freed; else 0 */
    marey_id site;
    struct marey_launch launch;
    uint32_t stream;
    int32_t device;
    enum marey_work_kind kind;
};

/*
 * Lanes of streams. Records of one stream may come out of order, when several threads launch or a graph runs: what
 * began before the latest of its lane goes to another lane of the same stream.
 */
enum { MAX_STREAMS = 4096, MAX_LANES_EACH = 16, N_SLOTS = 2 * MAX_STREAMS };
struct stream {
    int64_t tid; /* device in the upper 32 bits, stream in the lower */
    uint32_t n;
    struct stream_lane {
        uint64_t last_begin;
        struct marey__lane *lane;
    } lanes[MAX_LANES_EACH];
};
static struct {
    pthread_mutex_t lock; /* guards everything here and in gpu_names.c */
    struct stream *streams;
    size_t n, cap;
    uint16_t slots[N_SLOTS]; /* streams by a hash of `tid`: number + 1; 0: empty */
} work = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- records ---- */

static void decode_kernel(const uint8_t *r, struct work *out)
{
    uint32_t sizes[8]; /* grid, block, static and dynamic shared memory are adjacent in CUPTI's record */
    const char *name;
    memcpy(sizes, r + MAREY__KERNEL_GRID, sizeof sizes);
    memcpy(&name, r + MAREY__KERNEL_NAME, sizeof name);
    *out = (struct work){.begin = u64(r + MAREY__KERNEL_START),
                         .end = u64(r + MAREY__KERNEL_END),
                         .correlation = u32(r + MAREY__KERNEL_CORRELATION),
                         .site = marey__gpu_kernel_site(name),
                         .launch = {.grid = {sizes[0], sizes[1], sizes[2]},
                                    .block = {sizes[3], sizes[4], sizes[5]},
                                    .registers = u16(r + MAREY__KERNEL_REGISTERS),
                                    .static_shared_bytes = sizes[6],
                                    .dynamic_shared_bytes = sizes[7],
                                    .graph = u32(r + MAREY__KERNEL_GRAPH),
                                    .graph_node = u64(r + MAREY__KERNEL_GRAPH_NODE)},
                         .stream = u32(r + MAREY__KERNEL_STREAM),
                         .device = (int32_t)u32(r + MAREY__KERNEL_DEVICE),
                         .kind = MAREY_WORK_KERNEL};
}

static void decode_copy(const uint8_t *r, bool is_peer, struct work *out)
{
    *out = (struct work){
        .begin = u64(r + MAREY__COPY_START),
        .end = u64(r + MAREY__COPY_END),
        .correlation = u32(r + (is_peer ? MAREY__PEER_CORRELATION : MAREY__COPY_CORRELATION)),
        .bytes = u64(r + MAREY__COPY_BYTES),
        .site = marey__gpu_copy_site(r[MAREY__COPY_KIND], r[MAREY__COPY_FROM], r[MAREY__COPY_TO]),
        .launch = {.graph = u32(r + (is_peer ? MAREY__PEER_GRAPH : MAREY__COPY_GRAPH)),
                   .graph_node = u64(r + (is_peer ? MAREY__PEER_GRAPH_NODE : MAREY__COPY_GRAPH_NODE))},
        .stream = u32(r + MAREY__COPY_STREAM),
        .device = (int32_t)u32(r + MAREY__COPY_DEVICE),
        .kind = MAREY_WORK_COPY};
}

static void decode_set(const uint8_t *r, struct work *out)
{
    decode_copy(r, false, out);
    out->site = marey__gpu_set_site(u16(r + MAREY__SET_MEMORY));
    out->kind = MAREY_WORK_SET;
}

/* A wait of the host has no stream, or all of them; it goes to the lane of the stream number that CUPTI gives. */
static void decode_sync(const uint8_t *r, struct work *out)
{
    *out = (struct work){.begin = u64(r + MAREY__SYNC_START),
                         .end = u64(r + MAREY__SYNC_END),
                         .correlation = u32(r + MAREY__SYNC_CORRELATION),
                         .site = marey__gpu_sync_site(u32(r + MAREY__SYNC_TYPE)),
                         .stream = u32(r + MAREY__SYNC_STREAM),
                         .kind = MAREY_WORK_SYNC};
}

static void decode_memory(const uint8_t *r, struct work *out)
{
    *out = (struct work){.begin = u64(r + MAREY__MEMORY_TIME),
                         .end = u64(r + MAREY__MEMORY_TIME),
                         .correlation = u32(r + MAREY__MEMORY_CORRELATION),
                         .bytes = u64(r + MAREY__MEMORY_BYTES),
                         .address = u64(r + MAREY__MEMORY_ADDRESS),
                         .site = marey__gpu_memory_site(u32(r + MAREY__MEMORY_OPERATION),
                                                        u32(r + MAREY__MEMORY_KIND)),
                         .stream = u32(r + MAREY__MEMORY_STREAM),
                         .device = (int32_t)u32(r + MAREY__MEMORY_DEVICE),
                         .kind = MAREY_WORK_MEMORY};
}

/* False for what is not kept: other kinds, what began too early or was launched too late, what has not ended. */
static bool decode(const uint8_t *record, struct work *out)
{
    struct marey_gpu_counts *const counts = &marey__gpu.counts;
    uint64_t *count;
    switch (u32(record)) {
    case MAREY__CUPTI_KERNEL:
        decode_kernel(record, out);
        count = &counts->kernels;
        break;
    case MAREY__CUPTI_MEMCPY:
    case MAREY__CUPTI_MEMCPY_PEER:
        decode_copy(record, u32(record) == MAREY__CUPTI_MEMCPY_PEER, out);
        count = &counts->copies;
        break;
    case MAREY__CUPTI_MEMSET:
        decode_set(record, out);
        count = &counts->sets;
        break;
    case MAREY__CUPTI_SYNC:
        decode_sync(record, out);
        count = &counts->syncs;
        break;
    case MAREY__CUPTI_MEMORY:
        decode_memory(record, out);
        count = &counts->memory_operations;
        break;
    default:
        return false;
    }
    if (!marey__gpu_is_earlier((uint32_t)out->correlation))
        return false;
    if (out->begin == 0 || out->end < out->begin) {
        marey__gpu_count(&counts->incomplete, 1);
        return false;
    }
    if (!marey__gpu_is_kept(out->begin) || out->site == 0)
        return false;
    marey__gpu_count(count, 1);
    return true;
}

/* ---- lanes ---- */

/* The stream of a tid, added when it is new; NULL on out of memory and past MAX_STREAMS. */
static struct stream *stream_of(int64_t tid)
{
    size_t slot = ((uint64_t)tid * UINT64_C(0x9e3779b97f4a7c15) >> 32) % N_SLOTS;
    for (; work.slots[slot] != 0; slot = (slot + 1) % N_SLOTS)
        if (work.streams[work.slots[slot] - 1].tid == tid)
            return &work.streams[work.slots[slot] - 1];
    if (work.n == MAX_STREAMS ||
        !marey__grow(&work.streams, &work.cap, work.n + 1, sizeof *work.streams))
        return NULL;
    work.streams[work.n] = (struct stream){.tid = tid};
    work.slots[slot] = (uint16_t)++work.n;
    return &work.streams[work.n - 1];
}

static struct stream_lane *open_lane(struct stream *stream)
{
    char name[24];
    if (stream->n == MAX_LANES_EACH)
        return NULL;
    if ((uint32_t)stream->tid == UINT32_MAX) /* as CUPTI numbers what concerns them all */
        snprintf(name, sizeof name, "all streams");
    else
        snprintf(name, sizeof name, "stream %u", (uint32_t)stream->tid);
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, stream->tid, name);
    if (lane == NULL)
        return NULL;
    stream->lanes[stream->n] = (struct stream_lane){.lane = lane};
    return &stream->lanes[stream->n++];
}

/* The lane of the stream whose latest work began last of those that began before this; a new one if there is none. */
static struct stream_lane *lane_for(const struct work *piece)
{
    struct stream *const stream =
        stream_of((int64_t)((uint64_t)(uint32_t)piece->device << 32 | piece->stream));
    struct stream_lane *best = NULL;
    for (uint32_t i = 0; stream != NULL && i < stream->n; i++) {
        struct stream_lane *const at = &stream->lanes[i];
        if (at->last_begin <= piece->begin && (best == NULL || at->last_begin > best->last_begin))
            best = at;
    }
    return best != NULL || stream == NULL ? best : open_lane(stream);
}

/* How many words a record needs: those at its end may be missing where they are 0. */
static size_t n_words_of(const struct work *piece)
{
    if (piece->launch.graph != 0)
        return 10;
    if (piece->kind == MAREY_WORK_KERNEL)
        return 8;
    return piece->address != 0 ? 5 : 4;
}

static void write_work(const struct work *piece)
{
    const struct marey_launch *const l = &piece->launch;
    const uint64_t words[] = {
        (uint64_t)piece->site | (uint64_t)piece->kind << 20,
        piece->end - piece->begin,
        marey__gpu_correlation((uint32_t)piece->correlation),
        piece->bytes,
        piece->address,
        (uint64_t)l->grid[0] | (uint64_t)l->grid[1] << 32 | (uint64_t)l->grid[2] << 48,
        (uint64_t)l->block[0] | (uint64_t)l->block[1] << 16 | (uint64_t)l->block[2] << 32 |
            (uint64_t)l->registers << 48,
        (uint64_t)l->static_shared_bytes | (uint64_t)l->dynamic_shared_bytes << 32,
        l->graph,
        l->graph_node};
    struct stream_lane *lane = lane_for(piece);
    if (lane == NULL)
        marey__record_lost(1, piece->begin, piece->end);
    else if (marey__side_lane_put(lane->lane, piece->begin, MAREY_RECORD_GPU, words,
                                  n_words_of(piece)))
        lane->last_begin = piece->begin;
    else
        marey__gpu_count(&marey__gpu.counts.lost, 1);
}

static int by_begin(const void *a, const void *b)
{
    const struct work *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

void marey__gpu_decode(const uint8_t *const *records, size_t n)
{
    struct work pieces[MAREY__GPU_BATCH];
    size_t n_pieces = 0;
    bool is_ordered = true;
    pthread_mutex_lock(&work.lock);
    for (size_t i = 0; i < n; i++) {
        if (!decode(records[i], &pieces[n_pieces]))
            continue;
        is_ordered =
            is_ordered && (n_pieces == 0 || pieces[n_pieces - 1].begin <= pieces[n_pieces].begin);
        n_pieces++;
    }
    if (!is_ordered)
        qsort(pieces, n_pieces, sizeof *pieces, by_begin);
    for (size_t i = 0; i < n_pieces; i++)
        write_work(&pieces[i]);
    pthread_mutex_unlock(&work.lock);
}

void marey__gpu_decode_before_fork(void)
{
    pthread_mutex_lock(&work.lock);
}

/* The recording has freed the child's copies of all lanes. */
void marey__gpu_decode_after_fork(bool in_child)
{
    if (in_child) {
        work.n = 0;
        memset(work.slots, 0, sizeof work.slots);
    }
    pthread_mutex_unlock(&work.lock);
}
