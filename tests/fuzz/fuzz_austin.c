/* Any bytes as a profile of austin, text or MOJO. */
#include "fuzz.h"
#include "import/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(&marey__import_austin, data, size);
    return 0;
}
