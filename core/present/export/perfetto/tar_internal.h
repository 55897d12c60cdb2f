/* A TAR archive through marey__out; tar.c explains how sizes get before the bytes they count. */
#ifndef MAREY_TAR_INTERNAL_H
#define MAREY_TAR_INTERNAL_H

#include "present/export/internal.h"

#define MAREY__TAR_BLOCK 512u
/* The longest name of an entry, including its terminator. */
#define MAREY__TAR_NAME 100u

struct marey__tar {
    struct marey__out *out;
    int fd;            /* of the archive; the same as out's */
    int spool;         /* temporary file for the open entry; -1: headers are rewritten instead */
    uint64_t base;     /* offset of the archive in its file */
    uint64_t entry_at; /* the open entry's first byte, in marey__out_tell's numbers */
    uint64_t mtime_s;
    char name[MAREY__TAR_NAME];
};

/* `out` is borrowed until marey__tar_fini and must be empty. */
MAREY_WARN_UNUSED marey_status marey__tar_init(struct marey__tar *tar, struct marey__out *out);
void marey__tar_fini(struct marey__tar *tar);
/*
 * An entry of `len` bytes. Names are truncated to MAREY__TAR_NAME; `mtime_s` is in seconds since
 * 1970.
 */
void marey__tar_put(struct marey__tar *tar, const char *name, uint64_t mtime_s, const void *bytes,
                    size_t len);
/* Everything put into `out` between these two calls is the entry. */
MAREY_WARN_UNUSED marey_status marey__tar_open(struct marey__tar *tar, const char *name,
                                               uint64_t mtime_s);
MAREY_WARN_UNUSED marey_status marey__tar_close(struct marey__tar *tar);
/* Call after the last entry. */
void marey__tar_finish(struct marey__tar *tar);

#endif
