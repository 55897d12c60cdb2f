/* Data of recordings besides events: the sites of all their processes, each once, and notes. */
#include <string.h>

#include "analyze/summary/internal.h"
#include "read/internal.h"

static bool is_met_before(const struct marey__merge *merge, const struct marey__site_row *a,
                          const struct marey__site_row *b)
{
    return a->process != b->process ? marey__merge_is_before(merge, a->process, b->process)
                                    : a->id < b->id;
}

static bool add_keyed(struct marey__merge *merge, const struct marey__site_row *site,
                      const struct marey__buf *key)
{
    struct marey__site_rows *sites = &merge->sites;
    const size_t n_before = sites->n;
    uint32_t number = marey__names_find(&sites->keys, key->data, key->len);
    if (number != MAREY__NO_NAME) {
        if (is_met_before(merge, site, &sites->rows[number]))
            sites->rows[number] = *site;
        return true;
    }
    const char *text = marey__arena_text(&sites->texts, key->data, key->len);
    if (text == NULL || !marey__grow(&sites->rows, &sites->cap, n_before + 1, sizeof *sites->rows))
        return false;
    number = marey__names_number(&sites->keys, text, key->len);
    if (number == MAREY__NO_NAME)
        return false;
    sites->rows[sites->n++] = *site;
    return true;
}

bool marey__merge_add_site(struct marey__merge *merge, const struct marey__site_row *site)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    marey__site_key(&key, &site->info);
    return !key.failed && add_keyed(merge, site, &key);
}

/* Details of GPU work are stored as sites, but are not places in the program. */
static bool add_sites(struct marey__merge *merge, const marey_recording *recording, size_t process,
                      uint32_t number)
{
    const uint32_t n = marey_recording_process(recording, process)->n_sites;
    for (uint32_t id = 1; id <= n; id++) {
        const struct marey_site_info *site = marey_recording_site(recording, process, id);
        if (site->name_len == 0 || strcmp(site->category, "details") == 0)
            continue;
        if (!marey__merge_add_site(merge, &(struct marey__site_row){number, id, *site}))
            return false;
    }
    return true;
}

static bool add_warnings(struct marey__merge *merge, const marey_recording *recording, uint32_t number)
{
    const char *sentence;
    for (size_t i = 0; (sentence = marey_recording_warning(recording, i)) != NULL; i++) {
        if (!MAREY__PUSH(merge->notes, merge->n_notes, merge->notes_cap,
                         (struct marey__note_row){number, i >= marey__recording_n_of_logs(recording),
                                                  sentence}))
            return false;
    }
    return true;
}

/* ---- excluded processes and logs ---- */

struct marey__exclusions *marey__merge_exclusions(struct marey__merge *merge, uint32_t recording)
{
    for (size_t i = 0; i < merge->n_exclusions; i++)
        if (merge->exclusions[i].recording == recording)
            return &merge->exclusions[i];
    if (!marey__grow(&merge->exclusions, &merge->exclusions_cap, merge->n_exclusions + 1,
                     sizeof *merge->exclusions))
        return NULL;
    merge->exclusions[merge->n_exclusions] = (struct marey__exclusions){.recording = recording};
    return &merge->exclusions[merge->n_exclusions++];
}

bool marey__exclusions_add(struct marey__exclusions *exclusions, const struct marey_process *process)
{
    return MAREY__PUSH(exclusions->measuring, exclusions->n_measuring, exclusions->cap, process);
}

static bool add_left_out(struct marey__merge *merge, const marey_recording *recording, uint32_t number)
{
    struct marey__exclusions *exclusions = marey__merge_exclusions(merge, number);
    if (exclusions == NULL)
        return false;
    marey__recording_left_out(recording, &exclusions->n_broken, &exclusions->n_empty);
    for (size_t i = marey_recording_n_processes(recording); i < marey_recording_n_logs(recording); i++)
        if (!marey__exclusions_add(exclusions, marey_recording_process(recording, i)))
            return false;
    return true;
}

bool marey__merge_add_recordings(struct marey__merge *merge, marey_recording *const *recordings,
                                 size_t n)
{
    uint32_t process = 0;
    for (size_t r = 0; r < n; r++) {
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++)
            if (!add_sites(merge, recordings[r], p, process++))
                return false;
        if (!add_warnings(merge, recordings[r], (uint32_t)r) ||
            !add_left_out(merge, recordings[r], (uint32_t)r))
            return false;
    }
    return true;
}
