/* Any bytes as a log: what its process held. */
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kymo_memory_report *report = NULL;
    kymo_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    if (kymo_memory_report_create(&recording, 1, NULL, &report) == KYMO_OK)
        fuzz_memory_tell(report);
    kymo_memory_report_destroy(report);
    kymo_recording_close(recording);
    return 0;
}
