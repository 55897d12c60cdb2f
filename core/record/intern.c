/*
 * A grow-only hash table. Readers follow `table` with acquire and probe; the only writer, under the lock, fills a slot
 * with release, or swaps in a table of twice the size. Old tables are kept (together they are no larger than the
 * current one), because readers may still be probing them.
 *
 *   by hash:  table -> slots[hash & mask] -> struct marey__site      by id:  pages[id / 1024][id % 1024]
 */
#include <pthread.h>
#include <string.h>

#include "record/internal.h"

enum { PAGE_SITES = 1024, N_PAGES = MAREY__SITE_LIMIT / PAGE_SITES };

struct table {
    struct table *older; /* smaller ones, kept for readers that still use them */
    uint32_t mask;
    const struct marey__site *slots[]; /* stored with release, loaded with acquire */
};

static struct {
    pthread_mutex_t lock; /* guards writes to the fields below; readers take no lock */
    struct table *table;  /* release / acquire */
    const struct marey__site **pages[N_PAGES];
    uint32_t n_sites; /* release / acquire: pages are filled below it */
    uint64_t n_other;
    marey__site_listener *listener;
} intern = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct marey__site other_names = {.id = MAREY__SITE_OTHER,
                                               .name = "(other names)",
                                               .name_len = 13,
                                               .category = "",
                                               .domain = "",
                                               .file = ""};

/* Up to seven bytes as a number, with loads of fixed size: a memcpy of variable length would be a call. */
static uint64_t load_rest(const unsigned char *p, size_t len)
{
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + len - 4, 4);
        return first | (uint64_t)last << 32;
    }
    return len > 0 ? p[0] | (uint64_t)p[len / 2] << 8 | (uint64_t)p[len - 1] << 16 : 0;
}

static uint32_t mix(uint32_t h, const void *bytes, size_t len)
{
    /* Multiply and fold, eight bytes at a time: fast for short names. */
    const unsigned char *p = bytes;
    uint64_t x = h ^ (len * 0x9e3779b97f4a7c15u);
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        x = (x ^ v) * 0xff51afd7ed558ccdu;
        x ^= x >> 32;
    }
    x = (x ^ load_rest(p, len)) * 0xff51afd7ed558ccdu;
    /*
     * The low bits of a product do not depend on its factors' high bits, the last letters: fold, and use the high half.
     */
    return (uint32_t)((x ^ (x >> 32)) * 0xc4ceb9fe1a85ec53u >> 32);
}

static uint32_t hash_site(const struct marey__site *s)
{
    uint32_t h = mix(s->line * 31 + s->color, s->name, s->name_len);
    if (s->category[0] != '\0')
        h = mix(h, s->category, strlen(s->category));
    if (s->domain[0] != '\0')
        h = mix(h, s->domain, strlen(s->domain));
    return h; /* the file is not hashed: sites rarely differ only in it, and same_site() compares it */
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a[0] == b[0] && (a[0] == '\0' || strcmp(a, b) == 0));
}

static bool same_site(const struct marey__site *a, const struct marey__site *b)
{
    return a->hash == b->hash && a->name_len == b->name_len && a->line == b->line &&
           a->color == b->color && memcmp(a->name, b->name, a->name_len) == 0 &&
           same_text(a->category, b->category) && same_text(a->domain, b->domain) &&
           same_text(a->file, b->file);
}

/* Returns the site equal to `key`, or NULL and in `*slot` the free slot where it belongs. */
static const struct marey__site *probe(const struct table *table, const struct marey__site *key,
                                       uint32_t *slot)
{
    for (uint32_t i = key->hash & table->mask;; i = (i + 1) & table->mask) {
        /* Acquire: pairs with the release in insert(), so that the site is complete. */
        const struct marey__site *s = __atomic_load_n(&table->slots[i], __ATOMIC_ACQUIRE);
        if (s == NULL) {
            *slot = i;
            return NULL;
        }
        if (same_site(s, key))
            return s;
    }
}

/* Makes sure that a slot stays free after one more insertion; false on out of memory. */
static bool make_room(void)
{
    struct table *old = intern.table;
    if (old != NULL && intern.n_sites + 1 < (old->mask + 1) / 2)
        return true;
    const uint32_t n_slots = old == NULL ? 256 : (old->mask + 1) * 2;
    struct table *grown = marey__calloc(1, sizeof *grown + n_slots * sizeof grown->slots[0]);
    if (grown == NULL)
        return false;
    grown->mask = n_slots - 1;
    grown->older = old;
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++) {
        uint32_t slot;
        if (old->slots[i] != NULL && probe(grown, old->slots[i], &slot) == NULL)
            grown->slots[slot] = old->slots[i];
    }
    __atomic_store_n(&intern.table, grown, __ATOMIC_RELEASE);
    return true;
}

static const char *copy_text(char **at, const char *text, size_t len)
{
    char *copy = *at;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

static struct marey__site *copy_site(const struct marey__site *key)
{
    const size_t lens[] = {key->name_len, strlen(key->category), strlen(key->domain),
                           strlen(key->file)};
    struct marey__site *s = marey__alloc(sizeof *s + lens[0] + lens[1] + lens[2] + lens[3] + 4);
    if (s == NULL)
        return NULL;
    *s = *key;
    char *at = (char *)(s + 1);
    s->name = copy_text(&at, key->name, lens[0]);
    s->category = copy_text(&at, key->category, lens[1]);
    s->domain = copy_text(&at, key->domain, lens[2]);
    s->file = copy_text(&at, key->file, lens[3]);
    return s;
}

/* Assigns the next id to `site`; false on out of memory. Caller holds the lock. */
static bool publish(const struct marey__site *site)
{
    const struct marey__site ***page = &intern.pages[site->id / PAGE_SITES];
    if (*page == NULL && (*page = marey__calloc(PAGE_SITES, sizeof **page)) == NULL)
        return false;
    (*page)[site->id % PAGE_SITES] = site;
    __atomic_store_n(&intern.n_sites, site->id, __ATOMIC_RELEASE);
    if (intern.listener != NULL)
        intern.listener(site);
    return true;
}

static marey_id insert(const struct marey__site *key)
{
    if (intern.n_sites == 0 && !publish(&other_names))
        return MAREY__SITE_OTHER;
    if (!make_room())
        return MAREY__SITE_OTHER;
    uint32_t slot;
    const struct marey__site *known = probe(intern.table, key, &slot);
    if (known != NULL)
        return known->id;
    if (intern.n_sites == MAREY__SITE_LIMIT - 1) {
        __atomic_fetch_add(&intern.n_other, 1, __ATOMIC_RELAXED);
        return MAREY__SITE_OTHER;
    }
    struct marey__site *site = copy_site(key);
    if (site == NULL)
        return MAREY__SITE_OTHER;
    site->id = intern.n_sites + 1;
    if (!publish(site)) {
        marey__free(site);
        return MAREY__SITE_OTHER;
    }
    __atomic_store_n(&intern.table->slots[slot], site, __ATOMIC_RELEASE);
    return site->id;
}

marey_id marey__intern(const struct marey__site *lent)
{
    struct marey__site key = *lent;
    key.name = key.name != NULL ? key.name : "";
    key.category = key.category != NULL ? key.category : "";
    key.domain = key.domain != NULL ? key.domain : "";
    key.file = key.file != NULL ? key.file : "";
    key.name_len = MAREY__MIN(key.name_len, (uint32_t)MAREY__NAME_MAX);
    key.hash = hash_site(&key);

    const struct table *table = __atomic_load_n(&intern.table, __ATOMIC_ACQUIRE);
    uint32_t slot;
    const struct marey__site *known = table != NULL ? probe(table, &key, &slot) : NULL;
    if (known != NULL)
        return known->id;
    MAREY__HOLD(&intern.lock);
    return insert(&key);
}

uint32_t marey__intern_count(void)
{
    return __atomic_load_n(&intern.n_sites, __ATOMIC_ACQUIRE);
}

uint64_t marey__intern_n_other(void)
{
    return __atomic_load_n(&intern.n_other, __ATOMIC_RELAXED);
}

const struct marey__site *marey__intern_get(marey_id id)
{
    if (id == 0 || id > marey__intern_count())
        return NULL;
    return intern.pages[id / PAGE_SITES][id % PAGE_SITES];
}

bool marey__intern_listen(marey__site_listener *listener)
{
    MAREY__HOLD(&intern.lock);
    intern.listener = listener;
    for (marey_id id = 1; listener != NULL && id <= intern.n_sites; id++)
        listener(marey__intern_get(id));
    const bool ok = listener == NULL || listener(NULL);
    if (!ok)
        intern.listener = NULL;
    return ok;
}

void marey__intern_before_fork(void)
{
    marey__handles_before_fork();
    pthread_mutex_lock(&intern.lock);
}

void marey__intern_after_fork(bool in_child)
{
    if (in_child)
        intern.listener = NULL; /* it writes to the parent's log */
    pthread_mutex_unlock(&intern.lock);
    marey__handles_after_fork();
}

marey_id marey_site_intern_whole(const struct marey_site *site, size_t name_len)
{
    const struct marey__site key = {.name = site->name,
                                    .name_len =
                                        (uint32_t)MAREY__MIN(name_len, (size_t)MAREY__NAME_MAX),
                                    .category = site->category,
                                    .domain = site->domain,
                                    .file = site->file,
                                    .line = site->line,
                                    .color = site->color};
    return marey__intern(&key);
}

marey_id marey_site_register(struct marey_site *site)
{
    const marey_id id = marey_site_intern_whole(site, site->name != NULL ? strlen(site->name) : 0);
    __atomic_store_n(&site->id, id, __ATOMIC_RELEASE);
    return id;
}

marey_id marey_site_intern(const char *name, size_t len, const char *category, uint32_t color,
                           const char *file, uint32_t line)
{
    const struct marey_site site = {
        .name = name, .category = category, .file = file, .line = line, .color = color};
    return marey_site_intern_whole(&site, len);
}

const char *marey_site_name(marey_id id, size_t *len)
{
    const struct marey__site *site = marey__intern_get(id);
    if (len != NULL)
        *len = site != NULL ? site->name_len : 0;
    return site != NULL ? site->name : "";
}
