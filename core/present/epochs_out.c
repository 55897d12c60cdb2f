/* Epochs for a terminal and as JSON. The first lines are the answer; tables follow, without columns that say nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/epochs_whole.h"
#include "present/present_internal.h"
#include "present/style.h"

enum { MAX_COLUMNS = 24 };

struct answer {
    kymo_epoch_report *report;
    const struct kymo_epoch_text_options *options;
    struct kymo__lines lines;
};

static void put_time(struct kymo__buf *line, const kymo_table *table, size_t row, const char *column)
{
    kymo__text_duration(line, (double)kymo__cell_of(table, row, column).as.u64, NULL);
}

/* ---- the first lines ---- */

static bool has_runs(const kymo_table *averages)
{
    const size_t n = kymo_table_n_rows(averages);
    return n != 0 && kymo__cell_of(averages, n - 1, "run").as.u64 > 1;
}

static uint64_t epochs_of_run(const struct answer *answer, uint64_t run)
{
    const kymo_table *epochs = answer->report->tables[KYMO__EPOCHS_EPOCHS];
    uint64_t n = 0;
    for (size_t row = 0; row < kymo_table_n_rows(epochs); row++)
        n += kymo__cell_of(epochs, row, "run").as.u64 == run;
    return n;
}

/* "an epoch takes 1.23 s (median of 3 of 4; mean 1.25 s, 1.20 s to 1.30 s), 812 samples/s" */
static kymo_status put_run(struct answer *answer, size_t row)
{
    const kymo_table *averages = answer->report->tables[KYMO__EPOCHS_AVERAGES];
    struct kymo__buf *line = &answer->lines.line;
    const uint64_t run = kymo__cell_of(averages, row, "run").as.u64;
    const uint64_t n = kymo__cell_of(averages, row, "epochs").as.u64,
                   n_all = epochs_of_run(answer, run);
    const struct kymo_cell rate = kymo__cell_of(averages, row, "samples_per_s");
    if (has_runs(averages))
        kymo__buf_printf(line, "run %" PRIu64 ": ", run);
    if (n == 0) {
        kymo__text_count_of(line, n_all, "epoch");
        kymo__buf_puts(line, ", and none that is complete");
        return kymo__lines_end(&answer->lines);
    }
    kymo__buf_printf(line, "an epoch takes %s", kymo__style(&answer->lines, BOLD));
    put_time(line, averages, row, "median_ns");
    kymo__buf_printf(line, "%s (", kymo__style(&answer->lines, PLAIN));
    if (n > 1) {
        kymo__buf_printf(line, "median of %" PRIu64 " of %" PRIu64 "; mean ", n, n_all);
        put_time(line, averages, row, "mean_ns");
        kymo__buf_puts(line, ", ");
        put_time(line, averages, row, "min_ns");
        kymo__buf_puts(line, " to ");
        put_time(line, averages, row, "max_ns");
    } else {
        kymo__buf_printf(line, "one of %" PRIu64, n_all);
    }
    kymo__buf_puts(line, ")");
    if (!rate.is_null) {
        kymo__buf_printf(line, rate.as.f64 < 1e4 ? ", %.4g samples/s" : ", %.0f samples/s",
                         rate.as.f64);
    }
    return kymo__lines_end(&answer->lines);
}

/* The rank that was the slowest most often, if any stands out in half of the epochs; 0: none. */
static size_t slowest_row(const kymo_table *averages, size_t row)
{
    const uint64_t run = kymo__cell_of(averages, row, "run").as.u64;
    const uint64_t n = kymo__cell_of(averages, row, "epochs").as.u64;
    size_t most = 0;
    uint64_t n_most = 0;
    for (size_t r = row + 1; r < kymo_table_n_rows(averages); r++) {
        const uint64_t n_slowest = kymo__cell_of(averages, r, "slowest").as.u64;
        if (kymo__cell_of(averages, r, "run").as.u64 == run && n_slowest > n_most) {
            n_most = n_slowest;
            most = r;
        }
    }
    return n_most * 2 >= n ? most : 0;
}

/* By how much on average, over the epochs in which it was the slowest; and in what, where that is one phase in most of them. */
static kymo_status put_slowest(struct answer *answer, size_t row)
{
    const kymo_table *averages = answer->report->tables[KYMO__EPOCHS_AVERAGES],
                     *epochs = answer->report->tables[KYMO__EPOCHS_EPOCHS];
    const size_t slowest = slowest_row(averages, row);
    size_t n_in[KYMO__N_PHASES] = {0}, n = 0, most = 0;
    double behind_ns = 0;
    if (slowest == 0)
        return KYMO_OK;
    const struct kymo_cell rank = kymo__cell_of(averages, slowest, "rank");
    for (size_t e = 0; !rank.is_null && e < kymo_table_n_rows(epochs); e++) {
        const struct kymo_cell whose = kymo__cell_of(epochs, e, "slowest_rank");
        if (kymo__cell_of(epochs, e, "run").as.u64 != kymo__cell_of(averages, row, "run").as.u64 ||
            !kymo__cell_of(epochs, e, "counted").as.u64 || whose.is_null ||
            whose.as.i64 != rank.as.i64)
            continue;
        n++;
        behind_ns += (double)kymo__cell_of(epochs, e, "behind_ns").as.u64;
        for (size_t i = 0; i < KYMO__N_PHASES; i++)
            n_in[i] += strcmp(kymo__epoch_phase_names[i],
                              kymo__cell_of(epochs, e, "slowest_in").as.text) == 0;
    }
    if (n == 0)
        return KYMO_OK;
    for (size_t i = 1; i < KYMO__N_PHASES; i++)
        most = n_in[i] > n_in[most] ? i : most;
    kymo__buf_printf(&answer->lines.line,
                     "rank %" PRId64 " is the slowest in %" PRIu64 " of %" PRIu64 ", by ",
                     rank.as.i64, kymo__cell_of(averages, slowest, "slowest").as.u64,
                     kymo__cell_of(averages, row, "epochs").as.u64);
    kymo__text_duration(&answer->lines.line, behind_ns / (double)n, NULL);
    kymo__buf_puts(&answer->lines.line, n > 1 ? " on average" : "");
    if (2 * n_in[most] > n)
        kymo__buf_printf(&answer->lines.line, ", mostly in %s", kymo__epoch_phase_names[most]);
    return kymo__lines_end(&answer->lines);
}

static kymo_status put_runs(struct answer *answer)
{
    const kymo_table *averages = answer->report->tables[KYMO__EPOCHS_AVERAGES];
    uint64_t last = 0;
    for (size_t row = 0; row < kymo_table_n_rows(averages); row++) {
        const uint64_t run = kymo__cell_of(averages, row, "run").as.u64;
        if (run == last)
            continue;
        last = run;
        KYMO_TRY(put_run(answer, row));
        KYMO_TRY(put_slowest(answer, row));
    }
    return KYMO_OK;
}

/* ---- tables ---- */

static bool is_empty(const struct kymo_cell *cell, const struct kymo_column *column)
{
    return cell->is_null || (column->type == KYMO_TYPE_TEXT && cell->len == 0) ||
           (column->unit == KYMO_UNIT_NS && cell->as.u64 == 0);
}

/* Nothing to compare: the average of all is that of the one. */
static bool has_one_rank(const struct answer *answer)
{
    return kymo_table_n_rows(answer->report->tables[KYMO__EPOCHS_AVERAGES]) == 2;
}

static bool is_of_several(const char *column)
{
    static const char *const columns[] = {"rank", "ranks", "shortest_ns", "slowest"};
    for (size_t i = 0; i < KYMO__COUNT_OF(columns); i++)
        if (strcmp(column, columns[i]) == 0)
            return true;
    return false;
}

static bool says_nothing(const struct answer *answer, const kymo_table *table, size_t column)
{
    const struct kymo_column *c = kymo_table_column(table, column);
    const bool is_epochs = table == answer->report->tables[KYMO__EPOCHS_EPOCHS];
    if (strcmp(c->name, "run") == 0)
        return !has_runs(answer->report->tables[KYMO__EPOCHS_AVERAGES]);
    if (strcmp(c->name, "pid") == 0)
        return true;
    if (has_one_rank(answer) &&
        (is_of_several(c->name) || (is_epochs && strcmp(c->name, "mean_ns") == 0)))
        return true;
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const struct kymo_cell cell = kymo_table_cell(table, row, column);
        if (!is_empty(&cell, c))
            return false;
    }
    return true;
}

static kymo_status put_table(struct answer *answer, enum kymo__epoch_table which, const char *title)
{
    const kymo_table *table = answer->report->tables[which];
    const char *hide[MAX_COLUMNS + 1];
    const bool is_twice = which == KYMO__EPOCHS_AVERAGES && has_one_rank(answer);
    const size_t limit = answer->options->limit, n = is_twice ? 1 : kymo_table_n_rows(table),
                 n_drawn = limit != 0 ? KYMO__MIN(n, limit) : n;
    size_t n_hidden = 0;
    for (size_t c = 0; c < kymo_table_n_columns(table) && n_hidden < MAX_COLUMNS; c++)
        if (says_nothing(answer, table, c))
            hide[n_hidden++] = kymo_table_column(table, c)->name;
    hide[n_hidden] = NULL;
    kymo__buf_printf(&answer->lines.line, "\n%s%s%s", kymo__style(&answer->lines, DIM), title,
                     kymo__style(&answer->lines, PLAIN));
    KYMO_TRY(kymo__lines_end(&answer->lines));
    const struct kymo__text_view view = {
        .table = table, .options = answer->options->text, .n_rows = n_drawn, .hide = hide};
    KYMO_TRY(kymo__text_draw(&view, answer->lines.out));
    if (n_drawn == n)
        return KYMO_OK;
    kymo__buf_printf(&answer->lines.line, "%s... and %zu more; --all shows them%s",
                     kymo__style(&answer->lines, DIM), n - n_drawn,
                     kymo__style(&answer->lines, PLAIN));
    return kymo__lines_end(&answer->lines);
}

static kymo_status put_notes(struct answer *answer)
{
    const kymo_table *notes = answer->report->tables[KYMO__EPOCHS_NOTES];
    for (size_t row = 0; row < kymo_table_n_rows(notes); row++) {
        kymo__buf_printf(&answer->lines.line, "%snote:%s %s", kymo__style(&answer->lines, YELLOW),
                         kymo__style(&answer->lines, PLAIN), kymo_table_cell(notes, row, 0).as.text);
        KYMO_TRY(kymo__lines_end(&answer->lines));
    }
    return KYMO_OK;
}

/* ---- all ---- */

static kymo_status put_all(struct answer *answer)
{
    KYMO_TRY(put_runs(answer));
    const bool is_one = has_one_rank(answer);
    KYMO_TRY(put_table(answer, KYMO__EPOCHS_EPOCHS,
                       is_one ? "epochs" : "epochs: the time of the slowest rank"));
    KYMO_TRY(put_table(answer, KYMO__EPOCHS_AVERAGES,
                       is_one ? "averages"
                              : "averages: first the slowest rank of each epoch, then each rank"));
    KYMO_TRY(put_table(answer, KYMO__EPOCHS_PHASES,
                       is_one ? "phases of an epoch" : "phases, of an epoch on a rank"));
    if (!answer->options->is_short)
        KYMO_TRY(put_table(answer, KYMO__EPOCHS_RANKS, "each epoch on each rank"));
    return put_notes(answer);
}

kymo_status kymo_epoch_report_text(kymo_epoch_report *report,
                                   const struct kymo_epoch_text_options *options, FILE *out)
{
    static const struct kymo_epoch_text_options defaults;
    struct answer answer = {
        .report = report, .options = options != NULL ? options : &defaults, .lines = {.out = out}};
    answer.lines.has_color = answer.options->text.color;
    return kymo__lines_close(&answer.lines, put_all(&answer));
}

kymo_status kymo_epoch_report_json(kymo_epoch_report *report, FILE *out)
{
    return kymo__json_report(report->tables, KYMO__EPOCHS_NOTES, report->tables[KYMO__EPOCHS_NOTES],
                             out);
}
