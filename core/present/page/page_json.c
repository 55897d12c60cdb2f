/* JSON of the page: values, and tables as columns of cells. */
#include "present/page/internal.h"

void marey__page_open(struct marey__buf *json, const char *key, const char *bracket)
{
    marey__buf_printf(json, "\"%s\":%s", key, bracket);
}

void marey__page_put_text(struct marey__buf *json, const char *key, const char *text)
{
    marey__json_printf(json, "%s:%s,", key, text);
}

void marey__page_put_number(struct marey__buf *json, const char *key, uint64_t value)
{
    marey__script_printf(json, "%s:%" PRIu64 ",", key, value);
}

bool marey__page_is_damaged(marey_recording *const *recordings, size_t n)
{
    bool is_damaged = false;
    for (size_t i = 0; i < n; i++)
        is_damaged |= marey_recording_is_damaged(recordings[i]) != 0;
    return is_damaged;
}

void marey__page_put_bool(struct marey__buf *json, const char *key, bool value)
{
    marey__json_printf(json, "%s:%x,", key, value);
}

void marey__page_put_start(struct marey__buf *json, const char *kind, const char *title)
{
    marey__json_printf(json, "{'format':1,'kind':%s,'version':%s,'title':%s,", kind,
                       marey_version(), title);
}

/* Remove the comma after the last element and close the bracket. */
void marey__page_close(struct marey__buf *json, const char *bracket)
{
    if (json->len > 0 && json->data[json->len - 1] == ',')
        json->len--;
    marey__buf_puts(json, bracket);
}

/* ---- tables ---- */

static const char *const type_names[] = {"", "text", "i64", "u64", "f64", "bool"};
static const char *const unit_names[] = {"", "count", "ns", "bytes", "share", "unix_ns"};

static void put_columns(struct marey__buf *json, const marey_table *table)
{
    marey__buf_puts(json, "\"columns\":[");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        marey__json_printf(json, "{'name':%s,'title':%s,'type':%s,'unit':%s},", column->name,
                           column->title != NULL ? column->title : column->name,
                           type_names[column->type], unit_names[column->unit]);
    }
    marey__page_close(json, "],");
}

/* Sums of nanosecond columns over all rows, for ratios of truncated tables. */
static void put_sums(struct marey__buf *json, const marey_table *table)
{
    marey__page_open(json, "sums", "{");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const struct marey_column *column = marey_table_column(table, c);
        uint64_t sum = 0;
        if (column->unit != MAREY_UNIT_NS || column->type != MAREY_TYPE_U64)
            continue;
        for (size_t row = 0; row < marey_table_n_rows(table); row++)
            sum += marey_table_cell(table, row, c).as.u64;
        marey__page_put_number(json, column->name, sum);
    }
    marey__page_close(json, "},");
}

static void put_cells(struct marey__buf *json, const marey_table *table, size_t n_rows)
{
    marey__buf_puts(json, "\"cells\":[");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const enum marey_type type = marey_table_column(table, c)->type;
        marey__buf_puts(json, "[");
        for (size_t row = 0; row < n_rows; row++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            marey__json_value(json, &cell, type, true);
            marey__buf_puts(json, ",");
        }
        marey__page_close(json, "],");
    }
    marey__page_close(json, "]},");
}

static void put_head(struct marey__buf *json, const marey_report *report, size_t i, const char *title)
{
    const struct marey_table_definition *const about = &report->analysis->about.tables[i];
    marey__script_printf(json, "{'name':%s,'help':%s,'rows':%zu,",
                         title != NULL ? title : about->name, about->help,
                         marey_table_n_rows(report->tables[i]));
}

void marey__page_table(struct marey__buf *json, const marey_report *report, size_t i,
                       const char *title, size_t max_rows)
{
    const marey_table *const table = report->tables[i];
    const size_t n = table != NULL ? marey_table_n_rows(table) : 0;
    const size_t n_kept = max_rows != 0 && n > max_rows ? max_rows : n;
    if (table == NULL)
        return;
    put_head(json, report, i, title);
    if (n_kept < n)
        put_sums(json, table);
    put_columns(json, table);
    put_cells(json, table, n_kept);
}

void marey__page_tree(struct marey__buf *json, const marey_report *report, size_t i, size_t max_rows)
{
    const marey_table *const tree = report->tables[i];
    marey_table *reduced = NULL;
    size_t n_others = 0;
    if (marey_table_n_rows(tree) <= max_rows) {
        marey__page_table(json, report, i, NULL, 0);
        return;
    }
    if (!marey__page_reduce_tree(tree, max_rows, &reduced, &n_others)) {
        json->failed = true;
        return;
    }
    put_head(json, report, i, NULL);
    marey__script_printf(json, "'others':%zu,", n_others);
    put_columns(json, reduced);
    put_cells(json, reduced, marey_table_n_rows(reduced));
    marey_table_destroy(reduced);
}
