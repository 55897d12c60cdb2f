/* answers: what its files share. */
#ifndef KYMO_ANSWERS_INTERNAL_H
#define KYMO_ANSWERS_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/answers.h>

struct kymo_answers {
    kymo_table *table; /* question answer command details */
    kymo_table *links; /* text file */
};

/* A stream whose bytes go to the end of `buf`; NULL with errno. Closed by fclose(). */
FILE *kymo__buf_stream(struct kymo__buf *buf);

/*
 * Append an answer: `line`, or where that is empty the first line of `details`. KYMO_ENOMEM when a buffer has failed.
 */
KYMO_WARN_UNUSED kymo_status kymo__answers_put(kymo_answers *answers, const char *question,
                                               const struct kymo__buf *line,
                                               const struct kymo__buf *details,
                                               const struct kymo__buf *command);

/* Who prints what a command prints, of what was computed. */
typedef kymo_status kymo__answer_printer(void *answer, FILE *out);
/* Append an answer whose first line is printed with the rest. */
KYMO_WARN_UNUSED kymo_status kymo__answers_print(kymo_answers *answers, const char *question,
                                                 kymo__answer_printer *print, void *answer,
                                                 const struct kymo__buf *command);
/* "kymo NAME PATH..." */
void kymo__answers_command(struct kymo__buf *command, const char *name, const char *const *paths,
                           size_t n);

#endif
