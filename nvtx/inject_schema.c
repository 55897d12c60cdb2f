/*
 * Schemas of the program's payloads. There are usually some tens, so a list is searched, without a lock.
 */
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { MAX_SCHEMAS = 1024, MAX_NAME = 256 };

/* INJECT_LOCK_SCHEMAS guards writes. */
static struct {
    struct inject_schema *first; /* release; loaded with acquire */
    size_t n;
    uint64_t n_given;
} schemas;

static char *copy_name(const char *name)
{
    return name != NULL ? strndup(name, MAX_NAME) : NULL;
}

static void destroy(struct inject_schema *schema)
{
    for (size_t i = 0; schema->entries != NULL && i < schema->n_entries; i++)
        free(schema->entries[i].name);
    free(schema->entries);
    free(schema->name);
    free(schema);
}

/* Allocates a schema with `n` empty entries, at most INJECT_MAX_ENTRIES; NULL on out of memory. */
static struct inject_schema *create(const struct inject_domain *domain, size_t n)
{
    struct inject_schema *const schema = calloc(1, sizeof *schema);
    if (schema == NULL)
        return NULL;
    schema->domain = domain;
    schema->n_entries = n < INJECT_MAX_ENTRIES ? n : INJECT_MAX_ENTRIES;
    schema->entries = calloc(schema->n_entries + 1, sizeof *schema->entries);
    if (schema->entries != NULL)
        return schema;
    destroy(schema);
    return NULL;
}

const struct inject_schema *inject_schema_find(const struct inject_domain *domain, uint64_t id)
{
    const struct inject_schema *schema = __atomic_load_n(&schemas.first, __ATOMIC_ACQUIRE);
    while (schema != NULL && (schema->domain != domain || schema->id != id))
        schema = schema->next;
    return schema;
}

/* Returns its number: the program's, the second tool's, or a new one. Takes ownership of `schema`, which may be NULL. */
static uint64_t add(struct inject_schema *schema, uint64_t id)
{
    inject_lock(INJECT_LOCK_SCHEMAS);
    if (id == 0)
        id = NVTX_SCHEMA_DYNAMIC + schemas.n_given++;
    const bool is_wanted =
        schema != NULL && schemas.n < MAX_SCHEMAS && inject_schema_find(schema->domain, id) == NULL;
    if (is_wanted) {
        schema->id = id;
        schema->next = schemas.first;
        schemas.n++;
        __atomic_store_n(&schemas.first, schema, __ATOMIC_RELEASE);
    }
    inject_unlock(INJECT_LOCK_SCHEMAS);
    if (!is_wanted && schema != NULL)
        destroy(schema);
    return id;
}

uint64_t inject_schema_add(const struct inject_domain *domain, const struct nvtx_schema *given,
                           uint64_t id)
{
    if (given == NULL || (given->fields & NVTX_SCHEMA_HAS_ENTRIES) != NVTX_SCHEMA_HAS_ENTRIES ||
        given->entries == NULL)
        return id;
    if (id == 0 && (given->fields & NVTX_SCHEMA_HAS_ID) != 0)
        id = given->id;
    struct inject_schema *const schema = create(domain, given->n_entries);
    if (schema != NULL) {
        schema->name = given->fields & NVTX_SCHEMA_HAS_NAME ? copy_name(given->name) : NULL;
        schema->bytes = given->fields & NVTX_SCHEMA_HAS_BYTES ? given->bytes : 0;
        schema->alignment = given->fields & NVTX_SCHEMA_HAS_ALIGNMENT ? given->alignment : 0;
    }
    for (size_t i = 0; schema != NULL && i < schema->n_entries; i++) {
        const struct nvtx_schema_entry *const from = &given->entries[i];
        schema->entries[i] = (struct inject_schema_entry){from->flags, from->type, from->detail,
                                                          from->offset, copy_name(from->name)};
    }
    return add(schema, id);
}

uint64_t inject_enum_add(const struct inject_domain *domain, const struct nvtx_enum *given,
                         uint64_t id)
{
    if (given == NULL || (given->fields & NVTX_ENUM_HAS_ENTRIES) != NVTX_ENUM_HAS_ENTRIES ||
        given->entries == NULL)
        return id;
    if (id == 0 && (given->fields & NVTX_ENUM_HAS_ID) != 0)
        id = given->id;
    struct inject_schema *const schema = create(domain, given->n_entries);
    if (schema != NULL) {
        schema->is_enum = true;
        schema->bytes = (given->fields & NVTX_ENUM_HAS_BYTES) != 0 && given->bytes - 1 < 8
                            ? given->bytes
                            : sizeof(int);
    }
    for (size_t i = 0; schema != NULL && i < schema->n_entries; i++)
        schema->entries[i] = (struct inject_schema_entry){.detail = given->entries[i].value,
                                                          .name = copy_name(given->entries[i].name)};
    return add(schema, id);
}
