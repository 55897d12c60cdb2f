/*
 * The export to SQLite, in seven files:
 *
 *   sqlite.c          the format: walks the events with a stack, so that parents and self times are known
 *   sqlite_rows.c     rows of ranges, a window of them at a time, into the library by its fastest way
 *   sqlite_tables.c   everything else: one INSERT for each row
 *   sqlite_gpu.c      so are streams, their work, launches, communication, flows, arguments
 *   sqlite_energy.c   tables of energy, where some was measured
 *   sqlite_schema.c   tables and views in SQL, opening and closing
 *   sqlite_file.c     a file descriptor as the file that the library writes
 *
 * docs/formats/sqlite.md describes what comes out. Memory: the library's cache, one window of rows, and what grows
 * with sites and threads.
 */
#ifndef KYMO_SQLITE_INTERNAL_H
#define KYMO_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "present/export_walk.h"

/* ---- sqlite_file.c ---- */

/* A file system for SQLite with one file in it, which is a descriptor. Journals and locks do not exist there. */
struct kymo__db_file {
    int fd; /* read and written by the library; ours to close */
    int target;
    bool is_temporary; /* `fd` has no name; what is in it is copied to `target` at the end */
    int error;         /* the first errno */
    char vfs_name[32];
    sqlite3_vfs vfs;
};

/*
 * Make a file of `target`: itself when it is an empty regular file, else a temporary one. On failure it is left
 * finished.
 */
KYMO_WARN_UNUSED kymo_status kymo__db_file_init(struct kymo__db_file *file, int target);
void kymo__db_file_fini(struct kymo__db_file *file);
/* Bring everything to `target`: copied through `out`, or only the position moved to the end. */
KYMO_WARN_UNUSED kymo_status kymo__db_file_deliver(const struct kymo__db_file *file,
                                                   struct kymo__out *out);

/* ---- sqlite_rows.c ---- */

struct kymo__db_range {
    int64_t id;     /* 0: an empty place in the window */
    int64_t parent; /* 0: none */
    uint64_t start_ns;
    uint64_t duration_ns, self_ns; /* KYMO__DB_UNKNOWN: its end is not known */
    uint32_t thread, site;
    uint32_t depth, recursion;
    uint32_t payload; /* its place in `payloads`, plus one; 0: none */
};
#define KYMO__DB_UNKNOWN UINT64_MAX

struct kymo__db_rows {
    sqlite3_stmt *insert;
    struct kymo__db_range *rows; /* first the late ones, behind them the window */
    size_t n_late, n;            /* `n`: while they are inserted, how many there are in all */
    int64_t first_id;            /* of the window */
    struct kymo__buf payloads;
};

struct kymo__db;
KYMO_WARN_UNUSED kymo_status kymo__db_rows_init(struct kymo__db *db);
void kymo__db_rows_fini(struct kymo__db *db);
/* Take the next id, for a range that begins now. */
int64_t kymo__db_rows_begin(struct kymo__db *db);
/* A range has ended; `payload` may be NULL. */
void kymo__db_rows_put(struct kymo__db *db, const struct kymo__db_range *row,
                       const struct kymo__payload *payload);
/* Hand over what waits. */
void kymo__db_rows_flush(struct kymo__db *db);

/* ---- sqlite_schema.c ---- */

enum kymo__db_table {
    KYMO__DB_META,
    KYMO__DB_WARNING,
    KYMO__DB_PROCESS,
    KYMO__DB_THREAD,
    KYMO__DB_SITE,
    KYMO__DB_ASYNC,
    KYMO__DB_MARK,
    KYMO__DB_COUNTER,
    KYMO__DB_LOSS,
    KYMO__DB_REPEAT,
    KYMO__DB_ITERATION,
    KYMO__DB_EPOCH,
    KYMO__DB_PHASE,
    KYMO__DB_STREAM,
    KYMO__DB_WORK,
    KYMO__DB_LAUNCH,
    KYMO__DB_COMMUNICATION,
    KYMO__DB_FLOW,
    KYMO__DB_ARGUMENTS,
    KYMO__DB_N_TABLES,
};

struct kymo__db {
    kymo_status status; /* the first failure; what comes after is swallowed */
    struct kymo__db_file file;
    sqlite3 *sqlite;
    sqlite3_stmt *inserts[KYMO__DB_N_TABLES];
    struct kymo__db_rows ranges;
    int64_t next_id; /* of events; one sequence for all tables of events */
    bool has_repeats;

    /* Sites of all processes: equal ones are one row. Numbers count from 0, ids from 1. */
    struct kymo__names site_keys, names;
    struct kymo__arena keys;
    struct kymo__buf scratch;

    /* The process at hand. */
    uint8_t *skip; /* taken over from the export, since self times need the ranges left out, too */
    uint32_t *n_on_stack; /* by name: ranges on the stack of `lane` */
    const struct kymo__export_lane *lane;
};

/* Open the database with its tables, in one transaction. Close takes a half-opened one. */
KYMO_WARN_UNUSED kymo_status kymo__db_open(struct kymo__db *db, int fd);
/* Add the views and write all of it. */
KYMO_WARN_UNUSED kymo_status kymo__db_commit(struct kymo__db *db);
void kymo__db_close(struct kymo__db *db);
/* Remember what the library, or the file below it, has refused. */
void kymo__db_fail(struct kymo__db *db);

/* ---- sqlite_energy.c ---- */

/* The tables of energy, where some was measured. Reads the recordings for it. */
void kymo__db_put_energy(const struct kymo__export *x, struct kymo__db *db);

/* ---- sqlite_tables.c ---- */

/* A payload as a value of SQLite. */
struct kymo__db_value {
    int type; /* SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL */
    int len;
    int64_t number;
    double real;
    const char *text; /* lent by the payload, or `digits` */
    char digits[24];
};
void kymo__db_value_of(struct kymo__db *db, const struct kymo__payload *payload,
                       struct kymo__db_value *value);

/* What is bound goes into a row; it stays until it is bound anew. */
int kymo__db_step(struct kymo__db *db, enum kymo__db_table table);
/* Unknown is NULL. */
void kymo__db_bind_if(sqlite3_stmt *insert, int column, bool is_known, int64_t number);
/* A text as SQL wants it; whether it could stay as it was. */
bool kymo__db_bind_bytes(struct kymo__db *db, sqlite3_stmt *insert, int column, const char *text,
                         size_t len);
void kymo__db_bind_text(struct kymo__db *db, sqlite3_stmt *insert, int column, const char *text);

void kymo__db_put_meta(struct kymo__export *x, struct kymo__db *db);
/* Sentences about recordings and processes. */
void kymo__db_put_warnings(struct kymo__export *x, struct kymo__db *db);
void kymo__db_put_process(const struct kymo__export *x, struct kymo__db *db);
void kymo__db_put_thread(const struct kymo__export *x, struct kymo__db *db,
                         const struct kymo_lane_info *lane);
/* The id of a site, whose row is written with its first event. */
uint32_t kymo__db_site(struct kymo__export *x, struct kymo__db *db, uint32_t site);
void kymo__db_put_mark(struct kymo__db *db, uint32_t thread, int64_t range, uint32_t site,
                       uint64_t at_ns, const struct kymo__payload *payload);
void kymo__db_put_counter(struct kymo__db *db, uint32_t thread, uint32_t site, uint64_t at_ns,
                          double value);
/* `end_thread` 0 and `duration_ns` KYMO__DB_UNKNOWN: it has not ended. */
void kymo__db_put_async(struct kymo__db *db, uint32_t thread, uint32_t end_thread, uint32_t site,
                        uint64_t start_ns, uint64_t duration_ns);
/* The range with this id stands for so many calls. */
void kymo__db_put_repeat(struct kymo__db *db, int64_t range, uint64_t calls);
/* An iteration, epoch or phase of the process at hand. */
void kymo__db_put_span(struct kymo__export *x, struct kymo__db *db, const struct kymo__span *span);
/* `n_events` 0: nobody counted them. */
void kymo__db_put_loss(struct kymo__db *db, uint32_t thread, uint64_t at_ns, uint64_t n_events);

/* ---- sqlite_gpu.c ---- */

void kymo__db_put_stream(const struct kymo__export *x, struct kymo__db *db,
                         const struct kymo_lane_info *lane);
void kymo__db_put_work(struct kymo__export *x, struct kymo__db *db,
                       const struct kymo_lane_info *lane, const struct kymo__stream_work *work);
/* What records say of the range with this id. */
void kymo__db_put_records(struct kymo__export *x, struct kymo__db *db, int64_t range,
                          const struct kymo__payload *payload);
/* One end of a flow, in the range or work with the id `event`; 0: in none. */
void kymo__db_put_flow(struct kymo__export *x, struct kymo__db *db, const struct kymo_lane_info *lane,
                       int64_t event, uint64_t ns, const uint64_t *words);

#endif
