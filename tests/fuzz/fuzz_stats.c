/* Any text as a file of stats, on one side of a comparison. */
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct marey__compare_options options = {.skip = 1};
    const struct marey__source source = {.path = "fuzzed"};
    struct marey__comparison c = {0};
    const struct marey__compared_runs *const side = &c.sides[source.side];
    char *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const marey_status status = marey__stats_parse(&c, &source, text, size, &options);
    MAREY_ASSERT(status != MAREY_OK || side->n > 0);
    for (size_t i = 0; i < side->n; i++)
        MAREY_ASSERT(side->runs[i].of[MAREY__COMPARED_RANGES].n <= c.names[MAREY__COMPARED_RANGES].n);
    marey__runs_fini(&c.sides[MAREY__A]);
    marey__names_fini(&c.names[MAREY__COMPARED_RANGES]);
    marey__arena_fini(&c.texts);
    free(text);
    return 0;
}
