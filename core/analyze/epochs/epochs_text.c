/* Epochs for a terminal. The first lines are the result; tables follow, without columns that have no values. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/epochs/internal.h"
#include "present/draw/internal.h"

static void put_time(struct marey__buf *line, const marey_table *table, size_t row, const char *column)
{
    marey__text_duration(line, (double)marey__cell_of(table, row, column).as.u64, NULL);
}

/* ---- the first lines ---- */

static bool has_runs(const marey_table *averages)
{
    const size_t n = marey_table_n_rows(averages);
    return n != 0 && marey__cell_of(averages, n - 1, "run").as.u64 > 1;
}

static uint64_t epochs_of_run(const struct marey__report_writer *writer, uint64_t run)
{
    const marey_table *epochs = writer->report->tables[MAREY__EPOCHS_EPOCHS];
    uint64_t n = 0;
    for (size_t row = 0; row < marey_table_n_rows(epochs); row++)
        n += marey__cell_of(epochs, row, "run").as.u64 == run;
    return n;
}

/* "an epoch takes 1.23 s (median of 3 of 4; mean 1.25 s, 1.20 s to 1.30 s), 812 samples/s" */
static marey_status put_run(struct marey__report_writer *writer, size_t row)
{
    const marey_table *averages = writer->report->tables[MAREY__EPOCHS_AVERAGES];
    struct marey__buf *line = &writer->lines.line;
    const uint64_t run = marey__cell_of(averages, row, "run").as.u64;
    const uint64_t n = marey__cell_of(averages, row, "epochs").as.u64,
                   n_all = epochs_of_run(writer, run);
    const struct marey_cell rate = marey__cell_of(averages, row, "samples_per_s");
    if (has_runs(averages))
        marey__buf_printf(line, "run %" PRIu64 ": ", run);
    if (n == 0) {
        marey__text_count_of(line, n_all, "epoch");
        marey__buf_puts(line, ", and none that is complete");
        return marey__lines_end(&writer->lines);
    }
    marey__buf_printf(line, "an epoch takes %s", marey__style(&writer->lines, BOLD));
    put_time(line, averages, row, "median_ns");
    marey__buf_printf(line, "%s (", marey__style(&writer->lines, PLAIN));
    if (n > 1) {
        marey__buf_printf(line, "median of %" PRIu64 " of %" PRIu64 "; mean ", n, n_all);
        put_time(line, averages, row, "mean_ns");
        marey__buf_puts(line, ", ");
        put_time(line, averages, row, "min_ns");
        marey__buf_puts(line, " to ");
        put_time(line, averages, row, "max_ns");
    } else {
        marey__buf_printf(line, "one of %" PRIu64, n_all);
    }
    marey__buf_puts(line, ")");
    if (!rate.is_null) {
        marey__buf_puts(line, ", ");
        marey__text_real(line, rate.as.f64);
        marey__buf_puts(line, " samples/s");
    }
    return marey__lines_end(&writer->lines);
}

/* The rank that was the slowest most often, if any rank stands out in half of the epochs; 0: none. */
static size_t slowest_row(const marey_table *averages, size_t row)
{
    const uint64_t run = marey__cell_of(averages, row, "run").as.u64;
    const uint64_t n = marey__cell_of(averages, row, "epochs").as.u64;
    size_t most = 0;
    uint64_t n_most = 0;
    for (size_t r = row + 1; r < marey_table_n_rows(averages); r++) {
        const uint64_t n_slowest = marey__cell_of(averages, r, "slowest").as.u64;
        if (marey__cell_of(averages, r, "run").as.u64 == run && n_slowest > n_most) {
            n_most = n_slowest;
            most = r;
        }
    }
    return n_most * 2 >= n ? most : 0;
}

/* The mean excess over the epochs in which it was the slowest, and the phase, if it is the same in most of them. */
static marey_status put_slowest(struct marey__report_writer *writer, size_t row)
{
    const marey_table *averages = writer->report->tables[MAREY__EPOCHS_AVERAGES],
                      *epochs = writer->report->tables[MAREY__EPOCHS_EPOCHS];
    const size_t slowest = slowest_row(averages, row);
    size_t n_in[MAREY__N_PHASES] = {0}, n = 0, most = 0;
    double behind_ns = 0;
    if (slowest == 0)
        return MAREY_OK;
    const struct marey_cell rank = marey__cell_of(averages, slowest, "rank");
    for (size_t e = 0; !rank.is_null && e < marey_table_n_rows(epochs); e++) {
        const struct marey_cell whose = marey__cell_of(epochs, e, "slowest_rank");
        if (marey__cell_of(epochs, e, "run").as.u64 != marey__cell_of(averages, row, "run").as.u64 ||
            !marey__cell_of(epochs, e, "counted").as.u64 || whose.is_null ||
            whose.as.i64 != rank.as.i64)
            continue;
        n++;
        behind_ns += (double)marey__cell_of(epochs, e, "behind_ns").as.u64;
        for (size_t i = 0; i < MAREY__N_PHASES; i++)
            n_in[i] += strcmp(marey__epoch_phase_names[i],
                              marey__cell_of(epochs, e, "slowest_in").as.text) == 0;
    }
    if (n == 0)
        return MAREY_OK;
    for (size_t i = 1; i < MAREY__N_PHASES; i++)
        most = n_in[i] > n_in[most] ? i : most;
    marey__buf_printf(&writer->lines.line,
                      "rank %" PRId64 " is the slowest in %" PRIu64 " of %" PRIu64 ", by ",
                      rank.as.i64, marey__cell_of(averages, slowest, "slowest").as.u64,
                      marey__cell_of(averages, row, "epochs").as.u64);
    marey__text_duration(&writer->lines.line, behind_ns / (double)n, NULL);
    marey__buf_puts(&writer->lines.line, n > 1 ? " on average" : "");
    if (2 * n_in[most] > n)
        marey__buf_printf(&writer->lines.line, ", mostly in %s", marey__epoch_phase_names[most]);
    return marey__lines_end(&writer->lines);
}

static marey_status put_runs(struct marey__report_writer *writer)
{
    const marey_table *averages = writer->report->tables[MAREY__EPOCHS_AVERAGES];
    uint64_t last = 0;
    for (size_t row = 0; row < marey_table_n_rows(averages); row++) {
        const uint64_t run = marey__cell_of(averages, row, "run").as.u64;
        if (run == last)
            continue;
        last = run;
        MAREY_TRY(put_run(writer, row));
        MAREY_TRY(put_slowest(writer, row));
    }
    return MAREY_OK;
}

/* ---- tables ---- */

static bool is_empty(const struct marey_cell *cell, const struct marey_column *column)
{
    return cell->is_null || (column->type == MAREY_TYPE_TEXT && cell->len == 0) ||
           (column->unit == MAREY_UNIT_NS && cell->as.u64 == 0);
}

/* With a single rank, the average over all is that of the rank. */
static bool has_one_rank(const struct marey__report_writer *writer)
{
    return marey_table_n_rows(writer->report->tables[MAREY__EPOCHS_AVERAGES]) == 2;
}

static bool is_of_several(const char *column)
{
    static const char *const columns[] = {"rank", "ranks", "shortest_ns", "slowest"};
    for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++)
        if (strcmp(column, columns[i]) == 0)
            return true;
    return false;
}

static bool says_nothing(const void *ctx, const marey_table *table, size_t column)
{
    const struct marey__report_writer *const writer = ctx;
    const struct marey_column *c = marey_table_column(table, column);
    const bool is_epochs = table == writer->report->tables[MAREY__EPOCHS_EPOCHS];
    if (strcmp(c->name, "run") == 0)
        return !has_runs(writer->report->tables[MAREY__EPOCHS_AVERAGES]);
    if (strcmp(c->name, "pid") == 0)
        return true;
    if (has_one_rank(writer) &&
        (is_of_several(c->name) || (is_epochs && strcmp(c->name, "mean_ns") == 0)))
        return true;
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell cell = marey_table_cell(table, row, column);
        if (!is_empty(&cell, c))
            return false;
    }
    return true;
}

static marey_status put_table(struct marey__report_writer *writer, enum marey__epoch_table which,
                              const char *title)
{
    const marey_table *table = writer->report->tables[which];
    const bool is_twice = which == MAREY__EPOCHS_AVERAGES && has_one_rank(writer);
    const struct marey__report_view view = {.table = table,
                                            .title = title,
                                            .n_rows = is_twice ? 1 : marey_table_n_rows(table),
                                            .options = writer->options,
                                            .hides = says_nothing,
                                            .ctx = writer};
    MAREY_TRY(marey__lines_end(&writer->lines)); /* an empty line */
    return marey__report_draw(&writer->lines, &view);
}

/* ---- all lines ---- */

marey_status marey__epochs_text(struct marey__report_writer *writer)
{
    MAREY_TRY(put_runs(writer));
    const bool is_one = has_one_rank(writer);
    MAREY_TRY(put_table(writer, MAREY__EPOCHS_EPOCHS,
                        is_one ? "epochs" : "epochs: the time of the slowest rank"));
    MAREY_TRY(put_table(writer, MAREY__EPOCHS_AVERAGES,
                        is_one ? "averages"
                               : "averages: first the slowest rank of each epoch, then each rank"));
    MAREY_TRY(put_table(writer, MAREY__EPOCHS_PHASES,
                        is_one ? "phases of an epoch" : "phases, of an epoch on a rank"));
    if (!writer->options->is_short)
        MAREY_TRY(put_table(writer, MAREY__EPOCHS_RANKS, "each epoch on each rank"));
    return marey__lines_put_notes(&writer->lines, writer->report->tables[MAREY__EPOCHS_NOTES]);
}
