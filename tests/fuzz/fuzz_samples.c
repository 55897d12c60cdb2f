/* Any bytes as a log: its samples, all of them and chosen by ranges, iterations and modes, as tables and as text. */
#include <stdio.h>

#include "analyze/samples/samples_whole.h"
#include "fuzz.h"

static void tell(marey_samples_report *report)
{
    FILE *const out = fopen("/dev/null", "w");
    for (size_t i = 0; i < MAREY__N_SAMPLES_TABLES; i++)
        fuzz_check_table(report->tables[i]);
    if (out == NULL)
        return;
    for (size_t i = 0; i < MAREY__SAMPLES_TOTALS; i++) {
        if (i == MAREY__SAMPLES_LEAVES || i == MAREY__SAMPLES_LEAF_PATHS) {
            MAREY_ASSERT(marey_present_csv(report->tables[i], out) == MAREY_OK);
            continue;
        }
        const struct marey_samples_text_options options = {.table =
                                                               marey_table_name(report->tables[i])};
        MAREY_ASSERT(marey_samples_report_text(report, &options, out) == MAREY_OK);
    }
    (void)!marey_samples_report_json(report, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    const struct marey_samples_report_options all[] = {
        {.library = "torch", .native = 1},
        {.filter = {.idle = 1, .range = "forward"}, .sort = "total"},
        {.filter = {.mode = "cpu", .iterations = "slow"}, .names = "main"},
    };
    marey_samples_report *report = NULL;
    if (marey_samples_report_create(&recording, 1, &all[size % 3], &report) == MAREY_OK)
        tell(report);
    marey_samples_report_destroy(report);
    marey_recording_close(recording);
    return 0;
}
