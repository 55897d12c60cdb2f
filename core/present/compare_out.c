/*
 * The answer of a comparison: one sentence, the table, what to think of when reading it; for a terminal, for a pull
 * request as Markdown, and as JSON. The first two draw one table of texts.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare_internal.h"
#include "present/present_internal.h"
#include "present/style.h"

enum { MAX_ONLY = 10 };

struct answer {
    kymo_comparison *c;
    const struct kymo_compare_text_options *options;
    struct kymo__buf line;
    FILE *out;
};

static kymo_table *table_of(const struct answer *answer, enum kymo__comparison_table table)
{
    return answer->c->tables[table];
}

static kymo_status end_line(struct answer *answer)
{
    kymo__buf_puts(&answer->line, "\n");
    return kymo__buf_to_stream(&answer->line, answer->out);
}

/* ---- the sentence ---- */

/* Two digits that count, without a sign: "3.1 %", "0.042 %", "140 %". */
static void put_amount(struct kymo__buf *line, double percent)
{
    const double amount = fabs(percent);
    const int digits = amount >= 99.5 || amount == 0 ? 0
                       : amount >= 0.995             ? 1
                       : amount >= 0.0995            ? 2
                                                     : 3;
    kymo__buf_printf(line, "%.*f %%", digits, amount);
}

static void put_direction(struct kymo__buf *line, double percent)
{
    put_amount(line, percent);
    kymo__buf_puts(line, percent > 0 ? " slower" : " faster");
}

static void put_bounds(struct kymo__buf *line, double low, double high)
{
    const double least = fmin(fabs(low), fabs(high)), most = fmax(fabs(low), fabs(high));
    kymo__buf_puts(line, " (");
    put_amount(line, least);
    kymo__buf_puts(line, " to ");
    put_amount(line, most);
    kymo__buf_puts(line, ")");
}

static void put_unsure(struct kymo__buf *line, const kymo_table *table, size_t row)
{
    const struct kymo_cell low = kymo__cell_of(table, row, "low_percent"),
                           high = kymo__cell_of(table, row, "high_percent"),
                           reason = kymo__cell_of(table, row, "reason");
    const struct kymo_cell change = kymo__cell_of(table, row, "change_percent");
    if (low.is_null && !change.is_null) {
        kymo__buf_puts(line, "B was ");
        put_direction(line, change.as.f64);
        kymo__buf_puts(line, ", which may be chance; ");
        kymo__buf_put(line, reason.as.text, reason.len);
        return;
    }
    kymo__buf_puts(line, "It cannot be told whether B is faster");
    if (!low.is_null && !high.is_null) {
        kymo__buf_puts(line, ": it may be ");
        put_direction(line, low.as.f64);
        kymo__buf_puts(line, " or ");
        put_direction(line, high.as.f64);
    }
    kymo__buf_puts(line, "; ");
    kymo__buf_put(line, reason.as.text, reason.len);
}

/* What the sentence is about: the first row of the first of these that has any. */
static const kymo_table *table_of_sentence(const kymo_comparison *c)
{
    static const enum kymo__comparison_table order[] = {
        KYMO__COMPARED_ITERATION, KYMO__COMPARED_REGIONS, KYMO__COMPARED_PROGRAM,
        KYMO__COMPARED_FUNCTIONS};
    size_t i = 0;
    while (i + 1 < KYMO__COUNT_OF(order) && kymo_table_n_rows(c->tables[order[i]]) == 0)
        i++;
    return c->tables[order[i]];
}

/* About the iteration; without iterations, about the largest region; without regions, about the wall time. */
void kymo__compare_sentence(kymo_comparison *c, struct kymo__buf *line)
{
    const bool has_iteration = kymo_table_n_rows(c->tables[KYMO__COMPARED_ITERATION]) != 0;
    const kymo_table *table = table_of_sentence(c);
    const struct kymo_cell name = kymo__cell_of(table, 0, "name"),
                           verdict = kymo__cell_of(table, 0, "verdict"),
                           low = kymo__cell_of(table, 0, "low_percent"),
                           high = kymo__cell_of(table, 0, "high_percent");
    if (!has_iteration) {
        kymo__text_put(line, name.as.text, name.len, 60);
        kymo__buf_puts(line, ": ");
    }
    if (strcmp(verdict.as.text, "unsure") == 0) {
        put_unsure(line, table, 0);
    } else if (strcmp(verdict.as.text, "same") == 0) {
        kymo__buf_puts(line, "No difference shown: B is within ");
        put_amount(line, fmax(fabs(low.as.f64), fabs(high.as.f64)));
        kymo__buf_puts(line, " of A");
    } else {
        kymo__buf_puts(line, "B is ");
        put_direction(line, kymo__cell_of(table, 0, "change_percent").as.f64);
        put_bounds(line, low.as.f64, high.as.f64);
    }
    kymo__buf_puts(line, ".");
}

/* ---- the table, as texts ---- */

#define DRAWN(of, whole)                                                                           \
    {                                                                                              \
        {of, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}, {"A", NULL, KYMO_TYPE_F64, KYMO_UNIT_NS},      \
            {"B", NULL, KYMO_TYPE_F64, KYMO_UNIT_NS},                                              \
            {"change", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},                                      \
            {"95 % interval", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},                               \
            {"verdict", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},                                     \
        {                                                                                          \
            whole, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                            \
        }                                                                                          \
    }
static const struct kymo_column regions_drawn[] = DRAWN("region", "of the iteration"),
                                program_drawn[] = DRAWN("program", "of the program"),
                                functions_drawn[] = DRAWN("function (self time)", "of the program");
enum { N_DRAWN = KYMO__COUNT_OF(regions_drawn) };

static void put_signed(struct kymo__buf *line, double percent)
{
    kymo__buf_puts(line, percent < 0 ? "-" : percent > 0 ? "+" : "");
    put_amount(line, percent);
}

static void add_percent(kymo_table *drawn, struct kymo__buf *text, const struct kymo_cell *cell)
{
    text->len = 0;
    if (cell->is_null)
        kymo__buf_puts(text, "-");
    else
        put_signed(text, cell->as.f64);
    kymo_table_text(drawn, text->data, text->failed ? 0 : text->len);
}

static void add_interval(kymo_table *drawn, struct kymo__buf *text, const kymo_table *from, size_t row)
{
    const struct kymo_cell low = kymo__cell_of(from, row, "low_percent"),
                           high = kymo__cell_of(from, row, "high_percent");
    text->len = 0;
    if (low.is_null || high.is_null) {
        kymo__buf_puts(text, "-");
    } else {
        put_signed(text, low.as.f64);
        kymo__buf_puts(text, " to ");
        put_signed(text, high.as.f64);
    }
    kymo_table_text(drawn, text->data, text->failed ? 0 : text->len);
}

static void add_time(kymo_table *drawn, const struct kymo_cell *cell)
{
    if (cell->is_null)
        kymo_table_null(drawn);
    else
        kymo_table_f64(drawn, cell->as.f64);
}

static void add_row(kymo_table *drawn, struct kymo__buf *text, const kymo_table *from, size_t row)
{
    const struct kymo_cell name = kymo__cell_of(from, row, "name"),
                           a = kymo__cell_of(from, row, "a_ns"),
                           b = kymo__cell_of(from, row, "b_ns"),
                           change = kymo__cell_of(from, row, "change_percent"),
                           verdict = kymo__cell_of(from, row, "verdict"),
                           effect = kymo__cell_of(from, row, "effect_percent");
    kymo_table_text(drawn, name.as.text, name.len);
    add_time(drawn, &a);
    add_time(drawn, &b);
    add_percent(drawn, text, &change);
    add_interval(drawn, text, from, row);
    kymo_table_text(drawn, verdict.as.text, verdict.len);
    add_percent(drawn, text, &effect);
}

/* Tables that are drawn as one: the rows of `first`, if any, above those of `table`. */
struct drawing {
    const struct kymo_column *columns;
    enum kymo__comparison_table first, table;
    size_t n_columns; /* without the last where nothing is known of it */
    kymo_table *drawn;
};

static size_t n_shown(const struct answer *answer, enum kymo__comparison_table table)
{
    const size_t n = kymo_table_n_rows(table_of(answer, table));
    return answer->options->limit != 0 && answer->options->limit < n ? answer->options->limit : n;
}

static kymo_status fill_drawing(struct answer *answer, struct drawing *drawing)
{
    const kymo_table *const first = table_of(answer, drawing->first), *const table = table_of(
                                                                          answer, drawing->table);
    struct kymo__buf text = {0};
    KYMO_TRY(kymo_table_create("compared", drawing->columns, N_DRAWN, &drawing->drawn));
    if (drawing->first != drawing->table && kymo_table_n_rows(first) != 0)
        add_row(drawing->drawn, &text, first, 0);
    for (size_t row = 0; row < n_shown(answer, drawing->table); row++)
        add_row(drawing->drawn, &text, table, row);
    const bool failed = text.failed;
    kymo__buf_fini(&text);
    return failed ? kymo__fail(KYMO_ENOMEM, "no memory to show the comparison")
                  : kymo_table_status(drawing->drawn);
}

typedef kymo_status drawer(struct answer *answer, const struct drawing *drawing);

/* Each table that has rows, with an empty line after it. */
static kymo_status draw_tables(struct answer *answer, drawer *draw)
{
    const bool has_iteration = kymo_table_n_rows(table_of(answer, KYMO__COMPARED_ITERATION)) != 0,
               has_wall = kymo_table_n_rows(table_of(answer, KYMO__COMPARED_PROGRAM)) != 0;
    struct drawing drawings[] = {
        {regions_drawn, KYMO__COMPARED_ITERATION, KYMO__COMPARED_REGIONS, N_DRAWN - !has_iteration,
         NULL},
        {program_drawn, KYMO__COMPARED_PROGRAM, KYMO__COMPARED_PROGRAM, N_DRAWN - 1, NULL},
        {functions_drawn, KYMO__COMPARED_FUNCTIONS, KYMO__COMPARED_FUNCTIONS, N_DRAWN - !has_wall,
         NULL},
    };
    kymo_status status = KYMO_OK;
    for (size_t i = 0; i < KYMO__COUNT_OF(drawings) && status == KYMO_OK; i++) {
        status = fill_drawing(answer, &drawings[i]);
        if (status == KYMO_OK && kymo_table_n_rows(drawings[i].drawn) != 0) {
            status = draw(answer, &drawings[i]);
            if (status == KYMO_OK)
                status = end_line(answer);
        }
        kymo_table_destroy(drawings[i].drawn);
    }
    return status;
}

/* ---- what stands below ---- */

static kymo_status put_below(struct answer *answer, const char *bullet, const char *style,
                             const char *plain)
{
    const kymo_table *only = table_of(answer, KYMO__COMPARED_ONLY),
                     *warnings = table_of(answer, KYMO__COMPARED_WARNINGS);
    struct kymo__buf *line = &answer->line;
    static const enum kymo__comparison_table long_ones[] = {KYMO__COMPARED_REGIONS,
                                                            KYMO__COMPARED_FUNCTIONS};
    for (size_t i = 0; i < KYMO__COUNT_OF(long_ones); i++) {
        const size_t n = kymo_table_n_rows(table_of(answer, long_ones[i])),
                     shown = n_shown(answer, long_ones[i]);
        if (shown == n)
            continue;
        kymo__buf_printf(line, "%s... and %zu more%s; --all shows them", bullet, n - shown,
                         i == 1 ? " functions" : "");
        KYMO_TRY(end_line(answer));
    }
    for (size_t row = 0; row < kymo_table_n_rows(only) && row < MAX_ONLY; row++) {
        const struct kymo_cell name = kymo__cell_of(only, row, "name");
        kymo__buf_printf(line, "%sonly in %s: ", bullet, kymo__cell_of(only, row, "side").as.text);
        kymo__text_put(line, name.as.text, name.len, 60);
        kymo__buf_puts(line, ", ");
        kymo__text_duration(line, kymo__cell_of(only, row, "time_ns").as.f64,
                            answer->options->text.unit);
        KYMO_TRY(end_line(answer));
    }
    if (kymo_table_n_rows(only) > MAX_ONLY) {
        kymo__buf_printf(line, "%s... and %zu more on one side only", bullet,
                         kymo_table_n_rows(only) - MAX_ONLY);
        KYMO_TRY(end_line(answer));
    }
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++) {
        const struct kymo_cell text = kymo_table_cell(warnings, row, 0);
        kymo__buf_printf(line, "%s%snote:%s ", bullet, style, plain);
        kymo__text_put(line, text.as.text, text.len, 0);
        KYMO_TRY(end_line(answer));
    }
    return KYMO_OK;
}

/* ---- text ---- */

static kymo_status draw_text(struct answer *answer, const struct drawing *drawing)
{
    const char *const last[] = {drawing->columns[N_DRAWN - 1].name, NULL};
    const struct kymo__text_view view = {
        .table = drawing->drawn,
        .options = answer->options->text,
        .n_rows = kymo_table_n_rows(drawing->drawn),
        .hide = drawing->n_columns < N_DRAWN ? last : NULL,
    };
    return kymo__text_draw(&view, answer->out);
}

static kymo_status put_text(struct answer *answer)
{
    const bool color = answer->options->text.color != 0;
    kymo__buf_puts(&answer->line, color ? BOLD : "");
    kymo__compare_sentence(answer->c, &answer->line);
    kymo__buf_puts(&answer->line, color ? PLAIN "\n" : "\n");
    KYMO_TRY(end_line(answer));
    KYMO_TRY(draw_tables(answer, draw_text));
    return put_below(answer, "", color ? YELLOW : "", color ? PLAIN : "");
}

/* ---- Markdown ---- */

static kymo_status put_markdown_row(struct answer *answer, const struct drawing *drawing, size_t row)
{
    struct kymo__buf *line = &answer->line;
    for (size_t i = 0; i < drawing->n_columns; i++) {
        const struct kymo_cell cell = kymo_table_cell(drawing->drawn, row, i);
        kymo__buf_puts(line, i == 0 ? "| " : " | ");
        if (cell.is_null)
            kymo__buf_puts(line, "-");
        else if (drawing->columns[i].type == KYMO_TYPE_F64)
            kymo__text_duration(line, cell.as.f64, answer->options->text.unit);
        else
            kymo__markdown_put(line, cell.as.text, cell.len);
    }
    kymo__buf_puts(line, " |");
    return end_line(answer);
}

static kymo_status draw_markdown(struct answer *answer, const struct drawing *drawing)
{
    struct kymo__buf *line = &answer->line;
    for (size_t i = 0; i < drawing->n_columns; i++)
        kymo__buf_printf(line, "%s%s", i == 0 ? "| " : " | ", drawing->columns[i].name);
    kymo__buf_puts(line, " |\n");
    for (size_t i = 0; i < drawing->n_columns; i++)
        kymo__buf_puts(line, drawing->columns[i].type == KYMO_TYPE_TEXT ? "|---" : "|---:");
    kymo__buf_puts(line, "|");
    KYMO_TRY(end_line(answer));
    for (size_t row = 0; row < kymo_table_n_rows(drawing->drawn); row++)
        KYMO_TRY(put_markdown_row(answer, drawing, row));
    return KYMO_OK;
}

static kymo_status put_markdown(struct answer *answer)
{
    kymo__buf_puts(&answer->line, "**");
    kymo__compare_sentence(answer->c, &answer->line);
    kymo__buf_puts(&answer->line, "**\n");
    KYMO_TRY(end_line(answer));
    KYMO_TRY(draw_tables(answer, draw_markdown));
    return put_below(answer, "- ", "", "");
}

/* ---- JSON ---- */

static kymo_status put_json(struct answer *answer)
{
    const kymo_table *warnings = table_of(answer, KYMO__COMPARED_WARNINGS),
                     *iteration = table_of(answer, KYMO__COMPARED_ITERATION);
    struct kymo__buf *line = &answer->line, sentence = {0};
    kymo__compare_sentence(answer->c, &answer->line);
    sentence = *line;
    *line = (struct kymo__buf){0};
    kymo__buf_puts(line, "{\n  \"summary\": ");
    kymo__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
    kymo__buf_fini(&sentence);
    kymo__buf_puts(line, ",\n");
    kymo__buf_puts(line, "  \"iteration\": ");
    if (kymo_table_n_rows(iteration) != 0)
        kymo__json_row(line, iteration, 0);
    else
        kymo__buf_puts(line, "null");
    kymo__buf_puts(line, ",\n");
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_REGIONS), answer->out));
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_PROGRAM), answer->out));
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_FUNCTIONS), answer->out));
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_ONLY), answer->out));
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_RUNS), answer->out));
    kymo__json_last_texts(line, warnings);
    return kymo__buf_to_stream(line, answer->out);
}

/* ---- all of them ---- */

typedef kymo_status putter(struct answer *answer);

static kymo_status put_answer(kymo_comparison *c, const struct kymo_compare_text_options *options,
                              FILE *out, putter *put)
{
    static const struct kymo_compare_text_options defaults;
    struct answer answer = {.c = c, .options = options != NULL ? options : &defaults, .out = out};
    if (c->tables[KYMO__COMPARED_REGIONS] == NULL)
        return kymo__fail(KYMO_ESTATE, "nothing was compared yet");
    kymo_status status = put(&answer);
    kymo__buf_fini(&answer.line);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the comparison");
    return status;
}

kymo_status kymo_compare_text(kymo_comparison *c, const struct kymo_compare_text_options *options,
                              FILE *out)
{
    return put_answer(c, options, out, put_text);
}

kymo_status kymo_compare_markdown(kymo_comparison *c,
                                  const struct kymo_compare_text_options *options, FILE *out)
{
    return put_answer(c, options, out, put_markdown);
}

kymo_status kymo_compare_json(kymo_comparison *c, FILE *out)
{
    return put_answer(c, NULL, out, put_json);
}
