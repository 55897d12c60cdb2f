/* diff_out.c and diff_json_out.c: what the presenters of a diff share. */
#ifndef KYMO_PRESENT_DIFF_OUT_H
#define KYMO_PRESENT_DIFF_OUT_H

#include "diff/diff_internal.h"
#include "present/present_internal.h"

struct kymo__diff_answer {
    kymo_diff *diff;
    const struct kymo_diff_text_options *options;
    struct kymo__buf line;
    FILE *out;
};

/* Where the two differ first, or that they do not. */
void kymo__diff_sentence(struct kymo__buf *line, const kymo_diff *diff);
KYMO_WARN_UNUSED kymo_status kymo__diff_put_json(struct kymo__diff_answer *answer);

#endif
