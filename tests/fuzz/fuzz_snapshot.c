/* Any bytes as a snapshot of torch's allocator: a pickle. Every figure of the report is a number, whatever it holds. */
#include <stdio.h>

#include "analyze/memory/internal.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_report *report = NULL;
    if (marey__memory_report_bytes("fuzz", data, size, &report) == MAREY_OK)
        fuzz_memory_tell(report);
    marey_report_destroy(report);
    return 0;
}
