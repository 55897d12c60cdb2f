/* Names to numbers, and the filter on names. */
#include <fnmatch.h>
#include <string.h>

#include "analyze/walk/internal.h"

/*
 * FNV-1a over eight bytes at a time, mixed at the end: names are short, and this runs once for each
 * site.
 */
static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ len;
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t part;
        memcpy(&part, text, 8);
        h = (h ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    for (; len > 0; text++, len--)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static uint32_t find(const struct marey__names *names, const char *text, size_t len, uint32_t hash)
{
    size_t at = hash;
    for (uint32_t n; (n = marey__index_next(&names->by_hash, hash, &at)) != 0;)
        if (names->names[n - 1].len == len &&
            (len == 0 || memcmp(names->names[n - 1].text, text, len) == 0))
            return n - 1;
    return MAREY__NO_NAME;
}

uint32_t marey__names_find(const struct marey__names *names, const char *text, size_t len)
{
    return find(names, text, len, (uint32_t)hash_of(text, len));
}

uint32_t marey__names_number(struct marey__names *names, const char *text, size_t len)
{
    const uint64_t hash = hash_of(text, len);
    const uint32_t found = find(names, text, len, (uint32_t)hash);
    if (found != MAREY__NO_NAME)
        return found;
    if (!marey__grow(&names->names, &names->cap, names->n + 1, sizeof *names->names) ||
        !marey__index_put(&names->by_hash, (uint32_t)hash, (uint32_t)names->n + 1))
        return MAREY__NO_NAME;
    names->names[names->n] = (struct marey__name){text, len, hash};
    return (uint32_t)names->n++;
}

uint32_t marey__names_keep(struct marey__names *names, struct marey__arena *texts, const char *text,
                           size_t len)
{
    const uint32_t known = marey__names_find(names, text, len);
    const char *const kept = known == MAREY__NO_NAME ? marey__arena_text(texts, text, len) : NULL;
    return kept != NULL ? marey__names_number(names, kept, len) : known;
}

int marey__names_compare(const struct marey__names *names, uint32_t a, uint32_t b)
{
    const struct marey__name *x = &names->names[a], *y = &names->names[b];
    const int order = memcmp(x->text, y->text, MAREY__MIN(x->len, y->len));
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

void marey__names_fini(struct marey__names *names)
{
    marey__free(names->names);
    marey__index_fini(&names->by_hash);
    *names = (struct marey__names){0};
}

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
    marey__buf_put(key, &site->name_len, sizeof site->name_len); /* a name may have NULs in it */
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
