/*
 * Rows of ranges, which are nearly all rows.
 *
 * Ids are assigned when ranges begin, so that children know their parent's, and ascend with time. Rows are complete
 * when ranges end, children first. A window over the latest ids restores the order:
 *
 *     rows   | late: began before the window | the window: one slot for each id |
 *             0                               WINDOW              2 x WINDOW
 *
 * A row goes to its slot. When ids run past the window, ended ranges are inserted, late rows first, then the
 * window in the order of ids, so that the table grows at its end; ranges still open will be late. Only a few in a
 * thousand are late and go into the middle of the table.
 *
 * All rows are inserted with one statement: INSERT INTO range SELECT * FROM marey_rows, where marey_rows is a virtual
 * table over the array. This avoids a statement and a search for the end of the table per row, half of the
 * time of INSERT ... VALUES.
 */
#include "present/export/sqlite/internal.h"

enum {
    WINDOW = 8192,
    MAX_PAYLOADS = 4 << 20, /* bytes that may wait */
};

/* ---- the virtual table ---- */

struct vtab {
    sqlite3_vtab base;
    struct marey__db *db;
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t at;
};

static int on_connect(sqlite3 *sqlite, void *arg, int argc, const char *const *argv,
                      sqlite3_vtab **out, char **error)
{
    (void)argc, (void)argv, (void)error;
    struct vtab *vtab = sqlite3_malloc(sizeof *vtab);
    if (vtab == NULL)
        return SQLITE_NOMEM;
    *vtab = (struct vtab){.db = arg};
    *out = &vtab->base;
    return sqlite3_declare_vtab(sqlite,
                                "CREATE TABLE marey_rows(id, thread, parent, depth, recursion, "
                                "site, start_ns, duration_ns, self_ns, payload)");
}

static int on_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

static int on_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab, (void)info;
    return SQLITE_OK;
}

static int on_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
    (void)vtab;
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (cursor == NULL)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){.at = 0};
    *out = &cursor->base;
    return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                     sqlite3_value **argv)
{
    (void)number, (void)text, (void)argc, (void)argv;
    ((struct cursor *)cursor)->at = 0;
    return SQLITE_OK;
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
    ((struct cursor *)cursor)->at++;
    return SQLITE_OK;
}

static const struct marey__db_rows *rows_of(const sqlite3_vtab_cursor *cursor)
{
    return &((const struct vtab *)cursor->pVtab)->db->ranges;
}

static int on_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct cursor *)cursor)->at >= rows_of(cursor)->n;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = rows_of(cursor)->rows[((struct cursor *)cursor)->at].id;
    return SQLITE_OK;
}

static void put_payload(sqlite3_context *ctx, struct marey__db *db, uint32_t place)
{
    const struct marey__payload payload = marey__payload_at(db->ranges.payloads.data + place - 1);
    char digits[MAREY__NUMBER_ROOM];
    const struct marey__db_cell cell = marey__db_payload(db, &payload, digits);
    if (cell.kind == MAREY__DB_INTEGER)
        sqlite3_result_int64(ctx, cell.number);
    else if (cell.kind == MAREY__DB_REAL)
        sqlite3_result_double(ctx, cell.real);
    else if (cell.kind == MAREY__DB_TEXT)
        sqlite3_result_text(ctx, cell.text, (int)cell.len, SQLITE_TRANSIENT);
    else if (cell.kind == MAREY__DB_BLOB)
        sqlite3_result_blob(ctx, cell.text, (int)cell.len, SQLITE_TRANSIENT);
}

static int on_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int column)
{
    enum { PARENT = 2, DURATION = 7 };
    const struct marey__db_range *row = &rows_of(cursor)->rows[((struct cursor *)cursor)->at];
    int64_t number;
    switch (column) {
    case 0:
        number = row->id;
        break;
    case 1:
        number = row->thread;
        break;
    case 2:
        number = row->parent;
        break;
    case 3:
        number = row->depth;
        break;
    case 4:
        number = row->recursion;
        break;
    case 5:
        number = row->site;
        break;
    case 6:
        number = (int64_t)row->start_ns;
        break;
    case 7:
        number = (int64_t)row->duration_ns;
        break;
    case 8:
        number = (int64_t)row->self_ns;
        break;
    default:
        if (row->payload != 0)
            put_payload(ctx, ((struct vtab *)cursor->pVtab)->db, row->payload);
        return SQLITE_OK;
    }
    /* A column without a result is NULL. */
    if ((column != PARENT || number != 0) &&
        (column < DURATION || row->duration_ns != MAREY__DB_UNKNOWN))
        sqlite3_result_int64(ctx, number);
    return SQLITE_OK;
}

/* Without xCreate it can only be used by name. */
static const sqlite3_module module = {
    .xConnect = on_connect,
    .xBestIndex = on_best_index,
    .xDisconnect = on_disconnect,
    .xOpen = on_open,
    .xClose = on_close,
    .xFilter = on_filter,
    .xNext = on_next,
    .xEof = on_eof,
    .xColumn = on_column,
    .xRowid = on_rowid,
};

/* ---- the window ---- */

marey_status marey__db_rows_init(struct marey__db *db)
{
    struct marey__db_rows *ranges = &db->ranges;
    ranges->rows = marey__calloc((size_t)2 * WINDOW, sizeof *ranges->rows);
    MAREY__TRY_MEMORY(ranges->rows != NULL);
    ranges->first_id = db->next_id;
    if (sqlite3_create_module(db->sqlite, "marey_rows", &module, db) != SQLITE_OK ||
        sqlite3_prepare_v3(db->sqlite, "INSERT INTO range SELECT * FROM marey_rows", -1,
                           SQLITE_PREPARE_PERSISTENT, &ranges->insert, NULL) != SQLITE_OK)
        marey__db_fail(db);
    return db->status;
}

void marey__db_rows_fini(struct marey__db *db)
{
    sqlite3_finalize(db->ranges.insert);
    marey__free(db->ranges.rows);
    marey__buf_fini(&db->ranges.payloads);
}

/* Compact all rows to the front; a row never moves towards the end. */
static void close_ranks(struct marey__db_rows *ranges)
{
    ranges->n = ranges->n_late;
    for (size_t i = WINDOW; i < (size_t)2 * WINDOW; i++) {
        if (ranges->rows[i].id != 0)
            ranges->rows[ranges->n++] = ranges->rows[i];
    }
}

void marey__db_rows_flush(struct marey__db *db)
{
    struct marey__db_rows *ranges = &db->ranges;
    /* By `id`, the first member, which is never negative. */
    qsort(ranges->rows, ranges->n_late, sizeof *ranges->rows, marey__compare_u64);
    close_ranks(ranges);
    if (db->status == MAREY_OK && ranges->n > 0 && sqlite3_step(ranges->insert) != SQLITE_DONE)
        marey__db_fail(db);
    sqlite3_reset(ranges->insert);
    memset(ranges->rows + WINDOW, 0, WINDOW * sizeof *ranges->rows);
    ranges->n_late = 0;
    ranges->payloads.len = 0;
    ranges->first_id = db->next_id;
}

int64_t marey__db_rows_begin(struct marey__db *db)
{
    if (MAREY_UNLIKELY(db->next_id - db->ranges.first_id >= WINDOW))
        marey__db_rows_flush(db);
    return db->next_id++;
}

static uint32_t keep_payload(struct marey__db *db, const struct marey__payload *payload)
{
    struct marey__buf *payloads = &db->ranges.payloads;
    const size_t at = payloads->len;
    marey__buf_put(payloads, payload, sizeof *payload);
    marey__buf_put(payloads, payload->text, payload->len);
    if (payloads->failed && db->status == MAREY_OK)
        db->status = marey__no_memory();
    return payloads->failed ? 0 : (uint32_t)at + 1;
}

void marey__db_rows_put(struct marey__db *db, const struct marey__db_range *row,
                        const struct marey__payload *payload)
{
    struct marey__db_rows *ranges = &db->ranges;
    if (MAREY_UNLIKELY(ranges->n_late == WINDOW || ranges->payloads.len > MAX_PAYLOADS))
        marey__db_rows_flush(db);
    struct marey__db_range *place = row->id >= ranges->first_id
                                        ? &ranges->rows[WINDOW + (row->id - ranges->first_id)]
                                        : &ranges->rows[ranges->n_late++];
    *place = *row;
    if (payload != NULL && payload->type != 0)
        place->payload = keep_payload(db, payload);
}
