/*
 * Schemas: what the program says of the bytes that it gives as payloads. Some tens are usual; they are found by walking a
 * list, without a lock.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { MAX_SCHEMAS = 1024, MAX_NAME = 256 };

static struct {
    pthread_mutex_t lock;
    struct inject_schema *first; /* release; loaded with acquire */
    size_t n;
    uint64_t n_given;
} schemas = {.lock = PTHREAD_MUTEX_INITIALIZER};

void inject_schema_lock(bool lock)
{
    if (lock)
        pthread_mutex_lock(&schemas.lock);
    else
        pthread_mutex_unlock(&schemas.lock);
}

static char *copy_name(const char *name)
{
    return name != NULL ? strndup(name, MAX_NAME) : NULL;
}

static void destroy(struct inject_schema *schema)
{
    for (size_t i = 0; i < schema->n_entries; i++)
        free(schema->entries[i].name);
    for (size_t i = 0; i < schema->n_values; i++)
        free(schema->values[i].name);
    free(schema->entries);
    free(schema->values);
    free(schema->name);
    free(schema);
}

const struct inject_schema *inject_schema_find(const struct inject_domain *domain, uint64_t id)
{
    const struct inject_schema *schema = __atomic_load_n(&schemas.first, __ATOMIC_ACQUIRE);
    while (schema != NULL && (schema->domain != domain || schema->id != id))
        schema = schema->next;
    return schema;
}

/* Its number: the program's own, the second tool's, or one of ours. Takes `schema`, which may be NULL. */
static uint64_t add(struct inject_schema *schema, uint64_t id)
{
    pthread_mutex_lock(&schemas.lock);
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
    pthread_mutex_unlock(&schemas.lock);
    if (!is_wanted && schema != NULL)
        destroy(schema);
    return id;
}

static bool copy_entries(struct inject_schema *schema, const struct nvtx_schema *told)
{
    const size_t n = told->n_entries < INJECT_MAX_ENTRIES ? told->n_entries : INJECT_MAX_ENTRIES;
    schema->entries = calloc(n + 1, sizeof *schema->entries);
    if (schema->entries == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct nvtx_schema_entry *const from = &told->entries[i];
        schema->entries[i] = (struct inject_schema_entry){from->flags, from->type, from->detail,
                                                          from->offset, copy_name(from->name)};
    }
    schema->n_entries = n;
    return true;
}

uint64_t inject_schema_add(const struct inject_domain *domain, const struct nvtx_schema *told,
                           uint64_t id)
{
    if (told == NULL || (told->fields & NVTX_SCHEMA_HAS_ENTRIES) != NVTX_SCHEMA_HAS_ENTRIES ||
        told->entries == NULL)
        return id;
    struct inject_schema *schema = calloc(1, sizeof *schema);
    if (id == 0 && (told->fields & NVTX_SCHEMA_HAS_ID) != 0)
        id = told->id;
    if (schema != NULL) {
        schema->domain = domain;
        schema->name = told->fields & NVTX_SCHEMA_HAS_NAME ? copy_name(told->name) : NULL;
        schema->bytes = told->fields & NVTX_SCHEMA_HAS_BYTES ? told->bytes : 0;
        schema->alignment = told->fields & NVTX_SCHEMA_HAS_ALIGNMENT ? told->alignment : 0;
        if (!copy_entries(schema, told)) {
            destroy(schema);
            schema = NULL;
        }
    }
    return add(schema, id);
}

uint64_t inject_enum_add(const struct inject_domain *domain, const struct nvtx_enum *told, uint64_t id)
{
    if (told == NULL || (told->fields & NVTX_ENUM_HAS_ENTRIES) != NVTX_ENUM_HAS_ENTRIES ||
        told->entries == NULL)
        return id;
    struct inject_schema *const schema = calloc(1, sizeof *schema);
    const size_t n = told->n_entries < INJECT_MAX_ENTRIES ? told->n_entries : INJECT_MAX_ENTRIES;
    if (id == 0 && (told->fields & NVTX_ENUM_HAS_ID) != 0)
        id = told->id;
    if (schema != NULL && (schema->values = calloc(n + 1, sizeof *schema->values)) != NULL) {
        schema->domain = domain;
        schema->bytes = (told->fields & NVTX_ENUM_HAS_BYTES) != 0 && told->bytes - 1 < 8
                            ? told->bytes
                            : sizeof(int);
        for (size_t i = 0; i < n; i++)
            schema->values[i] =
                (struct inject_enum_value){told->entries[i].value, copy_name(told->entries[i].name)};
        schema->n_values = n;
    }
    return add(schema, id);
}
