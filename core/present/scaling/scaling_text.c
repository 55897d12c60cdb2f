/* Scaling for a terminal, as Markdown and as JSON: sentences first, then tables, then notes. */
#include <stdio.h>
#include <string.h>

#include "present/draw/internal.h"
#include "present/scaling/internal.h"

struct answer {
    marey_scaling *scaling;
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
    MAREY_TRY(marey__scaling_drawn(answer->scaling, section, answer->options->width, &table));
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
        marey__scaling_sentence(&answer->lines.line, answer->scaling, &answer->list, s);
        marey__buf_puts(&answer->lines.line, marey__style(&answer->lines, PLAIN));
        MAREY_TRY(marey__lines_end(&answer->lines));
    }
    for (size_t section = 0; section < N_DRAWN; section++)
        MAREY_TRY(put_table(answer, section));
    return marey__lines_put_notes_apart(&answer->lines,
                                        marey_scaling_table(answer->scaling, "notes"));
}

/* ---- Markdown ---- */

static marey_status put_markdown_table(struct answer *answer, size_t section)
{
    marey_table *table = NULL;
    MAREY_TRY(marey__scaling_drawn(answer->scaling, section, 0, &table));
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
    marey__scaling_sentence(&sentence, answer->scaling, &answer->list, series);
    marey__buf_puts(&answer->lines.line, series == 0 ? "**" : "\n**");
    marey__markdown_put(&answer->lines.line, sentence.data, sentence.len);
    marey__buf_puts(&answer->lines.line, "**\n");
    answer->lines.line.failed |= sentence.failed;
    marey__buf_fini(&sentence);
}

static marey_status put_markdown(struct answer *answer)
{
    const marey_table *notes = marey_scaling_table(answer->scaling, "notes");
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
    static const char *const tables[] = {"points", "fits", "forecast", "best", "runs"};
    struct marey__buf *line = &answer->lines.line;
    marey__buf_puts(line, "{\n  \"summary\": [");
    for (size_t s = 0; s < answer->list.n; s++) {
        struct marey__buf sentence = {0};
        marey__scaling_sentence(&sentence, answer->scaling, &answer->list, s);
        marey__buf_puts(line, s == 0 ? "\n    " : ",\n    ");
        marey__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
        line->failed |= sentence.failed;
        marey__buf_fini(&sentence);
    }
    marey__buf_puts(line, answer->list.n == 0 ? "],\n" : "\n  ],\n");
    for (size_t t = 0; t < MAREY__COUNT_OF(tables); t++)
        MAREY_TRY(marey__json_named_rows(line, marey_scaling_table(answer->scaling, tables[t]),
                                         answer->lines.out));
    marey__json_last_texts(line, marey_scaling_table(answer->scaling, "notes"));
    return marey__buf_to_stream(line, answer->lines.out);
}

/* ---- all ---- */

typedef marey_status putter(struct answer *answer);

static marey_status put_answer(marey_scaling *scaling, const struct marey_text_options *options,
                               FILE *out, putter *put)
{
    static const struct marey_text_options defaults;
    struct answer answer = {
        .scaling = scaling, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->color;
    marey_status status = marey__scaling_list_init(&answer.list, scaling);
    if (status == MAREY_OK)
        status = put(&answer);
    marey__scaling_list_fini(&answer.list);
    return marey__lines_close(&answer.lines, status);
}

marey_status marey_scaling_text(marey_scaling *scaling, const struct marey_text_options *options,
                                FILE *out)
{
    return put_answer(scaling, options, out, put_text);
}

marey_status marey_scaling_markdown(marey_scaling *scaling, FILE *out)
{
    return put_answer(scaling, NULL, out, put_markdown);
}

marey_status marey_scaling_json(marey_scaling *scaling, FILE *out)
{
    return put_answer(scaling, NULL, out, put_json);
}
