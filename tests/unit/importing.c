#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/internal.h"
#include "importing.h"

struct marey_import_options import_wants;

static marey_status read_bytes(const struct marey__import_format *format, marey__byte_source *bytes,
                               struct marey__log_store *store)
{
    marey__sink *sink;
    const struct marey__sink_options options = {
        .store = store, .command = "a.file", .source = format->info.name};
    MAREY_TRY(marey__sink_create(&options, &sink));
    struct marey__import import = {
        .sink = sink, .bytes = bytes, .path = "a.file", .options = &import_wants};
    marey_status status = format->read(&import);
    if (status == MAREY_OK)
        status = marey__sink_finish(sink);
    marey__sink_destroy(sink);
    return status;
}

marey_status import_bytes(const struct marey__import_format *format, const void *bytes, size_t len,
                          size_t cut, marey_recording **out)
{
    struct marey__log_store *store = NULL;
    marey__byte_source *source = NULL;
    marey_status status = marey__bytes_open_memory(bytes, len, &source);
    if (status == MAREY_OK) {
        marey__bytes_cut(source, cut);
        status = marey__log_store_open(NULL, &store);
    }
    if (status == MAREY_OK)
        status = read_bytes(format, source, store);
    if (status == MAREY_OK)
        status = marey__log_store_read(store, "a.file", out);
    marey__log_store_close(store);
    marey__bytes_close(source);
    return status;
}

marey_recording *import_text(const struct marey__import_format *format, const char *text)
{
    marey_recording *recording = NULL;
    const marey_status status = import_bytes(format, text, strlen(text), 0, &recording);
    if (status != MAREY_OK)
        fail_msg("%s: %s", text, marey_last_error());
    return recording;
}

marey_report *summary_of(marey_recording *recording)
{
    marey_report *summary = NULL;
    assert_int_equal(marey_report_create("ranges", &recording, 1, NULL, &summary), MAREY_OK);
    marey_recording_close(recording);
    return summary;
}

static size_t find_row(marey_report *summary, const char *name)
{
    const marey_table *ranges = marey_report_table(summary, "ranges");
    const size_t column = (size_t)marey_table_find(ranges, "name");
    size_t row = 0;
    while (row < marey_table_n_rows(ranges) &&
           strcmp(marey_table_cell(ranges, row, column).as.text, name) != 0)
        row++;
    return row;
}

static uint64_t number(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column)).as.u64;
}

void expect_range(marey_report *summary, const char *name, uint64_t count, uint64_t total_ns,
                  uint64_t self_ns)
{
    const marey_table *ranges = marey_report_table(summary, "ranges");
    const size_t row = find_row(summary, name);
    if (row == marey_table_n_rows(ranges))
        fail_msg("no range %s", name);
    assert_int_equal(number(ranges, row, "count"), count);
    assert_int_equal(number(ranges, row, "total_ns"), total_ns);
    assert_int_equal(number(ranges, row, "self_ns"), self_ns);
}

void expect_no_range(marey_report *summary, const char *name)
{
    assert_int_equal(find_row(summary, name),
                     marey_table_n_rows(marey_report_table(summary, "ranges")));
}

void expect_warning(marey_report *summary, const char *part)
{
    const marey_table *warnings = marey_report_table(summary, "warnings");
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++)
        if (strstr(marey_table_cell(warnings, row, 0).as.text, part) != NULL)
            return;
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++)
        print_message("%s\n", marey_table_cell(warnings, row, 0).as.text);
    fail_msg("nothing says \"%s\"", part);
}

char *exported_text(marey_recording *recording, const char *format)
{
    const int fd = memfd_create("export", MFD_CLOEXEC);
    assert_int_equal(marey_export(&recording, 1, format, &(struct marey_export_options){0}, fd),
                     MAREY_OK);
    const size_t len = (size_t)lseek(fd, 0, SEEK_CUR);
    char *text = calloc(len + 1, 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, len, 0), (ssize_t)len);
    close(fd);
    return text;
}

void fail_each_allocation(const struct marey__import_format *format, const void *bytes, size_t len)
{
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_recording *recording = NULL;
        marey__alloc_fail_nth(nth);
        status = import_bytes(format, bytes, len, 7, &recording);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && recording == NULL));
        marey_recording_close(recording);
        assert_true(nth < 100000);
    }
}
