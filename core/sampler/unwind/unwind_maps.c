/* What a process has mapped: the text of /proc/PID/maps, which may hold any path. */
#include "sampler/unwind/internal.h"

static bool hexadecimal(const char **at, const char *end, char behind, uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;
    for (; p < end; p++) {
        const int digit = *p >= '0' && *p <= '9'   ? *p - '0'
                          : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                                                   : -1;
        if (digit < 0)
            break;
        if (value >> 60 != 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    if (p == *at || p >= end || *p != behind)
        return false;
    *at = p + 1;
    *out = value;
    return true;
}

/* "start-end rwxp offset major:minor inode      path", a NUL behind it. */
static bool parse_line(const char *line, const char *end, struct marey__unwind_map *map)
{
    const char *at = line;
    uint64_t device;
    *map = (struct marey__unwind_map){.path = ""};
    if (!hexadecimal(&at, end, '-', &map->start) || !hexadecimal(&at, end, ' ', &map->end) ||
        end - at < 5)
        return false;
    map->is_readable = at[0] == 'r';
    map->is_writable = at[1] == 'w';
    map->is_executable = at[2] == 'x';
    at += 5;
    if (!hexadecimal(&at, end, ' ', &map->offset) || !hexadecimal(&at, end, ':', &device) ||
        !hexadecimal(&at, end, ' ', &device) || map->start >= map->end)
        return false;
    if (!marey__parse_number(at, (size_t)(end - at), &map->inode))
        return false;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    while (at < end && *at == ' ')
        at++;
    map->path = at;
    return true;
}

bool marey__unwind_parse_maps(char *text, size_t len, struct marey__unwind_map **maps, size_t *cap,
                              size_t *n)
{
    *n = 0;
    for (char *line = text, *const all = text + len; line < all;) {
        char *const end = memchr(line, '\n', (size_t)(all - line));
        if (end == NULL) /* A line that was cut is no mapping. */
            break;
        *end = '\0';
        if (!marey__grow(maps, cap, *n + 1, sizeof **maps))
            return false;
        /* The kernel has them in order. Whoever has not is not a kernel. */
        if (parse_line(line, end, &(*maps)[*n]) &&
            (*n == 0 || (*maps)[*n - 1].end <= (*maps)[*n].start))
            (*n)++;
        line = end + 1;
    }
    return true;
}
