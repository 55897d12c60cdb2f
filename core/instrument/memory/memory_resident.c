/* Resident memory of the process, as reported by the kernel, and its limit. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/memory/internal.h"

static void put(struct marey_site *site, double value)
{
    marey_counter(marey_site_id(site), value);
}

/* The rest of the first line that begins with `key`, if not empty; sets `*len` to its length. NULL if there is none. */
static const char *line_of(const char *text, size_t *len, const char *key)
{
    const size_t key_len = strlen(key);
    const char *const end = text + *len;
    for (const char *at = text; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const size_t line = (size_t)((line_end != NULL ? line_end : end) - at);
        if (line > key_len && memcmp(at, key, key_len) == 0) {
            *len = line - key_len;
            return at + key_len;
        }
        at += line + 1;
    }
    return NULL;
}

uint64_t marey__memory_status_bytes(const char *text, size_t len, const char *key)
{
    uint64_t kib;
    const char *at = line_of(text, &len, key);
    for (; at != NULL && len > 0 && (*at == ' ' || *at == '\t'); len--)
        at++;
    return at != NULL && marey__parse_number(at, len, &kib) && kib < UINT64_MAX >> 10 ? kib << 10 : 0;
}

bool marey__memory_cgroup(const char *text, size_t len, char *out, size_t size)
{
    const char *const path = line_of(text, &len, "0::");
    if (path == NULL || len >= size)
        return false;
    memcpy(out, path, len);
    out[len] = '\0';
    return true;
}

double marey__cgroup_lowest(const char *root, char *group, marey__cgroup_limit *read_limit)
{
    char folder[4096 + 64];
    double lowest = 0, value;
    for (;;) {
        const bool is_root = strcmp(group, "/") == 0;
        snprintf(folder, sizeof folder, "%s%s", root, is_root ? "" : group);
        if (read_limit(folder, &value) && value > 0 && (lowest == 0 || value < lowest))
            lowest = value;
        char *const slash = strrchr(group, '/');
        if (slash == NULL || is_root)
            return lowest;
        slash[slash == group ? 1 : 0] = '\0';
    }
}

bool marey__cgroup_number(const char *folder, const char *name, double *out)
{
    char path[4096 + 128], text[64];
    uint64_t number;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!marey__parse_number(text, marey__read_text(path, text, sizeof text), &number))
        return false;
    *out = (double)number;
    return true;
}

bool marey__cgroup_memory_max(const char *folder, double *out)
{
    return marey__cgroup_number(folder, "memory.max", out);
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
    if (is_first) {
        char group[1024];
        const size_t n = marey__read_text("/proc/self/cgroup", text, sizeof text);
        const double allowed =
            marey__memory_cgroup(text, n, group, sizeof group)
                ? marey__cgroup_lowest("/sys/fs/cgroup", group, marey__cgroup_memory_max)
                : 0;
        if (allowed > 0)
            put(&limit, allowed);
    }
    if (is_last) {
        const size_t n = marey__read_text("/proc/self/status", text, sizeof text);
        put(&peak, (double)marey__memory_status_bytes(text, n, "VmHWM:"));
    }
}
