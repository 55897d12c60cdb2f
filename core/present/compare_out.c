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

/* Of the iteration, or without iterations of the region that does most. */
void kymo__compare_sentence(kymo_comparison *c, struct kymo__buf *line)
{
    const bool has_iteration = kymo_table_n_rows(c->tables[KYMO__COMPARED_ITERATION]) != 0;
    const kymo_table *table =
        c->tables[has_iteration ? KYMO__COMPARED_ITERATION : KYMO__COMPARED_REGIONS];
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

static const struct kymo_column drawn_columns[] = {
    {"region", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"A", NULL, KYMO_TYPE_F64, KYMO_UNIT_NS},
    {"B", NULL, KYMO_TYPE_F64, KYMO_UNIT_NS},
    {"change", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"95 % interval", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"verdict", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"of the iteration", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};
enum { N_DRAWN = KYMO__COUNT_OF(drawn_columns) };

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

static size_t n_shown(const struct answer *answer)
{
    const size_t n = kymo_table_n_rows(table_of(answer, KYMO__COMPARED_REGIONS));
    return answer->options->limit != 0 && answer->options->limit < n ? answer->options->limit : n;
}

static kymo_status make_drawn(struct answer *answer, kymo_table **out)
{
    const kymo_table *whole = table_of(answer, KYMO__COMPARED_ITERATION),
                     *regions = table_of(answer, KYMO__COMPARED_REGIONS);
    struct kymo__buf text = {0};
    KYMO_TRY(kymo_table_create("compared", drawn_columns, N_DRAWN, out));
    if (kymo_table_n_rows(whole) != 0)
        add_row(*out, &text, whole, 0);
    for (size_t row = 0; row < n_shown(answer); row++)
        add_row(*out, &text, regions, row);
    const bool failed = text.failed;
    kymo__buf_fini(&text);
    return failed ? kymo__fail(KYMO_ENOMEM, "no memory to show the comparison")
                  : kymo_table_status(*out);
}

/* ---- what stands below ---- */

static kymo_status put_below(struct answer *answer, const char *bullet, const char *style,
                             const char *plain)
{
    const kymo_table *only = table_of(answer, KYMO__COMPARED_ONLY),
                     *warnings = table_of(answer, KYMO__COMPARED_WARNINGS);
    struct kymo__buf *line = &answer->line;
    const size_t n = kymo_table_n_rows(table_of(answer, KYMO__COMPARED_REGIONS));
    if (n_shown(answer) < n) {
        kymo__buf_printf(line, "%s... and %zu more; --all shows them", bullet, n - n_shown(answer));
        KYMO_TRY(end_line(answer));
    }
    for (size_t row = 0; row < kymo_table_n_rows(only) && row < MAX_ONLY; row++) {
        const struct kymo_cell name = kymo__cell_of(only, row, "name");
        kymo__buf_printf(line, "%sonly in %s: ", bullet, kymo__cell_of(only, row, "side").as.text);
        kymo__text_put(line, name.as.text, name.len, 60);
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

static kymo_status put_text(struct answer *answer, kymo_table **drawn)
{
    static const char *const no_iteration[] = {"of the iteration", NULL};
    const bool color = answer->options->text.color != 0;
    KYMO_TRY(make_drawn(answer, drawn));
    const struct kymo__text_view view = {
        .table = *drawn,
        .options = answer->options->text,
        .n_rows = kymo_table_n_rows(*drawn),
        .hide = kymo_table_n_rows(table_of(answer, KYMO__COMPARED_ITERATION)) == 0 ? no_iteration
                                                                                   : NULL,
    };
    kymo__buf_puts(&answer->line, color ? BOLD : "");
    kymo__compare_sentence(answer->c, &answer->line);
    kymo__buf_puts(&answer->line, color ? PLAIN "\n" : "\n");
    KYMO_TRY(end_line(answer));
    KYMO_TRY(kymo__text_draw(&view, answer->out));
    KYMO_TRY(end_line(answer));
    return put_below(answer, "", color ? YELLOW : "", color ? PLAIN : "");
}

/* ---- Markdown ---- */

static kymo_status put_markdown_row(struct answer *answer, const kymo_table *drawn, size_t row,
                                    size_t n_columns)
{
    struct kymo__buf *line = &answer->line;
    for (size_t i = 0; i < n_columns; i++) {
        const struct kymo_cell cell = kymo_table_cell(drawn, row, i);
        kymo__buf_puts(line, i == 0 ? "| " : " | ");
        if (cell.is_null)
            kymo__buf_puts(line, "-");
        else if (drawn_columns[i].type == KYMO_TYPE_F64)
            kymo__text_duration(line, cell.as.f64, answer->options->text.unit);
        else
            kymo__markdown_put(line, cell.as.text, cell.len);
    }
    kymo__buf_puts(line, " |");
    return end_line(answer);
}

static kymo_status put_markdown(struct answer *answer, kymo_table **drawn)
{
    struct kymo__buf *line = &answer->line;
    const size_t n_columns =
        kymo_table_n_rows(table_of(answer, KYMO__COMPARED_ITERATION)) == 0 ? N_DRAWN - 1 : N_DRAWN;
    KYMO_TRY(make_drawn(answer, drawn));
    kymo__buf_puts(line, "**");
    kymo__compare_sentence(answer->c, &answer->line);
    kymo__buf_puts(line, "**\n");
    KYMO_TRY(end_line(answer));
    for (size_t i = 0; i < n_columns; i++)
        kymo__buf_printf(line, "%s%s", i == 0 ? "| " : " | ", drawn_columns[i].name);
    kymo__buf_puts(line, " |\n");
    for (size_t i = 0; i < n_columns; i++)
        kymo__buf_puts(line, drawn_columns[i].type == KYMO_TYPE_TEXT ? "|---" : "|---:");
    kymo__buf_puts(line, "|");
    KYMO_TRY(end_line(answer));
    for (size_t row = 0; row < kymo_table_n_rows(*drawn); row++)
        KYMO_TRY(put_markdown_row(answer, *drawn, row, n_columns));
    KYMO_TRY(end_line(answer));
    return put_below(answer, "- ", "", "");
}

/* ---- JSON ---- */

static kymo_status put_json(struct answer *answer, kymo_table **unused)
{
    const kymo_table *warnings = table_of(answer, KYMO__COMPARED_WARNINGS),
                     *iteration = table_of(answer, KYMO__COMPARED_ITERATION);
    struct kymo__buf *line = &answer->line, sentence = {0};
    (void)unused;
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
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_ONLY), answer->out));
    KYMO_TRY(kymo__json_named_rows(line, table_of(answer, KYMO__COMPARED_RUNS), answer->out));
    kymo__json_last_texts(line, warnings);
    return kymo__buf_to_stream(line, answer->out);
}

/* ---- all of them ---- */

typedef kymo_status putter(struct answer *answer, kymo_table **drawn);

static kymo_status put_answer(kymo_comparison *c, const struct kymo_compare_text_options *options,
                              FILE *out, putter *put)
{
    static const struct kymo_compare_text_options defaults;
    struct answer answer = {.c = c, .options = options != NULL ? options : &defaults, .out = out};
    kymo_table *drawn = NULL;
    if (c->tables[KYMO__COMPARED_REGIONS] == NULL)
        return kymo__fail(KYMO_ESTATE, "nothing was compared yet");
    kymo_status status = put(&answer, &drawn);
    kymo_table_destroy(drawn);
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
