/* Any bytes as a log: its samples, all of them and chosen by ranges, iterations and modes, as tables and as text. */
#include <stdio.h>

#include "analyze/samples_whole.h"
#include "fuzz.h"

static void tell(kymo_samples_report *report)
{
    FILE *const out = fopen("/dev/null", "w");
    for (size_t i = 0; i < KYMO__N_SAMPLES_TABLES; i++)
        fuzz_check_table(report->tables[i]);
    if (out == NULL)
        return;
    for (size_t i = 0; i < KYMO__SAMPLES_TOTALS; i++) {
        if (i == KYMO__SAMPLES_LEAVES || i == KYMO__SAMPLES_LEAF_PATHS) {
            KYMO_ASSERT(kymo_samples_report_leaves(report, i == KYMO__SAMPLES_LEAF_PATHS, 10, out) ==
                        KYMO_OK);
            continue;
        }
        const struct kymo_samples_text_options options = {.table =
                                                              kymo_table_name(report->tables[i])};
        KYMO_ASSERT(kymo_samples_report_text(report, &options, out) == KYMO_OK);
    }
    (void)!kymo_samples_report_json(report, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kymo_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    const struct kymo_samples_report_options all[] = {
        {.library = "torch", .native = 1},
        {.filter = {.idle = 1, .range = "forward"}, .sort = "total"},
        {.filter = {.mode = "cpu", .iterations = "slow"}, .names = "main"},
    };
    kymo_samples_report *report = NULL;
    if (kymo_samples_report_create(&recording, 1, &all[size % 3], &report) == KYMO_OK)
        tell(report);
    kymo_samples_report_destroy(report);
    kymo_recording_close(recording);
    return 0;
}
