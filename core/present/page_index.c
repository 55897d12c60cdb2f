/*
 * The index of the page, JSON: what was recorded, the tables of the summary, and where the events of each track lie. The
 * names that sites stand for are a text of their own, since there may be a million of them.
 */
#include <inttypes.h>
#include <string.h>

#include "present/page_heat.h"
#include "present/report_internal.h"

/* ---- tracks ---- */

/* A row: [id, [section, offset, events, first, last], ...]. */
static void put_row(struct kymo__buf *json, const struct kymo__page_row *row)
{
    kymo__buf_printf(json, "[%u,", row->id);
    for (const struct kymo__page_chunk *chunk = row->first; chunk != NULL; chunk = chunk->next)
        kymo__buf_printf(json, "[%u,%u,%u,%" PRIu64 ",%" PRIu64 "],", chunk->section, chunk->offset,
                         chunk->n, chunk->first_ns, chunk->last_ns);
    kymo__page_close(json, "],");
}

static void put_unfinished(struct kymo__buf *json, const struct kymo__page_track *track)
{
    kymo__page_put_key(json, "unfinished");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_unfinished; i++) {
        const struct kymo__page_unfinished *u = &track->unfinished[i];
        kymo__buf_printf(json, "[%u,%" PRIu64 ",%" PRIu64 ",%u,%d],", u->depth, u->start_ns,
                         u->last_ns, u->site, u->is_lost);
    }
    kymo__page_close(json, "],");
}

static bool is_empty(const struct kymo__page_track *track)
{
    return track->n_rows == 0 && track->marks.first == NULL && track->losses.first == NULL &&
           track->n_unfinished == 0;
}

/* Rows of a series that has names for them are there where they have something in them. */
static bool is_shown(const struct kymo__page_track *track, size_t row)
{
    return track->labels == NULL || track->rows[row].first != NULL;
}

static void put_labels(struct kymo__buf *json, const struct kymo__page_track *track)
{
    if (track->labels == NULL)
        return;
    kymo__page_put_key(json, "labels");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_rows; i++) {
        if (!is_shown(track, i))
            continue;
        kymo__json_put(json, track->labels[i].text, track->labels[i].len);
        kymo__buf_puts(json, ",");
    }
    kymo__page_close(json, "],");
}

static void put_track(struct kymo__buf *json, const struct kymo__page_track *track, size_t process)
{
    static const char *const kinds[KYMO__N_TRACK_KINDS] = {"thread",   "gpu",      "async",
                                                           "counters", "progress", "series"};
    if (is_empty(track))
        return;
    kymo__buf_puts(json, "{");
    kymo__page_put_text(json, "kind", kinds[track->kind]);
    kymo__page_put_number(json, "process", process);
    if (track->lane != NULL) {
        kymo__page_put_text(json, "name", track->lane->name);
        kymo__page_put_number(json, "lane", track->lane->lane);
        kymo__page_put_key(json, "tid");
        kymo__page_put_i64(json, track->lane->tid);
        kymo__buf_printf(json, ",\"device\":%d,\"stream\":%u,", track->lane->device,
                         track->lane->stream);
    }
    if (track->n_too_deep != 0)
        kymo__page_put_number(json, "too_deep", track->n_too_deep);
    const struct {
        const char *key;
        const struct kymo__page_row *row;
    } others[] = {{"marks", &track->marks},
                  {"losses", &track->losses},
                  {"texts", &track->texts},
                  {"links", &track->links},
                  {"flows", &track->flows}};
    for (size_t i = 0; i < KYMO__COUNT_OF(others); i++) {
        if (others[i].row->first == NULL)
            continue;
        kymo__page_put_key(json, others[i].key);
        put_row(json, others[i].row);
    }
    put_unfinished(json, track);
    put_labels(json, track);
    kymo__page_put_key(json, "rows");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_rows; i++)
        if (is_shown(track, i))
            put_row(json, &track->rows[i]);
    kymo__page_close(json, "]},");
}

static void put_tracks(struct kymo__buf *json, const struct kymo__page *page)
{
    kymo__page_put_key(json, "tracks");
    kymo__buf_puts(json, "[");
    for (size_t p = 0; p < page->n_processes; p++) {
        const struct kymo__page_process *process = &page->processes[p];
        put_track(json, &process->progress, p);
        put_track(json, &process->series, p);
        for (size_t i = 0; process->lanes != NULL && i < process->info->n_lanes; i++)
            put_track(json, &process->lanes[i], p);
        put_track(json, &process->async, p);
        put_track(json, &process->counters, p);
    }
    kymo__page_close(json, "],");
}

/* ---- processes ---- */

/* The last word: "train.py" of "/usr/bin/python3 train.py"; of one that measured others, what it measured. */
static void put_process_name(struct kymo__buf *json, const struct kymo_process *info)
{
    struct kymo__buf name = {0};
    if (info->rank >= 0)
        kymo__buf_printf(&name, "rank %d ", info->rank);
    if (info->worker >= 0)
        kymo__buf_printf(&name, "worker %d ", info->worker);
    if (info->role[0] != '\0')
        kymo__buf_puts(&name, info->role);
    else
        kymo__export_program(&name, info->command);
    kymo__page_put_key(json, "name");
    kymo__json_put(json, name.data, name.len);
    kymo__buf_puts(json, ",");
    json->failed |= name.failed;
    kymo__buf_fini(&name);
}

static void put_process(struct kymo__buf *json, const struct kymo__page_process *process,
                        bool is_on_timeline)
{
    const struct kymo_process *info = process->info;
    kymo__buf_puts(json, "{");
    put_process_name(json, info);
    kymo__buf_printf(json, "\"rank\":%d,\"pid\":%" PRId64 ",", info->rank, info->pid);
    kymo__page_put_text(json, "host", info->host);
    kymo__page_put_text(json, "command", info->command);
    kymo__page_put_text(json, "end", info->end);
    kymo__page_put_text(json, "role", info->role);
    kymo__page_put_text(json, "clock", info->clock);
    kymo__page_put_text(json, "version", info->version);
    kymo__page_put_text(json, "cpu", info->cpu);
    kymo__page_put_text(json, "cpus", info->cpus);
    kymo__page_put_text(json, "gpu", info->gpu);
    kymo__page_put_text(json, "kernel", info->kernel);
    kymo__page_put_text(json, "versions", info->versions);
    kymo__page_put_number(json, "first_ns", kymo__page_ns(process, info->first_ns));
    kymo__page_put_number(json, "last_ns", kymo__page_ns(process, info->last_ns));
    kymo__page_put_number(json, "lost_events", info->lost_events);
    if (info->lost_events != 0) {
        kymo__page_put_number(json, "lost_first_ns", kymo__page_ns(process, info->lost_first_ns));
        kymo__page_put_number(json, "lost_last_ns", kymo__page_ns(process, info->lost_last_ns));
    }
    kymo__page_put_number(json, "events", info->n_events);
    if (!is_on_timeline)
        kymo__buf_puts(json, "\"left_out\":true,");
    if (process->thin.n_merged != 0)
        kymo__page_put_number(json, "merged", process->thin.n_merged);
    if (process->n_texts_left_out != 0)
        kymo__page_put_number(json, "texts_left_out", process->n_texts_left_out);
    kymo__page_close(json, "},");
}

static void put_processes(struct kymo__buf *json, const struct kymo__page *page)
{
    kymo__page_put_key(json, "processes");
    kymo__buf_puts(json, "[");
    for (size_t p = 0; p < page->n_processes; p++)
        put_process(json, &page->processes[p], kymo__page_is_chosen(page, p));
    kymo__page_close(json, "],");
}

/* ---- the whole ---- */

static void put_cost(struct kymo__buf *json, const struct kymo_cost *cost)
{
    kymo__page_put_key(json, "cost");
    kymo__buf_puts(json, "{");
    kymo__page_put_number(json, "events", cost->events);
    kymo__page_put_number(json, "low_ns", cost->low_ns);
    kymo__page_put_number(json, "high_ns", cost->high_ns);
    kymo__page_put_number(json, "flush_cpu_ns", cost->flush_cpu_ns);
    kymo__page_put_number(json, "log_bytes", cost->log_bytes);
    kymo__page_put_number(json, "program_ns", cost->program_ns);
    kymo__page_put_number(json, "lost_events", cost->lost_events);
    kymo__page_put_number(json, "incomplete", (uint64_t)cost->n_stopped + cost->n_cut);
    kymo__page_put_number(json, "lost_first_ns", cost->lost_first_ns);
    kymo__page_put_number(json, "lost_last_ns", cost->lost_last_ns);
    kymo__page_put_key(json, "missing");
    struct kymo__buf line = {0};
    kymo__cost_put_missing(&line, cost);
    kymo__json_put(json, line.failed ? "" : line.data, line.failed ? 0 : line.len);
    kymo__buf_fini(&line);
    kymo__buf_puts(json, ",");
    kymo__page_close(json, "},");
}

static bool is_damaged(const struct kymo__page *page)
{
    for (size_t r = 0; r < page->n_recordings; r++)
        if (kymo_recording_is_damaged(page->recordings[r]))
            return true;
    return false;
}

kymo_status kymo__page_index(const struct kymo__page *page, struct kymo__buf *json)
{
    kymo__buf_puts(json, "{\"format\":1,\"kind\":\"report\",");
    kymo__page_put_text(json, "version", kymo_version());
    kymo__page_put_text(json, "title",
                        page->options->title != NULL ? page->options->title : page->summary->title);
    kymo__page_put_number(json, "origin_ns", page->origin_ns);
    kymo__page_put_key(json, "origin_unix_ns");
    kymo__page_put_i64(json, page->origin_unix_ns);
    kymo__buf_puts(json, ",");
    kymo__page_put_number(json, "duration_ns", page->duration_ns);
    kymo__page_put_number(json, "threads", page->summary->n_threads);
    kymo__buf_printf(json, "\"damaged\":%s,", is_damaged(page) ? "true" : "false");
    put_cost(json, &page->summary->cost);
    kymo__page_put_key(json, "tables");
    kymo__buf_puts(json, "[");
    for (size_t t = 0; t < KYMO__N_TABLES; t++)
        (t == KYMO__TABLE_TREE ? kymo__page_tree : kymo__page_table)(json, page->summary->tables[t],
                                                                     KYMO__PAGE_TABLE_ROWS);
    kymo__page_put_energy(page, json);
    kymo__page_put_epochs(page, json);
    kymo__page_close(json, "],");
    kymo__page_put_breakdown(page, json);
    kymo__page_put_gpus(page, json);
    kymo__page_put_memory(page, json);
    kymo__page_put_calls(page, json);
    kymo__page_put_samples(page, json);
    kymo__page_put_heat(page, json);
    put_processes(json, page);
    put_tracks(json, page);
    kymo__page_close(json, "}");
    return json->failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page's index") : KYMO_OK;
}

/* ---- names ---- */

static void put_site(struct kymo__buf *json, const struct kymo_site_info *site)
{
    kymo__buf_puts(json, "[");
    kymo__json_put(json, site->name_len != 0 ? site->name : "(unnamed)",
                   site->name_len != 0 ? site->name_len : strlen("(unnamed)"));
    kymo__buf_puts(json, ",");
    kymo__page_put_string(json, site->category);
    kymo__buf_puts(json, ",");
    kymo__page_put_string(json, site->file);
    kymo__buf_printf(json, ",%u,%u],", site->line, site->color);
}

/* The sites of a process that its events have, as numbers of the names; 0 for the others. */
static bool put_process_sites(struct kymo__buf *json, const struct kymo__page_process *process,
                              struct kymo__names *names, struct kymo__buf *sites,
                              struct kymo__arena *keys)
{
    struct kymo__buf key = {0};
    bool ok = true;
    kymo__buf_puts(sites, "[");
    for (uint32_t i = 0; ok && process->uses != NULL && i <= process->info->n_sites; i++) {
        const struct kymo_site_info *site =
            kymo_recording_site(process->recording, process->info->index, i);
        if (process->uses[i] != KYMO__SITE_USED) {
            kymo__buf_puts(sites, "0,");
            continue;
        }
        kymo__site_key(&key, site);
        const size_t before = names->n;
        const char *kept = key.failed ? NULL : kymo__arena_text(keys, key.data, key.len);
        const uint32_t number =
            kept == NULL ? KYMO__NO_NAME : kymo__names_number(names, kept, key.len);
        ok = number != KYMO__NO_NAME;
        if (names->n != before)
            put_site(json, site);
        kymo__buf_printf(sites, "%u,", number);
    }
    kymo__page_close(sites, "],");
    kymo__buf_fini(&key);
    return ok;
}

kymo_status kymo__page_names(const struct kymo__page *page, struct kymo__buf *json)
{
    struct kymo__names names = {0};
    struct kymo__buf sites = {0};
    struct kymo__arena keys = {0};
    bool ok = true;
    kymo__buf_puts(json, "{\"names\":[");
    for (size_t p = 0; ok && p < page->n_processes; p++)
        ok = put_process_sites(json, &page->processes[p], &names, &sites, &keys);
    kymo__page_close(json, "],\"sites\":[");
    if (sites.len != 0)
        kymo__buf_put(json, sites.data, sites.len);
    kymo__page_close(json, "]}");
    ok = ok && !json->failed && !sites.failed;
    kymo__names_fini(&names);
    kymo__buf_fini(&sites);
    kymo__arena_fini(&keys);
    return ok ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the page's names");
}
