/* Any text as a file of stats, on one side of a comparison. */
#include <stdlib.h>
#include <string.h>

#include "analyze/compare_internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kymo_compare_options options = {.skip = 1};
    struct kymo__compared_runs side = {0};
    struct kymo__names names = {0};
    struct kymo__arena texts = {0};
    char *text = malloc(size > 0 ? size : 1); /* of its own, so that a read behind it is seen */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const kymo_status status =
        kymo__stats_parse(&side, &names, &texts, "fuzzed", text, size, &options);
    KYMO_ASSERT(status != KYMO_OK || side.n > 0);
    for (size_t i = 0; i < side.n; i++)
        KYMO_ASSERT(side.runs[i].n_regions <= names.n);
    kymo__runs_fini(&side);
    kymo__names_fini(&names);
    kymo__arena_fini(&texts);
    free(text);
    return 0;
}
