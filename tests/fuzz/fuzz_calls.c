/* Any bytes as a log: its calls, as tables and as each of the files that are made of them. */
#include <stdio.h>

#include "analyze/calls/calls.h"
#include "fuzz.h"

static void tell(marey_calls_report *report)
{
    FILE *const out = fopen("/dev/null", "w");
    for (size_t i = 0; i < MAREY__N_CALLS_TABLES; i++)
        fuzz_check_table(report->tables[i]);
    if (out == NULL)
        return;
    for (size_t i = 0; i < MAREY__CALLS_TOTALS; i++) {
        const struct marey_calls_text_options options = {.table =
                                                             marey_table_name(report->tables[i])};
        MAREY_ASSERT(marey_calls_report_text(report, &options, out) == MAREY_OK);
    }
    (void)!marey_calls_report_json(report, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    const struct marey_calls_report_options options = {
        .subtract = size % 2 != 0, .by_signature = size % 3 == 0, .sort = "total"};
    marey_calls_report *report = NULL;
    if (marey_calls_report_create(&recording, 1, &options, &report) == MAREY_OK)
        tell(report);
    marey_calls_report_destroy(report);
    marey_recording_close(recording);
    return 0;
}
