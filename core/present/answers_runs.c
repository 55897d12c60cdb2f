/* Questions to two runs: is one faster, do their numbers differ. And what printed answers share. */
#include <stdio.h>
#include <string.h>

#include "present/answers_internal.h"
#include <kymo/compare.h>
#include <kymo/diff.h>

enum { ROWS = 12 };

/* What a lack of memory loses is remembered by the buffer; whoever prints need not know. */
static ssize_t write_to_buf(void *cookie, const char *bytes, size_t n)
{
    kymo__buf_put(cookie, bytes, n);
    return (ssize_t)n;
}

FILE *kymo__buf_stream(struct kymo__buf *buf)
{
    return fopencookie(buf, "w", (cookie_io_functions_t){.write = write_to_buf});
}

kymo_status kymo__answers_print(kymo_answers *answers, const char *question,
                                kymo__answer_printer *print, void *answer,
                                const struct kymo__buf *command)
{
    struct kymo__buf line = {0}, details = {0};
    FILE *out = kymo__buf_stream(&details);
    if (out == NULL)
        return kymo__fail_errno("make an answer");
    kymo_status status = print(answer, out);
    fclose(out);
    if (status == KYMO_OK)
        status = kymo__answers_put(answers, question, &line, &details, command);
    kymo__buf_fini(&details);
    return status;
}

void kymo__answers_command(struct kymo__buf *command, const char *name, const char *const *paths,
                           size_t n)
{
    kymo__buf_printf(command, "kymo %s", name);
    for (size_t i = 0; i < n; i++)
        kymo__buf_printf(command, " %s", paths[i]);
}

/* ---- is it faster? ---- */

static kymo_status print_comparison(void *answer, FILE *out)
{
    const struct kymo_compare_text_options options = {.limit = ROWS};
    return kymo_compare_text(answer, &options, out);
}

kymo_status kymo_answers_compare(kymo_answers *answers, const char *a, const char *b)
{
    struct kymo__buf command = {0};
    kymo_comparison *comparison = NULL;
    KYMO_TRY(kymo_comparison_create(&comparison));
    kymo_status status = kymo_comparison_add(comparison, KYMO_A, a);
    if (status == KYMO_OK)
        status = kymo_comparison_add(comparison, KYMO_B, b);
    if (status == KYMO_OK)
        status = kymo_comparison_run(comparison, NULL);
    kymo__answers_command(&command, "compare", (const char *const[]){a, b}, 2);
    if (status == KYMO_OK)
        status = kymo__answers_print(answers, "Is it faster than before?", print_comparison,
                                     comparison, &command);
    kymo__buf_fini(&command);
    kymo_comparison_destroy(comparison);
    return status;
}

/* ---- are the numbers the same? ---- */

static kymo_status print_diff(void *answer, FILE *out)
{
    const struct kymo_diff_text_options options = {.limit = ROWS};
    return kymo_diff_text(answer, &options, out);
}

kymo_status kymo_answers_diff(kymo_answers *answers, const char *a, const char *b)
{
    struct kymo__buf command = {0};
    kymo_diff *diff = NULL;
    KYMO_TRY(kymo_diff_open(a, b, NULL, &diff));
    kymo__answers_command(&command, "diff", (const char *const[]){a, b}, 2);
    const kymo_status status =
        kymo__answers_print(answers, "Are the numbers still the same?", print_diff, diff, &command);
    kymo__buf_fini(&command);
    kymo_diff_close(diff);
    return status;
}
