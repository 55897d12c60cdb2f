/*
 * Python objects read from outside: dicts, and the attributes of plain instances. The format depends on the version:
 * keys are in a table after an index; values are beside the keys or, if instances of a class share keys, in a separate
 * array that the instance points to or embeds.
 */
#include "sampler/remote/internal.h"

enum {
    ENTRIES_MAX = 1 << 15, /* per dict; sys.modules has thousands */
    AT_ONCE = 512,         /* entries per read, including keys */
    KEY_HEAD = 96,         /* bytes of a key read for comparison */
    TYPE_MANAGED_DICT = 1 << 4,
    TYPE_INLINE_VALUES = 1 << 2,
};

/* The layout of a dict's keys. */
struct keys {
    uint64_t entries; /* address of the first */
    size_t n;
    size_t n_bytes; /* per entry */
    bool has_hash;
};

static unsigned minor_of(const struct marey__remote *remote)
{
    return remote->layout.version >> 16 & 255;
}

/* The size of an object header, which shifts the fields after it. */
static uint32_t header_of(const struct marey__remote *remote)
{
    return remote->layout.object.type + 8;
}

static bool read_keys(struct marey__remote *remote, uint64_t at, struct keys *out)
{
    uint8_t head[40];
    if (!marey__remote_read(remote, at, head, sizeof head))
        return false;
    uint64_t n_index, n;
    if (minor_of(remote) <= 10) {
        const uint64_t size = marey__remote_u64(head, 8);
        n = marey__remote_u64(head, 32);
        n_index = size <= 0xff ? size : size <= 0xffff ? 2 * size : 4 * size;
        *out = (struct keys){.entries = at + 40 + n_index, .n_bytes = 24, .has_hash = true};
        if (size > ENTRIES_MAX * 4)
            return false;
    } else {
        const uint8_t log2_index = head[9], kind = head[10];
        n = marey__remote_u64(head, 24);
        if (log2_index > 24 || kind > 2)
            return false;
        n_index = (uint64_t)1 << log2_index;
        *out = (struct keys){
            .entries = at + 32 + n_index, .n_bytes = kind == 0 ? 24 : 16, .has_hash = kind == 0};
    }
    out->n = (size_t)n;
    return n <= ENTRIES_MAX;
}

/* Reads entries from `first` on: their keys, and their values unless stored elsewhere. */
static size_t read_entries(struct marey__remote *remote, const struct keys *keys, size_t first,
                           struct marey__remote_entry *out)
{
    uint8_t bytes[AT_ONCE * 24];
    const size_t n = MAREY__MIN(keys->n - first, (size_t)AT_ONCE);
    if (!marey__remote_read(remote, keys->entries + first * keys->n_bytes, bytes, n * keys->n_bytes))
        return 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *const entry = bytes + i * keys->n_bytes;
        const uint32_t at = keys->has_hash ? 8 : 0;
        out[i] =
            (struct marey__remote_entry){.hash = keys->has_hash ? marey__remote_u64(entry, 0) : 0,
                                         .key = marey__remote_u64(entry, at),
                                         .value = marey__remote_u64(entry, at + 8)};
    }
    return n;
}

/* Reads the keys of a dict; `values` gets the address of split values, or 0 if they are in the entries. */
static bool read_dict(struct marey__remote *remote, uint64_t dict, struct keys *keys, uint64_t *values)
{
    uint8_t head[64];
    const uint32_t after = header_of(remote);
    if (dict == 0 || !marey__remote_read(remote, dict, head, after + 32) ||
        !read_keys(remote, marey__remote_u64(head, after + 16), keys))
        return false;
    *values = marey__remote_u64(head, after + 24);
    *values += *values != 0 && minor_of(remote) >= 13 ? 8 : 0;
    return true;
}

bool marey__remote_dict_each(struct marey__remote *remote, uint64_t dict, marey__remote_each *each,
                             void *ctx)
{
    struct keys keys;
    struct marey__remote_entry entries[AT_ONCE];
    uint64_t values;
    if (!read_dict(remote, dict, &keys, &values))
        return false;
    for (size_t first = 0; first < keys.n;) {
        const size_t n = read_entries(remote, &keys, first, entries);
        for (size_t i = 0; i < n; i++) {
            if (values != 0 &&
                !marey__remote_read_u64(remote, values + 8 * (first + i), &entries[i].value))
                return false;
            if (entries[i].key != 0 && entries[i].value != 0 && !each(ctx, &entries[i]))
                return true;
        }
        if (n == 0)
            return false;
        first += n;
    }
    return true;
}

/* ---- by name ---- */

/* The index of the ASCII key `name` among `n`; `n` if it is missing. Reads all keys at once if possible. */
static size_t find_key(struct marey__remote *remote, const struct marey__remote_entry *entries,
                       size_t n, const char *name)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    const size_t len = strlen(name), n_bytes = layout->unicode.ascii_size + len + 1;
    uint8_t(*const heads)[KEY_HEAD] MAREY__FREED = marey__calloc(n, KEY_HEAD);
    struct marey__remote_span spans[AT_ONCE];
    size_t which[AT_ONCE], n_spans = 0;
    for (size_t i = 0; heads != NULL && n_bytes <= KEY_HEAD && i < n; i++)
        if (entries[i].key != 0) {
            which[n_spans] = i;
            spans[n_spans++] = (struct marey__remote_span){entries[i].key, heads[i], n_bytes};
        }
    for (size_t done = 0; done < n_spans; done++) /* skip a key at the end of a mapping */
        done += marey__remote_read_spans(remote, spans + done, n_spans - done);
    for (size_t s = 0; s < n_spans; s++) {
        const uint8_t *const head = heads[which[s]];
        if (marey__remote_u64(head, layout->unicode.length) == len &&
            memcmp(head + layout->unicode.ascii_size, name, len + 1) == 0)
            return which[s];
    }
    return n;
}

/* Finds the key `name`: its index and value; false if it is missing. */
static bool find_name(struct marey__remote *remote, const struct keys *keys, const char *name,
                      size_t *number, uint64_t *value)
{
    struct marey__remote_entry entries[AT_ONCE];
    for (size_t first = 0; first < keys->n;) {
        const size_t n = read_entries(remote, keys, first, entries);
        const size_t at = find_key(remote, entries, n, name);
        if (at < n) {
            *number = first + at;
            *value = entries[at].value;
            return true;
        }
        if (n == 0)
            return false;
        first += n;
    }
    return false;
}

uint64_t marey__remote_dict_get(struct marey__remote *remote, uint64_t dict, const char *name)
{
    struct keys keys;
    size_t number;
    uint64_t value, values;
    return read_dict(remote, dict, &keys, &values) &&
                   find_name(remote, &keys, name, &number, &value) &&
                   (values == 0 || marey__remote_read_u64(remote, values + 8 * number, &value))
               ? value
               : 0;
}

/* ---- attributes of instances ---- */

/* Where an instance stores attributes: a dict, or values for its class's keys. Both 0 if unknown. */
struct store {
    uint64_t dict, values;
};

static struct store store_of(struct marey__remote *remote, uint64_t object, uint64_t flags,
                             uint64_t dictoffset)
{
    const unsigned minor = minor_of(remote);
    struct store store = {0, 0};
    uint64_t word;
    if (minor <= 10 || (flags & TYPE_MANAGED_DICT) == 0) {
        if (dictoffset != 0 && dictoffset < 4096)
            marey__remote_read_u64(remote, object + dictoffset, &store.dict);
    } else if (minor == 11) {
        if (!marey__remote_read_u64(remote, object - 32, &store.values) || store.values == 0)
            marey__remote_read_u64(remote, object - 24, &store.dict);
    } else if (minor == 12) {
        if (marey__remote_read_u64(remote, object - 24, &word)) {
            store.values = (word & 1) != 0 ? word + 1 : 0;
            store.dict = (word & 1) != 0 ? 0 : word;
        }
    } else {
        const uint64_t values = object + header_of(remote);
        uint8_t head[8];
        if ((flags & TYPE_INLINE_VALUES) != 0 &&
            marey__remote_read(remote, values, head, sizeof head) && head[3] != 0)
            store.values = values + 8;
        else
            marey__remote_read_u64(remote, object - (remote->layout.is_free_threaded ? 8 : 24),
                                   &store.dict);
    }
    return store;
}

uint64_t marey__remote_attribute(struct marey__remote *remote, uint64_t object, const char *name)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint64_t type, flags, dictoffset, cached, value;
    struct keys keys;
    size_t number;
    if (!marey__remote_read_u64(remote, object + layout->object.type, &type) ||
        !marey__remote_read_u64(remote, type + layout->object.type_flags, &flags) ||
        !marey__remote_read_u64(remote, type + layout->object.type_dictoffset, &dictoffset))
        return 0;
    const struct store store = store_of(remote, object, flags, dictoffset);
    if (store.values == 0)
        return marey__remote_dict_get(remote, store.dict, name);
    if (!marey__remote_read_u64(remote, type + layout->object.type_cached_keys, &cached) ||
        cached == 0 || !read_keys(remote, cached, &keys) ||
        !find_name(remote, &keys, name, &number, &value) ||
        !marey__remote_read_u64(remote, store.values + 8 * number, &value))
        return 0;
    return value;
}
