/* fault_environment RANGES: record RANGES ranges wherever MAREY and MAREY_OPTIONS say, without a word about it in here. */
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
