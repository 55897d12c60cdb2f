/*
 * Finds Python's state in a process: the symbol _PyRuntime of its program, of a libpython, or of any other mapped file,
 * as in programs that embed Python. Files are opened through the process (/proc/PID/exe, /proc/PID/root), so that
 * containers do not matter, and trusted if their first page matches the mapped one: after an upgrade another file has
 * the name. If no file helps (deleted, stripped), memory is scanned (remote_scan.c).
 */
#include <fcntl.h>
#include <unistd.h>

#include "codec/internal.h"
#include "sampler/remote/internal.h"

enum { PAGE = 4096 };

/* A file of the process, mapped in our process. */
struct file {
    void *bytes;
    size_t len;
};

static bool is_the_mapped_one(struct marey__remote *remote, const struct marey__remote_map *map,
                              const struct file *file)
{
    uint8_t page[PAGE];
    const size_t n = MAREY__MIN(file->len, (size_t)PAGE);
    return marey__remote_read(remote, map->begin, page, n) && memcmp(page, file->bytes, n) == 0;
}

static bool open_path(struct marey__remote *remote, const struct marey__remote_map *map,
                      const char *path, struct file *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    *out = (struct file){0};
    out->bytes = marey__map_file(fd, &out->len);
    close(fd);
    if (out->bytes != NULL && is_the_mapped_one(remote, map, out))
        return true;
    marey__unmap_file(out->bytes, out->len);
    return false;
}

static bool open_file(struct marey__remote *remote, const struct marey__remote_map *map,
                      bool is_program, struct file *out)
{
    char path[4200];
    const int pid = (int)remote->process.pid;
    if (is_program) {
        snprintf(path, sizeof path, "/proc/%d/exe", pid);
        if (open_path(remote, map, path, out))
            return true;
    }
    /* By the process's path; by our path, if it only changed its root; by the mapping itself, which requires privileges. */
    snprintf(path, sizeof path, "/proc/%d/root%s", pid, map->path);
    if (open_path(remote, map, path, out) || open_path(remote, map, map->path, out))
        return true;
    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)map->begin,
             (unsigned long long)map->end);
    return open_path(remote, map, path, out);
}

/* The address in the process of a symbol of the file; 0 if missing. */
static uint64_t symbol_of(const struct file *file, uint64_t bias, const char *name, bool is_thorough)
{
    uint64_t value;
    return marey__elf_find(file->bytes, file->len, name, is_thorough, &value) ? value + bias : 0;
}

/* The address in the process of a section of the file; 0 if missing. */
static uint64_t section_of(const struct file *file, uint64_t bias, const char *name)
{
    uint64_t at, n_bytes;
    return marey__elf_section(file->bytes, file->len, name, &at, &n_bytes) ? at + bias : 0;
}

/* Searches one file, `is_likely` to be Python or one of many; false if it is not Python. */
static bool look_into(struct marey__remote *remote, const struct marey__remote_map *map,
                      bool is_program, bool is_likely, struct marey__remote_found *out)
{
    struct file file;
    uint64_t first;
    if (!open_file(remote, map, is_program, &file))
        return false;
    *out = (struct marey__remote_found){0};
    if (marey__elf_first_address(file.bytes, file.len, &first)) {
        const uint64_t bias = map->begin - first;
        /* Other programs may have mapped hundreds of files with long symbol tables: do not search those. */
        out->runtime = symbol_of(&file, bias, "_PyRuntime", is_likely);
        if (out->runtime == 0)
            out->runtime = section_of(&file, bias, ".PyRuntime");
        if (out->runtime != 0) {
            uint64_t version;
            const uint64_t version_at = symbol_of(&file, bias, "Py_Version", true);
            out->none = symbol_of(&file, bias, "_Py_NoneStruct", true);
            out->code_type = symbol_of(&file, bias, "PyCode_Type", true);
            if (version_at != 0 && marey__remote_read_u64(remote, version_at, &version))
                out->version = (uint32_t)version;
        }
    }
    marey__unmap_file(file.bytes, file.len);
    return out->runtime != 0;
}

/* "python3.11", "libpython3.11.so.1.0": 0x030b0000; 0 for other names. */
static uint32_t version_of_name(const char *path)
{
    const char *const at = strstr(marey__base_name(path), "python3.");
    uint64_t minor;
    if (at == NULL || !marey__parse_number(at + 8, strlen(at + 8), &minor) || minor > 255)
        return 0;
    return 0x03000000u | (uint32_t)minor << 16;
}

/*
 * The version for files without Py_Version: from the build's text, which includes the patch; else from the file's name.
 */
static uint32_t version_by_text(struct marey__remote *remote, const struct marey__remote_maps *maps,
                                const char *path)
{
    const uint32_t named = version_of_name(path),
                   said = marey__remote_scan_version(remote, maps, path);
    return said != 0 && (named == 0 || said >> 16 == named >> 16) ? said : named;
}

static void read_program_path(pid_t pid, char *out, size_t size)
{
    static const char deleted[] = " (deleted)";
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    const ssize_t len = readlink(link, out, size - 1);
    out[len > 0 ? len : 0] = '\0';
    const size_t n = strlen(out);
    if (n >= sizeof deleted && strcmp(out + n - (sizeof deleted - 1), deleted) == 0)
        out[n - (sizeof deleted - 1)] = '\0';
}

/* Searches the start of each file: the program first, then libpython, then all others. */
static bool search_files(struct marey__remote *remote, const struct marey__remote_maps *maps,
                         struct marey__remote_found *out)
{
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < maps->n; i++) {
            const struct marey__remote_map *const map = &maps->maps[i];
            const bool is_program = strcmp(maps->program, map->path) == 0;
            const bool is_libpython = strstr(marey__base_name(map->path), "libpython") != NULL;
            if (map->path[0] != '/' || map->offset != 0 || !map->is_readable ||
                (is_program     ? 0
                 : is_libpython ? 1
                                : 2) != turn ||
                (i > 0 && strcmp(map->path, maps->maps[i - 1].path) == 0) ||
                !look_into(remote, map, is_program, turn < 2, out))
                continue;
            if (out->version == 0)
                out->version = version_by_text(remote, maps, map->path);
            return true;
        }
    return false;
}

marey_status marey__remote_find(struct marey__remote *remote, struct marey__remote_found *out)
{
    struct marey__remote_maps maps MAREY__FINALLY(marey__remote_maps_fini) = {0};
    MAREY_TRY(marey__remote_maps_read(remote->process.pid, &maps));
    read_program_path(remote->process.pid, maps.program, sizeof maps.program);
    bool is_found = search_files(remote, &maps, out);
    uint32_t too_old = 0;
    /* If files are missing or have no symbols, their names still identify a Python. */
    for (size_t i = 0; !is_found && i < maps.n; i++) {
        const char *const path = maps.maps[i].path;
        const bool is_next = i > 0 && strcmp(path, maps.maps[i - 1].path) == 0;
        if (path[0] == '/' && !is_next &&
            (strstr(marey__base_name(path), "python") != NULL || strcmp(path, maps.program) == 0))
            is_found = marey__remote_scan(remote, &maps, path, version_of_name(path), out);
        if (!is_found && out->version != 0 && out->version < MAREY__REMOTE_OLDEST)
            too_old = out->version;
    }
    if (!is_found && too_old != 0)
        return marey__remote_fail_too_old(remote, too_old);
    return is_found ? MAREY_OK
                    : marey__fail(MAREY_EUNAVAILABLE,
                                  "process %d (%s) is not a Python that marey can find: neither a "
                                  "file that it has mapped nor its memory shows a _PyRuntime",
                                  (int)remote->process.pid, remote->process.command);
}

uint64_t marey__remote_find_asyncio(struct marey__remote *remote)
{
    struct marey__remote_maps maps MAREY__FINALLY(marey__remote_maps_fini) = {0};
    struct file file;
    uint64_t at = 0, first;
    if (marey__remote_maps_read(remote->process.pid, &maps) != MAREY_OK)
        return 0;
    read_program_path(remote->process.pid, maps.program, sizeof maps.program);
    for (size_t i = 0; i < maps.n && at == 0; i++) {
        const struct marey__remote_map *const map = &maps.maps[i];
        const bool is_program = strcmp(maps.program, map->path) == 0;
        const char *const name = marey__base_name(map->path);
        if (map->path[0] != '/' || map->offset != 0 || !map->is_readable ||
            (!is_program && strstr(name, "libpython") == NULL &&
             strncmp(name, "_asyncio", strlen("_asyncio")) != 0) ||
            !open_file(remote, map, is_program, &file))
            continue;
        if (marey__elf_first_address(file.bytes, file.len, &first))
            at = section_of(&file, map->begin - first, ".AsyncioDebug");
        marey__unmap_file(file.bytes, file.len);
    }
    return at;
}
