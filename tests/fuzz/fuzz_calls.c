/* Any bytes as a log: its calls, as tables and as each of the files that are made of them. */
#include <stdio.h>

#include "analyze/calls.h"
#include "fuzz.h"

static void tell(kymo_calls_report *report)
{
    FILE *const out = fopen("/dev/null", "w");
    for (size_t i = 0; i < KYMO__N_CALLS_TABLES; i++)
        fuzz_check_table(report->tables[i]);
    if (out == NULL)
        return;
    for (size_t i = 0; i < KYMO__CALLS_TOTALS; i++) {
        const struct kymo_calls_text_options options = {.table = kymo_table_name(report->tables[i])};
        KYMO_ASSERT(kymo_calls_report_text(report, &options, out) == KYMO_OK);
    }
    (void)!kymo_calls_report_json(report, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kymo_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    const struct kymo_calls_report_options options = {
        .subtract = size % 2 != 0, .by_signature = size % 3 == 0, .sort = "total"};
    kymo_calls_report *report = NULL;
    if (kymo_calls_report_create(&recording, 1, &options, &report) == KYMO_OK)
        tell(report);
    kymo_calls_report_destroy(report);
    kymo_recording_close(recording);
    return 0;
}
