/*
 * Finds Python's state without symbols, by scanning the data of a mapped file and the .bss after it.
 *
 * From 3.13 on the state begins with a cookie. Before, it has two words that point to the newest and to the main
 * interpreter, and an interpreter has a list of thread states, each of which points back to it: nothing else has that
 * structure. If neither a symbol nor a name has the version, it comes from the text of sys.version.
 */
#include "sampler/remote/internal.h"

enum {
    BLOCK = 1 << 16,
    SCANNED_MAX = 64 << 20,
    TRIED_MAX = 20000,
    INTERPRETERS_MAX = 1 << 20,
    VERSION_TEXT = 32
};

/* Called for each block with its address and bytes, which overlap the start of the next block. */
typedef bool looker(void *ctx, uint64_t at, const uint8_t *bytes, size_t n);

static bool scan_range(struct marey__remote *remote, uint64_t begin, uint64_t end, looker *look,
                       void *ctx)
{
    uint8_t *const bytes = marey__alloc(BLOCK + VERSION_TEXT);
    bool is_found = false;
    end = MAREY__MIN(end, begin + SCANNED_MAX);
    for (uint64_t at = begin; bytes != NULL && at < end && !is_found; at += BLOCK) {
        const size_t n = (size_t)MAREY__MIN((uint64_t)BLOCK + VERSION_TEXT, end - at);
        if (marey__remote_read(remote, at, bytes, n))
            is_found = look(ctx, at, bytes, n);
    }
    marey__free(bytes);
    return is_found;
}

/* Scans the writable part of a file, and the anonymous mapping right after it. */
static bool scan_file(struct marey__remote *remote, const struct marey__remote_maps *maps,
                      const char *path, looker *look, void *ctx)
{
    for (size_t i = 0; i < maps->n; i++) {
        const struct marey__remote_map *const map = &maps->maps[i];
        const bool is_own = strcmp(map->path, path) == 0;
        const bool is_behind = i > 0 && map->path[0] == '\0' && maps->maps[i - 1].end == map->begin &&
                               strcmp(maps->maps[i - 1].path, path) == 0;
        if ((is_own || is_behind) && map->is_readable && map->is_writable &&
            scan_range(remote, map->begin, map->end, look, ctx))
            return true;
    }
    return false;
}

/* ---- the version ---- */

/* The length of the decimal number at the start of `text`. */
static size_t digits(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* "3.11.7 (main, ...", "3.15.0rc1 (", "3.14.7 free-threading build (": the text of a build. Returns the version, or 0. */
static uint32_t version_of_text(const char *text, size_t len)
{
    static const char *const next[] = {" (", " free-threading", " experimental"};
    uint64_t minor, micro;
    if (len < 4 || text[0] != '3' || text[1] != '.' ||
        !marey__parse_number(text + 2, len - 2, &minor))
        return 0;
    size_t i = 2 + digits(text + 2, len - 2);
    if (minor > 99 || i + 2 > len || text[i] != '.' ||
        !marey__parse_number(text + i + 1, len - i - 1, &micro))
        return 0;
    i += 1 + digits(text + i + 1, len - i - 1);
    for (const size_t suffix = i + 4; i < len && i < suffix && text[i] != ' ';) /* "+", "rc1" */
        i++;
    for (size_t n = 0; micro <= 99 && n < MAREY__COUNT_OF(next); n++)
        if (len - i >= strlen(next[n]) && memcmp(text + i, next[n], strlen(next[n])) == 0)
            return 0x03000000u | (uint32_t)minor << 16 | (uint32_t)micro << 8;
    return 0;
}

static bool look_for_version(void *ctx, uint64_t at, const uint8_t *bytes, size_t n)
{
    uint32_t *const version = ctx;
    (void)at;
    for (const uint8_t *c = bytes, *end = bytes + n;
         (c = memchr(c, '3', (size_t)(end - c))) != NULL; c++) {
        *version = version_of_text((const char *)c, (size_t)MAREY__MIN(end - c, VERSION_TEXT));
        if (*version != 0)
            return true;
    }
    return false;
}

uint32_t marey__remote_scan_version(struct marey__remote *remote,
                                    const struct marey__remote_maps *maps, const char *path)
{
    uint32_t version = 0;
    scan_file(remote, maps, path, look_for_version, &version);
    return version;
}

/* ---- the state ---- */

struct search {
    struct marey__remote *remote;
    const struct marey__remote_maps *maps;
    uint32_t version; /* 0: unknown */
    struct marey__remote_layout layout;
    bool is_strict; /* expect one interpreter, the main one */
    size_t n_tried;
    struct marey__remote_found *out;
};

static bool is_pointer(const struct marey__remote_maps *maps, uint64_t value)
{
    size_t at;
    if (value == 0 || value % 8 != 0)
        return false;
    MAREY__BISECT(at, 0, maps->n, maps->maps[at].begin <= value);
    return at > 0 && value < maps->maps[at - 1].end && maps->maps[at - 1].is_writable;
}

static bool look_for_cookie(void *ctx, uint64_t at, const uint8_t *bytes, size_t n)
{
    const struct search *const search = ctx;
    struct marey__remote_layout layout;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        if (memcmp(bytes + i, "xdebugpy", 8) != 0)
            continue;
        search->remote->found.runtime = at + i;
        if (marey__remote_layout_described(search->remote, &layout) == MAREY_OK) {
            *search->out = (struct marey__remote_found){.runtime = at + i, .version = layout.version};
            return true;
        }
    }
    return false;
}

/* Whether an interpreter of this version is at `interpreter`: with a thread that points back, and a modules dict. */
static bool is_interpreter(struct search *search, uint64_t interpreter)
{
    struct marey__remote *const remote = search->remote;
    const struct marey__remote_layout *const layout = &search->layout;
    uint64_t thread, back, modules;
    if (!marey__remote_read_u64(remote, interpreter + layout->interpreter.threads_head, &thread) ||
        !is_pointer(search->maps, thread) ||
        !marey__remote_read_u64(remote, thread + layout->thread.interpreter, &back) ||
        back != interpreter ||
        !marey__remote_read_u64(remote, interpreter + layout->interpreter.modules, &modules))
        return false;
    remote->layout = *layout;
    return marey__remote_is_type(remote, modules, "dict");
}

static bool look_for_interpreters(void *ctx, uint64_t at, const uint8_t *bytes, size_t n)
{
    struct search *const search = ctx;
    /* A lock, the newest interpreter, the main one, the next id. */
    for (size_t i = 8; i + 24 <= n && search->n_tried < TRIED_MAX; i += 8) {
        const uint64_t head = marey__remote_u64(bytes, (uint32_t)i),
                       main = marey__remote_u64(bytes, (uint32_t)i + 8);
        if ((search->is_strict ? head != main : head == main) || !is_pointer(search->maps, head) ||
            !is_pointer(search->maps, main) ||
            !is_pointer(search->maps, marey__remote_u64(bytes, (uint32_t)i - 8)) ||
            marey__remote_u64(bytes, (uint32_t)i + 16) - 1 > INTERPRETERS_MAX)
            continue;
        search->n_tried++;
        if (!is_interpreter(search, head) || !is_interpreter(search, main))
            continue;
        *search->out = (struct marey__remote_found){
            .runtime = at + i - search->layout.runtime.interpreters_head, .version = search->version};
        return true;
    }
    return false;
}

bool marey__remote_scan(struct marey__remote *remote, const struct marey__remote_maps *maps,
                        const char *path, uint32_t version, struct marey__remote_found *out)
{
    struct search search = {.remote = remote, .maps = maps, .version = version, .out = out};
    if ((version == 0 || version >= 0x030d0000) &&
        scan_file(remote, maps, path, look_for_cookie, &search))
        return true;
    if (search.version == 0)
        search.version = marey__remote_scan_version(remote, maps, path);
    *out = (struct marey__remote_found){.version = search.version};
    if (!marey__remote_layout_fixed(search.version, &search.layout))
        return false;
    search.is_strict = true;
    if (scan_file(remote, maps, path, look_for_interpreters, &search))
        return true;
    search.is_strict = false;
    return scan_file(remote, maps, path, look_for_interpreters, &search);
}
