/*
 * What files have in them that were written when marey was called kymo, until November 2026. Readers take both names;
 * nothing is written under the old one. tests/data/old-name has a sample of each kind.
 */
#ifndef MAREY_OLD_NAME_H
#define MAREY_OLD_NAME_H

#include <stddef.h>
#include <string.h>

#define MAREY__OLD_BLOCK_MAGIC 0x4b4c424bu          /* "KBLK" */
#define MAREY__OLD_POOL_MAGIC 0x3130304c4f4f504bull /* "KPOOL001" */
#define MAREY__OLD_RECORDING "\"kymo recording\""   /* the format in a meta.json */
#define MAREY__OLD_SUFFIX ".kymo"                   /* of a recording's directory */
#define MAREY__OLD_SHM "kymo-"                      /* the begin of a pool's name in /dev/shm */
#define MAREY__OLD_DUMP "kymo_dump"                 /* the version in the manifest of a dump */
#define MAREY__OLD_ABOUT "kymo"                     /* our key in a torch trace */
#define MAREY__OLD_EXPORTER "kymo "                 /* the begin of a speedscope file's exporter */

/* The length of the prefix of a phase's name in a torch trace, "marey:" or "kymo:"; 0 without one. */
static inline size_t marey__phase_prefix(const char *text, size_t len)
{
    static const char *const prefixes[] = {"marey:", "kymo:"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t n = strlen(prefixes[i]);
        if (len > n && memcmp(text, prefixes[i], n) == 0)
            return n;
    }
    return 0;
}

#endif
