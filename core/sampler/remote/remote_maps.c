/* What a process has mapped, by /proc/PID/maps. Names of files in it may hold anything but a line's end. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sampler/remote/internal.h"

static bool take_hex(const char **at, uint64_t *out)
{
    const char *c = *at;
    uint64_t value = 0;
    for (;; c++) {
        unsigned digit;
        if (*c >= '0' && *c <= '9')
            digit = (unsigned)(*c - '0');
        else if (*c >= 'a' && *c <= 'f')
            digit = (unsigned)(*c - 'a') + 10;
        else
            break;
        value = value << 4 | digit;
    }
    const bool is_there = c != *at;
    *at = c;
    *out = value;
    return is_there;
}

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

/* "begin-end rwxp offset major:minor inode   path"; `line` ends in a NUL. */
static bool parse_line(char *line, struct marey__remote_map *out)
{
    static const char deleted[] = " (deleted)";
    const char *at = line;
    uint64_t major, minor;
    if (!take_hex(&at, &out->begin) || !take_char(&at, '-') || !take_hex(&at, &out->end) ||
        !take_char(&at, ' ') || strlen(at) < 5)
        return false;
    out->is_readable = at[0] == 'r';
    out->is_writable = at[1] == 'w';
    out->is_executable = at[2] == 'x';
    at += 4;
    if (!take_char(&at, ' ') || !take_hex(&at, &out->offset) || !take_char(&at, ' ') ||
        !take_hex(&at, &major) || !take_char(&at, ':') || !take_hex(&at, &minor) ||
        !take_char(&at, ' ') || !marey__parse_number(at, strlen(at), &out->inode))
        return false;
    at += strspn(at, "0123456789");
    char *const path = line + (at - line) + strspn(at, " ");
    const size_t len = strlen(path);
    out->is_deleted =
        len >= sizeof deleted && strcmp(path + len - (sizeof deleted - 1), deleted) == 0;
    if (out->is_deleted)
        path[len - (sizeof deleted - 1)] = '\0';
    out->path = path;
    return out->begin < out->end;
}

bool marey__remote_maps_parse(struct marey__remote_maps *out)
{
    marey__buf_put(&out->text, "", 1);
    if (out->text.failed)
        return false;
    for (char *line = out->text.data; *line != '\0';) {
        char *const end = strchrnul(line, '\n');
        const bool is_last = *end == '\0';
        *end = '\0';
        if (!marey__grow(&out->maps, &out->cap, out->n + 1, sizeof *out->maps))
            return false;
        if (parse_line(line, &out->maps[out->n]))
            out->n++;
        line = is_last ? end : end + 1;
    }
    return true;
}

marey_status marey__remote_maps_read(pid_t pid, struct marey__remote_maps *out)
{
    char path[64];
    ssize_t got;
    *out = (struct marey__remote_maps){0};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES || errno == EPERM
                   ? marey__remote_explain_denial(pid)
                   : marey__fail(MAREY_EIO, "there is no process %d", (int)pid);
    do {
        void *const room = marey__buf_extend(&out->text, 1 << 16);
        if (room == NULL) {
            close(fd);
            marey__remote_maps_fini(out);
            return marey__no_memory();
        }
        out->text.len -= 1 << 16;
        got = read(fd, room, 1 << 16);
        out->text.len += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    close(fd);
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
