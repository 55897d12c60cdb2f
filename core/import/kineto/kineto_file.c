/*
 * Reads a trace from start to end: an object with an array "traceEvents", or only that array. The keys beside the
 * events are read by tokens, in any order; events are parsed in place, in the window.
 *
 * Only a bare array may lack its end: programs that die leave it so, and the format allows it. Anything else that is
 * truncated or invalid ends the reading.
 */
#include "codec/json_chars.h"
#include "import/kineto/internal.h"

enum { MAX_DEVICES = 256 };

/* ---- events ---- */

static bool refill(struct marey__kineto_file *file)
{
    return file->wants_more(file->ctx) && marey__json_refill(&file->json);
}

/* Skip an entry of the array that is not an object. */
static bool skip_entry(struct marey__kineto_file *file)
{
    file->n_no_events++;
    const enum marey__json_token token = marey__json_next(&file->json);
    return marey__json_skip_from(&file->json, token) && token != MAREY__JSON_END;
}

/* Read the event at the window's start. Returns false to stop. */
static bool read_event(struct marey__kineto_file *file)
{
    struct marey__json *json = &file->json;
    const char *next, *mistake;
    switch (marey__chrome_parse(&file->event, json->at, json->end, &next, &mistake)) {
    case MAREY__CHROME_WHOLE:
        json->at = next;
        return file->put(file->ctx);
    case MAREY__CHROME_CUT:
        if (refill(file))
            return true;
        json->is_cut = json->mistake == NULL;
        marey__json_fail(json, "it ends in the middle of an event");
        return false;
    default:
        json->at = next;
        marey__json_fail(json, mistake);
        return false;
    }
}

/* From the bracket that opens the array up to the one that closes it. */
static void read_events(struct marey__kineto_file *file)
{
    struct marey__json *json = &file->json;
    file->header->has_list = true;
    for (bool goes_on = true; goes_on;) {
        json->at = json_skip_blanks(json->at);
        if (MAREY_UNLIKELY(json->at == json->end))
            goes_on = refill(file);
        else if (MAREY_LIKELY(*json->at == '{'))
            goes_on = read_event(file);
        else if (*json->at == ']')
            return;
        else
            goes_on = skip_entry(file);
    }
}

/* ---- the keys beside the events ---- */

static void read_text(struct marey__json *json, struct marey__arena *texts, const char **field)
{
    const enum marey__json_token token = marey__json_next(json);
    if (token == MAREY__JSON_STRING) {
        *field = marey__arena_text(texts, json->text, json->text_len);
        if (*field == NULL)
            marey__json_fail_memory(json);
    }
    marey__json_skip_from(json, token);
}

bool marey__kineto_read_field(struct marey__json *json, const struct marey__kineto_field *fields,
                              struct marey__arena *texts, void *into)
{
    while (fields->key != NULL && !marey__json_is(json, fields->key))
        fields++;
    char *const at = (char *)into + fields->offset;
    if (fields->key == NULL)
        return false;
    if (fields->type == MAREY__KINETO_INTEGER)
        *(int64_t *)(void *)at = marey__json_read_integer(json, -1);
    else if (fields->type == MAREY__KINETO_FLAG)
        *(bool *)(void *)at = marey__json_read_flag(json);
    else
        read_text(json, texts, (const char **)(void *)at);
    return true;
}

/* After the brace of an object: read these fields, skip others. */
static void read_fields(struct marey__json *json, const struct marey__kineto_field *fields,
                        struct marey__arena *texts, void *into)
{
    while (marey__json_next_key(json))
        if (!marey__kineto_read_field(json, fields, texts, into))
            marey__json_skip(json);
}

#define HEADER(key, type, field)                                                                   \
    {                                                                                              \
        key, MAREY__KINETO_##type, offsetof(struct marey__kineto_header, field)                    \
    }
#define DEVICE(key, type, field)                                                                   \
    {                                                                                              \
        key, MAREY__KINETO_##type, offsetof(struct marey__kineto_device, field)                    \
    }
static const struct marey__kineto_field distributed_fields[] = {
    HEADER("rank", INTEGER, rank),
    HEADER("world_size", INTEGER, world_size),
    HEADER("backend", TEXT, backend),
    {0},
};
static const struct marey__kineto_field device_fields[] = {
    DEVICE("id", INTEGER, id),
    DEVICE("name", TEXT, name),
    {0},
};
static const struct marey__kineto_field viztracer_fields[] = {
    HEADER("overflow", FLAG, has_overflown),
    {0},
};
static const struct marey__kineto_field header_fields[] = {
    HEADER("host_name", TEXT, host),        HEADER("record_shapes", FLAG, has_shapes),
    HEADER("with_stack", FLAG, has_stacks), HEADER("profile_memory", FLAG, has_memory),
    HEADER("with_flops", FLAG, has_flops),  {0},
};

static void read_devices(struct marey__json *json, struct marey__kineto_header *header)
{
    enum marey__json_token token;
    if (!marey__json_enter(json, MAREY__JSON_ARRAY))
        return;
    while (marey__json_next_item(json, &token)) {
        struct marey__kineto_device device = {.id = -1};
        if (token == MAREY__JSON_OBJECT)
            read_fields(json, device_fields, &header->texts, &device);
        else
            marey__json_skip_from(json, token);
        if (header->n_devices < MAX_DEVICES && token == MAREY__JSON_OBJECT)
            (void)MAREY__PUSH(header->devices, header->n_devices, header->devices_cap, device);
    }
}

static void read_key(struct marey__kineto_file *file)
{
    struct marey__json *json = &file->json;
    struct marey__kineto_header *header = file->header;
    static const char *const of_kineto[] = {"schemaVersion", "record_shapes", "traceName",
                                            "distributedInfo", "deviceProperties"};
    for (size_t i = 0; i < MAREY__COUNT_OF(of_kineto); i++)
        header->is_kineto |= marey__json_is(json, of_kineto[i]);
    if (marey__json_is(json, "traceEvents")) {
        if (marey__json_enter(json, MAREY__JSON_ARRAY))
            read_events(file);
    } else if (marey__json_is(json, "baseTimeNanoseconds")) {
        const int64_t base_ns = marey__json_read_integer(json, 0);
        header->base_ns = base_ns > 0 ? base_ns : 0;
    } else if (marey__json_is(json, "distributedInfo")) {
        if (marey__json_enter(json, MAREY__JSON_OBJECT))
            read_fields(json, distributed_fields, &header->texts, header);
    } else if (marey__json_is(json, "deviceProperties")) {
        read_devices(json, header);
    } else if (marey__json_is(json, "viztracer_metadata")) {
        if (marey__json_enter(json, MAREY__JSON_OBJECT))
            read_fields(json, viztracer_fields, &header->texts, header);
    } else if (!marey__kineto_read_field(json, header_fields, &header->texts, header) &&
               (file->read_key == NULL || !file->read_key(file->ctx))) {
        marey__json_skip(json);
    }
}

marey_status marey__kineto_file_read(struct marey__kineto_file *file, struct marey__byte_source *bytes)
{
    struct marey__json *json = &file->json;
    MAREY_TRY(marey__json_init(json, bytes));
    file->header->rank = file->header->world_size = -1;
    const enum marey__json_token first = marey__json_next(json);
    enum marey__json_token token;
    if (first == MAREY__JSON_ARRAY)
        read_events(file);
    while (first == MAREY__JSON_OBJECT &&
           ((token = marey__json_next(json)) == MAREY__JSON_KEY || token == MAREY__JSON_ARRAY_END))
        if (token == MAREY__JSON_KEY)
            read_key(file);
    return json->status == MAREY_EIO || json->status == MAREY_ENOMEM ? json->status : MAREY_OK;
}

void marey__kineto_file_damage(const struct marey__kineto_file *file, struct marey__buf *out)
{
    const struct marey__json *json = &file->json;
    const char *damage = marey__bytes_damage(json->bytes);
    if (damage != NULL)
        marey__buf_puts(out, damage);
    else if (json->mistake != NULL)
        marey__buf_printf(out, "%s is %s: %s, at byte %" PRIu64, file->name,
                          json->is_cut ? "cut off" : "damaged", json->mistake,
                          marey__json_offset(json));
}

void marey__kineto_header_fini(struct marey__kineto_header *header)
{
    marey__free(header->devices);
    marey__arena_fini(&header->texts);
}
