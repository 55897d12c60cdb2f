/* Any bytes as serialized results of another process. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "instrument/stopwatch/internal.h"
#include <marey/stopwatch.h>

static void look(const marey_stopwatch_merged *merged)
{
    static const char *const names[] = {"ranks", "intervals", "iterations"};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        marey_table *table;
        if (marey_stopwatch_merged_table(merged, names[i], &table) == MAREY_OK)
            marey_table_destroy(table);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_stopwatch_merged *merged;
    if (marey_stopwatch_merged_create(&merged) != MAREY_OK)
        return 0;
    if (marey_stopwatch_merged_add(merged, data, size) == MAREY_OK) {
        const marey_status again = marey_stopwatch_merged_add(merged, data, size);
        MAREY_ASSERT(again == MAREY_OK || again == MAREY_ENOMEM);
    } else {
        MAREY_ASSERT(marey_last_error()[0] != '\0');
    }
    look(merged);
    marey_stopwatch_merged_destroy(merged);
    return 0;
}
