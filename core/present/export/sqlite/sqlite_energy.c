/* Joules as tables of the database, energy_runs and so on, where some were measured: columns as the tables have them. */
#include "present/export/sqlite/internal.h"

/* "CREATE TABLE energy_runs(run, run_id, ...)", or the statement that inserts into it. Names of columns are our own. */
static void make_table(struct marey__db *db, const marey_table *table)
{
    struct marey__buf sql = {0};
    marey__buf_printf(&sql, "CREATE TABLE energy_%s(", marey_table_name(table));
    for (size_t c = 0; c < marey_table_n_columns(table); c++)
        marey__buf_printf(&sql, "%s%s", c == 0 ? "" : ", ", marey_table_column(table, c)->name);
    marey__buf_put(&sql, ")", 2);
    if (sql.failed)
        db->status = marey__no_memory();
    else if (sqlite3_exec(db->sqlite, sql.data, NULL, NULL, NULL) != SQLITE_OK)
        marey__db_fail(db);
    marey__buf_fini(&sql);
}

static sqlite3_stmt *prepare_insert(struct marey__db *db, const marey_table *table)
{
    struct marey__buf sql = {0};
    sqlite3_stmt *insert = NULL;
    marey__buf_printf(&sql, "INSERT INTO energy_%s VALUES(?", marey_table_name(table));
    for (size_t c = 1; c < marey_table_n_columns(table); c++)
        marey__buf_puts(&sql, ",?");
    marey__buf_put(&sql, ")", 2);
    if (sql.failed)
        db->status = marey__no_memory();
    else if (sqlite3_prepare_v2(db->sqlite, sql.data, -1, &insert, NULL) != SQLITE_OK)
        marey__db_fail(db);
    marey__buf_fini(&sql);
    return insert;
}

static void bind_cell(sqlite3_stmt *insert, int at, const marey_table *table, size_t row,
                      size_t column)
{
    const struct marey_cell cell = marey_table_cell(table, row, column);
    const enum marey_type type = marey_table_column(table, column)->type;
    if (cell.is_null)
        sqlite3_bind_null(insert, at);
    else if (type == MAREY_TYPE_TEXT)
        sqlite3_bind_text(insert, at, cell.as.text, (int)cell.len, SQLITE_TRANSIENT);
    else if (type == MAREY_TYPE_F64)
        sqlite3_bind_double(insert, at, cell.as.f64);
    else
        sqlite3_bind_int64(insert, at, cell.as.i64);
}

static void put_rows(struct marey__db *db, const marey_table *table)
{
    make_table(db, table);
    sqlite3_stmt *insert = db->status == MAREY_OK ? prepare_insert(db, table) : NULL;
    for (size_t row = 0; db->status == MAREY_OK && row < marey_table_n_rows(table); row++) {
        for (size_t c = 0; c < marey_table_n_columns(table); c++)
            bind_cell(insert, (int)c + 1, table, row, c);
        if (sqlite3_step(insert) != SQLITE_DONE)
            marey__db_fail(db);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

void marey__db_put_energy(const struct marey__export *x, struct marey__db *db)
{
    const char *const filter = x->options->filter;
    struct marey__buf setting = {0};
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
    marey__buf_fini(&setting);
    if (status != MAREY_OK && status != MAREY_EFORMAT) /* counters without a reading are none */
        db->status = status;
    const marey_table *table;
    for (size_t i = 0; report != NULL && (table = marey_report_table_at(report, i)) != NULL; i++)
        if (db->status == MAREY_OK)
            put_rows(db, table);
    marey_report_destroy(report);
}
