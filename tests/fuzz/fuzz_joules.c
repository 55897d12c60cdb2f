/* Any bytes as a log: its energy, printed and as JSON. Every figure is a number, whatever it holds. */
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/report.h>

static void write_report(marey_recording *recording, unsigned which)
{
    static const char *const groups[] = {"group=0", "group=1", "group=2"};
    const char *const settings[] = {groups[which % 3], "co2=1", NULL};
    const struct marey_report_options options = {.settings = settings};
    marey_report *report = NULL;
    const marey_table *table;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && marey_report_create("energy", &recording, 1, &options, &report) == MAREY_OK) {
        for (size_t i = 0; (table = marey_report_table_at(report, i)) != NULL; i++)
            fuzz_check_table(table);
        if (marey_report_write(report, "text", NULL, out) == MAREY_OK &&
            marey_report_write(report, "json", NULL, out) == MAREY_OK)
            fflush(out);
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
    write_report(recording, marey__crc32c(0, data, size));
    marey_recording_close(recording);
    return 0;
}
