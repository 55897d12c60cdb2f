/* Tables as a terminal shows them: numbers first, without columns that say nothing, then places made of several columns. */
#include <inttypes.h>

#include "present/draw/internal.h"

void marey__table_copy_cell(marey_table *into, const marey_table *table, size_t row, size_t column)
{
    const struct marey_cell cell = marey_table_cell(table, row, column);
    const enum marey_type type = marey_table_column(table, column)->type;
    if (cell.is_null)
        marey_table_null(into);
    else if (type == MAREY_TYPE_TEXT)
        marey_table_text(into, cell.as.text, cell.len);
    else if (type == MAREY_TYPE_I64)
        marey_table_i64(into, cell.as.i64);
    else if (type == MAREY_TYPE_U64)
        marey_table_u64(into, cell.as.u64);
    else
        marey_table_f64(into, cell.as.f64);
}

static marey_status make(const struct marey__function_table *how, const marey_table *table,
                         size_t n_rows, marey_table **out)
{
    struct marey_column columns[MAREY__FUNCTION_TABLE_COLUMNS + MAREY__FUNCTION_TABLE_PLACES];
    size_t n = 0, sources[MAREY__FUNCTION_TABLE_COLUMNS];
    for (size_t i = 0; i < MAREY__FUNCTION_TABLE_COLUMNS && how->columns[i] != NULL; i++)
        if (!how->is_hidden(table, how->columns[i], n_rows)) {
            sources[n] = (size_t)marey_table_find(table, how->columns[i]);
            columns[n] = *marey_table_column(table, sources[n]);
            n++;
        }
    const size_t n_numbers = n;
    for (size_t i = 0; i < MAREY__FUNCTION_TABLE_PLACES && how->places[i] != NULL; i++)
        columns[n++] = (struct marey_column){.name = how->places[i], .type = MAREY_TYPE_TEXT};
    MAREY_TRY(marey_table_create(marey_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < n_numbers; i++)
            marey__table_copy_cell(*out, table, row, sources[i]);
        for (size_t i = 0; i < MAREY__FUNCTION_TABLE_PLACES && how->places[i] != NULL; i++)
            how->put_place(*out, table, row, how->places[i]);
    }
    return marey_table_status(*out);
}

marey_status marey__function_table_put(const struct marey__function_table *how,
                                       const marey_table *table, size_t n_rows,
                                       const struct marey_text_options *options, bool shows_rest,
                                       struct marey__lines *lines)
{
    marey_table *drawn = NULL;
    marey_status status = make(how, table, n_rows, &drawn);
    const struct marey__text_view view = {.table = drawn, .options = *options, .n_rows = n_rows};
    if (status == MAREY_OK)
        status = marey__text_draw(&view, lines->out);
    marey_table_destroy(drawn);
    const size_t n = marey_table_n_rows(table);
    if (status != MAREY_OK || n_rows == n || !shows_rest)
        return status;
    marey__buf_printf(&lines->line, "%s... of %zu; --all shows them%s", marey__style(lines, DIM), n,
                      marey__style(lines, PLAIN));
    return marey__lines_end(lines);
}

void marey__call_place(struct marey__buf *text, const char *file, uint64_t line, const char *label,
                       size_t len)
{
    if (file[0] == '\0' || strcmp(file, "~") == 0) {
        /* "<built-in method builtins.len>" in braces, as pstats has it. */
        const bool is_built_in = len > 2 && label[0] == '<' && label[len - 1] == '>';
        if (is_built_in)
            marey__buf_puts(text, "{");
        marey__buf_put(text, label + is_built_in, len - 2 * is_built_in);
        if (is_built_in)
            marey__buf_puts(text, "}");
        return;
    }
    marey__buf_puts(text, marey__base_name(file));
    if (line != 0) /* native functions have none: "libc.so.6(poll)" */
        marey__buf_printf(text, ":%" PRIu64, line);
    marey__buf_puts(text, "(");
    marey__buf_put(text, label, len);
    marey__buf_puts(text, ")");
}
