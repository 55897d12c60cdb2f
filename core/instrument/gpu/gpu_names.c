/* Names of GPU activity as sites: kernels demangled, copies as Kineto calls them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "instrument/gpu/internal.h"

/* ---- sites by mangled name ---- */

struct entry {
    const char *key; /* ours */
    uint32_t len;
    marey_id site;
};
struct map {
    struct entry *entries;
    size_t n, cap;
    struct marey__index by_key;
};

/* The key's entry, with its site 0 when it is new; NULL on out of memory. Valid until the next call. */
static struct entry *entry_of(struct map *map, const char *key, uint32_t len)
{
    const uint32_t hash = marey__crc32c(0, key, len);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&map->by_key, hash, &at)) != 0;) {
        struct entry *entry = &map->entries[number - 1];
        if (entry->len == len && memcmp(entry->key, key, len) == 0)
            return entry;
    }
    if (!marey__grow(&map->entries, &map->cap, map->n + 1, sizeof *map->entries))
        return NULL;
    const char *copy = marey__strndup(key, len);
    if (copy == NULL || !marey__index_put(&map->by_key, hash, (uint32_t)map->n + 1)) {
        marey__free((char *)copy);
        return NULL;
    }
    map->entries[map->n] = (struct entry){.key = copy, .len = len};
    return &map->entries[map->n++];
}

static marey_id site_of(const char *name, const char *category)
{
    return marey__intern(&(struct marey__site){
        .name = name, .name_len = (uint32_t)strlen(name), .category = category});
}

/* ---- kernels ---- */

typedef char *demangler(const char *mangled, char *out, size_t *len, int *status);

/* The C++ library's, which a program with kernels has loaded; NULL: names stay mangled. */
static demangler *find_demangler(void)
{
    static demangler *found;
    static bool is_looked_for;
    if (!is_looked_for) {
        *(void **)&found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
        void *library = found == NULL ? dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library != NULL)
            *(void **)&found = dlsym(library, "__cxa_demangle");
        is_looked_for = true;
    }
    return found;
}

static marey_id demangled_site(const char *mangled)
{
    int status = -1;
    demangler *demangle = strncmp(mangled, "_Z", 2) == 0 ? find_demangler() : NULL;
    char *plain = demangle != NULL ? demangle(mangled, NULL, NULL, &status) : NULL;
    const marey_id site = site_of(plain != NULL && status == 0 ? plain : mangled, "kernel");
    free(plain); /* the C++ library's */
    return site;
}

marey_id marey__gpu_kernel_site(const char *mangled)
{
    /* CUPTI gives the same pointer for the same kernel, until a module is unloaded. */
    enum { RECENT = 64 };
    static struct {
        const char *pointer, *name;
        marey_id site;
    } recent[RECENT];
    static struct map kernels;
    if (mangled == NULL)
        return site_of("(unnamed kernel)", "kernel");
    const size_t slot = ((uintptr_t)mangled >> 4) % RECENT;
    if (recent[slot].pointer == mangled && strcmp(recent[slot].name, mangled) == 0)
        return recent[slot].site;
    struct entry *entry = entry_of(&kernels, mangled, (uint32_t)strnlen(mangled, MAREY__NAME_MAX));
    if (entry == NULL)
        return MAREY__SITE_OTHER;
    if (entry->site == 0)
        entry->site = demangled_site(entry->key);
    recent[slot].pointer = mangled;
    recent[slot].name = entry->key;
    recent[slot].site = entry->site;
    return entry->site;
}

/* ---- copies and the rest ---- */

static const char *memory_name(uint32_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return names[kind < MAREY__COUNT_OF(names) ? kind : 0];
}

marey_id marey__gpu_copy_site(uint32_t kind, uint32_t from, uint32_t to)
{
    static const char *const kinds[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    char name[96];
    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
             kinds[kind < MAREY__COUNT_OF(kinds) ? kind : 0], memory_name(from), memory_name(to));
    return site_of(name, "gpu_memcpy");
}

marey_id marey__gpu_set_site(uint32_t memory)
{
    char name[64];
    snprintf(name, sizeof name, "Memset (%s)", memory_name(memory));
    return site_of(name, "gpu_memset");
}

marey_id marey__gpu_sync_site(uint32_t type)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    return site_of(names[type < MAREY__COUNT_OF(names) ? type : 0], "cuda_sync");
}

marey_id marey__gpu_memory_site(uint32_t operation, uint32_t memory)
{
    enum { DEVICE_STATIC = 6, MANAGED_STATIC = 7 }; /* variables of modules, hundreds of them */
    char name[64];
    if (memory == DEVICE_STATIC || memory == MANAGED_STATIC)
        return 0;
    snprintf(name, sizeof name, "%s %s memory", operation == 1 ? "take" : "give back",
             memory_name(memory));
    return site_of(name, "cuda_memory");
}
