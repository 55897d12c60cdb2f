/*
 * The index of the page, JSON: the recordings, the tables of the summary, and the positions of each track's events. The
 * names of sites are a separate text, because there may be a million.
 */
#include "present/page/internal.h"

/* ---- tracks ---- */

/* A row: [id, [section, offset, events, first, last], ...]. */
static void put_row(struct marey__buf *json, const struct marey__page_row *row)
{
    marey__buf_printf(json, "[%u,", row->id);
    for (const struct marey__page_chunk *chunk = row->first; chunk != NULL; chunk = chunk->next)
        marey__buf_printf(json, "[%u,%u,%u,%" PRIu64 ",%" PRIu64 "],", chunk->section,
                          chunk->offset, chunk->n, chunk->first_ns, chunk->last_ns);
    marey__page_close(json, "],");
}

static void put_unfinished(struct marey__buf *json, const struct marey__page_track *track)
{
    marey__page_open(json, "unfinished", "[");
    for (size_t i = 0; i < track->n_unfinished; i++) {
        const struct marey__page_unfinished *u = &track->unfinished[i];
        marey__buf_printf(json, "[%u,%" PRIu64 ",%" PRIu64 ",%u,%d],", u->depth, u->start_ns,
                          u->last_ns, u->site, u->is_lost);
    }
    marey__page_close(json, "],");
}

static bool is_empty(const struct marey__page_track *track)
{
    return track->n_rows == 0 && track->marks.first == NULL && track->losses.first == NULL &&
           track->n_unfinished == 0;
}

/* Named rows of a series are shown if they contain anything. */
static bool is_shown(const struct marey__page_track *track, size_t row)
{
    return track->labels == NULL || track->rows[row].first != NULL;
}

static void put_labels(struct marey__buf *json, const struct marey__page_track *track)
{
    if (track->labels == NULL)
        return;
    marey__page_open(json, "labels", "[");
    for (size_t i = 0; i < track->n_rows; i++) {
        if (!is_shown(track, i))
            continue;
        marey__json_put(json, track->labels[i].text, track->labels[i].len);
        marey__buf_puts(json, ",");
    }
    marey__page_close(json, "],");
}

static void put_track(struct marey__buf *json, const struct marey__page_track *track, size_t process)
{
    static const char *const kinds[MAREY__N_TRACK_KINDS] = {"thread",   "gpu",      "async",
                                                            "counters", "progress", "series"};
    if (is_empty(track))
        return;
    marey__json_printf(json, "{'kind':%s,'process':%zu,", kinds[track->kind], process);
    if (track->lane != NULL)
        marey__script_printf(json, "'name':%s,'lane':%u,'tid':%" PRId64 ",'device':%d,'stream':%u,",
                             track->lane->name, track->lane->lane, track->lane->tid,
                             track->lane->device, track->lane->stream);
    if (track->n_too_deep != 0)
        marey__page_put_number(json, "too_deep", track->n_too_deep);
    const struct {
        const char *key;
        const struct marey__page_row *row;
    } others[] = {{"marks", &track->marks},
                  {"losses", &track->losses},
                  {"texts", &track->texts},
                  {"links", &track->links},
                  {"flows", &track->flows}};
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++) {
        if (others[i].row->first == NULL)
            continue;
        marey__page_open(json, others[i].key, "");
        put_row(json, others[i].row);
    }
    put_unfinished(json, track);
    put_labels(json, track);
    marey__page_open(json, "rows", "[");
    for (size_t i = 0; i < track->n_rows; i++)
        if (is_shown(track, i))
            put_row(json, &track->rows[i]);
    marey__page_close(json, "]},");
}

static void put_tracks(struct marey__buf *json, const struct marey__page *page)
{
    marey__page_open(json, "tracks", "[");
    for (size_t p = 0; p < page->n_processes; p++) {
        const struct marey__page_process *process = &page->processes[p];
        put_track(json, &process->progress, p);
        put_track(json, &process->series, p);
        for (size_t i = 0; process->lanes != NULL && i < process->info->n_lanes; i++)
            put_track(json, &process->lanes[i], p);
        put_track(json, &process->async, p);
        put_track(json, &process->counters, p);
    }
    marey__page_close(json, "],");
}

/* ---- processes ---- */

/* The last word: "train.py" of "/usr/bin/python3 train.py"; for a measuring process, its target. */
static void put_process_name(struct marey__buf *json, const struct marey_process *info)
{
    struct marey__buf name = {0};
    if (info->rank >= 0)
        marey__buf_printf(&name, "rank %d ", info->rank);
    if (info->worker >= 0)
        marey__buf_printf(&name, "worker %d ", info->worker);
    if (info->role[0] != '\0')
        marey__buf_puts(&name, info->role);
    else
        marey__export_program(&name, info->command);
    marey__json_printf(json, "'name':%.*s,", (int)name.len, name.data);
    marey__buf_end(&name, json);
}

static void put_process(struct marey__buf *json, const struct marey__page_process *process,
                        bool is_on_timeline)
{
    const struct marey_process *info = process->info;
    marey__buf_puts(json, "{");
    put_process_name(json, info);
    marey__script_printf(
        json,
        "'rank':%d,'pid':%" PRId64 ",'host':%s,'command':%s,'end':%s,'role':%s,'clock':%s,"
        "'version':%s,'cpu':%s,'cpus':%s,'gpu':%s,'kernel':%s,'versions':%s,'first_ns':%" PRIu64
        ",'last_ns':%" PRIu64 ",'lost_events':%" PRIu64 ",",
        info->rank, info->pid, info->host, info->command, info->end, info->role, info->clock,
        info->version, info->cpu, info->cpus, info->gpu, info->kernel, info->versions,
        marey__page_ns(process, info->first_ns), marey__page_ns(process, info->last_ns),
        info->lost_events);
    if (info->lost_events != 0) {
        marey__page_put_number(json, "lost_first_ns", marey__page_ns(process, info->lost_first_ns));
        marey__page_put_number(json, "lost_last_ns", marey__page_ns(process, info->lost_last_ns));
    }
    marey__page_put_number(json, "events", info->n_events);
    if (!is_on_timeline)
        marey__buf_puts(json, "\"left_out\":true,");
    if (process->thin.n_merged != 0)
        marey__page_put_number(json, "merged", process->thin.n_merged);
    if (process->n_texts_left_out != 0)
        marey__page_put_number(json, "texts_left_out", process->n_texts_left_out);
    marey__page_close(json, "},");
}

static void put_processes(struct marey__buf *json, const struct marey__page *page)
{
    marey__page_open(json, "processes", "[");
    for (size_t p = 0; p < page->n_processes; p++)
        put_process(json, &page->processes[p], marey__page_is_chosen(page, p));
    marey__page_close(json, "],");
}

/* ---- the index ---- */

static void put_cost(struct marey__buf *json, const struct marey_cost *cost)
{
    struct marey__buf missing MAREY__FINALLY(marey__buf_fini) = {0};
    marey__cost_put_missing(&missing, cost);
    marey__script_printf(json,
                         "'cost':{'events':%" PRIu64 ",'low_ns':%" PRIu64 ",'high_ns':%" PRIu64
                         ",'flush_cpu_ns':%" PRIu64 ",'log_bytes':%" PRIu64 ",'program_ns':%" PRIu64
                         ",'lost_events':%" PRIu64 ",'incomplete':%" PRIu64
                         ",'lost_first_ns':%" PRIu64 ",'lost_last_ns':%" PRIu64 ",'missing':%.*s},",
                         cost->events, cost->low_ns, cost->high_ns, cost->flush_cpu_ns,
                         cost->log_bytes, cost->program_ns, cost->lost_events,
                         (uint64_t)cost->n_stopped + cost->n_cut, cost->lost_first_ns,
                         cost->lost_last_ns, missing.failed ? 0 : (int)missing.len, missing.data);
}

marey_status marey__page_index(const struct marey__page *page, struct marey__buf *json)
{
    marey__page_put_start(
        json, "report", page->options->title != NULL ? page->options->title : page->summary->title);
    marey__script_printf(json,
                         "'origin_ns':%" PRIu64 ",'origin_unix_ns':%" PRId64
                         ",'duration_ns':%" PRIu64 ",'threads':%" PRIu64 ",",
                         page->origin_ns, page->origin_unix_ns, page->duration_ns,
                         (uint64_t)marey__summary_of(page->summary)->n_threads);
    marey__page_put_bool(json, "damaged",
                         marey__page_is_damaged(page->recordings, page->n_recordings));
    put_cost(json, &page->summary->cost);
    marey__page_open(json, "tables", "[");
    for (size_t t = 0; t < MAREY__N_TABLES; t++)
        if (t == MAREY__TABLE_TREE)
            marey__page_tree(json, page->summary, t, MAREY__PAGE_TABLE_ROWS);
        else
            marey__page_table(json, page->summary, t, NULL, MAREY__PAGE_TABLE_ROWS);
    marey__page_put_reports(page, false, json);
    marey__page_close(json, "],");
    marey__page_put_reports(page, true, json);
    marey__page_put_trees(page, json);
    marey__page_put_heat(page, json);
    put_processes(json, page);
    put_tracks(json, page);
    marey__page_close(json, "}");
    return json->failed ? marey__no_memory() : MAREY_OK;
}

/* ---- names ---- */

static void put_site(struct marey__buf *json, const struct marey_site_info *site)
{
    const char *const name = site->name_len != 0 ? site->name : "(unnamed)";
    marey__json_printf(json, "[%.*s,%s,%s,%u,%u],",
                       site->name_len != 0 ? (int)site->name_len : (int)strlen(name), name,
                       site->category, site->file, site->line, site->color);
}

/* The sites used by a process's events, as numbers of names; 0 for others. */
static bool put_process_sites(struct marey__buf *json, const struct marey__page_process *process,
                              struct marey__names *names, struct marey__buf *sites,
                              struct marey__arena *keys)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    bool ok = true;
    marey__buf_puts(sites, "[");
    for (uint32_t i = 0; ok && process->uses != NULL && i <= process->info->n_sites; i++) {
        const struct marey_site_info *site =
            marey_recording_site(process->recording, process->info->index, i);
        if (process->uses[i] != MAREY__SITE_USED) {
            marey__buf_puts(sites, "0,");
            continue;
        }
        marey__site_key(&key, site);
        const size_t before = names->n;
        const uint32_t number =
            key.failed ? MAREY__NO_NAME : marey__names_keep(names, keys, key.data, key.len);
        ok = number != MAREY__NO_NAME;
        if (names->n != before)
            put_site(json, site);
        marey__buf_printf(sites, "%u,", number);
    }
    marey__page_close(sites, "],");
    return ok;
}

marey_status marey__page_names(const struct marey__page *page, struct marey__buf *json)
{
    struct marey__names names MAREY__FINALLY(marey__names_fini) = {0};
    struct marey__buf sites MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__arena keys MAREY__FINALLY(marey__arena_fini) = {0};
    bool ok = true;
    marey__buf_puts(json, "{\"names\":[");
    for (size_t p = 0; ok && p < page->n_processes; p++)
        ok = put_process_sites(json, &page->processes[p], &names, &sites, &keys);
    marey__page_close(json, "],\"sites\":[");
    if (sites.len != 0)
        marey__buf_put(json, sites.data, sites.len);
    marey__page_close(json, "]}");
    ok = ok && !json->failed && !sites.failed;
    return ok ? MAREY_OK : marey__no_memory();
}
