/*
 * Any bytes as an NVTX payload, by any schemas. The first bytes give the schemas, the rest is the
 * payload, in a separate block, so that a sanitizer detects reads past its end.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inject.h"

enum { N_SCHEMAS = 3, N_ENTRIES = 6, FIRST_ID = 1000, HEAD_BYTES = 4, ENTRY_BYTES = 6 };

static struct inject_schema schemas[N_SCHEMAS];

/* Replaces inject_schema.c and inject_names.c. */
const struct inject_schema *inject_schema_find(const struct inject_domain *domain, uint64_t id)
{
    (void)domain;
    return id >= FIRST_ID && id < FIRST_ID + N_SCHEMAS ? &schemas[id - FIRST_ID] : NULL;
}

const char *inject_name_text(const void *handle)
{
    return handle != NULL ? "handle" : "";
}

/* A type, or one of the schemas. */
static uint64_t type_of(uint8_t byte)
{
    return byte < 128 ? byte : FIRST_ID + (uint64_t)(byte % N_SCHEMAS);
}

static void make_schema(struct inject_schema *schema, struct inject_schema_entry *entries,
                        const uint8_t *at)
{
    *schema = (struct inject_schema){.name = (char *)"schema",
                                     .entries = entries,
                                     .bytes = at[0] | (size_t)(at[1] & 1) << 8,
                                     .alignment = at[2] & 15};
    if (at[3] & 1) {
        entries[0] = (struct inject_schema_entry){.detail = at[4], .name = (char *)"value"};
        schema->bytes = schema->bytes % 8 + 1;
        schema->is_enum = true;
        schema->n_entries = 1;
        return;
    }
    schema->n_entries = (at[3] >> 1) % (N_ENTRIES + 1);
    for (size_t i = 0; i < schema->n_entries; i++) {
        const uint8_t *const e = at + HEAD_BYTES + i * ENTRY_BYTES;
        entries[i] = (struct inject_schema_entry){.flags = (uint64_t)e[0] | (uint64_t)e[1] << 8,
                                                  .type = type_of(e[2]),
                                                  .detail = e[3] == 255 ? UINT64_MAX : e[3],
                                                  .offset = e[4],
                                                  .name = e[5] & 1 ? (char *)"entry" : NULL};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum {
        SCHEMA_BYTES = HEAD_BYTES + N_ENTRIES * ENTRY_BYTES,
        FIRST = N_SCHEMAS * SCHEMA_BYTES + 1
    };
    struct inject_schema_entry entries[N_SCHEMAS][N_ENTRIES];
    char text[INJECT_TEXT_MAX];
    if (size < FIRST)
        return 0;
    for (size_t i = 0; i < N_SCHEMAS; i++)
        make_schema(&schemas[i], entries[i], data + i * SCHEMA_BYTES);
    char *const own = malloc(size - FIRST);
    if (own == NULL)
        return 0;
    memcpy(own, data + FIRST, size - FIRST);
    const struct nvtx_payload payloads[] = {
        {.schema = FIRST_ID, .bytes = size - FIRST, .data = own},
        {.schema = type_of(data[FIRST - 1]), .bytes = size - FIRST, .data = own}};
    const size_t len = inject_payload_text(NULL, payloads, 2, text);
    if (len >= sizeof text || strnlen(text, sizeof text) > len)
        abort();
    inject_payload_message(NULL, payloads, 2, text);
    if (strnlen(text, sizeof text) == sizeof text)
        abort();
    free(own);
    return 0;
}
