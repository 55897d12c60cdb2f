/* Strings to numbers. */
#include "base/internal.h"

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
    return find(names, text, len, (uint32_t)marey__hash_bytes(names->seed, text, len));
}

uint32_t marey__names_number(struct marey__names *names, const char *text, size_t len)
{
    const uint32_t hash = (uint32_t)marey__hash_bytes(names->seed, text, len);
    const uint32_t found = find(names, text, len, hash);
    if (found != MAREY__NO_NAME)
        return found;
    if (!marey__grow(&names->names, &names->cap, names->n + 1, sizeof *names->names) ||
        !marey__index_put(&names->by_hash, hash, (uint32_t)names->n + 1))
        return MAREY__NO_NAME;
    names->names[names->n] = (struct marey__name){text, len};
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
