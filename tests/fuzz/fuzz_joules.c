/* Any bytes as a log: its energy, printed and as JSON. Every figure is a number, whatever it holds. */
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/energy_report.h>

static void tell(marey_recording *recording, unsigned which)
{
    static const char *const tables[] = {"runs",   "repeats",    "devices", "ranks",  "nodes",
                                         "epochs", "iterations", "phases",  "ranges", "notes"};
    const struct marey_energy_report_options options = {.group = which % 3, .co2_g_per_kwh = 1};
    marey_energy_report *report = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && marey_energy_report_create(&recording, 1, &options, &report) == MAREY_OK) {
        for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
            fuzz_check_table(marey_energy_report_table(report, tables[i]));
        (void)marey_energy_report_text(report, NULL, out);
        (void)marey_energy_report_json(report, out);
        marey_energy_report_destroy(report);
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
