/*
 * sqlite: a database with one row per event (docs/formats/sqlite.md).
 *
 *   sqlite.c          the format: walks events with a stack, so that parents and self times are known
 *   sqlite_rows.c     rows of ranges, a window at a time
 *   sqlite_tables.c   the other tables
 *   sqlite_schema.c   tables and views in SQL, opening and closing
 *   sqlite_file.c     a file descriptor as SQLite's file          sqlite_missing.c   builds without SQLite
 *
 * Input: events through present/export. Output: a file. Memory: the library's cache, one window of rows, sites and
 * threads.
 */
#ifndef MAREY_PRESENT_EXPORT_SQLITE_INTERNAL_H
#define MAREY_PRESENT_EXPORT_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "present/export/export_walk.h"

/* ---- sqlite_file.c ---- */

/* A file system for SQLite with one file in it, which is a descriptor. Journals and locks do not exist there. */
struct marey__db_file {
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
MAREY_WARN_UNUSED marey_status marey__db_file_init(struct marey__db_file *file, int target);
void marey__db_file_fini(struct marey__db_file *file);
/* Bring everything to `target`: copied through `out`, or only the position moved to the end. */
MAREY_WARN_UNUSED marey_status marey__db_file_deliver(const struct marey__db_file *file,
                                                      struct marey__out *out);

/* ---- sqlite_rows.c ---- */

struct marey__db_range {
    int64_t id;     /* 0: an empty place in the window */
    int64_t parent; /* 0: none */
    uint64_t start_ns;
    uint64_t duration_ns, self_ns; /* MAREY__DB_UNKNOWN: its end is not known */
    uint32_t thread, site;
    uint32_t depth, recursion;
    uint32_t payload; /* its place in `payloads`, plus one; 0: none */
};
#define MAREY__DB_UNKNOWN UINT64_MAX

struct marey__db_rows {
    sqlite3_stmt *insert;
    struct marey__db_range *rows; /* first the late ones, behind them the window */
    size_t n_late, n;             /* `n`: while they are inserted, how many there are in all */
    int64_t first_id;             /* of the window */
    struct marey__buf payloads;
};

struct marey__db;
MAREY_WARN_UNUSED marey_status marey__db_rows_init(struct marey__db *db);
void marey__db_rows_fini(struct marey__db *db);
/* Take the next id, for a range that begins now. */
int64_t marey__db_rows_begin(struct marey__db *db);
/* A range has ended; `payload` may be NULL. */
void marey__db_rows_put(struct marey__db *db, const struct marey__db_range *row,
                        const struct marey__payload *payload);
/* Hand over what waits. */
void marey__db_rows_flush(struct marey__db *db);

/* ---- sqlite_schema.c ---- */

enum marey__db_table {
    MAREY__DB_META,
    MAREY__DB_WARNING,
    MAREY__DB_PROCESS,
    MAREY__DB_THREAD,
    MAREY__DB_SITE,
    MAREY__DB_ASYNC,
    MAREY__DB_MARK,
    MAREY__DB_COUNTER,
    MAREY__DB_LOSS,
    MAREY__DB_REPEAT,
    MAREY__DB_ITERATION,
    MAREY__DB_EPOCH,
    MAREY__DB_PHASE,
    MAREY__DB_STREAM,
    MAREY__DB_WORK,
    MAREY__DB_LAUNCH,
    MAREY__DB_COMMUNICATION,
    MAREY__DB_FLOW,
    MAREY__DB_ARGUMENTS,
    MAREY__DB_N_TABLES,
};

struct marey__db {
    marey_status status; /* the first failure; what comes after is swallowed */
    struct marey__db_file file;
    sqlite3 *sqlite;
    sqlite3_stmt *inserts[MAREY__DB_N_TABLES];
    struct marey__db_rows ranges;
    int64_t next_id; /* of events; one sequence for all tables of events */
    bool has_repeats;

    /* Sites of all processes: equal ones are one row. Numbers count from 0, ids from 1. */
    struct marey__names site_keys, names;
    struct marey__arena keys;
    struct marey__buf scratch;

    /* The process at hand. */
    uint8_t *skip; /* taken over from the export, since self times need the ranges left out, too */
    uint32_t *n_on_stack; /* by name: ranges on the stack of `lane` */
    const struct marey__export_lane *lane;
};

/* Open the database with its tables, in one transaction. Close takes a half-opened one. */
MAREY_WARN_UNUSED marey_status marey__db_open(struct marey__db *db, int fd);
/* Add the views and write all of it. */
MAREY_WARN_UNUSED marey_status marey__db_commit(struct marey__db *db);
void marey__db_close(struct marey__db *db);
/* Remember what the library, or the file below it, has refused. */
void marey__db_fail(struct marey__db *db);

/* The id of a thread or stream. */
static inline uint32_t marey__db_lane(const struct marey__export *x, uint32_t lane)
{
    return x->n_lanes_before + lane + 1;
}

/* The tables of energy, where some was measured. Reads the recordings for it. */
void marey__db_put_energy(const struct marey__export *x, struct marey__db *db);

/* ---- sqlite_tables.c ---- */

/* A value of a row. */
enum marey__db_kind {
    MAREY__DB_NULL,
    MAREY__DB_INTEGER,
    MAREY__DB_REAL,
    MAREY__DB_TEXT,
    MAREY__DB_BLOB,
};
struct marey__db_cell {
    enum marey__db_kind kind;
    union {
        int64_t number;
        double real;
        const char *text; /* becomes valid UTF-8 */
    };
    size_t len; /* of the text */
};
#define DB_CELL(...) ((struct marey__db_cell){__VA_ARGS__})
#define DB_INT(value) DB_CELL(.kind = MAREY__DB_INTEGER, .number = (int64_t)(value))
#define DB_KNOWN(is_known, value)                                                                  \
    DB_CELL(.kind = (is_known) ? MAREY__DB_INTEGER : MAREY__DB_NULL, .number = (int64_t)(value))
#define DB_NOT_0(value) DB_KNOWN((value) != 0, value)
#define DB_REAL(value) DB_CELL(.kind = MAREY__DB_REAL, .real = (value))
#define DB_BYTES(bytes, n) DB_CELL(.kind = MAREY__DB_TEXT, .text = (bytes), .len = (n))
#define DB_TEXT(string) DB_BYTES(string, strlen(string))

/* The id of an event. */
static inline int64_t marey__db_new_id(struct marey__db *db)
{
    return db->next_id++;
}

/* A payload, which lends its text; `digits` of a number that no INTEGER holds. */
struct marey__db_cell marey__db_payload(struct marey__db *db, const struct marey__payload *payload,
                                        char digits[MAREY__NUMBER_ROOM]);
/* Run a statement with these values. */
void marey__db_run(struct marey__db *db, sqlite3_stmt *insert, const struct marey__db_cell *cells,
                   size_t n);
/* Insert a row: MAREY__DB_INSERT(db, LAUNCH, DB_INT(range), DB_INT(correlation)). */
#define MAREY__DB_INSERT(db, table, ...)                                                           \
    marey__db_run(db, (db)->inserts[MAREY__DB_##table],                                            \
                  (const struct marey__db_cell[]){__VA_ARGS__},                                    \
                  sizeof(struct marey__db_cell[]){__VA_ARGS__} / sizeof(struct marey__db_cell))

void marey__db_put_meta(struct marey__export *x, struct marey__db *db);
/* Sentences about recordings and processes. */
void marey__db_put_warnings(struct marey__export *x, struct marey__db *db);
void marey__db_put_process(const struct marey__export *x, struct marey__db *db);
/* The id of a site, whose row is written with its first event. */
uint32_t marey__db_site(struct marey__export *x, struct marey__db *db, uint32_t site);
/* An iteration, epoch or phase of the process at hand. */
void marey__db_put_span(struct marey__export *x, const struct marey__span *span);
void marey__db_put_work(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, const struct marey__stream_work *work);
/* What records say of the range with this id. */
void marey__db_put_records(struct marey__export *x, struct marey__db *db, int64_t range,
                           const struct marey__payload *payload);
/* One end of a flow, in the range or work with the id `event`; 0: in none. */
void marey__db_put_flow(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, int64_t event, uint64_t ns,
                        const uint64_t *words);

#endif
