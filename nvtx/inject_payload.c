/*
 * Payloads that are more than a number: bytes with a schema. NCCL describes its calls this way: communicator, bytes.
 * They become text, "Message size [bytes] = 4096, Root = 0".
 *
 * A schema describes the program's own bytes, so it is trusted only within their bounds: entries outside and all that
 * follow them are omitted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inject.h"

enum { MAX_DEPTH = 4, MAX_SHOWN = 16, MAX_WIDE = 256 };

/* ---- types ---- */

enum kind { OPAQUE, UNSIGNED, SIGNED, REAL, ADDRESS, CHARACTER, WIDE, HANDLE };

static const struct form {
    char letter;
    uint8_t kind, bytes;
} forms[] = {{'c', CHARACTER, 1}, {'b', SIGNED, 1}, {'B', UNSIGNED, 1}, {'h', SIGNED, 2},
             {'H', UNSIGNED, 2},  {'i', SIGNED, 4}, {'I', UNSIGNED, 4}, {'q', SIGNED, 8},
             {'Q', UNSIGNED, 8},  {'f', REAL, 4},   {'d', REAL, 8},     {'P', ADDRESS, 8},
             {'w', WIDE, 4},      {'s', HANDLE, 8}, {'e', OPAQUE, 2},   {'x', OPAQUE, 16},
             {' ', OPAQUE, 0}};

/* Type letters for NVTX's numbers: 0 to 34, 35 to 67, and from 68 on. */
static const char types[NVTX_TYPE_END + 1] = " cBhHiIqQqQbBhHiIqQfdxQPwcew    Bxx"
                                             "       efdx    e                 "
                                             "IIQIQIQccew s";

static const struct form *form_of(uint64_t type)
{
    const struct form *form = forms;
    while (form->letter != types[type] && form->letter != ' ')
        form++;
    return form;
}

static size_t bytes_of(uint64_t type, const struct inject_schema *nested)
{
    if (type < NVTX_TYPE_END)
        return form_of(type)->bytes;
    return nested != NULL ? nested->bytes : 0;
}

/* ---- text ---- */

struct text {
    char *at, *end; /* room for a NUL is reserved */
    bool has_fields;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = (size_t)(text->end - text->at);
    const int len = vsnprintf(text->at, room, format, args);
    va_end(args);
    if (len > 0)
        text->at += (size_t)len < room ? (size_t)len : room - 1;
}

static bool is_full(const struct text *text)
{
    return text->end - text->at <= 1;
}

/* `bytes` is at least 1; of more than 8, reads the first 8. */
static uint64_t read_number(const void *data, size_t bytes, bool is_signed)
{
    uint64_t value = 0;
    memcpy(&value, data, bytes < sizeof value ? bytes : sizeof value);
    const unsigned unused = bytes < 8 ? 64 - 8 * (unsigned)bytes : 0;
    return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static void put_real(struct text *text, const void *data, size_t bytes)
{
    float single;
    double value;
    if (bytes == sizeof single) {
        memcpy(&single, data, sizeof single);
        put(text, "%.9g", (double)single);
    } else {
        memcpy(&value, data, sizeof value);
        put(text, "%.17g", value);
    }
}

static void put_scalar(struct text *text, uint64_t type, const char *data)
{
    const struct form *const form = form_of(type);
    const uint64_t number = read_number(data, form->bytes, form->kind == SIGNED);
    switch (form->kind) {
    case REAL:
        put_real(text, data, form->bytes);
        break;
    case SIGNED:
        put(text, "%lld", (long long)number);
        break;
    case ADDRESS:
        put(text, "0x%llx", (unsigned long long)number);
        break;
    case HANDLE:
        put(text, "%s", inject_name_text((const void *)(uintptr_t)number));
        break;
    case OPAQUE:
        put(text, "?");
        break;
    default:
        put(text, "%llu", (unsigned long long)number);
        break;
    }
}

static void put_characters(struct text *text, const char *data, size_t n, bool is_wide)
{
    wchar_t wide[MAX_WIDE];
    char narrow[INJECT_TEXT_MAX];
    if (!is_wide) {
        put(text, "%.*s", (int)(n < INJECT_TEXT_MAX ? n : INJECT_TEXT_MAX), data);
        return;
    }
    n = n < MAX_WIDE ? n : MAX_WIDE - 1;
    memcpy(wide, data, n * sizeof *wide);
    wide[n] = L'\0';
    inject_text_narrow(wide, narrow);
    put(text, "%s", narrow);
}

typedef bool is_shown(const struct inject_schema_entry *entry);
static void walk(struct text *text, const struct inject_schema *schema, const char *data,
                 size_t bytes, unsigned depth, is_shown *shows);

static bool is_no_message(const struct inject_schema_entry *entry)
{
    return (entry->flags & (NVTX_FLAG_HIDDEN | NVTX_FLAG_MESSAGE)) == 0;
}

static bool is_message(const struct inject_schema_entry *entry)
{
    return (entry->flags & NVTX_FLAG_MESSAGE) != 0;
}

/* Writes one value of a type that is not a plain number. */
static void put_nested(struct text *text, const struct inject_schema *schema, const char *data,
                       unsigned depth)
{
    if (!schema->is_enum) {
        const bool is_struct = schema->n_entries != 1;
        struct text inner = {text->at, text->end, false};
        if (is_struct)
            put(&inner, "{");
        walk(&inner, schema, data, schema->bytes, depth + 1, is_no_message);
        if (is_struct)
            put(&inner, "}");
        text->at = inner.at;
        return;
    }
    const uint64_t number = read_number(data, schema->bytes, true);
    for (size_t i = 0; i < schema->n_entries; i++)
        if (schema->entries[i].detail == number && schema->entries[i].name != NULL) {
            put(text, "%s", schema->entries[i].name);
            return;
        }
    put(text, "%lld", (long long)number);
}

/* Writes `n` values, which are within the bytes. */
static void put_values(struct text *text, const struct inject_schema_entry *entry,
                       const struct inject_schema *nested, const char *data, size_t n, unsigned depth)
{
    const enum kind kind = nested == NULL ? (enum kind)form_of(entry->type)->kind : OPAQUE;
    const size_t bytes = bytes_of(entry->type, nested);
    const bool is_array = (entry->flags & NVTX_FLAG_ARRAY) != 0;
    if ((kind == CHARACTER || kind == WIDE) && (n > 1 || is_array)) {
        put_characters(text, data, n, kind == WIDE);
        return;
    }
    if (is_array)
        put(text, "[");
    for (size_t i = 0; i < n && i < MAX_SHOWN && !is_full(text); i++) {
        put(text, "%s", i > 0 ? ", " : "");
        if (nested != NULL)
            put_nested(text, nested, data + i * bytes, depth);
        else
            put_scalar(text, entry->type, data + i * bytes);
    }
    if (is_array)
        put(text, "%s", n > MAX_SHOWN ? ", ...]" : "]");
}

/* ---- through a schema ---- */

/* The position of an entry and its number of values. */
struct place {
    size_t at, bytes, n;
    const struct inject_schema *nested;
    bool is_remote;
};

static size_t alignment_of(const struct inject_schema *schema, size_t bytes)
{
    const size_t natural = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
    return schema->alignment != 0 && schema->alignment < natural ? schema->alignment : natural;
}

/* False if unknown or outside the bytes. `numbers` are those of earlier entries. */
static bool find_place(const struct inject_schema *schema, size_t i, const uint64_t *numbers,
                       size_t behind, size_t bytes, struct place *place)
{
    const struct inject_schema_entry *const entry = &schema->entries[i];
    const uint64_t array = entry->flags & NVTX_FLAG_ARRAY;
    place->is_remote = (entry->flags & NVTX_FLAG_REMOTE) != 0;
    place->nested =
        entry->type >= NVTX_TYPE_END ? inject_schema_find(schema->domain, entry->type) : NULL;
    place->bytes = place->is_remote ? 8 : bytes_of(entry->type, place->nested);
    if (place->bytes == 0)
        return false;
    const bool is_text = entry->type >= 75 && entry->type <= 78;
    if (place->is_remote)
        place->n = 1;
    else if (array == NVTX_FLAG_ARRAY_FIXED || (array == 0 && is_text && entry->detail > 0))
        place->n = entry->detail;
    else if (array == NVTX_FLAG_ARRAY_LENGTH && entry->detail < i)
        place->n = numbers[entry->detail];
    else if (array == 0 && !is_text)
        place->n = 1;
    else
        return false;
    const size_t alignment = alignment_of(schema, place->bytes);
    place->at = i == 0 || entry->offset != 0 ? entry->offset
                                             : behind + (alignment - behind % alignment) % alignment;
    return place->at <= bytes && place->n <= (bytes - place->at) / place->bytes;
}

static void walk(struct text *text, const struct inject_schema *schema, const char *data,
                 size_t bytes, unsigned depth, is_shown *shows)
{
    uint64_t numbers[INJECT_MAX_ENTRIES] = {0};
    size_t behind = 0;
    /* A name for a single nested value would repeat its type: "loss = float64 = 2.5". */
    const bool has_names = shows == is_no_message && (depth == 0 || schema->n_entries != 1);
    for (size_t i = 0; i < schema->n_entries && depth < MAX_DEPTH && !is_full(text); i++) {
        const struct inject_schema_entry *const entry = &schema->entries[i];
        struct place place;
        if (!find_place(schema, i, numbers, behind, bytes, &place))
            return;
        behind = place.at + place.n * place.bytes;
        if (place.n == 1 && entry->type < NVTX_TYPE_END && !place.is_remote)
            numbers[i] = read_number(data + place.at, place.bytes, false);
        if (place.is_remote || !shows(entry))
            continue;
        put(text, "%s", text->has_fields ? ", " : "");
        text->has_fields = true;
        if (has_names && entry->name != NULL && entry->name[0] != '\0')
            put(text, "%s = ", entry->name);
        put_values(text, entry, place.nested, data + place.at, place.n, depth);
    }
}

/* ---- payloads of an event ---- */

static void put_payload(struct text *text, const struct inject_domain *domain,
                        const struct nvtx_payload *payload, is_shown *shows)
{
    if (payload->data == NULL)
        return;
    const struct inject_schema *const schema = inject_schema_find(domain, payload->schema);
    if (schema != NULL) {
        const size_t bytes = payload->bytes != SIZE_MAX ? payload->bytes : schema->bytes;
        if (!schema->is_enum)
            walk(text, schema, payload->data, bytes, 0, shows);
        else if (shows == is_no_message && schema->bytes <= bytes)
            put_nested(text, schema, payload->data, 0);
        return;
    }
    const size_t size = bytes_of(payload->schema, NULL);
    if (size == 0 || shows != is_no_message)
        return;
    const bool is_text = form_of(payload->schema)->kind == CHARACTER;
    const size_t bytes = payload->bytes != SIZE_MAX ? payload->bytes
                         : is_text                  ? strlen(payload->data)
                                                    : size;
    if (bytes < size)
        return;
    const struct inject_schema_entry entry = {.type = payload->schema,
                                              .flags = bytes / size > 1 ? NVTX_FLAG_ARRAY_FIXED : 0};
    put(text, "%s", text->has_fields ? ", " : "");
    text->has_fields = true;
    put_values(text, &entry, NULL, payload->data, bytes / size, 0);
}

static size_t put_all(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                      size_t n, char into[INJECT_TEXT_MAX], is_shown *shows)
{
    struct text text = {into, into + INJECT_TEXT_MAX, false};
    into[0] = '\0';
    for (size_t i = 0; payloads != NULL && i < n && i < INJECT_MAX_ENTRIES; i++)
        put_payload(&text, domain, &payloads[i], shows);
    return (size_t)(text.at - into);
}

size_t inject_payload_text(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                           size_t n, char into[INJECT_TEXT_MAX])
{
    return put_all(domain, payloads, n, into, is_no_message);
}

void inject_payload_message(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                            size_t n, char into[INJECT_TEXT_MAX])
{
    if (put_all(domain, payloads, n, into, is_message) > 0 || payloads == NULL || n == 0)
        return;
    const struct inject_schema *const schema = inject_schema_find(domain, payloads[0].schema);
    if (schema != NULL && schema->name != NULL)
        snprintf(into, INJECT_TEXT_MAX, "%s", schema->name);
}
