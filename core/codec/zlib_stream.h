/*
 * zlib_stream.h: whole streams of zlib's format (RFC 1950) and of gzip's (RFC 1952) in memory, and the checksums of PNG.
 *
 *   zlib_stream.c ── packed;  zlib_isal.c or zlib_zlib.c ── the rest
 */
#ifndef MAREY_ZLIB_STREAM_H
#define MAREY_ZLIB_STREAM_H

#include "base/base_internal.h"

/* Append `n` bytes packed, quickly rather than small. Running out of memory is told by out->failed. */
void marey__zlib_pack(struct marey__buf *out, const uint8_t *bytes, size_t n);

/* Append `n` bytes as a gzip file, small rather than quickly; the same of failure. */
void marey__gzip_pack(struct marey__buf *out, const void *bytes, size_t n);

/* Unpack to `out`; false unless the stream is sound and has exactly `n` bytes. */
MAREY_WARN_UNUSED bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n);
/* CRC-32 of PNG and gzip, the running value starting from 0. */
uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n);
/* Adler-32 of a whole. */
uint32_t marey__adler32(const uint8_t *bytes, size_t n);

#endif
