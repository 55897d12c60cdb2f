/*
 * Rows appended to a file of CSV while a program runs.
 *
 * All rows go out by one write, so that a kill leaves whole lines. If it does cut one, the next rows begin a new line.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "present/draw/internal.h"

/* Whether the file of `size` bytes begins with this line of names. */
static marey_status check_header(int fd, off_t size, const struct marey__buf *header, const char *path)
{
    struct marey__buf found = {0};
    char *start = marey__buf_extend(&found, header->len);
    marey_status status = MAREY_OK;
    if (start == NULL)
        status = marey__no_memory();
    else if (size < (off_t)header->len || pread(fd, start, header->len, 0) != (ssize_t)header->len ||
             memcmp(start, header->data, header->len) != 0)
        status = marey__fail(MAREY_EINVAL,
                             "%s has other columns; move it away or choose another folder", path);
    marey__buf_fini(&found);
    return status;
}

/* What goes before the rows: the names, the end of a line that was cut, or nothing. */
static marey_status begin_lines(int fd, off_t size, const marey_table *table, const char *path,
                                struct marey__buf *lines)
{
    marey__csv_header(table, lines);
    if (size == 0 || lines->failed)
        return MAREY_OK;
    MAREY_TRY(check_header(fd, size, lines, path));
    char last = '\0';
    if (pread(fd, &last, 1, size - 1) != 1)
        return marey__fail_errno("read %s", path);
    lines->len = 0;
    if (last != '\n')
        marey__buf_puts(lines, "\r\n");
    return MAREY_OK;
}

static marey_status append(int fd, const marey_table *table, const char *path,
                           struct marey__buf *lines)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return marey__fail_errno("ask for the size of %s", path);
    MAREY_TRY(begin_lines(fd, about.st_size, table, path, lines));
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        marey__csv_row(table, row, lines);
    MAREY__TRY_MEMORY(!lines->failed);
    if (marey__write_all(fd, lines->data, lines->len))
        return MAREY_OK;
    const marey_status status = marey__fail_errno("write %s", path);
    /* Half a line is worse than none; where even this is refused, the next rows begin a new line. */
    (void)!ftruncate(fd, about.st_size);
    return status;
}

marey_status marey_append_csv(const marey_table *table, const char *path)
{
    MAREY_TRY(marey_table_status(table));
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return marey__fail_errno("open %s", path);
    struct marey__buf lines = {0};
    marey_status status = append(fd, table, path, &lines);
    marey__buf_fini(&lines);
    if (close(fd) != 0 && status == MAREY_OK)
        status = marey__fail_errno("close %s", path);
    return status;
}
