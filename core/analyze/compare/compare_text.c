/*
 * A comparison as text: one sentence, the tables, notes; for a terminal, as Markdown for a pull request, and as JSON.
 * Text and Markdown draw the same table of strings.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "present/draw/internal.h"

enum { MAX_ONLY = 10 };

static marey_table *table_of(const struct marey__report_writer *writer,
                             enum marey__comparison_table table)
{
    return writer->report->tables[table];
}

/* ---- the sentence ---- */

/* Two significant digits, without a sign: "3.1 %", "0.042 %", "140 %". */
static void put_amount(struct marey__buf *line, double percent)
{
    const double amount = fabs(percent);
    const int digits = amount >= 99.5 || amount == 0 ? 0
                       : amount >= 0.995             ? 1
                       : amount >= 0.0995            ? 2
                                                     : 3;
    marey__buf_printf(line, "%.*f %%", digits, amount);
}

static void put_direction(struct marey__buf *line, double percent)
{
    put_amount(line, percent);
    marey__buf_puts(line, percent > 0 ? " slower" : " faster");
}

static void put_bounds(struct marey__buf *line, double low, double high)
{
    const double least = fmin(fabs(low), fabs(high)), most = fmax(fabs(low), fabs(high));
    marey__buf_puts(line, " (");
    put_amount(line, least);
    marey__buf_puts(line, " to ");
    put_amount(line, most);
    marey__buf_puts(line, ")");
}

static void put_unsure(struct marey__buf *line, const marey_table *table, size_t row)
{
    const struct marey_cell low = marey__cell_of(table, row, "low_percent"),
                            high = marey__cell_of(table, row, "high_percent"),
                            reason = marey__cell_of(table, row, "reason");
    const struct marey_cell change = marey__cell_of(table, row, "change_percent");
    if (low.is_null && !change.is_null) {
        marey__buf_puts(line, "B was ");
        put_direction(line, change.as.f64);
        marey__buf_puts(line, ", which may be chance; ");
        marey__buf_put(line, reason.as.text, reason.len);
        return;
    }
    marey__buf_puts(line, "It is unclear whether B is faster");
    if (!low.is_null && !high.is_null) {
        marey__buf_puts(line, ": it may be ");
        put_direction(line, low.as.f64);
        marey__buf_puts(line, " or ");
        put_direction(line, high.as.f64);
    }
    marey__buf_puts(line, "; ");
    marey__buf_put(line, reason.as.text, reason.len);
}

/* The table of the sentence: the first of these that has rows. */
static const marey_table *table_of_sentence(const marey_report *report)
{
    static const enum marey__comparison_table order[] = {
        MAREY__COMPARED_ITERATION, MAREY__COMPARED_RANGES, MAREY__COMPARED_PROGRAM,
        MAREY__COMPARED_FUNCTIONS};
    size_t i = 0;
    while (i + 1 < MAREY__COUNT_OF(order) && marey_table_n_rows(report->tables[order[i]]) == 0)
        i++;
    return report->tables[order[i]];
}

/* About the iteration; without iterations, about the largest range; without ranges, about the wall time. */
void marey__compare_sentence(const marey_report *report, struct marey__buf *line)
{
    const bool has_iteration = marey_table_n_rows(report->tables[MAREY__COMPARED_ITERATION]) != 0;
    const marey_table *table = table_of_sentence(report);
    const struct marey_cell name = marey__cell_of(table, 0, "name"),
                            verdict = marey__cell_of(table, 0, "verdict"),
                            low = marey__cell_of(table, 0, "low_percent"),
                            high = marey__cell_of(table, 0, "high_percent");
    if (!has_iteration) {
        marey__text_put(line, name.as.text, name.len, 60);
        marey__buf_puts(line, ": ");
    }
    if (strcmp(verdict.as.text, "unsure") == 0) {
        put_unsure(line, table, 0);
    } else if (strcmp(verdict.as.text, "same") == 0) {
        marey__buf_puts(line, "No difference shown: B is within ");
        put_amount(line, fmax(fabs(low.as.f64), fabs(high.as.f64)));
        marey__buf_puts(line, " of A");
    } else {
        marey__buf_puts(line, "B is ");
        put_direction(line, marey__cell_of(table, 0, "change_percent").as.f64);
        put_bounds(line, low.as.f64, high.as.f64);
    }
    marey__buf_puts(line, ".");
}

/* ---- the table, as strings ---- */

#define DRAWN(of, whole)                                                                           \
    {                                                                                              \
        TEXT(of), MEAN("A", NULL), MEAN("B", NULL), TEXT("change"), TEXT("95 % interval"),         \
            TEXT("verdict"), TEXT(whole)                                                           \
    }
static const struct marey_column ranges_drawn[] = DRAWN("range", "of the iteration"),
                                 program_drawn[] = DRAWN("program", "of the program"),
                                 functions_drawn[] =
                                     DRAWN("function (self time)", "of the program");
enum { N_DRAWN = MAREY__COUNT_OF(ranges_drawn) };

static void put_signed(struct marey__buf *line, double percent)
{
    marey__buf_puts(line, percent < 0 ? "-" : percent > 0 ? "+" : "");
    put_amount(line, percent);
}

static void add_percent(marey_table *drawn, struct marey__buf *text, const struct marey_cell *cell)
{
    text->len = 0;
    if (cell->is_null)
        marey__buf_puts(text, "-");
    else
        put_signed(text, cell->as.f64);
    marey_table_text(drawn, text->data, text->failed ? 0 : text->len);
}

static void add_interval(marey_table *drawn, struct marey__buf *text, const marey_table *from,
                         size_t row)
{
    const struct marey_cell low = marey__cell_of(from, row, "low_percent"),
                            high = marey__cell_of(from, row, "high_percent");
    text->len = 0;
    if (low.is_null || high.is_null) {
        marey__buf_puts(text, "-");
    } else {
        put_signed(text, low.as.f64);
        marey__buf_puts(text, " to ");
        put_signed(text, high.as.f64);
    }
    marey_table_text(drawn, text->data, text->failed ? 0 : text->len);
}

static void add_row(marey_table *drawn, struct marey__buf *text, const marey_table *from, size_t row)
{
    const struct marey_cell name = marey__cell_of(from, row, "name"),
                            a = marey__cell_of(from, row, "a_ns"),
                            b = marey__cell_of(from, row, "b_ns"),
                            change = marey__cell_of(from, row, "change_percent"),
                            verdict = marey__cell_of(from, row, "verdict"),
                            effect = marey__cell_of(from, row, "effect_percent");
    MAREY__PUT_ROW(drawn, STRING_N(name.as.text, name.len), KNOWN(!a.is_null, FINITE(a.as.f64)),
                   KNOWN(!b.is_null, FINITE(b.as.f64)));
    add_percent(drawn, text, &change);
    add_interval(drawn, text, from, row);
    marey_table_text(drawn, verdict.as.text, verdict.len);
    if (marey_table_n_columns(drawn) == N_DRAWN)
        add_percent(drawn, text, &effect);
}

/* Tables drawn as one: the rows of `first`, if any, above those of `table`. */
struct drawing {
    const struct marey_column *columns;
    enum marey__comparison_table first, table;
    size_t n_columns; /* without the last if all its cells are unknown */
};

static size_t n_shown(const struct marey__report_writer *writer, enum marey__comparison_table table)
{
    const size_t n = marey_table_n_rows(table_of(writer, table));
    return writer->options->limit != 0 && writer->options->limit < n ? writer->options->limit : n;
}

typedef marey_status drawer(struct marey__report_writer *writer, const marey_table *drawn);

static marey_status draw_table(struct marey__report_writer *writer, const struct drawing *drawing,
                               drawer *draw)
{
    const marey_table *const first = table_of(writer, drawing->first), *const table = table_of(
                                                                           writer, drawing->table);
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey_table *drawn MAREY__FINALLY(marey__table_end) = NULL;
    MAREY_TRY(marey_table_create("compared", drawing->columns, drawing->n_columns, &drawn));
    if (drawing->first != drawing->table && marey_table_n_rows(first) != 0)
        add_row(drawn, &text, first, 0);
    for (size_t row = 0; row < n_shown(writer, drawing->table); row++)
        add_row(drawn, &text, table, row);
    MAREY__TRY_MEMORY(!text.failed);
    MAREY_TRY(marey_table_status(drawn));
    if (marey_table_n_rows(drawn) == 0)
        return MAREY_OK;
    MAREY_TRY(draw(writer, drawn));
    return marey__lines_end(&writer->lines);
}

/* Each table with rows, followed by an empty line. */
static marey_status draw_tables(struct marey__report_writer *writer, drawer *draw)
{
    const bool has_iteration = marey_table_n_rows(table_of(writer, MAREY__COMPARED_ITERATION)) != 0,
               has_wall = marey_table_n_rows(table_of(writer, MAREY__COMPARED_PROGRAM)) != 0;
    const struct drawing drawings[] = {
        {ranges_drawn, MAREY__COMPARED_ITERATION, MAREY__COMPARED_RANGES, N_DRAWN - !has_iteration},
        {program_drawn, MAREY__COMPARED_PROGRAM, MAREY__COMPARED_PROGRAM, N_DRAWN - 1},
        {functions_drawn, MAREY__COMPARED_FUNCTIONS, MAREY__COMPARED_FUNCTIONS, N_DRAWN - !has_wall},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(drawings); i++)
        MAREY_TRY(draw_table(writer, &drawings[i], draw));
    return MAREY_OK;
}

/* ---- notes and findings below the tables ---- */

static marey_status put_findings(struct marey__report_writer *writer, const char *bullet)
{
    const marey_table *const findings = table_of(writer, MAREY__COMPARED_FINDINGS);
    struct marey__buf *const line = &writer->lines.line, text = {0};
    for (size_t row = 0; row < marey_table_n_rows(findings); row++) {
        marey__compare_finding_line(findings, row, &text);
        marey__buf_printf(line, "%sfinding: ", bullet);
        if (bullet[0] != '\0')
            marey__markdown_put(line, text.data, text.failed ? 0 : text.len);
        else
            marey__text_put(line, text.data, text.failed ? 0 : text.len, 0);
        text.len = 0;
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    marey__buf_fini(&text);
    return MAREY_OK;
}

static marey_status put_below(struct marey__report_writer *writer, const char *bullet,
                              const char *style, const char *plain)
{
    const marey_table *only = table_of(writer, MAREY__COMPARED_ONLY),
                      *warnings = table_of(writer, MAREY__COMPARED_WARNINGS);
    struct marey__buf *line = &writer->lines.line;
    static const enum marey__comparison_table long_ones[] = {MAREY__COMPARED_RANGES,
                                                             MAREY__COMPARED_FUNCTIONS};
    for (size_t i = 0; i < MAREY__COUNT_OF(long_ones); i++) {
        const size_t n = marey_table_n_rows(table_of(writer, long_ones[i])),
                     shown = n_shown(writer, long_ones[i]);
        if (shown == n)
            continue;
        marey__buf_printf(line, "%s... and %zu more%s; --all shows them", bullet, n - shown,
                          i == 1 ? " functions" : "");
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    for (size_t row = 0; row < marey_table_n_rows(only) && row < MAX_ONLY; row++) {
        const struct marey_cell name = marey__cell_of(only, row, "name");
        marey__buf_printf(line, "%sonly in %s: ", bullet, marey__cell_of(only, row, "side").as.text);
        marey__text_put(line, name.as.text, name.len, 60);
        marey__buf_puts(line, ", ");
        marey__text_duration(line, marey__cell_of(only, row, "time_ns").as.f64,
                             writer->options->text.unit);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    if (marey_table_n_rows(only) > MAX_ONLY) {
        marey__buf_printf(line, "%s... and %zu more on one side only", bullet,
                          marey_table_n_rows(only) - MAX_ONLY);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++) {
        const struct marey_cell text = marey_table_cell(warnings, row, 0);
        marey__buf_printf(line, "%s%snote:%s ", bullet, style, plain);
        marey__text_put(line, text.as.text, text.len, 0);
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return put_findings(writer, bullet);
}

/* ---- text ---- */

static marey_status draw_text(struct marey__report_writer *writer, const marey_table *drawn)
{
    const struct marey__text_view view = {
        .table = drawn, .options = writer->options->text, .n_rows = marey_table_n_rows(drawn)};
    return marey__text_draw(&view, writer->lines.out);
}

marey_status marey__compare_text(struct marey__report_writer *writer)
{
    marey__buf_puts(&writer->lines.line, marey__style(&writer->lines, BOLD));
    marey__compare_sentence(writer->report, &writer->lines.line);
    marey__buf_printf(&writer->lines.line, "%s\n", marey__style(&writer->lines, PLAIN));
    MAREY_TRY(marey__lines_end(&writer->lines));
    MAREY_TRY(draw_tables(writer, draw_text));
    return put_below(writer, "", marey__style(&writer->lines, YELLOW),
                     marey__style(&writer->lines, PLAIN));
}

/* ---- Markdown ---- */

static marey_status draw_markdown(struct marey__report_writer *writer, const marey_table *drawn)
{
    marey__markdown_table(&writer->lines.line, drawn, 0, writer->options->text.unit);
    return marey__buf_to_stream(&writer->lines.line, writer->lines.out);
}

marey_status marey__compare_markdown(struct marey__report_writer *writer)
{
    marey__buf_puts(&writer->lines.line, "**");
    marey__compare_sentence(writer->report, &writer->lines.line);
    marey__buf_puts(&writer->lines.line, "**\n");
    MAREY_TRY(marey__lines_end(&writer->lines));
    MAREY_TRY(draw_tables(writer, draw_markdown));
    return put_below(writer, "- ", "", "");
}

/* ---- JSON ---- */

marey_status marey__compare_json(struct marey__report_writer *writer)
{
    const marey_table *warnings = table_of(writer, MAREY__COMPARED_WARNINGS),
                      *iteration = table_of(writer, MAREY__COMPARED_ITERATION);
    struct marey__buf *line = &writer->lines.line, sentence = {0};
    marey__compare_sentence(writer->report, &sentence);
    marey__buf_puts(line, "{\n  \"summary\": ");
    marey__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
    marey__buf_end(&sentence, line);
    marey__buf_puts(line, ",\n  \"iteration\": ");
    if (marey_table_n_rows(iteration) != 0)
        marey__json_row(line, iteration, 0);
    else
        marey__buf_puts(line, "null");
    marey__buf_puts(line, ",\n");
    for (size_t t = 0; t < MAREY__COMPARED_WARNINGS; t++)
        if (t != MAREY__COMPARED_ITERATION)
            MAREY_TRY(marey__json_named_rows(line, writer->report->tables[t], writer->lines.out));
    marey__json_last_texts(line, warnings);
    return marey__buf_to_stream(line, writer->lines.out);
}
