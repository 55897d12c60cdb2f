/* Joules as tables of the database, energy_runs and so on, where some were measured: columns as the tables have them. */
#include "present/sqlite_internal.h"
#include <kymo/energy_report.h>

/* "CREATE TABLE energy_runs(run, run_id, ...)", or the statement that inserts into it. Names of columns are our own. */
static void make_table(struct kymo__db *db, const kymo_table *table)
{
    struct kymo__buf sql = {0};
    kymo__buf_printf(&sql, "CREATE TABLE energy_%s(", kymo_table_name(table));
    for (size_t c = 0; c < kymo_table_n_columns(table); c++)
        kymo__buf_printf(&sql, "%s%s", c == 0 ? "" : ", ", kymo_table_column(table, c)->name);
    kymo__buf_put(&sql, ")", 2);
    if (sql.failed)
        db->status = kymo__fail(KYMO_ENOMEM, "no memory for a database");
    else if (sqlite3_exec(db->sqlite, sql.data, NULL, NULL, NULL) != SQLITE_OK)
        kymo__db_fail(db);
    kymo__buf_fini(&sql);
}

static sqlite3_stmt *prepare_insert(struct kymo__db *db, const kymo_table *table)
{
    struct kymo__buf sql = {0};
    sqlite3_stmt *insert = NULL;
    kymo__buf_printf(&sql, "INSERT INTO energy_%s VALUES(?", kymo_table_name(table));
    for (size_t c = 1; c < kymo_table_n_columns(table); c++)
        kymo__buf_puts(&sql, ",?");
    kymo__buf_put(&sql, ")", 2);
    if (sql.failed)
        db->status = kymo__fail(KYMO_ENOMEM, "no memory for a database");
    else if (sqlite3_prepare_v2(db->sqlite, sql.data, -1, &insert, NULL) != SQLITE_OK)
        kymo__db_fail(db);
    kymo__buf_fini(&sql);
    return insert;
}

static void bind_cell(sqlite3_stmt *insert, int at, const kymo_table *table, size_t row, size_t column)
{
    const struct kymo_cell cell = kymo_table_cell(table, row, column);
    const enum kymo_type type = kymo_table_column(table, column)->type;
    if (cell.is_null)
        sqlite3_bind_null(insert, at);
    else if (type == KYMO_TYPE_TEXT)
        sqlite3_bind_text(insert, at, cell.as.text, (int)cell.len, SQLITE_TRANSIENT);
    else if (type == KYMO_TYPE_F64)
        sqlite3_bind_double(insert, at, cell.as.f64);
    else
        sqlite3_bind_int64(insert, at, cell.as.i64);
}

static void put_rows(struct kymo__db *db, const kymo_table *table)
{
    make_table(db, table);
    sqlite3_stmt *insert = db->status == KYMO_OK ? prepare_insert(db, table) : NULL;
    for (size_t row = 0; db->status == KYMO_OK && row < kymo_table_n_rows(table); row++) {
        for (size_t c = 0; c < kymo_table_n_columns(table); c++)
            bind_cell(insert, (int)c + 1, table, row, c);
        if (sqlite3_step(insert) != SQLITE_DONE)
            kymo__db_fail(db);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

void kymo__db_put_energy(const struct kymo__export *x, struct kymo__db *db)
{
    static const char *const names[] = {"runs",   "repeats",    "devices", "ranks",  "nodes",
                                        "epochs", "iterations", "phases",  "ranges", "notes"};
    const struct kymo_energy_report_options wants = {.filter = x->options->filter};
    kymo_energy_report *report = NULL;
    if (db->status != KYMO_OK || !kymo_energy_is_there(x->recordings, x->n_recordings))
        return;
    const kymo_status status =
        kymo_energy_report_create(x->recordings, x->n_recordings, &wants, &report);
    if (status != KYMO_OK && status != KYMO_EFORMAT) /* counters without a reading are none */
        db->status = status;
    for (size_t i = 0; report != NULL && db->status == KYMO_OK && i < KYMO__COUNT_OF(names); i++)
        put_rows(db, kymo_energy_report_table(report, names[i]));
    kymo_energy_report_destroy(report);
}
