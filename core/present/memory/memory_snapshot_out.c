/*
 * The allocator's snapshot as torch.cuda.memory._dump_snapshot writes it, made of the allocations of a trace:
 *
 *   {segments: [{device, address, total_size, ..., blocks: [{address, size, requested_size, state, frames}]}],
 *    device_traces: [[{action, addr, size, stream, time_us, frames, category}], ...]}
 *
 * Devices are numbered as torch's own conversion of a profile does it: GPUs by their id, the CPU behind them. Blocks tile
 * their segment, since the viewer adds up their sizes. The last entry of each trace is the snapshot itself, in the
 * category "unknown", of which the viewer needs one where there is any.
 */
#include <string.h>

#include "present/memory/internal.h"

enum word {
    WORD_UNKNOWN = MAREY_MEMORY_UNKNOWN, /* the categories come first, by their numbers */
    WORD_SEGMENTS = MAREY_MEMORY_N_CATEGORIES,
    WORD_DEVICE_TRACES,
    WORD_DEVICE,
    WORD_ADDRESS,
    WORD_TOTAL_SIZE,
    WORD_STREAM,
    WORD_SEGMENT_TYPE,
    WORD_SMALL,
    WORD_LARGE,
    WORD_SEGMENT_POOL_ID,
    WORD_IS_EXPANDABLE,
    WORD_ALLOCATED_SIZE,
    WORD_ACTIVE_SIZE,
    WORD_REQUESTED_SIZE,
    WORD_BLOCKS,
    WORD_SIZE,
    WORD_STATE,
    WORD_ACTIVE_ALLOCATED,
    WORD_INACTIVE,
    WORD_ACTION,
    WORD_ALLOC,
    WORD_FREE_REQUESTED,
    WORD_FREE_COMPLETED,
    WORD_SNAPSHOT,
    WORD_ADDR,
    WORD_TIME_US,
    WORD_CATEGORY,
    WORD_FRAMES,
    WORD_FILENAME,
    WORD_LINE,
    WORD_NAME,
    WORD_NO_FILE,
    N_WORDS,
};

static const char *const words[N_WORDS] = {
    [MAREY_MEMORY_PARAMETER] = "parameter",
    [MAREY_MEMORY_OPTIMIZER_STATE] = "optimizer_state",
    [MAREY_MEMORY_INPUT] = "input",
    [MAREY_MEMORY_TEMPORARY] = "temporary",
    [MAREY_MEMORY_ACTIVATION] = "activation",
    [MAREY_MEMORY_GRADIENT] = "gradient",
    [MAREY_MEMORY_AUTOGRAD_DETAIL] = "autograd_detail",
    [WORD_UNKNOWN] = "unknown",
    [WORD_SEGMENTS] = "segments",
    [WORD_DEVICE_TRACES] = "device_traces",
    [WORD_DEVICE] = "device",
    [WORD_ADDRESS] = "address",
    [WORD_TOTAL_SIZE] = "total_size",
    [WORD_STREAM] = "stream",
    [WORD_SEGMENT_TYPE] = "segment_type",
    [WORD_SMALL] = "small",
    [WORD_LARGE] = "large",
    [WORD_SEGMENT_POOL_ID] = "segment_pool_id",
    [WORD_IS_EXPANDABLE] = "is_expandable",
    [WORD_ALLOCATED_SIZE] = "allocated_size",
    [WORD_ACTIVE_SIZE] = "active_size",
    [WORD_REQUESTED_SIZE] = "requested_size",
    [WORD_BLOCKS] = "blocks",
    [WORD_SIZE] = "size",
    [WORD_STATE] = "state",
    [WORD_ACTIVE_ALLOCATED] = "active_allocated",
    [WORD_INACTIVE] = "inactive",
    [WORD_ACTION] = "action",
    [WORD_ALLOC] = "alloc",
    [WORD_FREE_REQUESTED] = "free_requested",
    [WORD_FREE_COMPLETED] = "free_completed",
    [WORD_SNAPSHOT] = "snapshot",
    [WORD_ADDR] = "addr",
    [WORD_TIME_US] = "time_us",
    [WORD_CATEGORY] = "category",
    [WORD_FRAMES] = "frames",
    [WORD_FILENAME] = "filename",
    [WORD_LINE] = "line",
    [WORD_NAME] = "name",
    [WORD_NO_FILE] = "none",
};

struct writer {
    const struct marey__memory_timeline *timeline;
    struct marey__out out;
    struct marey__pickle pickle;
    uint32_t *places; /* of the frames of each stack, by its id; NONE: not written yet */
};

/* ---- pairs of a dictionary ---- */

static void put_number(struct writer *w, enum word key, int64_t value)
{
    marey__pickle_word(&w->pickle, key);
    marey__pickle_int(&w->pickle, value);
}

static void put_word(struct writer *w, enum word key, size_t value)
{
    marey__pickle_word(&w->pickle, key);
    marey__pickle_word(&w->pickle, value);
}

/* ---- frames ---- */

static void put_frame(struct writer *w, const char *file, size_t file_len, int64_t line,
                      const char *name, size_t name_len)
{
    marey__pickle_dict(&w->pickle);
    marey__pickle_word(&w->pickle, WORD_FILENAME);
    if (file_len != 0)
        marey__pickle_text(&w->pickle, file, file_len);
    else
        marey__pickle_word(&w->pickle, WORD_NO_FILE);
    put_number(w, WORD_LINE, line);
    marey__pickle_word(&w->pickle, WORD_NAME);
    marey__pickle_text(&w->pickle, name, name_len);
    marey__pickle_dict_end(&w->pickle);
}

/* `file.py(12): function` in its three parts; anything else, as `nn.Module: Linear_0`, is a name without a file. */
static void put_frame_text(struct writer *w, const char *text, size_t len)
{
    const char *colon = memmem(text, len, "): ", 3), *at = colon;
    uint64_t line = 0;
    while (at != NULL && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (at == NULL || at == text || at == colon || at[-1] != '(' ||
        !marey__parse_number(at, (size_t)(colon - at), &line) || line > INT32_MAX) {
        put_frame(w, NULL, 0, 0, text, len);
        return;
    }
    const char *name = colon + 3;
    put_frame(w, text, (size_t)(at - 1 - text), (int64_t)line, name, (size_t)(text + len - name));
}

static void put_new_frames(struct writer *w, marey__torch_id stack)
{
    size_t len;
    const char *text = marey__torch_text(w->timeline->trace, stack, &len), *end = text + len;
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    while (text < end) {
        const char *semicolon = memchr(text, ';', (size_t)(end - text));
        const char *behind = semicolon != NULL ? semicolon : end;
        if (behind != text) {
            marey__pickle_item(&w->pickle, &list);
            put_frame_text(w, text, (size_t)(behind - text));
        }
        text = behind + 1;
    }
    marey__pickle_list_end(&w->pickle, &list);
}

static void put_frames(struct writer *w, marey__torch_id stack)
{
    marey__pickle_word(&w->pickle, WORD_FRAMES);
    if (w->places[stack] != MAREY__PICKLE_NONE) {
        marey__pickle_again(&w->pickle, w->places[stack]);
        return;
    }
    put_new_frames(w, stack);
    w->places[stack] = marey__pickle_keep(&w->pickle);
}

/* Where a block was made; of one that was there before, what it is. */
static void put_origin(struct writer *w, const struct marey__memory_block *block)
{
    if (block->stack != 0 || block->name == 0) {
        put_frames(w, block->stack);
        return;
    }
    size_t len;
    const char *name = marey__torch_text(w->timeline->trace, block->name, &len);
    const char *category = words[block->category];
    marey__pickle_word(&w->pickle, WORD_FRAMES);
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    marey__pickle_item(&w->pickle, &list);
    put_frame(w, category, strlen(category), 0, name, len);
    marey__pickle_list_end(&w->pickle, &list);
}

/* ---- segments ---- */

static void put_hole(struct writer *w, struct marey__pickle_list *list, uint64_t begin, uint64_t end)
{
    if (begin == end)
        return;
    marey__pickle_item(&w->pickle, list);
    marey__pickle_dict(&w->pickle);
    put_number(w, WORD_ADDRESS, (int64_t)begin);
    put_number(w, WORD_SIZE, (int64_t)(end - begin));
    put_number(w, WORD_REQUESTED_SIZE, 0);
    put_word(w, WORD_STATE, WORD_INACTIVE);
    put_frames(w, 0);
    marey__pickle_dict_end(&w->pickle);
}

static void put_block(struct writer *w, const struct marey__memory_block *block)
{
    marey__pickle_dict(&w->pickle);
    put_number(w, WORD_ADDRESS, (int64_t)block->address);
    put_number(w, WORD_SIZE, block->bytes);
    put_number(w, WORD_REQUESTED_SIZE, block->bytes);
    put_word(w, WORD_STATE, WORD_ACTIVE_ALLOCATED);
    put_origin(w, block);
    marey__pickle_dict_end(&w->pickle);
}

static void put_blocks(struct writer *w, const struct marey__memory_arenas *arenas,
                       const struct marey__memory_arena *arena)
{
    marey__pickle_word(&w->pickle, WORD_BLOCKS);
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    uint64_t at = arena->begin;
    for (size_t i = 0; i < arena->n_live; i++) {
        const struct marey__memory_block *block =
            &w->timeline->blocks[arenas->live[arena->first_live + i]];
        put_hole(w, &list, at, block->address);
        marey__pickle_item(&w->pickle, &list);
        put_block(w, block);
        at = block->address + (uint64_t)block->bytes;
    }
    put_hole(w, &list, at, arena->end);
    marey__pickle_list_end(&w->pickle, &list);
}

static void put_segment(struct writer *w, const struct marey__memory_arenas *arenas,
                        const struct marey__memory_arena *arena, int64_t device)
{
    marey__pickle_dict(&w->pickle);
    put_number(w, WORD_DEVICE, device);
    put_number(w, WORD_ADDRESS, (int64_t)arena->begin);
    put_number(w, WORD_TOTAL_SIZE, (int64_t)(arena->end - arena->begin));
    put_number(w, WORD_STREAM, 0);
    put_word(w, WORD_SEGMENT_TYPE, arena->is_small ? WORD_SMALL : WORD_LARGE);
    marey__pickle_word(&w->pickle, WORD_SEGMENT_POOL_ID);
    marey__pickle_pair(&w->pickle, 0, 0);
    marey__pickle_word(&w->pickle, WORD_IS_EXPANDABLE);
    marey__pickle_false(&w->pickle);
    put_number(w, WORD_ALLOCATED_SIZE, arena->live_bytes);
    put_number(w, WORD_ACTIVE_SIZE, arena->live_bytes);
    put_number(w, WORD_REQUESTED_SIZE, arena->live_bytes);
    put_frames(w, 0);
    put_blocks(w, arenas, arena);
    marey__pickle_dict_end(&w->pickle);
}

/* ---- devices ---- */

/* GPUs by their id, whatever else behind them; what cannot be counted so, as an id of a million, comes behind as well. */
struct numbering {
    size_t n_gpus;
};

static bool is_gpu(const struct marey__memory_device *device)
{
    return device->type == 1 && device->id >= 0 && device->id < 1024;
}

static struct numbering number_devices(const struct marey__memory_timeline *timeline)
{
    struct numbering numbering = {0};
    for (size_t i = 0; i < timeline->n_devices; i++)
        if (is_gpu(&timeline->devices[i]))
            numbering.n_gpus = MAREY__MAX(numbering.n_gpus, (size_t)timeline->devices[i].id + 1);
    return numbering;
}

/* The device with this number, NULL for a GPU of which nothing is known; false past the last. */
static bool nth_device(const struct marey__memory_timeline *timeline, struct numbering numbering,
                       size_t n, const struct marey__memory_device **out)
{
    *out = NULL;
    size_t next = numbering.n_gpus;
    for (size_t i = 0; i < timeline->n_devices; i++) {
        const struct marey__memory_device *device = &timeline->devices[i];
        const size_t number = is_gpu(device) ? (size_t)device->id : next++;
        if (number == n) {
            *out = device;
            return true;
        }
    }
    return n < numbering.n_gpus;
}

static marey_status put_segments(struct writer *w, struct numbering numbering)
{
    const struct marey__memory_device *device;
    marey__pickle_word(&w->pickle, WORD_SEGMENTS);
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    for (size_t n = 0; nth_device(w->timeline, numbering, n, &device); n++) {
        struct marey__memory_arenas arenas = {0};
        marey_status status = MAREY_OK;
        if (device != NULL)
            status = marey__memory_arenas_init(&arenas, w->timeline,
                                               (uint32_t)(device - w->timeline->devices));
        for (size_t i = 0; status == MAREY_OK && i < arenas.n_arenas; i++) {
            marey__pickle_item(&w->pickle, &list);
            put_segment(w, &arenas, &arenas.arenas[i], (int64_t)n);
        }
        marey__memory_arenas_fini(&arenas);
        MAREY_TRY(status);
    }
    marey__pickle_list_end(&w->pickle, &list);
    return MAREY_OK;
}

/* ---- traces ---- */

static void begin_entry(struct writer *w, struct marey__pickle_list *list, enum word action,
                        uint64_t address, int64_t bytes, int64_t ns)
{
    marey__pickle_item(&w->pickle, list);
    marey__pickle_dict(&w->pickle);
    put_word(w, WORD_ACTION, action);
    put_number(w, WORD_ADDR, (int64_t)address);
    put_number(w, WORD_SIZE, bytes);
    put_number(w, WORD_STREAM, 0);
    put_number(w, WORD_TIME_US, ns / 1000);
}

static void end_entry(struct writer *w, size_t category)
{
    put_word(w, WORD_CATEGORY, category);
    marey__pickle_dict_end(&w->pickle);
}

static void put_change(struct writer *w, struct marey__pickle_list *list,
                       const struct marey__memory_change *change)
{
    const struct marey__memory_block *block = &w->timeline->blocks[change->block];
    if (!marey__memory_is_shown(block) || (!change->is_end && block->made_ns == MAREY__MEMORY_BEFORE))
        return;
    if (!change->is_end) {
        begin_entry(w, list, WORD_ALLOC, block->address, block->bytes, block->made_ns);
        put_origin(w, block);
        end_entry(w, block->category);
        return;
    }
    for (enum word action = WORD_FREE_REQUESTED; action <= WORD_FREE_COMPLETED; action++) {
        begin_entry(w, list, action, block->address, block->bytes, block->freed_ns);
        put_frames(w, block->freed_stack);
        end_entry(w, block->category);
    }
}

static void put_trace(struct writer *w, const struct marey__memory_device *device)
{
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    int64_t last_ns = 0;
    for (size_t i = 0; device != NULL && i < device->n_changes; i++) {
        put_change(w, &list, &device->changes[i]);
        last_ns = MAREY__MAX(last_ns, marey__memory_change_ns(w->timeline, &device->changes[i]));
    }
    if (device != NULL && device->n_changes != 0) {
        begin_entry(w, &list, WORD_SNAPSHOT, 0, 0, last_ns);
        put_frames(w, 0);
        end_entry(w, WORD_UNKNOWN);
    }
    marey__pickle_list_end(&w->pickle, &list);
}

static void put_traces(struct writer *w, struct numbering numbering)
{
    const struct marey__memory_device *device;
    marey__pickle_word(&w->pickle, WORD_DEVICE_TRACES);
    struct marey__pickle_list list = marey__pickle_list(&w->pickle);
    for (size_t n = 0; nth_device(w->timeline, numbering, n, &device); n++) {
        marey__pickle_item(&w->pickle, &list);
        put_trace(w, device);
    }
    marey__pickle_list_end(&w->pickle, &list);
}

static marey_status put_snapshot(struct writer *w)
{
    const struct numbering numbering = number_devices(w->timeline);
    marey__pickle_begin(&w->pickle, &w->out, words, N_WORDS);
    marey__pickle_dict(&w->pickle);
    MAREY_TRY(put_segments(w, numbering));
    put_traces(w, numbering);
    marey__pickle_dict_end(&w->pickle);
    marey__pickle_end(&w->pickle);
    marey__out_finish(&w->out);
    return w->out.status;
}

marey_status marey__memory_snapshot_write(const struct marey__memory_timeline *timeline, int fd)
{
    struct writer w = {.timeline = timeline};
    const size_t n_stacks = timeline->trace->strings.n;
    MAREY_TRY(marey__out_init(&w.out, fd));
    w.places = marey__alloc((n_stacks + 1) * sizeof *w.places);
    for (size_t i = 0; w.places != NULL && i <= n_stacks; i++)
        w.places[i] = MAREY__PICKLE_NONE;
    const marey_status status = w.places != NULL ? put_snapshot(&w) : marey__no_memory();
    marey__free(w.places);
    marey__out_fini(&w.out);
    return status;
}
