/*
 * intern: names to numbers, for good. A site is a name with its place, category, domain and colour; equal content gives
 * an equal id. Finding a known site takes no lock; a new one takes `intern.lock` and is told to the listener.
 */
#ifndef MAREY_INTERN_INTERNAL_H
#define MAREY_INTERN_INTERNAL_H

#include "base/base_internal.h"
#include <marey/range.h>

enum {
    MAREY__SITE_OTHER = 1,        /* "(other names)": what comes after the last free id */
    MAREY__SITE_LIMIT = 1u << 20, /* ids are 20 bits */
    MAREY__NAME_MAX = 1u << 20,   /* bytes of a name that are kept */
};

/* Never changed and never freed once it has an id. Texts are NUL-terminated besides their length, never NULL. */
struct marey__site {
    marey_id id;
    uint32_t hash;
    uint32_t line, color;
    uint32_t name_len;
    const char *name, *category, *domain, *file;
};

/* The site's texts are lent; its id and hash are ignored; NULL texts count as "". Never 0. */
marey_id marey__intern(const struct marey__site *lent);

/* NULL for an id that was never given. */
const struct marey__site *marey__intern_get(marey_id id);
/* Ids given so far, from 1. */
uint32_t marey__intern_count(void);
/* How many asked for an id when there was none left. */
uint64_t marey__intern_n_other(void);

/*
 * Call `listener` for each site from id 1 on, then once with NULL, then for each new site as it comes, always with the
 * lock held, until it is replaced. A NULL listener stops that. The listener must not intern. If it answers the NULL with
 * false, it could not take what is known: it hears no more, and false comes back.
 */
typedef bool marey__site_listener(const struct marey__site *site);
bool marey__intern_listen(marey__site_listener *listener);

/* ---- handle.c: numbers that are the same in every process ---- */

/* The handle of `name` (copied), which is known from now on. 1 to 2^63-1. */
uint64_t marey__handle_of(const char *name, size_t len);
/* 0 for a handle that nobody asked for. No lock. */
marey_id marey__handle_id(uint64_t handle);
void marey__handles_before_fork(void);
void marey__handles_after_fork(void);

/* Around fork: the child must not inherit a table in the middle of a change. */
void marey__intern_before_fork(void);
void marey__intern_after_fork(bool in_child);

#endif
