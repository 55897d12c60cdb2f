/*
 * codec: bytes of files, packed or not, and the texts in them.
 *
 *   byte_source.c ── a file from its begin to its end, unpacked where it is gzip, in large pieces
 *   json_scan*.c ── JSON in one pass over such bytes, with memory that does not grow with the file
 */
#ifndef KYMO_CODEC_INTERNAL_H
#define KYMO_CODEC_INTERNAL_H

#include "base/base_internal.h"

/* ---- byte_source.c ---- */

typedef struct kymo__byte_source kymo__byte_source;

/* Open the file at `path`; gzip is known by its first bytes. KYMO_EIO; KYMO_EUNAVAILABLE: gzip in a build without. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_open(const char *path, kymo__byte_source **out);
/* The same over `len` bytes in memory, lent until close. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_open_memory(const void *bytes, size_t len,
                                                     kymo__byte_source **out);
void kymo__bytes_close(kymo__byte_source *source);
/* The first bytes without taking them, as many as are at hand, at least 4096 where the file has them. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_peek(kymo__byte_source *source, const char **bytes,
                                              size_t *len);
/* The next bytes, lent until the next call; 0 of them at the end. KYMO_EIO when the file cannot be read. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_next(kymo__byte_source *source, const char **bytes,
                                              size_t *len);
/* At the end: why the bytes stop before the file does (gzip that is cut off or damaged), or NULL. */
const char *kymo__bytes_damage(const kymo__byte_source *source);
/* How far in the file, 0..1, for progress; and how many unpacked bytes were handed out. */
double kymo__bytes_share(const kymo__byte_source *source);
uint64_t kymo__bytes_total(const kymo__byte_source *source);

#endif
