/* Any text as input from /proc for usage over intervals: loadavg, stat, a process's stat, statm. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "record/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    uint64_t number = 0, numbers[4];
    struct marey__process_stat stat = {0};
    if (marey__parse_last_pid(text, size, &number))
        MAREY_ASSERT(number > 0 && number <= INT32_MAX);
    marey__parse_machine_ticks(text, size, &number);
    marey__parse_process_stat(text, size, &stat);
    MAREY_ASSERT(marey__parse_numbers(text, size, numbers, 4) <= 4);
    free(text);
    return 0;
}
