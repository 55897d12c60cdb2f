/* CUPTI's records as events of their streams, ordered by begin. Kernels have demangled names, copies those of Kineto. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "instrument/gpu/internal.h"

/* One decoded activity. */
struct work {
    uint64_t begin, end; /* ticks */
    uint64_t correlation, bytes;
    uint64_t address; /* of allocated or freed memory; else 0 */
    marey_id site;
    struct marey_launch launch;
    uint32_t stream;
    int32_t device;
    enum marey_work_kind kind;
};

/* Lanes of streams. Activity that began before the last one of its lane (several launchers, a graph) takes another lane. */
enum { MAX_STREAMS = 4096, MAX_LANES_EACH = 16 };
struct stream {
    int64_t tid; /* device in the upper 32 bits, stream in the lower */
    uint32_t n;
    struct stream_lane {
        uint64_t last_begin;
        struct marey__lane *lane;
    } lanes[MAX_LANES_EACH];
};
static struct {
    pthread_mutex_t lock; /* guards everything here */
    struct stream *streams;
    size_t n, cap;
    struct marey__key_map by_tid;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define READER(name, type)                                                                         \
    static type name(const uint8_t *at)                                                            \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return value;                                                                              \
    }
READER(u16, uint16_t)
READER(u32, uint32_t)
READER(u64, uint64_t)

/* ---- sites by mangled name ---- */

struct entry {
    const char *key; /* owned */
    uint32_t len;
    marey_id site;
};
struct map {
    struct entry *entries;
    size_t n, cap;
    struct marey__index by_key;
};

/* The key's entry, with site 0 if it is new; NULL on out of memory. Valid until the next call. */
static struct entry *entry_of(struct map *map, const char *key, uint32_t len)
{
    const uint32_t hash = marey__crc32c(0, key, len);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&map->by_key, hash, &at)) != 0;) {
        struct entry *entry = &map->entries[number - 1];
        if (entry->len == len && memcmp(entry->key, key, len) == 0)
            return entry;
    }
    if (!marey__grow(&map->entries, &map->cap, map->n + 1, sizeof *map->entries))
        return NULL;
    const char *copy = marey__strndup(key, len);
    if (copy == NULL || !marey__index_put(&map->by_key, hash, (uint32_t)map->n + 1)) {
        marey__free((char *)copy);
        return NULL;
    }
    map->entries[map->n] = (struct entry){.key = copy, .len = len};
    return &map->entries[map->n++];
}

static marey_id site_of(const char *name, const char *category)
{
    return marey__intern(&(struct marey__site){
        .name = name, .name_len = (uint32_t)strlen(name), .category = category});
}

/* ---- kernels ---- */

typedef char *demangler(const char *mangled, char *out, size_t *len, int *status);

/* The C++ library's function, which any program with kernels has loaded; NULL: names stay mangled. */
static demangler *find_demangler(void)
{
    static demangler *found;
    static bool is_looked_for;
    if (!is_looked_for) {
        *(void **)&found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
        void *library = found == NULL ? dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library != NULL)
            *(void **)&found = dlsym(library, "__cxa_demangle");
        is_looked_for = true;
    }
    return found;
}

static marey_id demangled_site(const char *mangled)
{
    int status = -1;
    demangler *demangle = strncmp(mangled, "_Z", 2) == 0 ? find_demangler() : NULL;
    char *plain = demangle != NULL ? demangle(mangled, NULL, NULL, &status) : NULL;
    const marey_id site = site_of(plain != NULL && status == 0 ? plain : mangled, "kernel");
    free(plain); /* allocated by the C++ library */
    return site;
}

static marey_id kernel_site(const char *mangled)
{
    /* CUPTI gives the same pointer for the same kernel until a module is unloaded. */
    enum { RECENT = 64 };
    static struct {
        const char *pointer, *name;
        marey_id site;
    } recent[RECENT];
    static struct map kernels;
    if (mangled == NULL)
        return site_of("(unnamed kernel)", "kernel");
    const size_t slot = ((uintptr_t)mangled >> 4) % RECENT;
    if (recent[slot].pointer == mangled && strcmp(recent[slot].name, mangled) == 0)
        return recent[slot].site;
    struct entry *entry = entry_of(&kernels, mangled, (uint32_t)strnlen(mangled, MAREY__NAME_MAX));
    if (entry == NULL)
        return MAREY__SITE_OTHER;
    if (entry->site == 0)
        entry->site = demangled_site(entry->key);
    recent[slot].pointer = mangled;
    recent[slot].name = entry->key;
    recent[slot].site = entry->site;
    return entry->site;
}

/* ---- copies and the rest ---- */

static const char *memory_name(uint32_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return names[kind < MAREY__COUNT_OF(names) ? kind : 0];
}

static marey_id copy_site(uint32_t kind, uint32_t from, uint32_t to)
{
    static const char *const kinds[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    char name[96];
    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
             kinds[kind < MAREY__COUNT_OF(kinds) ? kind : 0], memory_name(from), memory_name(to));
    return site_of(name, "gpu_memcpy");
}

static marey_id sync_site(uint32_t type)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    return site_of(names[type < MAREY__COUNT_OF(names) ? type : 0], "cuda_sync");
}

/* 0 for module variables, which are not recorded. */
static marey_id memory_site(uint32_t operation, uint32_t memory)
{
    enum { DEVICE_STATIC = 6, MANAGED_STATIC = 7 }; /* hundreds of them */
    char name[64];
    if (memory == DEVICE_STATIC || memory == MANAGED_STATIC)
        return 0;
    snprintf(name, sizeof name, "%s %s memory", operation == 1 ? "take" : "give back",
             memory_name(memory));
    return site_of(name, "cuda_memory");
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
                         .site = kernel_site(name),
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
        .site = copy_site(r[MAREY__COPY_KIND], r[MAREY__COPY_FROM], r[MAREY__COPY_TO]),
        .launch = {.graph = u32(r + (is_peer ? MAREY__PEER_GRAPH : MAREY__COPY_GRAPH)),
                   .graph_node = u64(r + (is_peer ? MAREY__PEER_GRAPH_NODE : MAREY__COPY_GRAPH_NODE))},
        .stream = u32(r + MAREY__COPY_STREAM),
        .device = (int32_t)u32(r + MAREY__COPY_DEVICE),
        .kind = MAREY_WORK_COPY};
}

static void decode_set(const uint8_t *r, struct work *out)
{
    char name[64];
    snprintf(name, sizeof name, "Memset (%s)", memory_name(u16(r + MAREY__SET_MEMORY)));
    decode_copy(r, false, out);
    out->site = site_of(name, "gpu_memset");
    out->kind = MAREY_WORK_SET;
}

/* A wait of the host has no stream, or all of them; it goes to the lane of CUPTI's stream number. */
static void decode_sync(const uint8_t *r, struct work *out)
{
    *out = (struct work){.begin = u64(r + MAREY__SYNC_START),
                         .end = u64(r + MAREY__SYNC_END),
                         .correlation = u32(r + MAREY__SYNC_CORRELATION),
                         .site = sync_site(u32(r + MAREY__SYNC_TYPE)),
                         .stream = u32(r + MAREY__SYNC_STREAM),
                         .kind = MAREY_WORK_SYNC};
}

static void decode_memory(const uint8_t *r, struct work *out)
{
    *out = (struct work){
        .begin = u64(r + MAREY__MEMORY_TIME),
        .end = u64(r + MAREY__MEMORY_TIME),
        .correlation = u32(r + MAREY__MEMORY_CORRELATION),
        .bytes = u64(r + MAREY__MEMORY_BYTES),
        .address = u64(r + MAREY__MEMORY_ADDRESS),
        .site = memory_site(u32(r + MAREY__MEMORY_OPERATION), u32(r + MAREY__MEMORY_KIND)),
        .stream = u32(r + MAREY__MEMORY_STREAM),
        .device = (int32_t)u32(r + MAREY__MEMORY_DEVICE),
        .kind = MAREY_WORK_MEMORY};
}

/* If CUPTI was not finalized, it also delivers work launched after an earlier session. */
static bool is_of_session(uint32_t correlation)
{
    const uint64_t first = __atomic_load_n(&marey__gpu.first, __ATOMIC_RELAXED);
    return first != 0 && correlation != 0 && (int32_t)(correlation - (uint32_t)first) >= 0;
}

/* False if the record is not kept: other kinds, began too early, launched too late, not ended. */
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
        if (marey__gpu_keep_from() != UINT64_MAX && is_of_session((uint32_t)out->correlation))
            marey__gpu_count(&counts->incomplete, 1);
        return false;
    }
    if (!marey__gpu_is_kept(out->begin) || out->site == 0)
        return false;
    marey__gpu_count(count, 1);
    return true;
}

/* ---- lanes ---- */

/* The stream of a tid, added if it is new; NULL on out of memory and past MAX_STREAMS. */
static struct stream *stream_of(int64_t tid)
{
    uint32_t number = MAREY__MAP_FIND(&work.by_tid, work.streams, tid);
    if (number == 0 && work.n < MAX_STREAMS)
        number = MAREY__MAP_ADD(&work.by_tid, work.streams, work.n, work.cap, tid);
    return number != 0 ? &work.streams[number - 1] : NULL;
}

static struct stream_lane *open_lane(struct stream *stream)
{
    char name[24];
    if (stream->n == MAX_LANES_EACH)
        return NULL;
    if ((uint32_t)stream->tid == UINT32_MAX) /* CUPTI's number for all streams */
        snprintf(name, sizeof name, "all streams");
    else
        snprintf(name, sizeof name, "stream %u", (uint32_t)stream->tid);
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, stream->tid, name);
    if (lane == NULL)
        return NULL;
    stream->lanes[stream->n] = (struct stream_lane){.lane = lane};
    return &stream->lanes[stream->n++];
}

/* The lane of the stream with the latest begin before this one; a new lane if there is none. */
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

/* How many words a record needs: zeros at its end are omitted. */
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

MAREY__ORDER(by_begin, struct work, MAREY__UP(begin))

void marey__gpu_decode(const uint8_t *const *records, size_t n)
{
    struct work pieces[MAREY__GPU_BATCH];
    size_t n_pieces = 0;
    bool is_ordered = true;
    MAREY__HOLD(&work.lock);
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
        marey__key_map_fini(&work.by_tid);
    }
    pthread_mutex_unlock(&work.lock);
}
