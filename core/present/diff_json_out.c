/* The answer of a diff as a JSON object. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "present/diff_out.h"

/* A number or truth as JSON has it; anything else as a text. */
static bool is_json_value(const struct kymo_cell *cell)
{
    char *end;
    if (strcmp(cell->as.text, "true") == 0 || strcmp(cell->as.text, "false") == 0)
        return true;
    const double value = strtod(cell->as.text, &end);
    return end != cell->as.text && *end == '\0' && isfinite(value) &&
           strspn(cell->as.text, "-+.0123456789eE") == cell->len;
}

static void put_first_cell(struct kymo__buf *line, const kymo_table *first, size_t column)
{
    const char *name = kymo_table_column(first, column)->name;
    const struct kymo_cell cell = kymo_table_cell(first, 0, column);
    const bool is_index = strcmp(name, "index") == 0,
               is_value = strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
    if (!cell.is_null && (is_index || (is_value && is_json_value(&cell))))
        kymo__buf_put(line, cell.as.text, cell.len);
    else
        kymo__json_cell(line, first, 0, column);
}

static void put_json_first(struct kymo__buf *line, const kymo_table *first)
{
    if (kymo_table_n_rows(first) == 0) {
        kymo__buf_puts(line, "null");
        return;
    }
    for (size_t c = 0; c < kymo_table_n_columns(first); c++) {
        kymo__buf_printf(line, "%s\"%s\": ", c == 0 ? "{" : ", ", kymo_table_column(first, c)->name);
        put_first_cell(line, first, c);
    }
    kymo__buf_puts(line, "}");
}

static void put_json_counts(struct kymo__buf *line, const kymo_diff *diff)
{
    kymo__buf_puts(line, "  \"counts\": {");
    for (int status = 0; status < KYMO_N_DIFF_STATUSES; status++)
        kymo__buf_printf(line, "%s\"%s\": %zu", status == 0 ? "" : ", ",
                         kymo_diff_status_name((enum kymo_diff_status)status),
                         diff->n_by_status[status]);
    kymo__buf_puts(line, "},\n");
}

static void put_json_sentence(struct kymo__buf *line, const kymo_diff *diff)
{
    struct kymo__buf sentence = {0};
    kymo__diff_sentence(&sentence, diff);
    kymo__buf_puts(line, "  \"summary\": ");
    kymo__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
    kymo__buf_puts(line, ",\n");
    kymo__buf_fini(&sentence);
}

kymo_status kymo__diff_put_json(struct kymo__diff_answer *answer)
{
    const kymo_diff *diff = answer->diff;
    const kymo_table *warnings = diff->tables[KYMO__DIFF_WARNINGS],
                     *operations = diff->tables[KYMO__DIFF_OPERATIONS];
    struct kymo__buf *line = &answer->line;
    kymo__buf_printf(line, "{\n  \"same\": %s,\n  \"partial\": %s,\n",
                     kymo_diff_is_same(diff) ? "true" : "false",
                     kymo_diff_is_partial(diff) ? "true" : "false");
    put_json_sentence(line, diff);
    kymo__buf_puts(line, "  \"first\": ");
    put_json_first(line, diff->tables[KYMO__DIFF_FIRST]);
    kymo__buf_puts(line, ",\n  \"operation\": ");
    if (kymo_table_n_rows(operations) != 0)
        kymo__json_row(line, operations, 0);
    else
        kymo__buf_puts(line, "null");
    kymo__buf_puts(line, ",\n");
    put_json_counts(line, diff);
    KYMO_TRY(kymo__json_named_rows(line, answer->diff->tables[KYMO__DIFF_TENSORS], answer->out));
    KYMO_TRY(kymo__json_named_rows(line, answer->diff->tables[KYMO__DIFF_OPERATIONS], answer->out));
    KYMO_TRY(kymo__json_named_rows(line, answer->diff->tables[KYMO__DIFF_STEPS], answer->out));
    kymo__json_last_texts(line, warnings);
    return kymo__buf_to_stream(line, answer->out);
}
