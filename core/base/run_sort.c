/*
 * A merge sort over existing runs. Streams of a device and threads of a process are each in order, so there are few
 * runs, and the cost grows with the logarithm of their number. Any other input is sorted too.
 */
#include "base/internal.h"

struct sort {
    size_t size;
    marey__is_before *is_before;
};

static const char *at(const struct sort *sort, const char *base, size_t i)
{
    return base + i * sort->size;
}

/* The end of the run that begins at `from`. */
static size_t end_of_run(const struct sort *sort, const char *base, size_t from, size_t n)
{
    size_t i = from + 1;
    while (i < n && !sort->is_before(at(sort, base, i), at(sort, base, i - 1)))
        i++;
    return MAREY__MIN(i, n);
}

/* Merges [from, middle) and [middle, end) of `in` into `out`. Stable. */
static void merge(const struct sort *sort, const char *in, char *out, size_t from, size_t middle,
                  size_t end)
{
    size_t a = from, b = middle;
    for (size_t i = from; i < end; i++) {
        const bool takes_b =
            b < end && (a == middle || sort->is_before(at(sort, in, b), at(sort, in, a)));
        memcpy(out + i * sort->size, at(sort, in, takes_b ? b++ : a++), sort->size);
    }
}

/* Merges pairs of runs of `in` into `out`. Returns the number of runs left. */
static size_t merge_pass(const struct sort *sort, const char *in, char *out, size_t n)
{
    size_t n_runs = 0;
    for (size_t from = 0; from < n; n_runs++) {
        const size_t middle = end_of_run(sort, in, from, n);
        const size_t end = middle < n ? end_of_run(sort, in, middle, n) : n;
        merge(sort, in, out, from, middle, end);
        from = end;
    }
    return n_runs;
}

bool marey__sort_runs(void *base, size_t n, size_t size, marey__is_before *is_before)
{
    const struct sort sort = {size, is_before};
    if (n == 0 || end_of_run(&sort, base, 0, n) == n)
        return true;
    char *other = marey__alloc(n * size);
    if (other == NULL)
        return false;
    char *in = base, *out = other;
    size_t n_runs;
    do {
        n_runs = merge_pass(&sort, in, out, n);
        char *was = in;
        in = out;
        out = was;
    } while (n_runs > 1);
    if (in != base)
        memcpy(base, in, n * size);
    marey__free(other);
    return true;
}
