/* diff_pending.c, diff_pictures.c, diff_errors.c: what waits in the dumper against an earlier dump, and the errors of it. */
#ifndef KYMO_DIFF_PENDING_H
#define KYMO_DIFF_PENDING_H

#include "diff/diff_internal.h"

/* The comparison while it goes on, and the value that is being looked at. */
struct kymo__waiting {
    struct kymo_diff *diff;
    struct kymo__diff_side reference; /* the step of the earlier dump */
    uint8_t *was_seen;                /* of its values */
    size_t n_seen;                    /* of the program's */
    kymo_status status;

    struct kymo_dumped_value value;
    struct kymo_tensor tensor;
    struct kymo__buf name;
    union kymo__literal number, number_b; /* what a literal is, here and in the reference */
    int64_t sizes[4];                     /* of pictures */
    struct kymo__diff_side side;

    /* An element of the reference that stands for a value of its own. */
    struct kymo_tensor element;
    struct kymo_dumped_value element_value;
    struct kymo__diff_side element_side;
};

/* ---- diff_pending.c ---- */

/* The reference's value of that name, KYMO__DIFF_NONE without one; and the value that is being looked at against it. */
size_t kymo__diff_find_reference(const struct kymo__waiting *w, const char *name);
KYMO_WARN_UNUSED kymo_status kymo__diff_judge_waiting(struct kymo__waiting *w, size_t reference);

/* ---- diff_pictures.c ---- */

/* Judge a value that is dumped as pictures by the pixels they would have: a file has nothing else. */
KYMO_WARN_UNUSED kymo_status kymo__diff_judge_pictures(struct kymo__waiting *w,
                                                       const struct kymo_dump_entry *entry);

/* ---- diff_errors.c ---- */

KYMO_WARN_UNUSED kymo_status kymo__diff_errors_create(struct kymo_diff *diff);
/* The rows of a pair that differs: its largest errors, or one sentence. Value `ib` of `b` is the reference. */
KYMO_WARN_UNUSED kymo_status kymo__diff_put_errors(struct kymo__waiting *w,
                                                   const struct kymo__diff_side *b, size_t ib,
                                                   const struct kymo__diff_result *result);
void kymo__diff_put_alone(struct kymo_diff *diff, const struct kymo__diff_result *result);

#endif
