/* diff_merge.c: the ranks of a step as one. */
#ifndef KYMO_DIFF_MERGE_H
#define KYMO_DIFF_MERGE_H

#include "diff/diff_internal.h"

struct kymo__diff_merged;
/*
 * Make one side of those of `n_ranks`, which are lent until it is closed, by what `like`, the other side, has. `side` is
 * lent until it is closed.
 */
KYMO_WARN_UNUSED kymo_status kymo__diff_merge_open(const struct kymo__diff_side *ranks,
                                                   size_t n_ranks, const struct kymo__diff_side *like,
                                                   const struct kymo_diff_options *options,
                                                   struct kymo__diff_merged **out,
                                                   struct kymo__diff_side *side);
void kymo__diff_merge_close(struct kymo__diff_merged *merged);

#endif
