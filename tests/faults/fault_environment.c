/* fault_environment RANGES: record RANGES ranges; only MAREY and MAREY_OPTIONS configure the
 * recording. */
#include <stdlib.h>

#include "sequence.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    sequence_init();
    sequence_ranges(strtoull(argv[1], NULL, 10));
    return 0;
}
