/* The tables of sites and of warnings. */
#include <inttypes.h>
#include <string.h>

#include "analyze/analyze_internal.h"

/* ---- sites ---- */

const struct kymo_column kymo__site_columns[KYMO__N_SITE_COLUMNS] = {
    KYMO__NAME_COLUMN,
    {"category", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"domain", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"color", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"file", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"line", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
};

void kymo__site_key(struct kymo__buf *key, const struct kymo_site_info *site)
{
    key->len = 0;
    kymo__buf_put(key, &site->name_len, sizeof site->name_len); /* a name may have NULs in it */
    kymo__buf_put(key, site->name, site->name_len);
    kymo__buf_put(key, "", 1);
    kymo__buf_put(key, site->category, strlen(site->category) + 1);
    kymo__buf_put(key, site->domain, strlen(site->domain) + 1);
    kymo__buf_put(key, site->file, strlen(site->file) + 1);
    kymo__buf_put(key, &site->line, sizeof site->line);
    kymo__buf_put(key, &site->color, sizeof site->color);
}

static void put_site(kymo_table *table, const struct kymo_site_info *site)
{
    kymo_table_text(table, site->name, site->name_len);
    kymo__put_string(table, site->category);
    kymo__put_string(table, site->domain);
    kymo_table_u64(table, site->color);
    kymo__put_string(table, site->file);
    kymo_table_u64(table, site->line);
}

kymo_status kymo__fill_sites(kymo_table *table, const struct kymo__making *m)
{
    const struct kymo__site_rows *sites = &m->merge->sites;
    for (size_t i = 0; i < sites->n; i++)
        if (kymo__name_matches(m->filter, sites->rows[i].info.name, sites->rows[i].info.name_len))
            put_site(table, &sites->rows[i].info);
    return KYMO_OK;
}

/* ---- warnings ---- */

const struct kymo_column kymo__warning_columns[1] = {{"text", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}};

/* "N THING[s] REST", the plural where it is one. */
static void put_count(kymo_table *table, uint64_t n, const char *thing, const char *rest)
{
    struct kymo__buf text = {0};
    if (n == 0)
        return;
    kymo__buf_printf(&text, "%" PRIu64 " %s%s %s", n, thing, n == 1 ? "" : "s", rest);
    if (text.failed)
        kymo__put_string(table, rest);
    else
        kymo_table_text(table, text.data, text.len);
    kymo__buf_fini(&text);
}

void kymo__put_notes(kymo_table *table, const struct kymo_process *process, bool is_alone)
{
    for (const char *line = process->note; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        struct kymo__buf text = {0};
        if (!is_alone)
            kymo__buf_printf(&text, "Process %" PRId64 ": ", process->pid);
        kymo__buf_put(&text, line, len);
        if (len != 0)
            kymo_table_text(table, text.failed ? line : text.data, text.failed ? len : text.len);
        kymo__buf_fini(&text);
        line += len + (line[len] == '\n');
    }
}

static void put_iteration_notes(kymo_table *table, const struct kymo__iteration_merge *iterations)
{
    uint64_t n_cut = 0;
    bool has_data = false;
    for (size_t i = 0; i < iterations->n_rows; i++) {
        n_cut += iterations->rows[i].n_cut;
        has_data |= iterations->rows[i].has_data;
    }
    put_count(table, n_cut, "iteration",
              "in which events were lost, or whose begin was: left out of the times by iteration.");
    if (iterations->data == NULL || has_data)
        return;
    struct kymo__buf text = {0};
    kymo__buf_printf(&text,
                     "No range called '%s' ran in an iteration; the share of waiting for data is "
                     "not known.",
                     iterations->data);
    if (!text.failed)
        kymo_table_text(table, text.data, text.len);
    kymo__buf_fini(&text);
}

kymo_status kymo__fill_warnings(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->n_told; i++)
        kymo__put_string(table, m->merge->told[i].text);
    for (size_t p = 0; p < m->merge->n_processes; p++)
        kymo__put_notes(table, m->merge->processes[p], m->merge->n_processes == 1);
    put_count(table, m->merge->n_cut_off, "range",
              "had begun when events were lost; how long is not known.");
    put_count(table, m->merge->n_unwound, "range", "left open inside another, ended with that one.");
    put_count(table, m->merge->n_orphans, "end", "without a begin: left out.");
    put_count(table, m->merge->n_overlapping, "range",
              "without self time and not in the call tree: they overlap others of their thread.");
    put_count(table, m->merge->n_too_deep, "range", "nested too deep: left out.");
    put_count(table, m->merge->n_async_dropped, "async event",
              "left out: too many async ranges were in flight.");
    put_iteration_notes(table, &m->merge->iterations);
    return KYMO_OK;
}
