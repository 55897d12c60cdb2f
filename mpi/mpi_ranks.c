/*
 * Ranks as a text that is short for the groups people have: runs of neighbours "0-3", runs with a stride "0-14:2", and
 * single numbers. It keeps the order, so that equal texts are equal groups.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_internal.h"

/* How many ranks from the first on go up by the same step, which is at least 1. */
static int run_length(const int *ranks, int n, int *step)
{
    int length = 1;
    *step = n > 1 ? ranks[1] - ranks[0] : 1;
    if (*step < 1)
        return 1;
    while (length < n && ranks[length] - ranks[length - 1] == *step)
        length++;
    return length;
}

/* Write the next run, or one rank; how many ranks it was. */
static int put_run(char *out, size_t size, const int *ranks, int n)
{
    int step;
    const int length = run_length(ranks, n, &step), last = ranks[length - 1];
    if (length >= 2 && step == 1)
        snprintf(out, size, "%d-%d", ranks[0], last);
    else if (length >= 3)
        snprintf(out, size, "%d-%d:%d", ranks[0], last, step);
    else {
        snprintf(out, size, "%d", ranks[0]);
        return 1;
    }
    return length;
}

char *mpi_ranks_text(const int *ranks, int n)
{
    enum { RUN_BYTES = 40 };
    char *text = calloc(1, 1);
    size_t len = 0;
    for (int i = 0; i < n && text != NULL;) {
        char *longer = realloc(text, len + RUN_BYTES);
        if (longer == NULL) {
            free(text);
            return NULL;
        }
        text = longer;
        if (i > 0)
            text[len++] = ',';
        i += put_run(text + len, RUN_BYTES - 1, ranks + i, n - i);
        len += strlen(text + len);
    }
    return text;
}
