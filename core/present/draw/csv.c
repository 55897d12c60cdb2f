/* A table as RFC 4180 CSV: a line of names, then a line per row; a null is an empty field. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "present/draw/internal.h"

/* Spreadsheets execute a cell with such a start as a formula, unless it is a number. */
static bool is_formula(const char *text, size_t len)
{
    char number[64], *end;
    if (len == 0 || strchr("=+-@\t\r", text[0]) == NULL || text[0] == '\0')
        return false;
    if (len >= sizeof number)
        return true;
    memcpy(mempcpy(number, text, len), "", 1);
    (void)strtod(number, &end);
    return end == number || *end != '\0';
}

/*
 * Texts are valid UTF-8 and quoted if needed. A NUL, which CSV readers do not accept, counts as invalid. An apostrophe,
 * which spreadsheets hide, comes before a formula.
 */
void marey__csv_put(struct marey__buf *line, const char *text, size_t len)
{
    struct marey__buf valid = {0};
    if (is_formula(text, len))
        marey__buf_puts(&valid, "'");
    marey__utf8_put(&valid, text, len);
    bool is_plain = valid.len == 0 || (valid.data[0] != ' ' && valid.data[valid.len - 1] != ' ');
    for (size_t i = 0; i < valid.len; i++)
        is_plain &= valid.data[i] != '\0' && strchr(",\"\r\n", valid.data[i]) == NULL;
    if (is_plain && !valid.failed) {
        marey__buf_put(line, valid.data, valid.len);
    } else {
        marey__buf_puts(line, "\"");
        for (size_t i = 0; i < valid.len; i++) {
            if (valid.data[i] == '\0')
                marey__buf_puts(line, "\xef\xbf\xbd");
            else
                marey__buf_put(line, valid.data[i] == '"' ? "\"\"" : &valid.data[i],
                               valid.data[i] == '"' ? 2 : 1);
        }
        marey__buf_puts(line, "\"");
    }
    marey__buf_end(&valid, line);
}

static void put_cell(struct marey__buf *line, const struct marey_cell *cell, enum marey_type type)
{
    char number[MAREY__NUMBER_ROOM];
    if (cell->is_null)
        return;
    if (type == MAREY_TYPE_TEXT)
        marey__csv_put(line, cell->as.text, cell->len);
    else if (type == MAREY_TYPE_I64)
        marey__buf_put_i64(line, cell->as.i64);
    else if (type == MAREY_TYPE_F64)
        marey__buf_put(line, number, (size_t)(marey__put_f64_csv(number, cell->as.f64) - number));
    else
        marey__buf_put_u64(line, cell->as.u64);
}

static void put_header(const marey_table *table, struct marey__buf *line)
{
    const size_t n_columns = marey_table_n_columns(table);
    for (size_t c = 0; c < n_columns; c++) {
        const char *name = marey_table_column(table, c)->name;
        marey__csv_put(line, name, strlen(name));
        marey__buf_puts(line, c + 1 < n_columns ? "," : "\r\n");
    }
}

static void put_row(const marey_table *table, size_t row, struct marey__buf *line)
{
    const size_t n_columns = marey_table_n_columns(table);
    for (size_t c = 0; c < n_columns; c++) {
        const struct marey_cell cell = marey_table_cell(table, row, c);
        put_cell(line, &cell, marey_table_column(table, c)->type);
        marey__buf_puts(line, c + 1 < n_columns ? "," : "\r\n");
    }
}

marey_status marey__csv_rows(const marey_table *table, size_t max_rows, FILE *out)
{
    struct marey__buf line MAREY__FINALLY(marey__buf_fini) = {0};
    const size_t n_rows = MAREY__MIN(marey_table_n_rows(table), max_rows);
    put_header(table, &line);
    marey_status status = marey__buf_to_stream(&line, out);
    for (size_t row = 0; status == MAREY_OK && row < n_rows; row++) {
        put_row(table, row, &line);
        status = marey__buf_to_stream(&line, out);
    }
    return status;
}

marey_status marey_present_csv(const marey_table *table, FILE *out)
{
    return marey__csv_rows(table, SIZE_MAX, out);
}

/*
 * ---- rows appended to a file while a program runs ----
 *
 * Rows are appended with one write, so that a kill leaves complete lines. If a line is cut, the next rows start a new one.
 */

/* Whether the file of `size` bytes begins with this line of names. */
static marey_status check_header(int fd, off_t size, const struct marey__buf *header, const char *path)
{
    struct marey__buf found MAREY__FINALLY(marey__buf_fini) = {0};
    char *start = marey__buf_extend(&found, header->len);
    marey_status status = MAREY_OK;
    if (start == NULL || header->data == NULL)
        status = marey__no_memory();
    else if (size < (off_t)header->len || pread(fd, start, header->len, 0) != (ssize_t)header->len ||
             memcmp(start, header->data, header->len) != 0)
        status = marey__fail(MAREY_EINVAL,
                             "%s has other columns; move it away or choose another folder", path);
    return status;
}

/* Write what precedes the rows: the names, a line end after a truncated line, or nothing. */
static marey_status begin_lines(int fd, off_t size, const marey_table *table, const char *path,
                                struct marey__buf *lines)
{
    put_header(table, lines);
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
        put_row(table, row, lines);
    MAREY__TRY_MEMORY(!lines->failed);
    if (marey__write_all(fd, lines->data, lines->len))
        return MAREY_OK;
    const marey_status status = marey__fail_errno("write %s", path);
    /* Remove a partial line; if truncating fails too, the next rows start a new line. */
    (void)!ftruncate(fd, about.st_size);
    return status;
}

marey_status marey_append_csv(const marey_table *table, const char *path)
{
    MAREY_TRY(marey_table_status(table));
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return marey__fail_errno("open %s", path);
    struct marey__buf lines MAREY__FINALLY(marey__buf_fini) = {0};
    marey_status status = append(fd, table, path, &lines);
    if (close(fd) != 0 && status == MAREY_OK)
        status = marey__fail_errno("close %s", path);
    return status;
}
