/*
 * From events to blocks. Addresses are reused, so a block is identified by device, address and times. The blocks of an
 * address are linked, the youngest first, and a table maps addresses to the youngest block.
 */
#include "analyze/memory/internal.h"

struct place {
    uint64_t address; /* these two are the key */
    uint64_t device;
    uint32_t youngest; /* block */
};

struct maker {
    struct marey__memory_timeline *timeline;
    struct place *places;
    size_t n_places, places_cap;
    struct marey__key_map by_key;
};

/* The youngest block at an address, or NONE. */
static uint32_t youngest(const struct maker *maker, uint32_t device, uint64_t address)
{
    const uint64_t key[] = {address, device};
    const uint32_t number = MAREY__MAP_FIND(&maker->by_key, maker->places, key);
    return number != 0 ? maker->places[number - 1].youngest : MAREY__MEMORY_NONE;
}

/* Make a block the youngest at its address. Returns false on out of memory. */
static bool set_youngest(struct maker *maker, struct marey__memory_block *block, uint32_t number)
{
    const uint64_t key[] = {block->address, block->device};
    block->older = youngest(maker, block->device, block->address);
    const uint32_t place =
        MAREY__MAP_NUMBER(&maker->by_key, maker->places, maker->n_places, maker->places_cap, key);
    if (place != 0)
        maker->places[place - 1].youngest = number;
    return place != 0;
}

/* Append a block, linked before `younger` at its address (NONE: it is the youngest). NULL on out of memory. */
static struct marey__memory_block *put_block(struct maker *maker, struct marey__memory_block block,
                                             uint32_t younger)
{
    struct marey__memory_timeline *timeline = maker->timeline;
    if (timeline->n_blocks >= MAREY__MEMORY_NONE - 1 ||
        !marey__grow(&timeline->blocks, &timeline->blocks_cap, timeline->n_blocks + 1, sizeof block))
        return NULL;
    const uint32_t number = (uint32_t)timeline->n_blocks;
    if (younger != MAREY__MEMORY_NONE) {
        block.older = timeline->blocks[younger].older;
        timeline->blocks[younger].older = number;
    } else if (!set_youngest(maker, &block, number)) {
        return NULL;
    }
    timeline->n_blocks++;
    timeline->blocks[number] = block;
    timeline->n_bytes += block.bytes;
    return &timeline->blocks[number];
}

static struct marey__memory_block block_of(uint32_t device, uint64_t address, int64_t bytes)
{
    return (struct marey__memory_block){
        .made_ns = MAREY__MEMORY_BEFORE,
        .freed_ns = MAREY__MEMORY_NEVER,
        .address = address,
        .bytes = bytes,
        .device = device,
        .thread = MAREY__MEMORY_NONE,
        .made_event = MAREY__MEMORY_NONE,
        .freed_event = MAREY__MEMORY_NONE,
        .made_change = MAREY__MEMORY_NONE,
        .freed_change = MAREY__MEMORY_NONE,
        .older = MAREY__MEMORY_NONE,
        .category = MAREY_MEMORY_UNKNOWN,
    };
}

/* ---- devices ---- */

static bool find_device(struct marey__memory_timeline *timeline, int32_t type, int32_t id,
                        uint32_t *device)
{
    for (size_t i = 0; i < timeline->n_devices; i++)
        if (timeline->devices[i].type == type && timeline->devices[i].id == id) {
            *device = (uint32_t)i;
            return true;
        }
    if (!marey__grow(&timeline->devices, &timeline->devices_cap, timeline->n_devices + 1,
                     sizeof *timeline->devices))
        return false;
    *device = (uint32_t)timeline->n_devices;
    timeline->devices[timeline->n_devices++] = (struct marey__memory_device){.type = type, .id = id};
    return true;
}

MAREY__ORDER(by_type_and_id, struct marey__memory_device, MAREY__UP(type) MAREY__UP(id))

/* Find all devices before creating blocks, so that their numbers do not change. */
static bool find_devices(struct marey__memory_timeline *timeline)
{
    const struct marey__torch_trace *trace = timeline->trace;
    uint32_t device;
    for (size_t i = 0; i < trace->n_memory; i++) {
        const struct marey__torch_memory *event = &trace->memory[i];
        if (!find_device(timeline, event->device_type, event->device_id, &device))
            return false;
        struct marey__memory_device *d = &timeline->devices[device];
        d->reserved_bytes = MAREY__MAX(d->reserved_bytes, event->total_reserved);
    }
    for (size_t i = 0; i < trace->n_roles; i++)
        if (!find_device(timeline, trace->roles[i].device_type, trace->roles[i].device_id, &device))
            return false;
    if (timeline->n_devices > 1)
        qsort(timeline->devices, timeline->n_devices, sizeof *timeline->devices, by_type_and_id);
    return true;
}

/* ---- events ---- */

/* Skips impossible sizes, so that no sum overflows. */
static bool is_possible(const struct marey__memory_timeline *timeline, int64_t bytes)
{
    return bytes > 0 && bytes <= INT64_MAX - timeline->n_bytes;
}

static bool begin_block(struct maker *maker, uint32_t number, uint32_t device)
{
    const struct marey__torch_memory *event = &maker->timeline->trace->memory[number];
    const uint32_t before = youngest(maker, device, event->address);
    struct marey__memory_block *old =
        before != MAREY__MEMORY_NONE ? &maker->timeline->blocks[before] : NULL;
    /* The old block was released without an event: by another thread, which the profiler does not watch. */
    if (old != NULL && old->freed_ns == MAREY__MEMORY_NEVER) {
        old->freed_ns = event->ns;
        old->freed_event = number;
        maker->timeline->n_lost++;
    }
    struct marey__memory_block block = block_of(device, event->address, event->bytes);
    block.made_ns = event->ns;
    block.made_event = number;
    block.stack = event->stack;
    block.thread = event->thread;
    return put_block(maker, block, MAREY__MEMORY_NONE) != NULL;
}

static bool end_block(struct maker *maker, uint32_t number, uint32_t device)
{
    const struct marey__torch_memory *event = &maker->timeline->trace->memory[number];
    const uint32_t at = youngest(maker, device, event->address);
    struct marey__memory_block *block = NULL;
    if (at == MAREY__MEMORY_NONE) /* allocated before the first event */
        block = put_block(maker, block_of(device, event->address, -event->bytes), MAREY__MEMORY_NONE);
    else if (maker->timeline->blocks[at].freed_ns == MAREY__MEMORY_NEVER)
        block = &maker->timeline->blocks[at];
    if (block == NULL) {
        maker->timeline->n_lost += at != MAREY__MEMORY_NONE;
        return at != MAREY__MEMORY_NONE;
    }
    block->freed_ns = event->ns;
    block->freed_event = number;
    block->freed_stack = event->stack;
    return true;
}

static bool make_of_events(struct maker *maker)
{
    const struct marey__torch_trace *trace = maker->timeline->trace;
    for (uint32_t i = 0; i < trace->n_memory; i++) {
        const struct marey__torch_memory *event = &trace->memory[i];
        uint32_t device;
        /* No allocator uses address 0, and INT64_MIN cannot be negated. */
        if (event->address == 0 || event->bytes == 0 || event->bytes == INT64_MIN ||
            !is_possible(maker->timeline, event->bytes > 0 ? event->bytes : -event->bytes))
            continue;
        if (!find_device(maker->timeline, event->device_type, event->device_id, &device) ||
            !(event->bytes > 0 ? begin_block(maker, i, device) : end_block(maker, i, device)))
            return false;
    }
    return true;
}

/* ---- roles ---- */

static const int64_t MAX_NS = INT64_C(1) << 62; /* limit for times of events, positive and negative */

static uint8_t category_of(const struct marey__torch_role *role)
{
    switch (role->kind) {
    case MAREY__TORCH_PARAMETER:
        return MAREY_MEMORY_PARAMETER;
    case MAREY__TORCH_GRADIENT:
        return MAREY_MEMORY_GRADIENT;
    case MAREY__TORCH_OPTIMIZER_STATE:
        return MAREY_MEMORY_OPTIMIZER_STATE;
    default:
        return MAREY_MEMORY_INPUT;
    }
}

/*
 * Of several roles of a block, the one that lasts longest takes precedence: the order of categories, with inputs last.
 */
static int weight_of(uint8_t category)
{
    return category == MAREY_MEMORY_INPUT ? MAREY_MEMORY_N_CATEGORIES : category;
}

static void name_block(struct marey__memory_block *block, const struct marey__torch_role *role)
{
    const uint8_t category = category_of(role);
    if (block->has_role && weight_of(block->category) <= weight_of(category))
        return;
    block->has_role = 1;
    block->category = category;
    block->name = role->name;
}

/*
 * Create a block without an event: allocated before the first event if its address was not used earlier, else by
 * another thread. It ends at the latest when its address is reused.
 */
static bool make_of_role(struct maker *maker, const struct marey__torch_role *role, uint32_t device,
                         uint32_t younger)
{
    struct marey__memory_timeline *timeline = maker->timeline;
    struct marey__memory_block block = block_of(device, role->address, role->bytes);
    const uint32_t older = younger != MAREY__MEMORY_NONE ? timeline->blocks[younger].older
                                                         : youngest(maker, device, role->address);
    if (older != MAREY__MEMORY_NONE)
        block.made_ns = role->ns;
    if (younger != MAREY__MEMORY_NONE) {
        block.freed_ns = timeline->blocks[younger].made_ns;
        block.freed_event = timeline->blocks[younger].made_event;
    }
    struct marey__memory_block *made = put_block(maker, block, younger);
    if (made != NULL)
        name_block(made, role);
    return made != NULL;
}

static bool take_role(struct maker *maker, const struct marey__torch_role *role)
{
    struct marey__memory_timeline *timeline = maker->timeline;
    uint32_t device, younger = MAREY__MEMORY_NONE;
    if (role->address == 0 || !is_possible(timeline, role->bytes) || role->ns <= -MAX_NS ||
        role->ns >= MAX_NS)
        return true;
    if (!find_device(timeline, role->device_type, role->device_id, &device))
        return false;
    for (uint32_t at = youngest(maker, device, role->address); at != MAREY__MEMORY_NONE;) {
        struct marey__memory_block *block = &timeline->blocks[at];
        if (block->freed_ns < role->ns)
            break;
        if (block->made_ns <= role->ns) {
            name_block(block, role);
            return true;
        }
        younger = at;
        at = block->older;
    }
    return make_of_role(maker, role, device, younger);
}

/* ---- memory without events ---- */

/*
 * A GPU's sum includes permanent memory from before the first event, so the first event shows its size. The CPU's sum
 * does not: it counts only allocations made while a profiler ran, and misses releases in between.
 */
static bool make_of_sums(struct marey__memory_timeline *timeline)
{
    const struct marey__torch_trace *trace = timeline->trace;
    for (uint32_t d = 0; d < timeline->n_devices; d++) {
        const struct marey__memory_device *device = &timeline->devices[d];
        size_t first = device->type == 0 ? trace->n_memory : 0;
        while (first < trace->n_memory && (trace->memory[first].device_type != device->type ||
                                           trace->memory[first].device_id != device->id))
            first++;
        if (first == trace->n_memory || trace->memory[first].total_allocated <= 0)
            continue;
        int64_t rest;
        if (__builtin_sub_overflow(trace->memory[first].total_allocated, trace->memory[first].bytes,
                                   &rest))
            continue;
        for (size_t i = 0; i < timeline->n_blocks && rest > 0; i++)
            if (timeline->blocks[i].device == d && timeline->blocks[i].made_ns == MAREY__MEMORY_BEFORE)
                rest -= timeline->blocks[i].bytes;
        if (!is_possible(timeline, rest))
            continue;
        if (!MAREY__PUSH(timeline->blocks, timeline->n_blocks, timeline->blocks_cap,
                         block_of(d, 0, rest)))
            return false;
        timeline->n_bytes += rest;
    }
    return true;
}

bool marey__memory_make_blocks(struct marey__memory_timeline *timeline)
{
    struct maker maker = {.timeline = timeline};
    bool ok = find_devices(timeline) && make_of_events(&maker);
    for (size_t i = 0; ok && i < timeline->trace->n_roles; i++)
        ok = take_role(&maker, &timeline->trace->roles[i]);
    marey__free(maker.places);
    marey__key_map_fini(&maker.by_key);
    return ok && make_of_sums(timeline);
}
