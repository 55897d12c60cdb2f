/*
 * Ranks as a text that is short for the groups people have: runs of neighbours "0-3", runs with a stride "0-14:2", and
 * single numbers. It keeps the order, so that equal texts are equal groups.
 */
#include <stdio.h>
#include <stdlib.h>

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
static int put_run(FILE *out, const int *ranks, int n)
{
    int step;
    const int length = run_length(ranks, n, &step), last = ranks[length - 1];
    if (length >= 2 && step == 1)
        fprintf(out, "%d-%d", ranks[0], last);
    else if (length >= 3)
        fprintf(out, "%d-%d:%d", ranks[0], last, step);
    else {
        fprintf(out, "%d", ranks[0]);
        return 1;
    }
    return length;
}

char *mpi_ranks_text(const int *ranks, int n)
{
    char *text = NULL;
    size_t len;
    FILE *const out = open_memstream(&text, &len);
    if (out == NULL)
        return NULL;
    for (int i = 0; i < n; i += put_run(out, ranks + i, n - i))
        fputs(i > 0 ? "," : "", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
