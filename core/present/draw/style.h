/* Lines of a report on their way to a terminal, and how it is told to write where colour is wanted. */
#ifndef MAREY_PRESENT_STYLE_H
#define MAREY_PRESENT_STYLE_H

#include <stdio.h>

#include "base/table_internal.h"
#include <marey/table.h>

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

struct marey__lines {
    struct marey__buf line; /* the one that is being made */
    FILE *out;
    bool has_color;
};

static inline const char *marey__style(const struct marey__lines *lines, const char *code)
{
    return lines->has_color ? code : "";
}

static inline marey_status marey__lines_end(struct marey__lines *lines)
{
    marey__buf_puts(&lines->line, "\n");
    return marey__buf_to_stream(&lines->line, lines->out);
}

/* notes.c: a line for each row of a table of texts; `apart`: with an empty line before the first. */
MAREY_WARN_UNUSED marey_status marey__lines_put_notes(struct marey__lines *lines,
                                                      const marey_table *notes);
MAREY_WARN_UNUSED marey_status marey__lines_put_notes_apart(struct marey__lines *lines,
                                                            const marey_table *notes);

/* The last line was written, with `status`; whether all of them have arrived. */
static inline marey_status marey__lines_close(struct marey__lines *lines, marey_status status)
{
    marey__buf_fini(&lines->line);
    if (status == MAREY_OK && fflush(lines->out) != 0)
        status = marey__fail_errno("write the report");
    return status;
}

#endif
