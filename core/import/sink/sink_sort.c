/*
 * A stable sort for nearly sorted lists: a thread's events come as a few long ascending runs (one per kind of event),
 * or with each range right after those inside it. Finds existing runs, extends short ones by insertion, and merges
 * neighbors when the left one is less than twice as long as the right one.
 */
#include "import/sink/internal.h"

enum { MIN_RUN = 24, MOST_RUNS = 80 };

typedef struct marey__sink_entry entry;

static void reverse(entry *at, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const entry kept = at[i];
        at[i] = at[n - 1 - i];
        at[n - 1 - i] = kept;
    }
}

/* Length of the sorted run at the start; a strictly descending one is reversed. */
static size_t find_run(entry *at, size_t n)
{
    size_t len = 1;
    if (n < 2)
        return n;
    if (marey__entry_is_before(&at[1], &at[0])) {
        while (len < n && marey__entry_is_before(&at[len], &at[len - 1]))
            len++;
        reverse(at, len);
        return len;
    }
    while (len < n && !marey__entry_is_before(&at[len], &at[len - 1]))
        len++;
    return len;
}

/* The first `sorted` of `n` are in order; insert the others. */
static void insert(entry *at, size_t sorted, size_t n)
{
    for (size_t i = sorted; i < n; i++) {
        const entry one = at[i];
        size_t to = i;
        for (; to > 0 && marey__entry_is_before(&one, &at[to - 1]); to--)
            at[to] = at[to - 1];
        at[to] = one;
    }
}

/* How many of `n` sorted entries do not come after `one`. */
static size_t count_not_behind(const entry *at, size_t n, const entry *one)
{
    size_t i;
    MAREY__BISECT(i, 0, n, !marey__entry_is_before(one, &at[i]));
    return i;
}

/* Merge `n_left` entries and the `n_right` after them. */
static void merge(entry *at, size_t n_left, size_t n_right, entry *scratch)
{
    const size_t n_settled = count_not_behind(at, n_left, &at[n_left]);
    at += n_settled;
    n_left -= n_settled;
    if (n_left == 0)
        return;
    memcpy(scratch, at, n_left * sizeof *at);
    const entry *left = scratch, *left_end = scratch + n_left, *right = at + n_left,
                *right_end = right + n_right;
    while (left < left_end && right < right_end)
        *at++ = marey__entry_is_before(right, left) ? *right++ : *left++;
    if (left < left_end)
        memcpy(at, left, (size_t)(left_end - left) * sizeof *at);
}

void marey__entries_sort(struct marey__sink_entry *entries, size_t n,
                         struct marey__sink_entry *scratch)
{
    size_t lengths[MOST_RUNS], n_runs = 0; /* each more than half of the one before: few */
    for (size_t done = 0; done < n;) {
        size_t length = find_run(entries + done, n - done);
        if (length < MIN_RUN) {
            const size_t longer = MAREY__MIN((size_t)MIN_RUN, n - done);
            insert(entries + done, length, longer);
            length = longer;
        }
        done += length;
        MAREY_ASSERT(n_runs < MOST_RUNS);
        lengths[n_runs++] = length;
        size_t start = done - length;
        while (n_runs > 1 && (done == n || lengths[n_runs - 2] < 2 * lengths[n_runs - 1])) {
            start -= lengths[n_runs - 2];
            merge(entries + start, lengths[n_runs - 2], lengths[n_runs - 1], scratch);
            lengths[n_runs - 2] += lengths[n_runs - 1];
            n_runs--;
        }
    }
}
