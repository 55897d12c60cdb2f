/* Any bytes as a log: opened directly, summarized, reported and exported. */
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/any.klog", fuzz_folder());
    if (fuzz_write_file(path, data, size))
        fuzz_read(path, marey__crc32c(0, data, size));
    return 0;
}
