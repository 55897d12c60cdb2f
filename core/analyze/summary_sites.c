/* What recordings tell besides events: the sites of all their processes, each once, and sentences about themselves. */
#include <string.h>

#include "analyze/analyze_internal.h"
#include "read/read_internal.h"

static bool is_met_before(const struct kymo__merge *merge, const struct kymo__site_row *a,
                          const struct kymo__site_row *b)
{
    return a->process != b->process ? kymo__merge_is_before(merge, a->process, b->process)
                                    : a->id < b->id;
}

static bool add_keyed(struct kymo__merge *merge, const struct kymo__site_row *site,
                      const struct kymo__buf *key)
{
    struct kymo__site_rows *sites = &merge->sites;
    const size_t n_before = sites->n;
    uint32_t number = kymo__names_find(&sites->keys, key->data, key->len);
    if (number != KYMO__NO_NAME) {
        if (is_met_before(merge, site, &sites->rows[number]))
            sites->rows[number] = *site;
        return true;
    }
    const char *text = kymo__arena_text(&sites->texts, key->data, key->len);
    if (text == NULL || !kymo__grow(&sites->rows, &sites->cap, n_before + 1, sizeof *sites->rows))
        return false;
    number = kymo__names_number(&sites->keys, text, key->len);
    if (number == KYMO__NO_NAME)
        return false;
    sites->rows[sites->n++] = *site;
    return true;
}

bool kymo__merge_add_site(struct kymo__merge *merge, const struct kymo__site_row *site)
{
    struct kymo__buf key = {0};
    kymo__site_key(&key, &site->info);
    const bool done = !key.failed && add_keyed(merge, site, &key);
    kymo__buf_fini(&key);
    return done;
}

/* Details of GPU work are sites for their place in the log, and no place in the program. */
static bool add_sites(struct kymo__merge *merge, const kymo_recording *recording, size_t process,
                      uint32_t number)
{
    const uint32_t n = kymo_recording_process(recording, process)->n_sites;
    for (uint32_t id = 1; id <= n; id++) {
        const struct kymo_site_info *site = kymo_recording_site(recording, process, id);
        if (site->name_len == 0 || strcmp(site->category, "details") == 0)
            continue;
        if (!kymo__merge_add_site(merge, &(struct kymo__site_row){number, id, *site}))
            return false;
    }
    return true;
}

static bool add_warnings(struct kymo__merge *merge, const kymo_recording *recording, uint32_t number)
{
    const char *sentence;
    for (size_t i = 0; (sentence = kymo_recording_warning(recording, i)) != NULL; i++) {
        if (!kymo__grow(&merge->told, &merge->told_cap, merge->n_told + 1, sizeof *merge->told))
            return false;
        merge->told[merge->n_told++] =
            (struct kymo__told_row){number, i >= kymo__recording_n_of_logs(recording), sentence};
    }
    return true;
}

/* ---- what is left out ---- */

struct kymo__left_out *kymo__merge_left_out(struct kymo__merge *merge, uint32_t recording)
{
    for (size_t i = 0; i < merge->n_left_out; i++)
        if (merge->left_out[i].recording == recording)
            return &merge->left_out[i];
    if (!kymo__grow(&merge->left_out, &merge->left_out_cap, merge->n_left_out + 1,
                    sizeof *merge->left_out))
        return NULL;
    merge->left_out[merge->n_left_out] = (struct kymo__left_out){.recording = recording};
    return &merge->left_out[merge->n_left_out++];
}

bool kymo__left_out_add(struct kymo__left_out *left_out, const struct kymo_process *process)
{
    if (!kymo__grow(&left_out->measuring, &left_out->cap, left_out->n_measuring + 1,
                    sizeof *left_out->measuring))
        return false;
    left_out->measuring[left_out->n_measuring++] = process;
    return true;
}

static bool add_left_out(struct kymo__merge *merge, const kymo_recording *recording, uint32_t number)
{
    struct kymo__left_out *left_out = kymo__merge_left_out(merge, number);
    if (left_out == NULL)
        return false;
    kymo__recording_left_out(recording, &left_out->n_broken, &left_out->n_empty);
    for (size_t i = kymo_recording_n_processes(recording); i < kymo_recording_n_logs(recording); i++)
        if (!kymo__left_out_add(left_out, kymo_recording_process(recording, i)))
            return false;
    return true;
}

bool kymo__merge_add_recordings(struct kymo__merge *merge, kymo_recording *const *recordings, size_t n)
{
    uint32_t process = 0;
    for (size_t r = 0; r < n; r++) {
        for (size_t p = 0; p < kymo_recording_n_processes(recordings[r]); p++)
            if (!add_sites(merge, recordings[r], p, process++))
                return false;
        if (!add_warnings(merge, recordings[r], (uint32_t)r) ||
            !add_left_out(merge, recordings[r], (uint32_t)r))
            return false;
    }
    return true;
}
