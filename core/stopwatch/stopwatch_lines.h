/* The lines of the report: rows of the stopwatch's tables as people read them. */
#ifndef KYMO_STOPWATCH_LINES_H
#define KYMO_STOPWATCH_LINES_H

#include "stopwatch/stopwatch_internal.h"

/* A table of the stopwatch while it is being printed. */
struct kymo__lines {
    kymo_table *table;
    size_t width; /* of the widest name, with its quotes and the colon */
};

/* Destroy the table at the end. */
KYMO_WARN_UNUSED kymo_status kymo__lines_open(struct kymo__lines *lines, const char *name);

/* `n` times `text`; the same as a line; the report's two kinds of rules. */
void kymo__line_repeat(struct kymo__buf *out, const char *text, int n);
void kymo__line_rule(struct kymo__buf *out, const char *text, int n);
void kymo__line_separator(struct kymo__buf *out);
void kymo__line_divider(struct kymo__buf *out);

/* The name in its quotes, as wide as the widest; a time, ten columns wide, 0 where there is none. */
void kymo__line_name(struct kymo__buf *out, const struct kymo__lines *lines, size_t row);
void kymo__line_time(struct kymo__buf *out, const struct kymo__lines *lines, size_t row,
                     const char *column);
struct kymo_cell kymo__line_cell(const struct kymo__lines *lines, size_t row, const char *column);
bool kymo__line_runs(const struct kymo__lines *lines, size_t row);

#endif
