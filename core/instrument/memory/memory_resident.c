/* How much of the machine's memory the process holds, as the kernel tells it, and how much it may hold. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/memory/internal.h"

static void put(struct marey_site *site, double value)
{
    marey_counter(marey_site_id(site), value);
}

uint64_t marey__memory_status_bytes(const char *text, size_t len, const char *key)
{
    const size_t key_len = strlen(key);
    for (const char *at = text, *end = text + len; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const size_t line = (size_t)((line_end != NULL ? line_end : end) - at);
        uint64_t kib;
        if (line > key_len && memcmp(at, key, key_len) == 0) {
            size_t skip = key_len;
            while (skip < line && (at[skip] == ' ' || at[skip] == '\t'))
                skip++;
            return marey__parse_number(at + skip, line - skip, &kib) && kib < UINT64_MAX >> 10
                       ? kib << 10
                       : 0;
        }
        at += line + 1;
    }
    return 0;
}

bool marey__memory_cgroup(const char *text, size_t len, char *out, size_t size)
{
    for (const char *at = text, *end = text + len; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const size_t line = (size_t)((line_end != NULL ? line_end : end) - at);
        if (line > 3 && memcmp(at, "0::", 3) == 0 && line - 3 < size) {
            memcpy(out, at + 3, line - 3);
            out[line - 3] = '\0';
            return true;
        }
        at += line + 1;
    }
    return false;
}

/* The least of what the cgroup and those around it allow; 0: as much as there is. */
static uint64_t read_limit(void)
{
    char text[4096], group[1024], path[1200];
    uint64_t least = 0, bytes;
    size_t len = marey__read_text("/proc/self/cgroup", text, sizeof text);
    if (!marey__memory_cgroup(text, len, group, sizeof group))
        return 0;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max",
                 strcmp(group, "/") == 0 ? "" : group);
        len = marey__read_text(path, text, sizeof text);
        if (marey__parse_number(text, len, &bytes) && (least == 0 || bytes < least))
            least = bytes;
        char *const slash = strrchr(group, '/');
        if (slash == NULL || strcmp(group, "/") == 0)
            return least;
        slash[slash == group ? 1 : 0] = '\0';
    }
}

void marey__memory_resident_read(bool is_first, bool is_last)
{
    static struct marey_site resident = {
        .name = "resident memory (bytes)", .category = "memory", .domain = "process|resident"};
    static struct marey_site peak = {
        .name = "peak resident memory (bytes)", .category = "memory", .domain = "process|peak"};
    static struct marey_site limit = {
        .name = "memory limit (bytes)", .category = "memory", .domain = "process|limit"};
    char text[4096];
    const size_t len = marey__read_text("/proc/self/statm", text, sizeof text);
    const char *const blank = memchr(text, ' ', len);
    uint64_t pages;
    if (blank != NULL && marey__parse_number(blank + 1, len - (size_t)(blank + 1 - text), &pages))
        put(&resident, (double)pages * (double)sysconf(_SC_PAGESIZE));
    const uint64_t allowed = is_first ? read_limit() : 0;
    if (allowed != 0)
        put(&limit, (double)allowed);
    if (is_last) {
        const size_t n = marey__read_text("/proc/self/status", text, sizeof text);
        put(&peak, (double)marey__memory_status_bytes(text, n, "VmHWM:"));
    }
}
