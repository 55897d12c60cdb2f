/* fault_finalize RECORDING: finalize the logs of dead processes, in a process that a test can kill.
 * */
#include <stdio.h>

#include <marey/recording.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const marey_status st = marey_recording_finalize(argv[1]);
    if (st != MAREY_OK)
        fprintf(stderr, "%s\n", marey_last_error());
    return st == MAREY_OK ? 0 : 1;
}
