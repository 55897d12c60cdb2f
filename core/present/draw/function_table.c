/*
 * Tables of functions for a terminal: numbers first, without empty columns, then places combined from several columns.
 */
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

/* A column without information: no values, or primitive calls without any recursion. */
static bool is_hidden(const marey_table *table, const char *name, size_t n_rows)
{
    const size_t column = (size_t)marey_table_find(table, name);
    const bool is_primitive = strcmp(name, "primitive_calls") == 0;
    for (size_t row = 0; row < n_rows; row++) {
        const struct marey_cell cell = marey_table_cell(table, row, column);
        if (is_primitive ? cell.as.u64 != marey__cell_of(table, row, "calls").as.u64 : !cell.is_null)
            return false;
    }
    return true;
}

/* "train.py:12(forward)", with arguments if the table has them; in a tree indented by depth. */
static void put_place(marey_table *into, const marey_table *table, size_t row, const char *which)
{
    char file[32], line[32];
    MAREY__FINALLY(marey__buf_fini) struct marey__buf text = {0}, label = {0};
    const bool is_other = strcmp(which, "function") != 0;
    const int depth = marey_table_find(table, "depth"),
              signature = is_other ? -1 : marey_table_find(table, "signature");
    const struct marey_cell name = marey__cell_of(table, row, which);
    snprintf(file, sizeof file, "%s%s", is_other ? which : "", is_other ? "_file" : "file");
    snprintf(line, sizeof line, "%s%s", is_other ? which : "", is_other ? "_line" : "line");
    if (name.is_null) {
        marey_table_null(into);
        return;
    }
    const char *const arguments =
        signature >= 0 ? marey_table_cell(table, row, (size_t)signature).as.text : "";
    marey__call_label_of(&label, name.as.text, arguments, arguments[0] != '\0');
    for (uint64_t i = depth >= 0 ? marey_table_cell(table, row, (size_t)depth).as.u64 : 0; i > 0; i--)
        marey__buf_puts(&text, "  ");
    marey__call_place(&text, marey__cell_of(table, row, file).as.text,
                      marey__cell_of(table, row, line).as.u64, label.data != NULL ? label.data : "",
                      label.len);
    marey_table_text(into, text.data != NULL ? text.data : "", text.len);
}

static marey_status make(const struct marey__function_table *how, const marey_table *table,
                         size_t n_rows, marey_table **out)
{
    struct marey_column columns[MAREY__COUNT_OF(how->columns) + MAREY__COUNT_OF(how->places)];
    size_t n = 0, sources[MAREY__COUNT_OF(how->columns)];
    for (size_t i = 0; how->columns[i] != NULL; i++)
        if (!is_hidden(table, how->columns[i], n_rows)) {
            sources[n] = (size_t)marey_table_find(table, how->columns[i]);
            columns[n] = *marey_table_column(table, sources[n]);
            n++;
        }
    const size_t n_numbers = n;
    for (size_t i = 0; how->places[i] != NULL; i++)
        columns[n++] = (struct marey_column){.name = how->places[i], .type = MAREY_TYPE_TEXT};
    MAREY_TRY(marey_table_create(marey_table_name(table), columns, n, out));
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < n_numbers; i++)
            marey__table_copy_cell(*out, table, row, sources[i]);
        for (size_t i = 0; how->places[i] != NULL; i++)
            put_place(*out, table, row, how->places[i]);
    }
    return marey_table_status(*out);
}

const struct marey__function_table *
marey__function_table_find(const struct marey__function_table *list, const char *table)
{
    while (list->table != NULL && strcmp(list->table, table) != 0)
        list++;
    return list->table != NULL ? list : NULL;
}

marey_status marey__function_table_put(const struct marey__function_table *how,
                                       const marey_table *table, size_t n_rows,
                                       const struct marey_text_options *options, bool shows_rest,
                                       struct marey__lines *lines)
{
    const size_t n = marey_table_n_rows(table);
    marey_table *drawn = NULL;
    MAREY_TRY(marey__lines_end(lines));
    if (how->title != NULL)
        marey__buf_printf(&lines->line, "%s%s%s\n", marey__style(lines, DIM), how->title,
                          marey__style(lines, PLAIN));
    marey__buf_puts(&lines->line, n == 0 ? "(nothing of the kind)\n" : "");
    MAREY_TRY(marey__buf_to_stream(&lines->line, lines->out));
    if (n == 0)
        return MAREY_OK;
    marey_status status = make(how, table, n_rows, &drawn);
    const struct marey__text_view view = {.table = drawn, .options = *options, .n_rows = n_rows};
    if (status == MAREY_OK)
        status = marey__text_draw(&view, lines->out);
    marey_table_destroy(drawn);
    if (status != MAREY_OK || n_rows == n || !shows_rest)
        return status;
    marey__buf_printf(&lines->line, "%s... of %zu; --all shows them%s", marey__style(lines, DIM), n,
                      marey__style(lines, PLAIN));
    return marey__lines_end(lines);
}

/* ---- functions ---- */

/* Where the first parameter of a signature ends: at the first comma outside brackets, or at the end. */
static size_t first_parameter(const char *text)
{
    size_t i = 0;
    for (int depth = 0; text[i] != '\0' && (depth > 0 || text[i] != ','); i++) {
        depth += strchr("([{<", text[i]) != NULL;
        depth -= strchr(")]}>", text[i]) != NULL;
    }
    return i;
}

void marey__call_label_of(struct marey__buf *label, const char *name, const char *text, bool is_signed)
{
    static const char self[] = "self:";
    const bool is_method = is_signed && strncmp(text, self, sizeof self - 1) == 0;
    if (is_method) {
        const size_t end = first_parameter(text);
        marey__buf_put(label, text + sizeof self - 1, end - (sizeof self - 1));
        text += end + strspn(text + end, ", ");
    }
    if (!is_method || strcmp(name, "__init__") != 0)
        marey__buf_printf(label, "%s%s", is_method ? "." : "", name);
    if (is_signed)
        marey__buf_printf(label, "(%s)", text);
}

void marey__call_place(struct marey__buf *text, const char *file, uint64_t line, const char *label,
                       size_t len)
{
    if (file[0] == '\0' || strcmp(file, "~") == 0) {
        /* "<built-in method builtins.len>" in braces, as in pstats. */
        const bool is_built_in = len > 2 && label[0] == '<' && label[len - 1] == '>';
        if (is_built_in)
            marey__buf_puts(text, "{");
        marey__buf_put(text, label + is_built_in, len - 2 * is_built_in);
        if (is_built_in)
            marey__buf_puts(text, "}");
        return;
    }
    marey__buf_puts(text, marey__base_name(file));
    if (line != 0) /* native functions have no line: "libc.so.6(poll)" */
        marey__buf_printf(text, ":%" PRIu64, line);
    marey__buf_puts(text, "(");
    marey__buf_put(text, label, len);
    marey__buf_puts(text, ")");
}
