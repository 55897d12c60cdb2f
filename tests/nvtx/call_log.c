#include "call_log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Room for the end of a line is always left. */
static void add(struct call_line *line, const char *text, size_t len)
{
    if (len < sizeof line->text - 4 - line->len) {
        memcpy(line->text + line->len, text, len);
        line->len += len;
    }
}

static void add_quoted(struct call_line *line, const char *text, size_t len)
{
    add(line, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        char escaped[8];
        if (c < 0x20 || c == '"' || c == '\\')
            add(line, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else
            add(line, &text[i], 1);
    }
    add(line, "\"", 1);
}

static void add_key(struct call_line *line, const char *key)
{
    add(line, ", ", 2);
    add_quoted(line, key, strlen(key));
    add(line, ": ", 2);
}

void call_line_begin(struct call_line *line, const char *call)
{
    char start[64];
    line->len = 0;
    add(line, start,
        (size_t)snprintf(start, sizeof start, "{\"pid\": %d, \"tid\": %ld", (int)getpid(),
                         syscall(SYS_gettid)));
    call_line_text(line, "call", call, strlen(call));
}

void call_line_text(struct call_line *line, const char *key, const char *text, size_t len)
{
    add_key(line, key);
    if (text == NULL)
        add(line, "null", 4);
    else
        add_quoted(line, text, len);
}

void call_line_number(struct call_line *line, const char *key, const char *format, ...)
{
    char number[64];
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(number, sizeof number, format, args);
    va_end(args);
    add_key(line, key);
    add(line, number, len > 0 ? (size_t)len : 0);
}

void call_line_write(struct call_line *line)
{
    const char *path = getenv("MAREY_TEST_NVTX_LOG");
    if (path == NULL)
        return;
    memcpy(line->text + line->len, "}\n", 2);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, line->text, line->len + 2) < 0)
        perror(path);
    close(fd);
}
