/*
 * Streams, their work, and what is known of ranges and work besides: launches, communication, flows, arguments. Ranges
 * and work have ids of one sequence, so the tables of what is known have one column for either.
 */
#include "present/export/sqlite/internal.h"

static uint32_t stream_of(const struct marey__export *x, const struct marey_lane_info *lane)
{
    return x->n_lanes_before + lane->lane + 1;
}

void marey__db_put_stream(const struct marey__export *x, struct marey__db *db,
                          const struct marey_lane_info *lane)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_STREAM];
    sqlite3_bind_int64(insert, 1, stream_of(x, lane));
    sqlite3_bind_int64(insert, 2, x->process_number + 1);
    sqlite3_bind_int64(insert, 3, lane->device);
    sqlite3_bind_int64(insert, 4, (int32_t)lane->stream);
    marey__db_bind_text(db, insert, 5, lane->name);
    marey__db_step(db, MAREY__DB_STREAM);
}

static void bind_number(sqlite3_stmt *insert, int column, uint64_t number)
{
    marey__db_bind_if(insert, column, number != 0, (int64_t)number);
}

/* ---- what is known ---- */

static void put_launch(struct marey__db *db, int64_t range, uint64_t correlation)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_LAUNCH];
    sqlite3_bind_int64(insert, 1, range);
    sqlite3_bind_int64(insert, 2, (int64_t)correlation);
    marey__db_step(db, MAREY__DB_LAUNCH);
}

static void put_communication(struct marey__export *x, struct marey__db *db, int64_t event,
                              const struct marey_communication *what)
{
    const struct marey_site_info *group = marey__export_site(x, what->group);
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_COMMUNICATION];
    sqlite3_bind_int64(insert, 1, event);
    marey__db_bind_text(db, insert, 2, marey__collective_name(what->what));
    sqlite3_bind_null(insert, 3);
    sqlite3_bind_null(insert, 4);
    if (what->group != 0) {
        marey__db_bind_bytes(db, insert, 3, group->name, group->name_len);
        marey__db_bind_text(db, insert, 4, group->domain);
    }
    bind_number(insert, 5, what->group_size);
    bind_number(insert, 6, what->bytes_in);
    bind_number(insert, 7, what->bytes_out);
    marey__db_bind_if(insert, 8, what->sequence != UINT64_MAX, (int64_t)what->sequence);
    marey__db_bind_if(insert, 9, what->peer >= 0, what->peer);
    marey__db_step(db, MAREY__DB_COMMUNICATION);
}

static void put_arguments(struct marey__db *db, int64_t event, const char *text, size_t len)
{
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_ARGUMENTS];
    sqlite3_bind_int64(insert, 1, event);
    marey__db_bind_bytes(db, insert, 2, text, len);
    marey__db_step(db, MAREY__DB_ARGUMENTS);
}

static void put_details(struct marey__export *x, struct marey__db *db, int64_t event,
                        const struct marey__details *details)
{
    if (details->communicates)
        put_communication(x, db, event, &details->communication);
    if (details->arguments != NULL)
        put_arguments(db, event, details->arguments, details->arguments_len);
}

void marey__db_put_records(struct marey__export *x, struct marey__db *db, int64_t range,
                           const struct marey__payload *payload)
{
    struct marey__details details;
    const uint64_t *record;
    for (uint32_t at = 0; (record = marey__next_record(payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_LAUNCH && record[1] != 0)
            put_launch(db, range, record[1]);
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
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_FLOW];
    sqlite3_bind_int64(insert, 1, db->next_id++);
    sqlite3_bind_int64(insert, 2, site);
    sqlite3_bind_int64(insert, 3, (int64_t)words[2]);
    marey__db_bind_text(db, insert, 4, words[3] < MAREY__COUNT_OF(ends) ? ends[words[3]] : "");
    marey__db_bind_if(insert, 5, !is_stream, stream_of(x, lane));
    marey__db_bind_if(insert, 6, is_stream, stream_of(x, lane));
    marey__db_bind_if(insert, 7, event != 0, event);
    sqlite3_bind_int64(insert, 8, (int64_t)(ns - x->origin_ns));
    marey__db_step(db, MAREY__DB_FLOW);
}

/* ---- work ---- */

void marey__db_put_work(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, const struct marey__stream_work *work)
{
    const uint32_t site = marey__db_site(x, db, work->site);
    const int64_t id = db->next_id++;
    struct marey__details details;
    const uint64_t *record;
    sqlite3_stmt *const insert = db->inserts[MAREY__DB_WORK];
    sqlite3_bind_int64(insert, 1, id);
    sqlite3_bind_int64(insert, 2, stream_of(x, lane));
    marey__db_bind_text(db, insert, 3, marey__work_kind_name(work->kind));
    sqlite3_bind_int64(insert, 4, site);
    sqlite3_bind_int64(insert, 5, (int64_t)(work->ns - x->origin_ns));
    sqlite3_bind_int64(insert, 6, (int64_t)work->duration_ns);
    bind_number(insert, 7, work->correlation);
    bind_number(insert, 8, work->bytes);
    marey__db_step(db, MAREY__DB_WORK);
    marey__work_details_of(x, work, &details);
    put_details(x, db, id, &details);
    for (uint32_t at = 0; (record = marey__next_record(&work->payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_FLOW)
            marey__db_put_flow(x, db, lane, id, work->ns, record);
}
