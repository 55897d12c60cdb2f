/* fault_seal RECORDING: finish the logs of dead processes, so that a test can kill whoever does it. */
#include <stdio.h>

#include <kymo/recording.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const kymo_status st = kymo_recording_seal(argv[1]);
    if (st != KYMO_OK)
        fprintf(stderr, "%s\n", kymo_last_error());
    return st == KYMO_OK ? 0 : 1;
}
