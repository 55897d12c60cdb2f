/* Any text as KYMO_OPTIONS. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "switchboard/switchboard_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    struct kymo__settings s;
    kymo__settings_init(&s);
    if (kymo__settings_parse(&s, text) == KYMO_OK) {
        KYMO_ASSERT(s.policy <= KYMO_BLOCK && s.clock <= KYMO_CLOCK_MONOTONIC && s.pool_bytes > 0);
        KYMO_ASSERT(s.rank >= -1 && s.world_size >= -1 &&
                    memchr(s.run_id, '\0', sizeof s.run_id) != NULL);
    } else {
        KYMO_ASSERT(kymo_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
