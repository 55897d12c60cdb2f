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

struct seen_sites {
    struct kymo__names names;
    struct kymo__arena keys;
    struct kymo__buf key;
};

static bool put_new_sites(kymo_table *table, const struct kymo__making *m,
                          const kymo_recording *recording, size_t process, struct seen_sites *seen)
{
    const uint32_t n = kymo_recording_process(recording, process)->n_sites;
    for (uint32_t id = 1; id <= n; id++) {
        const struct kymo_site_info *site = kymo_recording_site(recording, process, id);
        /* Details of GPU work are sites for their place in the log, and no place in the program. */
        if (site->name_len == 0 || strcmp(site->category, "details") == 0 ||
            !kymo__name_matches(m->filter, site->name, site->name_len))
            continue;
        kymo__site_key(&seen->key, site);
        const char *key =
            seen->key.failed ? NULL : kymo__arena_text(&seen->keys, seen->key.data, seen->key.len);
        if (key == NULL)
            return false;
        const size_t n_before = seen->names.n;
        if (kymo__names_number(&seen->names, key, seen->key.len) == KYMO__NO_NAME)
            return false;
        if (seen->names.n != n_before)
            put_site(table, site);
    }
    return true;
}

kymo_status kymo__fill_sites(kymo_table *table, const struct kymo__making *m)
{
    struct seen_sites seen = {0};
    bool done = true;
    for (size_t r = 0; done && r < m->n_recordings; r++)
        for (size_t p = 0; done && p < kymo_recording_n_processes(m->recordings[r]); p++)
            done = put_new_sites(table, m, m->recordings[r], p, &seen);
    kymo__names_fini(&seen.names);
    kymo__arena_fini(&seen.keys);
    kymo__buf_fini(&seen.key);
    return done ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the table of sites");
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
    for (size_t r = 0; r < m->n_recordings; r++) {
        const char *sentence;
        for (size_t i = 0; (sentence = kymo_recording_warning(m->recordings[r], i)) != NULL; i++)
            kymo__put_string(table, sentence);
    }
    for (size_t p = 0; p < m->merge->n_processes; p++)
        kymo__put_notes(table, m->merge->processes[p], m->merge->n_processes == 1);
    put_count(table, m->merge->n_cut_off, "range",
              "had begun when events were lost; how long is not known.");
    put_count(table, m->merge->n_unwound, "range", "left open inside another, ended with that one.");
    put_count(table, m->merge->n_orphans, "end", "without a begin: left out.");
    put_count(table, m->merge->n_async_dropped, "end",
              "of an async range had to go unmatched: too many wait for their other end.");
    put_iteration_notes(table, &m->merge->iterations);
    return KYMO_OK;
}
