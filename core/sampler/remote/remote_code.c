/*
 * Code objects by address: names, files, and the lines of instructions. Read once and cached.
 *
 * Addresses are reused: programs that generate code (exec, notebooks, graph compilers) free one code object and get the
 * next at the same address. So each cached object is rechecked after a tenth of a second: its pointers, and the first
 * bytes of its name and line table, all in one read. Pointers are not enough, since a freed name of the same length may
 * be replaced by the next name.
 */
#include "sampler/remote/internal.h"

enum {
    EPOCH_NS = 100000000,
    CODE_MAX = 1024,       /* bytes of a code object that are read at most */
    NAME_CHARS = 4000,     /* of a name or path; truncated beyond */
    TABLE_MAX = 16 << 20,  /* bytes of a line table; larger ones give no lines */
    HEAD = 16,             /* leading bytes of a name or table that are compared */
    CHECKED_AT_ONCE = 200, /* code objects per call, four spans each */
    KEPT = 20000,          /* code objects cached for long */
};

/* Fingerprint to detect another code object at the same address. */
struct print {
    uint64_t type, file, name, qualname, table, first_line; /* no padding: compared as bytes */
    uint8_t name_head[HEAD], qualname_head[HEAD], table_head[HEAD];
};

struct marey__remote_code_entry {
    struct marey__remote_code code; /* first member: callers get a pointer to it */
    struct print print;
    uint8_t *table; /* as read; NULL if it could not be read, or was decoded */
    size_t n_table;
    bool is_one_line; /* the table exists but is empty, as for a lambda before 3.10 */
    struct marey__remote_line_run *runs;
    size_t n_runs;
    uint32_t n_bytecode; /* 0: unknown */
    uint32_t checked_epoch, used_epoch;
    struct marey__remote_code_entry *next_retired;
};

static void entry_free(struct marey__remote_code_entry *entry)
{
    if (entry == NULL)
        return;
    MAREY__FREE_ALL((char *)entry->code.name, (char *)entry->code.file, entry->table, entry->runs,
                    entry);
}

/* ---- the map from addresses ---- */

static size_t slot_of(const struct marey__remote_codes *codes, uint64_t address)
{
    size_t at = (size_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 32) & (codes->n_slots - 1);
    while (codes->slots[at] != NULL && codes->slots[at]->code.address != address)
        at = (at + 1) & (codes->n_slots - 1);
    return at;
}

static bool make_room(struct marey__remote_codes *codes)
{
    if (2 * (codes->n + 1) <= codes->n_slots)
        return true;
    struct marey__remote_codes larger = *codes;
    larger.n_slots = codes->n_slots == 0 ? 256 : 2 * codes->n_slots;
    larger.slots = marey__calloc(larger.n_slots, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < codes->n_slots; i++)
        if (codes->slots[i] != NULL)
            larger.slots[slot_of(&larger, codes->slots[i]->code.address)] = codes->slots[i];
    marey__free(codes->slots);
    *codes = larger;
    return true;
}

static void free_retired(struct marey__remote_codes *codes)
{
    for (struct marey__remote_code_entry *entry = codes->retired, *next; entry != NULL; entry = next) {
        next = entry->next_retired;
        entry_free(entry);
    }
    codes->retired = NULL;
}

void marey__remote_codes_fini(struct marey__remote_codes *codes)
{
    for (size_t i = 0; i < codes->n_slots; i++)
        entry_free(codes->slots[i]);
    free_retired(codes);
    marey__free(codes->slots);
    *codes = (struct marey__remote_codes){0};
}

/* ---- reading ---- */

static void print_of(const struct marey__remote_layout *layout, const uint8_t *bytes,
                     struct print *out)
{
    *out = (struct print){
        .type = marey__remote_u64(bytes, layout->code.type),
        .file = marey__remote_u64(bytes, layout->code.filename),
        .name = marey__remote_u64(bytes, layout->code.name),
        .qualname = marey__remote_u64(bytes, layout->code.qualname),
        .table = marey__remote_u64(bytes, layout->code.linetable),
        .first_line = marey__remote_u32(bytes, layout->code.first_line),
    };
}

/* The spans that complete a print, once it has the object's pointers. */
static size_t head_spans(const struct marey__remote_layout *layout, struct print *print,
                         struct marey__remote_span *out)
{
    size_t n = 0;
    out[n++] =
        (struct marey__remote_span){print->name + layout->unicode.length, print->name_head, HEAD};
    if (print->qualname != 0)
        out[n++] = (struct marey__remote_span){print->qualname + layout->unicode.length,
                                               print->qualname_head, HEAD};
    /* In a bytes object, the length and a hash precede the bytes: read both. */
    out[n++] =
        (struct marey__remote_span){print->table + layout->bytes.size, print->table_head, HEAD};
    return n;
}

static bool is_code(struct marey__remote *remote, uint64_t address, const struct print *print)
{
    if (remote->found.code_type != 0)
        return print->type == remote->found.code_type;
    if (!marey__remote_is_type(remote, address, "code"))
        return false;
    remote->found.code_type = print->type;
    return true;
}

static char *take_string(struct marey__remote *remote, uint64_t address)
{
    struct marey__buf text = {0};
    if (address == 0 || !marey__remote_put_string(remote, address, NAME_CHARS, &text)) {
        marey__buf_fini(&text);
        return NULL;
    }
    marey__buf_put(&text, "", 1);
    if (text.failed)
        marey__buf_fini(&text);
    return text.data;
}

/* Reads the line table. If that fails, only lines are unknown. */
static void take_table(struct marey__remote *remote, struct marey__remote_code_entry *entry)
{
    uint64_t size;
    const struct marey__remote_layout *const layout = &remote->layout;
    if (entry->print.table == 0 ||
        !marey__remote_read_u64(remote, entry->print.table + layout->bytes.size, &size) ||
        size > TABLE_MAX)
        return;
    if (size == 0) {
        entry->is_one_line = true;
        return;
    }
    entry->table = marey__alloc((size_t)size);
    entry->n_table = (size_t)size;
    if (entry->table != NULL && !marey__remote_read(remote, entry->print.table + layout->bytes.data,
                                                    entry->table, entry->n_table)) {
        marey__free(entry->table);
        entry->table = NULL;
    }
}

/* Reads the object at `address`; NULL if it is not a code object. */
static struct marey__remote_code_entry *read_entry(struct marey__remote *remote, uint64_t address)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint8_t bytes[CODE_MAX];
    struct marey__remote_span spans[3];
    struct print print;
    MAREY_ASSERT(layout->code.size <= sizeof bytes);
    if (address % 8 != 0 || !marey__remote_read(remote, address, bytes, layout->code.size))
        return NULL;
    print_of(layout, bytes, &print);
    if (!is_code(remote, address, &print))
        return NULL;
    const size_t n = head_spans(layout, &print, spans);
    if (marey__remote_read_spans(remote, spans, n) < n) /* may still be valid: see below */
        memset(print.table_head, 0, sizeof print.table_head);
    struct marey__remote_code_entry *const entry = marey__calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->print = print;
    entry->code =
        (struct marey__remote_code){.address = address, .first_line = (uint32_t)print.first_line};
    entry->code.name = take_string(remote, print.qualname);
    if (entry->code.name == NULL)
        entry->code.name = take_string(remote, print.name);
    entry->code.file = take_string(remote, print.file);
    if (entry->code.name == NULL || entry->code.file == NULL) {
        entry_free(entry);
        return NULL;
    }
    if (layout->instruction_kind == MAREY__REMOTE_INSTRUCTION_POINTER)
        entry->n_bytecode = marey__remote_u32(bytes, layout->object.type + 8) * 2;
    take_table(remote, entry);
    return entry;
}

static bool is_equal(const struct marey__remote_code_entry *a,
                     const struct marey__remote_code_entry *b)
{
    return strcmp(a->code.name, b->code.name) == 0 && strcmp(a->code.file, b->code.file) == 0 &&
           a->code.first_line == b->code.first_line &&
           memcmp(a->print.table_head, b->print.table_head, HEAD) == 0;
}

/* Stores the object in its slot; the previous one is retired unless only its head changed. */
static struct marey__remote_code_entry *put_entry(struct marey__remote *remote, uint64_t address)
{
    struct marey__remote_codes *const codes = &remote->codes;
    struct marey__remote_code_entry *const entry = read_entry(remote, address);
    if (entry == NULL || !make_room(codes)) {
        entry_free(entry);
        return NULL;
    }
    const size_t at = slot_of(codes, address);
    struct marey__remote_code_entry *const old = codes->slots[at];
    if (old != NULL && is_equal(old, entry)) {
        old->print = entry->print;
        entry_free(entry);
        return old;
    }
    if (old != NULL) {
        old->next_retired = codes->retired;
        codes->retired = old;
    } else {
        codes->n++;
    }
    entry->code.generation = ++codes->last_generation;
    codes->slots[at] = entry;
    return entry;
}

/* ---- rechecking ---- */

static uint32_t epoch_of(struct marey__remote_codes *codes)
{
    const uint64_t ns = marey__remote_now_ns();
    if (ns - codes->epoch_ns >= EPOCH_NS) {
        codes->epoch_ns = ns;
        codes->epoch++;
    }
    return codes->epoch;
}

/* Checks at most CHECKED_AT_ONCE entries against memory; rereads those that differ. */
static void check(struct marey__remote *remote, struct marey__remote_code_entry *const *entries,
                  size_t n)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    struct marey__remote_span spans[4 * CHECKED_AT_ONCE];
    struct print *const prints = marey__alloc(n * sizeof *prints);
    uint8_t *const bytes = marey__alloc(n * layout->code.size);
    size_t n_spans = 0;
    for (size_t i = 0; prints != NULL && bytes != NULL && i < n; i++) {
        prints[i] = entries[i]->print; /* its pointers: if they changed, the heads do not matter */
        spans[n_spans++] = (struct marey__remote_span){
            entries[i]->code.address, bytes + i * layout->code.size, layout->code.size};
        n_spans += head_spans(layout, &prints[i], spans + n_spans);
    }
    const size_t n_read = marey__remote_read_spans(remote, spans, n_spans);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t n_own = entries[i]->print.qualname != 0 ? 4 : 3;
        struct print now = {0};
        at += n_own;
        if (n_spans > 0 && at <= n_read) {
            print_of(layout, bytes + i * layout->code.size, &now);
            memcpy(now.name_head, prints[i].name_head, HEAD);
            memcpy(now.qualname_head, prints[i].qualname_head, HEAD);
            memcpy(now.table_head, prints[i].table_head, HEAD);
        }
        struct marey__remote_code_entry *entry = entries[i];
        if (memcmp(&now, &entry->print, sizeof now) != 0)
            entry = put_entry(remote, entry->code.address);
        if (entry != NULL)
            entry->checked_epoch = remote->codes.epoch;
    }
    MAREY__FREE_ALL(prints, bytes);
}

void marey__remote_check_codes(struct marey__remote *remote, const uint64_t *addresses, size_t n)
{
    struct marey__remote_code_entry *some[CHECKED_AT_ONCE];
    size_t n_some = 0;
    for (size_t i = 0; i < n && remote->codes.n_slots > 0; i++) {
        struct marey__remote_code_entry *const entry =
            remote->codes.slots[slot_of(&remote->codes, addresses[i])];
        if (entry != NULL)
            some[n_some++] = entry;
        if (n_some == CHECKED_AT_ONCE) {
            check(remote, some, n_some);
            n_some = 0;
        }
    }
    if (n_some > 0)
        check(remote, some, n_some);
}

/* Checks all entries used in the last epoch, with few calls. */
static void check_used(struct marey__remote *remote, uint32_t epoch)
{
    struct marey__remote_code_entry *some[CHECKED_AT_ONCE];
    size_t n_some = 0;
    for (size_t i = 0; i < remote->codes.n_slots; i++) {
        struct marey__remote_code_entry *const entry = remote->codes.slots[i];
        if (entry != NULL && entry->used_epoch + 1 == epoch && n_some < CHECKED_AT_ONCE)
            some[n_some++] = entry;
    }
    if (n_some > 0)
        check(remote, some, n_some);
}

struct marey__remote_code *marey__remote_code(struct marey__remote *remote, uint64_t address)
{
    struct marey__remote_codes *const codes = &remote->codes;
    const uint32_t before = codes->epoch, epoch = epoch_of(codes);
    if (epoch != before)
        check_used(remote, epoch);
    struct marey__remote_code_entry *entry =
        codes->n_slots > 0 ? codes->slots[slot_of(codes, address)] : NULL;
    if (entry != NULL && entry->checked_epoch != epoch) {
        check(remote, &entry, 1);
        entry = codes->slots[slot_of(codes, address)];
        if (entry->checked_epoch != epoch) /* it is gone, and not replaced */
            return NULL;
    }
    if (entry == NULL)
        entry = put_entry(remote, address);
    if (entry == NULL)
        return NULL;
    entry->checked_epoch = entry->used_epoch = epoch;
    return &entry->code;
}

void marey__remote_forget(struct marey__remote *remote)
{
    struct marey__remote_codes kept = remote->codes;
    free_retired(&remote->codes);
    if (kept.n <= KEPT)
        return;
    kept.slots = NULL;
    kept.retired = NULL;
    kept.n = kept.n_slots = 0;
    for (size_t i = 0; i < remote->codes.n_slots; i++) {
        struct marey__remote_code_entry *const entry = remote->codes.slots[i];
        if (entry == NULL || entry->used_epoch + 1 < remote->codes.epoch || !make_room(&kept))
            continue;
        kept.slots[slot_of(&kept, entry->code.address)] = entry;
        kept.n++;
        remote->codes.slots[i] = NULL;
    }
    marey__remote_codes_fini(&remote->codes);
    remote->codes = kept;
}

/* ---- lines ---- */

/* The offset of an instruction in the bytecode, in bytes; -1: before the first; -2: outside. */
static int64_t offset_of(struct marey__remote *remote, const struct marey__remote_code_entry *entry,
                         uint64_t instruction, uint32_t tlbc_index)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    if (layout->instruction_kind != MAREY__REMOTE_INSTRUCTION_POINTER) {
        const int64_t lasti = (int32_t)(uint32_t)instruction;
        return lasti < 0 ? -1 : 2 * lasti;
    }
    uint64_t base = entry->code.address + layout->code.bytecode, copies;
    /* Threads of a free-threaded build may run copies: an array of pointers after a count, indexed by thread. */
    if (tlbc_index != 0 && layout->code.tlbc != MAREY__REMOTE_ABSENT && tlbc_index < 1 << 20 &&
        (!marey__remote_read_u64(remote, entry->code.address + layout->code.tlbc, &copies) ||
         !marey__remote_read_u64(remote, copies + 8 + 8ull * tlbc_index, &base)))
        return -2;
    if (instruction + 2 == base)
        return -1;
    return instruction >= base && instruction - base < entry->n_bytecode
               ? (int64_t)(instruction - base)
               : -2;
}

uint32_t marey__remote_line(struct marey__remote *remote, struct marey__remote_code *code,
                            uint64_t instruction, uint32_t tlbc_index)
{
    struct marey__remote_code_entry *const entry = (struct marey__remote_code_entry *)code;
    const int64_t offset = offset_of(remote, entry, instruction, tlbc_index);
    if (offset == -1 || entry->is_one_line)
        return entry->code.first_line;
    if (offset < 0 || offset > UINT32_MAX)
        return 0;
    if (entry->table != NULL &&
        marey__remote_lines_decode(remote->layout.line_format, entry->table, entry->n_table,
                                   entry->code.first_line, &entry->runs, &entry->n_runs)) {
        marey__free(entry->table);
        entry->table = NULL;
    }
    return marey__remote_lines_at(entry->runs, entry->n_runs, (uint32_t)offset);
}
