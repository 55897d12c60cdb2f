/* Scaling for a terminal, as Markdown and as JSON: sentences first, then tables, then notes. */
#include <stdio.h>
#include <string.h>

#include "present/scaling_out.h"
#include "present/style.h"

struct answer {
    kymo_scaling *scaling;
    const struct kymo_text_options *options;
    struct kymo__scaling_list list;
    struct kymo__lines lines;
};

/* Single runs are for CSV, JSON and the page. */
enum { N_DRAWN = KYMO__SCALING_SECTIONS - 1 };

/* ---- text ---- */

static kymo_status put_table(struct answer *answer, size_t section)
{
    kymo_table *table = NULL;
    KYMO_TRY(kymo__scaling_drawn(answer->scaling, section, answer->options->width, &table));
    if (table == NULL)
        return KYMO_OK;
    kymo__buf_printf(&answer->lines.line, "\n%s%s%s", kymo__style(&answer->lines, DIM),
                     kymo__scaling_heading(section), kymo__style(&answer->lines, PLAIN));
    kymo_status status = kymo__lines_end(&answer->lines);
    const struct kymo__text_view view = {
        .table = table, .options = *answer->options, .n_rows = kymo_table_n_rows(table)};
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, answer->lines.out);
    kymo_table_destroy(table);
    return status;
}

static kymo_status put_text(struct answer *answer)
{
    for (size_t s = 0; s < answer->list.n; s++) {
        kymo__buf_puts(&answer->lines.line, kymo__style(&answer->lines, BOLD));
        kymo__scaling_sentence(&answer->lines.line, answer->scaling, &answer->list, s);
        kymo__buf_puts(&answer->lines.line, kymo__style(&answer->lines, PLAIN));
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    for (size_t section = 0; section < N_DRAWN; section++)
        KYMO_TRY(put_table(answer, section));
    return kymo__lines_put_notes_apart(&answer->lines,
                                       kymo_scaling_table(answer->scaling, "notes"));
}

/* ---- Markdown ---- */

static kymo_status put_markdown_table(struct answer *answer, size_t section)
{
    kymo_table *table = NULL;
    KYMO_TRY(kymo__scaling_drawn(answer->scaling, section, 0, &table));
    if (table == NULL)
        return KYMO_OK;
    kymo__buf_printf(&answer->lines.line, "\n### %s\n\n", kymo__scaling_heading(section));
    kymo__markdown_table(&answer->lines.line, table);
    kymo_table_destroy(table);
    return kymo__buf_to_stream(&answer->lines.line, answer->lines.out);
}

static void put_markdown_sentence(struct answer *answer, size_t series)
{
    struct kymo__buf sentence = {0};
    kymo__scaling_sentence(&sentence, answer->scaling, &answer->list, series);
    kymo__buf_puts(&answer->lines.line, series == 0 ? "**" : "\n**");
    kymo__markdown_put(&answer->lines.line, sentence.data, sentence.len);
    kymo__buf_puts(&answer->lines.line, "**\n");
    answer->lines.line.failed |= sentence.failed;
    kymo__buf_fini(&sentence);
}

static kymo_status put_markdown(struct answer *answer)
{
    const kymo_table *notes = kymo_scaling_table(answer->scaling, "notes");
    for (size_t s = 0; s < answer->list.n; s++)
        put_markdown_sentence(answer, s);
    for (size_t section = 0; section < N_DRAWN; section++)
        KYMO_TRY(put_markdown_table(answer, section));
    for (size_t row = 0; row < kymo_table_n_rows(notes); row++) {
        const struct kymo_cell text = kymo_table_cell(notes, row, 0);
        kymo__buf_puts(&answer->lines.line, row == 0 ? "\n- note: " : "- note: ");
        kymo__markdown_put(&answer->lines.line, text.as.text, text.len);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return kymo__buf_to_stream(&answer->lines.line, answer->lines.out);
}

/* ---- JSON ---- */

static kymo_status put_json(struct answer *answer)
{
    static const char *const tables[] = {"points", "fits", "forecast", "best", "runs"};
    struct kymo__buf *line = &answer->lines.line;
    kymo__buf_puts(line, "{\n  \"summary\": [");
    for (size_t s = 0; s < answer->list.n; s++) {
        struct kymo__buf sentence = {0};
        kymo__scaling_sentence(&sentence, answer->scaling, &answer->list, s);
        kymo__buf_puts(line, s == 0 ? "\n    " : ",\n    ");
        kymo__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
        line->failed |= sentence.failed;
        kymo__buf_fini(&sentence);
    }
    kymo__buf_puts(line, answer->list.n == 0 ? "],\n" : "\n  ],\n");
    for (size_t t = 0; t < KYMO__COUNT_OF(tables); t++)
        KYMO_TRY(kymo__json_named_rows(line, kymo_scaling_table(answer->scaling, tables[t]),
                                       answer->lines.out));
    kymo__json_last_texts(line, kymo_scaling_table(answer->scaling, "notes"));
    return kymo__buf_to_stream(line, answer->lines.out);
}

/* ---- all ---- */

typedef kymo_status putter(struct answer *answer);

static kymo_status put_answer(kymo_scaling *scaling, const struct kymo_text_options *options,
                              FILE *out, putter *put)
{
    static const struct kymo_text_options defaults;
    struct answer answer = {
        .scaling = scaling, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->color;
    kymo_status status = kymo__scaling_list_init(&answer.list, scaling);
    if (status == KYMO_OK)
        status = put(&answer);
    kymo__scaling_list_fini(&answer.list);
    return kymo__lines_close(&answer.lines, status);
}

kymo_status kymo_scaling_text(kymo_scaling *scaling, const struct kymo_text_options *options,
                              FILE *out)
{
    return put_answer(scaling, options, out, put_text);
}

kymo_status kymo_scaling_markdown(kymo_scaling *scaling, FILE *out)
{
    return put_answer(scaling, NULL, out, put_markdown);
}

kymo_status kymo_scaling_json(kymo_scaling *scaling, FILE *out)
{
    return put_answer(scaling, NULL, out, put_json);
}
