/* Scaling for a terminal, as Markdown and as JSON: sentences first, then tables, then notes. */
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"
#include "present/draw/internal.h"

struct answer {
    const marey_report *report;
    const struct marey_text_options *options;
    struct marey__scaling_list list;
    struct marey__lines lines;
};

/* Single runs are for CSV, JSON and the page. */
enum { N_DRAWN = MAREY__SCALING_SECTIONS - 1 };

/* ---- text ---- */

static marey_status put_table(struct answer *answer, size_t section)
{
    marey_table *table = NULL;
    MAREY_TRY(marey__scaling_drawn(answer->report, section, answer->options->width, &table));
    if (table == NULL)
        return MAREY_OK;
    marey__buf_printf(&answer->lines.line, "\n%s%s%s", marey__style(&answer->lines, DIM),
                      marey__scaling_heading(section), marey__style(&answer->lines, PLAIN));
    marey_status status = marey__lines_end(&answer->lines);
    const struct marey__text_view view = {
        .table = table, .options = *answer->options, .n_rows = marey_table_n_rows(table)};
    if (status == MAREY_OK)
        status = marey__text_draw(&view, answer->lines.out);
    marey_table_destroy(table);
    return status;
}

static marey_status put_text(struct answer *answer)
{
    for (size_t s = 0; s < answer->list.n; s++) {
        marey__buf_puts(&answer->lines.line, marey__style(&answer->lines, BOLD));
        marey__scaling_sentence(&answer->lines.line, answer->report, &answer->list, s);
        marey__buf_puts(&answer->lines.line, marey__style(&answer->lines, PLAIN));
        MAREY_TRY(marey__lines_end(&answer->lines));
    }
    for (size_t section = 0; section < N_DRAWN; section++)
        MAREY_TRY(put_table(answer, section));
    return marey__lines_put_notes_apart(&answer->lines,
                                        marey_report_table(answer->report, "notes"));
}

/* ---- Markdown ---- */

static marey_status put_markdown_table(struct answer *answer, size_t section)
{
    marey_table *table = NULL;
    MAREY_TRY(marey__scaling_drawn(answer->report, section, 0, &table));
    if (table == NULL)
        return MAREY_OK;
    marey__buf_printf(&answer->lines.line, "\n### %s\n\n", marey__scaling_heading(section));
    marey__markdown_table(&answer->lines.line, table);
    marey_table_destroy(table);
    return marey__buf_to_stream(&answer->lines.line, answer->lines.out);
}

static void put_markdown_sentence(struct answer *answer, size_t series)
{
    struct marey__buf sentence = {0};
    marey__scaling_sentence(&sentence, answer->report, &answer->list, series);
    marey__buf_puts(&answer->lines.line, series == 0 ? "**" : "\n**");
    marey__markdown_put(&answer->lines.line, sentence.data, sentence.len);
    marey__buf_puts(&answer->lines.line, "**\n");
    answer->lines.line.failed |= sentence.failed;
    marey__buf_fini(&sentence);
}

static marey_status put_markdown(struct answer *answer)
{
    const marey_table *notes = marey_report_table(answer->report, "notes");
    for (size_t s = 0; s < answer->list.n; s++)
        put_markdown_sentence(answer, s);
    for (size_t section = 0; section < N_DRAWN; section++)
        MAREY_TRY(put_markdown_table(answer, section));
    for (size_t row = 0; row < marey_table_n_rows(notes); row++) {
        const struct marey_cell text = marey_table_cell(notes, row, 0);
        marey__buf_puts(&answer->lines.line, row == 0 ? "\n- note: " : "- note: ");
        marey__markdown_put(&answer->lines.line, text.as.text, text.len);
        MAREY_TRY(marey__lines_end(&answer->lines));
    }
    return marey__buf_to_stream(&answer->lines.line, answer->lines.out);
}

/* ---- JSON ---- */

static marey_status put_json(struct answer *answer)
{
    struct marey__buf *line = &answer->lines.line;
    marey__buf_puts(line, "{\n  \"summary\": [");
    for (size_t s = 0; s < answer->list.n; s++) {
        struct marey__buf sentence = {0};
        marey__scaling_sentence(&sentence, answer->report, &answer->list, s);
        marey__buf_puts(line, s == 0 ? "\n    " : ",\n    ");
        marey__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
        line->failed |= sentence.failed;
        marey__buf_fini(&sentence);
    }
    marey__buf_puts(line, answer->list.n == 0 ? "],\n" : "\n  ],\n");
    for (size_t t = 0; t < MAREY__SCALING_NOTES; t++)
        MAREY_TRY(marey__json_named_rows(line, answer->report->tables[t], answer->lines.out));
    marey__json_last_texts(line, marey_report_table(answer->report, "notes"));
    return marey__buf_to_stream(line, answer->lines.out);
}

/* ---- all ---- */

typedef marey_status putter(struct answer *answer);

static marey_status put_answer(const marey_report *report, const struct marey_text_options *options,
                               FILE *out, putter *put)
{
    struct answer answer = {
        .report = report, .options = options, .lines = {.out = out, .has_color = options->color}};
    marey_status status = marey__scaling_list_init(&answer.list, report);
    if (status == MAREY_OK)
        status = put(&answer);
    marey__scaling_list_fini(&answer.list);
    return marey__lines_close(&answer.lines, status);
}

marey_status marey__scaling_text(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    return put_answer(report, &options->text, out, put_text);
}

marey_status marey__scaling_markdown(const marey_report *report,
                                     const struct marey_write_options *options, FILE *out)
{
    return put_answer(report, &options->text, out, put_markdown);
}

marey_status marey__scaling_json(const marey_report *report,
                                 const struct marey_write_options *options, FILE *out)
{
    return put_answer(report, &options->text, out, put_json);
}
