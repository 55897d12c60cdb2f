/* A TAR archive through kymo__out; tar.c tells how sizes get in front of what they count. */
#ifndef KYMO_TAR_INTERNAL_H
#define KYMO_TAR_INTERNAL_H

#include "present/export_internal.h"

#define KYMO__TAR_BLOCK 512u
/* The longest name of an entry, its terminator counted. */
#define KYMO__TAR_NAME 100u

struct kymo__tar {
    struct kymo__out *out;
    int fd;        /* where the archive goes; out's */
    int spool;     /* a temporary file for the open entry; -1: headers are written again instead */
    uint64_t base; /* offset of the archive in its file */
    uint64_t entry_at; /* the open entry's first byte, as kymo__out_tell counts */
    uint64_t mtime_s;
    char name[KYMO__TAR_NAME];
};

/* `out` is lent until kymo__tar_fini, and nothing was put into it yet. */
KYMO_WARN_UNUSED kymo_status kymo__tar_init(struct kymo__tar *tar, struct kymo__out *out);
void kymo__tar_fini(struct kymo__tar *tar);
/* An entry of `len` bytes. Names are cut to KYMO__TAR_NAME; `mtime_s` is in seconds since 1970. */
void kymo__tar_put(struct kymo__tar *tar, const char *name, uint64_t mtime_s, const void *bytes,
                   size_t len);
/* Whatever is put into `out` between these two is the entry. */
KYMO_WARN_UNUSED kymo_status kymo__tar_open(struct kymo__tar *tar, const char *name,
                                            uint64_t mtime_s);
KYMO_WARN_UNUSED kymo_status kymo__tar_close(struct kymo__tar *tar);
/* Behind the last entry. */
void kymo__tar_finish(struct kymo__tar *tar);

#endif
