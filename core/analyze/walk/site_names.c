/* Meaning of names and sites: the name filter, waits, identity of a site. */
#include <fnmatch.h>

#include "analyze/walk/internal.h"

bool marey__name_matches(const char *filter, const char *name, size_t len)
{
    if (filter == NULL)
        return true;
    if (strpbrk(filter, "*?[") != NULL)
        return fnmatch(filter, name, 0) == 0;
    return memmem(name, len, filter, strlen(filter)) != NULL;
}

bool marey__name_is_wait(const char *name, size_t len)
{
    static const char *const words[] = {"wait",      "barrier", "synchroniz",     "all_reduce",
                                        "allreduce", "nccl",    "all_gather",     "allgather",
                                        "mpi_",      "gloo",    "reduce_scatter", "all_to_all"};
    for (size_t at = 0; at < len; at++)
        for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
            if (strncasecmp(name + at, words[i], MAREY__MIN(strlen(words[i]), len - at)) == 0 &&
                len - at >= strlen(words[i]))
                return true;
    return false;
}

void marey__site_key(struct marey__buf *key, const struct marey_site_info *site)
{
    key->len = 0;
    marey__buf_put(key, &site->name_len, sizeof site->name_len); /* a name may contain NULs */
    marey__buf_put(key, site->name, site->name_len);
    marey__buf_put(key, "", 1);
    marey__buf_put(key, site->category, strlen(site->category) + 1);
    marey__buf_put(key, site->domain, strlen(site->domain) + 1);
    marey__buf_put(key, site->file, strlen(site->file) + 1);
    marey__buf_put(key, &site->line, sizeof site->line);
    marey__buf_put(key, &site->color, sizeof site->color);
}

size_t marey__function_name_len(const struct marey_site_info *site)
{
    const char *const open = site->file[0] != '\0' ? strstr(site->name, " (") : NULL;
    const char *const file = marey__base_name(site->file);
    const bool is_added = open != NULL && open != site->name && strstr(open, file) != NULL &&
                          site->name[site->name_len - 1] == ')';
    return is_added ? (size_t)(open - site->name) : site->name_len;
}
