/* Foreign files, written in a test, as recordings: what their tests share. */
#ifndef MAREY_TEST_IMPORTING_H
#define MAREY_TEST_IMPORTING_H

#include "import/internal.h"
#include <marey/report.h>

/* How files are read; zeroed at first. */
extern struct marey_import_options import_wants;

/*
 * Read `len` bytes as a file "a.file", in pieces of `cut` bytes (0: at once). On MAREY_OK the
 * caller closes the recording.
 */
marey_status import_bytes(const struct marey__import_format *format, const void *bytes, size_t len,
                          size_t cut, marey_recording **out);
/* The same for a string that must be valid. */
marey_recording *import_text(const struct marey__import_format *format, const char *text);

/* Its summary, closing the recording; destroy it. */
marey_report *summary_of(marey_recording *recording);
/* Check count, total and self of a row of the ranges. */
void expect_range(marey_report *summary, const char *name, uint64_t count, uint64_t total_ns,
                  uint64_t self_ns);
void expect_no_range(marey_report *summary, const char *name);
/* A line below the report that has `part` in it. */
void expect_warning(marey_report *summary, const char *part);

/* What an export of the recording to `format` holds; free it with free. */
char *exported_text(marey_recording *recording, const char *format);

/* Fail each allocation in turn while `bytes` are read. */
void fail_each_allocation(const struct marey__import_format *format, const void *bytes, size_t len);

#endif
