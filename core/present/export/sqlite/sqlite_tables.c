/* Everything but ranges: one INSERT for each row. Text that goes into the database is valid UTF-8 without NULs. */
#include <stdio.h>

#include "present/export/sqlite/internal.h"

/* ---- values ---- */

int marey__db_step(struct marey__db *db, enum marey__db_table table)
{
    sqlite3_stmt *const insert = db->inserts[table];
    if (db->status == MAREY_OK && sqlite3_step(insert) != SQLITE_DONE)
        marey__db_fail(db);
    return sqlite3_reset(insert); /* what was bound to it stays until it is bound anew */
}

void marey__db_bind_if(sqlite3_stmt *insert, int column, bool is_known, int64_t number)
{
    if (is_known)
        sqlite3_bind_int64(insert, column, number);
    else
        sqlite3_bind_null(insert, column);
}

static void no_memory_for_texts(struct marey__db *db)
{
    if (db->status == MAREY_OK)
        db->status = marey__no_memory();
}

/*
 * `text` into db->scratch as SQL wants it. Whether it is there as it was: bytes that are no UTF-8 become U+FFFD, and a
 * NUL, at which many readers would stop, U+2400.
 */
static bool clean_text(struct marey__db *db, const char *text, size_t len)
{
    bool is_same = true;
    db->scratch.len = 0;
    for (size_t at = 0; at <= len;) {
        const size_t n = strnlen(text + at, len - at);
        const size_t before = db->scratch.len;
        marey__utf8_put(&db->scratch, text + at, n);
        is_same = is_same && db->scratch.len - before == n && at + n == len;
        if (at + n < len)
            marey__buf_puts(&db->scratch, "\xe2\x90\x80");
        at += n + 1;
    }
    if (db->scratch.failed)
        no_memory_for_texts(db);
    return is_same;
}

bool marey__db_bind_bytes(struct marey__db *db, sqlite3_stmt *insert, int column, const char *text,
                          size_t len)
{
    const bool is_same = clean_text(db, text, len);
    if (!db->scratch.failed)
        sqlite3_bind_text64(insert, column, len > 0 ? db->scratch.data : "", db->scratch.len,
                            SQLITE_TRANSIENT, SQLITE_UTF8);
    return is_same;
}

void marey__db_bind_text(struct marey__db *db, sqlite3_stmt *insert, int column, const char *text)
{
    marey__db_bind_bytes(db, insert, column, text, strlen(text));
}

/* A text that would not come out as it went in is left as it is, but a BLOB. */
static void value_of_text(struct marey__db *db, const struct marey__payload *payload,
                          struct marey__db_value *value)
{
    value->type = clean_text(db, payload->text, payload->len) ? SQLITE_TEXT : SQLITE_BLOB;
    value->text = payload->text;
    value->len = (int)payload->len;
}

void marey__db_value_of(struct marey__db *db, const struct marey__payload *payload,
                        struct marey__db_value *value)
{
    *value = (struct marey__db_value){.type = SQLITE_NULL};
    const uint32_t type = payload != NULL ? payload->type : 0;
    if (type == MAREY_PAYLOAD_I64 || (type == MAREY_PAYLOAD_U64 && payload->bits <= INT64_MAX)) {
        value->type = SQLITE_INTEGER;
        value->number = (int64_t)payload->bits;
    } else if (type == MAREY_PAYLOAD_U64) { /* more than an INTEGER holds: the digits */
        value->type = SQLITE_TEXT;
        value->text = value->digits;
        value->len =
            snprintf(value->digits, sizeof value->digits, "%llu", (unsigned long long)payload->bits);
    } else if (type == MAREY_PAYLOAD_F64) {
        value->type = SQLITE_FLOAT;
        memcpy(&value->real, &payload->bits, sizeof value->real);
    } else if (type == MAREY_PAYLOAD_TEXT) {
        value_of_text(db, payload, value);
    }
}

/* ---- what was recorded ---- */

static void put_pair(struct marey__db *db, const char *key, const char *text, int64_t number)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_META];
    marey__db_bind_text(db, insert, 1, key);
    if (text != NULL)
        marey__db_bind_text(db, insert, 2, text);
    else
        sqlite3_bind_int64(insert, 2, number);
    marey__db_step(db, MAREY__DB_META);
}

void marey__db_put_meta(struct marey__export *x, struct marey__db *db)
{
    put_pair(db, "tool", "marey", 0);
    put_pair(db, "marey_version", marey_version(), 0);
    put_pair(db, "schema_version", NULL, 1);
    put_pair(db, "clock", x->is_wall_clock ? "realtime" : "monotonic", 0);
    put_pair(db, "origin_ns", NULL, (int64_t)x->origin_ns);
    put_pair(db, "origin_unix_ns", NULL, x->origin_unix_ns);
    if (x->options->filter != NULL)
        put_pair(db, "filter", x->options->filter, 0);
}

static void put_warning(struct marey__db *db, uint32_t process, const char *text, size_t len)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_WARNING];
    if (len == 0)
        return;
    marey__db_bind_if(insert, 1, process != 0, process);
    marey__db_bind_bytes(db, insert, 2, text, len);
    marey__db_step(db, MAREY__DB_WARNING);
}

void marey__db_put_warnings(struct marey__export *x, struct marey__db *db)
{
    for (size_t r = 0; r < x->n_recordings; r++) {
        const char *text;
        for (size_t i = 0; (text = marey_recording_warning(x->recordings[r], i)) != NULL; i++)
            put_warning(db, 0, text, strlen(text));
    }
}

/* The sentences that the process left about itself, one per line. */
static void put_notes(struct marey__db *db, uint32_t process, const char *note)
{
    while (*note != '\0') {
        const size_t len = strcspn(note, "\n");
        put_warning(db, process, note, len);
        note += len + (note[len] == '\n');
    }
}

/* On the clock of the export, from its origin. */
static int64_t from_origin(const struct marey__export *x, uint64_t ns)
{
    return (int64_t)(ns + (uint64_t)x->shift_ns - x->origin_ns);
}

static void bind_identity(const struct marey__export *x, struct marey__db *db, sqlite3_stmt *insert)
{
    const struct marey_process *process = x->process;
    sqlite3_bind_int64(insert, 1, x->process_number + 1);
    marey__db_bind_text(db, insert, 2, marey_recording_name(x->recording));
    marey__db_bind_if(insert, 3, process->rank >= 0, process->rank);
    marey__db_bind_if(insert, 4, process->world_size >= 0, process->world_size);
    marey__db_bind_if(insert, 5, process->local_rank >= 0, process->local_rank);
    sqlite3_bind_int64(insert, 6, process->pid);
    marey__db_bind_if(insert, 7, process->ppid > 0, process->ppid);
    marey__db_bind_text(db, insert, 8, process->host);
    marey__db_bind_text(db, insert, 9, process->command);
    marey__db_bind_text(db, insert, 10, process->run_id);
    marey__db_bind_text(db, insert, 11, process->clock);
    marey__db_bind_text(db, insert, 12, process->end);
}

void marey__db_put_process(const struct marey__export *x, struct marey__db *db)
{
    const struct marey_process *process = x->process;
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_PROCESS];
    bind_identity(x, db, insert);
    sqlite3_bind_int64(insert, 13, (int64_t)process->start_unix_ns);
    marey__db_bind_if(insert, 14, process->n_words != 0, from_origin(x, process->first_ns));
    marey__db_bind_if(insert, 15, process->n_words != 0, from_origin(x, process->last_ns));
    sqlite3_bind_int64(insert, 16, (int64_t)process->n_events);
    sqlite3_bind_int64(insert, 17, (int64_t)process->lost_events);
    marey__db_bind_if(insert, 18, process->lost_events != 0, from_origin(x, process->lost_first_ns));
    marey__db_bind_if(insert, 19, process->lost_events != 0, from_origin(x, process->lost_last_ns));
    sqlite3_bind_double(insert, 20, process->event_cost_ns);
    sqlite3_bind_int64(insert, 21, (int64_t)process->flush_cpu_ns);
    sqlite3_bind_int64(insert, 22, (int64_t)process->log_bytes);
    marey__db_step(db, MAREY__DB_PROCESS);
    put_notes(db, x->process_number + 1, process->note);
}

void marey__db_put_thread(const struct marey__export *x, struct marey__db *db,
                          const struct marey_lane_info *lane)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_THREAD];
    sqlite3_bind_int64(insert, 1, (int64_t)x->n_lanes_before + lane->lane + 1);
    sqlite3_bind_int64(insert, 2, x->process_number + 1);
    sqlite3_bind_int64(insert, 3, lane->tid);
    marey__db_bind_text(db, insert, 4, lane->name);
    marey__db_step(db, MAREY__DB_THREAD);
}

/* ---- sites ---- */

static void put_site(struct marey__db *db, uint32_t id, uint32_t name_id,
                     const struct marey_site_info *site)
{
    static const char nameless[] = "(unnamed)"; /* as reports call it */
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_SITE];
    const bool has_name = site->name_len != 0;
    sqlite3_bind_int64(insert, 1, id);
    sqlite3_bind_int64(insert, 2, name_id);
    if (marey__db_bind_bytes(db, insert, 3, has_name ? site->name : nameless,
                             has_name ? site->name_len : strlen(nameless)))
        sqlite3_bind_null(insert, 4);
    else
        sqlite3_bind_blob64(insert, 4, site->name, site->name_len, SQLITE_STATIC);
    marey__db_bind_text(db, insert, 5, site->category);
    marey__db_bind_text(db, insert, 6, site->domain);
    sqlite3_bind_int64(insert, 7, site->color);
    marey__db_bind_text(db, insert, 8, site->file);
    sqlite3_bind_int64(insert, 9, site->line);
    marey__db_step(db, MAREY__DB_SITE);
}

/* The id of an equal site of another process, or a new one; 0 without memory. */
static uint32_t number_site(struct marey__db *db, const struct marey_site_info *site)
{
    marey__site_key(&db->scratch, site);
    const char *key =
        db->scratch.failed ? NULL : marey__arena_text(&db->keys, db->scratch.data, db->scratch.len);
    if (key == NULL)
        return 0;
    const size_t n_before = db->site_keys.n;
    const uint32_t number = marey__names_number(&db->site_keys, key, db->scratch.len);
    if (number == MAREY__NO_NAME || db->site_keys.n == n_before)
        return number + 1;
    const uint32_t name = marey__names_number(&db->names, site->name, site->name_len);
    if (name == MAREY__NO_NAME)
        return 0;
    put_site(db, number + 1, name + 1, site);
    return number + 1;
}

uint32_t marey__db_site(struct marey__export *x, struct marey__db *db, uint32_t site)
{
    uint32_t *const ids = x->sites;
    const uint32_t slot = marey__site_slot(x, site);
    if (MAREY_UNLIKELY(ids[slot] == 0)) {
        ids[slot] = number_site(db, marey__export_site(x, slot));
        if (ids[slot] == 0)
            no_memory_for_texts(db);
    }
    return ids[slot];
}

/* ---- events ---- */

static void bind_payload(struct marey__db *db, sqlite3_stmt *insert, int column,
                         const struct marey__payload *payload)
{
    struct marey__db_value value;
    marey__db_value_of(db, payload, &value);
    if (value.type == SQLITE_INTEGER)
        sqlite3_bind_int64(insert, column, value.number);
    else if (value.type == SQLITE_FLOAT)
        sqlite3_bind_double(insert, column, value.real);
    else if (value.type == SQLITE_TEXT)
        sqlite3_bind_text(insert, column, value.text, value.len, SQLITE_TRANSIENT);
    else if (value.type == SQLITE_BLOB)
        sqlite3_bind_blob(insert, column, value.text, value.len, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(insert, column);
}

void marey__db_put_mark(struct marey__db *db, uint32_t thread, int64_t range, uint32_t site,
                        uint64_t at_ns, const struct marey__payload *payload)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_MARK];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, thread);
    marey__db_bind_if(insert, 3, range != 0, range);
    sqlite3_bind_int64(insert, 4, site);
    sqlite3_bind_int64(insert, 5, (int64_t)at_ns);
    bind_payload(db, insert, 6, payload);
    marey__db_step(db, MAREY__DB_MARK);
}

void marey__db_put_counter(struct marey__db *db, uint32_t thread, uint32_t site, uint64_t at_ns,
                           double value)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_COUNTER];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, thread);
    sqlite3_bind_int64(insert, 3, site);
    sqlite3_bind_int64(insert, 4, (int64_t)at_ns);
    sqlite3_bind_double(insert, 5, value); /* what is no number becomes NULL */
    marey__db_step(db, MAREY__DB_COUNTER);
}

void marey__db_put_async(struct marey__db *db, uint32_t thread, uint32_t end_thread, uint32_t site,
                         uint64_t start_ns, uint64_t duration_ns)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_ASYNC];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, thread);
    marey__db_bind_if(insert, 3, end_thread != 0, end_thread);
    sqlite3_bind_int64(insert, 4, site);
    sqlite3_bind_int64(insert, 5, (int64_t)start_ns);
    marey__db_bind_if(insert, 6, duration_ns != MAREY__DB_UNKNOWN, (int64_t)duration_ns);
    marey__db_step(db, MAREY__DB_ASYNC);
}

void marey__db_put_loss(struct marey__db *db, uint32_t thread, uint64_t at_ns, uint64_t n_events)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_LOSS];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, thread);
    sqlite3_bind_int64(insert, 3, (int64_t)at_ns);
    marey__db_bind_if(insert, 4, n_events != 0, (int64_t)n_events);
    marey__db_step(db, MAREY__DB_LOSS);
}

void marey__db_put_repeat(struct marey__db *db, int64_t range, uint64_t calls)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_REPEAT];
    sqlite3_bind_int64(insert, 1, range);
    sqlite3_bind_int64(insert, 2, (int64_t)calls);
    marey__db_step(db, MAREY__DB_REPEAT);
    db->has_repeats = true;
}

/* ---- iterations, epochs, phases ---- */

static void put_phase(struct marey__export *x, struct marey__db *db, const struct marey__span *span)
{
    const uint32_t site = marey__db_site(x, db, span->site);
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_PHASE];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, x->process_number + 1);
    sqlite3_bind_int64(insert, 3, site);
    sqlite3_bind_int64(insert, 4, (int64_t)span->n_iterations);
    sqlite3_bind_int64(insert, 5, (int64_t)(span->begin_ns - x->origin_ns));
    marey__db_bind_if(insert, 6, !span->is_open, (int64_t)(span->end_ns - span->begin_ns));
    marey__db_step(db, MAREY__DB_PHASE);
}

void marey__db_put_span(struct marey__export *x, struct marey__db *db, const struct marey__span *span)
{
    if (span->kind == MAREY__SPAN_PHASE) {
        put_phase(x, db, span);
        return;
    }
    const bool is_epoch = span->kind == MAREY__SPAN_EPOCH;
    sqlite3_stmt *const insert = db->inserts[is_epoch ? MAREY__DB_EPOCH : MAREY__DB_ITERATION];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, x->process_number + 1);
    sqlite3_bind_int64(insert, 3, (int64_t)span->number);
    sqlite3_bind_int64(insert, 4,
                       is_epoch ? (int64_t)span->n_iterations
                                : (int64_t)(span->flags & MAREY__ITERATION_WARMUP));
    sqlite3_bind_int64(insert, 5, (int64_t)(span->begin_ns - x->origin_ns));
    /* Where an iteration began is not known when the record of the one before was lost. */
    marey__db_bind_if(insert, 6, !span->is_open && (span->flags & MAREY__ITERATION_CUT) == 0,
                      (int64_t)(span->end_ns - span->begin_ns));
    if (span->samples > 0)
        sqlite3_bind_double(insert, 7, span->samples);
    else
        sqlite3_bind_null(insert, 7);
    marey__db_step(db, is_epoch ? MAREY__DB_EPOCH : MAREY__DB_ITERATION);
}
