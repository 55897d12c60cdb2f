/*
 * A diff as text or JSON: the first difference, the operation that introduces it, the tensors that differ, notes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "present/draw/internal.h"
#include "report/internal.h"
#include "tensor/diff/internal.h"

enum { PATH_WIDTH = 100 };

static void put_cell(struct marey__buf *line, const struct marey_cell *cell)
{
    marey__text_put(line, cell->as.text, cell->len, PATH_WIDTH);
}

/* ---- the summary line ---- */

static void put_where(struct marey__buf *line, const marey_diff *diff, const marey_table *first)
{
    const struct marey_cell rank = marey__cell_of(first, 0, "rank"),
                            phase = marey__cell_of(first, 0, "phase"),
                            path = marey__cell_of(first, 0, "path"),
                            index = marey__cell_of(first, 0, "index");
    marey__buf_printf(line, "step %llu, ",
                      (unsigned long long)marey__cell_of(first, 0, "step").as.u64);
    if (!rank.is_null && !diff->compares_ranks)
        marey__buf_printf(line, "rank %lld, ", (long long)rank.as.i64);
    if (!phase.is_null) {
        put_cell(line, &phase);
        marey__buf_puts(line, ", ");
    }
    if (strcmp(marey__cell_of(first, 0, "tree").as.text, "gradients") == 0)
        marey__buf_puts(line, "gradient ");
    put_cell(line, &path);
    if (!index.is_null && strcmp(index.as.text, "[]") != 0)
        put_cell(line, &index);
}

static void put_values(struct marey__buf *line, const marey_table *first)
{
    const struct marey_cell a = marey__cell_of(first, 0, "a"), b = marey__cell_of(first, 0, "b"),
                            bits_a = marey__cell_of(first, 0, "bits_a"),
                            bits_b = marey__cell_of(first, 0, "bits_b");
    if (a.is_null || b.is_null)
        return;
    marey__buf_puts(line, ": A has ");
    put_cell(line, &a);
    marey__buf_puts(line, ", B has ");
    put_cell(line, &b);
    if (!bits_a.is_null && !bits_b.is_null)
        marey__buf_printf(line, " (bits %s and %s)", bits_a.as.text, bits_b.as.text);
}

static void put_types(struct marey__buf *line, const struct marey__diff_result *result)
{
    marey__buf_printf(line, "%s in A, %s in B", marey_dtype_name(result->dtype_a),
                      marey_dtype_name(result->dtype_b));
}

static void put_first(struct marey__buf *line, const marey_diff *diff)
{
    const marey_table *first = diff->tables[MAREY__DIFF_FIRST];
    const struct marey__diff_result *result = marey__diff_first(diff);
    const struct marey_cell begin = marey__cell_of(first, 0, "block_begin"),
                            end = marey__cell_of(first, 0, "block_end");
    if (diff->compares_ranks)
        marey__buf_printf(line, "Rank %lld differs from the lowest rank, first at ",
                          (long long)marey__cell_of(first, 0, "rank").as.i64);
    else
        marey__buf_puts(line, "A and B differ first at ");
    put_where(line, diff, first);
    if (result->is_retyped) {
        marey__buf_puts(line, ", in its dtype (");
        put_types(line, result);
        marey__buf_puts(line, ")");
    }
    if (result->status == MAREY_DIFF_DTYPE) {
        marey__buf_puts(line, result->tolerance.bitwise
                                  ? ". Different dtypes have no bits in common to compare."
                                  : ".");
        return;
    }
    if (result->status == MAREY_DIFF_MISSING)
        marey__buf_puts(line, ", which only B has");
    else if (result->status == MAREY_DIFF_EXTRA)
        marey__buf_puts(line, ", which only A has");
    else if (result->status != MAREY_DIFF_DIFFERENT)
        marey__buf_printf(line, ", in its %s", marey_diff_status_name(result->status));
    if (!begin.is_null && !end.is_null)
        marey__buf_printf(line, ", among its elements %llu to %llu",
                          (unsigned long long)begin.as.u64, (unsigned long long)end.as.u64 - 1);
    put_values(line, first);
    marey__buf_puts(line, ".");
}

/* Appends the values whose types differ, unless the line names them already. */
static void put_retyped(struct marey__buf *line, const marey_diff *diff)
{
    const struct marey__diff_result *result = marey__diff_first(diff);
    if (diff->n_retyped == 0 || (result != NULL && result->is_retyped && diff->n_retyped == 1))
        return;
    if (result == NULL || !result->is_retyped)
        for (result = diff->results; !result->is_retyped;)
            result++;
    marey__buf_puts(line, " The dtype of ");
    marey__text_count_of(line, diff->n_retyped, "value");
    marey__buf_puts(line, " differs, first of ");
    marey__text_put(line, result->path, strlen(result->path), PATH_WIDTH);
    marey__buf_puts(line, ": ");
    put_types(line, result);
    marey__buf_puts(line, ".");
}

/* ---- nothing differs ---- */

static bool is_larger(const struct marey__diff_result *result,
                      const struct marey__diff_result *than, bool is_relative)
{
    if (!result->has_diff)
        return false;
    return than == NULL || (is_relative ? result->diff.rel.value > than->diff.rel.value
                                        : result->diff.abs.value > than->diff.abs.value);
}

static void put_largest(struct marey__buf *line, const marey_diff *diff, bool is_relative)
{
    const struct marey__diff_result *largest = NULL;
    for (size_t i = 0; i < diff->n; i++)
        if (is_larger(&diff->results[i], largest, is_relative))
            largest = &diff->results[i];
    if (largest == NULL)
        return;
    const struct marey__diff_spot *spot = largest->details == NULL ? NULL
                                          : is_relative            ? &largest->details->rel
                                                                   : &largest->details->abs;
    marey__buf_printf(line, "%s %.3g at step %llu, ",
                      is_relative ? ", relative" : ": largest absolute",
                      is_relative ? largest->diff.rel.value : largest->diff.abs.value,
                      (unsigned long long)largest->step);
    marey__text_put(line, largest->path, strlen(largest->path), PATH_WIDTH);
    if (spot != NULL && spot->index != UINT64_MAX && largest->details->n_dims != 0)
        marey__diff_index_put(line, largest->details, spot->index);
}

static void put_same(struct marey__buf *line, const marey_diff *diff)
{
    const size_t *n = diff->n_by_status;
    const bool is_close = n[MAREY_DIFF_CLOSE] != 0, is_noisy = n[MAREY_DIFF_NOISE] != 0;
    size_t n_by_stats = 0;
    for (size_t i = 0; i < diff->n; i++)
        n_by_stats += diff->results[i].basis == MAREY__BY_STATS;
    marey__buf_puts(line, is_close && is_noisy ? "Equal within tolerance and noise"
                          : is_close           ? "Equal within tolerance"
                          : is_noisy           ? "Equal within noise"
                                               : "No difference");
    if (marey_diff_is_partial(diff))
        marey__buf_puts(line, " among what could be compared");
    else if (n[MAREY_DIFF_MISSING] != 0 || n[MAREY_DIFF_EXTRA] != 0)
        marey__buf_puts(line, " among what both have");
    if (is_close || is_noisy) {
        put_largest(line, diff, false);
        put_largest(line, diff, true);
    }
    marey__buf_puts(line, ".");
    if (n_by_stats != 0) {
        marey__buf_puts(line, " Only statistics were kept of ");
        marey__text_count_of(line, n_by_stats, "value");
        marey__buf_puts(line, ".");
    }
}

static void put_sentence(struct marey__buf *line, const marey_diff *diff)
{
    if (marey_diff_is_same(diff))
        put_same(line, diff);
    else
        put_first(line, diff);
    put_retyped(line, diff);
}

static void put_part(struct marey__buf *line, const char **before, size_t n, const char *what)
{
    if (n == 0)
        return;
    marey__buf_printf(line, "%s%zu %s", *before, n, what);
    *before = ", ";
}

static void put_counts(struct marey__buf *line, const marey_diff *diff)
{
    const size_t *n = diff->n_by_status;
    const char *before = "";
    put_part(line, &before,
             n[MAREY_DIFF_DIFFERENT] + n[MAREY_DIFF_DTYPE] + n[MAREY_DIFF_SHAPE] + n[MAREY_DIFF_KIND],
             "different");
    put_part(line, &before, n[MAREY_DIFF_MISSING], "only in B");
    put_part(line, &before, n[MAREY_DIFF_EXTRA], "only in A");
    put_part(line, &before, n[MAREY_DIFF_UNKNOWN], "not known");
    put_part(line, &before, n[MAREY_DIFF_NOISE], "within the noise");
    put_part(line, &before, n[MAREY_DIFF_CLOSE], "within the tolerance");
    put_part(line, &before, n[MAREY_DIFF_SAME], "equal");
}

static void put_operation(struct marey__buf *line, const marey_table *operations)
{
    const struct marey_cell name = marey__cell_of(operations, 0, "operation"),
                            in = marey__cell_of(operations, 0, "error_in"),
                            out = marey__cell_of(operations, 0, "error_out"),
                            growth = marey__cell_of(operations, 0, "growth");
    marey__buf_puts(line, "The first operation whose inputs agree and whose outputs do not: ");
    if (name.len != 0)
        put_cell(line, &name);
    else
        marey__buf_puts(line, "(the whole model)");
    if (!growth.is_null && isfinite(growth.as.f64))
        marey__buf_printf(line, " (relative error %.2g in, %.2g out: %.3g times)", in.as.f64,
                          out.as.f64, growth.as.f64);
    else if (!out.is_null && isinf(out.as.f64))
        marey__buf_puts(line,
                        " (its outputs are not finite where the reference's are, or the reverse)");
    else if (!out.is_null)
        marey__buf_printf(line, " (its inputs are equal, its outputs have a relative error of %.2g)",
                          out.as.f64);
    marey__buf_puts(line, ".");
}

/* ---- the table ---- */

static const struct marey_column drawn_columns[] = {
    {"step", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"tensor", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"status", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"wrong", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"max abs", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"at", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"A", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"B", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"max rel", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"max ulp", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"rmse", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"cosine", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
};

static void copy_cell(marey_table *drawn, const marey_table *from, size_t row, const char *column)
{
    marey__table_copy_cell(drawn, from, row, (size_t)marey_table_find(from, column));
}

static void draw_wrong(marey_table *drawn, const marey_table *from, size_t row)
{
    const struct marey_cell wrong = marey__cell_of(from, row, "n_wrong"),
                            n = marey__cell_of(from, row, "n");
    char text[64];
    if (wrong.is_null || n.is_null) {
        marey_table_null(drawn);
        return;
    }
    const int len = snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)wrong.as.u64,
                             (unsigned long long)n.as.u64);
    marey_table_text(drawn, text, (size_t)len);
}

static void draw_path(marey_table *drawn, const marey_table *from, size_t row)
{
    const struct marey_cell path = marey__cell_of(from, row, "path"),
                            tree = marey__cell_of(from, row, "tree");
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&text, strcmp(tree.as.text, "gradients") == 0 ? "gradient " : "");
    marey__buf_put(&text, path.as.text, path.len);
    marey_table_text(drawn, text.data, text.failed ? 0 : text.len);
}

/* Adds both shapes, types or texts, for rows without a worst element. */
static void draw_two(marey_table *drawn, const marey_table *from, size_t row)
{
    static const char *const shapes[] = {"shape_a", "shape_b"}, *const types[] = {"dtype_a", "dtype_b"},
                             *const worst[] = {"max_abs_a", "max_abs_b"},
                             *const values[] = {"value_a", "value_b"};
    const char *const status = marey__cell_of(from, row, "status").as.text;
    const char *const *const two = strcmp(status, "shape") == 0   ? shapes
                                   : strcmp(status, "dtype") == 0 ? types
                                                                  : worst;
    for (size_t i = 0; i < 2; i++)
        copy_cell(drawn, from, row, marey__cell_of(from, row, two[i]).is_null ? values[i] : two[i]);
}

static void draw_row(marey_table *drawn, const marey_table *from, size_t row)
{
    copy_cell(drawn, from, row, "step");
    copy_cell(drawn, from, row, "rank");
    draw_path(drawn, from, row);
    copy_cell(drawn, from, row, "status");
    draw_wrong(drawn, from, row);
    copy_cell(drawn, from, row, "max_abs");
    copy_cell(drawn, from, row, "max_abs_index");
    draw_two(drawn, from, row);
    copy_cell(drawn, from, row, "max_rel");
    copy_cell(drawn, from, row, "max_ulp");
    copy_cell(drawn, from, row, "rmse");
    copy_cell(drawn, from, row, "cosine");
}

static bool has_ranks(const marey_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        if (diff->results[i].rank >= 0)
            return true;
    return false;
}

/* Rows of `tensors` are the results, in the same order. */
static marey_status fill_drawn(const marey_diff *diff, const struct marey_write_options *options,
                               marey_table *drawn, size_t *n_left)
{
    for (size_t row = 0; row < diff->n; row++) {
        if (!diff->shows_all && diff->results[row].status < MAREY_DIFF_UNKNOWN)
            continue;
        if (options->limit != 0 && marey_table_n_rows(drawn) == options->limit)
            ++*n_left;
        else
            draw_row(drawn, diff->tables[MAREY__DIFF_TENSORS], row);
    }
    return marey_table_status(drawn);
}

static marey_status draw_tensors(const marey_diff *diff, const struct marey_write_options *options,
                                 struct marey__lines *lines)
{
    static const char *const no_rank[] = {"rank", NULL};
    marey_table *drawn;
    size_t n_left = 0;
    MAREY_TRY(marey_table_create("differ", drawn_columns, MAREY__COUNT_OF(drawn_columns), &drawn));
    marey_status status = fill_drawn(diff, options, drawn, &n_left);
    const struct marey__text_view view = {.table = drawn,
                                          .options = options->text,
                                          .n_rows = marey_table_n_rows(drawn),
                                          .hide = has_ranks(diff) ? NULL : no_rank};
    if (status == MAREY_OK && view.n_rows != 0)
        status = marey__lines_end(lines);
    if (status == MAREY_OK && view.n_rows != 0)
        status = marey__text_draw(&view, lines->out);
    marey_table_destroy(drawn);
    if (status != MAREY_OK || n_left == 0)
        return status;
    marey__buf_printf(&lines->line, "... and %zu more; --limit 0 shows them", n_left);
    return marey__lines_end(lines);
}

/* ---- text ---- */

marey_status marey__diff_as_text(struct marey__report_writer *writer)
{
    const marey_diff *const diff = writer->report->data;
    struct marey__lines *const lines = &writer->lines;
    struct marey__buf *const line = &lines->line;
    marey__buf_puts(line, marey__style(lines, BOLD));
    put_sentence(line, diff);
    marey__buf_puts(line, marey__style(lines, PLAIN));
    MAREY_TRY(marey__lines_end(lines));
    if (marey_table_n_rows(diff->tables[MAREY__DIFF_OPERATIONS]) != 0) {
        put_operation(line, diff->tables[MAREY__DIFF_OPERATIONS]);
        MAREY_TRY(marey__lines_end(lines));
    }
    marey__text_count_of(line, diff->n, "value");
    marey__buf_puts(line, " in ");
    marey__text_count_of(line, diff->n_steps, diff->compares_ranks ? "pair" : "step");
    marey__buf_puts(line, diff->compares_ranks ? " of ranks: " : ": ");
    put_counts(line, diff);
    marey__buf_puts(line, ".");
    MAREY_TRY(marey__lines_end(lines));
    MAREY_TRY(draw_tensors(diff, writer->options, lines));
    return marey__lines_put_notes_apart(lines, diff->tables[MAREY__DIFF_WARNINGS]);
}

/* ---- JSON ---- */

/* Whether the text is a JSON number or boolean. */
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

marey_status marey__diff_as_json(struct marey__report_writer *writer)
{
    const marey_diff *const diff = writer->report->data;
    struct marey__lines *const lines = &writer->lines;
    const marey_table *operations = diff->tables[MAREY__DIFF_OPERATIONS];
    struct marey__buf *const line = &lines->line;
    struct marey__buf sentence MAREY__FINALLY(marey__buf_fini) = {0};
    put_sentence(&sentence, diff);
    marey__buf_printf(line, "{\n  \"same\": %s,\n  \"partial\": %s,\n  \"summary\": ",
                      marey_diff_is_same(diff) ? "true" : "false",
                      marey_diff_is_partial(diff) ? "true" : "false");
    marey__json_put(line, sentence.data, sentence.failed ? 0 : sentence.len);
    marey__buf_puts(line, ",\n  \"first\": ");
    put_json_first(line, diff->tables[MAREY__DIFF_FIRST]);
    marey__buf_puts(line, ",\n  \"operation\": ");
    if (marey_table_n_rows(operations) != 0)
        marey__json_row(line, operations, 0);
    else
        marey__buf_puts(line, "null");
    marey__buf_puts(line, ",\n");
    put_json_counts(line, diff);
    MAREY_TRY(marey__json_named_rows(line, diff->tables[MAREY__DIFF_TENSORS], lines->out));
    MAREY_TRY(marey__json_named_rows(line, operations, lines->out));
    MAREY_TRY(marey__json_named_rows(line, diff->tables[MAREY__DIFF_STEPS], lines->out));
    marey__json_last_texts(line, diff->tables[MAREY__DIFF_WARNINGS]);
    return marey__buf_to_stream(line, lines->out);
}
