#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/codec_internal.h"
#include "importing.h"

struct kymo_import_options import_wants;

static kymo_status read_bytes(const struct kymo__import_format *format, kymo__byte_source *bytes,
                              struct kymo__log_store *store)
{
    kymo__sink *sink;
    const struct kymo__sink_options options = {
        .store = store, .command = "a.file", .source = format->name};
    KYMO_TRY(kymo__sink_create(&options, &sink));
    struct kymo__import import = {
        .sink = sink, .bytes = bytes, .path = "a.file", .options = &import_wants};
    kymo_status status = format->read(&import);
    if (status == KYMO_OK)
        status = kymo__sink_finish(sink);
    kymo__sink_destroy(sink);
    return status;
}

kymo_status import_bytes(const struct kymo__import_format *format, const void *bytes, size_t len,
                         size_t cut, kymo_recording **out)
{
    struct kymo__log_store *store = NULL;
    kymo__byte_source *source = NULL;
    kymo_status status = kymo__bytes_open_memory(bytes, len, &source);
    if (status == KYMO_OK) {
        kymo__bytes_cut(source, cut);
        status = kymo__log_store_open_temporary(&store);
    }
    if (status == KYMO_OK)
        status = read_bytes(format, source, store);
    if (status == KYMO_OK)
        status = kymo__log_store_read(store, "a.file", out);
    kymo__log_store_close(store);
    kymo__bytes_close(source);
    return status;
}

kymo_recording *import_text(const struct kymo__import_format *format, const char *text)
{
    kymo_recording *recording = NULL;
    const kymo_status status = import_bytes(format, text, strlen(text), 0, &recording);
    if (status != KYMO_OK)
        fail_msg("%s: %s", text, kymo_last_error());
    return recording;
}

kymo_summary *summary_of(kymo_recording *recording)
{
    kymo_summary *summary = NULL;
    assert_int_equal(kymo_summary_create(&recording, 1, NULL, &summary), KYMO_OK);
    kymo_recording_close(recording);
    return summary;
}

static size_t find_row(kymo_summary *summary, const char *name)
{
    const kymo_table *ranges = kymo_summary_table(summary, "ranges");
    const size_t column = (size_t)kymo_table_find(ranges, "name");
    size_t row = 0;
    while (row < kymo_table_n_rows(ranges) &&
           strcmp(kymo_table_cell(ranges, row, column).as.text, name) != 0)
        row++;
    return row;
}

static uint64_t number(const kymo_table *table, size_t row, const char *column)
{
    return kymo_table_cell(table, row, (size_t)kymo_table_find(table, column)).as.u64;
}

void expect_range(kymo_summary *summary, const char *name, uint64_t count, uint64_t total_ns,
                  uint64_t self_ns)
{
    const kymo_table *ranges = kymo_summary_table(summary, "ranges");
    const size_t row = find_row(summary, name);
    if (row == kymo_table_n_rows(ranges))
        fail_msg("no range %s", name);
    assert_int_equal(number(ranges, row, "count"), count);
    assert_int_equal(number(ranges, row, "total_ns"), total_ns);
    assert_int_equal(number(ranges, row, "self_ns"), self_ns);
}

void expect_no_range(kymo_summary *summary, const char *name)
{
    assert_int_equal(find_row(summary, name),
                     kymo_table_n_rows(kymo_summary_table(summary, "ranges")));
}

void expect_warning(kymo_summary *summary, const char *part)
{
    const kymo_table *warnings = kymo_summary_table(summary, "warnings");
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++)
        if (strstr(kymo_table_cell(warnings, row, 0).as.text, part) != NULL)
            return;
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++)
        print_message("%s\n", kymo_table_cell(warnings, row, 0).as.text);
    fail_msg("nothing says \"%s\"", part);
}

char *exported_text(kymo_recording *recording, const char *format)
{
    const int fd = memfd_create("export", MFD_CLOEXEC);
    assert_int_equal(kymo_export(&recording, 1, format, &(struct kymo_export_options){0}, fd),
                     KYMO_OK);
    const size_t len = (size_t)lseek(fd, 0, SEEK_CUR);
    char *text = calloc(len + 1, 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, len, 0), (ssize_t)len);
    close(fd);
    return text;
}

void fail_each_allocation(const struct kymo__import_format *format, const void *bytes, size_t len)
{
    kymo_status status = KYMO_ENOMEM;
    for (uint64_t nth = 1; status != KYMO_OK; nth++) {
        kymo_recording *recording = NULL;
        kymo__alloc_fail_nth(nth);
        status = import_bytes(format, bytes, len, 7, &recording);
        kymo__alloc_fail_nth(0);
        assert_true(status == KYMO_OK || (status == KYMO_ENOMEM && recording == NULL));
        kymo_recording_close(recording);
        assert_true(nth < 100000);
    }
}
