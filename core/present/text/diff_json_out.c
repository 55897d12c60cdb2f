/* The answer of a diff as a JSON object. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "present/text/internal.h"

/* A number or truth as JSON has it; anything else as a text. */
static bool is_json_value(const struct marey_cell *cell)
{
    char *end;
    if (strcmp(cell->as.text, "true") == 0 || strcmp(cell->as.text, "false") == 0)
        return true;
    const double value = strtod(cell->as.text, &end);
    return end != cell->as.text && *end == '\0' && isfinite(value) &&
           strspn(cell->as.text, "-+.0123456789eE") == cell->len;
}

static void put_first_cell(struct marey__buf *line, const marey_table *first, size_t column)
{
    const char *name = marey_table_column(first, column)->name;
    const struct marey_cell cell = marey_table_cell(first, 0, column);
    const bool is_index = strcmp(name, "index") == 0,
               is_value = strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
    if (!cell.is_null && (is_index || (is_value && is_json_value(&cell))))
        marey__buf_put(line, cell.as.text, cell.len);
    else
        marey__json_cell(line, first, 0, column);
}

static void put_json_first(struct marey__buf *line, const marey_table *first)
{
    if (marey_table_n_rows(first) == 0) {
        marey__buf_puts(line, "null");
        return;
    }
    for (size_t c = 0; c < marey_table_n_columns(first); c++) {
        marey__buf_printf(line, "%s\"%s\": ", c == 0 ? "{" : ", ",
                          marey_table_column(first, c)->name);
        put_first_cell(line, first, c);
    }
    marey__buf_puts(line, "}");
}

static void put_json_counts(struct marey__buf *line, const marey_diff *diff)
{
    marey__buf_puts(line, "  \"counts\": {");
    for (int status = 0; status < MAREY_N_DIFF_STATUSES; status++)
        marey__buf_printf(line, "%s\"%s\": %zu", status == 0 ? "" : ", ",
                          marey_diff_status_name((enum marey_diff_status)status),
                          diff->n_by_status[status]);
    marey__buf_puts(line, "},\n");
}

static void put_json_sentence(struct marey__buf *line, const marey_diff *diff)
{
    struct marey__buf sentence = {0};
    marey__diff_sentence(&sentence, diff);
    marey__buf_puts(line, "  \"summary\": ");
    marey__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
    marey__buf_puts(line, ",\n");
    marey__buf_fini(&sentence);
}

marey_status marey__diff_put_json(struct marey__diff_answer *answer)
{
    const marey_diff *diff = answer->diff;
    const marey_table *warnings = diff->tables[MAREY__DIFF_WARNINGS],
                      *operations = diff->tables[MAREY__DIFF_OPERATIONS];
    struct marey__buf *line = &answer->line;
    marey__buf_printf(line, "{\n  \"same\": %s,\n  \"partial\": %s,\n",
                      marey_diff_is_same(diff) ? "true" : "false",
                      marey_diff_is_partial(diff) ? "true" : "false");
    put_json_sentence(line, diff);
    marey__buf_puts(line, "  \"first\": ");
    put_json_first(line, diff->tables[MAREY__DIFF_FIRST]);
    marey__buf_puts(line, ",\n  \"operation\": ");
    if (marey_table_n_rows(operations) != 0)
        marey__json_row(line, operations, 0);
    else
        marey__buf_puts(line, "null");
    marey__buf_puts(line, ",\n");
    put_json_counts(line, diff);
    MAREY_TRY(marey__json_named_rows(line, answer->diff->tables[MAREY__DIFF_TENSORS], answer->out));
    MAREY_TRY(marey__json_named_rows(line, answer->diff->tables[MAREY__DIFF_OPERATIONS], answer->out));
    MAREY_TRY(marey__json_named_rows(line, answer->diff->tables[MAREY__DIFF_STEPS], answer->out));
    marey__json_last_texts(line, warnings);
    return marey__buf_to_stream(line, answer->out);
}
