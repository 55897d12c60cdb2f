/* Any bytes as a log: what its process held. */
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_report *report = NULL;
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    if (marey_report_create("memory", &recording, 1, NULL, &report) == MAREY_OK)
        fuzz_memory_tell(report);
    marey_report_destroy(report);
    marey_recording_close(recording);
    return 0;
}
