/*
 * The index of the page, JSON: what was recorded, the tables of the summary, and where the events of each track lie. The
 * names that sites stand for are a text of their own, since there may be a million of them.
 */
#include <inttypes.h>
#include <string.h>

#include "present/page_internal.h"

static void put_string(struct kymo__buf *json, const char *text)
{
    kymo__json_put(json, text, strlen(text));
}

static void put_key(struct kymo__buf *json, const char *key)
{
    kymo__buf_printf(json, "\"%s\":", key);
}

static void put_text(struct kymo__buf *json, const char *key, const char *text)
{
    put_key(json, key);
    put_string(json, text);
    kymo__buf_puts(json, ",");
}

/* Beyond 2^53 a number of JavaScript would be another one: it is a text then. */
static void put_i64(struct kymo__buf *json, int64_t value)
{
    const int64_t most = INT64_C(1) << 53;
    kymo__buf_printf(json, value > most || value < -most ? "\"%" PRId64 "\"" : "%" PRId64, value);
}

static void put_u64(struct kymo__buf *json, uint64_t value)
{
    kymo__buf_printf(json, value > UINT64_C(1) << 53 ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

static void put_number(struct kymo__buf *json, const char *key, uint64_t value)
{
    put_key(json, key);
    put_u64(json, value);
    kymo__buf_puts(json, ",");
}

/* Take the comma behind the last element back and close what was opened. */
static void close_with(struct kymo__buf *json, const char *bracket)
{
    if (json->len > 0 && json->data[json->len - 1] == ',')
        json->len--;
    kymo__buf_puts(json, bracket);
}

/* ---- tables ---- */

static const char *const type_names[] = {"", "text", "i64", "u64", "f64", "bool"};
static const char *const unit_names[] = {"", "count", "ns", "bytes", "share", "unix_ns"};

static void put_columns(struct kymo__buf *json, const kymo_table *table)
{
    kymo__buf_puts(json, "\"columns\":[");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const struct kymo_column *column = kymo_table_column(table, c);
        kymo__buf_puts(json, "{");
        put_text(json, "name", column->name);
        put_text(json, "title", column->title != NULL ? column->title : column->name);
        put_text(json, "type", type_names[column->type]);
        put_text(json, "unit", unit_names[column->unit]);
        close_with(json, "},");
    }
    close_with(json, "],");
}

static void put_cell(struct kymo__buf *json, const struct kymo_cell *cell, enum kymo_type type)
{
    char number[40];
    if (cell->is_null)
        kymo__buf_puts(json, "null");
    else if (type == KYMO_TYPE_TEXT)
        kymo__json_put(json, cell->as.text, cell->len);
    else if (type == KYMO_TYPE_I64)
        put_i64(json, cell->as.i64);
    else if (type == KYMO_TYPE_F64)
        kymo__buf_put(json, number, (size_t)(kymo__put_f64(number, cell->as.f64) - number));
    else if (type == KYMO_TYPE_BOOL)
        kymo__buf_puts(json, cell->as.u64 != 0 ? "true" : "false");
    else
        put_u64(json, cell->as.u64);
    kymo__buf_puts(json, ",");
}

void kymo__page_table(struct kymo__buf *json, const kymo_table *table, size_t max_rows)
{
    const size_t n = kymo_table_n_rows(table);
    const size_t n_kept = max_rows != 0 && n > max_rows ? max_rows : n;
    kymo__buf_puts(json, "{");
    put_text(json, "name", kymo_table_name(table));
    put_number(json, "rows", n);
    put_columns(json, table);
    kymo__buf_puts(json, "\"cells\":[");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const enum kymo_type type = kymo_table_column(table, c)->type;
        kymo__buf_puts(json, "[");
        for (size_t row = 0; row < n_kept; row++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            put_cell(json, &cell, type);
        }
        close_with(json, "],");
    }
    close_with(json, "]},");
}

/* ---- tracks ---- */

/* A row: [id, [section, offset, events, first, last], ...]. */
static void put_row(struct kymo__buf *json, const struct kymo__page_row *row)
{
    kymo__buf_printf(json, "[%u,", row->id);
    for (const struct kymo__page_chunk *chunk = row->first; chunk != NULL; chunk = chunk->next)
        kymo__buf_printf(json, "[%u,%u,%u,%" PRIu64 ",%" PRIu64 "],", chunk->section, chunk->offset,
                         chunk->n, chunk->first_ns, chunk->last_ns);
    close_with(json, "],");
}

static void put_unfinished(struct kymo__buf *json, const struct kymo__page_track *track)
{
    put_key(json, "unfinished");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_unfinished; i++) {
        const struct kymo__page_unfinished *u = &track->unfinished[i];
        kymo__buf_printf(json, "[%u,%" PRIu64 ",%" PRIu64 ",%u,%d],", u->depth, u->start_ns,
                         u->last_ns, u->site, u->is_lost);
    }
    close_with(json, "],");
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
    put_key(json, "labels");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_rows; i++) {
        if (!is_shown(track, i))
            continue;
        kymo__json_put(json, track->labels[i].text, track->labels[i].len);
        kymo__buf_puts(json, ",");
    }
    close_with(json, "],");
}

static void put_track(struct kymo__buf *json, const struct kymo__page_track *track, size_t process)
{
    static const char *const kinds[KYMO__N_TRACK_KINDS] = {"thread",   "gpu",      "async",
                                                           "counters", "progress", "series"};
    if (is_empty(track))
        return;
    kymo__buf_puts(json, "{");
    put_text(json, "kind", kinds[track->kind]);
    put_number(json, "process", process);
    if (track->lane != NULL) {
        put_text(json, "name", track->lane->name);
        put_number(json, "lane", track->lane->lane);
        put_key(json, "tid");
        put_i64(json, track->lane->tid);
        kymo__buf_printf(json, ",\"device\":%d,\"stream\":%u,", track->lane->device,
                         track->lane->stream);
    }
    if (track->n_too_deep != 0)
        put_number(json, "too_deep", track->n_too_deep);
    put_key(json, "marks");
    put_row(json, &track->marks);
    put_key(json, "losses");
    put_row(json, &track->losses);
    put_unfinished(json, track);
    put_labels(json, track);
    put_key(json, "rows");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < track->n_rows; i++)
        if (is_shown(track, i))
            put_row(json, &track->rows[i]);
    close_with(json, "]},");
}

static void put_tracks(struct kymo__buf *json, const struct kymo__page *page)
{
    put_key(json, "tracks");
    kymo__buf_puts(json, "[");
    for (size_t p = 0; p < page->n_processes; p++) {
        const struct kymo__page_process *process = &page->processes[p];
        put_track(json, &process->progress, p);
        put_track(json, &process->series, p);
        for (size_t i = 0; i < process->info->n_lanes; i++)
            put_track(json, &process->lanes[i], p);
        put_track(json, &process->async, p);
        put_track(json, &process->counters, p);
    }
    close_with(json, "],");
}

/* ---- processes ---- */

/* The last word: "train.py" of "/usr/bin/python3 train.py". */
static void put_process_name(struct kymo__buf *json, const struct kymo_process *info)
{
    struct kymo__buf name = {0};
    if (info->rank >= 0)
        kymo__buf_printf(&name, "rank %d ", info->rank);
    kymo__export_program(&name, info->command);
    put_key(json, "name");
    kymo__json_put(json, name.data, name.len);
    kymo__buf_puts(json, ",");
    json->failed |= name.failed;
    kymo__buf_fini(&name);
}

static void put_moment(struct kymo__buf *json, const char *key, const struct kymo__page_process *p,
                       uint64_t ns)
{
    const uint64_t on_clock = ns + (uint64_t)p->shift_ns, origin = p->page->origin_ns;
    put_number(json, key, on_clock > origin ? on_clock - origin : 0);
}

static void put_process(struct kymo__buf *json, const struct kymo__page_process *process)
{
    const struct kymo_process *info = process->info;
    kymo__buf_puts(json, "{");
    put_process_name(json, info);
    kymo__buf_printf(json, "\"rank\":%d,\"pid\":%" PRId64 ",", info->rank, info->pid);
    put_text(json, "host", info->host);
    put_text(json, "command", info->command);
    put_text(json, "end", info->end);
    put_text(json, "clock", info->clock);
    put_text(json, "version", info->version);
    put_text(json, "cpu", info->cpu);
    put_text(json, "cpus", info->cpus);
    put_text(json, "gpu", info->gpu);
    put_text(json, "kernel", info->kernel);
    put_text(json, "versions", info->versions);
    put_moment(json, "first_ns", process, info->first_ns);
    put_moment(json, "last_ns", process, info->last_ns);
    put_number(json, "lost_events", info->lost_events);
    if (info->lost_events != 0) {
        put_moment(json, "lost_first_ns", process, info->lost_first_ns);
        put_moment(json, "lost_last_ns", process, info->lost_last_ns);
    }
    put_number(json, "events", info->n_events);
    close_with(json, "},");
}

static void put_processes(struct kymo__buf *json, const struct kymo__page *page)
{
    put_key(json, "processes");
    kymo__buf_puts(json, "[");
    for (size_t p = 0; p < page->n_processes; p++)
        put_process(json, &page->processes[p]);
    close_with(json, "],");
}

/* ---- the whole ---- */

static void put_cost(struct kymo__buf *json, const struct kymo_cost *cost)
{
    put_key(json, "cost");
    kymo__buf_puts(json, "{");
    put_number(json, "events", cost->events);
    put_number(json, "in_program_ns", cost->in_program_ns);
    put_number(json, "flush_cpu_ns", cost->flush_cpu_ns);
    put_number(json, "log_bytes", cost->log_bytes);
    put_number(json, "program_ns", cost->program_ns);
    put_number(json, "lost_events", cost->lost_events);
    put_number(json, "lost_first_ns", cost->lost_first_ns);
    put_number(json, "lost_last_ns", cost->lost_last_ns);
    close_with(json, "},");
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
    put_text(json, "version", kymo_version());
    put_text(json, "title",
             page->options->title != NULL ? page->options->title : page->summary->title);
    put_number(json, "origin_ns", page->origin_ns);
    put_key(json, "origin_unix_ns");
    put_i64(json, page->origin_unix_ns);
    kymo__buf_puts(json, ",");
    put_number(json, "duration_ns", page->duration_ns);
    put_number(json, "threads", page->summary->n_threads);
    kymo__buf_printf(json, "\"damaged\":%s,", is_damaged(page) ? "true" : "false");
    put_cost(json, &page->summary->cost);
    put_key(json, "tables");
    kymo__buf_puts(json, "[");
    for (size_t t = 0; t < KYMO__N_TABLES; t++)
        kymo__page_table(json, page->summary->tables[t], KYMO__PAGE_TABLE_ROWS);
    close_with(json, "],");
    put_processes(json, page);
    put_tracks(json, page);
    close_with(json, "}");
    return json->failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page's index") : KYMO_OK;
}

/* ---- names ---- */

static void put_site(struct kymo__buf *json, const struct kymo_site_info *site)
{
    kymo__buf_puts(json, "[");
    kymo__json_put(json, site->name_len != 0 ? site->name : "(unnamed)",
                   site->name_len != 0 ? site->name_len : strlen("(unnamed)"));
    kymo__buf_puts(json, ",");
    put_string(json, site->category);
    kymo__buf_puts(json, ",");
    put_string(json, site->file);
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
    for (uint32_t i = 0; ok && i <= process->info->n_sites; i++) {
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
    close_with(sites, "],");
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
    close_with(json, "],\"sites\":[");
    if (sites.len != 0)
        kymo__buf_put(json, sites.data, sites.len);
    close_with(json, "]}");
    ok = ok && !json->failed && !sites.failed;
    kymo__names_fini(&names);
    kymo__buf_fini(&sites);
    kymo__arena_fini(&keys);
    return ok ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the page's names");
}
