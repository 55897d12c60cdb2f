/* Any bytes as a file of another tool: its format is found out, and what it gives is read as a recording. */
#include <stdio.h>

#include "base/base_internal.h"
#include "fuzz.h"
#include <kymo/import.h>
#include <kymo/report.h>

/* Names that say something about the format or the rank. */
static const char *const names[] = {"any", "rank-3.json", "a_1.json.gz", "worker2.folded", "x.prof"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t which = kymo__crc32c(0, data, size);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), names[which % KYMO__COUNT_OF(names)]);
    if (!fuzz_write_file(path, data, size))
        return 0;
    kymo_recording *recording = NULL;
    kymo_summary *summary = NULL;
    const struct kymo_import_options wants = {.memory_bytes = 1 << 16,
                                              .keep_arguments = which >> 8 & 1};
    if (kymo_open(path, &wants, &recording) == KYMO_OK &&
        kymo_summary_create(&recording, 1, NULL, &summary) == KYMO_OK)
        kymo_summary_destroy(summary);
    kymo_recording_close(recording);
    remove(path);
    return 0;
}
