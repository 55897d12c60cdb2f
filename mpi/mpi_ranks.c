/*
 * Ranks as a string that is short for typical groups: runs of neighbors "0-3", runs with a stride "0-14:2", and single
 * numbers. Preserves the order, so that equal strings mean equal groups.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mpi_internal.h"

/* How many ranks from the first on increase by the same step, at least 1. */
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

/* Writes the next run, or one rank. Returns how many ranks it covers. */
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
