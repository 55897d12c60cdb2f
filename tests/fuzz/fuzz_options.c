/* Any text as MAREY_OPTIONS. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "switchboard/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    struct marey__settings s;
    marey__settings_init(&s);
    if (marey__settings_parse(&s, text) == MAREY_OK) {
        MAREY_ASSERT(s.policy <= MAREY_BLOCK && s.clock <= MAREY_CLOCK_MONOTONIC && s.pool_bytes > 0);
        MAREY_ASSERT(s.rank >= -1 && s.world_size >= -1 &&
                     memchr(s.run_id, '\0', sizeof s.run_id) != NULL);
    } else {
        MAREY_ASSERT(marey_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
