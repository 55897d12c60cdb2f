/* diff_out.c and diff_json_out.c: what the presenters of a diff share. */
#ifndef MAREY_PRESENT_DIFF_OUT_H
#define MAREY_PRESENT_DIFF_OUT_H

#include "present/draw/present_internal.h"
#include "tensor/diff/diff_internal.h"

struct marey__diff_answer {
    marey_diff *diff;
    const struct marey_diff_text_options *options;
    struct marey__buf line;
    FILE *out;
};

/* Where the two differ first, or that they do not. */
void marey__diff_sentence(struct marey__buf *line, const marey_diff *diff);
MAREY_WARN_UNUSED marey_status marey__diff_put_json(struct marey__diff_answer *answer);

#endif
