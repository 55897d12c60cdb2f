/* The lines of the report: rows of the stopwatch's tables as people read them. */
#ifndef MAREY_STOPWATCH_LINES_H
#define MAREY_STOPWATCH_LINES_H

#include "instrument/stopwatch/stopwatch_internal.h"

/* A table of the stopwatch while it is being printed. */
struct marey__lines {
    marey_table *table;
    size_t width; /* of the widest name, with its quotes and the colon */
};

/* Destroy the table at the end. */
MAREY_WARN_UNUSED marey_status marey__lines_open(struct marey__lines *lines, const char *name);

/* `n` times `text`; the same as a line; the report's two kinds of rules. */
void marey__line_repeat(struct marey__buf *out, const char *text, int n);
void marey__line_rule(struct marey__buf *out, const char *text, int n);
void marey__line_separator(struct marey__buf *out);
void marey__line_divider(struct marey__buf *out);

/* The name in its quotes, as wide as the widest; a time, ten columns wide, 0 where there is none. */
void marey__line_name(struct marey__buf *out, const struct marey__lines *lines, size_t row);
void marey__line_time(struct marey__buf *out, const struct marey__lines *lines, size_t row,
                      const char *column);
struct marey_cell marey__line_cell(const struct marey__lines *lines, size_t row, const char *column);
bool marey__line_runs(const struct marey__lines *lines, size_t row);

#endif
