/*
 * Where Python's state stands in a process: the symbol _PyRuntime of its program, of a libpython, or of any other file it
 * has mapped. Files are opened as the process sees them (/proc/PID/root, /proc/PID/exe), so that containers and programs
 * that were deleted or replaced since are found as well.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/elf_symbols.h"
#include "remote/remote_internal.h"

/* A file of the process, mapped here. */
struct file {
    const void *bytes;
    size_t len;
};

static bool file_open(pid_t pid, const struct kymo__remote_map *map, bool is_program, struct file *out)
{
    char path[4200];
    struct stat status;
    if (is_program)
        snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, map->path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    *out = (struct file){0};
    /* Another file of the same name, as after an upgrade, has another inode and is of no use. */
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        (uint64_t)status.st_ino == map->inode) {
        out->len = (size_t)status.st_size;
        out->bytes = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return out->bytes != NULL && out->bytes != MAP_FAILED;
}

/* What one file has: false when it is no Python. */
static bool look_into(struct kymo__remote *remote, const struct kymo__remote_map *map,
                      bool is_program, struct kymo__remote_found *out)
{
    struct file file;
    uint64_t first, value, n_bytes;
    if (map->is_deleted && !is_program)
        return false;
    if (!file_open(remote->process.pid, map, is_program, &file))
        return false;
    const bool is_found = kymo__elf_first_address(file.bytes, file.len, &first) &&
                          (kymo__elf_find(file.bytes, file.len, "_PyRuntime", &value) ||
                           kymo__elf_section(file.bytes, file.len, ".PyRuntime", &value, &n_bytes));
    if (is_found) {
        const uint64_t bias = map->begin - first;
        *out = (struct kymo__remote_found){.runtime = value + bias};
        if (kymo__elf_find(file.bytes, file.len, "_Py_NoneStruct", &value))
            out->none = value + bias;
        if (kymo__elf_find(file.bytes, file.len, "PyCode_Type", &value))
            out->code_type = value + bias;
        uint64_t version;
        if (kymo__elf_find(file.bytes, file.len, "Py_Version", &value) &&
            kymo__remote_read_u64(remote, value + bias, &version))
            out->version = (uint32_t)version;
    }
    munmap((void *)file.bytes, file.len);
    return is_found;
}

static const char *base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "python3.9", "libpython3.9.so.1.0": 0x03090000; 0 when the name does not say. */
static uint32_t version_of_name(const char *path)
{
    const char *const at = strstr(base_name(path), "python3.");
    uint64_t minor;
    if (at == NULL || !kymo__parse_number(at + 8, strlen(at + 8), &minor) || minor > 255)
        return 0;
    return 0x03000000u | (uint32_t)minor << 16;
}

/* The first mapping of each file, the program first, then what is called libpython, then all others. */
static bool search(struct kymo__remote *remote, const struct kymo__remote_maps *maps,
                   struct kymo__remote_found *out)
{
    char exe[4096];
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)remote->process.pid);
    const ssize_t len = readlink(link, exe, sizeof exe - 1);
    exe[len > 0 ? len : 0] = '\0';
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < maps->n; i++) {
            const struct kymo__remote_map *const map = &maps->maps[i];
            const bool is_new = i == 0 || strcmp(map->path, maps->maps[i - 1].path) != 0;
            const bool is_program = strncmp(exe, map->path, strlen(map->path)) == 0;
            const bool is_libpython = strstr(base_name(map->path), "libpython") != NULL;
            const int its_turn = is_program ? 0 : is_libpython ? 1 : 2;
            if (!is_new || map->path[0] != '/' || map->offset != 0 || its_turn != turn ||
                !look_into(remote, map, is_program, out))
                continue;
            if (out->version == 0)
                out->version = version_of_name(map->path);
            return true;
        }
    return false;
}

kymo_status kymo__remote_find(struct kymo__remote *remote, struct kymo__remote_found *out)
{
    struct kymo__remote_maps maps;
    KYMO_TRY(kymo__remote_maps_read(remote->process.pid, &maps));
    const bool is_found = search(remote, &maps, out);
    kymo__remote_maps_fini(&maps);
    return is_found
               ? KYMO_OK
               : kymo__fail(
                     KYMO_EUNAVAILABLE,
                     "process %d (%s) is no Python: nothing that it has mapped holds _PyRuntime",
                     (int)remote->process.pid, remote->process.command);
}
