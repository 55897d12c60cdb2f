/*
 * call_log: one line per call of a fake library, in the file MAREY_TEST_NVTX_LOG.
 *
 * A line is a JSON object: {"pid": 7, "tid": 7, "call": "push", ...}. It is appended by one write, so that the lines of
 * several libraries, threads and processes lie in the order of the calls and never run into one another. Without the
 * variable nothing is written.
 */
#ifndef MAREY_TESTS_CALL_LOG_H
#define MAREY_TESTS_CALL_LOG_H

#include <stddef.h>

enum { CALL_LINE_MAX = 1 << 16 };

/* A line under construction. Excess is dropped. */
struct call_line {
    size_t len;
    char text[CALL_LINE_MAX];
};

void call_line_begin(struct call_line *line, const char *call);
/* Add a field: a text (NULL becomes null), or a number as printf writes it. */
void call_line_text(struct call_line *line, const char *key, const char *text, size_t len);
void call_line_number(struct call_line *line, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_line_write(struct call_line *line);

#endif
