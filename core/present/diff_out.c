/*
 * The answer of a diff: where the two differ first, in a sentence, the operation that makes it, the tensors that differ,
 * and what to know of the comparison. diff_json_out.c gives the same to programs.
 */
#include <math.h>
#include <string.h>

#include "present/diff_out.h"
#include "present/style.h"

enum { PATH_WIDTH = 100 };

static kymo_status end_line(struct kymo__diff_answer *answer)
{
    kymo__buf_puts(&answer->line, "\n");
    return kymo__buf_to_stream(&answer->line, answer->out);
}

static void put_cell(struct kymo__buf *line, const struct kymo_cell *cell)
{
    kymo__text_put(line, cell->as.text, cell->len, PATH_WIDTH);
}

/* ---- the sentence ---- */

static void put_where(struct kymo__buf *line, const kymo_diff *diff, const kymo_table *first)
{
    const struct kymo_cell rank = kymo__cell_of(first, 0, "rank"),
                           phase = kymo__cell_of(first, 0, "phase"),
                           path = kymo__cell_of(first, 0, "path"),
                           index = kymo__cell_of(first, 0, "index");
    kymo__buf_printf(line, "step %llu, ", (unsigned long long)kymo__cell_of(first, 0, "step").as.u64);
    if (!rank.is_null && !diff->compares_ranks)
        kymo__buf_printf(line, "rank %lld, ", (long long)rank.as.i64);
    if (!phase.is_null) {
        put_cell(line, &phase);
        kymo__buf_puts(line, ", ");
    }
    if (strcmp(kymo__cell_of(first, 0, "tree").as.text, "gradients") == 0)
        kymo__buf_puts(line, "gradient ");
    put_cell(line, &path);
    if (!index.is_null && strcmp(index.as.text, "[]") != 0)
        put_cell(line, &index);
}

static void put_values(struct kymo__buf *line, const kymo_table *first)
{
    const struct kymo_cell a = kymo__cell_of(first, 0, "a"), b = kymo__cell_of(first, 0, "b"),
                           bits_a = kymo__cell_of(first, 0, "bits_a"),
                           bits_b = kymo__cell_of(first, 0, "bits_b");
    if (a.is_null || b.is_null)
        return;
    kymo__buf_puts(line, ": A has ");
    put_cell(line, &a);
    kymo__buf_puts(line, ", B has ");
    put_cell(line, &b);
    if (!bits_a.is_null && !bits_b.is_null)
        kymo__buf_printf(line, " (bits %s and %s)", bits_a.as.text, bits_b.as.text);
}

static void put_types(struct kymo__buf *line, const struct kymo__diff_result *result)
{
    kymo__buf_printf(line, "%s in A, %s in B", kymo_dtype_name(result->dtype_a),
                     kymo_dtype_name(result->dtype_b));
}

static void put_first(struct kymo__buf *line, const kymo_diff *diff)
{
    const kymo_table *first = diff->tables[KYMO__DIFF_FIRST];
    const struct kymo__diff_result *result = kymo__diff_first(diff);
    const struct kymo_cell begin = kymo__cell_of(first, 0, "block_begin"),
                           end = kymo__cell_of(first, 0, "block_end");
    if (diff->compares_ranks)
        kymo__buf_printf(line, "Rank %lld differs from the lowest rank, first at ",
                         (long long)kymo__cell_of(first, 0, "rank").as.i64);
    else
        kymo__buf_puts(line, "A and B differ first at ");
    put_where(line, diff, first);
    if (result->is_retyped) {
        kymo__buf_puts(line, ", in its dtype (");
        put_types(line, result);
        kymo__buf_puts(line, ")");
    }
    if (result->status == KYMO_DIFF_DTYPE) {
        kymo__buf_puts(line, result->tolerance.bitwise
                                 ? ". Different dtypes have no bits in common to compare."
                                 : ".");
        return;
    }
    if (result->status == KYMO_DIFF_MISSING)
        kymo__buf_puts(line, ", which only B has");
    else if (result->status == KYMO_DIFF_EXTRA)
        kymo__buf_puts(line, ", which only A has");
    else if (result->status != KYMO_DIFF_DIFFERENT)
        kymo__buf_printf(line, ", in its %s", kymo_diff_status_name(result->status));
    if (!begin.is_null && !end.is_null)
        kymo__buf_printf(line, ", among its elements %llu to %llu",
                         (unsigned long long)begin.as.u64, (unsigned long long)end.as.u64 - 1);
    put_values(line, first);
    kymo__buf_puts(line, ".");
}

/* The values whose types differ, where the sentence so far does not name them. */
static void put_retyped(struct kymo__buf *line, const kymo_diff *diff)
{
    const struct kymo__diff_result *result = kymo__diff_first(diff);
    if (diff->n_retyped == 0 || (result != NULL && result->is_retyped && diff->n_retyped == 1))
        return;
    if (result == NULL || !result->is_retyped)
        for (result = diff->results; !result->is_retyped;)
            result++;
    kymo__buf_puts(line, " The dtype of ");
    kymo__text_count_of(line, diff->n_retyped, "value");
    kymo__buf_puts(line, " differs, first of ");
    kymo__text_put(line, result->path, strlen(result->path), PATH_WIDTH);
    kymo__buf_puts(line, ": ");
    put_types(line, result);
    kymo__buf_puts(line, ".");
}

/* ---- nothing differs that counts ---- */

static bool is_larger(const struct kymo__diff_result *result, const struct kymo__diff_result *than,
                      bool is_relative)
{
    if (!result->has_diff)
        return false;
    return than == NULL || (is_relative ? result->diff.rel.value > than->diff.rel.value
                                        : result->diff.abs.value > than->diff.abs.value);
}

static void put_largest(struct kymo__buf *line, const kymo_diff *diff, bool is_relative)
{
    const struct kymo__diff_result *largest = NULL;
    for (size_t i = 0; i < diff->n; i++)
        if (is_larger(&diff->results[i], largest, is_relative))
            largest = &diff->results[i];
    if (largest == NULL)
        return;
    const struct kymo__diff_spot *spot = largest->details == NULL ? NULL
                                         : is_relative            ? &largest->details->rel
                                                                  : &largest->details->abs;
    kymo__buf_printf(line, "%s %.3g at step %llu, ",
                     is_relative ? ", relative" : ": largest absolute",
                     is_relative ? largest->diff.rel.value : largest->diff.abs.value,
                     (unsigned long long)largest->step);
    kymo__text_put(line, largest->path, strlen(largest->path), PATH_WIDTH);
    if (spot != NULL && spot->index != UINT64_MAX && largest->details->n_dims != 0)
        kymo__diff_index_put(line, largest->details, spot->index);
}

static void put_same(struct kymo__buf *line, const kymo_diff *diff)
{
    const size_t *n = diff->n_by_status;
    const bool is_close = n[KYMO_DIFF_CLOSE] != 0, is_noisy = n[KYMO_DIFF_NOISE] != 0;
    size_t n_by_stats = 0;
    for (size_t i = 0; i < diff->n; i++)
        n_by_stats += diff->results[i].basis == KYMO__BY_STATS;
    kymo__buf_puts(line, is_close && is_noisy ? "Equal within tolerance and noise"
                         : is_close           ? "Equal within tolerance"
                         : is_noisy           ? "Equal within noise"
                                              : "No difference");
    if (kymo_diff_is_partial(diff))
        kymo__buf_puts(line, " among what could be compared");
    else if (n[KYMO_DIFF_MISSING] != 0 || n[KYMO_DIFF_EXTRA] != 0)
        kymo__buf_puts(line, " among what both have");
    if (is_close || is_noisy) {
        put_largest(line, diff, false);
        put_largest(line, diff, true);
    }
    kymo__buf_puts(line, ".");
    if (n_by_stats != 0) {
        kymo__buf_puts(line, " Only statistics were kept of ");
        kymo__text_count_of(line, n_by_stats, "value");
        kymo__buf_puts(line, ".");
    }
}

void kymo__diff_sentence(struct kymo__buf *line, const kymo_diff *diff)
{
    if (kymo_diff_is_same(diff))
        put_same(line, diff);
    else
        put_first(line, diff);
    put_retyped(line, diff);
}

static void put_part(struct kymo__buf *line, const char **before, size_t n, const char *what)
{
    if (n == 0)
        return;
    kymo__buf_printf(line, "%s%zu %s", *before, n, what);
    *before = ", ";
}

static void put_counts(struct kymo__buf *line, const kymo_diff *diff)
{
    const size_t *n = diff->n_by_status;
    const char *before = "";
    put_part(line, &before,
             n[KYMO_DIFF_DIFFERENT] + n[KYMO_DIFF_DTYPE] + n[KYMO_DIFF_SHAPE] + n[KYMO_DIFF_KIND],
             "different");
    put_part(line, &before, n[KYMO_DIFF_MISSING], "only in B");
    put_part(line, &before, n[KYMO_DIFF_EXTRA], "only in A");
    put_part(line, &before, n[KYMO_DIFF_UNKNOWN], "not known");
    put_part(line, &before, n[KYMO_DIFF_NOISE], "within the noise");
    put_part(line, &before, n[KYMO_DIFF_CLOSE], "within the tolerance");
    put_part(line, &before, n[KYMO_DIFF_SAME], "equal");
}

static void put_operation(struct kymo__buf *line, const kymo_table *operations)
{
    const struct kymo_cell name = kymo__cell_of(operations, 0, "operation"),
                           in = kymo__cell_of(operations, 0, "error_in"),
                           out = kymo__cell_of(operations, 0, "error_out"),
                           growth = kymo__cell_of(operations, 0, "growth");
    kymo__buf_puts(line, "The first operation whose inputs agree and whose outputs do not: ");
    if (name.len != 0)
        put_cell(line, &name);
    else
        kymo__buf_puts(line, "(the whole model)");
    if (!growth.is_null && isfinite(growth.as.f64))
        kymo__buf_printf(line, " (relative error %.2g in, %.2g out: %.3g times)", in.as.f64,
                         out.as.f64, growth.as.f64);
    else if (!out.is_null && isinf(out.as.f64))
        kymo__buf_puts(line,
                       " (its outputs are not finite where the reference's are, or the reverse)");
    else if (!out.is_null)
        kymo__buf_printf(line, " (its inputs are equal, its outputs have a relative error of %.2g)",
                         out.as.f64);
    kymo__buf_puts(line, ".");
}

/* ---- the table ---- */

static const struct kymo_column drawn_columns[] = {
    {"step", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    {"tensor", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"status", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"wrong", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"max abs", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"at", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"A", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"B", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"max rel", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"max ulp", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"rmse", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"cosine", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
};

static void copy_text(kymo_table *drawn, const struct kymo_cell *cell)
{
    if (cell->is_null)
        kymo_table_null(drawn);
    else
        kymo_table_text(drawn, cell->as.text, cell->len);
}

static void copy_f64(kymo_table *drawn, const kymo_table *from, size_t row, const char *column)
{
    const struct kymo_cell cell = kymo__cell_of(from, row, column);
    if (cell.is_null)
        kymo_table_null(drawn);
    else
        kymo_table_f64(drawn, cell.as.f64);
}

static void draw_wrong(kymo_table *drawn, const kymo_table *from, size_t row)
{
    const struct kymo_cell wrong = kymo__cell_of(from, row, "n_wrong"),
                           n = kymo__cell_of(from, row, "n");
    char text[64];
    if (wrong.is_null || n.is_null) {
        kymo_table_null(drawn);
        return;
    }
    const int len = snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)wrong.as.u64,
                             (unsigned long long)n.as.u64);
    kymo_table_text(drawn, text, (size_t)len);
}

static void draw_path(kymo_table *drawn, const kymo_table *from, size_t row)
{
    const struct kymo_cell path = kymo__cell_of(from, row, "path"),
                           tree = kymo__cell_of(from, row, "tree");
    struct kymo__buf text = {0};
    kymo__buf_puts(&text, strcmp(tree.as.text, "gradients") == 0 ? "gradient " : "");
    kymo__buf_put(&text, path.as.text, path.len);
    kymo_table_text(drawn, text.data, text.failed ? 0 : text.len);
    kymo__buf_fini(&text);
}

/* The two shapes, types or texts, for rows without a worst element. */
static void draw_two(kymo_table *drawn, const kymo_table *from, size_t row)
{
    const struct kymo_cell status = kymo__cell_of(from, row, "status");
    const bool is_shape = strcmp(status.as.text, "shape") == 0,
               is_type = strcmp(status.as.text, "dtype") == 0;
    const char *const columns[][2] = {{"max_abs_a", "value_a"}, {"max_abs_b", "value_b"},
                                      {"shape_a", "value_a"},   {"shape_b", "value_b"},
                                      {"dtype_a", "value_a"},   {"dtype_b", "value_b"}};
    for (size_t i = 0; i < 2; i++) {
        const char *const *two = columns[(is_shape ? 2 : is_type ? 4 : 0) + i];
        struct kymo_cell cell = kymo__cell_of(from, row, two[0]);
        if (cell.is_null)
            cell = kymo__cell_of(from, row, two[1]);
        copy_text(drawn, &cell);
    }
}

static void draw_row(kymo_table *drawn, const kymo_table *from, size_t row)
{
    const struct kymo_cell rank = kymo__cell_of(from, row, "rank"),
                           status = kymo__cell_of(from, row, "status"),
                           at = kymo__cell_of(from, row, "max_abs_index");
    kymo_table_u64(drawn, kymo__cell_of(from, row, "step").as.u64);
    if (rank.is_null)
        kymo_table_null(drawn);
    else
        kymo_table_i64(drawn, rank.as.i64);
    draw_path(drawn, from, row);
    copy_text(drawn, &status);
    draw_wrong(drawn, from, row);
    copy_f64(drawn, from, row, "max_abs");
    copy_text(drawn, &at);
    draw_two(drawn, from, row);
    copy_f64(drawn, from, row, "max_rel");
    copy_f64(drawn, from, row, "max_ulp");
    copy_f64(drawn, from, row, "rmse");
    copy_f64(drawn, from, row, "cosine");
}

static bool is_shown(const struct kymo__diff_answer *answer, size_t row)
{
    return answer->options->all || answer->diff->results[row].status >= KYMO_DIFF_UNKNOWN;
}

static bool has_ranks(const kymo_diff *diff)
{
    for (size_t i = 0; i < diff->n; i++)
        if (diff->results[i].rank >= 0)
            return true;
    return false;
}

/* Rows of `tensors` are the results, in their order. */
static kymo_status draw_tensors(struct kymo__diff_answer *answer, kymo_table **drawn, size_t *n_left)
{
    static const char *const no_rank[] = {"rank", NULL};
    const kymo_diff *diff = answer->diff;
    const uint32_t limit = answer->options->limit;
    KYMO_TRY(kymo_table_create("differ", drawn_columns, KYMO__COUNT_OF(drawn_columns), drawn));
    for (size_t row = 0; row < diff->n; row++) {
        if (!is_shown(answer, row))
            continue;
        if (limit != 0 && kymo_table_n_rows(*drawn) == limit)
            ++*n_left;
        else
            draw_row(*drawn, diff->tables[KYMO__DIFF_TENSORS], row);
    }
    KYMO_TRY(kymo_table_status(*drawn));
    if (kymo_table_n_rows(*drawn) == 0)
        return KYMO_OK;
    KYMO_TRY(end_line(answer));
    const struct kymo__text_view view = {
        .table = *drawn,
        .options = answer->options->text,
        .n_rows = kymo_table_n_rows(*drawn),
        .hide = has_ranks(diff) ? NULL : no_rank,
    };
    return kymo__text_draw(&view, answer->out);
}

/* ---- text ---- */

static kymo_status put_notes(struct kymo__diff_answer *answer, size_t n_left)
{
    const kymo_table *warnings = answer->diff->tables[KYMO__DIFF_WARNINGS];
    const bool color = answer->options->text.color != 0;
    struct kymo__buf *line = &answer->line;
    if (n_left != 0) {
        kymo__buf_printf(line, "... and %zu more; --limit 0 shows them", n_left);
        KYMO_TRY(end_line(answer));
    }
    if (kymo_table_n_rows(warnings) != 0)
        KYMO_TRY(end_line(answer));
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++) {
        const struct kymo_cell text = kymo_table_cell(warnings, row, 0);
        kymo__buf_printf(line, "%snote:%s ", color ? YELLOW : "", color ? PLAIN : "");
        kymo__text_put(line, text.as.text, text.len, 0);
        KYMO_TRY(end_line(answer));
    }
    return KYMO_OK;
}

static kymo_status put_text(struct kymo__diff_answer *answer, kymo_table **drawn)
{
    const kymo_diff *diff = answer->diff;
    const bool color = answer->options->text.color != 0;
    struct kymo__buf *line = &answer->line;
    size_t n_left = 0;
    kymo__buf_puts(line, color ? BOLD : "");
    kymo__diff_sentence(line, diff);
    kymo__buf_puts(line, color ? PLAIN : "");
    KYMO_TRY(end_line(answer));
    if (kymo_table_n_rows(diff->tables[KYMO__DIFF_OPERATIONS]) != 0) {
        put_operation(line, diff->tables[KYMO__DIFF_OPERATIONS]);
        KYMO_TRY(end_line(answer));
    }
    kymo__text_count_of(line, diff->n, "value");
    kymo__buf_puts(line, " in ");
    kymo__text_count_of(line, diff->n_steps, diff->compares_ranks ? "pair" : "step");
    kymo__buf_puts(line, diff->compares_ranks ? " of ranks: " : ": ");
    put_counts(line, diff);
    kymo__buf_puts(line, ".");
    KYMO_TRY(end_line(answer));
    KYMO_TRY(draw_tensors(answer, drawn, &n_left));
    return put_notes(answer, n_left);
}

/* ---- both ---- */

static kymo_status put_text_of(struct kymo__diff_answer *answer)
{
    kymo_table *drawn = NULL;
    const kymo_status status = put_text(answer, &drawn);
    kymo_table_destroy(drawn);
    return status;
}

static kymo_status put_answer(kymo_diff *diff, const struct kymo_diff_text_options *options,
                              FILE *out, kymo_status (*put)(struct kymo__diff_answer *answer))
{
    static const struct kymo_diff_text_options defaults;
    struct kymo__diff_answer answer = {
        .diff = diff, .options = options != NULL ? options : &defaults, .out = out};
    kymo_status status = put(&answer);
    kymo__buf_fini(&answer.line);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the comparison");
    return status;
}

kymo_status kymo_diff_text(kymo_diff *diff, const struct kymo_diff_text_options *options, FILE *out)
{
    return put_answer(diff, options, out, put_text_of);
}

kymo_status kymo_diff_json(kymo_diff *diff, FILE *out)
{
    return put_answer(diff, NULL, out, kymo__diff_put_json);
}
