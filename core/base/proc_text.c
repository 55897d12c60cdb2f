/*
 * Parsers of text in /proc: numbers among words. The text is foreign input and may be truncated or empty. Every
 * function takes a text and its length and never reads past it.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/internal.h"

size_t marey__read_text(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? marey__read_all(fd, out, size - 1, -1) : 0;
    if (fd >= 0)
        close(fd);
    out[MAREY__MAX(n, 0)] = '\0';
    return (size_t)MAREY__MAX(n, 0);
}

size_t marey__read_line(const char *path, char *out, size_t size)
{
    marey__read_text(path, out, size);
    const size_t len = strcspn(out, "\n");
    out[len] = '\0';
    return len;
}

size_t marey__read_proc(int64_t pid, int64_t tid, const char *name, char *out, size_t size)
{
    char path[96];
    if (tid != 0)
        snprintf(path, sizeof path, "/proc/%" PRId64 "/task/%" PRId64 "/%s", pid, tid, name);
    else
        snprintf(path, sizeof path, "/proc/%" PRId64 "/%s", pid, name);
    return marey__read_text(path, out, size);
}

uint64_t marey__status_number(const char *status, const char *name, int base)
{
    const char *const at = strstr(status, name);
    return at != NULL ? strtoull(at + strlen(name), NULL, base) : 0;
}

uint64_t marey__status_innermost_pid(const char *status)
{
    const char *at = strstr(status, "\nNSpid:");
    uint64_t number = 0;
    for (at = at != NULL ? at + 7 : ""; *at == '\t' || *at == ' ';) {
        at += strspn(at, "\t ");
        marey__parse_number(at, strlen(at), &number);
        at += strspn(at, "0123456789");
    }
    return number;
}

bool marey__parse_number(const char *text, size_t len, uint64_t *out)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    if (i == 0)
        return false;
    *out = number;
    return true;
}

size_t marey__parse_numbers(const char *text, size_t len, uint64_t *out, size_t n)
{
    size_t at = 0, found = 0;
    while (found < n) {
        while (at < len && text[at] == ' ')
            at++;
        if (!marey__parse_number(text + at, len - at, &out[found]))
            break;
        found++;
        while (at < len && text[at] >= '0' && text[at] <= '9')
            at++;
        if (at < len && text[at] != ' ' && text[at] != '\n')
            return found - 1; /* "12x" is not a number */
    }
    return found;
}

bool marey__parse_process_stat(const char *text, size_t len, struct marey__process_stat *out)
{
    /* The name in parentheses may contain anything, so count fields from the last parenthesis, which ends field 2. */
    const char *at = memrchr(text, ')', len);
    if (at == NULL)
        return false;
    const char *const end = text + len;
    uint64_t fields[29] = {0};
    size_t field = 3;
    *out = (struct marey__process_stat){.state = end - at > 2 ? at[2] : '\0'};
    for (at++; field < MAREY__COUNT_OF(fields) && at < end && *at == ' '; field++) {
        at += 1;
        if (at < end && *at == '-') /* a few fields are signed, none that is needed */
            fields[field] = 0;
        else if (field > 3 && !marey__parse_number(at, (size_t)(end - at), &fields[field]))
            break;
        while (at < end && *at != ' ' && *at != '\n')
            at++;
    }
    if (field <= 22)
        return false;
    out->parent = fields[4];
    out->reaped_ticks = fields[16] > UINT64_MAX - fields[17] ? UINT64_MAX : fields[16] + fields[17];
    out->start_time = fields[22];
    out->start_code = fields[26];
    out->start_stack = fields[28];
    return true;
}

bool marey__read_process_stat(int64_t pid, int64_t tid, struct marey__process_stat *out)
{
    char text[1024];
    return marey__parse_process_stat(text, marey__read_proc(pid, tid, "stat", text, sizeof text),
                                     out);
}
