/* Any bytes as a log: its epochs, printed and as JSON. Phases add up to their epoch, whatever it holds. */
#include <math.h>
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/report.h>

static uint64_t number(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column)).as.u64;
}

static void check_sums(const marey_table *ranks)
{
    static const char *const phases[] = {"data_ns",      "forward_ns",  "backward_ns",
                                         "optimizer_ns", "evaluate_ns", "checkpoint_ns",
                                         "logging_ns",   "other_ns"};
    for (size_t row = 0; row < marey_table_n_rows(ranks); row++) {
        uint64_t sum_ns = 0;
        for (size_t i = 0; i < MAREY__COUNT_OF(phases); i++) {
            MAREY_ASSERT(number(ranks, row, phases[i]) <= number(ranks, row, "duration_ns"));
            sum_ns += number(ranks, row, phases[i]);
        }
        MAREY_ASSERT(sum_ns == number(ranks, row, "duration_ns"));
    }
}

static void check_numbers(const marey_table *table)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        for (size_t c = 0; c < marey_table_n_columns(table); c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            if (!cell.is_null && marey_table_column(table, c)->type == MAREY_TYPE_F64)
                MAREY_ASSERT(isfinite(cell.as.f64));
        }
}

static void tell(marey_recording *recording, unsigned which)
{
    static const char *const tables[] = {"epochs", "ranks", "averages", "phases", "notes"};
    const char *const settings[] = {which % 2 != 0 ? "first" : NULL, NULL};
    const struct marey_report_options options = {.settings = settings};
    const struct marey_write_options text = {.limit = which % 3};
    marey_report *report = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && marey_report_create("epochs", &recording, 1, &options, &report) == MAREY_OK) {
        for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
            check_numbers(marey_report_table(report, tables[i]));
        check_sums(marey_report_table(report, "ranks"));
        (void)!marey_report_write(report, "text", &text, out);
        (void)!marey_report_write(report, "json", NULL, out);
        marey_report_destroy(report);
    }
    if (out != NULL)
        fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    tell(recording, marey__crc32c(0, data, size));
    marey_recording_close(recording);
    return 0;
}
