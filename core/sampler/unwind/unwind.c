/* One process: its mappings, and a cache for the addresses on its stacks. */
#include <unistd.h>

#include "sampler/unwind/internal.h"

/* Reading the mappings takes a millisecond or two in a process with torch, too much to repeat for every unknown address. */
enum { MAX_COPY = 32 << 20 };
static const uint64_t first_pause_ns = 10000000u, longest_pause_ns = 5000000000u;

/* False if they cannot be read, or on out of memory; then nothing is mapped. */
static bool read_maps(struct marey__unwind *unwind)
{
    struct marey__remote_maps maps = {0};
    unwind->counts.n_maps_reads++;
    unwind->maps_read_ns = marey__remote_now_ns();
    unwind->wants_maps = false;
    const bool is_read = unwind->source.maps(unwind->source.self, &maps.text);
    const uint32_t sum = marey__crc32c(0, maps.text.data, maps.text.len);
    if (is_read && unwind->maps.n > 0 && maps.text.len + 1 == unwind->maps.text.len &&
        sum == unwind->maps_sum) {
        marey__remote_maps_fini(&maps); /* Unchanged: the cache stays valid. */
        return true;
    }
    marey__remote_maps_fini(&unwind->maps);
    unwind->maps = maps;
    unwind->maps_sum = sum;
    /* An address may now belong to another library. */
    memset(unwind->cache, 0, MAREY__UNWIND_CACHE_SIZE * sizeof *unwind->cache);
    return is_read && marey__remote_maps_parse(&unwind->maps);
}

marey_status marey__unwind_create_from(const struct marey__unwind_source *source,
                                       struct marey__unwind_files *files, struct marey__unwind **out)
{
    struct marey__unwind *const unwind = marey__calloc(1, sizeof *unwind);
    if (unwind == NULL) {
        source->close(source->self);
        return marey__no_memory();
    }
    unwind->source = *source;
    unwind->files = files;
    unwind->maps_pause_ns = first_pause_ns;
    unwind->cache = marey__calloc(MAREY__UNWIND_CACHE_SIZE, sizeof *unwind->cache);
    marey_status status = MAREY_OK;
    if (unwind->cache == NULL)
        status = marey__no_memory();
    else if (!read_maps(unwind))
        status =
            marey__fail(MAREY_EUNAVAILABLE,
                        "cannot read /proc/PID/maps: the process has ended, or access is denied");
    if (status == MAREY_OK)
        *out = unwind;
    else
        marey__unwind_destroy(unwind);
    return status;
}

marey_status marey__unwind_create(pid_t pid, struct marey__unwind_files *files,
                                  struct marey__unwind **out)
{
    struct marey__unwind_source source;
    MAREY_TRY(marey__unwind_source_open(pid, &source));
    return marey__unwind_create_from(&source, files, out);
}

static void forget_jit(struct marey__unwind *unwind)
{
    for (size_t i = 0; i < unwind->n_jit; i++)
        marey__free(unwind->jit[i].symbol);
    unwind->n_jit = 0;
    unwind->jit_read_ns = 0;
    unwind->jit_at = 0;
}

void marey__unwind_destroy(struct marey__unwind *unwind)
{
    if (unwind == NULL)
        return;
    forget_jit(unwind);
    MAREY__FREE_ALL(unwind->jit, unwind->cache);
    marey__remote_maps_fini(&unwind->maps);
    unwind->source.close(unwind->source.self);
    marey__free(unwind);
}

void marey__unwind_counts(const struct marey__unwind *unwind, struct marey__unwind_counts *out)
{
    *out = unwind->counts;
}

/* ---- mappings ---- */

struct marey__remote_map *marey__unwind_map_known(struct marey__unwind *unwind, uint64_t address)
{
    size_t at;
    MAREY__BISECT(at, 0, unwind->maps.n, unwind->maps.maps[at].end <= address);
    return at < unwind->maps.n && unwind->maps.maps[at].begin <= address ? &unwind->maps.maps[at]
                                                                         : NULL;
}

struct marey__remote_map *marey__unwind_map_at(struct marey__unwind *unwind, uint64_t address)
{
    struct marey__remote_map *map = marey__unwind_map_known(unwind, address);
    if (map != NULL || marey__remote_now_ns() - unwind->maps_read_ns < unwind->maps_pause_ns)
        return map;
    if (read_maps(unwind))
        map = marey__unwind_map_known(unwind, address);
    unwind->maps_pause_ns =
        map != NULL ? first_pause_ns : MAREY__MIN(2 * unwind->maps_pause_ns, longest_pause_ns);
    return map;
}

size_t marey__unwind_stack_size(struct marey__unwind *unwind, uint64_t sp, size_t cap)
{
    const struct marey__remote_map *map = marey__unwind_map_known(unwind, sp);
    if (map == NULL) { /* The main thread's stack may have grown since the mappings were read. */
        map = marey__unwind_map_known(unwind, sp + cap);
        if (map != NULL && strcmp(map->path, "[stack]") != 0)
            map = NULL;
    }
    if (map != NULL)
        return (size_t)MAREY__MIN(map->end - sp, (uint64_t)cap);
    unwind->wants_maps = true;
    return MAREY__MIN(cap, 4096 - (size_t)(sp % 4096));
}

void marey__unwind_refresh_maps(struct marey__unwind *unwind)
{
    /* Libraries may be replaced at known addresses; an occasional check is enough for that. */
    const uint64_t age_ns = marey__remote_now_ns() - unwind->maps_read_ns;
    if (age_ns > longest_pause_ns || (unwind->wants_maps && age_ns > first_pause_ns))
        (void)read_maps(unwind);
}

/* ---- programs ---- */

static bool is_part(const struct marey__remote_map *map, const struct marey__remote_map *other)
{
    return other->inode == map->inode && strcmp(other->path, map->path) == 0;
}

/* The file at that path may be newer: compares its first page with the mapped one. */
static bool is_same(struct marey__unwind *unwind, const struct marey__remote_map *map,
                    const struct marey__program *program)
{
    uint8_t page[4096];
    const struct marey__remote_map *first = map;
    while (first->offset != 0 && first > unwind->maps.maps && is_part(map, first - 1))
        first--;
    const size_t n = MAREY__MIN(sizeof page, program->len);
    return first->offset == 0 && unwind->source.memory(unwind->source.self, first->begin, page, n)
               ? memcmp(page, program->bytes, n) == 0
               : program->inode == map->inode;
}

/* Assembles a program from its mapped parts: the vDSO, or a deleted file. It has no symbols. */
static struct marey__program *copy_memory(struct marey__unwind *unwind,
                                          const struct marey__remote_map *map)
{
    const struct marey__remote_map *first = map, *last = map;
    while (first > unwind->maps.maps && is_part(map, first - 1) && first->offset > first[-1].offset)
        first--;
    while (last + 1 < unwind->maps.maps + unwind->maps.n && is_part(map, last + 1) &&
           last->offset < last[1].offset)
        last++;
    const uint64_t len = last->offset + (last->end - last->begin);
    uint8_t *const bytes =
        first->offset == 0 && len <= MAX_COPY ? marey__calloc(1, (size_t)len) : NULL;
    if (bytes == NULL)
        return NULL;
    for (const struct marey__remote_map *part = first; part <= last; part++)
        if (part->is_readable && !part->is_writable && part->offset + (part->end - part->begin) <= len)
            (void)unwind->source.memory(unwind->source.self, part->begin, bytes + part->offset,
                                        (size_t)(part->end - part->begin));
    return marey__program_copy(unwind->files, bytes, (size_t)len, map->path);
}

static struct marey__program *look_for(struct marey__unwind *unwind,
                                       const struct marey__remote_map *map)
{
    if (map->path[0] != '/')
        return strcmp(map->path, "[vdso]") == 0 ? copy_memory(unwind, map) : NULL;
    const int fd = unwind->source.open_map(unwind->source.self, map);
    struct marey__program *const program =
        fd >= 0 ? marey__program_open(unwind->files, fd, map->path) : NULL;
    if (fd >= 0)
        close(fd);
    return program != NULL && is_same(unwind, map, program) ? program : copy_memory(unwind, map);
}

struct marey__program *marey__unwind_program_at(struct marey__unwind *unwind, uint64_t pc,
                                                uint64_t *address)
{
    struct marey__remote_map *const map = marey__unwind_map_known(unwind, pc);
    if (map == NULL || !map->is_executable)
        return NULL;
    if (!map->was_looked_for) {
        map->was_looked_for = true;
        map->program = look_for(unwind, map);
    }
    if (map->program == NULL ||
        !marey__program_address(map->program, pc - map->begin + map->offset, address))
        return NULL;
    return map->program;
}

/* ---- source lines ---- */

size_t marey__unwind_lines(struct marey__unwind *unwind, uint64_t pc,
                           struct marey__source_line out[MAREY__SOURCE_LINES])
{
    uint64_t address = 0;
    struct marey__program *const program = marey__unwind_program_at(unwind, pc, &address);
    if (program == NULL)
        return 0;
    if (!program->was_source_opened) { /* its own, else a separate debug file */
        program->was_source_opened = true;
        /* System libraries are of no interest at line level, and decompressing those of libc takes 50 ms. */
        if (strncmp(program->path, "/usr/lib", 8) == 0 || strncmp(program->path, "/lib", 4) == 0)
            return 0;
        program->source = marey__source_open(program->bytes, program->len);
        for (size_t i = 0; i < MAREY__COUNT_OF(program->symbols) && program->source == NULL; i++)
            if (program->symbols[i].bytes != NULL)
                program->source =
                    marey__source_open(program->symbols[i].bytes, program->symbols[i].len);
    }
    return program->source != NULL ? marey__source_lines(program->source, address, out) : 0;
}

/* ---- addresses ---- */

const struct marey__unwind_cache_entry *marey__unwind_lookup(struct marey__unwind *unwind, uint64_t pc)
{
    struct marey__unwind_cache_entry *const place =
        &unwind->cache[pc * 0x9e3779b97f4a7c15u >> 32 & (MAREY__UNWIND_CACHE_SIZE - 1)];
    if (place->pc == pc && pc != 0)
        return place;
    uint64_t address = 0;
    (void)marey__unwind_map_at(unwind, pc);
    struct marey__unwind_cache_entry found = {.pc = pc, .symbol = &marey__native_unknown};
    struct marey__program *const program = marey__unwind_program_at(unwind, pc, &address);
    const struct marey__program_function *function = NULL;
    if (program != NULL) {
        bool has_asked = false;
        found.rule = marey__program_rule(unwind->files, program, address, &has_asked);
        unwind->counts.n_asked += has_asked;
        function = marey__program_name(program, &unwind->source, address);
    } else {
        function = marey__unwind_jit_at(unwind, pc);
    }
    if (function != NULL) {
        found.symbol = function->symbol;
        found.is_outermost = function->is_outermost;
    }
    *place = found;
    return place;
}
