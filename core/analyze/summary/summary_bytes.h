/*
 * A merge as bytes, for another process that goes on with it. The bytes are of one version of marey, and nothing that
 * is
 * kept: "MAREYPRT", a version, the content as numbers (LEB128), doubles and texts, and a CRC-32C of all before it.
 */
#ifndef MAREY_SUMMARY_BYTES_H
#define MAREY_SUMMARY_BYTES_H

#include "analyze/summary/internal.h"

/* What a merge that came as bytes lends its texts from; fini when nobody has a pointer into it any more. */
struct marey__lender {
    struct marey__arena texts;
    void **blocks; /* of processes and lanes, which stay where they are */
    size_t n, cap;
};
void marey__lender_fini(struct marey__lender *lender);

/* Append the merge, which is not finished (marey__merge_finish); `out->failed` without memory. */
void marey__merge_pack(struct marey__merge *merge, struct marey__buf *out);
/*
 * Make a merge, initialised and empty, of such bytes, which are checked like any that come from outside. MAREY_EFORMAT
 * when they are not a merge, or one of another version; the merge is then good for marey__merge_fini alone.
 */
MAREY_WARN_UNUSED marey_status marey__merge_unpack(struct marey__merge *merge,
                                                   struct marey__lender *lender, const void *bytes,
                                                   size_t len);

#endif
