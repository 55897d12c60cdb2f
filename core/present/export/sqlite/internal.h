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
 * threads. Does not know log files or other formats.
 */
#ifndef MAREY_PRESENT_EXPORT_SQLITE_INTERNAL_H
#define MAREY_PRESENT_EXPORT_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "present/export/export_walk.h"

/* ---- sqlite_file.c ---- */

/* A file system for SQLite with a single file, a descriptor. It has no journals and locks. */
struct marey__db_file {
    int fd; /* used by the library; we close it */
    int target;
    bool is_temporary; /* `fd` is unnamed; its content is copied to `target` at the end */
    int error;         /* the first errno */
    char vfs_name[32];
    sqlite3_vfs vfs;
};

/*
 * Choose the file for `target`: itself if it is an empty regular file, else a temporary one. On failure fini has run on
 * it.
 */
MAREY_WARN_UNUSED marey_status marey__db_file_init(struct marey__db_file *file, int target);
void marey__db_file_fini(struct marey__db_file *file);
/* Deliver to `target`: copied through `out`, or only with the position moved to the end. */
MAREY_WARN_UNUSED marey_status marey__db_file_deliver(const struct marey__db_file *file,
                                                      struct marey__out *out);

/* ---- sqlite_rows.c ---- */

struct marey__db_range {
    int64_t id;     /* 0: an empty slot of the window */
    int64_t parent; /* 0: none */
    uint64_t start_ns;
    uint64_t duration_ns, self_ns; /* MAREY__DB_UNKNOWN: its end is unknown */
    uint32_t thread, site;
    uint32_t depth, recursion;
    uint32_t payload; /* offset in `payloads`, plus one; 0: none */
};
#define MAREY__DB_UNKNOWN UINT64_MAX

struct marey__db_rows {
    sqlite3_stmt *insert;
    struct marey__db_range *rows; /* late rows first, then the window */
    size_t n_late, n;             /* `n`: total number, while they are inserted */
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
/* Insert the waiting rows. */
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
    marey_status status; /* the first failure; later rows are discarded */
    struct marey__db_file file;
    sqlite3 *sqlite;
    sqlite3_stmt *inserts[MAREY__DB_N_TABLES];
    struct marey__db_rows ranges;
    int64_t next_id; /* of events; one sequence for all event tables */
    bool has_repeats;

    /* Sites of all processes: equal ones share a row. Numbers count from 0, ids from 1. */
    struct marey__names site_keys, names;
    struct marey__arena keys;
    struct marey__buf scratch;

    /* The current process. */
    uint8_t *skip;        /* moved from the export, because self times also need filtered ranges */
    uint32_t *n_on_stack; /* by name: ranges on the stack of `lane` */
    const struct marey__export_lane *lane;
};

/* Open the database with its tables, in one transaction. Close accepts a partially opened one. */
MAREY_WARN_UNUSED marey_status marey__db_open(struct marey__db *db, int fd);
/* Add the views and commit. */
MAREY_WARN_UNUSED marey_status marey__db_commit(struct marey__db *db);
void marey__db_close(struct marey__db *db);
/* Record an error of the library, or of the file below it. */
void marey__db_fail(struct marey__db *db);

/* The id of a thread or stream. */
static inline uint32_t marey__db_lane(const struct marey__export *x, uint32_t lane)
{
    return x->n_lanes_before + lane + 1;
}

/* The tables of energy, if it was measured. Reads the recordings. */
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
        const char *text; /* converted to valid UTF-8 */
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

/* A payload, which owns its text; `digits` of a number that does not fit in INTEGER. */
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
/* Notes and warnings about recordings and processes. */
void marey__db_put_warnings(struct marey__export *x, struct marey__db *db);
void marey__db_put_process(const struct marey__export *x, struct marey__db *db);
/* The id of a site; its row is written at the first event. */
uint32_t marey__db_site(struct marey__export *x, struct marey__db *db, uint32_t site);
/* An iteration, epoch or phase of the current process. */
void marey__db_put_span(struct marey__export *x, const struct marey__span *span);
void marey__db_put_work(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, const struct marey__stream_work *work);
/* Rows from the records of the range with this id. */
void marey__db_put_records(struct marey__export *x, struct marey__db *db, int64_t range,
                           const struct marey__payload *payload);
/* One end of a flow, in the range or work with the id `event`; 0: in none. */
void marey__db_put_flow(struct marey__export *x, struct marey__db *db,
                        const struct marey_lane_info *lane, int64_t event, uint64_t ns,
                        const uint64_t *words);

#endif
