/* All tables except ranges: one INSERT per row. Text in the database is valid UTF-8 without NULs. */
#include "present/export/sqlite/internal.h"

/* ---- values ---- */

static void no_memory_for_texts(struct marey__db *db)
{
    if (db->status == MAREY_OK)
        db->status = marey__no_memory();
}

/*
 * Convert `text` to SQL text in db->scratch. Returns whether it is unchanged: invalid UTF-8 becomes U+FFFD, and NUL, at
 * which many readers would stop, U+2400.
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

static void bind_bytes(struct marey__db *db, sqlite3_stmt *insert, int column, const char *text,
                       size_t len)
{
    clean_text(db, text, len);
    if (!db->scratch.failed)
        sqlite3_bind_text64(insert, column, len > 0 ? db->scratch.data : "", db->scratch.len,
                            SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* A text that conversion would change is stored as a BLOB instead. */
struct marey__db_cell marey__db_payload(struct marey__db *db, const struct marey__payload *payload,
                                        char digits[MAREY__NUMBER_ROOM])
{
    const uint32_t type = payload != NULL ? payload->type : 0;
    double real;
    if (type == MAREY_PAYLOAD_I64 || (type == MAREY_PAYLOAD_U64 && payload->bits <= INT64_MAX))
        return DB_INT(payload->bits);
    if (type == MAREY_PAYLOAD_U64)
        return DB_BYTES(digits, (size_t)(marey__u64_text(digits, payload->bits) - digits));
    if (type == MAREY_PAYLOAD_F64) {
        memcpy(&real, &payload->bits, sizeof real);
        return DB_REAL(real);
    }
    if (type != MAREY_PAYLOAD_TEXT)
        return DB_CELL(.kind = MAREY__DB_NULL);
    return DB_CELL(.kind = clean_text(db, payload->text, payload->len) ? MAREY__DB_TEXT
                                                                       : MAREY__DB_BLOB,
                   .text = payload->text, .len = payload->len);
}

/* ---- rows ---- */

static void bind_cell(struct marey__db *db, sqlite3_stmt *insert, int column,
                      const struct marey__db_cell *cell)
{
    if (cell->kind == MAREY__DB_INTEGER)
        sqlite3_bind_int64(insert, column, cell->number);
    else if (cell->kind == MAREY__DB_REAL)
        sqlite3_bind_double(insert, column, cell->real);
    else if (cell->kind == MAREY__DB_TEXT)
        bind_bytes(db, insert, column, cell->text, cell->len);
    else if (cell->kind == MAREY__DB_BLOB)
        sqlite3_bind_blob64(insert, column, cell->text, cell->len, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(insert, column);
}

void marey__db_run(struct marey__db *db, sqlite3_stmt *insert, const struct marey__db_cell *cells,
                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        bind_cell(db, insert, (int)i + 1, &cells[i]);
    if (db->status == MAREY_OK && sqlite3_step(insert) != SQLITE_DONE)
        marey__db_fail(db);
    sqlite3_reset(insert);
}

/* ---- recordings and processes ---- */

static void put_pair(struct marey__db *db, const char *key, const char *text, int64_t number)
{
    MAREY__DB_INSERT(db, META, DB_TEXT(key), text != NULL ? DB_TEXT(text) : DB_INT(number));
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
    if (len != 0)
        MAREY__DB_INSERT(db, WARNING, DB_KNOWN(process != 0, process), DB_BYTES(text, len));
}

void marey__db_put_warnings(struct marey__export *x, struct marey__db *db)
{
    for (size_t r = 0; r < x->n_recordings; r++) {
        const char *text;
        for (size_t i = 0; (text = marey_recording_warning(x->recordings[r], i)) != NULL; i++)
            put_warning(db, 0, text, strlen(text));
    }
}

/* The process's notes, one per line. */
static void put_notes(struct marey__db *db, uint32_t process, const char *note)
{
    while (*note != '\0') {
        const size_t len = strcspn(note, "\n");
        put_warning(db, process, note, len);
        note += len + (note[len] == '\n');
    }
}

/* On the export's clock, from its origin. */
static int64_t from_origin(const struct marey__export *x, uint64_t ns)
{
    return (int64_t)(ns + (uint64_t)x->shift_ns - x->origin_ns);
}

void marey__db_put_process(const struct marey__export *x, struct marey__db *db)
{
    const struct marey_process *p = x->process;
    const bool has_events = p->n_words != 0, has_losses = p->lost_events != 0;
    MAREY__DB_INSERT(db, PROCESS, DB_INT(x->process_number + 1),
                     DB_TEXT(marey_recording_name(x->recording)), DB_KNOWN(p->rank >= 0, p->rank),
                     DB_KNOWN(p->world_size >= 0, p->world_size),
                     DB_KNOWN(p->local_rank >= 0, p->local_rank), DB_INT(p->pid),
                     DB_KNOWN(p->ppid > 0, p->ppid), DB_TEXT(p->host), DB_TEXT(p->command),
                     DB_TEXT(p->run_id), DB_TEXT(p->clock), DB_TEXT(p->end),
                     DB_INT(p->start_unix_ns), DB_KNOWN(has_events, from_origin(x, p->first_ns)),
                     DB_KNOWN(has_events, from_origin(x, p->last_ns)), DB_INT(p->n_events),
                     DB_INT(p->lost_events), DB_KNOWN(has_losses, from_origin(x, p->lost_first_ns)),
                     DB_KNOWN(has_losses, from_origin(x, p->lost_last_ns)),
                     DB_REAL(p->event_cost_ns), DB_INT(p->flush_cpu_ns), DB_INT(p->log_bytes));
    put_notes(db, x->process_number + 1, p->note);
}

/* ---- sites ---- */

/* For a changed name, the original is stored as well. */
static void put_site(struct marey__db *db, uint32_t id, uint32_t name_id,
                     const struct marey_site_info *site)
{
    const bool has_name = site->name_len != 0;
    const bool is_same = clean_text(db, site->name, site->name_len);
    MAREY__DB_INSERT(db, SITE, DB_INT(id), DB_INT(name_id),
                     has_name ? DB_BYTES(site->name, site->name_len) : DB_TEXT("(unnamed)"),
                     DB_CELL(.kind = is_same ? MAREY__DB_NULL : MAREY__DB_BLOB, .text = site->name,
                             .len = site->name_len),
                     DB_TEXT(site->category), DB_TEXT(site->domain), DB_INT(site->color),
                     DB_TEXT(site->file), DB_INT(site->line));
}

/* The id of an equal site of another process, or a new one; 0 on out of memory. */
static uint32_t number_site(struct marey__db *db, const struct marey_site_info *site)
{
    marey__site_key(&db->scratch, site);
    const size_t n_before = db->site_keys.n;
    const uint32_t number =
        db->scratch.failed
            ? MAREY__NO_NAME
            : marey__names_keep(&db->site_keys, &db->keys, db->scratch.data, db->scratch.len);
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

/* ---- iterations, epochs, phases ---- */

void marey__db_put_span(struct marey__export *x, const struct marey__span *span)
{
    struct marey__db *const db = x->own;
    const int64_t process = x->process_number + 1,
                  start_ns = (int64_t)(span->begin_ns - x->origin_ns),
                  duration_ns = (int64_t)(span->end_ns - span->begin_ns);
    if (span->kind == MAREY__SPAN_PHASE) {
        const uint32_t site = marey__db_site(x, db, span->site);
        MAREY__DB_INSERT(db, PHASE, DB_INT(marey__db_new_id(db)), DB_INT(process), DB_INT(site),
                         DB_INT(span->n_iterations), DB_INT(start_ns),
                         DB_KNOWN(!span->is_open, duration_ns));
        return;
    }
    const bool is_epoch = span->kind == MAREY__SPAN_EPOCH;
    /* The begin of an iteration is unknown if the previous record was lost. */
    const bool is_whole = !span->is_open && (span->flags & MAREY__ITERATION_CUT) == 0;
    const struct marey__db_cell cells[] = {
        DB_INT(marey__db_new_id(db)),
        DB_INT(process),
        DB_INT(span->number),
        DB_INT(is_epoch ? span->n_iterations : span->flags & MAREY__ITERATION_WARMUP),
        DB_INT(start_ns),
        DB_KNOWN(is_whole, duration_ns),
        span->samples > 0 ? DB_REAL(span->samples) : DB_KNOWN(false, 0)};
    marey__db_run(db, db->inserts[is_epoch ? MAREY__DB_EPOCH : MAREY__DB_ITERATION], cells,
                  MAREY__COUNT_OF(cells));
}

/*
 * ---- GPU activity, and launches, communication, flows, arguments ----
 *
 * Ranges and GPU activity share one sequence of ids, so tables about both have a single id column.
 */

/* ---- energy, if measured: tables energy_runs and so on, with the columns of the report ---- */

/* Create the table and prepare its INSERT statement; NULL on failure. Column names are our own. */
static sqlite3_stmt *make_table(struct marey__db *db, const marey_table *table)
{
    MAREY__FINALLY(marey__buf_fini) struct marey__buf create = {0}, insert = {0};
    sqlite3_stmt *made = NULL;
    marey__buf_printf(&create, "CREATE TABLE energy_%s", marey_table_name(table));
    marey__buf_printf(&insert, "INSERT INTO energy_%s VALUES", marey_table_name(table));
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        marey__buf_printf(&create, "%s%s", c == 0 ? "(" : ", ", marey_table_column(table, c)->name);
        marey__buf_puts(&insert, c == 0 ? "(?" : ",?");
    }
    marey__buf_put(&create, ")", 2);
    marey__buf_put(&insert, ")", 2);
    if (create.failed || insert.failed)
        db->status = marey__no_memory();
    else if (sqlite3_exec(db->sqlite, create.data, NULL, NULL, NULL) != SQLITE_OK ||
             sqlite3_prepare_v2(db->sqlite, insert.data, -1, &made, NULL) != SQLITE_OK)
        marey__db_fail(db);
    return made;
}

static struct marey__db_cell cell_of(const marey_table *table, size_t row, size_t column)
{
    const struct marey_cell cell = marey_table_cell(table, row, column);
    const enum marey_type type = marey_table_column(table, column)->type;
    if (cell.is_null)
        return DB_CELL(.kind = MAREY__DB_NULL);
    return type == MAREY_TYPE_TEXT  ? DB_BYTES(cell.as.text, cell.len)
           : type == MAREY_TYPE_F64 ? DB_REAL(cell.as.f64)
                                    : DB_INT(cell.as.i64);
}

static void put_rows(struct marey__db *db, const marey_table *table)
{
    enum { MAX_COLUMNS = 64 };
    struct marey__db_cell cells[MAX_COLUMNS];
    const size_t n = MAREY__MIN(marey_table_n_columns(table), (size_t)MAX_COLUMNS);
    sqlite3_stmt *const insert = make_table(db, table);
    for (size_t row = 0; db->status == MAREY_OK && row < marey_table_n_rows(table); row++) {
        for (size_t c = 0; c < n; c++)
            cells[c] = cell_of(table, row, c);
        marey__db_run(db, insert, cells, n);
    }
    sqlite3_finalize(insert);
}

void marey__db_put_energy(const struct marey__export *x, struct marey__db *db)
{
    const char *const filter = x->options->filter;
    struct marey__buf setting MAREY__FINALLY(marey__buf_fini) = {0};
    marey_report *report = NULL;
    if (db->status != MAREY_OK || !marey_report_is_there("energy", x->recordings, x->n_recordings))
        return;
    marey__buf_printf(&setting, "filter=%s", filter != NULL ? filter : "");
    marey__buf_put(&setting, "", 1);
    const char *const settings[] = {filter != NULL ? setting.data : NULL, NULL};
    const struct marey_report_options wants = {.settings = settings};
    const marey_status status =
        setting.failed
            ? marey__no_memory()
            : marey_report_create("energy", x->recordings, x->n_recordings, &wants, &report);
    if (status != MAREY_OK && status != MAREY_EFORMAT) /* no readings in the counters */
        db->status = status;
    const marey_table *table;
    for (size_t i = 0; report != NULL && (table = marey_report_table_at(report, i)) != NULL; i++)
        if (db->status == MAREY_OK)
            put_rows(db, table);
    marey_report_destroy(report);
}

/* ---- details ---- */

static void put_communication(struct marey__export *x, struct marey__db *db, int64_t event,
                              const struct marey_communication *what)
{
    const struct marey_site_info *group = marey__export_site(x, what->group);
    const bool has_group = what->group != 0;
    MAREY__DB_INSERT(db, COMMUNICATION, DB_INT(event), DB_TEXT(marey__collective_name(what->what)),
                     has_group ? DB_BYTES(group->name, group->name_len) : DB_KNOWN(false, 0),
                     has_group ? DB_TEXT(group->domain) : DB_KNOWN(false, 0),
                     DB_NOT_0(what->group_size), DB_NOT_0(what->bytes_in), DB_NOT_0(what->bytes_out),
                     DB_KNOWN(what->sequence != UINT64_MAX, what->sequence),
                     DB_KNOWN(what->peer >= 0, what->peer));
}

static void put_details(struct marey__export *x, struct marey__db *db, int64_t event,
                        const struct marey__details *details)
{
    if (details->communicates)
        put_communication(x, db, event, &details->communication);
    if (details->arguments != NULL)
        MAREY__DB_INSERT(db, ARGUMENTS, DB_INT(event),
                         DB_BYTES(details->arguments, details->arguments_len));
}

void marey__db_put_records(struct marey__export *x, struct marey__db *db, int64_t range,
                           const struct marey__payload *payload)
{
    struct marey__details details;
    const uint64_t *record;
    for (uint32_t at = 0; (record = marey__next_record(payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_LAUNCH && record[1] != 0)
            MAREY__DB_INSERT(db, LAUNCH, DB_INT(range), DB_INT(record[1]));
    marey__details_of(payload, &details);
    put_details(x, db, range, &details);
}

void marey__db_put_flow(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, int64_t event, uint64_t ns,
                        const uint64_t *words)
{
    static const char *const ends[] = {"begin", "step", "end"};
    const uint32_t site = marey__db_site(x, db, marey_record_site(words[1]));
    const bool is_stream = lane->kind == MAREY_LANE_GPU;
    MAREY__DB_INSERT(db, FLOW, DB_INT(marey__db_new_id(db)), DB_INT(site), DB_INT(words[2]),
                     DB_TEXT(words[3] < MAREY__COUNT_OF(ends) ? ends[words[3]] : ""),
                     DB_KNOWN(!is_stream, marey__db_lane(x, lane->lane)),
                     DB_KNOWN(is_stream, marey__db_lane(x, lane->lane)), DB_NOT_0(event),
                     DB_INT(ns - x->origin_ns));
}

/* ---- GPU work ---- */

void marey__db_put_work(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, const struct marey__stream_work *work)
{
    const uint32_t site = marey__db_site(x, db, work->site);
    const int64_t id = db->next_id++;
    struct marey__details details;
    const uint64_t *record;
    MAREY__DB_INSERT(db, WORK, DB_INT(id), DB_INT(marey__db_lane(x, lane->lane)),
                     DB_TEXT(marey__work_kind_name(work->kind)), DB_INT(site),
                     DB_INT(work->ns - x->origin_ns), DB_INT(work->duration_ns),
                     DB_NOT_0(work->correlation), DB_NOT_0(work->bytes));
    marey__work_details_of(x, work, &details);
    put_details(x, db, id, &details);
    for (uint32_t at = 0; (record = marey__next_record(&work->payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_FLOW)
            marey__db_put_flow(x, db, lane, id, work->ns, record);
}
