/*
 * Any text as input of the doctor from /proc, cgroups and other programs. The first byte is the
 * length of a path or key before the text.
 */
#include <stdlib.h>
#include <string.h>

#include "doctor/internal.h"
#include "fuzz.h"

/* Outputs stay within their size for any text. */
static void check(const char *out, size_t size)
{
    MAREY_ASSERT(memchr(out, '\0', size) != NULL);
}

static void read_fields(const char *text, size_t len, const char *key)
{
    char out[24];
    uint64_t number;
    double cpus;
    if (key[0] != '\0' && marey__parse_field(text, len, key, out, sizeof out))
        check(out, sizeof out);
    if (marey__parse_field(text, len, "model name", out, sizeof out))
        check(out, sizeof out);
    if (marey__parse_cgroup(text, len, key, out, sizeof out)) {
        check(out, sizeof out);
        MAREY_ASSERT(out[0] == '/');
    }
    if (!marey__parse_hex_field(text, len, "CapEff", &number))
        number = 0;
    if (marey__parse_number(text, len, &number) && marey__parse_cpu_max(text, len, &cpus))
        MAREY_ASSERT(cpus > 0);
}

static void read_paths(const char *text, size_t len, const char *key)
{
    struct marey__mount mount = {0};
    char path[40];
    size_t at = 0;
    if (marey__parse_mount(text, len, key, &mount)) {
        check(mount.point, sizeof mount.point);
        check(mount.type, sizeof mount.type);
        check(mount.options, sizeof mount.options);
        MAREY_ASSERT(mount.point[0] == '/' && strlen(mount.point) <= strlen(key) + 1);
        marey__mount_has(&mount, "noexec");
    }
    while (marey__parse_ldconfig(text, len, &at, "libmarey.so.0", path, sizeof path)) {
        check(path, sizeof path);
        MAREY_ASSERT(path[0] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size - 1 < data[0])
        return 0;
    char key[256] = "";
    memcpy(key, data + 1, data[0]);
    const size_t len = size - 1 - data[0];
    char *text = malloc(len > 0 ? len : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data + 1 + data[0], len);
    read_fields(text, len, key);
    read_paths(text, len, key);
    free(text);
    return 0;
}
