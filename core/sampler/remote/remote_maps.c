/* The mappings of a process, from /proc/PID/maps. File names may contain anything but a newline. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sampler/remote/internal.h"

/* Parses a number of at most 64 bits and the character after it. */
static bool take_hex(const char **at, char next, uint64_t *out)
{
    const char *const begin = *at;
    uint64_t value = 0;
    for (;; ++*at) {
        const int digit = **at >= '0' && **at <= '9'   ? **at - '0'
                          : **at >= 'a' && **at <= 'f' ? **at - 'a' + 10
                                                       : -1;
        if (digit < 0)
            break;
        if (value >> 60 != 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    *out = value;
    return *at != begin && *(*at)++ == next;
}

/* "begin-end rwxp offset major:minor inode path"; `line` is NUL-terminated. */
static bool parse_line(char *line, struct marey__remote_map *out)
{
    static const char deleted[] = " (deleted)";
    const char *at = line;
    uint64_t device;
    *out = (struct marey__remote_map){0};
    if (!take_hex(&at, '-', &out->begin) || !take_hex(&at, ' ', &out->end) || strlen(at) < 5)
        return false;
    out->is_readable = at[0] == 'r';
    out->is_writable = at[1] == 'w';
    out->is_executable = at[2] == 'x';
    at += 5;
    if (!take_hex(&at, ' ', &out->offset) || !take_hex(&at, ':', &device) ||
        !take_hex(&at, ' ', &device) || !marey__parse_number(at, strlen(at), &out->inode))
        return false;
    at += strspn(at, "0123456789");
    char *const path = line + (at - line) + strspn(at, " ");
    const size_t len = strlen(path), n = sizeof deleted - 1;
    out->is_deleted = len > n && strcmp(path + len - n, deleted) == 0;
    if (out->is_deleted)
        path[len - n] = '\0';
    out->path = path;
    return out->begin < out->end;
}

bool marey__remote_maps_parse(struct marey__remote_maps *out)
{
    marey__buf_put(&out->text, "", 1);
    if (out->text.failed)
        return false;
    /* A last line without newline was truncated. */
    for (char *line = out->text.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (!marey__grow(&out->maps, &out->cap, out->n + 1, sizeof *out->maps))
            return false;
        /* The kernel sorts them. */
        if (parse_line(line, &out->maps[out->n]) &&
            (out->n == 0 || out->maps[out->n - 1].end <= out->maps[out->n].begin))
            out->n++;
    }
    return true;
}

bool marey__remote_maps_text(pid_t pid, struct marey__buf *out)
{
    enum { PIECE = 1 << 16 };
    char path[64];
    ssize_t got;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    do {
        void *const room = marey__buf_extend(out, PIECE);
        got = room != NULL ? read(fd, room, PIECE) : 0;
        if (room != NULL)
            out->len -= PIECE - (size_t)MAREY__MAX(got, 0);
    } while (got > 0 || (got < 0 && errno == EINTR));
    close(fd);
    return true;
}

marey_status marey__remote_maps_read(pid_t pid, struct marey__remote_maps *out)
{
    *out = (struct marey__remote_maps){0};
    if (!marey__remote_maps_text(pid, &out->text))
        return errno == EACCES || errno == EPERM
                   ? marey__remote_explain_denial(pid)
                   : marey__fail(MAREY_EIO, "there is no process %d", (int)pid);
    if (marey__remote_maps_parse(out))
        return MAREY_OK;
    marey__remote_maps_fini(out);
    return marey__no_memory();
}

void marey__remote_maps_fini(struct marey__remote_maps *maps)
{
    marey__free(maps->maps);
    marey__buf_fini(&maps->text);
    *maps = (struct marey__remote_maps){0};
}
