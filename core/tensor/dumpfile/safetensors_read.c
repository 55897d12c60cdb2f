/* The header of a safetensors file, by the reference reader's rules: at most 100 MB, unique names, tensors without holes. */
#include <inttypes.h>
#include <string.h>

#include "tensor/dumpfile/internal.h"

enum { MAX_HEADER = 100000000 };

struct entry {
    size_t name, name_len; /* in `names` */
    size_t sizes;          /* in `sizes` */
    uint32_t rank;
    enum marey_dtype dtype;
    uint64_t begin, end;
};

struct table {
    struct marey__json json;
    struct entry *entries;
    size_t n, cap;
    struct marey__buf names;
    int64_t *sizes;
    size_t n_sizes, sizes_cap;
    bool no_memory;
};

static bool fail(struct table *t, const char *mistake)
{
    marey__json_fail(&t->json, mistake);
    return false;
}

/* Types without an equivalent here are read as bytes. */
static bool read_type(struct table *t, enum marey_dtype *dtype, bool *is_bytes, bool *is_halves)
{
    if (!marey__json_string(&t->json))
        return false;
    const char *const name = t->json.text;
    *is_bytes = strcmp(name, "F6_E2M3") == 0 || strcmp(name, "F6_E3M2") == 0;
    *is_halves = strcmp(name, "F4") == 0;
    *dtype = *is_bytes ? MAREY_U8 : marey_dtype_find(name);
    return *dtype != MAREY_DTYPE_NONE || fail(t, "an unknown type");
}

static bool read_offsets(struct table *t, struct entry *entry)
{
    if (marey__json_next(&t->json) != MAREY__JSON_ARRAY ||
        !marey__json_count(&t->json, &entry->begin) || !marey__json_count(&t->json, &entry->end) ||
        marey__json_next(&t->json) != MAREY__JSON_ARRAY_END)
        return fail(t, "data_offsets are two numbers");
    return entry->begin <= entry->end || fail(t, "a tensor ends before it begins");
}

/* Checks that the sizes match the offsets. */
static bool check_bytes(struct table *t, struct marey__shape *shape, const struct entry *entry,
                        bool is_bytes, bool is_halves)
{
    uint64_t n_bytes;
    if (is_bytes) {
        shape->rank = 1;
        shape->sizes[0] = (int64_t)(entry->end - entry->begin);
    }
    if (is_halves) {
        /* The format counts half bytes; here sizes count bytes. */
        if (shape->rank == 0 || shape->sizes[shape->rank - 1] % 2 != 0)
            return fail(t, "halves of bytes that do not fill a byte");
        shape->sizes[shape->rank - 1] /= 2;
    }
    if (!marey__shape_bytes(shape, &n_bytes) || n_bytes != entry->end - entry->begin)
        return fail(t, "a tensor whose shape and data_offsets differ in bytes");
    return true;
}

static bool read_entry(struct table *t, struct entry *entry)
{
    struct marey__json *const json = &t->json;
    struct marey__shape shape = {0};
    bool is_bytes = false, is_halves = false;
    unsigned seen = 0;
    if (!marey__json_expect(json, MAREY__JSON_OBJECT, "a tensor that is not an object"))
        return false;
    while (marey__json_next_key(json)) {
        const unsigned which = marey__json_is(json, "dtype")          ? 1
                               : marey__json_is(json, "shape")        ? 2
                               : marey__json_is(json, "data_offsets") ? 4
                                                                      : 0;
        if ((seen & which) != 0 || which == 0)
            return fail(t, "an unknown key of a tensor, or one twice");
        seen |= which;
        if (!(which == 1   ? read_type(t, &shape.dtype, &is_bytes, &is_halves)
              : which == 2 ? marey__shape_read(json, &shape)
                           : read_offsets(t, entry)))
            return false;
    }
    if (json->mistake != NULL)
        return false;
    if (seen != 7)
        return fail(t, "a tensor without dtype, shape or data_offsets");
    if (!check_bytes(t, &shape, entry, is_bytes, is_halves))
        return false;
    entry->dtype = shape.dtype;
    entry->rank = shape.rank;
    entry->sizes = t->n_sizes;
    if (!marey__grow(&t->sizes, &t->sizes_cap, t->n_sizes + shape.rank + 1, sizeof *t->sizes)) {
        t->no_memory = true;
        return false;
    }
    memcpy(t->sizes + t->n_sizes, shape.sizes, shape.rank * sizeof *t->sizes);
    t->n_sizes += shape.rank;
    return true;
}

/* Maps strings to strings. */
static bool read_metadata(struct marey__json *json)
{
    if (!marey__json_expect(json, MAREY__JSON_OBJECT, "__metadata__ is not an object"))
        return false;
    while (marey__json_next_key(json))
        if (!marey__json_string(json))
            return false;
    return json->mistake == NULL;
}

static bool read_entries(struct table *t)
{
    struct marey__json *const json = &t->json;
    bool has_metadata = false;
    if (marey__json_next(json) != MAREY__JSON_OBJECT || marey__json_offset(json) != 1)
        return fail(t, "it does not begin with {");
    while (marey__json_next_key(json)) {
        if (marey__json_is(json, "__metadata__")) {
            if (has_metadata)
                return fail(t, "__metadata__ twice");
            has_metadata = true;
            if (!read_metadata(json))
                return false;
            continue;
        }
        if (!marey__grow(&t->entries, &t->cap, t->n + 1, sizeof *t->entries)) {
            t->no_memory = true;
            return false;
        }
        struct entry *const entry = &t->entries[t->n];
        *entry = (struct entry){.name = t->names.len, .name_len = json->text_len};
        marey__buf_put(&t->names, json->text, json->text_len + 1);
        if (t->names.failed || !read_entry(t, entry))
            return false;
        t->n++;
    }
    return json->mistake == NULL && marey__json_end(json);
}

MAREY__ORDER(by_data, struct entry, MAREY__UP(begin) MAREY__UP(end) MAREY__UP(name))

static int by_name(const void *a, const void *b, void *names)
{
    const struct entry *const x = a, *const y = b;
    const size_t n = MAREY__MIN(x->name_len, y->name_len);
    const int order = memcmp((const char *)names + x->name, (const char *)names + y->name, n);
    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static marey_status check(struct table *t, const char *path, uint64_t n_data)
{
    uint64_t end = 0;
    if (t->n > 0) {
        qsort_r(t->entries, t->n, sizeof *t->entries, by_name, t->names.data);
        for (size_t i = 1; i < t->n; i++)
            if (by_name(&t->entries[i - 1], &t->entries[i], t->names.data) == 0)
                return marey__fail(MAREY_EFORMAT, "%s is not a safetensors file: '%s' is in it twice",
                                   path, t->names.data + t->entries[i].name);
        qsort(t->entries, t->n, sizeof *t->entries, by_data);
    }
    for (size_t i = 0; i < t->n; i++) {
        if (t->entries[i].begin != end)
            return marey__fail(MAREY_EFORMAT,
                               "%s is not a safetensors file: '%s' begins at byte %" PRIu64
                               " of the data, where %" PRIu64 " is next",
                               path, t->names.data + t->entries[i].name, t->entries[i].begin, end);
        end = t->entries[i].end;
    }
    if (end != n_data)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not a complete safetensors file: its tensors have %" PRIu64
                           " bytes, its data %" PRIu64,
                           path, end, n_data);
    return MAREY_OK;
}

static marey_status visit_all(const struct table *t, marey__safetensors_visitor *visit, void *ctx)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct entry *const entry = &t->entries[i];
        struct marey__shape shape = {.dtype = entry->dtype, .rank = entry->rank};
        memcpy(shape.sizes, t->sizes + entry->sizes, entry->rank * sizeof *t->sizes);
        MAREY_TRY(visit(ctx, t->names.data + entry->name, entry->name_len, &shape, entry->begin));
    }
    return MAREY_OK;
}

static void table_fini(struct table *t)
{
    marey__json_fini(&t->json);
    MAREY__FREE_ALL(t->entries, t->sizes);
    marey__buf_fini(&t->names);
}

marey_status marey__safetensors_open(const char *path, struct marey__numbers_file *file,
                                     struct marey__map *head)
{
    uint64_t n = 0;
    MAREY_TRY(marey__numbers_open(path, sizeof n, file, head));
    if (head->len >= sizeof n)
        memcpy(&n, head->data, sizeof n);
    marey__map_close(head);
    return marey__numbers_open(path, 16 + (size_t)MAREY__MIN(n, (uint64_t)MAX_HEADER), file, head);
}

marey_status marey__safetensors_parse(const char *path, const char *text, size_t len,
                                      marey__safetensors_visitor *visit, void *ctx, size_t *data_at)
{
    uint64_t n = 0;
    if (len < 10)
        return marey__fail(MAREY_EFORMAT, "%s is not a safetensors file: it is too short", path);
    memcpy(&n, text, sizeof n);
    if (n > MAX_HEADER || n > len - 8)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not a complete safetensors file: its header would have %" PRIu64
                           " bytes, the file has %zu",
                           path, n, len);
    struct table t MAREY__FINALLY(table_fini) = {0};
    marey__json_init_text(&t.json, text + 8, n, MAREY__DUMP_JSON);
    if (!read_entries(&t))
        return t.no_memory || t.names.failed
                   ? marey__no_memory()
                   : marey__json_status(&t.json, path, "a safetensors file");
    MAREY_TRY(check(&t, path, len - 8 - n));
    MAREY_TRY(visit_all(&t, visit, ctx));
    *data_at = 8 + (size_t)n;
    return MAREY_OK;
}
