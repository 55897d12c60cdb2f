/* Any bytes as the results that another process packed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "stopwatch/stopwatch_merge.h"
#include <kymo/stopwatch.h>

static void look(const kymo_stopwatch_merged *merged)
{
    static const char *const names[] = {"ranks", "intervals", "iterations"};
    for (size_t i = 0; i < KYMO__COUNT_OF(names); i++) {
        kymo_table *table;
        if (kymo_stopwatch_merged_table(merged, names[i], &table) == KYMO_OK)
            kymo_table_destroy(table);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kymo_stopwatch_merged *merged;
    if (kymo_stopwatch_merged_create(&merged) != KYMO_OK)
        return 0;
    if (kymo_stopwatch_merged_add(merged, data, size) == KYMO_OK) {
        const kymo_status again = kymo_stopwatch_merged_add(merged, data, size);
        KYMO_ASSERT(again == KYMO_OK || again == KYMO_ENOMEM);
    } else {
        KYMO_ASSERT(kymo_last_error()[0] != '\0');
    }
    look(merged);
    kymo_stopwatch_merged_destroy(merged);
    return 0;
}
