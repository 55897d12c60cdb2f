/* Any bytes as a file of another tool: detect its format, and read the result as a recording. */
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/import.h>
#include <marey/report.h>

/* File names that imply a format or a rank. */
static const char *const names[] = {"any", "rank-3.json", "a_1.json.gz", "worker2.folded", "x.prof"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t which = marey__crc32c(0, data, size);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), names[which % MAREY__COUNT_OF(names)]);
    if (!fuzz_write_file(path, data, size))
        return 0;
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    const struct marey_import_options wants = {.memory_bytes = 1 << 16,
                                               .keep_arguments = which >> 8 & 1};
    if (marey_open(path, &wants, &recording) == MAREY_OK &&
        marey_report_create("ranges", &recording, 1, NULL, &summary) == MAREY_OK)
        marey_report_destroy(summary);
    marey_recording_close(recording);
    remove(path);
    return 0;
}
