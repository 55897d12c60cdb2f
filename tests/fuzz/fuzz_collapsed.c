/* Any text as collapsed stacks. */
#include "fuzz.h"
#include "import/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(&marey__import_collapsed, data, size);
    return 0;
}
