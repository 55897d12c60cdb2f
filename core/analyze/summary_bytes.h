/*
 * A merge as bytes, for another process that goes on with it. The bytes are of one version of kymo, and nothing that is
 * kept: "KYMOPART", a version, the content as numbers (LEB128), doubles and texts, and a CRC-32C of all before it.
 */
#ifndef KYMO_SUMMARY_BYTES_H
#define KYMO_SUMMARY_BYTES_H

#include "analyze/analyze_internal.h"

/* What a merge that came as bytes lends its texts from; fini when nobody has a pointer into it any more. */
struct kymo__lender {
    struct kymo__arena texts;
    void **blocks; /* of processes and lanes, which stay where they are */
    size_t n, cap;
};
void kymo__lender_fini(struct kymo__lender *lender);

/* Append the merge, which is not finished (kymo__merge_finish); `out->failed` without memory. */
void kymo__merge_pack(struct kymo__merge *merge, struct kymo__buf *out);
/*
 * Make a merge, initialised and empty, of such bytes, which are checked like any that come from outside. KYMO_EFORMAT
 * when they are not a merge, or one of another version; the merge is then good for kymo__merge_fini alone.
 */
KYMO_WARN_UNUSED kymo_status kymo__merge_unpack(struct kymo__merge *merge,
                                                struct kymo__lender *lender, const void *bytes,
                                                size_t len);

#endif
