/* fault_nested FIRST SECOND: start a second recording while the first is open; only the first may
 * exist. */
#include <stdio.h>

#include "sequence.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    sequence_start(argv[1], NULL);
    for (uint64_t i = 0; i < 100; i++)
        sequence_range(i);
    const marey_status st = marey_start(&(struct marey_options){.path = argv[2]});
    printf("%s: %s\n", marey_status_name(st), marey_last_error());
    for (uint64_t i = 100; i < 200; i++)
        sequence_range(i);
    return marey_stop() == MAREY_OK ? 0 : 1;
}
