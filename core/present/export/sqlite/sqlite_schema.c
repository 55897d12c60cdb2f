/*
 * The tables and views, and the library from open to commit. docs/formats/sqlite.md explains the columns; change both
 * together, and SCHEMA_VERSION if an old query would stop working.
 */
#include <errno.h>

#include "present/export/sqlite/internal.h"

/* "mrey" in ASCII, by which file(1) and others identify databases. */
#define SETTINGS                                                                                   \
    "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"               \
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;"     \
    "PRAGMA application_id = 0x6d726579; PRAGMA user_version = 1; BEGIN;"

/*
 * Queries either read a whole table or look rows up by id, which needs no index; this one is for finding the iterations
 * of a range.
 */
static const char tables[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE warning(process INTEGER REFERENCES process(id), text TEXT NOT NULL);"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, recording TEXT NOT NULL, rank INTEGER,"
    " world_size INTEGER, local_rank INTEGER, pid INTEGER NOT NULL, ppid INTEGER,"
    " host TEXT NOT NULL, command TEXT NOT NULL, run_id TEXT NOT NULL, clock TEXT NOT NULL,"
    " \"end\" TEXT NOT NULL, start_unix_ns INTEGER NOT NULL, first_ns INTEGER, last_ns INTEGER,"
    " events INTEGER NOT NULL, lost_events INTEGER NOT NULL, lost_first_ns INTEGER,"
    " lost_last_ns INTEGER, event_cost_ns REAL NOT NULL, flush_cpu_ns INTEGER NOT NULL,"
    " log_bytes INTEGER NOT NULL);"
    "CREATE TABLE thread(id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES process(id),"
    " tid INTEGER NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE site(id INTEGER PRIMARY KEY, name_id INTEGER NOT NULL, name TEXT NOT NULL,"
    " name_bytes BLOB, category TEXT NOT NULL, domain TEXT NOT NULL, color INTEGER NOT NULL, file "
    "TEXT NOT NULL,"
    " line INTEGER NOT NULL);"
    "CREATE TABLE range(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id),"
    " parent INTEGER REFERENCES range(id), depth INTEGER NOT NULL, recursion INTEGER NOT NULL,"
    " site INTEGER NOT NULL REFERENCES site(id), start_ns INTEGER NOT NULL, duration_ns INTEGER,"
    " self_ns INTEGER, payload);"
    "CREATE TABLE async_range(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES "
    "thread(id),"
    " end_thread INTEGER REFERENCES thread(id), site INTEGER NOT NULL REFERENCES site(id),"
    " start_ns INTEGER NOT NULL, duration_ns INTEGER);"
    "CREATE TABLE mark(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id),"
    " range INTEGER REFERENCES range(id), site INTEGER NOT NULL REFERENCES site(id),"
    " at_ns INTEGER NOT NULL, payload);"
    "CREATE TABLE counter(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id),"
    " site INTEGER NOT NULL REFERENCES site(id), at_ns INTEGER NOT NULL, value REAL);"
    "CREATE TABLE loss(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id),"
    " at_ns INTEGER NOT NULL, events INTEGER);"
    "CREATE TABLE repeat(range INTEGER PRIMARY KEY REFERENCES range(id), calls INTEGER NOT NULL);"
    "CREATE TABLE iteration(id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES "
    "process(id),"
    " number INTEGER NOT NULL, warmup INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER, samples REAL);"
    "CREATE INDEX iteration_by_start ON iteration(process, start_ns);"
    "CREATE TABLE epoch(id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES process(id),"
    " number INTEGER NOT NULL, iterations INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER, samples REAL);"
    "CREATE TABLE phase(id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES process(id),"
    " site INTEGER NOT NULL REFERENCES site(id), iterations INTEGER NOT NULL,"
    " start_ns INTEGER NOT NULL, duration_ns INTEGER);"
    "CREATE TABLE stream(id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES process(id),"
    " device INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE gpu_work(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES stream(id),"
    " kind TEXT NOT NULL, site INTEGER NOT NULL REFERENCES site(id), start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER NOT NULL, correlation INTEGER, bytes INTEGER);"
    "CREATE TABLE launch(range INTEGER NOT NULL REFERENCES range(id),"
    " correlation INTEGER NOT NULL);"
    "CREATE TABLE communication(event INTEGER PRIMARY KEY, what TEXT NOT NULL, group_name TEXT,"
    " group_ranks TEXT, group_size INTEGER, bytes_in INTEGER, bytes_out INTEGER, sequence INTEGER,"
    " peer INTEGER);"
    "CREATE TABLE flow(id INTEGER PRIMARY KEY, site INTEGER NOT NULL REFERENCES site(id),"
    " number INTEGER NOT NULL, \"end\" TEXT NOT NULL, thread INTEGER REFERENCES thread(id),"
    " stream INTEGER REFERENCES stream(id), event INTEGER, at_ns INTEGER NOT NULL);"
    "CREATE TABLE arguments(event INTEGER PRIMARY KEY, json TEXT NOT NULL);";

#define OF_PROCESS " p.id AS process, p.rank, p.pid"
#define OF_THREAD OF_PROCESS ", t.id AS thread, t.tid, t.name AS thread_name"
#define JOIN_SITE_THREAD                                                                           \
    " JOIN site s ON s.id = e.site JOIN thread t ON t.id = e.thread"                               \
    " JOIN process p ON p.id = t.process"
#define TOTALS                                                                                     \
    " sum(e.count) AS count, sum(e.total_ns) AS total_ns, sum(e.self_ns) AS self_ns,"              \
    " (sum(e.sum_ns) + sum(e.count) / 2) / sum(e.count) AS mean_ns, min(e.min_ns) AS min_ns, "     \
    "max(e.max_ns) AS max_ns"

static const char views[] =
    "CREATE VIEW ranges AS SELECT e.id, e.parent, e.depth, e.recursion, s.name, s.category,"
    " s.domain, s.color, s.file, s.line," OF_THREAD ", e.start_ns, e.duration_ns, e.self_ns,"
    " e.start_ns + e.duration_ns AS end_ns, e.payload FROM range e" JOIN_SITE_THREAD ";"

    "CREATE VIEW slowest AS SELECT * FROM ranges WHERE duration_ns IS NOT NULL"
    " ORDER BY duration_ns DESC;"

    "CREATE VIEW summary_by_name AS SELECT s.name," TOTALS ", count(DISTINCT t.id) AS threads,"
    " count(DISTINCT p.id) AS processes FROM totals e" JOIN_SITE_THREAD
    " GROUP BY s.name_id ORDER BY total_ns DESC;"

    "CREATE VIEW summary_by_thread AS SELECT" OF_THREAD ", s.name," TOTALS
    " FROM totals e" JOIN_SITE_THREAD " GROUP BY t.id, s.name_id ORDER BY t.id, total_ns DESC;"

    "CREATE VIEW summary_by_rank AS SELECT" OF_PROCESS ", s.name," TOTALS
    " FROM totals e" JOIN_SITE_THREAD " GROUP BY p.id, s.name_id ORDER BY p.id, total_ns DESC;"

    /* Ids ascend with time on a thread: a loss with a higher id happened while the range was open. */
    "CREATE VIEW open_ranges AS SELECT e.* FROM ranges e WHERE e.duration_ns IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM loss l WHERE l.thread = e.thread AND l.id > e.id);"

    "CREATE VIEW async_ranges AS SELECT e.id, s.name, s.category, s.domain, s.color, s.file, "
    "s.line," OF_THREAD
    ", e.end_thread, e.start_ns, e.duration_ns, e.start_ns + e.duration_ns AS end_ns"
    " FROM async_range e" JOIN_SITE_THREAD ";"

    "CREATE VIEW marks AS SELECT e.id, s.name, s.category, s.domain, s.color, s.file, "
    "s.line," OF_THREAD ", e.range, e.at_ns, e.payload FROM mark e" JOIN_SITE_THREAD ";"

    "CREATE VIEW counters AS SELECT e.id, s.name, s.category, s.domain," OF_THREAD
    ", e.at_ns, e.value FROM counter e" JOIN_SITE_THREAD ";"

    "CREATE VIEW summary_of_async AS SELECT s.name, count(*) AS count,"
    " sum(e.duration_ns) AS total_ns, (sum(e.duration_ns) + count(*) / 2) / count(*) AS mean_ns,"
    " min(e.duration_ns) AS min_ns, max(e.duration_ns) AS max_ns FROM async_range e"
    " JOIN site s ON s.id = e.site WHERE e.duration_ns IS NOT NULL GROUP BY s.name_id"
    " ORDER BY total_ns DESC;"

    /* With a single max(), SQLite takes other columns from the same row. */
    "CREATE VIEW summary_of_counters AS SELECT s.name, count(*) AS count, min(e.value) AS min,"
    " avg(e.value) AS mean, max(e.value) AS max, l.last FROM counter e JOIN site s ON s.id = e.site"
    " JOIN (SELECT s2.name_id, max(c.at_ns), c.value AS last FROM counter c"
    " JOIN site s2 ON s2.id = c.site GROUP BY s2.name_id) l ON l.name_id = s.name_id"
    " GROUP BY s.name_id ORDER BY s.name;"

    "CREATE VIEW summary_of_marks AS SELECT s.name, count(*) AS count FROM mark e"
    " JOIN site s ON s.id = e.site GROUP BY s.name_id ORDER BY count DESC;"

    /*
     * A range is in the current iteration at its begin, and in those that begin before its end. The order of the joins
     * is fixed (CROSS), or each iteration would read all ranges.
     */
    "CREATE VIEW per_iteration AS SELECT" OF_PROCESS ", i.id AS iteration, i.number, i.warmup,"
    " s.name, count(*) AS ranges, sum(min(e.start_ns + e.duration_ns, i.start_ns + i.duration_ns)"
    " - max(e.start_ns, i.start_ns)) AS ns, i.duration_ns AS iteration_ns FROM range e"
    " CROSS JOIN thread t ON t.id = e.thread CROSS JOIN iteration i ON i.process = t.process"
    " AND i.start_ns < e.start_ns + e.duration_ns AND i.start_ns >= coalesce((SELECT"
    " max(j.start_ns) FROM iteration j WHERE j.process = t.process AND j.start_ns <= e.start_ns),"
    " 0) CROSS JOIN site s ON s.id = e.site CROSS JOIN process p ON p.id = t.process"
    " WHERE e.recursion = 0 AND i.start_ns + i.duration_ns > e.start_ns"
    " GROUP BY i.id, s.name_id ORDER BY i.id, ns DESC;"

    "CREATE VIEW phases AS SELECT e.id, s.name," OF_PROCESS ", e.iterations, e.start_ns,"
    " e.duration_ns FROM phase e JOIN site s ON s.id = e.site JOIN process p ON p.id = e.process;"

    "CREATE VIEW gpu_works AS SELECT e.id, e.kind, s.name, s.category," OF_PROCESS
    ", t.id AS stream, t.device, t.number AS stream_number, t.name AS stream_name, e.start_ns,"
    " e.duration_ns, e.start_ns + e.duration_ns AS end_ns, e.correlation, e.bytes"
    " FROM gpu_work e JOIN site s ON s.id = e.site JOIN stream t ON t.id = e.stream"
    " JOIN process p ON p.id = t.process;"

    "CREATE VIEW summary_of_gpu AS SELECT s.name, e.kind, count(*) AS count,"
    " sum(e.duration_ns) AS total_ns, (sum(e.duration_ns) + count(*) / 2) / count(*) AS mean_ns,"
    " min(e.duration_ns) AS min_ns, max(e.duration_ns) AS max_ns, count(DISTINCT t.id) AS streams,"
    " count(DISTINCT t.process << 32 | t.device & 0xffffffff) AS devices,"
    " count(DISTINCT t.process) AS processes FROM gpu_work e JOIN site s ON s.id = e.site"
    " JOIN stream t ON t.id = e.stream GROUP BY s.name_id, e.kind"
    " ORDER BY e.kind IN ('annotation', 'sync'), total_ns DESC;"

    "CREATE VIEW launches AS SELECT l.range, l.correlation, w.id AS work, w.kind, w.start_ns,"
    " w.duration_ns, w.start_ns - r.start_ns AS latency_ns FROM launch l"
    " JOIN range r ON r.id = l.range JOIN thread t ON t.id = r.thread"
    " JOIN gpu_work w ON w.correlation = l.correlation JOIN stream u ON u.id = w.stream"
    " WHERE u.process = t.process AND w.kind IN ('kernel', 'copy', 'set');"

    /* From each launch up to the outermost range around it; of a recursion the outermost counts. */
    "CREATE VIEW summary_of_launches AS WITH RECURSIVE up(work_ns, range, level) AS"
    " (SELECT duration_ns, range, 0 FROM launches UNION ALL SELECT up.work_ns, r.parent,"
    " up.level + 1 FROM up JOIN range r ON r.id = up.range WHERE r.parent IS NOT NULL)"
    " SELECT s.name, sum(r.recursion = 0) AS count,"
    " sum(CASE r.recursion WHEN 0 THEN up.work_ns ELSE 0 END) AS gpu_ns,"
    " sum(CASE up.level WHEN 0 THEN up.work_ns ELSE 0 END) AS self_gpu_ns FROM up"
    " JOIN range r ON r.id = up.range JOIN site s ON s.id = r.site GROUP BY s.name_id"
    " ORDER BY gpu_ns DESC;"

    "CREATE VIEW flows AS SELECT b.number, s.name, b.event AS from_event, b.at_ns AS from_ns,"
    " e.event AS to_event, e.at_ns AS to_ns FROM flow b JOIN site s ON s.id = b.site"
    " JOIN site s2 ON s2.name_id = s.name_id JOIN flow e ON e.site = s2.id"
    " AND e.number = b.number WHERE b.\"end\" = 'begin' AND e.\"end\" = 'end'"
    " AND coalesce((SELECT process FROM thread WHERE id = b.thread),"
    " (SELECT process FROM stream WHERE id = b.stream)) ="
    " coalesce((SELECT process FROM thread WHERE id = e.thread),"
    " (SELECT process FROM stream WHERE id = e.stream));"

    "CREATE VIEW losses AS SELECT e.id," OF_THREAD ", e.at_ns, e.events FROM loss e"
    " JOIN thread t ON t.id = e.thread JOIN process p ON p.id = t.process;";

/*
 * The views that count calls: summed once by thread and site, for the summaries, and by caller. `from` has the range as
 * e; looking up repeated calls takes time, so it is done only if there are any.
 */
#define CALL_VIEWS(count, each, from)                                                              \
    "CREATE VIEW totals AS SELECT e.thread, e.site, " count " AS count,"                           \
    " sum(CASE e.recursion WHEN 0 THEN e.duration_ns ELSE 0 END) AS total_ns,"                     \
    " sum(e.self_ns) AS self_ns, sum(e.duration_ns) AS sum_ns, min(" each ") AS min_ns,"           \
    " max(" each ") AS max_ns FROM " from                                                          \
    " WHERE e.duration_ns IS NOT NULL GROUP BY e.thread, e.site;"                                  \
    "CREATE VIEW calls AS SELECT c.name AS caller, s.name AS name, " count " AS count,"            \
    " sum(e.duration_ns) AS total_ns, sum(e.self_ns) AS self_ns FROM " from                        \
    " JOIN site s ON s.id = e.site LEFT JOIN range o ON o.id = e.parent"                           \
    " LEFT JOIN site c ON c.id = o.site WHERE e.duration_ns IS NOT NULL"                           \
    " GROUP BY c.name_id, s.name_id ORDER BY total_ns DESC;"

static const char views_of_ranges[] = CALL_VIEWS("count(*)", "e.duration_ns", "range e");
static const char views_of_repeats[] =
    CALL_VIEWS("sum(coalesce(r.calls, 1))", "e.duration_ns / coalesce(r.calls, 1)",
               "range e LEFT JOIN repeat r ON r.range = e.id");

static const char *const inserts[MAREY__DB_N_TABLES] = {
    [MAREY__DB_META] = "INSERT INTO meta VALUES(?, ?)",
    [MAREY__DB_WARNING] = "INSERT INTO warning VALUES(?, ?)",
    [MAREY__DB_PROCESS] = "INSERT INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [MAREY__DB_THREAD] = "INSERT INTO thread VALUES(?, ?, ?, ?)",
    [MAREY__DB_SITE] = "INSERT INTO site VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [MAREY__DB_ASYNC] = "INSERT INTO async_range VALUES(?, ?, ?, ?, ?, ?)",
    [MAREY__DB_MARK] = "INSERT INTO mark VALUES(?, ?, ?, ?, ?, ?)",
    [MAREY__DB_COUNTER] = "INSERT INTO counter VALUES(?, ?, ?, ?, ?)",
    [MAREY__DB_REPEAT] = "INSERT INTO repeat VALUES(?, ?)",
    [MAREY__DB_LOSS] = "INSERT INTO loss VALUES(?, ?, ?, ?)",
    [MAREY__DB_ITERATION] = "INSERT INTO iteration VALUES(?, ?, ?, ?, ?, ?, ?)",
    [MAREY__DB_EPOCH] = "INSERT INTO epoch VALUES(?, ?, ?, ?, ?, ?, ?)",
    [MAREY__DB_PHASE] = "INSERT INTO phase VALUES(?, ?, ?, ?, ?, ?)",
    [MAREY__DB_STREAM] = "INSERT INTO stream VALUES(?, ?, ?, ?, ?)",
    [MAREY__DB_WORK] = "INSERT INTO gpu_work VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [MAREY__DB_LAUNCH] = "INSERT INTO launch VALUES(?, ?)",
    [MAREY__DB_COMMUNICATION] = "INSERT OR REPLACE INTO communication VALUES(?,?,?,?,?,?,?,?,?)",
    [MAREY__DB_FLOW] = "INSERT INTO flow VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [MAREY__DB_ARGUMENTS] = "INSERT OR REPLACE INTO arguments VALUES(?, ?)",
};

void marey__db_fail(struct marey__db *db)
{
    if (db->status != MAREY_OK)
        return;
    if (db->file.error != 0) {
        errno = db->file.error;
        db->status =
            db->file.is_temporary
                ? marey__fail_errno(
                      "write the temporary file of the export (TMPDIR names another folder)")
                : marey__fail_errno("write the export");
    } else if (sqlite3_errcode(db->sqlite) == SQLITE_NOMEM) {
        db->status = marey__no_memory();
    } else {
        db->status =
            marey__fail(MAREY_EIO, "SQLite cannot write the export: %s", sqlite3_errmsg(db->sqlite));
    }
}

static marey_status execute(struct marey__db *db, const char *sql)
{
    if (db->status == MAREY_OK && sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
        marey__db_fail(db);
    return db->status;
}

marey_status marey__db_open(struct marey__db *db, int fd)
{
    db->next_id = 1;
    MAREY_TRY(marey__db_file_init(&db->file, fd));
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2("export", &db->sqlite, flags, db->file.vfs_name) != SQLITE_OK)
        marey__db_fail(db);
    execute(db, SETTINGS);
    execute(db, tables);
    for (size_t i = 0; db->status == MAREY_OK && i < MAREY__DB_N_TABLES; i++) {
        if (sqlite3_prepare_v3(db->sqlite, inserts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &db->inserts[i], NULL) != SQLITE_OK)
            marey__db_fail(db);
    }
    return db->status == MAREY_OK ? marey__db_rows_init(db) : db->status;
}

marey_status marey__db_commit(struct marey__db *db)
{
    marey__db_rows_flush(db);
    execute(db, db->has_repeats ? views_of_repeats : views_of_ranges);
    execute(db, views);
    return execute(db, "COMMIT");
}

void marey__db_close(struct marey__db *db)
{
    for (size_t i = 0; i < MAREY__DB_N_TABLES; i++)
        sqlite3_finalize(db->inserts[i]);
    marey__db_rows_fini(db);
    if (db->file.fd >= 0) {
        sqlite3_close(db->sqlite);
        marey__db_file_fini(&db->file);
    }
    marey__names_fini(&db->site_keys);
    marey__names_fini(&db->names);
    marey__arena_fini(&db->keys);
    marey__buf_fini(&db->scratch);
}
