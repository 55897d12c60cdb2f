/* Any text as a file of stats, on one side of a comparison. */
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct marey__compare_options options = {.skip = 1};
    struct marey__compared_runs side = {0};
    struct marey__names names = {0};
    struct marey__arena texts = {0};
    char *text = malloc(size > 0 ? size : 1); /* of its own, so that a read behind it is seen */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const marey_status status =
        marey__stats_parse(&side, &names, &texts, "fuzzed", text, size, &options);
    MAREY_ASSERT(status != MAREY_OK || side.n > 0);
    for (size_t i = 0; i < side.n; i++)
        MAREY_ASSERT(side.runs[i].n_regions <= names.n);
    marey__runs_fini(&side);
    marey__names_fini(&names);
    marey__arena_fini(&texts);
    free(text);
    return 0;
}
