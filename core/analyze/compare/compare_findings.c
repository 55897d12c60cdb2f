/*
 * Findings of the diagnosis of both sides: which are gone, smaller, the same or new, and whether the predicted gain came
 * true. Gains are ratios of mean steps, as shares are of the time of all steps; without steps, of wall times.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"

static const double much = 2;        /* between shares, for one to be smaller or larger */
static const double tolerance = 1.1; /* of the measured gain beyond the predicted one */

static marey_status diagnose(const struct marey__comparison *c, enum marey__compare_side side,
                             marey_report **out)
{
    marey_recording **const list = marey__calloc(c->n_sources + 1, sizeof *list);
    size_t n = 0;
    MAREY__TRY_MEMORY(list != NULL);
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].side == side && c->sources[i].recording != NULL)
            list[n++] = c->sources[i].recording;
    const bool is_there = n != 0 && marey_report_is_there("diagnosis", list, n);
    const marey_status status =
        is_there ? marey_report_create("diagnosis", list, n, NULL, out) : MAREY_OK;
    marey__free(list);
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

static void report_end(marey_report *const *report)
{
    marey_report_destroy(*report);
}

static double mean_step(const marey_report *diagnosis)
{
    const marey_table *const steps = marey_report_table(diagnosis, "steps");
    return marey_table_n_rows(steps) != 0 ? (double)marey__cell_of(steps, 0, "mean_ns").as.u64 : 0;
}

/* How many times as fast B is; NAN: unknown. */
static double measure(const struct marey__comparison *c, marey_report *const *sides)
{
    const marey_table *const program = c->tables[MAREY__COMPARED_PROGRAM];
    const double a = mean_step(sides[MAREY__A]), b = mean_step(sides[MAREY__B]);
    if (a > 0 && b > 0)
        return a / b;
    if (a > 0 || b > 0 || marey_table_n_rows(program) == 0)
        return NAN;
    return marey__cell_of(program, 0, "a_ns").as.f64 / marey__cell_of(program, 0, "b_ns").as.f64;
}

static size_t find(const marey_table *findings, const char *id)
{
    size_t row = 0;
    while (row < marey_table_n_rows(findings) &&
           strcmp(marey__cell_of(findings, row, "id").as.text, id) != 0)
        row++;
    return row;
}

/* "augment (train.py:26)" */
static void put_where(marey_table *table, const marey_table *from, size_t row)
{
    const struct marey_cell function = marey__cell_of(from, row, "function"),
                            file = marey__cell_of(from, row, "file");
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    if (function.is_null || file.is_null) {
        marey_table_null(table);
        return;
    }
    marey__buf_printf(&text, "%s (%s:%u)", function.as.text, marey__base_name(file.as.text),
                      (unsigned)marey__cell_of(from, row, "line").as.u64);
    marey_table_text(table, text.failed ? "" : text.data, text.failed ? 0 : text.len);
}

static void put_real(marey_table *table, const marey_table *from, size_t row, const char *column)
{
    const bool is_there = row < marey_table_n_rows(from);
    const struct marey_cell cell =
        is_there ? marey__cell_of(from, row, column) : (struct marey_cell){.is_null = true};
    marey__put_real(table, cell.is_null ? NAN : cell.as.f64, !cell.is_null);
}

/* Rows past the last: that side does not have the finding. */
static void put_finding(marey_table *table, const marey_table *a, size_t row_a,
                        const marey_table *b, size_t row_b, double measured)
{
    const bool is_in_a = row_a < marey_table_n_rows(a), is_in_b = row_b < marey_table_n_rows(b);
    const double share_a = is_in_a ? marey__cell_of(a, row_a, "share").as.f64 : 0,
                 share_b = is_in_b ? marey__cell_of(b, row_b, "share").as.f64 : 0;
    const bool is_smaller = share_a > much * share_b;
    const marey_table *const from = is_in_a ? a : b;
    const size_t row = is_in_a ? row_a : row_b;
    marey__put_string(table, marey__cell_of(from, row, "id").as.text);
    marey__put_string(table, !is_in_a                   ? "new"
                             : !is_in_b                 ? "gone"
                             : is_smaller               ? "smaller"
                             : share_b > much * share_a ? "larger"
                                                        : "remains");
    put_where(table, from, row);
    put_real(table, a, row_a, "share");
    put_real(table, b, row_b, "share");
    put_real(table, a, row_a, "at_most");
    marey__put_real(table, measured, is_in_a && (!is_in_b || is_smaller));
}

marey_status marey__compare_findings(struct marey__comparison *c)
{
    marey_report *a MAREY__FINALLY(report_end) = NULL, *b MAREY__FINALLY(report_end) = NULL;
    marey_table *const table = c->tables[MAREY__COMPARED_FINDINGS];
    MAREY_TRY(diagnose(c, MAREY__A, &a));
    if (a != NULL)
        MAREY_TRY(diagnose(c, MAREY__B, &b));
    if (b == NULL)
        return MAREY_OK;
    const double measured = measure(c, (marey_report *[]){a, b});
    const marey_table *const of_a = marey_report_table(a, "findings"), *const of_b =
                                                                           marey_report_table(
                                                                               b, "findings");
    for (size_t row = 0; row < marey_table_n_rows(of_a); row++)
        put_finding(table, of_a, row, of_b, find(of_b, marey__cell_of(of_a, row, "id").as.text),
                    measured);
    for (size_t row = 0; row < marey_table_n_rows(of_b); row++)
        if (find(of_a, marey__cell_of(of_b, row, "id").as.text) == marey_table_n_rows(of_a))
            put_finding(table, of_a, SIZE_MAX, of_b, row, NAN);
    return MAREY_OK;
}

/* ---- as text ---- */

static void put_factor(struct marey__buf *line, double factor)
{
    marey__buf_printf(line, "%.*fx", factor < 1.1 ? 2 : factor < 10 ? 1 : 0, fmin(factor, 100));
}

static void put_gain(struct marey__buf *line, const marey_table *table, size_t row, size_t n_improved)
{
    const struct marey_cell predicted = marey__cell_of(table, row, "predicted"),
                            measured = marey__cell_of(table, row, "measured");
    if (measured.is_null || predicted.is_null)
        return;
    marey__buf_puts(line, "; predicted at most ");
    put_factor(line, predicted.as.f64);
    marey__buf_puts(line, " faster, measured ");
    put_factor(line, measured.as.f64);
    marey__buf_puts(line, n_improved > 1 ? " together with the others" : "");
    if (measured.as.f64 < 1.01)
        marey__buf_puts(line, ": no gain, something else takes the time now");
    else if (measured.as.f64 > predicted.as.f64 * tolerance && n_improved == 1)
        marey__buf_puts(line, ": more than that, so something else changed as well");
}

void marey__compare_finding_line(const marey_table *table, size_t row, struct marey__buf *line)
{
    const char *const change = marey__cell_of(table, row, "change").as.text;
    const struct marey_cell where = marey__cell_of(table, row, "where");
    const double a = marey__cell_of(table, row, "a_share").as.f64 * 100,
                 b = marey__cell_of(table, row, "b_share").as.f64 * 100;
    size_t n_improved = 0;
    for (size_t i = 0; i < marey_table_n_rows(table); i++)
        n_improved += !marey__cell_of(table, i, "measured").is_null;
    marey__buf_printf(line, "%s: %s", marey__cell_of(table, row, "id").as.text, change);
    if (strcmp(change, "new") == 0)
        marey__buf_printf(line, ", %.0f %% of the time", b);
    else if (strcmp(change, "gone") != 0)
        marey__buf_printf(line, ", %.0f %% of the time before and %.0f %% now", a, b);
    if (!where.is_null && strcmp(change, "gone") != 0)
        marey__buf_printf(line, ", %s", where.as.text);
    put_gain(line, table, row, n_improved);
}
