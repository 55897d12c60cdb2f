/* Any bytes as a log: its samples, unfiltered and filtered by ranges, iterations and modes, as
 * tables and text. */
#include <stdio.h>

#include "analyze/samples/internal.h"
#include "fuzz.h"

static void tell(marey_report *report)
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
    static const char *const all[3][4] = {
        {"library=torch", "native", NULL},
        {"idle", "range=forward", "sort=total", NULL},
        {"mode=cpu", "iterations=slow", "filter=main", NULL},
    };
    const struct marey_report_options options = {.settings = all[size % 3]};
    marey_report *report = NULL;
    if (marey_report_create("samples", &recording, 1, &options, &report) == MAREY_OK)
        tell(report);
    marey_report_destroy(report);
    marey_recording_close(recording);
    return 0;
}
