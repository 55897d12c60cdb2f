/*
 * Rows appended to a file of CSV while a program runs.
 *
 * All rows go out by one write, so that a kill leaves whole lines. If it does cut one, the next rows begin a new line.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "present/present_internal.h"

/* Whether the file of `size` bytes begins with this line of names. */
static kymo_status check_header(int fd, off_t size, const struct kymo__buf *header, const char *path)
{
    struct kymo__buf found = {0};
    char *start = kymo__buf_extend(&found, header->len);
    kymo_status status = KYMO_OK;
    if (start == NULL)
        status = kymo__fail(KYMO_ENOMEM, "no memory to append to %s", path);
    else if (size < (off_t)header->len || pread(fd, start, header->len, 0) != (ssize_t)header->len ||
             memcmp(start, header->data, header->len) != 0)
        status = kymo__fail(KYMO_EINVAL,
                            "%s has other columns; move it away or choose another folder", path);
    kymo__buf_fini(&found);
    return status;
}

/* What goes before the rows: the names, the end of a line that was cut, or nothing. */
static kymo_status begin_lines(int fd, off_t size, const kymo_table *table, const char *path,
                               struct kymo__buf *lines)
{
    kymo__csv_header(table, lines);
    if (size == 0 || lines->failed)
        return KYMO_OK;
    KYMO_TRY(check_header(fd, size, lines, path));
    char last = '\0';
    if (pread(fd, &last, 1, size - 1) != 1)
        return kymo__fail_errno("read %s", path);
    lines->len = 0;
    if (last != '\n')
        kymo__buf_puts(lines, "\r\n");
    return KYMO_OK;
}

static kymo_status append(int fd, const kymo_table *table, const char *path, struct kymo__buf *lines)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return kymo__fail_errno("ask for the size of %s", path);
    KYMO_TRY(begin_lines(fd, about.st_size, table, path, lines));
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        kymo__csv_row(table, row, lines);
    if (lines->failed)
        return kymo__fail(KYMO_ENOMEM, "no memory to append to %s", path);
    if (kymo__write_all(fd, lines->data, lines->len))
        return KYMO_OK;
    const kymo_status status = kymo__fail_errno("write %s", path);
    /* Half a line is worse than none; where even this is refused, the next rows begin a new line. */
    (void)!ftruncate(fd, about.st_size);
    return status;
}

kymo_status kymo_append_csv(const kymo_table *table, const char *path)
{
    KYMO_TRY(kymo_table_status(table));
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return kymo__fail_errno("open %s", path);
    struct kymo__buf lines = {0};
    kymo_status status = append(fd, table, path, &lines);
    kymo__buf_fini(&lines);
    if (close(fd) != 0 && status == KYMO_OK)
        status = kymo__fail_errno("close %s", path);
    return status;
}
