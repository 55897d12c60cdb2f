/*
 * From 3.13 on _PyRuntime begins with a table of offsets (_Py_DebugOffsets): a cookie, the version, whether it is
 * free-threaded, then words. Which word is what differs from one minor version to the next, so there is a map for each.
 * What the table leaves out stands here too. All that is taken from it is checked before it is believed.
 */
#include "sampler/remote/internal.h"

#define NO MAREY__REMOTE_ABSENT
enum {
    TABLE_MAX = 1024,
    STRUCT_MAX = 1 << 16,
    INTERPRETER_MAX = 1 << 20,
    FRAME_MAX = 1024,
    CODE_MAX = 1024
};

static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

/* Where in the table which offset stands, in bytes; NO: it is not there. */
struct map {
    uint32_t minor;
    uint32_t interpreters_head;
    uint32_t interp_id, interp_next, interp_threads_head, interp_gc, interp_modules, interp_gil;
    uint32_t code_generation, tlbc_generation;
    uint32_t thread_size, thread_prev, thread_next, thread_interp, thread_frame, thread_id,
        thread_native_id, thread_chunk, thread_status, holds_gil, gil_requested;
    uint32_t frame_size, frame_previous, frame_executable, frame_instruction, frame_locals,
        frame_owner, tlbc_index;
    uint32_t code_size, code_filename, code_name, code_qualname, code_linetable, code_first_line,
        code_bytecode, code_tlbc;
    uint32_t object_type, type_name, type_flags;
    uint32_t bytes_size, bytes_data;
    uint32_t unicode_state, unicode_length, unicode_ascii_size;
    uint32_t gc_collecting;
    /* Offsets themselves that the table leaves out, or has only since later. */
    uint32_t exc_info, exc_state, current_exception, cached_keys, stack_top;
    uint64_t code_mask;
};

static const struct map maps[] = {
    {.minor = 13,
     .interpreters_head = 40,
     .interp_id = 56,
     .interp_next = 64,
     .interp_threads_head = 72,
     .interp_gc = 80,
     .interp_modules = 88,
     .interp_gil = 112,
     .code_generation = NO,
     .tlbc_generation = NO,
     .thread_size = 152,
     .thread_prev = 160,
     .thread_next = 168,
     .thread_interp = 176,
     .thread_frame = 184,
     .thread_id = 192,
     .thread_native_id = 200,
     .thread_chunk = 208,
     .thread_status = 216,
     .holds_gil = NO,
     .gil_requested = NO,
     .frame_size = 224,
     .frame_previous = 232,
     .frame_executable = 240,
     .frame_instruction = 248,
     .frame_locals = 256,
     .frame_owner = 264,
     .tlbc_index = NO,
     .code_size = 272,
     .code_filename = 280,
     .code_name = 288,
     .code_qualname = 296,
     .code_linetable = 304,
     .code_first_line = 312,
     .code_bytecode = 344,
     .code_tlbc = NO,
     .object_type = 360,
     .type_name = 376,
     .type_flags = 392,
     .bytes_size = 520,
     .bytes_data = 528,
     .unicode_state = 544,
     .unicode_length = 552,
     .unicode_ascii_size = 560,
     .gc_collecting = 576,
     .exc_info = 120,
     .exc_state = 256,
     .current_exception = 112,
     .cached_keys = 880,
     .stack_top = 64,
     .code_mask = UINT64_MAX},
    {.minor = 14,
     .interpreters_head = 40,
     .interp_id = 56,
     .interp_next = 64,
     .interp_threads_head = 72,
     .interp_gc = 88,
     .interp_modules = 96,
     .interp_gil = 120,
     .code_generation = 160,
     .tlbc_generation = 168,
     .thread_size = 176,
     .thread_prev = 184,
     .thread_next = 192,
     .thread_interp = 200,
     .thread_frame = 208,
     .thread_id = 216,
     .thread_native_id = 224,
     .thread_chunk = 232,
     .thread_status = 240,
     .holds_gil = NO,
     .gil_requested = NO,
     .frame_size = 248,
     .frame_previous = 256,
     .frame_executable = 264,
     .frame_instruction = 272,
     .frame_locals = 280,
     .frame_owner = 288,
     .tlbc_index = 304,
     .code_size = 312,
     .code_filename = 320,
     .code_name = 328,
     .code_qualname = 336,
     .code_linetable = 344,
     .code_first_line = 352,
     .code_bytecode = 384,
     .code_tlbc = 392,
     .object_type = 408,
     .type_name = 424,
     .type_flags = 440,
     .bytes_size = 600,
     .bytes_data = 608,
     .unicode_state = 624,
     .unicode_length = 632,
     .unicode_ascii_size = 640,
     .gc_collecting = 656,
     .exc_info = 120,
     .exc_state = 256,
     .current_exception = 112,
     .cached_keys = 880,
     .stack_top = NO,
     .code_mask = ~(uint64_t)3},
    {.minor = 15,
     .interpreters_head = 40,
     .interp_id = 56,
     .interp_next = 64,
     .interp_threads_head = 72,
     .interp_gc = 88,
     .interp_modules = 96,
     .interp_gil = 120,
     .code_generation = 160,
     .tlbc_generation = 168,
     .thread_size = 176,
     .thread_prev = 184,
     .thread_next = 192,
     .thread_interp = 200,
     .thread_frame = 208,
     .thread_id = 240,
     .thread_native_id = 248,
     .thread_chunk = 256,
     .thread_status = 264,
     .holds_gil = 272,
     .gil_requested = 280,
     .frame_size = 312,
     .frame_previous = 320,
     .frame_executable = 328,
     .frame_instruction = 336,
     .frame_locals = 344,
     .frame_owner = 352,
     .tlbc_index = 368,
     .code_size = 376,
     .code_filename = 384,
     .code_name = 392,
     .code_qualname = 400,
     .code_linetable = 408,
     .code_first_line = 416,
     .code_bytecode = 448,
     .code_tlbc = 456,
     .object_type = 472,
     .type_name = 488,
     .type_flags = 504,
     .bytes_size = 696,
     .bytes_data = 704,
     .unicode_state = 720,
     .unicode_length = 728,
     .unicode_ascii_size = 736,
     .gc_collecting = 760,
     .exc_info = 144,
     .exc_state = 288,
     .current_exception = 136,
     .cached_keys = 888,
     .stack_top = NO,
     .code_mask = ~(uint64_t)3},
};

struct table {
    uint8_t bytes[TABLE_MAX];
    const struct map *map;
    const char *wrong; /* the first field that made no sense */
};

/* An offset or a size out of the table; one that cannot be is remembered. */
static uint32_t word(struct table *table, uint32_t at, uint32_t n_bytes, uint32_t limit,
                     const char *what)
{
    if (at == NO)
        return NO;
    const uint64_t value = marey__remote_u64(table->bytes, at);
    if (limit >= n_bytes && value <= limit - n_bytes &&
        (n_bytes < 4 || value % MAREY__MIN(n_bytes, 8u) == 0))
        return (uint32_t)value;
    if (table->wrong == NULL)
        table->wrong = what;
    return NO;
}

static uint32_t size_of(struct table *table, uint32_t at, uint32_t least, uint32_t most,
                        const char *what)
{
    const uint32_t size = word(table, at, 0, most, what);
    if (size != NO && size < least && table->wrong == NULL)
        table->wrong = what;
    return size == NO ? 0 : size;
}

static void take_interpreter(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    const uint32_t most = INTERPRETER_MAX;
    out->runtime.interpreters_head =
        word(table, map->interpreters_head, 8, most, "runtime.interpreters_head");
    out->interpreter.id = word(table, map->interp_id, 8, most, "interpreter.id");
    out->interpreter.next = word(table, map->interp_next, 8, most, "interpreter.next");
    out->interpreter.threads_head =
        word(table, map->interp_threads_head, 8, most, "interpreter.threads_head");
    out->interpreter.modules =
        word(table, map->interp_modules, 8, most, "interpreter.imports_modules");
    out->interpreter.gil = word(table, map->interp_gil, 8, most, "interpreter.ceval_gil");
    out->interpreter.code_generation =
        word(table, map->code_generation, 8, most, "interpreter.code_object_generation");
    out->interpreter.tlbc_generation =
        word(table, map->tlbc_generation, 4, most, "interpreter.tlbc_generation");
    const uint32_t gc = word(table, map->interp_gc, 8, most / 2, "interpreter.gc");
    const uint32_t collecting = word(table, map->gc_collecting, 4, most / 2, "gc.collecting");
    out->interpreter.gc_collecting = gc != NO && collecting != NO ? gc + collecting : NO;
}

static void take_thread(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    const uint32_t size = size_of(table, map->thread_size, 64, STRUCT_MAX, "thread_state.size");
    out->thread.size = size;
    out->thread.prev = word(table, map->thread_prev, 8, size, "thread_state.prev");
    out->thread.next = word(table, map->thread_next, 8, size, "thread_state.next");
    out->thread.interpreter = word(table, map->thread_interp, 8, size, "thread_state.interp");
    out->thread.frame = word(table, map->thread_frame, 8, size, "thread_state.current_frame");
    out->thread.thread_id = word(table, map->thread_id, 8, size, "thread_state.thread_id");
    out->thread.native_thread_id =
        word(table, map->thread_native_id, 8, size, "thread_state.native_thread_id");
    /* The live top of the newest chunk is the word behind the pointer to that chunk. */
    out->thread.datastack_chunk =
        word(table, map->thread_chunk, 16, size, "thread_state.datastack_chunk");
    out->thread.datastack_top =
        out->thread.datastack_chunk != NO ? out->thread.datastack_chunk + 8 : NO;
    out->thread.status = word(table, map->thread_status, 4, size, "thread_state.status");
    out->thread.holds_gil = word(table, map->holds_gil, 4, size, "thread_state.holds_gil");
    out->thread.gil_requested =
        word(table, map->gil_requested, 4, size, "thread_state.gil_requested");
}

/* What is read of a frame ends where its locals begin, and what is read of a code object where its bytecode does. */
static void take_frame(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    const uint32_t whole = size_of(table, map->frame_size, 40, FRAME_MAX, "interpreter_frame.size");
    const uint32_t size =
        size_of(table, map->frame_locals, 40, whole, "interpreter_frame.localsplus");
    out->frame.size = size;
    out->frame.previous = word(table, map->frame_previous, 8, size, "interpreter_frame.previous");
    out->frame.code = word(table, map->frame_executable, 8, size, "interpreter_frame.executable");
    out->frame.instruction =
        word(table, map->frame_instruction, 8, size, "interpreter_frame.instr_ptr");
    out->frame.owner = word(table, map->frame_owner, 1, size, "interpreter_frame.owner");
    out->frame.tlbc_index =
        out->is_free_threaded ? word(table, map->tlbc_index, 4, size, "interpreter_frame.tlbc_index")
                              : NO;
    out->frame.is_entry = NO;
    out->frame.stack_top = map->stack_top != NO && map->stack_top + 4 <= size ? map->stack_top : NO;
}

static void take_code(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    const uint32_t whole = size_of(table, map->code_size, 64, CODE_MAX, "code_object.size");
    const uint32_t size =
        size_of(table, map->code_bytecode, 64, whole, "code_object.co_code_adaptive");
    out->code.size = out->code.bytecode = size;
    out->code.filename = word(table, map->code_filename, 8, size, "code_object.filename");
    out->code.name = word(table, map->code_name, 8, size, "code_object.name");
    out->code.qualname = word(table, map->code_qualname, 8, size, "code_object.qualname");
    out->code.linetable = word(table, map->code_linetable, 8, size, "code_object.linetable");
    out->code.first_line = word(table, map->code_first_line, 4, size, "code_object.firstlineno");
    out->code.tlbc =
        out->is_free_threaded ? word(table, map->code_tlbc, 8, size, "code_object.co_tlbc") : NO;
    out->code.type = out->object.type;
}

static void take_objects(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    out->object.type = word(table, map->object_type, 8, 32, "pyobject.ob_type");
    out->object.type_name = word(table, map->type_name, 8, 1024, "type_object.tp_name");
    out->object.type_flags = word(table, map->type_flags, 8, 1024, "type_object.tp_flags");
    const uint32_t ascii =
        size_of(table, map->unicode_ascii_size, 24, 128, "unicode_object.asciiobject_size");
    out->unicode.ascii_size = ascii;
    /* Behind the header of one that is not ASCII: a length and a pointer to its UTF-8. */
    out->unicode.compact_size = ascii + 16;
    out->unicode.state = word(table, map->unicode_state, 4, ascii, "unicode_object.state");
    out->unicode.length = word(table, map->unicode_length, 8, ascii, "unicode_object.length");
    out->bytes.size = word(table, map->bytes_size, 8, 128, "bytes_object.ob_size");
    out->bytes.data = word(table, map->bytes_data, 1, 128, "bytes_object.ob_sval");
}

/* An object's header is 16 bytes longer in free-threaded builds, and the GIL's struct begins with another field. */
static void take_rest(struct table *table, struct marey__remote_layout *out)
{
    const struct map *const map = table->map;
    const uint32_t more = out->is_free_threaded ? 16 : 0, gil = out->is_free_threaded ? 8 : 0;
    const bool is_room =
        out->thread.size >= map->exc_state + 16 && out->thread.size >= map->exc_info + 8;
    out->thread.exc_info = is_room ? map->exc_info : NO;
    out->thread.exc_state = is_room ? map->exc_state : NO;
    out->thread.current_exception = is_room ? map->current_exception : NO;
    out->exception.value = 0;
    out->exception.previous = 8;
    out->frame.code_mask = map->code_mask;
    out->cframe.size = out->cframe.current_frame = out->cframe.previous = NO;
    out->chunk.previous = 0;
    out->chunk.size = 8;
    out->chunk.top = 16;
    out->chunk.data = 24;
    out->gil.enabled = out->is_free_threaded ? 0 : NO;
    out->gil.last_holder = 8 + gil;
    out->gil.locked = 16 + gil;
    out->gil.switch_number = 24 + gil;
    out->gil.size = 32 + gil;
    out->runtime.tstate_current = out->runtime.gil = NO;
    out->object.type_basicsize = 32 + more;
    out->object.type_dictoffset = 288 + more;
    out->object.type_cached_keys = map->cached_keys + more;
    out->unicode.kind_shift = 2;
    out->unicode.compact_shift = 5;
    out->unicode.ascii_shift = 6;
    out->instruction_kind = MAREY__REMOTE_INSTRUCTION_POINTER;
    out->line_format = MAREY__REMOTE_LINES_LOCATIONS;
}

marey_status marey__remote_layout_described(struct marey__remote *remote,
                                            struct marey__remote_layout *out)
{
    struct table table = {.map = NULL};
    if (!marey__remote_read(remote, remote->found.runtime, table.bytes, sizeof table.bytes))
        return marey__fail(MAREY_EUNAVAILABLE, "the state of Python in process %d cannot be read",
                           (int)remote->process.pid);
    if (memcmp(table.bytes, cookie, sizeof cookie) != 0)
        return marey__fail(MAREY_ESTATE, "Python in process %d does not describe itself (yet)",
                           (int)remote->process.pid);
    const uint64_t version = marey__remote_u64(table.bytes, 8);
    *out = (struct marey__remote_layout){.version = (uint32_t)version};
    out->is_free_threaded = marey__remote_u64(table.bytes, 16) != 0;
    const uint32_t minor = version >> 16 & 0xff;
    size_t i = 0; /* of a minor that is newer than all, the newest is tried */
    while (i + 1 < MAREY__COUNT_OF(maps) && maps[i].minor < minor)
        i++;
    table.map = &maps[i];
    take_objects(&table, out);
    take_interpreter(&table, out);
    take_thread(&table, out);
    take_frame(&table, out);
    take_code(&table, out);
    take_rest(&table, out);
    if (table.wrong != NULL)
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "process %d runs Python %u.%u, which this marey does not know: its %s makes no sense "
            "in the order of %u.%u",
            (int)remote->process.pid, (unsigned)(version >> 24 & 0xff), minor, table.wrong, 3u,
            table.map->minor);
    return MAREY_OK;
}
