/* Tables as a terminal shows them: numbers first, without columns that say nothing, then places made of several columns. */
#include "present/drawn.h"

static void copy_cell(kymo_table *into, const kymo_table *table, size_t row, size_t column)
{
    const struct kymo_cell cell = kymo_table_cell(table, row, column);
    const enum kymo_type type = kymo_table_column(table, column)->type;
    if (cell.is_null)
        kymo_table_null(into);
    else if (type == KYMO_TYPE_TEXT)
        kymo_table_text(into, cell.as.text, cell.len);
    else if (type == KYMO_TYPE_I64)
        kymo_table_i64(into, cell.as.i64);
    else if (type == KYMO_TYPE_U64)
        kymo_table_u64(into, cell.as.u64);
    else
        kymo_table_f64(into, cell.as.f64);
}

static kymo_status make(const struct kymo__drawn *how, const kymo_table *table, size_t n_rows,
                        kymo_table **out)
{
    struct kymo_column columns[KYMO__DRAWN_COLUMNS + KYMO__DRAWN_PLACES];
    size_t n = 0, sources[KYMO__DRAWN_COLUMNS];
    for (size_t i = 0; i < KYMO__DRAWN_COLUMNS && how->columns[i] != NULL; i++)
        if (!how->is_dull(table, how->columns[i], n_rows)) {
            sources[n] = (size_t)kymo_table_find(table, how->columns[i]);
            columns[n] = *kymo_table_column(table, sources[n]);
            n++;
        }
    const size_t n_numbers = n;
    for (size_t i = 0; i < KYMO__DRAWN_PLACES && how->places[i] != NULL; i++)
        columns[n++] = (struct kymo_column){.name = how->places[i], .type = KYMO_TYPE_TEXT};
    KYMO_TRY(kymo_table_create(kymo_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < n_numbers; i++)
            copy_cell(*out, table, row, sources[i]);
        for (size_t i = 0; i < KYMO__DRAWN_PLACES && how->places[i] != NULL; i++)
            how->put_place(*out, table, row, how->places[i]);
    }
    return kymo_table_status(*out);
}

kymo_status kymo__drawn_put(const struct kymo__drawn *how, const kymo_table *table, size_t n_rows,
                            const struct kymo_text_options *options, bool tells_rest,
                            struct kymo__lines *lines)
{
    kymo_table *drawn = NULL;
    kymo_status status = make(how, table, n_rows, &drawn);
    const struct kymo__text_view view = {.table = drawn, .options = *options, .n_rows = n_rows};
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, lines->out);
    kymo_table_destroy(drawn);
    const size_t n = kymo_table_n_rows(table);
    if (status != KYMO_OK || n_rows == n || !tells_rest)
        return status;
    kymo__buf_printf(&lines->line, "%s... of %zu; --all shows them%s", kymo__style(lines, DIM), n,
                     kymo__style(lines, PLAIN));
    return kymo__lines_end(lines);
}
