/* Any bytes as a log: its calls as tables and as each kind of exported file. */
#include <stdio.h>

#include "analyze/calls/internal.h"
#include "fuzz.h"

static void tell(marey_report *report)
{
    FILE *const out = fopen("/dev/null", "w");
    for (size_t i = 0; i < MAREY__N_CALLS_TABLES; i++)
        fuzz_check_table(report->tables[i]);
    if (out == NULL)
        return;
    for (size_t i = 0; i < MAREY__CALLS_TOTALS; i++) {
        const struct marey_write_options options = {.table = marey_table_name(report->tables[i])};
        MAREY_ASSERT(marey_report_write(report, "text", &options, out) == MAREY_OK);
    }
    (void)!marey_report_write(report, "json", NULL, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    const char *const settings[] = {"sort=total", size % 2 != 0 ? "subtract" : "startup",
                                    size % 3 == 0 ? "by=signature" : NULL, NULL};
    const struct marey_report_options options = {.settings = settings};
    marey_report *report = NULL;
    if (marey_report_create("calls", &recording, 1, &options, &report) == MAREY_OK)
        tell(report);
    marey_report_destroy(report);
    marey_recording_close(recording);
    return 0;
}
