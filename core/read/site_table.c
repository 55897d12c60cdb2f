/*
 * The sites of a process by id. Ranks of one program mostly have the same sites under the same ids, so the logs of a
 * folder share tables, and memory per rank does not grow with the number of names.
 */
#include "read/internal.h"

struct marey__site_table *marey__site_table_make(struct marey__site_table **table)
{
    if (*table == NULL) {
        *table = marey__calloc(1, sizeof **table);
        if (*table != NULL)
            (*table)->n_users = 1;
    }
    return *table;
}

void marey__site_table_release(struct marey__site_table *table)
{
    if (table == NULL || --table->n_users != 0)
        return;
    marey__sparse_fini(&table->sites);
    marey__arena_fini(&table->texts);
    marey__free(table);
}

const struct marey_site_info *marey__site_table_get(const struct marey__site_table *table, uint32_t id)
{
    const struct marey_site_info *site =
        table != NULL ? marey__sparse_get(&table->sites, id, sizeof *site) : NULL;
    return site != NULL && site->name != NULL ? site : NULL;
}

bool marey__site_table_add(struct marey__site_table *table, const struct marey__site_entry *entry,
                           const char *texts)
{
    struct marey_site_info *site = marey__sparse_make(&table->sites, entry->id, sizeof *site);
    if (site == NULL)
        return false;
    if (site->name != NULL)
        return true; /* a site is written again after a fork; the first entry is kept */
    const uint32_t lengths[4] = {entry->name_len, entry->category_len, entry->domain_len,
                                 entry->file_len};
    const char *kept[4];
    for (size_t t = 0; t < 4; t++) {
        kept[t] = lengths[t] == 0 ? "" : marey__arena_text(&table->texts, texts, lengths[t]);
        if (kept[t] == NULL)
            return false;
        texts += lengths[t];
    }
    *site = (struct marey_site_info){.name = kept[0],
                                     .category = kept[1],
                                     .domain = kept[2],
                                     .file = kept[3],
                                     .name_len = entry->name_len,
                                     .line = entry->line,
                                     .color = entry->color};
    table->n = MAREY__MAX(table->n, entry->id);
    return true;
}

/* ---- sharing between logs ---- */

void marey__log_texts_init(struct marey__log_texts *texts)
{
    *texts = (struct marey__log_texts){.known.n = 0};
    pthread_mutex_init(&texts->lock, NULL);
}

void marey__log_texts_fini(struct marey__log_texts *texts)
{
    marey__names_fini(&texts->known);
    marey__arena_fini(&texts->arena);
    pthread_mutex_destroy(&texts->lock);
}

const char *marey__log_text(struct marey__log_texts *texts, const char *text, size_t len)
{
    if (len == 0)
        return "";
    MAREY__HOLD(&texts->lock);
    const uint32_t number = marey__names_keep(&texts->known, &texts->arena, text, len);
    const char *const kept = number != MAREY__NO_NAME ? texts->known.names[number].text : NULL;
    return kept;
}

static bool are_equal_sites(const struct marey_site_info *a, const struct marey_site_info *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    /* A name may contain any bytes; readers end the other texts at their first NUL. */
    return a->name_len == b->name_len && a->line == b->line && a->color == b->color &&
           memcmp(a->name, b->name, a->name_len) == 0 && strcmp(a->category, b->category) == 0 &&
           strcmp(a->domain, b->domain) == 0 && strcmp(a->file, b->file) == 0;
}

static bool are_equal(const struct marey__site_table *a, const struct marey__site_table *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t id = 1; id <= a->n; id++)
        if (!are_equal_sites(marey__site_table_get(a, id), marey__site_table_get(b, id)))
            return false;
    return true;
}

void marey__site_tables_init(struct marey__site_tables *tables)
{
    *tables = (struct marey__site_tables){.n = 0};
    pthread_mutex_init(&tables->lock, NULL);
}

void marey__site_tables_fini(struct marey__site_tables *tables)
{
    for (size_t i = 0; i < tables->n; i++)
        marey__site_table_release(tables->known[i]);
    pthread_mutex_destroy(&tables->lock);
}

void marey__site_tables_share(struct marey__site_tables *tables, struct marey__site_table **table)
{
    if (*table == NULL)
        return;
    MAREY__HOLD(&tables->lock);
    size_t i = 0;
    while (i < tables->n && !are_equal(tables->known[i], *table))
        i++;
    if (i < tables->n) {
        marey__site_table_release(*table);
        *table = tables->known[i];
        (*table)->n_users++;
    } else if (tables->n < MAREY__MAX_SHARED_TABLES) {
        tables->known[tables->n++] = *table;
        (*table)->n_users++;
    }
}
