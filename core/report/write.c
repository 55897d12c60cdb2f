/* A report in each format. An analysis may have its own text; other tables are drawn as they are. */
#include <string.h>

#include "present/draw/internal.h"
#include "report/internal.h"

enum { MAX_COLUMNS = 40 };

/* ---- text ---- */

bool marey__table_has_values(const marey_table *table, size_t column)
{
    const struct marey_column *const c = marey_table_column(table, column);
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell cell = marey_table_cell(table, row, column);
        if (!cell.is_null && (c->type != MAREY_TYPE_TEXT || cell.len != 0) &&
            (c->type != MAREY_TYPE_BOOL || cell.as.u64 != 0))
            return true;
    }
    return false;
}

static bool is_empty(const void *ctx, const marey_table *table, size_t column)
{
    (void)ctx;
    return !marey__table_has_values(table, column);
}

marey_status marey__report_draw(struct marey__lines *lines, const struct marey__report_view *view)
{
    const char *hide[MAX_COLUMNS + 1];
    size_t n_hidden = 0;
    const size_t n = view->n_rows, limit = view->step > 1 ? 0 : view->options->limit,
                 n_drawn = limit != 0 ? MAREY__MIN(n, limit) : n;
    for (size_t c = 0; c < marey_table_n_columns(view->table) && n_hidden < MAX_COLUMNS; c++)
        if (view->hides(view->ctx, view->table, c))
            hide[n_hidden++] = marey_table_column(view->table, c)->name;
    hide[n_hidden] = NULL;
    marey__buf_printf(&lines->line, "%s%s%s", marey__style(lines, DIM), view->title,
                      marey__style(lines, PLAIN));
    MAREY_TRY(marey__lines_end(lines));
    const struct marey__text_view drawn = {.table = view->table,
                                           .options = view->options->text,
                                           .n_rows = n_drawn,
                                           .hide = hide,
                                           .widest_text = view->widest_text,
                                           .step = view->step};
    MAREY_TRY(marey__text_draw(&drawn, lines->out));
    const size_t n_left = view->step > 1 ? n - (n + view->step - 1) / view->step : n - n_drawn;
    if (n_left == 0)
        return MAREY_OK;
    marey__buf_printf(&lines->line, "%s... and %zu more; --all shows them%s",
                      marey__style(lines, DIM), n_left, marey__style(lines, PLAIN));
    return marey__lines_end(lines);
}

static marey_status draw_table(struct marey__report_writer *writer, const marey_table *table,
                               const char *title)
{
    const struct marey__report_view view = {.table = table,
                                            .title = title,
                                            .n_rows = marey_table_n_rows(table),
                                            .options = writer->options,
                                            .hides = is_empty};
    if (view.n_rows != 0)
        return marey__report_draw(&writer->lines, &view);
    marey__buf_printf(&writer->lines.line, "No %s.", marey_table_name(table));
    return marey__lines_end(&writer->lines);
}

static marey_status draw_all(struct marey__report_writer *writer)
{
    const marey_report *const report = writer->report;
    const struct marey_analysis *const about = &report->analysis->about;
    const marey_table *const notes = marey__report_notes(report);
    for (size_t i = 0; i < about->n_tables; i++) {
        const marey_table *const table = report->tables[i];
        if (table == NULL || table == notes || marey_table_n_rows(table) == 0)
            continue;
        MAREY_TRY(draw_table(writer, table, about->tables[i].help));
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return notes != NULL ? marey__lines_put_notes(&writer->lines, notes) : MAREY_OK;
}

/* "ranges" places it itself. */
static const marey_report *lead_of(const struct marey__report_writer *writer)
{
    return writer->report->analysis != &marey__analysis_ranges ? writer->options->lead : NULL;
}

static marey_status put_text(struct marey__report_writer *writer)
{
    const struct marey__analysis *const analysis = writer->report->analysis;
    const char *name = writer->options->table;
    if (lead_of(writer) != NULL) {
        MAREY_TRY(marey_report_write(lead_of(writer), "text",
                                     &(struct marey_write_options){.text = writer->options->text},
                                     writer->lines.out));
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    if (analysis->text != NULL && (name == NULL || analysis->draws_tables))
        return analysis->text(writer);
    if (name == NULL)
        return draw_all(writer);
    for (size_t len; *name != '\0'; name += len + (name[len] == ',')) {
        len = strcspn(name, ",");
        const marey_table *const table = marey__report_table(writer->report, name, len);
        MAREY_TRY(draw_table(writer, table, marey_table_name(table)));
    }
    return MAREY_OK;
}

/* ---- other formats ---- */

static marey_status unknown_table(const marey_report *report, const char *name, size_t len)
{
    const struct marey_analysis *const about = &report->analysis->about;
    struct marey__buf names MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < about->n_tables; i++)
        marey__buf_printf(&names, "%s%s", i == 0 ? "" : ", ", about->tables[i].name);
    marey__buf_put(&names, "", 1);
    return marey__fail(MAREY_EINVAL, "no table '%.*s' of %s; there are %s", (int)len, name,
                       about->name, names.failed ? "others" : names.data);
}

/* Omits tables after the notes, which other presenters use. */
static marey_status put_json(struct marey__report_writer *writer)
{
    const marey_report *const report = writer->report;
    const marey_table *const notes = marey__report_notes(report);
    size_t n = 0;
    if (report->analysis->json != NULL)
        return report->analysis->json(writer);
    while (n < report->analysis->about.n_tables && report->tables[n] != notes)
        n++;
    struct marey__buf *const line = &writer->lines.line;
    marey__buf_puts(line, "{\n");
    if (lead_of(writer) != NULL) {
        marey__buf_printf(line, "  \"%s\": ", marey_report_analysis(lead_of(writer))->name);
        MAREY_TRY(marey__buf_to_stream(line, writer->lines.out));
        MAREY_TRY(marey_report_write(lead_of(writer), "json", NULL, writer->lines.out));
        marey__buf_puts(line, "  ,\n");
    }
    return marey__json_report(line, report->tables, n, notes, writer->lines.out);
}

/* One table: the first that settings select, unless the options name one. */
static marey_status put_csv(const marey_report *report, const struct marey_write_options *options,
                            const char *name, FILE *out)
{
    marey_table *const table =
        marey__report_table(report, name, options->table != NULL ? strlen(name) : strcspn(name, ","));
    if (table == NULL)
        return unknown_table(report, name, strlen(name));
    if (report->sort[0] != '\0')
        MAREY_TRY(marey__table_sort(table, report->sort));
    return marey__csv_rows(table, options->limit != 0 ? options->limit : SIZE_MAX, out);
}

static marey_status put_markdown(struct marey__report_writer *writer)
{
    const struct marey_analysis *const about = &writer->report->analysis->about;
    const struct marey_write_options *const wants = writer->options;
    struct marey__buf *const text = &writer->lines.line;
    for (size_t i = 0; i < about->n_tables; i++) {
        const marey_table *const one = writer->report->tables[i];
        if (one == NULL || marey_table_n_rows(one) == 0 ||
            (wants->table != NULL && !marey__is_listed(wants->table, marey_table_name(one))))
            continue;
        marey__buf_printf(text, "## %s\n\n", marey_table_name(one));
        marey__markdown_table(text, one, wants->limit, wants->text.unit);
        marey__buf_puts(text, "\n");
    }
    return marey__buf_to_stream(text, writer->lines.out);
}

/* ---- all ---- */

static marey_status write(const marey_report *report, const struct marey_write_options *options,
                          FILE *out, marey__put_answer *put)
{
    struct marey__report_writer writer = {
        .report = report,
        .options = options,
        .lines = {.out = out, .has_color = options->text.color != 0}};
    return marey__lines_close(&writer.lines, put(&writer));
}

marey_status marey_report_write(const marey_report *report, const char *format,
                                const struct marey_write_options *options, FILE *out)
{
    static const struct marey__report_format formats[] = {
        {"text", put_text}, {"json", put_json}, {"markdown", put_markdown}, {0}};
    struct marey_write_options wants = options != NULL ? *options : (struct marey_write_options){0};
    const bool is_csv = strcmp(format, "csv") == 0, is_markdown = strcmp(format, "markdown") == 0;
    const struct marey__report_format *own = report->analysis->formats, *known = formats;
    while (own != NULL && own->name != NULL && strcmp(own->name, format) != 0)
        own++;
    if (is_markdown && wants.lead != NULL) {
        MAREY_TRY(marey_report_write(wants.lead, format, NULL, out));
        fputc('\n', out);
    }
    if (own != NULL && own->name != NULL)
        return write(report, &wants, out, own->put);
    const bool is_one = is_csv || (wants.is_short && is_markdown);
    if (wants.table == NULL)
        wants.table = report->table;
    if (wants.table == NULL && is_one)
        wants.table = report->csv != NULL ? report->csv : report->analysis->about.csv;
    if (is_csv)
        return put_csv(report, &wants, wants.table, out);
    for (const char *name = wants.table; name != NULL && *name != '\0';) {
        const size_t len = strcspn(name, ",");
        if (marey__report_table(report, name, len) == NULL)
            return unknown_table(report, name, len);
        name += len + (name[len] == ',');
    }
    while (known->name != NULL && strcmp(known->name, format) != 0)
        known++;
    return known->name != NULL
               ? write(report, &wants, out, known->put)
               : marey__fail(MAREY_EINVAL,
                             "a report is written as text, json, csv or markdown, not as %s", format);
}
