/*
 * deflate.h: bytes as a deflate stream (RFC 1951), for readers that have nothing else: a browser's DecompressionStream.
 *
 * deflate.c is made for columns of numbers split into planes of bytes. There, what is to be gained lies in how often each
 * byte comes and in runs of one byte, and hardly in repeats of longer pieces. So each block gets Huffman codes of its own
 * and looks for runs alone, which takes a quarter of the time of zlib's fastest level. Texts and pictures go to a library
 * where the build has one.
 */
#ifndef KYMO_DEFLATE_H
#define KYMO_DEFLATE_H

#include "base/base_internal.h"

/* A stream in the making. Zero it and set `out`, lent; running out of memory is told by out->failed. */
struct kymo__deflate {
    struct kymo__buf *out;
    uint64_t bits; /* not yet in `out`, the first lowest */
    uint32_t n_bits;
};

enum { KYMO__DEFLATE_BLOCK = 65535 };

/* Append a block: up to KYMO__DEFLATE_BLOCK bytes of one sort. */
void kymo__deflate_block(struct kymo__deflate *stream, const uint8_t *bytes, size_t n);
/* Append as many blocks as `n` bytes take. */
void kymo__deflate_bytes(struct kymo__deflate *stream, const void *bytes, size_t n);
/* Nothing comes any more. */
void kymo__deflate_finish(struct kymo__deflate *stream);

/* ---- deflate_isal.c, deflate_zlib.c, deflate_plain.c: one of them, as the build found it ---- */

enum kymo__deflate_effort { KYMO__DEFLATE_QUICK, KYMO__DEFLATE_SMALL };

/* Append `n` bytes as a whole stream; running out of memory is told by out->failed. */
void kymo__deflate_all(struct kymo__buf *out, const void *bytes, size_t n,
                       enum kymo__deflate_effort effort);

/* ---- base64.c ---- */

/* Append `n` bytes as base64 (RFC 4648) with its padding. */
void kymo__base64_put(struct kymo__buf *out, const uint8_t *bytes, size_t n);

#endif
