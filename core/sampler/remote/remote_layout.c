/*
 * The offsets of fields in CPython's structs.
 *
 * 3.10 to 3.12: constants from offsetof() with the headers of each version. tests/unit/test_remote.c checks them with
 * running Pythons. From 3.13 on _PyRuntime begins with a table of offsets (_Py_DebugOffsets): a cookie, the version,
 * whether it is free-threaded, then words. Their order differs between minor versions. Offsets missing there are
 * defined here. Each value of the table is checked before use.
 */
#include "sampler/remote/internal.h"

#define NO MAREY__REMOTE_ABSENT
#define AT(member) ((uint32_t)offsetof(struct marey__remote_layout, member))

/* A layout in which all offsets are absent. */
static void clear(struct marey__remote_layout *out, uint32_t version)
{
    memset(out, 0xff, sizeof *out);
    out->version = version;
    out->is_free_threaded = false;
    out->frame.code_mask = UINT64_MAX;
    out->instruction_kind = MAREY__REMOTE_INSTRUCTION_POINTER;
    out->line_format = MAREY__REMOTE_LINES_LOCATIONS;
}

static void set(struct marey__remote_layout *out, uint32_t member, uint32_t value)
{
    memcpy((char *)out + member, &value, sizeof value);
}

/* ---- 3.10 to 3.12 ---- */

/* 3.10 and 3.11 have the GIL in the runtime; before one field are two mutexes, of 40 bytes on x86-64 and 48 on aarch64. */
#ifdef __aarch64__
enum { MORE = 16 };
#else
enum { MORE = 0 };
#endif

static const struct {
    uint32_t member, offsets[3]; /* for 3.10, 3.11 and 3.12 */
} fixed[] = {
    {AT(runtime.interpreters_head), {32, 40, 40}},
    {AT(runtime.tstate_current), {568 + MORE, 576 + MORE, NO}},
    {AT(runtime.gil), {352, 360, NO}},
    {AT(interpreter.next), {0, 0, 0}},
    {AT(interpreter.id), {24, 48, 8}},
    {AT(interpreter.threads_head), {8, 16, 72}},
    {AT(interpreter.modules), {856, 888, 944}},
    {AT(interpreter.gil), {NO, NO, 384}},
    {AT(interpreter.gc_collecting), {816, 848, 312}},
    {AT(gil.size), {32, 32, 32}},
    {AT(gil.last_holder), {8, 8, 8}},
    {AT(gil.locked), {16, 16, 16}},
    {AT(gil.switch_number), {24, 24, 24}},
    {AT(thread.size), {280, 360, 288}},
    {AT(thread.next), {8, 8, 8}},
    {AT(thread.interpreter), {16, 16, 16}},
    {AT(thread.thread_id), {176, 152, 136}},
    {AT(thread.native_thread_id), {NO, 160, 144}},
    {AT(thread.frame), {24, 56, 56}},
    {AT(thread.datastack_chunk), {NO, 296, 232}},
    {AT(thread.datastack_top), {NO, 304, 240}},
    {AT(thread.exc_info), {144, 120, 104}},
    {AT(thread.exc_state), {112, 320, 256}},
    {AT(thread.current_exception), {88, 96, 96}},
    {AT(cframe.size), {NO, 24, 16}},
    {AT(cframe.current_frame), {NO, 8, 0}},
    {AT(cframe.previous), {NO, 16, 8}},
    {AT(frame.size), {104, 72, 72}},
    {AT(frame.previous), {24, 48, 8}},
    {AT(frame.code), {32, 32, 0}},
    {AT(frame.instruction), {96, 56, 56}},
    {AT(frame.owner), {NO, 69, 70}},
    {AT(frame.is_entry), {NO, 68, NO}},
    {AT(frame.stack_top), {NO, 64, 64}},
    {AT(chunk.previous), {NO, 0, 0}},
    {AT(chunk.size), {NO, 8, 8}},
    {AT(chunk.top), {NO, 16, 16}},
    {AT(chunk.data), {NO, 24, 24}},
    {AT(exception.value), {8, 0, 0}},
    {AT(exception.previous), {24, 8, 8}},
    {AT(code.size), {128, 184, 192}},
    {AT(code.type), {8, 8, 8}},
    {AT(code.filename), {104, 112, 112}},
    {AT(code.name), {112, 120, 120}},
    {AT(code.qualname), {NO, 128, 128}},
    {AT(code.linetable), {120, 136, 136}},
    {AT(code.first_line), {40, 72, 68}},
    {AT(code.bytecode), {48, 184, 192}},
    {AT(unicode.ascii_size), {48, 48, 40}},
    {AT(unicode.compact_size), {72, 72, 56}},
    {AT(unicode.length), {16, 16, 16}},
    {AT(unicode.state), {32, 32, 32}},
    {AT(bytes.size), {16, 16, 16}},
    {AT(bytes.data), {32, 32, 32}},
    {AT(object.type), {8, 8, 8}},
    {AT(object.type_name), {24, 24, 24}},
    {AT(object.type_flags), {168, 168, 168}},
    {AT(object.type_dictoffset), {288, 288, 288}},
    {AT(object.type_cached_keys), {NO, 872, 880}},
};

bool marey__remote_layout_fixed(uint32_t version, struct marey__remote_layout *out)
{
    const uint32_t minor = version >> 16 & 0xff;
    if (version >> 24 != 3 || minor < 10 || minor > 12)
        return false;
    clear(out, version);
    for (size_t i = 0; i < MAREY__COUNT_OF(fixed); i++)
        set(out, fixed[i].member, fixed[i].offsets[minor - 10]);
    if (minor == 10) {
        out->instruction_kind = MAREY__REMOTE_LASTI_UNITS;
        out->line_format = MAREY__REMOTE_LINES_LINETABLE;
    }
    return true;
}

/* ---- 3.13 and later ---- */

enum {
    TABLE_MAX = 1024,
    STRUCT_MAX = 1 << 16,
    INTERPRETER_MAX = 1 << 20,
    FRAME_MAX = 1024,
    CODE_MAX = 1024
};

static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

/* The table's fields: their offsets in it by version, the layout member to set, and the limit of the value. */
struct field {
    const char *name;
    uint32_t at[3]; /* bytes, for 3.13, 3.14 and 3.15; NO: absent */
    uint32_t out, n_bytes;
    uint32_t within, limit; /* the member with the size of the struct, or if 0 a constant */
    uint32_t least;         /* minimum of a size */
    bool is_free_threaded;  /* only for these builds */
};
#define SIZE(member, least, most) AT(member), 0, 0, most, least, false
#define PART(member, least) AT(member), 0, AT(member), 0, least, false
#define UP_TO(limit, member, n_bytes) AT(member), n_bytes, 0, limit, 0, false
#define INTERPRETER(member, n_bytes) UP_TO(INTERPRETER_MAX, interpreter.member, n_bytes)
#define INSIDE(size, member, n_bytes) AT(member), n_bytes, AT(size), 0, 0, false
#define FIELD(group, member, n_bytes) INSIDE(group.size, group.member, n_bytes)
#define FREE_THREADED(group, member, n_bytes) AT(group.member), n_bytes, AT(group.size), 0, 0, true

/*
 * Sizes precede the fields that they limit. A frame is read up to its locals and a code object up to its bytecode: PART
 * replaces the size of the struct.
 */
static const struct field fields[] = {
    {"pyobject.ob_type", {360, 408, 472}, UP_TO(32, object.type, 8)},
    {"type_object.tp_name", {376, 424, 488}, UP_TO(1024, object.type_name, 8)},
    {"type_object.tp_flags", {392, 440, 504}, UP_TO(1024, object.type_flags, 8)},
    {"unicode_object.asciiobject_size", {560, 640, 736}, SIZE(unicode.ascii_size, 24, 128)},
    {"unicode_object.state", {544, 624, 720}, INSIDE(unicode.ascii_size, unicode.state, 4)},
    {"unicode_object.length", {552, 632, 728}, INSIDE(unicode.ascii_size, unicode.length, 8)},
    {"bytes_object.ob_size", {520, 600, 696}, UP_TO(128, bytes.size, 8)},
    {"bytes_object.ob_sval", {528, 608, 704}, UP_TO(128, bytes.data, 1)},
    {"runtime.interpreters_head", {40, 40, 40}, UP_TO(INTERPRETER_MAX, runtime.interpreters_head, 8)},
    {"interpreter.id", {56, 56, 56}, INTERPRETER(id, 8)},
    {"interpreter.next", {64, 64, 64}, INTERPRETER(next, 8)},
    {"interpreter.threads_head", {72, 72, 72}, INTERPRETER(threads_head, 8)},
    {"interpreter.imports_modules", {88, 96, 96}, INTERPRETER(modules, 8)},
    {"interpreter.ceval_gil", {112, 120, 120}, INTERPRETER(gil, 8)},
    {"thread_state.size", {152, 176, 176}, SIZE(thread.size, 64, STRUCT_MAX)},
    {"thread_state.next", {168, 192, 192}, FIELD(thread, next, 8)},
    {"thread_state.interp", {176, 200, 200}, FIELD(thread, interpreter, 8)},
    {"thread_state.current_frame", {184, 208, 208}, FIELD(thread, frame, 8)},
    {"thread_state.thread_id", {192, 216, 240}, FIELD(thread, thread_id, 8)},
    {"thread_state.native_thread_id", {200, 224, 248}, FIELD(thread, native_thread_id, 8)},
    {"thread_state.datastack_chunk", {208, 232, 256}, FIELD(thread, datastack_chunk, 16)},
    {"interpreter_frame.size", {224, 248, 312}, SIZE(frame.size, 40, FRAME_MAX)},
    {"interpreter_frame.localsplus", {256, 280, 344}, PART(frame.size, 40)},
    {"interpreter_frame.previous", {232, 256, 320}, FIELD(frame, previous, 8)},
    {"interpreter_frame.executable", {240, 264, 328}, FIELD(frame, code, 8)},
    {"interpreter_frame.instr_ptr", {248, 272, 336}, FIELD(frame, instruction, 8)},
    {"interpreter_frame.owner", {264, 288, 352}, FIELD(frame, owner, 1)},
    {"interpreter_frame.tlbc_index", {NO, 304, 368}, FREE_THREADED(frame, tlbc_index, 4)},
    {"code_object.size", {272, 312, 376}, SIZE(code.size, 64, CODE_MAX)},
    {"code_object.co_code_adaptive", {344, 384, 448}, PART(code.size, 64)},
    {"code_object.filename", {280, 320, 384}, FIELD(code, filename, 8)},
    {"code_object.name", {288, 328, 392}, FIELD(code, name, 8)},
    {"code_object.qualname", {296, 336, 400}, FIELD(code, qualname, 8)},
    {"code_object.linetable", {304, 344, 408}, FIELD(code, linetable, 8)},
    {"code_object.firstlineno", {312, 352, 416}, FIELD(code, first_line, 4)},
    {"code_object.co_tlbc", {NO, 392, 456}, FREE_THREADED(code, tlbc, 8)},
};

/* Offsets missing in the table, or only in later versions of it. */
static const struct version {
    uint32_t minor;
    uint32_t exc_info, exc_state, current_exception, cached_keys, stack_top;
    uint64_t code_mask;
    uint32_t gc, gc_collecting; /* offsets in the table */
} versions[] = {
    {13, 120, 256, 112, 880, 64, UINT64_MAX, 80, 576},
    {14, 120, 256, 112, 880, NO, ~(uint64_t)3, 88, 656},
    {15, 144, 288, 136, 888, NO, ~(uint64_t)3, 88, 760},
};

struct table {
    uint8_t bytes[TABLE_MAX];
    const char *wrong; /* the first invalid field */
};

/* Reads an offset or a size from the table; the first invalid one is recorded in `wrong`. */
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

static void take_fields(struct table *table, size_t version, struct marey__remote_layout *out)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(fields); i++) {
        const struct field *const field = &fields[i];
        const bool is_meant = !field->is_free_threaded || out->is_free_threaded;
        uint32_t limit = field->limit, value;
        if (limit == 0)
            memcpy(&limit, (char *)out + field->within, sizeof limit);
        value = word(table, is_meant ? field->at[version] : NO, field->n_bytes, limit, field->name);
        if (field->least > 0 && value == NO)
            value = 0;
        if (value < field->least && table->wrong == NULL)
            table->wrong = field->name;
        set(out, field->out, value);
    }
}

/* In free-threaded builds an object's header is 16 bytes longer, and the GIL's struct begins with an extra field. */
static void take_rest(struct table *table, const struct version *version,
                      struct marey__remote_layout *out)
{
    const uint32_t more = out->is_free_threaded ? 16 : 0, gil = out->is_free_threaded ? 8 : 0;
    const uint32_t gc = word(table, version->gc, 8, INTERPRETER_MAX / 2, "interpreter.gc");
    const uint32_t collecting =
        word(table, version->gc_collecting, 4, INTERPRETER_MAX / 2, "gc.collecting");
    out->interpreter.gc_collecting = gc != NO && collecting != NO ? gc + collecting : NO;
    /* The current top of the newest chunk is the word after the pointer to that chunk. */
    const uint32_t chunk = out->thread.datastack_chunk;
    out->thread.datastack_top = chunk != NO ? chunk + 8 : NO;
    if (out->thread.size >= version->exc_state + 16 && out->thread.size >= version->exc_info + 8) {
        out->thread.exc_info = version->exc_info;
        out->thread.exc_state = version->exc_state;
        out->thread.current_exception = version->current_exception;
    }
    out->exception.value = 0;
    out->exception.previous = 8;
    if (version->stack_top != NO && version->stack_top + 4 <= out->frame.size)
        out->frame.stack_top = version->stack_top;
    out->frame.code_mask = version->code_mask;
    out->code.bytecode = out->code.size;
    out->code.type = out->object.type;
    /* The header of a non-ASCII string ends with a length and a pointer to its UTF-8. */
    out->unicode.compact_size = out->unicode.ascii_size + 16;
    out->chunk.previous = 0;
    out->chunk.size = 8;
    out->chunk.top = 16;
    out->chunk.data = 24;
    if (out->is_free_threaded)
        out->gil.enabled = 0;
    out->gil.last_holder = 8 + gil;
    out->gil.locked = 16 + gil;
    out->gil.switch_number = 24 + gil;
    out->gil.size = 32 + gil;
    out->object.type_dictoffset = 288 + more;
    out->object.type_cached_keys = version->cached_keys + more;
}

marey_status marey__remote_layout_described(struct marey__remote *remote,
                                            struct marey__remote_layout *out)
{
    struct table table = {.wrong = NULL};
    if (!marey__remote_read(remote, remote->found.runtime, table.bytes, sizeof table.bytes))
        return marey__fail(MAREY_EUNAVAILABLE, "the state of Python in process %d cannot be read",
                           (int)remote->process.pid);
    if (memcmp(table.bytes, cookie, sizeof cookie) != 0)
        return marey__fail(MAREY_ESTATE, "Python in process %d does not describe itself (yet)",
                           (int)remote->process.pid);
    const uint64_t version = marey__remote_u64(table.bytes, 8);
    clear(out, (uint32_t)version);
    out->is_free_threaded = marey__remote_u64(table.bytes, 16) != 0;
    const uint32_t minor = version >> 16 & 0xff;
    size_t i = 0; /* unknown newer minor version: try the newest layout */
    while (i + 1 < MAREY__COUNT_OF(versions) && versions[i].minor < minor)
        i++;
    take_fields(&table, i, out);
    take_rest(&table, &versions[i], out);
    if (table.wrong != NULL)
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "process %d runs Python %u.%u, which this marey does not know: its %s makes no sense "
            "in the order of %u.%u",
            (int)remote->process.pid, (unsigned)(version >> 24 & 0xff), minor, table.wrong, 3u,
            versions[i].minor);
    return MAREY_OK;
}
