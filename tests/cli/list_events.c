/* Print every event of a recording, or of a trace as if it were one: the lines of tests/unit/event_list.h. */
#include <stdio.h>

#include "event_list.h"
#include <kymo/import.h>

int main(int argc, char **argv)
{
    kymo_recording *recording = NULL;
    if (argc != 2 || kymo_open(argv[1], NULL, &recording) != KYMO_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? kymo_last_error() : "list_events TRACE");
        return 2;
    }
    const int is_wrong = list_events(recording, stdout);
    kymo_recording_close(recording);
    return is_wrong;
}
