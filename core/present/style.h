/* Lines of a report on their way to a terminal, and how it is told to write where colour is wanted. */
#ifndef KYMO_PRESENT_STYLE_H
#define KYMO_PRESENT_STYLE_H

#include <stdio.h>

#include "base/base_internal.h"
#include <kymo/table.h>

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

struct kymo__lines {
    struct kymo__buf line; /* the one that is being made */
    FILE *out;
    bool has_color;
};

static inline const char *kymo__style(const struct kymo__lines *lines, const char *code)
{
    return lines->has_color ? code : "";
}

static inline kymo_status kymo__lines_end(struct kymo__lines *lines)
{
    kymo__buf_puts(&lines->line, "\n");
    return kymo__buf_to_stream(&lines->line, lines->out);
}

/* notes.c: a line for each row of a table of texts; `apart`: with an empty line before the first. */
KYMO_WARN_UNUSED kymo_status kymo__lines_put_notes(struct kymo__lines *lines,
                                                   const kymo_table *notes);
KYMO_WARN_UNUSED kymo_status kymo__lines_put_notes_apart(struct kymo__lines *lines,
                                                         const kymo_table *notes);

/* The last line was written, with `status`; whether all of them have arrived. */
static inline kymo_status kymo__lines_close(struct kymo__lines *lines, kymo_status status)
{
    kymo__buf_fini(&lines->line);
    if (status == KYMO_OK && fflush(lines->out) != 0)
        status = kymo__fail_errno("write the report");
    return status;
}

#endif
