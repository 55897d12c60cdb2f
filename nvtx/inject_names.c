/*
 * Domains, categories and names, from strings to sites. Everything only grows, under one lock; readers take none. Names
 * are in a hash table that is replaced by one twice the size; older ones stay, because readers may still use them.
 *
 *   names.table -> slots[hash & mask] -> struct inject_name -> looks: (category, color) -> site
 *
 * A program may generate endless names ("step 1", "step 2", ...). After the first N_EXACT of them, numbers in new names
 * become '#', and the name itself becomes a payload; after N_MAX all others share one name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { N_EXACT = 4096, N_MAX = 8192, N_LOOKS = 32, FIRST_SLOTS = 256 };

/* A current or former name of a category, which a reader may still use. */
struct category_name {
    struct category_name *next;
    char text[];
};

struct inject_category {
    struct inject_category *next;
    uint32_t number;
    struct category_name *names; /* guarded by the lock */
    const char *name;            /* one of those; release, loaded with acquire */
};

struct inject_look {
    struct inject_look *next;
    uint32_t category, color;
    uint64_t site; /* the category version it was made with is in the upper bits. Relaxed */
};

struct table {
    struct table *older;
    uint32_t mask;
    struct inject_name *slots[]; /* release; loaded with acquire */
};

struct inject_domain inject_default_domain = {.name = ""};

/* INJECT_LOCK_NAMES guards writes here, in domains, and in names. */
static struct {
    struct table *table; /* release; loaded with acquire */
    uint32_t n;
    struct inject_domain *domains;
} names;

/* ---- domains ---- */

struct inject_domain *inject_domain_make(const char *name)
{
    inject_lock(INJECT_LOCK_NAMES);
    struct inject_domain *domain = names.domains;
    while (domain != NULL && strcmp(domain->name, name) != 0)
        domain = domain->next;
    char *const copy = domain == NULL ? strdup(name) : NULL;
    if (copy != NULL)
        domain = calloc(1, sizeof *domain);
    if (domain != NULL && copy != NULL) {
        domain->name = copy;
        domain->next = names.domains;
        names.domains = domain;
    } else {
        free(copy);
    }
    inject_unlock(INJECT_LOCK_NAMES);
    return domain;
}

/* ---- categories ---- */

static struct inject_category *find_category(const struct inject_domain *domain, uint32_t number)
{
    struct inject_category *c = __atomic_load_n(&domain->categories, __ATOMIC_ACQUIRE);
    while (c != NULL && c->number != number)
        c = c->next;
    return c;
}

/* Caller holds the lock. NULL on out of memory. */
static struct inject_category *make_category(struct inject_domain *domain, uint32_t number)
{
    struct inject_category *category = find_category(domain, number);
    if (category != NULL)
        return category;
    category = calloc(1, sizeof *category);
    if (category == NULL)
        return NULL;
    category->number = number;
    category->next = domain->categories;
    __atomic_store_n(&domain->categories, category, __ATOMIC_RELEASE);
    return category;
}

/* Caller holds the lock. Reuses a former name. NULL on out of memory. */
static const char *make_category_name(struct inject_category *category, const char *text)
{
    struct category_name *name = category->names;
    while (name != NULL && strcmp(name->text, text) != 0)
        name = name->next;
    if (name != NULL)
        return name->text;
    const size_t len = strlen(text);
    name = malloc(sizeof *name + len + 1);
    if (name == NULL)
        return NULL;
    memcpy(name->text, text, len + 1);
    name->next = category->names;
    category->names = name;
    return name->text;
}

void inject_domain_name(struct inject_domain *domain, uint32_t number, const char *text)
{
    inject_lock(INJECT_LOCK_NAMES);
    struct inject_category *const category = make_category(domain, number);
    const char *const name = category != NULL ? make_category_name(category, text) : NULL;
    if (name != NULL && name != category->name) {
        __atomic_store_n(&category->name, name, __ATOMIC_RELEASE);
        __atomic_fetch_add(&domain->version, 1, __ATOMIC_RELEASE);
    }
    inject_unlock(INJECT_LOCK_NAMES);
}

/* ---- sites ---- */

static marey_id intern(const struct inject_name *name, const char *category, uint32_t color)
{
    const struct marey_site site = {
        .name = name->text, .category = category, .domain = name->domain->name, .color = color};
    const size_t len = inject_text_cut(name->text, name->len);
    return marey_site_intern_whole(&site, len);
}

/* A category without a name is named by its number. */
static marey_id intern_look(const struct inject_name *name, uint32_t number, uint32_t color)
{
    char digits[16] = "";
    const struct inject_category *const category = find_category(name->domain, number);
    if (number != 0 && category == NULL)
        snprintf(digits, sizeof digits, "%u", number);
    return intern(
        name, category != NULL ? __atomic_load_n(&category->name, __ATOMIC_ACQUIRE) : digits, color);
}

/* Returns the look, or NULL and their number. */
static struct inject_look *find_look(const struct inject_name *name, uint32_t category,
                                     uint32_t color, size_t *n)
{
    struct inject_look *look = __atomic_load_n(&name->looks, __ATOMIC_ACQUIRE);
    for (*n = 0; look != NULL; look = look->next, ++*n)
        if (look->category == category && look->color == color)
            break;
    return look;
}

/* Caller holds the lock. The number of colors per name is limited. */
static marey_id add_look(struct inject_name *name, uint32_t category, uint32_t color)
{
    size_t n;
    struct inject_look *look = find_look(name, category, color, &n);
    if ((category | color) == 0 || (look == NULL && n >= N_LOOKS)) {
        const marey_id plain = intern(name, NULL, 0);
        __atomic_store_n(&name->id, plain, __ATOMIC_RELAXED);
        return plain;
    }
    const uint32_t version = __atomic_load_n(&name->domain->version, __ATOMIC_ACQUIRE);
    const marey_id id = intern_look(name, category, color);
    const uint64_t site = (uint64_t)version << 32 | id;
    if (look != NULL) {
        __atomic_store_n(&look->site, site, __ATOMIC_RELAXED);
    } else if ((look = malloc(sizeof *look)) != NULL) {
        *look = (struct inject_look){name->looks, category, color, site};
        __atomic_store_n(&name->looks, look, __ATOMIC_RELEASE);
    }
    return id;
}

marey_id inject_look_find(struct inject_name *name, uint32_t category, uint32_t color)
{
    size_t n;
    const struct inject_look *const look = find_look(name, category, color, &n);
    const uint64_t site = look != NULL ? __atomic_load_n(&look->site, __ATOMIC_RELAXED) : 0;
    if (MAREY_LIKELY(look != NULL && (uint32_t)(site >> 32) ==
                                         __atomic_load_n(&name->domain->version, __ATOMIC_ACQUIRE)))
        return (marey_id)site;
    inject_lock(INJECT_LOCK_NAMES);
    const marey_id id = add_look(name, category, color);
    inject_unlock(INJECT_LOCK_NAMES);
    return id;
}

/* ---- names ---- */

static uint32_t hash_of(const struct inject_domain *domain, const char *text, size_t len)
{
    uint64_t h = (uintptr_t)domain ^ len;
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    for (; len > 0; text++, len--)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (uint32_t)((h ^ h >> 32) * UINT64_C(0xc4ceb9fe1a85ec53) >> 32);
}

/* Returns the name, or NULL and its free slot. */
static struct inject_name *probe(const struct table *table, const struct inject_domain *domain,
                                 const char *text, size_t len, uint32_t hash, uint32_t *slot)
{
    for (uint32_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        struct inject_name *const name = __atomic_load_n(&table->slots[i], __ATOMIC_ACQUIRE);
        *slot = i;
        if (name == NULL || (name->hash == hash && name->domain == domain && name->len == len &&
                             memcmp(name->text, text, len) == 0))
            return name;
    }
}

/* Caller holds the lock. */
static bool make_room(void)
{
    struct table *const old = names.table;
    if (old != NULL && names.n < old->mask / 2)
        return true;
    const uint32_t n_slots = old != NULL ? (old->mask + 1) * 2 : FIRST_SLOTS;
    struct table *const table = calloc(1, sizeof *table + n_slots * sizeof table->slots[0]);
    if (table == NULL)
        return false;
    table->older = old;
    table->mask = n_slots - 1;
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++) {
        struct inject_name *const name = old->slots[i];
        uint32_t slot;
        if (name != NULL &&
            probe(table, name->domain, name->text, name->len, name->hash, &slot) == NULL)
            table->slots[slot] = name;
    }
    __atomic_store_n(&names.table, table, __ATOMIC_RELEASE);
    return true;
}

/* Caller holds the lock. */
static struct inject_name *add(struct inject_domain *domain, const char *text, size_t len,
                               uint32_t hash)
{
    uint32_t slot;
    if (!make_room())
        return NULL;
    struct inject_name *name = probe(names.table, domain, text, len, hash, &slot);
    if (name != NULL)
        return name;
    name = calloc(1, sizeof *name + len + 1);
    if (name == NULL)
        return NULL;
    memcpy(name->text, text, len);
    name->domain = domain;
    name->hash = hash;
    name->len = (uint32_t)len;
    const size_t cut = inject_text_cut(text, len);
    name->rest = (uint32_t)(cut < len ? cut + 2 : len);
    names.n++;
    __atomic_store_n(&names.table->slots[slot], name, __ATOMIC_RELEASE);
    return name;
}

enum { LONGEST = 1 << 20 };

static struct inject_name *get(struct inject_domain *domain, const char *text, size_t len,
                               uint32_t limit)
{
    uint32_t slot;
    if (len > LONGEST)
        len = LONGEST;
    const uint32_t hash = hash_of(domain, text, len);
    const struct table *const table = __atomic_load_n(&names.table, __ATOMIC_ACQUIRE);
    struct inject_name *name = table != NULL ? probe(table, domain, text, len, hash, &slot) : NULL;
    if (MAREY_LIKELY(name != NULL))
        return name;
    inject_lock(INJECT_LOCK_NAMES);
    if (names.n < limit)
        name = add(domain, text, len, hash);
    inject_unlock(INJECT_LOCK_NAMES);
    return name;
}

const struct inject_name *inject_name_get(struct inject_domain *domain, const char *text, size_t len)
{
    return get(domain, text, len, N_EXACT);
}

struct inject_name *inject_name_folded(struct inject_domain *domain, const char *text, size_t len)
{
    static const char others[] = "(other names)";
    char short_text[INJECT_TEXT_MAX];
    const size_t short_len = inject_text_fold(text, len, short_text);
    struct inject_name *const name = get(domain, short_text, short_len, N_MAX);
    return name != NULL ? name : get(domain, others, sizeof others - 1, UINT32_MAX);
}

struct inject_name *inject_name_register(struct inject_domain *domain, const char *text)
{
    struct inject_name *const name = get(domain, text, strlen(text), N_EXACT);
    return name != NULL ? name : inject_name_folded(domain, text, strlen(text));
}

const char *inject_name_text(const void *handle)
{
    const struct table *const table = __atomic_load_n(&names.table, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; table != NULL && i <= table->mask; i++) {
        const struct inject_name *const name = __atomic_load_n(&table->slots[i], __ATOMIC_ACQUIRE);
        if (name != NULL && name == handle)
            return name->text;
    }
    return "";
}
