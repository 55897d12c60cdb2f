/*
 * Converts the queue to records, on the flush thread. A stack is a list of sites; a compiled frame a file and an
 * offset.
 */
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "instrument/memory/internal.h"

/* Numbers by a key. */
struct numbers {
    struct {
        uint64_t key, value;
    } * items;
    size_t n, cap;
    struct marey__key_map by_key;
};

static struct {
    struct numbers stacks; /* of the recording: stack number by hash of the frames */
    struct numbers frames; /* site by return address */
    marey_id *places;      /* by number of memory_places.c */
    size_t places_cap;
} writer;

enum { MAX_STACK = MAREY__MEMORY_FRAMES + MAREY__MEMORY_PLACES };

/* The value of `key`, 0 if it is new; NULL on out of memory. */
static uint64_t *value_of(struct numbers *numbers, uint64_t key)
{
    const uint32_t number =
        MAREY__MAP_NUMBER(&numbers->by_key, numbers->items, numbers->n, numbers->cap, key);
    return number != 0 ? &numbers->items[number - 1].value : NULL;
}

void marey__memory_write_reset(void)
{
    marey__free(writer.stacks.items);
    marey__key_map_fini(&writer.stacks.by_key);
    writer.stacks = (struct numbers){0};
}

/* The child's copy may be half-changed, and held little. */
void marey__memory_write_forget(void)
{
    memset(&writer, 0, sizeof writer);
}

/* ---- frames ---- */

struct module {
    uintptr_t address; /* to be found */
    uintptr_t base;
    const char *path; /* "": the main program; NULL: not found */
};

static int look_into(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct module *const module = ctx;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD ||
            module->address - info->dlpi_addr - part->p_vaddr >= part->p_memsz)
            continue;
        module->base = info->dlpi_addr;
        module->path = info->dlpi_name;
        return 1;
    }
    return 0;
}

static bool find_module(uint64_t address, struct module *out)
{
    *out = (struct module){.address = (uintptr_t)address};
    return dl_iterate_phdr(look_into, out) != 0;
}

/* A site for a return address: the call is the byte before it. */
static marey_id native_site(uint64_t address)
{
    char own[PATH_MAX] = "", name[256];
    struct module module;
    if (!find_module(address - 1, &module))
        return marey_site_intern_whole(
            &(struct marey_site){.name = "(unknown)", .category = "frame", .domain = "native"}, 9);
    if (module.path[0] == '\0') {
        const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
        own[n > 0 ? n : 0] = '\0';
        module.path = own;
    }
    snprintf(name, sizeof name, "%.200s+0x%llx", marey__base_name(module.path),
             (unsigned long long)(address - 1 - module.base));
    return marey_site_intern_whole(
        &(struct marey_site){
            .name = name, .category = "frame", .domain = "native", .file = module.path},
        strlen(name));
}

static marey_id site_of_frame(uint64_t address)
{
    uint64_t *const known = value_of(&writer.frames, address);
    if (known == NULL)
        return 0;
    if (*known == 0)
        *known = native_site(address);
    return (marey_id)*known;
}

static marey_id site_of_place(uint32_t number)
{
    const size_t before = writer.places_cap;
    if (!marey__grow(&writer.places, &writer.places_cap, (size_t)number + 1, sizeof *writer.places))
        return 0;
    memset(writer.places + before, 0, (writer.places_cap - before) * sizeof *writer.places);
    if (writer.places[number] == 0) {
        const struct marey__memory_text *const text = marey__place_text(number);
        const struct marey_site site = {.name = text->name,
                                        .category = "frame",
                                        .domain = "python",
                                        .line = text->line,
                                        .file = text->file};
        writer.places[number] = marey_site_intern_whole(&site, strlen(text->name));
    }
    return writer.places[number];
}

/* The number of compiled frames before those of the interpreter, if the stack has one. */
static size_t n_outside(const struct marey__memory_entry *entry)
{
    const struct marey_memory_interpreter *const it = marey__memory_interpreter();
    struct module python, ours, module;
    if (entry->n_places == 0 || it == NULL || !find_module((uint64_t)(uintptr_t)it->within, &python) ||
        !find_module((uint64_t)(uintptr_t)it->places, &ours))
        return entry->n_frames;
    for (size_t i = 0; i < entry->n_frames; i++)
        if (find_module(entry->frames[i] - 1, &module) &&
            (module.base == python.base || module.base == ours.base))
            return i;
    return entry->n_frames;
}

/* ---- records ---- */

static uint64_t hash_sites(const marey_id *sites, size_t n)
{
    uint64_t hash = n + 1;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ sites[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 29;
    return hash;
}

/* Two sites per word, innermost first. */
static void put_stack(uint64_t number, const marey_id *sites, size_t n)
{
    uint64_t words[1 + (MAX_STACK + 1) / 2] = {number};
    for (size_t i = 0; i < n; i++)
        words[1 + i / 2] |= (uint64_t)sites[i] << (i % 2 * 32);
    marey__lane_put_record(MAREY_RECORD_MEMORY_STACK, words, 1 + (n + 1) / 2);
}

/* The number of the entry's stack, written first if it is new; 0 if it has none. */
static uint64_t stack_of(const struct marey__memory_entry *entry)
{
    marey_id sites[MAX_STACK];
    size_t n = 0;
    for (size_t i = 0, end = n_outside(entry); i < end; i++)
        sites[n++] = site_of_frame(entry->frames[i]);
    for (size_t i = 0; i < entry->n_places; i++)
        sites[n++] = site_of_place(entry->places[i]);
    uint64_t *const known = n > 0 ? value_of(&writer.stacks, hash_sites(sites, n)) : NULL;
    if (known == NULL)
        return 0;
    if (*known == 0) {
        *known = writer.stacks.n;
        put_stack(*known, sites, n);
    }
    return *known;
}

static void put_take(const struct marey__memory_entry *entry)
{
    const uint64_t stack = stack_of(entry);
    const uint64_t age = marey__clock_ticks() - entry->tick;
    const uint64_t words[] = {age,
                              entry->number,
                              entry->bytes,
                              entry->interval,
                              (stack & UINT32_MAX) | (uint64_t)entry->source << 32,
                              (uint64_t)entry->tid};
    marey__lane_put_record(MAREY_RECORD_MEMORY_TAKE, words, MAREY__COUNT_OF(words));
}

void marey__memory_write(void)
{
    const struct marey__memory_entry *entry;
    while ((entry = marey__memory_queue_next()) != NULL) {
        if (entry->kind == MAREY__MEMORY_TAKE) {
            put_take(entry);
        } else {
            const uint64_t words[] = {marey__clock_ticks() - entry->tick, entry->number};
            marey__lane_put_record(MAREY_RECORD_MEMORY_GIVE, words, MAREY__COUNT_OF(words));
        }
        marey__memory_queue_release();
    }
}
