/* Any text as a file of speedscope. */
#include "fuzz.h"
#include "import/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(&marey__import_speedscope, data, size);
    return 0;
}
