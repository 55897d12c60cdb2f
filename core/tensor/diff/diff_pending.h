/* diff_pending.c, diff_pictures.c, diff_errors.c: what waits in the dumper against an earlier dump, and the errors of it. */
#ifndef MAREY_DIFF_PENDING_H
#define MAREY_DIFF_PENDING_H

#include "tensor/diff/diff_internal.h"

/* The comparison while it goes on, and the value that is being looked at. */
struct marey__waiting {
    struct marey_diff *diff;
    struct marey__diff_side reference; /* the step of the earlier dump */
    uint8_t *was_seen;                 /* of its values */
    size_t n_seen;                     /* of the program's */
    marey_status status;

    struct marey_dumped_value value;
    struct marey_tensor tensor;
    struct marey__buf name;
    union marey__literal number, number_b; /* what a literal is, here and in the reference */
    int64_t sizes[4];                      /* of pictures */
    struct marey__diff_side side;

    /* An element of the reference that stands for a value of its own. */
    struct marey_tensor element;
    struct marey_dumped_value element_value;
    struct marey__diff_side element_side;
};

/* ---- diff_pending.c ---- */

/* The reference's value of that name, MAREY__DIFF_NONE without one; and the value that is being looked at against it. */
size_t marey__diff_find_reference(const struct marey__waiting *w, const char *name);
MAREY_WARN_UNUSED marey_status marey__diff_judge_waiting(struct marey__waiting *w, size_t reference);

/* ---- diff_pictures.c ---- */

/* Judge a value that is dumped as pictures by the pixels they would have: a file has nothing else. */
MAREY_WARN_UNUSED marey_status marey__diff_judge_pictures(struct marey__waiting *w,
                                                          const struct marey_dump_entry *entry);

/* ---- diff_errors.c ---- */

MAREY_WARN_UNUSED marey_status marey__diff_errors_create(struct marey_diff *diff);
/* The rows of a pair that differs: its largest errors, or one sentence. Value `ib` of `b` is the reference. */
MAREY_WARN_UNUSED marey_status marey__diff_put_errors(struct marey__waiting *w,
                                                      const struct marey__diff_side *b, size_t ib,
                                                      const struct marey__diff_result *result);
void marey__diff_put_alone(struct marey_diff *diff, const struct marey__diff_result *result);

#endif
