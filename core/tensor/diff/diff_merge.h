/* diff_merge.c: the ranks of a step as one. */
#ifndef MAREY_DIFF_MERGE_H
#define MAREY_DIFF_MERGE_H

#include "tensor/diff/diff_internal.h"

struct marey__diff_merged;
/*
 * Make one side of those of `n_ranks`, which are lent until it is closed, by what `like`, the other side, has. `side` is
 * lent until it is closed.
 */
MAREY_WARN_UNUSED marey_status marey__diff_merge_open(const struct marey__diff_side *ranks,
                                                      size_t n_ranks,
                                                      const struct marey__diff_side *like,
                                                      const struct marey_diff_options *options,
                                                      struct marey__diff_merged **out,
                                                      struct marey__diff_side *side);
void marey__diff_merge_close(struct marey__diff_merged *merged);

#endif
