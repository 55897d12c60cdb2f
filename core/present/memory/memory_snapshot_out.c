/*
 * The allocator's snapshot in the format of torch.cuda.memory._dump_snapshot, made from the allocations of a trace:
 *
 *   {segments: [{device, address, total_size, ..., blocks: [{address, size, requested_size, state, frames}]}],
 *    device_traces: [[{action, addr, size, stream, time_us, frames, category}], ...]}
 *
 * Devices are numbered as in torch's conversion of a profile: GPUs by their id, then the CPU. Blocks tile
 * their segment, because the viewer adds up their sizes. The last entry of each trace is the snapshot itself, in the
 * category "unknown", as the viewer needs one.
 */
#include "present/memory/internal.h"

/* Frequent strings, each written once. The categories come first, in order of their numbers. */
/* clang-format off */
#define WORDS(X) \
    X(SEGMENTS, "segments") X(DEVICE_TRACES, "device_traces") X(DEVICE, "device") \
    X(ADDRESS, "address") X(TOTAL_SIZE, "total_size") X(STREAM, "stream") \
    X(SEGMENT_TYPE, "segment_type") X(SMALL, "small") X(LARGE, "large") \
    X(SEGMENT_POOL_ID, "segment_pool_id") X(IS_EXPANDABLE, "is_expandable") \
    X(ALLOCATED_SIZE, "allocated_size") X(ACTIVE_SIZE, "active_size") \
    X(REQUESTED_SIZE, "requested_size") X(BLOCKS, "blocks") X(SIZE, "size") X(STATE, "state") \
    X(ACTIVE_ALLOCATED, "active_allocated") X(INACTIVE, "inactive") X(ACTION, "action") \
    X(ALLOC, "alloc") X(FREE_REQUESTED, "free_requested") X(FREE_COMPLETED, "free_completed") \
    X(SNAPSHOT, "snapshot") X(ADDR, "addr") X(TIME_US, "time_us") X(CATEGORY, "category") \
    X(FRAMES, "frames") X(FILENAME, "filename") X(LINE, "line") X(NAME, "name") \
    X(NO_FILE, "none")
/* clang-format on */

#define WORD_ENUM(name, text) WORD_##name,
enum word {
    WORD_UNKNOWN = MAREY_MEMORY_UNKNOWN,
    WORD_BEFORE_FIRST = MAREY_MEMORY_N_CATEGORIES - 1,
    WORDS(WORD_ENUM) N_WORDS
};

#define WORD_TEXT(name, text) [WORD_##name] = text,
static const char *const words[N_WORDS] = {[MAREY_MEMORY_PARAMETER] = "parameter",
                                           [MAREY_MEMORY_OPTIMIZER_STATE] = "optimizer_state",
                                           [MAREY_MEMORY_INPUT] = "input",
                                           [MAREY_MEMORY_TEMPORARY] = "temporary",
                                           [MAREY_MEMORY_ACTIVATION] = "activation",
                                           [MAREY_MEMORY_GRADIENT] = "gradient",
                                           [MAREY_MEMORY_AUTOGRAD_DETAIL] = "autograd_detail",
                                           [WORD_UNKNOWN] = "unknown",
                                           WORDS(WORD_TEXT)};

/* Not in the reader's memo. */
#define NOT_KEPT UINT32_MAX

struct writer {
    const struct marey__memory_timeline *timeline;
    struct marey__out out;
    uint32_t word_places[N_WORDS]; /* in the reader's memo; NOT_KEPT: not written yet */
    uint32_t n_kept;               /* values in the reader's memo */
    uint32_t *places;              /* of the frames of each stack, by its id */
};

/*
 * ---- Python's pickle, protocol 4, of dictionaries, lists, numbers and strings ----
 *
 * Only opcodes that PyTorch's memory viewer supports. It passes list pieces as arguments of a call, so pieces have
 * at most 1000 items, like Python's.
 */

enum { BATCH = 1000 };

struct pickle_list {
    uint64_t n;
};

enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    NEWFALSE = 0x89,
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    TUPLE2 = 0x86,
    MEMOIZE = 0x94,
    BINGET = 'h',
    LONG_BINGET = 'j',
};

/* An opcode and its argument of `n` bytes, little-endian. */
static void put_opcode(struct writer *w, uint8_t opcode, uint64_t argument, size_t n)
{
    uint8_t *p = (uint8_t *)marey__out_room(&w->out);
    *p++ = opcode;
    for (size_t i = 0; i < n; i++)
        *p++ = (uint8_t)(argument >> (8 * i));
    w->out.p = (char *)p;
}

static void pickle_dict(struct writer *w)
{
    put_opcode(w, EMPTY_DICT, 0, 0);
    put_opcode(w, MARK, 0, 0);
}

static void pickle_dict_end(struct writer *w)
{
    put_opcode(w, SETITEMS, 0, 0);
}

static struct pickle_list pickle_list(struct writer *w)
{
    put_opcode(w, EMPTY_LIST, 0, 0);
    return (struct pickle_list){0};
}

/* Call before each item. */
static void pickle_item(struct writer *w, struct pickle_list *list)
{
    if (list->n % BATCH == 0) {
        if (list->n != 0)
            put_opcode(w, APPENDS, 0, 0);
        put_opcode(w, MARK, 0, 0);
    }
    list->n++;
}

static void pickle_list_end(struct writer *w, struct pickle_list *list)
{
    if (list->n != 0)
        put_opcode(w, APPENDS, 0, 0);
}

static void pickle_int(struct writer *w, int64_t value)
{
    if (value >= 0 && value <= UINT8_MAX) {
        put_opcode(w, BININT1, (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put_opcode(w, BININT2, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_opcode(w, BININT, (uint64_t)value, 4);
    } else {
        /* LONG1: a byte with the length, then the value. */
        put_opcode(w, LONG1, sizeof value, 1);
        memcpy(marey__out_room(&w->out), &value, sizeof value);
        w->out.p += sizeof value;
    }
}

/* Invalid UTF-8 becomes U+FFFD. */
static void pickle_text(struct writer *w, const char *text, size_t len)
{
    struct marey__buf clean MAREY__FINALLY(marey__buf_fini) = {0};
    bool is_clean = true;
    for (size_t i = 0, n; i < len && is_clean; i += n)
        is_clean = (n = marey__utf8_length(text + i, len - i)) != 0;
    if (!is_clean) {
        marey__utf8_put(&clean, text, len);
        text = clean.data;
        len = clean.failed ? 0 : clean.len;
        if (clean.failed && w->out.status == MAREY_OK)
            w->out.status = marey__no_memory();
    }
    if (len <= UINT8_MAX)
        put_opcode(w, SHORT_BINUNICODE, len, 1);
    else
        put_opcode(w, BINUNICODE, len, 4);
    if (len != 0)
        marey__out_put(&w->out, text, len);
}

/* Memoize the last value; returns its index for pickle_again. */
static uint32_t pickle_keep(struct writer *w)
{
    put_opcode(w, MEMOIZE, 0, 0);
    return w->n_kept++;
}

static void pickle_again(struct writer *w, uint32_t place)
{
    if (place <= UINT8_MAX)
        put_opcode(w, BINGET, place, 1);
    else
        put_opcode(w, LONG_BINGET, place, 4);
}

static void pickle_word(struct writer *w, size_t word)
{
    if (w->word_places[word] != NOT_KEPT) {
        pickle_again(w, w->word_places[word]);
        return;
    }
    pickle_text(w, words[word], strlen(words[word]));
    w->word_places[word] = pickle_keep(w);
}

/* ---- pairs of a dictionary ---- */

static void put_number(struct writer *w, enum word key, int64_t value)
{
    pickle_word(w, key);
    pickle_int(w, value);
}

static void put_word(struct writer *w, enum word key, size_t value)
{
    pickle_word(w, key);
    pickle_word(w, value);
}

/* ---- frames ---- */

static void put_frame(struct writer *w, const char *file, size_t file_len, int64_t line,
                      const char *name, size_t name_len)
{
    pickle_dict(w);
    pickle_word(w, WORD_FILENAME);
    if (file_len != 0)
        pickle_text(w, file, file_len);
    else
        pickle_word(w, WORD_NO_FILE);
    put_number(w, WORD_LINE, line);
    pickle_word(w, WORD_NAME);
    pickle_text(w, name, name_len);
    pickle_dict_end(w);
}

/*
 * `file.py(12): function` split into three parts; anything else, such as `nn.Module: Linear_0`, is a name without a
 * file.
 */
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
    struct pickle_list list = pickle_list(w);
    while (text < end) {
        const char *semicolon = memchr(text, ';', (size_t)(end - text));
        const char *behind = semicolon != NULL ? semicolon : end;
        if (behind != text) {
            pickle_item(w, &list);
            put_frame_text(w, text, (size_t)(behind - text));
        }
        text = behind + 1;
    }
    pickle_list_end(w, &list);
}

static void put_frames(struct writer *w, marey__torch_id stack)
{
    pickle_word(w, WORD_FRAMES);
    if (w->places[stack] != NOT_KEPT) {
        pickle_again(w, w->places[stack]);
        return;
    }
    put_new_frames(w, stack);
    w->places[stack] = pickle_keep(w);
}

/* Where a block was allocated; for one from before the first event, its description. */
static void put_origin(struct writer *w, const struct marey__memory_block *block)
{
    if (block->stack != 0 || block->name == 0) {
        put_frames(w, block->stack);
        return;
    }
    size_t len;
    const char *name = marey__torch_text(w->timeline->trace, block->name, &len);
    const char *category = words[block->category];
    pickle_word(w, WORD_FRAMES);
    struct pickle_list list = pickle_list(w);
    pickle_item(w, &list);
    put_frame(w, category, strlen(category), 0, name, len);
    pickle_list_end(w, &list);
}

/* ---- segments ---- */

/* The block from `begin` to `end`; NULL: free space. */
static void put_block(struct writer *w, struct pickle_list *list, uint64_t begin, uint64_t end,
                      const struct marey__memory_block *block)
{
    if (begin == end && block == NULL)
        return;
    pickle_item(w, list);
    pickle_dict(w);
    put_number(w, WORD_ADDRESS, (int64_t)begin);
    put_number(w, WORD_SIZE, (int64_t)(end - begin));
    put_number(w, WORD_REQUESTED_SIZE, block != NULL ? block->bytes : 0);
    put_word(w, WORD_STATE, block != NULL ? WORD_ACTIVE_ALLOCATED : WORD_INACTIVE);
    if (block != NULL)
        put_origin(w, block);
    else
        put_frames(w, 0);
    pickle_dict_end(w);
}

static void put_blocks(struct writer *w, const struct marey__memory_arenas *arenas,
                       const struct marey__memory_arena *arena)
{
    pickle_word(w, WORD_BLOCKS);
    struct pickle_list list = pickle_list(w);
    uint64_t at = arena->begin;
    for (size_t i = 0; i < arena->n_live; i++) {
        const struct marey__memory_block *block =
            &w->timeline->blocks[arenas->live[arena->first_live + i]];
        put_block(w, &list, at, block->address, NULL);
        at = block->address + (uint64_t)block->bytes;
        put_block(w, &list, block->address, at, block);
    }
    put_block(w, &list, at, arena->end, NULL);
    pickle_list_end(w, &list);
}

static void put_segment(struct writer *w, const struct marey__memory_arenas *arenas,
                        const struct marey__memory_arena *arena, int64_t device)
{
    pickle_dict(w);
    put_number(w, WORD_DEVICE, device);
    put_number(w, WORD_ADDRESS, (int64_t)arena->begin);
    put_number(w, WORD_TOTAL_SIZE, (int64_t)(arena->end - arena->begin));
    put_number(w, WORD_STREAM, 0);
    put_word(w, WORD_SEGMENT_TYPE, arena->is_small ? WORD_SMALL : WORD_LARGE);
    pickle_word(w, WORD_SEGMENT_POOL_ID);
    pickle_int(w, 0);
    pickle_int(w, 0);
    put_opcode(w, TUPLE2, 0, 0);
    pickle_word(w, WORD_IS_EXPANDABLE);
    put_opcode(w, NEWFALSE, 0, 0);
    put_number(w, WORD_ALLOCATED_SIZE, arena->live_bytes);
    put_number(w, WORD_ACTIVE_SIZE, arena->live_bytes);
    put_number(w, WORD_REQUESTED_SIZE, arena->live_bytes);
    put_frames(w, 0);
    put_blocks(w, arenas, arena);
    pickle_dict_end(w);
}

/* ---- devices ---- */

/* GPUs are numbered by their id; other devices come after them, and so do GPUs with an unreasonably large id. */
static bool is_gpu(const struct marey__memory_device *device)
{
    return device->type == 1 && device->id >= 0 && device->id < 1024;
}

static size_t count_gpus(const struct marey__memory_timeline *timeline)
{
    size_t n_gpus = 0;
    for (size_t i = 0; i < timeline->n_devices; i++)
        if (is_gpu(&timeline->devices[i]))
            n_gpus = MAREY__MAX(n_gpus, (size_t)timeline->devices[i].id + 1);
    return n_gpus;
}

/* The device with this number, NULL for a GPU without data; false past the last. */
static bool nth_device(const struct marey__memory_timeline *timeline, size_t n_gpus, size_t n,
                       const struct marey__memory_device **out)
{
    *out = NULL;
    size_t next = n_gpus;
    for (size_t i = 0; i < timeline->n_devices; i++) {
        const struct marey__memory_device *device = &timeline->devices[i];
        const size_t number = is_gpu(device) ? (size_t)device->id : next++;
        if (number == n) {
            *out = device;
            return true;
        }
    }
    return n < n_gpus;
}

static marey_status put_segments(struct writer *w, size_t n_gpus)
{
    const struct marey__memory_device *device;
    pickle_word(w, WORD_SEGMENTS);
    struct pickle_list list = pickle_list(w);
    for (size_t n = 0; nth_device(w->timeline, n_gpus, n, &device); n++) {
        struct marey__memory_arenas arenas MAREY__FINALLY(marey__memory_arenas_fini) = {0};
        marey_status status = MAREY_OK;
        if (device != NULL)
            status = marey__memory_arenas_init(&arenas, w->timeline,
                                               (uint32_t)(device - w->timeline->devices));
        for (size_t i = 0; status == MAREY_OK && i < arenas.n_arenas; i++) {
            pickle_item(w, &list);
            put_segment(w, &arenas, &arenas.arenas[i], (int64_t)n);
        }
        MAREY_TRY(status);
    }
    pickle_list_end(w, &list);
    return MAREY_OK;
}

/* ---- traces ---- */

static void begin_entry(struct writer *w, struct pickle_list *list, enum word action,
                        uint64_t address, int64_t bytes, int64_t ns)
{
    pickle_item(w, list);
    pickle_dict(w);
    put_word(w, WORD_ACTION, action);
    put_number(w, WORD_ADDR, (int64_t)address);
    put_number(w, WORD_SIZE, bytes);
    put_number(w, WORD_STREAM, 0);
    put_number(w, WORD_TIME_US, ns / 1000);
}

static void end_entry(struct writer *w, size_t category)
{
    put_word(w, WORD_CATEGORY, category);
    pickle_dict_end(w);
}

static void put_change(struct writer *w, struct pickle_list *list,
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
    struct pickle_list list = pickle_list(w);
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
    pickle_list_end(w, &list);
}

static void put_traces(struct writer *w, size_t n_gpus)
{
    const struct marey__memory_device *device;
    pickle_word(w, WORD_DEVICE_TRACES);
    struct pickle_list list = pickle_list(w);
    for (size_t n = 0; nth_device(w->timeline, n_gpus, n, &device); n++) {
        pickle_item(w, &list);
        put_trace(w, device);
    }
    pickle_list_end(w, &list);
}

static marey_status put_snapshot(struct writer *w)
{
    const size_t n_gpus = count_gpus(w->timeline);
    for (size_t i = 0; i < N_WORDS; i++)
        w->word_places[i] = NOT_KEPT;
    put_opcode(w, PROTO, 4, 1);
    pickle_dict(w);
    MAREY_TRY(put_segments(w, n_gpus));
    put_traces(w, n_gpus);
    pickle_dict_end(w);
    put_opcode(w, STOP, 0, 0);
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
        w.places[i] = NOT_KEPT;
    const marey_status status = w.places != NULL ? put_snapshot(&w) : marey__no_memory();
    marey__free(w.places);
    marey__out_fini(&w.out);
    return status;
}
