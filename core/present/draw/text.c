/*
 * A table for a terminal: numbers right-aligned, texts left-aligned, two spaces between columns. If
 * it is too wide, texts are truncated first, then columns omitted, the least important first, and
 * listed below the table.
 */
#include <time.h>

#include "present/draw/internal.h"

enum { MAX_COLUMNS = 64, SPACE = 2, LEAST_TEXT = 16, WIDEST_TEXT = 80, MAX_INDENT = 40 };

struct drawn_column {
    size_t column;
    const struct marey_column *info;
    size_t width;
    bool is_text;
};

struct layout {
    const struct marey__text_view *view;
    struct drawn_column columns[MAX_COLUMNS];
    size_t n;
    int tree, depth; /* the indented column, and the column with its depth; -1: none */
    struct marey__buf cell, line, left_out;
};

/* ---- cells ---- */

static double number_of(const struct marey_cell *cell, enum marey_type type)
{
    if (type == MAREY_TYPE_F64)
        return cell->as.f64;
    return type == MAREY_TYPE_I64 ? (double)cell->as.i64 : (double)cell->as.u64;
}

static void put_plain_number(struct marey__buf *buf, const struct marey_cell *cell,
                             enum marey_type type)
{
    if (type == MAREY_TYPE_F64)
        marey__text_real(buf, cell->as.f64);
    else if (type == MAREY_TYPE_I64)
        marey__buf_printf(buf, "%lld", (long long)cell->as.i64);
    else if (type == MAREY_TYPE_BOOL)
        marey__buf_puts(buf, cell->as.u64 != 0 ? "yes" : "no");
    else
        marey__buf_printf(buf, "%llu", (unsigned long long)cell->as.u64);
}

static size_t indent_of(const struct layout *layout, size_t row, size_t column)
{
    if (layout->tree < 0 || (size_t)layout->tree != column || layout->depth < 0)
        return 0;
    const struct marey_cell depth = marey_table_cell(layout->view->table, row, (size_t)layout->depth);
    return 2 * (size_t)MAREY__MIN(depth.as.u64, (uint64_t)MAX_INDENT);
}

void marey__text_number(struct marey__buf *buf, const struct marey_cell *cell,
                        const struct marey_column *column, const char *unit)
{
    if (column->unit == MAREY_UNIT_NS)
        marey__text_duration(buf, number_of(cell, column->type), unit);
    else if (column->unit == MAREY_UNIT_NONE || column->unit == MAREY_UNIT_COUNT)
        put_plain_number(buf, cell, column->type);
    else
        marey__text_in_unit(buf, number_of(cell, column->type), column->unit);
}

/* Pad units to equal width. */
static void put_number(struct marey__buf *buf, const struct marey_cell *cell,
                       const struct marey_column *column, const char *unit)
{
    marey__text_number(buf, cell, column, unit);
    const bool has_unit = column->unit == MAREY_UNIT_NS && unit == NULL;
    if (has_unit && !buf->failed && buf->len >= 2 && buf->data[buf->len - 2] == ' ')
        marey__buf_puts(buf, " ");
}

static size_t step_of(const struct marey__text_view *view)
{
    return view->step != 0 ? view->step : 1;
}

/* Format the cell into layout->cell and return its width; `limit` truncates texts, 0 does not. */
static size_t format_cell(struct layout *layout, size_t row, const struct drawn_column *c,
                          size_t limit)
{
    struct marey__buf *buf = &layout->cell;
    const struct marey_cell cell = marey_table_cell(layout->view->table, row, c->column);
    buf->len = 0;
    if (cell.is_null) {
        marey__buf_puts(buf, "-");
    } else if (c->is_text) {
        size_t indent = indent_of(layout, row, c->column);
        indent = limit != 0 && indent > limit / 2 ? limit / 2 : indent;
        for (size_t i = 0; i < indent; i++)
            marey__buf_puts(buf, " ");
        const size_t widest =
            layout->view->widest_text != 0 ? layout->view->widest_text : WIDEST_TEXT;
        return indent +
               marey__text_put(buf, cell.as.text, cell.len, limit == 0 ? widest : limit - indent);
    } else {
        put_number(buf, &cell, c->info, layout->view->options.unit);
    }
    return buf->len;
}

/* ---- widths ---- */

static size_t total_width(const struct layout *layout)
{
    size_t width = layout->n == 0 ? 0 : SPACE * (layout->n - 1);
    for (size_t i = 0; i < layout->n; i++)
        width += layout->columns[i].width;
    return width;
}

static struct drawn_column *widest_text(struct layout *layout)
{
    struct drawn_column *widest = NULL;
    for (size_t i = 0; i < layout->n; i++)
        if (layout->columns[i].is_text && (widest == NULL || layout->columns[i].width > widest->width))
            widest = &layout->columns[i];
    return widest;
}

/* Truncate texts one column at a time, the widest first, to a readable minimum. */
static void shrink_texts(struct layout *layout, size_t width)
{
    struct drawn_column *widest;
    while (total_width(layout) > width && (widest = widest_text(layout)) != NULL &&
           widest->width > LEAST_TEXT)
        widest->width--;
}

static void leave_out(struct layout *layout, size_t i)
{
    marey__buf_puts(&layout->left_out, layout->left_out.len == 0 ? "" : ", ");
    marey__buf_puts(&layout->left_out, layout->columns[i].info->title);
    memmove(&layout->columns[i], &layout->columns[i + 1],
            (layout->n - i - 1) * sizeof layout->columns[0]);
    layout->n--;
}

/* Omit the least important column; false if only essential columns are left. */
static bool leave_one_out(struct layout *layout)
{
    static const char *const expendable[] = {
        "place",        "wait",      "processes", "host",   "clock",  "event_cost_ns",
        "flush_cpu_ns", "log_bytes", "threads",   "p90_ns", "min_ns", "p99_ns",
        "tid",          "max_ns",    "p50_ns",    "domain", "color",  "category",
        "command",      "share",     "self_ns",   "mean_ns"};
    for (size_t e = 0; e < MAREY__COUNT_OF(expendable); e++)
        for (size_t i = 0; i < layout->n; i++)
            if (strcmp(layout->columns[i].info->name, expendable[e]) == 0) {
                leave_out(layout, i);
                return true;
            }
    return false;
}

static void fit(struct layout *layout, size_t width)
{
    if (width == 0)
        return;
    size_t widths[MAX_COLUMNS] = {0};
    for (;;) {
        for (size_t i = 0; i < layout->n; i++)
            widths[i] = layout->columns[i].width;
        shrink_texts(layout, width);
        if (total_width(layout) <= width)
            return;
        for (size_t i = 0; i < layout->n; i++)
            layout->columns[i].width = widths[i];
        if (!leave_one_out(layout)) {
            shrink_texts(layout, width);
            return;
        }
    }
}

/* ---- the layout ---- */

static bool is_hidden(const struct layout *layout, const struct marey_column *info, size_t column)
{
    if (layout->tree >= 0 && layout->depth >= 0 && (size_t)layout->depth == column)
        return true;
    const char *const *hide = layout->view->hide;
    for (; hide != NULL && *hide != NULL; hide++)
        if (strcmp(*hide, info->name) == 0)
            return true;
    return false;
}

/* A title, with the unit if all times of the table have the same unit. */
static size_t put_title(struct marey__buf *buf, const struct layout *layout,
                        const struct marey_column *info)
{
    const size_t before = buf->len;
    marey__buf_puts(buf, info->title);
    if (info->unit == MAREY_UNIT_NS && layout->view->options.unit != NULL)
        marey__buf_printf(buf, " %s", layout->view->options.unit);
    return buf->len - before;
}

static void measure_column(struct layout *layout, struct drawn_column *c)
{
    layout->cell.len = 0;
    c->width = put_title(&layout->cell, layout, c->info);
    for (size_t row = 0; row < layout->view->n_rows; row += step_of(layout->view)) {
        const size_t width = format_cell(layout, row, c, 0);
        c->width = MAREY__MAX(c->width, width);
    }
}

static void lay_out(struct layout *layout)
{
    const marey_table *table = layout->view->table;
    const char *tree = layout->view->options.tree;
    layout->tree = tree != NULL ? marey_table_find(table, tree) : -1;
    layout->depth = marey_table_find(table, "depth");
    for (size_t i = 0; i < marey_table_n_columns(table) && layout->n < MAX_COLUMNS; i++) {
        const struct marey_column *info = marey_table_column(table, i);
        if (is_hidden(layout, info, i))
            continue;
        struct drawn_column *c = &layout->columns[layout->n++];
        *c = (struct drawn_column){
            .column = i, .info = info, .is_text = info->type == MAREY_TYPE_TEXT};
        measure_column(layout, c);
    }
    fit(layout, layout->view->options.width);
}

/* ---- lines ---- */

static void put_spaces(struct marey__buf *buf, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__buf_put(buf, " ", 1);
}

/* Append layout->cell, padded to `width`, to the line. The last column of a line is not padded. */
static void put_cell(struct layout *layout, size_t i, size_t width, const char *color)
{
    const struct drawn_column *c = &layout->columns[i];
    const size_t fill = c->width > width ? c->width - width : 0;
    if (!c->is_text)
        put_spaces(&layout->line, fill);
    marey__buf_puts(&layout->line, color);
    marey__buf_put(&layout->line, layout->cell.data, layout->cell.len);
    marey__buf_puts(&layout->line, color[0] != '\0' ? PLAIN : "");
    if (i + 1 < layout->n)
        put_spaces(&layout->line, SPACE + (c->is_text ? fill : 0));
}

static marey_status end_line(struct layout *layout, FILE *out)
{
    struct marey__buf *line = &layout->line;
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->len--;
    marey__buf_puts(line, "\n");
    line->failed |= layout->cell.failed || layout->left_out.failed;
    return marey__buf_to_stream(line, out);
}

static marey_status draw_head(struct layout *layout, FILE *out)
{
    for (size_t i = 0; i < layout->n; i++) {
        layout->cell.len = 0;
        const size_t width = put_title(&layout->cell, layout, layout->columns[i].info);
        put_cell(layout, i, width, layout->view->options.color ? BOLD : "");
    }
    return end_line(layout, out);
}

/* Highlights large shares of the time. */
static const char *color_of(const struct layout *layout, size_t row, const struct drawn_column *c)
{
    if (layout->view->options.color == 0 || c->info->unit != MAREY_UNIT_SHARE)
        return "";
    const struct marey_cell cell = marey_table_cell(layout->view->table, row, c->column);
    if (cell.is_null)
        return "";
    return cell.as.f64 >= 0.5 ? RED : cell.as.f64 >= 0.1 ? YELLOW : "";
}

static marey_status draw_row(struct layout *layout, size_t row, FILE *out)
{
    for (size_t i = 0; i < layout->n; i++) {
        const struct drawn_column *c = &layout->columns[i];
        const size_t width = format_cell(layout, row, c, c->is_text ? c->width : 0);
        put_cell(layout, i, width, color_of(layout, row, c));
    }
    return end_line(layout, out);
}

static marey_status draw(struct layout *layout, FILE *out)
{
    lay_out(layout);
    MAREY_TRY(draw_head(layout, out));
    for (size_t row = 0; row < layout->view->n_rows; row += step_of(layout->view))
        MAREY_TRY(draw_row(layout, row, out));
    if (layout->left_out.len == 0)
        return MAREY_OK;
    const bool color = layout->view->options.color != 0;
    marey__buf_printf(&layout->line, "%s(too narrow for ", color ? DIM : "");
    marey__buf_put(&layout->line, layout->left_out.data, layout->left_out.len);
    marey__buf_printf(&layout->line, ")%s", color ? PLAIN : "");
    return end_line(layout, out);
}

marey_status marey__text_draw(const struct marey__text_view *view, FILE *out)
{
    struct layout layout = {.view = view};
    const marey_status status = draw(&layout, out);
    marey__buf_fini(&layout.cell);
    marey__buf_fini(&layout.line);
    marey__buf_fini(&layout.left_out);
    return status;
}

marey_status marey_present_text(const marey_table *table, const struct marey_text_options *options,
                                FILE *out)
{
    const struct marey__text_view view = {
        .table = table,
        .options = options != NULL ? *options : (struct marey_text_options){0},
        .n_rows = marey_table_n_rows(table),
    };
    return marey__text_draw(&view, out);
}

/* ---- notes below the tables of a report ---- */

marey_status marey__lines_put_notes(struct marey__lines *lines, const marey_table *notes)
{
    for (size_t row = 0; row < marey_table_n_rows(notes); row++) {
        const struct marey_cell text = marey_table_cell(notes, row, 0);
        marey__buf_printf(&lines->line, "%snote:%s ", marey__style(lines, YELLOW),
                          marey__style(lines, PLAIN));
        marey__text_put(&lines->line, text.as.text, text.len, 0);
        MAREY_TRY(marey__lines_end(lines));
    }
    return MAREY_OK;
}

marey_status marey__lines_put_notes_apart(struct marey__lines *lines, const marey_table *notes)
{
    if (marey_table_n_rows(notes) != 0)
        MAREY_TRY(marey__lines_end(lines));
    return marey__lines_put_notes(lines, notes);
}
