/*
 * deflate.h: bytes as a deflate stream (RFC 1951), for readers that have nothing else: a browser's DecompressionStream.
 *
 * deflate.c is made for columns of numbers split into planes of bytes. There, what is to be gained lies in how often each
 * byte comes and in runs of one byte, and hardly in repeats of longer pieces. So each block gets Huffman codes of its own
 * and looks for runs alone, which takes a quarter of the time of zlib's fastest level. Texts and pictures go to a library
 * where the build has one.
 */
#ifndef MAREY_DEFLATE_H
#define MAREY_DEFLATE_H

#include "base/base_internal.h"

/* A stream in the making. Zero it and set `out`, lent; running out of memory is told by out->failed. */
struct marey__deflate {
    struct marey__buf *out;
    uint64_t bits; /* not yet in `out`, the first lowest */
    uint32_t n_bits;
};

enum { MAREY__DEFLATE_BLOCK = 65535 };

/* Append a block: up to MAREY__DEFLATE_BLOCK bytes of one sort. */
void marey__deflate_block(struct marey__deflate *stream, const uint8_t *bytes, size_t n);
/* Append as many blocks as `n` bytes take. */
void marey__deflate_bytes(struct marey__deflate *stream, const void *bytes, size_t n);
/* Nothing comes any more. */
void marey__deflate_finish(struct marey__deflate *stream);

/* ---- deflate_isal.c, or deflate_zlib.c in builds without ISA-L ---- */

enum marey__deflate_effort { MAREY__DEFLATE_QUICK, MAREY__DEFLATE_SMALL };

/* Append `n` bytes as a whole stream; running out of memory is told by out->failed. */
void marey__deflate_all(struct marey__buf *out, const void *bytes, size_t n,
                        enum marey__deflate_effort effort);

/* The same in pieces: all of them one stream, which the last one ends. */
typedef struct marey__deflater marey__deflater;
/* NULL without memory. Destroy takes NULL. */
marey__deflater *marey__deflater_create(enum marey__deflate_effort effort);
void marey__deflater_destroy(marey__deflater *deflater);
/* Append what `n` bytes make, as far as it is known by now. */
void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last);

/* ---- gzip_file.c ---- */

/*
 * Write the file at `path` to `fd` as gzip, one member; a file that is gzip already as it is. `progress` may be NULL.
 * MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status marey__gzip_file(const char *path, int fd,
                                                void (*progress)(void *ctx, double share),
                                                void *progress_ctx);

/* ---- base64.c ---- */

/* Append `n` bytes as base64 (RFC 4648) with its padding. */
void marey__base64_put(struct marey__buf *out, const uint8_t *bytes, size_t n);

#endif
